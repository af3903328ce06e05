//! The path of a log line: formatted by the logging thread, put into a bounded queue, written by a
//! thread of its own. The logging thread never waits: lines that do not fit are dropped and
//! counted, and the count is written when there is space again.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

use super::Style;
use crate::clock;

/// Maximum number of lines that wait for a slow terminal or disk. Many more than a healthy platform
/// logs in a second.
pub const LINES_MAX: usize = 4_096;
/// Maximum length of a line; longer ones are truncated, so that the queue is bounded in bytes too.
pub const LINE_BYTES_MAX: usize = 16_384;
/// Retry interval of a flush that found the queue full.
const RETRY: Duration = Duration::from_millis(1);

/// The sending end of the queue. Clones share the queue.
#[derive(Clone, Debug)]
pub struct Lines {
    queue: SyncSender<Item>,
    dropped: Arc<AtomicU64>,
    /// Whether each line begins with its syslog priority, as the journal of systemd reads it.
    has_priorities: bool,
}

#[derive(Debug)]
enum Item {
    LogLine(Vec<u8>),
    /// Answered when everything before it is written.
    Flush(SyncSender<()>),
}

/// The receiving end, for the writer thread.
#[derive(Debug)]
pub(super) struct LogWriter<W> {
    queue: Receiver<Item>,
    dropped: Arc<AtomicU64>,
    out: W,
    style: Style,
}

/// Creates a queue of this many lines.
pub(super) fn queue<W: Write>(lines_max: usize, out: W, style: Style) -> (Lines, LogWriter<W>) {
    let (sender, receiver) = sync_channel(lines_max);
    let dropped = Arc::new(AtomicU64::new(0));
    let lines = Lines { queue: sender, dropped: dropped.clone(), has_priorities: style.has_priorities };
    (lines, LogWriter { queue: receiver, dropped, out, style })
}

impl Lines {
    pub fn push(&self, level: Level, line: &[u8]) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let kept = &line[..line.len().min(LINE_BYTES_MAX)];
        let mut line = if self.has_priorities { priority(level).as_bytes().to_vec() } else { Vec::new() };
        line.extend_from_slice(kept);
        // The line may contain a stranger's text, which must not look like a line of its own.
        line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
        line.push(b'\n');
        if self.queue.try_send(Item::LogLine(line)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn has_priorities(&self) -> bool {
        self.has_priorities
    }

    /// Waits until all lines so far are written, at most this long; returns whether they were.
    pub fn flush(&self, timeout: Duration) -> bool {
        let (answer, flushed) = sync_channel(1);
        let mut item = Item::Flush(answer);
        let mut waited = Duration::ZERO;
        while waited < timeout {
            match self.queue.try_send(item) {
                Ok(()) => return flushed.recv_timeout(timeout - waited).is_ok(),
                Err(TrySendError::Disconnected(_)) => return false,
                Err(TrySendError::Full(back)) => item = back,
            }
            thread::sleep(RETRY);
            waited += RETRY;
        }
        false
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = LogLine<'a>;

    fn make_writer(&'a self) -> LogLine<'a> {
        LogLine { lines: self, level: Level::INFO }
    }

    fn make_writer_for(&'a self, event: &Metadata<'_>) -> LogLine<'a> {
        LogLine { lines: self, level: *event.level() }
    }
}

/// Returns the prefix of a line for the journal of systemd: sd-daemon(3).
pub(super) fn priority(level: Level) -> &'static str {
    match level {
        Level::ERROR => "<3>",
        Level::WARN => "<4>",
        Level::INFO => "<6>",
        Level::DEBUG | Level::TRACE => "<7>",
    }
}

/// The writer of one line; the formatter writes the line at once.
#[derive(Debug)]
pub struct LogLine<'a> {
    lines: &'a Lines,
    level: Level,
}

impl Write for LogLine<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lines.push(self.level, bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<W: Write> LogWriter<W> {
    /// Writes until the last sending end is dropped.
    pub(super) fn run(mut self) {
        while let Ok(item) = self.queue.recv() {
            self.take(item);
            self.poll();
        }
    }

    /// Writes all waiting lines, and the number of dropped lines.
    pub(super) fn poll(&mut self) {
        // At most as many as the queue holds, so that the count is written even while others keep
        // logging.
        for _ in 0..LINES_MAX {
            match self.queue.try_recv() {
                Ok(item) => self.take(item),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
        }
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            self.write(self.style.dropped(clock::wall(), dropped).as_bytes());
        }
        // There is nowhere to report a log that cannot be written.
        let _ = self.out.flush();
    }

    fn take(&mut self, item: Item) {
        match item {
            Item::LogLine(line) => self.write(&line),
            Item::Flush(answer) => {
                let _ = self.out.flush();
                let _ = answer.try_send(());
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        let _ = self.out.write_all(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_beyond_the_capacity_are_dropped_counted_and_reported() {
        let (lines, mut writer) = queue(3, Vec::new(), Style::default());
        for number in 0..5 {
            lines.push(Level::INFO, format!("line {number}").as_bytes());
        }
        writer.poll();
        let text = String::from_utf8(writer.out.clone()).unwrap();
        let written: Vec<&str> = text.lines().collect();
        assert_eq!(written[..3], ["line 0", "line 1", "line 2"]);
        assert!(written[3].contains("WARN") && written[3].ends_with("lines dropped count=2"), "{text}");
        lines.push(Level::INFO, b"after\n");
        writer.poll();
        assert!(String::from_utf8(writer.out).unwrap().ends_with("count=2\nafter\n"));
    }

    #[test]
    fn a_message_with_line_breaks_is_one_line() {
        let (lines, mut writer) = queue(2, Vec::new(), Style::default());
        lines.push(Level::INFO, b"host=a\n2026-11-16 ERROR forged\r\n");
        lines.push(Level::INFO, b"next");
        writer.poll();
        let text = String::from_utf8(writer.out).unwrap();
        assert_eq!(text, "host=a 2026-11-16 ERROR forged \nnext\n");
    }

    #[test]
    fn lines_for_the_journal_begin_with_their_priority() {
        let (lines, mut writer) = queue(8, Vec::new(), Style { has_priorities: true, ..Style::default() });
        for level in [Level::ERROR, Level::WARN, Level::INFO, Level::DEBUG, Level::TRACE] {
            lines.push(level, b"x\n");
        }
        writer.poll();
        assert_eq!(String::from_utf8(writer.out).unwrap(), "<3>x\n<4>x\n<6>x\n<7>x\n<7>x\n");
    }

    #[test]
    fn a_long_line_is_truncated() {
        let (lines, mut writer) = queue(1, Vec::new(), Style::default());
        lines.push(Level::INFO, &[b'x'; 3 * LINE_BYTES_MAX]);
        writer.poll();
        assert_eq!((writer.out.len(), writer.out.last()), (LINE_BYTES_MAX + 1, Some(&b'\n')));
    }

    #[test]
    fn a_flush_waits_for_the_writer_up_to_its_timeout() {
        let (lines, writer) = queue(8, Vec::new(), Style { json: true, ..Style::default() });
        assert!(!lines.flush(Duration::from_millis(2)), "no thread writes");
        let writing = thread::spawn(move || writer.run());
        lines.push(Level::INFO, b"one");
        assert!(lines.flush(Duration::from_secs(60)));
        drop(lines);
        writing.join().expect("it ends with the last near end");
    }
}
