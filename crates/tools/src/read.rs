//! `memory_read`, `read_skill`, and the offline model's `quote` and `recall`: reading without changes.

use std::{
    ops::RangeInclusive,
    path::{Path, PathBuf},
};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use reveille_base::{
    types::Effect,
    words::{first_bytes, format_count},
};
use reveille_index::SearchHit;
use reveille_memory as memory;
use reveille_memory::{
    DocKind,
    facts::{Fact, Facts},
    others,
    quoting::{self, QuotedFact},
    unsettled::{Unsettled, find_conflicts},
};

use super::{
    Done, Outcome, Refusal, Tool, Touched, World, check_text,
    search::{self, SEARCH, Searched},
};

/// The name of the tool that reads the memory.
pub const READ: &str = "memory_read";
/// Maximum number of lines shown by one `memory_read`.
const MAX_LINES: usize = 400;
/// Maximum bytes shown by one call, below the limit of an outcome.
const MAX_PAGE_BYTES: usize = 20 * 1024;
/// Maximum number of further files listed for a skill.
const MAX_SKILL_FILES: usize = 50;
/// Maximum number of quoted hits for one topic.
const MAX_RECALLED: usize = 10;
/// Maximum number of facts without a topic.
const MAX_FACTS: usize = 30;

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
struct Quote {
    /// A question.
    query: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Recall {
    /// The topic; without it all facts.
    #[serde(default)]
    query: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Skill {
    /// The skill's name.
    name: String,
    /// One of its further files, such as `references/forms.md`; without it the skill's instructions.
    #[serde(default)]
    path: Option<String>,
    /// The first line, from 1.
    #[serde(default)]
    from_line: Option<usize>,
}

pub(super) fn define_tools() -> Vec<Tool> {
    vec![
        Tool::new(READ, "Read a memory file, archived ones too, or list them.", Effect::Read, read_document)
            .with_targets(|args: &Read| Touched::Documents(args.path.iter().cloned().collect())),
        super::search::define_tool(),
        Tool::new(
            "read_skill",
            "Read a skill's instructions before doing what it describes, and the further files that they name.",
            Effect::Read,
            read_skill,
        )
        .with_targets_in_world(|args: &Value, world| match Skill::deserialize(args) {
            // fault: skills-files-read-whatever
            Ok(args) => Touched::Documents(args.find_document(world).into_iter().collect()),
            // The execution reports the invalid arguments.
            Err(_) => Touched::Nothing,
        }),
    ]
}

/// Added after facts that are only close to the question.
const NEAREST: &str = "You haven't told me exactly that; this is the nearest.";

/// Builds the offline model's tool for questions, which quotes facts.
pub(super) fn define_quote() -> Tool {
    Tool::new("quote", "Quote stored facts that answer a question.", Effect::Read, |args: &Quote, world| {
        let documents = read_documents(world);
        let borrowed: Vec<(&str, &str)> = documents.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        match quoting::quote(&borrowed, &args.query) {
            Some(facts) if !facts.is_empty() => {
                let content = facts.iter().map(format_quote).collect::<Vec<_>>().join("\n");
                Ok(Done { taint: find_taint(&facts, &documents, world), ..Done::from_text(content) })
            }
            _ => {
                let near = quoting::find_nearest_facts(&borrowed, &args.query);
                if near.is_empty() {
                    return Err(Refusal::new("Nothing that is stored answers this."));
                }
                let mut lines: Vec<String> = near.iter().map(format_quote).collect();
                lines.push(NEAREST.to_owned());
                Ok(Done { taint: find_taint(&near, &documents, world), ..Done::from_text(lines.join("\n")) })
            }
        }
    })
}

/// Builds the offline model's tool for "what do you know about …". Quotes facts, context and tasks, and the log only
/// if those are silent. Without a topic, quotes the facts.
pub(super) fn define_recall() -> Tool {
    Tool::new("recall", "Quote what is stored about a topic.", Effect::Read, |args: &Recall, world| {
        let Some(topic) = &args.query else { return Ok(all_facts(world)) };
        let topic = check_text(topic, "query", 500)?;
        let asked = std::slice::from_ref(&topic);
        let found = search::find_hits(world, None, asked, Some("memory"), 3 * MAX_RECALLED);
        let Searched { answers, note, .. } = found.map_err(|error| search::refuse_failed_search(&error))?;
        let (log, known): (Vec<_>, Vec<_>) =
            answers.into_iter().flatten().partition(|hit| DocKind::from_path(&hit.path) == DocKind::Log);
        let mut hits = if known.is_empty() { log } else { known };
        hits.truncate(MAX_RECALLED);
        let mut lines = vec![match hits.is_empty() {
            true => format!("I have no notes about {topic}."),
            false => format!("About {topic}:"),
        }];
        lines.extend(hits.iter().map(|hit| format_hit(hit, world)).chain(note));
        let taint = hits.iter().any(|hit| hit.taint.is_some()).then(|| others::ORIGIN.to_owned());
        Ok(Done { taint, ..Done::from_text(lines.join("\n")) })
    })
}

/// Quotes the known facts, newest first.
fn all_facts(world: &World) -> Done {
    let text = if list_memory_paths(world).any(|path| path == memory::SEMANTIC_MEMORY && !is_kept_back(world, &path)) {
        world.memory.documents.text(memory::SEMANTIC_MEMORY)
    } else {
        String::new()
    };
    let (facts, _) = Facts::parse(&text);
    let all: Vec<&Fact> = facts.iter().map(|(_, fact)| fact).collect();
    if all.is_empty() {
        return Done::from_text("You haven't told me anything to remember yet.");
    }
    let shown: Vec<&&Fact> = all.iter().rev().take(MAX_FACTS).collect();
    let is_theirs =
        |line| others::has_untrusted_lines(memory::SEMANTIC_MEMORY, &text, world.foreign_chat(), line, line);
    let taint = shown.iter().any(|fact| is_theirs(fact.line)).then(|| others::ORIGIN.to_owned());
    let mut lines: Vec<_> = shown.iter().map(|fact| format!("- {}", fact.text)).collect();
    if all.len() > shown.len() {
        lines.push(format!(
            "and {} more: ask me about one of them, as in “what do you know about Anna?”",
            all.len() - shown.len()
        ));
    }
    Done { taint, ..Done::from_text(lines.join("\n")) }
}

fn read_document(args: &Read, world: &World) -> Outcome {
    let Some(path) = &args.path else {
        return Ok(Done::from_text(render_names(world.memory.documents.list())));
    };
    let Some(text) = world.memory.documents.get(path) else {
        return Err(Refusal::new(format!("There is no memory file {path:?}. Without a path the files are listed.")));
    };
    let Page { content, lines } = take_page(path, &text, args.from_line)?;
    let taint = others::has_untrusted_lines(path, &text, world.foreign_chat(), *lines.start(), *lines.end())
        .then(|| others::ORIGIN.to_owned());
    Ok(Done { taint, ..Done::from_text(content) })
}

/// Lists the documents by name. Imported ones are only counted: their names are untrusted, and there may be thousands.
pub(super) fn render_names(all: Vec<String>) -> String {
    let (imported, mut names): (Vec<_>, Vec<_>) = all.into_iter().partition(|name| memory::is_imported(name));
    if !imported.is_empty() {
        let count = format_count(imported.len(), "document");
        names.push(format!("{}/: {count} from other programs, which look_up finds", memory::IMPORTED_DIR));
    }
    names.join("\n")
}

/// A part of a text.
struct Page {
    /// The lines, and how to read on.
    content: String,
    /// The line numbers, from 1.
    lines: RangeInclusive<usize>,
}

/// Returns a range of lines of a text.
fn take_page(name: &str, text: &str, from_line: Option<usize>) -> Result<Page, Refusal> {
    let total = text.lines().count();
    let from = from_line.unwrap_or(1).max(1);
    if from > total.max(1) {
        return Err(Refusal::new(format!("{name} has {total} lines; {from} was asked for.")));
    }
    let mut bytes = 0;
    let fits = |line: &&str| {
        bytes += line.len() + 1;
        bytes <= MAX_PAGE_BYTES
    };
    let shown: Vec<_> = text.lines().skip(from - 1).take(MAX_LINES).take_while(fits).collect();
    let end = from - 1 + shown.len().max(1);
    let shown = match (shown.as_slice(), text.lines().nth(from - 1)) {
        // A single line longer than a page is cut, so that reading on makes progress.
        ([], Some(line)) => {
            format!("{} (cut)", first_bytes(line, MAX_PAGE_BYTES))
        }
        (lines, _) => lines.join("\n"),
    };
    let more = if end < total {
        format!("\n(Lines {from} to {end} of {total}; go on with from_line {}.)", end + 1)
    } else {
        String::new()
    };
    Ok(Page { content: format!("{shown}{more}"), lines: from..=end })
}

/// Returns the source of untrusted text in the quoted facts, if any.
fn find_taint(facts: &[QuotedFact], documents: &[(String, String)], world: &World) -> Option<String> {
    let is_theirs = |fact: &QuotedFact| {
        let document = documents.iter().find(|(path, _)| *path == fact.path);
        document.is_some_and(|(path, text)| {
            others::has_untrusted_lines(path, text, world.foreign_chat(), fact.line, fact.line)
        })
    };
    facts.iter().any(is_theirs).then(|| others::ORIGIN.to_owned())
}

impl Skill {
    /// Returns the document's path in its canonical spelling; `None` for an unknown skill.
    fn find_document(&self, world: &World) -> Option<String> {
        let skill = world.memory.skills.iter().find(|skill| skill.name == self.name)?;
        let file: PathBuf = Path::new(self.path.as_deref().unwrap_or("SKILL.md")).components().collect();
        Some(format!("skills/{}/{}", skill.folder, file.to_str()?))
    }
}

fn read_skill(args: &Skill, world: &World) -> Outcome {
    let Some(skill) = world.memory.skills.iter().find(|skill| skill.name == args.name) else {
        let names: Vec<_> = world.memory.skills.iter().map(|skill| skill.name.as_str()).collect();
        return Err(Refusal::new(format!("There is no skill {:?}. There are: {}.", args.name, names.join(", "))));
    };
    if let Some(path) = &args.path {
        let text = world.memory.documents.skill_file(&skill.folder, path).map_err(Refusal::new)?;
        return Ok(Done::from_text(take_page(path, &text, args.from_line)?.content));
    }
    let mut told = take_page("The skill", skill.body.trim(), args.from_line)?.content;
    if args.from_line.is_none_or(|from| from <= 1) {
        told.extend(skill.compatibility.iter().map(|needs| format!("\n\n(It needs: {needs})")));
        told.push_str(&format_further_files(&world.memory.documents.skill_files(&skill.folder)));
    }
    Ok(Done::from_text(told))
}

/// Lists a skill's files besides its instructions.
fn format_further_files(paths: &[String]) -> String {
    if paths.is_empty() {
        return String::new();
    }
    let shown: Vec<_> = paths.iter().take(MAX_SKILL_FILES).map(|path| format!("- {path}")).collect();
    let more = match paths.len() - shown.len() {
        0 => String::new(),
        more => format!("\n- and {more} more"),
    };
    format!(
        "\n\n(Its further files, each read by its path; a script is text, and isn't run:)\n{}{more}",
        shown.join("\n")
    )
}

/// Returns the searched documents: the memory without standing orders and skills, and without files excluded by rules.
fn read_documents(world: &World) -> Vec<(String, String)> {
    // fault: search-looks-into-rule
    let paths = list_memory_paths(world).filter(|path| !is_kept_back(world, path));
    paths.filter_map(|path| world.memory.documents.get(&path).map(|text| (path, text))).collect()
}

/// Counts the files excluded from a search by the person's rules.
pub(super) fn count_excluded_files(world: &World) -> usize {
    list_memory_paths(world).filter(|path| is_kept_back(world, path)).count()
}

fn list_memory_paths(world: &World) -> impl Iterator<Item = String> {
    world.memory.documents.list().into_iter().filter(|path| path.starts_with("memory/"))
}

/// Returns true if a rule of the person's forbids reading or searching this file.
pub(super) fn is_kept_back(world: &World, path: &str) -> bool {
    let place = world.memory.documents.find_path(path);
    place.is_some_and(|place| [READ, SEARCH].iter().any(|tool| world.means.rules.keeps_back(tool, &place)))
}

fn format_quote(fact: &QuotedFact) -> String {
    let doubt = fact.unsettled.as_ref().map(|conflict| conflict.describe_line(fact.line));
    format_line(&fact.text, &fact.path, fact.line, doubt)
}

/// Formats a hit with its unsettled contradiction.
fn format_hit(hit: &SearchHit, world: &World) -> String {
    let [at, last] = [hit.line, hit.last_line].map(|line| world.memory.documents.to_visible_line(&hit.path, line));
    let conflicts = find_conflicts(&world.memory.documents.text(&hit.path));
    let is_of = |conflict: &&Unsettled| conflict.lines.iter().any(|line| (at..=last).contains(line));
    let doubt = conflicts.iter().find(is_of).map(|conflict| conflict.describe_line(at));
    format_line(&hit.text, &hit.path, at, doubt)
}

fn format_line(text: &str, path: &str, line: usize, doubt: Option<String>) -> String {
    let doubt = doubt.map(|doubt| format!("; not settled: {doubt}")).unwrap_or_default();
    format!("- {text} ({path}, line {line}{doubt})")
}
