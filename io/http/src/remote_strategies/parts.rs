//! What the http thread needs to serve remote strategies.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use pitlane_cluster::nats::subjects::Subjects;
use pitlane_config::{
    Config, Durability, NatsConfig, RemoteStrategiesConfig, StrategiesConfig, StrategyConfig,
    StrategyTransport,
};
use pitlane_engine::desk::IdBlock;
use pitlane_engine::time::Timestamp;
use pitlane_journal::PastEvents;
use pitlane_market_data::pace::Pace;

use super::generic_log::{GenericBounds, GenericLog};

/// Name of the Unix socket in the data folder.
const SOCKET: &str = "strategies.sock";

pub struct RemoteStrategiesParts {
    pub nats: NatsConfig,
    pub settings: RemoteStrategiesConfig,
    pub link: StrategiesConfig,
    /// Name of this installation.
    pub server: String,
    /// Path of the Unix socket; `None`: there is none.
    pub socket: Option<PathBuf>,
    /// Events between strategies that this server keeps; `None`: the broker keeps them.
    pub generic_log: Option<GenericLog>,
    pub subjects: Subjects,
    pub strategies: Vec<StrategyConfig>,
    /// By shard: events of the strategies, read from the journal.
    pub past: Vec<PastEvents>,
    /// By shard: the last event before this start.
    pub last_seqs: Vec<u64>,
    /// Numbers for the ids of all processes until the next start.
    pub numbers: IdBlock,
    /// Pace of a market that waits for its receivers; `None` if it does not wait.
    pub pace: Option<Arc<Pace>>,
}

impl RemoteStrategiesParts {
    pub fn of(
        config: &Config,
        past: Vec<PastEvents>,
        last_seqs: Vec<u64>,
        numbers: IdBlock,
    ) -> RemoteStrategiesParts {
        RemoteStrategiesParts {
            nats: config.nats.clone(),
            settings: config.remote_strategies.clone(),
            link: config.strategies_link.clone(),
            server: config.service.name.clone(),
            socket: config.strategies_link.unix_socket.then(|| config.service.data_dir.join(SOCKET)),
            generic_log: None,
            subjects: Subjects::of(&config.nats, &config.service),
            strategies: config.strategies.clone(),
            past,
            last_seqs,
            numbers,
            pace: None,
        }
    }

    /// Opens the log of events between strategies, where there is no broker that keeps them.
    pub fn open_generic_log(&mut self, config: &Config, now: Timestamp) -> io::Result<()> {
        if self.link.transport == StrategyTransport::Nats {
            return Ok(());
        }
        let bounds = GenericBounds {
            keep_s: self.settings.generic_keep_s,
            count_max: usize::try_from(self.settings.generic_max).unwrap_or(usize::MAX),
            bytes_max: self.settings.generic_bytes_max,
        };
        let data_dir = match config.durability() {
            Durability::None => None,
            Durability::Os | Durability::Disk | Durability::Replicated => Some(&*config.service.data_dir),
        };
        let names: Vec<String> = self.strategies.iter().map(|strategy| strategy.name.clone()).collect();
        self.generic_log = Some(GenericLog::open(data_dir, bounds, &names, now)?);
        Ok(())
    }
}
