//! The operator's calls: the kill switch, and the shutdown.

use pitlane_engine::command::Scope;
use pitlane_engine::directive::Directive;

use super::HttpEvent;
use super::app_state::AppState;
use super::body::{RequestBody, read_nothing};
use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::HttpResponse;

/// Cancels every open order and refuses new ones, or lifts that. Answers when every shard that can
/// be reached has applied it; the response names the others.
pub async fn kill_switch(
    app: &AppState,
    ctx: &RequestContext<'_>,
    on: bool,
    body: RequestBody,
) -> Result<HttpResponse, Problem> {
    read_nothing(app, body).await?;
    ctx.scope(&app.shard_client.reference()).authorize_all()?;
    app.send_directive(Directive::Kill { scope: Scope::Global, on }).await
}

/// Answers, and requests the shutdown from main. Connections finish their current request, so the
/// response is sent before it.
pub async fn exit_vm(
    app: &AppState,
    ctx: &RequestContext<'_>,
    body: RequestBody,
) -> Result<HttpResponse, Problem> {
    read_nothing(app, body).await?;
    ctx.scope(&app.shard_client.reference()).authorize_all()?;
    (app.send_event)(HttpEvent::ExitRequested);
    Ok(HttpResponse::empty())
}
