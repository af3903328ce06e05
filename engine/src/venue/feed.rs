//! Effect of the feed on the clients' orders: quotes trade through them, trades fill them, and
//! there is a queue ahead of them.
//!
//! Rules: docs/engine-rules.md#fills-by-the-feed.

use crate::command::{Quote, Trade};
use crate::number::{Price, Qty};
use crate::settings::FillModel;
use crate::terms::Side;

use super::book::{BookMode, FeedQueue};
use super::matching::ticks_up;
use super::{BookWork, EFFORT_REPORTED, Venue};

impl Venue {
    /// Applies a quote, and starts its fills.
    pub(super) fn show(&mut self, book: u32, quote: &Quote) {
        let market = &mut self.markets[book as usize];
        let old = std::mem::replace(&mut market.quote, *quote);
        market.at = quote.at;
        let tick = self.books[book as usize].tick().raw();
        if (old.bid, old.bid_size) != (quote.bid, quote.bid_size) {
            let ticks = quote.bid.raw().div_euclid(tick);
            self.show_side(book, Side::Buy, ticks, self.whole_lots(book, quote.bid_size));
        }
        if (old.ask, old.ask_size) != (quote.ask, quote.ask_size) {
            let ticks = ticks_up(quote.ask.raw(), tick);
            self.show_side(book, Side::Sell, ticks, self.whole_lots(book, quote.ask_size));
        }
        let quoted = self.details[book as usize].is_quoted();
        let front = &mut self.books[book as usize];
        front.mode.set(BookMode::QUOTED, quoted);
        if !front.mode.has(BookMode::COLLECTING) {
            self.set_work(book, BookWork::Through { side: Side::Buy });
        }
    }

    /// Changes one side of the quote: the consumed size is available again, and the queue is
    /// adjusted.
    fn show_side(&mut self, book: u32, side: Side, ticks: i64, size: Qty) {
        let (front, detail) = (&self.books[book as usize], &mut self.details[book as usize]);
        // A price that does not fit, once it is on the grid, shows nothing.
        let priced = ticks.checked_mul(front.tick().raw()).is_some();
        let shown = &mut detail.shown[side as usize];
        match priced {
            true => shown.show(ticks, size),
            false => shown.show(0, Qty::ZERO),
        }
        if !detail.levels[side as usize].is_empty() {
            return;
        }
        let queue = &mut detail.queues[side as usize];
        match queue {
            Some(queue) if shown.size.is_positive() && queue.ticks == shown.ticks => {
                queue.resize(shown.size, &detail.spec);
            }
            _ => {
                let rests = shown.size.is_positive()
                    && front.sides[side as usize].front(&self.nodes, shown.ticks).is_some();
                *queue = rests.then(|| FeedQueue::new(shown.ticks, shown.size));
            }
        }
    }

    /// Adds the queue ahead of a client's order that comes to rest: the first one at a price has
    /// the feed's orders ahead, at the quote less what clients took of it. Without levels only the
    /// size at the quote is known.
    pub(super) fn add_queue_ahead(&mut self, book: u32, side: Side, ticks: i64) {
        let (front, detail) = (&self.books[book as usize], &mut self.details[book as usize]);
        let (ladder, shown) = (&front.sides[side as usize], &detail.shown[side as usize]);
        if ladder.front(&self.nodes, ticks).is_some() {
            return;
        }
        let first = (shown.size.is_positive() && shown.ticks == ticks).then(|| shown.first());
        let levels = &mut detail.levels[side as usize];
        if levels.is_empty() {
            if let Some(first) = first {
                detail.queues[side as usize] = Some(FeedQueue::new(ticks, first));
            }
        } else if let Some(level) = levels.at_mut(ladder, ticks) {
            level.ahead = level.shown.min(first.unwrap_or(Qty::MAX));
        }
    }

    /// Does one part of [`BookWork::Through`]: orders that the opposite quote has traded through
    /// fill at their limit, out of the shown size.
    pub(super) fn work_through(&mut self, book: u32, side: Side) -> u32 {
        let (front, detail) = (&mut self.books[book as usize], &mut self.details[book as usize]);
        let ladder = &front.sides[side as usize];
        let shown = &mut detail.shown[side.opposite() as usize];
        let reach = ladder.rank(shown.ticks);
        let touch = detail.spec.settings.fill_model == FillModel::Touch;
        let reached = ladder.best_rank() < reach || touch && ladder.best_rank() == reach;
        let maker = ladder.best_front(&self.nodes).filter(|_| reached && shown.first().is_positive());
        if let Some(maker) = maker {
            let qty = shown.first().min(self.nodes[maker].qty);
            let price = front.price(self.nodes[maker].ticks);
            shown.take(qty, shown.first());
            front.fill(&mut self.nodes, &mut self.outcomes, maker, qty, price);
            self.print_trade(book, price, qty, Some(side.opposite()));
            return EFFORT_REPORTED;
        }
        match side {
            Side::Buy => self.set_work(book, BookWork::Through { side: Side::Sell }),
            Side::Sell => self.start_market_queue(book),
        }
        1
    }

    /// Applies a trade, and starts its fills.
    pub(super) fn print(&mut self, book: u32, trade: &Trade) {
        let size = trade.size.max(Qty::ZERO);
        self.print_trade(book, trade.price, size, None);
        self.markets[book as usize].at = trade.at;
        let lots = self.whole_lots(book, size);
        // A trade of less than a lot fills nothing; one without a size is of unknown size.
        let may_fill = size.is_zero() || lots.is_positive();
        if may_fill && !self.books[book as usize].mode.has(BookMode::COLLECTING) {
            self.start_print(book, Side::Buy, trade.price, lots);
        }
    }

    /// Returns the part of a size of the feed that can trade: whole lots, so that every fill is.
    pub(super) fn whole_lots(&self, book: u32, size: Qty) -> Qty {
        size.max(Qty::ZERO).round_down(self.details[book as usize].spec.lot)
    }

    fn start_print(&mut self, book: u32, side: Side, price: Price, size: Qty) {
        let left = if size.is_zero() { Qty::MAX } else { size };
        self.set_work(book, BookWork::Print { side, price, size, left, queued: false });
    }

    /// Does one part of [`BookWork::Print`]: first the orders better than the trade, then those at
    /// exactly its price.
    pub(super) fn work_print(
        &mut self,
        book: u32,
        side: Side,
        price: Price,
        size: Qty,
        left: Qty,
        queued: bool,
    ) -> u32 {
        let front = &mut self.books[book as usize];
        let tick = front.tick().raw();
        let ticks = match side {
            Side::Buy => price.raw().div_euclid(tick),
            Side::Sell => ticks_up(price.raw(), tick),
        };
        let ladder = &front.sides[side as usize];
        let at = ladder.rank(ticks);
        let reached = ladder.best_rank() < at || queued && ladder.best_rank() == at;
        if let Some(maker) = ladder.best_front(&self.nodes).filter(|_| reached && left.is_positive()) {
            let qty = left.min(self.nodes[maker].qty);
            let price_of_maker = front.price(self.nodes[maker].ticks);
            front.fill(&mut self.nodes, &mut self.outcomes, maker, qty, price_of_maker);
            self.print_trade(book, price_of_maker, qty, Some(side.opposite()));
            let left = if size.is_zero() { left } else { Qty::from_raw(left.raw() - qty.raw()) };
            self.set_work(book, BookWork::Print { side, price, size, left, queued });
            return EFFORT_REPORTED;
        }
        if !queued && price.raw().rem_euclid(tick) == 0 {
            let left = self.left_behind_queue(book, side, ticks, size, left);
            self.set_work(book, BookWork::Print { side, price, size, left, queued: true });
            return 1;
        }
        match side {
            Side::Buy => self.start_print(book, Side::Sell, price, size),
            Side::Sell => self.set_work(book, BookWork::None),
        }
        1
    }

    /// Returns the rest of a trade for the clients at exactly its price.
    fn left_behind_queue(&mut self, book: u32, side: Side, ticks: i64, size: Qty, left: Qty) -> Qty {
        let (front, detail) = (&self.books[book as usize], &self.details[book as usize]);
        let ladder = &front.sides[side as usize];
        let shown = &detail.shown[side as usize];
        let behind_quote = shown.size.is_positive() && ladder.rank(shown.ticks) < ladder.rank(ticks);
        let lot = detail.spec.lot;
        match detail.spec.settings.fill_model {
            FillModel::Through => return Qty::ZERO,
            FillModel::Touch => return left,
            FillModel::Queue | FillModel::QueueBack | FillModel::QueueTraded => {}
        }
        match self.queue_mut(book, side, ticks) {
            _ if behind_quote => Qty::ZERO,
            None => left,
            Some(queue) if !size.is_zero() => queue.consume(left).round_down(lot),
            // A trade of unknown size does not show how far the queue has moved.
            Some(queue) if queue.ahead.is_positive() => Qty::ZERO,
            Some(_) => left,
        }
    }
}
