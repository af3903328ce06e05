//! The small market of the tests: two simulated exchanges and one external venue, with one instance
//! of everything that can go wrong.

use std::sync::Arc;

use pitlane_engine::id::{
    AccountId, AdapterId, Currency, ExchangeId, FamilyId, Origin, PortId, SecurityId, Source, StrategyId,
};
use pitlane_engine::number::{ContractSize, Money, Price, Qty};
use pitlane_engine::refdata::{
    Exchange, NotionalLimit, OrderKinds, OrderLimits, RefData, RefDataRows, Security, SecurityFamily,
    SecurityKind, StrategyInfo, TradingAccount,
};
use pitlane_engine::terms::OrderKind;
use pitlane_engine::time::{Day, TimeOfDay, Timestamp};

/// Simulated; opens and closes with a call auction.
pub const AUCTIONS: ExchangeId = ExchangeId(1);
/// Simulated; always continuous unless a command changes it.
pub const PLAIN: ExchangeId = ExchangeId(2);
/// Behind [`OUTSIDE_ADAPTER`].
pub const OUTSIDE: ExchangeId = ExchangeId(3);
pub const EXCHANGES: [ExchangeId; 3] = [AUCTIONS, PLAIN, OUTSIDE];

pub const OUTSIDE_ADAPTER: AdapterId = AdapterId(1);

/// Securities that trade in auctions: lot 1, tick 0.01.
pub const SHARES: [SecurityId; 4] = [SecurityId(1), SecurityId(2), SecurityId(3), SecurityId(4)];
/// Lot 10, tick 0.25, contract size 50. The last two expire on the first and second day after
/// [`start`], the first much later.
pub const FUTURES: [SecurityId; 3] = [SecurityId(5), SecurityId(6), SecurityId(7)];
/// Securities of the external venue: lot 1, tick 0.05.
pub const ABROAD: [SecurityId; 3] = [SecurityId(8), SecurityId(9), SecurityId(10)];
pub const NOT_TRADEABLE: SecurityId = SecurityId(11);
pub const SECURITIES: [SecurityId; 10] = [
    SecurityId(1),
    SecurityId(2),
    SecurityId(3),
    SecurityId(4),
    SecurityId(5),
    SecurityId(6),
    SecurityId(7),
    SecurityId(8),
    SecurityId(9),
    SecurityId(10),
];
pub const NO_SECURITY: SecurityId = SecurityId(4_711);

/// Active accounts of the simulated exchanges.
pub const HOME_ACCOUNTS: [AccountId; 3] = [AccountId(1), AccountId(2), AccountId(3)];
pub const INACTIVE_ACCOUNT: AccountId = AccountId(4);
/// Trades on [`PLAIN`] only.
pub const PLAIN_ACCOUNT: AccountId = AccountId(5);
pub const OUTSIDE_ACCOUNT: AccountId = AccountId(6);
pub const OUTSIDE_ACCOUNTS: [AccountId; 2] = [OUTSIDE_ACCOUNT, AccountId(7)];
/// Reserved for [`STRATEGIES`]`[0]` and `[1]`.
pub const RESERVED_ACCOUNT: AccountId = AccountId(8);
pub const NO_ACCOUNT: AccountId = AccountId(99);

pub const STRATEGIES: [StrategyId; 4] = [StrategyId::SERVER, StrategyId(1), StrategyId(2), StrategyId(3)];
/// Known, but never started.
pub const IDLE_STRATEGY: StrategyId = StrategyId(4);
pub const NO_STRATEGY: StrategyId = StrategyId(77);

/// The first day of every run.
pub const START_DAY: i32 = 20_773;

/// The first instant of every run: 2026-11-16T08:00:00Z, a Monday.
pub fn start() -> Timestamp {
    Day(START_DAY).start().plus(8 * 3_600 * 1_000_000_000)
}

pub fn source(port: u8, session: u16) -> Source {
    Source { origin: Origin::Fix, port: PortId(port), session }
}

pub fn currency(text: &str) -> Currency {
    Currency::parse(text.as_bytes()).expect("a literal currency")
}

pub fn price(text: &str) -> Price {
    Price::parse(text.as_bytes()).expect("a literal price")
}

pub fn qty(text: &str) -> Qty {
    Qty::parse(text.as_bytes()).expect("a literal quantity")
}

pub fn money(text: &str) -> Money {
    Money::parse(text.as_bytes()).expect("a literal amount")
}

pub fn reference() -> Arc<RefData> {
    reference_of(11)
}

/// Returns the market with so many securities: those after the eleventh are of the external venue.
pub fn reference_of(securities: u32) -> Arc<RefData> {
    Arc::new(RefData::check(rows(securities)).expect("the little market is sound"))
}

/// Returns the market with venues that limit the value and the type of an order. Of the orders that
/// runs make, some are below, some between and some above the bounds.
pub fn limited_reference() -> Arc<RefData> {
    let mut rows = rows(11);
    for (family, limits) in rows.families.iter_mut().zip(order_limits()) {
        family.limits = limits;
    }
    Arc::new(RefData::check(rows).expect("the limits are sound"))
}

/// Returns limits for the families of [`SHARES`], [`FUTURES`] and [`ABROAD`].
pub fn order_limits() -> [OrderLimits; 3] {
    let bound = |amount: &str, to_market| Some(NotionalLimit { amount: money(amount), to_market });
    let without = |kind| OrderKinds::of(OrderKind::ALL.into_iter().filter(|other| *other != kind));
    let shares = OrderLimits {
        min_notional: bound("250", false),
        max_notional: bound("1000", true),
        ..OrderLimits::NONE
    };
    let futures = OrderLimits {
        max_notional: bound("450000", false),
        kinds: without(OrderKind::Stop).expect("three are left"),
        ..OrderLimits::NONE
    };
    let abroad = OrderLimits {
        min_notional: bound("200", true),
        kinds: without(OrderKind::StopLimit).expect("three are left"),
        ..OrderLimits::NONE
    };
    [shares, futures, abroad]
}

fn rows(securities: u32) -> RefDataRows {
    RefDataRows {
        exchanges: vec![
            exchange(AUCTIONS, "AUCT", true, AdapterId::SIM, "SIM"),
            exchange(PLAIN, "PLAI", false, AdapterId::SIM, "SIM"),
            exchange(OUTSIDE, "OUTS", false, OUTSIDE_ADAPTER, "FIX"),
        ],
        families: vec![
            family(1, "Shares", AUCTIONS, "1", "0.01", "1", "0.005"),
            SecurityFamily { expirable: true, ..family(2, "Futures", PLAIN, "50", "0.25", "10", "1.35") },
            family(3, "Abroad", OUTSIDE, "1", "0.05", "1", "0.01"),
        ],
        securities: (1..=securities).map(security).collect(),
        accounts: (1..=8).map(account).collect(),
        strategies: (0..=4).map(strategy).collect(),
    }
}

fn exchange(id: ExchangeId, mic: &str, auctions: bool, adapter: AdapterId, kind: &str) -> Exchange {
    Exchange {
        id,
        name: mic.to_string(),
        mic: mic.to_string(),
        time_zone: "UTC".to_string(),
        open: TimeOfDay(9 * 3_600),
        close: TimeOfDay(17 * 3_600),
        auctions,
        adapter,
        adapter_type: kind.to_string(),
    }
}

fn family(
    id: u32,
    name: &str,
    exchange: ExchangeId,
    size: &str,
    tick: &str,
    lot: &str,
    commission: &str,
) -> SecurityFamily {
    SecurityFamily {
        id: FamilyId(id),
        name: name.to_string(),
        symbol_root: name.to_uppercase(),
        exchange,
        currency: currency(if id == 2 { "EUR" } else { "USD" }),
        contract_size: ContractSize::parse(size.as_bytes()).expect("a literal size"),
        tick_size: price(tick),
        lot_size: qty(lot),
        commission: money(commission),
        limits: OrderLimits::NONE,
        tradeable: true,
        expirable: false,
    }
}

fn security(id: u32) -> Security {
    Security {
        id: SecurityId(id),
        symbol: format!("S{id}"),
        description: format!("Security {id}"),
        kind: if (5..=7).contains(&id) { SecurityKind::Future } else { SecurityKind::Stock },
        family: FamilyId(match id {
            1..=4 | 11 => 1,
            5..=7 => 2,
            _ => 3,
        }),
        isin: None,
        underlying: None,
        expiration: match id {
            5 => Some(Day(START_DAY + 1_001)),
            6..=7 => Some(Day(START_DAY + id as i32 - 5)),
            _ => None,
        },
        strike: None,
        option: None,
        base_currency: None,
        start_price: Some(price("100")),
        tradeable: id != NOT_TRADEABLE.0,
    }
}

fn account(id: u16) -> TradingAccount {
    let abroad = OUTSIDE_ACCOUNTS.contains(&AccountId(id));
    TradingAccount {
        id: AccountId(id),
        name: format!("A{id}"),
        active: AccountId(id) != INACTIVE_ACCOUNT,
        adapter_type: if abroad { "FIX" } else { "SIM" }.to_string(),
        exchanges: if AccountId(id) == PLAIN_ACCOUNT { vec![PLAIN] } else { vec![] },
        strategies: if AccountId(id) == RESERVED_ACCOUNT { STRATEGIES[..2].to_vec() } else { vec![] },
    }
}

fn strategy(id: u16) -> StrategyInfo {
    let name = if id == 0 { "SERVER".to_string() } else { format!("STRATEGY{id}") };
    StrategyInfo { id: StrategyId(id), name, auto_activate: true }
}
