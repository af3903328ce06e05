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
    /// Run the platform (the default)
    ///
    /// Without options: the simulated venue and feed, on loopback only. The first line says `ready`; SIGINT or SIGTERM ends
    /// it in good order.
    #[command(after_help = "Examples:
  pitlane serve
  pitlane serve --config dev --set http.listen=127.0.0.1:8080
  pitlane serve --config pinned --config /etc/pitlane.toml --data /var/lib/pitlane")]
    Serve(Serve),
    /// Try strategies on historical data
    ///
    /// The strategies of the settings over files of ticks or bars, by a virtual clock, with the simulated venue. The preset
    /// `simulation` lies below all other settings. The same data, settings and seed give the same report.
    #[command(after_help = "Examples:
  pitlane simulate --config mine.toml --data ticks.csv --report report
  pitlane simulate --config mine.toml --data aapl.csv,msft.csv --from 2026-11-02T14:30:00Z --to 2026-11-03")]
    Simulate(Simulate),
    /// Run one strategy in this process, joined to its server by the broker
    ///
    /// The server runs with `--config distributed` and has the strategy's `[[strategy]]` section; reference data come from there. It may be
    /// started before the server and the broker, and outlives both.
    #[command(after_help = "Examples:
  pitlane strategy --name MOMENTUM --connect nats://127.0.0.1:4222
  pitlane strategy --name MOMENTUM --connect tls://broker.example.com:4222 --config mine.toml")]
    Strategy(StrategyArgs),
    /// Read settings and reference data and say what is wrong
    ///
    /// Every fault with file, line and key; 1 if there is one.
    #[command(after_help = "Examples:
  pitlane check --config mine.toml
  pitlane check --refdata config/refdata")]
    Check(Check),
    /// Look at the settings
    #[command(subcommand)]
    Config(ConfigVerb),
    /// Say whether this machine is fit for low latency
    ///
    /// Looks at cores, clocks, memory, limits, ports and disk, with the settings given; each finding with the command that
    /// mends it. 1 if something should be mended.
    #[command(after_help = "Examples:
  pitlane doctor --config pinned
  pitlane doctor --json | jq '.findings[] | select(.verdict == \"unfit\")'")]
    Doctor(Doctor),
    /// Ask the service on this machine whether it is ready
    ///
    /// Asks `/health/ready` at http.listen of the settings given: 0 if orders are taken, 1 if not, or if nobody answers.
    #[command(after_help = "Examples:
  pitlane health
  pitlane health --config /etc/pitlane/pitlane.toml --wait 60")]
    Health(Health),
    /// Look into the journal
    #[command(subcommand)]
    Journal(JournalVerb),
    /// Decide when the folder of a standby server and the stream have diverged
    #[command(subcommand)]
    Standby(StandbyVerb),
    /// Who may log in with a password
    #[command(subcommand)]
    User(UserVerb),
    /// Which machines may come in with a token
    #[command(subcommand)]
    Token(TokenVerb),
    /// Look into the log of administrative acts, and who sent which order
    #[command(subcommand)]
    Audit(AuditVerb),
    /// Print completions for a shell
    #[command(after_help = "Example:
  pitlane completions bash > /etc/bash_completion.d/pitlane")]
    Completions(Completions),
    /// Write manual pages into a folder
    ///
    /// One for each verb, from what `--help` says; the folder must be there.
    #[command(after_help = "Example:
  pitlane man /usr/local/share/man/man1")]
    Man(Man),
}

#[derive(Clone, Debug, Args)]
pub struct Serve {
    #[command(flatten)]
    pub settings: Settings,
    #[command(flatten)]
    pub refdata: Folder,
    /// Folder of journal and certificates: service.data_dir
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Where chance begins: service.seed
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Owners the securities are spread over: topology.shards
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=ShardId::MAX as i64 + 1))]
    pub shards: Option<u8>,
    /// Market events a second, all securities together: feed.rate
    #[arg(long, value_name = "EVENTS", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub rate: Option<u64>,
    /// Stop after so many seconds
    #[arg(long = "for", value_name = "SECONDS")]
    pub seconds: Option<u64>,
    /// Print the first and the last line only
    #[arg(long)]
    pub quiet: bool,
}

impl Serve {
    /// The shorthands are laid over `--set`.
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
pub struct Simulate {
    #[command(flatten)]
    pub settings: Settings,
    #[command(flatten)]
    pub refdata: Folder,
    /// First time that counts, such as 2026-11-14T09:30:00Z: simulation.from
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Time at which it ends: simulation.to
    #[arg(long, value_name = "TIME")]
    pub to: Option<String>,
    /// Files of ticks or bars, with commas between: simulation.data
    #[arg(long, value_name = "FILES")]
    pub data: Option<String>,
    /// Folder for report.txt, report.json and report.html: simulation.report_dir
    #[arg(long, value_name = "DIR")]
    pub report: Option<String>,
    /// Where chance begins: service.seed
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Print no progress
    #[arg(long)]
    pub quiet: bool,
}

impl Simulate {
    /// The preset lies below, the shorthands are laid over `--set`.
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
    pub settings: Settings,
    /// A strategy of the server's settings
    #[arg(long, value_name = "NAME")]
    pub name: String,
    /// The broker: nats.url
    #[arg(long, value_name = "URL")]
    pub connect: Option<String>,
}

impl StrategyArgs {
    /// There is one mode for it; the shorthands are laid over `--set`.
    pub fn sources(&self) -> Sources {
        let mut sources = self.settings.sources();
        sources.options.push(shorthand("strategy", "service.mode", "distributed"));
        sources.options.extend(self.connect.as_ref().map(|url| shorthand("--connect", "nats.url", url)));
        sources
    }
}

#[derive(Clone, Debug, Args)]
pub struct Check {
    #[command(flatten)]
    pub settings: Settings,
    #[command(flatten)]
    pub refdata: Folder,
}

impl Check {
    pub fn sources(&self) -> Sources {
        let mut sources = self.settings.sources();
        sources.options.extend(self.refdata.setting());
        sources
    }
}

#[derive(Clone, Debug, Subcommand)]
pub enum ConfigVerb {
    /// Print every setting that holds, and where it came from
    #[command(after_help = "Examples:
  pitlane config show --config pinned
  pitlane config show --changed")]
    Show(Show),
}

#[derive(Clone, Debug, Args)]
pub struct Show {
    #[command(flatten)]
    pub settings: Settings,
    /// Only what is not as it is built in
    #[arg(long)]
    pub changed: bool,
}

#[derive(Clone, Debug, Args)]
pub struct Doctor {
    #[command(flatten)]
    pub settings: Settings,
    /// Folder of journal and certificates: service.data_dir
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// For machines
    #[arg(long)]
    pub json: bool,
}

impl Doctor {
    pub fn sources(&self) -> Sources {
        let mut sources = self.settings.sources();
        sources.options.extend(self.data.as_ref().map(|dir| data_setting(dir)));
        sources
    }
}

/// What `pitlane journal` can do.
#[derive(Clone, Debug, Subcommand)]
pub enum JournalVerb {
    /// Print one line for each record
    #[command(after_help = "Example:
  pitlane journal dump --data /var/lib/pitlane --shard 0 --from 1000 --limit 20")]
    Dump(JournalPart),
    /// Check every sum, link and snapshot, and that replay gives the digests written down
    #[command(after_help = "Example:
  pitlane journal verify --data /var/lib/pitlane")]
    Verify(JournalPart),
    /// Rebuild the state as a start would, or up to a record, and print what it is
    #[command(after_help = "Example:
  pitlane journal replay --data /var/lib/pitlane --shard 0 --to 1000")]
    Replay(JournalPart),
}

/// What part of a journal is meant. None of the verbs changes it, and it may be in use.
#[derive(Clone, Debug, Args)]
pub struct JournalPart {
    #[command(flatten)]
    pub settings: Settings,
    /// Folder of journal and certificates: service.data_dir
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Only this shard
    #[arg(long, value_name = "N")]
    pub shard: Option<u16>,
    /// First record
    #[arg(long, value_name = "SEQUENCE", default_value_t = 0)]
    pub from: u64,
    /// Last record [default: the last there is]
    #[arg(long, value_name = "SEQUENCE")]
    pub to: Option<u64>,
    /// Lines at most [default: all]
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
}

impl JournalPart {
    pub fn sources(&self) -> Sources {
        let mut sources = self.settings.sources();
        sources.options.extend(self.data.as_ref().map(|dir| data_setting(dir)));
        sources
    }
}

/// What `pitlane audit` can do.
#[derive(Clone, Debug, Subcommand)]
pub enum AuditVerb {
    /// Check that every line follows from the one before, and that no line is missing; 1 if not
    ///
    /// What is missing is told by anchors: the file audit-anchor in the data folder, and the journal. The service may run.
    #[command(after_help = "Example:
  pitlane audit verify --data /var/lib/pitlane")]
    Verify(AuditVerify),
    /// Print who sent each order, modification and cancel, as lines of JSON from the journal
    #[command(after_help = "Example:
  pitlane audit orders --data /var/lib/pitlane --login alice")]
    Orders(AuditOrders),
}

#[derive(Clone, Debug, Args)]
pub struct AuditVerify {
    #[command(flatten)]
    pub folder: DataFolder,
    /// The first line, where files with older lines were put away
    #[arg(long, value_name = "LINE")]
    pub begins_with: Option<u64>,
}

/// Which orders are meant. The journal is not changed, and may be in use.
#[derive(Clone, Debug, Args)]
pub struct AuditOrders {
    #[command(flatten)]
    pub part: JournalPart,
    /// Only what this login has sent
    #[arg(long, value_name = "NAME")]
    pub login: Option<String>,
    /// Only the order or request with this id
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
}

#[derive(Clone, Debug, Args)]
pub struct DataFolder {
    #[command(flatten)]
    pub settings: Settings,
    /// Folder of journal and certificates: service.data_dir
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

impl DataFolder {
    pub fn sources(&self) -> Sources {
        let mut sources = self.settings.sources();
        sources.options.extend(self.data.as_ref().map(|dir| data_setting(dir)));
        sources
    }
}

/// What `pitlane standby` can do. The server that has the folder must not run; the decision holds for its next start, once.
#[derive(Clone, Debug, Subcommand)]
pub enum StandbyVerb {
    /// Lead with this folder, and make the stream from it: what only the stream has is given up
    #[command(after_help = "Example:
  pitlane standby lead --data /var/lib/pitlane")]
    Lead(DataFolder),
    /// Follow the stream: this folder is put aside, in standby/before
    #[command(after_help = "Example:
  pitlane standby follow --data /var/lib/pitlane")]
    Follow(DataFolder),
}

/// What `pitlane user` can do. A running service hears of it on SIGHUP.
#[derive(Clone, Debug, Subcommand)]
pub enum UserVerb {
    /// Add somebody; the password is asked for, or the first line of standard input
    #[command(after_help = "Example:
  pitlane user add alice --role trade --strategies PAIRS,MOMENTUM --file /etc/pitlane/users")]
    Add(Newcomer),
    /// Give somebody another password
    Passwd(Named),
    /// Remove somebody
    Remove(Named),
    /// Print everybody, with role and strategies
    List(CredentialFile),
}

/// What `pitlane token` can do. A running service hears of it on SIGHUP.
#[derive(Clone, Debug, Subcommand)]
pub enum TokenVerb {
    /// Make a token and print it: it is shown this once and kept nowhere
    #[command(after_help = "Example:
  pitlane token create robot --role trade --file /etc/pitlane/tokens")]
    Create(Newcomer),
    /// Make a token worthless
    Revoke(Named),
    /// Print the name of each token, with role and strategies
    List(CredentialFile),
}

#[derive(Clone, Debug, Args)]
pub struct Newcomer {
    pub name: String,
    /// read, trade or admin; each may all that the one before may
    #[arg(long, value_parser = credentials::parse_role)]
    pub role: Role,
    /// Names of strategies with commas between, whose orders and positions may be seen and touched; *: all
    #[arg(long, value_name = "LIST", default_value = "*", value_parser = credentials::parse_strategies)]
    pub strategies: Strategies,
    #[command(flatten)]
    pub file: CredentialFile,
}

#[derive(Clone, Debug, Args)]
pub struct Named {
    pub name: String,
    #[command(flatten)]
    pub file: CredentialFile,
}

/// Which file is meant.
#[derive(Clone, Debug, Args)]
pub struct CredentialFile {
    #[command(flatten)]
    pub settings: Settings,
    /// The file of users or tokens [default: auth.users_file, auth.tokens_file]
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub struct Health {
    #[command(flatten)]
    pub settings: Settings,
    /// Ask again until it is ready, for so many seconds at most
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub wait: u32,
}

#[derive(Clone, Debug, Args)]
pub struct Completions {
    pub shell: Shell,
}

#[derive(Clone, Debug, Args)]
pub struct Man {
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// Where settings come from, for every verb that has any.
#[derive(Clone, Debug, Args)]
pub struct Settings {
    /// A file of settings, or a preset: dev, bench, pinned, simulation, distributed; repeated, the later wins
    #[arg(long, value_name = "FILE|PRESET")]
    pub config: Vec<String>,
    /// One setting, over files and environment
    #[arg(long, value_name = "KEY=VALUE", value_parser = Setting::parse)]
    pub set: Vec<Setting>,
}

impl Settings {
    pub fn sources(&self) -> Sources {
        let text = |(name, value): (_, _)| Some((os_text(name)?, os_text(value)?));
        Sources {
            files: self.config.clone(),
            environment: env::vars_os().filter_map(text).collect(),
            options: self.set.clone(),
        }
    }
}

/// Text of the system, if it is text.
fn os_text(text: std::ffi::OsString) -> Option<String> {
    text.into_string().ok()
}

#[derive(Clone, Debug, Args)]
pub struct Folder {
    /// Folder with exchanges.csv, families.csv, securities.csv, accounts.csv and strategies.csv: refdata.dir
    #[arg(long = "refdata", value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

impl Folder {
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

    fn verb(words: &str) -> Result<Verb, clap::Error> {
        Cli::try_parse_from(words.split(' ')).map(Cli::verb)
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn serve_is_the_default_command() {
        for words in ["pitlane --seed 7 --for 1 --quiet", "pitlane serve --seed 7 --for 1 --quiet"] {
            let Verb::Serve(serve) = verb(words).unwrap() else { panic!("{words}") };
            assert_eq!(
                (serve.seed, serve.seconds, serve.quiet, serve.shards),
                (Some(7), Some(1), true, None)
            );
        }
        assert!(matches!(verb("pitlane check --refdata x"), Ok(Verb::Check(_))));
        assert!(matches!(verb("pitlane doctor --json"), Ok(Verb::Doctor(_))));
        assert!(matches!(verb("pitlane completions zsh"), Ok(Verb::Completions(_))));
        assert!(matches!(verb("pitlane health --wait 5"), Ok(Verb::Health(_))));
        assert!(matches!(verb("pitlane man d"), Ok(Verb::Man(_))));
        assert!(matches!(verb("pitlane config show"), Ok(Verb::Config(ConfigVerb::Show(_)))));
    }

    #[test]
    fn shorthands_are_settings_and_win_over_set() {
        let words = "pitlane --set service.seed=5 --set feed.rate=9 --seed 7 --shards 3 --rate 11 --data d --refdata r";
        let Verb::Serve(serve) = verb(words).unwrap() else { panic!("{words}") };
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
            verb: JournalVerb,
        }
        let words = "journal dump --data d --shard 3 --from 5 --to 9 --limit 2";
        let JournalVerb::Dump(part) = Alone::parse_from(words.split(' ')).verb else { panic!("{words}") };
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
