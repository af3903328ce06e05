//! Reads the first frame of a connection before its session gets it, to find the session. A peer
//! that does not start with a Logon gets no answer.

use pitlane_engine::time::Timestamp;

use super::encode::Encoder;
use super::fields::{Fields, read};
use super::frame;
use super::msg_type;
use super::session::{DisconnectReason, LOGON_BYTES_MAX, LogonCredentials};
use super::tag::{self, prefix};
use super::version::FixVersion;
use crate::decoded::Decoded;

/// The version and the CompIDs of a connection, as the client writes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogonProbe<'a> {
    pub begin_string: &'a [u8],
    pub sender_comp_id: &'a [u8],
    pub target_comp_id: &'a [u8],
}

/// Returns the CompIDs of the first frame. It consumes nothing: the session reads the frame again.
pub fn identify(bytes: &[u8]) -> Result<Decoded<LogonProbe<'_>>, DisconnectReason> {
    let (frame, consumed) = match frame::decode(bytes, LOGON_BYTES_MAX) {
        Ok(Decoded::Message { message, consumed }) => (message, consumed),
        Ok(Decoded::Incomplete) => return Ok(Decoded::Incomplete),
        Err(_) => return Err(DisconnectReason::NotLogon),
    };
    let begin_string = frame.begin_string;
    if !FixVersion::ALL.iter().any(|version| version.begin_string().as_bytes() == begin_string) {
        return Err(DisconnectReason::BeginString);
    }
    let mut fields = Fields::default();
    let message = read(frame, &mut fields);
    let header = message.header;
    match (message.type_code(), header.sender_comp_id, header.target_comp_id) {
        (msg_type::LOGON, Some(sender_comp_id), Some(target_comp_id)) => {
            let probe = LogonProbe { begin_string, sender_comp_id, target_comp_id };
            Ok(Decoded::Message { message: probe, consumed })
        }
        _ => Err(DisconnectReason::NotLogon),
    }
}

/// Returns username and password of a first frame that [`identify`] accepted, empty if it has none.
/// So they are checked before anything is stored for the session.
pub fn credentials(bytes: &[u8]) -> LogonCredentials<'_> {
    let mut fields = Fields::default();
    let message = match frame::decode(bytes, LOGON_BYTES_MAX) {
        Ok(Decoded::Message { message, .. }) => Some(read(message, &mut fields)),
        Ok(Decoded::Incomplete) | Err(_) => None,
    };
    let value = |tag: u32| message.as_ref().and_then(|message| message.get(tag)).unwrap_or_default();
    LogonCredentials { username: value(tag::USERNAME), password: value(tag::PASSWORD) }
}

/// Encodes the Logout for a client with a wrong username or password. Its number is one, because an
/// unauthenticated peer must not change the session's numbers.
pub fn encode_refusal(
    version: FixVersion,
    sender_comp_id: &str,
    target_comp_id: &str,
    now: Timestamp,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(version, sender_comp_id, target_comp_id);
    let mut draft = encoder.begin(&mut bytes, msg_type::LOGOUT, 1, now);
    draft.text(prefix::TEXT, b"Logon refused");
    draft.finish();
    bytes
}

/// Returns whether a configured CompID matches: exactly, or by its beginning if it ends in `*`.
pub fn matches_comp_id(configured: &str, name: &[u8]) -> bool {
    match configured.strip_suffix('*') {
        Some(family) => name.starts_with(family.as_bytes()) && name.len() <= NAME_BYTES_MAX,
        None => configured.as_bytes() == name,
    }
}

/// Longest CompID that matches a pattern.
const NAME_BYTES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a frame from readable text with `|` for SOH.
    fn framed(begin_string: &str, body: &str) -> Vec<u8> {
        let mut bytes = format!("8={begin_string}|9={}|{body}", body.len()).replace('|', "\x01").into_bytes();
        let sum = frame::check_sum(&bytes);
        bytes.extend_from_slice(format!("10={sum:03}\x01").as_bytes());
        bytes
    }

    #[test]
    fn only_a_logon_identifies_a_session() {
        let logon = framed("FIX.4.4", "35=A|49=CLIENT1|56=PITLANE|34=1|");
        for cut in 0..logon.len() {
            assert_eq!(identify(&logon[..cut]), Ok(Decoded::Incomplete));
        }
        let expected =
            LogonProbe { begin_string: b"FIX.4.4", sender_comp_id: b"CLIENT1", target_comp_id: b"PITLANE" };
        assert_eq!(identify(&logon), Ok(Decoded::Message { message: expected, consumed: logon.len() }));
        let none = credentials(&logon);
        assert_eq!((none.username, none.password), (&b""[..], &b""[..]));
        for body in ["35=0|49=CLIENT1|56=PITLANE|34=1|", "35=A|56=PITLANE|34=1|", "35=A|49=CLIENT1|34=1|"] {
            assert_eq!(identify(&framed("FIX.4.4", body)), Err(DisconnectReason::NotLogon), "{body}");
        }
        assert_eq!(identify(b"GET / HTTP/1.1\r\n"), Err(DisconnectReason::NotLogon));
        assert_eq!(identify(b"8=FIX.4.4\x019=999999999\x0135=A\x01"), Err(DisconnectReason::NotLogon));
    }

    #[test]
    fn a_begin_string_is_that_of_a_version() {
        let identified = |begin_string: &str| {
            let bytes = framed(begin_string, "35=A|49=CLIENT1|56=PITLANE|34=1|");
            identify(&bytes).map(|decoded| matches!(decoded, Decoded::Message { .. }))
        };
        for version in FixVersion::ALL {
            assert_eq!(identified(version.begin_string()), Ok(true));
        }
        for other in ["FIX.4.3", "FIX.4", "FIX.4.44", "FIXT.1.2"] {
            assert_eq!(identified(other), Err(DisconnectReason::BeginString), "{other}");
        }
    }

    #[test]
    fn credentials_are_read_before_anything_is_stored() {
        let logon = framed("FIX.4.4", "35=A|49=CLIENT1|56=PITLANE|34=1|553=me|554=x|");
        let shown = credentials(&logon);
        assert_eq!((shown.username, shown.password), (&b"me"[..], &b"x"[..]));
        assert_eq!(credentials(b"8=FIX").password, b"");
    }

    #[test]
    fn a_refusal_is_a_logout_under_the_number_one() {
        let bytes =
            encode_refusal(FixVersion::Fix44, "PITLANE", "CLIENT1", Timestamp(1_763_200_000_000_000_000));
        let Ok(Decoded::Message { message, consumed }) = frame::decode(&bytes, LOGON_BYTES_MAX) else {
            panic!()
        };
        let mut fields = Fields::default();
        let message = read(message, &mut fields);
        assert_eq!((message.msg_type, consumed), (&b"5"[..], bytes.len()));
        assert_eq!((message.get(34), message.get(58)), (Some(&b"1"[..]), Some(&b"Logon refused"[..])));
    }

    #[test]
    fn a_comp_id_pattern_matches_by_its_beginning() {
        assert!(matches_comp_id("CLIENT1", b"CLIENT1") && !matches_comp_id("CLIENT1", b"CLIENT2"));
        assert!(
            matches_comp_id("BENCH*", b"BENCH17")
                && matches_comp_id("BENCH*", b"BENCH")
                && !matches_comp_id("BENCH*", b"BENC")
        );
        assert!(!matches_comp_id("BENCH*", &[b"BENCH", &[b'x'; 100_000][..]].concat()));
    }
}
