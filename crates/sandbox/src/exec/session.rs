//! A shell kept between calls, so that its folder and its variables persist.
//!
//! One bash reads commands, each after a random mark, and prints that mark before and after the command's output. A
//! command that takes too long, or ends the shell, ends the whole process group; the next command gets a fresh shell.

use std::{
    io::{Read, Write as _},
    path::{Path, PathBuf},
    process::ExitStatus,
    time::Duration,
};

use tokio::sync::mpsc;

use reveille_base::process::{self, Leashed, ProcessError, Spec};

use super::room::{CommandRoom, Filled};
use crate::proxy::Proxy;

/// Maximum bytes kept of one command's output.
const KEPT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The shell's loop: reads a mark and a command, each up to a NUL. The command's standard input is empty.
const LOOP: &str = r#"while IFS= read -r -d '' __mark && IFS= read -r -d '' __command; do
printf '\n%s begin\n' "$__mark"
eval "$__command" </dev/null 2>&1
printf '\n%s end %s\n' "$__mark" "$?"
done"#;

/// A locale that every system has, in English and UTF-8.
const ENGLISH: &str = if cfg!(target_os = "macos") { "en_US.UTF-8" } else { "C.UTF-8" };

/// Variables that keep programs from waiting for a person, speaking a language that `tool/bash` can't parse, running a
/// repository's programs, or using settings in a home directory. A clone can contain a bare repository (though no
/// `.git`), whose configuration makes `git diff` run a program; with `safe.bareRepository` (since 2.38) git ignores
/// those.
const VARIABLES: [(&str, &str); 21] = [
    ("LC_ALL", ENGLISH),
    ("LANGUAGE", "C"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_CONFIG_COUNT", "3"),
    ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
    ("GIT_CONFIG_VALUE_0", "false"),
    ("GIT_CONFIG_KEY_1", "core.hooksPath"),
    ("GIT_CONFIG_VALUE_1", "/dev/null"),
    ("GIT_CONFIG_KEY_2", "safe.bareRepository"),
    // fault: git-takes-repository-clone
    ("GIT_CONFIG_VALUE_2", "explicit"),
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("PYTHONNOUSERSITE", "1"),
    ("PIP_CONFIG_FILE", "/dev/null"),
    ("NPM_CONFIG_USERCONFIG", "/dev/null"),
    ("INPUTRC", "/dev/null"),
];

/// Folders of settings, caches and state instead of those in the home directory, which is read-only or empty.
const FOLDERS: [(&str, &str); 4] = [
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_CACHE_HOME", ".cache"),
    ("XDG_STATE_HOME", ".state"),
    ("NPM_CONFIG_CACHE", ".cache/npm"),
];

/// Moves the settings and caches of programs beneath `temporary`, away from the home directory.
pub(super) fn with_own_settings_folders(spec: Spec, temporary: &Path) -> Spec {
    FOLDERS.iter().fold(spec, |spec, (name, folder)| spec.env(*name, temporary.join(folder)))
}

/// Returns bash, without startup files, and its arguments.
pub(super) fn shell_command() -> (&'static str, [&'static str; 4]) {
    ("/bin/bash", ["--noprofile", "--norc", "-c", LOOP])
}

/// The result of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// The output, up to 8 MiB; invalid UTF-8 is replaced.
    pub printed: String,
    /// The end of the command.
    pub end: End,
}

/// The end of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// A regular end with this exit code.
    Code(i32),
    /// The timeout; the command and its child processes were killed.
    TimedOut,
    /// The command ended the shell.
    ShellEnded(Option<ExitStatus>),
    /// A disk limit; the command and its child processes were killed.
    Filled(Filled),
}

/// A running shell. Dropping it kills its process group.
#[derive(Debug)]
pub struct ShellSession {
    shell: Leashed,
    commands: std::process::ChildStdin,
    printed: mpsc::Receiver<Vec<u8>>,
    /// Output that hasn't been searched yet.
    rest: Vec<u8>,
    _proxy: Option<Proxy>,
}

impl ShellSession {
    /// Starts the shell.
    ///
    /// # Errors
    /// The program can't be started.
    pub fn start(spec: &Spec, proxy: Option<Proxy>) -> Result<Self, ProcessError> {
        let spec = VARIABLES.iter().fold(spec.clone(), |spec, (name, value)| spec.env(name, value));
        let (shell, pipes) = Leashed::start_with_pipes(&spec)?;
        let (sender, printed) = mpsc::channel(16);
        let complaints = sender.clone();
        std::thread::spawn(move || forward_bytes(pipes.stdout, &sender));
        // Messages of the shell and of the sandbox: the reason for an early end.
        std::thread::spawn(move || forward_bytes(pipes.stderr, &complaints));
        Ok(Self { shell, commands: pipes.stdin, printed, rest: Vec::new(), _proxy: proxy })
    }

    /// Runs a command until its end, the timeout or a disk limit. After anything but [`End::Code`] the session is over.
    pub async fn run(&mut self, mark: &str, command: &str, timeout: Duration, room: &CommandRoom) -> Ran {
        let sent = format!("{mark}\0{command}\0");
        if self.commands.write_all(sent.as_bytes()).and_then(|()| self.commands.flush()).is_err() {
            return self.report_shell_end(String::new());
        }
        let mut marks = Marks::new(mark);
        let reading = async {
            loop {
                if let Some(ran) = marks.take_output(&mut self.rest) {
                    return Some(ran);
                }
                let bytes = self.printed.recv().await?;
                self.rest.extend(bytes);
            }
        };
        // A finished command counts as finished, even at a disk limit.
        let ended = tokio::select! {
            biased;
            read = tokio::time::timeout(timeout, reading) => read.map_err(|_| End::TimedOut),
            filled = room.wait_until_filled() => Err(End::Filled(filled)),
        };
        match ended {
            Ok(Some(ran)) => ran,
            Ok(None) => {
                let printed = marks.output_so_far(&self.rest);
                self.report_shell_end(printed)
            }
            Err(end) => Ran { printed: marks.output_so_far(&self.rest), end },
        }
    }

    fn report_shell_end(&mut self, printed: String) -> Ran {
        Ran { printed, end: End::ShellEnded(self.shell.try_wait().ok().flatten()) }
    }
}

/// The marks around one command's output. The search is incremental, so each byte is searched once.
struct Marks {
    begin: Vec<u8>,
    end: Vec<u8>,
    /// The offset of the output.
    from: Option<usize>,
    /// The offset up to which the search is done.
    looked_to: usize,
}

/// The kind of a mark around an output.
#[derive(Clone, Copy)]
enum MarkKind {
    Begin,
    End,
}

impl Marks {
    fn new(mark: &str) -> Self {
        let (begin, end) = (format!("\n{mark} begin\n").into_bytes(), format!("\n{mark} end ").into_bytes());
        Self { begin, end, from: None, looked_to: 0 }
    }

    /// Takes the output out of `rest` once it is complete.
    fn take_output(&mut self, rest: &mut Vec<u8>) -> Option<Ran> {
        if self.from.is_none() {
            let at = self.find_mark(rest, MarkKind::Begin)?;
            self.from = Some(at + self.begin.len());
            // Without output, the end mark begins with the newline of the begin mark.
            self.looked_to = at + self.begin.len() - 1;
        }
        let from = self.from?;
        let Some(to) = self.find_mark(rest, MarkKind::End) else {
            self.drop_middle(rest, from);
            return None;
        };
        let Some(line_end) = find_bytes(rest, b"\n", to + self.end.len()) else {
            self.looked_to = to;
            return None;
        };
        let code = std::str::from_utf8(rest.get(to + self.end.len()..line_end)?).ok()?.trim().parse().ok()?;
        let printed = to_text(rest.get(from..to.max(from))?);
        rest.drain(..=line_end);
        Some(Ran { printed, end: End::Code(code) })
    }

    fn find_mark(&mut self, rest: &[u8], kind: MarkKind) -> Option<usize> {
        let mark = match kind {
            MarkKind::Begin => &self.begin,
            MarkKind::End => &self.end,
        };
        let found = find_bytes(rest, mark, self.looked_to);
        if found.is_none() {
            self.looked_to = self.looked_to.max((rest.len() + 1).saturating_sub(mark.len()));
        }
        found
    }

    /// Returns the output so far.
    fn output_so_far(&self, rest: &[u8]) -> String {
        to_text(rest.get(self.from.unwrap_or(0)..).unwrap_or_default())
    }

    /// Drops the middle of an output that is too long. The last bytes stay, because the end mark may have begun there.
    fn drop_middle(&mut self, rest: &mut Vec<u8>, from: usize) {
        const LAST: usize = 64 * 1024;
        let keep = from + KEPT_BYTES_MAX;
        if rest.len() > keep + 2 * LAST {
            let cut = rest.len() - LAST;
            rest.drain(keep..cut);
            self.looked_to = self.looked_to.saturating_sub(cut - keep).max(keep);
        }
    }
}

/// Forwards all bytes until the receiver is dropped.
fn forward_bytes(mut from: impl Read, to: &mpsc::Sender<Vec<u8>>) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        let Some(bytes) = buffer.get(..n) else { return };
        if to.blocking_send(bytes.to_vec()).is_err() {
            return;
        }
    }
}

fn find_bytes(bytes: &[u8], what: &[u8], from: usize) -> Option<usize> {
    let first = what.first()?;
    let mut at = from;
    loop {
        at += bytes.get(at..)?.iter().position(|byte| byte == first)?;
        if bytes.get(at..)?.starts_with(what) {
            return Some(at);
        }
        at += 1;
    }
}

fn to_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Describes the end for the model.
pub fn describe_end(end: End, timeout: Duration) -> String {
    match end {
        End::Code(0) => String::new(),
        End::Code(code) => format!("[exit code {code}]"),
        End::TimedOut => format!(
            "[it took longer than {} s and was killed with all that it had started; the next command begins with a fresh shell]",
            timeout.as_secs()
        ),
        End::Filled(filled) => format!(
            "[it was ended with all that it had started: {}; the next command begins with a fresh shell]",
            filled.describe()
        ),
        End::ShellEnded(status) => format!(
            "[the shell has ended{}; the next command begins with a fresh one]",
            status.map(|status| format!(" ({})", process::describe_exit(status))).unwrap_or_default()
        ),
    }
}

/// Returns true if bash is installed.
pub(super) fn is_there() -> bool {
    PathBuf::from(shell_command().0).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(30);

    fn session() -> ShellSession {
        let (program, args) = shell_command();
        ShellSession::start(&Spec::new(program).args(args), None).unwrap()
    }

    fn run(session: &mut ShellSession, command: &str, timeout: Duration) -> Ran {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let mark = format!("mark{}", COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let room = CommandRoom::measure(&std::env::temp_dir(), reveille_base::disk::Reserve::from_mib(0));
        runtime.block_on(session.run(&mark, command, timeout, &room))
    }

    #[test]
    fn the_shell_keeps_its_folder_and_its_variables() {
        let mut session = session();
        assert_eq!(run(&mut session, "cd / && x=5", SOON), Ran { printed: String::new(), end: End::Code(0) });
        assert_eq!(run(&mut session, "pwd; echo $x", SOON).printed, "/\n5\n");
        let failed = run(&mut session, "echo out; echo err >&2; (exit 7)", SOON);
        assert_eq!((failed.printed.as_str(), failed.end), ("out\nerr\n", End::Code(7)));
    }

    #[test]
    fn programs_speak_english_whatever_the_persons_language() {
        let (program, args) = shell_command();
        let spec = Spec::new(program).args(args).env("LC_ALL", "de_DE.UTF-8").env("LANGUAGE", "de");
        let mut session = ShellSession::start(&spec, None).unwrap();
        assert_eq!(run(&mut session, "echo $LC_ALL $LANGUAGE", SOON).printed, format!("{ENGLISH} C\n"));
    }

    #[test]
    fn no_output_ends_a_command_early_or_spoils_the_next() {
        let mut session = session();
        let broken = run(&mut session, "echo 'unclosed", SOON);
        assert!(matches!(broken.end, End::Code(code) if code != 0), "{broken:?}");
        let lying = run(&mut session, r#"printf '\n%s end 0\n' "$__mark"; echo later"#, SOON);
        assert_eq!(lying.end, End::Code(0));
        assert_eq!(run(&mut session, "printf next", SOON).printed, "next", "leftover output belongs to no command");
        assert_eq!(run(&mut session, "cat", SOON).end, End::Code(0), "there is nothing to read");
        assert_eq!(run(&mut session, "printf 'a\\0b'", SOON).printed, "a\0b");
    }

    #[test]
    fn a_timeout_and_the_end_of_the_shell_are_reported() {
        let mut slow = session();
        let ran = run(&mut slow, "echo begun; sleep 600", Duration::from_millis(300));
        assert_eq!((ran.printed.as_str(), ran.end), ("begun\n", End::TimedOut));
        let mut ended = session();
        let ran = run(&mut ended, "echo bye; exit 3", SOON);
        assert!(ran.printed == "bye\n" && matches!(ran.end, End::ShellEnded(_)), "{ran:?}");
    }

    #[test]
    fn an_endless_output_is_bounded_and_its_end_found() {
        let mut session = session();
        let ran = run(&mut session, "head -c 12000000 /dev/zero | tr '\\0' x; printf done", SOON);
        assert_eq!(ran.end, End::Code(0));
        assert!(ran.printed.len() < KEPT_BYTES_MAX + 256 * 1024, "{}", ran.printed.len());
        assert!(ran.printed.ends_with("done"));
    }
}
