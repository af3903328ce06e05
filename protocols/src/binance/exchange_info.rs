//! Instruments of the venue: the answer to `GET /api/v3/exchangeInfo`, see `rest-api.md` and
//! `filters.md`.
//!
//! Only what our reference data have a place for is read: the assets, the filters `PRICE_FILTER`,
//! `LOT_SIZE` and `NOTIONAL` or `MIN_NOTIONAL`, the order types, and whether the symbol is traded.
//! The venue itself checks the other filters.

use pitlane_engine::id::Currency;
use pitlane_engine::number::{Money, Price, Qty};
use pitlane_engine::refdata::{NotionalLimit, OrderKinds, OrderLimits};
use pitlane_engine::terms::OrderKind;
use pitlane_engine::text::TextError;
use serde::Deserialize;

/// A symbol of the venue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VenueSymbol {
    pub symbol: String,
    /// Names of the assets, for people.
    pub base_asset: String,
    pub quote_asset: String,
    /// The terms, or why our reference data cannot have them.
    pub terms: Result<SymbolTerms, SymbolProblem>,
}

/// What orders of a symbol must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolTerms {
    pub base: Currency,
    pub quote: Currency,
    pub tick_size: Price,
    pub lot_size: Qty,
    pub limits: OrderLimits,
}

/// Why a symbol cannot become a security.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SymbolProblem {
    /// The venue does not trade it, or not on its spot market.
    NotTraded,
    /// The code of an asset is no currency of ours.
    Asset,
    /// A filter is missing, is not a decimal, has no step, or admits no value.
    Filters,
    /// The venue takes none of our order types.
    OrderTypes,
}

impl SymbolProblem {
    /// Returns the problem as the end of a sentence about symbols.
    pub fn words(self) -> &'static str {
        match self {
            SymbolProblem::NotTraded => "the venue does not trade them on its spot market now",
            SymbolProblem::Asset => "the code of an asset has not one to eight capitals or digits",
            SymbolProblem::Filters => "they have no usable PRICE_FILTER, LOT_SIZE or NOTIONAL",
            SymbolProblem::OrderTypes => "the venue takes neither LIMIT nor MARKET orders for them",
        }
    }
}

#[derive(Debug, Deserialize)]
struct ExchangeInfoBody {
    symbols: Vec<SymbolBody>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SymbolBody {
    symbol: String,
    status: String,
    base_asset: String,
    quote_asset: String,
    is_spot_trading_allowed: bool,
    #[serde(default)]
    order_types: Option<Vec<String>>,
    filters: Vec<FilterBody>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FilterBody {
    filter_type: String,
    #[serde(default)]
    tick_size: Option<String>,
    #[serde(default)]
    step_size: Option<String>,
    #[serde(default)]
    min_notional: Option<String>,
    #[serde(default)]
    max_notional: Option<String>,
    /// Of `MIN_NOTIONAL`.
    #[serde(default)]
    apply_to_market: Option<bool>,
    #[serde(default)]
    apply_min_to_market: Option<bool>,
    #[serde(default)]
    apply_max_to_market: Option<bool>,
}

/// Reads the answer of the venue: all symbols in its order, or what is wrong with the answer.
pub fn parse_exchange_info(json: &[u8]) -> Result<Vec<VenueSymbol>, String> {
    let body: ExchangeInfoBody = serde_json::from_slice(json).map_err(|error| error.to_string())?;
    Ok(body.symbols.into_iter().map(VenueSymbol::of).collect())
}

impl VenueSymbol {
    fn of(body: SymbolBody) -> VenueSymbol {
        let terms = terms_of(&body);
        let SymbolBody { symbol, base_asset, quote_asset, .. } = body;
        VenueSymbol { symbol, base_asset, quote_asset, terms }
    }
}

fn terms_of(body: &SymbolBody) -> Result<SymbolTerms, SymbolProblem> {
    if body.status != "TRADING" || !body.is_spot_trading_allowed {
        return Err(SymbolProblem::NotTraded);
    }
    let currency = |asset: &str| Currency::parse(asset.as_bytes()).map_err(|_| SymbolProblem::Asset);
    let filter = |name: &str| body.filters.iter().find(|filter| filter.filter_type == name);
    let tick = filter("PRICE_FILTER").and_then(|filter| filter.tick_size.as_deref());
    let lot = filter("LOT_SIZE").and_then(|filter| filter.step_size.as_deref());
    let tick = tick.and_then(|text| Price::parse(text.as_bytes()).ok());
    let lot = lot.and_then(|text| Qty::parse(text.as_bytes()).ok());
    Ok(SymbolTerms {
        base: currency(&body.base_asset)?,
        quote: currency(&body.quote_asset)?,
        // A step of zero means that the venue has no such rule. Ours must have one.
        tick_size: tick.filter(|tick| tick.is_positive()).ok_or(SymbolProblem::Filters)?,
        lot_size: lot.filter(|lot| lot.is_positive()).ok_or(SymbolProblem::Filters)?,
        limits: limits_of(body)?,
    })
}

fn limits_of(body: &SymbolBody) -> Result<OrderLimits, SymbolProblem> {
    let filter = |name: &str| body.filters.iter().find(|filter| filter.filter_type == name);
    // A symbol has one of them.
    let bounds = filter("NOTIONAL").or_else(|| filter("MIN_NOTIONAL"));
    let min = bounds.map(|filter| {
        let to_market = filter.apply_min_to_market.or(filter.apply_to_market);
        notional(filter.min_notional.as_deref(), to_market)
    });
    let max = bounds.map(|filter| notional(filter.max_notional.as_deref(), filter.apply_max_to_market));
    let (min, max) = (min.transpose()?.flatten(), max.transpose()?.flatten());
    if min.zip(max).is_some_and(|(min, max)| min.amount > max.amount) {
        return Err(SymbolProblem::Filters);
    }
    Ok(OrderLimits { min_notional: min, max_notional: max, kinds: kinds_of(body)? })
}

/// Reads a bound of the value of an order; zero is none.
fn notional(amount: Option<&str>, to_market: Option<bool>) -> Result<Option<NotionalLimit>, SymbolProblem> {
    let Some(amount) = amount else { return Ok(None) };
    let amount = match Money::parse(amount.as_bytes()) {
        Ok(amount) if !amount.is_negative() => amount,
        // No order has a value that we cannot count.
        Err(TextError::Range) => return Ok(None),
        Ok(_)
        | Err(TextError::Empty | TextError::Character | TextError::TooLong | TextError::TooManyDecimals) => {
            return Err(SymbolProblem::Filters);
        }
    };
    let limit = NotionalLimit { amount, to_market: to_market.unwrap_or(true) };
    Ok(amount.is_positive().then_some(limit))
}

/// Returns our order types that reach the venue as one of its own. Stops wait in the engine: they
/// leave as market orders, stop limits as limit orders.
fn kinds_of(body: &SymbolBody) -> Result<OrderKinds, SymbolProblem> {
    let Some(types) = &body.order_types else { return Ok(OrderKinds::ALL) };
    let is_taken = |kind: &OrderKind| {
        let needed = if kind.has_limit() { "LIMIT" } else { "MARKET" };
        types.iter().any(|name| name == needed)
    };
    OrderKinds::of(OrderKind::ALL.into_iter().filter(is_taken)).ok_or(SymbolProblem::OrderTypes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a symbol in the form of `rest-api.md`.
    fn symbol(name: &str, assets: [&str; 2], status: &str, filters: &str) -> String {
        let [base, quote] = assets;
        format!(
            r#"{{"symbol":"{name}","status":"{status}","baseAsset":"{base}","baseAssetPrecision":8,
               "quoteAsset":"{quote}","orderTypes":["LIMIT","MARKET"],"icebergAllowed":true,
               "isSpotTradingAllowed":true,"filters":[{filters}],"permissionSets":[[]]}}"#
        )
    }

    const FILTERS: &str = r#"
        {"filterType":"PRICE_FILTER","minPrice":"0.01000000","maxPrice":"1000000.00000000","tickSize":"0.01000000"},
        {"filterType":"LOT_SIZE","minQty":"0.00001000","maxQty":"9000.00000000","stepSize":"0.00001000"},
        {"filterType":"ICEBERG_PARTS","limit":10},
        {"filterType":"MARKET_LOT_SIZE","minQty":"0.00000000","maxQty":"129.6","stepSize":"0.00000000"},
        {"filterType":"NOTIONAL","minNotional":"5.00000000","applyMinToMarket":true}"#;

    fn parse(symbols: &[String]) -> Result<Vec<VenueSymbol>, String> {
        let list = symbols.join(",");
        parse_exchange_info(format!(r#"{{"timezone":"UTC","rateLimits":[],"symbols":[{list}]}}"#).as_bytes())
    }

    #[test]
    fn filters_become_tick_and_lot() {
        let found = parse(&[symbol("BTCUSDT", ["BTC", "USDT"], "TRADING", FILTERS)]).unwrap();
        assert_eq!((found[0].symbol.as_str(), found[0].base_asset.as_str()), ("BTCUSDT", "BTC"));
        let terms = found[0].terms.unwrap();
        assert_eq!((terms.base.as_str(), terms.quote.as_str()), ("BTC", "USDT"));
        assert_eq!(
            (terms.tick_size.to_string(), terms.lot_size.to_string()),
            ("0.01".into(), "0.00001".into())
        );
    }

    #[test]
    fn filters_and_order_types_become_limits() {
        let limits = |types: &str| {
            let text = symbol("BTCUSDT", ["BTC", "USDT"], "TRADING", FILTERS);
            let text = text.replace(r#"["LIMIT","MARKET"]"#, types);
            parse(&[text]).unwrap()[0].terms.map(|terms| terms.limits)
        };
        let own = r#"{"filterType":"NOTIONAL","minNotional":"5.00000000","applyMinToMarket":true}"#;
        let other = |filter: &str| {
            let text = symbol("BTCUSDT", ["BTC", "USDT"], "TRADING", &FILTERS.replace(own, filter));
            parse(&[text]).unwrap()[0]
                .terms
                .map(|terms| (terms.limits.min_notional, terms.limits.max_notional))
        };
        let bound = |text: &str, to_market| {
            Some(NotionalLimit { amount: Money::parse(text.as_bytes()).unwrap(), to_market })
        };
        let both = r#"["LIMIT","LIMIT_MAKER","MARKET","STOP_LOSS_LIMIT"]"#;
        let found = limits(both).unwrap();
        assert_eq!((found.min_notional, found.max_notional), (bound("5", true), None));
        assert_eq!(found.kinds, OrderKinds::ALL);
        let kinds = limits(r#"["LIMIT"]"#).unwrap().kinds;
        assert_eq!(kinds.iter().collect::<Vec<_>>(), [OrderKind::Limit, OrderKind::StopLimit]);
        assert_eq!(limits(r#"["LIMIT_MAKER"]"#), Err(SymbolProblem::OrderTypes));
        for (filter, expected) in [
            (
                r#"{"filterType":"NOTIONAL","minNotional":"10","applyMinToMarket":false,"maxNotional":"10000.5",
                   "applyMaxToMarket":true,"avgPriceMins":5}"#,
                Ok((bound("10", false), bound("10000.5", true))),
            ),
            (
                r#"{"filterType":"MIN_NOTIONAL","minNotional":"0.001","applyToMarket":false,"avgPriceMins":5}"#,
                Ok((bound("0.001", false), None)),
            ),
            (r#"{"filterType":"NOTIONAL","minNotional":"0.00000000","maxNotional":"0"}"#, Ok((None, None))),
            (r#"{"filterType":"NOTIONAL","maxNotional":"900000000000000"}"#, Ok((None, None))),
            (r#"{"filterType":"NOTIONAL","minNotional":"many"}"#, Err(SymbolProblem::Filters)),
            (r#"{"filterType":"NOTIONAL","minNotional":"-1"}"#, Err(SymbolProblem::Filters)),
            (r#"{"filterType":"NOTIONAL","minNotional":"7","maxNotional":"6"}"#, Err(SymbolProblem::Filters)),
            (
                r#"{"filterType":"NOTIONAL","minNotional":"7","maxNotional":"7"}"#,
                Ok((bound("7", true), bound("7", true))),
            ),
            (r#"{"filterType":"ICEBERG_PARTS","limit":10}"#, Ok((None, None))),
        ] {
            assert_eq!(other(filter), expected, "{filter}");
        }
    }

    #[test]
    fn a_symbol_that_cannot_be_a_security_says_why() {
        let no_step = FILTERS.replace(r#""stepSize":"0.00001000""#, r#""stepSize":"0.00000000""#);
        let not_a_number = FILTERS.replace("0.01000000", "1e-2");
        for (wanted, text) in [
            (SymbolProblem::NotTraded, symbol("A", ["BTC", "USDT"], "BREAK", FILTERS)),
            (
                SymbolProblem::NotTraded,
                symbol("A", ["BTC", "USDT"], "TRADING", FILTERS)
                    .replace("Allowed\":true,\"f", "Allowed\":false,\"f"),
            ),
            (SymbolProblem::Asset, symbol("A", ["1000CHEEMS", "USDT"], "TRADING", FILTERS)),
            (SymbolProblem::Asset, symbol("A", ["BTC", "FDÜSD"], "TRADING", FILTERS)),
            (SymbolProblem::Filters, symbol("A", ["BTC", "USDT"], "TRADING", "")),
            (SymbolProblem::Filters, symbol("A", ["BTC", "USDT"], "TRADING", &no_step)),
            (SymbolProblem::Filters, symbol("A", ["BTC", "USDT"], "TRADING", &not_a_number)),
        ] {
            assert_eq!(parse(&[text]).unwrap()[0].terms, Err(wanted));
        }
        for (problem, word) in [
            (SymbolProblem::NotTraded, "does not trade"),
            (SymbolProblem::Asset, "code of an asset"),
            (SymbolProblem::Filters, "PRICE_FILTER, LOT_SIZE or NOTIONAL"),
            (SymbolProblem::OrderTypes, "neither LIMIT nor MARKET"),
        ] {
            assert!(problem.words().contains(word), "{problem:?}");
        }
    }

    #[test]
    fn an_answer_of_another_form_is_refused_at_every_length() {
        let whole = format!(r#"{{"symbols":[{}]}}"#, symbol("BTCUSDT", ["BTC", "USDT"], "TRADING", FILTERS));
        assert!(parse_exchange_info(whole.as_bytes()).is_ok());
        for length in 0..whole.len() {
            assert!(parse_exchange_info(&whole.as_bytes()[..length]).is_err(), "{length}");
        }
        for other in ["[]", "{}", r#"{"symbols":{}}"#, r#"{"symbols":[{"symbol":"A"}]}"#, "<html>", "\u{0}"] {
            assert!(parse_exchange_info(other.as_bytes()).is_err(), "{other}");
        }
        let deep = "[".repeat(100_000);
        assert!(parse_exchange_info(format!(r#"{{"x":{deep}"#).as_bytes()).is_err());
    }
}
