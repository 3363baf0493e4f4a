use std::collections::BTreeSet;

use reveille_base::types::{BoundFiles, ChatRef};

use super::*;
use crate::{HeldInRows, ModelFault, NewApproval, Reservation, Spent, Undo, UpkeepKind};

#[test]
fn each_holder_gets_the_next_fence_and_is_written_down() {
    let mut world = World::new();
    let first = world.fence;
    let second = world.store.take_lease(&dead(), at(5)).unwrap();
    assert!(second > first);
    let holder = world.store.find_lease_holder().unwrap().unwrap();
    assert_eq!((holder.fence, holder.is_locked, holder.locked_at), (second, true, Some(at(5))));
    assert_eq!(holder.identity, Some(dead()));
    world.held_by(first, at(6)).release_lease().unwrap();
    assert!(world.store.find_lease_holder().unwrap().unwrap().is_locked, "the one who lost it can't free it");
    world.held_by(second, at(6)).release_lease().unwrap();
    let holder = world.store.find_lease_holder().unwrap().unwrap();
    assert_eq!((holder.is_locked, holder.locked_at, holder.identity), (false, None, None));
}

/// Every verb of a wake, as (name, call).
type Verb = fn(&mut FencedStore<'_>) -> Result<()>;

fn verbs() -> Vec<(&'static str, Verb)> {
    vec![
        ("begin_cycle", |s| s.cycles_mut().begin_cycle(&cycle("c2"), &[Entry::Asked], &[])),
        ("begin_by_rule", |s| s.cycles_mut().begin_by_rule(&cycle("c4"), &Entry::Asked, &[], &[]).map(drop)),
        ("begin_message_cycle", |s| s.cycles_mut().begin_message_cycle(&cycle("c3"), &Entry::Asked, &[]).map(drop)),
        ("send_to_owner", |s| s.terminals_mut().send_to_owner(ChatRef::from_telegram(7))),
        ("append_messages", |s| s.cycles_mut().append_messages("c1", &Entry::Asked, &[]).map(drop)),
        ("record_all", |s| s.journal_mut().record_all("c1", &[Entry::Asked], &[])),
        ("record_entry", |s| {
            s.journal_mut().record_entry("c1", &Entry::Asked, &[Change::Send(outgoing(ChatRef::from_telegram(7), "x"))])
        }),
        ("apply_changes", |s| {
            s.journal_mut().apply_changes("c1", &[Change::Send(outgoing(ChatRef::from_telegram(7), "x"))])
        }),
        ("resume_cycle", |s| s.cycles_mut().resume_cycle("c1")),
        ("pause_cycle", |s| s.cycles_mut().pause_cycle("c1", at(9), "why")),
        ("end_cycle", |s| {
            let end = CycleEnd {
                commit_id: Some("abc"),
                handled: &["k".to_owned()],
                failed_messages: &[1],
                ..CycleEnd::new(CycleState::Done)
            };
            s.cycles_mut().end_cycle("c1", &end)
        }),
        ("park_cycle", |s| s.approvals_mut().park_cycle("c1")),
        ("ask_approval", |s| {
            s.approvals_mut().ask_approval("c1", &[], &question(), |_| outgoing(ChatRef::from_telegram(7), "may I?"))
        }),
        ("begin_approved_call", |s| {
            let action = ApprovedAction { call: "call", tool: "bash", action: "{}" };
            s.approvals_mut().begin_approved_call("c1", action, &[]).map(drop)
        }),
        ("expire_approvals", |s| s.approvals_mut().expire_approvals().map(drop)),
        ("take_back", |s| {
            let undo = Undo { id: 1, wake: "c1".to_owned(), chat: ChatRef::from_telegram(7), asked_at: None };
            s.undos_mut().take_back(&undo, "c2", |_| String::new()).map(drop)
        }),
        ("set_next_slot", |s| {
            let civil = at(9).naive_utc();
            s.reminders_mut().set_next_slot(1, reveille_base::schedule::Slot { civil, at: at(9) })
        }),
        ("plan_jobs", |s| s.jobs_mut().plan_jobs(&[], ("k", "v"))),
        ("set_next_job_slot", |s| s.jobs_mut().set_next_job_slot("a", None)),
        ("record_job_look", |s| {
            let run = NewJobRun { slot: None, state: JobState::Nothing, found: None, output: None };
            let name = "a".to_owned();
            s.jobs_mut().record_job_look(&JobLook {
                name,
                next: None,
                runs: vec![run],
                seen: None,
                ended: None,
                message: None,
            })
        }),
        ("say_held_job_messages", |s| s.jobs_mut().say_held_job_messages().map(drop)),
        ("fail_lost_job_runs", |s| s.jobs_mut().fail_lost_job_runs().map(drop)),
        ("record_missing_file", |s| s.attachments_mut().record_missing_file(1)),
        ("forget_words", |s| s.retention_mut().forget_words(&HeldInRows::default(), &|_, _| false).map(drop)),
        ("put_request_vectors", |s| s.recordings_mut().put_request_vectors("m", &[(1, vec![1.0])])),
        ("forget_files", |s| s.attachments_mut().forget_files(&["a.jpg".to_owned()])),
        ("delete_old_rows", |s| s.retention_mut().delete_old_rows(at(9), 10).map(drop)),
        ("reserve_cost", |s| s.ledger_mut().reserve_cost(("c1", "m"), 0.0, &[]).map(drop)),
        ("bring_along", |s| s.ledger_mut().bring_along(Reservation(1), &Spent::default())),
        ("settle_reservation", |s| {
            s.ledger_mut().settle_reservation("c1", &Settlement::kept(Reservation(1), Spent::default()), &[])
        }),
        ("clear_proposal_branch", |s| s.proposals_mut().clear_proposal_branch(1)),
        ("record_upkeep_recovery", |s| s.maintenance_mut().record_upkeep_recovery(UpkeepKind::Parked)),
        ("upkeep_ok", |s| s.maintenance_mut().upkeep_ok(UpkeepKind::Push)),
        ("record_upkeep_failure", |s| {
            s.maintenance_mut().record_upkeep_failure(UpkeepKind::Push, "why", None).map(drop)
        }),
        ("record_model_failure", |s| s.maintenance_mut().record_model_failure("m", ModelFault::Outage, "why", None)),
        ("record_model_answer", |s| s.maintenance_mut().record_model_answer("m")),
        ("set_handled_value", |s| s.maintenance_mut().set_handled_value("k", "v")),
        ("recover_outbox", |s| s.outbox_mut().recover_outbox().map(drop)),
        ("note_cut_off", |s| s.cycles_mut().note_cut_off("c1", &[], None)),
        ("count_try", |s| s.cycles_mut().count_try("c1")),
        ("note_trouble", |s| s.cycles_mut().note_trouble("c1", "why")),
        ("note_repair", |s| s.maintenance_mut().note_repair("lock", "freed it")),
        ("rewrite_commits", |s| {
            s.undos_mut().rewrite_commits(&std::iter::once(("a".to_owned(), "b".to_owned())).collect())
        }),
        ("note_step", |s| {
            s.undos_mut().note_step(&NewStep { chat: ChatRef::TERMINAL, did: "edited a file".to_owned(), commit: None })
        }),
        ("plan_wake_message", |s| {
            s.outbox_mut().plan_wake_message(&outgoing(ChatRef::from_telegram(7), "x")).map(drop)
        }),
        ("claim_part_of_wake", |s| s.outbox_mut().claim_part_of_wake(Pick::default(), &me()).map(drop)),
    ]
}

fn question() -> NewApproval {
    NewApproval {
        call: "call".to_owned(),
        tool: "bash".to_owned(),
        action: "{}".to_owned(),
        verdict: reveille_policy::Verdict::deny("a test"),
        origin: None,
        approver: None,
        nonce: "n".to_owned(),
        expires_at: at(86_400),
        may_stand: false,
        proposal: None,
        named: BoundFiles::default(),
    }
}

/// The names of the verbs that say whose fence they are done under, as the sources have them.
fn fenced_by_source() -> BTreeSet<String> {
    let mut folders = vec![std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut files: Vec<std::path::PathBuf> = Vec::new();
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let (inner, found): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
        folders.extend(inner.into_iter().filter(|folder| !folder.ends_with("tests")));
        files.extend(found.into_iter().filter(|file| file.extension().is_some_and(|ending| ending == "rs")));
    }
    let sources = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect::<Vec<_>>().join("\n");
    // `impl FencedStore<'_> {` and `impl Area<&mut FencedStore<'_>> {`.
    let blocks = sources.split("FencedStore<'_>").skip(1).filter_map(|rest| {
        let rest = rest.strip_prefix('>').unwrap_or(rest).strip_prefix(" {\n")?;
        rest.split_once("\n}\n")
    });
    let blocks = blocks.filter(|(block, _)| !block.contains("fn write_unfenced"));
    let heads = blocks.flat_map(|(block, _)| block.split("pub fn ").skip(1));
    heads.map(|head| head.split(['(', '<']).next().unwrap().to_owned()).collect()
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
        "model_breakers",
        "handled",
        "repairs",
        "approvals",
        "attachments",
        "undos",
        "undo_line",
    ] {
        let mut statement = world.store.conn.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            for column in 0..row.column_count() {
                all.push_str(&format!("{table}.{column}={:?};", row.get_ref(column).unwrap()));
            }
        }
    }
    all
}

#[test]
fn a_lost_fence_refuses_every_verb_and_changes_nothing() {
    let mut world = World::new();
    world.store.inbox_mut().queue_message(ChatRef::from_telegram(7), "hello", at(0)).unwrap();
    world.begin("c1");
    world.plan(ChatRef::from_telegram(7), "in doubt");
    world.store.outbox_mut().claim_part(Pick::default(), &dead(), at(0)).unwrap();
    world.by_hand(
        "INSERT INTO undos (id, wake, asked_at, chat_id) VALUES (1, 'c1', '', 7);
         INSERT INTO upkeep (name, failures, error) VALUES ('parked', 1, 'why');
         INSERT INTO model_breakers (model, fault, failures, since, error) VALUES ('m', 'outage', 1, '', 'why')",
    );
    let lost = world.fence;
    let held = world.store.take_lease(&me(), at(1)).unwrap();
    let before = contents(&world);
    for (name, verb) in verbs() {
        let error = verb(&mut world.held_by(lost, at(9))).unwrap_err();
        assert!(
            matches!(error, StoreError::LeaseLost { held: h, now } if (Fence(h), Fence(now)) == (lost, held)),
            "{name}: {error}"
        );
        assert_eq!(contents(&world), before, "{name}");
    }
    for (name, verb) in verbs() {
        verb(&mut world.held_by(held, at(9))).unwrap_or_else(|error| panic!("{name}: {error}"));
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
        world.plan(ChatRef::from_telegram(chat), &format!("for {chat}"));
        let claimed = world.store.outbox_mut().claim_part(Pick::default(), &me(), at(FAST_S)).unwrap().unwrap();
        let later = PartOutcome::Later { not_before: at(0) + longer_s(wait_s), why: "as asked".to_owned() };
        world.store.outbox_mut().settle_part(&claimed, &later, at(FAST_S)).unwrap();
    }
    world.held(at(FAST_S + 5)).maintenance_mut().record_upkeep_failure(UpkeepKind::Push, "no network", None).unwrap();
    world.by_hand(
        "INSERT INTO incoming_messages (chat_id, message_text, not_before) VALUES (7, 'tried once', '2026-11-21T17:00:30.000Z')",
    );

    // A little later, by the right clock.
    assert!(world.store.is_set_back(at(10)).unwrap());
    world.store.take_lease(&me(), at(10)).unwrap();
    assert!(!world.store.is_set_back(at(10)).unwrap());
    world.fence = world.store.take_lease(&me(), at(10)).unwrap();
    assert_eq!(world.value::<String>("SELECT not_before FROM incoming_messages"), "2026-11-21T14:00:40.000Z");
    assert_eq!(world.store.maintenance().read_upkeep(UpkeepKind::Push).unwrap().not_before, Some(at(45)));
    assert_eq!(world.deliver_all(39), [""; 0]);
    assert_eq!(world.deliver_all(40), ["for 7"]);
    assert_eq!(world.deliver_all(7_209), [""; 0], "it would be too soon for whoever asked to be left alone");
    assert_eq!(world.deliver_all(7_210), ["for 8"]);

    // What was written by the right clock stays.
    world
        .held_by(world.fence, at(20))
        .maintenance_mut()
        .record_upkeep_failure(UpkeepKind::Push, "no network", None)
        .unwrap();
    world.store.take_lease(&me(), at(15)).unwrap();
    assert_eq!(world.store.maintenance().read_upkeep(UpkeepKind::Push).unwrap().not_before, Some(at(80)));
}
