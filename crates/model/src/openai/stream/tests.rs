use proptest::prelude::*;

use super::*;
use crate::{
    Conversation,
    content::{join_text, tool_calls},
};

const PROMPT_BYTES: usize = 300;

fn offered() -> Vec<String> {
    ["note", "look"].map(str::to_owned).to_vec()
}

fn finished(stream: ChatStream, is_tainted: bool) -> Result<Turn, ModelError> {
    stream.finish(Finishing {
        ids: CallIds::for_conversation(&Conversation::default()),
        offered: &offered(),
        reads_text: !is_tainted,
        is_small: false,
        is_bound: false,
        request_id: None,
    })
}

fn stream() -> ChatStream {
    ChatStream::new("server".to_owned(), "openai:m", PROMPT_BYTES)
}

/// Reads a stream of these chunks.
fn streamed(chunks: &[&str]) -> Result<Turn, ModelError> {
    let body: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    let mut streams = [1, 7, body.len().max(1)].map(|size| {
        let mut stream = stream();
        for piece in body.as_bytes().chunks(size) {
            stream.push(piece)?;
        }
        stream.end_body()?;
        finished(stream, false)
    });
    let last = streams.last().cloned().unwrap();
    assert!(streams.iter_mut().all(|turn| *turn == last), "however it is cut: {streams:#?}");
    last
}

fn delta(delta: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#)
}

fn end(reason: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{reason}"}}]}}"#)
}

/// Reads calls from these pieces, and returns names and arguments.
fn calls(pieces: &[&str], reason: &str) -> Vec<(String, String)> {
    let chunks: Vec<String> = pieces.iter().map(|piece| delta(&format!(r#"{{"tool_calls":[{piece}]}}"#))).collect();
    let end = end(reason);
    let turn = streamed(&chunks.iter().map(String::as_str).chain([end.as_str(), DONE]).collect::<Vec<_>>()).unwrap();
    assert_eq!(turn.stop, Stop::ToolUse);
    let calls = tool_calls(&turn.content, &turn.stop);
    let ids: std::collections::HashSet<&str> = calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids.len(), calls.len(), "each has an id of its own");
    calls.iter().map(|call| (call.name.clone(), call.input.get().to_owned())).collect()
}

fn pair(name: &str, input: &str) -> (String, String) {
    (name.to_owned(), input.to_owned())
}

#[test]
fn a_text_is_put_together_and_its_tokens_are_the_servers() {
    let chunks = [
        &delta(r#"{"role":"assistant","content":null}"#),
        &delta(r#"{"content":"Hel"}"#),
        &delta(r#"{"content":"lo \u00e9"}"#),
        &end("stop"),
        r#"{"choices":[],"usage":{"prompt_tokens":28,"completion_tokens":22,"prompt_tokens_details":{"cached_tokens":27}}}"#,
        DONE,
    ];
    let turn = streamed(&chunks).unwrap();
    assert_eq!((turn.content.as_str(), turn.stop), (r#"[{"type":"text","text":"Hello é"}]"#, Stop::EndTurn));
    assert_eq!(turn.usage, Usage { input: 1, output: 22, cache_read: 27, cache_write: 0 });
}

#[test]
fn a_call_is_put_together_of_its_pieces_byte_for_byte() {
    let pieces = [
        r#"{"index":0,"id":"c1","type":"function","function":{"name":"note","arguments":""}}"#,
        r#"{"index":0,"function":{"arguments":"{\"n\": 1"}}"#,
        r#"{"index":1,"id":"c2","function":{"name":"look","arguments":"{}"}}"#,
        r#"{"index":0,"function":{"arguments":".50}"}}"#,
    ];
    assert_eq!(calls(&pieces, "tool_calls"), [pair("note", r#"{"n": 1.50}"#), pair("look", "{}")]);
}

#[test]
fn calls_without_ids_or_with_one_index_are_told_apart() {
    let whole = |index: &str, id: &str, name: &str| {
        format!(r#"{{{index}{id}"function":{{"name":"{name}","arguments":"{{\"a\":1}}"}}}}"#)
    };
    let both = [pair("note", r#"{"a":1}"#), pair("note", r#"{"a":1}"#)];
    for (index, first, second) in [
        (r#""index":0,"#, r#""id":"a","#, r#""id":"b","#),
        (r#""index":0,"#, "", ""),
        ("", r#""id":"a","#, r#""id":"b","#),
        ("", "", ""),
    ] {
        let pieces = [whole(index, first, "note"), whole(index, second, "note")];
        assert_eq!(calls(&pieces.each_ref().map(String::as_str), "stop"), both, "{index} {first}");
    }
    // A server that repeats id and name with each piece.
    let repeated =
        |arguments: &str| format!(r#"{{"index":0,"id":"a","function":{{"name":"note","arguments":"{arguments}"}}}}"#);
    let pieces = [repeated(r#"{\"a\""#), repeated(":1}")];
    assert_eq!(calls(&pieces.each_ref().map(String::as_str), "tool_calls"), [pair("note", r#"{"a":1}"#)]);
}

#[test]
fn arguments_that_are_no_object_are_kept_and_never_run() {
    let call = |arguments: &str| {
        calls(&[&format!(r#"{{"index":0,"function":{{"name":"note","arguments":{arguments}}}}}"#)], "tool_calls")
    };
    assert_eq!(call(r#""{\"a\":""#), [pair("note", r#"{"INVALID_JSON":"{\"a\":"}"#)]);
    assert_eq!(call("null"), [pair("note", "{}")]);
    assert_eq!(call(r#"{"a": 1}"#), [pair("note", r#"{"a": 1}"#)], "an object in the place of its text");
    let broken = format!(r#"[{{"type":"tool_use","id":"x","name":"note","input":{}}}]"#, call(r#""[1]""#)[0].1);
    assert!(tool_calls(&broken, &Stop::ToolUse)[0].fault.is_some());
}

#[test]
fn an_answer_that_is_no_stream_is_read_as_well() {
    let mut stream = stream();
    for piece in [
        r#"{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"","#,
        r#""tool_calls":[{"id":"a","function":{"name":"note","arguments":"{}"}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":4}}"#,
    ] {
        stream.push(piece.as_bytes()).unwrap();
    }
    stream.end_body().unwrap();
    let turn = finished(stream, false).unwrap();
    assert_eq!((turn.stop, turn.usage.input, turn.usage.output), (Stop::ToolUse, 3, 4));
    assert!(turn.content.starts_with(r#"[{"type":"tool_use","id":""#), "{}", turn.content);
}

#[test]
fn tokens_that_nobody_counted_are_estimated_by_bytes() {
    for usage in ["", r#","usage":null"#, r#","usage":{"prompt_tokens":0,"completion_tokens":0}"#] {
        let last = format!(r#"{{"choices":[]{usage}}}"#);
        let turn = streamed(&[&delta(r#"{"content":"123456789"}"#), &end("stop"), &last, DONE]).unwrap();
        assert_eq!(turn.usage, Usage { input: PROMPT_BYTES as u64 / 3, output: 3, ..Usage::default() }, "{usage}");
    }
}

#[test]
fn what_stands_in_a_turn_counts_more_than_the_reason_of_its_end() {
    let stop = |reason: &str| streamed(&[&delta(r#"{"content":"x"}"#), &end(reason), DONE]).unwrap().stop;
    for reason in ["stop", "tool_calls", "eos", "end_turn", ""] {
        assert_eq!(stop(reason), Stop::EndTurn, "{reason}");
    }
    assert_eq!(stop("length"), Stop::MaxTokens);
    assert_eq!(stop("content_filter"), Stop::Refusal(String::new()));
    assert_eq!(stop("odd"), Stop::Unknown("odd".to_owned()));
    // A stop reason and an end mark can each be missing if the other one is there.
    assert_eq!(streamed(&[&delta(r#"{"content":"x"}"#), DONE]).unwrap().stop, Stop::EndTurn);
    assert_eq!(streamed(&[&delta(r#"{"content":"x"}"#), &end("stop")]).unwrap().stop, Stop::EndTurn);
    let refused = streamed(&[&delta(r#"{"refusal":"I can't."}"#), &end("stop"), DONE]).unwrap();
    assert_eq!(refused.stop, Stop::Refusal("I can't.".to_owned()));
}

#[test]
fn what_breaks_off_is_no_turn_and_its_tokens_count() {
    let cut = streamed(&[&delta(r#"{"content":"123"}"#)]).unwrap_err();
    assert!(matches!(&cut, ModelError::Transient { spent, .. } if spent.output == 1), "{cut:?}");
    for chunk in ["no json", "[1]"] {
        assert!(matches!(streamed(&[chunk]), Err(ModelError::Transient { .. })), "{chunk}");
    }
    let event = r#"{"error":{"message":"CUDA error","type":"server_error"}}"#;
    let ModelError::Transient { why, .. } = streamed(&[event]).unwrap_err() else { panic!() };
    assert!(why.contains("CUDA error"), "{why}");
    let long = r#"{"error":{"message":"the request exceeds the available context size"}}"#;
    assert!(matches!(streamed(&[long]), Err(ModelError::Rejected { status: 413, .. })));
}

#[test]
fn thinking_goes_back_beside_calls_and_never_to_the_person() {
    let call = r#"{"tool_calls":[{"index":0,"function":{"name":"note","arguments":"{}"},"extra_content":{"s":1}}]}"#;
    let thought = [delta(r#"{"reasoning_content":"hm"}"#), delta(r#"{"reasoning_content":" so"}"#)];
    let with_call = streamed(&[&thought[0], &thought[1], &delta(call), &end("tool_calls"), DONE]).unwrap().content;
    let blocks: Vec<Value> = serde_json::from_str(&with_call).unwrap();
    let id = blocks[1]["id"].as_str().unwrap();
    assert_eq!(
        blocks[0],
        json!({"type": "opaque", "by": "openai", "fields": {"reasoning_content": "hm so", "of_calls": {id: {"extra_content": {"s": 1}}}}})
    );
    let said = streamed(&[&thought[0], &delta(r#"{"content":"Hi"}"#), &end("stop"), DONE]).unwrap().content;
    assert_eq!(said, r#"[{"type":"text","text":"Hi"}]"#);
    for text in [r"<think>\nhm</think>\n\nHi", r"hm\n</think>\nHi"] {
        let turn = streamed(&[&delta(&format!(r#"{{"content":"{text}"}}"#)), &end("stop"), DONE]).unwrap();
        assert_eq!(join_text(&turn.content), "Hi", "{text}");
    }
    let quoted = streamed(&[&delta(r#"{"content":"Say <think>x</think>."}"#), &end("stop"), DONE]).unwrap();
    assert_eq!(join_text(&quoted.content), "Say <think>x</think>.");
}

#[test]
fn a_call_that_is_written_as_text_is_one_unless_others_may_have_written_it() {
    let body = format!(
        "data: {}\n\ndata: {}\n\ndata: {DONE}\n\n",
        delta(r#"{"content":"<tool_call>{\"name\":\"note\",\"arguments\":{\"a\":1}}</tool_call>"}"#),
        end("stop")
    );
    let turn = |is_tainted| {
        let mut stream = stream();
        stream.push(body.as_bytes()).unwrap();
        finished(stream, is_tainted).unwrap()
    };
    let own = turn(false);
    assert_eq!(own.stop, Stop::ToolUse);
    assert_eq!(tool_calls(&own.content, &own.stop)[0].input.get(), r#"{"a":1}"#);
    let quoted = turn(true);
    assert_eq!(quoted.stop, Stop::EndTurn);
    assert!(tool_calls(&quoted.content, &quoted.stop).is_empty() && join_text(&quoted.content).contains("<tool_call>"));
}

#[test]
fn a_small_models_call_is_read_in_a_tainted_cycle_only_where_its_form_was_bound() {
    let answered = |text: &str, is_tainted: bool, is_bound: bool| {
        let mut stream = stream();
        let content = serde_json::to_string(text).unwrap();
        stream.push(
            format!("data: {}\n\ndata: {}\n\n", delta(&format!(r#"{{"content":{content}}}"#)), end("stop")).as_bytes(),
        )?;
        stream.finish(Finishing {
            ids: CallIds::for_conversation(&Conversation::default()),
            offered: &offered(),
            reads_text: !is_tainted,
            is_small: true,
            is_bound,
            request_id: None,
        })
    };
    let calls = |is_tainted: bool, is_bound: bool| {
        let turn = answered(r#"{"tool":"note","arguments":{"text":"x"}}"#, is_tainted, is_bound).unwrap();
        tool_calls(&turn.content, &turn.stop).len()
    };
    assert_eq!([calls(false, false), calls(false, true), calls(true, true), calls(true, false)], [1, 1, 1, 0]);
    let said = answered(r#"{"say":"It is kept."}"#, true, false).unwrap();
    assert_eq!(join_text(&said.content), "It is kept.");
}

/// The result of an answer.
#[derive(Debug, PartialEq)]
enum Outcome {
    /// Words that end the turn.
    Says(&'static str),
    /// Words the answer's limit cut off.
    CutOff(&'static str),
    /// Calls: the tool and the arguments.
    Calls(&'static [(&'static str, &'static str)]),
    /// The model declined.
    Declined,
    /// The window was full.
    Full,
    /// No turn: to be retried, with these words for people.
    Waits(&'static str),
    /// No turn: a person must act.
    Person(&'static str),
    /// No turn: the conversation is too long.
    TooLong,
    /// No turn: the request was refused with this status.
    Refused(u16),
}

/// Reads an answer in pieces of one size.
fn read(body: &[u8], size: usize) -> Result<Turn, ModelError> {
    let mut stream = stream();
    for piece in body.chunks(size) {
        if stream.push(piece)? {
            break;
        }
    }
    stream.end_body()?;
    finished(stream, false)
}

#[track_caller]
fn check(name: &str, body: &[u8], wanted: &Outcome) {
    let got = read(body, body.len().max(1));
    for size in [1, 2, 7, 64] {
        assert_eq!(read(body, size), got, "{name} in pieces of {size}");
    }
    let is_right = match (wanted, &got) {
        (Outcome::Says(text), Ok(turn)) => turn.stop == Stop::EndTurn && join_text(&turn.content) == *text,
        (Outcome::CutOff(text), Ok(turn)) => turn.stop == Stop::MaxTokens && join_text(&turn.content) == *text,
        (Outcome::Calls(wanted), Ok(turn)) => {
            let calls = tool_calls(&turn.content, &turn.stop);
            let calls: Vec<_> = calls.iter().map(|call| (call.name.as_str(), call.input.get())).collect();
            turn.stop == Stop::ToolUse && calls == *wanted
        }
        (Outcome::Declined, Ok(turn)) => matches!(turn.stop, Stop::Refusal(_)),
        (Outcome::Full, Ok(turn)) => turn.stop == Stop::ContextExceeded,
        (Outcome::Waits(words), Err(ModelError::Transient { why, .. }))
        | (Outcome::Person(words), Err(ModelError::Account { why })) => why.contains(words),
        (Outcome::TooLong, Err(ModelError::Rejected { status: crate::TOO_LONG, .. })) => true,
        (Outcome::Refused(wanted), Err(ModelError::Rejected { status, .. })) => status == wanted,
        _ => false,
    };
    assert!(is_right, "{name}: {wanted:?} was wanted, {got:?} came");
}

/// Answers as servers send them, all with status 200. A new report is one line: the server, its bytes, the result.
#[test]
fn each_servers_answer_becomes_a_turn_or_the_right_error() {
    use Outcome::{Calls, CutOff, Declined, Full, Person, Refused, Says, TooLong, Waits};
    const HI: &str = r#"data: {"choices":[{"index":0,"delta":{"content":"Hi"}}]}"#;
    const STOP: &str = r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    let rows: Vec<(&str, String, Outcome)> = vec![
        // Complaints in place of a turn.
        ("a code, whole", r#"{"code":429,"message":"busy"}"#.into(), Waits("busy")),
        ("a code, as an event", "data: {\"code\":429,\"message\":\"busy\"}\n\n".into(), Waits("busy")),
        ("a code, as an event, and an end", "data: {\"code\":\"429\",\"msg\":\"busy\"}\n\ndata: [DONE]\n\n".into(), Waits("busy")),
        ("object error, whole", r#"{"object":"error","message":"down","code":503}"#.into(), Waits("down")),
        ("object error, as an event", "data: {\"object\":\"error\",\"message\":\"down\"}\n\n".into(), Waits("down")),
        ("an error field of llama.cpp", "error: {\"code\":400,\"message\":\"the request exceeds the available context size\"}\n\n".into(), TooLong),
        ("LM Studio's event", "event: error\ndata: {\"error\":{\"message\":\"Context size has been exceeded.\"}}\n\n".into(), TooLong),
        ("words in an event", "event: error\ndata: Internal Server Error\n\n".into(), Waits("Internal Server Error")),
        ("OpenRouter in mid-stream", format!("{HI}\n\ndata: {{\"error\":{{\"code\":502,\"message\":\"Provider disconnected\"}},\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"\"}},\"finish_reason\":\"error\"}}]}}\n\n"), Waits("Provider disconnected")),
        ("a choice's error", "data: {\"choices\":[{\"index\":0,\"error\":{\"code\":502,\"message\":\"died\"},\"finish_reason\":\"error\"}]}\n\n".into(), Waits("died")),
        ("a reason alone", format!("{HI}\n\n{}\n\n", STOP.replace("stop", "error")), Waits("error")),
        ("Gemini's own fault", format!("{}\n\ndata: [DONE]\n\n", STOP.replace("stop", "malformed_function_call")), Waits("malformed")),
        ("vLLM gives up", format!("{HI}\n\n{}\n\ndata: [DONE]\n\n", STOP.replace("stop", "abort")), Waits("abort")),
        ("a list of one", r#"[{"error":{"code":429,"message":"Resource exhausted","status":"RESOURCE_EXHAUSTED"}}]"#.into(), Waits("exhausted")),
        ("a key, whole", r#"{"error":{"code":401,"message":"Invalid token"}}"#.into(), Person("OPENAI_API_KEY")),
        ("MiniMax", r#"{"choices":null,"base_resp":{"status_code":1004,"status_msg":"login fail: invalid api key"}}"#.into(), Person("OPENAI_API_KEY")),
        ("no money", "data: {\"error\":{\"message\":\"Insufficient credits\",\"code\":402}}\n\n".into(), Person("quota")),
        ("JSON in a stream's type", r#"{"error":{"message":"no such parameter","type":"invalid_request_error","code":400}}"#.into(), Refused(400)),
        ("an unknown model", r#"{"error":{"message":"model 'x' not found","code":404}}"#.into(), Refused(404)),
        ("a gateway's detail", r#"{"detail":"upstream timed out"}"#.into(), Waits("timed out")),
        ("choices empty beside it", r#"{"choices":[],"code":500,"message":"oops"}"#.into(), Waits("oops")),
        ("a line between events", format!("{HI}\n\n{{\"error\":{{\"message\":\"died\",\"code\":500}}}}\n\n"), Waits("died")),
        // Answers that can't be understood.
        ("an end alone", "data: [DONE]\n\n".into(), Waits("was empty")),
        ("no byte", String::new(), Waits("was empty")),
        ("an empty object", "{}".into(), Waits("was empty")),
        ("comments alone", ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n".into(), Waits("was empty")),
        ("empty choices alone", "data: {\"choices\":[]}\n\ndata: [DONE]\n\n".into(), Waits("was empty")),
        ("a role alone", "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\ndata: [DONE]\n\n".into(), Waits("cut off")),
        ("a page", "<html><title>502</title></html>".into(), Waits("chat completion")),
        ("another API", r#"{"model":"m","message":{"role":"assistant","content":"Hi"},"done":true}"#.into(), Waits("was empty")),
        ("cut off", format!("{HI}\n\n"), Waits("cut off")),
        ("cut off, empty reasons", format!("{}\n\n", HI.replace("}}]", "},\"finish_reason\":\"\"}]")), Waits("cut off")),
        ("cut off within an event", format!("{HI}\n\n{}", STOP.split_at(40).0), Waits("cut off")),
        ("packed, and damaged", "\u{1f}garbage garbage".into(), Waits("damaged")),
        // Turns, in any form.
        ("no [DONE]", format!("{HI}\n\n{STOP}\n\n"), Says("Hi")),
        ("no reason", format!("{HI}\n\ndata: [DONE]\n\n"), Says("Hi")),
        ("the count alone ends it", format!("{HI}\n\ndata: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":3,\"completion_tokens\":1}}}}\n\n"), Says("Hi")),
        ("no last line end", format!("{HI}\n\n{STOP}"), Says("Hi")),
        ("CR LF and a BOM", format!("\u{feff}{HI}\r\n\r\n{STOP}\r\n\r\n"), Says("Hi")),
        ("lines that nothing parts", format!("{HI}\n{STOP}\ndata: [DONE]\n"), Says("Hi")),
        ("keep-alives as data", format!("data: : keepalive\n\n{HI}\n\ndata: ping\n\ndata: null\n\n{STOP}\n\n"), Says("Hi")),
        ("keep-alives as objects", format!("data: {{}}\n\n{HI}\n\ndata: {{\"type\":\"ping\"}}\n\n{STOP}\n\n"), Says("Hi")),
        ("Azure's filter first", format!("data: {{\"choices\":[],\"prompt_filter_results\":[{{\"content_filter_results\":{{}}}}]}}\n\n{HI}\n\n{STOP}\n\n"), Says("Hi")),
        ("an error that is none", format!("{}\n\n{STOP}\n\n", HI.replace("{\"choices\"", "{\"error\":null,\"code\":0,\"choices\"")), Says("Hi")),
        ("a stream in the type of JSON", format!("\n\n{HI}\n\n{STOP}\n\ndata: [DONE]\n\n"), Says("Hi")),
        ("whole, no reason", r#"{"choices":[{"message":{"content":"Hi"}}]}"#.into(), Says("Hi")),
        ("whole, base_resp of success", r#"{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}],"base_resp":{"status_code":0,"status_msg":""}}"#.into(), Says("Hi")),
        ("chunks without a stream", "{\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n".into(), Says("Hi")),
        ("choices numbered from 1", format!("{}\n\n{}\n\n", HI.replace("\"index\":0", "\"index\":1"), STOP.replace("\"index\":0", "\"index\":1")), Says("Hi")),
        ("a message in a stream", "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"},\"message\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n".into(), Says("Hi")),
        ("all of it once more at the end", format!("{HI}\n\ndata: {{\"choices\":[{{\"message\":{{\"content\":\"Hi\"}},\"finish_reason\":\"stop\"}}]}}\n\n"), Says("Hi")),
        ("fields of odd kinds", "data: {\"id\":7,\"usage\":\"none\",\"choices\":[{\"index\":\"0\",\"logprobs\":[],\"delta\":{\"content\":\"Hi\",\"refusal\":false,\"tool_calls\":null,\"reasoning\":null},\"finish_reason\":{}}]}\n\ndata: [DONE]\n\n".into(), Says("Hi")),
        ("a key twice", "data: {\"choices\":[{\"delta\":{\"content\":\"H\",\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n".into(), Says("Hi")),
        ("parts", r#"{"choices":[{"message":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"reasoning","text":"hm"},{"type":"text","text":"Hi"},{"type":"reference","reference_ids":[1]}]},"finish_reason":"stop"}]}"#.into(), Says("Hi")),
        ("letters split in pieces", "data: {\"choices\":[{\"delta\":{\"content\":\"Grüße 🌍\"},\"finish_reason\":\"stop\"}]}\n\n".into(), Says("Grüße 🌍")),
        ("thinking, and then words", "data: {\"choices\":[{\"delta\":{\"content\":null,\"reasoning_content\":\"hm\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n".into(), Says("Hi")),
        ("nothing but thinking", "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"},\"finish_reason\":\"stop\"}]}\n\n".into(), Says("")),
        ("cut off in its thinking", "data: {\"choices\":[{\"delta\":{\"content\":\"<think>hm\"},\"finish_reason\":\"length\"}]}\n\n".into(), CutOff("")),
        ("Gemini's limit", format!("{HI}\n\n{}\n\n", STOP.replace("stop", "MAX_TOKENS")), CutOff("Hi")),
        ("z.ai's window", format!("{HI}\n\n{}\n\n", STOP.replace("stop", "model_context_window_exceeded")), Full),
        ("a filter", STOP.replace("stop", "content_filter") + "\n\n", Declined),
        ("Zhipu's filter", STOP.replace("stop", "sensitive") + "\n\n", Declined),
        // Calls.
        ("no index, two events", "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":\"note\",\"arguments\":\"{\\\"n\\\":1}\"}}]}}]}\n\ndata: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"b\",\"function\":{\"name\":\"note\",\"arguments\":\"{\\\"n\\\":2}\"}}]},\"finish_reason\":\"stop\"}]}\n\n".into(), Calls(&[("note", r#"{"n":1}"#), ("note", r#"{"n":2}"#)])),
        ("an empty object first", "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"note\",\"arguments\":\"{}\"}}]}}]}\n\ndata: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"n\\\":1}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\n".into(), Calls(&[("note", r#"{"n":1}"#)])),
        ("one call, no list", r#"{"choices":[{"message":{"tool_calls":{"id":7,"function":{"name":" note ","arguments":{"n":1}}}},"finish_reason":"tool_calls"}]}"#.into(), Calls(&[("note", r#"{"n":1}"#)])),
        ("the old form", "data: {\"choices\":[{\"delta\":{\"function_call\":{\"name\":\"note\",\"arguments\":\"{\\\"n\\\"\"}}}]}\n\ndata: {\"choices\":[{\"delta\":{\"function_call\":{\"arguments\":\":1}\"}},\"finish_reason\":\"function_call\"}]}\n\n".into(), Calls(&[("note", r#"{"n":1}"#)])),
        ("no arguments, in every form", r#"{"choices":[{"message":{"tool_calls":[{"function":{"name":"look","arguments":""}},{"id":"b","function":{"name":"note","arguments":"null"}},{"id":"c","function":{"name":"look","arguments":[]}},null]},"finish_reason":"tool_calls"}]}"#.into(), Calls(&[("look", "{}"), ("note", "{}"), ("look", "{}")])),
    ];
    for (name, body, wanted) in &rows {
        check(name, body.as_bytes(), wanted);
    }
}

#[test]
fn tokens_are_counted_wherever_a_server_tells_of_them() {
    for (name, usage) in [
        ("at the top", r#""usage":{"prompt_tokens":10,"completion_tokens":4}"#),
        ("as floats", r#""usage":{"prompt_tokens":10.0,"completion_tokens":4.0}"#),
        ("Responses' names", r#""usage":{"input_tokens":10,"output_tokens":4}"#),
        ("Groq", r#""x_groq":{"usage":{"prompt_tokens":10,"completion_tokens":4}}"#),
    ] {
        let last = format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"stop"}}],{usage}}}"#);
        let turn = streamed(&[&delta(r#"{"content":"Hi"}"#), &last, DONE]).unwrap();
        assert_eq!((turn.usage.input, turn.usage.output), (10, 4), "{name}");
    }
    let in_choice =
        r#"{"choices":[{"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":10,"completion_tokens":4}}]}"#;
    assert_eq!(streamed(&[&delta(r#"{"content":"Hi"}"#), in_choice]).unwrap().usage.input, 10);
    let absurd = r#"{"choices":[],"usage":{"prompt_tokens":1e300,"completion_tokens":-4,"prompt_tokens_details":{"cached_tokens":18446744073709551615}}}"#;
    let usage = streamed(&[&delta(r#"{"content":"Hi"}"#), absurd, DONE]).unwrap().usage;
    assert!(usage.input + usage.cache_read < u64::MAX / 1_000 && usage.output == 0, "{usage:?}");
}

proptest! {
    #[test]
    fn any_bytes_give_the_same_result_in_any_pieces(bytes in prop::collection::vec(prop::num::u8::ANY, 0..300), size in 1..40_usize) {
        prop_assert_eq!(read(&bytes, size), read(&bytes, 10_000));
    }

    #[test]
    fn any_events_in_any_pieces_come_to_the_same(
        events in prop::collection::vec((0..12_usize, "(\n\n|\r\n\r\n|\n)", "[a-zé\"\\\\{}]{0,6}"), 0..12), size in 1..60_usize
    ) {
        let body: String = events.iter().map(|(kind, end, text)| {
            let text = Value::from(text.as_str()).to_string();
            let event = match kind {
                0..=3 => format!(r#"data: {{"choices":[{{"delta":{{"content":{text}}}}}]}}"#),
                4 => format!(r#"data: {{"choices":[{{"delta":{{"tool_calls":[{{"function":{{"name":{text},"arguments":{text}}}}}]}}}}]}}"#),
                5 => r#"data: {"choices":[{"delta":{},"finish_reason":"stop"}]}"#.to_owned(),
                6 => "data: [DONE]".to_owned(),
                7 => ": comment".to_owned(),
                8 => format!("data: {text}"),
                9 => format!(r#"{{"message":{text}}}"#),
                10 => format!("event: {text}"),
                _ => String::new(),
            };
            event + end
        }).collect();
        let whole = read(body.as_bytes(), 10_000);
        prop_assert_eq!(&read(body.as_bytes(), size), &whole);
        if let Ok(turn) = whole {
            prop_assert!(serde_json::from_str::<Value>(&turn.content).is_ok());
        }
    }
}
