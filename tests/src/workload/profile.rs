//! The ingredients of a run.

use pitlane_engine::id::SecurityId;

use crate::dice::Dice;
use crate::test_market;

/// The ingredients of a run. Weights are relative.
#[derive(Clone, Debug)]
pub struct Profile {
    pub securities: Vec<SecurityId>,
    /// Prices lie within this many ticks around 100.
    pub width: i64,
    /// Actions per hundred that make no sense.
    pub nonsense: u64,
    pub limits: bool,
    /// Credit of the accounts that have one, in dollars.
    pub credit: Option<i64>,
    pub sessions: bool,
    /// Whether the flow itself contains the reports of external venues.
    pub reports: bool,
    /// Whether operators set kill switches and book transactions.
    pub operators: bool,
    /// Whether prices are regular: on the grid, bid below ask.
    pub tame: bool,
    /// Whether feeds have levels behind their best prices.
    pub has_levels: bool,
    pub weights: Weights,
}

#[derive(Clone, Copy, Debug)]
pub struct Weights {
    pub submit: u64,
    pub modify: u64,
    pub cancel: u64,
    pub close: u64,
    pub feed: u64,
    pub report: u64,
    pub operate: u64,
    pub session: u64,
    pub wait: u64,
}

impl Profile {
    pub fn random(dice: &mut Dice) -> Profile {
        let mut securities = test_market::SECURITIES.to_vec();
        // Few securities meet often, many spread over the shards.
        let keep = dice.pick(&[1, 1, 2, 3, 10]);
        while securities.len() > keep {
            let at = dice.index(securities.len());
            securities.remove(at);
        }
        let mut profile = Profile {
            securities,
            width: dice.pick(&[2, 4, 12]),
            nonsense: dice.pick(&[0, 5, 20]),
            limits: dice.percent(40),
            credit: None,
            sessions: dice.percent(40),
            reports: true,
            operators: dice.percent(50),
            tame: true,
            has_levels: false,
            weights: Weights {
                submit: 40,
                modify: dice.pick(&[0, 8, 20]),
                cancel: dice.pick(&[2, 10]),
                close: dice.pick(&[0, 3]),
                feed: dice.pick(&[0, 10, 30]),
                report: 25,
                operate: 3,
                session: dice.pick(&[2, 6]),
                wait: 5,
            },
        };
        // It follows from other choices, so that known seeds keep theirs.
        profile.has_levels = profile.limits != profile.sessions;
        profile
    }
}
