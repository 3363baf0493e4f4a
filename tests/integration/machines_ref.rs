//! The lease on a remote by itself: real swaps on a bare repository, several machines as threads with a workspace each.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Barrier},
    thread,
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};

use reveille_base::clock::{parse_time, since_boot};
use reveille_config::Config;
use reveille_cycle::lease::{Acquired, Lease, LeaseError, LeasePart, RemoteLease};

use super::support::env::{NOW, TestEnv, eventually};

/// A remote, and room for machines.
struct Place {
    env: TestEnv,
    remote: PathBuf,
    /// How machines call it.
    url: String,
}

fn now() -> DateTime<Utc> {
    parse_time(NOW).unwrap()
}

impl Place {
    /// The remote's folder is looked into.
    fn new() -> Self {
        let env = TestEnv::new();
        let remote = env.bare_remote("remote.git");
        let url = remote.display().to_string();
        Self { env, remote, url }
    }

    /// Everything goes by git's commands, as it does where the remote is another machine's.
    fn by_git() -> Self {
        let place = Self::new();
        Self { url: format!("file://{}", place.url), ..place }
    }

    fn both() -> [Self; 2] {
        [Self::new(), Self::by_git()]
    }

    fn config(&self, name: &str, more: &[(&str, &str)]) -> Config {
        let workspace = self.env.path(name);
        std::fs::create_dir_all(&workspace).unwrap();
        let mut said: BTreeMap<String, String> = BTreeMap::from([
            ("HOME".to_owned(), self.env.path("home").display().to_string()),
            ("WORKSPACE_DIR".to_owned(), workspace.display().to_string()),
            ("REPO_URL".to_owned(), self.url.clone()),
            ("LEASE".to_owned(), "remote".to_owned()),
            ("LEASE_NAME".to_owned(), name.to_owned()),
        ]);
        said.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        Config::from_sources(&said, None, Some("UTC")).unwrap()
    }

    fn lease(&self, name: &str, more: &[(&str, &str)]) -> RemoteLease {
        RemoteLease::from_config(&self.config(name, more), LeasePart::Wake).unwrap()
    }

    fn git(&self, args: &[&str]) -> String {
        self.env.git_in(&self.remote, args)
    }
}

fn is_ours(acquired: &Result<Acquired, LeaseError>) -> bool {
    matches!(acquired, Ok(Acquired::Ours { .. }))
}

#[test]
fn one_holds_it_the_other_learns_who_and_what_was_handled_goes_on() {
    for reference in ["refs/reveille/lease", "refs/heads/lease", "refs/tags/lease"] {
        for place in Place::both() {
            handed_on(&place, reference);
        }
    }
}

fn handed_on(place: &Place, reference: &str) {
    let (desk, laptop) =
        (place.lease("desk", &[("LEASE_REF", reference)]), place.lease("laptop", &[("LEASE_REF", reference)]));
    assert_eq!(desk.acquire(now()).unwrap(), Acquired::Ours { handled: Vec::new() }, "{reference}");
    assert_eq!((desk.fence(), laptop.fence()), (Some(1), None));
    let Acquired::Others { holder, left } = laptop.acquire(now()).unwrap() else { panic!("it is held") };
    assert_eq!((holder.unwrap().name.as_str(), left), ("desk", Duration::from_secs(375)));
    desk.renew(Vec::new()).unwrap();
    let handled = vec![("at/Garden".to_owned(), String::new())];
    desk.release(handled.clone());
    assert_eq!((desk.fence(), desk.remaining_term()), (None, Duration::ZERO));
    assert_eq!(laptop.acquire(now()).unwrap(), Acquired::Ours { handled });
    assert_eq!(laptop.fence(), Some(2));
    assert!(matches!(desk.renew(Vec::new()), Err(LeaseError::Lost)));
    // Each value stands alone: nothing grows at the remote.
    assert_eq!(place.git(&["rev-list", "--count", &format!("{reference}/wake")]), "1");
    place.git(&["fsck", "--strict"]);
}

#[test]
fn a_holder_that_was_killed_is_followed_by_its_own_machine_at_once_and_by_another_after_its_term() {
    for place in Place::both() {
        let short = [("LEASE_TERM_S", "1")];
        let killed = place.lease("desk", &short);
        assert!(is_ours(&killed.acquire(now())));
        killed.renew(Vec::new()).unwrap();
        // Another process of its machine, which holds the machine's own lock by now.
        let again = place.lease("desk", &short);
        assert!(is_ours(&again.acquire(now())));
        assert_eq!(again.fence(), Some(2));
        assert!(matches!(killed.renew(Vec::new()), Err(LeaseError::Lost)));
        // A copy of its workspace is another machine.
        std::fs::create_dir(place.env.path("copy")).unwrap();
        std::fs::create_dir(place.env.path("copy/lease")).unwrap();
        std::fs::copy(place.env.path("desk/lease/wake.json"), place.env.path("copy/lease/wake.json")).unwrap();
        assert!(!is_ours(&place.lease("copy", &short).acquire(now())));

        let begun = since_boot();
        let laptop = |_: ()| place.lease("laptop", &short).acquire(now());
        assert!(!is_ours(&laptop(())));
        // Each look is a process of its own, as wakes are.
        eventually("the lease expires", || is_ours(&laptop(())));
        assert!(since_boot() - begun >= Duration::from_millis(1_250), "not before its term and a margin");
        assert!(
            again.remaining_term().is_zero() && again.fence().is_none(),
            "by then its holder knows that it is over"
        );
    }
}

#[test]
fn what_is_not_a_lease_is_left_alone() {
    for place in Place::both() {
        let tree = place.git(&["hash-object", "-w", "-t", "tree", "/dev/null"]);
        let theirs = place.git(&["commit-tree", "-m", "Somebody's work", &tree]);
        place.git(&["update-ref", "refs/reveille/lease/wake", &theirs]);
        let lease = place.lease("desk", &[]);
        let Err(LeaseError::Foreign { reference }) = lease.acquire(now()) else { panic!("it isn't ours") };
        assert_eq!(reference, "refs/reveille/lease/wake");
        assert_eq!(place.git(&["rev-parse", &reference]), theirs);
    }
}

#[test]
fn a_remote_that_is_gone_takes_the_lease_along_after_its_term_and_no_sooner() {
    for place in Place::both() {
        let lease = place.lease("desk", &[("LEASE_TERM_S", "1")]);
        assert!(is_ours(&lease.acquire(now())));
        std::fs::rename(&place.remote, place.env.path("gone.git")).unwrap();
        assert!(matches!(lease.renew(Vec::new()), Err(LeaseError::Remote(_))));
        assert!(lease.fence().is_some(), "its term still runs");
        eventually("its term is over", || lease.fence().is_none());
        std::fs::rename(place.env.path("gone.git"), &place.remote).unwrap();
        assert!(matches!(lease.renew(Vec::new()), Err(LeaseError::Lost)));
        assert!(is_ours(&lease.acquire(now())));
    }
}

/// A remote whose answer to a push is lost after the push has happened.
#[test]
fn a_swap_whose_answer_was_lost_is_found_to_have_happened() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    let lease = place.lease("desk", &[("LEASE_TERM_S", "2")]);
    assert!(is_ours(&lease.acquire(now())));
    let before = place.git(&["rev-parse", "refs/reveille/lease/wake"]);
    let hook = place.remote.join("hooks/post-receive");
    std::fs::write(&hook, "#!/bin/sh\nkill -9 $PPID\n").unwrap();
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert!(matches!(lease.renew(Vec::new()), Err(LeaseError::Remote(_))), "nobody knows whether it happened");
    assert_ne!(place.git(&["rev-parse", "refs/reveille/lease/wake"]), before, "it did");
    std::fs::remove_file(&hook).unwrap();
    lease.renew(Vec::new()).unwrap();
    assert!(lease.fence().is_some());
}

/// One race: so many machines at once want a lease that is free. Gives the times of the losers.
fn race(place: &Place, machines: &[PathBuf], fence: u64) -> Vec<Duration> {
    let start = Arc::new(Barrier::new(machines.len()));
    let runs: Vec<_> = machines
        .iter()
        .map(|machine| {
            let name = machine.file_name().unwrap().to_str().unwrap();
            let (lease, start) = (place.lease(name, &[]), Arc::clone(&start));
            thread::spawn(move || {
                start.wait();
                let begun = Instant::now();
                let acquired = lease.acquire(now()).unwrap();
                let took = begun.elapsed();
                (matches!(acquired, Acquired::Ours { .. }).then_some(lease), took)
            })
        })
        .collect();
    let ended: Vec<_> = runs.into_iter().map(|run| run.join().unwrap()).collect();
    let winners: Vec<&RemoteLease> = ended.iter().filter_map(|(lease, _)| lease.as_ref()).collect();
    assert_eq!(winners.len(), 1, "one winner in race {fence}");
    assert_eq!(winners[0].fence(), Some(fence));
    winners[0].release(Vec::new());
    ended.iter().filter(|(lease, _)| lease.is_none()).map(|(_, took)| *took).collect()
}

fn races(place: &Place, count: u64) -> Vec<Duration> {
    let machines: Vec<PathBuf> = ["one", "two", "three", "four"].iter().map(|name| place.env.path(name)).collect();
    (1..=count).flat_map(|fence| race(place, &machines, fence)).collect()
}

#[test]
fn of_four_that_want_it_at_once_one_gets_it() {
    for place in Place::both() {
        races(&place, 10);
    }
}

/// The figures that are promised; run it alone: `cargo nextest run --run-ignored only -E 'test(figures_of_the_lease)'
/// --no-capture`.
#[test]
#[ignore = "a thousand races take minutes, and figures want a quiet machine"]
fn figures_of_the_lease() {
    use std::io::Write as _;
    let say = |what: &str, mut times: Vec<Duration>| {
        times.sort_unstable();
        let of = |at: usize| times[at.min(times.len() - 1)].as_secs_f64() * 1_000.0;
        let (least, middle, most) = (of(0), of(times.len() / 2), of(times.len()));
        let text = format!("{what}: min {least:.1}, median {middle:.1}, max {most:.1} ms ({} times)\n", times.len());
        std::io::stderr().write_all(text.as_bytes()).unwrap();
        middle
    };
    for (place, way) in Place::both().iter().zip(["its folder", "git"]) {
        let race = say(&format!("by {way}: a loser of a race of four"), races(place, 1_000));
        let (holder, other) = (place.lease("tower", &[]), place.lease("laptop", &[]));
        assert!(is_ours(&holder.acquire(now())));
        let timed = |work: &dyn Fn()| {
            let begun = Instant::now();
            work();
            begun.elapsed()
        };
        let renewals = (0..100).map(|_| timed(&|| holder.renew(Vec::new()).unwrap()));
        let renewal = say(&format!("by {way}: a renewal"), renewals.collect());
        let looks = (0..100).map(|_| timed(&|| assert!(!is_ours(&other.acquire(now())))));
        let look = say(&format!("by {way}: a look at a lease that another machine has"), looks.collect());
        let fresh = (0..100).map(|_| {
            holder.renew(Vec::new()).unwrap();
            timed(&|| assert!(!is_ours(&other.acquire(now()))))
        });
        let fresh = say(&format!("by {way}: the same just after it was renewed"), fresh.collect());
        // What git takes is told, and is git's own.
        let is_kept = renewal < 100.0 && race < 50.0 && look < 50.0 && fresh < 50.0;
        assert!(is_kept || way == "git", "by {way}");
    }
}

#[test]
fn renewing_leaves_nothing_behind_that_grows() {
    for place in Place::both() {
        place.git(&["config", "core.logAllRefUpdates", "always"]);
        let lease = place.lease("desk", &[]);
        assert!(is_ours(&lease.acquire(now())));
        for _ in 0..70 {
            lease.renew(Vec::new()).unwrap();
        }
        let objects = count_files(&place.env.path("desk/lease/wake.git/objects"));
        assert!(objects < 40, "{objects} objects");
        // A remote's own git tidies it up when somebody pushes.
        let pushes = place.git(&["reflog", "show", "--format=%gs", "refs/reveille/lease/wake"]);
        let pushes = pushes.lines().filter(|line| *line == "push").count();
        assert_eq!(pushes, if place.url.starts_with("file://") { 71 } else { 2 });
    }
}

fn count_files(dir: &Path) -> usize {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { count_files(&path) } else { 1 }).sum()
}
