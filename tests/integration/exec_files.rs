//! Tests of the tools for files and the machine: the model reaches what was granted, and nothing else.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::PathBuf,
};

use super::{
    exec_shell::left,
    support::story::{last, results, sent, with_claude},
    support::{
        claude::{Block, ClaudeRequest, FakeClaude, Reply},
        env::{CHAT, TestEnv, eventually, search_path},
    },
};
use serde_json::{Value, json};

const EDITOR: &str = "str_replace_based_edit_tool";
const SECRET: &str = "nobody's business";

/// A person's folder, granted for reading and writing.
fn granted(env: &TestEnv) -> PathBuf {
    let folder = env.path("documents");
    fs::create_dir(&folder).unwrap();
    let policy = env.workspace().join("policy.toml");
    fs::create_dir_all(env.workspace()).unwrap();
    fs::write(&policy, format!("[files]\nwrite = [{:?}]\n", folder.display().to_string())).unwrap();
    fs::set_permissions(&policy, fs::Permissions::from_mode(0o600)).unwrap();
    folder
}

/// Runs one wake in which the model makes these calls in order and answers "Done.". Returns the calls' results.
#[track_caller]
fn calls(env: &TestEnv, claude: &FakeClaude, calls: &[(&str, Value)]) -> Vec<(String, bool)> {
    env.receive(CHAT, "open the files on this machine, show what the system is, or undo a wake");
    let blocks = calls.iter().enumerate().map(|(n, (name, input))| Block::tool(&format!("t{n}"), name, input));
    claude.expect(Reply::tools(blocks.collect()));
    claude.expect(Reply::text("Done."));
    assert_eq!(env.once()["outcome"], "worked");
    let results = results(&last(claude));
    assert_eq!(results.len(), calls.len());
    results
}

#[track_caller]
fn all_well(results: &[(String, bool)]) {
    assert!(results.iter().all(|(_, is_error)| !is_error), "{results:#?}");
}

#[test]
fn a_granted_file_is_found_and_edited_and_the_log_says_so() {
    let (_telegram, claude, env) = with_claude();
    let folder = granted(&env);
    fs::write(folder.join("list.md"), "- milk\n- bread\n").unwrap();
    let path = folder.join("list.md").display().to_string();
    let told = calls(
        &env,
        &claude,
        &[
            (EDITOR, json!({"command": "str_replace", "path": path, "old_str": "- milk", "new_str": "- oat milk"})),
            (EDITOR, json!({"command": "create", "path": "notes/draft.md", "file_text": "one\n"})),
            (EDITOR, json!({"command": "insert", "path": "notes/draft.md", "insert_line": 1, "insert_text": "two"})),
            (EDITOR, json!({"command": "insert", "path": "notes/draft.md", "insert_line": 0, "insert_text": "zero"})),
            (EDITOR, json!({"command": "undo_edit", "path": "notes/draft.md"})),
            ("find_files", json!({"text": "OAT|two"})),
            (EDITOR, json!({"command": "view", "path": path})),
            ("system_info", json!({})),
        ],
    );
    all_well(&told);
    assert_eq!(fs::read_to_string(folder.join("list.md")).unwrap(), "- oat milk\n- bread\n");
    assert_eq!(fs::read_to_string(left(&env, "notes/draft.md").remove(0)).unwrap(), "one\ntwo\n");
    assert!(told[5].0.contains("list.md:1: - oat milk") && told[5].0.contains("draft.md:2: two"), "{}", told[5].0);
    assert_eq!(told[6].0, "     1\t- oat milk\n     2\t- bread");
    assert!(told[7].0.contains(&format!("- {}: may be read and written", folder.display())), "{}", told[7].0);
    let declared = last(&claude).json["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == EDITOR).cloned();
    assert_eq!(
        declared,
        Some(json!({"type": "text_editor_20250728", "name": EDITOR})),
        "the model was trained on this declaration"
    );
    let log = env.memory("memory/agent-memory/episodic-memory.md");
    assert!(log.contains("Edited the file list.md") && log.contains("Created the file draft.md"), "{log}");
    assert_eq!(env.outcomes_with("a file (list.md)").len(), 1, "the journal names the untrusted text that was read");
    env.check_sound();
}

/// Prepares secrets outside and inside the granted folder, with every kind of path to them.
fn besieged(env: &TestEnv) -> PathBuf {
    let folder = granted(env);
    let (outside, scratch) = (env.path("outside"), env.workspace().join("scratch"));
    for made in [&outside, &scratch] {
        fs::create_dir_all(made).unwrap();
    }
    fs::write(outside.join("secret.txt"), SECRET).unwrap();
    for link in [scratch.join("link"), folder.join("link")] {
        symlink(&outside, link).unwrap();
    }
    fs::write(outside.join("linked.txt"), SECRET).unwrap();
    for there in [&scratch, &folder] {
        symlink(outside.join("secret.txt"), there.join("secret.txt")).unwrap();
        fs::hard_link(outside.join("linked.txt"), there.join("hard.txt")).unwrap();
    }
    fs::create_dir_all(folder.join(".ssh")).unwrap();
    fs::write(folder.join(".ssh/id_ed25519"), SECRET).unwrap();
    folder
}

#[test]
fn a_hostile_model_reaches_nothing_outside() {
    let (_telegram, claude, env) = with_claude();
    let folder = besieged(&env);
    let scratch = env.workspace().join("scratch");
    let under = |path: &str| folder.join(path).display().to_string();
    let within = |path: &str| scratch.join(path).display().to_string();
    for way in ["link/secret.txt", "secret.txt", "hard.txt"] {
        assert_eq!(fs::read_to_string(scratch.join(way)).unwrap(), SECRET, "the control: {way}");
    }
    let told = calls(
        &env,
        &claude,
        &[
            // Calls that write or open come first: after the model has read the scratch folder, they would need an approval.
            ("open", json!({"target": "javascript.desktop"})),
            (
                EDITOR,
                json!({"command": "create", "path": env.workspace().join("policy.toml"), "file_text": "[[rule]]"}),
            ),
            (EDITOR, json!({"command": "create", "path": under("link/new-too.txt"), "file_text": "x"})),
            (EDITOR, json!({"command": "create", "path": under("secret.txt"), "file_text": "x"})),
            (EDITOR, json!({"command": "create", "path": under("link/new.txt"), "file_text": "x"})),
            (
                EDITOR,
                json!({"command": "str_replace", "path": under("hard.txt"), "old_str": "nobody's", "new_str": "my"}),
            ),
            (EDITOR, json!({"command": "view", "path": within("link/secret.txt")})),
            (EDITOR, json!({"command": "view", "path": within("link")})),
            (EDITOR, json!({"command": "view", "path": within("secret.txt")})),
            (EDITOR, json!({"command": "view", "path": within("hard.txt")})),
            (EDITOR, json!({"command": "view", "path": under("link/secret.txt")})),
            (EDITOR, json!({"command": "view", "path": under(".ssh/id_ed25519")})),
            (EDITOR, json!({"command": "view", "path": env.workspace().join("policy.toml")})),
            ("view_image", json!({"path": within("link/secret.txt")})),
            ("find_files", json!({"text": "business", "path": within("link")})),
        ],
    );
    assert!(told.iter().all(|(_, is_error)| *is_error), "{told:#?}");
    let told = calls(
        &env,
        &claude,
        &[("find_files", json!({"text": "business"})), ("find_files", json!({"pattern": "*secret*"}))],
    );
    assert!(told.iter().all(|(text, _)| text.starts_with("Nothing was found")), "{told:#?}");
    for request in claude.requests() {
        assert!(!request.json.to_string().contains(SECRET));
    }
    for file in ["outside/secret.txt", "outside/linked.txt"] {
        assert_eq!(fs::read_to_string(env.path(file)).unwrap(), SECRET);
    }
    assert_eq!(fs::read_dir(env.path("outside")).unwrap().count(), 2);
    env.check_sound();
}

/// A person may approve a path without seeing where it leads. It isn't followed even then.
#[test]
fn an_approved_path_still_cannot_lead_outside() {
    let (_telegram, claude, env) = with_claude();
    besieged(&env);
    env.receive(CHAT, "look at the file");
    let path = "../../../../outside/secret.txt";
    fs::create_dir_all(env.workspace().join("scratch/cycle/work")).unwrap();
    assert_eq!(
        fs::read_to_string(env.workspace().join("scratch/cycle/work").join(path)).unwrap(),
        SECRET,
        "the control"
    );
    claude.expect(Reply::tool("t1", EDITOR, json!({"command": "view", "path": path})));
    assert_eq!(env.once()["outcome"], "parked");
    let id = env.approval().id;
    claude.expect(Reply::text("It can't be read."));
    env.wake(&["approvals", "approve", &id.to_string()]).ok();
    let told = results(&last(&claude));
    assert!(told[0].1 && told[0].0.contains("leads upwards"), "{told:?}");
    assert!(!last(&claude).json.to_string().contains(SECRET));
    env.check_sound();
}

fn shown_image(request: &ClaudeRequest) -> Option<Value> {
    let messages = request.json["messages"].as_array()?;
    let content = messages.last()?["content"][0]["content"].as_array()?;
    content.iter().find(|block| block["type"] == "image").cloned()
}

#[test]
fn an_image_is_shown_in_the_result_of_its_call() {
    let (telegram, claude, env) = with_claude();
    let folder = granted(&env);
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\x40\0\0\0\xf0\x08\x02";
    fs::write(folder.join("cat.png"), png).unwrap();
    env.receive(CHAT, "what is on the picture cat.png?");
    claude.expect(Reply::tool("t1", "view_image", json!({"path": folder.join("cat.png")})));
    claude.expect(Reply::text("A cat."));
    env.once();
    assert_eq!(shown_image(&last(&claude)).unwrap()["source"]["media_type"], "image/png");
    assert_eq!(sent(&telegram), ["A cat."]);
    env.check_sound();
}

#[test]
fn a_page_is_opened_with_the_desktops_program_and_without_our_secrets() {
    let (_telegram, claude, mut env) = with_claude();
    let folder = granted(&env);
    fs::write(folder.join("a.pdf"), "%PDF").unwrap();
    let told = calls(&env, &claude, &[("open", json!({"target": "https://example.org/"}))]);
    assert!(told[0].1 && told[0].0.contains("no desktop"), "{told:?}");

    let (programs, opened) = (env.path("programs"), env.path("opened"));
    fs::create_dir(&programs).unwrap();
    let program = programs.join(if cfg!(target_os = "macos") { "open" } else { "xdg-open" });
    let script = format!("#!/bin/sh\n{{ echo \"$# $1\"; env; }} >> {0}.new && mv {0}.new {0}\n", opened.display());
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    env.set("PATH", &format!("{}:{}", programs.display(), search_path())).set("DISPLAY", ":99");
    let pdf = folder.join("a.pdf").display().to_string();
    for (target, seen) in
        [("https://example.org/a b?q=$(id)", "1 https://example.org/a%20b?q=$(id)"), (&pdf, &format!("1 {pdf}"))]
    {
        all_well(&calls(&env, &claude, &[("open", json!({"target": target}))]));
        eventually("the target is opened", || opened.exists());
        let text = fs::read_to_string(&opened).unwrap();
        assert_eq!(text.lines().next(), Some(seen));
        assert!(text.contains("DISPLAY=:99") && !text.contains("ANTHROPIC_") && !text.contains("TELEGRAM_"), "{text}");
        fs::remove_file(&opened).unwrap();
    }
    fs::write(&program, "#!/bin/sh\nexit 3\n").unwrap();
    let told = calls(&env, &claude, &[("open", json!({"target": "https://example.org/"}))]);
    assert!(told[0].1 && told[0].0.contains("exit code 3"), "{told:?}");
    env.check_sound();
}

#[test]
fn an_app_is_started_only_after_an_approval_that_names_it() {
    let (telegram, claude, mut env) = with_claude();
    let (programs, opened) = (env.path("programs"), env.path("opened"));
    fs::create_dir(&programs).unwrap();
    fs::create_dir_all(env.workspace()).unwrap();
    let (name, seen) = if cfg!(target_os = "macos") { ("open", "-a Calculator") } else { ("gtk-launch", "Calculator") };
    let script = format!("#!/bin/sh\n{{ echo \"$*\"; env; }} >> {0}.new && mv {0}.new {0}\n", opened.display());
    fs::write(programs.join(name), script).unwrap();
    fs::set_permissions(programs.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    // Neither full autonomy nor a rule lets it start without an approval.
    env.set("AUTONOMY", "2").set("PATH", &format!("{}:{}", programs.display(), search_path())).set("DISPLAY", ":99");
    let rules = env.workspace().join("policy.toml");
    fs::write(&rules, "[[rule]]\ntool = \"open\"\ndecision = \"allow\"\nmatch = [\"open\"]\n").unwrap();
    fs::set_permissions(&rules, fs::Permissions::from_mode(0o600)).unwrap();
    env.receive(CHAT, "open the calculator app");
    claude.expect(Reply::tools(vec![Block::tool("t1", "open", json!({"app": "Calculator"}))]));
    assert_eq!(env.once()["outcome"], "parked");
    let asked = telegram.sent().pop().unwrap().visible;
    assert!(asked.contains("Calculator") && asked.contains("outside the sandbox"), "{asked}");
    assert!(!opened.exists());
    claude.expect(Reply::text("There it is."));
    env.wake(&["approvals", "approve", "1"]).ok();
    eventually("the app is started", || opened.exists());
    let text = fs::read_to_string(&opened).unwrap();
    assert_eq!(text.lines().next(), Some(seen));
    assert!(!text.contains("ANTHROPIC_") && !text.contains("TELEGRAM_"), "{text}");
    env.check_sound();
}

#[test]
fn a_wake_is_looked_up_and_undone_by_a_later_one() {
    const SEMANTIC: &str = "memory/agent-memory/semantic-memory.md";
    let (telegram, claude, mut env) = with_claude();
    all_well(&calls(&env, &claude, &[("remember", json!({"fact": "Cats bark", "topic": "Animals"}))]));
    assert!(env.memory(SEMANTIC).contains("Cats bark"));
    let wake = env.trailer("Wake-Id");
    // At lower levels of autonomy, calls that aren't easily undone need an approval.
    env.set("AUTONOMY", "2");
    let told = calls(&env, &claude, &[("brain_log", json!({"words": "cats"})), ("brain_diff", json!({"id": wake}))]);
    assert!(told[0].0.contains(&wake) && told[1].0.contains("+- Cats bark"), "{told:#?}");
    // The log may hold untrusted text, so a cycle that has read it would need an approval: this one hasn't.
    let told =
        calls(&env, &claude, &[("brain_revert", json!({"wake": wake})), ("brain_revert", json!({"wake": wake}))]);
    assert_eq!(told.iter().map(|(_, is_error)| *is_error).collect::<Vec<_>>(), [false, true]);
    assert!(!env.memory(SEMANTIC).contains("Cats bark"), "{}", env.log());
    assert_eq!(env.trailer("Undoes"), wake);
    let said = sent(&telegram);
    assert!(said.last().unwrap().starts_with("I've undone what I did at "), "{said:?}");
    assert_eq!(env.once()["outcome"], "idle");
    env.check_sound();
}

#[test]
fn undoing_a_wake_needs_an_approval() {
    let (_telegram, claude, env) = with_claude();
    all_well(&calls(&env, &claude, &[("remember", json!({"fact": "Cats purr"}))]));
    let wake = env.trailer("Wake-Id");
    env.receive(CHAT, "undo it");
    claude.expect(Reply::tool("t1", "brain_revert", json!({ "wake": wake })));
    assert_eq!(env.once()["outcome"], "parked");
    assert_eq!(env.undos().len(), 0);
    assert!(env.memory("memory/agent-memory/semantic-memory.md").contains("Cats purr"));
}
