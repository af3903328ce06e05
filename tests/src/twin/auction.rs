//! The call auction: every candidate price is tried.

use pitlane_engine::id::SecurityId;
use pitlane_engine::terms::Side;

use super::Twin;

/// A participant: an order, or the quote of a side.
#[derive(Clone, Copy, Debug)]
struct Bidder {
    /// `None`: the quote.
    order: Option<usize>,
    /// `None`: at any price.
    limit: Option<i64>,
    qty: i64,
}

impl Twin {
    /// Trades the collected orders at one price.
    pub(super) fn uncross(&mut self, security: SecurityId) {
        if !self.is_simulated(security) {
            return;
        }
        let Some(price) = self.auction_price(security) else { return };
        let mut buys = self.bidders(security, Side::Buy, price);
        let mut sells = self.bidders(security, Side::Sell, price);
        let (mut b, mut s) = (0, 0);
        while b < buys.len() && s < sells.len() {
            let qty = buys[b].qty.min(sells[s].qty);
            self.auction_trade(security, buys[b].order, sells[s].order, qty, price);
            buys[b].qty -= qty;
            sells[s].qty -= qty;
            b += (buys[b].qty == 0) as usize;
            s += (sells[s].qty == 0) as usize;
        }
    }

    fn auction_trade(
        &mut self,
        security: SecurityId,
        buy: Option<usize>,
        sell: Option<usize>,
        qty: i64,
        price: i64,
    ) {
        let market = self.markets.get_mut(&security).expect("a known security");
        if buy.is_none() {
            market.consume(Side::Buy, qty);
        }
        if sell.is_none() {
            market.consume(Side::Sell, qty);
        }
        match (buy, sell) {
            (Some(buy), sell) => self.execute(buy, sell, qty, price),
            (None, Some(sell)) => self.execute(sell, None, qty, price),
            (None, None) => {}
        }
    }

    /// Returns the price with the largest volume, then the smallest surplus, then nearest to the
    /// last price, then the lowest.
    fn auction_price(&self, security: SecurityId) -> Option<i64> {
        let last = self.markets[&security].last;
        let total = |list: Vec<Bidder>| list.iter().map(|bidder| bidder.qty as i128).sum::<i128>();
        let rank = |&price: &i64| {
            let buys = total(self.bidders(security, Side::Buy, price));
            let sells = total(self.bidders(security, Side::Sell, price));
            let distance = last.map_or(0, |last| (price as i128 - last as i128).abs());
            (-buys.min(sells), (buys - sells).abs(), distance, price)
        };
        let best = self.candidates(security).into_iter().min_by_key(rank)?;
        (rank(&best).0 != 0).then_some(best)
    }

    fn candidates(&self, security: SecurityId) -> Vec<i64> {
        let limits = Side::BOTH.into_iter().flat_map(|side| self.book_side(security, side));
        let mut prices: Vec<i64> = limits.map(|at| self.orders[at].terms.limit.raw()).collect();
        prices.extend(self.markets[&security].last);
        for side in Side::BOTH {
            prices.extend(self.markets[&security].unconsumed(side).map(|(price, _)| price));
        }
        prices
    }

    /// Returns who trades at a price: market orders, then better limits, then by arrival; the quote
    /// after the clients.
    fn bidders(&self, security: SecurityId, side: Side, price: i64) -> Vec<Bidder> {
        let of =
            |at: usize, limit: Option<i64>| Bidder { order: Some(at), limit, qty: self.orders[at].leaves() };
        let line = self.line(security).into_iter().filter(|&at| self.orders[at].terms.side == side);
        let mut list: Vec<Bidder> = line.map(|at| of(at, None)).collect();
        list.extend(self.book_side(security, side).into_iter().map(|at| of(at, self.orders[at].limit())));
        if let Some((price, qty)) = self.markets[&security].unconsumed(side) {
            list.push(Bidder { order: None, limit: Some(price), qty });
        }
        list.retain(|bidder| match (bidder.limit, side) {
            (None, _) => true,
            (Some(limit), Side::Buy) => limit >= price,
            (Some(limit), Side::Sell) => limit <= price,
        });
        // Stable: equal limits keep their order.
        list.sort_by_key(|bidder| match (bidder.limit, side) {
            (None, _) => (0, 0),
            (Some(limit), Side::Buy) => (1, -limit),
            (Some(limit), Side::Sell) => (1, limit),
        });
        list
    }
}
