//! Programs of others that may be on this machine.

use std::path::{Path, PathBuf};

/// Where it is, if it is here. Servers often stand where only administrators look.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Why it is left out: it is not here, and how it would come.
pub fn absent(what: &str, package: &str) -> String {
    format!("{what} is not installed: apt install {package}")
}

/// A file that a package has put somewhere, as [`find`] for programs.
pub fn file(path: &str) -> Option<&Path> {
    let path = Path::new(path);
    path.is_file().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_here_is_found() {
        assert!(find("sh").is_some_and(|path| path.is_absolute()));
        assert_eq!(find("no-such-program-of-anybody"), None);
        assert_eq!(file("/no/such/file"), None);
    }
}
