//! Decides whose bot polls if several machines share a memory: the holder of the bot's lease, so Telegram never sees
//! two.
//!
//! A thread beside the loop keeps the lease. The loop polls during its term and abandons a poll at the end of the term.
//! Results that arrive later are ignored: they are unconfirmed, so the next poller gets them.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;

use reveille_base::{
    clock::{Clock, format_rfc3339, parse_time},
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

/// Prefixes of keys for work done unasked. The next machine on duty treats it as handled.
const HANDED_OVER: [&str; 5] = ["at/", "decay/", "due/", OWN_WORK, REFLECTED];
/// The key for the time of the last contact with the channel. Messages after it are no gap to report.
const HEARD: &str = "heard";
/// Maximum keys to hand over, newest first.
const MAX_KEYS: usize = 300;
/// Maximum bytes of those keys, since the note that carries them is small.
const MAX_KEY_BYTES: usize = 32 << 10;
/// How often to check for the end of a term: timers stand still while the machine sleeps.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Time for the keeper to notice the end of a term before the next check.
const PAUSE: Duration = Duration::from_millis(200);

/// This machine's turn to poll.
#[derive(Clone)]
pub(super) struct PollTurn {
    /// `None` if this machine is alone.
    shared: Option<(Arc<dyn Lease>, watch::Receiver<bool>)>,
}

impl PollTurn {
    /// Starts taking turns. The keeper releases the lease when dropped.
    pub(super) fn begin(config: &Config, redactor: &Redactor) -> Result<(Self, Option<Keeper>), WakeError> {
        let Some(lease) = RemoteLease::from_config(config, LeasePart::Bot) else {
            return Ok((Self { shared: None }, None));
        };
        let (is_ours, turns) = watch::channel(false);
        let clock: Arc<dyn Clock> = Arc::from(config.clock());
        let (store, redactor) = (cycle::workspace::open_database(config)?, redactor.clone());
        let (bot_id, clock_too) = (config.bot_id(), Arc::clone(&clock));
        let handed = HandedKeys { store, bot_id, redactor, clock: clock_too, is_ours };
        let keeper = Keeper::take_turns(Arc::new(lease), config.lease.term, clock, handed);
        Ok((Self { shared: Some((Arc::clone(keeper.lease()), turns)) }, Some(keeper)))
    }

    /// Returns `true` if other machines may poll at other times.
    pub(super) fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Returns `true` if this machine may poll now.
    pub(super) fn is_ours(&self) -> bool {
        self.shared.as_ref().is_none_or(|(lease, _)| !lease.remaining_term().is_zero())
    }

    /// Waits for this machine's turn.
    pub(super) async fn wait_for_turn(&self) {
        let Some((lease, turns)) = &self.shared else { return };
        loop {
            if turns.clone().wait_for(|is_ours| *is_ours).await.is_err() {
                // The keeper of the lease is gone: the bot ends.
                std::future::pending::<()>().await;
            }
            if !lease.remaining_term().is_zero() {
                return;
            }
            // The term is over, and the keeper will notice soon.
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Waits for the end of this machine's turn. Waits for ever if it is alone.
    pub(super) async fn wait_for_end(&self) {
        let Some((lease, _)) = &self.shared else { return std::future::pending().await };
        loop {
            let left = lease.remaining_term();
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(LOOK_EVERY)).await;
        }
    }
}

/// The keys passed from one machine on duty to the next.
struct HandedKeys {
    store: Store,
    bot_id: Option<i64>,
    redactor: Redactor,
    clock: Arc<dyn Clock>,
    is_ours: watch::Sender<bool>,
}

impl Handed for HandedKeys {
    fn to_hand_over(&mut self) -> Vec<(String, String)> {
        let keys = self.store.maintenance().list_newest_handled_keys(&HANDED_OVER, MAX_KEYS).unwrap_or_else(|error| {
            tracing::warn!(%error, "what was handled couldn't be read for the next machine");
            Vec::new()
        });
        let mut bytes = 0;
        let fits = |(key, value): &(String, String)| {
            bytes += key.len() + value.len();
            bytes <= MAX_KEY_BYTES
        };
        // A task's title may contain anything, and a push can't be taken back.
        let is_secret = |(key, _): &(String, String)| self.redactor.contains_secret(key);
        let heard = self.bot_id.and_then(|bot_id| self.store.inbox().find_last_poll_time(bot_id).ok().flatten());
        let heard = heard.map(|at| (HEARD.to_owned(), format_rfc3339(at)));
        heard.into_iter().chain(keys.into_iter().filter(|key| !is_secret(key))).take_while(fits).collect()
    }

    fn take_over(&mut self, handed: Vec<(String, String)>) {
        let heard = handed.iter().find(|(key, _)| key == HEARD).and_then(|(_, at)| parse_time(at));
        let heard = heard.map(|at| at.min(self.clock.now()));
        let noted =
            self.bot_id.zip(heard).map_or(Ok(()), |(bot_id, at)| self.store.inbox_mut().heard_elsewhere(bot_id, at));
        let is_ours = |(key, _): &(String, String)| HANDED_OVER.iter().any(|prefix| key.starts_with(prefix));
        let handled: Vec<_> = handed.into_iter().filter(is_ours).take(MAX_KEYS).collect();
        if let Err(error) =
            noted.and_then(|()| self.store.maintenance_mut().take_over_handled_keys(&handled, self.clock.now()))
        {
            tracing::warn!(%error, "what the machine before has handled couldn't be written down");
        }
    }

    fn on_gain(&mut self) {
        self.is_ours.send_replace(true);
    }

    fn on_loss(&mut self) {
        self.is_ours.send_replace(false);
    }
}
