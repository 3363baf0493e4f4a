//! Access to the program's records of its own work: things handled, repairs, recordings, proposals and upkeep.

use serde::Deserialize;

use super::{Database, quoted};

/// A periodic task such as a push.
#[derive(Debug, Deserialize)]
pub(crate) struct Upkeep {
    pub(crate) name: String,
    pub(crate) failures: i64,
    pub(crate) last_ok_at: Option<String>,
    pub(crate) not_before: Option<String>,
    pub(crate) error: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Handled {
    pub(crate) key: String,
    pub(crate) value: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Recording {
    pub(crate) request: String,
    pub(crate) calls: String,
    pub(crate) narrative: String,
    pub(crate) model: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Proposal {
    pub(crate) cycle_id: String,
    pub(crate) agreed_at: Option<String>,
    pub(crate) tell_at: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Repair {
    pub(crate) check_id: String,
    pub(crate) what: String,
    pub(crate) cycle_id: Option<String>,
}

#[derive(Deserialize)]
struct JobRun {
    output: Option<String>,
}

impl Database {
    /// The things that were handled and must not be done twice, by key.
    #[track_caller]
    pub(crate) fn handled(&self) -> Vec<Handled> {
        self.table("handled", "key")
    }

    #[track_caller]
    pub(crate) fn is_handled(&self, key: &str) -> bool {
        self.handled().iter().any(|handled| handled.key == key)
    }

    /// Sets the value of an existing key.
    #[track_caller]
    pub(crate) fn put_handled(&self, key: &str, value: &str) {
        self.execute(&format!("UPDATE handled SET value = {} WHERE key = '{key}'", quoted(value)));
    }

    /// Deletes the handled things whose keys begin with this text.
    #[track_caller]
    pub(crate) fn forget_handled(&self, beginning: &str) {
        self.execute(&format!("DELETE FROM handled WHERE key LIKE '{beginning}%'"));
    }

    /// All upkeep, by name.
    #[track_caller]
    pub(crate) fn all_upkeep(&self) -> Vec<Upkeep> {
        self.table("upkeep", "name")
    }

    /// The upkeep of this name.
    #[track_caller]
    pub(crate) fn upkeep(&self, name: &str) -> Upkeep {
        let found = self.all_upkeep().into_iter().find(|upkeep| upkeep.name == name);
        found.unwrap_or_else(|| panic!("no upkeep {name}"))
    }

    /// Postpones the upkeep of this name until a time.
    #[track_caller]
    pub(crate) fn put_off_upkeep(&self, name: &str, until: &str) {
        self.execute(&format!(
            "INSERT INTO upkeep (name, not_before) VALUES ('{name}', '{until}')
             ON CONFLICT (name) DO UPDATE SET not_before = excluded.not_before"
        ));
    }

    /// Sets the time of the last success of the upkeep of this name.
    #[track_caller]
    pub(crate) fn put_upkeep(&self, name: &str, last_ok_at: &str) {
        self.execute(&format!(
            "INSERT INTO upkeep (name, last_ok_at) VALUES ('{name}', '{last_ok_at}')
             ON CONFLICT (name) DO UPDATE SET last_ok_at = excluded.last_ok_at"
        ));
    }

    /// Inserts a repair that no commit mentions yet.
    #[track_caller]
    pub(crate) fn put_repair(&self, check: &str, what: &str, at: &str) {
        self.execute(&format!("INSERT INTO repairs (at, check_id, what) VALUES ('{at}', '{check}', {})", quoted(what)));
    }

    #[track_caller]
    pub(crate) fn recordings(&self) -> Vec<Recording> {
        self.table("recordings", "id")
    }

    #[track_caller]
    pub(crate) fn proposals(&self) -> Vec<Proposal> {
        self.table("proposals", "id")
    }

    /// Counts the progress lines in chats whose message id in the channel is known.
    #[track_caller]
    pub(crate) fn count_sent_status_lines(&self) -> usize {
        self.count("status_lines", "channel_message_id IS NOT NULL")
    }

    #[track_caller]
    pub(crate) fn count_status_lines(&self) -> usize {
        self.count("status_lines", "TRUE")
    }

    /// The repairs that no commit mentions yet.
    #[track_caller]
    pub(crate) fn open_repairs(&self) -> Vec<Repair> {
        self.table::<Repair>("repairs", "id").into_iter().filter(|repair| repair.cycle_id.is_none()).collect()
    }

    /// Resets all repairs, as if no commit mentioned them.
    #[track_caller]
    pub(crate) fn reopen_repairs(&self) {
        self.execute("UPDATE repairs SET cycle_id = NULL");
    }

    /// Makes all postponed upkeep due.
    #[track_caller]
    pub(crate) fn bring_upkeep_forward(&self) {
        self.execute("UPDATE upkeep SET not_before = NULL");
    }

    /// Marks something as handled, so that it isn't done twice.
    #[track_caller]
    pub(crate) fn handle(&self, key: &str, at: &str) {
        self.execute(&format!("INSERT INTO handled (key, value, at) VALUES ('{key}', '', '{at}')"));
    }

    /// The size in bytes of each recording's vector from the sentence encoder, by request.
    #[track_caller]
    pub(crate) fn recorded_vectors(&self) -> Vec<(String, Option<i64>)> {
        let size = |request: &str| {
            self.query(&format!("SELECT length(vector) FROM recordings WHERE request = {}", quoted(request)))
        };
        let recordings = self.table::<Recording>("recordings", "request");
        recordings.into_iter().map(|recording| (recording.request.clone(), size(&recording.request))).collect()
    }

    /// The outputs of background jobs, oldest first.
    #[track_caller]
    pub(crate) fn job_outputs(&self) -> Vec<String> {
        self.table::<JobRun>("job_runs", "id").into_iter().filter_map(|run| run.output).collect()
    }

    /// Inserts a job run that has started, but whose cycle hasn't.
    #[track_caller]
    pub(crate) fn put_open_job_run(&self, name: &str, slot: &str, at: &str) {
        self.execute(&format!(
            "INSERT INTO job_runs (name, slot, started_at, state) VALUES ('{name}', '{slot}', '{at}', 'open')"
        ));
    }
}
