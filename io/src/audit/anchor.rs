//! Anchors: where the chain had come to, kept outside of the folder of the log.
//!
//! ```text
//! Scribe: lines, synced ─► <data>/audit-anchor, at once
//!                       └► http thread ─ Body::AuditAnchor ─► journal of the first shard here, and a line of the log
//! ```
//!
//! The chain of hashes tells a line that was changed. It cannot tell that its end was cut off, that its beginning or the
//! whole folder was removed, or that all hashes were made again. An anchor does: it names a line and its hash. It is written
//! after the line is on disk, so after a crash the chain may be longer than its newest anchor, and never shorter.
//!
//! The two servers of a standby pair have one journal and a log each, so an anchor names its log.

use std::fmt;
use std::path::{Path, PathBuf};

use super::AuditError;
use super::chain::Link;
use super::files;
use crate::journal::disk::Disk;

/// Where the chain of a log had come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// The log: the time at which it was begun.
    pub log: u64,
    /// Number of the last line; zero: there was none.
    pub line: u64,
    pub hash: Link,
}

impl fmt::Display for Anchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} with hash {}", self.line, self.hash)
    }
}

pub fn path(data: &Path) -> PathBuf {
    data.join("audit-anchor")
}

impl Anchor {
    /// The anchor beside the folder of the log; none: there is no such file.
    pub fn read(data: &Path) -> Result<Option<Anchor>, AuditError> {
        let path = path(data);
        match std::fs::read_to_string(&path) {
            Ok(text) => match parse(&text) {
                Some(anchor) => Ok(Some(anchor)),
                None => Err(AuditError::Broken(path, 1, "it is no anchor")),
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(AuditError::Io(path, error)),
        }
    }

    /// On disk when this returns: after a crash the old or the new one is there.
    pub fn write(&self, data: &Path) -> Result<(), AuditError> {
        let path = path(data);
        let text = format!("{} {} {}\n", self.log, self.line, self.hash);
        Disk::Real.put(&path, text.as_bytes()).map_err(|error| AuditError::Io(path, error))
    }

    /// Whether the log has the line with this hash.
    pub fn check(&self, data: &Path) -> Result<(), AuditError> {
        if self.line == 0 {
            return Ok(());
        }
        let folder = files::folder(data);
        match files::find(&folder, self.line)? {
            files::Place::At(link) if link == self.hash => Ok(()),
            files::Place::At(_) => Err(AuditError::Rewritten(folder, self.line)),
            files::Place::Before { first } => Err(AuditError::Missing(folder, self.line, first - 1)),
            files::Place::Behind { last } => Err(AuditError::Missing(folder, last + 1, self.line)),
        }
    }
}

fn parse(text: &str) -> Option<Anchor> {
    let mut words = text.strip_suffix('\n')?.split(' ');
    let (log, line, hash) = (words.next()?, words.next()?, words.next()?);
    let hash = Link::parse(hash).filter(|_| words.next().is_none())?;
    Some(Anchor { log: log.parse().ok()?, line: line.parse().ok()?, hash })
}
