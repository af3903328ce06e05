//! Paths of the repository and of the target folder.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// Set by cargo for the tests of the package that has the binary.
const BINARY: &str = "CARGO_BIN_EXE_pitlane";

/// Returns the path of the binary, built in the same profile as the test. Cargo builds it before
/// the tests of the package `pitlane`, not before those of other packages.
pub fn binary() -> PathBuf {
    let binary = env::var_os(BINARY).map_or_else(|| profile().join("pitlane"), PathBuf::from);
    assert!(
        binary.is_file(),
        "{} does not exist: build it by `cargo build --package pitlane`, with the profile of this test",
        binary.display()
    );
    binary
}

/// Returns the top folder of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns a folder for files of tests, in the target folder. It is the same for all tests, and it
/// outlives them.
pub fn target_tmp() -> PathBuf {
    let folder = profile().with_file_name("tmp");
    fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}

/// Returns the folder of the profile, such as `target/sim`: a test is in its folder `deps`.
fn profile() -> PathBuf {
    let test = env::current_exe().expect("a process knows its program");
    let profile = test.parent().filter(|folder| folder.ends_with("deps")).and_then(Path::parent);
    profile.unwrap_or_else(|| panic!("{} is not in a folder `deps`", test.display())).to_path_buf()
}
