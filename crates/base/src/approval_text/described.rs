//! Describes an action as one sentence; the part that doesn't fit follows below the sentence.

use serde_json::{Map, Value};

use super::{PROPOSE_CHANGE, changed_lines, escape_hidden, render_edits};

/// The maximum length in characters of an argument in the sentence; a longer one follows below.
const MAX_IN_SENTENCE_CHARS: usize = 120;
/// The allowed values of a proposal's stated effect, by argument.
const STATED_EFFECT: [(&str, &[&str]); 2] =
    [("figure", &["rounds", "cost", "questions", "tasks_done"]), ("aim", &["less", "more"])];
/// The prefix of an MCP tool's name, followed by the server, `__` and the tool.
const SERVER_PREFIX: &str = "mcp__";

/// A piece of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WishPiece {
    /// Our own words.
    Words(&'static str),
    /// An argument or a name, as written by the model.
    Value(String),
}

/// A part below the sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionPart {
    /// The argument's name; `None` for the object of the sentence.
    pub name: Option<String>,
    /// The full text, with hidden characters written out.
    pub text: String,
}

/// An action in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// The act, worded to follow "May I".
    pub wish: Vec<WishPiece>,
    /// The remaining arguments.
    pub parts: Vec<QuestionPart>,
}

/// Describes an action. Each argument appears once, in the sentence or below.
pub fn describe_action(tool: &str, action: &str) -> Described {
    let Ok(arguments) = serde_json::from_str::<Map<String, Value>>(action) else {
        let parts = vec![QuestionPart { name: None, text: escape_hidden(action) }];
        return Described {
            wish: vec![WishPiece::Words("use "), WishPiece::Value(escape_hidden(tool)), WishPiece::Words(" with this")],
            parts,
        };
    };
    let mut rest = Rest { arguments, main: Vec::new() };
    let wish = rest.take_wish(tool);
    let further = rest
        .arguments
        .iter()
        .map(|(name, value)| QuestionPart { name: Some(escape_hidden(name)), text: format_value(value) });
    let parts = rest.main.iter().cloned().map(|text| QuestionPart { name: None, text }).chain(further).collect();
    Described { wish, parts }
}

/// The arguments that are still to be shown.
struct Rest {
    arguments: Map<String, Value>,
    /// Texts below the sentence that are its object.
    main: Vec<String>,
}

impl Rest {
    fn take_wish(&mut self, tool: &str) -> Vec<WishPiece> {
        match tool {
            "bash" => self.take_command(),
            "str_replace_based_edit_tool" | "memory" => self.take_edit(tool == "memory"),
            PROPOSE_CHANGE => {
                if let Some(text) = self.arguments.get("edits").and_then(render_edits) {
                    self.arguments.remove("edits");
                    self.main.push(escape_hidden(&text));
                }
                // The reasons state the effect in words.
                for (key, known) in STATED_EFFECT {
                    if self.arguments.get(key).and_then(Value::as_str).is_some_and(|value| known.contains(&value)) {
                        self.arguments.remove(key);
                    }
                }
                self.take_object("change my own orders: ", "title")
            }
            "web_fetch" => self.take_object("open the page ", "url"),
            "web_search" => self.take_object("search the web for ", "query"),
            "remember" => self.take_object("remember ", "fact"),
            "forget" => self.take_object("forget ", "fact"),
            "tell" => self.take_object("tell you ", "text"),
            "task_add" => self.take_object("add the task ", "title"),
            "task_done" => self.take_object("finish the task ", "task"),
            "task_update" | "task_touch" | "task_move" => self.take_object("change the task ", "task"),
            "reminder_done" => self.take_object("end the reminder ", "reminder"),
            "reminder_set" => {
                let mut wish = self.take_object("set the reminder ", "text");
                wish.extend(self.take_value("when").into_iter().flat_map(|when| [WishPiece::Words(" for "), when]));
                wish
            }
            "brain_revert" if self.has_text("wake", "last") => {
                self.arguments.remove("wake");
                vec![WishPiece::Words("undo the last change")]
            }
            "brain_revert" => vec![WishPiece::Words("undo an earlier change")],
            _ => match tool.strip_prefix(SERVER_PREFIX).and_then(|name| name.split_once("__")) {
                Some((server, name)) => vec![
                    WishPiece::Words("use "),
                    WishPiece::Value(escape_hidden(name)),
                    WishPiece::Words(" of "),
                    WishPiece::Value(escape_hidden(server)),
                ],
                None => vec![WishPiece::Words("use "), WishPiece::Value(escape_hidden(tool))],
            },
        }
    }

    /// Describes a shell command and its switches.
    fn take_command(&mut self) -> Vec<WishPiece> {
        let mut wish = vec![WishPiece::Words(match self.arguments.get("command") {
            Some(Value::String(_)) => "run this command",
            _ => "start a fresh shell",
        })];
        self.take_text("command");
        self.take_flag("restart");
        if self.take_flag("writes") {
            wish.push(WishPiece::Words(", which may change your files in the granted folders"));
        }
        if self.take_flag("network") {
            wish.push(WishPiece::Words(", which may use the network"));
        }
        wish
    }

    /// Describes an edit of a file.
    fn take_edit(&mut self, is_memory: bool) -> Vec<WishPiece> {
        let verb = match self.arguments.get("command").and_then(Value::as_str) {
            Some("create") => "write ",
            Some("str_replace") => "change ",
            Some("insert") => "add lines to ",
            Some("undo_edit") => "take back my last edit of ",
            Some("delete") => "delete ",
            Some("rename") => "rename ",
            Some("view") => "look at ",
            _ => return vec![WishPiece::Words("edit a file")],
        };
        self.arguments.remove("command");
        let path = if self.arguments.contains_key("path") { "path" } else { "old_path" };
        let mut wish = self.take_object(verb, path);
        wish.extend(self.take_value("new_path").into_iter().flat_map(|path| [WishPiece::Words(" to "), path]));
        if is_memory {
            wish.push(WishPiece::Words(" in my memory"));
        }
        let text = |rest: &Self, key: &str| rest.arguments.get(key).map(|value| value.as_str().map(str::to_owned));
        match (text(self, "old_str"), text(self, "new_str")) {
            (Some(Some(old)), new) if new != Some(None) => {
                self.arguments.remove("old_str");
                self.arguments.remove("new_str");
                let new = new.flatten().unwrap_or_default();
                self.main.push(escape_hidden(&changed_lines(&old, &new).join("\n")));
            }
            _ => {}
        }
        self.take_text("file_text");
        self.take_text("insert_text");
        wish
    }

    /// The verb with its object, or with a pronoun if the object follows below.
    fn take_object(&mut self, verb: &'static str, key: &str) -> Vec<WishPiece> {
        match self.take_value(key) {
            Some(value) => vec![WishPiece::Words(verb), value],
            None => {
                self.take_text(key);
                let is_noun_said = !["remember ", "forget ", "tell you ", "search the web for "].contains(&verb);
                vec![WishPiece::Words(verb), WishPiece::Words(if is_noun_said { "below" } else { "this" })]
            }
        }
    }

    /// Takes a short, one-line argument for the sentence.
    fn take_value(&mut self, key: &str) -> Option<WishPiece> {
        let text = escape_hidden(self.arguments.get(key)?.as_str()?);
        let fits = text.chars().count() <= MAX_IN_SENTENCE_CHARS && !text.contains('\n') && !text.trim().is_empty();
        fits.then(|| {
            self.arguments.remove(key);
            WishPiece::Value(text)
        })
    }

    fn take_text(&mut self, key: &str) {
        if let Some(Value::String(text)) = self.arguments.get(key) {
            self.main.push(escape_hidden(text));
            self.arguments.remove(key);
        }
    }

    /// Takes a switch and returns true if on. An argument of another type stays and is shown.
    fn take_flag(&mut self, key: &str) -> bool {
        let is_on = self.arguments.get(key) == Some(&Value::Bool(true));
        if let Some(Value::Bool(_)) = self.arguments.get(key) {
            self.arguments.remove(key);
        }
        is_on
    }

    fn has_text(&self, key: &str, text: &str) -> bool {
        self.arguments.get(key).and_then(Value::as_str) == Some(text)
    }
}

fn format_value(value: &Value) -> String {
    escape_hidden(&value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

impl Described {
    /// The sentence as Markdown with values as code: `May I …?`
    pub fn sentence(&self) -> String {
        self.render_sentence(render_inline_code)
    }

    /// The sentence as plain text with values in quotation marks.
    pub fn plain_sentence(&self) -> String {
        self.render_sentence(|value| format!("“{value}”"))
    }

    fn render_sentence(&self, value: impl Fn(&str) -> String) -> String {
        let pieces = self.wish.iter().map(|piece| match piece {
            WishPiece::Words(words) => (*words).to_owned(),
            WishPiece::Value(text) => value(text),
        });
        format!("May I {}?", pieces.collect::<String>())
    }

    /// The parts below the sentence as Markdown with wrapping lines.
    pub fn render_wrapped(&self) -> String {
        self.render_parts(render_inline_code)
    }

    /// The parts below the sentence as plain text.
    pub fn render_plain(&self) -> String {
        self.render_parts(|line| format!("    {line}"))
    }

    fn render_parts(&self, shown: impl Fn(&str) -> String) -> String {
        let lines = |text: &str| -> String {
            text.split('\n')
                .map(|line| format!("{}\n", if line.is_empty() { String::new() } else { shown(line) }))
                .collect()
        };
        let part = |part: &QuestionPart| match &part.name {
            Some(name) => {
                format!("{}:\n{}", name.replace('_', " ").replace(['`', '*', '[', '\n'], "'"), lines(&part.text))
            }
            None => lines(&part.text),
        };
        self.parts.iter().map(part).collect::<Vec<_>>().join("\n")
    }

    /// The raw text of all values and parts, for searching.
    pub fn raw_text(&self) -> String {
        let values = self.wish.iter().filter_map(|piece| match piece {
            WishPiece::Value(text) => Some(text.as_str()),
            WishPiece::Words(_) => None,
        });
        values.chain(self.parts.iter().map(|part| part.text.as_str())).collect::<Vec<_>>().join("\n")
    }
}

/// Renders a line as inline code that the text can't close. Inline code wraps on a narrow screen; a block is cut off.
pub fn render_inline_code(line: &str) -> String {
    let longest = line.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let is_blank = line.chars().all(|c| c == ' ');
    let pad = if !is_blank && [line.chars().next(), line.chars().last()].iter().any(|c| matches!(c, Some(' ' | '`'))) {
        " "
    } else {
        ""
    };
    format!("{fence}{pad}{line}{pad}{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_sentence_says_what_would_be_done_and_to_what() {
        let cases = [
            ("bash", json!({"command": "git fetch\ngit reset --hard", "writes": true, "network": false})),
            ("bash", json!({"command": "ls", "network": true, "writes": "yes"})),
            ("bash", json!({"restart": true})),
            (
                "str_replace_based_edit_tool",
                json!({"command": "str_replace", "path": "/w/a.txt", "old_str": "a\nb", "new_str": "a\nc"}),
            ),
            ("str_replace_based_edit_tool", json!({"command": "create", "path": "a`b", "file_text": "  x"})),
            ("memory", json!({"command": "rename", "old_path": "a.md", "new_path": "b.md"})),
            ("web_fetch", json!({"url": "https://example.org/a"})),
            ("reminder_set", json!({"text": "call Anna", "when": "tomorrow at 9"})),
            ("task_add", json!({"title": "x".repeat(200)})),
            ("brain_revert", json!({"wake": "last"})),
            ("mcp__files__move", json!({"from": "a", "to": ["b"]})),
            ("new_tool", json!({})),
        ];
        let told = cases.map(|(tool, action)| {
            let described = describe_action(tool, &action.to_string());
            format!("{}\n{}", described.sentence(), described.render_wrapped())
        });
        insta::assert_snapshot!(told.join("\n"), @r#"
        May I run this command, which may change your files in the granted folders?
        `git fetch`
        `git reset --hard`

        May I run this command, which may use the network?
        `ls`

        writes:
        `yes`

        May I start a fresh shell?

        May I change `/w/a.txt`?
        `   a `
        `- b`
        `+ c`

        May I write ``a`b``?
        `   x `

        May I rename `a.md` to `b.md` in my memory?

        May I open the page `https://example.org/a`?

        May I set the reminder `call Anna` for `tomorrow at 9`?

        May I add the task below?
        `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx`

        May I undo the last change?

        May I use `move` of `files`?
        from:
        `a`

        to:
        `["b"]`

        May I use `new_tool`?
        "#);
    }
}
