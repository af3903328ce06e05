//! The servers under load: our service, QuickFIX and a bare echo, each on its core.

use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pitlane::serve::{ServeSettings, serve};
use pitlane_config::refdata;
use pitlane_config::{Machine, Setting, Sources};
use pitlane_strategy::Registry;
use pitlane_sys::affinity::pin_current_thread;
use serde_json::Value;

use super::session::write_all;
use super::{BoxError, READ_BYTES, START_MAX};
use crate::attacker::AttackTargets;
use crate::conditions::Pinning;
use crate::free_addresses::free_addresses;
use crate::report::waterfall::StageTime;
use crate::{http, program};

/// The server under load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FixServerKind {
    Pitlane,
    /// Sends this many reports for each order: two as we do, or one. It keeps the messages that it
    /// must be able to resend in memory or, as we do, in files.
    QuickFix {
        reports: u8,
        files: bool,
    },
    Echo,
}

impl FixServerKind {
    pub fn name(self) -> &'static str {
        match self {
            FixServerKind::Pitlane => "fix",
            FixServerKind::QuickFix { .. } => "quickfix",
            FixServerKind::Echo => "echo",
        }
    }
}

/// Whether the simulated market moves the prices of a service with STOMP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MovingPrices {
    Yes,
    No,
}

/// The STOMP listener of a service.
#[derive(Clone, Copy, Debug)]
pub struct ServedStomp {
    pub port: u16,
    pub prices: MovingPrices,
}

/// A running server. Dropping it stops the server.
pub struct FixServer {
    child: Option<Child>,
    stop: Arc<AtomicBool>,
    pub address: SocketAddr,
    /// HTTP address of our service, where its stages are read.
    http: Option<SocketAddr>,
    folder: Option<PathBuf>,
}

impl Drop for FixServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(child) = &mut self.child {
            program::stop(child);
        }
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

impl FixServer {
    /// Starts a server on its core, and waits until it listens.
    pub fn start(peer: FixServerKind, pinning: &Pinning, sessions: usize) -> Result<FixServer, BoxError> {
        let [address, http] = free_addresses()?;
        let stop = Arc::new(AtomicBool::new(false));
        let core = pinning.second.unwrap_or(0);
        let mut server = FixServer { child: None, stop: stop.clone(), address, http: None, folder: None };
        match peer {
            FixServerKind::Echo => start_echo(address, pinning, stop)?,
            FixServerKind::Pitlane => server.serve(core, http, None, &[])?,
            FixServerKind::QuickFix { reports, files } => {
                let mut command = Command::new("taskset");
                command.args(["-c", &core.to_string()]).arg(quickfix_acceptor()?);
                let args = [address.port().to_string(), sessions.to_string(), reports.to_string()];
                command.args(args).stdout(Stdio::piped());
                if files {
                    let folder =
                        std::env::temp_dir().join(format!("pitlane-bench-quickfix-store-{}", address.port()));
                    command.arg(&folder);
                    server.folder = Some(folder);
                }
                let mut child = command.spawn()?;
                let mut line = String::new();
                BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
                server.child = Some(child);
            }
        }
        server.wait_until_listening()?;
        Ok(server)
    }

    /// Starts our service with STOMP and HTTP beside FIX, moving prices, and threads that sleep
    /// when they are idle: spinning threads behind so many listeners on one core would wait for
    /// each other.
    pub(crate) fn with_all_listeners(pinning: &Pinning) -> Result<(FixServer, AttackTargets), BoxError> {
        FixServer::with_stomp(pinning, MovingPrices::Yes, &[])
    }

    /// Starts our service with STOMP and HTTP beside FIX, with settings that replace those of
    /// [`serve_fix`].
    pub(crate) fn with_stomp(
        pinning: &Pinning,
        prices: MovingPrices,
        settings: &[String],
    ) -> Result<(FixServer, AttackTargets), BoxError> {
        let [address, stomp, http] = free_addresses()?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut server = FixServer { child: None, stop, address, http: None, folder: None };
        server.serve(pinning.second.unwrap_or(0), http, Some((stomp, prices)), settings)?;
        server.wait_until_listening()?;
        Ok((server, AttackTargets { fix: address, stomp, http }))
    }

    /// Starts our service with settings that replace those of [`serve_fix`].
    pub fn with_settings(pinning: &Pinning, settings: &[String]) -> Result<FixServer, BoxError> {
        let [address, http] = free_addresses()?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut server = FixServer { child: None, stop, address, http: None, folder: None };
        server.serve(pinning.second.unwrap_or(0), http, None, settings)?;
        server.wait_until_listening()?;
        Ok(server)
    }

    /// Starts this program as the service, with STOMP at an address or without.
    fn serve(
        &mut self,
        core: usize,
        http: SocketAddr,
        stomp: Option<(SocketAddr, MovingPrices)>,
        settings: &[String],
    ) -> Result<(), BoxError> {
        let port = self.address.port();
        let folder = std::env::temp_dir().join(format!("pitlane-bench-fix-{port}"));
        let mut command = Command::new("taskset");
        command.args(["-c", &core.to_string()]).arg(std::env::current_exe()?).arg("serve-fix");
        command.args([port.to_string(), http.port().to_string(), core.to_string()]).arg(&folder);
        if let Some((stomp, prices)) = stomp {
            command.arg(stomp.port().to_string());
            command.args((prices == MovingPrices::No).then_some("--still"));
        }
        settings.iter().for_each(|setting| _ = command.args(["--set", setting]));
        let child = command.stdout(Stdio::null()).spawn()?;
        (self.child, self.folder, self.http) = (Some(child), Some(folder), Some(http));
        Ok(())
    }

    fn wait_until_listening(&self) -> Result<(), BoxError> {
        let since = Instant::now();
        while TcpStream::connect(self.address).is_err() {
            if since.elapsed() > START_MAX {
                return Err("the server does not listen".into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.as_ref().map_or_else(std::process::id, Child::id)
    }

    /// Returns whether its process is alive.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.as_mut().is_some_and(program::is_running)
    }

    /// Returns what the server itself measured in its last second with any work, stage by stage;
    /// empty if it cannot be queried.
    pub(crate) fn stages(&self) -> Vec<StageTime> {
        let query = |http| http::json(&mut TcpStream::connect(http).ok()?, "/rest/ext/latency");
        let response = self.http.and_then(query).unwrap_or_default();
        let rows = response.as_array().map_or(&[][..], Vec::as_slice).iter();
        let counted = rows.filter(|row| row["count"].as_u64().is_some_and(|count| count > 0));
        let step = |row: &Value| {
            let (thread, stage) = (row["thread"].as_str()?, row["stage"].as_str()?);
            let label = format!("{thread} {stage}");
            Some(StageTime { label, p50_ns: row["p50Ns"].as_f64()?, p99_ns: row["p99Ns"].as_f64()? })
        };
        counted.filter_map(step).collect()
    }
}

/// Runs the service as it is measured: everything on one core, the journal in the page cache, no
/// other activity. With moving prices, idle threads sleep; otherwise they spin. The last settings
/// replace others.
pub fn serve_fix(
    port: u16,
    http: u16,
    core: u32,
    data: &Path,
    stomp: Option<ServedStomp>,
    last: &[String],
) -> Result<(), BoxError> {
    let moves = stomp.is_some_and(|stomp| stomp.prices == MovingPrices::Yes);
    let idle = if moves { "adaptive" } else { "spin" };
    let settings = [
        format!("http.listen=127.0.0.1:{http}"),
        "https.listen=".to_string(),
        format!("stomp.listen={}", stomp.map_or(String::new(), |stomp| format!("127.0.0.1:{}", stomp.port))),
        "stomp.tls_listen=".to_string(),
        format!("fix.listen=127.0.0.1:{port}"),
        "fix.store_bytes=33554432".to_string(),
        format!("service.data_dir={}", data.display()),
        "journal.level=os".to_string(),
        format!("feed.on={moves}"),
        "demo.on=false".to_string(),
        "venue.self_trade=allow".to_string(),
        "topology.layout=shared".to_string(),
        format!("topology.idle={idle}"),
        format!("topology.shard_cores=[{core}]"),
        "risk.strategies.max_orders_per_s=0".to_string(),
        "risk.strategies.max_open_orders=0".to_string(),
        "log.level=error".to_string(),
    ];
    let settings = settings.iter().chain(last);
    let options = settings.map(|setting| Setting::parse(setting)).collect::<Result<_, _>>()?;
    let sources = Sources { files: vec!["bench".to_string()], options, ..Sources::default() };
    let loaded =
        pitlane_config::load(&sources, &Machine::of(Path::new("/"))).map_err(|faults| faults.to_string())?;
    let reference = Arc::new(refdata::shipped().map_err(|faults| faults.to_string())?);
    let settings = ServeSettings {
        config: loaded.config,
        params: loaded.params,
        registry: Registry::with_examples(),
        quiet: true,
        time: None,
    };
    serve(&settings, &reference, None).map_err(|error| error.to_string().into())
}

/// Starts a bare echo on its core.
fn start_echo(address: SocketAddr, pinning: &Pinning, stop: Arc<AtomicBool>) -> io::Result<()> {
    let listener = TcpListener::bind(address)?;
    let core = pinning.second;
    std::thread::spawn(move || {
        core.into_iter().for_each(|core| _ = pin_current_thread(core));
        echo(&listener, &stop);
    });
    Ok(())
}

/// Echoes one connection after the other until `stop` is set. It spins: the lower bound of the
/// latency.
pub fn echo(listener: &TcpListener, stop: &AtomicBool) {
    let mut buffer = vec![0; READ_BYTES];
    for stream in listener.incoming() {
        let Ok(mut stream) = stream else { return };
        let _ = stream.set_nodelay(true);
        let _ = stream.set_nonblocking(true);
        while !stop.load(Ordering::Relaxed) {
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => {
                    if write_all(&mut stream, &buffer[..count]).is_err() {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
                Err(_) => break,
            }
        }
        if stop.load(Ordering::Relaxed) {
            return;
        }
    }
}

/// Compiles the acceptor once, in some seconds, against Debian's library.
fn quickfix_acceptor() -> Result<PathBuf, BoxError> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/quickfix/acceptor.cpp");
    let binary = std::env::temp_dir().join(format!("pitlane-bench-quickfix-{}", std::process::id()));
    if !binary.exists() {
        let args = ["-std=c++14", "-O2", "-Wno-deprecated", "-o"];
        let compiled = Command::new("g++")
            .args(args)
            .arg(&binary)
            .arg(&source)
            .args(["-lquickfix", "-lpthread"])
            .output()?;
        if !compiled.status.success() {
            return Err("QuickFIX cannot be compiled: apt install g++ libquickfix-dev".into());
        }
    }
    Ok(binary)
}
