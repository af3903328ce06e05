//! A session with a venue as the adapter that shards see.

use pitlane_engine::command::CommandKind;
use pitlane_engine::event::Instruction;
use pitlane_engine::id::ShardId;
use pitlane_engine::terms::SpecialTerms;
use pitlane_engine::time::Timestamp;

use super::FixSession;
use crate::fix::venue::profile::LogonSigner;
use crate::venue::{InboundReport, VenueReports};

impl FixSession {
    /// Sets the key that signs Logons, where the venue wants that.
    pub fn set_logon_signer(&mut self, signer: Box<dyn LogonSigner>) {
        if let Some(initiator) = self.role.initiator_mut() {
            initiator.set_signer(signer);
        }
    }

    /// Returns why a book of the venue is requested again, once.
    pub fn take_price_fault(&mut self) -> Option<String> {
        self.role.initiator_mut()?.take_price_fault()
    }
}

impl VenueReports for FixSession {
    fn handle_instruction(
        &mut self,
        now: Timestamp,
        shard: ShardId,
        seq: u64,
        instruction: &Instruction,
        special: Option<&SpecialTerms>,
    ) {
        FixSession::handle_instruction(self, now, shard, seq, instruction, special);
    }

    fn poll_report(&mut self, now: Timestamp) -> Option<InboundReport> {
        FixSession::poll_report(self, now)
    }

    fn poll_price(&mut self) -> Option<CommandKind> {
        FixSession::poll_price(self)
    }

    fn handle_stored(&mut self, token: u32) {
        FixSession::handle_stored(self, token);
    }

    fn synchronizations(&self) -> Option<u64> {
        FixSession::synchronizations(self)
    }
}
