//! The transport to the Bot API: one bounded call, with failures sorted by the next step.
//!
//! Requests and answers use teloxide-core's types, but not its client. That client waits ten seconds on a server error, drops the
//! error's code, and its errors can show the token, which is part of every address. Updates are kept raw and interpreted later
//! (`incoming`), so that an unreadable update neither blocks nor drops its batch.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use chrono::{DateTime, Utc};
use reqwest::multipart::{Form, Part};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, value::RawValue};
use teloxide_core::{
    payloads::{
        DeleteWebhook, GetMe, GetUpdates, GetWebhookInfo, SendDocument, SendMessage, SetMyCommands, SetWebhook,
    },
    requests::Payload,
    types::{AllowedUpdate, BotCommand, True, User},
};

use reveille_base::types::TextFile;

use super::error::{Parameters, TelegramError};

/// A message of ours that Telegram accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct AcceptedMessage {
    /// The id in its chat.
    pub message_id: i64,
    /// The time by Telegram's clock.
    #[serde(default, deserialize_with = "read_date")]
    pub date: Option<DateTime<Utc>>,
}

/// Parses seconds since 1970. Another form becomes `None`, because the message was sent anyway.
fn read_date<'de, D: serde::Deserializer<'de>>(date: D) -> Result<Option<DateTime<Utc>>, D::Error> {
    let seconds = Value::deserialize(date)?.as_i64();
    Ok(seconds.and_then(|seconds| DateTime::from_timestamp(seconds, 0)))
}

/// The time-out for connecting. Below [`CALL_TIMEOUT`], so that a dead network counts as "not sent".
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The time-out of a call.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// The extra time allowed for a long poll beyond its own time-out.
const POLL_GRACE: Duration = Duration::from_secs(10);
/// The lifetime of an idle connection. Short, because a message written to a silently dead connection is in doubt rather than
/// certainly unsent.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);
/// The maximum length of an answer in bytes; a full batch of the longest updates is far shorter.
const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The requested kinds of updates.
const ALLOWED_UPDATES: [AllowedUpdate; 3] =
    [AllowedUpdate::Message, AllowedUpdate::EditedMessage, AllowedUpdate::CallbackQuery];
/// The error text for an answer longer than [`ANSWER_BYTES_MAX`].
const ANSWER_TOO_LONG: &str = "an answer of more than 8 MiB";

/// The client for a bot's Telegram API.
#[derive(Debug)]
pub struct Telegram {
    /// Created on first use, because most wakes send nothing and should skip the TLS set-up.
    client: Mutex<Option<reqwest::Client>>,
    /// True if the server is on this machine, which needs no proxy.
    is_local: bool,
    /// The server's address without a trailing slash.
    pub(super) base_url: String,
    pub(super) token: BotToken,
    bot_id: i64,
    pub(super) call_timeout: Duration,
    poll_grace: Duration,
}

/// The reason for a failure to create the client. Texts don't contain the token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetUpError {
    /// The token is malformed.
    #[error("TELEGRAM_BOT_TOKEN isn't a bot's token: expected digits, a colon and letters, as @BotFather gives it")]
    Token,
    /// The server's address is unusable.
    #[error("TELEGRAM_API_URL can't be used: expected an http or https address without a query")]
    Url,
}

/// The bot's token, hidden from `Debug`.
pub(super) struct BotToken(pub(super) String);

impl fmt::Debug for BotToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl BotToken {
    /// The bot's id before the colon; `None` if the token is malformed.
    fn bot_id(&self) -> Option<i64> {
        let (id, secret) = self.0.split_once(':')?;
        let well_formed = secret.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        (well_formed && !secret.is_empty()).then(|| id.parse().ok()).flatten()
    }

    /// Masks the token and its secret half, in case a server echoes them.
    pub(super) fn scrub(&self, text: &str) -> String {
        let secret = self.0.split_once(':').map_or("", |(_, secret)| secret);
        let text = text.replace(&self.0, "***");
        if secret.len() < 8 { text } else { text.replace(secret, "***") }
    }
}

/// The result of `getMe`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Me {
    /// The bot's user id.
    pub id: i64,
    /// The displayed name.
    pub first_name: String,
    /// The name after the `@`.
    pub username: String,
}

/// An update as received.
#[derive(Debug, Clone)]
pub struct RawUpdate {
    /// The id of the update. The next offset is the id of a batch's last update + 1.
    pub update_id: i64,
    /// The JSON of the update, byte for byte.
    pub raw: Box<RawValue>,
}

impl RawUpdate {
    /// Parses an update, which only needs an id; `None` without an id.
    pub fn parse(raw: Box<RawValue>) -> Option<Self> {
        #[derive(Deserialize)]
        struct Numbered {
            update_id: i64,
        }
        let Numbered { update_id } = serde_json::from_str(raw.get()).ok()?;
        Some(Self { update_id, raw })
    }
}

/// The result of `getWebhookInfo`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct WebhookInfo {
    /// The address of the webhook; empty without a webhook.
    pub url: String,
}

impl WebhookInfo {
    /// The host of the webhook, without the path, which may be secret; `None` without a webhook.
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
    /// Creates a client for this token and server. Makes no call yet.
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

    /// Changes the time-outs, for tests.
    #[must_use]
    pub fn with_timeouts(mut self, call: Duration, poll_grace: Duration) -> Self {
        self.call_timeout = call;
        self.poll_grace = poll_grace;
        self
    }

    /// The bot's id from its token. Update ids of different bots are unrelated.
    pub fn bot_id(&self) -> i64 {
        self.bot_id
    }

    /// Asks for the bot's own user. Reads only the fields that servers of any age return.
    pub async fn get_me(&self) -> Result<Me, TelegramError> {
        let User { first_name, username, .. } = self.call(&GetMe::new()).await?;
        Ok(Me { id: self.bot_id, first_name, username: username.unwrap_or_default() })
    }

    /// Fetches up to `limit` (1 to 100) updates from `offset` on, waiting up to `timeout_s` seconds for the first. Fetches fewer if the
    /// answer would be too long. The call confirms every update below `offset`, which Telegram then deletes.
    pub async fn get_updates(
        &self,
        offset: Option<i64>,
        mut limit: u8,
        timeout_s: u32,
    ) -> Result<Vec<RawUpdate>, TelegramError> {
        let bound = Duration::from_secs(timeout_s.into()) + self.poll_grace;
        let batch: Vec<Box<RawValue>> = loop {
            let allowed_updates = Some(ALLOWED_UPDATES.to_vec());
            let request =
                GetUpdates { limit: Some(limit), timeout: Some(timeout_s), allowed_updates, ..GetUpdates::new() };
            let mut request = to_fields(&request)?;
            // An offset may exceed the library's type.
            if let Some(offset) = offset {
                request.insert("offset".to_owned(), offset.into());
            }
            match self.call_with_body(GetUpdates::NAME, bound, |post| post.json(&request)).await {
                // Together the updates are too long; ask for fewer.
                Err(TelegramError::Ambiguous { why }) if why == ANSWER_TOO_LONG && limit > 1 => {
                    limit = limit.div_ceil(4);
                }
                answer => break answer?,
            }
        };
        let count = batch.len();
        let updates: Vec<RawUpdate> = batch.into_iter().filter_map(RawUpdate::parse).collect();
        match count - updates.len() {
            0 => {}
            // Without an id nothing can be confirmed.
            _ if updates.is_empty() => {
                return Err(TelegramError::Ambiguous { why: "an update came without its id".to_owned() });
            }
            // Telegram gives every update an id, so the fault is another server's. The other updates needn't wait.
            without_id => tracing::warn!(without_id, "updates came without their ids and were skipped"),
        }
        Ok(updates)
    }

    /// Sends a message and returns its id, with its date if readable.
    pub async fn send_message(&self, message: &SendMessage) -> Result<AcceptedMessage, TelegramError> {
        self.call(message).await
    }

    /// Sends a message with a text file.
    pub async fn send_document(
        &self,
        message: &SendDocument,
        file: &TextFile,
    ) -> Result<AcceptedMessage, TelegramError> {
        let file = Part::bytes(file.text.as_bytes().to_vec()).file_name(file.name.clone());
        let mut form = Form::new().part("document", file);
        for (name, value) in to_fields(message)?.into_iter().filter(|(name, _)| name != "document") {
            form = match value {
                Value::String(text) => form.text(name, text),
                value => form.text(name, value.to_string()),
            };
        }
        self.call_with_body(SendDocument::NAME, self.call_timeout, |post| post.multipart(form)).await
    }

    /// Registers the commands that Telegram suggests while a person types.
    pub async fn set_my_commands(&self, commands: &[BotCommand]) -> Result<(), TelegramError> {
        self.call(&SetMyCommands::new(commands.iter().cloned())).await.map(|True| ())
    }

    /// Asks for the webhook of this bot, to explain a [`TelegramError::Conflict`].
    pub async fn get_webhook_info(&self) -> Result<WebhookInfo, TelegramError> {
        self.call(&GetWebhookInfo::new()).await
    }

    /// Sets the webhook to an address, with this secret, one update at a time. Waiting updates are sent there too.
    pub async fn set_webhook(&self, url: reqwest::Url, secret: &str) -> Result<(), TelegramError> {
        let request = SetWebhook {
            allowed_updates: Some(ALLOWED_UPDATES.to_vec()),
            // Keeps the order of updates.
            max_connections: Some(1),
            secret_token: Some(secret.to_owned()),
            ..SetWebhook::new(url)
        };
        self.call(&request).await.map(|True| ())
    }

    /// Removes the webhook, so that updates can be fetched. Waiting updates are kept.
    pub async fn delete_webhook(&self) -> Result<(), TelegramError> {
        self.call(&DeleteWebhook { drop_pending_updates: Some(false) }).await.map(|True| ())
    }

    /// Makes the next call over a new connection, with the present network and name resolution. Running calls keep their
    /// connections.
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

    /// Makes a call. The answer is parsed only as far as needed, because the library's full types can require absent fields.
    pub(super) async fn call<P: Payload + Serialize, R: DeserializeOwned>(
        &self,
        request: &P,
    ) -> Result<R, TelegramError> {
        let request = to_fields(request)?;
        self.call_with_body(P::NAME, self.call_timeout, |post| post.json(&request)).await
    }

    /// Makes a call with any body. Reading the answer counts toward `bound`, because half an answer is useless.
    async fn call_with_body<R: DeserializeOwned>(
        &self,
        method: &str,
        bound: Duration,
        with_body: impl FnOnce(reqwest::RequestBuilder) -> reqwest::RequestBuilder,
    ) -> Result<R, TelegramError> {
        let url = format!("{}/bot{}/{}", self.base_url, self.token.0, format_method(method));
        let exchange = async {
            let response = with_body(self.client()?.post(url)).timeout(bound).send().await;
            let response = response.map_err(TelegramError::from_transport)?;
            let status = response.status().as_u16();
            read_answer(status, &read_body(response).await?)
        };
        // fault: telegrams-words-passed-token
        exchange.await.map_err(|error| error.map_text(|text| self.token.scrub(text)))
    }
}

/// Reads an answer's body, up to [`ANSWER_BYTES_MAX`]. A failure is always ambiguous: the call was answered.
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

/// Parses an answer into its result or an error.
pub(super) fn read_answer<R: DeserializeOwned>(status: u16, body: &[u8]) -> Result<R, TelegramError> {
    #[derive(Deserialize)]
    struct Answer<'a> {
        ok: bool,
        #[serde(borrow)]
        result: Option<&'a RawValue>,
        error_code: Option<i64>,
        description: Option<String>,
        parameters: Option<Value>,
    }
    let Ok(answer) = serde_json::from_slice::<Answer<'_>>(body) else {
        return Err(TelegramError::from_foreign_answer(status));
    };
    if !answer.ok {
        let code = answer.error_code.unwrap_or_else(|| status.into());
        let description = answer.description.unwrap_or_default();
        let parameters = Parameters::parse(&answer.parameters.unwrap_or_default());
        return Err(TelegramError::from_answer(code, &description, &parameters));
    }
    let result = answer.result.map_or("null", RawValue::get);
    serde_json::from_str(result)
        .map_err(|error| TelegramError::Ambiguous { why: format!("the answer can't be parsed: {error}") })
}

/// The fields of a request as JSON.
fn to_fields(request: &impl Serialize) -> Result<Map<String, Value>, TelegramError> {
    let fields = serde_json::to_value(request).and_then(serde_json::from_value);
    fields.map_err(|error| TelegramError::NotSent { why: format!("the request can't be encoded: {error}") })
}

/// The documented spelling of a method: `sendMessage` for the library's `SendMessage`.
fn format_method(method: &str) -> String {
    let mut rest = method.chars();
    rest.next().into_iter().flat_map(char::to_lowercase).chain(rest).collect()
}

/// Returns true if an address leads to this machine, which is never reached through a proxy.
fn is_this_machine(url: &reqwest::Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}
