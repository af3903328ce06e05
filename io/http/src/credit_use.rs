//! Asks the shards for the credit that accounts use. The shards report it to the read model only on
//! request, so that it costs nothing while there are no readers.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use pitlane_engine::command::{BudgetAct, BudgetChange, BudgetKind, CommandKind, Scope};
use pitlane_engine::id::{AccountId, ShardId};
use pitlane_engine::time::{NS_PER_S, Timestamp};
use pitlane_protocols::rest::CreditInUse;
use tokio::time::{Instant, timeout_at};

use super::shard_client::ShardClient;
use super::trading::SESSION;

/// Age up to which an answer serves further requests, so that many readers cost the shards no more
/// than one.
const AGE_MAX_NS: u64 = NS_PER_S;
/// Accounts asked for at once: far below the depth of a lane, so that orders of clients find room.
const ASKED_AT_ONCE_MAX: usize = 16;
/// Time after which the question ends without the shards that have not answered. Shards answer in
/// microseconds, servers of a cluster in milliseconds, and a reader waits for the other limits.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// The state of the question, and its last answers.
#[derive(Debug)]
pub(crate) struct CreditUse {
    wait_max: Duration,
    /// Time of the last question.
    asked: Cell<Timestamp>,
    is_asking: Cell<bool>,
    answers: RefCell<BTreeMap<AccountId, CreditInUse>>,
}

impl Default for CreditUse {
    fn default() -> CreditUse {
        CreditUse {
            wait_max: WAIT_MAX,
            asked: Cell::default(),
            is_asking: Cell::default(),
            answers: RefCell::default(),
        }
    }
}

/// Ends the question also if the client goes away meanwhile.
struct AskingGuard<'q>(&'q Cell<bool>);

impl Drop for AskingGuard<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl CreditUse {
    /// Asks every shard for the use of all accounts with a credit limit, unless it was just asked
    /// for them. While a question is open, other readers get the last answers.
    pub(crate) async fn refresh(&self, shards: &ShardClient, now: Timestamp) {
        let accounts = limited_accounts(shards);
        let is_known = |account| self.answers.borrow().contains_key(account);
        let is_recent = now < self.asked.get().plus(AGE_MAX_NS) && accounts.iter().all(is_known);
        if is_recent || self.is_asking.replace(true) {
            return;
        }
        let _asking = AskingGuard(&self.is_asking);
        self.asked.set(now);
        shards.view_mut().forget_credit_uses();
        let end = Instant::now() + self.wait_max;
        for accounts in accounts.chunks(ASKED_AT_ONCE_MAX) {
            if !ask(shards, accounts, end).await {
                break;
            }
        }
        let view = shards.view();
        let answer = |account| CreditInUse {
            used: view.credit_used(account),
            unanswered: view.credit_unreported(account).collect(),
        };
        *self.answers.borrow_mut() = accounts.into_iter().map(|account| (account, answer(account))).collect();
    }

    /// Returns the credit that an account uses; the default without a limit.
    pub(crate) fn of(&self, shards: &ShardClient, account: AccountId) -> CreditInUse {
        let view = shards.view();
        let limits = view.limits(Scope::Account(account));
        if limits.is_none_or(|limits| limits.credit.is_zero()) {
            return CreditInUse::default();
        }
        // While the first question for it is open, no shard has answered.
        let unknown = || CreditInUse { used: None, unanswered: (0..shards.shards()).map(ShardId).collect() };
        self.answers.borrow().get(&account).cloned().unwrap_or_else(unknown)
    }
}

fn limited_accounts(shards: &ShardClient) -> Vec<AccountId> {
    let view = shards.view();
    let limited = view.all_limits().filter(|(_, limits)| !limits.credit.is_zero());
    limited
        .filter_map(|(scope, _)| if let Scope::Account(account) = scope { Some(account) } else { None })
        .collect()
}

/// Asks for the use of some accounts and waits for the answers. Returns whether there is time and
/// room for more questions.
async fn ask(shards: &ShardClient, accounts: &[AccountId], end: Instant) -> bool {
    let mut pending = Vec::with_capacity(accounts.len());
    for &account in accounts {
        let (scope, kind, act) = (Scope::Account(account), BudgetKind::Credit, BudgetAct::Recall(0));
        match shards.send(SESSION, CommandKind::Budget(BudgetChange { scope, kind, act })) {
            Ok(response) => pending.push(response),
            Err(_busy) => break,
        }
    }
    let is_sent = pending.len() == accounts.len();
    for response in pending {
        // The result is what the shards have reported to the view.
        if timeout_at(end, response).await.is_err() {
            return false;
        }
    }
    is_sent
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use pitlane_engine::command::RiskLimits;
    use pitlane_engine::id::Currency;
    use pitlane_engine::mesh::Depths;
    use pitlane_engine::number::Money;
    use tokio::runtime::Builder;

    use super::super::shard_client::tests::{NOW, TestApp};
    use super::*;

    const ACCOUNT: AccountId = AccountId(1);
    const OTHER: AccountId = AccountId(2);

    fn app() -> TestApp {
        let mut app = TestApp::started(Depths::default());
        let credit = Money::whole(1_000).unwrap();
        let credit_currency = Currency::parse(b"USD").unwrap();
        let limits = RiskLimits { credit, credit_currency, ..RiskLimits::default() };
        app.send_and_run(CommandKind::Limits { scope: Scope::Account(ACCOUNT), limits });
        app
    }

    /// Asks while only these shards run.
    fn ask_with(app: &mut TestApp, credit_use: &CreditUse, now: Timestamp, running: &[usize]) {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        let _entered = runtime.enter();
        let TestApp { shard_client, workers } = app;
        let mut asking = pin!(credit_use.refresh(shard_client, now));
        if asking.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            running.iter().for_each(|&shard| _ = workers[shard].poll(now));
            while shard_client.poll() > 0 {}
            runtime.block_on(asking);
        }
    }

    #[test]
    fn a_shard_that_does_not_answer_is_named_in_bounded_time() {
        let mut app = app();
        let credit_use = CreditUse { wait_max: Duration::from_millis(1), ..CreditUse::default() };
        ask_with(&mut app, &credit_use, NOW, &[0, 2]);
        let answer = credit_use.of(&app.shard_client, ACCOUNT);
        assert_eq!(answer, CreditInUse { used: None, unanswered: vec![ShardId(1)] });
        assert_eq!(credit_use.of(&app.shard_client, OTHER), CreditInUse::default());
        // The late answer to the first question is none to the next one.
        app.run_until_idle();
        let later = NOW.plus(AGE_MAX_NS);
        ask_with(&mut app, &credit_use, later, &[0]);
        assert_eq!(
            credit_use.of(&app.shard_client, ACCOUNT).unanswered,
            [ShardId(1), ShardId(2)],
            "what was known before is not shown as new"
        );
    }

    #[test]
    fn an_answer_serves_a_second_long_and_a_new_limit_is_asked_for_at_once() {
        let mut app = app();
        let credit_use = CreditUse::default();
        let whole = CreditInUse { used: Some(Money::ZERO), unanswered: Vec::new() };
        ask_with(&mut app, &credit_use, NOW, &[0, 1, 2]);
        assert_eq!(credit_use.of(&app.shard_client, ACCOUNT), whole);
        // No shard runs, so a question would not be answered.
        ask_with(&mut app, &credit_use, NOW.plus(AGE_MAX_NS - 1), &[]);
        assert_eq!(credit_use.of(&app.shard_client, ACCOUNT), whole);
        let limits = *app.shard_client.view().limits(Scope::Account(ACCOUNT)).unwrap();
        app.send_and_run(CommandKind::Limits { scope: Scope::Account(OTHER), limits });
        ask_with(&mut app, &credit_use, NOW.plus(AGE_MAX_NS - 1), &[0, 1, 2]);
        assert_eq!(credit_use.of(&app.shard_client, OTHER), whole);
    }

    #[test]
    fn a_reader_that_goes_away_leaves_the_question_to_the_next() {
        let mut app = app();
        let credit_use = CreditUse::default();
        {
            let runtime = Builder::new_current_thread().enable_time().build().unwrap();
            let _entered = runtime.enter();
            let mut asking = pin!(credit_use.refresh(&app.shard_client, NOW));
            assert!(asking.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
        app.run_until_idle();
        ask_with(&mut app, &credit_use, NOW, &[0, 1, 2]);
        assert_eq!(credit_use.of(&app.shard_client, ACCOUNT).used, Some(Money::ZERO));
    }
}
