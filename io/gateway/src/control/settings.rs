//! The settings that the shards need.

use pitlane_config::time_zone::Zone;
use pitlane_config::{Config, RiskRules};
use pitlane_engine::command::{RiskLimits, Scope};
use pitlane_engine::id::{SecurityId, StrategyId};
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::{Day, TimeOfDay, Timestamp};

use super::schedule::ExchangeSchedule;
use super::settlement::SettlementPrices;
use crate::strategies;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControlSettings {
    /// Limits of strategies and accounts. They apply from the start and replace earlier ones.
    pub limits: Vec<(Scope, RiskLimits)>,
    /// Securities that a strategy or an account may not trade; earlier restrictions remain.
    pub restrictions: Vec<(Scope, SecurityId)>,
    /// Strategies that run from the start.
    pub running: Vec<StrategyId>,
    /// Securities that the server itself subscribes to, so that they are quoted.
    pub followed: Vec<SecurityId>,
    /// Time of day at which the trading day changes, in the time zone `zone`.
    pub rollover: TimeOfDay,
    pub zone: Zone,
    pub schedule: ExchangeSchedule,
    /// Prices at which expired securities are settled.
    pub settlement: SettlementPrices,
}

impl ControlSettings {
    /// Takes the limits from the config. Every strategy that starts automatically and does not run
    /// in this process is running; the server subscribes to every security.
    pub fn of(config: &Config, reference: &RefData) -> ControlSettings {
        // The runner leads the strategies of this process.
        let here = strategies::run_here(&config.strategies, reference);
        let started =
            reference.strategies().iter().filter(|row| row.auto_activate && !here.contains(&row.id));
        let mut control_settings = ControlSettings {
            running: started.map(|row| row.id).collect(),
            followed: reference.securities().iter().map(|row| row.id).collect(),
            rollover: config.service.trading_day_rollover,
            zone: config.service.timezone.clone(),
            schedule: ExchangeSchedule::of(config, reference),
            settlement: SettlementPrices::of(config, reference),
            ..ControlSettings::default()
        };
        for row in reference.strategies() {
            control_settings.rule(Scope::Strategy(row.id), config.risk.of_strategy(&row.name), reference);
        }
        for row in reference.accounts() {
            control_settings.rule(Scope::Account(row.id), config.risk.of_account(&row.name), reference);
        }
        control_settings
    }

    fn rule(&mut self, scope: Scope, rules: &RiskRules, reference: &RefData) {
        self.limits.push((scope, rules.limits));
        self.restrictions
            .extend(rules.restricted_ids(reference).into_iter().map(|security| (scope, security)));
    }

    /// Returns when the next trading day begins.
    pub(super) fn tomorrow(&self, today: Day) -> Timestamp {
        self.zone.instant(Day(today.0 + 1), self.rollover)
    }

    /// Returns the trading day at a time.
    pub(super) fn day_at(&self, now: Timestamp) -> Day {
        let (day, time) = self.zone.local(now);
        if time < self.rollover { Day(day.0 - 1) } else { day }
    }
}
