//! Compresses large lists for clients that accept it.
//!
//! ```text
//! http thread:      piece ──┐          ┌──► frame, next piece ──┐
//! compress thread:          └─ encode ─┘                        └─ encode …
//! ```
//!
//! The http thread renders; a thread of its pool compresses one piece at a time, so that no request
//! waits for it. A response holds one encoder while it is sent. When all encoders are in use, the
//! next response is sent as it is, so the memory is bounded.
//!
//! Rules: docs/rest.md#compression.

use std::future::poll_fn;
use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderValue};
use tokio::sync::Semaphore;

use super::compressed_body::CompressedBody;
use super::content_coding::{self, AcceptedCodings};
use super::response::{Content, HttpResponse, ResponseKind};
use super::streamed_list::RenderTurns;

/// Length from which a response is compressed. A shorter one fits in a few packets, and a client
/// would wait longer for the compression than for them.
pub(crate) const COMPRESS_BYTES_MIN: usize = 16 * 1_024;
/// Responses that are compressed at once. Each holds an encoder of at most 1 MiB.
const COMPRESSED_MAX: usize = 16;
/// Threads that compress. One is enough for a gigabit network; with the second, a large piece does
/// not delay a small one.
pub(crate) const COMPRESS_THREADS_MAX: usize = 2;
/// Codings in the order of our preference: zstd is several times faster and smaller.
#[cfg(feature = "zstd")]
const CODINGS: &[&str] = &["zstd", "gzip"];
#[cfg(not(feature = "zstd"))]
const CODINGS: &[&str] = &["gzip"];

/// The encoders of the http thread.
#[derive(Debug)]
pub(crate) struct Compression(Arc<Semaphore>);

/// Returns whether the response may be compressed, so that it depends on the header
/// `Accept-Encoding`. A streamed list counts as large; whether it is shows when it is rendered.
pub(crate) fn is_candidate(answer: &HttpResponse) -> bool {
    let is_text = matches!(answer.kind, ResponseKind::Json | ResponseKind::Csv);
    let is_large = match &answer.content {
        Content::Whole(bytes) => bytes.len() >= COMPRESS_BYTES_MIN,
        Content::StreamedList(_) => true,
        Content::Compressed(_) => false,
    };
    is_text && is_large && answer.status == StatusCode::OK && answer.encoding.is_none()
}

/// Returns the ETag of a response that the client has already: the weak form if the client holds
/// that and would get the response compressed again.
pub(crate) fn validator(headers: &HeaderMap, etag: HeaderValue) -> HeaderValue {
    let is_weak = content_coding::holds_weak(headers, &etag)
        && AcceptedCodings::of(headers).preferred(CODINGS).is_some();
    if is_weak { content_coding::weak(&etag) } else { etag }
}

impl Compression {
    pub(crate) fn new() -> Compression {
        Compression(Arc::new(Semaphore::new(COMPRESSED_MAX)))
    }

    /// Compresses a response if it is a candidate, the client accepts it, and an encoder is free.
    pub(crate) async fn apply(
        &self,
        headers: &HeaderMap,
        turns: &RenderTurns,
        answer: HttpResponse,
    ) -> HttpResponse {
        let Some(coding) = AcceptedCodings::of(headers).preferred(CODINGS) else { return answer };
        let Ok(permit) = self.0.clone().try_acquire_owned() else { return answer };
        let (rendered, list) = match answer.content {
            Content::Whole(bytes) => (bytes, None),
            Content::StreamedList(mut list) => {
                // Only the first portion shows whether the list is large.
                let first = poll_fn(|cx| list.poll_next(turns, cx)).await.unwrap_or_default();
                if list.is_over() && first.len() < COMPRESS_BYTES_MIN {
                    return HttpResponse { content: Content::Whole(first), ..answer };
                }
                (first, Some(list))
            }
            Content::Compressed(_) => return answer,
        };
        HttpResponse {
            content: Content::Compressed(CompressedBody::new(coding, permit, rendered, list)),
            etag: answer.etag.as_ref().map(content_coding::weak),
            encoding: Some(coding),
            ..answer
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use hyper::header::{ACCEPT_ENCODING, IF_NONE_MATCH};
    use pitlane_market_data::column_format::ColumnFormat;
    use tokio::runtime::Builder;
    use tokio::task::LocalSet;

    use super::*;
    use crate::streamed_list::StreamedList;

    fn run<T>(test: impl Future<Output = T>) -> T {
        LocalSet::new().block_on(&Builder::new_current_thread().build().unwrap(), test)
    }

    fn accepting(codings: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(codings))])
    }

    fn list(portions: usize) -> HttpResponse {
        let mut left = portions;
        HttpResponse::streamed(StreamedList::new(move |bytes| {
            bytes.extend_from_slice(&[b'0' + (left % 10) as u8; 30_000]);
            left -= 1;
            left > 0
        }))
    }

    async fn collect(answer: HttpResponse, turns: &RenderTurns) -> Vec<u8> {
        let Content::Compressed(mut body) = answer.content else { unreachable!("it is compressed") };
        let mut all = Vec::new();
        while let Some(bytes) = poll_fn(|cx| body.poll_next(turns, cx)).await {
            all.extend_from_slice(&bytes.unwrap());
        }
        assert!(body.is_over());
        all
    }

    #[test]
    fn a_streamed_list_survives_compression_portion_by_portion() {
        run(async {
            let (compression, turns) = (Compression::new(), RenderTurns::new());
            let answer = compression.apply(&accepting("gzip"), &turns, list(25)).await;
            assert_eq!(answer.encoding, Some("gzip"));
            let bytes = collect(answer, &turns).await;
            let mut plain = Vec::new();
            flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut plain).unwrap();
            let expected: Vec<u8> = (1..=25).rev().flat_map(|left| [b'0' + left % 10; 30_000]).collect();
            assert!(bytes.len() < plain.len() / 10 && plain == expected);
        });
    }

    #[test]
    fn the_number_of_compressed_responses_is_bounded_and_others_are_sent_as_they_are() {
        run(async {
            let (compression, turns) = (Compression::new(), RenderTurns::new());
            let headers = accepting("gzip");
            let mut held = Vec::new();
            for _ in 0..COMPRESSED_MAX {
                held.push(compression.apply(&headers, &turns, list(2)).await);
            }
            assert!(held.iter().all(|answer| answer.encoding.is_some()));
            assert_eq!(compression.apply(&headers, &turns, list(2)).await.encoding, None);
            held.pop();
            assert_eq!(compression.apply(&headers, &turns, list(2)).await.encoding, Some("gzip"));
        });
    }

    #[test]
    fn a_client_that_holds_a_compressed_response_validates_that() {
        let (strong, weak) = (HeaderValue::from_static("\"1\""), HeaderValue::from_static("W/\"1\""));
        let mut headers = accepting("gzip");
        assert_eq!(validator(&headers, strong.clone()), strong);
        headers.insert(IF_NONE_MATCH, weak.clone());
        assert_eq!(validator(&headers, strong.clone()), weak);
        headers.remove(ACCEPT_ENCODING);
        assert_eq!(validator(&headers, strong.clone()), strong);
    }

    #[test]
    fn what_is_small_or_no_list_is_sent_as_it_is() {
        let whole = |len: usize| HttpResponse::from_json(vec![b'1'; len].into());
        assert!(is_candidate(&whole(COMPRESS_BYTES_MIN)) && !is_candidate(&whole(COMPRESS_BYTES_MIN - 1)));
        let large = vec![b'1'; COMPRESS_BYTES_MIN];
        assert!(is_candidate(&HttpResponse::text(ResponseKind::Csv, large.clone())));
        let columns = ResponseKind::Columns(ColumnFormat::Parquet);
        assert!(!is_candidate(&HttpResponse::text(columns, large.clone())), "they are compressed already");
        assert!(!is_candidate(&HttpResponse::text(ResponseKind::Metrics, large)));
        assert!(!is_candidate(&whole(COMPRESS_BYTES_MIN).with_status(StatusCode::NOT_FOUND)));
        run(async {
            let (compression, turns) = (Compression::new(), RenderTurns::new());
            let short = HttpResponse::streamed(StreamedList::new(|bytes| {
                bytes.extend_from_slice(b"[]");
                false
            }));
            let answer = compression.apply(&accepting("gzip"), &turns, short).await;
            assert!(answer.encoding.is_none());
            assert!(matches!(answer.content, Content::Whole(bytes) if bytes == "[]"));
        });
    }
}
