use proptest::prelude::*;

use reveille_base::types::{Stop, Usage};

use super::*;
use crate::sql;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,40}",
        "[\u{0}-\u{1f}\u{7f}\u{2028}\u{feff}\u{202e}🍞é\"\\\\ ]{0,20}",
        Just("[ {\"type\" : \"text\",\n\t\"text\":\"\\u00e9 \\ud83c\\udf5e\" , \"n\": 1.50e+3 } ]".to_owned()),
    ]
}

fn stop() -> impl Strategy<Value = Stop> {
    prop_oneof![
        Just(Stop::EndTurn),
        Just(Stop::ToolUse),
        Just(Stop::MaxTokens),
        Just(Stop::ContextExceeded),
        Just(Stop::StopSequence),
        Just(Stop::PauseTurn),
        text().prop_map(Stop::Refusal),
        text().prop_map(Stop::Unknown),
    ]
}

fn usage() -> impl Strategy<Value = Usage> {
    (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>())
        .prop_map(|(input, output, cache_read, cache_write)| Usage { input, output, cache_read, cache_write })
}

fn ids() -> impl Strategy<Value = Vec<i64>> {
    prop::collection::vec(any::<i64>(), 0..4)
}

fn entry() -> impl Strategy<Value = Entry> {
    prop_oneof![
        (text(), ids()).prop_map(|(raw, messages)| Entry::Said {
            raw,
            messages,
            handles: vec!["at/x".to_owned()],
            head: None,
            taint: None
        }),
        Just(Entry::Asked),
        any::<u64>().prop_map(|ms| Entry::Worked { ms }),
        (text(), usage()).prop_map(|(why, usage)| Entry::Discarded { why, usage }),
        (text(), stop(), usage()).prop_map(|(content, stop, usage)| Entry::Turn { content, stop, usage }),
        (text(), text(), text(), proptest::option::of(text())).prop_map(|(call, name, input, taint)| Entry::Called {
            call,
            name,
            input,
            taint
        }),
        (text(), text(), text(), any::<bool>(), prop::option::of(text()), ids()).prop_map(
            |(call, name, content, is_error, receipt, closed)| Entry::Outcome {
                call,
                name,
                content,
                is_error,
                receipt,
                closed,
                taint: None,
                image: None
            }
        ),
        (ids(), text()).prop_map(|(messages, receipt)| Entry::Answered { messages, receipt }),
        prop::collection::vec(text(), 0..3).prop_map(|not_done| Entry::Verified { not_done }),
        (prop::collection::vec(text(), 0..3), prop::option::of(text())).prop_map(|(receipts, head)| Entry::ByRule {
            receipts,
            handles: Vec::new(),
            head
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_journal_is_read_back_byte_for_byte(entries in prop::collection::vec(entry(), 0..12)) {
        let mut world = World::new();
        let (first, rest) = entries.split_at(entries.len() / 2);
        world.held(at(0)).cycles_mut().begin_cycle(&cycle("c1"), first, &[]).unwrap();
        for entry in rest {
            world.held(at(1)).journal_mut().record_entry("c1", entry, &[]).unwrap();
        }
        prop_assert_eq!(world.store.journal().read_journal("c1").unwrap(), entries);
    }
}

#[test]
fn a_cycle_is_read_back_with_its_fixed_parts() {
    let mut world = World::new();
    world.begin("c1");
    let row = world.store.cycles().find_cycle("c1").unwrap().unwrap();
    assert_eq!(row.cycle, cycle("c1"));
    assert_eq!((row.state, row.tries, row.started_at), (CycleState::Running, 0, Some(at(0))));
    assert_eq!(world.store.cycles().open_cycles().unwrap(), std::slice::from_ref(&row));
    assert_eq!(world.store.cycles().last_cycle().unwrap(), Some(row));
    assert_eq!(world.store.cycles().find_cycle("c2").unwrap(), None);
    assert_eq!(world.store.journal().read_journal("c2").unwrap(), []);
}

#[test]
fn a_change_that_fails_takes_its_entry_and_the_other_changes_with_it() {
    let mut world = World::new();
    world.begin("c1");
    world.refuse("INSERT", "handled");
    let changes = [
        Change::Send(outgoing(ChatRef::from_telegram(7), "never")),
        Change::Handled { key: "k".to_owned(), value: String::new() },
    ];
    assert!(world.held(at(1)).journal_mut().record_entry("c1", &Entry::Asked, &changes).is_err());
    assert_eq!(world.store.journal().read_journal("c1").unwrap(), []);
    assert_eq!(world.value::<i64>("SELECT count(*) FROM outgoing_messages"), 0);
}

#[test]
fn a_cycle_writes_down_which_messages_it_took_up_and_closes_them_once() {
    let mut world = World::new();
    let one = world.store.inbox_mut().queue_message(ChatRef::from_telegram(7), "one", at(0)).unwrap();
    let two = world.store.inbox_mut().queue_message(ChatRef::from_telegram(7), "two", at(0)).unwrap();
    world.begin("c1");
    let said =
        Entry::Said { raw: "{}".to_owned(), messages: vec![one, two], handles: Vec::new(), head: None, taint: None };
    world.held(at(1)).journal_mut().record_entry("c1", &said, &[]).unwrap();
    assert_eq!(world.store.inbox().list_queued_messages().unwrap()[1].cycle_id.as_deref(), Some("c1"));
    let done = |ids: &[i64], outcome| Change::Done { messages: ids.to_vec(), outcome };
    world.held(at(2)).journal_mut().apply_changes("c1", &[done(&[one], MessageOutcome::Answered)]).unwrap();
    world.held(at(3)).journal_mut().apply_changes("c1", &[done(&[one], MessageOutcome::Refused)]).unwrap();
    assert_eq!(world.value::<String>("SELECT outcome FROM incoming_messages WHERE id = 1"), "answered");
    let hold = Change::Hold { messages: vec![one, two], model: "offline".to_owned() };
    world.held(at(4)).journal_mut().apply_changes("c1", &[hold]).unwrap();
    let queued = world.store.inbox().list_queued_messages().unwrap();
    assert_eq!(queued.len(), 1);
    assert_eq!((queued[0].id, queued[0].held_for.as_deref()), (two, Some("offline")));
}

#[test]
fn three_failed_cycles_make_a_dead_letter_that_is_kept() {
    let mut world = World::new();
    let bad = world.store.inbox_mut().queue_message(ChatRef::from_telegram(7), "poison", at(0)).unwrap();
    let good = world.store.inbox_mut().queue_message(ChatRef::from_telegram(7), "fine", at(0)).unwrap();
    for (n, id) in ["c1", "c2", "c3"].iter().enumerate() {
        let queued = world.store.inbox().list_queued_messages().unwrap();
        assert_eq!((queued.len(), queued[0].attempts), (2, n as i64));
        world.begin(id);
        world.end(id, CycleState::Abandoned, &[bad]);
    }
    let queued = world.store.inbox().list_queued_messages().unwrap();
    assert_eq!(queued.iter().map(|message| message.id).collect::<Vec<_>>(), [good]);
    assert_eq!(
        world.value::<String>(
            "SELECT outcome || ' ' || attempts || ' ' || message_text FROM incoming_messages WHERE id = 1"
        ),
        "dead 3 poison"
    );
    // What was answered isn't put aside, however often a cycle says that it failed on it.
    world.begin("c4");
    world
        .held_by(world.fence, at(1))
        .journal_mut()
        .apply_changes("c4", &[Change::Done { messages: vec![good], outcome: MessageOutcome::Answered }])
        .unwrap();
    world.end("c4", CycleState::Failed, &[good]);
    assert_eq!(world.value::<i64>("SELECT attempts FROM incoming_messages WHERE id = 2"), 0);
}

#[test]
fn the_end_of_a_cycle_is_one_step() {
    let mut world = World::new();
    world.begin("c1");
    world.held(at(0)).maintenance_mut().note_repair("stale-lock", "freed a stale lock").unwrap();
    let repairs = world.store.maintenance().unnoted_repairs().unwrap();
    let end = CycleEnd {
        commit_id: Some("abc"),
        handled: &["at/x".to_owned()],
        head_seen: Some("def"),
        repairs: &[repairs[0].0],
        notice: Some(&outgoing(ChatRef::from_telegram(7), "It is over.")),
        ..CycleEnd::new(CycleState::Done)
    };
    world.held(at(5)).cycles_mut().end_cycle("c1", &end).unwrap();
    let row = world.store.cycles().find_cycle("c1").unwrap().unwrap();
    assert_eq!((row.state, row.ended_at, row.commit_id.as_deref()), (CycleState::Done, Some(at(5)), Some("abc")));
    assert_eq!(world.store.maintenance().unnoted_repairs().unwrap(), []);
    assert_eq!(world.store.maintenance().find_handled_value("at/x").unwrap().as_deref(), Some(""));
    assert_eq!(world.store.maintenance().handled_keys("at/").unwrap().len(), 1);
    assert_eq!(world.store.maintenance().handled_keys("at_").unwrap().len(), 0);
    assert_eq!(world.store.maintenance().find_handled_value(HEAD_SEEN).unwrap().as_deref(), Some("def"));
    assert_eq!(world.deliver_all(5), ["It is over."]);
    assert_eq!(world.store.cycles().open_cycles().unwrap(), []);
}

#[test]
fn staged_files_keep_the_base_of_their_first_staging() {
    let mut world = World::new();
    world.begin("c1");
    let file = |base: Option<&str>, content: &str| {
        Change::File(StagedFile {
            path: "memory/x.md".to_owned(),
            base: base.map(str::to_owned),
            content: content.to_owned(),
        })
    };
    for change in [file(Some("read"), "one"), file(Some("one"), "two"), file(None, "three")] {
        world.held(at(1)).journal_mut().record_entry("c1", &Entry::Asked, &[change]).unwrap();
    }
    let staged = world.store.journal().list_staged_files("c1").unwrap();
    assert_eq!(staged.len(), 1);
    assert_eq!((staged[0].base.as_deref(), staged[0].content.as_str()), (Some("read"), "three"));
    world.end("c1", CycleState::Done, &[]);
    assert_eq!(world.store.journal().list_staged_files("c1").unwrap(), []);
}

#[test]
fn resuming_counts_only_what_counts() {
    let mut world = World::new();
    world.begin("c1");
    world.held(at(0)).cycles_mut().pause_cycle("c1", at(60), "no network").unwrap();
    let row = world.store.cycles().open_cycles().unwrap().remove(0);
    assert_eq!(
        (row.state, row.not_before, row.error.as_deref()),
        (CycleState::Waiting, Some(at(60)), Some("no network"))
    );
    world.held(at(0)).cycles_mut().resume_cycle("c1").unwrap();
    let row = world.store.cycles().find_cycle("c1").unwrap().unwrap();
    assert_eq!((row.state, row.tries, row.not_before), (CycleState::Running, 0, None));
    // Noted twice it is one cut, and counted once.
    for _ in 0..2 {
        world.held(at(61)).cycles_mut().note_cut_off("c1", &[], None).unwrap();
    }
    for _ in 0..2 {
        world.held(at(0)).cycles_mut().count_try("c1").unwrap();
    }
    let row = world.store.cycles().find_cycle("c1").unwrap().unwrap();
    assert_eq!((row.tries, row.was_cut_off), (1, false));
}

#[test]
fn a_cut_before_the_beginning_counts_against_the_messages_and_the_third_is_told() {
    let mut world = World::new();
    let id = world.store.inbox_mut().queue_message(ChatRef::from_telegram(7), "hello", at(0)).unwrap();
    let other = world.store.inbox_mut().queue_message(ChatRef::from_telegram(8), "hi", at(0)).unwrap();
    let notice = outgoing(ChatRef::from_telegram(7), "put aside");
    for (n, told) in [(1, None), (2, None), (3, Some(&notice))] {
        let at = at(n * 3_600);
        world.held(at).cycles_mut().note_cut_off(&format!("never-begun-{n}"), &[id], told).unwrap();
        let row = world.store.inbox().list_queued_messages().unwrap().into_iter().find(|message| message.id == id);
        assert_eq!(row.map(|row| (row.attempts, row.not_before)), (n < 3).then_some((n, None)));
    }
    let left: Vec<i64> = world.store.inbox().list_queued_messages().unwrap().iter().map(|message| message.id).collect();
    assert_eq!(left, [other]);
    let told = "SELECT count(*) FROM outgoing_messages WHERE message_text = 'put aside'";
    assert_eq!(world.store.conn.query_row(told, [], |row| row.get::<_, i64>(0)).unwrap(), 1);
}

#[test]
fn upkeep_waits_longer_with_each_failure_and_forgets_when_it_works() {
    let mut world = World::new();
    assert!(world.store.maintenance().read_upkeep(UpkeepKind::Push).unwrap().may_try(at(0)));
    let waits: Vec<i64> = (0..9)
        .map(|_| {
            let upkeep =
                world.held(at(0)).maintenance_mut().record_upkeep_failure(UpkeepKind::Push, "no route", None).unwrap();
            (upkeep.not_before.unwrap() - at(0)).num_seconds()
        })
        .collect();
    assert_eq!(waits, [30, 60, 120, 240, 480, 960, 1920, 3600, 3600]);
    let asked = world
        .held(at(0))
        .maintenance_mut()
        .record_upkeep_failure(UpkeepKind::Push, "x", Some(TimeDelta::hours(5)))
        .unwrap();
    assert!(!asked.may_try(at(5 * 3600 - 1)) && asked.may_try(at(5 * 3600)));
    world.held(at(1)).maintenance_mut().record_upkeep_recovery(UpkeepKind::Push).unwrap();
    let upkeep = world.store.maintenance().read_upkeep(UpkeepKind::Push).unwrap();
    assert_eq!((upkeep.failures, upkeep.last_ok_at, upkeep.error), (0, Some(at(1)), None));
}

/// However many cycles there were, an idle look reads the journals of none but those that wait.
#[test]
fn what_waiting_cycles_were_told_is_found_by_the_indices() {
    use crate::cycles::parked::{reports_query, waiting_condition};
    let world = World::new();
    // How PostgreSQL finds them it decides by what is in the tables.
    if world.is_shared() {
        return;
    }
    let sql = format!("EXPLAIN QUERY PLAN {}", reports_query(&waiting_condition()));
    let mut statement = world.store.conn.prepare(&sql).unwrap();
    let plan: Vec<String> =
        statement.query_map([], |row| row.get(3)).unwrap().collect::<sql::QueryResult<_>>().unwrap();
    assert!(plan.iter().any(|step| step.contains("INDEX cycles_open ")), "{plan:#?}");
    assert!(!plan.iter().any(|step| step.starts_with("SCAN")), "{plan:#?}");
}
