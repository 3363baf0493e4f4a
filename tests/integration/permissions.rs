//! Files that a wake may not read or write: each costs itself alone, is told of, and is taken up again when it is put right.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use super::support::env::{ProgramOutput, TestEnv};

const CONTEXT: &str = "memory/project-memory/context.md";
const EPISODIC: &str = "memory/agent-memory/episodic-memory.md";
const SEMANTIC: &str = "memory/agent-memory/semantic-memory.md";
const ODD: &str = "memory/an odd [1]* #nam\\e!.md";
const FOLDER: &str = "memory/agent-memory";

/// Permissions don't hold root back: then the programs are run by somebody else, to whom everything belongs.
struct Unprivileged(TestEnv);

impl Unprivileged {
    const NOBODY: &str = "65534";

    fn new() -> Self {
        let env = TestEnv::new();
        for program in [env!("CARGO_BIN_EXE_wake"), env!("CARGO_BIN_EXE_health")] {
            fs::copy(program, env.path("").join(Path::new(program).file_name().unwrap())).unwrap();
        }
        fs::write(env.path("home/.gitconfig"), "[safe]\n\tdirectory = *\n").unwrap();
        let this = Self(env);
        this.say("remember that tea is at five");
        this
    }

    fn run(&self, program: &str, args: &[&str]) -> ProgramOutput {
        let env = &self.0;
        let program = env.path(program).display().to_string();
        if !rustix::process::geteuid().is_root() {
            return env.run(&program, args);
        }
        let all = env.root().display().to_string();
        env.run("chown", &["-R", &format!("{}:{}", Self::NOBODY, Self::NOBODY), &all]).ok();
        let [user, group] = ["reuid", "regid"].map(|id| format!("--{id}={}", Self::NOBODY));
        env.run("setpriv", &[&[user.as_str(), &group, "--clear-groups", "--", &program], args].concat())
    }

    #[track_caller]
    fn say(&self, text: &str) -> ProgramOutput {
        self.run("wake", &["--once", "--say", text]).ok()
    }

    /// Says three things, each of which must be answered; gives all that was said.
    #[track_caller]
    fn converse(&self) -> Vec<ProgramOutput> {
        let said = ["Anna has a dog", "the wifi code is 1234"].map(|fact| {
            let ran = self.say(&format!("remember that {fact}"));
            assert!(ran.stdout.contains(&format!("Remembered: {fact}")), "{ran:#?}");
            ran
        });
        let listed = self.say("list reminders");
        assert!(listed.stdout.contains("Reminders:"), "{listed:#?}");
        assert_eq!(self.0.count_queued(), 0);
        said.into_iter().chain([listed]).collect()
    }

    /// What was said in the conversation and couldn't be written is on branches of its own.
    #[track_caller]
    fn check_kept(&self) {
        let kept = self.0.git(&["log", "-p", "--glob=refs/heads/unwritten/*", "--not", "main"]);
        assert!(kept.contains("Anna has a dog") && kept.contains("the wifi code is 1234"), "{kept}");
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.brain().join(path)
    }

    fn allow(&self, path: &str, mode: u32) {
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(mode)).unwrap();
    }

    #[track_caller]
    fn told(&self, what: &str) -> usize {
        self.0.outbox_with(what).len()
    }
}

/// What an editor that root runs leaves beside a file, a note of root's, and a file of the memory's own.
#[test]
fn files_that_may_not_be_read_are_left_alone_and_cost_no_answer() {
    let unprivileged = Unprivileged::new();
    let env = &unprivileged.0;
    env.write_memory(ODD, "# Odd\n");
    unprivileged.say("remember that Bob has a cat");
    let swapped = env.memory(CONTEXT).replace('a', "b");
    let written = [
        ("memory/.context.md.swp", "swap"),
        ("memory/roots.md", "# Root's\n"),
        (CONTEXT, swapped.as_str()),
        (ODD, "# Even"),
    ];
    for (path, text) in written {
        env.write_memory(path, text);
        unprivileged.allow(path, 0o000);
    }
    unprivileged.converse();
    let log = env.memory(EPISODIC);
    for (path, _) in written {
        assert!(log.contains(&format!("Left alone, not committed: {path} (can't be read)")), "{log}");
    }
    let checked = unprivileged.run("health", &["check"]);
    assert!(checked.stdout.contains("memory/roots.md (can't be read)"), "{checked:#?}");

    for path in ["memory/roots.md", CONTEXT, ODD] {
        unprivileged.allow(path, 0o644);
    }
    unprivileged.say("remember that Bob has a dog");
    let theirs = env.git(&["log", "-1", "--format=%s%n%b", "--author=Owner"]);
    assert!(theirs.contains("memory/roots.md") && theirs.contains(CONTEXT), "{theirs}");
}

/// What is in it isn't there to be seen, which is no deletion.
#[test]
fn a_folder_that_may_not_be_looked_into_keeps_its_files_and_costs_no_answer() {
    let unprivileged = Unprivileged::new();
    let env = &unprivileged.0;
    let before = env.git(&["ls-tree", "-r", "HEAD", "memory"]);
    unprivileged.allow("memory/project-memory", 0o000);
    unprivileged.converse();
    unprivileged.allow("memory/project-memory", 0o755);
    for line in before.lines().filter(|line| line.contains("project-memory")) {
        assert!(env.git(&["ls-tree", "-r", "HEAD", "memory"]).contains(line), "{line} is gone");
    }
    assert_eq!(env.git(&["status", "--short"]), "");
}

#[test]
fn a_file_of_the_memorys_own_that_may_not_be_read_is_neither_replaced_nor_committed() {
    let unprivileged = Unprivileged::new();
    let env = &unprivileged.0;
    let before = env.memory(SEMANTIC);
    unprivileged.allow(SEMANTIC, 0o000);
    unprivileged.converse();
    assert_eq!(unprivileged.told("I couldn't write to my memory"), 1);
    unprivileged.allow(SEMANTIC, 0o644);
    assert_eq!(env.memory(SEMANTIC), before);
    unprivileged.say("remember that Bob has a cat");
    assert!(env.memory(SEMANTIC).contains("Bob has a cat"));
    assert_eq!(env.git(&["status", "--short"]), "");
}

#[test]
fn a_folder_that_may_not_be_written_keeps_its_files_and_costs_no_answer() {
    let unprivileged = Unprivileged::new();
    let env = &unprivileged.0;
    let before = env.memory(SEMANTIC);
    unprivileged.allow(FOLDER, 0o555);
    unprivileged.converse();
    assert_eq!(env.memory(SEMANTIC), before);
    assert_eq!(env.git(&["status", "--short"]), "", "nothing is committed that the file hasn't");
    let mut told = env.outbox_with("I couldn't write to my memory: writing");
    told.retain(|text| text.contains("semantic-memory.md"));
    assert_eq!(told.len(), 1, "{told:?}");
    unprivileged.check_kept();
    // Another folder is written as ever.
    let added = unprivileged.say("add task buy milk");
    assert!(env.memory("memory/project-memory/active.md").contains("## buy milk"), "{added:#?}");

    unprivileged.allow(FOLDER, 0o755);
    unprivileged.say("remember that Bob has a cat");
    assert!(env.memory(SEMANTIC).contains("Bob has a cat"));
    assert_eq!(env.git(&["status", "--short"]), "");
}

#[test]
fn what_the_remote_has_for_such_a_folder_stays_out_and_costs_no_answer() {
    let unprivileged = Unprivileged::new();
    let env = &unprivileged.0;
    let remote = env.bare_remote("remote.git");
    let elsewhere = env.path("elsewhere");
    env.git(&["remote", "add", "origin", &remote.display().to_string()]);
    env.git(&["push", "-q", "origin", "main"]);
    env.git_in(env.root(), &["clone", "-q", &remote.display().to_string(), &elsewhere.display().to_string()]);
    let theirs = format!("{}- likes tea\n", env.memory(SEMANTIC));
    fs::write(elsewhere.join(SEMANTIC), &theirs).unwrap();
    env.git_in(&elsewhere, &["commit", "-qam", "From elsewhere"]);
    env.git_in(&elsewhere, &["push", "-q", "origin", "main"]);

    unprivileged.allow(FOLDER, 0o555);
    unprivileged.converse();
    assert_eq!(unprivileged.told("semantic-memory.md is in the way: it can't be written here"), 1);
    assert_eq!(env.git(&["rev-list", "--count", "--author=Ann", "main"]), "0", "nothing of theirs is taken back");

    unprivileged.allow(FOLDER, 0o755);
    env.bring_upkeep_forward();
    unprivileged.say("remember that Bob has a cat");
    let facts = env.memory(SEMANTIC);
    assert!(facts.contains("likes tea") && facts.contains("Bob has a cat"), "{facts}");
}

/// It became so between a kill in the moment of a commit and the next wake: that commit has no file yet.
#[test]
fn a_commit_that_cannot_be_finished_parks_what_follows_and_costs_no_answer() {
    let unprivileged = Unprivileged::new();
    let env = &unprivileged.0;
    let head = env.git(&["rev-parse", "HEAD"]);
    let item = |commit: &str| {
        let id = env.git(&["rev-parse", &format!("{commit}:{SEMANTIC}")]);
        serde_json::json!({"id": id, "mode": 0o100_644})
    };
    let note = serde_json::json!({
        "from": env.git(&["rev-parse", "HEAD~1"]),
        "to": head,
        "why": "commit",
        "files": [{"path": SEMANTIC, "before": item("HEAD~1"), "after": item("HEAD"), "unstage": false}],
    });
    fs::write(env.brain().join(".git/reveille/move.json"), note.to_string()).unwrap();
    let finished = env.memory(SEMANTIC);
    env.write_memory(SEMANTIC, &(env.git(&["show", &format!("HEAD~1:{SEMANTIC}")]) + "\n"));
    unprivileged.allow(FOLDER, 0o555);

    unprivileged.converse();
    assert_eq!(env.git(&["rev-parse", "main"]), head, "its old file doesn't pass for a person's");
    let checked = unprivileged.run("health", &["check"]);
    assert!(checked.stdout.contains("not all of its files can be written here"), "{checked:#?}");
    assert_eq!(unprivileged.told("I can't write to a file of my memory"), 1);

    unprivileged.allow(FOLDER, 0o755);
    unprivileged.say("remember that Bob has a cat");
    let facts = env.memory(SEMANTIC);
    for line in finished.lines().chain(["- Bob has a cat"]) {
        assert!(facts.contains(line), "{line:?} is missing in {facts}");
    }
    unprivileged.check_kept();
    assert_eq!(env.git(&["status", "--short"]), "");
    assert_eq!(env.git(&["for-each-ref", "refs/heads/parked"]), "");
}
