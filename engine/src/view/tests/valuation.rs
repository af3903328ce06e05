use super::*;

/// Returns securities 1 and 2 in USD with contract size 10, 3 in EUR, 4 in CHF, 5 = EUR/USD, 6 =
/// USD/CHF, 7 = EUR/USD elsewhere.
pub(super) fn reference() -> RefData {
    let mut rows = RefDataRows::default();
    rows.exchanges.push(Exchange {
        id: ExchangeId(1),
        name: "one".into(),
        mic: "XONE".into(),
        time_zone: "UTC".into(),
        open: TimeOfDay(0),
        close: TimeOfDay(86_400),
        auctions: false,
        adapter: AdapterId::SIM,
        adapter_type: "SIM".into(),
    });
    for (number, code, size) in [(1, "USD", 10), (2, "EUR", 1), (3, "CHF", 1), (4, "USD", 1)] {
        rows.families.push(SecurityFamily {
            id: FamilyId(number),
            name: format!("{code} {size}"),
            symbol_root: code.into(),
            exchange: ExchangeId(1),
            currency: currency(code),
            contract_size: ContractSize::whole(size).unwrap(),
            tick_size: price("0.01"),
            lot_size: qty("1"),
            commission: Money::ZERO,
            limits: OrderLimits::NONE,
            tradeable: true,
            expirable: false,
        });
    }
    let plan = [
        (1, 1, None),
        (2, 1, None),
        (3, 2, None),
        (4, 3, None),
        (5, 4, Some("EUR")),
        (6, 3, Some("USD")),
        (7, 4, Some("EUR")),
    ];
    for (number, family, base) in plan {
        rows.securities.push(Security {
            id: SecurityId(number),
            symbol: format!("S{number}"),
            description: String::new(),
            kind: if base.is_some() { SecurityKind::Forex } else { SecurityKind::Stock },
            family: FamilyId(family),
            isin: None,
            underlying: None,
            expiration: None,
            strike: None,
            option: None,
            base_currency: base.map(currency),
            start_price: None,
            tradeable: true,
        });
    }
    RefData::check(rows).unwrap()
}

pub(super) fn quote(bench: &mut ViewBench, security: u32, bid: &str, ask: &str, last: &str) {
    let size = |text: &str| if text.is_empty() { Qty::ZERO } else { qty("1") };
    let number = |text: &str| if text.is_empty() { Price::ZERO } else { price(text) };
    bench.emit(
        0,
        EventKind::Tick(Tick {
            security: SecurityId(security),
            bid: number(bid),
            bid_size: size(bid),
            ask: number(ask),
            ask_size: size(ask),
            last: number(last),
            traded: !last.is_empty(),
            ..Tick::default()
        }),
    );
}

pub(super) fn hold(
    bench: &mut ViewBench,
    strategy: u16,
    security: u32,
    qty: Qty,
    cost: Money,
    realized: Money,
) {
    let after = PositionState { qty, cost, realized };
    let what = Adjustment::Position { security: SecurityId(security), before: after, after };
    bench.emit(0, EventKind::Adjusted { strategy: StrategyId(strategy), what });
}

fn pay(bench: &mut ViewBench, strategy: u16, code: &str, after: Money) {
    let what = Adjustment::Cash { currency: currency(code), before: after, after };
    bench.emit(0, EventKind::Adjusted { strategy: StrategyId(strategy), what });
}

fn valued(bench: &ViewBench, security: u32) -> Option<Valuation> {
    let position = bench.view.position(PositionId::new(StrategyId(1), SecurityId(security))).unwrap();
    bench.view.valuation(&position, &reference())
}

#[test]
fn a_long_position_is_worth_the_bid_a_short_one_the_ask() {
    let mut bench = ViewBench::new(1);
    quote(&mut bench, 1, "99", "101", "100");
    quote(&mut bench, 2, "99", "101", "100");
    hold(&mut bench, 1, 1, qty("2"), money("1900"), Money::ZERO);
    hold(&mut bench, 1, 2, qty("-2"), money("-1900"), Money::ZERO);
    let long = valued(&bench, 1).unwrap();
    assert_eq!((long.currency, long.avg_price), (currency("USD"), Some(price("95"))));
    assert_eq!((long.market_price, long.market_value), (Some(price("99")), Some(money("1980"))));
    assert_eq!(long.unrealized, Some(money("80")));
    let short = valued(&bench, 2).unwrap();
    assert_eq!((short.market_price, short.market_value), (Some(price("101")), Some(money("-2020"))));
    assert_eq!((short.avg_price, short.unrealized), (Some(price("95")), Some(money("-120"))));
}

#[test]
fn without_a_quote_the_last_price_counts_and_without_any_nothing_does() {
    let mut bench = ViewBench::new(1);
    hold(&mut bench, 1, 1, qty("2"), money("1900"), Money::ZERO);
    let dark = valued(&bench, 1).unwrap();
    assert_eq!((dark.market_price, dark.market_value, dark.unrealized), (None, None, None));
    quote(&mut bench, 1, "", "101", "100");
    assert_eq!(valued(&bench, 1).unwrap().market_price, Some(price("100")));
    quote(&mut bench, 1, "", "101", "");
    assert_eq!(valued(&bench, 1).unwrap().market_price, None);
}

#[test]
fn a_flat_position_has_a_last_price_and_no_value() {
    let mut bench = ViewBench::new(1);
    quote(&mut bench, 1, "99", "101", "100");
    hold(&mut bench, 1, 1, Qty::ZERO, Money::ZERO, money("12"));
    let flat = valued(&bench, 1).unwrap();
    assert_eq!((flat.avg_price, flat.market_price), (None, Some(price("100"))));
    assert_eq!((flat.market_value, flat.unrealized), (Some(Money::ZERO), Some(Money::ZERO)));
    hold(&mut bench, 1, 99, Qty::ZERO, Money::ZERO, Money::ZERO);
    assert_eq!(valued(&bench, 99), None);
}

#[test]
fn an_uncountable_value_is_absent() {
    let mut bench = ViewBench::new(1);
    quote(&mut bench, 1, "90000000000", "90000000000", "");
    hold(&mut bench, 1, 1, Qty::MAX, Money::MIN, Money::ZERO);
    let huge = valued(&bench, 1).unwrap();
    assert_eq!((huge.market_value, huge.unrealized), (None, None));
    hold(&mut bench, 1, 1, qty("0.01"), Money::MIN, Money::ZERO);
    let deep = valued(&bench, 1).unwrap();
    assert_eq!((deep.market_value, deep.unrealized), (Some(money("9000000000")), None));
    assert_eq!(deep.avg_price, None);
}

#[test]
fn net_liquidation_is_cash_and_market_values_in_the_base_currency() {
    let mut bench = ViewBench::new(1);
    quote(&mut bench, 1, "99", "101", "100");
    quote(&mut bench, 3, "50", "51", "50");
    // EUR/USD directly, CHF by USD/CHF upside down. The pair with the lower id has no price.
    quote(&mut bench, 7, "1.10", "1.20", "");
    quote(&mut bench, 6, "0.80", "0.90", "");
    pay(&mut bench, 1, "USD", money("1000"));
    pay(&mut bench, 1, "CHF", money("90"));
    pay(&mut bench, 2, "CHF", money("-80"));
    hold(&mut bench, 1, 1, qty("2"), money("1900"), money("5"));
    hold(&mut bench, 1, 3, qty("10"), money("400"), Money::ZERO);
    let portfolio = bench.view.portfolio(Some(StrategyId(1)), currency("USD"), &reference());
    // 1000 + 2 × 99 × 10, 10 × 50 × 1.10, 90 ÷ 0.90.
    assert_eq!(portfolio.missing, []);
    assert_eq!(portfolio.cash, Some(money("1100")));
    assert_eq!(portfolio.market_value, Some(money("2530")));
    assert_eq!(portfolio.net_liquidation, Some(money("3630")));
    assert_eq!((portfolio.realized, portfolio.unrealized), (Some(money("5")), Some(money("190"))));
    let codes: Vec<_> = portfolio.holdings.iter().map(|holding| holding.currency.to_string()).collect();
    assert_eq!(codes, ["CHF", "EUR", "USD"]);
    assert_eq!(portfolio.holdings[1].market_value, Some(money("500")));
    // A debt is paid at the other side of the quote.
    let debt = bench.view.portfolio(Some(StrategyId(2)), currency("USD"), &reference());
    assert_eq!(debt.net_liquidation, Some(money("-100")));
    // All strategies together.
    let all = bench.view.portfolio(None, currency("USD"), &reference());
    assert_eq!(all.holdings[0].cash, Some(money("10")));
}

#[test]
fn an_inconvertible_currency_is_named() {
    let mut bench = ViewBench::new(1);
    quote(&mut bench, 5, "0", "0", "0");
    pay(&mut bench, 1, "USD", money("7"));
    pay(&mut bench, 1, "JPY", money("100"));
    pay(&mut bench, 1, "GBP", Money::ZERO);
    pay(&mut bench, 1, "EUR", money("1"));
    hold(&mut bench, 1, 1, qty("2"), money("1900"), Money::ZERO);
    hold(&mut bench, 2, 1, qty("2"), money("1900"), Money::ZERO);
    hold(&mut bench, 1, 50, qty("2"), money("1900"), Money::ZERO);
    let portfolio = bench.view.portfolio(None, currency("USD"), &reference());
    assert_eq!(portfolio.net_liquidation, Some(money("7")));
    let named = [
        Missing::Price(SecurityId(1)),
        Missing::Reference(SecurityId(50)),
        Missing::Rate(currency("EUR")),
        Missing::Rate(currency("JPY")),
    ];
    assert_eq!(portfolio.missing, named);
}

#[test]
fn sums_that_cannot_be_counted_are_absent_and_named() {
    let mut bench = ViewBench::new(1);
    quote(&mut bench, 1, "90000000000", "90000000000", "");
    pay(&mut bench, 1, "USD", money("7"));
    hold(&mut bench, 1, 1, Qty::MAX, Money::ZERO, money("2"));
    let portfolio = bench.view.portfolio(None, currency("USD"), &reference());
    assert_eq!((portfolio.net_liquidation, portfolio.cash), (None, None));
    assert_eq!(portfolio.missing, [Missing::TooLarge(currency("USD"))]);
    let holding = portfolio.holdings[0];
    assert_eq!((holding.cash, holding.market_value), (Some(money("7")), None));
    // Two strategies that fit alone and not together; and one that is too large only in the base
    // currency.
    pay(&mut bench, 2, "EUR", Money::MAX);
    quote(&mut bench, 5, "1.10", "1.20", "");
    let portfolio = bench.view.portfolio(Some(StrategyId(2)), currency("USD"), &reference());
    assert_eq!(portfolio.missing, [Missing::TooLarge(currency("EUR"))]);
    pay(&mut bench, 3, "EUR", Money::MAX);
    let both = bench.view.portfolio(None, currency("EUR"), &reference());
    assert!(both.missing.contains(&Missing::TooLarge(currency("EUR"))));
}

#[test]
fn an_amount_is_converted_at_the_worse_side_of_the_quote() {
    let mut bench = ViewBench::new(1);
    quote(&mut bench, 5, "1.10", "1.25", "");
    let converted = |amount: &str, from: &str, to: &str| {
        bench.view.convert(money(amount), currency(from), currency(to), &reference())
    };
    assert_eq!(converted("10", "EUR", "USD"), Some(money("11")));
    assert_eq!(converted("-10", "EUR", "USD"), Some(money("-12.5")));
    assert_eq!(converted("10", "USD", "EUR"), Some(money("8")));
    assert_eq!(converted("10", "USD", "USD"), Some(money("10")));
    assert_eq!(converted("10", "USD", "JPY"), None);
    assert_eq!(bench.view.convert(Money::MAX, currency("EUR"), currency("USD"), &reference()), None);
}
