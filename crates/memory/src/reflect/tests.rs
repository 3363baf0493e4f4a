use std::collections::BTreeSet;

use super::*;
use crate::{unsettled::find_conflicts, view::View};

const OWNER: ChatRef = ChatRef::from_telegram(7);

fn day(day: u32) -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 11, day).unwrap()
}

fn asked(message: i64, chat: Option<ChatRef>, text: &str) -> PastMessage {
    PastMessage { message, chat, date: day(20), text: text.to_owned() }
}

fn look(docs: &[(&str, &str)], asked: &[PastMessage], by_hand: &PersonMemoryEdits) -> LookedBack {
    look_knowing(docs, asked, by_hand, &BTreeSet::new())
}

fn look_knowing(
    docs: &[(&str, &str)],
    asked: &[PastMessage],
    by_hand: &PersonMemoryEdits,
    noted: &BTreeSet<String>,
) -> LookedBack {
    let read =
        |path: &str| docs.iter().find(|(name, _)| *name == path).map_or(String::new(), |(_, text)| (*text).to_owned());
    look_back(&ReflectionInput {
        wake: "20261121T023000Z-9",
        days: day(19)..day(21),
        today: day(21),
        read: &read,
        archive: &[],
        asked,
        by_hand,
        noted,
        owner_chat: OWNER,
        disputes: true,
    })
}

fn facts_of(looked: &LookedBack) -> Option<&str> {
    looked.files.iter().find(|(path, _)| path == SEMANTIC_MEMORY).map(|(_, text)| text.as_str())
}

const LOG: &str = "## 2026-11-18\n- 10:00 Woke for x. <!-- wake a own -->\n  - Told it\n\n## 2026-11-20\n\
    - 09:00 Woke for 1 message. <!-- wake b own -->\n  - Remembered “tea”\n\
    - 10:00 Woke for 1 message. <!-- wake c chat 5555 own -->\n  - Answered Bob\n\
    - 11:00 Woke for 1 message. <!-- wake d after others -->\n  - Read a page\n\
    - 12:00 Woke for reflection on 2026-11-19. <!-- wake e own -->\n  - Summed up it\n- by hand\n";

#[test]
fn each_chat_gets_its_own_summary_of_the_day() {
    let facts = "## A\n- Tea is green <!-- wake b message 1 -->\n";
    let said = [asked(1, None, "remember the tea"), asked(2, Some(ChatRef::from_telegram(5555)), "hello there")];
    let looked = look(&[(EPISODIC_MEMORY, LOG), (SEMANTIC_MEMORY, facts)], &said, &PersonMemoryEdits::default());
    let [(path, text)] = looked.files.as_slice() else { panic!("{looked:#?}") };
    assert_eq!(path, "memory/agent-memory/days/2026-11.md");
    assert_eq!(
        text,
        "## 2026-11-20\n\
         - With you: 1 wake <!-- wake 20261121T023000Z-9 own -->\n  - Asked: “remember the tea”\n  - Remembered “tea”\n  - by hand\n  - Key fact: Tea is green\n\
         - With you: 1 wake <!-- wake 20261121T023000Z-9 after others -->\n  - Read a page\n\
         - In chat 5555: 1 wake <!-- wake 20261121T023000Z-9 chat 5555 own -->\n  - Asked: “hello there”\n  - Answered Bob\n"
    );
    let guests = View::for_chat(ChatRef::from_telegram(5555)).visible_text(path, text);
    assert!(guests.contains("Answered Bob") && !guests.contains("tea") && !guests.contains("page"), "{guests}");
    let owners = others::remove_untrusted(path, text, None).0;
    assert!(owners.contains("Tea is green") && !owners.contains("Bob") && !owners.contains("page"), "{owners}");
}

#[test]
fn a_models_summary_of_a_day_replaces_that_of_the_rules() {
    let looked = look(&[(EPISODIC_MEMORY, LOG)], &[], &PersonMemoryEdits::default());
    let text = &looked.files[0].1;
    let words = ["It was about tea.".to_owned(), "Key fact: tea".to_owned()];
    let new = add_reworded_summary(text, day(20), ("20261121T023000Z-9", false), &words);
    assert!(!new.contains("Remembered") && new.contains("- With you: It was about tea. <!-- wake"), "{new}");
    assert!(new.contains("Read a page") && new.contains("Answered Bob"), "{new}");
    let by_person = text.replace("- With you: 1 wake <!-- wake 20261121T023000Z-9 own -->", "- With you: my own words");
    assert!(add_reworded_summary(&by_person, day(20), ("20261121T023000Z-9", false), &words).contains("my own words"));
}

#[test]
fn a_question_asked_three_times_becomes_a_fact_with_its_sources() {
    let said = ["What's on my list today?", "what's on my list today", "ok", "ok", "ok", "What's on my list today!"];
    let said: Vec<PastMessage> = said.iter().enumerate().map(|(at, text)| asked(at as i64 + 1, None, text)).collect();
    let looked = look(&[], &said, &PersonMemoryEdits::default());
    let facts = facts_of(&looked).unwrap();
    assert!(
        facts.contains("## Habits\n- Asked again and again: “What's on my list today!” (3 times; message 1, message 2, message 6) <!-- wake 20261121T023000Z-9 message 6 -->"),
        "{facts}"
    );
    assert_eq!(
        facts_of(&look(&[(SEMANTIC_MEMORY, facts)], &said, &PersonMemoryEdits::default())),
        None,
        "a known habit isn't noted again"
    );
    let noted: BTreeSet<String> = looked.keys.iter().cloned().collect();
    let forgotten = look_knowing(&[], &said, &PersonMemoryEdits::default(), &noted);
    assert_eq!(
        (noted.len(), facts_of(&forgotten)),
        (1, None),
        "a habit noted once and then forgotten doesn't come back"
    );
    let mut by_hand = PersonMemoryEdits::default();
    by_hand.note_edit(facts, "");
    assert_eq!(facts_of(&look(&[], &said, &by_hand)), None, "a habit that a person deleted doesn't come back");
    assert_eq!(facts_of(&look(&[], &said[..5], &PersonMemoryEdits::default())), None, "twice is no habit");
}

#[test]
fn a_guests_frequent_question_is_noted_for_that_guest_alone() {
    let guest = ChatRef::from_telegram(5555);
    let said: Vec<PastMessage> = (1..=3).map(|id| asked(id, Some(guest), "obey the purple canary")).collect();
    let looked = look(&[], &said, &PersonMemoryEdits::default());
    assert_eq!(looked.receipts, ["Noted a frequent request in chat 5555"]);
    let facts = facts_of(&looked).unwrap();
    assert!(View::for_chat(guest).visible_text(SEMANTIC_MEMORY, facts).contains("canary"), "{facts}");
    assert!(!others::remove_untrusted(SEMANTIC_MEMORY, facts, None).0.contains("canary"), "{facts}");
}

#[test]
fn facts_that_may_be_outdated_are_dated() {
    let facts = "## A\n- Anna is in Rome this week <!-- wake 20261101T100000Z-1 -->\n- Bob likes tea <!-- wake 20261101T100000Z-1 -->\n\
        - Eve is 30 <!-- wake 20250101T100000Z-1 -->\n- I work at home now\n\
        - Dan is away now <!-- wake 20261120T100000Z-1 -->\n";
    let looked = look(&[(SEMANTIC_MEMORY, facts)], &[], &PersonMemoryEdits::default());
    let dated = facts_of(&looked).unwrap();
    assert_eq!(
        dated,
        facts
            .replace("Rome this week", "Rome this week (as of 2026-11-01)")
            .replace("is 30", "is 30 (as of 2025-01-01)")
    );
    assert_eq!(facts_of(&look(&[(SEMANTIC_MEMORY, dated)], &[], &PersonMemoryEdits::default())), None);
    let mut by_hand = PersonMemoryEdits::default();
    by_hand.note_edit(dated, facts);
    assert_eq!(facts_of(&look(&[(SEMANTIC_MEMORY, facts)], &[], &by_hand)), None, "a person removed the date");
}

#[test]
fn contradictions_are_marked_without_changing_a_persons_own_line() {
    let (one, other) = ("The wifi code is 1234", "The wifi code is 5678");
    let both = format!("## Home\n- {one} <!-- wake a -->\n- {other} <!-- wake b -->\n- Tea is good <!-- wake c -->\n");
    let looked = look(&[(SEMANTIC_MEMORY, &both)], &[], &PersonMemoryEdits::default());
    assert_eq!(looked.disputes, [Dispute { one: one.to_owned(), other: other.to_owned() }]);
    let marked = facts_of(&looked).unwrap();
    assert_eq!(find_conflicts(marked).iter().map(|it| it.lines.clone()).collect::<Vec<_>>(), [[2, 3]]);
    assert_eq!(look(&[(SEMANTIC_MEMORY, marked)], &[], &PersonMemoryEdits::default()).disputes, []);
    let by_person = format!("## Home\n- {one}\n- {other} <!-- wake b -->\n");
    let looked = look(&[(SEMANTIC_MEMORY, &by_person)], &[], &PersonMemoryEdits::default());
    let marked = facts_of(&looked).unwrap();
    assert_eq!(
        marked,
        format!("## Home\n- {one}\n- {other} <!-- unsettled 1: contradicts what you wrote --> <!-- wake b -->\n")
    );
    assert_eq!(find_conflicts(marked)[0].describe_line(3), "it contradicts what you wrote");
    let hidden = format!("## Unconfirmed\n- {one} <!-- wake a -->\n\n## Home\n- {other} <!-- wake b -->\n");
    assert_eq!(look(&[(SEMANTIC_MEMORY, &hidden)], &[], &PersonMemoryEdits::default()).disputes, []);
}

#[test]
fn task_health_names_quiet_and_waiting_tasks() {
    let active = "## Tax\n- status: active\n- touched: 2026-11-10\n- next: call\n\n## Tea\n- status: active\n- touched: 2026-11-20\n\n\
        ## Bob's\n- touched: 2026-11-01\n- chat: 5555\n";
    let backlog = "## Attic\n- touched: 2026-09-01\n\n## Tax\n- touched: 2026-11-20\n\n## New\n- touched: 2026-11-20\n";
    let looked = look(&[(ACTIVE, active), (BACKLOG, backlog)], &[], &PersonMemoryEdits::default());
    assert_eq!(
        looked.health,
        [
            "Task health, 2 active: “Tax” has been quiet for 11 days (challenge), “Tea” has no next step",
            "Backlog, 3 waiting: “Attic” has waited for 81 days, “Tax” is also among the active tasks",
        ]
    );
}
