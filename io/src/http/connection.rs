//! One connection: its socket watched on the way to hyper, its deadlines, and its seat among all.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll, ready};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_rustls::server::TlsStream;

use super::framing::{Fault, Framing};
use super::house::House;
use super::service;
use super::settings::HttpSettings;

/// hyper's buffer for what it reads and writes: beyond the largest head, small answers are gathered in it.
const BUFFER_BYTES: usize = 64 * 1_024;

/// What is known of a connection while it lasts.
#[derive(Debug)]
pub struct Visit {
    pub local: SocketAddr,
    pub peer: SocketAddr,
    /// Whether it is encrypted.
    pub tls: bool,
    pub link: Arc<Link>,
    seat: RefCell<Option<Seat>>,
    /// The Host that was last found to be ours; empty: none yet.
    host: RefCell<Vec<u8>>,
}

impl Visit {
    /// Whether a Host is the one that was last found to be ours.
    pub fn is_same_host(&self, host: &[u8]) -> bool {
        !host.is_empty() && *self.host.borrow() == host
    }

    /// A Host is ours. Names of hosts have at most 253 octets, and a head has its limit anyway.
    pub fn keep_host(&self, host: &[u8]) {
        let mut kept = self.host.borrow_mut();
        kept.clear();
        kept.extend_from_slice(host);
    }

    /// For who goes on with the connection when it is no longer HTTP.
    pub fn take_seat(&self) -> Option<Seat> {
        self.seat.take()
    }
}

/// Serves a connection until either side ends it, it is too slow, or it becomes something else.
pub async fn serve(house: Rc<House>, stream: Stream, local: SocketAddr, peer: SocketAddr, seat: Seat) {
    let link = Arc::new(Link::new());
    let tls = matches!(stream, Stream::Tls(_));
    let seat = RefCell::new(Some(seat));
    let host = RefCell::default();
    let visit = Rc::new(Visit { local, peer, tls, link: link.clone(), seat, host });
    let socket = TokioIo::new(Watched { stream, framing: Framing::default(), link: link.clone() });
    let service = service_fn(|request| {
        let (house, visit) = (house.clone(), visit.clone());
        async move { Ok::<_, Infallible>(service::answer(&house, &visit, request).await) }
    });
    let mut builder = http1::Builder::new();
    // The head's deadline is ours: hyper has one for both a slow head and an idle connection.
    builder
        .max_header_size(house.settings.head_bytes_max)
        .max_buf_size(BUFFER_BYTES)
        .header_read_timeout(None);
    let mut connection = pin!(builder.serve_connection(socket, service).with_upgrades());
    let mut leaving = pin!(house.leaving.notified());
    let mut patience = Patience::new(&link, &house.settings);
    let mut alarm = pin!(sleep_until(patience.due));
    let mut is_leaving = false;
    poll_fn(|cx| {
        if !is_leaving && (leaving.as_mut().poll(cx).is_ready() || house.is_leaving()) {
            is_leaving = true;
            connection.as_mut().graceful_shutdown();
            patience.last = Some(Instant::now() + house.settings.drain_timeout);
        }
        if connection.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        loop {
            let due = patience.look(&link, &house.settings);
            // Mostly the deadline moves away, and the alarm looks again when it rings.
            if due < alarm.deadline() {
                alarm.as_mut().reset(due);
            }
            ready!(alarm.as_mut().poll(cx));
            if due <= Instant::now() {
                house.meter.timed_out.one_more();
                return Poll::Ready(());
            }
            alarm.as_mut().reset(due);
        }
    })
    .await;
}

/// What the socket and the service tell each other, and the deadlines are made of. Atomics only because an upgraded
/// connection may be handed to another task; all of it happens on one thread.
#[derive(Debug)]
pub struct Link {
    in_head: AtomicBool,
    busy: AtomicBool,
    /// Rises with each read and write.
    moved: AtomicU32,
    /// Zero, or a fault's place in the list.
    fault: AtomicU32,
}

const FAULTS: [Fault; 6] = [
    Fault::LengthTwice,
    Fault::LengthAndCoding,
    Fault::BadLength,
    Fault::BadCoding,
    Fault::BadChunk,
    Fault::BareLineFeed,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Part of a head has come; or nothing yet on a new connection.
    Head,
    Idle,
    Busy,
}

impl Link {
    fn new() -> Link {
        Link {
            in_head: AtomicBool::new(true),
            busy: AtomicBool::new(false),
            moved: AtomicU32::new(0),
            fault: AtomicU32::new(0),
        }
    }

    /// A request is being answered.
    pub fn begin(&self) {
        self.busy.store(true, Ordering::Relaxed);
    }

    /// Its answer has been handed over.
    pub fn finish(&self) {
        self.busy.store(false, Ordering::Relaxed);
    }

    /// What makes this connection untrustworthy.
    pub fn fault(&self) -> Option<Fault> {
        let place = self.fault.load(Ordering::Relaxed) as usize;
        place.checked_sub(1).map(|at| FAULTS[at])
    }

    fn read(&self, framing: &mut Framing, bytes: &[u8]) {
        self.count();
        if self.fault().is_some() {
            return;
        }
        if let Err(fault) = framing.feed(bytes) {
            let at = FAULTS.iter().position(|other| *other == fault).expect("the list has every fault");
            self.fault.store(at as u32 + 1, Ordering::Relaxed);
        }
        self.in_head.store(framing.is_in_head(), Ordering::Relaxed);
    }

    fn count(&self) {
        self.moved.store(self.moved.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// The phase, and what of its movement counts as progress in it: a head has to be complete, however it drips.
    fn mark(&self) -> (Phase, u32) {
        if self.busy.load(Ordering::Relaxed) {
            (Phase::Busy, self.moved.load(Ordering::Relaxed))
        } else if self.in_head.load(Ordering::Relaxed) {
            (Phase::Head, 0)
        } else {
            // A request after another is a new phase even if nobody saw the one between.
            (Phase::Idle, self.moved.load(Ordering::Relaxed))
        }
    }
}

/// When a connection is too slow.
#[derive(Debug)]
struct Patience {
    mark: (Phase, u32),
    due: Instant,
    /// Not later than this, when we stop.
    last: Option<Instant>,
}

impl Patience {
    fn new(link: &Link, settings: &HttpSettings) -> Patience {
        Patience { mark: link.mark(), due: Instant::now() + settings.head_timeout, last: None }
    }

    fn look(&mut self, link: &Link, settings: &HttpSettings) -> Instant {
        let mark = link.mark();
        if mark != self.mark {
            self.mark = mark;
            self.due = Instant::now()
                + match mark.0 {
                    Phase::Head => settings.head_timeout,
                    Phase::Idle => settings.idle_timeout,
                    Phase::Busy => settings.stall_timeout,
                };
        }
        self.last.map_or(self.due, |last| last.min(self.due))
    }
}

/// A socket, with or without TLS.
#[derive(Debug)]
pub enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    pub fn socket(&self) -> &TcpStream {
        match self {
            Stream::Plain(stream) => stream,
            Stream::Tls(stream) => stream.get_ref().0,
        }
    }
}

/// A socket whose bytes are looked at on their way in.
#[derive(Debug)]
pub struct Watched {
    stream: Stream,
    framing: Framing,
    link: Arc<Link>,
}

impl Watched {
    /// The socket itself, when it carries no requests any more.
    pub fn into_stream(self) -> Stream {
        self.stream
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Watched { stream, framing, link } = &mut *self;
        let before = buf.filled().len();
        ready!(Pin::new(stream).poll_read(cx, buf))?;
        link.read(framing, &buf.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, buf));
        self.link.count();
        Poll::Ready(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, bufs));
        self.link.count();
        Poll::Ready(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Stream::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Stream::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Stream::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

/// How many connections there are, in all and from each peer.
#[derive(Clone, Debug)]
pub struct Seats {
    shared: Rc<Shared>,
}

#[derive(Debug)]
struct Shared {
    max: usize,
    per_peer_max: usize,
    taken: RefCell<BTreeMap<IpAddr, usize>>,
    left: Notify,
}

/// Held for as long as the connection lasts, an upgraded one included.
#[derive(Debug)]
pub struct Seat {
    seats: Seats,
    peer: IpAddr,
}

impl Seats {
    pub fn new(max: usize, per_peer_max: usize) -> Seats {
        let shared = Shared { max, per_peer_max, taken: RefCell::default(), left: Notify::new() };
        Seats { shared: Rc::new(shared) }
    }

    pub fn take(&self, peer: IpAddr) -> Option<Seat> {
        let peer = peer.to_canonical();
        if self.len() >= self.shared.max {
            return None;
        }
        let mut taken = self.shared.taken.borrow_mut();
        let of_peer = taken.entry(peer).or_default();
        if *of_peer >= self.shared.per_peer_max {
            return None;
        }
        *of_peer += 1;
        Some(Seat { seats: self.clone(), peer })
    }

    pub fn len(&self) -> usize {
        self.shared.taken.borrow().values().sum()
    }

    pub async fn all_free(&self) {
        while self.len() > 0 {
            self.shared.left.notified().await;
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let shared = &self.seats.shared;
        let mut taken = shared.taken.borrow_mut();
        if let Some(of_peer) = taken.get_mut(&self.peer) {
            *of_peer -= 1;
            if *of_peer == 0 {
                taken.remove(&self.peer);
            }
        }
        shared.left.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_are_counted_in_all_and_by_peer_and_given_back() {
        let seats = Seats::new(3, 2);
        let peer = |n| IpAddr::from([10, 0, 0, n]);
        let first = seats.take(peer(1)).unwrap();
        let _second = seats.take(peer(1)).unwrap();
        assert!(seats.take(peer(1)).is_none());
        let third = seats.take(peer(2)).unwrap();
        assert!(seats.take(peer(3)).is_none());
        assert_eq!(seats.len(), 3);
        drop(first);
        drop(third);
        assert_eq!(seats.shared.taken.borrow().len(), 1, "a peer without connections is forgotten");
        assert!(seats.take(peer(1)).is_some());
    }

    #[test]
    fn only_the_end_of_a_head_counts_as_progress_in_it() {
        let (link, mut framing) = (Link::new(), Framing::default());
        let fresh = link.mark();
        assert_eq!(fresh.0, Phase::Head);
        link.read(&mut framing, b"GET / HTTP/1.1\r\n");
        link.read(&mut framing, b"Host: a");
        assert_eq!(link.mark(), fresh);
        link.read(&mut framing, b"\r\n\r\n");
        link.begin();
        assert_eq!(link.mark().0, Phase::Busy);
        link.finish();
        let idle = link.mark();
        assert_eq!(idle.0, Phase::Idle);
        link.read(&mut framing, b"G");
        assert_eq!(link.mark().0, Phase::Head);
    }
}
