//! Permitted values of tags where a version differs from FIX 4.4: FIX 4.2 has a list of its own for
//! each of these tags, FIX 5.0 SP2 has more values.

use super::field_rules::{Enumeration, enumeration_of};
use crate::fix::version::FixVersion;

/// The last tag of FIX 4.2.
pub(super) const FIX42_TAG_LAST: u32 = 446;

/// Returns whether a version permits a value of a tag; `None` if the version lists no values.
pub(super) fn permits(version: FixVersion, tag: u32, value: &[u8]) -> Option<bool> {
    let common = || enumeration_of(tag).map(|listed| listed.permits(value));
    match version {
        FixVersion::Fix44 => common(),
        FixVersion::Fix42 => find(VALUES_42, tag).map(|listed| listed.permits(value)).or_else(common),
        FixVersion::Fix50Sp2 => {
            common().map(|is_listed| is_listed || find(MORE_50, tag).is_some_and(|more| more.permits(value)))
        }
    }
}

fn find(values: &'static [Enumeration], tag: u32) -> Option<&'static Enumeration> {
    values.binary_search_by_key(&tag, Enumeration::tag).ok().map(|at| &values[at])
}

/// All values of FIX 4.2, by rising tag.
static VALUES_42: &[Enumeration] = &[
    Enumeration::new(13, "1 2 3"),
    Enumeration::new(18, "1 2 3 4 5 6 7 8 9 0 A B C D E F G I L M N O P R S T U V W"),
    Enumeration::new(22, "1 2 3 4 5 6 7 8 9"),
    Enumeration::new(40, "1 2 3 4 5 6 7 8 9 A B C D E F G H I P"),
    Enumeration::new(47, "A B C D E F H I J K L M N O P R S T U W X Y Z"),
    Enumeration::new(54, "1 2 3 4 5 6 7 8 9"),
    Enumeration::new(59, "0 1 2 3 4 5 6"),
    Enumeration::new(77, "O C"),
    Enumeration::new(127, "A B C D E Z"),
    Enumeration::new(
        167,
        "BA CB CD CMO CORP CP CPP CS FHA FHL FN FOR FUT GN GOVT IET MF MIO MPO MPP MPT MUNI NONE OPT \
         PS RP RVRP SL TD USTB WAR ZOO",
    ),
    Enumeration::new(204, "0 1"),
    Enumeration::new(373, "0 1 2 3 4 5 6 7 8 9 10 11"),
    Enumeration::new(380, "0 1 2 3 4 5"),
    Enumeration::new(388, "0 1 2 3 4 5"),
];

/// The values of FIX 5.0 SP2 that FIX 4.4 does not have, by rising tag.
static MORE_50: &[Enumeration] = &[
    Enumeration::new(13, "7 8"),
    Enumeration::new(18, "T f g h i j k l m n o p q r s t u v w x y z"),
    Enumeration::new(22, "K L M N P Q R S T U V W X Y"),
    Enumeration::new(40, "5 A B C F H Q R S"),
    Enumeration::new(54, "H"),
    Enumeration::new(59, "8 9 A B C"),
    Enumeration::new(63, "B C"),
    Enumeration::new(77, "N D"),
    Enumeration::new(127, "G"),
    Enumeration::new(
        167,
        "BAB BDBSKT BDN BNST CAMM CAN CAP CASH CDS CFD CLCP CLLR CMB CMDTYSWAP CN COLLBSKT CPIB \
         CRLTNSWAP CTB DIGITAL DIMSUMCORP DIMSUMSOV DR DVDNDSWAP DVPLDG EQBSKT EQFWD ETC ETF ETN EUFRN \
         EUMTN EUNCP EUSTLQN EUTD EXOTIC FLR FRA FRN FUTSWAP FWD FWDFRTAGMT FWDSWAP FXBN FXDN FXFWD \
         FXNDF FXNDS FXSPOT FXSWAP INDEX IRS JCD LOANLEASE MCPIB MMF MN MRGNLOAN NCD NCP OOC OOF OOP \
         Other PRCORP PROV PRTFLIOSWAP RCD RTRNSWAP SECDERIV SFP SLQN SOV SPOTFWD SPREADBET SWAPTION TB \
         TDR TFRN TLQN TMB TMCP TRS VARSWAP VRDO XMISSION",
    ),
    Enumeration::new(201, "2 3"),
    Enumeration::new(235, "VALUE1_32"),
    Enumeration::new(269, "D E F G H J K L M N O P Q R S T U V W X Y Z a b c d e g h i t"),
    Enumeration::new(321, "4 5 6 7 8 9"),
    Enumeration::new(338, "4"),
    Enumeration::new(373, "18"),
    Enumeration::new(380, "8 9 10 18"),
    Enumeration::new(388, "7"),
    Enumeration::new(423, "12 13 14 15 16 17 18 19 20 21 22 23 24 25"),
    Enumeration::new(447, "J K L M N O P Q R S T U"),
    Enumeration::new(
        452,
        "39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64 65 66 67 68 69 70 \
         71 72 73 74 75 76 77 78 79 80 81 82 83 84 85 86 87 88 89 90 91 92 93 94 95 96 97 98 99 100 101 \
         102 103 104 105 106 107 109 110 111 112 113 114 115 116 117 118 119 120 121 122 123 124 125 126 \
         127",
    ),
    Enumeration::new(528, "M"),
    Enumeration::new(529, "B C D E F G H I"),
    Enumeration::new(530, "8 9 A B C"),
    Enumeration::new(559, "5"),
    Enumeration::new(573, "3"),
    Enumeration::new(581, "9 10 11 12 13"),
    Enumeration::new(582, "5"),
    Enumeration::new(585, "9 10"),
    Enumeration::new(660, "6"),
    Enumeration::new(716, "EOD"),
    Enumeration::new(724, "4 5 6 7 8 9 10"),
    Enumeration::new(827, "2"),
    Enumeration::new(836, "4"),
    Enumeration::new(854, "2"),
    Enumeration::new(875, "3 4 5 6 7 8"),
    Enumeration::new(919, "4"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_sorted_and_differ_from_fix_44() {
        for values in [VALUES_42, MORE_50] {
            assert!(values.is_sorted_by_key(Enumeration::tag));
        }
        assert!(VALUES_42.iter().all(|listed| listed.tag() <= FIX42_TAG_LAST));
        assert!(MORE_50.iter().all(|more| enumeration_of(more.tag()).is_some()));
    }

    #[test]
    fn values_are_those_of_the_version() {
        let has = |tag, value: &str| {
            FixVersion::ALL.map(|version| permits(version, tag, value.as_bytes()).unwrap_or(true))
        };
        assert_eq!(has(59, "7"), [false, true, true]);
        assert_eq!(has(59, "9"), [false, false, true]);
        assert_eq!(has(40, "2"), [true; 3]);
        assert_eq!(has(40, "A"), [true, false, true]);
        assert_eq!(has(54, "Z"), [false; 3]);
        assert_eq!(has(167, "ETF"), [false, false, true]);
        assert_eq!(has(58, "any"), [true; 3]);
    }
}
