//! Tests the machine's steps case by case, and its guarantees over random conversations: the machine never panics, every call gets exactly
//! one result in the next message, and a journal that is cut anywhere continues as if it were whole.

use proptest::prelude::*;
use serde_json::{Value, json};

use reveille_base::types::Effect;
use reveille_policy::{Risk, Verdict};
use reveille_store::FoldAsk;
use reveille_tools::Complexity;

use crate::decide::machine::*;
use crate::decide::{fold::Window, limits::Stretch};

const LIMITS: Limits =
    Limits { background: Stretch::new(20, None), ..Limits::from_stretch(Stretch::new(12, Some(60)), 3) };

fn said(messages: &[i64]) -> Entry {
    Entry::Said {
        raw: build_user_message("hello"),
        messages: messages.to_vec(),
        handles: Vec::new(),
        head: None,
        taint: None,
    }
}

fn usage() -> Usage {
    Usage { input: 10, output: 1, ..Usage::default() }
}

fn turn(blocks: &Value, stop: Stop) -> Entry {
    Entry::Turn { content: blocks.to_string(), stop, usage: usage() }
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn call(id: &str, name: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": {"text": "x"}})
}

fn outcome(id: &str, name: &str, is_error: bool, closed: &[i64]) -> Entry {
    Entry::Outcome {
        call: id.to_owned(),
        name: name.to_owned(),
        content: format!("outcome of {id}"),
        is_error,
        receipt: Some(format!("Did {id}")),
        closed: closed.to_vec(),
        taint: None,
        image: None,
    }
}

fn answered(messages: &[i64]) -> Entry {
    Entry::Answered { messages: messages.to_vec(), receipt: "Answered 1 message".to_owned() }
}

/// A cycle with message 1 in its conversation, followed by these entries.
fn after(entries: &[Entry]) -> Cycle {
    let mut journal = vec![said(&[1]), Entry::Asked];
    journal.extend_from_slice(entries);
    Cycle::replay("[]".into(), "[]".into(), &journal)
}

fn next(entries: &[Entry]) -> Step {
    after(entries).next(&LIMITS)
}

#[track_caller]
fn answer(step: Step) -> (String, MessageOutcome) {
    match step {
        Step::Answer { text, outcome } => (text, outcome),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_new_cycle_asks_and_keeps_asking_after_a_discarded_turn() {
    assert_eq!(next(&[]), Step::Ask);
    let discarded = Entry::Discarded { why: "cut".into(), usage: usage() };
    let cycle = after(&[discarded]);
    assert_eq!(cycle.next(&LIMITS), Step::Ask);
    assert_eq!((cycle.usage, cycle.turns), (usage(), 0));
    assert_eq!(cycle.conversation.messages.len(), 1);
}

fn called(id: &str, name: &str) -> Entry {
    Entry::Called { call: id.to_owned(), name: name.to_owned(), input: "{}".to_owned(), taint: None }
}

#[test]
fn a_started_call_without_an_outcome_is_handled_separately() {
    let begun = [turn(&json!([call("a", "remember"), call("b", "reply")]), Stop::ToolUse), called("a", "remember")];
    assert!(matches!(next(&begun), Step::Again { call: ToolRequest { id, .. }, was_allowed: false } if id == "a"));
    // The other call was never started, and an outcome completes the first.
    let after_one = [&begun[..], &[outcome("a", "remember", false, &[])]].concat();
    assert!(matches!(next(&after_one), Step::Call(ToolRequest { id, .. }) if id == "b"));
    let both = [&after_one[..], &[called("b", "reply"), outcome("b", "reply", true, &[])]].concat();
    assert!(matches!(next(&both), Step::Tell(_)));
    // The second run was cut off too: it is still the same call.
    assert!(matches!(next(&[&begun[..], &[called("a", "remember")]].concat()), Step::Again { .. }));
}

#[test]
fn an_interrupted_call_is_run_again_unless_its_effect_could_happen_twice() {
    for (effect, is_run_again, is_run_again_if_approved) in [
        (Some(Effect::Read), true, false),
        (Some(Effect::Idempotent), true, false),
        (Some(Effect::Staged), true, true),
        (Some(Effect::Once), false, false),
        (None, false, false),
    ] {
        for (is_approval_used, is_run_again) in [(false, is_run_again), (true, is_run_again_if_approved)] {
            let doubt = find_doubt(effect, is_approval_used);
            assert_eq!(doubt.is_none(), is_run_again, "{effect:?}");
            assert!(doubt.is_none_or(|why| why.contains("uncertain") && why.contains("not run again")), "{effect:?}");
        }
    }
}

#[test]
fn each_stop_reason_has_its_step() {
    let spoke = |stop| next(&[turn(&json!([text("It is 7.")]), stop)]);
    let plain = ("It is 7.".to_owned(), MessageOutcome::Answered);
    assert_eq!(answer(spoke(Stop::EndTurn)), plain);
    assert_eq!(answer(spoke(Stop::StopSequence)), plain);
    assert_eq!(answer(spoke(Stop::Unknown("new".into()))), plain);
    assert_eq!(answer(spoke(Stop::ToolUse)), plain, "a tool_use stop without a call counts as a plain text");
    assert_eq!(spoke(Stop::PauseTurn), Step::Ask);
    assert!(matches!(spoke(Stop::MaxTokens), Step::Say(raw) if raw.contains("cut off")));
    let forced = Summary { text: "It is 7.".to_owned(), not_run: Vec::new(), is_forced: true };
    assert_eq!(spoke(Stop::ContextExceeded), Step::Fold(forced), "a shorter conversation may have room");
    let (said, outcome) = answer(spoke(Stop::Refusal("cyber".into())));
    assert_eq!(outcome, MessageOutcome::Refused);
    assert!(said.contains("declined") && said.contains("declined this: cyber") && !said.contains("It is 7"), "{said}");
}

#[test]
fn calls_are_run_in_order_and_their_results_go_back_in_one_message() {
    let turn = turn(&json!([text("Let me see."), call("a", "note"), call("b", "reply")]), Stop::ToolUse);
    let mut cycle = after(&[turn]);
    assert!(matches!(cycle.next(&LIMITS), Step::Call(ToolRequest { id, .. }) if id == "a"));
    cycle.apply(&outcome("a", "note", true, &[]));
    assert!(matches!(cycle.next(&LIMITS), Step::Call(ToolRequest { id, .. }) if id == "b"));
    cycle.apply(&outcome("b", "reply", false, &[1]));
    let Step::Tell(raw) = cycle.next(&LIMITS) else { panic!("{cycle:?}") };
    assert_eq!(
        serde_json::from_str::<Value>(&raw).unwrap(),
        json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": "outcome of a", "is_error": true},
            {"type": "tool_result", "tool_use_id": "b", "content": "outcome of b"},
        ]})
    );
    assert_eq!((cycle.open.as_slice(), cycle.replies), (&[][..], 1));
    let what: Vec<_> = cycle.receipts.iter().map(|receipt| receipt.what.as_deref()).collect();
    assert_eq!(what, [Some("Did b")], "a failed call leaves no receipt");
    cycle.apply(&Entry::Said { raw, messages: vec![], handles: Vec::new(), head: None, taint: None });
    assert_eq!(cycle.next(&LIMITS), Step::Ask);
}

#[test]
fn a_truncated_call_is_rejected_and_not_run() {
    let turn = turn(&json!([call("a", "note"), call("b", "note")]), Stop::MaxTokens);
    let mut cycle = after(&[turn]);
    assert!(matches!(cycle.next(&LIMITS), Step::Call(_)));
    cycle.apply(&outcome("a", "note", false, &[]));
    assert!(matches!(cycle.next(&LIMITS), Step::Reject { call: ToolRequest { id, .. }, .. } if id == "b"));
}

#[test]
fn a_turn_whose_calls_share_an_id_is_left_out_and_requested_again() {
    let twice = turn(&json!([call("a", "note"), call("a", "reply")]), Stop::ToolUse);
    let mut cycle = after(&[twice]);
    let Step::Say(raw) = cycle.next(&LIMITS) else { panic!("{cycle:?}") };
    assert!(raw.contains("None of its calls was run"));
    assert_eq!(cycle.conversation.messages.len(), 1, "the server would refuse that turn");
    cycle.apply(&Entry::Said { raw, messages: vec![], handles: Vec::new(), head: None, taint: None });
    assert_eq!(cycle.next(&LIMITS), Step::Ask);
    cycle.apply(&turn(&json!([call("b", "note")]), Stop::ToolUse));
    cycle.apply(&outcome("b", "note", false, &[]));
    let Step::Tell(raw) = cycle.next(&LIMITS) else { panic!("{cycle:?}") };
    cycle.apply(&Entry::Said { raw, messages: vec![], handles: Vec::new(), head: None, taint: None });
    cycle.apply(&turn(&json!([call("b", "note")]), Stop::ToolUse));
    assert!(matches!(cycle.next(&LIMITS), Step::Say(_)), "an id of an earlier turn is used up as well");
}

#[test]
fn a_refused_turn_with_a_call_ends_the_cycle_instead_of_asking_again() {
    let refused = turn(&json!([call("a", "note")]), Stop::Refusal(String::new()));
    let mut cycle = after(&[refused]);
    let (said, outcome) = answer(cycle.next(&LIMITS));
    assert_eq!(outcome, MessageOutcome::Refused);
    assert!(!said.contains("It said"), "{said}");
    cycle.apply(&answered(&[1]));
    assert_eq!(cycle.next(&LIMITS), Step::Finish);
}

#[test]
fn past_the_context_limit_a_shorter_conversation_continues() {
    let full = turn(&json!([call("a", "note"), call("b", "note")]), Stop::ContextExceeded);
    let mut cycle = after(&[full, outcome("a", "note", false, &[]), outcome("b", "note", true, &[])]);
    let Step::Tell(raw) = cycle.next(&LIMITS) else { panic!("{cycle:?}") };
    cycle.apply(&Entry::Said { raw, messages: vec![], handles: Vec::new(), head: None, taint: None });
    assert!(matches!(cycle.next(&LIMITS), Step::Fold(Summary { is_forced: true, .. })));
    cycle.apply(&folded(&build_user_message("folded")));
    assert_eq!(cycle.next(&LIMITS), Step::Ask);
    // If folding doesn't help, the answer lists what was done.
    for _ in 0..2 {
        cycle.apply(&turn(&json!([]), Stop::ContextExceeded));
        let Step::Fold(_) = cycle.next(&LIMITS) else { break };
        cycle.apply(&folded(&build_user_message("folded")));
    }
    let (said, _) = answer(cycle.next(&LIMITS));
    assert_eq!(said, "This conversation became too long for me to continue. Done so far:\n- Did a");
}

#[test]
fn a_conversation_without_room_fails_unless_the_model_wrote_some_text() {
    let full = |words: &str| turn(&json!([text(words)]), Stop::ContextExceeded);
    let fold = || folded(&build_user_message("folded"));
    let ended = |words: &str| next(&[full(""), fold(), full(""), fold(), full(words)]);
    assert!(matches!(ended(""), Step::Fail(why) if why.contains("too long")));
    assert!(
        matches!(ended("So far"), Step::Answer { text, .. } if text.starts_with("So far\n\nThis conversation became"))
    );
    // A turn that had room resets the count.
    let in_between = [full(""), fold(), full(""), fold(), turn(&json!([text("x")]), Stop::PauseTurn), full("")];
    assert!(matches!(next(&in_between), Step::Fold(_)));
}

#[test]
fn a_cycle_without_text_or_work_fails_and_closes_no_message() {
    let nothing = |stop: Stop| turn(&json!([{"type": "thinking", "thinking": "", "signature": "s"}]), stop);
    let go_on = || ours(build_user_message("go on"));
    let empty = [nothing(Stop::EndTurn), go_on(), nothing(Stop::Unknown("odd".into()))];
    assert!(matches!(next(&empty), Step::Fail(why) if why.contains("without a word")));
    let cut = [nothing(Stop::MaxTokens), go_on(), nothing(Stop::MaxTokens), go_on(), nothing(Stop::MaxTokens)];
    assert!(matches!(next(&cut), Step::Fail(why) if why.contains("output limit")));
    let done = [turn(&json!([call("a", "note")]), Stop::ToolUse), outcome("a", "note", false, &[]), go_on()];
    let done = [&done[..], &empty].concat();
    assert!(answer(next(&done)).0.contains("found no words"), "the answer lists the work done");
}

#[test]
fn a_truncated_text_is_continued_twice_and_then_sent_as_it_is() {
    let cut = |piece: &str| turn(&json!([text(piece)]), Stop::MaxTokens);
    let mut cycle = after(&[cut("One, ")]);
    for piece in ["two, ", "three"] {
        let Step::Say(raw) = cycle.next(&LIMITS) else { panic!("{cycle:?}") };
        cycle.apply(&Entry::Said { raw, messages: vec![], handles: Vec::new(), head: None, taint: None });
        assert_eq!(cycle.next(&LIMITS), Step::Ask);
        cycle.apply(&cut(piece));
    }
    let (said, _) = answer(cycle.next(&LIMITS));
    assert!(said.starts_with("One, two, three\n\n(My answer was cut off here"), "{said}");
}

#[test]
fn a_text_is_joined_only_with_the_text_it_continues() {
    let go_on = Entry::Said {
        raw: build_user_message("go on"),
        messages: vec![],
        handles: Vec::new(),
        head: None,
        taint: None,
    };
    let texts = |entries: &[Entry]| answer(next(entries)).0;
    let end = |words: &str| turn(&json!([text(words)]), Stop::EndTurn);
    let paused = turn(&json!([text("Half, ")]), Stop::PauseTurn);
    assert_eq!(texts(&[paused, end("and half.")]), "Half, and half.");
    let cut = turn(&json!([text("Half, ")]), Stop::MaxTokens);
    assert_eq!(texts(&[cut.clone(), go_on.clone(), end("and half.")]), "Half, and half.");
    // A later turn after a continuation starts a new text.
    let calling = turn(&json!([text("and half."), call("a", "note")]), Stop::ToolUse);
    let results =
        Entry::Said { raw: render_results(&[]), messages: vec![], handles: Vec::new(), head: None, taint: None };
    let did = outcome("a", "note", false, &[]);
    assert_eq!(texts(&[cut, go_on, calling, did, results, end("Anew.")]), "Anew.");
}

#[test]
fn a_text_answers_the_open_messages_and_then_queued_messages_join() {
    let mut cycle = after(&[turn(&json!([text("Yes.")]), Stop::EndTurn)]);
    assert_eq!(cycle.open, [1]);
    cycle.apply(&answered(&[1]));
    assert_eq!((cycle.open.len(), cycle.replies), (0, 1));
    assert_eq!(cycle.next(&LIMITS), Step::Join);
    cycle.apply(&said(&[2, 3]));
    assert_eq!((cycle.open.as_slice(), cycle.messages.as_slice()), (&[2, 3][..], &[1, 2, 3][..]));
    assert_eq!(cycle.next(&LIMITS), Step::Ask);
    cycle.apply(&turn(&json!([text("And yes.")]), Stop::EndTurn));
    assert_eq!(answer(cycle.next(&LIMITS)).0, "And yes.", "the first answer isn't said again");
}

#[test]
fn a_silent_model_is_asked_once_and_then_the_cycle_fails() {
    let mut cycle = after(&[turn(&json!([]), Stop::EndTurn)]);
    assert_eq!(cycle.conversation.messages.len(), 1, "an empty turn has no place in a conversation");
    let Step::Say(raw) = cycle.next(&LIMITS) else { panic!("{cycle:?}") };
    assert!(raw.contains("no answer yet"));
    cycle.apply(&Entry::Said { raw, messages: vec![], handles: Vec::new(), head: None, taint: None });
    cycle.apply(&turn(&json!([{"type": "thinking", "thinking": "…", "signature": "s"}]), Stop::EndTurn));
    assert!(matches!(cycle.next(&LIMITS), Step::Fail(_)));
    cycle.apply(&said(&[2]));
    cycle.apply(&turn(&json!([]), Stop::EndTurn));
    assert!(matches!(cycle.next(&LIMITS), Step::Say(_)), "a new message gets its own chance");
}

/// Plays a round of one call whose result differs from all others.
fn take_round(cycle: &mut Cycle, round: u32) {
    assert_eq!(cycle.next(&LIMITS), Step::Ask, "round {round}");
    // Unanswered requests don't count as rounds.
    cycle.apply(&Entry::Asked);
    cycle.apply(&Entry::Asked);
    let id = format!("c{round}");
    cycle.apply(&turn(&json!([call(&id, "note")]), Stop::ToolUse));
    cycle.apply(&outcome(&id, "note", round > 0, &[]));
    let Step::Tell(raw) = cycle.next(&LIMITS) else { panic!("{cycle:?}") };
    cycle.apply(&Entry::Said { raw, messages: vec![], handles: Vec::new(), head: None, taint: None });
}

/// Plays a round in which the model calls `plan`.
fn plan_round(cycle: &mut Cycle, id: &str, complexity: &str) {
    assert_eq!(cycle.next(&LIMITS), Step::Ask);
    let input = json!({"understood": id, "complexity": complexity});
    cycle.apply(&turn(&json!([{"type": "tool_use", "id": id, "name": "plan", "input": input}]), Stop::ToolUse));
    cycle.apply(&outcome(id, "plan", false, &[]));
    let Step::Tell(raw) = cycle.next(&LIMITS) else { panic!("{cycle:?}") };
    cycle.apply(&Entry::Said { raw, messages: vec![], handles: Vec::new(), head: None, taint: None });
}

/// Returns the question of a cycle that has reached a limit, and checks that the cycle then waits for the answer.
#[track_caller]
fn ask_whether_to_go_on(cycle: &mut Cycle) -> ToolRequest {
    let Step::Limit(question) = cycle.next(&LIMITS) else { panic!("{cycle:?}") };
    cycle.apply(&judged(&question.id, Decision::Ask));
    assert_eq!(cycle.next(&LIMITS), Step::Await(question.clone()));
    question
}

#[test]
fn at_the_limit_of_rounds_a_person_is_asked_and_each_yes_grants_as_many_again() {
    let mut cycle = after(&[]);
    for yes in 1..4 {
        for round in 0..12 {
            take_round(&mut cycle, 100 * yes + round);
        }
        let question = ask_whether_to_go_on(&mut cycle);
        assert_eq!((question.id, question.name.as_str()), (format!("go_on/{yes}"), "go_on"));
        assert_eq!(question.input, r#"{"more":"12 rounds or 60 s of work"}"#);
        cycle.apply(&decided("go_on/9", true));
        assert!(matches!(cycle.next(&LIMITS), Step::Await(_)), "the answer to another question doesn't count");
        cycle.apply(&decided(&format!("go_on/{yes}"), true));
    }
    assert_eq!(cycle.next(&LIMITS), Step::Ask);
}

#[test]
fn a_no_ends_a_cycle_with_a_report_of_its_work() {
    let mut cycle = after(&[]);
    (0..12).for_each(|round| take_round(&mut cycle, round));
    cycle.apply(&Entry::Worked { ms: 7_999 });
    let question = ask_whether_to_go_on(&mut cycle);
    let denied = Entry::Decided { call: question.id, is_approved: false, why: "You said no.".to_owned() };
    cycle.apply(&denied);
    assert_eq!(
        answer(cycle.next(&LIMITS)).0,
        "I stopped after 12 rounds, 7 s of work. You said no. Done so far:\n- Did c0"
    );
    cycle.apply(&answered(&[1]));
    assert_eq!(cycle.next(&LIMITS), Step::Finish);
    // A decision is final.
    cycle.apply(&decided("go_on/1", true));
    assert_eq!(cycle.next(&LIMITS), Step::Finish);
}

#[test]
fn working_time_is_limited_too_and_a_yes_restarts_it() {
    let mut cycle = after(&[Entry::Worked { ms: 59_999 }]);
    take_round(&mut cycle, 0);
    cycle.apply(&Entry::Worked { ms: 100_000 });
    let question = ask_whether_to_go_on(&mut cycle);
    cycle.apply(&decided(&question.id, true));
    take_round(&mut cycle, 1);
    cycle.apply(&Entry::Worked { ms: 59_999 });
    take_round(&mut cycle, 2);
    cycle.apply(&Entry::Worked { ms: 1 });
    assert!(matches!(cycle.next(&LIMITS), Step::Limit(_)));
}

#[test]
fn once_the_time_is_over_a_slow_call_waits_for_approval_and_a_reply_does_not() {
    let mut cycle =
        after(&[turn(&json!([call("t1", "bash"), call("t2", "bash"), call("t3", "reply")]), Stop::ToolUse)]);
    let Step::Call(first) = cycle.next(&LIMITS) else { panic!("{:?}", cycle.next(&LIMITS)) };
    assert_eq!(cycle.check_call(&first, &LIMITS), None);
    cycle.apply(&called("t1", "bash"));
    cycle.apply(&outcome("t1", "bash", false, &[]));
    cycle.apply(&Entry::Worked { ms: 60_000 });
    let Step::Call(second) = cycle.next(&LIMITS) else { panic!("{:?}", cycle.next(&LIMITS)) };
    let Some(Step::Limit(question)) = cycle.check_call(&second, &LIMITS) else { panic!("it is not asked") };
    cycle.apply(&judged(&question.id, Decision::Ask));
    assert_eq!(cycle.check_call(&second, &LIMITS), Some(Step::Await(question.clone())));
    let (mut yes, mut no) = (cycle.clone(), cycle);
    yes.apply(&decided(&question.id, true));
    assert_eq!((yes.check_call(&second, &LIMITS), yes.next(&LIMITS)), (None, Step::Call(second.clone())));
    no.apply(&decided(&question.id, false));
    assert!(matches!(no.check_call(&second, &LIMITS), Some(Step::Reject { .. })));
    // The calls get their results, and the cycle ends.
    no.apply(&outcome("t2", "bash", true, &[]));
    no.apply(&outcome("t3", "reply", false, &[]));
    let Step::Tell(results) = no.next(&LIMITS) else { panic!("{:?}", no.next(&LIMITS)) };
    no.apply(&Entry::Said { raw: results, messages: Vec::new(), handles: Vec::new(), head: None, taint: None });
    assert!(answer(no.next(&LIMITS)).0.contains("I stopped after"));
}

#[test]
fn rounds_are_checked_only_between_turns() {
    let mut cycle = after(&[]);
    (0..11).for_each(|round| take_round(&mut cycle, round));
    cycle.apply(&turn(&json!([call("last", "bash")]), Stop::ToolUse));
    let Step::Call(last) = cycle.next(&LIMITS) else { panic!("{:?}", cycle.next(&LIMITS)) };
    assert_eq!(cycle.check_call(&last, &LIMITS), None);
}

#[test]
fn a_plan_is_raised_once_and_never_restarts_the_count() {
    let mut cycle = after(&[]);
    take_round(&mut cycle, 0);
    plan_round(&mut cycle, "p1", "quick");
    assert_eq!(cycle.meter.complexity(), Complexity::Quick);
    plan_round(&mut cycle, "p2", "complex");
    plan_round(&mut cycle, "p3", "background");
    plan_round(&mut cycle, "p4", "medium");
    assert_eq!(cycle.meter.complexity(), Complexity::Complex, "neither raised twice nor lowered");
    // Three of the twelve rounds since the first plan are used.
    (0..9).for_each(|round| take_round(&mut cycle, 10 + round));
    ask_whether_to_go_on(&mut cycle);
    assert_eq!(after(&[]).meter.complexity(), Complexity::Medium, "without a plan");
}

#[test]
fn a_background_plan_limits_rounds_but_not_time() {
    let mut cycle = after(&[]);
    plan_round(&mut cycle, "p", "background");
    for round in 0..20 {
        cycle.apply(&Entry::Worked { ms: 3_600_000 });
        take_round(&mut cycle, round);
    }
    let question = ask_whether_to_go_on(&mut cycle);
    assert_eq!(question.input, r#"{"more":"20 rounds"}"#);
}

#[test]
fn no_call_of_a_model_can_pose_as_the_question_whether_to_continue() {
    let mut cycle = after(&[turn(&json!([call("go_on/1", "remember")]), Stop::ToolUse)]);
    assert!(matches!(cycle.next(&LIMITS), Step::Say(raw) if raw.contains("None of its calls was run")));
    cycle = after(&[turn(&json!([call("a", "go_on")]), Stop::ToolUse)]);
    assert!(
        matches!(cycle.next(&LIMITS), Step::Call(ToolRequest { id, .. }) if id == "a"),
        "the call is tried, and its result says that there is no such tool"
    );
}

/// A turn of one call, and its outcome.
fn did(id: &str, name: &str, input: &str, content: &str) -> [Entry; 2] {
    let content_of_turn = format!(r#"[{{"type":"tool_use","id":"{id}","name":"{name}","input":{input}}}]"#);
    let Entry::Outcome { receipt, closed, taint, image, .. } = outcome(id, name, false, &[]) else { panic!() };
    let told = Entry::Outcome {
        call: id.to_owned(),
        name: name.to_owned(),
        content: content.to_owned(),
        is_error: false,
        receipt,
        closed,
        taint,
        image,
    };
    [Entry::Turn { content: content_of_turn, stop: Stop::ToolUse, usage: usage() }, told]
}

#[test]
fn the_same_call_with_the_same_result_three_times_ends_a_cycle_and_is_explained() {
    let said_results = Entry::Said {
        raw: build_user_message("results"),
        messages: vec![],
        handles: Vec::new(),
        head: None,
        taint: None,
    };
    let three = |calls: [(&str, &str, &str); 3]| {
        let mut cycle = after(&[]);
        for (n, (name, input, content)) in calls.into_iter().enumerate() {
            did(&format!("c{n}"), name, input, content).iter().for_each(|entry| cycle.apply(entry));
            if n < 2 {
                cycle.apply(&said_results);
            }
        }
        cycle
    };
    let same = (r"look", r#"{"a":1,"b":[2]}"#, "nothing");
    for other in [("seek", same.1, same.2), (same.0, r#"{"a":1,"b":[3]}"#, same.2), (same.0, same.1, "something")] {
        assert!(matches!(three([same, other, same]).next(&LIMITS), Step::Tell(_)), "{other:?}");
    }
    let mut cycle = three([same, (same.0, r#" { "b": [2], "a": 1 }"#, same.2), same]);
    let (said, _) = answer(cycle.next(&LIMITS));
    insta::assert_snapshot!(said, @r#"
    I stopped because I was going round in circles: I made the same call 3 times with the same result (`look {"a":1,"b":[2]}`). Done so far:
    - Did c0
    - Did c1
    - Did c2
    "#);
    let mut silent = cycle.clone();
    silent.open.clear();
    assert!(matches!(silent.next(&LIMITS), Step::Answer { .. }), "the person is told even if no message is open");
    cycle.apply(&answered(&[1]));
    assert_eq!(cycle.next(&LIMITS), Step::Finish);
}

#[test]
fn a_call_repeated_after_a_new_message_does_not_count_as_a_loop() {
    let mut cycle = after(&[]);
    for n in 0..4 {
        did(&format!("c{n}"), "look", "{}", "nothing").iter().for_each(|entry| cycle.apply(entry));
        cycle.apply(&said(&[i64::from(n) + 2]));
    }
    assert_eq!(cycle.next(&LIMITS), Step::Ask);
}

#[test]
fn the_last_accepted_plan_counts() {
    let planned =
        |id: &str, what: &str| json!({"type": "tool_use", "id": id, "name": "plan", "input": {"understood": what}});
    let turn = turn(&json!([planned("a", "one"), planned("b", "two"), planned("c", "three")]), Stop::ToolUse);
    let cycle = after(&[
        turn,
        outcome("a", "plan", false, &[]),
        outcome("b", "plan", false, &[]),
        outcome("c", "plan", true, &[]),
    ]);
    assert_eq!(cycle.plan.unwrap().understood, "two");
}

fn stop() -> impl Strategy<Value = Stop> {
    prop_oneof![
        3 => Just(Stop::ToolUse),
        2 => Just(Stop::EndTurn),
        1 => Just(Stop::MaxTokens),
        1 => Just(Stop::ContextExceeded),
        1 => Just(Stop::StopSequence),
        1 => Just(Stop::PauseTurn),
        1 => "[a-z]{0,5}".prop_map(Stop::Refusal),
        1 => "[a-z]{1,5}".prop_map(Stop::Unknown),
    ]
}

/// A block of a turn; ids collide now and then.
fn block() -> impl Strategy<Value = Value> {
    prop_oneof![
        "[a-z .]{0,8}".prop_map(|words| text(&words)),
        Just(text("NOTHING TO KEEP")),
        Just(json!({"type": "thinking", "thinking": "", "signature": "s"})),
        (0..60_u32, prop::sample::select(vec!["note", "reply", "plan"]))
            .prop_map(|(id, name)| call(&format!("c{id}"), name)),
        (0..60_u32).prop_map(|id| json!({"type": "tool_use", "id": format!("c{id}"), "name": "note",
                                         "input": {"INVALID_JSON": "{\"a\":"}})),
    ]
}

fn random_turn() -> impl Strategy<Value = Entry> {
    (prop::collection::vec(block(), 0..5), stop()).prop_map(|(blocks, stop)| turn(&Value::Array(blocks), stop))
}

fn random_entry() -> impl Strategy<Value = Entry> {
    prop_oneof![
        random_turn(),
        ("[ab]", any::<bool>()).prop_map(|(call, is_approved)| decided(&call, is_approved)),
        ("[ab]").prop_map(|call| judged(&call, Decision::Ask)),
        ("\\PC{0,20}", stop()).prop_map(|(content, stop)| Entry::Turn { content, stop, usage: usage() }),
        (any::<bool>(), prop::collection::vec(0..9_i64, 0..3)).prop_map(|(is_json, messages)| Entry::Said {
            raw: if is_json { build_user_message("hm") } else { "no json".into() },
            messages,
            handles: Vec::new(),
            head: None,
            taint: None
        }),
        Just(Entry::Asked),
        (0..70_000_u64).prop_map(|ms| Entry::Worked { ms }),
        (0..4_u32, any::<bool>()).prop_map(|(n, is_yes)| decided(&format!("go_on/{n}"), is_yes)),
        (0..4_u32).prop_map(|n| judged(&format!("go_on/{n}"), Decision::Ask)),
        (0..60_u32, any::<bool>()).prop_map(|(id, is_error)| outcome(&format!("c{id}"), "plan", is_error, &[1])),
        Just(answered(&[1, 2])),
        Just(Entry::Verified { not_done: vec![] }),
        prop::sample::select(vec![asked(FoldAsk::Flush), asked(FoldAsk::Summary), folded("no json")]),
    ]
}

fn judged(call: &str, decision: Decision) -> Entry {
    let verdict = Verdict { reasons: Vec::new(), ..Verdict::new(Risk::Dangerous, decision, "") };
    Entry::Judged { call: call.to_owned(), verdict }
}

fn decided(call: &str, is_approved: bool) -> Entry {
    Entry::Decided { call: call.to_owned(), is_approved, why: "no".to_owned() }
}

#[test]
fn a_call_that_needs_approval_runs_only_after_a_yes_and_only_once() {
    let calls = json!([call("toolu_1", "tell"), call("toolu_2", "note")]);
    let mut cycle = Cycle::replay("[]".into(), "[]".into(), &[said(&[1]), turn(&calls, Stop::ToolUse)]);
    let Step::Call(first) = cycle.next(&LIMITS) else { panic!() };
    cycle.apply(&judged(&first.id, Decision::Ask));
    assert_eq!(cycle.next(&LIMITS), Step::Await(first.clone()), "asking for the next step changes nothing");
    let mut denied = cycle.clone();
    denied.apply(&decided(&first.id, false));
    assert_eq!(denied.next(&LIMITS), Step::Reject { call: first.clone(), why: "no".to_owned() });
    cycle.apply(&decided(&first.id, true));
    assert_eq!(cycle.next(&LIMITS), Step::Allowed(first.clone()));
    cycle.apply(&called(&first.id, &first.name));
    assert_eq!(
        cycle.next(&LIMITS),
        Step::Again { call: first.clone(), was_allowed: true },
        "after an interruption its effect is in doubt"
    );
    cycle.apply(&outcome(&first.id, "tell", false, &[]));
    assert!(matches!(cycle.next(&LIMITS), Step::Call(second) if second.id == "toolu_2"));
}

#[test]
fn a_cycle_never_forgets_the_origins_of_untrusted_text() {
    let mut cycle = Cycle::replay("[]".into(), "[]".into(), &[said(&[1])]);
    assert_eq!((cycle.taints.len(), cycle.conversation.is_tainted), (0, false));
    let forward = Entry::Said {
        raw: build_user_message("look"),
        messages: vec![2],
        handles: Vec::new(),
        head: None,
        taint: Some("a forward".to_owned()),
    };
    cycle.apply(&forward);
    cycle.apply(&said(&[3]));
    cycle.apply(&forward);
    assert_eq!(cycle.taints, ["a forward"]);
    assert!(cycle.conversation.is_tainted, "the model client learns of the taint");
}

/// Limits under which any growth of the conversation is folded.
const FOLDING: Limits = Limits { window: Some(Window::for_model(10)), ..LIMITS };

/// Plays a whole cycle against a model that makes these turns, and returns its journal.
///
/// The first two questions whether to continue are approved and the third is denied, so a model that never ends meets every limit.
fn play(turns: impl Iterator<Item = Entry>, joins: &[i64]) -> (Vec<Entry>, Cycle) {
    play_within(&LIMITS, turns, joins)
}

fn play_within(limits: &Limits, mut turns: impl Iterator<Item = Entry>, joins: &[i64]) -> (Vec<Entry>, Cycle) {
    let mut journal = vec![said(&[1])];
    let mut cycle = Cycle::replay("[]".into(), "[]".into(), &journal);
    let mut joins = joins.iter();
    // Some calls run, some are approved after a question, some are denied.
    let (mut n_asked, mut n_limits) = (0, 0);
    for step in 0..2_000 {
        let mut entries = Vec::new();
        match cycle.next(limits) {
            Step::Call(request) if step % 3 == 0 => entries.push(judged(&request.id, Decision::Ask)),
            Step::Limit(request) => entries.push(judged(&request.id, Decision::Ask)),
            Step::Await(request) if request.name == GO_ON => {
                n_limits += 1;
                entries.push(decided(&request.id, n_limits <= 2));
            }
            Step::Await(request) => {
                n_asked += 1;
                entries.push(decided(&request.id, n_asked % 2 == 1));
            }
            Step::Allowed(request) => {
                entries.push(called(&request.id, &request.name));
                entries.push(outcome(&request.id, &request.name, false, &[]));
            }
            Step::Ask => {
                check_conversation(&cycle.conversation.messages);
                entries.push(Entry::Asked);
                entries.push(turns.next().unwrap_or_else(|| turn(&json!([text("The end.")]), Stop::EndTurn)));
                entries.push(Entry::Worked { ms: 4_000 });
            }
            Step::Call(request) | Step::Again { call: request, .. } => {
                entries.push(called(&request.id, &request.name));
                let closed = if request.name == "reply" { cycle.open.clone() } else { Vec::new() };
                entries.push(outcome(&request.id, &request.name, false, &closed));
            }
            Step::Reject { call, .. } => entries.push(outcome(&call.id, &call.name, true, &[])),
            Step::Say(raw) => entries.push(ours(raw)),
            Step::Tell(raw) => {
                let ask = cycle.fold_ask(limits, &raw);
                entries.push(ours(raw));
                entries.extend(ask.map(|ask| Entry::FoldAsked { ask, tokens: 0 }));
            }
            Step::Fold(summary) => entries.push(folded(&build_user_message(&summary.text))),
            Step::Answer { .. } => entries.push(answered(&cycle.open)),
            // The real program keeps the messages in the queue and ends the cycle.
            Step::Fail(_) => {
                assert!(!cycle.open.is_empty());
                entries.push(answered(&cycle.open));
            }
            Step::Join => match joins.next() {
                Some(id) => entries.push(said(&[*id])),
                None => return (journal, cycle),
            },
            Step::Finish => return (journal, cycle),
        }
        for entry in entries {
            cycle.apply(&entry);
            journal.push(entry);
        }
    }
    panic!("the cycle does not end: {journal:#?}");
}

/// A user message the machine wrote.
fn ours(raw: String) -> Entry {
    Entry::Said { raw, messages: vec![], handles: Vec::new(), head: None, taint: None }
}

fn folded(raw: &str) -> Entry {
    Entry::Folded { raw: raw.to_owned(), messages: 1, before: 96_000, after: 10_000 }
}

fn asked(ask: FoldAsk) -> Entry {
    Entry::FoldAsked { ask, tokens: 96_000 }
}

/// Checks that each call of a turn has exactly one result in the following message, and that ids are unique.
fn check_conversation(messages: &[String]) {
    let ids = |raw: &str, kind: &str, field: &str| -> Vec<String> {
        let message: Value = serde_json::from_str(raw).unwrap();
        let blocks = message["content"].as_array().unwrap().clone();
        assert!(!blocks.is_empty(), "an empty message is refused");
        let of_kind = blocks.iter().filter(|block| block["type"] == kind);
        of_kind.map(|block| block[field].as_str().unwrap().to_owned()).collect()
    };
    let mut all = std::collections::BTreeSet::new();
    let mut wanted = Vec::new();
    for raw in messages {
        assert_eq!(ids(raw, "tool_result", "tool_use_id"), wanted, "in {messages:#?}");
        wanted = ids(raw, "tool_use", "id");
        assert!(wanted.iter().all(|id| all.insert(id.clone())), "an id twice in {messages:#?}");
    }
    assert_eq!(wanted, [""; 0], "the last calls have no results in {messages:#?}");
}

proptest! {
    #[test]
    fn no_sequence_of_entries_panics(entries in prop::collection::vec(random_entry(), 0..40)) {
        let mut cycle = Cycle::new("[]".into(), "[]".into());
        for entry in &entries {
            cycle.apply(entry);
            let _step = cycle.next(&LIMITS);
        }
    }

    #[test]
    fn every_request_is_a_valid_conversation_and_every_message_is_answered(
        turns in prop::collection::vec(random_turn(), 0..12), joins in prop::sample::select(vec![vec![], vec![2, 3]])
    ) {
        let (_, cycle) = play(turns.into_iter(), &joins);
        prop_assert_eq!(cycle.open, Vec::<i64>::new());
    }

    #[test]
    fn a_folded_conversation_is_valid_too_and_every_message_is_answered(
        turns in prop::collection::vec(random_turn(), 0..12), joins in prop::sample::select(vec![vec![], vec![2, 3]])
    ) {
        let (journal, cycle) = play_within(&FOLDING, turns.into_iter(), &joins);
        prop_assert_eq!(&cycle.open, &Vec::<i64>::new());
        // Before each folding the model wrote a note, said that there is nothing to keep, or was asked twice. A full window folds
        // without waiting for that.
        let (mut is_flushed, mut is_full, mut asks) = (false, false, 0);
        for entry in &journal {
            match entry {
                Entry::Outcome { name, is_error: false, .. } => is_flushed |= name == "note",
                Entry::Turn { content, stop, .. } => {
                    is_flushed |= join_text(content).contains("NOTHING TO KEEP");
                    is_full = *stop == Stop::ContextExceeded;
                }
                Entry::FoldAsked { ask: FoldAsk::Flush, .. } => {
                    asks += 1;
                    prop_assert!(asks <= 2, "{journal:#?}");
                }
                Entry::Folded { .. } => {
                    prop_assert!(std::mem::take(&mut is_flushed) || is_full || asks == 2, "{journal:#?}");
                    asks = 0;
                }
                _ => {}
            }
        }
    }

    #[test]
    fn a_journal_cut_anywhere_continues_as_if_it_were_whole(
        turns in prop::collection::vec(random_turn(), 0..8), cut in any::<prop::sample::Index>(),
        limits in prop::sample::select(vec![LIMITS, FOLDING])
    ) {
        let (journal, whole) = play_within(&limits, turns.into_iter(), &[2]);
        let cut = cut.index(journal.len() + 1);
        let mut resumed = Cycle::replay("[]".into(), "[]".into(), &journal[..cut]);
        for entry in &journal[cut..] {
            let again = resumed.clone();
            prop_assert_eq!(again.next(&limits), resumed.next(&limits));
            resumed.apply(entry);
        }
        prop_assert_eq!(resumed, whole);
    }
}

proptest! {
    // There are 480 such models, and playing one takes long, so every test run samples a few.
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_model_that_never_ends_is_stopped_by_the_limits(
        calls in prop::collection::vec(prop::sample::select(vec!["note", "reply", "plan"]), 1..5),
        complexity in prop::sample::select(vec!["quick", "medium", "complex", "background"])
    ) {
        let endless = (0..).map(|n| {
            let calls = calls.iter().enumerate().map(|(at, name)| {
                let input = json!({"understood": format!("{n}"), "complexity": complexity});
                json!({"type": "tool_use", "id": format!("{n}-{at}"), "name": name, "input": input})
            });
            turn(&Value::Array(calls.collect()), Stop::ToolUse)
        });
        let (_, cycle) = play(endless, &[2, 3]);
        prop_assert_eq!(&cycle.open, &Vec::<i64>::new());
        // Three stretches: before the plan, and after each of two approvals.
        prop_assert!(cycle.turns <= 12 + 3 * 20, "{} turns", cycle.turns);
    }
}

/// A cycle that made a call, received its result, and then received this folding request.
fn asked_for(ask: FoldAsk) -> Cycle {
    let calling = turn(&json!([text("Let me look."), call("a", "bash")]), Stop::ToolUse);
    after(&[calling, outcome("a", "bash", false, &[]), ours(build_user_message("results")), asked(ask)])
}

#[test]
fn folding_requests_follow_results_and_the_summary_comes_after_a_written_note() {
    let limits = Limits { window: Some(Window::for_model(100_000)), ..LIMITS };
    let long = |calls: &Value, tokens| {
        let usage = Usage { cache_read: tokens, ..Usage::default() };
        Entry::Turn { content: calls.to_string(), stop: Stop::ToolUse, usage }
    };
    let first = turn(&json!([call("a", "bash")]), Stop::ToolUse);
    let mut cycle = after(&[first, outcome("a", "bash", false, &[]), ours(build_user_message("results"))]);
    for (id, name, tokens, ask) in [
        ("b", "bash", 84_000, None),
        ("c", "bash", 86_000, Some(FoldAsk::Flush)),
        ("d", "bash", 96_000, Some(FoldAsk::Flush)),
        ("e", "note", 96_500, Some(FoldAsk::Summary)),
    ] {
        cycle.apply(&long(&json!([call(id, name)]), tokens));
        cycle.apply(&outcome(id, name, false, &[]));
        let Step::Tell(raw) = cycle.next(&limits) else { panic!("{cycle:?}") };
        assert_eq!(cycle.fold_ask(&limits, &raw), ask, "{id}");
        assert_eq!(cycle.fold_ask(&LIMITS, &raw), None, "a model that manages its own conversations isn't asked");
        cycle.apply(&ours(raw));
        cycle.apply(&ask.map_or(Entry::Asked, asked));
    }
}

#[test]
fn a_memory_lookup_does_not_answer_the_flush_request() {
    for (receipt, ask) in [(None, FoldAsk::Flush), (Some("Edited the document"), FoldAsk::Summary)] {
        let mut cycle = asked_for(FoldAsk::Flush);
        cycle.apply(&turn(&json!([call("b", "memory")]), Stop::ToolUse));
        let mut done = outcome("b", "memory", false, &[]);
        if let Entry::Outcome { receipt: told, .. } = &mut done {
            *told = receipt.map(str::to_owned);
        }
        cycle.apply(&done);
        let Step::Tell(raw) = cycle.next(&FOLDING) else { panic!("{cycle:?}") };
        assert_eq!(cycle.fold_ask(&FOLDING, &raw), Some(ask));
    }
}

#[test]
fn a_summary_is_no_answer_and_begins_a_new_conversation_in_the_same_cycle() {
    let mut cycle = asked_for(FoldAsk::Summary);
    cycle.apply(&turn(&json!([text("The file is /srv/a.")]), Stop::EndTurn));
    let summary = Summary { text: "The file is /srv/a.".to_owned(), not_run: Vec::new(), is_forced: false };
    assert_eq!(cycle.next(&LIMITS), Step::Fold(summary.clone()), "asking for the next step changes nothing");
    assert_eq!(cycle.next(&LIMITS), Step::Fold(summary));
    let before = cycle.clone();
    cycle.apply(&folded(&build_user_message("anew")));
    assert_eq!(cycle.conversation.messages, [build_user_message("anew")]);
    assert_eq!(cycle.next(&LIMITS), Step::Ask);
    assert_eq!((&cycle.open, &cycle.receipts, cycle.turns), (&before.open, &before.receipts, before.turns));
    assert_eq!((cycle.meter.taken, &cycle.taints), (before.meter.taken, &before.taints));
    cycle.apply(&turn(&json!([call("a", "note")]), Stop::ToolUse));
    assert!(matches!(cycle.next(&LIMITS), Step::Say(_)), "ids of the old conversation's calls stay used up");
    cycle.apply(&ours(build_user_message("again")));
    cycle.apply(&turn(&json!([text("It is in /srv/a.")]), Stop::EndTurn));
    assert_eq!(
        answer(cycle.next(&LIMITS)).0,
        "It is in /srv/a.",
        "the old conversation's text isn't part of the answer"
    );
}

#[test]
fn calls_made_in_place_of_a_summary_are_not_run() {
    let mut beside = asked_for(FoldAsk::Summary);
    beside.apply(&turn(&json!([text("So far."), call("b", "bash")]), Stop::ToolUse));
    assert!(matches!(beside.next(&LIMITS), Step::Fold(Summary { not_run, .. }) if not_run == ["bash"]));
    let mut cycle = asked_for(FoldAsk::Summary);
    cycle.apply(&turn(&json!([call("b", "bash")]), Stop::ToolUse));
    let Step::Reject { call: request, why } = cycle.next(&FOLDING) else { panic!("{cycle:?}") };
    assert!(why.contains("not run"), "{why}");
    cycle.apply(&outcome(&request.id, "bash", true, &[]));
    let Step::Tell(raw) = cycle.next(&FOLDING) else { panic!("{cycle:?}") };
    assert_eq!(cycle.fold_ask(&FOLDING, &raw), Some(FoldAsk::Summary));
    cycle.apply(&ours(raw));
    cycle.apply(&asked(FoldAsk::Summary));
    cycle.apply(&turn(&json!([call("c", "bash")]), Stop::ToolUse));
    let without = Summary { text: String::new(), not_run: vec!["bash".to_owned()], is_forced: false };
    assert_eq!(cycle.next(&FOLDING), Step::Fold(without), "the second time, it is folded without a summary");
}

#[test]
fn an_answer_to_a_message_that_arrived_meanwhile_is_no_summary() {
    let mut cycle = asked_for(FoldAsk::Summary);
    cycle.apply(&turn(&json!([call("b", "bash")]), Stop::ToolUse));
    cycle.apply(&outcome("b", "bash", true, &[]));
    cycle.apply(&said(&[2]));
    cycle.apply(&turn(&json!([text("I stop it."), call("c", "bash")]), Stop::ToolUse));
    assert!(matches!(cycle.next(&FOLDING), Step::Call(request) if request.id == "c"), "{cycle:?}");
    cycle.apply(&outcome("c", "bash", false, &[]));
    let Step::Tell(raw) = cycle.next(&FOLDING) else { panic!("{cycle:?}") };
    assert_eq!(
        cycle.fold_ask(&FOLDING, &raw),
        Some(FoldAsk::Summary),
        "after the message, the summary is requested again"
    );
}

#[test]
fn an_empty_or_truncated_summary_is_requested_again_and_then_accepted() {
    for (text_so_far, stop) in [("", Stop::EndTurn), ("", Stop::MaxTokens), ("The file is", Stop::MaxTokens)] {
        let mut cycle = asked_for(FoldAsk::Summary);
        let cut_off = turn(&json!([text(text_so_far)]), stop);
        cycle.apply(&cut_off);
        let Step::Tell(raw) = cycle.next(&FOLDING) else { panic!("{cycle:?}") };
        assert_eq!(cycle.fold_ask(&FOLDING, &raw), Some(FoldAsk::Summary));
        cycle.apply(&ours(raw));
        cycle.apply(&asked(FoldAsk::Summary));
        cycle.apply(&cut_off);
        let taken = Summary { text: text_so_far.to_owned(), not_run: Vec::new(), is_forced: false };
        assert_eq!(cycle.next(&FOLDING), Step::Fold(taken));
    }
}

#[test]
fn nothing_to_keep_is_no_answer_to_the_person() {
    let mut cycle = asked_for(FoldAsk::Flush);
    cycle.apply(&turn(&json!([text("NOTHING TO KEEP.")]), Stop::EndTurn));
    assert!(matches!(cycle.next(&LIMITS), Step::Tell(raw) if raw.contains("Go on")));
    let mut cycle = asked_for(FoldAsk::Flush);
    cycle.apply(&turn(&json!([text("It is in /srv/a.")]), Stop::EndTurn));
    assert_eq!(answer(cycle.next(&LIMITS)).0, "It is in /srv/a.", "any other text is an answer");
    let unasked = next(&[turn(&json!([text("NOTHING TO KEEP")]), Stop::EndTurn)]);
    assert_eq!(answer(unasked).0, "NOTHING TO KEEP");
}

#[test]
fn a_refusal_answers_no_folding_request() {
    for ask in [FoldAsk::Flush, FoldAsk::Summary] {
        let mut cycle = asked_for(ask);
        cycle.apply(&turn(&json!([text("NOTHING TO KEEP")]), Stop::Refusal("no".to_owned())));
        assert_eq!(answer(cycle.next(&LIMITS)).1, MessageOutcome::Refused);
    }
}
