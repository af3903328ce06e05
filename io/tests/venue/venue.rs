//! A venue that is not ours: QuickFIX as an acceptor, built from Debian's library by the test itself.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

/// The binary, compiled once in some seconds.
fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/quickfix/venue.cpp");
        let binary = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("quickfix-venue");
        let compiled = Command::new("g++")
            .args(["-std=c++14", "-O1", "-Wno-deprecated", "-o"])
            .arg(&binary)
            .arg(&source)
            .args(["-lquickfix", "-lpthread"])
            .output();
        let compiled = compiled.expect("g++ and libquickfix-dev are installed: see .ci/run");
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        binary
    })
}

pub struct Venue {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    pub heard: Vec<String>,
}

impl Venue {
    /// At this port, trading at 200.
    pub fn start(port: u16, name: &str, store: &Path) -> Venue {
        let mut child = Command::new(binary())
            .args([&port.to_string(), name, "US"])
            .arg(store)
            .arg("200")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the venue starts");
        let input = child.stdin.take().expect("its input is ours");
        let output = BufReader::new(child.stdout.take().expect("its output is ours"));
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        let mut venue = Venue { child, input, lines, heard: Vec::new() };
        venue.wait(&["ready"]);
        venue
    }

    pub fn say(&mut self, line: &str) {
        writeln!(self.input, "{line}").expect("the venue reads");
    }

    /// The next line that has all of these; others are kept.
    pub fn wait(&mut self, parts: &[&str]) -> String {
        loop {
            let line = self
                .lines
                .recv_timeout(PATIENCE)
                .unwrap_or_else(|_| panic!("waited for {parts:?}, heard:\n{}", self.heard.join("\n")));
            self.heard.push(line.clone());
            if parts.iter().all(|part| line.contains(part)) {
                return line;
            }
        }
    }

    /// What was heard so far.
    pub fn catch_up(&mut self) -> &[String] {
        self.heard.extend(self.lines.try_iter());
        &self.heard
    }

    pub fn kill(mut self) -> Vec<String> {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
        self.heard.extend(self.lines.iter());
        std::mem::take(&mut self.heard)
    }
}

impl Drop for Venue {
    /// A test that fails leaves no process behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A field of a line.
pub fn field<'a>(line: &'a str, tag: &str) -> &'a str {
    line.split('|').find_map(|field| field.strip_prefix(tag)).unwrap_or_else(|| panic!("{tag} in {line}"))
}
