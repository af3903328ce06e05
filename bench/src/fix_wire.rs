//! FIX over loopback: the whole service on one core, the load on another. Orders at full load and
//! at a steady rate, from an order to its first Execution Report; compared with a bare echo of the
//! same bytes and with an acceptor on QuickFIX.

mod receive_stamps;
mod server;
mod session;

use std::error::Error;
use std::time::{Duration, Instant};

pub use self::server::{FixServer, FixServerKind, MovingPrices, ServedStomp, echo, serve_fix};
pub(crate) use self::session::{BUY, LoadSession, ORDER_QTY, SELL, fix_timestamp};
pub use self::session::{LoadLogin, LoadTarget};
use crate::conditions::Pinning;
use crate::convert::duration_ns;
use crate::report::recording::{Recording, SLICE_NS};

pub(crate) type BoxError = Box<dyn Error>;

/// Unanswered orders of one session at full load.
const WINDOW: usize = 512;
/// Bytes of one read of the load generator.
pub(crate) const READ_BYTES: usize = 256 * 1_024;
/// Longest wait for late reports.
pub(crate) const REPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest start-up time of a service.
const START_MAX: Duration = Duration::from_secs(20);

/// Returns the orders per second of all sessions together, from the first order to the last first
/// report. All orders are built before.
pub fn full_load(
    peer: FixServerKind,
    pinning: &Pinning,
    sessions: usize,
    orders: usize,
) -> Result<f64, BoxError> {
    let server = FixServer::start(peer, pinning, sessions)?;
    let target = LoadTarget::new(server.address, peer);
    let mut all = open_sessions(&target, 0, sessions)?;
    all.full_load(&target, orders)
}

/// Measures as [`full_load`] does, at a server that runs elsewhere, with sessions from the nth on.
/// Cancels all orders afterwards, so that the next load meets the same state.
pub fn remote_full_load(
    target: &LoadTarget,
    first: usize,
    sessions: usize,
    orders: usize,
) -> Result<f64, BoxError> {
    let mut all = open_sessions(target, first, sessions)?;
    let per_s = all.full_load(target, orders)?;
    if target.kind != FixServerKind::Echo {
        all.cancel_all()?;
    }
    Ok(per_s)
}

/// Sessions that send at once, in one thread.
struct SessionGroup(Vec<LoadSession>);

fn open_sessions(target: &LoadTarget, first: usize, count: usize) -> Result<SessionGroup, BoxError> {
    let sessions = (first..first + count).map(|nth| LoadSession::open(target, nth));
    sessions.collect::<Result<_, _>>().map(SessionGroup)
}

impl SessionGroup {
    fn full_load(&mut self, target: &LoadTarget, orders: usize) -> Result<f64, BoxError> {
        let frames = self.frames(|session| {
            let mut frames = vec![Vec::new(); orders];
            frames.iter_mut().for_each(|frame| session.order(frame));
            frames
        });
        let took = self.exchange(&frames, pattern(target.kind))?;
        Ok((self.0.len() * orders) as f64 / took.as_secs_f64())
    }

    /// Cancels the orders of a load.
    fn cancel_all(&mut self) -> Result<(), BoxError> {
        let frames = self.frames(|session| {
            let mut frames = vec![Vec::new(); session.begin_again()];
            frames.iter_mut().enumerate().for_each(|(nth, frame)| session.cancel(nth, frame));
            frames
        });
        self.exchange(&frames, CANCELED).map(|_| ())
    }

    fn frames(&mut self, of: impl Fn(&mut LoadSession) -> Vec<Vec<u8>>) -> Vec<Vec<Vec<u8>>> {
        self.0.iter_mut().map(of).collect()
    }

    /// Sends the frames of each session, at most [`WINDOW`] of them unanswered, and returns the
    /// time until the last one is answered.
    fn exchange(&mut self, frames: &[Vec<Vec<u8>>], pattern: &[u8]) -> Result<Duration, BoxError> {
        let mut buffer = vec![0; READ_BYTES];
        let begin = Instant::now();
        let mut open = self.0.len();
        while open > 0 {
            open = 0;
            for (session, frames) in self.0.iter_mut().zip(frames) {
                session.receive_reports(pattern, &mut buffer)?;
                let send_end = (WINDOW + session.answered).min(frames.len());
                if session.output.len() < READ_BYTES && session.sent < send_end {
                    for frame in &frames[session.sent..send_end] {
                        session.output.extend_from_slice(frame);
                    }
                    session.sent = send_end;
                }
                session.flush()?;
                open += usize::from(session.answered < frames.len());
            }
            if begin.elapsed() > Duration::from_secs(120) {
                let answered: usize = self.0.iter().map(|session| session.answered).sum();
                return Err(format!("only {answered} requests were answered").into());
            }
        }
        Ok(begin.elapsed())
    }
}

/// A load at planned times.
#[derive(Clone, Copy, Debug)]
pub struct SteadyLoad {
    /// Orders per second.
    pub rate: u64,
    pub orders: usize,
    /// Number of orders that stay open; older ones are cancelled, each after a new one was sent.
    /// `None`: all stay open.
    pub open_max: Option<usize>,
}

/// Latencies of a steady load.
pub struct SteadyLatencies {
    /// Until the load generator has read a report.
    pub read: Recording,
    /// Until the kernel has received it; empty unless the target is stamped. Reports that are read
    /// together have the time of the last one.
    pub received: Recording,
}

/// Measures from the planned time of each order to its first report. The first tenth is warm-up and
/// is not counted; `sample` is called about once per second with the server's process.
pub fn open_loop(
    peer: FixServerKind,
    pinning: &Pinning,
    load: SteadyLoad,
    mut sample: impl FnMut(u32, f64),
) -> Result<Recording, BoxError> {
    let server = FixServer::start(peer, pinning, 1)?;
    let target = LoadTarget::new(server.address, peer);
    let process = server.process();
    let mut recording = steady_load(&target, 0, load, |seconds| sample(process, seconds))?.read;
    recording.stages = server.stages();
    Ok(recording)
}

/// Measures as [`open_loop`] does, at a server that listens already, as its nth client.
pub fn steady_load(
    target: &LoadTarget,
    nth: usize,
    load: SteadyLoad,
    mut sample: impl FnMut(f64),
) -> Result<SteadyLatencies, BoxError> {
    let SteadyLoad { rate, orders, open_max } = load;
    let mut session = LoadSession::open(target, nth)?;
    let pattern = pattern(target.kind);
    let mut buffer = vec![0; READ_BYTES];
    let gap_ns = 1_000_000_000 / rate.max(1);
    let name = format!("{}-{rate}", target.kind.name());
    let mut read = Recording::new(&name, rate as f64, SLICE_NS);
    let mut received = Recording::new(&format!("{name}-kernel"), rate as f64, SLICE_NS);
    let mut frame = Vec::new();
    session.order(&mut frame);
    let begin = Instant::now() + Duration::from_millis(50);
    let planned = |nth: usize| begin + Duration::from_nanos(gap_ns * nth as u64);
    let deadline = planned(orders) + REPORT_TIMEOUT;
    let (warm_up, mut seconds) = (orders / 10, 0.0);
    while session.answered < orders {
        if session.sent < orders && Instant::now() >= planned(session.sent) {
            session.output.extend_from_slice(&frame);
            session.sent += 1;
            session.flush()?;
            frame.clear();
            if let Some(oldest) = open_max.and_then(|open| session.sent.checked_sub(open + 1)) {
                session.cancel(oldest, &mut frame);
            }
            session.order(&mut frame);
        }
        let before = session.answered;
        let reports = session.receive_reports(pattern, &mut buffer)?;
        let age = if reports > 0 { session.age() } else { None };
        for nth in before..before + reports {
            // Reports arrive in the sequence of their orders.
            let took = planned(nth).elapsed();
            if nth >= warm_up {
                let planned_ns = gap_ns * (nth - warm_up) as u64;
                read.count(planned_ns, duration_ns(took));
                if let Some(age) = age {
                    received.count(planned_ns, duration_ns(took.saturating_sub(age)));
                }
            }
        }
        if reports > 0 && begin.elapsed().as_secs_f64() >= seconds {
            sample(seconds);
            seconds += 1.0;
        }
        if Instant::now() > deadline {
            break;
        }
    }
    read.per_s_reached = session.answered as f64 / begin.elapsed().as_secs_f64();
    received.per_s_reached = read.per_s_reached;
    Ok(SteadyLatencies { read, received })
}

/// Measures one order at a time, each sent when the previous one was answered: what a client that
/// waits sees. It shows less than the truth whenever the server pauses, since nothing is sent
/// meanwhile. The first tenth is not counted.
pub fn closed_loop(peer: FixServerKind, pinning: &Pinning, orders: usize) -> Result<Recording, BoxError> {
    let server = FixServer::start(peer, pinning, 1)?;
    let mut session = LoadSession::open(&LoadTarget::new(server.address, peer), 0)?;
    let pattern = pattern(peer);
    let mut buffer = vec![0; READ_BYTES];
    let mut recording = Recording::new(&format!("{}-closed", peer.name()), 0.0, SLICE_NS);
    let (begin, warm_up) = (Instant::now(), orders / 10);
    for nth in 0..orders {
        let mut frame = Vec::new();
        session.order(&mut frame);
        session.output.extend_from_slice(&frame);
        let sent = Instant::now();
        session.flush()?;
        while session.receive_reports(pattern, &mut buffer)? == 0 {
            if sent.elapsed() > REPORT_TIMEOUT {
                return Err(format!("order {nth} was not answered").into());
            }
            session.flush()?;
        }
        if nth >= warm_up {
            recording.count(duration_ns(begin.elapsed()), duration_ns(sent.elapsed()));
        }
    }
    recording.per_s_reached = orders as f64 / begin.elapsed().as_secs_f64();
    recording.stages = server.stages();
    Ok(recording)
}

/// Bytes that only our first report of an order contains.
pub(crate) const FIRST_REPORT: &[u8] = b"\x01150=A\x01";
/// Bytes that only the report of a cancelled order contains: its OrdStatus.
const CANCELED: &[u8] = b"\x0139=4\x01";

/// Returns bytes that only the first answer to an order contains.
fn pattern(peer: FixServerKind) -> &'static [u8] {
    match peer {
        FixServerKind::Pitlane | FixServerKind::QuickFix { reports: 2.., .. } => FIRST_REPORT,
        FixServerKind::QuickFix { .. } => b"\x01150=0\x01",
        FixServerKind::Echo => b"\x0135=D\x01",
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn a_server_that_listens_already_is_measured_with_times_of_the_kernel() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let server = std::thread::spawn(move || echo(&listener, &stopped));
        let target = LoadTarget { stamped: true, ..LoadTarget::new(address, FixServerKind::Echo) };
        let load = SteadyLoad { rate: 1_000, orders: 100, open_max: None };
        let SteadyLatencies { read, received } = steady_load(&target, 0, load, |_| {}).unwrap();
        assert_eq!((read.name.as_str(), received.name.as_str()), ("echo-1000", "echo-1000-kernel"));
        assert_eq!(read.all.len(), 90, "all but the warm-up");
        assert!(received.all.len() <= 90 && received.all.max() <= read.all.max());
        assert!(remote_full_load(&target, 0, 1, 1_000).unwrap() > 0.0);
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        // The thread looks at `stop` when it has a connection.
        drop(std::net::TcpStream::connect(address));
        server.join().unwrap();
    }
}
