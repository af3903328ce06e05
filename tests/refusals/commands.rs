//! Commands to a shard, from which the cases are made.

use pitlane_engine::command::{CommandKind, Movement, MovementKind, RiskLimits, Scope, VenueReport};
use pitlane_engine::event::Event;
use pitlane_engine::id::{OrderHandle, StrategyId, Uuid};
use pitlane_engine::number::{Money, Price};
use pitlane_engine::reason::Reason;
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::terms::{OrderKind, Side, SpecialTerms, Terms, Tif};
use pitlane_tests::shard_harness::{ShardHarness, limit};
use pitlane_tests::test_market::{self, ABROAD, HOME_ACCOUNTS, SHARES, price, qty};

/// One way to be rejected: the reason, a description, and the function that returns the events.
pub(crate) type RefusalCase = (Reason, &'static str, fn() -> Vec<Event>);

pub(crate) const BUY: Side = Side::Buy;
pub(crate) const SELL: Side = Side::Sell;

/// Returns an order that would be accepted.
pub(crate) fn good() -> Terms {
    limit(SHARES[0], BUY, "10", "100")
}

pub(crate) fn harness() -> ShardHarness {
    ShardHarness::new(ShardSettings::default())
}

/// Returns a harness with venues that limit orders.
pub(crate) fn with_venue_limits() -> ShardHarness {
    ShardHarness::with_reference(test_market::limited_reference(), ShardSettings::default())
}

pub(crate) fn submit(terms: Terms) -> Vec<Event> {
    harness().submit(terms).1
}

pub(crate) fn submit_special(special: SpecialTerms) -> Vec<Event> {
    harness().submit_special(good(), special).1
}

pub(crate) fn market(side: Side, tif: Tif) -> Terms {
    Terms {
        kind: OrderKind::Market,
        limit: Price::ZERO,
        limit_given: false,
        tif,
        ..limit(SHARES[0], side, "10", "0")
    }
}

pub(crate) fn stop(side: Side, at: &str) -> Terms {
    Terms { kind: OrderKind::Stop, stop: price(at), stop_given: true, ..market(side, Tif::Day) }
}

/// Submits under limits of the strategy.
pub(crate) fn limited(limits: RiskLimits, terms: Terms) -> Vec<Event> {
    let mut harness = harness();
    harness.trade(SHARES[0], "100", "1");
    harness.send_command(CommandKind::Limits { scope: Scope::Strategy(StrategyId(1)), limits });
    harness.submit(terms).1
}

/// Submits after the kill switch of a scope was set.
pub(crate) fn killed(scope: Scope, terms: Terms) -> Vec<Event> {
    let mut harness = harness();
    harness.send_command(CommandKind::Kill { scope, on: true });
    harness.submit(terms).1
}

pub(crate) fn close(harness: &mut ShardHarness, quantity: &str) -> Vec<Event> {
    let id = harness.id();
    let (strategy, account) = (StrategyId(1), HOME_ACCOUNTS[0]);
    harness.send_command(CommandKind::Close {
        id,
        strategy,
        account,
        security: SHARES[0],
        qty: qty(quantity),
    })
}

/// Returns a stage on which strategy 1 holds 10 of the first share.
pub(crate) fn holding() -> ShardHarness {
    let mut harness = harness();
    harness.send_command(CommandKind::Transaction(bought()));
    harness
}

pub(crate) fn bought() -> Movement {
    Movement {
        kind: MovementKind::Buy,
        strategy: StrategyId(1),
        account: HOME_ACCOUNTS[0],
        security: Some(SHARES[0]),
        qty: qty("10"),
        price: price("100"),
        commission: Money::ZERO,
        currency: pitlane_engine::id::Currency::default(),
        uuid: Uuid::default(),
    }
}

pub(crate) fn transaction(movement: Movement) -> Vec<Event> {
    harness().send_command(CommandKind::Transaction(movement))
}

/// Returns an acknowledged order at the external venue.
pub(crate) fn working() -> (ShardHarness, OrderHandle) {
    let mut harness = harness();
    let (order, _) = harness.submit(limit(ABROAD[0], BUY, "10", "100"));
    harness.report(order, VenueReport::Accepted);
    (harness, order)
}

pub(crate) fn rejecting(change: fn(&mut ShardSettings)) -> ShardHarness {
    let mut settings = ShardSettings::default();
    change(&mut settings);
    ShardHarness::new(settings)
}
