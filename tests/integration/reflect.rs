//! A look back at the days that are over: once a day, when nobody waits, in one commit that can be taken back.

use super::{
    support::story::{commits, end_well, last, opening, sent, start_wake, wait_for_request, with_claude},
    support::{
        claude::{Block, FakeClaude, Reply},
        env::{CHAT, TestEnv},
        http::Gate,
        telegram::FakeTelegram,
    },
};
use rustix::process::Signal;
use serde_json::json;

const DAYS: &str = "memory/agent-memory/days/2026-11.md";
const FACTS: &str = "memory/agent-memory/semantic-memory.md";
/// 03:30 in Berlin, the next day.
const NIGHT: &str = "2026-11-22T02:31:00Z";

/// An offline world in which something was said and remembered.
fn day() -> TestEnv {
    let mut env = TestEnv::new();
    env.set("REFLECT_AT", "03:30");
    env.wake(&["say", "remember that the boiler stands in the attic"]).ok();
    env
}

fn has_days(env: &TestEnv) -> bool {
    env.brain().join(DAYS).exists()
}

#[test]
fn a_day_with_events_is_looked_back_at_once_and_once_only() {
    let mut env = day();
    let before = commits(&env);
    env.at("2026-11-22T02:29:00Z");
    assert_eq!((env.once()["outcome"].clone(), has_days(&env)), (json!("idle"), false), "before its hour");
    env.at(NIGHT);
    assert_eq!(env.once()["outcome"], "worked");
    assert_eq!(commits(&env), before + 1, "one commit");
    let days = env.memory(DAYS);
    assert!(days.contains("## 2026-11-21\n- With you: 1 wake"), "{days}");
    assert!(
        days.contains("Asked: “remember that the boiler") && days.contains("Key fact: the boiler stands"),
        "{days}"
    );
    for later in [NIGHT, "2026-11-22T12:00:00Z", "2026-11-23T02:31:00Z", "2026-11-24T02:31:00Z"] {
        env.at(later);
        assert_eq!(env.once()["outcome"], "idle", "{later}");
    }
    assert_eq!(commits(&env), before + 1, "a day without events wakes nothing and writes nothing");
    env.check_sound();
}

#[test]
fn missed_nights_are_made_up_for_together_and_never_while_somebody_talks() {
    let mut env = day();
    env.at("2026-11-22T10:00:00Z").set("REFLECT_AT", "none");
    env.wake(&["say", "remember that the cellar is dry"]).ok();
    env.at("2026-11-23T11:00:00Z").set("REFLECT_AT", "03:30");
    let before = commits(&env);
    env.wake(&["say", "what time is it?"]).ok();
    assert_eq!((commits(&env), has_days(&env)), (before + 1, false), "the answer alone");
    env.at("2026-11-23T11:31:00Z");
    assert_eq!(env.once()["outcome"], "worked");
    let days = env.memory(DAYS);
    assert!(
        days.contains("## 2026-11-21") && days.contains("## 2026-11-22") && !days.contains("## 2026-11-23"),
        "{days}"
    );
    assert_eq!(commits(&env), before + 2);
    env.check_sound();
}

#[test]
fn a_summary_is_found_and_undone_it_is_gone() {
    let mut env = day();
    env.at(NIGHT).once();
    let found =
        env.wake(&["memory", "search", "boiler attic", "--json", "--in", "memory/agent-memory/days"]).ok().stdout;
    assert!(found.contains(DAYS) && found.contains("boiler"), "{found}");
    let wake = env.trailer("Wake-Id");
    env.wake(&["undo", &wake]).ok();
    env.once();
    assert!(!has_days(&env), "{}", env.memory(DAYS));
    assert!(env.memory(FACTS).contains("boiler stands in the attic"));
    env.check_sound();
}

#[test]
fn a_persons_own_lines_and_deletions_survive_the_look_back() {
    let mut env = day();
    for hour in 15..18 {
        env.at(&format!("2026-11-21T{hour}:00:00Z"));
        env.wake(&["say", "what is the capital of Peru?"]).ok();
    }
    env.wake(&["say", "remember that the wifi code is 5678"]).ok();
    let by_wake = env.memory(FACTS);
    env.write_memory(FACTS, &format!("{by_wake}\n## Home\n- The wifi code is 1234\n"));
    env.at(NIGHT);
    let told = env.once().to_string();
    assert!(told.contains("Which is right?"), "{told}");
    let facts = env.memory(FACTS);
    assert!(
        facts.contains("- The wifi code is 1234\n")
            && facts.contains("5678 <!-- unsettled 1: contradicts what you wrote -->"),
        "{facts}"
    );
    assert!(facts.contains("Asked again and again: “what is the capital of Peru?”"), "{facts}");
    let by_hand = "# Facts\n\n## Home\n- The wifi code is 1234\n- My own line\n";
    env.write_memory(FACTS, by_hand);
    env.at("2026-11-22T12:00:00Z").wake(&["say", "what time is it?"]).ok();
    env.at("2026-11-23T02:31:00Z");
    assert_eq!(env.once()["outcome"], "worked");
    assert_eq!(env.memory(FACTS), by_hand, "what was taken out doesn't come back");
    env.check_sound();
}

#[test]
fn a_contradiction_is_asked_about_once_in_the_morning_and_a_plain_answer_settles_it() {
    let mut env = TestEnv::new();
    env.set("REFLECT_AT", "03:30").set("QUIET_HOURS", "22:00-08:00");
    env.once();
    env.wake(&["say", "remember that the boiler is a Vaillant"]).ok();
    let told = env.wake(&["say", "remember that the boiler is a Bosch"]).ok().stdout;
    assert!(told.contains("differs from what I knew: “the boiler is a Vaillant”"), "{told}");
    let night = env.at(NIGHT).once();
    assert_eq!((&night["outcome"], &night["replies"]), (&json!("worked"), &json!([])), "{night}");
    assert_eq!(env.memory(FACTS).matches("<!-- unsettled 1: ").count(), 2, "{}", env.memory(FACTS));
    let morning = env.at("2026-11-22T07:01:00Z").once();
    assert_eq!(morning["replies"].as_array().unwrap().len(), 1, "{morning}");
    assert!(morning.to_string().contains("Which is right?"), "{morning}");
    let told = env.wake(&["say", "the second one"]).ok().stdout;
    assert!(told.contains("the boiler is a Bosch") && told.contains("Forgotten: the boiler is a Vaillant"), "{told}");
    let facts = env.memory(FACTS);
    assert!(facts.contains("Bosch") && !facts.contains("Vaillant") && !facts.contains("unsettled"), "{facts}");
    assert_eq!(env.at("2026-11-23T07:01:00Z").once()["replies"], json!([]), "it isn't asked again");
    env.check_sound();
}

#[test]
fn a_guests_day_is_shown_to_the_guest_alone() {
    let (_telegram, claude, mut env) = with_claude();
    env.set("ALLOWED_CHAT_IDS", &format!("{CHAT},5555")).set("REFLECT_AT", "03:30");
    for (chat, text, answer) in
        [(CHAT, "the vault code word is heron", "Noted."), (5555, "plan my otter trip", "Fine.")]
    {
        env.receive(chat, text);
        claude.expect(Reply::text(answer));
        env.once();
    }
    claude.expect(Reply::text(""));
    env.at(NIGHT).once();
    let look = last(&claude);
    let tools: Vec<&str> =
        look.json["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(!tools.iter().any(|tool| ["bash", "web_fetch", "tell", "reply", "note"].contains(tool)), "{tools:?}");
    assert!(tools.contains(&"day_summary"), "{tools:?}");
    let shown = opening(&look, "<reflection>");
    assert!(shown.contains("heron") && !shown.contains("otter"), "{shown}");
    assert!(env.memory(DAYS).contains("otter"));
    env.receive(5555, "what did we do?");
    claude.expect(Reply::tool("t1", "memory_read", json!({"path": DAYS}))).expect(Reply::text("This."));
    env.once();
    let read = last(&claude).last_text();
    assert!(read.contains("otter") && !read.contains("heron"), "{read}");
    env.check_sound();
}

#[test]
fn the_model_sums_up_within_the_budget_and_its_tools_reach_nothing_else() {
    let (telegram, claude, mut env) = with_claude();
    env.set("REFLECT_AT", "03:30");
    env.receive(CHAT, "the party is on Friday");
    claude.expect(Reply::text("Nice."));
    env.once();
    env.write_memory(FACTS, "# Facts\n\n## Home\n- Mine by hand\n");
    env.at(NIGHT).set("DAILY_BUDGET_USD", "0");
    let before = commits(&env);
    env.once();
    assert_eq!((claude.requests().len(), has_days(&env)), (1, false), "not without a budget");
    env.set("DAILY_BUDGET_USD", "5");
    let summary =
        json!({"day": "2026-11-21", "summary": "We spoke of the party.", "key_facts": ["The party is on Friday"]});
    claude.expect(Reply::tools(vec![
        Block::tool("t1", "day_summary", summary),
        Block::tool("t2", "forget", json!({"fact": "Mine by hand"})),
        Block::tool("t3", "tell", json!({"key": "x", "text": "Hello"})),
        Block::tool("t4", "remember", json!({"fact": "Parties are on Fridays", "topic": "Habits"})),
    ]));
    claude.expect(Reply::text(""));
    assert_eq!(env.once()["outcome"], "worked");
    let days = env.memory(DAYS);
    assert!(days.contains("- With you: We spoke of the party. <!-- wake") && !days.contains("1 wake"), "{days}");
    assert!(days.contains("Key fact: The party is on Friday"), "{days}");
    let facts = env.memory(FACTS);
    assert!(facts.contains("- Mine by hand\n") && facts.contains("Parties are on Fridays"), "{facts}");
    let results = last(&claude).json["messages"].to_string();
    for refused in ["wrote that line by hand", "no other tools"] {
        assert!(results.contains(refused), "{refused} is missing in {results}");
    }
    assert_eq!(sent(&telegram), ["Nice."]);
    assert_eq!(env.once()["outcome"], "idle");
    assert!(commits(&env) <= before + 2, "the person's edit, and the look back");
    env.check_sound();
}

#[test]
fn a_look_back_that_is_killed_goes_on_and_doubles_nothing() {
    let (_telegram, claude, mut env) = with_claude();
    env.set("REFLECT_AT", "03:30");
    env.receive(CHAT, "the party is on Friday");
    claude.expect(Reply::text("Nice."));
    env.once();
    env.at(NIGHT);
    let gate = Gate::default();
    claude.expect(Reply::text("").stalled_after(1, &gate));
    let wake = start_wake(&env);
    wait_for_request(&claude, 2);
    wake.signal(Signal::KILL);
    wake.end();
    gate.open();
    claude.expect(Reply::text(""));
    let before = commits(&env);
    env.once();
    assert_eq!(commits(&env), before + 1);
    let days = env.memory(DAYS);
    assert_eq!(days.matches("- With you: ").count(), 1, "{days}");
    assert_eq!(env.once()["outcome"], "idle");
    env.check_sound();
}

#[test]
fn a_look_back_whose_first_request_fails_keeps_its_marks_and_asks_once() {
    let (_telegram, claude, mut env) = with_claude();
    env.set("REFLECT_AT", "03:30").set("QUIET_HOURS", "22:00-08:00");
    env.receive(CHAT, "the wifi code is 5678");
    claude.expect(Reply::tool("t1", "remember", json!({"fact": "The wifi code is 5678"}))).expect(Reply::text("Kept."));
    env.once();
    env.write_memory(FACTS, &format!("{}\n## Home\n- The wifi code is 1234\n", env.memory(FACTS)));
    env.at(NIGHT);
    claude.expect(Reply::error(401, "authentication_error", "invalid x-api-key"));
    assert_eq!(env.wake(&["--once"]).code, 1);
    assert!(!env.memory(FACTS).contains("unsettled"));
    env.at("2026-11-22T02:40:00Z");
    claude.expect(Reply::text(""));
    assert_eq!(env.once()["outcome"], "worked");
    assert!(
        env.memory(FACTS).contains("5678 <!-- unsettled 1: contradicts what you wrote -->"),
        "{}",
        env.memory(FACTS)
    );
    assert_eq!(env.reminders().len(), 1);
    assert_eq!(env.handled().iter().filter(|handled| handled.key.starts_with("contradiction/")).count(), 1);
    assert_eq!(env.once()["outcome"], "idle");
    env.check_sound();
}

/// The night after a day with one message. The look back's first answer waits for the gate.
fn held() -> (FakeTelegram, FakeClaude, TestEnv, Gate) {
    let (telegram, claude, mut env) = with_claude();
    env.set("REFLECT_AT", "03:30");
    env.receive(CHAT, "the party is on Friday");
    claude.expect(Reply::text("Nice."));
    env.once();
    env.at(NIGHT);
    let gate = Gate::default();
    let plan = json!({"understood": "All of it.", "complexity": "background"});
    claude.expect(Reply::tool("t1", "plan", plan).stalled_after(1, &gate));
    (telegram, claude, env, gate)
}

#[test]
fn a_look_back_lets_a_message_go_first_and_goes_on_after() {
    let (telegram, claude, env, gate) = held();
    let before = commits(&env);
    let wake = start_wake(&env);
    wait_for_request(&claude, 2);
    env.receive(CHAT, "are you there?");
    claude.expect(Reply::text("Here.")).expect(Reply::text(""));
    gate.open();
    let report = end_well(wake);
    assert_eq!((&report["outcome"], &report["answered"]), (&json!("worked"), &json!(1)));
    let requests = claude.requests();
    let [_, _, answered, back] = requests.as_slice() else { panic!("{} requests", requests.len()) };
    assert!(opening(answered, "<messages>").contains("are you there?"));
    assert!(opening(back, "<reflection>").contains("party") && back.last_text().contains("shouldn't take hours"));
    assert_eq!(sent(&telegram), ["Nice.", "Here."]);
    assert_eq!((commits(&env), env.cycles().iter().map(|cycle| cycle.tries).sum::<i64>()), (before + 2, 0));
    assert_eq!(env.once()["outcome"], "idle");
    env.check_sound();
}

#[test]
fn a_look_back_lets_a_reminder_go_first() {
    let (telegram, claude, env, gate) = held();
    let wake = start_wake(&env);
    wait_for_request(&claude, 2);
    env.put_reminder(CHAT, "take the pill", "2026-11-22T03:31:00", "2026-11-22T02:31:00Z");
    let later = Gate::default();
    claude.expect(Reply::text("").stalled_after(1, &later));
    gate.open();
    wait_for_request(&claude, 3);
    assert_eq!(env.count_firings(), 1, "before the look back goes on");
    later.open();
    end_well(wake);
    assert!(sent(&telegram)[1].contains("take the pill"), "{:?}", sent(&telegram));
    env.check_sound();
}

#[test]
fn a_night_after_nothing_but_reminders_costs_no_model_call() {
    let (telegram, claude, mut env) = with_claude();
    env.set("REFLECT_AT", "03:30");
    env.wake(&["--once"]).ok();
    env.put_reminder(CHAT, "take the pill", "2026-11-21T20:00:00", "2026-11-21T19:00:00Z");
    env.at("2026-11-21T19:01:00Z");
    assert_eq!(env.once()["outcome"], "worked");
    assert!(sent(&telegram)[0].contains("take the pill"), "{:?}", sent(&telegram));
    env.at(NIGHT);
    assert_eq!((env.once()["outcome"].clone(), claude.requests().len()), (json!("idle"), 0));
    assert!(!has_days(&env), "nothing is there to sum up");
    env.check_sound();
}

#[test]
fn a_look_back_asks_no_more_questions_than_a_day_has_room_for() {
    let (_telegram, claude, mut env) = with_claude();
    env.set("REFLECT_AT", "03:30").set("TELL_PER_DAY", "2").set("QUIET_HOURS", "22:00-08:00");
    env.receive(CHAT, "the wifi code is 5678");
    claude.expect(Reply::tool("t1", "remember", json!({"fact": "The wifi code is 5678"}))).expect(Reply::text("Kept."));
    env.once();
    let home = "\n## Home\n- The wifi code is 1234\n";
    let people = "\n## People\n- Anna lives in Rome\n- Anna moved to Oslo\n- Bob is tall\n- Everybody is small\n";
    env.write_memory(FACTS, &format!("{}{home}{people}", env.memory(FACTS)));
    env.at(NIGHT);
    let two = |one: &str, other: &str| json!({"one": one, "other": other});
    claude.expect(Reply::tools(vec![
        Block::tool("t1", "contradiction", two("Anna lives in Rome", "Anna moved to Oslo")),
        Block::tool("t2", "contradiction", two("Bob is tall", "Everybody is small")),
    ]));
    claude.expect(Reply::text(""));
    env.once();
    let results = last(&claude).json["messages"].to_string();
    assert_eq!(results.matches("can't be asked today").count(), 1, "{results}");
    // The rules' question and one of the model's, when the night is over.
    assert_eq!(env.reminders().len(), 2);
    env.check_sound();
}

#[test]
fn low_energy_holds_nudges_and_never_reminders() {
    let mut env = TestEnv::new();
    env.once();
    env.write_memory(
        "memory/project-memory/active.md",
        "# Active tasks\n\n## Tax return\n\n- status: active\n- touched: 2026-11-13\n",
    );
    env.write_memory("memory/project-memory/context.md", "# Context\n\n- energy: low\n");
    env.wake(&["say", "remind me to drink tea in 10 minutes"]).ok();
    env.once();
    let told = env.at("2026-11-21T14:20:00Z").once().to_string();
    assert!(told.contains("tea") && !told.contains("Tax return"), "{told}");
    env.write_memory("memory/project-memory/context.md", "# Context\n\n- energy: normal\n");
    let told = env.once().to_string();
    assert!(told.contains("“Tax return” has been quiet for 8 days"), "{told}");
    env.check_sound();
}
