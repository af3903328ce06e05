//! One WebSocket connection: received messages go to the broker, the frames of its session are
//! written, one text message for each frame.
//!
//! At most one batch of frames is buffered here at a time. The session learns of each frame when
//! the system has taken it, so that the session's limits include what is buffered here.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use pitlane_protocols::stomp::broker::SessionId;
use pitlane_protocols::stomp::session::StompClose;
use pitlane_protocols::websocket::{self, Receiver, WebSocketState};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::http::connection::Stream;
use crate::http::websocket_broker::WebSocketBroker;
use crate::stages::LatencyStage;

/// Bytes per read. Clients send little.
const INPUT_BYTES: usize = 4 * 1_024;
/// Reads per poll; then other tasks are polled.
const READS_PER_TURN_MAX: usize = 8;
/// Capacity that the output keeps when everything in it was taken.
const KEPT_BYTES: usize = 16 * 1_024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The last frame was ours and has been written.
    Parted,
    /// The connection is gone, or must be closed at once.
    Broken,
}

pub struct Talk {
    stream: Stream,
    session: SessionId,
    receiver: Receiver,
    /// Read buffer, always `INPUT_BYTES` long.
    input: Vec<u8>,
    output: Vec<u8>,
    /// Number of bytes of `output` that were written.
    sent: usize,
    /// Frames in `output`: where each ends there, and its length in the session.
    frames: VecDeque<(usize, usize)>,
    /// Whether our close frame is in `output`, or has been sent.
    parting: bool,
    /// Whether the peer has closed, or input from it is ignored from now on.
    deaf: bool,
    shut: bool,
}

impl Talk {
    pub fn new(stream: Stream, session: SessionId) -> Talk {
        Talk {
            stream,
            session,
            receiver: Receiver::default(),
            input: vec![0; INPUT_BYTES],
            output: Vec::new(),
            sent: 0,
            frames: VecDeque::new(),
            parting: false,
            deaf: false,
            shut: false,
        }
    }

    /// Reads and writes as much as possible, and registers for the next poll.
    pub fn poll(&mut self, cx: &mut Context<'_>, hall: &WebSocketBroker) -> Poll<End> {
        hall.set_task(self.session, cx.waker());
        let turn = self.read(cx, hall).and_then(|()| self.speak(cx, hall));
        hall.settle();
        match turn {
            Err(_gone) => Poll::Ready(End::Broken),
            Ok(Some(end)) => Poll::Ready(end),
            Ok(None) => Poll::Pending,
        }
    }

    /// Handles received bytes.
    pub fn hear(&mut self, hall: &WebSocketBroker, bytes: &mut [u8]) {
        let came = hall.sample();
        let (now, mut broker) = (hall.now(), hall.broker());
        let session = self.session;
        let state = self.receiver.handle_bytes(bytes, |payload| broker.handle_bytes(now, session, payload));
        drop(broker);
        hall.count(LatencyStage::StompDecode, came);
        if let WebSocketState::Closing(code) = state {
            self.part(code, "");
            self.deaf = true;
        }
    }

    /// Finishes the close after the last frame: waits for the peer's close frame, shuts down
    /// writing, and waits for the peer to do so.
    pub fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            if self.deaf && !self.shut {
                std::task::ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
                self.shut = true;
            }
            let count = std::task::ready!(self.read_some(cx))?;
            if count == 0 {
                if self.shut {
                    return Poll::Ready(Ok(()));
                }
                self.deaf = true;
                continue;
            }
            if !self.deaf {
                let state = self.receiver.handle_bytes(&mut self.input[..count], |_late| {});
                self.deaf = state != WebSocketState::Open;
            }
        }
    }

    fn read(&mut self, cx: &mut Context<'_>, hall: &WebSocketBroker) -> io::Result<()> {
        for _ in 0..READS_PER_TURN_MAX {
            if self.parting || !hall.broker().wants_bytes(self.session) {
                return Ok(());
            }
            let count = match self.read_some(cx)? {
                Poll::Pending => return Ok(()),
                Poll::Ready(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Poll::Ready(count) => count,
            };
            let mut input = std::mem::take(&mut self.input);
            self.hear(hall, &mut input[..count]);
            self.input = input;
        }
        // There may be more, and no wake-up would follow.
        cx.waker().wake_by_ref();
        Ok(())
    }

    fn read_some(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(&mut self.input[..]);
        let read = Pin::new(&mut self.stream).poll_read(cx, &mut buffer);
        read.map_ok(|()| buffer.filled().len())
    }

    /// Collects the next batch if the one before is written, and writes.
    fn speak(&mut self, cx: &mut Context<'_>, hall: &WebSocketBroker) -> io::Result<Option<End>> {
        let close = hall.broker().poll_close(hall.now(), self.session);
        if matches!(close, Some(StompClose::Immediate(_))) && !self.parting {
            return Ok(Some(End::Broken));
        }
        if self.sent == self.output.len() && !self.parting {
            self.gather(hall);
        }
        if self.output.is_empty()
            && !self.parting
            && let Some(StompClose::Graceful(cause)) = close
        {
            self.part(Some(cause.close_code()), cause.text());
        }
        let is_through = self.write(cx, hall)?;
        Ok((is_through && self.parting).then_some(End::Parted))
    }

    fn gather(&mut self, hall: &WebSocketBroker) {
        self.output.clear();
        self.sent = 0;
        if self.output.capacity() > KEPT_BYTES {
            self.output = Vec::new();
        }
        self.receiver.poll_pong(&mut self.output);
        let broker = hall.broker();
        let Some(transmit) = broker.transmit(self.session) else { return };
        for frame in transmit.frames() {
            websocket::text_head(&mut self.output, frame.len());
            self.output.extend_from_slice(frame);
            self.frames.push_back((self.output.len(), frame.len()));
        }
    }

    /// Writes the output. Returns whether everything was taken.
    fn write(&mut self, cx: &mut Context<'_>, hall: &WebSocketBroker) -> io::Result<bool> {
        let begun = if self.sent < self.output.len() { hall.sample() } else { None };
        while self.sent < self.output.len() {
            let count = match Pin::new(&mut self.stream).poll_write(cx, &self.output[self.sent..])? {
                Poll::Pending => return Ok(false),
                Poll::Ready(0) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(count) => count,
            };
            self.sent += count;
            self.tell_taken(hall);
        }
        hall.count(LatencyStage::StompWrite, begun);
        Ok(Pin::new(&mut self.stream).poll_flush(cx)?.is_ready())
    }

    fn tell_taken(&mut self, hall: &WebSocketBroker) {
        let mut taken = 0;
        while let Some((_, len)) = self.frames.pop_front_if(|(end, _)| *end <= self.sent) {
            taken += len;
        }
        hall.broker().handle_transmitted(hall.now(), self.session, taken);
    }

    /// Appends our close frame. What is in the output goes before it; what the session still has is
    /// lost.
    fn part(&mut self, code: Option<u16>, reason: &str) {
        if !self.parting {
            self.parting = true;
            websocket::close(&mut self.output, code, reason);
        }
    }
}
