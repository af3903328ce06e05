//! Settings before they are interpreted: a tree of values, each with its origin.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::fault::ConfigFaults;
use super::origin::SettingOrigin;

pub(crate) type ConfigTable = BTreeMap<String, ConfigEntry>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigEntry {
    pub value: ConfigValue,
    pub origin: SettingOrigin,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConfigValue {
    Text(String),
    Integer(i64),
    /// An integer that does not fit.
    Huge(String),
    /// A number with a point or an exponent, as it was written.
    Decimal(String),
    Flag(bool),
    List(Vec<ConfigEntry>),
    Table(ConfigTable),
    /// A date or a time, which no key accepts.
    Date(String),
}

impl ConfigValue {
    /// Returns the name of its type, for error messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            ConfigValue::Text(_) => "a text",
            ConfigValue::Integer(_) => "a whole number",
            ConfigValue::Huge(_) => "one of more than 64 bits",
            ConfigValue::Decimal(_) => "a decimal",
            ConfigValue::Flag(_) => "true or false",
            ConfigValue::List(_) => "a list",
            ConfigValue::Table(_) => "a table",
            ConfigValue::Date(_) => "a date",
        }
    }
}

/// Parses a TOML document; syntax errors become faults, and the rest is parsed nevertheless.
pub(crate) fn parse(name: &str, text: &str, faults: &mut ConfigFaults) -> ConfigTable {
    let (document, errors) = DeTable::parse_recoverable(text);
    let place = TomlSource::new(name, text);
    for error in errors {
        faults.add(&place.origin(error.span().unwrap_or(0..0)), "", error.message());
    }
    place.table(document.get_ref())
}

/// Parses a single TOML value, from the environment or the command line.
pub(crate) fn parse_value(text: &str, origin: &SettingOrigin) -> Result<ConfigValue, String> {
    let parsed = DeValue::parse(text).map_err(|error| error.message().to_string())?;
    Ok(moved(TomlSource::new("", text).value(parsed.get_ref()), origin))
}

/// Returns the value with every part of it at one origin.
fn moved(value: ConfigValue, origin: &SettingOrigin) -> ConfigValue {
    let entry =
        |entry: ConfigEntry| ConfigEntry { value: moved(entry.value, origin), origin: origin.clone() };
    match value {
        ConfigValue::List(items) => ConfigValue::List(items.into_iter().map(entry).collect()),
        ConfigValue::Table(table) => {
            ConfigValue::Table(table.into_iter().map(|(key, at)| (key, entry(at))).collect())
        }
        plain @ (ConfigValue::Text(_)
        | ConfigValue::Integer(_)
        | ConfigValue::Huge(_)
        | ConfigValue::Decimal(_)
        | ConfigValue::Flag(_)
        | ConfigValue::Date(_)) => plain,
    }
}

/// Lays one table over another: tables are merged key by key, everything else is replaced.
pub(crate) fn overlay(below: &mut ConfigTable, above: ConfigTable) {
    for (key, entry) in above {
        match (below.get_mut(&key).map(|entry| &mut entry.value), entry.value) {
            (Some(ConfigValue::Table(below)), ConfigValue::Table(above)) => overlay(below, above),
            (_, value) => _ = below.insert(key, ConfigEntry { value, origin: entry.origin }),
        }
    }
}

/// A document and its name, to convert offsets to lines and columns.
struct TomlSource<'a> {
    name: Arc<str>,
    text: &'a str,
    /// Offsets of the first byte of each line.
    lines: Vec<usize>,
}

impl<'a> TomlSource<'a> {
    fn new(name: &str, text: &'a str) -> TomlSource<'a> {
        let after_ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        TomlSource { name: name.into(), text, lines: [0].into_iter().chain(after_ends).collect() }
    }

    fn table(&self, table: &DeTable<'_>) -> ConfigTable {
        let entry = |(key, value): (&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)| {
            // The position of a key is more precise than that of its table, which TOML may open
            // twice.
            let origin = self.origin(key.span());
            (key.get_ref().to_string(), ConfigEntry { value: self.value(value.get_ref()), origin })
        };
        table.iter().map(entry).collect()
    }

    fn value(&self, value: &DeValue<'_>) -> ConfigValue {
        match value {
            DeValue::String(text) => ConfigValue::Text(text.to_string()),
            DeValue::Boolean(flag) => ConfigValue::Flag(*flag),
            DeValue::Float(number) => ConfigValue::Decimal(number.as_str().to_string()),
            DeValue::Datetime(date) => ConfigValue::Date(date.to_string()),
            DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
                Ok(number) => ConfigValue::Integer(number),
                Err(_) => ConfigValue::Huge(number.to_string()),
            },
            DeValue::Array(items) => {
                let item = |item: &Spanned<DeValue<'_>>| ConfigEntry {
                    value: self.value(item.get_ref()),
                    origin: self.origin(item.span()),
                };
                ConfigValue::List(items.iter().map(item).collect())
            }
            DeValue::Table(table) => ConfigValue::Table(self.table(table)),
        }
    }

    fn origin(&self, span: Range<usize>) -> SettingOrigin {
        let at = span.start.min(self.text.len());
        let line = self.lines.partition_point(|start| *start <= at);
        let before = self.text.get(self.lines[line - 1]..at).unwrap_or_default();
        SettingOrigin::File { name: self.name.clone(), line, column: 1 + before.chars().count() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_knows_its_line_and_column() {
        let mut faults = ConfigFaults::default();
        let tree = parse("a.toml", "[net]\n  backlog = 5\n[[x.y]]\nz = [1,\n 2]", &mut faults);
        assert!(faults.is_empty());
        let ConfigValue::Table(net) = &tree["net"].value else { panic!("a table") };
        assert_eq!(net["backlog"].origin.to_string(), "a.toml:2:3");
        assert_eq!(net["backlog"].value, ConfigValue::Integer(5));
    }

    #[test]
    fn every_syntax_error_is_reported() {
        let mut faults = ConfigFaults::default();
        parse("a.toml", "a = \nb = 1\nb = 2\nc = \"x", &mut faults);
        let places: Vec<String> = faults.reported().iter().map(|fault| fault.origin.to_string()).collect();
        assert!(places.len() >= 3, "{faults}");
        assert!(
            places[0].starts_with("a.toml:1:") && places[places.len() - 1].starts_with("a.toml:4:"),
            "{faults}"
        );
    }

    #[test]
    fn tables_meet_and_the_rest_is_replaced() {
        let mut faults = ConfigFaults::default();
        let mut below = parse("below", "[a]\nx = 1\ny = [1, 2]\n[b]\nz = 1", &mut faults);
        overlay(&mut below, parse("above", "[a]\ny = [3]", &mut faults));
        let ConfigValue::Table(a) = &below["a"].value else { panic!("a table") };
        assert_eq!(
            (a["x"].origin.to_string(), a["y"].origin.to_string()),
            ("below:2:1".into(), "above:2:1".into())
        );
        assert!(matches!(&a["y"].value, ConfigValue::List(items) if items.len() == 1));
        assert!(below.contains_key("b"));
    }
}
