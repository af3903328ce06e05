//! Injected faults, for tests only: a release does not have them.
//!
//! | `PITLANE_FAULT` | effect |
//! |---|---|
//! | `panic:THREAD:ROUNDS` | the thread panics in the given round with work |
//! | `kill:WRITES` | SIGKILL after so many commands were written to journals, before the last is applied |
//! | `audit:LINES` | the audit log fails like a disk, after so many writes |
//! | `sync:SYNCS` | the sync with this number, of journals and stores, fails like that of a bad disk |
//! | `clock:LOOKS:SECONDS` | after so many readings the wall clock is set forward, or back if below zero |

#[cfg(not(debug_assertions))]
use std::io;

/// A thread of the platform calls this after each round.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn after_round(_thread: &str, _work: usize) {}

/// The thread of a shard calls this after it wrote a command to its journal.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn after_write() {}

/// The audit writer calls this before it writes lines.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn before_audit_write() -> io::Result<()> {
    Ok(())
}

/// Called before a file is synced.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn before_sync() -> io::Result<()> {
    Ok(())
}

/// Takes the wall clock's time in nanoseconds and returns the time to use.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn wall_clock(wall_ns: u64) -> u64 {
    wall_ns
}

#[cfg(debug_assertions)]
pub use injected::{after_round, after_write, before_audit_write, before_sync, wall_clock};

#[cfg(debug_assertions)]
mod injected {
    use std::env;
    use std::io;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    use pitlane_engine::time::NS_PER_S;
    use signal_hook::consts::SIGKILL;
    use signal_hook::low_level::raise;

    const VARIABLE: &str = "PITLANE_FAULT";

    enum InjectedFault {
        Panic { thread: String, rounds: AtomicU64 },
        Kill { writes: AtomicU64 },
        Audit { writes: AtomicU64 },
        Sync { syncs: AtomicU64 },
        Clock { looks: AtomicU64, ns: i64 },
    }

    fn injected() -> Option<&'static InjectedFault> {
        static ASKED: OnceLock<Option<InjectedFault>> = OnceLock::new();
        ASKED.get_or_init(|| parse(&env::var(VARIABLE).ok()?)).as_ref()
    }

    fn parse(text: &str) -> Option<InjectedFault> {
        let count = |text: &str| text.parse().ok().map(AtomicU64::new);
        if let Some(writes) = text.strip_prefix("kill:") {
            return Some(InjectedFault::Kill { writes: count(writes)? });
        }
        if let Some(writes) = text.strip_prefix("audit:") {
            return Some(InjectedFault::Audit { writes: count(writes)? });
        }
        if let Some(syncs) = text.strip_prefix("sync:") {
            return Some(InjectedFault::Sync { syncs: count(syncs)? });
        }
        if let Some(jump) = text.strip_prefix("clock:") {
            let (looks, seconds) = jump.split_once(':')?;
            let ns = seconds.parse::<i64>().ok()?.checked_mul(NS_PER_S as i64)?;
            return Some(InjectedFault::Clock { looks: count(looks)?, ns });
        }
        let (thread, rounds) = text.strip_prefix("panic:")?.rsplit_once(':')?;
        Some(InjectedFault::Panic { thread: thread.to_string(), rounds: count(rounds)? })
    }

    pub fn after_round(thread: &str, work: usize) {
        let Some(InjectedFault::Panic { thread: target, rounds }) = injected() else { return };
        if work > 0 && target == thread && rounds.fetch_sub(1, Ordering::Relaxed) == 1 {
            panic!("asked for by {VARIABLE}");
        }
    }

    pub fn before_audit_write() -> io::Result<()> {
        let Some(InjectedFault::Audit { writes }) = injected() else { return Ok(()) };
        match has_ended(writes) {
            false => Ok(()),
            true => Err(io::Error::other(format!("asked for by {VARIABLE}"))),
        }
    }

    pub fn before_sync() -> io::Result<()> {
        let Some(InjectedFault::Sync { syncs }) = injected() else { return Ok(()) };
        match syncs.fetch_sub(1, Ordering::Relaxed) {
            1 => Err(io::Error::other(format!("asked for by {VARIABLE}"))),
            _ => Ok(()),
        }
    }

    pub fn wall_clock(wall_ns: u64) -> u64 {
        match injected() {
            Some(InjectedFault::Clock { looks, ns }) if has_ended(looks) => {
                wall_ns.saturating_add_signed(*ns)
            }
            _ => wall_ns,
        }
    }

    /// Counts down, and returns whether the count had ended before.
    fn has_ended(left: &AtomicU64) -> bool {
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err()
    }

    pub fn after_write() {
        let Some(InjectedFault::Kill { writes }) = injected() else { return };
        if writes.fetch_sub(1, Ordering::Relaxed) == 1 {
            // This does not return: the signal ends the process.
            let _ = raise(SIGKILL);
        }
    }
}
