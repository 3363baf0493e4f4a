use reveille_config::Autonomy;
use reveille_memory::SEMANTIC_MEMORY;
use reveille_policy::Decision;
use reveille_store::Exchange;

use super::{
    registry::{SMALL_TOOLS, cut_content},
    *,
};

fn definitions(registry: &Registry) -> Vec<Value> {
    serde_json::from_str(&registry.render_definitions()).unwrap()
}

fn names(registry: &Registry) -> Vec<String> {
    definitions(registry).iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_names_and_their_order_are_part_of_the_conversations_prefix() {
    insta::assert_snapshot!(
        names(&Registry::with_standard_tools()).join(" "),
        @"plan reply tell note context_update remember forget task_add task_update task_touch task_done task_move task_list reminder_set reminder_list reminder_move reminder_done memory_read memory_search read_skill read_attachment"
    );
    let offline = names(&Registry::for_offline_model());
    assert_eq!(offline[offline.len() - 3..], ["keep", "quote", "recall"]);
}

/// The definitions of tools that only a model gets.
fn not_standard() -> Vec<Value> {
    let standard = names(&Registry::with_standard_tools());
    let of_its_own = |tool: &Value| {
        let name = tool["name"].as_str().unwrap();
        VerbGroup::find_by_name(name).is_none() && !standard.iter().any(|standard| standard == name)
    };
    Registry::for_thinking_model().filter_visible(ToolView::Owner).catalogue().into_iter().filter(of_its_own).collect()
}

/// The definitions in a cycle with no special need.
fn plain(registry: &Registry) -> Vec<Value> {
    serde_json::from_str(&registry.filter_visible(ToolView::Owner).render_offer("hello", ToRead::default())).unwrap()
}

fn plain_names(registry: &Registry) -> BTreeSet<String> {
    plain(registry).iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// The upper limit for a plain cycle's definitions, in tokens of four bytes. It may only be lowered.
const MAX_PLAIN_TOKENS: usize = 1_500;

#[test]
fn a_plain_cycle_is_offered_its_tools_for_few_tokens_and_the_same_bytes_whatever_is_called_for() {
    let registry = Registry::for_thinking_model();
    let offered = |words: &str, there| registry.filter_visible(ToolView::Owner).render_offer(words, there);
    let plain = offered("hello", ToRead::default());
    let sizes: Vec<_> =
        self::plain(&registry).iter().map(|tool| (tool["name"].clone(), tool.to_string().len())).collect();
    assert!(plain.len().div_ceil(4) <= MAX_PLAIN_TOKENS, "{} bytes: {sizes:?}", plain.len());
    assert_eq!(plain.matches("cache_control").count(), 1);
    let common = plain.strip_suffix(']').unwrap();
    assert!(common.ends_with(r#""cache_control":{"type":"ephemeral","ttl":"1h"}}"#), "{common}");
    for called_for in [
        offered("run a script in ~/x and search the web", ToRead::default()),
        offered("", ToRead { withheld: true, ..ToRead::default() }),
    ] {
        assert!(called_for.len() > plain.len() && called_for.starts_with(common), "{called_for}");
    }
    assert!(
        !Registry::for_thinking_model()
            .written_out()
            .filter_visible(ToolView::Owner)
            .render_offer("hello", ToRead::default())
            .contains("cache_control")
    );
}

#[test]
fn a_group_tells_each_verb_and_each_argument_that_its_tools_take() {
    let registry = Registry::for_thinking_model();
    // Including the tools that only some words bring in.
    let all = registry.filter_visible(ToolView::Owner).render_offer("one step after the other", ToRead::default());
    let all: Vec<Value> = serde_json::from_str(&all).unwrap();
    let groups: Vec<Value> =
        all.into_iter().filter(|tool| VerbGroup::find_by_name(tool["name"].as_str().unwrap()).is_some()).collect();
    assert_eq!(groups.len(), reveille_base::types::VERB_GROUPS.len());
    for tool in &groups {
        let group = VerbGroup::find_by_name(tool["name"].as_str().unwrap()).unwrap();
        let described = tool["description"].as_str().unwrap();
        let mut named: BTreeSet<&str> = BTreeSet::from([reveille_base::types::VERB]);
        for (verb, of) in group.verbs {
            let said = described.lines().find(|line| line.starts_with(&format!("{verb}: "))).unwrap();
            let takes = registry.get(of).unwrap().schema["properties"].as_object().unwrap();
            for argument in takes.keys() {
                let is_said = said.contains(&format!("`{argument}`"));
                assert!(is_said, "{verb} of {} doesn't tell {argument}", group.name);
                named.insert(argument);
            }
        }
        let properties = tool["input_schema"]["properties"].as_object().unwrap();
        assert_eq!(properties.keys().map(String::as_str).collect::<BTreeSet<_>>(), named);
        assert_eq!(tool["input_schema"]["properties"]["do"]["enum"].as_array().unwrap().len(), group.verbs.len());
    }
    let work = Assignment::Reflection(reveille_memory::reflect::PersonMemoryEdits::default());
    let back = registry.filter_visible(ToolView::Owner).render_job_offer(&work, "", ToRead::default());
    let back: Vec<Value> = serde_json::from_str(&back).unwrap();
    let update = back.iter().find(|tool| tool["name"] == "memory_update").unwrap();
    assert_eq!(update["input_schema"]["properties"]["do"]["enum"], json!(["remember", "forget"]));
    assert!(!update.to_string().contains("over_theirs"), "{update}");
}

/// A call as a model makes it, and the same one by the tool's own name.
const SPELLED: [(&str, &str, &str, &str); 5] = [
    ("tasks", r#"{"do":"add","title":"Sail"}"#, "task_add", r#"{"title":"Sail"}"#),
    ("reminders", r#"{"do":"done","reminder":"x"}"#, "reminder_done", r#"{"reminder":"x"}"#),
    ("memory_update", r#"{"do":"note","text":"x"}"#, "note", r#"{"text":"x"}"#),
    ("memory_update", r#"{"do":"remember","fact":"x"}"#, "remember", r#"{"fact":"x"}"#),
    ("look_up", r#"{"do":"file","path":"claude.md"}"#, "memory_read", r#"{"path":"claude.md"}"#),
];

#[test]
fn a_verb_is_judged_as_its_tool_by_rules_that_name_either() {
    let registry = Registry::for_thinking_model();
    for (group, call, tool, input) in SPELLED {
        assert_eq!(unwrap_call(group, call), Some((tool.to_owned(), input.to_owned())));
        let wrapped = json!({"name": group, "arguments": serde_json::from_str::<Value>(call).unwrap()});
        let wrapped = unwrap_call("use_tool", &wrapped.to_string()).unwrap();
        assert_eq!((wrapped.0.as_str(), wrapped.1.as_str()), (tool, input), "by use_tool, too");
        let decided = |pattern: &str, decision: &str| {
            let mut scene = Scene::new();
            let rule = format!("[[rule]]\ntool = {pattern:?}\ndecision = {decision:?}\nmatch = [{pattern:?}]");
            scene.world.means.rules = reveille_policy::Rules::parse(&rule).unwrap();
            registry.judge(tool, input, &scene.world, None).unwrap().decision
        };
        for pattern in [tool, group, "*"] {
            assert_eq!(decided(pattern, "deny"), Decision::Deny, "{pattern} for {tool}");
        }
    }
    // A pattern that is older than the groups keeps its meaning.
    let mut scene = Scene::new();
    let rule = "[[rule]]\ntool = \"memory_*\"\ndecision = \"deny\"\nmatch = [\"memory_read\"]";
    scene.world.means.rules = reveille_policy::Rules::parse(rule).unwrap();
    let judged = |tool: &str| registry.judge(tool, r#"{"fact":"x"}"#, &scene.world, None).unwrap().decision;
    assert_eq!((judged("remember"), judged("forget")), (Decision::Allow, Decision::Allow));
    let ask = "[[rule]]\ntool = \"memory_update\"\ndecision = \"ask\"\nmatch = [\"memory_update\"]";
    let said = reveille_policy::Rules::parse(ask).unwrap().describe_rules();
    assert_eq!(said, ["line 1: ask tool memory_update; note, context_update never ask, whatever it says"]);
}

#[test]
fn a_call_without_a_verb_is_told_which_there_are() {
    let refused =
        |input: &str| Registry::for_thinking_model().call("tasks", input, &Scene::new().world).unwrap_err().why;
    for input in ["", "{}", r#"{"title":"x"}"#, r#"{"do":"sing"}"#, r#"{"do":"add","do":"done"}"#] {
        assert_eq!(
            refused(input),
            "tasks needs one `do`: add, update, touch, done, move. Nothing was done.",
            "{input}"
        );
    }
}

#[test]
fn every_definition_is_what_the_api_takes() {
    let mut seen = BTreeSet::new();
    for tool in definitions(&Registry::for_offline_model()).into_iter().chain(not_standard()) {
        let name = tool["name"].as_str().unwrap();
        assert!((1..=64).contains(&name.len()), "{name}");
        assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)), "{name}");
        assert!(seen.insert(name.to_owned()), "{name} is there twice");
        assert!(tool["description"].as_str().unwrap().len() >= 20, "{name}");
        let schema = &tool["input_schema"];
        assert_eq!(schema["type"], "object", "{name}");
        assert_eq!(schema["additionalProperties"], false, "{name}");
        assert!(schema.get("$schema").is_none() && schema.get("title").is_none(), "{name}");
        let text = schema.to_string();
        assert!(!text.contains("$ref") && !text.contains("$defs"), "{name}: {text}");
        for (property, described) in schema["properties"].as_object().into_iter().flatten() {
            assert!(
                described["description"].as_str().is_some_and(|text| text.len() > 5),
                "{name}.{property}: {described}"
            );
        }
    }
}

#[test]
fn the_definitions_are_the_same_to_the_byte_each_time() {
    assert_eq!(
        Registry::with_standard_tools().render_definitions(),
        Registry::with_standard_tools().render_definitions()
    );
}

/// Words in backquotes that could be tools: lower case letters and underscores.
fn quoted_names(text: &str) -> BTreeSet<String> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted
        .filter(|word| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_standing_orders_name_every_tool_and_no_other() {
    let orders = quoted_names(include_str!("../../../../claude.md"));
    assert_eq!(orders, plain_names(&Registry::with_standard_tools()));
}

#[test]
fn skills_name_only_tools_and_files_that_there_are() {
    let tools = plain_names(&Registry::with_standard_tools());
    let templates = reveille_memory::templates::list_files();
    let skills: Vec<_> = templates.iter().filter(|(path, _)| path.ends_with("/SKILL.md")).collect();
    assert_eq!(skills.len(), 3);
    for (path, text) in &skills {
        let named = quoted_names(text);
        let with_underscore = named.iter().filter(|name| name.contains('_'));
        let unknown: Vec<_> = with_underscore.filter(|name| !tools.contains(*name)).collect();
        assert_eq!(unknown, [""; 0], "{path}");
        assert!(named.iter().any(|name| tools.contains(name)), "{path} makes use of a tool");
        let quoted = text.split('`').skip(1).step_by(2);
        for file in quoted.filter(|quoted| quoted.contains('/') || quoted.ends_with(".md")) {
            assert!(templates.iter().any(|(other, _)| *other == file), "{path} names {file}, which isn't there");
        }
    }
}

#[test]
fn anything_wrong_with_a_call_is_a_refusal_that_helps() {
    let scene = Scene::new();
    let registry = Registry::with_standard_tools();
    let refused = |name: &str, input: &str| registry.call(name, input, &scene.world).unwrap_err().why;
    assert!(refused("run_shell", "{}").starts_with("There is no tool named \"run_shell\". There are: plan, reply,"));
    let unknown = Registry::for_thinking_model().call("run_shell", "{}", &scene.world).unwrap_err().why;
    let listed: Vec<&str> = unknown.split_once("There are: ").unwrap().1.trim_end_matches('.').split(", ").collect();
    assert_eq!(listed.len(), listed.iter().collect::<BTreeSet<_>>().len(), "{unknown}");
    for input in
        ["", "null", "[]", "{", "\"text\"", r#"{"text":1}"#, r#"{"text":"a","more":1}"#, r#"{"text":"a","text":"b"}"#]
    {
        let why = refused("reply", input);
        assert!(
            why.starts_with("The arguments don't fit reply: ") && why.ends_with("Nothing was done."),
            "{input}: {why}"
        );
    }
    assert!(registry.call("task_list", "", &scene.world).is_ok(), "no arguments at all are an empty object");
    assert!(refused("reminder_list", r#"{"x":1}"#).contains("unknown field"));
}

#[test]
fn a_long_outcome_is_cut_at_a_line_and_said_to_be() {
    let facts = "- a fact that is kept for good\n".repeat(300);
    let scene = Scene::new().with("memory/agent-memory/semantic-memory.md", &"- x\n".repeat(401));
    let long = "ü".repeat(200);
    let scene = scene.with("memory/project-memory/context.md", &format!("{long}\n").repeat(300));
    let done = scene.done("memory_read", &json!({"path": "memory/project-memory/context.md"}));
    assert!(done.content.len() <= MAX_OUTCOME_BYTES && done.content.contains("; go on with from_line "));
    let cut_off = cut_content(format!("{long}\n").repeat(300));
    assert!(cut_off.len() <= MAX_OUTCOME_BYTES + 100);
    assert!(cut_off.contains("\n(Cut here: ") && cut_off.ends_with("Ask for a part of it.)"));
    assert_eq!(cut_content(facts.clone()), facts);
}

#[test]
fn risk_and_effect_are_declared_for_the_policy() {
    let registry = Registry::for_offline_model();
    let of = |effect| -> Vec<_> {
        registry.tools.iter().filter(|tool| tool.effect == effect).map(|tool| tool.name.as_ref()).collect()
    };
    assert_eq!(of(Effect::Staged), ["reply", "reminder_set", "reminder_move", "undo_last"]);
    assert_eq!(of(Effect::Once), [] as [&str; 0]);
    assert_eq!(
        of(Effect::Read),
        [
            "task_list",
            "reminder_list",
            "memory_read",
            "memory_search",
            "read_skill",
            "read_attachment",
            "list_show",
            "quote",
            "recall"
        ]
    );
    let risky: Vec<_> =
        registry.tools.iter().filter(|tool| tool.risk > Risk::Safe).map(|tool| tool.name.as_ref()).collect();
    assert_eq!(risky, ["tell"]);
    assert!(registry.get("reply").is_some() && registry.get("nothing").is_none());
}

#[test]
fn what_asks_stands_in_a_table() {
    let mut scene = Scene::new();
    let registry = Registry::for_offline_model();
    let asking = |world: &World, taint: Option<&str>| -> Vec<String> {
        let asks = |tool: &&Tool| tool.judge("{}", world, taint).decision != Decision::Allow;
        registry.tools.iter().filter(asks).map(|tool| tool.name.to_string()).collect()
    };
    assert_eq!(asking(&scene.world, None), [""; 0]);
    let after_others = asking(&scene.world, Some("https://example.org")).join(" ");
    insta::assert_snapshot!(
        after_others,
        @"tell note context_update forget task_add task_update task_touch task_done task_move reminder_set reminder_move reminder_done list_add list_take told_done undo_last call_yourself"
    );
    scene.world.means.autonomy = Autonomy::AskAll;
    insta::assert_snapshot!(
        asking(&scene.world, None).join(" "),
        @"tell remember forget task_add task_update task_touch task_done task_move reminder_set reminder_move reminder_done list_add list_take told_done remember_stated undo_last call_yourself"
    );
}

#[test]
fn what_is_learnt_after_reading_others_is_kept_in_quarantine_until_it_is_said_again() {
    let mut scene = Scene::new();
    scene.world.cycle.taint = Some("https://example.org".to_owned());
    let told = scene.act("remember", &json!({"fact": "The bank's number is 0900", "topic": "Home"}));
    assert!(told.content.contains("Unconfirmed") && told.content.contains("example.org"), "{}", told.content);
    let kept = scene.world.memory.documents.text(SEMANTIC_MEMORY);
    assert!(kept.contains("## Unconfirmed\n- The bank's number is 0900"), "{kept}");
    scene.world.cycle.taint = None;
    scene.act("remember", &json!({"fact": "the bank's number is 0900", "topic": "Home"}));
    let known = scene.world.memory.documents.text(SEMANTIC_MEMORY);
    assert!(known.contains("## Home\n- the bank's number is 0900") && known.matches("0900").count() == 1, "{known}");
}

#[test]
fn what_its_person_said_is_known_whatever_else_the_cycle_has_read() {
    let mut scene = Scene::new();
    scene.world.cycle.taint = Some("a program's output".to_owned());
    scene.world.conversation.own_words = vec!["My boiler is a Vaillant.\nWhat does the sensor say?".to_owned()];
    let entry = |text: &str, taint: Option<&str>| Exchange {
        from: Some("A".to_owned()),
        text: text.to_owned(),
        taint: taint.map(str::to_owned),
        ..Exchange::default()
    };
    scene.world.conversation.exchanges = vec![
        entry("I like green tea", None),
        entry("I pay Eve", Some("a forwarded message")),
        Exchange { from: None, ..entry("I sing well", None) },
    ];
    for (fact, is_known) in [
        ("The owner's boiler is a Vaillant", true),
        ("Owner likes green tea", true),
        ("The sensor says 40", false),
        ("I pay Eve", false),
        ("I sing well", false),
    ] {
        let told = scene.act("remember", &json!({"fact": fact, "topic": "Home"}));
        assert_eq!(!told.content.contains("Unconfirmed"), is_known, "{fact}: {}", told.content);
    }
    let kept = scene.world.memory.documents.text(SEMANTIC_MEMORY);
    assert!(kept.starts_with("## Home\n- The owner's boiler is a Vaillant <!-- wake"), "{kept}");
}

#[test]
fn what_never_asks_is_what_the_policy_takes_for_that() {
    let never: BTreeSet<String> = [Registry::for_thinking_model(), Registry::for_offline_model()]
        .iter()
        .flat_map(|registry| registry.tools.iter().filter(|tool| tool.is_free).map(|tool| tool.name.to_string()))
        .collect();
    assert_eq!(never, reveille_policy::FREE.map(str::to_owned).into());
}

#[test]
fn a_small_model_has_few_tools_and_none_that_does_harm_unasked() {
    let small = Registry::for_small_model();
    assert_eq!(small.tools.len(), SMALL_TOOLS.len());
    for tool in &small.tools {
        let is_harmless = tool.risk == Risk::Safe && !tool.is_owners && tool.reach != Reach::Leaves;
        assert!(is_harmless && !small.is_acting(&tool.name), "{}", tool.name);
    }
    assert!(small.render_definitions().len() < 6_000, "{}", small.render_definitions().len());
}
