//! `/rules`: lists the rules of `policy.toml`; `/rules remove 2` removes a rule that a button has added.

use reveille_base::types::ChatRef;
use reveille_cycle::standing;
use reveille_store::Order;

use super::{super::batch::Asked, CommandReply, Desk};

pub(super) fn answer(desk: &Desk<'_>, asked: &Asked) -> CommandReply {
    let chat = asked.message.chat;
    if !desk.is_owners(chat) || chat.is_group() && chat != ChatRef::TERMINAL {
        return CommandReply::from_text("Only my owner can see and change the rules, in our private chat.");
    }
    let rules = match standing::list_rules(desk.config) {
        Ok(rules) => rules,
        Err(error) => {
            return CommandReply::from_text(format!("{error}. Until that's fixed, I'll ask before everything."));
        }
    };
    let mut words = asked.args.split_whitespace();
    let (verb, number) = (words.next().unwrap_or("list").to_lowercase(), words.next());
    match (verb.as_str(), number.and_then(|number| number.trim_start_matches('#').parse().ok())) {
        ("remove" | "delete", Some(number)) => match standing::find_removable(&rules, number) {
            Ok(rule) => {
                CommandReply::with_order(format!("Removing rule {number}."), Order::RemoveRule(rule.to_owned()))
            }
            Err(why) => CommandReply::from_text(format!("{why} /rules lists them.")),
        },
        ("list", _) => CommandReply::from_text(match standing::render_rules(&rules) {
            Some(list) => format!("{list}\n\nTo remove a rule that I added, send `/rules remove` and its number."),
            None => "There are no rules. “Always allow this” under a question adds one.".to_owned(),
        }),
        _ => CommandReply::from_text("Send /rules to list them, or `/rules remove 1` to remove one."),
    }
}
