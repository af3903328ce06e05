//! Arguments of the commands that run the platform, a simulation or a strategy.

use std::path::PathBuf;

use clap::Args;
use pitlane_backtest::sweep::grid::{Grid, ParameterSet};
use pitlane_backtest::sweep::statistic::Statistic;
use pitlane_backtest::sweep::walk_forward::WalkForward;
use pitlane_config::{Sources, is_direct_address};
use pitlane_engine::id::ShardId;

use super::settings::{RefDataFolderArgs, SettingsArgs, data_setting, shorthand};

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
    /// Start of the evaluated period, such as 2026-11-14T09:30:00Z: simulation.from
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Time at which the run ends: simulation.to
    #[arg(long, value_name = "TIME")]
    pub to: Option<String>,
    /// Files of ticks or bars, separated by commas: simulation.data
    #[arg(long, value_name = "FILES")]
    pub data: Option<String>,
    /// Format of the files, such as dbn, itch or binance-trades, instead of recognising it:
    /// simulation.format
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<String>,
    /// Folder for report.txt, report.json and report.html, or those of a sweep:
    /// simulation.report_dir
    #[arg(long, value_name = "DIR")]
    pub report: Option<String>,
    /// Seed of random numbers: service.seed
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Parameters of strategies, such as fast=10,slow=100 or MOMENTUM.fast=10
    #[arg(long, value_name = "VALUES", value_parser = ParameterSet::parse)]
    pub param: Option<ParameterSet>,
    /// Run every combination of these values: fast=10..50:10,slow=100|200 (ranges include their
    /// ends)
    #[arg(long, value_name = "GRID", value_parser = Grid::parse, conflicts_with = "param")]
    pub sweep: Option<Grid>,
    /// Runs at the same time; without it, one for each core
    #[arg(long, value_name = "N", requires = "sweep", value_parser = clap::value_parser!(u16).range(1..=1_024))]
    pub jobs: Option<u16>,
    /// Statistic that orders the runs: return, sharpe, sortino, calmar, max-draw-down,
    /// profit-factor, expectancy or win-rate
    #[arg(long, value_name = "STATISTIC", requires = "sweep", value_parser = Statistic::parse)]
    pub sort: Option<Statistic>,
    /// Choose parameters over TRAIN and judge them over the following TEST, again and again:
    /// 30d,10d
    #[arg(long, value_name = "TRAIN,TEST", requires = "sweep", value_parser = WalkForward::parse)]
    pub walk_forward: Option<WalkForward>,
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
        let options = [
            ("--from", "simulation.from", &self.from),
            ("--to", "simulation.to", &self.to),
            ("--data", "simulation.data", &self.data),
            ("--format", "simulation.format", &self.format),
            ("--report", "simulation.report_dir", &self.report),
            ("--seed", "service.seed", &seed),
        ];
        for (option, key, value) in options {
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
    /// Address of the server, pitlane://HOST:PORT, pitlanes://HOST:PORT (TLS) or unix:PATH:
    /// strategies.connect; or of the broker, nats://HOST:PORT: nats.url
    #[arg(long, value_name = "URL")]
    pub connect: Option<String>,
}

impl StrategyArgs {
    /// Returns the sources of the settings. The mode is always `distributed`, and the shorthand
    /// options override `--set`.
    pub fn sources(&self) -> Sources {
        let mut sources = self.settings.sources();
        sources.options.push(shorthand("strategy", "service.mode", "distributed"));
        if let Some(url) = &self.connect {
            let (transport, key) = match is_direct_address(url) {
                true => ("direct", "strategies.connect"),
                false => ("nats", "nats.url"),
            };
            sources.options.push(shorthand("--connect", "strategies.transport", transport));
            sources.options.push(shorthand("--connect", key, url));
        }
        sources
    }
}
