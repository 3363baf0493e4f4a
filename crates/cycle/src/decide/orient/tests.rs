use std::collections::BTreeMap;

use chrono::{DateTime, NaiveTime, TimeDelta, Utc};

use reveille_base::{clock::parse_time, types::ChatRef, words::format_count, zone::Tz};
use reveille_config::QuietHours;
use reveille_memory::{
    decay::Stage,
    reflect::REFLECTION,
    tasks::{Task, TaskList},
};
use reveille_store::{Cap, Incoming, NewCycle, NewReminder, Reminder};

use crate::decide::brief::MAX_MESSAGES;
use crate::decide::orient::*;

const ACTIVE: &str = "\
## Tax return\n- status: active\n- touched: 2026-11-11\n- next: find the letter\n\n\
## Garden\n- status: active\n- touched: 2026-11-20\n- at: 2026-11-21 15:00\n- next: look at the weather\n\n\
## Odd\n- touched: yesterday\n- at: when it rains\n";

type Scene = Situation;

/// 15:00 on a Saturday in Berlin.
fn scene() -> Scene {
    let now = parse_time("2026-11-21T14:00:00Z").unwrap();
    let tz = "Europe/Berlin".parse::<Tz>().unwrap();
    Scene { tells_left: 5, ..Scene::new_quiet(now, tz, ChatRef::from_telegram(7), ModelState::for_model("claude")) }
}

impl Scene {
    fn due(&self) -> Vec<String> {
        self.reasons().iter().map(Reason::describe).collect()
    }

    fn reasons(&self) -> Vec<Reason> {
        list_due_reasons(self)
    }

    fn later(&mut self, minutes: i64) -> &mut Self {
        self.now += TimeDelta::minutes(minutes);
        self
    }
}

fn message(id: i64, chat: ChatRef) -> Incoming {
    Incoming { id, chat, text: "hello".to_owned(), kind: "text".to_owned(), ..Incoming::default() }
}

#[test]
fn stale_messages_are_closed_before_the_rest_is_answered() {
    let mut scene = scene();
    let old = |id, text: &str| Incoming {
        text: text.to_owned(),
        received_at: Some(scene.now - TimeDelta::days(3)),
        held_for: Some("offline".to_owned()),
        ..message(id, ChatRef::from_telegram(7))
    };
    let new = Incoming { received_at: Some(scene.now), ..message(4, ChatRef::from_telegram(7)) };
    scene.messages = vec![old(1, "hello"), old(2, "buy milk"), old(3, "?"), new];
    let stale = Reason::Stale { chat: ChatRef::from_telegram(7), thread_id: None, ids: vec![1, 3] };
    let answered = Reason::Messages { chat: ChatRef::from_telegram(7), thread_id: None, ids: vec![2, 4] };
    assert_eq!(scene.reasons(), [stale.clone(), answered.clone()]);
    assert_eq!(choose(scene.reasons(), &scene.model, ChatRef::from_telegram(7)), Some(Work::Mechanical(vec![stale])));
    assert_eq!(
        choose(vec![answered.clone()], &scene.model, ChatRef::from_telegram(7)),
        Some(Work::Think { reasons: vec![answered] })
    );
    // They don't join a running conversation either.
    let running = open_cycle("c", CycleState::Running, None);
    let cycle = NewCycle { chat: Some(ChatRef::from_telegram(7)), ..running.cycle.clone() };
    let joined = list_new_messages(&scene.messages, &cycle, None, &[], &[running], &scene.model, scene.now);
    assert_eq!(joined.iter().map(|message| message.id).collect::<Vec<_>>(), [2, 4]);
    // They wait while no model can answer.
    scene.model = scene.model.out_of_reach();
    assert_eq!(scene.reasons(), []);
    scene.model = ModelState::for_model("offline");
    assert_eq!(scene.reasons(), [Reason::Messages { chat: ChatRef::from_telegram(7), thread_id: None, ids: vec![4] }]);
}

#[test]
fn a_chat_that_waits_for_a_budget_is_told_of_each_days_first_message() {
    let mut scene = scene();
    scene.model.over_budget = Some(Cap::Month);
    let at = |id, received_at| Incoming { received_at: Some(received_at), ..message(id, ChatRef::from_telegram(7)) };
    let key = |scene: &Scene| scene.reasons().iter().find_map(Reason::handled_key);
    scene.messages = vec![at(1, scene.now)];
    let first = key(&scene).unwrap();
    scene.handled.insert(first.clone());
    scene.messages.push(at(2, scene.now + TimeDelta::hours(8)));
    assert_eq!(key(&scene), None, "an hour before midnight");
    scene.later(24 * 60);
    assert_eq!(key(&scene), None, "nothing has come");
    scene.messages.push(at(3, scene.now));
    assert!(key(&scene).is_some_and(|key| key != first));
}

fn open_cycle(id: &str, state: CycleState, not_before: Option<DateTime<Utc>>) -> CycleRow {
    CycleRow {
        cycle: NewCycle {
            id: id.to_owned(),
            trigger: "cron".to_owned(),
            reasons: Vec::new(),
            chat: None,
            thread_id: None,
            model: "claude".to_owned(),
            system: String::new(),
            tools: String::new(),
            work: None,
        },
        state,
        started_at: None,
        tries: 0,
        was_cut_off: state == CycleState::Running,
        not_before,
        ended_at: None,
        commit_id: None,
        error: None,
        asks_until: None,
    }
}

fn reminder(id: i64, next_at: DateTime<Utc>) -> Reminder {
    Reminder {
        id,
        what: NewReminder {
            chat: ChatRef::from_telegram(7),
            thread_id: None,
            text: "tea".to_owned(),
            rule: None,
            zone: "Europe/Berlin".to_owned(),
            slot: next_at.naive_utc(),
            next_at,
            missed: Default::default(),
        },
        created_at: None,
        written_at: None,
        skipped: None,
    }
}

fn tasks(text: &str) -> Vec<Task> {
    TaskList::parse(text).0.tasks().to_vec()
}

#[test]
fn with_nothing_there_nothing_is_due() {
    assert_eq!(scene().reasons(), []);
}

#[test]
fn messages_are_due_by_chat_and_topic_in_their_order() {
    let mut scene = scene();
    scene.messages = vec![
        message(1, ChatRef::from_telegram(7)),
        message(2, ChatRef::TERMINAL),
        message(3, ChatRef::from_telegram(7)),
    ];
    scene.messages.push(Incoming { thread_id: Some(5), ..message(4, ChatRef::from_telegram(7)) });
    assert_eq!(scene.due(), ["2 messages in chat 7", "1 message from the terminal", "1 message in chat 7"]);
    let ids = scene.reasons().into_iter().map(|reason| match reason {
        Reason::Messages { thread_id, ids, .. } => (thread_id, ids),
        other => panic!("{other:?}"),
    });
    assert_eq!(ids.collect::<Vec<_>>(), [(None, vec![1, 3]), (None, vec![2]), (Some(5), vec![4])]);
    scene.model = scene.model.out_of_reach();
    assert_eq!(scene.reasons(), []);
}

#[test]
fn new_messages_join_their_chats_cycle_unless_another_cycle_holds_them() {
    let scene = scene();
    let mut waiting = open_cycle("waits", CycleState::Waiting, None);
    let mut running = open_cycle("runs", CycleState::Running, None);
    (waiting.cycle.chat, running.cycle.chat) = (Some(ChatRef::from_telegram(7)), Some(ChatRef::from_telegram(7)));
    let taken = |id, by: &str| Incoming { cycle_id: Some(by.to_owned()), ..message(id, ChatRef::from_telegram(7)) };
    let topic = Incoming { thread_id: Some(5), ..message(6, ChatRef::from_telegram(7)) };
    let queued = [
        taken(1, "runs"),
        taken(2, "waits"),
        taken(3, "ended"),
        message(4, ChatRef::from_telegram(8)),
        message(5, ChatRef::from_telegram(7)),
        topic,
    ];
    let open = [waiting, running.clone()];
    let joining = list_new_messages(&queued, &running.cycle, None, &[1], &open, &scene.model, scene.now);
    assert_eq!(joining.iter().map(|message| message.id).collect::<Vec<_>>(), [3, 5]);
}

#[test]
fn a_flood_is_taken_up_in_bounded_portions() {
    let mut scene = scene();
    scene.messages = (0..200).map(|id| message(id, ChatRef::from_telegram(7))).collect();
    assert_eq!(scene.due(), [format!("{MAX_MESSAGES} messages in chat 7")]);
}

#[test]
fn a_message_that_this_model_cannot_answer_waits_for_another() {
    let mut scene = scene();
    scene.messages = vec![Incoming { held_for: Some("claude".to_owned()), ..message(1, ChatRef::from_telegram(7)) }];
    assert_eq!(scene.reasons(), []);
    scene.model = ModelState::for_model("claude-next");
    assert_eq!(scene.reasons().len(), 1);
}

#[test]
fn a_message_in_back_off_is_due_when_that_ends() {
    let mut scene = scene();
    scene.messages =
        vec![Incoming { not_before: Some(scene.now + TimeDelta::minutes(1)), ..message(1, ChatRef::from_telegram(7)) }];
    assert_eq!(scene.reasons(), []);
    assert_eq!(scene.later(1).reasons().len(), 1);
}

#[test]
fn messages_held_by_an_open_cycle_are_left_to_it() {
    let mut scene = scene();
    scene.messages = vec![Incoming { cycle_id: Some("c1".to_owned()), ..message(1, ChatRef::from_telegram(7)) }];
    assert_eq!(scene.reasons().len(), 1, "that cycle has ended");
    let wait = scene.now + TimeDelta::minutes(5);
    scene.open_cycles = vec![open_cycle("c1", CycleState::Waiting, Some(wait))];
    assert_eq!(scene.reasons(), []);
}

#[test]
fn a_crashed_cycle_is_resumed_at_once_and_a_waiting_one_when_the_model_is_back() {
    let mut scene = scene();
    let wait = scene.now + TimeDelta::minutes(5);
    scene.model = scene.model.out_of_reach();
    scene.open_cycles =
        vec![open_cycle("crashed", CycleState::Running, None), open_cycle("waits", CycleState::Waiting, Some(wait))];
    assert_eq!(scene.due(), ["resume crashed"]);
    assert_eq!(scene.later(5).due(), ["resume crashed"]);
    scene.model = ModelState::for_model("claude");
    assert_eq!(scene.due(), ["resume crashed", "resume waits"]);
    let crashed: Vec<bool> = scene
        .reasons()
        .into_iter()
        .map(|reason| match reason {
            Reason::Resume { has_crashed, .. } => has_crashed,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(crashed, [true, false]);
}

#[test]
fn a_reminder_is_due_at_its_instant_whatever_the_model_does() {
    let mut scene = scene();
    scene.model = scene.model.out_of_reach();
    scene.quiet_hours = Some(QuietHours { from: NaiveTime::MIN, until: NaiveTime::from_hms_opt(23, 59, 0).unwrap() });
    scene.reminders = vec![reminder(4, scene.now + TimeDelta::minutes(1))];
    assert_eq!(scene.reasons(), []);
    assert_eq!(scene.later(1).due(), ["reminder 4"]);
}

#[test]
fn a_tasks_own_time_and_its_decay_are_due_once_each() {
    let mut scene = scene();
    scene.tasks = tasks(ACTIVE);
    assert_eq!(scene.due(), ["task \"Garden\" has its next step now", "task \"Tax return\" is quiet: challenge"]);
    let key = |reason: &Reason| match reason {
        Reason::Task { key, .. } | Reason::Decay { key, .. } => key.clone(),
        other => panic!("{other:?}"),
    };
    let keys: Vec<String> = scene.reasons().iter().map(key).collect();
    assert_eq!(keys, ["at/Garden/2026-11-21 15:00", "decay/Tax return/2026-11-11/challenge"]);
    scene.handled.extend(keys);
    assert_eq!(scene.reasons(), []);
    scene.later(4 * 24 * 60);
    assert_eq!(scene.due(), ["task \"Tax return\" is quiet: decide"], "the next line is another reason");
    scene.tasks = tasks(&ACTIVE.replace("2026-11-21 15:00", "2026-11-22 08:00").replace("2026-11-11", "2026-11-24"));
    assert_eq!(
        scene.due(),
        ["task \"Garden\" has its next step now, late: it was due Sun 22 Nov 08:00"],
        "a new time is another reason"
    );
    scene.model = scene.model.out_of_reach();
    assert_eq!(scene.reasons(), []);
}

#[test]
fn a_tasks_time_is_its_local_time() {
    let check = |at: &str, utc: Option<&str>| {
        assert_eq!(
            reveille_base::schedule::task_time(at, "Europe/Berlin".parse::<Tz>().unwrap()),
            utc.map(|utc| parse_time(utc).unwrap()),
            "{at}"
        );
    };
    check("2026-11-23 09:00", Some("2026-11-23T08:00:00Z"));
    check(" 2026-07-01T09:00 ", Some("2026-07-01T07:00:00Z"));
    check("2026-11-23", Some("2026-11-23T08:00:00Z"));
    check("2026-11-23T09:00:00Z", Some("2026-11-23T09:00:00Z"));
    check("2026-03-29 02:30", Some("2026-03-29T01:30:00Z")); // skipped: 03:30 there
    check("2026-10-25 02:30", Some("2026-10-25T00:30:00Z")); // doubled: the first
    for unclear in ["", "soon", "2026-02-30", "09:00", "2026-13-01 09:00"] {
        check(unclear, None);
    }
}

#[test]
fn decay_waits_for_the_end_of_quiet_hours_over_midnight_too() {
    let mut scene = scene();
    scene.tasks = tasks("## Tax return\n- touched: 2026-11-11\n");
    let time = |hour| NaiveTime::from_hms_opt(hour, 0, 0).unwrap();
    scene.quiet_hours = Some(QuietHours { from: time(22), until: time(8) });
    // Berlin is an hour ahead of UTC: 15:00, 21:59, 22:00, 00:30, 07:59, 08:00.
    for (utc, is_due) in [
        ("2026-11-21T14:00:00Z", true),
        ("2026-11-21T20:59:00Z", true),
        ("2026-11-21T21:00:00Z", false),
        ("2026-11-21T23:30:00Z", false),
        ("2026-11-22T06:59:00Z", false),
        ("2026-11-22T07:00:00Z", true),
    ] {
        scene.now = parse_time(utc).unwrap();
        assert_eq!(!scene.reasons().is_empty(), is_due, "{utc}");
    }
}

#[test]
fn days_are_counted_on_the_persons_calendar() {
    let mut scene = scene();
    scene.tasks = tasks("## Tax return\n- touched: 2026-11-15\n");
    scene.now = parse_time("2026-11-21T22:59:00Z").unwrap();
    assert_eq!(scene.reasons(), [], "23:59 in Berlin: six days");
    assert_eq!(scene.later(1).due(), ["task \"Tax return\" is quiet: nudge"]);
}

#[test]
fn a_persons_commits_are_a_reason_for_a_model_that_can_be_asked() {
    let mut scene = scene();
    let commit = |subject: &str| ("0123".to_owned(), subject.to_owned());
    scene.person_commits = vec![commit("tidy up (Ann)"), commit("more (Ann)")];
    assert_eq!(scene.due(), ["2 commits by a person"]);
    scene.model = scene.model.out_of_reach();
    assert_eq!(scene.reasons(), []);
    scene.model = ModelState::for_model("offline");
    assert_eq!(scene.due(), ["2 commits by a person"], "by rule they can be noted at any time");
}

fn messages_of(chat: ChatRef) -> Reason {
    Reason::Messages { chat, thread_id: None, ids: vec![1] }
}

fn decay() -> Reason {
    Reason::Decay { title: "t".to_owned(), stage: Stage::Nudge, key: "k".to_owned() }
}

fn resume(id: &str) -> Reason {
    Reason::Resume { cycle_id: id.to_owned(), has_crashed: true }
}

#[test]
fn interrupted_work_comes_first_then_rules_then_one_chat() {
    const OWNER: i64 = 7;
    let thinking = scene().model;
    let offline = ModelState::for_model("offline");
    let remind = || Reason::Reminder { id: 1 };
    assert_eq!(choose(Vec::new(), &thinking, ChatRef::from_telegram(OWNER)), None);
    let work = choose(
        vec![resume("a"), resume("b"), remind(), messages_of(ChatRef::from_telegram(OWNER))],
        &thinking,
        ChatRef::from_telegram(OWNER),
    );
    assert!(matches!(work, Some(Work::Resume { cycle_id, has_crashed: true }) if cycle_id == "a"));
    assert_eq!(
        choose(
            vec![remind(), messages_of(ChatRef::from_telegram(OWNER)), decay()],
            &thinking,
            ChatRef::from_telegram(OWNER)
        ),
        Some(Work::Mechanical(vec![remind()]))
    );
    assert_eq!(
        choose(
            vec![remind(), messages_of(ChatRef::from_telegram(OWNER)), decay()],
            &offline,
            ChatRef::from_telegram(OWNER)
        ),
        Some(Work::Mechanical(vec![remind(), decay()])),
        "what nobody asked for is done by rule without a thinking mind"
    );
    assert_eq!(
        choose(
            vec![messages_of(ChatRef::from_telegram(OWNER)), messages_of(ChatRef::from_telegram(8)), decay()],
            &thinking,
            ChatRef::from_telegram(OWNER)
        ),
        Some(Work::Think { reasons: vec![messages_of(ChatRef::from_telegram(OWNER)), decay()] })
    );
    assert_eq!(
        choose(
            vec![messages_of(ChatRef::from_telegram(8)), messages_of(ChatRef::from_telegram(OWNER)), decay()],
            &thinking,
            ChatRef::from_telegram(OWNER)
        ),
        Some(Work::Think { reasons: vec![messages_of(ChatRef::from_telegram(8))] }),
        "another chat never sees the owner's affairs"
    );
    assert_eq!(
        choose(vec![decay()], &thinking, ChatRef::from_telegram(OWNER)),
        Some(Work::Think { reasons: vec![decay()] })
    );
}

#[test]
fn counts_read_well() {
    assert_eq!(format_count(1, "message"), "1 message");
    assert_eq!(format_count(0, "message"), "0 messages");
    assert_eq!(format_count(2, "commit by a person"), "2 commits by a person");
}

#[test]
fn messages_by_rule_stay_within_the_days_limit() {
    let mut scene = scene();
    scene.tasks = tasks(ACTIVE);
    let thought_about = scene.due().len();
    assert!(thought_about > 1);
    scene.tells_left = 1;
    assert_eq!(scene.due().len(), thought_about, "a mind that thinks counts for itself");
    scene.model = ModelState::for_model("offline");
    assert_eq!(scene.due().len(), 1);
    scene.tells_left = 0;
    assert_eq!(scene.due(), Vec::<String>::new());
}

#[test]
fn a_tasks_time_that_was_missed_is_done_late_left_out_or_told() {
    let mut scene = scene();
    let task = |missed: &str| format!("## {missed}\n- at: 2026-11-21 15:00\n- next: look\n- missed: {missed}\n");
    scene.tasks = tasks(&["run", "skip", "tell", "perhaps"].map(task).join("\n"));
    let now = |name: &str| format!("task {name:?} has its next step now");
    let missed = |name: &str| format!("task {name:?} missed its time");
    assert_eq!(scene.later(30).due(), ["run", "skip", "tell", "perhaps"].map(now), "a little late is met");
    let late = |name: &str| format!("{}, late: it was due Sat 21 Nov 15:00", now(name));
    assert_eq!(scene.later(1).due(), [late("run"), late("perhaps"), missed("skip"), missed("tell")]);
    scene.tells_left = 0;
    assert_eq!(scene.due(), [late("run"), late("perhaps"), missed("skip")], "the rest is told tomorrow");
    let reasons = scene.reasons();
    let Some(Work::Mechanical(chosen)) = choose(reasons, &scene.model, ChatRef::from_telegram(7)) else {
        panic!("leaving out needs no mind")
    };
    assert_eq!(chosen.iter().map(Reason::describe).collect::<Vec<_>>(), [missed("skip")]);
}

#[test]
fn a_time_in_quiet_hours_is_due_when_they_end() {
    let mut scene = scene();
    scene.model = ModelState::for_model("offline");
    let time = |hour| NaiveTime::from_hms_opt(hour, 0, 0).unwrap();
    scene.quiet_hours = Some(QuietHours { from: time(22), until: time(8) });
    for at in ["2026-11-21 23:00", "2026-11-22 03:00"] {
        scene.tasks = tasks(&format!("## Bread\n- at: {at}\n- missed: skip\n"));
        for (now, expected) in [
            ("2026-11-22T02:30:00Z", vec![]),
            ("2026-11-22T07:29:00Z", vec!["task \"Bread\" has its next step now"]),
            ("2026-11-22T07:31:00Z", vec!["task \"Bread\" missed its time"]),
        ] {
            scene.now = parse_time(now).unwrap();
            assert_eq!(scene.due(), expected, "{at} at {now}");
        }
    }
}

#[test]
fn a_message_whose_files_are_on_their_way_or_that_is_gone_is_not_begun() {
    let now = parse_time("2026-11-21T14:00:00Z").unwrap();
    let message = |id, awaits_files| Incoming {
        id,
        chat: ChatRef::from_telegram(7),
        received_at: Some(now),
        awaits_files,
        ..Incoming::default()
    };
    let model = scene().model;
    let queued = [message(1, false), message(2, true)];
    assert_eq!(find_still_due(&queued, &[1], &model, now).unwrap().len(), 1);
    assert_eq!(find_still_due(&queued, &[], &model, now).unwrap().len(), 0);
    for ids in [[1, 2], [1, 3]] {
        assert_eq!(find_still_due(&queued, &ids, &model, now), None, "{ids:?}");
    }
}

const GUESTS: &str = "\
## Boat\n- status: active\n- touched: 2026-11-11\n- chat: 5555\n\n\
## Oars\n- status: active\n- touched: 2026-11-21\n- at: 2026-11-21 15:00\n- chat: 5555\n\n\
## Tent\n- status: active\n- touched: 2026-11-11\n- chat: 66\n\n\
## Mine\n- status: active\n- touched: 2026-11-11\n- chat: 7\n";

#[test]
fn a_guests_task_is_told_to_the_guest_by_rule_and_to_nobody_else() {
    let mut scene = scene();
    scene.tasks = TaskList::parse(GUESTS).0.tasks().to_vec();
    scene.guests = BTreeMap::from([(ChatRef::from_telegram(5555), 3)]);
    let theirs = ["task \"Oars\" has its next step now (chat 5555)", "task \"Boat\" is quiet: challenge (chat 5555)"];
    let mine = "task \"Mine\" is quiet: challenge";
    // Chat 66 is no longer allowed; 7 is the owner.
    assert_eq!(scene.due(), [theirs[0], theirs[1], mine]);
    let (reasons, model) = (scene.reasons(), scene.model.clone());
    let Some(Work::Mechanical(by_rule)) = choose(reasons, &model, ChatRef::from_telegram(7)) else { panic!() };
    assert!(
        by_rule.len() == 2
            && by_rule.iter().all(|reason| matches!(reason, Reason::OfGuest { chat: ChatRef { id: 5555, .. }, .. }))
    );
    // Independent of the model's state, but within the daily limit per guest and outside quiet hours.
    scene.model = scene.model.out_of_reach();
    assert_eq!(scene.due(), theirs);
    scene.guests = BTreeMap::from([(ChatRef::from_telegram(5555), 1)]);
    assert_eq!(scene.due(), theirs[..1]);
    scene.handled.insert(by_rule[0].handled_key().unwrap());
    assert_eq!(scene.due(), theirs[1..]);
    scene.quiet_hours = Some(QuietHours {
        from: NaiveTime::from_hms_opt(14, 0, 0).unwrap(),
        until: NaiveTime::from_hms_opt(16, 0, 0).unwrap(),
    });
    assert_eq!(scene.due(), [""; 0]);
}

fn reflection_cycle(id: &str) -> CycleRow {
    let mut row = open_cycle(id, CycleState::Running, None);
    row.cycle.reasons = vec![format!("{REFLECTION} 2026-11-20")];
    row
}

#[test]
fn an_interrupted_reflection_waits_for_messages_and_for_tasks() {
    let mut scene = scene();
    scene.open_cycles = vec![reflection_cycle("back"), open_cycle("crashed", CycleState::Running, None)];
    scene.messages = vec![message(1, ChatRef::from_telegram(7))];
    scene.tasks = TaskList::parse(ACTIVE).0.tasks().to_vec();
    let due = scene.due();
    assert_eq!((due.first().unwrap().as_str(), due.last().unwrap().as_str()), ("resume crashed", "resume back"));
    assert!(is_any_due(&scene.messages, &scene.open_cycles, &scene.model, scene.now));
    scene.open_cycles.pop();
    let (reasons, model) = (scene.reasons(), scene.model.clone());
    let Some(Work::Think { reasons }) = choose(reasons, &model, ChatRef::from_telegram(7)) else { panic!() };
    assert!(!reasons.iter().any(|reason| matches!(reason, Reason::Resume { .. })), "{reasons:?}");
    (scene.messages, scene.tasks) = (Vec::new(), Vec::new());
    assert!(!is_any_due(&scene.messages, &scene.open_cycles, &scene.model, scene.now));
    let (reasons, model) = (scene.reasons(), scene.model.clone());
    let work = choose(reasons, &model, ChatRef::from_telegram(7));
    assert!(matches!(work, Some(Work::Resume { cycle_id, .. }) if cycle_id == "back"));
}

#[test]
fn while_a_reflection_is_parked_no_other_starts() {
    let mut scene = scene();
    let day = |day| chrono::NaiveDate::from_ymd_opt(2026, 11, day).unwrap();
    scene.to_reflect = Some(day(19)..day(21));
    assert_eq!(scene.reasons().len(), 1);
    let parked = CycleRow { asks_until: Some(scene.now + TimeDelta::days(1)), ..reflection_cycle("parked") };
    scene.open_cycles = vec![parked];
    assert_eq!(scene.reasons(), []);
}

#[test]
fn only_the_machine_on_duty_does_unasked_work() {
    let mut scene = scene();
    scene.tasks = tasks(ACTIVE);
    scene.to_reflect = Some(scene.now.date_naive().pred_opt().unwrap()..scene.now.date_naive());
    scene.person_commits = vec![("a".to_owned(), "Mine (Ann)".to_owned())];
    assert!(!scene.due().is_empty());
    scene.is_on_duty = false;
    assert_eq!(scene.due(), [""; 0]);
    // Messages that arrive here are answered here, and reminders belong to this machine.
    scene.messages = vec![message(1, ChatRef::from_telegram(7))];
    assert_eq!(scene.due(), ["1 message in chat 7"]);
}

#[test]
fn an_answer_comes_before_many_reminders_and_then_they_come_a_few_at_a_time() {
    let reminders = |n: i64| (1..=n).map(|id| Reason::Reminder { id });
    let answer = Reason::Messages { chat: ChatRef::from_telegram(7), thread_id: None, ids: vec![1] };
    let few: Vec<Reason> = reminders(50).chain([answer.clone()]).collect();
    assert_eq!(without_backlog(few.clone(), Backlog::GivesWay), (few, false));
    let many: Vec<Reason> = reminders(2_000).chain([answer.clone()]).collect();
    assert_eq!(without_backlog(many.clone(), Backlog::GivesWay), (vec![answer.clone()], true));
    let some: Vec<Reason> = reminders(50).chain([answer]).collect();
    assert_eq!(without_backlog(many, Backlog::HasTurn), (some, true));
    assert_eq!(without_backlog(reminders(60).collect(), Backlog::GivesWay), (reminders(50).collect(), true));
}

#[test]
fn a_tasks_last_day_speaks_on_it_and_once_when_it_is_over() {
    let mut scene = scene();
    scene.tasks =
        tasks("## Passport\n- due: 2026-11-22\n- next: the photos\n\n## Rest\n- status: paused\n- due: 2026-11-22\n");
    let mut said = Vec::new();
    // Berlin is an hour ahead of UTC: 07:59, 08:00, 12:00, and so on the next days.
    for day in 21..26 {
        for time in ["06:59", "07:00", "11:00"] {
            scene.now = parse_time(&format!("2026-11-{day}T{time}:00Z")).unwrap();
            for reason in scene.reasons() {
                said.push((format!("{day} {time}"), reason.handled_key().unwrap()));
                scene.handled.extend(reason.handled_key());
            }
        }
    }
    let keys = [("22 07:00", "due/Passport/2026-11-22"), ("23 07:00", "due/Passport/2026-11-22/missed")];
    assert_eq!(said, keys.map(|(at, key)| (at.to_owned(), key.to_owned())));

    // An unreachable model doesn't stop the reminder of a missed due date; an exhausted daily limit does.
    scene.handled.clear();
    scene.now = parse_time("2026-11-23T11:00:00Z").unwrap();
    scene.model = scene.model.out_of_reach();
    assert_eq!(scene.due(), ["task \"Passport\" must be done by 2026-11-22"]);
    scene.tells_left = 0;
    assert_eq!(scene.due(), [""; 0]);
}

#[test]
fn a_task_touched_on_its_last_day_is_mentioned_in_the_evening() {
    let mut scene = scene();
    scene.tasks = tasks("## Passport\n- touched: 2026-11-21\n- due: 2026-11-21\n");
    assert_eq!(scene.due(), [""; 0]);
    scene.now = parse_time("2026-11-21T16:00:00Z").unwrap();
    assert_eq!(scene.due().len(), 1);
    // A due task isn't also called quiet.
    scene.tasks = tasks("## Passport\n- touched: 2026-11-01\n- due: 2026-11-21\n");
    assert_eq!(scene.due(), ["task \"Passport\" must be done by 2026-11-21"]);
}
