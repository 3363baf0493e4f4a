//! What an opening tells of a long memory: what fits, within its room, with where it comes from.

use super::{
    support::story::{last, opening, sent, with_claude},
    support::{
        claude::{FakeClaude, Reply},
        env::{CHAT, TestEnv},
        telegram::FakeTelegram,
    },
};

const SEMANTIC: &str = "memory/agent-memory/semantic-memory.md";
const EPISODIC: &str = "memory/agent-memory/episodic-memory.md";
const THINGS: [&str; 12] = [
    "the garden fence",
    "the tax letter",
    "a train to Kiel",
    "the piano lesson",
    "the dentist",
    "the blue bicycle",
    "a book on bees",
    "the kitchen lamp",
    "the school play",
    "the allotment",
    "the old laptop",
    "the neighbour's cat",
];

fn thing(n: usize) -> &'static str {
    THINGS[n % THINGS.len()]
}

/// A memory of 300 facts and 2,000 lines of log, and 500 exchanges after the one that counts.
fn long_memory() -> (FakeTelegram, FakeClaude, TestEnv) {
    let (telegram, claude, env) = with_claude();
    env.wake(&["--once"]).ok();
    let mut facts = String::from("# Semantic memory\n");
    for n in 0..300 {
        if n % 15 == 0 {
            facts.push_str(&format!("\n## Topic {}\n", n / 15));
        }
        facts.push_str(&format!(
            "- Fact {n}: {} is to be seen to before week {}, as was said on the telephone <!-- wake 20260901T080000Z-{n} message {n} -->\n",
            thing(n), n % 52
        ));
    }
    env.write_memory(SEMANTIC, &facts);
    let mut log = String::from("# Episodic memory\n");
    for day in 0..200 {
        let date = chrono::NaiveDate::from_ymd_opt(2026, 5, 1).unwrap() + chrono::Days::new(day);
        log.push_str(&format!("\n## {date}\n"));
        for n in 0..10 {
            log.push_str(&format!(
                "- 0{n}:15 Answered 1 message about {} <!-- wake 2026-{day}-{n} own -->\n",
                thing(n + day as usize)
            ));
        }
    }
    env.write_memory(EPISODIC, &log);
    let mut conversation = Vec::new();
    let mut said = |n: usize, question: &str, answer: &str| {
        let at = chrono::DateTime::parse_from_rfc3339("2026-06-01T08:00:00Z").unwrap()
            + chrono::TimeDelta::hours(8 * n as i64);
        let at = at.to_rfc3339();
        conversation.push((question.to_owned(), answer.to_owned(), at));
    };
    said(
        0,
        "Please note: the boiler in the cellar is a Viessmann with the serial number 7571-K",
        "I have it: Viessmann, serial number 7571-K.",
    );
    for n in 1..=500 {
        let what = thing(n).replace('\'', "’");
        said(
            n,
            &format!("Number {n}: what shall we do about {what} this week?"),
            &format!("Let us look at {what} on day {}. I say so again then.", n % 7),
        );
    }
    env.put_conversation(CHAT, &conversation);
    (telegram, claude, env)
}

#[test]
fn what_was_said_five_hundred_exchanges_ago_is_answered_without_a_call() {
    let (telegram, claude, env) = long_memory();
    env.receive(CHAT, "What was the serial number of our boiler?");
    claude.expect(Reply::with(|request| {
        let recalled = opening(request, "<recalled");
        let known = recalled.contains("Viessmann with the serial number 7571-K");
        Reply::text(if known { "It is 7571-K." } else { "I don't know." })
    }));
    env.once();
    assert_eq!(sent(&telegram).last().unwrap(), "It is 7571-K.");
    assert_eq!(claude.requests().len(), 1, "without a call");
    let first = last(&claude);
    let recalled = opening(&first, "<recalled");
    assert!(recalled.contains("<found at=\"messages/1\" date=\"2026-06-01\" by=\"Ann\">"), "{recalled}");
    let recent = opening(&first, "<recent_exchange>");
    assert_eq!(recent.matches("<said ").count(), 8, "the thread is kept");
    assert!(recent.contains("Number 500:") && !recent.contains("Number 490:"), "{recent}");
    let memory = opening(&first, "<memory>");
    assert!(memory.contains("cut=\"300 facts: those that fit stand in recalled;"), "{memory}");
    let bytes = first.messages[0].len();
    assert!(bytes < 24_000, "{bytes} bytes");
    env.check_sound();
}

#[test]
fn what_others_had_a_word_in_is_named_and_not_shown() {
    let (_telegram, claude, env) = long_memory();
    env.forward_from(1, "Eve");
    env.taint_outgoing(1, "Eve");
    env.receive(CHAT, "What was the serial number of our boiler?");
    claude.expect(Reply::text("I have to look."));
    env.once();
    let raw = &last(&claude).messages[0];
    assert!(!raw.contains("7571-K") && raw.contains("which may contain untrusted text"), "{raw}");
}
