//! What a client says, borrowed from the buffer it came in: a command, header lines, a body.
//!
//! ```text
//! SUBSCRIBE⏎            command
//! id:7⏎                 headers: the first colon splits, nothing is trimmed, of repeated ones the first counts
//! destination:/topic/tick.*⏎
//! ⏎
//! body NUL
//! ```

use std::borrow::Cow;
use std::fmt;

use super::escape;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    V10,
    V11,
    V12,
}

impl Version {
    pub const ALL: [Version; 3] = [Version::V10, Version::V11, Version::V12];

    pub fn word(self) -> &'static str {
        match self {
            Version::V10 => "1.0",
            Version::V11 => "1.1",
            Version::V12 => "1.2",
        }
    }

    /// The highest of a list `1.0,1.1` that we speak as well.
    pub fn highest_of(list: &str) -> Option<Version> {
        let offered = list.split(',').map(|word| word.trim_matches(' '));
        offered.filter_map(|word| Version::ALL.into_iter().find(|version| version.word() == word)).max()
    }
}

/// What a client may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Command {
    /// CONNECT, or STOMP, which is the same.
    Connect,
    Send,
    Subscribe,
    Unsubscribe,
    Begin,
    Commit,
    Abort,
    Ack,
    Nack,
    Disconnect,
}

impl Command {
    pub fn from_word(word: &[u8]) -> Option<Command> {
        Some(match word {
            b"CONNECT" | b"STOMP" => Command::Connect,
            b"SEND" => Command::Send,
            b"SUBSCRIBE" => Command::Subscribe,
            b"UNSUBSCRIBE" => Command::Unsubscribe,
            b"BEGIN" => Command::Begin,
            b"COMMIT" => Command::Commit,
            b"ABORT" => Command::Abort,
            b"ACK" => Command::Ack,
            b"NACK" => Command::Nack,
            b"DISCONNECT" => Command::Disconnect,
            _ => return None,
        })
    }

    pub fn word(self) -> &'static str {
        match self {
            Command::Connect => "CONNECT",
            Command::Send => "SEND",
            Command::Subscribe => "SUBSCRIBE",
            Command::Unsubscribe => "UNSUBSCRIBE",
            Command::Begin => "BEGIN",
            Command::Commit => "COMMIT",
            Command::Abort => "ABORT",
            Command::Ack => "ACK",
            Command::Nack => "NACK",
            Command::Disconnect => "DISCONNECT",
        }
    }
}

/// How header values are escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escaping {
    /// Of CONNECT, and of 1.0: not at all.
    None,
    /// Of 1.1: `\n`, `\c`, `\\`.
    V11,
    /// Of 1.2: these, and `\r`.
    V12,
}

impl Escaping {
    pub fn of(version: Option<Version>) -> Escaping {
        match version {
            None | Some(Version::V10) => Escaping::None,
            Some(Version::V11) => Escaping::V11,
            Some(Version::V12) => Escaping::V12,
        }
    }
}

/// A frame that keeps every rule of form. Invariant: each line of `head` has a name and a colon, its escapes are those
/// of `escaping`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    pub command: Command,
    pub(super) head: &'a str,
    pub(super) escaping: Escaping,
    pub body: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The value of a header; of several with this name the first.
    pub fn header(&self, name: &str) -> Option<Cow<'a, str>> {
        find(self.head, name, self.escaping)
    }

    /// All headers as they were written, in order.
    pub fn headers(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        lines(self.head)
    }
}

impl fmt::Debug for Frame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} {:?}", self.command.word(), self.head, self.body.escape_ascii().to_string())
    }
}

/// The first header of this name among complete lines.
pub(super) fn find<'a>(head: &'a str, name: &str, escaping: Escaping) -> Option<Cow<'a, str>> {
    // Names without escapes, which are nearly all, are compared where they stand.
    let has_escapes = escaping != Escaping::None && memchr::memchr(b'\\', head.as_bytes()).is_some();
    let mut rest = head;
    while let Some(end) = memchr::memchr(b'\n', rest.as_bytes()) {
        let (line, behind) = (&rest[..end], &rest[end + 1..]);
        rest = behind;
        let plain = line.strip_prefix(name).and_then(|value| value.strip_prefix(':'));
        let value = plain.or_else(|| if has_escapes { escaped(line, name, escaping) } else { None });
        if let Some(value) = value {
            return escape::unescape(value.strip_suffix('\r').unwrap_or(value), escaping).ok();
        }
    }
    None
}

/// The value of a line whose name has escapes.
fn escaped<'a>(line: &'a str, name: &str, escaping: Escaping) -> Option<&'a str> {
    let (written, value) = line.split_once(':')?;
    let is_named = escape::unescape(written, escaping).is_ok_and(|text| text == name);
    is_named.then_some(value)
}

fn lines(head: &str) -> impl Iterator<Item = (&str, &str)> {
    head.split_terminator('\n').filter_map(|line| line.strip_suffix('\r').unwrap_or(line).split_once(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_common_version_is_chosen() {
        for (list, version) in [
            ("1.0,1.1,1.2", Some(Version::V12)),
            ("1.2,1.0", Some(Version::V12)),
            ("1.1, 1.0", Some(Version::V11)),
            ("1.0,9.9", Some(Version::V10)),
            ("1.3,2.0", None),
            ("", None),
            ("1", None),
        ] {
            assert_eq!(Version::highest_of(list), version, "{list}");
        }
    }

    #[test]
    fn a_frame_tells_its_headers_as_they_are_meant() {
        let head = "id:a:b \r\nx\\cy:\\\\1\r\nid:other\n";
        let frame = Frame { command: Command::Ack, head, escaping: Escaping::V12, body: b"" };
        assert_eq!(frame.header("id").as_deref(), Some("a:b "));
        assert_eq!(frame.header("x:y").as_deref(), Some("\\1"));
        assert_eq!(frame.header("y"), None);
        let raw = Frame { escaping: Escaping::None, ..frame };
        assert_eq!(raw.header("x\\cy").as_deref(), Some("\\\\1"));
        assert_eq!(raw.headers().count(), 3);
    }
}
