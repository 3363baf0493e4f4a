//! Tasks: added and done. (Lists are known as whole sentences.)

use chrono::DateTime;
use chrono_tz::Tz;

use super::{Command, Reading, ask, sentence::Sentence};

pub(super) fn read(sentence: &Sentence<'_>, _now: DateTime<Tz>) -> Option<Reading> {
    let command = add(sentence).or_else(|| add_to_list(sentence)).or_else(|| done(sentence))?;
    // "Task 2 done?" asks; "could you add a task?" doesn't.
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
fn add(sentence: &Sentence<'_>) -> Option<Reading> {
    let (backlog, end) = sentence.cursor().lookup(ADD)?;
    let rest = sentence.rest_at(end);
    let title = rest.body().skipping("?to|called|named|titled|for|: ?:").body();
    if rest.body().is_blank() {
        return Some(ask("What is the task? I haven't written one down yet: please send “add task” and its title."));
    }
    // "Todo lists are tiring", "add a task is what he said", "add task lists": no titles.
    let is_title = rest.body().is_body() && title.is_body() && !title.is_pronoun();
    let is_compound = rest.cursor().phrase("list|lists|force|manager|app").is_some();
    (is_title && !is_compound).then(|| task(&title, backlog))
}

const LISTS: &[(&str, bool)] = &[
    ("to|on|in|into|onto ?my|the|our backlog", true),
    ("to|on|in|into|onto ?my|the|our task|todo|to-do list", false),
    ("to|on|in|into|onto ?my|the|our list|tasks|todos|to-dos", false),
    ("as ?a|an ?new task|todo|to-do", false),
];

/// "Add buy milk to my tasks", "put the report on my to-do list".
fn add_to_list(sentence: &Sentence<'_>) -> Option<Reading> {
    let verb = sentence.cursor().phrase("add|put")?;
    let rest = sentence.rest_at(verb).body();
    let (backlog, end) = (1..rest.len()).find_map(|index| {
        let list = rest.part_from(index);
        LISTS.iter().find(|(pattern, _)| list.is_all_of(pattern)).map(|(_, backlog)| (*backlog, index))
    })?;
    let title = rest.part_until(end).body();
    (title.is_body() && !title.is_pronoun()).then(|| task(&title, backlog))
}

fn task(title: &Sentence<'_>, backlog: bool) -> Reading {
    Reading::Command(Command::TaskAdd { title: title.text().to_owned(), backlog })
}

const DONE: &str = "done|finished|complete|completed";

/// Beginnings, and what must stand at the end.
const FINISHED: &[(&str, Option<&str>)] = &[
    ("mark|set|tick|check ?off ?the ?task|todo", Some("?as|off done|finished|complete|completed|off")),
    ("tick|check|cross off ?the ?task|todo", None),
    ("done|finished|completed :", None),
    ("done|finished ?with ?the task|todo", None),
    ("complete|completed|finish ?the task|todo", None),
    ("i ?have ?just finished|completed|did ?with ?the|my task|todo", None),
    ("i've ?just finished|completed|done ?with ?the|my task|todo", None),
    ("i'm|im ?now done|finished with ?the|my task|todo", None),
    ("i am ?now done|finished with ?the|my task|todo", None),
    ("the task|todo", Some("is|was ?now done|finished|complete|completed")),
    ("task|todo done|finish|complete ?:", None),
    ("task|todo", Some("?is ?now done|finished|complete|completed")),
];

fn done(sentence: &Sentence<'_>) -> Option<Reading> {
    FINISHED.iter().find_map(|(opener, closing)| {
        let begun = sentence.rest_at(sentence.cursor().phrase(opener)?).body();
        let named = match closing {
            Some(closing) => {
                let end = (1..begun.len()).find(|index| begun.part_from(*index).is_all_of(closing))?;
                begun.part_until(end)
            }
            None => begun,
        };
        let is_half_said = named.is_negated()
            || named.cursor().phrase(DONE).is_some()
            || named.cursor().phrase("force|list|lists").is_some();
        let which = named.which().filter(|_| !is_half_said)?;
        Some(Reading::Command(Command::TaskDone { which }))
    })
}
