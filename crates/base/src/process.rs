//! The only place that starts other programs and asks who is running.
//!
//! A child gets nothing to read, and an environment without our secrets. It has a process group of its own, and a time-out that
//! kills the whole group. What is kept of its output is bounded. It dies with us, and so does what it starts (`leash`). [`Identity`]
//! tells a living process from one whose number was given away; [`end`] ends one with all that descends from it.

mod anew;
mod detached;
mod end;
mod identity;
mod leash;
mod leashed;
mod lines;
mod table;
mod within;

use std::{
    ffi::{OsStr, OsString},
    io::Read,
    os::unix::{
        fs::MetadataExt as _,
        process::{CommandExt as _, ExitStatusExt as _},
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal};

pub use anew::{CURRENT, VERSIONS, called_name, called_program, own_program, start_anew, starting_program};
pub use detached::start_detached;
pub use end::{EndError, ask_to_end, end, end_children};
pub use identity::Identity;
use leash::Leash;
pub use leashed::{Leashed, Pipes};
pub use lines::{Fuse, Lines};
pub use table::{computing_times, descends_from, holding_flock, is_running, is_stopped, own_children, runs_in};
pub use within::{become_program, forbid_core_files, start_beside};

/// Settings of ours, which are nobody else's business: variables whose names begin so. No child gets those that hold a secret.
pub const OURS: [&str; 7] = ["TELEGRAM_", "ANTHROPIC_", "CLAUDE_", "OPENAI_", "GEMINI_", "BRAVE_", "REVEILLE_"];
/// How long a child may run when its [`Spec`] says nothing else.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(20);
/// How much of each output stream is kept when the [`Spec`] says nothing else; the rest is read and dropped.
pub const DEFAULT_MAX_OUTPUT_BYTES: usize = 1 << 20;
/// How long output is waited for once the child has ended. A daemon that it left behind may hold the pipe for ever.
const DRAIN_GRACE: Duration = Duration::from_millis(500);
/// How long a child may take to tidy up that is [asked first](Spec::asked_first).
pub const TIDYING: Duration = Duration::from_secs(1);
/// How often it is asked whether a child is still to go on.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Where Linux keeps the program that lets a child die with its parent, in the same instant and wherever it has gone; where it is
/// missing, the leash alone does it a moment later, for whoever is still in the group. `PR_SET_PDEATHSIG` has to be set in the
/// child, between fork and exec, which the standard library offers only as unsafe code.
const SETPRIV: &str = "/usr/bin/setpriv";

/// What this machine is called.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The program of this name beside the running one, else the one on `PATH`.
pub fn beside(name: &str) -> PathBuf {
    let beside = std::env::current_exe().ok().map(|exe| exe.with_file_name(name)).filter(|path| path.is_file());
    beside.unwrap_or_else(|| PathBuf::from(name))
}

/// Where a program is that is named by its path or, as children look for it, by its name on `PATH`; none if it isn't there.
pub fn find(program: &Path) -> Option<PathBuf> {
    let is_there = |path: &PathBuf| path.metadata().is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0);
    if program.components().count() > 1 {
        return Some(program.to_owned()).filter(is_there);
    }
    let (_, dirs) = inherited(&[]).find(|(name, _)| name == "PATH")?;
    std::env::split_paths(&dirs).map(|dir| dir.join(program)).find(is_there)
}

/// A program to run, and its bounds.
#[derive(Debug, Clone)]
pub struct Spec {
    program: OsString,
    args: Vec<OsString>,
    dir: Option<PathBuf>,
    env: Vec<(OsString, OsString)>,
    without: Vec<&'static str>,
    only: Option<&'static [&'static str]>,
    timeout: Duration,
    max_output_bytes: usize,
    is_asked_first: bool,
}

impl Spec {
    /// `program`, found by `PATH`, with the default bounds.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            dir: None,
            env: Vec::new(),
            without: Vec::new(),
            only: None,
            timeout: DEFAULT_TIMEOUT,
            max_output_bytes: DEFAULT_MAX_OUTPUT_BYTES,
            is_asked_first: false,
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Runs in `dir` instead of the current directory.
    #[must_use]
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = Some(dir.into());
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Doesn't hand on variables whose names begin so.
    #[must_use]
    pub fn without(mut self, prefixes: &[&'static str]) -> Self {
        self.without.extend_from_slice(prefixes);
        self
    }

    /// Hands on no variables but these; what is set here by name stays.
    #[must_use]
    pub fn only_inheriting(mut self, names: &'static [&'static str]) -> Self {
        self.only = Some(names);
        self
    }

    /// Kills the child's group after `timeout`.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Keeps at most so much of each output stream.
    #[must_use]
    pub fn max_output_bytes(mut self, bytes: usize) -> Self {
        self.max_output_bytes = bytes;
        self
    }

    /// However it has to end before its time, it and its group are asked to (SIGTERM) and have [`TIDYING`] for it before they are
    /// killed: for git, which then removes its lock files, here and at the other end of a pipe. It never leaves its group, so that
    /// the leash is enough, and a fetch or a push needn't wait for a second program to start.
    #[must_use]
    pub fn asked_first(mut self) -> Self {
        self.is_asked_first = true;
        self
    }

    /// The program and its arguments.
    pub fn words(&self) -> impl Iterator<Item = &OsStr> {
        std::iter::once(&*self.program).chain(self.args.iter().map(|arg| &**arg))
    }

    fn name(&self) -> String {
        self.program.to_string_lossy().into_owned()
    }
}

/// What a program left when it ended by itself.
#[derive(Debug, Clone)]
pub struct Output {
    /// How it ended.
    pub status: ExitStatus,
    /// The first bytes of its standard output.
    pub stdout: Vec<u8>,
    /// The first bytes of its standard error.
    pub stderr: Vec<u8>,
    /// Whether either stream was longer than what was kept.
    pub truncated: bool,
}

/// Why a program didn't run to its end.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// It isn't installed, or not on `PATH`.
    #[error("{program} isn't installed, or isn't on PATH")]
    NotFound {
        /// The program.
        program: String,
    },
    /// It couldn't be started.
    #[error("{program} couldn't be started: {source}")]
    Start {
        /// The program.
        program: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// Its caller had no more time for it; it and its children were killed.
    #[error("{program} was broken off")]
    BrokenOff {
        /// The program.
        program: String,
    },
    /// It took too long; it and its children were killed.
    #[error("{program} was stopped after {} s", after.as_secs())]
    TimedOut {
        /// The program.
        program: String,
        /// Its bound.
        after: Duration,
        /// What it had written to standard error.
        stderr: Vec<u8>,
    },
}

/// Runs a program to its end or its time-out. An exit code other than 0 is no error here.
pub fn run(spec: &Spec) -> Result<Output, ProcessError> {
    run_unless(spec, &|| false)
}

/// As [`run`], but ends it as its time-out would once `is_over` says so, which is asked several times a second.
pub fn run_unless(spec: &Spec, is_over: &dyn Fn() -> bool) -> Result<Output, ProcessError> {
    run_beside(spec, is_over, &|| ())
}

/// As [`run_unless`]. While the child works, `meanwhile` does what needs doing anyway, once: nobody is asked until it is done.
pub fn run_beside(spec: &Spec, is_over: &dyn Fn() -> bool, meanwhile: &dyn Fn()) -> Result<Output, ProcessError> {
    run_with(spec, is_over, &|_| meanwhile())
}

/// As [`run`]. `started` is told the child's number.
pub fn run_watched(spec: &Spec, started: &dyn Fn(u32)) -> Result<Output, ProcessError> {
    run_with(spec, &|| false, started)
}

fn run_with(spec: &Spec, is_over: &dyn Fn() -> bool, started: &dyn Fn(u32)) -> Result<Output, ProcessError> {
    let leash = Leash::new(spec).map_err(|source| ProcessError::Start { program: spec.name(), source })?;
    let group = leash.group();
    let mut child = match command(spec, group).spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(ProcessError::NotFound { program: spec.name() });
        }
        Err(source) => {
            return Err(ProcessError::Start { program: spec.name(), source });
        }
    };
    let stdout = Drain::start(child.stdout.take(), spec.max_output_bytes);
    let stderr = Drain::start(child.stderr.take(), spec.max_output_bytes);

    let (number, (ended, end)) = (child.id(), mpsc::channel());
    thread::spawn(move || ended.send(child.wait()));
    let (began, mut is_broken_off) = (Instant::now(), false);
    started(number);
    let ended = loop {
        let left = spec.timeout.saturating_sub(began.elapsed());
        let ended = end.recv_timeout(left.min(LOOK_EVERY));
        if !matches!(ended, Err(mpsc::RecvTimeoutError::Timeout)) || began.elapsed() >= spec.timeout {
            break ended;
        }
        is_broken_off = is_over();
        if is_broken_off {
            break ended;
        }
    };
    match ended {
        Ok(Ok(status)) => {
            let (stdout, out_truncated) = stdout.finish();
            let (stderr, err_truncated) = stderr.finish();
            if status.code() == Some(127) && stderr.starts_with(b"setpriv: failed to execute") {
                return Err(ProcessError::NotFound { program: spec.name() });
            }
            Ok(Output { status, stdout, stderr, truncated: out_truncated || err_truncated })
        }
        Ok(Err(source)) => Err(ProcessError::Start { program: spec.name(), source }),
        Err(_) => {
            // It may have ended just now, which is as good.
            let signal = |signal| group.map(|group| rustix::process::kill_process_group(group, signal));
            if spec.is_asked_first {
                signal(Signal::TERM);
                end.recv_timeout(TIDYING).ok();
                // Whoever of the group is still at it holds the pipe.
                stderr.ended(TIDYING);
            }
            signal(Signal::KILL);
            end.recv_timeout(DRAIN_GRACE).ok();
            if is_broken_off {
                return Err(ProcessError::BrokenOff { program: spec.name() });
            }
            Err(ProcessError::TimedOut { program: spec.name(), after: spec.timeout, stderr: stderr.finish().0 })
        }
    }
}

/// Starts a program of ours that outlives this call, in its own process group, with nothing to read. It inherits the whole
/// environment, secrets too: it is meant for the bot to start a wake. The caller polls the child, so that it is reaped.
#[expect(clippy::disallowed_methods, reason = "the one home of Command::new")]
pub fn spawn_detached(
    exe: &Path,
    args: &[impl AsRef<OsStr>],
    env: &[(&str, &OsStr)],
    stdout: Stdio,
    stderr: Stdio,
) -> std::io::Result<Child> {
    Command::new(exe)
        .args(args)
        .envs(env.iter().copied())
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(stderr)
        .process_group(0)
        .spawn()
}

/// Whether children would inherit a variable of this name.
pub fn inherits(name: &str) -> bool {
    inherited(&[]).any(|(inherited, value)| inherited == name && !value.is_empty())
}

#[expect(clippy::disallowed_methods, reason = "the one home of Command::new")]
fn command(spec: &Spec, group: Option<Pid>) -> Command {
    let mut command = if cfg!(target_os = "linux") && !spec.is_asked_first && Path::new(SETPRIV).exists() {
        let mut command = Command::new(SETPRIV);
        command.args(["--pdeathsig", "KILL", "--"]).arg(&spec.program);
        command
    } else {
        // By its path: for a name the standard library would copy this whole process first.
        let found = find(Path::new(&spec.program)).filter(|path| path.is_absolute());
        Command::new(found.map_or_else(|| spec.program.clone(), PathBuf::into_os_string))
    };
    command
        .args(&spec.args)
        .env_clear()
        .envs(
            inherited(&spec.without)
                .filter(|(name, _)| spec.only.is_none_or(|only| only.iter().any(|kept| name == kept))),
        )
        .envs(spec.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(group.map_or(0, Pid::as_raw_pid));
    if let Some(dir) = &spec.dir {
        command.current_dir(dir);
    }
    command
}

/// The environment as children may have it. Settings are read in `config`; this only decides what is handed on.
fn inherited(without: &[&'static str]) -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(move |(name, _)| {
        let name = name.to_string_lossy();
        !is_secret_name(&name) && !without.iter().any(|prefix| name.starts_with(prefix))
    })
}

/// Our own secrets. Others, such as a token that git's credential helper needs, belong to the person's set-up and stay.
fn is_secret_name(name: &str) -> bool {
    // Whoever has it uses it for Bedrock alone. Keys of AWS's serve git and others, too.
    let is_bedrocks = name == "AWS_BEARER_TOKEN_BEDROCK";
    is_bedrocks
        || (name.ends_with("_TOKEN") || name.ends_with("_API_KEY"))
            && OURS.iter().any(|prefix| name.starts_with(prefix))
}

/// A thread that reads a stream to its end and keeps the first bytes.
struct Drain {
    kept: Arc<Mutex<(Vec<u8>, bool)>>,
    done: mpsc::Receiver<()>,
}

impl Drain {
    fn start(stream: Option<impl Read + Send + 'static>, max_bytes: usize) -> Self {
        let kept = Arc::new(Mutex::new((Vec::new(), false)));
        let (finished, done) = mpsc::channel();
        if let Some(mut stream) = stream {
            let kept = Arc::clone(&kept);
            thread::spawn(move || {
                let mut buffer = [0; 8192];
                while let Ok(count @ 1..) = stream.read(&mut buffer) {
                    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                    let room = max_bytes.saturating_sub(kept.0.len());
                    kept.0.extend(buffer.iter().take(count.min(room)));
                    kept.1 |= count > room;
                }
                finished.send(()).ok();
            });
        }
        Self { kept, done }
    }

    /// Waits for the end of the stream.
    fn ended(&self, grace: Duration) {
        self.done.recv_timeout(grace).ok();
    }

    /// What was read, once the stream has ended or its grace is over, and whether there was more.
    fn finish(self) -> (Vec<u8>, bool) {
        self.ended(DRAIN_GRACE);
        std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Whether a child of ours has ended, one that another program started in our place among them; then it is reaped.
pub fn has_ended(child: u32) -> bool {
    use rustix::process::{WaitOptions, waitpid};
    !matches!(waitpid(pid_of(child), WaitOptions::NOHANG), Ok(None))
}

/// How a child ended, for a message.
pub fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "ended in an unknown way".to_owned(),
    }
}

fn pid_of(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

#[cfg(test)]
mod tests;
