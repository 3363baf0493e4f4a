//! The buttons under a reminder: done, or once more later, by whom it belongs to, once.

use super::{
    approvals::{press, question},
    support::{
        env::{CHAT, TestEnv, eventually},
        telegram::{FakeTelegram, SentMessage},
    },
};

/// A world in which a reminder has come.
fn reminded(when: &str) -> (FakeTelegram, TestEnv, SentMessage) {
    let telegram = FakeTelegram::start();
    // What the world has received counts as fetched.
    telegram.number_updates_from(2_000);
    let mut env = TestEnv::with_telegram(&telegram);
    env.receive(CHAT, &format!("remind me {when} to call Anna"));
    env.once();
    env.at("2026-11-21T15:00:00Z").once();
    let message = question(&telegram);
    assert!(message.visible.contains("call Anna") && message.chat_id == CHAT, "{message:?}");
    (telegram, env, message)
}

fn active(env: &TestEnv) -> String {
    env.query("SELECT count(*) || ' ' || coalesce(min(next_at), '') FROM reminders WHERE state = 'active'")
}

#[test]
fn done_ends_it_and_takes_the_buttons_away() {
    let (telegram, env, message) = reminded("in 10 minutes");
    assert_eq!(message.buttons.len(), 3);
    assert_eq!(press(&telegram, &env, (CHAT, CHAT, message.message_id, &message.buttons[0])), "✅ Done.");
    eventually("the answer is shown", || {
        telegram.standing().iter().any(|text| text.contains("call Anna") && text.ends_with("✅ Done."))
    });
    assert_eq!(
        press(&telegram, &env, (CHAT, CHAT, message.message_id, &message.buttons[1])),
        "You've answered this before."
    );
    assert_eq!(active(&env), "0 ");
    assert_eq!(env.query::<i64>("SELECT count(*) FROM incoming_messages"), 1, "no press is a message");
    env.check_sound();
}

#[test]
fn a_snoozed_reminder_comes_again_in_an_hour_once_however_often_it_is_pressed() {
    let (telegram, mut env, message) = reminded("in 10 minutes");
    let said = press(&telegram, &env, (CHAT, CHAT, message.message_id, &message.buttons[1]));
    assert!(said.starts_with("💤 I'll remind you again Sat 21 Nov"), "{said}");
    for button in &message.buttons {
        press(&telegram, &env, (CHAT, CHAT, message.message_id, button));
    }
    assert_eq!(active(&env), "1 2026-11-21T16:00:00.000Z");
    env.at("2026-11-21T16:00:00Z").once();
    let came: Vec<SentMessage> =
        telegram.sent().into_iter().filter(|message| message.visible.starts_with("⏰ call Anna")).collect();
    assert_eq!((came.len(), came[1].buttons.len()), (2, 3), "{came:?}");
    env.check_sound();
}

#[test]
fn one_that_recurs_goes_on_beside_what_was_snoozed() {
    let (telegram, env, message) = reminded("every day at 15:30");
    press(&telegram, &env, (CHAT, CHAT, message.message_id, &message.buttons[2]));
    assert_eq!(env.query::<i64>("SELECT count(*) FROM reminders WHERE state = 'active' AND rule IS NOT NULL"), 1);
    assert_eq!(env.query::<i64>("SELECT count(*) FROM reminders WHERE state = 'active' AND rule IS NULL"), 1);
}

#[test]
fn nobody_elses_press_and_no_other_message_answers_a_reminder() {
    const LISTED: i64 = 777;
    let (telegram, mut env, message) = reminded("in 10 minutes");
    env.set("ALLOWED_CHAT_IDS", &format!("{CHAT},{LISTED}"));
    let (id, later) = (message.message_id, message.buttons[1].as_str());
    for (chat, who, message) in [(LISTED, LISTED, id), (CHAT, CHAT, id + 1)] {
        assert_eq!(
            press(&telegram, &env, (chat, who, message, later)),
            "I don't know this reminder any more. Nothing was done."
        );
    }
    assert_eq!(active(&env), "0 ");
}
