//! `web_search`: queries a search engine. The query leaves the machine; the results are untrusted.

use schemars::JsonSchema;
use serde::Deserialize;

use reveille_base::types::Effect;
use reveille_policy::{Reach, Risk};
use reveille_sandbox::{
    exec::Exec,
    web::search::{MAX_QUERY_CHARS, WebResults},
};

use super::{Done, Outcome, Refusal, Tool, World, check_text, shorten_text};

/// The tool's name.
const NAME: &str = "web_search";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WebSearch {
    /// Words to look for, as one would type them into a search engine.
    query: String,
}

pub(super) fn define_tool() -> Tool {
    Tool::new_acting(
        NAME,
        "Search the public web; gives titles, addresses and a few words of the best pages. Read one with web_fetch.",
        Effect::Read,
        |args: WebSearch, world, exec| Box::pin(search_web(args.query, world, exec)),
    )
    .with_risk(Risk::Caution)
    .with_reach(Reach::Leaves)
}

async fn search_web(query: String, world: &World, exec: &Exec) -> Outcome {
    let query = check_text(&query, "query", MAX_QUERY_CHARS)?;
    let found = exec.web().search(&query, &|to| world.means.rules.refuse_redirect(NAME, to.as_str(), "")).await;
    let found = found.map_err(|error| Refusal::new(format!("Nothing was found out. {error}")))?;
    let WebResults { hits, engine, origin } = found;
    let content = if hits.is_empty() {
        format!("{engine} finds nothing for this.")
    } else {
        let shown = hits.iter().enumerate().map(|(index, hit)| {
            let snippet = if hit.snippet.is_empty() { String::new() } else { format!("\n   {}", hit.snippet) };
            format!("{}. {}\n   {}{snippet}", index + 1, hit.title, hit.url)
        });
        format!("Found by {engine}:\n\n{}", shown.collect::<Vec<_>>().join("\n"))
    };
    Ok(Done {
        content: exec.keep_rest(NAME, content),
        receipt: Some(format!("Searched the web for {:?}", shorten_text(&query))),
        taint: Some(origin),
        ..Done::default()
    })
}
