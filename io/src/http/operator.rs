//! The operator's calls: the kill switch, and the shutdown.

use pitlane_engine::command::Scope;
use pitlane_engine::directive::Directive;

use super::HttpEvent;
use super::app_state::AppState;
use super::body::{Input, read_nothing};
use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::Answer;

/// Cancels every open order and refuses new ones, or lifts that. Answers when every shard that can
/// be reached has applied it; the response names the others.
pub async fn kill_switch(
    house: &AppState,
    ask: &RequestContext<'_>,
    on: bool,
    body: Input,
) -> Result<Answer, Problem> {
    read_nothing(house, body).await?;
    ask.sight(&house.floor.reference()).touch_all()?;
    house.direct(Directive::Kill { scope: Scope::Global, on }).await
}

/// Answers, and requests the shutdown from main. Connections finish their current request, so the
/// response is sent before it.
pub async fn exit_vm(house: &AppState, ask: &RequestContext<'_>, body: Input) -> Result<Answer, Problem> {
    read_nothing(house, body).await?;
    ask.sight(&house.floor.reference()).touch_all()?;
    (house.tell)(HttpEvent::ExitAsked);
    Ok(Answer::empty())
}
