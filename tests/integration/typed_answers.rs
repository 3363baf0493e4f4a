//! A yes or a no that the owner types answers the one question that is open, or is a message like any other.

use serde_json::json;

use super::{
    approvals::{asked, end_bot, question, start_bot, state},
    support::{
        claude::Reply,
        env::{CHAT, TestEnv, eventually},
        telegram::{FakeTelegram, SENT_AT},
    },
};

/// The owner types this while a bot listens. Waits until it is taken in.
fn type_in(telegram: &FakeTelegram, env: &TestEnv, texts: &[&str]) {
    // Numbers of messages only grow.
    telegram.number_updates_from(10_000);
    let bot = start_bot(env);
    for text in texts {
        telegram.push_text(CHAT, CHAT, text);
        eventually("it is confirmed", || telegram.unconfirmed() == 0);
        eventually("what is said to it is sent", || {
            env.outbox_of("command").iter().all(|message| message.sent_at.is_some())
        });
    }
    end_bot(bot);
}

fn messages(env: &TestEnv) -> usize {
    env.count_received()
}

#[test]
fn a_typed_yes_allows_what_was_asked_and_is_no_message() {
    let (telegram, claude, env) = asked();
    type_in(&telegram, &env, &["Yes."]);
    assert_eq!((state(&env).as_str(), messages(&env)), ("approved", 1));
    assert_eq!(telegram.sent().pop().unwrap().visible, "Allowed, once.");
    claude.expect(Reply::text("It is written down."));
    assert_eq!(env.once()["outcome"], "worked");
    assert!(env.memory("memory/agent-memory/semantic-memory.md").contains("The wifi code is 1234"));
    env.check_sound();
}

#[test]
fn a_typed_no_refuses_it() {
    let (telegram, _claude, env) = asked();
    type_in(&telegram, &env, &["no"]);
    assert_eq!((state(&env).as_str(), messages(&env)), ("denied", 1));
    assert_eq!(telegram.sent().pop().unwrap().visible, "Not done.");
}

#[test]
fn what_is_dangerous_wants_the_button_but_not_for_a_no() {
    let (telegram, _claude, env) = asked();
    env.alter_approvals("risk", "dangerous");
    type_in(&telegram, &env, &["yes"]);
    assert_eq!((state(&env).as_str(), messages(&env)), ("pending", 1));
    assert!(telegram.sent().pop().unwrap().visible.contains("tap the button"));

    let (telegram, _claude, env) = asked();
    env.alter_approvals("risk", "destructive");
    type_in(&telegram, &env, &["no"]);
    assert_eq!(state(&env), "denied");
}

#[test]
fn with_something_of_ours_between_or_two_questions_a_yes_is_a_message() {
    let (telegram, _claude, env) = asked();
    type_in(&telegram, &env, &["/help", "yes"]);
    assert_eq!((state(&env).as_str(), messages(&env)), ("pending", 2));

    let (telegram, _claude, env) = asked();
    env.ask_again("other");
    type_in(&telegram, &env, &["yes"]);
    assert_eq!(env.approvals_in("pending").len(), 2);
    assert_eq!(messages(&env), 2);
}

#[test]
fn a_yes_that_is_dated_before_its_question_answers_nothing() {
    let (telegram, _claude, env) = asked();
    let earlier = SENT_AT - 1;
    telegram.number_updates_from(10_000);
    let bot = start_bot(&env);
    telegram.push_message(CHAT, &json!({"text": "yes", "date": earlier}));
    eventually("it is confirmed", || telegram.unconfirmed() == 0);
    assert_eq!((state(&env).as_str(), messages(&env)), ("pending", 2));
    let asked = question(&telegram);
    let mut tap = telegram.tapped(CHAT, CHAT, asked.message_id, &asked.buttons[0]);
    tap["callback_query"]["message"]["date"] = json!(earlier);
    telegram.push_raw(tap);
    eventually("it is confirmed", || telegram.unconfirmed() == 0);
    assert_eq!(state(&env), "pending");
    // The same second is late enough: what came first the numbers tell.
    telegram.push_message(CHAT, &json!({"text": "yes", "date": SENT_AT}));
    eventually("it is confirmed", || telegram.unconfirmed() == 0);
    end_bot(bot);
    assert_eq!((state(&env).as_str(), messages(&env)), ("approved", 2));
}

#[test]
fn a_guests_yes_is_a_message() {
    const GUEST: i64 = 777;
    let (telegram, _claude, mut env) = asked();
    env.set("ALLOWED_CHAT_IDS", &format!("{CHAT},{GUEST}"));
    let asked = question(&telegram).message_id;
    telegram.number_updates_from(10_000);
    let bot = start_bot(&env);
    telegram.push_text(GUEST, GUEST, "yes");
    eventually("it is confirmed", || telegram.unconfirmed() == 0);
    end_bot(bot);
    assert_eq!((state(&env).as_str(), messages(&env)), ("pending", 2));
    // Moved to the guest's chat, it is still the owner's word that counts.
    env.move_approvals(GUEST);
    let bot = start_bot(&env);
    telegram.push_text(GUEST, GUEST, "yes");
    eventually("it is confirmed", || telegram.unconfirmed() == 0);
    end_bot(bot);
    assert_eq!((state(&env).as_str(), messages(&env), asked > 0), ("pending", 3, true));
}
