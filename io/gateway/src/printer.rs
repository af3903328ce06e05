//! Lines on standard output, written by their own thread, so that a slow or absent reader delays
//! only this thread. Lines that find no room are dropped, and their number is reported. The first
//! line is that of the start; lines before it, such as an order that expired while the service was
//! down, are printed after it.

use std::io::{self, ErrorKind, Write};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use pitlane_runtime::lifecycle::{Lifecycle, StopReason};
use pitlane_runtime::thread_class::ThreadClass;

/// Texts that wait to be written. Each holds the lines of one cycle, at most a hundred kilobytes.
const WAITING_MAX: usize = 64;
/// Bytes kept until the first line is printed.
const EARLY_BYTES_MAX: usize = 100_000;

/// Handle of the printer. Its clones write to the same output.
#[derive(Clone, Debug)]
pub struct Printer {
    texts: SyncSender<String>,
    /// Whether the first line is printed.
    has_begun: Arc<AtomicBool>,
    /// Lines dropped since the last text that was accepted.
    dropped: usize,
}

impl Printer {
    /// Starts the thread. It ends when the printer is dropped and all lines are written.
    pub fn start(lifecycle: Arc<Lifecycle>) -> io::Result<(Printer, JoinHandle<()>)> {
        let (printer, received) = Printer::pair();
        let thread = thread::Builder::new().name("printer".to_string()).spawn(move || {
            ThreadClass::Housekeeping.apply();
            write(&received, &mut io::stdout(), &lifecycle);
        })?;
        Ok((printer, thread))
    }

    fn pair() -> (Printer, Receiver<String>) {
        let (texts, received) = sync_channel(WAITING_MAX);
        (Printer { texts, has_begun: Arc::default(), dropped: 0 }, received)
    }

    /// Prints the first line and adds its line end.
    pub fn begin(&mut self, mut line: String) {
        self.send(&mut line);
        self.has_begun.store(true, Ordering::Release);
    }

    /// Takes lines with their line ends and never waits. Lines before the first line stay in the
    /// text for the next call.
    pub fn print(&mut self, lines: &mut String) {
        if self.has_begun.load(Ordering::Acquire) {
            self.send(lines);
        } else if lines.len() > EARLY_BYTES_MAX {
            self.dropped += lines.lines().count();
            lines.clear();
        }
    }

    fn send(&mut self, lines: &mut String) {
        if lines.is_empty() {
            return;
        }
        let count = lines.lines().count();
        let text = self.text(lines);
        match self.texts.try_send(text) {
            Ok(()) => self.dropped = 0,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => self.dropped += count,
        }
    }

    /// Takes the last lines, and waits until there is room for them.
    pub fn print_last(mut self, mut lines: String) {
        // If the writing thread has ended, the output has no reader either.
        let text = self.text(&mut lines);
        let _ = self.texts.send(text);
    }

    fn text(&mut self, lines: &mut String) -> String {
        match self.dropped {
            0 => mem::take(lines),
            count => format!("… {count} lines left out: the output is read too slowly\n{}", mem::take(lines)),
        }
    }
}

fn write(texts: &Receiver<String>, out: &mut impl Write, lifecycle: &Lifecycle) {
    for text in texts {
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        match written {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                return lifecycle.stop(StopReason::OutputClosed);
            }
            Err(error) => {
                return lifecycle
                    .stop(StopReason::Failed(format!("cannot write to the standard output: {error}")));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_do_not_fit_are_counted_and_reported() {
        let (mut printer, received) = Printer::pair();
        printer.begin("ready\n".to_string());
        assert_eq!(received.recv().unwrap(), "ready\n");
        let fitting = (0..WAITING_MAX).map(|n| format!("{n}\n"));
        for text in fitting.clone().chain(["b\nc\n", "d\n"].map(str::to_string)) {
            let mut lines = text;
            printer.print(&mut lines);
            assert!(lines.is_empty());
        }
        assert!(received.try_iter().eq(fitting), "all that fits is there");
        printer.print(&mut "e\n".to_string());
        assert_eq!(received.recv().unwrap(), "… 3 lines left out: the output is read too slowly\ne\n");
        printer.print(&mut "f\n".to_string());
        assert_eq!(received.recv().unwrap(), "f\n");
    }

    #[test]
    fn early_lines_are_printed_after_the_first_line() {
        let (mut printer, received) = Printer::pair();
        let (mut reporter, mut lines) = (printer.clone(), String::new());
        for _ in 0..2 {
            lines += "expired\n";
            reporter.print(&mut lines);
            assert_eq!(received.try_iter().count(), 0);
        }
        printer.begin("ready\n".to_string());
        reporter.print(&mut lines);
        assert!(received.try_iter().eq(["ready\n", "expired\nexpired\n"].map(str::to_string)));
    }

    #[test]
    fn what_is_kept_for_after_the_first_line_is_bounded() {
        let (mut printer, received) = Printer::pair();
        let (mut reporter, mut lines) = (printer.clone(), "a\n".repeat(EARLY_BYTES_MAX / 2));
        reporter.print(&mut lines);
        assert_eq!(lines.len(), EARLY_BYTES_MAX);
        lines += "b\n";
        reporter.print(&mut lines);
        assert!(lines.is_empty());
        printer.begin("ready\n".to_string());
        reporter.print(&mut "c\n".to_string());
        let printed = received.try_iter().collect::<String>();
        assert!(printed.ends_with("\nc\n") && printed.contains("… 50001 lines left out"), "{printed}");
    }

    #[test]
    fn a_closed_output_ends_the_platform() {
        struct ClosedOutput(ErrorKind);
        impl Write for ClosedOutput {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(self.0.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        for (kind, is_failure) in [(ErrorKind::BrokenPipe, false), (ErrorKind::StorageFull, true)] {
            let (lifecycle, _main) = Lifecycle::begin().unwrap();
            let (texts, received) = sync_channel(1);
            texts.send("a\n".to_string()).unwrap();
            drop(texts);
            write(&received, &mut ClosedOutput(kind), &lifecycle);
            assert_eq!(matches!(lifecycle.stopped(), Some(StopReason::Failed(_))), is_failure);
            assert!(lifecycle.stopped().is_some());
        }
    }
}
