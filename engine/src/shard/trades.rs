//! Publishes each trade of the market once, with its number, to the ports that watch the trades of
//! its security. Trades are not part of the history and not stored. A security without watchers
//! costs nothing.

use std::collections::BTreeMap;

use super::Shard;
use crate::event::{EventKind, MarketTrade, TradeNumber};
use crate::id::{PortId, PortMask, SecurityId};
use crate::outbox::Outbox;
use crate::reason::Reason;

/// Securities whose trades are watched, by their index.
#[derive(Debug, Default)]
pub(super) struct TradeWatches(BTreeMap<u32, WatchedTrades>);

#[derive(Debug, Default)]
struct WatchedTrades {
    ports: PortMask,
    /// Command of the last trade, and the number of its trades so far.
    last: (u64, u32),
}

impl TradeWatches {
    fn set(&mut self, local: u32, port: PortId, on: bool) {
        let (one, watched) = (PortMask::one(port), self.0.entry(local).or_default());
        watched.ports = if on { watched.ports.with(one) } else { watched.ports.without(one) };
        if watched.ports.is_empty() {
            self.0.remove(&local);
        }
    }
}

impl WatchedTrades {
    /// Returns the number of the next trade that a command causes.
    fn next_number(&mut self, command: u64) -> TradeNumber {
        let place = if self.last.0 == command { self.last.1 } else { 0 };
        self.last = (command, place.saturating_add(1));
        TradeNumber::new(command, place)
    }
}

impl Shard {
    pub(super) fn watch_trades(
        &mut self,
        port: PortId,
        security: SecurityId,
        on: bool,
    ) -> Result<(), Reason> {
        let local = self.directory.local(security).ok_or(Reason::UnknownSecurity)?;
        self.trade_watches.set(local, port, on);
        self.venue.watch_trades(local, self.trade_watches.0.contains_key(&local));
        Ok(())
    }

    pub(super) fn forget_trades(&mut self) {
        for (local, _) in std::mem::take(&mut self.trade_watches.0) {
            self.venue.watch_trades(local, false);
        }
    }

    /// Publishes the trades of this step. A security without subscribers publishes none, as with
    /// ticks.
    #[cold]
    pub(super) fn emit_trades(&mut self, out: &mut Outbox) {
        for &trade in self.venue.trades() {
            let security = &self.directory.locals[trade.book as usize];
            let Some(watched) = self.trade_watches.0.get_mut(&trade.book) else { continue };
            let number = watched.next_number(self.applied);
            if security.subscribers.is_empty() {
                continue;
            }
            let body = MarketTrade {
                number,
                security: security.instrument.security,
                price: trade.price,
                qty: trade.qty,
                aggressor: trade.aggressor,
            };
            out.emit_unnumbered(watched.ports, self.now, EventKind::MarketTrade(body));
        }
        self.venue.clear_trades();
    }
}
