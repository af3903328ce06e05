//! Clients of the STOMP and FIX tests, and how each reaches the service.

#[path = "../fix/client.rs"]
pub mod fix;
#[path = "../stomp/socket.rs"]
pub mod socket;
#[path = "../stomp/client.rs"]
pub mod stomp;

// Under the name that the WebSocket client uses.
pub use self::stomp as client;
use crate::secured::SecuredService;

/// Listeners, all on free ports.
pub const LISTENERS: [&str; 3] =
    ["https.listen=127.0.0.1:0", "stomp.tls_listen=127.0.0.1:0", "fix.tls_listen=127.0.0.1:0"];
/// Transports of STOMP and of FIX, with TLS or without.
pub const STOMP: [(&str, bool); 4] =
    [("stomp", false), ("stomp+tls", true), ("http", false), ("https", true)];
pub const FIX: [(&str, bool); 2] = [("fix", false), ("fix+tls", true)];

pub fn stomp((listener, is_tls): (&str, bool), secured: &SecuredService) -> stomp::StompClient {
    let address = secured.at(listener);
    let wire = if is_tls { stomp::tls(address, &secured.data) } else { stomp::plain(address) };
    match listener {
        "http" | "https" => stomp::StompClient::new(Box::new(socket::WebSocket::open(wire, address, "").0)),
        _ => stomp::StompClient::new(wire),
    }
}

pub fn fix((listener, is_tls): (&str, bool), secured: &SecuredService, name: &str) -> fix::FixClient {
    let mut client = fix::FixClient::new(name);
    match is_tls {
        true => client.take(fix::tls(secured.at(listener), &secured.data)),
        false => client.connect(secured.at(listener)),
    }
    client
}
