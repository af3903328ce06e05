//! The orders that an operation on many orders concerns.

use crate::command::CancelFilter;
use crate::directory::Directory;
use crate::id::{AccountId, AdapterId, IntId, Source, StrategyId};
use crate::order::{NIL, Order};

/// The request under which a client cancels many orders.
#[derive(Clone, Copy, Debug)]
pub(super) struct CancelOrigin {
    pub id: IntId,
    pub source: Source,
}

/// Selects the orders of a sweep.
#[derive(Clone, Copy, Debug)]
pub(super) enum OrderFilter {
    All,
    Strategy(StrategyId),
    Account(AccountId),
    Security(u32),
    Adapter(AdapterId),
    Position(StrategyId, u32),
    /// Orders that may only reduce the position.
    Reducing(StrategyId, u32),
    /// Orders that a client selects.
    Selected(CancelFilter),
}

impl OrderFilter {
    pub(super) fn matches(self, order: &Order, directory: &Directory) -> bool {
        match self {
            OrderFilter::All => true,
            OrderFilter::Strategy(id) => order.terms.strategy == id,
            OrderFilter::Account(id) => order.terms.account == id,
            OrderFilter::Security(local) => order.local == local,
            OrderFilter::Adapter(id) => {
                order.local != NIL && directory.locals[order.local as usize].adapter == id
            }
            OrderFilter::Position(strategy, local) => {
                order.terms.strategy == strategy && order.local == local
            }
            OrderFilter::Reducing(strategy, local) => {
                order.terms.reduce_only && order.terms.strategy == strategy && order.local == local
            }
            OrderFilter::Selected(filter) => {
                let terms = &order.terms;
                filter.strategy.is_none_or(|strategy| terms.strategy == strategy)
                    && filter.security.is_none_or(|security| terms.security == security)
                    && filter.side.is_none_or(|side| terms.side == side)
                    && filter.origin.is_none_or(|origin| order.source.origin == origin)
                    && filter.source.is_none_or(|source| order.source == source)
            }
        }
    }
}
