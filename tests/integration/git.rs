//! Tests of a person who works in the same repository: their edits, branches and commits. Also tests of tasks and reminders over time,
//! and of killed wakes.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use super::support::{
    claude::{Block, FakeClaude, Reply},
    env::{CHAT, NOW, ProgramOutput, Running, TestEnv, eventually},
    http::Gate,
    telegram::FakeTelegram,
};

const WAKE: &str = env!("CARGO_BIN_EXE_wake");
const ACTIVE: &str = "memory/project-memory/active.md";
const CONTEXT: &str = "memory/project-memory/context.md";
const EPISODIC: &str = "memory/agent-memory/episodic-memory.md";
const SEMANTIC: &str = "memory/agent-memory/semantic-memory.md";

/// An environment with a memory, and a person whose name git knows.
fn lived_in() -> TestEnv {
    let env = TestEnv::new();
    known_to_git(&env);
    env.wake(&["--once"]).ok();
    env
}

fn known_to_git(env: &TestEnv) {
    fs::write(env.path("home/.gitconfig"), "[user]\n\tname = Ann\n\temail = ann@example.org\n").unwrap();
}

fn say(env: &TestEnv, text: &str) -> ProgramOutput {
    env.wake(&["--once", "--say", text]).ok()
}

fn append(env: &TestEnv, path: &str, text: &str) {
    let old = env.memory(path);
    env.write_memory(path, &(old + text));
}

/// The files of a commit, one per line.
fn files(env: &TestEnv, commit: &str) -> String {
    env.git(&["show", "--name-only", "--format=", commit])
}

fn committed(env: &TestEnv, commit: &str, path: &str) -> String {
    env.git(&["show", &format!("{commit}:{path}")])
}

#[test]
fn a_persons_edit_is_committed_as_theirs_before_the_wakes_commit() {
    let env = lived_in();
    append(&env, CONTEXT, "- tea, never coffee\n");
    env.write_memory("memory/project-memory/trip.md", "# Trip\n");
    fs::remove_file(env.brain().join("skills/tdd/SKILL.md")).unwrap();
    say(&env, "remember that the wifi code is 1234");

    let subject = "Wake: remembered “the wifi code is 1234”; answered 1 message";
    assert_eq!(
        env.git(&["log", "-2", "--format=%an <%ae> | %cn | %s"]),
        format!(
            "Reveille <reveille@localhost> | Reveille | {subject}\n\
             Ann <ann@example.org> | Ann | Edited and deleted by hand: 3 files"
        )
    );
    assert_eq!(files(&env, "HEAD~1"), format!("{CONTEXT}\nmemory/project-memory/trip.md\nskills/tdd/SKILL.md"));
    assert!(committed(&env, "HEAD~1", CONTEXT).ends_with("- tea, never coffee"));
    assert_eq!(files(&env, "HEAD"), format!("{EPISODIC}\n{SEMANTIC}"));
    assert_eq!(env.git(&["status", "--short"]), "");
    env.check_sound();
}

#[test]
fn a_person_unknown_to_git_commits_as_the_owner() {
    let env = TestEnv::new();
    env.wake(&["--once"]).ok();
    append(&env, CONTEXT, "- tea\n");
    say(&env, "remember that the wifi code is 1234");
    assert_eq!(
        env.git(&["log", "-1", "--format=%an <%ae> | %s", "HEAD~1"]),
        format!("Owner <owner@localhost> | Edited by hand: {CONTEXT}")
    );
}

/// They take precedence over the person's own settings, as in git.
#[test]
fn a_person_is_known_by_the_settings_that_the_environment_names() {
    let mut env = lived_in();
    let settings = env.path("settings");
    fs::write(&settings, "[user]\n\tname = Bo Ek\n\temail = bo@example.org\n").unwrap();
    for (named, author) in
        [(settings.to_str().unwrap(), "Bo Ek <bo@example.org>"), ("/dev/null", "Owner <owner@localhost>")]
    {
        env.set("GIT_CONFIG_GLOBAL", named);
        append(&env, CONTEXT, "- tea\n");
        say(&env, "remember that the wifi code is 1234");
        assert_eq!(
            env.git(&["log", "-1", "--format=%an <%ae>, %cn <%ce> | %s", "HEAD~1"]),
            format!("{author}, {author} | Edited by hand: {CONTEXT}")
        );
    }
}

#[test]
fn large_secret_and_non_markdown_files_are_named_and_left_alone() {
    let telegram = FakeTelegram::start();
    let env = TestEnv::with_telegram(&telegram);
    env.wake(&["--once"]).ok();
    let large = format!("# Large\n{}", "all work and no play\n".repeat(50_000));
    let secret = format!("# Keys\n\nThe bot's token is {}.\n", super::support::telegram::TOKEN);
    env.write_memory("memory/large.md", &large);
    env.write_memory("memory/keys.md", &secret);
    env.write_memory("photo.jpg", "not a photo");
    env.write_memory("memory/fine.md", "Fine.\n");
    env.git(&["add", "memory/keys.md"]);
    let before = env.git(&["ls-files", "--stage", "memory/keys.md"]);
    say(&env, "remember that the wifi code is 1234");

    assert_eq!(files(&env, "HEAD~1"), "memory/fine.md");
    for (path, text) in [("memory/large.md", large.as_str()), ("memory/keys.md", &secret), ("photo.jpg", "not a photo")]
    {
        assert_eq!(env.memory(path), text);
        assert_eq!(env.git(&["log", "--format=%h", "--", path]), "", "{path} was committed");
    }
    assert_eq!(env.git(&["ls-files", "--stage", "memory/keys.md"]), before, "the staged file stays staged");
    let message = env.git(&["log", "-1", "--format=%B"]);
    for left in
        ["memory/large.md (is 1 MB or larger)", "memory/keys.md (seems to hold a secret)", "photo.jpg (isn't Markdown)"]
    {
        assert!(message.contains(&format!("Left alone, not committed: {left}")), "{left} in {message}");
        assert!(env.memory(EPISODIC).contains(left));
    }
}

#[test]
fn a_half_staged_edit_ends_up_whole_in_the_persons_commit() {
    let env = lived_in();
    append(&env, CONTEXT, "- the staged half\n");
    env.git(&["add", CONTEXT]);
    append(&env, CONTEXT, "- the other half\n");
    say(&env, "remember that the wifi code is 1234");
    assert!(committed(&env, "HEAD~1", CONTEXT).ends_with("- the staged half\n- the other half"));
    assert_eq!(files(&env, "HEAD"), format!("{EPISODIC}\n{SEMANTIC}"));
    assert_eq!(env.git(&["status", "--short"]), "");
    env.check_sound();
}

/// A wake that is held in the middle of its turn, after it has remembered something.
struct Held {
    claude: FakeClaude,
    gate: Gate,
    wake: Option<Running>,
}

impl Held {
    fn start(env: &mut TestEnv) -> Self {
        let (claude, gate) = (FakeClaude::start(), Gate::default());
        env.think_with(&claude);
        claude.expect(Reply::tools(vec![Block::tool("toolu_1", "remember", r#"{"fact":"the wifi code is 1234"}"#)]));
        claude.expect(Reply::text("Noted.").stalled_after(2, &gate));
        env.receive(0, "the wifi code is 1234");
        let wake = env.start(WAKE, &["--once", "--json"]);
        eventually("the second request", || claude.requests().len() == 2);
        Self { claude, gate, wake: Some(wake) }
    }

    fn let_go(mut self) -> (ProgramOutput, FakeClaude) {
        self.gate.open();
        let ran = self.wake.take().unwrap().end();
        (ran.ok(), self.claude)
    }
}

#[test]
fn an_edit_made_while_a_cycle_runs_survives_in_the_same_file_and_in_another() {
    let mut env = lived_in();
    say(&env, "remember that Anna lives in Bonn");
    let held = Held::start(&mut env);
    let edited = env.memory(SEMANTIC).replace("Anna lives in Bonn", "Anna lives in Rome");
    env.write_memory(SEMANTIC, &(edited + "- typed by hand\n"));
    append(&env, CONTEXT, "- tea, never coffee\n");
    // The person's change in the meantime is a reason for another cycle at once.
    held.claude.expect(Reply::text("Seen."));
    let (ran, _claude) = held.let_go();
    assert_eq!(ran.json()["answered"], 1);

    let facts = env.memory(SEMANTIC);
    assert!(facts.contains("- Anna lives in Rome <!-- wake "), "{facts}");
    assert!(facts.contains("- typed by hand\n") && facts.contains("- the wifi code is 1234 <!-- wake "), "{facts}");
    assert!(!facts.contains("Bonn"), "{facts}");
    assert_eq!(committed(&env, "HEAD", SEMANTIC), facts.trim_end());
    assert_eq!(env.git(&["log", "-4", "--format=%an"]), "Reveille\nAnn\nReveille\nAnn");
    assert_eq!(files(&env, "HEAD~3"), SEMANTIC, "the person's own commit, below the wake's");
    let theirs = committed(&env, "HEAD~3", SEMANTIC);
    assert!(theirs.contains("Rome") && theirs.contains("typed by hand") && !theirs.contains("1234"), "{theirs}");

    // The other file stayed uncommitted until the next cycle, which committed it as the person's.
    assert!(env.memory(CONTEXT).ends_with("- tea, never coffee\n"));
    assert_eq!(files(&env, "HEAD~1"), CONTEXT);
    env.check_sound();
}

#[test]
fn a_persons_next_commit_holds_only_what_they_staged_while_a_cycle_ran() {
    let mut env = lived_in();
    let held = Held::start(&mut env);
    append(&env, CONTEXT, "- tea\n");
    env.git(&["add", CONTEXT]);
    held.let_go();
    assert_eq!(env.git(&["diff", "--cached", "--name-only"]), CONTEXT);
    env.git(&["commit", "-qm", "Tea"]);
    assert_eq!(files(&env, "HEAD"), CONTEXT);
    assert!(committed(&env, "HEAD", SEMANTIC).contains("the wifi code is 1234"));
    env.check_sound();
}

#[test]
fn a_commit_made_while_a_cycle_runs_stays_below_the_wakes() {
    let mut env = lived_in();
    let held = Held::start(&mut env);
    append(&env, SEMANTIC, "- typed by hand\n");
    env.git(&["commit", "-qam", "By hand"]);
    let theirs = env.git(&["rev-parse", "HEAD"]);
    held.claude.expect(Reply::text("Seen."));
    held.let_go();
    assert_eq!(env.git(&["rev-parse", "HEAD~2"]), theirs);
    let facts = env.memory(SEMANTIC);
    assert!(facts.contains("- typed by hand\n") && facts.contains("1234"), "{facts}");
    env.check_sound();
}

/// Checks that the work is parked on a branch, that the person is told, and that main doesn't move. Returns the branch.
#[track_caller]
fn check_parked(env: &TestEnv, ran: &ProgramOutput, main: &str) -> String {
    assert_eq!(env.git(&["rev-parse", "main"]), main, "main doesn't move");
    let branch = env.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads/parked"]);
    assert_eq!(branch.lines().count(), 1, "{branch}");
    assert!(committed(env, &branch, SEMANTIC).contains("the wifi code is 1234"));
    assert_eq!(env.git(&["rev-parse", &format!("{branch}~1")]), main);
    assert!(ran.stdout.contains("Remembered: the wifi code is 1234"), "{ran:#?}");
    assert!(ran.stdout.contains(&format!("`{branch}` is the first")), "{ran:#?}");
    assert_eq!(env.count_queued(), 0);
    branch
}

/// Checks that, back on main, the next wake merges the parked work before it reads its memory, and continues normally.
#[track_caller]
fn check_return(env: &TestEnv, branch: &str) {
    let ran = say(env, "what do you know about the wifi code?");
    assert!(ran.stdout.contains("1234"), "{ran:#?}");
    say(env, "remember that Anna lives in Bonn");
    assert_eq!(env.trailer("Trigger"), "say");
    assert_eq!(env.git(&["symbolic-ref", "--short", "HEAD"]), "main");
    let facts = committed(env, "main", SEMANTIC);
    assert!(facts.contains("Anna lives in Bonn") && facts.contains("the wifi code is 1234"), "{facts}");
    assert!(env.git(&["log", "--format=%an: %s"]).contains(&format!("Reveille: Bring in {branch}")));
    assert_eq!(env.git(&["for-each-ref", "refs/heads/parked", "refs/reveille/parked"]), "");
    env.check_sound();
}

#[test]
fn on_a_detached_head_the_work_is_parked_and_the_person_told() {
    let env = lived_in();
    say(&env, "remember that tea is at five");
    let main = env.git(&["rev-parse", "main"]);
    env.git(&["checkout", "-q", "HEAD~1"]);
    let here = env.git(&["rev-parse", "HEAD"]);
    append(&env, CONTEXT, "- mine\n");
    let ran = say(&env, "remember that the wifi code is 1234");
    let branch = check_parked(&env, &ran, &main);
    assert!(ran.stdout.contains("detached HEAD"), "{ran:#?}");
    assert_eq!(env.git(&["rev-parse", "HEAD"]), here);
    assert_eq!(env.git(&["status", "--short"]), format!(" M {CONTEXT}"));
    env.git(&["checkout", "-q", "--", CONTEXT]);
    env.git(&["switch", "-q", "main"]);
    check_return(&env, &branch);
}

#[test]
fn on_another_branch_the_work_is_parked_and_the_person_told() {
    let env = lived_in();
    let main = env.git(&["rev-parse", "main"]);
    env.git(&["switch", "-q", "-c", "idea"]);
    append(&env, CONTEXT, "- an idea\n");
    env.git(&["commit", "-qam", "An idea"]);
    let idea = env.git(&["rev-parse", "idea"]);
    let ran = say(&env, "remember that the wifi code is 1234");
    let branch = check_parked(&env, &ran, &main);
    assert!(ran.stdout.contains("on the branch idea"), "{ran:#?}");
    assert_eq!(env.git(&["rev-parse", "idea"]), idea);
    assert_eq!(env.git(&["symbolic-ref", "--short", "HEAD"]), "idea");
    assert_eq!(env.git(&["status", "--short"]), "");
    env.git(&["switch", "-q", "main"]);
    check_return(&env, &branch);
}

#[test]
fn in_the_middle_of_a_merge_the_work_is_parked_and_the_merge_is_not_disturbed() {
    let env = lived_in();
    env.git(&["switch", "-q", "-c", "idea"]);
    append(&env, CONTEXT, "- tea\n");
    env.git(&["commit", "-qam", "Tea"]);
    env.git(&["switch", "-q", "main"]);
    append(&env, CONTEXT, "- coffee\n");
    env.git(&["commit", "-qam", "Coffee"]);
    env.once();
    let main = env.git(&["rev-parse", "main"]);
    let brain = env.brain().display().to_string();
    let merge = env.run("git", &["-C", &brain, "merge", "-q", "idea"]);
    assert_eq!(merge.code, 1, "{merge:#?}");
    let (conflicted, status) = (env.memory(CONTEXT), env.git(&["status", "--short"]));
    let ran = say(&env, "remember that the wifi code is 1234");
    let branch = check_parked(&env, &ran, &main);
    assert!(ran.stdout.contains("in the middle of a merge"), "{ran:#?}");
    assert_eq!((env.memory(CONTEXT), env.git(&["status", "--short"])), (conflicted, status));
    env.git(&["checkout", "--theirs", CONTEXT]);
    env.git(&["commit", "-qam", "Merged"]);
    check_return(&env, &branch);
}

#[test]
fn switching_branches_while_a_cycle_runs_loses_nothing() {
    let mut env = lived_in();
    let main = env.git(&["rev-parse", "main"]);
    let held = Held::start(&mut env);
    env.git(&["switch", "-q", "-c", "idea"]);
    held.let_go();
    assert_eq!(env.git(&["rev-parse", "main", "idea"]), format!("{main}\n{main}"));
    let branch = env.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads/parked"]);
    assert!(committed(&env, &branch, SEMANTIC).contains("the wifi code is 1234"));
    assert_eq!(env.git(&["status", "--short"]), "");
    let told = env.outbox_of("notice").remove(0).text;
    assert!(told.contains(&branch) && told.contains("on the branch idea"), "{told}");
    assert!(told.contains("`git switch main`"), "{told}");
}

#[test]
fn a_long_time_on_another_branch_is_reported_once_and_its_work_merged_later() {
    let mut env = lived_in();
    let notices = |env: &TestEnv| env.outbox_of("notice").len();
    env.git(&["switch", "-q", "-c", "idea"]);
    append(&env, SEMANTIC, "- of the idea alone\n");
    env.git(&["commit", "-qam", "An idea"]);
    let facts = ["the wifi code is 1234", "Anna lives in Bonn", "Bob has a cat"];
    for (minute, fact) in facts.iter().enumerate() {
        env.at(&format!("2026-11-21T15:{minute:02}:00Z"));
        let ran = say(&env, &format!("remember that {fact}"));
        assert_eq!(ran.stdout.contains("is the first"), minute == 0, "{ran:#?}");
    }
    assert_eq!(notices(&env), 1);
    assert_eq!(env.git(&["for-each-ref", "--format=x", "refs/heads/parked"]).lines().count(), 3);
    env.at("2026-11-21T15:10:00Z");
    assert_eq!(env.once()["outcome"], "idle", "nothing is due while HEAD is elsewhere");

    env.git(&["switch", "-q", "main"]);
    assert_eq!(env.once()["outcome"], "worked");
    let memory = env.memory(SEMANTIC);
    assert!(facts.iter().all(|fact| memory.matches(fact).count() == 1), "{memory}");
    assert!(!memory.contains("of the idea alone"), "the other branch's own changes stay there: {memory}");
    assert!(!memory.contains("Both of us changed"), "{memory}");
    let log = env.memory(EPISODIC);
    assert!(facts.iter().all(|fact| log.matches(&format!("Remembered: {fact}")).count() == 1), "{log}");
    assert_eq!(env.git(&["for-each-ref", "refs/heads/parked", "refs/reveille/parked"]), "");
    assert_eq!(env.once()["outcome"], "idle");

    // The next time away is reported again.
    env.git(&["switch", "-q", "idea"]);
    env.at("2026-11-21T16:00:00Z");
    say(&env, "remember that tea is at five");
    assert_eq!(notices(&env), 2);
    env.git(&["switch", "-q", "main"]);
    env.once();
    env.check_sound();
}

#[test]
fn parked_branches_that_a_person_deletes_merges_or_continues_are_theirs() {
    let mut env = lived_in();
    env.git(&["switch", "-q", "-c", "idea"]);
    let facts = ["the wifi code is 1234", "Anna lives in Bonn", "Bob has a cat"];
    for (minute, fact) in facts.iter().enumerate() {
        env.at(&format!("2026-11-21T15:{minute:02}:00Z"));
        say(&env, &format!("remember that {fact}"));
    }
    let branches = env.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads/parked"]);
    let [deleted, merged, gone_on] = branches.lines().collect::<Vec<_>>()[..] else { panic!("{branches}") };
    env.git(&["branch", "-qD", deleted]);
    env.git(&["switch", "-q", gone_on]);
    env.git(&["commit", "-q", "--allow-empty", "-m", "Mine on top"]);
    env.git(&["switch", "-q", "main"]);
    env.git(&["merge", "-q", "--no-edit", merged]);
    env.once();
    let memory = env.memory(SEMANTIC);
    assert!(!memory.contains(facts[0]) && memory.contains(facts[1]) && !memory.contains(facts[2]), "{memory}");
    assert_eq!(env.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads/parked"]), gone_on);
    env.check_sound();
}

#[test]
fn parked_work_that_is_blocked_waits_and_is_reported() {
    let mut env = lived_in();
    env.git(&["switch", "-q", "-c", "idea"]);
    say(&env, "remember that the wifi code is 1234");
    env.git(&["switch", "-q", "main"]);
    // A person's edit that is too large to be committed for them, in a file that the parked work changes.
    let mine = env.memory(SEMANTIC) + &"all work and no play\n".repeat(50_000);
    env.write_memory(SEMANTIC, &mine);
    for minute in 1..=5 {
        env.at(&format!("2026-11-21T14:{:02}:00Z", minute * 8));
        env.once();
        assert!(env.memory(SEMANTIC) == mine);
    }
    let told = env.outbox_with("is still on the branch");
    assert!(told.len() == 1 && told[0].contains("in the way"), "{told:?}");
    env.git(&["checkout", "-q", "--", SEMANTIC]);
    env.at("2026-11-21T18:00:00Z");
    env.once();
    assert!(env.memory(SEMANTIC).contains("the wifi code is 1234"));
    env.check_sound();
}

#[test]
fn a_neglected_task_is_mentioned_questioned_and_put_to_a_decision_once_each() {
    let telegram = FakeTelegram::start();
    let mut env = TestEnv::with_telegram(&telegram);
    env.wake(&["--once"]).ok();
    append(&env, ACTIVE, "\n## Paint the shed\n- status: active\n- touched: 2026-11-21\n");
    env.git(&["commit", "-qam", "A task"]);
    env.once();
    let told_before = telegram.sent().len();
    let mut said = Vec::new();
    for day in 22..=39 {
        let date = chrono::NaiveDate::from_ymd_opt(2026, 11, 21).unwrap() + chrono::Days::new(day - 21);
        for hour in ["09", "18"] {
            env.at(&format!("{date}T{hour}:00:00Z"));
            let before = telegram.sent().len();
            env.once();
            for message in &telegram.sent()[before..] {
                said.push((date.to_string(), hour, message.visible.clone()));
            }
        }
    }
    assert_eq!(told_before, 0);
    let expected = [
        ("2026-11-28", "“Paint the shed” has been quiet for 7 days. Is there a small next step?"),
        ("2026-12-01", "“Paint the shed” hasn't moved for 10 days. Is it still worth doing, and what's holding it up?"),
        ("2026-12-05", "“Paint the shed” has been untouched for 14 days. Continue it, or move it to the backlog?"),
    ];
    let said: Vec<_> = said.iter().map(|(day, hour, text)| (day.as_str(), *hour, text.as_str())).collect();
    assert_eq!(said, expected.map(|(day, text)| (day, "09", text)));
    env.check_sound();
}

#[test]
fn a_neglected_task_is_mentioned_only_after_quiet_hours() {
    let mut env = lived_in();
    env.set("QUIET_HOURS", "22:00-07:00");
    append(&env, ACTIVE, "\n## Paint the shed\n- status: active\n- touched: 2026-11-10\n");
    env.git(&["commit", "-qam", "A task"]);
    env.at("2026-11-21T03:00:00Z");
    let night = env.run_for_terminal_replies();
    assert!(!night.stdout.contains("Paint the shed"), "{night:#?}");
    env.at("2026-11-21T06:30:00Z");
    let morning = env.run_for_terminal_replies();
    assert!(morning.stdout.contains("“Paint the shed” hasn't moved for 11 days"), "{morning:#?}");
    env.at("2026-11-21T08:00:00Z");
    assert_eq!(env.once()["outcome"], "idle");
}

#[test]
fn a_tasks_own_time_wakes_once_and_again_when_it_is_moved() {
    let mut env = lived_in();
    let task = "\n## Call the plumber\n- status: active\n- next: ask for a date\n- at: 2026-11-21 16:00\n";
    append(&env, ACTIVE, task);
    env.git(&["commit", "-qam", "A task"]);
    let before = env.run_for_terminal_replies();
    assert!(!before.stdout.contains("plumber"), "{before:#?}");
    // 16:00 in Berlin.
    env.at("2026-11-21T15:00:00Z");
    let due = env.run_for_terminal_replies();
    assert_eq!(due.stdout, "It is time for “Call the plumber”: ask for a date.\n");
    assert_eq!(env.run_for_terminal_replies().stdout, "");
    let moved = env.memory(ACTIVE).replace("16:00", "17:30");
    env.write_memory(ACTIVE, &moved);
    assert_eq!(env.run_for_terminal_replies().stdout, "");
    env.at("2026-11-21T16:30:00Z").set("QUIET_HOURS", "17:00-18:00");
    assert_eq!(env.once()["outcome"], "idle", "nothing is sent in quiet hours");
    env.set("QUIET_HOURS", "none");
    assert_eq!(env.run_for_terminal_replies().stdout, "It is time for “Call the plumber”: ask for a date.\n");
    env.at("2026-11-21T16:45:00Z");
    assert_eq!(env.once()["outcome"], "idle");
    env.check_sound();
}

#[test]
fn a_reminder_fires_once() {
    let telegram = FakeTelegram::start();
    let mut env = TestEnv::with_telegram(&telegram);
    env.receive(CHAT, "remind me to call Anna at 16:00");
    env.once();
    assert_eq!(telegram.sent().len(), 1);
    env.at("2026-11-21T14:59:59Z");
    assert_eq!(env.once()["outcome"], "idle");
    env.at("2026-11-21T15:00:00Z");
    assert_eq!(env.once()["outcome"], "worked");
    for later in ["2026-11-21T15:00:01Z", "2026-11-21T14:59:00Z", "2026-11-22T15:00:00Z"] {
        env.at(later);
        assert_eq!(env.once()["outcome"], "idle");
    }
    let sent = telegram.sent();
    assert_eq!(sent.len(), 2);
    assert_eq!((sent[1].chat_id, sent[1].visible.as_str()), (CHAT, "⏰ call Anna"));
    assert!(env.memory(EPISODIC).contains("Reminded of “call Anna”"));
    env.check_sound();
}

/// Berlin leaves summer time on 2026-10-25 at 03:00, and enters it on 2027-03-28 at 02:00.
#[test]
fn a_recurring_reminder_keeps_its_wall_time_and_says_what_was_missed() {
    let mut env = lived_in();
    env.at("2026-10-23T12:00:00Z");
    say(&env, "remind me to water the plants every day at 9:00");
    let shown = |env: &TestEnv| env.run_for_terminal_replies().stdout;
    for (at, expected) in [
        ("2026-10-24T06:59:00Z", ""),
        ("2026-10-24T07:00:00Z", "⏰ water the plants\n"),
        ("2026-10-24T07:05:00Z", ""),
        // Winter time: the same hour on the wall clock is an hour later in UTC.
        ("2026-10-25T07:00:00Z", ""),
        ("2026-10-25T08:00:00Z", "⏰ water the plants\n"),
        ("2026-10-26T08:00:00Z", "⏰ water the plants\n"),
        // The 27th, 28th and 29th are missed, the 30th is on time.
        (
            "2026-10-30T08:00:00Z",
            "⏰ water the plants\n\n(I was not running when it was due 3 times from Tue 27 Oct 09:00 to Thu 29 Oct 09:00.)\n",
        ),
        ("2026-10-30T08:01:00Z", ""),
        ("2026-10-31T08:00:00Z", "⏰ water the plants\n"),
    ] {
        env.at(at);
        assert_eq!(shown(&env), expected, "at {at}");
    }
    assert_eq!(env.reminders()[0].next_at, "2026-11-01T08:00:00.000Z");
    assert_eq!(env.count_firings(), 5);
}

#[test]
fn an_interval_continues_through_the_hour_that_the_clock_change_doubles() {
    let mut env = lived_in();
    // 01:30 in Berlin; 02:30 occurs twice.
    env.at("2027-10-30T23:30:00Z");
    let said = say(&env, "remind me every hour to breathe").stdout;
    assert!(said.contains("next Sun 31 Oct 2027 at 02:30\n"), "{said}");
    for hour in ["00:30", "01:30", "02:30"] {
        env.at(&format!("2027-10-31T{hour}:00Z"));
        assert_eq!(env.run_for_terminal_replies().stdout, "⏰ breathe\n", "{hour}");
    }
    // A day and two hours later.
    env.at("2027-11-01T04:30:00Z");
    let late = env.run_for_terminal_replies().stdout;
    assert!(late.contains("25 times from Sun 31 Oct 04:30 to Mon 1 Nov 04:30"), "{late}");
    env.check_sound();
}

#[test]
fn a_wall_time_that_the_clock_change_skips_still_comes_on_that_day() {
    let mut env = lived_in();
    env.at("2027-03-26T12:00:00Z");
    say(&env, "remind me to turn the bread every day at 02:30 in the morning");
    let shown = |env: &TestEnv| env.run_for_terminal_replies().stdout;
    for (at, expected) in [
        ("2027-03-27T01:30:00Z", "⏰ turn the bread\n"),
        // 02:30 doesn't exist on the 28th: 01:30 UTC is 03:30 there.
        ("2027-03-28T00:59:00Z", ""),
        ("2027-03-28T01:30:00Z", "⏰ turn the bread\n"),
        ("2027-03-29T00:29:00Z", ""),
        ("2027-03-29T00:30:00Z", "⏰ turn the bread\n"),
    ] {
        env.at(at);
        assert_eq!(shown(&env), expected, "at {at}");
    }
}

#[test]
fn a_reminder_that_comes_late_says_when_it_was_due() {
    let mut env = lived_in();
    say(&env, "remind me to call Anna at 16:00");
    env.at("2026-11-21T17:00:00Z");
    assert_eq!(
        env.run_for_terminal_replies().stdout,
        "⏰ call Anna\n\n(It was due Sat 21 Nov 16:00. I was not running then.)\n"
    );
}

#[test]
fn a_log_of_over_two_thousand_lines_moves_its_oldest_days_to_the_archive() {
    let env = lived_in();
    let mut log = env.memory(EPISODIC);
    for day in 1..=21 {
        log.push_str(&format!("\n## 2026-10-{day:02}\n"));
        (0..100).for_each(|n| log.push_str(&format!("- 10:00 did thing {day}.{n} <!-- wake w{day} -->\n")));
    }
    env.write_memory(EPISODIC, &log);
    env.git(&["commit", "-qam", "A long life"]);
    say(&env, "remember that the wifi code is 1234");
    let (log, archive) = (env.memory(EPISODIC), env.memory("memory/agent-memory/archive/2026-10.md"));
    assert!(log.lines().count() <= 2_000, "{} lines are left", log.lines().count());
    assert!(log.contains("Remembered: the wifi code is 1234"));
    assert!(archive.contains("did thing 1.0") && !log.contains("did thing 1.0 "));
    for day in 1..=21 {
        for n in 0..100 {
            let entry = format!("- 10:00 did thing {day}.{n} <!-- wake w{day} -->\n");
            let count = log.matches(&entry).count() + archive.matches(&entry).count();
            assert_eq!(count, 1, "{entry}");
        }
    }
    // The first of the two cycles, which noted the person's commit, moved them.
    assert_eq!(files(&env, "HEAD~1"), format!("memory/agent-memory/archive/2026-10.md\n{EPISODIC}"));
    env.check_sound();
}

#[test]
fn a_persons_commit_is_noted_once() {
    let env = lived_in();
    append(&env, CONTEXT, "- tea\n");
    env.git(&["commit", "-qam", "I drink tea"]);
    let report = env.once();
    assert_eq!(report["reasons"], serde_json::json!(["1 commit by a person"]));
    assert_eq!(env.log().lines().next(), Some("Reveille: Wake: noted a person's commit: I drink tea (Ann)"));
    for _ in 0..2 {
        assert_eq!(env.once()["outcome"], "idle");
    }
    assert_eq!(env.memory(EPISODIC).matches("I drink tea").count(), 1);
    env.check_sound();
}

#[test]
fn log_and_show_describe_the_work_of_wakes() {
    let env = TestEnv::new();
    for command in [["log", ""], ["show", "abcd"]] {
        let args: Vec<&str> = command.into_iter().filter(|arg| !arg.is_empty()).collect();
        let ran = env.wake(&args);
        assert_eq!(ran.code, 1);
        ran.assert_tells("There is no memory at");
    }
    let said = env.wake(&["say", "remember", "that the wifi code", "is 1234"]).ok();
    assert_eq!(said.stdout, "Remembered: the wifi code is 1234\n");
    append(&env, CONTEXT, "- tea\n");
    env.git(&["commit", "-qam", "I drink tea"]);

    let id = env.git(&["log", "-1", "--format=%(trailers:key=Wake-Id,valueonly)", "HEAD~1"]).trim().to_owned();
    let commits = env.git(&["log", "--format=%h", "--abbrev=8"]);
    let commits: Vec<&str> = commits.lines().collect();
    let log = env.wake(&["log"]).ok().stdout;
    let lines: Vec<&str> = log.lines().collect();
    let at = "today 15:00";
    assert_eq!(lines.len(), 3);
    assert!(lines[0].starts_with(commits[0]) && lines[0].ends_with("  Ann  I drink tea"), "{log}");
    assert!(
        lines[1].starts_with(&format!("{}  {at}  {id}  Wake: remembered “the wifi code is 1234”", commits[1])),
        "{log}"
    );
    assert_eq!(lines[2], format!("{}  {at}  Reveille  A fresh memory, from the templates", commits[2]));
    assert_eq!(env.wake(&["log", "-n", "1"]).ok().stdout.lines().count(), 1);
    let log = env.wake(&["log", "--json"]).ok().stdout;
    let log: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((log.len(), &log[0]["author"], &log[0]["wake_id"]), (3, &"Ann".into(), &serde_json::Value::Null));
    assert_eq!((&log[1]["wake_id"], &log[1]["at"]), (&id.as_str().into(), &"2026-11-21T14:00:00Z".into()));
    assert!(log[1]["commit"].as_str().unwrap().starts_with(commits[1]));

    let whole = env.wake(&["show", &id]).ok().stdout;
    assert!(whole.contains(&format!("Wake-Id: {id}")), "{whole}");
    assert!(whole.contains("+- the wifi code is 1234 <!-- wake "), "{whole}");
    assert_eq!(env.wake(&["show", id.get(..13).unwrap()]).ok().stdout, whole);
    assert_eq!(env.wake(&["show", commits[1]]).ok().stdout, whole);
    let shown = env.wake(&["show", &id, "--json"]).ok().json();
    assert_eq!((&shown["commit"], &shown["subject"]), (&log[1]["commit"], &log[1]["subject"]));
    assert!(shown["diff"].as_str().unwrap().contains("+- the wifi code is 1234 <!-- wake "), "{shown}");
    for unknown in ["zzzz", "20991231", "a", ""] {
        let ran = env.wake(&["show", unknown]);
        assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
        ran.assert_tells("`wake log` lists them");
    }
    for empty in [vec!["say", " "], vec!["--once", "--say", ""]] {
        let ran = env.wake(&empty);
        assert_eq!(ran.code, 2, "{ran:#?}");
    }
    assert_eq!(env.count_received(), 1);
}

/// Checks that a text was sent once, or twice with a mark on the repetition: its first attempt was cut off before it was confirmed. In that
/// case, the marked message may also be the only one.
#[track_caller]
fn check_sent_once(telegram: &FakeTelegram, text: &str, round: i64) {
    let marked = format!("{text}\n\n↻ This may be a repeat: the first try wasn't confirmed.");
    let sent = telegram.sent();
    let all: Vec<&str> = sent
        .iter()
        .map(|sent| sent.visible.as_str())
        .filter(|sent| *sent == text || sent.starts_with(&format!("{text}\n")))
        .collect();
    // The server may accept a killed wake's message after the next wake's.
    let is_right = all == [text] || all == [&marked] || all == [text, &marked] || all == [&marked, text];
    assert!(is_right, "round {round}: {all:#?}");
}

#[test]
fn a_wake_killed_at_any_moment_is_completed_by_the_next() {
    let telegram = FakeTelegram::start();
    let mut env = TestEnv::with_telegram(&telegram);
    let remote = env.bare_remote("remote.git");
    env.set("REPO_URL", &remote.display().to_string());
    env.once();
    let mut random = fastrand::Rng::with_seed(2);
    let start = reveille_base::clock::parse_time(NOW).unwrap();
    let mut pushed = 0;
    for round in 0..20_i64 {
        let now = reveille_base::clock::format_rfc3339(start + chrono::TimeDelta::minutes(round));
        env.at(&now);
        let id = env.receive(CHAT, &format!("remember that box {round} is blue"));
        env.put_reminder(CHAT, &format!("paint box {round}"), &format!("2026-11-21T15:{round:02}:00"), &now);
        append(&env, CONTEXT, &format!("- round {round}\n"));
        let wake = env.start(WAKE, &["--once"]);
        std::thread::sleep(std::time::Duration::from_millis(random.u64(0..400)));
        wake.signal(rustix::process::Signal::KILL);
        wake.end();
        let next = env.once();

        let fact = format!("- box {round} is blue <!-- wake ");
        assert_eq!(env.memory(SEMANTIC).matches(&fact).count(), 1, "round {round}");
        assert_eq!(env.outcome(id), "answered");
        check_sent_once(&telegram, &format!("Remembered: box {round} is blue"), round);
        check_sent_once(&telegram, &format!("⏰ paint box {round}"), round);
        let trailers = env.git(&["log", "--format=%(trailers:key=Messages,valueonly)"]);
        let commits = trailers.lines().filter(|line| *line == id.to_string()).count();
        assert_eq!(commits, 1, "round {round}");
        assert!(env.memory(CONTEXT).ends_with(&format!("- round {round}\n")));
        assert_eq!(env.git(&["status", "--short"]), "");
        assert_eq!(env.count_open_cycles(), 0);
        let is_pushed = env.git_in(&remote, &["rev-parse", "main"]) == env.git(&["rev-parse", "HEAD"]);
        assert!(is_pushed || next["pushed"] == false, "round {round}: {next:#}");
        pushed += i64::from(is_pushed);
    }
    // A killed push may leave its lock behind, which holds up later pushes. The lock is left alone for ten minutes by the machine's
    // clock, and the push is tried again an hour later at most.
    assert!(pushed > 0, "no wake has pushed");
    for lock in ["refs/heads/main.lock", "HEAD.lock"].map(|lock| remote.join(lock)).iter().filter(|lock| lock.exists())
    {
        fs::File::options().write(true).open(lock).unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    }
    env.at(&reveille_base::clock::format_rfc3339(start + chrono::TimeDelta::hours(3)));
    env.once();
    assert_eq!(env.git_in(&remote, &["rev-parse", "main"]), env.git(&["rev-parse", "HEAD"]));
    assert_eq!(env.git(&["log", "--format=%s", "--author=Owner"]).lines().count(), 20);
    env.check_sound();
}

/// The worst moment of a push: the remote's branch is locked. Only the wake is killed; its children end by themselves and remove the
/// lock.
#[test]
fn a_push_killed_while_the_remote_is_locked_is_completed_by_the_next_wake() {
    let mut env = TestEnv::new();
    let remote = env.bare_remote("remote.git");
    env.set("REPO_URL", &remote.display().to_string());
    env.once();
    let (hook, locked, lock) =
        (remote.join("hooks/reference-transaction"), remote.join("locked"), remote.join("refs/heads/main.lock"));
    let script = "#!/bin/sh\ntest \"$1\" != prepared || { echo $$ >locked; sleep 1000; }\n";
    fs::write(&hook, script).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    env.receive(CHAT, "remember that box 1 is blue");
    let wake = env.start(WAKE, &["--once"]);
    eventually("the remote's branch is locked", || locked.exists() && lock.exists());
    wake.signal(rustix::process::Signal::KILL);
    wake.end();
    eventually("the lock is removed", || !lock.exists());
    fs::remove_file(&hook).unwrap();
    let next = env.once();
    assert_eq!(next["pushed"], true, "{next:#}");
    assert_eq!(env.git_in(&remote, &["rev-parse", "main"]), env.git(&["rev-parse", "HEAD"]));
    env.check_sound();
}

/// The wakes die before the cycle is in the journal, here in the pull that comes first. The attempts must count nevertheless: otherwise the
/// message would be tried for ever, and hold up all later ones.
#[test]
fn a_message_that_kills_three_wakes_before_they_begin_is_put_on_hold_and_reported() {
    let telegram = FakeTelegram::start();
    let mut env = TestEnv::with_telegram(&telegram);
    env.once();
    let there = env.path("there");
    let ssh = format!("sh -c 'touch {}; exec sleep 1000'", there.display());
    env.git(&["config", "core.sshCommand", &ssh]);
    env.git(&["remote", "add", "origin", "ssh://nowhere.example.org/brain.git"]);
    // Prevents a push; the fetch is kept from being due below.
    env.put_off_upkeep("push", "2026-11-22T14:00:00.000Z");
    let id = env.receive(CHAT, "remember that box 1 is blue");
    // The next wake counts the interrupted attempt.
    for (hour, noted) in [(15, 0), (16, 1), (17, 2)] {
        let now = format!("2026-11-21T{hour}:00:00Z");
        env.at(&now);
        env.put_upkeep("fetch", &now);
        let wake = env.start(WAKE, &["--once"]);
        eventually("the wake pulls", || there.exists());
        wake.signal(rustix::process::Signal::KILL);
        wake.end();
        fs::remove_file(&there).unwrap();
        assert_eq!((env.message(id).attempts, env.outcome(id).as_str()), (noted, "queued"));
    }
    env.git(&["remote", "remove", "origin"]);
    env.receive(CHAT, "remember that box 2 is red");
    env.once();
    assert_eq!((env.message(id).attempts, env.outcome(id).as_str()), (3, "dead"));
    let sent = telegram.sent();
    let told: Vec<&str> = sent.iter().map(|sent| sent.visible.as_str()).collect();
    assert_eq!(told.len(), 2, "{told:#?}");
    assert!(told[0].contains("I was cut off before I could begin") && told[0].contains("box 1 is blue"), "{told:#?}");
    assert!(told[1].contains("box 2 is red"), "{told:#?}");
    assert!(env.wake(&["queue", "list"]).ok().stdout.contains("box 1 is blue"));
    let listed = env.wake(&["queue", "list", "--json"]).ok().json();
    assert_eq!((&listed["state"], &listed["text"]), (&"given_up".into(), &"remember that box 1 is blue".into()));
    env.check_sound();
}

#[test]
fn links_are_never_followed_out_of_the_work_tree() {
    let env = lived_in();
    let outside = env.path("outside.md");
    fs::write(&outside, "Outside.\n").unwrap();
    std::os::unix::fs::symlink(Path::new(&outside), env.brain().join("memory/link.md")).unwrap();
    say(&env, "remember that the wifi code is 1234");
    assert_eq!(fs::read_to_string(&outside).unwrap(), "Outside.\n");
    assert!(env.memory(EPISODIC).contains("Left alone, not committed: memory/link.md (is a link)"));
}

/// Commits enough of the person's files to exceed the number of loose objects that a wake tolerates.
fn litter(env: &TestEnv) {
    fs::create_dir(env.brain().join("notes")).unwrap();
    for n in 0..reveille_git::MAX_LOOSE * 3 / 2 {
        env.write_memory(&format!("notes/{n}.txt"), &format!("note {n}\n"));
    }
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "Many notes"]);
    env.once();
}

fn loose(env: &TestEnv) -> usize {
    env.git(&["count-objects"]).split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn loose_objects_are_packed_after_an_answer_once_a_day_and_never_by_an_idle_wake() {
    let mut env = lived_in();
    env.put_upkeep("maintain", NOW);
    litter(&env);
    assert!(loose(&env) > reveille_git::MAX_LOOSE, "not a day has passed");
    env.at("2026-11-22T15:00:00Z");
    assert_eq!(env.once()["outcome"], "idle");
    assert!(loose(&env) > reveille_git::MAX_LOOSE, "an idle wake writes nothing");
    env.git(&["config", "gc.auto", "0"]);
    let ran = say(&env, "remember that the wifi code is 1234");
    assert!(ran.stdout.contains("Remembered: the wifi code is 1234"), "{ran:#?}");
    assert!(loose(&env) < 20, "{} are loose", loose(&env));
    assert_eq!(env.upkeep("maintain").last_ok_at.unwrap(), "2026-11-22T15:00:00.000Z");
    assert!(env.memory(SEMANTIC).contains("the wifi code is 1234"));
    env.check_sound();
}

#[test]
fn failed_housekeeping_costs_no_answer_and_waits_a_day() {
    let mut env = lived_in();
    env.git(&["config", "pack.window", "wide"]);
    litter(&env);
    let ran = say(&env, "remember that the wifi code is 1234");
    assert!(ran.stdout.contains("Remembered: the wifi code is 1234"), "{ran:#?}");
    let not_before = env.upkeep("maintain").not_before.unwrap();
    assert!(not_before.starts_with("2026-11-22T"), "{not_before}");
    env.git(&["config", "--unset", "pack.window"]);
    env.at("2026-11-22T16:00:00Z");
    say(&env, "remember that Anna lives in Bonn");
    assert!(loose(&env) < 20, "{} are loose", loose(&env));
    env.check_sound();
}
