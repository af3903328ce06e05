//! Start, stop and TLS.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pitlane_http::{HttpEvent, HttpSettings};
use pitlane_net::tls::{Certificate, Tls, TlsSettings};
use pitlane_runtime::clock::Clock;
use pitlane_testkit::certificates::{TestAuthority, TestIdentity};
use pitlane_testkit::temp_folder::TestFolder;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::server::{HttpTestServer, Response, ServerPlan};

const GET: &str = "GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[test]
fn a_port_in_use_is_reported_before_the_start() {
    let server = HttpTestServer::start();
    let taken = HttpSettings { http: Some(server.http), ..ServerPlan::default().settings };
    let failed = std::panic::catch_unwind(|| {
        HttpTestServer::with(ServerPlan { settings: taken, ..ServerPlan::default() })
    });
    assert!(failed.is_err());
}

#[test]
fn a_close_lets_requests_finish_and_idle_connections_go() {
    let server = HttpTestServer::start();
    let mut idle = server.connect();
    idle.send(GET);
    assert_eq!(idle.receive(false).status, 200);
    let mut busy = server.connect();
    let head = "Host: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n";
    busy.send(&format!("DELETE /rest/ext/kill-switch HTTP/1.1\r\n{head}{{"));
    // A request on another connection comes after those bytes, so the server has read them when it
    // responds.
    assert_eq!(server.get("/health/live").status, 200);

    server.remote.close();
    assert!(idle.is_closed());
    busy.send("}");
    let response = busy.receive(false);
    // The request began before the stop: it gets a response, if only a 503.
    assert!([200, 503].contains(&response.status), "{response:?}");
    assert!(busy.is_closed());
    assert_eq!(server.news.recv(), Ok(HttpEvent::Quiet));
    assert!(TcpStream::connect(server.http).is_err(), "the listener is closed");
}

#[test]
fn an_unfinished_connection_does_not_delay_the_stop() {
    let settings =
        HttpSettings { drain_timeout: Duration::from_millis(50), ..ServerPlan::default().settings };
    let server = HttpTestServer::with(ServerPlan { settings, ..ServerPlan::default() });
    let mut slow = server.connect();
    let head = "Host: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n";
    slow.send(&format!("POST /rest/ext/kill-switch HTTP/1.1\r\n{head}{{"));
    assert_eq!(server.get("/health/live").status, 200);
    server.remote.close();
    assert_eq!(server.news.recv(), Ok(HttpEvent::Quiet));
    assert!(slow.is_closed());
}

#[test]
fn a_connection_that_ends_without_close_is_removed() {
    let server = HttpTestServer::start();
    let mut idle = server.connect();
    idle.send(GET);
    assert_eq!(idle.receive(false).status, 200);
    drop(server);
    assert!(idle.is_closed());
}

fn over_tls() -> (HttpTestServer, TestFolder) {
    over_tls_for(None)
}

/// Only with certificates of this authority.
fn over_tls_for(client_ca: Option<&str>) -> (HttpTestServer, TestFolder) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let folder = TestFolder::new("https", &NEXT.fetch_add(1, Ordering::Relaxed).to_string());
    let client_ca = client_ca.map(|pem| {
        let path = folder.join("clients.pem");
        std::fs::write(&path, pem).unwrap();
        path
    });
    let certificate = Certificate::SelfSigned { folder: folder.to_path_buf() };
    let tls = Tls::open(TlsSettings { certificate, client_ca }, Clock::new().now()).unwrap();
    let settings = HttpSettings {
        https: Some(([127, 0, 0, 1], 0).into()),
        head_timeout: Duration::from_millis(300),
        ..ServerPlan::default().settings
    };
    (HttpTestServer::with(ServerPlan { settings, tls: Some(Arc::new(tls)), ..ServerPlan::default() }), folder)
}

/// Returns a client that trusts the server of this folder and presents this certificate, if any.
fn tls_client(
    server: &HttpTestServer,
    folder: &TestFolder,
    identity: Option<TestIdentity>,
) -> BufReader<StreamOwned<ClientConnection, TcpStream>> {
    let pem = std::fs::read(folder.join("self-signed.pem")).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&pem).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match identity {
        Some((chain, key)) => config.with_client_auth_cert(chain, key).unwrap(),
        None => config.with_no_client_auth(),
    };
    let connection =
        ClientConnection::new(Arc::new(config), ServerName::try_from("localhost").unwrap()).unwrap();
    BufReader::new(StreamOwned::new(connection, TcpStream::connect(server.https.unwrap()).unwrap()))
}

#[test]
fn with_a_client_authority_https_is_for_its_clients_alone() {
    let (ours, others) = (TestAuthority::generate(), TestAuthority::generate());
    let (server, folder) = over_tls_for(Some(&ours.pem));
    let mut client = tls_client(&server, &folder, Some(ours.identity()));
    client.get_mut().write_all(GET.as_bytes()).unwrap();
    assert_eq!(Response::read(&mut client, false).status, 200);
    for unknown in [None, Some(others.identity())] {
        let mut client = tls_client(&server, &folder, unknown);
        // With TLS 1.3 the client learns of it when it reads.
        let refused =
            client.get_mut().write_all(GET.as_bytes()).and_then(|()| client.read(&mut [0]).map(|_| ()));
        assert!(refused.is_err());
    }
    let metrics = server.get("/metrics").body;
    assert!(metrics.contains("pitlane_http_failed_tls_handshakes_total 2\n"), "{metrics}");
}

#[test]
fn https_serves_the_same() {
    let (server, folder) = over_tls();
    let address = server.https.unwrap();
    let mut stream = tls_client(&server, &folder, None);
    for _ in 0..3 {
        stream.get_mut().write_all(GET.as_bytes()).unwrap();
        assert_eq!(Response::read(&mut stream, false).status, 200);
    }
    let metrics = server.get("/metrics").body;
    assert!(
        metrics.contains("pitlane_tls_certificate_expiry_timestamp_seconds 1")
            || metrics.contains("seconds 2")
    );

    // A client without TLS, and one that never begins.
    let mut plain = crate::server::HttpClient::new(TcpStream::connect(address).unwrap());
    plain.send(GET);
    let _ = plain.is_closed();
    let mut silent = crate::server::HttpClient::new(TcpStream::connect(address).unwrap());
    assert!(silent.is_closed());
    let metrics = server.get("/metrics").body;
    assert!(metrics.contains("pitlane_http_failed_tls_handshakes_total 1\n"));
    assert!(metrics.contains("pitlane_http_timed_out_connections_total 1\n"));
}

/// An independent client agrees with our reading of the protocol.
#[test]
fn curl_accepts_the_responses() {
    let (server, folder) = over_tls();
    let pem = folder.join("self-signed.pem");
    let curl = |arguments: &[&str]| {
        let output = Command::new("curl")
            .args(["--silent", "--show-error", "--noproxy", "*"])
            .args(arguments)
            .output();
        let output = output.expect("curl is on every machine that builds this");
        assert!(output.status.success(), "{arguments:?} {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let http = format!("http://127.0.0.1:{}", server.http.port());
    let https = format!("https://localhost:{}", server.https.unwrap().port());
    let live = "{\"status\":\"LIVE\"}";
    assert_eq!(curl(&[&format!("{http}/health/live"), &format!("{http}/health/live")]), live.repeat(2));
    assert_eq!(curl(&["--cacert", pem.to_str().unwrap(), &format!("{https}/health/live")]), live);
    let status = ["--output", "/dev/null", "--write-out", "%{http_code}"];
    let switch = format!("{http}/rest/ext/kill-switch");
    let with = |more: &[&str]| curl(&[&status[..], more, &[&switch]].concat());
    assert_eq!(with(&["--request", "POST"]), "200");
    assert_eq!(with(&["--json", "{}"]), "200");
    assert_eq!(with(&["--json", "{}", "--header", "Transfer-Encoding: chunked"]), "200");
    assert_eq!(with(&["--request", "DELETE", "--http1.0"]), "200");
    assert_eq!(with(&["--data", "x=1"]), "415");
    assert_eq!(with(&["--head"]), "405");
}
