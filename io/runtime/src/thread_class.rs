//! How the threads of the service compete with each other where they share a core.
//!
//! | class | scheduling | nice | slice | threads |
//! |---|---|---|---|---|
//! | `Orders` | other | 0 | 0.1 ms | shards, gateways; the journal and the standby where orders wait for them |
//! | `Requests` | other | 0 | 0.1 ms | http |
//! | `Housekeeping` | batch | 5 | 3 ms | journal, segments, printer, log, FIX log, history, recording, compression |
//! | `Computation` | batch | 10 | 3 ms | auth |
//!
//! A thread with a short slice runs sooner after it was woken. A thread of the batch class
//! interrupts no other when it is woken: it runs when the others have nothing to do, or at the next
//! timer tick. The share of a core that threads use entirely is that of the nice values: a third of
//! an `Orders` thread's for `Housekeeping`, a tenth for `Computation`. So queues that housekeeping
//! empties do not overflow because of the class alone.
//!
//! A thread to which an operator has given a real-time class keeps it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use pitlane_sys::scheduling::{Scheduling, SchedulingClass, scheduling, set_scheduling};

/// Slice of the threads on which orders or requests wait, the shortest that the system has. Where
/// several threads share a core, such a thread runs within fractions of a millisecond after it was
/// woken, instead of waiting for the three milliseconds of another.
const SLICE_SHORT: Duration = Duration::from_micros(100);
/// Slice of the others, the usual one of the system. A thread with a short slice that is woken
/// interrupts one with a longer slice.
const SLICE_USUAL: Duration = Duration::from_millis(3);
/// Nice value of housekeeping: a third of the share of a usual thread.
const NICE_HOUSEKEEPING: i32 = 5;
/// Nice value of long computations: a tenth of the share of a usual thread.
const NICE_COMPUTATION: i32 = 10;
/// The highest nice value.
const NICE_MAX: i32 = 19;

/// What waits for a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadClass {
    /// Orders.
    Orders,
    /// Clients of REST and WebSocket.
    Requests,
    /// Nothing that is measured in microseconds: files, lines, statistics.
    Housekeeping,
    /// The same, with computations that take tens of milliseconds.
    Computation,
}

impl ThreadClass {
    /// Gives the calling thread its scheduling. A failure is not fatal: the threads take longer
    /// turns, or more of them. It is logged once for the process.
    pub fn apply(self) {
        static IS_REPORTED: AtomicBool = AtomicBool::new(false);
        let applied = scheduling().and_then(|before| set_scheduling(self.scheduling(before.nice)));
        if let Err(error) = applied
            && !IS_REPORTED.swap(true, Ordering::Relaxed)
        {
            let thread = thread::current().name().map(str::to_string);
            tracing::info!(thread, %error, "the system refuses the scheduling of threads; they share cores as any others");
        }
    }

    /// Returns the scheduling of a thread that starts with this nice value, which an operator may
    /// have set for the whole process.
    pub fn scheduling(self, nice: i32) -> Scheduling {
        let (class, added, slice) = match self {
            ThreadClass::Orders | ThreadClass::Requests => (SchedulingClass::Other, 0, SLICE_SHORT),
            ThreadClass::Housekeeping => (SchedulingClass::Batch, NICE_HOUSEKEEPING, SLICE_USUAL),
            ThreadClass::Computation => (SchedulingClass::Batch, NICE_COMPUTATION, SLICE_USUAL),
        };
        Scheduling { class, nice: (nice + added).min(NICE_MAX), slice }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_the_scheduling_of_its_class() {
        for class in
            [ThreadClass::Orders, ThreadClass::Requests, ThreadClass::Housekeeping, ThreadClass::Computation]
        {
            let tested = thread::spawn(move || {
                let before = scheduling()?;
                class.apply();
                Ok::<_, std::io::Error>((before, scheduling()?))
            });
            let (before, after) = tested.join().unwrap().unwrap();
            let wanted = class.scheduling(before.nice);
            assert_eq!((after.class, after.nice), (wanted.class, wanted.nice), "{class:?}");
            // Before Linux 6.12 the slice is ignored.
            assert!(after.slice == wanted.slice || after.slice == before.slice, "{class:?}: {after:?}");
        }
    }

    #[test]
    fn nice_values_add_to_that_of_the_process() {
        assert_eq!(ThreadClass::Orders.scheduling(-5).nice, -5);
        assert_eq!(ThreadClass::Housekeeping.scheduling(-5).nice, 0);
        assert_eq!(ThreadClass::Computation.scheduling(12).nice, NICE_MAX);
    }
}
