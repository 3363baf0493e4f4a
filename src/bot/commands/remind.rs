//! `/remind`: lists the reminders; with words, sets one. It is read by the offline grammar and set by the reminder tool, as if a
//! cycle had done it, but no model is asked.

use std::rc::Rc;

use serde_json::json;

use super::{super::batch::Asked, CommandReply, Desk};
use crate::{
    embed::Meaning,
    index::IndexPlace,
    mcp::client::{self, settings::Settings},
    model::offline::{
        grammar::{self, OfflineCommand, ParsedMessage},
        time,
    },
    policy::Rules,
    store::{Change, Order, Result},
    tool::{Attachments, Chat, Documents, Outcome, Registry, Unwoken, World},
};

/// How it is used.
const USAGE: &str = "Say what and when, such as: /remind call Anna tomorrow at 9 · /remind every weekday at 8 stretch";

pub(super) fn answer(desk: &Desk<'_>, asked: &Asked) -> Result<CommandReply> {
    if asked.args.is_empty() || asked.args.eq_ignore_ascii_case("list") {
        let list = call(desk, asked, "reminder_list", "{}")?;
        let text = list.map_or_else(|refusal| refusal.0, |done| done.content);
        return Ok(CommandReply::says(format!("{text}\n\n{USAGE}")));
    }
    let local = desk.now.with_timezone(&desk.config.timezone);
    let said = strip_lead(&asked.args);
    let input = match grammar::parse(&format!("remind me {said}"), local) {
        ParsedMessage::Commands(commands) => match commands.as_slice() {
            [OfflineCommand::Remind { what, when, missed }] => {
                json!({"text": what, "when": time(when), "missed": missed})
            }
            [OfflineCommand::AskBack { question, .. }] => {
                return Ok(CommandReply::says(format!("{question}\n{USAGE}")));
            }
            _ => {
                return Ok(CommandReply::says(format!("I read more than one thing in that, and set nothing. {USAGE}")));
            }
        },
        _ => return Ok(CommandReply::says(format!("I didn't understand that, and set nothing. {USAGE}"))),
    };
    Ok(match call(desk, asked, "reminder_set", &input.to_string())? {
        Err(refusal) => CommandReply::says(refusal.0),
        Ok(done) => {
            // Who has stopped their own chat is reminded all the same.
            let later = if desk.stopped.is_some() { " (I'm stopped: it's sent after /resume)" } else { "" };
            let text = format!("{}{later}", done.content);
            let order = done.changes.into_iter().find_map(|change| match change {
                Change::AddReminder(reminder) => Some(Order::Remind(reminder)),
                _ => None,
            });
            CommandReply { text, order }
        }
    })
}

/// "/remind me to …" is said as well.
fn strip_lead(args: &str) -> &str {
    match args.split_once(char::is_whitespace) {
        Some((me, rest)) if me.eq_ignore_ascii_case("me") => rest.trim_start(),
        _ => args,
    }
}

/// Calls a tool of reminders in a world that has nothing else.
fn call(desk: &Desk<'_>, asked: &Asked, tool: &str, input: &str) -> Result<Outcome> {
    let (config, message) = (desk.config, &asked.message);
    let world = World {
        wake_id: String::new(),
        model: String::new(),
        autonomy: config.autonomy,
        rules: Rules::default(),
        reflecting: None,
        taint: None,
        exchanges: Vec::new(),
        shelter: Rc::new(client::shelter(config, &Rules::default(), &Settings::of(config))),
        catalogue: Rc::default(),
        now: desk.now,
        tz: config.timezone,
        chat: Some(Chat { id: message.chat, thread_id: message.thread_id, reply_to: None }),
        open_messages: Vec::new(),
        replies: 0,
        owner_chat: config.owner_chat,
        told_keys: std::collections::BTreeSet::new(),
        told_today: 0,
        tell_per_day: config.tell_per_day,
        quiet_hours: config.quiet_hours,
        reminders: desk.store.reminders()?,
        unwoken: Unwoken::default(),
        documents: Documents::new(&config.repo_dir(), Vec::new()),
        index: IndexPlace::of(config),
        meaning: Meaning::default(),
        skills: Vec::new(),
        attachments: Attachments::default(),
        undoable: Vec::new(),
        last_undoable: None,
        shown_tasks: Vec::new(),
    };
    Ok(Registry::offline().call(tool, input, &world))
}
