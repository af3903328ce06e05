//! The market: quotes and trades of feeds, sessions, halts, and the published tick.

use super::Shard;
use crate::command::{FeedLevel, Quote, Trade, TradingSession};
use crate::event::{EventKind, Tick};
use crate::id::{PortMask, SecurityId};
use crate::outbox::Outbox;
use crate::timers::Timed;

impl Shard {
    /// Applies a quote, a trade or both from a feed. Securities of other shards are ignored.
    pub(super) fn tick(&mut self, security: SecurityId, quote: Option<&Quote>, trade: Option<&Trade>) {
        let Some(local) = self.directory.local(security) else {
            return;
        };
        match (quote, trade) {
            // The trade was made under the old quote.
            (Some(quote), Some(trade)) => {
                self.venue.trade(local, trade);
                if self.venue.has_work(local) {
                    self.continuation.quote_later(*quote);
                } else {
                    self.venue.quote(local, quote);
                }
            }
            (Some(quote), None) => self.venue.quote(local, quote),
            (None, Some(trade)) => self.venue.trade(local, trade),
            (None, None) => return,
        }
        self.continuation.mark_moved();
        self.continuation.set_busy(local);
    }

    /// Applies a level of the feed's book. Securities of other shards are ignored.
    pub(super) fn level(&mut self, security: SecurityId, level: &FeedLevel) {
        if let Some(local) = self.directory.local(security) {
            self.venue.level(local, level);
        }
    }

    pub(super) fn halt_local(&mut self, local: u32, on: bool, out: &mut Outbox) {
        let security = &mut self.directory.locals[local as usize];
        security.halted = on;
        let id = security.instrument.security;
        self.venue.halt(local, on);
        self.continuation.set_busy(local);
        self.emit(EventKind::Halt { security: id, on }, out);
    }

    /// Moves one security of an exchange into a session.
    pub(super) fn enter_session(&mut self, local: u32, session: TradingSession) {
        self.venue.session(local, session);
        self.continuation.mark_moved();
        self.continuation.set_busy(local);
    }

    /// Publishes the tick of a security now, or when the feed's delay is over.
    pub(super) fn show(&mut self, local: u32, out: &mut Outbox) {
        let delay = self.delays(local).feed_ns;
        if delay == 0 {
            return self.emit_tick(local, out);
        }
        self.deadlines.push(self.now.plus(delay), Timed::Shown(self.current_tick(local)));
    }

    /// Returns the ports that receive the ticks of a security: without subscribers, its watchers
    /// receive none.
    fn tick_recipients(&self, local: u32) -> PortMask {
        let security = &self.directory.locals[local as usize];
        let watched = if security.subscribers.is_empty() { PortMask::NONE } else { security.watchers };
        self.watchers.of_tick(watched)
    }

    fn emit_tick(&mut self, local: u32, out: &mut Outbox) {
        let to = self.tick_recipients(local);
        if to.is_empty() {
            return out.skip();
        }
        out.emit(to, self.now, EventKind::Tick(self.current_tick(local)));
    }

    /// Publishes a tick whose delay is over.
    pub(super) fn emit_delayed_tick(&mut self, tick: Tick, out: &mut Outbox) {
        if let Some(local) = self.directory.local(tick.security) {
            out.emit(self.tick_recipients(local), self.now, EventKind::Tick(tick));
        }
    }

    /// Returns the market of each security.
    pub fn ticks(&self) -> impl Iterator<Item = Tick> {
        (0..self.directory.local_count()).map(|local| self.current_tick(local))
    }

    pub(super) fn current_tick(&self, local: u32) -> Tick {
        let market = self.venue.market(local);
        Tick {
            security: self.directory.locals[local as usize].instrument.security,
            bid: market.quote.bid,
            bid_size: market.quote.bid_size,
            ask: market.quote.ask,
            ask_size: market.quote.ask_size,
            last: market.last,
            last_size: market.last_size,
            traded: market.traded,
            volume: market.volume,
            at: market.at,
        }
    }
}
