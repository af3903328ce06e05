//! The operator's calls: the kill switch, and the end.

use pitlane_engine::command::Scope;
use pitlane_engine::directive::Directive;

use super::News;
use super::answer::Answer;
use super::ask::Ask;
use super::body::{Input, read_nothing};
use super::house::House;
use super::problem::Problem;

/// Cancels every open order and refuses new ones, or lifts that. Answered when every shard that can be
/// reached has done so; the answer names the others.
pub async fn kill_switch(house: &House, ask: &Ask<'_>, on: bool, body: Input) -> Result<Answer, Problem> {
    read_nothing(house, body).await?;
    ask.sight(&house.floor.reference()).touch_all()?;
    house.direct(Directive::Kill { scope: Scope::Global, on }).await
}

/// Answers, and asks main for the end. Connections finish what they are at, so the answer is on its way before it.
pub async fn exit_vm(house: &House, ask: &Ask<'_>, body: Input) -> Result<Answer, Problem> {
    read_nothing(house, body).await?;
    ask.sight(&house.floor.reference()).touch_all()?;
    (house.tell)(News::ExitAsked);
    Ok(Answer::empty())
}
