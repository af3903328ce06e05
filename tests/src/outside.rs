//! A venue outside, and the adapter that leads to it: slow, at times cut off, repeating itself, and late with fills.

use std::collections::{BTreeMap, VecDeque};

use pitlane_engine::command::{Body, Command, ExecRef, Report};
use pitlane_engine::event::{Ask, Body as Said, Event, Instruction};
use pitlane_engine::id::{OrderHandle, PortId, Source};
use pitlane_engine::mesh::{Broadcast, PortEnd};
use pitlane_engine::number::Qty;
use pitlane_engine::reason::Reason;

use crate::dice::Dice;
use crate::world;

/// An order as the venue has it.
#[derive(Clone, Copy, Debug)]
struct Held {
    qty: i64,
    filled: i64,
    price: i64,
    live: bool,
    /// The last execution, to be repeated by mistake.
    last: Option<(ExecRef, i64)>,
}

#[derive(Debug)]
pub struct Outside {
    dice: Dice,
    orders: BTreeMap<OrderHandle, Held>,
    /// Reports on their way.
    mail: VecDeque<Command>,
    /// A change of the connection that not every shard has heard of.
    news: Option<Broadcast>,
    pub connected: bool,
    /// Whether it misbehaves at times.
    pub chaos: bool,
    execs: u128,
}

/// Reports on their way; with more the venue does nothing of its own.
const MAIL_MAX: usize = 64;

impl Outside {
    pub fn new(dice: Dice) -> Outside {
        Outside {
            dice,
            orders: BTreeMap::new(),
            mail: VecDeque::new(),
            news: None,
            connected: false,
            chaos: false,
            execs: 0,
        }
    }

    /// One turn: hears at most a few instructions, does something of its own, sends what fits. Says how much it did.
    pub fn poll(&mut self, port: &mut PortEnd) -> usize {
        let mut work = 0;
        // All of it, in each turn: an adapter that waits for its shard while the shard waits for it waits for ever.
        while let Some((_, event)) = port.poll_event() {
            self.hear(&event);
            work += 1;
        }
        if self.chaos {
            self.act();
            if self.dice.percent(2) && self.news.is_none() {
                self.switch(!self.connected);
            }
        } else if !self.connected && self.news.is_none() {
            self.switch(true);
            work += 1;
        }
        work + self.deliver(port)
    }

    pub fn is_idle(&self) -> bool {
        self.mail.is_empty() && self.news.is_none() && self.connected
    }

    fn deliver(&mut self, port: &mut PortEnd) -> usize {
        // What happened before a cut is told before it; so the mail goes first.
        let mut work = 0;
        let patience = if self.chaos { self.dice.below(4) as usize } else { usize::MAX };
        while work < patience {
            let Some(command) = self.mail.front() else { break };
            let Body::Report { order, .. } = command.body else { break };
            if port.send(order.shard(), *command).is_err() {
                return work;
            }
            self.mail.pop_front();
            work += 1;
        }
        if let Some(news) = &mut self.news {
            if port.send_all(news) {
                self.news = None;
            }
            work += 1;
        }
        work
    }

    fn switch(&mut self, connected: bool) {
        self.connected = connected;
        if !connected {
            // What was on its way is lost; the venue still did it.
            self.mail.clear();
        }
        let body = Body::Adapter { adapter: world::OUTSIDE_ADAPTER, connected };
        self.news = Some(Broadcast::new(Command { source: source(), token: 0, body }));
    }

    fn hear(&mut self, event: &Event) {
        let Said::ToVenue(instruction) = event.body else { return };
        if !self.connected {
            // Sent into a dead connection; half of it arrives all the same, but no answer comes back.
            if self.dice.percent(50) {
                self.obey(&instruction);
                self.mail.clear();
            }
            return;
        }
        self.obey(&instruction);
    }

    fn obey(&mut self, instruction: &Instruction) {
        let order = instruction.order;
        match instruction.ask {
            Ask::New if self.chaos && self.dice.percent(10) => {
                self.say(order, Report::Rejected(Reason::VenueRejected));
            }
            Ask::New => {
                let terms = &instruction.terms;
                let price = if terms.limit_given { terms.limit } else { world::price("100") };
                let held =
                    Held { qty: terms.qty.raw(), filled: 0, price: price.raw(), live: true, last: None };
                self.orders.insert(order, held);
                self.say(order, Report::Accepted);
            }
            Ask::Cancel => self.cancel(order),
            Ask::Replace => self.replace(order, instruction.terms.qty.raw()),
            Ask::Query => self.tell_all(order),
        }
    }

    fn cancel(&mut self, order: OrderHandle) {
        match self.orders.get_mut(&order) {
            Some(held) if held.live => {
                held.live = false;
                self.say(order, Report::Canceled(Reason::Requested));
            }
            _ => self.say(order, Report::CancelRefused(Reason::OrderFinished)),
        }
    }

    fn replace(&mut self, order: OrderHandle, qty: i64) {
        match self.orders.get_mut(&order) {
            Some(held) if held.live && qty > held.filled => {
                held.qty = qty;
                self.say(order, Report::Replaced);
            }
            _ => self.say(order, Report::ReplaceRefused(Reason::OrderFinished)),
        }
    }

    /// After a reconnect: everything known of an order, whether it was told before or not.
    fn tell_all(&mut self, order: OrderHandle) {
        let Some(held) = self.orders.get(&order).copied() else {
            return self.say(order, Report::Rejected(Reason::VenueRejected));
        };
        self.say(order, Report::Accepted);
        if let Some((exec, qty)) = held.last {
            let price = pitlane_engine::number::Price::from_raw(held.price);
            self.say(order, Report::Filled { exec, qty: Qty::from_raw(qty), price });
        }
        if held.live {
            self.say(order, Report::ReplaceRefused(Reason::VenueUnavailable));
            self.say(order, Report::CancelRefused(Reason::VenueUnavailable));
        } else if held.filled < held.qty {
            self.say(order, Report::Canceled(Reason::VenueCancelled));
        }
        self.say(order, Report::Reconciled);
    }

    /// Something happens on the market there.
    fn act(&mut self) {
        if self.orders.is_empty() || self.mail.len() >= MAIL_MAX || !self.connected {
            return;
        }
        let nth = self.dice.below(self.orders.len() as u64) as usize;
        let (&order, held) = self.orders.iter_mut().nth(nth).expect("there are so many");
        match self.dice.below(20) {
            0..=7 if held.live => self.fill(order),
            8 if !held.live && held.filled < held.qty => self.fill(order),
            9 | 10 => {
                if let Some((exec, qty)) = held.last {
                    let price = pitlane_engine::number::Price::from_raw(held.price);
                    self.say(order, Report::Filled { exec, qty: Qty::from_raw(qty), price });
                }
            }
            11 if held.live => {
                held.live = false;
                self.say(order, Report::Canceled(Reason::VenueCancelled));
            }
            12 if held.live => {
                held.live = false;
                self.say(order, Report::Expired(Reason::ExpiredDay));
            }
            _ => {}
        }
    }

    fn fill(&mut self, order: OrderHandle) {
        self.execs += 1;
        let exec = ExecRef(self.execs);
        let held = self.orders.get_mut(&order).expect("it was just looked up");
        let unit = world::qty("1").raw();
        let left = (held.qty - held.filled) / unit;
        let qty = self.dice.between(1, left.max(1)) * unit;
        held.filled += qty;
        held.live &= held.filled < held.qty;
        held.last = Some((exec, qty));
        let price = pitlane_engine::number::Price::from_raw(held.price);
        self.say(order, Report::Filled { exec, qty: Qty::from_raw(qty), price });
    }

    fn say(&mut self, order: OrderHandle, report: Report) {
        self.mail.push_back(Command { source: source(), token: 0, body: Body::Report { order, report } });
    }
}

fn source() -> Source {
    Source { port: PORT, ..Source::default() }
}

/// The adapter's port.
pub const PORT: PortId = PortId(1);
