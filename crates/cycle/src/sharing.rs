//! Among several machines with one memory: whether this wake holds the lease, or works on what it has while nobody can
//! be asked.

use std::sync::Arc;

use reveille_base::{words::local, zone::Tz};
use reveille_store::{Store, UpkeepKind};

use crate::{
    context::{Context, WakeError},
    lease::{Acquired, Keeper, LastSeenLease, Lease as _, LeasePart, RemoteLease},
};

/// What a wake has of the lease that machines share.
pub(crate) enum Sharing {
    /// This machine is alone: there is none.
    Unshared,
    /// It, renewed in the background. It may be lost meanwhile.
    Held(Keeper),
    /// Nothing: the remote can't be asked, so nothing is pushed either, and both sides merge later.
    Cut {
        /// Why, where it was asked just now.
        why: Option<String>,
    },
}

/// Takes the lease. As an error in words: another machine has it.
pub(crate) fn take(context: Context<'_>, store: &Store) -> Result<Result<Sharing, String>, WakeError> {
    let Some(lease) = RemoteLease::of(context.config, LeasePart::Wake) else { return Ok(Ok(Sharing::Unshared)) };
    let now = context.clock.now();
    // Whoever waits for an answer doesn't wait once more for a remote that was silent.
    if !store.upkeep(UpkeepKind::Lease)?.may_try(now) {
        return Ok(Ok(Sharing::Cut { why: None }));
    }
    Ok(match lease.acquire(now) {
        Ok(Acquired::Ours { .. }) => {
            // As long as this machine's own lock is taken for a living wake's.
            let at_most = context.config.wake_timeout + context.config.stale_lock;
            Ok(Sharing::Held(Keeper::hold(Arc::new(lease), context.config.lease.term, at_most)))
        }
        Ok(Acquired::Others { holder, .. }) => Err(in_words(holder.as_ref(), context.config.timezone)),
        Err(error) => Ok(Sharing::Cut { why: Some(context.redactor.redact(&error.to_string())) }),
    })
}

fn in_words(holder: Option<&LastSeenLease>, tz: Tz) -> String {
    let who = holder.map_or_else(|| "Another machine".to_owned(), |holder| format!("The machine {}", holder.name));
    let since = holder.and_then(LastSeenLease::since).map(|at| format!(" (since {})", local(at, tz)));
    format!("{who} is working{}. I take my turn after it.", since.unwrap_or_default())
}

impl Sharing {
    /// Whether the lease was held and isn't any more: another machine may be at work.
    pub(crate) fn is_lost(&self) -> bool {
        match self {
            // fault: wake-goes-term
            Self::Held(keeper) => keeper.lease().left().is_zero(),
            Self::Unshared | Self::Cut { .. } => false,
        }
    }

    /// Whether what was committed may leave for the remote.
    pub(crate) fn may_push(&self) -> bool {
        match self {
            Self::Unshared => true,
            Self::Held(_) => !self.is_lost(),
            Self::Cut { .. } => false,
        }
    }
}
