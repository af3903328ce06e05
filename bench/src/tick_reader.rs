//! Decodes the ticks that a broker delivers: frames from a stream of bytes, and each body to typed
//! values, as a consumer does that uses them.

pub mod fix;

use std::hint::black_box;
use std::ops::Range;

use memchr::memmem::Finder;
use pitlane_sbe::Message;
use serde::Deserialize;
use simd_json::Buffers;

/// Units of a decimal in SBE.
const SBE_UNITS: f64 = 1e8;

/// What a consumer does with the body of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyReader {
    /// Nothing: it only counts messages.
    None,
    Sbe,
    /// The same; the ticks of a turn share a frame.
    SharedSbe,
    SimdJson,
    SerdeJson,
}

impl BodyReader {
    pub const ALL: [BodyReader; 4] =
        [BodyReader::Sbe, BodyReader::SharedSbe, BodyReader::SimdJson, BodyReader::SerdeJson];

    pub fn is_binary(self) -> bool {
        match self {
            BodyReader::Sbe | BodyReader::SharedSbe => true,
            BodyReader::None | BodyReader::SimdJson | BodyReader::SerdeJson => false,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            BodyReader::None => "not decoded",
            BodyReader::Sbe => "SBE",
            BodyReader::SharedSbe => "SBE in shared frames",
            BodyReader::SimdJson => "JSON by simd-json",
            BodyReader::SerdeJson => "JSON by serde_json",
        }
    }
}

/// How a protocol frames messages.
#[derive(Clone, Copy, Debug)]
pub enum Framing {
    Stomp,
    /// All messages have this many bytes with their head.
    Nats {
        length: u64,
    },
}

/// The members of a tick that every consumer uses.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JsonTick<'a> {
    seq: u64,
    ts: u64,
    security_id: u32,
    #[serde(borrow)]
    symbol: Option<&'a str>,
    bid: Option<f64>,
    bid_size: Option<f64>,
    ask: Option<f64>,
    ask_size: Option<f64>,
    last: Option<f64>,
    last_size: Option<f64>,
    volume: f64,
    #[serde(borrow)]
    date_time: &'a str,
}

/// What is told about a tick that was decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SeenTick {
    pub security: u32,
    /// Nanoseconds since 1970.
    pub ts: u64,
    /// Size of the last trade; 0: none.
    pub last_size: f64,
    /// Traded quantity of the day.
    pub volume: f64,
}

/// The begin of a message whose end has not arrived.
#[derive(Debug, Default)]
struct PendingMessage(Vec<u8>);

impl PendingMessage {
    /// Calls `read` with all bytes that are not read yet. It returns how many messages end in them,
    /// and the bytes of these messages; the rest stays here.
    fn read(&mut self, bytes: &mut [u8], read: impl FnOnce(&mut [u8]) -> (u64, usize)) -> u64 {
        if self.0.is_empty() {
            let (messages, consumed) = read(bytes);
            self.0.extend_from_slice(&bytes[consumed..]);
            return messages;
        }
        self.0.extend_from_slice(bytes);
        let (messages, consumed) = read(&mut self.0);
        self.0.drain(..consumed);
        messages
    }
}

/// Reads the ticks of one connection.
pub struct TickReader {
    framing: Framing,
    body: BodyReader,
    pending: PendingMessage,
    head_end: Finder<'static>,
    length_header: Finder<'static>,
    /// Memory of simd-json.
    buffers: Buffers,
}

impl TickReader {
    pub fn new(framing: Framing, body: BodyReader) -> TickReader {
        let head_end: &[u8] = match framing {
            Framing::Stomp => b"\n\n",
            Framing::Nats { .. } => b"\r\n",
        };
        TickReader {
            framing,
            body,
            pending: PendingMessage::default(),
            head_end: Finder::new(head_end),
            length_header: Finder::new(b"content-length:"),
            buffers: Buffers::default(),
        }
    }

    /// Decodes the messages that end in these bytes, calls `observe` with each tick, and
    /// returns their number.
    ///
    /// # Panics
    ///
    /// If a message is no tick.
    pub fn read(&mut self, bytes: &mut [u8], mut observe: impl FnMut(SeenTick)) -> u64 {
        let mut pending = std::mem::take(&mut self.pending);
        let ticks = pending.read(bytes, |bytes| self.read_frames(bytes, &mut observe));
        self.pending = pending;
        ticks
    }

    fn read_frames(&mut self, bytes: &mut [u8], observe: &mut impl FnMut(SeenTick)) -> (u64, usize) {
        let (mut ticks, mut consumed) = (0, 0);
        while let Some((body, length)) = self.frame(&bytes[consumed..]) {
            if let Some(body) = body {
                let body = &mut bytes[consumed + body.start..consumed + body.end];
                ticks += self.read_body(body, observe);
            }
            consumed += length;
        }
        (ticks, consumed)
    }

    /// Returns the body of the first message if it has one, and the bytes of the whole message.
    fn frame(&self, bytes: &[u8]) -> Option<(Option<Range<usize>>, usize)> {
        let head_end = self.head_end.find(bytes)?;
        let head = &bytes[..head_end];
        let begin = head_end + 2;
        let (length, end_bytes) = match self.framing {
            Framing::Stomp => match self.length_header.find(head) {
                Some(at) => (number(&head[at + b"content-length:".len()..]), 1),
                None => (memchr::memchr(0, &bytes[begin..])?, 1),
            },
            Framing::Nats { .. } => {
                // NATS measures the time of a round trip soon after the connection. It waits
                // minutes for the answer.
                if head == b"PING" {
                    return Some((None, begin));
                }
                let at = memchr::memrchr(b' ', head).expect("a head has the length of the body");
                (number(&head[at + 1..]), 2)
            }
        };
        let message_end = begin + length + end_bytes;
        (bytes.len() >= message_end).then_some((Some(begin..begin + length), message_end))
    }

    fn read_body(&mut self, body: &mut [u8], observe: &mut impl FnMut(SeenTick)) -> u64 {
        let tick: JsonTick = match self.body {
            BodyReader::None => return 1,
            BodyReader::Sbe | BodyReader::SharedSbe => return read_sbe(body, observe),
            BodyReader::SimdJson => simd_json::serde::from_slice_with_buffers(body, &mut self.buffers)
                .expect("the body is a tick"),
            BodyReader::SerdeJson => serde_json::from_slice(body).expect("the body is a tick"),
        };
        let last_size = tick.last_size.unwrap_or_default();
        observe(SeenTick { security: tick.security_id, ts: tick.ts, last_size, volume: tick.volume });
        black_box((tick.seq, tick.symbol, tick.date_time));
        black_box((tick.bid, tick.bid_size, tick.ask, tick.ask_size, tick.last));
        1
    }
}

fn read_sbe(body: &[u8], observe: &mut impl FnMut(SeenTick)) -> u64 {
    let mut ticks = 0;
    for message in pitlane_sbe::messages(body) {
        let Ok(Message::Tick(tick)) = message else { panic!("the body is not a tick: {message:?}") };
        observe(SeenTick {
            security: tick.security_id(),
            ts: tick.ts(),
            last_size: tick.last_size().map_or(0.0, |size| size.0 as f64 / SBE_UNITS),
            volume: tick.volume().0 as f64 / SBE_UNITS,
        });
        black_box((tick.seq(), tick.date_time()));
        black_box((tick.bid(), tick.bid_size(), tick.ask(), tick.ask_size(), tick.last()));
        ticks += 1;
    }
    ticks
}

/// Reads the decimal number at the start of `text`.
fn number(text: &[u8]) -> usize {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |sum, digit| sum * 10 + usize::from(digit - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str =
        r#"{"seq":7,"ts":99,"securityId":1,"bid":10.5,"volume":3,"dateTime":"2026-11-18T00:00:00Z"}"#;

    fn times(framing: Framing, body: BodyReader, stream: &[u8], step: usize) -> Vec<u64> {
        let (mut reader, mut times) = (TickReader::new(framing, body), Vec::new());
        let counted: u64 =
            stream.chunks(step).map(|part| reader.read(&mut part.to_vec(), |tick| times.push(tick.ts))).sum();
        assert_eq!(counted, times.len() as u64);
        times
    }

    #[test]
    fn ticks_are_read_however_the_stream_is_cut() {
        let with_length = format!("MESSAGE\ncontent-length:{}\n\n{BODY}\0", BODY.len());
        let without = format!("MESSAGE\na:b\n\n{BODY}\0");
        let nats = format!("MSG t 1 {}\r\n{BODY}\r\n", BODY.len());
        let length = nats.len() as u64;
        for (framing, text) in [
            (Framing::Stomp, with_length.repeat(3)),
            (Framing::Stomp, without.repeat(3)),
            (Framing::Nats { length }, nats.repeat(3)),
        ] {
            for step in [1, 7, 64, text.len()] {
                for body in [BodyReader::SimdJson, BodyReader::SerdeJson] {
                    assert_eq!(times(framing, body, text.as_bytes(), step), [99; 3], "{body:?} {step}");
                }
            }
        }
    }
}
