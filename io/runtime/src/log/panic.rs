//! The last line of a process that failed: one of its threads hit a bug, and a half-dead service is
//! worse than none.

use std::io::Write;
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{io, panic, process, thread};

use pitlane_config::Durability;

use super::fence;
use super::lines::Lines;

/// Maximum time for writing the lines queued before the panic.
const FLUSH_MAX: Duration = Duration::from_millis(200);

/// Priority of the last line in the journal of systemd: critical.
const FATAL: &str = "<2>";

/// Makes a panic of any thread write one line and abort the process, except in isolated code.
pub fn abort_on_panic(lines: Lines, durability: Durability) {
    let failing = AtomicBool::new(false);
    panic::set_hook(Box::new(move |info| {
        if fence::takes(info) {
            return;
        }
        // Another failing thread must not overwrite the one line that gives the reason.
        while failing.swap(true, Ordering::SeqCst) {
            thread::park();
        }
        lines.flush(FLUSH_MAX);
        let prefix = if lines.has_priorities() { FATAL } else { "" };
        let _ = writeln!(io::stderr(), "{prefix}{}", last_line(info, durability));
        process::abort();
    }));
}

fn last_line(info: &PanicHookInfo<'_>, durability: Durability) -> String {
    let thread = thread::current();
    let name = thread.name().unwrap_or("without a name");
    let place = info.location().map_or("somewhere".to_string(), |place| place.to_string());
    let message = info.payload_as_str().unwrap_or("no message").replace(['\n', '\r'], " ");
    let state = match durability {
        Durability::Replicated | Durability::Disk | Durability::Os => {
            "the state is in the journal, start again to go on"
        }
        Durability::None => "nothing was kept, since journal.level is none",
    };
    format!("pitlane failed: thread {name} at {place}: {message}; {state}")
}
