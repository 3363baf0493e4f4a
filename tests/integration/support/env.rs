//! A world of one test: a temporary workspace, a cleared environment, a chosen time, and the real programs run in it.

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

/// The chat (and person) that tests allow.
pub(crate) const CHAT: i64 = 4242;
/// Saturday, 15:00 in Berlin.
pub(crate) const NOW: &str = "2026-11-21T14:00:00Z";
/// Nothing in a test takes longer, in seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// A temporary world. Everything in it goes with it.
pub(crate) struct TestEnv {
    dir: tempfile::TempDir,
    vars: BTreeMap<String, String>,
    database: Database,
}

/// A world answers for its database, too.
impl Deref for TestEnv {
    type Target = Database;

    fn deref(&self) -> &Database {
        &self.database
    }
}

/// What a program left.
#[derive(Debug, Clone)]
pub(crate) struct Ran {
    /// The program and its arguments, where this world has run it.
    pub(super) command: String,
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(super) stderr: String,
}

impl Ran {
    pub(crate) fn of(output: &std::process::Output) -> Self {
        Self {
            command: String::new(),
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// What it told beside its output: progress, notices, complaints.
    pub(crate) fn notices(&self) -> &str {
        &self.stderr
    }

    /// All that it showed: its output, and what it told beside it.
    pub(crate) fn shown(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    /// Checks that it told this beside its output.
    #[track_caller]
    pub(crate) fn assert_tells(&self, part: &str) -> &Self {
        assert!(self.stderr.contains(part), "{part:?} is not told: {self:#?}");
        self
    }

    /// Checks that it told nothing of this beside its output.
    #[track_caller]
    pub(crate) fn assert_never_tells(&self, part: &str) -> &Self {
        assert!(!self.stderr.contains(part), "{part:?} is told: {self:#?}");
        self
    }

    /// Checks that it told this beside its output where a condition holds, and not where it doesn't.
    #[track_caller]
    pub(crate) fn assert_tells_only_if(&self, condition: bool, part: &str) -> &Self {
        if condition { self.assert_tells(part) } else { self.assert_never_tells(part) }
    }

    /// Checks that it failed with an exit code, and told why.
    #[track_caller]
    pub(crate) fn assert_fails(&self, code: i32, why: &str) -> &Self {
        assert_eq!(self.code, code, "{self:#?}");
        self.assert_tells(why)
    }

    /// Checks that it told nothing beside its output.
    #[track_caller]
    pub(crate) fn assert_silent(&self) -> &Self {
        assert_eq!(self.stderr, "", "{self:#?}");
        self
    }

    /// The one JSON document on stdout.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {self:#?}"))
    }

    /// Checks that it went well.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{self:#?}");
        self
    }
}

impl TestEnv {
    /// An offline world at [`NOW`] in Berlin, without a bot and without a repository yet.
    pub(crate) fn new() -> Self {
        Self::within(&tempfile::env::temp_dir())
    }

    /// The same in a directory of this one. The system's for temporary files is another one within the sandbox.
    pub(crate) fn within(parent: &Path) -> Self {
        let dir = tempfile::tempdir_in(parent).unwrap();
        std::fs::create_dir(dir.path().join("home")).unwrap();
        let database = Database::in_file(dir.path().join("workspace/messages.db"));
        let mut env = Self { dir, vars: BTreeMap::new(), database };
        let workspace = env.workspace().display().to_string();
        env.set("WORKSPACE_DIR", &workspace).set("TIMEZONE", "Europe/Berlin").set("REVEILLE_NOW", NOW);
        env.set("HOME", &env.path("home").display().to_string());
        env.set("PATH", &search_path());
        // Where coverage is measured, the programs' own counts too.
        if let Some(profile) = variable("LLVM_PROFILE_FILE") {
            env.set("LLVM_PROFILE_FILE", &profile);
        }
        env.set("GIT_CONFIG_NOSYSTEM", "1").set("QUIET_HOURS", "none").set("REFLECT_AT", "none");
        if let Some(url) = database::of_a_world() {
            env.set("DATABASE_URL", &url);
        }
        env
    }

    /// The same with a bot's token and the chat [`CHAT`].
    pub(crate) fn with_telegram(telegram: &FakeTelegram) -> Self {
        let mut env = Self::new();
        env.hear(telegram);
        env
    }

    /// Has the bot's token, and listens to [`CHAT`] there.
    pub(crate) fn hear(&mut self, telegram: &FakeTelegram) -> &mut Self {
        self.set("TELEGRAM_BOT_TOKEN", TOKEN).set("TELEGRAM_API_URL", &telegram.url());
        self.set("ALLOWED_CHAT_IDS", &CHAT.to_string())
    }

    /// Another world that is as this one is now: everything is copied, and what names this one's directory names the other's.
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

    /// Where all of it is.
    pub(crate) fn root(&self) -> &Path {
        self.dir.path()
    }

    /// Lets the fake Claude be the mind.
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

    /// Takes a variable away.
    pub(crate) fn unset(&mut self, name: &str) -> &mut Self {
        self.vars.remove(name);
        if name == "DATABASE_URL" {
            self.database = Database::in_file(self.workspace().join("messages.db"));
        }
        self
    }

    /// Moves the time, RFC 3339.
    pub(crate) fn at(&mut self, now: &str) -> &mut Self {
        self.set("REVEILLE_NOW", now)
    }

    /// The time in this world.
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

    /// One wake, which must end well, with what it says at the terminal in the place of its report.
    #[track_caller]
    pub(crate) fn told(&self) -> Ran {
        let ran = self.wake(&["--once", "--json"]).ok();
        let report = ran.json();
        let replies = report["replies"].as_array().unwrap().iter().filter(|reply| reply["chat_id"] == 0);
        Ran { stdout: replies.map(|reply| format!("{}\n", reply["text"].as_str().unwrap())).collect(), ..ran }
    }

    /// Runs a program with a terminal for its input and output, and another one for its standard error.
    pub(crate) fn on_terminal(&self, program: &str, args: &[&str]) -> Ran {
        let (out, err) = (Terminal::open(), Terminal::open());
        let mut command = self.command(program, args);
        command.stdin(out.stdio()).stdout(out.stdio()).stderr(err.stdio());
        let mut child = command.spawn().unwrap();
        // The terminals close with the last of those who hold them.
        drop(command);
        let (out, err) = (out.read(), err.read());
        let status = child.wait().unwrap();
        let text = |shown: std::thread::JoinHandle<String>| shown.join().unwrap();
        let command = [&[program], args].concat().join(" ");
        Ran { command, code: status.code().unwrap_or(-1), stdout: text(out), stderr: text(err) }
    }

    /// Runs a program with one terminal for all, at which somebody types.
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

    /// A command in this world.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> Command {
        #[expect(clippy::disallowed_methods, reason = "the tests' one home of children")]
        let mut command = Command::new(program);
        command.args(args).env_clear().envs(&self.vars).current_dir(self.dir.path()).stdin(Stdio::null());
        command
    }

    /// Runs a program to its end.
    pub(crate) fn run(&self, program: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> Ran {
        let program = program.as_ref();
        let ran = Ran::of(&self.command(program, args).output().unwrap());
        Ran { command: format!("{} {}", program.display(), args.join(" ")), ..ran }
    }

    /// The same, with this on its standard input.
    pub(crate) fn run_with_input(&self, program: &str, args: &[&str], input: &str) -> Ran {
        let mut command = self.command(program, args);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
        Ran::of(&child.wait_with_output().unwrap())
    }

    pub(crate) fn wake(&self, args: &[&str]) -> Ran {
        self.run(env!("CARGO_BIN_EXE_wake"), args)
    }

    pub(crate) fn health(&self, args: &[&str]) -> Ran {
        self.run(env!("CARGO_BIN_EXE_health"), args)
    }

    pub(crate) fn bot(&self, args: &[&str]) -> Ran {
        self.run(env!("CARGO_BIN_EXE_bot"), args)
    }

    /// One wake, which must end well, and its report.
    #[track_caller]
    pub(crate) fn once(&self) -> serde_json::Value {
        self.wake(&["--once", "--json"]).ok().json()
    }

    /// Starts a program and goes on; it is killed when the value goes.
    pub(crate) fn start(&self, program: &str, args: &[&str]) -> Running {
        let child = self.command(program, args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Running(Some(child))
    }

    /// As [`TestEnv::start`], with stderr, and all that is logged in it, in a file that can be read while it runs.
    pub(crate) fn start_logged(&self, program: &str, args: &[&str], log: &Path) -> Running {
        let stderr = std::fs::File::create(log).unwrap();
        let mut command = self.command(program, args);
        if self.get("REVEILLE_LOG").is_empty() {
            command.env("REVEILLE_LOG", "info");
        }
        let child = command.stdout(Stdio::piped()).stderr(stderr).spawn().unwrap();
        Running(Some(child))
    }

    /// git in the brain, as a person would, and what it says.
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

    /// A new bare repository to push to.
    pub(crate) fn bare_remote(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        self.git_in(self.dir.path(), &["init", "-q", "--bare", "-b", "main", &path.display().to_string()]);
        path
    }

    /// A memory file as it stands in the work tree.
    #[track_caller]
    pub(crate) fn memory(&self, path: &str) -> String {
        std::fs::read_to_string(self.brain().join(path)).unwrap()
    }

    #[track_caller]
    pub(crate) fn write_memory(&self, path: &str, text: &str) {
        std::fs::write(self.brain().join(path), text).unwrap();
    }

    /// The store, beside the programs.
    pub(crate) fn store(&self) -> Store {
        std::fs::create_dir_all(self.workspace()).unwrap();
        match &self.database {
            Database::Server(url) => database::open(url),
            Database::File(path) => Store::open(path).unwrap(),
        }
    }

    /// Whether a program has made the store.
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

    /// What is still queued.
    pub(crate) fn queued(&self) -> Vec<Incoming> {
        self.store().inbox().list_queued_messages().unwrap()
    }

    /// The value of a trailer of the last commit.
    #[track_caller]
    pub(crate) fn trailer(&self, key: &str) -> String {
        self.git(&["log", "-1", &format!("--format=%(trailers:key={key},valueonly)")]).trim().to_owned()
    }

    /// The last commits, one a line: author and subject.
    #[track_caller]
    pub(crate) fn log(&self) -> String {
        self.git(&["log", "--format=%an: %s"])
    }

    /// Checks what must hold after any wake: a sound database and repository, nothing left over, and a person's next
    /// commit that holds only their change.
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

/// A terminal: what is written to `inner` is read from `outer`.
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

    /// All that is shown on it, until nobody holds it any more. A terminal ends lines by two characters.
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

/// A program at whose terminal somebody types.
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

    /// Waits until this is shown, below what was waited for before; gives what stood between.
    #[track_caller]
    pub(crate) fn sees(&mut self, text: &str) -> String {
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

    /// Waits for its end; gives its exit code and all that was shown.
    pub(crate) fn end(mut self) -> (i32, String) {
        let child = self.running.0.as_mut().unwrap();
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < PATIENCE, "it never ended: {}", self.shown.lock().unwrap());
            std::thread::sleep(Duration::from_millis(10));
        };
        drop(self.keys);
        self.reading.join().unwrap();
        let shown = self.shown.lock().unwrap().clone();
        (status.code().unwrap_or(-1), shown)
    }
}

/// A program under way.
pub(crate) struct Running(Option<Child>);

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.0.as_ref().unwrap().id()
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.0.as_mut().unwrap().try_wait().unwrap().is_some()
    }

    /// Sends a signal by its number, such as 9 or 15.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.pid()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Ran {
        Ran::of(&self.0.take().unwrap().wait_with_output().unwrap())
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

/// Where programs are found: where the test's own are.
pub(crate) fn search_path() -> String {
    variable("PATH").unwrap()
}

#[expect(clippy::disallowed_methods, reason = "the tests' one look at the environment")]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Whether this is below a directory that is another one within the sandbox.
pub(crate) fn is_private_inside(path: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    ["/tmp", "/var/tmp"].iter().any(|private| real(path).starts_with(real(Path::new(private))))
}

/// Where worlds lie whose files have to be there within the sandbox: the target directory, or the person's cache, where this was
/// cloned below a directory for temporary files.
pub(crate) fn seen_inside() -> PathBuf {
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

/// Waits until something is so; fails the test when it never comes.
#[track_caller]
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "it never came: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
