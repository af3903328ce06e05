//! One connection: hyper serves its requests until a deadline passes or either side ends it.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, ready};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::time::{Instant, sleep_until};

use super::admission::ConnectionSlot;
use super::app_state::AppState;
use super::client_stream::{CheckedStream, ClientStream};
use super::connection_info::ConnectionInfo;
use super::connection_progress::{ConnectionProgress, RequestPhase};
use super::service;
use super::settings::HttpSettings;

/// Size of hyper's buffer for reads and writes: more than the largest head, so small responses are
/// batched in it.
const BUFFER_BYTES: usize = 64 * 1_024;

/// Serves a connection until either side ends it, it is too slow, or it is upgraded.
pub(crate) async fn serve(
    app: Rc<AppState>,
    stream: ClientStream,
    local: SocketAddr,
    peer: SocketAddr,
    slot: ConnectionSlot,
) {
    let tls = matches!(stream, ClientStream::Tls(_));
    let info = Rc::new(ConnectionInfo::new(local, peer, tls, slot));
    let progress = info.progress.clone();
    let socket = TokioIo::new(CheckedStream::new(stream, progress.clone()));
    let service = service_fn(|request| {
        let (app, info) = (app.clone(), info.clone());
        async move { Ok::<_, Infallible>(service::respond(&app, &info, request).await) }
    });
    let mut builder = http1::Builder::new();
    // The head's deadline is ours: hyper has one for both a slow head and an idle connection.
    builder.max_header_size(app.settings.head_bytes_max).max_buf_size(BUFFER_BYTES).header_read_timeout(None);
    let mut connection = pin!(builder.serve_connection(socket, service).with_upgrades());
    let mut stopping = pin!(app.lifecycle.stopping.notified());
    let mut deadlines = ConnectionDeadlines::new(&progress, &app.settings);
    let mut alarm = pin!(sleep_until(deadlines.due));
    let mut is_stopping = false;
    poll_fn(|cx| {
        if !is_stopping && (stopping.as_mut().poll(cx).is_ready() || app.lifecycle.is_stopping()) {
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
                app.monitoring.meter.timed_out.increment();
                return Poll::Ready(());
            }
            alarm.as_mut().reset(due);
        }
    })
    .await;
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
