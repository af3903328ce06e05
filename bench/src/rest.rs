//! Orders over REST: the whole service in this process, journal at level `os`, and clients that keep their connections.
//!
//! Two questions: how many orders a second get through, which depends on what else the machine does, and how long the http
//! thread is on its core for one, by the kernel's account, which does not. And whether somebody who reads all of a long list
//! holds others up.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pitlane::config::{self, Machine, Setting, Sources};
use pitlane::refdata;
use pitlane::serve::{self, ServeSettings};

/// Longest to wait for the service to listen.
const START_MAX: Duration = Duration::from_secs(10);

/// What was measured.
#[derive(Clone, Copy, Debug)]
pub struct Orders {
    pub per_s: f64,
    /// Of the http thread, for one order.
    pub http_ns: f64,
    /// Longest that a small request took while a list of all open orders was sent again and again.
    pub beside_list_ms_p99: f64,
    pub beside_list_ms_max: f64,
    pub open: usize,
}

/// So many orders over so many connections, each with one in flight.
pub fn orders(orders: usize, connections: usize) -> io::Result<Orders> {
    let service = Service::start(orders)?;
    let mut clients = (0..connections).map(|_| service.connect()).collect::<io::Result<Vec<_>>>()?;
    let submit = |n: usize| {
        // Far from the market, so that it rests.
        let body =
            format!(r#"{{"securityId":{},"side":"BUY","quantity":1,"limit":1,"tif":"GTC"}}"#, n % 10 + 1);
        format!(
            "POST /rest/execution/order/limit HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let account = service.account_of("http")?;
    let (begin, on_core) = (Instant::now(), on_core_ns(&account)?);
    let mut buffer = vec![0; 4_096];
    for n in 0..orders + connections {
        let client = &mut clients[n % connections];
        if n >= connections {
            let answer = read_head(client, &mut buffer)?;
            if !answer.starts_with("HTTP/1.1 200") {
                return Err(io::Error::other(answer));
            }
        }
        if n < orders {
            client.write_all(submit(n).as_bytes())?;
        }
    }
    let (took, spent) = (begin.elapsed(), on_core_ns(&account)? - on_core);
    let (p99, max) = service.beside_list()?;
    service.end()?;
    Ok(Orders {
        per_s: orders as f64 / took.as_secs_f64(),
        http_ns: spent / orders as f64,
        beside_list_ms_p99: p99,
        beside_list_ms_max: max,
        open: orders,
    })
}

struct Service {
    address: SocketAddr,
    running: JoinHandle<()>,
    data: PathBuf,
}

impl Service {
    fn start(orders: usize) -> io::Result<Service> {
        // A port that was free a moment ago.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let data = std::env::temp_dir().join(format!("pitlane-bench-rest-{}", std::process::id()));
        fs::create_dir_all(&data)?;
        let most = (4 * orders).max(10_000);
        let settings = [
            format!("http.listen={address}"),
            format!("service.data_dir={}", data.display()),
            format!("http.orders_max={most}"),
            format!("shard.orders_max={most}"),
            "https.listen=".into(),
            "stomp.listen=".into(),
            "stomp.tls_listen=".into(),
            "fix.listen=".into(),
            "feed.on=false".into(),
            "journal.level=os".into(),
            "http.rate_per_peer=0".into(),
            "http.rate_per_login=0".into(),
            "risk.strategies.max_orders_per_s=0".into(),
            "risk.strategies.max_open_orders=0".into(),
        ];
        let options = settings.iter().map(|text| Setting::parse(text)).collect::<Result<_, _>>();
        let sources = Sources { options: options.map_err(io::Error::other)?, ..Sources::default() };
        let loaded = config::load(&sources, &Machine::of("/".as_ref())).map_err(io::Error::other)?;
        let reference = Arc::new(refdata::shipped().map_err(io::Error::other)?);
        let settings =
            ServeSettings { config: loaded.config, params: loaded.params, quiet: true, time: None };
        let running = thread::Builder::new().name("main".into()).spawn(move || {
            serve::serve(&settings, &reference, None).expect("it serves to its end");
        })?;
        let service = Service { address, running, data };
        let end = Instant::now() + START_MAX;
        while !service.is_ready() {
            if Instant::now() > end {
                return Err(io::Error::other("the service did not start"));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(service)
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let socket = TcpStream::connect(self.address)?;
        socket.set_nodelay(true)?;
        Ok(socket)
    }

    fn is_ready(&self) -> bool {
        let Ok(mut socket) = self.connect() else { return false };
        let asked = socket.write_all(b"GET /health/ready HTTP/1.1\r\nHost: localhost\r\n\r\n");
        asked.is_ok() && read_head(&mut socket, &mut [0; 4_096]).is_ok_and(|answer| answer.contains(" 200 "))
    }

    /// The thread of a name in this process.
    fn account_of(&self, name: &str) -> io::Result<PathBuf> {
        for task in fs::read_dir("/proc/self/task")? {
            let task = task?.path();
            if fs::read_to_string(task.join("comm"))?.trim() == name {
                return Ok(task.join("schedstat"));
            }
        }
        Err(io::Error::other(format!("there is no thread {name}")))
    }

    /// How long small requests take while somebody reads all open orders, in milliseconds: 99 of 100, and all.
    fn beside_list(&self) -> io::Result<(f64, f64)> {
        let mut reader = self.connect()?;
        let reading = thread::spawn(move || -> io::Result<()> {
            let mut buffer = vec![0; 1 << 20];
            for _ in 0..3 {
                reader.write_all(b"GET /rest/execution/order HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
                let mut tail = Vec::new();
                while !tail.ends_with(b"\r\n0\r\n\r\n") {
                    let count = reader.read(&mut buffer)?;
                    tail.extend_from_slice(&buffer[..count]);
                    tail.drain(..tail.len().saturating_sub(16));
                }
            }
            Ok(())
        });
        let mut client = self.connect()?;
        let mut times = Vec::new();
        while !reading.is_finished() {
            let begin = Instant::now();
            client.write_all(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
            read_head(&mut client, &mut [0; 4_096])?;
            times.push(begin.elapsed().as_secs_f64() * 1e3);
        }
        reading.join().map_err(|_| io::Error::other("the reader failed"))??;
        times.sort_unstable_by(f64::total_cmp);
        let at = |part: f64| times.get((times.len() as f64 * part) as usize).or(times.last()).copied();
        Ok((at(0.99).unwrap_or(0.0), at(1.0).unwrap_or(0.0)))
    }

    fn end(self) -> io::Result<()> {
        self.connect()?.write_all(
            b"POST /rest/runtime/exit-vm HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        )?;
        self.running.join().map_err(|_| io::Error::other("the service failed"))?;
        fs::remove_dir_all(&self.data)
    }
}

/// One answer whose body, if it has one, came with its head; the answers here are small.
fn read_head(socket: &mut TcpStream, buffer: &mut [u8]) -> io::Result<String> {
    let mut filled = 0;
    loop {
        let text = &buffer[..filled];
        let head = text.windows(4).position(|window| window == b"\r\n\r\n");
        let is_chunked = text.windows(7).any(|window| window.eq_ignore_ascii_case(b"chunked"));
        if head.is_some() && (!is_chunked || text.ends_with(b"0\r\n\r\n")) {
            return Ok(String::from_utf8_lossy(text).into_owned());
        }
        match socket.read(&mut buffer[filled..])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            more => filled += more,
        }
    }
}

fn on_core_ns(account: &PathBuf) -> io::Result<f64> {
    let account = fs::read_to_string(account)?;
    let ns = account.split(' ').next().and_then(|ns| ns.parse().ok());
    ns.ok_or_else(|| io::Error::other("the kernel keeps no account of threads"))
}
