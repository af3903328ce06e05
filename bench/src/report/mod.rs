//! Results that outlive the terminal: each recording as `.hgrm` (which every HDR plotter reads), JSON and SVG, in one folder with the
//! conditions it was taken under.

pub mod axis;
pub mod bars;
pub mod curves;
pub mod folder;
pub mod hgrm;
pub mod page;
pub mod recording;
pub mod svg;
pub mod waterfall;
