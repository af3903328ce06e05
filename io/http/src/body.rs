//! The bodies of requests: bounded in size and time, read whole.

use std::future::poll_fn;
use std::pin::Pin;

use hyper::StatusCode;
use hyper::body::{Body, Incoming};
use tokio::time::timeout;

use super::app_state::AppState;
use super::guard::body_too_large;
use super::problem::Problem;

/// The body of a request.
pub enum RequestBody {
    /// Not read yet.
    Incoming(Incoming),
    /// Read before, because the request had to be audited.
    Read(Vec<u8>),
}

/// Reads a whole body. Its type and announced size have been checked.
pub async fn read(app: &AppState, body: RequestBody) -> Result<Vec<u8>, Problem> {
    let body = match body {
        RequestBody::Incoming(body) => body,
        RequestBody::Read(body) => return Ok(body),
    };
    let slow = |_elapsed| {
        Problem::new(StatusCode::REQUEST_TIMEOUT, "body-too-slow", "the body did not arrive in time")
            .closing()
    };
    let whole = collect(body, app.rules.body_bytes_max);
    timeout(app.settings.body_timeout, whole).await.map_err(slow)?
}

async fn collect(mut body: Incoming, max: usize) -> Result<Vec<u8>, Problem> {
    let mut whole = Vec::new();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        // Also if the client has disconnected; then the response is discarded.
        let frame =
            frame.map_err(|_| Problem::bad_request("bad-body", "the body is not well formed").closing())?;
        let Some(data) = frame.data_ref() else { continue };
        if whole.len() + data.len() > max {
            return Err(body_too_large(max));
        }
        whole.extend_from_slice(data);
    }
    Ok(whole)
}

/// Reads the body of a call without input: nothing, or an empty object. A misspelt member must not
/// pass as absent.
pub async fn read_nothing(app: &AppState, body: RequestBody) -> Result<(), Problem> {
    let body = read(app, body).await?;
    let body = body.trim_ascii();
    let inside = body.strip_prefix(b"{").and_then(|body| body.strip_suffix(b"}"));
    if body.is_empty() || inside.is_some_and(|inside| inside.trim_ascii().is_empty()) {
        return Ok(());
    }
    Err(Problem::bad_request("unexpected-body", "this call takes no input"))
}
