//! The operator's calls: the kill switch, and the shutdown.

use pitlane_engine::command::Scope;
use pitlane_engine::directive::Directive;

use super::body::RequestBody;
use super::http_event::HttpEvent;
use super::lifecycle::Lifecycle;
use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::HttpResponse;
use super::trading::Trading;

/// Cancels every open order and refuses new ones, or lifts that. Answers when every shard that can
/// be reached has applied it; the response names the others.
pub(crate) async fn kill_switch(
    trading: &Trading,
    ctx: &RequestContext<'_>,
    on: bool,
    body: RequestBody,
) -> Result<HttpResponse, Problem> {
    body.read_nothing().await?;
    ctx.scope(&trading.shard_client.reference()).authorize_all()?;
    trading.send_directive(Directive::Kill { scope: Scope::Global, on }).await
}

/// Answers, and requests the shutdown from main. Connections finish their current request, so the
/// response is sent before it.
pub(crate) async fn exit_vm(
    trading: &Trading,
    lifecycle: &Lifecycle,
    ctx: &RequestContext<'_>,
    body: RequestBody,
) -> Result<HttpResponse, Problem> {
    body.read_nothing().await?;
    ctx.scope(&trading.shard_client.reference()).authorize_all()?;
    lifecycle.send_event(HttpEvent::ExitRequested);
    Ok(HttpResponse::empty())
}
