//! Settings of the history: what is kept, and for how long.

use std::path::PathBuf;

use pitlane_config::Config;
use pitlane_engine::time::{NS_PER_DAY, NS_PER_S};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistorySettings {
    /// Folder of all files of the history.
    pub folder: PathBuf,
    /// Number of shards, to which securities belong.
    pub shards: u8,
    pub ticks_ns: u64,
    pub seconds_ns: u64,
    pub minutes_ns: u64,
    /// Bytes of all files.
    pub bytes_max: u64,
}

impl HistorySettings {
    /// Returns `None` if no history is kept.
    pub fn of(config: &Config) -> Option<HistorySettings> {
        let history = &config.history;
        history.on.then(|| HistorySettings {
            folder: config.service.data_dir.join("history"),
            shards: config.topology.shards,
            ticks_ns: u64::from(history.ticks_hours) * 3_600 * NS_PER_S,
            seconds_ns: u64::from(history.bars_1s_days) * NS_PER_DAY,
            minutes_ns: u64::from(history.bars_1m_days) * NS_PER_DAY,
            bytes_max: history.bytes_max,
        })
    }
}
