//! Adds a rule to a person's `policy.toml`, or removes one: text in, text out. All of their bytes stay. The result differs in meaning by
//! exactly that rule, or there is an error.
//!
//! A rule of ours is about exactly one call, under a comment with its origin. It is removed only if it is still as written.

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use serde_json::{Map, Value};

use reveille_base::approval_text::is_hidden;

use super::{Rules, RulesProblem, rules::DescribedRule};

/// The maximum length of a rule, in characters: a message shows it whole beside its meaning.
const RULE_CHARS_MAX: usize = 1_500;
/// The start of the comment above a rule of ours.
const ADDED: &str = "# Added ";

/// The reason `policy.toml` stays unchanged, by the person's next act.
#[derive(Debug, thiserror::Error)]
pub enum AmendError {
    /// The file has mistakes.
    #[error("`policy.toml` has a mistake ({0}), so it isn't in use. Correct it first; `wake policy` says where")]
    Invalid(RulesProblem),
    /// The file can't be trusted or read.
    #[error("`policy.toml` can't be used: {0}")]
    Unusable(String),
    /// The file is a link.
    #[error("`policy.toml` is a link to another file, which I leave to you")]
    Link,
    /// The file belongs to another user.
    #[error("`policy.toml` belongs to another user (uid {0}), so only they can change it")]
    NotOurs(u32),
    /// Somebody else wrote the file at the same time.
    #[error("`policy.toml` was changed by somebody else just now. Please try again")]
    Changed,
    /// The call can't be written as a rule, or the rule would change more than this call.
    #[error("I can't write a rule that allows this call and nothing else")]
    NotExact,
    /// The call would still need approval.
    #[error("it still wouldn't run without asking: {0}")]
    NoEffect(String),
    /// The folder can't be granted.
    #[error("this folder can't be granted: {0}")]
    Folder(String),
    /// The file is written in a way that can't be changed here.
    #[error("`policy.toml` is written in a way that I can't change safely. Change it in a text editor")]
    Unclear,
    /// The file is at its limit of size or of rules.
    #[error("there is no room for another rule in `policy.toml`. Remove one that you no longer need")]
    Full,
    /// The rule is missing or was edited.
    #[error("that rule is no longer in `policy.toml` as I wrote it")]
    Gone,
    /// The disk failed.
    #[error("`policy.toml` can't be written: {0}")]
    Io(#[from] std::io::Error),
}

impl AmendError {
    pub(super) fn from_problems(problems: Vec<RulesProblem>) -> Self {
        let unknown = || RulesProblem { line: 0, what: "it isn't clear where".to_owned() };
        Self::Invalid(problems.into_iter().next().unwrap_or_else(unknown))
    }
}

/// A rule in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedRule {
    /// The line of its first character, from 1.
    pub line: usize,
    /// The wording for people.
    pub words: String,
    /// Its origin, such as `from Telegram on 2026-11-24`; `None` if a person wrote it.
    pub added: Option<String>,
    /// Its exact text, if we added it.
    text: Option<String>,
}

impl ListedRule {
    /// Returns the text for [`remove_rule`]; `None` if a person wrote it.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }
}

/// Returns the text of a rule that allows exactly this call; `None` if it can't be expressed, or is too long.
pub fn render_exact_rule(tool: &str, arguments: &str) -> Option<String> {
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    let text = render_rule(tool, &arguments)?;
    let is_exact = Rules::parse(&text).is_ok_and(|rules| {
        rules.len() == 1 && rules.has_exact(tool, |read| *read == arguments && arguments.is_object())
    });
    (is_exact && text.chars().count() <= RULE_CHARS_MAX).then_some(text)
}

fn render_rule(tool: &str, arguments: &Value) -> Option<String> {
    let arguments = render_value(arguments)?;
    Some(format!("[[rule]]\ntool = {}\narguments = {arguments}\ndecision = \"allow\"\n", quote_text(tool)))
}

/// Appends a rule of [`render_exact_rule`] to the text; `None` if the text has the rule already. `from` is its origin, as in
/// [`ListedRule::added`].
///
/// # Errors
/// The text has mistakes, or the rule would change more than this call.
pub fn add_rule(text: &str, rule: &str, from: &str) -> Result<Option<String>, AmendError> {
    let before = Rules::parse(text).map_err(AmendError::from_problems)?;
    let more = Rules::parse(rule).map_err(|_| AmendError::NotExact)?;
    let rule_read = more.list_rules().next().ok_or(AmendError::NotExact)?;
    let (tool, arguments) = rule_read.exact.ok_or(AmendError::NotExact)?;
    if before.has_exact(tool, |known| known == arguments) {
        return Ok(None);
    }
    if before.is_full() {
        return Err(AmendError::Full);
    }
    let mut new = text.to_owned();
    if !text.is_empty() {
        new.push_str(if text.ends_with('\n') { "\n" } else { "\n\n" });
    }
    let from: String = from.chars().filter(|c| !c.is_control()).collect();
    new.push_str(&format!("{ADDED}{from}\n{rule}"));
    match Rules::parse(&new) {
        Ok(after) if after.adds_exactly(&before, &more) => Ok(Some(new)),
        Ok(_) => Err(AmendError::NotExact),
        Err(problems) => Err(AmendError::from_problems(problems)),
    }
}

/// Removes a rule of ours from the text, by [`ListedRule::text`].
///
/// # Errors
/// The rule isn't as written, or its removal would change more.
pub fn remove_rule(text: &str, rule: &str) -> Result<String, AmendError> {
    let before = Rules::parse(text).map_err(AmendError::from_problems)?;
    let less = Rules::parse(rule).map_err(|_| AmendError::Gone)?;
    let begins_line = |at: &usize| *at == 0 || text.get(..*at).is_some_and(|head| head.ends_with('\n'));
    let at = text.match_indices(rule).map(|(at, _)| at).find(begins_line).ok_or(AmendError::Gone)?;
    let (head, tail) = (text.get(..at).unwrap_or_default(), text.get(at + rule.len()..).unwrap_or_default());
    // The empty line added before the rule.
    let head = if head.ends_with("\n\n") { head.strip_suffix('\n').unwrap_or(head) } else { head };
    let new = format!("{head}{tail}");
    match Rules::parse(&new) {
        Ok(after) if before.adds_exactly(&after, &less) => Ok(new),
        _ => Err(AmendError::Gone),
    }
}

/// Lists all rules of a text, in order.
///
/// # Errors
/// The text has mistakes.
pub fn list_rules(text: &str) -> Result<Vec<ListedRule>, AmendError> {
    let rules = Rules::parse(text).map_err(AmendError::from_problems)?;
    let listed = rules.list_rules().map(|DescribedRule { line, exact, words }| {
        let added = exact.and_then(|(tool, arguments)| find_added(text, line, tool, arguments));
        let (added, text) = added.unzip();
        ListedRule { line, words, added, text }
    });
    Ok(listed.collect())
}

/// Returns the origin and the text of a rule of ours, if it is still as written.
fn find_added(text: &str, line: usize, tool: &str, arguments: &Value) -> Option<(String, String)> {
    let begins: usize = text.split_inclusive('\n').take(line.checked_sub(2)?).map(str::len).sum();
    let rest = text.get(begins..)?;
    let (above, _) = rest.split_once('\n')?;
    let from = above.strip_prefix(ADDED)?;
    let block = format!("{above}\n{}", render_rule(tool, arguments)?);
    rest.starts_with(&block).then(|| (from.to_owned(), block))
}

/// The format of the time in [`ListedRule::added`], after its last ` on `.
pub const TIME: &str = "%Y-%m-%d at %H:%M:%S %:z";

/// Returns the time of a rule of ours, from the comment above its first line (from 1). Earlier versions noted only the day.
pub(super) fn find_rule_time(text: &str, line: usize) -> Option<DateTime<Utc>> {
    let above = text.lines().nth(line.checked_sub(2)?)?;
    let (_, at) = above.strip_prefix(ADDED)?.rsplit_once(" on ")?;
    match DateTime::parse_from_str(at, TIME) {
        Ok(at) => Some(at.to_utc()),
        Err(_) => Some(at.parse::<NaiveDate>().ok()?.and_time(NaiveTime::MIN).and_utc()),
    }
}

/// Renews a rule of ours that is older than `before`; `None` if it is newer, or not ours.
///
/// # Errors
/// As for [`remove_rule`] and [`add_rule`].
pub fn renew_rule(text: &str, rule: &str, before: DateTime<Utc>, from: &str) -> Result<Option<String>, AmendError> {
    let ours = list_rules(text)?.into_iter().find(|listed| listed.text().is_some_and(|ours| ours.ends_with(rule)));
    let Some((line, ours)) = ours.and_then(|listed| Some((listed.line, listed.text?))) else { return Ok(None) };
    if find_rule_time(text, line).is_some_and(|made| made >= before) {
        return Ok(None);
    }
    add_rule(&remove_rule(text, &ours)?, rule, from)
}

/// Renders a JSON value in TOML, on one line; `None` if TOML has no equivalent.
fn render_value(json: &Value) -> Option<String> {
    Some(match json {
        Value::Null => return None,
        Value::Bool(is_true) => is_true.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => quote_text(text),
        Value::Array(items) => format!("[{}]", items.iter().map(render_value).collect::<Option<Vec<_>>>()?.join(", ")),
        Value::Object(fields) => render_table(fields)?,
    })
}

/// Renders fields in the order of their names, the only order that survives reading back.
fn render_table(fields: &Map<String, Value>) -> Option<String> {
    let mut fields: Vec<_> = fields.iter().collect();
    fields.sort_by_key(|(name, _)| *name);
    let is_bare = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    let name = |name: &str| if is_bare(name) { name.to_owned() } else { quote_text(name) };
    let fields = fields.into_iter().map(|(key, json)| Some(format!("{} = {}", name(key), render_value(json)?)));
    let fields = fields.collect::<Option<Vec<_>>>()?.join(", ");
    Some(if fields.is_empty() { "{}".to_owned() } else { format!("{{ {fields} }}") })
}

/// Quotes a text, with hidden characters escaped.
fn quote_text(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if is_hidden(c) => quoted.push_str(&format!("\\U{:08X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_rule_tells_when_it_was_made_and_is_made_anew_where_it_was_before() {
        let rule = render_exact_rule("bash", r#"{"command":"make"}"#).unwrap();
        let at = |time: &str| DateTime::parse_from_rfc3339(time).unwrap().to_utc();
        let first = add_rule(THEIRS, &rule, "from Telegram on 2026-11-24 at 14:03:11 +01:00").unwrap().unwrap();
        let line = list_rules(&first).unwrap().remove(1).line;
        assert_eq!(find_rule_time(&first, line), Some(at("2026-11-24T13:03:11Z")));
        let later = "from Telegram on 2026-11-25 at 09:00:00 +01:00";
        assert_eq!(renew_rule(&first, &rule, at("2026-11-24T13:03:11Z"), later).unwrap(), None);
        let second = renew_rule(&first, &rule, at("2026-11-25T07:59:00Z"), later).unwrap().unwrap();
        assert_eq!(second, first.replace("2026-11-24 at 14:03:11", "2026-11-25 at 09:00:00"));
        // A rule of an earlier version has only a day, and a rule that the person wrote has no date.
        let old = add_rule("", &rule, "from Telegram on 2026-11-24").unwrap().unwrap();
        assert_eq!(find_rule_time(&old, 2), Some(at("2026-11-24T00:00:00Z")));
        assert_eq!(
            (find_rule_time(&rule, 1), renew_rule(&rule, &rule, at("2030-01-01T00:00:00Z"), later).unwrap()),
            (None, None)
        );
    }

    const FROM: &str = "from Telegram on 2026-11-24";
    const THEIRS: &str = "# mine\r\n[[rule]] # push\ncommand = [\"git\", \"push\"]\ndecision = \"deny\"\nmatch = [\"git push\"]\n\n\
                          [files]\nread = [\"~/notes\"] # no newline at the end";

    fn ls() -> String {
        render_exact_rule("bash", r#"{"network":true,"command":"ls \"a b\" | wc"}"#).unwrap()
    }

    #[test]
    fn a_rule_is_about_exactly_one_call_and_reads_well() {
        assert_eq!(
            ls(),
            "[[rule]]\ntool = \"bash\"\narguments = { command = \"ls \\\"a b\\\" | wc\", network = true }\ndecision = \"allow\"\n"
        );
        assert!(render_exact_rule("bash", "{\"command\":\"a\u{202e}b\"}").unwrap().contains("a\\U0000202Eb"));
        for unfit in ["", "[]", "\"ls\"", r#"{"a":null}"#, r#"{"a":18446744073709551615}"#] {
            assert_eq!(render_exact_rule("bash", unfit), None, "{unfit}");
        }
        assert_eq!(render_exact_rule("mcp__*", "{}"), None);
        let long = serde_json::json!({ "command": "x".repeat(RULE_CHARS_MAX) }).to_string();
        assert_eq!(render_exact_rule("bash", &long), None);
    }

    #[test]
    fn a_rule_is_added_below_what_is_there_and_taken_out_without_a_trace() {
        for theirs in ["", "\n", "# nothing\n", THEIRS, &format!("{THEIRS}\n")] {
            let new = add_rule(theirs, &ls(), FROM).unwrap().unwrap();
            assert!(new.starts_with(theirs) && new.ends_with(&format!("# Added {FROM}\n{}", ls())), "{new}");
            assert_eq!(add_rule(&new, &ls(), "from elsewhere").unwrap(), None, "it is in it already");
            let rules = list_rules(&new).unwrap();
            let ours = rules.last().unwrap();
            assert_eq!(ours.added.as_deref(), Some(FROM));
            assert_eq!(new.lines().nth(ours.line - 1), Some("[[rule]]"));
            assert!(rules.iter().rev().skip(1).all(|rule| rule.text().is_none()));
            let back = remove_rule(&new, ours.text().unwrap()).unwrap();
            assert_eq!(back.trim_end_matches('\n'), theirs.trim_end_matches('\n'));
            assert!(matches!(remove_rule(&back, ours.text().unwrap()), Err(AmendError::Gone)));
        }
    }

    #[test]
    fn what_a_person_has_changed_is_theirs() {
        let new = add_rule(THEIRS, &ls(), FROM).unwrap().unwrap();
        let ours = list_rules(&new).unwrap().remove(1);
        assert_eq!(
            ours.words,
            "Runs without asking: exactly the command `ls \"a b\" | wc`, which may reach granted hosts"
        );
        for edited in [
            new.replace("| wc", "| wc -l"),
            new.replace("\ntool =", "\nwhy = \"mine\"\ntool ="),
            new.replace(&format!("# Added {FROM}\n"), "# mine\n"),
            new.replace("Telegram on", "Telegram  on"),
        ] {
            let text = ours.text().unwrap();
            assert!(matches!(remove_rule(&edited, text), Err(AmendError::Gone)), "{edited}");
        }
        let edited = new.replace("decision = \"allow\"\n", "decision = \"allow\"\nwhy = \"mine\"\n");
        assert!(
            matches!(remove_rule(&edited, ours.text().unwrap()), Err(AmendError::Gone)),
            "a line more is another rule"
        );
    }

    #[test]
    fn a_file_that_isnt_in_use_and_one_that_would_say_something_else_stay() {
        assert!(matches!(add_rule("[shel]\n", &ls(), FROM), Err(AmendError::Invalid(_))));
        // An inline list can't be extended in another place.
        let inline = "rule = [{ tool = \"x\", decision = \"ask\", match = [\"x\"] }]\n";
        assert!(matches!(add_rule(inline, &ls(), FROM), Err(AmendError::Invalid(_))));
        let full: String = (0..500).map(|n| ls().replace("wc", &format!("wc {n}"))).collect();
        assert!(matches!(add_rule(&full, &ls(), FROM), Err(AmendError::Full)));
        let two = format!("{}{}", ls(), ls().replace("wc", "rm"));
        assert!(matches!(add_rule("", &two, FROM), Err(AmendError::NotExact)));
        let broad = "[[rule]]\ntool = \"*\"\ndecision = \"allow\"\nmatch = [\"x\"]\n";
        assert!(matches!(add_rule("", broad, FROM), Err(AmendError::NotExact)));
        let open = format!("{}[files]\nread = [\"/\"]\n", ls());
        assert!(matches!(add_rule("", &open, FROM), Err(AmendError::NotExact)));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (-1e9..1e9f64).prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 12, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// A rule, if one is made, matches the model's arguments exactly, and it can be removed without a trace.
        #[test]
        fn whatever_the_arguments_are_the_rule_is_about_them_and_can_be_taken_back(
            fields in prop::collection::btree_map(any::<String>(), any_json(), 0..4),
        ) {
            let arguments = Value::Object(fields.into_iter().collect());
            let rule = render_exact_rule("bash", &arguments.to_string());
            prop_assume!(rule.is_some());
            let new = add_rule(THEIRS, &rule.unwrap(), FROM).unwrap().unwrap();
            prop_assert!(new.starts_with(THEIRS));
            prop_assert!(!new.get(THEIRS.len()..).unwrap().chars().any(is_hidden));
            let ours = list_rules(&new).unwrap().remove(1);
            prop_assert!(Rules::parse(&new).unwrap().find_exact_rule("bash", &arguments.to_string()).is_some());
            let back = remove_rule(&new, ours.text().unwrap()).unwrap();
            prop_assert_eq!(back.trim_end(), THEIRS);
        }
    }
}
