//! Sentences that are known as a whole: lists, status, help, greetings and thanks.

use chrono::DateTime;
use chrono_tz::Tz;

use super::{Command, Reading, sentence::Sentence};

#[derive(Clone, Copy)]
enum Whole {
    Status,
    Help,
    Reminders,
    Tasks,
    Backlog,
    Greeting,
    Thanks,
}

const WHOLE: &[(&str, Whole)] = &[
    ("?/ status ?report", Whole::Status),
    ("what|what's|show|give ?is ?me ?us ?your|the ?current status", Whole::Status),
    ("?/ help ?me", Whole::Help),
    ("?/ start|commands", Whole::Help),
    ("show ?me ?the help|commands", Whole::Help),
    ("what can you do ?for ?me", Whole::Help),
    ("what can i say|ask ?you", Whole::Help),
    ("what do you understand", Whole::Help),
    ("what commands do you know|understand", Whole::Help),
    ("?my|the ?/ reminders ?list", Whole::Reminders),
    ("list|show ?me ?all ?of ?my|the|your ?open|active|current|set reminders", Whole::Reminders),
    ("what|which ?are ?all ?my|the ?open|active|current reminders", Whole::Reminders),
    ("what|which reminders do i have ?set", Whole::Reminders),
    ("what|which reminders are there|set|active|open", Whole::Reminders),
    ("do i have ?any reminders ?set", Whole::Reminders),
    ("are there ?any reminders ?set", Whole::Reminders),
    ("what will|do you remind me of|about", Whole::Reminders),
    ("?my|the ?/ tasks|todos|to-dos", Whole::Tasks),
    ("?my|the task|todo|to-do list", Whole::Tasks),
    ("list|show|give ?me ?all ?of ?my|the ?open|active|current tasks|todos|to-dos", Whole::Tasks),
    ("list|show|give ?me ?my|the ?open|active|current task|todo|to-do list", Whole::Tasks),
    ("what are ?all ?my|the ?open|active|current tasks|todos|to-dos", Whole::Tasks),
    ("what|which tasks|todos|to-dos do i have", Whole::Tasks),
    ("what|which tasks|todos|to-dos are open|active|there", Whole::Tasks),
    ("do i have ?any ?open tasks|todos|to-dos", Whole::Tasks),
    ("what|what's|whats ?is on my list|plate", Whole::Tasks),
    ("what|what's|whats ?is on my ?task|todo|to-do list", Whole::Tasks),
    ("?my|the backlog", Whole::Backlog),
    ("list|show ?me ?my|the backlog ?tasks", Whole::Backlog),
    ("what|what's|whats ?is in|on ?my|the backlog", Whole::Backlog),
    ("list|show ?me ?my|the|all tasks in ?my|the backlog", Whole::Backlog),
    ("hi|hello|hey|hiya|howdy|moin|greetings ?there|again|you ?, ?reveille", Whole::Greeting),
    ("good morning|afternoon|evening|day|night ?, ?reveille", Whole::Greeting),
    ("how are you ?doing ?today", Whole::Greeting),
    ("?ok|okay|great|perfect|cool|nice|super|many|no ?, thanks|thx|cheers|ty ?a ?lot|so ?much", Whole::Thanks),
    ("?ok|okay|great|perfect|cool|nice|super ?, thank you ?so|very ?much ?, ?reveille", Whole::Thanks),
];

pub(super) fn read(sentence: &Sentence<'_>, _now: DateTime<Tz>) -> Option<Reading> {
    let known = WHOLE.iter().find(|(pattern, _)| sentence.is_all_of(pattern)).map(|(_, known)| *known)?;
    Some(Reading::Command(match known {
        Whole::Status => Command::Status,
        Whole::Help => Command::Help,
        Whole::Reminders => Command::ListReminders,
        Whole::Tasks => Command::TaskList { backlog: false },
        Whole::Backlog => Command::TaskList { backlog: true },
        Whole::Greeting => Command::Greeting,
        Whole::Thanks => Command::Thanks,
    }))
}
