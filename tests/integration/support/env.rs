//! The environment of one test: a temporary workspace, cleared environment variables and a chosen time, in which the real programs run.

use std::{
    collections::BTreeMap,
    ops::Deref,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use reveille_base::types::ChatRef;
use reveille_store::{Batch, Incoming, NewIncoming, Store};

use super::{
    claude::{API_KEY, FakeClaude},
    database::{self, Database},
    telegram::{FakeTelegram, TOKEN},
};

/// The allowed chat, and the id of its person.
pub(crate) const CHAT: i64 = 4242;
/// Saturday, 15:00 in Berlin.
pub(crate) const NOW: &str = "2026-11-21T14:00:00Z";
/// Maximum wait for anything in a test.
const PATIENCE: Duration = Duration::from_secs(60);

/// The environment of one test; dropping it deletes all its files.
pub(crate) struct TestEnv {
    dir: tempfile::TempDir,
    vars: BTreeMap<String, String>,
    database: Database,
}

/// Gives direct access to the environment's database.
impl Deref for TestEnv {
    type Target = Database;

    fn deref(&self) -> &Database {
        &self.database
    }
}

/// The result of running a program.
#[derive(Debug, Clone)]
pub(crate) struct ProgramOutput {
    /// The program and its arguments; empty if they weren't kept.
    pub(super) command: String,
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(super) stderr: String,
}

impl ProgramOutput {
    pub(crate) fn of(output: &std::process::Output) -> Self {
        Self {
            command: String::new(),
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The text on stderr: progress, notices, errors.
    pub(crate) fn notices(&self) -> &str {
        &self.stderr
    }

    /// Everything the program showed: stdout followed by stderr.
    pub(crate) fn shown(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    /// Checks that stderr contains this text.
    #[track_caller]
    pub(crate) fn assert_tells(&self, part: &str) -> &Self {
        assert!(self.stderr.contains(part), "{part:?} is not on stderr: {self:#?}");
        self
    }

    /// Checks that stderr doesn't contain this text.
    #[track_caller]
    pub(crate) fn assert_never_tells(&self, part: &str) -> &Self {
        assert!(!self.stderr.contains(part), "{part:?} is on stderr: {self:#?}");
        self
    }

    /// Checks that stderr contains this text exactly if a condition holds.
    #[track_caller]
    pub(crate) fn assert_tells_only_if(&self, condition: bool, part: &str) -> &Self {
        if condition { self.assert_tells(part) } else { self.assert_never_tells(part) }
    }

    /// Checks that the program failed with this exit code, and with this reason on stderr.
    #[track_caller]
    pub(crate) fn assert_fails(&self, code: i32, why: &str) -> &Self {
        assert_eq!(self.code, code, "{self:#?}");
        self.assert_tells(why)
    }

    /// Checks that stderr is empty.
    #[track_caller]
    pub(crate) fn assert_silent(&self) -> &Self {
        assert_eq!(self.stderr, "", "{self:#?}");
        self
    }

    /// Parses stdout as one JSON document.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {self:#?}"))
    }

    /// Checks that the program succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{self:#?}");
        self
    }
}

impl TestEnv {
    /// Creates an environment at [`NOW`] in Berlin, without a model, a bot or a repository.
    pub(crate) fn new() -> Self {
        Self::within(&tempfile::env::temp_dir())
    }

    /// Creates an environment in a subdirectory of `parent`. (The sandbox has its own directory for temporary files, so the system's is
    /// hidden in it.)
    pub(crate) fn within(parent: &Path) -> Self {
        let dir = tempfile::tempdir_in(parent).unwrap();
        std::fs::create_dir(dir.path().join("home")).unwrap();
        let database = Database::in_file(dir.path().join("workspace/messages.db"));
        let mut env = Self { dir, vars: BTreeMap::new(), database };
        let workspace = env.workspace().display().to_string();
        env.set("WORKSPACE_DIR", &workspace).set("TIMEZONE", "Europe/Berlin").set("REVEILLE_NOW", NOW);
        env.set("HOME", &env.path("home").display().to_string());
        env.set("PATH", &search_path());
        // If coverage is measured, the programs' coverage counts too.
        if let Some(profile) = variable("LLVM_PROFILE_FILE") {
            env.set("LLVM_PROFILE_FILE", &profile);
        }
        env.set("GIT_CONFIG_NOSYSTEM", "1").set("QUIET_HOURS", "none").set("REFLECT_AT", "none");
        if let Some(url) = database::of_a_world() {
            env.set("DATABASE_URL", &url);
        }
        env
    }

    /// Creates an environment with a bot's token and the allowed chat [`CHAT`].
    pub(crate) fn with_telegram(telegram: &FakeTelegram) -> Self {
        let mut env = Self::new();
        env.hear(telegram);
        env
    }

    /// Sets the bot's token, and allows [`CHAT`].
    pub(crate) fn hear(&mut self, telegram: &FakeTelegram) -> &mut Self {
        self.set("TELEGRAM_BOT_TOKEN", TOKEN).set("TELEGRAM_API_URL", &telegram.url());
        self.set("ALLOWED_CHAT_IDS", &CHAT.to_string())
    }

    /// Copies the environment with all its files. Settings with this one's directory get the copy's.
    pub(crate) fn copy(&self) -> Self {
        let dir = tempfile::tempdir_in(self.dir.path().parent().unwrap()).unwrap();
        let (here, there) = (self.dir.path().display().to_string(), dir.path().display().to_string());
        self.run("cp", &["-a", &format!("{here}/."), &there]).ok();
        let vars = self.vars.iter().map(|(name, value)| (name.clone(), value.replace(&here, &there))).collect();
        let database = Database::in_file(dir.path().join("workspace/messages.db"));
        let mut copy = Self { dir, vars, database };
        if let Some(url) = self.vars.get("DATABASE_URL") {
            copy.set("DATABASE_URL", &database::copy(url));
        }
        let config = copy.brain().join(".git/config");
        if let Ok(text) = std::fs::read_to_string(&config) {
            std::fs::write(&config, text.replace(&here, &there)).unwrap();
        }
        copy
    }

    /// The directory of the whole environment.
    pub(crate) fn root(&self) -> &Path {
        self.dir.path()
    }

    /// Makes the fake Claude the model.
    pub(crate) fn think_with(&mut self, claude: &FakeClaude) -> &mut Self {
        self.set("ANTHROPIC_API_KEY", API_KEY)
            .set("ANTHROPIC_BASE_URL", &claude.url())
            .set("MODEL", "claude-sonnet-5-5")
    }

    /// Sets a variable for the programs.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> &mut Self {
        self.vars.insert(name.to_owned(), value.to_owned());
        if name == "DATABASE_URL" {
            self.database = Database::Server(value.to_owned());
        }
        self
    }

    /// A variable's value.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.vars.get(name).map_or("", String::as_str)
    }

    /// Removes a variable.
    pub(crate) fn unset(&mut self, name: &str) -> &mut Self {
        self.vars.remove(name);
        if name == "DATABASE_URL" {
            self.database = Database::in_file(self.workspace().join("messages.db"));
        }
        self
    }

    /// Sets the time, in RFC 3339.
    pub(crate) fn at(&mut self, now: &str) -> &mut Self {
        self.set("REVEILLE_NOW", now)
    }

    /// The time in this environment.
    pub(crate) fn now(&self) -> &str {
        &self.vars["REVEILLE_NOW"]
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.path("workspace")
    }

    /// The memory's work tree.
    pub(crate) fn brain(&self) -> PathBuf {
        self.workspace().join("brain")
    }

    /// Runs one wake, which must succeed. The result's stdout holds its replies at the terminal instead of its report.
    #[track_caller]
    pub(crate) fn run_for_terminal_replies(&self) -> ProgramOutput {
        let ran = self.wake(&["--once", "--json"]).ok();
        let report = ran.json();
        let replies = report["replies"].as_array().unwrap().iter().filter(|reply| reply["chat_id"] == 0);
        ProgramOutput { stdout: replies.map(|reply| format!("{}\n", reply["text"].as_str().unwrap())).collect(), ..ran }
    }

    /// Runs a program with a terminal for its input and output, and another one for its standard error.
    pub(crate) fn on_terminal(&self, program: &str, args: &[&str]) -> ProgramOutput {
        let (out, err) = (Terminal::open(), Terminal::open());
        let mut command = self.command(program, args);
        command.stdin(out.stdio()).stdout(out.stdio()).stderr(err.stdio());
        let mut child = command.spawn().unwrap();
        // A terminal closes once nobody holds it; the command is one of the holders.
        drop(command);
        let (out, err) = (out.read(), err.read());
        let status = child.wait().unwrap();
        let text = |shown: std::thread::JoinHandle<String>| shown.join().unwrap();
        let command = [&[program], args].concat().join(" ");
        ProgramOutput { command, code: status.code().unwrap_or(-1), stdout: text(out), stderr: text(err) }
    }

    /// Starts a program with one terminal for input, output and errors, at which the test types.
    pub(crate) fn talk(&self, program: &str, args: &[&str]) -> Talk {
        let terminal = Terminal::open();
        let mut command = self.command(program, args);
        command.stdin(terminal.stdio()).stdout(terminal.stdio()).stderr(terminal.stdio());
        let child = command.spawn().unwrap();
        drop(command);
        let keys = terminal.outer.try_clone().unwrap();
        let shown = Arc::new(Mutex::new(String::new()));
        let (Terminal { mut outer, inner }, seen) = (terminal, Arc::clone(&shown));
        drop(inner);
        let reading = std::thread::spawn(move || {
            let mut bytes = [0; 4_096];
            // The end of a terminal is an error.
            while let Ok(n @ 1..) = std::io::Read::read(&mut outer, &mut bytes) {
                seen.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..n]).replace("\r\n", "\n"));
            }
        });
        Talk { running: Running(Some(child)), keys, shown, reading, from: 0 }
    }

    /// A command in this environment.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> Command {
        #[expect(clippy::disallowed_methods, reason = "the tests' one home of children")]
        let mut command = Command::new(program);
        command.args(args).env_clear().envs(&self.vars).current_dir(self.dir.path()).stdin(Stdio::null());
        command
    }

    /// Runs a program to its end.
    pub(crate) fn run(&self, program: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> ProgramOutput {
        let program = program.as_ref();
        let ran = ProgramOutput::of(&self.command(program, args).output().unwrap());
        ProgramOutput { command: format!("{} {}", program.display(), args.join(" ")), ..ran }
    }

    /// Runs a program to its end, with this text as its standard input.
    pub(crate) fn run_with_input(&self, program: &str, args: &[&str], input: &str) -> ProgramOutput {
        let mut command = self.command(program, args);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
        ProgramOutput::of(&child.wait_with_output().unwrap())
    }

    pub(crate) fn wake(&self, args: &[&str]) -> ProgramOutput {
        self.run(env!("CARGO_BIN_EXE_wake"), args)
    }

    pub(crate) fn health(&self, args: &[&str]) -> ProgramOutput {
        self.run(env!("CARGO_BIN_EXE_health"), args)
    }

    pub(crate) fn bot(&self, args: &[&str]) -> ProgramOutput {
        self.run(env!("CARGO_BIN_EXE_bot"), args)
    }

    /// Runs one wake, which must succeed, and returns its report.
    #[track_caller]
    pub(crate) fn once(&self) -> serde_json::Value {
        self.wake(&["--once", "--json"]).ok().json()
    }

    /// Starts a program without waiting for it. Dropping the value kills the program.
    pub(crate) fn start(&self, program: &str, args: &[&str]) -> Running {
        let child = self.command(program, args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Running(Some(child))
    }

    /// Like [`TestEnv::start`], but stderr with the log goes to a file that can be read meanwhile.
    pub(crate) fn start_logged(&self, program: &str, args: &[&str], log: &Path) -> Running {
        let stderr = std::fs::File::create(log).unwrap();
        let mut command = self.command(program, args);
        if self.get("REVEILLE_LOG").is_empty() {
            command.env("REVEILLE_LOG", "info");
        }
        let child = command.stdout(Stdio::piped()).stderr(stderr).spawn().unwrap();
        Running(Some(child))
    }

    /// Runs git in the memory's work tree as a person would; returns its output.
    #[track_caller]
    pub(crate) fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.brain(), args)
    }

    #[track_caller]
    pub(crate) fn git_in(&self, dir: &Path, args: &[&str]) -> String {
        let person = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"];
        let dir = dir.display().to_string();
        let args: Vec<&str> = ["-C", &dir].into_iter().chain(person).chain(args.iter().copied()).collect();
        let ran = self.run("git", &args).ok();
        ran.stdout.trim_end().to_owned()
    }

    /// Creates a bare repository to push to.
    pub(crate) fn bare_remote(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        self.git_in(self.dir.path(), &["init", "-q", "--bare", "-b", "main", &path.display().to_string()]);
        path
    }

    /// Reads a memory file from the work tree.
    #[track_caller]
    pub(crate) fn memory(&self, path: &str) -> String {
        std::fs::read_to_string(self.brain().join(path)).unwrap()
    }

    #[track_caller]
    pub(crate) fn write_memory(&self, path: &str, text: &str) {
        std::fs::write(self.brain().join(path), text).unwrap();
    }

    /// Opens the store directly, besides the programs.
    pub(crate) fn store(&self) -> Store {
        std::fs::create_dir_all(self.workspace()).unwrap();
        match &self.database {
            Database::Server(url) => database::open(url),
            Database::File(path) => Store::open(path).unwrap(),
        }
    }

    /// Returns whether a program has created the store.
    pub(crate) fn has_store(&self) -> bool {
        match &self.database {
            Database::Server(_) => self.query("SELECT to_regclass('cycles') IS NOT NULL"),
            Database::File(path) => path.exists(),
        }
    }

    /// Queues a message as the bot would, at the present time.
    pub(crate) fn receive(&self, chat: i64, text: &str) -> i64 {
        let mut store = self.store();
        let n = i64::try_from(self.count_received()).unwrap();
        let message = NewIncoming {
            chat: ChatRef::from_number(chat),
            text: text.to_owned(),
            kind: "text".to_owned(),
            sender_name: Some("Ann".to_owned()),
            channel_message_id: Some(100 + n),
            update_id: Some(1_000 + n),
            ..NewIncoming::default()
        };
        let now = reveille_base::clock::parse_time(&self.vars["REVEILLE_NOW"]).unwrap();
        let batch = Batch { bot_id: 99, next_offset: 1_001 + n, messages: vec![message], ..Batch::default() };
        let accepted = store.inbox_mut().accept_batch(&batch, now).unwrap();
        accepted.stored[0]
    }

    /// The messages still in the queue.
    pub(crate) fn queued(&self) -> Vec<Incoming> {
        self.store().inbox().list_queued_messages().unwrap()
    }

    /// The value of a trailer of the last commit.
    #[track_caller]
    pub(crate) fn trailer(&self, key: &str) -> String {
        self.git(&["log", "-1", &format!("--format=%(trailers:key={key},valueonly)")]).trim().to_owned()
    }

    /// The commits, newest first: author and subject, one per line.
    #[track_caller]
    pub(crate) fn log(&self) -> String {
        self.git(&["log", "--format=%an: %s"])
    }

    /// Checks the conditions that must hold after any wake: database and repository are sound, no plan files are left, and a person's next
    /// commit contains only their change.
    #[track_caller]
    pub(crate) fn check_sound(&self) {
        self.wait_for_end_of_wake();
        assert_eq!(self.store().check_integrity().unwrap(), Ok(()));
        self.git(&["fsck", "--strict", "--no-dangling"]);
        let plans = reveille_cycle::plan_file::left_over(&self.workspace()).unwrap();
        assert!(plans.is_empty(), "plan files are left: {plans:?}");
        self.write_memory("memory/person.md", "Mine.\n");
        self.git(&["add", "memory/person.md"]);
        self.git(&["commit", "-q", "-m", "A person's own"]);
        assert_eq!(self.git(&["show", "--name-only", "--format="]), "memory/person.md");
        assert_eq!(self.git(&["status", "--short"]), "");
    }
}

/// A pseudo-terminal: text written to `inner` can be read from `outer`.
pub(super) struct Terminal {
    pub(super) outer: std::fs::File,
    pub(super) inner: std::fs::File,
}

impl Terminal {
    pub(super) fn open() -> Self {
        use rustix::pty;
        use std::os::unix::fs::OpenOptionsExt as _;
        let outer = pty::openpt(pty::OpenptFlags::RDWR | pty::OpenptFlags::NOCTTY).unwrap();
        pty::grantpt(&outer).unwrap();
        pty::unlockpt(&outer).unwrap();
        let name = pty::ptsname(&outer, Vec::new()).unwrap();
        let no_tty = i32::try_from(rustix::fs::OFlags::NOCTTY.bits()).unwrap();
        let inner =
            std::fs::OpenOptions::new().read(true).write(true).custom_flags(no_tty).open(name.to_str().unwrap());
        Self { outer: outer.into(), inner: inner.unwrap() }
    }

    pub(super) fn stdio(&self) -> Stdio {
        self.inner.try_clone().unwrap().into()
    }

    /// Reads everything shown, until nobody holds the terminal any more, in a thread. Terminals end lines with two characters.
    fn read(self) -> std::thread::JoinHandle<String> {
        let Self { mut outer, inner } = self;
        drop(inner);
        std::thread::spawn(move || {
            let mut shown = Vec::new();
            // The end of a terminal is an error.
            std::io::Read::read_to_end(&mut outer, &mut shown).ok();
            String::from_utf8_lossy(&shown).replace("\r\n", "\n")
        })
    }
}

/// A program with a terminal at which the test types.
pub(crate) struct Talk {
    running: Running,
    keys: std::fs::File,
    shown: Arc<Mutex<String>>,
    reading: std::thread::JoinHandle<()>,
    from: usize,
}

impl Talk {
    /// Types keys.
    pub(crate) fn types(&mut self, keys: &str) {
        std::io::Write::write_all(&mut self.keys, keys.as_bytes()).unwrap();
    }

    /// Waits until this text is shown, after the text of the previous wait. Returns the text in between.
    #[track_caller]
    pub(crate) fn wait_for_text(&mut self, text: &str) -> String {
        let begun = Instant::now();
        loop {
            let shown = self.shown.lock().unwrap().get(self.from..).unwrap_or_default().to_owned();
            if let Some((between, _)) = shown.split_once(text) {
                self.from += between.len() + text.len();
                return between.to_owned();
            }
            assert!(begun.elapsed() < PATIENCE, "{text:?} was never shown: {shown}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        self.running.signal(signal);
    }

    /// Waits until the program ends. Returns its exit code and everything shown.
    pub(crate) fn end(mut self) -> (i32, String) {
        let child = self.running.0.as_mut().unwrap();
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < PATIENCE, "the program never ended: {}", self.shown.lock().unwrap());
            std::thread::sleep(Duration::from_millis(10));
        };
        drop(self.keys);
        self.reading.join().unwrap();
        let shown = self.shown.lock().unwrap().clone();
        (status.code().unwrap_or(-1), shown)
    }
}

/// A running program.
pub(crate) struct Running(Option<Child>);

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.0.as_ref().unwrap().id()
    }

    /// Returns whether the program has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.0.as_mut().unwrap().try_wait().unwrap().is_some()
    }

    /// Sends a signal to the program.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.pid()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits until the program ends.
    pub(crate) fn end(mut self) -> ProgramOutput {
        ProgramOutput::of(&self.0.take().unwrap().wait_with_output().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

/// The search path for programs: the test's own.
pub(crate) fn search_path() -> String {
    variable("PATH").unwrap()
}

#[expect(clippy::disallowed_methods, reason = "the tests' one look at the environment")]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Returns whether a path is below a directory that the sandbox replaces with its own.
pub(crate) fn is_private_inside(path: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    ["/tmp", "/var/tmp"].iter().any(|private| real(path).starts_with(real(Path::new(private))))
}

/// The parent directory for environments whose files must be visible in the sandbox: the target directory, or the person's cache if the
/// clone is below a directory for temporary files.
pub(crate) fn sandbox_visible_dir() -> PathBuf {
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    if !is_private_inside(&target) {
        return target;
    }
    let home = || variable("HOME").map(|home| Path::new(&home).join(".cache"));
    let cache = variable("XDG_CACHE_HOME").map(PathBuf::from).filter(|dir| dir.is_absolute()).or_else(home);
    let cache = cache.expect("HOME, or a clone that isn't below /tmp").join("reveille-tests");
    assert!(
        !is_private_inside(&cache),
        "{} is below /tmp, and so is the clone: nothing there is seen in the sandbox",
        cache.display()
    );
    std::fs::create_dir_all(&cache).unwrap();
    cache
}

/// Waits until a condition holds; fails the test if it never does.
#[track_caller]
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "this never happened: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
