//! Events between strategies that this server keeps where there is no broker: for strategies that
//! are away, within bounds of time, number and bytes.
//!
//! ```text
//! PUBLISH, clients ─► append ─► files ─► memory ─► next_for ─► GENERIC
//!                                          ▲ position of each strategy ◄─ acknowledge ◄─ ACKNOWLEDGE
//! ```
//!
//! An event is in the file before its sender gets an answer, so it outlives a crash of this
//! process. It is not synced: after a loss of power the last events may be missing, as with a
//! broker by default. The number of an event is larger than that of every earlier one, across
//! restarts: a new log begins with the time in nanoseconds.

mod files;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use pitlane_cluster::nats::generic::Generic;
use pitlane_engine::time::{NS_PER_S, Timestamp};

use self::files::{LogFiles, LogRecord};

/// Processes of one strategy whose last published number is remembered: a process repeats its last
/// event only, so the present one and a few before it suffice.
const PUBLISHERS_MAX: usize = 8;
/// Deliveries of one event to a strategy that may crash on it; then it is skipped.
const DELIVERIES_MAX: u32 = 5;
/// Folder of the files below the data folder.
const FOLDER: &str = "strategy-events";

/// Bounds of the events that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GenericBounds {
    pub keep_s: u64,
    pub count_max: usize,
    pub bytes_max: usize,
}

#[derive(Debug)]
pub struct GenericLog {
    bounds: GenericBounds,
    /// Invariant: numbers rise, and are all below `next`.
    events: VecDeque<StoredEvent>,
    bytes: usize,
    next: u64,
    readers: BTreeMap<Arc<str>, LogReader>,
    /// By strategy, the newest last: a process, and the number of its last event.
    publishers: BTreeMap<String, VecDeque<(u64, u64)>>,
    /// `None`: the events are in memory only.
    files: Option<LogFiles>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredEvent {
    pub number: u64,
    pub generic: Generic,
    at: Timestamp,
}

impl StoredEvent {
    fn bytes(&self) -> usize {
        size_of::<StoredEvent>() + self.generic.name.len() + self.generic.from.len() + self.generic.body.len()
    }
}

/// A strategy, as a reader of the log.
#[derive(Clone, Copy, Debug, Default)]
struct LogReader {
    /// All events up to this number are handled.
    position: u64,
    /// How often the first event after the position was delivered, and its number.
    delivered: (u64, u32),
}

/// Identifies an event among those of its sender: the process, and the number there.
pub(crate) type PublishId = (u64, u64);

impl GenericLog {
    /// Opens the log of a data folder; `None`: it is in memory only. A strategy that is new begins
    /// with the next event.
    pub fn open(
        data_dir: Option<&Path>,
        bounds: GenericBounds,
        strategies: &[String],
        now: Timestamp,
    ) -> io::Result<GenericLog> {
        let mut log = GenericLog {
            bounds,
            events: VecDeque::new(),
            bytes: 0,
            next: now.0.max(1),
            readers: BTreeMap::new(),
            publishers: BTreeMap::new(),
            files: None,
        };
        if let Some(data_dir) = data_dir {
            let segment_bytes = (bounds.bytes_max / 8) as u64;
            let files =
                LogFiles::open(&data_dir.join(FOLDER), segment_bytes, &mut |record| log.restore(record))?;
            log.files = Some(files);
        }
        // Strategies that were removed from the settings are forgotten.
        log.readers.retain(|name, _| strategies.iter().any(|strategy| **strategy == **name));
        for strategy in strategies {
            let new = LogReader { position: log.next - 1, ..LogReader::default() };
            log.readers.entry(strategy.as_str().into()).or_insert(new);
        }
        log.expire(now);
        log.begin_segment()?;
        Ok(log)
    }

    fn restore(&mut self, record: LogRecord) {
        match record {
            LogRecord::Event { number, at, publisher, publish_number, from, name, body } => {
                self.next = self.next.max(number.saturating_add(1));
                self.note_publisher(&from, (publisher, publish_number));
                let is_later = self.events.back().is_none_or(|last| last.number < number);
                // What no client could publish is damage.
                if let Some(generic) = Generic::new(&name, Bytes::from(body), &from).filter(|_| is_later) {
                    self.push(StoredEvent { number, generic, at });
                }
            }
            LogRecord::Acknowledged { strategy, number } => {
                self.next = self.next.max(number.saturating_add(1));
                let reader = self.readers.entry(strategy.as_str().into()).or_default();
                reader.position = reader.position.max(number);
            }
            LogRecord::Published { from, publisher, number } => {
                self.note_publisher(&from, (publisher, number));
            }
        }
    }

    /// Stores an event, unless its sender has sent it before. Returns whether it is new.
    pub(crate) fn append(
        &mut self,
        now: Timestamp,
        generic: Generic,
        id: Option<PublishId>,
    ) -> io::Result<bool> {
        if id.is_some_and(|id| self.is_known(&generic.from, id)) {
            return Ok(false);
        }
        let number = self.next;
        if let Some(files) = &mut self.files {
            let (publisher, publish_number) = id.unwrap_or_default();
            files.append(&LogRecord::Event {
                number,
                at: now,
                publisher,
                publish_number,
                from: generic.from.clone(),
                name: generic.name.clone(),
                body: generic.body.to_vec(),
            })?;
        }
        self.next += 1;
        if let Some(id) = id {
            self.note_publisher(&generic.from, id);
        }
        self.push(StoredEvent { number, generic, at: now });
        self.expire(now);
        if self.files.as_ref().is_some_and(LogFiles::is_full) {
            self.begin_segment()?;
        }
        Ok(true)
    }

    fn push(&mut self, event: StoredEvent) {
        self.bytes += event.bytes();
        self.events.push_back(event);
    }

    /// Removes events that are too old or too many.
    pub(crate) fn expire(&mut self, now: Timestamp) {
        let keep_ns = self.bounds.keep_s.saturating_mul(NS_PER_S);
        let GenericBounds { count_max, bytes_max, .. } = self.bounds;
        while let Some(first) = self.events.front()
            && (self.events.len() > count_max || self.bytes > bytes_max || now.since(first.at) > keep_ns)
        {
            self.bytes -= first.bytes();
            self.events.pop_front();
        }
        let first = self.events.front().map_or(self.next, |event| event.number);
        if let Some(files) = &mut self.files {
            files.remove_before(first);
        }
    }

    fn is_known(&self, from: &str, (publisher, number): PublishId) -> bool {
        let known = self.publishers.get(from).into_iter().flatten().find(|(known, _)| *known == publisher);
        known.is_some_and(|(_, last)| number <= *last)
    }

    fn note_publisher(&mut self, from: &str, (publisher, number): PublishId) {
        if publisher == 0 {
            return;
        }
        let publishers = self.publishers.entry(from.to_string()).or_default();
        match publishers.iter_mut().find(|(known, _)| *known == publisher) {
            Some((_, last)) => *last = number.max(*last),
            None => publishers.push_back((publisher, number)),
        }
        if publishers.len() > PUBLISHERS_MAX {
            publishers.pop_front();
        }
    }

    /// Returns the number up to which a strategy has handled all events.
    pub(crate) fn position(&self, strategy: &str) -> u64 {
        self.readers.get(strategy).map_or(self.next - 1, |reader| reader.position)
    }

    /// Returns the first event of others after a number.
    pub(crate) fn next_for(&self, strategy: &str, after: u64) -> Option<&StoredEvent> {
        let from = self.events.partition_point(|event| event.number <= after);
        self.events.range(from..).find(|event| event.generic.from != strategy)
    }

    /// Counts the delivery of the event after a strategy's position, and skips the event if it was
    /// delivered too often without an acknowledgement. Returns the position.
    pub(crate) fn begin_delivery(&mut self, strategy: &str) -> u64 {
        let position = self.position(strategy);
        let Some(first) = self.next_for(strategy, position).map(|event| event.number) else {
            return position;
        };
        let Some(reader) = self.readers.get_mut(strategy) else { return position };
        let (number, count) = reader.delivered;
        reader.delivered = (first, if number == first { count + 1 } else { 1 });
        if reader.delivered.1 <= DELIVERIES_MAX {
            return position;
        }
        tracing::warn!(
            strategy,
            number = first,
            "an event for a strategy is skipped: it was delivered too often"
        );
        self.acknowledge(strategy, first);
        first
    }

    /// Records that a strategy has handled all events up to this number.
    pub(crate) fn acknowledge(&mut self, strategy: &str, number: u64) {
        // A process cannot acknowledge what does not exist yet.
        let number = number.min(self.next - 1);
        let Some(reader) = self.readers.get_mut(strategy).filter(|reader| reader.position < number) else {
            return;
        };
        reader.position = number;
        let record = LogRecord::Acknowledged { strategy: strategy.to_string(), number };
        // Without the record the events are delivered again after a restart.
        if let Some(Err(error)) = self.files.as_mut().map(|files| files.append(&record)) {
            tracing::warn!(%error, strategy, "an acknowledgement could not be stored");
        }
    }

    /// Begins a file with what the removal of earlier files would lose.
    fn begin_segment(&mut self) -> io::Result<()> {
        let Some(files) = &mut self.files else { return Ok(()) };
        let readers = self.readers.iter().map(|(strategy, reader)| LogRecord::Acknowledged {
            strategy: strategy.to_string(),
            number: reader.position,
        });
        let publishers = self.publishers.iter().flat_map(|(from, publishers)| {
            let record =
                |&(publisher, number)| LogRecord::Published { from: from.clone(), publisher, number };
            publishers.iter().map(record)
        });
        files.begin(self.next, readers.chain(publishers))
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.events.len()
    }
}

#[cfg(test)]
mod tests;
