//! A lease stored as a reference on the memory's remote: the I/O around `protocol`.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use chrono::{DateTime, Utc};

use reveille_base::{
    clock::{format_rfc3339, since_boot},
    process::{self, Identity},
    random,
};
use reveille_config::{Config, RepoUrl};
use reveille_git::{Beside, LeaseRef, Oid, Pushed, RefValue, RemoteError};

use crate::lease::{
    Acquired, Lease, LeaseError, LeasePart,
    protocol::{BootTime, LeaseNote, LeaseStep, SeenLease, SwapFate, Tenure, decide_step, to_millis},
    record::{LastSeenLease, LeaseRecord, RecordFile},
};

/// The maximum duration of a request to the remote, because an answer may wait for it.
const ASK_BOUND: Duration = Duration::from_secs(5);
/// The number of swaps tried by one renewal: a second one is needed if an earlier swap with an unknown end has succeeded.
const RENEW_TRIES: u32 = 2;
/// The maximum number of remembered swaps with an unknown end. Beyond that the lease is given up.
const MAX_PENDING: usize = 16;
/// The maximum size of a note, in bytes. A longer note isn't ours.
const MAX_NOTE_BYTES: usize = 128 << 10;
/// The number of renewals between removals of old values: here, and by git in a remote that is a folder.
const TIDY_EVERY: u64 = 32;

/// One lease on the remote.
pub struct RemoteLease {
    reference: LeaseRef,
    file: RecordFile,
    name: String,
    term: Duration,
    boot: String,
    held: Mutex<Held>,
    /// The end of the term, in milliseconds since the boot, readable without waiting for a push. 0 if the lease isn't held.
    until_ms: AtomicU64,
    /// The number of this holding, or of the last one.
    fence: AtomicU64,
}

#[derive(Default)]
struct Held {
    tenure: Option<Tenure>,
    record: LeaseRecord,
    /// The start of this holding, by the wall clock.
    since: DateTime<Utc>,
}

impl RemoteLease {
    /// Builds the lease of these settings, without any request yet. `None` if this machine works alone.
    pub fn from_config(config: &Config, part: LeasePart) -> Option<Self> {
        let url = config.repo_url.as_ref().filter(|_| config.lease.is_shared()).map(RepoUrl::expose)?;
        let dir = config.lease_dir();
        let name = format!("{}/{}", config.lease.reference, part.name());
        Some(Self {
            reference: LeaseRef::new(&config.repo_dir(), &dir.join(format!("{}.git", part.name())), url, name),
            file: RecordFile::new(&dir, part.name()),
            name: config.lease.name.clone().unwrap_or_else(process::host_name),
            term: config.lease.term,
            boot: Identity::current().boot_id,
            held: Mutex::default(),
            until_ms: AtomicU64::new(0),
            fence: AtomicU64::new(0),
        })
    }

    fn lock_state(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The maximum duration of a holder's step, since a term must be renewed in time.
    fn bound(&self) -> Duration {
        ASK_BOUND.min(self.term)
    }

    fn read_shared_lease(&self, bound: Duration) -> Result<SeenLease, LeaseError> {
        Ok(match self.reference.read_value(bound)? {
            None => SeenLease::Absent,
            Some(RefValue { message: Some(text), .. }) if text.len() > MAX_NOTE_BYTES => SeenLease::Foreign,
            Some(value) => match value.message.as_deref().map(serde_json::from_str) {
                None => SeenLease::Moving,
                Some(Err(_)) => SeenLease::Foreign,
                Some(Ok(note)) => SeenLease::Note { id: value.id.to_string(), note },
            },
        })
    }

    fn make_note(&self, note: &LeaseNote) -> Result<Oid, LeaseError> {
        let text = serde_json::to_string(note).map_err(std::io::Error::from)?;
        Ok(self.reference.create_value(&text)?)
    }

    /// Records a note before it can appear in the shared place.
    fn record_pending_note(&self, held: &mut Held, new: Oid) -> Result<(), LeaseError> {
        let old = held.tenure.iter().flat_map(|tenure| tenure.pending.iter().chain([&tenure.id])).cloned();
        held.record.mine = old.chain([new.to_string()]).collect();
        Ok(self.file.write(&held.record)?)
    }

    /// Records a successful swap that began at `began`.
    fn record_swap(&self, held: &mut Held, note: LeaseNote, id: Oid, began: Duration) {
        let (renewal, fence, now_held) = (note.renewal, note.fence, note.is_held);
        let tenure = Tenure::begin(note, id.to_string(), began);
        let until_ms = if now_held { to_millis(tenure.until) } else { 0 };
        self.until_ms.store(until_ms, Ordering::SeqCst);
        self.fence.store(fence, Ordering::SeqCst);
        held.record.mine = vec![id.to_string()];
        held.record.watch = None;
        held.record.fence = fence;
        held.record.trouble = None;
        held.record.until = now_held.then(|| (self.boot.clone(), until_ms));
        held.record.seen = Some(LastSeenLease::for_own_lease(&self.name, now_held, &tenure.note.since, held.since));
        if let Err(error) = self.file.write(&held.record) {
            tracing::warn!(%error, "the lease could not be recorded");
        }
        if renewal.is_multiple_of(TIDY_EVERY) {
            self.reference.keep_only(id);
        }
        held.tenure = now_held.then_some(tenure);
    }

    fn record_loss(&self, held: &mut Held) -> LeaseError {
        self.until_ms.store(0, Ordering::SeqCst);
        held.tenure = None;
        held.record.until = None;
        self.file.write(&held.record).ok();
        LeaseError::Lost
    }

    /// Swaps to the next note. Returns `Ok(false)` if an earlier swap of ours turned out to have succeeded, so that the caller tries again.
    fn swap_note(&self, held: &mut Held, note: &LeaseNote) -> Result<bool, LeaseError> {
        let began = since_boot();
        let Some(old) = held.tenure.as_ref().and_then(|tenure| parse_id(&tenure.id)) else {
            return Err(self.record_loss(held));
        };
        let new = self.make_note(note)?;
        self.record_pending_note(held, new)?;
        let is_time_to_tidy = note.renewal.is_multiple_of(TIDY_EVERY);
        let swapped = if is_time_to_tidy {
            self.reference.swap_by_push(Some(old), new, self.bound())
        } else {
            self.reference.swap(Some(old), new, self.bound())
        };
        match swapped {
            Ok(true) => {
                self.record_swap(held, note.clone(), new, began);
                Ok(true)
            }
            Ok(false) => self.resolve_failed_swap(held).map(|()| false),
            Err(error) => Err(self.record_doubt(held, new, error.into())),
        }
    }

    /// Records a swap with an unknown end.
    fn record_doubt(&self, held: &mut Held, new: Oid, error: LeaseError) -> LeaseError {
        held.record.trouble = Some(error.to_string());
        let Some(tenure) = &mut held.tenure else { return LeaseError::Lost };
        tenure.record_doubt(new.to_string());
        if tenure.pending.len() > MAX_PENDING { self.record_loss(held) } else { error }
    }

    /// Resolves a failed swap. Returns an error unless the swap was ours.
    fn resolve_failed_swap(&self, held: &mut Held) -> Result<(), LeaseError> {
        let there = self.reference.read_value(self.bound())?.map(|value| value.id.to_string());
        let Some(tenure) = &mut held.tenure else { return Err(LeaseError::Lost) };
        match tenure.judge_failed_swap(there.as_deref()) {
            SwapFate::Ours => Ok(()),
            SwapFate::Unchanged => Err(LeaseError::Remote(RemoteError::Locked)),
            SwapFate::Lost => Err(self.record_loss(held)),
        }
    }

    /// Builds the next note while the term runs.
    fn next(&self, held: &mut Held, handled: &[(String, String)]) -> Result<LeaseNote, LeaseError> {
        let Some(tenure) = held.tenure.as_ref().filter(|tenure| tenure.is_running(since_boot())) else {
            return Err(self.record_loss(held));
        };
        Ok(tenure.next(generate_nonce()?, handled.to_vec()))
    }
}

impl Lease for RemoteLease {
    fn acquire(&self, now: DateTime<Utc>) -> Result<Acquired, LeaseError> {
        let mut held = self.lock_state();
        held.record = self.file.read().with_machine_name()?;
        let seen = match self.read_shared_lease(ASK_BOUND) {
            Ok(seen) => seen,
            Err(error) => {
                held.record.trouble = Some(error.to_string());
                self.file.write(&held.record)?;
                return Err(error);
            }
        };
        held.record.trouble = None;
        let (record, at) = (&held.record, since_boot());
        let present = BootTime { boot: &self.boot, at };
        // A note of this machine from before a reboot can't be told from a copied machine's.
        let (old, fence) =
            match decide_step(&seen, &record.mine, record.watch.as_ref(), record.fence, present, self.term) {
                LeaseStep::Take { old, fence } => (old, fence),
                LeaseStep::Foreign => return Err(LeaseError::Foreign { reference: self.reference.name().to_owned() }),
                LeaseStep::Wait { watch, left } => {
                    held.record.watch = watch;
                    if let SeenLease::Note { note, .. } = &seen {
                        held.record.fence = held.record.fence.max(note.fence);
                        held.record.seen = Some(LastSeenLease::for_foreign_lease(note, now));
                    }
                    self.file.write(&held.record)?;
                    return Ok(Acquired::Others {
                        holder: held.record.seen.clone().filter(|seen| !seen.is_ours),
                        left,
                    });
                }
            };
        let handled = match seen {
            SeenLease::Note { note, .. } => note.handled,
            _ => Vec::new(),
        };
        let note = LeaseNote {
            machine: held.record.machine.clone(),
            name: self.name.clone(),
            fence,
            term_ms: to_millis(self.term),
            is_held: true,
            renewal: 0,
            since: format_rfc3339(now),
            nonce: generate_nonce()?,
            // The keys stay until this holder adds its own.
            handled: handled.clone(),
        };
        let began = since_boot();
        let new = self.make_note(&note)?;
        held.tenure = None;
        held.since = now;
        // The note of a killed process stays known, in case this swap fails.
        let mut mine = std::mem::take(&mut held.record.mine);
        mine.push(new.to_string());
        held.record.mine = mine.split_off(mine.len().saturating_sub(MAX_PENDING));
        self.file.write(&held.record)?;
        if self.reference.swap(old.as_deref().and_then(parse_id), new, ASK_BOUND)? {
            self.record_swap(&mut held, note, new, began);
            return Ok(Acquired::Ours { handled });
        }
        // The faster machine holds the lease for a term.
        Ok(Acquired::Others { holder: None, left: self.term })
    }

    fn renew(&self, handled: Vec<(String, String)>) -> Result<(), LeaseError> {
        let mut held = self.lock_state();
        for _ in 0..RENEW_TRIES {
            let note = self.next(&mut held, &handled)?;
            if self.swap_note(&mut held, &note)? {
                return Ok(());
            }
        }
        Err(LeaseError::Remote(RemoteError::Locked))
    }

    fn release(&self, handled: Vec<(String, String)>) {
        let mut held = self.lock_state();
        for _ in 0..RENEW_TRIES {
            let Ok(note) = self.next(&mut held, &handled) else { return };
            // Ends the term before the swap is visible, because the next holder may then be at work.
            self.until_ms.store(0, Ordering::SeqCst);
            held.record.until = None;
            match self.swap_note(&mut held, &LeaseNote { is_held: false, ..note }) {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(%error, "the lease could not be given back; it expires");
                    break;
                }
            }
        }
        self.record_loss(&mut held);
    }

    fn fence(&self) -> Option<u64> {
        (!self.remaining_term().is_zero()).then(|| self.fence.load(Ordering::SeqCst))
    }

    fn remaining_term(&self) -> Duration {
        Duration::from_millis(self.until_ms.load(Ordering::SeqCst).saturating_sub(to_millis(since_boot())))
    }

    fn push(
        &self,
        send: &mut dyn FnMut(Option<&Beside>) -> Result<Pushed, RemoteError>,
    ) -> Result<Pushed, RemoteError> {
        let mut held = self.lock_state();
        let local = |error: LeaseError| match error {
            LeaseError::Remote(error) => error,
            LeaseError::Lost => RemoteError::LeaseLost,
            other => RemoteError::Local { why: other.to_string() },
        };
        for _ in 0..RENEW_TRIES {
            let began = since_boot();
            let kept = held.tenure.as_ref().map(|tenure| tenure.note.handled.clone()).unwrap_or_default();
            let note = self.next(&mut held, &kept).map_err(local)?;
            let Some(old) = held.tenure.as_ref().and_then(|tenure| parse_id(&tenure.id)) else {
                return Err(RemoteError::LeaseLost);
            };
            let new = self.make_note(&note).map_err(local)?;
            self.record_pending_note(&mut held, new).map_err(local)?;
            match send(Some(&self.reference.plan_swap(old, new))) {
                Ok(pushed) => {
                    if matches!(pushed, Pushed::To(_)) {
                        self.record_swap(&mut held, note, new, began);
                    }
                    return Ok(pushed);
                }
                Err(RemoteError::LeaseLost) => self.resolve_failed_swap(&mut held).map_err(local)?,
                // These errors occur before anything is sent, or are final answers of the remote.
                Err(
                    error @ (RemoteError::Moved
                    | RemoteError::NoRemote
                    | RemoteError::Rewound { .. }
                    | RemoteError::HoldsSecret { .. }
                    | RemoteError::Local { .. }),
                ) => return Err(error),
                // After any other error the push may have happened.
                Err(error) => {
                    if let LeaseError::Lost = self.record_doubt(&mut held, new, LeaseError::Remote(error.clone())) {
                        return Err(RemoteError::LeaseLost);
                    }
                    return Err(error);
                }
            }
        }
        Err(RemoteError::Locked)
    }
}

fn generate_nonce() -> Result<String, LeaseError> {
    Ok(random::format_hex(&random::generate_bytes::<8>()?))
}

fn parse_id(id: &str) -> Option<Oid> {
    Oid::from_str(id).ok()
}
