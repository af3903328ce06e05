//! Asks the shards for the credit that accounts use. The shards report it to the read model only on
//! request, so that it costs nothing while there are no readers.

use std::cell::Cell;

use pitlane_engine::command::{BudgetAct, BudgetChange, BudgetKind, CommandKind, Scope};
use pitlane_engine::id::AccountId;
use pitlane_engine::number::Money;
use pitlane_engine::reason::Reason;
use pitlane_engine::time::{NS_PER_S, Timestamp};

use super::shard_client::CommandOutcome;
use super::trading::Trading;

/// Age up to which an answer serves further requests, so that many readers cost the shards no more
/// than one.
const AGE_MAX_NS: u64 = NS_PER_S;
/// Accounts asked for at once: far below the depth of a lane, so that orders of clients find room.
const ASKED_AT_ONCE_MAX: usize = 16;

/// The state of the question.
#[derive(Debug, Default)]
pub(crate) struct CreditUse {
    /// Time of the last question.
    asked: Cell<Timestamp>,
    /// Whether all shards answered it.
    is_answered: Cell<bool>,
}

impl CreditUse {
    /// Asks every shard for the use of all accounts with a credit limit, unless it was just asked.
    pub(crate) async fn refresh(&self, trading: &Trading) {
        let now = trading.now();
        if now < self.asked.get().plus(AGE_MAX_NS) {
            return;
        }
        self.asked.set(now);
        let accounts = limited_accounts(trading);
        for accounts in accounts.chunks(ASKED_AT_ONCE_MAX) {
            if !ask(trading, accounts).await {
                self.is_answered.set(false);
                return;
            }
        }
        self.is_answered.set(true);
    }

    /// Returns the credit that an account uses; `None` without a limit, and if a shard did not
    /// answer.
    pub(crate) fn of(&self, trading: &Trading, account: AccountId) -> Option<Money> {
        let view = trading.shard_client.view();
        let is_limited = view.limits(Scope::Account(account)).is_some_and(|limits| !limits.credit.is_zero());
        if is_limited && self.is_answered.get() { view.credit_used(account) } else { None }
    }
}

fn limited_accounts(trading: &Trading) -> Vec<AccountId> {
    let view = trading.shard_client.view();
    let limited = view.all_limits().filter(|(_, limits)| !limits.credit.is_zero());
    limited
        .filter_map(|(scope, _)| if let Scope::Account(account) = scope { Some(account) } else { None })
        .collect()
}

/// Asks for the use of some accounts. Returns whether all shards have answered.
async fn ask(trading: &Trading, accounts: &[AccountId]) -> bool {
    let mut pending = Vec::with_capacity(accounts.len());
    for &account in accounts {
        let (scope, kind, act) = (Scope::Account(account), BudgetKind::Credit, BudgetAct::Recall(0));
        match trading.send(CommandKind::Budget(BudgetChange { scope, kind, act })) {
            Ok(response) => pending.push(response),
            Err(_) => return false,
        }
    }
    for response in pending {
        let outcome = trading.await_outcome(response).await;
        if !matches!(outcome, Ok(CommandOutcome::Done(Reason::None))) {
            return false;
        }
    }
    true
}
