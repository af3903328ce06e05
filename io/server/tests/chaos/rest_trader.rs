//! A REST client that trades. It repeats an unanswered request, in this process or the next, under
//! the same id.

use std::io;
use std::sync::mpsc::Sender;

use pitlane_engine::rng::Rng;
use pitlane_testkit::http_client::{HttpClient, Response};

use crate::received::ReceivedState;
use crate::traders::{ServiceAddresses, wire};

/// Orders that cancels refer to: the last of this number.
const AIMS: usize = 20;
const LATER: u16 = 503;
/// First letter of its ids; none of its orders is ever modified.
pub(crate) const PREFIX: char = 'r';

#[derive(Clone, Debug)]
struct TraderRequest {
    method: &'static str,
    path: String,
    body: String,
    what: TraderRequestKind,
}

#[derive(Clone, Debug)]
enum TraderRequestKind {
    Order {
        id: String,
    },
    Cancel {
        id: String,
    },
    /// A cash deposit, under a UUID.
    Credit {
        uuid: String,
        amount: u64,
    },
}

pub(crate) struct RestTrader {
    dice: Rng,
    sent: u64,
    orders: Vec<String>,
    /// Request without a response.
    waits: Option<TraderRequest>,
    pub received: ReceivedState,
    /// Requests that were refused.
    pub refused: u64,
}

impl RestTrader {
    pub(crate) fn new(seed: u64) -> RestTrader {
        RestTrader {
            dice: Rng::named(seed, 2),
            sent: 0,
            orders: Vec::new(),
            waits: None,
            received: ReceivedState::default(),
            refused: 0,
        }
    }

    /// Trades until the connection ends.
    pub(crate) fn session(
        &mut self,
        addresses: &ServiceAddresses,
        stop_wakeup: &Sender<()>,
    ) -> io::Result<()> {
        let mut client = HttpClient::new(wire(addresses.http)?);
        loop {
            self.ask(&mut client)?;
            let _ = stop_wakeup.send(());
        }
    }

    /// Repeats the unanswered request.
    pub(crate) fn catch_up(&mut self, addresses: &ServiceAddresses) -> io::Result<()> {
        let mut client = HttpClient::new(wire(addresses.http)?);
        while self.waits.is_some() {
            self.ask(&mut client)?;
        }
        Ok(())
    }

    fn ask(&mut self, client: &mut HttpClient) -> io::Result<()> {
        let request = self.waits.take().unwrap_or_else(|| self.next());
        self.waits = Some(request.clone());
        let TraderRequest { method, path, body, what } = request;
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        client.send_bytes(format!("{head}{body}").as_bytes())?;
        let answer = client.try_receive(false)?;
        // The service is busy, or the outcome is unknown: the request is repeated.
        if answer.status == LATER {
            return Ok(());
        }
        self.waits = None;
        self.receive(&what, &answer);
        Ok(())
    }

    fn receive(&mut self, what: &TraderRequestKind, answer: &Response) {
        if answer.status != 200 {
            self.refused += 1;
            return;
        }
        match what {
            TraderRequestKind::Order { id } => {
                self.received.is_there(id);
                self.orders.push(id.clone());
            }
            TraderRequestKind::Cancel { id } => self.received.cancelled.push(id.clone()),
            TraderRequestKind::Credit { uuid, amount } => {
                self.received.transaction(&serde_json::json!({ "uuid": uuid, "price": amount }));
            }
        }
    }

    fn next(&mut self) -> TraderRequest {
        self.sent += 1;
        let id = format!("{PREFIX}{}", self.sent);
        let security = 1 + self.dice.below(4);
        let side = ["BUY", "SELL"][self.dice.index(2)];
        let quantity = 1 + self.dice.below(20);
        let order = |path: &str, terms: &str| TraderRequest {
            method: "POST",
            path: format!("/rest/execution/order/{path}"),
            body: format!(
                r#"{{"intId":"{id}","securityId":{security},"side":"{side}","quantity":{quantity}{terms}}}"#
            ),
            what: TraderRequestKind::Order { id: id.clone() },
        };
        match self.dice.below(10) {
            0..=3 => order("market", ""),
            4 | 5 => order("limit", r#","limit":150,"tif":"GTC","strategyName":"PAIRS""#),
            6 => order("limit", r#","limit":150,"tif":"DAY","strategyName":"PAIRS""#),
            7 | 8 if !self.orders.is_empty() => {
                let back = self.dice.index(self.orders.len().min(AIMS));
                let id = self.orders[self.orders.len() - 1 - back].clone();
                TraderRequest {
                    method: "DELETE",
                    path: format!("/rest/execution/order/{id}"),
                    body: String::new(),
                    what: TraderRequestKind::Cancel { id },
                }
            }
            _ => {
                let uuid = format!("00000000-0000-4000-8000-{:012x}", self.sent);
                let body =
                    format!(r#"{{"type":"CREDIT","price":{quantity},"currency":"USD","uuid":"{uuid}"}}"#);
                TraderRequest {
                    method: "POST",
                    path: "/rest/transaction".to_string(),
                    body,
                    what: TraderRequestKind::Credit { uuid, amount: quantity },
                }
            }
        }
    }
}
