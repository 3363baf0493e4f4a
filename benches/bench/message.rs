//! Measures one message from the queue to the answer, the commit and the remote, with a model that answers at once. The yardstick is
//! git fetching, committing (synced) and pushing the same change. The remote is either a folder that a wake reads itself, or one that
//! it reaches through git, as it does on another machine.

use std::{path::PathBuf, time::Duration};

use rusqlite::Connection;

use super::{
    measure::{Pair, timed},
    rss,
    support::{
        claude::{FakeClaude, Reply},
        env::{CHAT, TestEnv, eventually},
        telegram::FakeTelegram,
    },
    table::{Bound, Row},
};

const WAKE: &str = env!("CARGO_BIN_EXE_wake");

pub(crate) fn measure(rounds: usize) -> Vec<Row> {
    let mut rows = by_remote("", rounds);
    rows.extend(by_remote("file://", rounds));
    rows
}

/// Measures with a remote whose address has this prefix.
fn by_remote(scheme: &str, rounds: usize) -> Vec<Row> {
    let world = World::new(scheme);
    for _ in 0..3 {
        world.wake();
        world.git();
    }
    let git_steps = "git fetch + commit + push";
    let pair = || {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            // Always in this order, since git gets the change the wake made.
            ours.push(super::measure::milliseconds(world.wake()));
            theirs.push(super::measure::milliseconds(world.git()));
        }
        Pair::of(ours, theirs)
    };
    if !scheme.is_empty() {
        return vec![Row::pair("one message, with a remote that git asks", git_steps, pair(), Bound::Ratio(2.0))];
    }
    world.check_that_the_answer_comes_first();
    world.git();
    let pair = pair();
    let peaks = (0..rounds.min(10)).map(|_| world.peak_mb()).collect();
    vec![
        Row::pair("one message, answered, committed, pushed", git_steps, pair, Bound::Ratio(2.0)),
        Row::alone("one message, peak memory", "MB", Ok(peaks), Bound::Max(30.0)),
    ]
}

struct World {
    telegram: FakeTelegram,
    claude: FakeClaude,
    env: TestEnv,
    remote: PathBuf,
    /// The database, held open as a bot does, since only a running bot receives messages.
    _open: Connection,
    /// A clone of the initial brain, with a remote of its own.
    clone: PathBuf,
}

impl World {
    fn new(scheme: &str) -> Self {
        let (telegram, claude) = (FakeTelegram::start(), FakeClaude::start());
        let mut env = TestEnv::with_telegram(&telegram);
        let remote = env.bare_remote("remote.git");
        env.think_with(&claude).set("REPO_URL", &format!("{scheme}{}", remote.display()));
        env.wake(&["--once"]).ok();
        let (twin, clone) = (env.path("twin.git"), env.path("clone"));
        let [from, twin, to] = [&remote, &twin, &clone].map(|path| path.display().to_string());
        env.run("git", &["clone", "-q", "--bare", &from, &twin]).ok();
        env.run("git", &["clone", "-q", &format!("{scheme}{twin}"), &to]).ok();
        let open = Connection::open(env.workspace().join("messages.db")).unwrap();
        open.query_row("SELECT count(*) FROM incoming_messages", [], |row| row.get::<_, i64>(0)).unwrap();
        Self { telegram, claude, env, remote, _open: open, clone }
    }

    fn queue(&self) {
        self.env.receive(CHAT, "What should I cook tonight?");
        self.claude.expect(Reply::text("Something with the lentils: they are on the shelf since May."));
    }

    /// Runs a wake for one message and returns its time.
    fn wake(&self) -> Duration {
        self.queue();
        let time = timed(|| drop(self.env.wake(&["--once"]).ok()));
        self.check();
        time
    }

    fn peak_mb(&self) -> f64 {
        self.queue();
        let peak = rss::peak_mb(&self.env, WAKE, &["--once"]);
        self.check();
        peak
    }

    fn check(&self) {
        assert!(self.env.queued().is_empty(), "the message wasn't answered");
        assert_eq!(self.env.git_in(&self.remote, &["rev-parse", "main"]), self.env.git(&["rev-parse", "HEAD"]));
    }

    /// Makes the same change with git and returns the time for fetching, committing and pushing.
    fn git(&self) -> Duration {
        let patch = self.env.path("change.patch");
        let diff =
            self.env.run("git", &["-C", &self.env.brain().display().to_string(), "diff", "--binary", "HEAD~1", "HEAD"]);
        std::fs::write(&patch, diff.ok().stdout).unwrap();
        self.env.git_in(&self.clone, &["apply", &patch.display().to_string()]);
        let git = |args: &[&str]| drop(self.env.git_in(&self.clone, args));
        timed(|| {
            git(&["fetch", "-q", "origin"]);
            git(&[
                "-c",
                "core.fsync=all",
                "-c",
                "core.fsyncMethod=fsync",
                "commit",
                "-q",
                "-a",
                "-m",
                "The same change",
            ]);
            git(&["push", "-q", "origin", "HEAD"]);
        })
    }

    /// Checks that the answer reaches Telegram while the remote still holds the push back.
    fn check_that_the_answer_comes_first(&self) {
        let (began, go) = (self.env.path("push-began"), self.env.path("push-may-go"));
        let hook = self.remote.join("hooks/pre-receive");
        let script =
            format!("#!/bin/sh\n: >'{}'\nwhile [ ! -e '{}' ]; do sleep 0.01; done\n", began.display(), go.display());
        std::fs::create_dir_all(self.remote.join("hooks")).unwrap();
        std::fs::write(&hook, script).unwrap();
        self.env.run("chmod", &["755", &hook.display().to_string()]).ok();
        let sent = self.telegram.sent().len();
        self.queue();
        let wake = self.env.start(WAKE, &["--once"]);
        eventually("the push", || began.exists());
        assert_eq!(self.telegram.sent().len(), sent + 1, "the push began before the answer was delivered");
        std::fs::write(&go, "").unwrap();
        wake.end().ok();
        std::fs::remove_file(&hook).unwrap();
        self.check();
    }
}
