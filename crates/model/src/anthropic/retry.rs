//! How long to wait before asking again: pure, so that the cycle can write each try down and do the waiting itself.

use std::time::Duration;

use crate::ModelError;

/// How often one turn is asked for in a wake, the first try included.
pub const MAX_TRIES: u32 = 5;

/// The longest wait that a server may ask for within a wake. Beyond it the wake ends and a later one goes on.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// The wait after the first failure; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// The longest wait of our own choosing.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The wait before the next try, after `attempt` tries (1 is the first) of which the last ended in `error`. `None`: don't
/// try again in this wake, because trying can't help, the tries are used up, or the server asked for more than
/// [`MAX_RETRY_AFTER`].
///
/// `jitter` is a random number from 0 to 1. A wait of our own is between half and all of the doubled one; one that the
/// server asked for is never shortened, only lengthened by up to a second.
pub fn backoff(error: &ModelError, attempt: u32, jitter: f64) -> Option<Duration> {
    let ModelError::Transient { retry_after, .. } = error else {
        return None;
    };
    if attempt >= MAX_TRIES {
        return None;
    }
    let jitter = if jitter.is_finite() { jitter.clamp(0.0, 1.0) } else { 1.0 };
    let doubled = FIRST_WAIT.saturating_mul(1 << attempt.saturating_sub(1).min(16)).min(LONGEST_WAIT);
    let own = doubled.mul_f64(0.5 + jitter / 2.0);
    match retry_after {
        Some(asked) if *asked > MAX_RETRY_AFTER => None,
        Some(asked) => Some(own.max(*asked + FIRST_WAIT.mul_f64(jitter))),
        None => Some(own),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_base::types::Usage;

    fn transient(retry_after: Option<u64>) -> ModelError {
        ModelError::Transient {
            why: String::new(),
            retry_after: retry_after.map(Duration::from_secs),
            spent: Usage::default(),
        }
    }

    fn waits(jitter: f64) -> Vec<u64> {
        (1..)
            .map_while(|attempt| backoff(&transient(None), attempt, jitter))
            .map(|wait| wait.as_millis() as u64)
            .collect()
    }

    #[test]
    fn waits_double_within_their_jitter_and_end() {
        assert_eq!(waits(1.0), [1000, 2000, 4000, 8000]);
        assert_eq!(waits(0.0), [500, 1000, 2000, 4000]);
        assert_eq!(waits(f64::NAN), waits(1.0));
        assert_eq!(waits(-3.0), waits(0.0));
    }

    #[test]
    fn the_server_is_never_asked_sooner_than_it_said() {
        assert_eq!(backoff(&transient(Some(20)), 1, 0.0), Some(Duration::from_secs(20)));
        assert_eq!(backoff(&transient(Some(20)), 1, 1.0), Some(Duration::from_secs(21)));
        assert_eq!(backoff(&transient(Some(0)), 4, 1.0), Some(Duration::from_secs(8)));
        assert_eq!(backoff(&transient(Some(60)), 1, 0.0), Some(Duration::from_secs(60)));
        assert_eq!(backoff(&transient(Some(61)), 1, 0.0), None);
    }

    #[test]
    fn what_trying_cannot_mend_is_not_tried() {
        assert_eq!(backoff(&ModelError::Account { why: String::new() }, 1, 0.5), None);
        assert_eq!(backoff(&ModelError::Rejected { status: 400, why: String::new() }, 1, 0.5), None);
    }
}
