//! The offline model's tools for remarks of a person: lists of things, finished tasks, and stated facts. Reserved for
//! the owner; remarks in other chats are kept for a model.

use schemars::JsonSchema;
use serde::Deserialize;

use reveille_base::types::Effect;
use reveille_memory as memory;
use reveille_memory::{
    lists::{self, ChangedList},
    others,
};
use reveille_policy::Reach;

use super::{Done, Outcome, Refusal, Tool, World, check_text, remember, task};

/// The name of the shopping list.
const SHOPPING: &str = "Shopping list";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Add {
    /// The list's name, such as `Shopping list`.
    list: String,
    /// The things.
    items: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Show {
    /// The list's name.
    list: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Take {
    /// The list's name.
    list: String,
    /// The things; when left out, all of them.
    #[serde(default)]
    items: Option<Vec<String>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ToldDone {
    /// What was done, worded like a task's title.
    task: String,
    /// What was bought, or ticked off.
    #[serde(default)]
    items: Vec<String>,
    /// The list mentioned last.
    #[serde(default)]
    list: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Stated {
    /// The fact.
    fact: String,
}

pub(super) fn define_tools() -> Vec<Tool> {
    vec![
        Tool::new("list_add", "Put things on a list.", Effect::Idempotent, add_items).with_reach(Reach::Persists),
        Tool::new("list_show", "Say what is on a list.", Effect::Read, show_list),
        Tool::new("list_take", "Take things off a list.", Effect::Idempotent, take_items).with_reach(Reach::Persists),
        Tool::new(
            "told_done",
            "Finish the task that a person says they have done, or take what they bought off the shopping list.",
            Effect::Idempotent,
            finish_or_take,
        )
        .with_reach(Reach::Persists),
        Tool::new(
            "remember_stated",
            "Keep what the owner states in passing.",
            Effect::Idempotent,
            |args: &Stated, world| {
                check_owner(world)?;
                if world.cycle.taint.is_some() {
                    return Err(Refusal::new("This cycle has read untrusted text. Nothing was done."));
                }
                remember::remember_fact(&args.fact, world)
            },
        ),
    ]
}

fn check_owner(world: &World) -> Result<(), Refusal> {
    match world.foreign_chat() {
        Some(_) => Err(Refusal::new("Only my owner can have me keep that. Nothing was done.")),
        None => Ok(()),
    }
}

/// Returns the list's name for the middle of a sentence.
fn lowercase_first_letter(list: &str) -> String {
    let mut chars = list.chars();
    chars.next().map(char::to_lowercase).into_iter().flatten().chain(chars.clone()).collect()
}

fn add_items(args: &Add, world: &World) -> Outcome {
    check_owner(world)?;
    let list = check_text(&args.list, "list", 80)?;
    let text = world.memory.documents.text(memory::SEMANTIC_MEMORY);
    let origin = remember::format_origin(world);
    let ChangedList { text, changed, unchanged } = lists::add_items(&text, &list, &args.items, &origin);
    let name = lowercase_first_letter(&list);
    let already = match unchanged.is_empty() {
        true => String::new(),
        false => format!("Already on it: {}.", unchanged.join(", ")),
    };
    if changed.is_empty() {
        return Ok(Done::from_text(format!("{already} The {name} hasn't changed.")));
    }
    let content = format!("On the {name} now: {}. {already}", changed.join(", "));
    Ok(Done {
        content: content.trim().to_owned(),
        receipt: Some(format!("Put {} on the {name}", changed.join(", "))),
        changes: vec![world.memory.documents.stage(memory::SEMANTIC_MEMORY, text)],
        ..Done::default()
    })
}

fn show_list(args: &Show, world: &World) -> Outcome {
    check_owner(world)?;
    let text = world.memory.documents.text(memory::SEMANTIC_MEMORY);
    let items = lists::list_items(&text, &args.list).unwrap_or_default();
    if items.is_empty() {
        return Ok(Done::from_text(format!("Nothing is on the {}.", lowercase_first_letter(&args.list))));
    }
    let is_theirs =
        |line| others::has_untrusted_lines(memory::SEMANTIC_MEMORY, &text, world.foreign_chat(), line, line);
    let taint = items.iter().any(|item| is_theirs(item.line)).then(|| others::ORIGIN.to_owned());
    let lines: Vec<_> = items.iter().map(|item| format!("- {}", item.text)).collect();
    Ok(Done { taint, ..Done::from_text(format!("{}:\n{}", args.list, lines.join("\n"))) })
}

fn take_items(args: &Take, world: &World) -> Outcome {
    check_owner(world)?;
    let text = world.memory.documents.text(memory::SEMANTIC_MEMORY);
    let name = lowercase_first_letter(&args.list);
    let on_it = lists::list_items(&text, &args.list).unwrap_or_default();
    let things = args.items.clone().unwrap_or_else(|| on_it.iter().map(|item| item.text.clone()).collect());
    let ChangedList { text, changed, unchanged } = lists::remove_items(&text, &args.list, &things);
    if changed.is_empty() {
        return Err(Refusal::new(match args.items {
            Some(_) => {
                format!("There's no list item “{}” on the {name}, so nothing has changed.", unchanged.join("”, “"))
            }
            None => format!("There's no list item on the {name}, so nothing has changed."),
        }));
    }
    let missing = match unchanged.is_empty() {
        true => String::new(),
        false => format!(" Not on it: {}.", unchanged.join(", ")),
    };
    Ok(Done {
        content: format!("Off the {name}: {}.{missing}", changed.join(", ")),
        receipt: Some(format!("Took {} off the {name}", changed.join(", "))),
        changes: vec![world.memory.documents.stage(memory::SEMANTIC_MEMORY, text)],
        ..Done::default()
    })
}

fn finish_or_take(args: &ToldDone, world: &World) -> Outcome {
    check_owner(world)?;
    if !args.items.is_empty() {
        let text = world.memory.documents.text(memory::SEMANTIC_MEMORY);
        let lists = args.list.iter().cloned().chain([SHOPPING.to_owned()]).chain(lists::list_names(&text));
        let mut taken = lists.map(|list| take_items(&Take { list, items: Some(args.items.clone()) }, world));
        if let Some(taken) = taken.find(Result::is_ok) {
            return taken;
        }
    }
    task::finish_named_task(&args.task, world)
}
