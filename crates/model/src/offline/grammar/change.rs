//! Parses changes to existing tasks and reminders: finish, drop, rename, move, postpone. A form consists of an opener, the words after the
//! thing, and the act. The thing is the text in between.

use chrono::{DateTime, NaiveTime, TimeDelta};

use reveille_base::{
    schedule::{
        Slot, When, is_distance, parse_when,
        words::{Cursor, tokenize},
    },
    zone::Tz,
};

use super::{Moment, OfflineCommand, Reading, ThingKind, Which, ask_back, sentence::Sentence};

/// The change to the thing.
#[derive(Clone, Copy)]
enum Act {
    /// An order to finish a task, named by any of its words.
    Finish,
    /// A statement that something is finished. Counts for a task only if the number, the word "task" or the whole title is said: "The work
    /// is done" finishes no other work.
    Told,
    /// The same, with the word "task" required.
    ToldOfTask,
    /// Delete a task or a reminder.
    Delete,
    /// Delete, with the kind required: "cancel my flight" means something else.
    Cancel,
    /// Rename; the new title follows.
    Rename,
    ToBacklog,
    ToActive,
    /// Postpone; the new time follows.
    Postpone,
    /// Snooze; an optional delay follows.
    Snooze,
}

/// The words after the thing.
#[derive(Clone, Copy)]
enum Then {
    /// Nothing: the thing is the entire rest.
    Nothing,
    /// These words, at the end.
    Closing(&'static str),
    /// These words, and then the act's argument.
    Joint(&'static str),
}

use Then::{Closing, Joint, Nothing};

/// A form of an order or a statement about a thing.
struct ChangeForm {
    /// The words before the thing.
    opener: &'static str,
    /// The words after it.
    then: Then,
    act: Act,
}

const fn form(opener: &'static str, then: Then, act: Act) -> ChangeForm {
    ChangeForm { opener, then, act }
}

/// The forms, in the order in which they are tried.
const FORMS: &[ChangeForm] = &[
    form(
        "mark|set|tick|check|cross|scratch|strike ?off",
        Closing("?as done|finished|complete|completed|off"),
        Act::Finish,
    ),
    form("tick|check|cross|scratch|strike off", Nothing, Act::Finish),
    form("done|finished|completed :", Nothing, Act::Finish),
    form("task|todo done|finish|complete ?:", Nothing, Act::Finish),
    form("i ?have ?just finished|completed|did ?with", Nothing, Act::Told),
    form("i've|ive ?just finished|completed|done ?with", Nothing, Act::Told),
    form("i'm|im ?now done|finished with", Nothing, Act::Told),
    form("i am ?now done|finished with", Nothing, Act::Told),
    form("it's|its|that's|thats ?now|already|all done|finished|complete|completed", Nothing, Act::Told),
    form("done|finished|completed ?with", Nothing, Act::Told),
    form("complete|finish", Nothing, Act::ToldOfTask),
    form("", Closing("is|was|are ?now|already|all done|finished|complete|completed"), Act::Told),
    form("", Closing("done|finished|complete|completed"), Act::ToldOfTask),
    form("delete|drop|remove|scrap|abandon|discard", Nothing, Act::Delete),
    form("get rid of", Nothing, Act::Delete),
    form("give up ?on", Nothing, Act::Delete),
    form("cancel", Nothing, Act::Cancel),
    form("rename", Joint("to|into|as"), Act::Rename),
    form("change ?the title|name of", Joint("to|into"), Act::Rename),
    form(MOVE, Closing("?back to|into|in|onto|on ?my|the|our backlog"), Act::ToBacklog),
    form(
        MOVE,
        Closing("?back to|into|in|onto|on ?my|the|our ?active|open|current tasks|list|todos|active"),
        Act::ToActive,
    ),
    form(MOVE, Closing("?back to|into|in|onto|on ?my|the|our ?active task|todo|to-do list"), Act::ToActive),
    form(MOVE, Closing("?back to active"), Act::ToActive),
    form("activate", Nothing, Act::ToActive),
    form(POSTPONE, Joint("to|until|till|for|by"), Act::Postpone),
    form("change ?the ?time ?of", Joint("to"), Act::Postpone),
    form("snooze", Joint("for|until|till|to"), Act::Snooze),
    form("snooze", Nothing, Act::Snooze),
];
const MOVE: &str = "move|put|shift|push|bring|take ?back";
const POSTPONE: &str = "move|shift|postpone|push|delay|reschedule|defer|put ?off|back";

/// Words that name no thing, and incomplete phrases.
const NO_THING: &str = "done|finished|complete|completed|force|list|lists|words|mind";
/// Maximum tokens of a title in a statement.
const MAX_TITLE_TOKENS: usize = 12;

pub(super) fn parse_change(sentence: &Sentence<'_>, now: DateTime<Tz>) -> Option<Reading> {
    let reading =
        FORMS.iter().find_map(|form| match_form(sentence, form, now)).or_else(|| parse_make(sentence, now))?;
    // "Task 2 done?" is a question; "could you delete it?" is an order.
    Some(if sentence.is_bare_question() { Reading::Question } else { reading })
}

/// Parses "make the kids 3:30", a new time for the reminder of that name.
fn parse_make(sentence: &Sentence<'_>, now: DateTime<Tz>) -> Option<Reading> {
    let rest = sentence.strip_phrase("make|change the|my|that")?.body();
    let rest = if rest.len() > 2 && rest.part_from(rest.len() - 1).is_all_of("instead|please|then") {
        rest.part_until(rest.len() - 1)
    } else {
        rest
    };
    let at = (1..rest.len().min(MAX_TITLE_TOKENS)).find(|at| {
        let time = rest.part_from(*at);
        let is_hour = time.cursor().read_number().is_some_and(|(hour, end)| hour <= 24 && end.is_end());
        (is_hour || is_time(time.text(), now)) && !is_distance(time.text())
    })?;
    let which = rest
        .part_until(at)
        .without_ending("one|reminder")
        .parse_which()
        .filter(|which| matches!(which, Which::Text(_)))?;
    let time = rest.part_from(at).text();
    let when = parse_moment(time, now).or_else(|| parse_moment(&format!("at {time}"), now))?.ok()?;
    Some(Reading::Command(OfflineCommand::Postpone { which, kind: Some(ThingKind::Reminder), when }))
}

/// Matches a sentence against a form.
fn match_form(sentence: &Sentence<'_>, form: &ChangeForm, now: DateTime<Tz>) -> Option<Reading> {
    let ChangeForm { opener, then, act } = form;
    let begun = match *opener {
        "" => *sentence,
        opener => sentence.skip_to(sentence.cursor().match_phrase(opener)?),
    };
    let begun = begun.body();
    match then {
        Nothing => build_command(*act, &begun, None, now),
        Closing(closing) => {
            let end = (0..begun.len()).find(|index| begun.part_from(*index).is_all_of(closing))?;
            build_command(*act, &begun.part_until(end).body(), None, now)
        }
        // The last possible split: "rename write to Bob to call Bob".
        Joint(joint) => (0..begun.len()).rev().find_map(|index| {
            begun.part_from(index).cursor().match_phrase(joint)?;
            build_command(*act, &begun.part_until(index).body(), Some(&begun.part_from(index + 1).body()), now)
        }),
    }
}

fn build_command(act: Act, thing: &Sentence<'_>, rest: Option<&Sentence<'_>>, now: DateTime<Tz>) -> Option<Reading> {
    if let Act::Snooze = act {
        return parse_snooze(thing, rest, now);
    }
    let (which, kind) = parse_thing(thing)?;
    let command = match act {
        Act::Finish | Act::Told | Act::ToldOfTask => {
            let is_of_task = kind == Some(ThingKind::Task);
            let is_half_said = thing.is_negated() || thing.len() > MAX_TITLE_TOKENS || thing.text().contains(',');
            let is_number = matches!(which, Which::Number(_));
            let is_more = matches!(act, Act::ToldOfTask) && !is_of_task && !is_number;
            if is_half_said || is_more || thing.is_question() || kind == Some(ThingKind::Reminder) {
                return None;
            }
            let which = match which {
                Which::Text(title) if matches!(act, Act::Told) && !is_of_task => Which::Title(title),
                which => which,
            };
            OfflineCommand::TaskDone { which }
        }
        Act::Cancel if kind.is_none() && which != Which::It => return None,
        Act::Delete | Act::Cancel => match (kind, which) {
            (Some(ThingKind::Task), which) => OfflineCommand::TaskDrop { which },
            (Some(ThingKind::Reminder), which) => OfflineCommand::CancelReminder { which },
            (None, Which::Number(number)) => return Some(ask_which(number, "delete")),
            (None, which) => OfflineCommand::Delete { which },
        },
        Act::Rename => {
            let to = rest.filter(|to| to.is_body())?.strip_quotes();
            OfflineCommand::TaskRename { which, to: to.text().to_owned() }
        }
        Act::ToBacklog | Act::ToActive => OfflineCommand::TaskMove { which, backlog: matches!(act, Act::ToBacklog) },
        Act::Postpone => match (parse_moment(rest?.text(), now)?, which) {
            (Err(question), _) => return Some(ask_back(question)),
            (_, Which::Number(number)) if kind.is_none() => return Some(ask_which(number, "postpone")),
            (Ok(when), which) => OfflineCommand::Postpone { which, kind, when },
        },
        Act::Snooze => return None,
    };
    Some(Reading::Command(command))
}

fn ask_which(number: u32, verb: &str) -> Reading {
    ask_back(format!(
        "Do you mean a task or a reminder? I haven't changed anything: please say “{verb} task {number}” or “{verb} reminder {number}”."
    ))
}

/// Parses "snooze", "snooze 10 minutes", "snooze reminder 2 until tomorrow".
fn parse_snooze(thing: &Sentence<'_>, rest: Option<&Sentence<'_>>, now: DateTime<Tz>) -> Option<Reading> {
    let usual = || Moment {
        when: When::At(Slot::from_instant(now.to_utc() + SNOOZE, now.timezone())),
        day: None,
        time: None,
        by: Some(format!("{} minutes", SNOOZE.num_minutes())),
    };
    let as_time = rest.is_none().then(|| parse_moment(thing.text(), now)).flatten();
    let ((which, kind), when) = match (rest, as_time) {
        (Some(rest), _) => (parse_thing(thing)?, parse_moment(rest.text(), now)?),
        (None, Some(when)) => ((Which::It, None), when),
        (None, None) => (parse_thing(thing)?, Ok(usual())),
    };
    Some(match when {
        Err(question) => ask_back(question),
        Ok(when) if which == Which::It => Reading::Command(OfflineCommand::Snooze { when }),
        Ok(when) => {
            Reading::Command(OfflineCommand::Postpone { which, kind: kind.or(Some(ThingKind::Reminder)), when })
        }
    })
}

/// The default delay of a snooze.
const SNOOZE: TimeDelta = TimeDelta::minutes(10);

/// Parses a thing, or a pronoun for the last one, with its kind if stated before or after.
fn parse_thing(thing: &Sentence<'_>) -> Option<(Which, Option<ThingKind>)> {
    const BEFORE: &[(&str, ThingKind)] =
        &[("task|todo|to-do", ThingKind::Task), ("reminder ?:|for|about|to|of|with|called", ThingKind::Reminder)];
    if thing.is_blank() || thing.is_all_of("it|this|that|this|that ?one|task|reminder") {
        return Some((Which::It, None));
    }
    let bare = thing.skip_phrase("the|my|this|that");
    let is_t_number = bare.cursor().text() == "t" && bare.cursor().next().read_number().is_some();
    let (bare, kind) = match bare.cursor().match_table(BEFORE) {
        _ if is_t_number => (bare.part_from(1), Some(ThingKind::Task)),
        Some((kind, end)) => (bare.skip_to(end), Some(kind)),
        None => {
            let last = bare.len().checked_sub(1)?;
            match bare.part_from(last).cursor().text() {
                "task" if last > 0 => (bare.part_until(last), Some(ThingKind::Task)),
                "reminder" if last > 0 => (bare.part_until(last), Some(ThingKind::Reminder)),
                _ => (*thing, None),
            }
        }
    };
    if bare.is_blank() {
        return Some((Which::It, kind));
    }
    if bare.cursor().match_phrase(NO_THING).is_some() {
        return None;
    }
    Some((bare.parse_which()?, kind))
}

/// Parses words that are entirely a time. The inner error says what is wrong with the time; `None` if it isn't a time.
fn parse_moment(text: &str, now: DateTime<Tz>) -> Option<Result<Moment, String>> {
    // "For 10 minutes", "Friday", "tomorrow at 8".
    let candidates = [text.to_owned(), format!("in {text}")];
    let found = candidates
        .iter()
        .find_map(|text| parse_when(text, now).filter(|found| is_all(text, &found.span)).map(|found| (text, found)));
    let (text, found) = found?;
    Some(match found.when {
        Err(trouble) => {
            Err(format!("“{text}” {trouble}. I haven't changed anything: please say it again with another time."))
        }
        Ok(when) => {
            // A day alone leaves the time of day unchanged.
            let with_time = format!("{text} at 11:00");
            let takes_time = parse_when(&with_time, now)
                .is_some_and(|found| found.when.is_ok() && found.span == (0..with_time.len()));
            let day = match &when {
                When::At(slot) if takes_time => Some(slot.civil.date()),
                _ => None,
            };
            let by = is_distance(text).then(|| text.trim_end_matches(['.', '!']).to_owned());
            let time = if by.is_none() && day.is_none() { time_alone(text, now) } else { None };
            Ok(Moment { when, day, time, by })
        }
    })
}

/// Parses a time of day without a day beside it.
fn time_alone(text: &str, now: DateTime<Tz>) -> Option<NaiveTime> {
    let text = text.trim();
    let tomorrow = format!("tomorrow at {}", text.strip_prefix("at ").unwrap_or(text));
    let found = parse_when(&tomorrow, now).filter(|found| is_all(&tomorrow, &found.span))?;
    match found.when {
        Ok(When::At(slot)) => Some(slot.civil.time()),
        _ => None,
    }
}

fn is_all(text: &str, span: &std::ops::Range<usize>) -> bool {
    let rest = text.get(span.end..).unwrap_or_default();
    let tokens = tokenize(rest);
    span.start == 0 && Cursor::new(&tokens, 0).skip("?, ?please|instead|thanks").is_end()
}

/// True if the whole text is a time, as in an answer to "when?".
pub(super) fn is_time(text: &str, now: DateTime<Tz>) -> bool {
    let text = text.trim().trim_end_matches(['.', '!']);
    parse_when(text, now).is_some_and(|found| is_all(text, &found.span))
}
