//! Pairing, completed polls, turns between chats, floods.

use std::collections::BTreeSet;

use reveille_base::types::ChatRef;

use super::*;
use crate::{Batch, CodeState, MAX_WAITING_UNTOLD, MAX_WRONG_CODES, NewIncoming, NewPaired, Undo};

fn person(user_id: i64, hash: &str) -> NewPaired {
    let words = vec![outgoing(ChatRef::from_telegram(user_id), "welcome")];
    NewPaired { user_id, name: "Ana".to_owned(), hash: hash.to_owned(), words }
}

fn batch(pairs: Option<NewPaired>, wrong_codes: u32) -> Batch {
    Batch { bot_id: 1, next_offset: 10, pairs, wrong_codes, ..Batch::default() }
}

fn paired(world: &World) -> Vec<i64> {
    world.store.people().list_paired_people().unwrap().iter().map(|person| person.user_id).collect()
}

#[test]
fn a_code_pairs_once_and_in_its_time() {
    let mut world = World::new();
    let id = world.store.people_mut().offer_code("h1", "bot", at(600), at(0)).unwrap();
    let refused = world.store.inbox_mut().accept_batch(&batch(Some(person(7, "h2")), 0), at(1)).unwrap();
    assert_eq!((refused.paired, paired(&world)), (None, vec![]));
    assert!(refused.answers.is_empty());
    let accepted = world.store.inbox_mut().accept_batch(&batch(Some(person(7, "h1")), 0), at(599)).unwrap();
    assert_eq!((accepted.paired, accepted.answers.len(), paired(&world)), (Some(7), 1, vec![7]));
    assert_eq!(world.store.people().code_state(id, at(599)).unwrap(), CodeState::Used(7));
    world.store.inbox_mut().accept_batch(&batch(Some(person(8, "h1")), 0), at(599)).unwrap();
    assert_eq!(paired(&world), [7]);

    let late = world.store.people_mut().offer_code("h3", "pair", at(600), at(0)).unwrap();
    for now in [at(600), at(-1)] {
        assert_eq!(world.store.people().code_state(late, now).unwrap(), CodeState::Void);
        world.store.inbox_mut().accept_batch(&batch(Some(person(8, "h3")), 0), now).unwrap();
    }
    assert_eq!(paired(&world), [7]);
    assert_eq!(
        [(); 2].map(|()| world.store.people_mut().unpair_person(7, SettingsListing::Unlisted, at(600)).unwrap()),
        [Some(0), None]
    );
    assert!(paired(&world).is_empty());
}

#[test]
fn wrong_codes_void_all_open_ones_and_a_makers_new_code_its_old_one() {
    let mut world = World::new();
    let first = world.store.people_mut().offer_code("h1", "bot", at(600), at(0)).unwrap();
    let other = world.store.people_mut().offer_code("h2", "pair", at(600), at(0)).unwrap();
    let second = world.store.people_mut().offer_code("h3", "bot", at(600), at(0)).unwrap();
    let state = |world: &World, id| world.store.people().code_state(id, at(1)).unwrap();
    assert_eq!([first, other, second].map(|id| state(&world, id)), [CodeState::Void, CodeState::Open, CodeState::Open]);
    let wrong = u32::try_from(MAX_WRONG_CODES).unwrap();
    world.store.inbox_mut().accept_batch(&batch(None, wrong - 1), at(1)).unwrap();
    assert_eq!(world.store.people().open_codes(at(1)).unwrap(), ["h2", "h3"]);
    // The right one comes a guess too late.
    world.store.inbox_mut().accept_batch(&batch(Some(person(7, "h2")), 1), at(1)).unwrap();
    assert_eq!((world.store.people().open_codes(at(1)).unwrap(), paired(&world)), (vec![], vec![]));
}

#[test]
fn unpairing_ends_ones_reminders_and_nobody_elses() {
    let mut world = World::new();
    world.store.people_mut().offer_code("h", "bot", at(600), at(0)).unwrap();
    world.store.inbox_mut().accept_batch(&batch(Some(person(7, "h")), 0), at(1)).unwrap();
    world.by_hand(
        "INSERT INTO reminders (chat_id, text, zone, slot, next_at, created_at) VALUES
             (7, 'mine', 'UTC', '2026-11-22T09:00:00', '2026-11-22T09:00:00.000Z', ''),
             (8, 'another''s', 'UTC', '2026-11-22T09:00:00', '2026-11-22T09:00:00.000Z', '')",
    );
    world.by_hand(
        "INSERT INTO reminders (chat_id, text, zone, slot, next_at, created_at, state, ended_by) VALUES
             (7, 'ended', 'UTC', '2026-11-22T09:00:00', '2026-11-22T09:00:00.000Z', '', 'cancelled', 'c1');
         INSERT INTO undos (id, wake, asked_at, chat_id) VALUES (1, 'c1', '', 8)",
    );
    world.store.people_mut().unpair_person(7, SettingsListing::Unlisted, at(2)).unwrap();
    let undo = Undo { id: 1, wake: "c1".to_owned(), chat: ChatRef::from_telegram(8), asked_at: None };
    let taken = world.held(at(2)).undos_mut().take_back(&undo, "c2", |_| String::new()).unwrap();
    assert_eq!(taken.active_again, [""; 0], "whoever isn't heard isn't reminded either");
    let left: Vec<i64> =
        world.store.reminders().list_reminders().unwrap().iter().map(|reminder| reminder.what.chat.id).collect();
    assert_eq!(left, [8]);
}

#[test]
fn a_gap_is_told_once_and_polls_that_bring_nothing_have_no_offset() {
    let mut world = World::new();
    let day = 24 * 60 * 60;
    let heard = |world: &mut World, seconds: i64| {
        world
            .store
            .inbox_mut()
            .record_poll(1, at(seconds), |from, _| vec![outgoing(ChatRef::from_telegram(7), &from.to_rfc3339())])
            .unwrap()
    };
    assert_eq!(heard(&mut world, 0), [0; 0]);
    assert_eq!(
        (world.store.inbox().next_offset(1).unwrap(), world.store.inbox().find_last_poll_time(1).unwrap()),
        (None, Some(at(0)))
    );
    assert_eq!(heard(&mut world, day), [0; 0]);
    assert_eq!(heard(&mut world, 2 * day + 1).len(), 1);
    assert_eq!(heard(&mut world, 2 * day + 2), [0; 0]);
    assert_eq!(world.value::<String>("SELECT message_text FROM outgoing_messages"), at(day).to_rfc3339());
    // Another bot has its own time and offset.
    assert_eq!(world.store.inbox().find_last_poll_time(2).unwrap(), None);
    world.store.inbox_mut().accept_batch(&batch(None, 0), at(2 * day + 3)).unwrap();
    heard(&mut world, 2 * day + 60);
    assert_eq!(
        (world.store.inbox().next_offset(1).unwrap(), world.store.inbox().next_offset(2).unwrap()),
        (Some(10), None)
    );
}

#[test]
fn the_time_of_a_gap_and_its_notice_are_one_transaction() {
    let mut world = World::new();
    let far = 3 * 24 * 60 * 60;
    let gap = |_, _: &BTreeSet<ChatRef>| vec![outgoing(ChatRef::from_telegram(7), "gap")];
    world.store.inbox_mut().record_poll(1, at(0), gap).unwrap();
    world.refuse("INSERT", "outgoing_parts");
    assert!(world.store.inbox_mut().record_poll(1, at(far), gap).is_err());
    assert_eq!(world.store.inbox().find_last_poll_time(1).unwrap(), Some(at(0)));
    world.refuse_no_more("outgoing_parts");
    assert_eq!(world.store.inbox_mut().record_poll(1, at(far), gap).unwrap().len(), 1);
}

fn say_often(world: &World, chat: ChatRef, n: i64) {
    world.by_hand(&format!(
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {n})
         INSERT INTO incoming_messages (chat_id, message_text) SELECT {chat}, 'no ' || n FROM c"
    ));
}

#[test]
fn a_flood_of_one_chat_hides_no_other_and_chats_take_turns() {
    let mut world = World::new();
    say_often(&world, ChatRef::from_telegram(7), 10_000);
    say_often(&world, ChatRef::from_telegram(8), 3);
    let chats = |world: &World| {
        let mut chats: Vec<(i64, usize)> = Vec::new();
        for message in world.store.inbox().list_queued_messages().unwrap() {
            match chats.last_mut() {
                Some((chat, n)) if *chat == message.chat.id => *n += 1,
                _ => chats.push((message.chat.id, 1)),
            }
        }
        chats
    };
    assert_eq!(chats(&world), [(7, 100), (8, 3)]);
    let first = &world.store.inbox().list_queued_messages().unwrap()[0];
    assert_eq!((first.id, first.text.as_str()), (1, "no 1"));
    for (id, chat, order) in [("c1", 7, [(8, 3), (7, 100)]), ("c2", 8, [(7, 100), (8, 3)])] {
        let cycle = NewCycle { chat: Some(ChatRef::from_telegram(chat)), ..cycle(id) };
        world.held(at(0)).cycles_mut().begin_cycle(&cycle, &[], &[]).unwrap();
        assert_eq!(chats(&world), order);
    }
    // What is kept for another model gives way within its chat, and between chats.
    world.by_hand("UPDATE incoming_messages SET held_for = 'x' WHERE chat_id = 7 AND id <= 9990");
    assert!(world.store.inbox().list_queued_messages().unwrap().iter().any(|message| message.id == 10_000));
}

#[test]
fn a_flood_is_told_once_a_stretch() {
    let mut world = World::new();
    let tell = |world: &mut World| {
        world
            .store
            .outbox_mut()
            .tell_flood(ChatRef::from_telegram(7), at(0), |waiting| {
                outgoing(ChatRef::from_telegram(7), &waiting.to_string())
            })
            .unwrap()
    };
    say_often(&world, ChatRef::from_telegram(7), MAX_WAITING_UNTOLD);
    assert_eq!(tell(&mut world), None);
    say_often(&world, ChatRef::from_telegram(7), 1);
    assert!(tell(&mut world).is_some());
    say_often(&world, ChatRef::from_telegram(7), 50);
    assert_eq!(tell(&mut world), None);
    assert_eq!(world.value::<String>("SELECT message_text FROM outgoing_messages"), "1001");
    // It is over at half, and the next one is told again.
    for (processed, is_told) in [(540, false), (60, false)] {
        world.by_hand(&format!(
            "UPDATE incoming_messages SET processed = 1 WHERE id IN
                 (SELECT id FROM incoming_messages WHERE processed = 0 LIMIT {processed})"
        ));
        assert_eq!(tell(&mut world).is_some(), is_told);
    }
    say_often(&world, ChatRef::from_telegram(7), 600);
    assert!(tell(&mut world).is_some());
}

#[test]
fn a_message_by_hand_is_named_or_read_whatever_its_columns_and_stops_no_other() {
    let mut world = World::new();
    // PostgreSQL's columns take nothing that isn't theirs.
    if world.is_shared() {
        return;
    }
    world.by_hand("INSERT INTO incoming_messages (chat_id, message_text) VALUES ('not a number', 'x')");
    let message = NewIncoming { chat: ChatRef::from_telegram(7), text: "y".to_owned(), ..NewIncoming::default() };
    world
        .store
        .inbox_mut()
        .accept_batch(&Batch { bot_id: 1, messages: vec![message], ..Batch::default() }, at(0))
        .unwrap();
    let queued = world.store.inbox().list_queued_messages().unwrap();
    assert_eq!(queued.iter().map(|message| message.text.as_str()).collect::<Vec<_>>(), ["y"]);
    // The console is nobody's guess.
    let odd = world.store.odd_rows().unwrap();
    assert_eq!((odd.len(), odd[0].id, odd[0].column, odd[0].holds.as_str()), (1, 1, "chat_id", "text"));
}

#[test]
fn what_waits_of_whom_is_not_listened_to_any_more_is_taken_out_and_can_be_put_back() {
    for listing in [SettingsListing::Unlisted, SettingsListing::Listed] {
        let mut world = World::new();
        world.store.people_mut().offer_code("h", "bot", at(600), at(0)).unwrap();
        world.store.inbox_mut().accept_batch(&batch(Some(person(7, "h")), 0), at(1)).unwrap();
        let [answered, first, second, others] = [7, 7, 7, 8]
            .map(|chat| world.store.inbox_mut().queue_message(ChatRef::from_telegram(chat), "hello", at(1)).unwrap());
        world.by_hand(&format!(
            "UPDATE incoming_messages SET processed = 1, outcome = 'answered' WHERE id = {answered}"
        ));
        let dropped = world.store.people_mut().unpair_person(7, listing, at(2)).unwrap();
        let ids = |messages: Vec<Incoming>| messages.iter().map(|message| message.id).collect::<Vec<_>>();
        if listing == SettingsListing::Listed {
            assert_eq!(
                (dropped, ids(world.store.inbox().list_queued_messages().unwrap())),
                (Some(0), vec![first, second, others])
            );
            continue;
        }
        assert_eq!((dropped, ids(world.store.inbox().list_queued_messages().unwrap())), (Some(2), vec![others]));
        assert_eq!(ids(world.store.inbox().dropped_letters().unwrap()), [first, second]);
        assert!(world.store.inbox().is_dropped(&[first, second]).unwrap());
        assert!(!world.store.inbox().is_dropped(&[first, answered]).unwrap());
        assert!(world.store.inbox_mut().retry_message(second).unwrap());
        assert_eq!(ids(world.store.inbox().list_queued_messages().unwrap()), [second, others]);
    }
}

#[test]
fn nothing_leaves_for_whom_is_not_listened_to_any_more_until_they_are_again() {
    let mut world = World::new();
    let pair = |world: &mut World, hash: &str, seconds| {
        world.store.people_mut().offer_code(hash, "bot", at(600), at(0)).unwrap();
        world.store.inbox_mut().accept_batch(&batch(Some(person(7, hash)), 0), at(seconds)).unwrap();
    };
    pair(&mut world, "h1", 1);
    assert_eq!(world.deliver_all(1), ["welcome"]);
    world.plan(ChatRef::from_telegram(7), "planned before");
    world.store.people_mut().unpair_person(7, SettingsListing::Unlisted, at(2)).unwrap();
    // A cycle that was under way still writes.
    world.plan(ChatRef::from_telegram(7), "written after");
    world.plan(ChatRef::from_telegram(8), "another's");
    assert_eq!(world.deliver_all(3), ["another's"]);
    assert!(
        !world.store.outbox().has_deliverable(at(3)).unwrap()
            && world.store.outbox().list_undelivered_messages().unwrap().is_empty()
    );
    pair(&mut world, "h2", 4);
    assert_eq!(world.deliver_all(5), ["welcome"], "what was taken back stays so");
    world.store.people_mut().unpair_person(7, SettingsListing::Unlisted, at(6)).unwrap();
    world.store.people_mut().readmit_people(&[ChatRef::from_telegram(7), ChatRef::from_telegram(8)]).unwrap();
    world.plan(ChatRef::from_telegram(7), "listed by now");
    assert_eq!(world.deliver_all(7), ["listed by now"]);
    world.store.people_mut().unpair_person(8, SettingsListing::Listed, at(8)).unwrap();
    world.plan(ChatRef::from_telegram(8), "listed and never paired");
    assert_eq!(world.deliver_all(9), ["listed and never paired"]);
}
