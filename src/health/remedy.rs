//! What `health check --fix` can do about a finding, besides what each check repairs by itself. What is safe is done at once; for
//! the rest a person is asked. Doing it is the program's affair (`cli/health_fix`).

use std::path::{Path, PathBuf};

use reveille_base::words::in_shell;

/// What tidies a repository up. Without it all is slower, and nothing is broken.
pub const TIDY_UP: &str = "git gc";

/// One thing that mends a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// Other users can read what is a person's own.
    CloseToOthers {
        /// The file or folder.
        path: PathBuf,
        /// The mode that it should have.
        mode: u32,
    },
    /// The index of the memory doesn't find what it holds. It is derived.
    RebuildIndex,
    /// A webhook takes the bot's messages away. Somebody may have set it on purpose.
    RemoveWebhook {
        /// Where it leads.
        host: String,
    },
    /// Nothing starts wakes, or what does is out of order.
    WakeByItself,
    /// A message was given up after too many tries.
    RetryMessage {
        /// Its number in the queue.
        id: i64,
    },
    /// Texts of the memory couldn't be embedded.
    Embed,
    /// A file of git's is broken, or git is slowed down: a command of the shell's mends it without losing what was committed.
    InMemory {
        /// The memory's folder.
        place: PathBuf,
        /// The command, which is run there.
        command: String,
    },
    /// Work waits that a wake does. It may ask a model, which costs.
    Wake,
}

impl Remedy {
    /// Whether it may be done without asking: it takes nothing away that anybody could want.
    pub fn is_safe(&self) -> bool {
        matches!(self, Self::CloseToOthers { .. } | Self::RebuildIndex)
    }

    /// A command that is run in the memory's folder.
    pub(super) fn in_memory(place: impl AsRef<Path>, command: impl Into<String>) -> Self {
        Self::InMemory { place: place.as_ref().to_owned(), command: command.into() }
    }

    /// The question for what isn't safe, and the word for what is.
    pub fn what(&self) -> String {
        match self {
            Self::CloseToOthers { path, .. } => format!("Close {} to other users", path.display()),
            Self::RebuildIndex => "Build the memory's index anew".to_owned(),
            Self::RemoveWebhook { host } => format!("Remove the webhook at {host}, so that the bot gets its messages"),
            Self::WakeByItself => "Install it, to be woken every five minutes".to_owned(),
            Self::RetryMessage { id } => format!("Try message {id} again at the next wake"),
            Self::Embed => "Embed now what isn't embedded yet".to_owned(),
            Self::InMemory { place, command } => format!("Run `{command}` in {}", place.display()),
            Self::Wake => "Run a wake now, to do what waits".to_owned(),
        }
    }

    /// The command that does the same.
    pub fn command(&self) -> String {
        match self {
            Self::CloseToOthers { path, mode } => format!("chmod {mode:o} {}", in_shell(path)),
            Self::RebuildIndex => "wake memory reindex".to_owned(),
            Self::RemoveWebhook { .. } => "bot webhook delete".to_owned(),
            Self::WakeByItself => "wake install".to_owned(),
            Self::RetryMessage { id } => format!("wake queue retry {id}"),
            Self::Embed => "wake memory reindex --embed".to_owned(),
            Self::InMemory { place, command } => format!("cd {} && {command}", in_shell(place)),
            Self::Wake => "wake --once".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_could_miss_is_done_unasked() {
        assert!(Remedy::RebuildIndex.is_safe() && !Remedy::WakeByItself.is_safe());
        assert!(!Remedy::RemoveWebhook { host: "example.org".to_owned() }.is_safe());
        let close = Remedy::CloseToOthers { path: "/my w/.env".into(), mode: 0o600 };
        assert!(close.is_safe());
        assert_eq!(close.command(), "chmod 600 '/my w/.env'");
    }
}
