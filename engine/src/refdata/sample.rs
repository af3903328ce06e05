//! A small valid set of reference data, for tests to modify, also for tests of other crates.

use super::{
    Exchange, OptionKind, OrderLimits, RefDataRows, Security, SecurityFamily, SecurityKind, StrategyInfo,
    TradingAccount,
};
use crate::id::{AccountId, AdapterId, Currency, ExchangeId, FamilyId, SecurityId, StrategyId};
use crate::number::{ContractSize, Money, Price, Qty};
use crate::time::{Day, TimeOfDay};

pub fn price(text: &str) -> Price {
    Price::parse(text.as_bytes()).expect("a valid sample")
}

pub fn usd() -> Currency {
    Currency::parse(b"USD").expect("a valid sample")
}

/// Returns two exchanges; a stock, an option on it, and a currency pair; two accounts, the second
/// inactive; one strategy.
pub fn sound() -> RefDataRows {
    let exchange = |id, name: &str| Exchange {
        id: ExchangeId(id),
        name: name.into(),
        mic: "XTST".into(),
        time_zone: "UTC".into(),
        open: TimeOfDay(0),
        close: TimeOfDay(86_400),
        auctions: false,
        adapter: AdapterId::SIM,
        adapter_type: "SIM".into(),
    };
    let family = |id, name: &str, exchange, expirable| SecurityFamily {
        id: FamilyId(id),
        name: name.into(),
        symbol_root: String::new(),
        exchange: ExchangeId(exchange),
        currency: usd(),
        contract_size: ContractSize::ONE,
        tick_size: price("0.01"),
        lot_size: Qty::whole(1).expect("a valid sample"),
        commission: Money::ZERO,
        limits: OrderLimits::NONE,
        tradeable: true,
        expirable,
    };
    let stock = Security {
        id: SecurityId(1),
        symbol: "ACME".into(),
        description: "Acme".into(),
        kind: SecurityKind::Stock,
        family: FamilyId(1),
        isin: None,
        underlying: None,
        expiration: None,
        strike: None,
        option: None,
        base_currency: None,
        start_price: Some(price("10")),
        tradeable: true,
    };
    let option = Security {
        id: SecurityId(2),
        symbol: "ACME C10".into(),
        kind: SecurityKind::Option,
        family: FamilyId(2),
        underlying: Some(SecurityId(1)),
        expiration: Some(Day(20_000)),
        strike: Some(price("10")),
        option: Some(OptionKind::Call),
        ..stock.clone()
    };
    let pair = Security {
        id: SecurityId(3),
        symbol: "EURUSD".into(),
        kind: SecurityKind::Forex,
        family: FamilyId(3),
        base_currency: Some(Currency::parse(b"EUR").expect("a valid sample")),
        ..stock.clone()
    };
    let account = |id, name: &str, active| TradingAccount {
        id: AccountId(id),
        name: name.into(),
        active,
        adapter_type: "SIM".into(),
        exchanges: vec![ExchangeId(1)],
        strategies: Vec::new(),
    };
    let strategy =
        |id, name: &str| StrategyInfo { id: StrategyId(id), name: name.into(), auto_activate: true };
    RefDataRows {
        exchanges: vec![exchange(1, "Home"), exchange(2, "Away")],
        families: vec![
            family(1, "Stocks", 1, false),
            family(2, "Options", 1, true),
            family(3, "Pairs", 2, false),
        ],
        securities: vec![stock, option, pair],
        accounts: vec![account(1, "main", true), account(2, "spare", false)],
        strategies: vec![strategy(0, "SERVER"), strategy(1, "momentum")],
    }
}
