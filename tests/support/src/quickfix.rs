//! A program on QuickFIX, built from Debian's library by the test itself. It reads commands and
//! prints events, one line each.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use crate::paths;
use crate::patience::PATIENCE;

/// Returns the binary of a source in `tests/quickfix`, compiled in some seconds.
pub fn compile(source: &str) -> PathBuf {
    let binary = paths::target_tmp().join(format!("quickfix-{source}"));
    let source = paths::repository().join(format!("tests/quickfix/{source}.cpp"));
    let compiled = Command::new("g++")
        .args(["-std=c++14", "-O1", "-Wno-deprecated", "-o"])
        .arg(&binary)
        .arg(&source)
        .args(["-lquickfix", "-lpthread"])
        .output();
    let compiled = compiled.expect("g++ and libquickfix-dev are installed: run config/setup test");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    binary
}

/// Returns the dictionary of a name in `tests/quickfix`.
pub fn dictionary(name: &str) -> PathBuf {
    paths::repository().join(format!("tests/quickfix/{name}.xml"))
}

pub struct QuickFixProcess {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    pub received: Vec<String>,
}

impl QuickFixProcess {
    pub fn start(command: &mut Command) -> QuickFixProcess {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
        let input = child.stdin.take().expect("its input is ours");
        let output = BufReader::new(child.stdout.take().expect("its output is ours"));
        let (line_sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if line_sender.send(line).is_err() {
                    return;
                }
            }
        });
        QuickFixProcess { child, input, lines, received: Vec::new() }
    }

    pub fn send_message(&mut self, line: &str) {
        writeln!(self.input, "{line}").expect("the program reads");
    }

    /// Waits for the next line that contains all of these; keeps the others.
    pub fn wait(&mut self, parts: &[&str]) -> String {
        loop {
            let line = self
                .lines
                .recv_timeout(PATIENCE)
                .unwrap_or_else(|_| panic!("waited for {parts:?}, received:\n{}", self.received.join("\n")));
            self.received.push(line.clone());
            if parts.iter().all(|part| line.contains(part)) {
                return line;
            }
        }
    }

    /// Returns the lines received so far.
    pub fn catch_up(&mut self) -> &[String] {
        self.received.extend(self.lines.try_iter());
        &self.received
    }

    /// Kills the program and returns all its lines.
    pub fn kill(mut self) -> Vec<String> {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
        self.received.extend(self.lines.iter());
        std::mem::take(&mut self.received)
    }

    pub fn quit(mut self) {
        self.send_message("quit");
        assert!(self.child.wait().expect("it ends").success());
    }
}

impl Drop for QuickFixProcess {
    /// A failing test leaves no process behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
