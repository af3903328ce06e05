//! A thread that fails ends the process: a dead shard in a live platform is worse than none. What was acknowledged is in
//! the journal, and the next start goes on from there.

use std::panic;
use std::thread;

use signal_hook::low_level::exit;

/// Exit code of a process that ended by a fault of its own (EX_SOFTWARE of `sysexits.h`).
pub const EXIT_FAULT: i32 = 70;

/// From now on a panic, in whichever thread, is told in the last line and ends the process.
pub fn end_the_process() {
    let tell = panic::take_hook();
    panic::set_hook(Box::new(move |fault| {
        // Where, and with RUST_BACKTRACE how it came there.
        tell(fault);
        let thread = thread::current();
        let name = thread.name().unwrap_or("without a name");
        let what = fault.payload_as_str().unwrap_or("no message");
        eprintln!(
            "pitlane: ended by a fault in thread {name}: {what}; what was acknowledged is in the journal"
        );
        // Not even destructors run: nothing may be said after this.
        exit(EXIT_FAULT);
    }));
}
