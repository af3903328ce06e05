//! Why a request of a FIX client comes to nothing: a reason of the platform, or one that only a FIX message can give.

use pitlane_engine::reason::Reason;

use crate::words::{cxl_rej_reason, ord_rej_reason};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    Platform(Reason),
    SideNotTaken,
    TypeNotTaken,
    TifNotTaken,
    SecurityDiffers,
    SideDiffers,
    AccountDiffers,
    TypeDiffers,
}

impl From<Reason> for Why {
    fn from(reason: Reason) -> Why {
        Why::Platform(reason)
    }
}

impl Why {
    /// Stable and machine-readable, in the style of [`Reason::code`].
    pub fn code(self) -> &'static str {
        match self {
            Why::Platform(reason) => reason.code(),
            Why::SideNotTaken => "side-not-taken",
            Why::TypeNotTaken => "type-not-taken",
            Why::TifNotTaken => "tif-not-taken",
            Why::SecurityDiffers => "security-differs",
            Why::SideDiffers => "side-differs",
            Why::AccountDiffers => "account-differs",
            Why::TypeDiffers => "type-differs",
        }
    }

    pub fn words(self) -> &'static str {
        match self {
            Why::Platform(reason) => reason.words(),
            Why::SideNotTaken => "only buy (1) and sell (2) are taken",
            Why::TypeNotTaken => "the order type is not one of this session's",
            Why::TifNotTaken => "the time in force is not taken",
            Why::SecurityDiffers => "the instrument is not the order's",
            Why::SideDiffers => "the side is not the order's",
            Why::AccountDiffers => "the account is not the order's",
            Why::TypeDiffers => "the order type cannot be changed",
        }
    }

    /// OrdRejReason (103).
    pub fn ord_rej_reason(self) -> u32 {
        match self {
            Why::Platform(reason) => ord_rej_reason(reason),
            Why::SideNotTaken | Why::TypeNotTaken | Why::TifNotTaken => 11,
            Why::SecurityDiffers | Why::SideDiffers | Why::AccountDiffers | Why::TypeDiffers => 99,
        }
    }

    /// CxlRejReason (102).
    pub fn cxl_rej_reason(self) -> u32 {
        match self {
            Why::Platform(reason) => cxl_rej_reason(reason),
            _ => 99,
        }
    }
}
