//! The mutants of a change, as cargo-mutants lists them.

use serde::Deserialize;
use std::path::Path;
use std::process::Command;

/// A place in a file: line and column count from one.
#[derive(Clone, Copy, Deserialize)]
pub struct Place {
    pub line: usize,
    pub column: usize,
}

#[derive(Clone, Copy, Deserialize)]
pub struct Span {
    pub start: Place,
}

#[derive(Clone, Deserialize)]
pub struct Mutant {
    pub name: String,
    pub file: String,
    pub package: String,
    pub span: Span,
    pub replacement: String,
    pub genre: String,
}

/// Asks cargo-mutants for the mutants on the lines of `change`. Those in accepted survivors of
/// .cargo/mutants.toml are not among them.
pub fn mutants_of(root: &Path, change: &Path) -> Result<Vec<Mutant>, String> {
    let output = Command::new("cargo")
        .args(["mutants", "--list", "--json", "--in-diff"])
        .arg(change)
        .current_dir(root)
        .output()
        .map_err(|error| format!("cannot start cargo mutants: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo mutants: {}", String::from_utf8_lossy(&output.stderr)));
    }
    if output.stdout.is_empty() {
        return Ok(Vec::new());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo mutants: {error}"))
}

/// The name of a mutant, `file:line:column: what`, without line and column, and without the remark
/// that follows it in a list of ours.
pub fn without_place(name: &str) -> String {
    let name = name.split(" (no test reaches it)").next().unwrap_or(name);
    let mut parts = name.splitn(4, ':');
    let file = parts.next().unwrap_or_default();
    format!("{file}:{}", parts.nth(2).unwrap_or_default())
}

/// The offset in bytes of each line of a text.
pub struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub fn new(text: &'a str) -> Self {
        let after_each = text.match_indices('\n').map(|(at, _)| at + 1);
        Self { text, starts: std::iter::once(0).chain(after_each).collect() }
    }

    /// The offset of a place; columns count characters.
    pub fn offset(&self, place: Place) -> usize {
        let start = self.starts.get(place.line - 1).copied().unwrap_or(self.text.len());
        let line = &self.text[start..];
        let column = line.char_indices().nth(place.column - 1).map_or(line.len(), |(at, _)| at);
        start + column
    }
}
