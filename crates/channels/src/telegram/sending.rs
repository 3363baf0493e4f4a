//! Sends a part of a message in its intended form, then without the elements that Telegram refuses.
//!
//! A refusal means that nothing was sent, so the next form can be tried at once. Each attempt leaves out another element, so the
//! attempts come to an end.

use teloxide_core::{
    payloads::{SendDocument, SendMessage},
    types::{FileId, InputFile, ParseMode, ReplyParameters},
};

use reveille_base::types::{ChatRef, Question, TextFile};
use reveille_memory::render;
use reveille_store::RichRefusal;

use super::{
    AcceptedMessage, Telegram, TelegramError,
    refusal::{MessageRefusal, Misfit, RichMisfit, sort_refusal, sort_rich_refusal},
    render_buttons,
    rich::SendRichMessage,
    to_chat_id, to_message_id, to_thread_id, without_preview,
};
use crate::{Channel, Form, Outgoing, SendError, SendFuture, Sent};

/// The file name for a message too long for Telegram.
const LONG_MESSAGE: &str = "message.txt";

impl Channel for Telegram {
    /// Sends the full part first, then plainer forms as long as Telegram refuses an optional element. A part for a closed or deleted topic
    /// goes to the chat itself with a remark.
    fn send<'a>(&'a self, part: &'a Outgoing) -> SendFuture<'a> {
        Box::pin(async move {
            let form = if part.rich.is_some() { Form::Rich } else { Form::Html };
            let mut attempt = SendAttempt { part: part.clone(), form };
            loop {
                let error = match self.send_as(&attempt.part, attempt.form).await {
                    Ok(taken) => {
                        return Ok(Sent { message_id: taken.message_id, date: taken.date, form: attempt.form });
                    }
                    Err(error) => error,
                };
                attempt = attempt.next_attempt(error)?;
            }
        })
    }
}

/// A part, and the form in which to send it.
#[derive(Debug, PartialEq)]
struct SendAttempt {
    part: Outgoing,
    form: Form,
}

impl SendAttempt {
    /// The next attempt, without the refused element. An error if the refusal is about something else, or no element is left to omit.
    fn next_attempt(self, error: TelegramError) -> Result<Self, SendError> {
        if self.form == Form::Rich
            && let Some(misfit) = sort_rich_refusal(&error)
        {
            return self.next_rich_attempt(misfit, &error);
        }
        let TelegramError::Rejected { code, description } = &error else {
            return Err(match error {
                TelegramError::MigratedTo(to) => {
                    SendError::Moved { to: ChatRef::from_telegram(to), why: error.to_string() }
                }
                error => error.into(),
            });
        };
        let why = error.to_string();
        let next = match sort_refusal(*code, description) {
            MessageRefusal::Misfit(misfit) => self.omit_element(misfit),
            MessageRefusal::Unknown if *code == 400 => self.simplify(),
            MessageRefusal::Wait(Some(after)) => return Err(TelegramError::RetryAfter(after).into()),
            MessageRefusal::Wait(None) => return Err(SendError::NotSent { why }),
            MessageRefusal::ChatGone => return Err(TelegramError::ChatGone(description.clone()).into()),
            MessageRefusal::NotAllowed => {
                let why = format!("{why}. An administrator of this chat has to allow it");
                return Err(SendError::Never { why });
            }
            MessageRefusal::Unknown => None,
        };
        next.ok_or(SendError::Never { why })
    }

    /// The next attempt at a rich message: only a bad reply can be left out. Every other refusal leaves the message to plain parts.
    fn next_rich_attempt(self, misfit: RichMisfit, error: &TelegramError) -> Result<Self, SendError> {
        let refusal = match misfit {
            RichMisfit::Reply if self.part.reply_to.is_some() => {
                return Ok(Self { part: Outgoing { reply_to: None, ..self.part }, form: self.form });
            }
            RichMisfit::Reply => RichRefusal::Content,
            RichMisfit::Message(refusal) => refusal,
        };
        Err(SendError::RichRefused { refusal, why: error.to_string() })
    }

    /// The attempt without one optional element; `None` if it is already absent.
    fn omit_element(self, misfit: Misfit) -> Option<Self> {
        let Self { part, form } = self;
        let is_formatted = form == Form::Html;
        match misfit {
            Misfit::Formatting | Misfit::Length if is_formatted => Some(Self { part, form: Form::Plain }),
            Misfit::Length if part.file.is_none() => Some(Self { part: as_file(part), form }),
            Misfit::Formatting | Misfit::Length => None,
            Misfit::Topic => part.thread_id.is_some().then(|| Self { part: without_topic(part), form }),
            Misfit::Reply => {
                part.reply_to.is_some().then_some(Self { part: Outgoing { reply_to: None, ..part }, form })
            }
            Misfit::Buttons => part.question.is_some().then(|| Self { part: without_buttons(part), form }),
        }
    }

    /// A plainer form after an unclear refusal. The topic stays, because other people may read the chat's other topics.
    fn simplify(self) -> Option<Self> {
        let Self { part, form } = self;
        if form == Form::Html || part.reply_to.is_some() {
            return Some(Self { part: Outgoing { reply_to: None, ..part }, form: Form::Plain });
        }
        Self { part, form }.omit_element(Misfit::Buttons)
    }
}

/// Replaces refused buttons with a hint at another way to answer.
fn without_buttons(part: Outgoing) -> Outgoing {
    const TERMINAL_HINT: &str =
        "\n\nTelegram refused this message's buttons. You can answer the question in the terminal: wake approvals list";
    let hint = if matches!(part.question, Some(Question::Approval { .. })) { TERMINAL_HINT } else { "" };
    let (html, plain) = (part.html + hint, part.plain + hint);
    Outgoing { question: None, html, plain, ..part }
}

/// Moves a part out of its topic. A reply would return to the topic, so the reply is dropped too.
fn without_topic(part: Outgoing) -> Outgoing {
    let text = render::RenderedPart { html: part.html, plain: part.plain };
    let render::RenderedPart { html, plain } = render::with_topic_mark(&text);
    Outgoing { thread_id: None, reply_to: None, html, plain, ..part }
}

/// Turns a text into a file with the beginning as its caption.
fn as_file(part: Outgoing) -> Outgoing {
    let plain = render::render_plain_beginning(&part.plain);
    let file = Some(TextFile { name: LONG_MESSAGE.to_owned(), text: part.plain });
    Outgoing { plain, file, ..part }
}

impl Telegram {
    /// Sends a part, as a file with a caption if the part has one.
    async fn send_as(&self, part: &Outgoing, form: Form) -> Result<AcceptedMessage, TelegramError> {
        if let (Form::Rich, Some(html)) = (form, &part.rich) {
            return self.call(&SendRichMessage::new(part, html)?).await;
        }
        let text = if form == Form::Html { &part.html } else { &part.plain };
        let parse_mode = (form == Form::Html).then_some(ParseMode::Html);
        let message_thread_id = part.thread_id.map(to_thread_id).transpose()?;
        // Telegram sends the part even if the message it replies to is gone.
        let answered = part.reply_to.and_then(|id| to_message_id(id).ok());
        let reply_parameters = answered.map(|id| ReplyParameters::new(id).allow_sending_without_reply());
        let reply_markup = part.question.as_ref().map(render_buttons);
        if let Some(file) = &part.file {
            let caption = Some(text.clone());
            // The request's file id is a placeholder: `send_document` uploads the file.
            let request = SendDocument::new(to_chat_id(part.chat), InputFile::file_id(FileId::default()));
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
            ..SendMessage::new(to_chat_id(part.chat), text)
        };
        self.send_message(&request).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full_part() -> Outgoing {
        Outgoing {
            chat: ChatRef::from_telegram(-7),
            thread_id: Some(3),
            reply_to: Some(100),
            html: "<b>hi</b>".to_owned(),
            plain: "hi".to_owned(),
            silent: false,
            file: None,
            rich: None,
            question: Some(Question::Approval { nonce: "n".to_owned(), may_stand: false }),
        }
    }

    fn refused(words: &str) -> TelegramError {
        TelegramError::Rejected { code: 400, description: format!("Bad Request: {words}") }
    }

    /// Applies refusals to a part and returns the next attempt; `None` if it was given up.
    fn apply_refusals(refusals: &[&str]) -> Option<SendAttempt> {
        let attempt = SendAttempt { part: full_part(), form: Form::Html };
        refusals.iter().try_fold(attempt, |attempt, words| attempt.next_attempt(refused(words)).ok())
    }

    #[test]
    fn only_the_refused_element_is_left_out() {
        let left = apply_refusals(&["ENTITIES_TOO_LONG"]).unwrap();
        assert_eq!(left, SendAttempt { part: full_part(), form: Form::Plain });
        let left = apply_refusals(&["message to be replied not found"]).unwrap();
        assert_eq!(left, SendAttempt { part: Outgoing { reply_to: None, ..full_part() }, form: Form::Html });
        let left = apply_refusals(&["BUTTON_DATA_INVALID"]).unwrap();
        assert_eq!((left.form, left.part.question, left.part.reply_to), (Form::Html, None, Some(100)));
        assert!(left.part.plain.contains("wake approvals list"), "{}", left.part.plain);
        let left = apply_refusals(&["TOPIC_CLOSED"]).unwrap();
        assert_eq!((left.form, left.part.thread_id, left.part.reply_to), (Form::Html, None, None));
        assert!(left.part.plain.contains("topic"), "{}", left.part.plain);
        let left = apply_refusals(&["message is too long", "message is too long"]).unwrap();
        assert_eq!((left.form, left.part.file.unwrap().text.as_str()), (Form::Plain, "hi"));
        let left = apply_refusals(&["SOMETHING_NEW"]).unwrap();
        assert_eq!(left, SendAttempt { part: Outgoing { reply_to: None, ..full_part() }, form: Form::Plain });
    }

    #[test]
    fn attempts_end_whatever_telegram_keeps_refusing() {
        let all =
            ["ENTITIES_TOO_LONG", "MESSAGE_TOO_LONG", "REPLY_TO_INVALID", "TOPIC_CLOSED", "BUTTON_INVALID", "NEW"];
        for first in all {
            for second in all {
                let refusals: Vec<&str> = [first, second].into_iter().cycle().take(8).collect();
                assert_eq!(apply_refusals(&refusals), None, "{first}, {second}");
            }
        }
        assert_eq!(apply_refusals(&["chat not found"]), None);
        assert_eq!(apply_refusals(&["CHAT_WRITE_FORBIDDEN"]), None);
    }

    #[test]
    fn a_temporary_refusal_is_waited_for_and_a_missing_permission_is_reported() {
        let after =
            |words: &str| SendAttempt { part: full_part(), form: Form::Html }.next_attempt(refused(words)).unwrap_err();
        assert!(matches!(after("SLOWMODE_WAIT_9"), SendError::Later { after, .. } if after.as_secs() == 9));
        assert!(matches!(after("MSG_WAIT_FAILED"), SendError::NotSent { .. }));
        let never = after("not enough rights to send text messages to the chat");
        assert!(
            matches!(&never, SendError::Never { why } if why.contains("An administrator of this chat")),
            "{never:?}"
        );
    }
}
