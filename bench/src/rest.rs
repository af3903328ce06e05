//! Orders over REST: the whole service on one core, journal at level `os`, clients with persistent
//! connections on the other.
//!
//! Measures how many orders per second are accepted, and what each costs the server's core by the
//! kernel's account, which does not depend on what else the machine does. Also measures whether a
//! client that reads a long list delays others.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use pitlane_engine::index::index_usize;

use crate::conditions::Pinning;
use crate::convert::whole;
use crate::http::server::{HttpServer, HttpServerKind};
use crate::http::{END, order, read_empty};
use crate::measure::median;

/// Number of times that the long list is read.
const READS: usize = 5;
/// Bytes of the list read at once: some 50 µs.
const READ_BYTES: usize = 256 * 1_024;

/// A measurement of orders over REST.
#[derive(Clone, Copy, Debug)]
pub struct RestOrders {
    /// Orders per second by wall-clock time: the median over rounds.
    pub per_s: f64,
    /// Nanoseconds per order of all threads of the server, and of its http thread.
    pub server_ns: f64,
    pub http_ns: f64,
    pub taken: usize,
    /// Time from a small request to the first byte of its response, while a list of all open orders
    /// is sent repeatedly.
    pub beside_list_ms_p99: f64,
    pub beside_list_ms_max: f64,
    pub open: usize,
}

/// Sends this many orders over this many connections, each with one in flight, in `rounds` rounds;
/// then more, until the list is long.
pub fn orders(
    pinning: &Pinning,
    orders: usize,
    connections: usize,
    rounds: usize,
    open: usize,
) -> io::Result<RestOrders> {
    let server = HttpServer::start(HttpServerKind::Pitlane, pinning, &[])?;
    let mut clients = (0..connections).map(|_| server.connect()).collect::<io::Result<Vec<_>>>()?;
    let http =
        |threads: Vec<(String, f64)>| threads.iter().find(|(name, _)| name == "http").map(|(_, ns)| *ns);
    let (mut rates, mut all_ns, mut http_ns) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let each = orders / rounds;
        let (begin, all, own) = (Instant::now(), server.on_core_ns()?, http(server.threads()?));
        submit(&mut clients, round * each, each)?;
        rates.push(each as f64 / begin.elapsed().as_secs_f64());
        all_ns.push((server.on_core_ns()? - all) / each as f64);
        let spent = http(server.threads()?).zip(own).map(|(after, before)| after - before);
        http_ns.push(spent.ok_or_else(|| io::Error::other("there is no http thread"))? / each as f64);
    }
    let taken = orders / rounds * rounds;
    let open = open.max(taken);
    submit(&mut clients, taken, open - taken)?;
    let (p99, max) = beside_list(&server)?;
    server.end()?;
    Ok(RestOrders {
        per_s: median(&rates),
        server_ns: median(&all_ns),
        http_ns: median(&http_ns),
        beside_list_ms_p99: p99,
        beside_list_ms_max: max,
        taken,
        open,
    })
}

/// Sends orders with one in flight for every client.
fn submit(clients: &mut [TcpStream], first: usize, orders: usize) -> io::Result<()> {
    let connections = clients.len();
    let mut buffer = vec![0; 4_096];
    for n in 0..orders + connections {
        let client = &mut clients[n % connections];
        if (connections..orders + connections).contains(&n) && n - connections < orders {
            read_empty(client, &mut buffer)?;
        }
        if n < orders {
            client.write_all(order(first + n).as_bytes())?;
        }
    }
    Ok(())
}

/// Measures how long small requests wait for the first byte of their response while all open orders
/// are read, in milliseconds: the 99th percentile and the maximum. One thread does both in
/// alternation: two threads would wait for each other's time on the core they share, and that would
/// be counted.
fn beside_list(server: &HttpServer) -> io::Result<(f64, f64)> {
    let (mut reader, mut client) = (server.connect()?, server.connect()?);
    reader.set_nonblocking(true)?;
    client.set_nonblocking(true)?;
    let mut buffer = vec![0; READ_BYTES];
    let mut times = Vec::new();
    for _ in 0..READS {
        reader.write_all(b"GET /rest/execution/order HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        let (mut list, mut answer) = (ResponseTail::default(), ResponseTail::default());
        let mut since = None;
        while !list.is_end() {
            let begin = match since {
                Some(begin) => begin,
                None => {
                    client.write_all(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
                    *since.insert(Instant::now())
                }
            };
            let is_first = answer.0.is_empty();
            answer.read(&mut client, &mut buffer)?;
            if is_first && !answer.0.is_empty() {
                times.push(begin.elapsed().as_secs_f64() * 1e3);
            }
            if answer.is_end() {
                (answer, since) = (ResponseTail::default(), None);
            }
            list.read(&mut reader, &mut buffer)?;
        }
        while since.is_some() && !answer.is_end() {
            answer.read(&mut client, &mut buffer)?;
        }
    }
    times.sort_unstable_by(f64::total_cmp);
    let index = |part: f64| index_usize(whole(times.len() as f64 * part).unsigned_abs());
    let at = |part: f64| times.get(index(part)).or(times.last()).copied();
    Ok((at(0.99).unwrap_or(0.0), at(1.0).unwrap_or(0.0)))
}

/// The last bytes of a chunked response.
#[derive(Default)]
struct ResponseTail(Vec<u8>);

impl ResponseTail {
    /// Reads what has arrived, if anything.
    fn read(&mut self, socket: &mut TcpStream, buffer: &mut [u8]) -> io::Result<()> {
        match socket.read(buffer) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                self.0.extend_from_slice(&buffer[count.saturating_sub(END.len())..count]);
                self.0.drain(..self.0.len().saturating_sub(END.len()));
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn is_end(&self) -> bool {
        self.0.ends_with(END)
    }
}
