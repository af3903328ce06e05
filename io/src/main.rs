//! The binary `pitlane`.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use pitlane::args::{Check, Cli, Folder, Serve, Verb};
use pitlane::platform::PlatformSettings;
use pitlane::refdata::{self, Faults};
use pitlane::serve::{self, ServeSettings};
use pitlane::topology::TopologySettings;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::NS_PER_S;

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
    match serve::serve(&settings(serve, &reference), &reference) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pitlane: {error}");
            ExitCode::FAILURE
        }
    }
}

fn settings(args: &Serve, reference: &RefData) -> ServeSettings {
    let demo = PlatformSettings::demo(reference, args.seed);
    let securities = reference.securities().len().max(1) as u64;
    let interval_ns = args.rate.map_or(demo.interval_ns, |rate| (NS_PER_S * securities / rate).max(1));
    ServeSettings {
        platform: PlatformSettings { shards: args.shards, interval_ns, ..demo },
        topology: TopologySettings::default(),
        quiet: args.quiet,
        time: args.seconds.map(Duration::from_secs),
    }
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
