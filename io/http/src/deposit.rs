//! Cash for strategies that begin to trade (`demo.cash`), so that the net liquidation value of a
//! simulated portfolio begins with an amount.

use std::rc::Rc;
use std::time::Duration;

use pitlane_engine::command::{CommandKind, Movement, MovementKind};
use pitlane_engine::id::{StrategyId, Uuid};
use pitlane_engine::number::Price;
use pitlane_engine::reason::Reason;
use pitlane_engine::time::Timestamp;
use tokio::time::sleep;

use super::app_state::AppState;
use super::shard_client::CommandOutcome;
use super::trading::Trading;

/// Time between two looks whether commands are accepted yet.
const START_PAUSE: Duration = Duration::from_millis(20);
/// UUID of the deposit of strategy 0; the others follow. The same in every process, so that a
/// shard books a deposit once.
const FIRST_UUID: u128 = 0x9c1d_7a52_40b3_4e0f_8a6e_0000_0000_0000;

/// Books a deposit for every strategy that had no cash and no positions at the start.
pub(crate) async fn run(app: Rc<AppState>) {
    if app.settings.deposit.is_zero() {
        return;
    }
    while app.trading.check_open().is_err() {
        sleep(START_PAUSE).await;
    }
    for strategy in strategies_without_assets(&app.trading, app.monitoring.service_status.started()) {
        deposit(&app, strategy).await;
    }
}

/// Returns the strategies that had neither cash nor positions at the start. A strategy may have
/// traded since then.
fn strategies_without_assets(trading: &Trading, start: Timestamp) -> Vec<StrategyId> {
    let (reference, view) = (trading.shard_client.reference(), trading.shard_client.view());
    let had_none = |strategy: &StrategyId| {
        let mut times = view.transactions(Some(*strategy)).map(|transaction| transaction.at).peekable();
        if times.peek().is_some() {
            return times.all(|at| at >= start);
        }
        view.cash_parts(*strategy).next().is_none()
            && !view.positions().any(|position| position.id.strategy() == *strategy)
    };
    reference.strategies().iter().map(|row| row.id).filter(had_none).collect()
}

async fn deposit(app: &AppState, strategy: StrategyId) {
    let reference = app.trading.shard_client.reference();
    // Cash belongs to its strategy; the account is only recorded along with it.
    let Some(account) = reference.accounts().iter().find(|row| row.active) else { return };
    let movement = Movement {
        kind: MovementKind::Credit,
        strategy,
        account: account.id,
        security: None,
        qty: Default::default(),
        price: Price::from_raw(app.settings.deposit.raw()),
        commission: Default::default(),
        currency: app.settings.base_currency,
        uuid: Uuid(FIRST_UUID + strategy.0 as u128),
    };
    match app.trading.send_command(CommandKind::Transaction(movement)).await {
        Ok(CommandOutcome::Done(Reason::None)) => {}
        outcome => tracing::warn!(strategy = strategy.0, ?outcome, "the deposit of demo.cash was refused"),
    }
}
