//! Tests of standing jobs and watches: a job in `memory/jobs` runs once at its time, and reports what it found.

use std::{
    os::unix::fs::PermissionsExt as _,
    sync::{Arc, Mutex},
};

use super::{
    exec_shell::approve,
    support::story::{commits, last, opening, results, sent, start_wake, wait_for_request, with_claude},
    support::{
        claude::{Block, Reply},
        env::{CHAT, TestEnv},
        http::{Gate, HttpServer, Response, lock},
        telegram::FakeTelegram,
    },
};
use rustix::process::Signal;
use serde_json::json;

const EPISODIC: &str = "memory/agent-memory/episodic-memory.md";

/// An environment without a model, after its first wake.
fn offline() -> (FakeTelegram, TestEnv) {
    let telegram = FakeTelegram::start();
    let env = TestEnv::with_telegram(&telegram);
    env.once();
    (telegram, env)
}

/// Writes a job by hand, as a person does.
fn write(env: &TestEnv, name: &str, front: &str, body: &str) {
    std::fs::create_dir_all(env.brain().join("memory/jobs")).unwrap();
    env.write_memory(&format!("memory/jobs/{name}.md"), &format!("---\n{front}\n---\n{body}"));
}

fn grant(env: &TestEnv, policy: &str) {
    let path = env.workspace().join("policy.toml");
    std::fs::write(&path, policy).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// Commits the person's uncommitted edits, then checks that all is sound.
#[track_caller]
fn sound(env: &TestEnv) {
    env.git(&["add", "-A"]);
    env.git(&["commit", "-q", "--allow-empty", "-m", "Mine"]);
    env.check_sound();
}

/// The states of a job's runs, the oldest first.
fn states(env: &TestEnv, name: &str) -> Vec<String> {
    let mut runs = env.store().jobs().job_runs(Some(name), 100).unwrap();
    runs.reverse();
    runs.iter().map(|run| run.state.as_str().to_owned()).collect()
}

/// A server with a page whose text the test can change.
fn page(text: &str) -> (HttpServer, Arc<Mutex<String>>) {
    let said = Arc::new(Mutex::new(text.to_owned()));
    let shown = Arc::clone(&said);
    (HttpServer::start(move |_| Response::new(200, lock(&shown).clone()).header("content-type", "text/html")), said)
}

fn granted(env: &TestEnv, server: &HttpServer) -> String {
    let url = server.url();
    let host = url.split("://").nth(1).unwrap().trim_end_matches('/').to_owned();
    grant(env, &format!("[network]\nhosts = [{host:?}]\n"));
    url
}

#[test]
fn a_job_written_by_hand_runs_at_its_time_and_reports_its_result() {
    let (telegram, claude, mut env) = with_claude();
    env.wake(&["--once"]).ok();
    write(&env, "water-plants", "when: every day at 16:00", "Say which plants need water.");
    env.once();
    assert_eq!(env.once()["outcome"], "idle");
    assert_eq!((claude.requests().len(), states(&env, "water-plants").len()), (0, 0));

    env.at("2026-11-21T15:01:00Z");
    claude.expect(Reply::text("The fern."));
    assert_eq!(env.once()["outcome"], "worked");
    let opened = opening(&last(&claude), "<job name=\"water-plants\" due=\"Sat 21 Nov 16:00\">");
    assert!(opened.contains("<orders>\nSay which plants need water.\n</orders>"), "{opened}");
    assert_eq!(sent(&telegram), ["water-plants\n\nThe fern."]);
    assert_eq!(states(&env, "water-plants"), ["worked"]);
    assert!(env.memory(EPISODIC).contains("Ran the job water-plants: The fern."), "{}", env.memory(EPISODIC));
    assert_eq!(env.once()["outcome"], "idle");

    // The same answer is sent again, but `nothing` isn't sent.
    for (at, answer) in [("2026-11-22T15:01:00Z", "The fern."), ("2026-11-23T15:01:00Z", "nothing")] {
        env.at(at);
        claude.expect(Reply::text(answer));
        env.once();
        assert!(last(&claude).raw.contains("<last_time>\\nThe fern.\\n</last_time>"));
    }
    assert_eq!(sent(&telegram), ["water-plants\n\nThe fern."; 2]);
    // A person who starts a run is told its result in any case.
    env.wake(&["jobs", "run", "water-plants"]).ok();
    claude.expect(Reply::text("nothing"));
    env.once();
    assert_eq!(sent(&telegram)[2], "water-plants\n\nIt ran and had nothing to report.");
    let log = env.wake(&["jobs", "log", "water-plants"]).ok().stdout;
    assert!(log.contains("due Mon 23 Nov 16:00") && log.contains("done: nothing"), "{log}");
    sound(&env);
}

#[test]
fn a_killed_run_is_completed_once() {
    let (telegram, claude, mut env) = with_claude();
    env.wake(&["--once"]).ok();
    write(&env, "a", "when: 2026-11-21 16:00", "Say hello.");
    write(&env, "b", "when: 2026-11-21 17:00", "Say it again.");
    env.git(&["add", "-A"]);
    env.git(&["commit", "-q", "-m", "Jobs"]);
    claude.expect(Reply::text("Seen."));
    env.once();
    env.at("2026-11-21T15:01:00Z");
    let gate = Gate::default();
    claude.expect(Reply::text("Hello.").stalled_after(1, &gate));
    let wake = start_wake(&env);
    wait_for_request(&claude, 2);
    wake.signal(Signal::KILL);
    wake.end();
    gate.open();
    claude.expect(Reply::text("Hello."));
    env.once();
    assert_eq!(env.once()["outcome"], "idle");
    assert_eq!((sent(&telegram), states(&env, "a")), (vec!["a\n\nHello.".to_owned()], vec!["worked".to_owned()]));
    assert_eq!(claude.requests()[1].raw, claude.requests()[2].raw);

    // The state of the database after a kill between the claim of the run and the start of its cycle.
    env.put_open_job_run("b", "2026-11-21T17:00:00", "2026-11-21T16:00:00.000Z");
    env.at("2026-11-21T16:01:00Z");
    claude.expect(Reply::text("Again."));
    env.once();
    env.once();
    assert_eq!(states(&env, "b"), ["worked"], "the job doesn't run twice for its time");
    assert_eq!(sent(&telegram).len(), 2);
    sound(&env);
}

#[test]
fn a_failing_condition_asks_no_model_and_a_true_one_shows_its_output() {
    let (telegram, claude, mut env) = with_claude();
    env.wake(&["--once"]).ok();
    let inbox = env.path("inbox");
    std::fs::create_dir(&inbox).unwrap();
    grant(&env, &format!("[files]\nwrite = [{inbox:?}]\n"));
    let gate = format!("when: every day at 16:00\nif: ls {0}/* 2>/dev/null || exit 1", inbox.display());
    write(&env, "sort", &gate, "Sort the inbox.");
    env.once();
    env.at("2026-11-21T15:01:00Z").once();
    assert_eq!((states(&env, "sort"), claude.requests().len(), telegram.sent().len()), (vec!["nothing".into()], 0, 0));
    assert_eq!(env.job_outputs(), ["its command ended with 1"]);

    std::fs::write(inbox.join("a <b>.txt"), "x").unwrap();
    env.at("2026-11-22T15:01:00Z");
    claude.expect(Reply::text("One file: see [it](https://evil.example)."));
    env.once();
    let opened = opening(&last(&claude), "<job");
    assert!(opened.contains("a &lt;b>.txt\n</found>"), "{opened}");
    assert_eq!(states(&env, "sort"), ["nothing", "worked"]);
    // The file's name is untrusted text, which taints the answer: its link isn't clickable, and later cycles aren't shown it.
    assert!(telegram.sent()[0].visible.contains("https://evil.example"), "{:?}", telegram.sent()[0]);
    assert!(env.outbox()[0].taint.clone().unwrap().contains("the job sort"));
    sound(&env);
}

#[test]
fn a_conditions_command_gets_no_secrets_and_no_write_access() {
    let (telegram, mut env) = offline();
    let shared = env.path("shared");
    std::fs::create_dir(&shared).unwrap();
    grant(&env, &format!("[files]\nwrite = [{shared:?}]\n"));
    let command = format!(
        "touch {0}/x 2>/dev/null && echo wrote; env | grep -c TELEGRAM; cat {1}/.env {1}/policy.toml 2>/dev/null; true",
        shared.display(),
        env.workspace().display()
    );
    write(&env, "probe", &format!("when: every day at 16:00\nif: |\n  {command}\nnotify: always"), "");
    env.once();
    env.at("2026-11-21T15:01:00Z").once();
    assert_eq!(sent(&telegram), ["probe: it found something.\n\n0"], "{:?}", sent(&telegram));
    assert!(!shared.join("x").exists());
    sound(&env);
}

#[test]
fn a_changed_page_is_reported_once_with_its_changes_and_without_links() {
    let (telegram, mut env) = offline();
    let (server, said) = page("<p>Opens Monday</p><p>Prices</p>");
    let url = granted(&env, &server);
    write(&env, "shop", &format!("when: every 2 hours\nwatch: {url}"), "");
    env.once();
    env.at("2026-11-21T16:00:00Z").once();
    assert_eq!(
        (states(&env, "shop"), telegram.sent().len()),
        (vec!["nothing".to_owned(); 2], 0),
        "the first look, right away, only records the page"
    );
    env.at("2026-11-21T18:00:00Z").once();
    assert_eq!(states(&env, "shop"), ["nothing"; 3]);

    *lock(&said) = "<p>Opens <a href='https://evil.example'>Sunday</a></p><p>Prices</p>".to_owned();
    env.at("2026-11-21T20:00:00Z").once();
    let told = sent(&telegram);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with(&format!("shop: {url} has changed.")), "{told:?}");
    assert!(told[0].contains("- Opens Monday") && told[0].contains("+ Opens"), "{told:?}");
    assert!(!telegram.sent()[0].text.contains("href"), "{:?}", telegram.sent()[0]);
    env.at("2026-11-21T20:05:00Z").once();
    env.at("2026-11-21T22:00:00Z").once();
    assert_eq!((sent(&telegram).len(), states(&env, "shop").len()), (1, 5));
    sound(&env);
}

#[test]
fn new_entries_of_a_feed_are_reported() {
    let (telegram, mut env) = offline();
    let feed = |items: &[u32]| {
        let item = |n: &u32| {
            format!("<item><title>Title {n}</title><link>https://a.example/{n}</link><guid>{n}</guid></item>")
        };
        let items: String = items.iter().map(item).collect();
        format!(
            "<?xml version=\"1.0\"?><rss version=\"2.0\"><channel><title>T</title><link>https://a.example</link><description>d</description>{items}</channel></rss>"
        )
    };
    let (server, said) = page(&feed(&[1]));
    let url = granted(&env, &server);
    write(&env, "news", &format!("when: every 2 hours\nwatch: {url}"), "");
    env.once();
    env.at("2026-11-21T16:00:00Z").once();
    *lock(&said) = feed(&[3, 2, 1]);
    env.at("2026-11-21T18:00:00Z").once();
    let told = sent(&telegram);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].ends_with("Title 3\nhttps://a.example/3\n\nTitle 2\nhttps://a.example/2"),
        "title and link as text: {told:?}"
    );
    *lock(&said) = feed(&[3, 1]);
    env.at("2026-11-21T20:00:00Z").once();
    assert_eq!(sent(&telegram).len(), 1);
    sound(&env);
}

#[test]
fn a_feed_is_recognised_behind_comments_and_its_ids_may_change() {
    let (telegram, mut env) = offline();
    let feed = |look: u32, items: &[u32]| {
        let item = |n: &u32| {
            format!(
                "<item><title>Title {n} &amp;amp; more</title><link>/{n}</link><guid isPermaLink=\"false\">{look}-{n}</guid></item>"
            )
        };
        let items: String = items.iter().map(item).collect();
        let comment = "made by hand, with care ".repeat(100);
        format!("<!-- {comment} -->\n<rss><channel><link>https://a.example/</link>{items}</channel>")
    };
    let (server, said) = page(&feed(1, &[2, 1]));
    let url = granted(&env, &server);
    write(&env, "news", &format!("when: every 2 hours\nwatch: {url}"), "");
    env.once();
    env.at("2026-11-21T16:00:00Z").once();
    for (time, body) in [
        ("2026-11-21T18:00:00Z", feed(2, &[2, 1])),
        ("2026-11-21T20:00:00Z", "<!DOCTYPE html><title>503</title><p>Down for maintenance".to_owned()),
        ("2026-11-21T22:00:00Z", feed(3, &[2, 1])),
    ] {
        *lock(&said) = body;
        env.at(time).once();
    }
    assert_eq!(sent(&telegram), [""; 0], "nothing was new");
    *lock(&said) = feed(4, &[3, 2, 1]);
    env.at("2026-11-22T06:00:00Z").once();
    let told = sent(&telegram);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].ends_with("Title 3 & more\nhttps://a.example/3"), "{told:?}");
    sound(&env);
}

#[test]
fn a_file_and_a_commands_output_are_watched_too() {
    let (telegram, mut env) = offline();
    let notes = env.path("notes");
    std::fs::create_dir(&notes).unwrap();
    std::fs::write(notes.join("x.md"), "one\n").unwrap();
    grant(&env, &format!("[files]\nwrite = [{notes:?}]\n"));
    write(&env, "file", &format!("when: every 2 hours\nwatch: file:{}/x.md", notes.display()), "");
    write(&env, "count", &format!("when: every 2 hours\nwatch: 'command: ls {} | wc -l'", notes.display()), "");
    write(&env, "key", "when: every 2 hours\nwatch: file:~/.ssh/id_rsa", "");
    env.once();
    env.at("2026-11-21T16:00:00Z").once();
    assert_eq!(
        (states(&env, "file"), states(&env, "key")),
        (vec!["nothing".to_owned(); 2], vec!["failed".to_owned(); 2])
    );
    std::fs::write(notes.join("x.md"), "one\ntwo\n").unwrap();
    std::fs::write(notes.join("y.md"), "").unwrap();
    env.at("2026-11-21T18:00:00Z").once();
    let told = sent(&telegram);
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[1].starts_with("count: command: ls ") && told[1].ends_with("- 1\n+ 2"), "{told:?}");
    assert!(told[2].ends_with("x.md has changed.\n\n+ two"), "{told:?}");
    // A repeated failure is reported once.
    env.at("2026-11-21T20:00:00Z").once();
    env.at("2026-11-21T22:00:00Z").once();
    let of_key: Vec<_> = sent(&telegram).into_iter().filter(|text| text.starts_with("The job key")).collect();
    assert!(of_key.len() == 1 && of_key[0].contains("I'll try again at its next time"), "{of_key:?}");
    sound(&env);
}

#[test]
fn findings_in_quiet_hours_are_sent_when_they_end() {
    let (telegram, mut env) = offline();
    env.set("QUIET_HOURS", "22:00-07:00");
    write(&env, "night", "when: every day at 23:00\nif: echo found\nnotify: always", "");
    env.once();
    env.at("2026-11-21T22:01:00Z").once();
    assert_eq!((states(&env, "night"), telegram.sent().len()), (vec!["told".to_owned()], 0));
    assert_eq!(env.once()["outcome"], "idle");
    // A person who asks for a run is awake, so the result is sent even in quiet hours.
    env.wake(&["jobs", "run", "night"]).ok();
    env.once();
    assert_eq!(telegram.sent().len(), 1);
    env.at("2026-11-22T06:01:00Z").once();
    assert_eq!(sent(&telegram), vec!["night: it found something.\n\nfound"; 2]);
    assert_eq!(env.once()["outcome"], "idle");
    sound(&env);
}

#[test]
fn missed_runs_are_recorded_and_caught_up_by_the_jobs_rule() {
    let (telegram, mut env) = offline();
    for missed in ["run", "skip", "tell"] {
        write(&env, missed, &format!("when: every day at 16:00\nif: echo found\nmissed: {missed}"), "");
    }
    env.once();
    // All times since the first day were missed, the last one by hours.
    env.at("2026-11-24T20:00:00Z").once();
    assert_eq!(states(&env, "run"), ["missed", "told"]);
    assert_eq!((states(&env, "skip"), states(&env, "tell")), (vec!["missed".to_owned()], vec!["missed".to_owned()]));
    assert_eq!(
        sent(&telegram),
        [
            "run: it found something. (It was due Tue 24 Nov 16:00.)\n\nfound",
            "Missed while I was not running: the job tell, due 4 times from Sat 21 Nov 16:00 to Tue 24 Nov 16:00."
        ]
    );
    let log = env.wake(&["jobs", "log", "skip"]).ok().stdout;
    assert!(log.contains("missed: it was due 4 times from Sat 21 Nov 16:00 to Tue 24 Nov 16:00"), "{log}");
    assert_eq!(env.once()["outcome"], "idle");
    sound(&env);
}

#[test]
fn an_idle_look_with_jobs_writes_nothing() {
    let (_telegram, env) = offline();
    write(&env, "a", "when: every day at 16:00\nif: echo found", "");
    env.once();
    let version = || env.fence();
    let (before, n) = (version(), commits(&env));
    for _ in 0..3 {
        assert_eq!(env.once()["outcome"], "idle");
    }
    assert_eq!((version(), commits(&env)), (before, n));
    sound(&env);
}

#[test]
fn a_damaged_file_is_named_and_does_not_run() {
    let (telegram, mut env) = offline();
    write(&env, "good", "when: every day at 16:00\nif: echo found", "");
    write(&env, "bad", "when: every day at 16:00\nif: echo found\ntool: none", "");
    env.once();
    env.at("2026-11-21T15:01:00Z").once();
    assert_eq!((states(&env, "bad").len(), sent(&telegram).len()), (0, 1));
    let listed = env.wake(&["jobs", "list"]).ok().stdout;
    assert!(listed.contains("memory/jobs/bad.md") && listed.contains("line 4: `tool` isn't known"), "{listed}");
    assert!(listed.contains("good** — every day at 16:00, next Sun 2026-11-22 16:00"), "{listed}");
    let health = env.health(&["check", "--dry-run"]).stdout;
    assert!(health.contains("memory/jobs/bad.md isn't run: line 4"), "{health}");
    assert_ne!(env.wake(&["jobs", "run", "bad"]).code, 0);
    assert_ne!(env.wake(&["jobs", "run", "none"]).code, 0);
    sound(&env);
}

#[test]
fn a_job_is_paused_run_and_resumed_when_a_person_says_so() {
    let (telegram, mut env) = offline();
    write(&env, "a", "when: every day at 16:00\nif: echo found\nnotify: always", "");
    env.once();
    env.wake(&["jobs", "pause", "a"]).ok();
    assert!(env.memory("memory/jobs/a.md").contains("status: paused\n"));
    assert_eq!(env.git(&["log", "-1", "--format=%s"]), "Pause the job a");
    env.at("2026-11-22T15:01:00Z").once();
    assert_eq!(states(&env, "a").len(), 0);
    env.wake(&["jobs", "run", "a"]).ok();
    env.once();
    assert_eq!(
        (states(&env, "a"), sent(&telegram).len()),
        (vec!["told".to_owned()], 1),
        "a person may run a paused job"
    );
    env.wake(&["jobs", "resume", "a"]).ok();
    env.once();
    assert_eq!(env.once()["outcome"], "idle", "times that passed during the pause aren't made up for");
    env.at("2026-11-23T15:01:00Z").once();
    assert_eq!(sent(&telegram).len(), 2);
    let json = env.wake(&["jobs", "list", "--json"]).ok().json();
    assert_eq!((&json["name"], &json["state"]), (&json!("a"), &json!("active")));
    std::fs::remove_file(env.brain().join("memory/jobs/a.md")).unwrap();
    env.at("2026-11-24T15:01:00Z").once();
    assert_eq!(sent(&telegram).len(), 2);
    sound(&env);
}

#[test]
fn a_job_that_the_model_writes_needs_an_approval_that_shows_it() {
    let (telegram, claude, mut env) = with_claude();
    env.receive(CHAT, "sort my inbox each day, write it to /memories/jobs");
    let text = "---\nwhen: every day at 8\nif: test -s ~/inbox\ntools: task_add\n---\nSort it.";
    let create = json!({"command": "create", "path": "/memories/jobs/sort.md", "file_text": text});
    claude.expect(Reply::tools(vec![Block::tool("t1", "memory", create)]));
    assert_eq!(env.once()["outcome"], "parked");
    let question = telegram.sent().pop().unwrap().visible;
    for shown in ["a standing job", "when: every day at 8", "if: test -s ~/inbox", "tools: task_add", "budget: $0.50"] {
        assert!(question.contains(shown), "{shown}: {question}");
    }
    assert!(!env.brain().join("memory/jobs/sort.md").exists());
    approve(&env);
    claude.expect(Reply::text("Done."));
    env.once();
    assert!(env.memory("memory/jobs/sort.md").contains("Sort it."));
    // The question about an edit shows the whole resulting job.
    env.receive(CHAT, "and at 9, in /memories/jobs");
    let edit =
        json!({"command": "str_replace", "path": "/memories/jobs/sort.md", "old_str": "at 8", "new_str": "at 9"});
    claude.expect(Reply::tools(vec![Block::tool("t2", "memory", edit)]));
    env.at("2026-11-21T14:05:00Z");
    assert_eq!(env.once()["outcome"], "parked");
    let question = telegram.sent().pop().unwrap().visible;
    assert!(question.contains("when: every day at 9 · if: test -s ~/inbox"), "{question}");
}

#[test]
fn a_run_has_only_the_tools_that_its_file_names() {
    let (_telegram, claude, mut env) = with_claude();
    env.wake(&["--once"]).ok();
    write(&env, "a", "when: 2026-11-21 16:00\ntools: task_list", "Look at the tasks.");
    env.once();
    env.at("2026-11-21T15:01:00Z");
    claude.expect(Reply::tools(vec![
        Block::tool("t1", "remember", json!({"fact": "Cats purr"})),
        Block::tool("t2", "task_list", json!({})),
    ]));
    claude.expect(Reply::text("nothing"));
    env.once();
    let told = results(&last(&claude));
    assert!(told[0].1 && told[0].0.contains("The job's file doesn't name this tool."), "{told:?}");
    assert!(!told[1].1, "{told:?}");
    assert!(!claude.requests()[0].tools.contains("\"remember\""), "{}", claude.requests()[0].tools);
    assert!(!env.memory("memory/agent-memory/semantic-memory.md").contains("Cats purr"));
    sound(&env);
}

#[test]
fn a_run_ends_when_its_budget_is_spent_and_reports_it() {
    let (telegram, claude, mut env) = with_claude();
    env.wake(&["--once"]).ok();
    write(&env, "a", "when: 2026-11-21 16:00\nbudget: 0.01", "Go on for ever.");
    env.once();
    env.at("2026-11-21T15:01:00Z");
    claude.expect(
        Reply::tools(vec![Block::text("I begin."), Block::tool("t1", "task_list", json!({}))]).using(0, 10_000),
    );
    env.once();
    assert_eq!(claude.requests().len(), 1);
    let told = sent(&telegram);
    assert!(told.len() == 1 && told[0].contains("It stopped: one run may cost $0.01"), "{told:?}");
    assert_eq!(states(&env, "a"), ["failed"]);
    assert_eq!(env.once()["outcome"], "idle");
    sound(&env);
}

#[test]
fn watching_a_page_needs_no_approval_but_a_command_does() {
    let (telegram, claude, mut env) = with_claude();
    env.receive(CHAT, "let me know if https://a.example changes");
    let page = json!({"what": "https://a.example/", "when": "every 2 hours"});
    claude.expect(Reply::tools(vec![Block::tool("t1", "watch", page)]));
    claude.expect(Reply::text("I watch it."));
    env.once();
    assert!(claude.requests()[0].tools.contains("\"watch\""));
    let written = env.memory("memory/jobs/watch-a-example.md");
    assert_eq!(written, "---\nwhen: every 2 hours\nwatch: 'https://a.example/'\n---\n");
    // The host doesn't exist, which the person is told right after the answer.
    let said = sent(&telegram);
    assert!(said.len() == 2 && said[1].starts_with("The job watch-a-example couldn't be done"), "{said:?}");
    assert!(env.wake(&["jobs"]).ok().stdout.contains("next Sat 2026-11-21 17:00"), "{}", env.wake(&["jobs"]).stdout);
    env.at("2026-11-21T14:05:00Z").receive(CHAT, "and watch my disk");
    let command = json!({"what": "command: df -h", "when": "every day at 8", "name": "disk"});
    claude.expect(Reply::tools(vec![Block::tool("t2", "watch", command)]));
    assert_eq!(env.once()["outcome"], "parked");
    let question = telegram.sent().pop().unwrap().visible;
    assert!(question.contains("watch: command: df -h") && question.contains("when: every day at 8"), "{question}");
}

#[test]
fn a_watch_that_never_worked_is_reported_at_its_first_look() {
    let (telegram, mut env) = offline();
    let (missing, there) = (env.path("missing.md"), env.path("there.md"));
    std::fs::write(&there, "one\n").unwrap();
    grant(&env, &format!("[files]\nread = [\"{}\"]\n", env.root().display()));
    for (name, file) in [("gone", &missing), ("there", &there)] {
        write(&env, name, &format!("when: every day at 16:00\nwatch: 'file:{}'", file.display()), "");
    }
    // Long before the jobs' time.
    env.once();
    let said = sent(&telegram);
    assert!(said.len() == 1 && said[0].contains("The job gone couldn't be done"), "{said:?}");
    assert_eq!((states(&env, "gone"), states(&env, "there")), (vec!["failed".to_owned()], vec!["nothing".to_owned()]));
    assert_eq!(env.once()["outcome"], "idle", "one look is enough");
    env.at("2026-11-21T15:01:00Z");
    env.once();
    assert_eq!(
        sent(&telegram).len(),
        1,
        "the failure was reported, and the job waits for its time: {:?}",
        sent(&telegram)
    );
    // A watch that has worked before is tried again before a failure is reported.
    std::fs::remove_file(&there).unwrap();
    env.at("2026-11-22T15:01:00Z");
    env.once();
    assert_eq!(sent(&telegram).len(), 1, "{:?}", sent(&telegram));
}

#[test]
fn a_guest_can_neither_see_nor_create_jobs() {
    const GUEST: i64 = 5555;
    let (_telegram, claude, mut env) = with_claude();
    env.set("ALLOWED_CHAT_IDS", &format!("{CHAT},{GUEST}"));
    env.wake(&["--once"]).ok();
    write(&env, "secret-plan", "when: every day at 16:00", "CANARY");
    env.git(&["add", "-A"]);
    env.git(&["commit", "-q", "-m", "Mine"]);
    claude.expect(Reply::text("Seen."));
    env.once();
    env.receive(GUEST, "watch https://a.example and tell me what jobs there are in /memories");
    claude.expect(Reply::tools(vec![
        Block::tool("t1", "watch", json!({"what": "https://a.example", "when": "every 2 hours"})),
        Block::tool("t2", "memory", json!({"command": "view", "path": "/memories/jobs"})),
        Block::tool("t3", "memory", json!({"command": "view", "path": "/memories/jobs/secret-plan.md"})),
        Block::tool(
            "t4",
            "memory",
            json!({"command": "create", "path": "/memories/jobs/x.md", "file_text": "---\nwhen: every day\n---\nx"}),
        ),
    ]));
    claude.expect(Reply::text("No."));
    env.once();
    let told = results(&last(&claude));
    assert!(told.iter().all(|(_, is_error)| *is_error), "{told:?}");
    assert!(!last(&claude).raw.contains("CANARY") && !claude.requests()[1].raw.contains("secret-plan"));
    assert_eq!(std::fs::read_dir(env.brain().join("memory/jobs")).unwrap().count(), 1);
    sound(&env);
}

#[test]
fn a_run_whose_first_request_fails_is_resumed_later() {
    let (telegram, claude, mut env) = with_claude();
    env.wake(&["--once"]).ok();
    write(&env, "water-plants", "when: every day at 16:00", "Say which plants need water.");
    env.once();
    env.at("2026-11-21T15:01:00Z");
    claude.expect(Reply::error(401, "authentication_error", "invalid x-api-key"));
    assert_eq!(env.wake(&["--once"]).code, 1);
    assert_eq!((states(&env, "water-plants"), sent(&telegram).len()), (vec!["open".to_owned()], 0));
    env.at("2026-11-21T17:01:00Z");
    claude.expect(Reply::text("The fern."));
    assert_eq!(env.once()["outcome"], "worked");
    assert_eq!(states(&env, "water-plants"), ["worked"]);
    assert_eq!(sent(&telegram), ["water-plants\n\nThe fern."]);
    sound(&env);
}

#[test]
fn long_work_does_not_hold_up_a_job() {
    let (telegram, claude, mut env) = with_claude();
    env.wake(&["--once"]).ok();
    write(&env, "tea", "when: every day at 16:00", "Say hello.");
    env.once();
    env.at("2026-11-21T15:01:00Z");
    env.receive(CHAT, "sort all of it step by step");
    let steps = json!([{"what": "One"}, {"what": "Two"}]);
    let start = json!({"do": "start", "task": "Sort it", "goal": "All", "steps": steps});
    claude.expect(Reply::tool("t1", "long_tasks", start)).expect(Reply::text("Begun."));
    let end = |result: &str| Reply::tool("t1", "step_end", json!({"outcome": "done", "result": result}));
    claude.expect(end("1")).expect(Reply::text("Hello.")).expect(end("2"));
    env.once();
    let said = sent(&telegram);
    assert_eq!(said[1], "tea\n\nHello.", "{said:?}");
    assert!(said[2].contains("all 2 steps"), "{said:?}");
    sound(&env);
}
