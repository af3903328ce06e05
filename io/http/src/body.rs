//! The bodies of requests: bounded in size and time, read whole.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use hyper::StatusCode;
use hyper::body::{Body, Incoming};
use tokio::time::timeout;

use super::guard::body_too_large;
use super::problem::Problem;

/// Bounds of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BodyLimits {
    pub bytes_max: usize,
    pub timeout: Duration,
}

/// The body of a request.
pub(crate) enum RequestBody {
    /// Not read yet.
    Incoming(Incoming, BodyLimits),
    /// Read before, because the request had to be audited.
    Read(Vec<u8>),
}

impl RequestBody {
    /// Reads the whole body. Its type and announced size have been checked.
    pub(crate) async fn read(self) -> Result<Vec<u8>, Problem> {
        let (body, limits) = match self {
            RequestBody::Incoming(body, limits) => (body, limits),
            RequestBody::Read(body) => return Ok(body),
        };
        let slow = |_elapsed| {
            Problem::new(StatusCode::REQUEST_TIMEOUT, "body-too-slow", "the body did not arrive in time")
                .closing()
        };
        timeout(limits.timeout, collect(body, limits.bytes_max)).await.map_err(slow)?
    }

    /// Reads the body of a call without input: nothing, or an empty object. A misspelt member must
    /// not pass as absent.
    pub(crate) async fn read_nothing(self) -> Result<(), Problem> {
        let body = self.read().await?;
        let body = body.trim_ascii();
        let inside = body.strip_prefix(b"{").and_then(|body| body.strip_suffix(b"}"));
        if body.is_empty() || inside.is_some_and(|inside| inside.trim_ascii().is_empty()) {
            return Ok(());
        }
        Err(Problem::bad_request("unexpected-body", "this call takes no input"))
    }
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
