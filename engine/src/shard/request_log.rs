//! Who sends requests: the known senders, the sender and the special terms of the current command,
//! the ids used on the trading day, and the newest anchor of the audit log.

use crate::command::AuditAnchor;
use crate::id::{IntId, Source};
use crate::pages::LargePages;
use crate::sender::{SenderId, SenderTable};
use crate::terms::{AnnouncedTerms, SpecialTerms};
use crate::used_ids::{USED_IDS_MAX, UsedIdLog};

#[derive(Debug)]
pub(super) struct RequestLog {
    pub senders: SenderTable,
    pub used_ids: UsedIdLog,
    /// Newest anchor of the audit log known to this shard.
    pub audit_anchor: Option<AuditAnchor>,
    /// Special terms whose request has not arrived yet.
    pub announced: AnnouncedTerms,
    /// Sender of the current command.
    current: SenderId,
    /// Special terms of the current request, valid if its terms say that there are some.
    pub special: Option<SpecialTerms>,
}

impl RequestLog {
    pub(super) fn new(pages: LargePages) -> RequestLog {
        RequestLog::restored(SenderTable::default(), UsedIdLog::new(USED_IDS_MAX, pages), None)
    }

    pub(super) fn restored(
        senders: SenderTable,
        used_ids: UsedIdLog,
        audit_anchor: Option<AuditAnchor>,
    ) -> RequestLog {
        RequestLog {
            senders,
            used_ids,
            audit_anchor,
            announced: AnnouncedTerms::default(),
            current: SenderId::INTERNAL,
            special: None,
        }
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

    /// Takes the special terms that were sent before the current request.
    #[cold]
    pub(super) fn take_special(&mut self, source: Source, token: u32) {
        self.special = self.announced.take(source, token);
    }

    /// Returns the sender of the current command.
    #[inline]
    pub(super) fn sender(&self) -> SenderId {
        self.current
    }
}
