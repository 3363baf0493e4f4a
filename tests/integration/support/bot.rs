//! The setting for tests of the bot: an environment, a fake Telegram, and a fake `wake`, which only records its start and ends when the
//! test says so.

use std::{os::unix::fs::PermissionsExt as _, path::PathBuf, time::Duration};

use rustix::process::Signal;

use super::{
    env::{CHAT, ProgramOutput, Running, TestEnv, eventually},
    telegram::FakeTelegram,
};

/// Maximum wait for a call to the fake server.
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
        // Runs until it may end, or until its directory is gone.
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

    /// Starts a bot with fake wakes.
    pub(crate) fn start(&self) -> Running {
        let wake = self.wake().display().to_string();
        self.env.start(env!("CARGO_BIN_EXE_bot"), &["run", "--wake", &wake])
    }

    /// Starts a bot with fake wakes, and with this shell script as its transcriber. The script receives a recording's path as `$1` and
    /// prints a transcript.
    pub(crate) fn start_listening(&self, script: &str) -> Running {
        let (wake, transcriber) =
            (self.wake().display().to_string(), self.env.path("transcriber").display().to_string());
        std::fs::write(&transcriber, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&transcriber, std::fs::Permissions::from_mode(0o700)).unwrap();
        self.env.start(env!("CARGO_BIN_EXE_bot"), &["run", "--wake", &wake, "--transcriber", &transcriber])
    }

    /// Starts a bot that runs this file of the environment as `wake`. Its stderr goes to the returned file.
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

    /// Sends a message from Ana to the bot.
    pub(crate) fn say(&self, text: &str) -> i64 {
        self.telegram.push_text(CHAT, CHAT, text)
    }

    /// Waits until the bot has confirmed every update to Telegram.
    #[track_caller]
    pub(crate) fn wait_until_confirmed(&self) {
        eventually("every update is confirmed", || self.telegram.unconfirmed() == 0);
    }

    /// Counts the stored messages.
    pub(crate) fn stored(&self) -> i64 {
        self.env.query("SELECT count(*) FROM incoming_messages")
    }

    /// The arguments of the wakes that were started, one string per start.
    pub(crate) fn starts(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.env.path("starts")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    #[track_caller]
    pub(crate) fn wait_for_starts(&self, n: usize) {
        eventually("a wake is started", || self.starts().len() >= n);
    }

    /// Marks all messages as answered, as a wake would.
    pub(crate) fn answer_all(&self) {
        self.env.execute("UPDATE incoming_messages SET processed = 1, outcome = 'answered'");
    }

    /// Lets the fake wakes end: the running one and all later ones.
    pub(crate) fn let_wakes_end(&self) {
        std::fs::write(self.env.path("may-end"), "").unwrap();
    }

    /// Asks the bot to end. Checks that it succeeds and never shows the token.
    #[track_caller]
    pub(crate) fn end(&self, bot: Running) -> ProgramOutput {
        self.let_wakes_end();
        bot.signal(Signal::TERM);
        let ran = bot.end();
        assert_token_hidden(&ran);
        ran.ok()
    }
}

/// Checks that neither the token nor a part of an address with it was printed.
#[track_caller]
pub(crate) fn assert_token_hidden(ran: &ProgramOutput) {
    let shown = ran.shown();
    assert!(!shown.contains("ecretSecret") && !shown.contains("/bot9"), "{shown}");
}

/// Counts how often the notices contain this text.
pub(crate) fn times(ran: &ProgramOutput, what: &str) -> usize {
    ran.notices().matches(what).count()
}
