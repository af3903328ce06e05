//! Plays dialogues with a broker, as `data/stomp/*.txt` hold them. Lines of a dialogue:
//!
//! ```text
//! connect [ws] [login] [rate=…] [minRate=…] [mark=…] [slots=…] [backlog=…] [backlogBytes=…] [greeting=1s] [stuck=1s]
//!         [line=…] [headers=…] [head=…] [body=…] [subscriptions=…] [window=…]
//! > CONNECT|accept-version:1.2||     a frame of the client; lines are cut by |, a NUL follows
//! >> \r\n                            octets of the client
//! < CONNECTED|version:1.2|…          the next frame of the broker; … stands for anything
//! x 1002                             the broker closes gently, with this code over WebSocket; x! at once
//! 2 connect, 2 > …, 2 < …, 2 x …     the same for a second client
//! wait 750ms                         time passes, timers fire
//! stall, read, read 100              the client stops reading; reads all, or so many octets
//! ? user secret                      a login to verify; then: verdict yes | no | send | only NAME
//! tick 1 100, bar …, book …, log …, generic …, link …, rate …        something happens
//! submit, accepted, fill, cancel, canceled, modify, replaced, phase …    something happens to an order
//! fill: out=… slots=… backlog=…      how full the buffers are
//! ```
//!
//! Everything the broker says must be expected before the next thing happens.

use std::collections::VecDeque;

use pitlane_engine::command::{Body as Told, Phase, Report};
use pitlane_engine::event::{Body as Said, DEPTH_LEVELS_MAX, Depth, Event, Level, Tick};
use pitlane_engine::id::{OrderHandle, SecurityId, ShardId, StrategyId};
use pitlane_engine::reason::Reason;
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::terms::{Changes, Side};
use pitlane_engine::time::{NS_PER_MS, NS_PER_S, Timestamp};
use pitlane_protocols::stomp::access::{Access, Strategies};
use pitlane_protocols::stomp::broker::{Broker, Command, SessionId};
use pitlane_protocols::stomp::payload::market_data::Bar;
use pitlane_protocols::stomp::payload::system::{Level as Grave, Link, LogEvent};
use pitlane_protocols::stomp::session::{Close, Transport};
use pitlane_protocols::stomp::settings::Settings;
use pitlane_protocols::stomp::throttle::Rate;

use super::wire;
use crate::stage::{Stage, limit};
use crate::world;

/// Where the octets of a client are cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cuts {
    /// As the dialogue has them.
    None,
    /// Into pieces of this length.
    Every(usize),
    /// Only in this line, at this place.
    At(usize, usize),
    /// Lines that follow each other come in one piece.
    Merged,
}

/// Plays one dialogue; answers with what went otherwise.
pub fn play(lines: &[&str], cuts: &Cuts) -> Result<(), String> {
    let mut scene = Scene::new(cuts.clone());
    for (number, line) in lines.iter().enumerate() {
        let next_is_input = lines.get(number + 1).is_some_and(|line| line.starts_with('>'));
        scene.line(number, line, next_is_input).map_err(|problem| format!("`{line}`: {problem}"))?;
    }
    scene.expect_nothing()
}

struct Scene {
    cuts: Cuts,
    now: Timestamp,
    settings: Settings,
    broker: Option<Broker>,
    clients: Vec<Client>,
    stage: Stage,
    order: OrderHandle,
    logins: VecDeque<(SessionId, String)>,
    asked: Option<SessionId>,
    /// Lines that wait to be sent in one piece.
    merged: Vec<u8>,
    was_input: bool,
    seq: u64,
}

struct Client {
    id: SessionId,
    wire: Vec<u8>,
    frames: VecDeque<String>,
    closed: Option<Close>,
    is_stalled: bool,
}

impl Scene {
    fn new(cuts: Cuts) -> Scene {
        Scene {
            cuts,
            now: world::start(),
            settings: Settings { server: "Pitlane".to_string(), ..Settings::default() },
            broker: None,
            clients: Vec::new(),
            stage: Stage::new(ShardSettings::default()),
            order: OrderHandle::NONE,
            logins: VecDeque::new(),
            asked: None,
            merged: Vec::new(),
            was_input: false,
            seq: 0,
        }
    }

    fn line(&mut self, number: usize, line: &str, next_is_input: bool) -> Result<(), String> {
        let (client, line) = match line.strip_prefix("2 ") {
            Some(rest) => (1, rest),
            None => (0, line),
        };
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let is_look = matches!(word, "<" | "x" | "x!" | "?" | "fill:");
        // Input that follows input may have been answered already.
        let is_input = word.starts_with('>');
        if !(is_look || is_input && self.was_input) {
            self.expect_nothing()?;
        }
        self.was_input = is_input;
        match word {
            "connect" => self.connect(rest)?,
            ">" => self.send(number, client, wire::frame(rest), next_is_input),
            ">>" => self.send(number, client, wire::raw(rest), next_is_input),
            "<" => return self.expect_frame(client, rest),
            "x" | "x!" => return self.expect_close(client, word == "x!", rest),
            "?" => return self.expect_login(rest),
            "fill:" => return self.expect_fill(client, rest),
            "wait" => self.wait(nanoseconds(rest)?),
            "stall" => self.clients[client].is_stalled = true,
            "read" => self.read(client, rest),
            "verdict" => self.verdict(rest)?,
            "hangup" => {
                let id = self.clients[client].id;
                self.broker().close(id);
            }
            "end" => {
                let (now, id) = (self.now, self.clients[client].id);
                self.broker().end(now, id);
            }
            _ => self.happen(word, rest)?,
        }
        self.drain();
        Ok(())
    }

    fn connect(&mut self, options: &str) -> Result<(), String> {
        let mut transport = Transport::Tcp;
        for option in options.split_whitespace() {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let number = || value.parse::<usize>().map_err(|_| format!("{option} is no number"));
            let rate = || Rate::parse(value.as_bytes()).map_err(|_| format!("{option} is no rate"));
            match name {
                "ws" => transport = Transport::WebSocket,
                "login" => self.settings.guest = None,
                "rate" => self.settings.throttle.max_rate_per_connection = rate()?,
                "minRate" => self.settings.throttle.min_rate_per_consumer = rate()?,
                "mark" => self.settings.limits.mark_bytes = number()?,
                "slots" => self.settings.limits.slots_max = number()?,
                "backlog" => self.settings.limits.backlog_max = number()?,
                "backlogBytes" => self.settings.limits.backlog_bytes_max = number()?,
                "greeting" => self.settings.limits.greeting_ns_max = nanoseconds(value)?,
                "stuck" => self.settings.limits.stuck_ns_max = nanoseconds(value)?,
                "line" => self.settings.limits.frame.line_bytes_max = number()?,
                "headers" => self.settings.limits.frame.headers_max = number()?,
                "head" => self.settings.limits.frame.head_bytes_max = number()?,
                "body" => self.settings.limits.frame.body_bytes_max = number()?,
                "subscriptions" => self.settings.limits.subscriptions_max = number()? as u16,
                "window" => self.settings.limits.window_max = number()? as u32,
                "sessions" => self.settings.sessions_max = number()? as u32,
                _ => return Err(format!("no option: {option}")),
            }
        }
        let (now, settings) = (self.now, self.settings.clone());
        let broker = self.broker.get_or_insert_with(|| Broker::new(settings, world::reference()));
        let id = broker.open(now, transport).ok_or("there is no room for a session")?;
        let (wire, frames) = (Vec::new(), VecDeque::new());
        self.clients.push(Client { id, wire, frames, closed: None, is_stalled: false });
        Ok(())
    }

    fn send(&mut self, number: usize, client: usize, mut bytes: Vec<u8>, next_is_input: bool) {
        let pieces: Vec<&[u8]> = match self.cuts {
            Cuts::None => vec![&bytes],
            Cuts::Every(len) => bytes.chunks(len).collect(),
            Cuts::At(line, at) if line == number && at < bytes.len() => {
                let (first, second) = bytes.split_at(at);
                vec![first, second]
            }
            Cuts::At(..) => vec![&bytes],
            Cuts::Merged => {
                self.merged.extend_from_slice(&bytes);
                if next_is_input && client == 0 {
                    return;
                }
                bytes = std::mem::take(&mut self.merged);
                vec![&bytes]
            }
        };
        let (now, id) = (self.now, self.clients[client].id);
        for piece in pieces {
            self.broker().handle_bytes(now, id, piece);
        }
    }

    fn happen(&mut self, word: &str, rest: &str) -> Result<(), String> {
        let words: Vec<&str> = rest.split_whitespace().collect();
        let now = self.now;
        self.stage.now = now;
        let security = |text: &str| SecurityId(text.parse().expect("a security is a number"));
        let events = match (word, &words[..]) {
            ("tick", [of, price]) => {
                self.tick(security(of), price);
                vec![]
            }
            ("rate", [rate, least]) => {
                let mut throttle = self.settings.throttle;
                throttle.max_rate_per_connection = Rate::parse(rate.as_bytes()).map_err(|e| e.to_string())?;
                throttle.min_rate_per_consumer = Rate::parse(least.as_bytes()).map_err(|e| e.to_string())?;
                self.broker().set_throttle(now, throttle);
                vec![]
            }
            ("bar", [of, size]) => {
                let price = world::price("1.5");
                let (open, high, low, close) = (price, price, price, price);
                let volume = world::qty("7");
                let bar = Bar { security: security(of), size, open, high, low, close, volume, at: now };
                self.broker().publish_bar(now, now, &bar);
                vec![]
            }
            ("book", [of, bid, ask]) => {
                self.seq += 1;
                let seq = self.seq;
                let depth = |text: &str, side| {
                    let level = Level { price: world::price(text), qty: world::qty("2") };
                    let mut levels = [Level::default(); DEPTH_LEVELS_MAX];
                    levels[..2].fill(level);
                    let body = Said::Depth(Depth { levels, security: security(of), side, count: 2 });
                    Event { seq, at: now, body }
                };
                vec![depth(bid, Side::Buy), depth(ask, Side::Sell)]
            }
            ("log", [level, message]) => {
                let level = if *level == "error" { Grave::Error } else { Grave::Warn };
                let event = LogEvent { level, logger: "test", message, fields: &[("key", "value")] };
                self.broker().publish_log_event(now, &event);
                vec![]
            }
            ("logs", [count]) => {
                for number in 1..=count.parse::<u32>().map_err(|_| "a number")? {
                    let message = number.to_string();
                    let event =
                        LogEvent { level: Grave::Warn, logger: "test", message: &message, fields: &[] };
                    self.broker().publish_log_event(now, &event);
                    self.drain();
                }
                vec![]
            }
            ("generic", [name, data]) => {
                self.broker().publish_generic_event(now, name, data.as_bytes());
                vec![]
            }
            ("link", [name, state]) => {
                let links = [Link::Disconnected, Link::Connected, Link::LoggedOn, Link::Subscribed];
                let link = links.into_iter().find(|link| link.word() == *state).ok_or("no such state")?;
                self.broker().publish_session(now, name, link);
                vec![]
            }
            ("submit", [strategy, qty, price]) => {
                let mut terms = limit(world::ABROAD[0], Side::Buy, qty, price);
                terms.strategy = StrategyId(strategy.parse().map_err(|_| "a strategy is a number")?);
                let (order, events) = self.stage.submit(terms);
                self.order = order;
                events
            }
            ("accepted", []) => self.stage.report(self.order, Report::Accepted),
            ("replaced", []) => self.stage.report(self.order, Report::Replaced),
            ("canceled", []) => self.stage.report(self.order, Report::Canceled(Reason::Requested)),
            ("fill", [exec, qty, price]) => {
                self.stage.fill(self.order, exec.parse().map_err(|_| "a number")?, qty, price)
            }
            ("cancel", []) => self.stage.cancel(self.order),
            ("modify", [qty]) => self.stage.modify(self.order, Changes::default().with_qty(world::qty(qty))),
            ("subscribe", [strategy, of, on]) => {
                let strategy = StrategyId(strategy.parse().map_err(|_| "a strategy is a number")?);
                let (security, on) = (security(of), *on == "on");
                self.stage.tell(Told::Subscribe { strategy, security, on })
            }
            ("phase", [strategy]) => {
                let strategy = StrategyId(strategy.parse().map_err(|_| "a strategy is a number")?);
                self.stage.tell(Told::Phase { strategy, phase: Phase::Stop })
            }
            ("adapter", [state]) => {
                let connected = *state == "up";
                self.stage.tell(Told::Adapter { adapter: world::OUTSIDE_ADAPTER, connected })
            }
            _ => return Err("this is no line of a dialogue".to_string()),
        };
        self.publish(&events);
        Ok(())
    }

    fn publish(&mut self, events: &[Event]) {
        let now = self.now;
        for event in events {
            self.broker().handle_event(now, ShardId(0), event);
        }
    }

    fn tick(&mut self, security: SecurityId, price: &str) {
        self.seq += 1;
        let (price, size) = (world::price(price), world::qty("1"));
        let (now, seq) = (self.now, self.seq);
        let tick = Tick { security, bid: price, bid_size: size, volume: size, at: now, ..Tick::default() };
        self.broker().publish_tick(now, seq, now, &tick);
    }

    fn verdict(&mut self, words: &str) -> Result<(), String> {
        let session = self.asked.take().ok_or("nobody is asked about")?;
        let access = match words.split_once(' ').unwrap_or((words, "")) {
            ("yes", _) => Some(Access::default()),
            ("send", _) => Some(Access { may_send: true, ..Access::default() }),
            ("only", name) => {
                Some(Access { strategies: Strategies::Only(vec![name.to_string()]), may_send: false })
            }
            _ => None,
        };
        let now = self.now;
        self.broker().handle_verdict(now, session, access);
        Ok(())
    }

    /// Lets time pass from deadline to deadline, as a loop that sleeps until the next one would.
    fn wait(&mut self, ns: u64) {
        let end = self.now.plus(ns);
        while let Some(at) = self.broker().poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            let now = self.now;
            self.broker().handle_timeout(now);
            self.drain();
        }
        self.now = end;
        self.broker().handle_timeout(end);
    }

    fn read(&mut self, client: usize, count: &str) {
        if count.is_empty() {
            self.clients[client].is_stalled = false;
        }
        let count = count.parse().unwrap_or(usize::MAX);
        self.take(client, count);
    }

    /// Does what a gateway does in a turn: commands, then every session that has something to write.
    fn drain(&mut self) {
        let now = self.now;
        while let Some(command) = self.broker().poll_command() {
            match command {
                Command::Login { session, login, passcode, host } => {
                    let words = [login, passcode.map(|secret| secret.0), host]
                        .map(|word| word.unwrap_or("-".to_string()));
                    self.logins.push_back((session, words.join(" ")));
                }
                Command::Generic { name, body, .. } => self.broker().publish_generic_event(now, &name, &body),
                Command::Watch { .. } => {}
            }
        }
        while let Some(id) = self.broker().poll_active() {
            let client = self.clients.iter().position(|client| client.id == id).expect("it was opened here");
            if !self.clients[client].is_stalled {
                self.take(client, usize::MAX);
            }
            let close = self.broker().poll_close(now, id);
            let client = &mut self.clients[client];
            client.closed = client.closed.or(close);
        }
    }

    fn take(&mut self, client: usize, most: usize) {
        let (now, id) = (self.now, self.clients[client].id);
        let mut left = most;
        loop {
            let broker = self.broker();
            let Some(transmit) = broker.transmit(id) else { break };
            let whole: usize = transmit.frames().map(<[u8]>::len).sum();
            assert_eq!(whole, transmit.bytes.len(), "octets are made of frames");
            let count = transmit.bytes.len().min(left);
            if count == 0 {
                break;
            }
            let bytes = transmit.bytes[..count].to_vec();
            broker.handle_taken(now, id, count);
            self.clients[client].wire.extend_from_slice(&bytes);
            left -= count;
        }
        let close = self.broker().poll_close(now, id);
        let client = &mut self.clients[client];
        client.frames.extend(wire::frames(&mut client.wire));
        client.closed = client.closed.or(close);
    }

    fn expect_frame(&mut self, client: usize, pattern: &str) -> Result<(), String> {
        match self.clients[client].frames.pop_front() {
            Some(frame) if wire::is_like(pattern, &frame) => Ok(()),
            Some(frame) => Err(format!("said `{frame}`")),
            None => Err("nothing was said".to_string()),
        }
    }

    fn expect_close(&mut self, client: usize, at_once: bool, code: &str) -> Result<(), String> {
        let client = &mut self.clients[client];
        if let Some(frame) = client.frames.front() {
            return Err(format!("first said `{frame}`"));
        }
        let (cause, was_at_once) = match client.closed.take() {
            None => return Err("it was not closed".to_string()),
            Some(Close::Gently(cause)) => (cause, false),
            Some(Close::AtOnce(cause)) => (cause, true),
        };
        if was_at_once != at_once || cause.close_code().to_string() != code {
            return Err(format!("closed at once: {was_at_once}, {} {}", cause.close_code(), cause.words()));
        }
        let id = client.id;
        self.broker().close(id);
        Ok(())
    }

    fn expect_login(&mut self, words: &str) -> Result<(), String> {
        let (session, asked) = self.logins.pop_front().ok_or("nobody logs in")?;
        self.asked = Some(session);
        if asked == words { Ok(()) } else { Err(format!("asked about `{asked}`")) }
    }

    fn expect_fill(&mut self, client: usize, words: &str) -> Result<(), String> {
        let id = self.clients[client].id;
        let (_, counters, fill) = self.broker().look(id).ok_or("the session is gone")?;
        for word in words.split_whitespace() {
            let (name, value) = word.split_once('=').ok_or("name=value")?;
            let is = match name {
                "out" => fill.out_bytes as u64,
                "slots" => fill.slots as u64,
                "backlog" => fill.backlog as u64,
                "subscriptions" => fill.subscriptions as u64,
                "conflated" => counters.conflated,
                "messages" => counters.messages,
                _ => return Err(format!("no such number: {name}")),
            };
            if is.to_string() != value {
                return Err(format!("{name} is {is}"));
            }
        }
        Ok(())
    }

    fn expect_nothing(&mut self) -> Result<(), String> {
        for client in &mut self.clients {
            if let Some(frame) = client.frames.front() {
                return Err(format!("not expected: `{frame}`"));
            }
            if let Some(close) = client.closed {
                return Err(format!("closed: {close:?}"));
            }
        }
        match self.logins.front() {
            Some((_, words)) => Err(format!("not expected: a login `{words}`")),
            None => Ok(()),
        }
    }

    fn broker(&mut self) -> &mut Broker {
        self.broker.as_mut().expect("a dialogue begins with `connect`")
    }
}

fn nanoseconds(text: &str) -> Result<u64, String> {
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, NS_PER_MS),
        None => (text.strip_suffix('s').ok_or("a time ends with s or ms")?, NS_PER_S),
    };
    number.parse::<u64>().map(|number| number * unit).map_err(|_| format!("{text} is no time"))
}
