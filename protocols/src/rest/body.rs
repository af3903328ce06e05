//! Reads bodies of requests strictly: one JSON value of the expected type, and nothing around it.

use std::fmt;

use serde::Deserialize;

use super::Decimal;
use super::reader_error::in_plain_words;
use crate::json;

/// Nesting of a body, deeper than any of ours.
const DEPTH_MAX: usize = 8;

/// Why a body is refused, with a readable text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadBody {
    Empty,
    /// Not UTF-8 at this byte.
    Encoding(usize),
    /// Half of a surrogate pair at this byte.
    LoneSurrogate(usize),
    TooDeep,
    /// Not JSON, or not the expected type; with the field at fault, if there is one.
    Content {
        words: String,
        field: Option<String>,
    },
}

impl BadBody {
    pub fn field(&self) -> Option<&str> {
        match self {
            BadBody::Content { field, .. } => field.as_deref(),
            BadBody::Empty | BadBody::Encoding(_) | BadBody::LoneSurrogate(_) | BadBody::TooDeep => None,
        }
    }
}

impl fmt::Display for BadBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadBody::Empty => f.write_str("there is no body, and this call needs one"),
            BadBody::Encoding(at) => write!(f, "the body is not UTF-8 at byte {at}"),
            BadBody::LoneSurrogate(at) => write!(f, "the body has a lone surrogate at byte {at}"),
            BadBody::TooDeep => write!(f, "the body is nested more than {DEPTH_MAX} deep"),
            BadBody::Content { words, field: Some(field) } if !words.contains(&format!("`{field}`")) => {
                write!(f, "`{field}`: {words}")
            }
            BadBody::Content { words, .. } => f.write_str(words),
        }
    }
}

/// Reads an object. The derived reader of an object would accept a list of its values too, in which
/// nothing has a name.
pub fn read<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, BadBody> {
    let text = text_of(bytes)?;
    if !text.trim_ascii_start().starts_with('{') {
        return Err(BadBody::Content { words: "the body must be an object".to_string(), field: None });
    }
    parse(text)
}

fn read_value<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, BadBody> {
    parse(text_of(bytes)?)
}

fn parse<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, BadBody> {
    serde_json::from_str(text).map_err(|error| {
        let named = error.to_string();
        let field = error.is_data().then(|| field_of(text, &named, error.line(), error.column())).flatten();
        BadBody::Content { words: in_plain_words(&error), field }
    })
}

/// Returns the field of an error: the one it names, else the one before the position of the error.
fn field_of(text: &str, words: &str, line: usize, column: usize) -> Option<String> {
    if let Some((_, named)) = words.split_once("field `") {
        return named.split_once('`').map(|(name, _)| name.to_string());
    }
    let lines = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len);
    let end = lines.sum::<usize>() + column;
    last_name(text.as_bytes().get(..end).unwrap_or(text.as_bytes()))
}

/// Returns the last member name of the outermost object in the beginning of a body.
fn last_name(text: &[u8]) -> Option<String> {
    let (mut depth, mut from, mut escaped) = (0usize, None, false);
    let (mut text_value, mut name) = (None, None);
    for (at, octet) in text.iter().enumerate() {
        match (octet, from) {
            _ if escaped => escaped = false,
            (b'\\', Some(_)) => escaped = true,
            (b'"', Some(begin)) => (text_value, from) = (Some(&text[begin..at]), None),
            (_, Some(_)) => {}
            (b'"', None) => from = Some(at + 1),
            (b':', None) if depth == 1 => name = text_value,
            (b'[' | b'{', None) => depth += 1,
            (b']' | b'}', None) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    String::from_utf8(name?.to_vec()).ok()
}

fn text_of(bytes: &[u8]) -> Result<&str, BadBody> {
    let text = std::str::from_utf8(bytes).map_err(|error| BadBody::Encoding(error.valid_up_to()))?;
    if text.trim_ascii().is_empty() {
        return Err(BadBody::Empty);
    }
    // This applies to every body, also if the text would not be parsed.
    if let Some(at) = json::lone_surrogate(text) {
        return Err(BadBody::LoneSurrogate(at));
    }
    if json::depth(text) > DEPTH_MAX {
        return Err(BadBody::TooDeep);
    }
    Ok(text)
}

/// Reads a quantity: the bare number, or `{"quantity": n}`.
pub fn quantity(bytes: &[u8]) -> Result<Decimal, BadBody> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct QuantityBody {
        quantity: Decimal,
    }
    match bytes.trim_ascii_start().first() {
        Some(b'{') => read::<QuantityBody>(bytes).map(|body| body.quantity),
        _ => read_value(bytes),
    }
}

/// Reads an account's id: the bare number, or `{"accountId": n}`. It may be larger than any id that
/// exists.
pub fn account_id(bytes: &[u8]) -> Result<u64, BadBody> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    struct AccountBody {
        account_id: u64,
    }
    match bytes.trim_ascii_start().first() {
        Some(b'{') => read::<AccountBody>(bytes).map(|body| body.account_id),
        _ => read_value(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_bare_or_as_a_member() {
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
        assert_eq!(account_id(b"70000"), Ok(70_000), "unknown, and well formed");
        assert!(account_id(b"-1").is_err() && account_id(b"1.5").is_err());
    }

    #[test]
    fn an_error_in_a_body_names_its_field() {
        let field = |text: &str| {
            read::<crate::rest::LimitOrderVO>(text.as_bytes()).unwrap_err().field().map(String::from)
        };
        let good = r#"{"securityId":1,"side":"BUY","quantity":5,"limit":100}"#;
        assert!(read::<crate::rest::LimitOrderVO>(good.as_bytes()).is_ok());
        for (from, to, name) in [
            ("1,", "\"1\",", "securityId"),
            ("1,", "-1,", "securityId"),
            ("\"BUY\"", "\"HOLD\"", "side"),
            ("\"BUY\"", "7", "side"),
            (":5", ":[5]", "quantity"),
            (":5", ": {\"a\": {\"limit\": 1}}", "quantity"),
            (":5", ":1e400", "quantity"),
            ("100", "\n\"much\"", "limit"),
            ("100", "1,\n \"tif\":\n \"\\\"x:\"", "tif"),
            ("\"limit\":100", "\"stop\":100", "stop"),
            (",\"limit\":100", "", "limit"),
            ("\"limit\":100", "\"limit\":100,\"limit\":1", "limit"),
        ] {
            let bad = good.replacen(from, to, 1);
            assert_eq!(field(&bad).as_deref(), Some(name), "{bad}");
        }
        for bad in ["{", "{\"limit\" 1}", "{\"limit\": NaN}", "[]"] {
            assert_eq!(field(bad), None, "{bad}");
        }
        let words =
            read::<crate::rest::LimitOrderVO>(good.replace("100", "\"much\"").as_bytes()).unwrap_err();
        assert!(words.to_string().starts_with("`limit`: "), "{words}");
    }

    #[test]
    fn hostile_bodies_are_refused() {
        let deep = "[".repeat(50_000);
        assert_eq!(quantity(deep.as_bytes()), Err(BadBody::TooDeep));
        assert_eq!(quantity(&deep.as_bytes()[..=DEPTH_MAX]), Err(BadBody::TooDeep));
        assert_ne!(quantity(&deep.as_bytes()[..DEPTH_MAX]), Err(BadBody::TooDeep));
        assert_eq!(quantity(b"\"\xff\""), Err(BadBody::Encoding(1)));
        assert_eq!(quantity(b" \n"), Err(BadBody::Empty));
        assert!(read::<crate::rest::RatesVO>(b"[1, 2]").is_err(), "a list is no object");
        assert!(read_value::<String>(b"\"[[[[[[[[[[[[\\\"[[[[[\"").is_ok(), "brackets in a text are text");
    }
}
