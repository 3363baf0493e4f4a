//! The questions that were asked before an act.

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

    /// The one question that there is.
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

    /// The number of questions whose act was begun.
    #[track_caller]
    pub(crate) fn count_used_approvals(&self) -> usize {
        self.count("approvals", "used_at IS NOT NULL")
    }

    /// Puts the action of all questions in other bytes.
    #[track_caller]
    pub(crate) fn replace_in_actions(&self, from: &str, to: &str) {
        self.execute(&format!("UPDATE approvals SET action = replace(action, {}, {})", quoted(from), quoted(to)));
    }

    /// Changes a column of all questions.
    #[track_caller]
    pub(crate) fn alter_approvals(&self, column: &str, text: &str) {
        self.execute(&format!("UPDATE approvals SET {column} = {}", quoted(text)));
    }

    /// Asks the same again for another call.
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

    /// Changes a column of one question.
    #[track_caller]
    pub(crate) fn alter_approval(&self, id: i64, column: &str, text: &str) {
        self.execute(&format!("UPDATE approvals SET {column} = {} WHERE id = {id}", quoted(text)));
    }

    /// The questions are asked in another chat.
    #[track_caller]
    pub(crate) fn move_approvals(&self, chat: i64) {
        self.execute(&format!("UPDATE approvals SET chat_id = {chat}; UPDATE outgoing_messages SET chat_id = {chat}"));
    }

    /// "Always" was answered, and neither the rule was written nor its message shown.
    #[track_caller]
    pub(crate) fn order_rule(&self, at: &str) {
        self.execute(&format!(
            "UPDATE approvals SET rule = 'ordered', rule_at = '{at}', rule_is_shown = 0, state = 'pending'"
        ));
    }
}
