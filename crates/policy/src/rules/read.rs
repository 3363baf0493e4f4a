//! Reads `policy.toml` into [`Rules`], and reports all problems at once, each with its line. Anything unknown is a problem: a misspelt rule
//! must not count as missing.

use std::time::Duration;

use serde_json::Value as Json;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use reveille_base::types::{VERB, VerbGroup};

use super::{Decision, FREE, Host, Rule, Rules, RulesProblem, Target, Word};

/// The maximum time limit of a command, in seconds.
const MAX_TIMEOUT_S: u64 = 3600;
/// The maximum number of rules.
pub(super) const MAX_RULES: usize = 500;

pub(super) fn parse_rules(text: &str) -> Result<Rules, Vec<RulesProblem>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader { text, problems: Vec::new() };
    for error in errors {
        let at = error.span().map_or(0, |span| span.start);
        reader.add_problem(at, error.message());
    }
    let mut rules = Rules::default();
    for (key, value) in table.get_ref() {
        match key.get_ref().as_ref() {
            "rule" => reader.read_rules(value, &mut rules),
            "files" => reader.read_files(value, &mut rules),
            "network" => reader.read_network(value, &mut rules),
            "shell" => reader.read_shell(value, &mut rules),
            other => reader.add_unknown_key(key.span().start, other, "[[rule]], [files], [network] and [shell]"),
        }
    }
    reader.problems.sort_by_key(|problem| problem.line);
    if reader.problems.is_empty() { Ok(rules) } else { Err(reader.problems) }
}

struct Reader<'t> {
    text: &'t str,
    problems: Vec<RulesProblem>,
}

type Value<'t> = Spanned<DeValue<'t>>;

impl Reader<'_> {
    fn find_line(&self, at: usize) -> usize {
        self.text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
    }

    fn add_problem(&mut self, at: usize, what: impl Into<String>) {
        let line = self.find_line(at);
        self.problems.push(RulesProblem { line, what: what.into() });
    }

    fn add_unknown_key(&mut self, at: usize, key: &str, known: &str) {
        self.add_problem(at, format!("`{key}` isn't known here; allowed are {known}"));
    }

    fn read_table<'v, 't>(&mut self, value: &'v Value<'t>, name: &str) -> Option<&'v DeTable<'t>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.add_problem(value.span().start, format!("`{name}` must be a table"));
        }
        table
    }

    fn read_string(&mut self, value: &Value<'_>, name: &str) -> Option<String> {
        let text = value.get_ref().as_str().map(str::trim).filter(|text| !text.is_empty());
        if text.is_none() {
            self.add_problem(value.span().start, format!("`{name}` must be a string that isn't empty"));
        }
        text.map(str::to_owned)
    }

    /// Reads a list of strings, each with its position.
    fn read_strings(&mut self, value: &Value<'_>, name: &str) -> Vec<(usize, String)> {
        let Some(array) = value.get_ref().as_array() else {
            self.add_problem(value.span().start, format!("`{name}` must be a list of strings"));
            return Vec::new();
        };
        array.iter().filter_map(|item| Some((item.span().start, self.read_string(item, name)?))).collect()
    }

    fn read_rules(&mut self, value: &Value<'_>, rules: &mut Rules) {
        let Some(array) = value.get_ref().as_array() else {
            self.add_problem(value.span().start, "write `[[rule]]`, with two brackets");
            return;
        };
        if array.len() > MAX_RULES {
            self.add_problem(
                value.span().start,
                format!("there are {} rules, at most {MAX_RULES} are read", array.len()),
            );
        }
        for item in array.iter().take(MAX_RULES) {
            let before = self.problems.len();
            let rule = self.read_rule(item);
            if let Some(rule) = rule.filter(|_| self.problems.len() == before) {
                rules.rules.push(rule);
            }
        }
    }

    fn read_rule(&mut self, value: &Value<'_>) -> Option<Rule> {
        let at = value.span().start;
        let table = self.read_table(value, "rule")?;
        let (mut tool, mut targets, mut decision, mut why) = (None, Vec::new(), None, None);
        let (mut matching, mut not_matching) = (Vec::new(), Vec::new());
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "tool" => tool = self.read_string(value, "tool"),
                "command" => targets.extend(self.read_command(value).map(Target::Command)),
                "path" => targets.extend(self.read_path(value, "path").map(Target::Path)),
                "host" => targets.extend(self.read_host(value).map(Target::Host)),
                "arguments" => targets.extend(self.read_arguments(value).map(Target::Arguments)),
                "decision" => decision = self.read_decision(value),
                "why" => why = self.read_string(value, "why").map(|why| why.trim_end_matches('.').to_owned()),
                "match" => matching = self.read_strings(value, "match"),
                "not_match" => not_matching = self.read_strings(value, "not_match"),
                other => self.add_unknown_key(
                    key.span().start,
                    other,
                    "tool, command, path, host, arguments, decision, why, match and not_match",
                ),
            }
        }
        if targets.len() > 1 {
            self.add_problem(at, "a rule covers a command, a path, a host or arguments, but only one of these");
        }
        if targets.is_empty() && tool.is_none() {
            self.add_problem(at, "a rule needs a `tool`, a `command`, a `path` or a `host`");
        }
        if decision.is_none() && !table.keys().any(|key| key.get_ref() == "decision") {
            self.add_problem(at, "a rule needs a `decision`: allow, ask or deny");
        }
        let never_asks = tool.as_deref().filter(|tool| FREE.contains(tool));
        if let (Some(tool), Some(Decision::Ask)) = (never_asks, decision) {
            self.add_problem(
                at,
                format!("`{tool}` never asks, so this rule would change nothing; it can be denied or left alone"),
            );
        }
        let target = targets.pop().unwrap_or(Target::Any);
        if let Target::Arguments(_) = target {
            self.check_exact_rule(at, tool.as_deref(), decision);
            self.check_verb(at, tool.as_deref(), &target);
        } else if matching.is_empty() {
            self.add_problem(at, "a rule needs `match`: at least one example that shows it works");
        }
        let rule = Rule { line: self.find_line(at), tool, target, decision: decision?, why, made_at: None };
        self.check_examples(&rule, &matching, &not_matching);
        Some(rule)
    }

    /// Checks a rule about exact arguments, which can only allow: one more space would evade a denial.
    fn check_exact_rule(&mut self, at: usize, tool: Option<&str>, decision: Option<Decision>) {
        if tool.is_none_or(|tool| tool.contains('*')) {
            self.add_problem(at, "a rule with `arguments` needs the `tool` that they are for, without a `*`");
        }
        if decision.is_some_and(|decision| decision != Decision::Allow) {
            self.add_problem(at, "a rule with `arguments` can only allow");
        }
    }

    /// Refuses a verb among the arguments, because such a rule would match nothing: the policy judges a call of a grouped tool as a call of
    /// its verb's own tool, whose arguments have no verb.
    fn check_verb(&mut self, at: usize, tool: Option<&str>, target: &Target) {
        let Target::Arguments(arguments) = target else { return };
        let Some(group) = tool.and_then(VerbGroup::find_by_name) else { return };
        let Some(verb) = arguments.get(VERB) else { return };
        let own = match verb.as_str().and_then(|verb| group.find_tool(verb)) {
            Some(own) => format!("name the verb's own tool, `tool = \"{own}\"`, and leave `{VERB}` out"),
            None => {
                let tools: Vec<&str> = group.verbs.iter().map(|(_, tool)| *tool).collect();
                format!("name one of its tools ({}), and leave `{VERB}` out", tools.join(", "))
            }
        };
        self.add_problem(at, format!("`{}` with `{VERB}` would match no call: {own}", group.name));
    }

    /// Reads a table of arguments into the JSON of a call.
    fn read_arguments(&mut self, value: &Value<'_>) -> Option<Json> {
        let json = value.get_ref().as_table().and_then(|_| to_json(value.get_ref()));
        if json.is_none() {
            self.add_problem(value.span().start, "`arguments` must be a table of strings, numbers, lists and tables");
        }
        json
    }

    fn check_examples(&mut self, rule: &Rule, matching: &[(usize, String)], not_matching: &[(usize, String)]) {
        for (at, example) in matching.iter().filter(|(_, example)| !rule.is_example_match(example)) {
            self.add_problem(*at, format!("the rule doesn't match its own example `{example}`"));
        }
        for (at, example) in not_matching.iter().filter(|(_, example)| rule.is_example_match(example)) {
            self.add_problem(*at, format!("the rule matches `{example}`, which its `not_match` rules out"));
        }
    }

    fn read_decision(&mut self, value: &Value<'_>) -> Option<Decision> {
        let decision = match value.get_ref().as_str() {
            Some("allow") => Some(Decision::Allow),
            Some("ask") => Some(Decision::Ask),
            Some("deny") => Some(Decision::Deny),
            _ => None,
        };
        if decision.is_none() {
            self.add_problem(value.span().start, "`decision` must be \"allow\", \"ask\" or \"deny\"");
        }
        decision
    }

    /// Reads a string of words, or a list of words and of lists of alternatives.
    fn read_command(&mut self, value: &Value<'_>) -> Option<Vec<Word>> {
        let at = value.span().start;
        let words: Vec<Word> = if let Some(text) = value.get_ref().as_str() {
            text.split_whitespace().map(|word| Self::make_word(vec![word.to_owned()])).collect()
        } else if let Some(array) = value.get_ref().as_array() {
            array
                .iter()
                .filter_map(|item| match item.get_ref().as_array() {
                    Some(_) => {
                        let any: Vec<String> =
                            self.read_strings(item, "command").into_iter().map(|(_, word)| word).collect();
                        (!any.is_empty()).then(|| Self::make_word(any))
                    }
                    None => self.read_string(item, "command").map(|word| Self::make_word(vec![word])),
                })
                .collect()
        } else {
            Vec::new()
        };
        match words.first() {
            Some(Word::OneOf(names)) if !names.iter().any(|name| name.chars().all(|c| c == '*')) => Some(words),
            _ => {
                self.add_problem(
                    at,
                    "`command` must be a string or a list of words, and its first word must name a program",
                );
                None
            }
        }
    }

    fn make_word(any: Vec<String>) -> Word {
        if any.iter().any(|word| word == "**") { Word::Many } else { Word::OneOf(any) }
    }

    fn read_path(&mut self, value: &Value<'_>, name: &str) -> Option<String> {
        let path = self.read_string(value, name)?;
        let is_plain = path.split('/').all(|part| !matches!(part, "." | "..")) && !path.contains("//");
        if (path.starts_with('/') || path.starts_with("~/")) && is_plain {
            return Some(path);
        }
        self.add_problem(
            value.span().start,
            format!("`{path}` must be an absolute path or begin with `~/`, without `..`"),
        );
        None
    }

    fn read_host(&mut self, value: &Value<'_>) -> Option<String> {
        let pattern = self.read_string(value, "host")?.to_lowercase();
        if pattern.chars().all(|c| c.is_ascii_alphanumeric() || ".-*:[]".contains(c)) {
            return Some(pattern);
        }
        self.add_problem(value.span().start, format!("`{pattern}` must be a host's name, without a scheme or a path"));
        None
    }

    fn read_files(&mut self, value: &Value<'_>, rules: &mut Rules) {
        let Some(table) = self.read_table(value, "files") else { return };
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let list = match name {
                "read" => &mut rules.readable,
                "write" => &mut rules.writable,
                other => {
                    self.add_unknown_key(key.span().start, other, "read and write");
                    continue;
                }
            };
            let Some(array) = value.get_ref().as_array() else {
                self.add_problem(value.span().start, format!("`{name}` must be a list of folders"));
                continue;
            };
            for item in array {
                match self.read_path(item, name) {
                    Some(path) if path.contains('*') => {
                        self.add_problem(item.span().start, format!("`{path}` must be a folder, without a `*`"));
                    }
                    Some(path) if path.trim_end_matches('/').is_empty() && name == "write" => {
                        self.add_problem(item.span().start, "the whole machine can't be granted for writing");
                    }
                    path => list.extend(path),
                }
            }
        }
    }

    fn read_network(&mut self, value: &Value<'_>, rules: &mut Rules) {
        let Some(table) = self.read_table(value, "network") else { return };
        for (key, value) in table {
            if key.get_ref() != "hosts" {
                self.add_unknown_key(key.span().start, key.get_ref(), "hosts");
                continue;
            }
            for (at, text) in self.read_strings(value, "hosts") {
                match parse_host(&text) {
                    Some(host) => rules.hosts.push(host),
                    None => self.add_problem(
                        at,
                        format!("`{text}` must be a host's name or address and a port, as in `api.github.com:443`"),
                    ),
                }
            }
        }
    }

    fn read_shell(&mut self, value: &Value<'_>, rules: &mut Rules) {
        let Some(table) = self.read_table(value, "shell") else { return };
        for (key, value) in table {
            if key.get_ref() != "timeout_s" {
                self.add_unknown_key(key.span().start, key.get_ref(), "timeout_s");
                continue;
            }
            let seconds = value.get_ref().as_integer().and_then(|n| u64::from_str_radix(n.as_str(), n.radix()).ok());
            match seconds.filter(|seconds| (1..=MAX_TIMEOUT_S).contains(seconds)) {
                Some(seconds) => rules.shell_timeout = Some(Duration::from_secs(seconds)),
                None => self.add_problem(
                    value.span().start,
                    format!("`timeout_s` must be a number of seconds from 1 to {MAX_TIMEOUT_S}"),
                ),
            }
        }
    }
}

/// Converts a value to JSON; `None` for a date, or for a number foreign to JSON.
fn to_json(value: &DeValue<'_>) -> Option<Json> {
    Some(match value {
        DeValue::String(text) => Json::String(text.clone().into_owned()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).ok()?.into(),
        DeValue::Float(number) => Json::Number(serde_json::Number::from_f64(number.as_str().parse().ok()?)?),
        DeValue::Boolean(is_true) => Json::Bool(*is_true),
        DeValue::Array(items) => items.iter().map(|item| to_json(item.get_ref())).collect::<Option<_>>()?,
        DeValue::Table(table) => {
            let fields = table.iter().map(|(key, value)| Some((key.get_ref().to_string(), to_json(value.get_ref())?)));
            Json::Object(fields.collect::<Option<_>>()?)
        }
        DeValue::Datetime(_) => return None,
    })
}

/// Parses `name:port`, with an IPv6 address in brackets.
fn parse_host(text: &str) -> Option<Host> {
    let (name, port) = text.rsplit_once(':')?;
    let port: u16 = port.parse().ok().filter(|port| *port > 0)?;
    let name = name.to_lowercase();
    let is_v6 = name
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .is_some_and(|address| address.parse::<std::net::Ipv6Addr>().is_ok());
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let is_name = name.len() <= 253 && name.split('.').all(is_label);
    (is_v6 || is_name).then_some(Host { name, port })
}
