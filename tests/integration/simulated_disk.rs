//! The campaign's simulated disk: what it may lose, and what it never does.

#[expect(dead_code, reason = "the campaign needs more of it than its tests")]
#[path = "../campaign/disk/mod.rs"]
mod disk;

use std::{collections::BTreeSet, fs, os::unix::fs::MetadataExt as _};

use disk::{
    Disk, Model,
    record::{self, Entry, Kind},
};

/// States that are looked at: enough for each kind of loss to come up many times.
const STATES: u64 = 400;

/// A run on a simulated disk beneath a real directory.
struct Run {
    dir: tempfile::TempDir,
    entries: Vec<Entry>,
    /// Entries with these numbers were made by git.
    model: Model,
}

impl Run {
    fn new(model: Model) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("d")).unwrap();
        fs::create_dir(dir.path().join("e")).unwrap();
        fs::write(dir.path().join("old"), [b'o'; 1024]).unwrap();
        Self { dir, entries: Vec::new(), model }
    }

    fn inode(&self, path: &str) -> u64 {
        fs::symlink_metadata(self.dir.path().join(path)).unwrap().ino()
    }

    fn did(&mut self, kind: Kind, ino: u64, offset: i64, path: &str, path2: &str, data: &[u8]) -> &mut Self {
        let whole =
            |path: &str| if path.is_empty() { String::new() } else { self.dir.path().join(path).display().to_string() };
        let (path, path2) = (whole(path), whole(path2));
        self.entries.push(Entry { kind, flags: 0, pid: 1, ino, offset, path, path2, data: data.to_vec() });
        self
    }

    fn create(&mut self, ino: u64, path: &str, data: &[u8]) -> &mut Self {
        self.did(Kind::Create, ino, 0, path, "", b"").did(Kind::Write, ino, 0, path, "", data)
    }

    fn sync(&mut self, ino: u64) -> &mut Self {
        self.did(Kind::SyncFile, ino, 0, "", "", b"")
    }

    fn sync_directory(&mut self, path: &str) -> &mut Self {
        let ino = self.inode(path);
        self.did(Kind::SyncDirectory, ino, 0, path, "", b"")
    }

    fn rename(&mut self, from: &str, to: &str) -> &mut Self {
        self.did(Kind::Rename, 0, 0, from, to, b"")
    }

    /// What the disk shows in each of many states, as the caller sees it.
    fn states<T: Ord>(&self, see: impl Fn(&disk::Picture) -> T) -> BTreeSet<T> {
        let snapshot = Disk::snapshot(self.dir.path(), &["remote"]).unwrap();
        let mut disk = snapshot.clone();
        self.entries.iter().for_each(|entry| disk.play(entry, self.model).unwrap());
        (0..STATES).map(|seed| see(&disk.after_power_loss(&mut fastrand::Rng::with_seed(seed)).0)).collect()
    }

    /// The texts that a file may hold; none where it isn't there.
    fn texts(&self, path: &str) -> BTreeSet<Option<String>> {
        self.states(|picture| picture.file(path).map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
    }
}

fn set<const N: usize>(texts: [Option<&str>; N]) -> BTreeSet<Option<String>> {
    texts.into_iter().map(|text| text.map(str::to_owned)).collect()
}

const BOTH: [Model; 2] = [Model::Ordered, Model::Strict];

#[test]
fn bytes_without_a_sync_may_be_lost_or_be_zeros_and_synced_ones_stay() {
    for model in BOTH {
        let mut run = Run::new(model);
        run.create(1, "d/a", b"one").sync(1);
        assert_eq!(run.texts("d/a"), set([Some("one")]));
        run.did(Kind::Write, 1, 3, "d/a", "", b"two");
        assert_eq!(run.texts("d/a"), set([Some("one"), Some("one\0\0\0"), Some("onetwo")]));
    }
}

#[test]
fn writes_are_torn_and_reordered_by_sectors() {
    let mut run = Run::new(Model::Ordered);
    let ino = run.inode("old");
    run.did(Kind::Write, ino, 0, "old", "", &[b'n'; 1024]);
    let seen = run.states(|picture| {
        picture.file("old").unwrap().chunk_by(|a, b| a == b).map(|run| (run[0], run.len())).collect::<Vec<_>>()
    });
    let whole = |byte| vec![(byte, 1024)];
    assert_eq!(
        seen,
        BTreeSet::from([whole(b'n'), whole(b'o'), vec![(b'n', 512), (b'o', 512)], vec![(b'o', 512), (b'n', 512)]])
    );
    run.did(Kind::Truncate, ino, 0, "old", "", b"").did(Kind::Write, ino, 0, "old", "", b"x");
    assert!(run.texts("old").contains(&Some(String::new())), "cut, and the new byte isn't there yet");
    run.sync(ino);
    assert_eq!(run.texts("old"), set([Some("x")]));
}

#[test]
fn names_that_are_journalled_in_order_never_show_a_later_one_without_an_earlier() {
    let mut run = Run::new(Model::Ordered);
    run.create(1, "d/a", b"").create(2, "e/b", b"").rename("d/a", "d/c");
    let files =
        |picture: &disk::Picture| picture.paths().filter(|path| path.contains('/')).collect::<Vec<_>>().join(" ");
    let seen = run.states(files);
    assert_eq!(seen, ["", "d/a", "d/a e/b", "d/c e/b"].map(str::to_owned).into());
    // Whatever is synced.
    run.sync(2);
    assert_eq!(run.states(files), ["d/c e/b".to_owned()].into());
}

#[test]
fn strictly_a_name_is_durable_by_its_directory_or_by_its_file_alone() {
    let mut run = Run::new(Model::Strict);
    run.create(1, "d/a", b"").create(2, "e/b", b"");
    let files =
        |picture: &disk::Picture| picture.paths().filter(|path| path.contains('/')).collect::<Vec<_>>().join(" ");
    assert_eq!(run.states(files), ["", "d/a", "e/b", "d/a e/b"].map(str::to_owned).into());
    run.sync(2);
    assert_eq!(run.states(files), ["e/b", "d/a e/b"].map(str::to_owned).into());
    run.sync_directory("d");
    assert_eq!(run.states(files), ["d/a e/b".to_owned()].into());
}

#[test]
fn strictly_a_new_directory_needs_a_sync_of_the_one_that_it_is_in() {
    let mut run = Run::new(Model::Strict);
    run.did(Kind::MakeDirectory, 7, 0, "d/new", "", b"").create(1, "d/new/a", b"").sync(1);
    run.did(Kind::SyncDirectory, 7, 0, "d/new", "", b"");
    assert_eq!(run.texts("d/new/a"), set([None, Some("")]));
    run.sync_directory("d");
    assert_eq!(run.texts("d/new/a"), set([Some("")]));
}

#[test]
fn strictly_a_rename_may_show_both_names_but_never_none() {
    let mut run = Run::new(Model::Strict);
    run.create(1, "d/a", b"text").sync(1).rename("d/a", "e/a");
    let seen = run.states(|picture| (picture.file("d/a").is_some(), picture.file("e/a").is_some()));
    assert_eq!(seen, [(true, false), (true, true), (false, true)].into());
    // That the old name is gone for good means that the new one is there for good.
    run.sync_directory("d");
    assert_eq!(run.texts("e/a"), set([Some("text")]));
    // Within a directory it is one change.
    run.rename("e/a", "e/b");
    let seen = run.states(|picture| (picture.file("e/a").is_some(), picture.file("e/b").is_some()));
    assert_eq!(seen, [(true, false), (false, true)].into());
}

#[test]
fn a_rename_before_the_sync_of_its_file_shows_a_file_without_bytes() {
    let mut run = Run::new(Model::Ordered);
    run.create(1, "d/new", b"text").rename("d/new", "old").sync_directory("d");
    assert_eq!(run.texts("old"), set([Some(""), Some("\0\0\0\0"), Some("text")]));
}

#[test]
fn files_that_change_places_do_so_at_once() {
    for model in BOTH {
        let mut run = Run::new(model);
        run.create(1, "d/a", b"new").sync(1).sync_directory("d");
        run.rename("d/a", "old").entries.last_mut().unwrap().flags = record::EXCHANGED;
        let seen = run.states(|picture| (picture.file("d/a").unwrap()[0], picture.file("old").unwrap()[0]));
        assert_eq!(seen, [(b'n', b'o'), (b'o', b'n')].into());
    }
}

#[test]
fn another_machine_loses_nothing() {
    let mut run = Run::new(Model::Ordered);
    fs::create_dir(run.dir.path().join("remote")).unwrap();
    run.create(1, "remote/a", b"text").create(2, "d/b", b"");
    assert_eq!(run.texts("remote/a"), set([Some("text")]));
    assert_eq!(run.texts("d/b"), set([None, Some("")]));
    // What it syncs makes nothing of ours durable.
    run.sync(1);
    assert_eq!(run.texts("d/b"), set([None, Some("")]));
}

#[test]
fn a_picture_is_put_on_a_real_disk_with_its_links() {
    let mut run = Run::new(Model::Ordered);
    run.create(1, "d/a", b"text").did(Kind::Link, 0, 0, "d/a", "e/a", b"").did(Kind::SyncAll, 0, 0, "", "", b"");
    let mut disk = Disk::snapshot(run.dir.path(), &[]).unwrap();
    run.entries.iter().for_each(|entry| disk.play(entry, Model::Ordered).unwrap());
    fs::write(run.dir.path().join("d/later"), "gone with the power").unwrap();
    disk.after_power_loss(&mut fastrand::Rng::with_seed(1)).0.write(run.dir.path()).unwrap();
    assert_eq!(run.inode("d/a"), run.inode("e/a"));
    assert_eq!(fs::read_to_string(run.dir.path().join("e/a")).unwrap(), "text");
    assert!(!run.dir.path().join("d/later").exists());
}

#[test]
fn what_the_disk_cannot_know_is_refused() {
    let run = Run::new(Model::Ordered);
    let mut disk = Disk::snapshot(run.dir.path(), &[]).unwrap();
    let mut strange = Run::new(Model::Ordered);
    strange.did(Kind::Write, 77, 0, "d/a", "", b"x").did(Kind::Unmodelled, 0, 0, "d/a", "", b"");
    for entry in &strange.entries {
        assert!(disk.play(entry, Model::Ordered).is_err());
    }
}

#[test]
fn a_record_is_read_to_its_end_or_refused() {
    let mut bytes = Vec::new();
    let (path, data) = (b"/w/a", b"text");
    bytes.extend(48u32.to_le_bytes());
    bytes.extend([2, 0, 0, 0]);
    bytes.extend(7u32.to_le_bytes());
    bytes.extend(9u64.to_le_bytes());
    bytes.extend(5i64.to_le_bytes());
    for length in [path.len(), 0, data.len()] {
        bytes.extend(u32::try_from(length).unwrap().to_le_bytes());
    }
    bytes.extend(path);
    bytes.extend(data);
    let twice = [bytes.clone(), bytes.clone()].concat();
    let entries = record::read(&twice).unwrap();
    let (path, path2) = ("/w/a".to_owned(), String::new());
    let entry = Entry { kind: Kind::Write, flags: 0, pid: 7, ino: 9, offset: 5, path, path2, data: data.to_vec() };
    assert_eq!(entries, [entry.clone(), entry]);
    for cut in 1..bytes.len() {
        assert!(record::read(&bytes[..cut]).is_err(), "{cut}");
    }
    bytes[4] = 99;
    assert!(record::read(&bytes).is_err());
}
