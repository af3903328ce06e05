//! The binary as a user starts it, with its default config: how long it takes to be ready, and how
//! much of a core it takes without clients.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::journal::TempFolder;

/// Time between the start and the measurement, in which the service finishes its preparations.
const SETTLE: Duration = Duration::from_secs(3);
/// Listeners that get free ports, so that the service runs beside another one.
const LISTENERS: [&str; 5] =
    ["http.listen", "https.listen", "stomp.listen", "stomp.tls_listen", "fix.listen"];

/// A measurement of the idle service.
#[derive(Clone, Copy, Debug)]
pub struct IdleUsage {
    /// Seconds from the start of the process to its first line: the median of all starts.
    pub start_s: f64,
    /// Fraction of a core.
    pub core_fraction: f64,
    /// Resident bytes of the process.
    pub resident_bytes: u64,
}

/// Returns the path of the `pitlane` binary in the folder of this one.
pub fn binary() -> Result<PathBuf, Box<dyn Error>> {
    let path = std::env::current_exe()?.with_file_name("pitlane");
    if path.is_file() {
        return Ok(path);
    }
    Err(format!("there is no {}: cargo build --release --package pitlane", path.display()).into())
}

pub fn measure(starts: usize, time: Duration) -> Result<IdleUsage, Box<dyn Error>> {
    let binary = binary()?;
    let mut seconds = Vec::new();
    for _ in 1..starts.max(1) {
        seconds.push(IdleService::start(&binary)?.start_s);
    }
    let service = IdleService::start(&binary)?;
    seconds.push(service.start_s);
    std::thread::sleep(SETTLE);
    let (begin, before) = (Instant::now(), service.on_core_ns()?);
    std::thread::sleep(time);
    let spent_ns = service.on_core_ns()? - before;
    let core_fraction = spent_ns / begin.elapsed().as_nanos() as f64;
    let resident_bytes = service.resident_bytes()?;
    Ok(IdleUsage { start_s: crate::measure::median(&seconds), core_fraction, resident_bytes })
}

/// A running service. Dropping it stops the process.
struct IdleService {
    child: Child,
    start_s: f64,
    _folder: TempFolder,
}

impl IdleService {
    fn start(binary: &PathBuf) -> Result<IdleService, Box<dyn Error>> {
        let folder = TempFolder::new(None);
        let mut command = Command::new(binary);
        command.args(["serve", "--quiet", "--data"]).arg(folder.path());
        for key in LISTENERS {
            command.args(["--set", &format!("{key}=127.0.0.1:0")]);
        }
        let begin = Instant::now();
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let out = child.stdout.take().ok_or("the service has no output")?;
        let mut service = IdleService { child, start_s: 0.0, _folder: folder };
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line)?;
        service.start_s = begin.elapsed().as_secs_f64();
        if line.starts_with("ready ") {
            Ok(service)
        } else {
            Err(format!("the service did not start: {line}").into())
        }
    }

    /// Returns the nanoseconds on a core of all its threads.
    fn on_core_ns(&self) -> Result<f64, Box<dyn Error>> {
        let mut sum = 0.0;
        for task in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let text = fs::read_to_string(task?.path().join("schedstat"))?;
            sum += text.split(' ').next().ok_or("the kernel keeps no account of threads")?.parse::<f64>()?;
        }
        Ok(sum)
    }

    fn resident_bytes(&self) -> Result<u64, Box<dyn Error>> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .ok_or("the system does not report it")?;
        Ok(line.split_whitespace().next().ok_or("the system does not report it")?.parse::<u64>()? * 1_024)
    }
}

impl Drop for IdleService {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
