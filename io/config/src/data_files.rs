//! How files of market data are read: settings that `[simulation]` and `[replay]` have alike.

use std::collections::BTreeMap;

use pitlane_engine::time::Day;

use super::section::{Section, text_of};

/// Most levels on each side that are taken from data with depth.
pub const DATA_LEVELS_MAX: usize = 64;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataFilesConfig {
    pub format: DataFormat,
    /// Securities, by id or symbol, of the symbols in files of other providers.
    pub symbols: BTreeMap<String, String>,
    /// Levels on each side that are taken from data with depth; zero: the best prices only.
    pub levels: usize,
    /// Whether a trade makes a quote where a file has no quotes.
    pub trade_quotes: bool,
}

impl DataFilesConfig {
    pub(super) fn read(section: &mut Section<'_>) -> DataFilesConfig {
        let format = section.text_as("format", DataFormat::parse, DataFormat::to_string);
        let pairs = section.items("symbols", |value| alias(text_of(value)?), show_alias);
        DataFilesConfig {
            format: format.unwrap_or_default(),
            symbols: pairs.into_iter().collect(),
            levels: section.number("levels", 0..=DATA_LEVELS_MAX),
            trade_quotes: section.flag("trade_quotes"),
        }
    }
}

/// Format of a file of market data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataFormat {
    /// Each file is recognised by its content.
    #[default]
    Auto,
    Csv,
    Parquet,
    Dbn,
    /// The day of the data, which the format does not contain; None: the name of the file has it.
    Itch(Option<Day>),
    BinanceTrades,
    BinanceAggTrades,
    BinanceKlines,
}

impl DataFormat {
    /// The formats that are named by one word.
    const WORDS: [(&'static str, DataFormat); 8] = [
        ("auto", DataFormat::Auto),
        ("csv", DataFormat::Csv),
        ("parquet", DataFormat::Parquet),
        ("dbn", DataFormat::Dbn),
        ("itch", DataFormat::Itch(None)),
        ("binance-trades", DataFormat::BinanceTrades),
        ("binance-agg-trades", DataFormat::BinanceAggTrades),
        ("binance-klines", DataFormat::BinanceKlines),
    ];

    fn parse(text: &str) -> Result<DataFormat, String> {
        if let Some((_, format)) = DataFormat::WORDS.iter().find(|(word, _)| *word == text) {
            return Ok(*format);
        }
        if let Some(day) = text.strip_prefix("itch ") {
            let day = Day::parse(day.trim().as_bytes());
            return day
                .map(|day| DataFormat::Itch(Some(day)))
                .map_err(|_| format!("the day must be such as itch 2019-12-30, not {text:?}"));
        }
        let words = DataFormat::WORDS.map(|(word, _)| word).join(", ");
        Err(format!("it must be one of {words}, not {text:?}"))
    }
}

impl std::fmt::Display for DataFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let DataFormat::Itch(Some(day)) = self {
            return write!(f, "itch {day}");
        }
        let word = DataFormat::WORDS.iter().find(|(_, format)| format == self);
        f.write_str(word.map_or("", |(word, _)| word))
    }
}

/// Splits a pair such as `BTCUSDT=BTCUSD`.
fn alias(text: &str) -> Result<(String, String), String> {
    match text.split_once('=').map(|(name, security)| (name.trim(), security.trim())) {
        Some((name, security)) if !name.is_empty() && !security.is_empty() => {
            Ok((name.to_string(), security.to_string()))
        }
        _ => Err(format!("a symbol must be such as \"BTCUSDT=BTCUSD\", not {text:?}")),
    }
}

fn show_alias((name, security): &(String, String)) -> String {
    format!("{name}={security}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_shown_as_they_are_read() {
        let words = DataFormat::WORDS.map(|(word, _)| word);
        for text in words.into_iter().chain(["itch 2019-12-30"]) {
            assert_eq!(DataFormat::parse(text).map(|format| format.to_string()).as_deref(), Ok(text));
        }
        for text in ["", "DBN", "itch 2019", "itch 2019-13-30", "binance"] {
            assert!(DataFormat::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_symbol_has_a_name_and_a_security() {
        assert_eq!(alias(" BTCUSDT = 50 "), Ok(("BTCUSDT".to_string(), "50".to_string())));
        for text in ["", "BTCUSDT", "=50", "BTCUSDT="] {
            assert!(alias(text).is_err(), "{text}");
        }
    }
}
