//! Writes frames of the broker to a caller's buffer.
//!
//! A MESSAGE has three parts, so that little work is done per subscriber: the head, made at
//! SUBSCRIBE; the number of the message; and the tail, made once per event, which has everything
//! else.
//!
//! ```text
//! MESSAGE⏎subscription:7⏎message-id:0-     head of the subscription
//! 1041                                     number
//! ⏎destination:/topic/tick.42⏎…⏎⏎{…}NUL    tail of the event
//! ```

use memchr::memmem;
use pitlane_engine::time::{NS_PER_MS, Timestamp};

use super::body_format::BodyFormat;
use super::escape;
use super::frame::{Escaping, StompVersion};
use super::heartbeat::INTERVAL_MS_MIN;
use crate::json::push_number;

/// Writes CONNECTED. Its values are ours and plain, so nothing is escaped.
pub fn connected(out: &mut Vec<u8>, version: StompVersion, server: &str, session: u64) {
    out.extend_from_slice(b"CONNECTED\nversion:");
    out.extend_from_slice(version.wire_name().as_bytes());
    out.extend_from_slice(b"\nserver:");
    escape::push(out, server.as_bytes(), Escaping::None);
    out.extend_from_slice(b"\nsession:");
    push_number(out, session);
    if version > StompVersion::V10 {
        out.extend_from_slice(b"\nheart-beat:");
        push_number(out, INTERVAL_MS_MIN);
        out.push(b',');
        push_number(out, INTERVAL_MS_MIN);
    }
    out.extend_from_slice(b"\n\n\0");
}

pub fn receipt(out: &mut Vec<u8>, id: &str, escaping: Escaping) {
    out.extend_from_slice(b"RECEIPT\nreceipt-id:");
    escape::push(out, id.as_bytes(), escaping);
    out.extend_from_slice(b"\n\n\0");
}

/// Writes ERROR, the last frame of a failed session. The text is written twice, because some
/// clients show the header and some the body.
pub fn error(out: &mut Vec<u8>, text: &str, receipt: Option<&str>, versions: bool, escaping: Escaping) {
    out.extend_from_slice(b"ERROR\nmessage:");
    escape::push(out, text.as_bytes(), escaping);
    if let Some(receipt) = receipt {
        out.extend_from_slice(b"\nreceipt-id:");
        escape::push(out, receipt.as_bytes(), escaping);
    }
    if versions {
        out.extend_from_slice(b"\nversion:1.0,1.1,1.2");
    }
    out.extend_from_slice(b"\ncontent-type:text/plain\ncontent-length:");
    push_number(out, text.len() as u64);
    out.extend_from_slice(b"\n\n");
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

/// Writes everything of a MESSAGE that does not depend on the subscriber. `escaping` is that of the
/// destination.
pub fn message_tail(
    out: &mut Vec<u8>,
    name: [&[u8]; 2],
    at: Timestamp,
    (format, body): (BodyFormat, &[u8]),
    escaping: Escaping,
) {
    out.extend_from_slice(b"\ndestination:/topic/");
    for part in name {
        if escaping == Escaping::None {
            out.extend_from_slice(part);
        } else {
            escape::push(out, part, escaping);
        }
    }
    out.extend_from_slice(b"\ncontent-type:");
    out.extend_from_slice(format.content_type().as_bytes());
    out.extend_from_slice(b"\ntimestamp:");
    // Choice: milliseconds, as in other brokers; see protocols/README.md.
    push_number(out, at.0 / NS_PER_MS);
    out.extend_from_slice(b"\ncontent-length:");
    push_number(out, body.len() as u64);
    out.extend_from_slice(b"\n\n");
    out.extend_from_slice(body);
    out.push(0);
}

/// Returns whether a frame of ours has a binary body, which need not be UTF-8.
pub fn is_binary(frame: &[u8]) -> bool {
    let head = memmem::find(frame, b"\n\n").map_or(frame, |end| &frame[..end]);
    memmem::find(head, b"\ncontent-type:").is_some_and(|at| {
        head[at..]
            .strip_prefix(b"\ncontent-type:")
            .is_some_and(|value| value.starts_with(BodyFormat::Sbe.content_type().as_bytes()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn frames_are_written_for_their_version() {
        assert_eq!(
            text(|out| connected(out, StompVersion::V12, "Pitlane/1", 7)),
            "CONNECTED\nversion:1.2\nserver:Pitlane/1\nsession:7\nheart-beat:1000,1000\n\n\0"
        );
        assert_eq!(
            text(|out| connected(out, StompVersion::V10, "Pitlane/1", 7)),
            "CONNECTED\nversion:1.0\nserver:Pitlane/1\nsession:7\n\n\0"
        );
        assert_eq!(text(|out| receipt(out, "a:b\n", Escaping::V11)), "RECEIPT\nreceipt-id:a\\cb\\n\n\n\0");
        assert_eq!(
            text(|out| error(out, "oh: no", Some("r:1"), true, Escaping::None)),
            "ERROR\nmessage:oh: no\nreceipt-id:r:1\nversion:1.0,1.1,1.2\ncontent-type:text/plain\ncontent-length:6\n\noh: no\0"
        );
        assert_eq!(
            text(|out| {
                let body = (BodyFormat::Json, b"{}".as_slice());
                message_tail(out, [b"a", b".b:c"], Timestamp(5_000_000), body, Escaping::V12)
            }),
            "\ndestination:/topic/a.b\\cc\ncontent-type:application/json\ntimestamp:5\ncontent-length:2\n\n{}\0"
        );
    }

    #[test]
    fn a_binary_body_is_known_by_its_head() {
        for (format, body) in [(BodyFormat::Json, b"{}".as_slice()), (BodyFormat::Sbe, b"{}".as_slice())] {
            let mut out = b"MESSAGE\nsubscription:1\nmessage-id:0-1".to_vec();
            message_tail(&mut out, [b"tick", b".1"], Timestamp(1), (format, body), Escaping::None);
            assert_eq!(is_binary(&out), format == BodyFormat::Sbe);
        }
        assert!(!is_binary(b"MESSAGE\na:b\n\n\ncontent-type:application/x-pitlane-sbe"), "in the body");
        assert!(!is_binary(b"\n"));
    }
}
