//! Parameters of a strategy: names and texts, as an operator wrote them.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use pitlane_engine::number::{Money, Qty};
use pitlane_engine::text;

/// Parameters by name. Unknown names are refused, so that a typing error is noticed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    texts: BTreeMap<String, String>,
}

/// An error in a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadParameter {
    pub name: String,
    pub problem: String,
}

impl fmt::Display for BadParameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.problem)
    }
}

impl Parameters {
    pub fn new(texts: BTreeMap<String, String>) -> Parameters {
        Parameters { texts }
    }

    /// Returns these parameters, and the defaults of those that are not set.
    pub fn with_defaults(&self, defaults: &[(&str, &str)]) -> Parameters {
        let mut texts = self.texts.clone();
        for (name, text) in defaults {
            texts.entry(name.to_string()).or_insert_with(|| text.to_string());
        }
        Parameters { texts }
    }

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

    /// Returns an amount, zero or above.
    pub fn money(&self, name: &str) -> Result<Money, BadParameter> {
        let money = Money::parse(self.text(name)?.as_bytes()).ok().filter(|money| !money.is_negative());
        money.ok_or_else(|| bad(name, "it must be an amount, zero or above".to_string()))
    }

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
            Some(name) => {
                Err(bad(name, format!("there is no such parameter; there are {}", names.join(", "))))
            }
            None => Ok(()),
        }
    }

    fn text(&self, name: &str) -> Result<&str, BadParameter> {
        self.texts.get(name).map(String::as_str).ok_or_else(|| bad(name, "it is missing".to_string()))
    }
}

fn bad(name: &str, problem: String) -> BadParameter {
    BadParameter { name: name.to_string(), problem }
}
