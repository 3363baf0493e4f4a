use std::collections::BTreeSet;

use super::*;
use crate::{
    store::{NewApproval, Reservation, Spent, Undo, UpkeepKind},
    types::ChatRef,
};

#[test]
fn each_holder_gets_the_next_fence_and_is_written_down() {
    let mut world = World::new();
    let first = world.fence;
    let second = world.store.take_lease(&dead(), at(5)).unwrap();
    assert!(second > first);
    let holder = world.store.holder().unwrap().unwrap();
    assert_eq!((holder.fence, holder.is_locked, holder.locked_at), (second, true, Some(at(5))));
    assert_eq!(holder.identity, Some(dead()));
    world.store.release_lease(first).unwrap();
    assert!(world.store.holder().unwrap().unwrap().is_locked, "the one who lost it can't free it");
    world.store.release_lease(second).unwrap();
    let holder = world.store.holder().unwrap().unwrap();
    assert_eq!((holder.is_locked, holder.locked_at, holder.identity), (false, None, None));
}

/// Every verb of a wake, as (name, call).
type Verb = fn(&mut Store, Fence) -> Result<()>;

fn verbs() -> Vec<(&'static str, Verb)> {
    vec![
        ("begin_cycle", |s, f| s.begin_cycle(f, &cycle("c2"), &[Entry::Asked], &[], at(9))),
        ("begin_by_rule", |s, f| s.begin_by_rule(f, &cycle("c4"), &Entry::Asked, &[], &[], at(9)).map(drop)),
        ("begin_cycle_on", |s, f| s.begin_cycle_on(f, &cycle("c3"), &Entry::Asked, &[], at(9)).map(drop)),
        ("send_to_owner", |s, f| s.send_to_owner(f, ChatRef::telegram(7))),
        ("join", |s, f| s.join(f, "c1", &Entry::Asked, &[], at(9)).map(drop)),
        ("record_all", |s, f| s.record_all(f, "c1", &[Entry::Asked], &[], at(9))),
        ("record", |s, f| {
            s.record(f, "c1", &Entry::Asked, &[Change::Send(outgoing(ChatRef::telegram(7), "x"))], at(9))
        }),
        ("change", |s, f| s.change(f, "c1", &[Change::Send(outgoing(ChatRef::telegram(7), "x"))], at(9))),
        ("resume_cycle", |s, f| s.resume_cycle(f, "c1")),
        ("pause_cycle", |s, f| s.pause_cycle(f, "c1", at(9), "why")),
        ("end_cycle", |s, f| {
            let end = CycleEnd {
                commit_id: Some("abc"),
                handled: &["k".to_owned()],
                failed_messages: &[1],
                ..CycleEnd::new(CycleState::Done)
            };
            s.end_cycle(f, "c1", &end, at(9))
        }),
        ("park_cycle", |s, f| s.park_cycle(f, "c1")),
        ("ask_approval", |s, f| {
            s.ask_approval(f, "c1", &[], &question(), |_| outgoing(ChatRef::telegram(7), "may I?"), at(9))
        }),
        ("begin_approved", |s, f| s.begin_approved(f, "c1", ("call", "bash", "{}"), &[], at(9)).map(drop)),
        ("expire_approvals", |s, f| s.expire_approvals(f, at(90_000)).map(drop)),
        ("take_back", |s, f| {
            let undo = Undo { id: 1, wake: "c1".to_owned(), chat: ChatRef::telegram(7), asked_at: None };
            s.take_back(f, &undo, "c2", |_| String::new(), at(9)).map(drop)
        }),
        ("set_next_slot", |s, f| {
            let civil = at(9).naive_utc();
            s.set_next_slot(f, 1, crate::schedule::Slot { civil, at: at(9) }, at(9))
        }),
        ("file_missing", |s, f| s.file_missing(f, 1, at(9))),
        ("forget_files", |s, f| s.forget_files(f, &["a.jpg".to_owned()])),
        ("forget", |s, f| s.forget(f, at(9), 10).map(drop)),
        ("reserve", |s, f| s.reserve(f, ("c1", "m"), 0.0, &[], at(9)).map(drop)),
        ("bring_along", |s, f| s.bring_along(f, Reservation(1), &Spent::default())),
        ("settle", |s, f| s.settle(f, "c1", (Reservation(1), &Spent::default(), false), &[], at(9))),
        ("upkeep_recovered", |s, f| s.upkeep_recovered(f, UpkeepKind::Parked, at(9))),
        ("upkeep_ok", |s, f| s.upkeep_ok(f, UpkeepKind::Push, at(9))),
        ("upkeep_failed", |s, f| s.upkeep_failed(f, UpkeepKind::Push, "why", None, at(9)).map(drop)),
        ("set_handled", |s, f| s.set_handled(f, "k", "v", at(9))),
        ("recover_outbox", |s, f| s.recover_outbox(f, at(9)).map(drop)),
        ("note_cut_off", |s, f| s.note_cut_off(f, "c1", &[], None, at(9))),
        ("count_try", |s, f| s.count_try(f, "c1")),
        ("note_trouble", |s, f| s.note_trouble(f, "c1", "why")),
        ("note_repair", |s, f| s.note_repair(f, "lock", "freed it", at(9))),
        ("tell", |s, f| s.tell(f, &outgoing(ChatRef::telegram(7), "x"), at(9)).map(drop)),
        ("claim_part_of_wake", |s, f| s.claim_part_of_wake(f, Pick::default(), &me(), at(9)).map(drop)),
    ]
}

fn question() -> NewApproval {
    NewApproval {
        call: "call".to_owned(),
        tool: "bash".to_owned(),
        action: "{}".to_owned(),
        verdict: crate::policy::Verdict::denied("a test"),
        origin: None,
        approver: None,
        nonce: "n".to_owned(),
        expires_at: at(86_400),
    }
}

/// The names of the verbs that say whose fence they are done under, as the sources have them.
fn fenced_by_source() -> BTreeSet<String> {
    let mut folders = vec![std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store")];
    let mut files: Vec<std::path::PathBuf> = Vec::new();
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let (inner, found): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
        folders.extend(inner.into_iter().filter(|folder| !folder.ends_with("tests")));
        files.extend(found.into_iter().filter(|file| file.extension().is_some_and(|ending| ending == "rs")));
    }
    let sources = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect::<Vec<_>>().join("\n");
    let heads = sources.split("pub fn ").skip(1).filter_map(|rest| rest.split_once('{').map(|(head, _)| head));
    let fenced = heads.filter(|head| head.contains("fence: Fence"));
    fenced.map(|head| head.split(['(', '<']).next().unwrap().to_owned()).collect()
}

#[test]
fn no_verb_of_a_wake_is_left_out_here() {
    let mut tried: BTreeSet<String> = verbs().iter().map(|(name, _)| (*name).to_owned()).collect();
    // Who lost the lease frees nothing by it: a test of its own.
    tried.insert("release_lease".to_owned());
    assert_eq!(fenced_by_source(), tried);
}

/// All that a wake could have changed, as text.
fn contents(world: &World) -> String {
    let mut all = String::new();
    for table in [
        "incoming_messages",
        "outgoing_messages",
        "outgoing_parts",
        "cycles",
        "cycle_journal",
        "cycle_files",
        "taken_up",
        "reminders",
        "reminder_firings",
        "ledger",
        "upkeep",
        "handled",
        "repairs",
        "approvals",
        "attachments",
        "undos",
    ] {
        let mut statement = world.store.conn.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            for column in 0..columns {
                all.push_str(&format!("{table}.{column}={:?};", row.get_ref(column).unwrap()));
            }
        }
    }
    all
}

#[test]
fn a_lost_fence_refuses_every_verb_and_changes_nothing() {
    let mut world = World::new();
    world.store.say(ChatRef::telegram(7), "hello", at(0)).unwrap();
    world.begin("c1");
    world.plan(ChatRef::telegram(7), "in doubt");
    world.store.claim_part(Pick::default(), &dead(), at(0)).unwrap();
    world.by_hand(
        "INSERT INTO undos (id, wake, asked_at, chat_id) VALUES (1, 'c1', '', 7);
         INSERT INTO upkeep (name, failures, error) VALUES ('parked', 1, 'why')",
    );
    let lost = world.fence;
    let held = world.store.take_lease(&me(), at(1)).unwrap();
    let before = contents(&world);
    for (name, verb) in verbs() {
        let error = verb(&mut world.store, lost).unwrap_err();
        assert!(
            matches!(error, StoreError::LeaseLost { held: h, now } if (Fence(h), Fence(now)) == (lost, held)),
            "{name}: {error}"
        );
        assert_eq!(contents(&world), before, "{name}");
    }
    for (name, verb) in verbs() {
        verb(&mut world.store, held).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    assert_ne!(contents(&world), before);
}

#[test]
fn what_waits_follows_a_clock_that_is_set_back_and_what_was_asked_for_is_kept() {
    const FAST_S: i64 = 3 * 3_600;
    let mut world = World::new();
    world.fence = world.store.take_lease(&me(), at(FAST_S)).unwrap();
    let longer_s = |asked_s: i64| TimeDelta::seconds(FAST_S + asked_s);
    for (chat, wait_s) in [(7, 30), (8, 7_200)] {
        world.plan(ChatRef::telegram(chat), &format!("for {chat}"));
        let claimed = world.store.claim_part(Pick::default(), &me(), at(FAST_S)).unwrap().unwrap();
        let later = PartOutcome::Later { not_before: at(0) + longer_s(wait_s), why: "as asked".to_owned() };
        world.store.settle_part(&claimed, &later, at(FAST_S)).unwrap();
    }
    world.store.upkeep_failed(world.fence, UpkeepKind::Push, "no network", None, at(FAST_S + 5)).unwrap();
    world.by_hand(
        "INSERT INTO incoming_messages (chat_id, message_text, not_before) VALUES (7, 'tried once', '2026-11-21T17:00:30.000Z')",
    );

    // A little later, by the right clock.
    assert!(world.store.is_set_back(at(10)).unwrap());
    world.store.take_lease(&me(), at(10)).unwrap();
    assert!(!world.store.is_set_back(at(10)).unwrap());
    world.fence = world.store.take_lease(&me(), at(10)).unwrap();
    assert_eq!(world.value::<String>("SELECT not_before FROM incoming_messages"), "2026-11-21T14:00:40.000Z");
    assert_eq!(world.store.upkeep(UpkeepKind::Push).unwrap().not_before, Some(at(45)));
    assert_eq!(world.deliver_all(39), [""; 0]);
    assert_eq!(world.deliver_all(40), ["for 7"]);
    assert_eq!(world.deliver_all(7_209), [""; 0], "it would be too soon for whoever asked to be left alone");
    assert_eq!(world.deliver_all(7_210), ["for 8"]);

    // What was written by the right clock stays.
    world.store.upkeep_failed(world.fence, UpkeepKind::Push, "no network", None, at(20)).unwrap();
    world.store.take_lease(&me(), at(15)).unwrap();
    assert_eq!(world.store.upkeep(UpkeepKind::Push).unwrap().not_before, Some(at(80)));
}
