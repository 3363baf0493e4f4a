use super::{super::maintain::MAX_LOOSE, *};

/// Commits files of the person's, so more objects are loose than housekeeping leaves.
fn littered(world: &World, count: usize) {
    for n in 0..count {
        world.write(&format!("notes/{n}.txt"), &format!("note {n}\n"));
    }
    world.git(&["add", "-A"]);
    world.git(&["commit", "--quiet", "-m", "many notes"]);
}

fn count(world: &World, what: &str) -> usize {
    let counted = world.git(&["count-objects", "-v"]);
    let value = counted.lines().find_map(|line| line.strip_prefix(&format!("{what}: ")));
    value.unwrap().parse().unwrap()
}

fn exists(world: &World, id: &str) -> bool {
    world.try_git("workspace/brain", &["cat-file", "-e", id]).is_ok()
}

/// Makes every loose object and pack look as if written this many days ago.
fn age(world: &World, days: u64) {
    let then = Repo::open(&world.brain()).unwrap().housekeeping().read_disk_time().unwrap()
        - Duration::from_secs(days * 86_400);
    for entry in walk(&world.file(".git/objects")) {
        fs::set_permissions(&entry, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        fs::File::options().write(true).open(&entry).unwrap().set_modified(then).unwrap();
    }
}

fn walk(dir: &std::path::Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

fn hash(world: &World, name: &str, text: &str) -> String {
    let file = world.path(name);
    fs::write(&file, text).unwrap();
    world.git(&["hash-object", "-w", file.to_str().unwrap()]).trim().to_owned()
}

#[test]
fn a_small_repository_is_left_alone() {
    let world = World::new();
    let repo = world.local();
    littered(&world, MAX_LOOSE / 2);
    assert!(!repo.housekeeping().count_stock().is_large(), "{:?}", repo.housekeeping().count_stock());
    let before = (count(&world, "count"), count(&world, "packs"));
    repo.housekeeping().maintain(TIMEOUT).unwrap();
    assert_eq!((count(&world, "count"), count(&world, "packs")), before);
}

#[test]
fn thousands_of_loose_objects_become_a_pack_and_nothing_is_lost() {
    let world = World::new();
    let repo = world.local();
    // Objects reached by a branch of ours, by a hidden reference, by the reflog only, by the index only, and by nothing.
    let changes = [change("memory/parked.md", None, Some("parked\n"))];
    let parked = repo.parked_work().park("recovered/c1", &wake(&changes), Parking::ForAPerson).unwrap().branch;
    let rescued = hash(&world, "rescued", "rescued\n");
    world.git(&["update-ref", "refs/reveille/rescue/x", &rescued]);
    world.git(&["commit", "--quiet", "--allow-empty", "-m", "undone"]);
    let undone = world.git(&["rev-parse", "HEAD"]).trim().to_owned();
    world.git(&["reset", "--quiet", "--hard", "HEAD^"]);
    littered(&world, MAX_LOOSE * 3 / 2);
    world.write("staged.txt", "staged\n");
    world.git(&["add", "staged.txt"]);
    let staged = world.git(&["rev-parse", ":staged.txt"]).trim().to_owned();
    world.write("staged.txt", "and then changed\n");
    let young = hash(&world, "young", "young and reached by nothing\n");

    // A handle that stays open, as the wake's own does.
    let open = Repo::open(&world.brain()).unwrap();
    let before = repo.housekeeping().count_stock();
    assert!(before.is_large() && before.loose > MAX_LOOSE, "{before:?}");
    repo.housekeeping().maintain(TIMEOUT).unwrap();
    assert!(count(&world, "count") < 20, "{} are loose", count(&world, "count"));
    assert_eq!((count(&world, "packs"), count(&world, "garbage")), (before.packs + 1, 0));
    assert!(!repo.housekeeping().count_stock().is_large());
    for id in [&rescued, &undone, &staged, &young] {
        assert!(exists(&world, id), "{id} is gone");
    }
    assert_eq!(world.git(&["show", &format!("{parked}:memory/parked.md")]), "parked\n");
    assert_eq!(world.status(), "AM staged.txt\n");
    world.git(&["fsck", "--strict", "--no-dangling"]);
    for handle in [&repo, &open] {
        assert!(handle.read_head("notes/7.txt").unwrap().is_some());
    }
    open.publish(&wake(&[change("memory/new.md", None, Some("new\n"))])).unwrap();
    world.git(&["commit", "--quiet", "-m", "mine"]);
    assert_eq!(world.changed_in("HEAD"), ["staged.txt"]);
    world.git(&["checkout", "--quiet", "staged.txt"]);
    world.assert_sound();
}

#[test]
fn what_nothing_leads_to_goes_after_two_weeks_and_not_before() {
    let world = World::new();
    let repo = world.local();
    for n in 0..MAX_LOOSE * 3 / 2 {
        world.write(&format!("notes/{n}.txt"), &format!("note {n}\n"));
    }
    world.write("staged.txt", "staged\n");
    world.git(&["add", "-A"]);
    let staged = world.git(&["rev-parse", ":staged.txt"]).trim().to_owned();
    let dropped = world.git(&["rev-parse", ":notes/7.txt"]).trim().to_owned();
    world.git(&["rm", "--quiet", "-r", "--cached", "notes"]);
    age(&world, 13);
    repo.housekeeping().maintain(TIMEOUT).unwrap();
    assert!(exists(&world, &dropped));
    assert!(count(&world, "count") > MAX_LOOSE);
    age(&world, 15);
    repo.housekeeping().maintain(TIMEOUT).unwrap();
    assert!(!exists(&world, &dropped) && exists(&world, &staged));
    assert!(count(&world, "count") < 20);
    world.git(&["config", "gc.pruneExpire", "never"]);
    world.git(&["fsck", "--strict", "--no-dangling"]);
    assert_eq!(world.git(&["diff", "--cached", "--name-only"]), "staged.txt\n");
}

#[test]
fn many_packs_become_one_and_keep_what_they_had() {
    let world = World::new();
    let repo = world.local();
    let mut ids = Vec::new();
    for n in 0..MAX_PACKS {
        let text = format!("{n}\n");
        ids.push(
            repo.publish(&wake(&[change(&format!("memory/{n}.md"), None, Some(&text))])).unwrap().commit.to_string(),
        );
        assert_eq!(count(&world, "count"), 0, "a commit of ours is one pack");
    }
    world.git(&["reset", "--quiet", "--hard", "HEAD~5"]);
    world.git(&["reflog", "expire", "--expire=all", "--all"]);
    assert!(repo.housekeeping().count_stock().packs >= MAX_PACKS && repo.housekeeping().count_stock().is_large());
    repo.housekeeping().maintain(TIMEOUT).unwrap();
    assert_eq!(count(&world, "packs"), 1);
    assert!(ids.iter().all(|id| exists(&world, id)), "a young commit that was dropped is gone");
    assert!(repo.history().list_commits(100).unwrap().len() > 40);
    world.assert_sound();
}

/// Git is killed after increasing times until it gets through. Nothing is lost at any of these moments.
#[test]
fn killed_at_any_moment_it_loses_nothing_and_the_next_one_does_it() {
    let world = World::new();
    let repo = world.local();
    littered(&world, MAX_LOOSE * 3 / 2);
    let mut killed = 0;
    let mut bound = Duration::from_millis(2);
    loop {
        match repo.housekeeping().maintain(bound) {
            Err(RepoError::Housekeeping { why }) => assert!(why.contains("was stopped after"), "{why}"),
            done => {
                done.unwrap();
                break;
            }
        }
        killed += 1;
        bound = bound * 3 / 2;
        world.git(&["fsck", "--strict", "--no-dangling"]);
    }
    assert!(killed > 0);
    assert!(count(&world, "packs") > 0 && !repo.housekeeping().count_stock().is_large());
    // Leftovers of killed processes stay until no writer can still be active.
    fs::write(world.file(".git/objects/pack/tmp_pack_XyZ"), "half a pack").unwrap();
    fs::write(world.file(".git/objects/pack/.tmp-123-pack-ab.pack"), "half a pack").unwrap();
    fs::create_dir_all(world.file(".git/objects/ab")).unwrap();
    fs::write(world.file(".git/objects/ab/tmp_obj_XyZ"), "half").unwrap();
    let left = |world: &World| {
        let all = walk(&world.file(".git/objects"));
        all.iter().filter(|path| path.file_name().unwrap().to_str().unwrap().contains("tmp")).count()
    };
    repo.housekeeping().maintain(TIMEOUT).unwrap();
    assert!(left(&world) >= 3);
    age(&world, 1);
    repo.housekeeping().maintain(TIMEOUT).unwrap();
    assert_eq!(left(&world), 0);
    world.assert_sound();
}

/// Objects a move waiting for HEAD needs may have no other reference.
#[test]
fn nothing_is_dropped_while_a_move_waits_or_head_is_elsewhere() {
    let world = World::new();
    let repo = world.local();
    littered(&world, MAX_LOOSE * 3 / 2);
    let before = count(&world, "count");
    world.git(&["checkout", "--quiet", "--detach"]);
    repo.housekeeping().maintain(TIMEOUT).unwrap();
    assert_eq!(count(&world, "count"), before);
    world.git(&["checkout", "--quiet", "main"]);
    repo.try_publish(
        &wake(&[change("memory/new.md", None, Some("new\n"))]),
        super::super::advance::StopAt::AfterBranch,
    )
    .unwrap();
    let packs = count(&world, "packs");
    repo.housekeeping().maintain(TIMEOUT).unwrap();
    assert_eq!((count(&world, "count"), count(&world, "packs")), (before, packs));
    repo.finish_interrupted_move(&both).unwrap();
    repo.housekeeping().maintain(TIMEOUT).unwrap();
    assert!(count(&world, "count") < 20);
    world.assert_sound();
}
