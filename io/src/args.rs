//! The command line.

use std::env;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use pitlane_engine::id::ShardId;

use crate::auth::{Role, Strategies, credentials};
use crate::config::{Setting, Sources};

const CODES: &str = "\
Exit codes:
  0    done; for check, doctor, health and verify: nothing is wrong
  1    something is wrong, or it could not be done; standard error says what
  2    the command line is wrong
  130  SIGINT came a second time (143: SIGTERM), so it did not end in good order
  134  a bug of ours ended the process; its last line says where

Settings: config/default.toml explains every key; `pitlane config show` prints what holds.";

/// A low-latency sharded trading platform.
#[derive(Clone, Debug, Parser)]
#[command(name = "pitlane", version, args_conflicts_with_subcommands = true, after_help = CODES)]
pub struct Cli {
    #[command(subcommand)]
    verb: Option<CliCommand>,
    #[command(flatten)]
    serve: ServeArgs,
}

impl Cli {
    /// Returns the command; `serve` if none is named.
    pub fn verb(self) -> CliCommand {
        self.verb.unwrap_or(CliCommand::Serve(self.serve))
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
  pitlane simulate --config mine.toml --data aapl.csv,msft.csv --from 2026-11-02T14:30:00Z --to 2026-11-03")]
    Simulate(SimulateArgs),
    /// Run one strategy in this process, connected to its server through the broker
    ///
    /// The server runs with `--config distributed` and has the `[[strategy]]` section of the
    /// strategy; the server supplies the reference data. The process may start before the server
    /// and the broker, and continues when either restarts.
    #[command(after_help = "Examples:
  pitlane strategy --name MOMENTUM --connect nats://127.0.0.1:4222
  pitlane strategy --name MOMENTUM --connect tls://broker.example.com:4222 --config mine.toml")]
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

#[derive(Clone, Debug, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    pub settings: SettingsArgs,
    #[command(flatten)]
    pub refdata: RefDataFolderArgs,
    /// Folder of journal and certificates: service.data_dir
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Seed of random numbers: service.seed
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Number of shards, each the owner of some securities: topology.shards
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=ShardId::MAX as i64 + 1))]
    pub shards: Option<u8>,
    /// Market events per second, of all securities together: feed.rate
    #[arg(long, value_name = "EVENTS", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub rate: Option<u64>,
    /// Stop after this many seconds
    #[arg(long = "for", value_name = "SECONDS")]
    pub seconds: Option<u64>,
    /// Print only the first and the last line
    #[arg(long)]
    pub quiet: bool,
}

impl ServeArgs {
    /// Returns the sources of the settings. The shorthand options override `--set`.
    pub fn sources(&self) -> Sources {
        let mut sources = self.settings.sources();
        sources.options.extend(self.refdata.setting());
        sources.options.extend(self.data.as_ref().map(|dir| data_setting(dir)));
        sources.options.extend(self.seed.map(|seed| shorthand("--seed", "service.seed", &seed.to_string())));
        let shards = self.shards.map(|shards| shorthand("--shards", "topology.shards", &shards.to_string()));
        sources.options.extend(shards);
        sources.options.extend(self.rate.map(|rate| shorthand("--rate", "feed.rate", &rate.to_string())));
        sources
    }
}

#[derive(Clone, Debug, Args)]
pub struct SimulateArgs {
    #[command(flatten)]
    pub settings: SettingsArgs,
    #[command(flatten)]
    pub refdata: RefDataFolderArgs,
    /// First time that counts, such as 2026-11-14T09:30:00Z: simulation.from
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Time at which the run ends: simulation.to
    #[arg(long, value_name = "TIME")]
    pub to: Option<String>,
    /// Files of ticks or bars, separated by commas: simulation.data
    #[arg(long, value_name = "FILES")]
    pub data: Option<String>,
    /// Folder for report.txt, report.json and report.html: simulation.report_dir
    #[arg(long, value_name = "DIR")]
    pub report: Option<String>,
    /// Seed of random numbers: service.seed
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Print no progress
    #[arg(long)]
    pub quiet: bool,
}

impl SimulateArgs {
    /// Returns the sources of the settings. The preset has the lowest priority, and the shorthand
    /// options override `--set`.
    pub fn sources(&self) -> Sources {
        let mut sources = self.settings.sources();
        sources.files.insert(0, "simulation".to_string());
        sources.options.extend(self.refdata.setting());
        let seed = self.seed.map(|seed| seed.to_string());
        let words = [
            ("--from", "simulation.from", &self.from),
            ("--to", "simulation.to", &self.to),
            ("--data", "simulation.data", &self.data),
            ("--report", "simulation.report_dir", &self.report),
            ("--seed", "service.seed", &seed),
        ];
        for (option, key, value) in words {
            sources.options.extend(value.as_ref().map(|value| shorthand(option, key, value)));
        }
        sources
    }
}

#[derive(Clone, Debug, Args)]
pub struct StrategyArgs {
    #[command(flatten)]
    pub settings: SettingsArgs,
    /// Name of a strategy in the server's settings
    #[arg(long, value_name = "NAME")]
    pub name: String,
    /// URL of the broker: nats.url
    #[arg(long, value_name = "URL")]
    pub connect: Option<String>,
}

impl StrategyArgs {
    /// Returns the sources of the settings. The mode is always `distributed`, and the shorthand
    /// options override `--set`.
    pub fn sources(&self) -> Sources {
        let mut sources = self.settings.sources();
        sources.options.push(shorthand("strategy", "service.mode", "distributed"));
        sources.options.extend(self.connect.as_ref().map(|url| shorthand("--connect", "nats.url", url)));
        sources
    }
}

#[derive(Clone, Debug, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    pub settings: SettingsArgs,
    #[command(flatten)]
    pub refdata: RefDataFolderArgs,
}

impl CheckArgs {
    pub fn sources(&self) -> Sources {
        let mut sources = self.settings.sources();
        sources.options.extend(self.refdata.setting());
        sources
    }
}

#[derive(Clone, Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print every effective setting and its source
    #[command(after_help = "Examples:
  pitlane config show --config pinned
  pitlane config show --changed")]
    Show(ShowArgs),
}

#[derive(Clone, Debug, Args)]
pub struct ShowArgs {
    #[command(flatten)]
    pub settings: SettingsArgs,
    /// Only settings that differ from the built-in ones
    #[arg(long)]
    pub changed: bool,
}

#[derive(Clone, Debug, Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    pub settings: SettingsArgs,
    /// Folder of journal and certificates: service.data_dir
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl DoctorArgs {
    pub fn sources(&self) -> Sources {
        let mut sources = self.settings.sources();
        sources.options.extend(self.data.as_ref().map(|dir| data_setting(dir)));
        sources
    }
}

/// Subcommands of `pitlane journal`.
#[derive(Clone, Debug, Subcommand)]
pub enum JournalCommand {
    /// Print one line for each record
    #[command(after_help = "Example:
  pitlane journal dump --data /var/lib/pitlane --shard 0 --from 1000 --limit 20")]
    Dump(JournalPartArgs),
    /// Check every checksum, link and snapshot, and that replay reproduces the stored digests
    #[command(after_help = "Example:
  pitlane journal verify --data /var/lib/pitlane")]
    Verify(JournalPartArgs),
    /// Rebuild the state as a start would, or up to a record, and print it
    #[command(after_help = "Example:
  pitlane journal replay --data /var/lib/pitlane --shard 0 --to 1000")]
    Replay(JournalPartArgs),
}

/// Part of a journal. No command changes the journal, and a service may be using it.
#[derive(Clone, Debug, Args)]
pub struct JournalPartArgs {
    #[command(flatten)]
    pub settings: SettingsArgs,
    /// Folder of journal and certificates: service.data_dir
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Only this shard
    #[arg(long, value_name = "N")]
    pub shard: Option<u16>,
    /// First record
    #[arg(long, value_name = "SEQUENCE", default_value_t = 0)]
    pub from: u64,
    /// Last record [default: the last one in the journal]
    #[arg(long, value_name = "SEQUENCE")]
    pub to: Option<u64>,
    /// Highest number of lines [default: all]
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
}

impl JournalPartArgs {
    pub fn sources(&self) -> Sources {
        let mut sources = self.settings.sources();
        sources.options.extend(self.data.as_ref().map(|dir| data_setting(dir)));
        sources
    }
}

/// Subcommands of `pitlane audit`.
#[derive(Clone, Debug, Subcommand)]
pub enum AuditCommand {
    /// Check that every line follows from the previous one, and that no line is missing; exits with
    /// 1 if not
    ///
    /// Anchors reveal missing lines: the file audit-anchor in the data folder, and the journal. The
    /// service may be running.
    #[command(after_help = "Example:
  pitlane audit verify --data /var/lib/pitlane")]
    Verify(AuditVerifyArgs),
    /// Print who sent each order, modification and cancel, as lines of JSON from the journal
    #[command(after_help = "Example:
  pitlane audit orders --data /var/lib/pitlane --login alice")]
    Orders(AuditOrdersArgs),
}

#[derive(Clone, Debug, Args)]
pub struct AuditVerifyArgs {
    #[command(flatten)]
    pub folder: DataFolderArgs,
    /// Number of the first line, if files with older lines were moved away
    #[arg(long, value_name = "LINE")]
    pub begins_with: Option<u64>,
}

/// Selection of orders. The command does not change the journal, and a service may be using it.
#[derive(Clone, Debug, Args)]
pub struct AuditOrdersArgs {
    #[command(flatten)]
    pub part: JournalPartArgs,
    /// Only commands of this login
    #[arg(long, value_name = "NAME")]
    pub login: Option<String>,
    /// Only the order or request with this id
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
}

#[derive(Clone, Debug, Args)]
pub struct DataFolderArgs {
    #[command(flatten)]
    pub settings: SettingsArgs,
    /// Folder of journal and certificates: service.data_dir
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

impl DataFolderArgs {
    pub fn sources(&self) -> Sources {
        let mut sources = self.settings.sources();
        sources.options.extend(self.data.as_ref().map(|dir| data_setting(dir)));
        sources
    }
}

/// Subcommands of `pitlane standby`. The server that owns the folder must not run. The decision
/// applies to its next start, once.
#[derive(Clone, Debug, Subcommand)]
pub enum StandbyCommand {
    /// Lead with this folder and rebuild the stream from it; data that only the stream has are
    /// discarded
    #[command(after_help = "Example:
  pitlane standby lead --data /var/lib/pitlane")]
    Lead(DataFolderArgs),
    /// Follow the stream; this folder is moved aside, to standby/before
    #[command(after_help = "Example:
  pitlane standby follow --data /var/lib/pitlane")]
    Follow(DataFolderArgs),
}

/// Subcommands of `pitlane user`. A running service applies the change on SIGHUP.
#[derive(Clone, Debug, Subcommand)]
pub enum UserCommand {
    /// Add a user; the password is read from the terminal, or from the first line of standard input
    #[command(after_help = "Example:
  pitlane user add alice --role trade --strategies PAIRS,MOMENTUM --file /etc/pitlane/users")]
    Add(NewCredentialArgs),
    /// Change the password of a user
    Passwd(CredentialNameArgs),
    /// Remove a user
    Remove(CredentialNameArgs),
    /// List all users with role and strategies
    List(CredentialFileArgs),
}

/// Subcommands of `pitlane token`. A running service applies the change on SIGHUP.
#[derive(Clone, Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token and print it; it is shown only this once and not stored
    #[command(after_help = "Example:
  pitlane token create robot --role trade --file /etc/pitlane/tokens")]
    Create(NewCredentialArgs),
    /// Revoke a token
    Revoke(CredentialNameArgs),
    /// List the name of each token with role and strategies
    List(CredentialFileArgs),
}

#[derive(Clone, Debug, Args)]
pub struct NewCredentialArgs {
    pub name: String,
    /// read, trade or admin; each has all rights of the one before
    #[arg(long, value_parser = credentials::parse_role)]
    pub role: Role,
    /// Names of strategies, separated by commas, whose orders and positions the login may see and
    /// change; *: all
    #[arg(long, value_name = "LIST", default_value = "*", value_parser = credentials::parse_strategies)]
    pub strategies: Strategies,
    #[command(flatten)]
    pub file: CredentialFileArgs,
}

#[derive(Clone, Debug, Args)]
pub struct CredentialNameArgs {
    pub name: String,
    #[command(flatten)]
    pub file: CredentialFileArgs,
}

/// File of users or tokens.
#[derive(Clone, Debug, Args)]
pub struct CredentialFileArgs {
    #[command(flatten)]
    pub settings: SettingsArgs,
    /// File of users or tokens [default: auth.users_file, auth.tokens_file]
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub struct HealthArgs {
    #[command(flatten)]
    pub settings: SettingsArgs,
    /// Repeat the request until the service is ready, for at most this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub wait: u32,
}

#[derive(Clone, Debug, Args)]
pub struct CompletionsArgs {
    pub shell: Shell,
}

#[derive(Clone, Debug, Args)]
pub struct ManArgs {
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// Sources of the settings, for every command that uses settings.
#[derive(Clone, Debug, Args)]
pub struct SettingsArgs {
    /// A file of settings, or a preset: dev, bench, pinned, simulation, distributed; if repeated,
    /// the later wins
    #[arg(long, value_name = "FILE|PRESET")]
    pub config: Vec<String>,
    /// One setting; overrides files and environment
    #[arg(long, value_name = "KEY=VALUE", value_parser = Setting::parse)]
    pub set: Vec<Setting>,
}

impl SettingsArgs {
    pub fn sources(&self) -> Sources {
        let text = |(name, value): (_, _)| Some((os_text(name)?, os_text(value)?));
        Sources {
            files: self.config.clone(),
            environment: env::vars_os().filter_map(text).collect(),
            options: self.set.clone(),
        }
    }
}

/// Returns a text of the operating system if it is valid Unicode.
fn os_text(text: std::ffi::OsString) -> Option<String> {
    text.into_string().ok()
}

#[derive(Clone, Debug, Args)]
pub struct RefDataFolderArgs {
    /// Folder with exchanges.csv, families.csv, securities.csv, accounts.csv and strategies.csv:
    /// refdata.dir
    #[arg(long = "refdata", value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

impl RefDataFolderArgs {
    fn setting(&self) -> Option<Setting> {
        self.dir.as_ref().map(|dir| shorthand("--refdata", "refdata.dir", &dir.display().to_string()))
    }
}

fn data_setting(dir: &std::path::Path) -> Setting {
    shorthand("--data", "service.data_dir", &dir.display().to_string())
}

fn shorthand(option: &'static str, key: &str, value: &str) -> Setting {
    Setting { option, key: key.to_string(), value: value.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{self, Machine};
    use clap::CommandFactory;

    fn verb(words: &str) -> Result<CliCommand, clap::Error> {
        Cli::try_parse_from(words.split(' ')).map(Cli::verb)
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn serve_is_the_default_command() {
        for words in ["pitlane --seed 7 --for 1 --quiet", "pitlane serve --seed 7 --for 1 --quiet"] {
            let CliCommand::Serve(serve) = verb(words).unwrap() else { panic!("{words}") };
            assert_eq!(
                (serve.seed, serve.seconds, serve.quiet, serve.shards),
                (Some(7), Some(1), true, None)
            );
        }
        assert!(matches!(verb("pitlane check --refdata x"), Ok(CliCommand::Check(_))));
        assert!(matches!(verb("pitlane doctor --json"), Ok(CliCommand::Doctor(_))));
        assert!(matches!(verb("pitlane completions zsh"), Ok(CliCommand::Completions(_))));
        assert!(matches!(verb("pitlane health --wait 5"), Ok(CliCommand::Health(_))));
        assert!(matches!(verb("pitlane man d"), Ok(CliCommand::Man(_))));
        assert!(matches!(verb("pitlane config show"), Ok(CliCommand::Config(ConfigCommand::Show(_)))));
    }

    #[test]
    fn shorthands_are_settings_and_win_over_set() {
        let words = "pitlane --set service.seed=5 --set feed.rate=9 --seed 7 --shards 3 --rate 11 --data d --refdata r";
        let CliCommand::Serve(serve) = verb(words).unwrap() else { panic!("{words}") };
        let sources = Sources { environment: Vec::new(), ..serve.sources() };
        let machine = Machine { cores: vec![0], cores_usable: 1 };
        let config = config::load(&sources, &machine).unwrap().config;
        assert_eq!((config.service.seed, config.topology.shards, config.feed.rate), (7, 3, Some(11)));
        assert_eq!(config.service.data_dir, PathBuf::from("d"));
        assert_eq!(config.refdata.dir, Some(PathBuf::from("r")));
    }

    #[test]
    fn a_part_of_a_journal_is_a_shard_and_a_range() {
        #[derive(Parser)]
        struct Alone {
            #[command(subcommand)]
            verb: JournalCommand,
        }
        let words = "journal dump --data d --shard 3 --from 5 --to 9 --limit 2";
        let JournalCommand::Dump(part) = Alone::parse_from(words.split(' ')).verb else { panic!("{words}") };
        assert_eq!((part.shard, part.from, part.to, part.limit), (Some(3), 5, Some(9), Some(2)));
        assert_eq!(part.sources().options[0].key, "service.data_dir");
        Alone::command().debug_assert();
    }

    #[test]
    fn impossible_arguments_are_refused() {
        for words in [
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
            "pitlane config",
            "pitlane user add alice",
            "pitlane user add alice --role boss",
            "pitlane user add alice --role read --password secret",
            "pitlane token create robot --role read --strategies a,,b",
        ] {
            assert!(verb(words).is_err(), "{words}");
        }
    }
}
