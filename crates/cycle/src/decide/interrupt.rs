//! Why a cycle stopped before its end. `resume` makes of it what is told and when the cycle goes on.

use std::time::Duration;

use reveille_model::ModelError;
use reveille_store::{Cap, ModelFault};

/// Why a cycle stopped before its end, by what follows from it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum Interrupt {
    /// The model can't be reached now: wait and go on.
    #[error("{why}")]
    Unavailable {
        /// What happened.
        why: String,
        /// What the server asked for.
        retry_after: Option<Duration>,
        /// What is wrong with it.
        fault: ModelFault,
        /// Whether its server doesn't have the model: where no other goes on with what it has begun, that is given up.
        is_model_gone: bool,
    },
    /// The model's server won't take this conversation: give the cycle up.
    #[error("{0}")]
    Rejected(String),
    /// The conversation is too long for the model, and nothing more can be left out: put its messages on hold.
    #[error("{0}")]
    TooLong(String),
    /// A budget has no room for the next request: wait until its day or month is over.
    #[error("the {}'s budget has no room for the next request, which may cost up to {most_usd:.2} USD", cap.name())]
    OverBudget {
        /// Which.
        cap: Cap,
        /// The most that the request may cost, in US dollars.
        most_usd: f64,
    },
    /// The wake has taken as long as it may.
    #[error("the wake has taken as long as it may (WAKE_TIMEOUT_MIN)")]
    OutOfTime,
    /// The process was asked to end.
    #[error("the wake was asked to stop")]
    Stopped,
    /// Another machine may have taken over the lease.
    #[error("this machine holds the lease no more")]
    LeaseLost,
    /// Its chat is kept local since then, and its model is elsewhere.
    #[error("its chat is kept off the cloud by /local")]
    KeptLocal,
    /// A person has ordered all work to stop, or what is done for their chat.
    #[error("it was stopped by /stop")]
    Halted,
}

impl Interrupt {
    /// What the asking chat is told.
    pub(crate) fn notice(&self) -> String {
        match self {
            Self::Unavailable { why, fault, .. } if fault.needs_person() => {
                format!("I can't reach my AI model: {why}. Your messages are safe; I'll retry hourly.")
            }
            Self::KeptLocal => {
                "This chat is kept off the cloud, so I ended what a cloud model was doing here. Nothing is lost: \
                                I go on when a model on this machine can be asked, or after /local off."
                    .to_owned()
            }
            other => format!(
                "I can't reach my AI model right now: {other}. Your messages are safe; I'll answer as soon as I can."
            ),
        }
    }

    /// A model that can't be made: a setting is wrong, which a person must mend.
    pub(crate) fn unusable(why: String) -> Self {
        Self::Unavailable { why, retry_after: None, fault: ModelFault::Account, is_model_gone: false }
    }

    /// What follows from an error that retrying did not mend.
    pub(crate) fn of(error: &ModelError, why: String, model: &str) -> Self {
        let (retry_after, fault) = match error {
            ModelError::Transient { retry_after, .. } => (*retry_after, ModelFault::Outage),
            ModelError::Account { .. } => (None, ModelFault::Account),
            // An unknown model is a setting to be mended, not a fault of the conversation.
            ModelError::Rejected { status: 404, .. } => (None, ModelFault::Missing),
            ModelError::Rejected { .. } => return Self::Rejected(why),
        };
        // A wrong address is not found either, and says nothing of the model.
        let is_model_gone = matches!(error, ModelError::Rejected { status: 404, .. }) && why.contains(model);
        Self::Unavailable { why, retry_after, fault, is_model_gone }
    }
}
