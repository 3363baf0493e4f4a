//! Whose bot polls, where several machines share one memory: the one with the bot's lease, so that Telegram never sees
//! two.
//!
//! Beside the loop a thread keeps the lease. The loop polls while its term runs, leaves a poll when it ends, and
//! doesn't look at what a poll brought that came back later: unconfirmed, it is the next poller's.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;

use reveille_base::{
    clock::{Clock, parse_time, rfc3339},
    redact::Redactor,
};
use reveille_config::Config;
use reveille_cycle as cycle;
use reveille_cycle::{
    context::WakeError,
    decide::situation::OWN_WORK,
    lease::{Handed, Keeper, Lease, LeasePart, RemoteLease},
};
use reveille_store::{REFLECTED, Store};

/// What was done by itself, as far as it is a reason once. The next machine on duty takes it for handled.
const HANDED_OVER: [&str; 5] = ["at/", "decay/", "due/", OWN_WORK, REFLECTED];
/// Under this key stands when the channel was last heard: what comes after is no gap, and nobody is told of one.
const HEARD: &str = "heard";
/// Keys that are handed over at most, the newest.
const MAX_KEYS: usize = 300;
/// Their bytes at most: the note that carries them is small.
const MAX_KEY_BYTES: usize = 32 << 10;
/// How often it is looked whether a term is over: a timer stands still while the machine sleeps.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How long the keeper has to see that a term is over, before it is looked again.
const PAUSE: Duration = Duration::from_millis(200);

/// Whether it is this machine's turn to poll.
#[derive(Clone)]
pub(super) struct PollTurn {
    /// None: this machine is alone.
    shared: Option<(Arc<dyn Lease>, watch::Receiver<bool>)>,
}

impl PollTurn {
    /// Begins to take turns. The keeper gives the lease back when it goes.
    pub(super) fn begin(config: &Config, redactor: &Redactor) -> Result<(Self, Option<Keeper>), WakeError> {
        let Some(lease) = RemoteLease::of(config, LeasePart::Bot) else { return Ok((Self { shared: None }, None)) };
        let (is_ours, turns) = watch::channel(false);
        let clock: Arc<dyn Clock> = Arc::from(config.clock());
        let (store, redactor) = (cycle::workspace::open(config)?, redactor.clone());
        let (bot_id, clock_too) = (config.bot_id(), Arc::clone(&clock));
        let handed = HandedKeys { store, bot_id, redactor, clock: clock_too, is_ours };
        let keeper = Keeper::take_turns(Arc::new(lease), config.lease.term, clock, handed);
        Ok((Self { shared: Some((Arc::clone(keeper.lease()), turns)) }, Some(keeper)))
    }

    /// Whether other machines may poll at other times.
    pub(super) fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Whether it is ours now.
    pub(super) fn is_ours(&self) -> bool {
        self.shared.as_ref().is_none_or(|(lease, _)| !lease.left().is_zero())
    }

    /// Waits until it is ours.
    pub(super) async fn comes(&self) {
        let Some((lease, turns)) = &self.shared else { return };
        loop {
            if turns.clone().wait_for(|is_ours| *is_ours).await.is_err() {
                // Nobody keeps the lease any more: the bot ends.
                std::future::pending::<()>().await;
            }
            if !lease.left().is_zero() {
                return;
            }
            // Its term is over, and the keeper is about to see it.
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Waits until it isn't ours any more; for ever where this machine is alone.
    pub(super) async fn over(&self) {
        let Some((lease, _)) = &self.shared else { return std::future::pending().await };
        loop {
            let left = lease.left();
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(LOOK_EVERY)).await;
        }
    }
}

/// The keys that go from one machine on duty to the next.
struct HandedKeys {
    store: Store,
    bot_id: Option<i64>,
    redactor: Redactor,
    clock: Arc<dyn Clock>,
    is_ours: watch::Sender<bool>,
}

impl Handed for HandedKeys {
    fn to_hand_over(&mut self) -> Vec<(String, String)> {
        let keys = self.store.newest_handled(&HANDED_OVER, MAX_KEYS).unwrap_or_else(|error| {
            tracing::warn!(%error, "what was handled couldn't be read for the next machine");
            Vec::new()
        });
        let mut bytes = 0;
        let fits = |(key, value): &(String, String)| {
            bytes += key.len() + value.len();
            bytes <= MAX_KEY_BYTES
        };
        // A task's title may be anything, and what is pushed can't be taken back.
        let is_secret = |(key, _): &(String, String)| self.redactor.contains_secret(key);
        let heard = self.bot_id.and_then(|bot_id| self.store.last_heard(bot_id).ok().flatten());
        let heard = heard.map(|at| (HEARD.to_owned(), rfc3339(at)));
        heard.into_iter().chain(keys.into_iter().filter(|key| !is_secret(key))).take_while(fits).collect()
    }

    fn take_over(&mut self, handed: Vec<(String, String)>) {
        let heard = handed.iter().find(|(key, _)| key == HEARD).and_then(|(_, at)| parse_time(at));
        let heard = heard.map(|at| at.min(self.clock.now()));
        let noted = self.bot_id.zip(heard).map_or(Ok(()), |(bot_id, at)| self.store.heard_elsewhere(bot_id, at));
        let is_ours = |(key, _): &(String, String)| HANDED_OVER.iter().any(|prefix| key.starts_with(prefix));
        let handled: Vec<_> = handed.into_iter().filter(is_ours).take(MAX_KEYS).collect();
        if let Err(error) = noted.and_then(|()| self.store.take_over_handled(&handled, self.clock.now())) {
            tracing::warn!(%error, "what the machine before has handled couldn't be written down");
        }
    }

    fn changed(&mut self, is_held: bool) {
        self.is_ours.send_replace(is_held);
    }
}
