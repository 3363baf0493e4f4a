//! Tests people's indexes of every kind: staged changes stay staged, and the person's next commit holds only their changes.

use super::*;

/// Compares `git status` after publishing, and the person's next commit, with the expected ones. `prepare` is the person's work before.
#[track_caller]
fn check_staged(prepare: impl Fn(&World), status_after: &str, next_commit: &[&str]) {
    let world = World::new();
    let repo = world.local();
    world.write("notes/a.txt", "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n");
    world.write("notes/b.txt", "b\n");
    world.git(&["add", "-A"]);
    world.git(&["commit", "--quiet", "-m", "notes"]);
    prepare(&world);
    let staged = world.git(&["diff", "--cached", "--raw", "-M"]);
    let base = world.read(ACTIVE);
    repo.publish(&wake(&[change(ACTIVE, Some(&base), Some("ours\n")), change("memory/new.md", None, Some("new\n"))]))
        .unwrap();
    assert_eq!(world.status(), status_after);
    assert_eq!(world.git(&["diff", "--cached", "--raw", "-M"]), staged, "what is staged changed");
    world.git(&["commit", "--quiet", "--allow-empty", "-m", "mine"]);
    assert_eq!(world.changed_in("HEAD"), next_commit);
    assert_eq!(world.git(&["show", &format!("HEAD:{ACTIVE}")]), "ours\n");
    world.git(&["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn a_whole_file() {
    let prepare = |world: &World| {
        world.write("notes/b.txt", "bb\n");
        world.git(&["add", "notes/b.txt"]);
    };
    check_staged(prepare, "M  notes/b.txt\n", &["notes/b.txt"]);
}

#[test]
fn a_part_of_a_file() {
    let prepare = |world: &World| {
        let text = world.read("notes/a.txt");
        world.write("notes/a.txt", &text.replace("one", "ONE"));
        world.git(&["add", "notes/a.txt"]);
        world.write("notes/a.txt", &text.replace("one", "ONE").replace("ten", "TEN"));
    };
    check_staged(prepare, "MM notes/a.txt\n", &["notes/a.txt"]);
}

#[test]
fn a_file_only_meant_to_be_added() {
    let prepare = |world: &World| {
        world.write("notes/c.txt", "c\n");
        world.git(&["add", "--intent-to-add", "notes/c.txt"]);
    };
    check_staged(prepare, " A notes/c.txt\n", &[]);
}

#[test]
fn a_removed_a_renamed_and_a_mode() {
    let prepare = |world: &World| {
        world.git(&["rm", "--quiet", "notes/b.txt"]);
        world.git(&["mv", "notes/a.txt", "notes/z.txt"]);
        world.git(&["update-index", "--chmod=+x", "claude.md"]);
    };
    check_staged(
        prepare,
        "MM claude.md\nD  notes/b.txt\nR  notes/a.txt -> notes/z.txt\n",
        &["claude.md", "notes/b.txt", "notes/z.txt"],
    );
}

fn staged_one(world: &World) {
    world.write("notes/b.txt", "bb\n");
    world.git(&["add", "notes/b.txt"]);
}

#[test]
fn index_version_4() {
    let prepare = |world: &World| {
        world.git(&["update-index", "--index-version", "4"]);
        staged_one(world);
    };
    check_staged(prepare, "M  notes/b.txt\n", &["notes/b.txt"]);
}

#[test]
fn split_index() {
    let prepare = |world: &World| {
        world.git(&["config", "core.splitIndex", "true"]);
        world.git(&["update-index", "--split-index"]);
        staged_one(world);
    };
    check_staged(prepare, "M  notes/b.txt\n", &["notes/b.txt"]);
}

#[test]
fn untracked_cache_and_fsmonitor() {
    let prepare = |world: &World| {
        world.git(&["update-index", "--untracked-cache", "--fsmonitor"]);
        staged_one(world);
    };
    check_staged(prepare, "M  notes/b.txt\n", &["notes/b.txt"]);
}

#[test]
fn sparse_checkout() {
    let prepare = |world: &World| {
        world.git(&["sparse-checkout", "set", "memory", "notes"]);
        staged_one(world);
    };
    check_staged(prepare, "M  notes/b.txt\n", &["notes/b.txt"]);
}

#[test]
fn sparse_index() {
    let prepare = |world: &World| {
        world.write("far/away/x.txt", "x\n");
        world.git(&["add", "-A"]);
        world.git(&["commit", "--quiet", "-m", "far"]);
        world.git(&["sparse-checkout", "set", "--sparse-index", "memory", "notes"]);
        staged_one(world);
    };
    check_staged(prepare, "M  notes/b.txt\n", &["notes/b.txt"]);
}

#[test]
fn flags_of_entries() {
    let prepare = |world: &World| {
        world.git(&["update-index", "--assume-unchanged", "notes/a.txt"]);
        world.git(&["update-index", "--skip-worktree", "claude.md"]);
        world.write("notes/a.txt", "hidden change\n");
        world.write("claude.md", "hidden change\n");
        staged_one(world);
    };
    check_staged(prepare, "M  notes/b.txt\n", &["notes/b.txt"]);
}

#[test]
fn a_submodule() {
    let prepare = |world: &World| {
        world.git_in("home", &["init", "--quiet", "../sub"]);
        world.git_in("sub", &["commit", "--quiet", "--allow-empty", "-m", "x"]);
        let sub = world.path("sub").to_str().unwrap().to_owned();
        world.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &sub, "sub"]);
    };
    check_staged(prepare, "A  .gitmodules\nA  sub\n", &[".gitmodules", "sub"]);
}

#[test]
fn crlf_in_the_work_tree() {
    for (setting, attributes) in
        [("true", ""), ("input", ""), ("false", "*.md text eol=crlf\n"), ("false", "* text=auto eol=crlf\n")]
    {
        let world = World::new();
        let repo = world.local();
        world.git(&["config", "core.autocrlf", setting]);
        world.write(".gitattributes", attributes);
        world.git(&["add", "-A"]);
        world.git(&["commit", "--quiet", "--allow-empty", "-m", "endings"]);
        // As a checkout under these settings would write it.
        fs::remove_file(world.file(ACTIVE)).unwrap();
        world.git(&["checkout", "--quiet", "--", ACTIVE]);
        let base = world.read(ACTIVE);
        assert_eq!(base.contains('\r'), setting == "true" || attributes.contains("eol"));
        assert_eq!(repo.commit_person_edits(now(), &never_secret, &both).unwrap(), PersonEdits::default());
        let published =
            repo.publish(&wake(&[change(ACTIVE, Some(&base), Some(&base.replace("Water", "Feed")))])).unwrap();
        assert_eq!(world.status(), "");
        assert_eq!(published.persons, None, "{setting} {attributes:?}");
        assert!(!world.git(&["show", &format!("HEAD:{ACTIVE}")]).contains('\r'), "{setting} {attributes:?}");
        assert_eq!(
            world.git(&["show", "--numstat", "--format="]).lines().next().unwrap().split('\t').next(),
            Some("1")
        );
        assert_eq!(world.read(ACTIVE), base.replace("Water", "Feed"));
        world.write(ACTIVE, &(world.read(ACTIVE) + if base.contains('\r') { "more\r\n" } else { "more\n" }));
        assert_eq!(repo.commit_person_edits(now(), &never_secret, &both).unwrap().files, [ACTIVE]);
        assert_eq!(world.git(&["show", "--numstat", "--format="]), format!("1\t0\t{ACTIVE}\n"));
        assert!(!world.git(&["show", &format!("HEAD:{ACTIVE}")]).contains('\r'), "{setting} {attributes:?}");
        assert_eq!(world.status(), "");
    }
}

#[test]
fn a_linked_work_tree() {
    let world = World::new();
    world.git_in("home", &["init", "--quiet", "--initial-branch=other", "../main"]);
    world.git_in("main", &["commit", "--quiet", "--allow-empty", "-m", "x"]);
    world.git_in("main", &["worktree", "add", "--quiet", "-b", "main", "../workspace/brain"]);
    let (repo, _) = Repo::open_or_create(&world.brain(), None, &TEMPLATES, now()).unwrap();
    world.write("notes/b.txt", "bb\n");
    world.git(&["add", "notes/b.txt"]);
    let lock = world.path("main/.git/refs/heads/main.lock");
    fs::write(&lock, "").unwrap();
    repo.publish(&wake(&[change("memory/new.md", None, Some("new\n"))])).unwrap();
    assert_eq!(world.status(), "A  notes/b.txt\n");
    world.git(&["commit", "--quiet", "-m", "mine"]);
    assert_eq!(world.changed_in("HEAD"), ["notes/b.txt"]);
    assert!(!lock.exists());
}
