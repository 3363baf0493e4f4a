//! Renders a replay's report for people: recording and replay side by side, one call per line, with the differences.

use reveille_account::clean_for_display;
use reveille_base::{
    redact::Redactor,
    words::{format_count, one_line, truncate_text},
};

use super::{CallFate, ReplayEnd, ReplayReport, RunFigures};

/// The maximum length of a call's shown arguments, in characters. Arguments that differ are shown in full.
const MAX_INPUT_CHARS: usize = 100;

/// Renders the report for a terminal.
pub fn render_report(report: &ReplayReport, redactor: &Redactor) -> String {
    let ReplayReport { wake_id, recorded_model, model, .. } = report;
    let masked = |text: &str| clean_for_display(redactor, text);
    let mut text = format!("replay of {wake_id}, recorded with {recorded_model}, now with {model}\n\n");
    for call in &report.calls {
        let whole = |input: &Option<String>| one_line(&masked(input.as_deref().unwrap_or_default()));
        let (then, now) = (whole(&call.recorded), whole(&call.replayed));
        let line = match call.fate {
            CallFate::Same => format!("  same          {} {}\n", call.tool, truncate_text(&then, MAX_INPUT_CHARS)),
            CallFate::Different => {
                format!("  other words   {}\n    then        {then}\n    now         {now}\n", call.tool)
            }
            CallFate::Missing => format!("  missing       {} {then}\n", call.tool),
            CallFate::NotRecorded => format!("  not recorded  {} {now}\n", call.tool),
        };
        text.push_str(&line);
    }
    text.push_str(&render_receipts(report, &masked));
    text.push_str(&render_files(report, &masked));
    if report.said_then == report.said_now {
        text.push_str("answer: the same\n");
    } else {
        for (when, said) in [("then", &report.said_then), ("now", &report.said_now)] {
            let said = if said.is_empty() { "(none)".to_owned() } else { said.join("\n\n") };
            text.push_str(&format!("answer {when}:\n{}\n", indent_lines(&masked(&said))));
        }
    }
    text.push_str(&format!("then: {}\nnow:  {}\n", format_figures(&report.recorded), format_figures(&report.replayed)));
    for note in &report.notes {
        text.push_str(&format!("{}\n", masked(note)));
    }
    text.push_str(&match &report.ended {
        ReplayEnd::NotRecorded { tool, .. } => {
            format!("\nDifferent: it ended at a call that isn't recorded ({tool}, above). The call wasn't run.\n")
        }
        ReplayEnd::Stopped { why } => format!("\nDifferent: it didn't finish: {}\n", masked(why)),
        ReplayEnd::Finished if report.same => "\nThe same.\n".to_owned(),
        ReplayEnd::Finished => "\nDifferent.\n".to_owned(),
    });
    text
}

fn render_receipts(report: &ReplayReport, masked: &dyn Fn(&str) -> String) -> String {
    let (missing, new) = (&report.receipts_missing, &report.receipts_new);
    let mut text = format!("\nreceipts: {} the same\n", report.receipts_same);
    missing.iter().for_each(|what| text.push_str(&format!("  - {}\n", masked(what))));
    new.iter().for_each(|what| text.push_str(&format!("  + {}\n", masked(what))));
    text
}

fn render_files(report: &ReplayReport, masked: &dyn Fn(&str) -> String) -> String {
    let (same, different): (Vec<_>, Vec<_>) = report.files.iter().partition(|file| file.same);
    let mut text = format!("files: {} the same\n", same.len());
    for file in different {
        text.push_str(&format!("  {}\n", file.path));
        if file.lines.is_empty() {
            text.push_str("    only the notes of origin differ\n");
        }
        for line in &file.lines {
            text.push_str(&format!("    {} {}\n", if line.is_added { "+" } else { "-" }, masked(&line.text)));
        }
    }
    text
}

fn format_figures(run: &RunFigures) -> String {
    let RunFigures { rounds, tokens, cost_usd } = run;
    let input = tokens.input + tokens.cache_read + tokens.cache_write;
    let rounds = format_count(*rounds as usize, "round");
    format!("{rounds}, {input} tokens in, {} out, ${cost_usd:.4}", tokens.output)
}

fn indent_lines(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}
