//! Parses complaints, a server's answers in place of a turn. Every server has its own form; some use status 200 or the middle of a stream.
//! One parser serves all providers, so that one list of wordings applies to each.

use std::time::Duration;

use serde_json::Value;

/// Wordings for a conversation that exceeds the model's window.
const TOO_LONG: [&str; 44] = [
    "context_length_exceeded",
    "context length exceeded",
    "exceed_context_size",
    "contextwindowexceeded",
    "context_window_exceeded",
    "maximum context length",
    "max context length",
    "max_context_length",
    "max_model_len",
    "maximum model length",
    "available context size",
    "context size has been exceeded",
    "context window",
    "context length",
    "context limit",
    "context overflow",
    "context the overflows",
    "prompt is too long",
    "prompt too long",
    "prompt_too_long",
    "prompt is too large",
    "prompt too large",
    "prompt exceeds",
    "maximum prompt length",
    "input is too long",
    "input too long",
    "input token count",
    "input tokens exceed",
    "input length",
    "input_tokens",
    "too many input tokens",
    "maximum allowed input length",
    "conversation is too long",
    "conversation too long",
    "messages too long",
    "reduce the length of the messages",
    "reduce your message size",
    "reduce your prompt",
    "too many tokens",
    "token limit exceeded",
    "exceeded model token limit",
    "maximum number of tokens",
    "request_too_large",
    "request too large",
];
/// Wordings for a temporary limit, however similar to the list above.
const BUSY: [&str; 19] = [
    "rate limit",
    "rate_limit",
    "ratelimit",
    "too many requests",
    "too_many_requests",
    "throttl",
    "please wait",
    "try again later",
    "retry later",
    "please retry",
    "overloaded",
    "server_busy",
    "server busy",
    "is busy",
    "at capacity",
    "temporarily unavailable",
    "service unavailable",
    "resource_exhausted",
    "loading model",
];
/// Wordings for a request beyond a whole minute's allowance: waiting never helps.
const NEVER_FITS: [&str; 2] = ["request too large", "must be reduced in order to run"];
/// Wordings for a refused key.
const KEY: [&str; 22] = [
    "api key not valid",
    "api_key_invalid",
    "invalid api key",
    "invalid_api_key",
    "invalid apikey",
    "incorrect api key",
    "invalid x-api-key",
    "api key is invalid",
    "api key provided is invalid",
    "api key expired",
    "api key is missing",
    "missing api key",
    "no api key",
    "valid api key",
    "no auth credentials",
    "authentication_error",
    "authenticationerror",
    "authentication failed",
    "invalid authentication",
    "unauthorized",
    "invalid token",
    "token expired",
];
/// Wordings for an account without money.
const MONEY: [&str; 16] = [
    "insufficient_quota",
    "insufficient quota",
    "insufficient_user_quota",
    "insufficient credit",
    "insufficient_credit",
    "insufficient balance",
    "insufficient_balance",
    "insufficient fund",
    "credit balance",
    "out of credits",
    "exceeded your current quota",
    "exceeded_current_quota",
    "billing",
    "payment required",
    "arrearage",
    "余额不足",
];
/// Wordings for an error in the model's own output, as opposed to the request.
const MISCALLED: [&str; 5] = [
    "tool_use_failed",
    "failed to call a function",
    "tool call validation failed",
    "error parsing tool call",
    "failed to parse tool call",
];

/// Fields with a message for people, the likeliest first.
const MESSAGES: [&str; 12] = [
    "message",
    "Message",
    "msg",
    "detail",
    "error_description",
    "error_msg",
    "errmsg",
    "errorMessage",
    "status_msg",
    "details",
    "title",
    "reason",
];
/// Fields with an error.
const ERRORS: [&str; 4] = ["error", "errors", "Error", "base_resp"];
/// Fields with an HTTP status, or with a code that may be one.
const STATUSES: [&str; 7] = ["code", "status", "status_code", "statusCode", "http_code", "errorCode", "error_code"];
/// Fields that quote the conversation, to be skipped: their words aren't the server's.
const QUOTES: [&str; 5] = ["failed_generation", "input", "messages", "prompt", "request"];
/// Maximum depth of complaints nested in each other's text.
const MAX_NESTED: u8 = 3;
/// Longest wait accepted from a sentence, in seconds.
const MAX_WAIT_S: f64 = 7.0 * 86_400.0;

/// A server's complaint.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Complaint {
    /// The message. `None` if the server sent no field with one.
    pub(super) said: Option<String>,
    /// The HTTP status in the body.
    pub(super) status: Option<u16>,
    /// The wait that the server asks for.
    pub(super) wait: Option<Duration>,
    /// Every text of the complaint, kinds and codes included, in lower case.
    words: String,
}

impl Complaint {
    /// Parses the body of a refusal: JSON in any form, an event, or plain words.
    pub(super) fn parse_body(body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let text = text.trim_start_matches('\u{feff}').trim();
        let events = text.lines().filter_map(|line| line.strip_prefix("data:").or(line.strip_prefix("error:")));
        let json = [text].into_iter().chain(events).find_map(|json| serde_json::from_str::<Value>(json.trim()).ok());
        match json {
            Some(value) => Self::parse(&value),
            // An HTML page comes from some proxy and says nothing about the request.
            None if text.starts_with('<') => Self::default(),
            None => Self { words: text.to_lowercase(), wait: parse_wait(text), ..Self::default() },
        }
    }

    /// Parses an event that isn't a turn. `None` if it isn't a complaint either.
    pub(super) fn parse_in_stream(value: &Value) -> Option<Self> {
        let complaint = Self::parse(value);
        let is_named = |name: &str| value.get(name).and_then(Value::as_str) == Some("error");
        let is_failed = value.get("success") == Some(&Value::Bool(false));
        let is_one = complaint.said.is_some() || is_named("object") || is_named("type") || is_failed;
        (is_one || complaint.status.is_some()).then_some(complaint)
    }

    /// Parses a complaint, or an object that contains one.
    pub(super) fn parse(value: &Value) -> Self {
        Self::parse_nested(value, MAX_NESTED)
    }

    fn parse_nested(value: &Value, depth: u8) -> Self {
        let value = value.as_array().and_then(|list| list.first()).unwrap_or(value);
        let error = ERRORS.iter().filter_map(|name| value.get(*name)).find(|error| is_something(error));
        let error = error.unwrap_or(value);
        let error = error.as_array().and_then(|list| list.first()).unwrap_or(error);
        let mut complaint = Self {
            said: find_message(error).or_else(|| find_message(value)),
            status: find_status(error).or_else(|| find_status(value)),
            wait: None,
            words: String::new(),
        };
        collect_words(value, "", &mut complaint.words);
        complaint.words = complaint.words.to_lowercase();
        complaint.wait = find_delay(value).or_else(|| complaint.said.as_deref().and_then(parse_wait));
        // A gateway passes on another server's complaint as text.
        let raw = error.pointer("/metadata/raw").and_then(Value::as_str).map(str::to_owned);
        if depth > 0
            && let Some(inner) = raw.iter().chain(&complaint.said).find_map(|text| parse_embedded(text, depth - 1))
        {
            complaint.said = inner.said.or(complaint.said);
            complaint.status = inner.status.or(complaint.status);
            complaint.wait = inner.wait.or(complaint.wait);
            complaint.words.push_str(&inner.words);
        } else if let Some(raw) = raw {
            complaint.said = Some(complaint.said.map_or(raw.clone(), |said| format!("{said}: {raw}")));
        }
        complaint
    }

    /// True if the complaint contains any of these words, given in lower case.
    pub(super) fn says_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.words.contains(word))
    }

    /// True if the complaint contains `word` outside of `longer`, which includes it. Both are in lower case.
    pub(super) fn says_any_without(&self, longer: &str, word: &str) -> bool {
        self.words.replace(longer, "").contains(word)
    }

    /// True if the conversation exceeds the model's window.
    pub(super) fn is_too_long(&self) -> bool {
        self.says_any(&NEVER_FITS) || self.says_any(&TOO_LONG) && !self.says_any(&BUSY)
    }

    /// True if waiting helps.
    pub(super) fn is_busy(&self) -> bool {
        !self.says_any(&NEVER_FITS) && self.says_any(&BUSY)
    }

    /// True if the server refused the key.
    pub(super) fn is_of_key(&self) -> bool {
        self.says_any(&KEY)
    }

    /// True if the account has no money left. A limit with a stated wait is one of the minute or the day instead.
    pub(super) fn is_of_money(&self) -> bool {
        self.says_any(&MONEY) && (self.wait.is_none() || self.says_any(&["insufficient"]))
    }

    /// True if the model wrote a tool call that the server couldn't parse: another try may succeed.
    pub(super) fn is_miscalled(&self) -> bool {
        self.says_any(&MISCALLED)
    }
}

/// Parses a complaint embedded in another's text. `None` if the text has no JSON with a message.
fn parse_embedded(text: &str, depth: u8) -> Option<Complaint> {
    let json = text.get(text.find(['{', '['])?..)?;
    let mut values = serde_json::Deserializer::from_str(json).into_iter::<Value>();
    let complaint = Complaint::parse_nested(&values.next()?.ok()?, depth);
    complaint.said.is_some().then_some(complaint)
}

/// True for an actual error, as opposed to an empty field of a fixed form.
fn is_something(error: &Value) -> bool {
    match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(list) => !list.is_empty(),
        // MiniMax reports success in the same field.
        Value::Object(fields) => !fields.is_empty() && fields.get("status_code") != Some(&Value::from(0)),
        Value::Bool(true) | Value::Number(_) => true,
    }
}

fn find_message(error: &Value) -> Option<String> {
    let text = |value: &Value| match value {
        Value::String(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
        // FastAPI sends a list of findings.
        Value::Array(list) => {
            let found: Vec<&str> =
                list.iter().filter_map(|one| one.get("msg").or(one.get("message"))?.as_str()).collect();
            (!found.is_empty()).then(|| found.join("; "))
        }
        Value::Object(_) => MESSAGES.iter().find_map(|name| value.get(*name)?.as_str()).map(str::to_owned),
        _ => None,
    };
    if error.is_string() {
        return text(error);
    }
    MESSAGES.iter().find_map(|name| text(error.get(*name)?))
}

fn find_status(error: &Value) -> Option<u16> {
    let number = |value: &Value| match value {
        Value::Number(number) => u16::try_from(number.as_u64()?).ok(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    STATUSES.iter().filter_map(|name| number(error.get(*name)?)).find(|status| (400..600).contains(status))
}

/// Appends the texts of a value, except those that quote the conversation.
fn collect_words(value: &Value, name: &str, words: &mut String) {
    match value {
        Value::String(text) if !QUOTES.contains(&name) => {
            words.push_str(text);
            words.push('\n');
        }
        Value::Array(list) => list.iter().for_each(|one| collect_words(one, name, words)),
        Value::Object(fields) if !QUOTES.contains(&name) => {
            fields.iter().for_each(|(name, value)| collect_words(value, name, words));
        }
        _ => {}
    }
}

/// Finds the wait in a field, at any depth.
fn find_delay(value: &Value) -> Option<Duration> {
    match value {
        Value::Array(list) => list.iter().find_map(find_delay),
        Value::Object(fields) => fields.iter().find_map(|(name, value)| match name.as_str() {
            "retryDelay" | "retry_after" | "retry_after_seconds" => match value {
                Value::String(text) => parse_duration(text),
                other => bound_seconds(other.as_f64()?),
            },
            _ => find_delay(value),
        }),
        _ => None,
    }
}

/// Finds the wait in a sentence: `try again in 6m0s`, `reset after 26s`, `retry after 5 seconds`.
fn parse_wait(text: &str) -> Option<Duration> {
    let small = text.to_lowercase();
    let openings = ["try again in ", "try again after ", "retry in ", "retry after ", "reset after ", "resets in "];
    openings.iter().find_map(|opening| parse_duration(small.split_once(opening)?.1))
}

/// Parses a duration at the beginning of a text: numbers with units, or a number of seconds.
fn parse_duration(text: &str) -> Option<Duration> {
    let (mut total, mut rest, mut is_any) = (0.0, text.trim_start(), false);
    while let Some((number, behind)) = parse_number(rest) {
        let unit: String = behind.trim_start().chars().take_while(char::is_ascii_alphabetic).collect();
        let factor = match unit.as_str() {
            "ms" | "millisecond" | "milliseconds" => 0.001,
            "" | "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hr" | "hour" | "hours" => 3_600.0,
            "d" | "day" | "days" => 86_400.0,
            _ => break,
        };
        total += number * factor;
        is_any = true;
        let gap = behind.len() - behind.trim_start().len();
        rest = behind.get(gap + unit.len()..).unwrap_or_default().trim_start();
        if unit.is_empty() {
            break;
        }
    }
    if is_any { bound_seconds(total) } else { None }
}

fn parse_number(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    // The dot may be the end of a sentence.
    Some((number.trim_end_matches('.').parse().ok()?, rest))
}

fn bound_seconds(seconds: f64) -> Option<Duration> {
    (0.0..=MAX_WAIT_S).contains(&seconds).then(|| Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests;
