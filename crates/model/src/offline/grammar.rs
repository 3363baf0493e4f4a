//! The command grammar of the offline model: parses a message in plain English into commands, a question, or neither.
//!
//! The message is split into tokens once and its sentences are parsed in turn. A command is recognised only at the beginning of a
//! sentence, where a greeting, a "please" or a time may precede it. Thus "she reminded me", "if I say remind me" and "don't remind me" are
//! never commands. A message is executed only if every sentence is understood.
//!
//! Each parser is a table of forms: `known` for whole sentences, `remind`, `tasks`, `store` and `change` for beginnings. For a message
//! beyond all forms, `nearest` may find a similar one, which the model offers as a question.

mod change;
mod days;
mod did;
mod follow;
mod known;
mod language;
mod lists;
mod nearest;
mod personal;
mod remind;
mod sentence;
mod spelling;
mod stated;
mod store;
mod sums;
mod task_line;
mod tasks;
#[cfg(test)]
mod tests;
mod units;

use chrono::{DateTime, NaiveDate, NaiveTime};

use reveille_base::{
    schedule::{Missed, RelativeTime, When, parse_relative},
    zone::Tz,
};

use self::sentence::Sentence;
pub use self::{
    days::{describe_day_distance, find_awaited_event},
    follow::complete_message,
    language::{Language, detect_language},
    nearest::{Near, find_nearest, recurring_title, remember_form},
    personal::{QuestionKind, classify_question},
    task_line::{TaskLine, TaskLineError, read_task_line},
    tasks::due_day,
};

/// The meaning of a message to the offline model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParsedMessage {
    /// Commands in their order, covering the whole message. Never empty.
    Commands(Vec<OfflineCommand>),
    /// A question in the person's words, perhaps answered by stored facts.
    Question(String),
    /// Neither of these; to be kept for a better model.
    Unclear {
        /// The reason, as the end of the sentence "I can't carry this out by myself: …".
        why: &'static str,
    },
}

/// A command. Texts are in the person's own words and case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OfflineCommand {
    /// Store a fact.
    Remember {
        /// The fact.
        fact: String,
        /// The topic, if the person named one.
        topic: Option<String>,
    },
    /// Store a fact that the person states in passing.
    Stated {
        /// The fact.
        fact: String,
    },
    /// Finish a task, or take items off the shopping list, because the person reports having done so.
    Did {
        /// The task's probable title.
        task: String,
        /// The items bought, if any.
        items: Vec<String>,
        /// The sentence.
        fact: String,
    },
    /// Put items on a list.
    ListAdd {
        /// The list's name, such as "Shopping list".
        list: String,
        /// The items.
        items: Vec<String>,
    },
    /// Show a list.
    ListShow {
        /// The list's name. `None` for the list mentioned last.
        list: Option<String>,
    },
    /// Take items off a list.
    ListTake {
        /// The list's name.
        list: String,
        /// The items.
        items: Vec<String>,
    },
    /// Empty a list.
    ListClear {
        /// The list's name.
        list: String,
    },
    /// Remove a stored fact.
    Forget {
        /// The fact, in words that may differ from the stored ones.
        query: String,
    },
    /// Set a reminder.
    Remind {
        /// The reminder's text.
        what: String,
        /// The time.
        when: When,
        /// The policy for a missed time.
        missed: Missed,
    },
    /// Set a reminder relative to another event.
    RemindNear {
        /// The reminder's text.
        what: String,
        /// The time in the person's words: "15 minutes before the meeting".
        when: String,
        /// The policy for a missed time.
        missed: Missed,
    },
    /// End the reminder that was just sent.
    StopReminder,
    /// Move all reminders to the same hour in the present time zone.
    RemindersHere,
    /// List the reminders.
    ListReminders,
    /// Cancel a reminder.
    CancelReminder {
        /// The reminder.
        which: Which,
    },
    /// Add a task.
    TaskAdd {
        /// The title.
        title: String,
        /// Into the backlog instead of the active tasks.
        backlog: bool,
        /// The task's last day.
        due: Option<NaiveDate>,
    },
    /// Finish a task.
    TaskDone {
        /// The task.
        which: Which,
    },
    /// Drop a task.
    TaskDrop {
        /// The task.
        which: Which,
    },
    /// Rename a task.
    TaskRename {
        /// The task.
        which: Which,
        /// The new title.
        to: String,
    },
    /// Move a task to the backlog or back.
    TaskMove {
        /// The task.
        which: Which,
        /// To the backlog.
        backlog: bool,
    },
    /// Delete a task or a reminder.
    Delete {
        /// The task or reminder.
        which: Which,
    },
    /// Postpone a task or a reminder.
    Postpone {
        /// The task or reminder.
        which: Which,
        /// The kind, if stated.
        kind: Option<ThingKind>,
        /// The new time.
        when: Moment,
    },
    /// Repeat the reminder just sent.
    Snooze {
        /// The time.
        when: Moment,
    },
    /// List the tasks.
    TaskList {
        /// From the backlog.
        backlog: bool,
    },
    /// Show stored facts.
    Know {
        /// The topic. `None` for everything.
        topic: Option<String>,
    },
    /// Show a day's agenda.
    Agenda {
        /// `today`, `tomorrow` or a date.
        day: String,
    },
    /// Tell the time.
    Time,
    /// Tell the date.
    Date,
    /// Answer a calculation: a sum, a measure, a day, the time elsewhere.
    Sum {
        /// The finished answer.
        text: String,
    },
    /// Change the assistant's name.
    CallYourself {
        /// The name.
        name: String,
    },
    /// Undo the last change.
    Undo,
    /// Show the present state.
    Status,
    /// Show the help text.
    Help,
    /// A mere greeting.
    Greeting,
    /// Mere thanks.
    Thanks,
    /// Mere small talk.
    Small(Small),
    /// Ask about a missing part of a clear command, without doing anything.
    AskBack {
        /// The finished question.
        question: String,
        /// The missing part.
        missing: Missing,
    },
}

impl OfflineCommand {
    /// True if the command is complete by itself, without questions or references to earlier messages.
    pub fn is_sure(&self) -> bool {
        match self {
            Self::Remember { fact: words, .. }
            | Self::Remind { what: words, .. }
            | Self::TaskAdd { title: words, .. } => !may_order_more(words),
            Self::ListReminders
            | Self::TaskList { .. }
            | Self::ListAdd { .. }
            | Self::ListShow { list: Some(_) }
            | Self::Agenda { .. }
            | Self::Time
            | Self::Date
            | Self::Sum { .. } => true,
            Self::CancelReminder { which } | Self::TaskDone { which } => matches!(which, Which::Title(_)),
            _ => false,
        }
    }
}

/// True if text to be stored may contain another order that only a model would notice: "…, and tidy up my folder".
fn may_order_more(words: &str) -> bool {
    words.contains(", and ") || words.contains(", then ")
}

/// The missing part of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// A reminder's time.
    Time,
    /// A reminder's text.
    Thing,
    /// A task's title.
    Title,
    /// Anything that must be said anew.
    Other,
}

/// Small talk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Small {
    /// "Ok", "cool".
    Ok,
    /// "Yes", to the last question.
    Yes,
    /// "No", to the last question.
    No,
    /// "Bye".
    Bye,
    /// "Good night".
    Night,
    /// "Sorry".
    Sorry,
    /// "Never mind".
    NeverMind,
    /// An emoji without words.
    Emoji,
    /// "Are you there?"
    Here,
    /// "How are you?"
    Fine,
    /// "Who are you?"
    Who,
    /// "Stop."
    Stop,
    /// "I'm tired."
    Sympathy,
    /// "I'm happy."
    Glad,
    /// "You're great."
    Praise,
    /// "That's wrong."
    Wrong,
    /// "Happy birthday."
    Wishes,
    /// "Wait."
    Wait,
    /// "I'm back."
    Back,
    /// "What?"
    What,
    /// "Why can't you answer?"
    WhyOffline,
    /// "What did you say?"
    Repeat,
}

/// The kind of a thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThingKind {
    /// A task.
    Task,
    /// A reminder.
    Reminder,
}

/// A new time for a task or a reminder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// The time.
    pub when: When,
    /// The day, if no time of day was stated: the time stays as before.
    pub day: Option<NaiveDate>,
    /// The time of day, if no day was stated.
    pub time: Option<NaiveTime>,
    /// The delay, if stated, counted from the thing's own time, or from now if that has passed.
    pub by: Option<String>,
}

/// A reference to an item of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// The number, from 1.
    Number(u32),
    /// Words of the text.
    Text(String),
    /// The whole title: a partial match proves nothing.
    Title(String),
    /// The item mentioned last.
    It,
}

/// The meaning of a sentence.
enum Reading {
    Command(OfflineCommand),
    /// Several of a kind in one sentence, such as a series of tasks.
    Commands(Vec<OfflineCommand>),
    Question,
    /// A statement that continues the sentence before: "It changes every month."
    GoesOn,
    /// The missed-time policy for the preceding reminder.
    IfMissed(Missed),
    Unclear,
}

/// Maximum bytes of a command; longer messages are letters.
const MAX_MESSAGE_BYTES: usize = 2000;
/// Maximum sentences of a list of commands.
const MAX_SENTENCES: usize = 20;

const NO_COMMAND: &str = "I find no command in it";
const QUOTED: &str = "it reads like a quotation, code or a forwarded text";
const FOREIGN: &str = "it isn't in English";
const TOO_LONG: &str = "it is too long to be a command";
const IN_PART: &str = "I understand only a part of it";

/// Parses a message. `now` supplies the present time and the person's time zone.
pub fn parse(text: &str, now: DateTime<Tz>) -> ParsedMessage {
    let unclear = |why| ParsedMessage::Unclear { why };
    if text.len() > MAX_MESSAGE_BYTES {
        return unclear(TOO_LONG);
    }
    if is_foreign(text) {
        return unclear(QUOTED);
    }
    if is_picture(text) {
        return ParsedMessage::Commands(vec![OfflineCommand::Small(Small::Emoji)]);
    }
    if detect_language(text).is_some() {
        return unclear(FOREIGN);
    }
    let corrected = spelling::correct_text(text);
    let text = corrected.as_deref().unwrap_or(text);
    let uncontracted = did::expand_contraction(text);
    let text = uncontracted.as_deref().unwrap_or(text);
    let tokens = spelling::parse_tokens(text);
    let sentences = sentence::split(text, &tokens);
    let whole = sentence::as_one_sentence(text, &tokens).without_courtesy();
    // A calculation after a courtesy. A leading mark is part of the calculation.
    let asked = if text.trim_start().starts_with(char::is_alphabetic) { whole.text() } else { text };
    if let Some(text) =
        [text, asked].iter().find_map(|text| sums::answer_sum(text).or_else(|| units::answer_conversion(text)))
    {
        return ParsedMessage::Commands(vec![OfflineCommand::Sum { text }]);
    }
    if sentences.len() > MAX_SENTENCES {
        return unclear(TOO_LONG);
    }
    let mut said = Said::default();
    let is_alone = sentences.len() == 1;
    for sentence in sentences {
        // "We set the date!! …": an exclamation requires no action.
        let is_cry = !is_alone && sentence.is_cry();
        if !said.take_sentence(sentence, now) && !is_cry {
            return unclear(if said.commands.is_empty() { NO_COMMAND } else { IN_PART });
        }
    }
    match (said.commands.is_empty(), said.questions, said.small_talk) {
        (false, 0, _) => ParsedMessage::Commands(said.commands),
        (false, _, _) => unclear(IN_PART),
        (true, 0, Some(small_talk)) => ParsedMessage::Commands(vec![small_talk]),
        (true, 0, None) => unclear(NO_COMMAND),
        (true, _, _) => ParsedMessage::Question(text.trim().to_owned()),
    }
}

/// True for emoji without words.
fn is_picture(text: &str) -> bool {
    let is_mark =
        |c: char| c.is_whitespace() || c.is_ascii_punctuation() || matches!(c, '…' | '–' | '—' | '“' | '”' | '’' | '‘');
    !text.chars().any(char::is_alphanumeric) && text.chars().any(|c| !is_mark(c))
}

/// The meaning of the sentences so far.
#[derive(Default)]
struct Said {
    commands: Vec<OfflineCommand>,
    small_talk: Option<OfflineCommand>,
    questions: usize,
}

impl Said {
    /// Adds a sentence. Returns false for an unknown one.
    fn take_sentence(&mut self, sentence: Sentence<'_>, now: DateTime<Tz>) -> bool {
        if sentence.is_blank() {
            return true;
        }
        if let Some((left, right)) = two_commands(sentence, now) {
            self.commands.push(left);
            return self.take_sentence(right, now);
        }
        if let Some((_, order)) = split_context(sentence, now) {
            return self.take_sentence(order, now);
        }
        if let Some(reminder) = follow::parse_reminder_before(&sentence, now) {
            self.commands.push(reminder);
            return true;
        }
        // "Emil was born on 9 May 2019, how old is he?": a statement and a question about it.
        if let Some((told, asked)) = sentence.split_question() {
            return self.take_sentence(told, now) && self.take_sentence(asked, now);
        }
        match parse_sentence(sentence, now) {
            Reading::Command(
                small @ (OfflineCommand::Greeting | OfflineCommand::Thanks | OfflineCommand::Small(_)),
            ) => {
                self.small_talk = Some(small);
            }
            Reading::Command(command) => self.commands.push(command),
            Reading::Commands(commands) => self.commands.extend(commands),
            Reading::Question => self.questions += 1,
            Reading::IfMissed(policy) => match self.commands.last_mut() {
                Some(OfflineCommand::Remind { missed, .. } | OfflineCommand::RemindNear { missed, .. }) => {
                    *missed = policy;
                }
                _ => return false,
            },
            Reading::GoesOn => {
                return self.commands.last_mut().is_some_and(|command| append_text(command, sentence.text()));
            }
            Reading::Unclear => match known::small_talk(&sentence, now) {
                Some(small) => self.small_talk = Some(small),
                None => return false,
            },
        }
        true
    }
}

/// Splits "Setting off now, remind me to take a break at 10" into context and order. A condition isn't mere context.
fn split_context<'t>(sentence: Sentence<'t>, now: DateTime<Tz>) -> Option<(Sentence<'t>, Sentence<'t>)> {
    const ORDERS: &str = "?ok ?so ?please ?can|could ?you ?please remind|wake me|us";
    const CONDITION: &str = "if|when|unless|once|until|till|before|after|as|whenever|in|should|while|because|don't|never|not|no|she|he|they";
    let at = (2..sentence.len()).find(|at| {
        let order = sentence.part_from(*at);
        let is_timer = || {
            order.body().len() <= 6
                && order.has_word("timer")
                && order.cursor().token().is_some_and(|first| !first.is_mark())
        };
        let is_joined = sentence.part_from(at - 1).cursor().text() == ",";
        order.cursor().match_phrase(ORDERS).is_some() || (is_joined && is_timer())
    })?;
    let context = sentence.part_until(at).body();
    // A nap ends long before the next morning.
    if context.has_word("nap|napping|siesta|snooze") && sentence.part_from(at).has_word("wake") {
        return None;
    }
    let is_plain = context.without_courtesy().cursor().match_phrase(CONDITION).is_none()
        && !context.is_negated()
        && sentence.part_from(at - 1).cursor().text() != ":"
        && !context.has_word("remind|said|says|told|asked|if|when|unless|to|you|wants")
        && context.without_courtesy().len() >= 2
        && !context.is_question()
        && reveille_base::schedule::parse_when(context.text(), now)
            .is_none_or(|found| found.span.len() < context.text().len());
    let order = sentence.part_from(at);
    let is_order = matches!(
        parse_sentence(order, now),
        Reading::Command(OfflineCommand::Remind { .. } | OfflineCommand::RemindNear { .. })
    );
    let is_unread = matches!(parse_sentence(sentence, now), Reading::Unclear | Reading::Question);
    (is_plain && is_order && is_unread).then_some((context, order))
}

/// Splits "Remember that I like tea and remind me tomorrow to buy some" into the first command and the rest.
fn two_commands(sentence: Sentence<'_>, now: DateTime<Tz>) -> Option<(OfflineCommand, Sentence<'_>)> {
    (1..sentence.len()).find_map(|index| {
        let rest = sentence.part_from(index).strip_conjunction()?;
        rest.cursor().match_table(SECOND_COMMANDS)?;
        match (parse_sentence(sentence.part_until(index), now), parse_sentence(rest, now)) {
            // "Hey, remind me" is one command after a greeting.
            (Reading::Command(OfflineCommand::Greeting | OfflineCommand::Thanks | OfflineCommand::Small(_)), _) => None,
            (Reading::Command(left), Reading::Command(_)) => Some((left, rest)),
            _ => None,
        }
    })
}

/// Beginnings that certainly start a second command after "and". Any other words belong to the first.
const SECOND_COMMANDS: &[(&str, ())] = &[
    ("remind me", ()),
    ("set a reminder", ()),
    ("add ?a ?new task|todo|to-do", ()),
    ("remember|note that|:", ()),
    ("mark", ()),
    ("rename|postpone|snooze", ()),
    ("delete|drop|remove ?the ?my task|reminder", ()),
    ("list|show ?me ?my tasks|reminders", ()),
];

fn append_text(command: &mut OfflineCommand, more: &str) -> bool {
    let text = match command {
        OfflineCommand::Remember { fact, .. } | OfflineCommand::Stated { fact } => fact,
        OfflineCommand::Remind { what, .. } | OfflineCommand::RemindNear { what, .. } => what,
        _ => return false,
    };
    *text = format!("{text}. {}", more.trim_end_matches('.'));
    true
}

/// True for code, quotations and forwarded letters, which are someone else's words.
fn is_foreign(text: &str) -> bool {
    const HEADERS: &[&str] = &["fwd:", "fw:", "re:", "from:", "subject:", "forwarded", "begin forwarded", "-----"];
    let begins_foreign = |line: &str| {
        let line = line.trim_start().to_lowercase();
        line.starts_with(['>', '|']) || HEADERS.iter().any(|header| line.starts_with(header))
    };
    text.contains("```") || text.lines().any(begins_foreign)
}

type Reader = fn(&Sentence<'_>, DateTime<Tz>) -> Option<Reading>;

/// Parsers in order; the first that recognizes the sentence's beginning decides.
const READERS: [Reader; 12] = [
    known::parse_known,
    days::parse_days,
    remind::parse_remind,
    remind::read_policy,
    lists::parse_list,
    tasks::parse_task,
    store::parse_store,
    remind::wake_up,
    remind::parse_cancel,
    did::parse_did,
    change::parse_change,
    tasks::parse_needs,
];

fn parse_sentence(sentence: Sentence<'_>, now: DateTime<Tz>) -> Reading {
    if sentence.is_reported_speech() {
        return Reading::Unclear;
    }
    if sentence.is_hypothetical() {
        return if sentence.is_question() { Reading::Question } else { Reading::Unclear };
    }
    // The courtesy words stripped below may be the whole message: "hi there", "perfect, thank you!".
    if let Some(reading) = known::parse_known(&sentence, now) {
        return reading;
    }
    let request = sentence.without_courtesy();
    if request.is_blank() {
        return Reading::Unclear;
    }
    // "You can delete the shelf task, Ben did it."
    const ENDS: &str = "cancel|delete|stop|remove|take|drop|end|mark|tick|cross|forget";
    let request = request
        .strip_phrase("you can|may|could ?now ?also ?just")
        .filter(|rest| rest.cursor().match_phrase(ENDS).is_some())
        .unwrap_or(request);
    let request = match request.cursor().match_phrase(ENDS) {
        Some(_) => request.without_reason().unwrap_or(request),
        None => request,
    };
    if let Some(reading) = READERS.iter().find_map(|reader| reader(&request, now)) {
        return reading;
    }
    if let Some(reading) = request
        .without_reason()
        .and_then(|request| lists::parse_list(&request, now).or_else(|| change::parse_change(&request, now)))
    {
        return reading;
    }
    if request.is_question() {
        Reading::Question
    } else if request.is_continuation() {
        Reading::GoesOn
    } else {
        stated::parse_stated(&request, now).unwrap_or(Reading::Unclear)
    }
}

fn ask_back(question: impl Into<String>) -> Reading {
    ask_for_part(Missing::Other, question)
}

fn ask_for_part(missing: Missing, question: impl Into<String>) -> Reading {
    Reading::Command(OfflineCommand::AskBack { question: question.into(), missing })
}

/// Combines a command that lacked a part with the answer: "remind me to call Bob" and "in 20 minutes".
pub fn complete_command(asked: &str, missing: Missing, answer: &str, now: DateTime<Tz>) -> Option<Vec<OfflineCommand>> {
    const MAX_WORDS: usize = 12;
    let answer = answer.trim().trim_end_matches(['.', '!']);
    let fits = match missing {
        Missing::Time => {
            let is_all = |found: RelativeTime| found.span == (0..answer.len());
            change::is_time(answer, now) || parse_relative(answer, now).is_some_and(is_all)
        }
        Missing::Thing | Missing::Title => {
            let is_short = answer.split_whitespace().count() <= MAX_WORDS && !answer.contains(['?', '\n']);
            is_short && matches!(parse(answer, now), ParsedMessage::Unclear { .. })
        }
        Missing::Other => false,
    };
    if !fits {
        return None;
    }
    let asked = asked.trim().trim_end_matches(['.', '!', '?']);
    let joined = [format!("{asked} {answer}"), format!("{asked} to {answer}"), format!("{asked}: {answer}")];
    joined.iter().find_map(|text| match parse(text, now) {
        ParsedMessage::Commands(commands)
            if !commands.iter().any(|one| matches!(one, OfflineCommand::AskBack { .. })) =>
        {
            Some(commands)
        }
        _ => None,
    })
}
