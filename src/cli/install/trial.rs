//! Tries an installation: the bot reports in, a wake runs, and something starts them. A failing build yields to the
//! previous one, which continues with the current database.

use std::{
    process::{Child, ExitCode},
    thread,
    time::{Duration, Instant},
};

use chrono::TimeDelta;

use reveille_base::process::{self, Identity, Spec};
use reveille_config::Config;
use reveille_store::{BotReport, Store, database, wake_lock};

use super::{complain, run_systemctl, user_id};
use crate::{
    cli::{EXIT_CONFIG, connect_telegram},
    setup::install::{InstallStep, Installation, Starter, Versions, bot_command, perform_step, restart_step},
};

/// Time limit for a first wake, which fetches the memory and answers waiting messages. A longer limit in the settings wins.
const FIRST_WAKE: Duration = Duration::from_secs(600);
/// Extra time for a wake to end after its working time.
const WAKE_END: Duration = Duration::from_secs(60);
/// Time for a bot to take its lock, if no report is required.
const BOT_START: Duration = Duration::from_secs(10);
/// How often to check meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Time for the replaced bot to end. It waits half a minute for its own wake.
const BOT_END: Duration = Duration::from_secs(60);
/// Time for a bot that didn't report in to end before it is killed.
const FAILED_END: Duration = Duration::from_secs(5);
/// Maximum age of Telegram's last answer to a bot that counts as connected.
const RECENT_POLL: TimeDelta = TimeDelta::minutes(3);

/// The state of a trial, with facts from before the restart of the bot.
pub(super) struct Trial<'a> {
    config: &'a Config,
    to: &'a Installation,
    starter: Starter,
    /// Time for the bot to report in.
    within: Duration,
    bot_before: Option<Identity>,
    /// `true` if Telegram answered the previous bot recently. Then it has to answer the new one too.
    was_connected: bool,
    /// `true` once the new bot has reported in. Then it works, and may have to wait for its own wake.
    has_reported: bool,
    /// The process started here in place of cron.
    child: Option<Child>,
}

impl<'a> Trial<'a> {
    pub(super) fn new(config: &'a Config, to: &'a Installation, starter: Starter, within: Duration) -> Self {
        let now = config.clock().now();
        let last_poll =
            query_database(config, |store, bot_id| store.inbox().find_last_poll_time(bot_id).ok().flatten());
        let was_connected = last_poll.is_some_and(|at| (now - at).abs() < RECENT_POLL);
        Self {
            config,
            to,
            starter,
            within,
            bot_before: running_bot(config),
            was_connected,
            has_reported: false,
            child: None,
        }
    }

    /// Ends the running bot, which yields to a new one.
    pub(super) fn end_present_bot(&self) -> Result<(), String> {
        if !end_bot(self.config, BOT_END) {
            return Err(
                "the running bot is still finishing its work and will end then. Try again in a minute".to_owned()
            );
        }
        Ok(())
    }

    /// Starts a bot at once, as cron would.
    pub(super) fn start_bot(&mut self) -> Result<(), String> {
        let spec = Spec::new("/bin/sh").args(["-c", &bot_command(self.to)]).current_dir(&self.to.workspace);
        self.child = Some(process::start_detached(&spec).map_err(|error| error.to_string())?);
        Ok(())
    }

    /// Waits for the new bot's report.
    pub(super) fn check_report(&mut self) -> Result<(), String> {
        let has_reached = self.wait_for_report()?;
        self.has_reported = true;
        match has_reached {
            true => complain("  ✓ the new bot has reported in"),
            false => complain("  ✓ the new bot is running; Telegram can't be reached at the moment"),
        }
        Ok(())
    }

    /// Runs a wake, and checks that something starts it and that the bot runs.
    pub(super) fn check(&self) -> Result<ExitCode, String> {
        let code = self.run_wake()?;
        if code != ExitCode::SUCCESS {
            return Ok(code);
        }
        self.check_starter()?;
        if self.to.with_bot {
            if !self.wait_until(BOT_START, || running_bot(self.config).is_some()) {
                return Err(format!("the bot didn't report in; {} says why", self.describe_log()));
            }
            complain("  ✓ the bot is running");
        }
        Ok(code)
    }

    /// Waits for the new bot's report. Returns `true` if Telegram has answered it.
    fn wait_for_report(&mut self) -> Result<bool, String> {
        let (config, before) = (self.config, self.bot_before.clone());
        let new_bot = || running_bot(config).filter(|bot| before.as_ref() != Some(bot));
        let reported = |has_reached: bool| {
            let report =
                query_database(config, |store, bot_id| store.maintenance().find_bot_report(bot_id).ok().flatten());
            let is_it = |report: &BotReport| new_bot().as_ref() == Some(&report.bot);
            report.filter(is_it).is_some_and(|report| report.has_reached || !has_reached)
        };
        let begun = Instant::now();
        while begun.elapsed() < self.within {
            if reported(true) {
                return Ok(true);
            }
            let ended = self.child.as_mut().and_then(|child| child.try_wait().ok().flatten());
            if let Some(status) = ended.filter(|_| running_bot(config).is_none()) {
                return Err(format!(
                    "the bot ended at once ({}); {} says why",
                    process::describe_exit(status),
                    self.describe_log()
                ));
            }
            thread::sleep(LOOK_EVERY);
        }
        if !self.was_connected && reported(false) {
            return Ok(false);
        }
        Err(format!("the bot didn't report in within {} s; {} says why", self.within.as_secs(), self.describe_log()))
    }

    fn wait_until(&self, within: Duration, condition: impl Fn() -> bool) -> bool {
        let begun = Instant::now();
        while !condition() {
            if begun.elapsed() >= within {
                return false;
            }
            thread::sleep(LOOK_EVERY);
        }
        true
    }

    /// Runs one wake without the secrets of this environment, which a timer lacks too.
    fn run_wake(&self) -> Result<ExitCode, String> {
        // Replies to the terminal wait for someone who watches.
        let mut words = ["--once", "--reason", "cron", "--json", "--no-console"].map(str::to_owned).to_vec();
        if let Some(file) = &self.to.env_file {
            words.extend(["--env-file".to_owned(), file.display().to_string()]);
        }
        let wake = Spec::new(self.to.bin.join("wake"))
            .args(words)
            .env("WORKSPACE_DIR", &self.to.workspace)
            .current_dir(&self.to.workspace)
            .timeout(FIRST_WAKE.max(self.config.wake_timeout + WAKE_END));
        let ran = process::run(&wake).map_err(|error| format!("the new `wake` doesn't run: {error}"))?;
        let said = String::from_utf8_lossy(&ran.stderr).trim().to_owned();
        match ran.status.code() {
            Some(0) => {
                complain("  ✓ a wake ran");
                Ok(ExitCode::SUCCESS)
            }
            Some(78) => {
                complain(&format!(
                    "  ✗ installed, but a setting is wrong (`wake init` corrects it; then run `wake install` again):\n{said}"
                ));
                Ok(ExitCode::from(EXIT_CONFIG))
            }
            Some(1) if reports_cycle(&ran.stdout) => {
                complain(&format!("  ✓ a wake ran, but its work has to wait:\n{said}"));
                Ok(ExitCode::SUCCESS)
            }
            _ => Err(format!("a test wake failed ({}):\n{said}", process::describe_exit(ran.status))),
        }
    }

    fn check_starter(&self) -> Result<(), String> {
        let is_started = match self.starter {
            Starter::Systemd => run_systemctl(&["is-active", "--quiet", "reveille-wake.timer"]),
            Starter::Launchd => {
                super::succeeds(&["launchctl", "print", &format!("gui/{}/org.reveille.wake", user_id())])
            }
            Starter::Cron => process::is_running("cron") || process::is_running("crond"),
        };
        match (is_started, self.starter) {
            (true, _) => complain("  ✓ it will start every five minutes"),
            (false, Starter::Cron) => {
                complain("  ✗ the crontab is written, but cron isn't running: start it (Debian: service cron start)");
            }
            (false, _) => return Err("it was installed, but nothing starts it".to_owned()),
        }
        Ok(())
    }

    /// Switches back to the previous build and starts its bot. Returns the report for the person.
    pub(super) fn roll_back(mut self, versions: &Versions, before: &str) -> String {
        // fault: build-isnt-called-again
        let back = InstallStep::Link { path: versions.current_link(), to: versions.build_dir(before) };
        if let Err(error) = perform_step(&back) {
            return format!(
                "The previous programs couldn't be restored: {error}. Run {} install.",
                previous_wake_path(versions)
            );
        }
        let kept = "Nothing stored or sent is lost: they continue with the database as it is.";
        if !self.to.with_bot {
            return format!("The previous programs are in use again. {kept}");
        }
        let restarted = match restart_step(self.starter, user_id()) {
            Some(step) => perform_step(&step).map(drop).map_err(|error| error.to_string()),
            None => {
                self.end_failed_bot();
                self.start_bot()
            }
        };
        let runs = restarted.and_then(|()| {
            let why = || format!("it didn't report in; {} says why", self.describe_log());
            self.wait_until(BOT_START, || running_bot(self.config).is_some()).then_some(()).ok_or_else(why)
        });
        match runs {
            Ok(()) => format!("The previous programs are in use again, and their bot is running. {kept}"),
            Err(why) => format!(
                "The previous programs are in use again. Their bot couldn't be started: {why}. {kept} Telegram keeps what you send for a \
                 day."
            ),
        }
    }

    /// Ends the failed bot at any stage. Spares the previous bot if it is still finishing its work.
    fn end_failed_bot(&mut self) {
        if self.bot_before.as_ref().is_some_and(Identity::is_alive) {
            return;
        }
        end_bot(self.config, if self.has_reported { BOT_END } else { FAILED_END });
        let child = self.child.take().and_then(|mut child| {
            let lives = matches!(child.try_wait(), Ok(None));
            Identity::for_pid(child.id()).filter(|_| lives)
        });
        for failed in [running_bot(self.config), child].into_iter().flatten() {
            process::end_process(&failed, FAILED_END).ok();
        }
    }

    fn describe_log(&self) -> String {
        match self.starter {
            Starter::Systemd => "journalctl --user -u reveille-bot".to_owned(),
            Starter::Launchd | Starter::Cron => self.to.bot_errors().display().to_string(),
        }
    }
}

/// Returns the path of the previous build's `wake`, for a person to type.
pub(super) fn previous_wake_path(versions: &Versions) -> String {
    versions.previous_link().join("wake").display().to_string()
}

/// Returns `true` if the report is of a wake with a cycle. Then the build works, and only a model or a budget is missing.
fn reports_cycle(report: &[u8]) -> bool {
    serde_json::from_slice::<serde_json::Value>(report)
        .is_ok_and(|report| report.get("cycle_id").is_some_and(serde_json::Value::is_string))
}

/// Finds the running bot.
fn running_bot(config: &Config) -> Option<Identity> {
    wake_lock::read_holder(&config.bot_lock_path()).map(|holder| holder.identity()).filter(Identity::is_alive)
}

/// Reads from the database about this token's bot. `None` if the database can't be read, for example before an upgrade
/// of its schema.
fn query_database<T>(config: &Config, what: impl Fn(&Store, i64) -> Option<T>) -> Option<T> {
    let bot_id = connect_telegram(config).ok().flatten()?.bot_id();
    let store = database::open_read_only(config).ok().flatten()?;
    what(&store, bot_id)
}

/// Ends the running bot. Returns `true` once it is gone; a slower bot finishes its work first.
pub(super) fn end_bot(config: &Config, within: Duration) -> bool {
    let Some(bot) = running_bot(config) else { return true };
    process::ask_to_end(&bot);
    let begun = Instant::now();
    while bot.is_alive() {
        if begun.elapsed() >= within {
            return false;
        }
        thread::sleep(LOOK_EVERY);
    }
    true
}
