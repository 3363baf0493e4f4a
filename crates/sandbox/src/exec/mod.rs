//! Actions outside our own stores: programs, files outside the memory, the network.
//!
//! An acting tool (`Tool::new_acting`) gets [`Exec`], which belongs to one cycle and ends with it, together with every
//! process started. The policy has already decided each call, and the sandbox limits the reach of programs.

pub mod beneath;
pub mod copies;
pub mod edits;
pub mod folders;
mod gate;
pub mod held;
mod keep;
pub mod opener;
pub mod room;
pub mod search;
pub mod session;
mod shelter;
pub mod system;

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    path::PathBuf,
    rc::Rc,
    time::Duration,
};

use reveille_base::{process::Spec, random};
use reveille_policy::{Access, Consent, Rules};

use self::{
    edits::Edits,
    folders::CycleFolder,
    held::HeldFiles,
    room::{ClearedFiles, CommandRoom},
    session::{End, Ran, ShellSession},
};
pub use self::{
    keep::MAX_TOLD_BYTES,
    shelter::{KeyFiles, ScratchView, Shelter},
};
use crate::{
    Confined, ENVIRONMENT, Grant, Network,
    web::{Grants, Web, search::Engine},
};

/// Timeout of a command without a setting in `policy.toml`.
pub const SHELL_TIMEOUT: Duration = Duration::from_secs(120);
/// Random bytes of the mark printed before and after a command's output.
const MARK_BYTES: usize = 12;

/// The state that the acting tools of one cycle share: its shell, web client, edits and approval.
#[derive(Debug)]
pub struct Exec {
    shelter: Rc<Shelter>,
    rules: Rules,
    session: Option<KeptShell>,
    /// Shows commands the scratch files of earlier tainted cycles.
    sees_untrusted: bool,
    web: Web,
    /// The edits made by the text editor.
    pub edits: Edits,
    /// The number of viewed pictures, and their bytes.
    pub pictures: (usize, u64),
    /// State that tools keep between calls, by type.
    kept: HashMap<TypeId, Box<dyn Any>>,
    /// The approval of the current call.
    approval: Option<CallApproval>,
    /// Files removed from the scratch folder after the last command.
    cleared: ClearedFiles,
}

/// A person's approval of one call.
#[derive(Debug, Default)]
struct CallApproval {
    /// What it permits besides the call.
    consents: Vec<Consent>,
    /// Snapshots of the files that the call runs, taken when the person was asked.
    held: HeldFiles,
}

/// The shell kept between calls.
#[derive(Debug)]
struct KeptShell {
    shell: ShellSession,
    dir: PathBuf,
    sees_untrusted: bool,
}

/// A finished command.
#[derive(Debug)]
pub struct CommandRun {
    /// The result.
    pub ran: Ran,
    /// The folder in which the shell started. `None` if a command with extra access left its folder empty.
    pub dir: Option<PathBuf>,
    /// Set if a new shell replaced the kept one, in order to see untrusted files.
    pub is_new_shell: bool,
}

/// Why a command couldn't start, for the model.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// The shell can't be started.
    #[error("no shell could be started: {0}. Nothing was done.")]
    NoShell(String),
    /// The scratch directory can't be created.
    #[error("the scratch directory {} can't be made: {source}. Nothing was done.", path.display())]
    Scratch {
        /// The path of the directory.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}

impl Exec {
    /// Creates the state for a cycle under these rules.
    pub fn new(shelter: Rc<Shelter>, rules: Rules) -> Self {
        let granted: Vec<String> = rules.hosts().iter().map(|host| format!("{}:{}", host.name, host.port)).collect();
        let web = Web::default().with_grants(Grants::new(granted.iter().map(String::as_str)));
        Self {
            shelter,
            rules,
            session: None,
            sees_untrusted: false,
            web,
            edits: Edits::default(),
            pictures: (0, 0),
            kept: HashMap::new(),
            approval: None,
            cleared: ClearedFiles::default(),
        }
    }

    /// Sets the search engine.
    #[must_use]
    pub fn with_search_engine(self, engine: Engine) -> Self {
        Self { web: self.web.with_search_engine(engine), ..self }
    }

    /// Sets the web client.
    #[must_use]
    pub fn with_web(self, web: Web) -> Self {
        Self { web, ..self }
    }

    /// Returns the web client.
    pub fn web(&self) -> &Web {
        &self.web
    }

    /// Returns the person's rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Records the approval of the next call: its consents, and the files as the person was shown them.
    pub fn approve(&mut self, consents: Vec<Consent>, held: HeldFiles) {
        self.approval = Some(CallApproval { consents, held });
    }

    /// Ends the approval with its call.
    pub fn revoke_approval(&mut self) {
        self.approval = None;
    }

    /// Returns the consents that a person gave with the approval of the current call.
    pub fn consents(&self) -> &[Consent] {
        self.approval.as_ref().map_or(&[], |approval| &approval.consents)
    }

    /// Returns each snapshot that the current call runs, with the path where it is mounted.
    fn held_overlays(&self) -> &[(PathBuf, PathBuf)] {
        self.approval.as_ref().map_or(&[], |approval| approval.held.overlays())
    }

    /// Returns the place where programs run.
    pub fn shelter(&self) -> &Rc<Shelter> {
        &self.shelter
    }

    /// Returns a tool's state kept within this cycle, created by default on first use.
    pub fn tool_state<T: Default + 'static>(&mut self) -> Option<&mut T> {
        self.kept.entry(TypeId::of::<T>()).or_insert_with(|| Box::<T>::default()).downcast_mut()
    }

    /// Returns a short output unchanged. A long one becomes its beginning, with the file that holds the whole and how
    /// to read on. `name` is the tool's name and part of the file's name.
    pub fn keep_rest(&self, name: &str, output: String) -> String {
        self.shelter.keep_rest(name, output)
    }

    /// Returns true if a person has approved the current call.
    pub fn is_approved(&self) -> bool {
        self.approval.is_some()
    }

    /// Returns the cycle's folder in the scratch, created if missing. The folder outlives the cycle.
    ///
    /// # Errors
    /// The folder can't be created.
    pub fn work_dir(&self) -> Result<PathBuf, ExecError> {
        self.make_folder(CycleFolder::make_work)
    }

    fn make_folder(&self, make: fn(&CycleFolder) -> std::io::Result<PathBuf>) -> Result<PathBuf, ExecError> {
        let folder = self.shelter.folder();
        make(folder).map_err(|source| ExecError::Scratch { path: folder.path(), source })
    }

    /// Sets whether commands see the scratch files of earlier tainted cycles; true once this cycle is tainted itself.
    pub fn set_sees_untrusted(&mut self, sees: bool) {
        self.sees_untrusted = sees;
    }

    /// See [`Shelter::key_files`].
    pub fn key_files(&self) -> &[PathBuf] {
        self.shelter.key_files()
    }

    /// Returns the timeout of a command.
    pub fn shell_timeout(&self) -> Duration {
        self.rules.shell_timeout().unwrap_or(SHELL_TIMEOUT)
    }

    /// Runs a command in the kept shell, or with `access` in a shell of its own.
    ///
    /// A command with write or network access must not be influenced by earlier commands, and leaves nothing running.
    /// An approved command runs alone, because a running program could exchange the files that it names.
    ///
    /// # Errors
    /// No shell can be started.
    pub async fn run_command(&mut self, command: &str, access: Access) -> Result<CommandRun, ExecError> {
        let within = self.shell_timeout();
        // Random, so that no output contains the mark by chance.
        let mark = random::generate_bytes::<MARK_BYTES>().map_err(|error| ExecError::NoShell(error.to_string()))?;
        if self.is_approved() {
            self.end_shell();
        }
        let is_kept = access.is_none() && self.held_overlays().is_empty();
        let is_blind = |kept: &KeptShell| !kept.sees_untrusted && self.sees_untrusted;
        let is_new_shell =
            is_kept && self.session.as_ref().is_some_and(is_blind) && self.shelter.has_untrusted_path(command);
        let room = self.shelter.measure_room();
        let kept = if is_kept { self.session.take().filter(|_| !is_new_shell) } else { None };
        let mut session = match kept {
            Some(session) => session,
            None => self.start_shell(access, &room)?,
        };
        let ran = session.shell.run(&random::format_hex(&mark), command, within, &room).await;
        let filled = match ran.end {
            End::Filled(filled) => Some(filled),
            End::Code(_) | End::TimedOut | End::ShellEnded(_) => None,
        };
        let dir = session.dir.clone();
        if is_kept && matches!(ran.end, End::Code(_)) {
            self.session = Some(session);
        } else {
            // Child processes end with the shell, before their files are removed.
            drop(session.shell);
        }
        self.cleared = room.free_space(filled);
        // A folder that the command left empty is removed. A folder with content can't be removed and stays.
        let dir = Some(dir).filter(|dir| access.is_none() || std::fs::remove_dir(dir).is_err());
        Ok(CommandRun { ran, dir, is_new_shell })
    }

    /// Returns the files removed from the scratch folder after the last command to free disk space.
    pub fn cleared_files(&self) -> ClearedFiles {
        self.cleared
    }

    /// Ends the kept shell and its child processes.
    pub fn end_shell(&mut self) {
        self.session = None;
    }

    fn start_shell(&self, access: Access, room: &CommandRoom) -> Result<KeptShell, ExecError> {
        let no_shell = |why: String| ExecError::NoShell(why);
        if !session::is_there() {
            return Err(no_shell(format!("{} is not installed", session::shell_command().0)));
        }
        // A command with extra access starts in an empty folder, away from files that another command could have planted.
        // fault: command-change-something-begins
        let dir = if access.is_none() { self.work_dir()? } else { self.make_folder(CycleFolder::make_empty)? };
        let sandbox = self.shelter.sandbox();
        let (program, args) = session::shell_command();
        let Confined { spec, proxy } = if sandbox.is_there() {
            let mut confinement = self.shelter.confine_command(
                &self.rules,
                access,
                ScratchView::for_cycle(self.sees_untrusted),
                dir.clone(),
            );
            // fault: yes-script-runs-stands
            confinement.overlays = self.held_overlays().to_vec();
            confinement.max_file_bytes = Some(room.max_file_bytes(&confinement.writable));
            if access.network {
                confinement.network = Network::Hosts(self.list_grants());
            }
            sandbox.confine(&confinement, program.as_ref(), args).map_err(|error| no_shell(error.to_string()))?
        // fault: yes-confined-command-runs
        } else if !self.consents().contains(&Consent::UnconfinedCommand) {
            // The approval was given while a sandbox existed, so it doesn't cover an unconfined run.
            return Err(no_shell(
                "there is no sandbox here now, and your person had not been told so when they allowed it".to_owned(),
            ));
        } else {
            // The question mentioned the missing sandbox.
            let spec = Spec::new(program).args(args).only_inheriting(ENVIRONMENT).current_dir(&dir);
            // `~` in a command means the same as in `policy.toml`.
            Confined { spec: spec.env("HOME", self.shelter.home().unwrap_or(&dir)), proxy: None }
        };
        let spec = session::with_own_settings_folders(spec, sandbox.temporary_dir(&dir));
        let shell = ShellSession::start(&spec, proxy).map_err(|error| no_shell(error.to_string()))?;
        Ok(KeptShell { shell, dir, sees_untrusted: self.sees_untrusted })
    }

    fn list_grants(&self) -> Vec<Grant> {
        // A grant counts only if both parsers accept it.
        self.rules.hosts().iter().filter_map(|host| format!("{}:{}", host.name, host.port).parse().ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(exec: &mut Exec) -> Result<Ran, ExecError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(exec.run_command("echo ran", Access::default())).map(|run| run.ran)
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_the_shell_has_started_ends_with_it() {
        let scratch = tempfile::tempdir().unwrap();
        let mut exec = Exec::new(Rc::new(Shelter::missing(scratch.path())), Rules::default());
        exec.approve(vec![Consent::UnconfinedCommand], HeldFiles::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let begun = runtime.block_on(exec.run_command("sleep 600 & echo $!", Access::default())).unwrap().ran.printed;
        let of_process = std::path::PathBuf::from(format!("/proc/{}/cmdline", begun.trim()));
        // A zombie has an empty command line.
        let lives = || std::fs::read(&of_process).is_ok_and(|line| !line.is_empty());
        let wait_until = |what: &dyn Fn() -> bool| {
            let until = std::time::Instant::now() + Duration::from_secs(30);
            while !what() {
                assert!(std::time::Instant::now() < until, "{begun}");
                std::thread::yield_now();
            }
        };
        // The command line is also empty for a moment while the process becomes `sleep`.
        wait_until(&lives);
        exec.end_shell();
        wait_until(&|| !lives());
    }

    #[test]
    fn nothing_runs_unconfined_unless_just_that_was_agreed_to() {
        let scratch = tempfile::tempdir().unwrap();
        let mut exec = Exec::new(Rc::new(Shelter::missing(scratch.path())), Rules::default());
        for consents in [vec![], vec![Consent::UnconfinedServer]] {
            exec.approve(consents, HeldFiles::default());
            assert!(run(&mut exec).unwrap_err().to_string().contains("there is no sandbox here now"));
        }
        exec.approve(vec![Consent::UnconfinedServer, Consent::UnconfinedCommand], HeldFiles::default());
        assert_eq!(run(&mut exec).unwrap().printed, "ran\n");
    }
}
