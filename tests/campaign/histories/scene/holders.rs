//! The lease's holders: wakes begin, lose the lease, die, and write no more.

use fastrand::Rng;

use reveille_base::{clock::FixedClock, process::Identity};
use reveille_store::{
    Change, Claimed, CycleEnd, CycleState, Entry, FencedStore, MessageOutcome, OutgoingKind, StoreError,
};

use super::{
    super::{
        turns,
        wake::{Wake, text},
    },
    OWNER, Scene,
};

impl Scene {
    /// Begins a wake; the current holder loses the lease.
    pub(super) fn begin_wake(&mut self) -> Result<(), String> {
        let before = self.wake.take();
        if self.home.is_shared() {
            self.come_from_elsewhere(before.is_some())?;
        }
        if let Some(wake) = before {
            self.old.push(wake.fence);
            self.abandon(&wake, &mut Rng::with_seed(0))?;
        }
        self.wake = Some(self.new_wake()?);
        Ok(())
    }

    pub(super) fn new_wake(&mut self) -> Result<Wake, String> {
        self.has_turn = true;
        Wake::begin(self)
    }

    /// Lets the next wake come from another machine. It is refused until the working one has lost its connection, and so its turn.
    fn come_from_elsewhere(&mut self, is_at_work: bool) -> Result<(), String> {
        let mut next = self.home.open()?;
        if is_at_work && self.has_turn {
            match next.take_lease(&Identity::current(), self.now) {
                Err(StoreError::Busy) => self.cut_off()?,
                other => return Err(format!("two machines are at work at once: {other:?}")),
            }
        }
        self.elsewhere = Some(std::mem::replace(&mut self.store, next));
        Ok(())
    }

    /// Cuts off the connections to a shared database. Each owner learns of it at the next call.
    pub(super) fn cut_off(&mut self) -> Result<(), String> {
        self.has_turn = false;
        self.look.cut_off_others()
    }

    pub(super) fn kill_wake(&mut self, random: &mut Rng) -> Result<(), String> {
        let Some(wake) = self.wake.take() else { return Ok(()) };
        self.abandon(&wake, random)?;
        self.cut_off()?;
        self.store = self.home.open()?;
        Ok(())
    }

    /// Ends a wake; the part that it was sending has arrived or not, by chance.
    fn abandon(&mut self, wake: &Wake, random: &mut Rng) -> Result<(), String> {
        let Some(claimed) = wake.sending() else { return Ok(()) };
        self.outside.doubt(claimed);
        if random.bool() {
            self.arrive(claimed, false)?;
        }
        self.forget_sender(claimed)
    }

    /// Makes the part's sender a process that has ended. A shared database can't show that for another machine's process, so half of
    /// the senders there belong to this one.
    pub(super) fn forget_sender(&self, claimed: &Claimed) -> Result<(), String> {
        let me = Identity::current();
        let dead = if self.home.is_shared() && claimed.outgoing_id % 2 == 0 {
            Identity { started: "never".to_owned(), ..me }
        } else {
            Identity { boot_id: "an earlier boot".to_owned(), ..me }
        };
        let dead = serde_json::to_string(&dead).map_err(text)?;
        let sql = format!(
            "UPDATE outgoing_parts SET sender = $1 WHERE outgoing_id = {} AND part = {} AND state = 'attempting'",
            claimed.outgoing_id, claimed.part
        );
        self.look.execute(&sql, &dead)
    }

    /// Ends all processes at once and starts anew.
    pub(super) fn reboot(&mut self, random: &mut Rng) -> Result<(), String> {
        if let Some(wake) = self.wake.take() {
            self.abandon(&wake, random)?;
        }
        self.kill_bot(random)?;
        self.home.crash(&self.look)?;
        self.bot = self.home.open()?;
        self.store = self.home.open()?;
        self.look = self.home.look()?;
        Ok(())
    }

    /// Checks that a wake without its lease can't write.
    pub(super) fn old_holder(&mut self, random: &mut Rng) -> Result<(), String> {
        let Some(fence) = random.choice(&self.old).copied() else { return Ok(()) };
        let now = self.now;
        let clock = FixedClock(now);
        let store = self.elsewhere.as_mut().unwrap_or(&mut self.store);
        let mut store = FencedStore::new(store, fence, &clock);
        let everything: Vec<i64> = self.model.messages.keys().copied().collect();
        let cycles: Vec<String> = self.model.cycles.keys().cloned().collect();
        let cycle = random.choice(&cycles).cloned().unwrap_or_default();
        let done = Change::Done { messages: everything.clone(), outcome: MessageOutcome::Answered };
        let send = Change::Send(turns::outgoing(OWNER, "from one who lost the lease", OutgoingKind::Reply));
        let end = |state| CycleEnd { failed_messages: &everything, ..CycleEnd::new(state) };
        let refused = match random.u32(0..8) {
            0 => store.journal_mut().record_entry(&cycle, &Entry::Asked, &[send, done]),
            1 => store.journal_mut().apply_changes(&cycle, &[send, done]),
            2 => store.cycles_mut().end_cycle(&cycle, &end(CycleState::Done)),
            3 => store.cycles_mut().end_cycle(&cycle, &end(CycleState::Abandoned)),
            4 => store.cycles_mut().resume_cycle(&cycle),
            5 => store.cycles_mut().pause_cycle(&cycle, now, "late"),
            6 => store.outbox_mut().recover_outbox().map(drop),
            _ => {
                store.release_lease().map_err(text)?;
                return Ok(());
            }
        };
        match refused {
            Err(StoreError::LeaseLost { .. }) => Ok(()),
            other => Err(format!("a wake that lost its lease wrote: {other:?}")),
        }
    }
}
