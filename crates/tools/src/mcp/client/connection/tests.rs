//! Tests whole conversations with servers that are programs and servers behind HTTP, each with a habit of public servers.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::Path,
    sync::{Arc, Mutex},
};

use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::Value;

use super::{
    super::{pin::Listing, result, settings::Settings},
    *,
};

const INIT: &str = r#"{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":ID,"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"said"}]}}"#;

/// Answers each line with the file of its method, where `ID` stands for its number. A second list comes from `list2` if it exists.
const SCRIPT: &str = r#"listed=
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/^{"jsonrpc":"2.0","id":\([0-9]*\).*/\1/p')
  case $line in
    *'"method":"initialize"'*) file=init ;;
    *'"method":"tools/list"'*) file=list$listed; if [ -f list2 ]; then listed=2; fi ;;
    *'"method":"tools/call"'*) file=call ;;
    *) file=other ;;
  esac
  if [ -f $file ]; then sed "s/ID/$id/g" $file; fi
done"#;

fn server_of(toml: &str) -> Server {
    let settings = Settings::parse(&format!("[[server]]\nname = \"s\"\n{toml}"), None);
    settings.servers.into_iter().next().unwrap_or_else(|| panic!("{:?}", settings.problems))
}

/// Introduces us, asks for the tools and calls `t`. Returns the tools and the answer, or the error.
async fn spoken(server: &Server, within: &Path) -> String {
    let speak = async {
        let mut connection = Connection::open(server, CommandEnvironment::Unconfined(within)).await?;
        let offered = connection.list_tools().await?;
        let (listing, problems) = Listing::from_tools(server, &offered.tools);
        let names: Vec<String> = listing.tools.iter().map(|tool| tool.shown_name()).collect();
        let mut called = connection.call("t", &json!({}), Duration::from_secs(20)).await;
        if called == Err(ClientError::SessionOver) {
            connection = Connection::open(server, CommandEnvironment::Unconfined(within)).await?;
            called = connection.call("t", &json!({}), Duration::from_secs(20)).await;
        }
        let said = result::read_result(&called?);
        let problems: Vec<String> = offered.problems.into_iter().chain(problems).collect();
        Ok::<String, ClientError>(format!("{} {}{}", names.join(","), said.text, problems.concat()))
    };
    speak.await.unwrap_or_else(|error| error.to_string())
}

/// A new report is one line: its name, the server's files that differ from the usual ones, and the result.
#[tokio::test]
async fn a_program_is_spoken_with_whatever_its_manners() {
    let list = |page: &str| format!(r#"{{"jsonrpc":"2.0","id":ID,"result":{page}}}"#);
    let (one, two) = (r#"[{"name":"t","inputSchema":{}}]"#, r#"[{"name":"u","inputSchema":{}}]"#);
    let as_text = |text: &str| text.replace("ID", "\"ID\"");
    let as_zero = |text: &str| text.replace("ID", "0");
    type Files = Vec<(&'static str, String)>;
    let cases: Vec<(&str, Files, &str)> = vec![
        ("as it should be", vec![], "t said"),
        (
            "no further page in an empty word",
            vec![("list", list(&format!(r#"{{"tools":{one},"nextCursor":""}}"#)))],
            "t said",
        ),
        (
            "an empty word that names a page",
            vec![
                ("list", list(&format!(r#"{{"tools":{one},"nextCursor":""}}"#))),
                ("list2", list(&format!(r#"{{"tools":{two}}}"#))),
            ],
            "t,u said",
        ),
        (
            "an empty word that is refused",
            vec![
                ("list", list(&format!(r#"{{"tools":{one},"nextCursor":""}}"#))),
                ("list2", r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"Invalid cursor"}}"#.to_owned()),
            ],
            "t said",
        ),
        ("no further page in null", vec![("list", list(&format!(r#"{{"tools":{one},"nextCursor":null}}"#)))], "t said"),
        ("the same page for ever", vec![("list", list(&format!(r#"{{"tools":{one},"nextCursor":"x"}}"#)))], "t said"),
        (
            "the same tools under new names of pages",
            vec![("list", list(&format!(r#"{{"tools":{one},"nextCursor":"ID"}}"#)))],
            "t said",
        ),
        (
            "a page's number",
            vec![
                ("list", list(&format!(r#"{{"tools":{one},"nextCursor":2}}"#))),
                ("list2", list(&format!(r#"{{"tools":{two}}}"#))),
            ],
            "t,u said",
        ),
        (
            "an empty page between",
            vec![("list", list(r#"{"tools":[],"nextCursor":"2"}"#)), ("list2", list(&format!(r#"{{"tools":{one}}}"#)))],
            "t said",
        ),
        ("tools by their names", vec![("list", list(r#"{"tools":{"t":{"inputSchema":{}}}}"#))], "t said"),
        ("no tools", vec![("list", list(r#"{"tools":null}"#))], " said"),
        ("no list", vec![("list", list("{}"))], "its list of tools can't be read"),
        (
            "one tool twice",
            vec![("list", list(r#"{"tools":[{"name":"t"},{"name":"t","description":"other"}]}"#))],
            "t saidThe tool \"t\" is left out: there are two of its name.",
        ),
        ("numbers as texts", vec![("init", as_text(INIT)), ("list", as_text(LIST)), ("call", as_text(CALL))], "t said"),
        ("always 0", vec![("init", as_zero(INIT)), ("list", as_zero(LIST)), ("call", as_zero(CALL))], "t said"),
        (
            "the notification is answered",
            vec![(
                "other",
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found"}}"#.to_owned(),
            )],
            "t said",
        ),
        (
            "words, a batch and a request",
            vec![(
                "init",
                format!("> npm start\n\n[{INIT}]\n{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"roots/list\"}}"),
            )],
            "t said",
        ),
        ("an older revision", vec![("init", INIT.replace("2025-06-18", "2024-10-07"))], "t said"),
        ("a newer revision", vec![("init", INIT.replace("2025-06-18", "2027-01-01"))], "t said"),
        ("no revision, no capabilities", vec![("init", list("{}"))], "t said"),
        (
            "rows only in the data",
            vec![(
                "call",
                list(r#"{"content":[{"type":"text","text":"Found 2 rows"}],"structuredContent":{"rows":[1,2]}}"#),
            )],
            "t Found 2 rows\n{\"rows\":[1,2]}",
        ),
        (
            "a refusal",
            vec![("call", r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"no key"}}"#.to_owned())],
            "no key (-32000)",
        ),
        (
            "framed",
            vec![("init", "Content-Length: 2\r\n\r\n{}".to_owned())],
            "it puts \"Content-Length\" before its messages, as language servers do; an MCP server sends one message per line",
        ),
    ];
    for (name, files, spoke) in cases {
        let dir = tempfile::tempdir().unwrap();
        let files =
            [("init", INIT.to_owned()), ("list", LIST.to_owned()), ("call", CALL.to_owned())].into_iter().chain(files);
        for (file, text) in files {
            std::fs::write(dir.path().join(file), text + "\n").unwrap();
        }
        let server = server_of(&format!("command = [\"/bin/sh\", \"-c\", {SCRIPT:?}]"));
        assert_eq!(spoken(&server, dir.path()).await, spoke, "{name}");
    }
}

/// A new report is one line: its name, a server that is a program, and the reason for its failure.
#[tokio::test]
async fn a_program_that_ends_is_told_by_its_own_words() {
    for (name, script, why) in [
        ("a complaint", "echo 'API_KEY is required' >&2; exit 1", "it ended (API_KEY is required)"),
        (
            "of a node",
            "printf 'index.js:1\\nthrow new Error(x)\\n\\nError: API_KEY is required\\n    at Object.<anonymous> (a.js:1:7)\\n    at b.js:2\\n\\nNode.js v22.1.0\\n' >&2; exit 1",
            "it ended (Error: API_KEY is required)",
        ),
        (
            "of a python",
            "printf 'Traceback:\\n  File x\\nKeyError: API_KEY\\n' >&2; exit 1",
            "it ended (KeyError: API_KEY)",
        ),
        (
            "of an npm",
            "printf 'npm error code E404\\nnpm error 404 Not Found\\nnpm error A complete log of this run can be found in: /x/y.log\\n' >&2; exit 1",
            "it ended (npm error 404 Not Found)",
        ),
        ("where it should answer", "echo 'Usage: server KEY'; exit 2", "it ended (Usage: server KEY)"),
        ("nothing", "exit 3", "it ended (it said nothing)"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let server = server_of(&format!("command = [\"/bin/sh\", \"-c\", {script:?}]"));
        assert_eq!(spoken(&server, dir.path()).await, why, "{name}");
    }
}

/// An answer to a request of this method: a status, headers and a body. The first unused one counts; the last one repeats.
type Canned = (&'static str, u16, &'static str, String);

/// Serves canned answers. Returns the port, and a log of the requests: the path, the session and the method.
fn serve(canned: Vec<Canned>) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&asked);
    std::thread::spawn(move || {
        let mut canned = canned;
        for stream in listener.incoming() {
            answer(stream.unwrap(), &mut canned, &log, port);
        }
    });
    (port, asked)
}

fn answer(stream: TcpStream, canned: &mut Vec<Canned>, log: &Mutex<Vec<String>>, port: u16) {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
            break;
        }
        lines.push(line.trim().to_owned());
    }
    let header = |name: &str| {
        lines
            .iter()
            .filter_map(|line| line.split_once(": "))
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    };
    let mut body = vec![0; header("content-length").map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let line = lines.first().cloned().unwrap_or_default();
    let method = body["method"].as_str().unwrap_or(line.split(' ').next().unwrap());
    log.lock().unwrap().push(format!(
        "{} {} {method}",
        line.split(' ').nth(1).unwrap_or_default(),
        header("mcp-session-id").unwrap_or("-")
    ));
    let at = canned.iter().position(|(of, ..)| *of == method);
    let (status, headers, text) = match at {
        Some(at) => {
            let (_, status, headers, text) = canned[at].clone();
            if canned.iter().filter(|(of, ..)| *of == method).count() > 1 {
                canned.remove(at);
            }
            (status, headers, text)
        }
        None if method.starts_with("notifications/") => (202, "", String::new()),
        None => (405, "", String::new()),
    };
    let text = text.replace("ID", &body["id"].to_string());
    let headers = headers.replace("PORT", &port.to_string());
    let head = format!("HTTP/1.1 {status} X\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n", text.len());
    let mut stream = reader.into_inner();
    stream.write_all(format!("{head}{text}").as_bytes()).ok();
}

const JSON: &str = "Content-Type: application/json; charset=utf-8\r\n";
const EVENT_STREAM: &str = "Content-Type: Text/Event-Stream;charset=utf-8\r\n";
const WITH_SESSION: &str = "Content-Type: application/json\r\nMcp-Session-Id: one\r\n";
const WITH_SECOND_SESSION: &str = "Content-Type: application/json\r\nMcp-Session-Id: two\r\n";

/// A new report is one line: its name, the answers that differ from the usual ones, and the result.
#[tokio::test]
async fn a_server_behind_http_is_spoken_with_whatever_its_manners() {
    let event = |text: &str| format!(": hello\n\nid: 1\nevent: message\ndata: {text}\n\n");
    let (init, list, call) = (INIT.to_owned(), LIST.to_owned(), CALL.to_owned());
    let no_session = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#;
    let cases: Vec<(&str, Vec<Canned>, &str)> = vec![
        ("as it should be", vec![], "t said"),
        ("events with comments", vec![("tools/list", 200, EVENT_STREAM, event(LIST))], "t said"),
        ("a last event without its end", vec![("tools/list", 200, EVENT_STREAM, event(LIST).trim_end().to_owned())], "t said"),
        ("a notification before", vec![("tools/list", 200, EVENT_STREAM, event(r#"{"jsonrpc":"2.0","method":"notifications/message"}"#) + &event(LIST))], "t said"),
        ("a request before", vec![("tools/list", 200, EVENT_STREAM, event(r#"{"jsonrpc":"2.0","id":9,"method":"roots/list"}"#) + &event(LIST))], "t said"),
        ("events that are called JSON", vec![("tools/list", 200, JSON, event(LIST))], "t said"),
        ("a stream without an answer", vec![("tools/list", 200, EVENT_STREAM, ": ping\n\n".to_owned())], "its stream ended before the answer"),
        ("a message that is called events", vec![("tools/list", 200, EVENT_STREAM, list.clone())], "t said"),
        ("an error without a version", vec![("tools/call", 200, JSON, r#"{"error":"no such row"}"#.to_owned())], "no such row (-32603)"),
        ("words", vec![("tools/call", 200, JSON, "later".to_owned())], "it answered with something other than a message (HTTP 200) (the \
            last that it said: later)"),
        ("a batch", vec![("tools/list", 200, JSON, format!("[{LIST}]"))], "t said"),
        ("another number", vec![("tools/list", 200, JSON, LIST.replace("ID", "77"))], "t said"),
        ("accepted, with the answer", vec![("tools/list", 202, JSON, list.clone())], "t said"),
        ("accepted, without", vec![("tools/list", 202, "", String::new())], "it answered with nothing (HTTP 202)"),
        ("the notification is refused", vec![("notifications/initialized", 400, JSON, "{}".to_owned())], "t said"),
        ("the notification is answered", vec![("notifications/initialized", 200, JSON, "{}".to_owned())], "t said"),
        ("a slash at the end", vec![("initialize", 307, "Location: /mcp/\r\n", String::new()), ("initialize", 200, JSON, init.clone())], "t said"),
        ("its whole address", vec![("initialize", 308, "Location: http://127.0.0.1:PORT/other\r\n", String::new()), ("initialize", 200, JSON, init.clone())], "t said"),
        ("elsewhere", vec![("initialize", 307, "Location: https://b.example/mcp?key=x\r\n", String::new())], "it has moved to https://b.example/mcp; if you trust that address, write it into mcp.toml"),
        ("on and on", vec![("initialize", 307, "Location: /mcp\r\n", String::new())], "it redirects again and again"),
        ("a session", vec![("initialize", 200, WITH_SESSION, init.clone())], "t said"),
        ("a session that is over", vec![("initialize", 200, WITH_SESSION, init.clone()), ("initialize", 200, WITH_SECOND_SESSION, init.clone()), ("tools/call", 404, JSON, no_session.to_owned()), ("tools/call", 200, JSON, call.clone())], "t said"),
        ("one that is over, as a bad request", vec![("initialize", 200, WITH_SESSION, init.clone()), ("tools/call", 400, JSON, r#"{"error":"Invalid session ID"}"#.to_owned()), ("tools/call", 200, JSON, call.clone())], "t said"),
        ("one that is over, as an answer", vec![("initialize", 200, WITH_SESSION, init.clone()), ("tools/call", 200, JSON, no_session.to_owned()), ("tools/call", 200, JSON, call.clone())], "t said"),
        ("a tool's own session", vec![("initialize", 200, WITH_SESSION, init.clone()), ("tools/call", 200, JSON, no_session.replace("null", "ID")), ("tools/call", 200, JSON, call.clone())], "Session not found (-32001)"),
        ("one that is always over", vec![("initialize", 200, WITH_SESSION, init.clone()), ("tools/call", 404, "", String::new())], "it has forgotten this session"),
        ("no server", vec![("initialize", 404, "", "Not Found".to_owned())], "there is no MCP server at its url (HTTP 404): Not Found"),
        ("an older transport", vec![("initialize", 405, "", String::new())], "its url accepts no messages by POST: servers with the \
            older HTTP+SSE transport aren't supported (HTTP 405)"),
        ("a sign-in", vec![("initialize", 401, "WWW-Authenticate: Bearer\r\n", r#"{"error":"invalid_token","error_description":"Missing token"}"#.to_owned())], "it wants a sign-in: put the token that it gives you into headers in mcp.toml (HTTP 401): Missing token"),
        ("a right that lacks", vec![("tools/list", 403, "", String::new())], "it doesn't allow this with the token in headers in \
            mcp.toml (HTTP 403)"),
        ("too busy", vec![("tools/list", 429, "Retry-After: 7\r\n", String::new())], "it is too busy now and asks to wait 7 s (HTTP 429)"),
        ("an error of the protocol", vec![("tools/list", 400, JSON, r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Bad header"}}"#.to_owned())], "Bad header (-32600)"),
        ("an error in a page", vec![("tools/list", 502, "", "<html>Bad gateway</html>".to_owned())], "it answered with an error (HTTP 502)"),
        ("a page", vec![("tools/list", 200, "Content-Type: text/html\r\n", "<!doctype html>".to_owned())], "it answered with a web page: its url may be another one, or it wants a sign-in (HTTP 200)"),
        ("an older revision is wanted", vec![("initialize", 200, JSON, r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"Unsupported protocol version","data":{"supported":["2025-03-26"]}}}"#.to_owned()), ("initialize", 200, JSON, init.clone())], "t said"),
    ];
    for (name, canned, spoke) in cases {
        let usual: [Canned; 3] = [
            ("initialize", 200, JSON, init.clone()),
            ("tools/list", 200, JSON, list.clone()),
            ("tools/call", 200, JSON, call.clone()),
        ];
        let usual = usual.into_iter().filter(|(method, ..)| !canned.iter().any(|(of, ..)| of == method));
        let canned: Vec<Canned> = usual.chain(canned.clone()).collect();
        let (port, asked) = serve(canned);
        let server = server_of(&format!("url = \"http://127.0.0.1:{port}/mcp\""));
        assert_eq!(spoken(&server, Path::new("/")).await, spoke, "{name}: {:#?}", asked.lock().unwrap());
    }
}

#[tokio::test]
async fn a_new_session_is_begun_without_the_old_ones_number() {
    let canned: Vec<Canned> = vec![
        ("initialize", 200, WITH_SESSION, INIT.to_owned()),
        ("initialize", 200, WITH_SECOND_SESSION, INIT.to_owned()),
        ("tools/list", 200, JSON, LIST.to_owned()),
        ("tools/call", 404, "", String::new()),
        ("tools/call", 200, JSON, CALL.to_owned()),
    ];
    let (port, asked) = serve(canned);
    let server = server_of(&format!("url = \"http://127.0.0.1:{port}/mcp\""));
    assert_eq!(spoken(&server, Path::new("/")).await, "t said");
    let asked = asked.lock().unwrap().clone();
    let calls = [
        "- initialize",
        "one notifications/initialized",
        "one tools/list",
        "one tools/call",
        "- initialize",
        "two notifications/initialized",
        "two tools/call",
    ];
    assert_eq!(asked, calls.map(|call| format!("/mcp {call}")));
}

#[test]
fn any_bytes_of_a_program_end_in_an_answer_or_a_reason() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let pieces = prop::sample::select(vec![
        &b"\n"[..],
        b"{",
        b"\xff\xfe",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n",
        b"[[[[",
        b"\0",
        b"Content-Length: 1\r\n\r\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tools\":[1,null,{\"name\":7}],\"nextCursor\":7}}\n",
    ]);
    let sent = prop::collection::vec(pieces, 0..12).prop_map(|pieces| pieces.concat());
    let mut runner =
        TestRunner::new(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() });
    runner
        .run(&sent, |bytes| {
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join("bytes"), &bytes).unwrap();
            let server = server_of("command = [\"/bin/cat\", \"bytes\"]");
            runtime.block_on(spoken(&server, dir.path()));
            Ok(())
        })
        .unwrap();
}
