//! Prefetching: hints to the processor which memory is needed next, so that a cache miss costs
//! less. It changes no result: the processor may ignore it.

pub(crate) use pitlane_sys::prefetch as fetch;
