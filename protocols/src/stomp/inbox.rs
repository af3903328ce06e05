//! Received octets of a client that are not decoded yet. A frame that is complete in the received
//! octets is decoded in place; only the rest of an incomplete frame is copied.

use std::borrow::Cow;

use super::decode::{Decoder, FrameLimits, StompFrameError};
use super::frame::{StompFrame, StompVersion};
use crate::decoded::Decoded;

/// Memory that an empty inbox keeps. Most frames fit, and thousands of idle sessions may have it.
const KEEP_BYTES_MAX: usize = 1_024;

#[derive(Debug, Default)]
pub struct StompInbox {
    decoder: Decoder,
    /// Octets of an incomplete frame, bounded by the decoder's limits and before CONNECTED by
    /// [`super::decode::CONNECT_BYTES_MAX`].
    kept: Vec<u8>,
    /// Octets of `kept` that are decoded.
    read: usize,
}

/// A frame that cannot be decoded, and the receipt it requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenFrame {
    pub error: StompFrameError,
    pub receipt: Option<String>,
}

impl StompInbox {
    pub fn new(limits: FrameLimits) -> StompInbox {
        StompInbox { decoder: Decoder::new(limits), ..StompInbox::default() }
    }

    pub fn set_version(&mut self, version: StompVersion) {
        self.decoder.set_version(version);
    }

    /// Returns the next frame of the kept octets and of `fresh`, which shrinks by what was taken.
    /// Returns `None` if the frame is incomplete; `fresh` is then empty.
    pub fn next<'a, 'b: 'a>(
        &'a mut self,
        fresh: &mut &'b [u8],
    ) -> Result<Option<StompFrame<'a>>, BrokenFrame> {
        if self.read > 0 && self.read == self.kept.len() {
            self.kept.clear();
            self.kept.shrink_to(KEEP_BYTES_MAX);
            self.read = 0;
        }
        if self.kept.is_empty() {
            return StompInbox::next_fresh(&mut self.decoder, &mut self.kept, fresh);
        }
        if !fresh.is_empty() {
            self.kept.drain(..std::mem::take(&mut self.read));
            self.kept.extend_from_slice(std::mem::take(fresh));
        }
        let unread = &self.kept[self.read..];
        match self.decoder.decode(unread) {
            Ok(Decoded::Message { message, consumed }) => {
                self.read += consumed;
                Ok(Some(message))
            }
            Ok(Decoded::Incomplete) => {
                self.read += self.decoder.skip();
                Ok(None)
            }
            Err(error) => Err(broken(&self.decoder, unread, error)),
        }
    }

    /// Keeps octets while no frame may be read, and returns how many are kept.
    pub fn keep(&mut self, fresh: &mut &[u8]) -> usize {
        self.kept.extend_from_slice(std::mem::take(fresh));
        self.kept.len() - self.read
    }

    /// Discards the kept octets of a session that has ended.
    pub fn close(&mut self) {
        self.kept = Vec::new();
        self.read = 0;
    }

    fn next_fresh<'a>(
        decoder: &mut Decoder,
        kept: &mut Vec<u8>,
        fresh: &mut &'a [u8],
    ) -> Result<Option<StompFrame<'a>>, BrokenFrame> {
        match decoder.decode(fresh) {
            Ok(Decoded::Message { message, consumed }) => {
                *fresh = &fresh[consumed..];
                Ok(Some(message))
            }
            Ok(Decoded::Incomplete) => {
                kept.extend_from_slice(&fresh[decoder.skip()..]);
                *fresh = &[];
                Ok(None)
            }
            Err(error) => Err(broken(decoder, fresh, error)),
        }
    }
}

fn broken(decoder: &Decoder, bytes: &[u8], error: StompFrameError) -> BrokenFrame {
    BrokenFrame { error, receipt: decoder.receipt(bytes).map(Cow::into_owned) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_one_keeps_so_much_memory_and_no_more() {
        for (body, kept) in [(100, 1..=KEEP_BYTES_MAX), (60_000, 0..=KEEP_BYTES_MAX)] {
            let mut inbox = StompInbox::new(FrameLimits::default());
            inbox.set_version(StompVersion::V12);
            let frame = [b"SEND\ndestination:/topic/a\n\n", vec![b'x'; body].as_slice(), b"\0"].concat();
            let (first, mut rest) = frame.split_at(frame.len() - 1);
            assert_eq!(inbox.next(&mut &*first), Ok(None));
            assert!(inbox.kept.capacity() >= first.len(), "the rest of a cut frame is kept");
            assert!(matches!(inbox.next(&mut rest), Ok(Some(frame)) if frame.body.len() == body));
            assert_eq!(inbox.next(&mut &b""[..]), Ok(None));
            assert!(kept.contains(&inbox.kept.capacity()), "{}", inbox.kept.capacity());
        }
    }
}
