//! The worlds that harm is done to: a story is prepared once, every trial gets a copy of it, and whatever happened, the same
//! must hold in the end as in an undisturbed copy.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{Child, ExitStatus, Stdio},
    time::{Duration, Instant, SystemTime},
};

use reveille::{clock, queue::Order};
use rustix::process::{Pid, Signal};
use serde_json::Value;

use crate::{
    faults::Faults,
    support::{
        claude::{API_KEY, Block, ClaudeRequest, FakeClaude, Reply},
        env::{CHAT, NOW, TestEnv, eventually},
        telegram::{FakeTelegram, TOKEN},
    },
};

const SEMANTIC: &str = "memory/agent-memory/semantic-memory.md";
const EPISODIC: &str = "memory/agent-memory/episodic-memory.md";
const CONTEXT: &str = "memory/project-memory/context.md";
const BACKLOG: &str = "memory/project-memory/backlog.md";
/// Stands at the end of a message that may have come before.
const REPEAT_MARK: &str = "\n\n↻ This may be a repeat: the first try wasn't confirmed.";
/// What a person is told of trouble, besides the answers: how such a message begins.
const NOTICES: [&str; 1] = ["My memory could not be sent to its remote: "];
/// A bot under a fault that lets it do nothing is asked to end after so long.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often is looked whether it is done.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// The stories' time, in minutes after 14:00.
const STORY_BEGINS_MIN: u32 = 10;
/// Longer than any wait between two tries of the same thing.
const AN_HOUR_MIN: u32 = 61;
/// Runs after the harm, a minute apart, until nothing is due.
const MAX_RUNS: u32 = 6;

/// The program that is harmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Program {
    /// `wake --once`.
    Wake,
    /// A `bot` that finds a batch of updates, and the wakes that it starts.
    Bot,
}

/// A prepared world, and what an undisturbed run makes of it.
pub(crate) struct Story {
    program: Program,
    template: TestEnv,
    is_minded: bool,
    /// Who said what to the bot.
    said: &'static [(i64, &'static str)],
    expected: Outcome,
    /// What people get to read.
    texts: Vec<String>,
    /// What the log says was done.
    log: Vec<String>,
}

/// What a trial may leave that an undisturbed run doesn't.
#[derive(Clone, Copy)]
pub(crate) struct Allowed<'a> {
    /// Whether a text to a person is about the trouble.
    pub(crate) notice: &'a dyn Fn(&str) -> bool,
    /// Texts that Telegram has refused for good.
    pub(crate) refused: usize,
    /// Whether the work may be shared out among wakes, and so among texts, in another way.
    pub(crate) regrouped: bool,
}

impl Default for Allowed<'_> {
    fn default() -> Self {
        Self { notice: &|_| false, refused: 0, regrouped: false }
    }
}

/// What must be the same in the end, whatever happened on the way.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    /// How each message ended, oldest first.
    messages: Vec<String>,
    /// The Markdown of the memory, without the comments that hold wakes' ids; the log's lines sorted.
    memory: BTreeMap<String, String>,
    /// Every reminder with its state, and how often it fired.
    reminders: Vec<String>,
    /// Commits by people, sorted.
    people: Vec<String>,
    /// Cycles that didn't end.
    open_cycles: i64,
    /// Messages to people that didn't arrive.
    undelivered: i64,
}

/// A copy of a story's world, with a Telegram of its own.
pub(crate) struct World {
    pub(crate) env: TestEnv,
    pub(crate) telegram: FakeTelegram,
    /// The mind, if the story has one.
    pub(crate) claude: Option<FakeClaude>,
    program: Program,
    /// Minutes that recovery has moved the clock on.
    minutes: u32,
}

impl Story {
    /// A wake that finds two messages beside all that a [`lived_in`] world has for it.
    pub(crate) fn wake() -> Self {
        Self::prepared(Program::Wake, Self::busy(), &[], 2)
    }

    /// The same with Claude for a mind, which takes its time and answers at length.
    pub(crate) fn talk() -> Self {
        let story = Self::unplayed(Program::Wake, Self::busy(), &[]);
        let story = Self { is_minded: true, ..story }.played(|_| ());
        assert_eq!(story.texts.len(), 3, "{:?}", story.texts);
        story
    }

    /// The same before a day that `live` plays in it; how many texts its work is told in may differ.
    pub(crate) fn day(live: impl Fn(&mut World)) -> Self {
        Self::unplayed(Program::Wake, Self::busy(), &[]).played(live)
    }

    /// A wake that is to undo the one that has answered both messages, of which nothing has been sent yet.
    pub(crate) fn undo() -> Self {
        let mut env = Self::busy();
        env.wake(&["--once"]).ok();
        let mut store = env.store();
        let wake = store.last_undoable(&[], &[]).unwrap().unwrap().cycle.id;
        store.order(&Order::Undo { wake }, clock::parse_time(NOW).unwrap()).unwrap();
        drop(store);
        // The deliveries' back-off is over.
        env.at("2026-11-21T14:20:00Z");
        Self::prepared(Program::Wake, env, &[], 1)
    }

    fn busy() -> TestEnv {
        let env = Self::lived_in();
        env.receive(CHAT, "remember that the wifi code is 1234");
        env.receive(CHAT, "remind me to stretch tomorrow at 9");
        env
    }

    /// A bot that finds two messages, a command and a stranger's words at Telegram, in such a world.
    pub(crate) fn bot() -> Self {
        const SAID: &[(i64, &str)] = &[
            (CHAT, "remember that the wifi code is 1234"),
            (CHAT, "/help"),
            (CHAT + 1, "let me in"),
            (CHAT, "remind me to stretch tomorrow at 9"),
        ];
        Self::prepared(Program::Bot, Self::lived_in(), SAID, 3)
    }

    /// The same without a command: the bot has nothing to send between storing and confirming.
    pub(crate) fn chat() -> Self {
        const SAID: &[(i64, &str)] =
            &[(CHAT, "remember that the wifi code is 1234"), (CHAT, "remind me to stretch tomorrow at 9")];
        Self::prepared(Program::Bot, Self::lived_in(), SAID, 2)
    }

    /// A reminder is due, a person has edited a file here and pushed a commit from elsewhere.
    fn lived_in() -> TestEnv {
        let telegram = FakeTelegram::start();
        let mut env = TestEnv::with_telegram(&telegram);
        let remote = env.bare_remote("remote.git");
        env.git_in(&remote, &["config", "core.logAllRefUpdates", "true"]);
        env.set("REPO_URL", &remote.display().to_string());
        env.receive(CHAT, "remind me to water the plants in 5 minutes");
        env.wake(&["--once"]).ok();
        let laptop = env.path("laptop");
        env.git_in(
            env.workspace().as_path(),
            &["clone", "-q", &remote.display().to_string(), &laptop.display().to_string()],
        );
        append(&laptop.join(BACKLOG), "\n## Paint the fence\n- status: waiting\n");
        env.git_in(&laptop, &["commit", "-qam", "From the laptop"]);
        env.git_in(&laptop, &["push", "-q"]);
        append(&env.brain().join(CONTEXT), "- Ann is away on Fridays\n");
        env.at("2026-11-21T14:10:00Z");
        env
    }

    fn prepared(program: Program, template: TestEnv, said: &'static [(i64, &'static str)], texts: usize) -> Self {
        let story = Self::unplayed(program, template, said).played(|_| ());
        assert_eq!(story.texts.len(), texts, "{:?}", story.texts);
        story
    }

    fn unplayed(program: Program, template: TestEnv, said: &'static [(i64, &'static str)]) -> Self {
        let (expected, texts, log) = (Outcome::default(), Vec::new(), Vec::new());
        Self { program, template, is_minded: false, said, expected, texts, log }
    }

    /// Finds out what an undisturbed run leaves, after `live`.
    fn played(self, live: impl Fn(&mut World)) -> Self {
        let mut story = self;
        let mut world = story.open();
        live(&mut world);
        world.recover().unwrap();
        story.expected = world.outcome();
        story.texts = world.telegram.sent().into_iter().map(|sent| sent.visible).collect();
        story.log = world.log_lines();
        // What the rest is compared with is no empty page.
        let memory = &story.expected.memory;
        let is_undone = story.expected.messages.last().is_some_and(|message| message == "1 undone");
        assert_eq!(memory[SEMANTIC].contains("- the wifi code is 1234"), !is_undone, "{memory:#?}");
        assert!(memory[BACKLOG].contains("Paint the fence") && memory[CONTEXT].contains("away on Fridays"));
        let is_done = |message: &String| message == "1 answered" || is_undone && message == "1 undone";
        assert!(story.expected.messages.iter().all(is_done), "{:?}", story.expected);
        assert_eq!(story.expected.people.len(), 2, "{:?}", story.expected);
        story.check(&world).unwrap();
        story
    }

    /// A fresh copy.
    pub(crate) fn open(&self) -> World {
        let telegram = FakeTelegram::start();
        let mut env = self.template.copy();
        env.set("TELEGRAM_API_URL", &telegram.url());
        if self.program == Program::Bot {
            // Beyond what the world has seen already.
            telegram.number_updates_from(2_000);
            for (chat, text) in self.said {
                telegram.push_text(*chat, *chat, text);
            }
        }
        let claude = self.is_minded.then(FakeClaude::start);
        if let Some(claude) = &claude {
            claude.answer_with(mind);
            env.think_with(claude);
        }
        World { env, telegram, claude, program: self.program, minutes: STORY_BEGINS_MIN }
    }

    /// What must hold of a world of this story once it has recovered.
    pub(crate) fn check(&self, world: &World) -> Result<(), String> {
        self.check_but(world, Allowed::default())
    }

    /// As [`Story::check`], but for what the trial may leave.
    pub(crate) fn check_but(&self, world: &World, allowed: Allowed<'_>) -> Result<(), String> {
        let mut outcome = world.outcome();
        if (outcome.undelivered == 0) != (allowed.refused == 0) {
            let status = world.env.health(&["status"]).stdout;
            return Err(format!(
                "{} texts were refused, {} are undelivered\n{status}",
                allowed.refused, outcome.undelivered
            ));
        }
        outcome.undelivered = 0;
        if outcome != self.expected {
            let status = world.env.health(&["status"]).stdout;
            return Err(format!("it ended as {outcome:#?}\ninstead of {:#?}\n{status}", self.expected));
        }
        if !allowed.regrouped {
            world.check_sent(&self.texts, allowed)?;
            self.check_log(&world.log_lines())?;
        }
        world.check_sound()
    }

    /// What was done is in the log once. A wake that went on with another's work says so; nothing else is added.
    fn check_log(&self, log: &[String]) -> Result<(), String> {
        let mut left = log.to_vec();
        for line in self.log.iter().filter(|line| !line.starts_with("Woke for ")) {
            let Some(at) = left.iter().position(|found| found == line) else {
                return Err(format!("the log lacks {line:?}: {log:#?}"));
            };
            left.remove(at);
        }
        // How the work was shared out among wakes may differ.
        left.retain(|line| !line.starts_with("Went on with the wake") && !line.starts_with("Woke for "));
        if left.is_empty() { Ok(()) } else { Err(format!("the log has too much: {left:#?} in {log:#?}")) }
    }
}

impl World {
    /// Runs the program under a fault until it ends, or has nothing more to do and is asked to: its exit code, or none if it was
    /// killed, and what it said.
    pub(crate) fn run(&self, faults: &Faults) -> (Option<i32>, String) {
        let (program, args): (_, &[&str]) = match self.program {
            Program::Wake => (env!("CARGO_BIN_EXE_wake"), &["--once", "--no-console"]),
            Program::Bot => (env!("CARGO_BIN_EXE_bot"), &["run", "--wake", env!("CARGO_BIN_EXE_wake")]),
        };
        // Not in the world: what people are told on stderr isn't what is harmed.
        let log = tempfile::NamedTempFile::new().unwrap();
        let mut command = self.env.command(program, args);
        faults.apply(&mut command);
        command.stdout(Stdio::null()).stderr(log.reopen().unwrap());
        let mut child = command.spawn().unwrap();
        let status = match self.program {
            Program::Wake => child.wait().unwrap(),
            Program::Bot => self.ended(&mut child),
        };
        let said = fs::read_to_string(log.path()).unwrap();
        (
            status.code(),
            format!("{said}{}", status.signal().map(|n| format!("ended by signal {n}")).unwrap_or_default()),
        )
    }

    /// A bot never ends by itself: it is asked to when all that came is answered, or when that takes too long.
    fn ended(&self, bot: &mut Child) -> ExitStatus {
        let (begun, polls) = (Instant::now(), self.telegram.calls("getUpdates").len());
        loop {
            if let Some(status) = bot.try_wait().unwrap() {
                return status;
            }
            let has_polled = self.telegram.calls("getUpdates").len() > polls;
            if has_polled && self.is_quiet() || begun.elapsed() > PATIENCE {
                let pid = i32::try_from(bot.id()).unwrap();
                rustix::process::kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
                let status = bot.wait().unwrap();
                // The poll may have been a killed one's; then this bot was asked before it listened, and ended all the same.
                let as_asked = status.signal() == Some(Signal::TERM.as_raw());
                return if as_asked { ExitStatus::from_raw(0) } else { status };
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Whether Telegram has nothing to give and everything that it gave is answered.
    fn is_quiet(&self) -> bool {
        let open = "SELECT (SELECT count(*) FROM incoming_messages WHERE processed = 0)
                    + (SELECT count(*) FROM outgoing_messages WHERE sent_at IS NULL AND chat_id <> 0)
                    + (SELECT is_locked FROM processing_lock)";
        self.telegram.unconfirmed() == 0 && self.env.query::<i64>(open) == 0
    }

    /// Starts a bot, if this is a bot's story, and lets it fetch what is left; then runs wakes until nothing is due, then a
    /// check of its health, which has the last word on what is left lying about. Says how long the first run took.
    pub(crate) fn recover(&mut self) -> Result<Duration, String> {
        let mut first = None;
        if self.program == Program::Bot {
            let begun = Instant::now();
            let polls = self.telegram.calls("getUpdates").len();
            let bot = self.env.start(env!("CARGO_BIN_EXE_bot"), &["run", "--wake", env!("CARGO_BIN_EXE_wake")]);
            eventually("every update is confirmed", || {
                self.telegram.calls("getUpdates").len() > polls && self.telegram.unconfirmed() == 0
            });
            first = Some(begun.elapsed());
            bot.signal(Signal::TERM);
            let ran = bot.end();
            // A poll of the bot that was killed may only be counted now; then this one is asked to end before it listens.
            let has_only_begun = ran.code == -1 && ran.stderr.is_empty();
            if ran.code != 0 && !has_only_begun {
                return Err(format!("the next bot failed: {ran:#?}"));
            }
        }
        let took = self.run_until_idle()?;
        // What was put off is tried again by then.
        self.pass(AN_HOUR_MIN);
        self.run_until_idle()?;
        let checked = self.env.health(&["check", "--json"]);
        if checked.code == 0 { Ok(first.unwrap_or(took)) } else { Err(format!("not healthy: {checked:#?}")) }
    }

    /// Runs wakes, a minute apart, and says how long the first one took.
    fn run_until_idle(&mut self) -> Result<Duration, String> {
        let mut first = None;
        for _ in 0..MAX_RUNS {
            let begun = Instant::now();
            let ran = self.env.wake(&["--once", "--no-console", "--json"]);
            let first = first.get_or_insert_with(|| begun.elapsed());
            if ran.code != 0 {
                return Err(format!("the next wake failed: {ran:#?}"));
            }
            if ran.json()["outcome"] == "idle" {
                return Ok(*first);
            }
            self.pass(1);
        }
        Err(format!("something is due after {MAX_RUNS} wakes"))
    }

    /// Looks at what the harm left: a dry run of `health check` touches nothing and names all that a real one then repairs.
    pub(crate) fn examine(&self) -> Result<(), String> {
        let before = contents(&self.env.workspace());
        let told = self.env.health(&["check", "--dry-run", "--json"]);
        let after = contents(&self.env.workspace());
        let touched: Vec<&PathBuf> =
            before.keys().chain(after.keys()).filter(|path| before.get(*path) != after.get(*path)).collect();
        if !touched.is_empty() {
            return Err(format!("the dry run has touched {touched:?}"));
        }
        let repaired = self.env.health(&["check", "--json"]);
        for ran in [&told, &repaired] {
            if !matches!(ran.code, 0 | 1) {
                return Err(format!("health check: {ran:#?}"));
            }
        }
        let told = told.json();
        let is_well = |id: &Value| {
            let checks = told["checks"].as_array().into_iter().flatten();
            checks.filter(|check| check["id"] == *id).all(|check| check["status"] == "ok")
        };
        match repaired.json()["repaired"].as_array().into_iter().flatten().find(|id| is_well(id)) {
            Some(id) => Err(format!("{id} was repaired and the dry run had found it well: {told:#}")),
            None => Ok(()),
        }
    }

    /// Lets minutes pass: for the programs, and for lock files that dead gits left.
    pub(crate) fn pass(&mut self, minutes: u32) {
        self.minutes += minutes;
        self.env.at(&format!("2026-11-21T{:02}:{:02}:00Z", 14 + self.minutes / 60, self.minutes % 60));
        let git_dirs = [self.env.path("remote.git"), self.env.brain().join(".git")];
        for lock in git_dirs.iter().flat_map(|dir| locks(dir)) {
            File::options().write(true).open(lock).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        }
    }

    fn outcome(&self) -> Outcome {
        let lines = |sql: &str| -> Vec<String> {
            let text: Option<String> = self.env.query(&format!("SELECT group_concat(line, char(10)) FROM ({sql})"));
            text.unwrap_or_default().lines().map(str::to_owned).collect()
        };
        let mut people: Vec<String> = self
            .env
            .git(&["log", "--format=%an: %s", "--perl-regexp", "--author=^(?!Reveille)"])
            .lines()
            .map(str::to_owned)
            .collect();
        people.sort();
        Outcome {
            messages: lines(
                "SELECT processed || ' ' || ifnull(outcome, '-') AS line FROM incoming_messages ORDER BY id",
            ),
            memory: self.memory(),
            reminders: lines(
                "SELECT text || ' ' || state || ' ' || slot || ' ' || (SELECT count(*) FROM reminder_firings
                 WHERE reminder_id = reminders.id) AS line FROM reminders ORDER BY text",
            ),
            people,
            open_cycles: self.env.query("SELECT count(*) FROM cycles WHERE state IN ('running', 'waiting', 'parked')"),
            undelivered: self
                .env
                .query("SELECT count(*) FROM outgoing_messages WHERE sent_at IS NULL AND taken_back_at IS NULL AND chat_id <> 0"),
        }
    }

    /// Every memory file without its comments. The log is compared by [`World::log_lines`].
    fn memory(&self) -> BTreeMap<String, String> {
        let files = self.env.git(&["ls-files", "memory"]);
        let markdown = files.lines().filter(|path| path.ends_with(".md") && *path != EPISODIC);
        markdown.map(|path| (path.to_owned(), without_comments(&self.env.memory(path)))).collect()
    }

    /// What the log says was done, without the times.
    fn log_lines(&self) -> Vec<String> {
        let log = without_comments(&self.env.memory(EPISODIC));
        let lines = log.lines().filter_map(|line| line.strip_prefix("- ")?.split_once(' '));
        lines.map(|(_, what)| what.trim().to_owned()).collect()
    }

    /// Each of these texts was sent once; or twice, the second time marked; or only marked; or refused. Nothing else was.
    fn check_sent(&self, texts: &[String], allowed: Allowed<'_>) -> Result<(), String> {
        let mut refused = 0;
        let sent: Vec<String> = self.telegram.sent().into_iter().map(|sent| sent.visible).collect();
        let mut left = sent.clone();
        for text in texts {
            let of_it: Vec<String> = left.extract_if(.., |sent| sent.trim_end_matches(REPEAT_MARK) == text).collect();
            let marked = format!("{text}{REPEAT_MARK}");
            let is_right = match of_it.as_slice() {
                [one] => one == text || *one == marked,
                // What a killed program sent may be taken by the server after what the next one sent.
                [one, two] => (one == text && *two == marked) || (*one == marked && two == text),
                [] if refused < allowed.refused => {
                    refused += 1;
                    true
                }
                _ => false,
            };
            if !is_right {
                return Err(format!("{text:?} was sent as {of_it:#?}"));
            }
        }
        left.retain(|text| !NOTICES.iter().any(|notice| text.starts_with(notice)) && !(allowed.notice)(text));
        if left.is_empty() { Ok(()) } else { Err(format!("nobody asked for {left:#?} among {sent:#?}")) }
    }

    /// What must hold of any world, whatever its story.
    fn check_sound(&self) -> Result<(), String> {
        let remote = self.env.path("remote.git");
        self.env.check_sound();
        self.env.git_in(&remote, &["fsck", "--strict", "--no-dangling"]);
        let locks = locks(&self.env.brain().join(".git"));
        if !locks.is_empty() {
            return Err(format!("lock files are left: {locks:?}"));
        }
        self.env.git(&["push", "-q", "origin", "HEAD"]);
        self.check_remote_moved_forward(&remote)?;
        self.check_commits()?;
        self.check_secrets()
    }

    /// One wake, one commit.
    fn check_commits(&self) -> Result<(), String> {
        let ids = self.env.git(&["log", "--format=%(trailers:key=Wake-Id,valueonly,separator=%x20)"]);
        let mut seen = BTreeSet::new();
        match ids.lines().map(str::trim).find(|id| !id.is_empty() && !seen.insert(*id)) {
            Some(id) => Err(format!("the wake {id} has committed twice")),
            None => Ok(()),
        }
    }

    /// By the remote's own log of where its branch was.
    fn check_remote_moved_forward(&self, remote: &Path) -> Result<(), String> {
        let log = fs::read_to_string(remote.join("logs/refs/heads/main")).map_err(|error| error.to_string())?;
        for line in log.lines() {
            let mut ids = line.split(' ');
            let (old, new) = (ids.next().unwrap_or_default(), ids.next().unwrap_or_default());
            // A line that was torn when its writer was killed runs into the next one.
            let is_id = |id: &str| id.len() == 40 && id.chars().all(|c| c.is_ascii_hexdigit());
            if !is_id(old) || !is_id(new) {
                continue;
            }
            let is_forward = old.chars().all(|c| c == '0') || self.env.git_in(remote, &["merge-base", old, new]) == old;
            if !is_forward {
                return Err(format!("the remote went from {old} to {new}"));
            }
        }
        Ok(())
    }

    /// The token is in no file: databases, logs and messages are not compressed.
    fn check_secrets(&self) -> Result<(), String> {
        for path in files(&self.env.workspace()) {
            let bytes = fs::read(&path).unwrap_or_default();
            for secret in [TOKEN, API_KEY] {
                if bytes.windows(secret.len()).any(|piece| piece == secret.as_bytes()) {
                    return Err(format!("a secret is in {}", path.display()));
                }
            }
        }
        Ok(())
    }
}

/// A mind that remembers, sets a reminder, and then has much to say. A conversation that comes again gets the same turn.
fn mind(request: &ClaudeRequest) -> Reply {
    // The person and the mind take turns.
    match request.messages.len() / 2 {
        // A person's commit, which nobody waits to hear of.
        _ if !request.messages[0].contains("remind me to stretch") => Reply::text("Seen."),
        0 => {
            let fact = serde_json::json!({"fact": "the wifi code is 1234"});
            Reply::thinking_then_tool("A fact first.", "toolu_1", "remember", fact)
        }
        // A wake that was given up had set it: the mind is told.
        1 if request.messages[0].contains("not to be done again: Set the reminder") => ending(),
        1 => {
            let reminder = serde_json::json!({"text": "stretch", "when": "2026-11-22 09:00"});
            Reply::tools(vec![Block::text("And the reminder."), Block::tool("toolu_2", "reminder_set", reminder)])
        }
        _ => ending(),
    }
}

/// An answer in two parts.
fn ending() -> Reply {
    Reply::text(&format!("Both are done. {}", "I have thought about it for long. ".repeat(150).trim_end()))
}

/// Lock files beneath a directory.
fn locks(dir: &Path) -> Vec<PathBuf> {
    files(dir).into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "lock")).collect()
}

/// All files beneath a directory.
pub(crate) fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// All files beneath a directory with what is in them. What SQLite makes beside a database for those who have it open, an index
/// and an empty log, is nobody's content.
fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let read = files(dir).into_iter().map(|path| (path.clone(), fs::read(path).unwrap_or_default()));
    let is_lasting = |path: &Path, bytes: &[u8]| {
        let name = path.to_string_lossy();
        !(name.ends_with("-shm") || name.ends_with("-wal") && bytes.is_empty())
    };
    read.filter(|(path, bytes)| is_lasting(path, bytes)).collect()
}

/// Without `<!-- … -->`, which holds ids of wakes and messages.
fn without_comments(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<!--") {
        kept.push_str(before.trim_end_matches(' '));
        rest = after.split_once("-->").map_or("", |(_, rest)| rest);
    }
    kept + rest
}

fn append(path: &Path, text: &str) {
    let mut content = fs::read_to_string(path).unwrap();
    content.push_str(text);
    fs::write(path, content).unwrap();
}
