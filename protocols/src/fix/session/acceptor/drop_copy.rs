//! Copies of reports about orders of other sources, for a session that only watches.
//!
//! Rules: docs/fix-rules.md#drop-copy.

use pitlane_engine::event::Event;
use pitlane_engine::id::ShardId;
use pitlane_engine::time::Timestamp;

use super::Acceptor;
use super::reports::has_number;
use crate::fix::drop_copy::CopiedReport;
use crate::fix::msg_type;
use crate::fix::report;
use crate::fix::session::layer::SessionLayer;
use crate::fix::store::ReportedEvent;
use crate::fix::tag::prefix;

impl Acceptor {
    /// Sends a copy, and stores the number of its event with it. A copy of a `missed` event, from
    /// before a restart, is sent if the store has none.
    pub(in crate::fix::session) fn copy_report(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        shard: ShardId,
        event: &Event,
        copied: &CopiedReport,
        missed: bool,
    ) {
        if missed && event.seq <= layer.sequence.last_reported_event(shard) {
            return;
        }
        let (profile, version) = (layer.settings.profile, layer.settings.version);
        let exec_id = event.exec_id(layer.settings.instance, shard);
        let fields = copied.fields(event.at, exec_id);
        layer.sequence.set_cause(has_number(event).then_some(ReportedEvent { shard, seq: event.seq }));
        _ = layer.send_app(now, msg_type::EXECUTION_REPORT, |draft| {
            draft.text(prefix::ON_BEHALF_OF_COMP_ID, copied.sender.as_str().as_bytes());
            if !copied.login.is_empty() {
                draft.text(prefix::ON_BEHALF_OF_SUB_ID, copied.login.as_str().as_bytes());
            }
            report::execution(draft, profile, &self.reference, &copied.root, &copied.terms, &fields);
            if let Some(special) = &copied.special {
                report::special_terms(draft, special);
            }
            if version.has_copy_msg_indicator() {
                draft.code(prefix::COPY_MSG_INDICATOR, b'Y');
            }
        });
        layer.sequence.set_cause(None);
    }
}
