//! The repeating groups of FIX 4.4 in the messages that a client may send: which tag counts the
//! members of a group, and which tags a member has. In these messages a counting tag has the same
//! members wherever it occurs.

/// A repeating group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Tag with the number of members.
    pub count: u32,
    /// Tags of a member. The first one opens each member and is required; the others have no order.
    pub members: &'static [u32],
}

/// Levels of groups inside of each other. FIX 4.4 has three: NoAllocs, NoNestedPartyIDs,
/// NoNestedPartySubIDs. FIX 5.0 SP2 has six in a request for prices of a stream with payments.
pub const DEPTH_MAX: usize = 6;

pub const GROUPS: &[Group] = &[
    Group { count: 78, members: &[79, 661, 736, 467, 539, 80] },
    Group { count: 146, members: RELATED_SYM },
    Group { count: 232, members: &[233, 234] },
    Group { count: 267, members: &[269] },
    Group { count: 384, members: &[372, 385] },
    Group { count: 386, members: &[336, 625] },
    Group { count: 453, members: &[448, 447, 452, 802] },
    Group { count: 454, members: &[455, 456] },
    Group { count: 457, members: &[458, 459] },
    Group { count: 539, members: &[524, 525, 538, 804] },
    Group { count: 555, members: LEG },
    Group { count: 604, members: &[605, 606] },
    Group { count: 627, members: &[628, 629, 630] },
    Group { count: 711, members: UNDERLYING },
    Group { count: 802, members: &[523, 803] },
    Group { count: 804, members: &[545, 805] },
    Group { count: 864, members: &[865, 866, 867, 868] },
    Group { count: 870, members: &[871, 872] },
    Group { count: 887, members: &[888, 889] },
];

/// Tags of an underlying instrument.
pub const UNDERLYING: &[u32] = &[
    311, 312, 309, 305, 457, 462, 463, 310, 763, 313, 542, 315, 241, 242, 243, 244, 245, 246, 256, 595, 592,
    593, 594, 247, 316, 941, 317, 436, 435, 308, 306, 362, 363, 307, 364, 365, 877, 878, 318, 879, 810, 882,
    883, 884, 885, 886, 887,
];

/// Tags of a leg.
const LEG: &[u32] = &[
    600, 601, 602, 603, 604, 607, 608, 609, 764, 610, 611, 248, 249, 250, 251, 252, 253, 257, 599, 596, 597,
    598, 254, 612, 942, 613, 614, 615, 616, 617, 618, 619, 620, 621, 622, 623, 624, 556, 740, 739, 955, 956,
];

/// Tags of an instrument.
pub const INSTRUMENT: &[u32] = &[
    55, 65, 48, 22, 454, 460, 461, 167, 762, 200, 541, 201, 224, 225, 239, 226, 227, 228, 255, 543, 470, 471,
    472, 240, 202, 947, 206, 231, 223, 207, 106, 348, 349, 107, 350, 351, 691, 667, 875, 876, 864, 873, 874,
];

/// Tags of an instrument in a list: the instrument, its underlying instruments and its legs.
const RELATED_SYM: &[u32] = &{
    let mut tags = [0; INSTRUMENT.len() + 2];
    let mut at = 0;
    while at < INSTRUMENT.len() {
        tags[at] = INSTRUMENT[at];
        at += 1;
    }
    (tags[at], tags[at + 1]) = (711, 555);
    tags
};

/// Returns the group whose members a tag counts.
pub fn counted_by(tag: u32) -> Option<&'static Group> {
    GROUPS.iter().find(|group| group.count == tag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fix::fix50;

    const NO_RELATED_SYM: u32 = 146;

    fn depth_of_fix50(group: fix50::Fix50Group) -> usize {
        let tags = group.others.iter().flat_map(|run| run.first..=run.last).chain([group.first]);
        1 + tags.filter_map(fix50::group).map(depth_of_fix50).max().unwrap_or(0)
    }

    #[test]
    fn groups_are_nested_no_deeper_than_the_bound() {
        fn depth(group: &Group) -> usize {
            1 + group.members.iter().filter_map(|&tag| counted_by(tag)).map(depth).max().unwrap_or(0)
        }
        assert_eq!(GROUPS.iter().map(depth).max(), Some(3));
        assert_eq!(fix50::group(NO_RELATED_SYM).map(depth_of_fix50), Some(DEPTH_MAX));
        assert_eq!(RELATED_SYM[RELATED_SYM.len() - 3..], [874, 711, 555]);
    }

    #[test]
    fn a_member_fits_the_mask_of_seen_tags() {
        assert!(GROUPS.iter().all(|group| group.members.len() <= fix50::MEMBER_TAGS_MAX));
    }
}
