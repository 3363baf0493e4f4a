//! `/help` and `/start`: the list of commands, and corrections of mistyped ones.

use reveille_channels::telegram::Command;
use reveille_config::{Config, OFFLINE_MODEL};
use reveille_model::offline;

/// Tells guests where their messages are kept.
const KEPT_FOR_THE_OWNER: &str =
    "I am somebody's assistant. What is said to me here is kept in their memory, and they can be told of it.";

/// Renders the help. `is_owners` is `true` in the owner's chat.
pub(super) fn text(config: &Config, is_owners: bool) -> String {
    let say = if config.effective_model() == OFFLINE_MODEL {
        offline::HELP
    } else {
        "Just write to me: ask, or tell me what to remember, what to remind you of and when, what you are working on. I answer, \
         and write down what I did."
    };
    let lines: Vec<String> = Command::ALL
        .into_iter()
        .filter(|command| is_owners || !command.is_owners())
        .filter_map(|command| Some(format!("/{}: {}", command.name(), command.description()?)))
        .collect();
    let whose = if is_owners { String::new() } else { format!("\n\n{KEPT_FOR_THE_OWNER}") };
    format!("{say}{whose}\n\nThese are answered at once, even while I work:\n{}", lines.join("\n"))
}

pub(super) fn did_you_mean(text: &str, meant: &str) -> String {
    let said = super::brief(text.split_whitespace().next().unwrap_or_default(), 32);
    format!(
        "I don't know {said}. Did you mean /{meant}? /help lists what I know; without the slash I take it as a message."
    )
}
