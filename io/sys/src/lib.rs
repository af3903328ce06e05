//! System functions that safe Rust cannot express: the only crate of the workspace with `unsafe`.
//!
//! | module | purpose | users |
//! |---|---|---|
//! | [`prefetch`](fn@prefetch) | prefetches one cache line | `engine`, `bench` |
//! | `map` | maps a file, copies into and out of it | `io` (journal, FIX stores) |
//! | `pages` | requests large pages | `io`, as a hook for the engine |
//! | `affinity` | pins a thread to a core | `io`, `bench` |
//! | `scheduling` | class, nice value and time slice of a thread | `io` |
//! | `busy_poll` | busy-poll parameters of an epoll descriptor | `io/net` |
//! | `ring` | io_uring with its buffers: receive, send, poll, in one call | `io/net` |
//! | `receive_stamp` | times at which the kernel received bytes | `bench` |
//!
//! Every function is safe to call with any argument; each `unsafe` block says why. Calls go through
//! `rustix`, or `libc` where `rustix` lacks them; where `rustix` has a safe function there is no
//! `unsafe` here. The feature `os` (on by
//! default) enables everything but `prefetch`; the engine is built without it and makes no system
//! call.
//!
//! `make miri` runs the tests under Miri. It has no files, sockets or rings, so tests that
//! need them run only natively; copying into and out of memory that Rust does not own is tested on
//! heap memory, as are the buffers of `ring`.

#![cfg_attr(not(feature = "os"), no_std)]

#[cfg(feature = "os")]
pub mod affinity;
#[cfg(feature = "os")]
pub mod busy_poll;
#[cfg(feature = "os")]
pub mod map;
#[cfg(feature = "os")]
pub mod pages;
mod prefetch;
#[cfg(feature = "os")]
pub mod receive_stamp;
#[cfg(feature = "os")]
pub mod scheduling;
#[cfg(feature = "os")]
mod span;
#[cfg(all(feature = "os", target_os = "linux"))]
mod memory;
#[cfg(all(feature = "os", target_os = "linux"))]
pub mod ring;

pub use prefetch::prefetch;
