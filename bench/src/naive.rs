//! The reference matcher: maps and queues, as slow as it is simple. Its outcome is right by
//! definition.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::workload::{FlowOutcome, Matcher, RecordKind, TradeTally, WorkloadRecord, WorkloadSide};

#[derive(Debug, Default)]
pub struct NaiveMatcher {
    books: HashMap<u32, NaiveBook>,
    /// Security, side and price of each open order.
    open: HashMap<u64, (u32, WorkloadSide, i32)>,
    /// Orders that were closed since the last call of `take_closed`.
    closed: Vec<u64>,
    tally: TradeTally,
}

#[derive(Debug, Default)]
struct NaiveBook {
    buys: BTreeMap<i32, VecDeque<Resting>>,
    sells: BTreeMap<i32, VecDeque<Resting>>,
}

#[derive(Debug)]
struct Resting {
    order: u64,
    qty: u32,
}

impl NaiveMatcher {
    pub fn open_orders(&self) -> usize {
        self.open.len()
    }

    /// Returns the security and the side of an open order.
    pub fn find(&self, order: u64) -> Option<(u32, WorkloadSide)> {
        self.open.get(&order).map(|&(security, side, _)| (security, side))
    }

    pub fn take_closed(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.closed)
    }

    /// Trades with the other side up to the limit, and returns the remaining quantity.
    fn trade(
        &mut self,
        security: u32,
        order: u64,
        side: WorkloadSide,
        limit: Option<i32>,
        mut qty: u32,
    ) -> u32 {
        let book = self.books.entry(security).or_default();
        while qty > 0 {
            let best = match side {
                WorkloadSide::Buy => book.sells.first_entry(),
                WorkloadSide::Sell => book.buys.last_entry(),
            };
            let Some(mut level) = best else { break };
            let price = *level.key();
            let reaches = match side {
                WorkloadSide::Buy => limit.is_none_or(|limit| limit >= price),
                WorkloadSide::Sell => limit.is_none_or(|limit| limit <= price),
            };
            if !reaches {
                break;
            }
            let queue = level.get_mut();
            let maker = queue.front_mut().expect("a level without orders is removed");
            let traded = qty.min(maker.qty);
            self.tally.trade(maker.order, order, price as u64, traded as u64);
            qty -= traded;
            maker.qty -= traded;
            if maker.qty == 0 {
                self.open.remove(&maker.order);
                self.closed.push(maker.order);
                queue.pop_front();
            }
            if queue.is_empty() {
                level.remove();
            }
        }
        qty
    }

    fn rest(&mut self, security: u32, order: u64, side: WorkloadSide, price: i32, qty: u32) {
        let levels = self.books.entry(security).or_default().side(side);
        levels.entry(price).or_default().push_back(Resting { order, qty });
        self.open.insert(order, (security, side, price));
    }

    /// Removes an open order, and returns its security, side and remaining quantity.
    fn remove(&mut self, order: u64) -> Option<(u32, WorkloadSide, u32)> {
        let (security, side, price) = self.open.remove(&order)?;
        self.closed.push(order);
        let levels = self.books.entry(security).or_default().side(side);
        let queue = levels.get_mut(&price).expect("an open order is on its level");
        let at =
            queue.iter().position(|resting| resting.order == order).expect("an open order is in its queue");
        let resting = queue.remove(at).expect("the position was found");
        if queue.is_empty() {
            levels.remove(&price);
        }
        Some((security, side, resting.qty))
    }

    fn enter(&mut self, security: u32, order: u64, side: WorkloadSide, price: i32, qty: u32) {
        let left = self.trade(security, order, side, Some(price), qty);
        if left > 0 {
            self.rest(security, order, side, price, left);
        }
    }
}

impl NaiveBook {
    fn side(&mut self, side: WorkloadSide) -> &mut BTreeMap<i32, VecDeque<Resting>> {
        match side {
            WorkloadSide::Buy => &mut self.buys,
            WorkloadSide::Sell => &mut self.sells,
        }
    }
}

impl Matcher for NaiveMatcher {
    fn apply(&mut self, record: &WorkloadRecord) {
        let &WorkloadRecord { kind, side, security, order, price, qty } = record;
        match kind {
            RecordKind::New => self.enter(security, order, side, price, qty),
            RecordKind::Ioc => {
                self.trade(security, order, side, Some(price), qty);
            }
            RecordKind::Market => {
                self.trade(security, order, side, None, qty);
            }
            RecordKind::Cancel => {
                if self.remove(order).is_none() {
                    self.tally.unknown();
                }
            }
            RecordKind::Replace => match self.remove(order) {
                Some((security, side, left)) => self.enter(security, order, side, price, left),
                None => self.tally.unknown(),
            },
        }
    }

    fn outcome(&self) -> FlowOutcome {
        let levels = self.books.values().flat_map(|book| book.buys.values().chain(book.sells.values()));
        let qty = levels.flatten().map(|resting| resting.qty as u64).sum();
        self.tally.outcome(self.open.len() as u64, qty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trades_are_by_price_then_time_at_the_resting_price() {
        let mut naive = NaiveMatcher::default();
        let mut apply = |kind, side, order, price, qty| {
            naive.apply(&WorkloadRecord { kind, side, security: 0, order, price, qty });
            naive.outcome()
        };
        apply(RecordKind::New, WorkloadSide::Sell, 1, 101, 10);
        apply(RecordKind::New, WorkloadSide::Sell, 2, 100, 10);
        apply(RecordKind::New, WorkloadSide::Sell, 3, 100, 10);
        // Trades with 2 at 100, then with 5 of 3 at 100.
        let after = apply(RecordKind::Ioc, WorkloadSide::Buy, 4, 100, 15);
        assert_eq!((after.trades, after.traded_qty, after.notional), (2, 15, 1_500));
        // 3 loses its priority, and its remaining 5 queue behind 1 at 101.
        apply(RecordKind::Replace, WorkloadSide::Sell, 3, 101, 0);
        let after = apply(RecordKind::Market, WorkloadSide::Buy, 5, 0, 11);
        assert_eq!((after.trades, after.resting_orders, after.resting_qty), (4, 1, 4));
        // A replace that crosses the book trades.
        apply(RecordKind::New, WorkloadSide::Buy, 6, 99, 3);
        let after = apply(RecordKind::Replace, WorkloadSide::Sell, 3, 98, 0);
        assert_eq!((after.trades, after.resting_orders, after.resting_qty), (5, 1, 1));
        apply(RecordKind::Cancel, WorkloadSide::Sell, 3, 0, 0);
        let after = apply(RecordKind::Cancel, WorkloadSide::Sell, 3, 0, 0);
        assert_eq!((after.resting_orders, after.unknown), (0, 1));
    }
}
