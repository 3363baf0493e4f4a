use super::*;
use crate::model::{
    Conversation,
    content::{text_of, tool_calls},
};

const PROMPT_BYTES: usize = 300;

fn offered() -> Vec<String> {
    ["note", "look"].map(str::to_owned).to_vec()
}

fn finished(stream: ChatStream, is_tainted: bool) -> Result<Turn, ModelError> {
    stream.finish(Finishing {
        ids: CallIds::of(&Conversation::default()),
        offered: &offered(),
        reads_text: !is_tainted,
        is_small: false,
        is_bound: false,
        request_id: None,
    })
}

fn stream() -> ChatStream {
    ChatStream::new("server".to_owned(), PROMPT_BYTES)
}

/// A stream of these chunks.
fn streamed(chunks: &[&str]) -> Result<Turn, ModelError> {
    let body: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    let mut streams = [1, 7, body.len().max(1)].map(|size| {
        let mut stream = stream();
        for piece in body.as_bytes().chunks(size) {
            stream.push(piece)?;
        }
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

/// Calls by these pieces, as names and arguments.
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
        stream.push_whole(piece.as_bytes()).unwrap();
    }
    stream.end_whole().unwrap();
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
    // Neither a reason nor an end mark is needed beside the other.
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
        assert_eq!(text_of(&turn.content), "Hi", "{text}");
    }
    let quoted = streamed(&[&delta(r#"{"content":"Say <think>x</think>."}"#), &end("stop"), DONE]).unwrap();
    assert_eq!(text_of(&quoted.content), "Say <think>x</think>.");
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
    assert!(tool_calls(&quoted.content, &quoted.stop).is_empty() && text_of(&quoted.content).contains("<tool_call>"));
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
            ids: CallIds::of(&Conversation::default()),
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
    assert_eq!(text_of(&said.content), "It is kept.");
}
