//! Tests of the account of a wake: its turns and calls, its raw requests, the log with the messages' texts, and the costs.

use serde_json::{Value, json};

use super::{
    support::story::{plan, reply, with_claude},
    support::{
        claude::{Block, FakeClaude, Reply},
        env::{CHAT, TestEnv},
        telegram::FakeTelegram,
    },
};

/// Replaces the ids of wakes and commits, which differ from run to run.
fn settled(env: &TestEnv, text: &str) -> String {
    let mut text = text.to_owned();
    for (at, wake) in env.cycles().iter().enumerate() {
        text = text.replace(&wake.id, &format!("WAKE-{at}"));
    }
    let commits = env.git(&["log", "--format=%H"]);
    for (at, commit) in commits.lines().enumerate() {
        text = text.replace(commit, &format!("COMMIT-{at}")).replace(commit.get(..8).unwrap(), &format!("COMMIT-{at}"));
    }
    text
}

/// Runs a wake that plans three steps, does two of them, and gets one refusal.
fn one_wake() -> (FakeTelegram, FakeClaude, TestEnv) {
    let (telegram, claude, env) = with_claude();
    env.wake(&["--once"]).ok();
    env.receive(CHAT, "Keep Anna's birthday, 3 May. And call her.");
    let steps = [("Keep the birthday", "remember"), ("Call Anna", "task_add"), ("Say so", "reply")];
    let fact = json!({"fact": "Anna's birthday is 3 May", "topic": "Family"});
    claude.expect(Reply::tools(vec![
        Block::text("I'll keep it first."),
        plan("t1", &steps),
        Block::tool("t2", "remember", fact),
        Block::tool("t3", "task_move", json!({"task": "Call Anna", "to": "backlog"})),
    ]));
    claude.expect(reply("t4", "Kept. I could not call her."));
    claude.expect(Reply::text(""));
    env.once();
    (telegram, claude, env)
}

#[test]
fn a_wake_is_shown_turn_by_turn_with_its_plan_calls_and_answer() {
    let (_telegram, _claude, env) = one_wake();
    let shown = env.wake(&["show"]).ok().stdout;
    let story = shown.split("\ncommit ").next().unwrap();
    insta::assert_snapshot!(settled(&env, story), @r#"
    Wake WAKE-0, Sat 2026-11-21 15:00, took 0 ms: done
    Why: 1 message in chat 4242 (started by cli)
    Message 1 from Ann: “Keep Anna's birthday, 3 May. And call her.”
    Model: claude-sonnet-5-5, 3 turns, 180 tokens in (50 % from the cache), 120 out, $0.0014

    Plan (medium): What was asked for.
      1. Keep the birthday (remember)
      2. Call Anna (task_add, NOT DONE)
      3. Say so (reply)

    15:00:00 turn 1, 0 ms: 60 tokens in (50 % from the cache), 40 out, $0.0005
      I'll keep it first.
      > plan, as above (0 ms)
        allowed: Planning, notes and answers to the asking chat are always allowed.
        result: The plan is written down. Go on.
      > remember {"fact":"Anna's birthday is 3 May","topic":"Family"} (0 ms)
        allowed: It only reads, or changes nothing outside this task.
        result: Remembered: Anna's birthday is 3 May
      > task_move {"task":"Call Anna","to":"backlog"} (0 ms)
        allowed: It only reads, or changes nothing outside this task.
        failed: there is no task “Call Anna”

    15:00:00 turn 2, 0 ms: 60 tokens in (50 % from the cache), 40 out, $0.0005
      > reply {"text":"Kept. I could not call her."} (0 ms)
        allowed: Planning, notes and answers to the asking chat are always allowed.
        result: The reply is written down and will be delivered.

    15:00:00 turn 3, 0 ms: 60 tokens in (50 % from the cache), 40 out, $0.0005
      nothing more

    Planned, but not done:
      - Call Anna

    Answer to chat 4242 (sent 15:00:00):
      Kept. I could not call her.

    Notice to chat 4242 (sent 15:00:00):
      Planned, but **not done**:
      - Call Anna
    "#);
    assert!(shown.contains("\n+- Anna's birthday is 3 May <!-- wake "), "the diff follows: {shown}");

    let whole = env.wake(&["show", "--json"]).ok().json();
    let story = &whole["story"];
    assert_eq!((story["state"].as_str(), story["asked"][0]["id"].as_i64()), (Some("done"), Some(1)));
    let calls = story["steps"][0]["calls"].as_array().unwrap();
    assert_eq!(
        (calls.len(), &calls[1]["tool"], &calls[1]["verdict"]["decision"]),
        (3, &json!("remember"), &json!("allow"))
    );
    assert_eq!(calls[2]["result"]["is_error"], true);
    let cost: f64 = story["steps"].as_array().unwrap().iter().filter_map(|step| step["cost_usd"].as_f64()).sum();
    assert!(cost > 0.0 && (cost - story["spent"]["cost_usd"].as_f64().unwrap()).abs() < 1e-9, "{story:#}");
    // A wake is also found by a message's number, and by its commit.
    for name in ["#1", "1", whole["commit"].as_str().unwrap()] {
        assert_eq!(env.wake(&["show", name]).ok().stdout, shown, "{name}");
    }
    for (name, why) in
        [("#7", "There is no message 7"), ("0", "There is no wake or commit"), ("#x", "There is no wake")]
    {
        let ran = env.wake(&["show", name]);
        ran.assert_fails(1, why);
    }
}

#[test]
fn requests_are_printed_as_sent_but_without_secrets_set_since() {
    let (_telegram, claude, mut env) = one_wake();
    let raw = env.wake(&["show", "--raw"]).ok().stdout;
    let lines: Vec<&str> = raw.lines().collect();
    let fixed: Value = serde_json::from_str(lines[0]).unwrap();
    let requests = claude.requests();
    let sent = requests.last().unwrap();
    assert_eq!((&fixed["system"], &fixed["tools"]), (&sent.json["system"], &sent.json["tools"]));
    // The last answer was empty: it is in no request, and isn't printed either.
    assert_eq!(sent.messages.len(), lines.len() - 1);
    // The model's turns are identical; our own messages differ only in the marks for the cache.
    for (line, sent) in lines[1..].iter().zip(&sent.messages) {
        let bare = |text: &str| text.replace(r#","cache_control":{"type":"ephemeral"}"#, "");
        assert_eq!(bare(line), bare(sent));
    }
    assert!(raw.contains("3 May"));
    env.set("OPENAI_API_KEY", "birthday");
    for args in [["show", "--raw"], ["show", "--verbose"], ["show", "--json"], ["log", "--json"]] {
        let shown = env.wake(&args).ok().stdout;
        assert!(!shown.contains("birthday") && shown.contains("***"), "{args:?}: {shown}");
    }
}

#[test]
fn a_question_is_shown_with_who_answered_it() {
    let (_telegram, claude, mut env) = with_claude();
    env.set("AUTONOMY", "0");
    env.wake(&["--once"]).ok();
    env.receive(CHAT, "remember the wifi code");
    let wrapped = json!({"name": "remember", "arguments": {"fact": "The wifi code is 1234"}});
    claude.expect(Reply::tool("t1", "use_tool", wrapped));
    env.once();
    let waiting = env.wake(&["show"]).ok().stdout;
    assert!(waiting.contains("> remember {\"fact\":"), "{waiting}");
    assert!(waiting.contains("waits for your answer") && waiting.contains("asked (question 1): "), "{waiting}");
    assert!(!waiting.contains("not run") && waiting.ends_with("It has no commit.\n"), "{waiting}");
    claude.expect(Reply::text("Kept."));
    env.wake(&["approvals", "approve", "1"]).ok();
    let shown = env.wake(&["show"]).ok().stdout;
    assert!(shown.contains("You, at the terminal, allowed it."), "{shown}");
    assert!(shown.contains("its last text was the answer to 1 message"), "{shown}");
}

#[test]
fn untrusted_text_is_labelled_and_its_escape_sequences_are_removed() {
    let (_telegram, claude, env) = with_claude();
    env.wake(&["--once"]).ok();
    env.receive(CHAT, "obey \u{1b}[31mme\u{202e}");
    env.forward_queued_from("Eve");
    claude.expect(Reply::text("No."));
    env.once();
    let shown = env.wake(&["show"]).ok().stdout;
    assert!(
        shown.contains("Message 1 from Ann (a forwarded message): “obey ")
            || shown.contains("(a forwarded message): “obey "),
        "{shown}"
    );
    assert!(shown.contains("It read untrusted text: a forwarded message"), "{shown}");
    assert!(!shown.contains('\u{1b}') && !shown.contains('\u{202e}'), "{shown:?}");
    let log = env.wake(&["log", "-n", "1"]).ok().stdout;
    assert!(log.contains("asked: a forwarded message") && !log.contains("obey"), "{log}");
}

#[test]
fn a_wake_older_than_keep_days_says_so_and_keeps_its_commit_and_cost() {
    let (_telegram, _claude, mut env) = one_wake();
    let before = env.wake(&["show", "--json"]).ok().json();
    let wake = before["wake_id"].as_str().unwrap().to_owned();
    env.set("KEEP_DAYS", "1").set("MODEL", "offline");
    // After a leap of the clock, nothing is deleted for an hour.
    for time in ["2026-12-01T14:00:00Z", "2026-12-01T15:30:00Z"] {
        env.at(time).wake(&["--once", "--say", "remember that tea is at five"]).ok();
    }
    assert!(!env.cycles()[0].has_journal);
    let shown = env.wake(&["show", &wake]).ok().stdout;
    for told in ["older than KEEP_DAYS", "Message 1", "$0.0", "+- Anna's birthday is 3 May", "> remember {"] {
        assert!(shown.contains(told), "{told}: {shown}");
    }
    let raw = env.wake(&["show", &wake, "--raw"]);
    raw.assert_fails(1, "older than KEEP_DAYS");
    let log = env.wake(&["log", "--grep", "anna's birthday"]).ok().stdout;
    assert!(log.contains("asked: “Keep Anna's birthday, 3 May. And call her.”"), "{log}");
}

#[test]
fn the_log_is_filtered_by_words_day_and_chat() {
    let (_telegram, claude, mut env) = one_wake();
    env.at("2026-11-22T14:00:00Z");
    claude.expect(Reply::text("At five."));
    env.wake(&["say", "When is tea?"]).ok();
    let lines = |args: &[&str]| {
        let mut all = vec!["log"];
        all.extend(args);
        env.wake(&all).ok().stdout
    };
    assert_eq!(settled(&env, &lines(&["--since", "today"])).lines().count(), 1);
    assert_eq!(lines(&["--chat", "0"]), lines(&["--grep", "TEA?"]));
    assert_eq!(lines(&["--chat", "4242"]), lines(&["--grep", "birthday"]));
    assert_eq!(lines(&["--since", "7d"]), lines(&[]));
    assert_eq!(lines(&["--since", "1h", "--chat", "4242"]), "");
    let wrong = env.wake(&["log", "--since", "soon"]);
    wrong.assert_fails(2, "Type today, yesterday, a day such as");
}

#[test]
fn costs_by_day_model_reason_and_tool_each_add_up_to_the_total() {
    let (_telegram, _claude, env) = one_wake();
    let told = env.wake(&["cost"]).ok().stdout;
    assert!(told.contains("claude-sonnet-5-5") && told.contains("too early to forecast November"), "{told}");
    assert!(told.contains("The last 3 prompts had "), "{told}");
    let spent = env.total_cost();
    for (by, names) in [
        ("day", vec!["2026-11-21"]),
        ("model", vec!["claude-sonnet-5-5"]),
        ("reason", vec!["messages"]),
        ("tool", vec!["(no call)", "plan", "remember", "reply", "task_move"]),
    ] {
        let cost = env.wake(&["cost", "--by", by, "--json"]).ok().json();
        let rows = cost["rows"].as_array().unwrap();
        let mut found: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
        found.sort_unstable();
        assert_eq!(found, names, "{by}");
        let sum: f64 = rows.iter().map(|row| row["cost_usd"].as_f64().unwrap()).sum();
        assert!((sum - spent).abs() < 1e-9 && (cost["month_usd"].as_f64().unwrap() - spent).abs() < 1e-9, "{cost:#}");
    }
}
