//! Events that a port can receive.

use crate::id::{AdapterId, SecurityId};

/// Events that a port can watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WatchTarget {
    /// Ticks of one security.
    Ticks(SecurityId),
    /// The order book of one security, where its venue publishes it.
    Depth(SecurityId),
    /// The price levels of one security, as a snapshot and updates; see
    /// [`crate::event::LevelChanges`].
    Levels(SecurityId),
    /// The orders of one book, as a snapshot and updates; see [`crate::event::OrderChanges`].
    BookOrders(SecurityId),
    /// Each trade of one security; see [`crate::event::MarketTrade`].
    Trades(SecurityId),
    /// Everything about orders, positions, cash and the system, of all sources.
    Orders,
    /// Everything except depth: for a read model.
    Everything,
    /// Instructions for this venue: for its adapter.
    Venue(AdapterId),
    /// Use of budgets, and subscriptions: for the budget pool and the feed.
    Budgets,
}

impl WatchTarget {
    /// Returns the security whose market data is watched.
    pub fn security(self) -> Option<SecurityId> {
        match self {
            WatchTarget::Ticks(security)
            | WatchTarget::Depth(security)
            | WatchTarget::Levels(security)
            | WatchTarget::BookOrders(security)
            | WatchTarget::Trades(security) => Some(security),
            WatchTarget::Orders | WatchTarget::Everything | WatchTarget::Venue(_) | WatchTarget::Budgets => {
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn market_data_is_watched_security_by_security() {
        let security = SecurityId(7);
        for target in [
            WatchTarget::Ticks(security),
            WatchTarget::Depth(security),
            WatchTarget::Levels(security),
            WatchTarget::BookOrders(security),
            WatchTarget::Trades(security),
        ] {
            assert_eq!(target.security(), Some(security));
        }
        let others = [WatchTarget::Orders, WatchTarget::Everything, WatchTarget::Venue(AdapterId(1))];
        assert_eq!(others.map(WatchTarget::security), [None; 3]);
        assert_eq!(WatchTarget::Budgets.security(), None);
    }
}
