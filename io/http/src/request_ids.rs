//! Ids of requests: the client's own, or the start time of the process and a number.

use std::cell::Cell;

use bytes::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use pitlane_engine::text::write_u64;
use pitlane_engine::time::{NS_PER_MS, Timestamp};

pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longest request id of a client that we pass on.
const REQUEST_ID_BYTES_MAX: usize = 64;

#[derive(Debug)]
pub(crate) struct RequestIds {
    requests: Cell<u64>,
    prefix: String,
}

impl RequestIds {
    pub(crate) fn new(started: Timestamp) -> RequestIds {
        RequestIds { requests: Cell::new(0), prefix: format!("{:x}-", started.0 / NS_PER_MS) }
    }

    /// Returns the client's request id if it is valid, else a new one.
    pub(crate) fn id_of(&self, headers: &HeaderMap) -> HeaderValue {
        let is_sane = |id: &&HeaderValue| {
            (1..=REQUEST_ID_BYTES_MAX).contains(&id.len()) && id.as_bytes().iter().all(u8::is_ascii_graphic)
        };
        match headers.get(X_REQUEST_ID).filter(is_sane) {
            Some(id) => id.clone(),
            None => self.next(),
        }
    }

    fn next(&self) -> HeaderValue {
        self.requests.set(self.requests.get() + 1);
        let mut digits = [0; 20];
        let count = write_u64(self.requests.get(), &mut digits);
        let mut id = Vec::with_capacity(self.prefix.len() + count);
        id.extend_from_slice(self.prefix.as_bytes());
        id.extend_from_slice(&digits[..count]);
        HeaderValue::from_maybe_shared(Bytes::from(id)).expect("digits belong into a header")
    }
}
