//! The recording of a finished cycle as an example: its request, its successful calls and their effects. Pure.
//!
//! Dead ends are dropped: calls that failed, were refused, or ended with a program's error. Their results stay in the journal as long as
//! that is kept. Everything is masked and shortened before it is kept.

use std::collections::BTreeMap;

use reveille_base::redact::Redactor;
use reveille_memory::{outside, quoting::content_words};
use reveille_store::{Entry, NewCycle, NewRecording, RecordedCall};

use crate::decide::brief::clip;

/// The maximum number of calls in a recording; the first ones are kept.
const MAX_CALLS: usize = 24;
/// The maximum length of a call's arguments, in characters.
const MAX_INPUT_CHARS: usize = 2_000;
/// The maximum length of a request, in characters.
const MAX_REQUEST_CHARS: usize = 2_000;
/// The maximum length of a receipt, in characters.
const MAX_RECEIPT_CHARS: usize = 300;
/// Tools that speak, plan or note; their calls don't show how to do the work.
const TALK: [&str; 5] = ["plan", "reply", "tell", "note", "keep"];
/// How the last lines of a failed shell command's output begin.
const FAILED_ENDS: [&str; 3] = ["[exit code ", "[it took longer than ", "[the shell has ended"];

/// Builds the recording of a cycle from its journal. `None` if the cycle only read, spoke and planned. `request` holds the texts of its
/// messages without untrusted parts; `acts` returns `true` for tools with effects.
pub(crate) fn build_recording(
    cycle: &NewCycle,
    journal: &[Entry],
    request: &[String],
    acts: impl Fn(&str) -> bool,
    redactor: &Redactor,
) -> Option<NewRecording> {
    let masked = |text: &str, max: usize| clip(&redactor.redact(&outside::strip_marks(text)), max).trim().to_owned();
    let (mut inputs, mut calls, mut taints) = (BTreeMap::new(), Vec::new(), Vec::<&str>::new());
    let (mut dead_ends, mut rounds) = (0, 0);
    for entry in journal {
        match entry {
            Entry::Said { taint: Some(taint), .. } => taints.push(taint),
            Entry::Turn { .. } => rounds += 1,
            Entry::Called { call, input, taint, .. } => {
                taints.extend(taint.as_deref());
                inputs.insert(call, (input, !taints.is_empty()));
            }
            Entry::Outcome { call, name, content, is_error, receipt, taint, .. } => {
                if !TALK.contains(&name.as_str()) {
                    let (input, is_after_others) = inputs
                        .get(call)
                        .map_or(("{}", !taints.is_empty()), |(input, is_after)| (input.as_str(), *is_after));
                    match receipt.as_deref().filter(|_| !is_error && !has_failed(content)) {
                        Some(did) => calls.push(RecordedCall {
                            tool: name.clone(),
                            input: masked(&redactor.redact_json(input), MAX_INPUT_CHARS),
                            did: masked(did, MAX_RECEIPT_CHARS),
                            is_after_others,
                        }),
                        None if *is_error || receipt.is_some() => dead_ends += 1,
                        None => {}
                    }
                }
                taints.extend(taint.as_deref());
            }
            _ => {}
        }
    }
    if !calls.iter().any(|call| acts(&call.tool)) {
        return None;
    }
    let more = calls.len().saturating_sub(MAX_CALLS);
    calls.truncate(MAX_CALLS);
    let request = if request.is_empty() { cycle.reasons.join("; ") } else { request.join("\n\n") };
    let request = masked(&request, MAX_REQUEST_CHARS);
    taints.dedup();
    Some(NewRecording {
        cycle_id: cycle.id.clone(),
        chat: cycle.chat,
        words: extract_terms(&request),
        request,
        narrative: render_narrative(&calls, &OmittedCalls { more, failed: dead_ends }, rounds),
        calls,
        taint: (!taints.is_empty()).then(|| masked(&taints.join(", "), MAX_RECEIPT_CHARS)),
        rounds,
    })
}

/// The search terms of a request: its content words, each once, sorted.
pub(crate) fn extract_terms(request: &str) -> Vec<String> {
    let mut words = content_words(request);
    words.sort_unstable();
    words
}

/// Returns `true` if a command failed, judging by the end of its output.
fn has_failed(content: &str) -> bool {
    content.lines().rev().take(2).any(|line| FAILED_ENDS.iter().any(|end| line.starts_with(end)))
}

/// The numbers of calls that a recording leaves out.
struct OmittedCalls {
    /// Those beyond the limit.
    more: usize,
    failed: usize,
}

fn render_narrative(calls: &[RecordedCall], omitted: &OmittedCalls, rounds: u32) -> String {
    let OmittedCalls { more, failed } = *omitted;
    let did: Vec<&str> = calls.iter().map(|call| call.did.as_str()).collect();
    let mut text = format!("{}.", did.join("; "));
    if more > 0 {
        text.push_str(&format!(" {more} further calls are left out."));
    }
    if failed > 0 {
        text.push_str(&format!(" {failed} failed and are left out."));
    }
    text.push_str(&format!(" It took {rounds} rounds."));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_base::{
        redact::Secret,
        types::{Stop, Usage},
    };

    fn cycle() -> NewCycle {
        NewCycle {
            id: "20261121T140000Z-7".to_owned(),
            trigger: "cli".to_owned(),
            reasons: vec!["task “Report” is due".to_owned()],
            chat: None,
            thread_id: None,
            model: "m".to_owned(),
            system: "[]".to_owned(),
            tools: "[]".to_owned(),
            work: None,
        }
    }

    fn called(call: &str, name: &str, input: &str) -> Entry {
        Entry::Called { call: call.to_owned(), name: name.to_owned(), input: input.to_owned(), taint: None }
    }

    fn ended(call: &str, name: &str, content: &str, receipt: Option<&str>, taint: Option<&str>) -> Entry {
        Entry::Outcome {
            call: call.to_owned(),
            name: name.to_owned(),
            content: content.to_owned(),
            is_error: receipt.is_none(),
            receipt: receipt.map(str::to_owned),
            closed: Vec::new(),
            taint: taint.map(str::to_owned),
            image: None,
        }
    }

    fn turn() -> Entry {
        Entry::Turn { content: "[]".to_owned(), stop: Stop::EndTurn, usage: Usage::default() }
    }

    fn acts(tool: &str) -> bool {
        tool != "web_fetch"
    }

    #[test]
    fn successful_calls_are_recorded_and_dead_ends_dropped() {
        let journal = [
            turn(),
            called("t0", "plan", "{}"),
            ended("t0", "plan", "", Some("Planned"), None),
            called("t1", "task_move", r#"{"task":"Repotr"}"#),
            ended("t1", "task_move", "no such task", None, None),
            turn(),
            called("t2", "task_move", r#"{"task":"Report","key":"sk-12345678"}"#),
            ended("t2", "task_move", "ok", Some("Moved “Report”"), None),
            called("t3", "bash", r#"{"command":"make"}"#),
            ended("t3", "bash", "no rule\n[exit code 2]", Some("Ran “make”"), Some("a program's output")),
            called("t4", "bash", r#"{"command":"make all"}"#),
            ended("t4", "bash", "done", Some("Ran “make all”"), Some("a program's output")),
            turn(),
        ];
        let redactor = Redactor::new([&Secret::new("sk-12345678")]);
        let kept =
            build_recording(&cycle(), &journal, &["Please move the report".to_owned()], acts, &redactor).unwrap();
        let calls: Vec<_> = kept.calls.iter().map(|call| (call.input.as_str(), call.is_after_others)).collect();
        assert_eq!(calls, [(r#"{"task":"Report","key":"***"}"#, false), (r#"{"command":"make all"}"#, true)]);
        assert_eq!(kept.narrative, "Moved “Report”; Ran “make all”. 2 failed and are left out. It took 3 rounds.");
        assert_eq!(
            (kept.taint.as_deref(), kept.words.join(" ")),
            (Some("a program's output"), "move report".to_owned())
        );
    }

    #[test]
    fn a_cycle_that_only_reads_answers_or_plans_is_no_example() {
        let journal = [
            called("t0", "reply", "{}"),
            ended("t0", "reply", "", Some("Answered"), None),
            called("t1", "web_fetch", "{}"),
            ended("t1", "web_fetch", "page", Some("Read a page"), Some("a page")),
        ];
        assert_eq!(build_recording(&cycle(), &journal, &[], acts, &Redactor::default()), None);
    }

    #[test]
    fn a_cycle_without_a_message_is_found_by_its_reasons() {
        let journal = [called("t1", "remember", "{}"), ended("t1", "remember", "", Some("Remembered “x”"), None)];
        let kept = build_recording(&cycle(), &journal, &[], acts, &Redactor::default()).unwrap();
        assert_eq!(kept.request, "task “Report” is due");
    }

    #[test]
    fn a_recording_is_bounded() {
        let long = "é".repeat(9_000);
        let mut journal = Vec::new();
        for n in 0..99 {
            journal.push(called(&n.to_string(), "bash", &long));
            journal.push(ended(&n.to_string(), "bash", "", Some(&long), None));
        }
        let kept =
            build_recording(&cycle(), &journal, std::slice::from_ref(&long), acts, &Redactor::default()).unwrap();
        assert_eq!(kept.calls.len(), MAX_CALLS);
        assert!(kept.narrative.contains("75 further calls are left out."), "{}", kept.narrative);
        let chars = |call: &RecordedCall| call.input.chars().count() + call.did.chars().count();
        assert!(kept.calls.iter().all(|call| chars(call) <= MAX_INPUT_CHARS + MAX_RECEIPT_CHARS + 50));
        assert!(kept.request.chars().count() <= MAX_REQUEST_CHARS + 50);
    }
}
