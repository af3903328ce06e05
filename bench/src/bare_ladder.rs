//! The floor: a bare array ladder that matches and does nothing else. No accounts, no checks, no
//! events, no halts. The time of an engine beyond the floor pays for what the engine does beyond
//! matching.
//!
//! ```text
//! book ─ levels: one per tick of a window, {head, tail}        order ─ one slot of a slab:
//!      ─ bits: one per level, set while it has orders                  prev, next, id, quantity, price, book, side
//!      ─ best bid, best ask                                    place ─ order id → slot
//! ```
//!
//! A level holds buys or sells, never both: everything at or below the best bid is a buy. The
//! window doubles when a price falls outside; after the first few records it no longer does.

use pitlane_engine::index::{index_u32, index_usize};

use crate::convert::workload_u32;
use crate::workload::{
    FlowOutcome, Matcher, PRICE_MAX, RecordKind, TradeTally, Workload, WorkloadRecord, WorkloadSide,
};

const NONE: u32 = u32::MAX;
/// Levels of a new window; each 64 levels share one word of bits.
const WINDOW: usize = 256;

#[derive(Debug)]
pub struct BareLadder {
    books: Vec<LadderBook>,
    orders: Vec<LadderOrder>,
    /// First free slot; free slots are chained by `next`.
    free: u32,
    /// Slots by order id.
    slots_by_id: Vec<u32>,
    tally: TradeTally,
}

#[derive(Debug)]
struct LadderBook {
    levels: Vec<LadderLevel>,
    bits: Vec<u64>,
    /// Price of the first level.
    base: i32,
    /// Best bid; below `base` if there is none.
    bid: i32,
    /// Best ask; beyond the window if there is none.
    ask: i32,
}

#[derive(Clone, Copy, Debug)]
struct LadderLevel {
    head: u32,
    tail: u32,
}

#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct LadderOrder {
    prev: u32,
    next: u32,
    id: u32,
    qty: u32,
    book: u32,
    price: i32,
    side: WorkloadSide,
}

const _: () = assert!(size_of::<LadderOrder>() == 32, "two orders in a cache line");

impl BareLadder {
    pub fn new(workload: &Workload) -> BareLadder {
        let slots = workload.prefill.len() * 2;
        BareLadder {
            books: (0..workload.securities).map(|_| LadderBook::new()).collect(),
            orders: Vec::with_capacity(slots),
            free: NONE,
            slots_by_id: vec![NONE; index_usize(workload.order_id_max) + 1],
            tally: TradeTally::default(),
        }
    }

    fn enter(&mut self, order: u64, security: u32, side: WorkloadSide, price: i32, qty: u32) {
        let left = self.trade(order, security, side, price, qty);
        if left == 0 {
            return;
        }
        let slot = self.take_slot(LadderOrder {
            prev: NONE,
            next: NONE,
            id: workload_u32(order),
            qty: left,
            book: security,
            price,
            side,
        });
        self.slots_by_id[index_usize(order)] = slot;
        self.link(slot, security, side, price);
    }

    /// Trades with the other side up to the limit, and returns the remaining quantity.
    #[inline]
    fn trade(&mut self, order: u64, security: u32, side: WorkloadSide, limit: i32, qty: u32) -> u32 {
        match side {
            WorkloadSide::Buy => self.buy(order, security, limit, qty),
            WorkloadSide::Sell => self.sell(order, security, limit, qty),
        }
    }

    #[inline]
    fn buy(&mut self, order: u64, security: u32, limit: i32, mut qty: u32) -> u32 {
        while qty > 0 {
            let book = &mut self.books[security as usize];
            let price = book.ask;
            if price > limit || book.is_beyond(price) {
                break;
            }
            let at = (price - book.base) as usize;
            let (left, emptied) = self.sweep(security, at, price, order, qty);
            qty = left;
            if emptied {
                let book = &mut self.books[security as usize];
                book.clear(at);
                book.ask = book.next_above(at);
            }
        }
        qty
    }

    #[inline]
    fn sell(&mut self, order: u64, security: u32, limit: i32, mut qty: u32) -> u32 {
        while qty > 0 {
            let book = &mut self.books[security as usize];
            let price = book.bid;
            if price < limit || price < book.base {
                break;
            }
            let at = (price - book.base) as usize;
            let (left, emptied) = self.sweep(security, at, price, order, qty);
            qty = left;
            if emptied {
                let book = &mut self.books[security as usize];
                book.clear(at);
                book.bid = book.next_below(at);
            }
        }
        qty
    }

    /// Trades along one level; returns the remaining quantity, and whether the level is now empty.
    #[inline]
    fn sweep(&mut self, security: u32, at: usize, price: i32, taker: u64, mut qty: u32) -> (u32, bool) {
        let level = &mut self.books[security as usize].levels[at];
        let mut slot = level.head;
        while slot != NONE {
            let order = &mut self.orders[slot as usize];
            let traded = qty.min(order.qty);
            self.tally.trade(order.id as u64, taker, price as u64, traded as u64);
            qty -= traded;
            order.qty -= traded;
            if order.qty > 0 {
                order.prev = NONE;
                level.head = slot;
                return (0, false);
            }
            self.slots_by_id[order.id as usize] = NONE;
            let next = order.next;
            order.next = self.free;
            self.free = slot;
            slot = next;
            if qty == 0 {
                break;
            }
        }
        level.head = slot;
        if slot == NONE {
            level.tail = NONE;
            return (qty, true);
        }
        self.orders[slot as usize].prev = NONE;
        (0, false)
    }

    #[inline]
    fn link(&mut self, slot: u32, security: u32, side: WorkloadSide, price: i32) {
        let book = &mut self.books[security as usize];
        let at = book.slot_ref(price);
        let level = &mut book.levels[at];
        let tail = std::mem::replace(&mut level.tail, slot);
        if tail != NONE {
            self.orders[tail as usize].next = slot;
            self.orders[slot as usize].prev = tail;
            return;
        }
        level.head = slot;
        book.bits[at / 64] |= 1 << (at % 64);
        match side {
            WorkloadSide::Buy => book.bid = book.bid.max(price),
            WorkloadSide::Sell => book.ask = book.ask.min(price),
        }
    }

    #[inline]
    fn unlink(&mut self, order: LadderOrder) {
        let book = &mut self.books[order.book as usize];
        let at = (order.price - book.base) as usize;
        let level = &mut book.levels[at];
        if order.prev == NONE {
            level.head = order.next;
        } else {
            self.orders[order.prev as usize].next = order.next;
        }
        if order.next == NONE {
            level.tail = order.prev;
        } else {
            self.orders[order.next as usize].prev = order.prev;
        }
        if level.head != NONE {
            return;
        }
        book.clear(at);
        if order.price == book.bid && order.side == WorkloadSide::Buy {
            book.bid = book.next_below(at);
        }
        if order.price == book.ask && order.side == WorkloadSide::Sell {
            book.ask = book.next_above(at);
        }
    }

    fn cancel(&mut self, order: u64) {
        let slot = std::mem::replace(&mut self.slots_by_id[index_usize(order)], NONE);
        if slot == NONE {
            return self.tally.unknown();
        }
        self.unlink(self.orders[slot as usize]);
        self.orders[slot as usize].next = self.free;
        self.free = slot;
    }

    fn replace(&mut self, id: u64, price: i32) {
        let slot = self.slots_by_id[index_usize(id)];
        if slot == NONE {
            return self.tally.unknown();
        }
        let order = self.orders[slot as usize];
        self.unlink(order);
        let left = self.trade(id, order.book, order.side, price, order.qty);
        let slot_ref = &mut self.orders[slot as usize];
        if left == 0 {
            slot_ref.next = self.free;
            self.free = slot;
            self.slots_by_id[index_usize(id)] = NONE;
            return;
        }
        *slot_ref = LadderOrder { prev: NONE, next: NONE, qty: left, price, ..order };
        self.link(slot, order.book, order.side, price);
    }

    #[inline]
    fn take_slot(&mut self, order: LadderOrder) -> u32 {
        let slot = self.free;
        if slot == NONE {
            self.orders.push(order);
            return index_u32(self.orders.len() - 1);
        }
        let slot_ref = &mut self.orders[slot as usize];
        self.free = slot_ref.next;
        *slot_ref = order;
        slot
    }
}

impl LadderBook {
    fn new() -> LadderBook {
        LadderBook { levels: Vec::new(), bits: Vec::new(), base: 0, bid: -1, ask: 0 }
    }

    fn is_beyond(&self, price: i32) -> bool {
        price >= self.base + price_span(self.levels.len())
    }

    #[inline]
    fn clear(&mut self, at: usize) {
        self.bits[at / 64] &= !(1 << (at % 64));
    }

    /// Returns the price of the next non-empty level at or above index `at`; beyond the window if
    /// there is none.
    #[inline]
    fn next_above(&self, at: usize) -> i32 {
        let mut word = at / 64;
        let mut bits = self.bits[word] & (!0 << (at % 64));
        while bits == 0 {
            word += 1;
            if word == self.bits.len() {
                return self.base + price_span(self.levels.len());
            }
            bits = self.bits[word];
        }
        self.base + price_span(word * 64) + bits.trailing_zeros() as i32
    }

    /// Returns the price of the next non-empty level at or below index `at`; below the window if
    /// there is none.
    #[inline]
    fn next_below(&self, at: usize) -> i32 {
        let mut word = at / 64;
        let mut bits = self.bits[word] & (!0 >> (63 - at % 64));
        while bits == 0 {
            if word == 0 {
                return self.base - 1;
            }
            word -= 1;
            bits = self.bits[word];
        }
        self.base + price_span(word * 64) + 63 - bits.leading_zeros() as i32
    }

    /// Returns the index of a price in the window, which grows if necessary.
    #[inline]
    fn slot_ref(&mut self, price: i32) -> usize {
        let at = price.wrapping_sub(self.base) as u32 as usize;
        if at < self.levels.len() {
            return at;
        }
        self.widen(price);
        (price - self.base) as usize
    }

    #[cold]
    fn widen(&mut self, price: i32) {
        let (no_bid, no_ask) = (self.bid < self.base, self.is_beyond(self.ask));
        let (mut low, mut high) = (self.base, self.base + price_span(self.levels.len()));
        if low == high {
            (low, high) = (price - price_span(WINDOW) / 2, price + price_span(WINDOW) / 2);
        }
        while !(low..high).contains(&price) {
            let width = high - low;
            if price < low {
                low -= width;
            } else {
                high += width;
            }
        }
        // Whole words may lie outside the range of prices; that costs nothing.
        assert!(high - low <= 4 * PRICE_MAX, "the window has passed all prices");
        let front = (self.base - low) as usize * usize::from(!self.levels.is_empty());
        let mut levels = vec![LadderLevel { head: NONE, tail: NONE }; (high - low) as usize];
        levels[front..front + self.levels.len()].copy_from_slice(&self.levels);
        let mut bits = vec![0; levels.len() / 64];
        bits[front / 64..front / 64 + self.bits.len()].copy_from_slice(&self.bits);
        (self.levels, self.bits, self.base) = (levels, bits, low);
        if no_bid {
            self.bid = low - 1;
        }
        if no_ask {
            self.ask = high;
        }
    }
}

/// Returns the distance between the prices of the first level and of the one so many above it. The
/// window has at most `4 * PRICE_MAX` levels.
#[inline]
fn price_span(levels: usize) -> i32 {
    index_u32(levels).cast_signed()
}

impl Matcher for BareLadder {
    #[inline]
    fn apply(&mut self, record: &WorkloadRecord) {
        let &WorkloadRecord { kind, side, security, order, price, qty } = record;
        match kind {
            RecordKind::New => self.enter(order, security, side, price, qty),
            RecordKind::Ioc => {
                self.trade(order, security, side, price, qty);
            }
            RecordKind::Market => {
                let limit = if side == WorkloadSide::Buy { i32::MAX } else { i32::MIN };
                self.trade(order, security, side, limit, qty);
            }
            RecordKind::Cancel => self.cancel(order),
            RecordKind::Replace => self.replace(order, price),
        }
    }

    fn outcome(&self) -> FlowOutcome {
        let open = self.slots_by_id.iter().filter(|&&slot| slot != NONE);
        let (count, qty) =
            open.fold((0, 0), |(count, qty), &slot| (count + 1, qty + self.orders[slot as usize].qty as u64));
        self.tally.outcome(count, qty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naive::NaiveMatcher;
    use crate::scenario::Scenario;

    #[test]
    fn the_floor_and_the_naive_matcher_agree() {
        for name in Scenario::NAMES {
            let scenario = Scenario { ops: 100_000, open: 2_000, ..Scenario::named(name).unwrap() };
            let workload = scenario.generate();
            assert_eq!(workload.run(&mut NaiveMatcher::default()), workload.expected, "{name}");
            assert_eq!(workload.run(&mut BareLadder::new(&workload)), workload.expected, "{name}");
        }
    }
}
