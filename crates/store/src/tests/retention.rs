//! What is old goes, what isn't finished stays however old. Everything here is from before [`old`].

use MessageOutcome::{Answered, Dead, Dropped, Refused};

use reveille_base::types::ChatRef;

use super::*;
use crate::{Batch, Change, Entry, FIRINGS_KEPT, NewIncoming, sql};

const ROWS: u32 = 200;

/// What is older may go: a day after everything that these tests do.
fn old() -> DateTime<Utc> {
    at(86_400)
}

fn entry(n: i64) -> Entry {
    Entry::Said { raw: format!("turn {n}"), messages: Vec::new(), handles: Vec::new(), head: None, taint: None }
}

impl World {
    fn entries(&self, cycle: &str) -> usize {
        self.store.journal().read_journal(cycle).unwrap().len()
    }

    /// A cycle with three entries that has come to this state.
    fn cycle_in(&mut self, id: &str, state: CycleState) {
        self.begin(id);
        for n in 0..3 {
            self.held(at(1)).journal_mut().record_entry(id, &entry(n), &[]).unwrap();
        }
        match state {
            CycleState::Running => {}
            CycleState::Waiting => self.held(at(0)).cycles_mut().pause_cycle(id, at(5), "no network").unwrap(),
            state => self.end(id, state, &[]),
        }
    }

    /// A message with its raw update.
    fn receive(&mut self, update_id: i64) -> i64 {
        let message = NewIncoming {
            chat: ChatRef::from_telegram(7),
            text: format!("message {update_id}"),
            raw: Some("{\"file\":\"7-note.ogg\"}".to_owned()),
            update_id: Some(update_id),
            ..NewIncoming::default()
        };
        let batch = Batch { bot_id: 99, next_offset: update_id + 1, messages: vec![message], ..Batch::default() };
        self.store.inbox_mut().accept_batch(&batch, at(0)).unwrap().stored[0]
    }

    /// Forgets until nothing is left, in batches of so many rows.
    fn forget_all(&mut self, rows: u32) -> u32 {
        let mut all = 0;
        loop {
            let n = self.held(at(0)).retention_mut().delete_old_rows(old(), rows).unwrap();
            assert!(n <= rows, "{n} rows in a batch of {rows}");
            if n == 0 {
                return all;
            }
            all += n;
        }
    }
}

#[test]
fn journals_of_ended_cycles_go_and_open_ones_stay_however_old() {
    let mut world = World::new();
    let ended = [("d", CycleState::Done), ("f", CycleState::Failed), ("a", CycleState::Abandoned)];
    // A parked cycle has an end written down, too.
    let open = [("p", CycleState::Parked), ("w", CycleState::Waiting), ("r", CycleState::Running)];
    for (id, state) in ended.into_iter().chain(open) {
        world.cycle_in(id, state);
    }
    world.held(at(1)).ledger_mut().reserve_cost(("d", "m"), 0.5, &[]).unwrap().unwrap();
    assert!(world.store.retention().has_forgettable(old()).unwrap());
    world.forget_all(ROWS);
    for (id, _) in ended {
        let row = world.store.cycles().find_cycle(id).unwrap().unwrap();
        assert_eq!((world.entries(id), row.cycle.system.as_str()), (0, "[]"), "{id}");
        assert!(row.ended_at.is_some() && !row.cycle.reasons.is_empty());
    }
    for (id, _) in open {
        let row = world.store.cycles().find_cycle(id).unwrap().unwrap();
        assert!(world.entries(id) == 3 && row.cycle.system.contains("be kind"), "{id}");
    }
    assert_eq!(world.store.ledger().sum_cycle_cost("d").unwrap().cost_usd, 0.5);
    assert!(!world.store.retention().has_forgettable(old()).unwrap());
}

#[test]
fn what_is_not_old_stays() {
    let mut world = World::new();
    world.cycle_in("c", CycleState::Done);
    let message = world.receive(1);
    let change = Change::Done { messages: vec![message], outcome: Answered };
    world.held(at(9)).journal_mut().apply_changes("c", &[change]).unwrap();
    world.plan(ChatRef::from_telegram(7), "an answer");
    world.deliver_all(9);
    let just_then = at(9);
    assert!(!world.store.retention().has_forgettable(just_then).unwrap());
    assert_eq!(world.held(at(0)).retention_mut().delete_old_rows(just_then, ROWS).unwrap(), 0);
    assert_eq!(world.entries("c"), 3);
    assert!(world.store.retention().has_forgettable(at(10)).unwrap());
}

#[test]
fn a_given_up_cycle_is_remembered_for_as_long_as_its_message_can_be_tried_again() {
    let mut world = World::new();
    for (n, outcome) in [(1, None), (2, Some(Dead)), (3, Some(Dropped)), (4, Some(Answered))] {
        let (id, message) = (format!("c{n}"), world.receive(n));
        world.cycle_in(&id, CycleState::Running);
        // Another one took it up after it, and came to nothing: the message's row names only that.
        let after = format!("after {id}");
        world.begin(&after);
        for cycle in [&id, &after] {
            let said = Entry::Said {
                raw: String::new(),
                messages: vec![message],
                handles: Vec::new(),
                head: None,
                taint: None,
            };
            world.held(at(2)).journal_mut().record_entry(cycle, &said, &[]).unwrap();
        }
        world.end(&id, CycleState::Abandoned, &[]);
        world.end(&after, CycleState::Failed, &[]);
        let given_up = world.store.cycles().list_abandoned_cycles(&[message]).unwrap();
        assert_eq!(given_up.iter().map(|row| &row.cycle.id).collect::<Vec<_>>(), [&id]);
        if let Some(outcome) = outcome {
            let change = Change::Done { messages: vec![message], outcome };
            world.held(at(9)).journal_mut().apply_changes(&id, &[change]).unwrap();
        }
    }
    world.forget_all(ROWS);
    assert_eq!(["c1", "c2", "c3", "c4"].map(|id| world.entries(id)), [4, 4, 4, 0]);
    assert_eq!(world.value::<i64>("SELECT count(*) FROM taken_up WHERE cycle_id LIKE '%c4'"), 0);
}

#[test]
fn an_update_as_it_came_goes_with_its_answer_and_words_stay() {
    let mut world = World::new();
    world.begin("c");
    for (n, outcome) in [Some(Answered), Some(Refused), Some(Dead), Some(Dropped), None].into_iter().enumerate() {
        let message = world.receive(n as i64);
        if let Some(outcome) = outcome {
            let change = Change::Done { messages: vec![message], outcome };
            world.held(at(9)).journal_mut().apply_changes("c", &[change]).unwrap();
        }
    }
    assert!(world.store.retention().is_file_wanted("7-note.ogg").unwrap());
    world.forget_all(ROWS);
    let left: String =
        world.value("SELECT string_agg(COALESCE(outcome, 'queued'), ',') FROM incoming_messages WHERE raw IS NOT NULL");
    assert_eq!(left, "dead,dropped,queued");
    assert_eq!(world.value::<i64>("SELECT count(*) FROM incoming_messages WHERE message_text LIKE 'message %'"), 5);
    // The same update, brought again, is still known.
    let again = Batch {
        bot_id: 99,
        next_offset: 1,
        messages: vec![NewIncoming { update_id: Some(0), ..NewIncoming::default() }],
        ..Batch::default()
    };
    assert!(world.store.inbox_mut().accept_batch(&again, at(10)).unwrap().stored.is_empty());
    assert!(
        world.store.retention().is_file_wanted("7-note.ogg").unwrap()
            && !world.store.retention().is_file_wanted("8-note.ogg").unwrap()
    );
    world.by_hand("DELETE FROM incoming_messages WHERE outcome IS NULL OR outcome != 'answered'");
    assert!(!world.store.retention().is_file_wanted("7-note.ogg").unwrap());
}

#[test]
fn parts_go_when_their_message_is_delivered_in_full() {
    let mut world = World::new();
    let told = NewOutgoing { key: Some("tell/x".to_owned()), ..outgoing(ChatRef::from_telegram(7), "delivered") };
    world.store.outbox_mut().plan_message(&told, at(0)).unwrap();
    world.deliver_all(1);
    let half = world.plan(ChatRef::from_telegram(8), &"a long line\n".repeat(600));
    let first = world.store.outbox_mut().claim_part(Pick::default(), &me(), at(2)).unwrap().unwrap();
    world.store.outbox_mut().settle_part(&first, &PartOutcome::Sent { id: 1, date: None }, at(2)).unwrap();
    assert!(world.value::<i64>("SELECT count(*) FROM outgoing_parts WHERE state = 'planned'") > 0);
    world.forget_all(ROWS);
    assert_eq!(world.value::<i64>("SELECT count(*) FROM outgoing_parts WHERE html = '' AND plain = ''"), 1);
    let kept = format!("SELECT count(*) FROM outgoing_parts WHERE html != '' AND outgoing_id = {half}");
    assert!(world.value::<i64>(&kept) > 1);
    assert_eq!(world.value::<String>("SELECT message_text FROM outgoing_messages WHERE key = 'tell/x'"), "delivered");
    // What was told stays told, and the rest of the other message is still to come.
    assert_eq!(world.store.outbox_mut().plan_message(&told, at(3)).unwrap(), None);
    assert!(!world.deliver_all(3).is_empty());
}

#[test]
fn a_slot_that_fired_guards_its_reminder_for_as_long_as_that_is_active() {
    let mut world = World::new();
    let newest = FIRINGS_KEPT + 5;
    world.by_hand(&format!(
        "INSERT INTO reminders (id, chat_id, text, zone, slot, next_at, state, created_at) VALUES
             (1, 7, 'over', 'UTC', '', '', 'done', ''), (2, 7, 'stretch', 'UTC', '', '', 'active', '');
         INSERT INTO reminder_firings (reminder_id, slot, fired_at) VALUES (1, '2026-11-21T09:00:00', '2026-11-21T09:00:00.000Z');
         WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {newest})
         INSERT INTO reminder_firings (reminder_id, slot, fired_at)
             SELECT 2, '2026-' || substr('' || (1000000 + n), 2), '2026-11-21T09:00:00.000Z' FROM n"
    ));
    world.forget_all(ROWS);
    assert_eq!(world.value::<i64>("SELECT count(*) FROM reminder_firings WHERE reminder_id = 1"), 0);
    let left = "SELECT count(*) || ' from ' || min(slot) FROM reminder_firings WHERE reminder_id = 2";
    assert_eq!(world.value::<String>(left), format!("{FIRINGS_KEPT} from 2026-000006"));
    assert_eq!(world.value::<i64>("SELECT count(*) FROM reminders"), 2);
}

#[test]
fn repairs_go_when_they_are_written_down() {
    let mut world = World::new();
    world.begin("c");
    for what in ["one", "two"] {
        world.held(at(0)).maintenance_mut().note_repair("lock", what).unwrap();
    }
    world.by_hand("UPDATE repairs SET cycle_id = 'c' WHERE what = 'one'");
    world.forget_all(ROWS);
    assert_eq!(world.value::<String>("SELECT string_agg(CAST(what AS TEXT), ',') FROM repairs"), "two");
}

#[test]
fn small_batches_come_to_the_same_end() {
    let forgotten = [1, 2, 7, ROWS].map(|rows| {
        let mut world = World::new();
        for n in 0..5 {
            world.cycle_in(&format!("c{n}"), CycleState::Done);
            let message = world.receive(n);
            let change = Change::Done { messages: vec![message], outcome: Answered };
            world.held(at(9)).journal_mut().apply_changes(&format!("c{n}"), &[change]).unwrap();
            world.plan(ChatRef::from_telegram(7), "an answer");
        }
        world.deliver_all(9);
        let n = world.forget_all(rows);
        assert!(!world.store.retention().has_forgettable(old()).unwrap());
        assert_eq!(world.value::<i64>("SELECT count(*) FROM cycle_journal"), 0);
        n
    });
    assert_eq!(forgotten, [5 * (3 + 1 + 1 + 1); 4]);
}

#[test]
fn a_holder_that_was_replaced_forgets_nothing() {
    let mut world = World::new();
    world.cycle_in("c", CycleState::Done);
    world.store.take_lease(&me(), at(10)).unwrap();
    let refused = world.held(at(0)).retention_mut().delete_old_rows(old(), ROWS);
    assert!(matches!(refused, Err(StoreError::LeaseLost { .. })), "{refused:?}");
    assert_eq!(world.entries("c"), 3);
}

/// However much there is, a look reads no table from end to end.
#[test]
fn a_look_goes_by_the_indices() {
    let world = World::new();
    // How PostgreSQL finds them it decides by what is in the tables.
    if world.is_shared() {
        return;
    }
    let mut statement = world
        .store
        .conn
        .prepare(&format!("EXPLAIN QUERY PLAN {}", crate::upkeep::retention::forgettable_query()))
        .unwrap();
    let plan: Vec<String> =
        statement.query_map(["x"], |row| row.get(3)).unwrap().collect::<sql::QueryResult<_>>().unwrap();
    for index in ["cycles_to_forget", "incoming_to_forget", "parts_to_forget"] {
        assert!(plan.iter().any(|step| step.contains(&format!("INDEX {index} "))), "{index}: {plan:#?}");
    }
    assert!(!plan.iter().any(|step| step.starts_with("SCAN") && step != "SCAN CONSTANT ROW"), "{plan:#?}");
}

#[test]
fn answers_to_reminders_and_nudges_go_once_they_are_shown_and_nothing_waits_for_them() {
    let mut world = World::new();
    for n in 1..=4 {
        world.plan(ChatRef::from_telegram(7), &format!("text {n}"));
    }
    world.deliver_all(1);
    world.by_hand(
        "INSERT INTO reminders (id, chat_id, text, zone, slot, next_at, created_at, state)
             VALUES (1, 7, 'tea', 'UTC', '2026-11-21T09:00:00', '2026-11-21T09:00:00Z', '2026-11-20T09:00:00Z', 'active');
         INSERT INTO reminder_firings (reminder_id, slot, fired_at, outgoing_id) VALUES (1, '2026-11-20T09:00:00', '2026-11-20T09:00:00Z', 1);
         INSERT INTO reminder_answers (outgoing_id, message_id, answer, at, is_shown) VALUES
             (1, 1, 'done', '2026-11-20T09:00:00Z', 1), (2, 2, 'done', '2026-11-20T09:00:00Z', 1), (3, 3, 'done', '2026-11-20T09:00:00Z', 0);
         INSERT INTO nudges (outgoing_id, zone, answer, answered_at, is_shown, is_open) VALUES
             (1, 'UTC', NULL, NULL, 0, 0), (2, 'UTC', 'done', '2026-11-20T09:00:00Z', 1, 1),
             (3, 'UTC', 'done', '2026-11-20T09:00:00Z', 0, 0), (4, 'UTC', 'done', '2026-11-20T09:00:00Z', 1, 0)",
    );
    world.forget_all(ROWS);
    // One slot still guards against firing twice; one isn't shown yet; one isn't acted on.
    assert_eq!(world.value::<String>("SELECT string_agg(CAST(outgoing_id AS TEXT), ',') FROM reminder_answers"), "1,3");
    assert_eq!(world.value::<String>("SELECT string_agg(CAST(outgoing_id AS TEXT), ',') FROM nudges"), "2,3");
    world.by_hand("UPDATE reminders SET state = 'done'");
    world.forget_all(ROWS);
    assert_eq!(world.value::<String>("SELECT string_agg(CAST(outgoing_id AS TEXT), ',') FROM reminder_answers"), "3");
}

#[test]
fn a_nudge_answer_of_a_newer_version_waits_and_finishes_no_task() {
    let mut world = World::new();
    for n in 1..=2 {
        world.plan(ChatRef::from_telegram(7), &format!("text {n}"));
    }
    world.by_hand(
        "INSERT INTO nudges (outgoing_id, zone, answer, answered_at, is_shown, is_open) VALUES
             (1, 'UTC', 'delegate', '2026-11-20T09:00:00Z', 0, 1), (2, 'UTC', 'done', '2026-11-20T09:00:00Z', 0, 1)",
    );
    let open = world.store.reminders().open_nudges().unwrap();
    assert_eq!(open.iter().map(|nudge| nudge.outgoing_id).collect::<Vec<_>>(), [2]);
}
