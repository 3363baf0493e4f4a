//! `sendRichMessage` of Bot API 10.1, which the library doesn't know.

use serde::Serialize;
use teloxide_core::{
    requests::Payload,
    types::{Message, ReplyMarkup, ReplyParameters},
};

use super::{TelegramError, render_buttons, to_message_id, to_thread_id};
use crate::Outgoing;

/// The request. It has no option for link previews: a rich message has none.
#[derive(Debug, Serialize)]
pub(super) struct SendRichMessage<'a> {
    chat_id: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_thread_id: Option<i64>,
    rich_message: InputRichMessage<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disable_notification: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_parameters: Option<ReplyParameters>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_markup: Option<ReplyMarkup>,
}

#[derive(Debug, Serialize)]
struct InputRichMessage<'a> {
    html: &'a str,
    /// True, so that only our own links are links.
    skip_entity_detection: bool,
}

impl<'a> SendRichMessage<'a> {
    /// Creates the request for a part with this HTML.
    pub(super) fn new(part: &Outgoing, html: &'a str) -> Result<Self, TelegramError> {
        let answered = part.reply_to.and_then(|id| to_message_id(id).ok());
        part.thread_id.map(to_thread_id).transpose()?;
        Ok(Self {
            chat_id: part.chat.id,
            message_thread_id: part.thread_id,
            rich_message: InputRichMessage { html, skip_entity_detection: true },
            disable_notification: part.silent.then_some(true),
            reply_parameters: answered.map(|id| ReplyParameters::new(id).allow_sending_without_reply()),
            reply_markup: part.question.as_ref().map(render_buttons),
        })
    }
}

impl Payload for SendRichMessage<'_> {
    type Output = Message;

    const NAME: &'static str = "SendRichMessage";
}
