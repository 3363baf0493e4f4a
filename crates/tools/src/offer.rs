//! Selection of the tools offered to a cycle by its reasons. All definitions together would cost each cycle some
//! thousand tokens; the others can be found by `find_tools`. A pure function of the words.

use serde_json::Value;

use super::{about_me::ABOUT_ME, project::PROJECT_NOTE, propose::PROPOSE_CHANGE};

/// Tools for the machine and beyond, with the words of a person that call for them. Words match as prefixes, so `file`
/// also matches `files`.
const CALLED_FOR: [(&[&str], &[&str]); 10] = [
    (
        &["bash", "str_replace_based_edit_tool", "find_files", "view_image"],
        &[
            "build", "code", "command", "compil", "comput", "convert", "count", "csv", "director", "download",
            "execut", "file", "folder", "git", "image", "install", "log", "machine", "picture", "program", "python",
            "rename", "repo", "run", "script", "server", "shell", "skript", "test", "unzip", "zip", "/", "~",
        ],
    ),
    (
        &["web_fetch", "web_search"],
        &[
            "article", "browse", "find out", "google", "http", "internet", "latest", "link", "look up", "news",
            "online", "page", "price", "search", "site", "today's", "url", "weather", "web", "who is", "what is",
            "www",
        ],
    ),
    (
        &["system_info", "open"],
        &["app", "battery", "cpu", "disk", "launch", "memory usage", "open", "start", "system", "uptime"],
    ),
    (
        &["brain_log", "brain_diff", "brain_revert"],
        &["brain", "change", "commit", "diff", "histor", "revert", "undo", "what did you", "yesterday"],
    ),
    (&[PROJECT_NOTE], &["goal", "milestone", "project", "projekt"]),
    (
        &["watch"],
        &["changes", "feed", "keep an eye", "let me know", "monitor", "notify me", "rss", "tell me when", "watch"],
    ),
    (
        &["long_task_start", "long_task_change"],
        &[
            "all of",
            "background",
            "by itself",
            "by yourself",
            "day",
            "each of",
            "every one",
            "go through",
            "hour",
            "is stuck at",
            "long",
            "one by one",
            "over night",
            "overnight",
            "pause",
            "progress",
            "project",
            "resum",
            "step",
            "until it's",
            "week",
            "whole",
        ],
    ),
    (
        &[ABOUT_ME],
        &[
            "about you",
            "are you able",
            "can you do",
            "capab",
            "do you support",
            "feature",
            "how do you",
            "setting",
            "version",
            "what are you",
            "what can you",
            "what do you",
            "which model",
            "who are you",
        ],
    ),
    (
        &[PROPOSE_CHANGE],
        &[
            "always",
            "behav",
            "claude.md",
            "from now on",
            "habit",
            "improve yourself",
            "instruction",
            "never",
            "order",
            "rule",
            "skill",
            "stop ",
            "your job",
        ],
    ),
    // Only by its own path: see `tool::memory_files`.
    (&["memory"], &["/memories"]),
];

/// Maximum number of tools found by one search.
const FOUND_MAX: usize = 8;

/// Parts of a cycle's opening that call for a tool of their own.
#[derive(Debug, Clone, Copy, Default)]
pub struct ToRead {
    /// Some entries of the recent exchange are withheld.
    pub withheld: bool,
    /// A project is mentioned, whatever the words.
    pub project: bool,
}

/// Returns true if a cycle about these words is offered this tool from the start.
pub(super) fn is_offered(tool: &str, words: &str, there: ToRead) -> bool {
    if tool == "read_exchange" {
        return there.withheld;
    }
    if tool == PROJECT_NOTE && there.project {
        return true;
    }
    if let Some(rest) = tool.strip_prefix("mcp__") {
        // A server is called for by its name.
        let server = rest.split("__").next().unwrap_or(rest);
        return words.to_lowercase().contains(&server.to_lowercase());
    }
    let group = CALLED_FOR.iter().find(|(tools, _)| tools.contains(&tool));
    group.is_none_or(|(_, called_by)| {
        let words = words.to_lowercase();
        called_by.iter().any(|word| begins_a_word(&words, word))
    })
}

fn begins_a_word(text: &str, beginning: &str) -> bool {
    let is_word = beginning.starts_with(char::is_alphanumeric);
    text.match_indices(beginning).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        !is_word || !before.is_some_and(char::is_alphanumeric)
    })
}

/// Finds the definitions with the most query words in name or description, best first.
pub(super) fn find_definitions<'a>(catalogue: &'a [Value], words: &str) -> Vec<&'a Value> {
    let words: Vec<String> = words.to_lowercase().split(|c: char| !c.is_alphanumeric()).map(str::to_owned).collect();
    let words: Vec<&String> = words.iter().filter(|word| word.len() > 2).collect();
    let text = |tool: &Value, field: &str| tool[field].as_str().unwrap_or_default().to_lowercase();
    let score = |tool: &Value| -> usize {
        let (name, description) = (text(tool, "name"), text(tool, "description"));
        words.iter().map(|word| 2 * usize::from(name.contains(*word)) + usize::from(description.contains(*word))).sum()
    };
    let mut scored: Vec<(usize, &Value)> =
        catalogue.iter().map(|tool| (score(tool), tool)).filter(|(score, _)| *score > 0).collect();
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    scored.into_iter().take(FOUND_MAX).map(|(_, tool)| tool).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_asked_calls_for_its_tools() {
        let offered = |words: &str| {
            let tools =
                ["plan", "bash", "web_search", "open", "brain_log", "watch", "mcp__calendar__list", "read_exchange"];
            tools.into_iter().filter(|tool| is_offered(tool, words, ToRead::default())).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(offered("remember that tea is in the attic"), "plan");
        assert_eq!(offered("Rename the files in ~/notes"), "plan bash");
        assert_eq!(offered("what's the weather in Lima?"), "plan web_search");
        assert_eq!(offered("let me know if that shop reopens"), "plan watch");
        assert_eq!(offered("is anything in my Calendar?"), "plan mcp__calendar__list");
        assert_eq!(offered("a profile of the reopened shop"), "plan", "only beginnings of words count");
        assert!(is_offered("read_exchange", "", ToRead { withheld: true, ..ToRead::default() }));
        assert_eq!(offered("how is the greenhouse?"), "plan");
        assert!(is_offered(PROJECT_NOTE, "how is the greenhouse?", ToRead { project: true, ..ToRead::default() }));
        assert!(is_offered(PROJECT_NOTE, "a new project: the greenhouse", ToRead::default()));
    }

    #[test]
    fn tools_are_found_by_words_of_their_names_and_descriptions() {
        let catalogue = [
            json!({"name": "bash", "description": "Run a command in a shell"}),
            json!({"name": "web_fetch", "description": "Read a page of the web"}),
            json!({"name": "web_search", "description": "Search the web"}),
        ];
        let names = |words: &str| {
            find_definitions(&catalogue, words).iter().map(|tool| tool["name"].as_str().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(names("search the web"), ["web_search", "web_fetch"]);
        assert_eq!(names("run"), ["bash"]);
        assert_eq!(names("zebra"), [""; 0]);
    }
}
