//! Parses new tasks, with their due dates. Changes to tasks are parsed in `change`, requests for lists in `known`.

use chrono::{DateTime, NaiveDate};

use reveille_base::{
    schedule::{parse_only_day, parse_when},
    zone::Tz,
};

use super::{Missing, OfflineCommand, Reading, ask_back, ask_for_part, sentence::Sentence};

pub(super) fn parse_task(sentence: &Sentence<'_>, now: DateTime<Tz>) -> Option<Reading> {
    let command = parse_several(sentence, now)
        .or_else(|| parse_add(sentence, now))
        .or_else(|| add_to_list(sentence, now))
        .or_else(|| parse_plain_add(sentence, now))?;
    // "Add a task for that?" is a question; "could you add a task?" is an order.
    Some(if sentence.is_bare_question() { Reading::Question } else { command })
}

/// The list that a task is added to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskPlace {
    Active,
    Backlog,
}

const ADD: &[(&str, TaskPlace)] = &[
    ("add|create|make ?a|an|another|one ?new task|todo|to-do to ?my|the backlog", TaskPlace::Backlog),
    ("add|create|make ?a|an|another|one ?new backlog task|item", TaskPlace::Backlog),
    ("add to ?my|the backlog", TaskPlace::Backlog),
    ("new backlog task|item", TaskPlace::Backlog),
    ("backlog :", TaskPlace::Backlog),
    ("add|create|make ?a|an|another|one ?new task|todo|to-do to ?my|the list|tasks", TaskPlace::Active),
    ("add|create|make ?a|an|another|one ?new task|todo|to-do", TaskPlace::Active),
    ("add to ?my|the tasks|todos|to-dos|list :", TaskPlace::Active),
    ("add to ?my|the task|todo|to-do list :", TaskPlace::Active),
    ("new task|todo|to-do", TaskPlace::Active),
    ("task|todo|to-do :", TaskPlace::Active),
    ("task|todo|to-do add|new ?:", TaskPlace::Active),
    ("todo|to-do", TaskPlace::Active),
    ("a|another|one ?more ?new task|todo|to-do :", TaskPlace::Active),
    ("add to ?my|the ?list ?of tasks|todos|to-dos", TaskPlace::Active),
];

/// Parses "Add task buy milk", "task add buy milk", "todo: buy milk".
fn parse_add(sentence: &Sentence<'_>, now: DateTime<Tz>) -> Option<Reading> {
    let (place, end) = sentence.cursor().match_table(ADD)?;
    let rest = sentence.skip_to(end);
    let title = rest.body().skip_phrase("?to|called|named|titled|for|: ?:").body();
    if rest.body().is_blank() {
        return Some(ask_for_part(
            Missing::Title,
            "What is the task? I haven't written one down yet: please say its title.",
        ));
    }
    // "Todo lists are tiring", "add a task is what he said", "add task lists": no titles.
    let is_title = rest.body().is_body() && title.is_body() && !title.is_pronoun();
    let is_compound = rest.cursor().match_phrase("list|lists|force|manager|app").is_some();
    (is_title && !is_compound).then(|| build_task(&title, place, now))
}

/// Openers of a series of tasks.
const ROW: &[&str] = &["?my|new|some|add todos|to-dos|tasks|todo|to-do|task ?list ?for", "?my|new to do ?list|s ?for"];
/// Openers of a series that announce several tasks.
const COUNTED: &[&str] = &[
    "?another 2|3|4|5|6|two|three|four|five|some|few|more ?more ?other things|jobs|tasks|todos|to-dos ?to ?do ?for",
    "a few ?more things|jobs|tasks ?to ?do ?for",
];
/// Openers of a duty: "I need to", "we must".
const NEEDED: &[&str] = &[
    "?i|we ?really ?still ?also ?just need|have|ought to",
    "?i|we ?really ?still ?also ?just must",
    "?i|we ?really ?still ?also ?just gotta|hafta",
    "?i|we ?still ?also have|ve|'ve got to",
    "i've|we've ?still ?also got to",
];
/// Verbs at the beginning of a task, which separate tasks in a series.
pub(super) const TASK_VERBS: &str = "buy|get|call|ring|phone|email|text|message|write|pay|book|renew|clean|fix|repair|order|return|wash|paint|water|pick|visit|\
     collect|finish|prepare|prep|pack|file|mow|feed|walk|post|print|sign|submit|schedule|plan|invite|read|do|reply|answer|send|take|bring|drop|\
     hoover|vacuum|iron|tidy|sort|move|cancel|change|replace|check|chase|measure|hang|change|cook|bake|study|revise|learn|practise|transfer|\
     confirm|update|install|charge|fill|empty|wrap|sell|register|apply|review|cut|trim|sweep|defrost|fetch|make|arrange|organise|organize|\
     complete|hand|grade|mark|correct|upload|download|back|replant|repot|borrow|lend|lock|draft|dust|unpack|put|ask|tell|talk|prune|change";
/// Words after such a verb that make a request for the assistant or for help: "get me the news", "ask you something".
const FOR_ME: &str = "me|us|you|it|that|this|him|her|them|your|what|how|whether|if|sure|up|out|with|about|someone|somebody|something|anything";
/// Maximum tokens of a sentence with tasks.
const MAX_TOKENS: usize = 32;

/// Parses "Add renew the parking permit": a verb with its object, as opposed to a thing to buy.
fn parse_plain_add(sentence: &Sentence<'_>, now: DateTime<Tz>) -> Option<Reading> {
    const THING: &str = "the|a|an|my|our|his|her|their|mum|dad|mom|some|new|to|with|for|back";
    let title = sentence.strip_phrase("add")?.body();
    let end = title.cursor().match_phrase(TASK_VERBS)?;
    (end.match_phrase(THING).is_some() && title.is_body()).then(|| build_task(&title, TaskPlace::Active, now))
}

/// Parses "Todos: ring the vet, pay the gas bill and post the parcel" into separate tasks.
fn parse_several(sentence: &Sentence<'_>, now: DateTime<Tz>) -> Option<Reading> {
    let counted = COUNTED.iter().find_map(|pattern| sentence.cursor().match_phrase(pattern));
    let end = counted.or_else(|| ROW.iter().find_map(|pattern| sentence.cursor().match_phrase(pattern)))?;
    let rest = sentence.skip_to(end);
    let is_plural = sentence.part_until(sentence.len() - rest.len()).has_word("todos|to-dos|tasks");
    let at = (0..rest.len().min(4)).find(|at| rest.part_from(*at).cursor().text() == ":")?;
    let day = rest.part_until(at).body();
    let day = if day.is_blank() { None } else { Some(parse_only_day(day.text(), now)?.ok()?) };
    let row = rest.part_from(at + 1).body();
    let parts = if counted.is_some() {
        split_at_joints(&row, ",|;|and|&")
    } else {
        split_row(&row, if is_plural { RowOpener::Plural } else { RowOpener::Singular })?
    };
    (parts.len() > 1 || day.is_some()).then(|| Reading::Commands(build_tasks(&parts, day, now)))
}

/// Parses "I need to ring the vet, pay the gas bill and post the parcel". With a time it would be a reminder instead.
pub(super) fn parse_needs(sentence: &Sentence<'_>, now: DateTime<Tz>) -> Option<Reading> {
    // A day at the beginning ("Tomorrow I have to …") or at the end ("… tomorrow") is the due date.
    let (first, sentence) = split_leading_day(sentence, now);
    let sentence = &sentence;
    let body = NEEDED.iter().find_map(|pattern| sentence.strip_phrase(pattern))?.body();
    let last = (1..body.len()).rev().find_map(|at| Some((at, parse_only_day(body.part_from(at).text(), now)?.ok()?)));
    let (body, last) = match last {
        Some((at, day)) if first.is_none() => {
            (body.part_until(at).body().without_ending("by|on|until|before|till"), Some(day))
        }
        _ => (body, None),
    };
    let starts = |part: &Sentence<'_>| {
        part.cursor().match_phrase(TASK_VERBS).is_some_and(|end| !end.is_end() && end.match_phrase(FOR_ME).is_none())
    };
    let is_plain_statement = !sentence.is_question()
        && !sentence.is_negated()
        && body.len() <= MAX_TOKENS
        && parse_when(body.text(), now).is_none();
    let parts = split_row(&body, RowOpener::Duty)?;
    let has_other_words =
        body.has_word("because|but|since|so|remind|remember|please|can|could|you|your|maybe|probably");
    (is_plain_statement && !has_other_words && parts.iter().skip(usize::from(parts.len() > 1)).all(starts))
        .then(|| Reading::Commands(build_tasks(&parts, first.or(last), now)))
}

/// Splits off a day that comes before "I have to".
fn split_leading_day<'t>(sentence: &Sentence<'t>, now: DateTime<Tz>) -> (Option<NaiveDate>, Sentence<'t>) {
    let found = (1..sentence.len().min(5)).find_map(|at| {
        let rest = sentence.part_from(at).skip_phrase(",");
        NEEDED.iter().find_map(|pattern| rest.cursor().match_phrase(pattern))?;
        let day = sentence.part_until(at).body();
        let day = day.text().to_lowercase().replace("tomorow", "tomorrow").replace("tommorow", "tomorrow");
        Some((parse_only_day(&day, now)?.ok()?, rest))
    });
    found.map_or((None, *sentence), |(day, rest)| (Some(day), rest))
}

fn build_tasks(parts: &[Sentence<'_>], day: Option<NaiveDate>, now: DateTime<Tz>) -> Vec<OfflineCommand> {
    let added =
        parts.iter().filter_map(|part| match build_task(&part.skip_phrase("?also ?to"), TaskPlace::Active, now) {
            Reading::Command(OfflineCommand::TaskAdd { title, backlog, due }) => {
                Some(OfflineCommand::TaskAdd { title, backlog, due: due.or(day) })
            }
            Reading::Command(other) => Some(other),
            _ => None,
        });
    added.collect()
}

/// A title with a due day in its middle.
struct DatedTitle<'t> {
    before: Sentence<'t>,
    day: NaiveDate,
    /// The rest, from the comma on.
    after: Sentence<'t>,
}

/// Splits "Pay the ticket by thursday, 35 euros" at its day.
fn split_due_day<'t>(title: &Sentence<'t>, now: DateTime<Tz>) -> Option<DatedTitle<'t>> {
    let comma = (2..title.len()).find(|at| title.part_from(*at).cursor().text() == ",")?;
    let before = title.part_until(comma);
    let (at, day) = (1..before.len()).rev().find_map(|at| {
        let day = before
            .part_from(at)
            .strip_phrase("?due by|on|before")
            .filter(|_| before.part_from(at).cursor().match_phrase("due|by|before").is_some())?;
        Some((at, parse_only_day(day.text(), now)?.ok()?))
    })?;
    Some(DatedTitle { before: before.part_until(at), day, after: title.part_from(comma) })
}

/// What comes before a series of tasks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RowOpener {
    /// A word for several tasks: "todos".
    Plural,
    /// A word for one task.
    Singular,
    /// A duty: "I need to". The first part begins with a verb, even if that isn't in the list.
    Duty,
}

/// Splits a sentence into tasks at commas, semicolons and "and". Each part must begin with a verb of its own, unless the opener announces
/// several tasks or at least three names form a series. "Buy milk, eggs and bread" is one task.
fn split_row<'t>(body: &Sentence<'t>, opener: RowOpener) -> Option<Vec<Sentence<'t>>> {
    let starts = |part: &Sentence<'_>| {
        part.skip_phrase("?also ?to").cursor().match_phrase(TASK_VERBS).is_some_and(|end| !end.is_end())
    };
    let clauses = split_at_joints(body, ",|;|and|&|then");
    if clauses.iter().skip(usize::from(opener == RowOpener::Duty && clauses.len() > 1)).all(starts) {
        return clauses.iter().all(Sentence::is_body).then_some(clauses);
    }
    let with_semicolons = split_at_joints(body, ";");
    let by_commas = if with_semicolons.len() > 1 { with_semicolons } else { split_at_joints(body, ",|;") };
    let verbs = by_commas.iter().filter(|part| starts(part)).count();
    let is_mostly = by_commas.len() > 2 && 2 * verbs > by_commas.len();
    let is_named = verbs == 0 && (opener == RowOpener::Plural || by_commas.len() > 2);
    let is_row = by_commas.len() > 1 && (verbs == by_commas.len() || is_mostly || is_named);
    let parts = if is_row { by_commas } else { vec![*body] };
    parts.iter().all(|part| part.is_body() && !part.is_pronoun()).then_some(parts)
}

/// Splits a sentence at the words and marks in `joints`.
fn split_at_joints<'t>(body: &Sentence<'t>, joints: &str) -> Vec<Sentence<'t>> {
    let mut parts: Vec<Sentence<'t>> = Vec::new();
    let mut start = 0;
    for at in 0..=body.len() {
        if at < body.len() && body.part_from(at).cursor().match_phrase(joints).is_none() {
            continue;
        }
        let part = body.part_until(at).part_from(start).body().skip_phrase("and ?then ?also").body();
        start = at + 1;
        if !part.is_blank() {
            parts.push(part);
        }
    }
    parts
}

const LISTS: &[(&str, TaskPlace)] = &[
    ("to|on|in|into|onto ?my|the|our backlog", TaskPlace::Backlog),
    ("to|on|in|into|onto ?my|the|our task|todo|to-do list", TaskPlace::Active),
    ("to|on|in|into|onto ?my|the|our to do list", TaskPlace::Active),
    ("to|on|in|into|onto ?my|the|our list|tasks|todos|to-dos", TaskPlace::Active),
    ("as ?a|an ?new task|todo|to-do", TaskPlace::Active),
];

/// Parses "Add buy milk to my tasks", "put the report on my to-do list".
fn add_to_list(sentence: &Sentence<'_>, now: DateTime<Tz>) -> Option<Reading> {
    let verb = sentence.cursor().match_phrase("add|put")?;
    let rest = sentence.skip_to(verb).body();
    // "Put task 3 in the backlog" means an existing task.
    if rest.cursor().match_phrase("?the task|todo|t ?#").is_some_and(|number| number.read_number().is_some()) {
        return None;
    }
    let (place, end) = (1..rest.len()).find_map(|index| {
        let list = rest.part_from(index);
        // "… on my tasks for tomorrow".
        let list = match (1..list.len()).find(|at| parse_dated_ending(&list.part_from(*at), now).is_some()) {
            Some(at) => list.part_until(at),
            None => list,
        };
        LISTS.iter().find(|(pattern, _)| list.is_all_of(pattern)).map(|(_, place)| (*place, index))
    })?;
    let title = rest.part_until(end).body();
    let day = (end + 1..rest.len()).find_map(|at| parse_dated_ending(&rest.part_from(at), now));
    let added = build_tasks(&[title], day, now);
    let mut added = added.into_iter().map(|command| with_list(command, place));
    (title.is_body() && !title.is_pronoun()).then(|| added.next().map(Reading::Command)).flatten()
}

/// Parses "for tomorrow" after a list's name.
fn parse_dated_ending(ending: &Sentence<'_>, now: DateTime<Tz>) -> Option<NaiveDate> {
    parse_only_day(ending.strip_phrase("for|due|by")?.text(), now)?.ok()
}

/// Returns the thing and its due date from "The report is due friday". `None` unless the text names exactly one day.
pub fn due_day(fact: &str, now: DateTime<Tz>) -> Option<(&str, NaiveDate)> {
    let (thing, day) = [" is due ", " are due "].iter().find_map(|verb| fact.split_once(verb))?;
    let day = day.split(" (said on ").next().unwrap_or(day).trim_start_matches("on ").trim_start_matches("by ");
    let bare = ["the ", "my ", "our ", "The ", "My ", "Our "].iter().find_map(|article| thing.strip_prefix(article));
    Some((bare.unwrap_or(thing), parse_only_day(day, now)?.ok()?))
}

fn with_list(command: OfflineCommand, place: TaskPlace) -> OfflineCommand {
    match command {
        OfflineCommand::TaskAdd { title, due, .. } => {
            OfflineCommand::TaskAdd { title, backlog: place == TaskPlace::Backlog, due }
        }
        command => command,
    }
}

/// Builds a task, with a due date if the title ends in one: "renew passport due friday", "return the books by friday". Other days stay part
/// of the title.
pub(super) fn build_task(title: &Sentence<'_>, place: TaskPlace, now: DateTime<Tz>) -> Reading {
    let backlog = place == TaskPlace::Backlog;
    let due = ["?, due ?on|by|: ?:", "?, by"].iter().find_map(|pattern| {
        (1..title.len()).rev().find_map(|index| {
            let text = title.part_from(index).strip_phrase(pattern)?.text();
            Some((index, text, parse_only_day(text, now)?))
        })
    });
    if due.is_none()
        && let Some(DatedTitle { before, day, after }) = split_due_day(title, now)
    {
        let title = format!("{}{}", before.text().trim_end_matches([',', ' ']), after.text());
        return Reading::Command(OfflineCommand::TaskAdd { title, backlog, due: Some(day) });
    }
    let (title, due) = match due {
        None => (*title, None),
        Some((index, _, Ok(day))) => (title.part_until(index), Some(day)),
        Some((_, text, Err(trouble))) => {
            return ask_back(format!("“{text}” {trouble}. I haven't written anything down: please say the day again."));
        }
    };
    let title = title.text().trim_end_matches([',', ' ']).to_owned();
    Reading::Command(OfflineCommand::TaskAdd { title, backlog, due })
}
