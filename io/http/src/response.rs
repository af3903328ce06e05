//! Responses, and the bodies that hyper sends.
//!
//! JSON is sent chunked, as the specification requires; an empty response has Content-Length 0.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::StatusCode;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::HeaderValue;
use pitlane_market_data::column_format::ColumnFormat;
use serde::Serialize;

use super::compressed_body::CompressedBody;
use super::connection_progress::ConnectionProgress;
use super::readers::ReaderCut;
use super::streamed_list::{RenderTurns, StreamedList};

/// Initial capacity for a usual response, so that it does not grow in small steps.
const JSON_BYTES: usize = 2_048;

/// Result of a handler.
#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub status: StatusCode,
    pub kind: ResponseKind,
    pub content: Content,
    /// Location of what the request created.
    pub location: Option<HeaderValue>,
    /// Location of the next or the previous page.
    pub link: Option<HeaderValue>,
    /// Identifies this state of the resource.
    pub etag: Option<HeaderValue>,
    /// Content coding with which the content is compressed.
    pub encoding: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseKind {
    Empty,
    Json,
    /// Errors.
    Problem,
    Metrics,
    /// Rows of the history as text.
    Csv,
    /// Rows of the history by columns, which are compressed or fit for use in place.
    Columns(ColumnFormat),
    /// A file of a page.
    Asset {
        content_type: &'static str,
        /// Whether the content never changes under its name.
        is_immutable: bool,
    },
}

impl ResponseKind {
    /// Returns whether the body is sent without a length in the head.
    fn is_chunked(self) -> bool {
        self == ResponseKind::Json
    }
}

#[derive(Debug)]
pub(crate) enum Content {
    Whole(Bytes),
    StreamedList(StreamedList),
    /// A large list for a client that accepts its coding.
    Compressed(CompressedBody),
}

impl HttpResponse {
    fn new(kind: ResponseKind, content: Content) -> HttpResponse {
        HttpResponse {
            status: StatusCode::OK,
            kind,
            content,
            location: None,
            link: None,
            etag: None,
            encoding: None,
        }
    }

    pub(crate) fn empty() -> HttpResponse {
        HttpResponse::new(ResponseKind::Empty, Content::Whole(Bytes::new()))
    }

    pub(crate) fn json(value: &impl Serialize) -> HttpResponse {
        let mut bytes = Vec::with_capacity(JSON_BYTES);
        push_json(&mut bytes, value);
        HttpResponse::new(ResponseKind::Json, Content::Whole(bytes.into()))
    }

    /// Creates a list, row by row.
    pub(crate) fn list<T: Serialize>(rows: impl Iterator<Item = T>) -> HttpResponse {
        let mut bytes = Vec::with_capacity(JSON_BYTES);
        JsonRows::default().push(&mut bytes, rows, true);
        HttpResponse::new(ResponseKind::Json, Content::Whole(bytes.into()))
    }

    /// Creates a response from rendered JSON.
    pub(crate) fn from_json(bytes: Bytes) -> HttpResponse {
        HttpResponse::new(ResponseKind::Json, Content::Whole(bytes))
    }

    /// Creates a response whose JSON is streamed in portions.
    pub(crate) fn streamed(portions: StreamedList) -> HttpResponse {
        HttpResponse::new(ResponseKind::Json, Content::StreamedList(portions))
    }

    pub(crate) fn text(kind: ResponseKind, text: impl Into<Bytes>) -> HttpResponse {
        HttpResponse::new(kind, Content::Whole(text.into()))
    }

    pub(crate) fn with_status(self, status: StatusCode) -> HttpResponse {
        HttpResponse { status, ..self }
    }

    pub(crate) fn with_etag(self, etag: HeaderValue) -> HttpResponse {
        HttpResponse { etag: Some(etag), ..self }
    }

    pub(crate) fn with_encoding(self, encoding: Option<&'static str>) -> HttpResponse {
        HttpResponse { encoding, ..self }
    }

    pub(crate) fn with_link(self, link: Option<HeaderValue>) -> HttpResponse {
        HttpResponse { link, ..self }
    }

    pub(crate) fn with_location(self, location: HeaderValue) -> HttpResponse {
        HttpResponse { location: Some(location), ..self }
    }
}

fn push_json(bytes: &mut Vec<u8>, value: &impl Serialize) {
    // Serialization fails only for maps whose keys are no text, and our values have none.
    serde_json::to_writer(bytes, value).expect("our values can be written as JSON");
}

/// A list that is written in portions, with its brackets and commas.
#[derive(Debug, Default)]
pub(crate) struct JsonRows {
    begun: bool,
    has_some: bool,
}

impl JsonRows {
    /// Adds a portion, perhaps an empty one.
    pub(crate) fn push<T: Serialize>(
        &mut self,
        bytes: &mut Vec<u8>,
        rows: impl Iterator<Item = T>,
        is_last: bool,
    ) {
        if !std::mem::replace(&mut self.begun, true) {
            bytes.push(b'[');
        }
        for row in rows {
            if std::mem::replace(&mut self.has_some, true) {
                bytes.push(b',');
            }
            push_json(bytes, &row);
        }
        if is_last {
            bytes.push(b']');
        }
    }
}

/// A body being sent. The connection is busy until it is dropped.
#[derive(Debug)]
pub(crate) struct ResponseBody {
    /// What is left to send; empty at the end.
    content: Content,
    chunked: bool,
    progress: Arc<ConnectionProgress>,
    turns: RenderTurns,
}

impl ResponseBody {
    pub(crate) fn new(
        content: Content,
        kind: ResponseKind,
        progress: Arc<ConnectionProgress>,
        turns: RenderTurns,
    ) -> ResponseBody {
        ResponseBody { content, chunked: kind.is_chunked(), progress, turns }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = ReaderCut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ReaderCut>>> {
        let ResponseBody { content, turns, .. } = &mut *self;
        match content {
            Content::Whole(rest) => {
                let rest = std::mem::take(rest);
                Poll::Ready((!rest.is_empty()).then(|| Ok(Frame::data(rest))))
            }
            Content::StreamedList(portions) if portions.is_cut() => Poll::Ready(Some(Err(ReaderCut))),
            Content::StreamedList(portions) => {
                let portion = ready!(portions.poll_next(turns, cx));
                Poll::Ready(portion.map(|bytes| Ok(Frame::data(bytes))))
            }
            Content::Compressed(body) => {
                let part = ready!(body.poll_next(turns, cx));
                Poll::Ready(part.map(|bytes| bytes.map(Frame::data).map_err(|_failed| ReaderCut)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Whole(rest) => rest.is_empty(),
            Content::StreamedList(portions) => portions.is_over(),
            Content::Compressed(body) => body.is_over(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(rest) if !self.chunked => SizeHint::with_exact(rest.len() as u64),
            Content::Whole(_) | Content::StreamedList(_) | Content::Compressed(_) => SizeHint::new(),
        }
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.progress.finish();
    }
}
