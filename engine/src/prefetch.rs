//! Tells the processor which memory is needed next, so that a miss costs less waiting. It changes no
//! result: the processor may ignore it.

pub use pitlane_sys::prefetch as fetch;
