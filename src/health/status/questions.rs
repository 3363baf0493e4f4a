//! The part of the status that tells of questions: what waits for a person's word, since when and until when, and how to decide.

use chrono::{DateTime, Utc};

use reveille_base::{approval_text, types::ChatRef, words::ago};
use reveille_policy::Risk;
use reveille_store::Approval;

/// A question that can still be decided.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct OpenQuestion {
    /// Its number, for `wake approvals`.
    pub id: i64,
    /// What wants to be run; in full it is in `wake approvals list`.
    pub tool: String,
    /// What would be done, in one sentence.
    pub what: String,
    /// `safe`, `caution`, `dangerous` or `destructive`.
    pub risk: String,
    /// Where it is asked; 0 is the console.
    #[serde(rename = "chat_id")]
    pub chat: ChatRef,
    /// The cycle that waits.
    pub cycle_id: String,
    /// Since when.
    pub asked_at: Option<DateTime<Utc>>,
    /// Without an answer it is a no then.
    pub expires_at: Option<DateTime<Utc>>,
}

impl From<Approval> for OpenQuestion {
    fn from(approval: Approval) -> Self {
        Self {
            id: approval.id,
            what: approval_text::describe(&approval.tool, &approval.action).plain_sentence(),
            tool: approval.tool,
            risk: approval.risk,
            chat: approval.chat,
            cycle_id: approval.cycle_id,
            asked_at: approval.asked_at,
            expires_at: approval.expires_at,
        }
    }
}

/// One question for a person.
pub(super) fn line(question: &OpenQuestion, now: DateTime<Utc>) -> String {
    let OpenQuestion { id, what, risk, .. } = question;
    let risk = Risk::named(risk).told();
    let asked = question.asked_at.map_or_else(String::new, |at| format!(", asked {}", ago(at, now)));
    let until = question.expires_at.map_or_else(String::new, |at| format!(", expires {}", ago(at, now)));
    format!(
        "{id}: {what} Risk: {risk}{asked}{until}; see wake approvals list; to decide, wake approvals approve {id} or deny {id}"
    )
}
