//! A small client of the Bot API.
//!
//! It is ours, and not teloxide's, for three reasons: an update that the library can't parse must neither block nor drop its
//! batch; the library waits for seconds on a server error, where we bound each call; and no error may show the token, which is
//! part of every address. Its types would cost the bot a megabyte for what `incoming` reads of an update in any case: they are
//! the tests' second reader of what these send.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use reqwest::multipart::{Form, Part};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use super::{
    command::MenuCommand,
    error::{Parameters, TelegramError},
};
use crate::types::{Question, TextFile};

/// How long a connection may take to be made. Below [`CALL_TIMEOUT`], so that a dead network is known as "not sent".
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a call may take in all.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// How much longer than its own time-out a long poll may take.
const POLL_GRACE: Duration = Duration::from_secs(10);
/// How long an idle connection is kept. Short, because a message written to one that died silently is neither sent nor
/// surely not sent.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);
/// The longest answer that is read, in bytes: a full batch of the longest updates is far below.
const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;
/// What is said of a longer one.
const ANSWER_TOO_LONG: &str = "an answer of more than 8 MiB";

/// A bot's door to Telegram.
#[derive(Debug)]
pub struct Telegram {
    /// Made when first needed: most wakes have nothing to say, and pay for no TLS set-up.
    client: Mutex<Option<reqwest::Client>>,
    /// Whether the server is this machine itself, which no proxy stands before.
    is_local: bool,
    /// The server's address without a slash at its end.
    pub(super) base_url: String,
    pub(super) token: BotToken,
    bot_id: i64,
    pub(super) call_timeout: Duration,
    poll_grace: Duration,
}

/// Why there is no client. No text holds the token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetUpError {
    /// The token hasn't the shape of one.
    #[error("TELEGRAM_BOT_TOKEN isn't a bot's token: expected digits, a colon and letters, as @BotFather gives it")]
    Token,
    /// The server's address can't be used.
    #[error("TELEGRAM_API_URL can't be used: expected an http or https address without a query")]
    Url,
}

/// The bot's token, which `Debug` doesn't show.
pub(super) struct BotToken(pub(super) String);

impl fmt::Debug for BotToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl BotToken {
    /// The number before the colon: the bot's own id. None if this isn't a token.
    fn bot_id(&self) -> Option<i64> {
        let (id, secret) = self.0.split_once(':')?;
        let well_formed = secret.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        (well_formed && !secret.is_empty()).then(|| id.parse().ok()).flatten()
    }

    /// `text` with the token and its secret half blotted out, should a server have echoed them.
    pub(super) fn scrub(&self, text: &str) -> String {
        let secret = self.0.split_once(':').map_or("", |(_, secret)| secret);
        let text = text.replace(&self.0, "***");
        if secret.len() < 8 { text } else { text.replace(secret, "***") }
    }
}

/// What `getMe` says of the bot.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Me {
    /// The bot's user id.
    pub id: i64,
    /// The name that people see.
    #[serde(default)]
    pub first_name: String,
    /// The name after the `@`.
    #[serde(default)]
    pub username: String,
}

/// One update as it came.
#[derive(Debug, Clone)]
pub struct RawUpdate {
    /// Its number. The next offset is the number of a batch's last update + 1.
    pub update_id: i64,
    /// The update's JSON, byte for byte.
    pub raw: Box<RawValue>,
}

impl RawUpdate {
    /// Reads one update. Only its number is needed; none if there is none.
    pub fn parse(raw: Box<RawValue>) -> Option<Self> {
        #[derive(Deserialize)]
        struct Numbered {
            update_id: i64,
        }
        let Numbered { update_id } = serde_json::from_str(raw.get()).ok()?;
        Some(Self { update_id, raw })
    }
}

/// A message to be sent.
#[derive(Debug, Clone, Copy)]
pub struct SendMessage<'a> {
    /// The chat it goes to.
    pub chat_id: i64,
    /// The forum topic; none for the general one.
    pub thread_id: Option<i64>,
    /// The message it answers; it is sent all the same if that is gone.
    pub reply_to: Option<i64>,
    /// The text.
    pub text: &'a str,
    /// Whether the text is Telegram HTML.
    pub html: bool,
    /// Delivered without a sound.
    pub silent: bool,
    /// A file that the text stands under.
    pub file: Option<&'a TextFile>,
    /// Buttons.
    pub question: Option<&'a Question>,
}

/// What `getWebhookInfo` says.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct WebhookInfo {
    /// The webhook's address; empty when there is none.
    pub url: String,
}

impl WebhookInfo {
    /// Where the webhook leads, without the path, which may hold a secret; `None` when there is none.
    pub fn host(&self) -> Option<String> {
        if self.url.is_empty() {
            return None;
        }
        let url = reqwest::Url::parse(&self.url).ok();
        Some(
            url.and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_else(|| "an unreadable address".to_owned()),
        )
    }
}

impl Telegram {
    /// A client for the bot with this token at this server. Makes no call yet.
    pub fn new(base_url: &str, token: String) -> Result<Self, SetUpError> {
        let token = BotToken(token);
        let bot_id = token.bot_id().ok_or(SetUpError::Token)?;
        let url = reqwest::Url::parse(base_url).map_err(|_| SetUpError::Url)?;
        if !matches!(url.scheme(), "http" | "https") || url.query().is_some() || url.fragment().is_some() {
            return Err(SetUpError::Url);
        }
        Ok(Self {
            client: Mutex::default(),
            is_local: is_this_machine(&url),
            base_url: base_url.trim_end_matches('/').to_owned(),
            token,
            bot_id,
            call_timeout: CALL_TIMEOUT,
            poll_grace: POLL_GRACE,
        })
    }

    /// The same client with other bounds, for tests of what happens when they are reached.
    #[must_use]
    pub fn with_timeouts(mut self, call: Duration, poll_grace: Duration) -> Self {
        self.call_timeout = call;
        self.poll_grace = poll_grace;
        self
    }

    /// The bot's id, which its token begins with: update numbers of different bots have nothing to do with each other.
    pub fn bot_id(&self) -> i64 {
        self.bot_id
    }

    /// Asks who the bot is.
    pub async fn get_me(&self) -> Result<Me, TelegramError> {
        self.call("getMe", &serde_json::json!({}), self.call_timeout).await
    }

    /// Fetches up to `limit` (1 to 100) updates from `offset` on, fewer where so many are too long for one answer, waiting up to
    /// `timeout_s` seconds for the first. The
    /// call confirms every update below `offset`: Telegram then forgets them.
    pub async fn get_updates(
        &self,
        offset: Option<i64>,
        limit: u8,
        timeout_s: u32,
        allowed_updates: &[&str],
    ) -> Result<Vec<RawUpdate>, TelegramError> {
        #[derive(Serialize)]
        struct GetUpdates<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            offset: Option<i64>,
            limit: u8,
            timeout: u32,
            allowed_updates: &'a [&'a str],
        }
        let bound = Duration::from_secs(timeout_s.into()) + self.poll_grace;
        let mut request = GetUpdates { offset, limit, timeout: timeout_s, allowed_updates };
        let batch: Vec<Box<RawValue>> = loop {
            match self.call("getUpdates", &request, bound).await {
                // Together they are too much; each by itself isn't.
                Err(TelegramError::Ambiguous { why }) if why == ANSWER_TOO_LONG && request.limit > 1 => {
                    request.limit = request.limit.div_ceil(4);
                }
                answer => break answer?,
            }
        };
        let unnumbered = || TelegramError::Ambiguous { why: "an update came without its number".to_owned() };
        batch.into_iter().map(|raw| RawUpdate::parse(raw).ok_or_else(unnumbered)).collect()
    }

    /// Sends a message, as a file with a text under it if it carries one, and gives its id.
    pub async fn send_any(&self, message: SendMessage<'_>) -> Result<i64, TelegramError> {
        match message.file {
            Some(file) => self.send_document(message, file).await,
            None => self.send_message(message).await,
        }
    }

    /// Sends a message without link previews and gives its id.
    pub async fn send_message(&self, message: SendMessage<'_>) -> Result<i64, TelegramError> {
        let sent: Sent = self.call("sendMessage", &MessageRequest::from(message), self.call_timeout).await?;
        Ok(sent.message_id)
    }

    /// Sends a file with the message's text, of 1,024 characters at most, under it.
    async fn send_document(&self, message: SendMessage<'_>, file: &TextFile) -> Result<i64, TelegramError> {
        let request = MessageRequest::from(message);
        let json = |value: serde_json::Result<String>| {
            value.map_err(|error| TelegramError::NotSent { why: format!("a request that can't be written: {error}") })
        };
        let file = Part::bytes(file.text.as_bytes().to_vec()).file_name(file.name.clone());
        let mut form = Form::new()
            .text("chat_id", message.chat_id.to_string())
            .text("caption", message.text.to_owned())
            .part("document", file);
        if let Some(thread_id) = message.thread_id {
            form = form.text("message_thread_id", thread_id.to_string());
        }
        if let Some(mode) = request.parse_mode {
            form = form.text("parse_mode", mode);
        }
        if let Some(reply) = &request.reply_parameters {
            form = form.text("reply_parameters", json(serde_json::to_string(reply))?);
        }
        if let Some(buttons) = &request.reply_markup {
            form = form.text("reply_markup", json(serde_json::to_string(buttons))?);
        }
        let sent: Sent = self.exchange("sendDocument", self.call_timeout, |post| post.multipart(form)).await?;
        Ok(sent.message_id)
    }

    /// Shows "typing…" for up to five seconds.
    pub async fn send_typing(&self, chat_id: i64, thread_id: Option<i64>) -> Result<(), TelegramError> {
        #[derive(Serialize)]
        struct SendChatAction {
            chat_id: i64,
            #[serde(skip_serializing_if = "Option::is_none")]
            message_thread_id: Option<i64>,
            action: &'static str,
        }
        let request = SendChatAction { chat_id, message_thread_id: thread_id, action: "typing" };
        self.call("sendChatAction", &request, self.call_timeout).await.map(|_: bool| ())
    }

    /// Puts a reaction, an emoji of Telegram's list, on a message, in place of ours that may be there.
    pub async fn set_reaction(&self, chat_id: i64, message_id: i64, emoji: &str) -> Result<(), TelegramError> {
        let reaction = serde_json::json!([{ "type": "emoji", "emoji": emoji }]);
        let request = serde_json::json!({ "chat_id": chat_id, "message_id": message_id, "reaction": reaction });
        self.call("setMessageReaction", &request, self.call_timeout).await.map(|_: bool| ())
    }

    /// Puts another text in place of one of our own messages.
    pub async fn edit_message_text(&self, chat_id: i64, message_id: i64, text: &str) -> Result<(), TelegramError> {
        let request = serde_json::json!({
            "chat_id": chat_id, "message_id": message_id, "text": text, "link_preview_options": { "is_disabled": true },
        });
        self.call("editMessageText", &request, self.call_timeout).await.map(|_: serde::de::IgnoredAny| ())
    }

    /// Puts another text under a file of ours, and takes its buttons away.
    pub async fn edit_message_caption(&self, chat_id: i64, message_id: i64, text: &str) -> Result<(), TelegramError> {
        let request = serde_json::json!({ "chat_id": chat_id, "message_id": message_id, "caption": text });
        self.call("editMessageCaption", &request, self.call_timeout).await.map(|_: serde::de::IgnoredAny| ())
    }

    /// Tells who pressed a button what became of it, within the seconds in which Telegram waits for that.
    pub async fn answer_callback_query(&self, callback_id: &str, text: &str) -> Result<(), TelegramError> {
        let request = serde_json::json!({ "callback_query_id": callback_id, "text": text });
        self.call("answerCallbackQuery", &request, self.call_timeout).await.map(|_: bool| ())
    }

    /// Takes a message away.
    pub async fn delete_message(&self, chat_id: i64, message_id: i64) -> Result<(), TelegramError> {
        let request = serde_json::json!({ "chat_id": chat_id, "message_id": message_id });
        self.call("deleteMessage", &request, self.call_timeout).await.map(|_: bool| ())
    }

    /// Registers the commands that Telegram offers while people type.
    pub async fn set_my_commands(&self, commands: &[MenuCommand]) -> Result<(), TelegramError> {
        let request = serde_json::json!({ "commands": commands });
        self.call("setMyCommands", &request, self.call_timeout).await.map(|_: bool| ())
    }

    /// Asks whether a webhook takes this bot's updates away, for explaining a [`TelegramError::Conflict`].
    pub async fn get_webhook_info(&self) -> Result<WebhookInfo, TelegramError> {
        self.call("getWebhookInfo", &serde_json::json!({}), self.call_timeout).await
    }

    /// Takes the webhook away that keeps this bot's updates from being fetched. What waits there is kept, and fetched.
    pub async fn delete_webhook(&self) -> Result<(), TelegramError> {
        let request = serde_json::json!({ "drop_pending_updates": false });
        self.call("deleteWebhook", &request, self.call_timeout).await.map(|_: bool| ())
    }

    /// Makes the next call over a new connection, with the network and the names in it as they are then. Calls that are under way
    /// go on over theirs.
    pub fn reconnect(&self) {
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(super) fn client(&self) -> Result<reqwest::Client, TelegramError> {
        let mut kept = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = &*kept {
            return Ok(client.clone());
        }
        let mut client = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .http1_only()
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(1);
        if self.is_local {
            client = client.no_proxy();
        }
        let client = client.build().map_err(|error| TelegramError::NotSent {
            why: format!("the HTTP client couldn't be set up: {}", error.without_url()),
        })?;
        Ok(kept.insert(client).clone())
    }

    /// One call within `bound`. The body of the answer counts too: half an answer is none.
    pub(super) async fn call<R: DeserializeOwned>(
        &self,
        method: &str,
        request: &impl Serialize,
        bound: Duration,
    ) -> Result<R, TelegramError> {
        self.exchange(method, bound, |post| post.json(request)).await
    }

    /// [`Telegram::call`] with a body of any kind.
    async fn exchange<R: DeserializeOwned>(
        &self,
        method: &str,
        bound: Duration,
        with_body: impl FnOnce(reqwest::RequestBuilder) -> reqwest::RequestBuilder,
    ) -> Result<R, TelegramError> {
        let url = format!("{}/bot{}/{method}", self.base_url, self.token.0);
        let exchange = async {
            let response = with_body(self.client()?.post(url)).timeout(bound).send().await;
            let response = response.map_err(TelegramError::from_transport)?;
            let status = response.status().as_u16();
            read_answer(status, &read_body(response).await?)
        };
        exchange.await.map_err(|error| error.map_text(|text| self.token.scrub(text)))
    }
}

/// Reads an answer's body, up to [`ANSWER_BYTES_MAX`]. Failing here is always ambiguous: the call was answered.
pub(super) async fn read_body(mut response: reqwest::Response) -> Result<Vec<u8>, TelegramError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(TelegramError::from_transport)? {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err(TelegramError::Ambiguous { why: ANSWER_TOO_LONG.to_owned() });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Sorts an answer into its result or an error.
pub(super) fn read_answer<R: DeserializeOwned>(status: u16, body: &[u8]) -> Result<R, TelegramError> {
    #[derive(Deserialize)]
    struct Answer<'a> {
        ok: bool,
        #[serde(borrow)]
        result: Option<&'a RawValue>,
        error_code: Option<i64>,
        description: Option<String>,
        parameters: Option<Parameters>,
    }
    let Ok(answer) = serde_json::from_slice::<Answer<'_>>(body) else {
        return Err(TelegramError::from_foreign_answer(status));
    };
    if !answer.ok {
        let code = answer.error_code.unwrap_or_else(|| status.into());
        let description = answer.description.unwrap_or_default();
        return Err(TelegramError::from_answer(code, &description, &answer.parameters.unwrap_or_default()));
    }
    let result = answer.result.map_or("null", RawValue::get);
    serde_json::from_str(result)
        .map_err(|error| TelegramError::Ambiguous { why: format!("an answer that isn't understood: {error}") })
}

/// `sendMessage` as it goes over the wire.
#[derive(Serialize)]
struct MessageRequest<'a> {
    chat_id: i64,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_thread_id: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parse_mode: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_parameters: Option<ReplyParameters>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    disable_notification: bool,
    link_preview_options: LinkPreviewOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_markup: Option<Keyboard>,
}

/// What is read of a message that was sent.
#[derive(Deserialize)]
struct Sent {
    message_id: i64,
}

#[derive(Serialize)]
struct Keyboard {
    inline_keyboard: [[Button; 2]; 1],
}

#[derive(Serialize)]
struct Button {
    text: &'static str,
    callback_data: String,
}

impl From<&Question> for Keyboard {
    fn from(question: &Question) -> Self {
        let yes = Button { text: "✅ Allow once", callback_data: question.yes() };
        let no = Button { text: "❌ No", callback_data: question.no() };
        Self { inline_keyboard: [[yes, no]] }
    }
}

#[derive(Serialize)]
struct ReplyParameters {
    message_id: i64,
    allow_sending_without_reply: bool,
}

#[derive(Serialize)]
struct LinkPreviewOptions {
    is_disabled: bool,
}

impl<'a> From<SendMessage<'a>> for MessageRequest<'a> {
    fn from(message: SendMessage<'a>) -> Self {
        Self {
            chat_id: message.chat_id,
            text: message.text,
            message_thread_id: message.thread_id,
            parse_mode: message.html.then_some("HTML"),
            reply_parameters: message
                .reply_to
                .map(|message_id| ReplyParameters { message_id, allow_sending_without_reply: true }),
            disable_notification: message.silent,
            link_preview_options: LinkPreviewOptions { is_disabled: true },
            reply_markup: message.question.map(Keyboard::from),
        }
    }
}

/// Whether an address leads to this machine, which is never asked through a proxy.
fn is_this_machine(url: &reqwest::Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}
