//! Today, and what a person orders there: the same as at the terminal, and each as theirs.

use super::{Answered, ServedPage, TestEnv, eventually};

const ACTIVE: &str = "memory/project-memory/active.md";

/// A world with a memory.
fn world() -> TestEnv {
    let env = TestEnv::new();
    env.wake(&["--once"]).ok();
    env
}

/// The page that a form leads to, with what was done said on it.
#[track_caller]
fn said(page: &ServedPage<'_>, answered: &Answered) -> String {
    let to = answered.see_other();
    assert!(to.starts_with("/?said="), "{to}");
    page.get(&to).ok()
}

/// What the form of a button sends, found by the button's label.
#[track_caller]
fn which(html: &str, label: &str) -> String {
    let (before, _) = html.split_once(&format!("aria-label=\"{label}\"")).unwrap_or_else(|| panic!("{label}: {html}"));
    let (_, value) = before.rsplit_once("name=\"which\" value=\"").unwrap();
    value.split('"').next().unwrap().to_owned()
}

#[test]
fn today_shows_tasks_with_their_age_reminders_and_what_waits() {
    let env = world();
    env.write_memory(
        ACTIVE,
        "# Active tasks\n\n## Write the <b>report</b>\n- touched: 2026-11-13\n- due: 2026-11-20\n- next: an outline\n\n## Tea\n- touched: 2026-11-21\n- due: 2026-11-21\n",
    );
    env.wake(&["task", "add", "Learn the cello", "--backlog"]).ok();
    env.wake(&["remind", "call Anna", "--at", "tomorrow 9"]).ok();
    env.wake(&["remind", "stretch every weekday at 8"]).ok();
    env.receive(4242, "What is due <today>?");
    let page = ServedPage::open(&env);
    let html = page.get("/").ok();
    for part in [
        "<strong>Write the &lt;b&gt;report&lt;/b&gt;</strong>",
        "overdue since <time datetime=\"2026-11-20\" title=\"Friday 20 November 2026\">yesterday</time>",
        "Untouched since <time datetime=\"2026-11-13\" title=\"Friday 13 November 2026\">13 November</time>",
        "Next: an outline",
        "due <time datetime=\"2026-11-21\" title=\"Saturday 21 November 2026\">today</time>",
        "<span class=\"meta\">2 of 7</span>",
        "1 task in the backlog",
        "<time datetime=\"2026-11-22T08:00:00.000Z\" title=\"Sunday 22 November 2026, 09:00:00\">tomorrow 09:00</time>",
        "every weekday at 08:00",
        "What is due &lt;today&gt;?",
        "from chat 4242",
        "$5.00 spent, $5.00 left",
        // The navigation counts what is due.
        "<span class=\"count\">2<span class=\"unseen\"> tasks due</span></span>",
    ] {
        assert!(html.contains(part), "{part} in {html}");
    }
    assert!(html.contains("aria-label=\"In an hour: call Anna\"") && !html.contains("In an hour: stretch"), "{html}");
    assert!(page.get("/memory").ok().contains("<span class=\"count\">2<span"), "the counts are on every view");
}

#[test]
fn a_task_is_added_in_one_line_and_finished_as_a_commit_of_the_persons_own() {
    let env = world();
    let page = ServedPage::open(&env);
    let html = said(&page, &page.post("/tasks/add", &[("line", "write \"the\" report friday #home")]));
    assert!(html.contains("Added: Write &quot;the&quot; report · Friday 27 November · home."), "{html}");
    let active = env.memory(ACTIVE);
    assert!(active.contains("- due: 2026-11-27") && active.contains("- project: home"), "{active}");
    assert!(env.git(&["log", "-1", "--format=%an"]) == "Owner");
    // An address without its number says nothing.
    assert!(!page.get("/?said=0").ok().contains("Added:"));
    let done = which(&html, "Done: Write &quot;the&quot; report");
    let html = said(&page, &page.post("/tasks/done", &[("which", &done)]));
    assert!(html.contains("Nothing in hand") && !env.memory(ACTIVE).contains("report"), "{html}");
    let again = page.post("/tasks/done", &[("which", &done)]);
    assert!(again.status == 422 && again.body.contains("no longer exists"), "{again:#?}");
    assert_eq!(env.once()["outcome"], "idle");
    // Undo is offered by name; a step that was shown is meant, not one that came since.
    let html = page.get("/").ok();
    assert!(html.contains("Last: what you did at 15:00: finished the task “Write"), "{html}");
    let step = step(&html);
    env.wake(&["task", "add", "Tea"]).ok();
    let html = said(&page, &page.post("/undo", &[("step", &step)]));
    assert!(html.contains("Undoing what you did at 15:00: finished the task “Write"), "{html}");
    eventually("it is undone", || env.memory(ACTIVE).contains("report"));
    assert!(env.memory(ACTIVE).contains("Tea"));
    env.check_sound();
}

/// The step that the first button for an undo names.
#[track_caller]
fn step(html: &str) -> String {
    html.split("name=\"step\" value=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap().to_owned()
}

/// The fields that a button of a question sends, found by its name.
#[track_caller]
fn fields_of(html: &str, button: &str) -> (String, Vec<(String, String)>) {
    let (before, _) = html.split_once(&format!(">{button}</button>")).unwrap_or_else(|| panic!("{button}: {html}"));
    let form = before.rsplit_once("<form ").unwrap().1;
    let value = |text: &str| text.split('"').next().unwrap().to_owned();
    let fields =
        form.split("name=\"").skip(1).map(|field| (value(field), value(field.split_once("value=\"").unwrap().1)));
    (value(form.split_once("action=\"").unwrap().1), fields.collect())
}

#[track_caller]
fn press(page: &ServedPage<'_>, html: &str, button: &str) -> Answered {
    let (action, fields) = fields_of(html, button);
    let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    page.post(&action, &fields)
}

#[test]
fn a_line_that_could_mean_two_things_is_asked_about() {
    let env = world();
    let page = ServedPage::open(&env);
    let before = env.git(&["rev-parse", "HEAD"]);
    let asked = page.post("/tasks/add", &[("line", "call the dentist tomorrow 9:00")]);
    assert!(
        asked.status == 422 && asked.body.contains("What should “Call the dentist” (tomorrow 9:00) be?"),
        "{asked:#?}"
    );
    // What was typed is still there.
    assert!(asked.body.contains("value=\"call the dentist tomorrow 9:00\""), "{asked:#?}");
    assert_eq!((env.git(&["rev-parse", "HEAD"]), env.reminders().len()), (before, 0));
    let html = said(&page, &press(&page, &asked.body, "Remind me tomorrow 9:00"));
    assert!(html.contains("Reminder set: Call the dentist"), "{html}");
    let html = said(&page, &press(&page, &asked.body, "Add the task, due Sunday 22 November"));
    assert!(html.contains("Added: Call the dentist · tomorrow, Sunday 22 November."), "{html}");
    // A full list offers the backlog.
    for number in 2..=7 {
        env.wake(&["task", "add", &format!("Task {number}")]).ok();
    }
    let full = page.post("/tasks/add", &[("line", "paint the shed")]);
    assert!(full.status == 422 && full.body.contains("7 tasks in hand already"), "{full:#?}");
    let html = said(&page, &press(&page, &full.body, "Add it to the backlog"));
    assert!(html.contains("Added to the backlog: Paint the shed."), "{html}");
    assert!(env.memory("memory/project-memory/backlog.md").contains("## Paint the shed"));
}

#[test]
fn a_task_is_changed_moved_and_deleted_and_each_is_a_step_that_can_be_undone() {
    let env = world();
    for title in ["Tea", "Report", "Shed"] {
        env.wake(&["task", "add", title]).ok();
    }
    let page = ServedPage::open(&env);
    let titles = |env: &TestEnv| -> Vec<String> {
        env.memory(ACTIVE).lines().filter_map(|line| line.strip_prefix("## ")).map(str::to_owned).collect()
    };
    let html = page.get("/").ok();
    assert!(!html.contains("aria-label=\"Up: Tea\"") && !html.contains("aria-label=\"Down: Shed\""), "{html}");
    let shed = which(&html, "Done: Shed");
    let html = said(&page, &page.post("/tasks/shift", &[("which", &shed), ("to", "up")]));
    assert!(html.contains("Moved before “Report”: Shed") && titles(&env) == ["Tea", "Shed", "Report"], "{html}");
    // The note undoes exactly this step.
    said(&page, &page.post("/undo", &[("step", &step(&html))]));
    eventually("the order is undone", || titles(&env) == ["Tea", "Report", "Shed"]);
    env.wait_for_end_of_wake();

    let commits = || env.git(&["rev-list", "--count", "HEAD"]).parse::<u32>().unwrap();
    let before = commits();
    let edit = [
        ("which", shed.as_str()),
        ("title", "Paint the shed"),
        ("due", "12 december"),
        ("day", ""),
        ("next", "buy paint"),
    ];
    let html = said(&page, &page.post("/tasks/edit", &edit));
    assert!(html.contains("Paint the shed") && commits() == before + 1, "{html}");
    assert!(env.memory(ACTIVE).contains("## Paint the shed\n"), "{}", env.memory(ACTIVE));
    assert!(env.memory(ACTIVE).contains("- due: 2026-12-12\n"), "{}", env.memory(ACTIVE));
    assert!(env.memory(ACTIVE).contains("- next: buy paint\n"), "{}", env.memory(ACTIVE));
    let shed = which(&html, "Done: Paint the shed");
    // The calendar's field counts if no words are given; nothing changed is said.
    let by_calendar = [
        ("which", shed.as_str()),
        ("title", "Paint the shed"),
        ("due", ""),
        ("day", "2026-12-12"),
        ("next", "buy paint"),
    ];
    let same = page.post("/tasks/edit", &by_calendar);
    assert!(same.status == 422 && same.body.contains("You changed nothing"), "{same:#?}");
    said(
        &page,
        &page.post(
            "/tasks/edit",
            &[("which", shed.as_str()), ("title", "Paint the shed"), ("day", ""), ("next", "buy paint")],
        ),
    );
    assert!(!env.memory(ACTIVE).contains("2026-12-12"));

    let html = said(&page, &page.post("/tasks/move", &[("which", &shed), ("list", "backlog")]));
    assert!(html.contains("Moved to the backlog: Paint the shed") && titles(&env) == ["Tea", "Report"], "{html}");
    let shed = which(&html, "Take in hand: Paint the shed");
    said(&page, &page.post("/tasks/move", &[("which", &shed), ("list", "active")]));
    assert_eq!(titles(&env), ["Tea", "Report", "Paint the shed"]);
    let tea = which(&html, "Delete: Tea");
    let html = said(&page, &page.post("/tasks/drop", &[("which", &tea)]));
    assert!(html.contains("Dropped: Tea") && titles(&env) == ["Report", "Paint the shed"], "{html}");
    env.check_sound();
}

#[test]
fn reminders_are_set_put_off_changed_and_ended() {
    let env = world();
    let page = ServedPage::open(&env);
    let html = said(&page, &page.post("/reminders/add", &[("text", "tea"), ("at", "in 20 minutes")]));
    assert!(html.contains("Reminder set: tea") && html.contains("today 15:20"), "{html}");
    for (until, label, shown) in [
        ("10 minutes", "In 10 minutes: tea", "today 15:30"),
        ("1 hour", "In an hour: tea", "today 16:30"),
        ("tomorrow morning", "Tomorrow morning: tea", "tomorrow 09:00"),
        ("monday 8:30", "Snooze: tea", "Monday 08:30"),
    ] {
        let id = which(&page.get("/").ok(), label);
        let html = said(&page, &page.post("/reminders/snooze", &[("which", &id), ("until", until)]));
        assert!(html.contains("Moved: tea") && html.contains(&format!("{shown}</time>")), "{until}: {html}");
    }
    let id = which(&page.get("/").ok(), "Cancel it: tea");
    let html = said(&page, &page.post("/reminders/edit", &[("which", &id), ("text", "green tea"), ("at", "10:00")]));
    assert!(html.contains("Moved: green tea") && html.contains("Monday 10:00</time>"), "{html}");
    let id = which(&html, "Cancel it: green tea");
    let html = said(&page, &page.post("/reminders/edit", &[("which", &id), ("text", "black tea"), ("at", "")]));
    assert!(html.contains("Changed: black tea") && html.contains("Monday 10:00</time>"), "{html}");
    let id = which(&html, "Cancel it: black tea");
    let html = said(&page, &page.post("/reminders/done", &[("which", &id)]));
    assert!(html.contains("No reminders are set"), "{html}");
    assert_eq!(env.active_reminders().len(), 0);
    said(&page, &page.post("/undo", &[("step", &step(&html))]));
    eventually("it is set again", || env.active_reminders().len() == 1);
    env.wait_for_end_of_wake();
}

#[test]
fn a_form_that_is_sent_twice_is_carried_out_once() {
    let env = world();
    let page = ServedPage::open(&env);
    let html = page.get("/").ok();
    let key = html.split_once("name=\"key\" value=\"").unwrap().1.split('"').next().unwrap();
    let tea = [("text", "tea"), ("at", "in 20 minutes"), ("key", key)];
    let first = page.post("/reminders/add", &tea).see_other();
    assert_eq!(page.post("/reminders/add", &tea).see_other(), first);
    assert!(page.get(&first).ok().contains("Reminder set: tea"));
    // What was mended in the same form is another one.
    page.post("/reminders/add", &[("text", "soup"), tea[1], tea[2]]).see_other();
    assert_eq!(env.reminders().len(), 2);
    let task = [("line", "Report"), ("key", key)];
    let first = page.post("/tasks/add", &task).see_other();
    assert_eq!(page.post("/tasks/add", &task).see_other(), first);
    // What was refused can be sent again.
    let late = [("text", "bread"), ("at", "soonish"), ("key", key)];
    assert_eq!([page.post("/reminders/add", &late).status, page.post("/reminders/add", &late).status], [422; 2]);
}

#[test]
fn what_cannot_be_done_is_explained_with_what_was_typed_kept() {
    let env = world();
    let page = ServedPage::open(&env);
    let before = env.git(&["rev-parse", "HEAD"]);
    let task = [("line", "Write <it> 30 february")];
    for (path, fields, parts) in [
        (
            "/tasks/add",
            &task[..],
            &["“30 february” is not a day of the calendar", "value=\"Write &lt;it&gt; 30 february\""][..],
        ),
        ("/tasks/add", &[("line", "friday")], &["A task needs a title. Nothing was added."]),
        ("/tasks/add", &[("title", " ")], &["role=\"alert\""]),
        ("/tasks/shift", &[("which", "7"), ("to", "up")], &["no longer exists"]),
        ("/reminders/edit", &[("which", "99"), ("text", "tea")], &["no longer exists"]),
        ("/reminders/snooze", &[("which", "99"), ("until", "")], &["Until when?"]),
        ("/tasks/done", &[("which", "7")], &["no longer exists"]),
        (
            "/reminders/add",
            &[("text", "tea"), ("at", "soonish")],
            &["No time was understood", "value=\"tea\"", "value=\"soonish\""],
        ),
        ("/reminders/add", &[("text", "tea")], &["needs a text and a time"]),
        ("/reminders/done", &[("which", "99")], &["There's no reminder 99."]),
    ] {
        let answered = page.post(path, fields);
        let shown = &answered.body;
        assert_eq!(answered.status, 422, "{path} {fields:?}: {answered:#?}");
        for part in parts {
            assert!(shown.contains(part), "{path}: {part} in {shown}");
        }
        assert!(!shown.contains("`wake "), "the terminal's commands are of no use here: {shown}");
    }
    for path in
        ["/tasks/add?title=x", "/tasks/done", "/reminders/add", "/reminders/done", "/reminders/snooze", "/resume"]
    {
        assert_eq!(page.get(path).status, 405, "{path}");
    }
    assert_eq!((env.git(&["rev-parse", "HEAD"]), env.reminders().len()), (before, 0));
}

#[test]
fn a_new_workspace_says_what_will_be_here_and_a_stop_can_be_lifted() {
    let env = TestEnv::new();
    let page = ServedPage::open(&env);
    let html = page.get("/").ok();
    assert!(html.contains("This is new.") && html.contains("action=\"/tasks/add\""), "{html}");
    // The memory is made when it is needed.
    said(&page, &page.post("/tasks/add", &[("line", "buy milk")]));
    env.wake(&["--once"]).ok();
    env.wake(&["stop"]).ok();
    let html = page.get("/").ok();
    assert!(html.contains("All work is stopped") && html.contains("Buy milk"), "{html}");
    let html = said(&page, &page.post("/resume", &[]));
    assert!(!html.contains("All work is stopped") && html.contains("Resuming"), "{html}");
}

#[test]
fn no_secret_is_shown_and_none_stands_in_a_form() {
    let mut env = world();
    env.write_memory(ACTIVE, "# Active tasks\n\n## Open sesame-now please\n- touched: 2026-11-20\n");
    env.git(&["commit", "-qam", "Mine"]);
    env.set("OPENAI_API_KEY", "sesame-now");
    let page = ServedPage::open(&env);
    let html = page.get("/").ok();
    assert!(html.contains("Open *** please") && !html.contains("sesame"), "{html}");
    said(&page, &page.post("/tasks/done", &[("which", &which(&html, "Done: Open *** please"))]));
    assert!(!env.memory(ACTIVE).contains("sesame"));
}
