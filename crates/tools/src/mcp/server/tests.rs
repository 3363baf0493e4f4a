//! Tests the server's core and its HTTP transport, with a handler that echoes calls.

use tokio::net::TcpListener;

use reveille_base::redact::Secret;

use super::*;

struct Echo;

impl Handler for Echo {
    fn call<'a>(&'a mut self, Call { name, input, .. }: &'a Call) -> Answering<'a> {
        Box::pin(async move { Answer { text: format!("{name} {input}"), is_error: name == "fail", image: None } })
    }

    fn list_resources(&mut self) -> Result<Vec<Resource>, Unread> {
        Ok(vec![Resource { uri: "reveille://a".to_owned(), name: "a".to_owned(), mime: "text/markdown" }])
    }

    fn read_resource(&mut self, uri: &str) -> Result<String, Unread> {
        match uri {
            "reveille://a" => Ok("text".to_owned()),
            "reveille://b" => Err(Unread::Refused("not today".to_owned())),
            _ => Err(Unread::Missing),
        }
    }
}

fn offer() -> Offer {
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    Offer { instructions: "Echoes.".to_owned(), tools: vec![tool("echo"), tool("fail")], has_resources: true }
}

/// Sends a request and returns its answer, from the handler or from the offer.
async fn ask(method: &str, params: Value) -> Result<Value, RpcError> {
    let (jobs, waiting) = mpsc::channel(1);
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let message = Message::Request { id: 1.into(), method: method.to_owned(), params };
    assert!(handle_message(&offer(), message, &jobs, move |answer| sender.send(answer).unwrap()));
    drop(jobs);
    run_jobs(&mut Echo, waiting).await;
    receiver.await.unwrap()
}

#[tokio::test]
async fn calls_and_resources_reach_the_handler_and_other_requests_are_answered_at_once() {
    let called = ask("tools/call", json!({"name": "echo", "arguments": {"b": 1, "a": "x"}})).await.unwrap();
    assert_eq!(called, json!({"content": [{"type": "text", "text": r#"echo {"b":1,"a":"x"}"#}], "isError": false}));
    let in_text = ask("tools/call", json!({"name": "echo", "arguments": "{\"a\":1}"})).await.unwrap();
    assert_eq!(in_text["content"][0]["text"], r#"echo {"a":1}"#);
    assert_eq!(ask("tools/call", json!({"name": "fail"})).await.unwrap()["isError"], true);
    assert_eq!(ask("tools/list", json!({})).await.unwrap()["tools"][0]["name"], "echo");
    assert_eq!(ask("resources/read", json!({"uri": "reveille://a"})).await.unwrap()["contents"][0]["text"], "text");
    assert_eq!(ask("ping", Value::Null).await.unwrap(), json!({}));
}

#[tokio::test]
async fn unanswerable_requests_get_the_protocols_error_codes() {
    for (method, params, code) in [
        ("tools/call", json!({"name": "other"}), RpcError::PARAMETERS),
        ("tools/call", json!({"name": "echo", "arguments": []}), RpcError::PARAMETERS),
        ("resources/read", json!({"uri": "reveille://b"}), RpcError::INTERNAL),
        ("resources/read", json!({"uri": "reveille://c"}), RpcError::NO_RESOURCE),
        ("resources/read", json!({}), RpcError::PARAMETERS),
        ("prompts/list", json!({}), RpcError::NO_METHOD),
    ] {
        assert_eq!(ask(method, params).await.unwrap_err().code, code, "{method}");
    }
}

#[tokio::test]
async fn a_known_revision_is_accepted_and_for_another_the_latest_is_offered() {
    for (asked, spoken) in [("2025-03-26", "2025-03-26"), ("2031-01-01", LATEST)] {
        let answer = ask("initialize", json!({"protocolVersion": asked})).await.unwrap();
        assert_eq!(answer["protocolVersion"], spoken);
    }
}

#[tokio::test]
async fn calls_are_refused_while_too_many_wait() {
    let (jobs, _waiting) = mpsc::channel(1);
    let answer_at_once = |jobs: &mpsc::Sender<Job>| {
        let (done, mut answered) = tokio::sync::oneshot::channel();
        let params = json!({"name": "echo"});
        let message = Message::Request { id: 1.into(), method: "tools/call".to_owned(), params };
        handle_message(&offer(), message, jobs, move |answer| done.send(answer).unwrap());
        answered.try_recv().ok()
    };
    assert_eq!(answer_at_once(&jobs), None, "the first call waits");
    assert_eq!(answer_at_once(&jobs).unwrap().unwrap_err().code, RpcError::INTERNAL);
}

/// Runs `client` against a server with the token `secret-token`.
async fn with_server(client: impl AsyncFnOnce(reqwest::Client, String)) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let token = Secret::new("secret-token");
    let mut echo = Echo;
    tokio::select! {
        ended = http::serve(listener, &token, offer(), &mut echo) => panic!("{ended:?}"),
        () = client(reqwest::Client::builder().no_proxy().build().unwrap(), url) => {}
    }
}

const PING: &str = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;

#[tokio::test]
async fn only_requests_with_the_token_and_a_local_host_are_answered() {
    with_server(async |client, url| {
        let post = |headers: &[(&'static str, &'static str)]| {
            let request = client.post(&url).header("content-type", "application/json").body(PING);
            headers.iter().fold(request, |request, (name, value)| request.header(*name, *value)).send()
        };
        let good = ("authorization", "Bearer secret-token");
        for (headers, status) in [
            (vec![good], 200),
            (vec![good, ("origin", "http://localhost:5173")], 200),
            (vec![], 401),
            (vec![("authorization", "Bearer secret-toke")], 401),
            (vec![("authorization", "Basic secret-token")], 401),
            (vec![good, ("host", "evil.example")], 403),
            (vec![good, ("origin", "http://evil.example")], 403),
            (vec![good, ("origin", "null")], 403),
            (vec![good, ("mcp-protocol-version", "1999-01-01")], 400),
        ] {
            assert_eq!(post(&headers).await.unwrap().status(), status, "{headers:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_message_is_answered_once_and_anything_else_is_refused() {
    with_server(async |client, url| {
        let send = |body: String| {
            let request = client.post(&url).bearer_auth("secret-token").header("content-type", "application/json");
            async move {
                let answer = request.body(body).send().await.unwrap();
                (answer.status().as_u16(), answer.text().await.unwrap())
            }
        };
        assert_eq!(send(PING.to_owned()).await, (200, r#"{"jsonrpc":"2.0","id":7,"result":{}}"#.to_owned()));
        let call = r#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"echo","arguments":{}}}"#;
        assert!(send(call.to_owned()).await.1.contains("echo {}"));
        let notification = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert_eq!(send(notification.to_owned()).await, (202, String::new()));
        let batch = send(format!("[{PING},{notification},{}]", PING.replace('7', "\"b\""))).await;
        let answers = r#"[{"jsonrpc":"2.0","id":7,"result":{}},{"jsonrpc":"2.0","id":"b","result":{}}]"#;
        assert_eq!(batch, (200, answers.to_owned()));
        assert_eq!(send(format!("[{notification}]")).await, (202, String::new()));
        let unversioned = send(PING.replace(r#""jsonrpc":"2.0","#, "")).await.1;
        assert!(unversioned.contains(r#""id":7"#) && unversioned.contains("-32600"), "{unversioned}");
        assert_eq!(send("{".to_owned()).await.0, 400);
        assert_eq!(send(" ".repeat(MAX_REQUEST_BYTES + 1)).await.0, 413);
        let get = client.get(&url).bearer_auth("secret-token").send().await.unwrap();
        assert_eq!(get.status(), 405);
        let elsewhere = client.post(url.replace("/mcp", "/")).bearer_auth("secret-token").send().await.unwrap();
        assert_eq!(elsewhere.status(), 404);
    })
    .await;
}

/// Opens connections that start a request and leave it unfinished.
fn open_unfinished_requests(url: &str, how_many: usize) -> Vec<std::net::TcpStream> {
    let host = url.trim_start_matches("http://").split('/').next().unwrap();
    let connect = || {
        let mut stream = std::net::TcpStream::connect(host).unwrap();
        std::io::Write::write_all(&mut stream, b"POST /mcp HTTP/1.1\r\nHost: ").unwrap();
        stream.set_nonblocking(true).unwrap();
        stream
    };
    std::iter::repeat_with(connect).take(how_many).collect()
}

/// Returns true if the server has neither answered nor closed the connection.
fn is_open(mut stream: &std::net::TcpStream) -> bool {
    std::io::Read::read(&mut stream, &mut [0]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

#[tokio::test]
async fn unfinished_requests_dont_hold_up_others() {
    with_server(async |client, url| {
        let ping = async || {
            let request = client.post(&url).bearer_auth("secret-token").header("content-type", "application/json");
            request.body(PING).send().await.unwrap().status()
        };
        let few = open_unfinished_requests(&url, 40);
        assert_eq!(ping().await, 200);
        assert!(few.iter().all(is_open), "the ping had to wait for the unfinished requests");
        // Beyond the maximum, the connections that have waited longest are closed.
        let many = open_unfinished_requests(&url, 100);
        assert_eq!(ping().await, 200);
        assert!(many.last().is_some_and(is_open));
        assert!(!few.iter().any(is_open));
    })
    .await;
}

#[tokio::test]
async fn only_a_loopback_address_is_served() {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let result = http::serve(listener, &Secret::new("t"), offer(), &mut Echo).await;
    assert!(result.unwrap_err().to_string().contains("isn't a loopback"));
}
