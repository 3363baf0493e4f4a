//! The reasons why texts have no vectors.

use std::time::Duration;

use reveille_store::{Cap, StoreError};

/// The reason texts weren't embedded. The variants differ in what to do next. Keyword search works in every case.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// A busy or unreachable server, or a killed child process: try again later.
    #[error("{why}")]
    Later {
        /// The cause, without secrets.
        why: String,
        /// The delay requested by the server.
        retry_after: Option<Duration>,
        /// Whether the texts may have been processed and charged.
        may_have_cost: bool,
    },
    /// A folder, a key or an address is wrong: a person must act.
    #[error("{0}")]
    SetUp(String),
    /// The texts are refused: resending them is useless, but others may work.
    #[error("{0}")]
    Refused(String),
    /// The response can't be vectors of these texts, and is dropped whole.
    #[error("{embedder} returned unusable vectors: {why}. None was kept")]
    Unusable {
        /// The embedder's id.
        embedder: String,
        /// The fault.
        why: String,
    },
    /// A person hasn't allowed texts to leave this machine.
    #[error(
        "{to} would get everything that is searched, and you haven't allowed that; `wake memory embed allow` allows it"
    )]
    NotAllowed {
        /// The destination.
        to: String,
    },
    /// No budget has room.
    #[error("too little is left of {} for it", .0.setting_name())]
    NoRoom(Cap),
    /// The database that records costs failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl EmbedError {
    /// Creates an error for a free attempt worth repeating.
    pub fn later(why: impl Into<String>) -> Self {
        Self::Later { why: why.into(), retry_after: None, may_have_cost: false }
    }

    /// Creates an error for an attempt worth repeating that may have cost money.
    pub fn cut_off(why: impl Into<String>) -> Self {
        Self::Later { why: why.into(), retry_after: None, may_have_cost: true }
    }
}
