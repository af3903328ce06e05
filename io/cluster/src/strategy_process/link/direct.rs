//! The link without a broker: one connection to the server, which a task keeps open.
//! docs/strategy-link.md describes the protocol.
//!
//! ```text
//! DirectLink ── frames ──► connection task ──► socket
//!            ◄── inputs ──                 ◄──
//! ```

mod connection;
mod publishing;

use std::collections::VecDeque;
use std::future::pending;

use bytes::Bytes;
use pitlane_protocols::remote::link::{ServerFrame, StrategyFrame};
use pitlane_protocols::remote::strategy::{EventBatch, PriceBatch, RemoteReply, RemoteRequest};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout_at};

use self::connection::{ConnectionInput, ConnectionSettings};
use self::publishing::Publishing;
use super::super::{StrategyProcessError, StrategyProcessSettings};
use super::{ANSWER_MAX, GENERICS_MAX, GenericReceipt, IncomingGeneric, LinkInput};
use crate::nats::generic::Generic;

/// Frames that wait for the socket. A request beyond it is lost, and the runner sends it again.
const OUTGOING_MAX: usize = 4_096;
/// Frames that wait for the process; beyond it the socket is not read, and the server conflates
/// prices.
const INCOMING_MAX: usize = 256;
/// Inputs kept during a handshake: the events that arrive between the Welcome and its end. The
/// runner fetches what is missing.
const BUFFERED_MAX: usize = 1_024;
/// Marks the numbers of requests during a handshake, which are not the runner's.
const HANDSHAKE: u64 = 1 << 63;

pub(in super::super) struct DirectLink {
    outgoing: mpsc::Sender<Vec<u8>>,
    incoming: mpsc::Receiver<ConnectionInput>,
    /// Inputs that arrived while an answer was awaited.
    buffered: VecDeque<LinkInput>,
    is_up: bool,
    /// Number of the last request during a handshake.
    asked: u64,
    publishing: Publishing,
    /// Last event of another strategy that was handled.
    handled: u64,
}

impl DirectLink {
    pub(super) fn open(
        settings: &StrategyProcessSettings,
        publisher: u64,
    ) -> Result<DirectLink, StrategyProcessError> {
        let connection = ConnectionSettings::of(settings).map_err(StrategyProcessError::Settings)?;
        let (outgoing, frames) = mpsc::channel(OUTGOING_MAX);
        let (inputs, incoming) = mpsc::channel(INCOMING_MAX);
        tokio::spawn(connection::run(connection, frames, inputs));
        Ok(DirectLink::new(outgoing, incoming, publisher))
    }

    fn new(
        outgoing: mpsc::Sender<Vec<u8>>,
        incoming: mpsc::Receiver<ConnectionInput>,
        publisher: u64,
    ) -> DirectLink {
        DirectLink {
            outgoing,
            incoming,
            buffered: VecDeque::new(),
            is_up: false,
            asked: 0,
            publishing: Publishing::new(publisher),
            handled: 0,
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.is_up
    }

    pub(super) async fn ask(&mut self, request: &RemoteRequest) -> Option<RemoteReply> {
        let deadline = Instant::now() + ANSWER_MAX;
        self.asked += 1;
        let number = HANDSHAKE | self.asked;
        let mut is_sent = false;
        loop {
            if self.is_up && !is_sent {
                is_sent = self.send_frame(&StrategyFrame::Request { number, request: request.encode() });
            }
            let input = timeout_at(deadline, self.incoming.recv()).await.ok()??;
            if let ConnectionInput::Frame(ServerFrame::Reply { number: answered, reply }) = &input
                && *answered == number
            {
                return Some(
                    RemoteReply::decode(reply)
                        .unwrap_or_else(|misread| RemoteReply::Refused { text: misread.to_string() }),
                );
            }
            match self.handle(input) {
                Some(LinkInput::Refused(text)) => return Some(RemoteReply::Refused { text }),
                // What was sent before has no answer.
                Some(LinkInput::Health(false)) => return None,
                Some(LinkInput::Health(true)) | None => {}
                Some(input) if self.buffered.len() < BUFFERED_MAX => self.buffered.push_back(input),
                Some(_) => {}
            }
        }
    }

    pub(super) async fn next(&mut self) -> LinkInput {
        loop {
            if let Some(input) = self.buffered.pop_front() {
                if let Some(input) = self.unless_handled(input) {
                    return input;
                }
                continue;
            }
            let due = self.publishing.due().filter(|_| self.is_up);
            let retry = async {
                match due {
                    Some(due) => sleep_until(due).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                input = self.incoming.recv() => {
                    let Some(input) = input else { pending::<()>().await; continue };
                    if let Some(input) = self.handle(input).and_then(|input| self.unless_handled(input)) {
                        return input;
                    }
                }
                () = retry => self.send_next_event(),
            }
        }
    }

    /// Handles what the connection reports, and returns what the process must know.
    fn handle(&mut self, input: ConnectionInput) -> Option<LinkInput> {
        match input {
            ConnectionInput::Up => {
                self.is_up = true;
                self.publishing.restart();
                self.send_next_event();
                Some(LinkInput::Health(true))
            }
            ConnectionInput::Down => {
                self.is_up = false;
                Some(LinkInput::Health(false))
            }
            ConnectionInput::Refused(text) => Some(LinkInput::Refused(text)),
            ConnectionInput::Frame(frame) => self.handle_frame(frame),
        }
    }

    fn handle_frame(&mut self, frame: ServerFrame) -> Option<LinkInput> {
        match frame {
            // A late answer to a request of a handshake.
            ServerFrame::Reply { number, .. } if number & HANDSHAKE != 0 => None,
            ServerFrame::Reply { number, reply } => {
                Some(LinkInput::Reply { number, reply: RemoteReply::decode(&reply).ok()? })
            }
            ServerFrame::Events(bytes) => EventBatch::decode(&bytes).ok().map(LinkInput::Events),
            ServerFrame::Prices(bytes) => PriceBatch::decode(&bytes).ok().map(LinkInput::Prices),
            ServerFrame::Generic { number, name, body, .. } => {
                let receipt = GenericReceipt::Number(number);
                Some(LinkInput::Generic(IncomingGeneric { name, body: Bytes::from(body), receipt }))
            }
            ServerFrame::Published { number } => {
                self.publishing.handle_stored(number);
                self.send_next_event();
                None
            }
            ServerFrame::LoggedIn { .. } | ServerFrame::Refused { .. } => None,
        }
    }

    /// Drops an event that was handled before the connection was lost, and acknowledges it again.
    fn unless_handled(&mut self, input: LinkInput) -> Option<LinkInput> {
        if let LinkInput::Generic(IncomingGeneric { receipt: GenericReceipt::Number(number), .. }) = &input
            && *number <= self.handled
        {
            self.acknowledge(*number);
            return None;
        }
        Some(input)
    }

    pub(super) fn send(&self, number: u64, request: &RemoteRequest) {
        self.send_frame(&StrategyFrame::Request { number, request: request.encode() });
    }

    pub(super) fn publish(&mut self, generic: Generic) -> bool {
        let is_queued = self.publishing.push(generic);
        if self.is_up {
            self.send_next_event();
        }
        is_queued
    }

    /// Sends the first event that waits, unless its answer is awaited.
    fn send_next_event(&mut self) {
        if let Some(frame) = self.publishing.poll(Instant::now()) {
            self.send_frame(&frame);
        }
    }

    pub(super) fn acknowledge(&mut self, number: u64) {
        self.handled = self.handled.max(number);
        self.send_frame(&StrategyFrame::Acknowledge { number });
    }

    /// Queues a frame; returns false if there is no room.
    fn send_frame(&self, frame: &StrategyFrame) -> bool {
        self.outgoing.try_send(frame.encode()).is_ok()
    }
}

#[cfg(test)]
mod tests;
