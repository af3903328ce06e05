//! Data folders of the previous version: this one starts them, or refuses them with instructions.
//!
//! `io/server/tests/data/version-0.1.0/` holds two folders that version 0.1.0 wrote with one shard,
//! by real use over REST: a sale of 7 of which 3 were bought, an order that was modified twice, a
//! stop, and one that was cancelled. `plain` has its whole journal and no snapshot. `snapshot` has
//! had 33,000 further orders, two snapshots and no beginning any more.

use std::path::PathBuf;
use std::process::Command;

use pitlane_journal::header::Header;
use pitlane_testkit::service::{ServiceProcess, TestFolder, command};

use crate::service::{RestService, folder};

const SETTINGS: [&str; 1] = ["topology.shards=1"];
const LIMIT: &str = "/rest/execution/order/limit";

fn unpacked(name: &str, purpose: &str) -> TestFolder {
    let data = folder(&format!("earlier-{name}-{purpose}"));
    let archive = format!("{}/tests/data/version-0.1.0/{name}.tar.gz", env!("CARGO_MANIFEST_DIR"));
    std::fs::create_dir_all(&*data).unwrap();
    let mut tar = Command::new("tar");
    let status = tar.arg("-xzf").arg(archive).arg("-C").arg(&*data).arg("--strip-components=1").status();
    assert!(status.unwrap().success());
    data
}

#[test]
fn a_folder_of_the_previous_version_starts() {
    let data = unpacked("plain", "starts");
    for round in 0..3 {
        let mut service = RestService::with(&data, &SETTINGS);
        let order = service.order("open-c");
        assert_eq!((&order["status"], &order["limit"]), (&"NEW".into(), &92.into()));
        assert_eq!(service.order("open-b")["intId"], "open-c");
        assert_eq!(service.order("open")["intId"], "open-c", "its journal contains every id");
        let order = service.order("fill-0");
        assert_eq!((&order["status"], &order["filledQuantity"]), (&"PARTIALLY_FILLED".into(), &3.into()));
        assert_eq!(service.order("stop")["status"], "NEW");
        let positions = service.read("/rest/position");
        let mut held: Vec<_> =
            positions.as_array().unwrap().iter().map(|row| row["quantity"].as_i64()).collect();
        held.sort();
        assert_eq!(held, [Some(-3), Some(3)]);
        let body = format!(
            r#"{{"intId":"new-{round}","securityId":1,"side":"BUY","quantity":5,"limit":70,"tif":"GTC"}}"#
        );
        service.must_post(LIMIT, &body);
        assert_eq!(service.order("new-0")["status"], "NEW", "round {round}");
        service.kill();
    }
}

/// Its snapshots lack data that this version needs and that cannot be recomputed.
#[test]
fn a_folder_that_begins_with_an_old_snapshot_is_refused_with_instructions() {
    let log_text = refusal(&unpacked("snapshot", "lacks"));
    for expected in
        ["an earlier version", "in format 2", "start the version that wrote it", "Nothing was changed"]
    {
        assert!(log_text.contains(expected), "{expected}: {log_text}");
    }
}

/// Returns the message of a refused start.
fn refusal(data: &TestFolder) -> String {
    let service = ServiceProcess::on(data, command(data, &SETTINGS));
    assert!(!service.is_ready());
    service.end().log_text
}

#[test]
fn a_folder_whose_commands_give_another_state_now_is_refused_with_instructions() {
    let data = unpacked("plain", "differs");
    let path: PathBuf = data.join("journal/shard-00/000000000004.seg");
    let mut bytes = std::fs::read(&path).unwrap();
    let (header, _) = Header::decode(&bytes).unwrap();
    assert_eq!(header.rules, 0, "the version before had none");
    // As if its rules had led to another state.
    let (other, _) = Header { digest: header.digest ^ 1, ..header }.encode();
    bytes[..other.len()].copy_from_slice(&other);
    std::fs::write(&path, bytes).unwrap();
    let log_text = refusal(&data);
    for expected in
        ["an earlier version", "000000000004.seg", "start the version that wrote it", "Nothing was changed"]
    {
        assert!(log_text.contains(expected), "{expected}: {log_text}");
    }
}
