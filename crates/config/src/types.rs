//! The types of single values, parsed by [`super::values`].

use std::{fmt, path::PathBuf};

use chrono::NaiveTime;

use reveille_base::redact::{self, Secret};

/// The model that embeds searched texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EmbedModel {
    /// The folder of a sentence encoder on this machine.
    Folder(PathBuf),
    /// A model of an OpenAI-compatible server.
    OpenAi(String),
    /// A model of Google's Gemini API.
    Gemini(String),
}

/// The level of autonomy. Every level asks before destructive acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Autonomy {
    /// 0: asks before everything except planning, replying to the asking chat, notes and reading memory.
    AskAll,
    /// 1: asks before risky acts.
    Smart,
    /// 2: asks only before destructive acts.
    Full,
}

impl Autonomy {
    /// The value of `AUTONOMY`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AskAll => "0",
            Self::Smart => "1",
            Self::Full => "2",
        }
    }

    /// Describes the level in a list of choices.
    pub fn describe(self) -> &'static str {
        match self {
            Self::AskAll => "ask before everything but answering, taking notes and reading its memory",
            Self::Smart => "ask before what is risky",
            Self::Full => "ask only before what can't be undone",
        }
    }
}

/// The hours without unasked messages, by the person's clock. They may cross midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuietHours {
    /// The first quiet minute.
    pub from: NaiveTime,
    /// The first minute after the quiet hours.
    pub until: NaiveTime,
}

impl QuietHours {
    /// Returns true if a local time of day is quiet.
    pub fn contains(&self, local: NaiveTime) -> bool {
        if self.from < self.until {
            self.from <= local && local < self.until
        } else {
            self.from <= local || local < self.until
        }
    }
}

/// A git remote, displayed without user name and password.
#[derive(Clone, PartialEq, Eq)]
pub struct RepoUrl(String);

impl RepoUrl {
    /// Wraps a remote's address of any kind.
    pub fn new(url: impl Into<String>) -> Self {
        Self(url.into())
    }

    /// The full address for git, which may include a password.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The passwords and tokens in the address. An SSH user name such as `git` doesn't count. A long user name does, even before a
    /// password, because forges accept tokens there.
    pub fn secrets(&self) -> Vec<Secret> {
        let lone = split_userinfo(&self.0).filter(|(scheme, user)| scheme.starts_with("http") && !user.contains(':'));
        let lone = lone.map(|(_, token)| token).filter(|token| !token.is_empty()).map(Secret::new);
        let mut secrets = redact::find_passwords(&self.0);
        secrets.extend(lone.filter(|lone| !secrets.contains(lone)));
        secrets
    }
}

impl fmt::Display for RepoUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_userinfo(&self.0))
    }
}

impl fmt::Debug for RepoUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

/// Splits a URL into its scheme and the part before the `@`.
pub(super) fn split_userinfo(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    Some((scheme, authority.rsplit_once('@')?.0))
}

/// Replaces user name and password of a URL by `***`.
pub(super) fn without_userinfo(url: &str) -> String {
    match split_userinfo(url) {
        Some((scheme, user)) => url.replacen(&format!("{scheme}://{user}@"), &format!("{scheme}://***@"), 1),
        None => url.to_owned(),
    }
}

/// The format of log files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object per line.
    Json,
    /// No files: standard error alone, for a service journal.
    Off,
}

impl LogFormat {
    /// The value of the setting.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Off => "off",
        }
    }
}
