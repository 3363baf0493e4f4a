use super::*;
use crate::Batch;

const OLD: ChatRef = ChatRef::from_telegram(-7);
const NEW: ChatRef = ChatRef::from_telegram(-1007);

impl World {
    fn move_group(&mut self, is_listed: bool) {
        let moved = vec![Moved { from: OLD, to: NEW, is_listed }];
        self.store
            .inbox_mut()
            .accept_batch(&Batch { bot_id: 1, next_offset: 1, moved, ..Batch::default() }, at(0))
            .unwrap();
    }
}

#[test]
fn what_is_open_in_a_group_goes_along_with_it() {
    let mut world = World::new();
    for id in ["open", "over"] {
        world.by_hand(&format!(
            "INSERT INTO cycles (id, state, trigger, reasons, chat_id, model, started_at, fence)
                 VALUES ('{id}', CASE WHEN '{id}' = 'open' THEN 'waiting' ELSE 'done' END, 'cli', '[]', -7, 'm', '', 1);
             INSERT INTO undos (wake, asked_at, chat_id, reply_to, done_at)
                 VALUES ('{id}', '', -7, 5, CASE WHEN '{id}' <> 'open' THEN '2026' END)"
        ));
    }
    world.by_hand(
        "INSERT INTO incoming_messages (chat_id, message_text, channel_message_id, processed, outcome) VALUES
             (-7, 'queued', 5, 0, NULL), (-7, 'undone', 6, 1, 'undone'), (-7, 'answered', 7, 1, 'answered'), (8, 'else', 8, 0, NULL);
         INSERT INTO reminders (chat_id, text, zone, slot, next_at, created_at) VALUES (-7, 'tea', 'UTC', '', '', '')",
    );
    world.move_group(false);
    let messages = "SELECT string_agg(message_text || ' ' || COALESCE('' || channel_message_id, '-'), ', ')
                    FROM incoming_messages WHERE chat_id = ";
    assert_eq!(world.value::<String>(&format!("{messages} -1007")), "queued -, undone -");
    assert_eq!(world.value::<String>(&format!("{messages} -7")), "answered 7");
    assert_eq!(world.value::<ChatRef>("SELECT chat_id FROM reminders"), NEW);
    assert_eq!(
        world.value::<String>("SELECT string_agg(CAST(id AS TEXT), ',') FROM cycles WHERE chat_id = -1007"),
        "open"
    );
    assert_eq!(
        world.value::<String>(
            "SELECT string_agg(CAST(wake AS TEXT), ',') FROM undos WHERE chat_id = -1007 AND reply_to IS NULL"
        ),
        "open"
    );
}

#[test]
fn what_is_to_be_sent_to_a_group_waits_until_its_new_id_is_listed() {
    let mut world = World::new();
    world.plan(OLD, "before");
    // Telegram's refusal tells the new id, whether or not its own message about that is ever read.
    let claimed = world.store.outbox_mut().claim_part(Pick::default(), &me(), at(0)).unwrap().unwrap();
    let moved = PartOutcome::Moved { to: NEW, why: "the group has another id".to_owned() };
    world.store.outbox_mut().settle_part(&claimed, &moved, at(0)).unwrap();
    assert_eq!(world.value::<ChatRef>("SELECT chat_id FROM outgoing_messages"), NEW);
    // A wake that was under way knows only the old id.
    world.plan(OLD, "after");
    world.begin("c1");
    world.by_hand(
        "INSERT INTO approvals (cycle_id, call, tool, action, risk, reasons, chat_id, nonce, outgoing_id, asked_at, expires_at)
         VALUES ('c1', '1', 'bash', '{}', 'leaves', '[]', -7, 'n', 2, '', '')",
    );
    world.plan(ChatRef::from_telegram(8), "elsewhere");
    assert_eq!(world.deliver_all(1), ["elsewhere"]);
    assert!(!world.store.outbox().has_deliverable(at(1)).unwrap());
    world.store.people_mut().readmit_people(&[ChatRef::from_telegram(8)]).unwrap();
    assert!(!world.store.outbox().has_deliverable(at(1)).unwrap(), "another one is listed");
    world.store.people_mut().readmit_people(&[NEW]).unwrap();
    assert!(world.store.outbox().has_deliverable(at(1)).unwrap());
    assert_eq!(world.deliver_all(1), ["before", "after"], "at once: that refusal was of another address");
    assert_eq!(world.value::<i64>("SELECT count(*) FROM outgoing_messages WHERE chat_id = -1007"), 2);
    assert_eq!(world.value::<ChatRef>("SELECT chat_id FROM approvals"), NEW, "it is answered there");
}

#[test]
fn a_group_whose_new_id_is_listed_is_spoken_to_at_once() {
    let mut world = World::new();
    world.plan(OLD, "before");
    world.move_group(true);
    // Told once more, in the new group.
    world.move_group(false);
    assert_eq!(world.deliver_all(1), ["before"]);
}
