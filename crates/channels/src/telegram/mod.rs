//! Telegram: the Bot API client, the interpretation of updates, and the [`Channel`](super::Channel) for answers.
//!
//! `api` makes a single call with a time limit, and sorts failures by the next step ([`TelegramError`]). `sending` tries plainer forms of
//! a message, guided by `refusal`, which interprets Telegram's words. `incoming` interprets an update and checks its sender without any
//! call. Polling and storage live in `bot`, further attempts in [`delivery`](crate::delivery).

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
mod rich;
mod said;
mod sending;

use reveille_base::types::{
    ApprovalAnswer, ButtonChoice, ChatRef, NudgeAnswer, Question, ReminderAnswer, SampleAnswer,
};

pub use api::{AcceptedMessage, Me, RawUpdate, SetUpError, Telegram, WebhookInfo};
pub use command::Command;
pub use error::TelegramError;
pub use file::{FetchError, RemoteFile};
pub use inbox::{Inbox, InboxError};
pub use incoming::{Migration, NewMessage, Quoted, ReadUpdate, Speakers, read_update};
pub use private::{PrivateText, read_private_text};

use serde::{Serialize, de::IgnoredAny};
use teloxide_core::{
    payloads::{
        AnswerCallbackQuery, DeleteMessage, EditMessageCaption, EditMessageText, SendChatAction, SetMessageReaction,
    },
    requests::Payload,
    types::{
        CallbackQueryId, ChatAction, ChatId, InlineKeyboardButton, InlineKeyboardMarkup, LinkPreviewOptions, MessageId,
        ReactionType, ReplyMarkup, ThreadId, True,
    },
};

use super::{Buttons, DoneFuture, DraftMessage, Presence, SendError};

/// The reaction to a received message, from the set allowed by default in every chat.
const SEEN: &str = "👀";

fn to_chat_id(chat: ChatRef) -> ChatId {
    ChatId(chat.id)
}

/// Converts a message id. An id too large for the library's type can't belong to a message of ours.
fn to_message_id(id: i64) -> Result<MessageId, TelegramError> {
    let unknown = |_| TelegramError::Rejected { code: 400, description: format!("there is no message {id}") };
    i32::try_from(id).map(MessageId).map_err(unknown)
}

fn to_thread_id(id: i64) -> Result<ThreadId, TelegramError> {
    let unknown = |_| TelegramError::Rejected { code: 400, description: format!("there is no topic {id}") };
    to_message_id(id).map(ThreadId).map_err(unknown)
}

/// The options that turn link previews off, so that no server learns of our links.
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

/// The maximum number of buttons in a row.
const BUTTONS_A_ROW: usize = 3;

fn render_buttons(question: &Question) -> ReplyMarkup {
    let button = |choice: ButtonChoice| InlineKeyboardButton::callback(label_choice(&choice), choice.to_data());
    let (choices, per_row) =
        (question.choices(), if let Question::Approval { .. } = question { 2 } else { BUTTONS_A_ROW });
    let rows = choices.chunks(per_row).map(|row| row.iter().cloned().map(button).collect::<Vec<_>>());
    ReplyMarkup::InlineKeyboard(InlineKeyboardMarkup::new(rows))
}

fn label_choice(choice: &ButtonChoice) -> &'static str {
    match choice {
        ButtonChoice::Approval { answer: ApprovalAnswer::Yes, .. } => "✅ Allow once",
        ButtonChoice::Approval { answer: ApprovalAnswer::No, .. } => "❌ No",
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
        ButtonChoice::Sample { answer: SampleAnswer::ShowsWell, .. } => "✅ Shows well",
        ButtonChoice::Sample { answer: SampleAnswer::ShowsBadly, .. } => "❌ Doesn't",
    }
}

/// `sendMessageDraft` of Bot API 9.3, which the library doesn't know.
#[derive(Debug, Clone, Serialize)]
struct SendMessageDraft<'a> {
    chat_id: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_thread_id: Option<i64>,
    draft_id: u32,
    text: &'a str,
    parse_mode: &'static str,
}

impl Payload for SendMessageDraft<'_> {
    type Output = True;

    const NAME: &'static str = "SendMessageDraft";
}

impl Presence for Telegram {
    fn show_typing<'a>(&'a self, chat: ChatRef, thread_id: Option<i64>) -> DoneFuture<'a> {
        let action = SendChatAction::new(to_chat_id(chat), ChatAction::Typing);
        let topic = thread_id.map(to_thread_id).transpose();
        self.call_ignoring_result(topic.map(|message_thread_id| SendChatAction { message_thread_id, ..action }))
    }

    fn acknowledge<'a>(&'a self, chat: ChatRef, message_id: i64) -> DoneFuture<'a> {
        let reaction = Some(vec![ReactionType::Emoji { emoji: SEEN.to_owned() }]);
        let on = to_message_id(message_id).map(|id| SetMessageReaction::new(to_chat_id(chat), id));
        self.call_ignoring_result(on.map(|on| SetMessageReaction { reaction, ..on }))
    }

    fn edit_message<'a>(&'a self, chat: ChatRef, message_id: i64, text: &'a str) -> DoneFuture<'a> {
        let edit = to_message_id(message_id).map(|id| EditMessageText::new(to_chat_id(chat), id, text));
        self.call_ignoring_result(
            edit.map(|edit| EditMessageText { link_preview_options: Some(without_preview()), ..edit }),
        )
    }

    fn show_draft<'a>(&'a self, draft: &'a DraftMessage) -> DoneFuture<'a> {
        self.call_ignoring_result(Ok(SendMessageDraft {
            chat_id: draft.chat.id,
            message_thread_id: draft.thread_id,
            draft_id: draft.number,
            text: &draft.html,
            parse_mode: "HTML",
        }))
    }

    fn delete_message<'a>(&'a self, chat: ChatRef, message_id: i64) -> DoneFuture<'a> {
        self.call_ignoring_result(to_message_id(message_id).map(|id| DeleteMessage::new(to_chat_id(chat), id)))
    }
}

impl Buttons for Telegram {
    fn edit_caption<'a>(&'a self, chat: ChatRef, message_id: i64, text: &'a str) -> DoneFuture<'a> {
        let edit = to_message_id(message_id).map(|id| EditMessageCaption::new(to_chat_id(chat), id));
        self.call_ignoring_result(edit.map(|edit| EditMessageCaption { caption: Some(text.to_owned()), ..edit }))
    }

    fn answer_tap<'a>(&'a self, callback_id: &'a str, text: &'a str) -> DoneFuture<'a> {
        let tap = AnswerCallbackQuery::new(CallbackQueryId(callback_id.to_owned()));
        self.call_ignoring_result(Ok(AnswerCallbackQuery { text: Some(text.to_owned()), ..tap }))
    }
}

impl Telegram {
    /// Makes a call whose result doesn't matter.
    fn call_ignoring_result<'a, P: Payload + Serialize + 'a>(
        &'a self,
        request: Result<P, TelegramError>,
    ) -> DoneFuture<'a> {
        Box::pin(async move { Ok(self.call(&request?).await.map(|_: IgnoredAny| ())?) })
    }
}

impl From<TelegramError> for SendError {
    fn from(error: TelegramError) -> Self {
        let why = error.to_string();
        match error {
            TelegramError::RetryAfter(after) => Self::Later { after, why },
            // Tokens can be replaced and networks return, so the message waits.
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
