//! The shell that a mind is given: kept from call to call, confined, judged before it runs, ended with its wake.

use std::time::Duration;

use super::{
    support::story::{end_well, last, results, start_wake, with_claude},
    support::{
        claude::{Block, FakeClaude, Reply},
        env::{CHAT, TestEnv, eventually},
        telegram::FakeTelegram,
    },
};
use reveille_base::types::ApprovalAnswer;
use rustix::process::Signal;
use serde_json::json;

/// The files of this name that cycles have left in their folders of the scratch.
pub(crate) fn left(env: &TestEnv, name: &str) -> Vec<std::path::PathBuf> {
    let folders = std::fs::read_dir(env.workspace().join("scratch")).into_iter().flatten();
    let mut paths: Vec<_> = folders.map(|folder| folder.unwrap().path().join("work").join(name)).collect();
    paths.retain(|path| path.exists());
    paths.sort();
    paths
}

/// Whether a shell says that it stands where a cycle's shell begins.
fn is_at_work(env: &TestEnv, said: &str) -> bool {
    let said = std::path::Path::new(said.lines().next().unwrap_or_default());
    said.parent().and_then(std::path::Path::parent) == Some(&env.workspace().join("scratch")) && said.ends_with("work")
}

/// A world whose person asks for work in the shell.
pub(crate) fn asked() -> (FakeTelegram, FakeClaude, TestEnv) {
    let (telegram, claude, env) = with_claude();
    env.receive(CHAT, "run a command for me");
    (telegram, claude, env)
}

pub(crate) fn bash(id: &str, command: &str) -> Reply {
    Reply::tools(vec![Block::tool(id, "bash", json!({ "command": command }))])
}

fn told(claude: &FakeClaude) -> (String, bool) {
    results(&last(claude)).remove(0)
}

/// Says yes to the last question.
pub(crate) fn approve(env: &TestEnv) {
    let mut store = env.store();
    let asked = store.approvals().last_approvals(1).unwrap().remove(0);
    assert!(store.approvals_mut().decide_approval(asked.id, ApprovalAnswer::Yes, asked.asked_at.unwrap()).unwrap());
}

#[test]
fn what_only_looks_runs_at_once_and_the_shell_is_kept() {
    let (telegram, claude, env) = asked();
    claude.expect(bash("t1", "cd / && pwd"));
    claude.expect(bash("t2", "pwd"));
    claude.expect(bash("t3", "cat /nowhere"));
    claude.expect(Reply::text("Done."));
    assert_eq!(env.once()["outcome"], "worked");
    let requests = claude.requests();
    let said = |n: usize| results(&requests[n]).remove(0).0;
    assert_eq!((said(1).trim_end(), said(2).trim_end()), ("/", "/"));
    assert!(said(3).contains("No such file") && said(3).contains("[exit code 1]"), "{}", said(3));
    let offered = requests[0].json["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "bash").unwrap();
    assert!(offered["input_schema"]["properties"]["writes"].is_object(), "{offered}");
    assert!(telegram.sent().iter().all(|message| message.buttons.is_empty()));
    assert!(env.memory("memory/agent-memory/episodic-memory.md").contains("Ran “cd / && pwd”"));
    env.check_sound();
}

/// Lines of our own that only a person could tell from harmless ones: none may change what is granted, and none is asked about.
const LINES: &[&str] = &[
    "find . -name '*.txt' -exec rm -f {} +",
    "find . -type f -print0 | xargs -0 rm -f",
    "git checkout HEAD a.txt",
    "cp /dev/null a.txt",
    "sed -i d a.txt",
    "perl -MFile::Path -e 'rmtree(\"sub\")'",
    "for f in *; do : > \"$f\"; done",
    "rm -f sub/b.txt",
    "x=rm; $x -r sub",
    "git commit -qam gone",
    "echo more >> a.txt",
    "cat > new.txt <<'END'\nmore\nEND",
    "mv a.txt b.txt || ln -s a.txt c.txt",
    "chmod 0 a.txt; touch -d 2001-01-01 sub/b.txt",
    "python3 -c 'open(\"a.txt\", \"w\")'",
    "tar czf sub/all.tar.gz a.txt",
    "awk 'BEGIN { print > \"a.txt\" }'",
    "(sleep 0.1; rm a.txt) & wait",
    "exec 3> a.txt",
    "tee a.txt < /dev/null",
];

/// A repository of the person's, which is granted for writing.
pub(crate) fn granted(env: &TestEnv, more: &str) -> std::path::PathBuf {
    let work = env.path("work");
    std::fs::create_dir_all(work.join("sub")).unwrap();
    for file in ["a.txt", "sub/b.txt"] {
        std::fs::write(work.join(file), "the person's\n").unwrap();
    }
    env.git_in(&work, &["init", "-q"]);
    env.git_in(&work, &["add", "."]);
    env.git_in(&work, &["commit", "-qm", "first"]);
    std::fs::write(work.join("a.txt"), "the person's, not committed\n").unwrap();
    let policy = env.workspace().join("policy.toml");
    std::fs::create_dir_all(env.workspace()).unwrap();
    std::fs::write(&policy, format!("[files]\nwrite = [{:?}]\n{more}", work.display().to_string())).unwrap();
    std::fs::set_permissions(&policy, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    work
}

/// All that is in a folder: paths, with rights, bytes, and where links lead.
pub(crate) fn contents(folder: &std::path::Path) -> std::collections::BTreeMap<std::path::PathBuf, (u32, Vec<u8>)> {
    use std::os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _};
    let mut found = std::collections::BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let metadata = path.symlink_metadata().unwrap();
            let bytes = match () {
                () if metadata.is_dir() => Vec::new(),
                () if metadata.is_symlink() => std::fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec(),
                () if metadata.is_file() => std::fs::read(&path).unwrap(),
                () => b"(not a file)".to_vec(),
            };
            if metadata.is_dir() {
                open.push(path.clone());
            }
            found.insert(path, (metadata.mode(), bytes));
        }
    }
    found
}

pub(crate) fn questions(telegram: &FakeTelegram) -> usize {
    telegram.sent().iter().filter(|message| !message.buttons.is_empty()).count()
}

#[test]
fn whatever_it_is_a_command_runs_at_once_and_changes_nothing_but_the_scratch() {
    for level in ["1", "2"] {
        let (telegram, claude, mut env) = asked();
        env.set("AUTONOMY", level);
        let work = granted(&env, "");
        let before = contents(&work);
        claude.expect(bash("t0", &format!("echo here > kept.txt && cd {} && cat a.txt", work.display())));
        for (n, line) in LINES.iter().enumerate() {
            claude.expect(bash(&format!("t{}", n + 1), line));
        }
        claude.expect(Reply::text("Done."));
        assert_eq!(env.once()["outcome"], "worked");
        assert_eq!(questions(&telegram), 0);
        let requests = claude.requests();
        let said = |n: usize| results(&requests[n]).remove(0).0;
        assert_eq!(said(1).trim_end(), "the person's, not committed");
        assert!(
            said(4).contains("Read-only file system") && said(4).contains("call it again with `writes`"),
            "{}",
            said(4)
        );
        assert_eq!(contents(&work), before);
        assert_eq!(std::fs::read_to_string(left(&env, "kept.txt").remove(0)).unwrap(), "here\n");
        env.check_sound();
        // Outside each of them changes something.
        for line in LINES {
            let outside = env.path("outside");
            env.run("cp", &["-a", &work.display().to_string(), &outside.display().to_string()]).ok();
            let there = contents(&outside);
            env.run("/bin/bash", &["-c", &format!("cd {}; {line}", outside.display())]);
            assert_ne!(contents(&outside), there, "{line}");
            env.run("chmod", &["-R", "u+rwX", &outside.display().to_string()]).ok();
            std::fs::remove_dir_all(&outside).unwrap();
        }
    }
}

/// What can't be copied: a copy covers nothing then.
pub(crate) fn with_a_pipe(work: &std::path::Path) {
    rustix::fs::mknodat(rustix::fs::CWD, work.join("pipe"), rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .unwrap();
}

pub(crate) fn writing(id: &str, command: &str) -> Reply {
    Reply::tools(vec![Block::tool(id, "bash", json!({ "command": command, "writes": true }))])
}

#[test]
fn what_is_to_change_a_granted_folder_asks_where_no_copy_covers_it_and_a_yes_is_for_that_command() {
    let (telegram, claude, mut env) = asked();
    env.set("AUTONOMY", "2");
    let work = granted(&env, "");
    with_a_pipe(&work);
    let touch = |name: &str| format!("touch {}", work.join(name).display());
    claude.expect(writing("t1", &touch("made")));
    assert_eq!(env.once()["outcome"], "parked");
    let question = telegram.sent().pop().unwrap().visible;
    assert!(question.contains(&touch("made")) && question.contains("I can't copy them first"), "{question}");
    assert!(!work.join("made").exists());
    approve(&env);
    claude.expect(bash("t2", &touch("again")));
    claude.expect(Reply::text("Done."));
    assert_eq!(env.once()["outcome"], "worked");
    assert!(work.join("made").exists() && !work.join("again").exists(), "{:?}", told(&claude));
    assert_eq!(questions(&telegram), 1);
    env.check_sound();
}

#[test]
fn a_rule_lets_a_command_write_and_what_earlier_ones_have_set_does_not_meet_it() {
    let (telegram, claude, env) = asked();
    let rule = "[[rule]]\ncommand = \"touch\"\ndecision = \"allow\"\nmatch = [\"touch x\"]\n";
    let work = granted(&env, rule);
    with_a_pipe(&work);
    let path = work.join("made").display().to_string();
    claude.expect(Reply::tools(vec![
        Block::tool("t1", "bash", json!({"command": format!("touch {path}"), "writes": true})),
        Block::tool(
            "t2",
            "bash",
            json!({"command": format!("touch() {{ rm {path}; }}; export -f touch; cd {}", work.display())}),
        ),
    ]));
    claude.expect(Reply::text("Done."));
    assert_eq!(env.once()["outcome"], "worked");
    assert!(work.join("made").exists() && questions(&telegram) == 0);
    env.receive(CHAT, "and another");
    // After words of a program's, what lasts asks in spite of the rule.
    claude.expect(Reply::tools(vec![
        Block::tool("t3", "bash", json!({"command": "touch() { echo met; }; export -f touch"})),
        Block::tool("t4", "bash", json!({"command": format!("touch {path}-too"), "writes": true})),
    ]));
    assert_eq!(env.once()["outcome"], "parked");
    assert!(telegram.sent().pop().unwrap().visible.contains("I have read text from a program's output"));
    // Approved, it runs in a shell of its own.
    approve(&env);
    claude.expect(Reply::text("Done."));
    assert_eq!(env.once()["outcome"], "worked");
    assert!(work.join("made-too").exists());
    env.check_sound();
}

/// A clone can't bring a `.git` along, but a folder that is a repository all the same.
#[test]
fn a_repository_within_a_clone_runs_nothing_when_it_is_looked_at() {
    let (_telegram, claude, env) = asked();
    let folder = env.workspace().join("scratch/clone/x");
    std::fs::create_dir_all(&folder).unwrap();
    let marker = folder.join("was-run");
    let program = format!("touch {} #", marker.display());
    env.git_in(&folder, &["init", "--quiet"]);
    std::fs::write(folder.join("file"), "before\n").unwrap();
    env.git_in(&folder, &["add", "file"]);
    env.git_in(&folder, &["config", "diff.external", &program]);
    env.git_in(&folder, &["config", "core.worktree", "."]);
    std::fs::write(folder.join("file"), "after\n").unwrap();
    for part in std::fs::read_dir(folder.join(".git")).unwrap().map(Result::unwrap) {
        std::fs::rename(part.path(), folder.join(part.file_name())).unwrap();
    }
    std::fs::remove_dir(folder.join(".git")).unwrap();
    env.git_in(&folder, &["diff"]);
    assert!(marker.exists(), "outside it is run");
    std::fs::remove_file(&marker).unwrap();
    claude.expect(bash("t1", &format!("git -C {} diff", folder.display())));
    claude.expect(Reply::text("That is no repository of yours."));
    assert_eq!(env.once()["outcome"], "worked");
    let (said, _) = told(&claude);
    assert!(!marker.exists() && said.contains("Not a git repository"), "{said}");
    env.check_sound();
}

#[test]
fn what_must_stay_out_of_reach_is_not_there() {
    let (_telegram, claude, mut env) = asked();
    env.set("AUTONOMY", "2");
    let database = env.workspace().join("messages.db");
    assert!(std::fs::read(&database).is_ok(), "outside it can be read");
    claude.expect(bash("t1", &format!("cat {}", database.display())));
    claude.expect(bash("t2", "printenv ANTHROPIC_API_KEY"));
    claude.expect(bash("t3", &format!("ls {}", env.brain().join(".git").display())));
    claude.expect(Reply::text("Nothing to be seen."));
    // Whatever of it asks is allowed: the sandbox is the boundary.
    while env.once()["outcome"] == "parked" {
        approve(&env);
    }
    let requests = claude.requests();
    let conversation = last(&claude).raw.clone();
    assert!(!conversation.contains("SQLite format 3") && !conversation.contains("refs/heads"), "{conversation}");
    for request in &requests[1..] {
        let (said, _) = results(request).remove(0);
        assert!(said.contains("exit code") || said.contains("doesn't allow"), "{said}");
    }
}

#[test]
fn files_that_settings_name_for_keys_are_out_of_reach() {
    let (_telegram, claude, mut env) = asked();
    env.set("AUTONOMY", "2");
    let folder = env.path("notes");
    std::fs::create_dir_all(&folder).unwrap();
    let private = |path: &std::path::Path, text: &str| {
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    };
    for name in ["ours", "theirs", "list"] {
        private(&folder.join(name), &format!("{name}-are-eight-and-twenty-words\n"));
    }
    let quoted = |path: std::path::PathBuf| format!("{:?}", path.display().to_string());
    env.set("BRAVE_API_KEY_FILE", &folder.join("ours").display().to_string());
    let theirs = quoted(folder.join("theirs"));
    // Of a server that isn't used, too.
    let server = format!("[[server]]\nname = \"a\"\ncomand = []\nheader_files = {{ X-Key = {theirs} }}\n");
    private(&env.workspace().join("mcp.toml"), &server);
    let granted = format!("[files]\nwrite = [{}]\n", quoted(folder.clone()));
    private(&env.workspace().join("policy.toml"), &granted);
    // Spelled so that no mask knows it.
    claude.expect(bash("t1", &format!("cat {}/* | tr a-y b-z", folder.display())));
    let view = |id: &str, name: &str| {
        let input = json!({"command": "view", "path": folder.join(name)});
        Reply::tools(vec![Block::tool(id, "str_replace_based_edit_tool", input)])
    };
    claude.expect(view("t2", "ours"));
    claude.expect(view("t3", "theirs"));
    claude.expect(Reply::text("Nothing to be seen."));
    while env.once()["outcome"] == "parked" {
        approve(&env);
    }
    let requests = claude.requests();
    let told: Vec<String> = requests[1..].iter().map(|request| results(request).pop().unwrap().0).collect();
    assert!(told[0].contains("mjtu-bsf") && told[0].matches("-bsf-").count() == 1, "{told:?}");
    assert!(told[1].contains("keys and the assistant's own state") && told[2].contains("keys and the"), "{told:?}");
}

#[test]
fn what_a_rule_denies_whole_is_hidden_from_commands_too() {
    let (_telegram, claude, mut env) = asked();
    env.set("AUTONOMY", "2");
    let folder = env.path("notes");
    std::fs::create_dir_all(folder.join("private")).unwrap();
    for (name, text) in [("private/diary.md", "dear diary"), ("list.md", "milk"), ("letter.md", "dear aunt")] {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let rule = |path: &str, example: &str| {
        let (path, example) = (folder.join(path), folder.join(example));
        format!("[[rule]]\npath = \"{}\"\ndecision = \"deny\"\nmatch = [\"{}\"]\n", path.display(), example.display())
    };
    let rules = [
        rule("private/**", "private/x"),
        rule("letter.md", "letter.md"),
        // Nothing can be hidden of these, and nothing is: what isn't there, what may stand anywhere.
        rule("gone/**", "gone/x"),
        rule("**/*.key", "a/b.key"),
        rule("list.md", "list.md").replace("[[rule]]", "[[rule]]\ntool = \"view_image\""),
    ];
    let policy = env.workspace().join("policy.toml");
    let granted = format!("[files]\nwrite = [\"{}\"]\n", folder.display());
    std::fs::write(&policy, rules.concat() + &granted).unwrap();
    std::fs::set_permissions(&policy, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    claude.expect(bash("t1", &format!("cat {}/list.md {0}/letter.md {0}/private/diary.md", folder.display())));
    claude.expect(Reply::text("Nothing to be seen."));
    while env.once()["outcome"] == "parked" {
        approve(&env);
    }
    let (said, _) = told(&claude);
    assert!(said.contains("milk") && !said.contains("dear"), "{said}");
}

/// `wake` in a place where it finds nothing that could confine a program: its launcher, which is the program `wake` itself, isn't
/// beside it.
pub(crate) fn without_sandbox(env: &TestEnv) -> std::path::PathBuf {
    let alone = env.path("alone");
    std::fs::copy(env!("CARGO_BIN_EXE_wake"), &alone).unwrap();
    alone
}

#[test]
fn without_a_sandbox_each_command_asks_and_runs_unconfined_after_a_yes_to_just_that() {
    let (telegram, claude, env) = asked();
    let (wake, outside) = (without_sandbox(&env), env.path("outside.txt"));
    std::fs::write(&outside, "there").unwrap();
    let looks = format!("cat {}", outside.display());
    let once = || env.run(&wake, &["--once", "--json"]).ok().json();
    let questions = || telegram.sent().into_iter().filter(|message| !message.buttons.is_empty()).collect::<Vec<_>>();
    claude.expect(bash("t1", &looks));
    assert_eq!(once()["outcome"], "parked", "what only looks asks, too");
    let question = questions().remove(0).visible;
    assert!(question.contains("There is no sandbox here") && question.contains(&looks), "{question}");
    assert_eq!(once()["outcome"], "idle", "nobody has answered");
    approve(&env);
    claude.expect(bash("t2", "pwd"));
    assert_eq!(once()["outcome"], "parked", "a yes is for one command");
    assert_eq!((told(&claude), questions().len()), (("there".to_owned(), false), 2));
    approve(&env);
    claude.expect(Reply::text("Done."));
    assert_eq!(once()["outcome"], "worked");
    assert!(is_at_work(&env, &told(&claude).0), "{:?}", told(&claude));
    // The same command where there is one: it needn't ask, and that file isn't there.
    env.receive(CHAT, "and now?");
    claude.expect(bash("t3", &looks));
    claude.expect(Reply::text("Done."));
    assert_eq!(env.once()["outcome"], "worked");
    assert!(told(&claude).0.contains("No such file"), "{:?}", told(&claude));
    env.check_sound();
}

#[test]
fn a_yes_to_a_confined_command_is_none_to_an_unconfined_one() {
    let (telegram, claude, mut env) = asked();
    env.set("AUTONOMY", "0");
    claude.expect(bash("t1", "echo here > kept.txt"));
    assert_eq!(env.once()["outcome"], "parked");
    assert!(!telegram.sent().pop().unwrap().visible.contains("no sandbox"));
    approve(&env);
    claude.expect(Reply::text("Done."));
    env.run(without_sandbox(&env), &["--once"]).ok();
    let (said, is_error) = told(&claude);
    assert!(is_error && said.contains("there is no sandbox here now") && said.contains("Nothing was done"), "{said}");
    assert!(left(&env, "kept.txt").is_empty());
    env.check_sound();
}

#[test]
fn a_tool_that_was_not_offered_is_found_and_used() {
    let (_telegram, claude, env) = with_claude();
    env.receive(CHAT, "how many bytes are in it?");
    claude.expect(Reply::tools(vec![Block::tool("t1", "find_tools", json!({"query": "run a shell"}))]));
    claude.expect(Reply::tools(vec![Block::tool(
        "t2",
        "use_tool",
        json!({"name": "bash", "arguments": {"command": "echo found"}}),
    )]));
    claude.expect(Reply::text("Five."));
    env.once();
    let requests = claude.requests();
    let offered = requests[0].json["tools"].to_string();
    assert!(!offered.contains("\"name\":\"bash\"") && offered.contains("find_tools"), "{offered}");
    assert!(results(&requests[1])[0].0.contains("\"name\":\"bash\""));
    assert_eq!(results(&requests[2])[0].0.trim_end(), "found");
    let called: Vec<_> = env.steps("called").iter().map(|step| step.field("name")).collect();
    assert_eq!(called, ["find_tools", "bash"]);
}

#[test]
fn a_command_that_a_kill_cut_off_is_dead_and_not_run_again() {
    let (_telegram, claude, env) = asked();
    let marker = format!("sleep 61{}", std::process::id());
    claude.expect(bash("t1", &marker));
    let wake = start_wake(&env);
    eventually("the command runs", || running(&marker));
    wake.signal(Signal::KILL);
    drop(wake.end());
    eventually("it died with its wake", || !running(&marker));
    claude.expect(Reply::text("I don't know whether it ran."));
    assert_eq!(env.once()["outcome"], "worked");
    let (said, is_error) = told(&claude);
    assert!(is_error && said.contains("uncertain"), "{said}");
    env.check_sound();
}

#[test]
fn stop_ends_a_command_and_no_further_one_of_its_turn_begins() {
    let (_telegram, claude, env) = asked();
    let marker = format!("sleep 62{}", std::process::id());
    claude.expect(Reply::tools(vec![
        Block::tool("t1", "bash", json!({ "command": marker })),
        Block::tool("t2", "remember", json!({"fact": "Tea is at five"})),
    ]));
    let further = || env.steps("outcome").iter().filter(|step| step.field("call") == "t2").count();
    let wake = start_wake(&env);
    eventually("the command runs", || running(&marker));
    env.wake(&["stop"]).ok();
    eventually("it is dead", || !running(&marker));
    assert_eq!(end_well(wake)["outcome"], "parked");
    assert_eq!(env.once()["outcome"], "idle", "nothing begins before /resume");
    assert_eq!(further(), 0);
    env.wake(&["resume"]).ok();
    claude.expect(Reply::text("It was stopped."));
    assert_eq!(env.once()["outcome"], "worked");
    assert_eq!(further(), 1, "the turn is gone on with");
    let said = results(claude.requests().last().unwrap()).remove(0).0;
    assert!(said.contains("uncertain") || said.contains("the shell has ended"), "{said}");
}

/// Whether a process with exactly these arguments lives.
fn running(command: &str) -> bool {
    let wanted = format!("{}\0", command.replace(' ', "\0"));
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let mut lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.any(|line| line == wanted.as_bytes())
}

#[test]
fn a_command_that_takes_too_long_is_killed_and_told() {
    let (_telegram, claude, env) = asked();
    let policy = env.workspace().join("policy.toml");
    std::fs::write(&policy, "[shell]\ntimeout_s = 1\n").unwrap();
    std::fs::set_permissions(&policy, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    // Two programs of its own, of which none is the shell.
    let [one, other] = ["63", "64"].map(|begin| format!("sleep {begin}{}", std::process::id()));
    claude.expect(bash("t1", &format!("echo begun; {one} | {other}")));
    claude.expect(bash("t2", "echo fresh"));
    claude.expect(Reply::text("Done."));
    let begun = std::time::Instant::now();
    env.once();
    assert!(begun.elapsed() < Duration::from_secs(120), "it was not waited for");
    for left in [one, other] {
        eventually("all that it had started is dead", || !running(&left));
    }
    let said = results(&claude.requests()[1]).remove(0).0;
    assert!(said.starts_with("begun") && said.contains("longer than 1 s"), "{said}");
    assert_eq!(told(&claude).0.trim_end(), "fresh");
}

#[test]
fn a_restart_begins_a_fresh_shell_and_what_the_old_one_had_started_is_dead() {
    let (_telegram, claude, env) = asked();
    let left = format!("sleep 65{}", std::process::id());
    claude.expect(bash("t1", &format!("cd / && {left} &\nuntil false; do break; done; cd /; x=5")));
    claude.expect(bash("t2", "pwd"));
    claude.expect(Reply::tools(vec![Block::tool("t3", "bash", json!({"restart": true}))]));
    claude.expect(bash("t4", "pwd"));
    claude.expect(Reply::tools(vec![Block::tool("t5", "bash", json!({}))]));
    claude.expect(Reply::text("Done."));
    assert_eq!(env.once()["outcome"], "worked");
    let requests = claude.requests();
    let said = |n: usize| results(&requests[n]).remove(0);
    assert_eq!(said(2).0.trim_end(), "/", "it is kept until then");
    assert!(!said(3).1 && said(3).0.contains("fresh one"), "{:?}", said(3));
    assert!(is_at_work(&env, &said(4).0), "{:?}", said(4));
    assert!(said(5).1 && said(5).0.contains("neither a command nor"), "{:?}", said(5));
    env.check_sound();
}
