//! The programs of the stories with a bot: people's actions during the run, and the end of all possible work.

use std::{
    fs,
    path::PathBuf,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal};

use super::{FIRST_UPDATE, proxy::Proxy, scene::survivor};
use crate::{
    support::env::{CHAT, ProgramOutput, TestEnv, eventually},
    world::World,
};

/// The duration of a lasting fault from its first effect, for a program that keeps running.
const LASTING: Duration = Duration::from_millis(1_500);
/// The longest time a trial waits.
const PATIENCE: Duration = Duration::from_secs(60);
/// The interval between checks.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Questions without a visible result.
const UNSHOWN: &str = "SELECT count(*) FROM approvals WHERE shown != state";
/// The webhook for the bot's updates.
const WEBHOOK: &str = "https://elsewhere.example/hook";

/// Lets a person and a stranger write in two batches, and runs a bot until everything is stored, confirmed and answered.
pub(super) fn live_with_bot(world: &mut World, network: Option<&Proxy>) -> Result<ProgramOutput, String> {
    let stored = |env: &TestEnv| env.query::<i64>("SELECT count(*) FROM incoming_messages");
    let before = stored(&world.env);
    world.telegram.number_updates_from(FIRST_UPDATE);
    world.telegram.push_text(CHAT, CHAT, "remember that Anna has a dog");
    world.telegram.push_text(CHAT, CHAT, "/help");
    world.telegram.push_text(666, 666, "hello?");
    let mut bot = Bot::start(world);
    let (begun, mut is_all_said) = (Instant::now(), false);
    while !is_all_said || stored(&world.env) < before + 2 || !is_all_done(world) {
        if begun.elapsed() > PATIENCE {
            return Err(format!("not all was stored, confirmed and answered: {:#?}", bot.kill()));
        }
        mend_in_time(network);
        if bot.has_ended() {
            network.map(Proxy::mend);
            let ended = bot.end()?;
            // Telegram didn't know the token, which only a person can fix.
            if ended.code != 78 || !ended.notices().contains("TELEGRAM_BOT_TOKEN") {
                return Err(format!("the bot ended by itself: {ended:#?}"));
            }
            bot = Bot::start(world);
        }
        if !is_all_said && stored(&world.env) > before {
            is_all_said = true;
            world.telegram.push_text(CHAT, CHAT, "remember that Bob has a cat");
        }
        std::thread::sleep(LOOK_EVERY);
    }
    bot.signal(Signal::TERM);
    let ran = bot.end()?;
    // A wake the bot started may end after it.
    eventually("its wakes have ended", || survivor(&world.env).is_none());
    Ok(ran)
}

/// The same while the messages go to a webhook, until a person removes the webhook.
pub(super) fn live_with_webhook(world: &mut World, network: &Proxy) -> Result<ProgramOutput, String> {
    world.telegram.set_webhook(WEBHOOK);
    let explained = || world.telegram.calls("getWebhookInfo").len();
    let mut bot = Bot::start(world);
    eventually("the bot looks who has its messages", || explained() > 0 || network.met_for().is_some());
    let begun = Instant::now();
    loop {
        let ran = world.env.bot(&["webhook", "delete"]);
        mend_in_time(Some(network));
        let is_gone = !world.telegram.has_webhook();
        match ran.code {
            0 if is_gone => break,
            1 if begun.elapsed() < PATIENCE => {}
            _ => return Err(format!("`bot webhook delete` (the webhook is gone: {is_gone}): {ran:#?}")),
        }
    }
    bot.signal(Signal::TERM);
    bot.end()?;
    live_with_bot(world, Some(network))
}

/// Runs a bot until everything from Telegram is stored and confirmed, its files are here or postponed, and all other messages are
/// answered.
pub(super) fn live_with_files(world: &mut World, network: Option<&Proxy>) -> Result<ProgramOutput, String> {
    let mut bot = Bot::start(world);
    let begun = Instant::now();
    let has_met = || network.is_none_or(|network| !network.is_ordered() || network.met_for().is_some());
    while world.telegram.unconfirmed() > 0 || !is_at_rest(world) || !has_met() {
        if begun.elapsed() > PATIENCE || bot.has_ended() {
            return Err(format!("not all was stored, fetched and answered: {:#?}", bot.kill()));
        }
        mend_in_time(network);
        std::thread::sleep(LOOK_EVERY);
    }
    bot.signal(Signal::TERM);
    let ran = bot.end()?;
    eventually("its wakes have ended", || survivor(&world.env).is_none());
    Ok(ran)
}

/// Runs a bot until a question is answered by its button and the work is over, or the question can't be seen.
pub(super) fn live_with_question(world: &mut World, network: &Proxy) -> Result<ProgramOutput, String> {
    let mut bot = Bot::start(world);
    let begun = Instant::now();
    let mut is_pressed = false;
    let has_met = || !network.is_ordered() || network.met_for().is_some();
    loop {
        if begun.elapsed() > PATIENCE || bot.has_ended() {
            return Err(format!("not all was asked, answered and done: {:#?}", bot.kill()));
        }
        mend_in_time(Some(network));
        let state: Option<String> = world.env.query("SELECT max(state) FROM approvals");
        let is_waiting = state.as_deref() == Some("pending");
        match world.question() {
            Some(question) if !is_pressed => {
                world.telegram.tap(CHAT, CHAT, question.message_id, &question.buttons[0]);
                is_pressed = true;
            }
            None if is_waiting && has_met() && is_nobody_at_work(world) => break,
            Some(_) if !is_waiting && is_all_shown(world, network) => break,
            _ => {}
        }
        std::thread::sleep(LOOK_EVERY);
    }
    bot.signal(Signal::TERM);
    let ran = bot.end()?;
    eventually("its wakes have ended", || survivor(&world.env).is_none());
    Ok(ran)
}

/// Tells whether the work is over and shown, except for messages a fault prevents.
fn is_all_shown(world: &World, network: &Proxy) -> bool {
    let open = "SELECT (SELECT count(*) FROM cycles WHERE state IN ('running', 'waiting', 'parked'))
                + (SELECT count(*) FROM incoming_messages WHERE processed = 0)";
    let is_shown = network.met_for().is_some() || world.env.query::<i64>(UNSHOWN) == 0;
    let has_met = !network.is_ordered() || network.met_for().is_some();
    has_met
        && is_shown
        && world.env.query::<i64>(open) == 0
        && world.telegram.unconfirmed() == 0
        && is_nobody_at_work(world)
}

/// Runs a bot until each question shows its result.
pub(super) fn show_what_became(world: &World) {
    let bot = Bot::start(world);
    eventually("questions show what became of them", || world.env.query::<i64>(UNSHOWN) == 0);
    drop(bot);
    eventually("its wakes have ended", || survivor(&world.env).is_none());
}

/// Runs a bot for one round of its work.
pub(super) fn look_with_bot(world: &World) -> Result<ProgramOutput, String> {
    let polls = world.telegram.calls("getUpdates").len();
    let mut bot = Bot::start(world);
    eventually("it polls", || world.telegram.calls("getUpdates").len() > polls);
    bot.signal(Signal::TERM);
    let ran = bot.end()?;
    eventually("its wakes have ended", || survivor(&world.env).is_none());
    Ok(ran)
}

/// Ends a lasting fault after its time.
fn mend_in_time(network: Option<&Proxy>) {
    if network.and_then(Proxy::met_for).is_some_and(|time| time > LASTING) {
        network.map(Proxy::mend);
    }
}

fn is_nobody_at_work(world: &World) -> bool {
    let at_work = "SELECT (SELECT is_locked FROM processing_lock)
                   + (SELECT count(*) FROM outgoing_parts WHERE state = 'attempting')";
    world.env.query::<i64>(at_work) == 0
}

/// Tells whether no program is working and only postponed files are open.
fn is_at_rest(world: &World) -> bool {
    let queued = "SELECT count(*) FROM incoming_messages WHERE processed = 0";
    is_nobody_at_work(world)
        && world.open_files(true) == 0
        && (world.open_files(false) > 0 || world.env.query::<i64>(queued) == 0)
}

/// Tells whether Telegram has no more updates and no program is working.
fn is_all_done(world: &World) -> bool {
    let open = "SELECT (SELECT count(*) FROM incoming_messages WHERE processed = 0)
                + (SELECT is_locked FROM processing_lock)
                + (SELECT count(*) FROM outgoing_parts WHERE state = 'attempting')
                + NOT EXISTS (SELECT 1 FROM outgoing_messages WHERE kind = 'command')";
    world.telegram.unconfirmed() == 0 && world.env.query::<i64>(open) == 0
}

/// A running bot with its log file, which its wakes share; dropping it kills the bot.
struct Bot(Child, PathBuf);

impl Bot {
    fn start(world: &World) -> Self {
        let path = world.env.path("bot.log");
        let log = fs::File::options().create(true).append(true).open(&path).unwrap();
        let arguments = world.bot_arguments();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut command = world.env.command(env!("CARGO_BIN_EXE_bot"), &arguments);
        Self(command.stdout(Stdio::null()).stderr(log).spawn().unwrap(), path)
    }

    fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    fn end(&mut self) -> Result<ProgramOutput, String> {
        let begun = Instant::now();
        while !self.has_ended() {
            if begun.elapsed() > PATIENCE {
                return Err(format!("the bot doesn't end: {:#?}", self.kill()));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(self.kill())
    }

    fn kill(&mut self) -> ProgramOutput {
        self.0.kill().ok();
        let (status, stderr) = (self.0.wait().unwrap(), fs::read(&self.1).unwrap());
        ProgramOutput::of(&std::process::Output { status, stdout: Vec::new(), stderr })
    }
}

impl Drop for Bot {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
