use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;
use crate::{
    episodic::Log,
    strategies::document,
    text::{fold_text, split_comment},
};

const TASKS: &str = "# Active\n\n## Call Bob\n- status: active\n- touched: 2026-11-18\n- next: dial\n\nHe waits.\n\n## Pay rent\n- status: active\n";
const FACTS: &str = "## People\n- Anna is my sister\n- Bob likes tea\n- Carl is tall\n\n## Home\n- a flat\n";
const LOG: &str = "# Log\n\n## 2026-11-20\n- 09:10 woke <!-- wake 1 -->\n- 12:00 slept <!-- wake 2 -->\n";

fn clean(kind: DocKind, base: &str, person: &str, ours: &str) -> String {
    let merged = merge(kind, base, person, ours);
    assert_eq!(merged.conflicts, [], "{}", merged.text);
    merged.text
}

#[test]
fn different_sections_and_keys_go_together() {
    let person =
        TASKS.replace("next: dial", "next: write").replace("Pay rent\n- status: active", "Pay rent\n- status: done");
    let ours =
        TASKS.replace("2026-11-18", "2026-11-21").replace("status: active\n- touched", "status: waiting\n- touched");
    assert_snapshot!(clean(DocKind::Tasks, TASKS, &person, &ours), @r"
    # Active

    ## Call Bob
    - status: waiting
    - touched: 2026-11-21
    - next: write

    He waits.

    ## Pay rent
    - status: done
    ");
}

#[test]
fn a_key_that_both_changed_is_the_persons_and_ours_is_quoted() {
    let person = TASKS.replace("next: dial", "next: write").replace("2026-11-18", "2026-11-19");
    let ours = TASKS.replace("next: dial", "next: visit").replace("2026-11-18", "2026-11-21")
        + "\n## New one\n- status: active\n";
    let merged = merge(DocKind::Tasks, TASKS, &person, &ours);
    assert_eq!(merged.conflicts, [Conflict { section: "Call Bob".into(), other: "- next: visit\n".into() }]);
    assert_snapshot!(merged.text, @r"
    # Active

    ## Call Bob
    - status: active
    - touched: 2026-11-21
    - next: write

    He waits.

    <!-- Both of us changed this. Yours stands above, mine follows as a quote: keep what is right and delete the rest. -->
    > - next: visit

    ## Pay rent
    - status: active

    ## New one
    - status: active
    ");
}

#[test]
fn what_was_deleted_stays_deleted() {
    let without_rent = TASKS.replace("## Pay rent\n- status: active\n", "");
    let ours = TASKS.replace("next: dial", "next: visit");
    assert_eq!(clean(DocKind::Tasks, TASKS, &without_rent, &ours), without_rent.replace("dial", "visit"));
    assert_eq!(clean(DocKind::Tasks, TASKS, &ours, &without_rent), without_rent.replace("dial", "visit"));
    let merged = merge(
        DocKind::Tasks,
        TASKS,
        &without_rent,
        &TASKS.replace("Pay rent\n- status: active", "Pay rent\n- status: done"),
    );
    assert!(merged.text.starts_with(&without_rent));
    assert_snapshot!(merged.text.strip_prefix(&without_rent).unwrap(), @r"
    <!-- You deleted this while I changed it. It stays deleted, my version follows as a quote: copy what you want and delete the rest. -->
    > ## Pay rent
    > - status: done
    ");
    assert_eq!(merged.conflicts.len(), 1);
}

#[test]
fn facts_are_merged_one_by_one() {
    let person = FACTS.replace("- Carl is tall\n", "- Dora is new\n").replace("sister", "cousin");
    let ours = FACTS
        .replace("- Bob likes tea\n", "")
        .replace("tall\n", "tall\n- Emil is old\n- dora IS new. <!-- wake 7 -->\n");
    assert_snapshot!(clean(DocKind::Facts, FACTS, &person, &ours), @r"
    ## People
    - Anna is my cousin
    - Dora is new
    - Emil is old

    ## Home
    - a flat
    ");
}

#[test]
fn a_fact_that_both_rewrote_keeps_both_visibly() {
    let person = FACTS.replace("likes tea", "likes coffee");
    let ours = FACTS.replace("likes tea", "likes cocoa <!-- wake 9 -->");
    let merged = merge(DocKind::Facts, FACTS, &person, &ours);
    assert_eq!(
        merged.conflicts,
        [Conflict { section: "People".into(), other: "- Bob likes cocoa <!-- wake 9 -->\n".into() }]
    );
    assert!(merged.text.contains("- Bob likes coffee\n- Carl is tall\n\n<!-- Both of us"), "{}", merged.text);
    assert!(merged.text.contains("-->\n> - Bob likes cocoa <!-- wake 9 -->\n\n## Home"), "{}", merged.text);
}

#[test]
fn the_logs_entries_are_united_in_order_of_time() {
    let person = LOG.replace("- 12:00", "- 10:00 a person's line\n- 12:00") + "\n## 2026-11-22\n- 07:00 person\n";
    let ours = LOG.replace("- 12:00", "- 11:00 x <!-- wake 4 -->\n- 12:00")
        + "- 13:00 y\n  and more\n\n## 2026-11-21\n- 08:00 z\n";
    assert_snapshot!(clean(DocKind::Log, LOG, &person, &ours), @r"
    # Log

    ## 2026-11-20
    - 09:10 woke <!-- wake 1 -->
    - 10:00 a person's line
    - 11:00 x <!-- wake 4 -->
    - 12:00 slept <!-- wake 2 -->
    - 13:00 y
      and more

    ## 2026-11-21
    - 08:00 z

    ## 2026-11-22
    - 07:00 person
    ");
}

#[test]
fn a_day_that_was_archived_does_not_come_back() {
    let grown = format!("{LOG}\n## 2026-11-21\n- 08:00 z\n");
    let archived = "# Log\n\n## 2026-11-21\n- 08:00 z\n- 09:00 ours\n";
    let person = grown.replace("z\n", "z\n- 08:30 person\n");
    let both = "# Log\n\n## 2026-11-21\n- 08:00 z\n- 08:30 person\n- 09:00 ours\n";
    assert_eq!(clean(DocKind::Log, &grown, &person, archived), both);
    assert_eq!(clean(DocKind::Log, &grown, archived, &person), both);
    let late = grown.replace("- 12:00", "- 11:00 late\n- 12:00");
    let merged = clean(DocKind::Log, &grown, &late, archived);
    assert!(merged.starts_with("# Log\n\n## 2026-11-20\n- 11:00 late\n\n## 2026-11-21\n"), "{merged}");
}

#[test]
fn prose_is_merged_by_line_and_endings_do_not_matter() {
    let base = "---\nname: x\n---\n# Context\none\ntwo\nthree\n";
    let person = base.replace("one", "ONE").replace('\n', "\r\n");
    let ours = base.replace("three", "THREE");
    assert_eq!(
        clean(DocKind::Text, base, &person, &ours),
        "---\r\nname: x\r\n---\r\n# Context\r\nONE\r\ntwo\r\nTHREE\r\n"
    );
    let merged = merge(DocKind::Text, base, &base.replace("two", "TWO"), &base.replace("two", "2"));
    assert!(merged.text.ends_with("TWO\nthree\n\n<!-- Both of us changed this. Yours stands above, mine follows as a quote: keep what is right and delete the rest. -->\n> 2\n"), "{}", merged.text);
}

fn kind() -> impl Strategy<Value = DocKind> {
    prop_oneof![Just(DocKind::Tasks), Just(DocKind::Facts), Just(DocKind::Log), Just(DocKind::Text)]
}

/// A log of some days and entries; `who` marks the entries that are this side's own.
fn log(who: &'static str) -> impl Strategy<Value = Vec<(u32, u32, String)>> {
    proptest::collection::vec((18_u32..22, 0_u32..5, 0_u32..4), 0..8)
        .prop_map(move |entries| entries.into_iter().map(|(day, hour, n)| (day, hour, format!("{who} {n}"))).collect())
}

fn written(entries: &[(u32, u32, String)]) -> String {
    let mut sorted = entries.to_vec();
    sorted.sort();
    sorted.dedup();
    let mut text = "# Log\n".to_owned();
    for day in sorted.chunk_by(|a, b| a.0 == b.0) {
        text.push_str(&format!("\n## 2026-11-{}\n", day[0].0));
        text.extend(day.iter().map(|(_, hour, what)| format!("- {hour:02}:00 {what}\n")));
    }
    text
}

proptest! {
    #[test]
    fn a_side_that_did_nothing_yields(kind in kind(), base in document(), x in document()) {
        prop_assert_eq!(merge(kind, &base, &base, &x).text, x.clone());
        prop_assert_eq!(merge(kind, &base, &x, &base).text, x.clone());
        prop_assert_eq!(merge(kind, &base, &x, &x).text, x);
    }

    #[test]
    fn no_line_of_the_person_and_no_new_line_of_ours_is_lost(kind in kind(), base in document(), person in document(), ours in document()) {
        let merged = merge(kind, &base, &person, &ours);
        let present = |line: &str| merged.text.contains(line) || line.contains("touched");
        for line in split_lines(person.trim_start_matches('\u{feff}')).map(str::trim).filter(|line| !base.contains(line)) {
            prop_assert!(present(line), "person's {line:?} lost: {:?}", merged.text);
        }
        for line in split_lines(ours.trim_start_matches('\u{feff}')).map(str::trim).filter(|line| !base.contains(line)) {
            let known = fold_text(split_comment(line.trim_end_matches('#')).0);
            // As a line of its own, or quoted beside the person's.
            let says = |other: &str| fold_text(split_comment(other).0).contains(&known);
            let said = split_lines(&merged.text).any(|other| says(other) || says(other.trim_start_matches("> ")));
            prop_assert!(present(line) || said, "our {line:?} lost: {:?}", merged.text);
        }
    }

    #[test]
    fn the_union_of_logs_loses_and_doubles_nothing(base in log("base"), person in log("person"), ours in log("ours")) {
        let with = |own: &[(u32, u32, String)]| written(&[base.clone(), own.to_vec()].concat());
        let merged = merge(DocKind::Log, &written(&base), &with(&person), &with(&ours));
        let all = written(&[base.clone(), person.clone(), ours.clone()].concat());
        let sorted = |text: &str| {
            let mut entries: Vec<String> = split_lines(text).map(str::to_owned).filter(|line| !is_blank(line)).collect();
            entries.sort();
            entries
        };
        prop_assert_eq!(sorted(&merged.text), sorted(&all));
        let (log, problems) = Log::parse(&merged.text);
        prop_assert_eq!(problems, []);
        prop_assert!(log.days.iter().all(|day| day.entries.is_sorted_by_key(|entry| entry.time)));
        prop_assert!(log.days.is_sorted_by_key(|day| day.date));
    }
}

/// What a person did on our side, as the repository finds it: all of it.
fn all_by_hand(base: &str, ours: &str) -> ByHand {
    let has = |text: &str, line: &str| text.lines().any(|other| other == line);
    let only = |one: &str, other: &str| one.lines().filter(|line| !has(other, line)).map(str::to_owned).collect();
    ByHand { written: only(ours, base), deleted: only(base, ours) }
}

fn by_hand(kind: DocKind, base: &str, person: &str, ours: &str) -> String {
    let merged = merge_by_hand(kind, base, person, ours, &all_by_hand(base, ours));
    assert!(merged.conflicts.is_empty() && !merged.text.contains("\n>"), "{}", merged.text);
    merged.text
}

#[test]
fn a_fact_that_one_person_rewrote_in_two_places_stands_twice() {
    let base = FACTS.replace("likes tea", "likes tea <!-- wake 3 message 5 -->");
    let merged = by_hand(
        DocKind::Facts,
        &base,
        &base.replace("likes tea", "likes coffee").replace("- Carl is tall\n", ""),
        &base.replace("likes tea", "likes cocoa").replace("tall\n", "tall\n- Emil is old\n"),
    );
    assert_snapshot!(merged, @r"
    ## People
    - Anna is my sister
    - Bob likes coffee <!-- unsettled 1: version A of two --> <!-- wake 3 message 5 -->
    - Bob likes cocoa <!-- unsettled 1: version B of two --> <!-- wake 3 message 5 -->
    - Emil is old <!-- unsettled 1: version B of two -->

    ## Home
    - a flat
    ");
    assert_eq!(crate::unsettled::find_conflicts(&merged).len(), 1);
}

#[test]
fn only_what_the_wake_wrote_is_quoted_beside_what_a_person_wrote_in_two_places() {
    let person = FACTS.replace("likes tea", "likes coffee");
    let ours = FACTS.replace("- Bob likes tea", "- Bob likes cocoa\n- Bob is thirsty <!-- wake 9 -->");
    let written = ["- Bob likes cocoa".to_owned()].into();
    let hand = ByHand { written, ..ByHand::default() };
    let merged = merge_by_hand(DocKind::Facts, FACTS, &person, &ours, &hand);
    assert_snapshot!(merged.text, @r"
    ## People
    - Anna is my sister
    - Bob likes coffee <!-- unsettled 1: version A of two -->
    - Bob likes cocoa <!-- unsettled 1: version B of two -->
    - Carl is tall

    <!-- Both of us changed this. Yours stands above, mine follows as a quote: keep what is right and delete the rest. -->
    > - Bob is thirsty <!-- wake 9 -->

    ## Home
    - a flat
    ");
}

#[test]
fn lines_and_keys_that_one_person_changed_in_two_places_stand_twice() {
    let notes = "one\ntwo\nthree\n";
    let merged = by_hand(DocKind::Text, notes, "one\nzwei\nthree\n", "one\ndeux\nthree\n");
    assert_snapshot!(merged, @r"
    one
    zwei <!-- unsettled 1: version A of two -->
    deux <!-- unsettled 1: version B of two -->
    three
    ");
    let again = by_hand(DocKind::Text, &merged, &merged.replace("one\n", "eins\n"), &merged.replace("one\n", "un\n"));
    assert_eq!(crate::unsettled::find_conflicts(&again).len(), 2, "{again}");
    assert_eq!(
        by_hand(DocKind::Text, notes, "one\ntwo\nthree\nfour\n", "one\ntwo\nthree\nvier\n"),
        format!("{notes}four\nvier\n")
    );
    let merged = by_hand(
        DocKind::Tasks,
        TASKS,
        &TASKS.replace("next: dial", "next: write"),
        &TASKS.replace("next: dial", "next: visit"),
    );
    let [a, b] = [
        "- next: write <!-- unsettled 1: version A of two -->",
        "- next: visit <!-- unsettled 1: version B of two -->",
    ];
    assert_eq!(merged, TASKS.replace("- next: dial", &format!("{a}\n{b}")));
}

#[test]
fn what_one_person_changed_here_and_deleted_there_stays_and_is_marked() {
    let without_rent = TASKS.replace("\n## Pay rent\n- status: active\n", "");
    let paid = TASKS.replace("Pay rent\n- status: active", "Pay rent\n- status: done");
    for [person, ours] in [[&without_rent, &paid], [&paid, &without_rent]] {
        let merged = by_hand(DocKind::Tasks, TASKS, person, ours);
        assert!(
            merged.ends_with("## Pay rent\n- status: done\n\n<!-- unsettled 1: changed here, deleted elsewhere -->\n"),
            "{merged}"
        );
    }
    let (without, changed) = (FACTS.replace("- Bob likes tea\n", ""), FACTS.replace("likes tea", "likes coffee"));
    for [person, ours] in [[&without, &changed], [&changed, &without]] {
        let merged = by_hand(DocKind::Facts, FACTS, person, ours);
        assert!(
            merged.contains("- Bob likes coffee <!-- unsettled 1: changed here, deleted elsewhere -->\n"),
            "{merged}"
        );
    }
}
