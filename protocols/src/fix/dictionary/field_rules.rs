//! The fields of FIX 4.4: the data type of each tag, and the permitted values of the enumerated
//! tags in messages that a client may send.

use pitlane_engine::text::{TextError, parse_scaled, parse_u64};

use crate::fix::fix50;
use crate::fix::tag;
use crate::fix::timestamp::{parse_date, parse_time, parse_timestamp};
use crate::fix::version::FixVersion;

/// Data type of a field, as far as it decides how a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// String, Exchange, Currency, Country: any text.
    Text,
    /// MultipleValueString: values of an enumeration with spaces between them.
    Codes,
    /// One character.
    Char,
    /// Whole number with an optional minus sign.
    Int,
    /// SeqNum, NumInGroup, Length: whole number without a sign.
    Count,
    /// Price, Qty, Amt, Percentage, float.
    Decimal,
    /// Y or N.
    Boolean,
    /// UTCTimestamp.
    Timestamp,
    /// LocalMktDate, UTCDateOnly.
    Date,
    /// UTCTimeOnly.
    Time,
    /// MonthYear: YYYYMM, YYYYMMDD or YYYYMMwN.
    MonthYear,
    /// Raw data, whose length stands in the field before.
    Data,
}

impl FieldType {
    /// Returns the type with one of the standard's names.
    pub fn from_name(name: &str) -> Option<FieldType> {
        Some(match name {
            "STRING" | "EXCHANGE" | "CURRENCY" | "COUNTRY" => FieldType::Text,
            "MULTIPLEVALUESTRING" => FieldType::Codes,
            "CHAR" => FieldType::Char,
            "INT" => FieldType::Int,
            "FLOAT" | "PRICE" | "PRICEOFFSET" | "QTY" | "AMT" | "PERCENTAGE" => FieldType::Decimal,
            "BOOLEAN" => FieldType::Boolean,
            "UTCTIMESTAMP" => FieldType::Timestamp,
            "LOCALMKTDATE" | "UTCDATEONLY" => FieldType::Date,
            "UTCTIMEONLY" => FieldType::Time,
            "MONTHYEAR" => FieldType::MonthYear,
            _ => return None,
        })
    }

    /// Returns the type with a letter of [`fix50`].
    fn from_letter(letter: u8) -> FieldType {
        match letter {
            b'M' => FieldType::Codes,
            b'C' => FieldType::Char,
            b'I' => FieldType::Int,
            fix50::COUNT => FieldType::Count,
            b'D' => FieldType::Decimal,
            b'B' => FieldType::Boolean,
            b'S' => FieldType::Timestamp,
            b'L' => FieldType::Date,
            b'U' => FieldType::Time,
            b'Y' => FieldType::MonthYear,
            fix50::RAW_DATA => FieldType::Data,
            _ => FieldType::Text,
        }
    }

    /// Returns the standard's usual name of this type.
    pub(super) fn name(self) -> &'static str {
        match self {
            FieldType::Text => "STRING",
            FieldType::Codes => "MULTIPLEVALUESTRING",
            FieldType::Char => "CHAR",
            FieldType::Int => "INT",
            FieldType::Count => "NUMINGROUP",
            FieldType::Decimal => "FLOAT",
            FieldType::Boolean => "BOOLEAN",
            FieldType::Timestamp => "UTCTIMESTAMP",
            FieldType::Date => "LOCALMKTDATE",
            FieldType::Time => "UTCTIMEONLY",
            FieldType::MonthYear => "MONTHYEAR",
            FieldType::Data => "DATA",
        }
    }

    /// Returns whether a value is written as this type demands.
    pub(super) fn permits(self, value: &[u8]) -> bool {
        match self {
            FieldType::Text | FieldType::Codes | FieldType::Data => true,
            FieldType::Char => value.len() == 1,
            FieldType::Int => parse_u64(value.strip_prefix(b"-").unwrap_or(value)).is_ok(),
            FieldType::Count => parse_u64(value).is_ok(),
            // A number beyond our range is well written; who needs it refuses it.
            FieldType::Decimal => {
                !matches!(parse_scaled(value), Err(TextError::Character | TextError::Empty))
            }
            FieldType::Boolean => matches!(value, b"Y" | b"N"),
            FieldType::Timestamp => parse_timestamp(value).is_some(),
            FieldType::Date => parse_date(value).is_some(),
            FieldType::Time => parse_time(value).is_some(),
            FieldType::MonthYear => is_month_year(value),
        }
    }
}

fn is_month_year(value: &[u8]) -> bool {
    let Some((month, rest)) = value.split_first_chunk::<6>() else { return false };
    let [y1, y2, y3, y4, m1, m2] = *month;
    let is_month = parse_date(&[y1, y2, y3, y4, m1, m2, b'0', b'1']).is_some();
    match rest {
        [] => is_month,
        [b'w', b'1'..=b'5'] => is_month,
        _ => parse_date(value).is_some(),
    }
}

/// Returns the type of a tag; `None` if neither the version nor Pitlane defines the tag. FIX 4.2
/// has the types of FIX 4.4.
pub(super) fn type_of(version: FixVersion, tag: u32) -> Option<FieldType> {
    let common = || TYPES[tag::slot(tag)?];
    match version {
        FixVersion::Fix42 | FixVersion::Fix44 => common(),
        FixVersion::Fix50Sp2 => fix50::type_letter(tag).map(FieldType::from_letter).or_else(common),
    }
}

/// Permitted values of a tag.
#[derive(Debug)]
pub(super) struct Enumeration {
    tag: u32,
    /// The values, with spaces between them.
    values: &'static str,
    /// Values of one character, a bit each.
    codes: u128,
}

impl Enumeration {
    pub(super) const fn new(tag: u32, values: &'static str) -> Enumeration {
        let bytes = values.as_bytes();
        let (mut codes, mut at) = (0, 0);
        while at < bytes.len() {
            let is_first = at == 0 || bytes[at - 1] == b' ';
            let is_last = at + 1 == bytes.len() || bytes[at + 1] == b' ';
            if is_first && is_last {
                codes |= 1 << bytes[at];
            }
            at += 1;
        }
        Enumeration { tag, values, codes }
    }

    pub(super) fn tag(&self) -> u32 {
        self.tag
    }

    /// Returns whether a single value is permitted.
    pub(super) fn permits(&self, value: &[u8]) -> bool {
        match value {
            [code] => *code < 128 && self.codes & 1 << code != 0,
            _ => self.values.split(' ').any(|permitted| permitted.as_bytes() == value),
        }
    }
}

/// Returns the values of a tag that FIX 4.4 permits, if they are enumerated.
pub(super) fn enumeration_of(tag: u32) -> Option<&'static Enumeration> {
    let index = *ENUMERATED.get(tag as usize)?;
    ENUMERATIONS.get((index as usize).checked_sub(1)?)
}

static TYPES: [Option<FieldType>; tag::SLOTS] = {
    let mut table = [None; tag::SLOTS];
    let mut list = 0;
    while list < TAGS_BY_TYPE.len() {
        let (field_type, tags) = TAGS_BY_TYPE[list];
        let mut at = 0;
        while at < tags.len() {
            let Some(slot) = tag::slot(tags[at]) else { panic!("a tag without a slot") };
            table[slot] = Some(field_type);
            at += 1;
        }
        list += 1;
    }
    table
};

/// Index of the enumeration of each tag, plus one; zero for none.
static ENUMERATED: [u8; tag::COMMON_TAGS] = {
    let mut table = [0; tag::COMMON_TAGS];
    let (mut at, mut index) = (0, 0u8);
    while at < ENUMERATIONS.len() {
        index += 1;
        table[ENUMERATIONS[at].tag as usize] = index;
        at += 1;
    }
    table
};

const TAGS_BY_TYPE: &[(FieldType, &[u32])] = &[
    (
        FieldType::Text,
        &[
            1, 2, 3, 5, 8, 10, 11, 15, 17, 19, 22, 23, 26, 27, 30, 35, 37, 41, 48, 49, 50, 55, 56, 57, 58,
            65, 66, 69, 70, 72, 79, 100, 106, 107, 112, 115, 116, 117, 120, 128, 129, 131, 138, 139, 142,
            143, 144, 145, 147, 148, 149, 161, 162, 164, 167, 170, 171, 196, 198, 207, 214, 217, 220, 221,
            222, 233, 234, 235, 239, 243, 250, 255, 256, 257, 262, 275, 278, 280, 282, 283, 284, 288, 289,
            299, 302, 305, 306, 307, 308, 309, 310, 311, 312, 318, 320, 322, 324, 335, 336, 337, 347, 372,
            375, 376, 379, 390, 391, 392, 400, 421, 444, 448, 455, 456, 458, 459, 461, 463, 466, 467, 470,
            471, 472, 474, 475, 476, 478, 479, 482, 488, 489, 491, 493, 494, 496, 498, 499, 500, 501, 502,
            505, 508, 509, 511, 513, 521, 523, 524, 526, 527, 532, 535, 536, 543, 545, 548, 551, 553, 554,
            556, 568, 571, 572, 574, 578, 579, 583, 584, 592, 593, 594, 595, 596, 597, 598, 599, 600, 601,
            602, 603, 605, 606, 608, 609, 616, 617, 620, 625, 628, 635, 644, 649, 654, 655, 659, 664, 671,
            672, 674, 675, 676, 677, 678, 682, 688, 689, 691, 693, 699, 703, 707, 710, 713, 714, 716, 717,
            721, 726, 736, 740, 755, 757, 760, 761, 762, 763, 764, 767, 771, 772, 777, 782, 785, 790, 791,
            793, 795, 817, 818, 820, 821, 822, 823, 824, 825, 830, 833, 848, 859, 868, 872, 876, 877, 878,
            880, 881, 888, 889, 894, 902, 904, 907, 908, 909, 913, 914, 918, 923, 925, 927, 929, 930, 931,
            932, 933, 934, 941, 942, 943, 947, 949, 953,
        ],
    ),
    (FieldType::Codes, &[18, 276, 277, 286, 291, 292, 529, 546]),
    (
        FieldType::Char,
        &[
            4, 13, 21, 25, 28, 29, 39, 40, 54, 59, 61, 63, 71, 77, 81, 94, 104, 127, 150, 156, 160, 163, 165,
            206, 263, 269, 274, 279, 281, 285, 317, 327, 374, 385, 388, 418, 419, 433, 434, 442, 447, 468,
            480, 481, 484, 497, 506, 514, 517, 525, 528, 530, 531, 544, 564, 573, 587, 589, 590, 591, 613,
            624, 695, 744, 747, 758, 783, 787, 950,
        ],
    ),
    (
        FieldType::Int,
        &[
            67, 68, 74, 82, 83, 87, 88, 98, 102, 103, 108, 157, 169, 172, 197, 201, 203, 209, 216, 226, 244,
            251, 264, 265, 287, 290, 297, 298, 300, 301, 303, 304, 315, 321, 323, 326, 334, 338, 339, 340,
            346, 368, 371, 373, 378, 380, 393, 394, 395, 399, 401, 409, 414, 415, 416, 417, 422, 423, 427,
            429, 430, 431, 441, 452, 460, 462, 477, 487, 492, 495, 507, 519, 522, 533, 537, 538, 549, 550,
            557, 559, 560, 563, 565, 567, 569, 577, 581, 582, 585, 607, 626, 638, 658, 660, 661, 663, 665,
            666, 668, 680, 686, 690, 692, 694, 698, 706, 709, 712, 718, 722, 723, 724, 725, 727, 728, 729,
            731, 733, 748, 749, 750, 751, 752, 759, 770, 773, 774, 775, 776, 780, 784, 786, 788, 792, 794,
            796, 798, 803, 805, 807, 808, 812, 813, 814, 815, 819, 826, 827, 828, 829, 832, 835, 836, 837,
            838, 840, 841, 842, 843, 844, 846, 847, 851, 853, 854, 855, 856, 857, 865, 871, 875, 891, 892,
            895, 896, 903, 905, 906, 910, 911, 919, 924, 926, 928, 935, 937, 939, 940, 944, 945, 946, 951,
            954,
        ],
    ),
    (
        FieldType::Count,
        &[
            7, 9, 16, 33, 34, 36, 45, 73, 78, 85, 90, 93, 95, 124, 136, 146, 199, 212, 215, 232, 267, 268,
            295, 296, 348, 350, 352, 354, 356, 358, 360, 362, 364, 369, 382, 383, 384, 386, 398, 420, 428,
            445, 453, 454, 457, 473, 510, 518, 534, 539, 552, 555, 558, 576, 580, 604, 618, 621, 627, 630,
            670, 683, 702, 711, 735, 753, 756, 768, 778, 781, 789, 801, 802, 804, 806, 816, 862, 864, 870,
            887, 897, 936, 938, 948, 952,
        ],
    ),
    (
        FieldType::Decimal,
        &[
            6, 12, 14, 31, 32, 38, 44, 53, 80, 84, 99, 110, 111, 118, 119, 132, 133, 134, 135, 137, 140, 151,
            152, 153, 154, 155, 158, 159, 188, 189, 190, 191, 192, 194, 195, 202, 210, 211, 218, 223, 227,
            228, 231, 236, 237, 238, 245, 246, 252, 253, 260, 270, 271, 293, 294, 316, 330, 331, 332, 333,
            366, 381, 387, 389, 396, 397, 402, 403, 404, 405, 406, 407, 408, 410, 412, 413, 424, 425, 426,
            435, 436, 437, 451, 469, 485, 512, 516, 520, 540, 561, 562, 566, 612, 614, 615, 623, 631, 632,
            633, 634, 637, 639, 640, 641, 642, 643, 645, 646, 647, 648, 651, 652, 656, 657, 662, 669, 673,
            679, 681, 684, 687, 697, 704, 705, 708, 730, 732, 734, 737, 738, 741, 742, 745, 746, 765, 766,
            799, 800, 810, 811, 834, 839, 845, 849, 850, 858, 860, 861, 863, 867, 869, 879, 882, 883, 884,
            885, 886, 890, 898, 899, 900, 901, 920, 921, 922,
        ],
    ),
    (
        FieldType::Boolean,
        &[
            43, 97, 113, 114, 121, 123, 130, 141, 208, 258, 266, 325, 328, 329, 377, 411, 464, 547, 570, 575,
            636, 650, 700, 719, 720, 754, 797, 852, 893, 912,
        ],
    ),
    (
        FieldType::Timestamp,
        &[
            42, 52, 60, 62, 122, 126, 168, 341, 342, 343, 344, 345, 367, 438, 443, 483, 515, 586, 629, 769,
            779,
        ],
    ),
    (
        FieldType::Date,
        &[
            64, 75, 193, 224, 225, 229, 230, 240, 241, 242, 247, 248, 249, 254, 259, 272, 432, 486, 490, 503,
            504, 541, 542, 588, 611, 696, 701, 715, 739, 743, 866, 873, 874, 915, 916, 917, 956,
        ],
    ),
    (FieldType::Time, &[273]),
    (FieldType::MonthYear, &[200, 313, 610, 667, 955]),
    (FieldType::Data, &[89, 91, 96, 213, 349, 351, 353, 355, 357, 359, 361, 363, 365, 446, 619, 622]),
    // Our own tags.
    (FieldType::Int, &[tag::STRATEGY_ID]),
    (FieldType::Text, &[tag::STRATEGY_NAME]),
    (FieldType::Boolean, &[tag::EXCHANGE_ORDER]),
];

const ENUMERATIONS: &[Enumeration] = &[
    Enumeration::new(13, "1 2 3 4 5 6"),
    Enumeration::new(18, "1 2 3 4 5 6 7 8 9 0 A B C D E F G H I J K L M N O P Q R S U V W X Y Z a b c d e"),
    Enumeration::new(21, "1 2 3"),
    Enumeration::new(22, "1 2 3 4 5 6 7 8 9 A B C D E F G H I J"),
    Enumeration::new(40, "1 2 3 4 6 7 8 9 D E G I J K L M P"),
    Enumeration::new(54, "1 2 3 4 5 6 7 8 9 A B C D E F G"),
    Enumeration::new(59, "0 1 2 3 4 5 6 7"),
    Enumeration::new(63, "0 1 2 3 4 5 6 7 8 9"),
    Enumeration::new(77, "O C R F"),
    Enumeration::new(81, "0 1 2 3 4 5 6"),
    Enumeration::new(98, "0 1 2 3 4 5 6"),
    Enumeration::new(127, "A B C D E F Z"),
    Enumeration::new(
        167,
        "EUSUPRA FAC FADN PEF SUPRA CORP CPP CB DUAL EUCORP XLINKD STRUCT YANK FOR CS PS BRADY EUSOV \
         TBOND TINT TIPS TCAL TPRN UST USTB TNOTE TBILL REPO FORWARD BUYSELL SECLOAN SECPLEDGE TERM \
         RVLV RVLVTRM BRIDGE LOFC SWING DINP DEFLTED WITHDRN REPLACD MATURED AMENDED RETIRED BA BN BOX \
         CD CL CP DN EUCD EUCP LQN MTN ONITE PN PZFJ STN TD XCN YCD ABS CMBS CMO IET MBS MIO MPO MPP \
         MPT PFAND TBA AN COFO COFP GO MT RAN REV SPCLA SPCLO SPCLT TAN TAXA TECP TRAN VRDN WAR MF MLEG \
         NONE FUT OPT",
    ),
    Enumeration::new(201, "0 1"),
    Enumeration::new(203, "0 1"),
    Enumeration::new(
        233,
        "AMT AUTOREINV BANKQUAL BGNCON COUPON CURRENCY CUSTOMDATE GEOG HAIRCUT INSURED ISSUE ISSUER \
         ISSUESIZE LOOKBACK LOT LOTVAR MAT MATURITY MAXSUBS MINQTY MININCR MINDNOM PAYFREQ PIECES PMAX \
         PPM PPL PPT PRICE PRICEFREQ PROD PROTECT PURPOSE PXSOURCE RATING REDEMPTION RESTRICTED SECTOR \
         SECTYPE STRUCT SUBSFREQ SUBSLEFT TEXT TRDVAR WAC WAL WALA WAM WHOLE YIELD",
    ),
    Enumeration::new(
        235,
        "AFTERTAX ANNUAL ATISSUE AVGMATURITY BOOK CALL CHANGE CLOSE COMPOUND CURRENT GROSS GOVTEQUIV \
         INFLATION INVERSEFLOATER LASTCLOSE LASTMONTH LASTQUARTER LASTYEAR LONGAVGLIFE MARK MATURITY \
         NEXTREFUND OPENAVG PUT PREVCLOSE PROCEEDS SEMIANNUAL SHORTAVGLIFE SIMPLE TAXEQUIV TENDER TRUE \
         VALUE1/32 WORST",
    ),
    Enumeration::new(263, "0 1 2"),
    Enumeration::new(265, "0 1"),
    Enumeration::new(269, "0 1 2 3 4 5 6 7 8 9 A B C"),
    Enumeration::new(286, "0 1 2 3 4 5"),
    Enumeration::new(321, "0 1 2 3"),
    Enumeration::new(338, "1 2 3"),
    Enumeration::new(339, "1 2 3"),
    Enumeration::new(347, "ISO-2022-JP EUC-JP Shift_JIS UTF-8"),
    Enumeration::new(373, "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 99"),
    Enumeration::new(380, "0 1 2 3 4 5 6 7"),
    Enumeration::new(385, "S R"),
    Enumeration::new(388, "0 1 2 3 4 5 6"),
    Enumeration::new(423, "1 2 3 4 5 6 7 8 9 10 11"),
    Enumeration::new(427, "0 1 2"),
    Enumeration::new(447, "B C D E F G H 1 2 3 4 5 6 7 8 9 A I"),
    Enumeration::new(
        452,
        "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 24 25 26 27 28 29 30 31 32 33 34 35 \
         36 37 38",
    ),
    Enumeration::new(460, "1 2 3 4 5 6 7 8 9 10 11 12 13"),
    Enumeration::new(468, "0 1 2"),
    Enumeration::new(480, "Y N M O"),
    Enumeration::new(481, "Y N 1 2 3"),
    Enumeration::new(497, "Y N"),
    Enumeration::new(528, "A G I P R W"),
    Enumeration::new(529, "1 2 3 4 5 6 7 8 9 A"),
    Enumeration::new(530, "1 2 3 4 5 6 7"),
    Enumeration::new(544, "1 2 3"),
    Enumeration::new(546, "1 2 3"),
    Enumeration::new(559, "0 1 2 3 4"),
    Enumeration::new(573, "0 1 2"),
    Enumeration::new(581, "1 2 3 4 6 7 8"),
    Enumeration::new(582, "1 2 3 4"),
    Enumeration::new(585, "1 2 3 4 5 6 7 8"),
    Enumeration::new(589, "0 1 2"),
    Enumeration::new(590, "0 1 2"),
    Enumeration::new(591, "0 1"),
    Enumeration::new(635, "B C E F H I L M 1 2 3 4 5 9"),
    Enumeration::new(660, "1 2 3 4 5 99"),
    Enumeration::new(668, "1 2"),
    Enumeration::new(716, "ITD RTH ETH"),
    Enumeration::new(724, "0 1 2 3"),
    Enumeration::new(725, "0 1"),
    Enumeration::new(775, "0 1 2"),
    Enumeration::new(788, "1 2 3 4"),
    Enumeration::new(803, "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26"),
    Enumeration::new(815, "0 1 2 3"),
    Enumeration::new(827, "0 1"),
    Enumeration::new(835, "0 1"),
    Enumeration::new(836, "0 1 2 3"),
    Enumeration::new(837, "0 1 2"),
    Enumeration::new(838, "1 2"),
    Enumeration::new(840, "1 2 3 4"),
    Enumeration::new(841, "0 1"),
    Enumeration::new(842, "0 1 2 3"),
    Enumeration::new(843, "0 1 2"),
    Enumeration::new(844, "1 2"),
    Enumeration::new(846, "1 2 3 4"),
    Enumeration::new(847, "1 2 3"),
    Enumeration::new(854, "0 1"),
    Enumeration::new(865, "1 2 3 4 99"),
    Enumeration::new(871, "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 99"),
    Enumeration::new(875, "1 2 99"),
    Enumeration::new(919, "0 1 2 3"),
];
