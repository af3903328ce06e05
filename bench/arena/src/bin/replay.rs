//! Replays a workload file of the arena without the arena, to count instructions with callgrind:
//! `replay book|shard FILE [MESSAGES]`. Reports are folded into a number, which is the same for
//! engines that report the same in the same order.

use std::cell::Cell;
use std::process::ExitCode;

use pitlane_arena::{BookEngine, Cancel, Engine, Modify, NewOrder, Report, ShardEngine, Sink};

/// Bytes before the first record, and of each.
const HEADER: usize = 16;
const RECORD: usize = 40;

enum Message {
    New(NewOrder),
    Cancel(Cancel),
    Modify(Modify),
}

#[derive(Default)]
struct Fold {
    count: Cell<u64>,
    sum: Cell<u64>,
}

impl Sink for Fold {
    #[inline(always)]
    fn push(&self, report: &Report) {
        self.count.set(self.count.get() + 1);
        let words = report.words();
        let word = words.into_iter().fold(0, |sum: u64, word| sum.wrapping_mul(31).wrapping_add(word));
        self.sum.set(self.sum.get().rotate_left(5) ^ word);
    }
}

fn messages(bytes: &[u8]) -> Vec<Message> {
    let word = |record: &[u8], at: usize| u64::from_le_bytes(record[at..at + 8].try_into().expect("8 bytes"));
    let one = |record: &[u8]| {
        let (seq, id, ticks) = (word(record, 8), word(record, 16), word(record, 24).cast_signed());
        let qty = (word(record, 0) >> 32) as u32;
        match record[0] {
            0 => {
                let (side, ioc) = (record[1], record[2]);
                Message::New(NewOrder { id, seq, ticks, qty, side, ioc, reserved: [0; 2] })
            }
            1 => Message::Cancel(Cancel { id, seq }),
            _ => Message::Modify(Modify { id, seq, ticks, qty, side: record[1], reserved: [0; 3] }),
        }
    };
    bytes[HEADER..].chunks_exact(RECORD).map(one).collect()
}

/// The part that is counted: `--toggle-collect=*counted*`.
#[inline(never)]
fn counted(engine: &mut impl Engine, messages: &[Message], fold: &Fold) {
    for message in messages {
        match message {
            Message::New(order) => engine.enter(order, fold),
            Message::Cancel(cancel) => engine.cancel(cancel, fold),
            Message::Modify(modify) => engine.modify(modify, fold),
        }
    }
}

fn replay(mut engine: impl Engine, messages: &[Message]) {
    let fold = Fold::default();
    let start = std::time::Instant::now();
    counted(&mut engine, messages, &fold);
    let ns = start.elapsed().as_nanos() as f64 / messages.len() as f64;
    println!(
        "{} messages, {} reports, {:016x}, {ns:.1} ns",
        messages.len(),
        fold.count.get(),
        fold.sum.get()
    );
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let (engine, file) = (args.next(), args.next().and_then(|path| std::fs::read(path).ok()));
    let (Some(engine), Some(bytes)) = (engine, file) else {
        eprintln!("usage: replay book|shard FILE [MESSAGES]");
        return ExitCode::from(2);
    };
    let mut messages = messages(&bytes);
    if let Some(count) = args.next().and_then(|count| count.parse().ok()) {
        messages.truncate(count);
    }
    match engine.as_str() {
        "shard" => replay(ShardEngine::default(), &messages),
        _ => replay(BookEngine::default(), &messages),
    }
    ExitCode::SUCCESS
}
