//! Heart-beats. Any octet counts as one; a side without data sends a line end.

use pitlane_engine::time::{NS_PER_MS, NS_PER_S, Timestamp};

/// Shortest interval. A faster heart-beat is not worth a write.
pub const INTERVAL_MS_MIN: u64 = 1_000;
/// Intervals after which a client counts as gone. A client may be late by one whole interval, as
/// networks and garbage collectors are.
const GRACE: u64 = 2;

/// Agreed intervals in nanoseconds; zero means no heart-beats in this direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heartbeat {
    send_ns: u64,
    receive_ns: u64,
}

/// The header is not two whole numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadHeartbeat;

impl Heartbeat {
    /// Agrees on intervals from the header of a CONNECT: what the client can send and what it wants
    /// to receive, in milliseconds.
    pub fn agree(header: &str) -> Result<Heartbeat, BadHeartbeat> {
        let (can, wants) = header.split_once(',').ok_or(BadHeartbeat)?;
        let agreed = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            let ms: u64 = text.parse::<u32>().ok().filter(|_| is_number).ok_or(BadHeartbeat)?.into();
            Ok(if ms == 0 { 0 } else { ms.max(INTERVAL_MS_MIN) * NS_PER_MS })
        };
        Ok(Heartbeat { send_ns: agreed(wants)?, receive_ns: agreed(can)? })
    }

    /// Returns when we must send, after sending last at this time. It is a quarter early, so that
    /// the octet arrives within the interval.
    pub fn send_by(&self, said: Timestamp) -> Option<Timestamp> {
        (self.send_ns > 0).then(|| said.plus(self.send_ns - self.send_ns / 4))
    }

    /// Returns when a client counts as gone, after receiving from it last at this time.
    pub fn receive_by(&self, heard: Timestamp) -> Option<Timestamp> {
        (self.receive_ns > 0).then(|| heard.plus(self.receive_ns * GRACE))
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
        assert_eq!(beat.receive_by(Timestamp::ZERO), Some(Timestamp(2 * NS_PER_S)));
        assert_eq!(beat.send_by(Timestamp::ZERO), Some(Timestamp(3 * NS_PER_S)));
        let none = Heartbeat::agree("0,0").unwrap();
        assert_eq!((none.send_by(Timestamp::ZERO), none.receive_by(Timestamp::ZERO)), (None, None));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["abc", "-1,0", "1000", "1000,", ",1", "1,2,3", "1 ,2", "+1,0", "99999999999,0", ""] {
            assert_eq!(Heartbeat::agree(text), Err(BadHeartbeat), "{text}");
        }
    }
}
