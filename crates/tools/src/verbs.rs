//! Tools shown to the model as verbs of a group (`tasks` for `task_add`, `task_done` …): the group's definition, and
//! the translation of a group call to the verb's tool. The rest of the program knows only the verbs' tools, beginning
//! with the policy.

use std::fmt;

use serde::{
    Deserialize,
    de::{MapAccess, Visitor},
};
use serde_json::{Map, Value, json, value::RawValue};

use reveille_base::types::{VERB, VerbGroup};

use super::{Refusal, Tool};

/// Describes a group to the model.
fn describe_group(group: &str) -> &'static str {
    match group {
        "memory_update" => "Change the memory.",
        "tasks" => {
            "Change tasks: 7 active at most, others in the backlog. `task`: its title, or words that only it has."
        }
        "long_tasks" => {
            "Work of many steps that outlasts this conversation: each is taken later, when nobody waits, in one of its own. Don't do any now."
        }
        "reminders" => "Reminders of this chat, sent without you. `reminder`: its number or words.",
        _ => "Read what is known.",
    }
}

/// Describes a verb to the model: its purpose and all its arguments.
pub(super) fn describe_verb(tool: &str) -> &'static str {
    match tool {
        "remember" => "`fact` for good, a sentence that stands by itself; `topic`, such as Family",
        "forget" => "the `fact` with these words",
        "note" => {
            "`text`: your whole working memory, under a page; `shorten`: true to drop more than half, `over_theirs`: true for what they \
             wrote there and say no longer holds"
        }
        "context_update" => "`text`: all of their energy, limits and wishes now; `shorten`, `over_theirs` as for note",
        "task_add" => {
            "`title`; `list` (active, backlog), `next` (step), `at` (local time of a step of yours), `due` (a day), `why`, `project`, `notes`"
        }
        "task_update" => {
            "`task`, `key` (title, status, next, due, at, missed (run, skip, tell), why, any other), `value` (none removes it)"
        }
        "task_touch" => "`task` was worked on today",
        "task_done" => "`task` leaves its list; `dropped`: given up",
        "task_move" => "`task`, `to` (active, backlog)",
        "reminder_set" => {
            "`text`, `when` (tomorrow at 9, every weekday at 8, 1 hour before the meeting), `missed` (run late, skip, tell)"
        }
        "reminder_move" => {
            "`reminder`, `when` (a day alone keeps its time; `all`, `here`: to this zone) or `by` (1 hour)"
        }
        "reminder_done" => "`reminder` (`last`: just sent) ends",
        "long_task_start" => {
            "`task` (title of an active or a new one), `goal`, `steps` (`what`, understood by itself; `tool` that must have worked; `done_when`; \
             `needs`, step numbers, else all before), `budget_usd` of all"
        }
        "long_task_change" => {
            "`task`; resumes it: `step` anew with `advice`, or `skip`; `more_steps`, `budget_usd`; `pause` stops it"
        }
        "memory_search" => {
            "`query`, `more_queries` (other words, further steps), `limit` each: memory, archive, conversations"
        }
        "memory_read" => "`path`, `from_line`; without path the list",
        "read_skill" => "`name`; `path` of a further file, `from_line`",
        "task_list" => "`list` (active, backlog), `numbered`: your person's numbers then mean it",
        "reminder_list" => "`day`",
        "read_attachment" => "`id`, `offset` (bytes) of a text file of this chat; without id the list",
        _ => "",
    }
}

/// Builds the definition of a group, with the verbs whose tools are available.
pub(super) fn define_group(group: &VerbGroup, tools: &[&Tool]) -> Value {
    let available =
        group.verbs.iter().filter_map(|(verb, name)| Some((*verb, tools.iter().find(|tool| tool.name == *name)?)));
    let (mut words, mut properties) = (Vec::new(), Map::new());
    let mut description = describe_group(group.name).to_owned();
    for (verb, tool) in available {
        description.push_str(&format!("\n{verb}: {}", describe_verb(&tool.name)));
        words.push(verb);
        for (name, schema) in tool.schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            properties.insert(name.clone(), strip_descriptions(schema));
        }
    }
    properties.insert(VERB.to_owned(), json!({"enum": words}));
    let schema = json!({"type": "object", "properties": properties, "required": [VERB]});
    json!({"name": group.name, "description": description, "input_schema": schema})
}

/// Strips the descriptions from a schema; the verb's line describes its arguments.
fn strip_descriptions(schema: &Value) -> Value {
    let kept = ["type", "enum", "items"].iter().filter_map(|key| Some(((*key).to_owned(), schema.get(*key)?.clone())));
    Value::Object(kept.collect())
}

/// Translates a group call to the verb's tool: name and raw arguments. `None` without a known verb.
pub(super) fn translate_call(name: &str, input: &str) -> Option<(String, String)> {
    let group = VerbGroup::find_by_name(name)?;
    let Fields(fields) = serde_json::from_str(input).ok()?;
    let (verbs, fields): (Vec<_>, Vec<_>) = fields.into_iter().partition(|(name, _)| name == VERB);
    let [(_, verb)] = verbs.as_slice() else { return None };
    let tool = group.find_tool(&serde_json::from_str::<String>(verb.get()).ok()?)?;
    // Arguments of other verbs may be null. Duplicates are kept, and refused by the tool.
    let fields = fields.into_iter().filter(|(_, value)| value.get() != "null");
    let fields: Vec<String> = fields.map(|(name, value)| format!("{}:{}", Value::from(name), value.get())).collect();
    Some((tool.to_owned(), format!("{{{}}}", fields.join(","))))
}

/// Returns the refusal of a group call without a valid verb; `None` for an unknown group.
pub(super) fn find_refusal(name: &str) -> Option<Refusal> {
    let group = VerbGroup::find_by_name(name)?;
    let words: Vec<&str> = group.verbs.iter().map(|(verb, _)| *verb).collect();
    Some(Refusal::new(format!("{name} needs one `{VERB}`: {}. Nothing was done.", words.join(", "))))
}

/// An object's fields in original form and order, including duplicates.
struct Fields(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_call_becomes_the_verbs_tool_call_with_its_arguments_unchanged() {
        let call = |name: &str, input: &str| translate_call(name, input);
        let expected = |name: &str, input: &str| Some((name.to_owned(), input.to_owned()));
        assert_eq!(
            call("tasks", r#"{"title": "a \u0041","do":"add","next":{ "x" : 1.50 },"why":null}"#),
            expected("task_add", r#"{"title":"a \u0041","next":{ "x" : 1.50 }}"#)
        );
        assert_eq!(call("tasks", r#"{"do":"task_done","task":"x"}"#), expected("task_done", r#"{"task":"x"}"#));
        assert_eq!(call("look_up", r#"{"do":"tasks"}"#), expected("task_list", "{}"));
        assert_eq!(
            call("tasks", r#"{"do":"done","task":"a","task":"b"}"#),
            expected("task_done", r#"{"task":"a","task":"b"}"#)
        );
        for damaged in ["", "[]", "{}", r#"{"do":"sing"}"#, r#"{"do":1}"#, r#"{"do":"add","do":"done"}"#] {
            assert_eq!(call("tasks", damaged), None, "{damaged}");
        }
        assert_eq!(call("task_add", r#"{"do":"add"}"#), None);
    }
}
