//! The kinds of strategies that can be configured by name. Whoever writes one adds it here.

use super::examples::{market_maker, moving_average};
use super::host::Make;
use super::parameters::{BadParameter, Parameters};
use crate::id::SecurityId;

#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub name: &'static str,
    make: fn(&[SecurityId], &Parameters) -> Result<Make, BadParameter>,
}

pub const KINDS: [Kind; 2] = [
    Kind { name: "moving-average-cross", make: moving_average::make },
    Kind { name: "market-maker", make: market_maker::make },
];

impl Kind {
    pub fn find(name: &str) -> Option<&'static Kind> {
        const { &KINDS }.iter().find(|kind| kind.name == name)
    }

    /// Checks the parameters; what it gives makes a strategy each time it is asked.
    pub fn make(&self, securities: &[SecurityId], parameters: &Parameters) -> Result<Make, BadParameter> {
        (self.make)(securities, parameters)
    }
}
