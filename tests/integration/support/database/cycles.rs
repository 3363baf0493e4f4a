//! Access to the cycles with their journals, to the lock of a wake, and to undos.

use serde::Deserialize;
use serde_json::Value;

use super::super::env::eventually;
use super::{Database, flag, quoted};

#[derive(Debug, Deserialize)]
pub(crate) struct Cycle {
    pub(crate) id: String,
    pub(crate) state: String,
    pub(crate) chat_id: Option<i64>,
    pub(crate) model: String,
    pub(crate) started_at: String,
    pub(crate) tries: i64,
    pub(crate) commit_id: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) work: Option<String>,
    #[serde(deserialize_with = "flag")]
    pub(crate) has_journal: bool,
    #[serde(deserialize_with = "flag")]
    pub(crate) was_cut_off: bool,
}

/// A step in a cycle's journal.
#[derive(Debug, Deserialize)]
pub(crate) struct Step {
    pub(crate) kind: String,
    pub(crate) body: String,
}

impl Step {
    /// A field of the step's body.
    pub(crate) fn field(&self, name: &str) -> Value {
        serde_json::from_str::<Value>(&self.body).unwrap()[name].take()
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Undo {
    pub(crate) taken_back: Option<String>,
    pub(crate) done_at: Option<String>,
}

impl Database {
    /// All cycles in the order of their start.
    #[track_caller]
    pub(crate) fn cycles(&self) -> Vec<Cycle> {
        self.table("cycles", "rowid")
    }

    /// Returns the only cycle.
    #[track_caller]
    pub(crate) fn cycle(&self) -> Cycle {
        let mut cycles = self.cycles();
        assert_eq!(cycles.len(), 1, "{cycles:#?}");
        cycles.remove(0)
    }

    #[track_caller]
    pub(crate) fn last_cycle(&self) -> Cycle {
        self.cycles().pop().expect("a cycle")
    }

    /// The cycles in a state: running, waiting, parked, done, failed, abandoned.
    #[track_caller]
    pub(crate) fn cycles_in(&self, state: &str) -> Vec<Cycle> {
        self.cycles().into_iter().filter(|cycle| cycle.state == state).collect()
    }

    #[track_caller]
    pub(crate) fn cycle_states(&self) -> Vec<String> {
        self.cycles().into_iter().map(|cycle| cycle.state).collect()
    }

    /// Sets the cycles to running, as if they had been cut off between their commit and their end.
    #[track_caller]
    pub(crate) fn lose_end_of_cycles(&self) {
        self.execute("UPDATE cycles SET state = 'running', commit_id = NULL, ended_at = NULL");
    }

    /// Sets the cycles to running, as if they had been cut off.
    #[track_caller]
    pub(crate) fn cut_off_cycles(&self) {
        self.execute("UPDATE cycles SET state = 'running'");
    }

    #[track_caller]
    pub(crate) fn forget_cycle(&self, id: &str) {
        self.execute(&format!("DELETE FROM cycles WHERE id = '{id}'"));
    }

    /// All steps of the cycles in order.
    #[track_caller]
    pub(crate) fn journal(&self) -> Vec<Step> {
        self.table("cycle_journal", "cycle_id, seq")
    }

    /// The kinds of the steps in order.
    #[track_caller]
    pub(crate) fn journal_kinds(&self) -> Vec<String> {
        self.journal().into_iter().map(|step| step.kind).collect()
    }

    /// The steps of a kind.
    #[track_caller]
    pub(crate) fn steps(&self, kind: &str) -> Vec<Step> {
        self.journal().into_iter().filter(|step| step.kind == kind).collect()
    }

    /// The steps that contain these words.
    #[track_caller]
    pub(crate) fn steps_with(&self, words: &str) -> Vec<Step> {
        self.journal().into_iter().filter(|step| step.body.contains(words)).collect()
    }

    /// Appends a step to each cycle's journal.
    #[track_caller]
    pub(crate) fn put_step(&self, step: &Value, at: &str) {
        let (kind, body) = (step["kind"].as_str().unwrap(), quoted(&step.to_string()));
        self.execute(&format!(
            "INSERT INTO cycle_journal (cycle_id, seq, at, kind, body)
             SELECT cycle_id, 900 + max(seq), '{at}', '{kind}', {body} FROM cycle_journal GROUP BY cycle_id"
        ));
    }

    /// Deletes the first step of a kind, and all steps after it.
    #[track_caller]
    pub(crate) fn cut_journal_before(&self, kind: &str) {
        self.execute(&format!(
            "DELETE FROM cycle_journal WHERE seq >= (SELECT min(seq) FROM cycle_journal WHERE kind = '{kind}')"
        ));
    }

    /// Deletes all steps after the last one of a kind.
    #[track_caller]
    pub(crate) fn cut_journal_after(&self, kind: &str) {
        self.execute(&format!(
            "DELETE FROM cycle_journal WHERE seq > (SELECT max(seq) FROM cycle_journal WHERE kind = '{kind}')"
        ));
    }

    /// Deletes all steps of the journals.
    #[track_caller]
    pub(crate) fn empty_journals(&self) {
        self.execute("DELETE FROM cycle_journal");
    }

    /// Deletes the journals, like those older than `KEEP_DAYS`.
    #[track_caller]
    pub(crate) fn forget_journals(&self) {
        self.execute("DELETE FROM cycle_journal; UPDATE cycles SET has_journal = 0");
    }

    /// Returns whether a wake holds the lock.
    #[track_caller]
    pub(crate) fn is_locked(&self) -> bool {
        self.count("processing_lock", "is_locked = 1") > 0
    }

    /// Waits until no wake holds the lock. A wake started by a bot or the page releases it shortly after its visible effects.
    #[track_caller]
    pub(crate) fn wait_for_end_of_wake(&self) {
        eventually("the wake has ended", || !self.is_locked());
    }

    /// The fence: the number of times that the lock was taken.
    #[track_caller]
    pub(crate) fn fence(&self) -> i64 {
        self.query("SELECT fence FROM processing_lock")
    }

    /// All undos, requested and done.
    #[track_caller]
    pub(crate) fn undos(&self) -> Vec<Undo> {
        self.table("undos", "id")
    }

    #[track_caller]
    pub(crate) fn count_open_undos(&self) -> usize {
        self.count("undos", "done_at IS NULL")
    }

    /// Asks for the last cycle to be undone, as `wake undo` does.
    #[track_caller]
    pub(crate) fn ask_for_undo(&self, at: &str) {
        let wake = self.last_cycle().id;
        self.execute(&format!("INSERT INTO undos (wake, asked_at, chat_id) VALUES ('{wake}', '{at}', 0)"));
    }

    /// Counts the cycles that a wake would continue.
    #[track_caller]
    pub(crate) fn count_open_cycles(&self) -> usize {
        self.count("cycles", "state IN ('running', 'waiting', 'parked')")
    }

    /// Inserts a cycle of the past.
    #[track_caller]
    pub(crate) fn put_cycle(&self, id: &str, state: &str, model: &str, started_at: &str) {
        self.execute(&format!(
            "INSERT INTO cycles (id, state, trigger, reasons, model, started_at, fence, has_journal)
             VALUES ('{id}', '{state}', 'cron', '[]', '{model}', '{started_at}', 1, 0)"
        ));
    }

    /// Sets a column of one cycle.
    #[track_caller]
    pub(crate) fn alter_cycle(&self, id: &str, column: &str, text: &str) {
        self.execute(&format!("UPDATE cycles SET {column} = {} WHERE id = '{id}'", quoted(text)));
    }

    /// Inserts a request of a past cycle: 100 tokens of input, 20 of output and 900 read from the cache.
    #[track_caller]
    pub(crate) fn put_request(&self, id: &str, model: &str, usd: f64, asked_at: &str, answered_at: &str) {
        self.execute(&format!(
            "INSERT INTO ledger (cycle_id, at, model, input, output, cache_read, cache_write, cost_usd)
                 VALUES ('{id}', '{asked_at}', '{model}', 100, 20, 900, 0, {usd});
             INSERT INTO cycle_journal (cycle_id, seq, at, kind, body) VALUES ('{id}', 1, '{asked_at}', 'said', '{{}}'),
                 ('{id}', 2, '{asked_at}', 'asked', '{{\"kind\":\"asked\"}}'), ('{id}', 3, '{answered_at}', 'turn', '{{}}')"
        ));
    }

    /// Sets the number of times that all cycles were resumed.
    #[track_caller]
    pub(crate) fn put_tries(&self, tries: i64) {
        self.execute(&format!("UPDATE cycles SET tries = {tries}"));
    }

    /// Assigns the cycles of one model to another one, and deletes the first model's costs.
    #[track_caller]
    pub(crate) fn put_model_back(&self, from: &str, to: &str) {
        self.execute(&format!(
            "UPDATE cycles SET model = '{to}' WHERE model = '{from}'; DELETE FROM ledger WHERE model = '{from}'"
        ));
    }

    /// The outcomes of calls that contain these words.
    #[track_caller]
    pub(crate) fn outcomes_with(&self, words: &str) -> Vec<Step> {
        self.steps("outcome").into_iter().filter(|step| step.body.contains(words)).collect()
    }

    /// Replaces the steps of a kind with an unreadable body.
    #[track_caller]
    pub(crate) fn garble_steps(&self, kind: &str) {
        let body = "{\"kind\":\"of a later version\"}";
        self.execute(&format!("UPDATE cycle_journal SET body = '{body}' WHERE kind = '{kind}'"));
    }

    /// Deletes the records of the files that cycles changed.
    #[track_caller]
    pub(crate) fn forget_changed_files(&self) {
        self.execute("DELETE FROM cycle_files");
    }
}
