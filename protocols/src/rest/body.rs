//! Bodies of requests, read strictly: one JSON value of the type that is asked for, and nothing around it.

use std::fmt;

use serde::Deserialize;

use super::Decimal;

/// Deeper nesting than any body of ours has.
const DEPTH_MAX: usize = 8;

/// What is wrong with a body, in words for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadBody {
    Empty,
    /// Not UTF-8: where.
    Encoding(usize),
    TooDeep,
    /// Not JSON, or not what is asked for.
    Content(String),
}

impl fmt::Display for BadBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadBody::Empty => f.write_str("there is no body, and this call needs one"),
            BadBody::Encoding(at) => write!(f, "the body is not UTF-8 at byte {at}"),
            BadBody::TooDeep => write!(f, "the body is nested more than {DEPTH_MAX} deep"),
            BadBody::Content(words) => f.write_str(words),
        }
    }
}

/// An object. What was derived for one would take a list of its values too, in which nothing has its name.
pub fn read<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, BadBody> {
    let text = text_of(bytes)?;
    if !text.trim_ascii_start().starts_with('{') {
        return Err(BadBody::Content("the body must be an object".to_string()));
    }
    parse(text)
}

fn read_value<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, BadBody> {
    parse(text_of(bytes)?)
}

fn parse<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, BadBody> {
    serde_json::from_str(text).map_err(|error| BadBody::Content(error.to_string()))
}

fn text_of(bytes: &[u8]) -> Result<&str, BadBody> {
    let text = std::str::from_utf8(bytes).map_err(|error| BadBody::Encoding(error.valid_up_to()))?;
    if text.trim_ascii().is_empty() {
        return Err(BadBody::Empty);
    }
    if depth(text) > DEPTH_MAX {
        return Err(BadBody::TooDeep);
    }
    Ok(text)
}

/// How deep brackets are nested, at least; those in texts do not count.
fn depth(text: &str) -> usize {
    let (mut deepest, mut depth, mut in_text, mut escaped) = (0usize, 0usize, false, false);
    for octet in text.bytes() {
        match octet {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => depth += 1,
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// A quantity: the bare number, or `{"quantity": n}`.
pub fn quantity(bytes: &[u8]) -> Result<Decimal, BadBody> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Quantity {
        quantity: Decimal,
    }
    match bytes.trim_ascii_start().first() {
        Some(b'{') => read::<Quantity>(bytes).map(|body| body.quantity),
        _ => read_value(bytes),
    }
}

/// An account's id: the bare number, or `{"accountId": n}`.
pub fn account_id(bytes: &[u8]) -> Result<u16, BadBody> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    struct Account {
        account_id: u16,
    }
    match bytes.trim_ascii_start().first() {
        Some(b'{') => read::<Account>(bytes).map(|body| body.account_id),
        _ => read_value(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_bare_or_under_their_name() {
        for good in ["2.5", " 2.5 ", "\"2.5\"", "{\"quantity\":2.5}", " {\"quantity\" : \"2.5\"}"] {
            assert_eq!(quantity(good.as_bytes()).map(|decimal| decimal.raw), Ok(250_000_000), "{good}");
        }
        for bad in [
            "",
            "{}",
            "[2.5]",
            "{\"quantity\":2.5,\"x\":1}",
            "2.5 3",
            "{\"quantity\":1,\"quantity\":2}",
            "NaN",
        ] {
            assert!(quantity(bad.as_bytes()).is_err(), "{bad}");
        }
        assert_eq!(account_id(b"3"), Ok(3));
        assert_eq!(account_id(b"{\"accountId\":3}"), Ok(3));
        assert!(account_id(b"70000").is_err() && account_id(b"-1").is_err() && account_id(b"1.5").is_err());
    }

    #[test]
    fn hostile_bodies_are_refused() {
        let deep = "[".repeat(50_000);
        assert_eq!(quantity(deep.as_bytes()), Err(BadBody::TooDeep));
        assert_eq!(quantity(b"\"\xff\""), Err(BadBody::Encoding(1)));
        assert_eq!(quantity(b" \n"), Err(BadBody::Empty));
        assert!(read::<crate::rest::RatesVO>(b"[1, 2]").is_err(), "a list is no object");
        assert!(read_value::<String>(b"\"[[[[[[[[[[[[\\\"[[[[[\"").is_ok(), "brackets in a text are text");
    }
}
