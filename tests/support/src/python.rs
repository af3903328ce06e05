//! Python environments of tests, in the target folder.

use std::path::PathBuf;
use std::process::Command;

use crate::paths;

/// Returns the Python of an environment with this package, which is fetched once. Where that is not
/// possible the caller skips its test; in CI nothing may be missing.
pub fn with_package(package: &str) -> Option<PathBuf> {
    let folder = paths::target_tmp().join("python").join(package);
    let python = folder.join("bin/python");
    if python.exists() {
        return Some(python);
    }
    let made = succeeds(Command::new("python3").args(["-m", "venv"]).arg(&folder))
        && succeeds(Command::new(&python).args(["-m", "pip", "install", "--quiet", package]));
    if made {
        return Some(python);
    }
    // Half an environment would be taken for a whole one.
    let _ = std::fs::remove_dir_all(&folder);
    assert!(std::env::var_os("CI").is_none(), "python3 with venv and {package} must be there");
    println!("skipped: python3 with venv and {package} is not to be had here");
    None
}

/// Returns whether a command succeeds; its output goes to ours.
pub fn succeeds(command: &mut Command) -> bool {
    command.status().is_ok_and(|status| status.success())
}
