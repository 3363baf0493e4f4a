use reveille_base::types::ChatRef;

use super::*;
use crate::{Accepted, Batch, NewIncoming};

fn update(chat: ChatRef, update_id: i64, text: &str) -> NewIncoming {
    NewIncoming { chat, text: text.to_owned(), update_id: Some(update_id), ..NewIncoming::default() }
}

fn texts(store: &Store) -> Vec<String> {
    store.inbox().list_queued_messages().unwrap().into_iter().map(|message| message.text).collect()
}

fn batch(bot_id: i64, next_offset: i64, messages: &[NewIncoming]) -> Batch {
    Batch { bot_id, next_offset, messages: messages.to_vec(), ..Batch::default() }
}

#[test]
fn the_documented_columns_are_enough_to_queue_a_message_by_hand() {
    let world = World::new();
    // PostgreSQL's numbers don't follow one that a hand has put in.
    world.by_hand(world.store.conn.pick_statement(
        "INSERT INTO incoming_messages (id, chat_id, message_text, received_at, processed)
             VALUES (5, 7, 'all five', '2026-11-21T13:59:00Z', 0)",
        "INSERT INTO incoming_messages (chat_id, message_text, received_at, processed)
             VALUES (7, 'all five', '2026-11-21T13:59:00Z', 0)",
    ));
    world.by_hand(
        "INSERT INTO incoming_messages (chat_id, message_text) VALUES (0, 'the least');
         INSERT INTO incoming_messages (chat_id, message_text, received_at) VALUES (7, 'a bad time', 'last week')",
    );
    let queued = world.store.inbox().list_queued_messages().unwrap();
    assert_eq!(texts(&world.store), ["all five", "the least", "a bad time"]);
    assert_eq!(queued[0].received_at, Some(at(-60)));
    assert_eq!((queued[0].kind.as_str(), queued[0].attempts), ("text", 0));
    assert!(queued[1].received_at.is_some(), "the default is a time that can be read");
    assert_eq!(queued[2].received_at, None);
    assert_eq!(world.store.inbox().queue_depth().unwrap(), (3, Some(at(-60))));
}

#[test]
fn a_processed_row_is_not_in_the_queue() {
    let world = World::new();
    world.by_hand("INSERT INTO incoming_messages (chat_id, message_text, processed) VALUES (7, 'done', 1)");
    assert_eq!(texts(&world.store), [""; 0]);
    assert_eq!(world.store.inbox().queue_depth().unwrap(), (0, None));
}

#[test]
fn a_second_delivery_of_an_update_is_stored_once_per_bot() {
    let mut world = World::new();
    let messages = [update(ChatRef::from_telegram(7), 41, "hello"), update(ChatRef::from_telegram(7), 42, "again")];
    let first = world.store.inbox_mut().accept_batch(&batch(1, 43, &messages), at(0)).unwrap();
    assert_eq!(first.stored.len(), 2);
    let second = world.store.inbox_mut().accept_batch(&batch(1, 43, &messages), at(1)).unwrap();
    assert_eq!(second, Accepted::default());
    let other_bot = world.store.inbox_mut().accept_batch(&batch(2, 43, &messages), at(1)).unwrap();
    assert_eq!(other_bot.stored.len(), 2);
    assert_eq!(texts(&world.store), ["hello", "again", "hello", "again"]);
}

#[test]
fn the_offset_is_what_was_given_even_when_ids_start_again_lower() {
    let mut world = World::new();
    assert_eq!(world.store.inbox().next_offset(1).unwrap(), None);
    world
        .store
        .inbox_mut()
        .accept_batch(&batch(1, 900_000_001, &[update(ChatRef::from_telegram(7), 900_000_000, "old")]), at(0))
        .unwrap();
    world
        .store
        .inbox_mut()
        .accept_batch(&batch(1, 13, &[update(ChatRef::from_telegram(7), 12, "after a quiet week")]), at(1))
        .unwrap();
    world.store.inbox_mut().accept_batch(&batch(2, 5, &[]), at(1)).unwrap();
    assert_eq!(world.store.inbox().next_offset(1).unwrap(), Some(13));
    assert_eq!(world.store.inbox().next_offset(2).unwrap(), Some(5));
    assert_eq!(texts(&world.store), ["old", "after a quiet week"]);
}

#[test]
fn a_batch_and_its_offset_are_stored_together_or_not_at_all() {
    let mut world = World::new();
    world.store.inbox_mut().accept_batch(&batch(1, 10, &[]), at(0)).unwrap();
    world.refuse("UPDATE", "poll_state");
    let answer = outgoing(ChatRef::from_telegram(7), "a command's answer");
    let refused = world.store.inbox_mut().accept_batch(
        &Batch {
            commands: vec![Ordered { answer, order: None, update_id: None }],
            strangers: 3,
            ..batch(1, 20, &[update(ChatRef::from_telegram(7), 19, "lost?")])
        },
        at(1),
    );
    assert!(refused.is_err());
    assert_eq!(texts(&world.store), [""; 0]);
    assert_eq!(world.store.inbox().next_offset(1).unwrap(), Some(10));
    assert_eq!(world.store.read_counter("strangers").unwrap(), 0);
    assert_eq!(world.value::<i64>("SELECT count(*) FROM outgoing_messages"), 0);
}

#[test]
fn of_a_flood_of_commands_some_are_answered_and_all_are_carried_out_once() {
    let mut world = World::new();
    let command = |n: usize| {
        let answer = NewOutgoing {
            kind: OutgoingKind::Command,
            key: Some(format!("c{n}")),
            ..outgoing(ChatRef::from_telegram(7), "an answer")
        };
        Ordered { answer, order: (n == 30).then_some(Order::Stop { is_owners: true }), update_id: None }
    };
    let commands = Batch { commands: (1..=30).map(command).collect(), ..batch(1, 20, &[]) };
    let accepted = world.store.inbox_mut().accept_batch(&commands, at(0)).unwrap();
    assert_eq!((accepted.answers.len(), accepted.has_orders), (21, true));
    assert!(world.store.chats().find_stop_order().unwrap().is_some());
    world.store.inbox_mut().carry_out_order(&Order::Resume { is_owners: true }, at(1)).unwrap();
    let again = world.store.inbox_mut().accept_batch(&commands, at(1)).unwrap();
    assert!(again.answers.is_empty() && !again.has_orders, "it came again: {again:?}");

    // The other chat's come as ever, and this one's again when it has had what waited.
    let theirs = Ordered {
        answer: NewOutgoing { chat: ChatRef::from_telegram(8), ..command(31).answer },
        order: None,
        update_id: None,
    };
    world.store.inbox_mut().accept_batch(&Batch { commands: vec![theirs], ..batch(1, 21, &[]) }, at(2)).unwrap();
    let sent = world.deliver_all(3);
    assert_eq!(sent.iter().filter(|text| *text == "an answer").count(), 21);
    assert!(sent.iter().any(|text| text.contains("I'm leaving out some answers")), "{sent:?}");
    let again = world
        .store
        .inbox_mut()
        .accept_batch(&Batch { commands: vec![command(32)], ..batch(1, 22, &[]) }, at(4))
        .unwrap();
    assert_eq!((again.answers.len(), world.deliver_all(4)), (1, vec!["an answer".to_owned()]));
}

#[test]
fn an_edit_changes_what_is_queued_and_no_cycle_has_taken_up() {
    let mut world = World::new();
    let message = |update_id, message_id| NewIncoming {
        channel_message_id: Some(message_id),
        ..update(ChatRef::from_telegram(7), update_id, "as sent")
    };
    let messages = [message(1, 101), message(2, 102), message(3, 103), message(4, 104)];
    world.store.inbox_mut().accept_batch(&batch(1, 5, &messages), at(0)).unwrap();
    world.by_hand(
        "UPDATE incoming_messages SET processed = 1 WHERE id = 2;
         INSERT INTO cycles (id, state, trigger, reasons, model, started_at, fence) VALUES
             ('open', 'waiting', 'cli', '[]', 'm', '', 1), ('over', 'failed', 'cli', '[]', 'm', '', 1);
         UPDATE incoming_messages SET cycle_id = 'open' WHERE id = 3;
         UPDATE incoming_messages SET cycle_id = 'over', held_for = 'offline' WHERE id = 4",
    );
    let edit = |chat, message_id| NewIncoming {
        chat,
        channel_message_id: Some(message_id),
        text: "as edited".to_owned(),
        is_only_part: true,
        ..NewIncoming::default()
    };
    let edits = Batch {
        edits: vec![
            edit(ChatRef::from_telegram(7), 101),
            edit(ChatRef::from_telegram(7), 104),
            edit(ChatRef::from_telegram(8), 101),
            edit(ChatRef::from_telegram(7), 999),
        ],
        ..batch(1, 11, &[])
    };
    assert_eq!(
        world.store.inbox_mut().accept_batch(&edits, at(1)).unwrap(),
        Accepted { edited: 2, ..Accepted::default() }
    );
    // Another bot's message of the same number is another message.
    let others = Batch { bot_id: 2, ..edits };
    assert_eq!(world.store.inbox_mut().accept_batch(&others, at(1)).unwrap(), Accepted::default());
    assert_eq!(texts(&world.store), ["as edited", "as sent", "as edited"]);
    assert_eq!(world.value::<i64>("SELECT count(*) FROM incoming_messages WHERE held_for IS NOT NULL"), 0);
}

#[test]
fn of_strangers_only_a_count_is_kept() {
    let mut world = World::new();
    world.store.inbox_mut().accept_batch(&Batch { strangers: 2, ..batch(1, 2, &[]) }, at(0)).unwrap();
    world.store.inbox_mut().accept_batch(&Batch { strangers: 1, ..batch(1, 3, &[]) }, at(1)).unwrap();
    assert_eq!(world.store.read_counter("strangers").unwrap(), 3);
    assert_eq!(world.value::<i64>("SELECT count(*) FROM incoming_messages"), 0);
}

#[test]
fn exchanges_are_both_sides_of_one_chat_oldest_first() {
    let world = World::new();
    // A space for the T, as SQLite's own functions write it, sorts before a T: the order is by time all the same.
    world.by_hand(
        "INSERT INTO incoming_messages (chat_id, message_text, received_at, processed, sender_name) VALUES
             (7, 'first', '2026-11-21T13:00:00.000Z', 1, 'Ann'),
             (7, 'second', '2026-11-21 13:10:00', 1, NULL),
             (8, 'another chat', '2026-11-21T13:11:00.000Z', 1, 'Bob'),
             (7, 'still open', '2026-11-21T13:12:00.000Z', 0, 'Ann');
         INSERT INTO outgoing_messages (chat_id, message_text, created_at) VALUES
             (7, 'to the first', '2026-11-21T13:00:00.000Z'),
             (8, 'elsewhere', '2026-11-21T13:05:00.000Z'),
             (7, 'to the second', '2026-11-21T13:11:00.000Z')",
    );
    let shown = |limit: usize| -> Vec<String> {
        let exchanges = world.store.inbox().list_exchanges(ChatRef::from_telegram(7), limit).unwrap();
        exchanges
            .into_iter()
            .map(|exchange| format!("{}: {}", exchange.from.unwrap_or_else(|| "me".to_owned()), exchange.text))
            .collect()
    };
    assert_eq!(shown(16), ["Ann: first", "me: to the first", "the person: second", "me: to the second"]);
    assert_eq!(shown(2), ["the person: second", "me: to the second"]);
    assert_eq!(shown(0), [""; 0]);
}

#[test]
fn what_is_kept_for_another_model_never_hides_what_can_be_answered() {
    let mut world = World::new();
    world.by_hand(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600)
         INSERT INTO incoming_messages (chat_id, message_text, held_for) SELECT 7, 'kept', 'offline' FROM n",
    );
    let id = world.store.inbox_mut().queue_message(ChatRef::from_telegram(7), "list reminders", at(0)).unwrap();
    let queued = world.store.inbox().list_queued_messages().unwrap();
    assert_eq!(queued.last().map(|message| message.id), Some(id));
    assert!(queued.is_sorted_by_key(|message| message.id));
}

#[test]
fn what_another_machine_has_heard_until_moves_forward_alone() {
    let mut world = World::new();
    for (heard, known) in [(5, 5), (3, 5), (9, 9)] {
        world.store.inbox_mut().heard_elsewhere(1, at(heard)).unwrap();
        assert_eq!(parse_time(&world.value::<String>("SELECT last_poll_at FROM poll_state")), Some(at(known)));
    }
}
