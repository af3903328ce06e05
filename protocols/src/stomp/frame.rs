//! A client's frame, borrowed from the buffer: a command, header lines, a body.
//!
//! ```text
//! SUBSCRIBE⏎            command
//! id:7⏎                 headers: split at the first colon, never trimmed, the first of equal names counts
//! destination:/topic/tick.*⏎
//! ⏎
//! body NUL
//! ```

use std::borrow::Cow;
use std::fmt;

use super::escape;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StompVersion {
    V10,
    V11,
    V12,
}

impl StompVersion {
    pub const ALL: [StompVersion; 3] = [StompVersion::V10, StompVersion::V11, StompVersion::V12];

    pub fn wire_name(self) -> &'static str {
        match self {
            StompVersion::V10 => "1.0",
            StompVersion::V11 => "1.1",
            StompVersion::V12 => "1.2",
        }
    }

    /// Returns the highest supported version of a list such as `1.0,1.1`.
    pub fn highest_of(list: &str) -> Option<StompVersion> {
        let offered = list.split(',').map(|name| name.trim_matches(' '));
        offered
            .filter_map(|name| StompVersion::ALL.into_iter().find(|version| version.wire_name() == name))
            .max()
    }
}

/// Commands of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClientCommand {
    /// CONNECT, or STOMP, which is equivalent.
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

impl ClientCommand {
    pub fn from_wire_name(name: &[u8]) -> Option<ClientCommand> {
        Some(match name {
            b"CONNECT" | b"STOMP" => ClientCommand::Connect,
            b"SEND" => ClientCommand::Send,
            b"SUBSCRIBE" => ClientCommand::Subscribe,
            b"UNSUBSCRIBE" => ClientCommand::Unsubscribe,
            b"BEGIN" => ClientCommand::Begin,
            b"COMMIT" => ClientCommand::Commit,
            b"ABORT" => ClientCommand::Abort,
            b"ACK" => ClientCommand::Ack,
            b"NACK" => ClientCommand::Nack,
            b"DISCONNECT" => ClientCommand::Disconnect,
            _ => return None,
        })
    }

    pub fn wire_name(self) -> &'static str {
        match self {
            ClientCommand::Connect => "CONNECT",
            ClientCommand::Send => "SEND",
            ClientCommand::Subscribe => "SUBSCRIBE",
            ClientCommand::Unsubscribe => "UNSUBSCRIBE",
            ClientCommand::Begin => "BEGIN",
            ClientCommand::Commit => "COMMIT",
            ClientCommand::Abort => "ABORT",
            ClientCommand::Ack => "ACK",
            ClientCommand::Nack => "NACK",
            ClientCommand::Disconnect => "DISCONNECT",
        }
    }
}

/// Escaping of header values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escaping {
    /// No escapes: in CONNECT and in 1.0.
    None,
    /// `\n`, `\c` and `\\` in 1.1.
    V11,
    /// The same and `\r` in 1.2.
    V12,
}

impl Escaping {
    pub fn of(version: Option<StompVersion>) -> Escaping {
        match version {
            None | Some(StompVersion::V10) => Escaping::None,
            Some(StompVersion::V11) => Escaping::V11,
            Some(StompVersion::V12) => Escaping::V12,
        }
    }
}

/// A well-formed frame.
///
/// Invariant: each line of `head` has a name and a colon, and its escapes are those of `escaping`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct StompFrame<'a> {
    pub command: ClientCommand,
    pub(super) head: &'a str,
    pub(super) escaping: Escaping,
    pub body: &'a [u8],
}

impl<'a> StompFrame<'a> {
    /// Returns the value of the first header with this name.
    pub fn header(&self, name: &str) -> Option<Cow<'a, str>> {
        find(self.head, name, self.escaping)
    }

    /// Returns all headers as they are written, in order.
    pub fn headers(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        lines(self.head)
    }
}

impl fmt::Debug for StompFrame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} {:?}", self.command.wire_name(), self.head, self.body.escape_ascii().to_string())
    }
}

/// Returns the first header with this name among complete lines.
pub(super) fn find<'a>(head: &'a str, name: &str, escaping: Escaping) -> Option<Cow<'a, str>> {
    // Nearly all names have no escapes and are compared in place.
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

/// Returns the value of a line whose name has escapes.
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
            ("1.0,1.1,1.2", Some(StompVersion::V12)),
            ("1.2,1.0", Some(StompVersion::V12)),
            ("1.1, 1.0", Some(StompVersion::V11)),
            ("1.0,9.9", Some(StompVersion::V10)),
            ("1.3,2.0", None),
            ("", None),
            ("1", None),
        ] {
            assert_eq!(StompVersion::highest_of(list), version, "{list}");
        }
    }

    #[test]
    fn a_frame_returns_unescaped_headers() {
        let head = "id:a:b \r\nx\\cy:\\\\1\r\nid:other\n";
        let frame = StompFrame { command: ClientCommand::Ack, head, escaping: Escaping::V12, body: b"" };
        assert_eq!(frame.header("id").as_deref(), Some("a:b "));
        assert_eq!(frame.header("x:y").as_deref(), Some("\\1"));
        assert_eq!(frame.header("y"), None);
        let raw = StompFrame { escaping: Escaping::None, ..frame };
        assert_eq!(raw.header("x\\cy").as_deref(), Some("\\\\1"));
        assert_eq!(raw.headers().count(), 3);
    }
}
