//! `/remind`: lists the reminders, or sets one. The offline grammar reads it and the reminder tool sets it, as in a
//! cycle but without a model.

use reveille_store::{Change, Order, Result};
use reveille_tools::{Chat, Outcome, Registry};

use super::{super::batch::Asked, CommandReply, Desk};
use crate::orders::{self, reminders};

const USAGE: &str = "Say what and when, such as: /remind call Anna tomorrow at 9 · /remind every weekday at 8 stretch";

pub(super) fn answer(desk: &Desk<'_>, asked: &Asked) -> Result<CommandReply> {
    if asked.args.is_empty() || asked.args.eq_ignore_ascii_case("list") {
        let list = call_tool(desk, asked, "reminder_list", "{}")?;
        let text = list.map_or_else(|refusal| refusal.to_string(), |done| done.content);
        return Ok(CommandReply::from_text(format!("{text}\n\n{USAGE}")));
    }
    let local = desk.now.with_timezone(&desk.config.timezone);
    let input = match reminders::read_words(strip_lead(&asked.args), local) {
        Ok(input) => input,
        Err(why) => return Ok(CommandReply::from_text(format!("{why}\n{USAGE}"))),
    };
    Ok(match call_tool(desk, asked, "reminder_set", &input.to_string())? {
        Err(refusal) => CommandReply::from_text(refusal.to_string()),
        Ok(done) => {
            // A chat that has stopped itself still gets its reminders.
            let later = if desk.stopped.is_some() { " (I'm stopped, so I'll send it after /resume.)" } else { "" };
            let text = format!("{}{later}", done.content);
            let order = done.changes.into_iter().find_map(|change| match change {
                Change::AddReminder(reminder) => Some(Order::Remind(reminder)),
                _ => None,
            });
            CommandReply { text, order }
        }
    })
}

/// Removes the leading "me" of "/remind me to …".
fn strip_lead(args: &str) -> &str {
    match args.split_once(char::is_whitespace) {
        Some((me, rest)) if me.eq_ignore_ascii_case("me") => rest.trim_start(),
        _ => args,
    }
}

/// Calls a reminder tool outside of any cycle.
fn call_tool(desk: &Desk<'_>, asked: &Asked, tool: &str, input: &str) -> Result<Outcome> {
    let message = &asked.message;
    let chat = Chat { id: message.chat, thread_id: message.thread_id, reply_to: None };
    let world = orders::build_world(desk.config, desk.store, desk.now, chat)?;
    Ok(Registry::for_offline_model().call(tool, input, &world))
}
