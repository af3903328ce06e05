//! `GET /rest/account`: all accounts. By the specification pages of every origin may read it.

use pitlane_engine::refdata::Account;
use serde::Serialize;

use super::answer::Answer;
use super::house::House;

pub fn accounts(house: &House) -> Answer {
    let accounts: Vec<_> = house.floor.reference().accounts().iter().map(AccountVO::of).collect();
    Answer::json(&accounts)
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AccountVO<'a> {
    id: u16,
    name: &'a str,
    active: bool,
    adapter_type: &'a str,
    /// The same under the specification's other name.
    broker: &'a str,
}

impl AccountVO<'_> {
    fn of(row: &Account) -> AccountVO<'_> {
        AccountVO {
            id: row.id.0,
            name: &row.name,
            active: row.active,
            adapter_type: &row.adapter_type,
            broker: &row.adapter_type,
        }
    }
}
