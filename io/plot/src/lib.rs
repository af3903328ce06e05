//! Plots as SVG for the reports of simulations and benchmarks, without a script and without a
//! dependency: a drawing, and axes that map values to positions in it.

pub mod axis;
pub mod svg;
