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

use super::{Done, Outcome, Refusal, Tool, World, remember, task, words};

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
    /// The things; without them all.
    #[serde(default)]
    items: Option<Vec<String>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ToldDone {
    /// What was done, as a task's title would say it.
    task: String,
    /// What was bought, or ticked off.
    #[serde(default)]
    items: Vec<String>,
    /// The list that was spoken of last.
    #[serde(default)]
    list: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Stated {
    /// The fact.
    fact: String,
}

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new("list_add", "Put things on a list.", Effect::Idempotent, add).reaching(Reach::Persists),
        Tool::new("list_show", "Say what is on a list.", Effect::Read, show),
        Tool::new("list_take", "Take things off a list.", Effect::Idempotent, take).reaching(Reach::Persists),
        Tool::new(
            "told_done",
            "Finish the task that a person tells to have done, or take what they bought off the shopping list.",
            Effect::Idempotent,
            told_done,
        )
        .reaching(Reach::Persists),
        Tool::new(
            "remember_stated",
            "Keep what the owner states in passing.",
            Effect::Idempotent,
            |args: &Stated, world| {
                check_owner(world)?;
                if world.taint.is_some() {
                    return Err(Refusal::because("This cycle has read what others wrote. Nothing was done."));
                }
                remember::remember_fact(&args.fact, world)
            },
        ),
    ]
}

fn check_owner(world: &World) -> Result<(), Refusal> {
    match world.foreign_chat() {
        Some(_) => Err(Refusal::because("Only my owner can have me keep that. Nothing was done.")),
        None => Ok(()),
    }
}

/// Returns the list's name for the middle of a sentence.
fn within(list: &str) -> String {
    let mut chars = list.chars();
    chars.next().map(char::to_lowercase).into_iter().flatten().chain(chars.clone()).collect()
}

fn add(args: &Add, world: &World) -> Outcome {
    check_owner(world)?;
    let list = words(&args.list, "list", 80)?;
    let text = world.documents.text(memory::SEMANTIC_MEMORY);
    let origin = remember::origin(world);
    let ChangedList { text, changed, unchanged } = lists::put(&text, &list, &args.items, &origin);
    let name = within(&list);
    let already = match unchanged.is_empty() {
        true => String::new(),
        false => format!("On it already: {}.", unchanged.join(", ")),
    };
    if changed.is_empty() {
        return Ok(Done::told(format!("{already} The {name} is as it was.")));
    }
    let content = format!("On the {name} now: {}. {already}", changed.join(", "));
    Ok(Done {
        content: content.trim().to_owned(),
        receipt: Some(format!("Put {} on the {name}", changed.join(", "))),
        changes: vec![world.documents.stage(memory::SEMANTIC_MEMORY, text)],
        ..Done::default()
    })
}

fn show(args: &Show, world: &World) -> Outcome {
    check_owner(world)?;
    let text = world.documents.text(memory::SEMANTIC_MEMORY);
    let items = lists::items(&text, &args.list).unwrap_or_default();
    if items.is_empty() {
        return Ok(Done::told(format!("Nothing is on the {}.", within(&args.list))));
    }
    let is_theirs = |line| others::are_among(memory::SEMANTIC_MEMORY, &text, world.foreign_chat(), line, line);
    let taint = items.iter().any(|item| is_theirs(item.line)).then(|| others::ORIGIN.to_owned());
    let lines: Vec<_> = items.iter().map(|item| format!("- {}", item.text)).collect();
    Ok(Done { taint, ..Done::told(format!("{}:\n{}", args.list, lines.join("\n"))) })
}

fn take(args: &Take, world: &World) -> Outcome {
    check_owner(world)?;
    let text = world.documents.text(memory::SEMANTIC_MEMORY);
    let name = within(&args.list);
    let on_it = lists::items(&text, &args.list).unwrap_or_default();
    let things = args.items.clone().unwrap_or_else(|| on_it.iter().map(|item| item.text.clone()).collect());
    let ChangedList { text, changed, unchanged } = lists::take(&text, &args.list, &things);
    if changed.is_empty() {
        return Err(Refusal(match args.items {
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
        changes: vec![world.documents.stage(memory::SEMANTIC_MEMORY, text)],
        ..Done::default()
    })
}

fn told_done(args: &ToldDone, world: &World) -> Outcome {
    check_owner(world)?;
    if !args.items.is_empty() {
        let text = world.documents.text(memory::SEMANTIC_MEMORY);
        let lists = args.list.iter().cloned().chain([SHOPPING.to_owned()]).chain(lists::names(&text));
        let mut taken = lists.map(|list| take(&Take { list, items: Some(args.items.clone()) }, world));
        if let Some(taken) = taken.find(Result::is_ok) {
            return taken;
        }
    }
    task::finish_told(&args.task, world)
}
