//! Stale messages: small talk, and questions about a past moment, kept while no model could answer. A day later an answer to "ok" or "what
//! time is it?" is useless, so a rule closes them with a short notice. All other messages are answered, with their date in mind. Pure.

use chrono::{DateTime, TimeDelta, Utc};

use reveille_base::{types::ChatRef, words};
use reveille_store::Incoming;

/// The age from which a message counts as kept for long.
pub(crate) const LONG: TimeDelta = TimeDelta::days(1);
/// The maximum number of words of small talk, or of a question about now.
const MAX_WORDS: usize = 10;
/// The maximum length of a quoted message, in characters.
const MAX_QUOTED_CHARS: usize = 40;

/// Small talk, and questions about now. A text of such phrases alone needs no late answer.
const PHRASES: &str = "ok, okay, k, kk, thanks, thank you, thanks a lot, many thanks, thx, ty, cheers, great, nice, cool, fine, good, perfect, \
                       wow, lol, haha, hm, hmm, hi, hey, hello, hello there, good morning, good afternoon, good evening, good night, \
                       bye, goodbye, see you, test, ping, reveille, how are you, are you there, are you awake, are you working, \
                       you there, anyone there, anybody there, what are you doing, what time is it, whats the time, what is the time, \
                       what day is it, whats the date, what is the date, whats the weather, whats the weather like, what is the weather, \
                       what is the weather like, hows the weather";
/// How a question begins, unlike a request.
const ASKS: &str =
    "what, whats, which, who, whos, where, wheres, when, whens, is, are, am, was, were, does, do i, will it";
/// How a text about its own day ends.
const NOW: &str = "now, today, tonight, tomorrow, this morning, this afternoon, this evening, at the moment";

/// Returns the time of a message kept for long.
pub(crate) fn kept_since(message: &Incoming, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    message.received_at.filter(|at| now.signed_duration_since(at) > LONG)
}

/// Returns `true` if the message needs no answer any more. A repeated request is answered at any age.
pub(crate) fn is_stale(message: &Incoming, now: DateTime<Utc>) -> bool {
    kept_since(message, now).is_some()
        && !message.asked_again
        && message.kind == "text"
        && message.quoted.is_none()
        && message.forwarded_from.is_none()
        && is_about_back_then(&message.text)
}

/// Returns `true` if a text is small talk, or asks about the moment it was written.
pub(crate) fn is_about_back_then(text: &str) -> bool {
    let line = text.trim();
    // A second sentence may ask for anything.
    let says_more = |end: char| line.trim_end_matches(end).contains(end);
    if line.contains('\n') || ['.', ';'].into_iter().any(says_more) {
        return false;
    }
    let letters: String = line.to_lowercase().chars().filter(|c| !"'’".contains(*c)).collect();
    let words: Vec<&str> = letters.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    if words.len() > MAX_WORDS {
        return false;
    }
    let said = words.join(" ");
    is_by_the_way(&said) || asks_about_now(&said)
}

/// Returns `true` for phrases alone. A text without words counts too: "?", or an emoji.
fn is_by_the_way(said: &str) -> bool {
    said.is_empty() || strip_any_phrase(said, PHRASES).any(is_by_the_way)
}

/// Returns `true` for a question about now, also after a greeting.
fn asks_about_now(said: &str) -> bool {
    // "Can you …" and "are you able to … me" ask for an action.
    if said.split(' ').any(|word| ["me", "us", "please"].contains(&word)) {
        return false;
    }
    let ends = NOW.split(", ").any(|end| said.strip_suffix(end).is_some_and(|rest| rest.ends_with(' ')));
    ends && (strip_any_phrase(said, ASKS).next().is_some() || strip_any_phrase(said, PHRASES).any(asks_about_now))
}

/// Returns the rest of a text after each of these phrases at its beginning.
fn strip_any_phrase<'a>(said: &'a str, phrases: &'static str) -> impl Iterator<Item = &'a str> {
    phrases.split(", ").filter_map(|phrase| strip_phrase(said, phrase))
}

/// Returns the rest of a text after this phrase at its beginning, as whole words.
fn strip_phrase<'a>(said: &'a str, phrase: &str) -> Option<&'a str> {
    let rest = said.strip_prefix(phrase)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix(' ') }
}

/// Renders the notice about closed messages for their chat.
pub(crate) fn render_notice(closed: &[&Incoming], chat: ChatRef) -> String {
    let quoted =
        |message: &Incoming| format!("“{}”", words::truncate_text(&words::one_line(&message.text), MAX_QUOTED_CHARS));
    let retry = if chat == ChatRef::TERMINAL { "`wake queue retry" } else { "/retry" };
    let end = if chat == ChatRef::TERMINAL { "`" } else { "" };
    match closed {
        [one] => format!(
            "I've closed an older message of yours without an answer, because its moment has passed: {}. {retry} {}{end} brings it back.",
            quoted(one),
            one.id
        ),
        many => {
            let named = words::format_list(many.iter().map(|message| format!("{} ({})", quoted(message), message.id)));
            let first = many.first().map(|message| message.id).unwrap_or_default();
            format!(
                "I've closed {} older messages of yours without an answer, because their moment has passed: {named}. {retry} {first}{end} \
                 brings the first back.",
                many.len()
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_base::clock::parse_time;

    #[test]
    fn small_talk_and_questions_about_now_go_stale() {
        for text in [
            "ok",
            "OK!",
            "?",
            "??",
            "👍",
            "…",
            "Thanks",
            "thank you!",
            "ok thanks",
            "ok :)",
            "good morning, what time is it?",
            "Hello?",
            "hi, are you there?",
            "Good morning Reveille",
            "what time is it?",
            "What's the time?",
            "what’s the weather today?",
            "Hi! What's the weather like?",
            "what's on today?",
            "what do I have tomorrow?",
            "is the pharmacy open now?",
            "do I need an umbrella today?",
            "Are you working?",
            "will it rain tonight",
            "how are you?",
        ] {
            assert!(is_about_back_then(text), "{text}");
        }
    }

    #[test]
    fn requests_and_questions_never_go_stale() {
        for text in [
            "yes",
            "no",
            "never mind",
            "remember that cats purr",
            "remind me to call Anna today",
            "can you book the table now?",
            "how do I reset the router",
            "what is the capital of Peru?",
            "ok, then buy the tickets",
            "thanks. And what about the rent?",
            "hello, please move the dentist to Friday",
            "call mum today",
            "what did the doctor say",
            "I'm allergic to penicillin",
            "what time is the flight on Friday?",
            "what\ntoday?",
            "are you able to remind me to call mum tomorrow",
            "is it possible to please book it today",
            "note: what I eat today",
            "is it true that the train to the north of the country leaves earlier from today",
        ] {
            assert!(!is_about_back_then(text), "{text}");
        }
    }

    fn message(text: &str) -> Incoming {
        let received_at = parse_time("2026-11-21T14:06:00Z");
        Incoming { id: 7, text: text.to_owned(), kind: "text".to_owned(), received_at, ..Incoming::default() }
    }

    #[test]
    fn only_a_persons_own_plain_text_goes_stale_after_a_day() {
        let now = parse_time("2026-11-22T14:06:01Z").unwrap();
        assert!(is_stale(&message("ok"), now) && !is_stale(&message("ok"), now - TimeDelta::seconds(2)));
        let others = [
            Incoming { kind: "voice".to_owned(), ..message("ok") },
            Incoming { quoted: Some("Shall I?".to_owned()), ..message("ok") },
            Incoming { forwarded_from: Some("Bob".to_owned()), ..message("ok") },
            Incoming { asked_again: true, ..message("ok") },
            Incoming { received_at: None, ..message("ok") },
            message("buy milk"),
        ];
        assert!(others.iter().all(|message| !is_stale(message, now)));
    }

    #[test]
    fn a_chat_is_told_what_is_closed_and_how_to_bring_it_back() {
        let (ok, what) = (message("ok"), Incoming { id: 9, ..message("what time\nis it?") });
        assert_eq!(
            render_notice(&[&ok], ChatRef::from_telegram(4242)),
            "I've closed an older message of yours without an answer, because its moment has passed: “ok”. /retry 7 brings it back."
        );
        assert_eq!(
            render_notice(&[&ok, &what], ChatRef::TERMINAL),
            "I've closed 2 older messages of yours without an answer, because their moment has passed: “ok” (7), “what time is it?” (9). \
             `wake queue retry 7` brings the first back."
        );
    }
}
