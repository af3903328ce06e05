//! FIX over loopback: the whole service on one core, the load on another. Orders at full load and
//! at a steady rate, from an order to its first Execution Report; compared with a bare echo of the
//! same bytes and with an acceptor on QuickFIX.

use std::error::Error;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pitlane::serve::{ServeSettings, serve};
use pitlane_config::refdata;
use pitlane_config::{Machine, Setting, Sources};
use pitlane_engine::time::Timestamp;
use pitlane_protocols::fix::timestamp::TimestampText;
use pitlane_sys::affinity::pin_current_thread;
use serde_json::Value;

use crate::attacker::AttackTargets;
use crate::conditions::Pinning;
use crate::fix::append_message;
use crate::http;
use crate::report::recording::{Recording, SLICE_NS};
use crate::report::waterfall::StageTime;

pub(crate) type BoxError = Box<dyn Error>;

/// Unanswered orders of one session at full load.
const WINDOW: usize = 512;
/// Bytes of one read of the load generator.
pub(crate) const READ_BYTES: usize = 256 * 1_024;
/// Longest wait for late reports.
const REPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest start-up time of a service.
const START_MAX: Duration = Duration::from_secs(20);

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
            let _ = child.kill();
            let _ = child.wait();
        }
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

impl FixServer {
    /// Starts a server on its core, and waits until it listens.
    pub fn start(peer: FixServerKind, pinning: &Pinning, sessions: usize) -> Result<FixServer, BoxError> {
        let address = free_address()?;
        let stop = Arc::new(AtomicBool::new(false));
        let core = pinning.second.unwrap_or(0);
        let mut server = FixServer { child: None, stop: stop.clone(), address, http: None, folder: None };
        match peer {
            FixServerKind::Echo => echo(address, pinning, stop)?,
            FixServerKind::Pitlane => server.serve(core, None)?,
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
        let (address, stomp) = (free_address()?, free_address()?);
        let stop = Arc::new(AtomicBool::new(false));
        let mut server = FixServer { child: None, stop, address, http: None, folder: None };
        server.serve(pinning.second.unwrap_or(0), Some(stomp))?;
        server.wait_until_listening()?;
        let http = server.http.ok_or("the service has no HTTP listener")?;
        Ok((server, AttackTargets { fix: address, stomp, http }))
    }

    /// Starts this program as the service, with STOMP at an address or without.
    fn serve(&mut self, core: usize, stomp: Option<SocketAddr>) -> Result<(), BoxError> {
        let port = self.address.port();
        let folder = std::env::temp_dir().join(format!("pitlane-bench-fix-{port}"));
        let http = free_address()?;
        let mut command = Command::new("taskset");
        command.args(["-c", &core.to_string()]).arg(std::env::current_exe()?).arg("serve-fix");
        command.args([port.to_string(), http.port().to_string(), core.to_string()]).arg(&folder);
        command.args(stomp.map(|stomp| stomp.port().to_string()));
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
        self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Returns what the server itself measured in its last second with any work, stage by stage;
    /// empty if it cannot be queried.
    fn stages(&self) -> Vec<StageTime> {
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
/// other activity. With a port for STOMP, all listeners are open, prices move, and idle threads
/// sleep.
pub fn serve_fix(port: u16, http: u16, core: u32, data: &Path, stomp: Option<u16>) -> Result<(), BoxError> {
    let (moves, idle) = if stomp.is_some() { (true, "adaptive") } else { (false, "spin") };
    let settings = [
        format!("http.listen=127.0.0.1:{http}"),
        "https.listen=".to_string(),
        format!("stomp.listen={}", stomp.map_or(String::new(), |port| format!("127.0.0.1:{port}"))),
        "stomp.tls_listen=".to_string(),
        format!("fix.listen=127.0.0.1:{port}"),
        "fix.store_bytes=33554432".to_string(),
        format!("service.data_dir={}", data.display()),
        "journal.level=os".to_string(),
        format!("feed.on={moves}"),
        "demo.on=false".to_string(),
        "topology.layout=shared".to_string(),
        format!("topology.idle={idle}"),
        format!("topology.shard_cores=[{core}]"),
        "risk.strategies.max_orders_per_s=0".to_string(),
        "risk.strategies.max_open_orders=0".to_string(),
        "log.level=error".to_string(),
    ];
    let options = settings.iter().map(|setting| Setting::parse(setting)).collect::<Result<_, _>>()?;
    let sources = Sources { files: vec!["bench".to_string()], options, ..Sources::default() };
    let loaded =
        pitlane_config::load(&sources, &Machine::of(Path::new("/"))).map_err(|faults| faults.to_string())?;
    let reference = Arc::new(refdata::shipped().map_err(|faults| faults.to_string())?);
    let settings = ServeSettings { config: loaded.config, params: loaded.params, quiet: true, time: None };
    serve(&settings, &reference, None).map_err(|error| error.to_string().into())
}

/// Starts a bare echo that spins: the lower bound of the latency.
fn echo(address: SocketAddr, pinning: &Pinning, stop: Arc<AtomicBool>) -> io::Result<()> {
    let listener = TcpListener::bind(address)?;
    let core = pinning.second;
    std::thread::spawn(move || {
        core.into_iter().for_each(|core| _ = pin_current_thread(core));
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.set_nodelay(true);
            let _ = stream.set_nonblocking(true);
            let mut buffer = vec![0; READ_BYTES];
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
    });
    Ok(())
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

fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// One session of the load generator.
pub(crate) struct LoadSession {
    stream: TcpStream,
    number: u64,
    /// Sequence numbers of the orders sent; they are part of the order ids.
    numbers: Vec<u64>,
    name: String,
    input: Vec<u8>,
    /// Rest of a write that was not accepted yet.
    output: Vec<u8>,
    sent: usize,
    answered: usize,
}

impl LoadSession {
    pub(crate) fn open(address: SocketAddr, nth: usize, logs_on: bool) -> Result<LoadSession, BoxError> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let mut session = LoadSession {
            stream,
            number: 1,
            numbers: Vec::new(),
            name: format!("BENCH{}", nth + 1),
            input: Vec::with_capacity(2 * READ_BYTES),
            output: Vec::new(),
            sent: 0,
            answered: 0,
        };
        if logs_on {
            let mut logon = Vec::new();
            session.frame("A", "98=0\x01108=0\x01141=Y\x01", &mut logon);
            session.stream.write_all(&logon)?;
            let mut answer = [0; 4_096];
            session.stream.set_read_timeout(Some(START_MAX))?;
            if session.stream.read(&mut answer)? == 0 {
                return Err("the Logon was refused".into());
            }
        }
        session.stream.set_nonblocking(true)?;
        Ok(session)
    }

    fn frame(&mut self, msg_type: &str, body: &str, out: &mut Vec<u8>) {
        let time = fix_timestamp();
        let body = format!(
            "35={msg_type}\x0134={}\x0149={}\x0156=PITLANE\x0152={time}\x01{body}",
            self.number, self.name
        );
        self.number += 1;
        append_message(&body, out);
    }

    /// Appends an order that rests: its price is far from the market.
    pub(crate) fn order(&mut self, out: &mut Vec<u8>) {
        self.numbers.push(self.number);
        let body = format!(
            "11={}-{}\x0155=AAPL\x0154=1\x0138=100\x0140=2\x0144=100.00\x0159=1\x0160=20261115-10:00:00.000\x01",
            self.name, self.number
        );
        self.frame("D", &body, out);
    }

    /// Appends a cancel of the nth order that the session sent.
    fn cancel(&mut self, nth: usize, out: &mut Vec<u8>) {
        let body = format!(
            "11={0}-c{nth}\x0141={0}-{1}\x0155=AAPL\x0154=1\x0138=100\x0160=20261115-10:00:00.000\x01",
            self.name, self.numbers[nth]
        );
        self.frame("F", &body, out);
    }

    /// Appends a cancel of the last order.
    pub(crate) fn cancel_last(&mut self, out: &mut Vec<u8>) {
        self.cancel(self.numbers.len() - 1, out);
    }

    /// Sends bytes, and waits until the socket has accepted all of them.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), BoxError> {
        Ok(write_all(&mut self.stream, bytes)?)
    }

    /// Reads what has arrived, and returns the number of first reports in it.
    pub(crate) fn receive_reports(&mut self, pattern: &[u8], buffer: &mut [u8]) -> Result<usize, BoxError> {
        match self.stream.read(buffer) {
            Ok(0) => return Err("the server closed the connection".into()),
            Ok(count) => self.input.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
            Err(error) => return Err(error.into()),
        }
        let (mut count, mut at) = (0, 0);
        for found in memchr::memmem::find_iter(&self.input, pattern) {
            count += 1;
            at = found + pattern.len();
        }
        // A mark may be split between two reads.
        let keep = self.input.len().saturating_sub(at).min(pattern.len() - 1);
        self.input.drain(..self.input.len() - keep);
        self.answered += count;
        Ok(count)
    }

    fn flush(&mut self) -> Result<(), BoxError> {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(count) => drop(self.output.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Returns the orders per second of all sessions together, from the first order to the last first
/// report. All orders are built before.
pub fn full_load(
    peer: FixServerKind,
    pinning: &Pinning,
    sessions: usize,
    orders: usize,
) -> Result<f64, BoxError> {
    let server = FixServer::start(peer, pinning, sessions)?;
    let mut all = Vec::new();
    for nth in 0..sessions {
        let mut session = LoadSession::open(server.address, nth, peer != FixServerKind::Echo)?;
        let frames: Vec<Vec<u8>> = (0..orders)
            .map(|_| {
                let mut out = Vec::new();
                session.order(&mut out);
                out
            })
            .collect();
        all.push((session, frames));
    }
    let pattern = pattern(peer);
    let mut buffer = vec![0; READ_BYTES];
    let begin = Instant::now();
    let mut open = sessions;
    while open > 0 {
        open = 0;
        for (session, frames) in &mut all {
            session.receive_reports(pattern, &mut buffer)?;
            let send_end = (WINDOW + session.answered).min(frames.len());
            if session.output.len() < READ_BYTES && session.sent < send_end {
                for frame in &frames[session.sent..send_end] {
                    session.output.extend_from_slice(frame);
                }
                session.sent = send_end;
            }
            session.flush()?;
            open += usize::from(session.answered < frames.len());
        }
        if begin.elapsed() > Duration::from_secs(120) {
            let answered: usize = all.iter().map(|(session, _)| session.answered).sum();
            return Err(format!("only {answered} orders were answered").into());
        }
    }
    Ok((sessions * orders) as f64 / begin.elapsed().as_secs_f64())
}

/// A load at planned times.
#[derive(Clone, Copy, Debug)]
pub struct SteadyLoad {
    /// Orders per second.
    pub rate: u64,
    pub orders: usize,
    /// Number of orders that stay open; older ones are cancelled, each after a new one was sent.
    /// `None`: all stay open.
    pub open_max: Option<usize>,
}

/// Measures from the planned time of each order to its first report. The first tenth is warm-up and
/// is not counted; `sample` is called about once per second with the server's process.
pub fn open_loop(
    peer: FixServerKind,
    pinning: &Pinning,
    load: SteadyLoad,
    mut sample: impl FnMut(u32, f64),
) -> Result<Recording, BoxError> {
    let SteadyLoad { rate, orders, open_max } = load;
    let server = FixServer::start(peer, pinning, 1)?;
    let mut session = LoadSession::open(server.address, 0, peer != FixServerKind::Echo)?;
    let pattern = pattern(peer);
    let mut buffer = vec![0; READ_BYTES];
    let gap_ns = 1_000_000_000 / rate.max(1);
    let name = format!("{}-{rate}", peer.name());
    let mut recording = Recording::new(&name, rate as f64, SLICE_NS);
    let mut frame = Vec::new();
    session.order(&mut frame);
    let begin = Instant::now() + Duration::from_millis(50);
    let planned = |nth: usize| begin + Duration::from_nanos(gap_ns * nth as u64);
    let deadline = planned(orders) + REPORT_TIMEOUT;
    let (warm_up, mut seconds) = (orders / 10, 0.0);
    while session.answered < orders {
        if session.sent < orders && Instant::now() >= planned(session.sent) {
            session.output.extend_from_slice(&frame);
            session.sent += 1;
            session.flush()?;
            frame.clear();
            if let Some(oldest) = open_max.and_then(|open| session.sent.checked_sub(open + 1)) {
                session.cancel(oldest, &mut frame);
            }
            session.order(&mut frame);
        }
        let before = session.answered;
        let reports = session.receive_reports(pattern, &mut buffer)?;
        for nth in before..before + reports {
            // Reports arrive in the sequence of their orders.
            let took = planned(nth).elapsed().as_nanos() as u64;
            if nth >= warm_up {
                recording.count(gap_ns * (nth - warm_up) as u64, took);
            }
        }
        if reports > 0 && begin.elapsed().as_secs_f64() >= seconds {
            sample(server.process(), seconds);
            seconds += 1.0;
        }
        if Instant::now() > deadline {
            break;
        }
    }
    recording.per_s_reached = session.answered as f64 / begin.elapsed().as_secs_f64();
    recording.stages = server.stages();
    Ok(recording)
}

/// Measures one order at a time, each sent when the previous one was answered: what a client that
/// waits sees. It shows less than the truth whenever the server pauses, since nothing is sent
/// meanwhile. The first tenth is not counted.
pub fn closed_loop(peer: FixServerKind, pinning: &Pinning, orders: usize) -> Result<Recording, BoxError> {
    let server = FixServer::start(peer, pinning, 1)?;
    let mut session = LoadSession::open(server.address, 0, peer != FixServerKind::Echo)?;
    let pattern = pattern(peer);
    let mut buffer = vec![0; READ_BYTES];
    let mut recording = Recording::new(&format!("{}-closed", peer.name()), 0.0, SLICE_NS);
    let (begin, warm_up) = (Instant::now(), orders / 10);
    for nth in 0..orders {
        let mut frame = Vec::new();
        session.order(&mut frame);
        session.output.extend_from_slice(&frame);
        let sent = Instant::now();
        session.flush()?;
        while session.receive_reports(pattern, &mut buffer)? == 0 {
            if sent.elapsed() > REPORT_TIMEOUT {
                return Err(format!("order {nth} was not answered").into());
            }
            session.flush()?;
        }
        if nth >= warm_up {
            recording.count(begin.elapsed().as_nanos() as u64, sent.elapsed().as_nanos() as u64);
        }
    }
    recording.per_s_reached = orders as f64 / begin.elapsed().as_secs_f64();
    recording.stages = server.stages();
    Ok(recording)
}

/// Bytes that only our first report of an order contains.
pub(crate) const FIRST_REPORT: &[u8] = b"\x01150=A\x01";

/// Returns bytes that only the first answer to an order contains.
fn pattern(peer: FixServerKind) -> &'static [u8] {
    match peer {
        FixServerKind::Pitlane | FixServerKind::QuickFix { reports: 2.., .. } => FIRST_REPORT,
        FixServerKind::QuickFix { .. } => b"\x01150=0\x01",
        FixServerKind::Echo => b"\x0135=D\x01",
    }
}

/// Returns the current time in the format of FIX.
pub(crate) fn fix_timestamp() -> String {
    String::from_utf8_lossy(TimestampText::default().text(now())).into_owned()
}

fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp(since.as_nanos() as u64)
}

fn write_all(stream: &mut TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
