//! STOMP over WebSocket: from a request to a connection that is no longer HTTP.
//!
//! ```text
//! GET /stomp ─► handshake: 101 ─► hyper releases the socket ─► WebSocketStream
//!                                                                 ├─► poll: messages in, frames out
//!                                                                 └─► poll_close: last bytes, close
//! ```

mod handshake;
mod stream;

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use hyper::http::request::Parts as Head;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper::{Response, StatusCode};
use hyper_util::rt::TokioIo;
use pitlane_auth::Credentials;
use pitlane_gateway::stomp::access;
use pitlane_protocols::stomp::broker::SessionId;
use socket2::SockRef;
use tokio::task::spawn_local;
use tokio::time::{Sleep, sleep, timeout};

use self::stream::{ConnectionEnd, WebSocketStream};
use super::app_state::AppState;
use super::client_stream::CheckedStream;
use super::connection_info::ConnectionInfo;
use super::problem::Problem;
use super::response::{Content, ResponseBody, ResponseKind};

/// Size of the kernel's send buffer of a connection. Data in it is already outdated, so it is
/// small.
const SEND_KERNEL_BYTES: usize = 64 * 1_024;
/// Time from our last byte to the end of the connection: the peer reads it and closes its own side.
const LINGER: Duration = Duration::from_secs(1);
/// Time for the last frames when the server stops.
const STOP_MAX: Duration = Duration::from_secs(1);

/// Answers a request for a WebSocket. The connection is served as soon as hyper has released it;
/// its connection slot goes along.
pub(crate) fn upgrade(
    app: &Rc<AppState>,
    connection: &ConnectionInfo,
    head: &mut Head,
) -> Result<Response<ResponseBody>, Problem> {
    let headers = handshake::answer(head)?;
    if app.lifecycle.is_stopping() {
        return Err(Problem::stopping());
    }
    let (Some(upgrade), Some(slot)) = (head.extensions.remove::<OnUpgrade>(), connection.take_slot()) else {
        return Err(Problem::bad_request("no-upgrade", "this connection cannot become a WebSocket"));
    };
    let (turns, peer) = (app.turns.clone(), connection.peer);
    let app = app.clone();
    spawn_local(async move {
        if let Ok(upgraded) = upgrade.await {
            serve(&app, upgraded, peer).await;
        }
        drop(slot);
    });
    let mut response = Response::new(ResponseBody::new(
        Content::Whole(Bytes::new()),
        ResponseKind::Empty,
        connection.progress.clone(),
        turns,
    ));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    *response.headers_mut() = headers;
    Ok(response)
}

async fn serve(app: &Rc<AppState>, upgraded: Upgraded, peer: SocketAddr) {
    let Ok(parts) = upgraded.downcast::<TokioIo<CheckedStream>>() else { return };
    // From here on there are no requests, and the bytes are not watched as such.
    let stream = parts.io.into_inner().into_stream();
    // If this fails, the connection works, only a slow reader is detected later.
    let _ = SockRef::from(stream.socket()).set_send_buffer_size(SEND_KERNEL_BYTES);
    let ws_broker = &app.notifications.ws_broker;
    let Some(session) = ws_broker.add_client(peer) else { return };
    let mut websocket = WebSocketStream::new(stream, session);
    websocket.handle_bytes(ws_broker, &mut parts.read_buf.to_vec());
    let mut stopping = pin!(app.lifecycle.stopping.notified());
    let mut stop_deadline: Option<Pin<Box<Sleep>>> = None;
    let end = poll_fn(|cx| {
        if stop_deadline.is_none() && (stopping.as_mut().poll(cx).is_ready() || app.lifecycle.is_stopping()) {
            ws_broker.broker().end(ws_broker.now(), session);
            stop_deadline = Some(Box::pin(sleep(STOP_MAX)));
        }
        if stop_deadline.as_mut().is_some_and(|stop_deadline| stop_deadline.as_mut().poll(cx).is_ready()) {
            return Poll::Ready(ConnectionEnd::Broken);
        }
        if let Some(credentials) = ws_broker.take_login(session) {
            spawn_local(verify_login(app.clone(), session, credentials));
        }
        websocket.poll(cx, ws_broker)
    });
    let end = end.await;
    ws_broker.remove_client(session);
    if end == ConnectionEnd::Closed {
        // A peer that takes longer than this is disconnected.
        let _ = timeout(LINGER, poll_fn(|cx| websocket.poll_close(cx))).await;
    }
}

/// Verifies the credentials of a session. The session waits meanwhile; if it is gone by then, the
/// result is discarded.
async fn verify_login(app: Rc<AppState>, session: SessionId, credentials: Credentials) {
    let peer = credentials.peer;
    let known = app.access.authorizer.login_queue.authenticate(credentials).await.ok();
    if known.is_some() {
        app.access.admission.remember(peer);
    }
    let sender = app.settings.generic_event_role;
    let known = known.and_then(|identity| Some((identity.name.clone(), access(&identity, sender)?)));
    app.notifications.ws_broker.handle_verdict(session, known);
}
