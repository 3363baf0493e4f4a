use super::*;

#[test]
fn without_a_remote_the_templates_are_the_first_commit() {
    let world = World::new();
    let repo = world.local();
    assert_eq!((repo.branch(), repo.condition().unwrap()), ("main", Condition::Normal));
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
    assert_eq!(repo.ahead_behind().unwrap(), Some((0, 0)));
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
    assert_eq!((created, repo.branch(), repo.condition().unwrap()), (Created::Cloned, "trunk", Condition::Normal));
    assert_eq!(repo.list_markdown(&["memory"]).unwrap(), ["memory/größe of things.md"]);
    assert_eq!(world.status(), "");
}

#[test]
fn a_remote_that_cannot_be_reached_leaves_nothing_behind() {
    let world = World::new();
    let url = world.path("nowhere.git");
    let error = Repo::open_or_create(&world.brain(), url.to_str(), &TEMPLATES, now()).err().unwrap();
    assert!(matches!(error, RepoError::Unreachable(RemoteError::Unreachable { .. })), "{error}");
    assert_eq!(fs::read_dir(world.path("workspace")).unwrap().count(), 0);
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
    assert_eq!(repo.push(TIMEOUT, &never_secret).unwrap(), Pushed::To(repo.head().unwrap().unwrap()));
}
