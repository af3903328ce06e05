//! Conflation that a consumer requests: `conflate: <ms>` on SUBSCRIBE. The subscription sends at
//! most once in this time; what changes meanwhile is merged and sent when the time is over.
//!
//! ```text
//! events    A    A B  A                 B            A
//! sent      A          │ A B            │ B          A
//!           ├─ window ─┤─── window ─────┤─ window ─┤ ├─
//! ```
//!
//! Rules: docs/stomp.md#conflation-on-request.

use pitlane_engine::time::{NS_PER_MS, Timestamp};

use super::slots::{Slots, TopicSlot};

/// Shortest and longest window that a client may request. Below it, timers would cost more than
/// messages; above it, a consumer could not tell a quiet market from a lost connection.
pub const CONFLATE_MS_MIN: u64 = 10;
pub const CONFLATE_MS_MAX: u64 = 60_000;

/// Window of one subscription, and the topics that changed within it.
#[derive(Debug)]
pub struct Conflation {
    window_ns: u64,
    /// End of the window; in the past if nothing was sent lately.
    until: Timestamp,
    held: Slots,
}

/// Reads the header: a whole number of milliseconds within the limits. Returns nanoseconds.
pub fn parse_window(text: &str) -> Option<u64> {
    let is_number = text.len() <= 5 && text.bytes().all(|b| b.is_ascii_digit());
    let ms: u64 = text.parse().ok().filter(|_| is_number)?;
    (CONFLATE_MS_MIN..=CONFLATE_MS_MAX).contains(&ms).then_some(ms * NS_PER_MS)
}

impl Conflation {
    pub fn new(window_ns: u64) -> Conflation {
        Conflation { window_ns, until: Timestamp::ZERO, held: Slots::default() }
    }

    /// Returns the number of topics that wait for the end of the window.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    pub fn contains(&self, topic: u32) -> bool {
        self.held.contains(topic)
    }

    /// Returns the end of the window.
    pub fn until(&self) -> Timestamp {
        self.until
    }

    pub fn is_open(&self, now: Timestamp) -> bool {
        now < self.until
    }

    /// Begins a window: from now on changes are held.
    pub fn begin(&mut self, now: Timestamp) {
        self.until = now.plus(self.window_ns);
    }

    /// Holds a topic that is not held yet.
    pub fn hold(&mut self, topic: u32) {
        self.held.push(TopicSlot { turn: 0, topic });
    }

    /// Takes a topic when the window is over.
    pub fn release(&mut self) -> Option<u32> {
        self.held.pop().map(|slot| slot.topic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_its_limits() {
        for (text, ns) in [
            ("10", Some(10 * NS_PER_MS)),
            ("250", Some(250 * NS_PER_MS)),
            ("60000", Some(60_000 * NS_PER_MS)),
            ("9", None),
            ("0", None),
            ("60001", None),
            ("99999999999999999999", None),
            ("", None),
            ("-10", None),
            ("+100", None),
            ("1.5", None),
            ("100 ms", None),
        ] {
            assert_eq!(parse_window(text), ns, "{text}");
        }
    }

    #[test]
    fn topics_are_held_until_the_window_is_over() {
        let mut conflation = Conflation::new(10);
        assert!(!conflation.is_open(Timestamp(5)));
        conflation.begin(Timestamp(5));
        assert!(conflation.is_open(Timestamp(14)) && !conflation.is_open(Timestamp(15)));
        assert!(conflation.until() == Timestamp(15) && conflation.is_empty());
        conflation.hold(3);
        conflation.hold(1);
        assert!(conflation.contains(3) && !conflation.contains(2) && conflation.len() == 2);
        assert!(!conflation.is_empty());
        assert_eq!(
            [conflation.release(), conflation.release(), conflation.release()],
            [Some(3), Some(1), None]
        );
    }
}
