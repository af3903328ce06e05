//! A budget pool and simulated shards, with lanes of arbitrary delay.

use std::collections::VecDeque;

use super::allocation::split;
use super::*;
use crate::event::BudgetUse;
use crate::id::{AccountId, Currency, Origin, PortId, SecurityId, StrategyId};
use crate::number::Money;
use crate::reason::Reason;
use crate::time::Timestamp;

const SOURCE: Source = Source { origin: Origin::Server, port: PortId(3), session: 9 };
const SCOPE: Scope = Scope::Strategy(StrategyId(1));

/// A shard that keeps the promises of the module's comment, with its lanes.
#[derive(Default)]
struct NaiveShard {
    limited: bool,
    granted: i64,
    used: i64,
    commands: VecDeque<Command>,
    events: VecDeque<Event>,
}

impl NaiveShard {
    fn report_use(&mut self, returned: i64, wanting: i64) {
        let (granted, used) = (self.granted, self.used);
        let kind = BudgetKind::OpenOrders;
        let usage = BudgetUse { scope: SCOPE, kind, granted, used, returned, wanting };
        self.push(EventKind::Budget(usage));
    }

    fn push(&mut self, body: EventKind) {
        self.events.push_back(Event { seq: 0, at: Timestamp::ZERO, body });
    }

    /// Uses this much more, or is refused.
    fn take(&mut self, more: i64) -> bool {
        if self.limited && self.used + more > self.granted {
            self.report_use(0, more);
            return false;
        }
        let half = self.granted / 2;
        let below = self.used <= half;
        self.used += more;
        if self.limited && below && self.used > half {
            self.report_use(0, 0);
        }
        true
    }

    fn step(&mut self) {
        let Some(Command { source, token, body, .. }) = self.commands.pop_front() else { return };
        let CommandKind::Budget(budget) = body else { panic!("{body:?}") };
        match budget.act {
            BudgetAct::Lift => (self.limited, self.granted) = (false, 0),
            BudgetAct::Set(granted) => (self.limited, self.granted) = (true, granted),
            BudgetAct::Grant(more) => self.granted += more,
            BudgetAct::Recall(wanted) => {
                let returned = wanted.clamp(0, (self.granted - self.used).max(0));
                self.granted -= returned;
                self.report_use(returned, 0);
            }
        }
        self.push(EventKind::Done { source, token, reason: Reason::None });
    }
}

struct BudgetBench {
    budget: BudgetPool,
    shards: Vec<NaiveShard>,
    rng: u64,
}

impl BudgetBench {
    fn new(shards: u8, seed: u64) -> BudgetBench {
        let shards_made = (0..shards).map(|_| NaiveShard::default()).collect();
        BudgetBench { budget: BudgetPool::new(shards, SOURCE), shards: shards_made, rng: seed }
    }

    fn below(&mut self, n: u64) -> u64 {
        self.rng = self.rng.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.rng >> 33) % n
    }

    fn limit(&mut self, max_open_orders: u32) {
        let limits = RiskLimits { max_open_orders, ..RiskLimits::default() };
        let shards = &mut self.shards;
        self.budget.set_limits(SCOPE, &limits, |shard, command| {
            shards[shard.0 as usize].commands.push_back(command);
        });
    }

    /// Delivers one event of a shard to the pool.
    fn handle(&mut self, shard: usize) {
        let Some(event) = self.shards[shard].events.pop_front() else { return };
        let shards = &mut self.shards;
        self.budget.handle_event(ShardId(shard as u8), &event, |shard, command| {
            shards[shard.0 as usize].commands.push_back(command);
        });
    }

    fn remind(&mut self) {
        let shards = &mut self.shards;
        self.budget.remind(|shard, command| shards[shard.0 as usize].commands.push_back(command));
    }

    /// Delivers everything and returns the number of deliveries.
    fn settle(&mut self) -> usize {
        for round in 0..10_000 {
            let quiet = |shard: &NaiveShard| shard.commands.is_empty() && shard.events.is_empty();
            if self.shards.iter().all(quiet) {
                return round;
            }
            for shard in 0..self.shards.len() {
                self.shards[shard].step();
                self.handle(shard);
            }
        }
        panic!("they talk without end");
    }

    /// Does one of: a shard uses, returns, or receives; the pool receives.
    fn step(&mut self) {
        let shard = self.below(self.shards.len() as u64) as usize;
        match self.below(8) {
            0 | 1 => {
                let more = 1 + self.below(3) as i64;
                self.shards[shard].take(more);
            }
            2 => {
                let used = self.shards[shard].used as u64;
                self.shards[shard].used -= self.below(used + 1) as i64;
            }
            3..6 => self.shards[shard].step(),
            _ => self.handle(shard),
        }
    }

    fn used(&self) -> i64 {
        self.shards.iter().map(|shard| shard.used).sum()
    }

    /// Returns what all shards have, and will have.
    fn granted(&self) -> i64 {
        let coming = |shard: &NaiveShard| {
            shard.commands.iter().fold(shard.granted, |sum, command| match command.body {
                CommandKind::Budget(BudgetChange { act: BudgetAct::Set(to), .. }) => to,
                CommandKind::Budget(BudgetChange { act: BudgetAct::Grant(more), .. }) => sum + more,
                _ => sum,
            })
        };
        self.shards.iter().map(coming).sum()
    }
}

#[test]
fn a_new_limit_is_split_evenly_and_the_rest_goes_to_the_lowest() {
    let mut bench = BudgetBench::new(4, 1);
    bench.limit(10);
    bench.settle();
    assert_eq!(bench.shards.iter().map(|s| s.granted).collect::<Vec<_>>(), [3, 3, 2, 2]);
    bench.limit(15);
    bench.settle();
    assert_eq!(bench.shards.iter().map(|s| s.granted).collect::<Vec<_>>(), [5, 4, 3, 3]);
}

#[test]
fn every_kind_of_limit_has_its_own_allocation() {
    let mut budget = BudgetPool::new(1, SOURCE);
    let limits = RiskLimits {
        max_open_orders: 5,
        max_orders_per_s: 7,
        credit: Money::from_raw(900),
        credit_currency: Currency::parse(b"EUR").unwrap(),
        ..RiskLimits::default()
    };
    let mut sent = |scope: Scope, limits: &RiskLimits| {
        let mut sent = Vec::new();
        budget.set_limits(scope, limits, |shard, command| {
            let CommandKind::Budget(budget) = command.body else { panic!("{command:?}") };
            assert_eq!((shard, command.source, budget.scope), (ShardId(0), SOURCE, scope));
            sent.push((budget.kind, budget.act));
        });
        sent
    };
    let set = BudgetAct::Set;
    let account = Scope::Account(AccountId(2));
    let two = [(BudgetKind::OpenOrders, set(5)), (BudgetKind::OrdersPerSecond, set(7))];
    assert_eq!(sent(SCOPE, &limits), two);
    assert_eq!(sent(account, &limits)[2], (BudgetKind::Credit, set(900)));
    assert_eq!(sent(Scope::Security(SecurityId(1)), &limits), []);
    assert_eq!(sent(account, &limits), [], "nothing new");
    assert_eq!(sent(account, &RiskLimits::default()).len(), 3);
    assert_eq!(sent(account, &RiskLimits::default()), [], "lifted already");
    let negative = RiskLimits { credit: Money::from_raw(-1), ..RiskLimits::default() };
    assert_eq!(sent(account, &negative), [(BudgetKind::Credit, set(0))]);
}

#[test]
fn a_limit_is_never_exceeded_whatever_the_delays() {
    for seed in 0..300 {
        let mut bench = BudgetBench::new(1 + (seed % 5) as u8, seed);
        let limit = 1 + bench.below(40) as u32;
        bench.limit(limit);
        // There is no limit to keep until the shards know it.
        bench.settle();
        for _ in 0..2_000 {
            bench.step();
            assert!(bench.used() <= limit as i64, "seed {seed}: {} of {limit} used", bench.used());
            assert!(bench.granted() <= limit as i64, "seed {seed}: {} of {limit}", bench.granted());
        }
        bench.settle();
        assert!(bench.granted() <= limit as i64);
    }
}

#[test]
fn a_lowered_limit_is_kept_once_the_shards_have_returned_budget() {
    for seed in 0..300 {
        let mut bench = BudgetBench::new(1 + (seed % 5) as u8, seed);
        let mut limit = 20;
        bench.limit(limit);
        bench.settle();
        let mut highest = limit;
        for step in 0..3_000 {
            bench.step();
            if step % 300 == 299 {
                limit = 1 + bench.below(40) as u32;
                highest = highest.max(limit);
                bench.limit(limit);
                if step % 600 == 599 {
                    // Shards that get the limit command too keep at most an even part.
                    let even: Vec<_> = split(limit as i64, bench.shards.len()).collect();
                    for (shard, even) in bench.shards.iter_mut().zip(even) {
                        shard.granted = shard.granted.min(even);
                    }
                }
            }
            assert!(bench.granted() <= highest as i64, "seed {seed}: {} of {highest}", bench.granted());
            assert!(bench.used() <= highest as i64);
        }
        for shard in &mut bench.shards {
            shard.used = 0;
        }
        for _ in 0..10 {
            bench.settle();
            bench.remind();
        }
        bench.settle();
        assert!(bench.granted() <= limit as i64, "seed {seed}: {} of {limit}", bench.granted());
        // Nothing was lost in transit: one shard alone can have it all.
        for _ in 0..100 {
            bench.shards[0].take(1);
            bench.settle();
        }
        assert_eq!(bench.used(), limit as i64, "seed {seed}");
    }
}

#[test]
fn a_single_busy_shard_gets_all_of_it() {
    for shards in 1..9 {
        let mut bench = BudgetBench::new(shards, 1);
        bench.limit(1_000);
        bench.settle();
        let mut refused = 0;
        while bench.used() < 1_000 {
            refused += !bench.shards[shards as usize - 1].take(1) as u32;
            bench.settle();
            assert!(refused < 100, "{shards} shards: {} used", bench.used());
        }
    }
}

#[test]
fn a_large_need_is_recalled_from_many_shards() {
    let mut bench = BudgetBench::new(5, 1);
    bench.limit(100);
    bench.settle();
    assert!(!bench.shards[2].take(90));
    bench.settle();
    assert!(bench.shards[2].take(90));
    assert!(!bench.shards[2].take(20));
    assert!(bench.settle() < 50);
}

#[test]
fn two_shards_in_need_do_not_recall_from_each_other_without_end() {
    let mut bench = BudgetBench::new(2, 1);
    bench.limit(2);
    bench.settle();
    assert!(bench.shards[0].take(1) && bench.shards[1].take(1));
    assert!(!bench.shards[0].take(1) && !bench.shards[1].take(1));
    assert!(bench.settle() < 20);
    bench.shards[0].used = 0;
    assert!(!bench.shards[1].take(1));
    bench.settle();
    assert!(bench.shards[1].take(1));
}

#[test]
fn a_lifted_limit_has_no_effect_and_old_answers_do_not_count_for_a_new_one() {
    for seed in 0..300 {
        let mut bench = BudgetBench::new(3, seed);
        bench.limit(30);
        bench.settle();
        for _ in 0..200 {
            bench.step();
        }
        bench.limit(0);
        for _ in 0..seed % 7 {
            bench.step();
        }
        for shard in &mut bench.shards {
            shard.used = 0;
        }
        bench.limit(12);
        for _ in 0..200 {
            let shard = bench.below(3) as usize;
            bench.shards[shard].step();
            bench.handle(bench.rng as usize % 3);
            let parts = bench.budget.allocations[0].parts.iter();
            assert!(parts.map(|part| part.granted).sum::<i64>() <= 12);
        }
        bench.settle();
        assert!(bench.shards.iter().all(|shard| shard.limited));
        assert!(bench.granted() <= 12, "seed {seed}: {}", bench.granted());
        bench.limit(0);
        bench.settle();
        assert!(bench.shards[1].take(1_000));
    }
}

#[test]
fn after_a_restart_the_shards_keep_what_they_had() {
    let mut bench = BudgetBench::new(2, 1);
    for (shard, granted) in bench.shards.iter_mut().zip([9, 1]) {
        (shard.limited, shard.granted, shard.used) = (true, granted, granted);
    }
    let shards = &mut bench.shards;
    bench.budget.ask(SCOPE, |shard, command| {
        if matches!(command.body, CommandKind::Budget(BudgetChange { kind: BudgetKind::OpenOrders, .. })) {
            shards[shard.0 as usize].commands.push_back(command);
        }
    });
    bench.settle();
    bench.limit(10);
    bench.settle();
    assert_eq!((bench.shards[0].granted, bench.shards[1].granted), (9, 1));
    bench.shards[0].used = 2;
    assert!(!bench.shards[1].take(1));
    bench.settle();
    assert!(bench.shards[1].take(1));
    assert!(bench.granted() <= 10);
}

#[test]
fn use_above_a_new_limit_is_not_granted_to_others() {
    let mut bench = BudgetBench::new(2, 1);
    bench.shards[0].used = 8;
    bench.limit(10);
    bench.settle();
    assert!(!bench.shards[0].take(1));
    bench.settle();
    assert!(bench.shards[0].granted + bench.shards[1].granted <= 10);
    assert!(!bench.shards[1].take(4), "two are left");
    bench.settle();
    assert!(bench.shards[1].granted <= 2, "{}", bench.shards[1].granted);
}

#[test]
fn events_of_other_ports_are_ignored() {
    let mut budget = BudgetPool::new(1, SOURCE);
    let mut handle = |body| {
        let event = Event { seq: 1, at: Timestamp(1), body };
        budget.handle_event(ShardId(0), &event, |_, command| panic!("{command:?}"));
    };
    handle(EventKind::Done { source: SOURCE, token: 0, reason: Reason::None });
    handle(EventKind::Done { source: Source::default(), token: 0, reason: Reason::None });
    handle(EventKind::Halt { security: SecurityId(1), on: true });
}

#[test]
fn a_lowered_limit_is_recalled_until_the_shards_use_less() {
    let mut bench = BudgetBench::new(2, 1);
    bench.limit(10);
    bench.settle();
    bench.remind();
    assert_eq!(bench.settle(), 0, "there is nothing to recall");
    assert!(bench.shards.iter_mut().all(|shard| shard.take(5)));
    bench.settle();
    bench.limit(4);
    bench.settle();
    let granted = |bench: &BudgetBench| bench.shards.iter().map(|shard| shard.granted).sum::<i64>();
    assert_eq!(granted(&bench), 10, "all of it is in use");
    bench.shards.iter_mut().for_each(|shard| shard.used = 0);
    assert_eq!((bench.settle(), granted(&bench)), (0, 10), "a shard does not report that it uses less");
    // The first recall finds out what is no longer in use.
    for expected in [8, 4, 4] {
        bench.remind();
        bench.settle();
        assert_eq!(granted(&bench), expected);
    }
}
