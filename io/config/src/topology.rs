//! Threads and lanes: `[topology]` and `[lanes]`.

use pitlane_engine::id::ShardId;
use pitlane_engine::mesh::Depths;

use super::section::Section;

/// Highest number of gateways; more would leave no ports for the rest: a mesh has 32.
pub const GATEWAYS_MAX: u8 = 16;
/// Highest core number: Linux has room for 8,192 cores.
const CORE_MAX: u32 = 8_191;
/// Deepest lane: a lane of a million commands is 128 MiB.
const DEPTH_MAX: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyConfig {
    pub layout: Layout,
    pub shards: u8,
    pub gateways: u8,
    /// One core for each thread of the kind; empty: not pinned.
    pub shard_cores: Vec<u32>,
    pub gateway_cores: Vec<u32>,
    pub http_cores: Vec<u32>,
    pub journal_cores: Vec<u32>,
    pub main_cores: Vec<u32>,
    pub idle: IdleBy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One thread polls shards and gateways in turn.
    Shared,
    /// Each has its own thread.
    Dedicated,
}

/// What a thread does without work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleBy {
    Spin,
    Adaptive,
    Park,
}

impl TopologyConfig {
    pub(super) fn read(section: &mut Section<'_>) -> TopologyConfig {
        TopologyConfig {
            layout: section.word("layout", &[("shared", Layout::Shared), ("dedicated", Layout::Dedicated)]),
            shards: section.number("shards", 1..=ShardId::MAX + 1),
            gateways: section.number("gateways", 1..=GATEWAYS_MAX),
            shard_cores: section.numbers("shard_cores", 0..=CORE_MAX),
            gateway_cores: section.numbers("gateway_cores", 0..=CORE_MAX),
            http_cores: section.numbers("http_cores", 0..=CORE_MAX),
            journal_cores: section.numbers("journal_cores", 0..=CORE_MAX),
            main_cores: section.numbers("main_cores", 0..=CORE_MAX),
            idle: section.word(
                "idle",
                &[("spin", IdleBy::Spin), ("adaptive", IdleBy::Adaptive), ("park", IdleBy::Park)],
            ),
        }
    }

    /// Returns the number of threads of shards and of gateways. In the shared layout one thread is
    /// both.
    pub fn threads(&self) -> (usize, usize) {
        match self.layout {
            Layout::Shared => (1, 0),
            Layout::Dedicated => (self.shards as usize, self.gateways as usize),
        }
    }

    /// Returns every list of cores with its key and the threads of its kind.
    pub fn core_lists(&self) -> [(&'static str, &[u32], usize); 5] {
        let (shards, gateways) = self.threads();
        [
            ("topology.shard_cores", &self.shard_cores, shards),
            ("topology.gateway_cores", &self.gateway_cores, gateways),
            ("topology.http_cores", &self.http_cores, 1),
            ("topology.journal_cores", &self.journal_cores, 1),
            ("topology.main_cores", &self.main_cores, 1),
        ]
    }

    /// Returns the cores of the latency-critical threads: shards and gateways.
    pub fn quick_cores(&self) -> Vec<u32> {
        let mut cores = [self.shard_cores.as_slice(), &self.gateway_cores].concat();
        cores.sort_unstable();
        cores.dedup();
        cores
    }
}

pub(super) fn read_lanes(section: &mut Section<'_>) -> Depths {
    Depths {
        commands: section.number("commands", 1..=DEPTH_MAX),
        events: section.number("events", 1..=DEPTH_MAX),
    }
}
