//! Requests of a strategy by id, in progress or answered, so that a repeated request has no second
//! effect.

use std::collections::{BTreeMap, VecDeque};

use pitlane_engine::command::CommandKind;
use pitlane_engine::event::Event;
use pitlane_engine::id::{IntId, OrderHandle};
use pitlane_engine::terms::Terms;

use super::connections::ReplyAddress;

/// Maximum number of ids remembered after their answer, by strategy. A strategy retries within
/// seconds; older orders are in the view.
const ANSWERED_MAX: usize = 65_536;

/// Maximum number of requests in progress, by strategy: as many as its process awaits. Requests
/// beyond it must be retried.
const IN_PROGRESS_MAX: usize = 16_384;

/// A request, as far as needed to distinguish it from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RemoteOrderRequest {
    Submit(Terms),
    /// A cancel or a modification.
    About(OrderHandle),
}

impl RemoteOrderRequest {
    /// Returns the request and its id; `None` if it is about no order.
    pub(crate) fn of(body: &CommandKind) -> Option<(IntId, RemoteOrderRequest)> {
        if let CommandKind::Submit { id, terms } = body {
            return Some((*id, RemoteOrderRequest::Submit(core_of(terms))));
        }
        body.request().map(|(order, id)| (id, RemoteOrderRequest::About(order)))
    }

    /// Returns the request that an event answers.
    fn answered(event: &Event) -> Option<(IntId, RemoteOrderRequest)> {
        if let Some(order) = event.body.answered_order() {
            return Some((order.id, RemoteOrderRequest::Submit(core_of(&order.terms))));
        }
        event.body.answered_request().map(|(order, id)| (id, RemoteOrderRequest::About(order)))
    }
}

/// Returns the terms that identify an order, without those that a shard fills in.
fn core_of(terms: &Terms) -> Terms {
    let Terms { security, side, kind, qty, limit, stop, .. } = *terms;
    Terms { security, side, kind, qty, limit, stop, ..Terms::default() }
}

/// What is to be done with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestVerdict {
    New,
    /// It is in progress: the latest sender is answered.
    InProgress,
    /// Its result was sent.
    Answered,
    /// The id belongs to another request.
    Another,
}

#[derive(Debug, Default)]
pub(crate) struct RequestLog {
    in_progress: BTreeMap<IntId, (RemoteOrderRequest, Option<ReplyAddress>)>,
    answered: BTreeMap<IntId, RemoteOrderRequest>,
    /// The answered ids, oldest first.
    order: VecDeque<IntId>,
}

impl RequestLog {
    /// Decides about a request, and updates the reply address of one that is in progress.
    pub(crate) fn classify(
        &mut self,
        id: &IntId,
        request: RemoteOrderRequest,
        reply: Option<&ReplyAddress>,
    ) -> RequestVerdict {
        if let Some((known, reply_to)) = self.in_progress.get_mut(id) {
            if *known != request {
                return RequestVerdict::Another;
            }
            *reply_to = reply.cloned();
            return RequestVerdict::InProgress;
        }
        match self.answered.get(id) {
            Some(known) if *known == request => RequestVerdict::Answered,
            Some(_) => RequestVerdict::Another,
            None => RequestVerdict::New,
        }
    }

    pub(crate) fn sent(&mut self, id: IntId, request: RemoteOrderRequest, reply: Option<ReplyAddress>) {
        self.in_progress.insert(id, (request, reply));
    }

    /// Returns whether there is no room for another request.
    pub(crate) fn is_full(&self) -> bool {
        self.in_progress.len() >= IN_PROGRESS_MAX
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.in_progress.is_empty()
    }

    /// Handles an event of the strategy; returns the reply address of the request that it answers.
    pub(crate) fn handle_event(&mut self, event: &Event) -> Option<ReplyAddress> {
        let (id, request) = RemoteOrderRequest::answered(event)?;
        let waiting = self.in_progress.remove(&id);
        if self.answered.insert(id, request).is_none() {
            self.order.push_back(id);
        }
        if self.order.len() > ANSWERED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.answered.remove(&oldest);
        }
        waiting.and_then(|(_, reply)| reply)
    }

    /// Removes a request that failed without being stored: it may be sent again.
    pub(crate) fn forget(&mut self, id: &IntId) -> Option<ReplyAddress> {
        self.in_progress.remove(id).and_then(|(_, reply)| reply)
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::event::{EventKind, ExecType, OrderTerms};
    use pitlane_engine::id::Source;
    use pitlane_engine::number::Qty;
    use pitlane_engine::reason::Reason;
    use pitlane_engine::terms::Status;
    use pitlane_engine::time::Timestamp;

    use super::*;

    fn entered(id: IntId, terms: Terms) -> Event {
        let order = OrderTerms {
            order: OrderHandle::NONE,
            id,
            orig_id: IntId::NONE,
            source: Source::default(),
            what: ExecType::Entered,
            status: Status::PendingNew,
            reason: Reason::None,
            sender: Default::default(),
            terms,
        };
        Event { seq: 1, at: Timestamp(1), body: EventKind::Order(order) }
    }

    #[test]
    fn requests_in_progress_and_remembered_answers_are_bounded() {
        let (mut log, terms) = (RequestLog::default(), Terms::default());
        let id = |number: usize| IntId::numbered(b's', number as u64);
        let request = RemoteOrderRequest::Submit(core_of(&terms));
        for number in 0..IN_PROGRESS_MAX {
            assert!(!log.is_full());
            log.sent(id(number), request, None);
        }
        assert!(log.is_full());
        log.handle_event(&entered(id(0), terms));
        assert!(!log.is_full(), "what was answered makes room");
        for number in 1..=ANSWERED_MAX {
            log.handle_event(&entered(id(number), terms));
        }
        assert_eq!((log.answered.len(), log.order.len()), (ANSWERED_MAX, ANSWERED_MAX));
        assert_eq!(log.classify(&id(0), request, None), RequestVerdict::New, "the oldest was forgotten");
        assert_eq!(log.classify(&id(1), request, None), RequestVerdict::Answered);
    }

    #[test]
    fn a_repeated_request_is_recognised() {
        let mut log = RequestLog::default();
        let (id, terms) = (IntId::numbered(b's', 1), Terms { qty: Qty::from_raw(5), ..Terms::default() });
        let request = RemoteOrderRequest::Submit(core_of(&terms));
        let address = |number| ReplyAddress::Connection { connection: 1, number };
        let (first, second) = (address(1), address(2));
        assert_eq!(log.classify(&id, request, Some(&first)), RequestVerdict::New);
        log.sent(id, request, Some(first));
        assert_eq!(log.classify(&id, request, Some(&second)), RequestVerdict::InProgress);
        assert_eq!(
            log.classify(&id, RemoteOrderRequest::Submit(Terms::default()), None),
            RequestVerdict::Another
        );
        assert_eq!(log.handle_event(&entered(id, terms)), Some(second));
        assert!(log.is_idle());
        assert_eq!(log.classify(&id, request, None), RequestVerdict::Answered);
        assert_eq!(
            log.classify(&id, RemoteOrderRequest::About(OrderHandle::NONE), None),
            RequestVerdict::Another
        );
        // Events that the journal has from before the start count as well.
        let mut later = RequestLog::default();
        assert_eq!(later.handle_event(&entered(id, terms)), None);
        assert_eq!(later.classify(&id, request, None), RequestVerdict::Answered);
    }
}
