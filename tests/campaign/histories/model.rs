//! The required state in plain values: the queue, the journal and the outbox as if no write could ever fail.

use std::collections::{BTreeMap, BTreeSet};

use reveille_base::types::ChatRef;
use reveille_store::{
    Batch, Change, CycleState, Entry, Firing, NewCycle, NewIncoming, NewOutgoing, Ordered, PartOf, Round, StagedFile,
};

/// Failed cycles after which a message is put aside, as promised to people.
const MAX_FAILURES: i64 = 3;
/// The maximum of resumptions after a crash, as promised to people.
const MAX_TRIES: u32 = 3;

/// A row of `incoming_messages`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) chat: ChatRef,
    pub(super) text: String,
    pub(super) outcome: Option<String>,
    pub(super) is_processed: bool,
    pub(super) attempts: i64,
    pub(super) held_for: Option<String>,
    pub(super) cycle_id: Option<String>,
}

/// A row of `outgoing_messages`, as (chat, text, kind, key, cycle).
pub(super) type Written = (i64, String, String, Option<String>, Option<String>);

/// A cycle and its journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ModelCycle {
    pub(super) state: CycleState,
    pub(super) tries: u32,
    /// Whether the cycle ever waited for its model.
    has_waited: bool,
    pub(super) journal: Vec<Entry>,
    pub(super) staged: BTreeMap<String, StagedFile>,
}

/// The required state of the queue.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) fence: i64,
    pub(super) next_offset: Option<i64>,
    pub(super) strangers: i64,
    pub(super) messages: BTreeMap<i64, Message>,
    pub(super) outgoing: Vec<Written>,
    pub(super) cycles: BTreeMap<String, ModelCycle>,
    /// By number: the text and the state.
    pub(super) reminders: BTreeMap<i64, (String, &'static str)>,
    pub(super) fired: BTreeSet<(i64, String)>,
    /// The row of each update.
    updates: BTreeMap<i64, i64>,
    /// The row of each message of a channel.
    by_channel_id: BTreeMap<i64, i64>,
    /// The current text of each of them.
    words: BTreeMap<i64, String>,
    /// The messages of a channel a row is made of.
    parts: BTreeMap<i64, BTreeMap<i64, String>>,
    /// The newest row of each album, by chat and name.
    albums: BTreeMap<(ChatRef, String), i64>,
    /// Rows of parts that came after a cycle had taken their album.
    late: BTreeSet<i64>,
    /// The earlier text, for each row that corrects it.
    corrects: BTreeMap<i64, String>,
}

impl Model {
    /// Accepts a stored batch; `stored` and `answers` are the rows it made.
    pub(super) fn accept(&mut self, batch: &Batch, stored: &[i64], answers: &[i64]) -> Result<(), String> {
        let mut stored = stored.iter().copied();
        let mut row_of = |what: &str| stored.next().ok_or_else(|| format!("{what} made no row"));
        for message in &batch.messages {
            if !self.is_known(message) {
                self.hear(message, || row_of(&message.text))?;
            }
        }
        for edit in &batch.edits {
            if !self.is_known(edit) {
                self.edit(edit, || row_of(&edit.text))?;
            }
        }
        if let Some(row) = stored.next() {
            return Err(format!("nothing new made the row {row}"));
        }
        let written = self.outgoing.len();
        for Ordered { answer, .. } in &batch.commands {
            self.write(answer, answer.cycle_id.clone());
        }
        if self.outgoing.len() - written != answers.len() {
            return Err(format!("{} answers made the rows {answers:?}", self.outgoing.len() - written));
        }
        self.strangers += i64::from(batch.strangers);
        self.next_offset = Some(batch.next_offset);
        Ok(())
    }

    fn is_known(&self, message: &NewIncoming) -> bool {
        message.update_id.is_some_and(|id| self.updates.contains_key(&id))
    }

    /// Adds a row for a message, or joins it to the row of its album if no cycle has taken that.
    fn hear(&mut self, message: &NewIncoming, new_row: impl FnOnce() -> Result<i64, String>) -> Result<(), String> {
        let album = match &message.part_of {
            Some(PartOf::Album(album)) => Some((message.chat, album.clone())),
            _ => None,
        };
        let of_album = album.as_ref().and_then(|album| self.albums.get(album)).copied();
        let row = match of_album.filter(|row| self.is_untouched(*row)) {
            Some(row) => row,
            None => {
                let row = new_row()?;
                self.queue(row, message)?;
                if of_album.is_some() {
                    self.late.insert(row);
                }
                self.albums.extend(album.map(|album| (album, row)));
                row
            }
        };
        self.updates.extend(message.update_id.map(|id| (id, row)));
        if let Some(id) = message.channel_message_id {
            self.by_channel_id.insert(id, row);
            self.words.insert(id, message.text.clone());
            self.parts.entry(row).or_default().insert(id, message.text.clone());
        }
        self.tell(row);
        Ok(())
    }

    fn is_untouched(&self, row: i64) -> bool {
        self.messages.get(&row).is_some_and(|message| {
            let cycle = message.cycle_id.as_ref().and_then(|id| self.cycles.get(id));
            !message.is_processed && !cycle.is_some_and(|cycle| is_open(cycle.state))
        })
    }

    /// Tells whether a row is out of the queue until a person has it tried afresh.
    fn is_put_aside(&self, row: i64) -> bool {
        let outcome = self.messages.get(&row).and_then(|message| message.outcome.as_deref());
        matches!(outcome, Some("dead" | "dropped"))
    }

    /// Rewrites a changed row from its messages. A model that couldn't answer it gets another chance.
    fn tell(&mut self, row: i64) {
        let words: Vec<&str> = self.parts.get(&row).into_iter().flatten().map(|(_, words)| words.as_str()).collect();
        let mut text = words.join("\n");
        if self.late.contains(&row) {
            text = format!("[belongs to the album that was sent before]\n{text}");
        }
        if let Some(message) = self.messages.get_mut(&row) {
            (message.text, message.held_for) = (text, None);
        }
    }

    /// Applies an edit to a row no cycle has taken or that is put aside; otherwise adds a row about the edit.
    fn edit(&mut self, edit: &NewIncoming, new_row: impl FnOnce() -> Result<i64, String>) -> Result<(), String> {
        let Some(id) = edit.channel_message_id else { return Ok(()) };
        let Some(before) = self.words.insert(id, edit.text.clone()) else {
            return Err(format!("nobody said what {edit:?} changes"));
        };
        let corrected =
            |before: &str| format!("[edited an earlier message, which said: “{before}”; it says now:]\n{}", edit.text);
        let row = self.by_channel_id.get(&id).copied().unwrap_or_default();
        if before == edit.text {
            return Ok(());
        }
        if !self.is_untouched(row) && !self.is_put_aside(row) {
            let row = new_row()?;
            self.queue(row, &NewIncoming { text: corrected(&before), ..edit.clone() })?;
            self.words.insert(id, edit.text.clone());
            self.corrects.insert(row, before);
            return Ok(());
        }
        // A correction in a row of its own stays there, even if this row returns to the queue.
        self.parts.entry(row).or_default().insert(id, edit.text.clone());
        self.tell(row);
        if let (Some(before), Some(message)) = (self.corrects.get(&row), self.messages.get_mut(&row)) {
            message.text = corrected(before);
        }
        self.updates.extend(edit.update_id.map(|id| (id, row)));
        Ok(())
    }

    /// Adds a stored message.
    pub(super) fn queue(&mut self, row: i64, message: &NewIncoming) -> Result<(), String> {
        if self.messages.last_key_value().is_some_and(|(last, _)| *last >= row) {
            return Err(format!("row {row} was given away again"));
        }
        self.updates.extend(message.update_id.map(|id| (id, row)));
        self.by_channel_id.extend(message.channel_message_id.map(|id| (id, row)));
        self.words.extend(message.channel_message_id.map(|id| (id, message.text.clone())));
        let stored = Message { chat: message.chat, text: message.text.clone(), ..Message::default() };
        self.messages.insert(row, stored);
        Ok(())
    }

    /// Queues a message again at a person's request. False if that isn't allowed.
    pub(super) fn retry(&mut self, row: i64) -> bool {
        let Some(message) = self.messages.get_mut(&row) else { return false };
        if message.is_processed && !matches!(message.outcome.as_deref(), Some("dead" | "dropped")) {
            return false;
        }
        (message.is_processed, message.outcome, message.attempts, message.held_for) = (false, None, 0, None);
        true
    }

    /// Takes a message out at a person's request. False if that isn't allowed.
    pub(super) fn drop(&mut self, row: i64) -> bool {
        let Some(message) = self.messages.get_mut(&row) else { return false };
        if message.is_processed && message.outcome.as_deref() != Some("dead") {
            return false;
        }
        (message.is_processed, message.outcome) = (true, Some("dropped".to_owned()));
        true
    }

    pub(super) fn begin(&mut self, cycle: &NewCycle, entries: &[Entry]) -> Result<(), String> {
        let begun = ModelCycle {
            state: CycleState::Running,
            tries: 0,
            has_waited: false,
            journal: Vec::new(),
            staged: BTreeMap::new(),
        };
        if self.cycles.insert(cycle.id.clone(), begun).is_some() {
            return Err(format!("the cycle {} began twice", cycle.id));
        }
        entries.iter().try_for_each(|entry| self.record(&cycle.id, entry, &[]))
    }

    /// Records an entry and its changes.
    pub(super) fn record(&mut self, cycle: &str, entry: &Entry, changes: &[Change]) -> Result<(), String> {
        if let Entry::Outcome { call, .. } = entry {
            let again = |known: &Entry| matches!(known, Entry::Outcome { call: known, .. } if known == call);
            if self.cycles.get(cycle).is_some_and(|cycle| cycle.journal.iter().any(again)) {
                return Err(format!("the call {call} ended twice"));
            }
        }
        if let Entry::Said { messages, .. } = entry {
            self.each_queued(messages, |message| message.cycle_id = Some(cycle.to_owned()));
        }
        if let Some(cycle) = self.cycles.get_mut(cycle) {
            cycle.journal.push(entry.clone());
        }
        self.change(cycle, changes)
    }

    /// Applies changes.
    pub(super) fn change(&mut self, cycle: &str, changes: &[Change]) -> Result<(), String> {
        for change in changes {
            match change {
                Change::File(file) => {
                    let staged = self.cycles.get_mut(cycle).map(|cycle| &mut cycle.staged);
                    if let Some(staged) = staged {
                        let base = staged.get(&file.path).map_or(file.base.clone(), |known| known.base.clone());
                        staged.insert(file.path.clone(), StagedFile { base, ..file.clone() });
                    }
                }
                Change::Send(message) => self.write(message, Some(cycle.to_owned())),
                Change::Done { messages, outcome } => {
                    messages.iter().try_for_each(|row| self.answer(*row, outcome.as_str(), cycle))?;
                }
                Change::Hold { messages, model } => {
                    self.each_queued(messages, |message| {
                        message.held_for = Some(model.clone());
                        message.cycle_id = Some(cycle.to_owned());
                    });
                }
                Change::AddReminder(reminder) => {
                    let id = self.reminders.len() as i64 + 1;
                    self.reminders.insert(id, (reminder.text.clone(), "active"));
                }
                Change::EndReminder { id } => {
                    if let Some(known) = self.reminders.get_mut(id).filter(|(_, known)| *known == "active") {
                        known.1 = "cancelled";
                    }
                }
                Change::Fire(round) => self.fire(round, cycle),
                // No history asks for an undo, shows a list of tasks, or sends buttons with an unprompted message.
                Change::Handled { .. }
                | Change::Agree { .. }
                | Change::ToldOfProposal { .. }
                | Change::Undo { .. }
                | Change::ShowTasks { .. }
                | Change::TakeUpJob { .. }
                | Change::EndJob(_)
                | Change::NudgeDone { .. } => {}
            }
        }
        Ok(())
    }

    fn fire(&mut self, round: &Round, cycle: &str) {
        let mut is_new = false;
        for Firing { id, turn, .. } in &round.firings {
            is_new |= turn.happens.is_some_and(|slot| self.fired.insert((*id, slot.civil.to_string())));
            if turn.next.is_none()
                && let Some(reminder) = self.reminders.get_mut(id).filter(|(_, state)| *state == "active")
            {
                reminder.1 = "done";
            }
        }
        if let Some(message) = round.message.as_ref().filter(|_| is_new) {
            self.write(message, Some(cycle.to_owned()));
        }
    }

    /// Resumes a cycle.
    pub(super) fn resume(&mut self, id: &str, counts: bool) -> Result<(), String> {
        let Some(cycle) = self.cycles.get_mut(id) else { return Err(format!("there is no cycle {id}")) };
        if !is_open(cycle.state) {
            return Err(format!("{id} was taken up again, and it is {:?}", cycle.state));
        }
        cycle.state = CycleState::Running;
        cycle.tries += u32::from(counts);
        if cycle.tries >= MAX_TRIES { Err(format!("{id} was taken up {} times", cycle.tries)) } else { Ok(()) }
    }

    pub(super) fn pause(&mut self, id: &str) {
        if let Some(cycle) = self.cycles.get_mut(id) {
            (cycle.state, cycle.has_waited) = (CycleState::Waiting, true);
        }
    }

    pub(super) fn end(&mut self, id: &str, state: CycleState, failed: &[i64]) {
        if let Some(cycle) = self.cycles.get_mut(id) {
            cycle.state = state;
            cycle.staged.clear();
        }
        self.each_queued(failed, |message| {
            message.attempts += 1;
            message.cycle_id = Some(id.to_owned());
            if message.attempts >= MAX_FAILURES {
                (message.is_processed, message.outcome) = (true, Some("dead".to_owned()));
            }
        });
    }

    /// Checks that the `nth` outgoing message may be sent, given the committed cycles.
    pub(super) fn may_leave(&self, nth: usize, committed: &BTreeSet<String>) -> Result<(), String> {
        let Some((.., kind, _, cycle)) = self.outgoing.get(nth) else {
            return Err(format!("nobody wrote the message {nth} that leaves"));
        };
        let Some((id, cycle)) = cycle.as_ref().and_then(|id| Some((id, self.cycles.get(id)?))) else { return Ok(()) };
        let may = match cycle.state {
            CycleState::Running => false,
            CycleState::Waiting | CycleState::Parked => kind == "notice",
            CycleState::Done => committed.contains(id),
            CycleState::Failed | CycleState::Abandoned => true,
        };
        if may { Ok(()) } else { Err(format!("the {kind} {nth} leaves while its cycle {id} is {:?}", cycle.state)) }
    }

    /// Tells whether the cycle of the `nth` outgoing message has waited for its model.
    pub(super) fn has_waited(&self, nth: usize) -> bool {
        let cycle = self.outgoing.get(nth).and_then(|(.., cycle)| self.cycles.get(cycle.as_ref()?));
        cycle.is_some_and(|cycle| cycle.has_waited)
    }

    /// Changes those of these messages that are queued.
    fn each_queued(&mut self, rows: &[i64], change: impl Fn(&mut Message)) {
        for row in rows {
            self.messages.get_mut(row).filter(|message| !message.is_processed).map(&change);
        }
    }

    fn answer(&mut self, row: i64, outcome: &str, cycle: &str) -> Result<(), String> {
        let Some(message) = self.messages.get_mut(&row) else { return Err(format!("there is no message {row}")) };
        match message.outcome.as_deref() {
            None => {
                (message.is_processed, message.outcome) = (true, Some(outcome.to_owned()));
                message.cycle_id = Some(cycle.to_owned());
                Ok(())
            }
            // A person dropped the message while it was in a conversation.
            Some("dropped") => Ok(()),
            Some(known) => Err(format!("the message {row}, already {known}, was answered again by {cycle}")),
        }
    }

    /// Writes a message unless its key was used before.
    fn write(&mut self, message: &NewOutgoing, cycle: Option<String>) {
        let is_told = message.key.is_some() && self.outgoing.iter().any(|(.., key, _)| *key == message.key);
        if !is_told {
            let NewOutgoing { chat, text, kind, key, .. } = message.clone();
            self.outgoing.push((chat.id, text, kind.as_str().to_owned(), key, cycle));
        }
    }
}

/// Tells whether a cycle can continue.
pub(super) fn is_open(state: CycleState) -> bool {
    matches!(state, CycleState::Running | CycleState::Waiting | CycleState::Parked)
}
