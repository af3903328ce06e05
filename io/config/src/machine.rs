//! The cores of this machine, which the settings must fit.

use std::fs;
use std::path::Path;
use std::thread;

/// Highest core number that is accepted.
const CORES_MAX: u32 = 8_192;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Numbers of the cores that are online.
    pub cores: Vec<u32>,
    /// Cores this process may use at once; a container may give it fewer than there are.
    pub cores_usable: usize,
}

impl Machine {
    /// Returns the current machine; `root` is `/`, or a folder with the same layout.
    pub fn of(root: &Path) -> Machine {
        let cores_usable = thread::available_parallelism().map_or(1, |cores| cores.get());
        let online = fs::read_to_string(root.join("sys/devices/system/cpu/online")).unwrap_or_default();
        let mut cores = parse_cores(online.trim()).unwrap_or_default();
        if cores.is_empty() {
            cores = (0..CORES_MAX).take(cores_usable).collect();
        }
        Machine { cores, cores_usable }
    }
}

/// Parses a list of cores in the kernel's format: `0-3,8`. None if the text is something else.
pub fn parse_cores(text: &str) -> Option<Vec<u32>> {
    let mut cores = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= CORES_MAX {
            return None;
        }
        cores.extend(first..=last);
    }
    cores.sort_unstable();
    cores.dedup();
    Some(cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_listed_as_the_kernel_does() {
        assert_eq!(parse_cores("0-2,5"), Some(vec![0, 1, 2, 5]));
        assert_eq!(parse_cores(""), Some(vec![]));
        assert_eq!(parse_cores(" 3 "), Some(vec![3]));
        for text in ["a", "2-1", "1-", "-1", "0-99999999"] {
            assert_eq!(parse_cores(text), None, "{text}");
        }
    }
}
