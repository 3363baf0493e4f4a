//! Measures an answer while it is written: from the server's first words to the terminal's screen, and to Telegram as a draft.

use std::time::{Duration, Instant};

use super::{
    measure::milliseconds,
    support::{
        claude::{FakeClaude, Reply},
        env::{CHAT, TestEnv, eventually},
        http::Gate,
        story::{reply, wait_for_request},
        telegram::FakeTelegram,
    },
    table::{Bound, Row},
};

const WAKE: &str = env!("CARGO_BIN_EXE_wake");
const BOT: &str = env!("CARGO_BIN_EXE_bot");
const PROMPT: &str = "\x1b[?2004h";
const ANSWER: &str = "The sky is blue because short waves are scattered more than long ones by the air.";
/// The events before the first words.
const BEFORE_WORDS: usize = 3;
/// The latest time of the first words on the screen, in milliseconds.
const FIRST_WORDS_MS: f64 = 150.0;
/// The latest time of the first draft, in milliseconds: the bot looks ten times a second.
const FIRST_DRAFT_MS: f64 = 250.0;
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn measure(rounds: usize) -> Vec<Row> {
    let on_screen = (0..rounds).map(|_| Ok(first_words_on_screen())).collect();
    let as_draft = (0..rounds).map(|_| Ok(first_draft())).collect();
    vec![
        Row::alone("first words, from the server to the screen", "ms", on_screen, Bound::Max(FIRST_WORDS_MS)),
        Row::alone("first words, from the server to a draft", "ms", as_draft, Bound::Max(FIRST_DRAFT_MS)),
    ]
}

/// A model whose words come once the gate opens.
fn expect_answer(claude: &FakeClaude) -> Gate {
    let gate = Gate::default();
    claude.expect(reply("t1", ANSWER).stalled_after(BEFORE_WORDS, &gate));
    claude.expect(Reply::text("Done."));
    gate
}

fn first_words_on_screen() -> f64 {
    let (claude, mut env) = (FakeClaude::start(), TestEnv::new());
    env.set("TERM", "xterm");
    env.think_with(&claude);
    env.wake(&["--once"]).ok();
    let gate = expect_answer(&claude);
    let mut talk = env.talk(WAKE, &["chat"]);
    talk.wait_for_text(PROMPT);
    talk.types("why is the sky blue?\r");
    wait_for_request(&claude, 1);
    let begun = Instant::now();
    gate.open();
    talk.wait_for_text("│ The sky");
    let first = milliseconds(begun.elapsed());
    talk.wait_for_text(PROMPT);
    first
}

fn first_draft() -> f64 {
    let (telegram, claude) = (FakeTelegram::start(), FakeClaude::start());
    let mut env = TestEnv::with_telegram(&telegram);
    env.think_with(&claude);
    env.wake(&["--once"]).ok();
    let gate = expect_answer(&claude);
    let bot = env.start(BOT, &["run", "--wake", WAKE]);
    telegram.push_text(CHAT, CHAT, "why is the sky blue?");
    wait_for_request(&claude, 1);
    let begun = Instant::now();
    gate.open();
    eventually("a draft or the answer", || !telegram.drafts().is_empty() || !telegram.sent().is_empty());
    let first = milliseconds(begun.elapsed());
    telegram.wait_for_sent(1, PATIENCE);
    drop(bot);
    first
}
