//! The five tables: their columns, spelt as in the REST interface, and the conversion of cells to a
//! row.

use pitlane_engine::id::{AccountId, AdapterId, ExchangeId, FamilyId, SecurityId, StrategyId};
use pitlane_engine::number::{ContractSize, Money, Price, Qty};
use pitlane_engine::refdata::{
    Exchange, NotionalLimit, OptionKind, OrderKinds, OrderLimits, Security, SecurityFamily, SecurityKind,
    StrategyInfo, TradingAccount,
};
use pitlane_engine::terms::OrderKind;
use pitlane_engine::time::{Day, TimeOfDay};

use pitlane_protocols::codes::WireName;

use super::table::RowCells;
use crate::time_zone::Zone;

/// Name of the adapter that always exists.
pub(super) const SIMULATED: &str = "SIM";

pub(super) const EXCHANGE: &[&str] =
    &["id", "name", "mic", "timeZone", "open", "close", "auctions", "adapterType"];

pub(super) fn exchange(cells: &mut RowCells<'_>, adapters: &[&str]) -> Exchange {
    let exchange = Exchange {
        id: ExchangeId(cells.number("id", ExchangeId::MAX)),
        name: cells.name("name"),
        mic: cells.text_like("mic", "a market identifier of four capitals or digits", is_mic),
        time_zone: cells.text_like("timeZone", "UTC or a zone such as Europe/Zurich", is_time_zone),
        open: cells.value("open", "a time of day (HH:MM)", TimeOfDay::parse),
        close: cells.value("close", "a time of day (HH:MM)", TimeOfDay::parse),
        auctions: cells.flag("auctions"),
        adapter: adapter(cells, adapters),
        adapter_type: cells.raw("adapterType").to_string(),
    };
    // A closing time before the opening time is a session over midnight.
    if TimeOfDay::parse(cells.raw("close").as_bytes()) == Ok(exchange.open) {
        cells.fault("close", "it opens and closes at once; the whole day is 00:00 to 24:00".into());
    }
    exchange
}

pub(super) const FAMILY: &[&str] = &[
    "id",
    "name",
    "symbolRoot",
    "exchangeId",
    "currency",
    "contractSize",
    "tickSize",
    "lotSize",
    "commission",
    "tradeable",
    "expirable",
    MIN_NOTIONAL,
    MIN_TO_MARKET,
    MAX_NOTIONAL,
    MAX_TO_MARKET,
    ORDER_TYPES,
];

pub(super) const MIN_NOTIONAL: &str = "minNotional";
pub(super) const MIN_TO_MARKET: &str = "applyMinToMarket";
pub(super) const MAX_NOTIONAL: &str = "maxNotional";
pub(super) const MAX_TO_MARKET: &str = "applyMaxToMarket";
pub(super) const ORDER_TYPES: &str = "orderTypes";

/// Columns of what a venue limits per order. A file without them has no limits.
pub(super) const LIMITS: &[&str] = &[MIN_NOTIONAL, MIN_TO_MARKET, MAX_NOTIONAL, MAX_TO_MARKET, ORDER_TYPES];

pub(super) fn family(cells: &mut RowCells<'_>) -> SecurityFamily {
    SecurityFamily {
        id: FamilyId(cells.number("id", FamilyId::MAX)),
        name: cells.name("name"),
        symbol_root: cells.text("symbolRoot"),
        exchange: ExchangeId(cells.number("exchangeId", ExchangeId::MAX)),
        currency: cells.currency("currency"),
        contract_size: cells.value("contractSize", "a decimal", ContractSize::parse),
        tick_size: cells.value("tickSize", "a decimal", Price::parse),
        lot_size: cells.value("lotSize", "a decimal", Qty::parse),
        commission: cells.value("commission", "a decimal", Money::parse),
        tradeable: cells.flag("tradeable"),
        expirable: cells.flag("expirable"),
        limits: OrderLimits {
            min_notional: notional(cells, MIN_NOTIONAL, MIN_TO_MARKET),
            max_notional: notional(cells, MAX_NOTIONAL, MAX_TO_MARKET),
            kinds: order_kinds(cells),
        },
    }
}

/// Reads a bound of the value, and whether it holds for market orders; it does unless the row says
/// no.
fn notional(cells: &mut RowCells<'_>, column: &str, flag: &str) -> Option<NotionalLimit> {
    let amount = cells.optional(column, |cells, column| cells.value(column, "a decimal", Money::parse));
    let to_market = cells.optional(flag, |cells, column| cells.flag(column));
    if amount.is_none() && to_market.is_some() {
        cells.fault(flag, format!("there is no {column} that could apply"));
    }
    amount.map(|amount| NotionalLimit { amount, to_market: to_market.unwrap_or(true) })
}

/// Reads names of order types separated by spaces; an empty list means all.
fn order_kinds(cells: &mut RowCells<'_>) -> OrderKinds {
    let names = OrderKind::ALL.map(OrderKind::wire_name);
    let kinds = cells.words(ORDER_TYPES, &names, OrderKind::from_wire_name);
    OrderKinds::of(kinds).unwrap_or_default()
}

pub(super) const SECURITY: &[&str] = &[
    "id",
    "symbol",
    "description",
    "type",
    "securityFamilyId",
    "isin",
    "underlyingId",
    "expiration",
    "strike",
    "optionType",
    "baseCurrency",
    "startPrice",
    "tradeable",
];

pub(super) fn security(cells: &mut RowCells<'_>) -> Security {
    let price = |cells: &mut RowCells<'_>, column: &str| cells.value(column, "a decimal", Price::parse);
    let kinds = SecurityKind::ALL.map(SecurityKind::name);
    let options = [OptionKind::Call.name(), OptionKind::Put.name()];
    Security {
        id: SecurityId(cells.number("id", SecurityId::MAX)),
        symbol: cells.name("symbol"),
        description: cells.text("description"),
        kind: cells.word("type", &kinds, SecurityKind::from_name).unwrap_or(SecurityKind::Stock),
        family: FamilyId(cells.number("securityFamilyId", FamilyId::MAX)),
        isin: cells.optional("isin", |cells, column| {
            cells.text_like(column, "an ISIN, or its check digit is wrong", is_isin)
        }),
        underlying: cells
            .optional("underlyingId", |cells, column| SecurityId(cells.number(column, SecurityId::MAX))),
        expiration: cells
            .optional("expiration", |cells, column| cells.value(column, "a date (YYYY-MM-DD)", Day::parse)),
        strike: cells.optional("strike", price),
        option: cells
            .optional("optionType", |cells, column| cells.word(column, &options, OptionKind::from_name))
            .flatten(),
        base_currency: cells.optional("baseCurrency", |cells, column| cells.currency(column)),
        start_price: cells.optional("startPrice", price),
        tradeable: cells.flag("tradeable"),
    }
}

pub(super) const ACCOUNT: &[&str] = &["id", "name", "active", "adapterType", "exchangeIds", STRATEGY_IDS];

/// A file without this column lets every strategy use every account.
pub(super) const STRATEGY_IDS: &str = "strategyIds";

pub(super) fn account(cells: &mut RowCells<'_>, adapters: &[&str]) -> TradingAccount {
    adapter(cells, adapters);
    TradingAccount {
        id: AccountId(cells.number("id", AccountId::MAX)),
        name: cells.name("name"),
        active: cells.flag("active"),
        adapter_type: cells.raw("adapterType").to_string(),
        exchanges: exchange_ids(cells),
        strategies: strategy_ids(cells),
    }
}

pub(super) const STRATEGY: &[&str] = &["id", "name", "autoActivate"];

pub(super) fn strategy(cells: &mut RowCells<'_>) -> StrategyInfo {
    StrategyInfo {
        id: StrategyId(cells.number("id", StrategyId::MAX)),
        name: cells.name("name"),
        auto_activate: cells.flag("autoActivate"),
    }
}

/// Reads the name of an adapter; its position is the [`AdapterId`].
fn adapter(cells: &mut RowCells<'_>, adapters: &[&str]) -> AdapterId {
    let index = |word: &str| adapters.iter().position(|name| *name == word);
    let index = cells.word("adapterType", adapters, index).unwrap_or_default();
    AdapterId(u8::try_from(index).expect("there are few adapters"))
}

/// Reads ids separated by spaces; an empty list is valid.
fn exchange_ids(cells: &mut RowCells<'_>) -> Vec<ExchangeId> {
    let mut ids = Vec::new();
    for word in cells.raw("exchangeIds").split(' ').filter(|word| !word.is_empty()) {
        match word.parse::<u16>() {
            Ok(id) => ids.push(ExchangeId(id)),
            Err(_) => cells.fault("exchangeIds", format!("{word:?} is not the id of an exchange")),
        }
    }
    ids
}

/// Sorted by number, so that the same strategies are the same data.
fn strategy_ids(cells: &mut RowCells<'_>) -> Vec<StrategyId> {
    let mut ids = Vec::new();
    for word in cells.raw(STRATEGY_IDS).split(' ').filter(|word| !word.is_empty()) {
        match word.parse::<u16>() {
            Ok(id) => ids.push(StrategyId(id)),
            Err(_) => cells.fault(STRATEGY_IDS, format!("{word:?} is not the id of a strategy")),
        }
    }
    ids.sort();
    ids
}

/// Checks a code of ISO 10383.
fn is_mic(text: &str) -> bool {
    text.len() == 4 && text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
}

fn is_time_zone(text: &str) -> bool {
    Zone::parse(text).is_ok()
}

/// Checks a code of ISO 6166: two letters, nine letters or digits, and a check digit by the Luhn
/// rule over all of them, where a letter counts as the two digits of its place after 9 (A is 10).
pub(super) fn is_isin(text: &str) -> bool {
    let bytes = text.as_bytes();
    let shaped = bytes.len() == 12
        && bytes[..2].iter().all(u8::is_ascii_uppercase)
        && bytes[2..11].iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
        && bytes[11].is_ascii_digit();
    if !shaped {
        return false;
    }
    let digits = bytes.iter().flat_map(|&b| match b {
        b'0'..=b'9' => [None, Some(b - b'0')],
        _ => [Some((b - b'A' + 10) / 10), Some((b - b'A' + 10) % 10)],
    });
    let digits: Vec<u8> = digits.flatten().collect();
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, &digit)| if at % 2 == 1 { digit * 2 / 10 + digit * 2 % 10 } else { digit })
        .map(u32::from)
        .sum();
    sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_isin_has_its_check_digit() {
        for good in ["US0378331005", "DE0007164600", "CH0038863350", "GB0002634946", "US88160R1014"] {
            assert!(is_isin(good), "{good}");
        }
        for bad in [
            "US0378331006",
            "US037833100",
            "us0378331005",
            "US03783310055",
            "1S0378331005",
            "",
            "ÜS0378331005",
        ] {
            assert!(!is_isin(bad), "{bad}");
        }
    }

    #[test]
    fn a_time_zone_is_one_that_exists() {
        for good in
            ["UTC", "Europe/Zurich", "America/New_York", "America/Argentina/Buenos_Aires", "Etc/GMT+1"]
        {
            assert!(is_time_zone(good), "{good}");
        }
        for bad in ["", "CET", "Europe/", "/Zurich", "Europe/Zü rich", "Europe/Zuerich"] {
            assert!(!is_time_zone(bad), "{bad}");
        }
    }
}
