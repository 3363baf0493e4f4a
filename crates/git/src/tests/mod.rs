//! Tests with real git: a person's commands run the `git` program, and remotes are bare repositories by path.

mod first_run;
mod glance;
mod housekeeping;
mod indexes;
mod kills;
mod person;
mod publishing;
mod remotes;
mod secrets;
mod settings;

use std::{fs, path::PathBuf, time::Duration};

use chrono::{DateTime, Utc};

use reveille_base::process::{self, Spec};
use reveille_memory::{
    DocKind,
    merge::{self, ByHand},
};

use super::*;

pub(super) const TEMPLATES: [(&str, &str); 3] = [
    ("claude.md", "# Standing orders\n"),
    ("memory/project-memory/active.md", "# Active\n\n## Water the plants\n- touched: 2026-11-20\n"),
    ("skills/an example/SKILL.md", "---\nname: example\n---\n"),
];
pub(super) const ACTIVE: &str = "memory/project-memory/active.md";
pub(super) const TIMEOUT: Duration = Duration::from_secs(20);

/// A workspace with a place for the repository, a remote, and a person at the keyboard.
pub(super) struct World {
    dir: tempfile::TempDir,
}

impl World {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["home", "workspace"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        Self { dir }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(super) fn brain(&self) -> PathBuf {
        self.path("workspace/brain")
    }

    pub(super) fn file(&self, path: &str) -> PathBuf {
        self.brain().join(path)
    }

    pub(super) fn write(&self, path: &str, text: &str) {
        let file = self.file(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    pub(super) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.file(path)).unwrap()
    }

    /// A repository made from the templates, without a remote.
    pub(super) fn local(&self) -> Repo {
        let (repo, created) = Repo::open_or_create(&self.brain(), None, &TEMPLATES, now()).unwrap();
        assert_eq!(created, Created::FromTemplates);
        self.git(&["config", "user.name", "Ann"]);
        self.git(&["config", "user.email", "ann@example.org"]);
        repo
    }

    /// An empty bare repository.
    pub(super) fn empty_remote(&self) -> String {
        let url = self.path("remote.git").to_str().unwrap().to_owned();
        self.git_in("home", &["init", "--quiet", "--bare", "--initial-branch=main", &url]);
        url
    }

    /// A repository whose templates have been pushed, and a second clone of the remote, `other`, which belongs to another person.
    pub(super) fn shared(&self) -> Repo {
        let url = self.empty_remote();
        let (repo, created) = Repo::open_or_create(&self.brain(), Some(&url), &TEMPLATES, now()).unwrap();
        assert_eq!(created, Created::ClonedEmpty);
        assert_eq!(repo.remote().push(TIMEOUT, &never_secret).unwrap(), Pushed::To(repo.head().unwrap().unwrap()));
        self.git_in("home", &["clone", "--quiet", &url, "../other"]);
        repo
    }

    /// Lets the other person change a file and push.
    pub(super) fn other_pushes(&self, path: &str, content: &[u8]) {
        let file = self.path("other").join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
        self.git_in("other", &["add", "-A"]);
        self.git_in("other", &["commit", "--quiet", "-m", "from elsewhere"]);
        self.git_in("other", &["push", "--quiet", "origin", "HEAD"]);
    }

    /// Runs the person's own git in the repository. Panics if it fails.
    pub(super) fn git(&self, args: &[&str]) -> String {
        self.git_in("workspace/brain", args)
    }

    pub(super) fn git_in(&self, dir: &str, args: &[&str]) -> String {
        self.try_git(dir, args).unwrap_or_else(|error| panic!("git {args:?}: {error}"))
    }

    pub(super) fn try_git(&self, dir: &str, args: &[&str]) -> Result<String, String> {
        let mut spec = Spec::new("git").args(args.iter().copied()).current_dir(self.path(dir)).without_env(&["GIT_"]);
        let home = self.path("home");
        for (name, value) in [
            ("GIT_AUTHOR_NAME", "Ann"),
            ("GIT_AUTHOR_EMAIL", "ann@example.org"),
            ("GIT_COMMITTER_NAME", "Ann"),
            ("GIT_COMMITTER_EMAIL", "ann@example.org"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("LC_ALL", "C"),
            ("HOME", home.to_str().unwrap()),
            ("XDG_CONFIG_HOME", home.to_str().unwrap()),
        ] {
            spec = spec.env(name, value);
        }
        // Generous, for a busy machine.
        let output = process::run(&spec.timeout(6 * TIMEOUT)).unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    /// The paths a commit changed against its first parent.
    pub(super) fn changed_in(&self, commit: &str) -> Vec<String> {
        let names = self.git(&[
            "-c",
            "core.quotePath=false",
            "show",
            "--first-parent",
            "-m",
            "--name-only",
            "--format=",
            commit,
        ]);
        names.lines().map(str::to_owned).collect()
    }

    pub(super) fn status(&self) -> String {
        self.git(&["-c", "core.quotePath=false", "status", "--porcelain"])
    }

    /// Checks the final state: the object store is intact, nothing is locked, and the person's next commit holds only their changes.
    pub(super) fn assert_sound(&self) {
        self.git(&["fsck", "--strict", "--no-dangling"]);
        assert!(!self.file(".git/reveille/move.json").exists(), "a move is still noted");
        self.write("notes/next.txt", "the person's own");
        self.git(&["add", "notes/next.txt"]);
        self.git(&["commit", "--quiet", "-m", "next"]);
        assert_eq!(self.changed_in("HEAD"), ["notes/next.txt"]);
    }
}

pub(super) fn now() -> DateTime<Utc> {
    reveille_base::clock::parse_time("2026-11-21T09:00:00Z").unwrap()
}

/// A merge that shows its inputs.
pub(super) fn both(_path: &str, _base: &str, theirs: &str, ours: &str, _: &ByHand) -> String {
    format!("{theirs}<ours>\n{ours}")
}

/// Reports no secret, for callers that ask for a bool or a list.
pub(super) fn never_secret<T: Default>(_: &str) -> T {
    T::default()
}

pub(super) fn change(path: &str, base: Option<&str>, content: Option<&str>) -> FileChange {
    FileChange { path: path.to_owned(), base: base.map(str::to_owned), content: content.map(str::to_owned) }
}

pub(super) fn wake<'a>(changes: &'a [FileChange]) -> Publish<'a> {
    Publish {
        changes,
        message: "Answered Ann\n\nWake-Id: w-0001\nTrigger: message\n",
        now: now(),
        merge: &both,
        is_secret: &never_secret,
    }
}

/// Merges two versions as the application does.
fn merge_texts(path: &str, base: &str, persons: &str, ours: &str, by_hand: &ByHand) -> String {
    merge::merge_by_hand(DocKind::from_path(path), base, persons, ours, by_hand).text
}
