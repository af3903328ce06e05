//! Finds the subscribers of a topic. Patterns are in a tree by their segments. A lookup walks down
//! the topic's own segments, so it costs as much as there are matching subscribers, however many
//! others there are.
//!
//! ```text
//! root ─ tick ─┬─ 42    here: subscribers of tick.42
//!              └─ *     here: subscribers of tick.*
//!                       below (of tick): subscribers of tick.>
//! ```

use pitlane_engine::index::index_u32;

use std::collections::BTreeMap;

use super::pattern::{Pattern, PatternSegment};

/// One subscription of one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subscriber {
    /// Slot of the session.
    pub session: u32,
    /// Place of the subscription in its session.
    pub subscription: u16,
}

#[derive(Debug)]
pub struct SubscriptionIndex {
    nodes: Vec<IndexNode>,
    free: Vec<u32>,
    /// Number that rises with every change, so that a cached result is known to be outdated.
    generation: u64,
    len: usize,
}

#[derive(Debug, Default)]
struct IndexNode {
    names: BTreeMap<Box<str>, u32>,
    any: Option<u32>,
    here: Vec<Subscriber>,
    below: Vec<Subscriber>,
}

impl IndexNode {
    fn is_empty(&self) -> bool {
        self.names.is_empty() && self.any.is_none() && self.here.is_empty() && self.below.is_empty()
    }
}

const ROOT: u32 = 0;

impl Default for SubscriptionIndex {
    fn default() -> SubscriptionIndex {
        SubscriptionIndex { nodes: vec![IndexNode::default()], free: Vec::new(), generation: 1, len: 0 }
    }
}

impl SubscriptionIndex {
    pub fn generation(&self) -> u64 {
        self.generation
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn insert(&mut self, pattern: &Pattern, subscriber: Subscriber) {
        let mut at = ROOT;
        for segment in pattern.segments() {
            at = self.child(at, segment);
        }
        let node = &mut self.nodes[at as usize];
        if pattern.below() {
            node.below.push(subscriber)
        } else {
            node.here.push(subscriber)
        }
        self.generation += 1;
        self.len += 1;
    }

    /// Removes a subscriber and returns whether it existed.
    pub fn remove(&mut self, pattern: &Pattern, subscriber: Subscriber) -> bool {
        let mut path = vec![ROOT];
        for segment in pattern.segments() {
            let node = &self.nodes[path[path.len() - 1] as usize];
            let child = match segment {
                PatternSegment::Any => node.any,
                PatternSegment::Name(name) => node.names.get(name).copied(),
            };
            let Some(child) = child else { return false };
            path.push(child);
        }
        let node = &mut self.nodes[path[path.len() - 1] as usize];
        let list = if pattern.below() { &mut node.below } else { &mut node.here };
        let Some(at) = list.iter().position(|other| *other == subscriber) else { return false };
        list.swap_remove(at);
        self.prune(&path, pattern.segments());
        self.generation += 1;
        self.len -= 1;
        true
    }

    /// Puts all subscribers of a topic into `found`, by session and subscription, each once.
    pub fn find(&self, name: &str, found: &mut Vec<Subscriber>) {
        found.clear();
        self.walk(ROOT, Some(name), found);
        found.sort_unstable();
    }

    /// Branches where both the name and `*` match: at most two ways per segment, and topics have
    /// three segments.
    fn walk(&self, at: u32, rest: Option<&str>, found: &mut Vec<Subscriber>) {
        let node = &self.nodes[at as usize];
        found.extend_from_slice(&node.below);
        let Some(rest) = rest else {
            found.extend_from_slice(&node.here);
            return;
        };
        let (first, rest) = match rest.split_once('.') {
            Some((first, rest)) => (first, Some(rest)),
            None => (rest, None),
        };
        if let Some(&child) = node.names.get(first) {
            self.walk(child, rest, found);
        }
        if let Some(child) = node.any {
            self.walk(child, rest, found);
        }
    }

    fn child(&mut self, at: u32, segment: &PatternSegment) -> u32 {
        let node = &self.nodes[at as usize];
        let found = match segment {
            PatternSegment::Any => node.any,
            PatternSegment::Name(name) => node.names.get(name).copied(),
        };
        if let Some(found) = found {
            return found;
        }
        let new = self.free.pop().unwrap_or_else(|| {
            self.nodes.push(IndexNode::default());
            index_u32(self.nodes.len() - 1)
        });
        let node = &mut self.nodes[at as usize];
        match segment {
            PatternSegment::Any => node.any = Some(new),
            PatternSegment::Name(name) => {
                node.names.insert(name.clone(), new);
            }
        }
        new
    }

    /// Frees nodes without subscribers and children.
    fn prune(&mut self, path: &[u32], segments: &[PatternSegment]) {
        for (depth, segment) in segments.iter().enumerate().rev() {
            let child = path[depth + 1];
            if !self.nodes[child as usize].is_empty() {
                return;
            }
            self.nodes[child as usize] = IndexNode::default();
            self.free.push(child);
            let parent = &mut self.nodes[path[depth] as usize];
            match segment {
                PatternSegment::Any => parent.any = None,
                PatternSegment::Name(name) => {
                    parent.names.remove(name);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stomp::topic::Naming;

    fn pattern(text: &str) -> Pattern {
        Pattern::parse(&format!("/topic/{text}"), &Naming::default()).unwrap()
    }

    #[test]
    fn an_empty_tree_keeps_no_nodes() {
        let mut index = SubscriptionIndex::default();
        let who = |session| Subscriber { session, subscription: 0 };
        let patterns = ["a.b.c", "a.*.c", "a.>", ">", "*"].map(pattern);
        for (session, pattern) in patterns.iter().enumerate() {
            index.insert(pattern, who(session as u32));
        }
        let mut found = Vec::new();
        index.find("a.b.c", &mut found);
        assert_eq!(found, [who(0), who(1), who(2), who(3)]);
        index.find("a", &mut found);
        assert_eq!(found, [who(2), who(3), who(4)]);
        let generation = index.generation();
        assert!(!index.remove(&patterns[0], who(9)));
        assert_eq!(index.generation(), generation);
        for (session, pattern) in patterns.iter().enumerate() {
            assert!(index.remove(pattern, who(session as u32)));
        }
        assert!(index.is_empty() && index.nodes[0].is_empty());
        assert_eq!(index.free.len() + 1, index.nodes.len());
    }
}
