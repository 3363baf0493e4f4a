//! A chain of models: what one can't do the next one does, from the journal's account, and whoever asked is told once.

use serde_json::{Value, json};

use super::{
    support::story::{commits, last, reply, sent, start_wake, with_claude},
    support::{
        claude::{Block, ClaudeRequest, FakeClaude, Reply},
        env::{CHAT, TestEnv, eventually},
        http::Gate,
        telegram::FakeTelegram,
    },
};

pub(crate) const FIRST: &str = "claude-sonnet-5-5";
pub(crate) const SECOND: &str = "claude-haiku-5-5";

/// A world whose models are these.
pub(crate) fn chained(models: &str) -> (FakeTelegram, FakeClaude, TestEnv) {
    let (telegram, claude, mut env) = with_claude();
    env.set("MODEL", models).wake(&["--once"]).ok();
    (telegram, claude, env)
}

pub(crate) fn both() -> String {
    format!("{FIRST},{SECOND}")
}

fn refused() -> Reply {
    Reply::error(401, "authentication_error", "invalid x-api-key")
}

/// An outage that isn't waited out within a wake.
pub(crate) fn outage() -> Reply {
    Reply::error(529, "overloaded_error", "Overloaded").header("retry-after", "120")
}

/// The models that were asked, in order.
pub(crate) fn asked_models(claude: &FakeClaude) -> Vec<String> {
    claude.requests().iter().map(|request| request.json["model"].as_str().unwrap().to_owned()).collect()
}

fn model_of(request: &ClaudeRequest) -> &str {
    request.json["model"].as_str().unwrap()
}

fn notices(telegram: &FakeTelegram) -> usize {
    sent(telegram).iter().filter(|text| text.contains("for now")).count()
}

fn models_paid(env: &TestEnv) -> Vec<String> {
    env.ledger().into_iter().map(|charge| charge.model).collect()
}

#[test]
fn what_one_model_cannot_do_the_next_one_answers_with_one_notice() {
    for (trouble, why) in [
        (refused as fn() -> Reply, "your API key was rejected"),
        (outage, "Claude is overloaded"),
        (Reply::spending_limit, "Spend limit reached"),
    ] {
        let (telegram, claude, mut env) = chained(&both());
        env.receive(CHAT, "hello");
        claude.expect(trouble());
        claude.expect(Reply::text("Hello."));
        let report = env.once();
        assert_eq!(
            (&report["outcome"], &report["answered"], &report["error"]),
            (&json!("worked"), &json!(1), &Value::Null)
        );
        assert_eq!(asked_models(&claude), [FIRST, SECOND]);
        let said = sent(&telegram);
        assert!(said[0].starts_with("claude-haiku-5-5 answers for now instead of claude-sonnet-5-5"), "{said:?}");
        assert!(said[0].contains(why), "{said:?}");
        assert_eq!(said[1..], ["Hello."]);
        assert_eq!((env.trailer("Model").as_str(), models_paid(&env)), (SECOND, vec![SECOND.to_owned()]));

        // The next message doesn't run into the dead one first, and nobody is told again.
        env.receive(CHAT, "and you?");
        claude.expect(Reply::text("Fine."));
        env.once();
        assert_eq!(asked_models(&claude)[2..], [SECOND]);
        let health = env.health(&["status"]).stdout;
        assert!(
            health.contains("claude-haiku-5-5") && health.contains("claude-sonnet-5-5 couldn't be reached"),
            "{health}"
        );
        let check = env.health(&["check", "--json"]).json().to_string();
        assert!(check.contains("claude-haiku-5-5 answers meanwhile"), "{check}");

        // Its back-off is over: it is tried with the next message, and all is as before.
        env.at("2026-11-21T14:03:00Z").receive(CHAT, "again");
        claude.expect(Reply::text("Back."));
        env.once();
        assert_eq!(asked_models(&claude)[3..], [FIRST]);
        assert_eq!(env.breakers().len(), 0);
        assert_eq!(notices(&telegram), 1, "{:?}", sent(&telegram));
        env.check_sound();
    }
}

#[test]
fn a_try_that_fails_again_asks_the_next_one_at_once_and_waits_longer() {
    let (telegram, claude, mut env) = chained(&both());
    env.receive(CHAT, "hello");
    claude.expect(refused());
    claude.expect(Reply::text("Hello."));
    env.once();
    env.at("2026-11-21T14:01:00Z").receive(CHAT, "again");
    // One that could be waited out: somebody else can answer.
    claude.expect(Reply::error(529, "overloaded_error", "Overloaded"));
    claude.expect(Reply::text("Again."));
    env.once();
    assert_eq!(asked_models(&claude), [FIRST, SECOND, FIRST, SECOND]);
    assert_eq!(env.breakers()[0].not_before.clone().unwrap(), "2026-11-21T14:02:00.000Z");
    assert_eq!(env.breakers()[0].failures, 2);
    assert_eq!(notices(&telegram), 1, "{:?}", sent(&telegram));
    env.check_sound();
}

#[test]
fn a_passing_trouble_is_waited_out_where_it_is() {
    let (telegram, claude, env) = chained(&both());
    env.receive(CHAT, "hello");
    claude.expect(Reply::error(529, "overloaded_error", "Overloaded"));
    claude.expect(Reply::text("Hello."));
    env.once();
    assert_eq!((asked_models(&claude), sent(&telegram)), (vec![FIRST.to_owned(); 2], vec!["Hello.".to_owned()]));
    env.check_sound();
}

/// The first model keeps a fact, with its signed thoughts, and is then out of reach.
fn begun_by_the_first(claude: &FakeClaude) {
    claude.expect(Reply::tools(vec![
        Block::thinking("A fact, and something to read."),
        Block::tool("t1", "remember", json!({"fact": "Anna's birthday is 3 May"})),
        Block::tool("t2", "remember", json!({"fact": ""})),
    ]));
    claude.expect(outage());
}

#[test]
fn a_conversation_never_crosses_and_what_was_done_is_told_and_not_done_again() {
    let (telegram, claude, env) = chained(&both());
    let id = env.receive(CHAT, "Anna's birthday is 3 May, keep that & tell me.");
    begun_by_the_first(&claude);
    claude.expect(reply("u1", "Kept."));
    claude.expect(Reply::text("Done."));
    let report = env.once();
    assert_eq!((&report["outcome"], &report["answered"]), (&json!("worked"), &json!(1)));
    assert_eq!(asked_models(&claude), [FIRST, FIRST, SECOND, SECOND]);

    let handed = claude.requests()[2].clone();
    assert_eq!(handed.messages.len(), 1, "{:#}", handed.json);
    for foreign in ["thinking", "signature", "tool_use"] {
        assert!(!handed.raw.contains(&format!("\"{foreign}\"")), "{foreign}: {}", handed.raw);
    }
    let opening = handed.last_text();
    for told in [
        &format!("<message id=\"{id}\"") as &str,
        "Anna's birthday is 3 May, keep that &amp; tell me.",
        "<situation wake=",
        "Another AI model began this",
        "- Remembered “Anna's birthday is 3 May”",
        "- remember {&quot;fact&quot;:&quot;&quot;}: fact is empty. Nothing was done.",
        &format!("These messages wait for an answer: {id}."),
    ] {
        assert!(opening.contains(told), "{told}: {opening}");
    }
    let said = sent(&telegram);
    assert!(said[0].contains("answers for now") && said[1..] == ["Kept."], "{said:?}");

    // One cycle, one commit, and all say who did what.
    let thought = env.cycles().iter().filter(|cycle| cycle.model != "none").count();
    assert_eq!((commits(&env), thought), (2, 1));
    assert_eq!(env.trailer("Model"), format!("{FIRST}, {SECOND}"));
    assert_eq!(env.last_cycle().model, SECOND);
    assert_eq!(models_paid(&env), [FIRST, SECOND, SECOND]);
    let memory = env.memory("memory/agent-memory/semantic-memory.md");
    assert_eq!(memory.matches("Anna's birthday").count(), 1, "{memory}");
    let show = env.wake(&["show", &env.trailer("Wake-Id")]).ok().stdout;
    assert!(show.contains(&format!("Model: {FIRST}, then {SECOND}, 3 turns")), "{show}");
    assert!(show.contains(&format!("fell back from {FIRST} to {SECOND}")), "{show}");
    env.check_sound();
}

#[test]
fn a_wake_killed_at_any_side_of_a_hand_over_goes_on_from_it() {
    let (telegram, claude, env) = chained(&both());
    env.receive(CHAT, "Anna's birthday is 3 May");
    begun_by_the_first(&claude);
    let gate = Gate::default();
    claude.expect(reply("u1", "Kept.").stalled_after(1, &gate));
    let wake = start_wake(&env);
    eventually("the next one to be asked", || claude.requests().len() == 3);
    wake.signal(rustix::process::Signal::KILL);
    wake.end();
    gate.open();
    // The journal has the new conversation: it is sent again as it stood, to the model that has it.
    claude.expect(reply("u1", "Kept."));
    claude.expect(Reply::text("Done."));
    env.once();
    let requests = claude.requests();
    assert_eq!((model_of(&requests[3]), &requests[3].raw), (SECOND, &requests[2].raw));
    assert_eq!(sent(&telegram).iter().filter(|text| *text == "Kept.").count(), 1);
    assert_eq!(notices(&telegram), 1);
    env.check_sound();

    // Cut off before that entry: the trouble is known, the cycle waits, and is handed over by the next wake.
    let (telegram, claude, env) = chained(&both());
    env.receive(CHAT, "Anna's birthday is 3 May");
    begun_by_the_first(&claude);
    claude.expect(reply("u1", "Kept.").stalled_after(1, &gate_of_its_own()));
    let wake = start_wake(&env);
    eventually("the next one to be asked", || claude.requests().len() == 3);
    wake.signal(rustix::process::Signal::KILL);
    wake.end();
    env.cut_journal_before("handed");
    env.put_model_back(SECOND, FIRST);
    env.empty_outbox();
    claude.expect(reply("u1", "Kept."));
    claude.expect(Reply::text("Done."));
    env.once();
    assert_eq!(asked_models(&claude)[3..], [SECOND, SECOND]);
    assert!(claude.requests()[3].last_text().contains("Another AI model began this"));
    assert_eq!((sent(&telegram).len(), notices(&telegram)), (2, 1), "{:?}", sent(&telegram));
    env.check_sound();
}

/// Never opened.
fn gate_of_its_own() -> Gate {
    Gate::default()
}

#[test]
fn what_another_model_would_only_hide_is_told_and_waits() {
    // A name that its provider doesn't know.
    let (telegram, claude, env) = chained(&both());
    env.receive(CHAT, "hello");
    claude.expect(Reply::error(404, "not_found_error", "model: claude-sonnet-5-5"));
    assert_eq!(env.wake(&["--once", "--json"]).code, 1);
    assert!(sent(&telegram)[0].contains("model: claude-sonnet-5-5"), "{:?}", sent(&telegram));
    env.receive(CHAT, "hello?");
    assert_eq!(env.once()["outcome"], "idle");
    assert_eq!((asked_models(&claude), env.queued().len()), (vec![FIRST.to_owned()], 2));
    let check = env.health(&["check", "--json"]).json().to_string();
    assert!(check.contains("check that claude-sonnet-5-5 in MODEL is spelt"), "{check}");
    // A conversation that isn't taken. Who takes none of it can be reached: what was wrong before is over.
    let (_telegram, claude, mut env) = chained(&both());
    env.receive(CHAT, "hi");
    claude.expect(outage());
    claude.expect(Reply::text("Hi."));
    env.once();
    assert_eq!(env.breakers().len(), 1);
    env.at("2026-11-21T14:03:00Z");
    env.receive(CHAT, "hello");
    claude.expect(Reply::error(400, "invalid_request_error", "prompt is too long"));
    assert_eq!(env.wake(&["--once", "--json"]).code, 1);
    assert_eq!(asked_models(&claude), [FIRST, SECOND, FIRST]);
    assert_eq!(env.breakers().len(), 0);
    env.check_sound();
}

#[test]
fn each_chat_is_told_once_and_the_last_of_the_chain_waits_for_all() {
    let (telegram, claude, mut env) = chained(&both());
    env.set("ALLOWED_CHAT_IDS", &format!("{CHAT},5555"));
    env.receive(CHAT, "hello");
    claude.expect(outage());
    claude.expect(Reply::text("One."));
    env.once();
    env.receive(5555, "hello");
    claude.expect(Reply::text("Two."));
    env.once();
    assert_eq!(notices(&telegram), 2);
    env.receive(CHAT, "again");
    claude.expect(refused());
    assert_eq!(env.wake(&["--once", "--json"]).code, 1);
    let said = sent(&telegram);
    assert!(said.last().unwrap().contains("Your messages are safe"), "{said:?}");
    assert_eq!(env.once()["outcome"], "idle");
    assert_eq!(env.queued().len(), 1);
    env.at("2026-11-21T14:00:30Z");
    claude.expect(Reply::text("Three."));
    env.once();
    assert_eq!((asked_models(&claude).last().unwrap().as_str(), env.queued().len()), (SECOND, 0));
    env.check_sound();
}

#[test]
fn the_offline_model_in_a_chain_answers_what_it_can_and_keeps_the_rest_with_one_notice() {
    let (telegram, claude, mut env) = chained(&format!("{FIRST},offline"));
    env.receive(CHAT, "why is the sky blue?");
    claude.expect(outage());
    let report = env.once();
    assert_eq!(report["outcome"], "worked", "{report:#}");
    env.receive(CHAT, "and the grass green?");
    env.once();
    env.receive(CHAT, "remember that the wifi code is 1234");
    env.once();
    let said = sent(&telegram);
    assert_eq!(said.len(), 2, "{said:#?}");
    assert!(said[0].starts_with("No AI model is available for now") && said[0].contains("overloaded"), "{said:#?}");
    assert!(said[1].contains("wifi code is 1234"), "{said:#?}");
    assert_eq!((asked_models(&claude).len(), env.trailer("Model").as_str()), (1, "offline"));
    assert_eq!(env.queued().len(), 2);
    // The model is back: it gets what was kept.
    env.at("2026-11-21T14:02:00Z");
    claude.expect(Reply::text("Rayleigh and chlorophyll."));
    assert_eq!(env.once()["answered"], 2);
    assert_eq!(sent(&telegram)[2..], ["Rayleigh and chlorophyll."]);
    env.check_sound();
}

#[test]
fn a_conversation_that_has_begun_waits_for_a_model_that_can_read_what_was_done() {
    let (telegram, claude, mut env) = chained(&format!("{FIRST},offline"));
    env.receive(CHAT, "remember that Anna's birthday is 3 May");
    begun_by_the_first(&claude);
    assert_eq!(env.wake(&["--once", "--json"]).code, 1);
    assert!(sent(&telegram)[0].contains("Your messages are safe"), "{:?}", sent(&telegram));
    assert_eq!(env.once()["outcome"], "idle");
    env.at("2026-11-21T14:02:00Z");
    claude.expect(Reply::text("Kept."));
    assert_eq!(env.once()["answered"], 1);
    assert_eq!(env.memory("memory/agent-memory/semantic-memory.md").matches("Anna's").count(), 1);
    env.check_sound();
}

#[test]
fn without_a_network_what_is_plain_is_done_at_once_and_the_rest_waits() {
    let (telegram, claude, mut env) = chained(FIRST);
    let nobody = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    env.set("ANTHROPIC_BASE_URL", &nobody);
    env.receive(CHAT, "remind me to stretch in 20 minutes");
    let report = env.once();
    assert_eq!((&report["outcome"], &report["answered"]), (&json!("worked"), &json!(1)), "{report:#}");
    assert_eq!(env.breakers()[0].failures, 1, "one try, no waiting");
    let said = sent(&telegram);
    assert!(said.len() == 1 && said[0].contains("stretch"), "{said:#?}");
    assert_eq!(env.trailer("Model"), "offline");
    // What it doesn't surely understand is left for the model: nothing is begun for it.
    let before = commits(&env);
    env.receive(CHAT, "what do you make of my week?");
    assert_eq!(env.once()["outcome"], "idle");
    env.receive(CHAT, "remember that Anna likes tea");
    assert_eq!(env.once()["answered"], 1);
    assert_eq!((commits(&env), env.queued().len()), (before + 1, 1));
    // The reminder comes, whatever the model does.
    env.think_with(&claude).at("2026-11-21T14:20:00Z");
    claude.expect(Reply::text("A good week."));
    env.once();
    let said = sent(&telegram);
    assert!(said.iter().any(|text| text.contains("stretch") && text != &said[0]), "{said:#?}");
    assert!(said.contains(&"A good week.".to_owned()) && last(&claude).last_text().contains("my week"), "{said:#?}");
    env.check_sound();
}

#[test]
fn a_spent_budget_leaves_what_costs_nothing() {
    let (telegram, claude, mut env) = chained(&format!("{FIRST},offline"));
    env.set("DAILY_BUDGET_USD", "0");
    env.receive(CHAT, "remember that the wifi code is 1234");
    env.receive(CHAT, "what is love?");
    env.once();
    let said = sent(&telegram);
    assert!(said.len() == 2 && said[0].contains("No AI model is available for now"), "{said:#?}");
    assert!(said[0].contains("DAILY_BUDGET_USD") && said[1].contains("wifi"), "{said:#?}");
    assert_eq!((claude.requests().len(), env.queued().len()), (0, 1));
    env.set("DAILY_BUDGET_USD", "5");
    claude.expect(Reply::text("Hard to say."));
    env.once();
    assert_eq!(sent(&telegram)[2..], ["Hard to say."]);
    env.check_sound();
}

#[test]
fn another_model_in_the_settings_goes_on_with_what_is_under_way() {
    let (telegram, claude, mut env) = chained(FIRST);
    env.receive(CHAT, "Anna's birthday is 3 May");
    begun_by_the_first(&claude);
    assert_eq!(env.wake(&["--once", "--json"]).code, 1);
    env.set("MODEL", SECOND);
    claude.expect(reply("u1", "Kept."));
    claude.expect(Reply::text("Done."));
    env.once();
    assert_eq!(asked_models(&claude)[2..], [SECOND, SECOND]);
    assert_eq!(sent(&telegram)[1..], ["Kept."]);
    assert_eq!(env.memory("memory/agent-memory/semantic-memory.md").matches("Anna's").count(), 1);
    env.check_sound();
}

#[test]
fn what_is_quick_stays_with_the_simple_model_and_the_rest_goes_on_with_the_other() {
    let (telegram, claude, mut env) = chained(FIRST);
    env.set("MODEL_SIMPLE", SECOND);
    let plan = |id: &str, complexity| Block::tool(id, "plan", json!({"understood": "It.", "complexity": complexity}));
    env.receive(CHAT, "what day is it?");
    claude.expect(Reply::tools(vec![plan("t1", "quick")]));
    claude.expect(Reply::text("Saturday."));
    env.once();
    assert_eq!((asked_models(&claude), env.trailer("Model").as_str()), (vec![SECOND.to_owned(); 2], SECOND));
    assert!(claude.requests().iter().all(|request| request.json["output_config"]["effort"] == "low"));

    env.receive(CHAT, "plan my move to Lisbon");
    let fact = json!({"fact": "A move to Lisbon is planned"});
    claude.expect(Reply::tools(vec![plan("t2", "complex"), Block::tool("t3", "remember", fact)]));
    claude.expect(Reply::text("Here is the plan."));
    env.once();
    assert_eq!(asked_models(&claude)[2..], [SECOND, FIRST]);
    let handed = last(&claude);
    assert!(handed.messages.len() == 1 && handed.json["output_config"].is_null(), "{:#}", handed.json);
    assert!(handed.last_text().contains("- Remembered “A move to Lisbon is planned”"), "{}", handed.last_text());
    assert_eq!(env.trailer("Model"), format!("{SECOND}, {FIRST}"));
    // It is in trouble: the other one answers, which needs no notice.
    env.receive(CHAT, "and now?");
    claude.expect(outage());
    claude.expect(Reply::text("Now."));
    env.once();
    assert_eq!(sent(&telegram), ["Saturday.", "Here is the plan.", "Now."]);
    env.check_sound();
}

#[test]
fn the_days_are_looked_back_at_by_the_model_that_is_set_for_it_or_else_by_the_other() {
    for is_reached in [true, false] {
        let (_telegram, claude, mut env) = chained(FIRST);
        env.set("MODEL_REFLECT", SECOND).set("REFLECT_AT", "03:30");
        env.receive(CHAT, "the party is on Friday");
        claude.expect(Reply::text("Nice."));
        env.once();
        env.at("2026-11-22T02:30:00Z");
        if !is_reached {
            claude.expect(outage());
        }
        claude.expect(Reply::text(""));
        assert_eq!(env.once()["outcome"], "worked");
        let expected: &[&str] = if is_reached { &[FIRST, SECOND] } else { &[FIRST, SECOND, FIRST] };
        assert_eq!(asked_models(&claude), expected);
        assert_eq!(env.once()["outcome"], "idle");
        env.check_sound();
    }
}

#[test]
fn a_chain_that_cannot_work_is_an_error_and_what_has_no_key_is_told() {
    let mut env = TestEnv::new();
    for (chain, wrong) in [
        ("claude-sonnet-5-5,,offline", "position 2 of the chain"),
        ("claude-sonnet-5-5,claude-sonnet-5-5", "twice"),
        ("offline,claude-sonnet-5-5", "last: it always answers"),
        ("claude sonnet,offline", "the id of a model"),
    ] {
        let ran = env.set("MODEL", chain).wake(&["--once"]);
        ran.assert_fails(78, wrong);
    }
    env.set("MODEL", "claude-sonnet-5-5, offline");
    let check = env.health(&["check", "--json"]).json().to_string();
    assert!(check.contains("no AI model"), "{check}");
    let ran = env.wake(&["--once"]).ok();
    ran.assert_tells("MODEL names claude-sonnet-5-5, but there is no ANTHROPIC_API_KEY");
}
