//! Shows a cycle's actions as they happen, one line per step. They are read from the cycle's journal, like the progress
//! line on Telegram: nothing depends on them, and unreadable parts are left out.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use reveille_base::{
    approval_text::escape_hidden,
    redact::Redactor,
    types::ChatRef,
    words::{one_line, truncate_text},
};
use reveille_cycle as cycle;
use reveille_cycle::context::{Context, WakeError};
use reveille_store::{Entry, Store, wake_lock};
use reveille_tools::Plan;

use super::{WORKING, complain, out};
use crate::cli::{
    background::BackgroundThread,
    preview::{self, TerminalPreview},
};

/// Maximum characters of a line, since a wrapped line can't be removed.
const MAX_CHARS: usize = 76;
/// Calls without a line, since their results are visible: the plan is printed, and the answer follows.
const SPEAKING: [&str; 2] = ["plan", "reply"];

/// Shows the steps of a terminal's cycles.
pub(super) struct Steps {
    inside: Mutex<Inside>,
    lock_path: PathBuf,
    redactor: Redactor,
}

struct Inside {
    store: Store,
    /// The message in progress.
    message: Option<i64>,
    /// The last cycle shown.
    cycle: Option<String>,
    /// The number of journal entries shown, by cycle.
    shown: BTreeMap<String, usize>,
    preview: TerminalPreview,
}

impl Steps {
    /// Opens a second connection to the store, for the thread that reads while the wake works.
    pub(super) fn open(context: Context<'_>) -> Result<Self, WakeError> {
        let store = cycle::open_store(context.config)?;
        let inside = Inside {
            store,
            message: None,
            cycle: None,
            shown: BTreeMap::new(),
            preview: TerminalPreview::new(context.config),
        };
        Ok(Self {
            inside: Mutex::new(inside),
            lock_path: context.config.lock_path(),
            redactor: context.redactor.clone(),
        })
    }

    /// Shows the steps for a message, or for resumed work.
    pub(super) fn watch(steps: &Arc<Self>, message: Option<i64>) -> BackgroundThread {
        steps.inside.lock().unwrap_or_else(PoisonError::into_inner).message = message;
        let steps = Arc::clone(steps);
        BackgroundThread::repeat_until_dropped(preview::LOOK_EVERY, move || steps.show_new())
    }

    /// Prints the steps since the last call, and shows the current one.
    pub(super) fn show_new(&self) {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        let Inside { store, message, cycle, shown, preview } = &mut *inside;
        let by_message = message.and_then(|message| store.terminals().find_claiming_cycle(message).ok().flatten());
        let by_lock =
            || wake_lock::read_holder(&self.lock_path).filter(|holder| holder.chat == Some(ChatRef::TERMINAL));
        if let Some(now) = by_message.or_else(|| by_lock()?.cycle_id) {
            *cycle = Some(now);
        }
        let Some(cycle) = cycle.as_ref() else { return };
        let Ok(calls) = store.status_lines().list_cycle_calls(cycle) else { return };
        let from = shown.insert(cycle.clone(), calls.len()).unwrap_or(0);
        for line in render_lines(&calls, from) {
            complain(&self.redactor.redact(&line));
        }
        let under_way = || under_way(&calls).map(|step| self.redactor.redact(&format!("working: {step}…")));
        out::say_instead(preview.render().or_else(under_way).as_deref().unwrap_or(WORKING));
    }
}

/// Renders a line for each call that ended since entry `from`, and one for each step of a plan.
fn render_lines(calls: &[Entry], from: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for entry in calls.iter().skip(from) {
        let Entry::Outcome { call, name, content, is_error, receipt, .. } = entry else { continue };
        let input = find_input(calls, call);
        match (name.as_str(), is_error) {
            ("plan", false) => lines.extend(render_plan(input)),
            (name, false) if SPEAKING.contains(&name) => {}
            (name, false) => {
                let what = receipt.as_deref().map_or_else(|| describe_call(name, input), str::to_owned);
                lines.push(render_line("✓", &what));
            }
            (name, true) => lines.push(render_line("✗", &format!("{}: {content}", describe_call(name, input)))),
        }
    }
    lines
}

fn render_line(mark: &str, text: &str) -> String {
    format!("  {mark} {}", truncate_text(&escape_hidden(&one_line(text)), MAX_CHARS))
}

/// Describes the call in progress.
fn under_way(calls: &[Entry]) -> Option<String> {
    match calls.last()? {
        Entry::Called { name, input, .. } if !SPEAKING.contains(&name.as_str()) => {
            Some(truncate_text(&escape_hidden(&describe_call(name, input)), MAX_CHARS - WORKING.len()))
        }
        _ => None,
    }
}

fn find_input<'a>(calls: &'a [Entry], id: &str) -> &'a str {
    let input = calls.iter().rev().find_map(|entry| match entry {
        Entry::Called { call, input, .. } if call == id => Some(input.as_str()),
        _ => None,
    });
    input.unwrap_or_default()
}

/// Describes a call in a few words: its tool and its first argument.
fn describe_call(name: &str, input: &str) -> String {
    let arguments: Option<serde_json::Map<String, serde_json::Value>> = serde_json::from_str(input).ok();
    let first = arguments.and_then(|arguments| arguments.into_iter().next()).map(|(_, value)| match value {
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    });
    match first {
        Some(first) => format!("{name} {}", one_line(&first)),
        None => name.to_owned(),
    }
}

fn render_plan(input: &str) -> Vec<String> {
    let Ok(plan) = serde_json::from_str::<Plan>(input) else { return Vec::new() };
    plan.steps.iter().enumerate().map(|(at, step)| render_line(&format!("{}.", at + 1), &step.what)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(call: &str, name: &str, input: &str) -> Entry {
        Entry::Called { call: call.to_owned(), name: name.to_owned(), input: input.to_owned(), taint: None }
    }

    fn ended(call: &str, name: &str, content: &str, receipt: Option<&str>, is_error: bool) -> Entry {
        Entry::Outcome {
            call: call.to_owned(),
            name: name.to_owned(),
            content: content.to_owned(),
            is_error,
            receipt: receipt.map(str::to_owned),
            closed: Vec::new(),
            taint: None,
            image: None,
        }
    }

    #[test]
    fn each_step_is_a_line_and_is_shown_once() {
        let calls = [
            called(
                "1",
                "plan",
                r#"{"understood":"u","steps":[{"what":"Look it up","tool":"search"},{"what":"Say it","tool":"reply"}]}"#,
            ),
            ended("1", "plan", "ok", None, false),
            called("2", "search", r#"{"query":"wifi\n code"}"#),
            ended("2", "search", "found", None, false),
            called("3", "remember", r#"{"fact":"tea"}"#),
            ended("3", "remember", "done", Some("Remembered: tea"), false),
            called("4", "shell", r#"{"command":"ls \u001b[2J"}"#),
            ended("4", "shell", "no such file", None, true),
            called("5", "reply", r#"{"text":"hi"}"#),
            ended("5", "reply", "", None, false),
        ];
        let shown = render_lines(&calls, 0);
        assert_eq!(
            shown,
            [
                "  1. Look it up",
                "  2. Say it",
                "  ✓ search wifi code",
                "  ✓ Remembered: tea",
                "  ✗ shell ls \\u{1b}[2J: no such file"
            ]
        );
        assert_eq!(render_lines(&calls, 6), [shown[4].clone()]);
        assert_eq!(under_way(&calls[..7]).as_deref(), Some("shell ls \\u{1b}[2J"));
        assert_eq!(under_way(&calls), None);
    }
}
