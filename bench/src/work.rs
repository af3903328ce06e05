//! Small, repeatable pieces of the hot path, by name: the gate times them, and callgrind counts
//! their instructions.

use std::fmt;
use std::sync::Arc;

use clap::ValueEnum;

use crate::contest::Engine;
use crate::scenario::Scenario;
use crate::workload::Workload;
use crate::{fix, fix_road, platform, stages, stomp};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Work {
    /// A New Order Single from bytes to typed fields.
    FixDecode,
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
    Road,
    /// The same with the stage timestamps.
    RoadStamped,
    /// A FIX order from bytes to both its reports, through session, desk, lane and shard.
    FixRoad,
}

impl Work {
    pub const ALL: [Work; 11] = [
        Work::FixDecode,
        Work::FixEncode,
        Work::StompDecode,
        Work::StompRender,
        Work::StompFanOut,
        Work::BookS1,
        Work::ShardS1,
        Work::ShardS100,
        Work::Road,
        Work::RoadStamped,
        Work::FixRoad,
    ];

    /// Runs it `ops` times, and returns the nanoseconds of one.
    pub fn run(self, ops: usize) -> f64 {
        let reference = || platform::reference(1);
        match self {
            Work::FixDecode => fix::decode_ns(ops),
            Work::FixEncode => fix::encode_ns(&reference(), ops),
            Work::StompDecode => stomp::decode(ops),
            Work::StompRender => stomp::render(ops, &reference()).0,
            Work::StompFanOut => stomp::fan_out(10, ops, Arc::new(platform::reference(100))).0,
            Work::BookS1 => Engine::Book.throughput(&flow("s1", ops)).ns_per_op,
            Work::ShardS1 => Engine::Shard.throughput(&flow("s1", ops)).ns_per_op,
            Work::ShardS100 => Engine::Shard.throughput(&flow("s100", ops)).ns_per_op,
            Work::Road => stages::road(false, ops),
            Work::RoadStamped => stages::road(true, ops),
            Work::FixRoad => fix_road::road_ns(ops),
        }
    }

    /// Returns the number of operations that takes some tenths of a second.
    pub fn usual_ops(self) -> usize {
        match self {
            Work::StompFanOut => 100_000,
            Work::FixRoad => 50_000,
            Work::ShardS1 | Work::ShardS100 | Work::Road | Work::RoadStamped => 500_000,
            _ => 1_000_000,
        }
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.to_possible_value().expect("no piece of work is hidden");
        f.pad(name.get_name())
    }
}

fn flow(name: &str, ops: usize) -> Workload {
    let scenario = Scenario::named(name).expect("a scenario of ours");
    Scenario { ops: ops as u32, ..scenario }.generate()
}
