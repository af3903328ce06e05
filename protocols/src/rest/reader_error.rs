//! Error texts of the JSON reader in the words of the interface: clients know numbers, texts and
//! objects, and no types of this program.

/// Longest part of a value that is repeated in an error text, in characters.
const VALUE_CHARS_MAX: usize = 64;

/// Returns the text of an error without names of types. Texts of our own readers stay as they are.
pub(super) fn in_plain_words(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    let words = text.strip_suffix(&position).unwrap_or(&text);
    if !error.is_data() {
        return format!("the body is not JSON: {text}");
    }
    let mismatch = ["invalid type: ", "invalid value: "].iter().find_map(|kind| words.strip_prefix(kind));
    match mismatch.and_then(|mismatch| mismatch.rsplit_once(", expected ")) {
        Some((found, wanted)) => {
            format!("it must be {}, not {}{position}", wanted_words(wanted), shown(found))
        }
        None => text,
    }
}

/// Returns the words for what the reader expected.
fn wanted_words(wanted: &str) -> String {
    let whole = |max: u64| format!("a whole number from 0 to {max}");
    match wanted {
        "u8" => whole(u8::MAX.into()),
        "u16" => whole(u16::MAX.into()),
        "u32" => whole(u32::MAX.into()),
        "u64" | "usize" => whole(u64::MAX),
        "i64" | "i32" => "a whole number".to_string(),
        "a string" | "a borrowed string" | "str" => "a text".to_string(),
        "a boolean" => "true or false".to_string(),
        "a sequence" => "a list".to_string(),
        "a map" => "an object".to_string(),
        _ if wanted.starts_with("struct ") => "an object".to_string(),
        _ => wanted.to_string(),
    }
}

/// Returns the words for what the reader found.
fn shown(found: &str) -> String {
    let quoted = |kind: &str| found.strip_prefix(kind)?.strip_prefix('`')?.strip_suffix('`');
    let number = quoted("integer ").or_else(|| quoted("floating point ")).or_else(|| quoted("number "));
    let words = match found {
        "sequence" => "a list",
        "map" => "an object",
        _ => number.or_else(|| quoted("boolean ")).or_else(|| found.strip_prefix("string ")).unwrap_or(found),
    };
    match words.char_indices().nth(VALUE_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &words[..at]),
        None => words.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde::de::DeserializeOwned;

    use crate::rest::{LimitOrderVO, MarketDataSubscriptionVO, read};

    #[derive(Debug, Deserialize)]
    struct OneMember<T> {
        #[serde(rename = "value")]
        _value: T,
    }

    /// Returns the words for what a reader of this type expects.
    fn expected_by<T: DeserializeOwned + std::fmt::Debug>() -> String {
        let text = read::<OneMember<T>>(b"{\"value\":-1.5}").unwrap_err().to_string();
        let words =
            text.strip_prefix("`value`: it must be ").and_then(|text| text.split_once(", not -1.5 at"));
        words.expect("it names the value").0.to_string()
    }

    #[test]
    fn every_expected_type_has_plain_words() {
        for (words, max) in [
            (expected_by::<u8>(), "255"),
            (expected_by::<u16>(), "65535"),
            (expected_by::<u32>(), "4294967295"),
            (expected_by::<u64>(), "18446744073709551615"),
            (expected_by::<usize>(), "18446744073709551615"),
        ] {
            assert_eq!(words, format!("a whole number from 0 to {max}"));
        }
        for (words, expected) in [
            (expected_by::<i32>(), "a whole number"),
            (expected_by::<i64>(), "a whole number"),
            (expected_by::<String>(), "a text"),
            (expected_by::<bool>(), "true or false"),
            (expected_by::<Vec<u8>>(), "a list"),
            (expected_by::<BTreeMap<String, u8>>(), "an object"),
            (expected_by::<OneMember<u8>>(), "an object"),
            (expected_by::<char>(), "a character"),
        ] {
            assert_eq!(words, expected);
        }
    }

    fn of_order(text: &str) -> String {
        read::<LimitOrderVO>(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn errors_name_no_types_of_this_program() {
        let whole = "it must be a whole number from 0 to 4294967295, not";
        for (value, problem) in [
            ("\"1\"", format!("`securityId`: {whole} \"1\" at line 1 column 17")),
            ("-1", format!("`securityId`: {whole} -1 at")),
            ("1e3", format!("`securityId`: {whole} 1000.0 at")),
            ("4294967296", format!("`securityId`: {whole} 4294967296 at")),
            ("true", format!("`securityId`: {whole} true at")),
            ("null", format!("`securityId`: {whole} null at")),
            ("[1]", format!("`securityId`: {whole} a list at")),
            ("{}", format!("`securityId`: {whole} an object at")),
        ] {
            let text = of_order(&format!("{{\"securityId\":{value}"));
            assert!(text.starts_with(&problem), "{text}");
        }
        assert!(of_order("{\"intId\":7").starts_with("`intId`: it must be a text, not 7 at"));
        assert!(
            of_order("{\"exchangeOrder\":\"yes\"").starts_with("`exchangeOrder`: it must be true or false")
        );
        let bad = read::<MarketDataSubscriptionVO>(b"{\"strategyName\":[],").unwrap_err().to_string();
        assert!(bad.contains("it must be a text, not a list"), "{bad}");
        assert!(of_order("{\"side\" 1}").starts_with("the body is not JSON: expected `:`"));
        assert_eq!(of_order("{}"), "missing field `securityId` at line 1 column 2");
    }

    #[test]
    fn only_the_beginning_of_a_long_value_is_repeated() {
        let text = of_order(&format!("{{\"securityId\":\"{}\"", "é".repeat(10_000)));
        assert!(text.contains("éé…") && text.chars().count() < 200, "{text}");
    }
}
