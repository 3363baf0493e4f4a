//! `/help` and `/start`: the list of commands, and corrections of mistyped ones.

use reveille_channels::telegram::Command;
use reveille_config::{Config, OFFLINE_MODEL};
use reveille_model::offline;

/// Tells guests where their messages are kept.
const KEPT_FOR_THE_OWNER: &str =
    "I'm somebody's assistant. I keep what you say here in their memory, and may tell them about it.";

/// Renders the help. `is_owners` is `true` in the owner's chat.
pub(super) fn render_help(config: &Config, is_owners: bool) -> String {
    let intro = if config.effective_model() == OFFLINE_MODEL {
        offline::HELP
    } else {
        "Just write to me: ask something, or tell me what to remember, when to remind you, or what you're working \
         on. I'll answer, and write down what I did."
    };
    let lines: Vec<String> = Command::ALL
        .into_iter()
        .filter(|command| is_owners || !command.is_owners())
        .filter_map(|command| Some(format!("/{}: {}", command.name(), command.description()?)))
        .collect();
    let guest_notice = if is_owners { String::new() } else { format!("\n\n{KEPT_FOR_THE_OWNER}") };
    format!("{intro}{guest_notice}\n\nI answer these at once, even while I'm working:\n{}", lines.join("\n"))
}

pub(super) fn did_you_mean(text: &str, meant: &str) -> String {
    let said = super::shorten_to_line(text.split_whitespace().next().unwrap_or_default(), 32);
    format!(
        "I don't know {said}. Did you mean /{meant}? /help lists the commands. If it's a message, send it without the slash."
    )
}
