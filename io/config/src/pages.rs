//! Hook through which the engine's tables get large pages: the engine makes no system call itself.

use pitlane_engine::pages::LargePages;

/// Large pages where the system has them.
pub const LARGE_PAGES: LargePages = LargePages::new(pitlane_sys::pages::advise_huge);
