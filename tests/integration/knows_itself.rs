//! Tests of the tool `about_me`: the assistant describes itself by its build, its settings and its permissions. A guest gets only the
//! general part.

use serde_json::json;

use super::{
    support::story::{last, results, with_claude},
    support::{
        claude::{API_KEY, Reply},
        env::{CHAT, TestEnv},
        telegram::TOKEN,
    },
};

fn offered(request: &super::support::claude::ClaudeRequest) -> bool {
    request.json["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "about_me")
}

/// Asks in a chat, and returns the tool's result.
fn told(env: &TestEnv, claude: &super::support::claude::FakeClaude, chat: i64) -> String {
    env.receive(chat, "What can you do, and which version are you?");
    claude.expect(Reply::tool("t1", "about_me", json!({}))).expect(Reply::text("That."));
    env.once();
    assert!(offered(&last(claude)));
    results(&last(claude)).remove(0).0
}

#[test]
fn it_describes_itself_and_keeps_its_secrets() {
    let (_telegram, claude, mut env) = with_claude();
    env.set("INITIATIVE", "low").set("ALLOWED_CHAT_IDS", &format!("{CHAT},5555"));
    env.wake(&["--once"]).ok();
    env.write_memory("memory/project-memory/greenhouse.md", "# Greenhouse\n");
    let policy = "[network]\nhosts = [\"api.example.org:443\"]\n";
    std::fs::write(env.workspace().join("policy.toml"), policy).unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(env.workspace().join("policy.toml"), private).unwrap();

    let owner = told(&env, &claude, CHAT);
    for part in [
        "Reveille 0.",
        "Now answers: claude-sonnet-5-5",
        "INITIATIVE=low",
        "Projects: greenhouse",
        "bash",
        "api.example.org",
        "Telegram",
    ] {
        assert!(owner.contains(part), "{part} in {owner}");
    }
    let chat = CHAT.to_string();
    for secret in [API_KEY, TOKEN, chat.as_str(), "127.0.0.1"] {
        assert!(!owner.contains(secret), "{secret} in {owner}");
    }
    let guest = told(&env, &claude, 5555);
    assert!(guest.contains("Reveille 0.") && guest.contains("The owner's machine isn't used here"), "{guest}");
    for theirs in ["greenhouse", "Budget", "claude-sonnet", "bash", "example.org"] {
        assert!(!guest.contains(theirs), "{theirs} in {guest}");
    }
    env.receive(CHAT, "hello");
    claude.expect(Reply::text("Hi."));
    env.once();
    assert!(!offered(&last(&claude)), "the tool costs nothing if nobody asks");
}
