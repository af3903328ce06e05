//! The listeners: accept connections, assign a slot to each and serve each in a task of its own.

use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use pitlane_net::quick_ack::acknowledge;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::admission::AdmittedConnection;
use super::app_state::AppState;
use super::client_stream::ClientStream;
use super::connection::serve;

/// Pause after the system had no descriptor or memory for a connection, until some have ended.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// Response to a client if there is no room for its connection; it may retry.
const NO_ROOM: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

pub(crate) fn bind(address: SocketAddr) -> io::Result<StdListener> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{address}: {error}"));
    let listener = StdListener::bind(address).map_err(named)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Accepts connections until it is dropped.
pub(crate) fn accept(
    app: Rc<AppState>,
    listener: StdListener,
    tls: Option<Arc<ServerConfig>>,
) -> io::Result<impl Future<Output = ()>> {
    let listener = TcpListener::from_std(listener)?;
    let tls = tls.map(TlsAcceptor::from);
    Ok(async move {
        loop {
            match listener.accept().await {
                Ok((socket, peer)) => admit(&app, socket, peer, tls.clone()),
                Err(error) if is_peer_error(&error) => {}
                Err(_) => sleep(RETRY_PAUSE).await,
            }
        }
    })
}

fn admit(app: &Rc<AppState>, socket: TcpStream, peer: SocketAddr, tls: Option<TlsAcceptor>) {
    let Some(AdmittedConnection { slot, evicted }) = app.access.admission.admit(peer.ip(), Instant::now())
    else {
        app.monitoring.meter.refused.increment();
        if tls.is_none() {
            // A new socket has room for it; if not, closing it has the same meaning.
            let _ = socket.try_write(NO_ROOM);
        }
        return;
    };
    app.monitoring.meter.evicted.add(evicted as u64);
    // A connection that was closed before we answer has no local address any more.
    let (Ok(local), Ok(())) = (socket.local_addr(), socket.set_nodelay(true)) else { return };
    app.monitoring.meter.accepted.increment();
    let app = app.clone();
    let set_task = slot.task_setter();
    let task = spawn_local(async move {
        let stream = match tls {
            None => Some(ClientStream::Plain(socket)),
            Some(tls) => tls_handshake(&app, socket, tls).await,
        };
        if let Some(stream) = stream {
            serve(app, stream, local, peer, slot).await;
        }
    });
    set_task(task.abort_handle());
}

/// Performs the TLS handshake. Its deadline is that of a head: a client that needs longer for
/// either is hostile or has no usable network.
async fn tls_handshake(app: &AppState, socket: TcpStream, tls: TlsAcceptor) -> Option<ClientStream> {
    match timeout(app.settings.head_timeout.min(app.settings.drain_timeout), tls.accept(socket)).await {
        Ok(Ok(stream)) => {
            acknowledge(stream.get_ref().0);
            Some(ClientStream::Tls(Box::new(stream)))
        }
        Ok(Err(_)) => {
            app.monitoring.meter.handshakes_failed.increment();
            None
        }
        Err(_elapsed) => {
            app.monitoring.meter.timed_out.increment();
            None
        }
    }
}

/// Returns whether an error concerns one connection and not the listener.
fn is_peer_error(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    )
}
