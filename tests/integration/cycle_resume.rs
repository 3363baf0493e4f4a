//! Tests of a wake that is ended in the middle: nothing is paid for twice, and nothing is done twice.

use reveille_base::{redact::Redactor, types::Usage};
use reveille_config::Config;
use reveille_cycle::context::{Context, Terminal, WakeOutcome};
use reveille_model::{Conversation, Model, Progress, TurnFuture};

use super::{
    support::story::{commits, end_well, last, opening, sent, start_wake, wait_for_request, with_claude},
    support::{
        claude::{Block, FakeClaude, Reply},
        database::Database,
        disk::Small,
        env::{CHAT, NOW, TestEnv},
        http::Gate,
    },
};
use rustix::process::Signal;
use serde_json::json;

/// A turn with two calls: one sets a reminder, the other remembers a fact.
fn two_calls() -> Reply {
    Reply::tools(vec![
        Block::thinking("Both."),
        Block::tool("t1", "reminder_set", json!({"text": "Stretch", "when": "tomorrow at 9"})),
        Block::tool("t2", "remember", json!({"fact": "Cats purr"})),
    ])
}

/// Ends a wake with a signal while the model's answer to the nth request stalls. Returns the exit code.
fn end_in_request(env: &TestEnv, claude: &FakeClaude, n: usize, signal: Signal) -> i32 {
    let wake = start_wake(env);
    wait_for_request(claude, n);
    wake.signal(signal);
    wake.end().code
}

#[test]
fn a_wake_that_is_ended_is_resumed_by_the_next() {
    for signal in [Signal::TERM, Signal::KILL] {
        let (telegram, claude, env) = with_claude();
        env.receive(CHAT, "remind me to stretch, and cats purr");
        claude.expect(two_calls());
        claude.expect(Reply::text("Both are done, I think.").stalled_after(4, &Gate::default()));
        end_in_request(&env, &claude, 2, signal);
        assert!(telegram.sent().is_empty());
        assert_eq!(env.queued().len(), 1);
        assert_eq!(commits(&env), 1);
        let state = env.cycle().state;
        assert_eq!(state, if signal == Signal::TERM { "waiting" } else { "running" });
        assert_eq!(reveille_cycle::plan_file::left_over(&env.workspace()).unwrap().len(), 1);

        claude.expect(Reply::text("Both are done."));
        assert_eq!(env.once()["answered"], 1);
        assert_eq!(claude.requests()[2].raw, claude.requests()[1].raw, "the conversation continues unchanged");
        assert_eq!(sent(&telegram), ["Both are done."]);
        assert_eq!(env.reminders().len(), 1);
        assert_eq!(env.memory("memory/agent-memory/semantic-memory.md").matches("Cats purr").count(), 1);
        assert_eq!(commits(&env), 2);
        assert_eq!(env.trailer("Messages"), "1");
        assert_eq!(env.cycle().tries, i64::from(signal == Signal::KILL));
        assert!(env.memory("memory/agent-memory/episodic-memory.md").contains("which was interrupted"));
        env.check_sound();
    }
}

#[test]
fn a_message_that_arrives_after_a_cut_off_wake_is_answered_with_it() {
    let (telegram, claude, env) = with_claude();
    env.receive(CHAT, "name a river");
    claude.expect(Reply::text("The Rhine.").stalled_after(4, &Gate::default()));
    end_in_request(&env, &claude, 1, Signal::KILL);
    env.receive(CHAT, "and a mountain range");
    claude.expect(Reply::text("The Rhine."));
    claude.expect(Reply::text("The Alps."));
    assert_eq!(env.once()["answered"], 2);
    assert_eq!(sent(&telegram), ["The Rhine.", "The Alps."]);
    assert_eq!(commits(&env), 2);
    env.check_sound();
}

#[test]
fn a_cycle_that_is_cut_off_three_times_is_given_up_and_its_message_tried_again() {
    let (telegram, claude, mut env) = with_claude();
    let id = env.receive(CHAT, "remind me to stretch, and cats purr");
    claude.expect(two_calls());
    for _ in 0..3 {
        claude.expect(Reply::text("Both are done.").stalled_after(4, &Gate::default()));
    }
    for n in 2..=4 {
        end_in_request(&env, &claude, n, Signal::KILL);
        assert!(telegram.sent().is_empty());
    }
    env.once();
    let said = sent(&telegram);
    assert!(said[0].contains("cut off 3 times") && said[0].contains("Your message is safe"), "{said:#?}");
    assert_eq!(env.queued()[0].attempts, 1);
    let given_up = env.cycles_in("abandoned")[0].id.clone();
    assert!(
        env.git(&["show", &format!("recovered/{given_up}:memory/agent-memory/semantic-memory.md")])
            .contains("Cats purr")
    );
    assert!(!env.memory("memory/agent-memory/semantic-memory.md").contains("Cats purr"));

    env.at("2026-11-21T14:01:00Z");
    claude.expect(Reply::tool("t1", "remember", json!({"fact": "Cats purr"})));
    claude.expect(Reply::text("Both are done, at last."));
    assert_eq!(env.once()["answered"], 1);
    let situation = opening(&last(&claude), "<situation");
    assert!(situation.contains("Already done, not to be done again: Set the reminder “Stretch”"), "{situation}");
    assert!(!situation.contains("Remembered"), "the fact wasn't committed: {situation}");
    assert_eq!(sent(&telegram)[1..], ["Both are done, at last."]);
    assert_eq!(env.trailer("Messages"), id.to_string());
    assert_eq!(env.reminders().len(), 1);
    env.check_sound();
}

/// Cuts off a cycle three times, after its two calls.
fn cut_off_three_times(env: &TestEnv, claude: &FakeClaude) {
    env.receive(CHAT, "remind me to stretch, and cats purr");
    claude.expect(two_calls());
    for _ in 0..3 {
        claude.expect(Reply::text("Both are done.").stalled_after(4, &Gate::default()));
    }
    for n in 2..=4 {
        end_in_request(env, claude, n, Signal::KILL);
    }
}

#[test]
fn each_branch_with_work_given_up_is_named_in_the_chat() {
    let (telegram, claude, mut env) = with_claude();
    cut_off_three_times(&env, &claude);
    env.once();
    // The second and third time, each some time later.
    for (at, said_before) in [("2026-11-21T14:10:00Z", 1), ("2026-11-21T15:10:00Z", 2)] {
        env.at(at);
        let n = claude.requests().len();
        claude.expect(two_calls());
        for n in n + 2..=n + 4 {
            claude.expect(Reply::text("Both are done.").stalled_after(4, &Gate::default()));
            end_in_request(&env, &claude, n, Signal::KILL);
        }
        env.once();
        assert_eq!(telegram.sent().len(), said_before + 1, "{:#?}", sent(&telegram));
    }
    let said = sent(&telegram).join("\n");
    let branches = env.git(&["branch", "--list", "--format=%(refname:short)", "recovered/*"]);
    assert_eq!(branches.lines().count(), 3);
    assert!(branches.lines().all(|branch| said.contains(branch)), "{branches}{said}");
    env.check_sound();
}

#[test]
fn a_cycle_that_could_not_be_given_up_is_given_up_by_the_next_wake() {
    let (telegram, claude, env) = with_claude();
    cut_off_three_times(&env, &claude);
    env.refuse("INSERT", "outgoing_messages", "TRUE");
    assert_eq!(env.wake(&["--once"]).code, 1);
    assert!(telegram.sent().is_empty());
    env.refuse_no_more("outgoing_messages");
    env.once();
    let said = sent(&telegram);
    assert!(said.len() == 1 && said[0].contains("cut off 3 times"), "{said:#?}");
    assert_eq!((env.cycle().state.as_str(), claude.requests().len()), ("abandoned", 4));
    env.check_sound();
}

#[test]
fn a_cycle_nobody_asked_for_is_given_up_for_good_even_if_giving_up_was_cut_off() {
    let (telegram, claude, env) = with_claude();
    env.wake(&["--once"]).ok();
    env.write_memory("memory/project-memory/active.md", "# Active tasks\n\n## Tax return\n\n- touched: 2026-11-14\n");
    env.git(&["commit", "-qam", "A task"]);
    claude.expect(Reply::text("Seen.").stalled_after(1, &Gate::default()));
    end_in_request(&env, &claude, 1, Signal::KILL);
    // As if it had been cut off twice more, and once while it was given up.
    env.put_tries(3);
    assert_eq!(env.once()["outcome"], "worked");
    let said = sent(&telegram);
    assert!(said.len() == 1 && said[0].contains("Tax return") && said[0].contains("cut off 4 times"), "{said:#?}");
    assert_eq!((env.once()["outcome"].as_str(), claude.requests().len()), (Some("idle"), 1));
    env.check_sound();
}

#[test]
fn answered_but_uncommitted_work_is_reported_with_its_branch() {
    let (telegram, claude, env) = with_claude();
    env.receive(CHAT, "remember that cats purr");
    claude.expect(Reply::tools(vec![
        Block::tool("t1", "remember", json!({"fact": "Cats purr"})),
        Block::tool("t2", "reply", json!({"text": "Kept."})),
    ]));
    for _ in 0..3 {
        claude.expect(Reply::text("Done.").stalled_after(4, &Gate::default()));
    }
    for n in 2..=4 {
        end_in_request(&env, &claude, n, Signal::KILL);
    }
    env.once();
    let given_up = env.cycles_in("abandoned")[0].id.clone();
    let said = sent(&telegram);
    assert_eq!(said[0], "Kept.");
    assert!(
        said[1].contains("isn't in my memory") && said[1].contains(&format!("git merge recovered/{given_up}")),
        "{said:#?}"
    );
    env.git(&["merge", "-q", &format!("recovered/{given_up}")]);
    assert!(env.memory("memory/agent-memory/semantic-memory.md").contains("Cats purr"));
    env.check_sound();
}

#[test]
fn the_reason_of_a_cut_off_wake_is_no_reason_again_after_it_ended() {
    let (_telegram, claude, env) = with_claude();
    env.wake(&["--once"]).ok();
    env.write_memory("memory/project-memory/active.md", "# Active tasks\n\n## Tax return\n\n- touched: 2026-11-14\n");
    claude.expect(Reply::text("Seen.").stalled_after(1, &Gate::default()));
    end_in_request(&env, &claude, 1, Signal::KILL);
    claude.expect(Reply::text("Seen."));
    assert_eq!(env.once()["outcome"], "worked");
    assert_eq!(env.once()["outcome"], "idle");
    env.check_sound();
}

#[test]
fn a_wake_that_was_cut_off_after_its_commit_only_ends() {
    let (telegram, claude, env) = with_claude();
    let repair = |check: &str, what: &str| {
        env.put_repair(check, what, NOW);
    };
    env.once();
    repair("repository", "removed a lock");
    env.receive(CHAT, "hello");
    claude.expect(Reply::text("Hello."));
    end_well(start_wake(&env));
    // The state between the commit and the end of the cycle.
    env.lose_end_of_cycles();
    let before = commits(&env);
    env.reopen_repairs();
    repair("something else", "mended it since");
    env.once();
    assert_eq!((commits(&env), sent(&telegram).len(), claude.requests().len()), (before, 1, 1));
    let open: Vec<String> = env.open_repairs().into_iter().map(|repair| repair.what).collect();
    assert_eq!(open, ["mended it since"], "the commit mentions the other repair");
    assert_eq!(env.cycle().commit_id.unwrap(), env.git(&["rev-parse", "HEAD"]));
    assert_eq!(env.once()["outcome"], "idle");
    env.check_sound();
}

/// Causes a fault while the model's answer to the nth request stalls, then lets the answer continue. Returns the exit code.
fn go_wrong_in_request(env: &TestEnv, claude: &FakeClaude, n: usize, gate: &Gate, harm: impl FnOnce()) -> i32 {
    let wake = start_wake(env);
    wait_for_request(claude, n);
    harm();
    gate.open();
    wake.end().code
}

#[test]
fn an_error_that_ends_a_wake_properly_does_not_count_as_a_try() {
    let (telegram, claude, env) = with_claude();
    env.receive(CHAT, "cats purr");
    claude.expect(Reply::tool("t1", "remember", json!({"fact": "Cats purr"})));
    let fails = |n, harm: &dyn Fn()| {
        let gate = Gate::default();
        claude.expect(Reply::text("Kept.").stalled_after(2, &gate));
        assert_eq!(go_wrong_in_request(&env, &claude, n, &gate, harm), 1, "request {n}");
        assert!(telegram.sent().is_empty());
        assert_eq!(env.cycle().state, "running");
    };
    for n in 2..=6 {
        fails(n, &|| env.refuse("INSERT", "cycle_journal", "TRUE"));
        let health = env.health(&["check", "--json"]).json().to_string();
        assert!(health.contains("was stopped") && health.contains("as if broken"), "{health}");
        env.refuse_no_more("cycle_journal");
    }
    let head = env.brain().join(".git/HEAD");
    fails(7, &|| std::fs::write(&head, "nonsense").unwrap());
    std::fs::write(&head, "ref: refs/heads/main\n").unwrap();

    // The last turn is in the journal, so it isn't requested again.
    assert_eq!(env.once()["outcome"], "worked");
    assert_eq!(claude.requests().len(), 7);
    assert_eq!(sent(&telegram), ["Kept."]);
    assert_eq!(env.cycle().tries, 0);
    env.check_sound();
}

/// Checks that the first paragraph consists of proper sentences.
#[track_caller]
fn check_sentences(text: &str) {
    let first = text.split("\n\n").next().unwrap();
    let is_whole = |sentence: &str| sentence.starts_with(char::is_uppercase);
    assert!(first.split(". ").all(is_whole) && !first.contains(".."), "{text}");
}

#[test]
fn without_a_model_its_cycle_is_given_up_and_its_message_kept_and_reported() {
    let (telegram, claude, mut env) = with_claude();
    let id = env.receive(CHAT, "cats purr");
    claude.expect(Reply::tool("t1", "remember", json!({"fact": "Cats purr"})));
    claude.expect(Reply::text("Kept.").stalled_after(4, &Gate::default()));
    end_in_request(&env, &claude, 2, Signal::TERM);
    env.set("MODEL", "offline").once();
    let said = sent(&telegram);
    assert!(said[0].contains("begun with claude-sonnet-5-5") && said[0].contains("Your message is safe"), "{said:#?}");
    check_sentences(&said[0]);
    assert_eq!((said.len(), env.queued().len()), (2, 1), "kept for an AI model: {said:#?}");
    assert_eq!(env.message(id).attempts, 0);
    let given_up = env.cycles_in("abandoned")[0].id.clone();
    assert!(said[0].contains(&format!("recovered/{given_up}")), "{said:#?}");
    env.git(&["rev-parse", "--verify", &format!("recovered/{given_up}")]);
    env.check_sound();
}

#[test]
fn a_model_that_disappears_in_a_cycle_costs_its_messages_no_attempt() {
    let (telegram, claude, mut env) = with_claude();
    let id = env.receive(CHAT, "cats purr");
    let gone = || Reply::error(404, "not_found_error", "model: claude-sonnet-5-5");
    claude.expect(Reply::tool("t1", "remember", json!({"fact": "Cats purr"})));
    claude.expect(gone());
    assert_eq!(env.wake(&["--once"]).code, 1);
    let said = sent(&telegram);
    assert!(said[0].contains("model: claude-sonnet-5-5") && said[0].contains("as soon as MODEL"), "{said:#?}");
    check_sentences(&said[0]);
    assert_eq!(env.cycle().state, "abandoned");
    assert_eq!(env.queued()[0].attempts, 0);
    for minutes in 1..5 {
        env.at(&format!("2026-11-21T{:02}:00:00Z", 14 + minutes));
        claude.expect(gone());
        assert_eq!(env.wake(&["--once"]).code, 1);
    }
    assert_eq!((env.queued().len(), env.queued()[0].attempts), (1, 0));
    env.set("MODEL", "claude-opus-5-5").at("2026-11-22T14:00:00Z");
    claude.expect(Reply::text("Kept by me."));
    assert_eq!(env.once()["answered"], 1);
    assert_eq!(env.trailer("Messages"), id.to_string());
    env.check_sound();
}

/// The message goes through several wakes after a cycle was given up: one whose model fails at once, one without a model, and one that is
/// given up too.
#[test]
fn effects_for_a_message_stay_known_however_often_it_is_tried_again() {
    let (_telegram, claude, mut env) = with_claude();
    env.receive(CHAT, "I forget to stretch and to drink");
    let gone = || Reply::error(404, "not_found_error", "model: claude-sonnet-5-5");
    let reminder = |text: &str| Reply::tool("t1", "reminder_set", json!({"text": text, "when": "tomorrow at 9"}));
    claude.expect(reminder("Stretch"));
    claude.expect(gone());
    assert_eq!(env.wake(&["--once"]).code, 1);
    env.at("2026-11-21T15:00:00Z");
    claude.expect(gone());
    assert_eq!(env.wake(&["--once"]).code, 1);
    assert_eq!(env.cycle_states().join(","), "abandoned,failed");

    env.set("MODEL", "offline").at("2026-11-22T05:00:00Z");
    env.wake(&["--once"]).ok();
    assert!(env.message(1).held_for.is_some());

    env.set("MODEL", "claude-opus-5-5").at("2026-11-22T06:00:00Z");
    claude.expect(reminder("Drink"));
    claude.expect(gone());
    assert_eq!(env.wake(&["--once"]).code, 1);
    env.set("MODEL", "claude-sonnet-5-5").at("2026-11-22T07:00:00Z");
    claude.expect(Reply::text("Both are set."));
    assert_eq!(env.once()["answered"], 1);
    // The first reminder was set by a cycle that was given up, the second by the model that this one replaces.
    let situation = opening(&last(&claude), "<situation");
    assert!(situation.contains("not to be done again: Set the reminder “Stretch”"), "{situation}");
    let account = opening(&last(&claude), "<folded");
    assert!(account.contains("- Set the reminder “Drink”"), "{account}");
    env.check_sound();
}

#[test]
fn a_cycle_after_a_tainted_one_that_was_given_up_is_tainted_too() {
    let (_telegram, claude, mut env) = with_claude();
    env.receive(CHAT, "remind me to stretch, and look into the folder");
    claude.expect(Reply::tools(vec![
        Block::tool("t1", "reminder_set", json!({"text": "Stretch", "when": "tomorrow at 9"})),
        Block::tool("t2", "bash", json!({"command": "ls"})),
    ]));
    claude.expect(Reply::error(404, "not_found_error", "model: claude-sonnet-5-5"));
    assert_eq!(env.wake(&["--once"]).code, 1);
    env.at("2026-11-21T15:00:00Z");
    claude.expect(Reply::tool("t1", "remember", json!({"fact": "The folder says so"})));
    claude.expect(Reply::text("Done."));
    assert_eq!(env.once()["answered"], 1);
    assert!(opening(&claude.requests()[2], "<situation").contains("Set the reminder “Stretch”"));
    let facts = env.memory("memory/agent-memory/semantic-memory.md");
    assert!(facts.contains("## Unconfirmed\n- The folder says so"), "{facts}");
    env.check_sound();
}

#[test]
fn a_cycle_with_an_unreadable_journal_is_given_up_and_holds_up_no_other() {
    let (telegram, claude, env) = with_claude();
    env.receive(CHAT, "hello");
    claude.expect(Reply::text("Hello.").stalled_after(2, &Gate::default()));
    end_in_request(&env, &claude, 1, Signal::KILL);
    env.garble_steps("asked");
    claude.expect(Reply::text("Hello."));
    assert_eq!(env.once()["answered"], 1);
    let said = sent(&telegram);
    assert!(said[0].contains("journal can't be read"), "{said:#?}");
    assert_eq!(said[1..], ["Hello."]);
    env.check_sound();
}

#[test]
fn a_call_that_was_started_but_left_no_outcome_is_run_again() {
    for tool in ["reply", "remember", "memory_read"] {
        let (telegram, claude, env) = with_claude();
        env.receive(CHAT, "cats purr");
        let input = match tool {
            "reply" => json!({"text": "They do."}),
            "remember" => json!({"fact": "Cats purr"}),
            _ => json!({}),
        };
        claude.expect(Reply::tool("t1", tool, input));
        claude.expect(Reply::text("Done.").stalled_after(2, &Gate::default()));
        end_in_request(&env, &claude, 2, Signal::KILL);
        // The state after the start of the call and before its outcome; a call's changes are saved in the same transaction as its outcome.
        env.cut_journal_after("called");
        env.empty_outbox();
        env.forget_changed_files();
        env.queue_all_again();
        claude.expect(Reply::text("Done."));
        env.once();
        assert_eq!(
            claude.requests()[2].raw,
            claude.requests()[1].raw,
            "{tool}: the cycle continues as if it hadn't been interrupted"
        );
        let answer = if tool == "reply" { "They do." } else { "Done." };
        assert_eq!(sent(&telegram), [answer], "{tool}");
        assert_eq!(env.steps("called").len(), 2, "{tool}");
        env.check_sound();
    }
}

#[test]
fn a_repeatedly_full_disk_never_counts_as_a_try() {
    let outer = TestEnv::new();
    let Some(disk) = Small::mount(&outer, "small", 64) else { return };
    let (telegram, claude, mut env) = with_claude();
    env.set("WORKSPACE_DIR", &format!("{}/workspace", disk.at()));
    let database = Database::in_file(format!("{}/workspace/messages.db", disk.at()));
    env.wake(&["--once"]).ok();
    // More than the free space within the database's files.
    let long = || Block::thinking(&"Hm. ".repeat(1 << 18));
    let fill = std::path::PathBuf::from(&disk.at()).join("fill");
    database.queue_by_hand(0, "cats purr");
    for n in 1..=5 {
        let gate = Gate::default();
        let asked_before = claude.requests().len();
        claude.expect(
            Reply::tools(vec![long(), Block::tool("t1", "remember", json!({"fact": "Cats purr"}))])
                .stalled_after(2, &gate),
        );
        let code = go_wrong_in_request(&env, &claude, asked_before + 1, &gate, || fill_up(&fill));
        assert_eq!(code, 1, "round {n}");
        std::fs::remove_file(&fill).unwrap();
        // Shrinks the write-ahead log, so that the next round finds no free space in it.
        database.write_back();
    }
    assert!(database.cycles_in("abandoned").is_empty());
    claude.expect(Reply::text("Kept."));
    let ran = env.run_for_terminal_replies();
    assert!(ran.stdout.contains("Kept."), "{ran:#?}");
    assert!(database.cycles().iter().all(|cycle| cycle.tries == 0));
    assert!(telegram.sent().is_empty());
}

/// Fills the file system of this file.
fn fill_up(file: &std::path::Path) {
    use std::io::Write as _;
    let mut file = std::fs::File::create(file).unwrap();
    for size in [1 << 20, 4096, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
}

/// A model that never answers.
struct Silent;

impl Model for Silent {
    fn most_usd(&self, _: &Conversation) -> f64 {
        0.0
    }

    fn name(&self) -> &str {
        "claude-sonnet-5-5"
    }

    fn cost_usd(&self, _: &Usage) -> f64 {
        0.0
    }

    fn request_turn<'a>(&'a self, _: &'a Conversation, _: &'a Progress) -> TurnFuture<'a> {
        Box::pin(std::future::pending())
    }
}

#[test]
fn a_cycle_that_takes_too_long_three_times_is_given_up() {
    let env = TestEnv::new();
    env.wake(&["--once"]).ok();
    env.receive(0, "hello");
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
    let context = Context {
        version: reveille::VERSION,
        config: &config,
        clock: &clock,
        model: &Silent,
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
    for tries in 0..3 {
        let report = wake();
        assert_eq!(report.outcome, WakeOutcome::Failed, "{report:#?}");
        assert!(report.error.unwrap().contains("WAKE_TIMEOUT_MIN"));
        assert_eq!(env.cycle().tries, tries);
    }
    wake();
    assert_eq!(env.cycle().state, "abandoned");
    assert_eq!(env.queued()[0].attempts, 1);
}
