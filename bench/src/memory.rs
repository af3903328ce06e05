//! Measures the memory of a shard with a million open orders.

use crate::conditions::resident_bytes;
use crate::scenario::Scenario;
use crate::whole::Whole;
use crate::workload::{Matcher, Outcome};

pub struct Memory {
    pub open: u32,
    /// Bytes of the shard with its orders, without the workload and the rest of the process.
    pub bytes: u64,
    pub process_bytes: u64,
    pub outcome: Outcome,
}

/// Opens this many orders in the shape of `s10k`. Returns `None` where the system does not report
/// memory.
pub fn open_orders(open: u32) -> Option<Memory> {
    let scenario = Scenario { open, ops: 0, ..Scenario::named("s10k").expect("a scenario") };
    let workload = scenario.generate();
    let before = resident_bytes()?;
    let mut whole = Whole::new(&workload);
    workload.prefill.iter().for_each(|record| whole.apply(record));
    let process_bytes = resident_bytes()?;
    let outcome = whole.outcome();
    Some(Memory { open, bytes: process_bytes.saturating_sub(before), process_bytes, outcome })
}
