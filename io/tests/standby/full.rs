//! The broker's storage is full: its error is told, cancels go on, and orders do when there is room again.

use std::fs;
use std::io::Write;
use std::net::TcpStream;

use super::broker::Broker;
use super::load::{is_acknowledged, order};
use super::pair::{PATIENCE, Pair, until};
use super::service::folder;

/// Room of the broker, in bytes: enough for a group that has just begun, and its reserve for cancels.
const ROOM: usize = 12 << 20;
const FILLER: usize = 64 << 10;

/// Whether an order is acknowledged.
fn enter(pair: &Pair, at: usize, id: &str) -> bool {
    let address = pair.server(at).address();
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.write_all(order(address, id).as_bytes()).unwrap();
    is_acknowledged(&mut socket)
}

fn cancel(pair: &Pair, at: usize, id: &str) -> u16 {
    pair.server(at).ask(&format!("DELETE /rest/execution/order/{id}")).0
}

#[test]
fn with_full_storage_cancels_go_on_and_orders_do_when_there_is_room_again() {
    let place = folder("standby-full");
    let broker = Broker::with(&place, &format!("jetstream {{ max_file_store: {ROOM} }}\n"));
    let mut pair = Pair::start(&place, &broker.url());
    for id in ["a", "b", "c"] {
        assert!(enter(&pair, 0, id));
    }
    // Whatever is in the folder is sent: until the broker has no room.
    let notes = place.join("server-0/notes");
    let mut fillers = 0;
    until("the broker is full", || {
        fs::write(notes.join(format!("filler-{fillers}")), vec![7; FILLER]).unwrap();
        fillers += 1;
        !enter(&pair, 0, &format!("filling-{fillers}"))
    });
    assert!(fillers < 2 * ROOM / FILLER, "it was full before");
    assert!(!enter(&pair, 0, "refused"));
    assert_eq!(cancel(&pair, 0, "a"), 200, "cancels go on");
    assert!(pair.server(0).ask("GET /health/ready").1.contains("FULL"));
    // What is removed makes room.
    for filler in 0..fillers {
        fs::remove_file(notes.join(format!("filler-{filler}"))).unwrap();
    }
    until("orders are taken again", || enter(&pair, 0, "again"));
    let service = pair.servers[0].take().unwrap();
    service.signal("KILL");
    let complaints = service.end().complaints;
    assert!(complaints.contains("the broker cannot store the journal for the standby"), "{complaints}");
    assert!(
        complaints.contains("resource") || complaints.contains("storage"),
        "the broker's error: {complaints}"
    );
    assert!(complaints.contains("the broker has room again"), "{complaints}");
    pair.lead(1);
    let ids: Vec<String> = pair.known(1).0.into_iter().map(|(id, _)| id).collect();
    assert!(["b", "c", "again"].iter().all(|id| ids.iter().any(|known| known == id)), "{ids:?}");
    assert!(!ids.iter().any(|id| id == "a" || id == "refused"), "{ids:?}");
}
