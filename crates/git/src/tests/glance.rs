//! Tests that a look without libgit2 sees the same as libgit2, or nothing.

use super::*;
use crate::advance::StopAt;

fn at_rest(world: &World, repo: &Repo, url: Option<&str>) {
    let glance = Glance::read(&world.brain(), url).expect("a repository at rest");
    assert_eq!(Some(glance.head()), repo.head().unwrap());
    assert_eq!(glance.has_remote(), repo.has_remote());
    for path in [ACTIVE, "memory/none.md"] {
        assert_eq!(glance.read_work_tree(path).unwrap(), repo.read_work_tree(path).unwrap());
    }
}

fn is_seen(world: &World) -> bool {
    Glance::read(&world.brain(), None).is_some()
}

#[test]
fn between_two_wakes_it_sees_the_same() {
    let world = World::new();
    let repo = world.local();
    at_rest(&world, &repo, None);
    repo.publish(&wake(&[change("notes/a.md", None, Some("a\n"))])).unwrap();
    at_rest(&world, &repo, None);
    world.write(ACTIVE, "# Active\n\n## By hand\n");
    at_rest(&world, &repo, None);
}

#[test]
fn a_remote_is_at_rest_as_long_as_it_has_all_and_is_the_one_that_is_set() {
    let world = World::new();
    let repo = world.shared();
    let url = world.path("remote.git").to_str().unwrap().to_owned();
    at_rest(&world, &repo, Some(&url));
    assert!(Glance::read(&world.brain(), Some("https://example.org/another.git")).is_none());
    repo.publish(&wake(&[change("notes/a.md", None, Some("a\n"))])).unwrap();
    assert!(!is_seen(&world), "a commit waits to be pushed");
}

/// In each of these states libgit2 has to be asked.
#[test]
fn what_is_not_at_rest_is_not_seen() {
    type Happens<'a> = (&'a str, &'a dyn Fn(&World, &Repo));
    let make: [Happens<'_>; 9] = [
        ("another branch", &|world, _| drop(world.git(&["switch", "--quiet", "-c", "draft"]))),
        ("a single commit", &|world, _| drop(world.git(&["switch", "--quiet", "--detach"]))),
        ("a branch that is packed", &|world, _| drop(world.git(&["pack-refs", "--all"]))),
        ("a broken-off move", &|_, repo| {
            repo.try_publish(&wake(&[change("notes/a.md", None, Some("a\n"))]), StopAt::AfterBranch).unwrap();
        }),
        ("work that waits for HEAD", &|_, repo| {
            let changes = [change("notes/a.md", None, Some("a\n"))];
            repo.parked_work().park("parked/w-1", &wake(&changes), Parking::UntilHeadIsBack).unwrap();
        }),
        ("another work tree", &|world, _| drop(world.git(&["config", "core.worktree", "/elsewhere"]))),
        ("a format of later days", &|world, _| drop(world.git(&["config", "core.repositoryFormatVersion", "1"]))),
        ("no objects", &|world, _| fs::rename(world.file(".git/objects"), world.path("objects")).unwrap()),
        ("a git directory elsewhere", &|world, _| {
            fs::rename(world.file(".git"), world.path("git")).unwrap();
            fs::write(world.file(".git"), format!("gitdir: {}\n", world.path("git").display())).unwrap();
        }),
    ];
    for (what, happens) in make {
        let world = World::new();
        let repo = world.local();
        assert!(is_seen(&world));
        happens(&world, &repo);
        assert!(!is_seen(&world), "{what}");
    }
}

#[test]
fn the_marks_of_parked_work_are_seen_when_they_are_packed() {
    let world = World::new();
    let repo = world.local();
    repo.parked_work()
        .park("parked/w-1", &wake(&[change("notes/a.md", None, Some("a\n"))]), Parking::UntilHeadIsBack)
        .unwrap();
    world.git(&["pack-refs", "--all"]);
    // A commit writes the branch to a loose file again.
    repo.publish(&wake(&[change("notes/b.md", None, Some("b\n"))])).unwrap();
    assert!(!is_seen(&world));
}

/// For the redactor: every address of a remote, and every replacement of one.
#[test]
fn every_address_that_may_hold_a_password_is_found() {
    let world = World::new();
    world.local();
    world.git(&["remote", "add", "origin", "short:memory"]);
    world.git(&["config", "remote.origin.pushUrl", "https://ann:one-password@example.org/a.git"]);
    world.git(&["remote", "add", "backup", "https://ann:two-passwords@example.org/b.git"]);
    world.git(&["config", "url.https://ann:three-passwords@example.org/.insteadOf", "short:"]);
    let urls = remote_urls(&world.brain()).join("\n");
    for password in ["one-password", "two-passwords", "three-passwords"] {
        assert!(urls.contains(password), "{password}: {urls}");
    }
}
