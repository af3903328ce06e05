//! What connects strategies in their own processes to their server: a broker, or the server itself,
//! over a Unix socket or over TCP through a proxy that can cut the connections.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;

use pitlane_protocols::remote::link::{
    FRAME_BYTES_MAX, FrameBuffer, LINK_VERSION, ServerFrame, StrategyFrame,
};
use pitlane_protocols::remote::strategy::{RemoteReply, RemoteRequest};

use crate::nats_server::NatsBroker;
use crate::patience::PATIENCE;
use crate::service::ServiceProcess;
use crate::temp_folder::TestFolder;

/// The link of a test.
pub enum TestLink {
    Nats(NatsBroker),
    Unix(PathBuf),
    Tcp(CutProxy),
}

impl TestLink {
    pub fn nats(place: &TestFolder) -> TestLink {
        TestLink::Nats(NatsBroker::start(place))
    }

    /// Creates a link over the Unix socket in the data folder.
    pub fn unix(place: &TestFolder) -> TestLink {
        TestLink::Unix(place.join("strategies.sock"))
    }

    /// Creates a link over TCP whose connections can be cut.
    pub fn tcp(_place: &TestFolder) -> TestLink {
        TestLink::Tcp(CutProxy::start())
    }

    /// Returns the settings of the server.
    pub fn server_settings(&self) -> Vec<String> {
        match self {
            TestLink::Nats(broker) => broker.server_settings(),
            TestLink::Unix(_) => vec!["strategies.listen=".to_string()],
            TestLink::Tcp(_) => {
                vec!["strategies.listen=127.0.0.1:0".to_string(), "strategies.unix_socket=false".to_string()]
            }
        }
    }

    /// Takes note of a server that has started.
    pub fn set_server(&self, service: &ServiceProcess) {
        if let TestLink::Tcp(proxy) = self {
            proxy.set_target(listener(service));
        }
    }

    /// Returns the address for `--connect`.
    pub fn url(&self) -> String {
        match self {
            TestLink::Nats(broker) => broker.url(),
            TestLink::Unix(path) => format!("unix:{}", path.display()),
            TestLink::Tcp(proxy) => format!("pitlane://{}", proxy.address),
        }
    }

    /// Breaks the connections between strategies and server, by a crash of what is between them.
    pub fn interrupt(&mut self) {
        match self {
            TestLink::Nats(broker) => {
                broker.kill();
                broker.restart();
            }
            TestLink::Unix(_) => {}
            TestLink::Tcp(proxy) => proxy.cut(),
        }
    }
}

/// Returns the address of a server's listener for strategies.
pub fn listener(service: &ServiceProcess) -> SocketAddr {
    let address = service.ready.split_whitespace().find_map(|part| part.strip_prefix("strategies="));
    address.expect("the server accepts strategies").parse().unwrap()
}

/// A proxy with a stable address to a server whose port changes with each start.
pub struct CutProxy {
    address: SocketAddr,
    shared: Arc<Mutex<ProxyState>>,
}

#[derive(Default)]
struct ProxyState {
    target: Option<SocketAddr>,
    sockets: Vec<TcpStream>,
}

impl CutProxy {
    fn start() -> CutProxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Mutex::new(ProxyState::default()));
        let state = shared.clone();
        // Threads that wait for a socket end with the process at the latest.
        thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let target = state.lock().unwrap().target;
                let Some(Ok(far)) = target.map(TcpStream::connect) else { continue };
                let back = (far.try_clone().unwrap(), near.try_clone().unwrap());
                let mut state = state.lock().unwrap();
                state.sockets.extend([near.try_clone().unwrap(), far.try_clone().unwrap()]);
                for (from, to) in [(near, far), back] {
                    thread::spawn(move || pass_on(from, to));
                }
            }
        });
        CutProxy { address, shared }
    }

    fn set_target(&self, target: SocketAddr) {
        self.shared.lock().unwrap().target = Some(target);
    }

    fn cut(&self) {
        for socket in self.shared.lock().unwrap().sockets.drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// A client of the strategy link by hand.
pub struct LinkClient {
    to: Box<dyn LinkSocket>,
    from: Box<dyn LinkSocket>,
    buffer: FrameBuffer,
    /// Frames that arrived before the one that was asked for.
    pub kept: VecDeque<ServerFrame>,
    number: u64,
}

/// A socket of any kind.
pub trait LinkSocket: Read + Write + Send {}

impl<T: Read + Write + Send> LinkSocket for T {}

impl LinkClient {
    pub fn tcp(address: SocketAddr) -> LinkClient {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        LinkClient::on(Box::new(socket.try_clone().unwrap()), Box::new(socket))
    }

    pub fn unix(path: &std::path::Path) -> LinkClient {
        let socket = UnixStream::connect(path).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        LinkClient::on(Box::new(socket.try_clone().unwrap()), Box::new(socket))
    }

    pub fn on(from: Box<dyn LinkSocket>, to: Box<dyn LinkSocket>) -> LinkClient {
        let buffer = FrameBuffer::new(FRAME_BYTES_MAX);
        LinkClient { to, from, buffer, kept: VecDeque::new(), number: 0 }
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.to.write_all(bytes)?;
        self.to.flush()
    }

    pub fn send(&mut self, frame: &StrategyFrame) {
        self.send_bytes(&frame.encode()).unwrap();
    }

    /// Returns the next frame; `None` at the end of the connection.
    pub fn receive(&mut self) -> Option<ServerFrame> {
        let mut portion = [0; 4_096];
        loop {
            if let Some(frame) = self.buffer.next_frame().unwrap() {
                return Some(ServerFrame::decode(frame).unwrap());
            }
            match self.from.read(&mut portion) {
                Ok(0) => return None,
                Ok(count) => self.buffer.extend(&portion[..count]),
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Logs in, and returns the answer.
    pub fn log_in(&mut self, strategy: &str, token: &str) -> Option<ServerFrame> {
        let (strategy, token) = (strategy.to_string(), token.to_string());
        self.send(&StrategyFrame::Login { version: LINK_VERSION, strategy, token });
        self.receive()
    }

    /// Sends a request, and returns its answer; other frames are kept.
    pub fn ask(&mut self, request: &RemoteRequest) -> RemoteReply {
        self.ask_bytes(request.encode())
    }

    pub fn ask_bytes(&mut self, request: Vec<u8>) -> RemoteReply {
        self.number += 1;
        let number = self.number;
        self.send(&StrategyFrame::Request { number, request });
        loop {
            let frame = self.receive().expect("there is an answer");
            if let ServerFrame::Reply { number: answered, reply } = &frame
                && *answered == number
            {
                return RemoteReply::decode(reply).unwrap();
            }
            self.kept.push_back(frame);
        }
    }

    /// Returns the first frame for which a condition holds; the others are dropped.
    pub fn wait_for(&mut self, mut is_it: impl FnMut(&ServerFrame) -> bool) -> ServerFrame {
        while let Some(frame) = self.kept.pop_front() {
            if is_it(&frame) {
                return frame;
            }
        }
        loop {
            let frame = self.receive().expect("the connection is open");
            if is_it(&frame) {
                return frame;
            }
        }
    }
}

/// Returns the code of a refusal, and whether the client may try again.
pub fn refusal(frame: Option<ServerFrame>) -> (String, bool) {
    match frame {
        Some(ServerFrame::Refused { code, retry, .. }) => (code, retry),
        other => panic!("it is refused, not {other:?}"),
    }
}
