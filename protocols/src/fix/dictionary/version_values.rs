//! Permitted values of tags where FIX 4.2 differs from FIX 4.4. FIX 5.0 SP2 has a table of its own.

use super::field_rules::{Enumeration, enumeration_of};
use crate::fix::fix50;
use crate::fix::version::FixVersion;

/// First tag that FIX 4.2 does not have.
pub(super) const FIX44_TAG_FIRST: u32 = 447;

/// Returns whether a version permits a value of a tag; `None` if the version lists no values.
pub(super) fn permits(version: FixVersion, tag: u32, value: &[u8]) -> Option<bool> {
    let common = || enumeration_of(tag).map(|listed| listed.permits(value));
    match version {
        FixVersion::Fix44 => common(),
        FixVersion::Fix42 => {
            let own = VALUES_42.binary_search_by_key(&tag, Enumeration::tag).ok();
            own.map(|at| VALUES_42[at].permits(value)).or_else(common)
        }
        FixVersion::Fix50Sp2 => fix50::permits(tag, value),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_has_tags_of_fix_42() {
        assert!(VALUES_42.is_sorted_by_key(Enumeration::tag));
        assert!(VALUES_42.iter().all(|listed| listed.tag() < FIX44_TAG_FIRST));
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
