//! Counts the instructions of one operation with callgrind: the number does not depend on what else
//! the machine does.

use std::path::Path;
use std::process::Command;

use crate::work::MicroBench;

/// Operations of the first of two runs; the second has twice as many, so that the instructions
/// common to both cancel out. Only the timed part is counted, not its preparation.
const OPS: usize = 20_000;

/// Returns the instructions of one operation, including everything that it calls.
pub fn count(work: MicroBench) -> Result<f64, String> {
    let build = std::env::current_exe().map_err(|error| error.to_string())?;
    let (once, twice) = (collected(&build, work, OPS)?, collected(&build, work, 2 * OPS)?);
    Ok(twice.saturating_sub(once) as f64 / OPS as f64)
}

fn collected(build: &Path, work: MicroBench, ops: usize) -> Result<u64, String> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(["--collect-atstart=no", "--toggle-collect=*measure::counted*"])
        .arg(build)
        .args(["work", &work.to_string(), "--ops", &ops.to_string()])
        .output()
        .map_err(|_| "needs valgrind: apt install valgrind")?;
    let text = String::from_utf8_lossy(&output.stderr);
    // `==123== Collected : 4711`
    let line = text.lines().find_map(|line| line.split_once("Collected :"));
    line.and_then(|(_, count)| count.trim().parse().ok())
        .ok_or_else(|| format!("callgrind: {}", text.lines().last().unwrap_or("it printed nothing")))
}
