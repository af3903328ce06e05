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

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000_000_000);

    fn stream() -> FixStream {
        FixStream::new(FixVersion::Fix44, "PITLANE", "CLIENT1")
    }

    /// Takes the input out as a reader of frames does, and reads so many bytes of it.
    fn consume(stream: &mut FixStream, count: usize) {
        let input = stream.take_input();
        stream.put_input(input, count);
    }

    #[test]
    fn two_frames_of_the_largest_size_are_held_unread() {
        let (mut stream, most) = (stream(), 2 * (10 + FRAME_BYTES_AROUND));
        let bytes: Vec<u8> = (0..=255).cycle().take(1_000).collect();
        assert_eq!(stream.receive(&bytes, 10), most);
        assert_eq!(stream.unread(), &bytes[..most]);
        assert_eq!(stream.receive(&bytes, 10), 0);
        consume(&mut stream, 3);
        assert_eq!(stream.unread(), &bytes[3..most]);
        assert_eq!(stream.receive(&bytes[most..], 10), 3);
        assert_eq!(stream.unread(), &bytes[3..most + 3]);
        consume(&mut stream, most);
        assert_eq!(stream.unread(), b"");
        assert_eq!(stream.receive(b"more", 10), 4);
        assert_eq!(stream.unread(), b"more");
    }

    #[test]
    fn bytes_that_are_read_are_removed_when_they_are_more_than_the_others() {
        for (read, left_in_front) in [(3, 3), (5, 5), (6, 0), (10, 0)] {
            let mut input = InputBuffer::default();
            assert_eq!(input.take(&[b'x'; 10], 100), 10);
            input.consume(read);
            assert_eq!(input.take(b"y", 100), 1);
            assert_eq!((input.at, input.pending().len()), (left_in_front, 11 - read), "{read}");
        }
        for (sent, left_in_front) in [(3, 3), (5, 5), (6, 0), (10, 0)] {
            let mut output = OutputBuffer { bytes: vec![b'x'; 10], at: 0 };
            output.consume(sent);
            assert_eq!((output.at, output.len()), (left_in_front, 10 - sent), "{sent}");
            assert_eq!(output.pending().len(), 10 - sent, "{sent}");
        }
    }

    #[test]
    fn a_run_of_bytes_that_are_no_message_begins_once() {
        let mut stream = stream();
        assert!(stream.begin_garbage() && !stream.begin_garbage());
        stream.end_garbage();
        assert!(stream.begin_garbage() && !stream.begin_garbage());
        stream.connect();
        assert!(stream.begin_garbage());
    }

    #[test]
    fn a_message_is_stored_and_resent_as_it_was_written() {
        let mut stream = stream();
        stream.append(b"before ");
        let start = stream.begin(msg_type::HEARTBEAT, 7, NOW).finish();
        let written = stream.written(start).to_vec();
        assert!(written.starts_with(b"8=FIX.4.4\x01") && written.ends_with(b"\x01"));
        stream.take_back(start);
        assert_eq!(stream.unsent(), b"before ");
        assert!(!stream.resend(b"something else", 7, NOW));
        assert_eq!(stream.unsent(), b"before ");
        assert!(stream.resend(&written, 7, NOW));
        let resent = String::from_utf8(stream.unsent().to_vec()).unwrap();
        assert!(resent.contains("\x0134=7\x0143=Y\x01"), "{resent}");
    }

    #[test]
    fn output_has_room_below_its_bound_and_ends_with_the_connection() {
        let mut stream = stream();
        assert!(!stream.has_unsent() && stream.has_room() && !stream.is_overfull(0));
        stream.append(&vec![b'x'; OUTPUT_BYTES_HIGH - 1]);
        assert!(stream.has_unsent() && stream.has_room());
        stream.append(b"x");
        assert!(!stream.has_room());
        assert_eq!(stream.unsent_bytes(), OUTPUT_BYTES_HIGH);
        assert!(!stream.is_overfull(OUTPUT_BYTES_HIGH) && stream.is_overfull(OUTPUT_BYTES_HIGH - 1));
        stream.clear_output();
        assert!(!stream.has_unsent());
        stream.append(b"x");
        assert_eq!(stream.receive(b"y", 10), 1);
        stream.disconnect();
        assert_eq!((stream.unsent_bytes(), stream.unread()), (0, &b""[..]));
    }
}
