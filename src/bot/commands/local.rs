//! `/local [off]`: restricts this chat to models on this machine, or lifts the restriction. The answer names the limits.

use reveille_base::words;
use reveille_config::{Config, OFFLINE_MODEL};
use reveille_store::Order;

use super::{super::batch::Asked, CommandReply, Desk};

/// The argument that lifts the restriction.
const OFF: &str = "off";
/// The limits of the restriction.
const BOUNDS: &str = "What was already sent can't be unsent. What I write down from here (facts, tasks, the log) \
                      goes into the memory, which cloud models see in other chats. A web search still sends its \
                      words out.";

pub(super) fn answer(desk: &Desk<'_>, asked: &Asked) -> CommandReply {
    let is_kept = desk.local_chats.contains(&asked.message.chat);
    let is_owners = desk.is_owners(asked.message.chat);
    match (asked.args.trim_matches('`'), is_kept) {
        ("", true) => CommandReply::from_text(format!(
            "This chat is kept off the cloud. {} To end this, send /local off.\n\n{BOUNDS}",
            who_answers(desk.config)
        )),
        ("", false) => {
            let own_work = if is_owners { " So is everything I do for you unasked." } else { "" };
            CommandReply::with_order(
                format!(
                    "This chat is now kept off the cloud, until you send /local off.{own_work} {}\n\n{BOUNDS}",
                    who_answers(desk.config)
                ),
                Order::KeepLocal { is_kept: true },
            )
        }
        (OFF, true) => CommandReply::with_order(
            "Cloud models may answer in this chat again, and they'll see what was said here in the meantime. Send \
             /new to leave that out of what a model sees first.",
            Order::KeepLocal { is_kept: false },
        ),
        (OFF, false) => CommandReply::from_text("This chat isn't kept off the cloud. Nothing was changed."),
        _ => CommandReply::from_text(
            "I didn't understand that, so nothing was changed. /local keeps this chat off the cloud; /local off ends that.",
        ),
    }
}

/// Names the local models that answer, or explains what happens to messages without one.
fn who_answers(config: &Config) -> String {
    let here: Vec<String> = config
        .list_usable_models()
        .into_iter()
        .filter(|name| *name != OFFLINE_MODEL && config.is_local(name))
        .map(|name| format!("`{name}`"))
        .collect();
    if here.is_empty() {
        return "But **no AI model is set up on this machine**, so I only answer the plain sentences that I \
                understand without one (reminders, tasks, facts). I'll keep the rest until you send /local off or \
                add a model here: install Ollama, then set MODEL=openai:NAME and \
                OPENAI_BASE_URL=http://127.0.0.1:11434/v1 (`wake init` helps)."
            .to_owned();
    }
    format!(
        "Only {} on this machine answers here. While it's unavailable, I answer plain sentences and keep the rest.",
        words::join_alternatives(&here)
    )
}
