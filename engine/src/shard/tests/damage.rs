//! Damaged states: either they are refused, or the shard continues without a panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::recovery::outside_order;
use super::*;
use crate::command::{ExecRef, FeedLevel, VenueState};
use crate::rng::Rng;
use crate::settings::{Delays, VenueSettings};
use crate::time::NS_PER_DAY;

/// Damaged states of each sound one: all of them in less than two seconds.
const CASES: usize = 1_500;

/// A shard with everything that a state can have, and its outside order.
fn rich() -> Bench {
    let (mut bench, _) = outside_order(true, true);
    // Positions in all securities, with a reduce-only order and a waiting close.
    for (side, account) in [(Side::Sell, 1), (Side::Buy, 2)] {
        bench.submit(limit(side, account, "4", "10"));
    }
    let (bought, _) = bench.submit(outside("10"));
    bench.report(bought, VenueReport::Filled { exec: ExecRef(21), qty: qty("10"), price: price("9") });
    let id = bench.id();
    let close = |id, q| CommandKind::Close {
        id,
        strategy: StrategyId(0),
        account: AccountId(3),
        security: OUTSIDE,
        qty: qty(q),
    };
    bench.send(close(id, "3"));
    let fee = Movement {
        kind: MovementKind::Credit,
        strategy: StrategyId(0),
        account: AccountId(1),
        security: None,
        qty: Qty::ZERO,
        price: price("1000"),
        commission: Money::ZERO,
        currency: usd(),
        uuid: Uuid(77),
    };
    bench.send(CommandKind::Transaction(fee));
    let quote =
        Quote { bid: price("9"), bid_size: qty("5"), ask: price("12"), ask_size: qty("7"), at: Timestamp(3) };
    bench.send(CommandKind::Quote { security: SIM_STOCK, quote });
    for (side, p) in [(Side::Sell, "12"), (Side::Sell, "13"), (Side::Sell, "14")] {
        let level = FeedLevel { side, price: price(p), size: qty("6"), at: Timestamp(3) };
        bench.send(CommandKind::Level { security: SIM_STOCK, level });
    }
    let credit = RiskLimits { credit: money("100000"), credit_currency: usd(), ..RiskLimits::default() };
    bench.send(CommandKind::Limits { scope: Scope::Account(AccountId(2)), limits: credit });
    bench.send(CommandKind::TradingDay { day: Day(3) });
    let (asked, _) = bench.submit(outside("6"));
    bench.report(asked, VenueReport::Accepted);
    bench.modify(asked, Changes::default().with_qty(qty("8")).with_limit(price("11")));
    bench.cancel(asked);
    bench
}

/// A shard at whose simulated venue everything takes time.
fn delayed() -> Bench {
    let delays = Delays { entry_ns: 100, response_ns: 1_000, feed_ns: 50, ..Delays::default() };
    let venue = VenueSettings { delays, ..VenueSettings::default() };
    let mut bench = Bench::with(ShardSettings { venue, ..ShardSettings::default() });
    let (first, _) = bench.submit(limit(Side::Sell, 1, "4", "10"));
    let (second, _) = bench.submit(limit(Side::Sell, 1, "4", "11"));
    bench.now += 5_000;
    bench.send(CommandKind::Timer);
    bench.now += 5_000;
    bench.send(CommandKind::Timer);
    bench.modify(first, Changes::default().with_qty(qty("6")).with_limit(price("9")));
    bench.cancel(second);
    bench.now += 200;
    bench.send(CommandKind::Timer);
    bench.submit(limit(Side::Buy, 2, "3", "10"));
    let gtd = Terms { tif: Tif::Gtd, tif_date: Timestamp(90_000), ..limit(Side::Buy, 2, "1", "8") };
    bench.submit(gtd);
    bench.send(CommandKind::Trade {
        security: SIM_OTHER,
        trade: Trade { price: price("10"), size: qty("1"), at: Timestamp(1) },
    });
    bench
}

/// Parts of a state that commands use.
#[derive(Clone, Copy, Debug)]
enum Part {
    Prices,
    NewOrders,
    Reports,
    Modifications,
    Timers,
    Sessions,
    Recounts,
    Closes,
    Kill,
    Days,
    Expiry,
    Restart,
}

const ALL_PARTS: [Part; 12] = [
    Part::Prices,
    Part::NewOrders,
    Part::Reports,
    Part::Modifications,
    Part::Timers,
    Part::Sessions,
    Part::Recounts,
    Part::Closes,
    Part::Kill,
    Part::Days,
    Part::Expiry,
    Part::Restart,
];

impl Bench {
    fn continue_with(&mut self, part: Part) {
        let slots = 0..self.shard.orders.len();
        let orders: Vec<OrderHandle> = slots.map(|slot| self.shard.orders.handle(slot)).collect();
        match part {
            Part::Prices => {
                for security in [SIM_STOCK, SIM_OTHER, OUTSIDE] {
                    for p in ["30", "6"] {
                        let (bid, size, at) = (price(p), qty("50"), Timestamp(self.now));
                        let ask = bid.checked_add(price("0.01")).unwrap();
                        let quote = Quote { bid, bid_size: size, ask, ask_size: size, at };
                        let trade = Trade { price: bid, size: qty("9"), at };
                        self.send(CommandKind::Tick { security, quote, trade });
                    }
                }
            }
            Part::NewOrders => {
                for (side, p) in [(Side::Buy, "15"), (Side::Sell, "5")] {
                    for terms in [limit(side, 2, "20", p), Terms { side, ..outside("2") }] {
                        let id = self.id();
                        self.send(CommandKind::Submit { id, terms });
                    }
                }
            }
            Part::Reports => {
                (1_000..).zip(orders).for_each(|(exec, order)| self.report_everything(order, ExecRef(exec)))
            }
            Part::Modifications => {
                for order in orders {
                    self.modify(order, Changes::default().with_qty(qty("9")).with_limit(price("9.5")));
                    self.modify(order, Changes::default().with_qty(qty("1")));
                }
            }
            Part::Timers => {
                for _ in 0..2 {
                    self.now += 2_000_000;
                    self.send(CommandKind::Timer);
                }
            }
            Part::Sessions => {
                use TradingSession::{Closed, ClosingAuction, Continuous, OpeningAuction};
                for session in [ClosingAuction, Closed, OpeningAuction, Continuous] {
                    for exchange in [ExchangeId(1), ExchangeId(2)] {
                        self.send(CommandKind::Session { exchange, session });
                    }
                }
            }
            Part::Recounts => {
                self.send(CommandKind::ResetPositions);
                self.send(CommandKind::ResetCash);
                self.send(CommandKind::Snapshot { port: PortId(0) });
                for connected in [false, true] {
                    self.send(CommandKind::Adapter { adapter: ADAPTER, connected });
                }
            }
            Part::Closes => {
                for (account, security) in [(AccountId(1), SIM_STOCK), (AccountId(3), OUTSIDE)] {
                    let (id, strategy) = (self.id(), StrategyId(0));
                    self.send(CommandKind::Close { id, strategy, account, security, qty: Qty::ZERO });
                }
                orders.into_iter().for_each(|order| _ = self.cancel(order));
            }
            Part::Kill => {
                for on in [true, false] {
                    self.send(CommandKind::Kill { scope: Scope::Global, on });
                }
            }
            Part::Days => {
                self.now += 9 * NS_PER_DAY;
                for day in [4, 5, 20] {
                    self.send(CommandKind::TradingDay { day: Day(day) });
                }
            }
            Part::Expiry => {
                for security in [SIM_STOCK, OUTSIDE] {
                    self.send(CommandKind::Expire { security, price: price("7") });
                }
            }
            Part::Restart => _ = self.begin(self.shard.settings().clone()),
        }
    }

    /// Sends every report of an outside venue about an order, with an execution of this id.
    fn report_everything(&mut self, order: OrderHandle, exec: ExecRef) {
        let one = qty("1");
        self.report(order, VenueReport::Accepted);
        self.report(order, VenueReport::Filled { exec, qty: one, price: price("10") });
        self.report(order, VenueReport::Busted { exec });
        for exec in [5, 9, 21].map(ExecRef) {
            self.report(order, VenueReport::Corrected { exec, qty: one, price: price("8") });
            self.report(order, VenueReport::Busted { exec });
        }
        self.report(order, VenueReport::Replaced);
        self.report(order, VenueReport::ReplaceRefused(Reason::VenueRejected));
        self.report(order, VenueReport::CancelRefused(Reason::VenueRejected));
        self.report(order, VenueReport::Canceled(Reason::Requested));
        let state = VenueState::Open;
        self.report(order, VenueReport::Standing { cum: qty("3"), average: price("9"), state });
    }
}

/// Returns the bytes with one number changed, of one, four or eight bytes, at random.
fn damaged(bytes: &[u8], rng: &mut Rng) -> (String, Vec<u8>) {
    let at = rng.index(bytes.len() - 8);
    let (width, value) = match rng.index(10) {
        0 => (1, u64::from(bytes[at] ^ 1)),
        1 => (1, u64::from(bytes[at] ^ 0x80)),
        2 => (1, u64::from(bytes[at].wrapping_add(7))),
        3 => (4, 0),
        4 => (4, u64::from(u32::MAX)),
        5 => (8, 0),
        6 => (8, 1),
        7 => (8, i64::MAX as u64),
        8 => (8, i64::MIN as u64),
        _ => (8, u64::MAX),
    };
    let mut changed = bytes.to_vec();
    changed[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
    (format!("{width} bytes at {at} are {value}"), changed)
}

#[test]
fn a_damaged_state_is_refused_or_continues_without_a_panic() {
    let mut rng = Rng::new(1);
    let (mut refused, mut continued) = (0, 0);
    for (name, sound) in [("rich", rich()), ("delayed", delayed())] {
        let bytes = sound.snapshot_bytes();
        for _ in 0..CASES {
            let (what, changed) = damaged(&bytes, &mut rng);
            let Ok(shard) = sound.load(&changed) else {
                refused += 1;
                continue;
            };
            continued += 1;
            let mut parts = ALL_PARTS;
            (1..parts.len()).rev().for_each(|at| parts.swap(at, rng.index(at + 1)));
            let mut bench = Bench { shard, out: Outbox::new(0), now: sound.now, ids: 10_000 };
            let mut run = || parts.iter().for_each(|part| bench.continue_with(*part));
            assert!(catch_unwind(AssertUnwindSafe(&mut run)).is_ok(), "{name}: {what}, then {parts:?}");
        }
    }
    assert!(refused > CASES / 4 && continued > CASES / 4, "{refused} refused, {continued} continued");
}
