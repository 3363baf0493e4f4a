//! Checks requests like the real Bot API: whether the parameters are known, present and of the right type, and whether the HTML parses. The
//! rules come from the machine-readable API that `TELEGRAM_API_SPEC` names, or else from a small built-in table in the same format. Only
//! the machine-readable API describes answers, so only with it are the fake's answers checked too.

use serde_json::{Value, json};

/// The methods and types of the Bot API.
pub(crate) struct Spec(Value);

/// The path and content of the machine-readable API; `None` if the variable isn't set.
#[expect(clippy::disallowed_methods, reason = "the specification is an input of the test run, not of the program")]
fn named() -> Option<(String, Value)> {
    let path = std::env::var("TELEGRAM_API_SPEC").ok()?;
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("TELEGRAM_API_SPEC {path}: {error}"));
    Some((path, serde_json::from_str(&text).unwrap()))
}

/// The types of the machine-readable API; `None` if the variable isn't set.
pub(crate) fn types() -> Option<Value> {
    named().map(|(_, mut spec)| spec["types"].take())
}

impl Spec {
    pub(crate) fn load() -> Self {
        static SAID: std::sync::Once = std::sync::Once::new();
        if let Some((path, spec)) = named() {
            SAID.call_once(|| eprintln!("requests are checked against {path}"));
            return Self(spec);
        }
        SAID.call_once(|| eprintln!("requests are checked against the built-in table: TELEGRAM_API_SPEC isn't set"));
        Self(built_in())
    }

    /// The name of a method as the documentation spells it: `SendMessage` means `sendMessage`.
    pub(crate) fn method(&self, name: &str) -> Option<String> {
        let methods = self.0["methods"].as_object().unwrap();
        methods.keys().find(|known| known.eq_ignore_ascii_case(name)).cloned()
    }

    /// Checks a call.
    ///
    /// # Errors
    /// A description of the fault.
    pub(crate) fn check(&self, method: &str, request: &Value) -> Result<(), String> {
        self.check_fields(method, &self.0["methods"][method]["fields"], request)
    }

    /// Checks the answer to a call; the built-in table accepts every answer.
    ///
    /// # Errors
    /// A description of the fault.
    pub(crate) fn check_answer(&self, method: &str, result: &Value) -> Result<(), String> {
        let Some(kinds) = self.0["methods"][method]["returns"].as_array() else { return Ok(()) };
        let tried = kinds.iter().filter_map(Value::as_str).map(|kind| self.check_type("result", kind, result));
        let problems: Vec<String> = tried.filter_map(Result::err).collect();
        if problems.len() < kinds.len() { Ok(()) } else { Err(problems.join(", or ")) }
    }

    fn check_fields(&self, what: &str, fields: &Value, given: &Value) -> Result<(), String> {
        let none = Vec::new();
        let fields = fields.as_array().unwrap_or(&none);
        let given = given.as_object().ok_or_else(|| format!("{what}: {given} isn't an object"))?;
        for (name, value) in given {
            let field = fields.iter().find(|field| field["name"] == name.as_str());
            let field = field.ok_or_else(|| format!("{what} has no {name}"))?;
            let types: Vec<&str> = field["types"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            let problems: Vec<String> =
                types.iter().filter_map(|kind| self.check_type(name, kind, value).err()).collect();
            if problems.len() == types.len() {
                return Err(format!("{what}.{name}: {}", problems.join(", or ")));
            }
        }
        let missing = fields
            .iter()
            .find(|field| field["required"] == true && !given.contains_key(field["name"].as_str().unwrap()));
        missing.map_or(Ok(()), |field| Err(format!("{what} lacks {}", field["name"])))
    }

    /// Checks an object against its type, or against the type's subtypes if it has any.
    fn check_object(&self, kind: &str, value: &Value) -> Result<(), String> {
        let known = &self.0["types"][kind];
        let Some(subtypes) = known["subtypes"].as_array() else {
            return self.check_fields(kind, &known["fields"], value);
        };
        let mut tried = subtypes.iter().filter_map(Value::as_str).map(|subtype| self.check_object(subtype, value));
        if tried.any(|tried| tried.is_ok()) { Ok(()) } else { Err(format!("{value} is no {kind}")) }
    }

    fn check_type(&self, name: &str, kind: &str, value: &Value) -> Result<(), String> {
        let fits = match kind {
            "Integer" => value.is_i64(),
            "String" => value.is_string(),
            "Boolean" => value.is_boolean(),
            "Float" => value.is_number(),
            _ => match kind.strip_prefix("Array of ") {
                Some(kind) => {
                    let items = value.as_array().ok_or_else(|| format!("{name} isn't an array"))?;
                    return items.iter().try_for_each(|item| self.check_type(name, kind, item));
                }
                None => return self.check_object(kind, value),
            },
        };
        if fits { Ok(()) } else { Err(format!("{name} isn't {kind}: {value}")) }
    }
}

#[test]
fn an_answer_that_telegram_would_not_give_is_detected() {
    let field = |name: &str, kind: &str| json!({"name": name, "types": [kind], "required": true});
    let spec = Spec(json!({
        "methods": {"editMessageText": {"returns": ["Message", "Boolean"]}},
        "types": {"Message": {"fields": [field("message_id", "Integer"), field("chat", "Chat")]},
            "Chat": {"fields": [field("id", "Integer"), field("type", "String")]}},
    }));
    let answer = |result: &Value| spec.check_answer("editMessageText", result);
    answer(&json!(true)).unwrap();
    answer(&json!({"message_id": 1, "chat": {"id": 2, "type": "private"}})).unwrap();
    for (wrong, why) in [
        (json!({"message_id": 1, "chat": {"id": "2", "type": "private"}}), "id isn't Integer"),
        (json!({"message_id": 1, "chat": {"id": 2}}), "Chat lacks \"type\""),
        (json!({"message_id": 1, "chat": {"id": 2, "type": "private"}, "seen": 1}), "Message has no seen"),
        (json!(3), "isn't Boolean"),
    ] {
        let said = answer(&wrong).unwrap_err();
        assert!(said.contains(why), "{said}");
    }
}

/// The methods that the program uses, as in Bot API 9.2.
fn built_in() -> Value {
    let field = |name: &str, kind: &str, required: bool| json!({"name": name, "types": [kind], "required": required});
    json!({
        "methods": {
            "getMe": {}, "getWebhookInfo": {},
            "setWebhook": {"fields": [field("url", "String", true), field("max_connections", "Integer", false),
                field("allowed_updates", "Array of String", false), field("secret_token", "String", false)]},
            "deleteWebhook": {"fields": [field("drop_pending_updates", "Boolean", false)]},
            "getFile": {"fields": [field("file_id", "String", true)]},
            "getUpdates": {"fields": [field("offset", "Integer", false), field("limit", "Integer", false),
                field("timeout", "Integer", false), field("allowed_updates", "Array of String", false)]},
            "sendMessage": {"fields": [field("chat_id", "Integer", true), field("message_thread_id", "Integer", false),
                field("text", "String", true), field("parse_mode", "String", false),
                field("link_preview_options", "LinkPreviewOptions", false), field("disable_notification", "Boolean", false),
                field("reply_parameters", "ReplyParameters", false), field("reply_markup", "InlineKeyboardMarkup", false)]},
            "sendMessageDraft": {"fields": [field("chat_id", "Integer", true), field("message_thread_id", "Integer", false),
                field("draft_id", "Integer", true), field("text", "String", false), field("parse_mode", "String", false)]},
            "sendDocument": {"fields": [field("chat_id", "Integer", true), field("message_thread_id", "Integer", false),
                field("document", "String", true), field("caption", "String", false), field("parse_mode", "String", false),
                field("reply_parameters", "ReplyParameters", false), field("reply_markup", "InlineKeyboardMarkup", false)]},
            "editMessageCaption": {"fields": [field("chat_id", "Integer", false), field("message_id", "Integer", false),
                field("caption", "String", false)]},
            "answerCallbackQuery": {"fields": [field("callback_query_id", "String", true), field("text", "String", false)]},
            "sendChatAction": {"fields": [field("chat_id", "Integer", true), field("message_thread_id", "Integer", false),
                field("action", "String", true)]},
            "editMessageText": {"fields": [field("chat_id", "Integer", false), field("message_id", "Integer", false),
                field("text", "String", true), field("parse_mode", "String", false),
                field("link_preview_options", "LinkPreviewOptions", false)]},
            "deleteMessage": {"fields": [field("chat_id", "Integer", true), field("message_id", "Integer", true)]},
            "setMessageReaction": {"fields": [field("chat_id", "Integer", true), field("message_id", "Integer", true),
                field("reaction", "Array of ReactionTypeEmoji", false)]},
            "setMyCommands": {"fields": [field("commands", "Array of BotCommand", true)]},
        },
        "types": {
            "LinkPreviewOptions": {"fields": [field("is_disabled", "Boolean", false)]},
            "ReplyParameters": {"fields": [field("message_id", "Integer", true),
                field("allow_sending_without_reply", "Boolean", false)]},
            "InlineKeyboardMarkup": {"fields": [field("inline_keyboard", "Array of Array of InlineKeyboardButton", true)]},
            "InlineKeyboardButton": {"fields": [field("text", "String", true), field("callback_data", "String", false)]},
            "ReactionTypeEmoji": {"fields": [field("type", "String", true), field("emoji", "String", true)]},
            "BotCommand": {"fields": [field("command", "String", true), field("description", "String", true)]},
        },
    })
}

/// Converts Telegram HTML to the text that a reader sees.
///
/// # Errors
/// The server's error message.
pub(crate) fn visible_text(html: &str) -> Result<String, String> {
    let (mut rest, mut seen, mut open) = (html, String::new(), Vec::<&str>::new());
    while let Some(at) = rest.find(['<', '&']) {
        let (text, marked) = rest.split_at(at);
        seen.push_str(text);
        let end = if marked.starts_with('<') { '>' } else { ';' };
        let (mark, after) = marked.split_once(end).ok_or_else(|| format!("Unclosed {marked:?}"))?;
        rest = after;
        match mark {
            "&lt" => seen.push('<'),
            "&gt" => seen.push('>'),
            "&amp" => seen.push('&'),
            "&quot" => seen.push('"'),
            _ => match mark.strip_prefix("</") {
                Some(name) if open.last() == Some(&name) => drop(open.pop()),
                Some(name) => return Err(format!("Unmatched end tag {name:?}")),
                None => open.push(start_tag(mark, &open)?),
            },
        }
    }
    seen.push_str(rest);
    open.last().map_or(Ok(seen), |name| Err(format!("Can't find end tag corresponding to start tag {name:?}")))
}

fn start_tag<'a>(mark: &'a str, open: &[&str]) -> Result<&'a str, String> {
    let tag = mark.strip_prefix('<').ok_or_else(|| format!("Unsupported entity {mark:?}"))?;
    let (name, attribute) = tag.split_once(' ').unwrap_or((tag, ""));
    let fits = match name {
        "b" | "i" | "u" | "s" | "pre" | "blockquote" => attribute.is_empty(),
        "code" if open.last() == Some(&"pre") => attribute.starts_with("class=\"language-") && attribute.ends_with('"'),
        "code" => attribute.is_empty(),
        "a" => attribute.starts_with("href=\"") && attribute.matches('"').count() == 2 && attribute.ends_with('"'),
        _ => false,
    };
    if fits { Ok(name) } else { Err(format!("Unsupported start tag {tag:?}")) }
}
