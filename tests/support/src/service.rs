//! The real binary as a child process, as a client sees it.

use std::fs::{self, DirEntry};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use crate::paths;
use crate::patience::{PATIENCE, until};
pub use crate::temp_folder::TestFolder;

/// Small files, so that a start is fast; listeners on any free port.
const SETTINGS: [&str; 8] = [
    "http.listen=127.0.0.1:0",
    "https.listen=",
    "stomp.listen=127.0.0.1:0",
    "stomp.tls_listen=",
    "fix.listen=127.0.0.1:0",
    "journal.segment_bytes=1048576",
    "journal.reserve_segments=2",
    "shard.orders_max=100000",
];

/// The limits against slips are off: tests send orders of any size at any price, also before the
/// first price.
const LIMITS_OFF: [&str; 4] = [
    "risk.strategies.max_order_qty=0",
    "risk.strategies.max_order_value=0",
    "risk.strategies.price_collar_pct=0",
    "risk.strategies.max_position=0",
];

/// Bytes of the log that are read at once.
const LOG_PART_BYTES: usize = 1 << 16;

/// Returns an empty data folder for one test.
pub fn folder(name: &str) -> TestFolder {
    TestFolder::new("server", name)
}

pub fn command(data: &Path, settings: &[&str]) -> Command {
    command_with_limits(data, &[&LIMITS_OFF, settings].concat())
}

/// Returns the same command with the limits of the built-in settings, or of a preset that the
/// caller adds.
pub fn command_with_limits(data: &Path, settings: &[&str]) -> Command {
    let mut command = Command::new(paths::binary());
    command.arg("serve").arg("--data").arg(data);
    for setting in SETTINGS.iter().chain(settings) {
        command.args(["--set", setting]);
    }
    command
}

/// Returns every record of the journal, a line each.
pub fn dump(data: &Path) -> String {
    let mut command = Command::new(paths::binary());
    let output = command.args(["journal", "dump", "--data"]).arg(data).output().expect("the binary starts");
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("it prints text")
}

pub struct ServiceProcess {
    child: Child,
    /// Its output, line by line; in a mutex, so that several threads may use the service.
    out: Mutex<Receiver<String>>,
    /// Its standard error so far. It is read as it comes, or the service would block on a full
    /// pipe.
    log: Arc<Mutex<Vec<u8>>>,
    log_reader: Option<JoinHandle<()>>,
    /// The first line.
    pub ready: String,
    /// Removed only after the service has ended.
    _data: Option<TestFolder>,
}

impl ServiceProcess {
    /// Starts the service on a data folder with further settings, and waits until it is ready or
    /// gone.
    pub fn start(data: &TestFolder, settings: &[&str], fault: Option<&str>) -> ServiceProcess {
        let mut command = command(data, settings);
        if let Some(fault) = fault {
            command.env("PITLANE_FAULT", fault);
        }
        ServiceProcess::on(data, command)
    }

    /// Does the same, and the service stops after so many seconds.
    pub fn start_for(data: &TestFolder, settings: &[&str], seconds: &str) -> ServiceProcess {
        let mut command = command(data, settings);
        command.args(["--for", seconds]);
        ServiceProcess::on(data, command)
    }

    /// Starts a given command on this folder.
    pub fn on(data: &TestFolder, command: Command) -> ServiceProcess {
        let mut service = ServiceProcess::spawn(command);
        service._data = Some(data.clone());
        service
    }

    pub fn spawn(mut command: Command) -> ServiceProcess {
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
        let mut printed = BufReader::new(child.stdout.take().expect("its output is ours"));
        let (line_sender, out) = mpsc::channel();
        thread::spawn(move || {
            let mut line = String::new();
            while printed.read_line(&mut line).expect("it prints text") > 0
                && line_sender.send(std::mem::take(&mut line)).is_ok()
            {}
        });
        let mut err = child.stderr.take().expect("its complaints are ours");
        let log = Arc::new(Mutex::new(Vec::new()));
        let read = log.clone();
        let log_reader = thread::spawn(move || {
            let mut part = vec![0; LOG_PART_BYTES];
            loop {
                match err.read(&mut part) {
                    Ok(0) => break,
                    Ok(count) => read.lock().expect("no reader panics").extend_from_slice(&part[..count]),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
        });
        let mut service = ServiceProcess {
            child,
            out: Mutex::new(out),
            log,
            log_reader: Some(log_reader),
            ready: String::new(),
            _data: None,
        };
        service.ready = service.line();
        service
    }

    pub fn is_ready(&self) -> bool {
        self.ready.starts_with("ready http=127.0.0.1:")
    }

    pub fn address(&self) -> SocketAddr {
        let part = self.ready.split_whitespace().find_map(|part| part.strip_prefix("http="));
        part.expect("it listens").parse().expect("an address")
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the next line; empty at the end.
    pub fn line(&mut self) -> String {
        match self.out.get_mut().expect("no thread panics while it holds the lock").recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => String::new(),
            Err(RecvTimeoutError::Timeout) => {
                let _ = self.child.kill();
                panic!("it printed nothing for {PATIENCE:?}; its log: {}", self.log_text());
            }
        }
    }

    /// Returns whether its log has this text so far. A process that is killed loses the lines that
    /// its thread for the log has not written yet.
    pub fn has_logged(&self, text: &str) -> bool {
        String::from_utf8_lossy(&self.log.lock().expect("no reader panics")).contains(text)
    }

    /// Called once, when the process has ended.
    fn log_text(&mut self) -> String {
        self.log_reader.take().expect("the log is taken once").join().expect("it is read");
        // The text may be cut in the middle of a character if the process was killed.
        String::from_utf8_lossy(&self.log.lock().expect("no reader panics")).into_owned()
    }

    /// The shell has a built-in `kill`, so nothing needs to be installed.
    pub fn signal(&self, signal: &str) {
        let kill = format!("kill -{signal} {}", self.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().expect("there is a shell").success());
    }

    /// Stops all its threads. The system lets one of the threads stop the others, so they continue
    /// until that one has run.
    pub fn pause(&self) {
        self.signal("STOP");
        let tasks = format!("/proc/{}/task", self.id());
        let is_stopped = |task: io::Result<DirEntry>| {
            let stat = task.and_then(|task| fs::read_to_string(task.path().join("stat"))).unwrap_or_default();
            // After the name, which is in brackets: stopped, or ended.
            stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with(['T', 'Z', 'X']))
        };
        until("it stops", || fs::read_dir(&tasks).expect("it is there").all(is_stopped));
    }

    /// Returns status and body of one request.
    pub fn ask(&self, request: &str) -> (u16, String) {
        self.try_ask(request).expect("it answers")
    }

    /// Returns status and body of one request, or an error if there is no answer: a server that
    /// begins to follow or to lead closes its connections.
    pub fn try_ask(&self, request: &str) -> io::Result<(u16, String)> {
        let mut stream = TcpStream::connect(self.address())?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let address = self.address();
        let head = format!(
            "{request} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let status = answer.split(' ').nth(1).and_then(|part| part.parse().ok());
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let status = status.ok_or_else(|| io::Error::other("an answer without a status"))?;
        Ok((status, body.to_string()))
    }

    /// Returns a number of `/metrics`.
    pub fn metric(&self, name: &str) -> u64 {
        let (_, text) = self.ask("GET /metrics");
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("there is no {name} in {text}")).parse().expect("a whole number")
    }

    /// Waits for the end and returns the remaining output, the standard error, the status, and the
    /// processor time in hundredths of a second.
    pub fn end(mut self) -> ProcessEnd {
        let mut output = String::new();
        loop {
            match self.line() {
                line if line.is_empty() => break,
                line => output += &line,
            }
        }
        let log_text = self.log_text();
        // The process has not been waited for, so its counters still exist.
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.id())).unwrap_or_default();
        let fields: Vec<&str> =
            stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
        let time = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
        let cpu = time(11) + time(12);
        let status = self.child.wait().expect("it ends");
        ProcessEnd { output, log_text, status, cpu }
    }
}

impl Drop for ServiceProcess {
    /// A failing test leaves no process behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub struct ProcessEnd {
    pub output: String,
    pub log_text: String,
    pub status: ExitStatus,
    /// Hundredths of a second.
    pub cpu: u64,
}

impl ProcessEnd {
    /// Returns whether it ended in order, with the last line.
    pub fn is_orderly(&self) -> bool {
        let last = self.output.lines().last().unwrap_or_default();
        self.status.code() == Some(0) && last.starts_with("stopped ")
    }
}
