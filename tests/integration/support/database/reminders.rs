//! Access to reminders and their firings.

use serde::Deserialize;

use super::{Database, quoted};

#[derive(Debug, Deserialize)]
pub(crate) struct Reminder {
    pub(crate) chat_id: i64,
    pub(crate) text: String,
    pub(crate) state: String,
    pub(crate) rule: Option<String>,
    pub(crate) next_at: String,
}

impl Database {
    #[track_caller]
    pub(crate) fn reminders(&self) -> Vec<Reminder> {
        self.table("reminders", "id")
    }

    #[track_caller]
    pub(crate) fn active_reminders(&self) -> Vec<Reminder> {
        self.reminders().into_iter().filter(|reminder| reminder.state == "active").collect()
    }

    /// Returns the reminder with this text.
    #[track_caller]
    pub(crate) fn reminder(&self, text: &str) -> Reminder {
        let found = self.reminders().into_iter().find(|reminder| reminder.text == text);
        found.unwrap_or_else(|| panic!("no reminder of {text}"))
    }

    /// Inserts a reminder in Berlin's zone. Its time is given twice: as local time, and in UTC.
    #[track_caller]
    pub(crate) fn put_reminder(&self, chat: i64, text: &str, slot: &str, next_at: &str) {
        self.execute(&format!(
            "INSERT INTO reminders (chat_id, text, zone, slot, next_at, created_at)
             VALUES ({chat}, {}, 'Europe/Berlin', '{slot}', '{next_at}', '2026-11-21T12:00:00Z')",
            quoted(text)
        ));
    }

    /// Counts how often reminders fired.
    #[track_caller]
    pub(crate) fn count_firings(&self) -> usize {
        self.count("reminder_firings", "TRUE")
    }

    /// Inserts a reminder that is due in this many seconds of the real clock.
    #[track_caller]
    pub(crate) fn put_reminder_in(&self, seconds: u32, chat: i64, text: &str) {
        self.execute(&format!(
            "INSERT INTO reminders (chat_id, text, zone, slot, next_at, created_at)
             VALUES ({chat}, {}, 'UTC', '2026-01-01T09:00:00', strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '+{seconds} seconds'), '')",
            quoted(text)
        ));
    }

    /// Replaces the only reminder by this many at the same time, with the texts "thing 1.", "thing 2." and so on.
    #[track_caller]
    pub(crate) fn multiply_reminder(&self, count: usize) {
        self.execute(&format!(
            "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count})
             INSERT INTO reminders (chat_id, text, zone, slot, next_at, created_at, missed, written_at)
             SELECT chat_id, 'thing ' || n || '.', zone, slot, next_at, created_at, missed, written_at FROM reminders, numbers;
             DELETE FROM reminders WHERE text NOT LIKE 'thing %'"
        ));
    }

    /// Inserts a daily reminder at a time in UTC.
    #[track_caller]
    pub(crate) fn put_daily_reminder(&self, chat: i64, text: &str, at: &str, slot: &str) {
        self.execute(&format!(
            "INSERT INTO reminders (chat_id, text, rule, zone, slot, next_at, created_at)
             VALUES ({chat}, {}, '{{\"every\":\"daily\",\"at\":\"{at}\"}}', 'UTC', '{slot}', '{slot}.000Z', '2026-11-20T09:00:00.000Z')",
            quoted(text)
        ));
    }

    /// Sets when the next time of every reminder was written.
    #[track_caller]
    pub(crate) fn put_reminders_written(&self, at: &str) {
        self.execute(&format!("UPDATE reminders SET written_at = '{at}'"));
    }

    /// Ends all reminders.
    #[track_caller]
    pub(crate) fn end_reminders(&self) {
        self.execute("UPDATE reminders SET state = 'done'");
    }
}
