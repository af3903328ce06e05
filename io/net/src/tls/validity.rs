//! The validity of a certificate: the only part of X.509 that this program parses itself.
//!
//! ```text
//! Certificate { TBSCertificate { [0] version, serial, algorithm, issuer, Validity { notBefore, notAfter }, … } … }
//! ```

use pitlane_engine::text::days_of;
use pitlane_engine::time::{Day, NS_PER_S, Timestamp};

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// Returns the last instant of a certificate's validity, or `None` if it is not a certificate
/// according to RFC 5280.
pub fn not_after(der: &[u8]) -> Option<Timestamp> {
    let (certificate, _) = take(der, SEQUENCE)?;
    let (mut fields, _) = take(certificate, SEQUENCE)?;
    if fields.first() == Some(&VERSION) {
        fields = skip(fields)?;
    }
    for _ in ["serial", "algorithm", "issuer"] {
        fields = skip(fields)?;
    }
    let (validity, _) = take(fields, SEQUENCE)?;
    let (tag, text, _) = any(skip(validity)?)?;
    instant(tag, text)
}

/// Returns the value with this tag, and the bytes after it.
fn take(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, value, rest) = any(der)?;
    (found == tag).then_some((value, rest))
}

fn skip(der: &[u8]) -> Option<&[u8]> {
    any(der).map(|(_, _, rest)| rest)
}

/// Returns tag, value and the bytes after it. A length has one byte, or states the number of its
/// bytes.
fn any(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], mut rest) = der.split_first_chunk::<2>()?;
    let mut length = first as usize;
    if first & 0x80 != 0 {
        let (bytes, after) = rest.split_at_checked((first & 0x7f) as usize)?;
        if bytes.is_empty() || bytes.len() > 4 {
            return None;
        }
        length = bytes.iter().fold(0, |length, &b| length << 8 | b as usize);
        rest = after;
    }
    let (value, after) = rest.split_at_checked(length)?;
    Some((tag, value, after))
}

/// Parses `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ`.
fn instant(tag: u8, text: &[u8]) -> Option<Timestamp> {
    let digits = text.strip_suffix(b"Z")?;
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let two =
        |at: usize| digits.get(at..at + 2).map(|d| u32::from(d[0] - b'0') * 10 + u32::from(d[1] - b'0'));
    let (year, at) = match (tag, digits.len()) {
        // RFC 5280, 4.1.2.5.1: years from 50 on are in the last century.
        (UTC_TIME, 12) => (two(0).map(|year| if year < 50 { 2_000 + year } else { 1_900 + year })?, 2),
        (GENERALIZED_TIME, 14) => (two(0)? * 100 + two(2)?, 4),
        _ => return None,
    };
    let (month, day) = (two(at)?, two(at + 2)?);
    let (hour, minute, second) = (two(at + 4)?, two(at + 6)?, two(at + 8)?);
    let day = Day(days_of(i32::try_from(year).ok()?, month, day)?);
    if day < Day(0) {
        return None;
    }
    let seconds = hour * 3_600 + minute * 60 + second;
    Some(day.start().plus(u64::from(seconds) * NS_PER_S))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_read_in_both_forms() {
        let cases = [
            (UTC_TIME, "700101000000Z", Some(0)),
            (UTC_TIME, "000229123456Z", Some(951_827_696)),
            (UTC_TIME, "491231235959Z", Some(2_524_607_999)),
            (GENERALIZED_TIME, "20500101000000Z", Some(2_524_608_000)),
            (GENERALIZED_TIME, "19691231235959Z", None),
            (GENERALIZED_TIME, "20501301000000Z", None),
            (UTC_TIME, "20500101000000Z", None),
            (UTC_TIME, "7001010000Z", None),
            (UTC_TIME, "700101000000+0100", None),
            (UTC_TIME, "70010100000xZ", None),
        ];
        for (tag, text, seconds) in cases {
            let expected = seconds.map(|seconds: u64| Timestamp(seconds * NS_PER_S));
            assert_eq!(instant(tag, text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn any_bytes_give_an_instant_or_none() {
        assert_eq!(not_after(b""), None);
        assert_eq!(not_after(&[0x30, 0x80]), None);
        assert_eq!(not_after(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
        assert_eq!(not_after(&[0x30, 0x02, 0x30, 0x00]), None);
        assert_eq!(not_after(&[0x30; 64]), None);
    }
}
