//! `pitlane audit verify`: follows the chain through all files, and compares it with its anchors.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use super::AuditError;
use super::anchor::Anchor;
use super::chain::{ChainEnd, Link};
use super::files;

#[derive(Debug)]
pub enum VerifyError {
    Audit(AuditError),
    Output(io::Error),
}

impl From<io::Error> for VerifyError {
    fn from(error: io::Error) -> VerifyError {
        VerifyError::Output(error)
    }
}

/// The evidence that the log is compared with.
#[derive(Clone, Debug, Default)]
pub struct Against {
    /// Anchors found in the journal.
    pub journal: Vec<Anchor>,
    /// Whether another server, which has a log of its own and the same journal, may have led.
    pub is_standby: bool,
    /// The number of the first line, where older files were archived.
    pub begins_with: Option<u64>,
}

/// Reports what is present and what is missing. Returns true if every line continues the chain and
/// nothing is missing.
pub fn verify(data: &Path, against: &Against, out: &mut impl Write) -> Result<bool, VerifyError> {
    let beside = Anchor::read(data).map_err(VerifyError::Audit)?;
    let Some(chain) = follow(data, out)? else { return Ok(false) };
    let mut is_sound = chain.begins_right(against.begins_with, out)?;
    let log = beside.map(|anchor| anchor.log);
    // Without the anchor file, the folder may belong to any log that the journal knows.
    let is_own = |anchor: &&Anchor| log.is_none_or(|log| log == anchor.log);
    if let Some(anchor) = &beside {
        is_sound &= chain.has(anchor, "the file audit-anchor", out)?;
    }
    let (mut checked, mut newest) = (u64::from(beside.is_some()), BTreeMap::new());
    for anchor in &against.journal {
        if is_own(&anchor) {
            checked += 1;
            is_sound &= chain.has(anchor, "the journal", out)?;
        } else {
            newest.insert(anchor.log, anchor);
        }
    }
    for anchor in newest.values() {
        let whose = if against.is_standby { "another server's log" } else { "missing: a whole log" };
        writeln!(out, "{whose}: the journal has its {anchor}, and this is another one")?;
        is_sound &= against.is_standby;
    }
    if !is_sound {
        writeln!(out, "NOT SOUND")?;
        return Ok(false);
    }
    let Chain { end: ChainEnd { seq, link }, lines, files, .. } = chain;
    writeln!(
        out,
        "ok: {lines} lines in {files} files, the last is {seq} with hash {link}; {checked} anchors"
    )?;
    Ok(true)
}

/// The lines that are present.
struct Chain {
    links: BTreeMap<u64, Link>,
    end: ChainEnd,
    lines: u64,
    files: usize,
}

impl Chain {
    /// Returns whether the log starts with its first line, or with the line that the caller named.
    fn begins_right(&self, begins_with: Option<u64>, out: &mut impl Write) -> io::Result<bool> {
        let Some((&first, _)) = self.links.first_key_value() else { return Ok(true) };
        let expected = begins_with.unwrap_or(1);
        if first > expected {
            writeln!(
                out,
                "missing: lines {expected} to {}; if these were archived, pass --begins-with {first}",
                first - 1
            )?;
        }
        Ok(first <= expected)
    }

    /// Returns whether an anchored line is present and unchanged. Archived lines cannot be checked.
    fn has(&self, anchor: &Anchor, place: &str, out: &mut impl Write) -> io::Result<bool> {
        let first = self.links.first_key_value().map_or(1, |(first, _)| *first);
        if anchor.line == 0 || anchor.line < first {
            return Ok(true);
        }
        match self.links.get(&anchor.line) {
            Some(link) if *link == anchor.hash => Ok(true),
            Some(link) => {
                writeln!(out, "rewritten: line {} has hash {link}, {place} has {anchor}", anchor.line)?;
                Ok(false)
            }
            None => {
                let from = self.end.seq + 1;
                writeln!(out, "missing: lines {from} to {}: {place} has {anchor}", anchor.line)?;
                Ok(false)
            }
        }
    }
}

/// Follows the chain through all files; `None` if it is broken, which has then been reported.
fn follow(data: &Path, out: &mut impl Write) -> Result<Option<Chain>, VerifyError> {
    let folder = files::folder(data);
    let files = match files::files(&folder) {
        Ok(files) => files,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            writeln!(out, "there is no folder {}", folder.display())?;
            Vec::new()
        }
        Err(error) => return Err(VerifyError::Audit(AuditError::Io(folder, error))),
    };
    let mut chain = Chain { links: BTreeMap::new(), end: ChainEnd::default(), lines: 0, files: files.len() };
    let mut end: Option<ChainEnd> = None;
    for (at, path) in files.iter().enumerate() {
        let read =
            files::read_with(path, end, &mut |end: ChainEnd| _ = chain.links.insert(end.seq, end.link));
        let read = match read {
            Ok(read) => read,
            Err(error) => {
                writeln!(out, "broken: {error}")?;
                return Ok(None);
            }
        };
        if read.torn_bytes > 0 && at + 1 < files.len() {
            writeln!(out, "broken: {}: it ends within a line", path.display())?;
            return Ok(None);
        }
        if read.torn_bytes > 0 {
            writeln!(out, "the last line is cut off, {} bytes: its act was not executed", read.torn_bytes)?;
        }
        (end, chain.lines) = (Some(read.end), chain.lines + read.lines);
        chain.end = read.end;
    }
    Ok(Some(chain))
}
