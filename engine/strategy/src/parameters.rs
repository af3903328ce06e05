//! Parameters of a strategy: names and texts, as an operator wrote them, and the trait of
//! strategies that are created from them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use super::Strategy;
use pitlane_engine::id::SecurityId;
use pitlane_engine::number::{Money, Price, Qty};
use pitlane_engine::text;

/// A strategy that settings can name and parameterize; [`Registry::with`](crate::Registry::with)
/// adds it.
pub trait FromParameters: Strategy + Sized + 'static {
    /// Name of the kind, as in `kind = "buy-the-dip"`.
    const KIND: &'static str;
    /// All parameters with their defaults. Other names are refused before the strategy is created.
    const PARAMETERS: &'static [Parameter];

    /// Creates the strategy in its initial state: once to check the settings, and at each start.
    fn from_parameters(securities: &[SecurityId], parameters: &Parameters) -> Result<Self, BadParameter>;
}

/// A declared parameter of a kind of strategy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name in the settings.
    pub name: Cow<'static, str>,
    /// Text that applies if the settings have none; `None`: the settings must have one.
    pub default: Option<Cow<'static, str>>,
}

impl Parameter {
    /// Declares a parameter that the settings must have.
    pub const fn required(name: &'static str) -> Parameter {
        Parameter { name: Cow::Borrowed(name), default: None }
    }

    /// Declares a parameter that the settings may omit.
    pub const fn with_default(name: &'static str, default: &'static str) -> Parameter {
        Parameter { name: Cow::Borrowed(name), default: Some(Cow::Borrowed(default)) }
    }
}

/// Parameters by name. Unknown names are refused, so that a typing error is noticed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    texts: BTreeMap<String, String>,
}

/// An error in a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadParameter {
    /// The parameter at fault.
    pub name: String,
    /// What is wrong with it, such as "it must be above zero".
    pub problem: String,
}

/// Name in a [`BadParameter`] of the securities of a strategy.
pub const SECURITIES: &str = "securities";

impl BadParameter {
    /// Creates an error in a parameter.
    pub fn new(name: impl Into<String>, problem: impl Into<String>) -> BadParameter {
        BadParameter { name: name.into(), problem: problem.into() }
    }

    /// Creates an error in the list of securities, such as too many of them.
    pub fn securities(problem: impl Into<String>) -> BadParameter {
        BadParameter::new(SECURITIES, problem)
    }
}

impl fmt::Display for BadParameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.problem)
    }
}

impl Parameters {
    /// Creates parameters from names and texts.
    pub fn new(texts: BTreeMap<String, String>) -> Parameters {
        Parameters { texts }
    }

    /// Returns these parameters with the defaults of those that are not set. Names that are not
    /// declared are refused.
    pub fn declared(&self, declared: &[Parameter]) -> Result<Parameters, BadParameter> {
        let names: Vec<&str> = declared.iter().map(|parameter| &*parameter.name).collect();
        self.only(&names)?;
        let mut texts = self.texts.clone();
        for Parameter { name, default } in declared {
            if let Some(default) = default
                && !texts.contains_key(&**name)
            {
                texts.insert(name.to_string(), default.to_string());
            }
        }
        Ok(Parameters { texts })
    }

    /// Returns all names and texts, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// Returns a whole number within the range.
    pub fn count(&self, name: &str, range: RangeInclusive<u64>) -> Result<u64, BadParameter> {
        let count = text::parse_u64(self.text(name)?.as_bytes()).ok().filter(|count| range.contains(count));
        count.ok_or_else(|| {
            bad(name, format!("it must be a whole number from {} to {}", range.start(), range.end()))
        })
    }

    /// Returns a quantity above zero.
    pub fn qty(&self, name: &str) -> Result<Qty, BadParameter> {
        let qty = Qty::parse(self.text(name)?.as_bytes()).ok().filter(|qty| qty.is_positive());
        qty.ok_or_else(|| bad(name, "it must be a quantity above zero".to_string()))
    }

    /// Returns a price above zero.
    pub fn price(&self, name: &str) -> Result<Price, BadParameter> {
        let price = Price::parse(self.text(name)?.as_bytes()).ok().filter(|price| price.is_positive());
        price.ok_or_else(|| bad(name, "it must be a price above zero".to_string()))
    }

    /// Returns an amount, zero or above.
    pub fn money(&self, name: &str) -> Result<Money, BadParameter> {
        let money = Money::parse(self.text(name)?.as_bytes()).ok().filter(|money| !money.is_negative());
        money.ok_or_else(|| bad(name, "it must be an amount, zero or above".to_string()))
    }

    /// Returns `true` or `false`.
    pub fn flag(&self, name: &str) -> Result<bool, BadParameter> {
        match self.text(name)? {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(bad(name, "it must be true or false".to_string())),
        }
    }

    /// Refuses all names but these.
    pub fn only(&self, names: &[&str]) -> Result<(), BadParameter> {
        match self.texts.keys().find(|name| !names.contains(&name.as_str())) {
            Some(name) if names.is_empty() => Err(bad(name, "this kind has no parameters".to_string())),
            Some(name) => {
                Err(bad(name, format!("there is no such parameter; there are {}", names.join(", "))))
            }
            None => Ok(()),
        }
    }

    /// Returns the text of a parameter as the settings have it.
    pub fn text(&self, name: &str) -> Result<&str, BadParameter> {
        self.texts.get(name).map(String::as_str).ok_or_else(|| bad(name, "it is missing".to_string()))
    }
}

fn bad(name: &str, problem: String) -> BadParameter {
    BadParameter { name: name.to_string(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(texts: &[(&str, &str)]) -> Parameters {
        Parameters::new(texts.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect())
    }

    #[test]
    fn a_text_is_a_price_or_a_flag_or_an_error_that_names_it() {
        let given = parameters(&[("limit", "10.5"), ("zero", "0"), ("on", "true"), ("off", "false")]);
        assert_eq!(given.price("limit"), Ok(Price::parse(b"10.5").unwrap()));
        assert_eq!((given.flag("on"), given.flag("off")), (Ok(true), Ok(false)));
        let faults = [
            (given.price("zero").err(), "zero: it must be a price above zero"),
            (given.price("on").err(), "on: it must be a price above zero"),
            (given.flag("limit").err(), "limit: it must be true or false"),
            (given.flag("other").err(), "other: it is missing"),
            (given.only(&[]).err(), "limit: this kind has no parameters"),
            (
                given.only(&["limit", "on", "off"]).err(),
                "zero: there is no such parameter; there are limit, on, off",
            ),
        ];
        for (fault, text) in faults {
            assert_eq!(fault.unwrap().to_string(), text);
        }
    }
}
