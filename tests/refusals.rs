//! Every reason that a command can be rejected with is produced by a real shard, and no other
//! reason comes with it.

use std::collections::BTreeMap;

use pitlane_engine::command::{
    BudgetKind, CommandKind, ExecRef, Movement, MovementKind, RiskLimits, Scope, TradingSession, VenueReport,
};
use pitlane_engine::desk::{Desk, DeskSettings, IdBlock, Ticket};
use pitlane_engine::event::Event;
use pitlane_engine::id::{AdapterId, ExchangeId, IntId, OrderHandle, PortId, StrategyId, Uuid};
use pitlane_engine::mesh::{Depths, PortClass, PortEnd, mesh};
use pitlane_engine::number::{Money, Price, Qty};
use pitlane_engine::pages::LargePages;
use pitlane_engine::reason::Reason;
use pitlane_engine::settings::{Delays, ShardSettings};
use pitlane_engine::terms::{Changes, OrderKind, Side, Terms, Tif};
use pitlane_engine::time::{Day, NS_PER_S, Timestamp};
use pitlane_tests::shard_harness::{ShardHarness, limit, reasons};
use pitlane_tests::test_market::{self, ABROAD, FUTURES, HOME_ACCOUNTS, SHARES, money, price, qty};

/// One way to be rejected: the reason, a description, and the function that returns the events.
type RefusalCase = (Reason, &'static str, fn() -> Vec<Event>);

const BUY: Side = Side::Buy;
const SELL: Side = Side::Sell;

/// Returns an order that would be accepted.
fn good() -> Terms {
    limit(SHARES[0], BUY, "10", "100")
}

fn harness() -> ShardHarness {
    ShardHarness::new(ShardSettings::default())
}

fn submit(terms: Terms) -> Vec<Event> {
    harness().submit(terms).1
}

fn market(side: Side, tif: Tif) -> Terms {
    Terms {
        kind: OrderKind::Market,
        limit: Price::ZERO,
        limit_given: false,
        tif,
        ..limit(SHARES[0], side, "10", "0")
    }
}

fn stop(side: Side, at: &str) -> Terms {
    Terms { kind: OrderKind::Stop, stop: price(at), stop_given: true, ..market(side, Tif::Day) }
}

/// Submits under limits of the strategy.
fn limited(limits: RiskLimits, terms: Terms) -> Vec<Event> {
    let mut harness = harness();
    harness.trade(SHARES[0], "100", "1");
    harness.send_command(CommandKind::Limits { scope: Scope::Strategy(StrategyId(1)), limits });
    harness.submit(terms).1
}

/// Submits after the kill switch of a scope was set.
fn killed(scope: Scope, terms: Terms) -> Vec<Event> {
    let mut harness = harness();
    harness.send_command(CommandKind::Kill { scope, on: true });
    harness.submit(terms).1
}

fn close(harness: &mut ShardHarness, quantity: &str) -> Vec<Event> {
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
fn holding() -> ShardHarness {
    let mut harness = harness();
    harness.send_command(CommandKind::Transaction(bought()));
    harness
}

fn bought() -> Movement {
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

fn transaction(movement: Movement) -> Vec<Event> {
    harness().send_command(CommandKind::Transaction(movement))
}

/// Returns an acknowledged order at the external venue.
fn working() -> (ShardHarness, OrderHandle) {
    let mut harness = harness();
    let (order, _) = harness.submit(limit(ABROAD[0], BUY, "10", "100"));
    harness.report(order, VenueReport::Accepted);
    (harness, order)
}

fn rejecting(change: fn(&mut ShardSettings)) -> ShardHarness {
    let mut settings = ShardSettings::default();
    change(&mut settings);
    ShardHarness::new(settings)
}

const REFERENCE: &[RefusalCase] = &[
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

const FORM: &[RefusalCase] = &[
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

const IDENTITY: &[RefusalCase] = &[
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

const RISK: &[RefusalCase] = &[
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

const VENUE: &[RefusalCase] = &[
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

const ENDS: &[RefusalCase] = &[
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

const BOOKKEEPER: &[RefusalCase] = &[
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

const TABLES: [&[RefusalCase]; 7] = [REFERENCE, FORM, IDENTITY, RISK, VENUE, ENDS, BOOKKEEPER];

/// Reasons that no command can produce here, and where they come from.
const ELSEWHERE: &[(Reason, &str)] = &[
    (Reason::None, "nothing to explain"),
    (Reason::DuplicateId, "the desk's, see the test below"),
    (Reason::LaneFull, "the desk's, see the test below"),
    (Reason::Adjusted, "a reset finds nothing wrong unless we are wrong"),
    (Reason::Halted, "a word for gateways: the shard lets orders collect"),
    (Reason::StorageFailed, "the worker's, when the journal takes nothing more; see its tests"),
    (Reason::UnknownPosition, "the REST interface's: it finds positions by id"),
    (
        Reason::BrokerLost,
        "of a strategy in a process of its own, whose server is away; see the tests of strategies",
    ),
    (
        Reason::OwnerAway,
        "of a server of a cluster, when another owns the security; see the tests of clusters",
    ),
    (Reason::MissedFill, "no refusal: a fill that was missed, counted from the order status of the venue"),
    (Reason::ReportLost, "no refusal: of a server of a cluster, when the owner no longer has what it sent"),
];

#[test]
fn each_rejection_has_its_own_reason() {
    let mut failures = Vec::new();
    for (reason, story, case) in TABLES.into_iter().flatten() {
        let outcome = std::panic::catch_unwind(case).map(|events| (reasons(&events), events));
        match outcome {
            Ok((given, _)) if given == [*reason] => {}
            // A stop triggers, then finds no liquidity; a late fill is reported and alerted alike.
            Ok((given, events)) => failures.push(format!("{reason:?}, {story}: {given:?} {events:#?}")),
            Err(_) => failures.push(format!("{reason:?}, {story}: panic")),
        }
    }
    assert!(failures.is_empty(), "{} cases differ\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_reason_is_covered_or_produced_elsewhere() {
    let mut covered: BTreeMap<Reason, usize> = BTreeMap::new();
    for (reason, _, _) in TABLES.into_iter().flatten() {
        *covered.entry(*reason).or_default() += 1;
    }
    let missing: Vec<&Reason> = Reason::ALL
        .iter()
        .filter(|reason| {
            !covered.contains_key(reason) && !ELSEWHERE.iter().any(|(other, _)| other == *reason)
        })
        .collect();
    assert!(missing.is_empty(), "no test gives {missing:?}");
    let both: Vec<&Reason> =
        ELSEWHERE.iter().map(|(reason, _)| reason).filter(|reason| covered.contains_key(reason)).collect();
    assert!(both.is_empty(), "covered after all: {both:?}");
}

/// Returns a desk before one shard that is never polled, with lanes of this depth.
fn desk(depth: usize) -> (Desk, PortEnd, Ticket) {
    let (mut ports, _) = mesh(&[PortClass::Client], 1, Depths { commands: depth, events: depth });
    let settings = DeskSettings {
        port: PortId(0),
        shards: 1,
        orders_max: 8,
        ids_max: 16,
        finished_max: 8,
        prefix: b'd',
        seed: 1,
        pages: LargePages::NONE,
    };
    let desk = Desk::new(settings, IdBlock { next: 1, end: 100 });
    let id = IntId::parse(b"mine").expect("a good id");
    (desk, ports.remove(0), Ticket { source: test_market::source(0, 1), token: 1, id, ..Ticket::default() })
}

#[test]
fn the_desk_declines_a_duplicate_id() {
    let (mut desk, mut port, ticket) = desk(4);
    assert!(desk.submit(&mut port, ticket, good()).is_ok());
    let declined = desk.submit(&mut port, ticket, good()).map_err(|declined| declined.reason);
    assert_eq!(declined, Err(Reason::DuplicateId));
    let other = Ticket { source: test_market::source(0, 2), ..ticket };
    assert!(desk.submit(&mut port, other, good()).is_ok(), "ids are unique within their source");
}

#[test]
fn the_desk_declines_when_the_lane_is_full_and_keeps_nothing() {
    let (mut desk, mut port, ticket) = desk(1);
    let next = Ticket { id: IntId::NONE, ..ticket };
    assert!(desk.submit(&mut port, ticket, good()).is_ok());
    for _ in 0..3 {
        let declined = desk.submit(&mut port, next, good()).map_err(|declined| declined.reason);
        assert_eq!(declined, Err(Reason::LaneFull));
    }
    assert_eq!(desk.len(), 1);
}

/// The date of an order may pass while the order is on its way to the venue.
#[test]
fn a_gtd_order_in_flight_ends_at_its_date() {
    let mut harness = rejecting(|settings| settings.venue.delays.entry_ns = 10_000_000);
    let tif_date = harness.now.plus(5_000_000);
    let (order, _) = harness.submit(Terms { tif: Tif::Gtd, tif_date, ..good() });
    let mut events = Vec::new();
    while let Some(deadline) = harness.shard.deadline() {
        harness.now = deadline;
        events.extend(harness.send_command(CommandKind::Timer));
    }
    assert!(reasons(&events).contains(&Reason::ExpiredGtd), "{events:?}");
    assert_eq!(reasons(&harness.cancel(order)), [Reason::OrderFinished]);
}

#[test]
fn a_good_order_is_accepted() {
    let events = submit(good());
    assert_eq!(reasons(&events), []);
    assert_eq!(Delays::default().entry_ns, 0, "the venue answers at once");
}
