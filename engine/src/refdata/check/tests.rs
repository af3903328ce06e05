use super::*;
use crate::id::AccountId;
use crate::number::{ContractSize, Money, Qty};
use crate::refdata::sample::{price, sound, usd};
use crate::refdata::{NotionalLimit, OptionKind};
use crate::time::Day;

/// Checks that a change to a valid set causes exactly these errors: table, row (from 1), column,
/// part of the problem.
fn check(change: impl FnOnce(&mut RefDataRows), expected: &[(RefDataTable, usize, &str, &str)]) {
    let mut rows = sound();
    change(&mut rows);
    let errors = RefData::check(rows).err().unwrap_or_default();
    let found: Vec<String> = errors.iter().map(RowError::to_string).collect();
    assert_eq!(errors.len(), expected.len(), "{found:#?}");
    for (error, &(table, row, column, problem)) in errors.iter().zip(expected) {
        assert_eq!((error.table, error.row + 1, error.column), (table, row, column), "{found:#?}");
        assert!(error.problem.contains(problem), "{error} without {problem:?}");
    }
}

use RefDataTable::{Accounts, Exchanges, Families, Securities, Strategies};

#[test]
fn a_sound_set_is_sorted_and_found_by_id_name_and_symbol() {
    let mut rows = sound();
    rows.securities.reverse();
    let data = RefData::check(rows).unwrap();
    assert_eq!(data.securities().iter().map(|row| row.id.0).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(data.by_symbol("ACME"), [SecurityId(1)]);
    assert!(data.by_symbol("NONE").is_empty());
    let option = data.security(SecurityId(2)).unwrap();
    assert_eq!((data.family_of(option).id, data.exchange_of(option).id), (FamilyId(2), ExchangeId(1)));
    assert_eq!(data.account(AccountId(1)).unwrap().name, "main");
    assert_eq!(data.exchange(ExchangeId(9)), None);
    assert_eq!(data.families().len() + data.exchanges().len() + data.accounts().len(), 3 + 2 + 2);
}

#[test]
fn the_default_account_is_the_only_one_that_fits() {
    let data = RefData::check(sound()).unwrap();
    let home = data.exchange(ExchangeId(1)).unwrap();
    assert_eq!(data.default_account(home).unwrap().id, AccountId(1));
    let mut rows = sound();
    rows.accounts[1].active = true;
    let data = RefData::check(rows).unwrap();
    assert_eq!(data.default_account(home), None);
}

#[test]
fn the_server_is_added_where_it_is_missing() {
    let mut rows = sound();
    rows.strategies.remove(0);
    let data = RefData::check(rows).unwrap();
    assert_eq!(data.strategy(StrategyId::SERVER).unwrap().name, "SERVER");
    assert_eq!(data.strategies().len(), 2);
    assert_eq!(RefData::check(RefDataRows::default()).unwrap().strategies().len(), 1);
}

#[test]
fn only_strategy_0_is_the_server() {
    let wrong_name = [(Strategies, 1, "name", "is named SERVER")];
    check(|rows| rows.strategies[0].name = "BOSS".into(), &wrong_name);
    let wrong_id = [(Strategies, 1, "id", "is strategy 0")];
    check(|rows| rows.strategies[0].id = StrategyId(7), &wrong_id);
}

#[test]
fn ids_are_unique_within_a_table() {
    let again = [
        (Exchanges, 2, "id", "1 is already used in an earlier row"),
        (Families, 3, "exchangeId", "no exchange 2"),
    ];
    check(|rows| rows.exchanges[1].id = ExchangeId(1), &again);
    check(
        |rows| rows.families[2].id = FamilyId(1),
        &[
            (Families, 3, "id", "1 is already used in an earlier row"),
            (Securities, 3, "securityFamilyId", "no family 3"),
        ],
    );
    check(
        |rows| rows.securities[2].id = SecurityId(2),
        &[(Securities, 3, "id", "2 is already used in an earlier row")],
    );
    check(
        |rows| rows.accounts[1].id = AccountId(1),
        &[(Accounts, 2, "id", "1 is already used in an earlier row")],
    );
    check(
        |rows| rows.strategies[1].id = StrategyId(0),
        &[
            (Strategies, 2, "id", "0 is already used in an earlier row"),
            (Strategies, 2, "name", "is named SERVER"),
        ],
    );
}

#[test]
fn names_are_unique_within_a_table() {
    check(
        |rows| rows.exchanges[1].name = "Home".into(),
        &[(Exchanges, 2, "name", "Home is already used in an earlier row")],
    );
    check(|rows| rows.families[1].name = "Stocks".into(), &[(Families, 2, "name", "earlier row")]);
    check(|rows| rows.accounts[1].name = "main".into(), &[(Accounts, 2, "name", "earlier row")]);
    check(
        |rows| rows.strategies[1].name = "SERVER".into(),
        &[(Strategies, 2, "name", "earlier row"), (Strategies, 2, "id", "is strategy 0")],
    );
}

#[test]
fn names_are_not_empty_and_have_no_control_characters() {
    check(|rows| rows.exchanges[0].name.clear(), &[(Exchanges, 1, "name", "empty")]);
    check(|rows| rows.families[0].name.clear(), &[(Families, 1, "name", "empty")]);
    check(|rows| rows.securities[0].symbol.clear(), &[(Securities, 1, "symbol", "empty")]);
    check(|rows| rows.accounts[0].name = "a\nb".into(), &[(Accounts, 1, "name", "control")]);
    check(|rows| rows.strategies[1].name = "\u{7f}".into(), &[(Strategies, 2, "name", "control")]);
    check(|rows| rows.strategies[1].name.clear(), &[(Strategies, 2, "name", "empty")]);
}

#[test]
fn a_strategy_name_is_one_segment_of_a_topic() {
    for name in ["a.b", "*", "a>", "a b"] {
        check(|rows| rows.strategies[1].name = name.into(), &[(Strategies, 2, "name", "dot, star")]);
    }
}

#[test]
fn a_symbol_names_one_security_on_its_exchange() {
    check(
        |rows| rows.securities[1].symbol = "ACME".into(),
        &[(Securities, 2, "symbol", "is security 1 on exchange 1")],
    );
    // On another exchange it may be listed again.
    check(|rows| rows.securities[2].symbol = "ACME".into(), &[]);
}

#[test]
fn references_must_exist() {
    check(|rows| rows.families[0].exchange = ExchangeId(9), &[(Families, 1, "exchangeId", "no exchange 9")]);
    check(
        |rows| rows.securities[0].family = FamilyId(9),
        &[(Securities, 1, "securityFamilyId", "no family 9")],
    );
    let no_security = [(Securities, 2, "underlyingId", "no security 9")];
    check(|rows| rows.securities[1].underlying = Some(SecurityId(9)), &no_security);
    let own = [(Securities, 2, "underlyingId", "its own underlying")];
    check(|rows| rows.securities[1].underlying = Some(SecurityId(2)), &own);
    let no_exchange = [(Accounts, 1, "exchangeIds", "no exchange 9")];
    check(|rows| rows.accounts[0].exchanges.push(ExchangeId(9)), &no_exchange);
    let twice = [(Accounts, 1, "exchangeIds", "exchange 1 is named twice")];
    check(|rows| rows.accounts[0].exchanges.push(ExchangeId(1)), &twice);
    let no_strategy = [(Accounts, 1, "strategyIds", "no strategy 9")];
    check(|rows| rows.accounts[0].strategies.push(StrategyId(9)), &no_strategy);
    let twice = [(Accounts, 1, "strategyIds", "strategy 0 is named twice")];
    check(|rows| rows.accounts[0].strategies = vec![StrategyId::SERVER; 2], &twice);
    let elsewhere = [(Accounts, 1, "exchangeIds", "exchange 1 is reached by SIM, the account by FIX")];
    check(|rows| rows.accounts[0].adapter_type = "FIX".into(), &elsewhere);
}

#[test]
fn bounds_of_the_value_are_above_zero_and_in_order() {
    let bound = |raw| Some(NotionalLimit { amount: Money::from_raw(raw), to_market: true });
    for raw in [0, -1] {
        let below = [(Families, 1, "minNotional", "is not above zero")];
        check(|rows| rows.families[0].limits.min_notional = bound(raw), &below);
        let below = [(Families, 1, "maxNotional", "is not above zero")];
        check(|rows| rows.families[0].limits.max_notional = bound(raw), &below);
    }
    for (min, max) in [(1, 1), (1, 2)] {
        check(
            |rows| {
                rows.families[0].limits.min_notional = bound(min);
                rows.families[0].limits.max_notional = bound(max);
            },
            &[],
        );
    }
    let turned = [(Families, 2, "maxNotional", "0.00000001 is below minNotional 0.00000002")];
    check(
        |rows| {
            rows.families[1].limits.min_notional = bound(2);
            rows.families[1].limits.max_notional = bound(1);
        },
        &turned,
    );
}

#[test]
fn a_security_id_has_20_bits() {
    let above = [(Securities, 1, "id", "is above 1048575"), (Securities, 2, "underlyingId", "no security 1")];
    check(|rows| rows.securities[0].id = SecurityId(1 << 20), &above);
}

#[test]
fn sizes_are_above_zero_and_commission_is_not_below() {
    let nothing = ["0", "-1"];
    for text in nothing {
        let size = ContractSize::parse(text.as_bytes()).unwrap();
        check(|rows| rows.families[0].contract_size = size, &[(Families, 1, "contractSize", text)]);
        let tick = price(text);
        check(|rows| rows.families[0].tick_size = tick, &[(Families, 1, "tickSize", text)]);
        let lot = Qty::parse(text.as_bytes()).unwrap();
        check(|rows| rows.families[0].lot_size = lot, &[(Families, 1, "lotSize", text)]);
    }
    check(|rows| rows.families[0].commission = Money::ZERO, &[]);
    let below = [(Families, 1, "commission", "-0.00000001 is below zero")];
    check(|rows| rows.families[0].commission = Money::from_raw(-1), &below);
}

#[test]
fn an_option_is_whole_and_only_an_option_is() {
    check(|rows| rows.securities[1].strike = None, &[(Securities, 2, "strike", "has a strike")]);
    check(|rows| rows.securities[1].strike = Some(price("0")), &[(Securities, 2, "strike", "above zero")]);
    check(|rows| rows.securities[1].option = None, &[(Securities, 2, "optionType", "CALL or a PUT")]);
    check(|rows| rows.securities[1].underlying = None, &[(Securities, 2, "underlyingId", "underlying")]);
    check(|rows| rows.securities[0].strike = Some(price("1")), &[(Securities, 1, "strike", "only")]);
    let only = [(Securities, 1, "optionType", "only an option")];
    check(|rows| rows.securities[0].option = Some(OptionKind::Put), &only);
}

#[test]
fn an_expirable_security_has_a_date() {
    check(|rows| rows.securities[1].expiration = None, &[(Securities, 2, "expiration", "no date")]);
    let lasting = [(Securities, 1, "expiration", "family 1 does not expire")];
    check(|rows| rows.securities[0].expiration = Some(Day(20_000)), &lasting);
    let wrong_family = [(Securities, 1, "securityFamilyId", "does not expire, but this does")];
    check(
        |rows| {
            rows.securities[0].kind = SecurityKind::Future;
            rows.securities[0].expiration = Some(Day(20_000));
        },
        &wrong_family,
    );
    // A bond may mature, if its family says so.
    check(|rows| rows.families[0].expirable = true, &[(Securities, 1, "expiration", "no date")]);
}

#[test]
fn a_pair_has_two_currencies() {
    check(|rows| rows.securities[2].base_currency = None, &[(Securities, 3, "baseCurrency", "a pair has")]);
    let same = [(Securities, 3, "baseCurrency", "USD is what the pair is priced in")];
    check(|rows| rows.securities[2].base_currency = Some(usd()), &same);
    let only = [(Securities, 1, "baseCurrency", "only a pair")];
    check(|rows| rows.securities[0].base_currency = Some(usd()), &only);
}

#[test]
fn the_market_begins_on_the_grid() {
    let off = [(Securities, 1, "startPrice", "10.005 is not a multiple of the tick size 0.01")];
    check(|rows| rows.securities[0].start_price = Some(price("10.005")), &off);
    let zero = [(Securities, 1, "startPrice", "not above zero")];
    check(|rows| rows.securities[0].start_price = Some(price("0")), &zero);
    check(|rows| rows.securities[0].start_price = None, &[]);
}

#[test]
fn all_errors_are_reported_at_once() {
    check(
        |rows| {
            rows.exchanges[0].name.clear();
            rows.families[0].tick_size = price("0");
            rows.securities[1].strike = None;
            rows.accounts[0].name.clear();
            rows.strategies[1].name = "a.b".into();
        },
        &[
            (Exchanges, 1, "name", "empty"),
            (Families, 1, "tickSize", "above zero"),
            (Securities, 2, "strike", "strike"),
            (Accounts, 1, "name", "empty"),
            (Strategies, 2, "name", "dot"),
        ],
    );
    let error = RowError { table: Families, row: 4, column: "tickSize", problem: "it is odd".into() };
    assert_eq!(error.to_string(), "families row 5: tickSize: it is odd");
}

#[test]
fn kinds_have_words() {
    for kind in SecurityKind::ALL {
        assert_eq!(SecurityKind::from_name(kind.name()), Some(kind));
    }
    for kind in [OptionKind::Call, OptionKind::Put] {
        assert_eq!(OptionKind::from_name(kind.name()), Some(kind));
    }
    assert_eq!(SecurityKind::from_name("stock"), None);
    let mut words: Vec<_> = RefDataTable::ALL.iter().map(|table| table.name()).collect();
    words.dedup();
    assert_eq!(words.len(), 5);
}

#[test]
fn the_largest_id_of_a_security_is_allowed() {
    let with = |id| {
        let mut rows = sound();
        rows.securities[2].id = SecurityId(id);
        RefData::check(rows)
    };
    assert!(with(SecurityId::MAX).is_ok() && with(SecurityId::MAX + 1).is_err());
}
