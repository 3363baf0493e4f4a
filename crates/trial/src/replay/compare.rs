//! The comparison of a replay with its recording. Does no I/O.

use std::collections::BTreeSet;

use reveille_base::types::Usage;
use reveille_cycle::decide::machine::Cycle;
use reveille_memory::changes::{ChangedLine, list_changed_lines};
use reveille_model::Model as _;
use reveille_store::{CycleRow, Spent};

use super::{ReplayEnd, ReplayRun, files::MadeFiles, recorded::Recorded};
use crate::booked::Booked;

/// The result of comparing a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallFate {
    /// Repeated with the same arguments.
    Same,
    /// Repeated with other arguments.
    Different,
    /// Recorded, but not repeated.
    Missing,
    /// Made, but not recorded.
    NotRecorded,
}

/// A call of the recording, of the replay, or of both.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ComparedCall {
    /// The result.
    pub fate: CallFate,
    /// The tool.
    pub tool: String,
    /// Its raw arguments as recorded; `None` if unrecorded.
    pub recorded: Option<String>,
    /// Its raw arguments in the replay; `None` if not repeated.
    pub replayed: Option<String>,
}

/// A file that calls make in the recording, in the replay, or in both.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ComparedFile {
    /// Its path in the memory.
    pub path: String,
    /// `true` if both sides make the same file.
    pub same: bool,
    /// Lines that only the replay's file has (`is_added`), and those that only the recorded file has.
    pub lines: Vec<ChangedLine>,
}

/// The figures of a run.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct RunFigures {
    /// The model's turns.
    pub rounds: u32,
    /// The tokens used.
    pub tokens: Usage,
    /// The cost in US dollars.
    pub cost_usd: f64,
}

/// The comparison of a replay with its recording.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ReplayReport {
    /// The cycle's id.
    pub wake_id: String,
    /// The recorded model.
    pub recorded_model: String,
    /// The model of the replay.
    pub model: String,
    /// `true` if calls, receipts and files are the same. The wording of plans, answers and notes counts only if it changes a file.
    pub same: bool,
    /// The end of the replay.
    pub ended: ReplayEnd,
    /// The replay's calls in order, then the recorded calls missing from it.
    pub calls: Vec<ComparedCall>,
    /// Receipts only in the recording.
    pub receipts_missing: Vec<String>,
    /// Receipts only in the replay.
    pub receipts_new: Vec<String>,
    /// The number of receipts in both.
    pub receipts_same: usize,
    /// Files made by calls.
    pub files: Vec<ComparedFile>,
    /// Notes on the comparison.
    pub notes: Vec<String>,
    /// The texts that count as answers in the recording.
    pub said_then: Vec<String>,
    /// The texts that count as answers in the replay.
    pub said_now: Vec<String>,
    /// The figures of the recorded run.
    pub recorded: RunFigures,
    /// The figures of the replay.
    pub replayed: RunFigures,
}

pub(super) fn build_report(
    row: &CycleRow,
    recorded: &Recorded,
    ran: &ReplayRun,
    ((files_then, files_now), notes): ((MadeFiles, MadeFiles), Vec<String>),
    spent: Spent,
    model: &Booked<'_>,
) -> ReplayReport {
    let calls = compare_calls(recorded, ran);
    let receipts = compare_receipts(&recorded.state, &ran.state);
    let files = compare_files(&files_then, &files_now);
    let has_finished = ran.end == ReplayEnd::Finished;
    let calls_match = calls.iter().all(|call| matches!(call.fate, CallFate::Same | CallFate::Different));
    let receipts_match = receipts.missing.is_empty() && receipts.new.is_empty();
    let figures = |state: &Cycle, spent: Spent| RunFigures {
        rounds: state.turns,
        tokens: spent.tokens,
        cost_usd: spent.cost_usd,
    };
    ReplayReport {
        wake_id: row.cycle.id.clone(),
        recorded_model: row.cycle.model.clone(),
        model: model.name().to_owned(),
        same: has_finished && calls_match && receipts_match && files.iter().all(|file| file.same),
        ended: ran.end.clone(),
        calls,
        receipts_missing: receipts.missing,
        receipts_new: receipts.new,
        receipts_same: receipts.same,
        files,
        notes,
        said_then: recorded.said.clone(),
        said_now: ran.said.clone(),
        recorded: figures(&recorded.state, spent),
        replayed: figures(&ran.state, model.spending()),
    }
}

fn compare_calls(recorded: &Recorded, ran: &ReplayRun) -> Vec<ComparedCall> {
    let made = ran.completed.iter().zip(&ran.answered_by).map(|(completed, (at, is_same))| ComparedCall {
        fate: if *is_same { CallFate::Same } else { CallFate::Different },
        tool: completed.tool.clone(),
        recorded: recorded.calls.get(*at).map(|known| known.completed.input.clone()),
        replayed: Some(completed.input.clone()),
    });
    let unrecorded = match &ran.end {
        ReplayEnd::NotRecorded { tool, input } => Some(ComparedCall {
            fate: CallFate::NotRecorded,
            tool: tool.clone(),
            recorded: None,
            replayed: Some(input.clone()),
        }),
        _ => None,
    };
    let missing = recorded.list_unused().map(|known| ComparedCall {
        fate: CallFate::Missing,
        tool: known.completed.tool.clone(),
        recorded: Some(known.completed.input.clone()),
        replayed: None,
    });
    made.chain(unrecorded).chain(missing).collect()
}

/// The receipts of a replay compared with those of its recording.
#[derive(Debug, PartialEq, Eq)]
struct ComparedReceipts {
    /// Those only in the recording.
    missing: Vec<String>,
    /// Those only in the replay.
    new: Vec<String>,
    /// The number in both.
    same: usize,
}

/// Compares the receipts of two cycles. A repeated receipt counts each time.
fn compare_receipts(then: &Cycle, now: &Cycle) -> ComparedReceipts {
    let list_texts =
        |state: &Cycle| -> Vec<String> { state.receipts.iter().filter_map(|receipt| receipt.what.clone()).collect() };
    let (then, mut new) = (list_texts(then), list_texts(now));
    let mut missing = Vec::new();
    let count = then.len();
    for receipt in then {
        match new.iter().position(|other| *other == receipt) {
            Some(at) => drop(new.remove(at)),
            None => missing.push(receipt),
        }
    }
    let same = count - missing.len();
    ComparedReceipts { missing, new, same }
}

fn compare_files(then: &MadeFiles, now: &MadeFiles) -> Vec<ComparedFile> {
    let paths: BTreeSet<&String> = then.files.keys().chain(now.files.keys()).collect();
    let compared = paths.into_iter().map(|path| {
        let (then, now) = (then.files.get(path), now.files.get(path));
        let lines = list_changed_lines(then.map_or("", String::as_str), now.map_or("", String::as_str));
        ComparedFile { path: path.clone(), same: then == now, lines }
    });
    compared.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_cycle::decide::machine::Receipt;

    #[test]
    fn a_receipt_recorded_twice_and_replayed_once_is_missing_once() {
        let cycle = |receipts: &[&str]| {
            let mut cycle = Cycle::new(String::new(), String::new());
            let receipt = |what: &&str| Receipt { tool: String::new(), what: Some((*what).to_owned()) };
            cycle.receipts = receipts.iter().map(receipt).collect();
            cycle
        };
        let compared = compare_receipts(&cycle(&["a", "b", "a"]), &cycle(&["a", "c"]));
        let missing = vec!["b".to_owned(), "a".to_owned()];
        assert_eq!(compared, ComparedReceipts { missing, new: vec!["c".to_owned()], same: 1 });
    }
}
