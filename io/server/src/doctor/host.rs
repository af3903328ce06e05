//! What a kernel shows of itself in files, below a root folder.

use std::fs;
use std::path::{Path, PathBuf};

use pitlane_config::{Machine, parse_cores};

/// Folder entries that are read: interrupts, cores, nodes. No machine has more.
const ENTRIES_MAX: usize = 10_000;

#[derive(Clone, Debug)]
pub struct HostFiles {
    root: PathBuf,
    pub cores: Vec<u32>,
}

impl HostFiles {
    pub fn at(root: &Path) -> HostFiles {
        HostFiles { root: root.to_path_buf(), cores: Machine::of(root).cores }
    }

    /// Returns the trimmed text of a file; None if there is no such file.
    pub fn text(&self, path: &str) -> Option<String> {
        let bytes = fs::read(self.root.join(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_string())
    }

    /// Returns a list of cores; None if there is no such file, or its content is something else.
    pub fn core_list(&self, path: &str) -> Option<Vec<u32>> {
        parse_cores(&self.text(path)?)
    }

    pub fn is_folder(&self, path: &str) -> bool {
        self.root.join(path).is_dir()
    }

    /// Returns the names in a folder, sorted.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.root.join(folder)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).take(ENTRIES_MAX).collect();
        names.sort();
        names
    }

    /// Returns whether every core has a feature, as `/proc/cpuinfo` lists them.
    pub fn has_flag(&self, flag: &str) -> bool {
        let text = self.text("proc/cpuinfo").unwrap_or_default();
        let mut lines = text.lines().filter(|line| line.starts_with("flags")).peekable();
        let has = |line: &str| line.split_whitespace().any(|word| word == flag);
        lines.peek().is_some() && lines.all(has)
    }

    /// Returns a current limit of this process; `u64::MAX` if there is none.
    pub fn limit(&self, name: &str) -> Option<u64> {
        let text = self.text("proc/self/limits")?;
        let line = text.lines().find(|line| line.starts_with(name))?;
        match line[name.len()..].split_whitespace().next()? {
            "unlimited" => Some(u64::MAX),
            number => number.parse().ok(),
        }
    }
}

/// Returns the chosen word of a file that lists choices, such as `always [madvise] never`; the
/// whole text of another file.
pub fn chosen(text: &str) -> &str {
    text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(text, |(word, _)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_entries_of_a_folder_are_looked_at() {
        let root = std::env::temp_dir().join(format!("pitlane-host-{}", std::process::id()));
        fs::create_dir_all(root.join("sys")).unwrap();
        let make = |n: usize| fs::File::create(root.join(format!("sys/{n}"))).map(drop).unwrap();
        (0..ENTRIES_MAX).for_each(make);
        let host = HostFiles::at(&root);
        assert_eq!(host.names("sys").len(), ENTRIES_MAX);
        make(ENTRIES_MAX);
        assert_eq!(host.names("sys").len(), ENTRIES_MAX);
        fs::remove_dir_all(root).unwrap();
    }
}
