//! Measures how much longer a wake for one message takes after the memory has grown from 100 lines to 10,000. Model and channel answer
//! at once and there is no remote, so the figure is the wake's own.

use std::{fmt::Write as _, time::Duration};

use super::{
    measure::{Pair, timed},
    support::{
        claude::{FakeClaude, Reply},
        env::{CHAT, TestEnv},
        telegram::FakeTelegram,
    },
    table::{Bound, Row},
};

const SMALL_LINES: usize = 100;
const BIG_LINES: usize = 10_000;
/// The number of facts under one topic.
const FACTS_PER_TOPIC: usize = 25;
/// The number of entries in one day.
const ENTRIES_PER_DAY: usize = 20;
const SEMANTIC: &str = "memory/agent-memory/semantic-memory.md";

pub(crate) fn measure(rounds: usize) -> Vec<Row> {
    let (small, big) = (World::new(SMALL_LINES), World::new(BIG_LINES));
    Pair::by_turns(3, || big.wake(), || small.wake());
    let pair = Pair::by_turns(rounds, || big.wake(), || small.wake());
    vec![
        Row::pair("one message, 10,000 lines of memory", "100 lines", pair, Bound::Ratio(2.0)),
        Row {
            figure: "its request to the model",
            compared: Some(("100 lines".to_owned(), super::measure::Spread::new(vec![small.request_kb()]))),
            ..Row::alone("", "kB", Ok(vec![big.request_kb()]), Bound::None)
        },
    ]
}

struct World {
    // Declared first, so that it is dropped before the servers it talks to.
    env: TestEnv,
    claude: FakeClaude,
    _telegram: FakeTelegram,
}

impl World {
    fn new(lines: usize) -> Self {
        let (telegram, claude) = (FakeTelegram::start(), FakeClaude::start());
        let mut env = TestEnv::with_telegram(&telegram);
        env.wake(&["--once"]).ok();
        env.write_memory(SEMANTIC, &facts(lines / 2));
        let archive = env.brain().join("memory/agent-memory/archive");
        std::fs::create_dir_all(&archive).unwrap();
        for (month, text) in months(lines / 2) {
            std::fs::write(archive.join(format!("{month}.md")), text).unwrap();
        }
        env.git(&["add", "-A"]);
        env.git(&["commit", "-q", "-m", "What was remembered so far"]);
        // The fallback grammar's wake notices the commit, so the measured wakes only handle their message.
        env.wake(&["--once", "--say", "help"]).ok();
        env.think_with(&claude);
        Self { env, claude, _telegram: telegram }
    }

    fn wake(&self) -> Duration {
        self.env.receive(CHAT, "Where did I put the passport?");
        self.claude.expect(Reply::text("In the blue box in the study."));
        let time = timed(|| drop(self.env.wake(&["--once"]).ok()));
        assert!(self.env.queued().is_empty(), "the message wasn't answered");
        time
    }

    fn request_kb(&self) -> f64 {
        self.claude.requests().last().unwrap().raw.len() as f64 / 1e3
    }
}

fn facts(n: usize) -> String {
    let mut text = "# Semantic memory\n".to_owned();
    for fact in 0..n {
        if fact % FACTS_PER_TOPIC == 0 {
            write!(text, "\n## Topic {}\n\n", fact / FACTS_PER_TOPIC).unwrap();
        }
        let (shelf, year) = (fact % 17, 1950 + fact % 70);
        writeln!(
            text,
            "- book {fact} stands on shelf {shelf} and was printed in {year} <!-- wake 20260101T080000Z-{fact}, message {fact} -->"
        )
        .unwrap();
    }
    text
}

/// The archive's months and their texts, newest last.
fn months(n: usize) -> Vec<(String, String)> {
    let days = n.div_ceil(ENTRIES_PER_DAY);
    let first = chrono::NaiveDate::from_ymd_opt(2025, 1, 1).unwrap();
    let mut months: Vec<(String, String)> = Vec::new();
    for (day, date) in first.iter_days().take(days).enumerate() {
        let month = date.format("%Y-%m").to_string();
        if months.last().is_none_or(|(last, _)| *last != month) {
            months.push((month, "# Archive\n".to_owned()));
        }
        let (_, text) = months.last_mut().unwrap();
        write!(text, "\n## {date}\n\n").unwrap();
        for entry in 0..ENTRIES_PER_DAY.min(n - day * ENTRIES_PER_DAY) {
            writeln!(
                text,
                "- 14:{entry:02} Answered 1 message about book {entry} <!-- wake 20260101T080000Z-{day} -->"
            )
            .unwrap();
        }
    }
    months
}
