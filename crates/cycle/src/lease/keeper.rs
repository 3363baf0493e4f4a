//! Keeps a lease in a separate thread while its owner lives: takes it when possible, renews it, gives it back.

use std::{
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
    time::Duration,
};

use reveille_base::clock::{Clock, since_boot};

use crate::lease::{Acquired, Lease, LeaseError, protocol::renew_every};

/// The maximum wait between two attempts for a lease that is held elsewhere or unreachable.
const LONGEST_WAIT: Duration = Duration::from_secs(600);
/// The extra wait after a lease's expiry, so that rounding doesn't cost another attempt.
const AFTER_EXPIRY: Duration = Duration::from_millis(10);

/// The data passed from holder to holder, and notifications about the lease.
pub trait Handed: Send {
    /// Returns the keys for the next holder to count as handled.
    fn to_hand_over(&mut self) -> Vec<(String, String)>;
    /// Accepts the keys handled by the previous holder.
    fn take_over(&mut self, handled: Vec<(String, String)>);
    /// Called when the lease is gained.
    fn on_gain(&mut self);
    /// Called when the lease is lost or given back.
    fn on_loss(&mut self);
}

/// A thread that keeps a lease.
pub struct Keeper {
    lease: Arc<dyn Lease>,
    leave: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl Keeper {
    /// Renews a held lease until it is lost or `at_most` has passed. A holder beyond that time counts as hung.
    pub fn hold(lease: Arc<dyn Lease>, term: Duration, at_most: Duration) -> Self {
        let (leave, left) = mpsc::channel();
        let kept = Arc::clone(&lease);
        let thread = thread::spawn(move || {
            renew_lease(kept.as_ref(), term, Some(since_boot() + at_most), &left, &mut Nothing);
        });
        Self { lease, leave: Some((leave, thread)) }
    }

    /// Takes the lease whenever possible.
    pub fn take_turns(
        lease: Arc<dyn Lease>,
        term: Duration,
        clock: Arc<dyn Clock>,
        mut handed: impl Handed + 'static,
    ) -> Self {
        let (leave, left) = mpsc::channel();
        let kept = Arc::clone(&lease);
        let thread = thread::spawn(move || take_turns(kept.as_ref(), term, clock.as_ref(), &left, &mut handed));
        Self { lease, leave: Some((leave, thread)) }
    }

    /// The lease.
    pub fn lease(&self) -> &Arc<dyn Lease> {
        &self.lease
    }
}

/// Gives the lease back.
impl Drop for Keeper {
    fn drop(&mut self) {
        if let Some((leave, thread)) = self.leave.take() {
            drop(leave);
            thread.join().ok();
        }
    }
}

/// Passes nothing on.
struct Nothing;

impl Handed for Nothing {
    fn to_hand_over(&mut self) -> Vec<(String, String)> {
        Vec::new()
    }
    fn take_over(&mut self, _handled: Vec<(String, String)>) {}
    fn on_gain(&mut self) {}
    fn on_loss(&mut self) {}
}

/// Takes and renews the lease until the owner leaves.
fn take_turns(
    lease: &dyn Lease,
    term: Duration,
    clock: &dyn Clock,
    left: &mpsc::Receiver<()>,
    handed: &mut dyn Handed,
) {
    let (mut told, mut failures) = (None, 0_u32);
    let mut say = |what: String| {
        if told.as_ref() != Some(&what) {
            tracing::info!("{what}");
            told = Some(what);
        }
    };
    loop {
        let wait = match lease.acquire(clock.now()) {
            Ok(Acquired::Ours { handled }) => {
                failures = 0;
                say("this machine has the lease now".to_owned());
                handed.take_over(handled);
                handed.on_gain();
                let has_left = renew_lease(lease, term, None, left, handed);
                handed.on_loss();
                if has_left {
                    return;
                }
                say("this machine has lost the lease".to_owned());
                Duration::ZERO
            }
            Ok(Acquired::Others { holder, left }) => {
                failures = 0;
                let who = holder.map_or_else(|| "another machine".to_owned(), |holder| holder.name);
                say(format!("{who} has the lease; I wait for it"));
                // At most a term, so that a returned lease is noticed soon.
                left.min(term) + AFTER_EXPIRY
            }
            Err(error) => {
                failures = failures.saturating_add(1);
                say(format!("the lease can't be requested: {error}"));
                term * failures.min(8)
            }
        };
        if left.recv_timeout(wait.min(LONGEST_WAIT)) != Err(mpsc::RecvTimeoutError::Timeout) {
            return;
        }
    }
}

/// Renews the lease until it is lost or `until` has passed (`false`), or its owner leaves (`true`). In the latter case the lease is given
/// back.
fn renew_lease(
    lease: &dyn Lease,
    term: Duration,
    until: Option<Duration>,
    left: &mpsc::Receiver<()>,
    handed: &mut dyn Handed,
) -> bool {
    loop {
        if left.recv_timeout(renew_every(term)) != Err(mpsc::RecvTimeoutError::Timeout) {
            handed.on_loss();
            lease.release(handed.to_hand_over());
            return true;
        }
        if until.is_some_and(|until| since_boot() >= until) {
            return false;
        }
        match lease.renew(handed.to_hand_over()) {
            Ok(()) => {}
            Err(LeaseError::Lost) => return false,
            Err(error) => {
                tracing::debug!(%error, "the lease was not renewed");
                if lease.remaining_term().is_zero() {
                    return false;
                }
            }
        }
    }
}
