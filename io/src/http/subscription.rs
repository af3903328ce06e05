//! Market data: the list of feeds, and subscriptions to them.

use pitlane_engine::command::CommandKind;
use pitlane_engine::id::SecurityId;
use pitlane_protocols::rest::{self, MarketDataSubscriptionVO};

use super::app_state::AppState;
use super::body::{self, Input};
use super::order_entry::strategy_of;
use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::Answer;

pub fn feeds(house: &AppState, ask: &RequestContext<'_>) -> Result<Answer, Problem> {
    ask.no_query()?;
    Ok(Answer::json(&house.settings.feeds))
}

/// Subscribes or unsubscribes. Idempotent: the first subscriber of a security starts its feed, the
/// last one stops it.
pub async fn subscribe(
    house: &AppState,
    ask: &RequestContext<'_>,
    on: bool,
    body: Input,
) -> Result<Answer, Problem> {
    ask.no_query()?;
    let bytes = body::read(house, body).await?;
    let request: MarketDataSubscriptionVO = rest::read(&bytes).map_err(Problem::bad_body)?;
    if request.subscribe.is_some_and(|subscribe| subscribe != on) {
        return Err(Problem::bad_request(
            "subscribe-contradicts",
            "`subscribe` says the opposite of the path",
        ));
    }
    let reference = house.floor.reference();
    let strategy = strategy_of(None, Some(&request.strategy_name), &reference)?;
    ask.sight(&reference).touch(strategy)?;
    let security = SecurityId(request.security_id);
    if reference.security(security).is_none() {
        return Err(Problem::refused(pitlane_engine::reason::Reason::UnknownSecurity));
    }
    house.execute(CommandKind::Subscribe { strategy, security, on }).await
}
