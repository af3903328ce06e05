//! The health server of a follower: reports that it is live, not ready, and how far it has read. It
//! uses the port of `http.listen` until the http thread takes that over. It requires no login, and
//! shows nothing of the folder.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Response, StatusCode};
use hyper_util::rt::TokioIo;
use pitlane_runtime::metrics::exposition::{self, Exposition, MetricKind};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::state::{StandbyState, StandbyVO};

/// Maximum number of simultaneous connections; only a few machines ask.
const CONNECTIONS_MAX: usize = 64;
/// Time limit for a request and its answer.
const REQUEST_MAX: Duration = Duration::from_secs(5);
/// Pause after the system had no descriptor for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) struct StandbyHealthServer {
    listener: TcpListener,
}

impl StandbyHealthServer {
    pub(super) async fn open(address: SocketAddr) -> io::Result<StandbyHealthServer> {
        Ok(StandbyHealthServer { listener: TcpListener::bind(address).await? })
    }

    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves requests until it is dropped; then the port is free.
    pub(super) async fn serve(self, state: Arc<StandbyState>) {
        let mut connections = JoinSet::new();
        loop {
            let accepted = self.listener.accept().await;
            // Finished connections are reaped only now, so that those that ended since the last
            // accept make room.
            while connections.try_join_next().is_some() {}
            match accepted {
                Ok((socket, _)) if connections.len() < CONNECTIONS_MAX => {
                    let state = state.clone();
                    connections.spawn(async move { timeout(REQUEST_MAX, serve_one(socket, &state)).await });
                }
                Ok(_) => {}
                Err(_) => sleep(ACCEPT_PAUSE).await,
            }
        }
    }
}

async fn serve_one(socket: TcpStream, state: &StandbyState) {
    let service = service_fn(async |request: hyper::Request<hyper::body::Incoming>| {
        Ok::<_, Infallible>(respond(request.uri().path(), state))
    });
    // A client that disconnects before the answer does not need it.
    let _ = http1::Builder::new().keep_alive(false).serve_connection(TokioIo::new(socket), service).await;
}

fn respond(path: &str, state: &StandbyState) -> Response<String> {
    let (status, kind, body) = match path {
        "/health/live" => (StatusCode::OK, "application/json", json!({ "status": "LIVE" }).to_string()),
        "/metrics" => (StatusCode::OK, exposition::CONTENT_TYPE, metrics(state)),
        _ => {
            let body = json!({ "ready": false, "phase": "STANDBY", "standby": StandbyVO::of(state) });
            (StatusCode::SERVICE_UNAVAILABLE, "application/json", body.to_string())
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

fn metrics(state: &StandbyState) -> String {
    let mut out = Exposition::default();
    out.single("pitlane_ready", MetricKind::Gauge, "1 while orders are accepted.", 0);
    state.expose(&mut out);
    out.into_text()
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::standby::state::StandbyPhase;

    #[test]
    fn a_follower_is_live_and_not_ready() {
        let state = StandbyState::default();
        state.set_phase(StandbyPhase::Following);
        state.set_epoch(3);
        assert_eq!(respond("/health/live", &state).status(), StatusCode::OK);
        let ready = respond("/health/ready", &state);
        assert_eq!(ready.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(ready.body().contains(r#""stand":"FOLLOWING""#), "{}", ready.body());
        let order = respond("/rest/order", &state);
        assert_eq!(order.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(respond("/metrics", &state).body().contains("pitlane_standby_epoch 3\n"));
    }

    /// Returns the answer; empty if the server closes the connection.
    async fn ask(socket: &mut TcpStream) -> String {
        let mut received = String::new();
        // A refused client may get the error already while writing.
        let _ = socket.write_all(b"GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let _ = socket.read_to_string(&mut received).await;
        received
    }

    #[test]
    fn connections_are_bounded_and_the_next_one_is_refused() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = StandbyHealthServer::open(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
            let address = server.address().unwrap();
            let serving = tokio::spawn(server.serve(Arc::default()));
            let mut silent = Vec::new();
            for _ in 0..CONNECTIONS_MAX {
                silent.push(TcpStream::connect(address).await.unwrap());
            }
            let mut one_more = TcpStream::connect(address).await.unwrap();
            assert_eq!(ask(&mut one_more).await, "");
            // The accepted connections are answered; then there is room.
            let mut first = silent.remove(0);
            assert!(ask(&mut first).await.starts_with("HTTP/1.1 200 OK"));
            let mut next = TcpStream::connect(address).await.unwrap();
            assert!(ask(&mut next).await.starts_with("HTTP/1.1 200 OK"));
            serving.abort();
        });
    }
}
