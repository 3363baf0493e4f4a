//! The reason for an early stop of a cycle. `resume` derives the notice and the time of the next attempt from it.

use std::time::Duration;

use reveille_model::ModelError;
use reveille_store::{Cap, ModelFault};

/// The reason for an early stop of a cycle, by its consequence.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum Interrupt {
    /// The model is unavailable: wait and resume.
    #[error("{why}")]
    Unavailable {
        /// The error.
        why: String,
        /// The wait requested by the server.
        retry_after: Option<Duration>,
        /// The kind of fault.
        fault: ModelFault,
        /// True if the server doesn't have the model. A cycle begun with it is given up if no other model takes over.
        is_model_gone: bool,
    },
    /// The model's server rejects this conversation: give the cycle up.
    #[error("{0}")]
    Rejected(String),
    /// The conversation is too long for the model and can't be shortened: put its messages on hold.
    #[error("{0}")]
    TooLong(String),
    /// A budget has no room for the next request: wait until its day or month is over.
    #[error("the {}'s budget has no room for the next request, which may cost up to {most_usd:.2} USD", cap.name())]
    OverBudget {
        /// The exhausted cap.
        cap: Cap,
        /// The maximum cost of the request, in US dollars.
        most_usd: f64,
    },
    /// The wake has reached its time limit.
    #[error("the wake reached its time limit (WAKE_TIMEOUT_MIN)")]
    OutOfTime,
    /// The process was asked to end.
    #[error("the wake was asked to stop")]
    Stopped,
    /// Another machine may have taken over the lease.
    #[error("this machine no longer holds the lease")]
    LeaseLost,
    /// The chat was made local during the cycle, and the model runs elsewhere.
    #[error("its chat is kept off the cloud by /local")]
    KeptLocal,
    /// A person has stopped all work, or the work for their chat.
    #[error("it was stopped by /stop")]
    Halted,
}

impl Interrupt {
    /// Renders the notice for the asking chat.
    pub(crate) fn render_notice(&self) -> String {
        match self {
            Self::Unavailable { why, fault, .. } if fault.needs_person() => {
                format!("I can't reach my AI model: {why}. Your messages are safe; I'll retry hourly.")
            }
            Self::KeptLocal => {
                "This chat is kept off the cloud, so I stopped the cloud model that was working here. Nothing is lost: I'll continue \
                 once a model on this machine is available, or after /local off."
                    .to_owned()
            }
            other => format!(
                "I can't reach my AI model right now: {other}. Your messages are safe; I'll answer as soon as I can."
            ),
        }
    }

    /// A model that can't be created because of a wrong setting, which a person must correct.
    pub(crate) fn for_unusable_model(why: String) -> Self {
        Self::Unavailable { why, retry_after: None, fault: ModelFault::Account, is_model_gone: false }
    }

    /// Classifies an error that remained after retries.
    pub(crate) fn from_error(error: &ModelError, why: String, model: &str) -> Self {
        let (retry_after, fault) = match error {
            ModelError::Transient { retry_after, .. } => (*retry_after, ModelFault::Outage),
            ModelError::Account { .. } => (None, ModelFault::Account),
            // An unknown model points to a wrong setting, not to a faulty conversation.
            ModelError::Rejected { status: 404, .. } => (None, ModelFault::Missing),
            ModelError::Rejected { .. } => return Self::Rejected(why),
        };
        // A wrong address also gives 404, but says nothing about the model.
        let is_model_gone = matches!(error, ModelError::Rejected { status: 404, .. }) && why.contains(model);
        Self::Unavailable { why, retry_after, fault, is_model_gone }
    }
}
