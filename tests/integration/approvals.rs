//! What has to ask: the question reaches its person, and what they were shown runs after their yes, once, or not at all.

use super::{
    support::story::{end_well, last, results, start_wake, with_claude},
    support::{
        bot::assert_token_hidden,
        claude::{Block, FakeClaude, Reply},
        env::{CHAT, NOW, Running, TestEnv, eventually},
        telegram::{FakeTelegram, Fault, SentMessage},
    },
};
use reveille_base::types::ApprovalAnswer;
use rustix::process::Signal;
use serde_json::json;

const FACT: &str = "The wifi code is 1234";

/// A world in which everything that changes something has to ask, and one question was asked.
pub(crate) fn asked() -> (FakeTelegram, FakeClaude, TestEnv) {
    asked_about(json!({ "fact": FACT }))
}

fn asked_about(arguments: serde_json::Value) -> (FakeTelegram, FakeClaude, TestEnv) {
    let (telegram, claude, mut env) = with_claude();
    // What the world has received counts as fetched.
    telegram.number_updates_from(2_000);
    env.set("AUTONOMY", "0").receive(CHAT, "remember the wifi code");
    claude.expect(Reply::tools(vec![Block::tool("t1", "remember", arguments)]));
    assert_eq!(env.once()["outcome"], "parked");
    (telegram, claude, env)
}

pub(crate) fn question(telegram: &FakeTelegram) -> SentMessage {
    telegram.sent().into_iter().find(|message| !message.buttons.is_empty()).expect("a message with buttons")
}

fn facts(env: &TestEnv) -> usize {
    env.memory("memory/agent-memory/semantic-memory.md").matches(FACT).count()
}

/// A bot whose wakes do nothing.
pub(crate) fn start_bot(env: &TestEnv) -> Running {
    env.start(env!("CARGO_BIN_EXE_bot"), &["run", "--wake", "/bin/true"])
}

pub(crate) fn end_bot(bot: Running) {
    bot.signal(Signal::TERM);
    assert_token_hidden(&bot.end().ok());
}

/// Presses a button as somebody, and waits until the bot has said what became of it.
pub(crate) fn press(
    telegram: &FakeTelegram,
    env: &TestEnv,
    (chat, who, message, data): (i64, i64, i64, &str),
) -> String {
    let said = telegram.calls("answerCallbackQuery").len();
    let bot = start_bot(env);
    telegram.tap(chat, who, message, data);
    eventually("a press is answered", || telegram.calls("answerCallbackQuery").len() > said);
    eventually("it is confirmed", || telegram.unconfirmed() == 0);
    end_bot(bot);
    telegram.calls("answerCallbackQuery").pop().unwrap()["text"].as_str().unwrap().to_owned()
}

pub(crate) fn state(env: &TestEnv) -> String {
    env.approval().state
}

#[test]
fn a_yes_runs_what_was_shown_and_the_conversation_goes_on_as_it_was() {
    let (telegram, claude, env) = asked();
    let asked = question(&telegram);
    assert!(asked.visible.contains("remember") && asked.visible.contains(FACT), "{}", asked.visible);
    assert_eq!((asked.chat_id, asked.buttons.len()), (CHAT, 2));
    assert_eq!(facts(&env), 0);
    assert_eq!(env.once()["outcome"], "idle", "nobody has answered");

    assert_eq!(press(&telegram, &env, (CHAT, CHAT, asked.message_id, &asked.buttons[0])), "Allowed, once.");
    eventually("the buttons go", || telegram.standing().iter().any(|text| text.contains("✅ Allowed, once")));

    claude.expect(Reply::text("It is written down."));
    assert_eq!(env.once()["outcome"], "worked");
    assert_eq!(results(&last(&claude)).len(), 1);
    assert!(!results(&last(&claude))[0].1);
    assert_eq!(facts(&env), 1);
    let mut kinds = env.journal_kinds();
    kinds.retain(|kind| ["judged", "decided", "called"].contains(&kind.as_str()));
    assert_eq!(kinds, ["judged", "decided", "called"]);
    assert_eq!(env.count_used_approvals(), 1);
    assert_eq!(env.once()["outcome"], "idle");
    env.check_sound();
}

#[test]
fn however_many_messages_wait_for_an_answer_others_of_the_chat_are_taken_up() {
    let (_telegram, claude, env) = asked();
    // All of these stand in the conversation that waits.
    env.queue_many(CHAT, "and this", NOW, 150);
    env.take_up_queued();
    let listed = env.wake(&["queue", "list"]).ok().stdout;
    assert_eq!(listed.matches("waits for your answer to question 1").count(), 151, "{listed}");
    let health = env.health(&["check"]).stdout;
    assert!(health.contains("151 messages waiting for your answer to a question"), "{health}");
    assert!(!health.contains("kept until"), "{health}");
    let status = env.health(&["status"]).ok().stdout;
    assert!(status.contains("151 waiting for your answer to a question") && !status.contains("kept until"), "{status}");

    env.receive(CHAT, "what time is it?");
    claude.expect(Reply::text("Three."));
    assert_eq!(env.once()["answered"], 1);
    assert_eq!(env.queued().len(), 151);
}

#[test]
fn a_no_is_told_to_the_mind_and_nothing_happens() {
    let (telegram, claude, env) = asked();
    let asked = question(&telegram);
    assert_eq!(press(&telegram, &env, (CHAT, CHAT, asked.message_id, &asked.buttons[1])), "Not done.");
    claude.expect(Reply::text("Then I leave it."));
    env.once();
    let told = results(&last(&claude));
    assert!(told[0].1 && told[0].0.contains("said no"), "{told:?}");
    assert_eq!(facts(&env), 0);
    env.check_sound();
}

#[test]
fn no_answer_in_time_is_a_no_and_the_question_says_so() {
    let (telegram, claude, mut env) = asked();
    claude.expect(Reply::text("Then I leave it."));
    env.at("2026-11-22T14:00:00Z").once();
    assert!(results(&last(&claude))[0].0.contains("didn't answer in time"));
    assert_eq!((facts(&env), state(&env).as_str()), (0, "expired"));
    let asked = question(&telegram);
    assert_eq!(
        press(&telegram, &env, (CHAT, CHAT, asked.message_id, &asked.buttons[0])),
        "This came too late. Nothing was done."
    );
    eventually("the question says so", || {
        telegram.standing().iter().any(|text| text.contains("Nobody answered in time"))
    });
    assert_eq!((env.once()["outcome"].as_str(), facts(&env)), (Some("idle"), 0));
}

#[test]
fn nobody_else_nowhere_else_and_no_other_button_decides() {
    const STRANGER: i64 = 666;
    const LISTED: i64 = 777;
    const GROUP: i64 = -100_200;
    let (telegram, _claude, mut env) = asked();
    env.set("ALLOWED_CHAT_IDS", &format!("{CHAT},{LISTED},{GROUP}"));
    let asked = question(&telegram);
    let (id, yes) = (asked.message_id, asked.buttons[0].clone());
    assert_eq!(press(&telegram, &env, (LISTED, LISTED, id, &yes)), "Only the person I asked can answer this.");
    assert_eq!(press(&telegram, &env, (GROUP, CHAT, id, &yes)), "Only the person I asked can answer this.");
    assert_eq!(press(&telegram, &env, (CHAT, CHAT, id + 1, &yes)), "Only the person I asked can answer this.");
    let guessed = format!("yes:{}", "0".repeat(32));
    assert!(press(&telegram, &env, (CHAT, CHAT, id, &guessed)).contains("no longer have this question"));
    let bot = start_bot(&env);
    telegram.tap(STRANGER, STRANGER, id, &yes);
    telegram.tap(CHAT, CHAT, id, "something else");
    eventually("both are confirmed", || telegram.unconfirmed() == 0);
    end_bot(bot);
    assert_eq!(state(&env), "pending");
    assert_eq!(env.count_from_strangers(), 1);
    assert_eq!(env.count_received(), 1, "no press is a message");
}

#[test]
fn a_thousand_taps_run_it_once() {
    let (telegram, claude, env) = asked();
    let asked = question(&telegram);
    let bot = start_bot(&env);
    for n in 0..1000 {
        telegram.tap(CHAT, CHAT, asked.message_id, &asked.buttons[usize::from(n % 7 == 5)]);
    }
    eventually("all are confirmed", || telegram.unconfirmed() == 0);
    end_bot(bot);
    assert_eq!(state(&env), "approved", "the first one counts");
    claude.expect(Reply::text("Done."));
    env.once();
    assert_eq!((facts(&env), env.once()["outcome"].as_str()), (1, Some("idle")));
    assert_eq!(env.steps("called").len(), 1);
}

type Change = fn(&TestEnv);

#[test]
fn a_byte_that_changed_after_the_question_runs_nothing() {
    let changes: [(&str, Change); 6] = [
        ("action", |env| env.replace_in_actions("1234", "1235")),
        ("tool", |env| env.alter_approvals("tool", "forget")),
        ("use", |env| env.alter_approvals("used_at", NOW)),
        ("state", |env| env.alter_approvals("state", "withdrawn")),
        ("call", |env| env.alter_approvals("call", "t2")),
        ("question", |env| env.forget_approvals()),
    ];
    for (what, change) in changes {
        let (_telegram, claude, env) = asked();
        let id = env.approval().id;
        assert!(
            env.store()
                .approvals_mut()
                .decide_approval(
                    id,
                    ApprovalAnswer::Yes,
                    env.store().approvals().find_approval(id).unwrap().unwrap().asked_at.unwrap()
                )
                .unwrap()
        );
        change(&env);
        claude.expect(Reply::text("So be it."));
        env.once();
        let told = results(&last(&claude));
        assert!(told[0].1 && told[0].0.contains("Nothing was done"), "{what}: {told:?}");
        assert!(!env.memory("memory/agent-memory/semantic-memory.md").contains("wifi"), "{what}");
    }
}

#[test]
fn a_rule_that_was_made_after_a_yes_counts_before_it() {
    let begun = [
        json!({"kind": "decided", "call": "t1", "is_approved": true, "why": ""}),
        json!({"kind": "called", "call": "t1", "name": "remember", "input": json!({ "fact": FACT }).to_string()}),
    ];
    // Before it was begun, and where a wake was cut off in it.
    for was_begun in [false, true] {
        let (_telegram, claude, env) = asked();
        let now = env.store().approvals().find_approval(1).unwrap().unwrap().asked_at.unwrap();
        assert!(env.store().approvals_mut().decide_approval(1, ApprovalAnswer::Yes, now).unwrap());
        for step in begun.iter().filter(|_| was_begun) {
            env.put_step(step, NOW);
        }
        let policy = env.workspace().join("policy.toml");
        let rule = "[[rule]]\ntool = \"remember\"\ndecision = \"deny\"\nmatch = [\"remember\"]\n";
        std::fs::write(&policy, rule).unwrap();
        std::fs::set_permissions(&policy, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        claude.expect(Reply::text("So be it."));
        assert_eq!(env.once()["outcome"], "worked");
        let (told, is_error) = results(&last(&claude)).remove(0);
        assert!(
            is_error && told.contains("but the policy no longer allows it: Your rule in policy.toml, line 1"),
            "{told}"
        );
        let called = env.steps("called").len();
        assert_eq!((facts(&env), called), (0, usize::from(was_begun)));
        assert_eq!(env.once()["outcome"], "idle");
        env.check_sound();
    }
}

#[test]
fn what_is_too_long_for_a_message_is_a_file_with_every_byte() {
    let long = format!("{FACT}{}", " and the next one is 5678".repeat(150));
    let fact = format!("{long} tea\u{202e}pot");
    let (telegram, claude, env) = asked_about(json!({ "fact": fact }));
    let asked = question(&telegram);
    let file = asked.file.clone().expect("a file");
    let action = env.approval().action;
    assert!(file.contains(&long) && !asked.visible.contains("5678"), "{}", asked.visible);
    // What a screen hides is spelled out there, and the hash is of the bytes that a yes allows.
    assert!(file.contains("tea\\u{202e}pot") && !file.contains('\u{202e}'), "{file}");
    let bytes = env.wake(&["approvals", "bytes", "1"]).ok().stdout;
    let sha256 = reveille_base::approval_text::hash_action(&bytes);
    assert_eq!(bytes, action);
    assert!(!asked.visible.contains(&sha256) && file.contains(&sha256), "{}", asked.visible);
    let listed = env.wake(&["approvals", "list"]).ok().stdout;
    assert!(listed.contains(&long) && !listed.contains("attached file"), "{listed}");
    assert_eq!(press(&telegram, &env, (CHAT, CHAT, asked.message_id, &asked.buttons[0])), "Allowed, once.");
    eventually("it is shown", || telegram.standing().iter().any(|text| text.contains("✅ Allowed, once")));
    claude.expect(Reply::text("Done."));
    env.once();
}

/// A question that has come, and whose sender doesn't know it.
fn asked_in_doubt() -> (FakeTelegram, FakeClaude, TestEnv) {
    let (telegram, claude, mut env) = with_claude();
    telegram.number_updates_from(2_000);
    telegram.fail_next("sendMessage", Fault::CloseAfterTaking);
    env.set("AUTONOMY", "0").receive(CHAT, "remember the wifi code");
    claude.expect(Reply::tools(vec![Block::tool("t1", "remember", json!({ "fact": FACT }))]));
    assert_eq!(env.once()["outcome"], "parked");
    (telegram, claude, env)
}

/// The question's sender can't know that it has arrived; who presses its button shows it.
#[test]
fn a_press_counts_where_the_word_that_the_question_was_sent_got_lost() {
    let (telegram, claude, env) = asked_in_doubt();
    assert_eq!(env.part_states()[0], "unknown");
    let asked = question(&telegram);
    let other = format!("yes:{}", "0".repeat(32));
    assert!(press(&telegram, &env, (CHAT, CHAT, asked.message_id, &other)).contains("no longer have this question"));
    assert_eq!(env.part_states()[0], "unknown", "that was no button of it");
    assert_eq!(press(&telegram, &env, (CHAT, CHAT, asked.message_id, &asked.buttons[0])), "Allowed, once.");
    eventually("the question says so", || telegram.standing().iter().any(|text| text.contains("✅ Allowed, once")));
    claude.expect(Reply::text("It is written down."));
    env.once();
    assert_eq!(facts(&env), 1);
    let sent = telegram.sent().into_iter().map(|message| message.visible).collect::<Vec<_>>();
    assert!(sent.len() == 2 && sent[1] == "It is written down.", "nothing is asked again: {sent:#?}");
    assert_eq!(env.count_unsent(), 0);
}

/// Of a question that was sent twice either copy's buttons count: its person can't know which one is meant.
#[test]
fn a_press_counts_on_either_copy_of_a_question_that_was_sent_again() {
    let (telegram, claude, env) = asked_in_doubt();
    let first = question(&telegram);
    env.once();
    let second = telegram.sent().pop().unwrap();
    assert!(first.message_id != second.message_id && first.buttons == second.buttons, "{first:#?} {second:#?}");
    assert_eq!(env.part_states()[0], "sent");
    assert_eq!(press(&telegram, &env, (CHAT, CHAT, first.message_id, &first.buttons[0])), "Allowed, once.");
    claude.expect(Reply::text("It is written down."));
    env.once();
    assert_eq!(facts(&env), 1);
}

/// Nobody can answer what nobody was asked: that is a no, and nothing waits for it.
#[test]
fn a_question_that_its_channel_refuses_is_a_no_at_once() {
    let (telegram, claude, mut env) = with_claude();
    telegram.fail_next("sendMessage", Fault::Refuse(403, "Forbidden: bot was blocked by the user", json!({})));
    env.set("AUTONOMY", "0").receive(CHAT, "remember the wifi code");
    claude.expect(Reply::tools(vec![Block::tool("t1", "remember", json!({ "fact": FACT }))]));
    claude.expect(Reply::text("I couldn't ask you, so it isn't written down."));
    assert_eq!(env.once()["outcome"], "worked");
    assert_eq!(env.approval().state, "withdrawn");
    assert!(claude.requests()[1].messages.concat().contains("could not be asked"), "{:#?}", claude.requests()[1]);
    assert_eq!(facts(&env), 0);
    env.check_sound();
}

#[test]
fn the_console_asks_and_decides_too() {
    let (_telegram, claude, mut env) = with_claude();
    env.set("AUTONOMY", "0");
    claude.expect(Reply::tools(vec![Block::tool("t1", "remember", json!({ "fact": FACT }))]));
    let said = env.wake(&["say", "remember", "the wifi code"]).ok();
    assert!(said.stdout.contains(FACT) && said.stdout.contains("wake approvals approve 1"), "{said:?}");
    let listed = env.wake(&["approvals", "list"]).ok();
    assert!(listed.stdout.contains("wake approvals approve 1") && listed.stdout.contains(FACT), "{listed:?}");
    claude.expect(Reply::text("It is written down."));
    let approved = env.wake(&["approvals", "approve", "1"]).ok();
    assert!(approved.stdout.contains("It is written down."), "{approved:?}");
    assert_eq!(facts(&env), 1);
    let again = env.wake(&["approvals", "deny", "1"]);
    again.assert_fails(1, "is already approved");
    assert_eq!(env.wake(&["approvals", "approve", "9"]).code, 1);
    env.check_sound();
}

#[test]
fn others_are_answered_while_a_question_waits() {
    let (telegram, claude, env) = asked();
    env.receive(CHAT, "and what is new?");
    claude.expect(Reply::text("Nothing."));
    assert_eq!(env.once()["answered"], 1);
    assert_eq!(facts(&env), 0);
    assert!(telegram.sent().iter().any(|message| message.visible == "Nothing."));
    assert_eq!(state(&env), "pending");
}

#[test]
fn a_wake_that_is_killed_in_between_asks_once_and_does_it_once() {
    let (telegram, claude, env) = asked();
    let id = env.approval().id;
    // Killed before the cycle was parked: the question stands, and is not asked again.
    env.cut_off_cycles();
    assert_eq!(env.once()["outcome"], "idle");
    assert_eq!(telegram.sent().iter().filter(|message| !message.buttons.is_empty()).count(), 1);
    let now = env.store().approvals().find_approval(id).unwrap().unwrap().asked_at.unwrap();
    assert!(env.store().approvals_mut().decide_approval(id, ApprovalAnswer::Yes, now).unwrap());
    let wake = {
        claude.expect(Reply::text("It is written down."));
        start_wake(&env)
    };
    assert_eq!(end_well(wake)["outcome"], "worked");
    assert_eq!(facts(&env), 1);
    env.check_sound();
}

#[test]
fn a_question_does_not_wait_for_what_its_cycle_has_said_before() {
    let (telegram, claude, mut env) = with_claude();
    env.set("AUTONOMY", "0").receive(CHAT, "remember the wifi code");
    claude.expect(Reply::tools(vec![
        Block::tool("t1", "reply", json!({ "text": "I write it down." })),
        Block::tool("t2", "remember", json!({ "fact": FACT })),
    ]));
    assert_eq!(env.once()["outcome"], "parked");
    assert!(question(&telegram).visible.contains(FACT));
    assert_eq!(telegram.sent().len(), 1, "what it said leaves after its commit");
    env.receive(CHAT, "and what is new?");
    claude.expect(Reply::text("Nothing."));
    env.once();
    assert!(telegram.sent().iter().any(|message| message.visible == "Nothing."), "{:?}", telegram.sent());
    assert!(
        env.store()
            .approvals_mut()
            .decide_approval(
                env.approval().id,
                ApprovalAnswer::Yes,
                reveille_base::clock::parse_time("2026-11-21T14:00:00Z").unwrap()
            )
            .unwrap()
    );
    claude.expect(Reply::text(""));
    env.once();
    assert!(telegram.sent().iter().any(|message| message.visible == "I write it down."));
    assert_eq!(facts(&env), 1);
    env.check_sound();
}

/// The finding of one check.
fn found(env: &TestEnv, id: &str) -> (String, String) {
    let told = env.health(&["check", "--dry-run", "--json"]).json();
    let check = told["checks"].as_array().unwrap().iter().find(|check| check["id"] == id).unwrap().clone();
    (check["status"].as_str().unwrap().to_owned(), check["detail"].as_str().unwrap().to_owned())
}

#[test]
fn what_waits_for_a_word_is_shown_and_what_nobody_goes_on_with_is_told() {
    let (_telegram, _claude, mut env) = asked();
    let status = env.health(&["status"]).ok().stdout;
    assert!(
        status.contains(
            "question   1: May I remember “The wifi code is 1234”? Risk: none known, asked 0 s ago, expires in 24 h"
        ),
        "{status}"
    );
    assert_eq!(env.health(&["status", "--json"]).ok().json()["questions"][0]["tool"], "remember");
    // It waits for hours, and that is as it should be: neither its cycle nor its message is overlooked.
    env.at("2026-11-21T20:00:00Z");
    for check in ["approvals", "cycles", "queue"] {
        let (status, detail) = found(&env, check);
        assert_eq!(status, "ok", "{check}: {detail}");
    }
    let now = reveille_base::clock::parse_time("2026-11-21T20:00:00Z").unwrap();
    assert!(env.store().approvals_mut().decide_approval(1, ApprovalAnswer::Yes, now).unwrap());
    assert_eq!(found(&env, "approvals").0, "ok", "a wake is about to come");
    env.at("2026-11-21T20:20:00Z");
    let (status, detail) = found(&env, "approvals");
    assert!(status == "warn" && detail.contains("was approved") && detail.contains("no wake has resumed"), "{detail}");
    env.forget_approvals();
    let (status, detail) = found(&env, "approvals");
    assert!(status == "warn" && detail.contains("its question is gone"), "{detail}");
    assert!(env.health(&["status", "--json"]).ok().json()["questions"].as_array().unwrap().is_empty());
}

#[test]
fn a_call_that_can_be_read_in_two_ways_is_never_asked_about() {
    let (telegram, claude, mut env) = with_claude();
    env.set("AUTONOMY", "0").receive(CHAT, "remember the wifi code");
    let twice = format!(r#"{{"fact":"Tea is in the attic","fact":"{FACT}"}}"#);
    claude.expect(Reply::tool("t1", "remember", twice));
    claude.expect(Reply::text("Then I leave it."));
    assert_eq!(env.once()["outcome"], "worked");
    let told = results(&last(&claude));
    assert!(told[0].1 && told[0].0.contains("occurs twice"), "{told:?}");
    assert!(telegram.sent().iter().all(|message| message.buttons.is_empty()));
    assert_eq!((facts(&env), env.approvals().len()), (0, 0));
    env.check_sound();
}

/// A turn with two calls that ask, at the terminal: each is shown whole, and both can be answered together.
#[test]
fn what_is_typed_at_the_terminal_answers_the_questions_above_it() {
    let (_telegram, claude, mut env) = with_claude();
    env.set("AUTONOMY", "0");
    let ask = |calls: Vec<Block>| {
        claude.expect(Reply::tools(calls));
        env.wake(&["say", "please"]).ok()
    };
    let ran = ask(vec![Block::tool("t1", "remember", json!({ "fact": FACT }))]);
    assert!(ran.stdout.contains(&format!("May I remember `{FACT}`?")), "{ran:#?}");
    assert!(ran.stdout.contains("Risk: none known.") && ran.stdout.contains("Or say yes or no."), "{ran:#?}");
    for unwanted in ["SHA-256", "```", "fact:", "t1"] {
        assert!(!ran.stdout.contains(unwanted), "{unwanted}: {ran:#?}");
    }
    claude.expect(Reply::text("It is written down."));
    let ran = env.wake(&["say", "yes"]).ok();
    assert!(ran.stdout.contains("Allowed, once.") && ran.stdout.contains("It is written down."), "{ran:#?}");
    assert_eq!(facts(&env), 1);

    let both = || {
        vec![
            Block::tool("t2", "task_add", json!({ "title": "Call Anna" })),
            Block::tool("t3", "task_add", json!({ "title": "Buy bread" })),
        ]
    };
    let ran = ask(both());
    assert!(ran.stdout.contains("the task `Call Anna`?") && ran.stdout.contains("the task `Buy bread`?"), "{ran:#?}");
    let ran = env.wake(&["say", "yes"]).ok();
    assert!(ran.stdout.contains("Several questions are open"), "{ran:#?}");
    claude.expect(Reply::text("Both are there."));
    let ran = env.wake(&["say", "yes to all"]).ok();
    assert!(ran.stdout.contains("Both are there."), "{ran:#?}");
    let active = env.memory("memory/project-memory/active.md");
    assert!(active.contains("Call Anna") && active.contains("Buy bread"), "{active}");
    // With nothing open it is a message like any other.
    claude.expect(Reply::text("Yes what?"));
    assert!(env.wake(&["say", "yes"]).ok().stdout.contains("Yes what?"));
    assert!(env.wake(&["cost"]).ok().stdout.contains("I asked you 3 questions: Sat 21 Nov 3."));
    env.check_sound();
}
