//! Query strings and segments of paths: percent-decoded, each name once, unknown names refused.

use std::borrow::Cow;
use std::fmt;

use percent_encoding::percent_decode_str;

/// Parameters in one query, more than any call has.
const PARAMETERS_MAX: usize = 8;

/// Parameters of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    parameters: Vec<(String, String)>,
}

/// Why a query is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadQuery {
    /// Not percent-encoded UTF-8.
    Encoding,
    TooMany,
    Twice(String),
    Unknown(String),
    Missing(&'static str),
    /// Not the number it should be.
    Number(&'static str),
}

impl fmt::Display for BadQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadQuery::Encoding => f.write_str("it is not percent-encoded UTF-8"),
            BadQuery::TooMany => write!(f, "there are more than {PARAMETERS_MAX} query parameters"),
            BadQuery::Twice(name) => write!(f, "the query parameter `{name}` occurs twice"),
            BadQuery::Unknown(name) => write!(f, "there is no query parameter `{name}` here"),
            BadQuery::Missing(name) => write!(f, "the query parameter `{name}` is required"),
            BadQuery::Number(name) => write!(f, "the query parameter `{name}` is a whole number above zero"),
        }
    }
}

impl Query {
    /// Reads a query with these known names.
    pub fn parse(text: &str, known: &[&str]) -> Result<Query, BadQuery> {
        let mut query = Query::default();
        for parameter in text.split('&').filter(|parameter| !parameter.is_empty()) {
            if query.parameters.len() == PARAMETERS_MAX {
                return Err(BadQuery::TooMany);
            }
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let decode = |text: &str| percent_decode(&text.replace('+', " ")).ok_or(BadQuery::Encoding);
            let (name, value) = (decode(name)?, decode(value)?);
            if !known.contains(&name.as_str()) {
                return Err(BadQuery::Unknown(name.chars().take(64).collect()));
            }
            if query.get(&name).is_some() {
                return Err(BadQuery::Twice(name));
            }
            query.parameters.push((name, value));
        }
        Ok(query)
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    pub fn required(&self, name: &'static str) -> Result<&str, BadQuery> {
        self.get(name).filter(|value| !value.is_empty()).ok_or(BadQuery::Missing(name))
    }

    /// Returns a whole number above zero, if present.
    pub fn count(&self, name: &'static str) -> Result<Option<usize>, BadQuery> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let is_number = !text.is_empty() && text.bytes().all(|octet| octet.is_ascii_digit());
        let count = text.parse().ok().filter(|count| is_number && *count > 0);
        count.map(Some).ok_or(BadQuery::Number(name))
    }
}

/// Decodes percent-encoded text. Returns `None` if an escape is malformed or the result is not
/// UTF-8.
pub fn percent_decode(text: &str) -> Option<String> {
    // The crate leaves malformed escapes as they are.
    let is_escape = |rest: &str| matches!(rest.as_bytes(), [high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit());
    if !text.split('%').skip(1).all(is_escape) {
        return None;
    }
    percent_decode_str(text).decode_utf8().ok().map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_query_parameters_is_bounded() {
        let names: Vec<String> = (0..=PARAMETERS_MAX).map(|number| format!("p{number}")).collect();
        let known: Vec<&str> = names.iter().map(String::as_str).collect();
        let query = |count: usize| known[..count].join("=1&");
        assert!(Query::parse(&query(PARAMETERS_MAX), &known).is_ok());
        assert_eq!(Query::parse(&query(PARAMETERS_MAX + 1), &known), Err(BadQuery::TooMany));
    }

    #[test]
    fn a_refused_query_names_its_parameter() {
        for (bad, text) in [
            (BadQuery::Encoding, "it is not percent-encoded UTF-8"),
            (BadQuery::TooMany, "there are more than 8 query parameters"),
            (BadQuery::Twice("x".into()), "the query parameter `x` occurs twice"),
            (BadQuery::Unknown("x".into()), "there is no query parameter `x` here"),
            (BadQuery::Missing("x"), "the query parameter `x` is required"),
            (BadQuery::Number("x"), "the query parameter `x` is a whole number above zero"),
        ] {
            assert_eq!(bad.to_string(), text);
        }
    }

    #[test]
    fn a_query_is_read_strictly() {
        let known = ["strategy", "limit", "query"];
        let query = Query::parse("strategy=a%20b&limit=10&query=x+y%2Bz", &known).unwrap();
        assert_eq!((query.get("strategy"), query.get("query")), (Some("a b"), Some("x y+z")));
        assert_eq!(query.count("limit"), Ok(Some(10)));
        assert_eq!(Query::parse("", &known).unwrap().count("limit"), Ok(None));
        for (text, bad) in [
            ("limt=1", BadQuery::Unknown("limt".into())),
            ("limit=1&limit=2", BadQuery::Twice("limit".into())),
            ("query=%zz", BadQuery::Encoding),
            ("query=%ff", BadQuery::Encoding),
            ("query=%2", BadQuery::Encoding),
        ] {
            assert_eq!(Query::parse(text, &known), Err(bad), "{text}");
        }
        for text in ["limit=0", "limit=-1", "limit=1.5", "limit=", "limit=+1", "limit=99999999999999999999"] {
            assert_eq!(
                Query::parse(text, &known).unwrap().count("limit"),
                Err(BadQuery::Number("limit")),
                "{text}"
            );
        }
        assert_eq!(
            Query::parse("strategy=", &known).unwrap().required("strategy"),
            Err(BadQuery::Missing("strategy"))
        );
    }
}
