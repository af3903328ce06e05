//! Price levels: snapshots and updates, and their recipients. The twin in `tests/sim.rs` checks
//! that they are right for any orders and quotes.

use super::*;
use crate::event::{DepthLevel, LEVEL_EVENTS_MAX, LEVELS_PER_SIDE_MAX, LevelChanges, LevelsKind};
use crate::level_book::{LevelBook, LevelsProgress};

const VIEWER: PortId = PortId(0);
const OTHER: PortId = PortId(1);

fn watch(port: PortId, on: bool) -> CommandKind {
    CommandKind::Watch { port, what: WatchTarget::Levels(SIM_STOCK), on }
}

fn opened() -> Bench {
    let mut bench = Bench::new();
    bench.send(CommandKind::Subscribe { strategy: StrategyId(0), security: SIM_STOCK, on: true });
    bench
}

/// Returns the parts that one port receives.
fn parts_of(bench: &mut Bench, port: PortId) -> Vec<LevelChanges> {
    let events = bench.out.waiting().iter().filter(|(to, _)| to.contains(port));
    events
        .filter_map(|(_, event)| if let EventKind::Levels(part) = event.body { Some(part) } else { None })
        .collect()
}

impl Bench {
    /// Applies a command and returns the parts for one port.
    fn levels_after(&mut self, body: CommandKind, port: PortId) -> Vec<LevelChanges> {
        self.out.clear();
        self.now += 1;
        self.shard.apply(Timestamp(self.now), &Command::new(CLIENT, 0, body), &mut self.out);
        let parts = parts_of(self, port);
        self.out.clear();
        parts
    }

    /// Publishes the books that have changed.
    fn published_levels(&mut self, port: PortId) -> Vec<LevelChanges> {
        self.out.clear();
        self.shard.emit_depths(&mut self.out);
        let parts = parts_of(self, port);
        self.out.clear();
        parts
    }
}

fn apply(book: &mut LevelBook, parts: &[LevelChanges]) {
    for part in parts {
        assert_ne!(book.apply(part), LevelsProgress::Gap, "{part:?}");
    }
    assert!(book.is_whole());
}

fn texts(levels: &[DepthLevel]) -> Vec<String> {
    levels.iter().map(|level| format!("{}x{}", level.qty, level.price)).collect()
}

#[test]
fn a_watcher_gets_a_snapshot_and_then_what_changes() {
    let mut bench = opened();
    bench.submit(limit(Side::Buy, 1, "5", "10"));
    let mut book = LevelBook::default();
    apply(&mut book, &bench.levels_after(watch(VIEWER, true), VIEWER));
    assert_eq!(texts(book.levels(Side::Buy)), ["5x10"]);
    assert_eq!(book.seq(), bench.shard.applied());
    let (order, _) = bench.submit(limit(Side::Buy, 1, "3", "9.99"));
    bench.submit(limit(Side::Sell, 2, "4", "11"));
    let update = bench.published_levels(VIEWER);
    assert_eq!((update.len(), update[0].kind, update[0].is_last), (1, LevelsKind::Update, true));
    assert_eq!((update[0].prev_seq, update[0].seq), (book.seq(), bench.shard.applied()));
    apply(&mut book, &update);
    assert_eq!(texts(book.levels(Side::Buy)), ["5x10", "3x9.99"]);
    assert_eq!(texts(book.levels(Side::Sell)), ["4x11"]);
    bench.cancel(order);
    bench.submit(limit(Side::Buy, 1, "3", "9.99"));
    assert!(bench.published_levels(VIEWER).is_empty(), "it looks as before");
    bench.submit(limit(Side::Sell, 2, "7", "9.99"));
    apply(&mut book, &bench.published_levels(VIEWER));
    assert_eq!(texts(book.levels(Side::Buy)), ["1x9.99"]);
    bench.levels_after(watch(VIEWER, false), VIEWER);
    bench.submit(limit(Side::Buy, 1, "3", "9"));
    assert!(!bench.shard.has_depths(), "no port watches");
}

#[test]
fn a_second_watcher_gets_its_own_snapshot_of_what_is_published() {
    let mut bench = opened();
    let mut books = [LevelBook::default(), LevelBook::default()];
    apply(&mut books[0], &bench.levels_after(watch(VIEWER, true), VIEWER));
    bench.submit(limit(Side::Buy, 1, "5", "10"));
    let snapshot = bench.levels_after(watch(OTHER, true), OTHER);
    assert!(snapshot[0].is_empty(), "the order is not published yet");
    apply(&mut books[1], &snapshot);
    bench.shard.emit_depths(&mut bench.out);
    for (book, port) in books.iter_mut().zip([VIEWER, OTHER]) {
        apply(book, &parts_of(&mut bench, port));
    }
    assert_eq!(books[0], books[1]);
    assert_eq!(texts(books[1].levels(Side::Buy)), ["5x10"]);
    bench.out.clear();
    assert_eq!(bench.levels_after(watch(OTHER, true), OTHER).len(), 1, "who asks again gets it again");
}

#[test]
fn a_book_that_is_not_published_is_empty() {
    let mut bench = opened();
    bench.submit(limit(Side::Buy, 1, "5", "10"));
    let mut book = LevelBook::default();
    apply(&mut book, &bench.levels_after(watch(VIEWER, true), VIEWER));
    bench.send(CommandKind::Subscribe { strategy: StrategyId(0), security: SIM_STOCK, on: false });
    apply(&mut book, &bench.published_levels(VIEWER));
    assert!(book.levels(Side::Buy).is_empty());
    let unknown = CommandKind::Watch { port: VIEWER, what: WatchTarget::Levels(SecurityId(999)), on: true };
    assert_eq!(reason(&bench.send(unknown)), Reason::UnknownSecurity);
}

#[test]
fn the_best_levels_are_published_and_worse_ones_follow_them() {
    let mut bench = opened();
    let cents = |number: usize| format!("{}.{:02}", number / 100, number % 100);
    for number in 0..LEVELS_PER_SIDE_MAX + 5 {
        bench.submit(limit(Side::Buy, 1, "1", &cents(1_000 - number)));
        bench.submit(limit(Side::Sell, 2, "1", &cents(1_001 + number)));
    }
    let snapshot = bench.levels_after(watch(VIEWER, true), VIEWER);
    assert!(snapshot.len() <= LEVEL_EVENTS_MAX / 2);
    let mut book = LevelBook::default();
    apply(&mut book, &snapshot);
    assert_eq!(Side::BOTH.map(|side| book.levels(side).len()), [LEVELS_PER_SIDE_MAX; 2]);
    bench.submit(limit(Side::Buy, 1, "3", "10.02"));
    apply(&mut book, &bench.published_levels(VIEWER));
    assert_eq!(texts(&book.levels(Side::Sell)[..1]), ["1x10.03"], "two were taken");
    let worst = book.levels(Side::Sell).last().map(|level| level.price);
    assert_eq!(worst, Some(price(&cents(1_002 + LEVELS_PER_SIDE_MAX))), "and two have moved up");
    assert_eq!(Side::BOTH.map(|side| book.levels(side).len()), [LEVELS_PER_SIDE_MAX; 2]);
}
