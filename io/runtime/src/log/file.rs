//! A log file of bounded size: when it is full it is renamed to `FILE.1`, the previous one to
//! `FILE.2`, and so on; the oldest is removed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    /// Maximum size in bytes; zero means unlimited, because another program rotates the file.
    bytes_max: u64,
    /// Number of older files that are kept.
    kept: u32,
}

impl LogFile {
    /// Opens the file for appending, or creates it.
    pub(super) fn open(path: &Path, bytes_max: u64, kept: u32) -> io::Result<LogFile> {
        let file = append(path)?;
        let bytes = file.metadata()?.len();
        Ok(LogFile { path: path.to_path_buf(), file, bytes, bytes_max, kept })
    }

    fn rotate(&mut self) -> io::Result<()> {
        let numbered = |n: u32| {
            let mut name = self.path.clone().into_os_string();
            name.push(format!(".{n}"));
            PathBuf::from(name)
        };
        for n in (1..self.kept).rev() {
            // The file may not exist yet.
            let _ = fs::rename(numbered(n), numbered(n + 1));
        }
        if self.kept > 0 {
            fs::rename(&self.path, numbered(1))?;
        } else {
            fs::remove_file(&self.path)?;
        }
        self.file = append(&self.path)?;
        self.bytes = 0;
        Ok(())
    }
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let is_full =
            self.bytes_max > 0 && self.bytes > 0 && self.bytes + bytes.len() as u64 > self.bytes_max;
        // If the file cannot be renamed, the line is worth more than the limit.
        if is_full && self.rotate().is_err() {
            self.bytes = 0;
        }
        let written = self.file.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_file_is_rotated_and_the_number_of_files_is_bounded() {
        let folder = std::env::temp_dir().join(format!("pitlane-log-file-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("pitlane.log");
        let mut log = LogFile::open(&path, 30, 2).unwrap();
        for n in 0..20 {
            log.write_all(format!("line {n:04}\n").as_bytes()).unwrap();
        }
        drop(log);
        // A reopened file continues where it was.
        LogFile::open(&path, 30, 2).unwrap().write_all(b"line 0020\n").unwrap();
        let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(text("pitlane.log"), "line 0018\nline 0019\nline 0020\n");
        assert_eq!(text("pitlane.log.1"), "line 0015\nline 0016\nline 0017\n");
        assert_eq!(text("pitlane.log.2"), "line 0012\nline 0013\nline 0014\n");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 3);
        let mut endless = LogFile::open(&folder.join("other.log"), 0, 2).unwrap();
        endless.write_all(&[b'x'; 100]).unwrap();
        endless.write_all(&[b'x'; 100]).unwrap();
        assert_eq!(text("other.log").len(), 200);
        fs::remove_dir_all(&folder).unwrap();
    }
}
