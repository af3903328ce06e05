//! Records the live market into a file that simulation and replay read. The http thread, which
//! receives every tick, formats the rows; a separate thread writes them to disk, so a slow disk
//! delays no other thread. Rows that do not fit are dropped, and their number is logged.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::mem;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use pitlane_engine::event::{Event, EventKind, Tick};
use pitlane_engine::id::SecurityId;
use pitlane_engine::time::Timestamp;

use super::csv::TICKS;
use super::parquet::writer::{self, TickWriter};

/// Maximum number of texts that wait to be written, and the size at which one is sent: 16 MiB in
/// total.
const WAITING_MAX: usize = 64;
const TEXT_BYTES: usize = 1 << 18;

#[derive(Debug)]
pub struct TickRecorder {
    texts: SyncSender<String>,
    rows: String,
    /// Previous tick of each security, to find what is new in the next.
    before: BTreeMap<SecurityId, Tick>,
    /// Time of the previous row.
    last: Timestamp,
    left_out: u64,
}

/// Opens the file and starts the thread, which ends when the recorder is dropped and everything is
/// written.
pub fn start(path: &Path) -> io::Result<(TickRecorder, JoinHandle<()>)> {
    let mut to = RecordingFile::open(path)?;
    let (recorder, received) = pair();
    let thread =
        thread::Builder::new().name("record".to_string()).spawn(move || write(&received, &mut to))?;
    Ok((recorder, thread))
}

fn pair() -> (TickRecorder, Receiver<String>) {
    let (texts, received) = sync_channel(WAITING_MAX);
    let (rows, before) = (String::new(), BTreeMap::new());
    (TickRecorder { texts, rows, before, last: Timestamp::ZERO, left_out: 0 }, received)
}

fn write(texts: &Receiver<String>, to: &mut RecordingFile) {
    let written = texts.iter().try_for_each(|text| to.write(&text)).and_then(|()| to.close());
    if let Err(error) = written {
        tracing::error!(%error, "the market is not recorded any more");
    }
}

/// The output file.
enum RecordingFile {
    Csv(File),
    Parquet(Box<TickWriter>),
}

impl RecordingFile {
    /// Opens the output by its name: a CSV file is appended to, Parquet files are created.
    fn open(path: &Path) -> io::Result<RecordingFile> {
        if writer::is_meant(path) {
            return Ok(RecordingFile::Parquet(Box::new(TickWriter::new(path)?)));
        }
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        if file.metadata()?.len() == 0 {
            file.write_all(format!("{TICKS}\n").as_bytes())?;
        }
        Ok(RecordingFile::Csv(file))
    }

    fn write(&mut self, rows: &str) -> io::Result<()> {
        match self {
            RecordingFile::Csv(file) => file.write_all(rows.as_bytes()),
            RecordingFile::Parquet(writer) => rows.lines().try_for_each(|row| writer.push(row)),
        }
    }

    fn close(&mut self) -> io::Result<()> {
        match self {
            RecordingFile::Csv(_) => Ok(()),
            RecordingFile::Parquet(writer) => writer.close(),
        }
    }
}

impl TickRecorder {
    pub fn handle_event(&mut self, event: &Event) {
        let EventKind::Tick(tick) = &event.body else { return };
        // Shards are polled in turn, so their times may overlap slightly; a file must be in time
        // order.
        self.last = self.last.max(tick.at);
        let tick = Tick { at: self.last, ..*tick };
        let before = self.before.insert(tick.security, tick);
        if row(&mut self.rows, &tick, before.as_ref()) && self.rows.len() >= TEXT_BYTES {
            self.flush();
        }
    }

    /// Passes the collected rows to the writing thread.
    pub fn flush(&mut self) {
        if self.rows.is_empty() {
            return;
        }
        let rows = mem::take(&mut self.rows);
        let count = rows.lines().count() as u64;
        match self.texts.try_send(rows) {
            Ok(()) if self.left_out > 0 => {
                let rows = mem::take(&mut self.left_out);
                tracing::warn!(rows, "the disk is too slow: rows of the recording were left out");
            }
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => self.left_out += count,
        }
    }
}

/// Waits for room for the last rows.
impl Drop for TickRecorder {
    fn drop(&mut self) {
        let rows = mem::take(&mut self.rows);
        let _ = self.texts.send(rows);
    }
}

/// Writes what is new in a tick; returns false if nothing is.
fn row(out: &mut String, tick: &Tick, before: Option<&Tick>) -> bool {
    let quote = |tick: &Tick| (tick.bid, tick.bid_size, tick.ask, tick.ask_size);
    let is_quoted = tick.bid_size.is_positive() || tick.ask_size.is_positive();
    let has_quote = is_quoted && before.is_none_or(|before| quote(before) != quote(tick));
    let trade = |tick: &Tick| (tick.last, tick.last_size, tick.volume);
    let has_trade = tick.traded && before.is_none_or(|before| trade(before) != trade(tick));
    if !has_quote && !has_trade {
        return false;
    }
    let _ = write!(out, "{},{}", tick.at.0, tick.security);
    for (price, size) in [(tick.bid, tick.bid_size), (tick.ask, tick.ask_size)] {
        let _ =
            if has_quote && size.is_positive() { write!(out, ",{price},{size}") } else { write!(out, ",,") };
    }
    let _ = if has_trade { writeln!(out, ",{},{}", tick.last, tick.last_size) } else { writeln!(out, ",,") };
    true
}

#[cfg(test)]
mod tests {
    use pitlane_engine::number::{Price, Qty};

    use super::*;

    #[test]
    fn only_changes_are_written() {
        let whole = |units| Qty::whole(units).unwrap();
        let quoted = Tick {
            security: SecurityId(7),
            bid: Price::parse(b"1.5").unwrap(),
            bid_size: whole(3),
            at: Timestamp(5),
            ..Tick::default()
        };
        let traded = Tick { traded: true, last: quoted.bid, last_size: whole(2), volume: whole(2), ..quoted };
        let moved = Tick {
            ask: Price::parse(b"2").unwrap(),
            ask_size: whole(1),
            volume: whole(4),
            at: Timestamp(9),
            ..traded
        };
        let mut out = String::new();
        assert!(row(&mut out, &quoted, None));
        assert!(row(&mut out, &traded, Some(&quoted)));
        assert!(!row(&mut out, &traded, Some(&traded)));
        assert!(row(&mut out, &moved, Some(&traded)));
        assert_eq!(out, "5,7,1.5,3,,,,\n5,7,,,,,1.5,2\n9,7,1.5,3,2,1,1.5,2\n");
    }

    #[test]
    fn texts_for_the_disk_are_bounded_and_dropped_rows_are_counted() {
        let (mut recorder, received) = pair();
        let mut number = 0;
        // Adds rows until a text is passed on or dropped; returns the number of its rows.
        let mut fill = |recorder: &mut TickRecorder| {
            for rows in 1.. {
                number += 1;
                let (bid, bid_size) = (Price::from_raw(number), Qty::whole(1).unwrap());
                let at = Timestamp(number as u64);
                let tick = Tick { security: SecurityId(7), bid, bid_size, at, ..Tick::default() };
                recorder.handle_event(&Event { seq: 1, at, body: EventKind::Tick(tick) });
                if recorder.rows.is_empty() {
                    return rows;
                }
            }
            0
        };
        let fitting: Vec<u64> = (0..WAITING_MAX).map(|_| fill(&mut recorder)).collect();
        assert_eq!(recorder.left_out, 0);
        let beyond = fill(&mut recorder) + fill(&mut recorder);
        assert_eq!(recorder.left_out, beyond);
        let count = |text: String| text.lines().count() as u64;
        assert!(received.try_iter().map(count).eq(fitting), "all that fits is there");
        // The disk catches up, and the recording continues.
        let rows = fill(&mut recorder);
        assert_eq!((received.try_recv().map(count), recorder.left_out), (Ok(rows), 0));
    }
}
