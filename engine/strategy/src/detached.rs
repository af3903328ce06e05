//! The state of a call outside the borrow of the call.
//!
//! A [`Context`] borrows the state of its strategy. An interpreter cannot hold such a borrow: its
//! objects have no lifetimes. A strategy in an interpreted language therefore exchanges the state
//! with a [`DetachedContext`] that its own object owns, calls the interpreter, and exchanges it
//! back.
//!
//! ```text
//! Context ─ swap ─► DetachedContext: context() for each request of the script ─ swap ─► Context
//! ```

use super::context::{Context, Operation, StrategyState};
use super::market::MarketCache;
use pitlane_engine::command::StrategyPhase;
use pitlane_engine::desk::IdBlock;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;

/// See the module's comment. Between calls it has the state of no strategy.
#[derive(Debug, Default)]
pub struct DetachedContext {
    now: Timestamp,
    phase: StrategyPhase,
    operation: Operation,
    state: StrategyState,
    numbers: IdBlock,
}

impl DetachedContext {
    /// Returns the context, to make a request or to look at the state.
    pub fn context<'a>(&'a mut self, market: &'a MarketCache, reference: &'a RefData) -> Context<'a> {
        let DetachedContext { now, phase, operation, state, numbers } = self;
        Context { now: *now, phase: *phase, operation: *operation, book: state, market, reference, numbers }
    }
}

impl Context<'_> {
    /// Exchanges the state of this call with a detached one: once before the interpreter is called,
    /// and once after it, with the same `detached`.
    pub fn swap(&mut self, detached: &mut DetachedContext) {
        (detached.now, detached.phase, detached.operation) = (self.now, self.phase, self.operation);
        std::mem::swap(self.book, &mut detached.state);
        std::mem::swap(self.numbers, &mut detached.numbers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::StrategyRequest;
    use pitlane_engine::id::{SecurityId, StrategyId};
    use pitlane_engine::number::Qty;
    use pitlane_engine::refdata::sample;
    use pitlane_engine::terms::Side;

    #[test]
    fn requests_in_a_detached_context_are_those_of_the_call() {
        let reference = RefData::check(sample::sound()).unwrap();
        let security = reference.securities()[0].id;
        let market = MarketCache::default();
        let mut state = StrategyState::new(StrategyId(1));
        let mut numbers = IdBlock { next: 7, end: 100 };
        let mut detached = DetachedContext::default();
        let mut context = Context {
            now: Timestamp(5),
            phase: StrategyPhase::Running,
            operation: Operation::Simulation,
            book: &mut state,
            market: &market,
            reference: &reference,
            numbers: &mut numbers,
        };
        context.swap(&mut detached);
        assert_eq!(context.strategy(), StrategyId(0), "the call has lent its state");
        let mut inside = detached.context(&market, &reference);
        assert_eq!((inside.now(), inside.strategy()), (Timestamp(5), StrategyId(1)));
        let id = inside.market(security, Side::Buy, Qty::from_raw(1)).unwrap();
        assert!(inside.subscribe(SecurityId(9_999)).is_err());
        context.swap(&mut detached);
        assert_eq!(id.to_string(), "s7");
        assert_eq!(context.open_orders().len(), 1);
        assert_eq!(numbers.next, 8);
        assert!(
            matches!(state.requests.front(), Some(StrategyRequest::Submit { id: sent, .. }) if *sent == id)
        );
        assert_eq!(detached.context(&market, &reference).open_orders(), []);
    }
}
