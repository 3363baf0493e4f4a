//! The names in directories: those certain to be on the disk, and later changes that may have reached it.

use std::collections::{BTreeMap, HashMap};

/// A file or a directory, independent of its names.
pub(crate) type NodeId = usize;

/// A file system's guarantees for names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Model {
    /// Changes of names are journalled in order; any sync makes all earlier ones durable: ext4, xfs, btrfs, APFS.
    Ordered,
    /// The guarantees of POSIX: each name is independent, and durable after a sync of its directory, or of the file (not the directory)
    /// that it names. A rename is also assumed to keep the file it renames. This model covers the changes of the product's own
    /// processes. The git command relies on [`Model::Ordered`], so its changes are made in order.
    Strict,
}

/// All names, and the changes that aren't durable yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    /// The names as programs see them.
    live: Tree,
    /// The names before the first change.
    first: Tree,
    changes: Vec<Change>,
    last_of_name: HashMap<(NodeId, String), usize>,
    last_journalled: Option<usize>,
}

/// Names by directory.
pub(crate) type Tree = BTreeMap<(NodeId, String), NodeId>;

#[derive(Debug, Clone)]
struct Change {
    directory: NodeId,
    name: String,
    /// The name's new target; `None` if the name was removed.
    target: Option<NodeId>,
    is_journalled: bool,
    is_durable: bool,
    /// The changes that this one depends on.
    needs: Vec<usize>,
    /// The first half of an atomic pair of changes, if this is its second half.
    part_of: Option<usize>,
}

impl Names {
    /// Adds a name from the snapshot.
    pub(crate) fn found(&mut self, directory: NodeId, name: &str, target: NodeId) {
        self.live.insert((directory, name.to_owned()), target);
        self.first.insert((directory, name.to_owned()), target);
    }

    pub(crate) fn get(&self, directory: NodeId, name: &str) -> Option<NodeId> {
        self.live.get(&(directory, name.to_owned())).copied()
    }

    /// Adds, removes or retargets a name. Returns the change's number.
    pub(crate) fn set(&mut self, place: (NodeId, &str), target: Option<NodeId>, is_journalled: bool) -> usize {
        let (directory, name) = (place.0, place.1.to_owned());
        let key = (directory, name.clone());
        let at = self.changes.len();
        let mut needs: Vec<usize> = self.last_of_name.insert(key.clone(), at).into_iter().collect();
        if is_journalled {
            needs.extend(self.last_journalled.replace(at));
        }
        match target {
            Some(target) => self.live.insert(key, target),
            None => self.live.remove(&key),
        };
        self.changes.push(Change { directory, name, target, is_journalled, is_durable: false, needs, part_of: None });
        at
    }

    /// Renames a target. If it stays in its directory, or is itself a directory, the rename is atomic; otherwise the disk may show both
    /// names for a while.
    pub(crate) fn rename(&mut self, from: (NodeId, &str), to: (NodeId, &str), is_directory: bool, is_journalled: bool) {
        let Some(target) = self.get(from.0, from.1) else { return };
        let came = self.set(to, Some(target), is_journalled);
        let went = self.set(from, None, is_journalled);
        if let Some(went) = self.changes.get_mut(went) {
            if is_journalled || is_directory || from.0 == to.0 {
                went.part_of = Some(came);
            } else {
                went.needs.push(came);
            }
        }
    }

    /// Exchanges two names atomically.
    pub(crate) fn exchange(&mut self, one: (NodeId, &str), other: (NodeId, &str), is_journalled: bool) {
        let (a, b) = (self.get(one.0, one.1), self.get(other.0, other.1));
        let first = self.set(one, b, is_journalled);
        let second = self.set(other, a, is_journalled);
        if let Some(second) = self.changes.get_mut(second) {
            second.part_of = Some(first);
        }
    }

    /// Syncs a directory, which makes the changes in it durable, but not its own name.
    pub(crate) fn sync_directory(&mut self, node: NodeId) {
        self.sync(|change| change.directory == node);
    }

    /// Syncs a file, which makes its names durable.
    pub(crate) fn sync_file(&mut self, node: NodeId) {
        self.sync(|change| change.target == Some(node));
    }

    pub(crate) fn sync_all(&mut self) {
        self.sync(|_| true);
    }

    /// Any sync also makes the journalled changes durable.
    fn sync(&mut self, covers: impl Fn(&Change) -> bool) {
        let covered = |change: &Change| change.is_journalled || covers(change);
        let covered: Vec<usize> = self
            .changes
            .iter()
            .enumerate()
            .filter(|(_, change)| !change.is_durable && covered(change))
            .map(|(at, _)| at)
            .collect();
        covered.into_iter().for_each(|at| self.settle(at));
    }

    /// Makes a change durable, with the changes it depends on and its other half.
    pub(crate) fn settle(&mut self, at: usize) {
        let mut todo = vec![at];
        while let Some(at) = todo.pop() {
            let halves: Vec<usize> = (at.saturating_sub(1)..=at + 1).filter(|other| self.is_part(*other, at)).collect();
            if let Some(change) = self.changes.get_mut(at).filter(|change| !change.is_durable) {
                change.is_durable = true;
                todo.extend(change.needs.iter().copied().chain(change.part_of).chain(halves));
            }
        }
    }

    fn is_part(&self, other: usize, of: usize) -> bool {
        other != of && self.changes.get(other).is_some_and(|change| change.part_of == Some(of))
    }

    /// The number of changes, durable or not.
    pub(crate) fn changes(&self) -> usize {
        self.changes.len()
    }

    /// The number of changes that a power loss may undo.
    pub(crate) fn pending(&self) -> usize {
        self.changes.iter().filter(|change| !change.is_durable).count()
    }

    /// All names as programs see them.
    pub(crate) fn live(&self) -> &Tree {
        &self.live
    }

    /// The names that the disk may show after a power loss: those of durable changes, and of other changes that `is_kept` selects, provided
    /// that the changes they depend on are kept too. The argument of `is_kept` is whether the change is journalled.
    pub(crate) fn after_power_loss(&self, mut is_kept: impl FnMut(bool) -> bool) -> Tree {
        let mut tree = self.first.clone();
        let mut kept: Vec<bool> = Vec::with_capacity(self.changes.len());
        for change in &self.changes {
            let has = |at: &usize| kept.get(*at).copied().unwrap_or(false);
            let is_there = match change.part_of {
                _ if change.is_durable => true,
                Some(whole) => has(&whole),
                None => is_kept(change.is_journalled) && change.needs.iter().all(has),
            };
            kept.push(is_there);
            let key = (change.directory, change.name.clone());
            match change.target {
                _ if !is_there => {}
                Some(target) => drop(tree.insert(key, target)),
                None => drop(tree.remove(&key)),
            }
        }
        tree
    }
}
