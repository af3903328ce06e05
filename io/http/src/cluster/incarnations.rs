//! Incarnations of servers: each start of a server is a new incarnation, with a number of its own.
//!
//! ```text
//! counter, one more with each start (40 bits) │ taken from the time of the start (24 bits)
//! ```
//!
//! The counter is stored in the data folder, so a clock that was set back does not matter. The
//! first start of a folder takes it from the clock: a folder that replaces a lost one continues
//! above the counter of the lost one. The low bits distinguish two starts with the same counter, as
//! after a folder was restored from a copy.
//!
//! Nothing more can be done on this side: a new folder and a clock that was set back give a number
//! below the last one. So [`Incarnations`] accepts a lower number too, once the higher one has been
//! silent for a lease; before that it may be a delayed message of the earlier incarnation.

use pitlane_engine::time::Timestamp;
use pitlane_journal::Fault;
use pitlane_journal::metadata::JournalMetadata;
use xxhash_rust::xxh3::xxh3_64;

/// Key of the counter in the journal's metadata.
const KEY: &str = "cluster-life";
const LOW_BITS: u32 = 24;

/// Returns the number of this start. Without metadata, where nothing is stored, the clock replaces
/// the counter.
pub fn next_incarnation(metadata: Option<&JournalMetadata>, started: Timestamp) -> Result<u64, Fault> {
    let clock = started.0 >> LOW_BITS;
    let counter = match metadata {
        Some(metadata) => {
            let stored = metadata.number(KEY)?;
            let counter = stored.map_or(clock, |stored| stored.saturating_add(1));
            metadata.put(KEY, &counter.to_le_bytes())?;
            counter
        }
        None => clock,
    };
    let low = xxh3_64(&started.0.to_le_bytes()) & ((1 << LOW_BITS) - 1);
    Ok((counter << LOW_BITS) | low)
}

/// The accepted incarnation of another server.
#[derive(Debug, Default)]
pub(crate) struct Incarnations {
    current: u64,
    received_at: Timestamp,
    /// The last incarnation whose messages were ignored; it is logged once.
    ignored: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IncarnationVerdict {
    Current,
    /// This incarnation is the current one from now on.
    New,
    /// As [`IncarnationVerdict::New`], though its number is lower than that of the incarnation
    /// before.
    Lower,
    /// The message is to be discarded; the flag says whether it is the first of its incarnation.
    Ignored {
        is_first: bool,
    },
}

impl Incarnations {
    /// Returns the current incarnation; zero if no message has arrived yet.
    pub(crate) fn current(&self) -> u64 {
        self.current
    }

    /// Decides about a message of this incarnation.
    pub(crate) fn classify(&mut self, now: Timestamp, incarnation: u64, lease_ns: u64) -> IncarnationVerdict {
        let verdict = match incarnation.cmp(&self.current) {
            std::cmp::Ordering::Equal => IncarnationVerdict::Current,
            std::cmp::Ordering::Greater => IncarnationVerdict::New,
            std::cmp::Ordering::Less if now > self.received_at.plus(lease_ns) => IncarnationVerdict::Lower,
            std::cmp::Ordering::Less => {
                let is_first = std::mem::replace(&mut self.ignored, incarnation) != incarnation;
                return IncarnationVerdict::Ignored { is_first };
            }
        };
        (self.current, self.received_at) = (incarnation, now);
        verdict
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pitlane_journal::disk::Disk;
    use pitlane_journal::simulated_disk::Simulated;

    use super::*;

    const LEASE: u64 = 1_000;
    const YEAR: u64 = 365 * 86_400 * 1_000_000_000;
    const NOW: Timestamp = Timestamp(56 * YEAR);

    #[test]
    fn each_start_has_a_higher_life_whatever_the_clock_shows() {
        let simulated = Simulated::new(1);
        let mut last = 0;
        for started in [NOW.0, NOW.0 - YEAR, 0, NOW.0 - YEAR, NOW.0 + 5 * YEAR, NOW.0] {
            let metadata =
                JournalMetadata::open(&Disk::Simulated(simulated.clone()), Path::new("data")).unwrap();
            let incarnation = next_incarnation(Some(&metadata), Timestamp(started)).unwrap();
            assert!(incarnation > last, "{incarnation} after {last}");
            last = incarnation;
        }
        // Above what earlier versions gave, which was the clock.
        assert!(last > NOW.0);
        let fresh = JournalMetadata::open(&Disk::Simulated(Simulated::new(2)), Path::new("data")).unwrap();
        let later = Timestamp(NOW.0 + 1_000_000_000);
        assert!(next_incarnation(Some(&fresh), later).unwrap() > last, "a lost folder, a second later");
    }

    #[test]
    fn two_starts_from_one_copy_of_a_folder_have_two_incarnations() {
        let simulated = Simulated::new(1);
        let metadata = |disk: &Simulated| {
            JournalMetadata::open(&Disk::Simulated(disk.clone()), Path::new("data")).unwrap()
        };
        next_incarnation(Some(&metadata(&simulated)), NOW).unwrap();
        let copy = simulated.power_loss();
        let first = next_incarnation(Some(&metadata(&simulated)), Timestamp(NOW.0 + 1)).unwrap();
        let second = next_incarnation(Some(&metadata(&copy)), Timestamp(NOW.0 + 2)).unwrap();
        assert_ne!(first, second);
    }

    #[test]
    fn a_lower_life_is_accepted_once_the_higher_one_is_silent() {
        let mut incarnations = Incarnations::default();
        let mut classify = |at, incarnation| incarnations.classify(Timestamp(at), incarnation, LEASE);
        assert_eq!((classify(1, 5), classify(2, 5)), (IncarnationVerdict::New, IncarnationVerdict::Current));
        assert_eq!(classify(3, 4), IncarnationVerdict::Ignored { is_first: true }, "late, or set back");
        assert_eq!(classify(4, 4), IncarnationVerdict::Ignored { is_first: false });
        assert_eq!(classify(900, 5), IncarnationVerdict::Current, "it was late");
        assert_eq!(classify(1_800, 3), IncarnationVerdict::Ignored { is_first: true });
        assert_eq!(classify(1_901, 3), IncarnationVerdict::Lower, "it was set back");
        assert_eq!(
            (classify(1_902, 3), classify(1_903, 6)),
            (IncarnationVerdict::Current, IncarnationVerdict::New)
        );
    }
}
