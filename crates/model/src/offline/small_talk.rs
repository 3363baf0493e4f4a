//! Answers to small talk and to questions about the assistant.

use super::{grammar::Small, phrase::MessageContext};

/// The answer to a "yes" or "it" without a referent.
const YES_TO_WHAT: &str = "I'm not sure what you're saying yes to. Nothing has been set or saved.";

/// Returns the answer to small talk.
pub(super) fn small_talk(small: Small, around: &MessageContext<'_>) -> &'static str {
    match small {
        Small::Ok => "Good.",
        Small::Yes => YES_TO_WHAT,
        Small::No | Small::NeverMind if around.was_asked => "All right, then nothing has been set or saved.",
        Small::No => "All right.",
        Small::Bye => "Bye! Talk soon.",
        Small::Night => "Good night, sleep well.",
        Small::Sorry => "No worries.",
        Small::NeverMind => "All right, never mind. I haven't changed anything.",
        Small::Emoji => "🙂",
        Small::Here => "I'm here. I work without an AI model right now; `help` shows what I understand.",
        Small::Fine => "I'm fine, thank you. What can I do for you?",
        Small::Who => {
            "I'm Reveille, your personal assistant: a program, working without an AI model right now. `help` shows what I understand."
        }
        Small::Stop => {
            "Nothing else is running. To keep me from doing anything, send `/stop`. To let me continue, send `/resume`."
        }
        Small::Sympathy => "I'm sorry to hear that. I hope it gets better soon.",
        Small::Glad => "I'm glad to hear that!",
        Small::Praise => "Thank you!",
        Small::Wrong => {
            "I'm sorry about that. Say “undo that” to take back what I did last, then please say it again in other words. `help` shows \
             what I understand."
        }
        Small::Wishes => "Thank you, that is kind!",
        Small::Wait => "Take your time.",
        Small::Back => "Welcome back!",
        Small::What => "Sorry, I may have been unclear. `help` shows what I understand.",
        Small::WhyOffline => {
            "I work without an AI model right now (offline), so I understand only plain commands; `help` shows them. `wake init` sets an AI \
             model up."
        }
        Small::Repeat => "I haven't said anything lately.",
    }
}
