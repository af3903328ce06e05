//! The operator's calls: the kill switch, and the end.

use pitlane_engine::command::Scope;
use pitlane_engine::directive::Directive;

use super::HttpEvent;
use super::app_state::AppState;
use super::body::{Input, read_nothing};
use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::Answer;

/// Cancels every open order and refuses new ones, or lifts that. Answered when every shard that can be
/// reached has done so; the answer names the others.
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

/// Answers, and asks main for the end. Connections finish what they are at, so the answer is on its way before it.
pub async fn exit_vm(house: &AppState, ask: &RequestContext<'_>, body: Input) -> Result<Answer, Problem> {
    read_nothing(house, body).await?;
    ask.sight(&house.floor.reference()).touch_all()?;
    (house.tell)(HttpEvent::ExitAsked);
    Ok(Answer::empty())
}
