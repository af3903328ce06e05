//! From a FIX order to the tick of its trade at a STOMP consumer: bytes into the acceptor, through
//! the shard and its venue, and out of the broker. The service is on one core; the client, which
//! sends the orders and decodes the ticks, is on another.
//!
//! The client has one thread for two sockets. While the signal of a trade is outstanding it reads
//! only the socket on which that signal arrives, as a program of its own would, and the other one
//! while it waits for nothing, or is far behind.

use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use pitlane_config::SendFirst;

use crate::conditions::Pinning;
use crate::consumers::subscriber;
use crate::convert::duration_ns;
use crate::fix_wire::{
    BUY, BoxError, FIRST_REPORT, FixServer, FixServerKind, LoadLogin, LoadSession, LoadTarget, MovingPrices,
    ORDER_QTY, READ_BYTES, REPORT_TIMEOUT, SELL,
};
use crate::report::recording::{Recording, SLICE_NS};
use crate::tick_reader::{BodyReader, Framing, TickReader};

/// The security that the orders of [`LoadSession`] name.
const TOPIC: &str = "tick.1";

/// Number of outstanding signals beyond which the client reads both sockets. The service reads no
/// orders of a session that does not read its reports, so a client that was away for long, and
/// read ticks alone, would wait for ever.
const OUTSTANDING_MAX: usize = 16;

/// What ends the measurement of a trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TradeSignal {
    /// Its tick over STOMP, decoded in this way.
    Tick(BodyReader),
    /// The first FIX report of the order that trades: what of the way to the tick is that of every
    /// order.
    Report,
}

/// Trades at planned times.
#[derive(Clone, Copy, Debug)]
pub struct TradeLoad {
    /// Trades per second.
    pub rate: u64,
    pub trades: usize,
}

/// Measures from the planned time of each order that trades to the moment at which its tick is
/// decoded, or its report read. The order that it meets was sent half an interval before. The first
/// tenth is warm-up. `first` is the protocol whose output the service sends first.
pub fn open_loop(
    pinning: &Pinning,
    load: TradeLoad,
    signal: TradeSignal,
    first: SendFirst,
) -> Result<Recording, BoxError> {
    let first = match first {
        SendFirst::Fix => "fix",
        SendFirst::Stomp => "stomp",
    };
    let settings = [format!("net.send_first={first}")];
    let (server, targets) = FixServer::with_stomp(pinning, MovingPrices::No, &settings)?;
    let target = LoadTarget::new(targets.fix, FixServerKind::Pitlane);
    let mut recording = measure(&target, targets.stomp, 0, load, signal)?;
    recording.stages = server.stages();
    Ok(recording)
}

/// Measures as [`open_loop`] does, at a service that listens already, after `earlier` loads of the
/// same size. The service must have had no other trades.
pub fn measure(
    target: &LoadTarget,
    stomp: SocketAddr,
    earlier: usize,
    load: TradeLoad,
    signal: TradeSignal,
) -> Result<Recording, BoxError> {
    let mut session = LoadSession::open(target, earlier)?;
    let (body, name) = match signal {
        TradeSignal::Tick(body) => (body, "order-to-tick"),
        TradeSignal::Report => (BodyReader::Sbe, "order-to-report"),
    };
    let mut consumer = TickConsumer::open(stomp, target.login.as_ref(), body)?;
    consumer.earlier_volume = (earlier * load.trades) as f64 * ORDER_QTY;
    let gap_ns = 1_000_000_000 / load.rate.max(1);
    let mut recording = Recording::new(&format!("{name}-{}", load.rate), load.rate as f64, SLICE_NS);
    let mut buffer = vec![0; READ_BYTES];
    let begin = Instant::now() + Duration::from_millis(50);
    // Even orders rest, and odd ones trade with them.
    let planned = |order: usize| begin + Duration::from_nanos(gap_ns * order as u64 / 2);
    let (mut sent, mut frame) = (0, Vec::new());
    session.order_of(SELL, &mut frame);
    let warm_up = load.trades / 10;
    let deadline = planned(2 * load.trades) + REPORT_TIMEOUT;
    let mut traded = 0;
    while traded < load.trades {
        if sent < 2 * load.trades && Instant::now() >= planned(sent) {
            session.send(&frame)?;
            sent += 1;
            frame.clear();
            session.order_of(if sent % 2 == 0 { SELL } else { BUY }, &mut frame);
        }
        // Every second order trades.
        let outstanding = (sent / 2).saturating_sub(traded);
        let reads_both = outstanding == 0 || outstanding > OUTSTANDING_MAX;
        let is_tick = matches!(signal, TradeSignal::Tick(_));
        if is_tick || reads_both {
            consumer.read()?;
        }
        if !is_tick || reads_both {
            session.receive_reports(FIRST_REPORT, &mut buffer)?;
        }
        let seen = if is_tick { consumer.trades } else { session.answered / 2 };
        for trade in traded..seen {
            let took = duration_ns(planned(2 * trade + 1).elapsed());
            if trade >= warm_up {
                recording.count(gap_ns * (trade - warm_up) as u64, took);
            }
        }
        traded = traded.max(seen);
        if Instant::now() > deadline {
            return Err(format!("{traded} of {} trades have a signal", load.trades).into());
        }
    }
    recording.per_s_reached = traded as f64 / begin.elapsed().as_secs_f64();
    Ok(recording)
}

/// A consumer of the ticks of one security.
struct TickConsumer {
    socket: TcpStream,
    reader: TickReader,
    buffer: Vec<u8>,
    /// Volume before the first trade that counts.
    earlier_volume: f64,
    /// Trades so far.
    trades: usize,
}

impl TickConsumer {
    fn open(
        address: SocketAddr,
        login: Option<&LoadLogin>,
        body: BodyReader,
    ) -> Result<TickConsumer, BoxError> {
        let socket = subscriber(address, login, TOPIC, body)?;
        let reader = TickReader::new(Framing::Stomp, body);
        Ok(TickConsumer { socket, reader, buffer: vec![0; READ_BYTES], earlier_volume: 0.0, trades: 0 })
    }

    /// Reads what has arrived, and counts the trades in it.
    fn read(&mut self) -> Result<(), BoxError> {
        match self.socket.read(&mut self.buffer) {
            Ok(0) => return Err("the server closed the connection".into()),
            Ok(count) => {
                let (trades, earlier_volume) = (&mut self.trades, self.earlier_volume);
                self.reader.read(&mut self.buffer[..count], |tick| {
                    // There are no other trades, and every order has the same quantity, so that
                    // the volume counts the trades.
                    while (*trades + 1) as f64 * ORDER_QTY <= tick.volume - earlier_volume {
                        *trades += 1;
                    }
                });
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}
