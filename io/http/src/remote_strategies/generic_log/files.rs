//! The files of events between strategies: segments that only grow, and are removed whole.
//!
//! ```text
//! strategy-events/<number>.log      events from this number on; each record:
//! length u32 │ crc32c u32 │ record
//! ```
//!
//! A start reads all segments and begins a new one, so a record that a crash has cut off is at the
//! end of its file, and is ignored.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use pitlane_engine::codec::{Codec, codec, decode_whole};
use pitlane_engine::time::Timestamp;

/// Smallest size at which a segment is full, so that small bounds do not make a file per event.
const SEGMENT_BYTES_MIN: u64 = 64 << 10;
/// Bytes in front of a record: its length and its checksum.
const HEAD_BYTES: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LogRecord {
    /// An event; publisher 0 is a client of the server.
    Event {
        number: u64,
        at: Timestamp,
        publisher: u64,
        publish_number: u64,
        from: String,
        name: String,
        body: Vec<u8>,
    },
    Acknowledged {
        strategy: String,
        number: u64,
    },
    /// Number of the last event of a process.
    Published {
        from: String,
        publisher: u64,
        number: u64,
    },
}

codec!(enum LogRecord {
    0 = Event { number, at, publisher, publish_number, from, name, body },
    1 = Acknowledged { strategy, number },
    2 = Published { from, publisher, number },
});

#[derive(Debug)]
pub(super) struct LogFiles {
    folder: PathBuf,
    segment_bytes: u64,
    /// First number and path of each segment; the last one is being written.
    segments: VecDeque<(u64, PathBuf)>,
    file: Option<File>,
    written: u64,
}

impl LogFiles {
    /// Opens the folder, and calls `restore` with each record in order.
    pub(super) fn open(
        folder: &Path,
        segment_bytes: u64,
        restore: &mut dyn FnMut(LogRecord),
    ) -> io::Result<LogFiles> {
        fs::create_dir_all(folder)?;
        let mut segments = Vec::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if let Some(first) = name.strip_suffix(".log").and_then(|number| number.parse().ok()) {
                segments.push((first, path));
            }
        }
        segments.sort_unstable();
        for (_, path) in &segments {
            read(&fs::read(path)?, path, restore);
        }
        let segment_bytes = segment_bytes.max(SEGMENT_BYTES_MIN);
        Ok(LogFiles {
            folder: folder.to_path_buf(),
            segment_bytes,
            segments: segments.into(),
            file: None,
            written: 0,
        })
    }

    /// Begins a segment for events from `first` on. It appears under its name when it is complete.
    pub(super) fn begin(&mut self, first: u64, records: impl Iterator<Item = LogRecord>) -> io::Result<()> {
        let path = self.folder.join(format!("{first:020}.log"));
        let draft = path.with_extension("new");
        let mut file = File::create(&draft)?;
        let bytes: Vec<u8> = records.flat_map(|record| encode(&record)).collect();
        file.write_all(&bytes)?;
        fs::rename(&draft, &path)?;
        (self.file, self.written) = (Some(file), bytes.len() as u64);
        // A segment of the same number has no event: its records are in the new one.
        self.segments.retain(|(number, _)| *number != first);
        self.segments.push_back((first, path));
        Ok(())
    }

    /// Writes a record. A record that does not fit on the disk leaves no part of it.
    pub(super) fn append(&mut self, record: &LogRecord) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let bytes = encode(record);
        if let Err(error) = file.write_all(&bytes) {
            // Records after a part of one would not be read.
            file.set_len(self.written)?;
            io::Seek::seek(file, io::SeekFrom::Start(self.written))?;
            return Err(error);
        }
        self.written += bytes.len() as u64;
        Ok(())
    }

    pub(super) fn is_full(&self) -> bool {
        self.written >= self.segment_bytes
    }

    /// Removes segments whose events are all before this number.
    pub(super) fn remove_before(&mut self, number: u64) {
        while self.segments.get(1).is_some_and(|(first, _)| *first <= number)
            && let Some((_, path)) = self.segments.pop_front()
        {
            if let Err(error) = fs::remove_file(&path) {
                tracing::warn!(%error, path = %path.display(), "a file of events could not be removed");
            }
        }
    }
}

fn encode(record: &LogRecord) -> Vec<u8> {
    let mut bytes = vec![0; HEAD_BYTES];
    record.encode(&mut bytes);
    let length = u32::try_from(bytes.len() - HEAD_BYTES).expect("an event has a megabyte at most");
    let sum = crc32c::crc32c(&bytes[HEAD_BYTES..]);
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    bytes[4..HEAD_BYTES].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Reads the records of a segment up to its end, or to the first that is damaged.
fn read(mut bytes: &[u8], path: &Path, restore: &mut dyn FnMut(LogRecord)) {
    while !bytes.is_empty() {
        match split(bytes) {
            Some((record, rest)) => {
                restore(record);
                bytes = rest;
            }
            None => {
                let left = bytes.len();
                tracing::warn!(path = %path.display(), left, "a file of events between strategies is damaged at its end");
                return;
            }
        }
    }
}

fn split(bytes: &[u8]) -> Option<(LogRecord, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (sum, rest) = rest.split_first_chunk::<4>()?;
    let (record, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let is_sound = crc32c::crc32c(record) == u32::from_le_bytes(*sum);
    let record = decode_whole(record).ok().filter(|_| is_sound)?;
    Some((record, rest))
}
