//! Rules about exactly one call: a tool with exact arguments. Also describes any rule in words.

use chrono::{DateTime, Utc};
use serde_json::Value;

use reveille_base::approval_text;

use super::{Decision, Rule, Rules, SHELL, Target, read::MAX_RULES, render_pattern};

/// A rule of the file, described for people.
pub(crate) struct DescribedRule<'a> {
    pub(crate) line: usize,
    /// The tool and its exact arguments, if the rule is about them.
    pub(crate) exact: Option<(&'a str, &'a Value)>,
    /// The rule in words.
    pub(crate) words: String,
}

impl Rules {
    /// Returns the wording of the rule that allows exactly this call, if any.
    pub(crate) fn find_exact_rule(&self, tool: &str, arguments: &str) -> Option<String> {
        self.list_rules_for_call(tool, arguments).next().map(Rule::sentence)
    }

    /// Returns `true` if a rule that allows exactly this call was made after `since`.
    pub(crate) fn allows_exactly_since(&self, since: DateTime<Utc>, tool: &str, arguments: &str) -> bool {
        self.list_rules_for_call(tool, arguments).any(|rule| rule.is_since(since))
    }

    fn list_rules_for_call(&self, tool: &str, arguments: &str) -> impl Iterator<Item = &Rule> {
        let mut exact = self.list_exact_rules(tool).peekable();
        let given: Option<Value> = exact.peek().and_then(|_| serde_json::from_str(arguments).ok());
        exact.filter(move |(_, arguments)| Some(*arguments) == given.as_ref()).map(|(rule, _)| rule)
    }

    /// Returns `true` if a rule allows exactly one call of the tool, with arguments for which `same` holds.
    pub fn has_exact(&self, tool: &str, same: impl Fn(&Value) -> bool) -> bool {
        self.list_exact_rules(tool).any(|(_, arguments)| same(arguments))
    }

    /// Adds a rule that allows exactly this call and counts as newer than anything else. Arguments other than an object add nothing.
    #[must_use]
    pub fn with_exact(&self, tool: &str, arguments: &str) -> Self {
        let mut rules = self.clone();
        if let Ok(arguments @ Value::Object(_)) = serde_json::from_str(arguments) {
            let (tool, target) = (Some(tool.to_owned()), Target::Arguments(arguments));
            let made_at = Some(DateTime::<Utc>::MAX_UTC);
            rules.rules.push(Rule { line: 0, tool, target, decision: Decision::Allow, why: None, made_at });
        }
        rules
    }

    /// Returns `true` if a file with one more rule would be refused.
    pub(crate) fn is_full(&self) -> bool {
        self.rules.len() >= MAX_RULES
    }

    /// Returns `true` if these rules equal `before` plus the single rule of `more`. Line numbers are ignored.
    pub(crate) fn adds_exactly(&self, before: &Self, more: &Self) -> bool {
        let content = |rule: &Rule| (rule.tool.clone(), rule.target.clone(), rule.decision, rule.why.clone());
        let mut mine: Vec<_> = self.rules.iter().map(content).collect();
        let is_one = more.rules.len() == 1 && mine.len() == before.rules.len() + 1;
        let Some(at) = more.rules.first().and_then(|rule| mine.iter().rposition(|mine| *mine == content(rule))) else {
            return false;
        };
        mine.remove(at);
        is_one
            && mine == before.rules.iter().map(content).collect::<Vec<_>>()
            && self.readable == before.readable
            && self.writable == before.writable
            && self.hosts == before.hosts
            && self.shell_timeout == before.shell_timeout
    }

    fn list_exact_rules(&self, tool: &str) -> impl Iterator<Item = (&Rule, &Value)> {
        self.rules.iter().filter_map(move |rule| match &rule.target {
            Target::Arguments(arguments) if rule.tool.as_deref() == Some(tool) => Some((rule, arguments)),
            _ => None,
        })
    }

    /// Lists the rules in the file's order.
    pub(crate) fn list_rules(&self) -> impl Iterator<Item = DescribedRule<'_>> {
        self.rules.iter().map(|rule| {
            let exact = match (&rule.tool, &rule.target) {
                (Some(tool), Target::Arguments(arguments)) => Some((tool.as_str(), arguments)),
                _ => None,
            };
            DescribedRule { line: rule.line, exact, words: rule.describe() }
        })
    }
}

impl Rule {
    /// Describes the rule for people, without its line.
    fn describe(&self) -> String {
        let code =
            |text: &str| format!("`{}`", approval_text::escape_hidden(text).replace('`', "'").replace('\n', " "));
        let for_tool = || self.tool.as_ref().map_or_else(String::new, |tool| format!(" for {}", code(tool)));
        let what = match &self.target {
            Target::Any => format!("every call of {}", code(self.tool.as_deref().unwrap_or("*"))),
            Target::Command(words) => {
                format!("commands that begin with {}{}", code(&render_pattern(words)), for_tool())
            }
            Target::Path(pattern) => format!("anything at {}{}", code(pattern), for_tool()),
            Target::Host(pattern) => format!("addresses at {}{}", code(pattern), for_tool()),
            Target::Arguments(arguments) => {
                let tool = self.tool.as_deref().unwrap_or_default();
                match arguments.get("command").and_then(Value::as_str).filter(|_| tool == SHELL) {
                    Some(command) => format!("exactly the command {}{}", code(command), describe_rights(arguments)),
                    None => format!("{} with exactly {}", code(tool), code(&arguments.to_string())),
                }
            }
        };
        let decision = match self.decision {
            Decision::Allow => "Runs without asking",
            Decision::Ask => "Asks first",
            Decision::Deny => "Never runs",
        };
        let why = self.why.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
        format!("{decision}: {what}{why}")
    }
}

/// Describes the rights that a shell command asks for.
fn describe_rights(arguments: &Value) -> &'static str {
    let asks = |name: &str| arguments.get(name).and_then(Value::as_bool).unwrap_or(false);
    match (asks("writes"), asks("network")) {
        (true, true) => ", which may change granted folders and reach granted hosts",
        (true, false) => ", which may change granted folders",
        (false, true) => ", which may reach granted hosts",
        (false, false) => "",
    }
}
