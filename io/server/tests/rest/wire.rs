//! Hostile bytes at the socket of the running service: heads that never end or are huge, requests
//! that can be read in two ways, and many unfinished ones.

use pitlane_testkit::http_client::HttpClient;

use crate::service::{RestService, ask, folder};

const LIMIT: &str = "/rest/execution/order/limit";
const SUBMIT: &str =
    "POST /rest/execution/order/limit HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
const ORDER: &str = r#"{"securityId":1,"side":"BUY","quantity":1,"limit":1}"#;

#[test]
fn a_head_that_does_not_end_in_time_ends_the_connection() {
    let service = RestService::with(&folder("slow-head"), &["http.head_timeout_ms=200"]);
    for half in ["", "G", "GET /rest/account HTTP/1.1\r\nHost: loc"] {
        let mut client = service.connect();
        client.send(half);
        assert!(client.is_closed(), "{half:?}");
    }
    // A slow head lasts no longer: every byte is one more read, and in the end the server reads no
    // more.
    let mut client = service.connect();
    let mut drips = 0;
    while client.send_bytes(b"G").is_ok() {
        drips += 1;
        assert!(drips < 10_000_000, "it goes on for ever");
    }
    assert_eq!(ask(&mut service.connect(), "GET", "/health/live", "", "").status, 200);
}

#[test]
fn a_huge_head_is_refused_before_its_end() {
    let mut service = RestService::start("huge-head");
    let heads = [
        format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}", "x".repeat(20_000)),
        format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "y".repeat(20_000)),
        format!("GET / HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "X: x\r\n".repeat(200)),
    ];
    for head in heads {
        let mut client = service.connect();
        // A client that is refused early may find that the server no longer reads.
        let _ = client.send_bytes(head.as_bytes());
        let status = client.receive(false).status;
        assert!([414, 431].contains(&status), "{status}: {}", &head[..40]);
    }
    assert_eq!(service.get("/health/live").status, 200);
}

#[test]
fn a_request_that_can_be_read_in_two_ways_is_none() {
    let mut service = RestService::start("ambiguous");
    let (length, size) = (ORDER.len(), format!("{:x}", ORDER.len()));
    let chunks = format!("{size}\r\n{ORDER}\r\n0\r\n\r\n");
    let cases = [
        format!("{SUBMIT}Content-Length: {length}\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}"),
        format!("{SUBMIT}Transfer-Encoding: chunked\r\nContent-Length: {length}\r\n\r\n{chunks}"),
        format!("{SUBMIT}Content-Length: {length}\r\nContent-Length: {length}\r\n\r\n{ORDER}"),
        format!("{SUBMIT}Transfer-Encoding: identity, chunked\r\n\r\n{chunks}"),
        format!("{SUBMIT}X: 1\nContent-Length: {length}\r\n\r\n{ORDER}"),
        format!("{}\n{ORDER}", format!("{SUBMIT}Content-Length: {length}\r\n").replace("\r\n", "\n")),
        format!("{SUBMIT}Transfer-Encoding: chunked\r\n\r\n{}", chunks.replacen("\r\n", "\n", 1)),
    ];
    for request in cases {
        let mut client = service.connect();
        client.send(&format!("{request}GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        assert_eq!(client.receive(false).status, 400, "{request:?}");
        assert!(client.is_closed(), "what was hidden behind it is not answered: {request:?}");
    }
    assert_eq!(service.read("/rest/execution/order"), serde_json::json!([]), "none of them was an order");
}

#[test]
fn quantities_below_one_unit_are_refused_by_their_reason() {
    let mut service = RestService::start("quantities");
    for quantity in ["0", "-1", "-0", "0.0", "\"-5\"", "0e5"] {
        let body = format!(r#"{{"securityId":1,"side":"BUY","quantity":{quantity},"limit":1}}"#);
        let problem = service.refuse("POST", LIMIT, &body, 422, "quantity-not-positive");
        // It was an order, and exists as a refused one.
        let order = service.order(problem["intId"].as_str().unwrap());
        assert_eq!(order["status"], "REJECTED", "{quantity}");
    }
    let reduce = service.ask("POST", "/rest/position/reduce/1", "", "-1");
    assert_eq!((reduce.status, reduce.code().as_str()), (404, "unknown-position"));
    assert_eq!(service.read("/rest/execution/order"), serde_json::json!([]));
}

/// Three hundred clients that send half a request, split in every possible way, and one that needs
/// service.
#[test]
fn three_hundred_slow_connections_do_not_delay_a_client() {
    let mut service = RestService::with(&folder("slow-crowd"), &["http.head_timeout_ms=60000"]);
    let body = format!("{SUBMIT}Content-Length: {}\r\n\r\n{}", ORDER.len(), &ORDER[..10]);
    let halves = ["", "G", "GET /rest/account HTTP/1.1\r\nHost: localhost\r\n", body.as_str()];
    let mut slow: Vec<HttpClient> = (0..300).map(|_| service.connect()).collect();
    for (client, half) in slow.iter_mut().zip(halves.iter().cycle()) {
        client.send(half);
    }
    for n in 0..100 {
        assert_eq!(service.get("/rest/account").status, 200);
        service.must_post(LIMIT, &format!("{},\"intId\":\"probe-{n}\"}}", &ORDER[..ORDER.len() - 1]));
    }
    let metrics = service.get("/metrics").body;
    let timed_out =
        metrics.lines().find(|line| line.starts_with("pitlane_http_timed_out_connections_total")).unwrap();
    assert_eq!(timed_out.rsplit(' ').next(), Some("0"), "they were there all the time");
    // When they continue, they are served too.
    for (client, half) in slow.iter_mut().zip(halves.iter().cycle()) {
        let rest = match *half {
            half if half.starts_with("GET") => "\r\n",
            half if half.starts_with("POST") => &ORDER[10..],
            _ => continue,
        };
        client.send(rest);
        assert_eq!(client.receive(false).status, 200, "{half:?}");
    }
}
