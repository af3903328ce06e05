//! What each frame of a client does.

use std::borrow::Cow;

use pitlane_engine::time::Timestamp;

use super::{Act, GOODBYE_NS_MAX, Session, State};
use crate::json;
use crate::stomp::access::Secret;
use crate::stomp::cause::Cause;
use crate::stomp::frame::{Command, Frame, Version};
use crate::stomp::heartbeat::Heartbeat;
use crate::stomp::pattern::Pattern;
use crate::stomp::settings::Settings;
use crate::stomp::subscription::{AckMode, MessageId, Subscription, Wanted};
use crate::stomp::topic::{self, Kind};
use crate::stomp::transaction::Deed;

impl Session {
    /// Takes one frame; what the broker must do about it is appended to `acts`. A frame that asks for a receipt gets it when
    /// it has taken effect; a wrong one gets an ERROR, and is the last.
    pub fn handle_frame(
        &mut self,
        now: Timestamp,
        frame: &Frame<'_>,
        settings: &Settings,
        acts: &mut Vec<Act>,
    ) {
        self.counters.frames += 1;
        let receipt = frame.header("receipt").map(Cow::into_owned);
        let done = match (self.state, frame.command) {
            (State::Greeting, Command::Connect) => self.connect(now, frame, settings, acts),
            (State::Greeting, _) => Err(Cause::NotConnected),
            (State::Asking | State::Ending(_), _) => return,
            (State::Connected, Command::Connect) => Err(Cause::ConnectedTwice),
            (State::Connected, Command::Subscribe) => self.subscribe(frame, settings, acts),
            (State::Connected, Command::Unsubscribe) => self.unsubscribe(frame, acts),
            (State::Connected, Command::Ack | Command::Nack) => self.acknowledge(frame),
            (State::Connected, Command::Begin) => self.begin(frame),
            (State::Connected, Command::Commit) => self.commit(frame, acts),
            (State::Connected, Command::Abort) => self.abort(frame),
            (State::Connected, Command::Send) => self.send(frame, acts),
            (State::Connected, Command::Disconnect) => Ok(()),
        };
        match (done, receipt) {
            (Err(cause), receipt) => self.fail(now, cause, receipt),
            (Ok(()), receipt) => self.owed = receipt,
        }
        self.is_leaving = frame.command == Command::Disconnect;
    }

    /// The broker has done what the frame asked for: now its receipt is due.
    pub fn conclude(&mut self, now: Timestamp) {
        if self.state != State::Connected {
            // Not yet, or never more: an ERROR is the last frame.
            return;
        }
        if let Some(receipt) = self.owed.take() {
            self.receipt(now, &receipt);
        }
        if self.is_leaving {
            self.end(now.plus(GOODBYE_NS_MAX), Cause::Disconnected);
        }
    }

    fn connect(
        &mut self,
        now: Timestamp,
        frame: &Frame<'_>,
        settings: &Settings,
        acts: &mut Vec<Act>,
    ) -> Result<(), Cause> {
        let version = match frame.header("accept-version") {
            None => Version::V10,
            Some(list) => Version::highest_of(&list).ok_or(Cause::NoCommonVersion)?,
        };
        if version > Version::V10
            && let Some(text) = frame.header("heart-beat")
        {
            self.heartbeat = Heartbeat::agree(&text).map_err(|_| Cause::BadHeartbeat)?;
        }
        self.version = Some(version);
        if let Some(access) = &settings.guest {
            self.welcome(now, &settings.server, access.clone());
            return Ok(());
        }
        let text = |name| frame.header(name).map(Cow::into_owned);
        let passcode = text("passcode").map(Secret);
        acts.push(Act::Login { login: text("login"), passcode, host: text("host") });
        self.state = State::Asking;
        Ok(())
    }

    fn subscribe(
        &mut self,
        frame: &Frame<'_>,
        settings: &Settings,
        acts: &mut Vec<Act>,
    ) -> Result<(), Cause> {
        let version = self.version.expect("it is connected");
        let destination = frame.header("destination").ok_or(Cause::Missing("destination"))?.into_owned();
        let id = frame.header("id").map(Cow::into_owned);
        if id.is_none() && version > Version::V10 {
            return Err(Cause::Missing("id"));
        }
        let ack = match frame.header("ack") {
            None => AckMode::Auto,
            Some(word) => AckMode::from_word(&word).ok_or(Cause::BadAckMode)?,
        };
        let window = window_of(frame, self.limits.window_max)?;
        let pattern = Pattern::parse(&destination, &settings.naming).map_err(Cause::Destination)?;
        if id.as_ref().is_some_and(|id| self.by_id.contains_key(id)) {
            return Err(Cause::SubscriptionInUse);
        }
        if !self.may_read(&pattern, settings) {
            return Err(Cause::NotPermitted);
        }
        let place = self.place().ok_or(Cause::TooManySubscriptions)?;
        if let Some(id) = &id {
            self.by_id.insert(id.clone(), place);
        }
        let wanted = Wanted { id, destination, pattern, ack, window };
        self.subscriptions[place as usize] = Some(Box::new(Subscription::new(place, version, wanted)));
        let last_value = frame.header("last-value").is_some_and(|text| text.trim() == "true");
        acts.push(Act::Subscribe { place, last_value });
        Ok(())
    }

    /// Whoever names a strategy that is not for him is told so; under a wildcard he gets what is for him.
    fn may_read(&self, pattern: &Pattern, settings: &Settings) -> bool {
        let (Some(family), Some(name)) = (pattern.name_at(0), pattern.name_at(1)) else { return true };
        let is_guarded = topic::kind_of_family(family, &settings.naming) == Some(Kind::Order);
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
        Some(self.subscriptions.len() as u16 - 1)
    }

    fn unsubscribe(&mut self, frame: &Frame<'_>, acts: &mut Vec<Act>) -> Result<(), Cause> {
        let place = match (frame.header("id"), self.version) {
            (Some(id), _) => self.by_id.remove(&*id),
            // In 1.0 a subscription may have no id, and is then known by its destination.
            (None, Some(Version::V10)) => {
                let text = frame.header("destination").ok_or(Cause::Missing("destination"))?;
                self.first_of(&text)
            }
            (None, _) => return Err(Cause::Missing("id")),
        };
        let place = place.ok_or(Cause::UnknownSubscription)?;
        let subscription = self.subscriptions[place as usize].take().ok_or(Cause::UnknownSubscription)?;
        if let Some(id) = &subscription.wanted.id {
            self.by_id.remove(id);
        }
        self.free.push(place);
        self.forget(place, &subscription);
        acts.push(Act::Unsubscribe { place, pattern: subscription.wanted.pattern });
        Ok(())
    }

    fn first_of(&self, destination: &str) -> Option<u16> {
        let mut all = self.subscriptions.iter();
        all.position(|subscription| {
            subscription.as_ref().is_some_and(|subscription| subscription.wanted.destination == destination)
        })
        .map(|place| place as u16)
    }

    fn acknowledge(&mut self, frame: &Frame<'_>) -> Result<(), Cause> {
        let version = self.version.expect("it is connected");
        let name = if version == Version::V12 { "id" } else { "message-id" };
        let text = frame.header(name).ok_or(Cause::Missing(name))?;
        let message = MessageId::parse(&text).ok_or(Cause::UnknownMessage)?;
        let subscription = self.subscription(message.place).ok_or(Cause::UnknownMessage)?;
        if !subscription.is_unacked(message.number) {
            return Err(Cause::UnknownMessage);
        }
        let named = frame.header("subscription");
        if version == Version::V11 && named.is_none() {
            return Err(Cause::Missing("subscription"));
        }
        let is_other = |named| subscription.wanted.id.as_deref() != Some(named);
        if version < Version::V12 && named.as_deref().is_some_and(is_other) {
            return Err(Cause::UnknownMessage);
        }
        match frame.header("transaction") {
            Some(transaction) => self.transactions.add(&transaction, Deed::Acknowledge(message))?,
            None => self.take_acknowledgement(message),
        }
        Ok(())
    }

    fn begin(&mut self, frame: &Frame<'_>) -> Result<(), Cause> {
        Ok(self.transactions.begin(&transaction_of(frame)?)?)
    }

    fn commit(&mut self, frame: &Frame<'_>, acts: &mut Vec<Act>) -> Result<(), Cause> {
        for deed in self.transactions.end(&transaction_of(frame)?)? {
            match deed {
                Deed::Acknowledge(message) => self.take_acknowledgement(message),
                Deed::Send { name, body } => acts.push(Act::Send { name, body }),
            }
        }
        Ok(())
    }

    fn abort(&mut self, frame: &Frame<'_>) -> Result<(), Cause> {
        self.transactions.end(&transaction_of(frame)?)?;
        Ok(())
    }

    fn send(&mut self, frame: &Frame<'_>, acts: &mut Vec<Act>) -> Result<(), Cause> {
        let destination = frame.header("destination").ok_or(Cause::Missing("destination"))?;
        let name = destination.strip_prefix("/topic/generic-event.").filter(|_| self.access.may_send);
        // Elsewhere names stand in lines of their own: in headers of other brokers, in logs.
        let is_one_segment = |name: &&str| {
            !name.is_empty() && !name.contains(['.', '*', '>', '/']) && !name.contains(char::is_control)
        };
        let name = name.filter(is_one_segment).ok_or(Cause::SendNotPermitted)?;
        let name = topic::decode_segment(name).into_owned();
        if !json::is_json(frame.body) {
            return Err(Cause::SendNotJson);
        }
        let body = frame.body.to_vec();
        match frame.header("transaction") {
            Some(transaction) => self.transactions.add(&transaction, Deed::Send { name, body })?,
            None => acts.push(Act::Send { name, body }),
        }
        Ok(())
    }
}

fn transaction_of<'a>(frame: &Frame<'a>) -> Result<Cow<'a, str>, Cause> {
    frame.header("transaction").ok_or(Cause::Missing("transaction"))
}

/// The window a client asks for under either of the names in use; never above ours.
fn window_of(frame: &Frame<'_>, max: u32) -> Result<u32, Cause> {
    let asked = frame.header("prefetch-count").or_else(|| frame.header("activemq.prefetchSize"));
    let Some(text) = asked else { return Ok(max) };
    let is_number = !text.is_empty() && text.len() <= 9 && text.bytes().all(|b| b.is_ascii_digit());
    let window: u32 = text.parse().ok().filter(|_| is_number).ok_or(Cause::BadPrefetch)?;
    if window == 0 { Err(Cause::BadPrefetch) } else { Ok(window.min(max)) }
}
