//! Explains each check to a person who has never heard of it.

use super::IDS;

/// Each check's id, its subject, and why it matters.
pub const ABOUT: [(&str, &str, &str); IDS.len()] = [
    ("workspace", "The workspace", "All my files are in it, and only you should be able to read it."),
    ("disk", "Disk space", "Without free space I can't save your messages."),
    ("database", "The database", "It holds messages, reminders, questions and costs."),
    (
        "timers",
        "Automatic wakes",
        "Without them I only run when you start me by hand, so reminders come late or never.",
    ),
    ("path", "Programs I need", "Without a terminal, I look for them in only a few places, and may fail silently."),
    ("wakes", "My wakes", "A failed wake answers nobody, and the next one hits the same problem."),
    ("lock", "The wake lock", "It keeps two wakes from running at once. A stale lock would block every wake."),
    ("plans", "Plans", "A wake that was cut off leaves its plan behind for the next one."),
    ("cycles", "Unfinished work", "Messages wait while their work is unfinished."),
    ("approvals", "Questions for you", "I won't act on these until you answer."),
    ("due", "What is due", "Overdue reminders and tasks haven't reached you in time."),
    ("queue", "Your messages", "Messages I haven't answered yet wait here."),
    ("files", "Attached files", "I can't start on a message until its files are ready."),
    ("outbox", "My answers", "Answers I couldn't send haven't reached you."),
    ("repository", "The memory's repository", "Everything I remember is in it, with its full history."),
    ("remote", "The memory's remote copy", "If this disk fails, only what was pushed survives."),
    ("machines", "Other machines", "When several share the memory, one works at a time, and one bot polls."),
    ("token", "The bot's token", "Without a valid token, or while a webhook is set, no Telegram messages arrive."),
    ("telegram", "Telegram", "While I can't reach it, your messages there wait."),
    ("key", "Access to the AI model", "Without it I can only do what needs no AI model."),
    ("budget", "The budget", "Once it is spent, I ask no AI model and messages wait."),
    ("memory", "The documents", "I skip parts that I can't understand."),
    ("jobs", "Standing jobs", "A job whose file I can't understand never runs, and nothing else reports it."),
    ("search", "Searching", "It is how I find what you told me."),
    ("sandbox", "The sandbox", "If I can't confine a command, I have to ask you each time."),
    ("mcp", "Tool servers (MCP)", "If a server can't start, its tools are missing."),
    ("clock", "The clock", "Reminders depend on it. A wrong clock makes them early, late or repeated."),
    ("build", "My programs", "An interrupted upgrade may have left programs that don't work."),
];

/// Returns the reason why a check matters.
pub(super) fn find_reason(id: &str) -> Option<&'static str> {
    ABOUT.iter().find(|(known, ..)| *known == id).map(|(_, _, why)| *why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_is_explained_in_its_order() {
        assert_eq!(ABOUT.map(|(id, ..)| id), IDS);
    }
}
