//! The treasury: limits that span securities (open orders, orders per second, credit) are given to the shards in parts.
//! A shard decides with its own part, at once; the treasury moves parts to where they are wanted.
//!
//! ```text
//!            Set, Grant                 used, wanting
//! Treasury ─────────────► shard ─────────────────────────► Treasury: grants what is free, or recalls from the
//!            Recall               returned, then Done                shard with the most to spare
//! ```
//!
//! A limit may be refused early, it is never exceeded: what a shard has, or may have once every message on its way
//! has arrived, is in the books as granted, and only what is not granted can be given. A recall counts when it is answered.
//!
//! The shards must keep three promises. Commands are handled in the order they were sent. A recall is answered with
//! [`BudgetUse`] and then [`Body::Done`] with its token. A shard may give up a part by itself, when a limit falls, but
//! never takes one; where it takes its even part by itself as a new limit arrives, that is the part we set.

use std::collections::BTreeMap;

use crate::command::{Body as Told, Budget, BudgetAct, BudgetKind, Command, Limits, Scope};
use crate::event::{Body, BudgetUse, Event};
use crate::id::{ShardId, Source};

/// The books of all limits that are given in parts.
#[derive(Debug)]
pub struct Treasury {
    shards: u8,
    /// In whose name commands are sent.
    source: Source,
    purses: Vec<Purse>,
    /// Which purse; its number is the token of its recalls.
    numbers: BTreeMap<(Scope, BudgetKind), u32>,
}

/// Token of commands whose end nobody waits for.
const NO_TOKEN: u32 = u32::MAX;

impl Treasury {
    /// The source is the treasury's alone: its recalls are known by their tokens.
    pub fn new(shards: u8, source: Source) -> Treasury {
        assert!(shards >= 1, "somebody must own the securities");
        Treasury { shards, source, purses: Vec::new(), numbers: BTreeMap::new() }
    }

    /// Puts limits into force, changes or lifts them. What is new is split evenly, the remainder to the lowest shards.
    /// What is lowered is recalled; nothing is granted until enough has come back.
    pub fn set_limits(&mut self, scope: Scope, limits: &Limits, mut out: impl FnMut(ShardId, Command)) {
        let credit = match scope {
            Scope::Account(_) => limits.credit.raw(),
            Scope::Strategy(_) => 0,
            // Of these there are no limits that span shards.
            Scope::Global | Scope::Security(_) | Scope::Adapter(_) => return,
        };
        let kinds = [
            (BudgetKind::OpenOrders, limits.max_open_orders as i64),
            (BudgetKind::OrdersPerSecond, limits.max_orders_per_s as i64),
            (BudgetKind::Credit, credit),
        ];
        for (kind, limit) in kinds {
            if limit == 0 && !self.numbers.contains_key(&(scope, kind)) {
                continue;
            }
            let number = self.number(scope, kind);
            let purse = &mut self.purses[number as usize];
            match limit {
                0 => purse.lift(&mut out),
                _ => purse.set_limit(limit.max(0), &mut out),
            }
        }
    }

    /// Takes in how a shard stands, and moves what is wanted elsewhere. After a restart, the shards' own word (a
    /// snapshot) comes before [`Treasury::set_limits`]: so they keep what they had.
    pub fn handle_event(&mut self, shard: ShardId, event: &Event, mut out: impl FnMut(ShardId, Command)) {
        match &event.body {
            Body::Budget(usage) => {
                let number = self.number(usage.scope, usage.kind);
                self.purses[number as usize].handle_use(shard, usage, &mut out);
            }
            Body::Done { source, token, .. } => {
                let is_ours = *source == self.source && (*token as usize) < self.purses.len();
                if is_ours {
                    self.purses[*token as usize].handle_done(shard, &mut out);
                }
            }
            Body::Order(_)
            | Body::Status(_)
            | Body::Refused(_)
            | Body::Forgotten { .. }
            | Body::Booked(_)
            | Body::Adjusted { .. }
            | Body::Tick(_)
            | Body::Subscription { .. }
            | Body::Session { .. }
            | Body::Halt { .. }
            | Body::TradingDay { .. }
            | Body::Phase { .. }
            | Body::Adapter { .. }
            | Body::Limits { .. }
            | Body::Restrict { .. }
            | Body::Kill { .. }
            | Body::Alert { .. }
            | Body::ToVenue(_)
            | Body::SnapshotBegin { .. }
            | Body::SnapshotEnd { .. } => {}
        }
    }

    /// Asks again for what a lowered limit could not get back. To be called about once a second: shards do not tell
    /// when their use falls.
    pub fn remind(&mut self, mut out: impl FnMut(ShardId, Command)) {
        for purse in &mut self.purses {
            if purse.debt() > 0 {
                purse.begin_round();
                purse.recall_debt(&mut out);
            }
        }
    }

    fn number(&mut self, scope: Scope, kind: BudgetKind) -> u32 {
        let next = self.purses.len() as u32;
        let number = *self.numbers.entry((scope, kind)).or_insert(next);
        if number == next {
            self.purses.push(Purse::new(self.source, number, (scope, kind), self.shards));
        }
        number
    }
}

/// One limit and its parts.
///
/// Invariant: a part is at least what the shard has or will have; when one is granted, all together are within the
/// limit. They may be above it only after it was lowered, until enough has been returned.
#[derive(Debug)]
struct Purse {
    source: Source,
    number: u32,
    scope: Scope,
    kind: BudgetKind,
    limit: Limit,
    parts: Vec<Part>,
    /// Who is served first, so that none is always last.
    next: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    /// Not known yet, so the shards are listened to: they may bring parts from an earlier life.
    Unknown,
    Of(i64),
    Lifted,
}

#[derive(Clone, Copy, Debug, Default)]
struct Part {
    /// Whether the shard knows of the limit.
    told: bool,
    granted: i64,
    /// What the shard last said it has: less, if grants are on their way or it gave up a part by itself.
    said: i64,
    /// What the shard last said it uses.
    used: i64,
    want: Want,
    recall: Option<Recall>,
    /// Asked already in this round.
    tried: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Want {
    #[default]
    Nothing,
    /// Its use has passed half: a little more would be good.
    Some,
    /// So much was refused.
    Need(i64),
}

/// A recall that is not done yet.
#[derive(Clone, Copy, Debug)]
struct Recall {
    amount: i64,
    /// Granted since it was sent.
    since: i64,
    /// Whether the shard has spoken since.
    heard: bool,
    /// The limit was lifted meanwhile: what comes back belongs to no limit.
    void: bool,
}

impl Part {
    /// What the others may not have: its part, or what it uses where that is more.
    fn claim(&self) -> i64 {
        self.granted.max(self.used)
    }

    fn unused(&self) -> i64 {
        self.granted.saturating_sub(self.used.max(0)).max(0)
    }
}

impl Purse {
    fn new(source: Source, number: u32, (scope, kind): (Scope, BudgetKind), shards: u8) -> Purse {
        let parts = vec![Part::default(); shards as usize];
        Purse { source, number, scope, kind, limit: Limit::Unknown, parts, next: 0 }
    }

    fn lift(&mut self, out: &mut impl FnMut(ShardId, Command)) {
        if self.limit == Limit::Lifted {
            return;
        }
        self.limit = Limit::Lifted;
        for shard in 0..self.parts.len() {
            let recall = self.parts[shard].recall.map(|recall| Recall { void: true, ..recall });
            self.parts[shard] = Part { recall, ..Part::default() };
            self.tell(shard, BudgetAct::Lift, out);
        }
    }

    fn set_limit(&mut self, limit: i64, out: &mut impl FnMut(ShardId, Command)) {
        self.limit = Limit::Of(limit);
        let even = split(limit, self.parts.len());
        for (shard, part) in (0..self.parts.len()).zip(even) {
            if !self.parts[shard].told {
                let part = part.min(self.free());
                self.parts[shard].told = true;
                self.parts[shard].granted = part;
                self.tell(shard, BudgetAct::Set(part), out);
            }
        }
        let more = split(self.free(), self.parts.len());
        for (shard, more) in (0..self.parts.len()).zip(more) {
            self.grant(shard, more, out);
        }
        self.begin_round();
        self.recall_debt(out);
    }

    fn handle_use(&mut self, shard: ShardId, usage: &BudgetUse, out: &mut impl FnMut(ShardId, Command)) {
        let part = &mut self.parts[shard.0 as usize];
        if self.limit == Limit::Lifted || part.recall.is_some_and(|recall| recall.void) {
            return;
        }
        (part.said, part.used) = (usage.granted, usage.used);
        if self.limit == Limit::Unknown {
            (part.told, part.granted) = (true, usage.granted);
            return;
        }
        assert!(usage.returned >= 0, "a return is not a grant");
        assert!(usage.returned <= part.granted, "a shard returns no more than it has");
        part.granted -= usage.returned;
        let has_passed_half = part.recall.is_none() && usage.used > usage.granted / 2;
        if let Some(recall) = &mut part.recall {
            recall.heard = true;
        }
        if usage.wanting > 0 {
            part.want = Want::Need(usage.wanting);
        } else if has_passed_half && part.want == Want::Nothing {
            part.want = Want::Some;
        }
        // An answer to a recall begins no round, or two that are both in want would ask each other without end.
        if usage.wanting > 0 || has_passed_half {
            self.begin_round();
        }
        self.serve(out);
    }

    /// A recall is done: everything sent to the shard before it has arrived, so its own word is exact but for what
    /// was granted since.
    fn handle_done(&mut self, shard: ShardId, out: &mut impl FnMut(ShardId, Command)) {
        let part = &mut self.parts[shard.0 as usize];
        let Some(recall) = part.recall.take() else { return };
        if recall.void {
            return;
        }
        if recall.heard {
            part.granted = part.granted.min(part.said.saturating_add(recall.since));
        }
        self.serve(out);
        self.recall_debt(out);
    }

    /// Gives what is free to those who want it, and recalls for those who still do.
    fn serve(&mut self, out: &mut impl FnMut(ShardId, Command)) {
        let shards = self.parts.len();
        let first = self.next;
        let wanting = self.parts.iter().filter(|part| part.want != Want::Nothing).count();
        let mut shares = split(self.free(), wanting);
        for shard in (0..shards).map(|n| (first + n) % shards) {
            if self.parts[shard].want == Want::Nothing {
                continue;
            }
            let more = shares.next().unwrap_or_default();
            self.grant(shard, more, out);
            let part = &mut self.parts[shard];
            let is_content = match part.want {
                Want::Nothing => true,
                Want::Some => more > 0,
                Want::Need(amount) => part.unused() >= amount && (more > 0 || part.said >= part.granted),
            };
            if is_content {
                part.want = Want::Nothing;
                self.next = (shard + 1) % shards;
            } else {
                self.recall_for(shard, out);
            }
        }
    }

    /// Recalls from the shard with the most to spare, one at a time. When all have been asked the shard must wait
    /// until it asks again.
    fn recall_for(&mut self, shard: usize, out: &mut impl FnMut(ShardId, Command)) {
        if self.parts.iter().any(|part| part.recall.is_some()) {
            return;
        }
        let part = &self.parts[shard];
        if part.said < part.granted && !part.tried {
            // It has less than the books say. A recall of nothing tells whether the rest is on its way or given up.
            self.recall(shard, 0, out);
            return;
        }
        let own = part.unused();
        let need = match self.parts[shard].want {
            Want::Nothing | Want::Some => None,
            Want::Need(amount) => Some(amount.saturating_sub(own).max(1)),
        };
        let Some(donor) = self.donor(Some(shard)) else {
            self.parts[shard].want = Want::Nothing;
            return;
        };
        // Half of the difference makes both equal; so two shards never take the same part from each other in turn.
        let half = (self.parts[donor].unused() - own) / 2;
        match need {
            Some(need) => self.recall(donor, need.max(half), out),
            None if half > 0 => self.recall(donor, half, out),
            None => self.parts[shard].want = Want::Nothing,
        }
    }

    /// Recalls what is granted above a limit that was lowered.
    fn recall_debt(&mut self, out: &mut impl FnMut(ShardId, Command)) {
        let on_the_way = self.parts.iter().filter_map(|part| part.recall).map(|recall| recall.amount);
        let mut missing = on_the_way.fold(self.debt(), |debt, amount| debt.saturating_sub(amount));
        while missing > 0 {
            let Some(donor) = self.donor(None) else { return };
            let spare = self.parts[donor].unused().max(1);
            let amount = missing.min(spare);
            self.recall(donor, amount, out);
            missing -= amount;
        }
    }

    /// The shard with the most to spare that has not been asked in this round. What it told may be old, so one that
    /// had nothing to spare is asked too, last.
    fn donor(&self, besides: Option<usize>) -> Option<usize> {
        let can_give = |shard: &usize| {
            let part = &self.parts[*shard];
            Some(*shard) != besides && !part.tried && part.recall.is_none() && part.claim() > 0
        };
        let shards = (0..self.parts.len()).rev().filter(can_give);
        shards.max_by_key(|shard| self.parts[*shard].unused())
    }

    fn begin_round(&mut self) {
        for part in &mut self.parts {
            part.tried = false;
        }
    }

    fn recall(&mut self, shard: usize, amount: i64, out: &mut impl FnMut(ShardId, Command)) {
        let part = &mut self.parts[shard];
        assert!(part.recall.is_none(), "one recall at a time");
        part.tried = true;
        part.recall = Some(Recall { amount, since: 0, heard: false, void: false });
        self.tell(shard, BudgetAct::Recall(amount), out);
    }

    fn grant(&mut self, shard: usize, amount: i64, out: &mut impl FnMut(ShardId, Command)) {
        if amount == 0 {
            return;
        }
        assert!(amount <= self.free(), "only what is free can be granted");
        let part = &mut self.parts[shard];
        part.granted += amount;
        if let Some(recall) = &mut part.recall {
            recall.since += amount;
        }
        self.tell(shard, BudgetAct::Grant(amount), out);
        assert!(self.balance() >= 0, "the parts are within the limit");
    }

    fn tell(&self, shard: usize, act: BudgetAct, out: &mut impl FnMut(ShardId, Command)) {
        let token = if matches!(act, BudgetAct::Recall(_)) { self.number } else { NO_TOKEN };
        let Purse { source, scope, kind, .. } = *self;
        out(ShardId(shard as u8), Command { source, token, body: Told::Budget(Budget { scope, kind, act }) });
    }

    /// What nobody has.
    fn free(&self) -> i64 {
        self.balance().max(0)
    }

    /// What is granted above the limit.
    fn debt(&self) -> i64 {
        self.balance().min(0).saturating_neg()
    }

    fn balance(&self) -> i64 {
        let Limit::Of(limit) = self.limit else { return 0 };
        self.parts.iter().fold(limit, |rest, part| rest.saturating_sub(part.claim().max(0)))
    }
}

/// An amount in so many parts, the first ones larger by one if it does not divide.
fn split(amount: i64, parts: usize) -> impl Iterator<Item = i64> {
    let parts = parts as i64;
    let (even, rest) = if parts == 0 { (0, 0) } else { (amount / parts, amount % parts) };
    (0..parts).map(move |part| even + (part < rest) as i64)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::id::{AccountId, Currency, Origin, PortId, SecurityId, StrategyId};
    use crate::number::Money;
    use crate::reason::Reason;
    use crate::time::Timestamp;

    const SOURCE: Source = Source { origin: Origin::Server, port: PortId(3), session: 9 };
    const SCOPE: Scope = Scope::Strategy(StrategyId(1));

    /// A shard as the treasury may rely on it, with its lanes.
    #[derive(Default)]
    struct Naive {
        limited: bool,
        granted: i64,
        used: i64,
        commands: VecDeque<Command>,
        events: VecDeque<Event>,
    }

    impl Naive {
        fn say(&mut self, returned: i64, wanting: i64) {
            let (granted, used) = (self.granted, self.used);
            let kind = BudgetKind::OpenOrders;
            let usage = BudgetUse { scope: SCOPE, kind, granted, used, returned, wanting };
            self.push(Body::Budget(usage));
        }

        fn push(&mut self, body: Body) {
            self.events.push_back(Event { seq: 0, at: Timestamp::ZERO, body });
        }

        /// Uses so much more, or is refused.
        fn take(&mut self, more: i64) -> bool {
            if self.limited && self.used + more > self.granted {
                self.say(0, more);
                return false;
            }
            let half = self.granted / 2;
            let below = self.used <= half;
            self.used += more;
            if self.limited && below && self.used > half {
                self.say(0, 0);
            }
            true
        }

        fn step(&mut self) {
            let Some(Command { source, token, body }) = self.commands.pop_front() else { return };
            let Told::Budget(budget) = body else { panic!("{body:?}") };
            match budget.act {
                BudgetAct::Lift => (self.limited, self.granted) = (false, 0),
                BudgetAct::Set(granted) => (self.limited, self.granted) = (true, granted),
                BudgetAct::Grant(more) => self.granted += more,
                BudgetAct::Recall(wanted) => {
                    let returned = wanted.clamp(0, (self.granted - self.used).max(0));
                    self.granted -= returned;
                    self.say(returned, 0);
                }
            }
            self.push(Body::Done { source, token, reason: Reason::None });
        }
    }

    struct Bank {
        treasury: Treasury,
        shards: Vec<Naive>,
        rng: u64,
    }

    impl Bank {
        fn new(shards: u8, seed: u64) -> Bank {
            let shards_made = (0..shards).map(|_| Naive::default()).collect();
            Bank { treasury: Treasury::new(shards, SOURCE), shards: shards_made, rng: seed }
        }

        fn below(&mut self, n: u64) -> u64 {
            self.rng = self.rng.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (self.rng >> 33) % n
        }

        fn limit(&mut self, max_open_orders: u32) {
            let limits = Limits { max_open_orders, ..Limits::default() };
            let shards = &mut self.shards;
            self.treasury.set_limits(SCOPE, &limits, |shard, command| {
                shards[shard.0 as usize].commands.push_back(command);
            });
        }

        /// The treasury hears one event of a shard.
        fn hear(&mut self, shard: usize) {
            let Some(event) = self.shards[shard].events.pop_front() else { return };
            let shards = &mut self.shards;
            self.treasury.handle_event(ShardId(shard as u8), &event, |shard, command| {
                shards[shard.0 as usize].commands.push_back(command);
            });
        }

        fn remind(&mut self) {
            let shards = &mut self.shards;
            self.treasury.remind(|shard, command| shards[shard.0 as usize].commands.push_back(command));
        }

        /// Delivers everything; answers how many deliveries it took.
        fn settle(&mut self) -> usize {
            for round in 0..10_000 {
                let quiet = |shard: &Naive| shard.commands.is_empty() && shard.events.is_empty();
                if self.shards.iter().all(quiet) {
                    return round;
                }
                for shard in 0..self.shards.len() {
                    self.shards[shard].step();
                    self.hear(shard);
                }
            }
            panic!("they talk without end");
        }

        /// One of: a shard uses, gives back, or hears; the treasury hears.
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
                _ => self.hear(shard),
            }
        }

        fn used(&self) -> i64 {
            self.shards.iter().map(|shard| shard.used).sum()
        }

        /// What all shards have, and will have.
        fn granted(&self) -> i64 {
            let coming = |shard: &Naive| {
                shard.commands.iter().fold(shard.granted, |sum, command| match command.body {
                    Told::Budget(Budget { act: BudgetAct::Set(to), .. }) => to,
                    Told::Budget(Budget { act: BudgetAct::Grant(more), .. }) => sum + more,
                    _ => sum,
                })
            };
            self.shards.iter().map(coming).sum()
        }
    }

    #[test]
    fn a_new_limit_is_split_evenly_and_the_rest_goes_to_the_lowest() {
        let mut bank = Bank::new(4, 1);
        bank.limit(10);
        bank.settle();
        assert_eq!(bank.shards.iter().map(|s| s.granted).collect::<Vec<_>>(), [3, 3, 2, 2]);
        bank.limit(15);
        bank.settle();
        assert_eq!(bank.shards.iter().map(|s| s.granted).collect::<Vec<_>>(), [5, 4, 3, 3]);
    }

    #[test]
    fn every_kind_of_limit_has_its_own_purse() {
        let mut treasury = Treasury::new(1, SOURCE);
        let limits = Limits {
            max_open_orders: 5,
            max_orders_per_s: 7,
            credit: Money::from_raw(900),
            credit_currency: Currency::parse(b"EUR").unwrap(),
            ..Limits::default()
        };
        let mut sent = |scope: Scope, limits: &Limits| {
            let mut sent = Vec::new();
            treasury.set_limits(scope, limits, |shard, command| {
                let Told::Budget(budget) = command.body else { panic!("{command:?}") };
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
        assert_eq!(sent(account, &Limits::default()).len(), 3);
        assert_eq!(sent(account, &Limits::default()), [], "lifted already");
        let negative = Limits { credit: Money::from_raw(-1), ..Limits::default() };
        assert_eq!(sent(account, &negative), [(BudgetKind::Credit, set(0))]);
    }

    #[test]
    fn a_limit_is_never_exceeded_whatever_the_delays() {
        for seed in 0..300 {
            let mut bank = Bank::new(1 + (seed % 5) as u8, seed);
            let limit = 1 + bank.below(40) as u32;
            bank.limit(limit);
            // Until the shards know of it there is no limit to keep.
            bank.settle();
            for _ in 0..2_000 {
                bank.step();
                assert!(bank.used() <= limit as i64, "seed {seed}: {} of {limit} used", bank.used());
                assert!(bank.granted() <= limit as i64, "seed {seed}: {} of {limit}", bank.granted());
            }
            bank.settle();
            assert!(bank.granted() <= limit as i64);
        }
    }

    #[test]
    fn a_limit_that_changes_is_kept_as_soon_as_the_shards_have_given_back() {
        for seed in 0..300 {
            let mut bank = Bank::new(1 + (seed % 5) as u8, seed);
            let mut limit = 20;
            bank.limit(limit);
            bank.settle();
            let mut highest = limit;
            for step in 0..3_000 {
                bank.step();
                if step % 300 == 299 {
                    limit = 1 + bank.below(40) as u32;
                    highest = highest.max(limit);
                    bank.limit(limit);
                    if step % 600 == 599 {
                        // As shards do that are told of the limit too: nobody keeps more than an even part.
                        let even: Vec<_> = split(limit as i64, bank.shards.len()).collect();
                        for (shard, even) in bank.shards.iter_mut().zip(even) {
                            shard.granted = shard.granted.min(even);
                        }
                    }
                }
                assert!(bank.granted() <= highest as i64, "seed {seed}: {} of {highest}", bank.granted());
                assert!(bank.used() <= highest as i64);
            }
            for shard in &mut bank.shards {
                shard.used = 0;
            }
            for _ in 0..10 {
                bank.settle();
                bank.remind();
            }
            bank.settle();
            assert!(bank.granted() <= limit as i64, "seed {seed}: {} of {limit}", bank.granted());
            // Nothing was lost on the way: one shard alone can have it all.
            for _ in 0..100 {
                bank.shards[0].take(1);
                bank.settle();
            }
            assert_eq!(bank.used(), limit as i64, "seed {seed}");
        }
    }

    #[test]
    fn a_single_busy_shard_gets_all_of_it() {
        for shards in 1..9 {
            let mut bank = Bank::new(shards, 1);
            bank.limit(1_000);
            bank.settle();
            let mut refused = 0;
            while bank.used() < 1_000 {
                refused += !bank.shards[shards as usize - 1].take(1) as u32;
                bank.settle();
                assert!(refused < 100, "{shards} shards: {} used", bank.used());
            }
        }
    }

    #[test]
    fn a_large_want_is_gathered_from_many() {
        let mut bank = Bank::new(5, 1);
        bank.limit(100);
        bank.settle();
        assert!(!bank.shards[2].take(90));
        bank.settle();
        assert!(bank.shards[2].take(90));
        assert!(!bank.shards[2].take(20));
        assert!(bank.settle() < 50);
    }

    #[test]
    fn two_in_want_of_the_same_do_not_ask_each_other_without_end() {
        let mut bank = Bank::new(2, 1);
        bank.limit(2);
        bank.settle();
        assert!(bank.shards[0].take(1) && bank.shards[1].take(1));
        assert!(!bank.shards[0].take(1) && !bank.shards[1].take(1));
        assert!(bank.settle() < 20);
        bank.shards[0].used = 0;
        assert!(!bank.shards[1].take(1));
        bank.settle();
        assert!(bank.shards[1].take(1));
    }

    #[test]
    fn a_lifted_limit_binds_nobody_and_old_answers_do_not_count_for_a_new_one() {
        for seed in 0..300 {
            let mut bank = Bank::new(3, seed);
            bank.limit(30);
            bank.settle();
            for _ in 0..200 {
                bank.step();
            }
            bank.limit(0);
            for _ in 0..seed % 7 {
                bank.step();
            }
            for shard in &mut bank.shards {
                shard.used = 0;
            }
            bank.limit(12);
            for _ in 0..200 {
                let shard = bank.below(3) as usize;
                bank.shards[shard].step();
                bank.hear(bank.rng as usize % 3);
                let parts = bank.treasury.purses[0].parts.iter();
                assert!(parts.map(|part| part.granted).sum::<i64>() <= 12);
            }
            bank.settle();
            assert!(bank.shards.iter().all(|shard| shard.limited));
            assert!(bank.granted() <= 12, "seed {seed}: {}", bank.granted());
            bank.limit(0);
            bank.settle();
            assert!(bank.shards[1].take(1_000));
        }
    }

    #[test]
    fn after_a_restart_the_shards_keep_what_they_had() {
        let mut bank = Bank::new(2, 1);
        for (shard, granted) in bank.shards.iter_mut().zip([9, 1]) {
            (shard.limited, shard.granted, shard.used) = (true, granted, granted);
            shard.say(0, 0);
        }
        bank.settle();
        bank.limit(10);
        bank.settle();
        assert_eq!((bank.shards[0].granted, bank.shards[1].granted), (9, 1));
        bank.shards[0].used = 2;
        assert!(!bank.shards[1].take(1));
        bank.settle();
        assert!(bank.shards[1].take(1));
        assert!(bank.granted() <= 10);
    }

    #[test]
    fn what_is_used_above_a_new_limit_is_not_given_to_others() {
        let mut bank = Bank::new(2, 1);
        bank.shards[0].used = 8;
        bank.limit(10);
        bank.settle();
        assert!(!bank.shards[0].take(1));
        bank.settle();
        assert!(bank.shards[0].granted + bank.shards[1].granted <= 10);
        assert!(!bank.shards[1].take(4), "two are left");
        bank.settle();
        assert!(bank.shards[1].granted <= 2, "{}", bank.shards[1].granted);
    }

    #[test]
    fn words_of_others_are_not_ours() {
        let mut treasury = Treasury::new(1, SOURCE);
        let mut hear = |body| {
            let event = Event { seq: 1, at: Timestamp(1), body };
            treasury.handle_event(ShardId(0), &event, |_, command| panic!("{command:?}"));
        };
        hear(Body::Done { source: SOURCE, token: 0, reason: Reason::None });
        hear(Body::Done { source: Source::default(), token: 0, reason: Reason::None });
        hear(Body::Halt { security: SecurityId(1), on: true });
    }
}
