//! Reasons of a session to reject a message, with their texts.

/// SessionRejectReason (373).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum SessionRejectReason {
    InvalidTag = 0,
    RequiredTagMissing = 1,
    TagNotForMessage = 2,
    UndefinedTag = 3,
    NoValue = 4,
    ValueIncorrect = 5,
    IncorrectFormat = 6,
    CompIdProblem = 9,
    SendingTimeAccuracy = 10,
    InvalidMsgType = 11,
    TagTwice = 13,
    OutOfOrder = 14,
    GroupOutOfOrder = 15,
    GroupCount = 16,
    DelimiterInValue = 17,
    ApplVerIdUnsupported = 18,
    Other = 99,
}

impl SessionRejectReason {
    pub fn text(self) -> &'static str {
        match self {
            SessionRejectReason::InvalidTag => "Invalid tag number",
            SessionRejectReason::RequiredTagMissing => "Required tag missing",
            SessionRejectReason::TagNotForMessage => "Tag not defined for this message type",
            SessionRejectReason::UndefinedTag => "Undefined tag",
            SessionRejectReason::NoValue => "Tag specified without a value",
            SessionRejectReason::ValueIncorrect => "Value is incorrect (out of range) for this tag",
            SessionRejectReason::IncorrectFormat => "Incorrect data format for value",
            SessionRejectReason::CompIdProblem => "CompID problem",
            SessionRejectReason::SendingTimeAccuracy => "SendingTime accuracy problem",
            SessionRejectReason::InvalidMsgType => "Invalid MsgType",
            SessionRejectReason::TagTwice => "Tag appears more than once",
            SessionRejectReason::OutOfOrder => "Tag specified out of required order",
            SessionRejectReason::GroupOutOfOrder => "Repeating group fields out of order",
            SessionRejectReason::GroupCount => "Incorrect NumInGroup count for repeating group",
            SessionRejectReason::DelimiterInValue => "Non \"data\" value includes field delimiter",
            SessionRejectReason::ApplVerIdUnsupported => "Invalid/Unsupported Application Version",
            SessionRejectReason::Other => "Too many fields",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SessionRejectReason::{self, *};

    #[test]
    fn each_reason_has_a_text_of_its_own() {
        let reasons = [
            InvalidTag,
            RequiredTagMissing,
            TagNotForMessage,
            UndefinedTag,
            NoValue,
            ValueIncorrect,
            IncorrectFormat,
            CompIdProblem,
            SendingTimeAccuracy,
            InvalidMsgType,
            TagTwice,
            OutOfOrder,
            GroupOutOfOrder,
            GroupCount,
            DelimiterInValue,
            ApplVerIdUnsupported,
            Other,
        ];
        let texts: std::collections::BTreeSet<&str> = reasons.map(SessionRejectReason::text).into();
        assert_eq!(texts.len(), reasons.len());
        assert!(texts.iter().all(|text| text.contains(' ')));
    }
}
