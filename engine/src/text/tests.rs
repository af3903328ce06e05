use super::*;

#[test]
fn a_decimal_is_read_exactly_or_refused() {
    let good = [
        ("0", 0),
        ("-0", 0),
        ("1", SCALE),
        ("-1.5", -150_000_000),
        (".5", 50_000_000),
        ("5.", 5 * SCALE),
        ("90071992.54740993", 9_007_199_254_740_993),
        ("0.000000010000", 1),
        ("92233720368.54775807", i64::MAX),
        ("-92233720368.54775808", i64::MIN),
        ("000001", SCALE),
    ];
    for (text, value) in good {
        assert_eq!(parse_scaled(text.as_bytes()), Ok(value), "{text}");
    }
    let bad = [
        ("", TextError::Empty),
        ("-", TextError::Empty),
        (".", TextError::Empty),
        ("1e5", TextError::Character),
        ("+1", TextError::Character),
        ("1.2.3", TextError::Character),
        ("NaN", TextError::Character),
        ("0.000000001", TextError::TooManyDecimals),
        ("92233720368.54775808", TextError::Range),
        ("99999999999999999999", TextError::Range),
    ];
    for (text, error) in bad {
        assert_eq!(parse_scaled(text.as_bytes()), Err(error), "{text}");
    }
}

/// A number and its bytes.
type ParsedPrefix<T> = Option<(T, usize)>;

/// Checks that the fast parsers agree with the general ones.
fn read_ahead(text: &str) -> (ParsedPrefix<i64>, ParsedPrefix<u64>) {
    let (scaled, number) = (scaled_ahead(text.as_bytes()), u64_ahead(text.as_bytes()));
    if let Some((value, length)) = scaled {
        assert_eq!(parse_scaled(&text.as_bytes()[..length]), Ok(value), "{text}");
    }
    if let Some((value, length)) = number {
        assert_eq!(parse_u64(&text.as_bytes()[..length]), Ok(value), "{text}");
    }
    (scaled, number)
}

#[test]
fn numbers_in_a_row_are_read_without_looking_where_they_end() {
    let rest = ",abcdefgh";
    assert_eq!(read_ahead(&format!("232.51{rest}")), (Some((23_251_000_000, 6)), Some((232, 3))));
    assert_eq!(read_ahead(&format!("5.{rest}")).0, Some((5 * SCALE, 2)));
    assert_eq!(read_ahead(&format!("99999999.99999999{rest}")).0, Some((9_999_999_999_999_999, 17)));
    assert_eq!(read_ahead(&format!("1793629800000000001{rest}")).1, Some((1_793_629_800_000_000_001, 19)));
    for none in ["-1", "", ".5", "123456789", "1.123456789", "é9"] {
        assert_eq!(read_ahead(&format!("{none}{rest}")).0, None, "{none}");
    }
    for none in ["-1", "", ".5", "18446744073709551615", "99999999999999999999999999"] {
        assert_eq!(read_ahead(&format!("{none}{rest}")).1, None, "{none}");
    }
    for near_the_end in ["1", "1.5", "12345678.5", "12345678"] {
        assert_eq!(read_ahead(near_the_end).0.is_some(), near_the_end == "12345678", "{near_the_end}");
    }
    let mut rng = 1u64;
    let mut none = 0;
    for _ in 0..200_000 {
        let text: String = (0..24)
            .map(|_| {
                rng = rng.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                b"0123456789.,123:/9"[(rng >> 40) as usize % 18] as char
            })
            .collect();
        none += read_ahead(&text).0.is_none() as u32;
    }
    assert!((1..150_000).contains(&none), "{none}");
}

#[test]
fn every_scaled_number_survives_the_way_through_text() {
    let mut value = 1i64;
    let mut out = [0; DECIMAL_BYTES_MAX];
    for step in 0..20_000u32 {
        value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let value = value >> (step % 64);
        let len = write_scaled(value, &mut out);
        assert_eq!(parse_scaled(&out[..len]), Ok(value));
    }
    for value in [i64::MIN, i64::MAX, 0, 1, -1] {
        let len = write_scaled(value, &mut out);
        assert_eq!(parse_scaled(&out[..len]), Ok(value));
    }
}

#[test]
fn numbers_are_written_as_the_standard_library_writes_them() {
    let mut number = 1u64;
    let mut out = [0; 20];
    for step in 0..20_000u32 {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let number = number >> (step % 64);
        let len = write_u64(number, &mut out);
        assert_eq!(out[..len], *number.to_string().as_bytes());
        let hex = format!("{:08x}", number as u32);
        assert_eq!(hex_of(number as u32), *hex.as_bytes());
    }
    for number in [0, 9, 10, 99_999_999, 100_000_000, u64::MAX] {
        let len = write_u64(number, &mut out);
        assert_eq!(out[..len], *number.to_string().as_bytes());
    }
}

#[test]
fn eight_digits_and_a_clock_are_read_at_once_or_not_at_all() {
    for number in [0, 7, 12_345_678, 20_261_116, 99_999_999] {
        let text = format!("{number:08}").into_bytes();
        assert_eq!(parse_eight(text[..].try_into().unwrap()), Some(number));
    }
    assert_eq!(parse_clock(b"08:09:59"), Some([8, 9, 59]));
    assert_eq!(parse_clock(b"99:00:01"), Some([99, 0, 1]));
    for at in 0..8 {
        for byte in (0..=255u8).filter(|byte| !byte.is_ascii_digit()) {
            let (mut number, mut clock) = (*b"20261116", *b"08:09:59");
            number[at] = byte;
            assert_eq!(parse_eight(&number), None, "{number:?}");
            if clock[at] != byte {
                clock[at] = byte;
                assert_eq!(parse_clock(&clock), None, "{clock:?}");
            }
        }
    }
    assert_eq!(parse_clock(b"08:0959:"), None);
    assert_eq!(parse_clock(b"08009059"), None);
}

#[test]
fn the_fast_path_agrees_with_the_slow_one() {
    let pieces = ["", "0", "1", "9", "12", "-", ".", "00", "5.", "x", "123456789", "0.1", "99999"];
    for a in pieces {
        for b in pieces {
            for c in pieces {
                let text = [a, b, c].concat();
                assert_eq!(parse_scaled(text.as_bytes()), parse_long(text.as_bytes()), "{text}");
            }
        }
    }
}

#[test]
fn whole_numbers_are_digits_only() {
    assert_eq!(parse_u64(b"18446744073709551615"), Ok(u64::MAX));
    assert_eq!(parse_u64(b"18446744073709551616"), Err(TextError::Range));
    assert_eq!(parse_u64(b"9999999999999999999"), Ok(9_999_999_999_999_999_999));
    assert_eq!(parse_u64(b"00000000000000000000007"), Ok(7));
    assert_eq!(parse_u64(b"99999999999999999999x"), Err(TextError::Character));
    assert_eq!(parse_u64(b""), Err(TextError::Empty));
    assert_eq!(parse_u64(b"-1"), Err(TextError::Character));
}

#[test]
fn days_and_dates_are_one_thing() {
    for days in (-800_000..800_000).step_by(17) {
        let (year, month, day) = date_of(days);
        assert_eq!(days_of(year, month, day), Some(days));
    }
    assert_eq!(days_of(1970, 1, 1), Some(0));
    assert_eq!(days_of(2024, 2, 29), Some(19_782));
    assert_eq!(days_of(2023, 2, 29), None);
    assert_eq!(days_of(2023, 13, 1), None);
    assert_eq!(days_of(2023, 4, 31), None);
}

#[test]
fn days_of_usual_years_are_those_of_any_year() {
    for year in 1_960..2_120 {
        for (month, day) in (0..15).flat_map(|month| (0..34).map(move |day| (month, day))) {
            assert_eq!(days_of(year, month, day), days_of_any(year, month, day), "{year}-{month}-{day}");
        }
    }
}

#[test]
fn errors_have_words() {
    for error in [
        TextError::Empty,
        TextError::Character,
        TextError::TooManyDecimals,
        TextError::Range,
        TextError::TooLong,
    ] {
        assert!(!error.to_string().is_empty());
    }
}
