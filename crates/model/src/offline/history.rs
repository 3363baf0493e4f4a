//! The history of the conversation, which resolves "yes", "in 20 minutes" and "it".
//!
//! Of the assistant's own words, only questions and reminders are used; commands are parsed anew from the person's words. Withheld
//! text may be untrusted, so it resolves nothing.

use chrono::{DateTime, NaiveDateTime, TimeZone as _};
use serde_json::Value;

use reveille_base::{words, zone::Tz};

use super::{
    grammar::{self, Missing, Near, OfflineCommand, ParsedMessage, Small, ThingKind, Which},
    phrase, transcript, which,
};
use crate::conversation::{ContentBlock, SpokenMessage};

/// Maximum statements searched for the referent of "it".
const MAX_BACK: usize = 8;
/// Beginning of a reminder's message.
const REMINDED: &str = "⏰ ";

/// An earlier statement.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Said {
    /// The person's own words, and their time.
    Person(String, DateTime<Tz>),
    /// The assistant's words.
    Me(String),
    /// Withheld words of anyone, never used.
    Withheld,
}

/// The statements before a message, oldest first.
#[derive(Debug, Clone, Default)]
pub(super) struct History(Vec<Said>);

/// The person's words that the assistant answered, with their time. `None` if withheld.
type Answered<'a> = Option<(&'a str, DateTime<Tz>)>;

/// The referent of "it".
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Referent {
    /// The kind of thing, if stated.
    pub(super) kind: Option<ThingKind>,
    /// The thing's text.
    pub(super) text: String,
}

impl History {
    /// Adds the earlier statements in a conversation message: the recent exchange, and the assistant's own words. Times are in the zone of
    /// `now`, which also stands in for missing times.
    pub(super) fn add_statements(&mut self, raw: &str, now: DateTime<Tz>) {
        for earlier in transcript::parse_exchange(raw) {
            let at = earlier.at.as_deref().and_then(|at| read_time(at, now.timezone())).unwrap_or(now);
            self.0.push(match earlier.text {
                None => Said::Withheld,
                Some(text) if earlier.is_mine => Said::Me(text),
                Some(text) => Said::Person(self.complete_message(&text, at).unwrap_or(text), at),
            });
        }
        self.0.extend(own_words(raw).into_iter().map(Said::Me));
    }

    /// Adds a message of this conversation.
    pub(super) fn push(&mut self, message: &transcript::ShownMessage, now: DateTime<Tz>) {
        let is_own = message.is_own_text && !message.is_reply && !message.is_correction;
        let at = message.at.map_or(now, |at| at.with_timezone(&now.timezone()));
        let full = self.complete_message(&message.text, at).unwrap_or_else(|| message.text.clone());
        self.0.push(if is_own { Said::Person(full, at) } else { Said::Withheld });
    }

    /// Returns the history up to the assistant's words that a reply quotes, or just the quotation if they aren't found.
    pub(super) fn cut_at_quote(&self, quoted: &str) -> Self {
        let quote = strip_markup(quoted.trim_end_matches('…'));
        let position = |fits: &dyn Fn(&str) -> bool| {
            self.0.iter().rposition(|said| matches!(said, Said::Me(text) if fits(&strip_markup(text))))
        };
        // Exact matches come first: the quotation may be partial, and another text may begin alike.
        let found = position(&|text| text == quote);
        let found = found.or_else(|| position(&|text| text.starts_with(&quote)));
        match found.or_else(|| position(&|text| text.contains(&quote))) {
            Some(at) => Self(self.0.get(..=at).unwrap_or_default().to_vec()),
            None => Self(vec![Said::Me(quoted.to_owned())]),
        }
    }

    /// Completes a message from the person's earlier words. `None` if the message stands alone.
    pub(super) fn complete_message(&self, text: &str, at: DateTime<Tz>) -> Option<String> {
        // After a reminder, "no, 10 more minutes" refers to the reminder rather than the person's earlier words.
        if self.find_reminder_text().is_some() {
            return None;
        }
        // If the message before was kept without being understood, this one may refer to it, so its meaning is unknown.
        if self
            .find_last_answer()
            .is_some_and(|mine| mine.contains(phrase::KEPT_UNTIL) && !mine.starts_with(phrase::KEPT_QUESTION))
        {
            return None;
        }
        let back = self.0.iter().rev().take(MAX_BACK).take_while(|said| !matches!(said, Said::Withheld));
        let last = back.filter_map(|said| match said {
            Said::Person(text, at) => Some((text.as_str(), *at)),
            _ => None,
        });
        let last = last.into_iter().find(|(text, at)| !is_courtesy(text, *at))?;
        grammar::complete_message(text, last, self.find_last_list().as_deref(), at)
    }

    /// Returns the assistant's last words if nothing followed, and the words that they answered.
    fn last_exchange(&self) -> Option<(&str, Answered<'_>)> {
        let mut back = self.0.iter().rev();
        let Some(Said::Me(mine)) = back.next() else { return None };
        let answered = back.find(|said| !matches!(said, Said::Me(_)));
        let answered = match answered {
            Some(Said::Person(text, at)) => Some((text.as_str(), *at)),
            _ => None,
        };
        Some((mine, answered))
    }

    /// Returns the command offered last, derived from the person's words, and the time of those words.
    pub(super) fn find_offer(&self) -> Option<(String, DateTime<Tz>)> {
        let (mine, answered) = self.last_exchange()?;
        let (theirs, at) = answered?;
        let form = choose_offer(theirs, at)?;
        mine.contains(&phrase::did_you_mean(&form)).then_some((form, at))
    }

    /// True if the assistant's last words ask a question.
    pub(super) fn is_question_open(&self) -> bool {
        self.last_exchange().is_some_and(|(mine, _)| mine.contains('?'))
    }

    /// Returns the assistant's last words.
    pub(super) fn find_last_answer(&self) -> Option<&str> {
        self.0.iter().rev().take(MAX_BACK).find_map(|said| match said {
            Said::Me(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Returns the list that the person mentioned last.
    pub(super) fn find_last_list(&self) -> Option<String> {
        self.0.iter().rev().take(MAX_BACK).find_map(|said| {
            let Said::Person(text, at) = said else { return None };
            let ParsedMessage::Commands(commands) = grammar::parse(text, *at) else { return None };
            commands.into_iter().find_map(|command| match command {
                OfflineCommand::ListAdd { list, .. } | OfflineCommand::ListTake { list, .. } => Some(list),
                OfflineCommand::ListShow { list } => list,
                _ => None,
            })
        })
    }

    /// Combines an answer with the question before it into commands.
    pub(super) fn complete_commands(&self, answer: &str, now: DateTime<Tz>) -> Option<Vec<OfflineCommand>> {
        let (mine, answered) = self.last_exchange()?;
        let (theirs, at) = answered?;
        let ParsedMessage::Commands(commands) = grammar::parse(theirs, at) else { return None };
        let [OfflineCommand::AskBack { question, missing }] = commands.as_slice() else { return None };
        if *missing == Missing::Other || !mine.contains(question.as_str()) {
            return None;
        }
        grammar::complete_command(theirs, *missing, answer, now)
    }

    /// Returns the fact chosen by an answer to a question about contradictory facts.
    pub(super) fn find_chosen_fact(&self, answer: &str) -> Option<String> {
        let (mine, _) = self.last_exchange()?;
        which::find_chosen_fact(mine, answer)
    }

    /// Finds kept words of the person that contain most of the question's significant words.
    pub(super) fn find_kept_words(&self, question: &str) -> Option<&str> {
        let asked = significant_words(question);
        let needed = asked.len().div_ceil(2).max(if asked.len() > 1 { 2 } else { 1 });
        let hits = |text: &str| {
            let own = significant_words(text);
            asked.iter().filter(|word| own.contains(*word)).count()
        };
        let kept = self.0.iter().rev().filter_map(|said| match said {
            Said::Person(text, at) => match grammar::parse(text, *at) {
                ParsedMessage::Unclear { .. } if !text.contains('?') => Some((hits(text), text.as_str())),
                _ => None,
            },
            _ => None,
        });
        let best = kept.filter(|(hits, _)| *hits >= needed && !asked.is_empty()).max_by_key(|(hits, _)| *hits)?;
        Some(best.1)
    }

    /// Returns the text of a reminder in the last message.
    pub(super) fn find_reminder_text(&self) -> Option<&str> {
        let (mine, _) = self.last_exchange()?;
        mine.strip_prefix(REMINDED)?.lines().next().map(str::trim).filter(|text| !text.is_empty())
    }

    /// Returns the task or reminder mentioned last by name. Small talk in between is skipped.
    pub(super) fn find_referent(&self) -> Option<Referent> {
        let back = self.0.iter().rev().take(MAX_BACK).take_while(|said| !matches!(said, Said::Withheld));
        let theirs: Vec<(&str, DateTime<Tz>)> = back
            .filter_map(|said| match said {
                Said::Person(text, at) => Some((text.as_str(), *at)),
                _ => None,
            })
            .collect();
        for (index, (text, at)) in theirs.iter().enumerate() {
            let before = theirs.get(index + 1);
            match grammar::parse(text, *at) {
                ParsedMessage::Commands(commands) if commands == [OfflineCommand::Small(Small::Yes)] => {
                    let (before, at) = before?;
                    let ParsedMessage::Commands(done) = grammar::parse(&choose_offer(before, *at)?, *at) else {
                        return None;
                    };
                    return find_command_referent(&done);
                }
                ParsedMessage::Commands(commands) if commands.iter().all(keeps_referent) => {}
                ParsedMessage::Commands(commands) => return find_command_referent(&commands),
                _ => {
                    let (asked, asked_at) = before?;
                    let ParsedMessage::Commands(open) = grammar::parse(asked, *asked_at) else { return None };
                    let [OfflineCommand::AskBack { missing, .. }] = open.as_slice() else { return None };
                    return find_command_referent(&grammar::complete_command(asked, *missing, text, *at)?);
                }
            }
        }
        None
    }
}

/// Strips Markdown and line breaks, so that a quotation from Telegram can be compared with the sent text.
fn strip_markup(text: &str) -> String {
    let bare: String = text.chars().filter(|c| !matches!(c, '*' | '_' | '`' | '\\')).collect();
    words::one_line(&bare)
}

/// Returns the significant words of a text without their endings.
fn significant_words(text: &str) -> Vec<String> {
    const SMALL: &str = "the a an is are was were what whats when whens where wheres who whos which how hows do does did my our your i me we us you it its that \
                         this these those of on in at to for from with and or again now then please have has had got get be been much many long far any";
    let lower = text.to_lowercase().replace(['\'', '’'], "");
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let significant = words.filter(|word| !SMALL.split_whitespace().any(|small| small == *word));
    significant
        .map(|word| if word.len() > 3 { word.trim_end_matches('s').to_owned() } else { word.to_owned() })
        .collect()
}

/// True if a message is nothing but courtesy.
fn is_courtesy(text: &str, at: DateTime<Tz>) -> bool {
    let is = |one: &OfflineCommand| {
        matches!(one, OfflineCommand::Small(_) | OfflineCommand::Greeting | OfflineCommand::Thanks)
    };
    matches!(grammar::parse(text, at), ParsedMessage::Commands(commands) if commands.iter().all(is))
}

/// True for a command that leaves the referent of "it" unchanged.
fn keeps_referent(command: &OfflineCommand) -> bool {
    matches!(
        command,
        OfflineCommand::Small(_)
            | OfflineCommand::Greeting
            | OfflineCommand::Thanks
            | OfflineCommand::Time
            | OfflineCommand::Date
            | OfflineCommand::Sum { .. }
    )
}

/// Returns the task or reminder named in the last command.
fn find_command_referent(commands: &[OfflineCommand]) -> Option<Referent> {
    let (kind, text) = match commands.last()? {
        OfflineCommand::Remind { what, .. } | OfflineCommand::RemindNear { what, .. } => {
            (Some(ThingKind::Reminder), what.clone())
        }
        OfflineCommand::TaskAdd { title, .. } => (Some(ThingKind::Task), title.clone()),
        OfflineCommand::TaskRename { to, .. } => (Some(ThingKind::Task), to.clone()),
        OfflineCommand::TaskMove { which, .. } => (Some(ThingKind::Task), find_name(which)?),
        OfflineCommand::Postpone { which, kind, .. } => (*kind, find_name(which)?),
        _ => return None,
    };
    Some(Referent { kind, text })
}

fn find_name(which: &Which) -> Option<String> {
    match which {
        Which::Text(text) | Which::Title(text) => Some(text.clone()),
        Which::Number(_) | Which::It => None,
    }
}

/// Returns the command to offer for a message.
pub(super) fn choose_offer(text: &str, at: DateTime<Tz>) -> Option<String> {
    match grammar::parse(text, at) {
        ParsedMessage::Commands(commands) => commands.iter().find_map(|command| match command {
            OfflineCommand::TaskAdd { title, .. } => grammar::recurring_title(title, at),
            OfflineCommand::Did { fact, .. } => Some(grammar::remember_form(fact)),
            _ => None,
        }),
        ParsedMessage::Question(_) => None,
        ParsedMessage::Unclear { .. } => match grammar::find_nearest(text, at)? {
            Near::Form(form) => Some(form),
            Near::Ask(_) => None,
        },
    }
}

/// Returns the assistant's words in a turn: the texts of its replies and notices.
fn own_words(raw: &str) -> Vec<String> {
    let Some(message) = SpokenMessage::parse(raw).filter(|message| message.is_models) else { return Vec::new() };
    let text = |block: &ContentBlock<'_>| {
        let ContentBlock::Call { name, input, .. } = block else { return None };
        let field = match &**name {
            "reply" => "text",
            "keep" => "notice",
            _ => return None,
        };
        let input: Value = serde_json::from_str(input.as_ref()?.get()).ok()?;
        Some(input.get(field)?.as_str()?.to_owned())
    };
    message.blocks.iter().filter_map(text).collect()
}

/// Parses a time of the recent exchange.
fn read_time(text: &str, tz: Tz) -> Option<DateTime<Tz>> {
    let civil = NaiveDateTime::parse_from_str(text, "%a %Y-%m-%d %H:%M").ok()?;
    tz.from_local_datetime(&civil).earliest()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> DateTime<Tz> {
        "Europe/Berlin".parse::<Tz>().unwrap().with_ymd_and_hms(2026, 11, 22, 9, 0, 0).unwrap()
    }

    fn history(exchange: &str) -> History {
        let block = format!("<recent_exchange>\n{exchange}\n</recent_exchange>");
        let raw = serde_json::json!({"role": "user", "content": [{"type": "text", "text": block}]}).to_string();
        let mut history = History::default();
        history.add_statements(&raw, now());
        history
    }

    fn said(by: &str, text: &str) -> String {
        format!("<said by=\"{by}\" at=\"Sat 2026-11-21 15:00\">\n{text}\n</said>")
    }

    #[test]
    fn yesterdays_offer_is_read_with_yesterdays_date() {
        let theirs = said("the person", "dentist tomorrow at 10");
        let mine = said("you", "Did you mean: *remind me: dentist tomorrow at 10*? Nothing has been set or saved yet.");
        let (form, at) = history(&format!("{theirs}\n{mine}")).find_offer().unwrap();
        assert_eq!(
            (form.as_str(), at.to_string().as_str()),
            ("remind me: dentist tomorrow at 10", "2026-11-21 15:00:00 CET")
        );
        // Nothing counts as offered if the form differs from their words, the words are withheld, or something was said since.
        let other = said("you", "Did you mean: *remember that the moon is cheese*?");
        assert_eq!(history(&format!("{theirs}\n{other}")).find_offer(), None);
        let withheld = "<said by=\"the person\" at=\"Sat 2026-11-21 15:00\" entry=\"m1\" withheld=\"9 characters\"/>";
        assert_eq!(history(&format!("{withheld}\n{mine}")).find_offer(), None);
        assert_eq!(history(&format!("{theirs}\n{mine}\n{}", said("Ana", "hm"))).find_offer(), None);
        assert_eq!(history("").find_offer(), None);
    }

    #[test]
    fn a_reply_to_a_reminder_corrects_no_fact() {
        let fact = said("the person", "my shoe size is 43");
        let mine = said("you", "Remembered: my shoe size is 43");
        let full = |exchange: &str| history(exchange).complete_message("sorry, 44", now());
        assert_eq!(full(&format!("{fact}\n{mine}")).as_deref(), Some("my shoe size is 44"));
        assert_eq!(full(&format!("{fact}\n{mine}\n{}", said("you", "⏰ the timer is up"))), None);
    }

    #[test]
    fn the_text_of_the_last_reminder_is_found() {
        assert_eq!(history(&said("you", "⏰ call Bob\n\n(It was due at 9.)")).find_reminder_text(), Some("call Bob"));
        assert_eq!(history(&said("the person", "⏰ call Bob")).find_reminder_text(), None);
        assert_eq!(history(&said("you", "Hello")).find_reminder_text(), None);
    }
}
