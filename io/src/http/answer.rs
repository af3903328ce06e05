//! Answers, and the bodies hyper sends.
//!
//! JSON goes out chunked, as the specification has it; an empty answer says Content-Length 0.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::StatusCode;
use hyper::body::{Body, Frame, SizeHint};
use serde::Serialize;

use super::connection::Link;

/// Room for a usual answer, so that it does not grow in small steps.
const JSON_BYTES: usize = 2_048;

/// What a handler gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: StatusCode,
    pub kind: Kind,
    pub bytes: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Empty,
    Json,
    /// Errors.
    Problem,
    Metrics,
    Page,
}

impl Kind {
    /// Without a length in the head.
    fn is_chunked(self) -> bool {
        self == Kind::Json
    }
}

impl Answer {
    pub fn empty() -> Answer {
        Answer { status: StatusCode::OK, kind: Kind::Empty, bytes: Bytes::new() }
    }

    pub fn json(value: &impl Serialize) -> Answer {
        let mut bytes = Vec::with_capacity(JSON_BYTES);
        // Only maps with keys that are no text cannot be written, and our values have none.
        serde_json::to_writer(&mut bytes, value).expect("our values can be written as JSON");
        Answer { status: StatusCode::OK, kind: Kind::Json, bytes: bytes.into() }
    }

    pub fn text(kind: Kind, text: impl Into<Bytes>) -> Answer {
        Answer { status: StatusCode::OK, kind, bytes: text.into() }
    }

    pub fn with_status(self, status: StatusCode) -> Answer {
        Answer { status, ..self }
    }
}

/// A body on its way: one piece. The connection is busy until it is gone.
#[derive(Debug)]
pub struct Reply {
    rest: Bytes,
    chunked: bool,
    link: Arc<Link>,
}

impl Reply {
    pub fn new(bytes: Bytes, kind: Kind, link: Arc<Link>) -> Reply {
        Reply { rest: bytes, chunked: kind.is_chunked(), link }
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let rest = std::mem::take(&mut self.rest);
        Poll::Ready((!rest.is_empty()).then(|| Ok(Frame::data(rest))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        match self.chunked {
            true => SizeHint::new(),
            false => SizeHint::with_exact(self.rest.len() as u64),
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.link.finish();
    }
}
