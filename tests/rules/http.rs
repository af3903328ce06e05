//! The http thread of the service, under the test's clock: STOMP over WebSocket. Events come over
//! its lanes from shards, as notifications from gateways, and by requests of an operator.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pitlane_auth::Auth;
use pitlane_config::Durability;
use pitlane_engine::desk::IdBlock;
use pitlane_engine::index::index_usize;
use pitlane_engine::mesh::{Depths, PortClass, mesh};
use pitlane_engine::time::Timestamp;
use pitlane_gateway::notifications::channels;
use pitlane_http::{HttpParts, HttpServer, HttpSettings, Numbers, Remote, ServiceStatus};
use pitlane_protocols::stomp::session::{BufferUsage, StompCounters, Transport};
use pitlane_protocols::stomp::throttle::{EventRate, Throttle};
use pitlane_runtime::clock::Clock;
use pitlane_runtime::metrics::{Registry, StageReport};
use pitlane_runtime::wakeup::Wakeup;
use pitlane_tests::stomp::host::{HostPlan, StompHost};
use pitlane_tests::test_market;

use super::client::{CLOG_BYTES, RuleClient};
use super::wired::{HostParts, OverSockets, SocketHost};
use super::{PATIENCE, SHARDS, auth_settings};

/// Steps in which the time passes: the thread reads the clock when it is woken.
const STEPS: u64 = 4;
/// Longer than the moment for which the thread does not poll after it was woken.
const MOMENT: Duration = Duration::from_millis(2);

pub(crate) struct HttpHost {
    address: SocketAddr,
    remote: Remote,
    hand: Arc<AtomicU64>,
    operator: Operator,
    parts: HostParts,
    thread: Option<JoinHandle<()>>,
}

impl HttpHost {
    pub(crate) fn open(plan: HostPlan, folder: &Path) -> Box<dyn StompHost> {
        let mut broker = plan.settings;
        if plan.stalls {
            broker.limits.mark_bytes += CLOG_BYTES;
        }
        // Dialogues that are not about WebSocket run without its throttle.
        if plan.transport == Transport::Tcp {
            broker.throttle.max_rate_per_connection = EventRate::from_raw(0);
        }
        let (mut ports, shards) = mesh(&[PortClass::Control, PortClass::Client], SHARDS, Depths::default());
        let remote = Remote::new();
        let hand = Arc::new(AtomicU64::new(test_market::start().0));
        let silent = Wakeup::new(|| {});
        let (theirs, post) = channels(remote.wakeup().clone(), silent.clone());
        let mut auth =
            Auth::open(auth_settings(folder, &plan.users, broker.anonymous_access.is_none())).unwrap();
        let parts = HttpParts {
            running_days: Vec::new(),
            port: ports.pop().expect("there are two"),
            wakeups: vec![silent; SHARDS as usize],
            reference: test_market::reference(),
            remote: remote.clone(),
            registry: Arc::new(Registry::new(SHARDS)),
            service_status: Arc::new(ServiceStatus::new(test_market::start(), Durability::None, Vec::new())),
            stages: Box::new(StageReport::default),
            report: None,
            auth_client: auth.client(remote.wakeup().clone()),
            notification_channels: vec![theirs],
            log: None,
            audit: None,
            numbers: Numbers::only(IdBlock { next: 1, end: 1 << 32 }),
            reloads: None,
            tls: None,
            clock: Clock::controlled(hand.clone()),
            recorder: None,
            remote_strategies: None,
            cluster: None,
            history: None,
            send_event: Box::new(|_| {}),
        };
        let http = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        let settings = HttpSettings { http, https: None, broker, ..HttpSettings::default() };
        let http = HttpServer::bind(settings, parts).unwrap();
        let address = http.listeners()[0].address;
        Box::new(OverSockets(HttpHost {
            address,
            remote,
            hand,
            operator: Operator::new(address),
            parts: HostParts::new(shards, post, auth.into_parts().0),
            thread: Some(thread::spawn(move || http.run().unwrap())),
        }))
    }

    fn id(client: usize) -> String {
        format!("ws-http-{}", client + 1)
    }
}

impl SocketHost for HttpHost {
    fn parts(&mut self) -> &mut HostParts {
        &mut self.parts
    }

    fn connect(&mut self, now: Timestamp) -> Result<(), String> {
        self.settle(now);
        let mut socket = TcpStream::connect(self.address).map_err(|error| error.to_string())?;
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let request = "GET /stomp HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                       Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        socket.write_all(request.as_bytes()).unwrap();
        let head = read_head(&mut socket);
        if !head.starts_with("HTTP/1.1 101 ") {
            return Err(head);
        }
        self.parts.clients.push(RuleClient::websocket(socket));
        self.settle(now);
        Ok(())
    }

    /// Wakes the thread and waits until nothing moves. A thread that has answered after it was
    /// woken has seen everything sent before; the consequences are done when it answers once more.
    fn settle(&mut self, now: Timestamp) {
        self.hand.store(now.0, Ordering::Release);
        let begin = Instant::now();
        loop {
            self.parts.poll();
            self.remote.wakeup().wake();
            for _ in 0..2 {
                self.operator.ask("GET /health/live", "");
            }
            self.parts.ignore();
            if self.parts.poll() == 0 && begin.elapsed() >= MOMENT {
                return;
            }
        }
    }

    fn wait(&mut self, from: Timestamp, to: Timestamp) {
        let whole = to.since(from);
        for step in 1..=STEPS {
            self.settle(Timestamp(from.0 + whole * step / STEPS));
        }
    }

    /// The service sends its last bytes before it ends, and it ends when the client has answered.
    fn settle_end(&mut self, now: Timestamp, client: usize) {
        let late = Instant::now() + PATIENCE;
        while self.parts.clients[client].incoming.end.is_none() && Instant::now() < late {
            self.settle(now);
        }
    }

    fn kick(&mut self, client: usize) {
        self.operator.ask(&format!("DELETE /rest/ext/session/{}", HttpHost::id(client)), "");
    }

    fn set_rates(&mut self, throttle: &Throttle) {
        let Throttle { max_rate_per_connection: most, min_rate_per_consumer: least } = throttle;
        let json = format!(
            "{{\"maxRatePerConnection\":{},\"minRatePerConsumer\":{}}}",
            decimal(*most),
            decimal(*least)
        );
        self.operator.ask("PUT /rest/ext/broker/rate", &json);
    }

    fn look(&mut self, client: usize) -> Option<(StompCounters, BufferUsage)> {
        let list = self.operator.ask("GET /rest/ext/session", "");
        let at = list.find(&format!("\"{}\"", HttpHost::id(client)))?;
        let row = list[at..].split('}').next()?;
        let number = |name: &str| -> u64 {
            let behind = row.split_once(&format!("\"{name}\":")).map_or("0", |(_, behind)| behind);
            let digits: String = behind.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().unwrap_or(0)
        };
        let counters = StompCounters {
            messages: number("messagesOut"),
            conflated: number("conflated"),
            ..StompCounters::default()
        };
        let fill = BufferUsage {
            out_bytes: index_usize(number("queueBytes")),
            slots: index_usize(number("slots")),
            backlog: index_usize(number("backlog")),
            backlog_bytes: index_usize(number("backlogBytes")),
            subscriptions: index_usize(number("subscriptions")),
        };
        Some((counters, fill))
    }
}

impl Drop for HttpHost {
    fn drop(&mut self) {
        // The service would wait for clients that are still connected.
        self.parts.clients.clear();
        self.operator.leave();
        self.remote.end();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking(), "the http thread has failed");
        }
    }
}

/// An operator with a connection for requests.
struct Operator {
    socket: TcpStream,
}

impl Operator {
    fn new(address: SocketAddr) -> Operator {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_nodelay(true).unwrap();
        Operator { socket }
    }

    fn leave(&self) {
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    /// Sends a request, and returns the body of the response.
    fn ask(&mut self, request: &str, json: &str) -> String {
        let length = json.len();
        let kind = if json.is_empty() { "" } else { "Content-Type: application/json\r\n" };
        let request =
            format!("{request} HTTP/1.1\r\nHost: localhost\r\n{kind}Content-Length: {length}\r\n\r\n{json}");
        self.socket.write_all(request.as_bytes()).unwrap();
        let head = read_head(&mut self.socket);
        assert!(head.starts_with("HTTP/1.1 2"), "{request}\n{head}");
        if !head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
            return String::new();
        }
        let mut body = Vec::new();
        loop {
            let length = usize::from_str_radix(read_until(&mut self.socket, "\r\n").trim_end(), 16).unwrap();
            let before = body.len();
            body.resize(before + length + 2, 0);
            self.socket.read_exact(&mut body[before..]).unwrap();
            body.truncate(before + length);
            if length == 0 {
                return String::from_utf8(body).unwrap();
            }
        }
    }
}

fn read_head(socket: &mut TcpStream) -> String {
    read_until(socket, "\r\n\r\n")
}

fn read_until(socket: &mut TcpStream, end: &str) -> String {
    let mut text = Vec::new();
    while !text.ends_with(end.as_bytes()) {
        let mut byte = [0];
        socket.read_exact(&mut byte).unwrap();
        text.push(byte[0]);
    }
    String::from_utf8(text).unwrap()
}

fn decimal(rate: EventRate) -> f64 {
    rate.raw() as f64 / pitlane_engine::text::SCALE as f64
}
