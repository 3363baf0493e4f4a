//! Rules that a person makes for one call: the offer in a question, its display, and adding to or removing from `policy.toml`.
//!
//! The bot, the terminal and the asking cycle share this module. A rule covers exactly one call; the policy itself checks each new rule
//! against that call.

use std::path::Path;

use serde_json::Value;

use reveille_base::{approval_text::render_code_block, types::Effect, words::truncate_text};
use reveille_config::Config;
use reveille_policy as policy;
use reveille_policy::{
    Access, Circumstances, Decision, Reach, Risk, Rules, SHELL, Subject, What,
    amend::{self, AmendError, ListedRule},
};
use reveille_store::Approval;

/// The maximum number of rules in a list.
const LISTED_MAX: usize = 40;
/// The maximum length of a listed rule, in characters.
const LISTED_CHARS_MAX: usize = 240;

/// Returns the rule that allows exactly this call, as it would stand in `policy.toml`. `None` for tools whose exact call doesn't recur, and
/// for arguments that can't be written as a rule.
pub fn derive_rule(tool: &str, arguments: &str) -> Option<String> {
    let comes_again = tool == SHELL || tool == "web_fetch" || tool.starts_with("mcp__");
    amend::render_exact_rule(tool, arguments).filter(|_| comes_again)
}

/// Returns `true` if a command with grants names a file in the scratch folder. Any command may rewrite such a file, so a rule would allow
/// its future content too. Options don't count as names.
pub fn names_scratch(tool: &str, arguments: &str, rules: &Rules, scratch: &Path) -> bool {
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    let (text, wanted) = extract_command(&arguments);
    if tool != SHELL || rules.limit_access(text, wanted).is_none() {
        return false;
    }
    let is_there = |word: &String| {
        let path = scratch.join(word);
        !word.is_empty() && !word.starts_with('-') && path.starts_with(scratch) && path.symlink_metadata().is_ok()
    };
    policy::list_commands(text).iter().any(|words| {
        let is_relative = |name: &String| name.contains('/') && !name.starts_with('/');
        words.first().is_some_and(is_relative) || words.iter().any(is_there)
    })
}

/// Returns the command of a call of the shell tool. `None` for other tools and for calls without a command.
pub fn find_command(tool: &str, arguments: &str) -> Option<String> {
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    let text = arguments.get("command").and_then(Value::as_str)?;
    (tool == SHELL).then(|| text.to_owned())
}

/// Returns `true` if a call of the shell tool has write access to folders, or network access.
pub fn has_access(tool: &str, arguments: &str, rules: &Rules) -> bool {
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    let (text, wanted) = extract_command(&arguments);
    tool == SHELL && !rules.limit_access(text, wanted).is_none()
}

/// Extracts the command and the requested access from the shell tool's arguments.
fn extract_command(arguments: &Value) -> (&str, Access) {
    let is = |name: &str| arguments.get(name).and_then(Value::as_bool).unwrap_or(false);
    let text = arguments.get("command").and_then(Value::as_str).unwrap_or_default();
    (text, Access { writes: is("writes"), network: is("network") })
}

/// Renders the rule and its meaning for a person before it is added, as Markdown.
pub fn render_rule(approval: &Approval) -> Option<String> {
    let rule = derive_rule(&approval.tool, &approval.action)?;
    let what = match approval.tool.as_str() {
        SHELL => "exactly this command with the same permissions",
        "web_fetch" => "exactly this address",
        _ => "this tool with exactly these arguments",
    };
    let since = if approval.tool == SHELL { ", or changed your folders after reading it" } else { "" };
    Some(format!(
        "**Always allow this?** I would add this rule to your `policy.toml`:\n\n{}\n\nFrom then on, I'll run {what} without asking. If \
         even one character differs, I still ask. I also ask once I've read untrusted text{since}. To remove the rule, send `/rules`.",
        render_code_block(rule.trim_end())
    ))
}

/// Adds the rule of a question, or renews it. `from` says where and when, such as `from Telegram on ` and the time as [`amend::TIME`].
/// Returns `true` if the rule is new.
///
/// # Errors
/// The obstacle to the rule; the file is unchanged.
pub fn add_rule(config: &Config, approval: &Approval, from: &str) -> Result<bool, AmendError> {
    let Approval { tool, action, risk, .. } = approval;
    let rule = derive_rule(tool, action).ok_or(AmendError::NotExact)?;
    policy::change_file(&config.policy_path(), config.home.as_deref(), |text| {
        let new = match amend::add_rule(text, &rule, from)? {
            // The same call was asked about since, so the old rule no longer counts.
            None => amend::renew_rule(text, &rule, approval.asked_at.unwrap_or_default(), from)?,
            new => new,
        };
        let rules = Rules::parse(new.as_deref().unwrap_or(text)).map_err(|_| AmendError::NotExact)?;
        let verdict = judge_call(tool, action, risk, &rules.with_home(config.home.as_deref()), config);
        match verdict.decision {
            Decision::Allow => Ok(new),
            Decision::Ask | Decision::Deny => Err(AmendError::NoEffect(verdict.reasons.join(" "))),
        }
    })
}

/// Judges the call as if no untrusted text had been read. The asking cycle has judged it with its tool at hand; only the file can have
/// changed since.
fn judge_call(tool: &str, action: &str, risk: &str, rules: &Rules, config: &Config) -> policy::Verdict {
    let arguments: Value = serde_json::from_str(action).unwrap_or_default();
    let (text, wanted) = extract_command(&arguments);
    let what = match tool {
        SHELL => What::Shell { text, access: rules.limit_access(text, wanted) },
        "web_fetch" => What::Url(arguments.get("url").and_then(Value::as_str).unwrap_or_default().trim()),
        _ => What::Plain,
    };
    let risk = serde_json::from_value(Value::from(risk)).unwrap_or(Risk::Destructive);
    let subject =
        Subject { tool, risk, effect: Effect::Once, is_free: false, reach: Reach::Leaves, what, arguments: action };
    let circumstances = Circumstances {
        autonomy: config.autonomy,
        taint: None,
        is_sandboxed: true,
        uncovered: None,
        tainted_write: None,
    };
    policy::judge(&subject, rules, &circumstances)
}

/// Removes one of our rules, given by [`ListedRule::text`]. Returns its meaning in plain words.
///
/// # Errors
/// The obstacle to the removal; the file is unchanged.
pub fn remove(config: &Config, rule: &str) -> Result<String, AmendError> {
    let mut said = None;
    policy::change_file(&config.policy_path(), config.home.as_deref(), |text| {
        said =
            amend::list_rules(text)?.into_iter().find(|listed| listed.text() == Some(rule)).map(|listed| listed.words);
        amend::remove_rule(text, rule).map(Some)
    })?;
    said.ok_or(AmendError::Gone)
}

/// Lists the rules of `policy.toml`, in its order.
///
/// # Errors
/// If the file isn't in use.
pub fn list_rules(config: &Config) -> Result<Vec<ListedRule>, AmendError> {
    amend::list_rules(&policy::read_text(&config.policy_path()).map_err(AmendError::Unusable)?)
}

/// Renders the rules as a Markdown list, numbered from 1. `None` if there are none.
pub fn render_rules(rules: &[ListedRule]) -> Option<String> {
    let mut lines: Vec<String> =
        rules.iter().take(LISTED_MAX).enumerate().map(|(at, rule)| render_line(at + 1, rule)).collect();
    if rules.len() > LISTED_MAX {
        lines.push(format!("and {} more, in `policy.toml`", rules.len() - LISTED_MAX));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn render_line(number: usize, rule: &ListedRule) -> String {
    let whose = match &rule.added {
        Some(from) => format!("added {from}"),
        None => format!("yours, line {}", rule.line),
    };
    let words = truncate_text(&rule.words, LISTED_CHARS_MAX);
    // Closes an inline code that was cut.
    let end = if words.matches('`').count() % 2 == 1 { "`" } else { "" };
    format!("{number}. {words}{end} · {whose}")
}

/// Returns the text of the removable rule with this number.
///
/// # Errors
/// The reason against the removal, as a sentence.
pub fn find_removable(rules: &[ListedRule], number: usize) -> Result<&str, String> {
    let rule = number.checked_sub(1).and_then(|at| rules.get(at));
    let rule = rule.ok_or_else(|| format!("There's no rule {number}, so nothing was changed."))?;
    rule.text().ok_or_else(|| {
        format!(
            "Rule {number} is your own, so I won't change it. You can remove it in `policy.toml`, line {}.",
            rule.line
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_names_what_any_command_may_write_is_known() {
        let scratch = tempfile::tempdir().unwrap();
        std::fs::write(scratch.path().join("fetch.sh"), "").unwrap();
        let rules = Rules::parse("[network]\nhosts = [\"example.org:443\"]").unwrap();
        let names = |command: &str, network: bool| {
            let arguments = serde_json::json!({ "command": command, "network": network }).to_string();
            names_scratch(SHELL, &arguments, &rules, scratch.path())
        };
        let whole = scratch.path().join("fetch.sh").display().to_string();
        for command in ["sh fetch.sh", "ls && sh -e ./fetch.sh", "./other", "bin/other", &format!("sh {whole}")] {
            assert!(names(command, true), "{command}");
            assert!(!names(command, false), "it is given nothing: {command}");
        }
        for command in ["gh pr list", "/usr/bin/gh", "sh gone.sh", "gh -fetch.sh"] {
            assert!(!names(command, true), "{command}");
        }
    }
}
