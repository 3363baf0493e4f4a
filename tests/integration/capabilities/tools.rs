//! Tools: who has which, and which of them ask. Each row gives its call, which the policy judges in a world of each kind.

use std::{
    collections::{BTreeMap, BTreeSet},
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    rc::Rc,
};

use serde_json::Value;

use reveille_base::{
    clock::parse_time,
    types::{ChatRef, Effect, VERB_GROUPS},
};
use reveille_config::Config;
use reveille_memory::view::View;
use reveille_policy::{Decision, Rules};
use reveille_sandbox::{Confinement, Sandbox, exec::Shelter};
use reveille_store::Store;
use reveille_tools::{Assignment, Chat, Documents, Registry, StepInHand, World};

use super::{
    plants,
    table::{Row, agree, read},
};
use crate::{
    support::story::{last, with_claude},
    support::{
        claude::Reply,
        env::{CHAT, NOW, TestEnv},
        openai::{FakeOpenAi, text},
    },
};

const BOB: i64 = 5555;
/// Words that call for each tool that only some words call for.
const ALL_CALLED_FOR: &str = "Run the script, search the web, open the app, what changed in the brain, the project, watch it, \
    step by step the whole week, what can you do, from now on, /memories";
/// Servers' tools are one row.
const SERVERS: &str = "mcp__SERVER__TOOL";

/// What a cycle can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Owner,
    Guest,
    Tainted,
    Job,
    Local,
}

const KINDS: [(Kind, &str); 5] = [
    (Kind::Owner, "owner"),
    (Kind::Guest, "guest"),
    (Kind::Tainted, "tainted cycle"),
    (Kind::Job, "standing job"),
    (Kind::Local, "`/local`"),
];

/// A memory with nothing in it but its templates, and the settings that go with it.
struct Bench {
    env: TestEnv,
    config: Config,
    store: Store,
}

impl Bench {
    fn new() -> Self {
        let env = TestEnv::new();
        env.wake(&["--once"]).ok();
        let settings = [
            ("WORKSPACE_DIR", env.workspace().display().to_string()),
            ("TIMEZONE", "Europe/Berlin".to_owned()),
            ("ALLOWED_CHAT_IDS", format!("{CHAT},{BOB}")),
            ("OWNER_CHAT_ID", CHAT.to_string()),
        ];
        let settings: BTreeMap<String, String> =
            settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let config = Config::from_sources(&settings, None, Some("UTC")).unwrap();
        let store = env.store();
        Self { env, config, store }
    }

    fn world(&self, kind: Kind) -> World {
        let number = if kind == Kind::Guest { BOB } else { CHAT };
        let chat = Chat { id: ChatRef::from_number(number), thread_id: None, reply_to: None };
        let mut world =
            reveille::orders::build_world(&self.config, &self.store, parse_time(NOW).unwrap(), chat).unwrap();
        let scratch = self.config.scratch_dir();
        // A sandbox that is there, whatever this machine has.
        let confinement = Confinement { work_dir: scratch.clone(), ..Confinement::default() };
        world.means.shelter =
            Rc::new(Shelter::for_sandbox(Sandbox::Seatbelt { program: PathBuf::from("/nowhere") }, confinement));
        let rules = || granted(&self.env).with_scratch(&scratch).with_own(&scratch);
        world.means.rules = rules().with_brain(&self.env.brain());
        match kind {
            Kind::Guest => {
                world.memory.documents =
                    Documents::new(&self.env.brain(), Vec::new()).with_view(View::for_chat(chat.id));
                world.means.rules = rules().without_hosts();
            }
            Kind::Tainted => world.cycle.taint = Some("a forwarded message".to_owned()),
            Kind::Job => {
                world.conversation.chat = None;
                world.cycle.assignment = Some(Assignment::Job(None));
            }
            Kind::Local => world.conversation.is_local = true,
            Kind::Owner => {}
        }
        world
    }

    /// The cell that the policy makes of a call.
    fn judged(&self, kind: Kind, tool: &str, call: &str) -> &'static str {
        let registry = registry_with(tool);
        let world = self.world(kind);
        let verdict = registry.judge(tool, call, &world, world.cycle.taint.as_deref());
        match verdict.map(|verdict| verdict.decision) {
            Some(Decision::Allow) => "yes",
            Some(Decision::Ask) => "asks",
            Some(Decision::Deny) | None => "no",
        }
    }
}

/// A person's rules that grant one host.
fn granted(env: &TestEnv) -> Rules {
    let path = env.path("policy.toml");
    std::fs::write(&path, "[network]\nhosts = [\"example.org:443\"]\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let rules = reveille_policy::load(&path, None).rules;
    assert_eq!(rules.refusal(), None);
    rules
}

/// The registry of a model that thinks, or the one that has this tool.
fn registry_with(tool: &str) -> Registry {
    [Registry::for_thinking_model(), Registry::for_orders()]
        .into_iter()
        .find(|registry| registry.get(tool).is_some())
        .unwrap()
}

fn names(registry: &Registry) -> BTreeSet<String> {
    let definitions: Vec<Value> = serde_json::from_str(&registry.render_definitions()).unwrap();
    definitions.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// Which models have a tool: those that think, small ones, and none at all (plain sentences).
fn models_with(tool: &str) -> String {
    let all = [
        ("AI", Registry::for_thinking_model()),
        ("small", Registry::for_small_model()),
        ("none", Registry::for_offline_model()),
    ];
    let with = all.iter().filter(|(_, registry)| registry.get(tool).is_some()).map(|(name, _)| *name);
    with.collect::<Vec<_>>().join(", ")
}

/// The other work of its own that has a tool.
fn own_work_with(tool: &str) -> String {
    let step = StepInHand { plan: "p".to_owned(), step: 1, done: BTreeSet::new() };
    let all = [
        ("step", Assignment::Step(step)),
        ("initiative", Assignment::Initiative { slot: "2026-11-21T09:00".to_owned() }),
        ("reflection", Assignment::Reflection(reveille_memory::reflect::PersonMemoryEdits::default())),
    ];
    if Registry::for_thinking_model().get(tool).is_none() {
        return "no".to_owned();
    }
    let with: Vec<_> = all.iter().filter(|(_, work)| work.allows(tool)).map(|(name, _)| *name).collect();
    match with.len() {
        0 => "no".to_owned(),
        3 => "yes".to_owned(),
        _ => with.join(", "),
    }
}

fn rows() -> Vec<Row> {
    read("Tools")
}

#[test]
fn each_tool_has_a_row_and_each_row_a_tool() {
    let product: BTreeSet<String> =
        [Registry::for_thinking_model(), Registry::for_orders(), Registry::for_small_model()]
            .iter()
            .flat_map(names)
            .collect();
    let table: BTreeSet<String> = rows().into_iter().map(|row| row.name).filter(|name| name != SERVERS).collect();
    let missing: Vec<_> = product.difference(&table).map(|tool| format!("{tool} has no row")).collect();
    let left = table.difference(&product).map(|tool| format!("{tool} is no tool of the product"));
    agree(&missing.into_iter().chain(left).collect::<Vec<_>>());
}

#[test]
fn the_policy_decides_on_each_call_as_its_row_says() {
    let bench = Bench::new();
    let stores: BTreeSet<String> = read("Stores").into_iter().map(|row| row.name).collect();
    let mut differences = Vec::new();
    for row in rows().iter().filter(|row| row.name != SERVERS) {
        let call = row.named("call").pop().unwrap_or_default();
        assert!(call.is_empty() || serde_json::from_str::<Value>(&call).is_ok(), "{call} of {}", row.name);
        let mut expected = vec![("models", models_with(&row.name))];
        expected.extend(KINDS.iter().map(|(kind, name)| (*name, bench.judged(*kind, &row.name, &call).to_owned())));
        expected.push(("other background jobs", own_work_with(&row.name)));
        for (column, cell) in expected {
            if row.cell(column) != cell {
                differences.push(format!("{} {call}: {column} is {cell:?}, not {:?}", row.name, row.cell(column)));
            }
        }
        let keeps = row.cell("keeps it in");
        let is_reading = registry_with(&row.name).get(&row.name).unwrap().effect == Effect::Read;
        if keeps != "nothing" && !keeps.split(", ").all(|store| stores.contains(store)) {
            differences.push(format!("{}: {keeps:?} is no store of the table", row.name));
        }
        if is_reading && keeps != "nothing" {
            differences.push(format!("{} only reads, and keeps something in {keeps:?}", row.name));
        }
    }
    agree(&differences);
}

/// The tools of a request, by their own names: verbs, and others.
fn offered(definitions: &[Value]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for definition in definitions {
        let function = definition.get("function").unwrap_or(definition);
        let name = function["name"].as_str().unwrap();
        match VERB_GROUPS.iter().find(|group| group.name == name) {
            None => drop(found.insert(name.to_owned())),
            Some(group) => {
                let schema = function.get("input_schema").unwrap_or(&function["parameters"]);
                let verbs = schema["properties"]["do"]["enum"].as_array().unwrap();
                found.extend(verbs.iter().map(|verb| group.find_tool(verb.as_str().unwrap()).unwrap().to_owned()));
            }
        }
    }
    assert!(found.contains("task_add"), "{found:?}");
    // Where nothing is withheld there is nothing to read of it.
    found.remove("read_exchange");
    found
}

/// What the table says that a cycle of this kind is offered when everything is called for.
fn expected(column: &str) -> BTreeSet<String> {
    let of_it = rows().into_iter().filter(|row| row.name != SERVERS && row.cell("models").contains("AI"));
    let offered = of_it.filter(|row| row.cell(column) != "no").map(|row| row.name);
    offered.filter(|name| name != "read_exchange").collect()
}

#[track_caller]
fn same(column: &str, offered: &BTreeSet<String>) {
    let expected = expected(column);
    let more = offered.difference(&expected).map(|tool| format!("{column} is offered {tool}, and its row says no"));
    let less = expected.difference(offered).map(|tool| format!("{column} isn't offered {tool}, and its row says so"));
    agree(&more.chain(less).collect::<Vec<_>>());
}

#[test]
fn the_owners_and_a_guests_requests_carry_the_tools_of_their_columns() {
    let (_telegram, claude, mut env) = with_claude();
    env.set("ALLOWED_CHAT_IDS", &format!("{CHAT},{BOB}")).set("OWNER_CHAT_ID", &CHAT.to_string());
    for (chat, column) in [(CHAT, "owner"), (BOB, "guest")] {
        env.receive(chat, ALL_CALLED_FOR);
        claude.expect(Reply::text("Hello."));
        env.once();
        same(column, &offered(last(&claude).json["tools"].as_array().unwrap()));
    }
}

#[test]
fn a_forwarded_message_is_answered_with_the_tools_of_a_tainted_cycle() {
    let (_telegram, claude, env) = with_claude();
    env.wake(&["--once"]).ok();
    env.receive(CHAT, ALL_CALLED_FOR);
    env.forward_queued_from("Eve");
    claude.expect(Reply::text("Hello."));
    env.once();
    same("tainted cycle", &offered(last(&claude).json["tools"].as_array().unwrap()));
}

#[test]
fn a_standing_jobs_request_carries_the_tools_of_its_column() {
    let (_telegram, claude, mut env) = with_claude();
    env.wake(&["--once"]).ok();
    std::fs::create_dir_all(env.brain().join("memory/jobs")).unwrap();
    env.write_memory("memory/jobs/all.md", &format!("---\nwhen: every day at 16:00\n---\n{ALL_CALLED_FOR}\n"));
    env.once();
    env.at("2026-11-21T15:01:00Z");
    claude.expect(Reply::text("Done."));
    env.once();
    same("standing job", &offered(last(&claude).json["tools"].as_array().unwrap()));
}

#[test]
fn a_local_chats_model_here_gets_the_tools_of_its_column() {
    let (_telegram, claude, mut env) = with_claude();
    let here = FakeOpenAi::start_open();
    env.set("MODEL", "claude-sonnet-5-5,openai:test-70b").set("OPENAI_BASE_URL", &here.url());
    env.wake(&["--once"]).ok();
    env.wake(&["say", "/local"]).ok();
    here.expect(text("Hello."));
    env.wake(&["--once", "--say", ALL_CALLED_FOR]).ok();
    let request = here.requests().pop().unwrap();
    same("`/local`", &offered(request["tools"].as_array().unwrap()));
    assert!(claude.requests().is_empty());
}

/// The stores that rows of tools name.
#[test]
fn each_store_that_a_tool_keeps_something_in_is_planted_in() {
    let planted: BTreeSet<&str> = plants::names().into_iter().collect();
    for row in rows() {
        let keeps = row.cell("keeps it in");
        assert!(
            ["nothing", "its server"].contains(&keeps) || keeps.split(", ").any(|store| planted.contains(store)),
            "{}: {keeps}",
            row.name
        );
    }
}
