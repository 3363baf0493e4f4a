//! Access to the approvals: questions asked before an act.

use serde::Deserialize;

use super::{Database, quoted};

#[derive(Debug, Deserialize)]
pub(crate) struct Approval {
    pub(crate) id: i64,
    pub(crate) tool: String,
    pub(crate) action: String,
    pub(crate) state: String,
    pub(crate) decided_by: Option<String>,
    pub(crate) used_at: Option<String>,
    pub(crate) rule: Option<String>,
}

impl Database {
    #[track_caller]
    pub(crate) fn approvals(&self) -> Vec<Approval> {
        self.table("approvals", "id")
    }

    /// Returns the only question.
    #[track_caller]
    pub(crate) fn approval(&self) -> Approval {
        let mut approvals = self.approvals();
        assert_eq!(approvals.len(), 1, "{approvals:#?}");
        approvals.remove(0)
    }

    /// The questions in a state: pending, approved, denied, expired, withdrawn.
    #[track_caller]
    pub(crate) fn approvals_in(&self, state: &str) -> Vec<Approval> {
        self.approvals().into_iter().filter(|approval| approval.state == state).collect()
    }

    /// Counts the questions whose act was started.
    #[track_caller]
    pub(crate) fn count_used_approvals(&self) -> usize {
        self.count("approvals", "used_at IS NOT NULL")
    }

    /// Replaces text in the actions of all questions.
    #[track_caller]
    pub(crate) fn replace_in_actions(&self, from: &str, to: &str) {
        self.execute(&format!("UPDATE approvals SET action = replace(action, {}, {})", quoted(from), quoted(to)));
    }

    /// Sets a column of all questions.
    #[track_caller]
    pub(crate) fn alter_approvals(&self, column: &str, text: &str) {
        self.execute(&format!("UPDATE approvals SET {column} = {}", quoted(text)));
    }

    /// Copies the questions for another call.
    #[track_caller]
    pub(crate) fn ask_again(&self, call: &str) {
        self.execute(&format!(
            "INSERT INTO approvals (cycle_id, call, tool, action, risk, reasons, chat_id, nonce, asked_at, expires_at)
             SELECT cycle_id, '{call}', tool, action, risk, reasons, chat_id, '{call}', asked_at, expires_at FROM approvals"
        ));
    }

    #[track_caller]
    pub(crate) fn forget_approvals(&self) {
        self.execute("DELETE FROM approvals");
    }

    /// Sets a column of one question.
    #[track_caller]
    pub(crate) fn alter_approval(&self, id: i64, column: &str, text: &str) {
        self.execute(&format!("UPDATE approvals SET {column} = {} WHERE id = {id}", quoted(text)));
    }

    /// Moves the questions and the outbox to another chat.
    #[track_caller]
    pub(crate) fn move_approvals(&self, chat: i64) {
        self.execute(&format!("UPDATE approvals SET chat_id = {chat}; UPDATE outgoing_messages SET chat_id = {chat}"));
    }

    /// Sets the state after the answer "always", before the rule was written and its message shown.
    #[track_caller]
    pub(crate) fn order_rule(&self, at: &str) {
        self.execute(&format!(
            "UPDATE approvals SET rule = 'ordered', rule_at = '{at}', rule_is_shown = 0, state = 'pending'"
        ));
    }
}
