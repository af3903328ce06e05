//! Sources of settings, the later over the earlier: built-in settings, files and presets, the
//! environment, the command line.

use std::fs::File;
use std::io::Read;

use super::fault::ConfigFaults;
use super::origin::SettingOrigin;
use super::tree::{self, ConfigEntry, ConfigTable, ConfigValue};
use crate::diagnostics::suggestion;

/// Largest file of settings, in bytes; a larger file is something else.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Prefix of environment variables that are settings.
const PREFIX: &str = "PITLANE_";

pub(crate) const DEFAULT: (&str, &str) =
    ("config/default.toml", include_str!("../../../config/default.toml"));

/// The presets, by name.
pub const PRESETS: [(&str, &str, &str); 5] = [
    ("dev", "config/dev.toml", include_str!("../../../config/dev.toml")),
    ("bench", "config/bench.toml", include_str!("../../../config/bench.toml")),
    ("pinned", "config/pinned.toml", include_str!("../../../config/pinned.toml")),
    ("simulation", "config/simulation.toml", include_str!("../../../config/simulation.toml")),
    ("distributed", "config/distributed.toml", include_str!("../../../config/distributed.toml")),
];

/// Tables whose keys are chosen by the user; the tables below them may have the keys of another
/// table.
const NAMED: [(&str, &str); 5] = [
    ("risk.strategy", "risk.strategies"),
    ("risk.account", "risk.accounts"),
    ("venue.exchange", "venue"),
    ("log.targets", ""),
    ("settlement.prices", ""),
];

/// Sources above the built-in settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// Paths, or names of presets; the later wins.
    pub files: Vec<String>,
    /// Names and values; variables that do not begin with `PITLANE_` are ignored.
    pub environment: Vec<(String, String)>,
    pub options: Vec<Setting>,
}

/// A setting of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Name of the option, for error messages; without the value, which may be a secret.
    pub option: &'static str,
    /// Dotted key.
    pub key: String,
    pub value: String,
}

impl Setting {
    /// Parses the argument of `--set`.
    pub fn parse(text: &str) -> Result<Setting, String> {
        let (key, value) =
            text.split_once('=').ok_or("it must be key=value, such as http.listen=127.0.0.1:0")?;
        Ok(Setting { option: "--set", key: key.trim().to_string(), value: value.trim().to_string() })
    }
}

/// Reads all layers into one tree. Warnings are about what was ignored.
pub(crate) fn read(sources: &Sources, faults: &mut ConfigFaults, warnings: &mut Vec<String>) -> ConfigTable {
    let mut tree = builtin(faults);
    for name in &sources.files {
        match text_of(name) {
            Ok((name, text)) => tree::overlay(&mut tree, tree::parse(&name, &text, faults)),
            Err(problem) => faults.add(&SettingOrigin::file(name), "", problem),
        }
    }
    for (name, value) in &sources.environment {
        let Some(path) = strip_prefix_without_case(name, PREFIX) else { continue };
        if !path.contains("__") {
            warnings.push(format!("{name}: not a setting and left alone; those are {PREFIX}SECTION__KEY"));
            continue;
        }
        let path: Vec<&str> = path.split("__").collect();
        set(
            &mut tree,
            &path,
            KeyCase::Ignored,
            value,
            &SettingOrigin::Variable(name.as_str().into()),
            faults,
        );
    }
    for Setting { option, key, value } in &sources.options {
        let path: Vec<&str> = key.split('.').collect();
        set(&mut tree, &path, KeyCase::Kept, value, &SettingOrigin::Option(option), faults);
    }
    tree
}

/// Returns the built-in settings.
pub(crate) fn builtin(faults: &mut ConfigFaults) -> ConfigTable {
    tree::parse(DEFAULT.0, DEFAULT.1, faults)
}

/// Returns name and text of a file or preset.
fn text_of(name: &str) -> Result<(String, String), String> {
    if let Some((_, path, text)) = PRESETS.iter().find(|(preset, _, _)| *preset == name) {
        return Ok((path.to_string(), text.to_string()));
    }
    let mut bytes = Vec::new();
    let file = File::open(name).map_err(|error| {
        if name.contains(['/', '.']) {
            return format!("cannot be opened: {error}");
        }
        let presets = PRESETS.map(|(preset, _, _)| preset);
        let hint = suggestion(name, &presets);
        format!("neither a file nor a preset: {error}{hint}; the presets are {}", presets.join(", "))
    })?;
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("it is larger than {FILE_BYTES_MAX} bytes"));
    }
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_string())?;
    Ok((name.to_string(), text))
}

#[derive(Clone, Copy, PartialEq)]
enum KeyCase {
    Kept,
    Ignored,
}

/// Puts one value at its path. Whether the value is valid is checked later, when it is read.
fn set(
    tree: &mut ConfigTable,
    path: &[&str],
    case: KeyCase,
    text: &str,
    origin: &SettingOrigin,
    faults: &mut ConfigFaults,
) {
    let found = resolve(tree, path, case).and_then(|found| {
        let value = value_of(text, found.template.as_ref(), origin)?;
        Ok((found.path, value))
    });
    match found {
        Ok((path, value)) => {
            let wrap = |inner, key| {
                ConfigValue::Table(ConfigTable::from([(
                    key,
                    ConfigEntry { value: inner, origin: origin.clone() },
                )]))
            };
            if let ConfigValue::Table(above) = path.into_iter().rev().fold(value, wrap) {
                tree::overlay(tree, above);
            }
        }
        Err(problem) => faults.add(origin, &path.join("."), problem),
    }
}

/// A path with its keys as they are spelt, and the value there or in a similar table.
struct ResolvedKey {
    path: Vec<String>,
    template: Option<ConfigValue>,
}

fn resolve(tree: &ConfigTable, path: &[&str], case: KeyCase) -> Result<ResolvedKey, String> {
    let mut found = ResolvedKey { path: Vec::new(), template: Some(ConfigValue::Table(tree.clone())) };
    for wanted in path {
        let here = found.path.join(".");
        let Some(ConfigValue::Table(table)) = found.template else {
            return Err(format!("{here} is not a table; give all of it as one TOML value"));
        };
        let known = table.keys().find(|key| match case {
            KeyCase::Kept => *key == wanted,
            KeyCase::Ignored => key.eq_ignore_ascii_case(wanted),
        });
        let named = NAMED.iter().find(|(name, _)| *name == here);
        let key = match (known, named) {
            (Some(key), _) => key.clone(),
            (None, Some(_)) if !wanted.is_empty() => wanted.to_string(),
            (None, _) => {
                let keys: Vec<&str> = table.keys().map(String::as_str).collect();
                return Err(format!("there is no such key{}", suggestion(wanted, &keys)));
            }
        };
        found.template = match named {
            Some((_, like)) => table_at(tree, like),
            None => table.get(&key).map(|entry| entry.value.clone()),
        };
        found.path.push(key);
    }
    Ok(found)
}

/// Returns the table at a path; None if the path is empty.
fn table_at(tree: &ConfigTable, path: &str) -> Option<ConfigValue> {
    let step = |table: Option<ConfigValue>, key: &str| match table {
        Some(ConfigValue::Table(table)) => table.get(key).map(|entry| entry.value.clone()),
        _ => None,
    };
    path.split('.').fold(Some(ConfigValue::Table(tree.clone())), step)
}

/// Converts a text to the type of the existing value: a text as it is, a list separated by commas,
/// anything else as TOML.
fn value_of(
    text: &str,
    template: Option<&ConfigValue>,
    origin: &SettingOrigin,
) -> Result<ConfigValue, String> {
    let parsed = tree::parse_value(text, origin);
    match (template, parsed) {
        (Some(ConfigValue::Text(_)), Ok(ConfigValue::Text(text))) => Ok(ConfigValue::Text(text)),
        (Some(ConfigValue::Text(_)), _) => Ok(ConfigValue::Text(text.to_string())),
        (Some(ConfigValue::List(_)), Ok(ConfigValue::List(items))) => Ok(ConfigValue::List(items)),
        (Some(ConfigValue::List(_)), Err(problem)) if text.starts_with('[') => Err(problem),
        (Some(ConfigValue::List(_)), _) => {
            let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
            let item = |word| ConfigEntry { value: plain(word, origin), origin: origin.clone() };
            Ok(ConfigValue::List(words.map(item).collect()))
        }
        (_, Ok(value)) => Ok(value),
        (_, Err(_)) => Ok(ConfigValue::Text(text.to_string())),
    }
}

fn plain(word: &str, origin: &SettingOrigin) -> ConfigValue {
    tree::parse_value(word, origin).unwrap_or_else(|_| ConfigValue::Text(word.to_string()))
}

fn strip_prefix_without_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (head, rest) = text.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(rest)
}
