//! Folder for the files of a test, removed when the test has passed.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use crate::paths;

/// Every user of the folder holds a clone; the last one removes the folder. The files of a failed
/// test stay for inspection.
#[derive(Clone)]
pub struct TestFolder(Arc<FolderPath>);

struct FolderPath(PathBuf);

impl TestFolder {
    /// Creates an empty folder, under a name that no other test of this group has.
    pub fn new(group: &str, name: &str) -> TestFolder {
        let path = paths::target_tmp().join(group).join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder for the test");
        TestFolder(Arc::new(FolderPath(path)))
    }
}

impl Deref for TestFolder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0.0
    }
}

impl Drop for FolderPath {
    fn drop(&mut self) {
        if !thread::panicking() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}
