use super::*;

fn why(edits: &PersonEdits, path: &str) -> &'static str {
    edits.left_alone.iter().find(|left| left.path == path).map_or("not left alone", |left| left.why)
}

#[test]
fn nothing_changed_makes_no_commit() {
    let world = World::new();
    let repo = world.local();
    assert_eq!(repo.commit_person_edits(now(), &never_secret, &both).unwrap(), PersonEdits::default());
}

#[test]
fn markdown_is_committed_as_theirs_and_the_rest_is_named_and_left() {
    let world = World::new();
    let repo = world.local();
    world.write(ACTIVE, "# Active\n\n## Call mother\n");
    world.write("memory/größe and space.md", "new\n");
    fs::remove_file(world.file("claude.md")).unwrap();
    world.write("photo.png", "png");
    world.write("memory/key.md", "sk-secret");
    world.write("memory/huge.md", &"x".repeat(MAX_PERSON_FILE_BYTES));
    world.write("memory/binary.md", "a\0b");
    std::os::unix::fs::symlink("/etc/hostname", world.file("memory/link.md")).unwrap();
    world.write(".gitignore", "ignored.md\n");
    world.write("ignored.md", "ignored");

    let edits = repo.commit_person_edits(now(), &|text| text.contains("sk-"), &both).unwrap();
    assert_eq!(edits.files, ["claude.md", "memory/größe and space.md", ACTIVE]);
    assert_eq!(world.changed_in("HEAD"), edits.files);
    assert_eq!(world.git(&["log", "-1", "--format=%an <%ae>, %cn"]), "Ann <ann@example.org>, Ann\n");
    assert_eq!(edits.commit, repo.head().unwrap());
    assert_eq!(why(&edits, "photo.png"), "isn't Markdown");
    assert_eq!(why(&edits, "memory/key.md"), "seems to hold a secret");
    assert_eq!(why(&edits, "memory/huge.md"), "is 1 MB or larger");
    assert_eq!(why(&edits, "memory/binary.md"), "isn't text");
    assert_eq!(why(&edits, "memory/link.md"), "is a link");
    assert_eq!(edits.left_alone.len(), 6, "{edits:?}");
    assert!(world.status().lines().all(|line| line.starts_with("??")), "{}", world.status());
    assert!(world.git(&["log", "-p", "--all"]).find("sk-secret").is_none());
    world.assert_sound();
}

#[test]
fn without_an_identity_a_stated_one_is_used() {
    let world = World::new();
    let repo = world.local();
    world.git(&["config", "user.name", ""]);
    world.write(ACTIVE, "changed\n");
    repo.commit_person_edits(now(), &never_secret, &both).unwrap();
    assert_eq!(world.git(&["log", "-1", "--format=%an <%ae>"]), "Owner <owner@localhost>\n");
}

#[test]
fn an_author_of_the_commits_alone_is_whom_git_names() {
    let world = World::new();
    let repo = world.local();
    world.git(&["config", "author.name", "Ann, of the memory"]);
    world.write(ACTIVE, "changed\n");
    repo.commit_person_edits(now(), &never_secret, &both).unwrap();
    assert_eq!(world.git(&["log", "-1", "--format=%an <%ae>"]), "Ann, of the memory <ann@example.org>\n");
}

#[test]
fn what_is_staged_of_other_files_stays_staged() {
    let world = World::new();
    let repo = world.local();
    world.write("todo.txt", "staged\n");
    world.write(ACTIVE, "half\n");
    world.git(&["add", "todo.txt", ACTIVE]);
    world.write(ACTIVE, "half and more\n");
    let edits = repo.commit_person_edits(now(), &never_secret, &both).unwrap();
    assert_eq!(edits.files, [ACTIVE]);
    assert_eq!(world.git(&["show", &format!("HEAD:{ACTIVE}")]), "half and more\n");
    assert_eq!(world.status(), "A  todo.txt\n");
}

#[test]
fn what_was_staged_and_undone_in_the_file_is_no_edit() {
    let world = World::new();
    let repo = world.local();
    let before = world.read(ACTIVE);
    world.write(ACTIVE, "staged\n");
    world.git(&["add", ACTIVE]);
    world.write(ACTIVE, &before);
    assert_eq!(repo.commit_person_edits(now(), &never_secret, &both).unwrap(), PersonEdits::default());
    assert_eq!(world.status(), format!("MM {ACTIVE}\n"));
}

#[test]
fn a_file_with_a_filter_is_left_to_git() {
    let world = World::new();
    let repo = world.local();
    world.write(".gitattributes", "*.md filter=crypt\nplain.md -filter\n");
    world.write(ACTIVE, "for my eyes only\n");
    world.write("plain.md", "for all\n");
    let edits = repo.commit_person_edits(now(), &never_secret, &both).unwrap();
    assert_eq!(edits.files, ["plain.md"]);
    assert!(why(&edits, ACTIVE).contains("filter"));
}

#[test]
fn elsewhere_than_on_our_branch_nothing_is_committed() {
    let world = World::new();
    let repo = world.local();
    let before = world.git(&["rev-list", "--all"]);
    let refused = |expected: Condition| {
        assert_eq!(repo.read_condition().unwrap(), expected);
        world.write(ACTIVE, "edited\n");
        let error = repo.commit_person_edits(now(), &never_secret, &both).unwrap_err();
        assert!(matches!(error, RepoError::NotOnBranch { .. }), "{error}");
        let error = repo.publish(&wake(&[change("claude.md", None, Some("x"))])).unwrap_err();
        assert!(matches!(&error, RepoError::NotOnBranch { condition, .. } if *condition == expected), "{error}");
        assert_eq!(world.read(ACTIVE), "edited\n");
        world.git(&["checkout", "--quiet", ACTIVE]);
    };
    world.git(&["checkout", "--quiet", "--detach"]);
    refused(Condition::Detached);
    world.git(&["checkout", "--quiet", "-b", "experiment"]);
    refused(Condition::OtherBranch("experiment".to_owned()));
    assert_eq!(world.git(&["rev-list", "--all"]), before);
    world.write(ACTIVE, "one\n");
    world.git(&["commit", "--quiet", "-am", "one"]);
    world.git(&["checkout", "--quiet", "main"]);
    world.write(ACTIVE, "two\n");
    world.git(&["commit", "--quiet", "-am", "two"]);
    world.try_git("workspace/brain", &["merge", "experiment"]).unwrap_err();
    assert_eq!(repo.read_condition().unwrap(), Condition::InProgress("merge"));
    assert!(repo.publish(&wake(&[change("claude.md", None, Some("x"))])).is_err());
    world.git(&["merge", "--abort"]);
    world.assert_sound();
}

#[test]
fn parked_work_goes_to_its_own_branch_wherever_head_is() {
    let world = World::new();
    let repo = world.local();
    world.git(&["checkout", "--quiet", "--detach"]);
    let base = world.read(ACTIVE);
    let changes = [change(ACTIVE, Some(&base), Some("parked\n"))];
    let park = |changes| repo.parked_work().park("recovered/c1", &wake(changes), Parking::ForAPerson).unwrap();
    let first = park(&changes);
    let other = park(&[change(ACTIVE, Some(&base), Some("something else\n"))]);
    assert_eq!((first.branch.as_str(), other.branch.as_str()), ("recovered/c1", "recovered/c1-2"));
    let commit = first.commit;
    assert_eq!(world.git(&["show", &format!("{commit}:{ACTIVE}")]), "parked\n");
    assert_eq!(world.status(), "");
}

#[test]
fn a_persons_branch_that_is_called_as_a_folder_of_ours_is_in_nobodys_way() {
    let world = World::new();
    let repo = world.local();
    let base = world.read(ACTIVE);
    let changes = [change(ACTIVE, Some(&base), Some("parked\n"))];
    for (name, parking) in [("recovered", Parking::ForAPerson), ("parked", Parking::UntilHeadIsBack)] {
        world.git(&["branch", name]);
        let parked = repo.parked_work().park(&format!("{name}/c1"), &wake(&changes), parking).unwrap();
        assert_eq!(parked.branch, format!("{name}-2/c1"));
        assert_eq!(repo.parked_work().park(&format!("{name}/c1"), &wake(&changes), parking).unwrap(), parked);
    }
    let waiting = repo.parked_work().find_parked_branch("c1").unwrap().map(|(branch, _)| branch);
    assert_eq!(waiting.as_deref(), Some("parked-2/c1"));
    assert_eq!(repo.parked_work().left_to_a_person().unwrap(), ["recovered-2/c1"]);
    repo.parked_work().merge_parked_branches(now(), &both).unwrap();
    assert_eq!(world.read(ACTIVE), "parked\n");
    assert_eq!(repo.parked_work().list_parked_branches().unwrap(), []);
    assert_eq!(world.git(&["branch", "--list", "parked*"]).trim(), "parked");
}

/// The first park came from a run that was killed before it noted that; the branch has moved since.
#[test]
fn the_same_work_is_parked_once_until_a_person_goes_on_with_it() {
    let world = World::new();
    let repo = world.local();
    let base = world.read(ACTIVE);
    let changes = [change(ACTIVE, Some(&base), Some("parked\n"))];
    let park = |parking| {
        repo.parked_work()
            .park("parked/c1", &Publish { now: now() + chrono::TimeDelta::hours(1), ..wake(&changes) }, parking)
            .unwrap()
    };
    let first = repo.parked_work().park("parked/c1", &wake(&changes), Parking::ForAPerson).unwrap();
    world.write("claude.md", "theirs\n");
    world.git(&["commit", "--quiet", "-am", "theirs"]);
    assert_eq!(park(Parking::ForAPerson), first);
    assert_eq!(repo.parked_work().list_parked_branches().unwrap(), []);
    assert_eq!(park(Parking::UntilHeadIsBack), first);
    assert_eq!(repo.parked_work().list_parked_branches().unwrap(), [(first.branch.clone(), first.commit)]);

    world.git(&["checkout", "--quiet", &first.branch]);
    world.write(ACTIVE, "parked\nand gone on with\n");
    world.git(&["commit", "--quiet", "-am", "theirs"]);
    assert_eq!(park(Parking::ForAPerson).branch, "parked/c1-2");
    world.assert_sound();
}

/// On another branch, or with uncommitted changes, only the wake's own changes are parked.
#[test]
fn only_the_wakes_own_changes_are_parked_and_no_secret() {
    let world = World::new();
    let repo = world.local();
    let others = "# Active\n\n## Water the plants\n- touched: 2026-11-20\n- of the other branch\n";
    let ours = format!("{others}- ours\n");
    let added = |_: &str, base: &str, persons: &str, ours: &str, _: &ByHand| {
        let added: Vec<&str> = ours.lines().filter(|line| !base.contains(line)).collect();
        format!("{persons}{}\n", added.join("\n"))
    };
    let changes = [change(ACTIVE, Some(others), Some(&ours)), change("memory/x.md", None, Some("sk-secret"))];
    let is_secret = |text: &str| text.contains("sk-");
    let publish = Publish { merge: &added, is_secret: &is_secret, ..wake(&changes) };
    let parked = repo.parked_work().park("parked/c1", &publish, Parking::UntilHeadIsBack).unwrap();
    assert_eq!(parked.left_out, ["memory/x.md"]);
    let text = world.git(&["show", &format!("{}:{ACTIVE}", parked.branch)]);
    assert!(text.contains("ours") && !text.contains("of the other branch"), "{text}");
    assert!(!world.git(&["log", "-p", "--all"]).contains("sk-secret"));
}

/// Such a file is left alone, and the others are committed.
#[test]
fn what_git_would_take_for_its_own_or_is_too_deep_is_named_and_left() {
    for name in ["git~1", ".git.", ".git ", ".git::$INDEX_ALLOCATION", "a/GIT~1"] {
        let world = World::new();
        let repo = world.local();
        world.write(&format!("{name}/x.md"), "odd\n");
        world.write(&format!("{name}/y.md"), "odd\n");
        world.write(ACTIVE, "edited\n");
        let edits = repo.commit_person_edits(now(), &never_secret, &both).unwrap();
        assert_eq!(edits.files, [ACTIVE], "{name}");
        assert_eq!(why(&edits, name), "has a name that git reserves on some systems");
        assert_eq!(edits.left_alone.len(), 1, "{edits:?}");
        assert!(edits.left_alone.iter().all(LeftAlone::is_misnamed));
        assert_eq!(repo.housekeeping().left_alone(&never_secret).unwrap(), edits.left_alone);
        assert!(repo.check_writable(&format!("{name}/z.md")).is_err(), "{name}");
    }
    let world = World::new();
    let repo = world.local();
    let fits = format!("fits/{}a.md", "d/".repeat(98));
    world.write(&fits, "deep\n");
    fs::create_dir_all(world.file(&format!("empty/{}", "d/".repeat(120)))).unwrap();
    world.write(&format!("deep/{}a.md", "d/".repeat(120)), "deep\n");
    world.write(ACTIVE, "edited\n");
    fs::remove_file(world.file("claude.md")).unwrap();
    world.write(".gitignore", "ignored\n");
    world.write("ignored/a.md", "ignored\n");
    let edits = repo.commit_person_edits(now(), &never_secret, &both).unwrap();
    assert_eq!(edits.files, ["claude.md", &fits, ACTIVE]);
    for name in ["deep", "empty"] {
        assert_eq!(why(&edits, name), "is nested more than 99 folders deep", "{edits:?}");
    }
    assert_eq!(edits.left_alone.len(), 3, "{edits:?}");
}

/// A person may have committed such names by git itself, with its protection off.
#[test]
fn what_git_would_not_take_and_yet_is_committed_stays_and_stops_nothing() {
    let world = World::new();
    let repo = world.local();
    let deep = format!("deep/{}a.md", "d/".repeat(120));
    world.write(&deep, "deep\n");
    world.write("git~1/a.md", "odd\n");
    world.git(&["-c", "core.protectNTFS=false", "add", "-A"]);
    world.git(&["-c", "core.protectNTFS=false", "commit", "--quiet", "-m", "odd"]);
    world.git(&["rm", "-q", "--cached", "git~1/a.md"]);
    let base = world.read(ACTIVE);
    world.write("claude.md", "edited\n");
    assert_eq!(repo.commit_person_edits(now(), &never_secret, &both).unwrap().files, ["claude.md"]);
    repo.publish(&wake(&[change(ACTIVE, Some(&base), Some("ours\n"))])).unwrap();
    assert_eq!(world.git(&["show", &format!("HEAD:{ACTIVE}")]), "ours\n");
    assert_eq!(world.git(&["show", &format!("HEAD:{deep}")]), "deep\n");
    assert_eq!(world.git(&["show", "HEAD:git~1/a.md"]), "odd\n");
}

/// For a folder that was copied in or changed by a program: a loose object for each file would make every sync slow.
#[test]
fn many_edits_are_one_pack() {
    let world = World::new();
    let repo = world.local();
    let before = repo.housekeeping().count_stock().packs;
    for n in 0..200 {
        world.write(&format!("notes/{n}.md"), &format!("note {n}\n"));
    }
    world.write("notes/same.md", "note 7\n");
    fs::remove_file(world.file("claude.md")).unwrap();
    let edits = repo.commit_person_edits(now(), &never_secret, &both).unwrap();
    assert_eq!(edits.files.len(), 202);
    assert_eq!(repo.housekeeping().count_stock(), Stock { loose: 0, packs: before + 1 });
    assert_eq!(world.git(&["show", "HEAD:notes/199.md"]), "note 199\n");
    assert_eq!(world.status(), "");
    world.assert_sound();
}

#[test]
fn a_deletion_is_called_one() {
    let world = World::new();
    let repo = world.local();
    let said = || {
        repo.commit_person_edits(now(), &never_secret, &both).unwrap();
        world.git(&["log", "-1", "--format=%B"]).trim().to_owned()
    };
    world.write("notes/a.md", "a\n");
    world.write("notes/b.md", "b\n");
    assert_eq!(said(), "Edited by hand: 2 files\n\nnotes/a.md\nnotes/b.md");
    fs::remove_file(world.file("claude.md")).unwrap();
    assert_eq!(said(), "Deleted by hand: claude.md");
    fs::remove_file(world.file("notes/a.md")).unwrap();
    world.write("notes/b.md", "more\n");
    assert_eq!(said(), "Edited and deleted by hand: 2 files\n\nnotes/a.md (deleted)\nnotes/b.md");
}
