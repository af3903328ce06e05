//! The stand-in of Binance Spot behind a socket. Its books outlive its connections; it may lose
//! requests and answers, repeat events, and end a connection in the middle of a message.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{SystemTime, UNIX_EPOCH};

use pitlane_engine::number::Price;
use pitlane_engine::rng::Rng;
use pitlane_net::websocket_key::accept_of;
use pitlane_protocols::websocket::{MessageKind, MessagePart, Receiver, WebSocketState, message_head};
use pitlane_testkit::binance::{BinanceExchange, ExchangeConnection};
use serde_json::Value;

use crate::kills::{VenueOrder, whole};

/// A running stand-in. Its threads end with the process.
pub(crate) struct BinanceStandIn {
    pub port: u16,
    shared: Arc<SharedState>,
}

struct SharedState {
    exchange: Mutex<BinanceExchange>,
    /// Connections for market data with the streams that they have requested.
    subscribers: Mutex<Vec<(TcpStream, Vec<String>)>>,
    streams: Mutex<Vec<TcpStream>>,
    /// One in so many requests goes wrong; zero: none.
    misbehaves: AtomicU64,
}

impl BinanceStandIn {
    /// Starts a venue that trades at 200. One in so many requests goes wrong; zero: none.
    pub(crate) fn start(misbehaves: u64) -> BinanceStandIn {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let port = listener.local_addr().expect("it has an address").port();
        let exchange = BinanceExchange::new(true, Some(Price::parse(b"200").expect("a price")));
        let (exchange, streams) = (Mutex::new(exchange), Mutex::new(Vec::new()));
        let subscribers = Mutex::new(Vec::new());
        let shared = Arc::new(SharedState { exchange, subscribers, streams, misbehaves: misbehaves.into() });
        let accepting = shared.clone();
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().flatten().enumerate() {
                let shared = accepting.clone();
                shared.streams.lock().expect("no thread fails").push(stream.try_clone().expect("a socket"));
                std::thread::spawn(move || _ = serve(stream, &shared, number as u64));
            }
        });
        BinanceStandIn { port, shared }
    }

    /// Returns the table of the adapter. A request is valid for so many milliseconds: the time
    /// after which a lost order is given up, and within which a busy machine must handle one.
    pub(crate) fn table(&self, receive_window_ms: u32) -> String {
        format!(
            "type = \"BINANCE-SPOT\"\nurl = \"ws://127.0.0.1:{}/ws-api/v3\"\napi_key = \"key\"\n\
             secret = \"secret\"\nreceive_window_ms = {receive_window_ms}",
            self.port
        )
    }

    /// Returns the keys of the adapter that turn its market data on.
    pub(crate) fn market_data(&self) -> String {
        format!("\nmarket_data = true\nstream_url = \"ws://127.0.0.1:{}/stream\"", self.port)
    }

    /// Sends data of a stream, as soon as a connection has requested it. Only a failing test waits
    /// for long.
    pub(crate) fn publish(&self, name: &str, data: &str) {
        let message = format!(r#"{{"stream":"{name}","data":{data}}}"#);
        loop {
            let mut subscribers = self.shared.subscribers.lock().expect("no thread fails");
            let found = subscribers.iter_mut().find(|(_, names)| names.iter().any(|known| known == name));
            if let Some((stream, _)) = found {
                return stream.write_all(&frame(&message)).expect("the adapter reads");
            }
            drop(subscribers);
            std::thread::yield_now();
        }
    }

    pub(crate) fn exchange(&self) -> MutexGuard<'_, BinanceExchange> {
        let mut exchange = self.shared.exchange.lock().expect("no thread fails");
        exchange.now_ms = now_ms();
        exchange
    }

    /// Stops to misbehave.
    pub(crate) fn behave(&self) {
        self.shared.misbehaves.store(0, Ordering::Relaxed);
    }

    /// Ends all connections.
    pub(crate) fn disconnect(&self) {
        self.shared.subscribers.lock().expect("no thread fails").clear();
        for stream in self.shared.streams.lock().expect("no thread fails").drain(..) {
            // It may have ended already.
            _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Returns the orders that reached the venue, by quantity.
    pub(crate) fn orders(&self) -> BTreeMap<u64, VenueOrder> {
        let exchange = self.exchange();
        let mut orders: BTreeMap<u64, VenueOrder> = BTreeMap::new();
        for order in exchange.orders.values() {
            let found = orders.entry(whole(&order.qty.to_string())).or_default();
            found.requests.insert(order.id.to_string());
            for trade in exchange.trades.iter().filter(|trade| trade.order == order.id) {
                found.fills.insert(trade.id.to_string(), whole(&trade.qty.to_string()));
            }
        }
        orders
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970");
    u64::try_from(since.as_millis()).expect("a time of this age")
}

/// Serves one connection until it ends.
fn serve(mut stream: TcpStream, shared: &SharedState, number: u64) -> std::io::Result<()> {
    let mut dice = Rng::new(number + 1);
    let mut buffer = [0; 4_096];
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        head.extend_from_slice(&buffer[..count]);
    }
    let head = String::from_utf8(head).expect("a head is text");
    let key = head.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).expect("a key");
    let accept = accept_of(key.as_bytes());
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accept}\r\n\r\n"
    );
    stream.write_all(answer.as_bytes())?;
    let is_market_data = head.starts_with("GET /stream ");
    let (mut receiver, mut account) = (Receiver::default(), ExchangeConnection::default());
    let mut request = Vec::new();
    loop {
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        let mut requests = Vec::new();
        let state = receiver.handle_parts(&mut buffer[..count], |part| match part {
            MessagePart::Payload(payload) => request.extend_from_slice(payload),
            MessagePart::End => requests.push(std::mem::take(&mut request)),
        });
        for request in requests {
            let text = String::from_utf8(request).expect("a request is text");
            if is_market_data {
                subscribe(&mut stream, shared, &text)?;
            } else if !answer_request(&mut stream, shared, &mut account, &mut dice, &text)? {
                return stream.shutdown(Shutdown::Both);
            }
        }
        if state != WebSocketState::Open {
            return stream.shutdown(Shutdown::Both);
        }
    }
}

/// Returns a message as a frame.
fn frame(message: &str) -> Vec<u8> {
    let mut frame = Vec::new();
    message_head(&mut frame, MessageKind::Text, message.len());
    frame.extend_from_slice(message.as_bytes());
    frame
}

/// Answers a request for market data, which is sent from then on.
fn subscribe(stream: &mut TcpStream, shared: &SharedState, request: &str) -> std::io::Result<()> {
    let request: Value = serde_json::from_str(request).expect("a request is JSON");
    assert_eq!(request["method"], "SUBSCRIBE", "{request}");
    let names = request["params"].as_array().expect("a list").iter();
    let names = names.map(|name| name.as_str().expect("a name").to_string()).collect();
    stream.write_all(&frame(&format!(r#"{{"result":null,"id":{}}}"#, request["id"])))?;
    let mut subscribers = shared.subscribers.lock().expect("no thread fails");
    subscribers.push((stream.try_clone()?, names));
    Ok(())
}

/// Answers a request. Returns false if the connection must end.
fn answer_request(
    stream: &mut TcpStream,
    shared: &SharedState,
    account: &mut ExchangeConnection,
    dice: &mut Rng,
    request: &str,
) -> std::io::Result<bool> {
    let fault = match shared.misbehaves.load(Ordering::Relaxed) {
        0 => 0,
        part if dice.below(part) == 0 => 1 + dice.below(4),
        _ => 0,
    };
    if fault == 1 {
        // The request is lost.
        return Ok(false);
    }
    let was_subscribed = account.is_subscribed;
    let mut exchange = shared.exchange.lock().expect("no thread fails");
    exchange.now_ms = now_ms();
    let answer = exchange.handle(account, request);
    let mut events = std::mem::take(&mut exchange.events);
    drop(exchange);
    // What happened before the subscription is not reported.
    events.retain(|_| was_subscribed);
    if fault == 2 {
        // The answer and its events are lost.
        return Ok(false);
    }
    let mut messages: Vec<String> = answer.into_iter().collect();
    let at = if dice.below(2) == 0 { 0 } else { messages.len() };
    if fault == 3 {
        events.extend(events.clone());
    }
    messages.splice(at..at, events);
    let mut wire: Vec<u8> = messages.iter().flat_map(|message| frame(message)).collect();
    if fault == 4 {
        wire.truncate(dice.index(wire.len() + 1));
        stream.write_all(&wire)?;
        return Ok(false);
    }
    stream.write_all(&wire)?;
    Ok(true)
}
