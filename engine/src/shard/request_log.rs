//! Who sends requests: the known senders, the sender of the current command, the ids used on the
//! trading day, and the newest anchor of the audit log.

use crate::command::AuditAnchor;
use crate::id::{IntId, Source};
use crate::sender::{SenderId, SenderTable};
use crate::used_ids::{USED_IDS_MAX, UsedIdLog};

#[derive(Debug)]
pub(super) struct RequestLog {
    pub senders: SenderTable,
    pub used_ids: UsedIdLog,
    /// Newest anchor of the audit log known to this shard.
    pub audit_anchor: Option<AuditAnchor>,
    /// Sender of the current command.
    current: SenderId,
}

impl RequestLog {
    pub(super) fn new() -> RequestLog {
        RequestLog::restored(SenderTable::default(), UsedIdLog::new(USED_IDS_MAX), None)
    }

    pub(super) fn restored(
        senders: SenderTable,
        used_ids: UsedIdLog,
        audit_anchor: Option<AuditAnchor>,
    ) -> RequestLog {
        RequestLog { senders, used_ids, audit_anchor, current: SenderId::INTERNAL }
    }

    /// Starts a command that no sender has sent.
    #[inline]
    pub(super) fn begin_internal(&mut self) {
        self.current = SenderId::INTERNAL;
    }

    /// Starts a request of a sender, and records the id of the request.
    #[inline]
    pub(super) fn begin_request(&mut self, sender: SenderId, source: Source, id: &IntId) {
        self.current = sender;
        self.used_ids.push(source, id);
    }

    /// Continues a request that this sender has sent before.
    pub(super) fn continue_request(&mut self, sender: SenderId) {
        self.current = sender;
    }

    /// Returns the sender of the current command.
    #[inline]
    pub(super) fn sender(&self) -> SenderId {
        self.current
    }
}
