//! Programs that the bench starts: where those of other projects are, and how a server ends.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Longest wait for a server that ends in order. Our service writes a snapshot first.
const STOP_MAX: Duration = Duration::from_secs(20);
/// Pause between two looks at a server that ends.
const STOP_POLL: Duration = Duration::from_millis(1);

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

/// Ends a server in order: SIGTERM, and SIGKILL if it has not ended after [`STOP_MAX`]. Only a
/// process that ends by itself writes its profile (`bench/pgo`).
pub(crate) fn stop(child: &mut Child) {
    // The id of a process that has ended may belong to another one.
    if !is_running(child) {
        return;
    }
    let requested = kill_process(Pid::from_child(child), Signal::TERM).is_ok();
    let end = Instant::now() + STOP_MAX;
    while requested && is_running(child) && Instant::now() < end {
        std::thread::sleep(STOP_POLL);
    }
    // Neither has an effect on a process that has ended.
    let _ = child.kill();
    let _ = child.wait();
}

pub(crate) fn is_running(child: &mut Child) -> bool {
    matches!(child.try_wait(), Ok(None))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_server_is_asked_to_end_before_it_is_killed() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        stop(&mut child);
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::TERM.as_raw()));
        stop(&mut child);
    }

    #[test]
    fn installed_programs_are_found() {
        assert!(find("sh").is_some_and(|path| path.is_absolute()));
        assert_eq!(find("no-such-program"), None);
        assert_eq!(file("/no/such/file"), None);
    }
}
