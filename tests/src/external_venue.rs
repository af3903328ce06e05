//! An external venue, and the adapter that connects to it: slow, at times disconnected, repeating
//! itself, and late with fills.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pitlane_engine::command::{Command, CommandKind, ExecRef, VenueReport, VenueState};
use pitlane_engine::event::{Event, EventKind, Instruction, VenueRequest};
use pitlane_engine::id::{OrderHandle, PortId, Source};
use pitlane_engine::mesh::{Broadcast, PortEnd};
use pitlane_engine::number::{Notional, Price, Qty};
use pitlane_engine::reason::Reason;

use crate::dice::Dice;
use crate::test_market;

/// An order as the venue has it.
#[derive(Clone, Debug)]
struct VenueOrder {
    qty: i64,
    filled: i64,
    price: i64,
    /// Sum of price × quantity of the fills.
    value: i128,
    live: bool,
    /// Final state, if it was not filled.
    over: Option<VenueState>,
    fills: Vec<Fill>,
}

/// An execution as the venue has it.
#[derive(Clone, Copy, Debug)]
struct Fill {
    /// Its newest id.
    exec: ExecRef,
    qty: i64,
    price: i64,
    /// Filled quantity of the order including this fill.
    cum: i64,
}

#[derive(Debug)]
pub struct ExternalVenue {
    dice: Dice,
    orders: BTreeMap<OrderHandle, VenueOrder>,
    /// Reports in flight.
    outgoing: VecDeque<Command>,
    /// A change of the connection that not every shard has received.
    connection_change: Option<Broadcast>,
    pub connected: bool,
    /// Whether it misbehaves at times.
    pub chaos: bool,
    execs: u128,
}

/// Most reports in flight; with more the venue takes no action of its own.
const MAIL_MAX: usize = 64;

impl ExternalVenue {
    pub fn new(dice: Dice) -> ExternalVenue {
        ExternalVenue {
            dice,
            orders: BTreeMap::new(),
            outgoing: VecDeque::new(),
            connection_change: None,
            connected: false,
            chaos: false,
            execs: 0,
        }
    }

    /// Runs one cycle: receives instructions, takes an action of its own, sends what fits. Returns
    /// the amount of work.
    pub fn poll(&mut self, port: &mut PortEnd) -> usize {
        let mut work = 0;
        // Receives all of them in each cycle: an adapter that waits for its shard while the shard
        // waits for it would wait for ever.
        while let Some((_, event)) = port.poll_event() {
            self.handle_event(&event);
            work += 1;
        }
        if self.chaos {
            self.act();
            if self.dice.percent(2) && self.connection_change.is_none() {
                self.switch(!self.connected);
            }
        } else if !self.connected && self.connection_change.is_none() {
            self.switch(true);
            work += 1;
        }
        work + self.deliver(port)
    }

    pub fn is_idle(&self) -> bool {
        self.outgoing.is_empty() && self.connection_change.is_none() && self.connected
    }

    fn deliver(&mut self, port: &mut PortEnd) -> usize {
        // What happened before a disconnect is reported before it; so reports go first.
        let mut work = 0;
        let patience = if self.chaos { self.dice.index(4) } else { usize::MAX };
        while work < patience {
            let Some(command) = self.outgoing.front() else { break };
            let CommandKind::Report { order, .. } = command.body else { break };
            if port.send(order.shard(), *command).is_err() {
                return work;
            }
            self.outgoing.pop_front();
            work += 1;
        }
        if let Some(connection_change) = &mut self.connection_change {
            if port.send_all(connection_change) {
                self.connection_change = None;
            }
            work += 1;
        }
        work
    }

    fn switch(&mut self, connected: bool) {
        self.connected = connected;
        if !connected {
            // Reports in flight are lost, as by a reset of the sequence numbers; the venue still
            // acted. Only an amended fill, and the reports that follow it for its order, are sent
            // until they arrive: the shard does not query an order that has finished.
            let mut owed = BTreeSet::new();
            self.outgoing.retain(|command| {
                let CommandKind::Report { order, report } = command.body else { return false };
                if matches!(report, VenueReport::Amended { .. }) {
                    owed.insert(order);
                }
                owed.contains(&order)
            });
        }
        let body = CommandKind::Adapter { adapter: test_market::OUTSIDE_ADAPTER, connected };
        self.connection_change = Some(Broadcast::new(Command::new(source(), 0, body)));
    }

    fn handle_event(&mut self, event: &Event) {
        let EventKind::ToVenue(instruction) = event.body else { return };
        if !self.connected {
            // Sent into a dead connection; half of it arrives all the same, but no answer comes
            // back.
            if self.dice.percent(50) {
                self.handle_request(&instruction);
            }
            return;
        }
        self.handle_request(&instruction);
    }

    fn handle_request(&mut self, instruction: &Instruction) {
        let order = instruction.order;
        match instruction.request {
            VenueRequest::New if self.chaos && self.dice.percent(10) => {
                self.report(order, VenueReport::Rejected(Reason::VenueRejected));
            }
            VenueRequest::New => {
                let terms = &instruction.terms;
                let price = if terms.limit_given { terms.limit } else { test_market::price("100") };
                let held = VenueOrder {
                    qty: terms.qty.raw(),
                    filled: 0,
                    price: price.raw(),
                    value: 0,
                    live: true,
                    over: None,
                    fills: Vec::new(),
                };
                self.orders.insert(order, held);
                self.report(order, VenueReport::Accepted);
            }
            VenueRequest::Cancel => self.cancel(order),
            VenueRequest::Replace => self.replace(order, instruction.terms.qty.raw()),
            VenueRequest::Query | VenueRequest::Status => self.tell_standing(order),
        }
    }

    fn cancel(&mut self, order: OrderHandle) {
        match self.orders.get_mut(&order) {
            Some(held) if held.live => {
                (held.live, held.over) = (false, Some(VenueState::Canceled(Reason::Requested)));
                self.report(order, VenueReport::Canceled(Reason::Requested));
            }
            _ => self.report(order, VenueReport::CancelRefused(Reason::OrderFinished)),
        }
    }

    fn replace(&mut self, order: OrderHandle, qty: i64) {
        match self.orders.get_mut(&order) {
            Some(held) if held.live && qty > held.filled => {
                held.qty = qty;
                self.report(order, VenueReport::Replaced);
            }
            _ => self.report(order, VenueReport::ReplaceRefused(Reason::OrderFinished)),
        }
    }

    /// Reports the status of an order, after a reconnect or on request.
    fn tell_standing(&mut self, order: OrderHandle) {
        self.report(order, VenueReport::Unsure);
        let Some(held) = self.orders.get(&order) else {
            let state = VenueState::Rejected(Reason::UnknownOrder);
            return self.report(order, VenueReport::Standing { cum: Qty::ZERO, average: Price::ZERO, state });
        };
        let cum = Qty::from_raw(held.filled);
        let average = Notional::from_raw(held.value).average(cum);
        let state = held.over.unwrap_or(if held.live { VenueState::Open } else { VenueState::Filled });
        self.report(order, VenueReport::Standing { cum, average, state });
    }

    /// Something happens on the venue's market, whether we are informed or not.
    fn act(&mut self) {
        if self.orders.is_empty() || self.outgoing.len() >= MAIL_MAX {
            return;
        }
        let nth = self.dice.index(self.orders.len());
        let (&order, held) = self.orders.iter_mut().nth(nth).expect("there are so many");
        match self.dice.below(20) {
            0..=7 if held.live => self.fill(order),
            8 if !held.live && held.filled < held.qty => self.fill(order),
            9 | 10 => self.repeat(order),
            11 if held.live => {
                (held.live, held.over) = (false, Some(VenueState::Canceled(Reason::VenueCancelled)));
                self.report(order, VenueReport::Canceled(Reason::VenueCancelled));
            }
            12 if held.live => {
                (held.live, held.over) = (false, Some(VenueState::Expired(Reason::ExpiredDay)));
                self.report(order, VenueReport::Expired(Reason::ExpiredDay));
            }
            13 if self.connected => self.amend(order, 0),
            14 if self.connected => {
                let left = held.qty - held.filled;
                let more = self.dice.between(0, left.max(0));
                self.amend(order, more.max(1));
            }
            _ => {}
        }
    }

    fn fill(&mut self, order: OrderHandle) {
        self.execs += 1;
        let exec = ExecRef(self.execs);
        let held = self.orders.get_mut(&order).expect("it was just looked up");
        let unit = test_market::qty("1").raw();
        let left = (held.qty - held.filled) / unit;
        let qty = self.dice.between(1, left.max(1)) * unit;
        held.filled += qty;
        held.live &= held.filled < held.qty;
        let (price, cum) = (held.price, held.filled);
        held.value += price as i128 * qty as i128;
        held.fills.push(Fill { exec, qty, price, cum });
        self.say_fill(order, Fill { exec, qty, price, cum });
    }

    /// Repeats a fill, by mistake or because it was missed: one that is still valid, and that we
    /// can know of.
    fn repeat(&mut self, order: OrderHandle) {
        let held = &self.orders[&order];
        let known: Vec<Fill> =
            held.fills.iter().filter(|fill| fill.qty > 0 && fill.cum <= held.filled).copied().collect();
        if !known.is_empty() {
            let fill = self.dice.pick(&known);
            self.say_fill(order, fill);
        }
    }

    /// Busts a fill, or changes its quantity.
    fn amend(&mut self, order: OrderHandle, qty: i64) {
        let held = self.orders.get_mut(&order).expect("it was just looked up");
        let Some(fill) = held.fills.iter_mut().rev().find(|fill| fill.qty > 0) else { return };
        self.execs += 1;
        let exec = ExecRef(self.execs);
        let exec_ref = std::mem::replace(&mut fill.exec, exec);
        held.filled += qty - fill.qty;
        held.value += (qty - fill.qty) as i128 * fill.price as i128;
        // It cannot be repeated as the original fill.
        (fill.qty, fill.cum) = (qty, i64::MAX);
        held.live = held.over.is_none() && held.filled < held.qty;
        let (qty, price, is_open) = (Qty::from_raw(qty), Price::from_raw(fill.price), held.live);
        self.report(order, VenueReport::Amended { exec_ref, exec, qty, price, is_open });
    }

    fn say_fill(&mut self, order: OrderHandle, fill: Fill) {
        let (qty, price) = (Qty::from_raw(fill.qty), Price::from_raw(fill.price));
        let cum = Qty::from_raw(fill.cum);
        self.report(order, VenueReport::FilledTo { exec: fill.exec, qty, price, cum });
    }

    /// Returns whether an amended fill is still to be reported.
    fn is_owed(&self, order: OrderHandle) -> bool {
        self.outgoing.iter().any(|command| {
            matches!(
                command.body,
                CommandKind::Report { order: other, report: VenueReport::Amended { .. } } if other == order
            )
        })
    }

    fn report(&mut self, order: OrderHandle, report: VenueReport) {
        // Into a dead connection only those reports are sent that no later report replaces.
        if self.connected || matches!(report, VenueReport::Amended { .. }) || self.is_owed(order) {
            self.outgoing.push_back(Command::new(source(), 0, CommandKind::Report { order, report }));
        }
    }

    /// Returns the filled quantity of each order at the venue.
    pub fn filled(&self) -> impl Iterator<Item = (OrderHandle, Qty)> + '_ {
        self.orders.iter().map(|(order, held)| (*order, Qty::from_raw(held.filled)))
    }
}

fn source() -> Source {
    Source { port: PORT, ..Source::default() }
}

/// The adapter's port.
pub const PORT: PortId = PortId(1);
