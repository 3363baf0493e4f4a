//! Reminders that are put off, ended, changed, counted from a thing's time, and kept through a change of time zone.

use super::support::env::TestEnv;

fn say(env: &TestEnv, text: &str) -> String {
    env.wake(&["say", text]).ok().stdout
}

#[track_caller]
fn has(said: &str, wanted: &str) {
    assert!(said.contains(wanted), "{said}");
}

fn listed(env: &TestEnv) -> String {
    env.wake(&["remind", "list"]).ok().stdout
}

#[test]
fn a_snooze_counts_from_the_time_and_a_change_keeps_what_it_does_not_name() {
    let mut env = TestEnv::new();
    say(&env, "remind me tomorrow at 9 to call Anna");
    env.wake(&["remind", "snooze", "1", "1 hour"]).ok();
    has(&listed(&env), "2. call Anna — Sun 22 Nov 2026 at 10:00");
    has(&say(&env, "snooze reminder 2 for 30 minutes"), "Sun 22 Nov 2026 at 10:30");
    has(&say(&env, "change the call reminder to 9am"), "Sun 22 Nov 2026 at 09:00");
    say(&env, "remind me every day at 8 to take the vitamins");
    has(&say(&env, "change the vitamins reminder to 9am"), "every day at 09:00");
    // It has come: from now on it counts from now.
    env.at("2026-11-22T08:05:00Z");
    env.wake(&["--once"]).ok();
    has(&say(&env, "stop"), "Several were just sent");
    has(&say(&env, "don't remind me about the vitamins any more"), "Ended: take the vitamins");
    assert_eq!(listed(&env).trim(), "No reminders are set.");
}

#[test]
fn stop_ends_what_was_just_sent() {
    let mut env = TestEnv::new();
    say(&env, "remind me every day at 16:00 to take the vitamins");
    has(&say(&env, "stop"), "No reminder was just sent here");
    env.at("2026-11-21T15:00:00Z");
    env.wake(&["--once"]).ok();
    has(&say(&env, "stop"), "Ended: take the vitamins");
    env.at("2026-11-21T15:05:00Z");
    say(&env, "remind me in 10 minutes to stretch");
    env.at("2026-11-21T15:16:00Z");
    env.wake(&["--once"]).ok();
    has(&say(&env, "stop"), "“stretch” was set once and won't come again.");
}

#[test]
fn a_time_is_counted_from_the_one_thing_of_that_name() {
    let env = TestEnv::new();
    has(&say(&env, "remind me 15 minutes before the meeting"), "I don't know when “meeting” is");
    say(&env, "remind me on monday at 14:00 about the meeting with Bob");
    let set = say(&env, "remind me 15 minutes before the meeting to print the slides");
    has(&set, "print the slides — Mon 23 Nov 2026 at 13:45 (15 minutes before “the meeting with Bob”)");
    env.wake(&["task", "add", "Dentist", "--due", "friday"]).ok();
    has(&say(&env, "remind me to pack the day before the dentist"), "pack — Thu 26 Nov 2026 at 09:00");
    has(&say(&env, "remind me an hour before the dentist"), "has a day but no time");
    say(&env, "remind me on tuesday at 14:00 about the meeting with Eve");
    has(&say(&env, "remind me 5 minutes before the meeting"), "could be any of these");
    assert_eq!(listed(&env).lines().count(), 4);
}

#[test]
fn a_new_time_zone_is_told_once_and_the_person_chooses() {
    let mut env = TestEnv::new();
    say(&env, "remind me on monday at 9 to call Anna");
    env.wake(&["--once"]).ok();
    env.set("TIMEZONE", "America/New_York");
    let told = |env: &TestEnv| {
        env.wake(&["--once"]).ok();
        let texts = env.outbox().into_iter().map(|message| message.text);
        texts.filter(|text| text.starts_with("Your time")).collect::<Vec<_>>().join("|")
    };
    let text = told(&env);
    has(&text, "Your time zone is now America/New_York; it was Europe/Berlin.");
    has(&text, "“call Anna” comes Mon 23 Nov 09:00 in Europe/Berlin, which is Mon 23 Nov 03:00 here.");
    assert_eq!(told(&env), text);
    has(&say(&env, "move my reminders here"), "call Anna — Mon 23 Nov 2026 at 09:00");
    assert_eq!(env.active_reminders()[0].next_at, "2026-11-23T14:00:00.000Z");
    env.wake(&["remind", "here"]).ok().assert_tells("already");
}
