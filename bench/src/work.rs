//! Small, repeatable pieces of the hot path, by name: the gate times them, and callgrind counts
//! their instructions.

use std::fmt;
use std::sync::Arc;

use clap::ValueEnum;
use pitlane_engine::index::index_u32;

use crate::comparison::Engine;
use crate::scenario::Scenario;
use crate::workload::Workload;
use crate::{fix, fix_path, platform, stages, stomp};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MicroBench {
    /// A New Order Single from bytes to typed fields.
    FixDecode,
    /// The same with the checks of the dictionary.
    FixValidate,
    /// An Execution Report into a reused buffer.
    FixEncode,
    /// A SUBSCRIBE frame.
    StompDecode,
    /// A tick as JSON.
    StompRender,
    /// A tick to ten consumers, without sockets.
    StompFanOut,
    /// The order book alone, in the cache.
    BookS1,
    /// The whole shard, in the cache.
    ShardS1,
    /// The whole shard with a hundred securities.
    ShardS100,
    /// An order from lane to lane through a shard's thread loop, without stage timestamps.
    #[value(name = "road")]
    LanePath,
    /// The same with the stage timestamps.
    #[value(name = "road-stamped")]
    LanePathStamped,
    /// A FIX order from bytes to both its reports, through session, desk, lane and shard.
    #[value(name = "fix-road")]
    FixPath,
}

impl MicroBench {
    pub const ALL: [MicroBench; 12] = [
        MicroBench::FixDecode,
        MicroBench::FixValidate,
        MicroBench::FixEncode,
        MicroBench::StompDecode,
        MicroBench::StompRender,
        MicroBench::StompFanOut,
        MicroBench::BookS1,
        MicroBench::ShardS1,
        MicroBench::ShardS100,
        MicroBench::LanePath,
        MicroBench::LanePathStamped,
        MicroBench::FixPath,
    ];

    /// Runs it `ops` times, and returns the nanoseconds of one.
    pub fn run(self, ops: usize) -> f64 {
        let reference = || platform::reference(1);
        match self {
            MicroBench::FixDecode => fix::decode_ns(ops),
            MicroBench::FixValidate => fix::validated_ns(ops),
            MicroBench::FixEncode => fix::encode_ns(&reference(), ops),
            MicroBench::StompDecode => stomp::decode(ops),
            MicroBench::StompRender => stomp::render(ops, &reference()).0,
            MicroBench::StompFanOut => stomp::fan_out(10, ops, Arc::new(platform::reference(100))).0,
            MicroBench::BookS1 => Engine::Book.throughput(&flow("s1", ops)).ns_per_op,
            MicroBench::ShardS1 => Engine::Shard.throughput(&flow("s1", ops)).ns_per_op,
            MicroBench::ShardS100 => Engine::Shard.throughput(&flow("s100", ops)).ns_per_op,
            MicroBench::LanePath => stages::path_ns(false, ops),
            MicroBench::LanePathStamped => stages::path_ns(true, ops),
            MicroBench::FixPath => fix_path::path_ns(ops),
        }
    }

    /// Returns the number of operations that takes some tenths of a second.
    pub fn usual_ops(self) -> usize {
        match self {
            MicroBench::StompFanOut => 100_000,
            MicroBench::FixPath => 50_000,
            MicroBench::ShardS1
            | MicroBench::ShardS100
            | MicroBench::LanePath
            | MicroBench::LanePathStamped => 500_000,
            MicroBench::FixDecode
            | MicroBench::FixValidate
            | MicroBench::FixEncode
            | MicroBench::StompDecode
            | MicroBench::StompRender
            | MicroBench::BookS1 => 1_000_000,
        }
    }
}

impl fmt::Display for MicroBench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.to_possible_value().expect("every value has a name");
        f.pad(name.get_name())
    }
}

fn flow(name: &str, ops: usize) -> Workload {
    let scenario = Scenario::named(name).expect("a scenario of ours");
    Scenario { ops: index_u32(ops), ..scenario }.generate()
}
