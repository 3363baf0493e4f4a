//! The doors that messages come in and go out by.
//!
//! A reply is Markdown until it leaves: [`reveille_memory::render`] turns it into parts that Telegram takes, [`telegram`] sends one part and
//! says what became of it. Whether and when to try again is decided by whoever keeps the outbox, so that each try is
//! written down: a channel never waits and never sends twice on its own.

pub mod delivery;
pub mod desktop;
pub mod telegram;

use std::{future::Future, pin::Pin, time::Duration};

use chrono::{DateTime, Utc};

use reveille_base::types::{ChatRef, Question, TextFile};

/// A future that stays on its thread: the wake and the bot each run on one.
pub type SendFuture<'a> = Pin<Box<dyn Future<Output = Result<Sent, SendError>> + 'a>>;

/// As [`SendFuture`], with nothing to tell when it went well.
pub type DoneFuture<'a> = Pin<Box<dyn Future<Output = Result<(), SendError>> + 'a>>;

/// A door through which parts of messages leave.
pub trait Channel {
    /// Tries once to deliver one part. The caller decides by the error what to do next.
    fn send<'a>(&'a self, part: &'a Outgoing) -> SendFuture<'a>;
}

/// A door that can show, beside messages, what becomes of them. Nothing of it is kept, and nothing depends on it.
pub trait Presence: Channel {
    /// Shows for a few seconds that an answer is being worked on.
    fn typing<'a>(&'a self, chat: ChatRef, thread_id: Option<i64>) -> DoneFuture<'a>;

    /// Shows on a person's message that it has arrived.
    fn acknowledge<'a>(&'a self, chat: ChatRef, message_id: i64) -> DoneFuture<'a>;

    /// Puts another text, without formatting, in place of one of our own messages.
    fn edit<'a>(&'a self, chat: ChatRef, message_id: i64, text: &'a str) -> DoneFuture<'a>;

    /// Takes one of our own messages away.
    fn delete<'a>(&'a self, chat: ChatRef, message_id: i64) -> DoneFuture<'a>;
}

/// A door whose messages can carry buttons; see [`Outgoing::question`].
pub trait Buttons: Presence {
    /// Puts another text, without formatting and without buttons, under a file of ours.
    fn edit_caption<'a>(&'a self, chat: ChatRef, message_id: i64, text: &'a str) -> DoneFuture<'a>;

    /// Tells who pressed a button what became of it.
    fn answer_tap<'a>(&'a self, callback_id: &'a str, text: &'a str) -> DoneFuture<'a>;
}

/// One part of a message, ready to leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The chat it goes to.
    pub chat: ChatRef,
    /// The forum topic in that chat; none for the general one.
    pub thread_id: Option<i64>,
    /// The channel's id of the message that it answers.
    pub reply_to: Option<i64>,
    /// The text with its formatting, as [`reveille_memory::render::RenderedPart::html`].
    pub html: String,
    /// The same text without formatting, for when the formatting is refused.
    pub plain: String,
    /// Delivered without a sound.
    pub silent: bool,
    /// What goes with it as a file; the text, of [`reveille_memory::render::CAPTION_UNITS_MAX`] units at most, stands under it.
    pub file: Option<TextFile>,
    /// Buttons under it.
    pub question: Option<Question>,
}

/// A part that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// The channel's own id of the new message.
    pub message_id: i64,
    /// When it was sent, by the channel's clock; `None` if it doesn't say, and then no typed answer counts for a question.
    pub date: Option<DateTime<Utc>>,
    /// Which of the part's two texts arrived.
    pub form: Form,
}

/// The text of an [`Outgoing`] that was delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// [`Outgoing::html`].
    Html,
    /// [`Outgoing::plain`]: the formatting was refused.
    Plain,
}

/// Why a part wasn't confirmed, by what the caller should do. No text holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Surely not delivered: try again, but not before `after` has passed.
    #[error("{why}")]
    Later {
        /// How long the channel told us to wait, in full.
        after: Duration,
        /// What happened.
        why: String,
    },
    /// Surely not delivered: try again with one's own back-off.
    #[error("{why}")]
    NotSent {
        /// What happened.
        why: String,
    },
    /// Surely not delivered: the chat has another id, and the part belongs there.
    #[error("{why}")]
    Moved {
        /// The chat's id from now on.
        to: ChatRef,
        /// What happened and what can be done.
        why: String,
    },
    /// It may have arrived: a further try may be a repeat and must say so ([`reveille_memory::render::with_repeat_mark`]).
    #[error("{why}")]
    Ambiguous {
        /// What happened.
        why: String,
    },
    /// Not delivered, and the same part to the same chat never will be: keep it as failed and tell a person.
    #[error("{why}")]
    Never {
        /// What happened and what can be done.
        why: String,
    },
}
