//! How a thread competes with others for a core: its class, its nice value and its time slice, how
//! long it may run while others wait. The scheduler of Linux 6.12 and newer takes a slice for each
//! thread; a thread with a short slice runs sooner after it was woken and gives way sooner. Older
//! systems ignore it.

use std::io;
use std::time::Duration;

use libc::{SCHED_BATCH, SCHED_OTHER, SYS_sched_getattr, SYS_sched_setattr, c_long, syscall};

/// The class of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulingClass {
    /// `SCHED_OTHER`: a usual thread.
    Other,
    /// `SCHED_BATCH`: it interrupts no running thread when it is woken.
    Batch,
    /// A real-time class, or another that an operator has chosen. Cannot be set here.
    Chosen(u32),
}

/// The scheduling of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduling {
    /// Its class.
    pub class: SchedulingClass,
    /// From −20 to 19. Threads with a higher value have a smaller share of a core.
    pub nice: i32,
    /// Its time slice, which the system limits to between 0.1 and 100 ms; zero where the system has
    /// no slice for each thread.
    pub slice: Duration,
}

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

impl SchedulingClass {
    fn of(policy: u32) -> SchedulingClass {
        match i32::try_from(policy) {
            Ok(SCHED_OTHER) => SchedulingClass::Other,
            Ok(SCHED_BATCH) => SchedulingClass::Batch,
            _ => SchedulingClass::Chosen(policy),
        }
    }

    fn policy(self) -> u32 {
        match self {
            SchedulingClass::Other => SCHED_OTHER.unsigned_abs(),
            SchedulingClass::Batch => SCHED_BATCH.unsigned_abs(),
            SchedulingClass::Chosen(policy) => policy,
        }
    }
}

/// Sets the scheduling of the calling thread. A thread whose class an operator has chosen, such as
/// a real-time class, stays as it is. Nothing changes where the system refuses it: a lower nice
/// value needs a privilege.
pub fn set_scheduling(scheduling: Scheduling) -> io::Result<()> {
    let before = attributes()?;
    let is_chosen = |policy| matches!(SchedulingClass::of(policy), SchedulingClass::Chosen(_));
    if is_chosen(before.policy) || is_chosen(scheduling.class.policy()) {
        return Ok(());
    }
    let attr = SchedAttr {
        policy: scheduling.class.policy(),
        nice: scheduling.nice,
        runtime: u64::try_from(scheduling.slice.as_nanos()).unwrap_or(u64::MAX),
        ..before
    };
    // SAFETY: the call reads `SIZE` bytes of `attr`, which lives until it returns; 0 is the calling
    // thread.
    check(unsafe { syscall(SYS_sched_setattr, 0, &raw const attr, 0) })
}

/// Returns the scheduling of the calling thread.
pub fn scheduling() -> io::Result<Scheduling> {
    let SchedAttr { policy, nice, runtime, .. } = attributes()?;
    Ok(Scheduling { class: SchedulingClass::of(policy), nice, slice: Duration::from_nanos(runtime) })
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

    const SLICE: Duration = Duration::from_micros(200);

    /// Returns the scheduling of a new thread after these calls, and its other attributes before
    /// and after them. The other tests keep their scheduling.
    fn after(calls: &[Scheduling]) -> (Scheduling, SchedAttr, SchedAttr) {
        let calls = calls.to_vec();
        let tested = std::thread::spawn(move || {
            let before = attributes()?;
            calls.into_iter().try_for_each(set_scheduling)?;
            Ok::<_, io::Error>((scheduling()?, before, attributes()?))
        });
        tested.join().expect("no panic").expect("the calls are there and allowed")
    }

    #[test]
    fn the_layout_is_that_of_the_header() {
        assert_eq!(u32::try_from(size_of::<SchedAttr>()), Ok(SIZE));
    }

    #[test]
    fn class_nice_value_and_slice_are_read_back() {
        let nice = scheduling().expect("the call is there").nice;
        let quick = Scheduling { class: SchedulingClass::Other, nice, slice: SLICE };
        let batch = Scheduling { class: SchedulingClass::Batch, nice: 19, slice: 2 * SLICE };
        for (calls, wanted) in [(&[quick][..], quick), (&[quick, batch], batch)] {
            let (read, before, after) = after(calls);
            assert_eq!((read.class, read.nice), (wanted.class, wanted.nice));
            // Before Linux 6.12 the slice is ignored.
            assert!(read.slice == wanted.slice || after.runtime == before.runtime, "{read:?}");
            let SchedAttr { policy, nice, runtime, .. } = after;
            assert_eq!(SchedAttr { policy, nice, runtime, ..before }, after, "the rest stays as it is");
        }
    }

    #[test]
    fn a_class_that_an_operator_has_chosen_stays() {
        let fifo = Scheduling { class: SchedulingClass::Chosen(1), nice: 0, slice: SLICE };
        let (_, before, after) = after(&[fifo]);
        assert_eq!(before, after, "no real-time class is set");
    }
}
