//! Time: what was missed, clocks that change, jump and go back, and each thing once.

use super::{
    support::story::{commits, last, opening, sent, with_claude},
    support::{
        claude::Reply,
        env::{CHAT, TestEnv},
        telegram::{FakeTelegram, Fault},
    },
};

const EPISODIC: &str = "memory/agent-memory/episodic-memory.md";
const ACTIVE: &str = "memory/project-memory/active.md";

/// Offline, Saturday 15:00 in Berlin, with these things said in the chat.
fn told(said: &[&str]) -> (FakeTelegram, TestEnv) {
    let telegram = FakeTelegram::start();
    let env = TestEnv::with_telegram(&telegram);
    for text in said {
        env.receive(CHAT, text);
    }
    env.once();
    (telegram, env)
}

/// One wake at that time, and what people read of it.
#[track_caller]
fn wake_at(telegram: &FakeTelegram, env: &mut TestEnv, at: &str) -> Vec<String> {
    let before = telegram.sent().len();
    env.at(at).once();
    sent(telegram).split_off(before)
}

#[test]
fn after_three_days_of_sleep_each_reminder_does_as_it_was_told() {
    let (telegram, mut env) = told(&[
        "remind me every day at 9 to stretch",
        "remind me every day at 10 to water the plants, skip it if missed",
        "remind me every day at 11 to read, only tell me if missed",
        "remind me tomorrow at 12 to call Anna",
    ]);
    assert_eq!(
        wake_at(&telegram, &mut env, "2026-11-25T13:00:00Z"),
        ["⏰ This came due while I was not running:\n\n\
          • stretch, due Wed 25 Nov 09:00, and before that 3 times from Sun 22 Nov 09:00 to Tue 24 Nov 09:00\n\
          • call Anna, due Sun 22 Nov 12:00\n\n\
          Missed while I was not running, and left out:\n\n\
          • read, due 4 times from Sun 22 Nov 11:00 to Wed 25 Nov 11:00"],
        "one message"
    );
    let log = env.memory(EPISODIC);
    let skipped = "Skipped the reminder “water the plants”, missed 4 times from Sun 22 Nov 10:00 to Wed 25 Nov 10:00";
    assert!(log.contains(skipped), "{log}");
    assert!(log.contains("Told that the reminder “read” was missed 4 times"), "{log}");
    assert_eq!(wake_at(&telegram, &mut env, "2026-11-25T13:05:00Z"), [""; 0]);
    env.receive(CHAT, "list reminders");
    assert_eq!(
        wake_at(&telegram, &mut env, "2026-11-25T13:10:00Z"),
        ["Reminders:\n\n\
          1. stretch — every day at 09:00, next Thu 26 Nov 2026 at 09:00\n\
          2. water the plants — every day at 10:00, next Thu 26 Nov 2026 at 10:00, skipped if missed; \
          the last was: Wed 25 Nov at 10:00\n\
          3. read — every day at 11:00, next Thu 26 Nov 2026 at 11:00, only told of if missed"]
    );
    for (at, what) in [("09", "stretch"), ("10", "water the plants"), ("11", "read")] {
        let utc = format!("2026-11-26T{:02}:20:00Z", at.parse::<u32>().unwrap() - 1);
        let said = wake_at(&telegram, &mut env, &utc);
        assert_eq!(said, [format!("⏰ {what}\n\n(It was due Thu 26 Nov {at}:00.)")], "late, not missed");
    }
    env.check_sound();
}

#[test]
fn the_nights_in_which_clocks_change_have_each_slot_once() {
    for (set_at, looks) in [
        // Summer time ends: 02:30 comes at 00:30 and again at 01:30 UTC.
        (
            "2026-10-23T12:00:00Z",
            [
                ("2026-10-24T00:31:00Z", 1),
                ("2026-10-25T00:31:00Z", 1),
                ("2026-10-25T01:31:00Z", 0),
                ("2026-10-26T01:31:00Z", 1),
            ],
        ),
        // Summer time begins: 02:30 is skipped, and comes at 03:30, which is 01:30 UTC.
        (
            "2027-03-26T12:00:00Z",
            [
                ("2027-03-27T01:31:00Z", 1),
                ("2027-03-28T00:31:00Z", 0),
                ("2027-03-28T01:31:00Z", 1),
                ("2027-03-29T00:31:00Z", 1),
            ],
        ),
    ] {
        let (telegram, mut env) = told(&[]);
        env.at(set_at)
            .receive(CHAT, "remind me to turn the bread every day at 02:30 in the morning, skip it if missed");
        env.once();
        for (at, times) in looks {
            let said = wake_at(&telegram, &mut env, at);
            assert_eq!(said, vec!["⏰ turn the bread"; times], "at {at}");
            assert_eq!(wake_at(&telegram, &mut env, at), [""; 0], "again at {at}");
        }
        env.check_sound();
    }
}

#[test]
fn a_clock_that_is_set_back_after_a_reminder_does_not_bring_it_again() {
    let (telegram, mut env) = told(&["remind me every day at 9 to stretch"]);
    for (at, said) in [
        ("2026-11-22T08:01:00Z", vec!["⏰ stretch"]),
        ("2026-11-22T07:01:00Z", vec![]),
        ("2026-11-22T08:00:00Z", vec![]),
        ("2026-11-22T08:02:00Z", vec![]),
        ("2026-11-23T08:00:00Z", vec!["⏰ stretch"]),
    ] {
        assert_eq!(wake_at(&telegram, &mut env, at), said, "at {at}");
    }
    env.check_sound();
}

#[test]
fn a_clock_that_was_days_ahead_takes_no_reminder_with_it() {
    let (telegram, mut env) = told(&["remind me every day at 9 to stretch"]);
    let ahead = wake_at(&telegram, &mut env, "2026-11-25T08:05:00Z");
    assert_eq!(
        ahead,
        ["⏰ stretch\n\n(I was not running when it was due 3 times from Sun 22 Nov 09:00 to Tue 24 Nov 09:00.)"]
    );
    // It was Saturday all the time. What was believed to be missed comes at its time, the 25th was told already.
    assert_eq!(wake_at(&telegram, &mut env, "2026-11-21T15:00:00Z"), [""; 0]);
    assert_eq!(env.once()["outcome"], "idle", "the clock is believed from now on");
    for (day, times) in [(22, 1), (23, 1), (24, 1), (25, 0), (26, 1)] {
        let said = wake_at(&telegram, &mut env, &format!("2026-11-{day}T08:05:00Z"));
        assert_eq!(said, vec!["⏰ stretch"; times], "on the {day}");
    }
    env.check_sound();
}

#[test]
fn a_reminder_stays_in_the_zone_that_it_was_set_in_and_says_so() {
    let (telegram, mut env) = told(&["remind me every day at 9 to stretch"]);
    assert_eq!(wake_at(&telegram, &mut env, "2026-11-22T08:00:00Z"), ["⏰ stretch"]);
    // In New York it is 3 o'clock; 9 o'clock there brings nothing.
    env.set("TIMEZONE", "America/New_York");
    let told = wake_at(&telegram, &mut env, "2026-11-22T14:00:00Z");
    assert!(told.len() == 1 && told[0].contains("“stretch” comes Mon 23 Nov 09:00 in Europe/Berlin"), "{told:?}");
    assert_eq!(wake_at(&telegram, &mut env, "2026-11-23T08:00:00Z"), ["⏰ stretch"]);
    env.receive(CHAT, "list reminders");
    let list = wake_at(&telegram, &mut env, "2026-11-23T08:01:00Z");
    assert!(list[0].ends_with("next Tue 24 Nov 2026 at 09:00 (Europe/Berlin)"), "{list:?}");
    env.check_sound();
}

#[test]
fn a_tasks_time_that_was_missed_is_made_up_for_or_not_as_the_task_says() {
    let (telegram, claude, mut env) = with_claude();
    env.wake(&["--once"]).ok();
    let task =
        |name: &str, missed: &str| format!("## {name}\n\n- touched: 2026-11-21\n- at: 2026-11-21 16:00\n{missed}\n");
    env.write_memory(
        ACTIVE,
        &[
            "# Active tasks\n",
            &task("Form", "- missed: skip\n"),
            &task("Bread", "- missed: tell\n"),
            &task("Tax", "- missed: maybe\n"),
        ]
        .join("\n"),
    );
    env.git(&["commit", "-qam", "Tasks"]);
    claude.expect(Reply::text("Seen."));
    env.once();
    env.at("2026-11-22T08:00:00Z");
    claude.expect(Reply::text("I did it."));
    env.once();
    let situation = opening(&last(&claude), "<situation");
    assert!(situation.contains("Tax&quot; has its next step now, late: it was due Sat 21 Nov 16:00"), "{situation}");
    assert!(!situation.contains("Form") && !situation.contains("Bread"), "{situation}");
    assert_eq!(sent(&telegram), ["I missed “Bread” at 2026-11-21 16:00 because I wasn't running. I won't do it late."]);
    let log = env.memory(EPISODIC);
    assert!(log.contains("Skipped the next step of “Form”: its time 2026-11-21 16:00 was missed"), "{log}");
    assert_eq!(env.once()["outcome"], "idle");
    let health = env.health(&["check", "--dry-run"]);
    assert!(health.stdout.contains("`missed: maybe` isn't `run`, `skip` or `tell`"), "{health:#?}");
    assert!(env.memory(ACTIVE).contains("- missed: maybe\n"));
    env.check_sound();
}

/// As a kill would leave it between what a rule did and its commit.
#[test]
fn what_a_rule_has_done_is_in_the_log_though_its_wake_was_cut_off_before_the_commit() {
    let (telegram, mut env) = told(&["remind me tomorrow at 9 to stretch"]);
    let before = commits(&env);
    // What is read first of all for the commit.
    env.hide_table("repairs");
    assert_eq!(env.at("2026-11-22T08:01:00Z").wake(&["--once"]).code, 1);
    assert_eq!((sent(&telegram).len(), commits(&env)), (1, before), "nothing leaves before its commit");
    env.show_table("repairs");
    assert_eq!(wake_at(&telegram, &mut env, "2026-11-22T08:02:00Z"), ["⏰ stretch"]);
    assert_eq!(env.memory(EPISODIC).matches("Reminded of “stretch”").count(), 1);
    assert_eq!((env.trailer("Model").as_str(), commits(&env)), ("none", before + 1));
    assert_eq!(wake_at(&telegram, &mut env, "2026-11-22T08:03:00Z"), [""; 0]);
    env.check_sound();
}

#[test]
fn what_a_rule_has_done_is_told_once_though_its_wake_was_cut_off_after_the_commit() {
    let (telegram, mut env) = told(&[]);
    let seen = env.handled().into_iter().find(|handled| handled.key == "head").unwrap().value;
    env.write_memory(ACTIVE, "# Active tasks\n\n## Tax return\n\n- touched: 2026-11-21\n- at: 2026-11-21 15:30\n");
    env.git(&["commit", "-qam", "A task"]);
    assert_eq!(wake_at(&telegram, &mut env, "2026-11-21T14:31:00Z").len(), 1);
    let (log, before) = (env.memory(EPISODIC), commits(&env));
    assert!(log.contains("Noted a person's commit: A task") && log.contains("It is time for “Tax return”"), "{log}");
    // As it was between the commit and the end.
    env.lose_end_of_cycles();
    env.forget_handled("at/");
    env.put_handled("head", &seen);
    assert_eq!(wake_at(&telegram, &mut env, "2026-11-21T14:32:00Z"), [""; 0]);
    assert_eq!((env.memory(EPISODIC), commits(&env)), (log, before));
    env.check_sound();
}

#[test]
fn what_waits_for_its_next_try_is_not_held_up_by_a_clock_that_is_set_back() {
    let (telegram, mut env) = told(&["remember that cats purr"]);
    env.at("2026-11-21T17:00:00Z");
    env.receive(CHAT, "remember that dogs bark");
    telegram.fail_next("sendMessage", Fault::Status(429, Some(600)));
    env.once();
    // Three hours ahead until then; the ten minutes that were asked for are kept.
    assert_eq!(wake_at(&telegram, &mut env, "2026-11-21T14:00:10Z"), [""; 0]);
    assert_eq!(wake_at(&telegram, &mut env, "2026-11-21T14:09:00Z"), [""; 0]);
    assert_eq!(wake_at(&telegram, &mut env, "2026-11-21T14:10:11Z").len(), 1);
    env.check_sound();
}

#[test]
fn an_answer_comes_before_thousands_of_reminders_and_each_of_them_comes_once() {
    let (telegram, mut env) = told(&["remind me in 10 minutes to call Anna"]);
    let (first, count) = (telegram.sent().len(), 400);
    env.multiply_reminder(count);
    env.at("2026-11-21T14:11:00Z").receive(CHAT, "remember that box 1 is blue");
    env.once();
    let said = sent(&telegram).split_off(first);
    assert!(said[0].contains("box 1 is blue"), "{:?}", said.get(..3));
    let reminded = said.get(1..).unwrap().concat();
    for n in 1..=count {
        assert_eq!(reminded.matches(&format!(" thing {n}.")).count(), 1, "{n}: {reminded}");
    }
    assert!(said[1].starts_with("⏰ 50 reminders were due:") && said[1].contains("350 more are due"), "{}", said[1]);
    assert!(said.len() < 20, "{}", said.len());
    assert_eq!(env.active_reminders().len(), 0);
    assert_eq!(env.count_firings(), count);
    env.check_sound();
}
