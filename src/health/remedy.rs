//! Actions of `health check --fix` besides the built-in repairs. Safe ones run at once; a person is asked for the
//! others. The program carries them out (`cli/health_fix`).

use std::path::{Path, PathBuf};

use reveille_base::words::quote_for_shell;

/// The command that tidies a repository. Without it git is slower, but works.
pub const TIDY_UP: &str = "git gc";

/// An action that resolves a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// Close a person's private file or folder to other users.
    CloseToOthers {
        /// The file or folder.
        path: PathBuf,
        /// The intended mode.
        mode: u32,
    },
    /// Rebuild the memory's index, which doesn't find its own contents. It is derived data.
    RebuildIndex,
    /// Remove a webhook that takes the bot's messages, and that someone may have set on purpose.
    RemoveWebhook {
        /// The webhook's host.
        host: String,
    },
    /// Install a starter, since wakes aren't started or the starter is broken.
    WakeByItself,
    /// Retry a message that was given up after too many tries.
    RetryMessage {
        /// Its number in the queue.
        id: i64,
    },
    /// Embed texts of the memory that couldn't be embedded before.
    Embed,
    /// Run a shell command in the memory's folder that repairs or tidies git without losing commits.
    InMemory {
        /// The memory's folder.
        place: PathBuf,
        /// The command.
        command: String,
    },
    /// Run a wake for waiting work. It may ask a model, which costs money.
    Wake,
}

impl Remedy {
    /// Returns `true` if it may run without asking, because it removes nothing of value.
    pub fn is_safe(&self) -> bool {
        matches!(self, Self::CloseToOthers { .. } | Self::RebuildIndex)
    }

    /// Creates a remedy that runs a command in the memory's folder.
    pub(super) fn for_memory(place: impl AsRef<Path>, command: impl Into<String>) -> Self {
        Self::InMemory { place: place.as_ref().to_owned(), command: command.into() }
    }

    /// Describes the action: the question if it needs consent, else the report.
    pub fn describe(&self) -> String {
        match self {
            Self::CloseToOthers { path, .. } => format!("Close {} to other users", path.display()),
            Self::RebuildIndex => "Rebuild the memory's index".to_owned(),
            Self::RemoveWebhook { host } => format!("Remove the webhook at {host}, so that the bot gets its messages"),
            Self::WakeByItself => "Install automatic wakes every five minutes".to_owned(),
            Self::RetryMessage { id } => format!("Retry message {id} at the next wake"),
            Self::Embed => "Embed the remaining texts now".to_owned(),
            Self::InMemory { place, command } => format!("Run `{command}` in {}", place.display()),
            Self::Wake => "Run a wake now for the waiting work".to_owned(),
        }
    }

    /// Returns the equivalent command.
    pub fn command(&self) -> String {
        match self {
            Self::CloseToOthers { path, mode } => format!("chmod {mode:o} {}", quote_for_shell(path)),
            Self::RebuildIndex => "wake memory reindex".to_owned(),
            Self::RemoveWebhook { .. } => "bot webhook delete".to_owned(),
            Self::WakeByItself => "wake install".to_owned(),
            Self::RetryMessage { id } => format!("wake queue retry {id}"),
            Self::Embed => "wake memory reindex --embed".to_owned(),
            Self::InMemory { place, command } => format!("cd {} && {command}", quote_for_shell(place)),
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
