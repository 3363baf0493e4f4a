//! Telegram: the Bot API's client, what an update means, and the [`Channel`](super::Channel) that answers leave by.
//!
//! `api` makes one bounded call and sorts its failure by what to do ([`TelegramError`]); `sending` tries a message in plainer forms,
//! by what `refusal` makes of Telegram's words; `incoming` decides without
//! any call what an update is and whether its sender may speak. Polling, storing and trying again live in `bot`
//! and the outbox's delivery.

mod api;
mod attachment;
mod command;
mod content;
mod error;
mod file;
mod inbox;
mod incoming;
mod private;
mod refusal;
mod said;
mod sending;

use reveille_base::types::{ButtonChoice, ChatRef, NudgeAnswer, Question, ReminderAnswer};

pub use api::{Me, RawUpdate, SetUpError, TakenMessage, Telegram, WebhookInfo};
pub use command::Command;
pub use error::TelegramError;
pub use file::{FetchError, RemoteFile};
pub use inbox::{Inbox, InboxError};
pub use incoming::{Migration, NewMessage, Quoted, ReadUpdate, Speakers, read_update};
pub use private::{PrivateText, private_text};

use serde::{Serialize, de::IgnoredAny};
use teloxide_core::{
    payloads::{
        AnswerCallbackQuery, DeleteMessage, EditMessageCaption, EditMessageText, SendChatAction, SetMessageReaction,
    },
    requests::Payload,
    types::{
        CallbackQueryId, ChatAction, ChatId, InlineKeyboardButton, InlineKeyboardMarkup, LinkPreviewOptions, MessageId,
        ReactionType, ReplyMarkup, ThreadId,
    },
};

use super::{Buttons, DoneFuture, Presence, SendError};

/// The reaction to a message that has arrived, one of those that every chat allows by default.
const SEEN: &str = "👀";

fn to(chat: ChatRef) -> ChatId {
    ChatId(chat.id)
}

/// A message's id as the library has it; one that is beyond its type is none that we were given for a message of ours.
fn message(id: i64) -> Result<MessageId, TelegramError> {
    let unknown = |_| TelegramError::Rejected { code: 400, description: format!("there is no message {id}") };
    i32::try_from(id).map(MessageId).map_err(unknown)
}

fn topic(id: i64) -> Result<ThreadId, TelegramError> {
    let unknown = |_| TelegramError::Rejected { code: 400, description: format!("there is no topic {id}") };
    message(id).map(ThreadId).map_err(unknown)
}

/// Nobody's server is told what we write of.
fn without_preview() -> LinkPreviewOptions {
    LinkPreviewOptions {
        // fault: links-looked-telegram
        is_disabled: true,
        url: None,
        prefer_small_media: false,
        prefer_large_media: false,
        show_above_text: false,
    }
}

/// Buttons that stand beside each other.
const BUTTONS_A_ROW: usize = 3;

fn buttons(question: &Question) -> ReplyMarkup {
    let button = |choice: ButtonChoice| InlineKeyboardButton::callback(label(&choice), choice.data());
    let (choices, a_row) =
        (question.choices(), if let Question::Approval { .. } = question { 2 } else { BUTTONS_A_ROW });
    let rows = choices.chunks(a_row).map(|row| row.iter().cloned().map(button).collect::<Vec<_>>());
    ReplyMarkup::InlineKeyboard(InlineKeyboardMarkup::new(rows))
}

fn label(choice: &ButtonChoice) -> &'static str {
    match choice {
        ButtonChoice::Approval { is_approval: true, .. } => "✅ Allow once",
        ButtonChoice::Approval { is_approval: false, .. } => "❌ No",
        ButtonChoice::Always { .. } => "Always allow this…",
        ButtonChoice::Rule { is_yes: true, .. } => "✅ Add this rule",
        ButtonChoice::Rule { is_yes: false, .. } => "Not now",
        ButtonChoice::Reminder { answer: ReminderAnswer::Done, .. } => "✅ Done",
        ButtonChoice::Reminder { answer: ReminderAnswer::InAnHour, .. } => "💤 1 hour",
        ButtonChoice::Reminder { answer: ReminderAnswer::InTheMorning, .. } => "🌅 Morning",
        ButtonChoice::Nudge { answer: NudgeAnswer::Done, .. } => "✅ Done",
        ButtonChoice::Nudge { answer: NudgeAnswer::InTheMorning, .. } => "🌅 Morning",
        ButtonChoice::Nudge { answer: NudgeAnswer::TakeBack, .. } => "↩️ Take it back",
        ButtonChoice::Nudge { answer: NudgeAnswer::NoMore, .. } => "🔕 No more nudges",
    }
}

impl Presence for Telegram {
    fn typing<'a>(&'a self, chat: ChatRef, thread_id: Option<i64>) -> DoneFuture<'a> {
        let action = SendChatAction::new(to(chat), ChatAction::Typing);
        let topic = thread_id.map(topic).transpose();
        self.done(topic.map(|message_thread_id| SendChatAction { message_thread_id, ..action }))
    }

    fn acknowledge<'a>(&'a self, chat: ChatRef, message_id: i64) -> DoneFuture<'a> {
        let reaction = Some(vec![ReactionType::Emoji { emoji: SEEN.to_owned() }]);
        let on = message(message_id).map(|id| SetMessageReaction::new(to(chat), id));
        self.done(on.map(|on| SetMessageReaction { reaction, ..on }))
    }

    fn edit<'a>(&'a self, chat: ChatRef, message_id: i64, text: &'a str) -> DoneFuture<'a> {
        let edit = message(message_id).map(|id| EditMessageText::new(to(chat), id, text));
        self.done(edit.map(|edit| EditMessageText { link_preview_options: Some(without_preview()), ..edit }))
    }

    fn delete<'a>(&'a self, chat: ChatRef, message_id: i64) -> DoneFuture<'a> {
        self.done(message(message_id).map(|id| DeleteMessage::new(to(chat), id)))
    }
}

impl Buttons for Telegram {
    fn edit_caption<'a>(&'a self, chat: ChatRef, message_id: i64, text: &'a str) -> DoneFuture<'a> {
        let edit = message(message_id).map(|id| EditMessageCaption::new(to(chat), id));
        self.done(edit.map(|edit| EditMessageCaption { caption: Some(text.to_owned()), ..edit }))
    }

    fn answer_tap<'a>(&'a self, callback_id: &'a str, text: &'a str) -> DoneFuture<'a> {
        let tap = AnswerCallbackQuery::new(CallbackQueryId(callback_id.to_owned()));
        self.done(Ok(AnswerCallbackQuery { text: Some(text.to_owned()), ..tap }))
    }
}

impl Telegram {
    /// Makes a call of which nothing is wanted but that it was done.
    fn done<'a, P: Payload + Serialize + 'a>(&'a self, request: Result<P, TelegramError>) -> DoneFuture<'a> {
        Box::pin(async move { Ok(self.call(&request?).await.map(|_: IgnoredAny| ())?) })
    }
}

impl From<TelegramError> for SendError {
    fn from(error: TelegramError) -> Self {
        let why = error.to_string();
        match error {
            TelegramError::RetryAfter(after) => Self::Later { after, why },
            // A token can be replaced, a network can come back: the message waits.
            TelegramError::NotSent { .. } | TelegramError::Unauthorized(_) | TelegramError::Conflict(_) => {
                Self::NotSent { why }
            }
            TelegramError::Ambiguous { .. } => Self::Ambiguous { why },
            TelegramError::MigratedTo(_) | TelegramError::ChatGone(_) | TelegramError::Rejected { .. } => {
                Self::Never { why }
            }
        }
    }
}
