//! What single values are once they are read by [`super::values`].

use std::{fmt, path::PathBuf};

use chrono::NaiveTime;

use reveille_base::redact::{self, Secret};

/// What makes vectors of what is searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EmbedModel {
    /// A sentence encoder on this machine, by its folder.
    Folder(PathBuf),
    /// A model of an OpenAI-compatible server.
    OpenAi(String),
    /// A model of Google's.
    Gemini(String),
}

/// How much is done without asking. What is destructive asks at every level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Autonomy {
    /// 0: everything asks but planning, replying to the asking chat, notes and reading memory.
    AskAll,
    /// 1: what is safe is done, what is risky asks.
    Smart,
    /// 2: only what is destructive asks.
    Full,
}

impl Autonomy {
    /// As `AUTONOMY` names it.
    pub fn level(self) -> &'static str {
        match self {
            Self::AskAll => "0",
            Self::Smart => "1",
            Self::Full => "2",
        }
    }

    /// As a person chooses it.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::AskAll => "ask before everything but answering, taking notes and reading its memory",
            Self::Smart => "ask before what is risky",
            Self::Full => "ask only before what can't be undone",
        }
    }
}

/// The hours in which nobody is spoken to unasked, by the person's clock. They may cross midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuietHours {
    /// The first quiet minute.
    pub from: NaiveTime,
    /// The first minute that isn't quiet any more.
    pub until: NaiveTime,
}

impl QuietHours {
    /// Whether a local time of day lies in them.
    pub fn contains(&self, local: NaiveTime) -> bool {
        if self.from < self.until {
            self.from <= local && local < self.until
        } else {
            self.from <= local || local < self.until
        }
    }
}

/// A git remote. It shows itself without its user name and password.
#[derive(Clone, PartialEq, Eq)]
pub struct RepoUrl(String);

impl RepoUrl {
    /// A remote's address, of whatever kind.
    pub fn new(url: impl Into<String>) -> Self {
        Self(url.into())
    }

    /// The remote as git needs it: it may hold a password.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The passwords and tokens in it. The user name of ssh, such as `git`, is none; a long one is, also before a password: forges
    /// take a token there.
    pub fn secrets(&self) -> Vec<Secret> {
        let lone = userinfo(&self.0).filter(|(scheme, user)| scheme.starts_with("http") && !user.contains(':'));
        let lone = lone.map(|(_, token)| token).filter(|token| !token.is_empty()).map(Secret::new);
        let mut secrets = redact::passwords_in(&self.0);
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

/// A URL's scheme and what stands before the `@`.
pub(super) fn userinfo(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    Some((scheme, authority.rsplit_once('@')?.0))
}

/// A URL with `***` in place of its user name and password.
pub(super) fn without_userinfo(url: &str) -> String {
    match userinfo(url) {
        Some((scheme, user)) => url.replacen(&format!("{scheme}://{user}@"), &format!("{scheme}://***@"), 1),
        None => url.to_owned(),
    }
}

/// In which form the log's files are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// A line for people.
    Text,
    /// A JSON object a line.
    Json,
    /// No files: standard error alone, as for a journal that keeps it.
    Off,
}

impl LogFormat {
    /// As it is set.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Off => "off",
        }
    }
}
