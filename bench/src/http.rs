//! The http thread beside bare hyper that serves the same bytes. What ours takes on top is guards, routing, headers, deadlines,
//! and making the answer.
//!
//! Closed loop, by choice: the question is the server thread's time on its core for a request (the kernel's account of it),
//! which is the same whatever else the machine does.

use std::convert::Infallible;
use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll};
use std::thread;

use bytes::Bytes;
use hyper::body::{Body, Frame};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use pitlane::auth::{Auth, AuthSettings};
use pitlane::config::Durability;
use pitlane::http::{Http, HttpSettings, Numbers, Parts, Remote, Standing};
use pitlane::metrics::{Registry, StageSummary};
use pitlane::wake::Bell;
use pitlane_engine::mesh::{Depths, PortClass, mesh};
use pitlane_engine::refdata::{RefData, Rows};
use pitlane_engine::time::Timestamp;
use tokio::task::LocalSet;

use crate::conditions::Pinning;
use crate::measure::median;

/// Both answer these.
const PATHS: [&str; 2] = ["/health/live", "/rest/ext/latency"];
/// Rows of the list: two kilobytes.
const ROWS: usize = 16;
/// The end of a chunked answer.
const END: &[u8] = b"\r\n0\r\n\r\n";

/// One answer, ours and the bare server's.
pub struct Beside {
    path: &'static str,
    bytes: usize,
    ours_ns: f64,
    bare_ns: f64,
    /// Our time to theirs: the median over rounds.
    pub ratio: f64,
}

impl fmt::Display for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Beside { path, bytes, ours_ns, bare_ns, ratio } = self;
        write!(
            f,
            "{path:<20} {bytes:>5} bytes  ours {ours_ns:>6.0} ns  hyper {bare_ns:>6.0} ns  {ratio:.3} × its time"
        )
    }
}

/// Rounds in turn, for each answer.
pub fn contest(
    pinning: &Pinning,
    requests: usize,
    connections: usize,
    rounds: usize,
) -> io::Result<Vec<Beside>> {
    let (ours, remote) = start_ours(pinning)?;
    let mut standings = Vec::new();
    for path in PATHS {
        let body = body_of(&exchange(&mut TcpStream::connect(ours.address)?, path)?);
        let bare = start_bare(pinning, body.clone())?;
        let (mut ours_at, mut bare_at) =
            (Crowd::new(&ours, path, connections)?, Crowd::new(&bare, path, connections)?);
        let (mut ours_ns, mut bare_ns, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            let (bare, ours) = (bare_at.ns_per_request(requests)?, ours_at.ns_per_request(requests)?);
            ratios.push(ours / bare);
            bare_ns.push(bare);
            ours_ns.push(ours);
        }
        standings.push(Beside {
            path,
            bytes: body.len(),
            ours_ns: median(&ours_ns),
            bare_ns: median(&bare_ns),
            ratio: median(&ratios),
        });
    }
    remote.end();
    Ok(standings)
}

/// Where a server listens, and where the kernel tells how long its thread has been on a core.
struct Server {
    address: SocketAddr,
    account: PathBuf,
}

impl Server {
    /// Runs a server on the second core, in a thread that a profiler can tell by its name.
    fn start(
        pinning: &Pinning,
        name: &str,
        address: SocketAddr,
        run: impl FnOnce() + Send + 'static,
    ) -> io::Result<Server> {
        let (tell, told) = mpsc::channel();
        let core = pinning.second;
        thread::Builder::new().name(name.to_string()).spawn(move || {
            core.map(core_affinity::set_for_current);
            tell.send(fs::read_link("/proc/thread-self")).expect("somebody waits for it");
            run();
        })?;
        let thread = told.recv().map_err(io::Error::other)??;
        Ok(Server { address, account: Path::new("/proc").join(thread).join("schedstat") })
    }

    fn on_core_ns(&self) -> io::Result<f64> {
        let account = fs::read_to_string(&self.account)?;
        let ns = account.split(' ').next().and_then(|ns| ns.parse().ok());
        ns.ok_or_else(|| io::Error::other("the kernel keeps no account of threads"))
    }
}

/// Connections with one request in flight each.
struct Crowd<'a> {
    server: &'a Server,
    sockets: Vec<TcpStream>,
    request: String,
    buffer: Vec<u8>,
}

impl<'a> Crowd<'a> {
    fn new(server: &'a Server, path: &str, connections: usize) -> io::Result<Crowd<'a>> {
        let connect = |_| {
            let socket = TcpStream::connect(server.address)?;
            socket.set_nodelay(true)?;
            Ok(socket)
        };
        let sockets = (0..connections).map(connect).collect::<io::Result<_>>()?;
        Ok(Crowd { server, sockets, request: request(path), buffer: vec![0; 16 * 1_024] })
    }

    fn ns_per_request(&mut self, requests: usize) -> io::Result<f64> {
        let turns = requests.div_ceil(self.sockets.len()).max(1);
        self.turns(turns.div_ceil(10))?;
        let begin = self.server.on_core_ns()?;
        self.turns(turns)?;
        Ok((self.server.on_core_ns()? - begin) / (turns * self.sockets.len()) as f64)
    }

    /// Every connection asks before any is read, so that the server always has something to do.
    fn turns(&mut self, turns: usize) -> io::Result<()> {
        let Crowd { sockets, request, buffer, .. } = self;
        for socket in sockets.iter_mut() {
            socket.write_all(request.as_bytes())?;
        }
        for turn in 0..turns {
            for socket in sockets.iter_mut() {
                read_answer(socket, buffer)?;
                if turn + 1 < turns {
                    socket.write_all(request.as_bytes())?;
                }
            }
        }
        Ok(())
    }
}

fn request(path: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: localhost:9090\r\nUser-Agent: pitlane-bench\r\nAccept: application/json\r\n\r\n"
    )
}

fn read_answer(socket: &mut TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while !buffer[..filled].ends_with(END) {
        match socket.read(&mut buffer[filled..])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            more => filled += more,
        }
    }
    Ok(filled)
}

fn exchange(socket: &mut TcpStream, path: &str) -> io::Result<Vec<u8>> {
    socket.write_all(request(path).as_bytes())?;
    let mut buffer = vec![0; 16 * 1_024];
    let filled = read_answer(socket, &mut buffer)?;
    buffer.truncate(filled);
    Ok(buffer)
}

/// What stands between the first chunk's size and the end; our answers have one chunk.
fn body_of(answer: &[u8]) -> Bytes {
    let after = |text: &[u8], mark: &[u8]| {
        text.windows(mark.len()).position(|window| window == mark).map(|at| at + mark.len())
    };
    let head = after(answer, b"\r\n\r\n").expect("a head has an end");
    let size = after(&answer[head..], b"\r\n").expect("a chunk has a size");
    Bytes::copy_from_slice(&answer[head + size..answer.len() - END.len()])
}

/// Our http thread, without shards behind it: nothing here asks them.
fn start_ours(pinning: &Pinning) -> io::Result<(Server, Remote)> {
    let (mut ports, _shards) = mesh(&[PortClass::Client], 1, Depths::default());
    let reference = RefData::check(Rows::default()).expect("nothing in it, nothing wrong with it");
    let remote = Remote::new();
    let mut auth = Auth::open(AuthSettings::off()).expect("no files, nothing wrong with them");
    let parts = Parts {
        port: ports.remove(0),
        bells: vec![Bell::new(|| {})],
        reference: Arc::new(reference),
        remote: remote.clone(),
        registry: Arc::new(Registry::new(1)),
        standing: Arc::new(Standing::new(Timestamp::ZERO, Durability::None, Vec::new())),
        stages: Box::new(|| (0..ROWS).map(row).collect()),
        report: None,
        seat: auth.seat(remote.bell().clone()),
        posts: Vec::new(),
        log: None,
        pen: None,
        numbers: Numbers::default(),
        rereads: None,
        tls: None,
        tell: Box::new(|_| {}),
    };
    let settings = HttpSettings { http: Some(any_port()), https: None, ..HttpSettings::default() };
    let http = Http::bind(settings, parts)?;
    let address = http.listeners()[0].address;
    let server = Server::start(pinning, "ours", address, || http.run().expect("it served before"))?;
    Ok((server, remote))
}

fn row(n: usize) -> StageSummary {
    let n = n as u64;
    StageSummary {
        thread: format!("gateway-{n}"),
        stage: "decode",
        count: 1_000_000 + n,
        p50: 400 + n,
        p90: 800 + n,
        p99: 1_200 + n,
        p999: 9_000 + n,
        max: 100_000 + n,
    }
}

fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// hyper and nothing else, on the same runtime, for as long as the process lives.
fn start_bare(pinning: &Pinning, body: Bytes) -> io::Result<Server> {
    let listener = TcpListener::bind(any_port())?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    Server::start(pinning, "bare", address, move || {
        LocalSet::new().block_on(&runtime, serve_bare(listener, body)).expect("it served before");
    })
}

async fn serve_bare(listener: TcpListener, body: Bytes) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let body = body.clone();
        let service = service_fn(move |_: Request<_>| {
            let mut response = Response::new(Whole(body.clone()));
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            async move { Ok::<_, Infallible>(response) }
        });
        let connection = http1::Builder::new().serve_connection(TokioIo::new(socket), service);
        tokio::task::spawn_local(connection);
    }
}

/// A body in one chunk.
struct Whole(Bytes);

impl Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let rest = std::mem::take(&mut self.0);
        Poll::Ready((!rest.is_empty()).then(|| Ok(Frame::data(rest))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }
}
