//! Refusals at the entry: reference data, form and identity of an order.

use pitlane_engine::command::{CommandKind, TradingSession};
use pitlane_engine::id::{ExchangeId, IntId, OrderHandle};
use pitlane_engine::number::Qty;
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::{Changes, ExecInst, OrderKind, SpecialTerms, Terms, Tif};
use pitlane_engine::time::Timestamp;
use pitlane_tests::shard_harness::limit;
use pitlane_tests::test_market::{self, ABROAD, FUTURES, OUTSIDE_ACCOUNT, SHARES, price, qty};

use super::commands::{
    BUY, RefusalCase, good, harness, market, rejecting, stop, submit, submit_special, with_venue_limits,
    working,
};

pub(crate) const REFERENCE: &[RefusalCase] = &[
    (Reason::UnknownSecurity, "order", || submit(Terms { security: test_market::NO_SECURITY, ..good() })),
    (Reason::UnknownSecurity, "highest id", || {
        submit(Terms { security: pitlane_engine::id::SecurityId(u32::MAX), ..good() })
    }),
    (Reason::UnknownSecurity, "halt", || {
        harness().send_command(CommandKind::Halt { security: test_market::NO_SECURITY, on: true })
    }),
    (Reason::UnknownSecurity, "expiry", || {
        harness().send_command(CommandKind::Expire { security: test_market::NO_SECURITY, price: price("1") })
    }),
    (Reason::NotTradeable, "order", || submit(Terms { security: test_market::NOT_TRADEABLE, ..good() })),
    (Reason::UnknownAccount, "order", || submit(Terms { account: test_market::NO_ACCOUNT, ..good() })),
    (Reason::AccountInactive, "order", || submit(Terms { account: test_market::INACTIVE_ACCOUNT, ..good() })),
    (Reason::AccountElsewhere, "other adapter", || {
        submit(Terms { account: test_market::OUTSIDE_ACCOUNT, ..good() })
    }),
    (Reason::AccountElsewhere, "other exchange", || {
        submit(Terms { account: test_market::PLAIN_ACCOUNT, ..good() })
    }),
    (Reason::StrategyNotPermitted, "order", || {
        submit(Terms {
            account: test_market::RESERVED_ACCOUNT,
            strategy: test_market::STRATEGIES[2],
            ..good()
        })
    }),
    (Reason::UnknownStrategy, "order", || submit(Terms { strategy: test_market::NO_STRATEGY, ..good() })),
    (Reason::UnknownStrategy, "subscription", || {
        let (strategy, security) = (test_market::NO_STRATEGY, SHARES[0]);
        harness().send_command(CommandKind::Subscribe { strategy, security, on: true })
    }),
    (Reason::StrategyNotRunning, "order", || {
        submit(Terms { strategy: test_market::IDLE_STRATEGY, ..good() })
    }),
    (Reason::UnknownExchange, "session", || {
        harness()
            .send_command(CommandKind::Session { exchange: ExchangeId(9), session: TradingSession::Closed })
    }),
    (Reason::VenueUnavailable, "order", || {
        let mut harness = harness();
        harness
            .send_command(CommandKind::Adapter { adapter: test_market::OUTSIDE_ADAPTER, connected: false });
        harness.submit(limit(ABROAD[0], BUY, "1", "100")).1
    }),
];

pub(crate) const FORM: &[RefusalCase] = &[
    (Reason::QuantityNotPositive, "zero", || submit(Terms { qty: Qty::ZERO, ..good() })),
    (Reason::QuantityNotPositive, "negative", || submit(Terms { qty: Qty::MIN, ..good() })),
    (Reason::BadLot, "order", || submit(Terms { qty: qty("10.5"), ..good() })),
    (Reason::BadLot, "lot of ten", || submit(limit(FUTURES[0], BUY, "15", "100"))),
    (Reason::BadTick, "limit", || submit(limit(SHARES[0], BUY, "10", "100.005"))),
    (Reason::BadTick, "stop", || submit(stop(BUY, "100.001"))),
    (Reason::LimitMissing, "limit order", || submit(Terms { limit_given: false, ..good() })),
    (Reason::LimitMissing, "stop limit order", || {
        submit(Terms { kind: OrderKind::StopLimit, ..stop(BUY, "100") })
    }),
    (Reason::LimitSuperfluous, "market order", || submit(Terms { kind: OrderKind::Market, ..good() })),
    (Reason::StopMissing, "stop order", || submit(Terms { kind: OrderKind::Stop, ..market(BUY, Tif::Day) })),
    (Reason::StopSuperfluous, "limit order", || {
        submit(Terms { stop: price("100"), stop_given: true, ..good() })
    }),
    (Reason::TifDateMissing, "order", || submit(Terms { tif: Tif::Gtd, ..good() })),
    (Reason::TifDateSuperfluous, "order", || submit(Terms { tif_date: Timestamp::MAX, ..good() })),
    (Reason::TifDatePast, "long ago", || submit(Terms { tif: Tif::Gtd, tif_date: Timestamp(1), ..good() })),
    (Reason::TifDatePast, "now", || {
        submit(Terms { tif: Tif::Gtd, tif_date: test_market::start(), ..good() })
    }),
    (Reason::ExecInstNotTaken, "all or none at a simulated venue", || {
        let exec_inst = ExecInst::parse(b"G").unwrap_or_default();
        submit_special(SpecialTerms { exec_inst, ..SpecialTerms::default() })
    }),
    (Reason::MinQtyNotTaken, "a smallest fill at a simulated venue", || {
        let min_qty = Some(test_market::qty("1"));
        submit_special(SpecialTerms { min_qty, ..SpecialTerms::default() })
    }),
    (Reason::MaxFloorNotTaken, "a hidden quantity at a simulated venue", || {
        let max_floor = Some(test_market::qty("1"));
        submit_special(SpecialTerms { max_floor, ..SpecialTerms::default() })
    }),
    (Reason::TifNotAllowed, "stop in an auction", || {
        let mut harness = harness();
        harness.send_command(CommandKind::Session {
            exchange: test_market::AUCTIONS,
            session: TradingSession::OpeningAuction,
        });
        harness.submit(Terms { tif: Tif::Ato, ..stop(BUY, "100") }).1
    }),
    (Reason::NoAuctionAhead, "opening is over", || submit(Terms { tif: Tif::Ato, ..good() })),
    (Reason::NoAuctionAhead, "exchange without", || {
        submit(Terms { tif: Tif::Atc, ..limit(FUTURES[0], BUY, "10", "100") })
    }),
    (Reason::Overflow, "value", || submit(Terms { qty: qty("92000000000"), ..good() })),
    (Reason::Overflow, "position", || {
        let mut harness = harness();
        let terms = limit(SHARES[0], BUY, "40000000000", "0.01");
        harness.submit(terms);
        harness.submit(terms).1
    }),
];

/// What a venue limits per order. A buy of shares has a value from 250 to 1000, see
/// [`test_market::order_limits`].
pub(crate) const LIMITS: &[RefusalCase] = &[
    (Reason::MinNotional, "order", || with_venue_limits().submit(limit(SHARES[0], BUY, "2", "124.99")).1),
    (Reason::MinNotional, "value of a change", || {
        let mut harness = with_venue_limits();
        let (order, _) = harness.submit(limit(SHARES[0], BUY, "3", "100"));
        harness.modify(order, Changes::default().with_qty(qty("2")))
    }),
    (Reason::MinNotional, "stop abroad", || {
        let terms = Terms { security: ABROAD[0], account: OUTSIDE_ACCOUNT, ..stop(BUY, "19.95") };
        with_venue_limits().submit(terms).1
    }),
    (Reason::MaxNotional, "order", || with_venue_limits().submit(limit(SHARES[0], BUY, "10", "100.01")).1),
    (Reason::MaxNotional, "price of a change", || {
        let mut harness = with_venue_limits();
        let (order, _) = harness.submit(good());
        harness.modify(order, Changes::default().with_limit(price("100.01")))
    }),
    (Reason::MaxNotional, "market order by the last price", || {
        let mut harness = with_venue_limits();
        harness.trade(SHARES[0], "100.01", "1");
        harness.submit(market(BUY, Tif::Day)).1
    }),
    // Without a price there is no value: it reaches the venue.
    (Reason::Ioc, "market order without a last price", || {
        with_venue_limits().submit(market(BUY, Tif::Ioc)).1
    }),
    (Reason::VenueUnsupported, "type", || {
        let terms = Terms { security: FUTURES[0], qty: qty("10"), ..stop(BUY, "100") };
        with_venue_limits().submit(terms).1
    }),
];

pub(crate) const IDENTITY: &[RefusalCase] = &[
    (Reason::BadId, "order", || {
        harness().send_command(CommandKind::Submit { id: IntId::NONE, terms: good() })
    }),
    (Reason::UnknownOrder, "cancel", || harness().cancel(OrderHandle::NONE)),
    (Reason::UnknownOrder, "modify", || harness().modify(OrderHandle::NONE, Changes::default())),
    (Reason::UnknownOrder, "slot never used", || harness().cancel(OrderHandle::from_raw(5))),
    (Reason::OrderFinished, "cancel", || {
        let mut harness = harness();
        let (order, _) = harness.submit(Terms { qty: Qty::ZERO, ..good() });
        harness.cancel(order)
    }),
    (Reason::OrderFinished, "modify", || {
        let mut harness = harness();
        let (order, _) = harness.submit(good());
        harness.cancel(order);
        harness.modify(order, Changes::default().with_qty(qty("5")))
    }),
    (Reason::RequestPending, "cancel", || {
        let (mut harness, order) = working();
        harness.cancel(order);
        harness.cancel(order)
    }),
    (Reason::RequestPending, "modify", || {
        let (mut harness, order) = working();
        harness.cancel(order);
        harness.modify(order, Changes::default().with_qty(qty("5")))
    }),
    (Reason::NotAcknowledged, "modify", || {
        let mut harness = harness();
        let (order, _) = harness.submit(limit(ABROAD[0], BUY, "10", "100"));
        harness.modify(order, Changes::default().with_qty(qty("5")))
    }),
    (Reason::ShardFull, "order", || {
        let mut harness = rejecting(|settings| settings.orders_max = 2);
        harness.submit(good());
        harness.submit(good());
        harness.submit(good()).1
    }),
];
