//! The scenarios, and the generator that turns one into a workload: seeded, so that the same
//! command produces the same file.
//!
//! The naive matcher runs alongside. It knows which orders are open, and its outcome is the
//! expected one.

use pitlane_engine::index::index_usize;

use crate::convert::workload_u32;
use crate::naive::NaiveMatcher;
use crate::rng::{Xoshiro256, Zipf};
use crate::workload::{Matcher, PRICE_MAX, RecordKind, Workload, WorkloadRecord, WorkloadSide};

#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    pub name: &'static str,
    pub securities: u32,
    /// Open orders that the pre-fill creates and the flow maintains.
    pub open: u32,
    pub ops: u32,
    pub seed: u64,
    /// Fractions of the operations; the rest is NEW and CXL, in the ratio that keeps the number of
    /// open orders.
    pub ioc: f64,
    pub market: f64,
    pub replace: f64,
}

impl Scenario {
    pub const NAMES: [&'static str; 4] = ["s1", "s100", "s10k", "move"];

    pub fn named(name: &str) -> Option<Scenario> {
        let usual = Scenario {
            name: "s1",
            securities: 1,
            open: 1_000,
            ops: 5_000_000,
            seed: 1,
            ioc: 0.05,
            market: 0.02,
            replace: 0.12,
        };
        match name {
            "s1" => Some(usual),
            "s100" => Some(Scenario { name: "s100", securities: 100, open: 100_000, seed: 2, ..usual }),
            "s10k" => Some(Scenario { name: "s10k", securities: 10_000, open: 1_000_000, seed: 3, ..usual }),
            // The mix of exchange-core's own benchmark: nearly all operations are replaces.
            "move" => {
                Some(Scenario { name: "move", seed: 4, ioc: 0.03, market: 0.0, replace: 0.82, ..usual })
            }
            _ => None,
        }
    }

    pub fn generate(&self) -> Workload {
        let mut generator = Generator::new(self);
        let prefill: Vec<WorkloadRecord> = (0..self.open).map(|_| generator.prefill()).collect();
        let timed: Vec<WorkloadRecord> = (0..self.ops).map(|_| generator.operation()).collect();
        Workload {
            securities: self.securities,
            seed: self.seed,
            order_id_max: generator.next_order - 1,
            prefill,
            timed,
            expected: generator.naive.outcome(),
        }
    }
}

/// Mean distance from the mid, in ticks.
const DISTANCE_MEAN: f64 = 12.0;
/// Fraction of new prices that cross, and by how many ticks at most.
const CROSSING: f64 = 0.03;
const CROSSING_TICKS: u64 = 3;
/// Ticks by which an IOC reaches through the mid.
const IOC_TICKS: i32 = 3;
/// Probability that an operation moves its security's mid by one tick.
const MID_MOVE_PROBABILITY: f64 = 0.003;
/// Distance of the mid from both ends of the price range, so that no order reaches them.
const MID_MARGIN: i32 = 1_000;
const ROUND_QTY: u32 = 100;
const ROUND_QTY_SHARE: f64 = 0.4;
const QTY_MAX: u64 = 1_000;
/// Fraction of cancels and replaces that name an order which is not open.
const CLOSED_SHARE: f64 = 0.01;
/// How strongly a lack or surplus of open orders, as a fraction of the target, shifts the choice
/// between NEW and CXL.
const BALANCE: f64 = 20.0;

struct Generator<'a> {
    scenario: &'a Scenario,
    rng: Xoshiro256,
    zipf: Zipf,
    /// Mids by security.
    mids: Vec<i32>,
    naive: NaiveMatcher,
    open: OpenOrderSet,
    next_order: u64,
}

impl<'a> Generator<'a> {
    fn new(scenario: &'a Scenario) -> Generator<'a> {
        Generator {
            scenario,
            rng: Xoshiro256::seeded(scenario.seed),
            zipf: Zipf::over(scenario.securities),
            mids: vec![PRICE_MAX / 2; scenario.securities as usize],
            naive: NaiveMatcher::default(),
            open: OpenOrderSet::with_capacity(scenario.open as usize + scenario.ops as usize + 1),
            // A choice: ids begin with 1, so that an engine may use 0 for none.
            next_order: 1,
        }
    }

    fn prefill(&mut self) -> WorkloadRecord {
        let security = self.zipf.draw(&mut self.rng);
        let side = self.side();
        let price = self.passive_price(security, side);
        self.enter(RecordKind::New, security, side, price)
    }

    fn operation(&mut self) -> WorkloadRecord {
        let kind = self.kind();
        if let RecordKind::Cancel | RecordKind::Replace = kind {
            let order = if self.rng.happens(CLOSED_SHARE) { self.closed_order() } else { self.open_order() };
            if let Some(order) = order {
                return self.target(kind, order);
            }
        }
        // With no order to name, a new one is needed.
        let kind = if kind.enters() { kind } else { RecordKind::New };
        let security = self.zipf.draw(&mut self.rng);
        self.move_mid(security);
        let side = self.side();
        let price = match kind {
            RecordKind::Ioc => self.price_through_mid(security, side, IOC_TICKS),
            RecordKind::Market => 0,
            RecordKind::New | RecordKind::Cancel | RecordKind::Replace => self.limit(security, side),
        };
        self.enter(kind, security, side, price)
    }

    fn kind(&mut self) -> RecordKind {
        let scenario = self.scenario;
        let point = self.rng.unit();
        if point < scenario.ioc {
            return RecordKind::Ioc;
        }
        if point < scenario.ioc + scenario.market {
            return RecordKind::Market;
        }
        if point < scenario.ioc + scenario.market + scenario.replace {
            return RecordKind::Replace;
        }
        let wanted = scenario.open as f64;
        let lack = (wanted - self.naive.open_orders() as f64) / wanted;
        if self.rng.happens(0.5 + BALANCE * lack) { RecordKind::New } else { RecordKind::Cancel }
    }

    fn enter(&mut self, kind: RecordKind, security: u32, side: WorkloadSide, price: i32) -> WorkloadRecord {
        let order = self.next_order;
        self.next_order += 1;
        let round = self.rng.happens(ROUND_QTY_SHARE);
        let qty = if round { ROUND_QTY } else { 1 + workload_u32(self.rng.below(QTY_MAX)) };
        self.apply(WorkloadRecord { kind, side, security, order, price, qty })
    }

    /// Creates a cancel or replace of an order, open or not.
    fn target(&mut self, kind: RecordKind, order: u64) -> WorkloadRecord {
        let (security, side) = match self.naive.find(order) {
            Some(found) => found,
            None => (self.zipf.draw(&mut self.rng), self.side()),
        };
        self.move_mid(security);
        let price = if kind == RecordKind::Replace { self.limit(security, side) } else { 0 };
        self.apply(WorkloadRecord { kind, side, security, order, price, qty: 0 })
    }

    fn apply(&mut self, record: WorkloadRecord) -> WorkloadRecord {
        self.naive.apply(&record);
        for order in self.naive.take_closed() {
            self.open.set(order, false);
        }
        self.open.set(record.order, self.naive.find(record.order).is_some());
        record
    }

    /// Returns one of the most recent tenth of the open orders half of the time, else any of them.
    fn open_order(&mut self) -> Option<u64> {
        let count = self.open.count();
        if count == 0 {
            return None;
        }
        let reach = if self.rng.happens(0.5) { count.div_ceil(10) } else { count };
        Some(self.open.nth(count - 1 - self.rng.below(reach)))
    }

    /// Returns the id of an order that is no longer open, or `None` if a hundred draws find none.
    fn closed_order(&mut self) -> Option<u64> {
        let highest = self.next_order - 1;
        (0..100).map(|_| 1 + self.rng.below(highest)).find(|&order| self.naive.find(order).is_none())
    }

    fn side(&mut self) -> WorkloadSide {
        if self.rng.happens(0.5) { WorkloadSide::Buy } else { WorkloadSide::Sell }
    }

    fn limit(&mut self, security: u32, side: WorkloadSide) -> i32 {
        if self.rng.happens(CROSSING) {
            let ticks = 1 + workload_u32(self.rng.below(CROSSING_TICKS)).cast_signed();
            return self.price_through_mid(security, side, ticks);
        }
        self.passive_price(security, side)
    }

    /// Returns a price behind the mid by at least one tick.
    fn passive_price(&mut self, security: u32, side: WorkloadSide) -> i32 {
        let distance = 1 + self.rng.exponential(DISTANCE_MEAN).min(MID_MARGIN - 2);
        self.price_through_mid(security, side, -distance)
    }

    /// Returns the price this many ticks through the mid, as seen from a side.
    fn price_through_mid(&self, security: u32, side: WorkloadSide, ticks: i32) -> i32 {
        let mid = self.mids[security as usize];
        match side {
            WorkloadSide::Buy => mid + ticks,
            WorkloadSide::Sell => mid - ticks,
        }
    }

    fn move_mid(&mut self, security: u32) {
        if self.rng.happens(MID_MOVE_PROBABILITY) {
            let step = if self.rng.happens(0.5) { 1 } else { -1 };
            let mid = &mut self.mids[security as usize];
            *mid = (*mid + step).clamp(MID_MARGIN, PRICE_MAX - MID_MARGIN);
        }
    }
}

/// The open orders by age; the n-th is found in logarithmic time (a Fenwick tree over the ids).
struct OpenOrderSet {
    open: Vec<bool>,
    /// Node i holds the count of the ids from i - lowbit(i) up to i - 1.
    sums: Vec<u32>,
    count: u64,
}

impl OpenOrderSet {
    fn with_capacity(ids: usize) -> OpenOrderSet {
        let size = (ids + 1).next_power_of_two();
        OpenOrderSet { open: vec![false; size], sums: vec![0; size + 1], count: 0 }
    }

    fn count(&self) -> u64 {
        self.count
    }

    fn set(&mut self, order: u64, open: bool) {
        let was = std::mem::replace(&mut self.open[index_usize(order)], open);
        if was == open {
            return;
        }
        let change = if open { 1 } else { u32::MAX };
        self.count = if open { self.count + 1 } else { self.count - 1 };
        let mut node = index_usize(order) + 1;
        while node < self.sums.len() {
            self.sums[node] = self.sums[node].wrapping_add(change);
            node += node & node.wrapping_neg();
        }
    }

    /// Returns the n-th oldest open order, counted from 0; `n` is below `count`.
    fn nth(&self, n: u64) -> u64 {
        assert!(n < self.count, "one of the open orders");
        let (mut before, mut left) = (0, workload_u32(n));
        let mut step = self.open.len();
        while step > 0 {
            let node = before + step;
            if node < self.sums.len() && self.sums[node] <= left {
                before = node;
                left -= self.sums[node];
            }
            step /= 2;
        }
        before as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_open_order_is_found() {
        let mut open = OpenOrderSet::with_capacity(50);
        (0..50).for_each(|order| open.set(order, true));
        (0..50).filter(|order| order % 3 != 0).for_each(|order| open.set(order, false));
        open.set(3, true);
        assert_eq!(open.count(), 17);
        assert!((0..17).all(|n| open.nth(n) == 3 * n));
    }

    #[test]
    fn a_scenario_keeps_its_mix_and_its_open_orders() {
        for name in Scenario::NAMES {
            let scenario = Scenario { ops: 50_000, open: 1_000, ..Scenario::named(name).unwrap() };
            let workload = scenario.generate();
            assert_eq!(workload, scenario.generate());
            let share = |kind| workload.timed.iter().filter(|r| r.kind == kind).count() as f64 / 50_000.0;
            assert!((share(RecordKind::Ioc) - scenario.ioc).abs() < 0.01, "{name}");
            assert!((share(RecordKind::Replace) - scenario.replace).abs() < 0.01, "{name}");
            assert!(workload.expected.resting_orders.abs_diff(1_000) < 100, "{name}");
            assert!(workload.prefill.iter().all(|record| record.kind == RecordKind::New), "{name}");
            let aims = (share(RecordKind::Cancel) + share(RecordKind::Replace)) * 50_000.0;
            let closed_order = workload.expected.unknown as f64 / aims;
            assert!((0.006..0.014).contains(&closed_order), "{name}: {closed_order}");
        }
    }
}
