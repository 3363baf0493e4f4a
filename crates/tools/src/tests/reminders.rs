use proptest::prelude::*;

use reveille_base::{
    schedule::{Nth, Rule},
    types::ChatRef,
};
use reveille_store::{NewReminder, Reminder};

use super::*;

#[track_caller]
fn reminder(done: &Done) -> &NewReminder {
    match done.changes.as_slice() {
        [Change::AddReminder(reminder)] => reminder,
        other => panic!("{other:?}"),
    }
}

fn kept(id: i64, chat: ChatRef, text: &str) -> Reminder {
    let scene = Scene::new();
    let done = scene.done("reminder_set", &json!({"text": text, "when": "tomorrow at 9"}));
    let what = NewReminder { chat, ..reminder(&done).clone() };
    Reminder { id, what, created_at: None, written_at: None, skipped: None }
}

#[test]
fn a_reminder_is_set_for_the_asking_chat_in_its_civil_time() {
    let scene = Scene::new();
    let done = scene.done("reminder_set", &json!({"text": "call Anna", "when": "tomorrow at 9"}));
    let what = reminder(&done);
    assert_eq!((what.chat.id, what.thread_id, what.zone.as_str()), (7, Some(3), "Europe/Berlin"));
    assert_eq!(what.slot.to_string(), "2026-11-22 09:00:00");
    assert_eq!(what.next_at, parse_time("2026-11-22T08:00:00Z").unwrap());
    assert_eq!(done.receipt.as_deref(), Some("Set the reminder “call Anna”, Sun 22 Nov 2026 at 09:00"));
    assert_eq!(done.content, "Reminder set: call Anna — Sun 22 Nov 2026 at 09:00");
    let done = scene.done("reminder_set", &json!({"text": "stand up", "when": "every weekday at 8"}));
    assert_eq!(done.content, "Reminder set: stand up — every weekday at 08:00, next Mon 23 Nov 2026 at 08:00");
    let mut scene = scene;
    scene.world.conversation.chat = None;
    scene.world.unasked.owner_chat = ChatRef::from_telegram(9);
    let done = scene.done("reminder_set", &json!({"text": "x", "when": "2026-11-23 09:00"}));
    assert_eq!((reminder(&done).chat.id, reminder(&done).thread_id), (9, None));
}

#[test]
fn where_nothing_wakes_what_is_set_for_a_time_says_so() {
    let mut scene = Scene::new();
    scene.world.unasked.unwoken = Some("Nobody wakes.".to_owned());
    let done = scene.done("reminder_set", &json!({"text": "call Anna", "when": "tomorrow at 9"}));
    assert!(done.content.ends_with("at 09:00\n\nNobody wakes."), "{done:?}");

    let scene = scene.with("memory/project-memory/active.md", "# Active tasks\n");
    let timed = json!({"title": "Sail", "at": "2026-11-23 09:00"});
    assert!(scene.done("task_add", &timed).content.ends_with("Sail\n\nNobody wakes."));
    assert!(!scene.done("task_add", &json!({"title": "Row"})).content.contains("Nobody wakes."));
}

#[test]
fn an_instant_that_has_just_passed_is_due_at_once_and_an_old_one_is_refused() {
    let scene = Scene::new();
    let done = scene.done("reminder_set", &json!({"text": "x", "when": "2026-11-21T13:59:00Z"}));
    assert!(reminder(&done).next_at < scene.world.clock.now);
    assert!(
        scene.refused("reminder_set", &json!({"text": "x", "when": "2026-11-19T13:00:00Z"})).contains("already passed")
    );
}

#[test]
fn one_chat_does_not_use_up_what_all_have() {
    let mut scene = Scene::new();
    scene.world.memory.reminders = (0..50).map(|id| kept(id, ChatRef::from_telegram(7), "x")).collect();
    let input = json!({"text": "x", "when": "tomorrow at 9"});
    scene.done("reminder_set", &input);
    scene.world.unasked.owner_chat = ChatRef::from_telegram(9);
    assert!(scene.refused("reminder_set", &input).contains("50 reminders of this chat"));
    scene.world.memory.reminders.truncate(49);
    scene.done("reminder_set", &input);
}

#[test]
fn a_reminder_that_cannot_be_set_is_refused_with_the_reason() {
    let mut scene = Scene::new();
    let refused = |when: &str| scene.refused("reminder_set", &json!({"text": "x", "when": when}));
    assert!(refused("when it rains").contains("No time was understood in \"when it rains\""));
    assert!(refused("2026-02-30 09:00").ends_with("Nothing was done."));
    assert!(refused("yesterday at 9").ends_with("Nothing was done."));
    assert!(refused("").contains("No time was understood"));
    assert!(scene.refused("reminder_set", &json!({"text": "", "when": "tomorrow"})).contains("text is empty"));
    assert!(
        scene.refused("reminder_set", &json!({"text": "x".repeat(1_001), "when": "tomorrow"})).contains("at most 1000")
    );
    scene.world.memory.reminders = vec![kept(1, ChatRef::from_telegram(7), "tea"); 500];
    assert!(scene.refused("reminder_set", &json!({"text": "x", "when": "tomorrow"})).starts_with("500 reminders"));
}

#[test]
fn reminders_are_listed_and_ended_by_number_or_words() {
    let mut scene = Scene::new();
    assert_eq!(scene.done("reminder_list", &json!({})).content, "No reminders are set.");
    scene.world.memory.reminders = vec![
        kept(1, ChatRef::from_telegram(7), "call Anna"),
        kept(2, ChatRef::from_telegram(7), "call Bob"),
        kept(3, ChatRef::from_telegram(8), "elsewhere"),
    ];
    insta::assert_snapshot!(scene.done("reminder_list", &json!({})).content, @r"
    1. call Anna — Sun 22 Nov 2026 at 09:00
    2. call Bob — Sun 22 Nov 2026 at 09:00
    3. elsewhere — Sun 22 Nov 2026 at 09:00
    ");
    let ended = |done: &Done| match done.changes.as_slice() {
        [Change::EndReminder { id }] => *id,
        other => panic!("{other:?}"),
    };
    assert_eq!(ended(&scene.done("reminder_done", &json!({"reminder": "#2"}))), 2);
    let done = scene.done("reminder_done", &json!({"reminder": "ANNA"}));
    assert_eq!((ended(&done), done.receipt.as_deref()), (1, Some("Ended the reminder “call Anna”")));
    assert!(scene.refused("reminder_done", &json!({"reminder": "call"})).contains("1. call Anna\n2. call Bob"));
    assert!(
        scene
            .refused("reminder_done", &json!({"reminder": "99"}))
            .starts_with("There's no reminder 99. Send “list reminders”")
    );
    assert!(scene.refused("reminder_done", &json!({"reminder": ""})).contains("reminder is empty"));
    // Matches a reminder's whole text; a text that only contains the words is another one.
    assert_eq!(ended(&scene.done("reminder_done", &json!({"reminder": "“call Anna”"}))), 1);
    let once = scene.done("reminder_done", &json!({"reminder": "“call”"}));
    assert!(once.changes.is_empty() && once.content.contains("“call” was set once"), "{}", once.content);
}

#[test]
fn a_reminder_is_moved_by_ending_it_and_setting_another() {
    let mut scene = Scene::new();
    let mut anna = kept(1, ChatRef::from_telegram(7), "call Anna");
    (anna.what.slot, anna.what.next_at) =
        ("2026-11-22T10:00:00".parse().unwrap(), parse_time("2026-11-22T09:00:00Z").unwrap());
    scene.world.memory.reminders = vec![anna];
    let moved = |when: &str| scene.done("reminder_move", &json!({"reminder": "anna", "when": when}));
    let slot = |done: &Done| match done.changes.as_slice() {
        [Change::EndReminder { id: 1 }, Change::AddReminder(new)] => new.slot.format("%a %m-%d %H:%M").to_string(),
        other => panic!("{other:?}"),
    };
    // A day alone keeps the time of day.
    assert_eq!(slot(&moved("Friday")), "Fri 11-27 10:00");
    assert_eq!(slot(&moved("2026-11-30")), "Mon 11-30 10:00");
    assert_eq!(slot(&moved("Friday at 8")), "Fri 11-27 08:00");
    assert_eq!(slot(&moved("in 20 minutes")), "Sat 11-21 15:20");
    assert_eq!(moved("Friday").content, "Moved: call Anna — Fri 27 Nov 2026 at 10:00");
    assert!(
        scene.refused("reminder_move", &json!({"reminder": "1", "when": "soon"})).contains("No time was understood")
    );
    assert!(
        scene
            .refused("reminder_move", &json!({"reminder": "2", "when": "Friday"}))
            .starts_with("There's no reminder 2")
    );
    scene.world.memory.reminders[0].what.rule =
        Some(Rule::Daily { at: chrono::NaiveTime::from_hms_opt(10, 0, 0).unwrap() });
    assert!(
        scene
            .refused("reminder_move", &json!({"reminder": "1", "when": "Friday"}))
            .starts_with("It recurs (every day at 10:00)")
    );
    let often = scene.done("reminder_move", &json!({"reminder": "1", "when": "every Friday"}));
    assert!(often.content.contains("every Friday at 10:00"), "{often:?}");
}

#[test]
fn what_is_due_on_a_day_is_listed_alone() {
    let mut scene = Scene::new();
    let mut daily = kept(2, ChatRef::from_telegram(7), "stretch");
    daily.what.rule = Some(Rule::Daily { at: chrono::NaiveTime::from_hms_opt(18, 0, 0).unwrap() });
    let at = |text: &str| parse_time(text).unwrap();
    (daily.what.slot, daily.what.next_at) = ("2026-11-21T18:00:00".parse().unwrap(), at("2026-11-21T17:00:00Z"));
    let mut once = kept(1, ChatRef::from_telegram(7), "call Anna");
    (once.what.slot, once.what.next_at) = ("2026-11-22T09:00:00".parse().unwrap(), at("2026-11-22T08:00:00Z"));
    scene.world.memory.reminders = vec![once, daily];
    let due = |scene: &Scene, day: &str| scene.done("reminder_list", &json!({"day": day})).content;
    assert_eq!(due(&scene, "today"), "2. stretch — 18:00");
    assert_eq!(due(&scene, "tomorrow"), "1. call Anna — 09:00\n2. stretch — 18:00");
    assert_eq!(due(&scene, "2026-11-24"), "2. stretch — 18:00");
    scene.world.memory.reminders.pop();
    assert_eq!(due(&scene, "today"), "Nothing is due on Saturday, 21 November.");
    assert!(scene.refused("reminder_list", &json!({"day": "soon"})).contains("No day was understood"));
}

#[test]
fn reminders_of_a_guest_mark_the_owners_cycle() {
    let mut scene = Scene::new();
    scene.world.memory.reminders =
        vec![kept(1, ChatRef::from_telegram(7), "tea"), kept(2, ChatRef::TERMINAL, "tea and milk")];
    assert_eq!(scene.done("reminder_list", &json!({})).taint, None);
    assert!(scene.refused("reminder_done", &json!({"reminder": "tea"})).contains("say the number"));
    scene.world.memory.reminders.push(kept(3, ChatRef::from_telegram(5555), "tea for the guest"));
    assert!(scene.done("reminder_list", &json!({})).taint.is_some());
    let several = scene.done("reminder_done", &json!({"reminder": "tea"}));
    assert!(several.is_failure && several.taint.is_some() && several.changes.is_empty(), "{several:?}");
    assert!(scene.done("reminder_done", &json!({"reminder": "3"})).taint.is_some());
    assert_eq!(scene.done("reminder_done", &json!({"reminder": "1"})).taint, None);
}

#[test]
fn another_chat_sees_its_own_reminders_alone() {
    let mut scene = Scene::new();
    scene.world.unasked.owner_chat = ChatRef::from_telegram(9);
    scene.world.memory.reminders =
        vec![kept(1, ChatRef::from_telegram(7), "mine"), kept(2, ChatRef::from_telegram(9), "the owner's")];
    assert!(!scene.done("reminder_list", &json!({})).content.contains("owner"));
    assert!(scene.call("reminder_done", &json!({"reminder": "2"})).is_err());
    assert!(scene.call("reminder_done", &json!({"reminder": "owner"})).is_err());
}

fn time() -> impl Strategy<Value = chrono::NaiveTime> {
    (0..24_u32, 0..60_u32).prop_map(|(hour, minute)| chrono::NaiveTime::from_hms_opt(hour, minute, 0).unwrap())
}

fn weekday() -> impl Strategy<Value = chrono::Weekday> {
    (0..7_u8).prop_map(|day| chrono::Weekday::try_from(day).unwrap())
}

fn weekdays() -> impl Strategy<Value = chrono::WeekdaySet> {
    prop::collection::vec(weekday(), 1..7).prop_map(|days| days.into_iter().collect())
}

fn nth() -> impl Strategy<Value = Nth> {
    prop::sample::select(vec![Nth::First, Nth::Second, Nth::Third, Nth::Fourth, Nth::Last])
}

/// Any rule that words can express at the scene's moment, Saturday 21 November, with the same anchor.
fn rule() -> impl Strategy<Value = Rule> {
    let today = Scene::new().world.local_time().date_naive();
    let now = Scene::new().world.clock.now;
    prop_oneof![
        (1..1000_u32).prop_map(move |minutes| Rule::Interval { minutes, anchor: now }),
        (1..17_u32).prop_map(move |hours| Rule::Interval { minutes: hours * 60, anchor: now }),
        time().prop_map(|at| Rule::Daily { at }),
        (2..400_u32, time()).prop_map(move |(n, at)| Rule::Days { n, anchor: today, at }),
        (weekdays(), time()).prop_map(|(on, at)| Rule::Weekly { on, at }),
        (2..60_u32, weekdays(), time()).prop_map(move |(n, on, at)| Rule::Weeks { n, on, anchor: today, at }),
        (1..32_u32, time()).prop_map(|(day, at)| Rule::Monthly { day, at }),
        (2..30_u32, 1..32_u32, time()).prop_map(move |(n, day, at)| Rule::Months { n, day, anchor: today, at }),
        (nth(), weekday(), time()).prop_map(|(nth, weekday, at)| Rule::MonthWeekday { nth, weekday, at }),
        (1..13_u32, 1..32_u32, time())
            .prop_filter("a day of the calendar", |(month, day, _)| {
                chrono::NaiveDate::from_ymd_opt(2028, *month, *day).is_some()
            })
            .prop_map(|(month, day, at)| Rule::Yearly { month, day, at }),
    ]
}

/// The rule without its anchor.
fn unanchored(rule: &Rule) -> Value {
    let mut json = serde_json::to_value(rule).unwrap();
    json.as_object_mut().unwrap().remove("anchor");
    json
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// The fallback grammar passes a rule on in the words people see.
    #[test]
    fn a_rule_in_words_is_understood_as_the_same_rule(rule in rule()) {
        let scene = Scene::new();
        let done = scene.call("reminder_set", &json!({"text": "x", "when": rule.to_string()}));
        let done = done.map_err(|refusal| TestCaseError::fail(format!("{rule}: {refusal}")))?;
        let understood = reminder(&done).rule.clone();
        prop_assert_eq!(understood.as_ref().map(unanchored), Some(unanchored(&rule)), "{}", rule);
    }
}
