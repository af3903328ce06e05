//! The binary `pitlane`, with the kinds of strategies that are shipped.

use std::process::ExitCode;

use pitlane_strategy::Registry;

fn main() -> ExitCode {
    pitlane::run(Registry::with_examples())
}
