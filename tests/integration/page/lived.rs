//! A world where somebody has lived for some days: what pages look like in use.

use serde_json::json;

use crate::{
    support::story::{plan, reply},
    support::{
        claude::{Block, FakeClaude, Reply},
        env::TestEnv,
    },
};

/// Some days with a mind: facts, tasks, reminders, answers with all kinds of Markdown, and a question that waits.
pub(crate) fn lived_in(claude: &FakeClaude) -> TestEnv {
    let mut env = TestEnv::new();
    env.think_with(claude);
    let day = |env: &mut TestEnv, at: &str, said: &str| {
        env.at(at);
        env.wake(&["say", said]).ok();
    };
    let remembered = |fact: &str, topic: &str, answer: &str, tokens: u64| {
        let keep = json!({"fact": fact, "topic": topic});
        let planned = plan("t1", &[("Write it down", "remember"), ("Say so", "reply")]);
        claude.expect(Reply::tools(vec![planned, Block::tool("t2", "remember", keep)]).using(tokens, tokens / 9));
        claude.expect(reply("t3", answer).using(tokens + 900, 140));
        claude.expect(Reply::text("Done."));
    };
    remembered(
        "Anna's birthday is 3 May",
        "Family",
        "Noted: **3 May** is Anna's birthday. I'll bring it up a week before.",
        9_000,
    );
    day(&mut env, "2026-11-17T08:10:00Z", "Anna's birthday is on 3 May, please keep that.");
    remembered(
        "The bike shop opens at 10 and closes on Mondays",
        "Places",
        "I've kept the opening hours of the bike shop.",
        14_000,
    );
    day(&mut env, "2026-11-18T17:30:00Z", "The bike shop opens at 10, and it's closed on Mondays.");
    env.at("2026-11-19T09:00:00Z");
    env.wake(&["task", "add", "Write the quarterly report", "--due", "friday"]).ok();
    env.wake(&["task", "add", "Paint the shed", "--next", "buy the green paint"]).ok();
    env.at("2026-11-20T09:00:00Z");
    env.wake(&["task", "add", "Renew the passport", "--due", "2026-12-04"]).ok();
    env.wake(&["remind", "call the dentist", "--at", "monday 9:00"]).ok();
    env.wake(&["remind", "stretch every weekday at 8"]).ok();
    let rows = "| From | Leaves | Arrives | Changes |\n|---|---|---|---:|\n| Berlin Hbf | 8:38 | 12:31 | 0 |\n| Berlin Hbf | 9:46 | 14:06 | 1 |\n| Südkreuz | 10:05 | 14:02 | 0 |";
    let answer = format!(
        "The direct train at **8:38** fits best: you'd be there before lunch.\n\n{rows}\n\nBefore you book:\n\n1. The 9:46 has a change in Hanover.\n2. Seats are cheaper until Friday, see [the timetable](https://trains.example/berlin).\n\n> A return on Sunday evening is full already.\n\n```\nbooking code: not yet\n```"
    );
    claude.expect(Reply::tools(vec![plan("t1", &[("Compare the trains", "reply")])]).using(11_000, 260));
    claude.expect(reply("t2", &answer).using(12_400, 420));
    claude.expect(Reply::text("Done."));
    day(&mut env, "2026-11-20T18:05:00Z", "Which train should I take to Munich on Saturday?\nI'd rather not change.");
    env.set("AUTONOMY", "0");
    let keep = json!({"fact": "The alarm code of the office is kept by Tom", "topic": "Work"});
    claude.expect(Reply::tools(vec![
        plan("t1", &[("Write it down", "remember"), ("Say so", "reply")]),
        Block::tool("t2", "remember", keep),
    ]));
    day(&mut env, "2026-11-21T13:40:00Z", "Tom keeps the alarm code of the office, remember that.");
    env.at("2026-11-21T14:00:00Z");
    env
}
