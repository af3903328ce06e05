//! The workload file: one flow of orders that drives every engine, and its expected outcome.
//!
//! ```text
//! header, 96 bytes   "EWL1"  u32 securities  u64 pre-fill records  u64 timed records  u64 highest order id  u64 seed
//!                    u64 × 7: trades, traded quantity, notional, resting orders, resting quantity, unknown, hash
//! record, 24 bytes   u8 kind  u8 side  u16 zero  u32 security  u64 order id  i32 price in ticks  u32 quantity
//! ```
//!
//! All numbers are little-endian. Prices apply to NEW, IOC and RPL, quantities to NEW, IOC and MKT,
//! sides to all three kinds that enter an order.

mod error;
mod tally;

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use pitlane_engine::index::index_usize;

pub use self::error::{RecordError, WorkloadError};
pub use self::tally::{FlowOutcome, TradeTally};

const MAGIC: [u8; 4] = *b"EWL1";
const HEADER_BYTES: usize = 96;
const RECORD_BYTES: usize = 24;
/// Highest price in ticks: the longest that an array ladder may be.
pub const PRICE_MAX: i32 = 32_767;
/// Highest order id. Engines index tables by it; more would not fit the memory of any machine that
/// we know.
pub const ORDER_ID_MAX: u64 = 1 << 30;
/// Most securities of one file; 20 bits, as in the platform's own security ids.
pub const SECURITIES_MAX: u32 = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    pub securities: u32,
    pub seed: u64,
    /// Highest order id that any record names.
    pub order_id_max: u64,
    /// Records that fill the book; not timed.
    pub prefill: Vec<WorkloadRecord>,
    pub timed: Vec<WorkloadRecord>,
    /// Outcome after the pre-fill and all timed records.
    pub expected: FlowOutcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkloadRecord {
    pub kind: RecordKind,
    pub side: WorkloadSide,
    /// Below the workload's `securities`.
    pub security: u32,
    /// At most the workload's `order_id_max`.
    pub order: u64,
    /// In ticks, 0 to [`PRICE_MAX`].
    pub price: i32,
    /// Above zero where the kind enters an order.
    pub qty: u32,
}

const _: () = assert!(size_of::<WorkloadRecord>() == RECORD_BYTES, "in memory as in the file");

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordKind {
    /// A limit order; the quantity that does not trade rests.
    New,
    /// A limit order; the quantity that does not trade is cancelled.
    Ioc,
    /// A market order; the quantity that does not trade is cancelled.
    Market,
    Cancel,
    /// A new price; the order keeps its remaining quantity, loses its priority, and trades if it
    /// crosses.
    Replace,
}

impl RecordKind {
    pub const ALL: [RecordKind; 5] =
        [RecordKind::New, RecordKind::Ioc, RecordKind::Market, RecordKind::Cancel, RecordKind::Replace];

    pub fn name(self) -> &'static str {
        match self {
            RecordKind::New => "NEW",
            RecordKind::Ioc => "IOC",
            RecordKind::Market => "MKT",
            RecordKind::Cancel => "CXL",
            RecordKind::Replace => "RPL",
        }
    }

    /// Returns whether it enters a new order rather than naming an earlier one.
    pub fn enters(self) -> bool {
        matches!(self, RecordKind::New | RecordKind::Ioc | RecordKind::Market)
    }

    fn code(self) -> u8 {
        self as u8 + 1
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadSide {
    Buy,
    Sell,
}

impl WorkloadSide {
    pub fn opposite(self) -> WorkloadSide {
        match self {
            WorkloadSide::Buy => WorkloadSide::Sell,
            WorkloadSide::Sell => WorkloadSide::Buy,
        }
    }
}

/// An engine that a workload can drive.
pub trait Matcher {
    fn apply(&mut self, record: &WorkloadRecord);
    /// Receives the records behind the one that is applied next, nearest first, so that an engine
    /// may prefetch for them.
    fn prefetch(&mut self, _coming: &[WorkloadRecord]) {}
    /// Returns the outcome so far.
    fn outcome(&self) -> FlowOutcome;
}

impl Workload {
    /// Returns a workload with one security and no records.
    pub fn empty() -> Workload {
        Workload {
            securities: 1,
            seed: 0,
            order_id_max: 0,
            prefill: Vec::new(),
            timed: Vec::new(),
            expected: FlowOutcome::default(),
        }
    }

    /// Returns all records, the pre-fill first.
    pub fn records(&self) -> impl Iterator<Item = &WorkloadRecord> {
        self.prefill.iter().chain(&self.timed)
    }

    /// Runs all records, untimed.
    pub fn run(&self, matcher: &mut impl Matcher) -> FlowOutcome {
        self.records().for_each(|record| matcher.apply(record));
        matcher.outcome()
    }

    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut out = BufWriter::new(File::create(path)?);
        out.write_all(&self.header())?;
        for record in self.records() {
            out.write_all(&record.encode())?;
        }
        out.flush()
    }

    fn header(&self) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        header[..4].copy_from_slice(&MAGIC);
        header[4..8].copy_from_slice(&self.securities.to_le_bytes());
        let expected = &self.expected;
        let text = [
            self.prefill.len() as u64,
            self.timed.len() as u64,
            self.order_id_max,
            self.seed,
            expected.trades,
            expected.traded_qty,
            expected.notional,
            expected.resting_orders,
            expected.resting_qty,
            expected.unknown,
            expected.hash,
        ];
        for (place, word) in header[8..].chunks_exact_mut(8).zip(text) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        header
    }

    pub fn read(path: &Path) -> Result<Workload, WorkloadError> {
        let mut bytes = Vec::new();
        File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)).map_err(WorkloadError::Io)?;
        Workload::decode(&bytes)
    }

    pub fn decode(bytes: &[u8]) -> Result<Workload, WorkloadError> {
        if bytes.len() < 4 || bytes[..4] != MAGIC {
            return Err(WorkloadError::Magic);
        }
        let Some((header, body)) = bytes.split_at_checked(HEADER_BYTES) else {
            return Err(WorkloadError::Length { expected: HEADER_BYTES as u128, found: bytes.len() });
        };
        let word = |n: usize| u64::from_le_bytes(header[8 + 8 * n..][..8].try_into().expect("eight bytes"));
        let securities = u32::from_le_bytes(header[4..8].try_into().expect("four bytes"));
        let (prefill, timed, order_id_max) = (word(0), word(1), word(2));
        let expected = HEADER_BYTES as u128 + (prefill as u128 + timed as u128) * RECORD_BYTES as u128;
        if expected != bytes.len() as u128 {
            return Err(WorkloadError::Length { expected, found: bytes.len() });
        }
        if securities == 0 || securities > SECURITIES_MAX {
            return Err(WorkloadError::Securities(securities));
        }
        if order_id_max > ORDER_ID_MAX {
            return Err(WorkloadError::OrderIds(order_id_max));
        }
        let mut records = Vec::with_capacity(body.len() / RECORD_BYTES);
        let mut entered = vec![0u64; index_usize(order_id_max) / 64 + 1];
        for (number, bytes) in body.chunks_exact(RECORD_BYTES).enumerate() {
            let record_error = |error| WorkloadError::Record { number, error };
            let record = WorkloadRecord::decode(bytes).map_err(record_error)?;
            record.check(securities, order_id_max, &mut entered).map_err(record_error)?;
            records.push(record);
        }
        let timed = records.split_off(index_usize(prefill));
        Ok(Workload {
            securities,
            seed: word(3),
            order_id_max,
            prefill: records,
            timed,
            expected: FlowOutcome {
                trades: word(4),
                traded_qty: word(5),
                notional: word(6),
                resting_orders: word(7),
                resting_qty: word(8),
                unknown: word(9),
                hash: word(10),
            },
        })
    }
}

impl WorkloadRecord {
    fn encode(&self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        bytes[0] = self.kind.code();
        bytes[1] = self.side as u8;
        bytes[4..8].copy_from_slice(&self.security.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.order.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.price.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.qty.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<WorkloadRecord, RecordError> {
        let kind = RecordKind::ALL
            .into_iter()
            .find(|kind| kind.code() == bytes[0])
            .ok_or(RecordError::Kind(bytes[0]))?;
        let side = match bytes[1] {
            0 => WorkloadSide::Buy,
            1 => WorkloadSide::Sell,
            other => return Err(RecordError::Side(other)),
        };
        if bytes[2..4] != [0, 0] {
            return Err(RecordError::Padding);
        }
        Ok(WorkloadRecord {
            kind,
            side,
            security: u32::from_le_bytes(bytes[4..8].try_into().expect("four bytes")),
            order: u64::from_le_bytes(bytes[8..16].try_into().expect("eight bytes")),
            price: i32::from_le_bytes(bytes[16..20].try_into().expect("four bytes")),
            qty: u32::from_le_bytes(bytes[20..24].try_into().expect("four bytes")),
        })
    }

    /// Checks a record. `entered` has a bit for each order that may rest: a second order under the
    /// same id has no defined meaning.
    fn check(&self, securities: u32, order_id_max: u64, entered: &mut [u64]) -> Result<(), RecordError> {
        if self.security >= securities {
            return Err(RecordError::Security(self.security));
        }
        if self.order > order_id_max {
            return Err(RecordError::Order(self.order));
        }
        if !(0..=PRICE_MAX).contains(&self.price) {
            return Err(RecordError::Price(self.price));
        }
        if self.kind.enters() && self.qty == 0 {
            return Err(RecordError::Quantity);
        }
        if self.kind == RecordKind::New {
            let (word, bit) = (&mut entered[index_usize(self.order) / 64], 1 << (self.order % 64));
            if *word & bit != 0 {
                return Err(RecordError::Twice(self.order));
            }
            *word |= bit;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Workload {
        let record = |kind, order, price, qty| WorkloadRecord {
            kind,
            side: WorkloadSide::Sell,
            security: 1,
            order,
            price,
            qty,
        };
        Workload {
            securities: 2,
            seed: 7,
            order_id_max: 3,
            prefill: vec![record(RecordKind::New, 0, PRICE_MAX, 5)],
            timed: vec![
                record(RecordKind::Ioc, 1, 9, 4),
                record(RecordKind::Market, 2, 0, 4),
                record(RecordKind::Replace, 0, 12, 0),
                record(RecordKind::Cancel, 3, 0, 0),
            ],
            expected: FlowOutcome {
                trades: 1,
                traded_qty: 2,
                notional: 3,
                resting_orders: 4,
                resting_qty: 5,
                unknown: 6,
                hash: u64::MAX,
            },
        }
    }

    fn bytes(workload: &Workload) -> Vec<u8> {
        let mut bytes = workload.header().to_vec();
        workload.records().for_each(|record| bytes.extend(record.encode()));
        bytes
    }

    #[test]
    fn a_written_workload_reads_back_unchanged() {
        let file = bytes(&small());
        assert_eq!(file.len(), 96 + 5 * 24);
        assert_eq!(&file[96..100], [1, 1, 0, 0]);
        assert_eq!(Workload::decode(&file).unwrap(), small());
    }

    #[test]
    fn an_invalid_file_is_rejected_with_its_defect() {
        let check = |at: usize, value: &[u8], text: &str| {
            let mut file = bytes(&small());
            file[at..at + value.len()].copy_from_slice(value);
            let error = Workload::decode(&file).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        };
        check(0, b"EWL2", "EWL1");
        check(4, &0u32.to_le_bytes(), "0 securities");
        check(16, &3u64.to_le_bytes(), "216 bytes long where the header asks for 192");
        check(16, &u64::MAX.to_le_bytes(), "216 bytes long");
        check(24, &u64::MAX.to_le_bytes(), "order ids up to");
        check(96, &[6], "record 0: kind 6");
        check(96, &[0], "kind 0");
        check(97, &[2], "side 2");
        check(98, &[0, 1], "not zero");
        check(100, &[2], "security 2 is beyond");
        check(104, &[4], "order id 4 is above");
        check(112, &32_768i32.to_le_bytes(), "price 32768");
        check(112, &(-1i32).to_le_bytes(), "price -1");
        check(116, &[0], "without a quantity");
        check(96 + 24, &[1, 1, 0, 0, 1, 0, 0, 0, 0], "record 1: order id 0 is entered a second time");
        assert!(matches!(Workload::decode(b"EWL1"), Err(WorkloadError::Length { expected: 96, found: 4 })));
        assert!(matches!(Workload::decode(b""), Err(WorkloadError::Magic)));
    }
}
