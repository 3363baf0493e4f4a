//! `remember` and `forget`: single facts in the semantic memory, each with its origin.
//!
//! A tainted cycle may learn facts that an outsider planted. Such facts go into quarantine, under a heading of their
//! own, until a person or an untainted cycle repeats them. Facts stated literally by the person are trusted.

use schemars::JsonSchema;
use serde::Deserialize;

use reveille_base::types::Effect;
use reveille_memory as memory;
use reveille_memory::{
    claim::{is_contradiction, is_fact_stated},
    facts::{self, Added, FactError, Forgotten},
    others::{self, UNCONFIRMED},
    reflect, view,
};
use reveille_policy::Reach;

use super::{Done, Outcome, Refusal, Tool, World, check_text, shorten_text};

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
    /// Words found only in the fact to forget.
    fact: String,
}

pub(super) fn define_tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "remember",
            "Keep a fact for good: people, preferences, decisions, things you were asked to remember. Not what is true only today.",
            Effect::Idempotent,
            remember,
        ),
        Tool::new(
            "forget",
            "Remove one fact that is wrong, or that you were asked to forget. Git keeps the history.",
            Effect::Idempotent,
            forget_fact,
        )
        .with_reach(Reach::Persists),
    ]
}

/// Stores a fact without a topic.
pub(super) fn remember_fact(fact: &str, world: &World) -> Outcome {
    remember(&Remember { fact: fact.to_owned(), topic: None }, world)
}

fn remember(args: &Remember, world: &World) -> Outcome {
    let fact = check_text(&args.fact, "fact", 1_000)?;
    if world.person_edits().is_some_and(|by_hand| by_hand.took_out(&fact)) {
        return Err(Refusal::new("Your person took that out of your memory. Nothing was done.".to_owned()));
    }
    let mut topic = args.topic.as_deref().map(str::trim).filter(|topic| !topic.is_empty());
    let mut text = world.memory.documents.text(memory::SEMANTIC_MEMORY);
    let (mut content, mut receipt) = (format!("Remembered: {fact}"), format!("Remembered “{}”", shorten_text(&fact)));
    let mut origin = format_origin(world);
    // fault: cycle-learns-others-known
    if let Some(taint) = world.cycle.taint.as_ref().filter(|_| !is_said_by_person(&fact, world)) {
        topic = Some(UNCONFIRMED);
        content = format!(
            "Kept under “{UNCONFIRMED}”, because this cycle has read untrusted text ({taint}): {fact}\nIt counts as known once your \
             person, or a wake that has read nothing of others, says it again. If your person said it in this conversation, give it in \
             their very words."
        );
        receipt = format!("Kept “{}” as unconfirmed", shorten_text(&fact));
        origin = format!("{origin} after {taint}");
    } else if let Some(rest) = remove_quarantined_copy(&text, &fact) {
        text = rest;
    }
    let new = match facts::add(&text, topic, &fact, &origin).map_err(Refusal::new)? {
        Added::New { text, .. } => text,
        Added::Known { topic, .. } if topic == UNCONFIRMED => {
            return Ok(Done::from_text(format!(
                "That is kept under “{UNCONFIRMED}” already. It counts as known once your person says it in a message of its own, or \
                 moves the line elsewhere."
            )));
        }
        Added::Known { topic, .. } => return confirm_known_fact(&text, (&topic, &fact), &origin, world),
    };
    if let Some(other) = find_contradicted_fact(&text, &fact, world) {
        content.push_str(&format!(
            "\nThat differs from what I knew: “{other}”. Both are kept; if the old one no longer holds, say “forget that {other}”."
        ));
    }
    Ok(Done {
        content,
        receipt: Some(receipt),
        changes: vec![world.memory.documents.stage(memory::SEMANTIC_MEMORY, new)],
        ..Done::default()
    })
}

/// Handles the repetition of a known fact. It settles an open contradiction, or makes the fact newer than a contradicting one.
fn confirm_known_fact(text: &str, (topic, fact): (&str, &str), origin: &str, world: &World) -> Outcome {
    const KNOWN: &str = "I already have that in my notes.";
    // A reflection settles nothing, and neither does untrusted text.
    if world.conversation.chat.is_none() || world.cycle.taint.is_some() && !is_said_by_person(fact, world) {
        return Ok(Done::from_text(KNOWN));
    }
    if let Some((settled, forgotten)) = reflect::settle_dispute(text, fact, &world.unasked.told_keys) {
        let told: Vec<String> = forgotten.iter().map(|other| format!("\nForgotten: {other}")).collect();
        let quoted: Vec<String> = forgotten.iter().map(|other| format!("“{}”", shorten_text(other))).collect();
        return Ok(Done {
            content: format!("Settled: {fact}{}", told.concat()),
            receipt: Some(format!("Settled that “{}”; forgot {}", shorten_text(fact), quoted.join(", "))),
            changes: vec![world.memory.documents.stage(memory::SEMANTIC_MEMORY, settled)],
            ..Done::default()
        });
    }
    let (known, _) = facts::Facts::parse(text);
    let same = known.iter().map(|(_, known)| known).find(|known| facts::is_same(&known.text, fact));
    let newer = same.and_then(|same| {
        let other = find_contradicted_fact(text, &same.text, world)?;
        let of_other = known.iter().map(|(_, known)| known).find(|known| known.text == other)?;
        // Wake ids begin with their times. A line written by a person has no wake and isn't moved.
        let stated_at = |fact: &facts::Fact| {
            let wake = fact.origin.as_deref()?.strip_prefix("wake ")?;
            Some((wake.split(['-', ' ']).next().unwrap_or_default().to_owned(), fact.line))
        };
        (stated_at(same)? < stated_at(of_other)?).then_some((same.text.clone(), other))
    });
    let Some((same, other)) = newer else { return Ok(Done::from_text(KNOWN)) };
    let without = facts::forget(text, &same).map_err(Refusal::new)?.text;
    let topic = Some(topic).filter(|topic| !topic.is_empty());
    let Added::New { text: new, .. } = facts::add(&without, topic, &same, origin).map_err(Refusal::new)? else {
        return Ok(Done::from_text(KNOWN));
    };
    Ok(Done {
        content: format!(
            "Noted: {same} — that holds now. I still have “{other}” from before; if that's over, say “forget that {other}”."
        ),
        receipt: Some(format!("Noted that “{}” holds now", shorten_text(&same))),
        changes: vec![world.memory.documents.stage(memory::SEMANTIC_MEMORY, new)],
        ..Done::default()
    })
}

/// Returns true if the chat's person has stated the fact in their own words.
fn is_said_by_person(fact: &str, world: &World) -> bool {
    let before = world.conversation.exchanges.iter().filter(|entry| entry.from.is_some() && entry.taint.is_none());
    let mut said = world.conversation.own_words.iter().chain(before.map(|entry| &entry.text));
    said.any(|text| is_fact_stated(text, fact))
}

/// Returns a confirmed fact that contradicts this one. Possibly untrusted facts are left out.
fn find_contradicted_fact(text: &str, fact: &str, world: &World) -> Option<String> {
    let (facts, _) = facts::Facts::parse(text);
    let is_known = |line| !others::has_untrusted_lines(memory::SEMANTIC_MEMORY, text, world.foreign_chat(), line, line);
    let known = facts.iter().map(|(_, known)| known);
    known
        .filter(|known| is_contradiction(&known.text, fact) && is_known(known.line))
        .last()
        .map(|known| known.text.clone())
}

/// Returns the memory without the quarantined copy of this fact; `None` if there is no copy.
fn remove_quarantined_copy(text: &str, fact: &str) -> Option<String> {
    let (facts, _) = facts::Facts::parse(text);
    let (_, kept) = facts.iter().find(|(topic, kept)| *topic == UNCONFIRMED && facts::is_same(&kept.text, fact))?;
    facts::forget(text, &kept.text).ok().map(|forgotten| forgotten.text)
}

fn forget_fact(args: &Forget, world: &World) -> Outcome {
    let query = check_text(&args.fact, "fact", 1_000)?;
    let text = world.memory.documents.text(memory::SEMANTIC_MEMORY);
    let Forgotten { text: new, fact } = match facts::forget(&text, &query) {
        Ok(forgotten) => forgotten,
        Err(error) => return explain_failed_forget(&text, &error, world),
    };
    if world.person_edits().is_some_and(|by_hand| by_hand.has_written(&fact)) {
        return Err(Refusal::new("Your person wrote that line by hand, so it stays. Nothing was done.".to_owned()));
    }
    let is_theirs =
        others::has_untrusted_lines(memory::SEMANTIC_MEMORY, &text, world.foreign_chat(), fact.line, fact.line);
    let fact = fact.text;
    Ok(Done {
        taint: is_theirs.then(|| others::ORIGIN.to_owned()),
        content: format!("Forgotten: {fact}"),
        receipt: Some(format!("Forgot “{}”", shorten_text(&fact))),
        changes: vec![world.memory.documents.stage(memory::SEMANTIC_MEMORY, new)],
        ..Done::default()
    })
}

/// Explains why nothing was forgotten. The explanation names similar facts, and taints the cycle if any is quarantined.
fn explain_failed_forget(text: &str, error: &FactError, world: &World) -> Outcome {
    let (FactError::NotFound { similar: named, .. } | FactError::Ambiguous { candidates: named, .. }) = error else {
        return Err(Refusal::new(error));
    };
    let (facts, _) = facts::Facts::parse(text);
    let is_theirs = |fact: &facts::Fact| {
        named.contains(&fact.text)
            && others::has_untrusted_lines(memory::SEMANTIC_MEMORY, text, world.foreign_chat(), fact.line, fact.line)
    };
    if !facts.iter().any(|(_, fact)| is_theirs(fact)) {
        return Err(Refusal::new(error));
    }
    let taint = Some(others::ORIGIN.to_owned());
    Ok(Done { content: error.to_string(), is_failure: true, taint, ..Done::default() })
}

/// Returns the origin of a fact: wake, message, and the chat unless it is the owner's.
pub(super) fn format_origin(world: &World) -> String {
    let message =
        world.conversation.open_messages.last().map(|message| format!(" message {message}")).unwrap_or_default();
    format!("wake {}{message}{}", world.cycle.id, view::format_origin(world.foreign_chat()))
}
