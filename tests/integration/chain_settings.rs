//! A chain of models where a setting is wrong: it is told, and nothing that was begun is thrown away.

use serde_json::json;

use super::{
    chain::{FIRST, SECOND, asked_models, both, chained, outage},
    support::story::{reply, sent},
    support::{
        claude::Reply,
        env::{CHAT, TestEnv},
    },
};

#[test]
fn what_has_begun_goes_on_without_a_model_that_is_gone_and_what_comes_waits() {
    let (telegram, claude, env) = chained(&both());
    env.receive(CHAT, "Anna's birthday is 3 May");
    claude.expect(Reply::tool("t1", "remember", json!({"fact": "Anna's birthday is 3 May"})));
    claude.expect(Reply::error(404, "not_found_error", "model: claude-sonnet-5-5"));
    claude.expect(reply("u1", "Kept."));
    claude.expect(Reply::text("Done."));
    let report = env.once();
    assert_eq!((&report["outcome"], &report["answered"]), (&json!("worked"), &json!(1)), "{report:#}");
    assert_eq!(asked_models(&claude), [FIRST, FIRST, SECOND, SECOND]);
    let said = sent(&telegram);
    assert!(said[0].contains("model: claude-sonnet-5-5") && said[1..] == ["Kept."], "{said:?}");
    assert_eq!(env.memory("memory/agent-memory/semantic-memory.md").matches("Anna's").count(), 1);
    // The setting is still wrong: nothing new begins with another model, which would hide that.
    env.receive(CHAT, "hello?");
    assert_eq!(env.once()["outcome"], "idle");
    assert_eq!(env.queued().len(), 1);
    env.check_sound();
}

#[test]
fn a_guest_hears_who_answers_and_the_owner_which_setting_is_wrong() {
    let (telegram, claude, mut env) = chained(&both());
    env.set("ALLOWED_CHAT_IDS", &format!("{CHAT},5555"));
    env.receive(5555, "what day is it?");
    claude.expect(Reply::tool("t1", "plan", json!({"understood": "It.", "complexity": "quick"})));
    claude.expect(Reply::error(404, "not_found_error", "model: claude-sonnet-5-5"));
    claude.expect(Reply::text("Saturday."));
    env.once();
    let said = sent(&telegram);
    assert_eq!(said.iter().filter(|text| text.contains("can't be found")).count(), 1, "{said:?}");
    env.check_sound();
}

#[test]
fn a_model_that_cannot_be_made_ends_no_wake() {
    // It names nothing, which shows when it is asked first.
    let nameless = |env: &mut TestEnv, models: &str| {
        env.set("MODEL", models)
            .set("AWS_REGION", "us-east-1")
            .set("AWS_BEARER_TOKEN_BEDROCK", "a-bearer-key-0123456789");
    };
    let (telegram, claude, mut env) = chained(&both());
    nameless(&mut env, &format!("{FIRST},bedrock:,{SECOND}"));
    env.receive(CHAT, "hello");
    claude.expect(outage());
    claude.expect(Reply::text("Hello."));
    let report = env.once();
    assert_eq!((&report["outcome"], &report["answered"]), (&json!("worked"), &json!(1)), "{report:#}");
    assert_eq!(asked_models(&claude), [FIRST, SECOND]);
    assert_eq!(sent(&telegram).last().unwrap(), "Hello.");
    env.check_sound();
    // Nobody else is left: the message is kept, and its chat hears which setting is wrong.
    let (telegram, claude, mut env) = chained(FIRST);
    nameless(&mut env, &format!("{FIRST},bedrock:"));
    env.receive(CHAT, "hello");
    claude.expect(outage());
    assert_eq!(env.wake(&["--once", "--json"]).code, 1);
    let said = sent(&telegram);
    assert!(said.last().unwrap().contains("MODEL") && said.last().unwrap().contains("safe"), "{said:?}");
    assert_eq!((env.once()["outcome"].as_str(), env.queued().len()), (Some("idle"), 1));
    env.check_sound();
}

#[test]
fn when_it_is_tried_again_is_told_of_the_chains_models_and_lies_ahead() {
    let (_telegram, claude, env) = chained(FIRST);
    env.receive(CHAT, "hello");
    claude.expect(outage());
    assert_eq!(env.wake(&["--once", "--json"]).code, 1);
    env.put_breaker("openai:other", "2026-11-21T12:40:00.000Z", "2026-11-21T12:41:00.000Z");
    let said = env.wake(&["say", "what do you make of my week?"]);
    let told = said.shown();
    assert!(told.contains("try again at ") && told.contains(":02:00") && !told.contains(":41:00"), "{told}");
}
