//! Commands while a wake is held in the middle of a request: from the update to the answer at Telegram, over sockets, with a
//! memory of some size. And how long `/stop` takes until the wake has let go.

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
/// What is said in each round; none of it changes what the next one finds.
const COMMANDS: [&str; 9] =
    ["/status", "/tasks", "/memory", "/memory wifi code", "/remind", "/cost", "/log", "/whoami", "/help"];
/// Facts in the memory that is searched.
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
    eventually("the mind is asked", || claude.requests().len() == 2);

    let say = |text: &str| {
        let n = telegram.sent().len();
        let begun = Instant::now();
        telegram.push_text(CHAT, CHAT, text);
        telegram.wait_for_sent(n + 1, PATIENCE);
        milliseconds(begun.elapsed())
    };
    let answers = (0..rounds).flat_map(|_| COMMANDS).map(say).collect();
    let begun = Instant::now();
    telegram.push_text(CHAT, CHAT, "/stop");
    eventually("the wake lets go", || env.query::<i64>("SELECT is_locked FROM processing_lock") == 0);
    let stopped = milliseconds(begun.elapsed());
    drop(bot);
    vec![
        Row::alone("a command's answer while a wake runs", "ms", Ok(answers), Bound::Max(300.0)),
        Row::alone("/stop, until the wake has let go", "ms", Ok(vec![stopped]), Bound::Max(500.0)),
    ]
}
