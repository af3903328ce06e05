//! Prices, quantities and amounts in JSON: exact, never through a float. They are written as a
//! number and read from a number or a text.

use std::fmt;

use pitlane_engine::number::{ContractSize, Money, Price, Qty};
use pitlane_engine::text::{self, DECIMAL_BYTES_MAX, SCALE, TextError};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use serde_json::value::RawValue;

/// Longest decimal that is read. Our numbers hold at most 21 digits; the rest is for zeros.
const TEXT_BYTES_MAX: usize = 64;

/// An exact decimal with at most eight places. A JSON number; a text such as `"1.5"` is read too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Decimal {
    /// Value in units of 10⁻⁸.
    pub raw: i64,
}

impl Decimal {
    /// Reads a decimal with or without an exponent: `1.5`, `-2`, `25e-2`. A value that cannot be
    /// held exactly is refused.
    pub fn parse(text: &str) -> Result<Decimal, TextError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(TextError::TooLong);
        }
        let raw = match text.find(['e', 'E']) {
            None => text::parse_scaled(text.as_bytes()),
            Some(at) => text::parse_scaled(shifted(&text[..at], &text[at + 1..])?.as_bytes()),
        };
        raw.map(|raw| Decimal { raw })
    }
}

/// Returns a decimal without its exponent, with the point moved instead.
fn shifted(mantissa: &str, exponent: &str) -> Result<String, TextError> {
    let exponent: i32 = exponent.parse().map_err(|_| TextError::Range)?;
    let (sign, digits) = match mantissa.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", mantissa),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    if !whole.bytes().chain(part.bytes()).all(|octet| octet.is_ascii_digit()) || whole.is_empty() {
        return Err(TextError::Character);
    }
    // Beyond this every number but zero is out of range, and zero needs no exponent.
    if exponent.unsigned_abs() as usize > TEXT_BYTES_MAX {
        return Err(TextError::Range);
    }
    let all = format!("{whole}{part}");
    let point = i32::try_from(whole.len()).map_err(|_| TextError::TooLong)? + exponent;
    Ok(match point {
        ..=0 => format!("{sign}0.{}{all}", "0".repeat(-point as usize)),
        _ if point as usize >= all.len() => format!("{sign}{all}{}", "0".repeat(point as usize - all.len())),
        _ => format!("{sign}{}.{}", &all[..point as usize], &all[point as usize..]),
    })
}

macro_rules! decimals {
    ($($number:ident)*) => {$(
        impl From<$number> for Decimal {
            fn from(number: $number) -> Decimal {
                Decimal { raw: number.raw() }
            }
        }

        impl From<Decimal> for $number {
            fn from(decimal: Decimal) -> $number {
                $number::from_raw(decimal.raw)
            }
        }
    )*};
}

decimals!(Price Qty Money ContractSize);

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Price::from_raw(self.raw).fmt(f)
    }
}

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Most quantities are whole, and then the number needs no text of its own.
        if self.raw % SCALE == 0 {
            return serializer.serialize_i64(self.raw / SCALE);
        }
        let mut buffer = [0; DECIMAL_BYTES_MAX];
        let len = text::write_scaled(self.raw, &mut buffer);
        let raw: &RawValue = serde_json::from_slice(&buffer[..len]).map_err(ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Decimal, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        let text = raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"')).unwrap_or(raw);
        Decimal::parse(text).map_err(|error| {
            let words = "a decimal has at most 8 places and 11 digits before them";
            let shown: String = raw.chars().take(TEXT_BYTES_MAX / 2).collect();
            de::Error::custom(format_args!("{shown}: {error}; {words}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Option<i64> {
        serde_json::from_str::<Decimal>(json).ok().map(|decimal| decimal.raw)
    }

    #[test]
    fn numbers_and_texts_are_read_exactly() {
        for (json, raw) in [
            ("0", 0),
            ("-0", 0),
            ("1", 100_000_000),
            ("\"1\"", 100_000_000),
            ("0.00000001", 1),
            ("1e-8", 1),
            ("1E+2", 10_000_000_000),
            ("12.5e1", 12_500_000_000),
            ("12.5e-1", 125_000_000),
            ("125e-3", 12_500_000),
            ("90071992.54740993", 9_007_199_254_740_993),
            ("92233720368.54775807", i64::MAX),
            ("-92233720368.54775808", i64::MIN),
            ("0.10000000000000000000", 10_000_000),
        ] {
            assert_eq!(read(json), Some(raw), "{json}");
        }
    }

    #[test]
    fn values_that_cannot_be_exact_are_refused() {
        for json in [
            "1e400",
            "-1e400",
            "1e-9",
            "0.000000001",
            "92233720368.54775808",
            "1e11",
            "1e99999999999",
            "NaN",
            "Infinity",
            "\"\"",
            "\"abc\"",
            "\"1,5\"",
            "\"0x10\"",
            "\" 1\"",
            "\"\\u0031\"",
            "true",
            "null",
            "[]",
            "{}",
            "[1]",
            "+1",
            "01",
            ".5",
            "\"e5\"",
            "\"1e\"",
            "\"--1\"",
        ] {
            assert_eq!(read(json), None, "{json}");
        }
        assert_eq!(read(&format!("0.{}", "0".repeat(100))), None, "longer than any value needs");
    }

    #[test]
    fn every_decimal_survives_a_json_round_trip() {
        let mut value = 1i64;
        for step in 0..20_000u32 {
            value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let decimal = Decimal { raw: value >> (step % 64) };
            let json = serde_json::to_string(&decimal).unwrap();
            assert_eq!(json, decimal.to_string());
            assert_eq!(read(&json), Some(decimal.raw), "{json}");
            assert_eq!(read(&format!("\"{json}\"")), Some(decimal.raw), "{json}");
        }
    }
}
