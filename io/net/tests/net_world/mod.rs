//! A gateway for tests, stepped by the test itself: real sockets, and a clock that moves only when
//! the test sets it.

#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, reason = "tests may")]

use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use pitlane_engine::time::Timestamp;
use pitlane_net::event::{CloseReason, SocketEvent};
use pitlane_net::listener::{Listener, ListenerId};
use pitlane_net::settings::{DriverKind, ListenerSettings, NetSettings};
use pitlane_net::sockets::Sockets;
use pitlane_net::{ConnectionId, Net};

/// Time limit: nothing here takes long, so a test that takes this long hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a test with every driver that this host has.
pub(crate) fn on_each_driver(test: impl Fn(DriverKind)) {
    test(DriverKind::Epoll);
    let net = Net::open(NetSettings { driver: DriverKind::Uring, ..NetSettings::default() }).unwrap();
    match net.fallback() {
        Some(reason) => println!("skipped on io_uring: {reason}"),
        None => {
            drop(net);
            test(DriverKind::Uring);
        }
    }
}

pub(crate) struct NetFixture {
    pub net: Net,
    pub now: Timestamp,
    pub address: SocketAddr,
    pub gateway: EchoGateway,
}

/// Echoes whole lines, and records its events.
#[derive(Default)]
pub(crate) struct EchoGateway {
    pub events: Vec<SocketEvent>,
    pub manners: GatewayBehavior,
    pub sends_refused: usize,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum GatewayBehavior {
    /// A line is echoed when its end has arrived.
    #[default]
    Lines,
    /// All bytes are echoed as they arrive.
    Bytes,
    /// All bytes are consumed without a response.
    Swallow,
    /// Nothing is consumed.
    Ignore,
}

impl EchoGateway {
    pub(crate) fn handle(&mut self, sockets: &mut Sockets, event: SocketEvent) {
        if event == SocketEvent::EndOfCycle {
            return;
        }
        self.events.push(event);
        let SocketEvent::Received { id } = event else { return };
        let input = sockets.input(id);
        assert!(!input.is_empty(), "an event for input, and there is none");
        let whole = input.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let (echoed, consumed) = match self.manners {
            GatewayBehavior::Lines => (whole, whole),
            GatewayBehavior::Bytes => (input.len(), input.len()),
            GatewayBehavior::Swallow => (0, input.len()),
            GatewayBehavior::Ignore => (0, 0),
        };
        let answer = input[..echoed].to_vec();
        sockets.consume(id, consumed);
        if !answer.is_empty() && sockets.send(id, &answer).is_err() {
            self.sends_refused += 1;
        }
    }

    pub(crate) fn accepted(&self) -> Vec<ConnectionId> {
        let ids = self.events.iter().filter_map(|event| {
            let SocketEvent::Accepted { id, .. } = event else { return None };
            Some(*id)
        });
        ids.collect()
    }

    pub(crate) fn closed(&self) -> Vec<(ConnectionId, CloseReason)> {
        let ends = self.events.iter().filter_map(|event| {
            let SocketEvent::Closed { id, reason } = event else { return None };
            Some((*id, *reason))
        });
        ends.collect()
    }
}

impl NetFixture {
    pub(crate) fn new(driver: DriverKind) -> NetFixture {
        NetFixture::with(NetSettings { driver, ..NetSettings::default() }, at_loopback())
    }

    pub(crate) fn with(settings: NetSettings, listener: ListenerSettings) -> NetFixture {
        let kind = settings.driver;
        let mut net = Net::open(settings).unwrap();
        assert_eq!(net.driver(), kind);
        let listener = Listener::bind(listener).unwrap();
        let address = listener.address();
        assert_eq!(net.listen(listener), ListenerId(0));
        NetFixture { net, now: Timestamp(1_000_000_000), address, gateway: EchoGateway::default() }
    }

    pub(crate) fn sockets(&mut self) -> &mut Sockets {
        self.net.sockets()
    }

    pub(crate) fn step(&mut self) -> usize {
        let NetFixture { net, now, gateway, .. } = self;
        net.run_cycle(*now, |sockets, event| gateway.handle(sockets, event))
    }

    /// Runs a cycle, and `act` at its end.
    pub(crate) fn step_with_end(&mut self, act: impl FnOnce(&mut Sockets)) {
        let NetFixture { net, now, gateway, .. } = self;
        let mut act = Some(act);
        net.run_cycle(*now, |sockets, event| {
            if matches!(event, SocketEvent::EndOfCycle) {
                act.take().into_iter().for_each(|act| act(sockets));
            }
            gateway.handle(sockets, event);
        });
    }

    pub(crate) fn until(&mut self, what: &str, mut come: impl FnMut(&mut NetFixture) -> bool) {
        let begin = Instant::now();
        while !come(self) {
            assert!(begin.elapsed() < PATIENCE, "waited in vain until {what}");
            if self.step() == 0 {
                self.net.wait(self.now, Duration::from_millis(1));
            }
        }
    }

    /// Returns a client that is already accepted.
    pub(crate) fn client(&mut self) -> (TcpStream, ConnectionId) {
        let before = self.gateway.accepted().len();
        let client = connect(self.address);
        self.until("a connection is accepted", |fixture| fixture.gateway.accepted().len() > before);
        (client, self.gateway.accepted()[before])
    }

    /// Reads so many bytes at the client's end while the server continues.
    pub(crate) fn read(&mut self, client: &mut TcpStream, count: usize) -> Vec<u8> {
        client.set_nonblocking(true).unwrap();
        let mut bytes = vec![0; count];
        let mut got = 0;
        self.until("the client has read it", |_| {
            got += take(client, &mut bytes[got..]).expect("the server has not hung up");
            got == count
        });
        client.set_nonblocking(false).unwrap();
        bytes
    }

    /// Reads to the end at the client's end. None: the connection was reset.
    pub(crate) fn read_to_end(&mut self, client: &mut TcpStream) -> Option<Vec<u8>> {
        client.set_nonblocking(true).unwrap();
        let mut bytes = Vec::new();
        let mut broken = false;
        self.until("the server hangs up", |_| {
            let mut part = [0; 65_536];
            match client.read(&mut part) {
                Ok(0) => return true,
                Ok(count) => bytes.extend_from_slice(&part[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => broken = true,
            }
            broken
        });
        if broken { None } else { Some(bytes) }
    }
}

/// Returns the bytes that are available now. None: the other end has closed.
pub(crate) fn take(client: &mut TcpStream, bytes: &mut [u8]) -> Option<usize> {
    match client.read(bytes) {
        Ok(0) if !bytes.is_empty() => None,
        Ok(count) => Some(count),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Some(0),
        Err(_) => None,
    }
}

pub(crate) fn at_loopback() -> ListenerSettings {
    ListenerSettings::at("127.0.0.1:0".parse().unwrap())
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let client = TcpStream::connect(address).unwrap();
    client.set_nodelay(true).unwrap();
    client
}
