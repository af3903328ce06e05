//! The small market of these tests: one exchange for each venue, with one share each; and the start
//! of the service with it.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};

use pitlane_testkit::fix_client::FixClient;
use pitlane_testkit::http_client::{HttpClient, Response};
use pitlane_testkit::service::{ServiceProcess, TestFolder, command};
use serde_json::Value;

/// A venue: its name in the reference data, and its address.
pub(crate) struct VenueAddress<'a> {
    pub name: &'a str,
    /// 0: it does not speak FIX, and `more` has all keys of its table.
    pub port: u16,
    /// Keys of its table besides the common ones.
    pub more: &'a str,
}

/// Starts the service with these venues, and one simulated exchange; the shares have the names of
/// the venues, in capitals.
pub(crate) fn start(data: &TestFolder, venues: &[VenueAddress<'_>], settings: &[&str]) -> ServiceProcess {
    let refdata = write_refdata(data, venues);
    start_with(data, &refdata, venues, settings)
}

/// Starts the service with these venues and this folder of reference data.
pub(crate) fn start_with(
    data: &TestFolder,
    refdata: &Path,
    venues: &[VenueAddress<'_>],
    settings: &[&str],
) -> ServiceProcess {
    let config = data.join("service.toml");
    let mut text = String::from(
        "[[fix.session]]\nSenderCompID = \"PITLANE\"\nTargetCompID = \"KEEP*\"\nResetOnLogon = \"N\"\n",
    );
    for VenueAddress { name, port, more } in venues {
        if *port == 0 {
            text += &format!("[[adapter]]\nname = \"{name}\"\nReconnectInterval = 1\n{more}\n");
            continue;
        }
        text += &format!(
            "[[adapter]]\nname = \"{name}\"\nSenderCompID = \"US\"\nTargetCompID = \"{name}\"\n\
             SocketConnectHost = \"127.0.0.1\"\nSocketConnectPort = {port}\nReconnectInterval = 1\n{more}\n"
        );
    }
    std::fs::write(&config, text).expect("a file for the test");
    let fixed = [
        "risk.strategies.max_orders_per_s=0",
        "risk.strategies.max_open_orders=0",
        "fix.store_bytes=4194304",
        "demo.on=false",
        "feed.on=false",
        "log.level=info",
    ];
    let dir = format!("refdata.dir={}", refdata.display());
    let mut command = command(data, &[&fixed[..], &[&dir], settings].concat());
    command.arg("--config").arg(&config);
    let service = ServiceProcess::on(data, command);
    if !service.is_ready() {
        let ready = service.ready.clone();
        panic!("{ready}\n{}", service.end().log_text);
    }
    service
}

fn write_refdata(data: &Path, venues: &[VenueAddress<'_>]) -> std::path::PathBuf {
    let folder = data.join("refdata");
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    let names: Vec<&str> = venues.iter().map(|venue_address| venue_address.name).chain(["SIM"]).collect();
    let mut files = [
        ("exchanges", "id,name,mic,timeZone,open,close,auctions,adapterType\n".to_string()),
        (
            "families",
            "id,name,symbolRoot,exchangeId,currency,contractSize,tickSize,lotSize,commission,tradeable,expirable\n"
                .to_string(),
        ),
        (
            "securities",
            "id,symbol,description,type,securityFamilyId,isin,underlyingId,expiration,strike,optionType,baseCurrency,\
             startPrice,tradeable\n"
                .to_string(),
        ),
        ("accounts", "id,name,active,adapterType,exchangeIds\n".to_string()),
        ("strategies", "id,name,autoActivate\n0,SERVER,true\n".to_string()),
    ];
    for (at, name) in names.iter().enumerate() {
        let id = at + 1;
        files[0].1 += &format!("{id},Exchange {name},X{id:03},UTC,00:00,24:00,false,{name}\n");
        files[1].1 += &format!("{id},Shares of {name},,{id},USD,1,0.01,1,0,true,false\n");
        files[2].1 += &format!("{id},{name},Share of {name},STOCK,{id},,,,,,,200,true\n");
        files[3].1 += &format!("{id},AT-{name},true,{name},{id}\n");
    }
    for (name, text) in files {
        std::fs::write(folder.join(format!("{name}.csv")), text).expect("a file for the test");
    }
    folder
}

/// Ports that the system gives to no connection.
const FREE_PORTS: RangeInclusive<u16> = 20_000..=32_000;

/// Returns a port that is free, and that no other test of this process gets. The system might give
/// a port of its own choice to a connection before the venue listens.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let ports = u32::from(FREE_PORTS.end() - FREE_PORTS.start());
    let first = std::process::id() % ports;
    loop {
        let nth = (first + u32::from(NEXT.fetch_add(1, Ordering::Relaxed))) % ports;
        let port = FREE_PORTS.start() + u16::try_from(nth).expect("there are fewer ports");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

pub(crate) fn fix(service: &ServiceProcess) -> SocketAddr {
    listener(service, "fix=")
}

/// Returns the address behind this word of the line that says that the service is ready.
pub(crate) fn listener(service: &ServiceProcess, word: &str) -> SocketAddr {
    let part = service.ready.split_whitespace().find_map(|part| part.strip_prefix(word));
    part.expect("it listens").parse().expect("an address")
}

/// Returns a FIX client that is logged on.
pub(crate) fn client(service: &ServiceProcess, name: &str) -> FixClient {
    let mut client = FixClient::new(name);
    client.connect(fix(service));
    client.log_on(false);
    client
}

pub(crate) fn ask(service: &ServiceProcess, method: &str, path: &str) -> Response {
    let mut http = HttpClient::new(TcpStream::connect(service.address()).expect("it listens"));
    http.send(&format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"));
    http.receive(false)
}

pub(crate) fn get(service: &ServiceProcess, path: &str) -> Value {
    ask(service, "GET", path).json()
}

/// Returns ExecInst, MinQty and MaxFloor of an order as REST and the topics show them.
pub(crate) fn special_terms(order: &Value) -> [Value; 3] {
    ["execInst", "minQty", "maxFloor"].map(|name| order[name].clone())
}

/// Waits until REST shows an order with these special terms: its events may arrive there after the
/// report of a FIX session. Only a failing test waits for long.
pub(crate) fn await_special_terms(service: &ServiceProcess, id: &str, expected: &[Value; 3]) {
    let path = format!("/rest/execution/order/{id}");
    while special_terms(&get(service, &path)[0]) != *expected {
        std::thread::yield_now();
    }
}

/// Waits until this venue is connected, or disconnected. Only a failing test waits for long.
pub(crate) fn await_connected(service: &ServiceProcess, name: &str, connected: bool) {
    while is_connected(service, name) != connected {
        std::thread::yield_now();
    }
}

/// Returns whether this venue is connected.
pub(crate) fn is_connected(service: &ServiceProcess, name: &str) -> bool {
    let venues = get(service, "/rest/ext/adapter");
    let mut venues = venues.as_array().expect("a list").iter();
    venues.any(|venue| venue["name"] == name && venue["connected"] == true)
}
