//! Consumers of a broker, all in the calling thread. They count messages, or decode each of them as
//! a program would that uses what it receives.

use std::hint::spin_loop;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pitlane_engine::refdata::RefData;

use crate::fix_wire::{BoxError, FixServerKind, LoadLogin, LoadSession, LoadTarget};
use crate::neighbours::Neighbours;
use crate::tick_reader::fix::FixTickReader;
use crate::tick_reader::{BodyReader, Framing, SeenTick, TickReader};

/// Timeout of every step; none of them takes long.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);
/// Most bytes that a consumer reads at once.
const READ_BYTES: usize = 256 * 1_024;

/// Time before anything is counted.
pub(crate) const WARM_UP: Duration = Duration::from_millis(300);

/// State shared by server and consumers.
#[derive(Default)]
pub struct FanOutState {
    /// Deliveries counted by the consumers.
    pub(crate) delivered: AtomicU64,
    /// Events published to all consumers.
    pub(crate) published: AtomicU64,
    /// Most bytes that waited for one consumer.
    pub(crate) queued_max: AtomicU64,
    /// Set once all consumers are connected.
    pub(crate) may_publish: AtomicBool,
    /// Set to end publishing; the server then sets `has_ended`.
    pub(crate) stop_publishing: AtomicBool,
    pub(crate) has_ended: AtomicBool,
    /// Planned time of the first tick, in nanoseconds of the server's clock.
    pub(crate) begin_ns: AtomicU64,
    pub(crate) stop: AtomicBool,
}

/// What a consumer tells about what it has read.
#[derive(Clone, Copy, Debug)]
pub enum Observed<'a> {
    /// Bytes of one read, which are not decoded.
    Bytes(&'a [u8]),
    /// A tick that the nth consumer has decoded.
    Tick { consumer: usize, tick: SeenTick },
}

/// How consumers separate messages.
enum Separation {
    /// Each message ends with a zero byte.
    ZeroByte,
    /// All messages have this many bytes.
    Length(u64),
    /// Each message is decoded; one reader per socket.
    Decoded(Vec<TickReader>),
    /// The same for FIX.
    Fix(Vec<FixTickReader>),
}

/// All consumers, in the calling thread.
pub struct ConsumerPool {
    pub(crate) sockets: Vec<TcpStream>,
    /// Connections that stay open and do not read.
    _stalled: Vec<TcpStream>,
    pub(crate) neighbours: Option<Neighbours>,
    buffer: Vec<u8>,
    pub messages: u64,
    pub octets: u64,
    separation: Separation,
}

impl ConsumerPool {
    /// Connects consumers of our broker; `stalled` more do not read.
    pub(crate) fn stomp(
        address: SocketAddr,
        topic: &str,
        consumers: usize,
        stalled: usize,
        body: BodyReader,
    ) -> ConsumerPool {
        let open = |_| subscriber(address, None, topic, body).expect("the server listens and answers");
        let stalled: Vec<_> = (0..stalled).map(open).collect();
        ConsumerPool {
            _stalled: stalled,
            ..ConsumerPool::of_frames((0..consumers).map(open).collect(), Framing::Stomp, body)
        }
    }

    /// Connects FIX sessions that subscribe the best prices and trades of all securities and decode
    /// each message.
    pub(crate) fn fix(
        address: SocketAddr,
        reference: &RefData,
        consumers: usize,
    ) -> Result<ConsumerPool, BoxError> {
        let target = LoadTarget::new(address, FixServerKind::Pitlane);
        let open = |nth| LoadSession::open(&target, nth)?.subscribe_prices(reference);
        let sockets = (0..consumers).map(open).collect::<Result<Vec<_>, _>>()?;
        let readers = sockets.iter().map(|_| FixTickReader::default()).collect();
        Ok(ConsumerPool::separated(sockets, Separation::Fix(readers)))
    }

    /// Creates consumers that decode each message, or that only count it.
    pub(crate) fn of_frames(sockets: Vec<TcpStream>, framing: Framing, body: BodyReader) -> ConsumerPool {
        let separation = match (body, framing) {
            (BodyReader::None, Framing::Stomp) => Separation::ZeroByte,
            (BodyReader::None, Framing::Nats { length }) => Separation::Length(length),
            _ => Separation::Decoded(sockets.iter().map(|_| TickReader::new(framing, body)).collect()),
        };
        ConsumerPool::separated(sockets, separation)
    }

    fn separated(sockets: Vec<TcpStream>, separation: Separation) -> ConsumerPool {
        let (stalled, buffer) = (Vec::new(), vec![0; READ_BYTES]);
        ConsumerPool {
            sockets,
            _stalled: stalled,
            neighbours: None,
            buffer,
            messages: 0,
            octets: 0,
            separation,
        }
    }

    pub(crate) fn decodes(&self) -> bool {
        matches!(self.separation, Separation::Decoded(_) | Separation::Fix(_))
    }

    /// Reads for a warm-up and then for `time`, and returns the deliveries per second. `after_poll`
    /// is that of [`ConsumerPool::read_while`].
    pub(crate) fn throughput(
        &mut self,
        shared: &FanOutState,
        time: Duration,
        mut after_poll: impl FnMut(u64),
    ) -> f64 {
        self.read_while(shared, WARM_UP, |_| {}, &mut after_poll);
        let (messages, begin) = (self.messages, Instant::now());
        self.read_while(shared, time, |_| {}, &mut after_poll);
        (self.messages - messages) as f64 / begin.elapsed().as_secs_f64()
    }

    pub(crate) fn read_for(&mut self, shared: &FanOutState, time: Duration, observe: impl FnMut(Observed)) {
        self.read_while(shared, time, observe, |_| {});
    }

    /// Reads for `time`, and calls `after_poll` with the number of messages so far after each poll
    /// of all sockets.
    pub fn read_while(
        &mut self,
        shared: &FanOutState,
        time: Duration,
        mut observe: impl FnMut(Observed),
        mut after_poll: impl FnMut(u64),
    ) {
        shared.may_publish.store(true, Ordering::Release);
        let end = Instant::now() + time;
        let deadline = end + TIMEOUT;
        let messages_before = self.messages;
        while Instant::now() < end || self.messages == messages_before && Instant::now() < deadline {
            let idle = self.poll(shared, &mut observe);
            after_poll(self.messages);
            if idle {
                spin_loop();
            }
        }
    }

    /// Reads what has arrived on each socket, and returns whether that was nothing.
    pub(crate) fn poll(&mut self, shared: &FanOutState, observe: &mut impl FnMut(Observed)) -> bool {
        let mut idle = true;
        for (nth, socket) in self.sockets.iter_mut().enumerate() {
            match socket.read(&mut self.buffer) {
                Ok(0) => panic!("the server closed the connection"),
                Ok(read) => {
                    let bytes = &mut self.buffer[..read];
                    self.octets += read as u64;
                    match &mut self.separation {
                        Separation::Length(length) => self.messages = self.octets / *length,
                        Separation::ZeroByte => self.messages += memchr::memchr_iter(0, bytes).count() as u64,
                        Separation::Decoded(readers) => {
                            let observe = |tick| observe(Observed::Tick { consumer: nth, tick });
                            self.messages += readers[nth].read(bytes, observe);
                        }
                        Separation::Fix(readers) => {
                            let observe = |tick| observe(Observed::Tick { consumer: nth, tick });
                            self.messages += readers[nth].read(bytes, observe);
                        }
                    }
                    observe(Observed::Bytes(bytes));
                    idle = false;
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(error) => panic!("{error}"),
            }
        }
        shared.delivered.store(self.messages, Ordering::Release);
        if idle && let Some(neighbours) = &mut self.neighbours {
            neighbours.step();
        }
        idle
    }
}

/// Connects a consumer of our broker that is subscribed when this returns.
pub(crate) fn subscriber(
    address: SocketAddr,
    login: Option<&LoadLogin>,
    topic: &str,
    body: BodyReader,
) -> io::Result<TcpStream> {
    let mut socket = TcpStream::connect(address)?;
    socket.write_all(hello(login, topic, body).as_bytes())?;
    // CONNECTED and RECEIPT.
    read_frames(&mut socket, 2)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Reads frames byte by byte, so that nothing behind them is consumed.
pub(crate) fn read_frames(socket: &mut TcpStream, count: usize) -> io::Result<()> {
    let (mut byte, mut seen) = ([0], 0);
    while seen < count {
        socket.read_exact(&mut byte)?;
        seen += usize::from(byte[0] == 0);
    }
    Ok(())
}

/// Returns the frames with which a consumer connects and subscribes.
pub(crate) fn hello(login: Option<&LoadLogin>, topic: &str, body: BodyReader) -> String {
    let login = login
        .map_or(String::new(), |LoadLogin { name, secret }| format!("login:{name}\npasscode:{secret}\n"));
    let accept = match body {
        BodyReader::Sbe => "accept:application/x-pitlane-sbe\n",
        BodyReader::SharedSbe => "accept:application/x-pitlane-sbe\nbatch:true\n",
        BodyReader::None | BodyReader::SimdJson | BodyReader::SerdeJson => "",
    };
    format!(
        "CONNECT\naccept-version:1.2\n{login}\n\0SUBSCRIBE\nid:1\ndestination:/topic/{topic}\n{accept}receipt:r\n\n\0"
    )
}
