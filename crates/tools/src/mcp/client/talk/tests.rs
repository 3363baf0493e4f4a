use proptest::prelude::*;

use super::*;

const INTRODUCED: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

/// A conversation with an open second request, for the list of tools. `introduction` is the answer to the first one.
fn listing(introduction: &str) -> ServerTalk {
    let is_paired = false;
    let mut talk = ServerTalk::new(is_paired);
    talk.open_request(ServerMethod::Initialize, &json!({}));
    assert!(talk.process_text(introduction).answer.is_some_and(|answer| answer.is_ok()), "{introduction}");
    talk.open_request(ServerMethod::ListTools, &json!({}));
    talk
}

/// The answer in these lines: a result, an error's text, or nothing.
fn heard(talk: &mut ServerTalk, lines: &str) -> String {
    for line in lines.split_inclusive('\n') {
        match talk.process_text(line).answer {
            Some(Ok(result)) => return result.to_string(),
            Some(Err(error)) => return error.to_string(),
            None => {}
        }
    }
    "nothing".to_owned()
}

/// A new report is one line: its name, the lines the server sends while we wait for its tools, and their reading.
#[test]
fn an_answer_is_known_among_all_that_a_server_sends() {
    let tools = r#"{"tools":[]}"#;
    let right = format!(r#"{{"jsonrpc":"2.0","id":2,"result":{tools}}}"#);
    let with = |before: &str| format!("{before}{right}");
    let cases: Vec<(&str, String, &str)> = vec![
        ("as it should be", right.clone(), tools),
        ("a number as a text", right.replace(":2,", ":\"2\","), tools),
        ("a number with a point", right.replace(":2,", ":2.0,"), tools),
        ("no number", right.replace(r#""id":2,"#, ""), tools),
        ("null for a number", right.replace(":2,", ":null,"), tools),
        ("always 0", right.replace(":2,", ":0,"), tools),
        ("always 1", right.replace(":2,", ":1,"), tools),
        ("a number of its own", right.replace(":2,", ":\"x-77\","), tools),
        ("no word of the version", right.replace(r#""jsonrpc":"2.0","#, ""), tools),
        ("an answer that comes twice", format!("{INTRODUCED}\n{right}"), tools),
        ("an answer to the notification", with("{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{}}\n"), tools),
        ("an error about the notification", with("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32601,\"message\":\"Method not found\"}}\n"), tools),
        ("one under 0", with("{\"jsonrpc\":\"2.0\",\"id\":0,\"error\":{\"code\":-32601,\"message\":\"Method not found: notifications/initialized\"}}\n"), tools),
        ("one without a number", with("{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32603,\"message\":\"notifications/initialized failed\"}}\n"), tools),
        ("an error without a number", r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"broken"}}"#.to_owned(), "broken (-32603)"),
        ("no such method, without a number", r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no tools/list here"}}"#.to_owned(), "no tools/list here (-32601)"),
        ("a batch", format!(r#"[{{"jsonrpc":"2.0","method":"notifications/message"}},{right}]"#), tools),
        ("two on a line", format!("{INTRODUCED}{right}\n"), tools),
        ("a mark at the beginning", format!("\u{feff}{right}\r\n"), tools),
        ("words before it", with("npm notice New version\n\nServer started {ok: true}\n[info] \n{\"level\":\"error\",\"error\":\"x\"}\n42\n"), tools),
        ("words on its line", format!("\u{1b}[2KReady. {right}"), tools),
        ("words behind it", format!("{right} done"), tools),
        ("what it was sent", with("-> {\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}\n"), tools),
        ("many lines", "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 2,\n  \"result\": {\n    \"tools\": [\n      {\n        \"a\": 1\n      },\n      {}\n    ]\n  }\n}\n".to_owned(), r#"{"tools":[{"a":1},{}]}"#),
        ("an object of its log in many lines", with("{\n  port: 1\n}\n"), tools),
        ("a bracket before it", with("[\n"), tools),
        ("half a pair", right.replace("[]", r#"["\ud83d"]"#), "{\"tools\":[\"\u{fffd}\"]}"),
        ("no number of JSON's", right.replace("[]", "[NaN,-Infinity,undefined]"), r#"{"tools":[null,null,null]}"#),
        ("a tab in a text", right.replace("[]", "[\"a\tb\"]"), r#"{"tools":["a\tb"]}"#),
        ("no error beside a result", right.replace("}}", r#"},"error":null}"#), tools),
        ("no result beside an error", r#"{"jsonrpc":"2.0","id":2,"result":null,"error":{"code":-1,"message":"no"}}"#.to_owned(), "no (-1)"),
        ("both", r#"{"jsonrpc":"2.0","id":2,"result":{},"error":{"code":-1,"message":"no"}}"#.to_owned(), "no (-1)"),
        ("both null", r#"{"jsonrpc":"2.0","id":2,"result":null,"error":null}"#.to_owned(), "null"),
        ("neither", r#"{"jsonrpc":"2.0","id":2}"#.to_owned(), "its answer holds neither a result nor an error"),
        ("an error in a word", r#"{"jsonrpc":"2.0","id":2,"error":"no key"}"#.to_owned(), "no key (-32603)"),
        ("an error without a number of its own", r#"{"jsonrpc":"2.0","id":2,"error":{"message":"no key"}}"#.to_owned(), "no key (-32603)"),
        ("an error's number as a text", r#"{"jsonrpc":"2.0","id":2,"error":{"code":"-7","message":"no key"}}"#.to_owned(), "no key (-7)"),
        ("an error without words", r#"{"jsonrpc":"2.0","id":2,"error":{"code":-7}}"#.to_owned(), r#"{"code":-7} (-7)"#),
        ("an error with data", r#"{"jsonrpc":"2.0","id":2,"error":{"code":-7,"message":"no key","data":{"at":"a"}}}"#.to_owned(), r#"no key: {"at":"a"} (-7)"#),
        ("an empty error beside a result", right.replace("}}", r#"},"error":""}"#), tools),
        ("framed", format!("Content-Length: 47\r\n\r\n{right}"), "it puts \"Content-Length\" before its messages, as language servers do; an MCP server sends one message per line"),
        ("broken", r#"{"jsonrpc":"2.0","id":2,"result":{tools:[]}}"#.to_owned(), "it sent a message that can't be read: key must be a string"),
        ("too deep", right.replace("[]", &format!("{}{}", "[".repeat(200), "]".repeat(200))), "it sent a message that can't be read: recursion limit exceeded"),
        ("nothing of it", "hello\n{\"a\":1}\n".to_owned(), "nothing"),
    ];
    for (name, sent, taken) in cases {
        let heard = heard(&mut listing(INTRODUCED), &sent);
        assert_eq!(heard.split(" at line ").next(), Some(taken), "{name}");
    }
}

#[test]
fn a_server_with_numbers_of_its_own_is_understood_call_after_call() {
    for number in ["0", "null", "\"1\"", "1", "\"a\""] {
        let numbered = |result: &str| format!(r#"{{"jsonrpc":"2.0","id":{number},"result":{result}}}"#);
        let mut talk = listing(&numbered("{}"));
        assert_eq!(heard(&mut talk, &numbered(r#"{"tools":[]}"#)), r#"{"tools":[]}"#, "{number}");
        for n in 1..4 {
            talk.open_request(ServerMethod::CallTool, &json!({}));
            let answer = format!(r#"{{"n":{n}}}"#);
            assert_eq!(heard(&mut talk, &numbered(&answer)), answer, "{number}");
        }
    }
}

#[test]
fn what_comes_twice_is_not_the_answer_to_the_next_call() {
    let mut talk = listing(INTRODUCED);
    heard(&mut talk, r#"{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}"#);
    let answer = |id: u64| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"call":{id}}}}}"#);
    talk.open_request(ServerMethod::CallTool, &json!({}));
    assert_eq!(heard(&mut talk, &answer(3)), r#"{"call":3}"#);
    talk.open_request(ServerMethod::CallTool, &json!({}));
    assert_eq!(heard(&mut talk, &answer(3)), "nothing");
    assert_eq!(talk.hint(), "an answer to something else, with the id 3");
    assert_eq!(heard(&mut talk, &answer(4)), r#"{"call":4}"#);
}

#[test]
fn a_ping_is_answered_and_nothing_else_is_granted() {
    let mut talk = listing(INTRODUCED);
    let request = |id: &str, method: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#);
    assert_eq!(talk.process_text(&request("\"p\"", "ping")).replies, [r#"{"jsonrpc":"2.0","id":"p","result":{}}"#]);
    for method in ["roots/list", "sampling/createMessage", "elicitation/create"] {
        let replies = talk.process_text(&request("2", method)).replies;
        assert!(replies[0].contains("-32601") && replies[0].contains("not supported"), "{replies:?}");
    }
    assert!(talk.process_text(&request(&format!("\"{}\"", "x".repeat(1_000)), "ping")).replies.is_empty());
    let flood: usize = (0..1_000).map(|n: u32| talk.process_text(&request(&n.to_string(), "ping")).replies.len()).sum();
    assert!(flood < MAX_REPLIES, "{flood}");
    assert!(!talk.has_changed_tools());
    talk.process_text(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    assert!(talk.take_tools_changed() && !talk.has_changed_tools());
}

/// Pieces of messages, in any order.
fn any_line() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        "\"",
        ",",
        ":",
        "\\",
        "\\u",
        "\\ud83d",
        "\n",
        "\r",
        " ",
        "\u{feff}",
        "null",
        "NaN",
        "1",
        "2",
        "\"id\":",
        "\"jsonrpc\":\"2.0\",",
        "\"result\":{}",
        "\"error\":",
        "\"method\":\"ping\"",
        "\"tools\":[]",
        "Content-Length: 5",
        "é",
        "\u{1b}[2K",
        r#"{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"roots/list"}"#,
    ]);
    prop_oneof![
        prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat()),
        prop::collection::vec(any::<u8>(), 0..80).prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
    ]
}

proptest! {
    #[test]
    fn whatever_is_sent_is_heard_and_little_of_it_is_kept(
        lines in prop::collection::vec(any_line(), 0..40),
        is_paired in any::<bool>(),
    ) {
        let mut talk = ServerTalk::new(is_paired);
        let mut replies = 0;
        for (n, line) in lines.iter().enumerate() {
            if n % 10 == 0 {
                let method = [ServerMethod::Initialize, ServerMethod::ListTools, ServerMethod::CallTool][n / 10 % 3];
                talk.open_request(method, &json!({}));
                replies = 0;
            }
            replies += talk.process_text(line).replies.len();
            prop_assert!(replies <= MAX_REPLIES);
            prop_assert!(talk.hint.chars().count() <= MAX_HINT_CHARS + 1);
            prop_assert!(talk.open_lines.len() <= lines.iter().map(String::len).sum());
        }
    }
}
