//! Tests of a model that can't be reached, refuses, or isn't allowed to answer: nothing is lost, the person is told once, and work
//! resumes on its own.

use super::{
    support::story::{commits, last, reply, sent, with_claude},
    support::{
        claude::Reply,
        env::{CHAT, TestEnv},
    },
};

/// Runs a wake that must fail with exit code 1, and returns the error in its report.
#[track_caller]
fn fails(env: &TestEnv) -> String {
    let ran = env.wake(&["--once", "--json"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert_eq!(ran.json()["outcome"], "failed");
    ran.json()["error"].as_str().unwrap().to_owned()
}

#[test]
fn an_unreachable_model_is_reported_once_and_asked_again_later() {
    let (telegram, claude, mut env) = with_claude();
    let nobody = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    env.set("ANTHROPIC_BASE_URL", &nobody).receive(CHAT, "hello");
    fails(&env);
    assert_eq!(env.queued().len(), 1);
    assert!(sent(&telegram)[0].contains("I can't reach my AI model right now"), "{:?}", sent(&telegram));
    // During the back-off there is no reason to wake.
    assert_eq!(env.once()["outcome"], "idle");
    assert_eq!(commits(&env), 1);

    env.think_with(&claude).at("2026-11-21T14:01:00Z");
    claude.expect(Reply::text("Hello."));
    assert_eq!(env.once()["answered"], 1);
    assert_eq!(sent(&telegram)[1..], ["Hello."]);
    assert_eq!(last(&claude).messages.len(), 1);
    env.check_sound();
}

#[test]
fn who_writes_while_the_model_is_unreachable_is_told_that_the_message_waits() {
    let (_telegram, claude, env) = with_claude();
    env.receive(CHAT, "hello");
    claude.expect(Reply::error(401, "authentication_error", "invalid x-api-key"));
    fails(&env);
    let ran = env.wake(&["say", "are you there?"]).ok();
    ran.assert_tells("is safe").assert_tells("15:00:30");
    assert_eq!(env.queued().len(), 2);
    env.check_sound();
}

#[test]
fn an_outage_of_many_days_reaches_no_limit() {
    let (telegram, claude, mut env) = with_claude();
    env.receive(CHAT, "remember that cats purr");
    claude.expect(Reply::tool("t1", "remember", serde_json::json!({"fact": "Cats purr"})));
    for day in 0..31 {
        env.at(&format!("2026-12-{:02}T14:00:00Z", day + 1));
        claude.expect(Reply::error(401, "authentication_error", "invalid x-api-key"));
        fails(&env);
    }
    env.at("2027-01-02T14:00:00Z");
    claude.expect(Reply::text("Kept."));
    assert_eq!(env.once()["answered"], 1);
    assert_eq!(sent(&telegram)[1..], ["Kept."]);
    env.check_sound();
}

#[test]
fn rate_limits_and_overload_are_waited_out() {
    let (telegram, claude, env) = with_claude();
    env.receive(CHAT, "hello");
    claude.expect(Reply::error(429, "rate_limit_error", "Slow down").header("retry-after", "0"));
    claude.expect(Reply::error(529, "overloaded_error", "Overloaded"));
    claude.expect(Reply::text("Hello."));
    env.once();
    assert_eq!(claude.requests().len(), 3);
    assert_eq!(claude.requests()[0].raw, claude.requests()[2].raw);
    assert_eq!(sent(&telegram), ["Hello."]);
    assert_eq!(env.trailer("Tokens"), "in=10 out=40 cache-read=30 cache-write=20");
    env.check_sound();
}

#[test]
fn a_turn_that_broke_off_is_paid_for_and_never_sent_back() {
    let (telegram, claude, env) = with_claude();
    env.receive(CHAT, "hello");
    claude.expect(Reply::text("Hello, this is the first try.").cut_after(4));
    claude.expect(Reply::text("Hello, this is the second try.").error_event_after(4, "overloaded_error"));
    claude.expect(Reply::text("Hello."));
    env.once();
    assert_eq!(claude.requests().len(), 3);
    assert!(claude.requests().iter().all(|request| request.messages.len() == 1));
    assert_eq!(sent(&telegram), ["Hello."]);
    assert_eq!(env.ledger().iter().filter(|charge| charge.is_discarded && charge.input == 10).count(), 2);
    assert_eq!(env.steps("discarded").len(), 2);
    // For the first two turns, only the tokens received so far count: the server's own count comes last.
    assert_eq!(env.trailer("Tokens"), "in=30 out=58 cache-read=90 cache-write=60");
    env.check_sound();
}

#[test]
fn a_server_that_asks_for_minutes_is_left_alone_for_them() {
    let (telegram, claude, mut env) = with_claude();
    env.receive(CHAT, "hello");
    claude.expect(Reply::error(429, "rate_limit_error", "Slow down").header("retry-after", "120"));
    fails(&env);
    env.at("2026-11-21T14:01:59Z");
    assert_eq!(env.once()["outcome"], "idle");
    env.at("2026-11-21T14:02:00Z");
    claude.expect(Reply::text("Hello."));
    assert_eq!(env.once()["answered"], 1);
    assert_eq!(telegram.sent().len(), 2);
    env.check_sound();
}

#[test]
fn errors_that_only_a_person_can_fix_are_reported_once_and_retried_slowly() {
    type Trouble = (&'static str, fn() -> Reply);
    let troubles: [Trouble; 3] = [
        ("your API key was rejected, please check ANTHROPIC_API_KEY", || {
            Reply::error(401, "authentication_error", "invalid x-api-key")
        }),
        ("Spend limit reached", Reply::spending_limit),
        ("model: claude-sonnet-5-5", || Reply::error(404, "not_found_error", "model: claude-sonnet-5-5")),
    ];
    for (why, reply) in troubles {
        let (telegram, claude, mut env) = with_claude();
        env.receive(CHAT, "hello");
        claude.expect(reply());
        assert!(fails(&env).contains(why));
        let said = sent(&telegram);
        assert!(
            said[0].contains("I'll retry hourly") && said[0].contains(why) && said[0].contains("are safe"),
            "{said:#?}"
        );
        assert_eq!(env.once()["outcome"], "idle");
        env.receive(CHAT, "are you there?");
        assert_eq!(env.once()["outcome"], "idle");

        env.at("2026-11-21T14:00:30Z");
        claude.expect(reply());
        fails(&env);
        env.at("2026-11-21T14:01:00Z");
        assert_eq!(env.once()["outcome"], "idle", "the back-off grows each time");
        assert_eq!(telegram.sent().len(), 1, "{:#?}", telegram.sent());
        assert_eq!(env.queued().len(), 2);

        env.at("2026-11-21T14:01:30Z");
        claude.expect(Reply::text("Now I am."));
        assert_eq!(env.once()["answered"], 2);
        assert_eq!(sent(&telegram)[1..], ["Now I am."]);
        env.check_sound();
    }
}

#[test]
fn a_cycle_resumes_where_an_error_stopped_it() {
    let (telegram, claude, mut env) = with_claude();
    env.receive(CHAT, "remember that cats purr");
    claude.expect(Reply::tool("t1", "remember", serde_json::json!({"fact": "Cats purr"})));
    claude.expect(Reply::error(401, "authentication_error", "invalid x-api-key"));
    fails(&env);
    assert_eq!(env.cycle().state, "waiting");
    assert_eq!(commits(&env), 1);
    env.at("2026-11-21T14:01:00Z");
    claude.expect(Reply::text("Kept."));
    env.once();
    assert_eq!(claude.requests()[2].raw, claude.requests()[1].raw);
    assert_eq!(sent(&telegram)[1..], ["Kept."]);
    assert_eq!(env.memory("memory/agent-memory/semantic-memory.md").matches("Cats purr").count(), 1);
    env.check_sound();
}

#[test]
fn replies_of_a_waiting_cycle_hold_up_nothing_else_in_the_chat() {
    let (telegram, claude, mut env) = with_claude();
    env.receive(CHAT, "what is new?");
    claude.expect(reply("t1", "I look."));
    claude.expect(Reply::error(401, "authentication_error", "invalid x-api-key"));
    fails(&env);
    env.put_reminder(CHAT, "Tea", "2026-11-21T15:00:10", "2026-11-21T14:00:10Z");
    env.at("2026-11-21T14:00:10Z").once();
    assert_eq!(sent(&telegram), ["⏰ Tea"]);
    env.at("2026-11-21T14:01:00Z");
    claude.expect(Reply::text("That was all."));
    env.once();
    assert_eq!(sent(&telegram)[1..], ["I look."]);
    env.check_sound();
}

#[test]
fn a_message_that_fails_three_cycles_is_put_on_hold_and_its_sender_told() {
    let (telegram, claude, mut env) = with_claude();
    let id = env.receive(CHAT, "a message\nthat breaks things");
    let refuse = || Reply::error(400, "invalid_request_error", "messages.0: broken");
    claude.expect(refuse());
    assert!(fails(&env).contains("messages.0: broken"));
    let said = sent(&telegram);
    assert!(said[0].contains("is safe") && said[0].contains("start over"), "{said:#?}");
    assert_eq!(env.once()["outcome"], "idle");

    env.at("2026-11-21T14:00:30Z");
    claude.expect(refuse());
    fails(&env);
    assert_eq!(telegram.sent().len(), 1, "the same notice isn't sent again");
    env.at("2026-11-21T14:01:00Z");
    assert_eq!(env.once()["outcome"], "idle");
    assert_eq!(env.queued()[0].attempts, 2);

    env.at("2026-11-21T14:01:30Z");
    claude.expect(refuse());
    fails(&env);
    let said = sent(&telegram);
    assert!(said[1].contains("a message that breaks things") && said[1].contains("It is on hold"), "{said:#?}");
    assert_eq!(env.outcome(id), "dead");
    assert!(env.queued().is_empty());
    env.at("2026-11-22T14:00:00Z");
    assert_eq!(env.once()["outcome"], "idle");
    assert_eq!(env.cycles_in("abandoned").len(), 3);
    let health = env.health(&["check", "--json"]).json().to_string();
    assert!(health.contains("1 message given up after 3 tries"), "{health}");
    assert!(env.health(&["status"]).stdout.contains("1 given up"));
    assert!(env.wake(&["queue", "list"]).ok().stdout.contains("given up after 3 tries"));

    // Other messages are answered as usual.
    env.receive(CHAT, "hello");
    claude.expect(Reply::text("Hello."));
    assert_eq!(env.once()["answered"], 1);
    env.check_sound();
}
