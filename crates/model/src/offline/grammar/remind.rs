//! Parses orders to set or cancel reminders, with time and text in any order.

use chrono::DateTime;

use reveille_base::{
    schedule::{
        Missed, RelativeTime, parse_relative, parse_when,
        words::{Cursor, tokenize},
    },
    zone::Tz,
};

use super::{Missing, OfflineCommand, Reading, Which, ask_back, ask_for_part, sentence::Sentence};

/// Openers of a reminder.
const OPENERS: &[(&str, Opener)] = &[
    ("remind me|us", Opener::Remind),
    ("reminding me|us", Opener::Remind),
    ("ping|nudge me", Opener::Remind),
    ("set|create|make|add|schedule ?me ?up a|another|the|one ?new reminder", Opener::Reminder),
    ("set|create|add|new reminder", Opener::Reminder),
    ("give|send me a reminder", Opener::Reminder),
    ("i need|want a reminder", Opener::Reminder),
    ("i'd like a reminder", Opener::Reminder),
    ("reminder :", Opener::Label),
    ("remember|don't|dont ?forget to remind me|us", Opener::Remind),
    ("don't|dont let me forget to", Opener::Duty),
    ("remember to", Opener::Duty),
    ("don't|dont forget to", Opener::Duty),
    ("do not forget to", Opener::Duty),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Opener {
    /// "Remind me …"
    Remind,
    /// "Set a reminder for …"
    Reminder,
    /// "Reminder: …", which may also begin a forwarded notice.
    Label,
    /// "Don't forget to …"
    Duty,
}

/// Openers of a wake-up call.
const WAKE: &str = "wake|get me|us ?up";

/// Parses "Wake me at 6:45": in the morning, unless stated otherwise. Ambiguous orders become a question (`nearest`).
pub(super) fn wake_up(sentence: &Sentence<'_>, now: DateTime<Tz>) -> Option<Reading> {
    let body = sentence.skip_to(sentence.cursor().match_phrase(WAKE)?).body();
    let is_wake = sentence.cursor().text() == "wake" && !sentence.is_bare_question();
    let said = body.text();
    let forms = [format!("{said} in the morning to wake up"), format!("{said} to wake up")];
    let mut read = forms.iter().filter_map(|said| match build_reminder(said, Missed::default(), now) {
        Reading::Command(OfflineCommand::Remind { what, when, missed }) if what == "wake up" => {
            Some(Reading::Command(OfflineCommand::Remind { what, when, missed }))
        }
        _ => None,
    });
    if is_wake { read.next() } else { None }
}

/// Returns the text in "I have to take my tablet at 8, can you remind me of that?"
fn find_preceding_text<'t>(sentence: &Sentence<'t>) -> Option<Sentence<'t>> {
    const OF_THAT: &str = "?please ?so ?can|could|will|would ?you ?please remind me|us ?of|about ?it|that|this ?please";
    const NEEDS: &str = "?i|we ?i've|we've ?really ?also need|have|must|ought|got|gotta|should ?got ?to";
    let at = (2..sentence.len()).find(|at| {
        let rest = sentence.part_from(*at);
        rest.cursor().match_phrase(",|-|–|—|.|and").is_some() && rest.part_from(1).is_all_of(OF_THAT)
    })?;
    let before = sentence.part_until(at).body();
    before.strip_phrase(NEEDS)
}

/// Words after the opener that ask for a fact ("remind me what she said") or set a condition ("remind me when I'm home").
const NO_REMINDER: &str = "what|what's|who|who's|where|when|why|how|which|whose|if|whether|once|unless|whenever|as|after|before|while|until|of";

pub(super) fn parse_remind(sentence: &Sentence<'_>, now: DateTime<Tz>) -> Option<Reading> {
    if let Some(thing) = find_preceding_text(sentence) {
        return Some(build_reminder(&format!("to {}", thing.body().text()), Missed::default(), now));
    }
    let (time_said_first, rest) = time_first(sentence, now);
    let (opener, end) = rest.cursor().match_table(OPENERS)?;
    let again = rest.skip_to(end).body().skip_phrase("?please ?again");
    let (body, missed) = split_missed_policy(again.body());
    let labelled_statement = opener == Opener::Label && body.is_statement();
    let asks_duty = opener == Opener::Duty && sentence.is_bare_question();
    if labelled_statement || asks_duty || rest.asks_more() {
        return Some(Reading::Unclear);
    }
    if !body.is_blank() && !body.is_body() {
        return Some(Reading::Unclear);
    }
    if let Some(asks) = body.cursor().match_phrase(NO_REMINDER) {
        let of = asks.previous_token().is_some_and(|word| word.text == "of");
        let timed = of && parse_when(&format!("{time_said_first} {}", body.text()), now).is_some();
        if !timed {
            return Some(fact_or_condition(&body));
        }
    }
    let body = match opener {
        Opener::Reminder => body.skip_phrase("?for|on|:").body(),
        _ => body,
    };
    // "Tomorrow remind me at 9 to …": both halves of the time are parsed together.
    let said =
        if time_said_first.is_empty() { body.text().to_owned() } else { format!("{time_said_first} {}", body.text()) };
    Some(build_reminder(&said, missed, now))
}

/// Missed-time policies at the end of a reminder, after a comma or "and", for a time at which the machine was asleep.
const IF_MISSED: &[(&str, Missed)] = &[
    ("skip ?it|that|them if|when ?it|they ?is|was|are|were missed", Missed::Skip),
    ("skip ?it|that|them if|when you miss|missed it|one|that|them", Missed::Skip),
    ("skip ?it|that|them if|when it|it's ?is late", Missed::Skip),
    ("skip missed ones", Missed::Skip),
    ("?only|just tell me if|when ?it ?is|was missed", Missed::Tell),
    ("?only|just tell me if|when you miss|missed it|one|that", Missed::Tell),
    ("do|send|run it late if|when ?it ?is|was missed", Missed::Run),
    ("late if missed", Missed::Run),
    ("even if it|it's ?is late", Missed::Run),
];

/// Strips a missed-time policy at the end.
fn split_missed_policy(body: Sentence<'_>) -> (Sentence<'_>, Missed) {
    let found = (1..body.len()).find_map(|index| {
        let after = body.part_from(index).strip_conjunction()?;
        Some((body.part_until(index).body(), parse_policy(&after)?))
    });
    found.unwrap_or((body, Missed::default()))
}

/// Parses "Skip it if missed." as a separate sentence about the reminder before.
pub(super) fn read_policy(sentence: &Sentence<'_>, _now: DateTime<Tz>) -> Option<Reading> {
    parse_policy(sentence).map(Reading::IfMissed)
}

fn parse_policy(sentence: &Sentence<'_>) -> Option<Missed> {
    let body = sentence.body();
    IF_MISSED.iter().find_map(|(pattern, missed)| body.is_all_of(pattern).then_some(*missed))
}

/// "Remind me what …" is a question; "remind me when I'm home" needs more than a clock.
fn fact_or_condition(body: &Sentence<'_>) -> Reading {
    match body.cursor().match_phrase("if|once|unless|whenever|as|after|before|while|until|when") {
        Some(_) => Reading::Unclear,
        None => Reading::Question,
    }
}

/// Splits "Tomorrow at 9, please remind me …" into the time in front and the rest.
fn time_first<'t>(sentence: &Sentence<'t>, now: DateTime<Tz>) -> (&'t str, Sentence<'t>) {
    let opens = |index: usize| sentence.part_from(index).without_courtesy().cursor().match_table(OPENERS).is_some();
    let Some(index) = (1..sentence.len()).find(|index| opens(*index)) else {
        return ("", *sentence);
    };
    let before = sentence.part_until(index).body();
    // The words in front must be entirely a time: "she said tomorrow, remind me" is no request.
    let is_time = parse_when(before.text(), now).is_some_and(|found| {
        found.span.start == 0 && is_courtesy(before.text().get(found.span.end..).unwrap_or_default())
    });
    if is_time { (before.text(), sentence.part_from(index).without_courtesy()) } else { ("", *sentence) }
}

fn is_courtesy(text: &str) -> bool {
    let tokens = tokenize(text);
    Cursor::new(&tokens, 0).skip("?, ?please ?can|could|would|will ?you ?please").is_end()
}

const TWO_TIMES: &str = "I found more than one time in that, so I haven't set a reminder yet. Please send one reminder per line, such as \
                         “remind me tomorrow at 9 to call Anna”.";

/// Splits the words after the opener into time and text.
fn build_reminder(said: &str, missed: Missed, now: DateTime<Tz>) -> Reading {
    if let Some(relative) = parse_relative(said, now) {
        return build_near_reminder(said, &relative, missed, now);
    }
    let Some(found) = parse_when(said, now) else {
        return ask_for_time(said);
    };
    let before = said.get(..found.span.start).unwrap_or_default();
    let time = said.get(found.span.clone()).unwrap_or_default();
    let after = said.get(found.span.end..).unwrap_or_default();
    let what = join_thing(before, after);
    if let Some(unread) = find_unclear_time(before, time, after).filter(|_| !is_condition(before.trim())) {
        return ask_back(format!(
            "I didn't understand all of “{unread}” as a time. I haven't set a reminder yet: please send it again with a time such as “tomorrow at 9”."
        ));
    }
    match found.when {
        Err(trouble) => ask_back(format!(
            "“{time}” {trouble}. I haven't set a reminder yet: please send it again with another time."
        )),
        Ok(_) if what.is_empty() => ask_for_part(
            Missing::Thing,
            format!("What should I remind you of {time}? I haven't set a reminder yet: please say what to do."),
        ),
        // "Call Anna tomorrow at 9 and Bob at 10" has two times. A time right after "remind me" is clear.
        Ok(_) if found.span.start > 0 && parse_when(&what, now).is_some() => ask_back(TWO_TIMES),
        Ok(_) if is_condition(&what) => Reading::Unclear,
        Ok(when) => Reading::Command(OfflineCommand::Remind { what, when, missed }),
    }
}

/// Builds a reminder relative to another event; without a text, the event is the text.
fn build_near_reminder(said: &str, relative: &RelativeTime, missed: Missed, now: DateTime<Tz>) -> Reading {
    let when = said.get(relative.span.clone()).unwrap_or_default();
    let before = said.get(..relative.span.start).unwrap_or_default();
    let after = said.get(relative.span.end..).unwrap_or_default();
    let what = match join_thing(before, after) {
        none if none.is_empty() => relative.thing.clone(),
        what => what,
    };
    if parse_when(&relative.thing, now).is_some() || parse_when(&what, now).is_some() {
        return ask_back(TWO_TIMES);
    }
    if is_condition(&what) {
        return Reading::Unclear;
    }
    Reading::Command(OfflineCommand::RemindNear { what, when: when.to_owned(), missed })
}

/// Returns the words of an only partly understood time: "remind me tomorrow at lunch to …". They may change the time.
fn find_unclear_time(before: &str, time: &str, after: &str) -> Option<String> {
    const LEADS: &str = "to|that|about|of|for|and|:|please|again|,";
    const TIMELY: &str = "at|in|on|by|from|through|until|till|for|between|around|same|this|next|last|week|fortnight|weekend|noon|\
                          lunch|lunchtime|approximately|roughly|am|pm|or|ish|early|late|maybe|sometime|before|after|of|the|past|\
                          noonish|sharp|o'clock|day|days|weekday|workday|working|business|morning|afternoon|evening|night|\
                          midnight|hour|hours|minute|minutes|month|months|year|years|quarter|half|every|each|daily|weekly|\
                          monthly|yearly|except|but|only|not|starting|beginning|since|ago|later|tomorrow|today|tonight";
    let (before_tokens, after_tokens) = (tokenize(before), tokenize(after));
    let (first, next) = (Cursor::new(&before_tokens, 0), Cursor::new(&after_tokens, 0));
    let to = after_tokens.iter().position(|token| token.text == "to");
    let is_unread_before = !first.is_end() && first.match_phrase(LEADS).is_none() && next.match_phrase("to").is_some();
    // "Noon-ish", "9am-10am".
    let is_timely =
        next.match_phrase(TIMELY).is_some() || next.text().contains('-') || next.weekday_or_short().is_some();
    let is_unread_after = first.is_end() && to.is_some_and(|to| to > 0) && is_timely;
    let end = to.and_then(|to| after_tokens.get(to)).map_or(0, |token| token.span.start);
    (is_unread_before || is_unread_after)
        .then(|| format!("{before}{time}{}", after.get(..end).unwrap_or_default()).trim().to_owned())
}

/// Joins the words around the time, without connecting words.
fn join_thing(before: &str, after: &str) -> String {
    let before = without_lead(before);
    let after = if before.is_empty() { without_lead(after) } else { trim_marks(after) };
    match (before, after) {
        ("", one) | (one, "") => one.to_owned(),
        (before, after) if after.starts_with([',', '.', ';', ':']) => format!("{before}{after}"),
        (before, after) => format!("{before} {after}"),
    }
}

fn without_lead(text: &str) -> &str {
    let text = trim_marks(text);
    let tokens = tokenize(text);
    let end = Cursor::new(&tokens, 0).skip("to|that|about|of|for|and|:|please").skip("to|that|about|:");
    let start = end.token().map_or(text.len(), |token| token.span.start);
    trim_marks(text.get(start..).unwrap_or_default())
}

fn trim_marks(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | ':' | '-' | '–' | '—'))
}

fn is_condition(what: &str) -> bool {
    let tokens = tokenize(what);
    Cursor::new(&tokens, 0).match_phrase("if|unless|when|once|whenever|as|and|or|but|maybe|perhaps").is_some()
}

fn ask_for_time(said: &str) -> Reading {
    const EXAMPLE: &str =
        "I haven't set a reminder yet: please say a time, such as “tomorrow at 9” or “in 20 minutes”.";
    let tokens = tokenize(said);
    let what = without_lead(said);
    match Cursor::new(&tokens, 0).text() {
        "" => ask_back(
            "What should I remind you of, and when? I haven't set a reminder yet: please send it again with both, such as “remind me \
             tomorrow at 9 to call Anna”.",
        ),
        lead @ ("about" | "of" | "that") => {
            ask_for_part(Missing::Time, format!("When should I remind you {lead} {what}? {EXAMPLE}"))
        }
        // "In a bit to tea": the words for the time aren't a time.
        lead @ ("in" | "at" | "on" | "after" | "before" | "later" | "soon" | "some" | "sometime") => ask_back(format!(
            "I didn't understand the time “{}”. I haven't set a reminder yet: please send it again with one such as “in 20 minutes”.",
            if lead == what { lead } else { said.trim() }
        )),
        _ => ask_for_part(Missing::Time, format!("When should I remind you to {what}? {EXAMPLE}")),
    }
}

/// Drops the article: "the vitamins".
fn drop_article(which: Which) -> Which {
    match which {
        Which::Text(text) => {
            let bare = ["the ", "my "].iter().find_map(|article| text.strip_prefix(article)).map(str::to_owned);
            Which::Text(bare.unwrap_or(text))
        }
        which => which,
    }
}

/// Parses "Cancel reminder 2", "delete the dentist reminder", "don't remind me about the dentist any more".
pub(super) fn parse_cancel(sentence: &Sentence<'_>, _now: DateTime<Tz>) -> Option<Reading> {
    const WHICH: &str = "Which reminder should I cancel? I haven't changed anything. Send “list reminders” to see their numbers, then \
        for example “cancel reminder 2”.";
    const NO_MORE: &[&str] = &["stop|quit reminding me", "don't|dont remind me", "do not|never remind me"];
    if let Some(end) = NO_MORE.iter().find_map(|opener| sentence.cursor().match_phrase(opener)) {
        let rest = sentence.skip_to(end).body();
        let is_closing = |index: &usize| rest.part_from(*index).is_all_of("?ever any more|longer|time|again ?please");
        let closing = |index: &usize| is_closing(index) || rest.part_from(*index).is_all_of("?, anymore|again ?please");
        let closed = (0..rest.len()).find(closing);
        // "Don't remind me tomorrow" may mean a single time.
        if closed.is_none() && sentence.cursor().match_phrase("stop|quit").is_none() {
            return None;
        }
        let rest = closed.map_or(rest, |index| rest.part_until(index)).body();
        let named = rest.skip_to(rest.cursor().skip("?about|of|to|that|for")).body();
        return Some(match named.parse_which() {
            _ if sentence.is_bare_question() => Reading::Question,
            Some(which) => Reading::Command(OfflineCommand::CancelReminder { which: drop_article(which) }),
            None if named.is_blank() || named.is_pronoun() => Reading::Command(OfflineCommand::StopReminder),
            None => ask_back(WHICH),
        });
    }
    let verb = sentence.cursor().match_phrase("cancel|delete|remove|drop|clear")?;
    if sentence.is_bare_question() {
        return Some(Reading::Question);
    }
    let which = match verb.match_phrase("?the|my|that|this reminder") {
        Some(reminder) => sentence.skip_to(reminder.skip(":|for|about|to|of|with|called")),
        None if verb.match_phrase("?all ?of ?my|the reminders").is_some() => return Some(ask_back(WHICH)),
        None => {
            let named = sentence.skip_to(verb.skip("the|my|that")).body();
            let last = named.len().checked_sub(1)?;
            let is_one = matches!(named.part_from(last).cursor().text(), "reminder" | "one");
            // "Drop the last one" may mean a task.
            let is_counted = named.part_until(last).has_word("last|first|second|third");
            let is_reminder = named.part_from(last).cursor().text() == "reminder";
            (is_one && last > 0 && (is_reminder || !is_counted)).then(|| named.part_until(last))?
        }
    };
    Some(match which.parse_which() {
        Some(which) => Reading::Command(OfflineCommand::CancelReminder { which }),
        None => ask_back(WHICH),
    })
}
