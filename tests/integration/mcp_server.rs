//! `wake mcp`: other programs read at once. Each of their changes is a wake of its own, under the same policy.

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Stdio},
};

use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};

use super::{
    support::env::{CHAT, TestEnv, eventually},
    support::story::with_claude,
};

/// A client of `wake mcp`, connected by its standard streams.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    id: u64,
}

impl Client {
    fn start(env: &TestEnv) -> Self {
        let mut command = env.command(env!("CARGO_BIN_EXE_wake"), &["mcp"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut client = Self { child, input, output, id: 0 };
        let us =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        assert_eq!(client.ask("initialize", &us)["result"]["serverInfo"]["name"], "reveille");
        client
    }

    #[track_caller]
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.ask_raw(method, &params.to_string())
    }

    #[track_caller]
    fn ask_raw(&mut self, method: &str, params: &str) -> Value {
        self.id += 1;
        let message = format!(r#"{{"jsonrpc":"2.0","id":{},"method":"{method}","params":{params}}}"#, self.id);
        writeln!(self.input.as_ref().unwrap(), "{message}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["id"], self.id);
        answer
    }

    /// Makes a call. Returns its text, and `true` if it failed.
    #[track_caller]
    fn call(&mut self, name: &str, arguments: &Value) -> (String, bool) {
        let answer = self.ask("tools/call", &json!({"name": name, "arguments": arguments}));
        let result = &answer["result"];
        (
            result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned(),
            result["isError"] == true,
        )
    }

    /// Closes the input, and checks that the server ends successfully.
    fn end(mut self) {
        self.input = None;
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn world() -> TestEnv {
    let env = TestEnv::new();
    env.wake(&["--once"]).ok();
    env
}

#[test]
fn a_reading_call_is_answered_and_changes_nothing() {
    let env = world();
    let head = env.git(&["rev-parse", "HEAD"]);
    let mut client = Client::start(&env);
    let tools = client.ask("tools/list", &json!({}));
    let names: Vec<&str> =
        tools["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["look_up", "memory_update", "tasks", "reminders", "reply", "queue_list"]);
    let hints = |at: usize| tools["result"]["tools"][at]["annotations"]["readOnlyHint"].as_bool().unwrap();
    assert_eq!((0..6).map(hints).collect::<Vec<_>>(), [true, false, false, false, false, true]);
    let hidden = client.call("memory_update", &json!({"do": "note", "text": "x"}));
    assert_eq!(hidden, ("There is no tool \"note\" here.".to_owned(), true));
    let no_verb = client.call("tasks", &json!({"do": "sing"}));
    assert!(no_verb.1 && no_verb.0.starts_with("tasks needs one `do`: add, update,"), "{no_verb:?}");
    for hidden in ["bash", "plan", "note", "tell", "use_tool", "reminder_move", "read_skill"] {
        assert!(!names.contains(&hidden), "{hidden}");
        assert!(client.ask("tools/call", &json!({"name": hidden}))["error"]["message"].is_string());
    }
    for (name, arguments) in [("memory_read", json!({})), ("look_up", json!({"do": "file"}))] {
        assert!(client.call(name, &arguments).0.contains("semantic-memory.md"), "{name}");
    }
    assert_eq!(client.call("queue_list", &json!({})), ("No message waits.".to_owned(), false));
    let uri = "reveille:///memory/project-memory/active.md";
    let listed = client.ask("resources/list", &json!({}))["result"].to_string();
    assert!(listed.contains(uri), "{listed}");
    let read = client.ask("resources/read", &json!({"uri": uri}));
    assert_eq!(read["result"]["contents"][0]["text"], env.memory("memory/project-memory/active.md"));
    for uri in [
        "reveille:///../policy.toml",
        "reveille:///.git/config",
        "reveille:///memory/../../messages.db",
        "file:///etc/passwd",
    ] {
        assert!(client.ask("resources/read", &json!({"uri": uri}))["error"].is_object(), "{uri}");
    }
    client.end();
    assert_eq!(env.git(&["rev-parse", "HEAD"]), head);
    assert_eq!(env.cycles().len(), 0);
}

/// Writes a policy of these rules.
fn write_policy(env: &TestEnv, rules: &str) {
    let path = env.workspace().join("policy.toml");
    std::fs::write(&path, rules).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
}

#[test]
fn a_persons_rules_apply_to_reading_calls_and_resources() {
    let env = world();
    let secret = env.brain().join("memory/project-memory/active.md");
    let secret = secret.to_str().unwrap();
    let uri = "reveille:///memory/project-memory/active.md";
    env.write_memory(
        "memory/project-memory/active.md",
        "## Paint the shed\n- status: active\n- next: paint for the shed\n",
    );
    let mut client = Client::start(&env);
    // Reads in five ways, each of which succeeds without a rule.
    let read_all = |client: &mut Client| {
        let read = client.call("memory_read", &json!({"path": "memory/project-memory/active.md"}));
        let (tasks, queue) = (client.call("task_list", &json!({})), client.call("queue_list", &json!({})));
        let resource = client.ask("resources/read", &json!({"uri": uri})).to_string();
        let found = client.call("memory_search", &json!({"query": "shed"}));
        [read, tasks, (resource.clone(), resource.contains("error")), found, queue].map(|(text, failed)| {
            assert!(!failed || text.contains("Nothing was read"), "{text}");
            (text, failed)
        })
    };
    let shown = read_all(&mut client);
    assert!(shown.iter().all(|(_, failed)| !failed), "{shown:?}");
    assert!(shown[..4].iter().all(|(text, _)| text.contains("shed")), "{shown:?}");

    for decision in ["deny", "ask"] {
        write_policy(
            &env,
            &format!(
                "[[rule]]\npath = {secret:?}\ndecision = {decision:?}\nwhy = \"it is mine\"\nmatch = [{secret:?}]\n"
            ),
        );
        let [read, tasks, resource, found, queue] = read_all(&mut client);
        for (text, failed) in [read, tasks, resource] {
            assert!(failed && text.contains("it is mine") && !text.contains("shed"), "{decision}: {text}");
        }
        assert!(!found.0.contains("paint") && found.0.contains("rules keep from a search: 1"), "{decision}: {found:?}");
        assert!(!queue.1 && !client.call("memory_read", &json!({})).1, "another file and the list can be read");
        for spelling in ["memory/./project-memory/active.md", "memory//project-memory/.//active.md"] {
            let (text, failed) = client.call("memory_read", &json!({"path": spelling}));
            assert!(failed && text.contains("it is mine") && !text.contains("shed"), "{decision} {spelling}: {text}");
            let answer = client.ask("resources/read", &json!({"uri": format!("reveille:///{spelling}")}));
            assert!(answer["error"].is_object() && !answer.to_string().contains("shed"), "{spelling}: {answer}");
        }
    }
    for (tool, denied) in [("memory_read", [0, 2]), ("queue_list", [4, 4])] {
        write_policy(&env, &format!("[[rule]]\ntool = {tool:?}\ndecision = \"deny\"\nmatch = [{tool:?}]\n"));
        let shown = read_all(&mut client);
        for (n, (text, failed)) in shown.iter().enumerate() {
            assert_eq!(*failed, denied.contains(&n), "{tool}: {text}");
        }
        assert_eq!(client.ask("resources/list", &json!({}))["error"].is_object(), tool == "memory_read");
    }
    write_policy(&env, "[[rule]]\nnonsense = 1\n");
    assert!(read_all(&mut client)[..3].iter().all(|(text, failed)| *failed && text.contains("isn't in use")));
    client.end();
    assert_eq!(env.cycles().len(), 0);
}

#[test]
fn a_change_is_one_wake_and_one_commit_and_a_refused_call_is_neither() {
    let env = world();
    let mut client = Client::start(&env);
    let (told, is_error) = client.call("remember", &json!({"fact": "Tea is in the attic"}));
    assert!(!is_error && told.contains("Unconfirmed"), "{told}");
    assert!(env.memory("memory/agent-memory/semantic-memory.md").contains("## Unconfirmed\n- Tea is in the attic"));
    assert_eq!((env.trailer("Trigger"), env.trailer("Model")), ("mcp".to_owned(), "mcp".to_owned()));
    let log = env.memory("memory/agent-memory/episodic-memory.md");
    assert!(log.contains("Kept “Tea is in the attic” as unconfirmed"), "{log}");
    let head = env.git(&["rev-parse", "HEAD"]);
    assert!(client.call("remember", &json!({"fact": ""})).1);
    assert!(client.call("remember", &json!({"wrong": 1})).1);
    client.end();
    assert_eq!(env.git(&["rev-parse", "HEAD"]), head);
    assert_eq!(env.cycles().len(), 1);
    assert_eq!(env.once()["outcome"], "idle");
    env.check_sound();
}

#[test]
fn a_lasting_change_asks_the_person_and_is_made_once_they_agree() {
    let env = world();
    let mut client = Client::start(&env);
    for (name, arguments) in
        [("tasks", json!({"do": "add", "title": "Paint the shed"})), ("task_add", json!({"title": "Sell the car"}))]
    {
        let (told, is_error) = client.call(name, &arguments);
        assert!(is_error && told.contains("the person is asked"), "{told}");
    }
    client.end();
    assert!(!env.memory("memory/project-memory/active.md").contains("shed"));
    env.wake(&["approvals", "approve", "1"]).ok();
    env.wake(&["approvals", "deny", "2"]).ok();
    let tasks = env.memory("memory/project-memory/active.md");
    assert!(tasks.contains("## Paint the shed") && !tasks.contains("car"), "{tasks}");
    assert_eq!(env.count_used_approvals(), 1);
    assert_eq!(env.once()["outcome"], "idle");
    env.check_sound();
}

#[test]
fn a_queued_message_is_answered_once_in_its_own_chat() {
    // The model isn't asked, since the client answers.
    let (telegram, _claude, env) = with_claude();
    env.wake(&["--once"]).ok();
    let message = env.receive(CHAT, "what is the meaning of life?");
    let other = env.receive(CHAT, "and of the rest?");
    let mut client = Client::start(&env);
    let waiting = client.call("queue_list", &json!({})).0;
    assert!(waiting.contains(&format!("message {message}, ")) && waiting.contains("meaning of life"), "{waiting}");
    assert!(client.call("reply", &json!({"text": "42"})).1, "it names no message");
    let (told, is_error) = client.call("reply", &json!({"message": message, "text": "42"}));
    assert!(!is_error, "{told}");
    assert!(client.call("reply", &json!({"message": message, "text": "43"})).1, "it no longer waits");
    client.end();
    let sent: Vec<(i64, String)> = telegram.sent().into_iter().map(|sent| (sent.chat_id, sent.visible)).collect();
    assert_eq!(sent, [(CHAT, "42".to_owned())]);
    assert_eq!(env.trailer("Messages"), message.to_string());
    assert_eq!(env.queued().iter().map(|message| message.id).collect::<Vec<_>>(), [other]);
}

#[test]
fn nothing_changes_while_another_wake_works_or_all_work_is_stopped() {
    let env = world();
    let mut client = Client::start(&env);
    let lock = File::options().read(true).write(true).open(env.workspace().join(".wake-lock")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let (told, is_error) = client.call("remember", &json!({"fact": "Tea is in the attic"}));
    assert!(is_error && told.contains("Another wake is at work"), "{told}");
    assert!(!client.call("memory_search", &json!({"query": "tea"})).1, "reading still works");
    drop(lock);
    env.wake(&["stop"]).ok();
    let (told, is_error) = client.call("remember", &json!({"fact": "Tea is in the attic"}));
    assert!(is_error && told.contains("Nothing was done"), "{told}");
    env.wake(&["resume"]).ok();
    assert!(!client.call("remember", &json!({"fact": "Tea is in the attic"})).1);
    client.end();
    env.check_sound();
}

#[test]
fn an_ambiguous_call_is_refused_with_the_reason() {
    let env = world();
    let mut client = Client::start(&env);
    let twice = r#"{"name":"remember","arguments":{"fact":"Tea is in the attic","f\u0061ct":"Tea is gone"}}"#;
    let answer = client.ask_raw("tools/call", twice);
    assert!(answer["error"]["message"].as_str().unwrap().contains("occurs twice"), "{answer}");
    assert!(!env.memory("memory/agent-memory/semantic-memory.md").contains("Tea is"));
    client.end();
    env.check_sound();
}

#[test]
fn http_requires_the_workspaces_token_and_never_shows_it() {
    let env = world();
    let log = env.path("log");
    let server = env.start_logged(env!("CARGO_BIN_EXE_wake"), &["mcp", "--http", "127.0.0.1:0"], &log);
    let said = || std::fs::read_to_string(&log).unwrap();
    eventually("it serves", || said().contains("Serving http://"));
    let said = said();
    let url =
        said.split_whitespace().find(|word| word.starts_with("http://")).unwrap().trim_end_matches(';').to_owned();
    let token = std::fs::read_to_string(env.workspace().join("mcp-token")).unwrap();
    assert!(!said.contains(token.trim()), "{said}");
    let post = |token: &str| {
        http_post(&url, token, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"queue_list"}}"#)
    };
    assert_eq!(post("wrong").0, 401);
    let (status, body) = post(token.trim());
    assert!(status == 200 && body.contains("No message waits."), "{status} {body}");
    server.signal(rustix::process::Signal::TERM);
    server.end().ok();
    let refused = env.wake(&["mcp", "--http", "0.0.0.0:0"]);
    refused.assert_fails(1, "isn't a loopback address");
}

/// Sends one request over a new connection.
fn http_post(url: &str, token: &str, body: &str) -> (u16, String) {
    use std::io::Read as _;
    let (host, path) = url.trim_start_matches("http://").split_once('/').unwrap();
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    write!(
        stream,
        "POST /{path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split_whitespace().nth(1).unwrap().parse().unwrap();
    (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
}
