//! The whole of `pitlane`, with one more kind of strategy.

mod buy_the_dip;

use std::process::ExitCode;

use pitlane_strategy::Registry;

use buy_the_dip::BuyTheDip;

fn main() -> ExitCode {
    pitlane::run(Registry::with_examples().with::<BuyTheDip>())
}
