//! Records the live market into a file that simulation and replay read. The http thread, which
//! receives every tick, formats the rows; a separate thread writes them to disk, so a slow disk
//! delays no other thread. Rows that do not fit are dropped, and their number is logged.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::mem;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use pitlane_engine::command::CommandKind;
use pitlane_engine::event::{DEPTH_LEVELS_MAX, Depth, Event, EventKind, Tick};
use pitlane_engine::id::SecurityId;
use pitlane_engine::time::Timestamp;
use pitlane_runtime::thread_class::ThreadClass;

use super::TickRow;
use super::entry::side_name;
use super::parquet::writer::{self, RowWriter};
use super::recorded_rows::RecordedRows;
use super::top_levels::TopLevels;

/// Maximum number of texts that wait to be written, and the size at which one is sent: 16 MiB in
/// total.
const WAITING_MAX: usize = 64;
const TEXT_BYTES: usize = 1 << 18;

/// The recordings of a service.
#[derive(Debug, Default)]
pub struct MarketRecorder {
    ticks: Option<TickRecorder>,
    levels: Option<LevelRecorder>,
}

impl MarketRecorder {
    pub fn new(ticks: Option<RowSender>, levels: Option<RowSender>) -> MarketRecorder {
        MarketRecorder { ticks: ticks.map(TickRecorder::new), levels: levels.map(LevelRecorder::new) }
    }

    pub fn handle_event(&mut self, event: &Event) {
        match (&event.body, &mut self.ticks, &mut self.levels) {
            (EventKind::Tick(tick), Some(recorder), _) => recorder.record(tick),
            (EventKind::Depth(depth), _, Some(recorder)) => recorder.record(event.at, depth),
            _ => {}
        }
    }

    pub fn records_levels(&self) -> bool {
        self.levels.is_some()
    }

    /// Passes the collected rows to the writing threads.
    pub fn flush(&mut self) {
        self.ticks.iter_mut().for_each(|recorder| recorder.rows.flush());
        self.levels.iter_mut().for_each(|recorder| recorder.rows.flush());
    }
}

/// Rows on their way to the thread that writes them.
#[derive(Debug)]
pub struct RowSender {
    texts: SyncSender<String>,
    rows: String,
    left_out: u64,
}

/// Records ticks.
#[derive(Debug)]
struct TickRecorder {
    rows: RowSender,
    /// Previous tick of each security, to find what is new in the next.
    before: BTreeMap<SecurityId, Tick>,
    /// Time of the previous row.
    last: Timestamp,
}

/// Records the changes of books.
#[derive(Debug)]
struct LevelRecorder {
    rows: RowSender,
    books: BTreeMap<SecurityId, TopLevels>,
    changes: VecDeque<TickRow>,
    /// Time of the previous row.
    last: Timestamp,
}

/// Opens the file and starts the thread, which ends when the sender is dropped and everything is
/// written.
pub fn start(path: &Path, content: RecordedRows) -> io::Result<(RowSender, JoinHandle<()>)> {
    let mut to = RecordingFile::open(path, content)?;
    let (sender, received) = RowSender::new();
    let thread = thread::Builder::new().name("record".to_string()).spawn(move || {
        ThreadClass::Housekeeping.apply();
        write(&received, &mut to);
    })?;
    Ok((sender, thread))
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
    Parquet(Box<RowWriter>),
}

impl RecordingFile {
    /// Opens the output by its name: a CSV file is appended to, Parquet files are created.
    fn open(path: &Path, content: RecordedRows) -> io::Result<RecordingFile> {
        if writer::is_meant(path) {
            return Ok(RecordingFile::Parquet(Box::new(RowWriter::new(path, content)?)));
        }
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        if file.metadata()?.len() == 0 {
            file.write_all(format!("{}\n", content.layout().header()).as_bytes())?;
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
    fn new(rows: RowSender) -> TickRecorder {
        TickRecorder { rows, before: BTreeMap::new(), last: Timestamp::ZERO }
    }

    fn record(&mut self, tick: &Tick) {
        // Shards are polled in turn, so their times may overlap slightly; a file must be in time
        // order.
        self.last = self.last.max(tick.at);
        let tick = Tick { at: self.last, ..*tick };
        let before = self.before.insert(tick.security, tick);
        row(&mut self.rows.rows, &tick, before.as_ref());
        self.rows.flush_if_full();
    }
}

impl LevelRecorder {
    fn new(rows: RowSender) -> LevelRecorder {
        LevelRecorder { rows, books: BTreeMap::new(), changes: VecDeque::new(), last: Timestamp::ZERO }
    }

    /// Writes what has changed in one side of a book.
    fn record(&mut self, at: Timestamp, depth: &Depth) {
        self.last = self.last.max(at);
        let (security, side) = (depth.security, depth.side);
        let book = self.books.entry(security).or_insert_with(|| TopLevels::new(security, DEPTH_LEVELS_MAX));
        let mut levels = [Default::default(); DEPTH_LEVELS_MAX];
        for (place, level) in levels.iter_mut().zip(depth.levels()) {
            *place = (level.price, level.qty);
        }
        book.replace(self.last, side, &levels[..depth.levels().len()], &mut self.changes);
        for change in self.changes.drain(..) {
            if let CommandKind::Level { level, .. } = change.body {
                let (at, side) = (self.last.0, side_name(level.side));
                let _ = writeln!(self.rows.rows, "{at},{security},{side},{},{}", level.price, level.size);
            }
        }
        self.rows.flush_if_full();
    }
}

impl RowSender {
    fn new() -> (RowSender, Receiver<String>) {
        let (texts, received) = sync_channel(WAITING_MAX);
        (RowSender { texts, rows: String::new(), left_out: 0 }, received)
    }

    fn flush_if_full(&mut self) {
        if self.rows.len() >= TEXT_BYTES {
            self.flush();
        }
    }

    /// Passes the collected rows to the writing thread.
    fn flush(&mut self) {
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
impl Drop for RowSender {
    fn drop(&mut self) {
        let rows = mem::take(&mut self.rows);
        let _ = self.texts.send(rows);
    }
}

/// Writes what is new in a tick, if anything is.
fn row(out: &mut String, tick: &Tick, before: Option<&Tick>) {
    let quote = |tick: &Tick| (tick.bid, tick.bid_size, tick.ask, tick.ask_size);
    let is_quoted = tick.bid_size.is_positive() || tick.ask_size.is_positive();
    let has_quote = is_quoted && before.is_none_or(|before| quote(before) != quote(tick));
    let trade = |tick: &Tick| (tick.last, tick.last_size, tick.volume);
    let has_trade = tick.traded && before.is_none_or(|before| trade(before) != trade(tick));
    if !has_quote && !has_trade {
        return;
    }
    let _ = write!(out, "{},{}", tick.at.0, tick.security);
    for (price, size) in [(tick.bid, tick.bid_size), (tick.ask, tick.ask_size)] {
        let _ =
            if has_quote && size.is_positive() { write!(out, ",{price},{size}") } else { write!(out, ",,") };
    }
    let _ = if has_trade { writeln!(out, ",{},{}", tick.last, tick.last_size) } else { writeln!(out, ",,") };
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::sync::Arc;

    use pitlane_config::refdata;
    use pitlane_engine::event::DepthLevel;
    use pitlane_engine::number::{Price, Qty};
    use pitlane_engine::terms::Side;

    use super::*;
    use crate::file::DataFile;
    use crate::{BarPath, ReadOptions};

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
        row(&mut out, &quoted, None);
        row(&mut out, &traded, Some(&quoted));
        row(&mut out, &traded, Some(&traded));
        row(&mut out, &moved, Some(&traded));
        assert_eq!(out, "5,7,1.5,3,,,,\n5,7,,,,,1.5,2\n9,7,1.5,3,2,1,1.5,2\n");
    }

    #[test]
    fn texts_for_the_disk_are_bounded_and_dropped_rows_are_counted() {
        let (sender, received) = RowSender::new();
        let mut recorder = MarketRecorder::new(Some(sender), None);
        let mut number = 0;
        // Adds rows until a text is passed on or dropped; returns the number of its rows.
        let mut fill = |recorder: &mut MarketRecorder| {
            for rows in 1.. {
                number += 1;
                let (bid, bid_size) = (Price::from_raw(number), Qty::whole(1).unwrap());
                let at = Timestamp(number as u64);
                let tick = Tick { security: SecurityId(7), bid, bid_size, at, ..Tick::default() };
                recorder.handle_event(&Event { seq: 1, at, body: EventKind::Tick(tick) });
                if recorder.ticks.as_ref().is_some_and(|ticks| ticks.rows.rows.is_empty()) {
                    return rows;
                }
            }
            0
        };
        let fitting: Vec<u64> = (0..WAITING_MAX).map(|_| fill(&mut recorder)).collect();
        let left_out = |recorder: &MarketRecorder| recorder.ticks.as_ref().map(|ticks| ticks.rows.left_out);
        assert_eq!(left_out(&recorder), Some(0));
        let beyond = fill(&mut recorder) + fill(&mut recorder);
        assert_eq!(left_out(&recorder), Some(beyond));
        let count = |text: String| text.lines().count() as u64;
        assert!(received.try_iter().map(count).eq(fitting), "all that fits is there");
        // The disk catches up, and the recording continues.
        let rows = fill(&mut recorder);
        assert_eq!((received.try_recv().map(count), left_out(&recorder)), (Ok(rows), Some(0)));
    }

    #[test]
    fn changed_levels_are_written_and_read_back() {
        let level = |price: &str, qty: i64| DepthLevel {
            price: Price::parse(price.as_bytes()).unwrap(),
            qty: Qty::whole(qty).unwrap(),
        };
        let depth = |at: u64, side: Side, shown: &[DepthLevel]| {
            let mut levels = [DepthLevel::default(); DEPTH_LEVELS_MAX];
            levels[..shown.len()].copy_from_slice(shown);
            let count = u8::try_from(shown.len()).unwrap();
            let depth = Depth { levels, security: SecurityId(1), side, count };
            Event { seq: 1, at: Timestamp(at), body: EventKind::Depth(depth) }
        };
        let events = [
            depth(5, Side::Buy, &[level("10.5", 3), level("10", 8)]),
            depth(5, Side::Sell, &[level("11", 2)]),
            depth(4, Side::Buy, &[level("10.5", 3), level("9", 1)]),
            depth(9, Side::Buy, &[level("10.5", 3), level("9", 1)]),
        ];
        let expected = "5,1,B,10.5,3\n5,1,B,10,8\n5,1,A,11,2\n5,1,B,10,0\n5,1,B,9,1\n";
        let stem = std::env::temp_dir().join(format!("pitlane-levels-{}", std::process::id()));
        let mut names = vec![("csv", stem.with_extension("csv"))];
        if cfg!(feature = "parquet") {
            names.push(("parquet", PathBuf::from(format!("{}-000001.parquet", stem.display()))));
        }
        for (extension, written) in names {
            let _ = fs::remove_file(&written);
            let (sender, thread) = start(&stem.with_extension(extension), RecordedRows::Levels).unwrap();
            let mut recorder = MarketRecorder::new(None, Some(sender));
            events.iter().for_each(|event| recorder.handle_event(event));
            recorder.flush();
            drop(recorder);
            thread.join().unwrap();
            assert_eq!(read_levels(&written), expected, "{extension}");
            fs::remove_file(&written).unwrap();
        }
    }

    /// Reads a recording and writes its rows in the form of the CSV file.
    fn read_levels(path: &Path) -> String {
        let reference = Arc::new(refdata::shipped().unwrap());
        let bars = BarPath { interval_ns: 1, volume_bp: 1 };
        let options = ReadOptions { bars, files: Default::default() };
        let range = (Timestamp::ZERO, Timestamp::MAX);
        let mut file = DataFile::open(path, &reference, &options, range).unwrap();
        let mut text = String::new();
        while let Some(row) = file.next_row().unwrap() {
            let CommandKind::Level { security, level } = row.body else { panic!("{row:?}") };
            let side = side_name(level.side);
            writeln!(text, "{},{security},{side},{},{}", row.at.0, level.price, level.size).unwrap();
        }
        text
    }
}
