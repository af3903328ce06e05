//! Plays dialogues with a broker, as `data/stomp/*.txt` hold them. Lines of a dialogue:
//!
//! ```text
//! connect [ws|tcp] [login] [rate=…] [minRate=…] [mark=…] [slots=…] [backlog=…] [backlogBytes=…] [greeting=1s] [stuck=1s]
//!         [line=…] [headers=…] [head=…] [body=…] [subscriptions=…] [window=…] [sessions=…]
//! > CONNECT|accept-version:1.2||     a frame of the client; lines are cut by |, a NUL follows
//! >> \r\n                            bytes of the client
//! < CONNECTED|version:1.2|…          the next frame of the broker; … stands for anything
//! x 1002                             the broker closes gracefully, with this code over WebSocket; x! immediately
//! 2 connect, 2 > …, 2 < …, 2 x …     the same for a second client
//! wait 750ms                         time passes, timers fire
//! stall, read, read 100              the client stops reading; reads all, or this many bytes
//! ? user secret host                 a login to verify; then: verdict yes | no | send | only NAME
//! tick 1 100, trade 1 1.5 7, book …, log …, link …, rate …               something happens
//! levels 1 4 B10x5 A11x6, levels 1 4-7 B10x0                             a snapshot at 4; an update from 4 to 7
//! submit, accepted, fill, cancel, canceled, modify, replaced, phase …    something happens to an order
//! fill: out=… slots=… backlog=…      how full the buffers are
//! hangup, end                        the client disconnects; an administrator ends its session
//! ```
//!
//! The dialogue must expect all output of the broker before the next action. A dialogue applies to
//! every transport unless it names `ws` (what only WebSocket has) or `tcp` (what WebSocket does not
//! have).

use pitlane_dialogue::stomp_frames;
use pitlane_engine::command::{CommandKind, StrategyPhase, VenueReport};
use pitlane_engine::event::{
    DEPTH_LEVELS_MAX, Depth, DepthLevel, Event, EventKind, LevelChange, LevelChanges, LevelsKind, Tick,
};
use pitlane_engine::id::{OrderHandle, SecurityId, ShardId, StrategyId};
use pitlane_engine::index::{index_u16, index_u32};
use pitlane_engine::reason::Reason;
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::terms::{Changes, Side};
use pitlane_engine::time::{NS_PER_MS, NS_PER_S, Timestamp};
use pitlane_protocols::stomp::payload::system::{ExternalSessionState, LogLevel};
use pitlane_protocols::stomp::session::Transport;
use pitlane_protocols::stomp::settings::BrokerSettings;
use pitlane_protocols::stomp::throttle::EventRate;

use super::host::{ConnectionEnd, DialogueUser, HostPlan, LoginVerdict, Publication, StompHost};
use crate::shard_harness::{ShardHarness, limit};
use crate::test_market;

/// One shard publishes orders, another prices: each has sequence numbers of its own.
const ORDERS: ShardId = ShardId(0);
const PRICES: ShardId = ShardId(1);
/// Most log events at once, so that no lane between threads is full.
const LOGS_AT_ONCE: usize = 256;

/// Where the bytes of a client are cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cuts {
    /// As in the dialogue.
    None,
    /// Into pieces of this length.
    Every(usize),
    /// Only in this line, at this position.
    At(usize, usize),
    /// Successive lines come in one piece.
    Merged,
}

/// Opens the host that a dialogue is played with.
pub type OpenHost<'a> = &'a dyn Fn(HostPlan) -> Box<dyn StompHost>;

/// Plays one dialogue, and returns the first difference.
pub fn play(lines: &[&str], cuts: &Cuts, open: OpenHost<'_>) -> Result<(), String> {
    let mut dialogue = StompDialogue::new(cuts.clone(), lines, open)?;
    for (number, line) in lines.iter().enumerate() {
        let next_is_input = lines.get(number + 1).is_some_and(|line| line.starts_with('>'));
        dialogue.line(number, line, next_is_input).map_err(|problem| format!("`{line}`: {problem}"))?;
    }
    dialogue.expect_nothing()
}

/// Returns every rule of a file with its lines.
pub fn dialogues(text: &str) -> Vec<(&str, Vec<&str>)> {
    let (mut all, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find("# ") {
        let whole = &rest[at + 2..];
        let end = whole.find("\n# ").map_or(whole.len(), |end| end + 1);
        let (rule, lines) = whole[..end].split_once('\n').unwrap_or((&whole[..end], ""));
        let lines: Vec<&str> =
            lines.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
        if !lines.is_empty() {
            all.push((rule, lines));
        }
        rest = &whole[end..];
    }
    all
}

struct StompDialogue<'a> {
    cuts: Cuts,
    now: Timestamp,
    plan: HostPlan,
    open: OpenHost<'a>,
    host: Option<Box<dyn StompHost>>,
    clients: usize,
    harness: ShardHarness,
    order: OrderHandle,
    /// Whether a login was seen and is not decided yet.
    is_asked: bool,
    /// Lines that wait to be sent in one piece.
    merged: Vec<u8>,
    was_input: bool,
    seq: u64,
}

impl StompDialogue<'_> {
    fn new<'a>(cuts: Cuts, lines: &[&str], open: OpenHost<'a>) -> Result<StompDialogue<'a>, String> {
        let plan = HostPlan {
            settings: BrokerSettings { server: "Pitlane".to_string(), ..BrokerSettings::default() },
            transport: Transport::Tcp,
            users: users(lines)?,
            stalls: lines.contains(&"stall"),
        };
        Ok(StompDialogue {
            cuts,
            now: test_market::start(),
            plan,
            open,
            host: None,
            clients: 0,
            harness: ShardHarness::new(ShardSettings::default()),
            order: OrderHandle::NONE,
            is_asked: false,
            merged: Vec::new(),
            was_input: false,
            seq: 0,
        })
    }

    fn line(&mut self, number: usize, line: &str, next_is_input: bool) -> Result<(), String> {
        let (client, line) = match line.strip_prefix("2 ") {
            Some(rest) => (1, rest),
            None => (0, line),
        };
        let (keyword, rest) = line.split_once(' ').unwrap_or((line, ""));
        let is_look = matches!(keyword, "<" | "x" | "x!" | "?" | "fill:");
        // Input that follows input may have been answered already.
        let is_input = keyword.starts_with('>');
        if !(is_look || is_input && self.was_input) {
            self.expect_nothing()?;
        }
        self.was_input = is_input;
        let now = self.now;
        match keyword {
            "connect" => return self.connect(rest),
            ">" => self.send(number, client, stomp_frames::frame(rest), next_is_input),
            ">>" => self.send(number, client, stomp_frames::raw(rest), next_is_input),
            "<" => return self.expect_frame(client, rest),
            "x" | "x!" => return self.expect_end(client, keyword == "x!", rest),
            "?" => return self.expect_login(rest),
            "fill:" => return self.expect_fill(client, rest),
            "wait" => {
                self.now = now.plus(nanoseconds(rest)?);
                let to = self.now;
                self.host().wait(now, to);
            }
            "stall" => self.host().stall(now, client)?,
            "read" => self.host().read(now, client, rest.parse().ok()),
            "verdict" => {
                self.is_asked = false;
                self.host().decide(now, &verdict(rest)?)?;
            }
            "hangup" => self.host().hang_up(now, client),
            "end" => self.host().publish(now, &[Publication::Ended(client)]),
            _ => {
                let publications = self.publications(keyword, rest)?;
                publications
                    .chunks(LOGS_AT_ONCE)
                    .for_each(|publications| self.host().publish(now, publications));
            }
        }
        Ok(())
    }

    fn connect(&mut self, options: &str) -> Result<(), String> {
        let BrokerSettings { throttle, limits, anonymous_access, sessions_max, .. } = &mut self.plan.settings;
        for option in options.split_whitespace() {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let number = || value.parse::<usize>().map_err(|_| format!("{option} is no number"));
            let rate = || EventRate::parse(value.as_bytes()).map_err(|_| format!("{option} is no rate"));
            match name {
                "ws" => self.plan.transport = Transport::WebSocket,
                "tcp" => {}
                "login" => *anonymous_access = None,
                "rate" => throttle.max_rate_per_connection = rate()?,
                "minRate" => throttle.min_rate_per_consumer = rate()?,
                "mark" => limits.mark_bytes = number()?,
                "slots" => limits.slots_max = number()?,
                "backlog" => limits.backlog_max = number()?,
                "backlogBytes" => limits.backlog_bytes_max = number()?,
                "greeting" => limits.connect_ns_max = nanoseconds(value)?,
                "stuck" => limits.stuck_ns_max = nanoseconds(value)?,
                "line" => limits.frame.line_bytes_max = number()?,
                "headers" => limits.frame.headers_max = number()?,
                "head" => limits.frame.head_bytes_max = number()?,
                "body" => limits.frame.body_bytes_max = number()?,
                "subscriptions" => limits.subscriptions_max = index_u16(number()?),
                "window" => limits.window_max = index_u32(number()?),
                "sessions" => *sessions_max = index_u32(number()?),
                _ => return Err(format!("no option: {option}")),
            }
        }
        let (now, open, plan) = (self.now, self.open, &self.plan);
        self.host.get_or_insert_with(|| open(plan.clone())).connect(now)?;
        self.clients += 1;
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
        let now = self.now;
        for piece in pieces {
            self.host().send(now, client, piece);
        }
    }

    /// Returns the events of a line that clients are informed about.
    fn publications(&mut self, keyword: &str, rest: &str) -> Result<Vec<Publication>, String> {
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let now = self.now;
        self.harness.now = now;
        let security = |text: &str| SecurityId(text.parse().expect("a security is a number"));
        let events = match (keyword, &fields[..]) {
            ("tick", [of, bid]) => {
                let (bid, size) = (test_market::price(bid), test_market::qty("1"));
                let security = security(of);
                let tick = Tick { security, bid, bid_size: size, volume: size, at: now, ..Tick::default() };
                return Ok(vec![self.price(EventKind::Tick(tick))]);
            }
            ("trade", [of, last, volume]) => {
                let (security, last, volume) =
                    (security(of), test_market::price(last), test_market::qty(volume));
                let tick = Tick { security, last, volume, traded: true, at: now, ..Tick::default() };
                return Ok(vec![self.price(EventKind::Tick(tick))]);
            }
            ("book", [of, bid, ask]) => {
                let sides = [(bid, Side::Buy), (ask, Side::Sell)].map(|(price, side)| {
                    let mut levels = [DepthLevel::default(); DEPTH_LEVELS_MAX];
                    levels[..2]
                        .fill(DepthLevel { price: test_market::price(price), qty: test_market::qty("2") });
                    EventKind::Depth(Depth { levels, security: security(of), side, count: 2 })
                });
                return Ok(sides.map(|side| self.price(side)).to_vec());
            }
            ("levels", [of, seqs, changes @ ..]) => {
                let levels = level_changes(security(of), seqs, changes).ok_or("no such levels")?;
                return Ok(vec![self.price(EventKind::Levels(levels))]);
            }
            ("rate", [rate, least]) => {
                let mut throttle = self.plan.settings.throttle;
                throttle.max_rate_per_connection =
                    EventRate::parse(rate.as_bytes()).map_err(|e| e.to_string())?;
                throttle.min_rate_per_consumer =
                    EventRate::parse(least.as_bytes()).map_err(|e| e.to_string())?;
                return Ok(vec![Publication::Rates(throttle)]);
            }
            ("log", [level, message]) => {
                let level = if *level == "error" { LogLevel::Error } else { LogLevel::Warn };
                return Ok(vec![Publication::Log {
                    level,
                    message: message.to_string(),
                    fields: &[("key", "value")],
                }]);
            }
            ("logs", [count]) => {
                let count = count.parse::<u32>().map_err(|_| "a number")?;
                let log = |number: u32| Publication::Log {
                    level: LogLevel::Warn,
                    message: number.to_string(),
                    fields: &[],
                };
                return Ok((1..=count).map(log).collect());
            }
            ("link", [name, state]) => {
                let links = [
                    ExternalSessionState::Disconnected,
                    ExternalSessionState::Connected,
                    ExternalSessionState::LoggedOn,
                    ExternalSessionState::Subscribed,
                ];
                let link =
                    links.into_iter().find(|link| link.wire_name() == *state).ok_or("no such state")?;
                return Ok(vec![Publication::Link { name: name.to_string(), link }]);
            }
            ("submit", [strategy, qty, price]) => {
                let mut terms = limit(test_market::ABROAD[0], Side::Buy, qty, price);
                terms.strategy = StrategyId(strategy.parse().map_err(|_| "a strategy is a number")?);
                let (order, events) = self.harness.submit(terms);
                self.order = order;
                events
            }
            ("accepted", []) => self.harness.report(self.order, VenueReport::Accepted),
            ("replaced", []) => self.harness.report(self.order, VenueReport::Replaced),
            ("canceled", []) => self.harness.report(self.order, VenueReport::Canceled(Reason::Requested)),
            ("fill", [exec, qty, price]) => {
                self.harness.fill(self.order, exec.parse().map_err(|_| "a number")?, qty, price)
            }
            ("cancel", []) => self.harness.cancel(self.order),
            ("modify", [qty]) => {
                self.harness.modify(self.order, Changes::default().with_qty(test_market::qty(qty)))
            }
            ("subscribe", [strategy, of, on]) => {
                let strategy = StrategyId(strategy.parse().map_err(|_| "a strategy is a number")?);
                let (security, on) = (security(of), *on == "on");
                self.harness.send_command(CommandKind::Subscribe { strategy, security, on })
            }
            ("phase", [strategy]) => {
                let strategy = StrategyId(strategy.parse().map_err(|_| "a strategy is a number")?);
                self.harness.send_command(CommandKind::Phase { strategy, phase: StrategyPhase::Stop })
            }
            ("adapter", [state]) => {
                let connected = *state == "up";
                self.harness
                    .send_command(CommandKind::Adapter { adapter: test_market::OUTSIDE_ADAPTER, connected })
            }
            _ => return Err("this is no line of a dialogue".to_string()),
        };
        Ok(events.into_iter().map(|event| Publication::Event(ORDERS, event)).collect())
    }

    fn price(&mut self, body: EventKind) -> Publication {
        // Both sides of a book have one number.
        let is_behind = matches!(body, EventKind::Depth(Depth { side: Side::Sell, .. }));
        self.seq += u64::from(!is_behind);
        Publication::Event(PRICES, Event { seq: self.seq, at: self.now, body })
    }

    fn expect_frame(&mut self, client: usize, pattern: &str) -> Result<(), String> {
        match self.host().received(client).frames.pop_front() {
            Some(frame) if stomp_frames::is_like(pattern, &frame) => Ok(()),
            Some(frame) => Err(format!("sent `{frame}`")),
            None => Err("nothing was sent".to_string()),
        }
    }

    fn expect_end(&mut self, client: usize, at_once: bool, code: &str) -> Result<(), String> {
        let now = self.now;
        if let Some(frame) = self.host().received(client).frames.front() {
            return Err(format!("first sent `{frame}`"));
        }
        let end = self.host().end(now, client).ok_or("it was not closed")?;
        let ConnectionEnd { at_once: was_at_once, code: received_code } = end;
        let is_so = was_at_once.is_none_or(|was| was == at_once);
        if !is_so || received_code.is_some_and(|received_code| received_code.to_string() != code) {
            return Err(format!("closed: {end:?}"));
        }
        Ok(())
    }

    fn expect_login(&mut self, fields: &str) -> Result<(), String> {
        self.is_asked = true;
        match self.host().login() {
            Some(asked) if asked != fields => Err(format!("asked about `{asked}`")),
            Some(_) | None => Ok(()),
        }
    }

    fn expect_fill(&mut self, client: usize, fields: &str) -> Result<(), String> {
        let (counters, fill) = self.host().look(client).ok_or("the session is gone")?;
        for keyword in fields.split_whitespace() {
            let (name, value) = keyword.split_once('=').ok_or("name=value")?;
            let is = match name {
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
        for client in 0..self.clients {
            let received = self.host().received(client);
            if let Some(frame) = received.frames.front() {
                return Err(format!("not expected: `{frame}`"));
            }
            if let Some(end) = received.end {
                return Err(format!("closed: {end:?}"));
            }
        }
        // A login that was seen is decided later.
        match self.host.as_mut().filter(|_| !self.is_asked).and_then(|host| host.login()) {
            Some(fields) => Err(format!("not expected: a login `{fields}`")),
            None => Ok(()),
        }
    }

    fn host(&mut self) -> &mut dyn StompHost {
        &mut **self.host.as_mut().expect("a dialogue begins with `connect`")
    }
}

/// Returns the users that log in, in the order of the lines: `? login passcode host`, followed by
/// the verdict.
fn users(lines: &[&str]) -> Result<Vec<DialogueUser>, String> {
    let mut users = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(fields) = line.strip_prefix("? ") else { continue };
        let (login, rest) = fields.split_once(' ').ok_or("a login has a passcode")?;
        let (passcode, _) = rest.rsplit_once(' ').ok_or("a login has a host")?;
        let decided = lines[at..].iter().find_map(|line| line.strip_prefix("verdict "));
        let verdict = decided.map_or(Ok(LoginVerdict::Refused), verdict)?;
        users.push(DialogueUser { login: login.to_string(), passcode: passcode.to_string(), verdict });
    }
    Ok(users)
}

fn verdict(fields: &str) -> Result<LoginVerdict, String> {
    match fields.split_once(' ').unwrap_or((fields, "")) {
        ("yes", "") => Ok(LoginVerdict::Reads),
        ("send", "") => Ok(LoginVerdict::Sends),
        ("only", name) => Ok(LoginVerdict::Only(name.to_string())),
        ("no", "") => Ok(LoginVerdict::Refused),
        _ => Err(format!("no verdict: {fields}")),
    }
}

fn nanoseconds(text: &str) -> Result<u64, String> {
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, NS_PER_MS),
        None => (text.strip_suffix('s').ok_or("a time ends with s or ms")?, NS_PER_S),
    };
    number.parse::<u64>().map(|number| number * unit).map_err(|_| format!("{text} is no time"))
}

/// Returns a snapshot at a sequence number, as `4`, or an update from one to another, as `4-7`,
/// with changes as `B10x5`: side, price, quantity.
fn level_changes(security: SecurityId, seqs: &str, changes: &[&str]) -> Option<LevelChanges> {
    let (kind, prev, seq) = match seqs.split_once('-') {
        Some((prev, seq)) => (LevelsKind::Update, prev, seq),
        None => (LevelsKind::Snapshot, seqs, seqs),
    };
    let mut levels = LevelChanges::new(security, kind, prev.parse().ok()?, seq.parse().ok()?);
    for change in changes {
        let (side, rest) = change.split_at_checked(1)?;
        let (price, qty) = rest.split_once('x')?;
        let side = if side == "B" { Side::Buy } else { Side::Sell };
        levels.push(LevelChange { side, price: test_market::price(price), qty: test_market::qty(qty) });
    }
    levels.is_last = true;
    Some(levels)
}
