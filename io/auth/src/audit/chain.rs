//! Lines of the audit log, each with the hash of the previous one.

use std::fmt;

use pitlane_engine::time::Timestamp;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{ACT_BYTES_MAX, Act};

/// Maximum length of a line in bytes: a description and a body in which every byte is escaped, a
/// name, an address, two hashes.
pub(super) const LINE_BYTES_MAX: usize = 16 * ACT_BYTES_MAX;

/// The hash of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link(pub [u8; 32]);

impl Link {
    /// Parses the written form: 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Link> {
        let digits = text.as_bytes();
        let is_hex = digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
        if digits.len() != LINK_DIGITS || !is_hex {
            return None;
        }
        let mut link = Link::default();
        for (byte, pair) in link.0.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(link)
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The end of the chain: what is needed to append the next line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ChainEnd {
    /// Number of the last line; zero before the first.
    pub seq: u64,
    pub link: Link,
}

/// The content of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AuditEntry {
    Act(Act),
    /// The outcome of the act with this number.
    Outcome {
        of: u64,
        outcome: String,
    },
    /// A note of the service itself.
    Remark(String),
}

#[derive(Serialize)]
struct AuditLine<'a> {
    seq: u64,
    time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    who: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    via: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    act: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remark: Option<&'a str>,
    prev: String,
}

/// The text before a line's own hash, and the text after it.
const HASH: &str = ",\"hash\":\"";
const CLOSE: &str = "\"}";
const LINK_DIGITS: usize = 64;

impl ChainEnd {
    /// Returns the next line, without its line end, and the new end of the chain.
    pub(super) fn append(self, now: Timestamp, entry: &AuditEntry) -> (String, ChainEnd) {
        let seq = self.seq + 1;
        let mut line = AuditLine {
            seq,
            time: now.to_string(),
            who: None,
            role: None,
            from: None,
            via: None,
            act: None,
            body: None,
            of: None,
            outcome: None,
            remark: None,
            prev: self.link.to_string(),
        };
        match entry {
            AuditEntry::Act(act) => {
                (line.who, line.via, line.act) = (Some(&*act.who), Some(act.via), Some(cut(&act.what)));
                line.body = Some(cut(&act.body)).filter(|body| !body.is_empty());
                (line.role, line.from) = (Some(act.role.to_string()), Some(act.from.to_string()));
            }
            AuditEntry::Outcome { of, outcome } => {
                (line.of, line.outcome) = (Some(*of), Some(outcome.as_str()))
            }
            AuditEntry::Remark(text) => line.remark = Some(text),
        }
        let mut text = serde_json::to_string(&line).expect("text and numbers are always JSON");
        // The closing brace follows the hash.
        text.pop();
        let link = Link(Sha256::digest(&text).into());
        (format!("{text}{HASH}{link}{CLOSE}"), ChainEnd { seq, link })
    }

    /// Returns the end of the chain after this line, if the line continues the chain.
    pub(super) fn follow(self, line: &str) -> Result<ChainEnd, &'static str> {
        let stated = facts(line)?;
        if stated.seq != self.seq + 1 {
            return Err("its number does not follow");
        }
        if stated.prev != self.link.to_string() {
            return Err("it does not hold the line before");
        }
        Ok(ChainEnd { seq: stated.seq, link: stated.link })
    }

    /// Returns the end of the chain after this line without checking the predecessor: older files
    /// may have been archived.
    pub(super) fn begin(line: &str) -> Result<ChainEnd, &'static str> {
        facts(line).map(|stated| ChainEnd { seq: stated.seq, link: stated.link })
    }
}

struct LineFacts {
    seq: u64,
    prev: String,
    link: Link,
}

/// Returns the position that a line states, after its own hash has been verified.
fn facts(line: &str) -> Result<LineFacts, &'static str> {
    let tail = HASH.len() + LINK_DIGITS + CLOSE.len();
    let cut = line.len().checked_sub(tail).filter(|at| line.is_char_boundary(*at));
    let (text, tail) = line.split_at(cut.ok_or("it is too short")?);
    let link = Link(Sha256::digest(text).into());
    if tail != format!("{HASH}{link}{CLOSE}") {
        return Err("its hash is wrong");
    }
    let line: serde_json::Value = serde_json::from_str(line).map_err(|_| "it is not JSON")?;
    // The first number is one, and there must be a next number.
    let seq = line["seq"].as_u64().filter(|seq| (1..u64::MAX).contains(seq)).ok_or("it has no number")?;
    let prev = line["prev"].as_str().ok_or("it holds no line before")?.to_string();
    Ok(LineFacts { seq, prev, link })
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(ACT_BYTES_MAX)]
}
