//! The conditions under which a number was measured. A result is printed together with them or not
//! at all.

use std::fmt;
use std::fs;
use std::process::Command;

use pitlane_sys::affinity::{allowed_cores, pin_current_thread};
use serde::Serialize;

#[derive(Clone, Debug, Serialize)]
pub struct Conditions {
    machine: String,
    kernel: String,
    cores: usize,
    governor: String,
    clock_source: String,
    load: String,
    commit: String,
    rustc: &'static str,
    build: &'static str,
    pinned: String,
}

impl Conditions {
    pub fn of(pinning: &Pinning) -> Conditions {
        Conditions {
            machine: machine(),
            kernel: first_line("/proc/sys/kernel/osrelease"),
            cores: pinning.cores,
            governor: first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            clock_source: first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            load: first_line("/proc/loadavg"),
            commit: commit(),
            rustc: env!("PITLANE_BENCH_RUSTC"),
            build: if cfg!(debug_assertions) { "debug, not to be compared" } else { "release" },
            pinned: pinning.to_string(),
        }
    }
}

impl fmt::Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "machine   {}, {} cores, kernel {}", self.machine, self.cores, self.kernel)?;
        let Conditions { pinned, governor, clock_source, load, .. } = self;
        writeln!(f, "pinning   {pinned}, governor {governor}, clock source {clock_source}, load {load}")?;
        writeln!(f, "build     {}, {}, commit {}", self.build, self.rustc, self.commit)
    }
}

/// Cores of the measuring threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pinning {
    /// Number of cores that the process may use.
    pub cores: usize,
    /// Core of the thread that takes the time or generates the load.
    pub first: Option<usize>,
    /// Core of the other end of a ring. The same as `first` on a machine with one core.
    pub second: Option<usize>,
}

impl Pinning {
    /// Pins the calling thread to the last core, where the system is least busy, and reserves the
    /// one before it for a partner.
    pub fn take() -> Pinning {
        let cores = allowed_cores().unwrap_or_default();
        let first = cores.last().copied().filter(|&core| pin_current_thread(core).is_ok());
        let second = if cores.len() > 1 { cores.get(cores.len() - 2).copied() } else { first };
        Pinning { cores: cores.len(), first, second: second.filter(|_| first.is_some()) }
    }

    /// Returns whether two threads have a core each.
    pub fn has_two_cores(&self) -> bool {
        self.first.is_some() && self.first != self.second
    }
}

impl fmt::Display for Pinning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.first, self.second) {
            (Some(first), Some(second)) if first != second => {
                write!(f, "core {}, partner on core {}", first, second)
            }
            (Some(first), _) => write!(f, "core {}, and no second core", first),
            (None, _) => write!(f, "none possible"),
        }
    }
}

fn machine() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find(|line| line.starts_with("model name"));
    let name = line.and_then(|line| line.split(':').nth(1)).map_or("unknown", str::trim);
    name.to_owned()
}

fn first_line(path: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().next().unwrap_or("not visible").to_owned()
}

fn commit() -> String {
    let output = Command::new("git").args(["describe", "--always", "--dirty", "--abbrev=10"]).output();
    match output {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        _ => "unknown".into(),
    }
}

/// Returns the resident bytes of this process.
pub fn resident_bytes() -> Option<u64> {
    // Pages have 4 KiB on every machine that we use; with larger pages the result would be too
    // small.
    let pages: u64 = fs::read_to_string("/proc/self/statm").ok()?.split(' ').nth(1)?.parse().ok()?;
    Some(pages * 4_096)
}

/// Returns the nanoseconds that this thread has been on a core, or `None` where the system does not
/// report them.
pub fn on_core_ns() -> Option<u64> {
    // The kernel updates the number when the thread enters the scheduler.
    std::thread::yield_now();
    fs::read_to_string("/proc/thread-self/schedstat").ok()?.split(' ').next()?.parse().ok()
}
