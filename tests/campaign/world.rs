//! The worlds of the trials. A story is prepared once, and every trial gets a copy. The result must be the same as in an
//! undisturbed copy.

mod asks;
mod changes;
mod check;
mod files;
mod left;
mod media;
mod story;

use std::{
    cell::Cell,
    fs::{self, File},
    os::unix::process::ExitStatusExt as _,
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant, SystemTime},
};

use rustix::process::{Pid, Signal};
use serde_json::Value;

use crate::{
    faults::Faults,
    support::{
        claude::FakeClaude,
        env::{TestEnv, eventually},
        telegram::FakeTelegram,
    },
};

pub(crate) use asks::{Word, is_question};
pub(crate) use check::Allowed;
use files::contents;
pub(crate) use files::{files, locks};
pub(crate) use story::Story;

/// The time after which a blocked bot is asked to end.
const PATIENCE: Duration = Duration::from_secs(3);
/// The longest wake, on a busy machine.
const LONGEST_WAKE: Duration = Duration::from_secs(60);
/// The interval between checks.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// The stories' time, in minutes after 14:00.
const STORY_BEGINS_MIN: u32 = 10;
/// Longer than any wait between two attempts at the same thing.
const AN_HOUR_MIN: u32 = 61;
/// The maximum of runs after the harm, a minute apart, until nothing is due.
const MAX_RUNS: u32 = 6;

/// The harmed program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Program {
    /// `wake --once`.
    Wake,
    /// The same, with the person's answer to its question and the following wake.
    Asking,
    /// `wake --once`, which changes files of the person's, and `wake undo`.
    Changing,
    /// A `bot` that finds a batch of updates, and the wakes it starts.
    Bot,
}

/// A copy of a story's world, with a Telegram of its own.
pub(crate) struct World {
    pub(crate) env: TestEnv,
    pub(crate) telegram: FakeTelegram,
    /// The model, if the story has one.
    pub(crate) claude: Option<FakeClaude>,
    program: Program,
    /// The person's answer to a question.
    word: Option<Word>,
    /// Minutes that recovery has moved the clock on.
    minutes: u32,
    /// Set when a program has run on a clock of the next day.
    is_next_day: Cell<bool>,
}

impl World {
    /// Runs the program under a fault until it ends, or has nothing more to do and is asked to end. Returns its exit code (`None` if it
    /// was killed) and its output.
    pub(crate) fn run(&self, faults: &Faults) -> (Option<i32>, String) {
        let wake = || self.env.command(env!("CARGO_BIN_EXE_wake"), &["--once", "--no-console"]);
        match self.program {
            Program::Wake => self.run_under(faults, wake()),
            Program::Bot => {
                let arguments = self.bot_arguments();
                self.run_under(faults, self.env.command(env!("CARGO_BIN_EXE_bot"), &as_strs(&arguments)))
            }
            Program::Changing => {
                let (code, said) = self.run_under(faults, wake());
                // The wake itself continues an interrupted undo.
                let is_next = code == Some(0) && !self.is_undo_asked();
                let Some(cycle) = self.changing_cycle().filter(|_| is_next) else { return (code, said) };
                let undo = self.env.command(env!("CARGO_BIN_EXE_wake"), &["undo", &cycle]);
                let (code, then_said) = self.run_under(faults, undo);
                (code, format!("{said}{then_said}"))
            }
            Program::Asking => {
                let (code, said) = self.run_under(faults, wake());
                let Some((word, id)) = self.word.zip(code.and_then(|_| self.seen_question())) else {
                    return (code, said);
                };
                let (id, mut then) = (id.to_string(), wake());
                if word == Word::Silence {
                    self.is_next_day.set(true);
                    then.env("REVEILLE_NOW", asks::NEXT_DAY);
                } else {
                    then = self.env.command(env!("CARGO_BIN_EXE_wake"), &word.arguments(&id));
                }
                let (then_code, then_said) = self.run_under(faults, then);
                (then_code.map(|then| then.max(code.unwrap_or(0))), format!("{said}{then_said}"))
            }
        }
    }

    fn run_under(&self, faults: &Faults, mut command: Command) -> (Option<i32>, String) {
        // Outside the world, since the messages on stderr aren't part of the harm.
        let log = tempfile::NamedTempFile::new().unwrap();
        faults.apply(&mut command);
        command.stdout(Stdio::null()).stderr(log.reopen().unwrap());
        let mut child = command.spawn().unwrap();
        let status = match self.program {
            Program::Wake | Program::Asking | Program::Changing => child.wait().unwrap(),
            Program::Bot => self.ended(&mut child),
        };
        let said = fs::read_to_string(log.path()).unwrap();
        (
            status.code(),
            format!("{said}{}", status.signal().map(|n| format!("ended by signal {n}")).unwrap_or_default()),
        )
    }

    /// Asks a bot to end, as it never does so by itself: after all messages are answered, or after too long.
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
                // The counted poll may be a killed bot's; this one was then asked before it listened for the signal, and ended all the
                // same.
                let as_asked = status.signal() == Some(Signal::TERM.as_raw());
                return if as_asked { ExitStatus::from_raw(0) } else { status };
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Tells whether Telegram has no more updates and all messages are answered.
    fn is_quiet(&self) -> bool {
        let open = "SELECT (SELECT count(*) FROM incoming_messages WHERE processed = 0)
                    + (SELECT count(*) FROM outgoing_messages WHERE sent_at IS NULL AND chat_id <> 0)
                    + (SELECT is_locked FROM processing_lock)";
        // A message waiting for its files is counted with the queue.
        self.telegram.unconfirmed() == 0 && self.env.query::<i64>(open) == 0
    }

    /// Tells whether a message waits for an answer without needing the person.
    pub(crate) fn has_unanswered(&self) -> bool {
        // A postponed message, or one held for another model, starts no wake.
        let waiting =
            "SELECT count(*) FROM incoming_messages WHERE processed = 0 AND not_before IS NULL AND held_for IS NULL";
        self.word.is_none() && self.env.query::<i64>(waiting) > 0
    }

    /// Runs a bot, in a bot's story, until it has fetched everything; then wakes until nothing is due, and finally a health check,
    /// which reports leftovers. Returns the time of the first run.
    pub(crate) fn recover(&mut self) -> Result<Duration, String> {
        let mut first = None;
        if self.is_next_day.get() {
            self.pass(asks::A_DAY_MIN);
        }
        if self.program == Program::Bot {
            first = Some(self.run_bot()?);
            for _ in 0..MAX_RUNS {
                if self.open_files(false) == 0 {
                    break;
                }
                // A failed fetch is tried again later.
                self.pass(AN_HOUR_MIN);
                self.run_bot()?;
            }
        }
        let took = self.run_until_idle()?;
        if self.seen_question().is_some() {
            self.person_answers()?;
            self.run_until_idle()?;
        }
        // Postponed work is tried again by then.
        self.pass(AN_HOUR_MIN);
        self.run_until_idle()?;
        if self.program == Program::Changing {
            self.undo_changes()?;
            self.run_until_idle()?;
        }
        if self.word.is_some() && self.is_asked_in_vain() {
            self.pass(asks::A_DAY_MIN);
            self.run_until_idle()?;
        }
        let checked = self.env.health(&["check", "--json", "--offline"]);
        if checked.code == 0 { Ok(first.unwrap_or(took)) } else { Err(format!("not healthy: {checked:#?}")) }
    }

    /// Runs a bot until it has received everything, including files, and returns the time.
    fn run_bot(&self) -> Result<Duration, String> {
        let begun = Instant::now();
        let polls = self.telegram.calls("getUpdates").len();
        let bot = self.env.start(env!("CARGO_BIN_EXE_bot"), &as_strs(&self.bot_arguments()));
        eventually("every update is confirmed, every file is here", || {
            self.telegram.calls("getUpdates").len() > polls
                && self.telegram.unconfirmed() == 0
                && self.open_files(true) == 0
        });
        let took = begun.elapsed();
        bot.signal(Signal::TERM);
        let ran = bot.end();
        // A poll of the killed bot may only be counted now; this one is then asked to end before it listens for the signal.
        let has_only_begun = ran.code == -1 && ran.notices().is_empty();
        if ran.code == 0 || has_only_begun { Ok(took) } else { Err(format!("the next bot failed: {ran:#?}")) }
    }

    /// Runs wakes, a minute apart, and returns the time of the first one.
    fn run_until_idle(&mut self) -> Result<Duration, String> {
        let (mut first, mut last) = (None, Value::Null);
        for _ in 0..MAX_RUNS {
            let begun = Instant::now();
            let ran = self.env.wake(&["--once", "--no-console", "--json"]);
            let first = first.get_or_insert_with(|| begun.elapsed());
            if ran.code != 0 {
                return Err(format!("the next wake failed: {ran:#?}"));
            }
            let report = ran.json();
            match report["outcome"].as_str() {
                Some("idle") if self.env.brain().join(".git/index.lock").exists() => {
                    return Err("nothing is due, and a dead lock keeps the person from committing".to_owned());
                }
                Some("idle") => return Ok(*first),
                // An ended bot lets its wake run on.
                Some("locked") => self.wait_for_the_lock(begun)?,
                _ => {}
            }
            last = report;
            self.pass(1);
        }
        Err(format!("something is due after {MAX_RUNS} wakes, the last of which did {last:#}"))
    }

    /// Waits until the wakes' lock is free.
    fn wait_for_the_lock(&self, begun: Instant) -> Result<(), String> {
        let lock = File::options()
            .write(true)
            .open(self.env.workspace().join(".wake-lock"))
            .map_err(|error| error.to_string())?;
        while fs2::FileExt::try_lock_exclusive(&lock).is_err() {
            if begun.elapsed() > LONGEST_WAKE {
                return Err(format!("a wake has held the lock for {LONGEST_WAKE:?}"));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Inspects the harm: a dry run of `health check` changes nothing, and names all leftovers and everything a real run then
    /// repairs.
    pub(crate) fn examine(&self) -> Result<(), String> {
        let left = self.left_lying()?;
        let before = contents(&self.env.workspace());
        let told = self.env.health(&["check", "--dry-run", "--json", "--offline"]);
        let after = contents(&self.env.workspace());
        let touched: Vec<&PathBuf> =
            before.keys().chain(after.keys()).filter(|path| before.get(*path) != after.get(*path)).collect();
        if !touched.is_empty() {
            return Err(format!("the dry run has touched {touched:?}"));
        }
        let repaired = self.env.health(&["check", "--json", "--offline"]);
        for ran in [&told, &repaired] {
            if !matches!(ran.code, 0 | 1) {
                return Err(format!("health check: {ran:#?}"));
            }
        }
        let told = told.json();
        let of_check = |id: &str| told["checks"].as_array()?.iter().find(|check| check["id"] == id);
        if let Some((id, what)) = left.iter().find(|(id, _)| of_check(id).is_none_or(|check| check["status"] == "ok")) {
            return Err(format!("{what} is left, and the check {id} finds all well: {told:#}"));
        }
        let is_well = |id: &Value| id.as_str().and_then(of_check).is_none_or(|check| check["status"] == "ok");
        match repaired.json()["repaired"].as_array().into_iter().flatten().find(|id| is_well(id)) {
            Some(id) => Err(format!("{id} was repaired and the dry run had found it well: {told:#}")),
            None => Ok(()),
        }
    }

    /// The world's date and time, as in the database but without fractions of a second.
    fn time(&self) -> String {
        let minutes = 14 * 60 + self.minutes;
        format!("2026-11-{:02}T{:02}:{:02}:00", 21 + minutes / (24 * 60), minutes / 60 % 24, minutes % 60)
    }

    /// Lets minutes pass, for the programs and for lock files that dead gits left.
    pub(crate) fn pass(&mut self, minutes: u32) {
        self.minutes += minutes;
        let now = format!("{}Z", self.time());
        self.env.at(&now);
        let git_dirs = [self.env.path("remote.git"), self.env.brain().join(".git")];
        for lock in git_dirs.iter().flat_map(|dir| locks(dir)) {
            File::options().write(true).open(lock).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        }
    }
}

fn as_strs(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}
