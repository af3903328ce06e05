//! Reload of reference data while the service runs: new rows can be traded, invalid files change
//! nothing, and a restart continues with the data that were in force.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::service::{RestService, column, folder};

const CLEAR: &str = "/rest/cache/clear-all";
const NOT_PERMITTED: &str = "strategy-not-permitted";
const LIMIT: &str = "/rest/execution/order/limit";

/// Returns the shipped set in a separate folder.
fn refdata(data: &Path) -> PathBuf {
    let folder = data.join("refdata");
    fs::create_dir_all(&folder).unwrap();
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/refdata");
    for file in ["exchanges", "families", "securities", "accounts", "strategies"] {
        fs::copy(shipped.join(format!("{file}.csv")), folder.join(format!("{file}.csv"))).unwrap();
    }
    folder
}

fn change(folder: &Path, file: &str, change: impl FnOnce(String) -> String) {
    let path = folder.join(format!("{file}.csv"));
    fs::write(&path, change(fs::read_to_string(&path).unwrap())).unwrap();
}

fn order(security: u32, id: &str) -> String {
    format!(r#"{{"intId":"{id}","securityId":{security},"side":"BUY","quantity":1,"limit":1,"tif":"GTC"}}"#)
}

#[test]
fn a_new_security_can_be_traded_and_survives_a_restart() {
    let data = folder("clear");
    let files = refdata(&data);
    let setting = format!("refdata.dir={}", files.display());
    let settings = [setting.as_str(), "feed.on=true"];
    let mut service = RestService::with(&data, &settings);
    service.must_post(LIMIT, &order(1, "before"));
    service.refuse("POST", LIMIT, &order(11, "early"), 422, "unknown-security");
    let etag = service.get("/rest/security").header("etag").unwrap().to_string();
    // Unchanged files change nothing.
    service.must_post(CLEAR, "");
    assert_eq!(service.get("/rest/security").header("etag"), Some(etag.as_str()));

    change(&files, "securities", |text| {
        text + "11,ORCL,Oracle Corporation,STOCK,1,US68389X1054,,,,,,140,true\n"
    });
    change(&files, "strategies", |text| text + "4,NOVICE,true\n");
    service.must_post(CLEAR, "");
    assert_ne!(service.get("/rest/security").header("etag"), Some(etag.as_str()));
    assert_eq!(service.read("/rest/security/11")["symbol"], "ORCL");
    assert!(column(&service.read("/rest/strategy"), "name").contains(&"NOVICE"));
    service.must_post(LIMIT, &order(11, "after"));
    assert_eq!(service.order("after")["symbol"], "ORCL");
    assert_eq!(service.order("before")["status"], "NEW", "open orders are untouched");
    // The new strategy starts by itself.
    service.until("/rest/strategy", |rows| rows[4]["phase"] == "RUNNING");
    let mine = order(11, "novice").replace("\"tif\"", "\"strategyName\":\"NOVICE\",\"tif\"");
    service.must_post(LIMIT, &mine);

    service.kill();
    let mut service = RestService::with(&data, &settings);
    assert_eq!(service.read("/rest/execution/order").as_array().unwrap().len(), 3);
    assert_eq!(service.order("after")["symbol"], "ORCL");
    service.must_post(LIMIT, &order(11, "later"));

    // A security that vanishes stays, and can no longer be traded.
    change(&files, "securities", |text| {
        text.lines().filter(|line| !line.starts_with("11,")).map(|line| format!("{line}\n")).collect()
    });
    service.must_post(CLEAR, "{}");
    assert_eq!(service.read("/rest/security/11")["tradeable"], false);
    service.refuse("POST", LIMIT, &order(11, "too-late"), 422, "not-tradeable");
    assert_eq!(service.delete("/rest/execution/order/after").status, 200);
    service.must_post("/rest/runtime/exit-vm", "");
    assert!(service.ends_well());
}

#[test]
fn invalid_reference_data_changes_nothing_and_is_reported_with_file_and_line() {
    let data = folder("invalid");
    let files = refdata(&data);
    let mut service = RestService::with(&data, &[&format!("refdata.dir={}", files.display())]);
    let before = service.read("/rest/security");
    let mut refuse = |file: &str, line: usize, wrong: &str, right: &str| {
        change(&files, file, |text| text.replacen(right, wrong, 1));
        let problem = service.refuse("POST", CLEAR, "", 422, "bad-reference-data");
        let faults = problem["faults"].as_array().unwrap();
        assert!(faults[0].as_str().unwrap().contains(&format!("{file}.csv:{line}: ")), "{problem}");
        change(&files, file, |text| text.replacen(wrong, right, 1));
    };
    refuse("securities", 2, "1,AAPL,Apple Inc.,SHARE,1", "1,AAPL,Apple Inc.,STOCK,1");
    refuse("securities", 3, "2,MSFTX,Microsoft Corporation,STOCK,1", "2,MSFT,Microsoft Corporation,STOCK,1");
    refuse("accounts", 3, "2,WORLD,true", "2,GLOBAL,true");
    refuse("families", 4, "3,E-mini S&P 500,ES,2,USD,51", "3,E-mini S&P 500,ES,2,USD,50");
    fs::remove_file(files.join("accounts.csv")).unwrap();
    service.refuse("POST", CLEAR, "", 422, "bad-reference-data");
    assert_eq!(service.read("/rest/security"), before);
    service.must_post(LIMIT, &order(1, "a"));
    service.refuse("POST", CLEAR, "{\"all\":1}", 400, "unexpected-body");
    assert_eq!(service.read("/rest/execution/order")[0]["intId"], "a");
    assert_eq!(service.read("/rest/position"), json!([]));
}

/// An optional column: which strategies may use the account.
#[test]
fn an_account_is_for_the_strategies_that_its_row_names() {
    let data = folder("permitted");
    let files = refdata(&data);
    let settings = [format!("refdata.dir={}", files.display())];
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let mut service = RestService::with(&data, &settings);
    let by = |id: &str, strategy: &str| {
        order(1, id).replace("\"tif\"", &format!("\"strategyName\":\"{strategy}\",\"tif\""))
    };
    service.must_post(LIMIT, &by("before", "MOMENTUM"));
    let all = fs::read_to_string(files.join("accounts.csv")).unwrap();
    let some = |strategies: &str| {
        let rows = all.lines().enumerate().map(|(at, line)| match at {
            0 => format!("{line},strategyIds\n"),
            1 => format!("{line},{strategies}\n"),
            _ => format!("{line},\n"),
        });
        fs::write(files.join("accounts.csv"), rows.collect::<String>()).unwrap();
    };
    some("0 2");
    service.must_post(CLEAR, "");
    assert_eq!(service.read("/rest/account")[0]["strategyIds"], json!([0, 2]));
    assert_eq!(service.read("/rest/account")[1].get("strategyIds"), None);
    let refused = |service: &mut RestService| {
        service.refuse("POST", LIMIT, &by("", "MOMENTUM").replace("\"intId\":\"\",", ""), 422, NOT_PERMITTED);
        let check = "/rest/ext/execution/order/validate";
        let body = by("", "MOMENTUM").replace("\"intId\":\"\",", "\"type\":\"LIMIT\",");
        service.refuse("POST", check, &body, 422, NOT_PERMITTED);
        let change = r#"{"intId":"before","quantity":2,"limit":1}"#;
        service.refuse("POST", "/rest/execution/modify/order/limit", change, 422, NOT_PERMITTED);
    };
    refused(&mut service);
    service.must_post(LIMIT, &by("pairs", "PAIRS"));
    service.must_post(LIMIT, &order(1, "server"));
    service.kill();
    let mut service = RestService::with(&data, &settings);
    refused(&mut service);
    assert_eq!(service.order("before")["status"], "NEW", "what was taken before goes on");
    assert_eq!(service.delete("/rest/execution/order/before").status, 200, "and can be cancelled");
    for (wrong, shown) in [("9", "there is no strategy 9"), ("x", "is not the id of a strategy")] {
        some(wrong);
        let problem = service.refuse("POST", CLEAR, "", 422, "bad-reference-data");
        let fault = problem["faults"][0].as_str().unwrap();
        assert!(fault.contains("accounts.csv:2: ") && fault.contains(shown), "{problem}");
    }
    fs::write(files.join("accounts.csv"), &all).unwrap();
    service.must_post(CLEAR, "");
    service.must_post(LIMIT, &by("after", "MOMENTUM"));
}
