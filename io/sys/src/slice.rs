//! The time slice of a thread: how long it may run while others wait for the same core. The
//! scheduler of Linux 6.12 and newer takes a slice for each thread; a thread with a short slice
//! runs sooner after it was woken and gives way sooner. Older systems ignore it.

use std::io;
use std::time::Duration;

use libc::{SCHED_BATCH, SCHED_OTHER, SYS_sched_getattr, SYS_sched_setattr, c_long, syscall};

/// The scheduling attributes of a thread, as `sched_attr` of `linux/sched/types.h` in its first
/// version.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// Of an ordinary thread: its slice in nanoseconds.
    runtime: u64,
    deadline: u64,
    period: u64,
}

const SIZE: u32 = 48;

/// Sets the slice of the calling thread. The system limits it to between 0.1 and 100 ms. A thread
/// of a real-time class has none, and stays as it is.
pub fn set_slice(slice: Duration) -> io::Result<()> {
    let mut attr = attributes()?;
    if ![SCHED_OTHER, SCHED_BATCH].iter().any(|policy| u32::try_from(*policy) == Ok(attr.policy)) {
        return Ok(());
    }
    attr.runtime = u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX);
    // SAFETY: the call reads `SIZE` bytes of `attr`, which lives until it returns; 0 is the calling
    // thread.
    check(unsafe { syscall(SYS_sched_setattr, 0, &raw const attr, 0) })
}

/// Returns the slice of the calling thread; zero where the system has none for a thread.
pub fn slice() -> io::Result<Duration> {
    Ok(Duration::from_nanos(attributes()?.runtime))
}

fn attributes() -> io::Result<SchedAttr> {
    let mut attr = SchedAttr::default();
    // SAFETY: the call writes at most `SIZE` bytes into `attr`, which lives until it returns, and
    // any bytes are a valid value; 0 is the calling thread.
    check(unsafe { syscall(SYS_sched_getattr, 0, &raw mut attr, SIZE, 0) })?;
    attr.size = SIZE;
    Ok(attr)
}

fn check(result: c_long) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

// Miri does not support these calls.
#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_that_of_the_header() {
        assert_eq!(u32::try_from(size_of::<SchedAttr>()), Ok(SIZE));
    }

    #[test]
    fn a_slice_is_kept_where_the_kernel_supports_it() {
        // The test uses a separate thread, so that the other tests keep their slice.
        let tested = std::thread::spawn(|| {
            let before = attributes()?;
            set_slice(Duration::from_micros(200))?;
            let after = attributes()?;
            Ok::<_, io::Error>((before, after, slice()?))
        });
        let (before, after, slice) = tested.join().expect("no panic").expect("the calls are there");
        assert_eq!(SchedAttr { runtime: before.runtime, ..after }, before, "the rest stays as it is");
        // Before Linux 6.12 the slice is ignored.
        assert!(slice == Duration::from_micros(200) || after.runtime == before.runtime, "{slice:?}");
    }
}
