//! The binary `pitlane`.

use std::process::ExitCode;

use clap::Parser;
use pitlane::args::{Check, Cli, Folder, Verb};
use pitlane::refdata::{self, Faults};
use pitlane_engine::refdata::RefData;

fn main() -> ExitCode {
    match Cli::parse().verb() {
        Verb::Serve(_) => ExitCode::SUCCESS,
        Verb::Check(check) => run_check(&check),
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
