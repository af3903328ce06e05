//! Subscriptions of this server's ports to one shard that another server owns. They are kept here,
//! since that shard knows only our link.

use std::collections::BTreeMap;

use pitlane_engine::command::WatchTarget;
use pitlane_engine::event::{Event, EventKind};
use pitlane_engine::id::{PortId, PortMask, SecurityId};
use pitlane_protocols::remote::cluster::source_of;

#[derive(Debug, Default)]
pub(super) struct PortSubscriptions {
    everything: PortMask,
    orders: PortMask,
    ticks: BTreeMap<SecurityId, PortMask>,
    depths: BTreeMap<SecurityId, PortMask>,
    levels: BTreeMap<SecurityId, PortMask>,
    book_orders: BTreeMap<SecurityId, PortMask>,
    trades: BTreeMap<SecurityId, PortMask>,
    /// Ports that have ever requested a snapshot; they receive another one when we join again.
    pub readers: PortMask,
    /// Ports that have requested a snapshot and have not received it yet.
    pub waiting: PortMask,
}

impl PortSubscriptions {
    /// Changes a subscription. Returns whether the set of wanted market data has changed.
    pub(super) fn watch(&mut self, port: PortId, what: WatchTarget, on: bool) -> bool {
        let one = PortMask::one(port);
        let set = |mask: &mut PortMask| {
            *mask = if on { mask.with(one) } else { mask.without(one) };
        };
        match what {
            WatchTarget::Everything => set(&mut self.everything),
            WatchTarget::Orders => set(&mut self.orders),
            // Venues and limits of another server are its own.
            WatchTarget::Venue(_) | WatchTarget::Budgets => {}
            WatchTarget::Ticks(security) => return set_security(&mut self.ticks, security, set),
            WatchTarget::Depth(security) => return set_security(&mut self.depths, security, set),
            WatchTarget::Trades(security) => return set_security(&mut self.trades, security, set),
            // Each port that starts needs a snapshot, which the owner sends for every request.
            WatchTarget::Levels(security) => {
                set_security(&mut self.levels, security, set);
                return true;
            }
            WatchTarget::BookOrders(security) => {
                set_security(&mut self.book_orders, security, set);
                return true;
            }
        }
        false
    }

    pub(super) fn request_snapshot(&mut self, port: PortId) {
        self.readers = self.readers.with(PortMask::one(port));
        self.waiting = self.waiting.with(PortMask::one(port));
    }

    /// Returns the securities whose market data is subscribed to: ticks, books, price levels,
    /// orders of books, trades.
    pub(super) fn wants(&self) -> [impl Iterator<Item = SecurityId>; 5] {
        let all = [&self.ticks, &self.depths, &self.levels, &self.book_orders, &self.trades];
        all.map(|rows| rows.keys().copied())
    }

    /// Returns the ports that receive an event which is no snapshot item, by the rules of a shard.
    pub(super) fn recipients(&self, event: &mut Event) -> PortMask {
        let source = source_of(event).map(|source| source.port);
        let own = source.filter(|port| *port < PortId::LINK).map_or(PortMask::NONE, PortMask::one);
        let all = self.everything.with(self.orders);
        match &event.body {
            EventKind::Tick(tick) => {
                self.everything.with(self.ticks.get(&tick.security).copied().unwrap_or_default())
            }
            EventKind::Depth(depth) => self.depths.get(&depth.security).copied().unwrap_or_default(),
            EventKind::Levels(levels) => self.levels.get(&levels.security).copied().unwrap_or_default(),
            EventKind::BookOrders(orders) => {
                self.book_orders.get(&orders.security).copied().unwrap_or_default()
            }
            EventKind::MarketTrade(trade) => self.trades.get(&trade.security).copied().unwrap_or_default(),
            EventKind::Done { .. } => own,
            EventKind::Budget(_) => self.everything,
            EventKind::ToVenue(_)
            | EventKind::SnapshotBegin { .. }
            | EventKind::SnapshotEnd { .. }
            | EventKind::UsedIds(_) => PortMask::NONE,
            EventKind::Order(_)
            | EventKind::Status(_)
            | EventKind::Refused(_)
            | EventKind::Forgotten { .. }
            | EventKind::Booked(_)
            | EventKind::Exposure { .. }
            | EventKind::Adjusted { .. }
            | EventKind::Subscription { .. }
            | EventKind::Session { .. }
            | EventKind::Halt { .. }
            | EventKind::TradingDay { .. }
            | EventKind::Phase { .. }
            | EventKind::Adapter { .. }
            | EventKind::Limits { .. }
            | EventKind::Restrict { .. }
            | EventKind::Kill { .. }
            | EventKind::Directed { .. }
            | EventKind::Sender { .. }
            | EventKind::SpecialTerms(_)
            | EventKind::Sent { .. }
            | EventKind::Alert { .. } => all.with(own),
        }
    }
}

fn set_security(
    rows: &mut BTreeMap<SecurityId, PortMask>,
    security: SecurityId,
    set: impl Fn(&mut PortMask),
) -> bool {
    let before = rows.contains_key(&security);
    let mask = rows.entry(security).or_default();
    set(mask);
    if mask.is_empty() {
        rows.remove(&security);
    }
    before != rows.contains_key(&security)
}
