//! A separate file system for a test, in a file: it can be filled and copied at any moment.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Attempts to copy a disk while nothing is written to it.
const COPIES_MAX: usize = 20;

/// An image that is mounted while this exists.
pub struct Mounted(pub PathBuf);

impl Mounted {
    /// Creates an image with an empty file system and mounts it.
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

/// Copies a mounted image. The kernel writes to it by itself even if no process does: only a copy
/// without such a write is of one moment. Returns whether there was one.
pub fn copy_of_one_moment(from: &Path, to: &Path) -> bool {
    (0..COPIES_MAX).any(|_| {
        let before = written_to(from);
        let copied = sh(&format!("cp --sparse=always {} {}", from.display(), to.display()));
        copied && written_to(from) == before
    })
}

/// Returns the kernel's counters of the device of an image.
fn written_to(image: &Path) -> String {
    let script = format!("cat /sys/block/$(basename $(losetup -nO NAME -j {}))/stat", image.display());
    let output = Command::new("sh").args(["-c", &script]).output().expect("there is a shell");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn sh(script: &str) -> bool {
    Command::new("sh").args(["-c", script]).status().is_ok_and(|status| status.success())
}
