//! The cores on which a thread may run. No `unsafe`: `rustix` has safe calls for all of it.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Pins the calling thread to one core, by the system's core number. Fails if there is no such core
/// or the process may not use it.
pub fn pin_current_thread(core: usize) -> io::Result<()> {
    if core >= CpuSet::MAX_CPU {
        let error = format!("cores are numbered below {}", CpuSet::MAX_CPU);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, error));
    }
    let mut set = CpuSet::new();
    set.set(core);
    Ok(sched_setaffinity(None, &set)?)
}

/// Returns the cores that the calling thread may run on, in order.
pub fn allowed_cores() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_has_one_core() {
        // The test uses a separate thread, so that the other tests keep their cores.
        let pinned = std::thread::spawn(|| {
            let last = *allowed_cores()?.last().ok_or(io::ErrorKind::NotFound)?;
            pin_current_thread(last)?;
            Ok::<_, io::Error>((last, allowed_cores()?))
        });
        let (core, cores) = pinned.join().expect("no panic").expect("a core of ours can be had");
        assert_eq!(cores, [core]);
    }

    #[test]
    fn a_core_that_does_not_exist_is_refused() {
        assert!(pin_current_thread(CpuSet::MAX_CPU - 1).is_err(), "no machine of ours has so many");
        let refused = pin_current_thread(CpuSet::MAX_CPU).map_err(|error| error.kind());
        assert_eq!(refused, Err(io::ErrorKind::InvalidInput));
        assert!(pin_current_thread(usize::MAX).is_err());
    }
}
