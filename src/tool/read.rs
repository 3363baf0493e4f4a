//! `memory_read`, `memory_search`, `read_skill`, and the offline mind's `quote`: reading changes nothing.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Done, Effect, Outcome, Refusal, Tool, World, words};
use crate::memory::{
    DocKind,
    search::{self, Hit},
};

/// Lines that one `memory_read` shows at most.
const MAX_LINES: usize = 400;
/// Hits that are quoted about one topic at most.
const MAX_RECALLED: usize = 10;
/// Hits that one search shows at most.
const MAX_HITS: usize = 20;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Read {
    /// A path such as `memory/agent-memory/semantic-memory.md`; without it the files are listed.
    #[serde(default)]
    path: Option<String>,
    /// The first line, from 1.
    #[serde(default)]
    from_line: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Search {
    /// Words to look for.
    query: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Skill {
    /// The skill's name.
    name: String,
}

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new("memory_read", "Read a memory file, archived ones too, or list them.", Effect::Read, read),
        Tool::new("memory_search", "Search all memory files for words; gives file, line and text.", Effect::Read, find),
        Tool::new("read_skill", "Read a skill's instructions before doing what it describes.", Effect::Read, skill),
    ]
}

/// The offline mind's way to answer a question: by quoting.
pub(super) fn quote() -> Tool {
    Tool::new("quote", "Quote stored facts that answer a question.", Effect::Read, |args: &Search, world| {
        let documents = documents(world);
        match search::quote(&borrowed(&documents), &args.query) {
            Some(hits) if !hits.is_empty() => Ok(Done::told(hits.iter().map(quoted).collect::<Vec<_>>().join("\n"))),
            _ => Err(Refusal::because("Nothing that is stored answers this.")),
        }
    })
}

/// The offline mind's answer to "what do you know about …": facts, context and tasks; the log only when these are silent.
pub(super) fn recall() -> Tool {
    Tool::new("recall", "Quote what is stored about a topic.", Effect::Read, |args: &Search, world| {
        let topic = words(&args.query, "query", 500)?;
        let (log, known): (Vec<_>, Vec<_>) =
            documents(world).into_iter().partition(|(path, _)| DocKind::of(path) == DocKind::Log);
        let hits = [known, log]
            .iter()
            .map(|documents| search::search(&borrowed(documents), &topic, MAX_RECALLED))
            .find(|hits| !hits.is_empty());
        Ok(Done::told(match hits {
            Some(hits) => {
                let lines: Vec<_> = hits.iter().map(quoted).collect();
                format!("About {topic}:\n{}", lines.join("\n"))
            }
            None => format!("Nothing is stored about {topic}."),
        }))
    })
}

fn read(args: &Read, world: &World) -> Outcome {
    let Some(path) = &args.path else {
        return Ok(Done::told(world.documents.list().join("\n")));
    };
    let Some(text) = world.documents.get(path) else {
        return Err(Refusal(format!("There is no memory file {path:?}. Without a path the files are listed.")));
    };
    let total = text.lines().count();
    let from = args.from_line.unwrap_or(1).max(1);
    if from > total.max(1) {
        return Err(Refusal(format!("{path} has {total} lines; {from} was asked for.")));
    }
    let shown: Vec<_> = text.lines().skip(from - 1).take(MAX_LINES).collect();
    let end = from - 1 + shown.len();
    let more = if end < total {
        format!("\n(Lines {from} to {end} of {total}; go on with from_line {}.)", end + 1)
    } else {
        String::new()
    };
    Ok(Done::told(format!("{}{more}", shown.join("\n"))))
}

fn find(args: &Search, world: &World) -> Outcome {
    let query = words(&args.query, "query", 500)?;
    let documents = documents(world);
    let hits = search::search(&borrowed(&documents), &query, MAX_HITS);
    if hits.is_empty() {
        return Ok(Done::told("Nothing was found."));
    }
    let lines: Vec<_> = hits.iter().map(|hit| format!("{}:{}: {}", hit.path, hit.line, hit.text)).collect();
    Ok(Done::told(lines.join("\n")))
}

fn skill(args: &Skill, world: &World) -> Outcome {
    match world.skills.iter().find(|skill| skill.name == args.name) {
        Some(skill) => Ok(Done::told(skill.body.clone())),
        None => {
            let names: Vec<_> = world.skills.iter().map(|skill| skill.name.as_str()).collect();
            Err(Refusal(format!("There is no skill {:?}. There are: {}.", args.name, names.join(", "))))
        }
    }
}

/// What is searched: memory, not the standing orders or skills.
fn documents(world: &World) -> Vec<(String, String)> {
    let paths = world.documents.list().into_iter().filter(|path| path.starts_with("memory/"));
    paths.filter_map(|path| world.documents.get(&path).map(|text| (path, text))).collect()
}

fn borrowed(documents: &[(String, String)]) -> Vec<(&str, &str)> {
    documents.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect()
}

fn quoted(hit: &Hit) -> String {
    format!("- {} ({}, line {})", hit.text, hit.path, hit.line)
}
