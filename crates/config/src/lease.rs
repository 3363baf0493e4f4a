//! How several machines with one memory share the work: `LEASE` and related settings.

use std::time::Duration;

/// The maximum term in seconds. If a machine is lost, the others wait this long.
pub const MAX_TERM_S: u64 = 3_600;
/// The maximum length of a machine's name in characters.
pub const MAX_NAME_CHARS: usize = 40;

/// The place of the lease (`LEASE`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LeaseHome {
    /// A lock file on this machine.
    #[default]
    Local,
    /// The memory's remote, among several machines.
    Remote,
}

/// The machine that runs background jobs, such as scheduled tasks and reflection (`LEASE_DUTY`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UnrequestedWork {
    /// This machine, while its bot holds the bot's lease.
    #[default]
    Bot,
    /// Always this machine.
    Always,
    /// Another machine.
    Never,
}

/// How several machines with one memory share the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseSettings {
    /// The place of the lease (`LEASE`).
    pub home: LeaseHome,
    /// The reference on the remote (`LEASE_REF`).
    pub reference: String,
    /// The name of this machine; `None` for its host name (`LEASE_NAME`).
    pub name: Option<String>,
    /// The time for which a machine holds the lease without renewal (`LEASE_TERM_S`). The machine renews it three times per term: by
    /// default, with a push every 100 seconds while a bot polls.
    pub term: Duration,
    /// The machine that runs background jobs (`LEASE_DUTY`).
    pub duty: UnrequestedWork,
}

impl LeaseSettings {
    /// Returns true if other machines may work with the same memory.
    pub fn is_shared(&self) -> bool {
        self.home == LeaseHome::Remote
    }
}

impl LeaseHome {
    /// The value of the setting.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Remote => "remote",
        }
    }
}

impl UnrequestedWork {
    /// The value of the setting.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bot => "bot",
            Self::Always => "always",
            Self::Never => "never",
        }
    }
}

pub(super) fn parse_home(value: &str) -> Result<LeaseHome, String> {
    let all = [LeaseHome::Local, LeaseHome::Remote];
    let expected = "local (one machine) or remote (several machines take turns through a reference at REPO_URL)";
    all.into_iter().find(|home| home.as_str() == value).ok_or_else(|| expected.to_owned())
}

pub(super) fn parse_duty(value: &str) -> Result<UnrequestedWork, String> {
    let all = [UnrequestedWork::Bot, UnrequestedWork::Always, UnrequestedWork::Never];
    all.into_iter().find(|duty| duty.as_str() == value).ok_or_else(|| "bot, always or never".to_owned())
}

/// Parses a git reference, slightly stricter than git itself.
pub(super) fn parse_reference(value: &str) -> Result<String, String> {
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

pub(super) fn parse_name(value: &str) -> Result<String, String> {
    let is_fine =
        value.chars().count() <= MAX_NAME_CHARS && value.chars().all(|c| c.is_alphanumeric() || "._-".contains(c));
    let expected = || format!("at most {MAX_NAME_CHARS} letters, digits, dots, hyphens and underscores");
    if is_fine { Ok(value.to_owned()) } else { Err(expected()) }
}

pub(super) fn parse_term(value: &str) -> Result<Duration, String> {
    let seconds = value.parse::<u64>().ok().filter(|seconds| (1..=MAX_TERM_S).contains(seconds));
    seconds.map(Duration::from_secs).ok_or_else(|| format!("whole seconds from 1 to {MAX_TERM_S}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_references_that_git_and_hosts_accept_are_valid() {
        for fine in ["refs/reveille/lease", "refs/heads/lease", "refs/tags/my-lease.2"] {
            assert_eq!(parse_reference(fine).as_deref(), Ok(fine));
        }
        for wrong in ["lease", "refs/lease", "refs//lease", "refs/heads/", "refs/a/../b", "refs/a/b.lock", "refs/a/-b"]
        {
            assert!(parse_reference(wrong).is_err(), "{wrong}");
        }
    }
}
