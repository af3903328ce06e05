//! A strategy's own record of the order events it received, one line each, written before the
//! strategy receives the event.
//!
//! ```text
//! L <incarnation>                   a process starts
//! A <id>                            it requests an order
//! E <shard> <number> <words>        an event
//! H <number> <number> …             last event received, by shard: nothing before it is missing
//! B <number> <number> …             restart from the state at these numbers; earlier: unknown
//! ```
//!
//! A strategy in Python records the same lines (`clients/python/src/pitlane/live/record.py`). After
//! a restart, a process reads here what its predecessor received, and asks for the events since.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use pitlane_engine::event::{Event, EventKind};
use pitlane_engine::id::{IntId, ShardId};
use pitlane_engine::index::index_usize;
use pitlane_protocols::codes::WireName;
use pitlane_protocols::remote::strategy::NumberedEvent;

use crate::nats::subjects::segment;

#[derive(Debug)]
pub struct EventRecord {
    file: File,
    line: String,
}

impl EventRecord {
    /// Opens the record, and returns it with the last event received by shard; empty if there is no
    /// record, or it contains none.
    pub fn open(folder: &Path, strategy: &str) -> io::Result<(EventRecord, Vec<u64>)> {
        fs::create_dir_all(folder)?;
        let path: PathBuf = folder.join(segment(strategy) + ".told");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let file = OpenOptions::new().create(true).append(true).open(&path)?;
        // A line that was cut off by a crash of the machine counts as not written.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        if whole < text.len() {
            file.set_len(whole as u64)?;
        }
        Ok((EventRecord { file, line: String::new() }, received_in(&text[..whole])))
    }

    pub fn event(&mut self, numbered: &NumberedEvent) -> io::Result<()> {
        self.line.clear();
        write_event(&mut self.line, numbered.shard, &numbered.event);
        self.file.write_all(self.line.as_bytes())
    }

    pub fn incarnation(&mut self, incarnation: u64) -> io::Result<()> {
        self.numbers('L', &[incarnation])
    }

    pub fn asked(&mut self, id: &IntId) -> io::Result<()> {
        self.line.clear();
        let _ = writeln!(self.line, "A {id}");
        self.file.write_all(self.line.as_bytes())
    }

    pub fn received(&mut self, received: &[u64]) -> io::Result<()> {
        self.numbers('H', received)
    }

    pub fn begun(&mut self, received: &[u64]) -> io::Result<()> {
        self.numbers('B', received)
    }

    fn numbers(&mut self, tag: char, numbers: &[u64]) -> io::Result<()> {
        self.line.clear();
        self.line.push(tag);
        numbers.iter().for_each(|number| _ = write!(self.line, " {number}"));
        self.line.push('\n');
        self.file.write_all(self.line.as_bytes())
    }
}

fn received_in(text: &str) -> Vec<u64> {
    let mut received: Vec<u64> = Vec::new();
    for line in text.lines() {
        let mut fields = line.split(' ');
        let tag = fields.next();
        let mut numbers = fields.map_while(|field| field.parse::<u64>().ok());
        match tag {
            Some("H" | "B") => received = numbers.collect(),
            Some("E") => {
                let (Some(shard), Some(number)) = (numbers.next(), numbers.next()) else { continue };
                if let Some(received) = received.get_mut(index_usize(shard)) {
                    *received = number.max(*received);
                }
            }
            _ => {}
        }
    }
    received
}

/// Writes an event as a line.
pub fn write_event(line: &mut String, shard: ShardId, event: &Event) {
    let _ = write!(line, "E {} {} ", shard.0, event.seq);
    let _ = match &event.body {
        EventKind::Order(report) => {
            let (what, status) = (report.what.wire_name(), report.status.wire_name());
            write!(line, "order {} {what} {status} {}", report.id, report.terms.qty)
        }
        EventKind::Status(report) => {
            let (what, status) = (report.what.wire_name(), report.status.wire_name());
            let (filled, last) = (report.cum_qty, (report.last_qty, report.last_price));
            write!(line, "status {} {what} {status} {filled} {} {}", report.id, last.0, last.1)
        }
        EventKind::Refused(report) => write!(line, "refused {} {}", report.request_id, report.reason.code()),
        EventKind::Booked(report) => {
            write!(line, "booked {} {} {} {}", report.id.0, report.order_id, report.qty, report.price)
        }
        EventKind::Forgotten { id, .. } => write!(line, "forgotten {id}"),
        EventKind::Phase { phase, .. } => write!(line, "phase {}", phase.wire_name()),
        EventKind::Adjusted { .. } => write!(line, "adjusted"),
        EventKind::Tick(_)
        | EventKind::Depth(_)
        | EventKind::Levels(_)
        | EventKind::BookOrders(_)
        | EventKind::MarketTrade(_)
        | EventKind::Subscription { .. }
        | EventKind::Session { .. }
        | EventKind::Halt { .. }
        | EventKind::TradingDay { .. }
        | EventKind::Adapter { .. }
        | EventKind::Limits { .. }
        | EventKind::Restrict { .. }
        | EventKind::Kill { .. }
        | EventKind::Alert { .. }
        | EventKind::ToVenue(_)
        | EventKind::Budget(_)
        | EventKind::Exposure { .. }
        | EventKind::Done { .. }
        | EventKind::SnapshotBegin { .. }
        | EventKind::SnapshotEnd { .. }
        | EventKind::UsedIds(_)
        | EventKind::Directed { .. }
        | EventKind::Sender { .. }
        | EventKind::SpecialTerms(_)
        | EventKind::Sent { .. } => write!(line, "other"),
    };
    line.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_entry_about_each_shard_counts() {
        assert_eq!(received_in(""), Vec::<u64>::new());
        let text = "B 10 20\nE 0 12 order s1 PENDING_NEW\nE 1 25 phase INIT\nH 15 25\nE 0 17 forgotten s1\n";
        assert_eq!(received_in(text), [17, 25]);
        assert_eq!(received_in("E 0 5 x\n"), Vec::<u64>::new(), "without a beginning nothing is known");
    }
}
