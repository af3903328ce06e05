//! The newest tick of each security, its subscribers, and whether it is halted.

use super::{ShardFacts, SnapshotMark, View};
use crate::event::Tick;
use crate::id::{SecurityId, ShardId, StrategyId};
use crate::index::index_u32;
use crate::number::{Price, Qty};
use crate::terms::Side;

impl View {
    /// Returns the newest tick of a security.
    pub fn tick(&self, security: SecurityId) -> Option<&Tick> {
        self.market.find(security)
    }

    /// Returns the newest ticks, by security.
    pub fn ticks(&self) -> impl Iterator<Item = &Tick> {
        let places = self.market.places.iter().filter(|place| **place != NONE);
        places.filter_map(|place| self.market.ticks[*place as usize].0.as_ref())
    }

    /// Returns the subscriptions, by security and strategy.
    pub fn subscriptions(&self) -> impl Iterator<Item = (SecurityId, StrategyId)> {
        self.market.subscriptions.iter().map(|(key, ())| key)
    }

    /// Returns the number of subscribers of a security, as its shard counts them.
    pub fn subscribers(&self, security: SecurityId) -> u32 {
        self.market.subscribers.get(&security).copied().unwrap_or(0)
    }

    /// Returns the halted securities, by id.
    pub fn halts(&self) -> impl Iterator<Item = SecurityId> {
        self.market.halts.iter().map(|(security, ())| security)
    }

    /// Returns the price of trading now: the bid for a seller, the ask for a buyer, the last price
    /// where there is no quote.
    pub(super) fn price_for(&self, security: SecurityId, side: Side) -> Option<Price> {
        let tick = self.tick(security)?;
        let quoted = |price: Price, size: Qty| size.is_positive().then_some(price);
        let quote = match side {
            Side::Sell => quoted(tick.bid, tick.bid_size),
            Side::Buy => quoted(tick.ask, tick.ask_size),
        };
        quote.or(tick.traded.then_some(tick.last))
    }
}

const NONE: u32 = u32::MAX;

#[derive(Debug, Default)]
pub(super) struct MarketView {
    /// By security: the index of its tick. Security ids have 20 bits, so this is at most 4 MiB.
    places: Vec<u32>,
    /// In the order in which the securities were first seen; dropped ones are empty.
    ticks: Vec<(Option<Tick>, SnapshotMark)>,
    subscriptions: ShardFacts<(SecurityId, StrategyId), ()>,
    subscribers: ShardFacts<SecurityId, u32>,
    halts: ShardFacts<SecurityId, ()>,
}

impl MarketView {
    pub(super) fn tick(&mut self, tick: &Tick, mark: SnapshotMark) {
        assert!(tick.security.0 <= SecurityId::MAX, "a security id has 20 bits");
        let security = tick.security.0 as usize;
        if security >= self.places.len() {
            self.places.resize(security + 1, NONE);
        }
        match self.places[security] {
            NONE => {
                self.places[security] = index_u32(self.ticks.len());
                self.ticks.push((Some(*tick), mark));
            }
            place => self.ticks[place as usize] = (Some(*tick), mark),
        }
    }

    pub(super) fn subscription(
        &mut self,
        strategy: StrategyId,
        security: SecurityId,
        on: bool,
        subscribers: u32,
        mark: SnapshotMark,
    ) {
        self.subscriptions.set_if(on, (security, strategy), (), mark);
        self.subscribers.set_if(subscribers > 0, security, subscribers, mark);
    }

    pub(super) fn halt(&mut self, security: SecurityId, on: bool, mark: SnapshotMark) {
        self.halts.set_if(on, security, (), mark);
    }

    /// Starts a new day: a shard counts its volumes from zero, and does not report that by ticks.
    pub(super) fn day_begins(&mut self, shard: ShardId) {
        for (tick, marked) in &mut self.ticks {
            if let Some(tick) = tick.as_mut().filter(|_| marked.shard == shard) {
                tick.volume = Qty::ZERO;
            }
        }
    }

    pub(super) fn sweep(&mut self, mark: SnapshotMark) {
        for (tick, marked) in &mut self.ticks {
            if marked.shard == mark.shard && *marked != mark {
                *tick = None;
            }
        }
        self.subscriptions.sweep(mark);
        self.subscribers.sweep(mark);
        self.halts.sweep(mark);
    }

    fn find(&self, security: SecurityId) -> Option<&Tick> {
        let place = *self.places.get(security.0 as usize)?;
        self.ticks.get(place as usize)?.0.as_ref()
    }
}
