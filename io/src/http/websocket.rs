//! STOMP over WebSocket: from a request to a connection that is no longer HTTP.
//!
//! ```text
//! GET /stomp ─► handshake: 101 ─► hyper releases the socket ─► talk: messages in, frames out
//!                                                                 └─► part: last bytes, close
//! ```

mod handshake;
mod talk;

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
use pitlane_protocols::stomp::broker::SessionId;
use socket2::SockRef;
use tokio::task::spawn_local;
use tokio::time::{Sleep, sleep, timeout};

use self::talk::{End, Talk};
use super::app_state::AppState;
use super::connection::{ConnectionInfo, Watched};
use super::problem::Problem;
use super::response::{Content, Kind, Reply};
use crate::auth::Credentials;
use crate::stomp::access;

/// Size of the kernel's send buffer of a connection. Data in it is already outdated, so it is
/// small.
const SEND_KERNEL_BYTES: usize = 64 * 1_024;
/// Time from our last byte to the end of the connection: the peer reads it and closes its own side.
const LINGER: Duration = Duration::from_secs(1);
/// Time for the last frames when the server stops.
const LEAVE: Duration = Duration::from_secs(1);

/// Answers a request for a WebSocket. The connection is served as soon as hyper has released it;
/// its connection slot goes along.
pub fn upgrade(
    house: &Rc<AppState>,
    visit: &ConnectionInfo,
    head: &mut Head,
) -> Result<Response<Reply>, Problem> {
    let headers = handshake::answer(head)?;
    if house.is_leaving() {
        return Err(Problem::stopping());
    }
    let (Some(upgrade), Some(slot)) = (head.extensions.remove::<OnUpgrade>(), visit.take_slot()) else {
        return Err(Problem::bad_request("no-upgrade", "this connection cannot become a WebSocket"));
    };
    let (turns, peer) = (house.turns.clone(), visit.peer);
    let house = house.clone();
    spawn_local(async move {
        if let Ok(upgraded) = upgrade.await {
            serve(&house, upgraded, peer).await;
        }
        drop(slot);
    });
    let mut response =
        Response::new(Reply::new(Content::Whole(Bytes::new()), Kind::Empty, visit.link.clone(), turns));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    *response.headers_mut() = headers;
    Ok(response)
}

async fn serve(house: &Rc<AppState>, upgraded: Upgraded, peer: SocketAddr) {
    let Ok(parts) = upgraded.downcast::<TokioIo<Watched>>() else { return };
    // From here on there are no requests, and the bytes are not watched as such.
    let stream = parts.io.into_inner().into_stream();
    // If this fails, the connection works, only a slow reader is detected later.
    let _ = SockRef::from(stream.socket()).set_send_buffer_size(SEND_KERNEL_BYTES);
    let hall = &house.hall;
    let Some(session) = hall.enter(peer) else { return };
    let mut talk = Talk::new(stream, session);
    talk.hear(hall, &mut parts.read_buf.to_vec());
    let mut leaving = pin!(house.leaving.notified());
    let mut patience: Option<Pin<Box<Sleep>>> = None;
    let end = poll_fn(|cx| {
        if patience.is_none() && (leaving.as_mut().poll(cx).is_ready() || house.is_leaving()) {
            hall.broker().end(hall.now(), session);
            patience = Some(Box::pin(sleep(LEAVE)));
        }
        if patience.as_mut().is_some_and(|patience| patience.as_mut().poll(cx).is_ready()) {
            return Poll::Ready(End::Broken);
        }
        if let Some(credentials) = hall.take_login(session) {
            spawn_local(find_out(house.clone(), session, credentials));
        }
        talk.poll(cx, hall)
    });
    let end = end.await;
    hall.leave(session);
    if end == End::Parted {
        // A peer that takes longer than this is disconnected.
        let _ = timeout(LINGER, poll_fn(|cx| talk.poll_part(cx))).await;
    }
}

/// Verifies the credentials of a session. The session waits meanwhile; if it is gone by then, the
/// result is discarded.
async fn find_out(house: Rc<AppState>, session: SessionId, credentials: Credentials) {
    let peer = credentials.peer;
    let known = house.reception.ask(&house, credentials).await.ok();
    if known.is_some() {
        house.admission.remember(peer);
    }
    let sender = house.settings.generic_event_role;
    let known = known.map(|identity| (identity.name.clone(), access(&identity, sender)));
    house.hall.handle_verdict(session, known);
}
