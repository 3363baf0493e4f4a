//! Telegram: the Bot API's client, what an update means, and the [`Channel`] that answers leave by.
//!
//! `api` makes one bounded call and sorts its failure by what to do ([`TelegramError`]); `incoming` decides without
//! any call what an update is and whether its sender may speak. Polling, storing and trying again live in [`crate::bot`]
//! and the outbox's delivery.

mod api;
mod attachment;
mod command;
mod content;
mod envelope;
mod error;
mod file;
mod incoming;
mod private;

pub use api::{Me, RawUpdate, SendMessage, SetUpError, Telegram, WebhookInfo};
pub use command::{Command, MenuCommand};
pub use error::TelegramError;
pub use file::{FetchError, RemoteFile};
pub use incoming::{ALLOWED_UPDATES, Migration, NewMessage, Quoted, ReadUpdate, Speakers, read_update};
pub use private::{PrivateText, private_text};

use super::{Buttons, Channel, DoneFuture, Form, Outgoing, Presence, SendError, SendFuture, Sent};
use crate::{render, types::ChatRef};

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
        let message = |form| SendMessage {
            chat_id: part.chat.id,
            thread_id: part.thread_id,
            reply_to: part.reply_to,
            text: if form == Form::Html { &part.html } else { &part.plain },
            html: form == Form::Html,
            silent: part.silent,
            file: part.file.as_ref(),
            question: part.question.as_ref(),
        };
        let formatted = self.send_any(message(Form::Html)).await;
        if let Err(TelegramError::BadFormatting(_)) = formatted {
            let message_id = self.send_any(message(Form::Plain)).await?;
            return Ok(Sent { message_id, form: Form::Plain });
        }
        Ok(Sent { message_id: formatted?, form: Form::Html })
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
        Box::pin(async move { Ok(self.send_typing(chat.id, thread_id).await?) })
    }

    fn acknowledge<'a>(&'a self, chat: ChatRef, message_id: i64) -> DoneFuture<'a> {
        Box::pin(async move { Ok(self.set_reaction(chat.id, message_id, SEEN).await?) })
    }

    fn edit<'a>(&'a self, chat: ChatRef, message_id: i64, text: &'a str) -> DoneFuture<'a> {
        Box::pin(async move { Ok(self.edit_message_text(chat.id, message_id, text).await?) })
    }

    fn delete<'a>(&'a self, chat: ChatRef, message_id: i64) -> DoneFuture<'a> {
        Box::pin(async move { Ok(self.delete_message(chat.id, message_id).await?) })
    }
}

impl Buttons for Telegram {
    fn edit_caption<'a>(&'a self, chat: ChatRef, message_id: i64, text: &'a str) -> DoneFuture<'a> {
        Box::pin(async move { Ok(self.edit_message_caption(chat.id, message_id, text).await?) })
    }

    fn answer_tap<'a>(&'a self, callback_id: &'a str, text: &'a str) -> DoneFuture<'a> {
        Box::pin(async move { Ok(self.answer_callback_query(callback_id, text).await?) })
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
