//! One WebSocket connection: received messages go to the broker, the frames of its session are
//! written, one message for each frame; those with a binary body are binary messages.
//!
//! At most one batch of frames is buffered here at a time. The session learns of each frame when
//! the system has taken it, so that the session's limits include what is buffered here.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use pitlane_protocols::stomp::broker::SessionId;
use pitlane_protocols::stomp::encode;
use pitlane_protocols::stomp::session::StompClose;
use pitlane_protocols::websocket::{self, MessageKind, Receiver, WebSocketState};
use pitlane_runtime::stages::LatencyStage;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::client_stream::ClientStream;
use crate::websocket_broker::WebSocketBroker;

/// Bytes per read. Clients send little.
const INPUT_BYTES: usize = 4 * 1_024;
/// Reads per poll; then other tasks are polled.
const READS_PER_POLL_MAX: usize = 8;
/// Capacity that the output keeps when everything in it was taken.
const OUTPUT_CAPACITY_KEPT: usize = 16 * 1_024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionEnd {
    /// The last frame was ours and has been written.
    Closed,
    /// The connection is gone, or must be closed at once.
    Broken,
}

pub(super) struct WebSocketStream {
    stream: ClientStream,
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
    closing: bool,
    /// Whether the peer has closed, or input from it is ignored from now on.
    ignores_input: bool,
    is_shut_down: bool,
}

impl WebSocketStream {
    pub(super) fn new(stream: ClientStream, session: SessionId) -> WebSocketStream {
        WebSocketStream {
            stream,
            session,
            receiver: Receiver::default(),
            input: vec![0; INPUT_BYTES],
            output: Vec::new(),
            sent: 0,
            frames: VecDeque::new(),
            closing: false,
            ignores_input: false,
            is_shut_down: false,
        }
    }

    /// Reads and writes as much as possible, and registers for the next poll.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, ws_broker: &WebSocketBroker) -> Poll<ConnectionEnd> {
        ws_broker.set_task(self.session, cx.waker());
        let outcome = self.read(cx, ws_broker).and_then(|()| self.write_pending(cx, ws_broker));
        ws_broker.flush();
        match outcome {
            Err(_gone) => Poll::Ready(ConnectionEnd::Broken),
            Ok(Some(end)) => Poll::Ready(end),
            Ok(None) => Poll::Pending,
        }
    }

    /// Handles received bytes.
    pub(super) fn handle_bytes(&mut self, ws_broker: &WebSocketBroker, bytes: &mut [u8]) {
        let received = ws_broker.sample();
        let (now, mut broker) = (ws_broker.now(), ws_broker.broker());
        let session = self.session;
        let state = self.receiver.handle_bytes(bytes, |payload| broker.handle_bytes(now, session, payload));
        drop(broker);
        ws_broker.count(LatencyStage::StompDecode, received);
        if let WebSocketState::Closing(code) = state {
            self.send_close(code, "");
            self.ignores_input = true;
        }
    }

    /// Finishes the close after the last frame: waits for the peer's close frame, shuts down
    /// writing, and waits for the peer to do so.
    pub(super) fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            if self.ignores_input && !self.is_shut_down {
                std::task::ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
                self.is_shut_down = true;
            }
            let count = std::task::ready!(self.read_some(cx))?;
            if count == 0 {
                if self.is_shut_down {
                    return Poll::Ready(Ok(()));
                }
                self.ignores_input = true;
                continue;
            }
            if !self.ignores_input {
                let state = self.receiver.handle_bytes(&mut self.input[..count], |_late| {});
                self.ignores_input = state != WebSocketState::Open;
            }
        }
    }

    fn read(&mut self, cx: &mut Context<'_>, ws_broker: &WebSocketBroker) -> io::Result<()> {
        for _ in 0..READS_PER_POLL_MAX {
            if self.closing || !ws_broker.broker().wants_bytes(self.session) {
                return Ok(());
            }
            let count = match self.read_some(cx)? {
                Poll::Pending => return Ok(()),
                Poll::Ready(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Poll::Ready(count) => count,
            };
            let mut input = std::mem::take(&mut self.input);
            self.handle_bytes(ws_broker, &mut input[..count]);
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
    fn write_pending(
        &mut self,
        cx: &mut Context<'_>,
        ws_broker: &WebSocketBroker,
    ) -> io::Result<Option<ConnectionEnd>> {
        let close = ws_broker.broker().poll_close(ws_broker.now(), self.session);
        if matches!(close, Some(StompClose::Immediate(_))) && !self.closing {
            return Ok(Some(ConnectionEnd::Broken));
        }
        if self.sent == self.output.len() && !self.closing {
            self.collect_frames(ws_broker);
        }
        if self.output.is_empty()
            && !self.closing
            && let Some(StompClose::Graceful(cause)) = close
        {
            self.send_close(Some(cause.close_code()), cause.text());
        }
        let is_through = self.write(cx, ws_broker)?;
        Ok((is_through && self.closing).then_some(ConnectionEnd::Closed))
    }

    fn collect_frames(&mut self, ws_broker: &WebSocketBroker) {
        self.output.clear();
        self.sent = 0;
        if self.output.capacity() > OUTPUT_CAPACITY_KEPT {
            self.output = Vec::new();
        }
        self.receiver.poll_pong(&mut self.output);
        let mut broker = ws_broker.broker();
        let Some(transmit) = broker.transmit(self.session) else { return };
        for frame in transmit.frames() {
            let kind = if encode::is_binary(frame) { MessageKind::Binary } else { MessageKind::Text };
            websocket::message_head(&mut self.output, kind, frame.len());
            self.output.extend_from_slice(frame);
            self.frames.push_back((self.output.len(), frame.len()));
        }
    }

    /// Writes the output. Returns whether everything was taken.
    fn write(&mut self, cx: &mut Context<'_>, ws_broker: &WebSocketBroker) -> io::Result<bool> {
        let begun = if self.sent < self.output.len() { ws_broker.sample() } else { None };
        while self.sent < self.output.len() {
            let count = match Pin::new(&mut self.stream).poll_write(cx, &self.output[self.sent..])? {
                Poll::Pending => return Ok(false),
                Poll::Ready(0) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(count) => count,
            };
            self.sent += count;
            self.count_written(ws_broker);
        }
        ws_broker.count(LatencyStage::StompWrite, begun);
        Ok(Pin::new(&mut self.stream).poll_flush(cx)?.is_ready())
    }

    fn count_written(&mut self, ws_broker: &WebSocketBroker) {
        let mut taken = 0;
        while let Some((_, len)) = self.frames.pop_front_if(|(end, _)| *end <= self.sent) {
            taken += len;
        }
        ws_broker.broker().handle_transmitted(ws_broker.now(), self.session, taken);
    }

    /// Appends our close frame. What is in the output goes before it; what the session still has is
    /// lost.
    fn send_close(&mut self, code: Option<u16>, reason: &str) {
        if !self.closing {
            self.closing = true;
            websocket::close(&mut self.output, code, reason);
        }
    }
}
