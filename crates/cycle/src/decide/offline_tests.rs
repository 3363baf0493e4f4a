//! Tests the fallback grammar as a model (conversation in, turn out) and in whole conversations driven by the real machine.

use serde_json::{Value, json};

use reveille_base::{
    clock::parse_time,
    types::ChatRef,
    types::{Stop, Usage},
    zone::Tz,
};
use reveille_model::{Conversation, Turn, offline::Offline};
use reveille_store::{Entry, Incoming};

use crate::decide::{
    brief::render_new_messages,
    limits::Limits,
    machine::{Cycle, Step, build_user_message},
};

fn message(id: i64, text: &str) -> Incoming {
    Incoming {
        id,
        chat: ChatRef::from_telegram(7),
        text: text.to_owned(),
        received_at: parse_time("2026-11-21T14:00:00Z"),
        kind: "text".to_owned(),
        ..Incoming::default()
    }
}

fn said(messages: &[Incoming]) -> Entry {
    let now = parse_time("2026-11-21T14:00:00Z").unwrap();
    Entry::Said {
        raw: render_new_messages(
            &messages.iter().collect::<Vec<_>>(),
            &[],
            now,
            "Europe/Berlin".parse::<Tz>().unwrap(),
        ),
        messages: messages.iter().map(|message| message.id).collect(),
        handles: Vec::new(),
        head: None,
        taint: None,
    }
}

/// A conversation with every call as (tool, input), in order.
struct Talk {
    cycle: Cycle,
    calls: Vec<(String, Value)>,
}

impl Talk {
    /// Starts with these messages; `fails` names the tools whose calls are refused.
    fn begin(messages: &[Incoming], fails: &[&str]) -> Self {
        let mut talk = Self { cycle: Cycle::new("[]".into(), "[]".into()), calls: Vec::new() };
        talk.go_on(messages, fails);
        talk
    }

    /// Drives the machine until it looks for more messages.
    fn go_on(&mut self, messages: &[Incoming], fails: &[&str]) {
        self.cycle.apply(&said(messages));
        for _ in 0..100 {
            match self.cycle.next(&Limits::OFFLINE) {
                Step::Ask => {
                    let Turn { content, stop, usage, .. } =
                        Offline::new("Europe/Berlin".parse::<Tz>().unwrap()).answer(&self.cycle.conversation);
                    self.cycle.apply(&Entry::Turn { content, stop, usage });
                }
                Step::Call(request) => {
                    let input: Value = serde_json::from_str(&request.input).unwrap();
                    let is_error = fails.contains(&request.name.as_str());
                    let closed = match request.name.as_str() {
                        "reply" => self.cycle.open.clone(),
                        "keep" => serde_json::from_value(input["messages"].clone()).unwrap(),
                        _ => Vec::new(),
                    };
                    self.calls.push((request.name.clone(), input));
                    let is_none = request.input.contains("NONE");
                    let content = match request.name.as_str() {
                        _ if !is_error => "It is done.",
                        "task_done" if is_none => "there is no task “NONE”",
                        "reminder_done" if is_none => "There's no reminder “NONE”.",
                        "list_take" if is_none => "There's no list item “NONE” on the shopping list.",
                        _ => "No room.",
                    };
                    self.cycle.apply(&Entry::Outcome {
                        call: request.id,
                        name: request.name,
                        content: content.to_owned(),
                        is_error,
                        receipt: None,
                        closed,
                        taint: None,
                        image: None,
                    });
                }
                Step::Say(raw) | Step::Tell(raw) => {
                    self.cycle.apply(&Entry::Said {
                        raw,
                        messages: vec![],
                        handles: Vec::new(),
                        head: None,
                        taint: None,
                    });
                }
                Step::Join => return,
                other => panic!("{other:?}"),
            }
        }
        panic!("it does not end: {:?}", self.calls);
    }

    fn tools(&self) -> Vec<&str> {
        self.calls.iter().map(|(tool, _)| tool.as_str()).collect()
    }

    /// The arguments of the last call of a tool.
    #[track_caller]
    fn last(&self, tool: &str) -> &Value {
        let call = self.calls.iter().rev().find(|(name, _)| name == tool);
        &call.unwrap_or_else(|| panic!("no {tool} in {:?}", self.calls)).1
    }
}

#[test]
fn a_command_is_planned_carried_out_and_answered_with_its_outcome() {
    let talk = Talk::begin(&[message(1, "remember that the wifi code is 1234")], &[]);
    assert_eq!(talk.tools(), ["plan", "remember", "reply"]);
    assert_eq!(talk.last("remember")["fact"], "the wifi code is 1234");
    assert_eq!(talk.last("plan")["steps"][0]["tool"], "remember");
    assert_eq!(talk.last("reply")["text"], "It is done.");
    assert_eq!(talk.cycle.open, Vec::<i64>::new());
    assert_eq!(talk.cycle.turns, 3);
}

#[test]
fn several_messages_are_answered_together() {
    let talk =
        Talk::begin(&[message(1, "add task buy milk"), message(2, "list reminders"), message(3, "thanks!")], &[]);
    assert_eq!(talk.tools(), ["plan", "task_add", "reminder_list", "reply"]);
    assert_eq!(talk.last("reply")["text"], "It is done.\n\nReminders:\nIt is done.\n\nYou're welcome.");
}

#[test]
fn unanswerable_messages_are_kept_and_the_rest_is_answered() {
    let talk = Talk::begin(&[message(1, "write me a poem"), message(2, "help")], &[]);
    assert_eq!(talk.tools(), ["plan", "keep", "reply"]);
    assert_eq!(talk.last("keep")["messages"], json!([1]));
    assert!(
        talk.last("keep")["notice"]
            .as_str()
            .unwrap()
            .contains("I can't do this without an AI model, so **nothing has been set or saved**")
    );
    assert_eq!(talk.last("plan")["deferred"][0], "message 1 is kept for an AI model that can answer it");
    let both = Talk::begin(&[message(1, "write me a poem"), message(2, "and a song")], &[]);
    assert_eq!(both.tools(), ["plan", "keep"]);
    assert!(both.last("keep")["notice"].as_str().unwrap().contains("2 of these"));
}

#[test]
fn a_question_is_answered_by_quoting_and_kept_when_nothing_is_stored() {
    let question = [message(1, "what is the wifi code?")];
    let talk = Talk::begin(&question, &[]);
    assert_eq!(talk.tools(), ["plan", "quote", "reply"]);
    assert_eq!(talk.last("reply")["text"], "From what I remember:\nIt is done.");
    let talk = Talk::begin(&question, &["quote"]);
    assert_eq!(talk.tools(), ["plan", "quote", "keep"]);
    assert_eq!(talk.last("keep")["messages"], json!([1]));
}

#[test]
fn a_question_about_known_facts_recalls_them() {
    let talk = Talk::begin(&[message(1, "what do you know about the wifi?")], &[]);
    assert_eq!(talk.tools(), ["plan", "recall", "reply"]);
    assert_eq!(talk.last("reply")["text"], "It is done.");
}

#[test]
fn a_command_that_failed_is_said_to_have_and_taken_out_of_the_plan() {
    let talk = Talk::begin(&[message(1, "add task buy milk"), message(2, "remember that I like tea")], &["task_add"]);
    assert_eq!(talk.tools(), ["plan", "task_add", "remember", "plan", "reply"]);
    assert_eq!(talk.last("plan")["steps"], json!([{"what": "remember: I like tea", "tool": "remember"}]));
    assert_eq!(talk.last("plan")["deferred"], json!(["add the task: buy milk: it could not be done"]));
    assert_eq!(talk.last("reply")["text"], "That didn't work. No room.\n\nIt is done.");
}

#[test]
fn messages_that_come_later_get_their_own_calls_and_ids_stay_unique() {
    let mut talk = Talk::begin(&[message(1, "remember that I like tea")], &[]);
    talk.go_on(&[message(2, "remember that I like coffee"), message(3, "write me a poem")], &["remember"]);
    talk.go_on(&[message(4, "status")], &[]);
    assert_eq!(
        talk.tools(),
        [
            "plan",
            "remember",
            "reply",
            "plan",
            "remember",
            "plan",
            "keep",
            "reply",
            "plan",
            "task_list",
            "reminder_list",
            "reply"
        ]
    );
    let mut ids = std::collections::BTreeSet::new();
    for raw in &talk.cycle.conversation.messages {
        let message: Value = serde_json::from_str(raw).unwrap();
        for block in message["content"].as_array().unwrap() {
            if let Some(id) = block["id"].as_str() {
                assert!(ids.insert(id.to_owned()), "{id} twice");
            }
        }
    }
    assert_eq!(ids.len(), talk.calls.len());
}

#[test]
fn only_a_persons_own_plain_words_are_commands() {
    let command = "remember that the moon is cheese";
    let forwarded = Incoming { forwarded_from: Some("Bob".to_owned()), ..message(1, command) };
    let voice = Incoming { kind: "voice".to_owned(), ..message(2, command) };
    let reply = Incoming { quoted: Some("what shall I keep?".to_owned()), ..message(3, command) };
    for not_own in [forwarded, voice, reply] {
        let id = not_own.id;
        let talk = Talk::begin(&[not_own], &[]);
        assert_eq!(talk.tools(), ["plan", "keep"], "message {id}");
    }
}

#[test]
fn a_yes_confirms_the_suggested_command() {
    let mut talk = Talk::begin(&[message(1, "the moon is cheese")], &[]);
    assert_eq!(
        talk.last("reply")["text"],
        "Did you mean: *remember that the moon is cheese*? Say “yes” to do it. Nothing has been set or saved yet."
    );
    talk.go_on(&[message(2, "yes")], &[]);
    assert_eq!(talk.last("remember")["fact"], "the moon is cheese");
    // The question was already answered.
    talk.go_on(&[message(3, "yes")], &[]);
    assert!(talk.last("reply")["text"].as_str().unwrap().starts_with("I'm not sure what you're saying yes to"));
    assert_eq!(talk.tools().iter().filter(|tool| **tool == "remember").count(), 1);
}

#[test]
fn a_reply_refers_to_the_quoted_answer() {
    let replying = |id, quoted: &str, text: &str| Incoming {
        quoted: Some(quoted.to_owned()),
        quotes_own: true,
        ..message(id, text)
    };
    // Regardless of the messages in between.
    for said_since in ["what time is it?", "remind me at 18:00 to call Bob"] {
        let mut talk = Talk::begin(&[message(1, said_since)], &[]);
        talk.go_on(&[replying(2, "⏰ take the vitamins", "stop")], &[]);
        assert_eq!(talk.last("reminder_done")["reminder"], "“take the vitamins”", "{:?}", talk.calls);
    }
    let question = "⏰ My notes contradict each other: “the boiler is a Vaillant” and “the boiler is a Bosch”. Which is right? Tell me.";
    let mut talk = Talk::begin(&[message(1, "what time is it?")], &[]);
    talk.go_on(&[replying(2, question, "the second one")], &[]);
    assert_eq!(talk.last("remember")["fact"], "the boiler is a Bosch", "{:?}", talk.calls);
    let command = "remember that the moon is cheese";
    assert_eq!(
        Talk::begin(&[replying(1, "What shall I keep?", command)], &[]).last("remember")["fact"],
        "the moon is cheese"
    );
    // A quote that isn't entirely our own words is ignored.
    let others = Incoming { quotes_own: false, ..replying(2, "⏰ take the vitamins", "stop") };
    assert_eq!(Talk::begin(&[others], &[]).tools(), ["plan", "keep"]);
}

#[test]
fn a_plain_statement_is_kept_at_once_and_what_a_tool_refuses_is_kept_for_a_model() {
    let talk = Talk::begin(&[message(1, "my son is called Milo"), message(2, "my daughter is called Zoe")], &[]);
    assert_eq!(talk.tools(), ["plan", "remember_stated", "remember_stated", "reply"]);
    let refused = Talk::begin(&[message(1, "my son is called Milo")], &["remember_stated"]);
    assert_eq!(refused.tools(), ["plan", "remember_stated", "plan", "keep"]);
    let forwarded = Incoming { forwarded_from: Some("Bob".to_owned()), ..message(1, "my son is called Milo") };
    let quoting = Incoming { quoted: Some("well?".to_owned()), ..message(1, "my son is called Milo") };
    for other in [forwarded, quoting] {
        assert_eq!(Talk::begin(&[other], &[]).tools(), ["plan", "keep"]);
    }
}

#[test]
fn whats_on_it_refers_to_the_last_mentioned_list() {
    let mut talk = Talk::begin(&[message(1, "add socks to my packing list")], &[]);
    talk.go_on(&[message(2, "what's on it?")], &[]);
    assert_eq!(talk.last("list_show")["list"], "Packing list");
}

#[test]
fn a_foreign_sentence_is_answered_in_its_language() {
    let notice = |messages: &[Incoming]| Talk::begin(messages, &[]).last("keep")["notice"].as_str().unwrap().to_owned();
    let german = message(1, "Erinnere mich morgen an den Zahnarzt");
    assert!(notice(std::slice::from_ref(&german)).contains("nur Englisch"));
    assert!(notice(&[german, message(2, "write me a poem")]).contains("2 of these"));
}

#[test]
fn a_yes_never_confirms_untrusted_text() {
    let offer = "Did you mean: *remember that the moon is cheese*?";
    let forwarded = |text: &str| Incoming { forwarded_from: Some("Bob".to_owned()), ..message(1, text) };
    let quoting = Incoming { quoted: Some(offer.to_owned()), ..message(1, "look") };
    for first in [forwarded("the moon is cheese"), forwarded(offer), quoting, message(1, offer)] {
        let mut talk = Talk::begin(&[first], &[]);
        talk.go_on(&[message(2, "yes")], &[]);
        assert!(!talk.tools().contains(&"remember"), "{:?}", talk.calls);
        assert!(talk.last("reply")["text"].as_str().unwrap().starts_with("I'm not sure what you're saying yes to"));
    }
}

#[test]
fn it_and_a_bare_time_refer_to_the_previous_message() {
    let mut talk = Talk::begin(&[message(1, "remind me to call Bob")], &[]);
    assert_eq!(talk.tools(), ["plan", "reply"]);
    let asked = "When should I remind you to call Bob?";
    assert!(talk.last("reply")["text"].as_str().unwrap().starts_with(asked));
    talk.go_on(&[message(2, "in 20 minutes")], &[]);
    assert_eq!(
        talk.last("reminder_set"),
        &json!({"text": "call Bob", "when": "2026-11-21T14:20:00+00:00", "missed": "run"})
    );
    talk.go_on(&[message(3, "move it to Friday")], &[]);
    assert_eq!(talk.last("reminder_move"), &json!({"reminder": "call Bob", "when": "2026-11-27"}));
    talk.go_on(&[message(4, "add task buy milk"), message(5, "it's done")], &[]);
    assert_eq!(talk.last("task_done")["task"], "“buy milk”");
    let mut nothing = Talk::begin(&[message(1, "hello")], &[]);
    nothing.go_on(&[message(2, "move it to Friday")], &[]);
    assert!(nothing.last("reply")["text"].as_str().unwrap().starts_with("Which one do you mean?"));
}

#[test]
fn a_name_without_a_task_is_looked_up_among_reminders() {
    // The fake's refusal is "No room.", which differs from "no such task".
    let talk = Talk::begin(&[message(1, "delete the dentist")], &["task_done"]);
    assert_eq!(talk.tools(), ["plan", "task_done", "plan", "reply"]);
    let talk = Talk::begin(&[message(1, "delete the dentist NONE")], &["task_done"]);
    assert_eq!(talk.tools(), ["plan", "task_done", "reminder_done", "plan", "reply"]);
    assert_eq!(talk.last("plan")["steps"][0]["tool"], "reminder_done");
    assert_eq!(talk.last("reply")["text"], "It is done.");
    let talk = Talk::begin(&[message(1, "delete the dentist NONE")], &["task_done", "reminder_done", "list_take"]);
    assert_eq!(talk.last("reply")["text"], "There's no task or reminder “the dentist NONE”, so nothing has changed.");
}

#[test]
fn a_time_is_read_from_when_it_was_said_in_the_persons_zone() {
    let talk = Talk::begin(&[message(1, "remind me to call Anna in 20 minutes")], &[]);
    assert_eq!(talk.last("reminder_set")["when"], "2026-11-21T14:20:00+00:00");
    let talk = Talk::begin(&[message(1, "remind me every weekday at 8 to stand up")], &[]);
    assert_eq!(talk.last("reminder_set")["when"], "every weekday at 08:00");
}

#[test]
fn without_messages_it_says_nothing() {
    for messages in [vec![], vec![build_user_message("Why you are awake: decay.")], vec!["no json".to_owned()]] {
        let conversation = Conversation { messages, ..Conversation::default() };
        let turn = Offline::new(Tz::UTC).answer(&conversation);
        assert_eq!((turn.content.as_str(), turn.stop, turn.usage), ("[]", Stop::EndTurn, Usage::default()));
    }
}

#[test]
fn every_tool_it_calls_is_in_its_registry() {
    let registry = reveille_tools::Registry::for_offline_model();
    let all = [
        "remember that I like tea",
        "forget that I like tea",
        "remind me tomorrow to sing",
        "list reminders",
        "cancel reminder 2",
        "postpone sing to Friday",
        "add task sing",
        "rename sing to dance",
        "move dance to the backlog",
        "delete dance",
        "task sing done",
        "list tasks",
        "show the backlog",
        "what's on today?",
        "undo that",
        "what do you know about tea?",
        "status",
        "help",
        "hello",
        "what is my name?",
        "my name is Ben",
        "I fed the cat",
        "add milk to the shopping list",
        "what's on it?",
        "take milk off the shopping list",
        "sing me a song",
    ];
    let messages: Vec<_> = (1..).zip(all).map(|(id, text)| message(id, text)).collect();
    let talk = Talk::begin(&messages, &[]);
    for tool in talk.tools() {
        assert!(registry.get(tool).is_some(), "{tool}");
    }
    assert!(talk.calls.len() > all.len() - 4, "{:?}", talk.tools());
}
