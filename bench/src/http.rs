//! GETs over HTTP: our service compared with servers that answer the same bytes from memory: bare
//! hyper, nginx where it is installed and, with the feature `peers`, may_minihttp. What ours does
//! in addition is guards, routing, headers, deadlines, and rendering the response.
//!
//! Each server is a process of its own on one core; the clients are on the other. The loop is
//! closed, by choice: the question is the server's time on its core per request (the kernel's
//! account of all its threads), which does not depend on what else the machine does.

pub mod bare;
pub mod server;

use std::fmt;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use self::server::{HttpServer, HttpServerKind};
use crate::conditions::Pinning;
use crate::convert::duration_ns;
use crate::measure::median;
use crate::report::recording::{Recording, SLICE_NS};

/// Requested paths: a minimal response, a list that never changes, and a list from the read model.
const PATHS: [&str; 3] = ["/health/live", "/rest/security-family", "/rest/execution/order"];
/// Open orders in the last list: two kilobytes.
const ORDERS: usize = 5;
/// End of a chunked response.
pub const END: &[u8] = b"\r\n0\r\n\r\n";

/// One response, ours and those of the other servers.
pub struct HttpComparison {
    pub path: &'static str,
    pub bytes: usize,
    /// Nanoseconds on the core per request, ours first.
    pub times: Vec<(HttpServerKind, f64)>,
    /// Our time relative to hyper's: the median over rounds.
    pub ratio: f64,
    /// Latencies of ours in a last round: from a request to the end of its response, closed loop.
    pub latencies: Recording,
}

impl HttpComparison {
    /// Returns whether it is one of the lists that the goal applies to.
    pub fn is_list(&self) -> bool {
        self.path.starts_with("/rest")
    }
}

impl fmt::Display for HttpComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<22} {:>5} bytes", self.path, self.bytes)?;
        self.times.iter().try_for_each(|(kind, ns)| write!(f, "  {} {ns:>6.0} ns", kind.name()))?;
        write!(f, "  {:.3} × hyper's time", self.ratio)
    }
}

/// Measures each response in alternating rounds.
pub fn compare(
    pinning: &Pinning,
    requests: usize,
    connections: usize,
    rounds: usize,
) -> io::Result<Vec<HttpComparison>> {
    let ours = HttpServer::start(HttpServerKind::Pitlane, pinning, &[])?;
    let mut client = ours.connect()?;
    for n in 0..ORDERS {
        client.write_all(order(n).as_bytes())?;
        read_empty(&mut client, &mut [0; 4_096])?;
    }
    PATHS.into_iter().map(|path| compare_path(&ours, pinning, path, requests, connections, rounds)).collect()
}

fn compare_path(
    ours: &HttpServer,
    pinning: &Pinning,
    path: &'static str,
    requests: usize,
    connections: usize,
    rounds: usize,
) -> io::Result<HttpComparison> {
    let body = body_of(&exchange(&mut ours.connect()?, path)?);
    let others = HttpServerKind::bare().map(|kind| HttpServer::start(kind, pinning, &body));
    let others = others.collect::<io::Result<Vec<_>>>()?;
    let group = |server| HttpClients::new(server, path, connections);
    let mut groups = std::iter::once(ours).chain(&others).map(group).collect::<io::Result<Vec<_>>>()?;
    let (mut times, mut ratios) = (vec![Vec::new(); groups.len()], Vec::new());
    for _ in 0..rounds {
        for (group, times) in groups.iter_mut().zip(&mut times) {
            times.push(group.ns_per_request(requests)?);
        }
        let newest = |at: usize| times[at].last().copied().unwrap_or(f64::NAN);
        ratios.push(newest(0) / newest(1));
    }
    let latencies = groups[0].latencies(path, requests)?;
    let kinds = std::iter::once(HttpServerKind::Pitlane).chain(HttpServerKind::bare());
    let times = kinds.zip(times.iter().map(|times| median(times))).collect();
    Ok(HttpComparison { path, bytes: body.len(), times, ratio: median(&ratios), latencies })
}

/// Connections with one request in flight each.
struct HttpClients<'a> {
    server: &'a HttpServer,
    sockets: Vec<TcpStream>,
    request: String,
    /// Bytes of a whole response that is not chunked.
    bytes: Option<usize>,
    buffer: Vec<u8>,
}

impl<'a> HttpClients<'a> {
    fn new(server: &'a HttpServer, path: &str, connections: usize) -> io::Result<HttpClients<'a>> {
        let sockets = (0..connections).map(|_| server.connect()).collect::<io::Result<Vec<_>>>()?;
        let first = exchange(&mut server.connect()?, path)?;
        let bytes = (!first.ends_with(END)).then_some(first.len());
        Ok(HttpClients { server, sockets, request: request(path), bytes, buffer: vec![0; 16 * 1_024] })
    }

    fn ns_per_request(&mut self, requests: usize) -> io::Result<f64> {
        let passes = requests.div_ceil(self.sockets.len()).max(1);
        self.passes(passes.div_ceil(10))?;
        let begin = self.server.on_core_ns()?;
        self.passes(passes)?;
        Ok((self.server.on_core_ns()? - begin) / (passes * self.sockets.len()) as f64)
    }

    /// Measures latencies in a closed loop, with requests in flight on the other connections too.
    fn latencies(&mut self, path: &str, requests: usize) -> io::Result<Recording> {
        let name = format!("http{}", path.replace('/', "-"));
        let mut recording = Recording::new(&name, 0.0, SLICE_NS);
        let begin = Instant::now();
        let mut sent_at = vec![begin; self.sockets.len()];
        let passes = requests.div_ceil(self.sockets.len()).max(1);
        for pass in 0..=passes {
            for (nth, sent_at) in sent_at.iter_mut().enumerate() {
                if pass > 0 {
                    self.receive(nth)?;
                    recording.count(duration_ns(*sent_at - begin), duration_ns(sent_at.elapsed()));
                }
                if pass < passes {
                    *sent_at = Instant::now();
                    self.sockets[nth].write_all(self.request.as_bytes())?;
                }
            }
        }
        recording.per_s_reached = recording.all.len() as f64 / begin.elapsed().as_secs_f64();
        Ok(recording)
    }

    fn receive(&mut self, nth: usize) -> io::Result<()> {
        let HttpClients { sockets, bytes, buffer, .. } = self;
        match bytes {
            Some(bytes) => sockets[nth].read_exact(&mut buffer[..*bytes]),
            None => read_chunked(&mut sockets[nth], buffer).map(|_| ()),
        }
    }

    /// Sends requests on all connections before it reads any, so that the server always has work.
    fn passes(&mut self, passes: usize) -> io::Result<()> {
        for socket in &mut self.sockets {
            socket.write_all(self.request.as_bytes())?;
        }
        for pass in 0..passes {
            for nth in 0..self.sockets.len() {
                self.receive(nth)?;
                if pass + 1 < passes {
                    self.sockets[nth].write_all(self.request.as_bytes())?;
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

/// Builds an order far from the market, so that it rests.
pub fn order(n: usize) -> String {
    let (id, security) = (n, n % 10 + 1);
    let body = format!(
        r#"{{"intId":"bench-{id}","securityId":{security},"side":"BUY","quantity":1,"limit":1,"tif":"GTC"}}"#
    );
    let length = body.len();
    format!(
        "POST /rest/execution/order/limit HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )
}

/// Reads the response to an order: a header without a body, whose status must be 200.
pub fn read_empty(socket: &mut TcpStream, buffer: &mut [u8]) -> io::Result<()> {
    let filled = read_until(socket, buffer, b"\r\n\r\n")?;
    if buffer.starts_with(b"HTTP/1.1 200") {
        return Ok(());
    }
    Err(io::Error::other(String::from_utf8_lossy(&buffer[..filled]).into_owned()))
}

fn read_chunked(socket: &mut TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    read_until(socket, buffer, END)
}

fn read_until(socket: &mut TcpStream, buffer: &mut [u8], end: &[u8]) -> io::Result<usize> {
    let mut filled = 0;
    while !buffer[..filled].ends_with(end) {
        match socket.read(&mut buffer[filled..])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            more => filled += more,
        }
    }
    Ok(filled)
}

/// Returns one response as it came; responses are small and arrive in one piece, or in chunks.
pub fn exchange(socket: &mut TcpStream, path: &str) -> io::Result<Vec<u8>> {
    socket.write_all(request(path).as_bytes())?;
    let mut buffer = vec![0; 16 * 1_024];
    let mut filled = 0;
    loop {
        filled += match socket.read(&mut buffer[filled..])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            more => more,
        };
        let chunked = buffer[..filled].windows(7).any(|window| window.eq_ignore_ascii_case(b"chunked"));
        if !chunked || buffer[..filled].ends_with(END) {
            buffer.truncate(filled);
            return Ok(buffer);
        }
    }
}

/// Returns a response of one chunk as JSON.
pub fn json(socket: &mut TcpStream, path: &str) -> Option<serde_json::Value> {
    let response = exchange(socket, path).ok()?;
    response.ends_with(END).then(|| serde_json::from_slice(&body_of(&response)).ok())?
}

/// Returns the bytes between the first chunk's size and the end; our responses here have one chunk.
fn body_of(response: &[u8]) -> Vec<u8> {
    let after = |text: &[u8], mark: &[u8]| {
        text.windows(mark.len()).position(|window| window == mark).map(|at| at + mark.len())
    };
    let head = after(response, b"\r\n\r\n").expect("a head has an end");
    let size = after(&response[head..], b"\r\n").expect("a chunk has a size");
    response[head + size..response.len() - END.len()].to_vec()
}
