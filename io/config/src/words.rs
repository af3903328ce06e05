//! Small types of settings.

use std::fmt;

use pitlane_engine::number::Qty;
use pitlane_engine::time::NS_PER_S;

/// A secret: it is shown as `***` wherever it is printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: &str) -> Secret {
        Secret(text.to_string())
    }

    /// Returns the secret, for code that compares or sends it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Events per second, with up to eight decimals; zero or less: no rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventsPerSecond(i64);

impl EventsPerSecond {
    /// One event per second.
    const ONE: i64 = 100_000_000;

    pub fn from_raw(raw: i64) -> EventsPerSecond {
        EventsPerSecond(raw)
    }

    pub fn raw(self) -> i64 {
        self.0
    }

    /// Returns the time between two events; None if there is no rate.
    pub fn interval_ns(self) -> Option<u64> {
        let raw = u128::try_from(self.0).ok().filter(|raw| *raw > 0)?;
        let ns = NS_PER_S as u128 * EventsPerSecond::ONE as u128 / raw;
        Some(u64::try_from(ns).unwrap_or(u64::MAX).max(1))
    }
}

impl fmt::Display for EventsPerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Qty::from_raw(self.0).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_shown() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret} {secret:?} {:?}", Some(&secret)), "*** *** Some(***)");
        assert_eq!(secret.reveal(), "hunter2");
    }

    #[test]
    fn a_rate_is_an_interval_unless_there_is_none() {
        assert_eq!(EventsPerSecond::from_raw(50 * EventsPerSecond::ONE).interval_ns(), Some(20_000_000));
        assert_eq!(EventsPerSecond::from_raw(EventsPerSecond::ONE / 10).interval_ns(), Some(10 * NS_PER_S));
        assert_eq!(EventsPerSecond::from_raw(i64::MAX).interval_ns(), Some(1));
        assert_eq!(
            (
                EventsPerSecond::from_raw(0).interval_ns(),
                EventsPerSecond::from_raw(-EventsPerSecond::ONE).interval_ns()
            ),
            (None, None)
        );
        assert_eq!(EventsPerSecond::from_raw(EventsPerSecond::ONE / 10).to_string(), "0.1");
    }
}
