//! A response that is compressed while it is sent, piece by piece, by another thread.

use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::{JoinHandle, spawn_blocking};

use super::streamed_list::{RenderTurns, StreamedList};

/// Bytes of a rendered list that are compressed in one step: less than a millisecond of work.
const PIECE_BYTES_MAX: usize = 64 * 1_024;
/// Fastest levels. Lists of JSON shrink to a tenth with them, and little further with higher ones.
const GZIP_LEVEL: u32 = 1;
#[cfg(feature = "zstd")]
const ZSTD_LEVEL: i32 = 1;
/// Binary logarithm of the window, which bounds the memory of both sides to 128 KiB for it.
#[cfg(feature = "zstd")]
const ZSTD_WINDOW_LOG: u32 = 17;

/// A response that is compressed while it is sent.
#[derive(Debug)]
pub(crate) struct CompressedBody {
    pieces: Pieces,
    state: EncodingState,
}

#[derive(Debug)]
enum EncodingState {
    Idle(ActiveEncoder),
    /// Another thread has the encoder, and returns it unless this was the last piece.
    Busy(JoinHandle<io::Result<(Option<ActiveEncoder>, Bytes)>>),
    Over,
}

/// The response cannot be completed.
#[derive(Debug)]
pub(crate) struct EncodingFailed;

impl CompressedBody {
    /// Creates the body of what is rendered already and the rest of a list; `permit` is its place
    /// among the encoders in use.
    pub(crate) fn new(
        coding: &str,
        permit: OwnedSemaphorePermit,
        rendered: Bytes,
        list: Option<StreamedList>,
    ) -> CompressedBody {
        let state = EncodingState::Idle(ActiveEncoder { encoder: Encoder::new(coding), _permit: permit });
        CompressedBody { pieces: Pieces { rendered, list }, state }
    }

    /// Returns the next compressed bytes; `None` at the end.
    pub(crate) fn poll_next(
        &mut self,
        turns: &RenderTurns,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, EncodingFailed>>> {
        loop {
            match std::mem::replace(&mut self.state, EncodingState::Over) {
                EncodingState::Over => return Poll::Ready(None),
                EncodingState::Idle(active) => match self.pieces.poll_next(turns, cx) {
                    Poll::Pending => {
                        self.state = EncodingState::Idle(active);
                        return Poll::Pending;
                    }
                    Poll::Ready(Err(failed)) => return Poll::Ready(Some(Err(failed))),
                    Poll::Ready(Ok(piece)) => {
                        self.state = EncodingState::Busy(spawn_blocking(move || active.encode(piece)));
                    }
                },
                EncodingState::Busy(mut task) => match Pin::new(&mut task).poll(cx) {
                    Poll::Pending => {
                        self.state = EncodingState::Busy(task);
                        return Poll::Pending;
                    }
                    Poll::Ready(Ok(Ok((active, bytes)))) => {
                        self.state = active.map_or(EncodingState::Over, EncodingState::Idle);
                        // An encoder collects several pieces before it writes some.
                        if !bytes.is_empty() {
                            return Poll::Ready(Some(Ok(bytes)));
                        }
                    }
                    Poll::Ready(Ok(Err(_)) | Err(_)) => return Poll::Ready(Some(Err(EncodingFailed))),
                },
            }
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state, EncodingState::Over)
    }
}

/// What is still to be compressed.
#[derive(Debug)]
struct Pieces {
    rendered: Bytes,
    list: Option<StreamedList>,
}

impl Pieces {
    /// Returns the next piece; `None` in it at the end.
    fn poll_next(
        &mut self,
        turns: &RenderTurns,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, EncodingFailed>> {
        if !self.rendered.is_empty() {
            let len = self.rendered.len().min(PIECE_BYTES_MAX);
            return Poll::Ready(Ok(Some(self.rendered.split_to(len))));
        }
        match &mut self.list {
            Some(list) if list.is_cut() => Poll::Ready(Err(EncodingFailed)),
            Some(list) => Poll::Ready(Ok(ready!(list.poll_next(turns, cx)))),
            None => Poll::Ready(Ok(None)),
        }
    }
}

/// An encoder in use, and its place among those that may be.
#[derive(Debug)]
struct ActiveEncoder {
    encoder: Encoder,
    _permit: OwnedSemaphorePermit,
}

impl ActiveEncoder {
    /// Compresses a piece, or ends the response without one.
    fn encode(mut self, piece: Option<Bytes>) -> io::Result<(Option<ActiveEncoder>, Bytes)> {
        match piece {
            Some(piece) => {
                let bytes = self.encoder.write(&piece)?;
                Ok((Some(self), bytes))
            }
            None => Ok((None, self.encoder.finish()?)),
        }
    }
}

enum Encoder {
    Gzip(GzEncoder<Vec<u8>>),
    #[cfg(feature = "zstd")]
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Encoder {
    fn new(coding: &str) -> Encoder {
        match coding {
            #[cfg(feature = "zstd")]
            "zstd" => {
                let encoder = zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL);
                let mut encoder = encoder.expect("the level is one of the library");
                encoder.window_log(ZSTD_WINDOW_LOG).expect("the window is one of the library");
                Encoder::Zstd(encoder)
            }
            _ => Encoder::Gzip(GzEncoder::new(Vec::new(), Compression::new(GZIP_LEVEL))),
        }
    }

    /// Takes a piece and returns what is compressed so far, perhaps nothing.
    fn write(&mut self, piece: &[u8]) -> io::Result<Bytes> {
        let written = match self {
            Encoder::Gzip(encoder) => {
                encoder.write_all(piece)?;
                encoder.get_mut()
            }
            #[cfg(feature = "zstd")]
            Encoder::Zstd(encoder) => {
                encoder.write_all(piece)?;
                encoder.get_mut()
            }
        };
        Ok(std::mem::take(written).into())
    }

    fn finish(self) -> io::Result<Bytes> {
        match self {
            Encoder::Gzip(encoder) => encoder.finish().map(Bytes::from),
            #[cfg(feature = "zstd")]
            Encoder::Zstd(encoder) => encoder.finish().map(Bytes::from),
        }
    }
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Encoder")
    }
}
