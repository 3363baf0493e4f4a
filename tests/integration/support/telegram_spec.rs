//! Checks requests like the real Bot API: whether the parameters are known, present and of the right type, and whether the HTML parses. The
//! rules come from the machine-readable API that `TELEGRAM_API_SPEC` names, or else from an extract in the same format (`fixtures/telegram_api.json`). Only
//! the machine-readable API describes answers, so only with it are the fake's answers checked too.

use serde_json::Value;

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
        SAID.call_once(|| eprintln!("requests are checked against the extract: TELEGRAM_API_SPEC isn't set"));
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

    /// Checks the answer to a call; the extract accepts every answer.
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
    use serde_json::json;

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

/// The methods and parameters that the program uses: an extract of Bot API 10.1.
fn built_in() -> Value {
    serde_json::from_str(include_str!("../fixtures/telegram_api.json")).unwrap()
}

/// Returns whether a type of the extract is one that the whole API takes.
fn is_taken(whole: &Spec, kind: &str, taken: &str) -> bool {
    let (mut kind, mut taken) = (kind, taken);
    while let (Some(inner), Some(other)) = (kind.strip_prefix("Array of "), taken.strip_prefix("Array of ")) {
        (kind, taken) = (inner, other);
    }
    kind == taken
        || whole.0["types"][taken]["subtypes"]
            .as_array()
            .is_some_and(|subtypes| subtypes.iter().any(|subtype| subtype == kind))
}

/// What the extract says of a method or a type, and the whole API doesn't.
fn differences(whole: &Spec, what: &str, extract: &Value, known: &Value) -> Vec<String> {
    let fields = |of: &Value| of["fields"].as_array().cloned().unwrap_or_default();
    let mut found = Vec::new();
    for field in fields(extract) {
        let (name, kind) = (field["name"].as_str().unwrap(), field["types"][0].as_str().unwrap());
        match fields(known).iter().find(|known| known["name"] == name) {
            None => found.push(format!("{what} has no {name}")),
            Some(known) => {
                let taken = known["types"].as_array().unwrap().iter().filter_map(Value::as_str);
                if !taken.into_iter().any(|taken| is_taken(whole, kind, taken)) {
                    found.push(format!("{what}.{name} is no {kind}"));
                }
            }
        }
    }
    for field in fields(known).iter().filter(|field| field["required"] == true) {
        let is_required = |ours: &Value| ours["name"] == field["name"] && ours["required"] == true;
        if !fields(extract).iter().any(is_required) {
            found.push(format!("{what} requires {}", field["name"]));
        }
    }
    found
}

#[test]
fn the_extract_says_what_the_whole_api_says() {
    let Some((_, whole)) = named() else { return };
    let (whole, extract) = (Spec(whole), built_in());
    let mut found = Vec::new();
    for group in ["methods", "types"] {
        for (name, ours) in extract[group].as_object().unwrap() {
            match &whole.0[group][name] {
                Value::Null => found.push(format!("no {name}")),
                known => found.extend(differences(&whole, name, ours, known)),
            }
        }
    }
    assert_eq!(found, [""; 0]);
}

#[test]
fn a_request_that_telegram_would_refuse_is_detected_without_the_whole_api() {
    use serde_json::json;

    let spec = Spec(built_in());
    let rich = |rich: Value| spec.check("sendRichMessage", &json!({"chat_id": 7, "rich_message": rich}));
    rich(json!({"html": "<p>a</p>", "skip_entity_detection": true})).unwrap();
    for (request, why) in [
        (json!({"html": "a", "parse_mode": "HTML"}), "InputRichMessage has no parse_mode"),
        (json!({"html": 7}), "html isn't String"),
        (json!("a"), "isn't an object"),
    ] {
        let said = rich(request).unwrap_err();
        assert!(said.contains(why), "{said}");
    }
    let said = spec.check("sendMessage", &json!({"chat_id": 7})).unwrap_err();
    assert!(said.contains("sendMessage lacks \"text\""), "{said}");
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
