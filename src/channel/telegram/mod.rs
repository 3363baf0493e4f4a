//! Telegram: the Bot API's client, what an update means, and the [`Channel`] that answers leave by.
//!
//! `api` makes one bounded call and sorts its failure by what to do ([`TelegramError`]); `incoming` decides without
//! any call what an update is and whether its sender may speak. Polling, storing and trying again live in [`crate::bot`]
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
mod said;

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
        AnswerCallbackQuery, DeleteMessage, EditMessageCaption, EditMessageText, SendChatAction, SendDocument,
        SendMessage, SetMessageReaction,
    },
    requests::Payload,
    types::{
        CallbackQueryId, ChatAction, ChatId, FileId, InlineKeyboardButton, InlineKeyboardMarkup, InputFile,
        LinkPreviewOptions, MessageId, ParseMode, ReactionType, ReplyMarkup, ReplyParameters, ThreadId,
    },
};

use super::{Buttons, Channel, DoneFuture, Form, Outgoing, Presence, SendError, SendFuture, Sent};
use crate::{
    render,
    types::{ButtonChoice, ChatRef, NudgeAnswer, Question, ReminderAnswer},
};

/// The reaction to a message that has arrived, one of those that every chat allows by default.
const SEEN: &str = "👀";

impl Channel for Telegram {
    /// With formatting first; when Telegram refuses that, which means that nothing was sent, once more without. The same with the
    /// topic: what was meant for one that is closed or gone goes to the chat itself, and says so.
    fn send<'a>(&'a self, part: &'a Outgoing) -> SendFuture<'a> {
        Box::pin(async move {
            match self.send_formed(part).await {
                Err(TelegramError::TopicGone(_)) if part.thread_id.is_some() => {
                    Ok(self.send_formed(&without_topic(part)).await?)
                }
                Err(moved @ TelegramError::MigratedTo(to)) => {
                    Err(SendError::Moved { to: ChatRef::telegram(to), why: moved.to_string() })
                }
                sent => Ok(sent?),
            }
        })
    }
}

impl Telegram {
    /// Sends a part where it belongs, in the form that Telegram takes.
    async fn send_formed(&self, part: &Outgoing) -> Result<Sent, TelegramError> {
        let formatted = self.send_as(part, Form::Html).await;
        let (taken, form) = match formatted {
            Err(TelegramError::BadFormatting(_)) => (self.send_as(part, Form::Plain).await?, Form::Plain),
            formatted => (formatted?, Form::Html),
        };
        Ok(Sent { message_id: taken.message_id, date: taken.date, form })
    }

    /// Sends a part, as a file with its text under it if it carries one.
    async fn send_as(&self, part: &Outgoing, form: Form) -> Result<TakenMessage, TelegramError> {
        let text = if form == Form::Html { &part.html } else { &part.plain };
        let parse_mode = (form == Form::Html).then_some(ParseMode::Html);
        let message_thread_id = part.thread_id.map(topic).transpose()?;
        // It is sent all the same if what it answers is gone.
        let answered = part.reply_to.and_then(|id| message(id).ok());
        let reply_parameters = answered.map(|id| ReplyParameters::new(id).allow_sending_without_reply());
        let reply_markup = part.question.as_ref().map(buttons);
        if let Some(file) = &part.file {
            let caption = Some(text.clone());
            // The file itself goes beside the request.
            let request = SendDocument::new(to(part.chat), InputFile::file_id(FileId::default()));
            let request =
                SendDocument { caption, parse_mode, message_thread_id, reply_parameters, reply_markup, ..request };
            return self.send_document(&request, file).await;
        }
        let request = SendMessage {
            parse_mode,
            message_thread_id,
            reply_parameters,
            reply_markup,
            disable_notification: part.silent.then_some(true),
            link_preview_options: Some(without_preview()),
            ..SendMessage::new(to(part.chat), text)
        };
        self.send_message(&request).await
    }
}

fn to(chat: ChatRef) -> ChatId {
    ChatId(chat.id)
}

/// A message's id as the library has it; one that is beyond its type is none that we were given for a message of ours.
fn message(id: i64) -> Result<MessageId, TelegramError> {
    let unknown = |_| TelegramError::Rejected { code: 400, description: format!("there is no message {id}") };
    i32::try_from(id).map(MessageId).map_err(unknown)
}

fn topic(id: i64) -> Result<ThreadId, TelegramError> {
    message(id).map(ThreadId).map_err(|error| TelegramError::TopicGone(error.to_string()))
}

/// Nobody's server is told what we write of.
fn without_preview() -> LinkPreviewOptions {
    LinkPreviewOptions {
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

/// A part that can't go to its topic. An answer to a message there would go there, too.
fn without_topic(part: &Outgoing) -> Outgoing {
    let text = render::RenderedPart { html: part.html.clone(), plain: part.plain.clone() };
    let render::RenderedPart { html, plain } = render::with_topic_mark(&text);
    Outgoing { thread_id: None, reply_to: None, html, plain, ..part.clone() }
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
            TelegramError::BadFormatting(_)
            | TelegramError::TopicGone(_)
            | TelegramError::MigratedTo(_)
            | TelegramError::ChatGone(_)
            | TelegramError::Rejected { .. } => Self::Never { why },
        }
    }
}
