//! STOMP over WebSocket, and the rules of WebSocket itself.

use pitlane_testkit::stomp_client::{StompClient, body, header, plain, tls};
use pitlane_testkit::web_socket::WebSocket;

use super::sessions::{address, start};

#[test]
fn stomp_works_over_ws_and_wss() {
    let (service, data) = start("ws", &["https.listen=127.0.0.1:0"]);
    let (http, https) = (address(&service, "http"), address(&service, "https"));
    for (wire, address) in [(plain(http), http), (tls(https, &data), https)] {
        let (socket, head) =
            WebSocket::open(wire, address, "Sec-WebSocket-Protocol: v10.stomp, v12.stomp\r\n");
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        let lower = head.to_lowercase();
        assert!(lower.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="), "{head}");
        assert!(lower.contains("sec-websocket-protocol: v12.stomp\r\n"), "{head}");
        let mut client = StompClient::new(Box::new(socket));
        client.connect();
        client.subscribe("1", "tick.*");
        let tick = client.receive_until("MESSAGE");
        assert!(body(&tick).contains("\"type\":\"TICK\""), "{tick}");
        client.send_message("DISCONNECT|receipt:bye||");
        client.receive_until("RECEIPT|receipt-id:bye");
        assert_eq!(client.receive(), None);
    }
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn the_handshake_is_refused_where_required() {
    let (service, _) = start("ws-handshake", &[]);
    let http = address(&service, "http");
    for (further, status) in [
        ("", "101"),
        ("Sec-WebSocket-Protocol: stomp\r\n", "101"),
        ("Sec-WebSocket-Protocol: mqtt\r\n", "400"),
        ("Origin: https://evil.example\r\n", "403"),
        (&format!("Origin: http://{http}\r\n"), "101"),
        ("Sec-Fetch-Site: cross-site\r\n", "403"),
        ("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", "400"),
    ] {
        let (_, head) = WebSocket::open(plain(http), http, further);
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{further}: {head}");
    }
    assert_eq!(service.ask("GET /stomp").0, 426);
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn when_the_service_stops_a_websocket_gets_an_error() {
    let (service, _) = start("ws-stop", &[]);
    let http = address(&service, "http");
    let (socket, _) = WebSocket::open(plain(http), http, "");
    let mut client = StompClient::new(Box::new(socket));
    client.connect();
    service.signal("TERM");
    let last = client.receive_until("ERROR");
    assert_eq!(header(&last, "message"), Some("the service ends this session"));
    assert_eq!(client.receive(), None);
    assert!(service.end().is_orderly());
}
