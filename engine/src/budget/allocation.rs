//! One limit, the part of each shard, and the shards that want more.

use crate::command::{BudgetAct, BudgetChange, BudgetKind, Command, CommandKind, Scope};
use crate::event::BudgetUse;
use crate::id::{ShardId, Source};
use crate::index::index_u8;

/// Token of commands whose completion the pool does not wait for.
pub(super) const NO_TOKEN: u32 = u32::MAX;

/// One limit and the part of each shard.
///
/// Invariant: a part is at least what the shard has or will have. When the pool grants a part, all
/// parts together are within the limit. They exceed it only after the limit was lowered, until
/// enough has been returned.
#[derive(Debug)]
pub(super) struct Allocation {
    source: Source,
    number: u32,
    scope: Scope,
    kind: BudgetKind,
    limit: LimitState,
    pub parts: Vec<ShardPart>,
    /// Shard that is served first, so that no shard is always last.
    next: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LimitState {
    /// The limit is not known yet. The pool listens to the shards, which may still have parts from
    /// before a restart.
    Unknown,
    Of(i64),
    Lifted,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ShardPart {
    /// Whether the shard knows the limit.
    knows_limit: bool,
    pub granted: i64,
    /// What the shard last reported it has. Less than `granted` if grants are in transit or the
    /// shard gave up a part by itself.
    reported: i64,
    /// What the shard last reported it uses.
    used: i64,
    want: Want,
    recall: Option<Recall>,
    /// Whether the shard was already asked in this round.
    tried: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Want {
    #[default]
    Nothing,
    /// Its use has passed half of its part, so it could use more.
    Some,
    /// An order was refused for want of this amount.
    Need(i64),
}

/// A recall that the shard has not completed.
#[derive(Clone, Copy, Debug)]
struct Recall {
    amount: i64,
    /// Amount granted since the recall was sent.
    since: i64,
    /// Whether the shard has reported since then.
    is_answered: bool,
    /// Whether the limit was lifted meanwhile, so that the returned amount belongs to no limit.
    void: bool,
}

impl ShardPart {
    /// Returns what the other shards may not have: the part, or the use where that is higher.
    fn claim(&self) -> i64 {
        self.granted.max(self.used)
    }

    fn unused(&self) -> i64 {
        self.granted.saturating_sub(self.used.max(0)).max(0)
    }
}

impl Allocation {
    pub(super) fn new(
        source: Source,
        number: u32,
        (scope, kind): (Scope, BudgetKind),
        shards: u8,
    ) -> Allocation {
        let parts = vec![ShardPart::default(); shards as usize];
        Allocation { source, number, scope, kind, limit: LimitState::Unknown, parts, next: 0 }
    }

    pub(super) fn lift(&mut self, out: &mut impl FnMut(ShardId, Command)) {
        if self.limit == LimitState::Lifted {
            return;
        }
        self.limit = LimitState::Lifted;
        for shard in 0..self.parts.len() {
            let recall = self.parts[shard].recall.map(|recall| Recall { void: true, ..recall });
            self.parts[shard] = ShardPart { recall, ..ShardPart::default() };
            self.send(shard, BudgetAct::Lift, out);
        }
    }

    pub(super) fn set_limit(&mut self, limit: i64, out: &mut impl FnMut(ShardId, Command)) {
        self.limit = LimitState::Of(limit);
        let even = split(limit, self.parts.len());
        for (shard, part) in (0..self.parts.len()).zip(even) {
            if !self.parts[shard].knows_limit {
                let part = part.min(self.free());
                self.parts[shard].knows_limit = true;
                self.parts[shard].granted = part;
                self.send(shard, BudgetAct::Set(part), out);
            }
        }
        let more = split(self.free(), self.parts.len());
        for (shard, more) in (0..self.parts.len()).zip(more) {
            self.grant(shard, more, out);
        }
        self.begin_round();
        self.recall_debt(out);
    }

    pub(super) fn handle_use(
        &mut self,
        shard: ShardId,
        usage: &BudgetUse,
        out: &mut impl FnMut(ShardId, Command),
    ) {
        let part = &mut self.parts[shard.0 as usize];
        if self.limit == LimitState::Lifted || part.recall.is_some_and(|recall| recall.void) {
            return;
        }
        (part.reported, part.used) = (usage.granted, usage.used);
        if self.limit == LimitState::Unknown {
            (part.knows_limit, part.granted) = (true, usage.granted);
            return;
        }
        assert!(usage.returned >= 0, "a return is not a grant");
        assert!(usage.returned <= part.granted, "a shard returns no more than it has");
        part.granted -= usage.returned;
        let has_passed_half = part.recall.is_none() && usage.used > usage.granted / 2;
        if let Some(recall) = &mut part.recall {
            recall.is_answered = true;
        }
        if usage.wanting > 0 {
            part.want = Want::Need(usage.wanting);
        } else if has_passed_half && part.want == Want::Nothing {
            part.want = Want::Some;
        }
        // An answer to a recall starts no round. Otherwise two shards that both want more would
        // recall from each other without end.
        if usage.wanting > 0 || has_passed_half {
            self.begin_round();
        }
        self.serve(out);
    }

    /// Completes a recall. Everything sent to the shard before it has arrived, so the shard's own
    /// report is exact except for what was granted since.
    pub(super) fn handle_done(&mut self, shard: ShardId, out: &mut impl FnMut(ShardId, Command)) {
        let part = &mut self.parts[shard.0 as usize];
        let Some(recall) = part.recall.take() else { return };
        if recall.void {
            return;
        }
        if recall.is_answered {
            part.granted = part.granted.min(part.reported.saturating_add(recall.since));
        }
        self.serve(out);
        self.recall_debt(out);
    }

    /// Grants what is free to the shards that want it, and recalls for those that still want more.
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
            let is_satisfied = match part.want {
                Want::Nothing => true,
                Want::Some => more > 0,
                Want::Need(amount) => part.unused() >= amount && (more > 0 || part.reported >= part.granted),
            };
            if is_satisfied {
                part.want = Want::Nothing;
                self.next = (shard + 1) % shards;
            } else {
                self.recall_for(shard, out);
            }
        }
    }

    /// Recalls from the shard with the most unused budget, one recall at a time. When all shards
    /// have been asked, the shard must wait until it asks again.
    fn recall_for(&mut self, shard: usize, out: &mut impl FnMut(ShardId, Command)) {
        if self.parts.iter().any(|part| part.recall.is_some()) {
            return;
        }
        let part = &self.parts[shard];
        if part.reported < part.granted && !part.tried {
            // The shard has less than the pool has granted. A recall of zero shows whether the rest
            // is in transit or was given up.
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
        // Half of the difference makes both equal, so two shards never take the same part from each
        // other in turn.
        let half = (self.parts[donor].unused() - own) / 2;
        match need {
            Some(need) => self.recall(donor, need.max(half), out),
            None if half > 0 => self.recall(donor, half, out),
            None => self.parts[shard].want = Want::Nothing,
        }
    }

    /// Recalls what is granted above a lowered limit.
    pub(super) fn recall_debt(&mut self, out: &mut impl FnMut(ShardId, Command)) {
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

    /// Returns the shard with the most unused budget that has not been asked in this round. The
    /// reported use may be old, so a shard without unused budget is asked too, but last.
    fn donor(&self, besides: Option<usize>) -> Option<usize> {
        let can_give = |shard: &usize| {
            let part = &self.parts[*shard];
            Some(*shard) != besides && !part.tried && part.recall.is_none() && part.claim() > 0
        };
        let shards = (0..self.parts.len()).rev().filter(can_give);
        shards.max_by_key(|shard| self.parts[*shard].unused())
    }

    pub(super) fn begin_round(&mut self) {
        for part in &mut self.parts {
            part.tried = false;
        }
    }

    fn recall(&mut self, shard: usize, amount: i64, out: &mut impl FnMut(ShardId, Command)) {
        let part = &mut self.parts[shard];
        assert!(part.recall.is_none(), "one recall at a time");
        part.tried = true;
        part.recall = Some(Recall { amount, since: 0, is_answered: false, void: false });
        self.send(shard, BudgetAct::Recall(amount), out);
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
        self.send(shard, BudgetAct::Grant(amount), out);
        assert!(self.balance() >= 0, "the parts are within the limit");
    }

    fn send(&self, shard: usize, act: BudgetAct, out: &mut impl FnMut(ShardId, Command)) {
        let token = if matches!(act, BudgetAct::Recall(_)) { self.number } else { NO_TOKEN };
        let Allocation { source, scope, kind, .. } = *self;
        out(
            ShardId(index_u8(shard)),
            Command::new(source, token, CommandKind::Budget(BudgetChange { scope, kind, act })),
        );
    }

    /// Returns the amount that no shard has.
    fn free(&self) -> i64 {
        self.balance().max(0)
    }

    /// Returns the amount granted above the limit.
    pub(super) fn debt(&self) -> i64 {
        self.balance().min(0).saturating_neg()
    }

    pub(super) fn balance(&self) -> i64 {
        let LimitState::Of(limit) = self.limit else { return 0 };
        self.parts.iter().fold(limit, |rest, part| rest.saturating_sub(part.claim().max(0)))
    }
}

/// Splits an amount into `parts` parts. The first parts are larger by one if the amount does not
/// divide evenly.
pub(super) fn split(amount: i64, parts: usize) -> impl Iterator<Item = i64> {
    let parts = parts as i64;
    let (even, rest) = if parts == 0 { (0, 0) } else { (amount / parts, amount % parts) };
    (0..parts).map(move |part| even + (part < rest) as i64)
}
