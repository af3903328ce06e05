//! Publishes the price levels of the venues' books as a snapshot and updates
//! ([`crate::event::LevelChanges`]). Like depth they are not part of the history and not stored. A
//! book without watchers costs nothing.

use std::collections::BTreeMap;

use super::Shard;
use super::venue_books::VenueBooks;
use crate::event::{DepthLevel, EventKind, LEVELS_PER_SIDE_MAX, LevelChange, LevelChanges, LevelsKind};
use crate::id::{PortId, PortMask, SecurityId};
use crate::level_book::each_change;
use crate::outbox::Outbox;
use crate::reason::Reason;
use crate::terms::Side;
use crate::time::Timestamp;
use crate::venue::Venue;

/// Ports that watch the levels of each book, by the index of its security.
#[derive(Debug, Default)]
pub(super) struct LevelWatches {
    books: BTreeMap<u32, WatchedLevels>,
    /// Reused buffer for one side of a book.
    current: Vec<DepthLevel>,
}

#[derive(Debug)]
struct WatchedLevels {
    ports: PortMask,
    /// Number of the last command that the published picture includes.
    seq: u64,
    /// Bids and asks as all ports know them, with room for every level.
    published: [Vec<DepthLevel>; 2],
}

impl LevelWatches {
    pub(super) fn contains(&self, local: u32) -> bool {
        self.books.contains_key(&local)
    }

    fn remove(&mut self, local: u32, port: PortMask) {
        let Some(watched) = self.books.get_mut(&local) else { return };
        watched.ports = watched.ports.without(port);
        if watched.ports.is_empty() {
            self.books.remove(&local);
        }
    }
}

impl Shard {
    /// Starts or stops watching the levels of a book. A port that starts, or starts again, gets a
    /// snapshot.
    pub(super) fn watch_levels(
        &mut self,
        port: PortId,
        security: SecurityId,
        on: bool,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        let local = self.directory.local(security).ok_or(Reason::UnknownSecurity)?;
        let one = PortMask::one(port);
        if !on {
            self.levels.remove(local, one);
            self.unfollow(local);
            return Ok(());
        }
        if !self.levels.contains(local) {
            self.venue.follow(local, true);
            self.levels.current.reserve(LEVELS_PER_SIDE_MAX);
            let is_published = self.publishes_depth(local);
            let published = Side::BOTH.map(|side| {
                let mut levels = Vec::with_capacity(LEVELS_PER_SIDE_MAX);
                if is_published {
                    let is_simulated = self.directory.is_simulated(local);
                    copy_levels((&self.venue, &self.venue_books), is_simulated, (local, side), &mut levels);
                }
                levels
            });
            let watched = WatchedLevels { ports: PortMask::NONE, seq: self.applied, published };
            self.levels.books.insert(local, watched);
        }
        let Some(watched) = self.levels.books.get_mut(&local) else { return Ok(()) };
        watched.ports = watched.ports.with(one);
        let mut parts = LevelParts::new(security, LevelsKind::Snapshot, [watched.seq; 2], one, self.now);
        for (side, levels) in Side::BOTH.into_iter().zip(&watched.published) {
            for &DepthLevel { price, qty } in levels {
                parts.push(LevelChange { side, price, qty }, out);
            }
        }
        parts.finish(out);
        Ok(())
    }

    pub(super) fn forget_levels(&mut self) {
        self.levels = LevelWatches::default();
    }

    /// Publishes what has changed in a book since it was last published. A book that is not
    /// published any more is empty. One that has begun again is published whole.
    pub(super) fn emit_level_changes(&mut self, local: u32, is_renewed: bool, out: &mut Outbox) {
        if !self.levels.contains(local) {
            return;
        }
        let is_published = self.publishes_depth(local);
        let is_simulated = self.directory.is_simulated(local);
        let security = self.directory.locals[local as usize].instrument.security;
        let LevelWatches { books, current } = &mut self.levels;
        let Some(watched) = books.get_mut(&local) else { return };
        let (kind, prev_seq) = match is_renewed {
            true => (LevelsKind::Snapshot, self.applied),
            false => (LevelsKind::Update, watched.seq),
        };
        let seqs = [prev_seq, self.applied];
        let mut parts = LevelParts::new(security, kind, seqs, watched.ports, self.now);
        for side in Side::BOTH {
            let published = &mut watched.published[side as usize];
            current.clear();
            if is_published {
                copy_levels((&self.venue, &self.venue_books), is_simulated, (local, side), current);
            }
            match kind {
                LevelsKind::Snapshot => {
                    parts.has_changes |= published != current;
                    let levels = current.iter();
                    levels.for_each(|&DepthLevel { price, qty }| {
                        parts.push(LevelChange { side, price, qty }, out);
                    });
                }
                LevelsKind::Update => {
                    each_change(side, published, current, |change| parts.push(change, out));
                }
            }
            std::mem::swap(published, current);
        }
        if parts.has_changes {
            parts.finish(out);
            watched.seq = self.applied;
        }
    }
}

/// Appends the published levels of one side of a book, best first.
fn copy_levels(
    (venue, venue_books): (&Venue, &VenueBooks),
    is_simulated: bool,
    (local, side): (u32, Side),
    levels: &mut Vec<DepthLevel>,
) {
    match is_simulated {
        true => levels.extend(venue.price_levels(local, side).take(LEVELS_PER_SIDE_MAX)),
        false => levels.extend_from_slice(venue_books.levels(local, side)),
    }
}

/// Emits the parts of one message.
struct LevelParts {
    to: PortMask,
    at: Timestamp,
    part: LevelChanges,
    has_changes: bool,
}

impl LevelParts {
    fn new(
        security: SecurityId,
        kind: LevelsKind,
        [prev_seq, seq]: [u64; 2],
        to: PortMask,
        at: Timestamp,
    ) -> LevelParts {
        let part = LevelChanges::new(security, kind, prev_seq, seq);
        LevelParts { to, at, part, has_changes: false }
    }

    fn push(&mut self, change: LevelChange, out: &mut Outbox) {
        if self.part.is_full() {
            out.emit_unnumbered(self.to, self.at, EventKind::Levels(self.part));
            let LevelChanges { security, kind, prev_seq, seq, .. } = self.part;
            self.part = LevelChanges::new(security, kind, prev_seq, seq);
        }
        self.part.push(change);
        self.has_changes = true;
    }

    /// Emits the last part.
    fn finish(mut self, out: &mut Outbox) {
        self.part.is_last = true;
        out.emit_unnumbered(self.to, self.at, EventKind::Levels(self.part));
    }
}
