//! A FIX client that trades, keeps its sequence numbers across connections and processes, and
//! checks that its reports agree.

use std::io;
use std::sync::mpsc::Sender;

use pitlane_engine::number::Qty;
use pitlane_engine::rng::Rng;
use pitlane_testkit::fix_client::{FixClient, now};
use pitlane_testkit::known_orders::{Contradiction, KnownOrders};

use crate::findings::{ChaosFindings, FindingKind};
use crate::received::ReceivedState;
use crate::traders::{ServiceAddresses, wire};

/// Requests before the next check of the responses.
const BURST_MAX: u64 = 8;
/// Orders that cancels and replacements refer to: the last of this number.
const AIMS: usize = 20;
/// Requests before a message counts as missing: each is a round trip.
const QUESTIONS_MAX: usize = 1_000;
const SYMBOLS: [(&str, &str); 4] = [("AAPL", "200"), ("MSFT", "400"), ("NVDA", "120"), ("AMZN", "190")];

pub(crate) struct FixTrader {
    client: FixClient,
    dice: Rng,
    orders: Vec<String>,
    /// Number of received messages that are processed.
    taken: usize,
    known: KnownOrders,
    pub received: ReceivedState,
    /// After a loss of power, reports and responses may arrive again under new numbers (see
    /// `protocols/README.md`).
    pub forgives_repeats: bool,
}

impl FixTrader {
    pub(crate) fn new(seed: u64) -> FixTrader {
        FixTrader {
            client: FixClient::new("KEEP1"),
            dice: Rng::named(seed, 1),
            orders: Vec::new(),
            taken: 0,
            known: KnownOrders::default(),
            received: ReceivedState::default(),
            forgives_repeats: false,
        }
    }

    /// Trades until the connection ends.
    pub(crate) fn session(
        &mut self,
        addresses: &ServiceAddresses,
        stop_wakeup: &Sender<()>,
    ) -> io::Result<()> {
        self.log_on(addresses)?;
        loop {
            for _ in 0..1 + self.dice.below(BURST_MAX) {
                self.act();
                // The counting thread may have ended.
                let _ = stop_wakeup.send(());
            }
            self.client.try_settle()?;
        }
    }

    /// Logs on, receives all missed messages, and disconnects. Resent requests are answered later
    /// than the session's own messages, so it sends requests until nothing is missing, a bounded
    /// number of times.
    pub(crate) fn catch_up(
        &mut self,
        addresses: &ServiceAddresses,
        findings: &mut ChaosFindings,
    ) -> io::Result<()> {
        self.log_on(addresses)?;
        for _ in 0..QUESTIONS_MAX {
            self.client.try_settle()?;
            self.account(findings);
            if self.unanswered().is_empty() {
                break;
            }
        }
        self.client.disconnect();
        Ok(())
    }

    fn log_on(&mut self, addresses: &ServiceAddresses) -> io::Result<()> {
        self.client.take(Box::new(wire(addresses.fix)?));
        let answer = self.client.try_log_on(false)?;
        match answer.get(35) {
            "A" => Ok(()),
            // The last connection may still be open.
            _ => Err(io::Error::other(answer.text())),
        }
    }

    /// Sends a new order of some kind, a cancel, or a replacement.
    fn act(&mut self) {
        let id = format!("f{}", self.client.next_out);
        let (symbol, price) = SYMBOLS[self.dice.index(SYMBOLS.len())];
        let aim = |dice: &mut Rng, orders: &[String]| {
            let back = dice.index(orders.len().min(AIMS));
            orders[orders.len() - 1 - back].clone()
        };
        match self.dice.below(10) {
            0..=3 => _ = self.client.order(&id, symbol, 1, 10, price),
            4..=6 => {
                let side = 1 + self.dice.below(2);
                self.client
                    .send("D", &format!("11={id}|55={symbol}|54={side}|38=10|40=1|59=0|60={}|", now()));
            }
            7 | 8 if !self.orders.is_empty() => {
                let orig = aim(&mut self.dice, &self.orders);
                self.client.send("F", &format!("11={id}|41={orig}|55={symbol}|54=1|60={}|", now()));
                return;
            }
            _ if !self.orders.is_empty() => {
                let orig = aim(&mut self.dice, &self.orders);
                let terms = format!("55={symbol}|54=1|38=20|40=2|44={price}|59=1|60={}|", now());
                self.client.send("G", &format!("11={id}|41={orig}|{terms}"));
                return;
            }
            _ => _ = self.client.order(&id, symbol, 1, 10, price),
        }
        self.orders.push(id);
    }

    /// Checks the messages since the last call against its state.
    pub(crate) fn account(&mut self, findings: &mut ChaosFindings) {
        for message in &self.client.received[self.taken..] {
            match self.known.take(message) {
                Ok(()) => {}
                Err(Contradiction::Repeated(_)) if self.forgives_repeats => {}
                Err(Contradiction::Repeated(received)) => {
                    findings.add(FindingKind::Doubled, format!("FIX repeats {received}"))
                }
                Err(Contradiction::Missing(received)) => {
                    findings.add(FindingKind::Lost, format!("FIX skips a report before {received}"));
                }
            }
            let id = message.get(37);
            self.received.alias(id, message.get(11));
            let Some(last) = self.known.last.get(id) else { continue };
            let status = match last.get(39) {
                "2" => "FILLED",
                "4" => "CANCELED",
                "8" => "REJECTED",
                "C" => "EXPIRED",
                _ => "",
            };
            self.received.order(id, status, Qty::parse(last.get(14).as_bytes()).unwrap_or_default());
        }
        self.taken = self.client.received.len();
    }

    /// Returns every request that was sent and never answered, when nothing is missing any more.
    pub(crate) fn unanswered(&self) -> Vec<&String> {
        let is_answered = |id: &String| self.known.last.contains_key(id) || self.known.refused.contains(id);
        self.orders.iter().filter(|id| !is_answered(id)).collect()
    }
}
