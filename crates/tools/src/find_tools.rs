//! `find_tools` and `use_tool`: access to tools that weren't offered at the start, since the definitions in a
//! conversation's prefix never change.

use schemars::JsonSchema;
use serde::Deserialize;

use reveille_base::types::Effect;

use super::{Done, Refusal, Tool, World, check_text, offer, verbs};

/// The name of the tool that calls other tools; see [`unwrap_call`].
pub(super) const USE_TOOL: &str = "use_tool";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Find {
    /// A few words.
    query: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the schema is what it is for")]
struct Use {
    /// Its name.
    name: String,
    /// By its own schema.
    arguments: serde_json::Map<String, serde_json::Value>,
}

pub(super) fn define_tools() -> [Tool; 2] {
    [
        Tool::new(
            "find_tools",
            "There are more tools: shell, files, web, the machine, the memory's history, connected servers. Find them by what you want to \
             do.",
            Effect::Read,
            search_catalogue,
        ),
        Tool::new(USE_TOOL, "Call a tool that `find_tools` has found.", Effect::Once, |_: &Use, _: &World| {
            // Valid calls are unwrapped before judgement and execution.
            Err(Refusal::new("`use_tool` needs a name and an object of arguments. Nothing was done.".to_owned()))
        }),
    ]
}

fn search_catalogue(args: &Find, world: &World) -> super::Outcome {
    let query = check_text(&args.query, "query", 200)?;
    let found = offer::find_definitions(&world.means.catalogue, &query);
    if found.is_empty() {
        let names: Vec<&str> = world.means.catalogue.iter().filter_map(|tool| tool["name"].as_str()).collect();
        return Ok(Done::from_text(format!("No tool speaks of that. There are: {}.", names.join(", "))));
    }
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    Ok(Done::from_text(found.join("\n")))
}

/// Translates a call of `use_tool`, of a verb, or of a verb by `use_tool`: name and raw arguments. `None` for other
/// calls and malformed ones.
pub fn unwrap_call(name: &str, input: &str) -> Option<(String, String)> {
    match unwrap_use_tool(name, input) {
        Some((name, input)) => Some(verbs::translate_call(&name, &input).unwrap_or((name, input))),
        None => verbs::translate_call(name, input),
    }
}

/// Translates a call of `use_tool`.
fn unwrap_use_tool(name: &str, input: &str) -> Option<(String, String)> {
    #[derive(Deserialize)]
    struct Wrapped<'a> {
        name: String,
        #[serde(borrow)]
        arguments: &'a serde_json::value::RawValue,
    }
    if name != USE_TOOL {
        return None;
    }
    let Wrapped { name, arguments } = serde_json::from_str(input).ok()?;
    // A nested `use_tool` would hide the inner call from the policy.
    (name != USE_TOOL).then(|| (name, arguments.get().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrapped_call_is_the_one_it_stands_for_byte_for_byte() {
        let call = |input: &str| unwrap_call(USE_TOOL, input);
        assert_eq!(
            call(r#"{"name":"bash","arguments":{ "command" : "ls" }}"#),
            Some(("bash".to_owned(), r#"{ "command" : "ls" }"#.to_owned()))
        );
        for damaged in ["", "{}", "[]", r#"{"name":"bash"}"#, r#"{"name":"use_tool","arguments":{}}"#] {
            assert_eq!(call(damaged), None, "{damaged}");
        }
        assert_eq!(unwrap_call("bash", r#"{"name":"x","arguments":{}}"#), None);
    }
}
