use super::merge_texts;
use super::*;

#[test]
fn a_wake_is_one_commit_with_a_clean_tree_afterwards() {
    let world = World::new();
    let repo = world.local();
    let before = repo.head().unwrap().unwrap();
    let base = world.read(ACTIVE);
    let message = append_trailers("Watered the plants", &[("Wake-Id", "w-0001"), ("Trigger", "message\nEvil: yes")]);
    let changes = [
        change(ACTIVE, Some(&base), Some("# Active\n")),
        change("memory/deep/new größe.md", None, Some("new\n")),
        change("claude.md", Some(TEMPLATES[0].1), None),
    ];
    let published = repo.publish(&Publish { message: &message, ..wake(&changes) }).unwrap();
    assert_eq!(Some(published.commit), repo.head().unwrap());
    assert_eq!((published.persons, published.merged.len(), published.left_alone.len()), (None, 0, 0));
    assert_eq!(world.changed_in("HEAD"), ["claude.md", "memory/deep/new größe.md", ACTIVE]);
    assert_eq!((world.read(ACTIVE).as_str(), world.status().as_str()), ("# Active\n", ""));
    assert!(!world.file("claude.md").exists());
    assert_eq!(
        world.git(&["log", "-1", "--format=%(trailers:only)"]).trim(),
        "Wake-Id: w-0001\nTrigger: message Evil: yes"
    );
    assert!(world.git(&["reflog", "-1"]).contains("commit: Watered the plants"));

    let last = repo.history().list_commits(1).unwrap().remove(0);
    assert!(last.is_wake() && last.is_ours());
    assert_eq!((last.subject.as_str(), last.at), ("Watered the plants", now()));
    assert_eq!(repo.history().peoples_commits_since(before, 10).unwrap(), []);
    assert_eq!(repo.history().wake_commit("w-0001").unwrap(), Some(published.commit));
    assert_eq!(repo.history().wake_commit("w-0002").unwrap(), None);
    let shown = repo.history().find_full_commit("w-00", |_| false).unwrap().unwrap();
    assert!(shown.message.contains("Wake-Id: w-0001") && shown.diff.contains("-## Water the plants"), "{shown:?}");
    assert_eq!(
        repo.history().find_full_commit(published.commit.to_string().get(..7).unwrap(), |_| false).unwrap(),
        Some(shown)
    );
    assert_eq!(repo.history().list_commits(10).unwrap().len(), 2);
    world.assert_sound();
}

#[test]
fn a_stale_index_does_not_revert_the_wake() {
    let world = World::new();
    let repo = world.local();
    world.write("other.txt", "the person's, staged before\n");
    world.git(&["add", "other.txt"]);
    let base = world.read(ACTIVE);
    repo.publish(&wake(&[change(ACTIVE, Some(&base), Some("ours\n"))])).unwrap();
    assert_eq!(world.status(), "A  other.txt\n");
    world.git(&["commit", "--quiet", "-m", "mine"]);
    assert_eq!(world.changed_in("HEAD"), ["other.txt"]);
    assert_eq!(world.git(&["show", &format!("HEAD:{ACTIVE}")]), "ours\n");
    world.assert_sound();
}

#[test]
fn a_change_staged_by_the_person_but_undone_in_the_file_stays_staged() {
    let world = World::new();
    let repo = world.local();
    let base = world.read(ACTIVE);
    world.write(ACTIVE, "staged\n");
    world.git(&["add", ACTIVE]);
    world.write(ACTIVE, &base);
    repo.publish(&wake(&[change(ACTIVE, Some(&base), Some("ours\n"))])).unwrap();
    assert_eq!(world.git(&["show", &format!(":{ACTIVE}")]), "staged\n");
    assert_eq!(world.git(&["show", &format!("HEAD:{ACTIVE}")]), "ours\n");
}

#[test]
fn the_index_has_the_current_sizes_and_times() {
    let world = World::new();
    let repo = world.local();
    repo.publish(&wake(&[change("memory/a.md", None, Some("a\n"))])).unwrap();
    // This command compares only sizes and times, and doesn't refresh the index.
    assert_eq!(world.git(&["diff-files", "--name-only"]), "");
}

#[test]
fn an_edit_during_the_cycle_is_committed_as_theirs_and_ours_on_top() {
    let world = World::new();
    let repo = world.local();
    let base = world.read(ACTIVE);
    world.write(ACTIVE, "theirs\n");
    world.write("memory/untouched.md", "also theirs\n");
    let published = repo.publish(&wake(&[change(ACTIVE, Some(&base), Some("ours\n"))])).unwrap();
    assert_eq!(published.merged, [ACTIVE]);
    assert_eq!(world.git(&["log", "-2", "--format=%an"]), "Reveille\nAnn\n");
    assert_eq!(published.persons.map(|id| id.to_string()).as_deref(), Some(world.git(&["rev-parse", "HEAD^"]).trim()));
    assert_eq!(world.git(&["show", &format!("HEAD^:{ACTIVE}")]), "theirs\n");
    assert_eq!(world.read(ACTIVE), "theirs\n<ours>\nours\n");
    assert_eq!(world.status(), "?? memory/untouched.md\n");
    world.assert_sound();
}

#[test]
fn an_edit_that_was_staged_during_the_cycle_does_not_revert_us() {
    let world = World::new();
    let repo = world.local();
    let base = world.read(ACTIVE);
    world.write(ACTIVE, "theirs\n");
    world.git(&["add", ACTIVE]);
    repo.publish(&wake(&[change(ACTIVE, Some(&base), Some("ours\n"))])).unwrap();
    assert_eq!(world.status(), "");
    world.assert_sound();
}

#[test]
fn a_commit_by_the_person_during_the_cycle_is_merged() {
    let world = World::new();
    let repo = world.local();
    let base = world.read(ACTIVE);
    world.write(ACTIVE, "theirs\n");
    world.git(&["commit", "--quiet", "-am", "by hand"]);
    let published = repo.publish(&wake(&[change(ACTIVE, Some(&base), Some("ours\n"))])).unwrap();
    assert_eq!((published.persons, published.merged.as_slice()), (None, &[ACTIVE.to_owned()][..]));
    assert_eq!(world.read(ACTIVE), "theirs\n<ours>\nours\n");
    assert_eq!(world.status(), "");
}

#[test]
fn a_commit_during_the_merge_is_noticed_and_merged() {
    let world = World::new();
    let repo = world.local();
    let base = world.read(ACTIVE);
    world.write(ACTIVE, "theirs\n");
    let first = std::cell::Cell::new(true);
    let meanwhile = |path: &str, base: &str, theirs: &str, ours: &str, by_hand: &ByHand| {
        if first.replace(false) {
            world.git(&["commit", "--quiet", "-am", "by hand, just now"]);
        }
        both(path, base, theirs, ours, by_hand)
    };
    let changes = [change(ACTIVE, Some(&base), Some("ours\n"))];
    let published = repo.publish(&Publish { merge: &meanwhile, ..wake(&changes) }).unwrap();
    assert_eq!(published.persons, None);
    assert_eq!(world.git(&["log", "-2", "--format=%s"]), "Answered Ann\nby hand, just now\n");
    assert_eq!((world.read(ACTIVE).as_str(), world.status().as_str()), ("theirs\n<ours>\nours\n", ""));
    world.assert_sound();
}

#[test]
fn a_file_saved_during_the_merge_keeps_both_edits() {
    let world = World::new();
    let repo = world.local();
    let base = world.read(ACTIVE);
    let orders = "one\ntwo\nthree\nfour\nfive\n";
    world.write("claude.md", orders);
    repo.commit_person_edits(now(), &never_secret, &both).unwrap();
    world.write(ACTIVE, "theirs\n");
    // When this merge runs, `claude.md` has already been read and decided on.
    let meanwhile = |path: &str, base: &str, theirs: &str, ours: &str, by_hand: &ByHand| {
        world.write("claude.md", &orders.replace("five", "theirs"));
        if path == ACTIVE {
            both(path, base, theirs, ours, by_hand)
        } else {
            merge_texts(path, base, theirs, ours, by_hand)
        }
    };
    let ours = orders.replace("one", "ours");
    let changes = [change("claude.md", Some(orders), Some(&ours)), change(ACTIVE, Some(&base), Some("ours\n"))];
    repo.publish(&Publish { merge: &meanwhile, ..wake(&changes) }).unwrap();
    assert_eq!(world.git(&["show", "HEAD:claude.md"]), ours);
    assert_eq!(world.read("claude.md"), "ours\ntwo\nthree\nfour\ntheirs\n");
    assert_eq!(world.status(), " M claude.md\n");
    world.assert_sound();
}

#[test]
fn deletions_on_either_side_lose_nothing() {
    let world = World::new();
    let repo = world.local();
    let base = world.read(ACTIVE);
    fs::remove_file(world.file(ACTIVE)).unwrap();
    world.write("claude.md", "edited\n");
    let changes = [change(ACTIVE, Some(&base), Some("ours\n")), change("claude.md", Some(TEMPLATES[0].1), None)];
    repo.publish(&wake(&changes)).unwrap();
    assert_eq!((world.read(ACTIVE).as_str(), world.read("claude.md").as_str()), ("ours\n", "edited\n"));
    assert_eq!(world.status(), "");
}

#[test]
fn a_secret_of_the_persons_stays_in_their_file_and_out_of_the_commit() {
    let world = World::new();
    let repo = world.local();
    let base = world.read(ACTIVE);
    let with_secret = format!("{base}sk-secret\n");
    world.write(ACTIVE, &with_secret);
    let ours = format!("{with_secret}ours\n");
    let without_secret = |_: &str, base: &str, theirs: &str, ours: &str, _: &ByHand| {
        let added: String = ours.lines().filter(|line| !base.contains(line)).map(|line| format!("{line}\n")).collect();
        format!("{theirs}{added}")
    };
    let changes = [change(ACTIVE, Some(&with_secret), Some(&ours))];
    let is_secret = |text: &str| text.contains("sk-");
    let publish = Publish { merge: &without_secret, is_secret: &is_secret, ..wake(&changes) };
    let published = repo.publish(&publish).unwrap();
    assert_eq!(world.git(&["show", &format!("HEAD:{ACTIVE}")]), format!("{base}ours\n"));
    assert_eq!(world.read(ACTIVE), ours);
    assert!(published.left_alone.is_empty());

    // A merge that lets the secret through is caught: the file is written but not committed.
    let now_on_disk = world.read(ACTIVE);
    let more = format!("{now_on_disk}more\n");
    let changes = [change(ACTIVE, Some(&now_on_disk), Some(&more)), change("memory/x.md", None, Some("x\n"))];
    let published = repo.publish(&Publish { is_secret: &is_secret, ..wake(&changes) }).unwrap();
    assert_eq!(published.left_alone.len(), 1);
    assert_eq!((world.read(ACTIVE), world.changed_in("HEAD")), (more, vec!["memory/x.md".to_owned()]));
    assert!(!world.git(&["log", "-p", "--all"]).contains("sk-secret"));
    world.assert_sound();
}

#[test]
fn a_name_that_holds_a_secret_is_left_out_of_the_commit() {
    let world = World::new();
    let repo = world.local();
    let is_secret = |text: &str| text.contains("sk-");
    let changes = [change("memory/sk-secret.md", None, Some("x\n")), change("memory/y.md", None, Some("y\n"))];
    let publish = Publish { is_secret: &is_secret, ..wake(&changes) };
    let published = repo.publish(&publish).unwrap();
    assert_eq!(published.left_alone.iter().map(|left| left.path.as_str()).collect::<Vec<_>>(), ["memory/sk-secret.md"]);
    assert_eq!(world.changed_in("HEAD"), ["memory/y.md"]);
    assert!(!world.git(&["log", "--all", "--name-only"]).contains("sk-secret"));
    world.assert_sound();
}

#[test]
fn no_path_leads_out_of_the_work_tree() {
    let world = World::new();
    let repo = world.local();
    fs::create_dir(world.path("outside")).unwrap();
    fs::write(world.path("outside/secret.md"), "outside").unwrap();
    std::os::unix::fs::symlink(world.path("outside"), world.file("memory/out")).unwrap();
    std::os::unix::fs::symlink(world.path("outside/secret.md"), world.file("memory/link.md")).unwrap();
    let head = repo.head().unwrap();
    for path in [
        "memory/out/secret.md",
        "memory/link.md",
        "../x.md",
        ".git/config",
        "memory/.GIT/x",
        "/etc/x.md",
        "a//b.md",
        "",
    ] {
        let error = repo.publish(&wake(&[change(path, None, Some("ours"))])).unwrap_err();
        assert!(matches!(error, RepoError::UnsafePath { .. }), "{path}: {error}");
    }
    assert!(repo.read_work_tree("memory/out/secret.md").is_err());
    assert_eq!(repo.list_markdown(&["memory", "claude.md", "missing"]).unwrap(), ["claude.md", ACTIVE]);
    assert_eq!(fs::read_to_string(world.path("outside/secret.md")).unwrap(), "outside");
    assert_eq!(repo.head().unwrap(), head);
}

#[test]
fn a_file_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    let repo = world.local();
    fs::set_permissions(world.file(ACTIVE), fs::Permissions::from_mode(0o600)).unwrap();
    let base = world.read(ACTIVE);
    repo.publish(&wake(&[change(ACTIVE, Some(&base), Some("ours\n"))])).unwrap();
    assert_eq!(fs::metadata(world.file(ACTIVE)).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_repository_without_a_commit_gets_its_first() {
    let world = World::new();
    world.git_in("workspace", &["init", "--quiet", "--initial-branch=main", "brain"]);
    let (repo, created) = Repo::open_or_create(&world.brain(), None, &[], now()).unwrap();
    assert_eq!((created, repo.read_condition().unwrap()), (Created::Existing, Condition::Unborn));
    repo.publish(&wake(&[change("memory/a.md", None, Some("a\n"))])).unwrap();
    assert_eq!((world.status().as_str(), repo.history().list_commits(9).unwrap().len()), ("", 1));
    world.assert_sound();
}
