//! The fields of an Execution Report that only the terms of its order determine, as they were
//! written last. Most orders have two reports in a row with the same terms, and most sessions trade
//! few securities: copying the bytes takes a fraction of writing them again.

use pitlane_engine::id::{AccountId, IntId, SecurityId};
use pitlane_engine::refdata::RefData;
use pitlane_engine::terms::Terms;

use super::encode::Draft;
use super::report::{self, ExecutionReport};
use crate::codes::FixProfile;

/// Bytes of fields that are kept: a long symbol, and all fields of an order's terms.
const KEPT_BYTES: usize = 256;

/// Invariant: the bytes are those that the fields have with the same reference data.
#[derive(Clone, Debug, Default)]
pub(super) struct TermsText {
    terms: Terms,
    /// Fields of `terms`: those of account and security, and the order's own.
    of_terms: FieldText,
    account: AccountId,
    security: SecurityId,
    /// Fields of account and security.
    of_instrument: FieldText,
}

impl TermsText {
    /// Forgets everything, because the reference data changes.
    pub(super) fn clear(&mut self) {
        *self = TermsText::default();
    }

    /// Writes an Execution Report, the same as [`report::execution`].
    pub(super) fn execution(
        &mut self,
        draft: &mut Draft,
        profile: FixProfile,
        reference: &RefData,
        (root, terms): (&IntId, &Terms),
        report: &ExecutionReport,
    ) {
        let write_terms = |draft: &mut Draft| self.write(draft, reference, terms);
        report::execution_with(draft, profile, write_terms, root, terms, report);
    }

    fn write(&mut self, draft: &mut Draft, reference: &RefData, terms: &Terms) {
        if !self.of_terms.is_empty() && self.terms == *terms {
            return draft.fields(self.of_terms.bytes());
        }
        let TermsText { of_terms, account, security, of_instrument, .. } = self;
        let written = draft.written_by(|draft| {
            if !of_instrument.is_empty() && (*account, *security) == (terms.account, terms.security) {
                draft.fields(of_instrument.bytes());
            } else {
                (*account, *security) = (terms.account, terms.security);
                let written =
                    draft.written_by(|draft| report::account_and_instrument(draft, reference, terms));
                of_instrument.keep(written);
            }
            report::order_terms(draft, terms);
        });
        of_terms.keep(written);
        self.terms = *terms;
    }
}

/// Bytes of some fields; empty if none are kept.
#[derive(Clone, Debug)]
struct FieldText {
    bytes: [u8; KEPT_BYTES],
    len: usize,
}

impl Default for FieldText {
    fn default() -> FieldText {
        FieldText { bytes: [0; KEPT_BYTES], len: 0 }
    }
}

impl FieldText {
    fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Keeps these bytes if they are known and not too many.
    #[inline]
    fn keep(&mut self, written: Option<&[u8]>) {
        self.len = 0;
        if let Some(written) = written
            && let Some(place) = self.bytes.get_mut(..written.len())
        {
            place.copy_from_slice(written);
            self.len = written.len();
        }
    }
}

#[cfg(test)]
mod tests;
