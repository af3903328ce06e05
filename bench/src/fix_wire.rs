//! FIX over loopback: the whole service on one core, the load on another. Orders at full load and
//! at a steady rate, from an order to its first Execution Report; compared with a bare echo of the
//! same bytes and with an acceptor on QuickFIX.

mod server;
mod session;

use std::error::Error;
use std::time::{Duration, Instant};

pub use self::server::{FixServer, FixServerKind, MovingPrices, ServedStomp, serve_fix};
pub(crate) use self::session::{BUY, LoadSession, ORDER_QTY, SELL, fix_timestamp};
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
    let mut all = Vec::new();
    for nth in 0..sessions {
        let mut session = LoadSession::open(server.address, nth, peer != FixServerKind::Echo)?;
        let frames: Vec<Vec<u8>> = (0..orders)
            .map(|_| {
                let mut out = Vec::new();
                session.order(&mut out);
                out
            })
            .collect();
        all.push((session, frames));
    }
    let pattern = pattern(peer);
    let mut buffer = vec![0; READ_BYTES];
    let begin = Instant::now();
    let mut open = sessions;
    while open > 0 {
        open = 0;
        for (session, frames) in &mut all {
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
            let answered: usize = all.iter().map(|(session, _)| session.answered).sum();
            return Err(format!("only {answered} orders were answered").into());
        }
    }
    Ok((sessions * orders) as f64 / begin.elapsed().as_secs_f64())
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

/// Measures from the planned time of each order to its first report. The first tenth is warm-up and
/// is not counted; `sample` is called about once per second with the server's process.
pub fn open_loop(
    peer: FixServerKind,
    pinning: &Pinning,
    load: SteadyLoad,
    mut sample: impl FnMut(u32, f64),
) -> Result<Recording, BoxError> {
    let SteadyLoad { rate, orders, open_max } = load;
    let server = FixServer::start(peer, pinning, 1)?;
    let mut session = LoadSession::open(server.address, 0, peer != FixServerKind::Echo)?;
    let pattern = pattern(peer);
    let mut buffer = vec![0; READ_BYTES];
    let gap_ns = 1_000_000_000 / rate.max(1);
    let name = format!("{}-{rate}", peer.name());
    let mut recording = Recording::new(&name, rate as f64, SLICE_NS);
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
        for nth in before..before + reports {
            // Reports arrive in the sequence of their orders.
            let took = duration_ns(planned(nth).elapsed());
            if nth >= warm_up {
                recording.count(gap_ns * (nth - warm_up) as u64, took);
            }
        }
        if reports > 0 && begin.elapsed().as_secs_f64() >= seconds {
            sample(server.process(), seconds);
            seconds += 1.0;
        }
        if Instant::now() > deadline {
            break;
        }
    }
    recording.per_s_reached = session.answered as f64 / begin.elapsed().as_secs_f64();
    recording.stages = server.stages();
    Ok(recording)
}

/// Measures one order at a time, each sent when the previous one was answered: what a client that
/// waits sees. It shows less than the truth whenever the server pauses, since nothing is sent
/// meanwhile. The first tenth is not counted.
pub fn closed_loop(peer: FixServerKind, pinning: &Pinning, orders: usize) -> Result<Recording, BoxError> {
    let server = FixServer::start(peer, pinning, 1)?;
    let mut session = LoadSession::open(server.address, 0, peer != FixServerKind::Echo)?;
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

/// Returns bytes that only the first answer to an order contains.
fn pattern(peer: FixServerKind) -> &'static [u8] {
    match peer {
        FixServerKind::Pitlane | FixServerKind::QuickFix { reports: 2.., .. } => FIRST_REPORT,
        FixServerKind::QuickFix { .. } => b"\x01150=0\x01",
        FixServerKind::Echo => b"\x0135=D\x01",
    }
}
