//! Compares the outcome of a case with its expectations. Does no I/O.

use std::collections::BTreeMap;

use reveille_base::words::{one_line, truncate_text};
use reveille_cycle::decide::machine::Receipt;
use reveille_tools::Registry;

use super::case::{Expected, ExpectedFile, ExpectedReceipt, resolve_tool_name};

/// The maximum length of a shown unexpected text, in characters.
const MAX_SHOWN_CHARS: usize = 300;

/// The outcome of a case.
#[derive(Debug, Default)]
pub(super) struct CaseOutcome {
    /// The receipts of all its cycles.
    pub(super) receipts: Vec<Receipt>,
    /// Tools whose calls asked the person, with their arguments.
    pub(super) asked: Vec<(String, String)>,
    /// The texts sent to people.
    pub(super) said: Vec<String>,
    /// The memory at the start, and at the end.
    pub(super) before: BTreeMap<String, String>,
    pub(super) after: BTreeMap<String, String>,
    /// Faults on the way, as sentences.
    pub(super) trouble: Vec<String>,
}

/// Returns each unmet expectation as a sentence.
pub(super) fn check_outcome(expected: &Expected, outcome: &CaseOutcome, registry: &Registry) -> Vec<String> {
    let mut unmet = outcome.trouble.clone();
    let matches_receipt = |receipt: &Receipt, wanted: &ExpectedReceipt| {
        let is_same_tool =
            |tool: &String| resolve_tool_name(registry, tool) == resolve_tool_name(registry, &receipt.tool);
        let what = receipt.what.as_deref().unwrap_or_default();
        wanted.tool.as_ref().is_none_or(is_same_tool) && wanted.what.as_ref().is_none_or(|words| has_words(what, words))
    };
    let done: Vec<&Receipt> = outcome.receipts.iter().filter(|receipt| receipt.what.is_some()).collect();
    let all =
        if done.is_empty() { "it did nothing".to_owned() } else { format!("it did: {}", describe_receipts(&done)) };
    for wanted in &expected.did {
        if !done.iter().any(|receipt| matches_receipt(receipt, wanted)) {
            unmet.push(format!("no receipt {}; {all}.", describe_expectation(wanted)));
        }
    }
    for unwanted in &expected.did_not {
        if done.iter().any(|receipt| matches_receipt(receipt, unwanted)) {
            unmet.push(format!("there is a receipt {}; {all}.", describe_expectation(unwanted)));
        }
    }
    for tool in &expected.asks {
        if !outcome
            .asked
            .iter()
            .any(|(asked, _)| resolve_tool_name(registry, asked) == resolve_tool_name(registry, tool))
        {
            unmet.push(format!("nobody was asked about {tool}; {all}."));
        }
    }
    for (tool, input) in &outcome.asked {
        let mut foreseen = expected.asks.iter().chain(&expected.may_ask);
        if !foreseen.any(|wanted| resolve_tool_name(registry, wanted) == resolve_tool_name(registry, tool)) {
            unmet.push(format!("a person was asked about {tool} {input}, which the case has no answer for."));
        }
    }
    let said = outcome.said.join("\n\n");
    let shown = || format!("it was: {:?}", truncate_text(&one_line(&said), MAX_SHOWN_CHARS));
    for words in expected.answer.iter().filter(|words| !has_words(&said, words)) {
        unmet.push(format!("the answer lacks {words:?}; {}.", shown()));
    }
    for words in expected.answer_lacks.iter().filter(|words| has_words(&said, words)) {
        unmet.push(format!("the answer says {words:?}; {}.", shown()));
    }
    for (path, wanted) in &expected.files {
        unmet.extend(check_file(path, wanted, outcome));
    }
    unmet
}

fn check_file(path: &str, wanted: &ExpectedFile, outcome: &CaseOutcome) -> Vec<String> {
    let mut unmet = Vec::new();
    let (before, after) = (outcome.before.get(path), outcome.after.get(path));
    let text = after.map_or("", String::as_str);
    let describe_file = || match after {
        Some(text) => format!("it says {:?}", truncate_text(text.trim(), MAX_SHOWN_CHARS)),
        None => "it isn't there".to_owned(),
    };
    for words in wanted.contains.iter().filter(|words| !text.contains(words.as_str())) {
        unmet.push(format!("{path} lacks {words:?}; {}.", describe_file()));
    }
    for words in wanted.lacks.iter().filter(|words| text.contains(words.as_str())) {
        unmet.push(format!("{path} has {words:?}; {}.", describe_file()));
    }
    if wanted.equals.as_ref().is_some_and(|equals| equals.trim_end() != text.trim_end()) {
        unmet.push(format!("{path} says something else; {}.", describe_file()));
    }
    if wanted.unchanged && before != after {
        unmet.push(format!("{path} was changed; {}.", describe_file()));
    }
    unmet
}

fn has_words(text: &str, words: &str) -> bool {
    text.to_lowercase().contains(&words.to_lowercase())
}

fn describe_expectation(wanted: &ExpectedReceipt) -> String {
    let of = wanted.tool.as_ref().map_or_else(String::new, |tool| format!("of {tool}"));
    let with = wanted.what.as_ref().map_or_else(String::new, |what| format!("with {what:?}"));
    format!("{of} {with}").trim().to_owned()
}

fn describe_receipts(done: &[&Receipt]) -> String {
    let one = |receipt: &&Receipt| {
        let tool = if receipt.tool.is_empty() { "a rule" } else { &receipt.tool };
        format!("{} ({tool})", receipt.what.as_deref().unwrap_or_default())
    };
    done.iter().map(one).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(text: &str) -> Expected {
        toml::from_str(text).unwrap()
    }

    fn outcome() -> CaseOutcome {
        let receipt = |tool: &str, what: &str| Receipt { tool: tool.to_owned(), what: Some(what.to_owned()) };
        let file = |text: &str| BTreeMap::from([("memory/a.md".to_owned(), text.to_owned())]);
        CaseOutcome {
            receipts: vec![receipt("remember", "Remembered “wifi”"), Receipt { tool: "quote".to_owned(), what: None }],
            asked: vec![("bash".to_owned(), "{}".to_owned())],
            said: vec!["It is 1234.".to_owned()],
            before: file("- a\n"),
            after: file("- a\n- b\n"),
            trouble: Vec::new(),
        }
    }

    #[test]
    fn each_expectation_can_be_met_and_missed() {
        let unmet = |text: &str| {
            let asks = if text.contains("asks") { "" } else { "asks = [\"bash\"]\n" };
            check_outcome(&expected(&format!("{asks}{text}")), &outcome(), &Registry::for_thinking_model()).len()
        };
        for (text, expected) in [
            ("did = [{ tool = \"remember\", what = \"WIFI\" }]", 0),
            ("did = [{ tool = \"forget\" }]", 1),
            ("did = [{ tool = \"quote\" }]", 1),
            ("did = [{ what = \"router\" }]", 1),
            ("did_not = [{ tool = \"forget\" }, { what = \"router\" }]", 0),
            ("did_not = [{ what = \"wifi\" }]", 1),
            ("asks = []", 1),
            ("asks = [\"bash\", \"open\"]", 1),
            ("asks = []\nmay_ask = [\"bash\", \"open\"]", 0),
            ("answer = [\"it is\"]\nanswer_lacks = [\"5678\"]", 0),
            ("answer = [\"5678\"]\nanswer_lacks = [\"1234\"]", 2),
            ("[files.\"memory/a.md\"]\ncontains = [\"- b\"]\nlacks = [\"- c\"]\nequals = \"- a\\n- b\"", 0),
            ("[files.\"memory/a.md\"]\ncontains = [\"- c\"]\nlacks = [\"- a\"]\nequals = \"- a\"\nunchanged = true", 4),
            ("[files.\"memory/b.md\"]\nunchanged = true", 0),
            ("[files.\"memory/b.md\"]\ncontains = [\"x\"]", 1),
        ] {
            assert_eq!(unmet(text), expected, "{text}");
        }
    }
}
