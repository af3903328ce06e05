//! Checks of settings that name strategies, accounts, exchanges and securities, once the reference
//! data are loaded.

use std::collections::BTreeMap;

use pitlane_engine::id::{ExchangeId, SecurityId};
use pitlane_engine::refdata::{AdditionError, KnownStrategies, RefData};
use pitlane_engine::settings::{ShardSettings, VenueSettings};
use pitlane_strategy::host::StrategyFactory;
use pitlane_strategy::parameters::{BadParameter, Parameters, SECURITIES};
use pitlane_strategy::registry::Registry;

use super::fault::ConfigFaults;
use super::params::Params;
use super::risk::{Restricted, RiskRules};
use super::settlement::SettlementConfig;
use super::{Config, ServiceMode, SettingOrigin, StrategyConfig};
use crate::diagnostics::suggestion;

/// Adapter of exchanges and accounts at the simulated venue.
const SIMULATED: &str = "SIM";
/// Strategy of the platform itself.
const SERVER: &str = "SERVER";

/// A strategy that the settings add to the reference data, as text for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdditionNote {
    pub text: String,
    /// Whether the name resembles that of another strategy.
    pub is_suspect: bool,
}

impl Config {
    /// Returns the settings of every shard, with those of single exchanges. Unknown names are
    /// omitted; see [`Config::check_names`].
    pub fn shard_settings(&self, reference: &RefData) -> ShardSettings {
        let of = |(mic, settings): (&String, &VenueSettings)| {
            let row = reference.exchanges().iter().find(|row| row.mic == *mic);
            row.map(|row| (row.id, settings.clone()))
        };
        let venues: BTreeMap<ExchangeId, VenueSettings> = self.venue.exchange.iter().filter_map(of).collect();
        ShardSettings { venues, ..self.shard.clone() }
    }

    /// Returns the names of the strategies that the reference data must contain. A cluster adds
    /// none: its members have settings of their own, and must agree on the ids of all strategies.
    pub fn strategy_names(&self) -> Vec<&str> {
        match self.cluster.is_on() {
            true => Vec::new(),
            false => self.strategies.iter().map(|strategy| strategy.name.as_str()).collect(),
        }
    }

    /// Returns the reference data of the files with the strategies that only the settings name.
    /// `known` has the ids of earlier starts.
    pub fn add_strategies(
        &self,
        files: &RefData,
        known: &KnownStrategies,
        params: &Params,
    ) -> Result<RefData, ConfigFaults> {
        files.clone().with_strategies(self.strategy_names(), known).map_err(|errors| {
            let mut check = NameCheck { params, faults: ConfigFaults::default() };
            for AdditionError { name, problem } in errors {
                let at = self.strategies.iter().position(|strategy| strategy.name == name);
                check.fault(&format!("strategy.{}.name", at.unwrap_or_default()), problem);
            }
            check.faults
        })
    }

    /// Describes each strategy that the settings add to the reference data of the files; with a
    /// suggestion if its name resembles one of the files, because it may be a typing error.
    pub fn addition_notes(&self, files: &RefData) -> Vec<AdditionNote> {
        let known: Vec<&str> = files.strategies().iter().map(|row| row.name.as_str()).collect();
        let added = self.strategy_names().into_iter().filter(|name| !known.contains(name));
        let note = |name: &str| {
            let suggestion = suggestion(name, &known);
            let text = format!("the settings add the strategy {name} to the reference data{suggestion}");
            AdditionNote { text, is_suspect: !suggestion.is_empty() }
        };
        added.map(note).collect()
    }

    /// Reports every name in the settings that the reference data or the registry do not contain.
    pub fn check_names(
        &self,
        reference: &RefData,
        registry: &Registry,
        params: &Params,
    ) -> Result<(), ConfigFaults> {
        let mut check = NameCheck { params, faults: ConfigFaults::default() };
        let strategies: Vec<&str> = reference.strategies().iter().map(|row| row.name.as_str()).collect();
        let accounts: Vec<&str> = reference.accounts().iter().map(|row| row.name.as_str()).collect();
        let mics: Vec<&str> = reference.exchanges().iter().map(|row| row.mic.as_str()).collect();
        check.known("risk.strategy", self.risk.strategy.keys(), &strategies, "strategy");
        check.known("risk.account", self.risk.account.keys(), &accounts, "account");
        check.known("venue.exchange", self.venue.exchange.keys(), &mics, "exchange");
        check.known("calendar.exchange", self.calendar.exchange.keys(), &mics, "exchange");
        for name in
            self.settlement.prices.keys().filter(|name| SettlementConfig::ids(name, reference).is_empty())
        {
            check.fault(&format!("settlement.prices.{name}"), format!("there is no security {name}"));
        }
        check.restricted(&self.risk.strategies, "risk.strategies", reference);
        check.restricted(&self.risk.accounts, "risk.accounts", reference);
        for (name, rules) in &self.risk.strategy {
            check.restricted(rules, &format!("risk.strategy.{name}"), reference);
        }
        for (name, rules) in &self.risk.account {
            check.restricted(rules, &format!("risk.account.{name}"), reference);
        }
        for (at, session) in self.fix.sessions.iter().enumerate() {
            if let Some(name) = session.strategy.as_deref().filter(|name| !strategies.contains(name)) {
                let problem = format!("there is no strategy {name}{}", suggestion(name, &strategies));
                check.fault(&format!("fix.session.{at}.strategy"), problem);
            }
            let copied = [
                ("copy_strategies", "strategy", &session.copy_strategies, &strategies),
                ("copy_accounts", "account", &session.copy_accounts, &accounts),
            ];
            for (key, what, names, known) in copied {
                for name in names.iter().filter(|name| !known.contains(&name.as_str())) {
                    let problem = format!("there is no {what} {name}{}", suggestion(name, known));
                    check.fault(&format!("fix.session.{at}.{key}"), problem);
                }
            }
        }
        if let Some(security) = self.simulation.benchmark.as_ref().filter(|row| row.ids(reference).is_empty())
        {
            check.fault("simulation.benchmark", format!("there is no security {security}"));
        }
        self.check_strategies(reference, registry, &mut check);
        self.check_adapters(reference, &mut check);
        if check.faults.is_empty() { Ok(()) } else { Err(check.faults) }
    }

    /// Checks that each strategy is known, runs once, and has the parameters of its kind.
    fn check_strategies(&self, reference: &RefData, registry: &Registry, check: &mut NameCheck<'_>) {
        let names: Vec<&str> = reference.strategies().iter().map(|row| row.name.as_str()).collect();
        let kinds: Vec<&str> = registry.names().collect();
        for (at, strategy) in self.strategies.iter().enumerate() {
            let key = |key: &str| format!("strategy.{at}.{key}");
            let name = strategy.name.as_str();
            if !names.contains(&name) {
                let problem = format!("there is no strategy {name}{}", suggestion(name, &names));
                check.fault(&key("name"), problem + self.addition_hint());
            } else if name == SERVER || self.strategies[..at].iter().any(|other| other.name == name) {
                check.fault(&key("name"), format!("{name} cannot be run here, or not twice"));
            }
            let is_unknown = |security: &&Restricted| security.ids(reference).is_empty();
            let unknown: Vec<_> = strategy.securities.iter().filter(is_unknown).collect();
            for security in &unknown {
                check.fault(&key("securities"), format!("there is no security {security}"));
            }
            match strategy.make(reference, registry) {
                Ok(_) => {}
                // The process of the strategy may know the kind.
                Err(None) if self.service.mode == ServiceMode::Distributed => {}
                Err(None) => {
                    let kind = strategy.kind.as_str();
                    let problem = format!("there is no kind {kind}{}", suggestion(kind, &kinds));
                    check.fault(&key("kind"), problem);
                }
                // The list is wrong because a security of it is.
                Err(Some(bad)) if bad.name == SECURITIES && !unknown.is_empty() => {}
                Err(Some(BadParameter { name, problem })) => {
                    check.fault(&strategy.fault_key(at, &name), problem);
                }
            }
        }
    }

    /// Returns why a strategy that is missing was not added.
    fn addition_hint(&self) -> &'static str {
        match self.cluster.is_on() {
            true => "; all members of a cluster must have it in strategies.csv, with the same id",
            false => "",
        }
    }

    fn check_adapters(&self, reference: &RefData, check: &mut NameCheck<'_>) {
        for row in reference.exchanges() {
            let adapter = row.adapter_type.as_str();
            let configured = self.adapters.iter().any(|configured| configured.name == adapter);
            if adapter != SIMULATED && !configured {
                let problem =
                    format!("exchange {} wants the adapter {adapter}, which is not configured", row.mic);
                check.faults.add(&SettingOrigin::file("exchanges.csv"), "adapterType", problem);
            }
        }
    }
}

impl StrategyConfig {
    /// Returns the securities it is configured with.
    pub fn security_ids(&self, reference: &RefData) -> Vec<SecurityId> {
        self.securities.iter().flat_map(|security| security.ids(reference)).collect()
    }

    /// Returns the key of the setting that a kind refused, for the section at index `at`. A kind
    /// that refuses the securities names them as if they were a parameter.
    pub fn fault_key(&self, at: usize, name: &str) -> String {
        match name == SECURITIES && !self.parameters.contains_key(SECURITIES) {
            true => format!("strategy.{at}.{SECURITIES}"),
            false => format!("strategy.{at}.parameters.{name}"),
        }
    }

    /// Returns its constructor, or the fault of its parameters, or None as the fault if its kind is
    /// unknown.
    pub fn make(
        &self,
        reference: &RefData,
        registry: &Registry,
    ) -> Result<StrategyFactory, Option<BadParameter>> {
        let kind = registry.find(&self.kind).ok_or(None)?;
        let parameters = Parameters::new(self.parameters.clone());
        kind.make(&self.security_ids(reference), &parameters).map_err(Some)
    }
}

impl RiskRules {
    /// Returns the securities that may not be traded.
    pub fn restricted_ids(&self, reference: &RefData) -> Vec<SecurityId> {
        let ids = self.restricted.iter().flat_map(|restricted| restricted.ids(reference));
        ids.collect()
    }
}

impl Restricted {
    /// Returns the securities of an id or symbol. A symbol may stand for securities of several
    /// exchanges: all of them.
    pub fn ids(&self, reference: &RefData) -> Vec<SecurityId> {
        match self {
            Restricted::Id(id) => reference.security(*id).map(|row| row.id).into_iter().collect(),
            Restricted::Symbol(symbol) => reference.by_symbol(symbol).to_vec(),
        }
    }
}

struct NameCheck<'a> {
    params: &'a Params,
    faults: ConfigFaults,
}

impl NameCheck<'_> {
    fn fault(&mut self, key: &str, problem: String) {
        self.faults.add(&self.params.origin(key), key, problem);
    }

    fn known<'n>(
        &mut self,
        table: &str,
        names: impl Iterator<Item = &'n String>,
        known: &[&str],
        what: &str,
    ) {
        for name in names.filter(|name| !known.contains(&name.as_str())) {
            let problem = format!("there is no {what} {name}{}", suggestion(name, known));
            self.fault(&format!("{table}.{name}"), problem);
        }
    }

    fn restricted(&mut self, rules: &RiskRules, table: &str, reference: &RefData) {
        for restricted in rules.restricted.iter().filter(|restricted| restricted.ids(reference).is_empty()) {
            self.fault(&format!("{table}.restricted"), format!("there is no security {restricted}"));
        }
    }
}
