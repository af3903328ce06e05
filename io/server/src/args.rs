//! The command line.

mod records;
mod refdata;
mod run;
mod settings;
mod tools;
mod users;

use clap::{Parser, Subcommand};

pub use self::records::{
    AuditCommand, AuditOrdersArgs, AuditVerifyArgs, DataFolderArgs, JournalCommand, JournalPartArgs,
    StandbyCommand,
};
pub use self::refdata::{BinanceImportArgs, ImportCommand, RefDataCommand, VenueEnvironment};
pub use self::run::{ServeArgs, SimulateArgs, StrategyArgs};
pub use self::settings::{RefDataFolderArgs, SettingsArgs};
pub use self::tools::{
    CheckArgs, CompletionsArgs, ConfigCommand, DoctorArgs, HealthArgs, ManArgs, ShowArgs, TuneArgs,
};
pub use self::users::{CredentialFileArgs, CredentialNameArgs, NewCredentialArgs, TokenCommand, UserCommand};

const CODES: &str = "\
Exit codes:
  0    done; for check, doctor, health and verify: nothing is wrong
  1    something is wrong, or it could not be done; standard error says what
  2    the command line is wrong
  130  SIGINT came a second time (143: SIGTERM), so the process ended without an orderly stop
  134  a bug of ours ended the process; its last line says where

Settings: config/default.toml explains every key; `pitlane config show` prints the effective settings.";

/// A low-latency sharded trading platform.
#[derive(Clone, Debug, Parser)]
#[command(name = "pitlane", version, args_conflicts_with_subcommands = true, after_help = CODES)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<CliCommand>,
    #[command(flatten)]
    serve: ServeArgs,
}

impl Cli {
    /// Returns the command; `serve` if none is named.
    pub fn chosen(self) -> CliCommand {
        self.command.unwrap_or(CliCommand::Serve(self.serve))
    }
}

#[derive(Clone, Debug, Subcommand)]
pub enum CliCommand {
    /// Run the platform (the default)
    ///
    /// Without options, the platform uses the simulated venue and feed and listens on loopback
    /// only. It prints `ready` as its first line. SIGINT or SIGTERM stops it in order.
    #[command(after_help = "Examples:
  pitlane serve
  pitlane serve --config dev --set http.listen=127.0.0.1:8080
  pitlane serve --config pinned --config /etc/pitlane.toml --data /var/lib/pitlane")]
    Serve(ServeArgs),
    /// Run strategies over historical data
    ///
    /// Runs the configured strategies over files of ticks or bars, with a virtual clock and the
    /// simulated venue. The preset `simulation` has a lower priority than all other settings. The
    /// same data, settings and seed give the same report.
    #[command(after_help = "Examples:
  pitlane simulate --config mine.toml --data ticks.csv --report report
  pitlane simulate --config mine.toml --data aapl.csv,msft.csv --from 2026-11-02T14:30:00Z --to 2026-11-03
  pitlane simulate --config mine.toml --data ticks.csv --sweep fast=10..50:10,slow=100..400:100 --sort sharpe
  pitlane simulate --config mine.toml --data ticks.csv --sweep fast=10..50:10 --walk-forward 30d,10d")]
    Simulate(SimulateArgs),
    /// Run one strategy in this process, connected to its server
    ///
    /// The server runs with `--config distributed` and has the `[[strategy]]` section of the
    /// strategy; the server supplies the reference data. The process may start before the server,
    /// and continues when the server restarts.
    #[command(after_help = "Examples:
  pitlane strategy --name MOMENTUM
  pitlane strategy --name MOMENTUM --connect unix:data/strategies.sock
  pitlane strategy --name MOMENTUM --connect pitlanes://desk.example.com:9882 --config mine.toml
  pitlane strategy --name MOMENTUM --connect nats://127.0.0.1:4222")]
    Strategy(StrategyArgs),
    /// Check settings and reference data
    ///
    /// Prints every fault with file, line and key. Exits with 1 if there is a fault.
    #[command(after_help = "Examples:
  pitlane check --config mine.toml
  pitlane check --refdata config/refdata")]
    Check(CheckArgs),
    /// Show the settings
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Check whether this machine suits low latency
    ///
    /// Checks cores, clocks, memory, limits, ports and disk for the given settings, and prints the
    /// command that corrects each finding. Exits with 1 if a finding needs correction.
    #[command(after_help = "Examples:
  pitlane doctor --config pinned
  pitlane doctor --json | jq '.findings[] | select(.verdict == \"unfit\")'")]
    Doctor(DoctorArgs),
    /// Correct what the doctor finds, and undo it
    ///
    /// Shows which files of the kernel would be written for the given settings: frequency
    /// governor, idle states, interrupts, second threads of cores, clock source, huge pages, busy
    /// polling, and boot parameters for isolated cores. `--apply` writes them and keeps the old
    /// texts in a record; `--undo` restores these. Exits with 1 if a change failed.
    #[command(after_help = "Examples:
  pitlane tune --config pinned
  sudo pitlane tune --config pinned --apply
  sudo pitlane tune --undo")]
    Tune(TuneArgs),
    /// Ask the service on this machine whether it is ready
    ///
    /// Requests `/health/ready` at http.listen of the given settings. Exits with 0 if the service
    /// accepts orders, and with 1 if it does not or if there is no response.
    #[command(after_help = "Examples:
  pitlane health
  pitlane health --config /etc/pitlane/pitlane.toml --wait 60")]
    Health(HealthArgs),
    /// Inspect the journal
    #[command(subcommand)]
    Journal(JournalCommand),
    /// Decide which copy is valid when the folder of a standby server and the stream have diverged
    #[command(subcommand)]
    Standby(StandbyCommand),
    /// Manage users, who log in with a password
    #[command(subcommand)]
    User(UserCommand),
    /// Manage tokens, with which programs log in
    #[command(subcommand)]
    Token(TokenCommand),
    /// Inspect the audit log, and show who sent which order
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Write reference data
    #[command(subcommand)]
    Refdata(RefDataCommand),
    /// Print completions for a shell
    #[command(after_help = "Example:
  pitlane completions bash > /etc/bash_completion.d/pitlane")]
    Completions(CompletionsArgs),
    /// Write manual pages into a folder
    ///
    /// Writes one page for each command, with the text of `--help`. The folder must exist.
    #[command(after_help = "Example:
  pitlane man /usr/local/share/man/man1")]
    Man(ManArgs),
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use clap::CommandFactory;
    use pitlane_config::{Machine, Sources};

    use super::*;

    fn command(line: &str) -> Result<CliCommand, clap::Error> {
        Cli::try_parse_from(line.split(' ')).map(Cli::chosen)
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn serve_is_the_default_command() {
        for line in ["pitlane --seed 7 --for 1 --quiet", "pitlane serve --seed 7 --for 1 --quiet"] {
            let CliCommand::Serve(serve) = command(line).unwrap() else { panic!("{line}") };
            assert_eq!(
                (serve.seed, serve.seconds, serve.quiet, serve.shards),
                (Some(7), Some(1), true, None)
            );
        }
        assert!(matches!(command("pitlane check --refdata x"), Ok(CliCommand::Check(_))));
        assert!(matches!(command("pitlane doctor --json"), Ok(CliCommand::Doctor(_))));
        assert!(matches!(command("pitlane tune --apply"), Ok(CliCommand::Tune(_))));
        assert!(command("pitlane tune --apply --undo").is_err());
        assert!(matches!(command("pitlane completions zsh"), Ok(CliCommand::Completions(_))));
        assert!(matches!(command("pitlane health --wait 5"), Ok(CliCommand::Health(_))));
        assert!(matches!(command("pitlane man d"), Ok(CliCommand::Man(_))));
        let line = "pitlane refdata import binance d --symbols A,B --quotes USDT";
        let Ok(CliCommand::Refdata(RefDataCommand::Import(ImportCommand::Binance(args)))) = command(line)
        else {
            panic!("{line}")
        };
        assert_eq!(
            (args.symbols.len(), args.quotes.len(), args.environment),
            (2, 1, VenueEnvironment::Testnet)
        );
        assert!(matches!(command("pitlane config show"), Ok(CliCommand::Config(ConfigCommand::Show(_)))));
    }

    #[test]
    fn shorthands_are_settings_and_win_over_set() {
        let line = "pitlane --set service.seed=5 --set feed.rate=9 --seed 7 --shards 3 --rate 11 --data d --refdata r";
        let CliCommand::Serve(serve) = command(line).unwrap() else { panic!("{line}") };
        let sources = Sources { environment: Vec::new(), ..serve.sources() };
        let machine = Machine { cores: vec![0], cores_usable: 1 };
        let config = pitlane_config::load(&sources, &machine).unwrap().config;
        assert_eq!((config.service.seed, config.topology.shards, config.feed.rate), (7, 3, Some(11)));
        assert_eq!(config.service.data_dir, PathBuf::from("d"));
        assert_eq!(config.refdata.dir, Some(PathBuf::from("r")));
    }

    #[test]
    fn a_part_of_a_journal_is_a_shard_and_a_range() {
        #[derive(Parser)]
        struct JournalCli {
            #[command(subcommand)]
            command: JournalCommand,
        }
        let line = "journal dump --data d --shard 3 --from 5 --to 9 --limit 2";
        let JournalCommand::Dump(part) = JournalCli::parse_from(line.split(' ')).command else {
            panic!("{line}")
        };
        assert_eq!((part.shard, part.from, part.to, part.limit), (Some(3), 5, Some(9), Some(2)));
        assert_eq!(part.sources().options[0].key, "service.data_dir");
        JournalCli::command().debug_assert();
    }

    #[test]
    fn a_sweep_has_a_grid_a_statistic_and_windows() {
        let line =
            "pitlane simulate --sweep fast=10..50:10,slow=100 --jobs 3 --sort sharpe --walk-forward 30d,10d";
        let CliCommand::Simulate(args) = command(line).unwrap() else { panic!("{line}") };
        assert_eq!((args.sweep.unwrap().len(), args.jobs, args.sort.unwrap().name()), (5, Some(3), "sharpe"));
        assert!(args.walk_forward.is_some());
        let CliCommand::Simulate(args) = command("pitlane simulate --param A.fast=1,slow=2").unwrap() else {
            panic!("it is a simulation")
        };
        assert_eq!(args.param.unwrap().to_string(), "A.fast=1,slow=2");
    }

    #[test]
    fn impossible_arguments_are_refused() {
        for line in [
            "pitlane --shards 0",
            "pitlane --shards 129",
            "pitlane --rate 0",
            "pitlane --sede 7",
            "pitlane dance",
            "pitlane check --seed 1",
            "pitlane --set lanes.events",
            "pitlane completions cobol",
            "pitlane health --wait soon",
            "pitlane man",
            "pitlane simulate --sweep fast",
            "pitlane simulate --sweep fast=5..1",
            "pitlane simulate --jobs 2",
            "pitlane simulate --sweep fast=1 --jobs 0",
            "pitlane simulate --sweep fast=1 --sort beauty",
            "pitlane simulate --sweep fast=1 --walk-forward 5",
            "pitlane simulate --sweep fast=1 --param fast=1",
            "pitlane simulate --param fast=1..2",
            "pitlane config",
            "pitlane refdata import",
            "pitlane refdata import kraken d",
            "pitlane refdata import binance",
            "pitlane refdata import binance d --environment moon",
            "pitlane refdata import binance d --file f --url https://h/",
            "pitlane user add alice",
            "pitlane user add alice --role boss",
            "pitlane user add alice --role read --password secret",
            "pitlane token create robot --role read --strategies a,,b",
        ] {
            assert!(command(line).is_err(), "{line}");
        }
    }
}
