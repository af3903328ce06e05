//! The feed's book behind its best prices, and the queue ahead of our orders.

use pitlane_engine::command::FeedLevel;
use pitlane_engine::id::SecurityId;
use pitlane_engine::settings::FillModel;
use pitlane_engine::terms::Side;
use pitlane_engine::venue::FEED_LEVELS_MAX;

use super::Twin;
use super::market::{TwinMarket, TwinQueue};

impl Twin {
    pub(super) fn level(&mut self, security: SecurityId, level: FeedLevel) {
        let Some(row) = self.reference.security(security) else { return };
        let (side, price) = (level.side, level.price.raw());
        if price % self.reference.family_of(row).tick_size.raw() != 0 {
            return;
        }
        let clients = !self.at_price(security, side, price).is_empty();
        let model = self.venue_settings(security).fill_model;
        let market = self.markets.get_mut(&security).expect("a known security");
        *market.queue(side) = None;
        let (lot, size) = (market.lot, market.whole_lots(level.size.raw()));
        let worst = market.worst_level(side);
        let levels = &mut market.levels[side as usize];
        if size == 0 {
            levels.remove(&price);
            return;
        }
        if let Some(known) = levels.get_mut(&price) {
            match clients {
                true => known.resize(size, lot, model),
                false => *known = TwinQueue { price, ahead: size, shown: size },
            }
            return;
        }
        let is_worst =
            worst.is_none_or(|worst| if side == Side::Buy { price < worst } else { price > worst });
        if levels.len() == FEED_LEVELS_MAX {
            match worst {
                Some(worst) if !is_worst => levels.remove(&worst),
                _ => return,
            };
        }
        let is_behind = clients && !is_worst && model != FillModel::QueueBack;
        levels.insert(price, TwinQueue { price, ahead: if is_behind { 0 } else { size }, shown: size });
    }
}

impl TwinMarket {
    fn worst_level(&self, side: Side) -> Option<i64> {
        let levels = &self.levels[side as usize];
        match side {
            Side::Buy => levels.keys().next().copied(),
            Side::Sell => levels.keys().next_back().copied(),
        }
    }

    /// The first of our orders comes to rest at a price: what the feed shows there is ahead.
    pub(super) fn begin_queue(&mut self, side: Side, price: i64) {
        let quoted = self.shown(side).filter(|(quote, _)| *quote == price);
        let quoted = quoted.map(|_| self.unconsumed(side).map_or(0, |(_, size)| size));
        let levels = &mut self.levels[side as usize];
        if !levels.is_empty() {
            if let Some(level) = levels.get_mut(&price) {
                level.ahead = level.shown.min(quoted.unwrap_or(i64::MAX));
            }
        } else if let Some(shown) = quoted {
            *self.queue(side) = Some(TwinQueue { price, ahead: shown, shown });
        }
    }

    /// Returns the feed's orders at a price ahead of ours.
    pub(super) fn queue_at(&mut self, side: Side, price: i64) -> Option<&mut TwinQueue> {
        match self.levels[side as usize].is_empty() {
            true => self.queue(side).as_mut().filter(|queue| queue.price == price),
            false => self.levels[side as usize].get_mut(&price),
        }
    }
}

impl TwinQueue {
    /// Takes another shown size at the same price.
    pub(super) fn resize(&mut self, size: i64, lot: i64, model: FillModel) {
        if model == FillModel::QueueBack {
            self.ahead = size;
        } else if model == FillModel::QueueTraded {
            self.ahead = self.ahead.min(size);
        } else if size < self.shown {
            let part = self.ahead as i128 * size as i128;
            let covers = |lots: &i64| (lots * lot) as i128 * self.shown as i128 >= part;
            self.ahead = lot * (0..=size / lot).find(covers).expect("not more than the size");
        }
        self.shown = size;
    }
}
