//! Explains each check to a person who has never heard of it.

use super::IDS;

/// Each check's id, subject and importance.
pub const ABOUT: [(&str, &str, &str); IDS.len()] = [
    ("workspace", "The workspace", "Everything is kept in it, and only you may read it."),
    ("disk", "Room on the disk", "Without room nothing that you say can be kept."),
    ("database", "The database", "Messages, reminders, questions and costs stand in it."),
    ("timers", "What wakes me", "Without it I only look when you start me by hand, and reminders come late or never."),
    (
        "path",
        "Programs that I need",
        "What runs without a terminal looks for them in few places, and fails in silence.",
    ),
    ("wakes", "My wakes", "One that fails answers nobody, and the next one meets the same trouble."),
    ("lock", "The wake lock", "It keeps two wakes from working at once. One that is left would stop all of them."),
    ("plans", "Plans", "A wake that was cut off leaves its plan; the next one needs to know."),
    ("cycles", "Work in hand", "Work that was begun and isn't finished keeps its messages waiting."),
    ("approvals", "Questions to you", "What waits for your word isn't done until you give it."),
    ("due", "What is due", "Reminders and tasks that are overdue weren't told in time."),
    ("queue", "Your messages", "What you sent and I haven't answered waits here."),
    ("files", "Files that came with messages", "A message isn't worked on while one of its files is on its way."),
    ("outbox", "My answers", "What I wrote and couldn't send hasn't reached you."),
    ("repository", "The memory's repository", "All that I remember is in it, with its whole history."),
    ("remote", "The memory's copy elsewhere", "If this disk dies, what was pushed is what is left."),
    ("machines", "Other machines", "Where several share the memory, one works at a time, and one bot polls."),
    ("token", "The bot's token", "Without a good one, or while a webhook is set, no message from Telegram arrives."),
    ("telegram", "Telegram", "While it can't be reached, your messages there wait."),
    ("key", "The way to the AI model", "Without it I can only do what needs no model."),
    ("budget", "The budget", "Beyond it no AI model is asked, and messages wait."),
    ("memory", "The documents", "What I can't read as it was meant, I pass over."),
    ("jobs", "Standing jobs", "One whose file isn't understood never runs, and nobody else tells of it."),
    ("search", "Searching", "It is how I find again what you told me."),
    ("sandbox", "The sandbox", "A command that can't be confined asks for your word each time."),
    ("mcp", "Servers with tools", "The tools of a server that can't start are missing."),
    ("clock", "The clock", "Reminders go by it. One that is wrong makes them early, late or double."),
    ("build", "My programs", "New ones that were broken off before they had shown that they work may not."),
];

/// Returns the reason why a check matters.
pub(super) fn why(id: &str) -> Option<&'static str> {
    ABOUT.iter().find(|(of, ..)| *of == id).map(|(_, _, why)| *why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_is_told_of_in_its_order() {
        assert_eq!(ABOUT.map(|(id, ..)| id), IDS);
    }
}
