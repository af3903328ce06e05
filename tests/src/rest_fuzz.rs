//! Any bytes as the body, the query or the path of a request: no panic, no input is read in two
//! ways, and error messages are not much longer than the input.

use pitlane_engine::id::SecurityId;
use pitlane_protocols::json;
use pitlane_protocols::rest::{
    AnyOrderVO, Decimal, LimitOrderChangeVO, LimitOrderVO, LimitsVO, MarketDataSubscriptionVO,
    MarketOrderChangeVO, MarketOrderVO, Moment, PhaseVO, Query, RatesVO, Search, StopLimitOrderChangeVO,
    StopLimitOrderVO, StopOrderChangeVO, StopOrderVO, TransactionRequestVO, account_id, parse_uuid,
    percent_decode, quantity, read,
};

use crate::test_market;

/// Most bytes that an error message adds to the input that it quotes: names of fields, positions,
/// what would have been right.
const MESSAGE_BYTES_MAX: usize = 2_000;

/// Reads one body for every call that takes one.
pub fn body(bytes: &[u8]) {
    macro_rules! read_as {
        ($($kind:ty),+) => {$(
            match read::<$kind>(bytes) {
                // An accepted body is JSON.
                Ok(value) => assert!(json::is_json(bytes), "{value:?}"),
                Err(bad) => {
                    let message = bad.to_string();
                    assert!(message.len() <= 8 * bytes.len() + MESSAGE_BYTES_MAX, "{} bytes", message.len());
                }
            }
        )+};
    }
    read_as!(
        AnyOrderVO,
        LimitOrderVO,
        LimitOrderChangeVO,
        MarketOrderVO,
        MarketOrderChangeVO,
        StopOrderVO,
        StopOrderChangeVO,
        StopLimitOrderVO,
        StopLimitOrderChangeVO,
        TransactionRequestVO,
        LimitsVO,
        MarketDataSubscriptionVO,
        PhaseVO,
        RatesVO
    );
    let _ = quantity(bytes);
    let _ = account_id(bytes);
}

/// Parameters that any call knows.
const KNOWN: [&str; 6] = ["query", "strategy", "limit", "security", "status", "from"];

/// Reads a query string, and the small grammars of paths and parameters.
pub fn query(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Query::parse(text, &KNOWN) {
        Ok(query) => {
            for name in KNOWN {
                let _ = query.count(name);
                let _ = query.required(name);
            }
            search(query.get("query").unwrap_or_default().as_bytes());
        }
        Err(bad) => assert!(bad.to_string().len() <= text.len() + MESSAGE_BYTES_MAX),
    }
    if let Some(decoded) = percent_decode(text) {
        assert!(decoded.len() <= text.len(), "it becomes no longer");
    }
    let _ = parse_uuid(text);
    if let Ok(decimal) = Decimal::parse(text) {
        let printed = decimal.to_string();
        assert_eq!(Decimal::parse(&printed).map(|again| again.to_string()), Ok(printed.clone()), "{text}");
    }
    let _ = Moment::parse(text);
}

/// Reads a search for securities, and runs it over the small market of the tests.
pub fn search(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let reference = test_market::reference();
    match Search::parse(text) {
        Ok(search) => {
            let found = reference.securities().iter().filter(|row| search.matches(row, &reference)).count();
            assert!(found <= reference.securities().len());
            let one = reference.security(SecurityId(1)).map(|row| search.matches(row, &reference));
            assert_eq!(one, reference.security(SecurityId(1)).map(|row| search.matches(row, &reference)));
        }
        Err(error) => {
            let characters = text.chars().count();
            assert!(error.position >= 1 && error.position <= characters.max(text.len()) + 1, "{error}");
        }
    }
}
