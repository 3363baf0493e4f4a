//! Fetch and push, by the `git` command: people's SSH keys and credential helpers only work there. If the remote is a local folder, its new
//! commits are noticed without the command.
//!
//! Each command is bounded in time, asks no questions and runs no hooks, and passwords are removed from its output. A reference of ours
//! remembers the last commit seen at the remote. If the remote's branch is reset to an earlier commit, the program therefore notices it,
//! even if the person's own `git fetch` saw it first.

use std::{path::Path, time::Duration};

use reveille_base::process::{self, Output, ProcessError, Spec};
use reveille_memory::outside::{Origin, Outside};

use super::{Oid, REMOTE, RepoError, SecretsIn, local_remote::LocalRemote, park::RESCUED, unpushed::Exposed};
use crate::areas::Remote;

/// The time limit of a fetch or a push.
pub const REMOTE_TIMEOUT: Duration = Duration::from_secs(20);
/// Git's message about an existing lock file.
pub(super) const LOCK_IN_THE_WAY: &str = ".lock': File exists";
/// Git's note on a reference that stayed because another couldn't be moved.
const ATOMIC: &str = "(atomic ";
/// Prefixes of variables that would lead git to another repository, or make it run or print something.
const NOT_INHERITED: [&str; 21] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_KEY",
    "GIT_CONFIG_VALUE",
    "GIT_CONFIG_PARAMETERS",
    "GIT_QUARANTINE",
    "GIT_SHALLOW",
    "GIT_TRACE",
    "GIT_CURL_VERBOSE",
    "GIT_EXTERNAL_DIFF",
    "GIT_TEMPLATE_DIR",
    "GIT_DEFAULT_HASH",
    "GIT_REDIRECT",
    "SSH_ASKPASS",
];

/// The result of a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    /// The remote had everything already.
    UpToDate,
    /// The remote's branch is now at this commit.
    To(Oid),
}

/// An error of the remote, by the caller's next act. Nothing was changed here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// There is no remote: nothing to do.
    #[error("there is no remote")]
    NoRemote,
    /// The remote can't be reached, or isn't a repository: try again later.
    #[error("the remote can't be reached: {why}")]
    Unreachable {
        /// Git's message, without secrets.
        why: Outside,
    },
    /// The remote took too long: try again later.
    #[error("the remote didn't answer in time")]
    TimedOut,
    /// A message came that shouldn't wait: try again later.
    #[error("it was interrupted for a new message")]
    BrokenOff,
    /// The remote has commits that we lack: fetch, integrate and push again.
    #[error("the remote has newer commits")]
    Moved,
    /// Another program is pushing, or died and left a lock that only its owner may remove.
    #[error("the remote's branch is locked: somebody else is pushing, or a push that died left its lock there")]
    Locked,
    /// The remote's branch was reset to an earlier commit, or has another history: a person must decide.
    #[error("the remote's branch lost commits that it once had; they are kept as {rescue_ref}")]
    Rewound {
        /// The reference that keeps the commits lost at the remote.
        rescue_ref: String,
    },
    /// The remote understood and refused: a person must act.
    #[error("the remote refused: {why}")]
    Refused {
        /// Git's message, without secrets.
        why: Outside,
    },
    /// The remote doesn't accept our credentials: a person must set up access.
    #[error("the remote wants other credentials: {why}")]
    Auth {
        /// Git's message, without secrets.
        why: Outside,
    },
    /// An unpushed commit seems to hold a secret: a person must remove it, or push it by hand.
    #[error("{place} in the commit {commit:.10} seems to hold a secret, and a push can't be undone")]
    HoldsSecret {
        /// The full id of the commit.
        commit: String,
        /// A file's name, or another part of the commit.
        place: String,
    },
    /// Another machine has the lease that the push depends on. Nothing was pushed.
    #[error("another machine has taken over the lease")]
    LeaseLost,
    /// A fault on this side.
    #[error("{why}")]
    Local {
        /// The cause, without secrets.
        why: String,
    },
}

impl From<RepoError> for RemoteError {
    fn from(error: RepoError) -> Self {
        Self::Local { why: error.to_string() }
    }
}

impl From<ProcessError> for RemoteError {
    fn from(error: ProcessError) -> Self {
        match error {
            ProcessError::TimedOut { .. } => Self::TimedOut,
            ProcessError::BrokenOff { .. } => Self::BrokenOff,
            other => Self::Local { why: other.to_string() },
        }
    }
}

/// A move of another reference, atomic with a push; see [`super::LeaseRef`].
#[derive(Debug, Clone)]
pub struct Beside {
    /// The full name of the reference.
    pub(super) reference: String,
    /// The expected old value, in git's syntax.
    pub(super) lease: String,
    pub(super) refspec: String,
    /// The location of the new value.
    pub(super) env: Vec<(&'static str, String)>,
}

/// The time to wait for a remote.
#[derive(Clone, Copy)]
pub struct Patience<'a> {
    /// The time limit.
    pub timeout: Duration,
    /// Ends the wait as soon as it returns `true`; called several times a second.
    pub is_over: &'a dyn Fn() -> bool,
    /// Work done while the remote is busy; repeated if the command is.
    pub meanwhile: &'a dyn Fn(),
}

impl From<Duration> for Patience<'_> {
    fn from(timeout: Duration) -> Self {
        Self { timeout, is_over: &|| false, meanwhile: &|| () }
    }
}

impl Patience<'_> {
    pub(super) fn run(&self, spec: Spec) -> Result<Output, ProcessError> {
        process::run_alongside(&spec.timeout(self.timeout), self.is_over, self.meanwhile)
    }
}

impl Remote<'_> {
    /// Fetches our branch from the remote. A missing branch is no error; nothing of ours moves.
    pub fn fetch<'a>(&self, patience: impl Into<Patience<'a>>) -> Result<(), RemoteError> {
        let patience = patience.into();
        if !self.0.has_remote() {
            return Err(RemoteError::NoRemote);
        }
        if self.is_unjoined() {
            self.take_branch_of_remote(patience)?;
        }
        if self.has_nothing_new(patience)? {
            (patience.meanwhile)();
            return Ok(());
        }
        let refspec = format!("+{}:{}", self.0.branch_ref(), self.0.tracking_ref());
        let fetch = ["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", REMOTE];
        let fetch = self.git_command().args(fetch).args([refspec]);
        // A killed push or fetch leaves its lock on the tracking reference. The lock is waited for and removed, since a push may depend on
        // it.
        let output = self.0.retry_attempt(|| match patience.run(fetch.clone()) {
            Ok(output) if !output.status.success() && stderr_text(&output).contains(LOCK_IN_THE_WAY) => {
                Err(RepoError::Locked { path: self.0.git.commondir().join(format!("{}.lock", self.0.tracking_ref())) })
            }
            ran => Ok(ran),
        })??;
        if output.status.success() {
            return Ok(());
        }
        if stderr_text(&output).contains("couldn't find remote ref") {
            if self.is_missing_branch_doubtful(patience)? {
                let why = redact_message("something else seems to answer in its place, such as a captive portal");
                return Err(RemoteError::Unreachable { why });
            }
            return Ok(self.0.retry_attempt(|| self.record_missing_branch())?);
        }
        Err(classify_failure(&output))
    }

    /// Returns `true` if our branch is where it was last seen, at a remote that is a readable folder: a fetch would bring nothing.
    fn has_nothing_new(&self, patience: Patience<'_>) -> Result<bool, RemoteError> {
        let Some(there) = LocalRemote::for_repository(&self.0.git) else { return Ok(false) };
        let theirs = there.read_reference_id(&self.0.branch_ref(), patience)?.flatten();
        Ok(theirs.is_some() && theirs == self.0.find_reference_id(&self.0.tracking_ref())?)
    }

    /// Pushes our branch without force: a remote with other commits makes it [`RemoteError::Moved`]. So does a remote whose branch isn't
    /// where it was last seen: if it was reset meanwhile, our commits on top would restore the removed ones. Commits that would publish a
    /// secret aren't sent.
    pub fn push<'a>(
        &self,
        patience: impl Into<Patience<'a>>,
        secrets_in: &SecretsIn<'_>,
    ) -> Result<Pushed, RemoteError> {
        self.push_with_reference(patience, secrets_in, None)
    }

    /// Pushes together with the move of another reference: both happen or neither.
    pub fn push_with_reference<'a>(
        &self,
        patience: impl Into<Patience<'a>>,
        secrets_in: &SecretsIn<'_>,
        beside: Option<&Beside>,
    ) -> Result<Pushed, RemoteError> {
        let patience = patience.into();
        if !self.0.has_remote() {
            return Err(RemoteError::NoRemote);
        }
        if self.0.purge().old_line()?.is_some() {
            return Err(RemoteError::Moved);
        }
        if let Some(rescue_ref) = self.0.retry_attempt(|| self.find_lost_reference())? {
            return Err(RemoteError::Rewound { rescue_ref });
        }
        let Some(tip) = self.0.head()? else {
            return Ok(Pushed::UpToDate);
        };
        let seen = self.0.find_reference_id(&self.0.tracking_ref())?;
        match seen {
            Some(seen) if seen == tip => return Ok(Pushed::UpToDate),
            // The lease below would allow overwriting the remote's branch.
            Some(seen) if !self.0.contains(tip, seen)? => return Err(RemoteError::Moved),
            _ => {}
        }
        // fault: pushed-isnt-looked-through
        if let Some(Exposed { commit, place }) = self.would_expose(seen, tip, secrets_in)? {
            return Err(RemoteError::HoldsSecret { commit, place });
        }
        // By id instead of by name: commits made during the push aren't claimed to be at the remote.
        let refspec = format!("{tip}:{}", self.0.branch_ref());
        // Our branch contains everything seen. If the remote's branch is still there, or still missing, nothing can be lost.
        let seen = seen.map_or_else(String::new, |seen| seen.to_string());
        let lease = format!("--force-with-lease={}:{seen}", self.0.branch_ref());
        let push = ["push", "--porcelain", "--no-verify", "--no-signed", "--recurse-submodules=no"];
        let push = self.git_command().args(push).args([lease.as_str()]);
        let push = match beside {
            None => push.args([REMOTE, &refspec]),
            Some(beside) => {
                let push = push.args(["--atomic", &beside.lease, REMOTE, &refspec, &beside.refspec]);
                beside.env.iter().fold(push, |push, (name, value)| push.env(name, value))
            }
        };
        let is_locked = |output: &Output| !output.status.success() && stderr_text(output).contains(LOCK_IN_THE_WAY);
        let mut output = patience.run(push.clone())?;
        if is_locked(&output) && self.0.housekeeping().await_remote() {
            output = patience.run(push.clone())?;
        }
        if is_locked(&output) {
            return Err(RemoteError::Locked);
        }
        if !output.status.success() {
            let error = push_failure(&output);
            let is_lost = beside.is_some_and(|beside| is_push_refused(&output, &beside.reference));
            return Err(if is_lost && error == RemoteError::Moved { RemoteError::LeaseLost } else { error });
        }
        self.0.retry_attempt(|| self.record_remote_commit(tip))?;
        Ok(Pushed::To(tip))
    }

    /// Returns `true` if another server may have given the answer that the remote's branch is missing. Over HTTP git takes any page with
    /// status 200 for an empty list of branches. A second query has to show a list, without our branch.
    fn is_missing_branch_doubtful(&self, patience: Patience<'_>) -> Result<bool, RemoteError> {
        let is_http = self.0.git.find_remote(REMOTE).is_ok_and(|origin| origin.url_bytes().starts_with(b"http"));
        if !is_http || self.0.find_reference_id(&self.accepted_ref())?.is_none() {
            return Ok(false);
        }
        let listed = patience.run(self.git_command().args(["ls-remote", "--quiet", REMOTE]))?;
        if !listed.status.success() {
            return Err(classify_failure(&listed));
        }
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        Ok(listed.trim().is_empty() || listed.lines().any(|line| line.ends_with(&format!("\t{}", self.0.branch_ref()))))
    }

    /// Notes that the remote lacks our branch; a reference of ours still remembers its last commit.
    fn record_missing_branch(&self) -> Result<(), RepoError> {
        match self.0.git.find_reference(&self.0.tracking_ref()) {
            Ok(mut tracking) => {
                tracking.delete().map_err(|error| self.explain_locked_ref(&self.0.tracking_ref(), error))
            }
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Remembers the position of the remote's branch.
    pub(super) fn record_remote_commit(&self, commit: Oid) -> Result<(), RepoError> {
        for reference in [self.0.tracking_ref(), self.accepted_ref()] {
            if self.0.find_reference_id(&reference)? != Some(commit) {
                self.set_reference(&reference, commit, "seen at the remote")?;
            }
        }
        Ok(())
    }

    /// Returns the reference to the commits that a remote lost when its branch was reset; `None` otherwise, or if a person has agreed since
    /// by resetting our branch or merging the two.
    pub(super) fn find_lost_reference(&self) -> Result<Option<String>, RepoError> {
        let Some(seen) = self.0.find_reference_id(&self.accepted_ref())?.filter(|_| self.0.has_remote()) else {
            return Ok(None);
        };
        // `None` if the branch is gone at the remote, or the remote was made anew.
        let theirs = self.0.find_reference_id(&self.0.tracking_ref())?;
        let has = |commit: Option<Oid>, earlier| commit.map_or(Ok(false), |commit| self.0.contains(commit, earlier));
        if has(theirs, seen)? {
            return Ok(None);
        }
        let ours = self.0.head()?;
        let has_merged = match theirs {
            Some(theirs) => has(ours, theirs)? && !self.0.contains(seen, theirs)?,
            None => false,
        };
        if has_merged || !has(ours, seen)? {
            return Ok(None);
        }
        let rescue = format!("{RESCUED}{seen}");
        if self.0.find_reference_id(&rescue)?.is_none() {
            self.create_reference(&rescue, seen, "the remote went back")?;
        }
        Ok(Some(rescue))
    }

    /// Sets a reference, new or not. The lock of a killed run on it is [`RepoError::Locked`], which is waited for and removed.
    pub(super) fn set_reference(&self, name: &str, commit: Oid, why: &str) -> Result<(), RepoError> {
        let set = self.0.git.reference(name, commit, true, why);
        set.map(drop).map_err(|error| self.explain_locked_ref(name, error))
    }

    /// Creates a reference that must not exist yet. Reports a lock as [`Self::set_reference`] does.
    pub(super) fn create_reference(&self, name: &str, commit: Oid, why: &str) -> Result<(), RepoError> {
        let created = self.0.git.reference(name, commit, false, why);
        created.map(drop).map_err(|error| self.explain_locked_ref(name, error))
    }

    pub(super) fn explain_locked_ref(&self, name: &str, error: git2::Error) -> RepoError {
        match error.code() {
            git2::ErrorCode::Locked => RepoError::Locked { path: self.0.git.commondir().join(format!("{name}.lock")) },
            _ => error.into(),
        }
    }

    /// Returns [`build_git_command`] for the memory, with the settings already open.
    pub(super) fn git_command(&self) -> Spec {
        build_command_with_settings(&self.0.root, self.0.git.config())
    }

    /// Returns the reference to the last commit that our branch and the remote shared.
    pub(super) fn accepted_ref(&self) -> String {
        format!("refs/reveille/remote/{}", self.0.branch)
    }
}

/// Builds a git command for a directory: no questions, no hooks or other programs of the repository, nothing in the background, and English
/// output.
pub(super) fn build_git_command(dir: &Path) -> Spec {
    let settings = git2::Repository::open(dir).and_then(|git| git.config()).or_else(|_| git2::Config::open_default());
    build_command_with_settings(dir, settings)
}

fn build_command_with_settings(dir: &Path, settings: Result<git2::Config, git2::Error>) -> Spec {
    const SETTINGS: [&str; 8] = [
        "core.fsmonitor=false",
        // fault: repositorys-programs-run
        "core.hooksPath=/dev/null",
        // fault: git-command-doesnt-sync
        "core.fsync=all",
        "gc.auto=0",
        "maintenance.auto=false",
        "http.lowSpeedLimit=1",
        "http.lowSpeedTime=15",
        "init.defaultBranch=main",
    ];
    let spec = Spec::new("git").current_dir(dir).without_env(&NOT_INHERITED).max_output_bytes(64 << 10).asked_first();
    let spec = spec.args(SETTINGS.iter().flat_map(|setting| ["-c", setting]));
    let spec = if has_own_ssh(settings) {
        spec
    } else {
        spec.args(["-c", "core.sshCommand=ssh -o BatchMode=yes -o ConnectTimeout=15"])
    };
    // Git has to write a format that libgit2 can read.
    spec.env("GIT_DEFAULT_REF_FORMAT", "files").env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C")
}

/// Builds the command that prints the author of new commits in a directory. Git doesn't guess, and fails if neither settings nor
/// environment name an author.
pub(super) fn build_author_command(dir: &Path) -> Spec {
    let spec = Spec::new("git").current_dir(dir).without_env(&NOT_INHERITED).env("LC_ALL", "C");
    spec.args(["-c", "user.useConfigOnly=true", "var", "GIT_AUTHOR_IDENT"])
}

/// Returns `true` if the person configured the ssh command, which then stays as it is; the time-out bounds it.
fn has_own_ssh(settings: Result<git2::Config, git2::Error>) -> bool {
    process::is_inherited_variable("GIT_SSH_COMMAND")
        || process::is_inherited_variable("GIT_SSH")
        || settings.is_ok_and(|settings| settings.get_string("core.sshCommand").is_ok())
}

fn stderr_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns `true` if a push failed for this reference, by its line of `--porcelain`. Lines with "atomic" blame another reference.
fn is_push_refused(output: &Output, reference: &str) -> bool {
    let (stdout, its) = (String::from_utf8_lossy(&output.stdout), format!(":{reference}\t"));
    stdout.lines().any(|line| line.starts_with("!\t") && line.contains(&its) && !line.contains(ATOMIC))
}

/// Reads a failed push: the `--porcelain` line of the refused reference, else git's message.
pub(super) fn push_failure(output: &Output) -> RemoteError {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let mut refused = stdout.lines().filter(|line| line.starts_with("!\t"));
    let Some(line) = refused.clone().find(|line| !line.contains(ATOMIC)).or_else(|| refused.next()) else {
        return classify_failure(output);
    };
    let summary = line.rsplit('\t').next().unwrap_or_default();
    // `[rejected]` also stands for a lease with "stale info". Of two pushes at once, the later finds the reference locked or moved.
    let moved = ["fetch first", "non-fast-forward", "cannot lock ref", "failed to update ref", "incorrect old value"];
    if summary.starts_with("[rejected]") || moved.iter().any(|sign| summary.contains(sign)) {
        return RemoteError::Moved;
    }
    let words = stderr_text(output);
    let messages: Vec<&str> = words.lines().filter_map(|line| line.strip_prefix("remote:")).map(str::trim).collect();
    RemoteError::Refused { why: redact_message(&format!("{summary} {}", messages.join(" "))) }
}

/// Classifies a failed command by git's message.
pub(super) fn classify_failure(output: &Output) -> RemoteError {
    const AUTH: [&str; 10] = [
        "Authentication failed",
        "could not read Username",
        "could not read Password",
        "terminal prompts disabled",
        "Permission denied (",
        "Host key verification failed",
        "Invalid username or",
        "returned error: 401",
        "returned error: 403",
        "Too many authentication failures",
    ];
    const REFUSED: [&str; 4] =
        ["dubious ownership", "unpacker error", "[remote rejected]", "does not support --atomic"];
    let words = stderr_text(output);
    let has = |signs: &[&str]| signs.iter().any(|sign| words.contains(sign));
    let telling: Vec<&str> = words
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("hint:") && !line.starts_with("warning:"))
        .collect();
    let why = if telling.is_empty() {
        redact_message(&process::describe_exit(output.status))
    } else {
        redact_message(&telling.join(" "))
    };
    if has(&AUTH) {
        RemoteError::Auth { why }
    } else if has(&REFUSED) {
        RemoteError::Refused { why }
    } else {
        RemoteError::Unreachable { why }
    }
}

/// Wraps git's message without credentials: it quotes the remote's address.
fn redact_message(words: &str) -> Outside {
    Outside::new(Origin::Remote, &redact_urls(words.trim()))
}

/// Turns `https://user:password@host` into `https://***@host`, anywhere in a text.
pub(super) fn redact_urls(text: &str) -> String {
    let mut redacted = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        redacted.push_str(before);
        redacted.push_str("://");
        let authority = after.find(|c: char| c == '/' || c.is_whitespace() || "'\"".contains(c));
        let (authority, tail) = after.split_at(authority.unwrap_or(after.len()));
        match authority.rsplit_once('@') {
            Some((_, host)) => {
                redacted.push_str("***@");
                redacted.push_str(host);
            }
            None => redacted.push_str(authority),
        }
        rest = tail;
    }
    redacted.push_str(rest);
    redacted
}
