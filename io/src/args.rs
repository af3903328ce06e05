//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use pitlane_engine::id::ShardId;

/// A low-latency sharded trading platform.
#[derive(Clone, Debug, Parser)]
#[command(name = "pitlane", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    serve: Serve,
}

impl Cli {
    /// What is to be done; `serve` if nothing is named.
    pub fn verb(self) -> Verb {
        self.verb.unwrap_or(Verb::Serve(self.serve))
    }
}

#[derive(Clone, Debug, Subcommand)]
pub enum Verb {
    /// Run the platform with the simulated venue and feed (the default)
    Serve(Serve),
    /// Read the reference data and say what is wrong
    Check(Check),
}

#[derive(Clone, Debug, Args)]
pub struct Serve {
    #[command(flatten)]
    pub refdata: Folder,
    /// Where chance begins: market, venue and demo trader
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Owners the securities are spread over
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=ShardId::MAX as i64 + 1))]
    pub shards: u8,
    /// Market events a second, all securities together [default: 5 for each]
    #[arg(long, value_name = "EVENTS", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub rate: Option<u64>,
    /// Stop after so many seconds
    #[arg(long = "for", value_name = "SECONDS")]
    pub seconds: Option<u64>,
    /// Print the first and the last line only
    #[arg(long)]
    pub quiet: bool,
}

#[derive(Clone, Debug, Args)]
pub struct Check {
    #[command(flatten)]
    pub refdata: Folder,
}

#[derive(Clone, Debug, Args)]
pub struct Folder {
    /// Folder with exchanges.csv, families.csv, securities.csv, accounts.csv and strategies.csv [default: built in]
    #[arg(long = "refdata", value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn verb(words: &str) -> Result<Verb, clap::Error> {
        Cli::try_parse_from(words.split(' ')).map(Cli::verb)
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn serve_is_what_happens_without_a_verb() {
        for words in ["pitlane --seed 7 --for 1 --quiet", "pitlane serve --seed 7 --for 1 --quiet"] {
            let Verb::Serve(serve) = verb(words).unwrap() else { panic!("{words}") };
            assert_eq!((serve.seed, serve.seconds, serve.quiet, serve.shards), (7, Some(1), true, 2));
        }
        assert!(matches!(verb("pitlane check --refdata x"), Ok(Verb::Check(_))));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for words in [
            "pitlane --shards 0",
            "pitlane --shards 129",
            "pitlane --rate 0",
            "pitlane --sede 7",
            "pitlane dance",
            "pitlane check --seed 1",
        ] {
            assert!(verb(words).is_err(), "{words}");
        }
    }
}
