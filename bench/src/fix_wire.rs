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

use pitlane::config::{self, Machine, Setting, Sources};
use pitlane::refdata;
use pitlane::serve::{ServeSettings, serve};
use pitlane_engine::time::Timestamp;
use pitlane_protocols::fix::timestamp::TimestampText;
use pitlane_sys::affinity::pin_current_thread;
use serde_json::Value;

use crate::attacker::Listeners;
use crate::conditions::Pinning;
use crate::fix::seal;
use crate::http;
use crate::report::recording::{Recording, SLICE_NS};
use crate::report::waterfall::Step;

type Failure = Box<dyn Error>;

/// Unanswered orders of one session at full load.
const WINDOW: usize = 512;
/// Bytes of one read of the load generator.
pub(crate) const READ_BYTES: usize = 256 * 1_024;
/// Longest wait for late reports.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest start-up time of a service.
const START_MAX: Duration = Duration::from_secs(20);

/// The server under load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    Pitlane,
    /// Sends this many reports for each order: two as we do, or one. It keeps the messages that it
    /// must be able to resend in memory or, as we do, in files.
    QuickFix {
        reports: u8,
        files: bool,
    },
    Echo,
}

impl Peer {
    pub fn word(self) -> &'static str {
        match self {
            Peer::Pitlane => "fix",
            Peer::QuickFix { .. } => "quickfix",
            Peer::Echo => "echo",
        }
    }
}

/// A running server. Dropping it stops the server.
pub struct Server {
    child: Option<Child>,
    stop: Arc<AtomicBool>,
    pub address: SocketAddr,
    /// HTTP address of our service, where its stages are read.
    http: Option<SocketAddr>,
    folder: Option<PathBuf>,
}

impl Drop for Server {
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

impl Server {
    /// Starts a server on its core, and waits until it listens.
    pub fn start(peer: Peer, pinning: &Pinning, sessions: usize) -> Result<Server, Failure> {
        let address = free_address()?;
        let stop = Arc::new(AtomicBool::new(false));
        let core = pinning.second.unwrap_or(0);
        let mut server = Server { child: None, stop: stop.clone(), address, http: None, folder: None };
        match peer {
            Peer::Echo => echo(address, pinning, stop)?,
            Peer::Pitlane => server.serve(core, None)?,
            Peer::QuickFix { reports, files } => {
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
        server.until_it_listens()?;
        Ok(server)
    }

    /// Starts our service with STOMP and HTTP beside FIX, moving prices, and threads that sleep
    /// when they are idle: spinning threads behind so many listeners on one core would wait for
    /// each other.
    pub(crate) fn with_every_door(pinning: &Pinning) -> Result<(Server, Listeners), Failure> {
        let (address, stomp) = (free_address()?, free_address()?);
        let stop = Arc::new(AtomicBool::new(false));
        let mut server = Server { child: None, stop, address, http: None, folder: None };
        server.serve(pinning.second.unwrap_or(0), Some(stomp))?;
        server.until_it_listens()?;
        let http = server.http.ok_or("it has no door for HTTP")?;
        Ok((server, Listeners { fix: address, stomp, http }))
    }

    /// Starts this program as the service, with STOMP at an address or without.
    fn serve(&mut self, core: usize, stomp: Option<SocketAddr>) -> Result<(), Failure> {
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

    fn until_it_listens(&self) -> Result<(), Failure> {
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
    pub(crate) fn is_there(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Returns what the server itself measured in its last second with any work, stage by stage;
    /// empty if it cannot be queried.
    fn stages(&self) -> Vec<Step> {
        let ask = |http| http::json(&mut TcpStream::connect(http).ok()?, "/rest/ext/latency");
        let told = self.http.and_then(ask).unwrap_or_default();
        let rows = told.as_array().map_or(&[][..], Vec::as_slice).iter();
        let counted = rows.filter(|row| row["count"].as_u64().is_some_and(|count| count > 0));
        let step = |row: &Value| {
            let (thread, stage) = (row["thread"].as_str()?, row["stage"].as_str()?);
            let word = format!("{thread} {stage}");
            Some(Step { word, p50_ns: row["p50Ns"].as_f64()?, p99_ns: row["p99Ns"].as_f64()? })
        };
        counted.filter_map(step).collect()
    }
}

/// Runs the service as it is measured: everything on one core, the journal in the page cache, no
/// other activity. With a port for STOMP, all listeners are open, prices move, and idle threads
/// sleep.
pub fn serve_fix(port: u16, http: u16, core: u32, data: &Path, stomp: Option<u16>) -> Result<(), Failure> {
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
    let loaded = config::load(&sources, &Machine::of(Path::new("/"))).map_err(|faults| faults.to_string())?;
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
fn quickfix_acceptor() -> Result<PathBuf, Failure> {
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
pub(crate) struct Session {
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

impl Session {
    pub(crate) fn open(address: SocketAddr, nth: usize, speaks: bool) -> Result<Session, Failure> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let mut session = Session {
            stream,
            number: 1,
            numbers: Vec::new(),
            name: format!("BENCH{}", nth + 1),
            input: Vec::with_capacity(2 * READ_BYTES),
            output: Vec::new(),
            sent: 0,
            answered: 0,
        };
        if speaks {
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
        let time = stamp();
        let body = format!(
            "35={msg_type}\x0134={}\x0149={}\x0156=PITLANE\x0152={time}\x01{body}",
            self.number, self.name
        );
        self.number += 1;
        seal(&body, out);
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
    pub(crate) fn say(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        Ok(write_all(&mut self.stream, bytes)?)
    }

    /// Reads what has arrived, and returns the number of first reports in it.
    pub(crate) fn hear(&mut self, mark: &[u8], buffer: &mut [u8]) -> Result<usize, Failure> {
        match self.stream.read(buffer) {
            Ok(0) => return Err("the server has hung up".into()),
            Ok(count) => self.input.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
            Err(error) => return Err(error.into()),
        }
        let (mut count, mut at) = (0, 0);
        for found in memchr::memmem::find_iter(&self.input, mark) {
            count += 1;
            at = found + mark.len();
        }
        // A mark may be split between two reads.
        let keep = self.input.len().saturating_sub(at).min(mark.len() - 1);
        self.input.drain(..self.input.len() - keep);
        self.answered += count;
        Ok(count)
    }

    fn flush(&mut self) -> Result<(), Failure> {
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
pub fn flat_out(peer: Peer, pinning: &Pinning, sessions: usize, orders: usize) -> Result<f64, Failure> {
    let server = Server::start(peer, pinning, sessions)?;
    let mut all = Vec::new();
    for nth in 0..sessions {
        let mut session = Session::open(server.address, nth, peer != Peer::Echo)?;
        let frames: Vec<Vec<u8>> = (0..orders)
            .map(|_| {
                let mut out = Vec::new();
                session.order(&mut out);
                out
            })
            .collect();
        all.push((session, frames));
    }
    let mark = mark(peer);
    let mut buffer = vec![0; READ_BYTES];
    let begin = Instant::now();
    let mut open = sessions;
    while open > 0 {
        open = 0;
        for (session, frames) in &mut all {
            session.hear(mark, &mut buffer)?;
            let room = (WINDOW + session.answered).min(frames.len());
            if session.output.len() < READ_BYTES && session.sent < room {
                for frame in &frames[session.sent..room] {
                    session.output.extend_from_slice(frame);
                }
                session.sent = room;
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
pub struct Steady {
    /// Orders per second.
    pub rate: u64,
    pub orders: usize,
    /// Number of orders that stay open; older ones are cancelled, each after a new one was sent.
    /// `None`: all stay open.
    pub open_max: Option<usize>,
}

/// Measures from the planned time of each order to its first report. The first tenth is warm-up and
/// is not counted; `look` is called about once per second with the server's process.
pub fn open_loop(
    peer: Peer,
    pinning: &Pinning,
    load: Steady,
    mut look: impl FnMut(u32, f64),
) -> Result<Recording, Failure> {
    let Steady { rate, orders, open_max } = load;
    let server = Server::start(peer, pinning, 1)?;
    let mut session = Session::open(server.address, 0, peer != Peer::Echo)?;
    let mark = mark(peer);
    let mut buffer = vec![0; READ_BYTES];
    let gap_ns = 1_000_000_000 / rate.max(1);
    let name = format!("{}-{rate}", peer.word());
    let mut recording = Recording::new(&name, rate as f64, SLICE_NS);
    let mut frame = Vec::new();
    session.order(&mut frame);
    let begin = Instant::now() + Duration::from_millis(50);
    let planned = |nth: usize| begin + Duration::from_nanos(gap_ns * nth as u64);
    let late = planned(orders) + PATIENCE;
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
        let heard = session.hear(mark, &mut buffer)?;
        for nth in before..before + heard {
            // Reports arrive in the sequence of their orders.
            let took = planned(nth).elapsed().as_nanos() as u64;
            if nth >= warm_up {
                recording.count(gap_ns * (nth - warm_up) as u64, took);
            }
        }
        if heard > 0 && begin.elapsed().as_secs_f64() >= seconds {
            look(server.process(), seconds);
            seconds += 1.0;
        }
        if Instant::now() > late {
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
pub fn closed_loop(peer: Peer, pinning: &Pinning, orders: usize) -> Result<Recording, Failure> {
    let server = Server::start(peer, pinning, 1)?;
    let mut session = Session::open(server.address, 0, peer != Peer::Echo)?;
    let mark = mark(peer);
    let mut buffer = vec![0; READ_BYTES];
    let mut recording = Recording::new(&format!("{}-closed", peer.word()), 0.0, SLICE_NS);
    let (begin, warm_up) = (Instant::now(), orders / 10);
    for nth in 0..orders {
        let mut frame = Vec::new();
        session.order(&mut frame);
        session.output.extend_from_slice(&frame);
        let sent = Instant::now();
        session.flush()?;
        while session.hear(mark, &mut buffer)? == 0 {
            if sent.elapsed() > PATIENCE {
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
fn mark(peer: Peer) -> &'static [u8] {
    match peer {
        Peer::Pitlane | Peer::QuickFix { reports: 2.., .. } => FIRST_REPORT,
        Peer::QuickFix { .. } => b"\x01150=0\x01",
        Peer::Echo => b"\x0135=D\x01",
    }
}

/// Returns the current time in the format of FIX.
pub(crate) fn stamp() -> String {
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
