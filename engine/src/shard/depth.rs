//! Depth: publishes the order books of the simulated venue, and those that outside venues send, to
//! the ports that watch them. Depth is
//! not part of the history: nothing depends on it, so it carries no sequence number and is not
//! stored; an update that was skipped is never missed.

use std::collections::BTreeMap;

use super::Shard;
use crate::event::{Depth, EVENTS_PER_COMMAND_MAX, EventKind, LEVEL_EVENTS_MAX};
use crate::id::{PortId, PortMask, SecurityId};
use crate::index::index_u8;
use crate::outbox::Outbox;
use crate::reason::Reason;
use crate::terms::Side;

/// Books published in one call: some 10 µs, and two events each stay within the bound of a step.
pub const DEPTHS_PER_GO_MAX: usize = 32;
/// Most events of one book: both sides of its depth, and the changes of its price levels.
const EVENTS_PER_BOOK_MAX: usize = 2 + LEVEL_EVENTS_MAX;

const _: () = assert!(EVENTS_PER_BOOK_MAX <= EVENTS_PER_COMMAND_MAX, "a book is published in one step");

/// Ports that watch each book, by the index of its security.
#[derive(Debug, Default)]
pub(super) struct DepthWatches(BTreeMap<u32, WatchedBook>);

#[derive(Debug)]
struct WatchedBook {
    ports: PortMask,
    /// Depth as last published to all of them.
    published: Option<[Depth; 2]>,
}

impl DepthWatches {
    fn add(&mut self, local: u32, port: PortMask) {
        let watched = self.0.entry(local).or_insert(WatchedBook { ports: PortMask::NONE, published: None });
        watched.ports = watched.ports.with(port);
    }

    fn remove(&mut self, local: u32, port: PortMask) {
        let Some(watched) = self.0.get_mut(&local) else { return };
        watched.ports = watched.ports.without(port);
        if watched.ports.is_empty() {
            self.0.remove(&local);
        }
    }

    /// Records the depth of a book. Returns the ports to publish it to, if it differs from the
    /// depth published before.
    fn publish(&mut self, local: u32, depth: Option<[Depth; 2]>) -> Option<PortMask> {
        let watched = self.0.get_mut(&local)?;
        let is_new = depth != std::mem::replace(&mut watched.published, depth);
        is_new.then_some(watched.ports)
    }
}

impl Shard {
    /// Starts or stops watching a book. A port that starts gets its current depth.
    pub(super) fn watch_depth(
        &mut self,
        port: PortId,
        security: SecurityId,
        on: bool,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        let local = self.directory.local(security).ok_or(Reason::UnknownSecurity)?;
        let one = PortMask::one(port);
        if on {
            self.depths.add(local, one);
            self.venue.follow(local, true);
            if self.publishes_depth(local) {
                self.emit_depth(one, self.depth_of(local), out);
            }
        } else {
            self.depths.remove(local, one);
            self.unfollow(local);
        }
        Ok(())
    }

    /// Stops following a book that no port watches any more.
    pub(super) fn unfollow(&mut self, local: u32) {
        if !self.is_watched(local) {
            self.venue.follow(local, false);
            self.venue_books.take_renewed(local);
        }
    }

    /// Returns whether a port watches a book in any form.
    pub(super) fn is_watched(&self, local: u32) -> bool {
        self.depths.0.contains_key(&local) || self.levels.contains(local) || self.book_orders.contains(local)
    }

    pub(super) fn forget_depths(&mut self) {
        self.depths = DepthWatches::default();
        self.venue.follow_none();
    }

    /// Returns whether a watched book may have changed since it was published.
    #[inline]
    pub fn has_depths(&self) -> bool {
        self.venue.has_touched() || self.book_orders.has_waiting()
    }

    /// Publishes the books that have changed, at most [`DEPTHS_PER_GO_MAX`] of them: both sides of
    /// each, bids first; then the changes of their price levels. Changes of their orders follow in
    /// steps of their own.
    #[cold]
    pub fn emit_depths(&mut self, out: &mut Outbox) {
        assert!(!self.has_work(), "a book is shown between commands");
        if self.book_orders.takes_turn(self.venue.has_touched()) {
            return self.emit_book_orders(out);
        }
        let before = out.waiting_count();
        for _ in 0..DEPTHS_PER_GO_MAX {
            if out.waiting_count() - before + EVENTS_PER_BOOK_MAX > EVENTS_PER_COMMAND_MAX {
                return;
            }
            let Some(local) = self.venue.take_touched() else { return };
            // A book that is lost is published once more, empty.
            let is_renewed = self.venue_books.take_renewed(local);
            let is_shown = self.publishes_depth(local) || is_renewed && self.is_subscribed(local);
            let depth = is_shown.then(|| self.depth_of(local));
            if let Some(ports) = self.depths.publish(local, depth)
                && let Some(depth) = depth
            {
                self.emit_depth(ports, depth, out);
            }
            self.emit_level_changes(local, is_renewed, out);
            self.book_orders.touch(local);
        }
    }

    /// Returns whether the depth of a security is published. The book of an outside venue may be
    /// unknown, and a book without subscribers is not published, as with ticks.
    pub(super) fn publishes_depth(&self, local: u32) -> bool {
        let is_known = self.directory.is_simulated(local) || self.venue_books.is_known(local);
        is_known && self.is_subscribed(local)
    }

    fn is_subscribed(&self, local: u32) -> bool {
        !self.directory.locals[local as usize].subscribers.is_empty()
    }

    fn depth_of(&self, local: u32) -> [Depth; 2] {
        let security = self.directory.locals[local as usize].instrument.security;
        Side::BOTH.map(|side| {
            let (levels, count) = match self.directory.is_simulated(local) {
                true => self.venue.levels(local, side),
                false => self.venue_books.best(local, side),
            };
            Depth { levels, security, side, count: index_u8(count) }
        })
    }

    fn emit_depth(&self, to: PortMask, depth: [Depth; 2], out: &mut Outbox) {
        for side in depth {
            out.emit_unnumbered(to, self.now, EventKind::Depth(side));
        }
    }
}
