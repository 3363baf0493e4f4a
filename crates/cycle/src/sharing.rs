//! The lease between several machines with one memory: this wake holds it, or works alone while the remote can't be asked.

use std::sync::Arc;

use reveille_base::{words::format_local_time, zone::Tz};
use reveille_store::{Store, UpkeepKind};

use crate::{
    context::{Context, WakeError},
    lease::{Acquired, Keeper, LastSeenLease, Lease as _, LeasePart, RemoteLease},
};

/// The wake's share of the lease between machines.
pub(crate) enum Sharing {
    /// This machine works alone, without a lease.
    Unshared,
    /// The lease, renewed in the background. Another machine may take it meanwhile.
    Held(Keeper),
    /// No lease, because the remote can't be asked. Nothing is pushed, and both sides merge later.
    Cut {
        /// The error of an attempt made just now.
        why: Option<String>,
    },
}

/// Takes the lease. The inner error is a sentence: another machine holds it.
pub(crate) fn take(context: Context<'_>, store: &Store) -> Result<Result<Sharing, String>, WakeError> {
    let Some(lease) = RemoteLease::from_config(context.config, LeasePart::Wake) else {
        return Ok(Ok(Sharing::Unshared));
    };
    let now = context.clock.now();
    // A person who waits for an answer shouldn't also wait for a silent remote.
    if !store.maintenance().read_upkeep(UpkeepKind::Lease)?.may_try(now) {
        return Ok(Ok(Sharing::Cut { why: None }));
    }
    Ok(match lease.acquire(now) {
        Ok(Acquired::Ours { .. }) => {
            // The time after which this machine's own lock would count as abandoned.
            let at_most = context.config.wake_timeout + context.config.stale_lock;
            Ok(Sharing::Held(Keeper::hold(Arc::new(lease), context.config.lease.term, at_most)))
        }
        Ok(Acquired::Others { holder, .. }) => Err(describe_holder(holder.as_ref(), context.config.timezone)),
        Err(error) => Ok(Sharing::Cut { why: Some(context.redactor.redact(&error.to_string())) }),
    })
}

fn describe_holder(holder: Option<&LastSeenLease>, tz: Tz) -> String {
    let who = holder.map_or_else(|| "Another machine".to_owned(), |holder| format!("The machine {}", holder.name));
    let since = holder.and_then(LastSeenLease::start_time).map(|at| format!(" (since {})", format_local_time(at, tz)));
    format!("{who} is working{}. I'll take my turn afterwards.", since.unwrap_or_default())
}

impl Sharing {
    /// True if the lease was held and has expired: another machine may be working.
    pub(crate) fn is_lost(&self) -> bool {
        match self {
            // fault: wake-goes-term
            Self::Held(keeper) => keeper.lease().remaining_term().is_zero(),
            Self::Unshared | Self::Cut { .. } => false,
        }
    }

    /// True if commits may be pushed.
    pub(crate) fn may_push(&self) -> bool {
        match self {
            Self::Unshared => true,
            Self::Held(_) => !self.is_lost(),
            Self::Cut { .. } => false,
        }
    }
}
