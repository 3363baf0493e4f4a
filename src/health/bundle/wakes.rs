//! Describes the last wakes without texts: rounds, tool names, outcomes, tokens and durations.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use reveille_base::types::{Stop, VerbGroup};
use reveille_config::Config;
use reveille_store::{CycleShape, Entry, JournalLine, PaidRequest, Store, StoreError};
use reveille_tools::{
    Registry,
    mcp::client::{self, settings::Settings},
};

use super::is_plain_name;

/// Number of described wakes.
const MAX_WAKES: usize = 50;

/// Describes the last wakes, newest first, and adds unreadable ones to `unread`.
pub(super) fn describe_wakes(config: &Config, store: &Store, unread: &mut Vec<String>) -> Result<Value, StoreError> {
    let servers = client::build_tools(config, &Settings::for_workspace(config));
    let tools = [Registry::for_thinking_model().with_tools(servers), Registry::for_offline_model()];
    let cycles = store.cycle_shapes(MAX_WAKES)?;
    let described = cycles.iter().map(|cycle| {
        let journal = store.history().dated_journal(&cycle.id);
        let requests = store.history().list_cycle_requests(&cycle.id);
        if let Some(error) = journal.as_ref().err().or(requests.as_ref().err()) {
            unread.push(format!("all of wake {}: {error}", cycle.id));
        }
        describe_cycle(cycle, &tools, &journal.unwrap_or_default(), &requests.unwrap_or_default())
    });
    Ok(Value::Array(described.collect()))
}

/// Returns the name if a tool has it. Any other name may be a model's own text, and is replaced by `unknown`.
fn known_name<'a>(name: &'a str, tools: &[Registry]) -> &'a str {
    let is_known = tools.iter().any(|registry| registry.get(name).is_some());
    let is_group = VerbGroup::find_by_name(name).is_some();
    if is_known || is_group { name } else { "unknown" }
}

/// Names the end of a turn, without the model's own words.
fn name_stop(stop: &Stop) -> &'static str {
    match stop {
        Stop::EndTurn => "end_turn",
        Stop::ToolUse => "tool_use",
        Stop::MaxTokens => "max_tokens",
        Stop::ContextExceeded => "context_exceeded",
        Stop::StopSequence => "stop_sequence",
        Stop::PauseTurn => "pause_turn",
        Stop::Refusal(_) => "refusal",
        Stop::Unknown(_) => "unknown",
    }
}

fn describe_cycle(cycle: &CycleShape, tools: &[Registry], journal: &[JournalLine], requests: &[PaidRequest]) -> Value {
    let plain = |text: &str| if is_plain_name(text) { text.to_owned() } else { "?".to_owned() };
    let mut calls: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    let (mut stops, mut kinds): (BTreeMap<&str, u64>, BTreeMap<&str, u64>) = (BTreeMap::new(), BTreeMap::new());
    let mut worked_ms = 0_u64;
    for line in journal {
        let kind = match &line.entry {
            None => "unreadable",
            Some(Entry::Asked) => "requests",
            Some(Entry::Discarded { .. }) => "discarded_turns",
            Some(Entry::Turn { stop, .. }) => {
                *stops.entry(name_stop(stop)).or_default() += 1;
                "turns"
            }
            Some(Entry::Worked { ms }) => {
                worked_ms = worked_ms.saturating_add(*ms);
                continue;
            }
            Some(Entry::Outcome { name, is_error, .. }) => {
                let [good, failed] = calls.entry(known_name(name, tools).to_owned()).or_default();
                *(if *is_error { failed } else { good }) += 1;
                continue;
            }
            Some(Entry::Judged { .. }) => "judged_calls",
            Some(Entry::Decided { .. }) => "decided_calls",
            Some(Entry::Folded { .. }) => "folds",
            Some(Entry::Handed { .. }) => "changes_of_model",
            Some(Entry::ByRule { .. }) => "by_rule",
            Some(_) => continue,
        };
        *kinds.entry(kind).or_default() += 1;
    }
    let calls: Vec<Value> = calls
        .into_iter()
        .map(|(tool, [good, failed])| json!({"tool": tool, "succeeded": good, "failed": failed}))
        .collect();
    let sum = |part: fn(&PaidRequest) -> u64| requests.iter().map(part).fold(0, u64::saturating_add);
    let lasted =
        cycle.started_at.zip(cycle.ended_at).map(|(from, to)| to.signed_duration_since(from).num_milliseconds());
    json!({
        "id": plain(&cycle.id),
        "trigger": plain(&cycle.trigger),
        "state": plain(&cycle.state),
        "model": plain(&cycle.model),
        "work": cycle.work,
        "started_at": cycle.started_at,
        "ended_at": cycle.ended_at,
        "lasted_ms": lasted,
        "worked_ms": worked_ms,
        "resumptions": cycle.tries,
        "was_cut_off": cycle.was_cut_off,
        "has_error": cycle.has_error,
        "has_commit": cycle.has_commit,
        "counts": kinds,
        "ends_of_turns": stops,
        "calls": calls,
        "tokens": {
            "input": sum(|request| request.spent.tokens.input),
            "output": sum(|request| request.spent.tokens.output),
            "cache_read": sum(|request| request.spent.tokens.cache_read),
            "cache_write": sum(|request| request.spent.tokens.cache_write),
        },
        "cost_usd": requests.iter().map(|request| request.spent.cost_usd).fold(0.0, |sum: f64, usd| sum + usd),
    })
}
