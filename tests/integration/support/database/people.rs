//! Access to pairings, strangers' messages, open sessions, polling and restarts.

use serde::Deserialize;

use super::{Database, quoted};

#[derive(Debug, Deserialize)]
pub(crate) struct PairingCode {
    pub(crate) wrong: i64,
    pub(crate) expires_at: String,
}

#[derive(Deserialize)]
struct Paired {
    user_id: i64,
}

impl Database {
    /// The user ids of paired people.
    #[track_caller]
    pub(crate) fn paired(&self) -> Vec<i64> {
        self.table::<Paired>("paired", "user_id").into_iter().map(|person| person.user_id).collect()
    }

    #[track_caller]
    pub(crate) fn pair(&self, user: i64, name: &str, at: &str) {
        self.execute(&format!(
            "INSERT INTO paired (user_id, name, paired_at) VALUES ({user}, {}, '{at}')",
            quoted(name)
        ));
    }

    #[track_caller]
    pub(crate) fn pairing_codes(&self) -> Vec<PairingCode> {
        self.table("pairing_codes", "id")
    }

    #[track_caller]
    pub(crate) fn expire_pairing_codes(&self, at: &str) {
        self.execute(&format!("UPDATE pairing_codes SET expires_at = '{at}'"));
    }

    /// Counts the messages from strangers.
    #[track_caller]
    pub(crate) fn count_from_strangers(&self) -> i64 {
        self.query("SELECT n FROM counters WHERE name = 'strangers'")
    }

    /// Counts the open terminals and pages.
    #[track_caller]
    pub(crate) fn count_sessions(&self) -> usize {
        self.count("sessions", "TRUE")
    }

    /// Deletes the records of open terminals and pages.
    #[track_caller]
    pub(crate) fn forget_sessions(&self) {
        self.execute("DELETE FROM sessions");
    }

    /// Deletes the record of the updates that were fetched.
    #[track_caller]
    pub(crate) fn forget_updates(&self) {
        self.execute("DELETE FROM poll_state");
    }

    /// The id of the next update to fetch for a bot.
    #[track_caller]
    pub(crate) fn next_update(&self, bot: i64) -> i64 {
        self.query(&format!("SELECT next_offset FROM poll_state WHERE bot_id = {bot}"))
    }

    #[track_caller]
    pub(crate) fn put_next_update(&self, bot: i64, update: i64) {
        self.execute(&format!("INSERT INTO poll_state (bot_id, next_offset) VALUES ({bot}, {update})"));
    }

    /// The time of the last successful poll.
    #[track_caller]
    pub(crate) fn last_poll(&self) -> Option<String> {
        self.query("SELECT max(last_poll_at) FROM poll_state")
    }

    #[track_caller]
    pub(crate) fn put_last_poll(&self, at: &str) {
        self.execute(&format!("UPDATE poll_state SET last_poll_at = '{at}'"));
    }

    /// Returns whether all work is stopped.
    #[track_caller]
    pub(crate) fn is_stopped(&self) -> bool {
        self.count("stopped", "TRUE") > 0
    }

    /// Inserts a restart that a chat asked for, whose result wasn't reported yet.
    #[track_caller]
    pub(crate) fn ask_for_restart(&self, chat: i64, at: &str) {
        self.execute(&format!("INSERT INTO restarts (asked_at, chat_id) VALUES ('{at}', {chat})"));
    }

    /// Counts the restarts whose result was reported to a chat.
    #[track_caller]
    pub(crate) fn count_told_restarts(&self) -> usize {
        self.count("restarts", "told_at IS NOT NULL")
    }
}
