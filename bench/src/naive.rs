//! The reference matcher: maps and queues, as slow as it is simple. Its outcome is right by
//! definition.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::workload::{Kind, Matcher, Outcome, Record, Side, Tally};

#[derive(Debug, Default)]
pub struct Naive {
    books: HashMap<u32, Book>,
    /// Security, side and price of each open order.
    open: HashMap<u64, (u32, Side, i32)>,
    /// Orders that were closed since the last call of `take_closed`.
    closed: Vec<u64>,
    tally: Tally,
}

#[derive(Debug, Default)]
struct Book {
    buys: BTreeMap<i32, VecDeque<Resting>>,
    sells: BTreeMap<i32, VecDeque<Resting>>,
}

#[derive(Debug)]
struct Resting {
    order: u64,
    qty: u32,
}

impl Naive {
    pub fn open_orders(&self) -> usize {
        self.open.len()
    }

    /// Returns the security and the side of an open order.
    pub fn find(&self, order: u64) -> Option<(u32, Side)> {
        self.open.get(&order).map(|&(security, side, _)| (security, side))
    }

    pub fn take_closed(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.closed)
    }

    /// Trades with the other side up to the limit, and returns the remaining quantity.
    fn trade(&mut self, security: u32, order: u64, side: Side, limit: Option<i32>, mut qty: u32) -> u32 {
        let book = self.books.entry(security).or_default();
        while qty > 0 {
            let best = match side {
                Side::Buy => book.sells.first_entry(),
                Side::Sell => book.buys.last_entry(),
            };
            let Some(mut level) = best else { break };
            let price = *level.key();
            let reaches = match side {
                Side::Buy => limit.is_none_or(|limit| limit >= price),
                Side::Sell => limit.is_none_or(|limit| limit <= price),
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

    fn rest(&mut self, security: u32, order: u64, side: Side, price: i32, qty: u32) {
        let levels = self.books.entry(security).or_default().side(side);
        levels.entry(price).or_default().push_back(Resting { order, qty });
        self.open.insert(order, (security, side, price));
    }

    /// Removes an open order, and returns its security, side and remaining quantity.
    fn remove(&mut self, order: u64) -> Option<(u32, Side, u32)> {
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

    fn enter(&mut self, security: u32, order: u64, side: Side, price: i32, qty: u32) {
        let left = self.trade(security, order, side, Some(price), qty);
        if left > 0 {
            self.rest(security, order, side, price, left);
        }
    }
}

impl Book {
    fn side(&mut self, side: Side) -> &mut BTreeMap<i32, VecDeque<Resting>> {
        match side {
            Side::Buy => &mut self.buys,
            Side::Sell => &mut self.sells,
        }
    }
}

impl Matcher for Naive {
    fn apply(&mut self, record: &Record) {
        let &Record { kind, side, security, order, price, qty } = record;
        match kind {
            Kind::New => self.enter(security, order, side, price, qty),
            Kind::Ioc => {
                self.trade(security, order, side, Some(price), qty);
            }
            Kind::Market => {
                self.trade(security, order, side, None, qty);
            }
            Kind::Cancel => {
                if self.remove(order).is_none() {
                    self.tally.unknown();
                }
            }
            Kind::Replace => match self.remove(order) {
                Some((security, side, left)) => self.enter(security, order, side, price, left),
                None => self.tally.unknown(),
            },
        }
    }

    fn outcome(&self) -> Outcome {
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
        let mut naive = Naive::default();
        let mut say = |kind, side, order, price, qty| {
            naive.apply(&Record { kind, side, security: 0, order, price, qty });
            naive.outcome()
        };
        say(Kind::New, Side::Sell, 1, 101, 10);
        say(Kind::New, Side::Sell, 2, 100, 10);
        say(Kind::New, Side::Sell, 3, 100, 10);
        // Trades with 2 at 100, then with 5 of 3 at 100.
        let after = say(Kind::Ioc, Side::Buy, 4, 100, 15);
        assert_eq!((after.trades, after.traded_qty, after.notional), (2, 15, 1_500));
        // 3 loses its priority, and its remaining 5 queue behind 1 at 101.
        say(Kind::Replace, Side::Sell, 3, 101, 0);
        let after = say(Kind::Market, Side::Buy, 5, 0, 11);
        assert_eq!((after.trades, after.resting_orders, after.resting_qty), (4, 1, 4));
        // A replace that crosses the book trades.
        say(Kind::New, Side::Buy, 6, 99, 3);
        let after = say(Kind::Replace, Side::Sell, 3, 98, 0);
        assert_eq!((after.trades, after.resting_orders, after.resting_qty), (5, 1, 1));
        say(Kind::Cancel, Side::Sell, 3, 0, 0);
        let after = say(Kind::Cancel, Side::Sell, 3, 0, 0);
        assert_eq!((after.resting_orders, after.unknown), (0, 1));
    }
}
