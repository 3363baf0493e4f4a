//! Reacts to failures of Telegram or the store: how long to wait, and what to report once per series of failures.
//!
//! Retries never end, since only a person would notice a bot that gave up.

use std::{collections::BTreeSet, time::Duration};

use reveille_channels::telegram::TelegramError;
use reveille_store::StoreError;

/// The wait after the first failure; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait, unless Telegram asks for a longer one.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// The longest wait for a rejected token: only a person can mend that.
const LONGEST_WAIT_FOR_TOKEN: Duration = Duration::from_secs(600);

/// Failures in a row before the owner hears of them in the chat. Shorter trouble mends itself.
const TOLD_AFTER: u32 = 3;

/// A series of failures, from the first to the next success.
#[derive(Debug, Default)]
pub(super) struct FailureStretch {
    failures: u32,
    explained: BTreeSet<Kind>,
}

/// A kind of failure, explained once per series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Network,
    TooMany,
    Conflict,
    Token,
    Refused,
    Store,
}

/// The reaction to a failure.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Advice {
    /// Minimum time before the next attempt.
    pub(super) wait: Duration,
    /// Text to report, the first time.
    pub(super) say: Option<String>,
}

impl FailureStretch {
    /// Handles a failed call to Telegram. `jitter` is random, from 0 to 1, so that many bots don't retry at once.
    pub(super) fn with_telegram(&mut self, error: &TelegramError, jitter: f64) -> Advice {
        let (kind, at_least) = match error {
            TelegramError::RetryAfter(after) => (Kind::TooMany, *after),
            TelegramError::Conflict(_) => (Kind::Conflict, Duration::ZERO),
            TelegramError::NotSent { .. } | TelegramError::Ambiguous { .. } => (Kind::Network, Duration::ZERO),
            TelegramError::Unauthorized(_) => {
                let text = format!(
                    "{error}. It worked before, so I'll keep trying, at least every {} min. Once you've set a new \
                     one, restart the bot. Wakes continue in the meantime",
                    LONGEST_WAIT_FOR_TOKEN.as_secs() / 60
                );
                return self.record_failure(Kind::Token, text, Duration::ZERO, jitter);
            }
            TelegramError::MigratedTo(_) | TelegramError::ChatGone(_) | TelegramError::Rejected { .. } => {
                (Kind::Refused, Duration::ZERO)
            }
        };
        let text = format!("{error}. I'll keep trying to fetch messages; Telegram keeps them for a day");
        self.record_failure(kind, text, at_least, jitter)
    }

    /// Handles a batch that couldn't be stored. It is unconfirmed, so Telegram sends it again.
    pub(super) fn with_store(&mut self, error: &StoreError, jitter: f64) -> Advice {
        let text =
            format!("I couldn't store new messages: {error}. Telegram keeps them for a day, and I'll keep trying");
        self.record_failure(Kind::Store, text, Duration::ZERO, jitter)
    }

    /// Handles a database that couldn't be opened.
    pub(super) fn with_opening(&mut self, error: &StoreError, jitter: f64) -> Advice {
        let text =
            format!("I can't open my database: {error}. Telegram keeps messages for a day, and I'll keep trying");
        self.record_failure(Kind::Store, text, Duration::ZERO, jitter)
    }

    /// Returns the message that tells the owner that the database can't be used, once per series. It is sent without going
    /// through the database.
    pub(super) fn for_chat(&self, error: &StoreError) -> Option<String> {
        (self.failures == TOLD_AFTER).then(|| {
            format!(
                "I can't use my database right now ({error}), so I can't answer. Telegram keeps what you send for a day; I'll read it \
                 as soon as I can."
            )
        })
    }

    /// Returns `true` until this series has reported that another bot fetches the messages.
    pub(super) fn is_rival_news(&self) -> bool {
        !self.explained.contains(&Kind::Conflict)
    }

    /// Ends the series. Returns `true` if it had been reported.
    pub(super) fn end(&mut self) -> bool {
        !std::mem::take(self).explained.is_empty()
    }

    fn record_failure(&mut self, kind: Kind, text: String, at_least: Duration, jitter: f64) -> Advice {
        let longest = if kind == Kind::Token { LONGEST_WAIT_FOR_TOKEN } else { LONGEST_WAIT };
        let wait = (FIRST_WAIT * (1 << self.failures.min(16))).min(longest);
        self.failures = self.failures.saturating_add(1);
        Advice {
            wait: wait.mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0).max(at_least),
            say: self.explained.insert(kind).then_some(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn down() -> TelegramError {
        TelegramError::NotSent { why: "no route".to_owned() }
    }

    #[test]
    fn waits_double_up_to_a_minute_and_are_reported_once() {
        let mut trouble = FailureStretch::default();
        let advices: Vec<Advice> = (0..9).map(|_| trouble.with_telegram(&down(), 1.0)).collect();
        let waits: Vec<u64> = advices.iter().map(|advice| advice.wait.as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(advices.iter().filter(|advice| advice.say.is_some()).count(), 1);
        assert!(trouble.end() && !trouble.end());
        assert!(trouble.with_telegram(&down(), 0.0).say.is_some());
    }

    #[test]
    fn jitter_at_most_halves_a_wait() {
        for jitter in [-1.0, 0.0, 0.5, 1.0, 7.0] {
            let wait = FailureStretch::default().with_telegram(&down(), jitter).wait;
            assert!((FIRST_WAIT / 2..=FIRST_WAIT).contains(&wait), "{wait:?}");
        }
    }

    #[test]
    fn the_wait_that_telegram_asks_for_is_kept_in_full() {
        let hour = Duration::from_secs(3600);
        let advice = FailureStretch::default().with_telegram(&TelegramError::RetryAfter(hour), 0.0);
        assert_eq!(advice.wait, hour);
    }

    #[test]
    fn a_refused_token_is_retried_for_ever_at_growing_intervals() {
        let mut trouble = FailureStretch::default();
        let refused = TelegramError::Unauthorized("Unauthorized".to_owned());
        let advices: Vec<Advice> = (0..14).map(|_| trouble.with_telegram(&refused, 1.0)).collect();
        assert_eq!(advices[13].wait, LONGEST_WAIT_FOR_TOKEN);
        assert!(advices[0].say.as_ref().unwrap().contains("restart the bot"));
        assert!(advices[1..].iter().all(|advice| advice.say.is_none()));
        // A network failure is retried sooner again.
        assert_eq!(trouble.with_telegram(&down(), 1.0).wait, LONGEST_WAIT);
    }

    #[test]
    fn each_kind_of_failure_is_reported_once() {
        let mut trouble = FailureStretch::default();
        let conflict = TelegramError::Conflict("terminated by other getUpdates request".to_owned());
        let said: Vec<bool> = [&down(), &conflict, &down(), &conflict]
            .iter()
            .map(|error| trouble.with_telegram(error, 1.0).say.is_some())
            .collect();
        assert_eq!(said, [true, true, false, false]);
        assert!(trouble.with_store(&StoreError::Full, 1.0).say.unwrap().contains("full"));
        let mut trouble = FailureStretch::default();
        let reported: Vec<bool> = (0..6)
            .map(|_| {
                assert!(trouble.with_store(&StoreError::Busy, 1.0).wait > Duration::ZERO);
                trouble.for_chat(&StoreError::Busy).is_some_and(|text| text.contains("Telegram keeps"))
            })
            .collect();
        assert_eq!(reported, [false, false, true, false, false, false]);
    }
}
