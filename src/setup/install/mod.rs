//! What starts the programs without a hand, and takes that out again: where the programs go, the texts of systemd's user units, of
//! launchd's agents and of cron's lines, and the steps that put them there.
//!
//! Texts and steps are values. A dry run shows the same steps that an installation takes.

mod crontab;
mod found;
mod perform;
mod plan;
mod units;
mod versions;

use std::path::{Path, PathBuf};

pub use self::{
    crontab::{bot_command, with_lines, without_lines},
    found::{FoundStarter, found_starters},
    perform::{InstallError, perform},
    plan::{InstallStep, Starter, called_build, install_steps, installed_programs, restart_step, uninstall_steps},
    units::{launchd_agents, systemd_units},
    versions::Versions,
};

/// All programs, each of which finds the others beside itself.
pub const PROGRAMS: [&str; 6] = ["wake", "bot", "health", "reveille-embedder", "reveille-pdf", "reveille-transcriber"];

/// Programs of earlier builds: an upgrade takes their links out.
const FORMER_PROGRAMS: [&str; 1] = ["reveille-page"];

/// What the copy of the database from before the last upgrade is called in the workspace.
pub const DATABASE_COPY: &str = "messages.db.before-upgrade";

/// What is installed for whom.
#[derive(Debug, Clone)]
pub struct Installation {
    /// The person's home directory.
    pub home: PathBuf,
    /// Where the programs are called.
    pub bin: PathBuf,
    /// Where everything is kept.
    pub workspace: PathBuf,
    /// The file of settings, where it isn't the workspace's own.
    pub env_file: Option<PathBuf>,
    /// Whether there is a token, so that a bot can run.
    pub with_bot: bool,
}

impl Installation {
    /// The first path that can't stand in a unit or in a line of cron's.
    pub fn unwritable(&self) -> Option<&Path> {
        let paths = [&self.home, &self.bin, &self.workspace].into_iter().chain(&self.env_file);
        let refused = |c: char| c.is_control() || "\"'\\$`".contains(c);
        paths.map(PathBuf::as_path).find(|path| path.to_str().is_none_or(|path| path.contains(refused)))
    }

    /// Where logs are.
    pub fn logs(&self) -> PathBuf {
        self.workspace.join("logs")
    }

    /// What the bot says on standard error where no journal keeps it: what goes wrong, and what it says before it has a log.
    pub fn bot_errors(&self) -> PathBuf {
        self.logs().join("bot.err.log")
    }

    /// The database.
    pub fn database(&self) -> PathBuf {
        self.workspace.join("messages.db")
    }

    /// Its copy from before the last upgrade, for a person's hand alone.
    pub fn database_copy(&self) -> PathBuf {
        self.workspace.join(DATABASE_COPY)
    }

    /// Which of the programs were put into `bin` by an installation, a name a line: `bot` can be another's program.
    pub fn list(&self) -> PathBuf {
        self.bin.parent().unwrap_or(&self.bin).join("lib/reveille/programs")
    }
}
