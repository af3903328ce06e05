//! `pitlane audit verify`: follows the chain through all files.

use std::io::{self, Write};
use std::path::Path;

use super::AuditError;
use super::chain::End;
use super::trail;

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

/// Says what is there; true if every line follows from the one before.
pub fn verify(data: &Path, out: &mut impl Write) -> Result<bool, VerifyError> {
    let folder = trail::folder(data);
    let files = trail::files(&folder);
    let files = files.map_err(|error| VerifyError::Audit(AuditError::Io(folder, error)))?;
    let (mut end, mut lines): (Option<End>, u64) = (None, 0);
    for (at, path) in files.iter().enumerate() {
        let read = match trail::read(path, end) {
            Ok(read) => read,
            Err(error) => {
                writeln!(out, "broken: {error}")?;
                return Ok(false);
            }
        };
        let first = read.end.seq + 1 - read.lines;
        if at == 0 && first > 1 {
            writeln!(out, "begins with line {first}: what is older was put away")?;
        }
        if read.torn_bytes > 0 && at + 1 < files.len() {
            writeln!(out, "broken: {}: it ends within a line", path.display())?;
            return Ok(false);
        }
        if read.torn_bytes > 0 {
            writeln!(out, "the last line is cut off, {} bytes: it was not acted upon", read.torn_bytes)?;
        }
        (end, lines) = (Some(read.end), lines + read.lines);
    }
    let End { seq, link } = end.unwrap_or_default();
    writeln!(out, "ok: {lines} lines in {} files, the last is {seq} with hash {link}", files.len())?;
    Ok(true)
}
