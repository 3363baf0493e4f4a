//! Bounds on the updates that are on their way: of each assistant, and in all.
//!
//! Whoever knows one assistant's secret may begin requests and never end them. A few of one assistant are let in at a time; where many
//! assistants do that, a new request ends the one that has waited longest. So one that comes in one piece is always let in.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use tokio::sync::oneshot;

use reveille_base::types::AssistantName;

/// Updates of one assistant at a time. Telegram is told to bring one.
const MAX_EACH: usize = 2;
/// Updates at a time, in all: fewer than there are places for requests.
const MAX_OPEN: usize = 24;

/// The updates that are being taken in.
#[derive(Debug, Default)]
pub(super) struct OpenUpdates {
    /// The one that has waited longest is first.
    open: Mutex<Vec<OpenUpdate>>,
    next: AtomicU64,
}

#[derive(Debug)]
struct OpenUpdate {
    number: u64,
    name: AssistantName,
    /// Dropped, it ends the wait for the body.
    _waits: oneshot::Sender<()>,
}

/// The place of one update. Dropped, it is free.
#[derive(Debug)]
pub(super) struct UpdatePlace<'a> {
    updates: &'a OpenUpdates,
    number: u64,
}

impl OpenUpdates {
    /// Lets an update of an assistant in, with what ends once it has to give way; `None` if too many of that assistant's are here.
    pub(super) fn enter(&self, name: &AssistantName) -> Option<(UpdatePlace<'_>, oneshot::Receiver<()>)> {
        let mut open = self.locked();
        if open.iter().filter(|update| update.name == *name).count() >= MAX_EACH {
            return None;
        }
        while open.len() >= MAX_OPEN {
            open.remove(0);
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (waits, ended) = oneshot::channel();
        open.push(OpenUpdate { number, name: name.clone(), _waits: waits });
        Some((UpdatePlace { updates: self, number }, ended))
    }

    fn locked(&self) -> MutexGuard<'_, Vec<OpenUpdate>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UpdatePlace<'_> {
    fn drop(&mut self) {
        self.updates.locked().retain(|update| update.number != self.number);
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
        let first = updates.enter(&name(1)).unwrap();
        let _second = updates.enter(&name(1)).unwrap();
        assert!(updates.enter(&name(1)).is_none() && updates.enter(&name(2)).is_some());
        drop(first);
        assert!(updates.enter(&name(1)).is_some());
    }

    #[test]
    fn a_new_update_ends_the_one_that_has_waited_longest() {
        let updates = OpenUpdates::default();
        let mut open: Vec<_> = (0..MAX_OPEN).map(|n| updates.enter(&name(n)).unwrap()).collect();
        let is_ended = |(_, ended): &mut (UpdatePlace<'_>, oneshot::Receiver<()>)| {
            matches!(ended.try_recv(), Err(oneshot::error::TryRecvError::Closed))
        };
        assert!(!open.iter_mut().any(is_ended));
        let _new = updates.enter(&name(99)).unwrap();
        assert_eq!(open.iter_mut().position(is_ended), Some(0));
        assert_eq!(open.iter_mut().filter_map(|update| is_ended(update).then_some(())).count(), 1);
        // Its place is taken by another by now, and stays so.
        drop(open.remove(0));
        assert_eq!(updates.locked().len(), MAX_OPEN);
    }
}
