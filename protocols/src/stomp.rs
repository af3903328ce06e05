pub mod frame;
pub mod escape;
pub mod decode;
pub mod inbox;
pub mod topic;
pub mod pattern;
pub mod index;
