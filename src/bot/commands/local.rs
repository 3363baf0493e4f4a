//! `/local [off]`: restricts this chat to models on this machine, or lifts the restriction. The answer names the limits.

use reveille_base::words;
use reveille_config::{Config, OFFLINE_MODEL};
use reveille_store::Order;

use super::{super::batch::Asked, CommandReply, Desk};

/// The argument that lifts the restriction.
const OFF: &str = "off";
/// The limits of the restriction.
const BOUNDS: &str = "What was sent before can't be taken back. What I write down from here (facts, tasks, the log) is in the memory \
                      that cloud models see in other chats, and a web search still carries its words out.";

pub(super) fn answer(desk: &Desk<'_>, asked: &Asked) -> CommandReply {
    let is_kept = desk.local_chats.contains(&asked.message.chat);
    let is_owners = desk.is_owners(asked.message.chat);
    match (asked.args.trim_matches('`'), is_kept) {
        ("", true) => CommandReply::says(format!(
            "This chat is kept off the cloud. {} /local off lifts that.\n\n{BOUNDS}",
            who_answers(desk.config)
        )),
        ("", false) => {
            let own_work = if is_owners { " So is what I do for you unasked." } else { "" };
            CommandReply::orders(
                format!(
                    "From now on this chat is kept off the cloud, until /local off.{own_work} {}\n\n{BOUNDS}",
                    who_answers(desk.config)
                ),
                Order::KeepLocal { is_kept: true },
            )
        }
        (OFF, true) => CommandReply::orders(
            "This chat may go to a cloud model again, with what was said here meanwhile. /new leaves that out of what a model is shown \
             first.",
            Order::KeepLocal { is_kept: false },
        ),
        (OFF, false) => CommandReply::says("This chat isn't kept off the cloud. Nothing was changed."),
        _ => CommandReply::says(
            "/local keeps this chat off the cloud, /local off lifts that. I don't know what else you wrote. Nothing was changed.",
        ),
    }
}

/// Names the local models that answer, or explains what happens to messages without one.
fn who_answers(config: &Config) -> String {
    let here: Vec<String> = config
        .chain()
        .into_iter()
        .filter(|name| *name != OFFLINE_MODEL && config.is_local(name))
        .map(|name| format!("`{name}`"))
        .collect();
    if here.is_empty() {
        return "But **no AI model on this machine is set up**: I answer only the plain sentences that I understand without one \
                (reminders, tasks, facts). The rest is kept until /local off, or until you add a model here: install Ollama, set \
                MODEL=openai:NAME and OPENAI_BASE_URL=http://127.0.0.1:11434/v1 (`wake init` helps)."
            .to_owned();
    }
    format!(
        "Only {} on this machine answers here; while it can't be asked, plain sentences are understood and the rest is kept.",
        words::or(&here)
    )
}
