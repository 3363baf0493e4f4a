//! Tests of cycles: plan, tools and answer over several rounds, and which texts count as an answer.

use super::support::{
    claude::{Block, FakeClaude, Reply},
    env::{CHAT, TestEnv},
    http::Gate,
    story::{commits, end_well, last, opening, plan, reply, results, sent, start_wake, wait_for_request, with_claude},
};
use serde_json::json;

#[test]
fn a_plan_tools_and_a_reply_make_one_commit() {
    let (telegram, claude, env) = with_claude();
    env.wake(&["--once"]).ok();
    let id = env.receive(CHAT, "Anna's birthday is 3 May, keep that. And what day is it?");
    let gate = Gate::default();
    claude.expect(Reply::tools(vec![
        Block::thinking("Two things."),
        plan("t1", &[("Keep Anna's birthday", "remember"), ("Say the day", "reply")]),
    ]));
    let fact = json!({"fact": "Anna's birthday is 3 May", "topic": "Family"});
    claude.expect(
        Reply::tools(vec![Block::text("I keep it first."), Block::tool("t2", "remember", fact)])
            .stalled_after(2, &gate),
    );
    claude.expect(reply("t3", "Kept. It is **Saturday**."));
    claude.expect(Reply::text("All done."));

    let wake = start_wake(&env);
    wait_for_request(&claude, 2);
    let plans = reveille_cycle::plan_file::left_over(&env.workspace()).unwrap();
    let recorder = std::fs::read_to_string(&plans[0].0).unwrap();
    assert!(recorder.contains("- Keep Anna's birthday (`remember`)"), "{recorder}");
    assert!(recorder.contains("- 1 message in chat 4242"), "{recorder}");
    assert!(!env.memory("memory/agent-memory/semantic-memory.md").contains("Anna"));
    gate.open();
    let report = end_well(wake);

    assert_eq!((&report["answered"], &report["outcome"]), (&json!(1), &json!("worked")));
    assert_eq!(report["cycle_id"], plans[0].1);
    assert_eq!(sent(&telegram), ["Kept. It is Saturday."]);
    assert_eq!(telegram.sent()[0].reply_to, Some(100));
    assert!(env.memory("memory/agent-memory/semantic-memory.md").contains("- Anna's birthday is 3 May <!-- wake "));
    assert_eq!(commits(&env), 2, "{}", env.log());
    assert_eq!(env.trailer("Wake-Id"), plans[0].1);
    assert_eq!(env.trailer("Messages"), id.to_string());
    assert_eq!(env.trailer("Model"), "claude-sonnet-5-5");
    assert_eq!(env.trailer("Tokens"), "in=40 out=160 cache-read=120 cache-write=80");
    assert_eq!(env.trailer("Cost-USD"), "0.0019");
    let entry = env.memory("memory/agent-memory/episodic-memory.md");
    assert!(entry.contains("Remembered “Anna's birthday is 3 May”"), "{entry}");
    assert!(!entry.contains("Not done"), "{entry}");
    assert_eq!(env.outcome(1), "answered");
    env.check_sound();
}

#[test]
fn the_first_message_holds_time_zone_memory_and_the_recent_exchange() {
    let (_telegram, claude, mut env) = with_claude();
    env.wake(&["--once"]).ok();
    env.receive(CHAT, "Name two rivers");
    claude.expect(Reply::text("The Rhine and the Elbe."));
    env.once();
    let first = last(&claude);
    let situation = opening(&first, "<situation");
    assert!(situation.contains("It is Saturday 2026-11-21 15:00 in Europe/Berlin (UTC+01:00)."), "{situation}");
    assert!(opening(&first, "<memory>").contains("# Active tasks"));
    assert!(!first.raw.contains("<recent_exchange>"));
    assert!(first.system.contains("Standing orders"));

    env.at("2026-11-21T14:05:00Z").receive(CHAT, "and the second one?");
    claude.expect(Reply::text("The Elbe flows to Hamburg."));
    env.once();
    let second = last(&claude);
    let recent = opening(&second, "<recent_exchange>");
    assert!(recent.contains("<said by=\"Ann\" at=\"Sat 2026-11-21 15:00\">\nName two rivers\n</said>"), "{recent}");
    assert!(
        recent.contains("<said by=\"you\" at=\"Sat 2026-11-21 15:00\">\nThe Rhine and the Elbe.\n</said>"),
        "{recent}"
    );
    assert!(recent.find("Name two").unwrap() < recent.find("The Rhine").unwrap());
    let messages = opening(&second, "<messages>");
    assert!(messages.contains("and the second one?") && !messages.contains("rivers"), "{messages}");
    assert_eq!(second.tools, first.tools);
    assert_eq!(second.system, first.system);
    env.check_sound();
}

#[test]
fn a_final_text_is_the_answer_but_text_beside_calls_is_not() {
    let (telegram, claude, env) = with_claude();
    env.receive(CHAT, "hello");
    claude.expect(Reply::tools(vec![Block::text("Let me look."), Block::tool("t1", "task_list", "{}")]));
    claude.expect(Reply::text("  Hello Ann.\n\n"));
    assert_eq!(env.once()["answered"], 1);
    assert_eq!(sent(&telegram), ["Hello Ann."]);

    // After a call of `reply`, the final text isn't sent.
    env.receive(CHAT, "hello again");
    claude.expect(reply("t1", "Hello again."));
    claude.expect(Reply::text("I have answered."));
    env.once();
    assert_eq!(sent(&telegram), ["Hello Ann.", "Hello again."]);
    env.check_sound();
}

#[test]
fn a_model_that_says_nothing_is_asked_once_more_and_then_the_message_is_kept() {
    for second in [vec![], vec![Block::thinking("Nothing to say.")]] {
        let (telegram, claude, env) = with_claude();
        env.receive(CHAT, "hello");
        claude.expect(Reply::turn(vec![], "end_turn"));
        claude.expect(Reply::turn(second, "end_turn"));
        let ran = env.wake(&["--once", "--json"]);
        assert_eq!((ran.code, &ran.json()["outcome"]), (1, &json!("failed")));
        assert!(last(&claude).last_text().contains("no answer yet"), "{}", last(&claude).last_text());
        let said = sent(&telegram);
        assert!(said[0].contains("answered twice without a word") && said[0].contains("is safe"), "{said:#?}");
        assert_eq!(env.queued().len(), 1, "only an answer takes a message from the queue");
        env.check_sound();
    }
}

#[test]
fn a_model_that_is_asked_once_more_can_still_answer() {
    let (telegram, claude, env) = with_claude();
    env.receive(CHAT, "hello");
    claude.expect(Reply::turn(vec![Block::thinking("Hm.")], "end_turn"));
    claude.expect(Reply::text("Hello."));
    env.once();
    assert_eq!(sent(&telegram), ["Hello."]);
    env.check_sound();
}

#[test]
fn wrong_calls_get_error_results_and_the_model_corrects_itself() {
    let (telegram, claude, env) = with_claude();
    env.receive(CHAT, "remember that the bin goes out on Monday");
    claude.expect(Reply::tools(vec![
        Block::tool("t1", "remember", json!({"facts": "wrong field"})),
        Block::tool("t2", "remember", json!({"fact": 7})),
        Block::tool("t3", "memorise", json!({"fact": "x"})),
        Block::tool("t4", "remember", json!({"fact": "   "})),
        Block::tool("t5", "remember", json!({"fact": "x", "colour": "red"})),
        Block::cut_tool("t6", "task_list", ""),
        Block::cut_tool("t7", "remember", "{\"fact\": \"bro"),
    ]));
    claude.expect(Reply::tool("t8", "remember", json!({"fact": "The bin goes out on Monday"})));
    claude.expect(Reply::text("Remembered."));
    env.once();
    let told = results(&claude.requests()[1]);
    let errors: Vec<bool> = told.iter().map(|(_, is_error)| *is_error).collect();
    assert_eq!(errors, [true, true, true, true, true, false, true], "{told:#?}");
    assert!(told[0].0.contains("facts"), "{told:#?}");
    assert!(told[2].0.contains("no tool named \"memorise\"") && told[2].0.contains("memory_update"), "{told:#?}");
    assert!(told[4].0.contains("colour"), "{told:#?}");
    assert_eq!(results(&claude.requests()[2]), [("Remembered: The bin goes out on Monday".to_owned(), false)]);
    assert_eq!(sent(&telegram), ["Remembered."]);
    assert_eq!(env.memory("memory/agent-memory/semantic-memory.md").matches("\n- ").count(), 1);
    env.check_sound();
}

#[test]
fn planned_steps_without_a_receipt_are_reported_and_logged_as_not_done() {
    let (telegram, claude, env) = with_claude();
    env.receive(CHAT, "move the report to the backlog and remember the gate code 99");
    claude.expect(Reply::tools(vec![plan(
        "t1",
        &[
            ("Move the report", "task_move"),
            ("Keep the gate code", "remember"),
            ("Call Bob", "phone"),
            ("Answer", "reply"),
        ],
    )]));
    claude.expect(Reply::tools(vec![
        Block::tool("t2", "task_move", json!({"task": "report", "to": "backlog"})),
        Block::tool("t3", "remember", json!({"fact": "The gate code is 99"})),
    ]));
    claude.expect(reply("t4", "All three are done."));
    claude.expect(Reply::text("Done."));
    env.once();
    assert!(results(&claude.requests()[2])[0].1, "there is no such task to move");
    assert_eq!(sent(&telegram), ["All three are done.", "Planned, but not done:\n\n• Move the report\n• Call Bob"]);
    let entry = env.memory("memory/agent-memory/episodic-memory.md");
    for line in ["Not done: Move the report", "Not done: Call Bob", "Remembered “The gate code is 99”"] {
        assert!(entry.contains(line), "{line} in {entry}");
    }
    assert!(!entry.contains("Not done: Keep"), "{entry}");
    let message = env.git(&["log", "-1", "--format=%b"]);
    assert!(message.contains("- not done: Move the report\n- not done: Call Bob"), "{message}");
    env.check_sound();
}

#[test]
fn a_message_from_the_terminal_is_answered_there() {
    let claude = FakeClaude::start();
    let mut env = TestEnv::new();
    env.think_with(&claude);
    claude.expect(reply("t1", "Hello **you**."));
    claude.expect(Reply::text("Done."));
    let ran = env.wake(&["--once", "--say", "hello"]).ok();
    assert_eq!(ran.stdout, "Hello **you**.\n");
    env.check_sound();
}

#[test]
fn a_burst_is_answered_by_one_cycle() {
    let (telegram, claude, env) = with_claude();
    let ids: Vec<i64> =
        ["buy milk", "and bread", "no wait, only bread"].iter().map(|text| env.receive(CHAT, text)).collect();
    claude.expect(Reply::text("Only bread, then."));
    assert_eq!(env.once()["answered"], 3);
    let messages = opening(&last(&claude), "<messages>");
    assert_eq!(messages.matches("<message id=").count(), 3);
    assert_eq!(telegram.sent().len(), 1);
    assert_eq!(telegram.sent()[0].reply_to, Some(102), "the answer replies to the last message");
    assert_eq!(env.trailer("Messages"), format!("{},{},{}", ids[0], ids[1], ids[2]));
    env.check_sound();
}

#[test]
fn two_chats_get_two_cycles_that_see_nothing_of_each_other() {
    let (telegram, claude, mut env) = with_claude();
    env.set("ALLOWED_CHAT_IDS", &format!("{CHAT},5555")).set("OWNER_CHAT_ID", &CHAT.to_string());
    env.receive(CHAT, "my secret plan is a surprise party");
    env.receive(5555, "what is Ann up to?");
    env.receive(CHAT, "on Sunday");
    claude.expect(Reply::text("A party on Sunday."));
    claude.expect(Reply::text("Ask her."));
    assert_eq!(env.once()["answered"], 3);
    let requests = claude.requests();
    let (hers, his) = (opening(&requests[0], "<messages>"), opening(&requests[1], "<messages>"));
    assert!(hers.contains("surprise party") && hers.contains("on Sunday") && !hers.contains("up to"), "{hers}");
    assert!(his.contains("up to") && !his.contains("party"), "{his}");
    assert!(!requests[1].raw.contains("<recent_exchange>"));
    assert_eq!(requests[1].messages.len(), 1);
    let sent: Vec<_> = telegram.sent().into_iter().map(|message| (message.chat_id, message.visible)).collect();
    assert_eq!(sent, [(CHAT, "A party on Sunday.".to_owned()), (5555, "Ask her.".to_owned())]);
    env.check_sound();
}

#[test]
fn a_message_that_comes_during_the_wake_is_answered_in_it() {
    let (telegram, claude, env) = with_claude();
    env.receive(CHAT, "name a river");
    let gate = Gate::default();
    claude.expect(Reply::text("The Rhine.").stalled_after(3, &gate));
    claude.expect(Reply::text("The Alps."));
    let wake = start_wake(&env);
    wait_for_request(&claude, 1);
    env.receive(CHAT, "and a mountain range");
    let theirs = env.receive(5555, "somebody else");
    env.keep_for_another_than("claude-sonnet-5-5", theirs);
    gate.open();
    let report = end_well(wake);
    assert_eq!(report["answered"], 2);
    let second = last(&claude);
    assert_eq!(second.messages.len(), 3, "the message joins the same conversation");
    assert!(second.last_text().contains("and a mountain range") && !second.last_text().contains("somebody"));
    let answers: Vec<_> = telegram.sent().into_iter().map(|message| (message.visible, message.reply_to)).collect();
    assert_eq!(answers, [("The Rhine.".to_owned(), Some(100)), ("The Alps.".to_owned(), Some(101))]);
    assert_eq!(env.trailer("Messages"), "1,2");
    env.check_sound();
}

#[test]
fn a_message_that_comes_while_a_tool_is_called_is_seen_with_its_result() {
    let (telegram, claude, env) = with_claude();
    env.receive(CHAT, "list my tasks and order tea");
    let gate = Gate::default();
    claude.expect(Reply::tool("t1", "task_list", json!({})).stalled_after(2, &gate));
    claude.expect(Reply::text("No tasks, and no tea then."));
    let wake = start_wake(&env);
    wait_for_request(&claude, 1);
    env.receive(CHAT, "forget the tea");
    gate.open();
    assert_eq!(end_well(wake)["answered"], 2);
    let second = last(&claude);
    assert_eq!(second.messages.len(), 3);
    assert!(!results(&second)[0].1, "{:#?}", results(&second));
    assert!(second.last_text().contains("forget the tea"), "{}", second.last_text());
    let answers: Vec<_> = telegram.sent().into_iter().map(|message| (message.visible, message.reply_to)).collect();
    assert_eq!(answers, [("No tasks, and no tea then.".to_owned(), Some(101))]);
    env.check_sound();
}

#[test]
fn a_message_that_comes_after_the_reply_does_not_count_as_answered() {
    let (telegram, claude, env) = with_claude();
    env.receive(CHAT, "name a river");
    let gate = Gate::default();
    claude.expect(reply("t1", "The Rhine."));
    claude.expect(Reply::text("Done.").stalled_after(1, &gate));
    claude.expect(Reply::text("The Alps."));
    let wake = start_wake(&env);
    wait_for_request(&claude, 2);
    env.receive(CHAT, "and a mountain range");
    gate.open();
    end_well(wake);
    assert_eq!(sent(&telegram), ["The Rhine.", "The Alps."]);
    assert_eq!(commits(&env), 2);
    env.check_sound();
}
