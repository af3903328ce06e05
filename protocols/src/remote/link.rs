//! Frames of the strategy link: the connection of a strategy in its own process to its server,
//! without a broker. docs/strategy-link.md describes it.
//!
//! ```text
//! length u32 │ kind u8 │ body
//! ```
//!
//! The bodies of REQUEST, REPLY, EVENTS and PRICES are the messages of [`super::strategy`], with
//! the same bytes as over a broker. A frame is decoded without trust in its sender: any bytes give
//! a frame or an error, and a receiver never keeps more than the longest frame.

use std::fmt;

use pitlane_engine::codec::{ByteReader, ByteSink, Codec, DecodeError, DecodeProblem};

/// Version of the link, in the first frame of each side. It rises when the frames would be decoded
/// differently.
pub const LINK_VERSION: u8 = 1;

/// Longest frame after the login, without its length: an event between strategies with the longest
/// body, name and sender.
pub const FRAME_BYTES_MAX: usize = (1 << 20) + (64 << 10);

/// Longest frame before the login: a name and a token, with room to spare. So an unknown client
/// takes no more memory than this.
pub const LOGIN_BYTES_MAX: usize = 4_096;

/// Bytes of the length in front of each frame.
const LENGTH_BYTES: usize = 4;

mod kind {
    pub(super) const LOGIN: u8 = 1;
    pub(super) const REQUEST: u8 = 2;
    pub(super) const PUBLISH: u8 = 3;
    pub(super) const ACKNOWLEDGE: u8 = 4;
    pub(super) const LOGGED_IN: u8 = 129;
    pub(super) const REFUSED: u8 = 130;
    pub(super) const REPLY: u8 = 131;
    pub(super) const EVENTS: u8 = 132;
    pub(super) const PRICES: u8 = 133;
    pub(super) const GENERIC: u8 = 134;
    pub(super) const PUBLISHED: u8 = 135;
}

/// From the process of a strategy to its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StrategyFrame {
    /// The first frame.
    Login { version: u8, strategy: String, token: String },
    /// A [`super::strategy::RemoteRequest`]; number 0 asks for no reply.
    Request { number: u64, request: Vec<u8> },
    /// An event for other strategies. `publisher` identifies the process, and `number` counts its
    /// events, so that a repeated one is recognised.
    Publish { publisher: u64, number: u64, name: String, body: Vec<u8> },
    /// The strategy has handled all events of others up to this number.
    Acknowledge { number: u64 },
}

/// From a server to the process of a strategy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerFrame {
    /// Each side closes a connection on which it receives no frame for `idle_ms`.
    LoggedIn { version: u8, server: String, idle_ms: u32 },
    /// The last frame of a connection; `retry` if another attempt may succeed.
    Refused { code: String, text: String, retry: bool },
    /// A [`super::strategy::RemoteReply`] to the request of this number.
    Reply { number: u64, reply: Vec<u8> },
    /// A [`super::strategy::EventBatch`].
    Events(Vec<u8>),
    /// A [`super::strategy::PriceBatch`].
    Prices(Vec<u8>),
    /// An event of another strategy, or of a client of the server.
    Generic { number: u64, from: String, name: String, body: Vec<u8> },
    /// The published event of this number is stored.
    Published { number: u64 },
}

/// Reason why a server ends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkRefusal {
    BadFrame(FrameError),
    BadVersion(u8),
    LoginRequired,
    LoginTimeout,
    BadToken,
    Forbidden,
    UnknownStrategy,
    TooManyConnections,
    Revoked,
    Idle,
}

impl LinkRefusal {
    /// Returns the code, which never changes.
    pub fn code(self) -> &'static str {
        match self {
            LinkRefusal::BadFrame(_) => "bad-frame",
            LinkRefusal::BadVersion(_) => "bad-version",
            LinkRefusal::LoginRequired => "login-required",
            LinkRefusal::LoginTimeout => "login-timeout",
            LinkRefusal::BadToken => "bad-token",
            LinkRefusal::Forbidden => "forbidden",
            LinkRefusal::UnknownStrategy => "unknown-strategy",
            LinkRefusal::TooManyConnections => "too-many-connections",
            LinkRefusal::Revoked => "revoked",
            LinkRefusal::Idle => "idle",
        }
    }

    /// Returns whether another attempt may succeed without a change of settings.
    pub fn may_retry(self) -> bool {
        match self {
            LinkRefusal::LoginTimeout
            | LinkRefusal::TooManyConnections
            | LinkRefusal::Revoked
            | LinkRefusal::Idle => true,
            LinkRefusal::BadFrame(_)
            | LinkRefusal::BadVersion(_)
            | LinkRefusal::LoginRequired
            | LinkRefusal::BadToken
            | LinkRefusal::Forbidden
            | LinkRefusal::UnknownStrategy => false,
        }
    }

    /// Returns the frame for the other side.
    pub fn frame(self) -> ServerFrame {
        ServerFrame::Refused {
            code: self.code().to_string(),
            text: self.to_string(),
            retry: self.may_retry(),
        }
    }
}

impl fmt::Display for LinkRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LinkRefusal::BadFrame(error) => return error.fmt(f),
            LinkRefusal::BadVersion(theirs) => {
                return write!(f, "this server uses version {LINK_VERSION} of the link, not {theirs}");
            }
            LinkRefusal::LoginRequired => "the first frame must be LOGIN",
            LinkRefusal::LoginTimeout => "there was no LOGIN in time",
            LinkRefusal::BadToken => "the token is missing or unknown",
            LinkRefusal::Forbidden => "this login may not run this strategy",
            LinkRefusal::UnknownStrategy => "the server's settings have no such [[strategy]]",
            LinkRefusal::TooManyConnections => "this strategy has too many connections",
            LinkRefusal::Revoked => "the token was removed or changed",
            LinkRefusal::Idle => "the connection was silent for too long",
        })
    }
}

/// Reason why bytes are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// The length is zero or above the limit.
    Length {
        length: u32,
        max: usize,
    },
    /// A kind that this side does not receive.
    Kind(u8),
    Damaged(DecodeError),
    /// The values break a rule of the link.
    Rule(&'static str),
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameError::Length { length, max } => {
                write!(f, "a frame has {length} bytes; it must have 1 to {max}")
            }
            FrameError::Kind(kind) => write!(f, "a frame has the unknown kind {kind}"),
            FrameError::Damaged(damage) => damage.fmt(f),
            FrameError::Rule(text) => f.write_str(text),
        }
    }
}

/// Received bytes that are not complete frames yet.
#[derive(Debug)]
pub struct FrameBuffer {
    bytes: Vec<u8>,
    /// Bytes of frames that were taken.
    taken: usize,
    max: usize,
}

impl FrameBuffer {
    /// Creates a buffer for frames of at most `max` bytes.
    pub fn new(max: usize) -> FrameBuffer {
        FrameBuffer { bytes: Vec::new(), taken: 0, max }
    }

    pub fn set_max(&mut self, max: usize) {
        self.max = max;
    }

    /// Adds received bytes. A caller takes all complete frames before it adds more, so the buffer
    /// holds one frame and one portion of bytes at most.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next complete frame without its length: a kind and a body.
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, FrameError> {
        let Some(prefix) = self.bytes[self.taken..].first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
        let length = u32::from_le_bytes(*prefix);
        if length == 0 || length as usize > self.max {
            return Err(FrameError::Length { length, max: self.max });
        }
        let from = self.taken + LENGTH_BYTES;
        let end = from + length as usize;
        if self.bytes.len() < end {
            return Ok(None);
        }
        self.taken = end;
        Ok(Some(&self.bytes[from..end]))
    }

    /// Returns whether a part of a frame is waiting for the rest.
    pub fn has_part(&self) -> bool {
        self.taken < self.bytes.len()
    }
}

/// Builds a frame: its length, its kind and its body.
fn frame(kind: u8, body: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = vec![0; LENGTH_BYTES];
    bytes.push(kind);
    body(&mut bytes);
    let length = bytes.len() - LENGTH_BYTES;
    let length = u32::try_from(length).expect("every message is far below four gigabytes");
    bytes[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    bytes
}

/// Returns the bytes up to the end.
fn rest(from: &mut ByteReader<'_>) -> Result<Vec<u8>, DecodeError> {
    from.take(from.left()).map(<[u8]>::to_vec)
}

/// Decodes the frame of one kind from its whole body.
fn decode_body<T>(
    body: &[u8],
    decode: impl FnOnce(&mut ByteReader<'_>) -> Result<T, DecodeError>,
) -> Result<T, FrameError> {
    let mut from = ByteReader::new(body);
    let value = decode(&mut from).map_err(FrameError::Damaged)?;
    from.finish().map_err(FrameError::Damaged)?;
    Ok(value)
}

/// Splits a frame into kind and body.
fn split(frame: &[u8]) -> Result<(u8, &[u8]), FrameError> {
    let empty = FrameError::Damaged(DecodeError { at: 0, problem: DecodeProblem::Short });
    frame.split_first().map(|(kind, body)| (*kind, body)).ok_or(empty)
}

impl StrategyFrame {
    /// Returns the bytes of the frame, with its length.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            StrategyFrame::Login { version, strategy, token } => frame(kind::LOGIN, |out| {
                version.encode(out);
                strategy.encode(out);
                token.encode(out);
            }),
            StrategyFrame::Request { number, request } => frame(kind::REQUEST, |out| {
                number.encode(out);
                out.put(request);
            }),
            StrategyFrame::Publish { publisher, number, name, body } => frame(kind::PUBLISH, |out| {
                publisher.encode(out);
                number.encode(out);
                name.encode(out);
                body.encode(out);
            }),
            StrategyFrame::Acknowledge { number } => frame(kind::ACKNOWLEDGE, |out| number.encode(out)),
        }
    }

    /// Decodes a frame without its length.
    pub fn decode(frame: &[u8]) -> Result<StrategyFrame, FrameError> {
        let (kind, body) = split(frame)?;
        match kind {
            // A login of another version may have other fields, and its sender must learn that.
            kind::LOGIN if body.first().is_some_and(|version| *version != LINK_VERSION) => {
                let (version, empty) = (body[0], String::new);
                Ok(StrategyFrame::Login { version, strategy: empty(), token: empty() })
            }
            kind::LOGIN => decode_body(body, |from| {
                let (version, strategy) = (Codec::decode(from)?, Codec::decode(from)?);
                Ok(StrategyFrame::Login { version, strategy, token: Codec::decode(from)? })
            }),
            kind::REQUEST => decode_body(body, |from| {
                Ok(StrategyFrame::Request { number: Codec::decode(from)?, request: rest(from)? })
            }),
            kind::PUBLISH => decode_body(body, |from| {
                let (publisher, number) = (Codec::decode(from)?, Codec::decode(from)?);
                let (name, body) = (Codec::decode(from)?, Codec::decode(from)?);
                Ok(StrategyFrame::Publish { publisher, number, name, body })
            }),
            kind::ACKNOWLEDGE => {
                decode_body(body, |from| Ok(StrategyFrame::Acknowledge { number: Codec::decode(from)? }))
            }
            other => Err(FrameError::Kind(other)),
        }
    }
}

impl ServerFrame {
    /// Returns the bytes of the frame, with its length.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            ServerFrame::LoggedIn { version, server, idle_ms } => frame(kind::LOGGED_IN, |out| {
                version.encode(out);
                server.encode(out);
                idle_ms.encode(out);
            }),
            ServerFrame::Refused { code, text, retry } => frame(kind::REFUSED, |out| {
                code.encode(out);
                text.encode(out);
                retry.encode(out);
            }),
            ServerFrame::Reply { number, reply } => frame(kind::REPLY, |out| {
                number.encode(out);
                out.put(reply);
            }),
            ServerFrame::Events(batch) => frame(kind::EVENTS, |out| out.put(batch)),
            ServerFrame::Prices(batch) => frame(kind::PRICES, |out| out.put(batch)),
            ServerFrame::Generic { number, from, name, body } => frame(kind::GENERIC, |out| {
                number.encode(out);
                from.encode(out);
                name.encode(out);
                body.encode(out);
            }),
            ServerFrame::Published { number } => frame(kind::PUBLISHED, |out| number.encode(out)),
        }
    }

    /// Decodes a frame without its length.
    pub fn decode(frame: &[u8]) -> Result<ServerFrame, FrameError> {
        let (kind, body) = split(frame)?;
        match kind {
            kind::LOGGED_IN => decode_body(body, |from| {
                let (version, server) = (Codec::decode(from)?, Codec::decode(from)?);
                Ok(ServerFrame::LoggedIn { version, server, idle_ms: Codec::decode(from)? })
            }),
            kind::REFUSED => decode_body(body, |from| {
                let (code, text) = (Codec::decode(from)?, Codec::decode(from)?);
                Ok(ServerFrame::Refused { code, text, retry: Codec::decode(from)? })
            }),
            kind::REPLY => decode_body(body, |from| {
                Ok(ServerFrame::Reply { number: Codec::decode(from)?, reply: rest(from)? })
            }),
            kind::EVENTS => Ok(ServerFrame::Events(body.to_vec())),
            kind::PRICES => Ok(ServerFrame::Prices(body.to_vec())),
            kind::GENERIC => decode_body(body, |from| {
                let (number, sender) = (Codec::decode(from)?, Codec::decode(from)?);
                let (name, body) = (Codec::decode(from)?, Codec::decode(from)?);
                Ok(ServerFrame::Generic { number, from: sender, name, body })
            }),
            kind::PUBLISHED => {
                decode_body(body, |from| Ok(ServerFrame::Published { number: Codec::decode(from)? }))
            }
            other => Err(FrameError::Kind(other)),
        }
    }
}

#[cfg(test)]
mod tests;
