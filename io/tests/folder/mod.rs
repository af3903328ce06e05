//! Where a test keeps its files, gone when the test has passed.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

/// Whoever still needs the folder holds one of these; the last of them removes it. What a failed test has written stays to be looked at.
#[derive(Clone)]
pub struct Folder(Arc<Place>);

struct Place(PathBuf);

impl Folder {
    /// An empty one, under a name that no other test of this group has.
    pub fn new(group: &str, name: &str) -> Folder {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(group).join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder for the test");
        Folder(Arc::new(Place(path)))
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0.0
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !thread::panicking() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}
