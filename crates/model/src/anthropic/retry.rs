//! Computes the wait before a retry. Pure, so that the cycle can journal each attempt and wait by itself.

use std::time::Duration;

use crate::ModelError;

/// Maximum attempts at a turn in a wake, the first included.
pub const MAX_TRIES: u32 = 5;

/// Longest wait on a server's request within a wake. Beyond it the wake ends and a later wake resumes.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// The wait after the first failure, doubled after each further failure.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// Longest wait of our own choice.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Returns the wait before the next attempt. `attempt` counts the attempts so far, from 1, and `error` ended the last one. `jitter` is a
/// random number from 0 to 1.
///
/// Our own wait is half to all of the doubled wait. A wait that the server asked for is lengthened by up to a second, never shortened.
/// `None` if a retry in this wake is useless: the error is permanent, the attempts are used up, or the server asked for more than
/// [`MAX_RETRY_AFTER`].
pub fn choose_backoff(error: &ModelError, attempt: u32, jitter: f64) -> Option<Duration> {
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
            .map_while(|attempt| choose_backoff(&transient(None), attempt, jitter))
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
        assert_eq!(choose_backoff(&transient(Some(20)), 1, 0.0), Some(Duration::from_secs(20)));
        assert_eq!(choose_backoff(&transient(Some(20)), 1, 1.0), Some(Duration::from_secs(21)));
        assert_eq!(choose_backoff(&transient(Some(0)), 4, 1.0), Some(Duration::from_secs(8)));
        assert_eq!(choose_backoff(&transient(Some(60)), 1, 0.0), Some(Duration::from_secs(60)));
        assert_eq!(choose_backoff(&transient(Some(61)), 1, 0.0), None);
    }

    #[test]
    fn what_trying_cannot_mend_is_not_tried() {
        assert_eq!(choose_backoff(&ModelError::Account { why: String::new() }, 1, 0.5), None);
        assert_eq!(choose_backoff(&ModelError::Rejected { status: 400, why: String::new() }, 1, 0.5), None);
    }
}
