//! Measures the tool definitions at the beginning of each request to the model: those selected for a typical message, compared to all of
//! them. Bytes are exact; tokens are an estimate (see docs/BENCHMARKS.md).

use serde_json::json;

use reveille_base::types::Effect;
use reveille_policy::{Reach, Risk};
use reveille_tools::{Foreign, Refusal, Registry, ToRead, Tool, ToolView};

use super::{
    measure::Spread,
    table::{Bound, Row},
};

/// Approximate bytes of English and JSON per token; Claude's own tokenizer isn't public.
const BYTES_PER_TOKEN: f64 = 4.0;
/// Two MCP servers of a common size, each with the number of its tools.
const SERVERS: [(&str, usize); 2] = [("notes", 14), ("calendar", 8)];
/// Typical messages, each preceded by the names of two figures: without MCP servers, and with them.
const SAID: [(&str, &str, &str); 4] = [
    ("tools: a plain note", "the same beside 2 MCP servers", "remember that the wifi code is 1234"),
    ("tools: a reminder", "the same beside 2 MCP servers", "remind me to call Anna tomorrow at 9"),
    ("tools: a question on the web", "the same beside 2 MCP servers", "what is the weather in Lima tomorrow?"),
    ("tools: a task for the shell", "the same beside 2 MCP servers", "count the lines of the csv files in ~/data"),
];

pub(crate) fn measure(_rounds: usize) -> Vec<Row> {
    let (alone, beside) =
        (Registry::for_thinking_model(), Registry::for_thinking_model().with_tools(build_server_tools()));
    let rows = SAID.iter().flat_map(|(figure, with_servers, said)| {
        // As in a cycle: the reason for it, followed by the message.
        let words = format!("1 message in chat 4242\n{said}");
        [row(figure, &alone, &words), row(with_servers, &beside, &words)]
    });
    rows.chain([row(
        "the same, when a server is named",
        &beside,
        "1 message in chat 4242\nis there room in my calendar?",
    )])
    .collect()
}

fn row(figure: &'static str, registry: &Registry, words: &str) -> Row {
    let (offered, all) = (
        registry.filter_visible(ToolView::Owner).render_offer(words, ToRead::default()).len() as f64,
        registry.render_definitions().len() as f64,
    );
    Row {
        figure,
        unit: "tokens, estimated",
        measured: Ok(Spread::new(vec![(offered / BYTES_PER_TOKEN).round()])),
        compared: Some(("all tools".to_owned(), Spread::new(vec![(all / BYTES_PER_TOKEN).round()]))),
        ratios: Some(Spread::new(vec![offered / all])),
        bound: Bound::None,
    }
}

/// Builds the servers' tools, each with two arguments and a description of two sentences.
fn build_server_tools() -> Vec<Tool> {
    let tool = |server: &str, n: usize| {
        Tool::from_foreign(Foreign {
            is_owners: true,
            writes: Vec::new(),
            name: format!("mcp__{server}__action_{n}"),
            description: format!(
                "Does one of the things that the {server} are kept for, number {n} of them, and says what came of it. Use it when \
                 somebody asks for just this and nothing that stands above fits better."
            ),
            schema: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Which of them, as it is listed"},
                    "limit": {"type": "integer", "description": "How many at most", "default": 10},
                },
                "required": ["path"],
            }),
            effect: Effect::Once,
            risk: Risk::Dangerous,
            reach: Reach::Leaves,
            asks: Box::new(|_| Vec::new()),
            run: Box::new(|_, _, _| Box::pin(std::future::ready(Err(Refusal::new("This is a benchmark.".to_owned()))))),
        })
    };
    SERVERS.iter().flat_map(|(server, count)| (1..=*count).map(|n| tool(server, n))).collect()
}
