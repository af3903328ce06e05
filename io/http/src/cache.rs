//! `POST /rest/cache/clear-all`: reloads the reference data from disk, and rebuilds every copy.
//! Orders and positions are untouched; invalid data change nothing.

use pitlane_engine::command::CommandKind;

use super::app_state::AppState;
use super::body::RequestBody;
use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::HttpResponse;

pub(crate) async fn clear_all(
    app: &AppState,
    ctx: &RequestContext<'_>,
    body: RequestBody,
) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    body.read_nothing().await?;
    ctx.scope(&app.trading.shard_client.reference()).authorize_all()?;
    app.trading.check_open()?;
    let _guard = app.reloads.begin()?;
    let reloaded = app.reloads.reload(&app.lifecycle, app.settings.answer_timeout).await?;
    if reloaded.name != app.ref_data.cache().name {
        app.trading.execute(CommandKind::Reference { name: reloaded.name }).await?;
        app.set_reference(reloaded.reference.clone());
        app.reloads.forward(&reloaded);
    }
    app.trading.execute(CommandKind::Snapshot { port: app.trading.shard_client.port() }).await
}
