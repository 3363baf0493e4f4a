//! The schedulers that start wakes without a person: the sign they leave, and the warning if there is none.
//!
//! A wake started by cron or a timer touches one file, even if nothing is due: one system call without the database. A running program
//! that starts wakes is known by its lock. If neither is present, setting a reminder or job comes with a warning, because it would fire
//! late or never.

use std::{fs::File, path::PathBuf};

use chrono::{DateTime, TimeDelta, Utc};
use rustix::{
    fs::{AtFlags, CWD, Timestamps, utimensat},
    io::Errno,
    time::Timespec,
};

use reveille_base::{
    file, process,
    words::{local_day_and_time, quote_for_shell},
};
use reveille_config::Config;

use crate::wake_lock;

/// An older look isn't part of a series: cron runs at least every quarter of an hour.
const RECENT: TimeDelta = TimeDelta::minutes(30);
/// The triggers that only a scheduler gives.
const BY_ITSELF: [&str; 4] = ["cron", "launchd", "systemd", "timer"];
/// Programs that run others by the clock: a wake they start without a trigger is scheduled, too.
const SCHEDULERS: [&str; 5] = ["cron", "crond", "anacron", "fcron", "supercronic"];
/// The default trigger.
const UNNAMED: &str = "cli";

/// The state of the schedulers that start wakes without a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waker {
    /// The time of the last look by a scheduled wake.
    pub looked_at: Option<DateTime<Utc>>,
    /// The running programs that start wakes for due work.
    pub running: Vec<Starting>,
    now: DateTime<Utc>,
}

/// A running program that starts wakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Starting {
    /// The bot.
    Bot,
    /// A `wake` that stays running.
    Stay,
    /// The local page.
    Page,
    /// A chat in a terminal.
    Chat,
}

impl Starting {
    const ALL: [Self; 4] = [Self::Bot, Self::Stay, Self::Page, Self::Chat];

    /// The name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bot => "the bot",
            Self::Stay => "the `wake` that stays",
            Self::Page => "the page",
            Self::Chat => "`wake chat`",
        }
    }

    /// Returns whether the program runs unattended: a program opened by a person ends when the person leaves.
    pub fn is_lasting(self) -> bool {
        matches!(self, Self::Bot | Self::Stay)
    }

    fn lock_path(self, config: &Config) -> PathBuf {
        match self {
            Self::Bot => config.bot_lock_path(),
            Self::Stay => config.workspace_dir.join(".stay-lock"),
            Self::Page => config.page_lock_path(),
            Self::Chat => config.workspace_dir.join(".chat-lock"),
        }
    }

    fn is_running(self, config: &Config) -> bool {
        let path = self.lock_path(config);
        match self {
            // The bot's line outlives its process.
            Self::Bot => wake_lock::read_holder(&path).is_some_and(|holder| holder.identity().is_alive()),
            Self::Stay | Self::Page | Self::Chat => wake_lock::is_held(&path),
        }
    }

    /// Marks this process as this program, until the file is dropped; `None` if another process has the mark, or the mark can't be set.
    pub fn mark_process(self, config: &Config) -> Option<File> {
        let file = file::open_private(&self.lock_path(config)).ok()?;
        fs2::FileExt::try_lock_exclusive(&file).is_ok().then_some(file)
    }
}

/// Returns whether a wake was scheduled: by its trigger, or without one by an ancestor that runs programs by the clock.
pub fn is_by_itself(reason: &str) -> bool {
    BY_ITSELF.contains(&reason) || reason == UNNAMED && process::descends_from(&SCHEDULERS)
}

/// Leaves the sign of a scheduled look. A failure only leads to a needless hint about cron.
pub fn leave_sign(config: &Config, now: DateTime<Utc>) {
    let (path, at) = (config.wake_request_path(), Timespec { tv_sec: now.timestamp(), tv_nsec: 0 });
    let times = Timestamps { last_access: at, last_modification: at };
    let touch = || utimensat(CWD, &path, &times, AtFlags::empty());
    let left = match touch() {
        Err(Errno::NOENT) => file::open_private(&path).and_then(|_| Ok(touch()?)),
        touched => touched.map_err(Into::into),
    };
    if let Err(error) = left {
        tracing::debug!(%error, "couldn't leave the sign of a scheduled wake");
    }
}

impl Waker {
    /// Reads the state of the schedulers.
    pub fn load(config: &Config, now: DateTime<Utc>) -> Self {
        let touched = std::fs::metadata(config.wake_request_path()).and_then(|file| file.modified());
        let running = Starting::ALL.into_iter().filter(|program| program.is_running(config)).collect();
        Self { looked_at: touched.ok().map(DateTime::from), running, now }
    }

    /// Returns whether a timer is active.
    pub fn has_active_timer(&self) -> bool {
        self.looked_at.is_some_and(|at| (self.now - at).abs() <= RECENT)
    }

    /// Returns whether something starts wakes unattended.
    pub fn is_lasting(&self) -> bool {
        self.has_active_timer() || self.running.iter().any(|program| program.is_lasting())
    }

    /// A warning for a person who has just set something; `None` if wakes are scheduled.
    pub fn render_warning(&self, config: &Config) -> Option<String> {
        if self.is_lasting() {
            return None;
        }
        let who = match self.looked_at {
            _ if !self.running.is_empty() => {
                let open = self.running.iter().map(|program| program.name()).collect::<Vec<_>>().join(" or ");
                let told =
                    format!("This will come while {open} is open. Once that's closed, nothing wakes me on its own.");
                return Some(format!("{told} {}", self.describe_setup(config)));
            }
            Some(at) => format!("Nothing has woken me on its own since {}", local_day_and_time(at, config.timezone)),
            None => "Nothing wakes me on its own yet".to_owned(),
        };
        Some(format!("{who}, so this will only come when you run `wake --once`. {}", self.describe_setup(config)))
    }

    /// Instructions for setting up a scheduler.
    pub fn describe_setup(&self, config: &Config) -> String {
        format!("To change that, run `wake install`, or add this line with `crontab -e`: `{}`", cron_line(config))
    }
}

/// The crontab line for a look every five minutes, with the settings that cron doesn't know.
pub fn cron_line(config: &Config) -> String {
    let mut line = "*/5 * * * * ".to_owned();
    let own = config.home.as_ref().map(|home| home.join(".local/share/reveille"));
    match &config.named_env_file {
        None if own.as_ref() != Some(&config.workspace_dir) => {
            line.push_str(&format!("WORKSPACE_DIR={} ", quote_for_shell(&config.workspace_dir)));
        }
        _ => {}
    }
    line.push_str(&quote_for_shell(&process::resolve_sibling_program("wake")));
    line.push_str(" --once --reason cron");
    if let Some(file) = &config.named_env_file {
        line.push_str(&format!(" --env-file {}", quote_for_shell(file)));
    }
    line
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, path::Path};

    use super::*;
    use reveille_base::clock::parse_time;

    fn at(time: &str) -> DateTime<Utc> {
        parse_time(&format!("2026-11-21T{time}:00Z")).unwrap()
    }

    fn config(dir: &Path) -> Config {
        let dir = dir.display().to_string();
        let env = BTreeMap::from([("HOME".to_owned(), dir.clone()), ("WORKSPACE_DIR".to_owned(), dir)]);
        Config::from_sources(&env, None, Some("UTC")).unwrap()
    }

    #[test]
    fn programs_are_told_from_hands() {
        assert!(is_by_itself("cron") && is_by_itself("timer"));
        assert!(!is_by_itself("cli") && !is_by_itself("nudge") && !is_by_itself("page"));
    }

    #[test]
    fn a_sign_counts_for_half_an_hour() {
        let dir = tempfile::tempdir().unwrap();
        let config = config(dir.path());
        assert_eq!(Waker::load(&config, at("12:00")).looked_at, None);
        for time in ["11:00", "12:00"] {
            leave_sign(&config, at(time));
            assert_eq!(Waker::load(&config, at("12:00")).looked_at, Some(at(time)));
        }
        let wakes = |time| Waker::load(&config, at(time)).is_lasting();
        assert_eq!(["11:45", "12:00", "12:30", "12:31", "20:00"].map(wakes), [true, true, true, false, false]);
    }

    #[test]
    fn what_is_said_fits_what_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let config = config(dir.path());
        let waker = |looked_at: Option<&str>, running: &[Starting]| Waker {
            looked_at: looked_at.map(at),
            running: running.to_vec(),
            now: at("12:00"),
        };
        let says = |waker: Waker, start: &str| {
            let said = waker.render_warning(&config).unwrap();
            assert!(said.starts_with(start) && said.contains("`*/5 * * * * WORKSPACE_DIR="), "{said}");
        };
        says(waker(None, &[]), "Nothing wakes me on its own yet, so this will only come when you");
        let stopped = "Nothing has woken me on its own since Sat 21 Nov 09:00, so this will only come when you";
        says(waker(Some("09:00"), &[]), stopped);
        let open =
            "This will come while the page or `wake chat` is open. Once that's closed, nothing wakes me on its own.";
        says(waker(None, &[Starting::Page, Starting::Chat]), open);
        assert_eq!(waker(None, &[Starting::Bot]).render_warning(&config), None);
        assert_eq!(waker(None, &[Starting::Page, Starting::Stay]).render_warning(&config), None);
        assert_eq!(waker(Some("11:50"), &[]).render_warning(&config), None);
    }

    #[test]
    fn a_program_is_known_while_it_shows_itself() {
        let dir = tempfile::tempdir().unwrap();
        let config = config(dir.path());
        let running = || Waker::load(&config, at("12:00")).running;
        let chat = Starting::Chat.mark_process(&config);
        assert!(chat.is_some() && Starting::Chat.mark_process(&config).is_none());
        assert_eq!(running(), [Starting::Chat]);
        drop(chat);
        assert_eq!(running(), []);
    }
}
