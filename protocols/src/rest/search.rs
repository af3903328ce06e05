//! Search for securities: words, all of which must be found, and fields that narrow the result.
//!
//! ```text
//! query  = [ term { spaces term } ]
//! term   = word | '"' text '"' | field ( ":" | "<" | "<=" | ">" | ">=" | "=" ) value
//! field  = type | currency | exchange | symbol | isin | family | underlying | option | expires
//!        | strike | tradeable | id
//! ```
//!
//! Words match symbol, description or ISIN without case, anywhere in them. Only dates and numbers
//! have an order.

use std::cmp::Ordering;
use std::fmt;

use pitlane_engine::number::Price;
use pitlane_engine::refdata::{OptionKind, RefData, Security, SecurityKind};
use pitlane_engine::time::Day;

/// Longest query, in bytes.
pub(super) const QUERY_BYTES_MAX: usize = 256;
/// Most terms in one query, because each is searched in every security.
pub(super) const TERMS_MAX: usize = 16;

/// A parsed query. The empty one finds all securities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    terms: Vec<Term>,
}

/// Position and kind of an error in a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchError {
    /// Character, from 1.
    pub position: usize,
    pub problem: SearchProblem,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchProblem {
    TooLong,
    TooManyTerms,
    QuoteOpen,
    FieldUnknown,
    /// The field has no order, so only `:` and `=` apply to it.
    NoOrder,
    ValueMissing,
    TypeUnknown,
    OptionUnknown,
    DateUnknown,
    NumberUnknown,
    FlagUnknown,
}

impl fmt::Display for SearchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self.problem {
            SearchProblem::TooLong => return write!(f, "a query has at most {QUERY_BYTES_MAX} bytes"),
            SearchProblem::TooManyTerms => {
                return write!(f, "at character {}: a query has at most {TERMS_MAX} terms", self.position);
            }
            SearchProblem::QuoteOpen => "the quotation mark is not closed",
            SearchProblem::FieldUnknown => {
                "there is no such field; there are type, currency, exchange, symbol, isin, family, underlying, option, expires, strike, tradeable and id"
            }
            SearchProblem::NoOrder => "this field has no order: use `:`",
            SearchProblem::ValueMissing => "a value is missing",
            SearchProblem::TypeUnknown => {
                "a type is STOCK, FUTURE, OPTION, FOREX, INDEX, COMMODITY, BOND, FUND or CRYPTO"
            }
            SearchProblem::OptionUnknown => "an option is CALL or PUT",
            SearchProblem::DateUnknown => "a date is written 2027-01-01",
            SearchProblem::NumberUnknown => "this is not a number",
            SearchProblem::FlagUnknown => "this is `true` or `false`",
        };
        write!(f, "at character {}: {words}", self.position)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Term {
    /// In lower case.
    Word(String),
    Kind(SecurityKind),
    Currency(String),
    /// Name or MIC.
    Exchange(String),
    Symbol(String),
    Isin(String),
    /// Name, symbol root or id.
    Family(String),
    /// Symbol or id.
    Underlying(String),
    Option(OptionKind),
    Expires(Comparison, Day),
    Strike(Comparison, Price),
    Tradeable(bool),
    Id(Comparison, u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    Below,
    BelowOrEqual,
    Above,
    AboveOrEqual,
}

impl Comparison {
    fn holds<T: Ord>(self, left: T, right: T) -> bool {
        let order = left.cmp(&right);
        match self {
            Comparison::Equal => order == Ordering::Equal,
            Comparison::Below => order == Ordering::Less,
            Comparison::BelowOrEqual => order != Ordering::Greater,
            Comparison::Above => order == Ordering::Greater,
            Comparison::AboveOrEqual => order != Ordering::Less,
        }
    }
}

impl Search {
    pub fn parse(query: &str) -> Result<Search, SearchError> {
        if query.len() > QUERY_BYTES_MAX {
            return Err(SearchError { position: QUERY_BYTES_MAX + 1, problem: SearchProblem::TooLong });
        }
        let mut terms = Vec::new();
        let mut rest = query;
        loop {
            rest = rest.trim_start();
            let at = query.len() - rest.len();
            if rest.is_empty() {
                return Ok(Search { terms });
            }
            let error = |(offset, problem): (usize, SearchProblem)| SearchError {
                position: query[..at + offset].chars().count() + 1,
                problem,
            };
            if terms.len() == TERMS_MAX {
                return Err(error((0, SearchProblem::TooManyTerms)));
            }
            let (term, taken) = term(rest).map_err(error)?;
            terms.push(term);
            rest = &rest[taken..];
        }
    }

    pub fn matches(&self, row: &Security, reference: &RefData) -> bool {
        self.terms.iter().all(|term| term.matches(row, reference))
    }
}

/// Offset of an error in the term in bytes, and its kind.
type Wrong = (usize, SearchProblem);

/// Returns the first term of a text, and its length.
fn term(text: &str) -> Result<(Term, usize), Wrong> {
    let is_operator = |c: char| matches!(c, ':' | '<' | '>' | '=');
    let end = |from: usize| text[from..].find(char::is_whitespace).map_or(text.len(), |at| from + at);
    let word = &text[..end(0)];
    let operator = word.find(is_operator).filter(|_| !text.starts_with('"'));
    let Some(at) = operator else {
        let (value, taken) = value(text, 0)?;
        return Ok((Term::Word(value.to_lowercase()), taken));
    };
    let signs = word[at..].bytes().take_while(|octet| is_operator(*octet as char)).count();
    let compare = match &word[at..at + signs] {
        ":" | "=" => Comparison::Equal,
        "<" => Comparison::Below,
        "<=" => Comparison::BelowOrEqual,
        ">" => Comparison::Above,
        ">=" => Comparison::AboveOrEqual,
        _ => return Err((at + 1, SearchProblem::ValueMissing)),
    };
    let from = at + signs;
    let (value, taken) = value(text, from)?;
    if value.is_empty() {
        return Err((from, SearchProblem::ValueMissing));
    }
    let term = field(&word[..at], at, compare, &value, from)?;
    Ok((term, taken))
}

/// Returns the value at an offset, in quotation marks or up to the next space, and its end.
fn value(text: &str, from: usize) -> Result<(String, usize), Wrong> {
    if let Some(quoted) = text[from..].strip_prefix('"') {
        let length = quoted.find('"').ok_or((from, SearchProblem::QuoteOpen))?;
        return Ok((quoted[..length].to_string(), from + length + 2));
    }
    let end = text[from..].find(char::is_whitespace).map_or(text.len(), |at| from + at);
    Ok((text[from..end].to_string(), end))
}

fn field(name: &str, at: usize, compare: Comparison, value: &str, from: usize) -> Result<Term, Wrong> {
    let plain = |term: Term| match compare {
        Comparison::Equal => Ok(term),
        Comparison::Below | Comparison::BelowOrEqual | Comparison::Above | Comparison::AboveOrEqual => {
            Err((at, SearchProblem::NoOrder))
        }
    };
    let lower = value.to_lowercase();
    let upper = value.to_uppercase();
    match name.to_lowercase().as_str() {
        "type" => {
            let kind = SecurityKind::from_name(&upper).ok_or((from, SearchProblem::TypeUnknown))?;
            plain(Term::Kind(kind))
        }
        "option" | "optiontype" => {
            let option = OptionKind::from_name(&upper).ok_or((from, SearchProblem::OptionUnknown))?;
            plain(Term::Option(option))
        }
        "currency" => plain(Term::Currency(lower)),
        "exchange" => plain(Term::Exchange(lower)),
        "symbol" => plain(Term::Symbol(lower)),
        "isin" => plain(Term::Isin(lower)),
        "family" => plain(Term::Family(lower)),
        "underlying" => plain(Term::Underlying(lower)),
        "tradeable" => match lower.as_str() {
            "true" => plain(Term::Tradeable(true)),
            "false" => plain(Term::Tradeable(false)),
            _ => Err((from, SearchProblem::FlagUnknown)),
        },
        "expires" | "expiration" => {
            let day = Day::parse(value.as_bytes()).map_err(|_| (from, SearchProblem::DateUnknown))?;
            Ok(Term::Expires(compare, day))
        }
        "strike" => {
            let strike = Price::parse(value.as_bytes()).map_err(|_| (from, SearchProblem::NumberUnknown))?;
            Ok(Term::Strike(compare, strike))
        }
        "id" => {
            let id = pitlane_engine::text::parse_u64(value.as_bytes())
                .map_err(|_| (from, SearchProblem::NumberUnknown))?;
            Ok(Term::Id(compare, id))
        }
        _ => Err((0, SearchProblem::FieldUnknown)),
    }
}

impl Term {
    fn matches(&self, row: &Security, reference: &RefData) -> bool {
        let same = |text: &str, wanted: &str| text.to_lowercase() == *wanted;
        match self {
            Term::Word(word) => {
                let contains = |text: &str| text.to_lowercase().contains(word.as_str());
                contains(&row.symbol)
                    || contains(&row.description)
                    || row.isin.as_deref().is_some_and(contains)
            }
            Term::Kind(kind) => row.kind == *kind,
            Term::Currency(code) => {
                let base = row.base_currency.is_some_and(|base| same(base.as_str(), code));
                base || same(reference.family_of(row).currency.as_str(), code)
            }
            Term::Exchange(name) => {
                let exchange = reference.exchange_of(row);
                same(&exchange.mic, name) || same(&exchange.name, name) || exchange.id.to_string() == *name
            }
            Term::Symbol(symbol) => same(&row.symbol, symbol),
            Term::Isin(isin) => row.isin.as_deref().is_some_and(|text| same(text, isin)),
            Term::Family(name) => {
                let family = reference.family_of(row);
                same(&family.name, name) || same(&family.symbol_root, name) || family.id.to_string() == *name
            }
            Term::Underlying(symbol) => {
                let underlying = row.underlying.and_then(|id| reference.security(id));
                underlying.is_some_and(|row| same(&row.symbol, symbol) || row.id.to_string() == *symbol)
            }
            Term::Option(option) => row.option == Some(*option),
            Term::Expires(compare, day) => row.expiration.is_some_and(|expires| compare.holds(expires, *day)),
            Term::Strike(compare, price) => row.strike.is_some_and(|strike| compare.holds(strike, *price)),
            Term::Tradeable(tradeable) => (row.tradeable && reference.family_of(row).tradeable) == *tradeable,
            Term::Id(compare, id) => compare.holds(row.id.0 as u64, *id),
        }
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::refdata::sample;

    use super::*;

    #[test]
    fn terms_are_parsed_by_the_grammar() {
        let parsed =
            Search::parse("  apple  type:FOREX currency:usd expires<2027-01-01 \"two words\" strike>=10.5 ")
                .unwrap();
        let day = Day::parse(b"2027-01-01").unwrap();
        assert_eq!(
            parsed.terms,
            [
                Term::Word("apple".into()),
                Term::Kind(SecurityKind::Forex),
                Term::Currency("usd".into()),
                Term::Expires(Comparison::Below, day),
                Term::Word("two words".into()),
                Term::Strike(Comparison::AboveOrEqual, Price::parse(b"10.5").unwrap()),
            ]
        );
        assert_eq!(Search::parse("").unwrap().terms, []);
        assert_eq!(
            Search::parse("exchange:\"New York\"").unwrap().terms,
            [Term::Exchange("new york".into())]
        );
        assert_eq!(Search::parse("a/b").unwrap().terms, [Term::Word("a/b".into())]);
    }

    #[test]
    fn an_error_has_its_position() {
        for (query, position, problem) in [
            ("apple tpye:STOCK", 7, SearchProblem::FieldUnknown),
            ("type:SHARE", 6, SearchProblem::TypeUnknown),
            ("a currency<USD", 11, SearchProblem::NoOrder),
            ("expires<soon", 9, SearchProblem::DateUnknown),
            ("strike>x", 8, SearchProblem::NumberUnknown),
            ("id:x", 4, SearchProblem::NumberUnknown),
            ("tradeable:yes", 11, SearchProblem::FlagUnknown),
            ("option:LONG", 8, SearchProblem::OptionUnknown),
            ("type:", 6, SearchProblem::ValueMissing),
            ("type: STOCK", 6, SearchProblem::ValueMissing),
            ("strike<>3", 8, SearchProblem::ValueMissing),
            ("\"open", 1, SearchProblem::QuoteOpen),
            ("grün type:x", 11, SearchProblem::TypeUnknown),
        ] {
            assert_eq!(Search::parse(query), Err(SearchError { position, problem }), "{query}");
        }
        let many = "a ".repeat(TERMS_MAX + 1);
        assert_eq!(Search::parse(&many).unwrap_err().problem, SearchProblem::TooManyTerms);
        let (position, problem) = (QUERY_BYTES_MAX + 1, SearchProblem::TooLong);
        let error = SearchError { position, problem };
        assert_eq!(Search::parse(&"a".repeat(QUERY_BYTES_MAX + 1)), Err(error));
        assert!(Search::parse(&"a".repeat(QUERY_BYTES_MAX)).is_ok());
    }

    #[test]
    fn an_error_is_shown_with_its_position_and_what_is_possible() {
        for (query, text) in [
            ("a currency<USD", "at character 11: this field has no order: use `:`"),
            ("option:LONG", "at character 8: an option is CALL or PUT"),
            (&"a ".repeat(TERMS_MAX + 1), "at character 33: a query has at most 16 terms"),
            (&"a".repeat(QUERY_BYTES_MAX + 1), "a query has at most 256 bytes"),
        ] {
            assert_eq!(Search::parse(query).unwrap_err().to_string(), text, "{query}");
        }
    }

    /// The sample has a stock, an option on it with the strike 10, and a currency pair.
    #[test]
    fn the_securities_that_match_all_terms_are_found() {
        let reference = RefData::check(sample::sound()).expect("a valid sample");
        for (query, found) in [
            ("", vec![1, 2, 3]),
            ("acme", vec![1, 2, 3]),
            ("ACME c10", vec![2]),
            ("acme type:option", vec![2]),
            ("c10 type:forex", vec![]),
            ("id:2", vec![2]),
            ("id=2", vec![2]),
            ("id<2", vec![1]),
            ("id<=2", vec![1, 2]),
            ("id>2", vec![3]),
            ("id>=2", vec![2, 3]),
            ("strike<10", vec![]),
            ("strike<=10", vec![2]),
            ("strike>9.99", vec![2]),
            ("expires<2024-10-04", vec![]),
            ("expires>=2024-10-04", vec![2]),
            ("expires:2024-10-04", vec![2]),
            ("currency:eur", vec![3]),
            ("currency:usd", vec![1, 2, 3]),
            ("exchange:away", vec![3]),
            ("family:options", vec![2]),
            ("underlying:acme", vec![2]),
            ("option:call", vec![2]),
            ("tradeable:true", vec![1, 2, 3]),
            ("tradeable:false", vec![]),
        ] {
            let search = Search::parse(query).expect("a valid query");
            let rows = reference.securities().iter().filter(|row| search.matches(row, &reference));
            assert_eq!(rows.map(|row| row.id.0).collect::<Vec<u32>>(), found, "{query}");
        }
    }

    #[test]
    fn any_text_is_parsed_or_refused() {
        let pieces =
            ["a", "type:", "\"", " ", ":", "<", "=", "é", "expires", "2027-01-01", "x:y", "\u{2003}", "id>5"];
        let mut state = 1u64;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..state % 9 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                text += pieces[(state >> 33) as usize % pieces.len()];
            }
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if let Err(error) = Search::parse(&text) {
                assert!((1..=text.chars().count() + 1).contains(&error.position), "{text:?} {error:?}");
            }
        }
    }
}
