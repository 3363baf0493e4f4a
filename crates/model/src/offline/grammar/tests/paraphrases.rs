//! Reminders in people's own words, written by somebody who hadn't seen the reader.

use serde::Deserialize;

use super::*;

/// A sentence with every time or rule it can mean; `ask` if a question is right too.
#[derive(Deserialize)]
struct Paraphrase {
    now: String,
    say: String,
    text: String,
    any: Vec<String>,
}

#[test]
fn of_fresh_sentences_four_in_five_are_right_and_none_is_silently_wrong() {
    let lines = include_str!("paraphrases.jsonl").lines();
    let all: Vec<Paraphrase> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    let (mut right, mut wrong) = (0, Vec::new());
    for Paraphrase { now, say, text, any } in &all {
        let now = local("Europe/Berlin".parse::<Tz>().unwrap(), &now.replace('T', " "));
        let (when, what) = match parse(say, now) {
            ParsedMessage::Commands(commands) => match commands.as_slice() {
                [OfflineCommand::Remind { what, when: When::At(slot), .. }] => {
                    (slot.civil.format("%Y-%m-%dT%H:%M").to_string(), what.clone())
                }
                [OfflineCommand::Remind { what, when: When::Every(rule), .. }] => (rule.to_string(), what.clone()),
                [OfflineCommand::AskBack { .. }] => ("ask".to_owned(), text.clone()),
                other => (format!("{other:?}"), String::new()),
            },
            ParsedMessage::Unclear { .. } | ParsedMessage::Question(_) => ("ask".to_owned(), text.clone()),
        };
        let is_right = any.contains(&when) && what.eq_ignore_ascii_case(text);
        right += usize::from(is_right);
        if !is_right && when != "ask" {
            wrong.push(format!("{say} (at {now}): {when} ‹{what}›, not {any:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {} silently wrong:\n{}", wrong.len(), all.len(), wrong.join("\n"));
    assert!(right * 5 >= all.len() * 4, "{right} of {} right", all.len());
}
