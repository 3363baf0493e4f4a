//! Reminders by a person's own order: set, ended, put off. They are rows, so no wake stands in the way.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use reveille_base::{redact::Redactor, schedule::is_distance, types::ChatRef, zone::Tz};
use reveille_config::Config;
use reveille_model::offline::{
    grammar::{self, OfflineCommand, ParsedMessage},
    time,
};
use reveille_store::{Change, NewReminder, Order, Reminder, Store, StoreError};
use reveille_tools::{Chat, Done, REMINDER_HERE as HERE_AND_NOW, Registry};

use super::{OrderError, world};

/// What is ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReminderOrder<'a> {
    /// A reminder is set, at the terminal.
    Set {
        /// What of; without `at` also when, in one sentence.
        text: &'a str,
        /// When.
        at: Option<&'a str>,
    },
    /// One is ended.
    End {
        /// Its number, or words that only it has.
        which: &'a str,
    },
    /// Those that keep the time of another zone come at the same hour here.
    Here,
    /// One is put off; one that has just come is set anew.
    Snooze {
        /// See [`ReminderOrder::End`].
        which: &'a str,
        /// Until when; or how long, counted from its time, or from now if that has passed.
        until: &'a str,
    },
}

/// A reminder as JSON. The names are relied on.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ListedReminder {
    /// Its number.
    pub id: i64,
    /// What it says.
    pub text: String,
    /// When it comes next.
    pub next_at: DateTime<Utc>,
    /// The same on the person's wall.
    pub local: String,
    /// How it recurs, in words; none: once.
    pub every: Option<String>,
    /// Whom it reminds.
    #[serde(rename = "chat_id")]
    pub chat: ChatRef,
}

impl ListedReminder {
    /// Of a row.
    pub fn of(reminder: &Reminder, tz: Tz) -> Self {
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

/// Reads what and when of one sentence, as the arguments of the tool that sets a reminder.
///
/// # Errors
/// What to tell who said it.
pub fn read_words(said: &str, now: DateTime<Tz>) -> Result<Value, String> {
    match grammar::parse(&format!("remind me {said}"), now) {
        ParsedMessage::Commands(commands) => match commands.as_slice() {
            [OfflineCommand::Remind { what, when, missed }] => {
                Ok(json!({"text": what, "when": time(when), "missed": missed}))
            }
            [OfflineCommand::RemindNear { what, when, missed }] => {
                Ok(json!({"text": what, "when": when, "missed": missed}))
            }
            [OfflineCommand::AskBack { question, .. }] => Err(question.clone()),
            _ => Err("I read more than one thing in that, and set nothing.".to_owned()),
        },
        _ => Err("I didn't understand that, and set nothing.".to_owned()),
    }
}

/// The chat of the person who sits here.
const HERE: Chat = Chat { id: ChatRef::TERMINAL, thread_id: None, reply_to: None };

/// All that are active, as they are listed at the terminal.
pub fn list(store: &Store, config: &Config, now: DateTime<Utc>) -> Result<String, OrderError> {
    let world = world(config, store, now, HERE)?;
    let done = Registry::offline().call("reminder_list", "{}", &world);
    Ok(done.map_err(|refusal| OrderError::refused(&refusal))?.content)
}

/// Carries it out; says what came of it.
pub fn carry_out(
    store: &mut Store,
    config: &Config,
    redactor: &Redactor,
    now: DateTime<Utc>,
    order: ReminderOrder<'_>,
) -> Result<String, OrderError> {
    let done = call(store, config, now, order)?;
    let fit = |reminder: NewReminder| NewReminder { text: redactor.redact(&reminder.text), ..reminder };
    let mut orders: Vec<Order> = Vec::new();
    for change in done.changes {
        match change {
            Change::EndReminder { id } => orders.push(Order::EndReminder { id, to: None }),
            // What is set right after one has ended is in its place.
            Change::AddReminder(reminder) => match orders.last_mut() {
                Some(Order::EndReminder { to: to @ None, .. }) => *to = Some(fit(reminder)),
                _ => orders.push(Order::Remind(fit(reminder))),
            },
            _ => {}
        }
    }
    if orders.is_empty() {
        return Ok(done.content);
    }
    for order in &orders {
        store.order(order, now)?;
    }
    Ok(redactor.redact(&done.content))
}

fn call(store: &Store, config: &Config, now: DateTime<Utc>, order: ReminderOrder<'_>) -> Result<Done, OrderError> {
    let mut world = world(config, store, now, HERE)?;
    let local = world.local();
    let called = |tool: &str, input: Value, world: &reveille_tools::World| match Registry::offline().call(
        tool,
        &input.to_string(),
        world,
    ) {
        Ok(done) if done.is_failure => Err(OrderError::Refused(done.content)),
        Ok(done) => Ok(done),
        Err(refusal) => Err(OrderError::refused(&refusal)),
    };
    match order {
        ReminderOrder::Set { text, at } => {
            let input = match at {
                Some(at) => json!({"text": text, "when": at}),
                None => read_words(text, local).map_err(|why| {
                    OrderError::Refused(format!("{why} Type it such as: wake remind \"call Anna\" --at \"tomorrow 9\""))
                })?,
            };
            match at {
                Some(at) => in_words(at, |when| called("reminder_set", json!({"text": text, "when": when}), &world)),
                None => called("reminder_set", input, &world),
            }
        }
        ReminderOrder::Here => called("reminder_move", json!({"reminder": "all", "when": HERE_AND_NOW}), &world),
        ReminderOrder::End { which } => called("reminder_done", json!({"reminder": which}), &world),
        ReminderOrder::Snooze { which, until } => {
            let number = which.trim_start_matches('#').parse::<i64>().ok();
            if let Some(gone) = number.map(|id| store.past_reminder(id)).transpose()?.flatten() {
                world.reminders.push(gone);
            }
            if is_distance(until) {
                return called("reminder_move", json!({"reminder": which, "by": until}), &world);
            }
            in_words(until, |when| called("reminder_move", json!({"reminder": which, "when": when}), &world))
        }
    }
}

/// Tries a time as it is, and as a distance: "20min" is said for "in 20min".
fn in_words(when: &str, act: impl Fn(String) -> Result<Done, OrderError>) -> Result<Done, OrderError> {
    match act(when.to_owned()) {
        Err(OrderError::Refused(why)) => act(format!("in {when}")).map_err(|_| OrderError::Refused(why)),
        done => done,
    }
}

/// The reminders that are active, for JSON.
pub fn listed(store: &Store, tz: Tz) -> Result<Vec<ListedReminder>, StoreError> {
    Ok(store.reminders()?.iter().map(|reminder| ListedReminder::of(reminder, tz)).collect())
}
