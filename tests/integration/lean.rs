//! Tests of a prompt's cost: its size, the share that the next wake finds in the cache, and tools grouped as verbs of one tool.

use super::{
    support::story::{last, plan, results, sent, with_claude},
    support::{
        claude::{Block, ClaudeRequest, FakeClaude, Reply},
        env::{CHAT, TestEnv},
    },
};
use serde_json::{Value, json};

/// The maximum size of the request for a "hello" on a fresh memory, in tokens of four bytes. This limit may only be lowered.
const MAX_HELLO_TOKENS: usize = 3_500;
/// The shortest prefix that Claude Sonnet keeps in its cache, in tokens.
const MIN_CACHED_TOKENS: usize = 1_024;

/// A part of a prompt, in the order of the cache. A mark after a part keeps the prompt up to there in the cache for the time `kept_for`.
struct Part {
    bytes: String,
    kept_for: Option<String>,
}

fn parts(request: &ClaudeRequest) -> Vec<Part> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let messages = list(&request.json["messages"]);
    let blocks = messages.iter().flat_map(|message| list(&message["content"]));
    let all = list(&request.json["tools"]).into_iter().chain(list(&request.json["system"])).chain(blocks);
    all.map(|mut part| {
        let mark = part.as_object_mut().unwrap().remove("cache_control");
        let kept_for = mark.map(|mark| mark["ttl"].as_str().unwrap_or("5m").to_owned());
        Part { bytes: part.to_string(), kept_for }
    })
    .collect()
}

fn tokens<'a>(parts: impl IntoIterator<Item = &'a Part>) -> usize {
    parts.into_iter().map(|part| part.bytes.len()).sum::<usize>().div_ceil(4)
}

/// The cost of the second prompt up to an hour after the first, relative to its price without a cache. Reading from the cache costs a
/// tenth of the price, writing for an hour twice the price, and writing for five minutes 1.25 times. The request's own mark keeps all of
/// it for five minutes.
fn second_costs(first: &ClaudeRequest, second: &ClaudeRequest) -> f64 {
    assert_eq!(second.json["cache_control"], json!({"type": "ephemeral"}));
    let (first, second) = (parts(first), parts(second));
    let same = first.iter().zip(&second).take_while(|(a, b)| a.bytes == b.bytes).count();
    let is_marked = |at: &usize| {
        let is_kept = |part: &Part| part.kept_for.as_deref() == Some("1h");
        is_kept(&first[*at]) && is_kept(&second[*at])
    };
    let read = (0..same).rev().find(is_marked).map_or(0, |at| at + 1);
    let read = if tokens(&second[..read]) >= MIN_CACHED_TOKENS { read } else { 0 };
    let for_an_hour = second.iter().rposition(|part| part.kept_for.is_some()).map_or(0, |at| at + 1).max(read);
    let [cheap, twice, rest] =
        [&second[..read], &second[read..for_an_hour], &second[for_an_hour..]].map(|part| tokens(part) as f64);
    (0.1 * cheap + 2.0 * twice + 1.25 * rest) / (cheap + twice + rest)
}

fn hello(env: &TestEnv, claude: &FakeClaude, words: &str) -> ClaudeRequest {
    env.receive(CHAT, words);
    claude.expect(Reply::text("Hello."));
    env.once();
    last(claude)
}

#[test]
fn a_hello_on_a_fresh_memory_is_short() {
    let (_telegram, claude, env) = with_claude();
    let request = hello(&env, &claude, "hello");
    let of: Vec<(String, usize)> = [("tools", &request.tools), ("system", &request.system)]
        .into_iter()
        .map(|(name, raw)| (name.to_owned(), raw.len()))
        .chain(
            parts(&request).iter().rev().take(4).map(|part| (part.bytes.chars().take(40).collect(), part.bytes.len())),
        )
        .collect();
    assert!(request.raw.len().div_ceil(4) < MAX_HELLO_TOKENS, "{} bytes: {of:#?}", request.raw.len());
}

#[test]
fn the_next_wake_within_the_hour_finds_the_unchanged_parts_in_the_cache() {
    let (_telegram, claude, mut env) = with_claude();
    let first = hello(&env, &claude, "hello");
    assert!(first.raw.matches("cache_control").count() <= 4);
    env.at("2026-11-21T14:40:00Z");
    let second = hello(&env, &claude, "and how are you?");
    let costs = second_costs(&first, &second);
    assert!(costs <= 0.4, "{costs}");
    // The same with a memory that has grown.
    let facts: String = (0..120).map(|n| format!("- A fact that is kept for good, number {n} of many\n")).collect();
    std::fs::write(
        env.brain().join("memory/agent-memory/semantic-memory.md"),
        format!("# Semantic memory\n\n## Home\n{facts}"),
    )
    .unwrap();
    let third = hello(&env, &claude, "hello again");
    env.at("2026-11-21T15:10:00Z");
    let fourth = hello(&env, &claude, "hello once more");
    let costs = second_costs(&third, &fourth);
    assert!(costs <= 0.4, "{costs}");
    env.check_sound();
}

/// Plays a day with calls by the tools' own names, or by groups and verbs. Returns the number of requests, and the output of `wake show`.
fn day(env: &TestEnv, claude: &FakeClaude, is_by_verb: bool) -> (usize, String) {
    let call = |id: &str, (group, verb): (&str, &str), tool: &str, mut input: Value| {
        if !is_by_verb {
            return Block::tool(id, tool, input);
        }
        input["do"] = verb.into();
        Block::tool(id, group, input)
    };
    let name = |tool: &'static str, verb: &'static str| if is_by_verb { verb } else { tool };
    let before = claude.requests().len();
    env.receive(CHAT, "Sail on Sunday, remind me, and I like tea");
    claude.expect(Reply::tools(vec![
        plan(
            "t0",
            &[
                ("Add the task", name("task_add", "tasks add")),
                ("Remind them", name("reminder_set", "reminders set")),
                ("Keep it", name("remember", "memory_update remember")),
            ],
        ),
        call("t1", ("tasks", "add"), "task_add", json!({"title": "Sail"})),
        call("t2", ("reminders", "set"), "reminder_set", json!({"text": "Sail", "when": "2026-11-22 09:00"})),
        call("t3", ("memory_update", "remember"), "remember", json!({"fact": "They like tea"})),
        call("t4", ("look_up", "tasks"), "task_list", json!({})),
    ]));
    claude.expect(Reply::text("All set."));
    env.once();
    assert!(results(&last(claude)).iter().all(|(_, is_error)| !is_error), "{:?}", results(&last(claude)));
    let shown = env.wake(&["show"]).ok().stdout;
    (claude.requests().len() - before, shown)
}

#[test]
fn a_day_by_verbs_takes_as_many_requests_and_is_shown_by_the_same_names() {
    let told = [false, true].map(|is_by_verb| {
        let (telegram, claude, env) = with_claude();
        env.wake(&["--once"]).ok();
        let (rounds, shown) = day(&env, &claude, is_by_verb);
        assert_eq!(sent(&telegram), ["All set."], "nothing is reported as not done");
        let log = env.memory("memory/agent-memory/episodic-memory.md");
        assert!(
            log.contains("Added the task “Sail” to the active tasks") && log.contains("Set the reminder “Sail”"),
            "{log}"
        );
        let cost = env.wake(&["cost", "--by", "tool"]).ok().stdout;
        assert!(cost.contains("task_add") && cost.contains("memory"), "{cost}");
        env.check_sound();
        let calls: Vec<String> = shown.lines().filter(|line| line.contains("> ")).map(str::to_owned).collect();
        (rounds, calls)
    });
    assert_eq!(told[0].0, told[1].0);
    assert!(told[0].1.iter().any(|line| line.contains("> task_add {\"title\":\"Sail\"}")), "{told:#?}");
    let without_plan =
        |calls: &[String]| calls.iter().filter(|line| !line.contains("> plan")).cloned().collect::<Vec<_>>();
    assert_eq!(without_plan(&told[0].1), without_plan(&told[1].1));
}

#[test]
fn a_waiting_call_under_either_name_is_run_after_its_approval() {
    for (name, input) in [("task_add", json!({"title": "Sail"})), ("tasks", json!({"do": "add", "title": "Sail"}))] {
        let (_telegram, claude, mut env) = with_claude();
        env.wake(&["--once"]).ok();
        env.set("AUTONOMY", "0").receive(CHAT, "sail on Sunday");
        claude.expect(Reply::tool("t1", name, input));
        env.once();
        assert_eq!(env.approval().tool, "task_add");
        assert_eq!(env.approval().action, r#"{"title":"Sail"}"#);
        claude.expect(Reply::text("It is there."));
        env.wake(&["approvals", "approve", "1"]).ok();
        assert!(env.memory("memory/project-memory/active.md").contains("## Sail"));
        env.check_sound();
    }
}
