//! Assigns sessions to gateways and numbers: every CompID pair has one gateway and one number
//! there, permanently. Orders in the journal refer to their session by these two.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use pitlane_config::GATEWAYS_MAX;
use pitlane_engine::index::{index_u8, index_u16, index_usize};
use pitlane_journal::metadata::JournalMetadata;
use pitlane_journal::{Fault, FaultKind};

/// Maximum number of sessions of one gateway, including all that a family ever admitted. Each has a
/// store.
pub const SESSIONS_MAX: usize = 4_096;

/// Maximum length in bytes of a session name: two CompIDs.
pub const NAME_BYTES_MAX: usize = 128;

/// The gateway and number of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionAssignment {
    pub gateway: u8,
    /// Session number on the gateway's port.
    pub number: u16,
}

/// All assignments as of the start of the service: the same for every gateway.
#[derive(Clone, Debug, Default)]
pub struct SessionAssignments {
    gateways: u8,
    known: BTreeMap<String, SessionAssignment>,
}

impl SessionAssignments {
    /// Reads the assignments; without a journal there are none.
    pub fn read(metadata: Option<&JournalMetadata>, gateways: u8) -> Result<SessionAssignments, Fault> {
        let mut known = BTreeMap::new();
        for gateway in 0..GATEWAYS_MAX {
            for (at, name) in names(metadata, gateway)?.into_iter().enumerate() {
                if gateway < gateways {
                    known.insert(name, SessionAssignment { gateway, number: index_u16(at) + 1 });
                } else {
                    // Its orders remain, but their reports reach no client over FIX.
                    tracing::warn!(
                        session = name,
                        gateway,
                        "the gateway of a FIX session no longer exists: the session restarts on another one"
                    );
                }
            }
        }
        Ok(SessionAssignments { gateways, known })
    }

    pub fn known(&self) -> impl Iterator<Item = (&str, SessionAssignment)> {
        self.known.iter().map(|(name, assignment)| (name.as_str(), *assignment))
    }

    /// Returns the gateway of a session. New sessions are distributed by a hash of their name.
    pub fn gateway(&self, name: &str) -> u8 {
        let hash = || xxhash_rust::xxh3::xxh3_64(name.as_bytes());
        let spread = || index_u8(index_usize(hash() % u64::from(self.gateways.max(1))));
        self.known.get(name).map_or_else(spread, |assignment| assignment.gateway)
    }
}

/// The sessions of one gateway.
#[derive(Debug)]
pub struct SessionRegistry {
    metadata: Option<JournalMetadata>,
    gateway: u8,
    /// Names by number; the first has number one.
    names: Vec<String>,
}

impl SessionRegistry {
    pub fn open(metadata: Option<JournalMetadata>, gateway: u8) -> Result<SessionRegistry, Fault> {
        let names = names(metadata.as_ref(), gateway)?;
        Ok(SessionRegistry { metadata, gateway, names })
    }

    /// Returns the numbers of all registered sessions.
    pub fn numbers(&self) -> RangeInclusive<u16> {
        1..=index_u16(self.names.len())
    }

    /// Returns the session name of a number.
    pub fn name(&self, number: u16) -> Option<&str> {
        self.names.get((number as usize).checked_sub(1)?).map(String::as_str)
    }

    /// Returns the number of a session. A new number is persisted before it is used. `None` if
    /// there are too many sessions.
    pub fn number(&mut self, name: &str) -> Result<Option<u16>, Fault> {
        if let Some(at) = self.names.iter().position(|known| known == name) {
            return Ok(Some(index_u16(at) + 1));
        }
        if self.names.len() >= SESSIONS_MAX {
            return Ok(None);
        }
        self.names.push(name.to_string());
        if let Some(metadata) = &self.metadata {
            metadata.put(&key(self.gateway), self.names.join("\n").as_bytes())?;
        }
        Ok(Some(index_u16(self.names.len())))
    }
}

/// Returns whether this is a valid session name: it becomes part of a file name.
pub fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.bytes().all(plain)
}

fn key(gateway: u8) -> String {
    format!("fix-sessions-{gateway}")
}

fn names(metadata: Option<&JournalMetadata>, gateway: u8) -> Result<Vec<String>, Fault> {
    let Some(metadata) = metadata else { return Ok(Vec::new()) };
    let Some(bytes) = metadata.get(&key(gateway))? else { return Ok(Vec::new()) };
    let damaged =
        || Fault::new(key(gateway).as_ref(), 0, FaultKind::StateDamaged("names of FIX sessions".to_string()));
    let text = String::from_utf8(bytes).map_err(|_| damaged())?;
    let names: Vec<String> = text.lines().map(str::to_string).collect();
    if names.iter().all(|name| is_plain(name)) && names.len() <= SESSIONS_MAX {
        Ok(names)
    } else {
        Err(damaged())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pitlane_journal::disk::Disk;
    use pitlane_journal::simulated_disk::Simulated;

    use super::*;

    #[test]
    fn a_session_keeps_its_gateway_and_number() {
        let disk = Disk::Simulated(Simulated::new(1));
        let metadata = JournalMetadata::open(&disk, Path::new("data")).unwrap();
        let assignments = SessionAssignments::read(Some(&metadata), 3).unwrap();
        let assignment = assignments.gateway("PITLANE-CLIENT1");
        let mut registry = SessionRegistry::open(Some(metadata.clone()), assignment).unwrap();
        assert_eq!(registry.number("PITLANE-OTHER").unwrap(), Some(1));
        assert_eq!(registry.number("PITLANE-CLIENT1").unwrap(), Some(2));
        let mut reopened = SessionRegistry::open(Some(metadata.clone()), assignment).unwrap();
        assert_eq!(reopened.number("PITLANE-CLIENT1").unwrap(), Some(2));
        // Another number of gateways does not move the session, as long as its own gateway exists.
        let assignments = SessionAssignments::read(Some(&metadata), assignment + 1).unwrap();
        assert_eq!(assignments.gateway("PITLANE-CLIENT1"), assignment);
        assert_eq!(assignments.known().count(), 2);
    }

    #[test]
    fn the_number_of_sessions_per_gateway_is_bounded() {
        let mut registry = SessionRegistry::open(None, 0).unwrap();
        for number in 1..=SESSIONS_MAX {
            let known = registry.number(&format!("PITLANE-C{number}")).unwrap();
            assert_eq!(known.map(usize::from), Some(number));
        }
        assert_eq!(registry.number("PITLANE-MORE").unwrap(), None);
        assert_eq!(registry.number("PITLANE-C7").unwrap(), Some(7), "a known client stays");
    }

    #[test]
    fn names_that_could_leave_the_folder_are_invalid() {
        assert!(is_plain("PITLANE-BENCH17"));
        for name in ["", "a/b", "a b", "a\n", "é", "a\0"] {
            assert!(!is_plain(name), "{name:?}");
        }
        assert!(!is_plain(&"x".repeat(NAME_BYTES_MAX + 1)));
    }
}
