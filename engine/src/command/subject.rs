//! What a command is about. The question has one list of all commands, so that a new command cannot
//! be forgotten.

use super::CommandKind;
use crate::id::{IntId, OrderHandle};

impl CommandKind {
    /// Returns the order that a client asks to change or to cancel, and the id of the request.
    pub fn request(&self) -> Option<(OrderHandle, IntId)> {
        match self {
            CommandKind::Modify { order, id, .. } | CommandKind::Cancel { order, id } => Some((*order, *id)),
            CommandKind::Submit { .. }
            | CommandKind::Close { .. }
            | CommandKind::Subscribe { .. }
            | CommandKind::Quote { .. }
            | CommandKind::Trade { .. }
            | CommandKind::Tick { .. }
            | CommandKind::Level { .. }
            | CommandKind::VenueLevels(_)
            | CommandKind::VenueBook { .. }
            | CommandKind::Report { .. }
            | CommandKind::Adapter { .. }
            | CommandKind::Transaction(_)
            | CommandKind::Expire { .. }
            | CommandKind::ResetPositions
            | CommandKind::ResetCash
            | CommandKind::Limits { .. }
            | CommandKind::Restrict { .. }
            | CommandKind::Kill { .. }
            | CommandKind::Phase { .. }
            | CommandKind::Halt { .. }
            | CommandKind::Budget(_)
            | CommandKind::Session { .. }
            | CommandKind::TradingDay { .. }
            | CommandKind::Timer
            | CommandKind::Watch { .. }
            | CommandKind::Snapshot { .. }
            | CommandKind::Reference { .. }
            | CommandKind::Validate { .. }
            | CommandKind::Direct { .. }
            | CommandKind::Schedule { .. }
            | CommandKind::Expiry { .. }
            | CommandKind::Sender { .. }
            | CommandKind::AuditAnchor(_)
            | CommandKind::SpecialTerms(_)
            | CommandKind::CancelOrders { .. } => None,
        }
    }

    /// Returns whether the journal stores the command. A command that it does not store has no
    /// number, and changes nothing that a restart must restore.
    #[inline]
    pub fn is_stored(&self) -> bool {
        !matches!(self, CommandKind::VenueLevels(_))
    }
}
