//! What acts outside our own stores: programs, files beside the memory, the network.
//!
//! A tool that acts (`tool::Tool::acting`) is given [`Exec`]; they belong to one cycle and end with it, and so does what they have
//! started. Whether a call may act at all was decided before, by the policy; what a program can reach is the sandbox's.

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
use reveille_policy as policy;
use reveille_policy::{Access, Rules};

use self::{
    edits::Edits,
    folders::CycleFolder,
    held::HeldFiles,
    room::{ClearedFiles, CommandRoom},
    session::{End, Ran, ShellSession},
};
pub use self::{
    keep::MAX_TOLD_BYTES,
    shelter::{KeyFiles, Shelter},
};
use crate::{
    Confined, ENVIRONMENT, Grant, Network,
    web::{Grants, Web, search::Engine},
};

/// How long a command may take when `policy.toml` says nothing else.
pub const SHELL_TIMEOUT: Duration = Duration::from_secs(120);
/// Random bytes of the mark that stands before and after what a command prints.
const MARK_BYTES: usize = 12;

/// The means by which one cycle acts.
#[derive(Debug)]
pub struct Exec {
    shelter: Rc<Shelter>,
    rules: Rules,
    session: Option<KeptShell>,
    /// Whether commands see what cycles have left in the scratch that had read untrusted text.
    sees_untrusted: bool,
    web: Web,
    /// What the text editor has done.
    pub edits: Edits,
    /// Pictures that were looked at, and their bytes.
    pub pictures: (usize, u64),
    /// What tools keep from one call to the next, by its type.
    kept: HashMap<TypeId, Box<dyn Any>>,
    /// What a person was told when they allowed the call that runs now.
    agreed: Vec<String>,
    /// The files that this call runs, as they were when they were asked about it.
    held: HeldFiles,
    /// What was removed from the scratch folder with the last command.
    cleared: ClearedFiles,
}

/// The shell that is kept from call to call.
#[derive(Debug)]
struct KeptShell {
    shell: ShellSession,
    dir: PathBuf,
    sees_untrusted: bool,
}

/// A command that was run.
#[derive(Debug)]
pub struct CommandRun {
    /// What came of it.
    pub ran: Ran,
    /// The folder that its shell began in; none of one that was given something and has left nothing there.
    pub dir: Option<PathBuf>,
    /// Whether it began a new shell in place of a kept one, to see what that didn't.
    pub is_anew: bool,
}

/// Why something couldn't be begun, for the model.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// The shell can't be started.
    #[error("no shell could be started: {0}. Nothing was done.")]
    NoShell(String),
    /// The scratch directory can't be made.
    #[error("the scratch directory {} can't be made: {source}. Nothing was done.", path.display())]
    Scratch {
        /// Where it would stand.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
}

impl Exec {
    /// Hands under these rules.
    pub fn new(shelter: Rc<Shelter>, rules: Rules) -> Self {
        let granted: Vec<String> = rules.hosts().iter().map(|host| format!("{}:{}", host.name, host.port)).collect();
        let web = Web::default().granting(Grants::new(granted.iter().map(String::as_str)));
        Self {
            shelter,
            rules,
            session: None,
            sees_untrusted: false,
            web,
            edits: Edits::default(),
            pictures: (0, 0),
            kept: HashMap::new(),
            agreed: Vec::new(),
            held: HeldFiles::default(),
            cleared: ClearedFiles::default(),
        }
    }

    /// The same, searching the web by this engine.
    #[must_use]
    pub fn searching(self, engine: Engine) -> Self {
        Self { web: self.web.searching(engine), ..self }
    }

    /// The same, reaching the web in this way.
    #[must_use]
    pub fn with_web(self, web: Web) -> Self {
        Self { web, ..self }
    }

    /// The way to the web.
    pub fn web(&self) -> &Web {
        &self.web
    }

    /// The person's rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// A person has allowed the next call; these are the reasons for which they were asked, and the files that it runs as they were then. An
    /// empty list takes that back.
    pub fn agree(&mut self, reasons: Vec<String>, held: HeldFiles) {
        self.agreed = reasons;
        self.held = held;
    }

    /// What a person was told when they allowed the call that runs now.
    pub fn agreed(&self) -> &[String] {
        &self.agreed
    }

    /// Where programs run.
    pub fn shelter(&self) -> &Rc<Shelter> {
        &self.shelter
    }

    /// What a tool keeps in this cycle from one call to the next; the first asks for it anew.
    pub fn kept<T: Default + 'static>(&mut self) -> Option<&mut T> {
        self.kept.entry(TypeId::of::<T>()).or_insert_with(|| Box::<T>::default()).downcast_mut()
    }

    /// An output as a model is told it: all of it if it is short, else how it begins, with the file that holds the whole and how
    /// to read on. `name` is the tool's, part of the file's name.
    pub fn keep_rest(&self, name: &str, output: String) -> String {
        self.shelter.keep_rest(name, output)
    }

    /// Whether a person has allowed the call that runs now.
    pub fn is_agreed(&self) -> bool {
        !self.agreed.is_empty()
    }

    /// The folder of the scratch that the cycle works in, made if need be. It outlives the cycle.
    ///
    /// # Errors
    /// It can't be made.
    pub fn work_dir(&self) -> Result<PathBuf, ExecError> {
        self.made(CycleFolder::make_work)
    }

    fn made(&self, make: fn(&CycleFolder) -> std::io::Result<PathBuf>) -> Result<PathBuf, ExecError> {
        let folder = self.shelter.folder();
        make(folder).map_err(|source| ExecError::Scratch { path: folder.path(), source })
    }

    /// From now on commands see what cycles have left in the scratch that had read untrusted text: this one has read some, too.
    pub fn see_untrusted(&mut self, sees: bool) {
        self.sees_untrusted = sees;
    }

    /// See [`Shelter::key_files`].
    pub fn key_files(&self) -> &[PathBuf] {
        self.shelter.key_files()
    }

    /// How long a command may take.
    pub fn shell_timeout(&self) -> Duration {
        self.rules.shell_timeout().unwrap_or(SHELL_TIMEOUT)
    }

    /// Runs a command: in the kept shell, which is started if there is none, or with `access` in one of its own. Who may change or send
    /// something is never met by what an earlier command has set or left running, and leaves nothing running itself. What a person has
    /// allowed runs alone: whatever still ran could exchange the files that it names.
    ///
    /// # Errors
    /// No shell can be started.
    pub async fn run_command(&mut self, command: &str, access: Access) -> Result<CommandRun, ExecError> {
        let within = self.shell_timeout();
        // Random, so that no output can hold it by chance.
        let mark = random::bytes::<MARK_BYTES>().map_err(|error| ExecError::NoShell(error.to_string()))?;
        if self.is_agreed() {
            self.end_shell();
        }
        let is_kept = access.is_none() && self.held.overlays().is_empty();
        let blind = |kept: &KeptShell| !kept.sees_untrusted && self.sees_untrusted;
        let is_anew = is_kept && self.session.as_ref().is_some_and(blind) && self.shelter.names_untrusted(command);
        let room = self.shelter.room();
        let kept = if is_kept { self.session.take().filter(|_| !is_anew) } else { None };
        let mut session = match kept {
            Some(session) => session,
            None => self.start_shell(access, &room)?,
        };
        let ran = session.shell.run(&random::hex(&mark), command, within, &room).await;
        let filled = match ran.end {
            End::Filled(filled) => Some(filled),
            End::Code(_) | End::TimedOut | End::ShellEnded(_) => None,
        };
        let dir = session.dir.clone();
        if is_kept && matches!(ran.end, End::Code(_)) {
            self.session = Some(session);
        } else {
            // What it has started ends with it, before its files go.
            drop(session.shell);
        }
        self.cleared = room.clear(filled);
        // An empty folder of its own tells nothing. One with something in it isn't removed.
        let dir = Some(dir).filter(|dir| access.is_none() || std::fs::remove_dir(dir).is_err());
        Ok(CommandRun { ran, dir, is_anew })
    }

    /// What was removed from the scratch folder with the last command, to have room on the disk.
    pub fn cleared(&self) -> ClearedFiles {
        self.cleared
    }

    /// Ends the kept shell with all that it has started.
    pub fn end_shell(&mut self) {
        self.session = None;
    }

    fn start_shell(&self, access: Access, room: &CommandRoom) -> Result<KeptShell, ExecError> {
        let no_shell = |why: String| ExecError::NoShell(why);
        if !session::is_there() {
            return Err(no_shell(format!("{} is not installed", session::program().0)));
        }
        // Where another command could have put what a program runs unasked, none begins that is given something.
        // fault: command-change-something-begins
        let dir = if access.is_none() { self.work_dir()? } else { self.made(CycleFolder::make_empty)? };
        let sandbox = self.shelter.sandbox();
        let (program, args) = session::program();
        let Confined { spec, proxy } = if sandbox.is_there() {
            let mut confinement = self.shelter.of_command(&self.rules, access, self.sees_untrusted, dir.clone());
            // fault: yes-script-runs-stands
            confinement.overlays = self.held.overlays().to_vec();
            confinement.max_file_bytes = Some(room.max_file_bytes(&confinement.writable));
            if access.network {
                confinement.network = Network::Hosts(self.grants());
            }
            sandbox.confine(&confinement, program.as_ref(), args).map_err(|error| no_shell(error.to_string()))?
        // fault: yes-confined-command-runs
        } else if !self.agreed.iter().any(|reason| reason == policy::NO_SANDBOX) {
            // It was asked for where there was one: nobody has agreed to this.
            return Err(no_shell(
                "there is no sandbox here now, and your person had not been told so when they allowed it".to_owned(),
            ));
        } else {
            // The question said that nothing confines it.
            let spec = Spec::new(program).args(args).only_inheriting(ENVIRONMENT).dir(&dir);
            // `~` in a command is what it is in `policy.toml`.
            Confined { spec: spec.env("HOME", self.shelter.home().unwrap_or(&dir)), proxy: None }
        };
        let spec = session::without_settings(spec, sandbox.temporary(&dir));
        let shell = ShellSession::start(&spec, proxy).map_err(|error| no_shell(error.to_string()))?;
        Ok(KeptShell { shell, dir, sees_untrusted: self.sees_untrusted })
    }

    fn grants(&self) -> Vec<Grant> {
        // A grant that only one of the two readers takes for one is none.
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
        exec.agree(vec![policy::NO_SANDBOX.to_owned()], HeldFiles::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let begun = runtime.block_on(exec.run_command("sleep 600 & echo $!", Access::default())).unwrap().ran.printed;
        let of_process = std::path::PathBuf::from(format!("/proc/{}/cmdline", begun.trim()));
        // One that has died and isn't waited for has no command line any more.
        let lives = || std::fs::read(&of_process).is_ok_and(|line| !line.is_empty());
        let wait_until = |what: &dyn Fn() -> bool| {
            let until = std::time::Instant::now() + Duration::from_secs(30);
            while !what() {
                assert!(std::time::Instant::now() < until, "{begun}");
                std::thread::yield_now();
            }
        };
        // Nor for a moment while it becomes `sleep`.
        wait_until(&lives);
        exec.end_shell();
        wait_until(&|| !lives());
    }

    #[test]
    fn nothing_runs_unconfined_unless_just_that_was_agreed_to() {
        let scratch = tempfile::tempdir().unwrap();
        let mut exec = Exec::new(Rc::new(Shelter::missing(scratch.path())), Rules::default());
        for agreed in [vec![], vec!["It redirects into a file.".to_owned()]] {
            exec.agree(agreed, HeldFiles::default());
            assert!(run(&mut exec).unwrap_err().to_string().contains("there is no sandbox here now"));
        }
        exec.agree(vec!["It redirects into a file.".to_owned(), policy::NO_SANDBOX.to_owned()], HeldFiles::default());
        assert_eq!(run(&mut exec).unwrap().printed, "ran\n");
    }
}
