//! A file system of its own for a test, in a file: it can be filled up and it can be copied as it stands.

use std::path::{Path, PathBuf};
use std::process::Command;

/// An image that is mounted for as long as this lives.
pub struct Mounted(pub PathBuf);

impl Mounted {
    /// A new one with an empty file system.
    pub fn new(image: &Path, size: &str, at: PathBuf) -> Option<Mounted> {
        let made = sh(&format!("truncate -s {size} {0} && mkfs.ext4 -q {0}", image.display()));
        made.then(|| Mounted::of(image, at)).flatten()
    }

    pub fn of(image: &Path, at: PathBuf) -> Option<Mounted> {
        let (image, folder) = (image.display(), at.display());
        sh(&format!("mkdir -p {folder} && mount -o loop {image} {folder}")).then_some(Mounted(at))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        sh(&format!("umount {}", self.0.display()));
    }
}

pub fn sh(script: &str) -> bool {
    Command::new("sh").args(["-c", script]).status().is_ok_and(|status| status.success())
}
