//! The types of the arena's C interface, laid out as its header `api/matching_engine_api.h` says.

use std::ffi::c_void;

/// A new order.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NewOrder {
    pub id: u64,
    pub seq: u64,
    pub ticks: i64,
    pub qty: u32,
    /// 0 buys, 1 sells.
    pub side: u8,
    /// 1 for immediate-or-cancel.
    pub ioc: u8,
    pub reserved: [u8; 2],
}

/// A cancel.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Cancel {
    pub id: u64,
    pub seq: u64,
}

/// A modify: the order is cancelled and enters again, behind the others at its price.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Modify {
    pub id: u64,
    pub seq: u64,
    pub ticks: i64,
    pub qty: u32,
    pub side: u8,
    pub reserved: [u8; 3],
}

const _: () = assert!(size_of::<NewOrder>() == 32);
const _: () = assert!(size_of::<Cancel>() == 16);
const _: () = assert!(size_of::<Modify>() == 32);
const _: () = assert!(size_of::<Report>() == 64);

/// Kinds of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ReportKind {
    OrderAck = 0,
    Trade = 1,
    CancelAck = 2,
    ModifyAck = 3,
    CancelReject = 4,
    ModifyReject = 5,
}

/// A report: a cache line of eight words, made of four pairs. The transport of the arena copies it
/// in halves or quarters; a copy that spans two narrower stores would wait until both have left the
/// store buffer, so each pair is one store.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub struct Report([Pair; 4]);

#[cfg(target_arch = "x86_64")]
type Pair = std::arch::x86_64::__m128i;
#[cfg(not(target_arch = "x86_64"))]
type Pair = [u64; 2];

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn pair(first: u64, second: u64) -> Pair {
    // SAFETY: every processor of this architecture has SSE2.
    unsafe { std::arch::x86_64::_mm_set_epi64x(second.cast_signed(), first.cast_signed()) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn pair(first: u64, second: u64) -> Pair {
    [first, second]
}

#[cfg(target_arch = "x86_64")]
fn halves(pair: Pair) -> [u64; 2] {
    // SAFETY: both have 16 bytes, and every value of them is valid.
    unsafe { std::mem::transmute(pair) }
}

#[cfg(not(target_arch = "x86_64"))]
fn halves(pair: Pair) -> [u64; 2] {
    pair
}

impl Report {
    /// Returns a report about one order.
    #[inline(always)]
    pub fn about(kind: ReportKind, seq: u64, id: u64, side: u8, ticks: i64, qty: u32) -> Report {
        let head = kind as u64 | (side as u64) << 8;
        Report([pair(head, seq), pair(id, ticks.cast_unsigned()), pair(qty as u64, 0), pair(0, 0)])
    }

    /// Returns a report about a trade, at the price of the maker.
    #[inline(always)]
    pub fn trade(seq: u64, ticks: i64, qty: u32, maker: u64, taker: u64) -> Report {
        let head = ReportKind::Trade as u64;
        Report([pair(head, seq), pair(0, ticks.cast_unsigned()), pair(qty as u64, maker), pair(taker, 0)])
    }
}

impl Report {
    /// Returns its eight words.
    pub fn words(&self) -> [u64; 8] {
        let mut words = [0; 8];
        for (place, pair) in words.as_chunks_mut::<2>().0.iter_mut().zip(self.0) {
            *place = halves(pair);
        }
        words
    }
}

/// The queue between the matcher and the thread that reads its reports.
#[repr(C)]
#[derive(Debug)]
pub struct Transport {
    pub create: extern "C" fn(u32) -> *mut c_void,
    /// Returns 0 if the queue is full.
    pub push: extern "C" fn(*mut c_void, *const Report) -> i32,
    pub drain: extern "C" fn(*mut c_void, *mut Report, u32) -> u32,
    pub flush: extern "C" fn(*mut c_void),
    pub destroy: extern "C" fn(*mut c_void),
}
