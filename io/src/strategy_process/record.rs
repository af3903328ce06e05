//! A strategy's own record of the order events it was told, one line each, written before the strategy hears of it.
//!
//! ```text
//! L <life>                          a process begins
//! A <id>                            it asks for an order
//! E <shard> <number> <words>        an event
//! H <number> <number> …             heard up to here, by shard: nothing of it is lacking
//! B <number> <number> …             begun anew from the state at these numbers; what was before is unknown
//! ```
//!
//! Started again, a process reads here what the one before it has heard, and asks for what came since.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use pitlane_engine::event::{Event, EventKind};
use pitlane_engine::id::{IntId, ShardId};
use pitlane_engine::strategy::remote_protocol::NumberedEvent;

use crate::nats::subjects::segment;

#[derive(Debug)]
pub struct Record {
    file: File,
    line: String,
}

impl Record {
    /// What was heard before; empty if there is no record, or it says nothing.
    pub fn open(folder: &Path, strategy: &str) -> io::Result<(Record, Vec<u64>)> {
        fs::create_dir_all(folder)?;
        let path: PathBuf = folder.join(segment(strategy) + ".told");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let file = OpenOptions::new().create(true).append(true).open(&path)?;
        // A line that was cut off by the end of the machine counts as not written.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        if whole < text.len() {
            file.set_len(whole as u64)?;
        }
        Ok((Record { file, line: String::new() }, heard_of(&text[..whole])))
    }

    pub fn event(&mut self, told: &NumberedEvent) -> io::Result<()> {
        self.line.clear();
        write_event(&mut self.line, told.shard, &told.event);
        self.file.write_all(self.line.as_bytes())
    }

    pub fn life(&mut self, life: u64) -> io::Result<()> {
        self.numbers('L', &[life])
    }

    pub fn asked(&mut self, id: &IntId) -> io::Result<()> {
        self.line.clear();
        let _ = writeln!(self.line, "A {id}");
        self.file.write_all(self.line.as_bytes())
    }

    pub fn heard(&mut self, heard: &[u64]) -> io::Result<()> {
        self.numbers('H', heard)
    }

    pub fn begun(&mut self, heard: &[u64]) -> io::Result<()> {
        self.numbers('B', heard)
    }

    fn numbers(&mut self, letter: char, numbers: &[u64]) -> io::Result<()> {
        self.line.clear();
        self.line.push(letter);
        numbers.iter().for_each(|number| _ = write!(self.line, " {number}"));
        self.line.push('\n');
        self.file.write_all(self.line.as_bytes())
    }
}

fn heard_of(text: &str) -> Vec<u64> {
    let mut heard: Vec<u64> = Vec::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        let letter = words.next();
        let mut numbers = words.map_while(|word| word.parse::<u64>().ok());
        match letter {
            Some("H" | "B") => heard = numbers.collect(),
            Some("E") => {
                let (Some(shard), Some(number)) = (numbers.next(), numbers.next()) else { continue };
                if let Some(heard) = heard.get_mut(shard as usize) {
                    *heard = number.max(*heard);
                }
            }
            _ => {}
        }
    }
    heard
}

/// An event as a line.
pub fn write_event(line: &mut String, shard: ShardId, event: &Event) {
    let _ = write!(line, "E {} {} ", shard.0, event.seq);
    let _ = match &event.body {
        EventKind::Order(told) => {
            write!(line, "order {} {:?} {:?} {}", told.id, told.what, told.status, told.terms.qty)
        }
        EventKind::Status(told) => write!(
            line,
            "status {} {:?} {:?} {} {} {}",
            told.id, told.what, told.status, told.cum_qty, told.last_qty, told.last_price
        ),
        EventKind::Refused(told) => write!(line, "refused {} {}", told.request_id, told.reason.code()),
        EventKind::Booked(told) => {
            write!(line, "booked {} {} {} {}", told.id.0, told.order_id, told.qty, told.price)
        }
        EventKind::Forgotten { id, .. } => write!(line, "forgotten {id}"),
        EventKind::Phase { phase, .. } => write!(line, "phase {phase:?}"),
        EventKind::Adjusted { .. } => write!(line, "adjusted"),
        _ => write!(line, "other"),
    };
    line.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_about_each_shard_counts() {
        assert_eq!(heard_of(""), Vec::<u64>::new());
        let text = "B 10 20\nE 0 12 order s1 Entered\nE 1 25 phase Init\nH 15 25\nE 0 17 forgotten s1\n";
        assert_eq!(heard_of(text), [17, 25]);
        assert_eq!(heard_of("E 0 5 x\n"), Vec::<u64>::new(), "without a beginning nothing is known");
    }
}
