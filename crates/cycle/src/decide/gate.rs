//! The messages that wait for files. A message isn't given to a model while one of its files is still loading. Later messages of the same
//! chat and topic wait behind it to keep the order, for at most [`WAIT_BEHIND`]. The message itself is answered once its files are
//! complete. Pure.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};

use reveille_base::clock::is_over;
use reveille_store::Incoming;

/// How long other messages wait behind a message with loading files, counted from its arrival.
pub const WAIT_BEHIND: TimeDelta = TimeDelta::minutes(10);

/// Returns the messages among `queued` (oldest first) that must not be given to a model now.
pub fn list_waiting_for_files(queued: &[Incoming], now: DateTime<Utc>) -> BTreeSet<i64> {
    let mut held_up = BTreeSet::new();
    let mut waiting = BTreeSet::new();
    for message in queued {
        let chat = (message.chat, message.thread_id);
        if message.awaits_files {
            waiting.insert(message.id);
            // If the arrival time is unknown, no message waits behind it.
            if message.received_at.is_some_and(|at| !is_over(at + WAIT_BEHIND, now)) {
                held_up.insert(chat);
            }
        } else if held_up.contains(&chat) {
            waiting.insert(message.id);
        }
    }
    waiting
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_base::clock::parse_time;
    use reveille_base::types::ChatRef;

    fn message(id: i64, chat: ChatRef, minute: i64, awaits_files: bool) -> Incoming {
        Incoming { id, chat, received_at: Some(at(minute)), awaits_files, ..Incoming::default() }
    }

    fn at(minute: i64) -> DateTime<Utc> {
        parse_time("2026-11-21T14:00:00Z").unwrap() + TimeDelta::minutes(minute)
    }

    fn waiting(queued: &[Incoming], minute: i64) -> Vec<i64> {
        list_waiting_for_files(queued, at(minute)).into_iter().collect()
    }

    #[test]
    fn later_messages_of_the_same_chat_and_topic_wait_behind() {
        let topic = Incoming { thread_id: Some(7), ..message(5, ChatRef::from_telegram(1), 2, false) };
        let queued = [
            message(1, ChatRef::from_telegram(1), 0, false),
            message(2, ChatRef::from_telegram(1), 1, true),
            message(3, ChatRef::from_telegram(2), 2, false),
            message(4, ChatRef::from_telegram(1), 2, false),
            topic,
        ];
        assert_eq!(waiting(&queued, 3), [2, 4]);
    }

    #[test]
    fn messages_wait_behind_a_file_only_for_a_while_but_its_own_message_waits_on() {
        let queued = [message(1, ChatRef::from_telegram(1), 0, true), message(2, ChatRef::from_telegram(1), 9, false)];
        assert_eq!(waiting(&queued, 9), [1, 2]);
        assert_eq!(waiting(&queued, 10), [1]);
        let untimed = [
            Incoming { received_at: None, ..message(1, ChatRef::from_telegram(1), 0, true) },
            message(2, ChatRef::from_telegram(1), 9, false),
        ];
        assert_eq!(waiting(&untimed, 9), [1]);
    }

    #[test]
    fn the_wait_behind_a_file_starts_when_its_message_arrives() {
        let queued = [
            message(1, ChatRef::from_telegram(1), 0, true),
            message(2, ChatRef::from_telegram(1), 8, true),
            message(3, ChatRef::from_telegram(1), 9, false),
        ];
        assert_eq!(waiting(&queued, 11), [1, 2, 3]);
        assert_eq!(waiting(&queued, 18), [1, 2]);
        assert_eq!(waiting(&[message(1, ChatRef::from_telegram(1), 0, false)], 0), Vec::<i64>::new());
    }
}
