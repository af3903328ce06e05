//! The kinds of strategies that can be configured by name. A new kind is added here.

use super::examples::{market_maker, moving_average};
use super::host::StrategyFactory;
use super::parameters::{BadParameter, Parameters};
use pitlane_engine::id::SecurityId;

#[derive(Clone, Copy, Debug)]
pub struct StrategyKind {
    pub name: &'static str,
    /// Parameters of this kind, with the values of those that are not set.
    defaults: &'static [(&'static str, &'static str)],
    make: fn(&[SecurityId], &Parameters) -> Result<StrategyFactory, BadParameter>,
}

pub const STRATEGY_KINDS: [StrategyKind; 2] = [
    StrategyKind {
        name: "moving-average-cross",
        defaults: &moving_average::DEFAULTS,
        make: moving_average::make,
    },
    StrategyKind { name: "market-maker", defaults: &market_maker::DEFAULTS, make: market_maker::make },
];

impl StrategyKind {
    pub fn find(name: &str) -> Option<&'static StrategyKind> {
        const { &STRATEGY_KINDS }.iter().find(|kind| kind.name == name)
    }

    /// Checks the parameters and returns a factory for the strategy.
    pub fn make(
        &self,
        securities: &[SecurityId],
        parameters: &Parameters,
    ) -> Result<StrategyFactory, BadParameter> {
        (self.make)(securities, &parameters.with_defaults(self.defaults))
    }
}
