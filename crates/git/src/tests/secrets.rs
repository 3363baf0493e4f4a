//! Tests that secrets aren't pushed: a person may commit one themselves, and a wake would push it.

use super::*;

const SECRET: &str = "hunter2-hunter2";

const OTHER: &str = "swordfish-swordfish";

fn secrets_in(text: &str) -> BTreeSet<String> {
    [SECRET, OTHER].into_iter().filter(|secret| text.contains(secret)).map(str::to_owned).collect()
}

/// The place where a push would have exposed a secret; `None` if it was pushed.
fn held_back(repo: &Repo) -> Option<String> {
    match repo.remote().push(TIMEOUT, &secrets_in) {
        Ok(_) => None,
        Err(RemoteError::HoldsSecret { place, commit }) => {
            assert_eq!(commit.len(), 40);
            Some(reveille_memory::outside::strip_marks(&place).into_owned())
        }
        Err(error) => panic!("{error}"),
    }
}

fn at_the_remote(world: &World) -> String {
    world.git_in("remote.git", &["log", "-p", "--all", "--format=%B"])
}

#[test]
fn a_secret_that_a_person_committed_stays_here_until_they_take_it_out() {
    let world = World::new();
    let repo = world.shared();
    world.write("notes/keys.txt", SECRET);
    world.git(&["add", "-A"]);
    world.git(&["commit", "--quiet", "-m", "my keys"]);
    assert_eq!(held_back(&repo).as_deref(), Some("`notes/keys.txt`"));
    // After its removal from the newest version the secret is still in the history.
    world.write("notes/keys.txt", "none");
    world.git(&["commit", "--quiet", "-am", "no keys"]);
    assert_eq!(held_back(&repo).as_deref(), Some("`notes/keys.txt`"));
    assert!(!at_the_remote(&world).contains(SECRET));
    world.git(&["reset", "--quiet", "--soft", "origin/main"]);
    world.git(&["commit", "--quiet", "-m", "no keys"]);
    assert_eq!(held_back(&repo), None);
    assert!(at_the_remote(&world).contains("no keys") && !at_the_remote(&world).contains(SECRET));
    world.assert_sound();
}

#[test]
fn what_a_person_has_pushed_themselves_or_got_from_elsewhere_holds_nothing_up() {
    let world = World::new();
    let repo = world.shared();
    world.write("notes/keys.txt", SECRET);
    world.git(&["add", "-A"]);
    world.git(&["commit", "--quiet", "-m", "my keys"]);
    assert!(held_back(&repo).is_some());
    world.git(&["push", "--quiet", "origin", "main"]);
    world.write("notes/keys.txt", &format!("{SECRET}, as ever"));
    world.git(&["commit", "--quiet", "-am", "said again"]);
    assert_eq!(held_back(&repo), None, "an earlier version of the file, which is there, held it");

    world.git_in("other", &["pull", "--quiet"]);
    world.other_pushes("notes/theirs.txt", SECRET.as_bytes());
    world.write("notes/mine.txt", "mine");
    world.git(&["add", "-A"]);
    world.git(&["commit", "--quiet", "-m", "mine"]);
    repo.remote().fetch(TIMEOUT).unwrap();
    assert!(matches!(repo.remote().integrate(now(), &both).unwrap(), Integrated::Merged { .. }));
    assert_eq!(held_back(&repo), None, "the merge takes over what is there already");
    world.assert_sound();
}

#[test]
fn a_new_secret_beside_one_that_is_there_already_stays_here() {
    let world = World::new();
    let repo = world.shared();
    let commit = |text: &str| {
        world.write("notes/keys.txt", text);
        world.git(&["add", "-A"]);
        world.git(&["commit", "--quiet", "-m", "my keys"]);
    };
    commit(SECRET);
    world.git(&["push", "--quiet", "origin", "main"]);
    commit(&format!("{SECRET}\n{OTHER}\n"));
    assert_eq!(held_back(&repo).as_deref(), Some("`notes/keys.txt`"));
    assert!(!at_the_remote(&world).contains(OTHER));
    world.git(&["reset", "--quiet", "--soft", "origin/main"]);
    commit(&format!("none but {SECRET}"));
    assert_eq!(held_back(&repo), None);
    world.assert_sound();
}

#[test]
fn messages_names_and_what_comes_back_are_looked_at_too() {
    let check = |commit: &dyn Fn(&World), place: &str| {
        let world = World::new();
        let repo = world.shared();
        commit(&world);
        assert_eq!(held_back(&repo).as_deref(), Some(place));
        assert!(!at_the_remote(&world).contains(SECRET));
    };
    check(
        &|world| {
            world.git(&["commit", "--quiet", "--allow-empty", "-m", &format!("The password is {SECRET}")]);
        },
        "the message",
    );
    check(
        &|world| {
            world.write(&format!("notes/{SECRET}"), "");
            world.git(&["add", "-A"]);
            world.git(&["commit", "--quiet", "-m", "a name"]);
        },
        "a file's name",
    );
    check(
        &|world| {
            for text in [SECRET, &format!("{SECRET}!"), SECRET] {
                world.write("notes/keys.txt", text);
                world.git(&["add", "-A"]);
                world.git(&["commit", "--quiet", "-m", "again"]);
            }
        },
        "`notes/keys.txt`",
    );
}
