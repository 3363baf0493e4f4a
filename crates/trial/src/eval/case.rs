//! A case as its file describes it: the memory, the messages, the answers of tools that act outside, and the expectations. `docs/EVAL.md`
//! is the manual.

use std::{
    collections::BTreeMap,
    path::{Component, Path},
};

use chrono::{DateTime, Utc};
use serde::Deserialize;

use reveille_base::{clock::parse_time, zone::Tz};
use reveille_config::Autonomy;
use reveille_memory as memory;
use reveille_tools::Registry;

/// A case.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvalCase {
    /// Its topic, in a sentence.
    pub about: String,
    /// Its start time in RFC 3339.
    now: String,
    /// The person's time zone.
    #[serde(default = "utc")]
    timezone: String,
    /// The number of the owner's chat; 0 is the terminal.
    #[serde(default)]
    pub(super) owner: i64,
    /// The setting `AUTONOMY`: 0, 1 or 2.
    #[serde(default = "smart")]
    autonomy: u8,
    /// The text of `policy.toml`.
    #[serde(default)]
    pub(super) policy: String,
    /// Files of the memory at the start. They replace the templates' files of the same names.
    #[serde(default)]
    pub(super) memory: BTreeMap<String, String>,
    /// The messages, in order.
    pub(super) said: Vec<CaseMessage>,
    /// The answers of tools that act outside.
    #[serde(default)]
    pub(super) answers: Vec<CaseAnswer>,
    /// The turns of a scripted model; empty for a real one.
    #[serde(default)]
    pub(super) turns: Vec<CaseTurn>,
    /// The expectations.
    pub(super) expect: Expected,
}

/// A message, and the wake after it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CaseMessage {
    /// The text; empty if only time passes.
    #[serde(default)]
    pub(super) text: String,
    /// The time in RFC 3339; by default that of the previous message.
    #[serde(default)]
    pub(super) at: Option<String>,
    /// The number of its chat; 0 is the terminal.
    #[serde(default)]
    pub(super) chat: i64,
    /// The sender.
    #[serde(default)]
    pub(super) from: Option<String>,
    /// The original author of a forwarded message.
    #[serde(default)]
    pub(super) forwarded_from: Option<String>,
    /// The quoted text of a reply.
    #[serde(default)]
    pub(super) quoted: Option<String>,
    /// `true` if a wake follows before the next message.
    #[serde(default = "yes")]
    pub(super) wake: bool,
}

/// The answer of a tool that acts outside.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CaseAnswer {
    pub(super) tool: String,
    /// The arguments that get this answer, once: a table, or a text of JSON. `None` answers any arguments, any number of times.
    #[serde(default)]
    pub(super) input: Option<toml::Value>,
    /// The text for the model.
    pub(super) content: String,
    /// `true` if the answer is an error.
    #[serde(default)]
    pub(super) is_error: bool,
    /// The receipt, in the past tense.
    #[serde(default)]
    pub(super) receipt: Option<String>,
    /// The source of untrusted text in `content`.
    #[serde(default)]
    pub(super) taint: Option<String>,
}

/// A turn of a scripted model.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CaseTurn {
    /// Its text.
    #[serde(default)]
    pub(super) text: String,
    /// Its calls.
    #[serde(default)]
    pub(super) calls: Vec<CaseCall>,
}

/// A call of a scripted model.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CaseCall {
    /// The tool.
    pub(super) tool: String,
    /// The arguments: a table, or a text of JSON.
    #[serde(default)]
    pub(super) input: Option<toml::Value>,
}

/// The expectations of a case.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expected {
    /// The required receipts.
    #[serde(default)]
    pub(super) did: Vec<ExpectedReceipt>,
    /// The forbidden receipts.
    #[serde(default)]
    pub(super) did_not: Vec<ExpectedReceipt>,
    /// Tools whose calls must ask the person; such a call waits and isn't executed.
    #[serde(default)]
    pub(super) asks: Vec<String>,
    /// Further tools whose calls may ask the person.
    #[serde(default)]
    pub(super) may_ask: Vec<String>,
    /// Text required in the answers, ignoring case.
    #[serde(default)]
    pub(super) answer: Vec<String>,
    /// Text forbidden in the answers.
    #[serde(default)]
    pub(super) answer_lacks: Vec<String>,
    /// Files of the memory.
    #[serde(default)]
    pub(super) files: BTreeMap<String, ExpectedFile>,
}

/// A receipt, recognised by its tool and text.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectedReceipt {
    /// The tool; `None` for any.
    #[serde(default)]
    pub(super) tool: Option<String>,
    /// Text in the receipt; `None` for any.
    #[serde(default)]
    pub(super) what: Option<String>,
}

/// A file of the memory at the end.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectedFile {
    /// Texts required in the file.
    #[serde(default)]
    pub(super) contains: Vec<String>,
    /// Texts forbidden in the file.
    #[serde(default)]
    pub(super) lacks: Vec<String>,
    /// Its whole text, ignoring white space at the end.
    #[serde(default)]
    pub(super) equals: Option<String>,
    /// `true` if it must be as at the start.
    #[serde(default)]
    pub(super) unchanged: bool,
}

/// The parsed settings of a case.
#[derive(Debug, Clone, Copy)]
pub(super) struct CaseSettings {
    pub(super) now: DateTime<Utc>,
    pub(super) timezone: Tz,
    pub(super) autonomy: Autonomy,
}

fn utc() -> String {
    "UTC".to_owned()
}

fn smart() -> u8 {
    1
}

fn yes() -> bool {
    true
}

impl EvalCase {
    /// Parses a case.
    ///
    /// # Errors
    /// The fault in the case, for people.
    pub fn parse(text: &str) -> Result<Self, String> {
        let case: Self = toml::from_str(text).map_err(|error| error.to_string().trim().to_owned())?;
        case.parse_settings()?;
        for message in &case.said {
            message.parse_sent_time()?;
        }
        if case.said.is_empty() {
            return Err("it has no message: add a [[said]].".to_owned());
        }
        if case.expect.is_empty() {
            return Err("it expects nothing, so it would test nothing.".to_owned());
        }
        let paths = case.memory.keys().chain(case.expect.files.keys());
        if let Some(path) = paths.into_iter().find(|path| !is_memory_path(path)) {
            return Err(format!(
                "{path:?} isn't a file of the memory: expected claude.md, or a .md below memory/ or skills/."
            ));
        }
        let inputs = case.answers.iter().map(|answer| &answer.input);
        let calls = case.turns.iter().flat_map(|turn| &turn.calls).map(|call| &call.input);
        inputs.chain(calls).try_for_each(|input| encode_arguments(input.as_ref()).map(drop))?;
        Ok(case)
    }

    pub(super) fn parse_settings(&self) -> Result<CaseSettings, String> {
        let now = parse_case_time(&self.now)?;
        let timezone = self.timezone.parse().map_err(|_| format!("timezone {:?} doesn't exist.", self.timezone))?;
        let autonomy = match self.autonomy {
            0 => Autonomy::AskAll,
            1 => Autonomy::Smart,
            2 => Autonomy::Full,
            other => return Err(format!("autonomy is {other}: expected 0, 1 or 2.")),
        };
        Ok(CaseSettings { now, timezone, autonomy })
    }

    /// Returns `true` if the case has a script for the model's turns.
    pub fn is_scripted(&self) -> bool {
        !self.turns.is_empty()
    }
}

impl CaseMessage {
    pub(super) fn parse_sent_time(&self) -> Result<Option<DateTime<Utc>>, String> {
        self.at.as_deref().map(parse_case_time).transpose()
    }
}

impl Expected {
    fn is_empty(&self) -> bool {
        let receipts = self.did.len() + self.did_not.len() + self.asks.len();
        receipts + self.answer.len() + self.answer_lacks.len() + self.files.len() == 0
    }
}

fn parse_case_time(text: &str) -> Result<DateTime<Utc>, String> {
    parse_time(text).ok_or_else(|| format!("{text:?} isn't a time: expected one such as 2026-11-21T14:00:00Z."))
}

/// Converts arguments to raw JSON of an object.
pub(super) fn encode_arguments(input: Option<&toml::Value>) -> Result<String, String> {
    let value = match input {
        None => return Ok("{}".to_owned()),
        Some(toml::Value::String(text)) => serde_json::from_str(text).map_err(|error| format!("{text:?}: {error}."))?,
        Some(value) => serde_json::to_value(value).map_err(|error| error.to_string())?,
    };
    match value {
        serde_json::Value::Object(_) => Ok(value.to_string()),
        other => Err(format!("{other} can't be arguments: expected a table, or a JSON object.")),
    }
}

/// Returns `true` if a path names a file of the memory and doesn't lead elsewhere.
fn is_memory_path(path: &str) -> bool {
    let is_plain = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    let is_below = path.starts_with("memory/") || path.starts_with("skills/");
    is_plain && (path == memory::CLAUDE || is_below && path.ends_with(".md"))
}

/// Returns a tool's canonical name for any of its names.
pub(super) fn resolve_tool_name(registry: &Registry, name: &str) -> String {
    registry.get(name).map_or_else(|| name.to_owned(), |tool| tool.name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASE: &str =
        "about = \"x\"\nnow = \"2026-11-21T14:00:00Z\"\n[[said]]\ntext = \"hi\"\n[expect]\nanswer = [\"hi\"]\n";

    #[test]
    fn an_invalid_case_is_refused_with_the_reason() {
        assert!(EvalCase::parse(CASE).is_ok());
        let wrong = |from: &str, to: &str| EvalCase::parse(&CASE.replace(from, to)).unwrap_err();
        assert!(wrong("14:00:00Z", "25:00:00Z").contains("isn't a time"));
        assert!(wrong("answer = [\"hi\"]", "").contains("expects nothing"));
        assert!(wrong("answer", "anwser").contains("anwser"));
        assert!(wrong("text = \"hi\"", "text = \"hi\"\nat = \"noon\"").contains("isn't a time"));
        for path in ["../x.md", "memory/../../x.md", "/etc/x.md", "memory/x.sh", ".git/config", "memory"] {
            let file = format!("[memory]\n\"{path}\" = \"\"\n[[said]]");
            assert!(wrong("[[said]]", &file).contains("isn't a file of the memory"), "{path}");
        }
        let call = "[[turns]]\ncalls = [{ tool = \"note\", input = \"[1]\" }]\n[[said]]";
        assert!(wrong("[[said]]", call).contains("can't be arguments"));
    }

    #[test]
    fn arguments_are_a_table_or_json() {
        let input: BTreeMap<String, toml::Value> =
            toml::from_str("a = { b = 1, c = [true] }\nd = '{\"b\": null}'").unwrap();
        assert_eq!(encode_arguments(input.get("a")).unwrap(), r#"{"b":1,"c":[true]}"#);
        assert_eq!(encode_arguments(input.get("d")).unwrap(), r#"{"b":null}"#);
        assert_eq!(encode_arguments(None).unwrap(), "{}");
    }
}
