//! Limits of strategies and accounts: `[risk]`.

use std::collections::BTreeMap;
use std::fmt;

use pitlane_engine::command::RiskLimits;
use pitlane_engine::id::SecurityId;
use pitlane_engine::number::Money;

use super::section::Section;
use super::tree::{ConfigTable, ConfigValue};

/// Largest collar, in hundredths of a percent: beyond the price itself it stops nothing.
pub(crate) const COLLAR_BP_MAX: u32 = 10_000;
/// Longest duplicate window: the engine remembers a small number of orders, and a longer window
/// would promise more than that.
const DUPLICATE_WINDOW_MS_MAX: u32 = 60_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RiskConfig {
    /// Limits of every strategy, and of every account.
    pub strategies: RiskRules,
    pub accounts: RiskRules,
    /// Limits of single strategies and accounts, by name.
    pub strategy: BTreeMap<String, RiskRules>,
    pub account: BTreeMap<String, RiskRules>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RiskRules {
    pub limits: RiskLimits,
    pub restricted: Vec<Restricted>,
}

/// A security, by its id or its symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Restricted {
    Id(SecurityId),
    Symbol(String),
}

impl RiskConfig {
    pub(super) fn read(section: &mut Section<'_>) -> RiskConfig {
        let like = |key| section.peek(key).cloned().unwrap_or_default();
        let (strategies, accounts): (ConfigTable, ConfigTable) = (like("strategies"), like("accounts"));
        RiskConfig {
            strategies: section.section("strategies", RiskRules::read),
            accounts: section.section("accounts", RiskRules::read_account),
            strategy: section.named("strategy", &strategies, RiskRules::read),
            account: section.named("account", &accounts, RiskRules::read_account),
        }
    }

    pub fn of_strategy(&self, name: &str) -> &RiskRules {
        self.strategy.get(name).unwrap_or(&self.strategies)
    }

    pub fn of_account(&self, name: &str) -> &RiskRules {
        self.account.get(name).unwrap_or(&self.accounts)
    }
}

impl RiskRules {
    fn read(section: &mut Section<'_>) -> RiskRules {
        let limits = RiskLimits {
            trading_enabled: section.flag("trading_enabled"),
            max_order_qty: section.qty("max_order_qty"),
            max_order_value: section.money("max_order_value"),
            price_collar_bp: section.percent("price_collar_pct", COLLAR_BP_MAX),
            max_open_orders: section.number("max_open_orders", 0..=100_000_000),
            max_position: section.qty("max_position"),
            max_orders_per_s: section.number("max_orders_per_s", 0..=100_000_000),
            duplicate_window_ms: section.number("duplicate_window_ms", 0..=DUPLICATE_WINDOW_MS_MAX),
            ..RiskLimits::default()
        };
        RiskRules { limits, restricted: section.items("restricted", Restricted::read, Restricted::to_string) }
    }

    fn read_account(section: &mut Section<'_>) -> RiskRules {
        let mut rules = RiskRules::read(section);
        rules.limits.credit = section.money("credit");
        if let Some(currency) = section.currency("credit_currency") {
            rules.limits.credit_currency = currency;
        } else if rules.limits.credit != Money::ZERO {
            section.fault("credit", "it needs a credit_currency");
        }
        rules
    }
}

impl Restricted {
    pub(super) fn read(value: &ConfigValue) -> Result<Restricted, String> {
        if let ConfigValue::Integer(id) = value {
            return match u32::try_from(*id).ok().filter(|id| *id <= SecurityId::MAX) {
                Some(id) => Ok(Restricted::Id(SecurityId(id))),
                None => Err(format!("{id} is not the id of a security")),
            };
        }
        if let ConfigValue::Text(symbol) = value
            && !symbol.is_empty()
        {
            return Ok(Restricted::Symbol(symbol.clone()));
        }
        Err("it must be a list of ids and symbols".to_string())
    }
}

impl fmt::Display for Restricted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Restricted::Id(id) => id.fmt(f),
            Restricted::Symbol(symbol) => symbol.fmt(f),
        }
    }
}
