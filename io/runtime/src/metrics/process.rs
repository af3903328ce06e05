//! Metrics of this process from the operating system. An unavailable number is absent rather than
//! zero.

use std::fs;

/// Clock ticks per second in `/proc`: fixed on Linux, whatever the kernel itself counts in.
const TICKS_PER_S: u64 = 100;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Process {
    pub cpu_ns: Option<u64>,
    /// Since the epoch.
    pub started_s: Option<u64>,
    pub resident_bytes: Option<u64>,
    pub threads: Option<u64>,
    pub fds: Option<u64>,
    pub fds_max: Option<u64>,
}

impl Process {
    pub fn read() -> Process {
        let read = |name| fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default();
        let (stat, status, limits) = (read("stat"), read("status"), read("limits"));
        Process {
            cpu_ns: cpu_ns(&stat),
            started_s: started_s(&stat, &fs::read_to_string("/proc/stat").unwrap_or_default()),
            resident_bytes: number_after(&status, "VmRSS:").map(|kib| kib * 1_024),
            threads: number_after(&status, "Threads:"),
            fds: fs::read_dir("/proc/self/fd").ok().map(|list| list.count() as u64),
            fds_max: number_after(&limits, "Max open files"),
        }
    }
}

/// Returns the first number on the line that starts with `prefix`.
fn number_after(text: &str, prefix: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(prefix))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Returns user and system time: the 14th and 15th value. The second value is the name in brackets,
/// which may contain any character.
fn cpu_ns(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut values = rest.split_whitespace().skip(11);
    let mut ticks = || values.next()?.parse::<u64>().ok();
    Some((ticks()? + ticks()?) * (1_000_000_000 / TICKS_PER_S))
}

/// Returns the start of the process: the 22nd value counts ticks since the start of the system.
fn started_s(stat: &str, system: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let ticks: u64 = rest.split_whitespace().nth(19)?.parse().ok()?;
    Some(number_after(system, "btime")? + ticks / TICKS_PER_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_brackets_does_not_shift_the_values() {
        let stat = "42 (pit) lane) x) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0";
        assert_eq!(cpu_ns(stat), Some(3_000_000_000));
        assert_eq!(cpu_ns(""), None);
        assert_eq!(cpu_ns("42 (x) S 1"), None);
        let stat = "42 (x) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 1 0 1234";
        assert_eq!(started_s(stat, "cpu 1 2\nbtime 1000\n"), Some(1_012));
        assert_eq!(started_s(stat, ""), None);
    }

    #[test]
    fn the_numbers_of_this_process_are_read() {
        let process = Process::read();
        assert!(process.resident_bytes.unwrap() > 100_000);
        assert!(process.threads.unwrap() >= 1);
        assert!(process.fds.unwrap() >= 3);
        assert!(process.fds_max.is_some());
        assert!(process.cpu_ns.is_some());
        assert!(process.started_s.is_some());
    }
}
