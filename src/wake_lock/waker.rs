//! What wakes the assistant without a hand: the sign that it leaves, and what is said where there is none.
//!
//! Whatever cron, a timer or a staying `wake` starts touches one file, also when nothing is due: a system call, and nothing in the
//! database. A bot is known by its lock. What is set for a time says so when neither is there: it would come late or never.

use std::{
    fs::{File, OpenOptions},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use chrono::{DateTime, TimeDelta, Utc};
use rustix::{
    fs::{AtFlags, CWD, Timestamps, utimensat},
    io::Errno,
    time::Timespec,
};

use crate::{
    config::Config,
    process, wake_lock,
    words::{in_shell, local_day_and_time},
};

/// A look that is longer ago isn't one of a series: cron looks every quarter of an hour at the least.
const RECENT: TimeDelta = TimeDelta::minutes(30);
/// Reasons that only programs give.
const BY_ITSELF: [&str; 5] = ["cron", "launchd", "systemd", "timer", "stay"];
/// Reasons that are a person's, or the bot's: its wakes say nothing about who wakes when the bot is gone.
const BY_HAND: [&str; 4] = ["say", "undo", "approval", "nudge"];

/// What has looked without a hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waker {
    /// When somebody's program last had a wake look.
    pub looked_at: Option<DateTime<Utc>>,
    /// Whether a bot runs, which wakes for messages and reminders.
    pub bot_runs: bool,
    now: DateTime<Utc>,
}

/// What needs to be woken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timed {
    /// A reminder: a bot's wakes do, too.
    Reminder,
    /// A task's own time: it stands in the memory, which a bot doesn't read.
    Task,
}

/// Whether a wake is somebody's program's and no person's, by its reason and by whether it can be watched.
pub fn is_by_itself(reason: &str, is_watched: bool) -> bool {
    BY_ITSELF.contains(&reason) || !is_watched && !BY_HAND.contains(&reason)
}

/// Leaves the sign that a wake looked by itself. Where it can't be left, the worst is a word too much about cron.
pub fn leave_sign(config: &Config, now: DateTime<Utc>) {
    let (path, at) = (config.look_path(), Timespec { tv_sec: now.timestamp(), tv_nsec: 0 });
    let times = Timestamps { last_access: at, last_modification: at };
    let touch = || utimensat(CWD, &path, &times, AtFlags::empty());
    let left = match touch() {
        Err(Errno::NOENT) => create(&path).and_then(|_| Ok(touch()?)),
        touched => touched.map_err(Into::into),
    };
    if let Err(error) = left {
        tracing::debug!(%error, "no sign is left that a wake has looked");
    }
}

fn create(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
}

impl Waker {
    /// Looks who wakes.
    pub fn look(config: &Config, now: DateTime<Utc>) -> Self {
        let touched = std::fs::metadata(config.look_path()).and_then(|file| file.modified());
        let bot = wake_lock::read(&config.bot_lock_path());
        Self {
            looked_at: touched.ok().map(DateTime::from),
            bot_runs: bot.is_some_and(|holder| holder.identity().is_alive()),
            now,
        }
    }

    /// Whether something comes by for it.
    pub fn wakes_for(&self, what: Timed) -> bool {
        let looks = self.looked_at.is_some_and(|at| (self.now - at).abs() <= RECENT);
        looks || self.bot_runs && what == Timed::Reminder
    }

    /// What to tell a person who has just set something; none where something comes by for it.
    pub fn warning(&self, what: Timed, config: &Config) -> Option<String> {
        if self.wakes_for(what) {
            return None;
        }
        let (who, when) = match self.looked_at {
            _ if self.bot_runs => ("The bot doesn't wake me for a task's time".to_owned(), "late"),
            Some(at) => {
                let at = local_day_and_time(at, config.timezone);
                (format!("Nothing has woken me by itself since {at}"), "only when you run `wake --once`")
            }
            None => ("Nothing wakes me by itself yet".to_owned(), "only when you run `wake --once`"),
        };
        Some(format!("{who}, so this will come {when}. {}", self.mending(config)))
    }

    /// How to have something come by.
    pub fn mending(&self, config: &Config) -> String {
        format!("`wake install` sets that up; so does this line with `crontab -e`: `{}`", cron_line(config))
    }
}

/// The line that lets cron look every five minutes, with what cron doesn't know.
pub fn cron_line(config: &Config) -> String {
    let mut line = "*/5 * * * * ".to_owned();
    let own = config.home.as_ref().map(|home| home.join(".local/share/reveille"));
    match &config.named_env_file {
        None if own.as_ref() != Some(&config.workspace_dir) => {
            line.push_str(&format!("WORKSPACE_DIR={} ", in_shell(&config.workspace_dir)));
        }
        _ => {}
    }
    line.push_str(&in_shell(&process::beside("wake")));
    line.push_str(" --once");
    if let Some(file) = &config.named_env_file {
        line.push_str(&format!(" --env-file {}", in_shell(file)));
    }
    line
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::clock::parse_time;

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
        assert!(is_by_itself("cli", false) && is_by_itself("cron", true) && is_by_itself("stay", true));
        assert!(!is_by_itself("cli", true) && !is_by_itself("nudge", false));
    }

    #[test]
    fn a_sign_counts_for_half_an_hour() {
        let dir = tempfile::tempdir().unwrap();
        let config = config(dir.path());
        assert_eq!(Waker::look(&config, at("12:00")).looked_at, None);
        for time in ["11:00", "12:00"] {
            leave_sign(&config, at(time));
            assert_eq!(Waker::look(&config, at("12:00")).looked_at, Some(at(time)));
        }
        let wakes = |time| Waker::look(&config, at(time)).wakes_for(Timed::Reminder);
        assert_eq!(["11:45", "12:00", "12:30", "12:31", "20:00"].map(wakes), [true, true, true, false, false]);
    }

    #[test]
    fn what_is_said_fits_what_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let config = config(dir.path());
        let waker =
            |looked_at: Option<&str>, bot_runs| Waker { looked_at: looked_at.map(at), bot_runs, now: at("12:00") };
        let says = |waker: Waker, what, start: &str| {
            let said = waker.warning(what, &config).unwrap();
            assert!(said.starts_with(start) && said.contains("`*/5 * * * * WORKSPACE_DIR="), "{said}");
        };
        says(waker(None, false), Timed::Reminder, "Nothing wakes me by itself yet, so this will come only when you");
        let stopped = "Nothing has woken me by itself since Sat 21 Nov 09:00, so this will come only when you";
        says(waker(Some("09:00"), false), Timed::Task, stopped);
        says(waker(None, true), Timed::Task, "The bot doesn't wake me for a task's time, so this will come late.");
        assert_eq!(waker(None, true).warning(Timed::Reminder, &config), None);
        assert_eq!(waker(Some("11:50"), false).warning(Timed::Task, &config), None);
    }
}
