//! Measures many assistants: messages a second from stored to answered, by workers with 1, 2 and 4 slots and the fallback grammar. The
//! yardstick starts the same wakes one after the other, without a list and without a box. Also measures the list itself as it grows.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};

use reveille_base::{
    clock::{Clock as _, SystemClock},
    types::{AssistantName, ChatRef},
};
use reveille_fleet::Fleet;
use reveille_store::{Batch, FleetRegistry, NewIncoming, TurnEnd, database};

use super::{
    measure::{Pair, Spread, milliseconds, timed},
    support::{
        env::{TestEnv, sandbox_visible_dir},
        postgres,
    },
    table::{Bound, Row},
};

/// Assistants on the list of a working fleet.
const ASSISTANTS: usize = 1_000;
/// The assistants that get a message each. All others rest.
const WRITTEN_TO: usize = 100;
/// One assistant in this many is due on a growing list.
const ONE_IN: usize = 100;
/// The sizes of the growing list.
const SIZES: [(usize, &str); 3] =
    [(1_000, "10 of 1,000 due, 2 workers"), (10_000, "100 of 10,000 due"), (100_000, "1,000 of 100,000 due")];

pub(crate) fn measure(rounds: usize) -> Vec<Row> {
    let mut rows = growth();
    rows.extend(SIZES.map(|(size, figure)| World::new(None, size, size / ONE_IN).row(rounds, figure)));
    let file = World::new(None, ASSISTANTS, WRITTEN_TO);
    rows.extend(file.rows(rounds, ["1 worker, a file each", "2 workers, a file each", "4 workers, a file each"], true));
    drop(file);
    let Some(url) = postgres::new_server_database() else { return rows };
    let shared = World::new(Some(&url), ASSISTANTS, WRITTEN_TO);
    let named = ["1 worker, one PostgreSQL", "2 workers, one PostgreSQL", "4 workers, one PostgreSQL"];
    rows.extend(shared.rows(rounds, named, false));
    rows
}

/// Times a claim and its end, on lists of 1,000 and of 100,000.
fn growth() -> Vec<Row> {
    let dir = tempfile::tempdir_in(sandbox_visible_dir()).unwrap();
    let [few, many] = [1_000, 100_000].map(|size| {
        let path = dir.path().join(format!("{size}.db"));
        let mut registry = FleetRegistry::open(&path.clone().into()).unwrap();
        let one_in =
            format!("CASE i % {ONE_IN} WHEN 0 THEN '2026-11-01T00:00:00.000Z' ELSE '2027-01-01T00:00:00.000Z' END");
        fill(&path, 1, size, &one_in);
        let now = now();
        let mut took = Vec::new();
        for n in 0..1_000 {
            let at = now + TimeDelta::milliseconds(n);
            took.push(milliseconds(timed(|| {
                let claim = registry.claim_turn("w", at, at + TimeDelta::seconds(60)).unwrap().unwrap();
                // Due again at once, so one in a hundred always is.
                registry.give_back("w", &claim, &TurnEnd { due_at: at, trouble: None }, at).unwrap();
            })));
        }
        Spread::new(took)
    });
    let p99 = |spread: &Spread| Ok(vec![spread.at(0.99)]);
    let median = |spread: &Spread| Ok(vec![spread.median()]);
    vec![
        Row::alone("a turn's own time in the queue, 10 of 1,000 due (median)", "ms", median(&few), Bound::None),
        Row::alone("the same, 99 of 100", "ms", p99(&few), Bound::None),
        Row::alone("1,000 of 100,000 due (median)", "ms", median(&many), Bound::None),
        Row::alone("the same, 99 of 100", "ms", p99(&many), Bound::None),
    ]
}

/// Lists the assistants with these numbers as `add` would, without a sync for each. `due_at` is SQL.
fn fill(path: &Path, first: usize, last: usize, due_at: &str) {
    let conn = rusqlite::Connection::open(path).unwrap();
    conn.execute_batch(&format!(
        "WITH RECURSIVE n (i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n WHERE i < {last})
         INSERT INTO assistants (name, added_at, due_at, taken_at)
         SELECT 'b' || i, '2026-01-01T00:00:00.000Z', {due_at}, '2026-10-01T00:00:00.000Z' FROM n"
    ))
    .unwrap();
}

fn now() -> DateTime<Utc> {
    reveille_base::clock::parse_time("2026-12-01T00:00:00Z").unwrap()
}

/// A fleet, with its operator's settings.
struct World {
    env: TestEnv,
    fleet: Fleet,
    names: Vec<AssistantName>,
}

impl World {
    /// Resting assistants exist on the list alone; no worker opens their workspace.
    fn new(url: Option<&str>, listed: usize, written_to: usize) -> Self {
        let mut env = TestEnv::within(&sandbox_visible_dir());
        env.unset("WORKSPACE_DIR").unset("REVEILLE_NOW").unset("DATABASE_URL");
        let dir = env.path("fleet");
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join(".env"), url.map_or_else(String::new, |url| format!("DATABASE_URL={url}\n"))).unwrap();
        let settings = env.path("one.env");
        fs::write(&settings, "TIMEZONE=Europe/Berlin\nREFLECT_AT=none\nINITIATIVE=off\n").unwrap();
        // Database roles are shared by the whole server, so names must be unique.
        let name = |n| format!("a{n}_{}", std::process::id()).parse::<AssistantName>().unwrap();
        let names: Vec<AssistantName> = (0..written_to).map(name).collect();
        let mut fleet = None;
        for name in &names {
            fleet = Some(Fleet::add(&dir, name, Some(&settings), SystemClock.now()).unwrap().0);
        }
        let fleet = fleet.unwrap();
        let world = Self { env, fleet, names };
        // The first turn of each assistant makes its memory.
        world.work("2");
        if url.is_some() {
            let mut registry = world.fleet.open_registry().unwrap();
            for n in written_to..listed {
                registry.add(&format!("b{n}").parse().unwrap(), SystemClock.now() + TimeDelta::days(1)).unwrap();
            }
        } else {
            fill(&dir.join("fleet.db"), written_to + 1, listed, "'2100-01-01T00:00:00.000Z'");
        }
        world
    }

    /// Measures two workers.
    fn row(&self, rounds: usize, figure: &'static str) -> Row {
        let rates = (0..rounds).map(|_| self.answered("2")).collect();
        Row::alone(figure, "messages/s", Ok(rates), Bound::None)
    }

    /// Writes to each assistant and returns the messages answered a second.
    fn answered(&self, slots: &str) -> f64 {
        self.write_to_all(true);
        let took = timed(|| self.work(slots));
        self.check();
        self.rate(took)
    }

    fn rate(&self, took: Duration) -> f64 {
        self.names.len() as f64 / took.as_secs_f64()
    }

    fn rows(&self, rounds: usize, named: [&'static str; 3], has_yardstick: bool) -> Vec<Row> {
        let mut rows = Vec::new();
        for (slots, figure) in ["1", "2", "4"].into_iter().zip(named) {
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            for _ in 0..rounds {
                ours.push(self.answered(slots));
                if has_yardstick {
                    self.write_to_all(false);
                    theirs.push(self.rate(timed(|| self.one_by_one())));
                    self.check();
                }
            }
            rows.push(match theirs.is_empty() {
                true => Row::alone(figure, "messages/s", Ok(ours), Bound::None),
                // The ratio is of times, as everywhere: above 1 is slower.
                false => Row {
                    figure,
                    unit: "messages/s",
                    ratios: Some(Pair::of(theirs.clone(), ours.clone()).ratios),
                    measured: Ok(Spread::new(ours)),
                    compared: Some(("wakes one by one, no box".to_owned(), Spread::new(theirs))),
                    bound: Bound::None,
                },
            });
        }
        rows
    }

    fn write_to_all(&self, is_due: bool) {
        let mut registry = self.fleet.open_registry().unwrap();
        for name in &self.names {
            let mut store = database::open(&self.fleet.read_config(name).unwrap()).unwrap();
            let message = NewIncoming {
                chat: ChatRef::TERMINAL,
                text: "remember that the shed is red".to_owned(),
                kind: "text".to_owned(),
                ..NewIncoming::default()
            };
            let batch = Batch { bot_id: 99, messages: vec![message], ..Batch::default() };
            store.inbox_mut().accept_batch(&batch, SystemClock.now()).unwrap();
            if is_due {
                registry.wake_assistant(name, SystemClock.now()).unwrap();
            }
        }
    }

    fn work(&self, slots: &str) {
        let dir = self.fleet.dir().display().to_string();
        self.env.wake(&["--fleet", &dir, "--once", "--workers", slots]).ok();
    }

    /// Runs the loop a person could write in a shell.
    fn one_by_one(&self) {
        for name in &self.names {
            let workspace: PathBuf = self.fleet.workspace(name);
            let mut command = self.env.command(Path::new(env!("CARGO_BIN_EXE_wake")), &["--once", "--no-console"]);
            let ended = command.env("WORKSPACE_DIR", &workspace).env("HOME", workspace.join("home")).output().unwrap();
            assert!(ended.status.success(), "{ended:?}");
        }
    }

    fn check(&self) {
        for name in &self.names {
            let store = database::open(&self.fleet.read_config(name).unwrap()).unwrap();
            assert!(store.inbox().list_queued_messages().unwrap().is_empty(), "{name} wasn't answered");
        }
    }
}
