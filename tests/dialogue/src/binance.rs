//! A stand-in for Binance Spot, written from its documentation (`web-socket-api.md`,
//! `user-data-stream.md`, `errors.md`): the account, its orders and trades, and the answers to
//! requests. It has no socket and no clock, so that a test decides what arrives, and when.

mod fees;
mod limits;

use std::collections::BTreeMap;

use pitlane_engine::number::{Money, Notional, Price, Qty};
use pitlane_engine::text::SCALE;
use serde_json::{Value, json};

pub use self::fees::FeeRule;
use crate::binance_book::BinanceBook;

/// An order as the venue has it.
#[derive(Clone, Debug)]
pub struct ExchangeOrder {
    pub id: u64,
    pub client_id: String,
    /// Client order id under which it was placed.
    pub placed_as: String,
    pub symbol: String,
    pub side: String,
    pub kind: String,
    pub time_in_force: String,
    pub qty: Qty,
    /// The quantity that is shown; zero: all of it.
    pub iceberg_qty: Qty,
    pub price: Price,
    pub executed: Qty,
    quote: i128,
    pub status: &'static str,
    placed_ms: u64,
}

/// One trade of the account.
#[derive(Clone, Debug)]
pub struct ExchangeTrade {
    pub id: u64,
    pub order: u64,
    pub symbol: String,
    pub qty: Qty,
    pub price: Price,
    /// What the account has paid for it, and in which asset.
    pub commission: Money,
    pub commission_asset: String,
}

/// What the venue knows of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExchangeConnection {
    pub is_logged_on: bool,
    pub is_subscribed: bool,
}

/// What the venue does with the next order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NextOrder {
    #[default]
    Take,
    /// Takes it, and sends neither answer nor event: the test does that.
    TakeSilently,
    Reject,
    /// Takes it, and answers that it does not know whether it did.
    Timeout,
}

#[derive(Debug, Default)]
pub struct BinanceExchange {
    /// Time of the venue, in milliseconds.
    pub now_ms: u64,
    pub orders: BTreeMap<u64, ExchangeOrder>,
    pub trades: Vec<ExchangeTrade>,
    /// Events that subscribed connections receive, oldest first.
    pub events: Vec<String>,
    pub next_order: NextOrder,
    /// Price at which orders trade at once; `None`: only on demand of the test.
    pub mark: Option<Price>,
    /// Whether the next cancel or replacement is refused.
    pub refuses_change: bool,
    /// Time in milliseconds until which every request is refused.
    pub banned_until_ms: u64,
    /// Orders that may be placed in ten seconds, and how many were in this interval.
    pub orders_per_10_s: Option<u64>,
    placed: (u64, u64),
    weight: (u64, u64),
    last_id: u64,
    /// Requests received, by method; snapshots also by method and symbol.
    pub received: BTreeMap<String, u64>,
    /// Books by symbol.
    pub books: BTreeMap<String, BinanceBook>,
    /// Whether the account must prove itself by a signature in each request.
    pub wants_signatures: bool,
    pub fees: FeeRule,
}

impl BinanceExchange {
    /// Creates a venue. `wants_signatures`: the account has an HMAC key.
    pub fn new(wants_signatures: bool, mark: Option<Price>) -> BinanceExchange {
        BinanceExchange { wants_signatures, mark, ..BinanceExchange::default() }
    }

    /// Returns the answer to a request; `None` if it stays without one.
    pub fn handle(&mut self, connection: &mut ExchangeConnection, request: &str) -> Option<String> {
        let request: Value = serde_json::from_str(request).expect("a request is JSON");
        let (id, params) = (&request["id"], &request["params"]);
        let method = request["method"].as_str().expect("a method").to_string();
        *self.received.entry(method.clone()).or_default() += 1;
        let outcome = self.perform(connection, &method, params);
        let body = match outcome {
            Ok(Value::Null) => return None,
            Ok(result) => {
                json!({"id": id, "status": 200, "result": result, "rateLimits": self.rate_limits(&method)})
            }
            Err((status, code, msg, data)) => {
                let mut error = json!({"code": code, "msg": msg});
                if !data.is_null() {
                    error["data"] = data;
                }
                json!({"id": id, "status": status, "error": error, "rateLimits": self.rate_limits(&method)})
            }
        };
        Some(body.to_string())
    }

    fn perform(&mut self, connection: &mut ExchangeConnection, method: &str, params: &Value) -> Outcome {
        if self.now_ms < self.banned_until_ms {
            let data = json!({"serverTime": self.now_ms, "retryAfter": self.banned_until_ms});
            let text = format!("Way too much request weight used; IP banned until {}.", self.banned_until_ms);
            return Err((418, -1003, text, data));
        }
        self.charge(method)?;
        if method == "time" {
            return Ok(json!({"serverTime": self.now_ms}));
        }
        if method == "depth" {
            let symbol = text(params, "symbol");
            *self.received.entry(format!("depth {symbol}")).or_default() += 1;
            let book = self.books.get(&symbol);
            let limit = params["limit"].as_u64().and_then(|limit| usize::try_from(limit).ok());
            return match book.zip(limit) {
                Some((book, limit)) => Ok(book.snapshot(limit)),
                None => refused(-1121, "Invalid symbol."),
            };
        }
        if method != "userDataStream.subscribe" {
            self.authorize(connection, method, params)?;
        }
        match method {
            "session.logon" => {
                connection.is_logged_on = true;
                Ok(
                    json!({"apiKey": params["apiKey"], "authorizedSince": self.now_ms, "serverTime": self.now_ms}),
                )
            }
            "userDataStream.subscribe" if !connection.is_logged_on => refused(-2015, "Invalid API-key."),
            "userDataStream.subscribe" | "userDataStream.subscribe.signature" => {
                connection.is_subscribed = true;
                Ok(json!({"subscriptionId": 0}))
            }
            "account.rateLimits.orders" => Ok(self.order_limits()),
            "order.place" => self.place(params),
            "order.cancel" => self.cancel(params),
            "order.amend.keepPriority" => self.amend(params),
            "order.cancelReplace" => self.cancel_replace(params),
            "order.status" => {
                let order = self.find(params["origClientOrderId"].as_str().unwrap_or_default());
                order.map_or_else(|| refused(-2013, "Order does not exist."), |order| Ok(order.body()))
            }
            "myTrades" => Ok(self.my_trades(params)),
            _ => refused(-1020, "This operation is not supported."),
        }
    }

    /// Checks who sent the request, and that it is not too old.
    fn authorize(
        &self,
        connection: &ExchangeConnection,
        method: &str,
        params: &Value,
    ) -> Result<(), Refusal> {
        let has_signature = params["signature"].is_string() && params["apiKey"].is_string();
        let needs_signature = self.wants_signatures || method == "session.logon" || !connection.is_logged_on;
        if needs_signature && !has_signature {
            return Err((
                400,
                -1102,
                "Mandatory parameter 'signature' was not sent.".to_string(),
                Value::Null,
            ));
        }
        let (at, window) = (params["timestamp"].as_u64(), params["recvWindow"].as_u64().unwrap_or(5_000));
        let is_valid =
            at.is_some_and(|at| at < self.now_ms + 1_000 && self.now_ms.saturating_sub(at) <= window);
        if is_valid {
            return Ok(());
        }
        let text = "Timestamp for this request is outside of the recvWindow.".to_string();
        Err((400, -1021, text, Value::Null))
    }

    fn place(&mut self, params: &Value) -> Outcome {
        let interval = self.now_ms / 10_000;
        let placed = if self.placed.0 == interval { self.placed.1 } else { 0 };
        if self.orders_per_10_s.is_some_and(|most| placed >= most) {
            let data = json!({"serverTime": self.now_ms, "retryAfter": (interval + 1) * 10_000});
            return Err((429, -1015, "Too many new orders.".to_string(), data));
        }
        let client_id = text(params, "newClientOrderId");
        if self.find(&client_id).is_some_and(|order| order.is_open()) {
            return refused(-2010, "Duplicate order sent.");
        }
        let next = std::mem::take(&mut self.next_order);
        if next == NextOrder::Reject {
            return refused(-2010, "Account has insufficient balance for requested action.");
        }
        self.placed = (interval, placed + 1);
        self.last_id += 1;
        let order = ExchangeOrder {
            id: self.last_id,
            placed_as: client_id.clone(),
            client_id,
            symbol: text(params, "symbol"),
            side: text(params, "side"),
            kind: text(params, "type"),
            time_in_force: params["timeInForce"].as_str().unwrap_or("GTC").to_string(),
            qty: qty(&params["quantity"]),
            iceberg_qty: if params["icebergQty"].is_null() { Qty::ZERO } else { qty(&params["icebergQty"]) },
            price: params["price"].as_str().map_or(Price::ZERO, |price| {
                Price::parse(price.as_bytes()).expect("a price of ours is a number")
            }),
            executed: Qty::ZERO,
            quote: 0,
            status: "NEW",
            placed_ms: self.now_ms,
        };
        let id = order.id;
        let answer = json!({
            "symbol": order.symbol, "orderId": id, "orderListId": -1,
            "clientOrderId": order.client_id, "transactTime": self.now_ms,
        });
        self.orders.insert(id, order);
        if next == NextOrder::TakeSilently {
            return Ok(Value::Null);
        }
        self.emit(id, "NEW", "", None);
        self.match_at_mark(id);
        if next == NextOrder::Timeout {
            let text = "Timeout waiting for response from backend server.".to_string();
            return Err((504, -1007, text, Value::Null));
        }
        Ok(answer)
    }

    /// Trades an order that the market reaches, in two parts. What cannot rest expires.
    fn match_at_mark(&mut self, id: u64) {
        let Some(mark) = self.mark else { return };
        let order = &self.orders[&id];
        let is_reached = match (order.kind.as_str(), order.side.as_str()) {
            ("MARKET", _) => true,
            (_, "BUY") => order.price >= mark,
            _ => order.price <= mark,
        };
        if !is_reached {
            if matches!(order.time_in_force.as_str(), "IOC" | "FOK") {
                self.end(id, "EXPIRED", None);
            }
            return;
        }
        let one = Qty::from_raw(SCALE);
        let first = if order.qty > one { one } else { order.qty };
        self.fill(id, first, mark);
        let rest = self.orders[&id].leaves();
        if rest.is_positive() {
            self.fill(id, rest, mark);
        }
    }

    /// Announces an order that was taken silently.
    pub fn accept(&mut self, id: u64) {
        self.emit(id, "NEW", "", None);
    }

    /// Rejects an order that was taken silently.
    pub fn reject(&mut self, id: u64) {
        self.orders.get_mut(&id).expect("a known order").status = "REJECTED";
        self.emit(id, "REJECTED", "", None);
    }

    /// Trades a part of an order.
    pub fn fill(&mut self, id: u64, qty: Qty, price: Price) {
        let trade = self.trades.last().map_or(100, |trade| trade.id) + 7;
        let order = self.orders.get_mut(&id).expect("a known order");
        order.executed = order.executed.checked_add(qty).expect("a quantity of a test is small");
        order.quote += i128::from(qty.raw()) * i128::from(price.raw()) / i128::from(SCALE);
        if order.is_open() {
            order.status = if order.leaves().is_positive() { "PARTIALLY_FILLED" } else { "FILLED" };
        }
        let (symbol, is_buy) = (order.symbol.clone(), order.side == "BUY");
        let (commission, commission_asset) = self.fees.fee(is_buy, qty, price);
        self.trades.push(ExchangeTrade {
            id: trade,
            order: id,
            symbol,
            qty,
            price,
            commission,
            commission_asset,
        });
        self.emit(id, "TRADE", "", Some((trade, qty, price)));
    }

    fn cancel(&mut self, params: &Value) -> Outcome {
        let client_id = text(params, "origClientOrderId");
        let is_refused = std::mem::take(&mut self.refuses_change);
        let Some(id) = self.find(&client_id).filter(|order| order.is_open()).map(|order| order.id) else {
            return refused(-2011, "Unknown order sent.");
        };
        if is_refused {
            return refused(-2011, "This account may not place or cancel orders.");
        }
        self.end(id, "CANCELED", Some(&text(params, "newClientOrderId")));
        let mut body = self.orders[&id].body();
        body["origClientOrderId"] = client_id.into();
        Ok(body)
    }

    /// Ends an order, which may get another client order id by that.
    pub fn end(&mut self, id: u64, status: &'static str, renamed: Option<&str>) {
        let order = self.orders.get_mut(&id).expect("a known order");
        order.status = status;
        let old = order.client_id.clone();
        if let Some(renamed) = renamed {
            order.client_id = renamed.to_string();
        }
        self.emit(id, status, &old, None);
    }

    fn amend(&mut self, params: &Value) -> Outcome {
        let (client_id, wanted) = (text(params, "origClientOrderId"), qty(&params["newQty"]));
        let is_refused = std::mem::take(&mut self.refuses_change);
        let Some(order) = self.find(&client_id).filter(|order| order.is_open()).map(|order| order.id) else {
            return refused(-2038, "Unknown order sent.");
        };
        let order = self.orders.get_mut(&order).expect("it was just found");
        if is_refused || wanted >= order.qty || wanted <= order.executed {
            return refused(-2038, "Order amend (quantity increase) is not supported.");
        }
        order.qty = wanted;
        let (id, renamed) = (order.id, text(params, "newClientOrderId"));
        order.client_id = renamed;
        self.emit(id, "REPLACED", &client_id, None);
        Ok(json!({"transactTime": self.now_ms, "amendedOrder": self.orders[&id].body()}))
    }

    fn cancel_replace(&mut self, params: &Value) -> Outcome {
        let client_id = text(params, "cancelOrigClientOrderId");
        let is_refused = std::mem::take(&mut self.refuses_change);
        let open = self.find(&client_id).filter(|order| order.status == "NEW").map(|order| order.id);
        let Some(id) = open.filter(|_| !is_refused) else {
            let data = json!({
                "cancelResult": "FAILURE", "newOrderResult": "NOT_ATTEMPTED",
                "cancelResponse": {"code": -2011, "msg": "Unknown order sent."}, "newOrderResponse": null,
            });
            return Err((400, -2022, "Order cancel-replace failed.".to_string(), data));
        };
        self.end(id, "CANCELED", Some(&text(params, "cancelNewClientOrderId")));
        match self.place(params) {
            Ok(placed) => Ok(json!({
                "cancelResult": "SUCCESS", "newOrderResult": "SUCCESS",
                "cancelResponse": self.orders[&id].body(), "newOrderResponse": placed,
            })),
            Err((_, code, msg, _)) => {
                let data = json!({
                    "cancelResult": "SUCCESS", "newOrderResult": "FAILURE",
                    "cancelResponse": self.orders[&id].body(), "newOrderResponse": {"code": code, "msg": msg},
                });
                Err((409, -2021, "Order cancel-replace partially failed.".to_string(), data))
            }
        }
    }

    fn my_trades(&self, params: &Value) -> Value {
        let (order, from) = (params["orderId"].as_u64(), params["fromId"].as_u64().unwrap_or(0));
        let limit = params["limit"].as_u64().unwrap_or(500);
        let ours = self.trades.iter().filter(|trade| {
            trade.symbol == text(params, "symbol")
                && trade.id >= from
                && order.is_none_or(|order| order == trade.order)
        });
        let row = |trade: &ExchangeTrade| {
            json!({
                "symbol": trade.symbol, "id": trade.id, "orderId": trade.order, "orderListId": -1,
                "price": trade.price.to_string(), "qty": trade.qty.to_string(),
                "commission": trade.commission.to_string(), "commissionAsset": trade.commission_asset,
                "time": self.now_ms,
            })
        };
        ours.take(usize::try_from(limit).expect("a limit is small")).map(row).collect()
    }

    /// Emits the event `executionReport`.
    fn emit(&mut self, id: u64, execution: &str, orig: &str, trade: Option<(u64, Qty, Price)>) {
        let order = &self.orders[&id];
        let (trade_id, last_qty, last_price) = match trade {
            Some((id, qty, price)) => (json!(id), qty, price),
            None => (json!(-1), Qty::ZERO, Price::ZERO),
        };
        let traded = trade.and_then(|_| self.trades.last());
        let commission = traded.map_or(Money::ZERO, |trade| trade.commission).to_string();
        let asset = traded.map(|trade| trade.commission_asset.as_str()).filter(|asset| !asset.is_empty());
        let event = json!({
            "e": "executionReport", "E": self.now_ms, "s": order.symbol, "c": order.client_id, "S": order.side,
            "o": order.kind, "f": order.time_in_force, "q": order.qty.to_string(), "p": order.price.to_string(),
            "P": "0.00000000", "F": "0.00000000", "g": -1, "C": orig, "x": execution, "X": order.status,
            "r": "NONE", "i": order.id, "l": last_qty.to_string(), "z": order.executed.to_string(),
            "L": last_price.to_string(), "n": commission, "N": asset, "T": self.now_ms, "t": trade_id, "I": 8_641_984,
            "w": order.is_open(), "m": false, "M": false, "O": self.now_ms, "Z": order.quote().to_string(),
            "Y": "0.00000000", "Q": "0.00000000", "V": "NONE",
        });
        self.events.push(json!({"subscriptionId": 0, "event": event}).to_string());
    }

    /// Returns the newest order with this client order id.
    pub fn find(&self, client_id: &str) -> Option<&ExchangeOrder> {
        self.orders.values().rev().find(|order| order.client_id == client_id)
    }
}

impl ExchangeOrder {
    pub fn is_open(&self) -> bool {
        matches!(self.status, "NEW" | "PARTIALLY_FILLED")
    }

    pub fn leaves(&self) -> Qty {
        self.qty.checked_sub(self.executed).unwrap_or_default()
    }

    fn quote(&self) -> Qty {
        Qty::from_raw(i64::try_from(self.quote).expect("a value of a test is small"))
    }

    /// Returns the average price of its trades.
    pub fn average(&self) -> Price {
        Notional::from_raw(self.quote * i128::from(SCALE)).average(self.executed)
    }

    /// Returns the quantity that is shown, as the venue writes it.
    fn iceberg_text(&self) -> String {
        if self.iceberg_qty.is_zero() { "0.00000000".to_string() } else { self.iceberg_qty.to_string() }
    }

    fn body(&self) -> Value {
        json!({
            "symbol": self.symbol, "orderId": self.id, "orderListId": -1, "clientOrderId": self.client_id,
            "price": self.price.to_string(), "origQty": self.qty.to_string(),
            "executedQty": self.executed.to_string(), "cummulativeQuoteQty": self.quote().to_string(),
            "status": self.status, "timeInForce": self.time_in_force, "type": self.kind, "side": self.side,
            "stopPrice": "0.00000000", "icebergQty": self.iceberg_text(), "isWorking": self.is_open(),
            "time": self.placed_ms,
        })
    }
}

type Refusal = (u64, i64, String, Value);
type Outcome = Result<Value, Refusal>;

fn refused(code: i64, text: &str) -> Outcome {
    Err((400, code, text.to_string(), Value::Null))
}

fn text(params: &Value, name: &str) -> String {
    params[name].as_str().unwrap_or_default().to_string()
}

fn qty(value: &Value) -> Qty {
    Qty::parse(value.as_str().unwrap_or_default().as_bytes()).expect("a quantity of ours is a number")
}
