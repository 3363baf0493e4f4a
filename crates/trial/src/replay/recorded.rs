//! A journal prepared for a replay: the conversation's opening, each call's outcome, and people's messages in between.

use std::collections::{BTreeMap, VecDeque};

use chrono::{DateTime, Utc};

use reveille_base::json::normalize_text;
use reveille_cycle::decide::machine::{Cycle, ToolRequest};
use reveille_model::content::{join_text, tool_calls};
use reveille_store::{CycleRow, Entry, JournalLine};
use reveille_tools::{Registry, unwrap_call};

/// A completed call, with the circumstances at the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CompletedCall {
    pub(super) tool: String,
    /// Raw JSON arguments.
    pub(super) input: String,
    pub(super) at: Option<DateTime<Utc>>,
    /// The open messages.
    pub(super) open: Vec<i64>,
    /// The sources of untrusted text read so far.
    pub(super) taints: Vec<String>,
    pub(super) is_error: bool,
}

/// A call of the journal, with its outcome.
pub(super) struct KnownCall {
    pub(super) completed: CompletedCall,
    outcome: Entry,
    is_used: bool,
}

/// A recorded cycle.
pub(super) struct Recorded {
    opening: Vec<Entry>,
    pub(super) calls: Vec<KnownCall>,
    /// Messages that joined, with the number of turns before them.
    news: VecDeque<(u32, Entry)>,
    folded: VecDeque<Entry>,
    /// The decisions of a person at limits.
    decided: Vec<Entry>,
    /// Texts taken as answers.
    pub(super) said: Vec<String>,
    /// The final state.
    pub(super) state: Cycle,
}

impl Recorded {
    /// Reads a journal; `None` if a line is unreadable.
    pub(super) fn from_journal(row: &CycleRow, journal: Vec<JournalLine>) -> Option<Self> {
        let mut recorded = Self {
            opening: Vec::new(),
            calls: Vec::new(),
            news: VecDeque::new(),
            folded: VecDeque::new(),
            decided: Vec::new(),
            said: Vec::new(),
            state: Cycle::new(row.cycle.system.clone(), row.cycle.tools.clone()),
        };
        let mut asked = BTreeMap::new();
        let mut text = String::new();
        for JournalLine { at, entry } in journal {
            let entry = entry?;
            recorded.take_entry(at, &entry, (&mut asked, &mut text));
            recorded.state.apply(&entry);
        }
        Some(recorded)
    }

    fn take_entry(
        &mut self,
        at: Option<DateTime<Utc>>,
        entry: &Entry,
        (asked, text): (&mut BTreeMap<String, (String, String)>, &mut String),
    ) {
        match entry {
            Entry::Said { messages, .. } if self.state.turns > 0 && !messages.is_empty() => {
                self.news.push_back((self.state.turns, entry.clone()));
            }
            Entry::Said { .. } | Entry::ByRule { .. } if self.state.turns == 0 => self.opening.push(entry.clone()),
            Entry::Turn { content, stop, .. } => {
                for call in tool_calls(content, stop) {
                    let named = unwrap_call(&call.name, call.input.get());
                    let named = named.unwrap_or_else(|| (call.name, call.input.get().to_owned()));
                    asked.insert(call.id, named);
                }
                *text = join_text(content);
            }
            Entry::Outcome { call, is_error, .. } => {
                let Some((tool, input)) = asked.remove(call) else { return };
                let (open, taints) = (self.state.open.clone(), self.state.taints.clone());
                let completed = CompletedCall { tool, input, at, open, taints, is_error: *is_error };
                self.calls.push(KnownCall { completed, outcome: entry.clone(), is_used: false });
            }
            Entry::Answered { .. } => self.said.push(text.trim().to_owned()),
            Entry::Folded { .. } => self.folded.push_back(entry.clone()),
            Entry::Judged { .. } | Entry::Decided { .. } => self.decided.push(entry.clone()),
            _ => {}
        }
    }

    /// Returns the entries before the first request.
    pub(super) fn opening(&self) -> &[Entry] {
        &self.opening
    }

    /// Finds the recorded call that answers this one: the first unused one with the same tool and arguments (as canonical JSON). A call
    /// of a tool that never asks (plans, answers, notes), whose wording is the model's own, is also answered by the first unused call of
    /// the same tool. Returns the call's index, and `true` if the arguments are the same.
    pub(super) fn find_call(&mut self, registry: &Registry, request: &ToolRequest) -> Option<(usize, bool)> {
        let named = |name: &str| registry.get(name).map_or_else(|| name.to_owned(), |tool| tool.name.to_string());
        let (tool, input) = (named(&request.name), normalize_text(&request.input));
        let is_free = registry.get(&request.name).is_some_and(|tool| tool.is_free);
        let unused = || self.calls.iter().enumerate().filter(|(_, known)| !known.is_used);
        let of_tool = || unused().filter(|(_, known)| named(&known.completed.tool) == tool);
        let same =
            of_tool().find(|(_, known)| normalize_text(&known.completed.input) == input).map(|(at, _)| (at, true));
        let found = same.or_else(|| of_tool().next().filter(|_| is_free).map(|(at, _)| (at, false)))?;
        self.calls.get_mut(found.0)?.is_used = true;
        Some(found)
    }

    /// Lists the recorded calls not used as an answer.
    pub(super) fn list_unused(&self) -> impl Iterator<Item = &KnownCall> {
        self.calls.iter().filter(|known| !known.is_used)
    }

    /// Returns the entry of messages that joined after at most `turns` turns, behind the blocks of `before`.
    pub(super) fn take_news(&mut self, turns: u32, before: Option<&str>) -> Option<Entry> {
        let (_, entry) = self.news.pop_front_if(|(after, _)| *after <= turns)?;
        let Entry::Said { raw, messages, handles, head, taint } = entry else { return None };
        let raw = append_blocks(before, &raw)?;
        Some(Entry::Said { raw, messages, handles, head, taint })
    }

    pub(super) fn take_fold(&mut self) -> Option<Entry> {
        self.folded.pop_front()
    }

    /// Returns the question whether to continue, with the decision on it.
    pub(super) fn list_decisions(&self, question: &str) -> Vec<Entry> {
        let is_of = |entry: &&Entry| match entry {
            Entry::Judged { call, .. } | Entry::Decided { call, .. } => call == question,
            _ => false,
        };
        self.decided.iter().filter(is_of).cloned().collect()
    }
}

impl KnownCall {
    /// Returns its outcome under another call's id.
    pub(super) fn to_outcome(&self, id: &str) -> Entry {
        let mut entry = self.outcome.clone();
        if let Entry::Outcome { call, .. } = &mut entry {
            id.clone_into(call);
        }
        entry
    }
}

/// Appends a user message's blocks to those of another, without results of calls.
fn append_blocks(before: Option<&str>, raw: &str) -> Option<String> {
    let blocks = |raw: &str| -> Option<Vec<serde_json::Value>> {
        let mut message: serde_json::Value = serde_json::from_str(raw).ok()?;
        Some(std::mem::take(message.get_mut("content")?.as_array_mut()?))
    };
    let mut all = before.map_or_else(|| Some(Vec::new()), blocks)?;
    all.extend(blocks(raw)?.into_iter().filter(|block| block.get("type") != Some(&"tool_result".into())));
    Some(serde_json::json!({"role": "user", "content": all}).to_string())
}
