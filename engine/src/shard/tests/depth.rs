//! Depth: recipients and times of its publication. The twin in `tests/sim.rs` checks that it is
//! right for any orders and quotes.

use super::*;
use crate::event::Depth;
use crate::mesh::{Depths as Lanes, PortClass, mesh};
use crate::worker::Worker;

const VIEWER: PortId = PortId(0);

fn watch(security: SecurityId, on: bool) -> CommandKind {
    CommandKind::Watch { port: VIEWER, what: WatchTarget::Depth(security), on }
}

fn subscribe(security: SecurityId, on: bool) -> CommandKind {
    CommandKind::Subscribe { strategy: StrategyId(0), security, on }
}

/// Returns bids and asks of the depth events, as text.
fn shown(events: &[EventKind]) -> Vec<String> {
    let side = |depth: &Depth| {
        let levels = depth.levels().iter().map(|level| format!("{}x{}", level.qty, level.price));
        format!("{:?} {}", depth.side, levels.collect::<Vec<_>>().join(" ")).trim_end().to_string()
    };
    events
        .iter()
        .filter_map(|body| if let EventKind::Depth(depth) = body { Some(side(depth)) } else { None })
        .collect()
}

impl Bench {
    /// Returns the books that have changed.
    fn depths(&mut self) -> Vec<String> {
        let seq = self.out.seq();
        self.shard.emit_depths(&mut self.out);
        let events: Vec<EventKind> = self.out.waiting().iter().map(|(_, event)| event.body).collect();
        self.out.clear();
        assert_eq!(self.out.seq(), seq, "a picture has no number of its own");
        assert!(!self.shard.has_depths());
        shown(&events)
    }
}

#[test]
fn a_book_is_shown_when_it_has_changed_and_only_then() {
    let mut bench = Bench::new();
    bench.send(subscribe(SIM_STOCK, true));
    bench.submit(limit(Side::Buy, 1, "5", "10"));
    assert!(!bench.shard.has_depths(), "no port watches");
    assert_eq!(
        shown(&bench.send(watch(SIM_STOCK, true))),
        ["Buy 5x10", "Sell"],
        "who begins sees it as it is"
    );
    let (order, _) = bench.submit(limit(Side::Buy, 1, "3", "10"));
    bench.submit(limit(Side::Sell, 2, "4", "11"));
    assert_eq!(bench.depths(), ["Buy 8x10", "Sell 4x11"], "once for both");
    assert_eq!(bench.depths(), [""; 0]);
    bench.cancel(order);
    bench.submit(limit(Side::Buy, 1, "3", "10"));
    assert_eq!(bench.depths(), [""; 0], "it looks as before");
    bench.submit(limit(Side::Sell, 2, "8", "10"));
    assert_eq!(bench.depths(), ["Buy", "Sell 4x11"], "what has traded is gone");
    bench.send(watch(SIM_STOCK, false));
    bench.submit(limit(Side::Buy, 1, "3", "9"));
    assert!(!bench.shard.has_depths());
}

#[test]
fn depth_contains_the_feed_and_the_clients() {
    let mut bench = Bench::new();
    bench.send(subscribe(SIM_STOCK, true));
    bench.send(watch(SIM_STOCK, true));
    bench.submit(limit(Side::Buy, 1, "3", "9.98"));
    let quote = Quote {
        bid: price("9.99"),
        bid_size: qty("2"),
        ask: price("10"),
        ask_size: qty("1"),
        at: Timestamp(7),
    };
    bench.send(CommandKind::Quote { security: SIM_STOCK, quote });
    let [bids, asks] = bench.depths().try_into().unwrap();
    // Each further portion of the quote is a tick away; the client is also at the second.
    assert!(bids.starts_with("Buy 2x9.99 5x9.98 2x9.97"), "{bids}");
    assert!(asks.starts_with("Sell 1x10 1x10.01"), "{asks}");
    assert!(asks.split(' ').count() <= 11, "{asks}");
}

#[test]
fn depth_without_subscribers_and_of_outside_venues_is_not_published() {
    let mut bench = Bench::new();
    assert_eq!(shown(&bench.send(watch(SIM_STOCK, true))), [""; 0]);
    bench.submit(limit(Side::Buy, 1, "5", "10"));
    assert_eq!(bench.depths(), [""; 0]);
    bench.send(subscribe(SIM_STOCK, true));
    assert_eq!(bench.depths(), ["Buy 5x10", "Sell"], "the first subscriber opens it");
    bench.send(subscribe(SIM_STOCK, false));
    assert_eq!(bench.depths(), [""; 0]);
    bench.send(subscribe(OUTSIDE, true));
    assert_eq!(shown(&bench.send(watch(OUTSIDE, true))), [""; 0]);
    bench.submit(outside("1"));
    assert_eq!(bench.depths(), [""; 0]);
    assert_eq!(reason(&bench.send(watch(SecurityId(999), true))), Reason::UnknownSecurity);
}

#[test]
fn a_worker_publishes_a_book_once_per_poll() {
    let (mut ports, mut ends) = mesh(&[PortClass::Client], 1, Lanes::default());
    let mut worker = Worker::new(Bench::new().shard, ends.remove(0));
    let source = Source { port: VIEWER, ..CLIENT };
    let mut token = 0;
    let mut send = |body| {
        token += 1;
        ports[0].send(ShardId(0), Command::new(source, token, body)).unwrap();
    };
    send(subscribe(SIM_STOCK, true));
    send(watch(SIM_STOCK, true));
    for number in 1..=20 {
        let id = IntId::numbered(b'o', number);
        send(CommandKind::Submit { id, terms: limit(Side::Buy, 1, "1", "10") });
    }
    let work = worker.poll(Timestamp(100)) as u64;
    let counts = worker.counts();
    assert_eq!(work, counts.commands + counts.resumed + counts.events + 1, "one step for the books");
    assert!(!worker.has_work());
    let events: Vec<EventKind> =
        std::iter::from_fn(|| ports[0].poll_event()).map(|(_, event)| event.body).collect();
    assert_eq!(shown(&events), ["Buy", "Sell", "Buy 20x10", "Sell"]);
    assert!(matches!(events.last(), Some(EventKind::Depth(_))), "after all that led to it");
    assert_eq!(worker.poll(Timestamp(101)), 0);
}
