//! Reads the frames of the strategy link from a socket, on either side.

use std::io;

use pitlane_protocols::remote::link::{FrameBuffer, FrameError};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes read at once.
const PORTION_BYTES: usize = 16 << 10;

/// The reason why there is no further frame.
#[derive(Debug)]
pub enum FrameReadError {
    /// The other side has closed the connection.
    Closed,
    Socket(io::Error),
    Frame(FrameError),
}

#[derive(Debug)]
pub struct FrameReader<R> {
    from: R,
    buffer: FrameBuffer,
    portion: Box<[u8]>,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// Creates a reader of frames of at most `max` bytes.
    pub fn new(from: R, max: usize) -> FrameReader<R> {
        FrameReader { from, buffer: FrameBuffer::new(max), portion: vec![0; PORTION_BYTES].into() }
    }

    pub fn set_max(&mut self, max: usize) {
        self.buffer.set_max(max);
    }

    /// Returns the next frame. A call that is dropped loses nothing.
    pub async fn next<T>(
        &mut self,
        decode: impl Fn(&[u8]) -> Result<T, FrameError>,
    ) -> Result<T, FrameReadError> {
        loop {
            if let Some(frame) = self.buffer.next_frame().map_err(FrameReadError::Frame)? {
                return decode(frame).map_err(FrameReadError::Frame);
            }
            match self.from.read(&mut self.portion).await {
                Ok(0) => return Err(FrameReadError::Closed),
                Ok(count) => self.buffer.extend(&self.portion[..count]),
                Err(error) => return Err(FrameReadError::Socket(error)),
            }
        }
    }

    /// Reads and drops what is left, up to a bound: a socket that is closed with unread bytes may
    /// take back what was sent last.
    pub async fn drain(&mut self, bytes_max: usize) {
        let mut drained = 0;
        while drained < bytes_max
            && let Ok(count @ 1..) = self.from.read(&mut self.portion).await
        {
            drained += count;
        }
    }
}
