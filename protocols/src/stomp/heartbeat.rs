//! Signs of life. Any octet is one; who has nothing to say sends a line end.

use pitlane_engine::time::{NS_PER_MS, NS_PER_S, Timestamp};

/// Neither side has to beat faster: it is not worth a write.
pub const INTERVAL_MS_MIN: u64 = 1_000;
/// A client may be late by one whole interval: networks and garbage collectors are.
const GRACE: u64 = 2;

/// What was agreed on; zero: no beats this way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heartbeat {
    send_ns: u64,
    hear_ns: u64,
}

/// The header is not two whole numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadHeartbeat;

impl Heartbeat {
    /// From the header of a CONNECT: what the client can send and what it wants to hear, in milliseconds.
    pub fn agree(header: &str) -> Result<Heartbeat, BadHeartbeat> {
        let (can, wants) = header.split_once(',').ok_or(BadHeartbeat)?;
        let agreed = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            let ms: u64 = text.parse::<u32>().ok().filter(|_| is_number).ok_or(BadHeartbeat)?.into();
            Ok(if ms == 0 { 0 } else { ms.max(INTERVAL_MS_MIN) * NS_PER_MS })
        };
        Ok(Heartbeat { send_ns: agreed(wants)?, hear_ns: agreed(can)? })
    }

    /// When we must have said something, if we said something last at this time. A quarter early, so that it arrives
    /// within the interval.
    pub fn send_by(&self, said: Timestamp) -> Option<Timestamp> {
        (self.send_ns > 0).then(|| said.plus(self.send_ns - self.send_ns / 4))
    }

    /// When a client that was heard last at this time is gone.
    pub fn hear_by(&self, heard: Timestamp) -> Option<Timestamp> {
        (self.hear_ns > 0).then(|| heard.plus(self.hear_ns * GRACE))
    }
}

const _: () = assert!(u32::MAX as u64 * NS_PER_MS * GRACE < u64::MAX, "an interval fits");
const _: () = assert!(INTERVAL_MS_MIN * NS_PER_MS == NS_PER_S, "the page says one second");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_beat_no_faster_than_once_a_second() {
        let beat = Heartbeat::agree("10,4000").unwrap();
        assert_eq!(beat.hear_by(Timestamp::ZERO), Some(Timestamp(2 * NS_PER_S)));
        assert_eq!(beat.send_by(Timestamp::ZERO), Some(Timestamp(3 * NS_PER_S)));
        let none = Heartbeat::agree("0,0").unwrap();
        assert_eq!((none.send_by(Timestamp::ZERO), none.hear_by(Timestamp::ZERO)), (None, None));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["abc", "-1,0", "1000", "1000,", ",1", "1,2,3", "1 ,2", "+1,0", "99999999999,0", ""] {
            assert_eq!(Heartbeat::agree(text), Err(BadHeartbeat), "{text}");
        }
    }
}
