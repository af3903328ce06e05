//! Reasons to refuse a request of a FIX client: a reason of the platform, or one that only a FIX
//! message can give.

use pitlane_engine::reason::Reason;

use crate::codes::{cxl_rej_reason, ord_rej_reason};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderRejectReason {
    Platform(Reason),
    SideNotTaken,
    TypeNotTaken,
    TifNotTaken,
    SecurityDiffers,
    SideDiffers,
    AccountDiffers,
    TypeDiffers,
    RequestTypeNotTaken,
    SessionOrderLimit,
}

impl From<Reason> for OrderRejectReason {
    fn from(reason: Reason) -> OrderRejectReason {
        OrderRejectReason::Platform(reason)
    }
}

impl OrderRejectReason {
    /// Returns a stable, machine-readable code in the style of [`Reason::code`].
    pub fn code(self) -> &'static str {
        match self {
            OrderRejectReason::Platform(reason) => reason.code(),
            OrderRejectReason::SideNotTaken => "side-not-taken",
            OrderRejectReason::TypeNotTaken => "type-not-taken",
            OrderRejectReason::TifNotTaken => "tif-not-taken",
            OrderRejectReason::SecurityDiffers => "security-differs",
            OrderRejectReason::SideDiffers => "side-differs",
            OrderRejectReason::AccountDiffers => "account-differs",
            OrderRejectReason::TypeDiffers => "type-differs",
            OrderRejectReason::RequestTypeNotTaken => "request-type-not-taken",
            OrderRejectReason::SessionOrderLimit => "session-order-limit",
        }
    }

    pub fn text(self) -> &'static str {
        match self {
            OrderRejectReason::Platform(reason) => reason.text(),
            OrderRejectReason::SideNotTaken => "only buy (1) and sell (2) are taken",
            OrderRejectReason::TypeNotTaken => "the order type is not one of this session's",
            OrderRejectReason::TifNotTaken => "the time in force is not supported",
            OrderRejectReason::SecurityDiffers => "the instrument is not the order's",
            OrderRejectReason::SideDiffers => "the side is not the order's",
            OrderRejectReason::AccountDiffers => "the account is not the order's",
            OrderRejectReason::TypeDiffers => "the order type cannot be changed",
            OrderRejectReason::RequestTypeNotTaken => {
                "the request must be for a security (1) or for all orders (7)"
            }
            OrderRejectReason::SessionOrderLimit => {
                "the session has as many orders as its setting orders_max permits"
            }
        }
    }

    /// Returns OrdRejReason (103).
    pub fn ord_rej_reason(self) -> u32 {
        match self {
            OrderRejectReason::Platform(reason) => ord_rej_reason(reason),
            OrderRejectReason::SessionOrderLimit => 3,
            OrderRejectReason::SideNotTaken
            | OrderRejectReason::TypeNotTaken
            | OrderRejectReason::TifNotTaken => 11,
            OrderRejectReason::SecurityDiffers
            | OrderRejectReason::SideDiffers
            | OrderRejectReason::AccountDiffers
            | OrderRejectReason::TypeDiffers
            | OrderRejectReason::RequestTypeNotTaken => 99,
        }
    }

    /// Returns MassCancelRejectReason (532).
    pub fn mass_cancel_reject_reason(self) -> u32 {
        const NOT_SUPPORTED: u32 = 0;
        const UNKNOWN_SECURITY: u32 = 1;
        const OTHER: u32 = 99;
        match self {
            OrderRejectReason::RequestTypeNotTaken => NOT_SUPPORTED,
            OrderRejectReason::Platform(Reason::UnknownSecurity) => UNKNOWN_SECURITY,
            OrderRejectReason::Platform(_)
            | OrderRejectReason::SideNotTaken
            | OrderRejectReason::TypeNotTaken
            | OrderRejectReason::TifNotTaken
            | OrderRejectReason::SecurityDiffers
            | OrderRejectReason::SideDiffers
            | OrderRejectReason::AccountDiffers
            | OrderRejectReason::TypeDiffers
            | OrderRejectReason::SessionOrderLimit => OTHER,
        }
    }

    /// Returns CxlRejReason (102).
    pub fn cxl_rej_reason(self) -> u32 {
        match self {
            OrderRejectReason::Platform(reason) => cxl_rej_reason(reason),
            OrderRejectReason::SideNotTaken
            | OrderRejectReason::TypeNotTaken
            | OrderRejectReason::TifNotTaken
            | OrderRejectReason::SecurityDiffers
            | OrderRejectReason::SideDiffers
            | OrderRejectReason::AccountDiffers
            | OrderRejectReason::TypeDiffers
            | OrderRejectReason::RequestTypeNotTaken
            | OrderRejectReason::SessionOrderLimit => 99,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const REASONS: [OrderRejectReason; 11] = [
        OrderRejectReason::Platform(Reason::UnknownOrder),
        OrderRejectReason::Platform(Reason::UnknownSecurity),
        OrderRejectReason::SideNotTaken,
        OrderRejectReason::TypeNotTaken,
        OrderRejectReason::TifNotTaken,
        OrderRejectReason::SecurityDiffers,
        OrderRejectReason::SideDiffers,
        OrderRejectReason::AccountDiffers,
        OrderRejectReason::TypeDiffers,
        OrderRejectReason::RequestTypeNotTaken,
        OrderRejectReason::SessionOrderLimit,
    ];

    #[test]
    fn each_reason_has_a_code_and_a_text_of_its_own() {
        let codes: BTreeSet<&str> = REASONS.map(OrderRejectReason::code).into();
        let texts: BTreeSet<&str> = REASONS.map(OrderRejectReason::text).into();
        assert_eq!((codes.len(), texts.len()), (REASONS.len(), REASONS.len()));
        assert!(codes.iter().all(|code| code.contains('-')) && texts.iter().all(|text| text.contains(' ')));
        assert_eq!(OrderRejectReason::from(Reason::UnknownOrder).code(), Reason::UnknownOrder.code());
    }

    /// Columns: OrdRejReason, CxlRejReason and MassCancelRejectReason.
    #[test]
    fn reasons_have_the_numbers_of_fix() {
        for (reason, numbers) in [
            (OrderRejectReason::Platform(Reason::UnknownOrder), [5, 1, 99]),
            (OrderRejectReason::Platform(Reason::UnknownSecurity), [1, 99, 1]),
            (OrderRejectReason::TifNotTaken, [11, 99, 99]),
            (OrderRejectReason::SideDiffers, [99, 99, 99]),
            (OrderRejectReason::RequestTypeNotTaken, [99, 99, 0]),
            (OrderRejectReason::SessionOrderLimit, [3, 99, 99]),
        ] {
            let found =
                [reason.ord_rej_reason(), reason.cxl_rej_reason(), reason.mass_cancel_reject_reason()];
            assert_eq!(found, numbers, "{reason:?}");
        }
    }
}
