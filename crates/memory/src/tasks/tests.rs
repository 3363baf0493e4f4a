use insta::assert_snapshot;
use proptest::prelude::*;

use reveille_base::types::ChatRef;

use super::*;
use crate::strategies::document;

const TWO: &str = "# Active\n\n## Call Bob\n- status: active\n- touched: 2026-11-20\n\nHe waits.\n\n## Write report\n- next: outline\n";

fn parse(text: &str) -> TaskList {
    TaskList::parse(text).0
}

fn problems(text: &str) -> String {
    let lines: Vec<String> = TaskList::parse(text).1.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

#[test]
fn two_tasks_exchange_their_places_and_the_space_between_stays() {
    let three = "# Active\n\n## A\n- due: 2026-11-20\n\nwords\n\n\n## B\n## C\n- next: c";
    let list = parse(three);
    let swapped = list.swap("“C”", "“A”").unwrap();
    assert_eq!(swapped, "# Active\n\n## C\n- next: c\n\n\n## B\n## A\n- due: 2026-11-20\n\nwords");
    assert_eq!(parse(&swapped).swap("“A”", "“C”").unwrap(), three);
    assert_eq!(list.swap("“A”", "“A”").unwrap(), three);
    assert!(matches!(list.swap("“A”", "“X”"), Err(TaskError::NotFound { .. })));
    // An open block would hide what comes after it.
    let open = parse("## A\n\n## B\n\n```\ncode\n");
    assert_eq!(open.swap("“B”", "“A”"), Err(TaskError::Unmovable { title: "B".to_owned() }));
}

#[test]
fn a_task_is_read() {
    let (list, problems) = TaskList::parse(TWO);
    assert_eq!(problems, []);
    let [bob, report] = list.tasks() else { panic!("{list:?}") };
    assert_eq!((bob.title.as_str(), bob.line, bob.status()), ("Call Bob", 3, Some("active")));
    assert_eq!(bob.touched, NaiveDate::from_ymd_opt(2026, 11, 20));
    assert_eq!(bob.body, "He waits.");
    assert_eq!((report.get("NEXT"), report.step_time(), report.body.as_str()), (Some("outline"), None, ""));
}

#[test]
fn values_run_over_indented_lines_and_stop_at_comments_and_nested_lists() {
    let text = "## A\n\n* Status:  active <!-- since May -->\n- why: it is\n  long\n  - nested: no key\n- at:\n- odd_key: kept\nfree text\n- next: no key\n";
    let list = parse(text);
    let read: Vec<_> = list.tasks()[0].keys.iter().map(|key| (key.name.as_str(), key.value.as_str())).collect();
    assert_eq!(read, [("Status", "active"), ("why", "it is long"), ("at", ""), ("odd_key", "kept")]);
    assert_eq!(list.tasks()[0].body, "free text\n- next: no key");
    assert_snapshot!(list.set("A", "status", Some("done")).unwrap().lines().nth(2).unwrap(), @"* Status:  done <!-- since May -->");
    assert_snapshot!(list.set("A", "why", Some("short")).unwrap(), @r"
    ## A

    * Status:  active <!-- since May -->
    - why: short
      - nested: no key
    - at:
    - odd_key: kept
    free text
    - next: no key
    ");
    assert_eq!(list.set("A", "at", Some("09:00")).unwrap(), text.replace("- at:", "- at: 09:00"));
}

#[test]
fn damage_is_reported() {
    assert_snapshot!(problems("## A\n- touched: soon\n- touched: 2026-11-20\n## a\n##\nTitle\n---\n## B\n\n```\nx\n"), @r"
    line 2: `touched: soon` isn't a date; write it as 2026-11-20
    line 3: `touched` is given twice; the first one counts
    line 4: a second task “a”; the first is in line 1
    line 5: this heading has no title
    line 6: an underlined heading is read as plain text; write it as `## Title` to open a section
    line 10: a code block is opened here and never closed; all below it is hidden
    ");
    assert_snapshot!(problems("## A\n<!-- note\n## B\n"), @"line 2: a comment is opened here and never closed; all below it is hidden");
}

#[test]
fn seven_tasks_are_enough() {
    let text: String = (1..=8)
        .map(|n| {
            format!("## Task {n}\n- status: {}\n- touched: 2026-11-20\n\n", if n == 1 { "done" } else { "active" })
        })
        .collect();
    let list = parse(&text);
    assert_eq!(list.check_room(None), Err(TaskError::Full));
    assert_eq!(list.check_room(Some(ChatRef::from_telegram(5555))), Ok(()), "each chat has its own room");
    let of_bob = text.replace("- status", "- chat: 5555\n- status");
    assert_eq!(parse(&of_bob).check_room(Some(ChatRef::from_telegram(5555))), Err(TaskError::Full));
    assert_eq!(parse(&of_bob).check_room(None), Ok(()));
    assert_eq!(parse(&format!("{text}{}", of_bob.replace("Task", "Thing"))).active_problems(), []);
    assert_eq!(list.active_problems(), []);
    let text = list.set("Task 1", "status", Some("active")).unwrap();
    let list = parse(&parse(&text).set("Task 8", "touched", None).unwrap());
    let shown: Vec<String> = list.active_problems().iter().map(ToString::to_string).collect();
    assert_snapshot!(shown.join("\n"), @r"
    line 29: 8 tasks are active; at most 7 should be
    line 29: “Task 8” has no `touched` date, so I can't remind you of it
    ");
    let (text, _) = list.take("task 3").unwrap();
    let (text, _) = parse(&text).take("task 4").unwrap();
    assert_eq!(parse(&text).check_room(None), Ok(()));
}

#[test]
fn a_task_is_added_at_the_end() {
    let draft = TaskDraft {
        title: "Plan\nthe trip ##".into(),
        status: Some("active\n- at: now".into()),
        touched: NaiveDate::from_ymd_opt(2026, 11, 21),
        next: Some("  look at trains ".into()),
        body: "- at: 9\n## Forged\n```\nnever closed".into(),
        ..TaskDraft::default()
    };
    let text = parse(TWO).add(&draft).unwrap();
    assert_snapshot!(text.strip_prefix(TWO).unwrap(), @r"

    ## Plan the trip
    - status: active - at: now
    - touched: 2026-11-21
    - next: look at trains

    \- at: 9
    \## Forged
    ```
    never closed
    ```
    ");
    let (list, problems) = TaskList::parse(&text);
    assert_eq!(problems, []);
    assert_eq!(list.tasks().len(), 3);
    assert_eq!(list.tasks()[2].step_time(), None);
    assert_eq!(list.add(&draft), Err(TaskError::Exists { title: "Plan the trip".into() }));
    assert_eq!(list.add(&TaskDraft { title: " ## ".into(), ..TaskDraft::default() }), Err(TaskError::NoTitle));
}

#[test]
fn a_key_is_added_under_a_bare_heading() {
    assert_eq!(parse("## A").set("a", "at", Some("9")).unwrap(), "## A\n- at: 9\n");
    assert_eq!(parse("## A\r\ntext").set("a", "at", Some("9")).unwrap(), "## A\r\n- at: 9\r\ntext");
    let text = parse("## A\n    code\n").set("a", "at", Some("9")).unwrap();
    assert_eq!(text, "## A\n- at: 9\n<!-- -->\n    code\n");
    assert_eq!(parse(&text).tasks()[0].step_time(), Some("9"));
    assert!(matches!(parse("## A").set("a", "x: y", Some("9")), Err(TaskError::BadKey { .. })));
}

#[test]
fn crlf_and_a_missing_last_newline_survive() {
    let text = "\u{feff}# Active\r\n\r\n## Käse 🧀\r\n- status: active\r\n\r\n- [ ] buy\r\n## B";
    let list = parse(text);
    assert_eq!(list.set("käse", "status", Some("done")).unwrap(), text.replace("active", "done"));
    assert_eq!(list.set("b", "status", Some("new")).unwrap(), format!("{text}\r\n- status: new\r\n"));
    let added = list.add(&TaskDraft { title: "C".into(), ..TaskDraft::default() }).unwrap();
    assert_eq!(added, format!("{text}\r\n\r\n## C\r\n"));
}

#[test]
fn moving_keeps_every_byte() {
    let (rest, block) = parse(TWO).take("bob").unwrap();
    assert_eq!(rest, "# Active\n\n## Write report\n- next: outline\n");
    assert_eq!(block, "## Call Bob\n- status: active\n- touched: 2026-11-20\n\nHe waits.\n\n");
    assert_eq!(parse("# Backlog").put(&block).unwrap(), format!("# Backlog\n\n{block}"));
    assert_eq!(parse("").put(&block).unwrap(), block);
    assert_eq!(parse(&block).put(&block), Err(TaskError::Exists { title: "Call Bob".into() }));
    let hidden = "## Old\n~~~~\ncode\n";
    let text = parse(hidden).put(&block).unwrap();
    assert_eq!(text, format!("{hidden}~~~~\n\n{block}"));
}

#[test]
fn misses_are_told() {
    let list = parse("## Call Bob\n## Call Bob back\n## Pay rent\n");
    assert_eq!(list.find("pay").unwrap().title, "Pay rent");
    assert_snapshot!(list.find("call").unwrap_err(), @"“call” could be any of these tasks: “Call Bob”, “Call Bob back”");
    assert_snapshot!(list.find("rent a car").unwrap_err(), @"there is no task “rent a car”; similar: “Pay rent”");
    assert_snapshot!(list.find("x\ny").unwrap_err(), @"there is no task “x y”");
}

#[test]
fn what_a_fence_or_a_quote_holds_is_no_task() {
    let text = "---\ntitle: x\n# y\n---\n```\n## No\n```\n> ## No\n\n## Yes\n\n- one\n  ## No\n\n<!--\n## No\n-->\n";
    let titles: Vec<String> = parse(text).tasks().iter().map(|task| task.title.clone()).collect();
    assert_eq!(titles, ["Yes"]);
}

/// Changed lines of an edit, to hold against what it may touch.
fn unchanged_around(old: &str, new: &str, range: Range<usize>) -> bool {
    new.starts_with(slice(old, 0..range.start)) && new.ends_with(slice(old, range.end..old.len()))
}

proptest! {
    #[test]
    fn no_edit_leaves_its_section(text in document(), which in any::<prop::sample::Index>(), value in ".{0,40}") {
        let list = parse(&text);
        prop_assert_eq!(list.text(), &text);
        if list.tasks().is_empty() { return Ok(()); }
        let task = &list.tasks()[which.index(list.tasks().len())];
        if let Ok(found) = list.find(&task.title) {
            let range = found.range.clone();
            for key in ["status", "touched", "new-key"] {
                let set = list.set(&task.title, key, Some(&value)).unwrap();
                prop_assert!(unchanged_around(&text, &set, range.clone()), "{set:?}");
                let again = parse(&set);
                prop_assert_eq!(again.tasks().len(), list.tasks().len(), "{:?}", set);
                let read = again.find(&task.title).unwrap().get(key).map(str::to_owned);
                let wanted = one_line(&value, MAX_VALUE_CHARS);
                prop_assert_eq!(read.as_deref(), Some(wanted.as_str()), "{:?}", set);
                prop_assert_eq!(&again.set(&task.title, key, read.as_deref()).unwrap(), &set);
                let removed = list.set(&task.title, key, None).unwrap();
                prop_assert!(unchanged_around(&text, &removed, range.clone()));
            }
            let (rest, block) = list.take(&task.title).unwrap();
            prop_assert!(unchanged_around(&text, &rest, range.clone()));
            prop_assert_eq!(block.as_str(), slice(&text, range));
            prop_assert_eq!(parse(&rest).tasks().len() + 1, list.tasks().len());
        }
    }

    #[test]
    fn an_added_task_is_read_back(text in document(), title in ".{0,30}", next in ".{0,30}", body in document()) {
        let list = parse(&text);
        let draft = TaskDraft { title, next: Some(next), body, ..TaskDraft::default() };
        if let Ok(new) = list.add(&draft) {
            prop_assert!(new.starts_with(&text));
            let again = parse(&new);
            prop_assert_eq!(again.tasks().len(), list.tasks().len() + 1, "{:?}", new);
            let task = again.tasks().last().unwrap();
            prop_assert_eq!(&task.title, &safe_title(&draft.title).unwrap());
            prop_assert_eq!(task.keys.len(), 1, "{:?}", new);
            prop_assert!(Document::split(slice(&new, task.range.clone())).find_problems().is_empty() , "{new:?}");
        }
    }
}

#[test]
fn what_to_do_about_a_missed_time_is_read_and_an_unknown_word_is_reported() {
    use reveille_base::schedule::Missed;
    let text =
        "## A\n- at: 2026-11-22 09:00\n- missed: Skip\n\n## B\n- missed: whenever\n\n## C\n- at: 2026-11-22 09:00\n";
    let (list, problems) = TaskList::parse(text);
    let policies: Vec<Missed> = list.tasks().iter().map(|task| task.missed).collect();
    assert_eq!(policies, [Missed::Skip, Missed::Run, Missed::Run]);
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems, ["line 6: `missed: whenever` isn't `run`, `skip` or `tell`; it counts as `run`"]);
    assert_eq!(list.text(), text);
}
