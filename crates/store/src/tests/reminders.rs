use chrono::NaiveDateTime;

use reveille_base::schedule::{
    Missed, Slot,
    due::{DueTurn, Passed},
};

use super::*;

const DAILY: &str = "INSERT INTO reminders (chat_id, text, rule, zone, slot, next_at, created_at) VALUES
    (7, 'stretch', '{\"every\": \"daily\", \"at\": \"09:00\"}', 'UTC', '2026-11-22T09:00:00', '2026-11-22T09:00:00.000Z',
     '2026-11-21T14:00:00.000Z')";

fn slot(day: u32) -> Slot {
    let civil = slot_key(day);
    Slot { civil, at: civil.and_utc() }
}

fn slot_key(day: u32) -> NaiveDateTime {
    chrono::NaiveDate::from_ymd_opt(2026, 11, day).unwrap().and_hms_opt(9, 0, 0).unwrap()
}

fn round(happens: Option<u32>, passed: Option<(u32, u32)>, next: u32) -> Round {
    let passed = passed.map(|(first, last)| Passed { first: slot(first), last: slot(last), count: last - first + 1 });
    let turn = DueTurn { happens: happens.map(slot), is_late: false, passed, next: Some(slot(next)) };
    let missed = if happens.is_some() { Missed::Run } else { Missed::Skip };
    Round {
        firings: vec![Firing { id: 1, turn, missed }],
        message: happens.map(|_| outgoing(ChatRef::from_telegram(7), "stretch")),
    }
}

#[test]
fn a_reminder_that_cannot_be_read_holds_up_no_other() {
    let world = World::new();
    world.by_hand(
        "INSERT INTO reminders (chat_id, text, rule, zone, slot, next_at, created_at) VALUES
             (7, 'fine', NULL, 'Europe/Berlin', '2026-11-22T09:00:00', '2026-11-22T08:00:00.000Z', ''),
             (7, 'no rule', '{\"every\": \"so often\"}', 'Europe/Berlin', '2026-11-22T09:00:00', '2026-11-22T08:00:00.000Z', ''),
             (7, 'no time', NULL, 'Europe/Berlin', 'soon', 'later', '')",
    );
    let reminders = world.store.reminders().list_reminders().unwrap();
    let texts: Vec<&str> = reminders.iter().map(|reminder| reminder.what.text.as_str()).collect();
    assert_eq!(texts, ["fine"]);
}

#[test]
fn a_slot_sends_once_and_what_was_passed_over_can_still_happen() {
    let mut world = World::new();
    world.by_hand(DAILY);
    world.begin("c1");
    let fence = world.fence;
    let mut fire = |round: Round| {
        world.held_by(fence, at(0)).journal_mut().apply_changes("c1", &[Change::Fire(round)]).unwrap();
        let history = world.store.reminders().reminder_history(1, slot_key(22)).unwrap();
        let happened: Vec<String> = history.happened.iter().map(|slot| slot.format("%d").to_string()).collect();
        let skipped = world.store.reminders().list_reminders().unwrap()[0].skipped;
        (
            happened.join(" "),
            history.passed.len(),
            skipped,
            world.value::<i64>("SELECT count(*) FROM outgoing_messages"),
        )
    };
    assert_eq!(fire(round(None, Some((22, 24)), 25)), (String::new(), 1, Some(slot_key(24)), 0));
    // The clock was wrong: the 24th comes after all, once.
    assert_eq!(fire(round(Some(24), None, 25)), ("24".to_owned(), 1, None, 1));
    assert_eq!(fire(round(Some(24), None, 25)), ("24".to_owned(), 1, None, 1));
    assert_eq!(fire(round(None, Some((22, 24)), 25)), ("24".to_owned(), 1, None, 1), "what happened is not undone");
    assert_eq!(fire(round(Some(25), Some((23, 24)), 26)), ("24 25".to_owned(), 2, None, 2));
    let next: String = world.value("SELECT slot || ' ' || next_at FROM reminders");
    assert_eq!(next, "2026-11-26T09:00:00 2026-11-26T09:00:00.000Z");
}

#[test]
fn the_clock_is_held_against_the_time_at_which_the_next_slot_was_written() {
    let mut world = World::new();
    world.by_hand(DAILY);
    let is_set_back =
        |world: &World, seconds| world.store.reminders().list_reminders().unwrap()[0].is_set_back(at(seconds));
    assert!(!is_set_back(&world, -1_000_000), "not known in an older database");
    world.held(at(0)).reminders_mut().set_next_slot(1, slot(23)).unwrap();
    assert!(is_set_back(&world, -61) && !is_set_back(&world, -60) && !is_set_back(&world, 1));
}
