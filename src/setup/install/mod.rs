//! Has the system start the programs, and undoes that: the programs' location, the texts of systemd's user units, launchd's agents
//! and cron's lines, and the steps of the installation.
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
    crontab::{add_our_lines, bot_command, remove_our_lines},
    found::{FoundStarter, list_starters},
    perform::{InstallError, perform_step},
    plan::{InstallStep, Starter, find_linked_build, install_steps, installed_programs, restart_step, uninstall_steps},
    units::{LaunchdAgent, launchd_agents, systemd_units},
    versions::Versions,
};

/// Every program. Each finds the others in its own directory.
pub const PROGRAMS: [&str; 6] = ["wake", "bot", "health", "reveille-embedder", "reveille-pdf", "reveille-transcriber"];

/// Programs of earlier builds, whose links an upgrade removes.
const FORMER_PROGRAMS: [&str; 1] = ["reveille-page"];

/// Name of the database copy made before an upgrade, in the workspace.
pub const DATABASE_COPY: &str = "messages.db.before-upgrade";

/// The person and paths of an installation.
#[derive(Debug, Clone)]
pub struct Installation {
    /// The person's home directory.
    pub home: PathBuf,
    /// The directory of the programs' links.
    pub bin: PathBuf,
    /// The workspace directory.
    pub workspace: PathBuf,
    /// The settings file, if it isn't the workspace's own.
    pub env_file: Option<PathBuf>,
    /// A token is set, so that a bot can run.
    pub with_bot: bool,
}

impl Installation {
    /// Finds the first path that can't be written into a unit or a crontab.
    pub fn find_unwritable_path(&self) -> Option<&Path> {
        let paths = [&self.home, &self.bin, &self.workspace].into_iter().chain(&self.env_file);
        let refused = |c: char| c.is_control() || "\"'\\$`".contains(c);
        paths.map(PathBuf::as_path).find(|path| path.to_str().is_none_or(|path| path.contains(refused)))
    }

    /// The directory of logs.
    pub fn logs(&self) -> PathBuf {
        self.workspace.join("logs")
    }

    /// The bot's standard error without a system journal: failures, and output before the log is open.
    pub fn bot_errors(&self) -> PathBuf {
        self.logs().join("bot.err.log")
    }

    /// The database.
    pub fn database(&self) -> PathBuf {
        self.workspace.join("messages.db")
    }

    /// The database copy before the last upgrade, for manual use only.
    pub fn database_copy(&self) -> PathBuf {
        self.workspace.join(DATABASE_COPY)
    }

    /// The list of programs that an installation put into `bin`, a name per line. It is needed since `bot` may be another program.
    pub fn program_list(&self) -> PathBuf {
        self.bin.parent().unwrap_or(&self.bin).join("lib/reveille/programs")
    }
}
