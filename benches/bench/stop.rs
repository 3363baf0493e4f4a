//! Measures `/stop` while a wake makes one tool call after the other: from the update to the start of the last call, by the journal.

use std::{
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

use super::{
    measure::milliseconds,
    support::{
        claude::{Block, FakeClaude, Reply},
        env::{CHAT, TestEnv, eventually},
        telegram::FakeTelegram,
    },
    table::{Bound, Row},
};

const BOT: &str = env!("CARGO_BIN_EXE_bot");
/// Calls of one turn: far more than can run before the order arrives.
const CALLS: i64 = 2_000;
/// The interval between reads of the journal, and their duration after the wake has stopped.
const READ_EVERY: Duration = Duration::from_millis(1);
const KEEP_READING: Duration = Duration::from_secs(1);
/// The latest time at which a call may start, in milliseconds.
const NO_CALL_AFTER_MS: f64 = 500.0;

pub(crate) fn measure(rounds: usize) -> Vec<Row> {
    let measured = (0..rounds).map(|_| last_call()).collect();
    vec![Row::alone("/stop, until the last tool call begins", "ms", measured, Bound::Max(NO_CALL_AFTER_MS))]
}

/// Milliseconds from `/stop` to the last call, or the reason why nothing was measured.
fn last_call() -> Result<f64, String> {
    let (telegram, claude) = (FakeTelegram::start(), FakeClaude::start());
    let mut env = TestEnv::with_telegram(&telegram);
    env.think_with(&claude);
    env.wake(&["--once"]).ok();
    let call = |n| Block::tool(&format!("t{n}"), "remember", json!({"fact": format!("the number {n} is a number")}));
    claude.expect(Reply::tools((0..CALLS).map(call).collect()));
    let bot = env.start(BOT, &["run"]);
    telegram.push_text(CHAT, CHAT, "remember the numbers");
    let called = || env.query::<i64>("SELECT count(*) FROM cycle_journal WHERE kind = 'called'");
    let is_locked = || env.query::<i64>("SELECT is_locked FROM processing_lock") == 1;
    eventually("it is at work", || called() > 3);
    let begun = Instant::now();
    telegram.push_text(CHAT, CHAT, "/stop");
    let (mut seen, mut last, mut free_since) = (called(), Duration::ZERO, None);
    while free_since.is_none_or(|since: Instant| since.elapsed() < KEEP_READING) {
        let now = called();
        if now > seen {
            (seen, last) = (now, begun.elapsed());
        }
        if !is_locked() {
            free_since.get_or_insert_with(Instant::now);
        }
        thread::sleep(READ_EVERY);
    }
    drop(bot);
    if seen < CALLS {
        Ok(milliseconds(last))
    } else {
        Err("every call had begun before the bot got the order".to_owned())
    }
}
