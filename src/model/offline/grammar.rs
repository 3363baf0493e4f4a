//! The command grammar of the offline mind: a message in plain English becomes commands, a question, or nothing.
//!
//! The message is cut into tokens once and its sentences are read one by one. A command stands at a sentence's beginning (after a
//! greeting, a "please", a time), never inside: "she reminded me", "if I say remind me" and "don't remind me" are no
//! commands by construction. A message is carried out only if every sentence of it is understood.

mod known;
mod remind;
mod sentence;
mod store;
mod tasks;
#[cfg(test)]
mod tests;

use chrono::DateTime;
use chrono_tz::Tz;

use self::sentence::Sentence;
use crate::schedule::{Missed, When, words::tokenize};

/// What a message is to the offline mind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed {
    /// All of it is commands, in the order in which they were given. Never empty.
    Commands(Vec<Command>),
    /// A question in the person's words, which stored facts can perhaps answer.
    Question(String),
    /// Nothing that it can do; to be kept for a better mind.
    Unclear {
        /// Why, as the end of the sentence "I can't carry this out by myself: …".
        why: &'static str,
    },
}

/// Something to do. Texts are in the person's own words and case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Store a fact.
    Remember {
        /// What is so.
        fact: String,
        /// The topic to keep it under, if the person named one.
        topic: Option<String>,
    },
    /// Remove a stored fact.
    Forget {
        /// The fact, in words that may differ from the stored ones.
        query: String,
    },
    /// Set a reminder.
    Remind {
        /// What of.
        what: String,
        /// When.
        when: When,
        /// What to do when its time was missed.
        missed: Missed,
    },
    /// Say which reminders are set.
    ListReminders,
    /// Take a reminder back.
    CancelReminder {
        /// Which.
        which: Which,
    },
    /// Write down a task.
    TaskAdd {
        /// Its title.
        title: String,
        /// Into the backlog and not among the active ones.
        backlog: bool,
    },
    /// A task is finished.
    TaskDone {
        /// Which.
        which: Which,
    },
    /// Say which tasks there are.
    TaskList {
        /// Those of the backlog.
        backlog: bool,
    },
    /// Say what is stored about something.
    Know {
        /// About what.
        topic: String,
    },
    /// Say how things stand.
    Status,
    /// Say what can be said.
    Help,
    /// A greeting, and nothing else.
    Greeting,
    /// Thanks, and nothing else.
    Thanks,
    /// It is clear what is wanted but something is missing: ask, and do nothing.
    AskBack {
        /// The question, to be sent as it stands.
        question: String,
    },
}

/// One of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// By its number, counted from 1.
    Number(u32),
    /// By words of its text.
    Text(String),
}

/// What one sentence is.
enum Reading {
    Command(Command),
    Question,
    /// A statement that speaks of what went before: "It changes every month."
    GoesOn,
    /// What to do when the reminder before it is missed.
    IfMissed(Missed),
    Unclear,
}

/// Longer messages are letters, not commands.
const MAX_MESSAGE_BYTES: usize = 2000;
/// More sentences than this are a text, not a list of commands.
const MAX_SENTENCES: usize = 20;

const NO_COMMAND: &str = "I find no command in it";
const QUOTED: &str = "it reads like a quotation, code or a forwarded text";
const TOO_LONG: &str = "it is too long to be a command";
const IN_PART: &str = "I understand only a part of it";

/// Reads a message. `now` gives the present and the person's time zone.
pub fn parse(text: &str, now: DateTime<Tz>) -> Parsed {
    let unclear = |why| Parsed::Unclear { why };
    if text.len() > MAX_MESSAGE_BYTES {
        return unclear(TOO_LONG);
    }
    if is_foreign(text) {
        return unclear(QUOTED);
    }
    let tokens = tokenize(text);
    let sentences = sentence::split(text, &tokens);
    if sentences.len() > MAX_SENTENCES {
        return unclear(TOO_LONG);
    }
    let mut said = Said::default();
    for sentence in sentences {
        if !said.take(sentence, now) {
            return unclear(if said.commands.is_empty() { NO_COMMAND } else { IN_PART });
        }
    }
    match (said.commands.is_empty(), said.questions, said.small_talk) {
        (false, 0, _) => Parsed::Commands(said.commands),
        (false, _, _) => unclear(IN_PART),
        (true, 0, Some(small_talk)) => Parsed::Commands(vec![small_talk]),
        (true, 0, None) => unclear(NO_COMMAND),
        (true, _, _) => Parsed::Question(text.trim().to_owned()),
    }
}

/// What the sentences read so far amount to.
#[derive(Default)]
struct Said {
    commands: Vec<Command>,
    small_talk: Option<Command>,
    questions: usize,
}

impl Said {
    /// Adds a sentence, or says that it isn't understood.
    fn take(&mut self, sentence: Sentence<'_>, now: DateTime<Tz>) -> bool {
        if sentence.is_blank() {
            return true;
        }
        if let Some((left, right)) = two_commands(sentence, now) {
            self.commands.push(left);
            return self.take(right, now);
        }
        match read(sentence, now) {
            Reading::Command(small @ (Command::Greeting | Command::Thanks)) => self.small_talk = Some(small),
            Reading::Command(command) => self.commands.push(command),
            Reading::Question => self.questions += 1,
            Reading::IfMissed(policy) => match self.commands.last_mut() {
                Some(Command::Remind { missed, .. }) => *missed = policy,
                _ => return false,
            },
            Reading::GoesOn => {
                return self.commands.last_mut().is_some_and(|command| append(command, sentence.text()));
            }
            Reading::Unclear => return false,
        }
        true
    }
}

/// "Remember that I like tea and remind me tomorrow to buy some": the first command, and the rest.
fn two_commands(sentence: Sentence<'_>, now: DateTime<Tz>) -> Option<(Command, Sentence<'_>)> {
    (1..sentence.len()).find_map(|index| {
        let rest = sentence.part_from(index).after_conjunction()?;
        rest.cursor().lookup(SECOND_COMMANDS)?;
        match (read(sentence.part_until(index), now), read(rest, now)) {
            // "Hey, remind me" is one command after a greeting.
            (Reading::Command(Command::Greeting | Command::Thanks), _) => None,
            (Reading::Command(left), Reading::Command(_)) => Some((left, rest)),
            _ => None,
        }
    })
}

/// Beginnings that are surely a second command after "and": in doubt the words belong to the first.
const SECOND_COMMANDS: &[(&str, ())] = &[
    ("remind me", ()),
    ("set a reminder", ()),
    ("add ?a ?new task|todo|to-do", ()),
    ("remember|note that|:", ()),
    ("mark", ()),
    ("list|show ?me ?my tasks|reminders", ()),
];

fn append(command: &mut Command, more: &str) -> bool {
    let text = match command {
        Command::Remember { fact, .. } => fact,
        Command::Remind { what, .. } => what,
        _ => return false,
    };
    *text = format!("{text}. {}", more.trim_end_matches('.'));
    true
}

/// Code, quotations and forwarded letters are someone else's words.
fn is_foreign(text: &str) -> bool {
    const HEADERS: &[&str] = &["fwd:", "fw:", "re:", "from:", "subject:", "forwarded", "begin forwarded", "-----"];
    let begins_foreign = |line: &str| {
        let line = line.trim_start().to_lowercase();
        line.starts_with(['>', '|']) || HEADERS.iter().any(|header| line.starts_with(header))
    };
    text.contains("```") || text.lines().any(begins_foreign)
}

type Reader = fn(&Sentence<'_>, DateTime<Tz>) -> Option<Reading>;

/// Tried in this order; the first that knows the sentence's beginning decides.
const READERS: [Reader; 6] = [known::read, remind::read, remind::read_policy, tasks::read, store::read, remind::cancel];

fn read(sentence: Sentence<'_>, now: DateTime<Tz>) -> Reading {
    if sentence.is_reported_speech() {
        return Reading::Unclear;
    }
    if sentence.is_hypothetical() {
        return if sentence.is_question() { Reading::Question } else { Reading::Unclear };
    }
    let request = sentence.without_courtesy();
    if request.is_blank() {
        return known::read(&sentence, now).unwrap_or(Reading::Unclear);
    }
    if let Some(reading) = READERS.iter().find_map(|reader| reader(&request, now)) {
        return reading;
    }
    // The small words that courtesy takes off can be all of the message: "hi there", "thank you!".
    if let Some(reading) = known::read(&sentence, now) {
        return reading;
    }
    if request.is_question() {
        Reading::Question
    } else if request.goes_on() {
        Reading::GoesOn
    } else {
        Reading::Unclear
    }
}

fn ask(question: impl Into<String>) -> Reading {
    Reading::Command(Command::AskBack { question: question.into() })
}
