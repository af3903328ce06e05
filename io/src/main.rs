//! The binary `pitlane`.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use pitlane::args::{Check, Cli, Folder, Serve, Verb};
use pitlane::config::Config;
use pitlane::refdata::{self, Faults};
use pitlane::serve::{self, ServeSettings};
use pitlane_engine::refdata::RefData;

fn main() -> ExitCode {
    match Cli::parse().verb() {
        Verb::Serve(serve) => run_serve(&serve),
        Verb::Check(check) => run_check(&check),
    }
}

fn run_serve(serve: &Serve) -> ExitCode {
    let reference = match read_refdata(&serve.refdata) {
        Ok(reference) => Arc::new(reference),
        Err(faults) => {
            eprintln!("{faults}");
            return ExitCode::FAILURE;
        }
    };
    match serve::serve(&settings(serve), &reference) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pitlane: {error}");
            ExitCode::FAILURE
        }
    }
}

fn settings(args: &Serve) -> ServeSettings {
    let mut config = Config::default();
    config.topology.shards = args.shards;
    (config.service.seed, config.feed.seed) = (args.seed, args.seed);
    config.feed.rate = args.rate;
    config.demo.on = true;
    ServeSettings { config, quiet: args.quiet, time: args.seconds.map(Duration::from_secs) }
}

fn run_check(check: &Check) -> ExitCode {
    match read_refdata(&check.refdata) {
        Ok(data) => {
            println!(
                "ok: {} exchanges, {} families, {} securities, {} accounts, {} strategies",
                data.exchanges().len(),
                data.families().len(),
                data.securities().len(),
                data.accounts().len(),
                data.strategies().len()
            );
            ExitCode::SUCCESS
        }
        Err(faults) => {
            eprintln!("{faults}");
            ExitCode::FAILURE
        }
    }
}

fn read_refdata(folder: &Folder) -> Result<RefData, Faults> {
    match &folder.dir {
        Some(dir) => refdata::read(dir),
        None => refdata::shipped(),
    }
}
