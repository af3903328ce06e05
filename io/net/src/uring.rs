//! The io_uring driver, on glommio.
//!
//! glommio reads and writes sockets by plain non-blocking calls and uses the ring to learn when
//! they are ready. So it fits behind the same interface as epoll: each of our cycles is one run of
//! its executor, and each stream has a waker that records its token.
//!
//! It lacks three things, which are worked around:
//! - It binds listeners in its own way (always SO_REUSEPORT, a fixed backlog) and accepts none of
//!   ours. So this driver accepts connections itself, and learns of them through a stream made from
//!   the listening socket: the ring reports that it is readable, which is sufficient.
//! - It does not return sockets. A released connection is duplicated from our own process by
//!   `pidfd_getfd`.
//! - It writes one buffer at a time, so a large TLS output takes a call for each record.

use std::future::{Future, poll_fn};
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures_lite::io::{AsyncRead, AsyncWrite};
use glommio::timer::Timer;
use glommio::{LocalExecutor, LocalExecutorBuilder, Placement};
use io_uring::{IoUring, Probe, opcode};
use pitlane_runtime::wakeup::Wakeup;
use rustix::process::{
    ForeignRawFd, PidfdFlags, PidfdGetfdFlags, Resource, getpid, getrlimit, pidfd_getfd, pidfd_open,
};
use socket2_of_glommio::Socket;

use super::token::{ReadyToken, WAKEUP};

/// Bytes of lockable memory that glommio requires at least.
const MEMLOCK_BYTES_MIN: u64 = 512 * 1024;
/// Entries of each ring. Requests beyond it wait in glommio's own queue.
const RING_DEPTH: usize = 1_024;
/// Bytes registered for file I/O, which is not used here: the minimum.
const IO_MEMORY_BYTES: usize = 64 * 1024;

pub(super) struct Uring {
    // Dropped before the executor, to which it belongs.
    wakeup_end: Option<UringStream>,
    wakeup: Wakeup,
    woken: Arc<Mutex<WokenTokens>>,
    ready: Vec<ReadyToken>,
    executor: LocalExecutor,
    process: Arc<OwnedFd>,
}

impl Uring {
    /// Opens the driver, or returns the reason why it cannot be used.
    pub(super) fn open() -> Result<Uring, String> {
        probe()?;
        let process =
            pidfd_open(getpid(), PidfdFlags::empty()).map_err(|error| format!("pidfd_open: {error}"))?;
        let executor = LocalExecutorBuilder::new(Placement::Unbound)
            .ring_depth(RING_DEPTH)
            .io_memory(IO_MEMORY_BYTES)
            .make()
            .map_err(|error| format!("glommio does not start: {error}"))?;
        let (wakeup, end) = wakeup().map_err(|error| format!("no socket for waking: {error}"))?;
        let woken = Arc::new(Mutex::new(WokenTokens::default()));
        let mut uring = Uring {
            wakeup_end: None,
            wakeup,
            woken,
            ready: Vec::new(),
            executor,
            process: Arc::new(process),
        };
        let registrar = uring.registrar();
        uring.wakeup_end = Some(uring.executor.run(async { registrar.attach(WAKEUP, end) }));
        uring.check_detach()?;
        Ok(uring)
    }

    /// Checks that `detach` works. Sandboxes may forbid what it needs, and that is better known at
    /// the start.
    fn check_detach(&self) -> Result<(), String> {
        let end = self.wakeup_end.as_ref().expect("the wake-up has just been attached");
        let back = self.registrar().detach(end);
        back.map(drop).map_err(|error| format!("a socket cannot be handed on (pidfd_getfd: {error})"))
    }

    pub(super) fn registrar(&self) -> UringRegistrar {
        UringRegistrar { woken: Arc::clone(&self.woken), process: Arc::clone(&self.process) }
    }

    pub(super) fn wakeup(&self) -> Wakeup {
        self.wakeup.clone()
    }

    pub(super) fn run_cycle<R>(&mut self, inside: impl FnOnce(&[ReadyToken]) -> R) -> R {
        let Uring { wakeup_end, woken, ready, executor, .. } = self;
        executor.run(async {
            ready.clear();
            // One waker serves reading and writing, so both may be possible.
            ready.extend(lock(woken).tokens.drain(..).map(|token| ReadyToken {
                token,
                readable: true,
                writable: true,
                ended: false,
            }));
            if ready.iter().any(|ready| ready.token == WAKEUP) {
                wakeup_end.iter_mut().for_each(drain_wakeups);
            }
            inside(ready)
        })
    }

    pub(super) fn wait(&mut self, at_most: Duration) {
        let Uring { woken, executor, .. } = self;
        executor.run(async {
            let mut timer = Timer::new(at_most);
            poll_fn(|context| {
                let mut woken = lock(woken);
                if !woken.tokens.is_empty() {
                    return Poll::Ready(());
                }
                woken.waiting_task = Some(context.waker().clone());
                drop(woken);
                Pin::new(&mut timer).poll(context).map(drop)
            })
            .await;
            lock(woken).waiting_task = None;
        });
    }
}

/// Creates the smallest possible ring and frees it at once.
pub(super) fn make_ring() -> Result<(), String> {
    IoUring::new(1).map(drop).map_err(|error| error.to_string())
}

/// Checks whether glommio can run here. It is checked first because glommio panics where it cannot.
fn probe() -> Result<(), String> {
    let ring = IoUring::new(8).map_err(|error| format!("the kernel refuses io_uring ({error})"))?;
    let mut probe = Probe::new();
    let asked = ring.submitter().register_probe(&mut probe);
    asked.map_err(|error| format!("io_uring of this kernel is too old ({error}); 5.8 is needed"))?;
    // The newest operations that glommio uses.
    let needed = [opcode::Accept::CODE, opcode::OpenAt::CODE, opcode::Send::CODE, opcode::Recv::CODE];
    if !needed.iter().all(|&code| probe.is_supported(code)) {
        return Err("io_uring of this kernel is too old; 5.8 is needed".to_owned());
    }
    match getrlimit(Resource::Memlock).current {
        Some(limit) if limit < MEMLOCK_BYTES_MIN => Err(format!(
            "{limit} bytes of memory may be locked (ulimit -l), and {MEMLOCK_BYTES_MIN} are needed"
        )),
        _ => Ok(()),
    }
}

/// Creates a wake-up that sends a byte through a socket pair. If the byte does not fit, others are
/// pending already.
fn wakeup() -> io::Result<(Wakeup, TcpStream)> {
    use std::io::Write;
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let wakeup = Wakeup::new(move || _ = (&ours).write(&[1]));
    Ok((wakeup, TcpStream::from(OwnedFd::from(theirs))))
}

/// Reads the pending bytes of the wake-up, until the driver reports the next one.
fn drain_wakeups(end: &mut UringStream) {
    let mut bytes = [0; 64];
    while matches!(end.read(&mut bytes), Ok(count) if count > 0) {}
}

/// The woken tokens. Only wakers on the same thread write it, so the lock is never contended.
#[derive(Default)]
struct WokenTokens {
    /// Woken tokens, at most two for each stream: one for reading, one for writing.
    tokens: Vec<usize>,
    /// Waker of the waiting thread's task.
    waiting_task: Option<Waker>,
}

fn lock(woken: &Mutex<WokenTokens>) -> MutexGuard<'_, WokenTokens> {
    woken.lock().unwrap_or_else(PoisonError::into_inner)
}

struct TokenWaker {
    token: usize,
    woken: Arc<Mutex<WokenTokens>>,
}

impl Wake for TokenWaker {
    fn wake(self: Arc<TokenWaker>) {
        let waiting_task = {
            let mut woken = lock(&self.woken);
            woken.tokens.push(self.token);
            woken.waiting_task.take()
        };
        if let Some(waiting_task) = waiting_task {
            waiting_task.wake();
        }
    }
}

pub(super) struct UringRegistrar {
    woken: Arc<Mutex<WokenTokens>>,
    process: Arc<OwnedFd>,
}

impl UringRegistrar {
    pub(super) fn attach(&self, token: usize, stream: TcpStream) -> UringStream {
        let stream = glommio::net::TcpStream::from(Socket::from(stream));
        let waker = Waker::from(Arc::new(TokenWaker { token, woken: Arc::clone(&self.woken) }));
        let mut stream = UringStream { stream, waker };
        stream.expect_more();
        stream
    }

    pub(super) fn detach(&self, stream: &UringStream) -> io::Result<TcpStream> {
        let number = stream.stream.as_raw_fd() as ForeignRawFd;
        let socket = pidfd_getfd(&self.process, number, PidfdGetfdFlags::empty())?;
        Ok(TcpStream::from(socket))
    }

    /// Creates a stream that is never read: its waker fires when the listener has a pending
    /// connection.
    pub(super) fn watch(&self, token: usize, listener: &TcpListener) -> io::Result<UringStream> {
        let socket = OwnedFd::from(listener.try_clone()?);
        Ok(self.attach(token, TcpStream::from(socket)))
    }
}

pub(super) struct UringStream {
    stream: glommio::net::TcpStream,
    waker: Waker,
}

impl UringStream {
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut context = Context::from_waker(&self.waker);
        let count = ready(Pin::new(&mut self.stream).poll_read(&mut context, buffer))?;
        if count > 0 && count < buffer.len() {
            self.expect_more();
        }
        Ok(count)
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut context = Context::from_waker(&self.waker);
        ready(Pin::new(&mut self.stream).poll_write(&mut context, bytes))
    }

    pub(super) fn write_vectored(&mut self, parts: &[io::IoSlice<'_>]) -> io::Result<usize> {
        let mut context = Context::from_waker(&self.waker);
        ready(Pin::new(&mut self.stream).poll_write_vectored(&mut context, parts))
    }

    pub(super) fn is_connected(&self) -> bool {
        self.stream.peer_addr().is_ok()
    }

    pub(super) fn shutdown_write(&mut self) {
        let mut context = Context::from_waker(&self.waker);
        // The peer may be gone already, which has the same effect.
        _ = Pin::new(&mut self.stream).poll_close(&mut context);
    }

    /// Registers the waker; glommio queries the ring by itself after a short read.
    fn expect_more(&mut self) {
        let mut context = Context::from_waker(&self.waker);
        _ = Pin::new(&mut self.stream).poll_read(&mut context, &mut []);
    }
}

fn ready(poll: Poll<io::Result<usize>>) -> io::Result<usize> {
    match poll {
        Poll::Ready(result) => result,
        Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
    }
}
