//! Times every command while a wake waits in the middle of a request, from the update to the answer at Telegram, over sockets, with a
//! memory of some size. Also times `/stop` until the wake has stopped.

use std::time::{Duration, Instant};

use super::{
    measure::milliseconds,
    support::{
        claude::{FakeClaude, Reply},
        env::{CHAT, TestEnv, eventually},
        http::Gate,
        telegram::FakeTelegram,
    },
    table::{Bound, Row},
};

const BOT: &str = env!("CARGO_BIN_EXE_bot");
const PATIENCE: Duration = Duration::from_secs(30);
/// The commands of each round with their rows. A round leaves only one more reminder for the next one. `/undo` and `/stop` have rows of
/// their own.
const COMMANDS: [(&str, &str); 17] = [
    ("/start", "/start while a wake runs"),
    ("/help", "/help"),
    ("/status", "/status"),
    ("/tasks", "/tasks"),
    ("/memory", "/memory"),
    ("/memory wifi code", "/memory, searched"),
    ("/remind", "/remind, listed"),
    ("/remind drink tomorrow at 9", "/remind, set"),
    ("/cost", "/cost"),
    ("/log", "/log"),
    ("/undo 0000000", "/undo, of no wake"),
    ("/retry", "/retry"),
    ("/resume", "/resume"),
    ("/wake", "/wake"),
    ("/whoami", "/whoami"),
    ("/memroy", "a command mistyped"),
    ("/status@reveille_bot", "a command by the bot's name"),
];
/// The limit for each answer, in milliseconds.
const ANSWERED_WITHIN_MS: f64 = 300.0;
/// Facts in the searched memory.
const FACTS: usize = 5_000;

pub(crate) fn measure(rounds: usize) -> Vec<Row> {
    let (telegram, claude) = (FakeTelegram::start(), FakeClaude::start());
    let mut env = TestEnv::with_telegram(&telegram);
    env.think_with(&claude);
    env.wake(&["--once"]).ok();
    let facts: String = (0..FACTS).map(|n| format!("- fact number {n} speaks of wifi\n")).collect();
    env.write_memory("memory/agent-memory/semantic-memory.md", &format!("# Semantic memory\n\n## Notes\n{facts}"));
    env.git(&["commit", "-qam", "Facts"]);
    claude.expect(Reply::text("Noted."));
    env.wake(&["--once"]).ok();
    let bot = env.start(BOT, &["run"]);
    claude.expect(Reply::text("Hello.").stalled_after(2, &Gate::default()));
    telegram.push_text(CHAT, CHAT, "hello");
    eventually("the model is asked", || claude.requests().len() == 2);

    let say = |text: &str| {
        let n = telegram.sent().len();
        let begun = Instant::now();
        telegram.push_text(CHAT, CHAT, text);
        telegram.wait_for_sent(n + 1, PATIENCE);
        milliseconds(begun.elapsed())
    };
    let mut answers = COMMANDS.map(|_| Vec::new());
    for _ in 0..rounds {
        for ((command, _), times) in COMMANDS.iter().zip(&mut answers) {
            times.push(say(command));
        }
    }
    // Once each, since both change the following commands.
    let undo = say("/undo");
    let begun = Instant::now();
    let stop = say("/stop");
    eventually("the wake lets go", || env.query::<i64>("SELECT is_locked FROM processing_lock") == 0);
    let stopped = milliseconds(begun.elapsed());
    drop(bot);
    let rows = COMMANDS.iter().zip(answers);
    rows.map(|((_, figure), times)| Row::alone(figure, "ms", Ok(times), Bound::Max(ANSWERED_WITHIN_MS)))
        .chain([
            Row::alone("/undo, of the last wake, taken note of", "ms", Ok(vec![undo]), Bound::Max(ANSWERED_WITHIN_MS)),
            Row::alone("/stop, answered", "ms", Ok(vec![stop]), Bound::Max(ANSWERED_WITHIN_MS)),
            Row::alone("/stop, until a held wake has let go", "ms", Ok(vec![stopped]), Bound::Max(500.0)),
        ])
        .collect()
}
