//! Layer: `wake memory forget --purge` is killed at one of its system calls, with all its children. Repeating the command has to
//! finish the work: no git history contains the words, here or at the remote, and everything else is unchanged.

use std::{fs, time::SystemTime};

use super::{
    faults::{Faults, Mode, class},
    layer::{Layer, Recovery, Share},
    world::locks,
};
use crate::support::env::{ProgramOutput, TestEnv};

const WORD: &str = "swordfish";
const SEMANTIC: &str = "memory/agent-memory/semantic-memory.md";

/// The trials that kill a purge.
pub(crate) struct Purge {
    template: TestEnv,
    /// The number of calls in an undisturbed purge.
    calls: u64,
}

pub(crate) fn open() -> Box<dyn Layer> {
    let mut template = TestEnv::new();
    let remote = template.bare_remote("remote.git").display().to_string();
    template.set("REPO_URL", &remote);
    for fact in ["cats purr", "the word is swordfish", "dogs bark"] {
        template.wake(&["say", &format!("remember that {fact}")]).ok();
    }
    template.wake(&["--once"]).ok();
    let env = template.copy();
    let mut faults = Faults::new(env.root(), env.root(), class::MUTATING);
    faults.set_mode(Mode::Count);
    let mut purge = env.command(env!("CARGO_BIN_EXE_wake"), &PURGE);
    faults.apply(&mut purge);
    assert!(purge.output().unwrap().status.success(), "the undisturbed purge");
    is_purged(&env).unwrap();
    Box::new(Purge { template, calls: faults.calls() })
}

const PURGE: [&str; 5] = ["memory", "forget", WORD, "--yes", "--purge"];

impl Layer for Purge {
    fn space(&self) -> Option<u64> {
        Some(self.calls * 2)
    }

    fn trials(&self, share: Share) -> u64 {
        match share {
            Share::Sample => 4,
            Share::Nightly => u64::MAX,
        }
    }

    /// Kills between the making of the new history and its arrival at the remote, without a wake before the repetition.
    fn first(&self) -> Vec<u64> {
        [63, 66, 69].map(|percent| self.calls * 2 * percent / 100 / 4 * 4 + 2).to_vec()
    }

    fn trial(&self, id: u64) -> Result<Recovery, String> {
        let call = id / 2 + 1;
        let env = self.template.copy();
        let mut faults = Faults::new(env.root(), env.root(), class::MUTATING);
        faults.set_mode(if id.is_multiple_of(2) { Mode::Kill(call) } else { Mode::Tear(call) });
        let mut purge = env.command(env!("CARGO_BIN_EXE_wake"), &PURGE);
        faults.apply(&mut purge);
        purge.output().map_err(|error| error.to_string())?;
        if let Some(pid) = faults.kill_survivors() {
            return Err(format!("process {pid} has outlived it"));
        }
        // In half of the trials, a wake runs before the repetition.
        if id % 4 < 2 {
            let ran = env.wake(&["--once", "--no-console"]);
            if ran.code != 0 {
                return Err(format!("the next wake failed: {ran:#?}"));
            }
        }
        let mut again = env.wake(&PURGE);
        let is_held_up = |ran: &ProgramOutput| {
            ran.notices().contains("File exists") || ran.notices().contains("another git program")
        };
        if is_held_up(&again) {
            // Until it is a second old, the lock of a dead git can't be distinguished from a live one's. The health check then removes it.
            for lock in [env.brain().join(".git"), env.path("remote.git")].iter().flat_map(|dir| locks(dir)) {
                fs::File::options().write(true).open(lock).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
            }
            env.health(&["check", "--offline"]);
            again = env.wake(&PURGE);
        }
        if again.code != 0 {
            return Err(format!("the same command again failed: {again:#?}"));
        }
        is_purged(&env).map_err(|why| format!("{why}: {again:#?}"))?;
        Ok(Recovery(None))
    }
}

/// Checks that the words are gone everywhere, and that everything else is still there.
fn is_purged(env: &TestEnv) -> Result<(), String> {
    let brain = env.brain().display().to_string();
    let remote = env.path("remote.git").display().to_string();
    for dir in [&brain, &remote] {
        for search in [&["-i", "-G", WORD][..], &["-i", "--grep", WORD]] {
            let log = [&["-C", dir, "log", "--all", "--format=%H"], search].concat();
            let found = env.run("git", &log).ok().stdout;
            if !found.is_empty() {
                return Err(format!("{dir} holds the words in {found}"));
            }
        }
    }
    let facts = env.memory(SEMANTIC);
    if !facts.contains("cats purr") || !facts.contains("dogs bark") || facts.contains(WORD) {
        return Err(format!("the facts are {facts}"));
    }
    let commits: String = env.query("SELECT group_concat(commit_id, ' ') FROM cycles WHERE commit_id IS NOT NULL");
    for commit in commits.split(' ') {
        let there = env.run("git", &["-C", &brain, "cat-file", "-e", &format!("{commit}^{{commit}}")]);
        if there.code != 0 {
            return Err(format!("the database names {commit}, which isn't there"));
        }
    }
    let heads = [&brain, &remote].map(|dir| env.run("git", &["-C", dir, "rev-parse", "main"]).ok().stdout);
    if heads[0] != heads[1] {
        return Err(format!("here and the remote differ: {heads:?}"));
    }
    let checked = env.health(&["check", "--json", "--offline"]);
    if checked.code == 0 { Ok(()) } else { Err(format!("not healthy: {checked:#?}")) }
}
