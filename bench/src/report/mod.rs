//! Results in files: each recording as `.hgrm` (which every HDR plotter reads), CSV (all
//! counts), JSON and SVG, in one folder with the conditions of its run.

pub mod bars;
pub mod counts;
pub mod curves;
pub mod folder;
pub mod hgrm;
pub mod page;
pub mod recording;
pub mod waterfall;
