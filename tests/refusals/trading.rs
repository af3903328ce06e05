//! Refusals of the risk checks and of the venue.

use pitlane_engine::command::{BudgetKind, CommandKind, RiskLimits, Scope, TradingSession, VenueReport};
use pitlane_engine::event::Event;
use pitlane_engine::id::{AdapterId, StrategyId};
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::{Changes, Terms, Tif};
use pitlane_tests::shard_harness::limit;
use pitlane_tests::test_market::{self, ABROAD, HOME_ACCOUNTS, SHARES, money, qty};

use super::commands::{
    BUY, RefusalCase, SELL, close, good, harness, holding, killed, limited, market, rejecting, submit,
    working,
};

pub(crate) const RISK: &[RefusalCase] = &[
    (Reason::KillSwitch, "global", || killed(Scope::Global, good())),
    (Reason::KillSwitch, "strategy", || killed(Scope::Strategy(StrategyId(1)), good())),
    (Reason::KillSwitch, "account", || killed(Scope::Account(HOME_ACCOUNTS[0]), good())),
    (Reason::KillSwitch, "security", || killed(Scope::Security(SHARES[0]), good())),
    (Reason::KillSwitch, "adapter", || killed(Scope::Adapter(AdapterId::SIM), good())),
    (Reason::TradingDisabled, "strategy", || {
        limited(RiskLimits { trading_enabled: false, ..RiskLimits::default() }, good())
    }),
    (Reason::Restricted, "strategy", || {
        let mut harness = harness();
        let scope = Scope::Strategy(StrategyId(1));
        harness.send_command(CommandKind::Restrict { scope, security: SHARES[0], on: true });
        harness.submit(good()).1
    }),
    (Reason::MaxOrderQty, "order", || {
        limited(RiskLimits { max_order_qty: qty("9"), ..RiskLimits::default() }, good())
    }),
    (Reason::MaxOrderValue, "order", || {
        limited(RiskLimits { max_order_value: money("999"), ..RiskLimits::default() }, good())
    }),
    (Reason::PriceCollar, "order", || {
        limited(
            RiskLimits { price_collar_bp: 100, ..RiskLimits::default() },
            limit(SHARES[0], BUY, "1", "101.01"),
        )
    }),
    (Reason::NoReferencePrice, "collar", || {
        let mut harness = harness();
        let limits = RiskLimits { price_collar_bp: 100, ..RiskLimits::default() };
        harness.send_command(CommandKind::Limits { scope: Scope::Strategy(StrategyId(1)), limits });
        harness.submit(market(BUY, Tif::Day)).1
    }),
    (Reason::MaxOpenOrders, "order", || {
        let mut harness = harness();
        let scope = Scope::Strategy(StrategyId(1));
        harness.send_command(CommandKind::Limits {
            scope,
            limits: RiskLimits { max_open_orders: 1, ..RiskLimits::default() },
        });
        harness.budget(scope, BudgetKind::OpenOrders, 1);
        harness.submit(good());
        harness.submit(good()).1
    }),
    (Reason::MaxPosition, "order", || {
        limited(RiskLimits { max_position: qty("9"), ..RiskLimits::default() }, good())
    }),
    (Reason::OrderRate, "order", || {
        let mut harness = harness();
        let scope = Scope::Strategy(StrategyId(1));
        harness.send_command(CommandKind::Limits {
            scope,
            limits: RiskLimits { max_orders_per_s: 1, ..RiskLimits::default() },
        });
        harness.budget(scope, BudgetKind::OrdersPerSecond, 1);
        harness.submit(good());
        harness.submit(good()).1
    }),
    (Reason::DuplicateOrder, "order", || {
        let mut harness = harness();
        let limits = RiskLimits { duplicate_window_ms: 1_000, ..RiskLimits::default() };
        harness.send_command(CommandKind::Limits { scope: Scope::Strategy(StrategyId(1)), limits });
        harness.submit(good());
        harness.submit(good()).1
    }),
    (Reason::InsufficientFunds, "order", || {
        let mut harness = harness();
        let scope = Scope::Account(HOME_ACCOUNTS[0]);
        let limits = RiskLimits {
            credit: money("999"),
            credit_currency: test_market::currency("USD"),
            ..RiskLimits::default()
        };
        harness.send_command(CommandKind::Limits { scope, limits });
        harness.budget(scope, BudgetKind::Credit, money("999").raw());
        harness.submit(good()).1
    }),
    (Reason::PositionFlat, "close", || close(&mut harness(), "0")),
    (Reason::PositionTooSmall, "close", || close(&mut holding(), "11")),
    (Reason::CloseInProgress, "close", || {
        let mut harness = holding();
        close(&mut harness, "0");
        close(&mut harness, "0")
    }),
    (Reason::ReduceOnly, "modify", || {
        let mut harness = holding();
        let entered = close(&mut harness, "0");
        let order = entered.iter().find_map(Event::report).expect("it was entered").order;
        harness.modify(order, Changes::default().with_qty(qty("5")))
    }),
];

pub(crate) const VENUE: &[RefusalCase] = &[
    (Reason::VenueRejected, "outside", || {
        let mut harness = harness();
        let (order, _) = harness.submit(limit(ABROAD[0], BUY, "10", "100"));
        harness.report(order, VenueReport::Rejected(Reason::VenueRejected))
    }),
    (Reason::SelfTrade, "newcomer", || {
        let mut harness = harness();
        harness.submit(limit(SHARES[0], SELL, "10", "100"));
        harness.submit(good()).1
    }),
    (Reason::Ioc, "rest", || submit(Terms { tif: Tif::Ioc, ..good() })),
    (Reason::Fok, "whole", || submit(Terms { tif: Tif::Fok, ..good() })),
    (Reason::NoLiquidity, "immediate while closed", || {
        let mut harness = harness();
        harness.send_command(CommandKind::Session {
            exchange: test_market::AUCTIONS,
            session: TradingSession::Closed,
        });
        harness.submit(Terms { tif: Tif::Ioc, ..good() }).1
    }),
    (Reason::VenueCancelled, "outside", || {
        let (mut harness, order) = working();
        harness.report(order, VenueReport::Canceled(Reason::VenueCancelled))
    }),
    (Reason::VenueRandomReject, "dice", || {
        let mut harness = rejecting(|settings| settings.venue.reject_permille = 1_000);
        harness.submit(good()).1
    }),
    (Reason::PriceBand, "market far away", || {
        let mut harness = rejecting(|settings| settings.venue.band_bp = 100);
        harness.trade(SHARES[0], "100", "1");
        harness.quote(SHARES[0], ("99", "5"), ("150", "5"));
        harness.submit(limit(SHARES[0], BUY, "10", "150")).1
    }),
];
