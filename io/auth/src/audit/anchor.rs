//! Anchors: the position of the end of the chain, stored outside of the log folder.
//!
//! ```text
//! AuditWriter: lines, synced ─► <data>/audit-anchor, at once
//!                            └► http thread ─ CommandKind::AuditAnchor ─► journal of the first shard here, and a line of the log
//! ```
//!
//! The chain of hashes detects a line that was changed. It cannot detect that its end was cut off,
//! that its beginning or the whole folder was removed, or that all hashes were recomputed. An
//! anchor can: it holds a line number and the hash of that line. The anchor is written after the
//! line is on disk, so after a crash the chain may be longer than its newest anchor, and never
//! shorter.
//!
//! The two servers of a standby pair share one journal and have a log each, so an anchor identifies
//! its log.

use std::fmt;
use std::path::{Path, PathBuf};

use pitlane_journal::disk::Disk;

use super::AuditError;
use super::chain::Link;
use super::files;

/// The position of the end of a log's chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// Identifier of the log: the time at which it was created.
    pub log: u64,
    /// Number of the last line; zero if the log is empty.
    pub line: u64,
    pub hash: Link,
}

impl fmt::Display for Anchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} with hash {}", self.line, self.hash)
    }
}

pub(super) fn path(data: &Path) -> PathBuf {
    data.join("audit-anchor")
}

impl Anchor {
    /// Reads the anchor beside the log folder; `None` if there is no such file.
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

    /// Writes the anchor durably: after a crash the file holds the old or the new one.
    pub fn write(&self, data: &Path) -> Result<(), AuditError> {
        let path = path(data);
        let text = format!("{} {} {}\n", self.log, self.line, self.hash);
        Disk::Real.put(&path, text.as_bytes()).map_err(|error| AuditError::Io(path, error))
    }

    /// Checks that the log has this line with this hash.
    pub fn check(&self, data: &Path) -> Result<(), AuditError> {
        if self.line == 0 {
            return Ok(());
        }
        let folder = files::folder(data);
        match files::find(&folder, self.line)? {
            files::LinePosition::At(link) if link == self.hash => Ok(()),
            files::LinePosition::At(_) => Err(AuditError::Rewritten(folder, self.line)),
            files::LinePosition::Before { first } => Err(AuditError::Missing(folder, self.line, first - 1)),
            files::LinePosition::Behind { last } => Err(AuditError::Missing(folder, last + 1, self.line)),
        }
    }
}

fn parse(text: &str) -> Option<Anchor> {
    let mut fields = text.strip_suffix('\n')?.split(' ');
    let (log, line, hash) = (fields.next()?, fields.next()?, fields.next()?);
    let hash = Link::parse(hash).filter(|_| fields.next().is_none())?;
    Some(Anchor { log: log.parse().ok()?, line: line.parse().ok()?, hash })
}
