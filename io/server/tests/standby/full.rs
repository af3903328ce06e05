//! The broker's storage is full: its error is reported, cancels continue, and orders resume when
//! there is room again.

use std::fs;
use std::io::Write;
use std::net::TcpStream;

use pitlane_testkit::nats_server::NatsBroker;
use pitlane_testkit::patience::{PATIENCE, until};
use pitlane_testkit::service::folder;

use super::limits::BrokerClient;
use super::load::{is_acknowledged, order};
use super::pair::StandbyPair;

/// Storage of the broker, in bytes: enough for a new group, and its reserve for cancels.
const ROOM: usize = 12 << 20;
const FILLER: usize = 64 << 10;

/// Returns whether an order is acknowledged.
fn enter(pair: &StandbyPair, at: usize, id: &str) -> bool {
    let address = pair.server(at).address();
    let Ok(mut socket) = TcpStream::connect(address) else { return false };
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.write_all(order(address, id).as_bytes()).is_ok() && is_acknowledged(&mut socket)
}

fn cancel(pair: &StandbyPair, at: usize, id: &str) -> u16 {
    pair.server(at).ask(&format!("DELETE /rest/execution/order/{id}")).0
}

/// Fills the broker until it refuses something, and returns how many files that took.
fn fill(pair: &StandbyPair) -> usize {
    let notes = pair.place.join("server-0/notes");
    let mut fillers = 0;
    until("the broker is full", || {
        fs::write(notes.join(format!("filler-{fillers}")), vec![7; FILLER]).unwrap();
        fillers += 1;
        !enter(pair, 0, &format!("filling-{fillers}"))
    });
    assert!(fillers < 2 * ROOM / FILLER, "it was full before");
    fillers
}

/// Sends orders until one is accepted, and returns its id. A refused order stays refused.
fn enter_until_taken(pair: &StandbyPair) -> String {
    let mut tries = 0;
    until("orders are taken again", || {
        tries += 1;
        enter(pair, 0, &format!("again-{tries}"))
    });
    format!("again-{tries}")
}

/// Kills the first server; the second leads with everything that was acknowledged, and without what
/// was not.
fn check(mut pair: StandbyPair, again: &str, error: &str) {
    until("it says that there is space", || pair.server(0).has_logged("the broker has space again"));
    let service = pair.servers[0].take().unwrap();
    service.signal("KILL");
    let log_text = service.end().log_text;
    assert!(log_text.contains("no client can see when it syncs"), "it warns when it starts: {log_text}");
    assert!(log_text.contains("the broker cannot store the journal for the standby"), "{log_text}");
    assert!(log_text.contains(error), "the broker's error: {log_text}");
    pair.lead(1);
    let ids: Vec<String> = pair.known(1).0.into_iter().map(|(id, _)| id).collect();
    assert!(["b", "c", again].iter().all(|id| ids.iter().any(|known| known == id)), "{ids:?}");
    assert!(!ids.iter().any(|id| id == "a" || id == "refused"), "{ids:?}");
}

#[test]
fn with_a_full_stream_cancels_continue_and_orders_resume_when_messages_were_removed() {
    let place = folder("standby-full-stream");
    let broker = NatsBroker::start(&place);
    BrokerClient::new(&broker).make(ROOM as i64);
    let pair = StandbyPair::start(&place, &broker.url());
    assert!(["a", "b", "c"].iter().all(|id| enter(&pair, 0, id)));
    let fillers = fill(&pair);
    assert!(!enter(&pair, 0, "refused"));
    assert_eq!(cancel(&pair, 0, "a"), 200, "cancels go on");
    until("health reports it", || pair.server(0).ask("GET /health/ready").1.contains("FULL"));
    for filler in 0..fillers {
        fs::remove_file(place.join(format!("server-0/notes/filler-{filler}"))).unwrap();
    }
    let again = enter_until_taken(&pair);
    check(pair, &again, "maximum bytes exceeded");
}

#[test]
fn with_a_full_broker_cancels_continue_and_orders_resume_when_it_has_more_room() {
    let place = folder("standby-full-broker");
    let settings = |room: usize| format!("jetstream {{ max_file_store: {room} }}\n");
    let mut broker = NatsBroker::with(&place, &settings(ROOM));
    let pair = StandbyPair::start(&place, &broker.url());
    assert!(["a", "b", "c"].iter().all(|id| enter(&pair, 0, id)));
    fill(&pair);
    assert!(!enter(&pair, 0, "refused"));
    assert_eq!(cancel(&pair, 0, "a"), 200, "cancels go on");
    fs::write(place.join("broker.conf"), settings(8 * ROOM)).unwrap();
    broker.stop();
    broker.restart();
    let again = enter_until_taken(&pair);
    check(pair, &again, "insufficient resources");
}
