//! CRC-32C (Castagnoli), as consumers of the depth topics compute it. The crate that the journal
//! uses chooses instructions of the processor at run time, which the pure crates must not.

/// The polynomial, with its bits reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut octet: u32 = 0;
    while octet < 256 {
        let (mut sum, mut bit) = (octet, 0);
        while bit < 8 {
            sum = if sum & 1 == 1 { sum >> 1 ^ POLYNOMIAL } else { sum >> 1 };
            bit += 1;
        }
        table[octet as usize] = sum;
        octet += 1;
    }
    table
};

/// Returns the CRC-32C of some octets.
pub fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, octet| {
        let [low, ..] = sum.to_le_bytes();
        TABLE[(low ^ octet) as usize] ^ sum >> 8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_sum_that_the_standards_print() {
        // RFC 3720, B.4, and the check value of the catalogue of CRCs.
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c(b""), 0);
    }
}
