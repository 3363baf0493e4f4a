//! Finds the command most similar to a message that the grammar doesn't understand. The command is offered as a question, never executed
//! directly.

use chrono::DateTime;

use reveille_base::{
    schedule::{When, parse_when},
    zone::Tz,
};

use super::{OfflineCommand, ParsedMessage, is_foreign, parse, sentence, spelling, stated};

/// The reply to a message that the grammar doesn't understand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Near {
    /// A command that was probably meant, in a form that the grammar understands.
    Form(String),
    /// A question, in its final wording.
    Ask(String),
}

/// Openers with the commands that they may mean, where `{}` is the rest. The first understood one wins.
const FORMS: &[(&str, &[&str])] = &[
    ("wake ?me ?us up", WAKE_UP),
    ("wake me|us", WAKE_UP),
    ("set|start ?me ?up ?an|a|the|my alarm ?for|at|to", &["remind me {}: alarm", "remind me at {}: alarm"]),
    ("alarm ?for|at", &["remind me {}: alarm", "remind me at {}: alarm"]),
    ("i'm|we're|i|we ?am|are ?almost|nearly out|low of|on", &["add {} to the shopping list"]),
    ("i|we ran|run|running|have|ve ?run ?almost out of", &["add {} to the shopping list"]),
    ("?i|we ?really ?still ?also need|have|ought|want to", &["remind me to {}", "add task {}"]),
    ("i|we must|should", &["remind me to {}", "add task {}"]),
    ("?i|we gotta", &["remind me to {}", "add task {}"]),
    ("i've|we've got to", &["remind me to {}", "add task {}"]),
    ("i'd|id like to", &["remind me to {}", "add task {}"]),
    ("?i|we ?still ?also need|want", &["add {} to the shopping list"]),
];

/// Forms of a request to be woken: an hour means the morning, unless the message names another time of day.
const WAKE_UP: &[&str] = &[
    "remind me {} to wake up",
    "remind me at {} to wake up",
    "remind me {} in the morning to wake up",
    "remind me at {} in the morning to wake up",
];

/// Openers of alarms without a time.
const ALARMS: &str = "set|start ?me ?up ?an|a|the|my alarm|alarms|timer|timers";
const NO_TIME: &str = "I can't ring, but I can send you a message at a time. No alarm is set yet: please say when, as in “remind me at 7 to \
                       wake up”.";

const WHAT_CHANGES: &str = "Sorry, I can't tell what that changes, so nothing has changed. Please say it again as a whole; “undo that” takes back \
                            what I did last.";

/// Words that rule out a shopping item after "add …".
const NO_ITEM: &str = "to|task|tasks|todo|list|lists|on|in|is|it|that|this|and|a|the|me|more|up|backlog|note";

/// Verbs at the beginning of a task.
const TASK_VERBS: &str = "buy|get|call|phone|email|pay|book|renew|clean|fix|repair|order|return|wash|paint|water|pick|visit|meet|collect|\
     finish|prepare|pack|file|mow|feed|walk|post|print|sign|submit|schedule|plan|invite";
/// Words after such a verb that make a request for the assistant: "get me the news".
const FOR_ME: &str = "me|us|you|it|that|this|him|her|them";
/// Openers of a statement about oneself or one's family.
const TELLING: &str = "i|i'm|im|i've|my|our|we|we're|the|mum|mom|dad|his|her|their";
/// Words of a passing remark, or of one about the assistant: neither is a lasting fact.
const PASSING: &str = "i'll|will|going|was|were|did|think|hope|guess|wonder|mean|told|said|tell|asked|you|your|just|now|today|please|not|never|if|when|\
     can|can't|cannot|could|would|should|try|feel|am";
/// Maximum tokens of a message; a longer one isn't a command.
const MAX_TOKENS: usize = 24;

/// Finds the command most similar to a message that isn't understood; `now` is the message's time. `None` if no command is similar.
pub fn find_nearest(text: &str, now: DateTime<Tz>) -> Option<Near> {
    let text = text.trim().trim_end_matches(['.', '!', ' ']);
    let is_plain = !text.contains(['\n', '*', '`', '?', '"', '“', '<', '>', '_', '[']);
    if !is_plain || is_foreign(text) {
        return None;
    }
    let corrected = spelling::correct_text(text);
    let text = corrected.as_deref().unwrap_or(text);
    let tokens = spelling::parse_tokens(text);
    let sentences = sentence::split(text, &tokens);
    let [whole] = sentences.as_slice() else { return None };
    let sentence = whole.without_courtesy();
    let is_no_command = whole.is_reported_speech() || whole.is_hypothetical() || sentence.is_question();
    if is_no_command || sentence.len() > MAX_TOKENS || sentence.is_blank() {
        return None;
    }
    let understood = |form: String| is_understood(&form, now).then_some(Near::Form(form));
    if let Some(rest) = sentence
        .strip_phrase("add|do")
        .filter(|rest| rest.cursor().match_phrase(TASK_VERBS).is_some_and(|end| !end.is_end()))
    {
        return understood(format!("add task {}", rest.text()));
    }
    // "Add milk": few words, and no list named.
    if let Some(rest) = sentence.strip_phrase("add ?some").filter(|rest| rest.len() <= 3 && !rest.has_word(NO_ITEM)) {
        return understood(format!("add {} to the shopping list", rest.text()));
    }
    // "Change my shoe size to 44".
    if let Some(rest) = sentence.strip_phrase("change|update|set|correct my|our")
        && let Some(at) = (1..rest.len()).rev().find(|at| rest.part_from(*at).cursor().text() == "to")
    {
        return understood(format!(
            "remember that my {} is {}",
            rest.part_until(at).text(),
            rest.part_from(at + 1).text()
        ));
    }
    // "…, how much is that?" is a question instead.
    let ends_with_question = (1..sentence.len()).any(|at| {
        sentence
            .part_from(at)
            .strip_phrase(",")
            .is_some_and(|rest| rest.cursor().match_phrase("how|what|what's|when|where|which|who").is_some())
    });
    if ends_with_question {
        return None;
    }
    let is_negated = sentence.is_negated();
    for (opener, forms) in FORMS {
        let Some(end) = sentence.cursor().match_phrase(opener) else { continue };
        let rest = sentence.skip_to(end).body();
        if rest.is_blank() || !rest.is_body() || rest.is_negated() {
            continue;
        }
        if let Some(near) = forms.iter().find_map(|form| understood(form.replace("{}", rest.text()))) {
            return Some(near);
        }
    }
    let corrections = [
        "i meant|mean",
        "?oops|no|wait ?, actually|no|sorry|correction|wait ?, ?not it|it's|its|that|not|at|on",
        "?actually ?no ?, change|make|set|move|put that|it|this",
    ];
    let is_correction = corrections.iter().any(|pattern| {
        whole.cursor().match_phrase(pattern).is_some() || sentence.cursor().match_phrase(pattern).is_some()
    });
    let is_contrast = sentence.cursor().match_phrase("it|it's|its|that's").is_some() && sentence.has_word("not");
    let is_contrast = is_contrast || (sentence.cursor().text() == "not" && text.contains(','));
    if is_correction || is_contrast {
        return Some(Near::Ask(WHAT_CHANGES.to_owned()));
    }
    if is_negated {
        return None;
    }
    if sentence.cursor().match_phrase(ALARMS).is_some() || sentence.cursor().match_phrase("wake me").is_some() {
        return Some(Near::Ask(NO_TIME.to_owned()));
    }
    let body = sentence.body();
    let has_passing = (0..body.len()).any(|index| body.part_from(index).cursor().match_phrase(PASSING).is_some());
    // A request for work that only a model can do.
    if body.cursor().match_phrase("recommend|suggest|write|draft|translate|explain|summarise|summarize|compose|describe|compare|generate|research|plan me|us").is_some()
        || (1..body.len()).any(|at| body.part_from(at).is_all_of("for me|us"))
        || body.cursor().match_phrase("recommend|suggest|draft|translate|explain|summarise|summarize|compose").is_some()
    {
        return None;
    }
    let is_timed = parse_when(body.text(), now).is_some_and(|found| found.when.is_ok());
    let is_about_family = body.cursor().match_phrase(TELLING).is_some();
    if is_timed && !is_about_family && !has_passing && body.len() >= 2 && !is_pronoun_first(&body) {
        return understood(format!("remind me: {}", body.text()));
    }
    if let Some(end) = body.cursor().match_phrase(TASK_VERBS) {
        let for_me = end.match_phrase(FOR_ME).is_some() || end.is_end();
        return (!for_me).then(|| understood(format!("add task {}", body.text()))).flatten();
    }
    let is_fact = body.is_statement() && !has_passing && !is_timed && !is_pronoun_first(&body);
    let begins_with_name = body.text().starts_with(char::is_uppercase);
    if is_fact && (is_about_family || begins_with_name) && body.has_word(stated::SECRETS) {
        return Some(Near::Ask(stated::SECRET.to_owned()));
    }
    if is_fact && (is_about_family || begins_with_name) {
        return understood(format!("remember that {}", body.text()));
    }
    None
}

fn is_pronoun_first(body: &sentence::Sentence<'_>) -> bool {
    body.cursor()
        .match_phrase("it|it's|he|he's|she|she's|they|they're|this|that|that's|there|there's|these|those|you|you're")
        .is_some()
}

/// True if a text is a single complete command.
fn is_understood(form: &str, now: DateTime<Tz>) -> bool {
    match parse(form, now) {
        ParsedMessage::Commands(commands) => {
            matches!(
                commands.as_slice(),
                [OfflineCommand::Remind { .. }
                    | OfflineCommand::TaskAdd { .. }
                    | OfflineCommand::Remember { .. }
                    | OfflineCommand::ListAdd { .. }]
            )
        }
        _ => false,
    }
}

/// Builds the command that stores a sentence as a fact.
pub fn remember_form(fact: &str) -> String {
    format!("remember that {fact}")
}

/// Builds the recurring reminder for a task whose title states a recurrence.
pub fn recurring_title(title: &str, now: DateTime<Tz>) -> Option<String> {
    let recurs = parse_when(title, now).is_some_and(|found| matches!(found.when, Ok(When::Every(_))));
    let form = format!("remind me to {title}");
    let is_plain = !title.contains(['\n', '*', '`', '?', '_', '[']);
    (recurs && is_plain && is_understood(&form, now)).then_some(form)
}
