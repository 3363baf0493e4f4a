//! A stage for the bot's stories: a world, a Telegram, and in place of `wake` a program that only writes down that it was
//! started, and ends when the test says so.

use std::{os::unix::fs::PermissionsExt as _, path::PathBuf, time::Duration};

use rustix::process::Signal;

use super::{
    env::{CHAT, Ran, Running, TestEnv, eventually},
    telegram::FakeTelegram,
};

/// Nothing that the fake server is waited for takes longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Stage {
    pub(crate) telegram: FakeTelegram,
    pub(crate) env: TestEnv,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let telegram = FakeTelegram::start();
        let env = TestEnv::with_telegram(&telegram);
        let stage = Self { telegram, env };
        // Goes on until it may end, or its world is gone.
        let script = format!(
            "#!/bin/sh\necho \"$@\" >> {starts}\nwhile [ -e {starts} ] && [ ! -e {may_end} ]; do sleep 0.02; done\n",
            starts = stage.env.path("starts").display(),
            may_end = stage.env.path("may-end").display(),
        );
        std::fs::write(stage.wake(), script).unwrap();
        std::fs::set_permissions(stage.wake(), std::fs::Permissions::from_mode(0o700)).unwrap();
        stage
    }

    fn wake(&self) -> PathBuf {
        self.env.path("fake-wake")
    }

    /// Starts a bot whose wakes are fake.
    pub(crate) fn start(&self) -> Running {
        let wake = self.wake().display().to_string();
        self.env.start(env!("CARGO_BIN_EXE_bot"), &["run", "--wake", &wake])
    }

    /// Starts a bot whose wakes are fake, and who listens with this shell script: it is given a recording's path as `$1` and
    /// prints a transcript.
    pub(crate) fn start_listening(&self, script: &str) -> Running {
        let (wake, transcriber) =
            (self.wake().display().to_string(), self.env.path("transcriber").display().to_string());
        std::fs::write(&transcriber, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&transcriber, std::fs::Permissions::from_mode(0o700)).unwrap();
        self.env.start(env!("CARGO_BIN_EXE_bot"), &["run", "--wake", &wake, "--transcriber", &transcriber])
    }

    /// Starts a bot whose wake is this file of its world, and whose stderr goes into the file that is returned.
    pub(crate) fn start_logged(&self, wake: &str) -> (Running, PathBuf) {
        let (wake, log) = (self.env.path(wake).display().to_string(), self.env.path("bot.log"));
        let bot = self.env.start_logged(env!("CARGO_BIN_EXE_bot"), &["--wake", &wake], &log);
        (bot, log)
    }

    /// Starts a bot and waits until it polls.
    pub(crate) fn start_polling(&self) -> Running {
        let polls = self.telegram.calls("getUpdates").len();
        let bot = self.start();
        self.telegram.wait_for_calls("getUpdates", polls + 1, PATIENCE);
        bot
    }

    /// Ana writes to the bot.
    pub(crate) fn say(&self, text: &str) -> i64 {
        self.telegram.push_text(CHAT, CHAT, text)
    }

    /// Waits until Telegram was told that everything arrived.
    #[track_caller]
    pub(crate) fn all_confirmed(&self) {
        eventually("every update is confirmed", || self.telegram.unconfirmed() == 0);
    }

    /// How many messages are stored.
    pub(crate) fn stored(&self) -> i64 {
        self.env.query("SELECT count(*) FROM incoming_messages")
    }

    /// The arguments that wakes were started with, one string a start.
    pub(crate) fn starts(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.env.path("starts")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    #[track_caller]
    pub(crate) fn wait_for_starts(&self, n: usize) {
        eventually("a wake is started", || self.starts().len() >= n);
    }

    /// Answers all messages, as a wake would.
    pub(crate) fn answer_all(&self) {
        self.env.execute("UPDATE incoming_messages SET processed = 1, outcome = 'answered'");
    }

    /// Lets the fake wakes end: the one that runs and those that come.
    pub(crate) fn let_wakes_end(&self) {
        std::fs::write(self.env.path("may-end"), "").unwrap();
    }

    /// Asks the bot to end. It must end well and never show the token.
    #[track_caller]
    pub(crate) fn end(&self, bot: Running) -> Ran {
        self.let_wakes_end();
        bot.signal(Signal::TERM);
        let ran = bot.end();
        keeps_the_secret(&ran);
        ran.ok()
    }
}

/// Neither the token nor a part of an address that holds it was printed.
#[track_caller]
pub(crate) fn keeps_the_secret(ran: &Ran) {
    let shown = ran.shown();
    assert!(!shown.contains("ecretSecret") && !shown.contains("/bot9"), "{shown}");
}

/// How often something was said.
pub(crate) fn times(ran: &Ran, what: &str) -> usize {
    ran.notices().matches(what).count()
}
