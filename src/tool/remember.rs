//! `remember` and `forget`: single facts in the semantic memory, each with where it came from.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Done, Effect, Outcome, Refusal, Tool, World, brief, words};
use crate::memory::{
    self,
    facts::{self, Added, Forgotten},
    view,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Remember {
    /// One fact, in a sentence that can be understood by itself.
    fact: String,
    /// The section it belongs to, such as `Family` or `Home`.
    #[serde(default)]
    topic: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Forget {
    /// Words that only the fact to be forgotten has.
    fact: String,
}

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "remember",
            "Keep a fact for good: people, preferences, decisions, things that were asked to be remembered. Not what is true for today \
             only (that is `note`).",
            Effect::Idempotent,
            remember,
        ),
        Tool::new(
            "forget",
            "Remove one fact that is wrong or was asked to be forgotten. Git keeps the history.",
            Effect::Idempotent,
            forget,
        ),
    ]
}

fn remember(args: &Remember, world: &World) -> Outcome {
    let fact = words(&args.fact, "fact", 1_000)?;
    let topic = args.topic.as_deref().map(str::trim).filter(|topic| !topic.is_empty());
    let text = world.documents.text(memory::SEMANTIC_MEMORY);
    let added = facts::add(&text, topic, &fact, &origin(world)).map_err(Refusal::because)?;
    let Added::New { text: new, .. } = added else {
        return Ok(Done::told("That is remembered already."));
    };
    Ok(Done {
        content: format!("Remembered: {fact}"),
        receipt: Some(format!("Remembered “{}”", brief(&fact))),
        changes: vec![world.documents.stage(memory::SEMANTIC_MEMORY, new)],
        ..Done::default()
    })
}

fn forget(args: &Forget, world: &World) -> Outcome {
    let query = words(&args.fact, "fact", 1_000)?;
    let text = world.documents.text(memory::SEMANTIC_MEMORY);
    let Forgotten { text: new, fact } = facts::forget(&text, &query).map_err(Refusal::because)?;
    let fact = fact.text;
    Ok(Done {
        content: format!("Forgotten: {fact}"),
        receipt: Some(format!("Forgot “{}”", brief(&fact))),
        changes: vec![world.documents.stage(memory::SEMANTIC_MEMORY, new)],
        ..Done::default()
    })
}

/// Which wake and which message a fact comes from, and for which chat it is if not for the owner.
fn origin(world: &World) -> String {
    let message = world.open_messages.last().map(|message| format!(" message {message}")).unwrap_or_default();
    format!("wake {}{message}{}", world.wake_id, view::origin(world.foreign_chat()))
}
