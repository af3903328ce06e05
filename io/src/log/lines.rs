//! The way of a log line: formatted by the thread that says it, put into a bounded queue, written by a thread of its own.
//! Whoever logs never waits: what finds no room is dropped and counted, and the count is written when there is room again.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

use super::Style;
use crate::clock;

/// Lines that wait for a slow terminal or disk. Many more than a healthy platform says in a second.
pub const LINES_MAX: usize = 4_096;
/// Longer lines are cut, so that the queue is bounded in bytes too.
pub const LINE_BYTES_MAX: usize = 16_384;
/// How often a flush that found no room tries again.
const RETRY: Duration = Duration::from_millis(1);

/// The near end of the queue. Clones are the same queue.
#[derive(Clone, Debug)]
pub struct Lines {
    queue: SyncSender<Item>,
    dropped: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Item {
    Line(Vec<u8>),
    /// Answered when everything before it is written.
    Flush(SyncSender<()>),
}

/// The far end, for the thread that writes.
#[derive(Debug)]
pub struct Writer<W> {
    queue: Receiver<Item>,
    dropped: Arc<AtomicU64>,
    out: W,
    style: Style,
}

/// A queue of so many lines.
pub fn queue<W: Write>(lines_max: usize, out: W, style: Style) -> (Lines, Writer<W>) {
    let (sender, receiver) = sync_channel(lines_max);
    let dropped = Arc::new(AtomicU64::new(0));
    (Lines { queue: sender, dropped: dropped.clone() }, Writer { queue: receiver, dropped, out, style })
}

impl Lines {
    pub fn push(&self, line: &[u8]) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let mut line = line[..line.len().min(LINE_BYTES_MAX)].to_vec();
        // What a stranger said may stand in it, and must not look like a line of its own.
        line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
        line.push(b'\n');
        if self.queue.try_send(Item::Line(line)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until everything said so far is written, but no longer than this; says whether it was.
    pub fn flush(&self, patience: Duration) -> bool {
        let (answer, heard) = sync_channel(1);
        let mut item = Item::Flush(answer);
        let mut waited = Duration::ZERO;
        while waited < patience {
            match self.queue.try_send(item) {
                Ok(()) => return heard.recv_timeout(patience - waited).is_ok(),
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
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line { lines: self }
    }
}

/// One line on its way; the formatter writes it in one go.
#[derive(Debug)]
pub struct Line<'a> {
    lines: &'a Lines,
}

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lines.push(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<W: Write> Writer<W> {
    /// Writes until the last near end is gone.
    pub fn run(mut self) {
        while let Ok(item) = self.queue.recv() {
            self.take(item);
            self.poll();
        }
    }

    /// Writes all that waits, and how many lines found no room.
    pub fn poll(&mut self) {
        // Not more than the queue holds, so that the count is told even while others go on talking.
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
        // A log nobody can write has nobody to complain to.
        let _ = self.out.flush();
    }

    fn take(&mut self, item: Item) {
        match item {
            Item::Line(line) => self.write(&line),
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
    fn lines_without_room_are_dropped_counted_and_told() {
        let (lines, mut writer) = queue(3, Vec::new(), Style { json: false, colour: false });
        for number in 0..5 {
            lines.push(format!("line {number}").as_bytes());
        }
        writer.poll();
        let text = String::from_utf8(writer.out.clone()).unwrap();
        let told: Vec<&str> = text.lines().collect();
        assert_eq!(told[..3], ["line 0", "line 1", "line 2"]);
        assert!(told[3].contains("WARN") && told[3].ends_with("lines dropped count=2"), "{text}");
        lines.push(b"after\n");
        writer.poll();
        assert!(String::from_utf8(writer.out).unwrap().ends_with("count=2\nafter\n"));
    }

    #[test]
    fn what_is_said_once_is_one_line() {
        let (lines, mut writer) = queue(2, Vec::new(), Style { json: false, colour: false });
        lines.push(b"host=a\n2026-11-16 ERROR forged\r\n");
        lines.push(b"next");
        writer.poll();
        let text = String::from_utf8(writer.out).unwrap();
        assert_eq!(text, "host=a 2026-11-16 ERROR forged \nnext\n");
    }

    #[test]
    fn a_long_line_is_cut() {
        let (lines, mut writer) = queue(1, Vec::new(), Style { json: false, colour: false });
        lines.push(&[b'x'; 3 * LINE_BYTES_MAX]);
        writer.poll();
        assert_eq!((writer.out.len(), writer.out.last()), (LINE_BYTES_MAX + 1, Some(&b'\n')));
    }

    #[test]
    fn a_flush_waits_for_the_writer_and_no_longer_than_it_may() {
        let (lines, writer) = queue(8, Vec::new(), Style { json: true, colour: false });
        assert!(!lines.flush(Duration::from_millis(2)), "nobody writes");
        let writing = thread::spawn(move || writer.run());
        lines.push(b"one");
        assert!(lines.flush(Duration::from_secs(60)));
        drop(lines);
        writing.join().expect("it ends with the last near end");
    }
}
