use super::*;
use crate::advance::StopAt;

#[test]
fn without_a_remote_the_templates_are_the_first_commit() {
    let world = World::new();
    let repo = world.local();
    assert_eq!((repo.branch(), repo.read_condition().unwrap()), ("main", Condition::Normal));
    assert_eq!(world.git(&["log", "--format=%an <%ae> %ct"]), "Reveille <reveille@localhost> 1795251600\n");
    assert_eq!(world.read(ACTIVE), TEMPLATES[1].1);
    assert_eq!(world.status(), "");
    assert!(!world.path("workspace/.brain.reveille-new").exists());
    world.assert_sound();
}

#[test]
fn a_second_run_opens_what_is_there() {
    let world = World::new();
    let head = world.local().head().unwrap();
    let (repo, created) = Repo::open_or_create(&world.brain(), None, &TEMPLATES, now()).unwrap();
    assert_eq!((created, repo.head().unwrap()), (Created::Existing, head));
}

#[test]
fn objects_and_references_are_synced() {
    let repo = World::new().local();
    assert!(repo.git.config().unwrap().get_bool("core.fsyncObjectFiles").unwrap());
}

#[test]
fn an_empty_remote_gets_the_templates() {
    let world = World::new();
    let repo = world.shared();
    assert_eq!(repo.count_ahead_behind().unwrap(), Some((0, 0)));
    assert_eq!(fs::read_to_string(world.path("other").join(ACTIVE)).unwrap(), TEMPLATES[1].1);
    world.assert_sound();
}

#[test]
fn a_remote_with_commits_is_cloned_on_its_own_branch() {
    let world = World::new();
    let url = world.empty_remote();
    world.git_in("remote.git", &["symbolic-ref", "HEAD", "refs/heads/trunk"]);
    world.git_in("home", &["init", "--quiet", "--initial-branch=trunk", "../other"]);
    world.git_in("other", &["remote", "add", "origin", &url]);
    world.other_pushes("memory/größe of things.md", b"# x\n");
    let (repo, created) = Repo::open_or_create(&world.brain(), Some(&url), &TEMPLATES, now()).unwrap();
    assert_eq!((created, repo.branch(), repo.read_condition().unwrap()), (Created::Cloned, "trunk", Condition::Normal));
    assert_eq!(repo.list_markdown(&["memory"]).unwrap(), ["memory/größe of things.md"]);
    assert_eq!(world.status(), "");
}

/// A memory that was begun while its remote was unreachable; the remote now has a history of its own on `branch`.
fn begun_without(world: &World, branch: &str) -> Repo {
    let url = world.path("remote.git").to_str().unwrap().to_owned();
    let (repo, created) = Repo::open_or_create(&world.brain(), Some(&url), &TEMPLATES, now()).unwrap();
    assert!(matches!(created, Created::Unjoined(RemoteError::Unreachable { .. })), "{created:?}");
    assert!(repo.remote().is_unjoined() && repo.remote().fetch(TIMEOUT).is_err());
    world.git_in("home", &["init", "--quiet", "--bare", &format!("--initial-branch={branch}"), &url]);
    repo
}

fn theirs(world: &World, branch: &str) {
    world.git_in("home", &["init", "--quiet", &format!("--initial-branch={branch}"), "../other"]);
    world.git_in("other", &["remote", "add", "origin", "../remote.git"]);
    world.other_pushes("claude.md", b"# Their orders\n");
    world.other_pushes(ACTIVE, b"# Active\n\n## Water the plants\n- touched: 2026-11-20\n\n## Theirs\n");
}

#[test]
fn a_kill_while_our_branch_takes_the_remotes_name_is_gone_on_from() {
    let world = World::new();
    let repo = begun_without(&world, "trunk");
    theirs(&world, "trunk");
    repo.remote().fetch(TIMEOUT).unwrap_err();
    // The state after a kill right after HEAD has moved.
    world.git(&["config", "reveille.branch", "main"]);
    world.git(&["config", "reveille.taking", "trunk"]);
    let repo = Repo::open(&world.brain()).unwrap();
    assert_eq!((repo.branch(), repo.read_condition().unwrap()), ("trunk", Condition::Normal));
    repo.remote().fetch(TIMEOUT).unwrap();
    assert_eq!(world.git(&["config", "reveille.branch"]).trim(), "trunk");
    let repo = Repo::open(&world.brain()).unwrap();
    let joined = repo.remote().integrate(now(), &super::merge_texts).unwrap();
    assert!(matches!(joined, Integrated::Merged { .. }), "{joined:?}");
    assert!(!repo.remote().is_unjoined() || repo.remote().fetch(TIMEOUT).is_ok());
    // A person's own branch of another name is left alone.
    world.git(&["config", "reveille.taking", "elsewhere"]);
    world.git(&["switch", "--quiet", "-c", "mine"]);
    let repo = Repo::open(&world.brain()).unwrap();
    assert_eq!(repo.read_condition().unwrap(), Condition::OtherBranch("mine".to_owned()));
}

#[test]
fn a_remote_that_cannot_be_reached_is_joined_as_soon_as_it_can() {
    for branch in ["main", "trunk"] {
        let world = World::new();
        let mut repo = begun_without(&world, branch);
        let base = world.read(ACTIVE);
        let changes = [
            change(ACTIVE, Some(&base), Some(&format!("{base}\n## Ours\n"))),
            change("memory/new.md", None, Some("new\n")),
        ];
        let ours = repo.publish(&wake(&changes)).unwrap().commit;
        theirs(&world, branch);
        let their = Oid::from_str(world.git_in("remote.git", &["rev-parse", branch]).trim()).unwrap();
        if branch != "main" {
            let error = repo.remote().fetch(TIMEOUT).unwrap_err();
            assert!(error.to_string().contains("is trunk, and ours now has the same name"), "{error}");
            repo = Repo::open(&world.brain()).unwrap();
        }
        repo.remote().fetch(TIMEOUT).unwrap();
        let joined = repo.remote().integrate(now(), &super::merge_texts).unwrap();
        assert!(matches!(&joined, Integrated::Merged { conflicts, .. } if *conflicts == [ACTIVE]), "{joined:?}");
        let head = repo.head().unwrap().unwrap();
        assert!(repo.contains(head, ours).unwrap() && repo.contains(head, their).unwrap());
        assert_eq!((repo.branch(), repo.remote().is_unjoined()), (branch, false));
        assert_eq!(world.read("claude.md"), "# Their orders\n", "an untouched template yields");
        assert!(!world.file("skills/an example/SKILL.md").exists());
        assert_eq!(world.read("memory/new.md"), "new\n");
        let active = world.read(ACTIVE);
        for task in ["## Water the plants", "## Theirs", "## Ours"] {
            assert_eq!(active.matches(task).count(), 1, "{active}");
        }
        assert_eq!(repo.remote().push(TIMEOUT, &never_secret).unwrap(), Pushed::To(head));
        assert_eq!(
            world.git_in("remote.git", &["for-each-ref", "--format=%(refname)"]).trim(),
            format!("refs/heads/{branch}")
        );
        assert_eq!(world.status(), "");
        world.assert_sound();
    }
}

#[test]
fn an_empty_remote_that_comes_later_gets_our_history() {
    let world = World::new();
    let repo = begun_without(&world, "main");
    repo.remote().fetch(TIMEOUT).unwrap();
    assert_eq!(repo.remote().integrate(now(), &both).unwrap(), Integrated::NoRemote);
    let head = repo.head().unwrap().unwrap();
    assert_eq!(repo.remote().push(TIMEOUT, &never_secret).unwrap(), Pushed::To(head));
    repo.remote().fetch(TIMEOUT).unwrap();
    assert_eq!(repo.remote().integrate(now(), &both).unwrap(), Integrated::UpToDate);
    assert!(!repo.remote().is_unjoined());
}

/// A kill at any point: the next wake joins the histories, once.
#[test]
fn a_join_that_is_killed_is_finished() {
    for stop in [StopAt::AfterLock, StopAt::AfterNote, StopAt::AfterBranch, StopAt::AfterFiles, StopAt::AfterIndex] {
        let world = World::new();
        let repo = begun_without(&world, "main");
        repo.publish(&wake(&[change("memory/new.md", None, Some("new\n"))])).unwrap();
        theirs(&world, "main");
        repo.remote().fetch(TIMEOUT).unwrap();
        repo.remote().try_integrate(now(), &both, stop).unwrap();
        drop(repo);
        let repo = Repo::open(&world.brain()).unwrap();
        repo.remote().integrate(now(), &both).unwrap();
        assert_eq!(world.git(&["log", "--merges", "--oneline"]).lines().count(), 1, "{stop:?}");
        assert_eq!((world.read("claude.md"), world.read("memory/new.md")), ("# Their orders\n".into(), "new\n".into()));
        assert!(!repo.remote().is_unjoined());
        assert_eq!(world.status(), "");
    }
}

#[test]
fn what_a_killed_first_run_left_is_cleared_away() {
    let world = World::new();
    let half = world.path("workspace/.brain.reveille-new/.git");
    fs::create_dir_all(&half).unwrap();
    fs::write(half.join("HEAD"), "ref: ref").unwrap();
    world.local();
    assert!(!world.path("workspace/.brain.reveille-new").exists());
    world.assert_sound();
}

#[test]
fn another_directory_in_its_place_is_not_touched() {
    let world = World::new();
    fs::create_dir_all(world.brain()).unwrap();
    fs::write(world.file("thesis.txt"), "years of work").unwrap();
    let error = Repo::open_or_create(&world.brain(), None, &TEMPLATES, now()).err().unwrap();
    assert!(matches!(error, RepoError::NotARepository { .. }), "{error}");
    assert_eq!(fs::read_dir(world.brain()).unwrap().count(), 1);
}

#[test]
fn an_empty_directory_in_its_place_is_filled() {
    let world = World::new();
    fs::create_dir_all(world.brain()).unwrap();
    world.local();
    world.assert_sound();
}

#[test]
fn a_remote_other_than_origin_is_a_configuration_error() {
    let world = World::new();
    world.shared();
    let open =
        |url: &str| Repo::open_or_create(&world.brain(), Some(url), &TEMPLATES, now()).map(|(_, created)| created);
    let url = world.path("remote").to_str().unwrap().to_owned();
    for same in [format!("{url}.git"), format!("{url}.git/"), format!("file://{url}.git")] {
        assert_eq!(open(&same).unwrap(), Created::Existing, "{same}");
    }
    let error = open("https://ann:hunter2@example.org/other.git").unwrap_err();
    assert!(matches!(error, RepoError::Configuration(_)), "{error}");
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

#[test]
fn a_remote_set_later_is_taken_on() {
    let world = World::new();
    world.local();
    let url = world.empty_remote();
    let (repo, _) = Repo::open_or_create(&world.brain(), Some(&url), &TEMPLATES, now()).unwrap();
    assert_eq!(repo.remote().push(TIMEOUT, &never_secret).unwrap(), Pushed::To(repo.head().unwrap().unwrap()));
}
