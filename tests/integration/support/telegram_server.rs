//! The serving side of the fake: reads requests from a connection, checks them, and carries out the call or the ordered fault.

use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, TcpStream},
    sync::{Condvar, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    telegram::SENT_AT,
    telegram::{Fault, SentMessage, ShownDraft, TOKEN},
    telegram_files::{self, Files},
    telegram_rich,
    telegram_spec::{Spec, visible_text},
};

#[derive(Default)]
pub(super) struct State {
    pub(super) updates: VecDeque<Value>,
    pub(super) files: Files,
    pub(super) next_update_id: i64,
    pub(super) sent: Vec<SentMessage>,
    pub(super) drafts: Vec<ShownDraft>,
    /// The bot's messages that weren't deleted: chat, id and present text.
    pub(super) standing: Vec<((i64, i64), String)>,
    pub(super) actions: Vec<(i64, Option<i64>, String)>,
    pub(super) calls: Vec<(String, Value)>,
    /// The ids of button presses that aren't answered yet.
    pub(super) taps: Vec<String>,
    pub(super) faults: Vec<(String, Fault)>,
    pub(super) violations: Vec<String>,
    /// The address of the webhook; empty if the updates are polled.
    pub(super) webhook: String,
    /// `true` to end the waiting poll.
    pub(super) is_poll_over: bool,
    /// The number of getUpdates calls: a new call ends an older one that still waits.
    polls: u64,
    pub(super) streams: Vec<TcpStream>,
    pub(super) stopping: bool,
    pub(super) is_released: bool,
}

pub(super) struct Shared {
    state: Mutex<State>,
    pub(super) changed: Condvar,
    spec: Spec,
}

/// The status and body of an answer; `None` to close the connection.
pub(super) type Answer = Option<(u16, Value)>;

impl Shared {
    pub(super) fn new() -> Self {
        let state = Mutex::new(State { next_update_id: 1000, ..State::default() });
        Self { state, changed: Condvar::new(), spec: Spec::load() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Answers the requests of one connection.
    pub(super) fn serve(&self, stream: &TcpStream) {
        let mut reader = BufReader::new(stream);
        while let Some((verb, path, content_type, body)) = read_request(&mut reader) {
            if let Some(path) = path.strip_prefix("/file/") {
                if self.download(&verb, path, stream) {
                    continue;
                }
                break;
            }
            let Some((status, answer)) = self.answer(&path, &content_type, &body) else {
                break;
            };
            let body = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
            let length = body.len();
            let elsewhere = if (300..400).contains(&status) { "Location: /elsewhere\r\n" } else { "" };
            let head = format!(
                "HTTP/1.1 {status} -\r\n{elsewhere}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
            );
            let mut writer = stream;
            if writer.write_all(format!("{head}{body}").as_bytes()).is_err() {
                break;
            }
        }
        let _closed_already = stream.shutdown(Shutdown::Both);
    }

    fn answer(&self, path: &str, content_type: &str, body: &[u8]) -> Answer {
        let Some(name) = path.strip_prefix(&format!("/bot{TOKEN}/")) else {
            return refusal(401, "Unauthorized", &Value::Null);
        };
        let Some(method) = self.spec.method(name) else {
            self.lock().violations.push(format!("no method {name}"));
            return refusal(404, "Not Found: method not found", &Value::Null);
        };
        let (request, is_known) = match content_type.split_once("multipart/form-data; boundary=") {
            Some(("", boundary)) => (form(body, boundary), method == "sendDocument"),
            _ => {
                let request = serde_json::from_slice(body).unwrap_or(Value::Null);
                (request, content_type.starts_with("application/json"))
            }
        };
        let mut problem = self.spec.check(&method, &request).err();
        if !is_known {
            problem = Some(format!("content type {content_type}"));
        }
        let mut state = self.lock();
        if let Some(problem) = problem {
            state.violations.push(format!("{method}: {problem}: {request}"));
            return refusal(400, &format!("Bad Request: {problem}"), &Value::Null);
        }
        state.calls.push((method.clone(), request.clone()));
        self.changed.notify_all();
        let fault = state.faults.iter().position(|(at, _)| *at == method).map(|at| state.faults.remove(at).1);
        match fault {
            None => self.perform(state, &method, &request),
            Some(Fault::Status(code, wait)) => refusal(code, "as ordered", &json!({ "retry_after": wait })),
            Some(Fault::Refuse(code, description, parameters)) => refusal(code, description, &parameters),
            Some(Fault::RefuseFormatting) => {
                refusal(400, "Bad Request: can't parse entities: as ordered", &Value::Null)
            }
            Some(Fault::Foreign(status)) => Some((status, json!("<html>not Telegram</html>"))),
            Some(Fault::CloseBefore) => None,
            Some(Fault::CloseAfterTaking) => self.perform(state, &method, &request).and(None),
            Some(Fault::Malformed) => {
                self.perform(state, &method, &request).map(|_| (200, json!("{\"ok\":true,\"resu")))
            }
            Some(Fault::Held) => {
                let is_held = |state: &mut State| !state.stopping && !state.is_released;
                let state = self.changed.wait_while(state, is_held).unwrap();
                self.perform(state, &method, &request)
            }
            Some(Fault::Stall) => {
                drop(self.changed.wait_while(state, |state| !state.stopping).unwrap());
                None
            }
        }
    }

    fn perform(&self, mut state: MutexGuard<'_, State>, method: &str, request: &Value) -> Answer {
        let result = match method {
            "getMe" => json!({"id": 99, "is_bot": true, "first_name": "Reveille", "username": "reveille_bot",
                "can_join_groups": true, "can_read_all_group_messages": false, "supports_inline_queries": false,
                "can_connect_to_business": false, "has_main_web_app": false}),
            "getWebhookInfo" => {
                json!({"url": state.webhook, "has_custom_certificate": false, "pending_update_count": 0})
            }
            "setWebhook" => {
                state.webhook = request["url"].as_str().unwrap().to_owned();
                json!(true)
            }
            "deleteWebhook" => {
                state.webhook.clear();
                json!(true)
            }
            "getUpdates" if !state.webhook.is_empty() => {
                let description = "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first";
                return refusal(409, description, &Value::Null);
            }
            "getUpdates" => return self.get_updates(state, request),
            "sendMessage" => match send_message(&mut state, request) {
                Ok(message) => message,
                Err(problem) => return refusal(400, &format!("Bad Request: {problem}"), &Value::Null),
            },
            "sendDocument" => match send_document(&mut state, request) {
                Ok(message) => message,
                Err(problem) => return refusal(400, &format!("Bad Request: {problem}"), &Value::Null),
            },
            "sendRichMessage" => match telegram_rich::send_rich_message(&mut state, request) {
                Ok(message) => message,
                Err(problem) => return refusal(400, &format!("Bad Request: {problem}"), &Value::Null),
            },
            "answerCallbackQuery" => {
                let id = request["callback_query_id"].as_str().unwrap();
                let Some(at) = state.taps.iter().position(|tap| tap == id) else {
                    let description =
                        "Bad Request: query is too old and response timeout expired or query ID is invalid";
                    return refusal(400, description, &Value::Null);
                };
                state.taps.remove(at);
                json!(true)
            }
            "getFile" => match telegram_files::get_file(&state, request) {
                Ok(file) => file,
                Err(problem) => return refusal(400, &format!("Bad Request: {problem}"), &Value::Null),
            },
            "editMessageText" | "editMessageCaption" => match edit_message(&mut state, request) {
                Ok(()) => json!({"message_id": request["message_id"], "date": SENT_AT,
                    "chat": {"id": request["chat_id"], "type": "private", "first_name": "Ana"}}),
                Err(problem) => return refusal(400, &format!("Bad Request: {problem}"), &Value::Null),
            },
            "deleteMessage" => match standing(&state, request) {
                Some(at) => {
                    state.standing.remove(at);
                    json!(true)
                }
                None => return refusal(400, "Bad Request: message to delete not found", &Value::Null),
            },
            "setMessageReaction" => {
                if request["reaction"] != json!([{"type": "emoji", "emoji": "👀"}]) {
                    return refusal(400, "Bad Request: REACTION_INVALID", &Value::Null);
                }
                json!(true)
            }
            "sendMessageDraft" => match take_draft(&mut state, request) {
                Ok(()) => json!(true),
                Err(problem) => return refusal(400, &format!("Bad Request: {problem}"), &Value::Null),
            },
            "sendChatAction" => {
                let thread_id = request["message_thread_id"].as_i64();
                let action = request["action"].as_str().unwrap().to_owned();
                state.actions.push((request["chat_id"].as_i64().unwrap(), thread_id, action));
                json!(true)
            }
            _ => json!(true),
        };
        if let Err(problem) = self.spec.check_answer(method, &result) {
            state.violations.push(format!("{method}: the fake's own answer: {problem}: {result}"));
        }
        self.changed.notify_all();
        Some((200, json!({"ok": true, "result": result})))
    }

    /// Drops the updates that the offset confirms, then waits for updates, for the end of the requested time, or for a rival poll.
    fn get_updates<'a>(&'a self, mut state: MutexGuard<'a, State>, request: &Value) -> Answer {
        state.polls += 1;
        let this = state.polls;
        self.changed.notify_all();
        let offset = request["offset"].as_i64().unwrap_or(0);
        state.updates.retain(|update| update["update_id"].as_i64().unwrap() >= offset);
        let until = Instant::now() + Duration::from_secs(request["timeout"].as_u64().unwrap_or(0));
        while state.updates.is_empty()
            && state.polls == this
            && !state.stopping
            && !std::mem::take(&mut state.is_poll_over)
        {
            let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) else {
                break;
            };
            state = self.changed.wait_timeout(state, left).unwrap().0;
        }
        if state.polls != this {
            let description =
                "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running";
            return refusal(409, description, &Value::Null);
        }
        let limit = usize::try_from(request["limit"].as_u64().unwrap_or(100)).unwrap();
        let batch: Vec<Value> = state.updates.iter().take(limit).cloned().collect();
        Some((200, json!({"ok": true, "result": batch})))
    }
}

/// Converts a form to a JSON request with the same meaning; a file becomes its text.
fn form(body: &[u8], boundary: &str) -> Value {
    let text = String::from_utf8(body.to_vec()).unwrap();
    let mut request = json!({});
    for part in text.split(&format!("--{boundary}")).filter_map(|part| part.trim_start().split_once("\r\n\r\n")) {
        let (head, value) = part;
        let named = |what: &str| head.split_once(&format!("{what}=\"")).and_then(|(_, rest)| rest.split_once('"'));
        let Some((name, _)) = named(" name") else { continue };
        let value = value.strip_suffix("\r\n").unwrap();
        request[name] = match name {
            "chat_id" | "message_thread_id" => json!(value.parse::<i64>().unwrap()),
            "reply_markup" | "reply_parameters" => serde_json::from_str(value).unwrap(),
            _ => json!(value),
        };
    }
    request
}

fn send_document(state: &mut State, request: &Value) -> Result<Value, String> {
    let mut message = request.clone();
    let fields = message.as_object_mut().unwrap();
    let file = fields.remove("document").unwrap();
    let caption = fields.remove("caption").unwrap_or_default();
    let text = caption.as_str().unwrap_or_default();
    let visible = if request["parse_mode"] == "HTML" { visible_text(text) } else { Ok(text.to_owned()) };
    if visible.unwrap_or_default().encode_utf16().count() > 1024 {
        return Err("message caption is too long".to_owned());
    }
    fields.insert("text".to_owned(), caption);
    let sent = send_message(state, &message)?;
    state.sent.last_mut().unwrap().file = file.as_str().map(str::to_owned);
    Ok(sent)
}

/// Takes a draft, as the real server does: in private chats alone, and with a text that a message may have.
fn take_draft(state: &mut State, request: &Value) -> Result<(), String> {
    let (chat_id, number) = (request["chat_id"].as_i64().unwrap(), request["draft_id"].as_i64().unwrap());
    if chat_id <= 0 {
        return Err("drafts are for private chats".to_owned());
    }
    if number == 0 {
        return Err("DRAFT_ID_INVALID".to_owned());
    }
    let text = request["text"].as_str().unwrap_or_default();
    let visible = if request["parse_mode"] == "HTML" {
        visible_text(text).map_err(|error| format!("can't parse entities: {error}"))?
    } else {
        text.to_owned()
    };
    if visible.encode_utf16().count() > 4096 {
        return Err("message is too long".to_owned());
    }
    let sent = state.sent.iter().filter(|message| message.chat_id == chat_id).count();
    state.drafts.push(ShownDraft { chat_id, number, text: text.to_owned(), visible, sent });
    Ok(())
}

fn send_message(state: &mut State, request: &Value) -> Result<Value, String> {
    let text = request["text"].as_str().unwrap();
    let html = request["parse_mode"] == "HTML";
    let visible = if html {
        visible_text(text).map_err(|error| format!("can't parse entities: {error}"))?
    } else {
        text.to_owned()
    };
    if html {
        let stretches = text.split('<').skip(1).filter(|tag| !tag.starts_with('/')).count();
        if stretches - text.matches("<pre><code").count() > 100 {
            state
                .violations
                .push(format!("{stretches} stretches of formatting, of which Telegram ignores those beyond 100"));
        }
        let addresses = text.split("<a href=\"").skip(1).filter_map(|rest| rest.split('"').next());
        if addresses.map(str::len).sum::<usize>() > 9_500 {
            return Err("ENTITIES_TOO_LONG".to_owned());
        }
    }
    match visible.encode_utf16().count() {
        _ if visible.trim().is_empty() => return Err("message text is empty".to_owned()),
        4097.. => return Err("message is too long".to_owned()),
        _ => {}
    }
    let message = SentMessage {
        message_id: 5000 + i64::try_from(state.sent.len()).unwrap(),
        chat_id: request["chat_id"].as_i64().unwrap(),
        thread_id: request["message_thread_id"].as_i64(),
        reply_to: request["reply_parameters"]["message_id"].as_i64(),
        text: text.to_owned(),
        visible: visible.clone(),
        html,
        silent: request["disable_notification"] == true,
        preview: request["link_preview_options"]["is_disabled"] != true,
        buttons: buttons(request)?,
        file: None,
        is_rich: false,
    };
    state.sent.push(message.clone());
    state.standing.push(((message.chat_id, message.message_id), visible.clone()));
    Ok(json!({"message_id": message.message_id, "date": SENT_AT, "text": visible,
        "chat": {"id": message.chat_id, "type": "private", "first_name": "Ana"},
        "from": {"id": 99, "is_bot": true, "first_name": "Reveille", "username": "reveille_bot"}}))
}

/// The data that the buttons under a message send back.
pub(super) fn buttons(request: &Value) -> Result<Vec<String>, String> {
    let rows = request["reply_markup"]["inline_keyboard"].as_array().into_iter().flatten();
    let data: Vec<String> = rows
        .flat_map(|row| row.as_array().unwrap())
        .map(|button| button["callback_data"].as_str().unwrap_or_default().to_owned())
        .collect();
    if data.iter().any(|data| data.is_empty() || data.len() > 64) {
        return Err("BUTTON_DATA_INVALID".to_owned());
    }
    Ok(data)
}

/// The index of the message that a request names.
fn standing(state: &State, request: &Value) -> Option<usize> {
    let named = (request["chat_id"].as_i64()?, request["message_id"].as_i64()?);
    state.standing.iter().position(|(message, _)| *message == named)
}

fn edit_message(state: &mut State, request: &Value) -> Result<(), String> {
    let text = request["text"].as_str().or_else(|| request["caption"].as_str()).unwrap();
    let at = standing(state, request).ok_or("message to edit not found")?;
    match state.standing.get_mut(at) {
        Some((_, said)) if *said == text => Err("message is not modified".to_owned()),
        Some((_, said)) => {
            text.clone_into(said);
            Ok(())
        }
        None => Err("message to edit not found".to_owned()),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "an answer, as the others are")]
pub(super) fn refusal(code: u16, description: &str, parameters: &Value) -> Answer {
    let mut answer = json!({"ok": false, "error_code": code, "description": description});
    if parameters.as_object().is_some_and(|fields| fields.values().any(|value| !value.is_null())) {
        answer["parameters"] = parameters.clone();
    }
    Some((code, answer))
}

/// Reads one request: its verb, path, content type and body; `None` at the connection's end.
fn read_request(reader: &mut BufReader<&TcpStream>) -> Option<(String, String, String, Vec<u8>)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut words = line.split(' ').map(str::to_owned);
    let (verb, path) = (words.next()?, words.next()?);
    let (mut content_type, mut length) = (String::new(), 0);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok().filter(|read| *read > 0)?;
        let Some((name, value)) = header.trim_end().split_once(": ") else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-type" => content_type = value.to_owned(),
            "content-length" => length = value.parse().ok()?,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((verb, path, content_type, body))
}
