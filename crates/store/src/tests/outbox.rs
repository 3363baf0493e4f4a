use reveille_base::types::ChatRef;

use super::*;
use crate::outbox::attempts::LONGEST_ATTEMPT;

/// A text of several parts.
fn long() -> String {
    (0..3).map(|_| format!("{}\n\n", "word ".repeat(700))).collect()
}

fn claim(world: &mut World, seconds: i64) -> Option<Claimed> {
    world.store.outbox_mut().claim_part(Pick::default(), &me(), at(seconds)).unwrap()
}

fn only(messages: &[i64]) -> Pick<'_> {
    Pick { only: Some(messages), ..Pick::default() }
}

fn later(seconds: i64) -> PartOutcome {
    PartOutcome::Later { not_before: at(seconds), why: "Too Many Requests".to_owned() }
}

#[test]
fn messages_of_a_chat_leave_in_order_and_their_parts_too() {
    let mut world = World::new();
    world.plan(ChatRef::from_telegram(7), &long());
    world.plan(ChatRef::from_telegram(7), "after it");
    world.plan(ChatRef::from_telegram(8), "elsewhere");
    let sent = world.deliver_all(0);
    assert!(sent.len() >= 5, "{}", sent.len());
    assert_eq!(sent[sent.len() - 2..], ["after it", "elsewhere"]);
    assert_eq!(world.value::<i64>("SELECT count(*) FROM outgoing_messages WHERE sent_at IS NULL"), 0);
    assert_eq!(world.store.outbox().list_undelivered_messages().unwrap(), []);
}

#[test]
fn a_message_is_sent_when_its_last_part_is_and_only_the_first_part_replies() {
    let mut world = World::new();
    let message =
        NewOutgoing { reply_to: Some(99), thread_id: Some(3), ..outgoing(ChatRef::from_telegram(7), &long()) };
    world.store.outbox_mut().plan_message(&message, at(0)).unwrap();
    let first = claim(&mut world, 0).unwrap();
    assert_eq!((first.part, first.reply_to, first.thread_id), (0, Some(99), Some(3)));
    assert_eq!(claim(&mut world, 0), None, "the second part waits for the first");
    world.store.outbox_mut().settle_part(&first, &PartOutcome::Sent { id: 1, date: None }, at(0)).unwrap();
    let second = claim(&mut world, 0).unwrap();
    assert_eq!((second.part, second.reply_to, second.thread_id), (1, None, Some(3)));
    assert_eq!(world.value::<Option<String>>("SELECT sent_at FROM outgoing_messages"), None);
    world.store.outbox_mut().settle_part(&second, &PartOutcome::Sent { id: 2, date: None }, at(0)).unwrap();
    world.deliver_all(0);
    assert!(world.value::<Option<String>>("SELECT sent_at FROM outgoing_messages").is_some());
}

#[test]
fn a_wait_that_was_written_by_a_wrong_clock_is_not_sat_out() {
    let mut world = World::new();
    world.plan(ChatRef::from_telegram(7), "one");
    let one = claim(&mut world, 0).unwrap();
    let a_year_s = 365 * 86_400;
    world.store.outbox_mut().settle_part(&one, &later(a_year_s), at(a_year_s - 30)).unwrap();
    assert!(world.store.outbox().has_deliverable(at(0)).unwrap());
    assert_eq!(world.deliver_all(0), ["one"]);
}

#[test]
fn a_wait_that_was_asked_for_holds_the_chat_back_and_no_other() {
    let mut world = World::new();
    world.plan(ChatRef::from_telegram(7), "one");
    world.plan(ChatRef::from_telegram(7), "two");
    world.plan(ChatRef::from_telegram(8), "other chat");
    let one = claim(&mut world, 0).unwrap();
    world.store.outbox_mut().settle_part(&one, &later(30), at(0)).unwrap();
    assert_eq!(world.deliver_all(29), ["other chat"]);
    assert!(!world.store.outbox().has_deliverable(at(29)).unwrap(), "what is held back is no work yet");
    assert_eq!(world.store.outbox().next_delivery().unwrap(), Some(at(30)));
    assert!(world.store.outbox().has_deliverable(at(30)).unwrap());
    assert_eq!(world.deliver_all(30), ["one", "two"]);
}

#[test]
fn an_attempt_of_a_dead_sender_is_repeated_once_and_marked() {
    let mut world = World::new();
    let id = world.plan(ChatRef::from_telegram(7), "did it arrive?");
    let claimed = world.store.outbox_mut().claim_part(Pick::default(), &dead(), at(0)).unwrap().unwrap();
    assert!(!claimed.is_repeat);
    assert_eq!(claim(&mut world, 1), None, "nobody else may send it meanwhile");
    assert!(world.store.outbox().has_doubtful(at(1)).unwrap(), "there is something to settle");
    assert_eq!(world.held(at(1)).outbox_mut().recover_outbox().unwrap(), 1);
    let repeat = world.store.outbox_mut().claim_part(Pick::default(), &dead(), at(2)).unwrap().unwrap();
    assert_eq!((repeat.outgoing_id, repeat.is_repeat, repeat.attempts), (id, true, 2));
    assert_eq!(world.held(at(3)).outbox_mut().recover_outbox().unwrap(), 0);
    assert_eq!(claim(&mut world, 4), None);
    assert!(!world.store.outbox().has_deliverable(at(4)).unwrap());
    let left = world.store.outbox().list_undelivered_messages().unwrap();
    assert_eq!((left[0].state, left[0].attempts), (PartState::Unknown, 2));
    assert_eq!(left[0].error.as_deref(), Some("the sender died while sending"));
    world.plan(ChatRef::from_telegram(7), "life goes on");
    assert_eq!(world.deliver_all(5), ["life goes on"]);
}

#[test]
fn a_living_senders_attempt_is_left_to_it() {
    let mut world = World::new();
    world.plan(ChatRef::from_telegram(7), "under way");
    let claimed = claim(&mut world, 0).unwrap();
    assert_eq!(world.held(at(1)).outbox_mut().recover_outbox().unwrap(), 0);
    assert_eq!(claim(&mut world, 1), None);
    world.store.outbox_mut().settle_part(&claimed, &PartOutcome::Sent { id: 5, date: None }, at(2)).unwrap();
    assert_eq!(world.store.outbox().list_undelivered_messages().unwrap(), []);
}

/// The bot lives on, but the disk was full when it wanted to write down what became of its send.
#[test]
fn a_living_sender_that_never_says_what_became_of_its_send_holds_no_chat_back_for_ever() {
    let longest = LONGEST_ATTEMPT.num_seconds();
    // The last is of a clock that was set back since.
    for (seconds, is_lost) in [(longest, false), (longest + 1, true), (-longest, false), (-longest - 1, true)] {
        let mut world = World::new();
        world.plan(ChatRef::from_telegram(7), "did it arrive?");
        world.plan(ChatRef::from_telegram(7), "after it");
        let silent = claim(&mut world, 0).unwrap();
        assert_eq!(claim(&mut world, seconds), None, "it is not simply overtaken");
        let is_under_way = world.store.unsent_parts(at(seconds)).unwrap()[0].is_under_way;
        assert_eq!(is_under_way, !is_lost, "after {seconds} s");
        assert_eq!(world.store.outbox().has_doubtful(at(seconds)).unwrap(), is_lost, "after {seconds} s");
        let repeats = world.held(at(seconds)).outbox_mut().recover_outbox().unwrap();
        assert_eq!(repeats, usize::from(is_lost), "after {seconds} s");
        if is_lost {
            let repeat = claim(&mut world, seconds).unwrap();
            assert!(repeat.is_repeat);
            world.store.outbox_mut().settle_part(&silent, &later(seconds), at(seconds)).unwrap();
            assert_eq!(claim(&mut world, seconds), None, "a report that comes after all ends no other's attempt");
            world
                .store
                .outbox_mut()
                .settle_part(&repeat, &PartOutcome::Sent { id: 2, date: None }, at(seconds))
                .unwrap();
            assert_eq!(world.deliver_all(seconds), ["after it"]);
        }
    }
}

#[test]
fn what_is_in_doubt_holds_its_chat_until_it_is_settled() {
    let mut world = World::new();
    world.plan(ChatRef::from_telegram(7), "first");
    world.plan(ChatRef::from_telegram(7), "second");
    let first = claim(&mut world, 0).unwrap();
    let doubt = PartOutcome::Unknown("connection reset".to_owned());
    world.store.outbox_mut().settle_part(&first, &doubt, at(0)).unwrap();
    assert_eq!(claim(&mut world, 1), None, "the second would overtake the repeat of the first");
    world.held(at(2)).outbox_mut().recover_outbox().unwrap();
    let repeat = claim(&mut world, 2).unwrap();
    assert!(repeat.is_repeat);
    // A repeat that surely wasn't sent is still a repeat when it is.
    world.store.outbox_mut().settle_part(&repeat, &later(3), at(2)).unwrap();
    let repeat = claim(&mut world, 3).unwrap();
    assert!(repeat.is_repeat);
    world.store.outbox_mut().settle_part(&repeat, &PartOutcome::Unknown("again".to_owned()), at(3)).unwrap();
    assert_eq!(world.deliver_all(4), ["second"]);
}

#[test]
fn a_sender_that_reports_late_is_heard_only_if_the_part_arrived() {
    let mut world = World::new();
    world.plan(ChatRef::from_telegram(7), "slow");
    let slow = world.store.outbox_mut().claim_part(Pick::default(), &dead(), at(0)).unwrap().unwrap();
    world.held(at(1)).outbox_mut().recover_outbox().unwrap();
    let repeat = claim(&mut world, 2).unwrap();
    for outcome in [later(0), PartOutcome::Failed("no".into()), PartOutcome::Unknown("?".into())] {
        world.store.outbox_mut().settle_part(&slow, &outcome, at(3)).unwrap();
        assert_eq!(claim(&mut world, 3), None, "the repeat is still under way");
    }
    world.store.outbox_mut().settle_part(&slow, &PartOutcome::Sent { id: 11, date: None }, at(4)).unwrap();
    world.store.outbox_mut().settle_part(&repeat, &later(0), at(5)).unwrap();
    assert_eq!(claim(&mut world, 6), None);
    assert_eq!(world.store.outbox().list_undelivered_messages().unwrap(), []);
}

#[test]
fn nothing_of_a_cycle_leaves_before_its_end_but_the_notice_that_it_waits() {
    let mut world = World::new();
    world.begin("c1");
    let notice = NewOutgoing { kind: OutgoingKind::Notice, ..outgoing(ChatRef::from_telegram(7), "I wait") };
    let sends = [
        Change::Send(outgoing(ChatRef::from_telegram(7), "reply")),
        Change::Send(outgoing(ChatRef::TERMINAL, "on the console")),
    ];
    world.held(at(0)).journal_mut().apply_changes("c1", &sends).unwrap();
    assert!(!world.store.outbox().has_deliverable(at(1)).unwrap());
    assert_eq!(world.deliver_all(1), [""; 0]);
    assert_eq!(world.store.terminals().console_unshown(None).unwrap(), []);

    world.held(at(0)).cycles_mut().pause_cycle("c1", at(60), "no network").unwrap();
    assert_eq!(world.deliver_all(2), [""; 0]);
    world
        .held_by(world.fence, at(2))
        .journal_mut()
        .apply_changes("c1", &[Change::Send(NewOutgoing { chat: ChatRef::from_telegram(8), ..notice })])
        .unwrap();
    assert_eq!(world.deliver_all(3), ["I wait"]);

    world.end("c1", CycleState::Done, &[]);
    assert_eq!(world.deliver_all(4), ["reply"]);
    assert_eq!(world.store.terminals().console_unshown(None).unwrap().len(), 1);
    assert_eq!(world.value::<i64>("SELECT count(*) FROM outgoing_messages WHERE cycle_id = 'c1'"), 3);
}

#[test]
fn a_key_is_told_once() {
    let mut world = World::new();
    let told = NewOutgoing {
        key: Some("tell/decay/7".to_owned()),
        kind: OutgoingKind::Tell,
        ..outgoing(ChatRef::from_telegram(7), "still on it?")
    };
    assert!(world.store.outbox_mut().plan_message(&told, at(0)).unwrap().is_some());
    assert_eq!(world.store.outbox_mut().plan_message(&told, at(1)).unwrap(), None);
    world.plan(ChatRef::from_telegram(7), "no key");
    world.plan(ChatRef::from_telegram(7), "no key");
    assert_eq!(world.value::<i64>("SELECT count(*) FROM outgoing_messages"), 3);
    assert_eq!(world.store.outbox().told_keys().unwrap().into_iter().collect::<Vec<_>>(), ["tell/decay/7"]);
    assert_eq!(world.store.outbox().tells_since(ChatRef::from_telegram(7), at(0)).unwrap(), 1);
    assert_eq!(world.store.outbox().tells_since(ChatRef::from_telegram(7), at(1)).unwrap(), 0);
}

#[test]
fn console_rows_are_shown_and_never_claimed() {
    let mut world = World::new();
    let id = world.plan(ChatRef::TERMINAL, "hello");
    assert_eq!(claim(&mut world, 0), None);
    assert!(!world.store.outbox().has_deliverable(at(0)).unwrap());
    assert_eq!(world.store.terminals().console_unshown(None).unwrap(), [(id, "hello".to_owned())]);
    world.store.terminals_mut().record_shown_text(id, at(1)).unwrap();
    assert_eq!(world.store.terminals().console_unshown(None).unwrap(), []);
    assert_eq!(world.store.outbox().list_undelivered_messages().unwrap(), []);
}

#[test]
fn a_row_written_by_hand_gets_its_parts() {
    let mut world = World::new();
    world.by_hand("INSERT INTO outgoing_messages (chat_id, message_text) VALUES (7, '*by hand*')");
    assert!(world.store.outbox().has_deliverable(at(0)).unwrap());
    assert_eq!(world.store.outbox().list_undelivered_messages().unwrap()[0].state, PartState::Planned);
    assert_eq!(world.deliver_all(0), ["by hand"]);
}

#[test]
fn a_message_without_visible_text_fails_instead_of_waiting_for_ever() {
    let mut world = World::new();
    world.plan(ChatRef::from_telegram(7), "  \n ");
    assert_eq!(world.deliver_all(0), [""; 0]);
    assert!(!world.store.outbox().has_deliverable(at(0)).unwrap());
    assert_eq!(world.store.outbox().list_undelivered_messages().unwrap()[0].state, PartState::Failed);
}

#[test]
fn a_choice_of_messages_is_sent_without_waiting_for_others() {
    let mut world = World::new();
    world.plan(ChatRef::from_telegram(7), "an answer that waits");
    let command = world.plan(ChatRef::from_telegram(7), "a command's answer");
    let claimed = world.store.outbox_mut().claim_part(only(&[command]), &me(), at(0)).unwrap().unwrap();
    assert_eq!(claimed.outgoing_id, command);
    assert_eq!(world.store.outbox_mut().claim_part(only(&[command]), &me(), at(0)).unwrap(), None);
}

#[test]
fn a_refused_part_fails_for_good_and_the_next_message_leaves() {
    let mut world = World::new();
    world.plan(ChatRef::from_telegram(7), "to one who blocked us");
    world.plan(ChatRef::from_telegram(7), "next");
    let claimed = claim(&mut world, 0).unwrap();
    world.store.outbox_mut().settle_part(&claimed, &PartOutcome::Failed("bot was blocked".into()), at(0)).unwrap();
    assert_eq!(world.held(at(1)).outbox_mut().recover_outbox().unwrap(), 0);
    assert_eq!(world.deliver_all(1), ["next"]);
    assert_eq!(world.store.outbox().list_undelivered_messages().unwrap()[0].error.as_deref(), Some("bot was blocked"));
}

/// `--json` shows what the database holds.
#[test]
fn states_and_kinds_are_written_alike_everywhere() {
    use OutgoingKind::{Approval, Command, Notice, Reminder, Reply, Tell};
    use PartState::{Attempting, Failed, Planned, Sent, Unknown};
    for state in [Planned, Attempting, Sent, Unknown, Failed] {
        assert_eq!(to_json(&state), format!("\"{}\"", state.as_str()));
        assert_eq!(PartState::parse(state.as_str()), state);
    }
    for kind in [Reply, Tell, Reminder, Notice, Approval, Command] {
        assert_eq!(to_json(&kind), format!("\"{}\"", kind.as_str()));
    }
    assert_eq!(NewOutgoing::default().kind, Notice);
}
