//! The broker returns with older data, as after a loss of power: nothing that was acknowledged is
//! lost, and two servers never lead.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use pitlane_testkit::nats_server::NatsBroker;
use pitlane_testkit::paths;
use pitlane_testkit::patience::{PATIENCE, until};
use pitlane_testkit::service::{TestFolder, folder};

use super::limits::BrokerClient;
use super::load::{is_acknowledged, order};
use super::pair::{OrderQuantities, StandbyPair};

/// Orders before the data with which the broker returns, and after them.
const BEFORE: usize = 20;
const AFTER: usize = 50;

/// Sends orders one after the other, and returns their ids when all are acknowledged.
fn enter(pair: &StandbyPair, at: usize, name: &str, count: usize) -> Vec<String> {
    let address = pair.server(at).address();
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let ids: Vec<String> = (0..count).map(|n| format!("{name}-{n}")).collect();
    for id in &ids {
        socket.write_all(order(address, id).as_bytes()).unwrap();
        assert!(is_acknowledged(&mut socket), "{id}");
    }
    ids
}

/// Returns the words of a small file of the standby.
fn fields_of(pair: &StandbyPair, at: usize, file: &str) -> Vec<String> {
    let path = pair.place.join(format!("server-{at}/standby/{file}"));
    fs::read_to_string(path).unwrap_or_default().split_whitespace().map(str::to_string).collect()
}

/// Waits until the copy of a follower holds everything that the stream holds now.
fn catch_up(pair: &StandbyPair, broker: &NatsBroker, at: usize) {
    let last = BrokerClient::new(broker).last();
    until("it has read all", || {
        fields_of(pair, at, "position").get(3).is_some_and(|done| done.parse::<u64>().unwrap() >= last)
    });
}

/// Waits until a leader has recorded that the broker has acknowledged everything.
fn note_acked(pair: &StandbyPair, broker: &NatsBroker, at: usize) {
    let last = BrokerClient::new(broker).last();
    until("it is noted", || {
        fields_of(pair, at, "acked").get(2).is_some_and(|acked| acked.parse::<u64>().unwrap() >= last)
    });
}

/// Saves the broker's current data.
fn keep_data(place: &TestFolder) {
    copy(&place.join("broker"), &place.join("broker-before"));
}

/// The broker loses power, and returns with the saved data.
fn roll_back(broker: &mut NatsBroker, place: &TestFolder) {
    broker.kill();
    fs::remove_dir_all(place.join("broker")).unwrap();
    copy(&place.join("broker-before"), &place.join("broker"));
    broker.restart();
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            // A file that the broker has just removed.
            false => _ = fs::copy(entry.path(), to),
        }
    }
}

fn assert_all(orders: &OrderQuantities, acknowledged: &[String]) {
    let lost: Vec<&String> = acknowledged
        .iter()
        .filter(|id| orders.iter().filter(|(known, _)| known == *id).count() != 1)
        .collect();
    assert!(
        lost.is_empty(),
        "{} of {} acknowledged orders are lost: {lost:?}",
        lost.len(),
        acknowledged.len()
    );
}

/// Ends a server that refuses to continue, and returns its standard error.
fn refusal(pair: &mut StandbyPair, at: usize) -> String {
    let mut service = pair.servers[at].take().unwrap();
    while !service.line().is_empty() {}
    service.end().log_text
}

fn decide(pair: &StandbyPair, at: usize, part: &str) {
    let data = pair.place.join(format!("server-{at}"));
    let mut command = Command::new(paths::binary());
    let done = command.args(["standby", part, "--data"]).arg(data).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn a_follower_that_is_longer_than_the_stream_leads_with_all_that_it_has() {
    let place = folder("standby-longer");
    let mut broker = NatsBroker::start(&place);
    let mut pair = StandbyPair::start(&place, &broker.url());
    let mut acknowledged = enter(&pair, 0, "before", BEFORE);
    keep_data(&place);
    acknowledged.extend(enter(&pair, 0, "after", AFTER));
    catch_up(&pair, &broker, 1);
    pair.kill(0);
    roll_back(&mut broker, &place);
    pair.lead(1);
    assert_all(&pair.known(1).0, &acknowledged);
    // The stream is complete again: the former leader follows it, and takes over.
    acknowledged.extend(enter(&pair, 1, "later", BEFORE));
    pair.launch(0);
    pair.follow(0);
    catch_up(&pair, &broker, 0);
    pair.kill(1);
    pair.lead(0);
    assert_all(&pair.known(0).0, &acknowledged);
}

#[test]
fn a_follower_leads_when_the_stream_was_removed_and_the_leader_is_gone() {
    let place = folder("standby-removed");
    let broker = NatsBroker::start(&place);
    let mut pair = StandbyPair::start(&place, &broker.url());
    let acknowledged = enter(&pair, 0, "before", BEFORE);
    catch_up(&pair, &broker, 1);
    pair.kill(0);
    pair.kill(1);
    BrokerClient::new(&broker).remove();
    pair.launch(1);
    pair.lead(1);
    assert_all(&pair.known(1).0, &acknowledged);
    pair.launch(0);
    pair.follow(0);
    pair.kill(1);
    pair.lead(0);
    assert_all(&pair.known(0).0, &acknowledged);
}

#[test]
fn a_running_leader_sends_again_what_the_broker_has_lost_and_the_copy_stays() {
    let place = folder("standby-lives");
    let mut broker = NatsBroker::start(&place);
    let mut pair = StandbyPair::start(&place, &broker.url());
    let mut acknowledged = enter(&pair, 0, "before", BEFORE);
    keep_data(&place);
    acknowledged.extend(enter(&pair, 0, "after", AFTER));
    catch_up(&pair, &broker, 1);
    let (identity, adopts) = (place.join("server-1/journal/identity"), place.join("server-1/standby/adopt"));
    roll_back(&mut broker, &place);
    pair.stand_by(0);
    pair.lead(0);
    // The copy exists at every moment, until the stream holds all of it again.
    let epoch = fields_of(&pair, 0, "acked")[0].clone();
    until("it follows the stream again", || {
        // While one folder replaces the other, a file records that, and a crash then loses nothing.
        let is_kept = identity.exists() || adopts.exists() || identity.exists();
        assert!(is_kept, "the copy was removed before the stream was read");
        fields_of(&pair, 1, "position").first().is_some_and(|of| of.parse::<u64>().ok() == epoch.parse().ok())
    });
    assert_all(&pair.known(0).0, &acknowledged);
    acknowledged.extend(enter(&pair, 0, "later", BEFORE));
    catch_up(&pair, &broker, 1);
    pair.kill(0);
    pair.lead(1);
    assert_all(&pair.known(1).0, &acknowledged);
}

/// The broker loses that another server has taken the lead, and with it the orders of that server.
#[test]
fn a_former_leader_leaves_the_lead_to_the_one_whose_lead_the_broker_has_lost() {
    let place = folder("standby-superseded");
    let mut broker = NatsBroker::start(&place);
    let mut pair = StandbyPair::at(&place, &broker.url());
    // The second server has two leases to find out what was lost, on a busy machine.
    pair.settings.push("standby.lease_ms=5000".into());
    pair.begin();
    let mut acknowledged = enter(&pair, 0, "before", BEFORE);
    catch_up(&pair, &broker, 1);
    keep_data(&place);
    pair.kill(0);
    pair.lead(1);
    acknowledged.extend(enter(&pair, 1, "after", AFTER));
    broker.kill();
    // The former leader waits for the broker.
    pair.launch(0);
    roll_back(&mut broker, &place);
    pair.stand_by(1);
    pair.lead(1);
    assert_all(&pair.known(1).0, &acknowledged);
    acknowledged.extend(enter(&pair, 1, "later", BEFORE));
    pair.follow(0);
    catch_up(&pair, &broker, 0);
    pair.kill(1);
    pair.lead(0);
    assert_all(&pair.known(0).0, &acknowledged);
}

/// The follower lags; the leader's folder holds acknowledged orders that neither the stream nor the
/// follower has any more.
#[test]
fn a_leader_whose_acknowledged_orders_were_lost_asks_an_operator() {
    let place = folder("standby-diverged");
    let mut broker = NatsBroker::start(&place);
    let mut pair = StandbyPair::start(&place, &broker.url());
    let mut acknowledged = enter(&pair, 0, "before", BEFORE);
    keep_data(&place);
    acknowledged.extend(enter(&pair, 0, "after", AFTER));
    catch_up(&pair, &broker, 1);
    pair.server(1).pause();
    let lost = enter(&pair, 0, "lost", BEFORE);
    note_acked(&pair, &broker, 0);
    pair.kill(0);
    broker.kill();
    pair.server(1).signal("CONT");
    roll_back(&mut broker, &place);
    pair.lead(1);
    let (orders, _) = pair.known(1);
    assert_all(&orders, &acknowledged);
    acknowledged.extend(enter(&pair, 1, "later", BEFORE));
    for _ in 0..2 {
        pair.launch(0);
        let complaint = refusal(&mut pair, 0);
        assert!(complaint.contains("have diverged"), "{complaint}");
        assert!(complaint.contains("pitlane standby follow"), "{complaint}");
    }
    decide(&pair, 0, "follow");
    pair.launch(0);
    pair.follow(0);
    assert!(place.join("server-0/standby/before/journal/identity").exists(), "nothing is removed");
    pair.kill(1);
    pair.lead(0);
    let (orders, _) = pair.known(0);
    assert_all(&orders, &acknowledged);
    assert!(!orders.iter().any(|(known, _)| lost.contains(known)));
}

/// The other decision: the folder of the former leader is valid.
#[test]
fn an_operator_may_let_the_folder_lead_that_the_stream_has_diverged_from() {
    let place = folder("standby-decided");
    let mut broker = NatsBroker::start(&place);
    let mut pair = StandbyPair::start(&place, &broker.url());
    let mut acknowledged = enter(&pair, 0, "before", BEFORE);
    keep_data(&place);
    catch_up(&pair, &broker, 1);
    pair.server(1).pause();
    acknowledged.extend(enter(&pair, 0, "after", AFTER));
    note_acked(&pair, &broker, 0);
    pair.kill(0);
    broker.kill();
    pair.server(1).signal("CONT");
    roll_back(&mut broker, &place);
    pair.lead(1);
    pair.kill(1);
    pair.launch(0);
    let complaint = refusal(&mut pair, 0);
    assert!(complaint.contains("have diverged"), "{complaint}");
    decide(&pair, 0, "lead");
    pair.launch(0);
    pair.lead(0);
    assert_all(&pair.known(0).0, &acknowledged);
    decide(&pair, 1, "follow");
    pair.launch(1);
    pair.follow(1);
    catch_up(&pair, &broker, 1);
    pair.kill(0);
    pair.lead(1);
    assert_all(&pair.known(1).0, &acknowledged);
}

/// The roll-back removes the record that another server leads: the paused former leader must not
/// continue.
#[test]
fn a_fence_that_moved_back_does_not_let_two_lead() {
    let place = folder("standby-fence");
    let mut broker = NatsBroker::start(&place);
    let mut pair = StandbyPair::start(&place, &broker.url());
    let mut acknowledged = enter(&pair, 0, "before", BEFORE);
    catch_up(&pair, &broker, 1);
    keep_data(&place);
    let old = pair.server(0).address();
    pair.server(0).pause();
    let mut late = TcpStream::connect(old).unwrap();
    late.set_read_timeout(Some(PATIENCE)).unwrap();
    late.write_all(order(old, "late").as_bytes()).unwrap();
    pair.lead(1);
    acknowledged.extend(enter(&pair, 1, "after", AFTER));
    roll_back(&mut broker, &place);
    pair.stand_by(1);
    pair.lead(1);
    pair.server(0).signal("CONT");
    assert!(!is_acknowledged(&mut late), "another leads");
    pair.stand_by(0);
    assert_all(&pair.known(1).0, &acknowledged);
    acknowledged.extend(enter(&pair, 1, "later", BEFORE));
    pair.follow(0);
    catch_up(&pair, &broker, 0);
    pair.kill(1);
    pair.lead(0);
    let (orders, _) = pair.known(0);
    assert_all(&orders, &acknowledged);
    assert!(!orders.iter().any(|(known, _)| known == "late"));
}

#[test]
fn a_restarted_follower_continues_from_its_copy() {
    let place = folder("standby-resumed");
    let broker = NatsBroker::start(&place);
    let mut pair = StandbyPair::at(&place, &broker.url());
    // Far more than it reads when it continues.
    let notes = place.join("server-0/notes");
    fs::create_dir_all(&notes).unwrap();
    (0..100).for_each(|n| fs::write(notes.join(format!("filler-{n}")), vec![7; 64 << 10]).unwrap());
    pair.begin();
    let mut acknowledged = enter(&pair, 0, "before", BEFORE);
    catch_up(&pair, &broker, 1);
    let read = |pair: &StandbyPair| -> u64 {
        let (_, text) = pair.server(1).ask("GET /metrics");
        let line = text.lines().find_map(|line| line.strip_prefix("pitlane_standby_bytes_total "));
        line.unwrap().parse().unwrap()
    };
    assert!(read(&pair) > 6 << 20);
    for is_killed in [true, false] {
        match is_killed {
            true => pair.kill(1),
            false => {
                let service = pair.servers[1].take().unwrap();
                service.signal("TERM");
                service.end();
            }
        }
        acknowledged.extend(enter(&pair, 0, &format!("away-{is_killed}"), BEFORE));
        pair.launch(1);
        pair.follow(1);
        catch_up(&pair, &broker, 1);
        assert!(read(&pair) < 2 << 20, "{} bytes were read", read(&pair));
    }
    pair.kill(0);
    pair.lead(1);
    assert_all(&pair.known(1).0, &acknowledged);
    assert_eq!(fs::read(place.join("server-1/notes/filler-99")).unwrap(), vec![7; 64 << 10]);
}
