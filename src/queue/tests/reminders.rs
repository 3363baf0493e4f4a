use super::*;

#[test]
fn a_reminder_that_cannot_be_read_holds_up_no_other() {
    let world = World::new();
    world.by_hand(
        "INSERT INTO reminders (chat_id, text, rule, zone, slot, next_at, created_at) VALUES
             (7, 'fine', NULL, 'Europe/Berlin', '2026-11-22T09:00:00', '2026-11-22T08:00:00.000Z', ''),
             (7, 'no rule', '{\"every\": \"so often\"}', 'Europe/Berlin', '2026-11-22T09:00:00', '2026-11-22T08:00:00.000Z', ''),
             (7, 'no time', NULL, 'Europe/Berlin', 'soon', 'later', '')",
    );
    let reminders = world.store.reminders().unwrap();
    let texts: Vec<&str> = reminders.iter().map(|reminder| reminder.what.text.as_str()).collect();
    assert_eq!(texts, ["fine"]);
}
