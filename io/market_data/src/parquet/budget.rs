//! How much may be read of a file: the work is bounded by the file's size, whatever its metadata
//! says.

/// Rows that any file may have: they are read in less than a second.
const ROWS_FREE: u64 = 1 << 20;
/// Rows beyond those, for each byte of the file. Runs of equal rows take no bytes at all, so a file
/// of some hundred bytes could contain billions of rows and take half a minute to read, or a day.
/// Recorded ticks have less than one row per byte.
const ROWS_PER_BYTE_MAX: u64 = 64;

/// Bytes that the pages of any file may have when they are decompressed, as those of other
/// compressed files.
const BYTES_FREE: u64 = 64 << 20;
/// Decompressed bytes beyond those, for each byte of the file. Recorded ticks have less than ten.
const BYTES_PER_BYTE_MAX: u64 = 256;

/// Rows and decompressed bytes that may still be read of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadBudget {
    length: u64,
    rows_left: u64,
    bytes_left: u64,
}

impl ReadBudget {
    /// Returns the budget of a file of this length.
    pub(super) fn of(length: u64) -> ReadBudget {
        ReadBudget {
            length,
            rows_left: length.saturating_mul(ROWS_PER_BYTE_MAX).saturating_add(ROWS_FREE),
            bytes_left: length.saturating_mul(BYTES_PER_BYTE_MAX).saturating_add(BYTES_FREE),
        }
    }

    /// Deducts rows, or returns why there are too many.
    pub(super) fn take_rows(&mut self, rows: u64) -> Result<(), String> {
        self.rows_left = self.rows_left.checked_sub(rows).ok_or_else(|| {
            let (most, length) = (ReadBudget::of(self.length).rows_left, self.length);
            format!("it has more than {most} rows, too many for its {length} bytes: write it without such long runs of equal rows")
        })?;
        Ok(())
    }

    /// Deducts decompressed bytes, or returns why there are too many.
    pub(super) fn take_bytes(&mut self, bytes: u64) -> Result<(), String> {
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or_else(|| {
            let (most, length) = (ReadBudget::of(self.length).bytes_left, self.length);
            format!("its pages expand to more than {most} bytes, too many for its {length} bytes: write it without compression")
        })?;
        Ok(())
    }
}
