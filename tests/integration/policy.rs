//! `wake policy`: how a command would be judged, from outside, without a database or a repository.

use std::{fs, io::Write as _, os::unix::fs::PermissionsExt as _, process::Stdio};

use super::support::env::TestEnv;

const WAKE: &str = env!("CARGO_BIN_EXE_wake");

fn write_policy(env: &TestEnv, text: &str, mode: u32) {
    fs::create_dir_all(env.workspace()).unwrap();
    let path = env.workspace().join("policy.toml");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
}

fn piped(env: &TestEnv, args: &[&str], input: &[u8]) -> Vec<String> {
    let mut child = env.command(WAKE, args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn judged(env: &TestEnv, command: &str) -> (String, String) {
    let answer = env.run(WAKE, &["policy", "test", command, "--json"]).ok().json();
    assert_eq!(answer["command"], command);
    assert!(answer["reasons"].as_array().is_some_and(|reasons| !reasons.is_empty()), "{answer}");
    let text = |key: &str| answer[key].as_str().unwrap().to_owned();
    (text("decision"), text("risk"))
}

#[test]
fn a_command_is_judged_and_nothing_is_run_or_made() {
    let env = TestEnv::new();
    let made = env.root().join("made");
    let ran = env.run(WAKE, &["policy", "test", "rm -rf ~"]).ok();
    assert!(ran.stdout.starts_with("rm -rf ~\nask: it would ask first. Risk: destructive.\n  - "), "{}", ran.stdout);
    assert_eq!(judged(&env, "rm -rf ~"), ("ask".into(), "destructive".into()));
    assert_eq!(judged(&env, "git status"), ("allow".into(), "safe".into()));
    for command in ["-x", &format!("touch {}", made.display()), "python3 -c 'print(1)' | tee $HOME/x"] {
        assert_eq!(judged(&env, command), ("allow".into(), "safe".into()), "{command}");
    }
    assert!(!made.exists() && !env.workspace().join("messages.db").exists() && !env.brain().exists());
}

#[test]
fn where_no_sandbox_can_be_had_every_command_asks_and_it_is_said() {
    let env = TestEnv::new();
    let ran = env.run(WAKE, &["policy", "test", "git status", "--unsandboxed", "--json"]).ok();
    assert_eq!((ran.json()["decision"].as_str(), ran.json()["risk"].as_str()), (Some("ask"), Some("dangerous")));
    assert!(ran.json()["reasons"].to_string().contains("There is no sandbox here"), "{ran:?}");
    ran.assert_tells("There is no sandbox: as assumed by --unsandboxed");
    let here = env.run(WAKE, &["policy", "test", "git status"]).ok();
    here.assert_never_tells("There is no sandbox");
    assert!(here.stdout.contains("allow: "), "{here:?}");
    assert!(env.run(WAKE, &["policy"]).ok().stdout.contains("sandbox   there is one"));
    // The launcher of what is confined is the program `wake` beside the one that runs: here there is none.
    let alone = env.path("alone");
    fs::copy(WAKE, &alone).unwrap();
    let judged = env.run(&alone, &["policy", "test", "git status"]).ok();
    judged.assert_tells("can't be confined here");
    assert!(judged.stdout.contains("ask: "), "{judged:?}");
    let many = piped(&env, &["policy", "test", "-", "--unsandboxed"], b"ls\npwd\n");
    assert!(many.len() == 2 && many.iter().all(|line| line.starts_with("ask")), "{many:?}");
}

#[test]
fn many_commands_are_judged_a_line_each() {
    let env = TestEnv::new();
    let input = b"ls -la\n\"ls\\nreboot\"\n\nl\xff\necho $(id)\n\"not json\nls";
    let lines = piped(&env, &["policy", "test", "-", "--json"], input);
    let answers: Vec<serde_json::Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let decisions: Vec<&str> = answers.iter().map(|answer| answer["decision"].as_str().unwrap()).collect();
    assert_eq!(decisions, ["allow", "ask", "allow", "allow", "allow", "allow", "allow"]);
    assert_eq!(answers[1]["command"], "ls\nreboot");
    let lines = piped(&env, &["policy", "test", "-"], input);
    assert_eq!(lines.len(), 7, "{lines:#?}");
    assert!(lines[1].contains("destructive") && lines[1].contains("\\n"), "{}", lines[1]);
}

#[test]
fn a_line_beyond_the_bound_is_one_answer() {
    let env = TestEnv::new();
    let mut input = vec![b'a'; 1 << 20];
    input.extend(b"\nls\n");
    let lines = piped(&env, &["policy", "test", "-"], &input);
    assert_eq!(lines.len(), 2);
    assert!(lines[0].starts_with("allow") && lines[1].starts_with("allow"));
}

#[test]
fn the_level_of_autonomy_counts() {
    for (level, ls, rm, reboot) in
        [("0", "ask", "ask", "ask"), ("1", "allow", "allow", "ask"), ("2", "allow", "allow", "ask")]
    {
        let mut env = TestEnv::new();
        env.set("AUTONOMY", level);
        for (command, decision) in [("ls", ls), ("rm -r x", rm), ("rm -r x; reboot", reboot)] {
            assert_eq!(judged(&env, command).0, decision, "{command} at {level}");
        }
    }
}

#[test]
fn a_person_s_rules_are_in_force_and_shown() {
    let env = TestEnv::new();
    let example = env.run(WAKE, &["policy", "example"]).ok().stdout;
    write_policy(&env, &example, 0o600);
    assert_eq!(judged(&env, "cargo test").0, "allow");
    assert_eq!(judged(&env, "sudo git push").0, "deny");
    let shown = env.run(WAKE, &["policy"]).ok().stdout;
    assert!(shown.contains("deny command git ** push") && shown.contains("api.github.com:443"), "{shown}");
    assert_eq!(env.run(WAKE, &["policy", "show"]).ok().stdout, shown);
}

#[test]
fn what_a_command_would_be_given_is_told_with_the_decision() {
    let env = TestEnv::new();
    let work = env.path("work");
    fs::create_dir_all(&work).unwrap();
    let granted =
        format!("[files]\nwrite = [{:?}]\n[network]\nhosts = [\"example.org:443\"]\n", work.display().to_string());
    write_policy(&env, &granted, 0o600);
    let asked = |args: &[&str]| env.run(WAKE, &[&["policy", "test"], args].concat()).ok().stdout;
    let place = work.display().to_string();
    let plain = asked(&["make"]);
    assert!(plain.contains("allow: ") && plain.contains(&format!("; read-only: {place}; no network.")), "{plain}");
    let writes = asked(&["make", "--writes"]);
    assert!(
        writes.contains("allow: ") && writes.contains(&format!("scratch folder, {place}; no network.")),
        "{writes}"
    );
    assert!(writes.contains("`/undo` gives them back"), "{writes}");
    let named = asked(&[&format!("rm -rf {place}/x"), "--json"]);
    let named: serde_json::Value = serde_json::from_str(&named).unwrap();
    assert_eq!((named["decision"].as_str(), named["write"][0].as_str()), (Some("allow"), Some(&*place)), "{named}");
    let network = asked(&["make", "--network"]);
    assert!(network.contains("ask: ") && network.contains("; network: example.org:443."), "{network}");
    let alone = asked(&["make", "--unsandboxed"]);
    assert!(alone.contains("ask: ") && alone.contains("Without a sandbox, as you."), "{alone}");
    // What can't be copied asks.
    assert!(env.run("mkfifo", &[&work.join("pipe").display().to_string()]).code == 0);
    let uncovered = asked(&["make", "--writes"]);
    assert!(uncovered.contains("ask: ") && uncovered.contains("pipe can't be copied"), "{uncovered}");
    assert!(!env.workspace().join("copies").exists());
}

#[test]
fn a_policy_that_can_t_be_believed_makes_everything_ask_and_is_told() {
    let check = |text: &str, mode: u32, said: &str| {
        let env = TestEnv::new();
        write_policy(&env, text, mode);
        env.run(WAKE, &["policy", "show"]).assert_fails(78, said);
        let tested = env.run(WAKE, &["policy", "test", "ls", "--json"]).ok();
        assert_eq!(tested.json()["decision"], "ask", "{tested:?}");
        tested.assert_tells(said);
    };
    check("", 0o666, "other users can write");
    check("[shell]\ntimeout_s = 5\ncolour = 1\n", 0o600, "line 3");
    check("what", 0o600, "line 1");
}
