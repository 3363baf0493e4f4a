//! A server's tools as accepted by a person: the definitions shown to the model, cleaned and bounded, stored with
//! their hash. A cycle's prefix therefore needs no server, and a server with changed definitions must be accepted
//! again.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use reveille_base::{approval_text::render_code_block, file};
use reveille_config::read_private;
use reveille_policy::{Consent, PolicyReason};

use super::{schema::ToolArguments, settings::Server};

/// Maximum number of tools of one server.
pub const MAX_TOOLS: usize = 64;
/// Maximum length of a tool's description, in characters.
const MAX_DESCRIPTION_CHARS: usize = 2_000;
/// Maximum length of a tool's schema, in bytes.
const MAX_SCHEMA_BYTES: usize = 16 * 1024;
/// Maximum length of a text within a schema, in characters.
const MAX_SCHEMA_TEXT_CHARS: usize = 1_000;
/// Maximum length of a tool's name for the model, in characters: the models' limit.
const MAX_NAME_CHARS: usize = 64;
/// Maximum length of a tool's name at its server, in characters.
const MAX_SERVERS_NAME_CHARS: usize = 256;
/// Length of the digest that keeps a server's tool names distinct, in characters.
const DIGEST_CHARS: usize = 8;

/// A tool as described by its server, cleaned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Listed {
    /// The name at the server.
    pub name: String,
    /// The purpose, in the server's words.
    pub description: String,
    /// The JSON schema of the arguments.
    pub schema: Value,
    /// True if the server declares the tool read-only.
    pub reads_only: bool,
    /// True if the server declares the tool idempotent.
    pub is_idempotent: bool,
}

/// The allowed tools offered by a server.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Listing {
    /// Sorted by name.
    pub tools: Vec<Listed>,
}

impl Listing {
    /// Returns the usable part of a server's list, with sentences about the rest.
    pub fn from_tools(server: &Server, tools: &[Value]) -> (Self, Vec<String>) {
        let (mut listed, mut problems) = (Vec::<Listed>::new(), Vec::new());
        let mut too_many = 0_usize;
        for tool in tools {
            let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
            if server.tools.as_ref().is_some_and(|allowed| !allowed.contains(name)) {
                continue;
            }
            if listed.len() >= MAX_TOOLS {
                too_many += 1;
                continue;
            }
            let called = tool_name(&server.name, name);
            let taken = if listed.iter().any(|other| tool_name(&server.name, &other.name) == called) {
                Err("there are two of its name".to_owned())
            } else {
                Listed::parse(name, tool)
            };
            match taken {
                Ok(tool) => listed.push(tool),
                Err(why) => {
                    problems.push(format!("The tool {:?} is left out: {why}.", clean_text(name, MAX_NAME_CHARS)));
                }
            }
        }
        if too_many > 0 {
            problems.push(format!(
                "{too_many} more tools are left out: at most {MAX_TOOLS} are allowed. `tools` in mcp.toml picks which."
            ));
        }
        let missing = server.tools.iter().flatten().filter(|name| !listed.iter().any(|tool| tool.name == **name));
        problems.extend(missing.map(|name| format!("The tool {name:?} of mcp.toml is not offered.")));
        listed.sort_by(|a, b| a.name.cmp(&b.name));
        (Self { tools: listed }, problems)
    }

    /// Returns the SHA-256 of everything shown to a model and believed of the tools, in hexadecimal digits.
    pub fn sha256(&self) -> String {
        let text = serde_json::to_string(&self).unwrap_or_default();
        reveille_base::approval_text::hash_action(&text)
    }

    fn get(&self, name: &str) -> Option<&Listed> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// Describes the differences in `new` for people.
    pub fn describe_changes(&self, new: &Self) -> String {
        let names = |listing: &Self| listing.tools.iter().map(Listed::shown_name).collect::<BTreeSet<_>>();
        let (old_names, new_names) = (names(self), names(new));
        let mut changes: Vec<String> =
            new_names.difference(&old_names).map(|name| format!("`{name}` is new")).collect();
        changes.extend(old_names.difference(&new_names).map(|name| format!("`{name}` is gone")));
        for (old, new) in self.tools.iter().filter_map(|old| Some((old, new.get(&old.name)?))) {
            let parts = [
                (old.description != new.description, "description"),
                (old.schema != new.schema, "arguments"),
                ((old.reads_only, old.is_idempotent) != (new.reads_only, new.is_idempotent), "effect"),
            ];
            let parts: Vec<&str> = parts.into_iter().filter_map(|(differs, part)| differs.then_some(part)).collect();
            if !parts.is_empty() {
                changes.push(format!("`{}` has another {}", old.shown_name(), parts.join(" and another ")));
            }
        }
        changes.join(", ")
    }

    /// Quotes everything in `new` that a model would read for the first time, for people: the old and the new text of
    /// each changed tool. `masked` masks secrets in each text separately, as the model gets the texts separately. A
    /// mask could otherwise span two texts.
    pub fn changed_words(&self, new: &Self, masked: &dyn Fn(&str) -> String) -> String {
        let words = new.tools.iter().map(|tool| tool.quote_changes(self.get(&tool.name), masked));
        // fault: yes-servers-new-words
        words.filter(|words| !words.is_empty()).collect::<Vec<_>>().join("\n")
    }
}

impl Listed {
    /// Quotes the differences from `before`.
    fn quote_changes(&self, before: Option<&Self>, masked: &dyn Fn(&str) -> String) -> String {
        let fenced = |text: &str| render_code_block(&masked(text));
        let arguments = |tool: &Self| tool.schema.to_string();
        let effect = |tool: &Self| {
            let is = |it: bool, what: &'static str| if it { what } else { "no" };
            format!(
                "changes nothing: {}; can be repeated: {}",
                is(tool.reads_only, "yes"),
                is(tool.is_idempotent, "yes")
            )
        };
        let parts = [
            ("description", before.map(|old| old.description.clone()), self.description.clone()),
            ("arguments", before.map(arguments), arguments(self)),
            ("effect, as it says", before.map(effect), effect(self)),
        ];
        let tool = self.shown_name();
        let part = |(name, old, new): (&str, Option<String>, String)| match old {
            Some(old) if old == new => None,
            Some(old) => Some(format!("`{tool}`, {name} until now:\n{}\nnow:\n{}", fenced(&old), fenced(&new))),
            None => Some(format!("`{tool}`, {name}:\n{}", fenced(&new))),
        };
        parts.into_iter().filter_map(part).collect::<Vec<_>>().join("\n")
    }

    /// Returns the name for people; unusual characters are escaped.
    pub fn shown_name(&self) -> String {
        if is_plain(&self.name) {
            self.name.clone()
        } else {
            format!("{:?}", clean_text(&self.name, MAX_SERVERS_NAME_CHARS))
        }
    }

    fn parse(name: &str, tool: &Value) -> Result<Self, String> {
        let length = name.chars().count();
        if length == 0 || length > MAX_SERVERS_NAME_CHARS {
            return Err(format!("its name has {length} characters; one to {MAX_SERVERS_NAME_CHARS} are taken"));
        }
        let schema = ["inputSchema", "input_schema"].iter().find_map(|key| tool.get(*key)).unwrap_or(&Value::Null);
        // Some servers send their schema as a string.
        let schema = match schema {
            Value::String(text) => {
                serde_json::from_str(text).map_err(|_| "its arguments aren't described by an object")?
            }
            Value::Null | Value::Bool(true) => Value::Object(Map::new()),
            other => other.clone(),
        };
        if !is_shown_whole(&schema) {
            return Err("names of its arguments have signs that a screen doesn't show".to_owned());
        }
        let schema = sort_keys(&schema);
        if schema.to_string().len() > MAX_SCHEMA_BYTES {
            return Err(format!("the description of its arguments is longer than {MAX_SCHEMA_BYTES} bytes"));
        }
        ToolArguments::from_schema(&schema)?;
        let text = |key: &str| tool.get(key).and_then(Value::as_str).unwrap_or_default();
        let description = if text("description").is_empty() { text("title") } else { text("description") };
        let hint = |key: &str| tool.pointer(&format!("/annotations/{key}")).and_then(Value::as_bool) == Some(true);
        Ok(Self {
            name: name.to_owned(),
            description: clean_text(description, MAX_DESCRIPTION_CHARS),
            schema,
            reads_only: hint("readOnlyHint"),
            is_idempotent: hint("idempotentHint"),
        })
    }
}

/// Returns the model's name of a tool: its own name if every API accepts that. Otherwise a sanitized name with a
/// digest, so that no two tools of the server collide.
pub fn tool_name(server: &str, tool: &str) -> String {
    let prefix = format!("mcp__{server}__");
    let room = MAX_NAME_CHARS.saturating_sub(prefix.len());
    if is_plain(tool) && tool.len() <= room {
        return prefix + tool;
    }
    let digest = reveille_base::approval_text::hash_action(tool);
    let plain: String = tool.chars().map(|c| if is_plain_sign(c) { c } else { '_' }).collect();
    let plain: String = plain.chars().take(room.saturating_sub(DIGEST_CHARS + 1)).collect();
    format!("{prefix}{plain}_{}", digest.get(..DIGEST_CHARS).unwrap_or_default())
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(is_plain_sign)
}

fn is_plain_sign(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// Returns true if removing invisible characters changes no key of a schema, because a call must repeat the keys exactly.
fn is_shown_whole(schema: &Value) -> bool {
    match schema {
        Value::Object(object) => {
            object.iter().all(|(key, value)| clean_text(key, MAX_SCHEMA_TEXT_CHARS) == *key && is_shown_whole(value))
        }
        Value::Array(items) => items.iter().all(is_shown_whole),
        _ => true,
    }
}

/// Removes invisible characters from foreign text and cuts it to a length.
pub(super) fn clean_text(text: &str, max_chars: usize) -> String {
    let mut shown = text.chars().filter(|c| !reveille_base::approval_text::is_hidden(*c));
    let mut kept: String = shown.by_ref().take(max_chars).collect();
    if shown.next().is_some() {
        kept.push('…');
    }
    kept
}

/// Sorts the keys of a schema for a stable hash, and cleans its texts.
fn sort_keys(schema: &Value) -> Value {
    match schema {
        Value::Object(object) => {
            let mut keys: Vec<&String> = object.keys().collect();
            keys.sort();
            let pairs = keys
                .into_iter()
                .filter_map(|key| Some((clean_text(key, MAX_SCHEMA_TEXT_CHARS), sort_keys(object.get(key)?))));
            Value::Object(pairs.collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.iter().map(sort_keys).collect()),
        Value::String(text) => Value::String(clean_text(text, MAX_SCHEMA_TEXT_CHARS)),
        other => other.clone(),
    }
}

/// The stored state of a server's list.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Pin {
    /// The accepted list.
    pub accepted: Option<Listing>,
    /// The list found last, if different.
    pub found: Option<Listing>,
}

impl Pin {
    /// Returns the question before the next call, if the list has changed: a line with the new hash, followed by every
    /// text that an approval would let the model read.
    pub fn question(&self, server: &str) -> Option<String> {
        let found = self.found.as_ref()?;
        let accepted = self.accepted.clone().unwrap_or_default();
        let asked = format!(
            "The MCP server {server} has changed its tools since you accepted them: {}. If you allow this, you accept them as they are \
             now (SHA-256 {}).",
            accepted.describe_changes(found),
            found.sha256()
        );
        let words = accepted.changed_words(found, &str::to_owned);
        Some(if words.is_empty() { asked } else { format!("{asked}\n{words}\n") })
    }

    /// Returns the question with the consent that its answer gives: to the list with just this digest.
    pub fn ask_acceptance(&self, server: &str) -> Option<PolicyReason> {
        let sha256 = self.found.as_ref()?.sha256();
        Some(PolicyReason::with_consent(
            self.question(server)?,
            Consent::ServerTools { server: server.to_owned(), sha256 },
        ))
    }

    /// Loads a server's pin. A missing or damaged file accepts nothing.
    pub fn load(dir: &Path, server: &str) -> Self {
        let text = read_private(&pin_path(dir, server)).map(|file| file.text).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Saves the pin atomically.
    ///
    /// # Errors
    /// The system's error.
    pub fn save(&self, dir: &Path, server: &str) -> io::Result<()> {
        file::create_private_dirs(dir)?;
        file::replace_durably(&pin_path(dir, server), serde_json::to_string_pretty(self)?.as_bytes())
    }

    /// Forgets what was accepted of a server, so that another one of its name begins anew.
    ///
    /// # Errors
    /// The system's error.
    pub fn remove(dir: &Path, server: &str) -> io::Result<()> {
        match std::fs::remove_file(pin_path(dir, server)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

fn pin_path(dir: &Path, server: &str) -> PathBuf {
    dir.join(format!("{server}.json"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::settings::Settings, *};

    fn server(rest: &str) -> Server {
        let text = format!("[[server]]\nname = \"s\"\ncommand = [\"x\"]\n{rest}");
        Settings::parse(&text, None).servers.into_iter().next().unwrap()
    }

    fn listing(tools: &Value) -> Listing {
        let (listing, problems) = Listing::from_tools(&server(""), tools.as_array().unwrap());
        assert_eq!(problems, Vec::<String>::new());
        listing
    }

    #[test]
    fn the_hash_knows_the_same_list_in_any_order_and_any_change_of_it() {
        let list = |description: &str, schema: &str, hint: bool| {
            let schema: Value = serde_json::from_str(schema).unwrap();
            listing(&json!([
                {"name": "b", "description": description, "inputSchema": schema, "annotations": {"readOnlyHint": hint}},
                {"name": "a", "inputSchema": {"type": "object"}},
            ]))
        };
        let first = list("does b", r#"{"type":"object","properties":{"x":{"type":"string"}}}"#, false);
        let same = list("does b", r#"{"properties":{"x":{"type":"string"}},"type":"object"}"#, false);
        assert_eq!(first.sha256(), same.sha256());
        assert_eq!(first.describe_changes(&same), "");
        for (other, change) in [
            (
                list("does c", r#"{"type":"object","properties":{"x":{"type":"string"}}}"#, false),
                "`b` has another description",
            ),
            (list("does b", r#"{"type":"object"}"#, false), "`b` has another arguments"),
            (
                list("does b", r#"{"type":"object","properties":{"x":{"type":"string"}}}"#, true),
                "`b` has another effect",
            ),
            (listing(&json!([{"name": "c", "inputSchema": {}}])), "`c` is new, `a` is gone, `b` is gone"),
        ] {
            assert_ne!(first.sha256(), other.sha256(), "{change}");
            assert_eq!(first.describe_changes(&other), change);
        }
    }

    #[test]
    fn a_description_cant_hide_anything_and_is_bounded() {
        let hidden = "look\u{202e}here\u{e0041}\u{200b} \u{1b}[2J";
        let tools = json!([{"name": "a", "description": hidden, "inputSchema": {"description": hidden, "x": ["\u{2066}y"]}},
            {"name": "b", "description": "d".repeat(5_000), "inputSchema": {}}]);
        let listing = listing(&tools);
        assert_eq!(listing.tools[0].description, "lookhere [2J");
        assert_eq!(listing.tools[0].schema, json!({"description": "lookhere [2J", "x": ["y"]}));
        assert_eq!(listing.tools[1].description.chars().count(), MAX_DESCRIPTION_CHARS + 1);
    }

    #[test]
    fn what_cant_be_used_is_left_out_and_said() {
        let mut tools = vec![
            json!({"name": "good", "inputSchema": {}}),
            json!({"name": "good", "inputSchema": {}}),
            json!({"name": "", "inputSchema": {}}),
            json!({"name": "x".repeat(300), "inputSchema": {}}),
            json!({"name": "list", "inputSchema": {"properties": ["a", "b"]}}),
            json!({"name": "huge", "inputSchema": {"enum": vec!["x".repeat(900); 20]}}),
            json!(7),
        ];
        let (listing, problems) = Listing::from_tools(&server(""), &tools);
        assert_eq!((listing.tools.len(), problems.len()), (1, 6), "{problems:#?}");
        tools = (0..MAX_TOOLS + 3).map(|n| json!({"name": format!("t{n}"), "inputSchema": {}})).collect();
        let (listing, problems) = Listing::from_tools(&server(""), &tools);
        assert_eq!((listing.tools.len(), problems.len()), (MAX_TOOLS, 1));
        assert!(problems[0].starts_with("3 more tools are left out"), "{problems:?}");
        let (listing, problems) = Listing::from_tools(&server("tools = [\"t1\", \"gone\"]"), &tools);
        assert_eq!(
            (listing.tools.len(), problems.as_slice()),
            (1, &["The tool \"gone\" of mcp.toml is not offered.".to_owned()][..])
        );
    }

    #[test]
    fn a_question_holds_every_word_that_a_yes_would_let_the_model_read() {
        let said = |description: &str, argument: &str| json!({"name": "say", "description": description, "inputSchema": {"x": argument}, "annotations": {"readOnlyHint": true}});
        let accepted = Some(listing(&json!([said("says it", "what"), {"name": "gone", "inputSchema": {}}])));
        let new = json!({"name": "new", "description": "First\nand ``` then", "inputSchema": {}});
        let found = Some(listing(&json!([said("says it.\n\nAnd sends it to all", "whatever"), new])));
        let question = Pin { accepted, found }.question("s").unwrap();
        let (asked, words) = question.split_once('\n').unwrap();
        assert!(
            asked.contains("`new` is new, `gone` is gone, `say` has another description and another arguments"),
            "{asked}"
        );
        insta::assert_snapshot!(words, @r#"
        `new`, description:
        ````
        First
        and ``` then
        ````
        `new`, arguments:
        ```
        {}
        ```
        `new`, effect, as it says:
        ```
        changes nothing: no; can be repeated: no
        ```
        `say`, description until now:
        ```
        says it
        ```
        now:
        ```
        says it.

        And sends it to all
        ```
        `say`, arguments until now:
        ```
        {"x":"what"}
        ```
        now:
        ```
        {"x":"whatever"}
        ```
        "#);
    }

    #[test]
    fn a_pin_is_kept_whole_and_a_damaged_one_accepts_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("mcp");
        let pin = Pin {
            accepted: Some(listing(&json!([{"name": "a", "inputSchema": {}}]))),
            found: Some(Listing::default()),
        };
        pin.save(&dir, "s").unwrap();
        assert_eq!(Pin::load(&dir, "s"), pin);
        let question = pin.question("s").unwrap();
        assert!(!question.contains('\n'), "{question}");
        assert!(question.contains("`a` is gone") && question.contains(&Listing::default().sha256()), "{question}");
        std::fs::write(dir.join("s.json"), "{\"accepted\":").unwrap();
        assert_eq!(Pin::load(&dir, "s"), Pin::default());
        assert_eq!(Pin::load(&dir, "other"), Pin::default());
    }
}
