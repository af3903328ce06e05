//! The simulated venue: price, then time, found by looking at every order.

use pitlane_engine::command::{Quote, Trade, TradingSession};
use pitlane_engine::event::ExecType;
use pitlane_engine::id::SecurityId;
use pitlane_engine::number::Price;
use pitlane_engine::reason::Reason;
use pitlane_engine::settings::{FillModel, SelfTrade, TriggerBy, VenueSettings};
use pitlane_engine::terms::{OrderKind, Side, Terms, Tif};

use super::Twin;
use super::market::TwinQueue;
use super::order::{OrderBase, OrderPlace};

/// What an aggressive order meets next.
#[derive(Clone, Copy, Debug)]
enum NextMatch {
    /// A resting order, at this price.
    Order(usize, i64),
    /// A portion of the quote: price and size.
    Quote(i64, i64),
}

impl NextMatch {
    fn price(self) -> i64 {
        match self {
            NextMatch::Order(_, price) | NextMatch::Quote(price, _) => price,
        }
    }
}

// Arriving orders.
impl Twin {
    pub(super) fn venue_settings(&self, security: SecurityId) -> &VenueSettings {
        self.settings.venues.get(&self.exchange_of(security)).unwrap_or(&self.settings.venue)
    }

    /// Lets the order arrive at the venue as the newest.
    pub(super) fn arrive(&mut self, order: usize) {
        let terms = self.orders[order].terms;
        self.orders[order].arrival = self.next_arrival();
        let session = self.session_of(terms.security);
        if terms.tif == Tif::Atc && session != TradingSession::ClosingAuction {
            self.orders[order].place = OrderPlace::Parked;
            return;
        }
        if !self.is_trading(terms.security) {
            if terms.tif.is_immediate() {
                return self.end(order, OrderBase::Canceled, ExecType::Canceled, Reason::NoLiquidity);
            }
            return self.rest(order);
        }
        if terms.tif == Tif::Fok && !self.can_fill_whole(order) {
            return self.end(order, OrderBase::Canceled, ExecType::Canceled, Reason::Fok);
        }
        let stopped = self.aggress(order);
        if self.orders[order].is_over() {
            return;
        }
        if let Some(reason) = stopped {
            return self.end(order, OrderBase::Canceled, ExecType::Canceled, reason);
        }
        if terms.tif.is_immediate() {
            return self.end(order, OrderBase::Canceled, ExecType::Canceled, Reason::Ioc);
        }
        self.rest(order);
    }

    fn rest(&mut self, order: usize) {
        let terms = self.orders[order].terms;
        if let Some(limit) = self.orders[order].limit()
            && self.at_price(terms.security, terms.side, limit).is_empty()
        {
            let market = self.markets.get_mut(&terms.security).expect("a known security");
            market.begin_queue(terms.side, limit);
        }
        self.orders[order].place = place_of(&terms);
    }

    /// Trades until nothing matches any more. Returns the reason if something prevents the rest
    /// from trading.
    fn aggress(&mut self, order: usize) -> Option<Reason> {
        let band = self.band(self.orders[order].terms.security);
        while self.orders[order].leaves() > 0 {
            let next = self.next_for(order)?;
            if band.is_some_and(|(low, high)| next.price() < low || next.price() > high) {
                return Some(Reason::PriceBand);
            }
            match next {
                NextMatch::Order(maker, _) if self.is_self_trade(order, maker) => {
                    return Some(Reason::SelfTrade);
                }
                NextMatch::Order(maker, price) => {
                    let qty = self.orders[order].leaves().min(self.orders[maker].leaves());
                    self.execute(order, Some(maker), qty, price);
                }
                NextMatch::Quote(price, size) => {
                    let qty = self.orders[order].leaves().min(size);
                    let terms = self.orders[order].terms;
                    let market = self.markets.get_mut(&terms.security).expect("a known security");
                    market.consume(terms.side.opposite(), qty);
                    self.execute(order, None, qty, price);
                }
            }
        }
        None
    }

    /// Returns the lowest and highest price at which an order that arrives now may trade.
    fn band(&self, security: SecurityId) -> Option<(i64, i64)> {
        let bp = self.venue_settings(security).band_bp;
        let last = Price::from_raw(self.markets[&security].last?);
        let width = last.abs().basis_points(bp as i64)?.raw();
        (bp > 0).then_some((last.raw() - width, last.raw() + width))
    }

    /// Returns the best that an order can meet now, within its limit.
    fn next_for(&self, order: usize) -> Option<NextMatch> {
        let o = &self.orders[order];
        let security = o.terms.security;
        let other = o.terms.side.opposite();
        if let Some(limit) = o.limit() {
            let waiting = self.line(security).into_iter().find(|&at| self.orders[at].terms.side == other);
            if let Some(waiting) = waiting {
                return Some(NextMatch::Order(waiting, limit));
            }
        }
        let client =
            self.best(security, other).map(|at| NextMatch::Order(at, self.orders[at].terms.limit.raw()));
        let quote = self.portion(security, other).map(|(price, size)| NextMatch::Quote(price, size));
        let next = match (client, quote) {
            (Some(client), Some(quote)) => {
                let client_better = match o.terms.side {
                    Side::Buy => client.price() < quote.price(),
                    Side::Sell => client.price() > quote.price(),
                };
                if client_better { client } else { quote }
            }
            (client, quote) => client.or(quote)?,
        };
        self.within(order, next.price()).then_some(next)
    }

    fn within(&self, order: usize, price: i64) -> bool {
        let o = &self.orders[order];
        match (o.limit(), o.terms.side) {
            (None, _) => true,
            (Some(limit), Side::Buy) => price <= limit,
            (Some(limit), Side::Sell) => price >= limit,
        }
    }

    fn is_self_trade(&self, order: usize, maker: usize) -> bool {
        let (a, b) = (&self.orders[order].terms, &self.orders[maker].terms);
        self.venue_settings(a.security).self_trade == SelfTrade::CancelNewest && a.account == b.account
    }

    /// Returns whether a fill-or-kill order would be filled completely, tried on a copy of the
    /// state.
    fn can_fill_whole(&self, order: usize) -> bool {
        let mut trial = Twin {
            reference: self.reference.clone(),
            settings: self.settings.clone(),
            orders: self.orders.clone(),
            markets: self.markets.clone(),
            transactions: Vec::new(),
            sessions: self.sessions.clone(),
            ..Twin::new(self.reference.clone(), self.settings.clone())
        };
        let stopped = trial.aggress(order);
        stopped.is_none() && trial.orders[order].leaves() == 0
    }

    /// Performs one execution: the order, and the resting order that it met, if it was not the
    /// quote.
    pub(super) fn execute(&mut self, order: usize, maker: Option<usize>, qty: i64, price: i64) {
        let security = self.orders[order].terms.security;
        let market = self.markets.get_mut(&security).expect("a known security");
        assert_eq!(qty, market.whole_lots(qty), "a fill is whole lots");
        market.last = Some(price);
        self.fill(order, qty, price);
        if let Some(maker) = maker {
            self.fill(maker, qty, price);
        }
    }
}

// Waiting orders.
impl Twin {
    /// Returns the orders of one place, oldest first.
    pub(super) fn waiting(&self, security: SecurityId, place: OrderPlace) -> Vec<usize> {
        let here = |&at: &usize| {
            let o = &self.orders[at];
            o.terms.security == security && o.place == place && !o.is_over()
        };
        let mut list: Vec<usize> = (0..self.orders.len()).filter(here).collect();
        list.sort_by_key(|&at| self.orders[at].arrival);
        list
    }

    /// Returns the waiting market orders, oldest first.
    pub(super) fn line(&self, security: SecurityId) -> Vec<usize> {
        self.waiting(security, OrderPlace::Line)
    }

    /// Returns one side of the book, best first.
    pub(super) fn book_side(&self, security: SecurityId, side: Side) -> Vec<usize> {
        let mut list = self.waiting(security, OrderPlace::Book);
        list.retain(|&at| self.orders[at].terms.side == side);
        list.sort_by_key(|&at| match side {
            Side::Buy => -self.orders[at].terms.limit.raw(),
            Side::Sell => self.orders[at].terms.limit.raw(),
        });
        list
    }

    fn best(&self, security: SecurityId, side: Side) -> Option<usize> {
        self.book_side(security, side).first().copied()
    }

    pub(super) fn at_price(&self, security: SecurityId, side: Side, price: i64) -> Vec<usize> {
        let mut list = self.book_side(security, side);
        list.retain(|&at| self.orders[at].terms.limit.raw() == price);
        list
    }

    /// Handles changed terms of a waiting order.
    pub(super) fn moved(&mut self, order: usize, before: &Terms) {
        let terms = self.orders[order].terms;
        match self.orders[order].place {
            OrderPlace::Outside | OrderPlace::Nowhere => {}
            OrderPlace::Stop => self.place_stop(order),
            OrderPlace::Book | OrderPlace::Line | OrderPlace::Parked => {
                // Dates, and stop prices that were reached, do not concern the venue.
                let same = (terms.limit, terms.tif) == (before.limit, before.tif);
                let only_less = same && terms.qty < before.qty;
                if !only_less {
                    self.orders[order].place = OrderPlace::Nowhere;
                    self.arrive(order);
                }
            }
        }
    }

    pub(super) fn unpark(&mut self, security: SecurityId) {
        for order in self.waiting(security, OrderPlace::Parked) {
            self.orders[order].arrival = self.next_arrival();
            self.rest(order);
        }
    }

    /// Lets waiting market orders trade as if they arrived now.
    pub(super) fn serve_line(&mut self, security: SecurityId) {
        if !self.is_trading(security) {
            return;
        }
        for order in self.line(security) {
            if let Some(reason) = self.aggress(order) {
                self.end(order, OrderBase::Canceled, ExecType::Canceled, reason);
            }
        }
    }
}

fn place_of(terms: &Terms) -> OrderPlace {
    if terms.kind.has_limit() { OrderPlace::Book } else { OrderPlace::Line }
}

// Stops.
impl Twin {
    pub(super) fn place_stop(&mut self, order: usize) {
        self.orders[order].place = OrderPlace::Stop;
        self.orders[order].arrival = self.next_arrival();
    }

    /// Triggers every stop that the market has reached, one at a time, each completely.
    pub(super) fn settle_stops(&mut self, security: SecurityId) {
        while let Some(order) = self.reached_stop(security) {
            self.orders[order].triggered = true;
            self.orders[order].acknowledged = false;
            self.orders[order].place = OrderPlace::Nowhere;
            self.report(order, ExecType::Triggered, Reason::Triggered);
            if self.is_simulated(security) {
                self.arrive(order);
            } else {
                self.send_outside(order);
            }
        }
    }

    /// Returns the next stop to trigger: buys before sells, nearest price first, then the oldest.
    fn reached_stop(&self, security: SecurityId) -> Option<usize> {
        if !self.is_trading(security) || !self.takes_orders(security) {
            return None;
        }
        let market = &self.markets[&security];
        let stops = self.waiting(security, OrderPlace::Stop);
        Side::BOTH.into_iter().find_map(|side| {
            let price = match self.settings.trigger {
                TriggerBy::Last => market.last,
                TriggerBy::Quote => market.quoted(side.opposite()),
            }?;
            let reached = |&at: &usize| {
                let o = &self.orders[at];
                let stop = o.terms.stop.raw();
                o.terms.side == side && if side == Side::Buy { price >= stop } else { price <= stop }
            };
            let nearest = |&at: &usize| match side {
                Side::Buy => self.orders[at].terms.stop.raw(),
                Side::Sell => -self.orders[at].terms.stop.raw(),
            };
            stops.iter().copied().filter(reached).min_by_key(nearest)
        })
    }
}

// Prices from the feed.
impl Twin {
    pub(super) fn feed(&mut self, security: SecurityId, quote: Option<Quote>, trade: Option<Trade>) {
        if self.reference.security(security).is_none() {
            return self.done(Reason::UnknownSecurity);
        }
        // Both at once: the quote is what the trade left behind.
        if let Some(trade) = trade {
            self.trade(security, trade);
        }
        if let Some(quote) = quote {
            self.quote(security, quote);
        }
        self.settle_stops(security);
    }

    fn quote(&mut self, security: SecurityId, quote: Quote) {
        let market = self.markets.get_mut(&security).expect("a known security");
        let shown = Side::BOTH.map(|side| market.shown(side));
        let before = std::mem::replace(&mut market.quote, quote);
        if (before.bid, before.bid_size) != (quote.bid, quote.bid_size) {
            market.consumed_bid = 0;
            market.shown_sizes[0].push(market.whole_lots(quote.bid_size.raw()));
        }
        if (before.ask, before.ask_size) != (quote.ask, quote.ask_size) {
            market.consumed_ask = 0;
            market.shown_sizes[1].push(market.whole_lots(quote.ask_size.raw()));
        }
        for side in Side::BOTH {
            self.requeue(security, side, shown[side as usize].map(|(price, _)| price));
        }
        if !self.is_trading(security) || !self.is_simulated(security) {
            return;
        }
        for side in Side::BOTH {
            self.quote_crosses(security, side);
        }
        // Waiting market orders come last.
        self.serve_line(security);
    }

    /// Updates the queue ahead of our orders on one side, which has shown another price before.
    fn requeue(&mut self, security: SecurityId, side: Side, old_price: Option<i64>) {
        let model = self.venue_settings(security).fill_model;
        let market = self.markets.get_mut(&security).expect("a known security");
        let lot = market.lot;
        if !market.levels[side as usize].is_empty() {
            return;
        }
        let Some((price, size)) = market.shown(side) else {
            *market.queue(side) = None;
            return;
        };
        if old_price != Some(price) {
            *market.queue(side) = None;
            let clients = !self.at_price(security, side, price).is_empty();
            let market = self.markets.get_mut(&security).expect("a known security");
            if clients {
                *market.queue(side) = Some(TwinQueue { price, ahead: size, shown: size });
            }
            return;
        }
        if let Some(queue) = market.queue(side) {
            queue.resize(size, lot, model);
        }
    }

    /// Fills resting orders that the quote of the other side has crossed.
    fn quote_crosses(&mut self, security: SecurityId, side: Side) {
        let model = self.venue_settings(security).fill_model;
        while let Some((price, left)) = self.markets[&security].unconsumed(side.opposite()) {
            let Some(order) = self.best(security, side) else { return };
            let limit = self.orders[order].terms.limit.raw();
            let through = if side == Side::Buy { price < limit } else { price > limit };
            let touched = model == FillModel::Touch && price == limit;
            if !through && !touched {
                return;
            }
            let qty = left.min(self.orders[order].leaves());
            self.markets.get_mut(&security).expect("a known security").consume(side.opposite(), qty);
            self.execute(order, None, qty, limit);
        }
    }

    fn trade(&mut self, security: SecurityId, trade: Trade) {
        self.markets.get_mut(&security).expect("a known security").last = Some(trade.price.raw());
        if !self.is_trading(security) || !self.is_simulated(security) {
            return;
        }
        for side in Side::BOTH {
            self.trade_fills(security, side, &trade);
        }
    }

    fn trade_fills(&mut self, security: SecurityId, side: Side, trade: &Trade) {
        let price = trade.price.raw();
        let lots = self.markets[&security].whole_lots(trade.size.raw());
        let mut left = if trade.size.is_zero() { i64::MAX } else { lots };
        for order in self.book_side(security, side) {
            let limit = self.orders[order].terms.limit.raw();
            let through = if side == Side::Buy { limit > price } else { limit < price };
            if through && left > 0 {
                let qty = left.min(self.orders[order].leaves());
                left -= qty;
                self.execute(order, None, qty, limit);
            }
        }
        let model = self.venue_settings(security).fill_model;
        if model == FillModel::Through {
            return;
        }
        let market = self.markets.get_mut(&security).expect("a known security");
        if model.has_queue() {
            let behind = market.shown(side).is_some_and(|(quote, _)| match side {
                Side::Buy => price < quote,
                Side::Sell => price > quote,
            });
            if behind {
                return;
            }
            if let Some(queue) = market.queue_at(side, price) {
                // With an unknown size, the change of the queue is unknown; conservatively, the
                // trade did not pass through it.
                if trade.size.is_zero() && queue.ahead > 0 {
                    return;
                }
                let taken = left.min(queue.ahead);
                queue.ahead -= taken;
                queue.shown = (queue.shown - taken).max(0);
                left -= taken;
            }
        }
        for order in self.at_price(security, side, price) {
            let qty = left.min(self.orders[order].leaves());
            if qty > 0 {
                left -= qty;
                self.execute(order, None, qty, price);
            }
        }
    }

    /// Returns the kind without the stop for an order that has triggered.
    pub fn effective_kind(&self, order: usize) -> OrderKind {
        match (self.orders[order].terms.kind, self.orders[order].triggered) {
            (OrderKind::Stop, true) => OrderKind::Market,
            (OrderKind::StopLimit, true) => OrderKind::Limit,
            (kind, _) => kind,
        }
    }
}
