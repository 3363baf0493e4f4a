//! A simulated disk. It plays the record of a run onto a snapshot and builds a tree a real disk could show if the power failed at
//! that moment.
//!
//! Bytes and names are lost separately, as on real disks: see [`data`] for a file's bytes, and [`names`] for the assumptions about
//! directories. Files of other machines (a remote) are never lost.

mod data;
mod names;
pub(crate) mod record;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    fs, io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    time::Duration,
};

pub(crate) use self::names::Model;
use self::{
    data::{Data, Kept},
    names::{Names, NodeId, Tree},
    record::{EXCHANGED, Entry, Kind},
};

/// Files that are only shared memory of SQLite's processes, rebuilt by the first one that opens the database.
const SHARED_MEMORY: &str = "-shm";
/// Permissions of files the run made.
const FILE_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o755;
/// The time a machine takes to come up again: all files are at least that old.
const REBOOT: Duration = Duration::from_secs(30);
const ROOT: NodeId = 0;

/// A directory tree during a run, with its durable part.
#[derive(Debug, Clone)]
pub(crate) struct Disk<'a> {
    root: PathBuf,
    /// Directories of other machines, relative to the root.
    elsewhere: Vec<String>,
    nodes: Vec<Node<'a>>,
    names: Names,
    by_ino: HashMap<u64, NodeId>,
}

#[derive(Debug, Clone)]
struct Node<'a> {
    is_elsewhere: bool,
    mode: u32,
    holds: Holds<'a>,
}

#[derive(Debug, Clone)]
enum Holds<'a> {
    Directory,
    File(Data<'a>),
    Link(String),
}

/// The severity of the power loss, for the names and for the files' bytes.
#[derive(Debug, Clone, Copy)]
enum Mood {
    Nothing,
    Everything,
    Some,
}

/// A tree for writing to a real disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Picture {
    root: PathBuf,
    /// By path; a file with several names appears under each of them, with the same node.
    items: BTreeMap<String, (NodeId, u32, Item)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    Directory,
    File(Vec<u8>),
    Link(String),
}

impl<'a> Disk<'a> {
    /// The disk's current content, all of it durable. `elsewhere`: its directories of other machines.
    pub(crate) fn snapshot(root: &Path, elsewhere: &[&str]) -> io::Result<Self> {
        let elsewhere = elsewhere.iter().map(|path| (*path).to_owned()).collect();
        let mut disk = Self {
            root: root.to_owned(),
            elsewhere,
            nodes: Vec::new(),
            names: Names::default(),
            by_ino: HashMap::new(),
        };
        disk.add(root, "")?;
        Ok(disk)
    }

    fn add(&mut self, path: &Path, relative: &str) -> io::Result<NodeId> {
        let found = fs::symlink_metadata(path)?;
        if let Some(node) = self.by_ino.get(&found.ino()).filter(|_| !found.is_dir()) {
            return Ok(*node);
        }
        let holds = if found.is_dir() {
            Holds::Directory
        } else if found.is_symlink() {
            Holds::Link(fs::read_link(path)?.to_string_lossy().into_owned())
        } else {
            Holds::File(Data::of(fs::read(path)?))
        };
        let node = self.make(holds, found.mode() & 0o7777, relative);
        self.by_ino.insert(found.ino(), node);
        if found.is_dir() {
            for entry in fs::read_dir(path)? {
                let name = entry?.file_name().to_string_lossy().into_owned();
                let below = self.add(&path.join(&name), &joined(relative, &name))?;
                self.names.found(node, &name, below);
            }
        }
        Ok(node)
    }

    fn make(&mut self, holds: Holds<'a>, mode: u32, relative: &str) -> NodeId {
        self.nodes.push(Node { is_elsewhere: self.is_elsewhere(relative), mode, holds });
        self.nodes.len() - 1
    }

    fn is_elsewhere(&self, relative: &str) -> bool {
        self.elsewhere.iter().any(|other| Path::new(relative).starts_with(other))
    }

    /// Tells whether an entry changed something on another machine.
    pub(crate) fn happened_elsewhere(&self, entry: &Entry) -> bool {
        match self.by_ino.get(&entry.ino).and_then(|node| self.nodes.get(*node)) {
            _ if !entry.path.is_empty() => self.relative(&entry.path).is_ok_and(|path| self.is_elsewhere(&path)),
            node => node.is_some_and(|node| node.is_elsewhere),
        }
    }

    /// Plays one entry. `model` governs the names it changes.
    pub(crate) fn play(&mut self, entry: &'a Entry, model: Model) -> Result<(), String> {
        let is_elsewhere = self.happened_elsewhere(entry);
        let before = self.names.changes();
        self.play_names(entry, model == Model::Ordered && !is_elsewhere)?;
        if is_elsewhere {
            (before..self.names.changes()).for_each(|at| self.names.settle(at));
        }
        match entry.kind {
            Kind::Write => self.change(entry, |data, offset| data.write(offset, &entry.data)),
            Kind::Truncate => self.change(entry, Data::truncate),
            Kind::SyncFile | Kind::SyncDirectory => {
                let Some(node) = self.by_ino.get(&entry.ino).copied() else {
                    return Err(format!("an unknown file was synced: {entry:?}"));
                };
                if let Some(Node { holds: Holds::File(data), .. }) = self.nodes.get_mut(node) {
                    data.sync();
                }
                match entry.kind {
                    _ if is_elsewhere => {}
                    Kind::SyncDirectory => self.names.sync_directory(node),
                    _ => self.names.sync_file(node),
                }
                Ok(())
            }
            Kind::SyncAll => {
                self.names.sync_all();
                for node in &mut self.nodes {
                    if let Holds::File(data) = &mut node.holds {
                        data.sync();
                    }
                }
                Ok(())
            }
            Kind::Unmodelled => Err(format!("the disk doesn't know what this does: {entry:?}")),
            _ => Ok(()),
        }
    }

    fn play_names(&mut self, entry: &Entry, is_journalled: bool) -> Result<(), String> {
        let relative = if entry.path.is_empty() { String::new() } else { self.relative(&entry.path)? };
        let holds = match entry.kind {
            Kind::Create => Some((Holds::File(Data::default()), FILE_MODE)),
            Kind::MakeDirectory => Some((Holds::Directory, DIRECTORY_MODE)),
            Kind::SymbolicLink => Some((Holds::Link(entry.path2.clone()), FILE_MODE)),
            _ => None,
        };
        if let Some((holds, mode)) = holds {
            let node = self.make(holds, mode, &relative);
            self.by_ino.insert(entry.ino, node);
            let place = self.place(&relative)?;
            self.names.set(place, Some(node), is_journalled);
            return Ok(());
        }
        match entry.kind {
            Kind::Unlink | Kind::RemoveDirectory => {
                let place = self.place(&relative)?;
                self.names.set(place, None, is_journalled);
            }
            Kind::Link => {
                let other = self.relative(&entry.path2)?;
                let node = self.node(&relative)?;
                let place = self.place(&other)?;
                self.names.set(place, Some(node), is_journalled);
            }
            Kind::Rename => {
                let other = self.relative(&entry.path2)?;
                let node = self.node(&relative)?;
                let (from, to) = (self.place(&relative)?, self.place(&other)?);
                if entry.flags & EXCHANGED != 0 {
                    self.names.exchange(from, to, is_journalled);
                } else {
                    let is_directory = matches!(self.nodes.get(node), Some(Node { holds: Holds::Directory, .. }));
                    self.names.rename(from, to, is_directory, is_journalled);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn change(&mut self, entry: &Entry, how: impl FnOnce(&mut Data<'a>, u64)) -> Result<(), String> {
        let known = self.by_ino.get(&entry.ino).and_then(|node| self.nodes.get_mut(*node));
        let offset = u64::try_from(entry.offset).map_err(|_| format!("a negative offset: {entry:?}"))?;
        match known {
            Some(Node { holds: Holds::File(data), .. }) => how(data, offset),
            _ if entry.path.ends_with(SHARED_MEMORY) => {}
            _ => return Err(format!("an unknown file was written: {} at {offset} (inode {})", entry.path, entry.ino)),
        }
        Ok(())
    }

    fn relative(&self, path: &str) -> Result<String, String> {
        let below = Path::new(path).strip_prefix(&self.root).map_err(|_| format!("{path} lies elsewhere"))?;
        Ok(below.to_string_lossy().into_owned())
    }

    fn node(&self, relative: &str) -> Result<NodeId, String> {
        let parts = relative.split('/').filter(|part| !part.is_empty() && *part != ".");
        parts
            .clone()
            .try_fold(ROOT, |directory, name| self.names.get(directory, name))
            .ok_or_else(|| format!("{relative} isn't there, says the record"))
    }

    /// A path's directory and last name.
    fn place<'p>(&self, relative: &'p str) -> Result<(NodeId, &'p str), String> {
        let relative = relative.trim_end_matches('/');
        let (parent, name) = relative.rsplit_once('/').unwrap_or(("", relative));
        Ok((self.node(parent)?, name))
    }

    /// Names of another machine's files, as programs see them.
    pub(crate) fn paths_elsewhere(&self) -> impl Iterator<Item = &str> {
        let is_elsewhere = |node: &NodeId| self.nodes.get(*node).is_some_and(|node| node.is_elsewhere);
        self.names.live().iter().filter(move |(_, node)| is_elsewhere(node)).map(|((_, name), _)| name.as_str())
    }

    /// The tree programs see.
    pub(crate) fn now(&self) -> Picture {
        self.picture(self.names.live(), |data| data.now())
    }

    /// A possible tree after the power comes back, with a description of the kept changes.
    pub(crate) fn after_power_loss(&self, random: &mut fastrand::Rng) -> (Picture, String) {
        let names = mood(random);
        let tree = match names {
            Mood::Nothing => self.names.after_power_loss(|_| false),
            Mood::Everything => self.names.after_power_loss(|_| true),
            Mood::Some => {
                // The first `left` of the journalled changes; of the others `often` in ten.
                let mut left = random.usize(0..=self.names.pending());
                let often = [1, 2, 5, 9][random.usize(0..4)];
                self.names.after_power_loss(|is_journalled| {
                    let is_early = left > 0;
                    left = left.saturating_sub(usize::from(is_journalled));
                    if is_journalled { is_early } else { random.usize(0..10) < often }
                })
            }
        };
        let bytes = mood(random);
        let one_way = Kept::any(random);
        let same_for_all = random.bool();
        let kept = |random: &mut fastrand::Rng| match bytes {
            Mood::Nothing => Kept::Nothing,
            Mood::Everything => Kept::Everything,
            Mood::Some if same_for_all => one_way,
            Mood::Some => Kept::any(random),
        };
        let picture = self.picture(&tree, |data| data.after_power_loss(kept(random), random));
        (
            picture,
            format!(
                "of the unsynced names {names:?} kept, of the bytes {bytes:?} ({one_way:?} for all: {same_for_all})"
            ),
        )
    }

    fn picture(&self, tree: &Tree, mut bytes_of: impl FnMut(&Data<'a>) -> Vec<u8>) -> Picture {
        let mut picture = Picture { root: self.root.clone(), items: BTreeMap::new() };
        let mut shown = HashMap::new();
        self.walk(tree, ROOT, "", &mut HashSet::new(), &mut |path, id, node| {
            let item = shown.entry(id).or_insert_with(|| match &node.holds {
                Holds::Directory => Item::Directory,
                Holds::Link(target) => Item::Link(target.clone()),
                Holds::File(data) if node.is_elsewhere => Item::File(data.now()),
                Holds::File(data) => Item::File(bytes_of(data)),
            });
            picture.items.insert(path.to_owned(), (id, node.mode, item.clone()));
        });
        picture
    }

    /// Visits every name below a directory. A directory that has two names for a while is visited under the first.
    fn walk(
        &self,
        tree: &Tree,
        directory: NodeId,
        path: &str,
        seen: &mut HashSet<NodeId>,
        visit: &mut impl FnMut(&str, NodeId, &Node<'a>),
    ) {
        if !seen.insert(directory) {
            return;
        }
        let from = (directory, String::new());
        for ((_, name), id) in tree.range(from..).take_while(|((of, _), _)| *of == directory) {
            let Some(node) = self.nodes.get(*id) else { continue };
            let path = joined(path, name);
            visit(&path, *id, node);
            if matches!(node.holds, Holds::Directory) {
                self.walk(tree, *id, &path, seen, visit);
            }
        }
    }
}

/// The hardest losses get more weight than chance would give them.
fn mood(random: &mut fastrand::Rng) -> Mood {
    [Mood::Nothing, Mood::Everything, Mood::Some, Mood::Some][random.usize(0..4)]
}

fn joined(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}

impl Picture {
    /// Replaces the content of a directory. In git's settings this root replaces the recorded one.
    pub(crate) fn write(&self, root: &Path) -> io::Result<()> {
        for entry in fs::read_dir(root)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() { fs::remove_dir_all(entry.path())? } else { fs::remove_file(entry.path())? }
        }
        let since_when = fs::metadata(root)?.modified()?.checked_sub(REBOOT);
        let mut written: HashMap<NodeId, PathBuf> = HashMap::new();
        // A directory comes before its content.
        for (path, (id, mode, item)) in &self.items {
            let path = root.join(path);
            match (item, written.get(id)) {
                (Item::Directory, _) => fs::create_dir(&path)?,
                (_, Some(first)) => fs::hard_link(first, &path)?,
                (Item::Link(target), None) => symlink(target, &path)?,
                (Item::File(bytes), None) => {
                    let (from, to) = (self.root.to_string_lossy(), root.to_string_lossy());
                    match str::from_utf8(bytes).ok().filter(|_| path.ends_with(".git/config")) {
                        Some(settings) => fs::write(&path, settings.replace(&*from, &to))?,
                        None => fs::write(&path, bytes)?,
                    }
                    fs::set_permissions(&path, fs::Permissions::from_mode(*mode))?;
                    if let Some(then) = since_when {
                        fs::File::open(&path)?.set_modified(then)?;
                    }
                }
            }
            written.insert(*id, path);
        }
        Ok(())
    }

    /// A file's bytes.
    pub(crate) fn file(&self, path: &str) -> Option<&[u8]> {
        match self.items.get(path) {
            Some((_, _, Item::File(bytes))) => Some(bytes),
            _ => None,
        }
    }

    /// The paths at which two pictures differ, except for these names at the root.
    pub(crate) fn differences(&self, other: &Self, but_for: &[&str]) -> Vec<String> {
        let paths: BTreeSet<&String> = self.items.keys().chain(other.items.keys()).collect();
        let item = |picture: &Self, path: &String| picture.items.get(path).map(|(_, _, item)| item.clone());
        let differs = |path: &&&String| {
            !but_for.contains(&path.as_str()) && !path.ends_with(SHARED_MEMORY) && item(self, path) != item(other, path)
        };
        paths.iter().filter(differs).map(|path| (*path).clone()).collect()
    }

    /// All paths.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.items.keys().map(String::as_str)
    }
}
