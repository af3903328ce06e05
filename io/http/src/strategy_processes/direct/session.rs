//! One connection of a process that has logged in: reads its frames, and sends what waits for it.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use pitlane_cluster::frames::{FrameReadError, FrameReader};
use pitlane_cluster::nats::generic::Generic;
use pitlane_gateway::notifications::Notification;
use pitlane_protocols::remote::link::{FrameError, LinkRefusal, ServerFrame, StrategyFrame};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::super::handle_request;
use super::super::messages::RequestSender;
use super::welcome;
use crate::app_state::AppState;
use crate::remote_strategies::{LinkSignals, RemoteStrategies, ReplyAddress};

/// Bytes that are collected for one write.
const WRITE_BYTES: usize = 64 << 10;

const BAD_EVENT: FrameError = FrameError::Rule(
    "an event between strategies needs a publisher above 0, a name of 1 to 256 bytes without control characters, \
     and a body of JSON",
);

pub(super) struct LinkSession<'a> {
    pub app: &'a AppState,
    pub remote_strategies: &'a RemoteStrategies,
    pub strategy: Arc<str>,
    pub connection: u64,
    pub signals: &'a LinkSignals,
    pub idle: Duration,
}

impl LinkSession<'_> {
    /// Runs until the connection ends; returns the reason if this server ends it.
    pub(super) async fn run<R, W>(&self, from: &mut FrameReader<R>, to: &mut W) -> Option<LinkRefusal>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        // Whether only whole frames were written: nothing can follow a part of one.
        let is_whole = Cell::new(true);
        let end = tokio::select! {
            end = self.read_frames(from) => end,
            end = self.write_frames(to, &is_whole) => end,
        };
        end.filter(|_| is_whole.get())
    }

    async fn read_frames<R: AsyncRead + Unpin>(&self, from: &mut FrameReader<R>) -> Option<LinkRefusal> {
        loop {
            // A process that does not read its replies sends no more requests, and in the end the
            // write fails.
            while !self.remote_strategies.has_room(self.connection) {
                self.signals.room.notified().await;
            }
            match timeout(self.idle, from.next(StrategyFrame::decode)).await {
                Ok(Ok(frame)) => {
                    if let Err(refusal) = self.handle_frame(frame) {
                        return Some(refusal);
                    }
                }
                Ok(Err(FrameReadError::Frame(error))) => return Some(LinkRefusal::BadFrame(error)),
                Ok(Err(FrameReadError::Closed | FrameReadError::Socket(_))) => return None,
                Err(_elapsed) => return Some(LinkRefusal::Idle),
            }
        }
    }

    fn handle_frame(&self, frame: StrategyFrame) -> Result<(), LinkRefusal> {
        let connection = self.connection;
        match frame {
            StrategyFrame::Request { number, request } => {
                let reply = (number > 0).then_some(ReplyAddress::Connection { connection, number });
                let sender = RequestSender { connection: Some(connection), reply };
                handle_request(self.app, self.remote_strategies, &self.strategy, &request, sender);
                Ok(())
            }
            StrategyFrame::Publish { publisher, number, name, body } => {
                self.publish((publisher, number), &name, body)
            }
            StrategyFrame::Acknowledge { number } => {
                self.remote_strategies.acknowledge_generics(connection, number);
                Ok(())
            }
            StrategyFrame::Login { .. } => {
                Err(LinkRefusal::BadFrame(FrameError::Rule("the connection has logged in already")))
            }
        }
    }

    /// Stores an event for other strategies, and forwards it to clients of this server.
    fn publish(&self, id: (u64, u64), name: &str, body: Vec<u8>) -> Result<(), LinkRefusal> {
        let generic = Generic::new(name, body.into(), &self.strategy).filter(|_| id.0 > 0);
        let generic = generic.ok_or(LinkRefusal::BadFrame(BAD_EVENT))?;
        let body = generic.body.clone();
        // Without an answer the process sends it again.
        let Some(is_new) = self.remote_strategies.store_generic(generic, id) else { return Ok(()) };
        self.remote_strategies.send_frame(self.connection, &ServerFrame::Published { number: id.1 });
        if is_new {
            let notification = Notification::Generic { name: name.into(), body: Arc::from(&*body) };
            self.app.notifications.announce(notification);
        }
        Ok(())
    }

    async fn write_frames<W: AsyncWrite + Unpin>(
        &self,
        to: &mut W,
        is_whole: &Cell<bool>,
    ) -> Option<LinkRefusal> {
        let mut bytes = welcome(&self.remote_strategies.server, self.idle);
        loop {
            while bytes.len() < WRITE_BYTES
                && let Some(frame) = self.remote_strategies.take_frame(self.connection)
            {
                bytes.extend_from_slice(&frame);
            }
            if bytes.is_empty() {
                if let Some(refusal) = self.remote_strategies.end_of(self.connection) {
                    return Some(refusal);
                }
                self.signals.output.notified().await;
                continue;
            }
            is_whole.set(false);
            let writing = async {
                to.write_all(&bytes).await?;
                to.flush().await
            };
            // A process that reads nothing for so long is gone.
            let Ok(Ok(())) = timeout(self.idle, writing).await else { return None };
            is_whole.set(true);
            bytes.clear();
        }
    }
}
