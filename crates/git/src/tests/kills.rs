use super::merge_texts;
use super::{
    super::{advance::StopAt, index_lock::IndexLock},
    *,
};

const STOPS: [StopAt; 5] =
    [StopAt::AfterLock, StopAt::AfterNote, StopAt::AfterBranch, StopAt::AfterFiles, StopAt::AfterIndex];

fn reopened(world: &World) -> Repo {
    Repo::open_or_create(&world.brain(), None, &TEMPLATES, now()).unwrap().0
}

#[test]
fn a_publish_killed_anywhere_is_finished_or_never_happened() {
    for stop in STOPS {
        let world = World::new();
        let repo = world.local();
        let base = world.read(ACTIVE);
        let changes = [
            change(ACTIVE, Some(&base), Some("ours\n")),
            change("memory/new.md", None, Some("new\n")),
            change("claude.md", Some(TEMPLATES[0].1), None),
        ];
        world.write("staged.txt", "the person's\n");
        world.git(&["add", "staged.txt"]);
        repo.try_publish(&wake(&changes), stop).unwrap();
        drop(repo);

        let repo = reopened(&world);
        assert!(repo.is_interrupted(), "nothing else would have the next wake do anything: {stop:?}");
        // A wake's first step: any of our changes mistaken for the person's would be committed here.
        let finished = repo.finish_interrupted_move(&both).unwrap();
        assert_eq!(repo.finish_interrupted_move(&both).unwrap(), None, "{stop:?}");
        let edits = repo.commit_person_edits(now(), &never_secret, &both).unwrap();
        assert_eq!(edits.commit, None, "{stop:?}");
        assert!(!repo.is_interrupted(), "{stop:?}");
        if matches!(stop, StopAt::AfterLock | StopAt::AfterNote) {
            assert_eq!(finished, (stop == StopAt::AfterNote).then_some(Finished::NeverHappened));
            assert_eq!((world.read(ACTIVE), repo.history().wake_commit("w-0001").unwrap()), (base, None));
            repo.publish(&wake(&changes)).unwrap();
        } else {
            assert_eq!(finished, repo.history().wake_commit("w-0001").unwrap().map(Finished::Completed), "{stop:?}");
        }
        assert_eq!(world.status(), "A  staged.txt\n", "{stop:?}");
        assert_eq!((world.read(ACTIVE).as_str(), world.read("memory/new.md").as_str()), ("ours\n", "new\n"));
        assert_eq!(repo.history().list_commits(10).unwrap().len(), 2, "{stop:?}");
        world.git(&["reset", "--quiet", "staged.txt"]);
        world.assert_sound();
    }
}

#[test]
fn a_persons_commit_killed_anywhere_is_theirs() {
    for stop in STOPS {
        let world = World::new();
        let repo = world.local();
        world.write(ACTIVE, "theirs\n");
        world.git(&["add", ACTIVE]);
        repo.try_commit_person_edits(usize::MAX, now(), &never_secret, &both, stop).unwrap();
        let repo = reopened(&world);
        repo.commit_person_edits(now(), &never_secret, &both).unwrap();
        assert_eq!(world.git(&["log", "--format=%an"]), "Ann\nReveille\n", "{stop:?}");
        assert_eq!((world.read(ACTIVE).as_str(), world.status().as_str()), ("theirs\n", ""), "{stop:?}");
        world.assert_sound();
    }
}

#[test]
fn an_integration_killed_anywhere_is_finished_by_the_next() {
    for stop in STOPS {
        let world = World::new();
        let repo = world.shared();
        world.other_pushes("memory/theirs.md", b"theirs\n");
        let base = world.read(ACTIVE);
        repo.publish(&wake(&[change(ACTIVE, Some(&base), Some("ours\n"))])).unwrap();
        repo.remote().fetch(TIMEOUT).unwrap();
        repo.remote().try_integrate(now(), &both, stop).unwrap();
        let repo = reopened(&world);
        repo.remote().integrate(now(), &both).unwrap();
        assert_eq!((world.read("memory/theirs.md").as_str(), world.status().as_str()), ("theirs\n", ""), "{stop:?}");
        repo.remote().push(TIMEOUT, &never_secret).unwrap();
        world.assert_sound();
    }
}

#[test]
fn bringing_in_killed_anywhere_is_finished_by_the_next() {
    for stop in STOPS {
        let world = World::new();
        let repo = world.local();
        let base = world.read(ACTIVE);
        let changes = [change("memory/new.md", None, Some("new\n")), change(ACTIVE, Some(&base), Some("ours\n"))];
        let parked = repo.parked_work().park("parked/c1", &wake(&changes), Parking::UntilHeadIsBack).unwrap();
        world.write(ACTIVE, "theirs\n");
        world.git(&["commit", "--quiet", "-am", "theirs"]);
        repo.parked_work().try_merge_parked(&parked.branch, parked.commit, now(), &both, stop).unwrap();
        let repo = reopened(&world);
        repo.parked_work().merge_parked_branches(now(), &both).unwrap();
        assert_eq!(world.read("memory/new.md"), "new\n", "{stop:?}");
        assert_eq!(world.read(ACTIVE), "theirs\n<ours>\nours\n", "{stop:?}");
        assert_eq!(
            (world.status().as_str(), repo.parked_work().list_parked_branches().unwrap().len()),
            ("", 0),
            "{stop:?}"
        );
        assert_eq!(repo.history().wake_commit("w-0001").unwrap(), Some(parked.commit));
        assert_eq!(world.git(&["for-each-ref", "--format=%(refname)"]), "refs/heads/main\n");
        assert_eq!(world.git(&["rev-list", "--merges", "--count", "HEAD"]), "1\n", "{stop:?}");
        world.assert_sound();
    }
}

#[test]
fn a_kill_while_work_is_parked_or_brought_in_blocks_nothing() {
    let world = World::new();
    let repo = world.local();
    let lock = |name: &str| {
        let lock = world.file(&format!(".git/refs/{name}/parked/c1.lock"));
        fs::create_dir_all(lock.parent().unwrap()).unwrap();
        fs::write(lock, "").unwrap();
    };
    lock("heads");
    lock("reveille");
    let changes = [change("memory/new.md", None, Some("new\n"))];
    let parked = repo.parked_work().park("parked/c1", &wake(&changes), Parking::UntilHeadIsBack).unwrap();
    assert_eq!(repo.parked_work().list_parked_branches().unwrap(), [(parked.branch, parked.commit)]);
    lock("reveille");
    assert_eq!(repo.parked_work().merge_parked_branches(now(), &both).unwrap().len(), 1);
    assert_eq!(
        (repo.parked_work().list_parked_branches().unwrap().len(), world.read("memory/new.md").as_str()),
        (0, "new\n")
    );
    world.assert_sound();
}

/// After a kill between mark and branch nothing is parked, and the cycle is resumed.
#[test]
fn a_mark_without_its_branch_means_nothing() {
    let world = World::new();
    let repo = world.local();
    let changes = [change("memory/new.md", None, Some("new\n"))];
    let parked = repo.parked_work().park("parked/c1", &wake(&changes), Parking::UntilHeadIsBack).unwrap();
    world.git(&["branch", "-D", "--quiet", &parked.branch]);
    assert_eq!(repo.parked_work().list_parked_branches().unwrap(), []);
    assert_eq!(repo.parked_work().merge_parked_branches(now(), &both).unwrap(), []);
    let again = repo.parked_work().park("parked/c1", &wake(&changes), Parking::UntilHeadIsBack).unwrap();
    assert_eq!(repo.parked_work().list_parked_branches().unwrap(), [(again.branch, again.commit)]);
    world.assert_sound();
}

#[test]
fn an_edit_after_the_kill_is_kept_and_stays_theirs() {
    let world = World::new();
    let repo = world.local();
    let base = "one\ntwo\nthree\nfour\nfive\n";
    world.write(ACTIVE, base);
    repo.commit_person_edits(now(), &never_secret, &merge_texts).unwrap();
    let ours = base.replace("one", "ours");
    repo.try_publish(&wake(&[change(ACTIVE, Some(base), Some(&ours))]), StopAt::AfterBranch).unwrap();
    world.write(ACTIVE, &base.replace("five", "theirs"));
    let repo = reopened(&world);
    let edits = repo.commit_person_edits(now(), &never_secret, &merge_texts).unwrap();
    assert_eq!(edits.files, [ACTIVE]);
    assert_eq!(world.read(ACTIVE), "ours\ntwo\nthree\nfour\ntheirs\n");
    assert_eq!(world.git(&["log", "-1", "--format=%an"]), "Ann\n");
    world.assert_sound();
}

#[test]
fn an_edit_of_the_same_lines_after_the_kill_loses_neither_side() {
    for is_killed_again in [false, true] {
        let world = World::new();
        let repo = world.local();
        let base = world.read(ACTIVE);
        let (ours, theirs) = (format!("{base}- ours\n"), format!("{base}- theirs\n"));
        let changes = [change(ACTIVE, Some(&base), Some(&ours)), change("memory/new.md", None, Some("our new\n"))];
        repo.try_publish(&wake(&changes), StopAt::AfterBranch).unwrap();
        world.write(ACTIVE, &theirs);
        world.write("memory/new.md", "their new\n");
        let repo = reopened(&world);
        if is_killed_again {
            let mut planned = repo.read_note().unwrap().unwrap();
            repo.write_files(&mut planned, &both).unwrap();
        }
        repo.commit_person_edits(now(), &never_secret, &both).unwrap();
        assert_eq!(world.read(ACTIVE), both(ACTIVE, &base, &theirs, &ours, &ByHand::default()), "{is_killed_again}");
        assert_eq!(world.read("memory/new.md"), "their new\n<ours>\nour new\n", "{is_killed_again}");
        assert_eq!(world.git(&["log", "-2", "--format=%an"]), "Ann\nReveille\n");
        world.assert_sound();
    }
}

#[test]
fn after_a_kill_the_files_wait_until_head_is_back() {
    for away in [&["checkout", "--quiet", "--detach"][..], &["checkout", "--quiet", "-b", "experiment", "HEAD^"]] {
        let world = World::new();
        let repo = world.local();
        let base = world.read(ACTIVE);
        let changes = [change("memory/new.md", None, Some("new\n")), change(ACTIVE, Some(&base), Some("ours\n"))];
        repo.try_publish(&wake(&changes), StopAt::AfterBranch).unwrap();
        fs::remove_file(world.file(".git/index.lock")).unwrap();
        world.git(away);
        let repo = reopened(&world);
        assert!(matches!(repo.finish_interrupted_move(&both).unwrap(), Some(Finished::Completed(_))));
        assert_eq!((world.file("memory/new.md").exists(), world.read(ACTIVE)), (false, base), "{away:?}");
        world.git(&["checkout", "--quiet", "main"]);
        assert_eq!(repo.commit_person_edits(now(), &never_secret, &both).unwrap(), PersonEdits::default(), "{away:?}");
        assert_eq!((world.read("memory/new.md").as_str(), world.status().as_str()), ("new\n", ""), "{away:?}");
        world.assert_sound();
    }
}

#[test]
fn a_commit_of_the_persons_after_the_kill_has_the_last_word() {
    let world = World::new();
    let repo = world.local();
    let base = world.read(ACTIVE);
    let changes = [change("memory/new.md", None, Some("new\n")), change(ACTIVE, Some(&base), Some("ours\n"))];
    repo.try_publish(&wake(&changes), StopAt::AfterBranch).unwrap();
    fs::remove_file(world.file(".git/index.lock")).unwrap();
    world.git(&["commit", "--quiet", "-m", "as it was", "--", ACTIVE]);
    let repo = reopened(&world);
    repo.finish_interrupted_move(&both).unwrap();
    assert_eq!((world.read(ACTIVE), world.read("memory/new.md")), (base, "new\n".to_owned()));
    assert_eq!(world.status(), "");
    world.assert_sound();
}

#[test]
fn a_dead_wakes_index_lock_is_removed_at_once_and_a_living_programs_is_not() {
    let world = World::new();
    let repo = world.local();
    std::mem::forget(IndexLock::take(repo.git.path(), &repo.private).unwrap());
    assert!(world.try_git("workspace/brain", &["commit", "--allow-empty", "-m", "x"]).is_err());
    assert_eq!(repo.finish_interrupted_move(&both).unwrap(), None);
    world.git(&["commit", "--quiet", "--allow-empty", "-m", "x"]);

    let lock = world.file(".git/index.lock");
    fs::write(&lock, "").unwrap();
    assert_eq!(repo.housekeeping().remove_stale_locks(), Vec::<PathBuf>::new());
    assert!(lock.exists());
}

#[test]
fn a_kill_while_the_private_index_is_written_blocks_nothing() {
    let world = World::new();
    let repo = world.local();
    fs::write(repo.private.join("index.lock"), "half an ind").unwrap();
    fs::write(repo.private.join("index"), "half").unwrap();
    repo.publish(&wake(&[change("memory/new.md", None, Some("new\n"))])).unwrap();
    world.assert_sound();
}

#[test]
fn locks_that_nobody_holds_are_found_and_removed_in_time() {
    let world = World::new();
    let repo = world.local();
    let age = |name: &str| {
        let lock = world.file(".git").join(name);
        let file = fs::File::create(&lock).unwrap();
        let modified = file.metadata().unwrap().modified().unwrap();
        file.set_modified(modified - Duration::from_secs(60)).unwrap();
        lock.canonicalize().unwrap()
    };
    let locks = [age("index.lock"), age("HEAD.lock"), age("refs/heads/main.lock")];
    let mut found: Vec<_> = repo.housekeeping().stale_locks().iter().map(|lock| lock.canonicalize().unwrap()).collect();
    found.sort();
    let mut expected = locks.to_vec();
    expected.sort();
    assert_eq!(found, expected);
    repo.publish(&wake(&[change("memory/new.md", None, Some("new\n"))])).unwrap();
    assert!(locks.iter().all(|lock| !lock.exists()));
    world.assert_sound();
}

#[test]
fn a_young_lock_is_waited_for_and_then_taken_for_dead() {
    let world = World::new();
    let repo = world.local();
    fs::write(world.file(".git/refs/heads/main.lock"), "").unwrap();
    repo.publish(&wake(&[change("memory/new.md", None, Some("new\n"))])).unwrap();
    world.assert_sound();
}
