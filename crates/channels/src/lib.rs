//! The channels by which messages arrive and leave.
//!
//! A reply is Markdown until delivery: [`reveille_memory::render`] turns it into parts for Telegram, and [`telegram`] sends a part and
//! reports the result. [`delivery`] decides on further attempts and their times, so that each is recorded. A channel never waits or
//! repeats on its own.

pub mod delivery;
pub mod desktop;
pub mod telegram;

use std::{future::Future, pin::Pin, time::Duration};

use chrono::{DateTime, Utc};

use reveille_base::types::{ChatRef, Question, TextFile};
use reveille_store::RichRefusal;

/// The result of a send. Not `Send`, because wake and bot each run on one thread.
pub type SendFuture<'a> = Pin<Box<dyn Future<Output = Result<Sent, SendError>> + 'a>>;

/// Like [`SendFuture`], without a value.
pub type DoneFuture<'a> = Pin<Box<dyn Future<Output = Result<(), SendError>> + 'a>>;

/// A channel that delivers parts of messages.
pub trait Channel {
    /// Tries once to deliver a part. The error tells the caller what to do next.
    fn send<'a>(&'a self, part: &'a Outgoing) -> SendFuture<'a>;
}

/// A channel that can show the progress of a message. The display is temporary, and nothing depends on it.
pub trait Presence: Channel {
    /// Shows for a few seconds that an answer is in progress.
    fn show_typing<'a>(&'a self, chat: ChatRef, thread_id: Option<i64>) -> DoneFuture<'a>;

    /// Marks a person's message as received.
    fn acknowledge<'a>(&'a self, chat: ChatRef, message_id: i64) -> DoneFuture<'a>;

    /// Replaces the text of one of our messages, without formatting.
    fn edit_message<'a>(&'a self, chat: ChatRef, message_id: i64, text: &'a str) -> DoneFuture<'a>;

    /// Shows what is being written in a private chat. A later draft of the same number replaces it; a message ends it, and so does half a
    /// minute.
    ///
    /// # Errors
    /// [`SendError::Never`] if the channel has no drafts.
    fn show_draft<'a>(&'a self, draft: &'a DraftMessage) -> DoneFuture<'a>;

    /// Deletes one of our messages.
    fn delete_message<'a>(&'a self, chat: ChatRef, message_id: i64) -> DoneFuture<'a>;
}

/// A channel with buttons under messages; see [`Outgoing::question`].
pub trait Buttons: Presence {
    /// Replaces the caption of a file of ours. The new caption has neither formatting nor buttons.
    fn edit_caption<'a>(&'a self, chat: ChatRef, message_id: i64, text: &'a str) -> DoneFuture<'a>;

    /// Answers the press of a button.
    fn answer_tap<'a>(&'a self, callback_id: &'a str, text: &'a str) -> DoneFuture<'a>;
}

/// A message that is still being written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftMessage {
    /// The private chat.
    pub chat: ChatRef,
    /// The forum topic in the chat.
    pub thread_id: Option<i64>,
    /// The draft's number, not 0.
    pub number: u32,
    /// The formatted text, as [`reveille_memory::render::RenderedPart::html`].
    pub html: String,
}

/// A part of a message, ready for delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The target chat.
    pub chat: ChatRef,
    /// The forum topic in the chat; `None` for the general topic.
    pub thread_id: Option<i64>,
    /// The channel's id of the message to reply to.
    pub reply_to: Option<i64>,
    /// The formatted text, as [`reveille_memory::render::RenderedPart::html`].
    pub html: String,
    /// The text without formatting, in case the formatting is refused.
    pub plain: String,
    /// True for delivery without a sound.
    pub silent: bool,
    /// An attached file. The text becomes its caption, of at most [`reveille_memory::render::CAPTION_UNITS_MAX`] units.
    pub file: Option<TextFile>,
    /// The question behind the buttons, if any.
    pub question: Option<Question>,
    /// The HTML of the whole message as a rich message, as [`reveille_memory::render::RichMessage::html`]. The channel sends this or
    /// nothing; the texts above are then unused.
    pub rich: Option<String>,
}

/// A delivered part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// The channel's id of the new message.
    pub message_id: i64,
    /// The time of sending by the channel's clock. If it is `None` (unknown), a question can't be answered by a typed yes or no.
    pub date: Option<DateTime<Utc>>,
    /// The delivered form of the text.
    pub form: Form,
}

/// The form of an [`Outgoing`] that was delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// [`Outgoing::html`].
    Html,
    /// [`Outgoing::plain`], after the formatting was refused.
    Plain,
    /// [`Outgoing::rich`].
    Rich,
}

/// The reason why a part wasn't confirmed, sorted by the caller's next step. Texts contain no secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Certainly not delivered: try again after `after`.
    #[error("{why}")]
    Later {
        /// The wait demanded by the channel.
        after: Duration,
        /// The reason.
        why: String,
    },
    /// Certainly not delivered: try again after a wait of our own choice.
    #[error("{why}")]
    NotSent {
        /// The reason.
        why: String,
    },
    /// Certainly not delivered: the chat has a new id, and the part must be sent there.
    #[error("{why}")]
    Moved {
        /// The new id of the chat.
        to: ChatRef,
        /// The reason and the remedy.
        why: String,
    },
    /// Certainly not delivered: the channel refused the rich message, so send the text in its plain form.
    #[error("{why}")]
    RichRefused {
        /// The kind of refusal.
        refusal: RichRefusal,
        /// The reason.
        why: String,
    },
    /// Possibly delivered: a further attempt may repeat it and must say so ([`reveille_memory::render::with_repeat_mark`]).
    #[error("{why}")]
    Ambiguous {
        /// The reason.
        why: String,
    },
    /// Not deliverable to this chat at all: keep the part as failed and tell a person.
    #[error("{why}")]
    Never {
        /// The reason and the remedy.
        why: String,
    },
}
