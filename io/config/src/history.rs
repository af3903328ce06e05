//! The history of the market: `[history]`.

use super::section::Section;

/// Longest time that ticks are kept: a month.
const TICKS_HOURS_MAX: u32 = 31 * 24;
/// Longest time that bars are kept: ten years.
const BARS_DAYS_MAX: u32 = 3_650;
/// Largest size of all files: 1 TiB, in MiB.
const SIZE_MB_MAX: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryConfig {
    pub on: bool,
    pub ticks_hours: u32,
    pub bars_1s_days: u32,
    pub bars_1m_days: u32,
    /// Bytes of all files.
    pub bytes_max: u64,
}

impl HistoryConfig {
    pub(super) fn read(section: &mut Section<'_>) -> HistoryConfig {
        HistoryConfig {
            on: section.flag("on"),
            ticks_hours: section.number("ticks_hours", 1..=TICKS_HOURS_MAX),
            // Bars in progress are built again from shorter ones, which must last that long.
            bars_1s_days: section.number("bars_1s_days", 1..=BARS_DAYS_MAX),
            bars_1m_days: section.number("bars_1m_days", 2..=BARS_DAYS_MAX),
            bytes_max: section.number::<u64>("size_mb_max", 64..=SIZE_MB_MAX) << 20,
        }
    }
}
