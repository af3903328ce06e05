//! Books of outside venues, as their adapters bring them ([`crate::command::VenueLevels`]). Like
//! published depth they are not part of the history: a shard that starts, or is decoded, knows none
//! until the venue sends them again. The books of securities without depth cost nothing.
//!
//! ```text
//! unknown ── first level ──► incomplete ── VenueBook, known ──► complete ─┐
//!    ▲                                        ▲── levels, VenueBook ──────┤
//!    └───────────── VenueBook, unknown ───────┴───────────────────────────┘
//! ```

use std::collections::{BTreeMap, BTreeSet};

use super::Shard;
use crate::command::{CommandKind, VenueLevels};
use crate::event::{DEPTH_LEVELS_MAX, DepthLevel, LEVELS_PER_SIDE_MAX};
use crate::id::SecurityId;
use crate::level_book::set_level;
use crate::terms::Side;

/// The known books, by the index of their security: at most some 13 kB for each.
#[derive(Debug, Default)]
pub(super) struct VenueBooks {
    books: BTreeMap<u32, VenueBook>,
    /// Books that have begun again, or are lost, since they were last published: their watchers get
    /// a snapshot.
    renewed: BTreeSet<u32>,
}

#[derive(Debug)]
struct VenueBook {
    /// Bids and asks with the changes received so far, each best first.
    received: [Vec<DepthLevel>; 2],
    /// The same at the last complete change: these are published.
    complete: [Vec<DepthLevel>; 2],
    is_complete: bool,
    /// Whether the received changes begin the book again.
    is_replaced: bool,
}

impl VenueBook {
    fn new() -> VenueBook {
        let sides = || [(); 2].map(|()| Vec::with_capacity(LEVELS_PER_SIDE_MAX + 1));
        VenueBook { received: sides(), complete: sides(), is_complete: false, is_replaced: true }
    }

    fn receive(&mut self, part: &VenueLevels) {
        if part.replaces {
            self.received.iter_mut().for_each(Vec::clear);
            self.is_replaced = true;
        }
        for (side, price, qty) in part.levels() {
            let levels = &mut self.received[side as usize];
            set_level(levels, side, DepthLevel { price, qty });
            // An adapter sends the best levels only; the bound holds for any.
            levels.truncate(LEVELS_PER_SIDE_MAX);
        }
    }
}

impl VenueBooks {
    /// Returns whether the book of a security is known.
    pub(super) fn is_known(&self, local: u32) -> bool {
        self.books.get(&local).is_some_and(|book| book.is_complete)
    }

    /// Returns the levels of a side, best first; none if the book is unknown.
    pub(super) fn levels(&self, local: u32, side: Side) -> &[DepthLevel] {
        self.books.get(&local).map_or(&[], |book| &book.complete[side as usize])
    }

    /// Returns the best of [`VenueBooks::levels`], and their number.
    pub(super) fn best(&self, local: u32, side: Side) -> ([DepthLevel; DEPTH_LEVELS_MAX], usize) {
        let known = self.levels(local, side);
        let count = known.len().min(DEPTH_LEVELS_MAX);
        let mut levels = [DepthLevel::default(); DEPTH_LEVELS_MAX];
        levels[..count].copy_from_slice(&known[..count]);
        (levels, count)
    }

    /// Returns whether the book has begun again or is lost since the last call.
    pub(super) fn take_renewed(&mut self, local: u32) -> bool {
        self.renewed.remove(&local)
    }

    fn receive(&mut self, local: u32, part: &VenueLevels) {
        self.books.entry(local).or_insert_with(VenueBook::new).receive(part);
    }

    /// Completes the received changes, or forgets the book. Returns whether there was one.
    fn complete(&mut self, local: u32, is_known: bool) -> bool {
        if !is_known {
            let was_known = self.books.remove(&local).is_some();
            if was_known {
                self.renewed.insert(local);
            }
            return was_known;
        }
        // A change without levels is that of an empty book.
        let book = self.books.entry(local).or_insert_with(VenueBook::new);
        for (complete, received) in book.complete.iter_mut().zip(&book.received) {
            complete.clone_from(received);
        }
        book.is_complete = true;
        if std::mem::take(&mut book.is_replaced) {
            self.renewed.insert(local);
        }
        true
    }
}

impl Shard {
    /// Applies a command that is not stored in the journal ([`CommandKind::is_stored`]). It has no
    /// number and emits nothing.
    pub fn apply_unstored(&mut self, command: &CommandKind) {
        assert!(!command.is_stored(), "a command with consequences has a number");
        if let CommandKind::VenueLevels(part) = command {
            self.receive_venue_levels(part);
        }
    }

    /// Receives a part of a change. The simulated venue has books of its own, and those of other
    /// shards are ignored.
    pub(super) fn receive_venue_levels(&mut self, part: &VenueLevels) {
        if let Some(local) = self.outside(part.security) {
            self.venue_books.receive(local, part);
        }
    }

    /// Completes the received changes of a book, or forgets it.
    pub(super) fn complete_venue_book(&mut self, security: SecurityId, is_known: bool) {
        let Some(local) = self.outside(security) else { return };
        let has_changed = self.venue_books.complete(local, is_known);
        if !self.is_watched(local) {
            // The first watcher gets a snapshot in any case.
            self.venue_books.take_renewed(local);
        } else if has_changed {
            self.venue.touch(local);
        }
    }

    pub(super) fn forget_venue_books(&mut self) {
        self.venue_books = VenueBooks::default();
    }

    fn outside(&self, security: SecurityId) -> Option<u32> {
        self.directory.local(security).filter(|local| !self.directory.is_simulated(*local))
    }
}
