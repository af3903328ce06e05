//! Books from the stream of differences and a snapshot, by the procedure of
//! `web-socket-streams.md`, section "How to manage a local order book correctly".
//!
//! ```text
//!            events are buffered                 snapshot fits           event follows
//! unknown ──────────────────────► snapshot asked ─────────────► whole ──────────────────┐
//!    ▲                             ▲   │ it is too old            │ ▲───────────────────┘
//!    │                             └───┘                          │
//!    └──────────────── an event is missing or cannot be read ◄────┘
//! ```
//!
//! A snapshot with the id L fits if the first buffered event whose last id is above L begins at
//! L + 1 or before, and each later event begins behind the one before it. The snapshot comes over
//! the connection for orders, within the limits of the venue.
//!
//! A snapshot has a bounded number of levels. Levels behind it are not known, so a book that has
//! become too thin gets another snapshot; until then it is published as it is.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pitlane_engine::command::CommandKind;
use pitlane_engine::id::SecurityId;
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::terms::Side;
use pitlane_engine::time::{NS_PER_S, Timestamp};
use serde_json::value::RawValue;

use super::message::{DepthEventBody, DepthSnapshotBody, price, qty};
use super::session::{BinanceSession, RequestKind, cost};
use crate::venue::depth_book::DepthBook;

/// Levels of each side in a snapshot: the most that the venue gives for a weight of 25.
const SNAPSHOT_LEVELS: usize = 500;

/// Snapshots that are asked for at the same time.
const SNAPSHOTS_IN_FLIGHT_MAX: usize = 4;

/// Time to the next snapshot of a book if the last one did not fit; it doubles with each failure,
/// up to the longest.
const SNAPSHOT_INTERVAL_NS: u64 = 2 * NS_PER_S;
const SNAPSHOT_INTERVAL_NS_MAX: u64 = 60 * NS_PER_S;

/// Time for which a book waits for its first event, so that a snapshot is not older than the
/// subscription.
const FIRST_EVENT_NS_MAX: u64 = 2 * NS_PER_S;

/// Levels in the buffered events of one book. The oldest events are dropped: the snapshot that
/// comes is newer than they are.
pub const BUFFERED_LEVELS_MAX: usize = 8_192;

/// The books of all securities of a connection.
#[derive(Debug)]
pub(super) struct StreamedBooks {
    published_max: usize,
    books: BTreeMap<SecurityId, StreamedBook>,
    /// Books that need a snapshot, with the time from which it is asked for.
    wanted: BTreeSet<(Timestamp, SecurityId)>,
    in_flight: usize,
}

#[derive(Debug)]
struct StreamedBook {
    symbol: String,
    book: DepthBook,
    /// Id of the last event that the book includes; `None`: it is unknown.
    update_id: Option<u64>,
    snapshot: SnapshotState,
    /// Snapshots that did not fit since the last one that did.
    failures: u32,
    /// Events since the snapshot is wanted, oldest first.
    buffer: VecDeque<DepthEvent>,
    buffered_levels: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SnapshotState {
    None,
    Wanted(Timestamp),
    Requested,
}

/// New quantities at some prices, between two ids of the venue.
#[derive(Debug)]
struct DepthEvent {
    first: u64,
    last: u64,
    levels: Vec<(Side, Price, Qty)>,
}

/// An event or a snapshot cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unreadable;

impl StreamedBooks {
    pub(super) fn new(published_max: usize) -> StreamedBooks {
        StreamedBooks { published_max, books: BTreeMap::new(), wanted: BTreeSet::new(), in_flight: 0 }
    }

    /// Starts the book of a security whose stream is requested now.
    pub(super) fn begin(&mut self, security: SecurityId, symbol: &str, now: Timestamp) {
        let mut book = StreamedBook {
            symbol: symbol.to_string(),
            book: DepthBook::new(self.published_max),
            update_id: None,
            snapshot: SnapshotState::None,
            failures: 0,
            buffer: VecDeque::new(),
            buffered_levels: 0,
        };
        book.want_snapshot(security, now.plus(FIRST_EVENT_NS_MAX), &mut self.wanted);
        self.books.insert(security, book);
    }

    /// Forgets all books with the connection of the streams.
    pub(super) fn end(&mut self, out: &mut VecDeque<CommandKind>) {
        for (security, book) in &mut self.books {
            book.book.lose(*security, out);
        }
        self.books.clear();
        self.wanted.clear();
        self.in_flight = 0;
    }

    /// Handles an event. One that cannot be read is lost, and with it the book. Returns whether it
    /// could be read.
    pub(super) fn handle_event(
        &mut self,
        security: SecurityId,
        now: Timestamp,
        data: &RawValue,
        out: &mut VecDeque<CommandKind>,
    ) -> bool {
        let Some(book) = self.books.get_mut(&security) else { return true };
        let event = DepthEvent::read(data);
        let is_read = event.is_ok();
        match event {
            Ok(event) => book.handle_event(security, now, event, &mut self.wanted, out),
            Err(Unreadable) => book.lose(security, now, &mut self.wanted, out),
        }
        is_read
    }

    /// Returns the next security whose snapshot is due, with its symbol; it counts as asked for.
    fn take_wanted(&mut self, now: Timestamp) -> Option<(SecurityId, String)> {
        if self.in_flight >= SNAPSHOTS_IN_FLIGHT_MAX {
            return None;
        }
        let (_, security) = self.wanted.first().copied().filter(|(at, _)| *at <= now)?;
        self.wanted.pop_first();
        let book = self.books.get_mut(&security)?;
        book.snapshot = SnapshotState::Requested;
        self.in_flight += 1;
        Some((security, book.symbol.clone()))
    }

    /// Returns when a snapshot must be asked for.
    fn next_wanted(&self) -> Timestamp {
        match self.wanted.first() {
            Some((at, _)) if self.in_flight < SNAPSHOTS_IN_FLIGHT_MAX => *at,
            Some(_) | None => Timestamp::MAX,
        }
    }

    /// Handles the answer to a request for a snapshot; `None` if the venue has refused it.
    pub(super) fn handle_snapshot(
        &mut self,
        security: SecurityId,
        now: Timestamp,
        data: Option<&RawValue>,
        out: &mut VecDeque<CommandKind>,
    ) {
        let Some(book) = self.books.get_mut(&security) else { return };
        if book.snapshot != SnapshotState::Requested {
            // It belongs to an earlier connection.
            return;
        }
        self.in_flight = self.in_flight.saturating_sub(1);
        book.snapshot = SnapshotState::None;
        let body = data.and_then(|data| serde_json::from_str::<DepthSnapshotBody<'_>>(data.get()).ok());
        if !body.is_some_and(|body| book.apply_snapshot(&body)) {
            let delay_ns = SNAPSHOT_INTERVAL_NS.saturating_mul(1 << book.failures.min(5));
            book.failures = book.failures.saturating_add(1);
            let at = now.plus(delay_ns.min(SNAPSHOT_INTERVAL_NS_MAX));
            return book.want_snapshot(security, at, &mut self.wanted);
        }
        book.failures = 0;
        book.publish(security, now, &mut self.wanted, out);
    }

    /// Handles the end of the connection over which snapshots come.
    pub(super) fn forget_requests(&mut self, now: Timestamp) {
        self.in_flight = 0;
        for (security, book) in &mut self.books {
            if book.snapshot == SnapshotState::Requested {
                book.want_snapshot(*security, now, &mut self.wanted);
            }
        }
    }

    /// Delays the snapshots that are due and not allowed yet.
    fn delay_wanted(&mut self, now: Timestamp) {
        while let Some((_, security)) = self.wanted.first().copied().filter(|(at, _)| *at <= now) {
            self.wanted.pop_first();
            let Some(book) = self.books.get_mut(&security) else { continue };
            book.want_snapshot(security, now.plus(SNAPSHOT_INTERVAL_NS), &mut self.wanted);
        }
    }
}

impl StreamedBook {
    fn want_snapshot(
        &mut self,
        security: SecurityId,
        at: Timestamp,
        wanted: &mut BTreeSet<(Timestamp, SecurityId)>,
    ) {
        if let SnapshotState::Wanted(before) = self.snapshot {
            wanted.remove(&(before, security));
        }
        self.snapshot = SnapshotState::Wanted(at);
        wanted.insert((at, security));
    }

    fn handle_event(
        &mut self,
        security: SecurityId,
        now: Timestamp,
        event: DepthEvent,
        wanted: &mut BTreeSet<(Timestamp, SecurityId)>,
        out: &mut VecDeque<CommandKind>,
    ) {
        if let Some(update_id) = self.update_id {
            if event.last <= update_id {
                return;
            }
            if event.first > update_id.saturating_add(1) {
                // An event is missing.
                self.lose(security, now, wanted, out);
            } else {
                self.apply(&event);
            }
        } else if let SnapshotState::Wanted(at) = self.snapshot
            && self.buffer.is_empty()
        {
            // The subscription works, so the snapshot need not wait for it any longer.
            self.want_snapshot(security, at.min(now), wanted);
        }
        if self.snapshot != SnapshotState::None {
            self.buffer(event);
        }
        if self.update_id.is_some() {
            self.publish(security, now, wanted, out);
        }
    }

    fn buffer(&mut self, event: DepthEvent) {
        self.buffered_levels += event.levels.len();
        self.buffer.push_back(event);
        while self.buffered_levels > BUFFERED_LEVELS_MAX || self.buffer.len() > BUFFERED_LEVELS_MAX {
            let Some(oldest) = self.buffer.pop_front() else { break };
            self.buffered_levels -= oldest.levels.len();
        }
    }

    fn apply(&mut self, event: &DepthEvent) {
        for &(side, price, qty) in &event.levels {
            self.book.set(side, price, qty);
        }
        self.update_id = Some(event.last);
    }

    /// Makes the book from a snapshot and the buffered events behind it. Returns false if the
    /// snapshot cannot be read or is too old.
    fn apply_snapshot(&mut self, body: &DepthSnapshotBody<'_>) -> bool {
        let Ok(levels) = read_levels(&body.bids, &body.asks) else { return false };
        let mut last = body.last_update_id;
        for event in self.buffer.iter().filter(|event| event.last > body.last_update_id) {
            if event.first > last.saturating_add(1) {
                return false;
            }
            last = last.max(event.last);
        }
        if self.update_id.is_some_and(|update_id| update_id > last) {
            return false;
        }
        self.book.clear();
        levels.iter().for_each(|&(side, price, qty)| self.book.set(side, price, qty));
        self.book.set_snapshot_limit(SNAPSHOT_LEVELS);
        self.update_id = Some(body.last_update_id);
        self.buffered_levels = 0;
        for event in std::mem::take(&mut self.buffer) {
            if event.last > body.last_update_id {
                self.apply(&event);
            }
        }
        true
    }

    /// Passes on what has changed, and asks for more levels if the book is thin.
    fn publish(
        &mut self,
        security: SecurityId,
        now: Timestamp,
        wanted: &mut BTreeSet<(Timestamp, SecurityId)>,
        out: &mut VecDeque<CommandKind>,
    ) {
        self.book.publish(security, out);
        if self.book.is_thin() && self.snapshot == SnapshotState::None {
            self.want_snapshot(security, now.plus(SNAPSHOT_INTERVAL_NS), wanted);
        }
    }

    /// Forgets the book, which starts again.
    fn lose(
        &mut self,
        security: SecurityId,
        now: Timestamp,
        wanted: &mut BTreeSet<(Timestamp, SecurityId)>,
        out: &mut VecDeque<CommandKind>,
    ) {
        self.book.lose(security, out);
        self.update_id = None;
        self.buffer.clear();
        self.buffered_levels = 0;
        if self.snapshot == SnapshotState::None {
            self.want_snapshot(security, now, wanted);
        }
    }
}

impl DepthEvent {
    fn read(data: &RawValue) -> Result<DepthEvent, Unreadable> {
        let body: DepthEventBody<'_> = serde_json::from_str(data.get()).map_err(|_| Unreadable)?;
        if body.first > body.last {
            return Err(Unreadable);
        }
        let levels = read_levels(&body.bids, &body.asks)?;
        Ok(DepthEvent { first: body.first, last: body.last, levels })
    }
}

/// Reads the levels of both sides.
fn read_levels(bids: &[(&str, &str)], asks: &[(&str, &str)]) -> Result<Vec<(Side, Price, Qty)>, Unreadable> {
    let sides = [(Side::Buy, bids), (Side::Sell, asks)].into_iter();
    let levels = sides.flat_map(|(side, levels)| levels.iter().map(move |level| (side, level)));
    levels
        .map(|(side, level)| {
            let price = price(level.0).filter(|price| price.is_positive())?;
            Some((side, price, qty(level.1)?))
        })
        .collect::<Option<_>>()
        .ok_or(Unreadable)
}

impl BinanceSession {
    /// Asks for the snapshots that are due, as far as the limits of the venue allow.
    pub(super) fn send_snapshot_requests(&mut self, now: Timestamp) {
        if !self.is_ready() {
            return;
        }
        loop {
            let may_send =
                self.has_room() && self.limits.allows_snapshot(self.venue_time(now), cost::SNAPSHOT);
            let Some(books) = self.market_stream.as_mut().and_then(|stream| stream.books_mut()) else {
                return;
            };
            if !may_send {
                return books.delay_wanted(now);
            }
            let Some((security, symbol)) = books.take_wanted(now) else { return };
            let kind = RequestKind::Snapshot(security);
            self.send_with(now, kind, cost::SNAPSHOT, "depth", false, |draft| {
                draft.number("limit", SNAPSHOT_LEVELS as u64);
                draft.text("symbol", &symbol);
            });
        }
    }

    pub(super) fn snapshot_deadline(&self) -> Timestamp {
        let books = self.market_stream.as_ref().and_then(|stream| stream.books());
        books.map_or(Timestamp::MAX, StreamedBooks::next_wanted)
    }

    /// Handles the answer to a request for a snapshot.
    pub(super) fn handle_snapshot(&mut self, now: Timestamp, security: SecurityId, data: Option<&RawValue>) {
        if let Some(stream) = &mut self.market_stream {
            stream.handle_snapshot(now, security, data);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECURITY: SecurityId = SecurityId(1);
    const NOW: Timestamp = Timestamp(1_000 * NS_PER_S);

    /// Returns the books of so many securities, whose streams were requested now.
    fn begun(count: u32) -> StreamedBooks {
        let mut books = StreamedBooks::new(10);
        (1..=count).for_each(|id| books.begin(SecurityId(id), &format!("S{id}"), NOW));
        books
    }

    /// Returns an event that sets these bids.
    fn event(ids: [u64; 2], bids: &[(i64, i64)]) -> DepthEvent {
        let level = |&(price, qty): &(i64, i64)| (Side::Buy, Price::from_raw(price), Qty::from_raw(qty));
        DepthEvent { first: ids[0], last: ids[1], levels: bids.iter().map(level).collect() }
    }

    #[test]
    fn some_snapshots_are_asked_for_at_a_time_and_again_after_a_disconnect() {
        const COUNT: usize = SNAPSHOTS_IN_FLIGHT_MAX + 2;
        let mut books = begun(COUNT as u32);
        let due = NOW.plus(FIRST_EVENT_NS_MAX);
        assert_eq!(books.next_wanted(), due);
        assert_eq!(books.take_wanted(Timestamp(due.0 - 1)), None, "it is too early");
        for round in 0..2 {
            for id in 1..=SNAPSHOTS_IN_FLIGHT_MAX as u32 {
                let wanted = books.take_wanted(due);
                assert_eq!(wanted, Some((SecurityId(id), format!("S{id}"))), "round {round}");
            }
            assert_eq!((books.take_wanted(due), books.next_wanted()), (None, Timestamp::MAX));
            // Those that were asked for are wanted before the others now.
            books.forget_requests(NOW);
            assert_eq!((books.next_wanted(), books.wanted.len()), (NOW, COUNT));
        }
    }

    #[test]
    fn the_memory_for_events_before_a_snapshot_is_bounded() {
        let buffered = |events: Vec<DepthEvent>| {
            let mut books = begun(1);
            let book = books.books.get_mut(&SECURITY).expect("it has begun");
            events.into_iter().for_each(|event| book.buffer(event));
            (book.buffer.len(), book.buffered_levels)
        };
        let of = |levels: usize| event([1, 1], &vec![(1, 1); levels]);
        assert_eq!(buffered(vec![of(BUFFERED_LEVELS_MAX)]), (1, BUFFERED_LEVELS_MAX));
        assert_eq!(buffered(vec![of(BUFFERED_LEVELS_MAX - 1), of(3)]), (1, 3), "the oldest is dropped");
        let empty = |count: usize| buffered((0..count).map(|_| of(0)).collect()).0;
        assert_eq!(empty(BUFFERED_LEVELS_MAX), BUFFERED_LEVELS_MAX);
        assert_eq!(empty(BUFFERED_LEVELS_MAX + 5), BUFFERED_LEVELS_MAX, "events without levels too");
    }

    /// Returns the bids after a snapshot with the id 10 and one bid, 5 at 100, if it fits.
    fn after_snapshot(known: Option<u64>, events: Vec<DepthEvent>) -> Option<Vec<(i64, i64)>> {
        let mut books = begun(1);
        let book = books.books.get_mut(&SECURITY).expect("it has begun");
        book.update_id = known;
        events.into_iter().for_each(|event| book.buffer(event));
        let text = r#"{"lastUpdateId":10,"bids":[["0.00000100","0.00000005"]],"asks":[]}"#;
        let fits = book.apply_snapshot(&serde_json::from_str(text).expect("a snapshot"));
        let levels = book.book.levels(Side::Buy).map(|level| (level.price.raw(), level.qty.raw()));
        fits.then(|| levels.collect())
    }

    #[test]
    fn a_snapshot_fits_if_no_event_behind_it_is_missing() {
        let old = || event([9, 10], &[(100, 3)]);
        let next = || event([11, 12], &[(99, 1)]);
        let after = || event([13, 13], &[(100, 2)]);
        assert_eq!(after_snapshot(None, vec![]), Some(vec![(100, 5)]));
        assert_eq!(after_snapshot(None, vec![old()]), Some(vec![(100, 5)]), "it is part of the snapshot");
        assert_eq!(after_snapshot(None, vec![old(), next()]), Some(vec![(100, 5), (99, 1)]));
        assert_eq!(after_snapshot(None, vec![next(), after()]), Some(vec![(100, 2), (99, 1)]));
        assert_eq!(after_snapshot(None, vec![after()]), None, "an event is missing");
        assert_eq!(after_snapshot(None, vec![next(), event([14, 15], &[])]), None);
        let overlapping = event([8, 11], &[(98, 4)]);
        assert_eq!(after_snapshot(None, vec![overlapping]), Some(vec![(100, 5), (98, 4)]));
        // A book that is known gets more levels, but never goes back.
        assert_eq!(after_snapshot(Some(9), vec![]), Some(vec![(100, 5)]));
        assert_eq!(after_snapshot(Some(10), vec![]), Some(vec![(100, 5)]));
        assert_eq!(after_snapshot(Some(11), vec![]), None);
    }
}
