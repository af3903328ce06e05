//! The versions of FIX that a session may use, and their differences at the edge of the codec: the
//! BeginString and the values that an older version does not have. [`super::dictionary`] has their
//! messages. The rest of a session is the same in all of them.
//!
//! | | 4.2 | 4.4 | 5.0 SP2 over FIXT 1.1 |
//! |---|---|---|---|
//! | BeginString (8) | FIX.4.2 | FIX.4.4 | FIXT.1.1 |
//! | application version | | | 1137=9 in the Logon, 1128 in a message |
//! | ExecTransType (20) | 0, 3 | | |
//! | ExecType (150) of a fill, of a status | 1 or 2, as 39 | F, I | F, I |
//!
//! Rules: docs/fix-rules.md#versions.

use super::fields::SessionRejectReason;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FixVersion {
    Fix42,
    #[default]
    Fix44,
    /// FIX 5.0 SP2 over FIXT 1.1.
    Fix50Sp2,
}

impl FixVersion {
    pub const ALL: [FixVersion; 3] = [FixVersion::Fix42, FixVersion::Fix44, FixVersion::Fix50Sp2];

    /// Returns BeginString (8).
    #[inline]
    pub const fn begin_string(self) -> &'static str {
        match self {
            FixVersion::Fix42 => "FIX.4.2",
            FixVersion::Fix44 => "FIX.4.4",
            FixVersion::Fix50Sp2 => "FIXT.1.1",
        }
    }

    /// Returns ApplVerID, by which a session over FIXT names the version of its application
    /// messages: DefaultApplVerID (1137) of its Logon, and ApplVerID (1128) of a message.
    pub const fn appl_ver_id(self) -> Option<&'static [u8]> {
        match self {
            FixVersion::Fix42 | FixVersion::Fix44 => None,
            FixVersion::Fix50Sp2 => Some(b"9"),
        }
    }

    /// Returns SessionRejectReason (373), if the version has a value for the reason. The text says
    /// it in any case.
    pub fn session_reject_reason(self, reason: SessionRejectReason) -> Option<u64> {
        let is_known = match self {
            FixVersion::Fix42 => reason as u64 <= SessionRejectReason::InvalidMsgType as u64,
            FixVersion::Fix44 | FixVersion::Fix50Sp2 => true,
        };
        is_known.then_some(reason as u64)
    }

    /// Returns BusinessRejectReason (380): "other" for a value that the version does not have.
    pub fn business_reject_reason(self, reason: u8) -> u8 {
        const OTHER: u8 = 0;
        const CONDITIONALLY_REQUIRED_MISSING: u8 = 5;
        match self {
            FixVersion::Fix42 if reason > CONDITIONALLY_REQUIRED_MISSING => OTHER,
            FixVersion::Fix42 | FixVersion::Fix44 | FixVersion::Fix50Sp2 => reason,
        }
    }

    /// Returns whether a Trading Session Status (h) can refuse a request.
    pub const fn rejects_by_trading_session_status(self) -> bool {
        !matches!(self, FixVersion::Fix42)
    }

    /// Returns whether a copy of a report has CopyMsgIndicator (797).
    pub const fn has_copy_msg_indicator(self) -> bool {
        !matches!(self, FixVersion::Fix42)
    }

    /// Returns whether an Order Mass Cancel Report has MassActionReportID (1369).
    pub const fn has_mass_action_report_id(self) -> bool {
        matches!(self, FixVersion::Fix50Sp2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_a_version_does_not_have_are_replaced_or_left_out() {
        let reasons = |reason| FixVersion::ALL.map(|version| version.session_reject_reason(reason));
        assert_eq!(reasons(SessionRejectReason::InvalidMsgType), [Some(11); 3]);
        assert_eq!(reasons(SessionRejectReason::TagTwice), [None, Some(13), Some(13)]);
        let business = |reason| FixVersion::ALL.map(|version| version.business_reject_reason(reason));
        assert_eq!((business(5), business(6)), ([5; 3], [0, 6, 6]));
    }

    #[test]
    fn a_later_version_has_more_fields() {
        assert_eq!(FixVersion::ALL.map(FixVersion::appl_ver_id), [None, None, Some(&b"9"[..])]);
        let rejects = FixVersion::ALL.map(FixVersion::rejects_by_trading_session_status);
        let indicators = FixVersion::ALL.map(FixVersion::has_copy_msg_indicator);
        assert_eq!((rejects, indicators), ([false, true, true], [false, true, true]));
        assert_eq!(FixVersion::ALL.map(FixVersion::has_mass_action_report_id), [false, false, true]);
    }
}
