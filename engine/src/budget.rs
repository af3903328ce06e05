//! Distributes limits that span securities (open orders, orders per second, credit) over the
//! shards. A shard decides with its own part at once; the pool moves parts to the shards that need
//! them.
//!
//! ```text
//!            Set, Grant                 used, wanting
//! BudgetPool ─────────────► shard ─────────────────────────► BudgetPool: grants what is free, or recalls from the
//!            Recall               returned, then Done                shard with the most to spare
//! ```
//!
//! A limit may be refused early, but it is never exceeded: the pool counts as granted what a shard
//! has, or may have once every message in transit has arrived, and it grants only what is not
//! granted. A recall counts when it is answered.
//!
//! The shards must keep three promises. They handle commands in the order in which they were sent.
//! They answer a recall with [`EventKind::Budget`] and then [`EventKind::Done`] with its token. A
//! shard may give up a part by itself when a limit falls, but it never takes one; where it takes
//! its even part by itself as a new limit arrives, that is the part the pool sets.

mod allocation;

use std::collections::BTreeMap;

use self::allocation::{Allocation, NO_TOKEN};
use crate::command::{BudgetAct, BudgetChange, BudgetKind, Command, CommandKind, RiskLimits, Scope};
use crate::event::{Event, EventKind};
use crate::id::{ShardId, Source};
use crate::index::index_u32;

/// All limits that are distributed in parts.
#[derive(Debug)]
pub struct BudgetPool {
    shards: u8,
    /// Source under which the pool sends commands.
    source: Source,
    allocations: Vec<Allocation>,
    /// Index of each allocation, which is also the token of its recalls.
    numbers: BTreeMap<(Scope, BudgetKind), u32>,
}

impl BudgetPool {
    /// Creates a pool. No other component uses this source, because the pool recognizes its recalls
    /// by their tokens.
    pub fn new(shards: u8, source: Source) -> BudgetPool {
        assert!(shards >= 1, "there is at least one shard");
        BudgetPool { shards, source, allocations: Vec::new(), numbers: BTreeMap::new() }
    }

    /// Sets, changes or lifts limits. A new limit is split evenly, and the lowest shards get the
    /// remainder. The pool recalls what a lowered limit no longer allows and grants nothing until
    /// enough has come back.
    pub fn set_limits(&mut self, scope: Scope, limits: &RiskLimits, mut out: impl FnMut(ShardId, Command)) {
        let credit = match scope {
            Scope::Account(_) => limits.credit.raw(),
            Scope::Strategy(_) => 0,
            // Limits of these scopes do not span shards.
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
            let allocation = &mut self.allocations[number as usize];
            match limit {
                0 => allocation.lift(&mut out),
                _ => allocation.set_limit(limit.max(0), &mut out),
            }
        }
    }

    /// Asks every shard what it has of the limits of a scope. After a restart the caller does this,
    /// and waits for the answers, before [`BudgetPool::set_limits`]. The shards then keep what they
    /// had and use, and no shard is set to less while another already has more.
    pub fn ask(&self, scope: Scope, mut out: impl FnMut(ShardId, Command)) {
        for kind in BudgetKind::ALL {
            let body = CommandKind::Budget(BudgetChange { scope, kind, act: BudgetAct::Recall(0) });
            for shard in 0..self.shards {
                out(ShardId(shard), Command::new(self.source, NO_TOKEN, body));
            }
        }
    }

    /// Applies the budget use that a shard reports, and moves parts to where they are needed.
    pub fn handle_event(&mut self, shard: ShardId, event: &Event, mut out: impl FnMut(ShardId, Command)) {
        match &event.body {
            EventKind::Budget(usage) => {
                let number = self.number(usage.scope, usage.kind);
                self.allocations[number as usize].handle_use(shard, usage, &mut out);
            }
            EventKind::Done { source, token, .. } => {
                let is_ours = *source == self.source && (*token as usize) < self.allocations.len();
                if is_ours {
                    self.allocations[*token as usize].handle_done(shard, &mut out);
                }
            }
            EventKind::Order(_)
            | EventKind::Status(_)
            | EventKind::Refused(_)
            | EventKind::Forgotten { .. }
            | EventKind::Booked(_)
            | EventKind::Adjusted { .. }
            | EventKind::Tick(_)
            | EventKind::Depth(_)
            | EventKind::Levels(_)
            | EventKind::BookOrders(_)
            | EventKind::MarketTrade(_)
            | EventKind::Subscription { .. }
            | EventKind::Session { .. }
            | EventKind::Halt { .. }
            | EventKind::TradingDay { .. }
            | EventKind::Phase { .. }
            | EventKind::Adapter { .. }
            | EventKind::Limits { .. }
            | EventKind::Restrict { .. }
            | EventKind::Kill { .. }
            | EventKind::Directed { .. }
            | EventKind::Sender { .. }
            | EventKind::SpecialTerms(_)
            | EventKind::Exposure { .. }
            | EventKind::Sent { .. }
            | EventKind::Alert { .. }
            | EventKind::ToVenue(_)
            | EventKind::SnapshotBegin { .. }
            | EventKind::SnapshotEnd { .. }
            | EventKind::UsedIds(_) => {}
        }
    }

    /// Repeats the recalls that a lowered limit still needs. Call it about once a second: shards do
    /// not report when their use falls.
    pub fn remind(&mut self, mut out: impl FnMut(ShardId, Command)) {
        for allocation in &mut self.allocations {
            if allocation.debt() > 0 {
                allocation.begin_round();
                allocation.recall_debt(&mut out);
            }
        }
    }

    fn number(&mut self, scope: Scope, kind: BudgetKind) -> u32 {
        let next = index_u32(self.allocations.len());
        let number = *self.numbers.entry((scope, kind)).or_insert(next);
        if number == next {
            self.allocations.push(Allocation::new(self.source, number, (scope, kind), self.shards));
        }
        number
    }
}

#[cfg(test)]
mod tests;
