//! Why there is no vector.

use std::time::Duration;

use reveille_store::{Cap, StoreError};

/// Why texts weren't embedded, by what should be done. Keywords serve in every case.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// A server that is busy or can't be reached, a child that was ended: try again later.
    #[error("{why}")]
    Later {
        /// What happened, without secrets.
        why: String,
        /// How long the server asked to be left alone.
        retry_after: Option<Duration>,
        /// Whether the texts may have been worked on, and have to be paid for.
        may_have_cost: bool,
    },
    /// A folder, a key, an address: a person must act.
    #[error("{0}")]
    SetUp(String),
    /// These texts aren't taken: sending them again is no use, others may do.
    #[error("{0}")]
    Refused(String),
    /// What came can't be vectors of these texts. None of it is kept.
    #[error("{embedder} gave vectors that can't be used: {why}. None of them is kept")]
    Unusable {
        /// Whose they are.
        embedder: String,
        /// What is wrong.
        why: String,
    },
    /// A person hasn't said that texts may leave this machine.
    #[error("{to} would get everything that is searched, and you haven't allowed that: `wake memory embed allow`")]
    NotAllowed {
        /// Where they would go.
        to: String,
    },
    /// No budget has room for it.
    #[error("what is left of {} has no room for it", .0.setting())]
    NoRoom(Cap),
    /// The database, which costs are written in.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl EmbedError {
    /// It may go better another time, and has cost nothing.
    pub fn later(why: impl Into<String>) -> Self {
        Self::Later { why: why.into(), retry_after: None, may_have_cost: false }
    }

    /// The same, where what was asked for may have to be paid.
    pub fn cut_off(why: impl Into<String>) -> Self {
        Self::Later { why: why.into(), retry_after: None, may_have_cost: true }
    }
}
