//! The lifecycle of a running platform, and how its threads agree on the current phase.
//!
//! ```text
//! Opening ─► Open ─► Closing ─► Draining ─► Ended
//!    │        │         │          │          └ readers drain their events, threads end
//!    │        │         │          └ shards process the rest of their lanes, and then accept nothing
//!    │        │         └ sources start nothing new, send what they hold, and then send nothing
//!    │        └ a stop is requested: by a signal, over http, by a time limit
//!    └ shards receive their settings, readers receive the shards' state
//! ```
//!
//! Main enters the next phase when every thread has acknowledged the current one, that is, has
//! completed its work in it; only `Open` ends by a stop request instead. This guarantees that no
//! command reaches a closed shard and that every event is delivered before exit.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LifecyclePhase {
    Opening,
    Open,
    Closing,
    Draining,
    Ended,
}

impl LifecyclePhase {
    pub const ALL: [LifecyclePhase; 5] = [
        LifecyclePhase::Opening,
        LifecyclePhase::Open,
        LifecyclePhase::Closing,
        LifecyclePhase::Draining,
        LifecyclePhase::Ended,
    ];
}

/// The reason why a thread requests a stop. Signals and the time limit are handled by main itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// Requested over http.
    Asked,
    /// The reader of our output has closed it (broken pipe).
    OutputClosed,
    /// A part that the platform cannot run without has failed.
    Failed(String),
    /// Another server may lead: this one sends nothing more and restarts.
    Deposed(String),
}

/// The lifecycle state that all threads share.
#[derive(Debug)]
pub struct Lifecycle {
    phase: AtomicU8,
    /// Upper half: number of the current liveness check. Lower half: threads that have answered it.
    liveness: AtomicU64,
    /// Number of threads that have acknowledged a phase, by phase.
    acknowledged: [AtomicU32; LifecyclePhase::ALL.len()],
    stop: OnceLock<StopReason>,
    /// One byte wakes main. Signal handlers write here too.
    wake_socket: UnixStream,
}

impl Lifecycle {
    /// Creates the lifecycle and main's end of it.
    pub fn begin() -> io::Result<(Lifecycle, Main)> {
        let (ours, theirs) = UnixStream::pair()?;
        theirs.set_nonblocking(true)?;
        let lifecycle = Lifecycle {
            phase: AtomicU8::new(LifecyclePhase::Opening as u8),
            liveness: AtomicU64::new(0),
            acknowledged: Default::default(),
            stop: OnceLock::new(),
            wake_socket: theirs,
        };
        Ok((lifecycle, Main { wake_socket: ours }))
    }

    #[inline]
    pub fn phase(&self) -> LifecyclePhase {
        LifecyclePhase::ALL[self.phase.load(Ordering::Acquire) as usize]
    }

    /// Enters a phase. Only main calls this, and wakes all threads afterwards.
    pub fn enter(&self, phase: LifecyclePhase) {
        self.phase.store(phase as u8, Ordering::Release);
    }

    /// Acknowledges that the calling thread has completed its work in this phase. Called once per
    /// phase.
    pub fn ack_phase(&self, phase: LifecyclePhase) {
        self.acknowledged[phase as usize].fetch_add(1, Ordering::AcqRel);
        self.wake_main();
    }

    pub fn acknowledged(&self, phase: LifecyclePhase) -> u32 {
        self.acknowledged[phase as usize].load(Ordering::Acquire)
    }

    /// Begins a liveness check. Only main calls this.
    pub fn begin_liveness_check(&self) {
        let check = (self.liveness.load(Ordering::Relaxed) >> u32::BITS) + 1;
        self.liveness.store(check << u32::BITS, Ordering::Relaxed);
    }

    /// Returns the number of threads that have answered the current liveness check.
    pub fn liveness_answers(&self) -> u32 {
        let state = self.liveness.load(Ordering::Relaxed);
        u32::try_from(state & u64::from(u32::MAX)).unwrap_or(u32::MAX)
    }

    /// Answers the current liveness check, once; `answered` is the calling thread's last one.
    /// Called in every cycle: it usually compares two numbers.
    #[inline]
    pub fn answer_liveness_check(&self, answered: &mut u32) {
        let check = (self.liveness.load(Ordering::Relaxed) >> u32::BITS) as u32;
        if check != *answered {
            self.count_answer(check, answered);
        }
    }

    #[cold]
    fn count_answer(&self, check: u32, answered: &mut u32) {
        *answered = check;
        let is_current = |state: u64| (state >> u32::BITS) as u32 == check;
        let count = |state: u64| is_current(state).then_some(state + 1);
        // If the next check has begun meanwhile, the thread answers that one in its next cycle.
        let _ = self.liveness.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count);
    }

    /// Requests a stop. Only the first reason is recorded.
    pub fn stop(&self, reason: StopReason) {
        let _ = self.stop.set(reason);
        self.wake_main();
    }

    pub fn stopped(&self) -> Option<&StopReason> {
        self.stop.get()
    }

    /// Returns a copy of the socket that wakes main, for signal handlers.
    pub fn wake_socket(&self) -> io::Result<UnixStream> {
        self.wake_socket.try_clone()
    }

    /// Wakes main, which then re-evaluates its condition.
    pub fn wake_main(&self) {
        // If the socket buffer is full, main has enough unread bytes to wake up.
        let _ = (&self.wake_socket).write(&[1]);
    }
}

/// Main's end of the lifecycle, where it waits.
#[derive(Debug)]
pub struct Main {
    wake_socket: UnixStream,
}

impl Main {
    /// Waits until `condition` returns true or the deadline passes; returns whether it is true.
    /// Evaluates it after every wake-up.
    pub fn wait(&mut self, until: Option<Instant>, mut condition: impl FnMut() -> bool) -> io::Result<bool> {
        loop {
            if condition() {
                return Ok(true);
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Ok(false);
            }
            self.wake_socket.set_read_timeout(left)?;
            match self.wake_socket.read(&mut [0; 64]) {
                Ok(_) => {}
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                    ) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    #[test]
    fn main_waits_until_all_threads_have_acknowledged() {
        let (lifecycle, mut main) = Lifecycle::begin().unwrap();
        let lifecycle = Arc::new(lifecycle);
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let lifecycle = lifecycle.clone();
                thread::spawn(move || lifecycle.ack_phase(LifecyclePhase::Opening))
            })
            .collect();
        assert!(main.wait(None, || lifecycle.acknowledged(LifecyclePhase::Opening) == 3).unwrap());
        assert_eq!(lifecycle.acknowledged(LifecyclePhase::Closing), 0);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }

    #[test]
    fn the_first_reason_to_stop_is_recorded_and_wakes_main() {
        let (lifecycle, mut main) = Lifecycle::begin().unwrap();
        let past = Some(Instant::now());
        assert!(!main.wait(past, || lifecycle.stopped().is_some()).unwrap());
        lifecycle.stop(StopReason::Asked);
        lifecycle.stop(StopReason::OutputClosed);
        assert!(main.wait(None, || lifecycle.stopped().is_some()).unwrap());
        assert_eq!(lifecycle.stopped(), Some(&StopReason::Asked));
    }

    #[test]
    fn waking_main_does_not_block_when_main_does_not_read() {
        let (lifecycle, _main) = Lifecycle::begin().unwrap();
        for _ in 0..1_000_000 {
            lifecycle.wake_main();
        }
    }

    #[test]
    fn a_thread_answers_each_liveness_check_once() {
        let (lifecycle, _main) = Lifecycle::begin().unwrap();
        let (mut one, mut other) = (0, 0);
        lifecycle.answer_liveness_check(&mut one);
        assert_eq!(lifecycle.liveness_answers(), 0, "no check has begun");
        for _ in 0..3 {
            lifecycle.begin_liveness_check();
            assert_eq!(lifecycle.liveness_answers(), 0);
            lifecycle.answer_liveness_check(&mut one);
            lifecycle.answer_liveness_check(&mut one);
            assert_eq!(lifecycle.liveness_answers(), 1);
            lifecycle.answer_liveness_check(&mut other);
            assert_eq!(lifecycle.liveness_answers(), 2);
        }
    }

    #[test]
    fn the_current_phase_is_the_one_that_was_entered() {
        let (lifecycle, _main) = Lifecycle::begin().unwrap();
        for (at, phase) in LifecyclePhase::ALL.into_iter().enumerate() {
            assert_eq!(phase as usize, at);
            lifecycle.enter(phase);
            assert_eq!(lifecycle.phase(), phase);
        }
    }
}
