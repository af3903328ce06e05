//! Programs of other projects that may be installed on this machine.

use std::path::{Path, PathBuf};

/// Returns the path of a program, if it is installed. Servers are often in folders that only
/// administrators search.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Returns the reason why a peer is left out: it is not installed, and how to install it.
pub fn absent(what: &str, package: &str) -> String {
    format!("{what} is not installed: apt install {package}")
}

/// Returns the path of a file that a package may have installed, as [`find`] does for programs.
pub fn file(path: &str) -> Option<&Path> {
    let path = Path::new(path);
    path.is_file().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installed_programs_are_found() {
        assert!(find("sh").is_some_and(|path| path.is_absolute()));
        assert_eq!(find("no-such-program"), None);
        assert_eq!(file("/no/such/file"), None);
    }
}
