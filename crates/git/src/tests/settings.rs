//! Tests a person's own git settings and forms of a repository: none of them breaks a memory or loses a part of it.

use reveille_base::process::Spec;

use super::*;
use crate::same_name::SHARED_NAME;

/// Plays one round of a memory's life: the person edits, a wake writes, another machine pushes.
fn live_a_day(world: &World, repo: &Repo, day: &str) {
    world.write("notes/mine.md", &format!("mine, {day}\n"));
    let edits = repo.commit_person_edits(now(), &never_secret, &both).unwrap();
    assert_eq!(
        (edits.files.as_slice(), edits.left_alone.as_slice()),
        (["notes/mine.md".to_owned()].as_slice(), &[][..])
    );
    let base = fs::read_to_string(world.file("notes/ours.md")).ok();
    let published = repo.publish(&wake(&[change("notes/ours.md", base.as_deref(), Some(&format!("ours, {day}\n")))]));
    assert_eq!(published.unwrap().left_alone, []);
    world.git_in("other", &["pull", "--quiet", "--no-rebase", "--no-edit"]);
    world.other_pushes("notes/theirs.md", format!("theirs, {day}\n").as_bytes());
    repo.remote().fetch(TIMEOUT).unwrap();
    let integrated = repo.remote().integrate(now(), &both).unwrap();
    assert!(matches!(integrated, Integrated::Merged { .. }), "{integrated:?}");
    assert_eq!(repo.remote().push(TIMEOUT, &never_secret).unwrap(), Pushed::To(repo.head().unwrap().unwrap()));
    assert_eq!(world.status(), "");
    for (file, text) in [("mine", "mine"), ("ours", "ours"), ("theirs", "theirs")] {
        assert_eq!(world.read(&format!("notes/{file}.md")).replace("\r\n", "\n"), format!("{text}, {day}\n"));
    }
}

/// A new report is one more setting. A story in the campaign sets such ones before the first wake.
#[test]
fn whatever_a_person_has_set_a_memory_works() {
    for settings in [
        &[
            "core.autocrlf=true",
            "core.commentChar=*",
            "core.fileMode=false",
            "core.fsmonitor=true",
            "core.hooksPath=/nowhere",
            "core.ignoreCase=true",
        ][..],
        &[
            "core.autocrlf=input",
            "core.precomposeUnicode=true",
            "core.splitIndex=true",
            "core.symlinks=false",
            "core.untrackedCache=true",
            "index.version=4",
        ][..],
        &[
            "index.skipHash=true",
            "feature.manyFiles=true",
            "extensions.worktreeConfig=true",
            "commit.gpgSign=true",
            "push.gpgSign=true",
            "push.default=nothing",
        ][..],
        &[
            "push.followTags=true",
            "push.recurseSubmodules=check",
            "remote.pushDefault=nowhere",
            "remote.origin.prune=true",
            "remote.origin.tagOpt=--tags",
            "remote.origin.fetch=+refs/tags/*:refs/tags/*",
        ][..],
        &[
            "fetch.prune=true",
            "fetch.pruneTags=true",
            "fetch.fsckObjects=true",
            "fetch.writeCommitGraph=true",
            "fetch.recurseSubmodules=true",
            "submodule.recurse=true",
        ][..],
        &[
            "transfer.fsckObjects=true",
            "protocol.version=0",
            "pull.ff=only",
            "branch.main.rebase=true",
            "merge.ff=false",
            "merge.conflictStyle=zdiff3",
        ][..],
        &[
            "pull.rebase=true",
            "rebase.autoStash=true",
            "i18n.commitEncoding=ISO-8859-1",
            "color.ui=always",
            "status.showUntrackedFiles=no",
            "diff.noPrefix=true",
        ][..],
        &[
            "gc.auto=1",
            "user.useConfigOnly=true",
            "safe.directory=/elsewhere",
            "clone.defaultRemoteName=upstream",
            "init.defaultBranch=trunk",
            "init.defaultRefFormat=reftable",
        ][..],
        &["init.defaultObjectFormat=sha256"][..],
    ] {
        let world = World::new();
        drop(world.shared());
        for (name, value) in settings.iter().filter_map(|setting| setting.split_once('=')) {
            world.git(&["config", "--add", name, value]);
        }
        let open = || {
            Repo::open_or_create(&world.brain(), Some(world.path("remote.git").to_str().unwrap()), &TEMPLATES, now())
        };
        let (repo, created) = open().unwrap_or_else(|error| panic!("{settings:?}: {error}"));
        assert_eq!(created, Created::Existing, "{settings:?}");
        live_a_day(&world, &repo, &settings.join(", "));
        world.git(&["fsck", "--strict", "--no-dangling"]);
    }
}

#[test]
fn an_address_that_git_replaces_is_still_the_one_that_is_set() {
    let world = World::new();
    drop(world.shared());
    let real = world.path("remote.git").display().to_string();
    world.git(&["config", &format!("url.{real}.insteadOf"), "short:memory"]);
    world.git(&["remote", "set-url", "origin", "short:memory"]);
    let (repo, created) = Repo::open_or_create(&world.brain(), Some("short:memory"), &TEMPLATES, now()).unwrap();
    assert_eq!(created, Created::Existing);
    assert!(repo.has_origin("short:memory"));
    live_a_day(&world, &repo, "replaced");
}

/// The disk treats two files of a commit as one, as two hard links to one file are.
#[test]
fn of_two_names_that_are_one_here_neither_is_committed_for_the_other() {
    let world = World::new();
    let repo = world.shared();
    let (large, small) = ("notes/A.md", "notes/a.md");
    world.other_pushes(large, b"large\n");
    world.other_pushes(small, b"small\n");
    repo.remote().fetch(TIMEOUT).unwrap();
    repo.remote().integrate(now(), &both).unwrap();
    let head = repo.head().unwrap();
    fs::remove_file(world.file(large)).unwrap();
    fs::hard_link(world.file(small), world.file(large)).unwrap();
    for edit in [None, Some("edited\n")] {
        if let Some(edit) = edit {
            fs::write(world.file(small), edit).unwrap();
        }
        let edits = repo.commit_person_edits(now(), &never_secret, &both).unwrap();
        assert_eq!((edits.commit, repo.head().unwrap()), (None, head), "{edits:?}");
        let left: Vec<&str> = edits.left_alone.iter().map(|left| left.path.as_str()).collect();
        assert!(left.contains(&large), "{edits:?}");
        assert!(edits.left_alone.iter().all(LeftAlone::shares_name), "it is told: {edits:?}");
    }
    let error = repo.publish(&wake(&[change(large, Some("edited\n"), Some("ours\n"))])).unwrap_err();
    assert!(matches!(error, RepoError::UnsafePath { why: SHARED_NAME, .. }), "{error}");
    let committed = |path: &str| world.git(&["show", &format!("HEAD:{path}")]);
    assert_eq!((committed(large).as_str(), committed(small).as_str()), ("large\n", "small\n"));
}

#[test]
fn a_file_that_is_renamed_in_the_size_of_its_letters_is_not_committed_twice() {
    let world = World::new();
    let repo = world.local();
    world.write("notes/Plan.md", "plan\n");
    repo.commit_person_edits(now(), &never_secret, &both).unwrap();
    fs::hard_link(world.file("notes/Plan.md"), world.file("notes/plan.md")).unwrap();
    let edits = repo.commit_person_edits(now(), &never_secret, &both).unwrap();
    assert_eq!((edits.commit, edits.left_alone.len()), (None, 1), "{edits:?}");
    // On a case-sensitive disk both belong to the person.
    fs::remove_file(world.file("notes/plan.md")).unwrap();
    world.write("notes/plan.md", "another plan\n");
    let edits = repo.commit_person_edits(now(), &never_secret, &both).unwrap();
    assert_eq!(edits.files, ["notes/plan.md"]);
}

/// A case-folding disk shows its own folder under every spelling.
#[test]
fn of_two_names_that_are_one_here_a_deletion_is_nobodys() {
    let world = World::new();
    let repo = world.local();
    for path in ["notes/A.md", "notes/a.md", "notes/b.md"] {
        world.write(path, path);
    }
    repo.commit_person_edits(now(), &never_secret, &both).unwrap();
    fs::remove_dir_all(world.file("notes")).unwrap();
    std::os::unix::fs::symlink(".git", world.file(".GIT")).unwrap();
    let edits = repo.commit_person_edits(now(), &never_secret, &both).unwrap();
    assert_eq!(edits.files, ["notes/b.md"], "{edits:?}");
    assert_eq!(world.git(&["ls-tree", "--name-only", "HEAD", "notes/"]), "notes/A.md\nnotes/a.md\n");
}

#[test]
fn a_pull_that_brings_a_name_which_is_one_with_anothers_is_stopped_and_named() {
    let world = World::new();
    let repo = world.shared();
    world.other_pushes("notes/A.md", b"large\n");
    repo.remote().fetch(TIMEOUT).unwrap();
    repo.remote().integrate(now(), &both).unwrap();
    world.other_pushes("notes/a.md", b"small\n");
    repo.remote().fetch(TIMEOUT).unwrap();
    fs::hard_link(world.file("notes/A.md"), world.file("notes/a.md")).unwrap();
    let error = repo.remote().integrate(now(), &both).unwrap_err();
    assert!(error.to_string().contains("this disk can hold only one"), "{error}");
    assert_eq!(world.read("notes/A.md"), "large\n");
    // Renamed on the other side, with another text, the file no longer collides.
    world.git_in("other", &["rm", "--quiet", "notes/A.md"]);
    world.other_pushes("notes/a.md", b"renamed\n");
    repo.remote().fetch(TIMEOUT).unwrap();
    fs::remove_file(world.file("notes/a.md")).unwrap();
    repo.remote().integrate(now(), &both).unwrap();
    assert_eq!((world.read("notes/a.md").as_str(), world.status().as_str()), ("renamed\n", ""));
}

#[test]
fn what_a_sparse_checkout_leaves_out_nobody_has_deleted() {
    for set in [["--no-cone", "/*", "!/big/"], ["--cone", "notes", "memory"]] {
        leave_out(&set);
    }
}

fn leave_out(set: &[&str]) {
    let world = World::new();
    let repo = world.shared();
    world.other_pushes("big/log.md", b"first\n");
    repo.remote().fetch(TIMEOUT).unwrap();
    repo.remote().integrate(now(), &both).unwrap();
    world.git(&[&["sparse-checkout", "set"][..], set].concat());
    assert!(!world.file("big/log.md").exists());
    let repo = Repo::open(&world.brain()).unwrap();
    world.write("notes/new.md", "new\n");
    let edits = repo.commit_person_edits(now(), &never_secret, &both).unwrap();
    assert_eq!(edits.files, ["notes/new.md"]);
    let error = repo.publish(&wake(&[change("big/log.md", None, Some("ours\n"))])).unwrap_err();
    assert!(error.to_string().contains("sparse checkout"), "{error}");
    world.other_pushes("big/log.md", b"second\n");
    repo.remote().fetch(TIMEOUT).unwrap();
    repo.remote().integrate(now(), &both).unwrap();
    assert!(!world.file("big/log.md").exists());
    assert_eq!(repo.commit_person_edits(now(), &never_secret, &both).unwrap().commit, None);
    assert_eq!((world.git(&["show", "HEAD:big/log.md"]).as_str(), world.status().as_str()), ("second\n", ""));
    repo.remote().push(TIMEOUT, &never_secret).unwrap();
}

#[test]
fn what_a_person_has_git_not_see_is_not_committed_for_them() {
    for mark in ["--skip-worktree", "--assume-unchanged"] {
        let world = World::new();
        let repo = world.shared();
        for path in ["notes/local.md", "notes/gone.md", "notes/seen.md"] {
            world.write(path, "one\n");
        }
        repo.commit_person_edits(now(), &never_secret, &both).unwrap();
        world.git(&["update-index", mark, "notes/local.md", "notes/gone.md"]);
        for path in ["notes/local.md", "notes/seen.md"] {
            world.write(path, "one\nmine alone\n");
        }
        fs::remove_file(world.file("notes/gone.md")).unwrap();
        let repo = Repo::open(&world.brain()).unwrap();
        let edits = repo.commit_person_edits(now(), &never_secret, &both).unwrap();
        assert_eq!(edits.files, ["notes/seen.md"], "{mark}");
        // A wake may write the file but doesn't commit it, since that would include the person's change.
        let changes = [change("notes/local.md", Some("one\nmine alone\n"), Some("one\nmine alone\nours\n"))];
        let published = repo.publish(&wake(&changes)).unwrap();
        assert_eq!(published.left_alone.len(), 1, "{mark}: {published:?}");
        assert_eq!(world.read("notes/local.md"), "one\nmine alone\nours\n");
        assert!(!world.git(&["log", "-p", "--", "notes/local.md"]).contains("mine alone"), "{mark}");
        assert_eq!(
            repo.commit_person_edits(now(), &never_secret, &both).unwrap().commit,
            None,
            "{mark}: it stays marked"
        );
        assert_eq!(world.git(&["show", "HEAD:notes/gone.md"]), "one\n");
    }
}

/// Runs `git clone` as a person would, into the memory's place.
fn cloned_by_hand(world: &World, args: &[&str]) {
    let url = format!("file://{}", world.path("remote.git").display());
    let brain = world.brain().display().to_string();
    world.git_in("home", &[&["clone", "--quiet"], args, &[&url, &brain]].concat());
}

#[test]
fn a_persons_partial_or_shallow_clone_is_worked_in() {
    for args in [vec!["--filter=blob:none"], vec!["--filter=tree:0"], vec!["--depth=1"], vec!["--single-branch"]] {
        let world = World::new();
        drop(world.shared());
        for n in 1..=3 {
            world.other_pushes("notes/theirs.md", format!("version {n}\n").as_bytes());
        }
        world.git_in("remote.git", &["config", "uploadpack.allowFilter", "true"]);
        fs::remove_dir_all(world.brain()).unwrap();
        cloned_by_hand(&world, &args);
        let open = || {
            Repo::open_or_create(&world.brain(), Some(world.path("remote.git").to_str().unwrap()), &TEMPLATES, now())
        };
        let (repo, created) = open().unwrap();
        assert_eq!(created, Created::Existing);
        live_a_day(&world, &repo, "first");
        live_a_day(&world, &open().unwrap().0, "second");
        if args[0].starts_with("--filter") {
            assert_eq!(world.try_git("workspace/brain", &["config", "remote.origin.promisor"]), Err(String::new()));
            // Everything is here, as in a full clone.
            fs::rename(world.path("remote.git"), world.path("away.git")).unwrap();
            world.git(&["log", "-p", "--all"]);
            world.git(&["fsck", "--strict", "--no-dangling"]);
        }
    }
}

#[test]
fn a_remote_whose_default_branch_was_never_pushed_is_cloned_on_the_one_that_it_has() {
    let world = World::new();
    let url = world.empty_remote();
    world.git_in("remote.git", &["symbolic-ref", "HEAD", "refs/heads/master"]);
    world.git_in("home", &["init", "--quiet", "--initial-branch=trunk", "../other"]);
    world.git_in("other", &["remote", "add", "origin", &url]);
    world.other_pushes("notes/theirs.md", b"theirs\n");
    let (repo, created) = Repo::open_or_create(&world.brain(), Some(&url), &TEMPLATES, now()).unwrap();
    assert_eq!((created, repo.branch(), repo.read_condition().unwrap()), (Created::Cloned, "trunk", Condition::Normal));
    assert_eq!(world.read("notes/theirs.md"), "theirs\n");
    world.git_in("other", &["branch", "--quiet", "--set-upstream-to=origin/trunk"]);
    live_a_day(&world, &repo, "first");
}

#[test]
fn a_remote_that_does_not_say_which_branch_is_its_own_is_begun_without_and_joined_once_it_does() {
    let world = World::new();
    let url = world.empty_remote();
    world.git_in("remote.git", &["symbolic-ref", "HEAD", "refs/heads/gone"]);
    world.git_in("home", &["init", "--quiet", "--initial-branch=one", "../other"]);
    world.git_in("other", &["remote", "add", "origin", &url]);
    world.other_pushes("notes/theirs.md", b"theirs\n");
    world.git_in("other", &["push", "--quiet", "origin", "HEAD:refs/heads/two"]);
    let open = || Repo::open_or_create(&world.brain(), Some(&url), &TEMPLATES, now());
    let (repo, created) = open().unwrap();
    let Created::Unjoined(RemoteError::Refused { why }) = created else { panic!("{created:?}") };
    assert!(why.to_string().contains("one, two"), "{why}");
    let refused = repo.remote().fetch(TIMEOUT).unwrap_err();
    assert!(refused.to_string().contains("set the default branch"), "{refused}");
    world.git_in("remote.git", &["symbolic-ref", "HEAD", "refs/heads/one"]);
    repo.remote().fetch(TIMEOUT).unwrap_err();
    let (repo, _) = open().unwrap();
    repo.remote().fetch(TIMEOUT).unwrap();
    assert!(matches!(repo.remote().integrate(now(), &both).unwrap(), Integrated::Merged { .. }));
    assert_eq!((repo.branch(), world.read("notes/theirs.md").as_str()), ("one", "theirs\n"));
}

#[test]
fn a_remote_in_another_form_is_named_and_begun_without() {
    let world = World::new();
    let url = world.path("remote.git").display().to_string();
    world.git_in("home", &["init", "--quiet", "--bare", "--object-format=sha256", &url]);
    let (repo, created) = Repo::open_or_create(&world.brain(), Some(&url), &TEMPLATES, now()).unwrap();
    let Created::Unjoined(RemoteError::Refused { why }) = created else { panic!("{created:?}") };
    assert!(why.to_string().contains("extensions.objectformat=sha256"), "{why}");
    repo.publish(&wake(&[change("notes/ours.md", None, Some("ours\n"))])).unwrap();
}

/// Runs a command the person is told to run.
fn run_told(command: &str) {
    let spec = Spec::new("sh").args(["-ec", command]).env("HOME", "/nonexistent").env("GIT_CONFIG_NOSYSTEM", "1");
    let output = process::run(&spec.timeout(6 * TIMEOUT)).unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_persons_clone_in_another_form_is_named_with_the_commands_that_mend_it() {
    for form in [["--ref-format=reftable", "refstorage"], ["--object-format=sha256", "objectformat"]] {
        let world = World::new();
        let made = world.try_git("home", &["init", "--quiet", form[0], "../workspace/brain"]);
        if made.is_err_and(|why| why.contains("unknown option")) {
            panic!("NOT RUN: this git knows no {}", form[0]);
        }
        world.write("notes/mine.md", "mine\n");
        world.git(&["add", "."]);
        world.git(&["commit", "--quiet", "-m", "first"]);
        let error = Repo::open_or_create(&world.brain(), None, &TEMPLATES, now()).err().unwrap();
        let RepoError::UnreadableForm { form: found, .. } = &error else { panic!("{error}") };
        assert!(found.setting.starts_with(&format!("extensions.{}", form[1])), "{error}");
        run_told(found.way_out.split("; what wasn't").next().unwrap());
        let (repo, created) = Repo::open_or_create(&world.brain(), None, &TEMPLATES, now()).unwrap();
        assert_eq!((created, world.read("notes/mine.md").as_str()), (Created::Existing, "mine\n"));
        assert_eq!(repo.read_condition().unwrap(), Condition::Normal);
    }
}
