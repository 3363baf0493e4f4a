use std::{
    future::Future as _,
    os::unix::{ffi::OsStrExt as _, fs::symlink},
    pin::pin,
    task::{Context, Waker},
};

use rustix::fs::CWD;

use reveille_policy::Rules;

use super::{take::TAKING, *};
use crate::{Confinement, exec::Shelter};

struct Scene {
    dir: tempfile::TempDir,
    copies: Copies,
    root: PathBuf,
}

const WAKE: &str = "20261121T140000Z-1";

fn scene() -> Scene {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap().join("work");
    fs::create_dir_all(root.join("sub")).unwrap();
    for name in ["a", "b", "sub/c"] {
        fs::write(root.join(name), name).unwrap();
    }
    Scene { copies: Copies::new(dir.path().join("copies"), Reserve::from_mib(0)), root, dir }
}

impl Scene {
    fn take(&self, day: u32) -> Result<CopyTaken, CopyError> {
        let now = format!("2026-11-{day:02}T14:00:00Z").parse().unwrap();
        self.copies.take(WAKE, CopyScope { roots: std::slice::from_ref(&self.root), hidden: &[] }, now)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.root.join(name)).unwrap_or_default()
    }
}

#[test]
fn a_command_that_changes_nothing_leaves_no_copy() {
    let scene = scene();
    drop(scene.take(1).unwrap());
    assert!(!scene.copies.has_wake(WAKE));
    assert_eq!(scene.copies.give_back(WAKE).unwrap(), GivenBack::default());
}

#[test]
fn commands_are_undone_from_the_last_to_the_first_and_a_second_undo_says_the_same() {
    let scene = scene();
    for text in ["one", "two"] {
        let taken = scene.take(1).unwrap();
        fs::write(scene.root.join("a"), text).unwrap();
        drop(taken);
    }
    let taken = scene.take(1).unwrap();
    fs::write(scene.root.join("new"), "three").unwrap();
    drop(taken);
    let taken = scene.take(1).unwrap();
    fs::remove_file(scene.root.join("new")).unwrap();
    drop(taken);
    for _ in 0..2 {
        let given = scene.copies.give_back(WAKE).unwrap();
        assert_eq!((scene.text("a").as_str(), scene.root.join("new").exists(), given.contested.len()), ("a", false, 0));
        assert_eq!(given.restored, [scene.root.join("a"), scene.root.join("new")]);
    }
}

#[test]
fn restoring_follows_no_link_that_a_command_left() {
    let scene = scene();
    let elsewhere = scene.dir.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("c"), "theirs").unwrap();
    let taken = scene.take(1).unwrap();
    fs::remove_dir_all(scene.root.join("sub")).unwrap();
    symlink(&elsewhere, scene.root.join("sub")).unwrap();
    drop(taken);
    scene.copies.give_back(WAKE).unwrap();
    assert!(!scene.root.join("sub").is_symlink());
    assert_eq!(
        (scene.text("sub/c").as_str(), fs::read_to_string(elsewhere.join("c")).unwrap().as_str()),
        ("sub/c", "theirs")
    );

    // A link that somebody else puts there afterwards stays and isn't followed.
    let taken = scene.take(1).unwrap();
    fs::write(scene.root.join("sub/c"), "changed").unwrap();
    drop(taken);
    fs::remove_dir_all(scene.root.join("sub")).unwrap();
    symlink(&elsewhere, scene.root.join("sub")).unwrap();
    let given = scene.copies.give_back(WAKE).unwrap();
    assert!(scene.root.join("sub").is_symlink() && given.contested.contains(&scene.root.join("sub/c")), "{given:?}");
    assert_eq!(fs::read_to_string(elsewhere.join("c")).unwrap(), "theirs");
}

#[test]
fn an_incomplete_copy_counts_as_none_and_is_removed() {
    let scene = scene();
    let taken = scene.take(1).unwrap();
    fs::write(scene.root.join("a"), "changed").unwrap();
    fs::remove_file(scene.copies.dir.join(WAKE).join("1").join(BEFORE)).unwrap();
    drop(taken);
    assert!(!scene.copies.has_wake(WAKE));
    assert_eq!(scene.copies.give_back(WAKE).unwrap(), GivenBack::default());
    assert_eq!(scene.copies.forget_old("2026-11-02T14:00:00Z".parse().unwrap(), 0).unwrap(), 1);
    assert_eq!(list_subfolders(&scene.copies.dir).count(), 0);
}

#[test]
fn copies_are_kept_for_days_and_the_oldest_make_room_for_new_ones() {
    let scene = scene();
    for day in [1, 2] {
        let taken = scene.take(day).unwrap();
        fs::write(scene.root.join("a"), day.to_string()).unwrap();
        drop(taken);
    }
    let on = |day: u32| format!("2026-11-{day:02}T14:00:00Z").parse::<DateTime<Utc>>().unwrap();
    assert_eq!((scene.copies.has_old(on(8)), scene.copies.has_old(on(9))), (false, true));
    assert_eq!(scene.copies.forget_old(on(9), 0).unwrap(), 1);
    assert!(scene.copies.has_wake(WAKE));
    assert_eq!(scene.copies.forget_old(on(9), MAX_KEPT_BYTES).unwrap(), 1);
    assert!(!scene.copies.has_wake(WAKE));
}

#[test]
fn taking_a_copy_does_not_block_the_wake() {
    let scene = scene();
    let confinement = Confinement { work_dir: scene.dir.path().join("scratch"), ..Confinement::default() };
    let shelter = Shelter::from_confinement(confinement, PathBuf::from("/nowhere"));
    let rules = Rules::parse(&format!("[files]\nwrite = [{:?}]\n", scene.root.display().to_string())).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _within = runtime.enter();
    let held = TAKING.lock().unwrap();
    let mut copying = pin!(shelter.copy_folders(&rules, WAKE, "2026-11-01T14:00:00Z".parse().unwrap()));
    assert!(copying.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(held);
    drop(runtime.block_on(copying).unwrap());
    assert!(scene.dir.path().join("copies").is_dir());
}

#[test]
fn a_folder_that_cannot_be_copied_whole_is_not_covered() {
    let scene = scene();
    let uncovered = || scene.copies.find_obstacle(CopyScope { roots: std::slice::from_ref(&scene.root), hidden: &[] });
    assert_eq!(uncovered(), None);
    rustix::fs::mknodat(CWD, scene.root.join("pipe"), rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    assert!(uncovered().unwrap().contains("pipe can't be copied"));
    assert!(scene.take(1).is_err() && !scene.copies.has_wake(WAKE));
    fs::remove_file(scene.root.join("pipe")).unwrap();
    fs::write(scene.root.join(std::ffi::OsStr::from_bytes(b"odd\xff")), "").unwrap();
    assert!(uncovered().unwrap().contains("can't be kept"));
}
