//! The person's machine, their messages, and the answers they may expect.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write as _,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use chrono::{DateTime, TimeDelta, Utc};
use fastrand::Rng;
use reveille::setup::install::PROGRAMS;
use serde_json::json;

use reveille_base::{
    clock::{format_rfc3339, parse_time},
    process::{self, Identity},
};
use reveille_model::offline::transcript;
use reveille_store::wake_lock;

use super::growth::Size;
use crate::support::{
    claude::{ClaudeRequest, FakeClaude, Reply},
    disk::Small,
    env::{CHAT, ProgramOutput, Running, TestEnv, eventually},
    telegram::{FakeTelegram, TOKEN},
};

/// Monday, 00:00 UTC.
const BEGIN: &str = "2026-11-23T00:00:00Z";
const DAY_MIN: i64 = 24 * 60;
/// The time at which the laptop is opened again, in minutes after midnight.
const EVENING_MIN: i64 = 20 * 60;
/// The longest time for an answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// The interval between checks for it.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The disk's size.
const DISK_MIB: u32 = 96;

/// A kind of message from the person.
#[derive(Debug, Clone, Copy)]
pub(super) enum What {
    Fact,
    Task,
    /// For tomorrow at nine.
    Reminder,
    /// Every day at nine.
    Daily,
    /// Only a model can answer it.
    Question,
}

#[derive(Clone, Copy)]
pub(super) enum Budget {
    Spent,
    Enough,
}

/// The person's machine, and all messages on it.
pub(super) struct Life<'a> {
    pub(super) env: TestEnv,
    pub(super) telegram: FakeTelegram,
    pub(super) claude: FakeClaude,
    pub(super) random: Rng,
    /// The number of received lines in which each of these words has to appear at the end.
    pub(super) promised: BTreeMap<String, usize>,
    pub(super) sizes: Vec<Size>,
    /// Minutes between cron's wakes.
    every_min: i64,
    /// Minutes since the week began.
    minute: i64,
    bot: Option<Running>,
    disk: Option<Small<'a>>,
}

impl<'a> Life<'a> {
    pub(super) fn begin(outer: &'a TestEnv, random: Rng, every_min: i64) -> Self {
        let telegram = FakeTelegram::start();
        let claude = FakeClaude::start();
        claude.answer_with(answer);
        let mut env = TestEnv::with_telegram(&telegram);
        let disk = Small::mount(outer, "disk", DISK_MIB);
        if let Some(disk) = &disk {
            fs::create_dir(Path::new(disk.at()).join("workspace")).unwrap();
            symlink(Path::new(disk.at()).join("workspace"), env.workspace()).unwrap();
        } else {
            fs::create_dir(env.workspace()).unwrap();
        }
        fs::set_permissions(env.workspace(), fs::Permissions::from_mode(0o700)).unwrap();
        let remote = env.bare_remote("remote.git").display().to_string();
        env.git_in(Path::new(&remote), &["config", "core.logAllRefUpdates", "always"]);
        env.set("REPO_URL", &remote).set("MODEL", "offline").set("REFLECT_AT", "03:30").set("DISK_RESERVE_MB", "4");
        // Programs started by cron have no secrets in their environment.
        let settings = env.workspace().join(".env");
        fs::write(&settings, format!("TELEGRAM_BOT_TOKEN={TOKEN}\n")).unwrap();
        fs::set_permissions(&settings, fs::Permissions::from_mode(0o600)).unwrap();
        let mut life = Self {
            env,
            telegram,
            claude,
            random,
            promised: BTreeMap::new(),
            sizes: Vec::new(),
            every_min,
            minute: 0,
            bot: None,
            disk,
        };
        life.build();
        life
    }

    /// Makes a `crontab` that keeps its table in a file, and a build.
    fn build(&mut self) {
        let table = self.env.path("crontab");
        let crontab =
            format!("case $1 in -l) cat '{0}' 2>/dev/null || : ;; *) cp \"$1\" '{0}' ;; esac", table.display());
        self.program("tools/crontab", &crontab);
        self.program("tools/systemctl", "exit 1");
        self.program("transcriber", "cat \"${0%/*}/heard\"");
        let path = format!("{}:{}", self.env.path("tools").display(), self.env.get("PATH"));
        self.env.set("PATH", &path);
        for name in PROGRAMS {
            self.program(&format!("build/{name}"), "exit 0");
        }
        let real = [
            ("wake", env!("CARGO_BIN_EXE_wake")),
            ("bot", env!("CARGO_BIN_EXE_bot")),
            ("reveille-transcriber", env!("CARGO_BIN_EXE_reveille-transcriber")),
        ];
        for (name, built) in real {
            fs::copy(built, self.env.path("build").join(name)).unwrap();
        }
    }

    fn program(&self, path: &str, line: &str) {
        let path = self.env.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{line}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Makes a build in which one program differs.
    pub(super) fn newer_build(&self) {
        fs::create_dir_all(self.env.path("newer")).unwrap();
        for name in PROGRAMS {
            fs::copy(self.env.path("build").join(name), self.env.path("newer").join(name)).unwrap();
        }
        self.program("newer/health", "exit 0 # newer");
    }

    /// Installs a build, which starts its bot.
    pub(super) fn install(&mut self, build: &str) -> Result<(), String> {
        let ran = self.env.run(self.env.path(build).join("wake"), &["install"]);
        if ran.code != 0 || !ran.notices().contains("the new bot has reported in") {
            return Err(format!("{build} isn't installed: {ran:#?}"));
        }
        if let Some(bot) = self.bot.take() {
            bot.end();
        }
        Ok(())
    }

    pub(super) fn now(&self) -> DateTime<Utc> {
        parse_time(BEGIN).unwrap() + TimeDelta::minutes(self.minute)
    }

    /// Sets the clock to a minute of a day.
    pub(super) fn at(&mut self, day: i64, minute: i64) {
        self.minute = day * DAY_MIN + minute;
        let now = format_rfc3339(self.now());
        self.env.at(&now);
    }

    /// Runs one wake, as cron would.
    pub(super) fn run_cron_wake(&self) -> ProgramOutput {
        self.env.run(self.wake(), &["--once", "--no-console", "--reason", "cron", "--json"])
    }

    pub(super) fn wake(&self) -> PathBuf {
        self.env.path("home/.local/bin/wake")
    }

    /// Lets time pass until this minute of the day, with cron's wakes.
    pub(super) fn pass(&mut self, until_min: i64) -> Result<(), String> {
        let day = self.minute / DAY_MIN;
        let until = day * DAY_MIN + until_min;
        while self.minute + self.every_min < until {
            self.at(day, self.minute - day * DAY_MIN + self.every_min);
            let ran = self.run_cron_wake();
            if ran.code != 0 {
                return Err(format!("a wake at {} failed: {ran:#?}", self.now()));
            }
        }
        Ok(())
    }

    /// Plays the rest of a day, during which the laptop is opened once more.
    pub(super) fn evening(&mut self) -> Result<(), String> {
        self.pass(EVENING_MIN)?;
        self.at(self.minute / DAY_MIN, EVENING_MIN);
        self.open();
        self.say(What::Fact);
        self.close()?;
        self.pass(DAY_MIN)
    }

    /// A unique word that must appear in this many lines of the answers.
    pub(super) fn token(&mut self, times: usize) -> String {
        let token = format!("w{:03}x", self.promised.len());
        self.promised.insert(token.clone(), times);
        token
    }

    pub(super) fn say(&mut self, what: What) {
        let days_left = usize::try_from(6 - self.minute / DAY_MIN).unwrap();
        // Nine o'clock is an hour after the laptop was opened in the morning.
        let (times, begin, end) = match what {
            What::Fact => (1, "remember that the shelf of ", " is full"),
            What::Task => (1, "add task paint the door of ", ""),
            What::Reminder => (2, "remind me to call ", " tomorrow at 9"),
            What::Daily => (2 + days_left, "remind me to water ", " every day at 9"),
            What::Question => (1, "what is love, ", "?"),
        };
        let token = self.token(times);
        self.telegram.push_text(CHAT, CHAT, &format!("{begin}{token}{end}"));
    }

    pub(super) fn say_some(&mut self) {
        let is_last_day = self.minute / DAY_MIN == 6;
        for _ in 0..self.random.u32(1..=3) {
            let what = match self.random.u32(0..3) {
                0 => What::Task,
                1 if !is_last_day => What::Reminder,
                _ => What::Fact,
            };
            self.say(what);
        }
    }

    /// Edits a message.
    pub(super) fn edit(&self, message_id: i64, text: &str) {
        let update_id = message_id + 901;
        self.telegram.push_raw(json!({"update_id": update_id, "edited_message": {
            "message_id": message_id, "date": 1_795_000_000, "edit_date": 1_795_000_009, "text": text,
            "from": {"id": CHAT, "is_bot": false, "first_name": "Ana"},
            "chat": {"id": CHAT, "type": "private", "first_name": "Ana"}}}));
    }

    /// Sets the next voice note's words.
    pub(super) fn set_voice_text(&self, text: &str) {
        let heard = json!({"text": text, "language": "en", "confidence": 0.9, "seconds": 3.0, "no_speech": 0.0, "dropped": [],
            "is_damaged": false});
        fs::write(self.env.path("heard"), format!("{heard}\n")).unwrap();
        self.telegram.keep_file("note", &[7; 7_000]);
    }

    /// Opens the laptop.
    pub(super) fn open(&mut self) {
        let polls = self.telegram.calls("getUpdates").len();
        let (bot, transcriber) = (self.env.path("home/.local/bin/bot"), self.env.path("transcriber"));
        let (bot, transcriber) = (bot.display().to_string(), transcriber.display().to_string());
        self.bot =
            Some(self.env.start_logged(&bot, &["run", "--transcriber", &transcriber], &self.env.path("bot.log")));
        eventually("the bot polls", || self.telegram.calls("getUpdates").len() > polls);
    }

    /// Closes the laptop once all possible work is done.
    pub(super) fn close(&mut self) -> Result<(), String> {
        let open = "SELECT (SELECT count(*) FROM incoming_messages WHERE processed = 0 AND held_for IS NULL AND not_before IS NULL)
                    + (SELECT count(*) FROM outgoing_messages WHERE sent_at IS NULL AND chat_id <> 0)
                    + (SELECT count(*) FROM attachments WHERE state = 'wanted' OR state = 'kept' AND kind = 'voice')
                    + (SELECT is_locked FROM processing_lock)";
        let begun = Instant::now();
        while self.telegram.unconfirmed() > 0 || self.env.query::<i64>(open) > 0 || self.is_at_work() {
            if begun.elapsed() > PATIENCE {
                let log = fs::read_to_string(self.env.path("bot.log")).unwrap_or_default();
                let status = self.env.run(env!("CARGO_BIN_EXE_health"), &["status"]).stdout;
                return Err(format!("not all is answered at {}: {status}\n{log}", self.now()));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        let bot = self.running_bot().ok_or("no bot runs")?;
        process::ask_to_end(&bot);
        match self.bot.take() {
            Some(running) => drop(running.end().ok()),
            None => eventually("the bot ends", || !bot.is_alive()),
        }
        Ok(())
    }

    fn is_at_work(&self) -> bool {
        wake_lock::is_held(&self.env.workspace().join(".wake-lock"))
    }

    pub(super) fn running_bot(&self) -> Option<Identity> {
        let holder = wake_lock::read_holder(&self.env.workspace().join(".bot-lock"))?;
        Some(holder.identity()).filter(Identity::is_alive)
    }

    /// Commits from the person's other machine.
    pub(super) fn commit_elsewhere(&self) {
        let (remote, laptop) = (self.env.path("remote.git"), self.env.path("laptop"));
        let (remote, laptop_name) = (remote.display().to_string(), laptop.display().to_string());
        self.env.git_in(self.env.root(), &["clone", "-q", &remote, &laptop_name]);
        fs::write(laptop.join("memory/from-elsewhere.md"), "Written on the other machine.\n").unwrap();
        self.env.git_in(&laptop, &["add", "."]);
        self.env.git_in(&laptop, &["commit", "-qm", "From elsewhere"]);
        self.env.git_in(&laptop, &["push", "-q"]);
    }

    pub(super) fn budget(&mut self, budget: Budget) {
        self.env.think_with(&self.claude);
        self.env.set("MODEL", "claude-sonnet-5-5,offline");
        self.env.set("DAILY_BUDGET_USD", if matches!(budget, Budget::Spent) { "0" } else { "5" });
    }

    /// Fills the disk, if it is a separate one.
    pub(super) fn fill_disk(&self) {
        let Some(path) = self.filling() else { return };
        let mut file = fs::File::create(path).unwrap();
        for chunk in [1 << 20, 4096, 1] {
            while file.write_all(&vec![0; chunk]).is_ok() {}
        }
    }

    fn filling(&self) -> Option<PathBuf> {
        self.disk.as_ref().map(|disk| Path::new(disk.at()).join("filling"))
    }

    pub(super) fn is_full(&self) -> bool {
        self.filling().is_some()
    }

    pub(super) fn free_disk(&self) {
        if let Some(path) = self.filling() {
            fs::remove_file(path).unwrap();
        }
    }
}

impl Drop for Life<'_> {
    /// Ends the bot that an installation has started, also after a failed week.
    fn drop(&mut self) {
        if let Some(bot) = self.running_bot() {
            process::ask_to_end(&bot);
        }
    }
}

/// Claude's answer: a line for each message that is still unanswered.
fn answer(request: &ClaudeRequest) -> Reply {
    let mut open = BTreeSet::new();
    for (raw, message) in request.messages.iter().zip(request.json["messages"].as_array().into_iter().flatten()) {
        if message["role"] == "assistant" {
            open.clear();
        }
        open.extend(transcript::parse_messages(raw).into_iter().filter_map(|shown| token_in(&shown.text)));
    }
    let lines: Vec<String> = open.iter().map(|token| format!("{token}: hard to say.")).collect();
    Reply::text(&if lines.is_empty() { "Seen.".to_owned() } else { lines.join("\n") })
}

fn token_in(text: &str) -> Option<String> {
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words.find(|word| word.len() == 5 && word.starts_with('w') && word.ends_with('x')).map(str::to_owned)
}
