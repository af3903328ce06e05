//! Writes JSON of the hot path directly into a reused buffer: numbers from scaled integers, exact
//! to the last digit, and without memory of its own.

mod check;

use std::fmt::{self, Write};

use pitlane_engine::text::{DECIMALS, SCALE};
use pitlane_engine::time::{NS_PER_S, Timestamp};

pub(crate) use self::check::depth;
pub use self::check::{is_json, lone_surrogate};

/// An object that is being written. Absent values are left out and not `null`.
#[derive(Debug)]
pub struct Object<'a> {
    out: &'a mut Vec<u8>,
    is_empty: bool,
}

impl<'a> Object<'a> {
    pub fn new(out: &'a mut Vec<u8>) -> Object<'a> {
        out.push(b'{');
        Object { out, is_empty: true }
    }

    pub fn end(self) {
        self.out.push(b'}');
    }

    pub fn text(&mut self, name: &str, value: &str) {
        self.name(name);
        push_text(self.out, value);
    }

    pub fn number(&mut self, name: &str, value: u64) {
        self.name(name);
        push_number(self.out, value);
    }

    /// Writes a decimal in units of 10⁻⁸.
    pub fn decimal(&mut self, name: &str, raw: i64) {
        self.name(name);
        push_decimal(self.out, raw);
    }

    pub fn flag(&mut self, name: &str, value: bool) {
        self.name(name);
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
    }

    pub fn time(&mut self, name: &str, value: Timestamp) {
        self.name(name);
        self.out.push(b'"');
        push_time(self.out, value);
        self.out.push(b'"');
    }

    /// Writes a value as text by its `Display`.
    pub fn shown(&mut self, name: &str, value: impl fmt::Display) {
        self.name(name);
        self.out.push(b'"');
        write!(EscapedWriter(self.out), "{value}").expect("a buffer takes everything");
        self.out.push(b'"');
    }

    /// Writes a value that is known to be JSON.
    pub fn json(&mut self, name: &str, value: &[u8]) {
        self.name(name);
        self.out.extend_from_slice(value);
    }

    /// Begins a member and returns the buffer for its value.
    pub fn value(&mut self, name: &str) -> &mut Vec<u8> {
        self.name(name);
        self.out
    }

    /// Writes a text under a name from outside, which is escaped.
    pub fn text_named(&mut self, name: &str, value: &str) {
        if !self.is_empty {
            self.out.push(b',');
        }
        self.is_empty = false;
        push_text(self.out, name);
        self.out.push(b':');
        push_text(self.out, value);
    }

    /// Writes a name of ours, which needs no escapes.
    fn name(&mut self, name: &str) {
        self.out.extend_from_slice(if self.is_empty { b"\"" } else { b",\"" });
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.is_empty = false;
    }
}

/// Escapes text that is written between quotes.
struct EscapedWriter<'a>(&'a mut Vec<u8>);

impl fmt::Write for EscapedWriter<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        push_escaped(self.0, text);
        Ok(())
    }
}

pub fn push_number(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Writes units of 10⁻⁸ as a decimal without trailing zeros.
pub fn push_decimal(out: &mut Vec<u8>, raw: i64) {
    if raw < 0 {
        out.push(b'-');
    }
    let magnitude = raw.unsigned_abs();
    let (whole, part) = (magnitude / SCALE as u64, magnitude % SCALE as u64);
    push_number(out, whole);
    if part == 0 {
        return;
    }
    // A one before the decimals keeps their leading zeros; the point replaces it.
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(part + SCALE as u64).as_bytes();
    let start = out.len();
    out.extend_from_slice(digits);
    out[start] = b'.';
    let zeros = digits.iter().rev().take_while(|digit| **digit == b'0').count();
    out.truncate(start + 1 + DECIMALS - zeros);
}

pub fn push_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    push_escaped(out, text);
    out.push(b'"');
}

fn push_escaped(out: &mut Vec<u8>, text: &str) {
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|octet| matches!(octet, b'"' | b'\\' | 0..=0x1f)) {
        out.extend_from_slice(&rest[..at]);
        push_escape(out, rest[at]);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

fn push_escape(out: &mut Vec<u8>, octet: u8) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    match octet {
        b'"' => out.extend_from_slice(b"\\\""),
        b'\\' => out.extend_from_slice(b"\\\\"),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        _ => {
            out.extend_from_slice(b"\\u00");
            out.extend_from_slice(&[HEX[(octet >> 4) as usize], HEX[(octet & 15) as usize]]);
        }
    }
}

/// Writes a time as RFC 3339 in UTC, equal to its `Display`. Every tick has one, so it is written
/// at once.
pub fn push_time(out: &mut Vec<u8>, at: Timestamp) {
    let (year, month, day) = pitlane_engine::text::date_of(at.day().0);
    let second = (at.0 / NS_PER_S % 86_400) as u32;
    let ns = (at.0 % NS_PER_S) as u32;
    let mut text = *b"0000-00-00T00:00:00.000000000Z";
    // Two digits each, by the index of the first.
    for (at, part) in [
        (0, year as u32 / 100),
        (2, year as u32 % 100),
        (5, month),
        (8, day),
        (11, second / 3_600),
        (14, second / 60 % 60),
        (17, second % 60),
        (20, ns / 10_000_000),
        (22, ns / 100_000 % 100),
        (24, ns / 1_000 % 100),
        (26, ns / 10 % 100),
    ] {
        text[at] = b'0' + ((part / 10) & 0xff) as u8;
        text[at + 1] = b'0' + (part % 10) as u8;
    }
    text[28] = b'0' + (ns % 10) as u8;
    let len = match ns {
        0 => 19,
        ns if ns % 1_000_000 == 0 => 23,
        ns if ns % 1_000 == 0 => 26,
        _ => 29,
    };
    text[len] = b'Z';
    out.extend_from_slice(&text[..=len]);
}

#[cfg(test)]
mod tests {
    use pitlane_engine::number::Price;
    use pitlane_engine::time::{Day, NS_PER_MS};

    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn decimals_are_exact() {
        let mut value = 1i64;
        for step in 0..50_000u32 {
            value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let raw = value >> (step % 64);
            assert_eq!(text(|out| push_decimal(out, raw)), Price::from_raw(raw).to_string());
        }
        for raw in [0, 1, -1, SCALE, -SCALE, 10 * SCALE, SCALE / 2, i64::MAX, i64::MIN] {
            assert_eq!(text(|out| push_decimal(out, raw)), Price::from_raw(raw).to_string());
        }
    }

    #[test]
    fn times_are_written_as_by_display() {
        let start = Day::parse(b"2026-11-14").unwrap().start();
        for ns in [0, 1, 1_000, NS_PER_MS, 123_456_789, 86_399 * NS_PER_S + 999_999_999] {
            let at = start.plus(ns);
            assert_eq!(text(|out| push_time(out, at)), at.to_string());
        }
        assert_eq!(text(|out| push_time(out, Timestamp::ZERO)), Timestamp::ZERO.to_string());
    }

    #[test]
    fn an_object_is_json_whatever_its_texts_hold() {
        let nasty = "a\"b\\c\nd\u{1}e/ü€";
        let written = text(|out| {
            let mut object = Object::new(out);
            object.text("text", nasty);
            object.number("number", u64::MAX);
            object.flag("flag", true);
            object.json("json", b"[1,2]");
            object.shown("shown", format_args!("{}\"", 7));
            object.end();
        });
        assert_eq!(
            written,
            r#"{"text":"a\"b\\c\nd\u0001e/ü€","number":18446744073709551615,"flag":true,"json":[1,2],"shown":"7\""}"#
        );
        assert!(is_json(written.as_bytes()));
        assert_eq!(text(|out| Object::new(out).end()), "{}");
    }
}
