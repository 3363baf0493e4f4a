//! A person's week by the clock: messages, edits, a voice note, a closed laptop, an upgrade, a dead remote, a spent budget, a full
//! disk. At the end every promise of docs/RELIABILITY.md and the growth of all sizes are checked. Trials from
//! [`LONG`] on run cron every twenty minutes, those below it every four hours.
//!
//! The bot runs while the laptop is open, in the morning and in the evening; the clock stands still meanwhile.

mod check;
mod growth;
mod world;

use fastrand::Rng;
use serde_json::json;

pub(crate) use growth::{FLAG as MEASURE, run as measure};
use world::{Budget, Life, What};

use crate::{
    layer::{Layer, Recovery, Share},
    support::env::{CHAT, TestEnv, eventually},
};

/// The first trial with cron's usual interval.
const LONG: u64 = 500;
const TRIALS: u64 = 1_000;

/// Plays one day; an error describes a violation.
type LivedDay = fn(&mut Life<'_>) -> Result<(), String>;

/// The days, Monday first.
const DAYS: [LivedDay; 7] = [monday, tuesday, wednesday, thursday, friday, saturday, sunday];

pub(crate) struct Week;

impl Layer for Week {
    fn space(&self) -> Option<u64> {
        Some(TRIALS)
    }

    fn sample_space(&self) -> Option<u64> {
        Some(LONG)
    }

    fn trials(&self, share: Share) -> u64 {
        if share == Share::Sample { 1 } else { 16 }
    }

    fn trial(&self, id: u64) -> Result<Recovery, String> {
        // Declared first, so the mount is dropped after everything in it.
        let outer = TestEnv::new();
        let life = &mut Life::begin(&outer, Rng::with_seed(id), if id < LONG { 240 } else { 20 });
        for (number, day) in DAYS.into_iter().enumerate() {
            let number = i64::try_from(number).unwrap();
            life.at(number, 7 * 60);
            day(life).map_err(|why| format!("day {}: {why}", number + 1))?;
        }
        check::all(life)?;
        Ok(Recovery(None))
    }
}

/// The product is installed and gets a daily reminder.
fn monday(life: &mut Life<'_>) -> Result<(), String> {
    life.install("build")?;
    life.say(What::Daily);
    life.say_some();
    life.close()?;
    life.evening()
}

/// A voice note, a text corrected before anybody read it, and a commit from the person's other machine.
fn tuesday(life: &mut Life<'_>) -> Result<(), String> {
    let token = life.token(1);
    life.set_voice_text(&format!("remember that the milk of {token} is out"));
    let note = json!({"file_id": "note", "file_unique_id": "n", "duration": 3, "mime_type": "audio/ogg"});
    life.telegram.push_message(CHAT, &json!({ "voice": note }));
    let (typo, corrected) = (life.token(0), life.token(1));
    let message = life.telegram.push_text(CHAT, CHAT, &format!("remember that the oven of {typo} is hot")) - 900;
    life.edit(message, &format!("remember that the oven of {corrected} is hot"));
    life.open();
    life.say_some();
    life.close()?;
    life.commit_elsewhere();
    life.evening()?;
    life.measure()
}

/// The laptop stays closed until the evening, but messages arrive.
fn wednesday(life: &mut Life<'_>) -> Result<(), String> {
    life.say_some();
    life.at(2, 18 * 60);
    life.open();
    life.close()?;
    life.pass(24 * 60)
}

/// A newer build takes over while messages come.
fn thursday(life: &mut Life<'_>) -> Result<(), String> {
    life.open();
    life.say_some();
    life.newer_build();
    life.install("newer")?;
    life.say_some();
    life.close()?;
    life.evening()
}

/// The remote is unreachable until the evening.
fn friday(life: &mut Life<'_>) -> Result<(), String> {
    let (remote, away) = (life.env.path("remote.git"), life.env.path("away.git"));
    std::fs::rename(&remote, &away).map_err(|error| error.to_string())?;
    life.open();
    life.say_some();
    life.close()?;
    life.pass(19 * 60)?;
    std::fs::rename(&away, &remote).map_err(|error| error.to_string())?;
    life.evening()
}

/// A paid model and a spent budget: questions wait until Sunday.
fn saturday(life: &mut Life<'_>) -> Result<(), String> {
    life.budget(Budget::Spent);
    life.open();
    life.say(What::Question);
    let told = |life: &Life<'_>| life.telegram.sent().iter().any(|sent| sent.visible.contains("DAILY_BUDGET_USD"));
    eventually("it is told that the budget is spent", || told(life));
    life.say(What::Fact);
    life.close()?;
    life.evening()
}

/// The disk is full when the laptop is opened. There is money again.
fn sunday(life: &mut Life<'_>) -> Result<(), String> {
    life.budget(Budget::Enough);
    life.fill_disk();
    life.say_some();
    if life.is_full() {
        // This wake may fail without any loss.
        life.run_cron_wake();
        life.free_disk();
    }
    life.open();
    life.close()?;
    life.evening()?;
    life.measure()
}
