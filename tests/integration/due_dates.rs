//! Tests of due dates: they are shown with their tasks, and a message is sent on the day, and once afterwards.

use super::support::env::TestEnv;

#[track_caller]
fn has(said: &str, wanted: &str) {
    assert!(said.contains(wanted), "{said}");
}

fn say(env: &TestEnv, text: &str) -> String {
    env.wake(&["say", text]).ok().stdout
}

#[test]
fn a_due_date_is_set_in_words_shown_everywhere_and_reported_twice() {
    let mut env = TestEnv::new();
    has(&say(&env, "add task renew passport due monday"), "Added to the active tasks: renew passport, due Mon 23 Nov");
    has(&env.memory("memory/project-memory/active.md"), "- due: 2026-11-23");
    has(&env.wake(&["task", "list"]).ok().stdout, "renew passport, due Mon 23 Nov");
    env.at("2026-11-23T09:40:00Z");
    let today = env.wake(&["today"]).ok().stdout;
    has(&today, "**Due**");
    has(&today, "renew passport, due today");
    has(&say(&env, "what's due today?"), "Task: renew passport, due today");
    // A due date is a whole day, so it isn't missed in the morning.
    let added = env.wake(&["task", "add", "call the office", "--due", "2026-11-23"]).ok();
    added.assert_tells("call the office, due today");
    let told = |env: &TestEnv| {
        env.wake(&["--once"]).ok();
        let texts = env.outbox().into_iter().map(|message| message.text);
        texts.filter(|text| text.starts_with('“')).collect::<Vec<_>>().join("|")
    };
    let on_the_day = "“renew passport” is due today.";
    assert_eq!([told(&env), told(&env)], [on_the_day, on_the_day]);
    env.at("2026-11-24T09:40:00Z");
    let missed = told(&env);
    has(&missed, "“renew passport” was due yesterday and isn't done. Do it now, or give it another day?");
    assert_eq!(told(&env), missed);
    has(&env.wake(&["today"]).ok().stdout, "renew passport, was due yesterday");
}
