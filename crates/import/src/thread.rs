//! Conversations as trees: an edited question or a second answer begins another branch, and the branch shown last is used. Foreign trees
//! may have cycles, gaps, or thousands of levels.

use std::collections::{BTreeMap, HashMap, HashSet};

/// A message in its tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct ThreadNode<'a> {
    pub(super) id: &'a str,
    /// The message answered.
    pub(super) parent: Option<&'a str>,
    /// The time, in seconds since 1970.
    pub(super) at: Option<f64>,
}

/// Returns the indexes of the messages shown last, in order. `current` is the id of the last message, if known. Unconnected pieces are all
/// included, by time.
pub(super) fn find_shown_branch(nodes: &[ThreadNode<'_>], current: Option<&str>) -> Vec<usize> {
    if nodes.iter().all(|node| node.parent.is_none()) {
        return (0..nodes.len()).collect();
    }
    let tree = ThreadTree::new(nodes);
    let current = current.and_then(|id| tree.places.get(id).copied()).filter(|at| *at < nodes.len());
    let last = match current {
        Some(at) => Some(tree.newest_below(at)),
        None => (0..nodes.len()).max_by(|one, other| tree.compare_age(*one, *other)),
    };
    let Some(last) = last else { return Vec::new() };
    let mut newest: BTreeMap<usize, usize> = BTreeMap::new();
    for at in 0..nodes.len() {
        let kept = newest.entry(tree.root(at)).or_insert(at);
        if tree.compare_age(*kept, at).is_lt() {
            *kept = at;
        }
    }
    newest.insert(tree.root(last), last);
    let mut pieces: Vec<Vec<usize>> = newest.into_values().map(|last| tree.path_to(last)).collect();
    let begins = |piece: &Vec<usize>| piece.iter().find_map(|at| nodes.get(*at)?.at);
    if pieces.iter().all(|piece| begins(piece).is_some()) {
        pieces.sort_by(|one, other| begins(one).unwrap_or(0.0).total_cmp(&begins(other).unwrap_or(0.0)));
    } else {
        pieces.sort_by_key(|piece| piece.first().copied());
    }
    pieces.concat()
}

/// The tree by index. Parents without a message have indexes after the messages'.
struct ThreadTree<'a> {
    nodes: usize,
    places: HashMap<&'a str, usize>,
    parents: Vec<Option<usize>>,
    looked_up: Vec<Option<ThreadPlace>>,
}

/// The position of a message in its tree.
#[derive(Debug, Clone, Copy)]
struct ThreadPlace {
    root: usize,
    depth: usize,
    /// The newest time on the way from the root.
    newest: f64,
}

impl<'a> ThreadTree<'a> {
    fn new(nodes: &[ThreadNode<'a>]) -> Self {
        let mut places = HashMap::new();
        for (at, node) in nodes.iter().enumerate() {
            places.entry(node.id).or_insert(at);
        }
        let mut parents = Vec::with_capacity(nodes.len());
        for (at, node) in nodes.iter().enumerate() {
            let next = places.len() + nodes.len();
            let parent = node.parent.map(|parent| *places.entry(parent).or_insert(next));
            parents.push(parent.filter(|parent| *parent != at));
        }
        let count = places.values().max().map_or(0, |last| last + 1).max(nodes.len());
        parents.resize(count, None);
        let mut tree = Self { nodes: nodes.len(), places, parents, looked_up: vec![None; count] };
        for at in 0..count {
            tree.look_up(at, nodes);
        }
        tree
    }

    /// Computes the positions of a message and all its ancestors. A cycle is cut where it closes.
    fn look_up(&mut self, from: usize, nodes: &[ThreadNode<'_>]) {
        let mut path = Vec::new();
        let mut seen = HashSet::new();
        let mut next = Some(from);
        while let Some(at) = next
            && self.looked_up.get(at).is_some_and(Option::is_none)
            && seen.insert(at)
        {
            path.push(at);
            next = self.parents.get(at).copied().flatten();
        }
        for at in path.into_iter().rev() {
            let own = nodes.get(at).and_then(|node| node.at).filter(|at| at.is_finite()).unwrap_or(f64::NEG_INFINITY);
            let above =
                self.parents.get(at).copied().flatten().and_then(|parent| self.looked_up.get(parent).copied()?);
            let place = match above {
                Some(above) => ThreadPlace { root: above.root, depth: above.depth + 1, newest: above.newest.max(own) },
                None => ThreadPlace { root: at, depth: 0, newest: own },
            };
            if let Some(looked_up) = self.looked_up.get_mut(at) {
                *looked_up = Some(place);
            }
        }
    }

    fn place(&self, at: usize) -> ThreadPlace {
        let none = ThreadPlace { root: at, depth: 0, newest: f64::NEG_INFINITY };
        self.looked_up.get(at).copied().flatten().unwrap_or(none)
    }

    fn root(&self, at: usize) -> usize {
        self.place(at).root
    }

    /// Compares the age of two messages: by time, then depth, then index.
    fn compare_age(&self, one: usize, other: usize) -> std::cmp::Ordering {
        let key = |at: usize| (self.place(at).newest, self.place(at).depth);
        let (one_key, other_key) = (key(one), key(other));
        one_key.0.total_cmp(&other_key.0).then(one_key.1.cmp(&other_key.1)).then(one.cmp(&other))
    }

    /// Returns the newest among a message and its descendants.
    fn newest_below(&self, at: usize) -> usize {
        let mut children: HashMap<usize, Vec<usize>> = HashMap::new();
        for (child, parent) in self.parents.iter().enumerate() {
            if let Some(parent) = parent {
                children.entry(*parent).or_default().push(child);
            }
        }
        let mut seen = HashSet::from([at]);
        let mut open = vec![at];
        let mut newest = at;
        while let Some(next) = open.pop() {
            if self.compare_age(newest, next).is_lt() {
                newest = next;
            }
            open.extend(children.get(&next).into_iter().flatten().filter(|child| seen.insert(**child)));
        }
        newest
    }

    /// Returns the indexes from a root down to a message.
    fn path_to(&self, last: usize) -> Vec<usize> {
        let mut path = Vec::new();
        let mut seen = HashSet::new();
        let mut next = Some(last);
        while let Some(at) = next
            && seen.insert(at)
        {
            path.push(at);
            next = self.parents.get(at).copied().flatten();
        }
        path.retain(|at| *at < self.nodes);
        path.reverse();
        path
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Row<'a> = (&'a str, Option<&'a str>, Option<f64>);

    fn branch(nodes: &[Row<'_>], current: Option<&str>) -> String {
        let nodes: Vec<_> = nodes.iter().map(|(id, parent, at)| ThreadNode { id, parent: *parent, at: *at }).collect();
        find_shown_branch(&nodes, current).into_iter().map(|at| nodes[at].id).collect()
    }

    #[test]
    fn the_branch_that_was_shown_last_is_found() {
        let tree: &[Row<'_>] = &[
            ("r", None, None),
            ("a", Some("r"), Some(1.0)),
            ("b", Some("a"), Some(2.0)),
            ("c", Some("a"), Some(3.0)),
            ("d", Some("b"), Some(4.0)),
        ];
        let plain: &[Row<'_>] =
            &[("a", None, None), ("b", Some("a"), None), ("c", Some("b"), None), ("d", Some("a"), None)];
        let in_pieces: &[Row<'_>] =
            &[("c", Some("gone"), Some(3.0)), ("a", Some("r"), Some(1.0)), ("b", Some("a"), Some(2.0))];
        let untimed: &[Row<'_>] = &[("a", None, None), ("b", Some("a"), None), ("c", Some("gone"), None)];
        let edited: &[Row<'_>] =
            &[("a", Some("0"), Some(1.0)), ("b", Some("0"), Some(2.0)), ("c", Some("b"), Some(3.0))];
        for (name, nodes, current, expected) in [
            ("the one that is named", tree, Some("c"), "rac"),
            ("one that others follow", tree, Some("a"), "rabd"),
            ("none is named: the newest", tree, None, "rabd"),
            ("an unknown one: the newest", tree, Some("gone"), "rabd"),
            ("no times: the longest", plain, None, "abc"),
            ("pieces, by their times", in_pieces, Some("c"), "abc"),
            ("pieces without times, as they stand", untimed, Some("c"), "abc"),
            ("two first messages of one parent that isn't there", edited, None, "bc"),
            ("no parents at all", &[("a", None, None), ("b", None, Some(1.0)), ("c", None, None)], Some("a"), "abc"),
            ("a circle", &[("a", Some("b"), None), ("b", Some("a"), None)], Some("a"), "ba"),
            ("its own parent", &[("a", Some("a"), None), ("b", Some("a"), None)], Some("b"), "ab"),
            (
                "a message that stands there twice",
                &[("a", None, None), ("b", Some("a"), None), ("b", Some("a"), None)],
                Some("b"),
                "ab",
            ),
            ("no messages", &[], None, ""),
        ] {
            assert_eq!(branch(nodes, current), expected, "{name}");
        }
    }

    #[test]
    fn a_chain_may_be_long() {
        let ids: Vec<String> = (0..100_000).map(|n| n.to_string()).collect();
        let node =
            |n: usize| ThreadNode { id: &ids[n], parent: n.checked_sub(1).map(|above| ids[above].as_str()), at: None };
        let nodes: Vec<_> = (0..ids.len()).map(node).collect();
        assert_eq!(find_shown_branch(&nodes, None), (0..ids.len()).collect::<Vec<_>>());
    }

    proptest! {
        #[test]
        fn any_tree_ends_and_names_no_message_twice(parents in prop::collection::vec((0_usize..12, any::<Option<f64>>()), 0..10), current in 0_usize..12) {
            let ids: Vec<String> = (0..12).map(|n| n.to_string()).collect();
            let nodes: Vec<_> = parents.iter().enumerate().map(|(n, (parent, at))| ThreadNode {
                id: &ids[n],
                parent: (*parent < 11).then(|| ids[*parent].as_str()),
                at: *at,
            }).collect();
            let branch = find_shown_branch(&nodes, Some(&ids[current]));
            let once: HashSet<_> = branch.iter().collect();
            prop_assert_eq!(once.len(), branch.len());
            prop_assert_eq!(branch.is_empty(), nodes.is_empty());
            prop_assert!(current >= nodes.len() || branch.contains(&current));
        }
    }
}
