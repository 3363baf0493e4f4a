//! Tasks that are added, with the day until which they are to be done. (What becomes of them is in `change`; lists are known as whole sentences.)

use chrono::DateTime;

use super::{Missing, OfflineCommand, Reading, ask, ask_for, sentence::Sentence};
use crate::{schedule::parse_only_day, zone::Tz};

pub(super) fn read(sentence: &Sentence<'_>, now: DateTime<Tz>) -> Option<Reading> {
    let command = add(sentence, now).or_else(|| add_to_list(sentence, now))?;
    // "Add a task for that?" asks; "could you add a task?" doesn't.
    Some(if sentence.is_bare_question() { Reading::Question } else { command })
}

const ADD: &[(&str, bool)] = &[
    ("add|create|make ?a|an|another|one ?new task|todo|to-do to ?my|the backlog", true),
    ("add|create|make ?a|an|another|one ?new backlog task|item", true),
    ("add to ?my|the backlog", true),
    ("new backlog task|item", true),
    ("backlog :", true),
    ("add|create|make ?a|an|another|one ?new task|todo|to-do to ?my|the list|tasks", false),
    ("add|create|make ?a|an|another|one ?new task|todo|to-do", false),
    ("add to ?my|the tasks|todos|to-dos|list :", false),
    ("add to ?my|the task|todo|to-do list :", false),
    ("new task|todo|to-do", false),
    ("task|todo|to-do :", false),
    ("task|todo|to-do add|new ?:", false),
    ("todo|to-do", false),
];

/// "Add task buy milk", "task add buy milk", "todo: buy milk".
fn add(sentence: &Sentence<'_>, now: DateTime<Tz>) -> Option<Reading> {
    let (backlog, end) = sentence.cursor().lookup(ADD)?;
    let rest = sentence.rest_at(end);
    let title = rest.body().skipping("?to|called|named|titled|for|: ?:").body();
    if rest.body().is_blank() {
        return Some(ask_for(
            Missing::Title,
            "What is the task? I haven't written one down yet: please say its title.",
        ));
    }
    // "Todo lists are tiring", "add a task is what he said", "add task lists": no titles.
    let is_title = rest.body().is_body() && title.is_body() && !title.is_pronoun();
    let is_compound = rest.cursor().phrase("list|lists|force|manager|app").is_some();
    (is_title && !is_compound).then(|| task(&title, backlog, now))
}

const LISTS: &[(&str, bool)] = &[
    ("to|on|in|into|onto ?my|the|our backlog", true),
    ("to|on|in|into|onto ?my|the|our task|todo|to-do list", false),
    ("to|on|in|into|onto ?my|the|our to do list", false),
    ("to|on|in|into|onto ?my|the|our list|tasks|todos|to-dos", false),
    ("as ?a|an ?new task|todo|to-do", false),
];

/// "Add buy milk to my tasks", "put the report on my to-do list".
fn add_to_list(sentence: &Sentence<'_>, now: DateTime<Tz>) -> Option<Reading> {
    let verb = sentence.cursor().phrase("add|put")?;
    let rest = sentence.rest_at(verb).body();
    // "Put task 3 in the backlog" is of a task that is there.
    if rest.cursor().phrase("?the task|todo|t ?#").is_some_and(|number| number.number().is_some()) {
        return None;
    }
    let (backlog, end) = (1..rest.len()).find_map(|index| {
        let list = rest.part_from(index);
        LISTS.iter().find(|(pattern, _)| list.is_all_of(pattern)).map(|(_, backlog)| (*backlog, index))
    })?;
    let title = rest.part_until(end).body();
    (title.is_body() && !title.is_pronoun()).then(|| task(&title, backlog, now))
}

/// The task, with its last day where the words end in one: "renew passport due friday". Other days are words of the title.
fn task(title: &Sentence<'_>, backlog: bool, now: DateTime<Tz>) -> Reading {
    let due = (1..title.len()).rev().find_map(|index| {
        let ending = title.part_from(index);
        let text = ending.rest_at(ending.cursor().phrase("?, due ?on|by|: ?:")?).text();
        Some((index, text, parse_only_day(text, now)?))
    });
    let (title, due) = match due {
        None => (*title, None),
        Some((index, _, Ok(day))) => (title.part_until(index), Some(day)),
        Some((_, text, Err(trouble))) => {
            return ask(format!("“{text}” {trouble}. I haven't written anything down: please say the day again."));
        }
    };
    let title = title.text().trim_end_matches([',', ' ']).to_owned();
    Reading::Command(OfflineCommand::TaskAdd { title, backlog, due })
}
