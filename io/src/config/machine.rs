//! What the settings must fit: the cores of this machine.

use std::fs;
use std::path::Path;
use std::thread;

/// Core numbers above this are not believed.
const CORES_MAX: u32 = 8_192;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Numbers of the cores that are switched on.
    pub cores: Vec<u32>,
    /// Cores this process may use at once; a container may give it fewer than there are.
    pub cores_usable: usize,
}

impl Machine {
    /// The one we run on; `root` is `/`, or a folder that looks like it.
    pub fn of(root: &Path) -> Machine {
        let cores_usable = thread::available_parallelism().map_or(1, |cores| cores.get());
        let online = fs::read_to_string(root.join("sys/devices/system/cpu/online")).unwrap_or_default();
        let mut cores = parse_cores(online.trim()).unwrap_or_default();
        if cores.is_empty() {
            cores = (0..cores_usable as u32).collect();
        }
        Machine { cores, cores_usable }
    }
}

/// Reads a list of cores as the kernel writes it: `0-3,8`. None if it is something else.
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
