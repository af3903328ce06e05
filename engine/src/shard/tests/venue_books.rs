//! Books of outside venues: parts, complete changes, and what is not part of the history.

use super::*;
use crate::command::VenueLevels;
use crate::event::{DepthLevel, LEVELS_PER_SIDE_MAX, LevelChanges, LevelsKind};
use crate::level_book::{LevelBook, LevelsProgress};

const VIEWER: PortId = PortId(0);

fn level(side: Side, at: &str, size: &str) -> (Side, Price, Qty) {
    (side, price(at), qty(size))
}

/// Returns a part of a change.
fn part(replaces: bool, levels: &[(Side, Price, Qty)]) -> CommandKind {
    let mut part = VenueLevels::new(OUTSIDE, replaces);
    levels.iter().for_each(|&(side, price, qty)| part.push(side, price, qty));
    CommandKind::VenueLevels(part)
}

fn book(is_known: bool) -> CommandKind {
    CommandKind::VenueBook { security: OUTSIDE, is_known }
}

fn watch(what: WatchTarget) -> CommandKind {
    CommandKind::Watch { port: VIEWER, what, on: true }
}

/// A shard whose outside book is watched in both forms.
struct BookBench {
    bench: Bench,
    levels: LevelBook,
    kinds: Vec<LevelsKind>,
    /// The last ten-level picture.
    depth: [Vec<DepthLevel>; 2],
}

impl BookBench {
    fn new() -> BookBench {
        let mut books = BookBench::unwatched();
        books.watch();
        books
    }

    fn unwatched() -> BookBench {
        BookBench {
            bench: Bench::new(),
            levels: LevelBook::default(),
            kinds: Vec::new(),
            depth: Default::default(),
        }
    }

    fn watch(&mut self) {
        self.send(CommandKind::Subscribe { strategy: StrategyId(0), security: OUTSIDE, on: true });
        self.send(watch(WatchTarget::Levels(OUTSIDE)));
        self.send(watch(WatchTarget::Depth(OUTSIDE)));
    }

    /// Applies a command as a worker does, and then publishes what has changed.
    fn send(&mut self, body: CommandKind) {
        self.bench.now += 1;
        if body.is_stored() {
            let command = Command::new(CLIENT, 0, body);
            self.bench.shard.apply(Timestamp(self.bench.now), &command, &mut self.bench.out);
        } else {
            self.bench.shard.apply_unstored(&body);
        }
        self.bench.shard.emit_depths(&mut self.bench.out);
        for (_, event) in self.bench.out.waiting().to_vec() {
            if let EventKind::Levels(part) = event.body {
                self.note(&part);
            } else if let EventKind::Depth(side) = event.body {
                self.depth[side.side as usize] = side.levels().to_vec();
            }
        }
        self.bench.out.clear();
    }

    fn note(&mut self, part: &LevelChanges) {
        assert_ne!(self.levels.apply(part), LevelsProgress::Gap, "{part:?}");
        if part.is_last {
            self.kinds.push(part.kind);
        }
    }

    fn texts(&self) -> String {
        let text = |levels: &[DepthLevel]| {
            levels.iter().map(|level| format!("{}x{}", level.qty, level.price)).collect::<Vec<_>>().join(" ")
        };
        for side in Side::BOTH {
            let best = self.levels.levels(side).iter().take(10).copied().collect::<Vec<_>>();
            assert_eq!(self.depth[side as usize], best, "both forms show the same");
        }
        format!("{} | {}", text(self.levels.levels(Side::Buy)), text(self.levels.levels(Side::Sell)))
    }
}

#[test]
fn a_change_is_published_when_it_is_complete() {
    let mut books = BookBench::new();
    assert_eq!(books.kinds, [LevelsKind::Snapshot], "the book is unknown and empty");
    books.send(part(true, &[level(Side::Buy, "10", "5"), level(Side::Buy, "9", "2")]));
    books.send(part(false, &[level(Side::Sell, "11", "4")]));
    assert_eq!(books.texts(), " | ");
    books.send(book(true));
    assert_eq!(books.texts(), "5x10 2x9 | 4x11");
    assert_eq!(books.kinds, [LevelsKind::Snapshot; 2], "it begins");
    assert_eq!(books.levels.seq(), books.bench.shard.applied());
    books.send(part(false, &[level(Side::Buy, "10", "0"), level(Side::Sell, "10.5", "1")]));
    books.send(book(true));
    assert_eq!(books.texts(), "2x9 | 1x10.5 4x11");
    assert_eq!(books.kinds[2..], [LevelsKind::Update]);
    books.send(book(true));
    assert_eq!(books.kinds.len(), 3, "nothing has changed");
}

#[test]
fn a_watcher_of_a_known_book_gets_it_at_once_and_then_updates() {
    let mut books = BookBench::unwatched();
    books.send(part(true, &[level(Side::Buy, "10", "5")]));
    books.send(book(true));
    books.watch();
    assert_eq!(books.texts(), "5x10 | ");
    books.send(part(false, &[level(Side::Buy, "9", "1")]));
    books.send(book(true));
    assert_eq!(books.texts(), "5x10 1x9 | ");
    assert_eq!(books.kinds, [LevelsKind::Snapshot, LevelsKind::Update]);
}

#[test]
fn a_lost_book_is_empty_and_comes_back_as_one_snapshot() {
    let mut books = BookBench::new();
    books.send(book(false));
    assert_eq!(books.kinds.len(), 1, "it was unknown before");
    books.send(part(true, &[level(Side::Buy, "10", "5")]));
    books.send(book(true));
    books.send(part(false, &[level(Side::Buy, "9", "5")]));
    books.send(book(false));
    assert_eq!(books.texts(), " | ");
    books.send(part(true, &[level(Side::Buy, "8", "1")]));
    books.send(book(true));
    assert_eq!(books.texts(), "1x8 | ", "nothing of the time before");
    assert_eq!(books.kinds, [LevelsKind::Snapshot; 4]);
    // An adapter that begins again without a loss replaces the book.
    books.send(part(true, &[level(Side::Sell, "12", "1")]));
    books.send(book(true));
    assert_eq!((books.texts(), books.kinds.len()), (" | 1x12".to_string(), 5));
    books.send(CommandKind::Subscribe { strategy: StrategyId(0), security: OUTSIDE, on: false });
    assert!(books.levels.levels(Side::Sell).is_empty(), "no strategy is subscribed");
}

#[test]
fn the_levels_of_a_book_are_bounded_whatever_an_adapter_sends() {
    let mut books = BookBench::new();
    for number in 0..LEVELS_PER_SIDE_MAX + 20 {
        books.send(part(number == 0, &[level(Side::Sell, &(10 + number).to_string(), "1")]));
    }
    books.send(book(true));
    assert_eq!(books.levels.levels(Side::Sell).len(), LEVELS_PER_SIDE_MAX);
    assert_eq!(books.levels.levels(Side::Sell)[0].price, price("10"));
}

#[test]
fn books_of_venues_are_not_part_of_the_history() {
    let mut books = BookBench::new();
    let before = (books.bench.shard.digest(), books.bench.shard.applied());
    books.send(part(true, &[level(Side::Buy, "10", "5")]));
    assert_eq!((books.bench.shard.digest(), books.bench.shard.applied()), before);
    books.send(book(true));
    assert_eq!(books.bench.shard.applied(), before.1 + 1, "its number means this book only");
    let shard = &books.bench.shard;
    let (mut bytes, reference, settings) = (Vec::new(), shard.reference().clone(), shard.settings().clone());
    shard.save(&mut bytes);
    let loaded = Shard::load(&bytes, ShardId(0), 1, reference, settings).unwrap();
    assert_eq!(loaded.digest(), shard.digest());
}

#[test]
fn books_of_other_securities_are_ignored() {
    let mut books = BookBench::new();
    for security in [SIM_STOCK, SecurityId(999)] {
        let mut part = VenueLevels::new(security, true);
        part.push(Side::Buy, price("10"), qty("1"));
        books.send(CommandKind::VenueLevels(part));
        books.send(CommandKind::VenueBook { security, is_known: true });
        books.send(CommandKind::VenueBook { security, is_known: false });
    }
    assert_eq!((books.texts(), books.kinds.len()), (" | ".to_string(), 1));
}
