//! Flame graphs: `perf` samples this process and all that it starts during a measurement, and the
//! stacks become a drawing.

use std::fs::File;
use std::io::{self, BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use inferno::collapse::Collapse;
use inferno::collapse::perf::Folder;
use inferno::flamegraph::{self, Options};

/// Samples per second. Not a round number, so that no periodic work is always or never hit.
const LOOKS_PER_S: &str = "997";
/// Longest time that `perf` may take to start.
const START_MAX: Duration = Duration::from_secs(5);

/// A running `perf record`; [`Flame::draw`] ends it.
pub struct Flame {
    perf: Child,
    data: PathBuf,
    out: PathBuf,
}

impl Flame {
    pub fn start(out: &Path) -> Result<Flame, String> {
        let data = std::env::temp_dir().join(format!("pitlane-flame-{}.data", std::process::id()));
        let perf = Command::new("perf")
            .args(["record", "--quiet", "--call-graph", "fp", "-F", LOOKS_PER_S, "-o"])
            .arg(&data)
            .args(["-p", &std::process::id().to_string()])
            .stdout(Stdio::null())
            .spawn()
            .map_err(|_| "a flame graph needs perf: apt install linux-perf")?;
        let mut flame = Flame { perf, data, out: out.to_owned() };
        let since = Instant::now();
        while !flame.data.exists() {
            let ended = flame.perf.try_wait().map_err(|error| error.to_string())?;
            if ended.is_some() || since.elapsed() > START_MAX {
                return Err(
                    "perf may not sample this process: see /proc/sys/kernel/perf_event_paranoid".into()
                );
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(flame)
    }

    /// Stops `perf` and draws the samples.
    pub fn draw(mut self, title: &str) -> io::Result<()> {
        // `perf` writes its buffer when it is interrupted, but not when it is killed.
        Command::new("kill").args(["-INT", &self.perf.id().to_string()]).status()?;
        self.perf.wait()?;
        let mut script = Command::new("perf")
            .args(["script", "--force", "-i"])
            .arg(&self.data)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let stacks = script.stdout.take().ok_or_else(|| io::Error::other("perf gives no output"))?;
        let mut folded = Vec::new();
        Folder::default().collapse(BufReader::new(stacks), &mut folded)?;
        script.wait()?;
        let mut options = Options::default();
        options.title = title.to_owned();
        let drawn = BufWriter::new(File::create(&self.out)?);
        flamegraph::from_reader(&mut options, folded.as_slice(), drawn).map_err(io::Error::other)
    }
}

impl Drop for Flame {
    fn drop(&mut self) {
        let _ = self.perf.kill();
        let _ = self.perf.wait();
        let _ = std::fs::remove_file(&self.data);
    }
}
