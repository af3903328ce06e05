//! Reads one table of settings: each key is read once, with its type and range. A fault is recorded
//! and reading continues, so that all faults are reported at once; a key that no code reads is
//! unknown.
//!
//! There is no other list of the keys: a new key is read here, and written with its default into
//! `config/default.toml`.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use pitlane_engine::id::Currency;
use pitlane_engine::number::{Money, Qty};
use pitlane_engine::text;
use pitlane_engine::time::TimeOfDay;

use super::fault::ConfigFaults;
use super::origin::SettingOrigin;
use super::params::Params;
use super::tree::{self, ConfigEntry, ConfigTable, ConfigValue};
use super::words::{EventsPerSecond, Secret};
use crate::diagnostics::suggestion;

/// Largest number of items of a table or list, and of bytes of a text; more is a mistake.
const ITEMS_MAX: usize = 10_000;
const TEXT_BYTES_MAX: usize = 4_096;
/// One hundredth of a percent, in numbers of eight decimals.
const BASIS_POINT: i64 = 1_000_000;

/// Results of reading besides the settings.
#[derive(Debug, Default)]
pub(crate) struct SectionFindings {
    pub faults: ConfigFaults,
    pub params: Params,
}

#[derive(Debug)]
pub(crate) struct Section<'a> {
    /// Dotted name as it is shown; empty for the whole tree.
    name: String,
    /// Position of the table, for keys that are missing in it.
    origin: SettingOrigin,
    /// Keys that are not yet read.
    table: ConfigTable,
    asked: Vec<&'static str>,
    /// Whether the value is no table at all. That is reported; its missing keys are not reported
    /// too.
    broken: bool,
    findings: &'a mut SectionFindings,
}

/// Reads a whole table; `ask` reads every possible key.
pub(crate) fn read<T>(
    name: &str,
    entry: ConfigEntry,
    findings: &mut SectionFindings,
    ask: impl FnOnce(&mut Section<'_>) -> T,
) -> T {
    let (name, origin, asked) = (name.to_string(), entry.origin, Vec::new());
    let mut section = if let ConfigValue::Table(table) = entry.value {
        Section { name, origin, table, asked, broken: false, findings }
    } else {
        findings.faults.add(&origin, &name, format!("it must be a table, not {}", entry.value.kind()));
        Section { name, origin, table: ConfigTable::new(), asked, broken: true, findings }
    };
    let value = ask(&mut section);
    section.end();
    value
}

impl Section<'_> {
    pub(crate) fn text(&mut self, key: &'static str) -> String {
        self.text_as(key, |text| Ok(text.to_string()), String::clone).unwrap_or_default()
    }

    /// Reads a text and converts it; also returns how the value is shown.
    pub(crate) fn text_as<T>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(&str) -> Result<T, String>,
        show: impl FnOnce(&T) -> String,
    ) -> Option<T> {
        self.value(key, |value| parse(text_of(value)?), show)
    }

    /// Reads a name: letters, digits, `-` and `_`.
    pub(crate) fn name(&mut self, key: &'static str, bytes_max: usize) -> String {
        self.text_as(key, |text| name_of(text, bytes_max), String::clone).unwrap_or_default()
    }

    pub(crate) fn secret(&mut self, key: &'static str) -> Option<Secret> {
        let parse = |text: &str| Ok((!text.is_empty()).then(|| Secret::new(text)));
        self.text_as(key, parse, |secret| secret.as_ref().map(Secret::to_string).unwrap_or_default())
            .flatten()
    }

    /// Reads a name that may be empty.
    pub(crate) fn optional_name(&mut self, key: &'static str, bytes_max: usize) -> Option<String> {
        let parse = |text: &str| if text.is_empty() { Ok(String::new()) } else { name_of(text, bytes_max) };
        self.text_as(key, parse, String::clone).filter(|name| !name.is_empty())
    }

    /// Reads a text that may be empty.
    pub(crate) fn optional(&mut self, key: &'static str) -> Option<String> {
        Some(self.text(key)).filter(|text| !text.is_empty())
    }

    pub(crate) fn path(&mut self, key: &'static str) -> Option<PathBuf> {
        self.optional(key).map(PathBuf::from)
    }

    /// Reads one of a list of words.
    pub(crate) fn word<T: Copy>(&mut self, key: &'static str, words: &[(&str, T)]) -> T {
        let parse = |text: &str| match words.iter().find(|(word, _)| *word == text) {
            Some((_, value)) => Ok((*value, text.to_string())),
            None => {
                let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                let listed = words.join(", ");
                Err(format!("it must be one of {listed}, not {text:?}{}", suggestion(text, &words)))
            }
        };
        self.text_as(key, parse, |(_, word)| word.clone()).map_or(words[0].1, |(value, _)| value)
    }

    pub(crate) fn flag(&mut self, key: &'static str) -> bool {
        let parse = |value: &ConfigValue| {
            let ConfigValue::Flag(flag) = value else {
                return Err(format!("it must be true or false, not {}", value.kind()));
            };
            Ok(*flag)
        };
        self.value(key, parse, bool::to_string).unwrap_or_default()
    }

    /// Reads `Y` or `N`, as in FIX engines; true and false are accepted.
    pub(crate) fn yes(&mut self, key: &'static str) -> bool {
        let parse = |value: &ConfigValue| {
            if let ConfigValue::Flag(flag) = value {
                return Ok(*flag);
            }
            match text_of(value) {
                Ok("Y") => Ok(true),
                Ok("N") => Ok(false),
                _ => Err("it must be \"Y\" or \"N\"".to_string()),
            }
        };
        self.value(key, parse, |yes| if *yes { "Y" } else { "N" }.to_string()).unwrap_or_default()
    }

    pub(crate) fn number<T>(&mut self, key: &'static str, range: RangeInclusive<T>) -> T
    where
        T: Copy + Display + PartialOrd + TryFrom<i64>,
    {
        self.value(key, |value| number_of(value, &range), T::to_string).unwrap_or(*range.start())
    }

    pub(crate) fn numbers<T>(&mut self, key: &'static str, range: RangeInclusive<T>) -> Vec<T>
    where
        T: Copy + Display + PartialOrd + TryFrom<i64>,
    {
        self.items(key, |value| number_of(value, &range), T::to_string)
    }

    pub(crate) fn texts(&mut self, key: &'static str) -> Vec<String> {
        self.items(key, |value| text_of(value).map(str::to_string), String::clone)
    }

    /// Reads a list and converts each item.
    pub(crate) fn items<T>(
        &mut self,
        key: &'static str,
        parse: impl Fn(&ConfigValue) -> Result<T, String>,
        show: impl Fn(&T) -> String,
    ) -> Vec<T> {
        let parse = |value: &ConfigValue| {
            let ConfigValue::List(items) = value else {
                return Err(format!("it must be a list, not {}", value.kind()));
            };
            if items.len() > ITEMS_MAX {
                return Err(format!("it may have {ITEMS_MAX} items, not {}", items.len()));
            }
            items.iter().map(|item| parse(&item.value)).collect::<Result<Vec<T>, String>>()
        };
        let shown = |items: &Vec<T>| items.iter().map(&show).collect::<Vec<_>>().join(",");
        self.value(key, parse, shown).unwrap_or_default()
    }

    pub(crate) fn qty(&mut self, key: &'static str) -> Qty {
        Qty::from_raw(self.decimal(key, 0..=i64::MAX, |raw| Qty::from_raw(raw).to_string()))
    }

    pub(crate) fn money(&mut self, key: &'static str) -> Money {
        Money::from_raw(self.decimal(key, 0..=i64::MAX, |raw| Money::from_raw(raw).to_string()))
    }

    pub(crate) fn rate(&mut self, key: &'static str) -> EventsPerSecond {
        EventsPerSecond::from_raw(
            self.decimal(key, i64::MIN..=i64::MAX, |raw| EventsPerSecond::from_raw(raw).to_string()),
        )
    }

    /// Reads a percentage with at most two decimals, as hundredths of a percent.
    pub(crate) fn percent(&mut self, key: &'static str, bp_max: u32) -> u32 {
        let parse = |value: &ConfigValue| {
            let raw = decimal_of(value)?;
            let bp = u32::try_from(raw / BASIS_POINT).ok().filter(|bp| *bp <= bp_max);
            match bp.filter(|_| raw % BASIS_POINT == 0) {
                Some(bp) => Ok(bp),
                None => Err(format!("it must be 0 to {} with at most two decimals", bp_max / 100)),
            }
        };
        let show = |bp: &u32| Money::from_raw(*bp as i64 * BASIS_POINT).to_string();
        self.value(key, parse, show).unwrap_or_default()
    }

    pub(crate) fn currency(&mut self, key: &'static str) -> Option<Currency> {
        let parse = |text: &str| match text {
            "" => Ok(None),
            _ => {
                Currency::parse(text.as_bytes()).map(Some).map_err(|_| format!("{text:?} is not a currency"))
            }
        };
        let show = |code: &Option<Currency>| code.map_or(String::new(), |code| code.to_string());
        self.text_as(key, parse, show).flatten()
    }

    pub(crate) fn time_of_day(&mut self, key: &'static str) -> TimeOfDay {
        let parse = |text: &str| {
            let time = TimeOfDay::parse(text.as_bytes()).ok().filter(|time| time.0 < 86_400);
            time.ok_or_else(|| format!("it must be HH:MM or HH:MM:SS, not {text:?}"))
        };
        self.text_as(key, parse, TimeOfDay::to_string).unwrap_or_default()
    }

    /// Reads an address to listen on; None if it is empty.
    pub(crate) fn address(&mut self, key: &'static str) -> Option<SocketAddr> {
        let show = |address: &Option<SocketAddr>| address.map_or(String::new(), |at| at.to_string());
        self.text_as(key, parse_address, show).flatten()
    }

    /// Reads a table of tables whose names are chosen by the user. Missing keys have the value of
    /// `like`.
    pub(crate) fn named<T>(
        &mut self,
        key: &'static str,
        like: &ConfigTable,
        ask: impl Fn(&mut Section<'_>) -> T,
    ) -> BTreeMap<String, T> {
        let mut named = BTreeMap::new();
        let Some(ConfigEntry { value, origin }) = self.take(key) else { return named };
        let whole = self.dotted(key);
        let ConfigValue::Table(tables) = value else {
            self.findings.faults.add(&origin, &whole, format!("it must be a table, not {}", value.kind()));
            return named;
        };
        for (name, entry) in tables {
            let table = format!("{whole}.{name}");
            self.findings.params.place(&table, entry.origin.clone());
            let value = read(&table, completed(entry, like), self.findings, &ask);
            named.insert(name, value);
        }
        named
    }

    /// Reads a list of tables. Missing keys have the value of `like`.
    pub(crate) fn list<T>(
        &mut self,
        key: &'static str,
        like: &ConfigTable,
        ask: impl Fn(&mut Section<'_>) -> T,
    ) -> Vec<T> {
        let mut list = Vec::new();
        let Some(ConfigEntry { value, origin }) = self.take(key) else { return list };
        let whole = self.dotted(key);
        let ConfigValue::List(items) = value else {
            self.findings.faults.add(
                &origin,
                &whole,
                format!("it must be a list of tables, not {}", value.kind()),
            );
            return list;
        };
        for (at, entry) in items.into_iter().enumerate().take(ITEMS_MAX) {
            let table = format!("{whole}.{at}");
            self.findings.params.place(&table, entry.origin.clone());
            list.push(read(&table, completed(entry, like), self.findings, &ask));
        }
        list
    }

    /// Reads a table of words whose names are chosen by the user.
    pub(crate) fn words<T: Copy>(&mut self, key: &'static str, words: &[(&str, T)]) -> BTreeMap<String, T> {
        let mut named = BTreeMap::new();
        let Some(entry) = self.take(key) else { return named };
        let ConfigValue::Table(table) = entry.value else {
            let whole = self.dotted(key);
            let problem = format!("it must be a table, not {}", entry.value.kind());
            self.findings.faults.add(&entry.origin, &whole, problem);
            return named;
        };
        let listed: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        for (name, entry) in table {
            let whole = format!("{}.{name}", self.dotted(key));
            let text = if let ConfigValue::Text(text) = &entry.value { Some(text.as_str()) } else { None };
            match words.iter().find(|(word, _)| Some(*word) == text) {
                Some((word, value)) => {
                    self.findings.params.add(whole, word.to_string(), entry.origin);
                    named.insert(name, *value);
                }
                None => {
                    let problem = format!("it must be one of {}", listed.join(", "));
                    self.findings.faults.add(&entry.origin, &whole, problem);
                }
            }
        }
        named
    }

    /// Reads texts, numbers and flags whose names are chosen by the user, as they were written. The
    /// table may be absent.
    pub(crate) fn texts_by_name(&mut self, key: &'static str) -> BTreeMap<String, String> {
        let mut named = BTreeMap::new();
        self.asked.push(key);
        let Some(entry) = self.table.remove(key) else { return named };
        let ConfigValue::Table(table) = entry.value else {
            let (whole, kind) = (self.dotted(key), entry.value.kind());
            self.findings.faults.add(&entry.origin, &whole, format!("it must be a table, not {kind}"));
            return named;
        };
        let table_name = self.dotted(key);
        self.findings.params.place(&table_name, entry.origin);
        for (name, entry) in table {
            let whole = format!("{table_name}.{name}");
            let text = match entry.value {
                ConfigValue::Text(text) | ConfigValue::Decimal(text) | ConfigValue::Huge(text) => text,
                ConfigValue::Integer(number) => number.to_string(),
                ConfigValue::Flag(flag) => flag.to_string(),
                ConfigValue::List(_) | ConfigValue::Table(_) | ConfigValue::Date(_) => {
                    let problem =
                        format!("it must be a text, a number or a flag, not {}", entry.value.kind());
                    self.findings.faults.add(&entry.origin, &whole, problem);
                    continue;
                }
            };
            self.findings.params.add(whole, text.clone(), entry.origin);
            named.insert(name, text);
        }
        named
    }

    /// Reads a table within this one.
    pub(crate) fn section<T>(&mut self, key: &'static str, ask: impl FnOnce(&mut Section<'_>) -> T) -> T {
        let missing =
            ConfigEntry { value: ConfigValue::Table(ConfigTable::new()), origin: self.origin.clone() };
        let entry = self.take(key).unwrap_or(missing);
        read(&self.dotted(key), entry, self.findings, ask)
    }

    /// Returns the table under a key, as it was written.
    pub(crate) fn peek(&self, key: &str) -> Option<&ConfigTable> {
        match self.table.get(key).map(|entry| &entry.value) {
            Some(ConfigValue::Table(table)) => Some(table),
            _ => None,
        }
    }

    /// Returns the keys that are not read yet, without nested tables: the defaults of similar
    /// tables.
    pub(crate) fn like(&self) -> ConfigTable {
        let plain = self.table.iter().filter(|(_, entry)| !matches!(entry.value, ConfigValue::Table(_)));
        plain.map(|(key, entry)| (key.clone(), entry.clone())).collect()
    }

    /// Reports a fault of a key that was already read.
    pub(crate) fn fault(&mut self, key: &str, problem: &str) {
        let whole = self.dotted(key);
        let origin = self.findings.params.origin(&whole);
        self.findings.faults.add(&origin, &whole, problem);
    }

    /// Takes a value, converts it, and records how it is shown.
    fn value<T>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(&ConfigValue) -> Result<T, String>,
        show: impl FnOnce(&T) -> String,
    ) -> Option<T> {
        let entry = self.take(key)?;
        let whole = self.dotted(key);
        match parse(&entry.value) {
            Ok(value) => {
                self.findings.params.add(whole, show(&value), entry.origin);
                Some(value)
            }
            Err(problem) => {
                self.findings.faults.add(&entry.origin, &whole, problem);
                None
            }
        }
    }

    fn take(&mut self, key: &'static str) -> Option<ConfigEntry> {
        self.asked.push(key);
        let entry = self.table.remove(key);
        if entry.is_none() && !self.broken {
            let whole = self.dotted(key);
            self.findings.faults.add(&self.origin, &whole, "it is missing");
        }
        entry
    }

    /// Reports every key that was not read as unknown.
    fn end(self) {
        for (key, entry) in &self.table {
            let problem = format!("there is no such key{}", suggestion(key, &self.asked));
            self.findings.faults.add(&entry.origin, &self.dotted(key), problem);
        }
    }

    fn dotted(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_string() } else { format!("{}.{key}", self.name) }
    }

    fn decimal(
        &mut self,
        key: &'static str,
        range: RangeInclusive<i64>,
        show: impl FnOnce(i64) -> String,
    ) -> i64 {
        let parse = |value: &ConfigValue| match decimal_of(value)? {
            raw if range.contains(&raw) => Ok(raw),
            _ => Err("it must not be negative".to_string()),
        };
        self.value(key, parse, |raw| show(*raw)).unwrap_or_default()
    }
}

/// Adds the missing keys of `like` to a table.
fn completed(entry: ConfigEntry, like: &ConfigTable) -> ConfigEntry {
    let ConfigValue::Table(above) = entry.value else { return entry };
    let mut table = like.clone();
    tree::overlay(&mut table, above);
    ConfigEntry { value: ConfigValue::Table(table), origin: entry.origin }
}

fn name_of(text: &str, bytes_max: usize) -> Result<String, String> {
    let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    match plain && (1..=bytes_max).contains(&text.len()) {
        true => Ok(text.to_string()),
        false => Err(format!("it must be 1 to {bytes_max} letters, digits, - or _, not {text:?}")),
    }
}

pub(super) fn text_of(value: &ConfigValue) -> Result<&str, String> {
    let ConfigValue::Text(text) = value else {
        return Err(format!("it must be a text in quotes, not {}", value.kind()));
    };
    if text.len() > TEXT_BYTES_MAX {
        return Err(format!("it may have {TEXT_BYTES_MAX} bytes, not {}", text.len()));
    }
    Ok(text)
}

fn number_of<T>(value: &ConfigValue, range: &RangeInclusive<T>) -> Result<T, String>
where
    T: Copy + Display + PartialOrd + TryFrom<i64>,
{
    let ConfigValue::Integer(number) = value else {
        return Err(format!("it must be a whole number, not {}", value.kind()));
    };
    match T::try_from(*number).ok().filter(|number| range.contains(number)) {
        Some(number) => Ok(number),
        None => Err(format!("it must be {} to {}, not {number}", range.start(), range.end())),
    }
}

/// Parses a number with at most eight decimals exactly; also as a text, for numbers that TOML
/// cannot hold.
fn decimal_of(value: &ConfigValue) -> Result<i64, String> {
    let text = match value {
        ConfigValue::Integer(number) => number.to_string(),
        ConfigValue::Decimal(text) | ConfigValue::Huge(text) | ConfigValue::Text(text) => text.clone(),
        ConfigValue::Flag(_) | ConfigValue::List(_) | ConfigValue::Table(_) | ConfigValue::Date(_) => {
            return Err(format!("it must be a number, not {}", value.kind()));
        }
    };
    text::parse_scaled(text.as_bytes())
        .map_err(|_| format!("{text:?} is not a decimal with at most eight places"))
}

fn parse_address(text: &str) -> Result<Option<SocketAddr>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let numbered = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    let address = numbered.as_deref().unwrap_or(text).parse();
    address.map(Some).map_err(|_| {
        format!("it must be host:port with the host as a number, such as 127.0.0.1:9090, not {text:?}")
    })
}
