//! Hostile input: each has its status, and the service continues.

use pitlane_testkit::http_client::HttpClient;

use crate::service::{RestService, ask};

const LIMIT: &str = "/rest/execution/order/limit";

#[test]
fn hostile_bodies_are_refused_with_their_field() {
    let mut service = RestService::start("bodies");
    let fits = r#""securityId":1,"side":"BUY","quantity":1,"limit":1"#;
    let deep = format!("{{{fits},\"x\":{}{}}}", "[".repeat(5_000), "]".repeat(5_000));
    let cases = [
        (format!("{{{fits},\"stopp\":5}}"), "`stopp`"),
        (format!("{{{fits},\"quantity\":2}}"), "duplicate field `quantity`"),
        (format!("{{{fits},\"intId\":\"a\",\"intId\":\"b\"}}"), "duplicate field `intId`"),
        (deep, "nested"),
        ("[".repeat(60_000), "nested"),
        (fits.to_string(), "an object"),
        ("{".to_string(), "EOF"),
        ("null".to_string(), "an object"),
        ("[]".to_string(), "an object"),
        ("\"text\"".to_string(), "an object"),
        (format!("{{{fits}}} {{}}"), "trailing"),
        (format!("{{{fits},}}"), "trailing comma"),
        (format!("{{{fits},'tif':'DAY'}}"), "key must be"),
        (r#"{"securityId":1,"side":"BUY","quantity":NaN,"limit":1}"#.to_string(), "expected value"),
        (r#"{"securityId":1,"side":"BUY","quantity":Infinity,"limit":1}"#.to_string(), "expected value"),
        (r#"{"securityId":1,"side":"BUY","quantity":1e400,"limit":1}"#.to_string(), "out of range"),
        (r#"{"securityId":1,"side":"BUY","quantity":1,"limit":-1e400}"#.to_string(), "out of range"),
        (
            r#"{"securityId":1,"side":"BUY","quantity":1,"limit":0.123456789}"#.to_string(),
            "too many decimals",
        ),
        (r#"{"securityId":1,"side":"BUY","quantity":"1; DROP","limit":1}"#.to_string(), "character"),
        (r#"{"securityId":1,"side":"BUY","quantity":true,"limit":1}"#.to_string(), "true"),
        (r#"{"securityId":1,"side":"BUY","quantity":null,"limit":1}"#.to_string(), "null"),
        (r#"{"securityId":1,"side":"BUY","quantity":{"a":1},"limit":1}"#.to_string(), "character"),
        (
            r#"{"securityId":"1","side":"BUY","quantity":1,"limit":1}"#.to_string(),
            "a whole number from 0 to 4294967295, not ",
        ),
        (
            r#"{"securityId":1e3,"side":"BUY","quantity":1,"limit":1}"#.to_string(),
            "a whole number from 0 to 4294967295, not ",
        ),
        (
            r#"{"securityId":4294967296,"side":"BUY","quantity":1,"limit":1}"#.to_string(),
            "a whole number from 0 to 4294967295, not ",
        ),
        (r#"{"securityId":1,"side":"LONG","quantity":1,"limit":1}"#.to_string(), "BUY, SELL"),
        (r#"{"securityId":1,"side":"BUY","quantity":1,"limit":1,"tif":"FOREVER"}"#.to_string(), "GTC"),
        (r#"{"securityId":1,"side":"BUY","quantity":1,"limit":1,"tifDate":"tomorrow"}"#.to_string(), "time"),
        ("\u{feff}{}".to_string(), "an object"),
        (format!("{{{fits},\"intId\":\"\\ud800\"}}"), "lone surrogate"),
        (format!("{{{fits},\"intId\":\"a\\udc00\\ud800\"}}"), "lone surrogate"),
        (format!("{{{fits},\"\\udbff\":1}}"), "lone surrogate"),
        (r#"{"securityId":1,"side":"BUY","quantity":"\ud800","limit":1}"#.to_string(), "lone surrogate"),
        (format!("{{\"securityId\":{}}}", "9".repeat(60_000)), "number"),
    ];
    for (body, expected) in cases {
        let problem = service.refuse("POST", LIMIT, &body, 400, "bad-body");
        let detail = problem["detail"].as_str().unwrap();
        let shown: String = body.chars().take(80).collect();
        assert!(detail.contains(expected), "{shown}: {detail}");
        assert!(detail.len() < 1_000, "{detail}");
    }
    service.refuse("POST", LIMIT, "", 400, "bad-body");
    assert_eq!(service.read("/rest/execution/order"), serde_json::json!([]));
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let mut service = RestService::start("octets");
    let mut client = service.connect();
    for body in [&b"{\"intId\":\"\xff\xfe\"}"[..], b"\xc0\x80", b"{\"side\":\"\xed\xa0\x80\"}", b"\0\0\0\0"] {
        let head = format!(
            "POST {LIMIT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        client.send_bytes(&[head.as_bytes(), body].concat()).unwrap();
        let answer = client.receive(false);
        assert_eq!((answer.status, answer.code().as_str()), (400, "bad-body"), "{body:?}");
    }
    assert_eq!(service.get("/health/live").status, 200);
}

#[test]
fn too_large_and_of_another_kind() {
    let mut service = RestService::start("large");
    let large = format!("{{\"intId\":\"{}\"}}", "x".repeat(70_000));
    let mut client = service.connect();
    let answer = ask(&mut client, "POST", LIMIT, "", &large);
    assert_eq!((answer.status, answer.code().as_str()), (413, "body-too-large"));
    assert!(client.is_closed(), "what follows would not be read");
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "application/xml",
        "application/jsonp",
    ] {
        let mut client = service.connect();
        client.send(&format!("POST {LIMIT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: 2\r\n\r\n{{}}"));
        let answer = client.receive(false);
        assert_eq!((answer.status, answer.code().as_str()), (415, "not-json"), "{kind}");
    }
    // Chunked bodies are bodies like others.
    let mut client = service.connect();
    let body = r#"{"securityId":1,"side":"BUY","quantity":1,"limit":1}"#;
    let (first, second) = body.split_at(20);
    client.send(&format!(
        "POST {LIMIT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n\
         {:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n",
        first.len(),
        second.len()
    ));
    assert_eq!(client.receive(false).status, 200);
    assert_eq!(service.read("/rest/execution/order").as_array().unwrap().len(), 1);
}

#[test]
fn paths_cannot_escape_their_route() {
    let mut service = RestService::start("paths");
    for path in [
        "/rest",
        "/rest/",
        "/rest/../rest/account",
        "/rest/./account",
        "/rest/%2e%2e/account",
        "/rest/account/..",
        "/rest//account",
        "/rest/account/",
        "/rest/account/a/b",
        "/REST/account",
        "/rest/ext/none",
        "/../../etc/passwd",
        "/rest/security/..%2f..%2fetc%2fpasswd",
        "/rest/execution/order/",
        "/rest/execution/order/%00",
        "/rest/execution/order/%2e%2e",
    ] {
        let answer = service.get(path);
        assert_eq!(answer.status, 404, "{path}: {answer:?}");
        answer.code();
    }
    for (path, code) in [
        ("/rest/execution/order/%zz", "bad-path"),
        ("/rest/position?x=1", "bad-query"),
        ("/rest/account?%ff=1", "bad-query"),
    ] {
        service.refuse("GET", path, "", 400, code);
    }
    let long = format!("/rest/execution/order/{}", "x".repeat(5_000));
    service.refuse("GET", &long, "", 404, "unknown-order");
    for method in ["PATCH", "TRACE", "PUT", "BREW"] {
        let answer = service.ask(method, "/rest/execution/order", "", "");
        assert_eq!(
            (answer.status, answer.header("allow")),
            (405, Some("GET, HEAD, DELETE, OPTIONS")),
            "{method}"
        );
    }
}

#[test]
fn a_page_of_another_origin_changes_nothing() {
    let mut service = RestService::start("origin");
    let order = r#"{"securityId":1,"side":"BUY","quantity":1,"limit":1}"#;
    for header in ["Origin: https://evil.example\r\n", "Origin: null\r\n", "Sec-Fetch-Site: cross-site\r\n"] {
        for (method, path, body) in [
            ("POST", LIMIT, order),
            ("POST", "/rest/runtime/exit-vm", ""),
            ("DELETE", "/rest/execution/order/a", ""),
            ("POST", "/rest/position/reset-positions", ""),
        ] {
            let answer = service.ask(method, path, header, body);
            assert_eq!((answer.status, answer.code().as_str()), (403, "foreign-origin"), "{header}{path}");
        }
    }
    let mut client = HttpClient::new(std::net::TcpStream::connect(service.address()).unwrap());
    client.send("GET /rest/account HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    let answer = client.receive(false);
    assert_eq!((answer.status, answer.code().as_str()), (421, "foreign-host"));
    assert_eq!(service.read("/rest/execution/order"), serde_json::json!([]));
}
