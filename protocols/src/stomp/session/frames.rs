//! Effects of a client's frames.

use std::borrow::Cow;

use pitlane_engine::index::index_u16;
use pitlane_engine::time::Timestamp;

use super::{DISCONNECT_NS_MAX, SessionAction, StompSession, StompState};
use crate::json;
use crate::stomp::access::Passcode;
use crate::stomp::body_format::BodyFormat;
use crate::stomp::close_reason::StompCloseReason;
use crate::stomp::conflation;
use crate::stomp::decode::StompFrameError;
use crate::stomp::frame::{ClientCommand, StompFrame, StompVersion};
use crate::stomp::heartbeat::Heartbeat;
use crate::stomp::pattern::Pattern;
use crate::stomp::settings::BrokerSettings;
use crate::stomp::subscription::{AckMode, MessageId, Subscription, SubscriptionRequest};
use crate::stomp::topic::{self, Naming, TopicKind};
use crate::stomp::transaction::TransactionStep;

impl StompSession {
    /// Handles one frame and appends the broker's tasks to `actions`. A frame gets its receipt
    /// after it has taken effect; a wrong frame gets an ERROR and is the last.
    pub fn handle_frame(
        &mut self,
        now: Timestamp,
        frame: &StompFrame<'_>,
        settings: &BrokerSettings,
        actions: &mut Vec<SessionAction>,
    ) {
        self.counters.frames += 1;
        let receipt = frame.header("receipt").map(Cow::into_owned);
        let done = match (self.state, frame.command) {
            (StompState::AwaitingConnect, ClientCommand::Connect) => {
                self.connect(now, frame, settings, actions)
            }
            (StompState::AwaitingConnect, _) => Err(StompCloseReason::NotConnected),
            (StompState::VerifyingLogin | StompState::Closing(_), _) => return,
            (StompState::Connected, ClientCommand::Connect) => Err(StompCloseReason::ConnectedTwice),
            (StompState::Connected, ClientCommand::Subscribe) => self.subscribe(frame, settings, actions),
            (StompState::Connected, ClientCommand::Unsubscribe) => self.unsubscribe(frame, actions),
            // 1.1 added the command.
            (StompState::Connected, ClientCommand::Nack) if self.version == Some(StompVersion::V10) => {
                Err(StompCloseReason::Frame(StompFrameError::UnknownCommand))
            }
            (StompState::Connected, ClientCommand::Ack | ClientCommand::Nack) => self.acknowledge(frame),
            (StompState::Connected, ClientCommand::Begin) => self.begin(frame),
            (StompState::Connected, ClientCommand::Commit) => self.commit(frame, actions),
            (StompState::Connected, ClientCommand::Abort) => self.abort(frame),
            (StompState::Connected, ClientCommand::Send) => self.send(frame, actions),
            (StompState::Connected, ClientCommand::Disconnect) => Ok(()),
        };
        // CONNECTED answers a CONNECT, which has no receipt. Only an ERROR of its login names it.
        let is_answered = frame.command == ClientCommand::Connect && self.state == StompState::Connected;
        match done {
            Err(cause) => self.fail(now, cause, receipt),
            Ok(()) => self.receipt_owed = receipt.filter(|_| !is_answered),
        }
        self.is_disconnecting = frame.command == ClientCommand::Disconnect;
    }

    /// Sends the receipt, after the broker has applied the frame's actions.
    pub fn finish_frame(&mut self, now: Timestamp) {
        if self.state != StompState::Connected {
            // The receipt is sent later or never: an ERROR is the last frame.
            return;
        }
        if let Some(receipt) = self.receipt_owed.take() {
            self.receipt(now, &receipt);
        }
        if self.is_disconnecting {
            self.end(now.plus(DISCONNECT_NS_MAX), StompCloseReason::Disconnected);
        }
    }

    fn connect(
        &mut self,
        now: Timestamp,
        frame: &StompFrame<'_>,
        settings: &BrokerSettings,
        actions: &mut Vec<SessionAction>,
    ) -> Result<(), StompCloseReason> {
        let version = match frame.header("accept-version") {
            None => StompVersion::V10,
            Some(list) => StompVersion::highest_of(&list).ok_or(StompCloseReason::NoCommonVersion)?,
        };
        if version > StompVersion::V10
            && let Some(text) = frame.header("heart-beat")
        {
            self.heartbeat = Heartbeat::agree(&text).map_err(|_| StompCloseReason::BadHeartbeat)?;
        }
        self.version = Some(version);
        if let Some(access) = &settings.anonymous_access {
            self.send_connected(now, &settings.server, access.clone());
            return Ok(());
        }
        let text = |name| frame.header(name).map(Cow::into_owned);
        let passcode = text("passcode").map(Passcode);
        actions.push(SessionAction::Login { login: text("login"), passcode, host: text("host") });
        self.state = StompState::VerifyingLogin;
        Ok(())
    }

    fn subscribe(
        &mut self,
        frame: &StompFrame<'_>,
        settings: &BrokerSettings,
        actions: &mut Vec<SessionAction>,
    ) -> Result<(), StompCloseReason> {
        let version = self.version.expect("it is connected");
        let destination =
            frame.header("destination").ok_or(StompCloseReason::Missing("destination"))?.into_owned();
        let id = frame.header("id").map(Cow::into_owned);
        if id.is_none() && version > StompVersion::V10 {
            return Err(StompCloseReason::Missing("id"));
        }
        let ack = match frame.header("ack") {
            None => AckMode::Auto,
            Some(word) => AckMode::from_wire_name(&word).ok_or(StompCloseReason::BadAckMode)?,
        };
        let window = window_of(frame, self.limits.window_max)?;
        let pattern =
            Pattern::parse(&destination, &settings.naming).map_err(StompCloseReason::Destination)?;
        let resume = resume_of(frame, &pattern)?;
        let conflate_ns = conflate_of(frame, &pattern, &settings.naming)?;
        let format = match frame.header("accept") {
            None => BodyFormat::Json,
            Some(list) => BodyFormat::from_accept(&list).ok_or(StompCloseReason::BadAccept)?,
        };
        let is_batched = batch_of(frame, &pattern, &settings.naming, format)?;
        if id.as_ref().is_some_and(|id| self.by_id.contains_key(id)) {
            return Err(StompCloseReason::SubscriptionInUse);
        }
        if !self.may_read(&pattern, settings) {
            return Err(StompCloseReason::NotPermitted);
        }
        let place = self.place().ok_or(StompCloseReason::TooManySubscriptions)?;
        if let Some(id) = &id {
            self.by_id.insert(id.clone(), place);
        }
        let request = SubscriptionRequest {
            id,
            destination,
            pattern,
            ack,
            window,
            resume,
            conflate_ns,
            format,
            is_batched,
        };
        self.subscriptions[place as usize] = Some(Box::new(Subscription::new(place, version, request)));
        let last_value = frame.header("last-value").is_some_and(|text| text.trim() == "true");
        actions.push(SessionAction::Subscribe { place, last_value });
        Ok(())
    }

    /// Returns whether the user may subscribe. A pattern that names an invisible strategy is
    /// refused; a wildcard delivers only visible strategies.
    fn may_read(&self, pattern: &Pattern, settings: &BrokerSettings) -> bool {
        let (Some(family), Some(name)) = (pattern.name_at(0), pattern.name_at(1)) else { return true };
        let is_guarded = topic::kind_of_family(family, &settings.naming) == Some(TopicKind::Order);
        !is_guarded || self.access.sees(&topic::decode_segment(name))
    }

    fn place(&mut self) -> Option<u16> {
        if let Some(place) = self.free.pop() {
            return Some(place);
        }
        if self.subscriptions.len() == self.limits.subscriptions_max as usize {
            return None;
        }
        self.subscriptions.push(None);
        Some(index_u16(self.subscriptions.len() - 1))
    }

    fn unsubscribe(
        &mut self,
        frame: &StompFrame<'_>,
        actions: &mut Vec<SessionAction>,
    ) -> Result<(), StompCloseReason> {
        let place = match (frame.header("id"), self.version) {
            (Some(id), _) => self.by_id.remove(&*id),
            // In 1.0 a subscription may have no id and is then identified by its destination.
            (None, Some(StompVersion::V10)) => {
                let text = frame.header("destination").ok_or(StompCloseReason::Missing("destination"))?;
                self.first_of(&text)
            }
            (None, _) => return Err(StompCloseReason::Missing("id")),
        };
        let place = place.ok_or(StompCloseReason::UnknownSubscription)?;
        let subscription =
            self.subscriptions[place as usize].take().ok_or(StompCloseReason::UnknownSubscription)?;
        if let Some(id) = &subscription.request.id {
            self.by_id.remove(id);
        }
        self.free.push(place);
        // The next subscription may get the same place.
        self.outbox.end_shared_frame();
        self.forget(place, &subscription);
        actions.push(SessionAction::Unsubscribe { place, pattern: subscription.request.pattern });
        Ok(())
    }

    fn first_of(&self, destination: &str) -> Option<u16> {
        let mut all = self.subscriptions.iter();
        all.position(|subscription| {
            subscription.as_ref().is_some_and(|subscription| subscription.request.destination == destination)
        })
        .map(index_u16)
    }

    fn acknowledge(&mut self, frame: &StompFrame<'_>) -> Result<(), StompCloseReason> {
        let version = self.version.expect("it is connected");
        let name = if version == StompVersion::V12 { "id" } else { "message-id" };
        let text = frame.header(name).ok_or(StompCloseReason::Missing(name))?;
        let message = MessageId::parse(&text).ok_or(StompCloseReason::UnknownMessage)?;
        let subscription = self.subscription(message.place).ok_or(StompCloseReason::UnknownMessage)?;
        if !subscription.is_unacked(message.number) {
            return Err(StompCloseReason::UnknownMessage);
        }
        let named = frame.header("subscription");
        if version == StompVersion::V11 && named.is_none() {
            return Err(StompCloseReason::Missing("subscription"));
        }
        let is_other = |named| subscription.request.id.as_deref() != Some(named);
        if version < StompVersion::V12 && named.as_deref().is_some_and(is_other) {
            return Err(StompCloseReason::UnknownMessage);
        }
        match frame.header("transaction") {
            Some(transaction) => {
                self.transactions.add(&transaction, TransactionStep::Acknowledge(message))?
            }
            None => self.take_acknowledgement(message),
        }
        Ok(())
    }

    fn begin(&mut self, frame: &StompFrame<'_>) -> Result<(), StompCloseReason> {
        Ok(self.transactions.begin(&transaction_of(frame)?)?)
    }

    fn commit(
        &mut self,
        frame: &StompFrame<'_>,
        actions: &mut Vec<SessionAction>,
    ) -> Result<(), StompCloseReason> {
        for step in self.transactions.end(&transaction_of(frame)?)? {
            match step {
                TransactionStep::Acknowledge(message) => self.take_acknowledgement(message),
                TransactionStep::Send { name, body } => actions.push(SessionAction::Send { name, body }),
            }
        }
        Ok(())
    }

    fn abort(&mut self, frame: &StompFrame<'_>) -> Result<(), StompCloseReason> {
        self.transactions.end(&transaction_of(frame)?)?;
        Ok(())
    }

    fn send(
        &mut self,
        frame: &StompFrame<'_>,
        actions: &mut Vec<SessionAction>,
    ) -> Result<(), StompCloseReason> {
        let destination = frame.header("destination").ok_or(StompCloseReason::Missing("destination"))?;
        let name = destination.strip_prefix("/topic/generic-event.").filter(|_| self.access.may_send);
        // Names are part of lines elsewhere: in headers of other brokers and in logs.
        let is_one_segment = |name: &&str| {
            !name.is_empty() && !name.contains(['.', '*', '>', '/']) && !name.contains(char::is_control)
        };
        let name = name.filter(is_one_segment).ok_or(StompCloseReason::SendNotPermitted)?;
        let name = topic::decode_segment(name).into_owned();
        if !json::is_json(frame.body) {
            return Err(StompCloseReason::SendNotJson);
        }
        let body = frame.body.to_vec();
        match frame.header("transaction") {
            Some(transaction) => self.transactions.add(&transaction, TransactionStep::Send { name, body })?,
            None => actions.push(SessionAction::Send { name, body }),
        }
        Ok(())
    }
}

fn transaction_of<'a>(frame: &StompFrame<'a>) -> Result<Cow<'a, str>, StompCloseReason> {
    frame.header("transaction").ok_or(StompCloseReason::Missing("transaction"))
}

/// Returns the sequence number from which a client continues its book of one topic.
fn resume_of(frame: &StompFrame<'_>, pattern: &Pattern) -> Result<Option<u64>, StompCloseReason> {
    let Some(text) = frame.header("resume") else { return Ok(None) };
    let is_one_topic = matches!(pattern.name_at(0), Some(topic::DEPTH | topic::ORDERS)) && pattern.is_exact();
    let is_number = is_one_topic && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| is_number).map(Some).ok_or(StompCloseReason::BadResume)
}

/// Returns the nanoseconds within which a client wants market data to be merged. A destination that
/// matches no market data is refused, because other messages are never merged.
fn conflate_of(
    frame: &StompFrame<'_>,
    pattern: &Pattern,
    naming: &Naming,
) -> Result<Option<u64>, StompCloseReason> {
    let Some(text) = frame.header("conflate") else { return Ok(None) };
    conflation::parse_window(&text)
        .filter(|_| has_market_data(pattern, naming))
        .map(Some)
        .ok_or(StompCloseReason::BadConflate)
}

/// Returns whether messages of a client's subscription may share a frame. Only binary messages can,
/// because each of them has its length.
fn batch_of(
    frame: &StompFrame<'_>,
    pattern: &Pattern,
    naming: &Naming,
    format: BodyFormat,
) -> Result<bool, StompCloseReason> {
    let can_share = format == BodyFormat::Sbe && has_market_data(pattern, naming);
    match frame.header("batch").as_deref() {
        None | Some("false") => Ok(false),
        Some("true") if can_share => Ok(true),
        Some(_) => Err(StompCloseReason::BadBatch),
    }
}

/// Returns whether a pattern may match a topic of market data.
fn has_market_data(pattern: &Pattern, naming: &Naming) -> bool {
    let is_market_data = |family| topic::kind_of_family(family, naming) == Some(TopicKind::MarketData);
    pattern.name_at(0).is_none_or(is_market_data)
}

/// Returns the window that a client requests under either of the usual names, at most our limit.
fn window_of(frame: &StompFrame<'_>, max: u32) -> Result<u32, StompCloseReason> {
    let requested = frame.header("prefetch-count").or_else(|| frame.header("activemq.prefetchSize"));
    let Some(text) = requested else { return Ok(max) };
    let is_number = !text.is_empty() && text.len() <= 9 && text.bytes().all(|b| b.is_ascii_digit());
    let window: u32 = text.parse().ok().filter(|_| is_number).ok_or(StompCloseReason::BadPrefetch)?;
    if window == 0 { Err(StompCloseReason::BadPrefetch) } else { Ok(window.min(max)) }
}
