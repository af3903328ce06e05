//! A leader that was away cannot acknowledge anything; a broker that loses data receives them
//! again.

use std::fs;
use std::io::Write;
use std::net::TcpStream;

use pitlane_testkit::nats_server::NatsBroker;
use pitlane_testkit::patience::{PATIENCE, until};
use pitlane_testkit::service::folder;

use super::link_proxy::LinkProxy;
use super::load::{OrderLoad, is_acknowledged, order};
use super::pair::{OrderQuantities, StandbyPair};

#[test]
fn a_leader_that_was_paused_acknowledges_nothing_more() {
    let place = folder("standby-paused");
    let broker = NatsBroker::start(&place);
    let mut pair = StandbyPair::start(&place, &broker.url());
    let old = pair.server(0).address();
    let load = OrderLoad::start(old, "before");
    until("orders are acknowledged", || load.acknowledged() >= 20);
    pair.server(0).pause();
    // The bytes in its sockets are read when it continues.
    let mut late = TcpStream::connect(old).unwrap();
    late.set_read_timeout(Some(PATIENCE)).unwrap();
    late.write_all(order(old, "late").as_bytes()).unwrap();
    pair.lead(1);
    let after = OrderLoad::start(pair.server(1).address(), "after");
    until("orders are acknowledged", || after.acknowledged() >= 20);
    pair.server(0).signal("CONT");
    assert!(!is_acknowledged(&mut late), "another leads");
    let acknowledged = load.end();
    pair.stand_by(0);
    pair.follow(0);
    pair.kill(1);
    let acknowledged = [acknowledged, after.end()].concat();
    pair.lead(0);
    let (orders, _) = pair.known(0);
    assert_each_once(&orders, &acknowledged);
    assert!(!orders.iter().any(|(known, _)| known == "late"));
}

/// The messages that the first leader sent and the broker has not received have the numbers that
/// the second leader uses for its own.
#[test]
fn pending_messages_of_an_old_leader_are_not_stored_behind_the_new_one() {
    let place = folder("standby-under-way");
    let broker = NatsBroker::start(&place);
    let sluice = LinkProxy::before(broker.port);
    let mut pair = StandbyPair::at(&place, &sluice.url());
    pair.launch(0);
    pair.lead(0);
    pair.url = broker.url();
    pair.launch(1);
    pair.follow(1);
    let load = OrderLoad::start(pair.server(0).address(), "before");
    until("orders are acknowledged", || load.acknowledged() >= 20);
    sluice.shut();
    // Many orders at once, each a separate message if necessary: none of them is acknowledged.
    let address = pair.server(0).address();
    let mut late: Vec<TcpStream> = (0..32)
        .map(|at| {
            let mut socket = TcpStream::connect(address).unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            socket.write_all(order(address, &format!("late-{at}")).as_bytes()).unwrap();
            socket
        })
        .collect();
    pair.lead(1);
    sluice.open();
    pair.stand_by(0);
    assert!(!late.iter_mut().any(is_acknowledged), "another leads");
    let after = OrderLoad::start(pair.server(1).address(), "after");
    until("orders are acknowledged", || after.acknowledged() >= 20);
    // A reader that starts at the beginning of the stream can continue with it.
    pair.follow(0);
    pair.kill(1);
    let acknowledged = [load.end(), after.end()].concat();
    pair.lead(0);
    let (orders, _) = pair.known(0);
    assert_each_once(&orders, &acknowledged);
    assert!(!orders.iter().any(|(known, _)| known.starts_with("late")));
}

#[test]
fn a_broker_that_lost_everything_receives_it_again() {
    let place = folder("standby-forgotten");
    let mut broker = NatsBroker::start(&place);
    let mut pair = StandbyPair::start(&place, &broker.url());
    let load = OrderLoad::start(pair.server(0).address(), "before");
    until("orders are acknowledged", || load.acknowledged() >= 20);
    broker.kill();
    fs::remove_dir_all(place.join("broker")).unwrap();
    broker.restart();
    // Only the former leader has the whole state.
    let acknowledged = load.end();
    pair.stand_by(0);
    pair.lead(0);
    pair.follow(1);
    pair.kill(0);
    pair.lead(1);
    let (orders, _) = pair.known(1);
    assert_each_once(&orders, &acknowledged);
}

fn assert_each_once(orders: &OrderQuantities, acknowledged: &[String]) {
    for id in acknowledged {
        assert_eq!(orders.iter().filter(|(known, _)| known == id).count(), 1, "{id}");
    }
}
