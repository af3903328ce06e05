//! The simulated feed.
