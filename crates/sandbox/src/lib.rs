//! The boundary around programs that the model runs (shells, MCP servers). The operating system decides access; commands are not parsed.
//!
//! [`Sandbox::detect`] detects this machine's sandbox and tries it out once. [`Sandbox::confine`] turns a
//! [`Confinement`] into a child to start. On Linux, bubblewrap gives the child its own namespaces, and our launcher
//! (`confined`) applies the same rules again by Landlock and seccomp before executing the program. On macOS, a
//! Seatbelt profile does both. Without a sandbox there is no child to start, only the reason: nothing ever runs
//! unconfined, and no argument of a tool can change a rule. The network is either closed or a [`proxy`] that knows the
//! granted hosts.

mod bubblewrap;
pub mod confined;
pub mod exec;
mod layout;
pub mod places;
pub mod proxy;
mod seatbelt;
pub mod web;

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    time::Duration,
};

use reveille_base::process::{self, Spec};
use reveille_config::Config;

use self::proxy::Proxy;
pub use self::{layout::Layout, places::looks_empty, proxy::Grant};

/// Timeout for trying a sandbox out.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// The word printed by the trial program.
const PROBE_WORD: &str = "confined";
/// The environment variables passed to a confined program. All others stay outside, because they may hold secrets.
pub const ENVIRONMENT: &[&str] = &[
    "PATH",
    "LANG",
    // fault: variable-isnt-listed-comes
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_NUMERIC",
    "LC_TIME",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "TZ",
    "USER",
    "LOGNAME",
];
/// Paths where bubblewrap is searched for. The list is fixed because `PATH` can be manipulated.
pub const BUBBLEWRAP: [&str; 4] =
    ["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap", "/run/current-system/sw/bin/bwrap"];
/// The macOS program that applies a Seatbelt profile.
const SEATBELT: &str = "/usr/bin/sandbox-exec";

/// The sandbox of this machine, found and tried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sandbox {
    /// Linux: namespaces by bubblewrap, Landlock and seccomp by our launcher inside.
    Bubblewrap {
        /// The bubblewrap program.
        program: PathBuf,
        /// Our own program, which has the subcommand `confined`.
        launcher: PathBuf,
    },
    /// macOS: a profile for `sandbox-exec`.
    Seatbelt {
        /// The `sandbox-exec` program.
        program: PathBuf,
    },
    /// No sandbox: every program needs an approval, every time.
    None {
        /// The reason and the remedy, in a sentence for people.
        why: String,
    },
}

/// The access of a confined program. The rest of the machine is at most readable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Confinement {
    /// The scratch directory, writable: the program's working directory. Must exist.
    pub work_dir: PathBuf,
    /// The home directory.
    pub home: ConfinedHome,
    /// Additional writable roots, granted by a person.
    pub writable: Vec<PathBuf>,
    /// Makes the `writable` roots read-only.
    pub is_read_only: bool,
    /// Readable but never writable paths within covered places: the memory's work tree, files that came with messages.
    pub readable: Vec<PathBuf>,
    /// Additional readable paths; missing and hidden paths are skipped. A writable grant may lie within one.
    pub shown: Vec<PathBuf>,
    /// Directories that look empty except for the readable and writable paths within them: the workspace.
    pub covered: Vec<PathBuf>,
    /// Paths that can neither be read nor written, including everything within them, whatever else is granted. They need not exist.
    pub hidden: Vec<PathBuf>,
    /// Files shown read-only in place of others, as (source, target). Only bubblewrap supports this.
    pub overlays: Vec<(PathBuf, PathBuf)>,
    /// The maximum size of a file, in bytes; `None` if unlimited.
    pub max_file_bytes: Option<u64>,
    /// The reachable network.
    pub network: Network,
}

/// The home directory of a confined program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ConfinedHome {
    /// The working directory.
    #[default]
    WorkDir,
    /// The person's home, unchanged and read-only.
    AsItIs(PathBuf),
    /// A temporary empty home at the path of the person's home; only granted or readable paths appear in it. On
    /// sandboxes that can't mount over a path, the home is the working directory and the person's home is out of
    /// reach.
    Empty(PathBuf),
}

/// The network access of a confined program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Network {
    /// No network.
    #[default]
    None,
    /// These names and ports, through our proxy. An empty list means no network.
    Hosts(Vec<Grant>),
}

impl Confinement {
    /// Returns the confinement for a tool of this workspace. The scratch is writable; the memory's work tree and the
    /// files that came with messages are readable. The rest of the workspace, the settings and the places of keys are
    /// out of reach.
    pub fn new(config: &Config, home: Option<&Path>, work_dir: impl Into<PathBuf>) -> Self {
        let repo = config.repo_dir();
        let hidden =
            [places::git_dirs(&repo), vec![repo.join(".env"), config.policy_path()], places::list_system_keys()];
        // fault: files-settings-name-keys
        let named = config.env_file.iter().chain(&config.key_files).cloned();
        let secrets = named.chain(home.into_iter().flat_map(places::list_home_keys));
        Self {
            work_dir: work_dir.into(),
            home: ConfinedHome::WorkDir,
            writable: Vec::new(),
            shown: Vec::new(),
            is_read_only: false,
            readable: [repo, config.files_dir(), config.voice_dir()].into_iter().filter(|path| path.exists()).collect(),
            // fault: workspace-isnt-covered
            covered: vec![config.workspace_dir.clone()],
            hidden: hidden.into_iter().flatten().chain(secrets).collect(),
            overlays: Vec::new(),
            max_file_bytes: None,
            network: Network::None,
        }
    }
}

/// The reason why a program couldn't be confined, so that it doesn't run.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// This machine has no sandbox.
    #[error("{0}")]
    Missing(String),
    /// A grant is missing on disk or contradicts a hidden place; a person has to correct the grant.
    #[error("{0}")]
    Grant(String),
    /// The proxy couldn't be started; a retry may work.
    #[error("the way to the granted hosts couldn't be made: {0}")]
    Proxy(std::io::Error),
}

/// A child to start, with everything that has to live as long as the child.
#[derive(Debug)]
pub struct Confined {
    /// The child; a timeout and more variables may be added.
    pub spec: Spec,
    /// The proxy to the granted hosts, if any. Dropping it closes the connections.
    pub proxy: Option<Proxy>,
}

impl Sandbox {
    /// Finds this machine's sandbox and runs a program in it, since an installed sandbox may still be forbidden.
    /// `launcher` is the program `wake`; `scratch` is an existing directory in which the trial may write.
    pub fn detect(launcher: &Path, scratch: &Path) -> Self {
        let found = if cfg!(target_os = "macos") {
            Ok(Self::Seatbelt { program: PathBuf::from(SEATBELT) })
        } else if cfg!(target_os = "linux") {
            let program = BUBBLEWRAP.iter().map(PathBuf::from).find(|path| path.exists());
            program.map(|program| Self::Bubblewrap { program, launcher: launcher.to_owned() }).ok_or(
                "bubblewrap isn't installed (Debian and others: apt-get install bubblewrap), so programs can't be confined",
            )
        } else {
            Err("there is no sandbox for this system, so programs can't be confined")
        };
        let found = match found {
            Ok(found) => found,
            Err(why) => return Self::None { why: why.to_owned() },
        };
        match found.try_out(scratch) {
            Ok(()) => found,
            Err(why) => Self::None { why: format!("programs can't be confined here: {why}") },
        }
    }

    /// Runs a shell in the sandbox, with the rules of every tool.
    fn try_out(&self, scratch: &Path) -> Result<(), String> {
        let confinement = Confinement { work_dir: scratch.to_owned(), ..Confinement::default() };
        let script = ["-c".to_owned(), format!("printf {PROBE_WORD}")];
        let confined = self.confine(&confinement, "/bin/sh".as_ref(), script).map_err(|error| error.to_string())?;
        let output = process::run(&confined.spec.timeout(PROBE_TIMEOUT)).map_err(|error| error.to_string())?;
        if output.status.success() && output.stdout == PROBE_WORD.as_bytes() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing").trim().to_owned();
        Err(format!("{said} ({})", process::describe_exit(output.status)))
    }

    /// Returns true if this machine has a sandbox.
    pub fn is_there(&self) -> bool {
        !matches!(self, Self::None { .. })
    }

    /// Returns the directory for temporary files of a program that starts in `work_dir`.
    pub fn temporary_dir<'a>(&self, work_dir: &'a Path) -> &'a Path {
        if matches!(self, Self::Bubblewrap { .. }) { Path::new("/tmp") } else { work_dir }
    }

    /// Builds a child that runs `program` confined.
    ///
    /// The child dies with the thread that starts it, so start it from a long-lived thread.
    ///
    /// # Errors
    /// There is no sandbox, or the confinement contradicts itself. The program must not run then.
    pub fn confine(
        &self,
        confinement: &Confinement,
        program: &OsStr,
        args: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<Confined, SandboxError> {
        if let Self::None { why } = self {
            return Err(SandboxError::Missing(why.clone()));
        }
        let layout = Layout::from_confinement(confinement)?;
        let proxy = match &confinement.network {
            Network::Hosts(grants) if !grants.is_empty() => {
                let door = if matches!(self, Self::Seatbelt { .. }) {
                    Proxy::listen_on_loopback
                } else {
                    Proxy::listen_on_socket
                };
                Some(door(grants.clone(), proxy::ProxyWorld::from_system()).map_err(SandboxError::Proxy)?)
            }
            _ => None,
        };
        let command = std::iter::once(program.to_owned()).chain(args.into_iter().map(Into::into));
        let spec = match self {
            Self::Bubblewrap { program, launcher } => {
                let socket = proxy.as_ref().and_then(Proxy::socket_path);
                Spec::new(program).args(bubblewrap::build_arguments(&layout, launcher, socket.as_deref())).args(command)
            }
            Self::Seatbelt { program } => {
                let port = proxy.as_ref().and_then(Proxy::port);
                let spec =
                    Spec::new(program).args(["-p".to_owned(), seatbelt::render_profile(&layout, port)]).args(command);
                proxy::build_variables(port).into_iter().fold(spec, |spec, (name, value)| spec.env(name, value))
            }
            Self::None { why } => return Err(SandboxError::Missing(why.clone())),
        };
        let spec = spec.only_inheriting(ENVIRONMENT).current_dir(&layout.work_dir);
        let home = match &confinement.home {
            // `~` in a command means the same as in `policy.toml`, even where little of the home can be reached.
            ConfinedHome::AsItIs(home) | ConfinedHome::Empty(home) => home,
            ConfinedHome::WorkDir => &layout.work_dir,
        };
        let spec = spec.env("HOME", home).env("TMPDIR", self.temporary_dir(&layout.work_dir));
        Ok(Confined { spec, proxy })
    }
}
