//! Tests of every way in which a turn can end, and of the limit on the number of turns.

use super::{
    support::story::{last, results, sent, with_claude},
    support::{
        claude::{Block, Reply},
        env::CHAT,
    },
};
use serde_json::json;

#[test]
fn a_refusal_is_the_answer_with_its_reason() {
    let (telegram, claude, env) = with_claude();
    env.receive(CHAT, "something nasty");
    claude.expect(Reply::refusal("cyber", "This would harm somebody."));
    assert_eq!(env.once()["answered"], 1);
    let said = sent(&telegram);
    assert!(said[0].contains("declined") && said[0].contains("This would harm somebody."), "{said:#?}");
    assert_eq!(env.outcome(1), "refused");
    assert!(env.memory("memory/agent-memory/episodic-memory.md").contains("Declined to answer 1 message"));
    env.check_sound();
}

#[test]
fn no_call_of_a_refused_turn_is_run() {
    let (telegram, claude, env) = with_claude();
    env.receive(CHAT, "something nasty");
    let call = Block::tool("t1", "remember", json!({"fact": "nasty"}));
    claude.expect(Reply::turn(vec![Block::text("First I"), call], "refusal"));
    env.once();
    assert_eq!(claude.requests().len(), 1);
    assert_eq!(telegram.sent().len(), 1);
    assert!(!env.memory("memory/agent-memory/semantic-memory.md").contains("nasty"));
    env.check_sound();
}

#[test]
fn a_text_that_was_cut_off_is_continued() {
    let (telegram, claude, env) = with_claude();
    env.receive(CHAT, "count to three");
    claude.expect(Reply::max_tokens(vec![Block::text("One, two, ")]));
    claude.expect(Reply::text("three."));
    env.once();
    assert!(last(&claude).last_text().contains("cut off"), "{}", last(&claude).last_text());
    assert_eq!(sent(&telegram), ["One, two, three."]);
    env.check_sound();
}

#[test]
fn a_repeatedly_cut_off_text_is_sent_as_far_as_it_came() {
    let (telegram, claude, env) = with_claude();
    env.receive(CHAT, "count to a million");
    for text in ["One, ", "two, ", "three"] {
        claude.expect(Reply::max_tokens(vec![Block::text(text)]));
    }
    env.once();
    let said = sent(&telegram);
    assert!(said[0].starts_with("One, two, three\n\n(My answer was cut off here"), "{said:#?}");
    env.check_sound();
}

#[test]
fn a_continued_text_that_ends_in_a_call_is_no_answer() {
    let (telegram, claude, env) = with_claude();
    env.receive(CHAT, "what is on my list?");
    claude.expect(Reply::max_tokens(vec![Block::text("Let me ")]));
    claude.expect(Reply::tools(vec![Block::text("look."), Block::tool("t1", "task_list", "{}")]));
    claude.expect(Reply::text("Nothing."));
    env.once();
    assert_eq!(sent(&telegram), ["Nothing."]);
    env.check_sound();
}

#[test]
fn a_call_that_was_cut_off_is_not_run() {
    let (telegram, claude, env) = with_claude();
    env.receive(CHAT, "remember two things");
    claude.expect(Reply::max_tokens(vec![
        Block::text("Both."),
        Block::tool("t1", "remember", json!({"fact": "Cats purr"})),
        Block::cut_tool("t2", "remember", "{\"fact\": \"Dogs"),
    ]));
    claude.expect(Reply::tool("t3", "remember", json!({"fact": "Dogs bark"})));
    claude.expect(Reply::text("Kept."));
    env.once();
    let told = results(&claude.requests()[1]);
    assert!(!told[0].1 && told[1].1 && told[1].0.contains("cut off"), "{told:#?}");
    let facts = env.memory("memory/agent-memory/semantic-memory.md");
    assert!(facts.contains("- Cats purr") && facts.contains("- Dogs bark") && !facts.contains("- Dogs <"), "{facts}");
    assert_eq!(sent(&telegram), ["Kept."]);
    env.check_sound();
}

#[test]
fn a_conversation_that_grew_too_long_is_folded_and_at_last_ended() {
    let (telegram, claude, env) = with_claude();
    env.receive(CHAT, "read everything");
    claude.expect(Reply::context_exceeded("So far I know this."));
    claude.expect(Reply::text("Now I know all."));
    env.once();
    assert_eq!(sent(&telegram), ["Now I know all."]);
    let anew = last(&claude);
    let folded = super::support::story::opening(&anew, "<folded");
    assert!(anew.messages.len() == 1 && folded.contains("So far I know this."), "{folded}");

    env.receive(CHAT, "read everything again");
    for _ in 0..3 {
        claude.expect(Reply::context_exceeded("So far I know this."));
    }
    env.once();
    let said = sent(&telegram).pop().unwrap();
    assert!(said.starts_with("So far I know this.") && said.contains("became too long"), "{said}");
    env.check_sound();
}

#[test]
fn a_paused_turn_is_continued_and_its_text_joined() {
    let (telegram, claude, env) = with_claude();
    env.receive(CHAT, "think long");
    claude.expect(Reply::tools(vec![Block::text("First a look."), Block::tool("t1", "task_list", "{}")]));
    claude.expect(Reply::pause_turn("The first half, "));
    claude.expect(Reply::text("the second half."));
    env.once();
    let messages = last(&claude).json["messages"].clone();
    assert_eq!(messages.as_array().unwrap().last().unwrap()["role"], "assistant");
    assert_eq!(sent(&telegram), ["The first half, the second half."]);
    env.check_sound();
}

#[test]
fn an_unknown_reason_to_stop_ends_the_turn() {
    for stop in ["a_new_reason", "stop_sequence"] {
        let (telegram, claude, env) = with_claude();
        env.receive(CHAT, "hello");
        claude.expect(Reply::turn(vec![Block::text("Hello.")], stop));
        env.once();
        assert_eq!(sent(&telegram), ["Hello."]);
        env.check_sound();
    }
}

#[test]
fn without_a_plan_thirty_rounds_are_the_limit_and_the_person_is_asked() {
    let (telegram, claude, env) = with_claude();
    env.receive(CHAT, "never stop");
    for round in 0..30 {
        claude.expect(Reply::tool(
            &format!("t{round}"),
            "remember",
            json!({"fact": format!("Round {round} was made")}),
        ));
    }
    assert_eq!(env.once()["outcome"], "parked");
    assert_eq!(claude.requests().len(), 30);
    let said = sent(&telegram);
    assert!(said[0].contains("30 rounds") && said[0].contains("medium"), "{said:#?}");
    assert_eq!(env.once()["outcome"], "idle", "nobody has answered");
}
