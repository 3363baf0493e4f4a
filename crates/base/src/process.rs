//! The only module that starts other programs and looks for running ones.
//!
//! A child gets an empty standard input and an environment without our secrets. Each child has its own process group; a time-out kills
//! the whole group. The kept output is bounded. The child and all its descendants die with us (`leash`). [`Identity`] tells a living
//! process from a later one with the same pid; `end` ends a process with all its descendants.

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
pub use end::{EndError, ask_to_end, end_children, end_process};
pub use identity::Identity;
use leash::Leash;
pub use leashed::{Leashed, Pipes};
pub use lines::{Fuse, Lines};
pub use table::{computing_times, descends_from, holding_flock, is_running, is_running_in, is_stopped, own_children};
pub use within::{become_program, forbid_core_files, start_helper};

/// Prefixes of our own variables. Those that hold a secret are hidden from every child.
pub const OURS: [&str; 7] = ["TELEGRAM_", "ANTHROPIC_", "CLAUDE_", "OPENAI_", "GEMINI_", "BRAVE_", "REVEILLE_"];
/// The default time-out of a child.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(20);
/// The default number of bytes kept of each output stream; the rest is read and dropped.
pub const DEFAULT_MAX_OUTPUT_BYTES: usize = 1 << 20;
/// The wait for output after the child has ended. A daemon left behind may hold the pipe open forever.
const DRAIN_GRACE: Duration = Duration::from_millis(500);
/// The time that a child [asked first](Spec::asked_first) has for cleaning up.
pub const TIDYING: Duration = Duration::from_secs(1);
/// The interval of checks for cancellation.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The Linux program that makes a child die with its parent at once, wherever the child has gone. If it is missing, the leash alone
/// kills the group a moment later. `PR_SET_PDEATHSIG` must be set in the child between fork and exec, which the standard library
/// offers only as unsafe code.
const SETPRIV: &str = "/usr/bin/setpriv";

/// The name of this machine.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The path of a program next to the running one, else the bare name for `PATH`.
pub fn resolve_sibling_program(name: &str) -> PathBuf {
    let beside = std::env::current_exe().ok().map(|exe| exe.with_file_name(name)).filter(|path| path.is_file());
    beside.unwrap_or_else(|| PathBuf::from(name))
}

/// Finds an executable by its path, or by its name on the `PATH` of children; `None` if missing.
pub fn find_program(program: &Path) -> Option<PathBuf> {
    let is_there = |path: &PathBuf| path.metadata().is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0);
    if program.components().count() > 1 {
        return Some(program.to_owned()).filter(is_there);
    }
    let (_, dirs) = list_inherited_variables(&[]).find(|(name, _)| name == "PATH")?;
    std::env::split_paths(&dirs).map(|dir| dir.join(program)).find(is_there)
}

/// A program to run, and its limits.
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
    /// Creates a spec for `program`, found by `PATH`, with the default limits.
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
    pub fn current_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = Some(dir.into());
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Hides variables with these prefixes.
    #[must_use]
    pub fn without_env(mut self, prefixes: &[&'static str]) -> Self {
        self.without.extend_from_slice(prefixes);
        self
    }

    /// Passes on only these variables, besides those set with [`Spec::env`].
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

    /// Keeps at most this many bytes of each output stream.
    #[must_use]
    pub fn max_output_bytes(mut self, bytes: usize) -> Self {
        self.max_output_bytes = bytes;
        self
    }

    /// Sends SIGTERM to the group and waits [`TIDYING`] before any kill. Meant for git, which then removes its lock files, here and at
    /// the other end of a pipe. Git never leaves its group, so the leash is enough and a fetch or push starts without a second program.
    #[must_use]
    pub fn asked_first(mut self) -> Self {
        self.is_asked_first = true;
        self
    }

    /// The program and its arguments.
    pub fn command_line(&self) -> impl Iterator<Item = &OsStr> {
        std::iter::once(&*self.program).chain(self.args.iter().map(|arg| &**arg))
    }

    fn name(&self) -> String {
        self.program.to_string_lossy().into_owned()
    }
}

/// The result of a program that ended by itself.
#[derive(Debug, Clone)]
pub struct Output {
    /// The exit status.
    pub status: ExitStatus,
    /// The first bytes of standard output.
    pub stdout: Vec<u8>,
    /// The first bytes of standard error.
    pub stderr: Vec<u8>,
    /// True if either stream was longer than the kept part.
    pub truncated: bool,
}

/// The reason for a program's failure to run to its end.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The program isn't installed, or not on `PATH`.
    #[error("{program} isn't installed, or isn't on PATH")]
    NotFound {
        /// The program.
        program: String,
    },
    /// The program couldn't be started.
    #[error("{program} couldn't be started: {source}")]
    Start {
        /// The program.
        program: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The caller cancelled the program; the program and its children were killed.
    #[error("{program} was interrupted")]
    BrokenOff {
        /// The program.
        program: String,
    },
    /// The program ran past its time-out; the program and its children were killed.
    #[error("{program} was stopped after {} s", after.as_secs())]
    TimedOut {
        /// The program.
        program: String,
        /// The time-out.
        after: Duration,
        /// The standard error so far.
        stderr: Vec<u8>,
    },
}

/// Runs a program to its end or its time-out. Any exit code counts as success.
pub fn run(spec: &Spec) -> Result<Output, ProcessError> {
    run_unless(spec, &|| false)
}

/// Like [`run`], but stops the program as a time-out does when `is_over` returns true. Polls several times a second.
pub fn run_unless(spec: &Spec, is_over: &dyn Fn() -> bool) -> Result<Output, ProcessError> {
    run_alongside(spec, is_over, &|| ())
}

/// Like [`run_unless`], and calls `meanwhile` once while the child works. `is_over` isn't polled during that call.
pub fn run_alongside(spec: &Spec, is_over: &dyn Fn() -> bool, meanwhile: &dyn Fn()) -> Result<Output, ProcessError> {
    run_child(spec, is_over, &|_| meanwhile())
}

/// Like [`run`], and passes the child's pid to `started`.
pub fn run_with_start_hook(spec: &Spec, started: &dyn Fn(u32)) -> Result<Output, ProcessError> {
    run_child(spec, &|| false, started)
}

fn run_child(spec: &Spec, is_over: &dyn Fn() -> bool, started: &dyn Fn(u32)) -> Result<Output, ProcessError> {
    let leash = Leash::new(spec).map_err(|source| ProcessError::Start { program: spec.name(), source })?;
    let group = leash.group();
    let mut child = match build_command(spec, group).spawn() {
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
            // The child may have ended just now.
            let signal = |signal| group.map(|group| rustix::process::kill_process_group(group, signal));
            if spec.is_asked_first {
                signal(Signal::TERM);
                end.recv_timeout(TIDYING).ok();
                // The last writer in the group holds the pipe open.
                stderr.wait_for_end(TIDYING);
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

/// Starts a program of ours that outlives us, in its own process group, without input. The program inherits the whole environment
/// with its secrets: the bot starts a wake with it. The caller must poll the child to reap it.
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

/// Returns true if children inherit a variable of this name.
pub fn is_inherited_variable(name: &str) -> bool {
    list_inherited_variables(&[]).any(|(inherited, value)| inherited == name && !value.is_empty())
}

#[expect(clippy::disallowed_methods, reason = "the one home of Command::new")]
fn build_command(spec: &Spec, group: Option<Pid>) -> Command {
    let mut command = if cfg!(target_os = "linux") && !spec.is_asked_first && Path::new(SETPRIV).exists() {
        let mut command = Command::new(SETPRIV);
        command.args(["--pdeathsig", "KILL", "--"]).arg(&spec.program);
        command
    } else {
        // By its path: for a bare name the standard library would fork this whole process.
        let found = find_program(Path::new(&spec.program)).filter(|path| path.is_absolute());
        Command::new(found.map_or_else(|| spec.program.clone(), PathBuf::into_os_string))
    };
    command
        .args(&spec.args)
        .env_clear()
        .envs(
            list_inherited_variables(&spec.without)
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

/// The environment for children. `config` reads the settings; this function only filters them.
fn list_inherited_variables(without: &[&'static str]) -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(move |(name, _)| {
        let name = name.to_string_lossy();
        !is_secret_name(&name) && !without.iter().any(|prefix| name.starts_with(prefix))
    })
}

/// Returns true for our own secrets. Others, such as a token for git's credential helper, belong to the person's set-up and stay.
fn is_secret_name(name: &str) -> bool {
    // Used for Bedrock alone, whereas other AWS keys serve git and further tools.
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
    fn wait_for_end(&self, grace: Duration) {
        self.done.recv_timeout(grace).ok();
    }

    /// The kept bytes after the stream's end or the grace time, and true if there were more.
    fn finish(self) -> (Vec<u8>, bool) {
        self.wait_for_end(DRAIN_GRACE);
        std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns true if our child has ended, and reaps it. Also covers children inherited through an exec.
pub fn has_ended(child: u32) -> bool {
    use rustix::process::{WaitOptions, waitpid};
    !matches!(waitpid(to_pid(child), WaitOptions::NOHANG), Ok(None))
}

/// Describes a child's exit status for a message.
pub fn describe_exit(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "ended in an unknown way".to_owned(),
    }
}

fn to_pid(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

#[cfg(test)]
mod tests;
