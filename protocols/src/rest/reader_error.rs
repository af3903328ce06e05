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
        "f64" | "f32" => "a number".to_string(),
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
        "unit value" => "null",
        _ => number.or_else(|| quoted("boolean ")).or_else(|| found.strip_prefix("string ")).unwrap_or(found),
    };
    match words.char_indices().nth(VALUE_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &words[..at]),
        None => words.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use crate::rest::{LimitOrderVO, MarketDataSubscriptionVO, read};

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
