//! The sender of a request, once it is identified.

use pitlane_auth::Identity;

/// The sender of a request, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestCaller {
    Known(Identity),
    /// The sender of a public call, without credentials.
    Anonymous,
}
