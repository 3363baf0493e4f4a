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
        "overdue since 2026-11-20",
        "8 days ago, on Fri 13 Nov",
        "Next: an outline.",
        "due today",
        "2 of 7 in hand",
        "1 task in the backlog",
        "<time datetime=\"2026-11-22T08:00:00.000Z\">Sun 2026-11-22 09:00</time>",
        "every weekday at 08:00",
        "What is due &lt;today&gt;?",
        "from chat 4242",
        "$5.00 spent, $5.00 left",
    ] {
        assert!(html.contains(part), "{part} in {html}");
    }
    assert!(html.contains("aria-label=\"In an hour: call Anna\"") && !html.contains("In an hour: stretch"), "{html}");
}

#[test]
fn a_task_is_added_and_finished_as_a_commit_of_the_persons_own() {
    let env = world();
    let page = ServedPage::open(&env);
    let fields = [("title", "Write \"the\" report"), ("due", "friday"), ("next", ""), ("list", "active")];
    let html = said(&page, &page.post("/tasks/add", &fields));
    assert!(html.contains("role=\"status\">Added to the active tasks: Write &quot;the&quot; report"), "{html}");
    assert!(env.memory(ACTIVE).contains("- due: 2026-11-27"), "{}", env.memory(ACTIVE));
    assert!(env.git(&["log", "-1", "--format=%an"]) == "Owner");
    // An address without its number says nothing.
    assert!(!page.get("/?said=0").ok().contains("Added to the active tasks"));
    let done = which(&html, "Done: Write &quot;the&quot; report");
    let html = said(&page, &page.post("/tasks/done", &[("which", &done)]));
    assert!(html.contains("No tasks in hand") && !env.memory(ACTIVE).contains("report"), "{html}");
    let again = page.post("/tasks/done", &[("which", &done)]);
    assert!(again.status == 422 && again.body.contains("no longer exists"), "{again:#?}");
    assert_eq!(env.once()["outcome"], "idle");
    // Undo is offered by name; a step that was shown is meant, not one that came since.
    let html = page.get("/").ok();
    assert!(html.contains("Last: what you did at 15:00: finished the task “Write"), "{html}");
    let step = html.split("name=\"step\" value=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap().to_owned();
    env.wake(&["task", "add", "Tea"]).ok();
    let html = said(&page, &page.post("/undo", &[("step", &step)]));
    assert!(html.contains("Undoing what you did at 15:00: finished the task “Write"), "{html}");
    eventually("it is undone", || env.memory(ACTIVE).contains("report"));
    assert!(env.memory(ACTIVE).contains("Tea"));
    env.check_sound();
}

#[test]
fn reminders_are_set_put_off_and_ended() {
    let env = world();
    let page = ServedPage::open(&env);
    let html = said(&page, &page.post("/reminders/add", &[("text", "tea"), ("at", "in 20 minutes")]));
    assert!(html.contains("Reminder set: tea") && html.contains("today 15:20"), "{html}");
    let id = which(&html, "In an hour: tea");
    let html = said(&page, &page.post("/reminders/snooze", &[("which", &id)]));
    assert!(html.contains("Moved: tea") && html.contains("today 16:20"), "{html}");
    let id = which(&html, "Done: tea");
    let html = said(&page, &page.post("/reminders/done", &[("which", &id)]));
    assert!(html.contains("No reminders are set"), "{html}");
    assert_eq!(env.active_reminders().len(), 0);
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
    let task = [("title", "Report"), ("key", key)];
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
    let task = [("title", "Write <it>"), ("due", "soonish"), ("next", "an outline"), ("list", "backlog")];
    for (path, fields, parts) in [
        (
            "/tasks/add",
            &task[..],
            &[
                "“soonish” isn't understood as a time",
                "value=\"Write &lt;it&gt;\"",
                "value=\"an outline\"",
                "\"backlog\" selected",
            ][..],
        ),
        ("/tasks/add", &[("title", " ")], &["role=\"alert\""]),
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
    assert!(html.contains("Nothing has happened here yet") && html.contains("action=\"/tasks/add\""), "{html}");
    // The memory is made when it is needed.
    said(&page, &page.post("/tasks/add", &[("title", "buy milk")]));
    env.wake(&["--once"]).ok();
    env.wake(&["stop"]).ok();
    let html = page.get("/").ok();
    assert!(html.contains("All work is stopped") && html.contains("buy milk"), "{html}");
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
