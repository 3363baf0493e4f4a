//! Who works when several machines share one memory: `LEASE` and what goes with it.

use std::time::Duration;

/// The longest term, in seconds: for so long others wait at most for a machine that is gone.
pub const MAX_TERM_S: u64 = 3_600;
/// The default term, in seconds. A term is renewed three times: a push every 100 seconds while a bot polls.
const DEFAULT_TERM_S: u64 = 300;
/// The default reference. Below it stand `bot` and `wake`.
const DEFAULT_REFERENCE: &str = "refs/reveille/lease";
/// The longest name of a machine, in characters.
pub const MAX_NAME_CHARS: usize = 40;

/// Where it is settled who works (`LEASE`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LeaseHome {
    /// On this machine alone, by a lock on a file.
    #[default]
    Local,
    /// On the memory's remote, among several machines.
    Remote,
}

/// What comes by itself is done by the machine on duty (`LEASE_DUTY`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Duty {
    /// This one, while its bot holds the bot's lease.
    #[default]
    Bot,
    /// This one, whatever happens.
    Always,
    /// Another one.
    Never,
}

/// Who works when several machines share one memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseSettings {
    /// Where that is settled (`LEASE`).
    pub home: LeaseHome,
    /// The reference on the remote (`LEASE_REF`).
    pub reference: String,
    /// What this machine is called; none: its host name (`LEASE_NAME`).
    pub name: Option<String>,
    /// How long a machine holds the lease without renewing it (`LEASE_TERM_S`).
    pub term: Duration,
    /// Whether this machine does what comes by itself (`LEASE_DUTY`).
    pub duty: Duty,
}

impl Default for LeaseSettings {
    fn default() -> Self {
        Self {
            home: LeaseHome::Local,
            reference: DEFAULT_REFERENCE.to_owned(),
            name: None,
            term: Duration::from_secs(DEFAULT_TERM_S),
            duty: Duty::Bot,
        }
    }
}

impl LeaseSettings {
    /// Whether other machines may work with the same memory.
    pub fn is_shared(&self) -> bool {
        self.home == LeaseHome::Remote
    }
}

impl LeaseHome {
    /// As it is set.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Remote => "remote",
        }
    }
}

impl Duty {
    /// As it is set.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bot => "bot",
            Self::Always => "always",
            Self::Never => "never",
        }
    }
}

pub(super) fn home(value: &str) -> Result<LeaseHome, String> {
    let all = [LeaseHome::Local, LeaseHome::Remote];
    let expected = "local (one machine), or remote (several take turns by a reference on REPO_URL)";
    all.into_iter().find(|home| home.as_str() == value).ok_or_else(|| expected.to_owned())
}

pub(super) fn duty(value: &str) -> Result<Duty, String> {
    let all = [Duty::Bot, Duty::Always, Duty::Never];
    all.into_iter().find(|duty| duty.as_str() == value).ok_or_else(|| "bot, always or never".to_owned())
}

/// As git allows them, and a little less.
pub(super) fn reference(value: &str) -> Result<String, String> {
    let is_fine = |part: &str| {
        !part.is_empty()
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
            && !part.starts_with(['.', '-'])
            && !part.ends_with('.')
            && !part.ends_with(".lock")
            && !part.contains("..")
    };
    let mut parts = value.split('/');
    let is_reference = parts.next() == Some("refs") && parts.clone().count() >= 2 && parts.all(is_fine);
    let expected = "a reference such as refs/reveille/lease, refs/heads/lease or refs/tags/lease";
    if is_reference { Ok(value.to_owned()) } else { Err(expected.to_owned()) }
}

pub(super) fn name(value: &str) -> Result<String, String> {
    let is_fine =
        value.chars().count() <= MAX_NAME_CHARS && value.chars().all(|c| c.is_alphanumeric() || "._-".contains(c));
    let expected = || format!("at most {MAX_NAME_CHARS} letters, digits, dots, hyphens and underscores");
    if is_fine { Ok(value.to_owned()) } else { Err(expected()) }
}

pub(super) fn term(value: &str) -> Result<Duration, String> {
    let seconds = value.parse::<u64>().ok().filter(|seconds| (1..=MAX_TERM_S).contains(seconds));
    seconds.map(Duration::from_secs).ok_or_else(|| format!("whole seconds from 1 to {MAX_TERM_S}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_one_that_git_and_hosts_take() {
        for fine in ["refs/reveille/lease", "refs/heads/lease", "refs/tags/my-lease.2", DEFAULT_REFERENCE] {
            assert_eq!(reference(fine).as_deref(), Ok(fine));
        }
        for wrong in ["lease", "refs/lease", "refs//lease", "refs/heads/", "refs/a/../b", "refs/a/b.lock", "refs/a/-b"]
        {
            assert!(reference(wrong).is_err(), "{wrong}");
        }
    }
}
