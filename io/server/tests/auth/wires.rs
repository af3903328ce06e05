//! Clients of the STOMP and FIX tests, and how each reaches the service.

use pitlane_testkit::fix_client::{self, FixClient};
use pitlane_testkit::secured_service::SecuredService;
use pitlane_testkit::stomp_client::{self, StompClient};
use pitlane_testkit::web_socket::WebSocket;

/// Listeners, all on free ports.
pub(crate) const LISTENERS: [&str; 3] =
    ["https.listen=127.0.0.1:0", "stomp.tls_listen=127.0.0.1:0", "fix.tls_listen=127.0.0.1:0"];
/// Transports of STOMP and of FIX, with TLS or without.
pub(crate) const STOMP: [(&str, bool); 4] =
    [("stomp", false), ("stomp+tls", true), ("http", false), ("https", true)];
pub(crate) const FIX: [(&str, bool); 2] = [("fix", false), ("fix+tls", true)];

pub(crate) fn stomp((listener, is_tls): (&str, bool), secured: &SecuredService) -> StompClient {
    let address = secured.at(listener);
    let wire = if is_tls { stomp_client::tls(address, &secured.data) } else { stomp_client::plain(address) };
    match listener {
        "http" | "https" => StompClient::new(Box::new(WebSocket::open(wire, address, "").0)),
        _ => StompClient::new(wire),
    }
}

pub(crate) fn fix((listener, is_tls): (&str, bool), secured: &SecuredService, name: &str) -> FixClient {
    let mut client = FixClient::new(name);
    match is_tls {
        true => client.take(fix_client::tls(secured.at(listener), &secured.data)),
        false => client.connect(secured.at(listener)),
    }
    client
}
