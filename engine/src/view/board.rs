//! What holds for more than one order: sessions, phases, adapters, limits, switches; and the last alerts.
//!
//! Every shard is told these things and says them again, so each shard's word is kept; [`super`] tells who is heard.

use std::collections::VecDeque;

use super::{Mark, Told, View};
use crate::command::{Limits, Phase, Scope, Session};
use crate::directive::{Directive, DirectiveKey, Version};
use crate::event::Alert;
use crate::id::{AdapterId, ExchangeId, OrderHandle, SecurityId, ShardId, StrategyId};
use crate::reason::Reason;
use crate::time::Timestamp;

/// In how many shards a switch is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchState {
    None,
    Some,
    All,
}

/// Something a person should look at, as a shard said it.
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
    /// What an exchange is doing; None if no shard has said.
    pub fn session(&self, exchange: ExchangeId) -> Option<Session> {
        lowest(&self.board.sessions, exchange).copied()
    }

    pub fn phase(&self, strategy: StrategyId) -> Option<Phase> {
        lowest(&self.board.phases, strategy).copied()
    }

    /// Adapters anything is known of, by id, and whether they are connected: no shard says that they are not.
    pub fn adapters(&self) -> impl Iterator<Item = (AdapterId, bool)> {
        let keys = distinct(self.board.adapters.iter().map(|((adapter, _), _)| adapter));
        keys.map(|adapter| {
            let words = self.board.adapters.from((adapter, ShardId(0)));
            let mut words = words.take_while(|((other, _), _)| *other == adapter);
            (adapter, words.all(|(_, connected)| *connected))
        })
    }

    /// Whether an adapter is connected; None if no shard has said.
    pub fn adapter(&self, adapter: AdapterId) -> Option<bool> {
        self.adapters().find(|(other, _)| *other == adapter).map(|(_, connected)| connected)
    }

    pub fn limits(&self, scope: Scope) -> Option<&Limits> {
        lowest(&self.board.limits, scope)
    }

    /// All limits, by scope.
    pub fn all_limits(&self) -> impl Iterator<Item = (Scope, &Limits)> {
        let keys = distinct(self.board.limits.iter().map(|((scope, _), _)| scope));
        keys.filter_map(|scope| self.limits(scope).map(|limits| (scope, limits)))
    }

    /// Securities that may not be traded, and by whom.
    pub fn restrictions(&self) -> impl Iterator<Item = (Scope, SecurityId)> {
        distinct(self.board.restricted.iter().map(|((scope, security, _), _)| (scope, security)))
    }

    /// Kill switches that are on.
    pub fn kills(&self) -> impl Iterator<Item = Scope> {
        distinct(self.board.kills.iter().map(|((scope, _), _)| scope))
    }

    /// Where the kill switch of a scope is on.
    pub fn switch(&self, scope: Scope) -> SwitchState {
        let is_on = |shard: u8| self.board.kills.get(&(scope, ShardId(shard))).is_some();
        let shards = self.shards.len() as u8;
        match (0..shards).filter(|shard| is_on(*shard)).count() {
            0 => SwitchState::None,
            on if on == shards as usize => SwitchState::All,
            _ => SwitchState::Some,
        }
    }

    /// The newest directive for each key, by key.
    pub fn directives(&self) -> impl Iterator<Item = (Directive, Version)> {
        let keys = distinct(self.board.directives.iter().map(|((key, _), _)| key));
        keys.filter_map(|key| self.directive(key))
    }

    /// The newest directive for a key that any shard has applied.
    pub fn directive(&self, key: DirectiveKey) -> Option<(Directive, Version)> {
        let rows = self.board.directives.from((key, ShardId(0)));
        let rows = rows.take_while(|((other, _), _)| *other == key);
        rows.map(|(_, row)| *row).max_by_key(|(_, version)| *version)
    }

    /// Shards that have not applied the newest directive for a key.
    pub fn unconfirmed(&self, key: DirectiveKey) -> impl Iterator<Item = ShardId> {
        let newest = self.directive(key).map_or(Version::default(), |(_, version)| version);
        let version = move |shard| {
            let row = self.board.directives.get(&(key, shard));
            row.map_or(Version::default(), |(_, version)| *version)
        };
        (0..self.shards.len() as u8).map(ShardId).filter(move |shard| version(*shard) < newest)
    }

    /// Rises whenever [`View::directives`] may have changed.
    pub fn directives_seen(&self) -> u64 {
        self.board.directives_seen
    }

    /// The last alerts, newest first.
    pub fn alerts(&self) -> impl Iterator<Item = &AlertRecord> {
        self.board.alerts.iter().rev()
    }

    /// How many alerts there have been, those no longer kept included.
    pub fn alerts_seen(&self) -> u64 {
        self.board.alerts_seen
    }
}

#[derive(Debug)]
pub(super) struct Board {
    sessions: Told<(ExchangeId, ShardId), Session>,
    phases: Told<(StrategyId, ShardId), Phase>,
    adapters: Told<(AdapterId, ShardId), bool>,
    limits: Told<(Scope, ShardId), Limits>,
    /// Only what is restricted.
    restricted: Told<(Scope, SecurityId, ShardId), ()>,
    /// Only what is on.
    kills: Told<(Scope, ShardId), ()>,
    directives: Told<(DirectiveKey, ShardId), (Directive, Version)>,
    /// Rises whenever the table of directives may have changed.
    directives_seen: u64,
    /// Newest last, at most `alerts_max`.
    alerts: VecDeque<AlertRecord>,
    alerts_max: usize,
    alerts_seen: u64,
}

impl Board {
    pub(super) fn new(alerts_max: usize) -> Board {
        Board {
            sessions: Told::default(),
            phases: Told::default(),
            adapters: Told::default(),
            limits: Told::default(),
            restricted: Told::default(),
            kills: Told::default(),
            directives: Told::default(),
            directives_seen: 0,
            alerts: VecDeque::new(),
            alerts_max,
            alerts_seen: 0,
        }
    }

    pub(super) fn session_is(&mut self, exchange: ExchangeId, session: Session, mark: Mark) {
        self.sessions.tell((exchange, mark.shard), session, mark);
    }

    pub(super) fn phase_is(&mut self, strategy: StrategyId, phase: Phase, mark: Mark) {
        self.phases.tell((strategy, mark.shard), phase, mark);
    }

    pub(super) fn adapter_is(&mut self, adapter: AdapterId, connected: bool, mark: Mark) {
        self.adapters.tell((adapter, mark.shard), connected, mark);
    }

    pub(super) fn limits_are(&mut self, scope: Scope, limits: Limits, mark: Mark) {
        self.limits.tell((scope, mark.shard), limits, mark);
    }

    pub(super) fn restrict(&mut self, scope: Scope, security: SecurityId, on: bool, mark: Mark) {
        self.restricted.tell_if(on, (scope, security, mark.shard), (), mark);
    }

    pub(super) fn kill(&mut self, scope: Scope, on: bool, mark: Mark) {
        self.kills.tell_if(on, (scope, mark.shard), (), mark);
    }

    pub(super) fn directed(&mut self, directive: Directive, version: Version, mark: Mark) {
        self.directives_seen += 1;
        self.directives.tell((directive.key(), mark.shard), (directive, version), mark);
    }

    pub(super) fn alert(&mut self, record: AlertRecord) {
        self.alerts_seen += 1;
        self.alerts.push_back(record);
        if self.alerts.len() > self.alerts_max {
            self.alerts.pop_front();
        }
    }

    pub(super) fn sweep(&mut self, mark: Mark) {
        self.sessions.sweep(mark);
        self.phases.sweep(mark);
        self.adapters.sweep(mark);
        self.limits.sweep(mark);
        self.restricted.sweep(mark);
        self.kills.sweep(mark);
        self.directives.sweep(mark);
        self.directives_seen += 1;
    }
}

/// The word of the lowest shard that has one.
fn lowest<K: Ord + Copy, V>(told: &Told<(K, ShardId), V>, key: K) -> Option<&V> {
    told.from((key, ShardId(0))).next().filter(|((other, _), _)| *other == key).map(|(_, value)| value)
}

/// Each key once, of keys that are sorted.
fn distinct<K: PartialEq + Copy>(keys: impl Iterator<Item = K>) -> impl Iterator<Item = K> {
    let mut last = None;
    keys.filter(move |key| last.replace(*key) != Some(*key))
}
