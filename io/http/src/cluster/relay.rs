//! Commands of our ports for the shards of another server: forwarded, or answered in its place
//! while it is away.

use pitlane_engine::command::{Command, CommandKind};
use pitlane_engine::event::{EventKind, ExecType, OrderTerms, RequestKind, RequestRefusal};
use pitlane_engine::id::{IntId, OrderHandle, ShardId, Source};
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::Status;
use pitlane_engine::time::Timestamp;
use pitlane_engine::view::View;
use pitlane_engine::worker::refusal;

use super::peer::{ClusterPeer, PeerPhase, RoutedCommand};
use crate::shard_client::ShardClient;
use crate::strategy_snapshot::terms_of;

/// Maximum number of commands of our ports taken in one cycle, by shard.
const COMMANDS_PER_CYCLE_MAX: usize = 256;

/// Takes commands of our ports for another server. Commands that do not concern the owner are
/// handled here; the others are sent to it or refused.
pub(super) fn take_commands(now: Timestamp, peer: &mut ClusterPeer, shard_client: &ShardClient) -> usize {
    let mut taken = 0;
    for at in 0..peer.shards.len() {
        for _ in 0..COMMANDS_PER_CYCLE_MAX {
            if peer.is_up() && !peer.has_room() {
                return taken;
            }
            let is_here = peer.is_up();
            let shard = &mut peer.shards[at];
            let id = shard.id();
            let Some(command) = shard.poll_command() else { break };
            taken += 1;
            if matches!(command.body, CommandKind::Sender { .. }) {
                shard.store_sender(command);
                if is_here {
                    peer.send_senders();
                }
                continue;
            }
            let (for_owner, wants) = shard.handle_locally(now, command);
            if wants {
                peer.wants_changed();
            }
            let Some(command) = for_owner else { continue };
            if !(is_here && peer.route(id, command)) {
                refuse(now, peer, id, &command, &shard_client.view());
            }
        }
    }
    taken
}

/// Answers in the owner's place that it is down.
fn refuse(now: Timestamp, peer: &mut ClusterPeer, shard: ShardId, command: &Command, view: &View) {
    // Special terms have no answer of their own: the request behind them has one.
    if matches!(command.body, CommandKind::SpecialTerms(_)) {
        return;
    }
    let reason = Reason::OwnerAway;
    let source = command.source;
    let is_cancel = matches!(command.body, CommandKind::Cancel { .. });
    let request = if is_cancel { RequestKind::Cancel } else { RequestKind::Replace };
    let body = match command.body.request() {
        Some((order, id)) => refused(order, id, request, source, view),
        None => refusal(command, reason),
    };
    peer.counts.refused += 1;
    if let Some(shard) = peer.shard_mut(shard) {
        shard.respond(source.port, now, body);
    }
}

fn refused(
    order: OrderHandle,
    request_id: IntId,
    request: RequestKind,
    source: Source,
    view: &View,
) -> EventKind {
    let known = view.order(order);
    let (id, status) = known.map_or((IntId::NONE, Status::Rejected), |known| (known.id, known.status));
    EventKind::Refused(RequestRefusal {
        order,
        id,
        request_id,
        source,
        request,
        status,
        reason: Reason::OwnerAway,
    })
}

/// Marks the owner as up once all that it has sent is delivered. Commands to an earlier incarnation
/// that it has no result of never took effect.
pub(super) fn mark_up(now: Timestamp, peer: &mut ClusterPeer, view: &View) {
    tracing::info!(member = peer.name, "a member is up");
    peer.phase = PeerPhase::Up;
    peer.send_senders();
    peer.received_before_start = None;
    for RoutedCommand { shard, command, .. } in peer.take_lost() {
        let order = if let CommandKind::Submit { id, .. } | CommandKind::Close { id, .. } = command.body {
            view.orders_with_id(&id).into_iter().find(|order| order.source == command.source)
        } else {
            None
        };
        match order {
            // It was taken, and its report was lost when the owner restarted.
            Some(order) => {
                let entered =
                    OrderTerms { reason: Reason::ReportLost, ..terms_of(&order, ExecType::Entered) };
                if let Some(shard) = peer.shard_mut(shard) {
                    shard.respond(command.source.port, now, EventKind::Order(entered));
                }
            }
            None => refuse(now, peer, shard, &command, view),
        }
    }
}
