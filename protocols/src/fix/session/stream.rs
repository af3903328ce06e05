//! The bytes of a connection: received bytes that are not read yet, and encoded messages that are
//! not sent yet. A stream knows nothing of sequence numbers, states and roles.

use pitlane_engine::time::Timestamp;

use crate::fix::encode::{Draft, Encoder};
use crate::fix::frame::FRAME_BYTES_AROUND;
use crate::fix::msg_type::{self, SentMsgType};
use crate::fix::tag::prefix;
use crate::fix::version::FixVersion;

/// Bytes of unsent output above which the session reads no message and continues no resend until
/// the client has taken some output.
pub const OUTPUT_BYTES_HIGH: usize = 256 * 1_024;

/// Bytes of unsent output above which a session disconnects the client, unless its settings say
/// otherwise. Reports cannot be held back, but they are stored and can be resent.
pub const OUTPUT_BYTES_MAX: usize = 8 * 1_024 * 1_024;

/// Frames of the largest size that are held unread: one incomplete frame and one behind it.
const FRAMES_HELD: usize = 2;

#[derive(Debug)]
pub(super) struct FixStream {
    encoder: Encoder,
    input: InputBuffer,
    output: OutputBuffer,
    /// Whether the previous bytes were not a message, so that a run of them counts once.
    in_garbage: bool,
}

impl FixStream {
    pub(super) fn new(version: FixVersion, sender_comp_id: &str, target_comp_id: &str) -> FixStream {
        FixStream {
            encoder: Encoder::new(version, sender_comp_id, target_comp_id),
            input: InputBuffer::default(),
            output: OutputBuffer::default(),
            in_garbage: false,
        }
    }

    pub(super) fn connect(&mut self) {
        self.in_garbage = false;
    }

    /// Forgets all bytes of the connection.
    pub(super) fn disconnect(&mut self) {
        self.input = InputBuffer::default();
        self.output.clear();
    }
}

/// Received bytes.
impl FixStream {
    /// Takes as many bytes as there is room for, with bodies of at most `body_bytes_max` bytes.
    pub(super) fn receive(&mut self, bytes: &[u8], body_bytes_max: usize) -> usize {
        self.input.take(bytes, body_bytes_max)
    }

    pub(super) fn unread(&self) -> &[u8] {
        self.input.pending()
    }

    /// Takes the input out while a frame of it is read. [`FixStream::put_input`] gives it back.
    pub(super) fn take_input(&mut self) -> InputBuffer {
        std::mem::take(&mut self.input)
    }

    /// Gives the input back, of which `consumed` bytes are read.
    pub(super) fn put_input(&mut self, mut input: InputBuffer, consumed: usize) {
        input.consume(consumed);
        self.input = input;
    }

    /// Records that the last bytes were a frame.
    pub(super) fn end_garbage(&mut self) {
        self.in_garbage = false;
    }

    /// Records that the last bytes were not a frame. Returns whether they begin a run of such
    /// bytes.
    pub(super) fn begin_garbage(&mut self) -> bool {
        !std::mem::replace(&mut self.in_garbage, true)
    }
}

/// Bytes to send.
impl FixStream {
    /// Begins a message at the end of the output.
    pub(super) fn begin(
        &mut self,
        msg_type: impl Into<SentMsgType>,
        number: u64,
        now: Timestamp,
    ) -> Draft<'_> {
        self.encoder.begin(&mut self.output.bytes, msg_type, number, now)
    }

    /// Writes a stored message again. Returns whether it was one of our messages.
    pub(super) fn resend(&mut self, message: &[u8], number: u64, now: Timestamp) -> bool {
        self.encoder.resend(&mut self.output.bytes, message, number, now)
    }

    /// Writes SequenceReset-GapFill from one number to the next that counts.
    pub(super) fn gap_fill(&mut self, number: u64, to: u64, now: Timestamp) {
        let output = &mut self.output.bytes;
        let mut draft = self.encoder.begin_resend(output, msg_type::SEQUENCE_RESET, number, now, None);
        draft.code(prefix::GAP_FILL_FLAG, b'Y');
        draft.number(prefix::NEW_SEQ_NO, to);
        draft.finish();
    }

    /// Appends a complete message.
    pub(super) fn append(&mut self, message: &[u8]) {
        self.output.bytes.extend_from_slice(message);
    }

    /// Returns the message that [`Draft::finish`] placed at `start`.
    pub(super) fn written(&self, start: usize) -> &[u8] {
        &self.output.bytes[start..]
    }

    /// Removes the message at `start` again.
    pub(super) fn take_back(&mut self, start: usize) {
        self.output.bytes.truncate(start);
    }

    pub(super) fn unsent(&self) -> &[u8] {
        self.output.pending()
    }

    pub(super) fn unsent_bytes(&self) -> usize {
        self.output.len()
    }

    pub(super) fn has_unsent(&self) -> bool {
        self.output.len() > 0
    }

    /// Returns whether the output is short enough to go on with work that causes more of it.
    pub(super) fn has_room(&self) -> bool {
        self.output.len() < OUTPUT_BYTES_HIGH
    }

    /// Returns whether the client has left more output unread than the session holds for it.
    pub(super) fn is_overfull(&self, bytes_max: usize) -> bool {
        self.output.len() > bytes_max
    }

    /// Records that `count` bytes were sent.
    pub(super) fn sent(&mut self, count: usize) {
        self.output.consume(count);
    }

    pub(super) fn clear_output(&mut self) {
        self.output.clear();
    }
}

#[derive(Debug, Default)]
pub(super) struct InputBuffer {
    bytes: Vec<u8>,
    at: usize,
}

impl InputBuffer {
    fn take(&mut self, bytes: &[u8], body_bytes_max: usize) -> usize {
        let most = FRAMES_HELD * (body_bytes_max + FRAME_BYTES_AROUND);
        let count = bytes.len().min(most.saturating_sub(self.bytes.len() - self.at));
        // Read bytes are removed once they are more than the bytes that must be moved.
        if self.at > self.bytes.len() - self.at {
            self.bytes.drain(..self.at);
            self.at = 0;
        }
        self.bytes.extend_from_slice(&bytes[..count]);
        count
    }

    pub(super) fn pending(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    fn consume(&mut self, count: usize) {
        self.at += count;
        if self.at == self.bytes.len() {
            self.bytes.clear();
            self.at = 0;
        }
    }
}

#[derive(Debug, Default)]
struct OutputBuffer {
    /// Buffer to which the encoder appends.
    bytes: Vec<u8>,
    at: usize,
}

impl OutputBuffer {
    fn pending(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    fn consume(&mut self, count: usize) {
        self.at += count;
        assert!(self.at <= self.bytes.len(), "only what is there can be sent");
        if self.at > self.bytes.len() / 2 {
            self.bytes.drain(..self.at);
            self.at = 0;
        }
    }

    fn len(&self) -> usize {
        self.bytes.len() - self.at
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.at = 0;
    }
}
