//! Transit times to and from the simulated venue.

use super::*;
use crate::command::FeedLevel;
use crate::settings::VenueSettings;

fn delayed(delays: Delays) -> Bench {
    let venue = VenueSettings { delays, ..VenueSettings::default() };
    Bench::with(ShardSettings { venue, ..ShardSettings::default() })
}

impl Bench {
    /// Lets the next thing in transit arrive, and returns the time of its transit and its events.
    fn arrive(&mut self) -> (u64, Vec<EventKind>) {
        let sent = self.now;
        let at = self.shard.deadline().unwrap().0;
        self.now = at - 1;
        (at - sent, self.send(CommandKind::Timer))
    }
}

/// Returns the random transit times of the first order in each of two securities: to the venue and
/// back.
fn jitters(seed: u64) -> [u64; 4] {
    let jitter = 1 << 50;
    let delays = Delays { entry_jitter_ns: jitter, response_jitter_ns: jitter, ..Delays::default() };
    let venue = VenueSettings { delays, seed, ..VenueSettings::default() };
    let mut times = Vec::new();
    for security in [SIM_STOCK, SIM_OTHER] {
        let mut bench = Bench::with(ShardSettings { venue: venue.clone(), ..ShardSettings::default() });
        bench.submit(Terms { security, ..limit(Side::Buy, 1, "1", "9") });
        let (there, events) = bench.arrive();
        assert_eq!(reports(&events), [], "the answer is in transit");
        let (back, events) = bench.arrive();
        assert_eq!(reports(&events), [(ExecType::Accepted, Status::New, Qty::ZERO)]);
        times.extend([there, back]);
    }
    times.try_into().unwrap()
}

#[test]
fn each_seed_and_security_has_its_own_random_times_in_both_directions() {
    let mut times = [Vec::new(), Vec::new()];
    for [there, back, other_there, other_back] in [0, 1, 2, 3, 3 << 32].map(jitters) {
        assert!(there != back && other_there != other_back);
        times[0].extend([there, other_there]);
        times[1].extend([back, other_back]);
    }
    for mut times in times {
        times.sort_unstable();
        times.dedup();
        assert_eq!(times.len(), 10);
    }
}

#[test]
fn what_arrives_at_once_is_handled_at_once() {
    let mut bench = delayed(Delays { entry_ns: 100, ..Delays::default() });
    bench.submit(limit(Side::Buy, 1, "1", "9"));
    let (_, events) = bench.arrive();
    assert_eq!(reports(&events), [(ExecType::Accepted, Status::New, Qty::ZERO)]);
    assert_eq!(bench.shard.deadline(), None);
}

#[test]
fn requests_of_a_resting_order_take_their_time() {
    let mut bench = delayed(Delays { entry_ns: 100, ..Delays::default() });
    let (order, _) = bench.submit(limit(Side::Buy, 1, "4", "9"));
    bench.arrive();
    let events = bench.modify(order, Changes::default().with_qty(qty("3")));
    assert_eq!(reports(&events), [(ExecType::ReplacePending, Status::PendingReplace, Qty::ZERO)]);
    let (_, events) = bench.arrive();
    assert_eq!(reports(&events), [(ExecType::Replaced, Status::New, Qty::ZERO)]);
    let events = bench.cancel(order);
    assert_eq!(reports(&events), [(ExecType::CancelPending, Status::PendingCancel, Qty::ZERO)]);
    let (_, events) = bench.arrive();
    assert_eq!(reports(&events), [(ExecType::Canceled, Status::Canceled, Qty::ZERO)]);
}

/// The order ends with what it has, so its other terms do not matter.
#[test]
fn a_modification_to_the_filled_quantity_needs_no_valid_price() {
    let mut bench = delayed(Delays { entry_ns: 100, ..Delays::default() });
    let (order, _) = bench.submit(limit(Side::Buy, 1, "10", "9"));
    bench.arrive();
    bench.submit(limit(Side::Sell, 2, "4", "9"));
    bench.arrive();
    bench.modify(order, Changes::default().with_qty(qty("4")).with_limit(price("9.001")));
    let (_, events) = bench.arrive();
    assert_eq!(reports(&events), [(ExecType::Replaced, Status::Filled, qty("4"))]);
}

#[test]
fn transit_times_are_drawn_from_the_tables_of_a_simulation() {
    let table = |entries: &[u64]| Some(Arc::new(DelayTable::new(entries.to_vec())));
    let submit = |bench: &mut Bench| bench.submit(limit(Side::Buy, 1, "1", "9"));
    for (entry, response) in [(table(&[700]), table(&[90])), (table(&[700]), None), (None, table(&[90]))] {
        let expected = (entry.as_ref().map(|_| 700), response.as_ref().map(|_| 90));
        // The settings allow for the longest of them.
        let (entry_ns, response_ns) = (expected.0.unwrap_or(0), expected.1.unwrap_or(0));
        let mut bench = delayed(Delays { entry_ns, response_ns, ..Delays::default() });
        bench.shard.draw_delays(entry, response);
        submit(&mut bench);
        let times: Vec<u64> =
            std::iter::from_fn(|| bench.shard.deadline().map(|_| bench.arrive().0)).collect();
        let expected: Vec<u64> = [expected.0, expected.1].into_iter().flatten().collect();
        assert_eq!(times, expected);
    }
    let longest = Delays { entry_ns: 5, response_ns: 1_000_000, ..Delays::default() };
    let mut bench = delayed(longest);
    let entries: Vec<u64> = (1..=1_000).map(|number| number * 1_000).collect();
    bench.shard.draw_delays(None, table(&entries));
    let mut times = Vec::new();
    for _ in 0..2 {
        let (order, _) = bench.submit(limit(Side::Sell, 1, "3", "9"));
        bench.arrive();
        times.push(bench.arrive().0);
        bench.cancel(order);
        bench.arrive();
        times.push(bench.arrive().0);
    }
    times.sort_unstable();
    times.dedup();
    assert_eq!(times.len(), 4, "each is drawn: {times:?}");
}

/// One command trades with three orders, whose reports leave together.
#[test]
fn reports_of_one_instant_travel_together() {
    let mut bench = delayed(Delays { response_ns: 1_000_000, ..Delays::default() });
    for p in ["9", "10", "11"] {
        bench.submit(limit(Side::Sell, 1, "1", p));
        bench.arrive();
    }
    let entries: Vec<u64> = (1..=1_000).map(|number| number * 1_000).collect();
    bench.shard.draw_delays(None, Some(Arc::new(DelayTable::new(entries))));
    bench.submit(limit(Side::Buy, 2, "3", "11"));
    let (_, events) = bench.arrive();
    let fills = reports(&events).iter().filter(|(what, ..)| *what == ExecType::Filled).count();
    assert_eq!((fills, bench.shard.deadline()), (6, None));
}

#[test]
fn a_tick_is_published_when_the_delay_of_the_feed_is_over() {
    let mut bench = delayed(Delays { feed_ns: 100, ..Delays::default() });
    bench.send(CommandKind::Subscribe { strategy: StrategyId(0), security: SIM_STOCK, on: true });
    let ticks = |events: &[EventKind]| -> Vec<Price> {
        let last = |body: &EventKind| if let EventKind::Tick(tick) = body { Some(tick.last) } else { None };
        events.iter().filter_map(last).collect()
    };
    assert_eq!(ticks(&bench.last(SIM_STOCK, "9")), []);
    assert_eq!(ticks(&bench.last(SIM_STOCK, "10")), []);
    assert_eq!(ticks(&bench.arrive().1), [price("9")], "as it was");
}

/// The order joins the queue behind what the feed shows at its price.
#[test]
fn a_level_of_the_feed_is_ahead_of_later_orders() {
    let level = FeedLevel { side: Side::Buy, price: price("9"), size: qty("4"), at: Timestamp(1) };
    for (securities, is_ahead) in [(&[SecurityId(99)][..], false), (&[SIM_STOCK], true)] {
        let mut bench = Bench::new();
        for security in securities.iter().copied() {
            bench.send(CommandKind::Level { security, level });
        }
        bench.submit(limit(Side::Buy, 1, "1", "9"));
        let trade = Trade { price: price("9"), size: qty("3"), at: Timestamp(2) };
        let events = bench.send(CommandKind::Trade { security: SIM_STOCK, trade });
        assert_eq!(reports(&events).is_empty(), is_ahead, "{events:?}");
    }
}
