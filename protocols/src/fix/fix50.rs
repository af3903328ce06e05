//! The tables of FIX 5.0 SP2 over FIXT 1.1, for the messages that a client may send: type and
//! values of each tag, tags of each message, members of each repeating group.
//!
//! | file in `fix50` | a line |
//! |---|---|
//! | `types.txt` | a tag, and a letter for its type and for those of the tags that follow |
//! | `values.txt` | tags, `:`, their values |
//! | `messages.txt` | MsgType, required tags, `:`, all tags; `FIXT` names those of session messages |
//! | `groups.txt` | the tag that counts the members, the first tag of a member, the others |
//! | `raw.txt` | the length of raw data, the data; other data has the tag after its length |
//!
//! `3..7` stands for all numbers from 3 to 7. A line that begins with a space continues the one
//! before. `tests/tools/fix50` writes the files. They are read when the program is compiled.

mod words;

use self::words::{Table, line_count, table, word_count};

const TYPES_TEXT: &[u8] = include_bytes!("fix50/types.txt");
const VALUES_TEXT: &[u8] = include_bytes!("fix50/values.txt");
const MESSAGES_TEXT: &[u8] = include_bytes!("fix50/messages.txt");
const GROUPS_TEXT: &[u8] = include_bytes!("fix50/groups.txt");
const RAW_TEXT: &[u8] = include_bytes!("fix50/raw.txt");

/// The standard has given its tags in these ranges; tags of users lie between them.
const RANGES: [TagRun; 3] = [
    TagRun { first: 0, last: 3_039 },
    TagRun { first: 40_000, last: 43_199 },
    TagRun { first: 50_000, last: 50_079 },
];

/// Tags that have a slot in a table.
pub(super) const SLOTS: usize = {
    let (mut count, mut at) = (0, 0);
    while at < RANGES.len() {
        count += (RANGES[at].last - RANGES[at].first + 1) as usize;
        at += 1;
    }
    count
};

/// Tags of one member of a group, with room for those of later versions.
pub(super) const MEMBER_TAGS_MAX: usize = 448;

/// Returns the slot of a tag in such a table; none if it lies in no range.
#[inline]
pub(super) const fn slot(tag: u32) -> Option<usize> {
    let (mut before, mut at) = (0, 0);
    while at < RANGES.len() {
        let TagRun { first, last } = RANGES[at];
        if tag >= first && tag <= last {
            return Some((before + tag - first) as usize);
        }
        before += last - first + 1;
        at += 1;
    }
    None
}

/// Returns the tag of the next slot.
pub(super) const fn next_tag(tag: u32) -> u32 {
    let mut at = 0;
    while at + 1 < RANGES.len() {
        if RANGES[at].last == tag {
            return RANGES[at + 1].first;
        }
        at += 1;
    }
    tag + 1
}

/// Tags from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TagRun {
    pub(super) first: u32,
    pub(super) last: u32,
}

/// Returns how many of the tags in rising runs come before a tag, if it is among them.
fn rank(runs: &[TagRun], tag: u32) -> Option<usize> {
    let before = runs.partition_point(|run| run.last < tag);
    let run = runs.get(before).filter(|run| run.first <= tag)?;
    let count = |run: &TagRun| (run.last - run.first) as usize + 1;
    Some(runs[..before].iter().map(count).sum::<usize>() + (tag - run.first) as usize)
}

/// Returns the letter of a tag's type, see `tests/tools/fix50`; `None` if the version does not have
/// the tag.
pub(super) fn type_letter(tag: u32) -> Option<u8> {
    Some(TYPES[slot(tag)?]).filter(|&letter| letter != UNDEFINED)
}

/// Letters of the types that decide how a message is read, and of a tag that does not exist.
pub(super) const COUNT: u8 = b'N';
pub(super) const RAW_DATA: u8 = b'R';
const UNDEFINED: u8 = b'.';

static TYPES: [u8; SLOTS] = TYPE_LETTERS;

/// Letter of the type of each tag, by its slot.
pub(super) const TYPE_LETTERS: [u8; SLOTS] = {
    let mut types = [UNDEFINED; SLOTS];
    let mut at = 0;
    while at < TYPES_TEXT.len() {
        let (first, letters) = words::number(TYPES_TEXT, at);
        at = letters + 1;
        let mut tag = first;
        while TYPES_TEXT[at] != b'\n' {
            let Some(slot) = slot(tag) else { panic!("a tag without a slot") };
            types[slot] = TYPES_TEXT[at];
            tag += 1;
            at += 1;
        }
        at += 1;
    }
    types
};

/// A repeating group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fix50Group {
    /// Tag with the number of members.
    pub(super) count: u32,
    /// First tag of each member.
    pub(super) first: u32,
    /// The other tags of a member.
    pub(super) others: &'static [TagRun],
}

impl Fix50Group {
    /// Returns the place of a tag among those of a member. The first tag has the place zero.
    pub(super) fn place(&self, tag: u32) -> Option<usize> {
        match tag == self.first {
            true => Some(0),
            false => rank(self.others, tag).map(|rank| rank + 1),
        }
    }
}

/// Returns the group whose members a tag counts.
pub(super) fn group(count: u32) -> Option<Fix50Group> {
    let at = GROUPS.starts.partition_point(|&start| GROUPS.words[start].first < count);
    let [counts, opens, others @ ..] = GROUPS.line(at)? else { return None };
    let group = Fix50Group { count, first: opens.first, others };
    (counts.first == count).then_some(group)
}

/// Lines of the groups, by rising counting tag.
pub(super) const GROUP_LINES: GroupTable = table(GROUPS_TEXT, 0);

type GroupTable = Table<{ word_count(GROUPS_TEXT) }, { line_count(GROUPS_TEXT) }>;

static GROUPS: GroupTable = GROUP_LINES;

/// The tags of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessageTags {
    pub(super) required: &'static [TagRun],
    all: &'static [TagRun],
    /// Whether the message is one of the session layer, whose dictionary has fewer tags.
    is_of_session: bool,
}

impl MessageTags {
    pub(super) fn has(&self, tag: u32) -> bool {
        rank(self.all, tag).is_some()
    }

    /// Returns whether the dictionary of the message has a tag.
    pub(super) fn is_defined(&self, tag: u32) -> bool {
        match self.is_of_session {
            true => line_of(SESSION_TAGS).is_some_and(|tags| rank(tags.all, tag).is_some()),
            false => type_letter(tag).is_some(),
        }
    }
}

/// Name of the line with all tags of FIXT 1.1.
const SESSION_TAGS: &[u8] = b"FIXT";

/// Returns the tags of a message that a client may send.
pub(super) fn message(msg_type: &[u8]) -> Option<MessageTags> {
    let mut tags = line_of(msg_type).filter(|_| msg_type != SESSION_TAGS)?;
    tags.is_of_session = matches!(msg_type, [b'0'..=b'5' | b'A']);
    Some(tags)
}

fn line_of(name: &[u8]) -> Option<MessageTags> {
    let named = |offset: &&usize| {
        let rest = &MESSAGES_TEXT[**offset..];
        rest.starts_with(name) && rest.get(name.len()) == Some(&b' ')
    };
    let at = MESSAGES.offsets.iter().position(|offset| named(&offset)).filter(|_| !name.is_empty())?;
    let line = MESSAGES.line(at)?;
    let colon = line.iter().position(|&word| word == words::COLON)?;
    Some(MessageTags { required: &line[..colon], all: &line[colon + 1..], is_of_session: false })
}

static MESSAGES: Table<{ word_count(MESSAGES_TEXT) }, { line_count(MESSAGES_TEXT) }> =
    table(MESSAGES_TEXT, 1);

/// Returns whether the version permits a value of a tag; `None` if it lists no values.
pub(super) fn permits(tag: u32, value: &[u8]) -> Option<bool> {
    let line = VALUE_LINES[slot(tag)?].checked_sub(1)?;
    let lists = &VALUES_TEXT[VALUE_OFFSETS[line as usize]..];
    // A list ends where a line begins with a tag.
    let words = lists.split(|&byte| byte == b'\n').enumerate();
    let own = words.take_while(|(line, text)| *line == 0 || text.starts_with(b" "));
    Some(own.flat_map(|(_, text)| text.split(|&byte| byte == b' ')).any(|word| is_value(word, value)))
}

/// Returns whether a value is this word of a list, or a number in this range.
fn is_value(word: &[u8], value: &[u8]) -> bool {
    let Some(dots) = word.windows(2).position(|pair| pair == b"..") else {
        return word == value && !word.is_empty();
    };
    let number = |text: &[u8]| pitlane_engine::text::parse_u64(text).ok();
    let is_canonical = value == b"0" || !value.starts_with(b"0");
    let range = number(&word[..dots]).zip(number(&word[dots + 2..]));
    is_canonical
        && number(value).zip(range).is_some_and(|(number, (first, last))| (first..=last).contains(&number))
}

const VALUE_LINES_COUNT: usize = line_count(VALUES_TEXT);

/// Line with the values of each tag, plus one; zero for none.
static VALUE_LINES: [u16; SLOTS] = value_lines().0;

/// Offset of the values in each line.
static VALUE_OFFSETS: [usize; VALUE_LINES_COUNT] = value_lines().1;

const fn value_lines() -> ([u16; SLOTS], [usize; VALUE_LINES_COUNT]) {
    let (mut lines, mut offsets) = ([0; SLOTS], [0; VALUE_LINES_COUNT]);
    let (mut line, mut number) = (0, 0u16);
    let mut at = 0;
    while line < VALUE_LINES_COUNT {
        number += 1;
        // Tags may continue on the next line, up to the colon.
        while VALUES_TEXT[at] != b':' {
            if VALUES_TEXT[at].is_ascii_digit() {
                let (tag, end) = words::number(VALUES_TEXT, at);
                let Some(slot) = slot(tag) else { panic!("a tag without a slot") };
                lines[slot] = number;
                at = end;
            } else {
                at += 1;
            }
        }
        offsets[line] = at + 2;
        line += 1;
        at = words::next_line(VALUES_TEXT, at);
    }
    (lines, offsets)
}

/// Raw data whose tag does not follow that of its length: the length, the data.
const RAW_LINES: Table<{ word_count(RAW_TEXT) }, { line_count(RAW_TEXT) }> = table(RAW_TEXT, 0);

/// Returns the tag of the raw data whose length this tag gives.
pub(super) const fn data_of(length: u32) -> Option<u32> {
    let mut at = 0;
    while at < RAW_LINES.words.len() {
        let (listed, data) = (RAW_LINES.words[at].first, RAW_LINES.words[at + 1].first);
        if listed == length {
            return Some(data);
        }
        // The tag before such data is another field.
        if data == length + 1 {
            return None;
        }
        at += 2;
    }
    let (Some(slot_of_length), Some(slot_of_data)) = (slot(length), slot(length + 1)) else { return None };
    let is_pair = TYPE_LETTERS[slot_of_length] == COUNT && TYPE_LETTERS[slot_of_data] == RAW_DATA;
    if is_pair { Some(length + 1) } else { None }
}

#[cfg(test)]
mod tests;
