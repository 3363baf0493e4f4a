//! Everyday sentences as people type them, each with its fate: the commands read from it, a similar command to confirm ("near …"), a
//! question about a missing detail ("asks …"), or kept for a model. No sentence may be read as something it doesn't say.

use super::*;

/// Returns the fate of a message, as written in the table.
fn fate(text: &str) -> String {
    match parse(text, saturday()) {
        ParsedMessage::Commands(commands) => commands.iter().map(command_form).collect::<Vec<_>>().join(" + "),
        ParsedMessage::Question(question) => {
            let (asked, words) = classify_question(&question);
            format!("asks {asked:?} ‹{words}›")
        }
        ParsedMessage::Unclear { .. } => match (detect_language(text), find_nearest(text, saturday())) {
            (Some(language), _) => format!("kept in {language:?}"),
            (None, Some(Near::Form(form))) => format!("near ‹{form}›"),
            (None, Some(Near::Ask(_))) => "ask back".to_owned(),
            (None, None) => "kept".to_owned(),
        },
    }
}

#[track_caller]
fn check(table: &str) {
    let rows = table.lines().filter_map(|line| line.trim().split_once(" => "));
    let wrong: Vec<String> = rows
        .filter(|(text, expected)| fate(text) != *expected)
        .map(|(text, expected)| format!("{text:?}\n    expected {expected}\n    got      {}", fate(text)))
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), table.lines().count(), wrong.join("\n"));
}

/// One sentence per line, with its fate.
const SENTENCES: &str = include_str!("everyday.txt");

#[test]
fn every_sentence_meets_its_fate() {
    check(SENTENCES);
}

/// Counts the fates in the table. The test above checks that they are right.
#[test]
fn at_most_a_tenth_are_kept_for_a_model() {
    let fates: Vec<&str> = SENTENCES.lines().filter_map(|line| Some(line.split_once(" => ")?.1)).collect();
    let kept = fates.iter().filter(|fate| **fate == "kept").count();
    assert!(fates.len() >= 300 && kept * 10 <= fates.len(), "{kept} of {} are kept", fates.len());
}

/// Questions, doubts and denials are never stored as facts.
#[test]
fn no_question_or_doubt_becomes_a_fact() {
    let facts: Vec<&str> = SENTENCES
        .lines()
        .filter_map(|line| line.split_once(" => "))
        .filter(|(_, fate)| fate.starts_with("stated"))
        .map(|(text, _)| text)
        .filter(|text| !text.contains(['.', '?', '!', ':']))
        .collect();
    let stored = |text: &str| matches!(parse(text, saturday()), ParsedMessage::Commands(commands) if commands.iter().any(|command| matches!(command, OfflineCommand::Stated { .. })));
    for fact in facts.into_iter().step_by(4) {
        for asked in [
            format!("{fact}?"),
            format!("do you think {fact}"),
            format!("I wonder if {fact}"),
            format!("did you know that {fact}"),
            format!("what if {fact}"),
            format!("maybe {fact}"),
            format!("she said {fact}"),
            format!("{fact}, he said"),
            format!("is it true that {fact}"),
            format!("I don't think {fact}"),
            format!("> {fact}"),
            format!("Fwd: {fact}"),
            format!("{fact}, right"),
            format!("“{fact}”"),
        ] {
            assert!(!stored(&asked), "{asked}");
        }
    }
}
