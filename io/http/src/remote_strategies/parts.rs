//! What the http thread needs to serve remote strategies.

use std::sync::Arc;

use pitlane_cluster::nats::subjects::Subjects;
use pitlane_config::{Config, NatsConfig, RemoteStrategiesConfig, StrategyConfig};
use pitlane_engine::desk::IdBlock;
use pitlane_journal::PastEvents;
use pitlane_market_data::pace::Pace;

pub struct RemoteStrategiesParts {
    pub nats: NatsConfig,
    pub settings: RemoteStrategiesConfig,
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
            subjects: Subjects::of(&config.nats, &config.service),
            strategies: config.strategies.clone(),
            past,
            last_seqs,
            numbers,
            pace: None,
        }
    }
}
