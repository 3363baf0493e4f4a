//! The mind that needs no key and no network: a small command grammar, and quoting for questions.
//!
//! It sits behind the same seam as Claude and takes its turns with the same tools, so that the whole cycle runs, and is
//! tested, without a network. It knows only what stands in the conversation: which messages it was shown, and what its
//! calls have come to. What it can't answer it keeps, by a tool, for a mind that can.

pub mod grammar;

use chrono_tz::Tz;

use super::{Conversation, Model, TurnFuture};

/// The offline mind.
#[derive(Debug, Clone, Copy)]
pub struct Offline {
    tz: Tz,
}

impl Offline {
    /// A mind that understands times in a zone.
    pub fn new(tz: Tz) -> Self {
        Self { tz }
    }
}

impl Model for Offline {
    fn name(&self) -> &str {
        crate::config::OFFLINE_MODEL
    }

    fn turn<'a>(&'a self, _conversation: &'a Conversation) -> TurnFuture<'a> {
        let _ = self.tz;
        Box::pin(async {
            Err(super::ModelError::Account {
                why: "not there".to_owned(),
            })
        })
    }
}
