//! How far a cycle goes by itself: rounds, time, circles and money. At each end its person is asked or told, and nothing is lost.

use reveille_base::{
    redact::Redactor,
    types::{ApprovalAnswer, Stop, Usage},
};
use reveille_config::Config;
use reveille_cycle::context::{Context, Terminal, WakeOutcome};
use reveille_model::{Conversation, Model, Progress, Turn, TurnFuture};

use super::{
    approvals::{press, question},
    support::story::{end_well, last, results, sent, start_wake, wait_for_request, with_claude},
    support::{
        claude::{Block, FakeClaude, Reply},
        env::{CHAT, NOW, TestEnv, eventually},
        http::Gate,
        telegram::FakeTelegram,
    },
};
use rustix::process::Signal;
use serde_json::json;

const SEMANTIC: &str = "memory/agent-memory/semantic-memory.md";

fn plan(complexity: &str) -> Reply {
    let steps =
        [json!({"what": "Keep them", "tool": "remember"}), json!({"what": "Sort the tasks", "tool": "task_add"})];
    let plan = json!({"understood": "Keep ten facts.", "steps": steps, "complexity": complexity});
    Reply::tool("plan", "plan", plan)
}

fn keep(n: usize) -> Reply {
    Reply::tool(&format!("t{n}"), "remember", json!({ "fact": format!("Fact number {n}") }))
}

/// A cycle that has planned quick work, has taken its ten rounds of it, and asks.
fn at_the_limit() -> (FakeTelegram, FakeClaude, TestEnv) {
    let (telegram, claude, env) = with_claude();
    telegram.number_updates_from(2_000);
    env.receive(CHAT, "keep these facts");
    claude.expect(plan("quick"));
    for n in 1..=10 {
        claude.expect(keep(n));
    }
    assert_eq!(env.once()["outcome"], "parked");
    assert_eq!(claude.requests().len(), 11, "the plan isn't counted, and nothing is asked beyond the limit");
    (telegram, claude, env)
}

fn questions(telegram: &FakeTelegram) -> usize {
    telegram.sent().iter().filter(|message| !message.buttons.is_empty()).count()
}

fn facts(env: &TestEnv) -> usize {
    env.memory(SEMANTIC).matches("Fact number").count()
}

/// Something else has cost so much.
fn spend(env: &TestEnv, at: &str, usd: f64) {
    env.spend(at, usd);
}

#[test]
fn at_a_limit_a_person_is_asked_and_a_yes_lets_it_go_on() {
    let (telegram, claude, env) = at_the_limit();
    let asked = question(&telegram);
    for words in [
        "Shall I continue?",
        "I have taken 11 rounds",
        "my limit for quick work",
        "Remembered “Fact number 10”",
        "Sort the tasks",
        "If you allow it, I may take 10 rounds or 60 s of work more.",
        "If you don't answer, I won't do it.",
    ] {
        assert!(asked.visible.contains(words), "{words} is missing in {}", asked.visible);
    }
    assert_eq!((env.once()["outcome"].as_str(), facts(&env)), (Some("idle"), 0), "nobody has answered");
    assert_eq!(press(&telegram, &env, (CHAT, CHAT, asked.message_id, &asked.buttons[0])), "Allowed, once.");
    claude.expect(keep(11));
    claude.expect(Reply::text("All of them are kept."));
    assert_eq!(env.once()["answered"], 1);
    assert_eq!(facts(&env), 11);
    assert_eq!(last(&claude).messages.len(), 25, "the conversation goes on as it was");
    assert_eq!(env.count_used_approvals(), 1);
    let kinds: Vec<String> = env.steps_with("go_on/1").into_iter().map(|step| step.kind).collect();
    assert_eq!(kinds, ["judged", "decided"]);
    assert_eq!(env.once()["outcome"], "idle");
    env.check_sound();
}

#[test]
fn a_yes_grants_the_same_amount_again_and_then_it_is_asked_anew() {
    let (telegram, claude, env) = at_the_limit();
    let asked = question(&telegram);
    press(&telegram, &env, (CHAT, CHAT, asked.message_id, &asked.buttons[0]));
    for n in 11..=20 {
        claude.expect(keep(n));
    }
    assert_eq!(env.once()["outcome"], "parked");
    assert_eq!((claude.requests().len(), questions(&telegram)), (21, 2));
}

#[test]
fn a_no_ends_it_with_what_it_has() {
    let (telegram, claude, env) = at_the_limit();
    let denied = env.wake(&["approvals", "deny", "1"]);
    assert_eq!(denied.code, 0, "{denied:?}");
    assert_eq!((claude.requests().len(), facts(&env)), (11, 10), "what was done stays");
    let said = sent(&telegram);
    assert!(said[1].contains("You said to stop.") && said[1].contains("Fact number 3"), "{said:#?}");
    assert!(said[2].contains("not done") && said[2].contains("Sort the tasks"), "{said:#?}");
    assert!(env.queued().is_empty());
    assert_eq!(env.once()["outcome"], "idle");
    env.check_sound();
}

#[test]
fn no_answer_in_time_is_a_no() {
    let (telegram, _claude, mut env) = at_the_limit();
    env.at("2026-11-22T13:59:00Z");
    assert_eq!(env.once()["outcome"], "idle");
    env.at("2026-11-22T14:00:00Z").once();
    let said = sent(&telegram);
    assert!(said[1].contains("had no answer in time"), "{said:#?}");
    assert_eq!((facts(&env), env.approval().state.as_str()), (10, "expired"));
    env.check_sound();
}

#[test]
fn a_wake_that_is_killed_at_a_limit_asks_once_and_a_changed_question_grants_nothing() {
    let (telegram, _claude, env) = at_the_limit();
    env.cut_off_cycles();
    assert_eq!(env.once()["outcome"], "idle");
    assert_eq!(questions(&telegram), 1);
    let asked_at = env.store().approvals().find_approval(1).unwrap().unwrap().asked_at.unwrap();
    assert!(env.store().approvals_mut().decide_approval(1, ApprovalAnswer::Yes, asked_at).unwrap());
    env.replace_in_actions("10", "100");
    env.once();
    let said = sent(&telegram);
    assert!(said[1].contains("isn't what I had asked"), "{said:#?}");
    env.check_sound();
}

#[test]
fn working_time_is_counted_over_wakes_and_bounded() {
    let (telegram, claude, env) = with_claude();
    env.receive(CHAT, "keep this");
    claude.expect(keep(1));
    claude.expect(Reply::text("Kept.").stalled_after(1, &Gate::default()));
    let wake = start_wake(&env);
    wait_for_request(&claude, 2);
    wake.signal(Signal::TERM);
    wake.end();
    let worked: i64 = env.steps("worked").iter().map(|step| step.field("ms").as_i64().unwrap()).sum();
    // Without a plan it is medium work, of five minutes.
    let minutes_5 = 5 * 60 * 1_000 - worked;
    env.put_step(&json!({"kind": "worked", "ms": minutes_5}), NOW);
    assert_eq!(env.once()["outcome"], "parked");
    let asked = question(&telegram).visible;
    assert!(
        asked.contains("I have taken 1 round, 5 min of work") && asked.contains("limit for medium work"),
        "{asked}"
    );
    assert_eq!(claude.requests().len(), 2);
}

#[test]
fn a_mind_that_goes_round_in_circles_is_stopped_and_its_person_told_how() {
    let (telegram, claude, env) = with_claude();
    env.receive(CHAT, "what is on my list? And cats purr");
    claude.expect(keep(1));
    for n in 2..=4 {
        claude.expect(Reply::tools(vec![
            Block::tool(&format!("t{n}"), "task_list", "{}"),
            Block::tool(&format!("u{n}"), "remember", json!({ "fact": format!("Fact number {n}") })),
        ]));
    }
    assert_eq!(env.once()["answered"], 1);
    let said = sent(&telegram);
    assert!(
        said.len() == 1 && said[0].contains("the same call 3 times") && said[0].contains("task_list {}"),
        "{said:#?}"
    );
    assert!(said[0].contains("Fact number 1"), "{said:#?}");
    assert_eq!(facts(&env), 3, "what it did by then is kept, and nothing is done after");
    assert_eq!(env.once()["outcome"], "idle");
    env.check_sound();
}

#[test]
fn the_owner_is_told_of_circles_even_when_all_is_answered() {
    let (telegram, claude, env) = with_claude();
    env.receive(CHAT, "look at my list");
    claude.expect(Reply::tool("r", "reply", json!({"text": "I look."})));
    for n in 1..=3 {
        claude.expect(Reply::tool(&format!("t{n}"), "task_list", "{}"));
    }
    env.once();
    let said = sent(&telegram);
    assert!(said.len() == 2 && said[1].contains("going round in circles"), "{said:#?}");
    env.check_sound();
}

#[test]
fn what_a_killed_request_may_have_cost_stays_counted_and_shown() {
    let (_telegram, claude, env) = with_claude();
    env.receive(CHAT, "hello");
    claude.expect(Reply::text("Hello.").stalled_after(0, &Gate::default()));
    let wake = start_wake(&env);
    wait_for_request(&claude, 1);
    // It was set aside before the request left, and nothing has been told of it.
    let set_aside = env.reserved()[0].cost_usd;
    assert!(set_aside > 0.16, "{set_aside}: less than the longest answer");
    wake.signal(Signal::KILL);
    wake.end();
    let status = env.health(&["status"]).ok().stdout;
    assert!(status.contains(&format!("{set_aside:.2} of it set aside for a request under way or cut off")), "{status}");
    claude.expect(Reply::text("Hello."));
    assert_eq!(end_well(start_wake(&env))["answered"], 1);
    assert_eq!(env.ledger().len(), 2);
    let booked = env.settled()[0].cost_usd;
    assert!(booked > 0.0 && booked < 0.01, "{booked}");
    let spent = env.health(&["status", "--json"]).ok().json();
    assert!((spent["reserved_usd"].as_f64().unwrap() - set_aside).abs() < 1e-9, "{spent}");
    assert!((spent["spent_today_usd"].as_f64().unwrap() - set_aside - booked).abs() < 1e-9, "{spent}");
    env.check_sound();
}

#[test]
fn a_request_that_is_cut_off_costs_what_was_told_of_it_by_then() {
    for is_killed in [true, false] {
        let (_telegram, claude, env) = with_claude();
        env.receive(CHAT, "hello");
        claude.expect(Reply::text("Hello.").stalled_after(4, &Gate::default()));
        let wake = start_wake(&env);
        wait_for_request(&claude, 1);
        eventually("what was told is written down", || {
            env.ledger().iter().map(|charge| charge.input).max() == Some(10)
        });
        if is_killed {
            wake.signal(Signal::KILL);
        } else {
            env.wake(&["stop"]).ok();
        }
        wake.end();
        let cost = env.total_cost();
        assert!(cost > 0.0 && cost < 0.01, "{cost}");
        let (reserved, discarded): (bool, bool) = (env.ledger()[0].is_reserved, env.ledger()[0].is_discarded);
        assert_eq!((reserved, discarded), (is_killed, !is_killed));
        env.wake(&["resume"]).ok();
        claude.expect(Reply::text("Hello."));
        assert_eq!(end_well(start_wake(&env))["answered"], 1);
        env.check_sound();
    }
}

#[test]
fn a_request_that_was_stopped_before_it_left_costs_nothing() {
    let (_telegram, claude, mut env) = with_claude();
    env.once();
    // It takes connections and never says a word: nothing can be sent before a handshake.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    env.set("ANTHROPIC_BASE_URL", &format!("https://{}", silent.local_addr().unwrap())).receive(CHAT, "hello");
    let wake = start_wake(&env);
    let _connection = silent.accept().unwrap();
    assert_eq!(env.reserved().len(), 1);
    env.wake(&["stop"]).ok();
    wake.end();
    assert_eq!(env.ledger().len(), 0);
    env.set("ANTHROPIC_BASE_URL", &claude.url()).wake(&["resume"]).ok();
    claude.expect(Reply::text("Hello."));
    assert_eq!(end_well(start_wake(&env))["answered"], 1);
    env.check_sound();
}

#[test]
fn a_request_that_might_pass_the_cap_is_not_sent() {
    let (telegram, claude, mut env) = with_claude();
    env.once();
    // Some cents are left, less than a request may cost.
    spend(&env, NOW, 4.95);
    env.receive(CHAT, "hello");
    assert_eq!(env.wake(&["--once"]).code, 1);
    assert_eq!(env.once()["outcome"], "idle", "it is not tried again and again");
    assert_eq!(claude.connections(), 0);
    assert_eq!(env.ledger().len(), 1);
    assert_eq!(env.steps("asked").len(), 0);
    let said = sent(&telegram);
    assert!(said.len() == 1 && said[0].contains("Today's budget") && said[0].contains("tomorrow"), "{said:#?}");
    // Raised, it goes on at once.
    env.set("DAILY_BUDGET_USD", "6");
    claude.expect(Reply::text("Hello."));
    assert_eq!(env.once()["answered"], 1);
    env.check_sound();
}

#[test]
fn who_was_answered_in_the_middle_of_work_hears_that_the_rest_of_it_waits_for_the_budget() {
    let (telegram, claude, mut env) = with_claude();
    env.once();
    env.receive(CHAT, "look into the tea");
    let gate = Gate::default();
    claude.expect(Reply::tool("r", "reply", json!({"text": "I look into it."})).stalled_after(2, &gate));
    let wake = start_wake(&env);
    wait_for_request(&claude, 1);
    spend(&env, NOW, 4.9);
    gate.open();
    wake.end();
    assert_eq!(env.once()["outcome"], "idle", "it is not tried again and again");
    let waits = |text: &&String| {
        text.starts_with("Today's budget has $") && text.contains("I'll continue it tomorrow, or once you raise it.")
    };
    assert_eq!(sent(&telegram).iter().filter(waits).count(), 1, "{:#?}", sent(&telegram));
    // The next day it goes on where it was; a day that has no room again is told of again.
    env.at("2026-11-21T23:01:00Z");
    spend(&env, "2026-11-21T23:00:30.000Z", 4.9);
    env.wake(&["--once"]);
    assert_eq!(sent(&telegram).iter().filter(waits).count(), 2, "{:#?}", sent(&telegram));
    env.at("2026-11-22T23:01:00Z");
    claude.expect(Reply::text("Tea is in the attic."));
    assert_eq!(env.once()["outcome"], "worked");
    assert_eq!(sent(&telegram).iter().filter(|text| *text == "I look into it.").count(), 1, "{:#?}", sent(&telegram));
    env.check_sound();
}

#[test]
fn a_budget_that_no_request_fits_into_says_so_and_promises_nothing() {
    let (telegram, claude, mut env) = with_claude();
    env.set("DAILY_BUDGET_USD", "0.01").receive(CHAT, "hello");
    env.wake(&["--once"]);
    env.at("2026-11-22T14:00:00Z").wake(&["--once"]);
    assert_eq!(env.once()["outcome"], "idle");
    let said = sent(&telegram);
    assert!(
        said.len() == 1 && said[0].contains("more than I may spend in a day (DAILY_BUDGET_USD is 0.01)"),
        "{said:#?}"
    );
    assert_eq!((claude.connections(), env.queued().len()), (0, 1));
    // Nothing of it is spent, and nobody says so.
    let checked = env.health(&["check"]).stdout;
    for part in
        ["the next call may cost up to $", "but only $0.01 of today's budget is left", "or set DAILY_BUDGET_USD to "]
    {
        assert!(checked.contains(part), "{part} in {checked}");
    }
    assert!(!checked.contains("budget is spent"), "{checked}");
}

#[test]
fn the_months_budget_holds_over_days_and_ends_with_the_persons_month() {
    let (telegram, claude, mut env) = with_claude();
    env.set("MONTHLY_BUDGET_USD", "20").once();
    spend(&env, "2026-11-03T12:00:00.000Z", 20.0);
    env.receive(CHAT, "explain black tea");
    env.once();
    let said = sent(&telegram);
    assert!(said.len() == 1 && said[0].contains("This month's budget"), "{said:#?}");
    assert!(said[0].contains("MONTHLY_BUDGET_USD") && said[0].contains("when the next month begins"), "{said:#?}");
    let status = env.health(&["status"]).ok().stdout;
    assert!(status.contains("0.00 of 5.00 USD today, 20.00 of 20.00 this month"), "{status}");
    assert!(status.contains("not used until next month"), "{status}");
    // Each day its first message is answered in words.
    env.at("2026-11-22T14:00:00Z").receive(CHAT, "and green tea");
    env.once();
    env.receive(CHAT, "are you there?");
    assert_eq!(env.once()["outcome"], "idle");
    let said = sent(&telegram);
    assert!(said.len() == 2 && said[1].contains("This month's budget"), "{said:#?}");
    // Still November in Berlin, then December.
    env.at("2026-11-30T22:59:00Z");
    assert_eq!(env.once()["outcome"], "idle");
    env.at("2026-11-30T23:01:00Z");
    claude.expect(Reply::text("Hello."));
    assert_eq!(env.once()["answered"], 2);
    let said = sent(&telegram);
    assert!(said[2].contains("an older message of yours") && said[2].contains("“are you there?”"), "{said:#?}");
    assert_eq!(said[3..], ["Hello."]);
    env.check_sound();
}

/// A mind that plans work in the background, takes one more turn a wake, and is silent then.
struct Slow {
    turns: std::cell::Cell<u32>,
    until: std::cell::Cell<u32>,
    complexity: &'static str,
}

impl Model for Slow {
    fn name(&self) -> &str {
        "claude-sonnet-5-5"
    }

    fn most_usd(&self, _: &Conversation) -> f64 {
        0.0
    }

    fn cost_usd(&self, _: &Usage) -> f64 {
        0.0
    }

    fn request_turn<'a>(&'a self, _: &'a Conversation, _: &'a Progress) -> TurnFuture<'a> {
        if self.turns.get() >= self.until.get() {
            return Box::pin(std::future::pending());
        }
        let n = self.turns.replace(self.turns.get() + 1);
        let call = match n {
            0 => {
                let plan = json!({"understood": "Keep them.", "complexity": self.complexity});
                json!({"type": "tool_use", "id": "plan", "name": "plan", "input": plan})
            }
            n => {
                let fact = json!({ "fact": format!("Fact number {n}") });
                json!({"type": "tool_use", "id": format!("t{n}"), "name": "remember", "input": fact})
            }
        };
        let content = json!([call]).to_string();
        let turn = Turn { content, stop: Stop::ToolUse, usage: Usage::default(), cost_usd: None, request_id: None };
        Box::pin(std::future::ready(Ok(turn)))
    }
}

#[test]
fn work_in_the_background_takes_as_many_wakes_as_bring_it_further() {
    for (complexity, is_gone_on_with) in [("background", true), ("complex", false)] {
        let env = TestEnv::new();
        env.wake(&["--once"]).ok();
        env.receive(0, "keep facts for hours");
        let sources = [
            ("WORKSPACE_DIR", env.workspace().display().to_string()),
            ("MODEL", "claude-sonnet-5-5".to_owned()),
            ("ANTHROPIC_API_KEY", "sk-ant-none".to_owned()),
            ("TIMEZONE", "UTC".to_owned()),
            ("QUIET_HOURS", "none".to_owned()),
            ("REFLECT_AT", "none".to_owned()),
        ];
        let sources = sources.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let mut config = Config::from_sources(&sources, None, Some("UTC")).unwrap();
        config.wake_timeout = std::time::Duration::from_secs(1);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let clock = reveille_base::clock::FixedClock(reveille_base::clock::parse_time(NOW).unwrap());
        let (redactor, (_stopper, stop)) = (Redactor::new(&config.secrets()), tokio::sync::watch::channel(false));
        let model = Slow { turns: 0.into(), until: 0.into(), complexity };
        let context = Context {
            version: reveille::VERSION,
            config: &config,
            clock: &clock,
            model: &model,
            channel: None,
            redactor: &redactor,
            stop: &stop,
            at_work: &|| {},
            terminal: Terminal::Later,
            is_turn: false,
            stand_in: None,
        };
        let wake = || {
            let mut store = env.store();
            runtime.block_on(reveille_cycle::run_wake(context, &mut store, "test")).unwrap()
        };
        // One more than a cycle has tries.
        for turns in 1..=4 {
            model.until.set(turns + 1);
            wake();
        }
        let given_up = env.cycles_in("abandoned").len();
        assert_eq!(given_up == 0, is_gone_on_with, "{complexity}");
        if is_gone_on_with {
            // A wake that brings it no further is one of its tries.
            assert_eq!(wake().outcome, WakeOutcome::Failed);
            assert!(env.cycle().was_cut_off);
        }
    }
}

#[test]
fn a_mind_that_asks_again_and_again_under_another_plan_is_asked_about_all_the_same() {
    let (telegram, claude, env) = with_claude();
    env.receive(CHAT, "keep this");
    for n in 0..31 {
        let complexity = ["quick", "medium", "complex"][(n % 3).min(1)];
        let plan = json!({"understood": format!("Plan {n}"), "complexity": complexity});
        claude.expect(Reply::tool(&format!("p{n}"), "plan", plan));
    }
    assert_eq!(env.once()["outcome"], "parked");
    assert!(question(&telegram).visible.contains("limit for medium work"));
    assert_eq!(results(&last(&claude)).len(), 1);
}

#[test]
fn what_has_no_room_for_one_chat_makes_no_other_wait() {
    const BOB: i64 = 5555;
    const CAM: i64 = 6666;
    let (telegram, claude, mut env) = with_claude();
    env.set("ALLOWED_CHAT_IDS", &format!("{CHAT},{BOB},{CAM}"));
    env.once();
    // What has been said at such length may cost more than is left of the day; a short question doesn't.
    spend(&env, NOW, 4.7);
    for _ in 0..4 {
        env.receive(CHAT, &"a long story ".repeat(2_300));
    }
    env.receive(BOB, "a short question");
    env.receive(CAM, "another one");
    claude.expect(Reply::text("A short answer."));
    claude.expect(Reply::text("Another answer."));
    let ran = env.wake(&["--once", "--json"]);
    // The wake says that it left something behind, after it has answered the others.
    assert_eq!((ran.code, ran.json()["answered"].as_u64()), (1, Some(2)), "{ran:?}");
    let said: Vec<(i64, String)> = telegram.sent().into_iter().map(|sent| (sent.chat_id, sent.visible)).collect();
    assert_eq!(said.len(), 3, "{said:#?}");
    assert!(said.iter().any(|(chat, text)| *chat == BOB && text == "A short answer."), "{said:#?}");
    assert!(said.iter().any(|(chat, text)| *chat == CAM && text == "Another answer."), "{said:#?}");
    assert!(said.iter().any(|(chat, text)| *chat == CHAT && text.contains("Today's budget")), "{said:#?}");
    assert_eq!(
        (env.once()["outcome"].as_str(), env.queued().len()),
        (Some("idle"), 4),
        "it is not tried again and again"
    );
    let status = env.health(&["status"]).ok().stdout;
    assert!(status.contains("too small for the next request of 1 chat"), "{status}");
    // The next day has room for it.
    env.at("2026-11-21T23:01:00Z");
    claude.expect(Reply::text("A long one."));
    assert_eq!(env.once()["answered"], 4);
    env.check_sound();
}

#[test]
fn a_step_that_waits_for_the_budget_in_one_conversation_is_begun_in_no_other() {
    let (_telegram, claude, mut env) = with_claude();
    env.once();
    spend(&env, NOW, 4.2);
    let task = "# Active tasks\n\n## Tax return\n\n- touched: 2026-11-21\n- at: 2026-11-21 15:00\n";
    env.write_memory("memory/project-memory/active.md", task);
    env.git(&["commit", "-qam", "A task"]);
    for _ in 0..4 {
        env.receive(CHAT, &"a long story ".repeat(2_300));
    }
    // What is left then is enough for something short.
    claude.expect(Reply::tool("t1", "remember", json!({"fact": "Fact number 1"})).using(0, 50_000));
    assert_eq!(env.wake(&["--once"]).code, 1);
    assert_eq!(env.cycle_states().join(","), "waiting");
    assert_eq!((env.once()["outcome"].as_str(), claude.requests().len()), (Some("idle"), 1));
    env.at("2026-11-21T23:01:00Z");
    claude.expect(Reply::text("Kept, and the form is found."));
    assert_eq!(env.once()["answered"], 4);
    assert_eq!(env.once()["outcome"], "idle");
    env.check_sound();
}
