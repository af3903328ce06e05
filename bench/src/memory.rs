//! Measures the memory of a shard with a million open orders.

use crate::conditions::resident_bytes;
use crate::scenario::Scenario;
use crate::whole_shard::WholeShard;
use crate::workload::{FlowOutcome, Matcher};

pub struct ProcessMemory {
    pub open: u32,
    /// Bytes of the shard with its orders, without the workload and the rest of the process.
    pub bytes: u64,
    pub process_bytes: u64,
    pub outcome: FlowOutcome,
}

/// Opens this many orders in the shape of `s10k`. Returns `None` where the system does not report
/// memory.
pub fn open_orders(open: u32) -> Option<ProcessMemory> {
    let scenario = Scenario { open, ops: 0, ..Scenario::named("s10k").expect("a scenario") };
    let workload = scenario.generate();
    let before = resident_bytes()?;
    let mut matcher = WholeShard::new(&workload);
    workload.prefill.iter().for_each(|record| matcher.apply(record));
    let process_bytes = resident_bytes()?;
    let outcome = matcher.outcome();
    Some(ProcessMemory { open, bytes: process_bytes.saturating_sub(before), process_bytes, outcome })
}
