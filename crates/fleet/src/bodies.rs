//! Limits how many updates are being received at a time, per assistant and in total.
//!
//! A client that knows one assistant's secret may open requests and never finish them. Only a few per assistant are admitted at a time. If
//! there are too many in total, a new request ends the one that has waited longest. Another assistant's request is therefore always
//! admitted.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use tokio::sync::oneshot;

use reveille_base::types::AssistantName;

/// The maximum number of updates of one assistant at a time. Telegram is told to send one.
const MAX_EACH: usize = 2;
/// The maximum number of updates at a time in total, fewer than the server's limit of requests, so that a new request can always be read.
const MAX_OPEN: usize = 24;

/// The updates being received.
#[derive(Debug, Default)]
pub(super) struct OpenUpdates {
    /// The updates, the longest waiting first.
    open: Mutex<Vec<OpenUpdate>>,
    next: AtomicU64,
}

#[derive(Debug)]
struct OpenUpdate {
    number: u64,
    name: AssistantName,
    /// The sending end, never used: dropping it ends the wait for the body.
    _waits: oneshot::Sender<()>,
}

/// The place of one update, freed on drop.
#[derive(Debug)]
pub(super) struct UpdatePlace<'a> {
    updates: &'a OpenUpdates,
    number: u64,
}

impl OpenUpdates {
    /// Admits an update of an assistant, with a channel that closes once it has to give way; `None` if the assistant has too many open.
    pub(super) fn admit(&self, name: &AssistantName) -> Option<(UpdatePlace<'_>, oneshot::Receiver<()>)> {
        let mut open = self.lock();
        if open.iter().filter(|update| update.name == *name).count() >= MAX_EACH {
            return None;
        }
        while open.len() >= MAX_OPEN {
            open.remove(0);
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, ended) = oneshot::channel();
        open.push(OpenUpdate { number, name: name.clone(), _waits: sender });
        Some((UpdatePlace { updates: self, number }, ended))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<OpenUpdate>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UpdatePlace<'_> {
    fn drop(&mut self) {
        self.updates.lock().retain(|update| update.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(n: usize) -> AssistantName {
        format!("a{n}").parse().unwrap()
    }

    #[test]
    fn one_assistant_has_few_places_and_gets_them_back() {
        let updates = OpenUpdates::default();
        let first = updates.admit(&name(1)).unwrap();
        let _second = updates.admit(&name(1)).unwrap();
        assert!(updates.admit(&name(1)).is_none() && updates.admit(&name(2)).is_some());
        drop(first);
        assert!(updates.admit(&name(1)).is_some());
    }

    #[test]
    fn a_new_update_ends_the_one_that_has_waited_longest() {
        let updates = OpenUpdates::default();
        let mut open: Vec<_> = (0..MAX_OPEN).map(|n| updates.admit(&name(n)).unwrap()).collect();
        let is_ended = |(_, ended): &mut (UpdatePlace<'_>, oneshot::Receiver<()>)| {
            matches!(ended.try_recv(), Err(oneshot::error::TryRecvError::Closed))
        };
        assert!(!open.iter_mut().any(is_ended));
        let _new = updates.admit(&name(99)).unwrap();
        assert_eq!(open.iter_mut().position(is_ended), Some(0));
        assert_eq!(open.iter_mut().filter_map(|update| is_ended(update).then_some(())).count(), 1);
        // The new update has taken this one's place, and keeps it.
        drop(open.remove(0));
        assert_eq!(updates.lock().len(), MAX_OPEN);
    }
}
