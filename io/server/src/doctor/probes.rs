//! Probes, which must be tried to be known: a ring, a sync, a port, a time server.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::thread;

use pitlane_cluster::nats::Warning;
use pitlane_cluster::nats::checkup;
use pitlane_cluster::standby::broker::{self, BrokerFacts};
use pitlane_config::Config;
use pitlane_engine::time::NS_PER_S;
use pitlane_net::settings::NetSettings;
use pitlane_runtime::clock::Clock;
use pitlane_runtime::thread_class::ThreadClass;
use pitlane_sys::scheduling::{scheduling, set_scheduling};

use crate::port_owner::PortOwner;

/// Size of a block as the journal writes it, number of blocks written, and the time limit.
const BLOCK_BYTES: usize = 4_096;
const SYNCS: usize = 64;
const SYNCS_NS_MAX: u64 = 2 * NS_PER_S;

#[derive(Clone, Debug)]
pub struct Probes {
    /// The data folder, or the nearest existing folder above it.
    pub data_dir: PathBuf,
    pub free_bytes: Option<u64>,
    /// Median time of an fdatasync, in microseconds.
    pub sync_us: Result<u64, String>,
    /// Whether a ring could be created.
    pub ring: Result<(), String>,
    /// Whether a thread keeps a time slice of its own; the reason why it may not ask for one.
    pub has_slices: Result<bool, String>,
    /// Whether the configured driver takes its own busy-poll parameters.
    pub busy_poll: Result<(), String>,
    pub clock_synchronized: Option<bool>,
    pub ports: Vec<PortProbe>,
    /// How the broker stores the stream of the standby; None: there is no standby.
    pub broker: Option<Result<BrokerFacts, String>>,
    /// Faults of the rights at the broker; None: there is no broker.
    pub rights: Option<Result<Vec<Warning>, String>>,
}

/// A listener, and what prevents it from listening.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortProbe {
    pub key: &'static str,
    pub address: SocketAddr,
    pub trouble: Option<String>,
}

impl Probes {
    /// Tries everything on this machine. Takes up to a few seconds.
    pub fn take(config: &Config) -> Probes {
        let data_dir = nearest(&config.service.data_dir);
        Probes {
            free_bytes: free_bytes(&data_dir),
            sync_us: sync_us(&data_dir).map_err(|error| error.to_string()),
            ring: pitlane_net::probe_ring(),
            has_slices: has_slices().map_err(|error| error.to_string()),
            busy_poll: pitlane_net::probe_busy_poll(NetSettings::of(&config.net).driver),
            clock_synchronized: clock_synchronized(),
            ports: config.listeners().into_iter().map(|(key, address, _)| try_port(key, address)).collect(),
            broker: config.standby.group.is_some().then(|| broker::probe(config)),
            rights: checkup::is_used(config).then(|| checkup::probe(config)),
            data_dir,
        }
    }
}

fn nearest(folder: &Path) -> PathBuf {
    let whole = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
    whole.ancestors().find(|above| above.is_dir()).unwrap_or(Path::new("/")).to_path_buf()
}

fn free_bytes(folder: &Path) -> Option<u64> {
    let about = rustix::fs::statvfs(folder).ok()?;
    Some(about.f_bavail.saturating_mul(about.f_frsize))
}

/// Writes blocks into a file that already has its size, as the journal does, and syncs each.
fn sync_us(folder: &Path) -> io::Result<u64> {
    let path = trial(folder);
    let file = OpenOptions::new().create(true).truncate(true).write(true).open(&path)?;
    let measured = measure(&file);
    fs::remove_file(&path)?;
    measured
}

/// Returns the path of the file that is written and removed; two doctors may run at once.
fn trial(folder: &Path) -> PathBuf {
    folder.join(format!(".pitlane-doctor-{}", process::id()))
}

fn measure(file: &File) -> io::Result<u64> {
    let block = [0; BLOCK_BYTES];
    for at in 0..SYNCS {
        file.write_all_at(&block, (at * BLOCK_BYTES) as u64)?;
    }
    file.sync_all()?;
    let mut clock = Clock::new();
    let start = clock.now();
    let mut times = Vec::with_capacity(SYNCS);
    for at in 0..SYNCS {
        let before = clock.now();
        file.write_all_at(&[1; BLOCK_BYTES], (at * BLOCK_BYTES) as u64)?;
        file.sync_data()?;
        times.push(clock.now().since(before));
        if clock.now().since(start) > SYNCS_NS_MAX {
            break;
        }
    }
    times.sort_unstable();
    Ok(times[times.len() / 2] / 1_000)
}

/// Tries the scheduling of the threads on which orders wait, in a thread that ends afterwards.
fn has_slices() -> io::Result<bool> {
    let class = ThreadClass::Orders;
    let tried = thread::spawn(move || {
        let wanted = class.scheduling(scheduling()?.nice);
        set_scheduling(wanted)?;
        Ok(scheduling()?.slice == wanted.slice)
    });
    tried.join().unwrap_or_else(|_| Err(io::Error::other("the thread that tried it ended")))
}

fn clock_synchronized() -> Option<bool> {
    let by_systemd = output_of("timedatectl", &["show", "--property=NTPSynchronized", "--value"]);
    match by_systemd.as_deref().map(str::trim) {
        Some("yes") => return Some(true),
        Some("no") => return Some(false),
        _ => {}
    }
    let by_chrony = output_of("chronyc", &["-n", "tracking"])?;
    let status = by_chrony.lines().find_map(|line| line.strip_prefix("Leap status"))?;
    Some(status.contains("Normal"))
}

/// Returns the output of a command, if it exists and does not fail.
fn output_of(program: &str, words: &[&str]) -> Option<String> {
    let output =
        Command::new(program).args(words).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn try_port(key: &'static str, address: SocketAddr) -> PortProbe {
    let describe = |error: io::Error| match PortOwner::find(Path::new("/"), address) {
        Some(owner) => format!("{error}: {owner}"),
        None => error.to_string(),
    };
    let trouble = TcpListener::bind(address).err().map(describe);
    PortProbe { key, address, trouble }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_is_seen() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let trouble = try_port("http.listen", address).trouble.unwrap();
        assert!(trouble.contains(&format!("process {} ", process::id())), "{trouble}");
        assert_eq!(try_port("http.listen", "127.0.0.1:0".parse().unwrap()).trouble, None);
    }

    #[test]
    fn the_scheduling_of_this_thread_stays() {
        let before = scheduling().unwrap();
        assert!(has_slices().is_ok());
        assert_eq!(scheduling().unwrap(), before);
    }

    #[test]
    fn a_folder_is_measured_and_left_as_it_was() {
        let folder = std::env::temp_dir();
        assert!(sync_us(&folder).is_ok());
        assert!(!trial(&folder).exists());
        assert!(free_bytes(&folder).is_some());
        assert!(sync_us(Path::new("/nowhere")).is_err());
        assert_eq!(nearest(&folder.join("not/there")), folder);
    }
}
