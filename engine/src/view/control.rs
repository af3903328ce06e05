//! State that concerns more than one order: sessions, phases, adapters, limits, switches; and the
//! last alerts.
//!
//! Every shard has this state and reports it, so the view keeps each shard's value; [`super`] says
//! which one counts.

use std::collections::VecDeque;

use super::{ShardFacts, SnapshotMark, View};
use crate::command::{BudgetKind, RiskLimits, Scope, StrategyPhase, TradingSession};
use crate::directive::{Directive, DirectiveKey, DirectiveVersion};
use crate::event::{Alert, BudgetUse};
use crate::id::{AccountId, AdapterId, ExchangeId, OrderHandle, SecurityId, ShardId, StrategyId};
use crate::index::index_u8;
use crate::number::Money;
use crate::reason::Reason;
use crate::time::Timestamp;

/// Number of shards in which a switch is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchState {
    None,
    Some,
    All,
}

/// A condition that a person should look at, as a shard reported it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlertRecord {
    pub at: Timestamp,
    pub shard: ShardId,
    pub seq: u64,
    pub alert: Alert,
    pub order: OrderHandle,
    pub security: SecurityId,
    pub reason: Reason,
}

impl View {
    /// Returns the session of an exchange; `None` if no shard has reported it.
    pub fn session(&self, exchange: ExchangeId) -> Option<TradingSession> {
        lowest(&self.control.sessions, exchange).copied()
    }

    pub fn phase(&self, strategy: StrategyId) -> Option<StrategyPhase> {
        lowest(&self.control.phases, strategy).copied()
    }

    /// Returns the known adapters, by id, and whether they are connected, which means that no shard
    /// reports otherwise.
    pub fn adapters(&self) -> impl Iterator<Item = (AdapterId, bool)> {
        let keys = distinct(self.control.adapters.iter().map(|((adapter, _), _)| adapter));
        keys.map(|adapter| {
            let states = self.control.adapters.from((adapter, ShardId(0)));
            let mut states = states.take_while(|((other, _), _)| *other == adapter);
            (adapter, states.all(|(_, connected)| *connected))
        })
    }

    /// Returns whether an adapter is connected; `None` if no shard has reported it.
    pub fn adapter(&self, adapter: AdapterId) -> Option<bool> {
        self.adapters().find(|(other, _)| *other == adapter).map(|(_, connected)| connected)
    }

    pub fn limits(&self, scope: Scope) -> Option<&RiskLimits> {
        lowest(&self.control.limits, scope)
    }

    /// Returns all limits, by scope.
    pub fn all_limits(&self) -> impl Iterator<Item = (Scope, &RiskLimits)> {
        let keys = distinct(self.control.limits.iter().map(|((scope, _), _)| scope));
        keys.filter_map(|scope| self.limits(scope).map(|limits| (scope, limits)))
    }

    /// Returns the restricted securities, and their scopes.
    pub fn restrictions(&self) -> impl Iterator<Item = (Scope, SecurityId)> {
        distinct(self.control.restricted.iter().map(|((scope, security, _), _)| (scope, security)))
    }

    /// Returns the kill switches that are on.
    pub fn kills(&self) -> impl Iterator<Item = Scope> {
        distinct(self.control.kills.iter().map(|((scope, _), _)| scope))
    }

    /// Returns in how many shards the kill switch of a scope is on.
    pub fn switch(&self, scope: Scope) -> SwitchState {
        let is_on = |shard: u8| self.control.kills.get(&(scope, ShardId(shard))).is_some();
        let shards = index_u8(self.shards.len());
        match (0..shards).filter(|shard| is_on(*shard)).count() {
            0 => SwitchState::None,
            on if on == shards as usize => SwitchState::All,
            _ => SwitchState::Some,
        }
    }

    /// Returns the newest directive for each key, by key.
    pub fn directives(&self) -> impl Iterator<Item = (Directive, DirectiveVersion)> {
        let keys = distinct(self.control.directives.iter().map(|((key, _), _)| key));
        keys.filter_map(|key| self.directive(key))
    }

    /// Returns the newest directive for a key that any shard has applied.
    pub fn directive(&self, key: DirectiveKey) -> Option<(Directive, DirectiveVersion)> {
        let rows = self.control.directives.from((key, ShardId(0)));
        let rows = rows.take_while(|((other, _), _)| *other == key);
        rows.map(|(_, row)| *row).max_by_key(|(_, version)| *version)
    }

    /// Returns the shards that have not applied the newest directive for a key.
    pub fn unconfirmed(&self, key: DirectiveKey) -> impl Iterator<Item = ShardId> {
        let newest = self.directive(key).map_or(DirectiveVersion::default(), |(_, version)| version);
        let version = move |shard| {
            let row = self.control.directives.get(&(key, shard));
            row.map_or(DirectiveVersion::default(), |(_, version)| *version)
        };
        (0..index_u8(self.shards.len())).map(ShardId).filter(move |shard| version(*shard) < newest)
    }

    /// Returns a number that rises whenever [`View::directives`] may have changed.
    pub fn directives_seen(&self) -> u64 {
        self.control.directives_seen
    }

    /// Returns the credit that an account uses, as the shards have last answered a recall of its
    /// budget. `None` until every shard has answered since its last snapshot, and if it is more
    /// than can be counted.
    pub fn credit_used(&self, account: AccountId) -> Option<Money> {
        let mut sum = Money::ZERO;
        for shard in self.shard_ids() {
            sum = sum.checked_add(*self.control.credit_uses.get(&(account, shard))?)?;
        }
        Some(sum)
    }

    /// Returns the shards that have not reported the credit that an account uses.
    pub fn credit_unreported(&self, account: AccountId) -> impl Iterator<Item = ShardId> {
        self.shard_ids().filter(move |shard| self.control.credit_uses.get(&(account, *shard)).is_none())
    }

    /// Drops the reported uses of credit, so that those that follow answer the next recall.
    pub fn forget_credit_uses(&mut self) {
        self.control.credit_uses = ShardFacts::default();
    }

    fn shard_ids(&self) -> impl Iterator<Item = ShardId> + use<> {
        (0..index_u8(self.shards.len())).map(ShardId)
    }

    /// Returns the last alerts, newest first.
    pub fn alerts(&self) -> impl Iterator<Item = &AlertRecord> {
        self.control.alerts.iter().rev()
    }

    /// Returns the number of alerts so far, including those no longer kept.
    pub fn alerts_seen(&self) -> u64 {
        self.control.alerts_seen
    }
}

#[derive(Debug)]
pub(super) struct ControlState {
    sessions: ShardFacts<(ExchangeId, ShardId), TradingSession>,
    phases: ShardFacts<(StrategyId, ShardId), StrategyPhase>,
    adapters: ShardFacts<(AdapterId, ShardId), bool>,
    limits: ShardFacts<(Scope, ShardId), RiskLimits>,
    /// Credit that each shard has last reported as used.
    credit_uses: ShardFacts<(AccountId, ShardId), Money>,
    /// Only restricted securities.
    restricted: ShardFacts<(Scope, SecurityId, ShardId), ()>,
    /// Only switches that are on.
    kills: ShardFacts<(Scope, ShardId), ()>,
    directives: ShardFacts<(DirectiveKey, ShardId), (Directive, DirectiveVersion)>,
    /// Rises whenever the table of directives may have changed.
    directives_seen: u64,
    /// Newest last, at most `alerts_max`.
    alerts: VecDeque<AlertRecord>,
    alerts_max: usize,
    alerts_seen: u64,
}

impl ControlState {
    pub(super) fn new(alerts_max: usize) -> ControlState {
        ControlState {
            sessions: ShardFacts::default(),
            phases: ShardFacts::default(),
            adapters: ShardFacts::default(),
            limits: ShardFacts::default(),
            credit_uses: ShardFacts::default(),
            restricted: ShardFacts::default(),
            kills: ShardFacts::default(),
            directives: ShardFacts::default(),
            directives_seen: 0,
            alerts: VecDeque::new(),
            alerts_max,
            alerts_seen: 0,
        }
    }

    pub(super) fn session_is(&mut self, exchange: ExchangeId, session: TradingSession, mark: SnapshotMark) {
        self.sessions.set((exchange, mark.shard), session, mark);
    }

    pub(super) fn phase_is(&mut self, strategy: StrategyId, phase: StrategyPhase, mark: SnapshotMark) {
        self.phases.set((strategy, mark.shard), phase, mark);
    }

    pub(super) fn adapter_is(&mut self, adapter: AdapterId, connected: bool, mark: SnapshotMark) {
        self.adapters.set((adapter, mark.shard), connected, mark);
    }

    pub(super) fn limits_are(&mut self, scope: Scope, limits: RiskLimits, mark: SnapshotMark) {
        self.limits.set((scope, mark.shard), limits, mark);
    }

    pub(super) fn budget_use_is(&mut self, usage: &BudgetUse, mark: SnapshotMark) {
        if let (Scope::Account(account), BudgetKind::Credit) = (usage.scope, usage.kind) {
            self.credit_uses.set((account, mark.shard), Money::from_raw(usage.used), mark);
        }
    }

    pub(super) fn restrict(&mut self, scope: Scope, security: SecurityId, on: bool, mark: SnapshotMark) {
        self.restricted.set_if(on, (scope, security, mark.shard), (), mark);
    }

    pub(super) fn kill(&mut self, scope: Scope, on: bool, mark: SnapshotMark) {
        self.kills.set_if(on, (scope, mark.shard), (), mark);
    }

    pub(super) fn directed(&mut self, directive: Directive, version: DirectiveVersion, mark: SnapshotMark) {
        self.directives_seen += 1;
        self.directives.set((directive.key(), mark.shard), (directive, version), mark);
    }

    pub(super) fn alert(&mut self, record: AlertRecord) {
        self.alerts_seen += 1;
        self.alerts.push_back(record);
        if self.alerts.len() > self.alerts_max {
            self.alerts.pop_front();
        }
    }

    pub(super) fn sweep(&mut self, mark: SnapshotMark) {
        self.sessions.sweep(mark);
        self.phases.sweep(mark);
        self.adapters.sweep(mark);
        self.limits.sweep(mark);
        self.credit_uses.sweep(mark);
        self.restricted.sweep(mark);
        self.kills.sweep(mark);
        self.directives.sweep(mark);
        self.directives_seen += 1;
    }
}

/// Returns the value of the lowest shard that has one.
fn lowest<K: Ord + Copy, V>(facts: &ShardFacts<(K, ShardId), V>, key: K) -> Option<&V> {
    facts.from((key, ShardId(0))).next().filter(|((other, _), _)| *other == key).map(|(_, value)| value)
}

/// Returns each key once, for sorted keys.
fn distinct<K: PartialEq + Copy>(keys: impl Iterator<Item = K>) -> impl Iterator<Item = K> {
    let mut last = None;
    keys.filter(move |key| last.replace(*key) != Some(*key))
}
