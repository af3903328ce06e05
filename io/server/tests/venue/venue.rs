//! A third-party venue: QuickFIX as an acceptor.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use pitlane_testkit::quickfix::{QuickFixProcess, compile};

static BINARY: LazyLock<PathBuf> = LazyLock::new(|| compile("venue"));

/// Starts a venue at this port, trading at 200.
pub(crate) fn start(port: u16, name: &str, store: &Path) -> QuickFixProcess {
    let mut command = Command::new(&*BINARY);
    command.args([&port.to_string(), name, "US"]).arg(store).arg("200");
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/quickfix/venue.xml"));
    let mut venue = QuickFixProcess::start(&mut command);
    venue.wait(&["ready"]);
    venue
}

/// Returns a field of a line.
pub(crate) fn field<'a>(line: &'a str, tag: &str) -> &'a str {
    line.split('|').find_map(|field| field.strip_prefix(tag)).unwrap_or_else(|| panic!("{tag} in {line}"))
}
