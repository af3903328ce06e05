//! The book of a security for clients that poll: the price levels as a snapshot, or what has
//! changed since a sequence number.
//!
//! ```text
//! request ─► DepthWatches: is it watched? ─ no ─► watch ─► shard ─► SNAPSHOT ─► broker of this thread
//!                              └─ yes ─► answer from the updates that the broker holds
//! ```
//!
//! Rules: docs/stomp.md#depth.

use std::rc::Rc;

use pitlane_engine::id::SecurityId;
use tokio::time::timeout;

use super::depth_watches::DepthWaiter;
use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::HttpResponse;
use super::trading::Trading;
use super::websocket_broker::WebSocketBroker;

const SINCE: &str = "since";

pub(crate) async fn since(
    ws_broker: &Rc<WebSocketBroker>,
    trading: &Trading,
    ctx: &RequestContext<'_>,
) -> Result<HttpResponse, Problem> {
    let query = ctx.query(&[SINCE])?;
    let since = match query.get(SINCE) {
        None => None,
        Some(text) => Some(sequence_number(text).ok_or_else(|| {
            Problem::bad_request("bad-query", "`since` must be the `seq` of an earlier answer")
        })?),
    };
    let reference = trading.shard_client.reference();
    let id = ctx.id().and_then(|id| u32::try_from(id).ok()).map(SecurityId);
    let security = id.filter(|id| reference.security(*id).is_some());
    let unknown = || Problem::unknown("unknown-security", "there is no security with this id");
    let security = security.ok_or_else(unknown)?;
    let body = timeout(trading.answer_timeout, read(ws_broker, security, since)).await;
    body.map(|bytes| HttpResponse::from_json(bytes.into())).map_err(|_elapsed| Problem::busy())
}

fn sequence_number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|octet| octet.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

/// Waits until the book is known, and returns what the client misses.
async fn read(ws_broker: &Rc<WebSocketBroker>, security: SecurityId, since: Option<u64>) -> Vec<u8> {
    let _waiter = DepthWaiter::begin(&ws_broker.depth_watches);
    loop {
        // It must be ready before the book is looked at, so that no change is missed.
        let changed = ws_broker.depth_watches.changed();
        if let Some(body) = ws_broker.depth(security, since) {
            return body;
        }
        changed.await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_number_has_digits_only() {
        assert_eq!(sequence_number("17"), Some(17));
        for bad in ["", "-1", "+1", "1.0", "x", "99999999999999999999"] {
            assert_eq!(sequence_number(bad), None, "{bad}");
        }
    }
}
