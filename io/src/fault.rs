//! Faults on purpose, for tests alone: a release does not have them.
//!
//! `PITLANE_FAULT=panic:THREAD:ROUNDS` lets a thread of the platform panic in its so many-th round with work.

/// To be called by a thread of the platform after each round.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn after_round(_thread: &str, _work: usize) {}

#[cfg(debug_assertions)]
pub use asked::after_round;

#[cfg(debug_assertions)]
mod asked {
    use std::env;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    const VARIABLE: &str = "PITLANE_FAULT";

    struct Panic {
        thread: String,
        rounds: AtomicU64,
    }

    fn asked() -> Option<&'static Panic> {
        static ASKED: OnceLock<Option<Panic>> = OnceLock::new();
        let read = || {
            let text = env::var(VARIABLE).ok()?;
            let (thread, rounds) = text.strip_prefix("panic:")?.rsplit_once(':')?;
            Some(Panic { thread: thread.to_string(), rounds: AtomicU64::new(rounds.parse().ok()?) })
        };
        ASKED.get_or_init(read).as_ref()
    }

    pub fn after_round(thread: &str, work: usize) {
        let Some(panic) = asked().filter(|panic| work > 0 && panic.thread == thread) else { return };
        if panic.rounds.fetch_sub(1, Ordering::Relaxed) == 1 {
            panic!("asked for by {VARIABLE}");
        }
    }
}
