mod framing;
pub mod floor;
