//! Reasons for the end of an order, and refusals of transactions and settings.

use pitlane_engine::command::{
    CommandKind, ExecRef, Movement, RiskLimits, Scope, TradingSession, VenueReport,
};
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::{Changes, Terms, Tif};
use pitlane_engine::time::{Day, NS_PER_S};
use pitlane_tests::shard_harness::limit;
use pitlane_tests::test_market::{self, ABROAD, FUTURES, HOME_ACCOUNTS, SHARES, price, qty};

use super::commands::{BUY, RefusalCase, SELL, bought, good, harness, stop, transaction, working};

pub(crate) const ENDS: &[RefusalCase] = &[
    (Reason::Requested, "cancel", || {
        let mut harness = harness();
        let (order, _) = harness.submit(good());
        harness.cancel(order)
    }),
    (Reason::ExpiredDay, "close of the exchange", || {
        let mut harness = harness();
        harness.submit(good());
        harness.send_command(CommandKind::Session {
            exchange: test_market::AUCTIONS,
            session: TradingSession::Closed,
        })
    }),
    (Reason::ExpiredGtd, "its date", || {
        let mut harness = harness();
        let tif_date = harness.now.plus(NS_PER_S);
        harness.submit(Terms { tif: Tif::Gtd, tif_date, ..good() });
        assert_eq!(harness.shard.deadline(), Some(tif_date));
        harness.now = tif_date;
        harness.send_command(CommandKind::Timer)
    }),
    (Reason::ExpiredAuction, "opening", || {
        let mut harness = harness();
        harness.send_command(CommandKind::Session {
            exchange: test_market::AUCTIONS,
            session: TradingSession::OpeningAuction,
        });
        harness.submit(Terms { tif: Tif::Ato, ..good() });
        harness.send_command(CommandKind::Session {
            exchange: test_market::AUCTIONS,
            session: TradingSession::Continuous,
        })
    }),
    (Reason::Triggered, "stop", || {
        let mut harness = harness();
        harness.submit(stop(BUY, "101"));
        harness.trade(SHARES[0], "101", "1")
    }),
    (Reason::StopHere, "less than filled", || {
        let mut harness = harness();
        let (order, _) = harness.submit(good());
        harness.submit(Terms { account: HOME_ACCOUNTS[1], ..limit(SHARES[0], SELL, "4", "100") });
        harness.modify(order, Changes::default().with_qty(qty("3")))
    }),
    (Reason::LateFill, "outside", || {
        let (mut harness, order) = working();
        harness.report(order, VenueReport::Canceled(Reason::VenueCancelled));
        harness.fill(order, 1, "5", "100")
    }),
    (Reason::Overfill, "outside", || {
        let (mut harness, order) = working();
        harness.fill(order, 1, "11", "100")
    }),
    (Reason::Bust, "outside", || {
        let (mut harness, order) = working();
        harness.fill(order, 1, "5", "100");
        harness.report(order, VenueReport::Busted { exec: ExecRef(1) })
    }),
    (Reason::Correction, "outside", || {
        let (mut harness, order) = working();
        harness.fill(order, 1, "5", "100");
        harness.report(order, VenueReport::Corrected { exec: ExecRef(1), qty: qty("4"), price: price("99") })
    }),
    (Reason::ExpiredSecurity, "settled", || {
        let mut harness = harness();
        harness.send_command(CommandKind::Expire { security: SHARES[0], price: price("100") });
        harness.submit(good()).1
    }),
    (Reason::ExpiredSecurity, "its date is over", || {
        let mut harness = harness();
        harness.send_command(CommandKind::Expiry {
            exchange: test_market::PLAIN,
            day: Day(test_market::START_DAY + 1),
        });
        harness.submit(limit(FUTURES[1], BUY, "10", "100")).1
    }),
    (Reason::SecurityExpired, "its orders", || {
        let mut harness = harness();
        harness.submit(good());
        harness.send_command(CommandKind::Expire { security: SHARES[0], price: price("100") })
    }),
    (Reason::InDoubt, "lost adapter", || {
        let mut harness = harness();
        harness.submit(limit(ABROAD[0], BUY, "10", "100"));
        harness.send_command(CommandKind::Adapter { adapter: test_market::OUTSIDE_ADAPTER, connected: false })
    }),
];

pub(crate) const BOOKKEEPER: &[RefusalCase] = &[
    (Reason::BadTransaction, "trade without security", || {
        transaction(Movement { security: None, ..bought() })
    }),
    (Reason::BadTransaction, "trade of nothing", || transaction(Movement { qty: Qty::ZERO, ..bought() })),
    (Reason::UnknownStrategy, "transaction", || {
        transaction(Movement { strategy: test_market::NO_STRATEGY, ..bought() })
    }),
    (Reason::UnknownAccount, "transaction", || {
        transaction(Movement { account: test_market::NO_ACCOUNT, ..bought() })
    }),
    (Reason::UnknownSecurity, "transaction", || {
        transaction(Movement { security: Some(test_market::NO_SECURITY), ..bought() })
    }),
    (Reason::Overflow, "transaction", || {
        transaction(Movement { qty: Qty::MAX, price: Price::MAX, ..bought() })
    }),
    (Reason::UnknownScope, "limits", || {
        let scope = Scope::Strategy(test_market::NO_STRATEGY);
        harness().send_command(CommandKind::Limits { scope, limits: RiskLimits::default() })
    }),
    (Reason::UnknownScope, "switch", || {
        harness().send_command(CommandKind::Kill { scope: Scope::Account(test_market::NO_ACCOUNT), on: true })
    }),
    (Reason::UnknownExecution, "bust", || {
        let (mut harness, order) = working();
        // For an order that is still open, the shard would query its status at the venue.
        harness.report(order, VenueReport::Canceled(Reason::VenueCancelled));
        harness.report(order, VenueReport::Busted { exec: ExecRef(9) })
    }),
];
