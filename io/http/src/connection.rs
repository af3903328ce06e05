//! One connection: its socket, watched before hyper reads it, its deadlines, and its slot among all
//! connections.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
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
use tokio::time::{Instant, sleep_until};
use tokio_rustls::server::TlsStream;

use super::admission::ConnectionSlot;
use super::app_state::AppState;
use super::framing::{Framing, FramingFault};
use super::service;
use super::settings::HttpSettings;

/// Size of hyper's buffer for reads and writes: more than the largest head, so small responses are
/// batched in it.
const BUFFER_BYTES: usize = 64 * 1_024;

/// Properties of a connection while it lasts.
#[derive(Debug)]
pub struct ConnectionInfo {
    pub local: SocketAddr,
    pub peer: SocketAddr,
    /// Whether it is encrypted.
    pub tls: bool,
    pub progress: Arc<ConnectionProgress>,
    slot: RefCell<Option<ConnectionSlot>>,
    /// The Host that was last accepted as ours; empty if there was none yet.
    host: RefCell<Vec<u8>>,
}

impl ConnectionInfo {
    /// Returns whether a Host is the one that was last accepted as ours.
    pub fn is_same_host(&self, host: &[u8]) -> bool {
        !host.is_empty() && *self.host.borrow() == host
    }

    /// Stores a Host that is ours. Host names have at most 253 octets, and a head has its limit
    /// anyway.
    pub fn set_known_host(&self, host: &[u8]) {
        let mut known = self.host.borrow_mut();
        known.clear();
        known.extend_from_slice(host);
    }

    /// Takes the connection's slot, for the task that serves it when it is no longer HTTP.
    pub fn take_slot(&self) -> Option<ConnectionSlot> {
        let slot = self.slot.take();
        slot.iter().for_each(ConnectionSlot::set_upgraded);
        slot
    }

    /// Records that a valid login came with a request.
    pub fn set_known(&self) {
        self.slot.borrow().iter().for_each(ConnectionSlot::set_known);
    }

    /// Returns whether only the reserve was left for the connection and it has not sent a login.
    pub fn is_on_probation(&self) -> bool {
        self.slot.borrow().as_ref().is_some_and(ConnectionSlot::is_on_probation)
    }

    /// Returns whether a client of its network has logged in before.
    pub fn is_from_known_network(&self) -> bool {
        self.slot.borrow().as_ref().is_some_and(ConnectionSlot::is_from_known_network)
    }

    fn set_resting(&self, since: Option<Instant>) {
        self.slot.borrow().iter().for_each(|slot| slot.set_resting(since));
    }
}

/// Serves a connection until either side ends it, it is too slow, or it is upgraded.
pub async fn serve(
    app: Rc<AppState>,
    stream: ClientStream,
    local: SocketAddr,
    peer: SocketAddr,
    slot: ConnectionSlot,
) {
    let progress = Arc::new(ConnectionProgress::new());
    let tls = matches!(stream, ClientStream::Tls(_));
    let slot = RefCell::new(Some(slot));
    let host = RefCell::default();
    let info = Rc::new(ConnectionInfo { local, peer, tls, progress: progress.clone(), slot, host });
    let socket =
        TokioIo::new(CheckedStream { stream, framing: Framing::default(), progress: progress.clone() });
    let service = service_fn(|request| {
        let (app, info) = (app.clone(), info.clone());
        async move { Ok::<_, Infallible>(service::respond(&app, &info, request).await) }
    });
    let mut builder = http1::Builder::new();
    // The head's deadline is ours: hyper has one for both a slow head and an idle connection.
    builder.max_header_size(app.settings.head_bytes_max).max_buf_size(BUFFER_BYTES).header_read_timeout(None);
    let mut connection = pin!(builder.serve_connection(socket, service).with_upgrades());
    let mut stopping = pin!(app.stopping.notified());
    let mut deadlines = ConnectionDeadlines::new(&progress, &app.settings);
    let mut alarm = pin!(sleep_until(deadlines.due));
    let mut is_stopping = false;
    poll_fn(|cx| {
        if !is_stopping && (stopping.as_mut().poll(cx).is_ready() || app.is_stopping()) {
            is_stopping = true;
            connection.as_mut().graceful_shutdown();
            deadlines.last = Some(Instant::now() + app.settings.drain_timeout);
        }
        if connection.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        loop {
            let due = deadlines.update(&progress, &app.settings);
            info.set_resting(deadlines.rests_since());
            // Usually the deadline moves away, and the timer is set again when it fires.
            if due < alarm.deadline() {
                alarm.as_mut().reset(due);
            }
            ready!(alarm.as_mut().poll(cx));
            if due <= Instant::now() {
                app.meter.timed_out.increment();
                return Poll::Ready(());
            }
            alarm.as_mut().reset(due);
        }
    })
    .await;
}

/// State that the socket and the service share, and from which the deadlines are computed. Atomics
/// only because an upgraded connection may be passed to another task; all of it happens on one
/// thread.
#[derive(Debug)]
pub struct ConnectionProgress {
    in_head: AtomicBool,
    busy: AtomicBool,
    /// Incremented by each read and write.
    moved: AtomicU32,
    /// Zero, or one more than the fault's index in `FAULTS`.
    fault: AtomicU32,
}

const FAULTS: [FramingFault; 6] = [
    FramingFault::LengthTwice,
    FramingFault::LengthAndCoding,
    FramingFault::BadLength,
    FramingFault::BadCoding,
    FramingFault::BadChunk,
    FramingFault::BareLineFeed,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestPhase {
    /// Part of a head has arrived; or nothing yet on a new connection.
    Head,
    Idle,
    Busy,
}

impl ConnectionProgress {
    fn new() -> ConnectionProgress {
        ConnectionProgress {
            in_head: AtomicBool::new(true),
            busy: AtomicBool::new(false),
            moved: AtomicU32::new(0),
            fault: AtomicU32::new(0),
        }
    }

    /// Records that a request is being answered.
    pub fn begin(&self) {
        self.busy.store(true, Ordering::Relaxed);
    }

    /// Records that the response has been handed over.
    pub fn finish(&self) {
        self.busy.store(false, Ordering::Relaxed);
    }

    /// Returns the fault that makes this connection untrustworthy, if there is one.
    pub fn fault(&self) -> Option<FramingFault> {
        let code = self.fault.load(Ordering::Relaxed) as usize;
        code.checked_sub(1).map(|at| FAULTS[at])
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

    /// Returns the phase, and the counter that measures progress in it. Bytes of a head are no
    /// progress: the head must be complete in time, however slowly it arrives.
    fn mark(&self) -> (RequestPhase, u32) {
        if self.busy.load(Ordering::Relaxed) {
            (RequestPhase::Busy, self.moved.load(Ordering::Relaxed))
        } else if self.in_head.load(Ordering::Relaxed) {
            (RequestPhase::Head, 0)
        } else {
            // A request after another is a new phase even if the one between was not observed.
            (RequestPhase::Idle, self.moved.load(Ordering::Relaxed))
        }
    }
}

/// Deadlines of a connection.
#[derive(Debug)]
struct ConnectionDeadlines {
    mark: (RequestPhase, u32),
    /// When this phase began.
    since: Instant,
    due: Instant,
    /// Latest deadline, when the server stops.
    last: Option<Instant>,
}

impl ConnectionDeadlines {
    fn new(progress: &ConnectionProgress, settings: &HttpSettings) -> ConnectionDeadlines {
        let since = Instant::now();
        ConnectionDeadlines { mark: progress.mark(), since, due: since + settings.head_timeout, last: None }
    }

    fn update(&mut self, progress: &ConnectionProgress, settings: &HttpSettings) -> Instant {
        let mark = progress.mark();
        if mark != self.mark {
            self.mark = mark;
            self.since = Instant::now();
            self.due = self.since
                + match mark.0 {
                    RequestPhase::Head => settings.head_timeout,
                    RequestPhase::Idle => settings.idle_timeout,
                    RequestPhase::Busy => settings.stall_timeout,
                };
        }
        self.last.map_or(self.due, |last| last.min(self.due))
    }

    /// Returns the time since which no request is being answered; `None` if one is.
    fn rests_since(&self) -> Option<Instant> {
        (self.mark.0 != RequestPhase::Busy).then_some(self.since)
    }
}

/// A socket, with or without TLS.
#[derive(Debug)]
pub enum ClientStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl ClientStream {
    pub fn socket(&self) -> &TcpStream {
        match self {
            ClientStream::Plain(stream) => stream,
            ClientStream::Tls(stream) => stream.get_ref().0,
        }
    }
}

/// A socket whose received bytes are checked before hyper gets them.
#[derive(Debug)]
pub struct CheckedStream {
    stream: ClientStream,
    framing: Framing,
    progress: Arc<ConnectionProgress>,
}

impl CheckedStream {
    /// Returns the socket itself, once it carries no requests any more.
    pub fn into_stream(self) -> ClientStream {
        self.stream
    }
}

impl AsyncRead for CheckedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let CheckedStream { stream, framing, progress } = &mut *self;
        let before = buf.filled().len();
        ready!(Pin::new(stream).poll_read(cx, buf))?;
        progress.read(framing, &buf.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for CheckedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, buf));
        self.progress.count();
        Poll::Ready(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, bufs));
        self.progress.count();
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

impl AsyncRead for ClientStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            ClientStream::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            ClientStream::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            ClientStream::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            ClientStream::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            ClientStream::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            ClientStream::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            ClientStream::Plain(stream) => stream.is_write_vectored(),
            ClientStream::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            ClientStream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            ClientStream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            ClientStream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            ClientStream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_a_head_counts_as_its_progress() {
        let (progress, mut framing) = (ConnectionProgress::new(), Framing::default());
        let fresh = progress.mark();
        assert_eq!(fresh.0, RequestPhase::Head);
        progress.read(&mut framing, b"GET / HTTP/1.1\r\n");
        progress.read(&mut framing, b"Host: a");
        assert_eq!(progress.mark(), fresh);
        progress.read(&mut framing, b"\r\n\r\n");
        progress.begin();
        assert_eq!(progress.mark().0, RequestPhase::Busy);
        progress.finish();
        let idle = progress.mark();
        assert_eq!(idle.0, RequestPhase::Idle);
        progress.read(&mut framing, b"G");
        assert_eq!(progress.mark().0, RequestPhase::Head);
    }
}
