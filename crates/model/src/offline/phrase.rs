//! Turns the parsed commands of a message into tool calls and words.

use chrono::{DateTime, NaiveDate};
use serde_json::{Value, json};

use reveille_base::{schedule::When, zone::Tz};

use super::{
    Outcomes,
    grammar::{self, Language, Moment, OfflineCommand, ParsedMessage, QuestionKind, Small, ThingKind, Which},
    history::Referent,
    small_talk::small_talk,
};

/// The help text, listing everything that the grammar understands.
pub const HELP: &str = "I work without an AI model right now, so I understand a few things, in plain words:\n\
- my shoe size is 43 · **remember that** Anna takes oat milk · **what do you know about** Anna? · **forget** my shoe size\n\
- **remind me** to call Anna **tomorrow at 9** · **list reminders** · **move it to** Friday · **cancel reminder** 2\n\
- **add task** buy milk · **list tasks** · **task** 2 **done** · **rename**, **delete** or **postpone** it · **move** it **to the backlog**\n\
- **add** milk and eggs **to the shopping list** · **what's on** it? · **I bought** milk · **I called** the plumber (a task of yours)\n\
- **what's on today?** · what time is it in Tokyo? · **set a timer for** 10 minutes · 15% of 80 · 5 miles in km · **undo that** · **status**\n\n\
I keep anything else and answer it once I have an AI model: `wake init` sets one up (`MODEL`).";

/// The end of an approximate answer by `quote`.
const NEAREST: &str = "this is the nearest.";
/// The texts of `quote` and `told_done` for an empty search.
const NOTHING_FOUND: [&str; 2] = ["Nothing that is stored answers this.", "There's no task like that."];

/// The answer to an edit of a message that was already processed.
pub(super) const CORRECTION: &str = "You edited an earlier message. I work without an AI model right now and can't tell what that changes, so \
I have changed nothing. Please say it in a new message. To take back what I did, say **undo that**, or **list reminders** and \
**cancel reminder** 2.";

/// A part of every notice of a kept message.
pub(super) const KEPT_UNTIL: &str = "until you add one (`wake init`)";
/// The beginning of the notice of a kept question.
pub(super) const KEPT_QUESTION: &str = "You haven't told me that";

const WHICH_ONE: &str = "Which one do you mean? I haven't changed anything: please say its name. “list tasks” and “list reminders” show \
    what there is.";
/// The answer to a question about something that only the person could have told.
const NOT_TOLD: &str = "You haven't told me that. When you do, I'll remember it.";
/// Beginnings of the tools' texts for an unknown name.
const NO_SUCH: [&str; 4] = ["there is no task", "There's no reminder", "There's no task", "There's no list item"];

/// A part of the answer to a message.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum PhrasePart {
    /// Text without a tool call.
    Say(String),
    /// A tool call with the wording of its result.
    Call(Box<OfflineCall>),
}

/// A tool call with the wording of its result.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct OfflineCall {
    /// Unique in the conversation.
    pub(super) id: String,
    /// The tool's name.
    pub(super) tool: &'static str,
    /// The arguments.
    pub(super) input: Value,
    /// The step in the plan. `None` for a mere search.
    pub(super) step: Option<String>,
    /// Text before the result.
    lead: Option<String>,
    /// Text after a successful result.
    after: Option<String>,
    /// Keep the message if this call fails.
    keep_on_failure: bool,
    /// Replaces the tool's text for an empty search.
    otherwise: Option<String>,
    /// Reject approximate answers.
    is_exact: bool,
    /// The present time, if the answer states how far away the day in the result is.
    distance_from: Option<DateTime<Tz>>,
    /// The next call to try if the name is unknown.
    pub(super) or_else: Option<Box<OfflineCall>>,
}

impl OfflineCall {
    fn new(id: &str, tool: &'static str, input: Value) -> Self {
        let id = id.to_owned();
        Self {
            id,
            tool,
            input,
            step: None,
            lead: None,
            after: None,
            keep_on_failure: false,
            otherwise: None,
            is_exact: false,
            distance_from: None,
            or_else: None,
        }
    }

    fn with_step(self, step: String) -> Self {
        Self { step: Some(step), ..self }
    }

    fn with_lead(self, lead: &str) -> Self {
        Self { lead: Some(lead.to_owned()), ..self }
    }

    /// Adds a call for the case that the name is unknown.
    fn or_else(self, other: Self) -> Self {
        let other = Self { id: format!("{}-or", self.id), ..other };
        let other = match other.or_else.clone() {
            Some(next) => other.or_else(*next),
            None => other,
        };
        Self { or_else: Some(Box::new(other)), ..self }
    }

    /// Returns the next call to make: the first unmade one after calls that found nothing.
    pub(super) fn find_open(&self, outcomes: &Outcomes) -> Option<&Self> {
        let next = self.next(outcomes)?;
        if outcomes.contains_key(&next.id) { next.find_open(outcomes) } else { Some(next) }
    }

    /// Returns the alternative to this call if it found nothing.
    fn next(&self, outcomes: &Outcomes) -> Option<&Self> {
        let (why, failed) = outcomes.get(&self.id)?;
        let found_nothing = *failed && is_unknown_name(why);
        self.or_else.as_deref().filter(|_| found_nothing)
    }

    /// Returns the call that counts in the end: this one or its last alternative.
    pub(super) fn last_call(&self, outcomes: &Outcomes) -> &Self {
        self.next(outcomes).map_or(self, |next| next.last_call(outcomes))
    }
}

/// The context of a message.
pub(super) struct MessageContext<'a> {
    /// The present time.
    pub(super) now: DateTime<Tz>,
    /// The task or reminder mentioned last.
    pub(super) referent: Option<&'a Referent>,
    /// The text of the reminder just sent.
    pub(super) reminded: Option<&'a str>,
    /// The assistant's last words ask a question.
    pub(super) was_asked: bool,
    /// The message quotes an earlier message of the assistant or the person.
    pub(super) is_reply: bool,
    /// The assistant's last words.
    pub(super) last_words: Option<&'a str>,
    /// The list mentioned last.
    pub(super) list: Option<&'a str>,
    /// Earlier kept words that contain the answer.
    pub(super) kept: Option<&'a str>,
}

/// Asks about a probable command.
pub(super) fn did_you_mean(form: &str) -> String {
    format!("Did you mean: *{form}*?")
}

/// Asks about a probable command and says that nothing has happened yet.
pub(super) fn build_offer(form: &str) -> Vec<PhrasePart> {
    vec![PhrasePart::Say(format!("{} Say “yes” to do it. Nothing has been set or saved yet.", did_you_mean(form)))]
}

/// Builds the parts of a message's answer. `None` if the message must be kept.
pub(super) fn build_message_parts(
    id: i64,
    parsed: ParsedMessage,
    around: &MessageContext<'_>,
) -> Option<Vec<PhrasePart>> {
    match parsed {
        ParsedMessage::Commands(commands) => {
            let parts = commands
                .into_iter()
                .enumerate()
                .flat_map(|(at, command)| build_parts(&format!("m{id}-{at}"), command, around));
            Some(parts.collect())
        }
        ParsedMessage::Question(question) => {
            let (asked, words) = grammar::classify_question(&question);
            let event = grammar::find_awaited_event(&question);
            let query = event.as_deref().unwrap_or(&words);
            let call = OfflineCall::new(&format!("m{id}-q"), "quote", json!({"query": query}));
            let is_exact = asked == QuestionKind::Other;
            let call = OfflineCall { is_exact, distance_from: event.is_some().then_some(around.now), ..call };
            let kept = around.kept.filter(|_| asked != QuestionKind::Other);
            let kept = kept.map(|words| {
                format!("You wrote “{words}”. I've kept that for an AI model, and it's all I can tell you about it.")
            });
            let otherwise = kept.or_else(|| (asked == QuestionKind::Personal).then(|| NOT_TOLD.to_owned()));
            let call = OfflineCall { keep_on_failure: otherwise.is_none(), otherwise, ..call };
            Some(vec![PhrasePart::Call(Box::new(call.with_lead("From what I remember:")))])
        }
        ParsedMessage::Unclear { .. } => None,
    }
}

fn build_parts(id: &str, command: OfflineCommand, around: &MessageContext<'_>) -> Vec<PhrasePart> {
    let call = |tool, input| OfflineCall::new(id, tool, input);
    let one = |call: OfflineCall| vec![PhrasePart::Call(Box::new(call))];
    let say = |text: &str| vec![PhrasePart::Say(text.to_owned())];
    let list = |backlog: bool| if backlog { "backlog" } else { "active" };
    let tasks = |suffix: &str, list: &str, lead: &str| {
        PhrasePart::Call(Box::new(
            OfflineCall::new(&format!("{id}{suffix}"), "task_list", json!({"list": list, "numbered": true}))
                .with_lead(lead),
        ))
    };
    match command {
        OfflineCommand::Remember { fact, topic } => {
            one(call("remember", json!({"fact": fact, "topic": topic})).with_step(format!("remember: {fact}")))
        }
        OfflineCommand::Stated { .. }
        | OfflineCommand::Did { .. }
        | OfflineCommand::ListAdd { .. }
        | OfflineCommand::ListShow { .. }
        | OfflineCommand::ListTake { .. }
        | OfflineCommand::ListClear { .. } => build_statement_call(id, command, around).map(one).unwrap_or_default(),
        OfflineCommand::Forget { query } => {
            one(call("forget", json!({"fact": query})).with_step(format!("forget: {query}")))
        }
        OfflineCommand::Remind { what, when, missed } => {
            one(call("reminder_set", json!({"text": what, "when": format_time(&when), "missed": missed}))
                .with_step(format!("set a reminder: {what}")))
        }
        OfflineCommand::RemindNear { what, when, missed } => {
            one(call("reminder_set", json!({"text": what, "when": when, "missed": missed}))
                .with_step(format!("set a reminder: {what}")))
        }
        OfflineCommand::RemindersHere => one(call("reminder_move", json!({"reminder": "all", "when": "here"}))
            .with_step("move the reminders to the present time zone".to_owned())),
        OfflineCommand::StopReminder => {
            // A reply names the reminder, regardless of the last one sent.
            let named = around.reminded.filter(|text| around.is_reply && !text.ends_with(" reminders:"));
            let which = named.map_or_else(|| "last".to_owned(), |text| format!("“{text}”"));
            one(call("reminder_done", json!({"reminder": which}))
                .with_step("end the reminder that was just sent".to_owned()))
        }
        OfflineCommand::ListReminders => one(call("reminder_list", json!({})).with_lead("Reminders:")),
        OfflineCommand::TaskAdd { title, backlog, due } => {
            let add = call("task_add", json!({"title": title, "list": list(backlog), "due": due}))
                .with_step(format!("add the task: {title}"));
            let recurs = grammar::recurring_title(&title, around.now);
            let after = recurs.map(|form| format!("Tasks don't repeat on their own. {}", did_you_mean(&form)));
            one(OfflineCall { after, ..add })
        }
        OfflineCommand::TaskList { backlog } => {
            vec![tasks("", list(backlog), if backlog { "Backlog:" } else { "Active tasks:" })]
        }
        OfflineCommand::Know { topic: Some(topic) } => one(call("recall", json!({"query": topic}))),
        OfflineCommand::Know { topic: None } => one(call("recall", json!({})).with_lead("What I remember:")),
        OfflineCommand::Agenda { day } => {
            let lead = match (day.as_str(), day.parse::<NaiveDate>()) {
                ("today", _) => "Today:".to_owned(),
                (_, Ok(date)) => date.format("%A, %-d %B:").to_string(),
                _ => "Tomorrow:".to_owned(),
            };
            let due = call("reminder_list", json!({"day": day})).with_lead(&lead);
            vec![PhrasePart::Call(Box::new(due)), tasks("-t", "active", "Active tasks:")]
        }
        OfflineCommand::Status => vec![
            PhrasePart::Say("I am here, working without an AI model (offline).".to_owned()),
            tasks("-t", "active", "Active tasks:"),
            PhrasePart::Call(Box::new(
                OfflineCall::new(&format!("{id}-r"), "reminder_list", json!({})).with_lead("Reminders:"),
            )),
        ],
        OfflineCommand::Time => say(&format!("It is {}.", around.now.format("%H:%M"))),
        OfflineCommand::Date => say(&format!("It is {}.", around.now.format("%A, %-d %B %Y"))),
        OfflineCommand::Sum { text } => say(&text),
        OfflineCommand::CallYourself { name } => {
            one(call("call_yourself", json!({"name": name})).with_step(format!("take the name {name}")))
        }
        OfflineCommand::Undo => one(call("undo_last", json!({})).with_step("undo the last step".to_owned())),
        OfflineCommand::Help => say(HELP),
        OfflineCommand::Greeting => say("Hello! Say `help` to see what I understand."),
        OfflineCommand::Thanks => say("You're welcome."),
        OfflineCommand::Small(Small::Repeat) => say(around.last_words.unwrap_or("I haven't said anything lately.")),
        OfflineCommand::Small(small) => say(small_talk(small, around)),
        OfflineCommand::AskBack { question, .. } => say(&question),
        // "It" is the reminder just sent.
        OfflineCommand::TaskDone { which: Which::It } if around.reminded.is_some() => say("Well done!"),
        OfflineCommand::Snooze { when } | OfflineCommand::Postpone { which: Which::It, when, .. }
            if around.reminded.is_some() =>
        {
            let what = around.reminded.unwrap_or_default();
            one(call("reminder_set", json!({"text": what, "when": format_time(&when.when)}))
                .with_step(format!("set the reminder again: {what}")))
        }
        OfflineCommand::Snooze { when } => match around.referent {
            Some(Referent { kind: Some(ThingKind::Reminder), text }) => {
                one(build_postpone_call(id, &Which::Text(text.clone()), Some(ThingKind::Reminder), &when))
            }
            _ => say(WHICH_ONE),
        },
        OfflineCommand::TaskDone { .. }
        | OfflineCommand::TaskDrop { .. }
        | OfflineCommand::TaskRename { .. }
        | OfflineCommand::TaskMove { .. }
        | OfflineCommand::CancelReminder { .. }
        | OfflineCommand::Delete { .. }
        | OfflineCommand::Postpone { .. } => match build_change_call(id, command, around.referent) {
            Some(call) => one(call),
            None => say(WHICH_ONE),
        },
    }
}

/// Builds the call for a statement or a list command. `None` for other commands.
fn build_statement_call(id: &str, command: OfflineCommand, around: &MessageContext<'_>) -> Option<OfflineCall> {
    let call = |tool, input| OfflineCall::new(id, tool, input);
    Some(match command {
        OfflineCommand::Stated { fact } => {
            let remember = call("remember_stated", json!({"fact": fact})).with_step(format!("remember: {fact}"));
            let remember = OfflineCall { keep_on_failure: true, ..remember };
            // A task's last day if there is a task of that name, else a fact.
            match grammar::due_day(&fact, around.now) {
                Some((task, day)) => {
                    call("task_update", json!({"task": format!("“{task}”"), "key": "due", "value": day.to_string()}))
                        .with_step(format!("set the last day of the task: {task}"))
                        .or_else(remember)
                }
                None => remember,
            }
        }
        OfflineCommand::Did { task, items, fact } => {
            let form = grammar::remember_form(&fact);
            let otherwise =
                format!("There's no task or shopping item like that, so nothing has changed. {}", did_you_mean(&form));
            let call = call("told_done", json!({"task": task, "items": items, "list": around.list}))
                .with_step(format!("finish: {task}"));
            let is_sure = !fact.is_empty();
            OfflineCall { otherwise: Some(otherwise).filter(|_| is_sure), keep_on_failure: !is_sure, ..call }
        }
        OfflineCommand::ListAdd { list, items } => call("list_add", json!({"list": list, "items": items}))
            .with_step(format!("put on the {}: {}", lower_first(&list), items.join(", "))),
        OfflineCommand::ListShow { list } => {
            let list = list.as_deref().or(around.list).unwrap_or("Shopping list");
            call("list_show", json!({"list": list}))
        }
        OfflineCommand::ListTake { list, items } => call("list_take", json!({"list": list, "items": items}))
            .with_step(format!("take off the {}: {}", lower_first(&list), items.join(", "))),
        OfflineCommand::ListClear { list } => {
            call("list_take", json!({"list": list})).with_step(format!("clear the {}", lower_first(&list)))
        }
        _ => return None,
    })
}

/// Builds the call that changes a task or a reminder. `None` if "it" has no referent of that kind.
fn build_change_call(id: &str, command: OfflineCommand, referent: Option<&Referent>) -> Option<OfflineCall> {
    // The referent is named by its full text, to match nothing else.
    let resolve = |which: Which, wanted: Option<ThingKind>| match which {
        Which::It => {
            let fits = |found: &&Referent| wanted.is_none_or(|kind| found.kind.is_none_or(|is| is == kind));
            let found = referent.filter(fits)?;
            let kind = wanted.or(found.kind);
            let exact = if kind == Some(ThingKind::Task) { Which::Title } else { Which::Text };
            Some((exact(found.text.clone()), kind))
        }
        which => Some((which, wanted)),
    };
    let task = |tool, which: &Which, more: &[(&str, Value)], step: &str| {
        let mut input = serde_json::Map::from_iter([("task".to_owned(), json!(format_which(which)))]);
        input.extend(more.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
        OfflineCall::new(id, tool, Value::Object(input)).with_step(format!("{step} {}", format_which(which)))
    };
    let ended = |which: &Which| {
        OfflineCall::new(id, "reminder_done", json!({"reminder": format_which(which)}))
            .with_step(format!("end the reminder {}", format_which(which)))
    };
    let dropped = |which: &Which| task("task_done", which, &[("dropped", json!(true))], "drop the task");
    Some(match command {
        OfflineCommand::TaskDone { which } => {
            let which = resolve(which, Some(ThingKind::Task))?.0;
            let done = task("task_done", &which, &[], "finish the task");
            match &which {
                Which::Text(item) => done.or_else(build_list_take_call(id, item)),
                Which::Title(title) => done.or_else(
                    OfflineCall::new(id, "told_done", json!({"task": title, "items": [title]}))
                        .with_step(format!("finish: {title}")),
                ),
                _ => done,
            }
        }
        OfflineCommand::TaskDrop { which } => dropped(&resolve(which, Some(ThingKind::Task))?.0),
        OfflineCommand::TaskRename { which, to } => {
            let more = [("key", json!("title")), ("value", json!(to))];
            task("task_update", &resolve(which, Some(ThingKind::Task))?.0, &more, "rename the task")
        }
        OfflineCommand::TaskMove { which, backlog } => {
            let to = json!(if backlog { "backlog" } else { "active" });
            task("task_move", &resolve(which, Some(ThingKind::Task))?.0, &[("to", to)], "move the task")
        }
        OfflineCommand::CancelReminder { which } => ended(&resolve(which, Some(ThingKind::Reminder))?.0),
        OfflineCommand::Delete { which } => match resolve(which, None)? {
            (which, Some(ThingKind::Reminder)) => ended(&which),
            (which, Some(ThingKind::Task)) => dropped(&which),
            (which @ Which::Text(_), None) => {
                dropped(&which).or_else(ended(&which).or_else(build_list_take_call(id, &format_which(&which))))
            }
            (which, None) => dropped(&which).or_else(ended(&which)),
        },
        OfflineCommand::Postpone { which, kind, when } => {
            let (which, kind) = resolve(which, kind)?;
            build_postpone_call(id, &which, kind, &when)
        }
        _ => return None,
    })
}

/// Takes an item off the shopping list, for "cross off milk" if there is no such task.
fn build_list_take_call(id: &str, item: &str) -> OfflineCall {
    OfflineCall::new(id, "list_take", json!({"list": "Shopping list", "items": [item]}))
        .with_step(format!("take off the shopping list: {item}"))
}

fn build_postpone_call(id: &str, which: &Which, kind: Option<ThingKind>, moment: &Moment) -> OfflineCall {
    let input = match moment {
        Moment { by: Some(by), .. } => json!({"reminder": format_which(which), "by": by}),
        Moment { day: Some(day), .. } => json!({"reminder": format_which(which), "when": day.to_string()}),
        Moment { time: Some(time), .. } => {
            json!({"reminder": format_which(which), "when": time.format("%H:%M").to_string()})
        }
        Moment { when, .. } => json!({"reminder": format_which(which), "when": format_time(when)}),
    };
    let reminder =
        OfflineCall::new(id, "reminder_move", input).with_step(format!("move the reminder {}", format_which(which)));
    // A day alone becomes the task's last day.
    let (key, at, said) = match (moment.day, &moment.when) {
        (Some(day), _) => ("due", day.to_string(), String::new()),
        (None, When::At(slot)) => (
            "at",
            slot.civil.format("%Y-%m-%d %H:%M").to_string(),
            format!("I'll remind you of it on {}.", slot.civil.format("%a %-d %b at %H:%M")),
        ),
        (None, When::Every(rule)) => ("at", rule.to_string(), String::new()),
    };
    let task = OfflineCall::new(id, "task_update", json!({"task": format_which(which), "key": key, "value": at}))
        .with_step(format!("postpone the task {}", format_which(which)));
    let task = OfflineCall { after: Some(said), ..task };
    match kind {
        Some(ThingKind::Task) => task,
        Some(ThingKind::Reminder) => reminder,
        None => reminder.or_else(task),
    }
}

/// Composes the answer after the calls. `None` if the message must be kept.
pub(super) fn render_answer(parts: &[PhrasePart], outcomes: &Outcomes) -> Option<String> {
    let mut said = Vec::new();
    for part in parts {
        match part {
            PhrasePart::Say(text) => said.push(text.clone()),
            PhrasePart::Call(call) => match outcomes.get(&call.last_call(outcomes).id) {
                Some((_, true)) | None if call.keep_on_failure => return None,
                Some((told, false)) if call.is_exact && told.ends_with(NEAREST) => return None,
                Some((why, true)) if call.otherwise.is_some() && NOTHING_FOUND.contains(&why.as_str()) => {
                    said.extend(call.otherwise.clone());
                }
                Some((why, true)) => said.push(describe_failure(call, why, outcomes)),
                Some((told, false)) => {
                    let OfflineCall { lead, after, distance_from, .. } = call.last_call(outcomes);
                    let far = distance_from.and_then(|now| grammar::describe_day_distance(told.lines().next()?, now));
                    let told = lead.as_ref().map_or_else(|| told.clone(), |lead| format!("{lead}\n{told}"));
                    let after = after.iter().filter(|after| !after.is_empty());
                    said.push(after.chain(&far).fold(told, |told, after| format!("{told}\n{after}")));
                }
                None => {}
            },
        }
    }
    Some(said.join("\n\n"))
}

/// True if a refusal says that the name is unknown.
fn is_unknown_name(why: &str) -> bool {
    NO_SUCH.iter().any(|beginning| why.starts_with(beginning))
}

/// Lowers the first letter: "shopping list".
fn lower_first(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map(char::to_lowercase).into_iter().flatten().chain(chars.clone()).collect()
}

/// Describes a failed call.
fn describe_failure(call: &OfflineCall, why: &str, outcomes: &Outcomes) -> String {
    let last = call.last_call(outcomes);
    let found_nothing = is_unknown_name(why);
    if found_nothing && last != call {
        let named = ["task", "reminder"].iter().find_map(|key| call.input.get(key)?.as_str()).unwrap_or_default();
        return format!("There's no task or reminder “{}”, so nothing has changed.", named.trim_matches(['“', '”']));
    }
    let choices = match last.input.get("title").and_then(Value::as_str) {
        Some(title) if last.tool == "task_add" && why.contains("are active already") => format!(
            " Say “list tasks” to see them, then “task 3 done”, “delete task 3” or “move task 3 to the backlog”. Or keep the new one for \
             later: “add {title} to the backlog”."
        ),
        _ if last.tool == "task_move" && why.contains("are active already") => {
            " Say “list tasks” to see them, then “task 3 done”, “delete task 3” or “move task 3 to the backlog”."
                .to_owned()
        }
        _ => String::new(),
    };
    let why = complete_sentence(why);
    if found_nothing { why } else { format!("That didn't work. {why}{choices}") }
}

/// Tells the person about kept messages. If all are in the same foreign language, so is the notice.
pub(super) fn render_kept_notice(kept: &[KeptReason]) -> String {
    if let [KeptReason::Foreign(language), rest @ ..] = kept
        && rest.iter().all(|other| *other == KeptReason::Foreign(*language))
    {
        return language.notice().to_owned();
    }
    let (this, of_it, it) = match kept.len() {
        1 => ("this".to_owned(), "", "your message"),
        n => (format!("{n} of these"), " of them", "them"),
    };
    if let [KeptReason::Question] = kept {
        return "You haven't told me that, and I can't look it up without an AI model. I'll keep your question until you add one (`wake \
                init`)."
            .to_owned();
    }
    format!(
        "I can't do {this} without an AI model, so **nothing has been set or saved**{of_it}. I'll keep {it} until you add one \
         (`wake init`). Say `help` to see what I can do meanwhile."
    )
}

/// The reason for keeping a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeptReason {
    /// A question about a fact that isn't stored.
    Question,
    /// A language other than English.
    Foreign(Language),
    /// Beyond the grammar.
    Unclear,
}

impl KeptReason {
    /// Determines the reason for keeping a message.
    pub(super) fn from_text(text: &str) -> Self {
        match (grammar::detect_language(text), grammar::classify_question(text).0) {
            (Some(language), _) => Self::Foreign(language),
            (None, QuestionKind::Fact) => Self::Question,
            (None, _) => Self::Unclear,
        }
    }
}

fn format_which(which: &Which) -> String {
    match which {
        Which::Number(number) => number.to_string(),
        Which::Text(text) => text.clone(),
        Which::Title(title) => format!("“{title}”"),
        Which::It => String::new(),
    }
}

/// Formats a time for `reminder_set`: an instant for a single time, words for a rule.
pub fn format_time(when: &When) -> String {
    match when {
        When::At(slot) => slot.at.to_rfc3339(),
        When::Every(rule) => rule.to_string(),
    }
}

/// Completes a tool's text to a sentence.
fn complete_sentence(told: &str) -> String {
    let mut chars = told.trim().chars();
    let first = chars.next().map(char::to_uppercase).into_iter().flatten();
    let mut text: String = first.chain(chars).collect();
    if !text.ends_with(['.', '!', '?']) {
        text.push('.');
    }
    text
}
