//! Orders about reminders without a model: set, end and snooze them. They are rows, so a running wake is no obstacle.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use reveille_base::{redact::Redactor, schedule::is_distance, types::ChatRef, zone::Tz};
use reveille_config::Config;
use reveille_model::offline::{
    format_time,
    grammar::{self, OfflineCommand, ParsedMessage},
};
use reveille_store::{Change, NewReminder, Order, Reminder, Store, StoreError};
use reveille_tools::{Chat, Done, REMINDER_HERE, Registry, World};

use super::{OrderError, build_world};

/// Maximum characters of a reminder's text, as for the tool that sets one.
const MAX_TEXT_CHARS: usize = 1_000;

/// An order about reminders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReminderOrder<'a> {
    /// Set a reminder for the terminal.
    Set {
        /// The text; without `at` it contains the time too.
        text: &'a str,
        /// The time.
        at: Option<&'a str>,
    },
    /// End a reminder.
    End {
        /// The number, or words that only this reminder contains.
        which: &'a str,
    },
    /// Change a reminder's text, its time, or both.
    Change {
        /// Its number.
        which: i64,
        /// The new text.
        text: Option<&'a str>,
        /// The new time; a day alone keeps the hour, an hour alone the day.
        at: Option<&'a str>,
    },
    /// Move reminders in another time zone to the same hour here.
    Here,
    /// Snooze a reminder; one that was just sent is set again.
    Snooze {
        /// See [`ReminderOrder::End`].
        which: &'a str,
        /// The new time; or a duration, counted from its time or from now if that has passed.
        until: &'a str,
    },
}

/// A listed reminder. Scripts rely on the JSON names.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ListedReminder {
    /// The number.
    pub id: i64,
    /// The text.
    pub text: String,
    /// Time of the next occurrence.
    pub next_at: DateTime<Utc>,
    /// The same as local time.
    pub local: String,
    /// The recurrence in words. `None` if it occurs once.
    pub every: Option<String>,
    /// The chat to remind.
    #[serde(rename = "chat_id")]
    pub chat: ChatRef,
}

impl ListedReminder {
    /// Converts a row.
    pub fn from_reminder(reminder: &Reminder, tz: Tz) -> Self {
        let rule = reminder.what.rule.as_ref();
        let wall = reminder.next().wall_time(rule, reminder.zone(tz));
        Self {
            id: reminder.id,
            text: reminder.what.text.clone(),
            next_at: reminder.what.next_at,
            local: wall.format("%Y-%m-%d %H:%M").to_string(),
            every: rule.map(ToString::to_string),
            chat: reminder.what.chat,
        }
    }
}

/// Reads text and time from a sentence, as arguments for the tool that sets a reminder.
///
/// # Errors
/// An explanation for the person.
pub fn read_words(said: &str, now: DateTime<Tz>) -> Result<Value, String> {
    match grammar::parse(&format!("remind me {said}"), now) {
        ParsedMessage::Commands(commands) => match commands.as_slice() {
            [OfflineCommand::Remind { what, when, missed }] => {
                Ok(json!({"text": what, "when": format_time(when), "missed": missed}))
            }
            [OfflineCommand::RemindNear { what, when, missed }] => {
                Ok(json!({"text": what, "when": when, "missed": missed}))
            }
            [OfflineCommand::AskBack { question, .. }] => Err(question.clone()),
            _ => Err("That could mean more than one thing, so nothing was set.".to_owned()),
        },
        _ => Err("I didn't understand that, so nothing was set.".to_owned()),
    }
}

/// The chat of the person at this terminal.
const HERE: Chat = Chat { id: ChatRef::TERMINAL, thread_id: None, reply_to: None };

/// Renders the active reminders for the terminal.
pub fn render_list(store: &Store, config: &Config, now: DateTime<Utc>) -> Result<String, OrderError> {
    let world = build_world(config, store, now, HERE)?;
    let done = Registry::for_offline_model().call("reminder_list", "{}", &world);
    Ok(done?.content)
}

/// Carries out an order and returns the confirmation.
pub fn carry_out(
    store: &mut Store,
    config: &Config,
    redactor: &Redactor,
    now: DateTime<Utc>,
    order: ReminderOrder<'_>,
) -> Result<String, OrderError> {
    let done = call_tool(store, config, now, order)?;
    let redacted = |reminder: NewReminder| NewReminder { text: redactor.redact(&reminder.text), ..reminder };
    let mut orders: Vec<Order> = Vec::new();
    for change in done.changes {
        match change {
            Change::EndReminder { id } => orders.push(Order::EndReminder { id, to: None }),
            // A reminder set right after an ended one replaces it.
            Change::AddReminder(reminder) => match orders.last_mut() {
                Some(Order::EndReminder { to: to @ None, .. }) => *to = Some(redacted(reminder)),
                _ => orders.push(Order::Remind(redacted(reminder))),
            },
            _ => {}
        }
    }
    if orders.is_empty() {
        return Ok(done.content);
    }
    for order in &orders {
        store.inbox_mut().carry_out_order(order, now)?;
    }
    Ok(redactor.redact(&done.content))
}

fn call_tool(store: &Store, config: &Config, now: DateTime<Utc>, order: ReminderOrder<'_>) -> Result<Done, OrderError> {
    let mut world = build_world(config, store, now, HERE)?;
    let local = world.local_time();
    let call = |tool: &str, input: Value, world: &World| match Registry::for_offline_model().call(
        tool,
        &input.to_string(),
        world,
    ) {
        Ok(done) if done.is_failure => Err(OrderError::Refused(done.content)),
        Ok(done) => Ok(done),
        Err(refusal) => Err(refusal.into()),
    };
    match order {
        ReminderOrder::Set { text, at } => {
            let input = match at {
                Some(at) => json!({"text": text, "when": at}),
                None => read_words(text, local).map_err(|why| {
                    OrderError::Refused(format!(
                        "{why} Type it like this: wake remind \"call Anna\" --at \"tomorrow 9\""
                    ))
                })?,
            };
            match at {
                Some(at) => {
                    retry_as_duration(at, |when| call("reminder_set", json!({"text": text, "when": when}), &world))
                }
                None => call("reminder_set", input, &world),
            }
        }
        ReminderOrder::Here => call("reminder_move", json!({"reminder": "all", "when": REMINDER_HERE}), &world),
        ReminderOrder::Change { which, text, at } => {
            let moved = match at {
                Some(at) => {
                    let move_to =
                        |when| call("reminder_move", json!({"reminder": which.to_string(), "when": when}), &world);
                    Some(retry_as_duration(at, move_to)?)
                }
                None => None,
            };
            match text {
                Some(text) => reword(which, text, moved, &world),
                None => Ok(moved.unwrap_or_default()),
            }
        }
        ReminderOrder::End { which } => call("reminder_done", json!({"reminder": which}), &world),
        ReminderOrder::Snooze { which, until } => {
            let number = which.trim_start_matches('#').parse::<i64>().ok();
            if let Some(gone) = number.map(|id| store.reminders().past_reminder(id)).transpose()?.flatten() {
                world.memory.reminders.push(gone);
            }
            if is_distance(until) {
                return call("reminder_move", json!({"reminder": which, "by": until}), &world);
            }
            retry_as_duration(until, |when| call("reminder_move", json!({"reminder": which, "when": when}), &world))
        }
    }
}

/// Gives a reminder another text, and the time to which `moved` has moved it.
fn reword(id: i64, text: &str, moved: Option<Done>, world: &World) -> Result<Done, OrderError> {
    let refuse = |why: String| Err(OrderError::Refused(format!("{why} Nothing was changed.")));
    if text.chars().count() > MAX_TEXT_CHARS {
        return refuse(format!("A reminder's text has at most {MAX_TEXT_CHARS} characters."));
    }
    let Some(old) = world.memory.reminders.iter().find(|reminder| reminder.id == id) else {
        return refuse(format!("There's no reminder {id}."));
    };
    let reworded = |what: &NewReminder| Change::AddReminder(NewReminder { text: text.to_owned(), ..what.clone() });
    let Some(moved) = moved else {
        let content = format!("Changed: {text}");
        let changes = vec![Change::EndReminder { id }, reworded(&old.what)];
        return Ok(Done { content, changes, ..Done::default() });
    };
    let changes = moved.changes.iter().map(|change| match change {
        Change::AddReminder(what) => reworded(what),
        other => other.clone(),
    });
    let content = moved.content.replacen(&old.what.text, text, 1);
    Ok(Done { changes: changes.collect(), content, ..moved })
}

/// Tries a time as typed, and then as a duration, since people say "20min" for "in 20min".
fn retry_as_duration(when: &str, act: impl Fn(String) -> Result<Done, OrderError>) -> Result<Done, OrderError> {
    match act(when.to_owned()) {
        Err(OrderError::Refused(why)) => act(format!("in {when}")).map_err(|_| OrderError::Refused(why)),
        done => done,
    }
}

/// Lists the active reminders for JSON.
pub fn list_active(store: &Store, tz: Tz) -> Result<Vec<ListedReminder>, StoreError> {
    Ok(store.reminders().list_reminders()?.iter().map(|reminder| ListedReminder::from_reminder(reminder, tz)).collect())
}
