//! The boundary around programs that the model has run (shells, MCP servers): what they may touch is decided by the system, not
//! by reading what they are told to do.
//!
//! [`Sandbox::find`] looks once for what this machine offers and tries it out. [`Sandbox::confine`] turns a [`Confinement`] into
//! a child to start: on Linux bubblewrap gives it a world of its own, and in there our own launcher (`confined`) sets the same
//! rules a second time by Landlock and seccomp before it becomes the program. On macOS a Seatbelt profile does both. Where neither can be
//! had there is no child to start, only the reason: nothing ever runs unconfined in silence, and no argument of a tool reaches any of it.
//! The network is none, or a [`proxy`] that knows the granted hosts.

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

/// How long trying a sandbox out may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// What the program prints that is run to try a sandbox out.
const PROBE_WORD: &str = "confined";
/// The variables of ours that a confined program gets; all others stay outside, whoever's secret is in them.
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
/// Where bubblewrap is looked for. A fixed list: `PATH` is nobody's word on what a boundary is made of.
pub const BUBBLEWRAP: [&str; 4] =
    ["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap", "/run/current-system/sw/bin/bwrap"];
/// Where macOS keeps the program that sets a Seatbelt profile.
const SEATBELT: &str = "/usr/bin/sandbox-exec";

/// What this machine offers, as found and tried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sandbox {
    /// Linux: namespaces by bubblewrap, Landlock and seccomp by our launcher inside.
    Bubblewrap {
        /// bubblewrap's program.
        program: PathBuf,
        /// Ours, which has the subcommand `confined`.
        launcher: PathBuf,
    },
    /// macOS: a profile for its `sandbox-exec`.
    Seatbelt {
        /// That program.
        program: PathBuf,
    },
    /// Nothing: whatever would run in it has to be asked for, every time.
    None {
        /// Why, in a sentence for people, with what to do about it.
        why: String,
    },
}

/// What a confined program may touch. All else of the machine it can at most read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Its scratch: where it starts and may write. An existing directory.
    pub work_dir: PathBuf,
    /// Its home.
    pub home: ConfinedHome,
    /// Roots in which it may write, too: granted by a person.
    pub writable: Vec<PathBuf>,
    /// Whether these are read-only all the same.
    pub is_read_only: bool,
    /// What stays readable within covered places and is never writable: the brain's work tree, files that came with messages.
    pub readable: Vec<PathBuf>,
    /// What is readable besides, as far as it is there and not hidden. A grant for writing may lie within it.
    pub shown: Vec<PathBuf>,
    /// Directories that look empty, but for what is listed as readable or writable within them: the workspace.
    pub covered: Vec<PathBuf>,
    /// What can neither be read nor written, nor can anything within it, whatever else is granted. It needn't exist.
    pub hidden: Vec<PathBuf>,
    /// Files that are seen in the place of others, read-only: what is seen, and where. Only bubblewrap can do that.
    pub overlays: Vec<(PathBuf, PathBuf)>,
    /// How large a file may become, in bytes; `None`: as large as any program needs.
    pub max_file_bytes: Option<u64>,
    /// Whom it may speak to.
    pub network: Network,
}

/// The home directory of a confined program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ConfinedHome {
    /// Where it starts.
    #[default]
    WorkDir,
    /// The person's, as it is, not writable.
    AsItIs(PathBuf),
    /// An empty one of its own, gone afterwards, at the path of the person's: only what is granted or readable is in it. Where a
    /// sandbox can't put another directory in a path's place the home is where it starts, and the person's is out of reach.
    Empty(PathBuf),
}

/// Whom a confined program may speak to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Network {
    /// Nobody.
    #[default]
    None,
    /// These names and ports, through our proxy. None in the list is nobody.
    Hosts(Vec<Grant>),
}

impl Confinement {
    /// The confinement of a tool of this workspace: its scratch is writable, the brain's work tree and the files that came with
    /// messages are readable, and all else of the workspace, the settings and the places of keys are out of reach.
    pub fn new(config: &Config, home: Option<&Path>, work_dir: impl Into<PathBuf>) -> Self {
        let repo = config.repo_dir();
        let hidden = [places::git_dirs(&repo), vec![repo.join(".env"), config.policy_path()], places::of_the_system()];
        // fault: files-settings-name-keys
        let named = config.env_file.iter().chain(&config.key_files).cloned();
        let secrets = named.chain(home.into_iter().flat_map(places::of_keys));
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

/// Why a program wasn't confined, and so doesn't run.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// There is no sandbox on this machine.
    #[error("{0}")]
    Missing(String),
    /// What is granted contradicts what has to stay out of reach, or isn't there: a person corrects the grant.
    #[error("{0}")]
    Grant(String),
    /// The way to the network couldn't be made; it may work another time.
    #[error("the way to the granted hosts couldn't be made: {0}")]
    Proxy(std::io::Error),
}

/// A child to start, and what has to live as long as it does.
#[derive(Debug)]
pub struct Confined {
    /// The child: a time-out, and variables of its own, may be added.
    pub spec: Spec,
    /// Where there are granted hosts, the way to them: dropped, it ends.
    pub proxy: Option<Proxy>,
}

impl Sandbox {
    /// Looks what there is and runs a program in it: that the parts are installed doesn't mean that they are allowed here. `launcher`
    /// is the program `wake`, `scratch` an existing directory in which the trial may write.
    pub fn find(launcher: &Path, scratch: &Path) -> Self {
        let found = if cfg!(target_os = "macos") {
            Ok(Self::Seatbelt { program: PathBuf::from(SEATBELT) })
        } else if cfg!(target_os = "linux") {
            let program = BUBBLEWRAP.iter().map(PathBuf::from).find(|path| path.exists());
            program.map(|program| Self::Bubblewrap { program, launcher: launcher.to_owned() }).ok_or(
                "bubblewrap isn't installed (Debian and others: apt-get install bubblewrap), so that programs can't be confined",
            )
        } else {
            Err("there is no sandbox for this system, so that programs can't be confined")
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

    /// Runs a shell in it, with the rules of every tool.
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
        Err(format!("{said} ({})", process::describe(output.status)))
    }

    /// Whether there is one.
    pub fn is_there(&self) -> bool {
        !matches!(self, Self::None { .. })
    }

    /// Where a confined program that starts in `work_dir` has its temporary files.
    pub fn temporary<'a>(&self, work_dir: &'a Path) -> &'a Path {
        if matches!(self, Self::Bubblewrap { .. }) { Path::new("/tmp") } else { work_dir }
    }

    /// A child that runs `program` confined.
    ///
    /// The child dies with the thread that starts it: start it from one that stays.
    ///
    /// # Errors
    /// There is no sandbox, or the confinement contradicts itself: then nothing may run in its place.
    pub fn confine(
        &self,
        confinement: &Confinement,
        program: &OsStr,
        args: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<Confined, SandboxError> {
        if let Self::None { why } = self {
            return Err(SandboxError::Missing(why.clone()));
        }
        let layout = Layout::of(confinement)?;
        let proxy = match &confinement.network {
            Network::Hosts(grants) if !grants.is_empty() => {
                let door = if matches!(self, Self::Seatbelt { .. }) { Proxy::on_loopback } else { Proxy::on_socket };
                Some(door(grants.clone(), proxy::ProxyWorld::real()).map_err(SandboxError::Proxy)?)
            }
            _ => None,
        };
        let command = std::iter::once(program.to_owned()).chain(args.into_iter().map(Into::into));
        let spec = match self {
            Self::Bubblewrap { program, launcher } => {
                let socket = proxy.as_ref().and_then(Proxy::socket);
                Spec::new(program).args(bubblewrap::arguments(&layout, launcher, socket.as_deref())).args(command)
            }
            Self::Seatbelt { program } => {
                let port = proxy.as_ref().and_then(Proxy::port);
                let spec = Spec::new(program).args(["-p".to_owned(), seatbelt::profile(&layout, port)]).args(command);
                proxy::variables(port).into_iter().fold(spec, |spec, (name, value)| spec.env(name, value))
            }
            Self::None { why } => return Err(SandboxError::Missing(why.clone())),
        };
        let spec = spec.only_inheriting(ENVIRONMENT).dir(&layout.work_dir);
        let home = match &confinement.home {
            // `~` in a command is what it is in `policy.toml`, also where little of it can be reached.
            ConfinedHome::AsItIs(home) | ConfinedHome::Empty(home) => home,
            ConfinedHome::WorkDir => &layout.work_dir,
        };
        let spec = spec.env("HOME", home).env("TMPDIR", self.temporary(&layout.work_dir));
        Ok(Confined { spec, proxy })
    }
}
