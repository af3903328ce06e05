//! Checks whether any user of the machine could write a file of users or tokens, and so gain any
//! right.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use pitlane_config::refdata::RefDataFaults;

/// Mode bit: all users may write.
const OTHERS_WRITE: u32 = 0o002;
/// Mode bit of a folder in which only the owner of a file may replace it.
const STICKY: u32 = 0o1000;

/// Rejects a file that all users may write, or replace in its folder. Metadata that cannot be read
/// is left to the reader of the file.
pub(crate) fn check(path: &Path) -> Result<(), RefDataFaults> {
    let may_write = |about: &Metadata| about.mode() & OTHERS_WRITE != 0;
    let problem = match (fs::metadata(path), fs::metadata(folder_of(path))) {
        (Ok(file), _) if may_write(&file) => "every user of this machine may write it: chmod o-w",
        (_, Ok(folder)) if may_write(&folder) && folder.mode() & STICKY == 0 => {
            "every user of this machine may replace it, since all may write its folder: chmod o-w the folder"
        }
        _ => return Ok(()),
    };
    let mut faults = RefDataFaults::default();
    faults.add(&path.display().to_string(), 0, "", problem.to_string());
    Err(faults)
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    }
}
