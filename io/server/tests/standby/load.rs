//! REST orders, one after the other, until there is no response.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use pitlane_testkit::patience::PATIENCE;

/// A client that sends limit orders far from the market, which stay open.
pub(crate) struct OrderLoad {
    acknowledged: Arc<AtomicUsize>,
    thread: JoinHandle<Vec<String>>,
}

impl OrderLoad {
    /// Starts the client. Ids begin with `name`.
    pub(crate) fn start(address: SocketAddr, name: &str) -> OrderLoad {
        let acknowledged = Arc::new(AtomicUsize::new(0));
        let (count, name) = (acknowledged.clone(), name.to_string());
        let thread = thread::spawn(move || {
            let mut ids = Vec::new();
            let Ok(mut socket) = TcpStream::connect(address) else { return ids };
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            loop {
                let id = format!("{name}-{}", ids.len());
                let sent = socket.write_all(order(address, &id).as_bytes());
                if sent.is_err() || !is_acknowledged(&mut socket) {
                    return ids;
                }
                ids.push(id);
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        OrderLoad { acknowledged, thread }
    }

    pub(crate) fn acknowledged(&self) -> usize {
        self.acknowledged.load(Ordering::Relaxed)
    }

    /// Returns everything that was acknowledged, when there is no response any more.
    pub(crate) fn end(self) -> Vec<String> {
        self.thread.join().unwrap()
    }
}

/// Returns the body of an order that does not match.
pub(crate) fn terms(id: &str) -> String {
    format!(r#"{{"intId":"{id}","securityId":1,"side":"BUY","quantity":1,"limit":1.25,"tif":"GTC"}}"#)
}

/// Returns a request for it.
pub(crate) fn order(address: SocketAddr, id: &str) -> String {
    let body = terms(id);
    format!(
        "POST /rest/execution/order/limit HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Returns whether the response is that the order was entered; any other, or none, is false.
pub(crate) fn is_acknowledged(socket: &mut TcpStream) -> bool {
    let mut answer = Vec::new();
    let mut buffer = [0; 4_096];
    while !answer.windows(4).any(|end| end == b"\r\n\r\n") {
        match socket.read(&mut buffer) {
            Ok(0) | Err(_) => return false,
            Ok(more) => answer.extend_from_slice(&buffer[..more]),
        }
    }
    answer.starts_with(b"HTTP/1.1 200 ")
}
