//! Tests the stream with a recorded turn in every kind of piece, and every way to break off.

use proptest::prelude::*;

use super::*;

fn event(data: &str) -> String {
    let kind = serde_json::from_str::<serde_json::Value>(data).unwrap()["type"].as_str().unwrap().to_owned();
    format!("event: {kind}\ndata: {data}\n\n")
}

fn events(data: &[&str]) -> String {
    data.iter().map(|data| event(data)).collect()
}

/// Thinking, text in two scripts, two interleaved calls, a block of an unknown kind.
const RICH: &[&str] = &[
    r#"{"type":"message_start","message":{"id":"msg_1","role":"assistant","content":[],"usage":{"input_tokens":12,"cache_creation_input_tokens":30,"cache_read_input_tokens":400,"output_tokens":1}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
    r#"{"type":"ping"}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQB+/="}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
    r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Grüße, "}}"#,
    r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"世界 🌍\n\ndata: x"}}"#,
    r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"t2","name":"note","input":{}}}"#,
    r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t1","name":"plan","input":{}}}"#,
    r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"z\":1.0,"}}"#,
    r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
    r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":" \"a\":\"é\"}"}}"#,
    r#"{"type":"content_block_start","index":4,"content_block":{"type":"novelty","deep":{"b":1,"a":[2, 3]}}}"#,
    r#"{"type":"never_heard_of","index":"odd"}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":77}}"#,
    r#"{"type":"message_stop"}"#,
];

const RICH_CONTENT: &str = concat!(
    r#"[{"type":"thinking","thinking":"","signature":"EqQB+/="},{"type":"text","text":"Grüße, 世界 🌍\n\ndata: x"},"#,
    r#"{"type":"tool_use","id":"t1","name":"plan","input":{"z":1.0, "a":"é"}},"#,
    r#"{"type":"tool_use","id":"t2","name":"note","input":{}},{"type":"novelty","deep":{"b":1,"a":[2, 3]}}]"#,
);

fn assemble(pieces: &[&[u8]]) -> Result<Turn, ModelError> {
    let mut stream = TurnStream::default();
    for piece in pieces {
        if stream.push(piece)? {
            break;
        }
    }
    stream.end_body()?;
    stream.finish(None)
}

fn turn_of(data: &[&str]) -> Turn {
    assemble(&[events(data).as_bytes()]).unwrap()
}

fn spent(error: &ModelError) -> Usage {
    match error {
        ModelError::Transient { spent, .. } => *spent,
        other => panic!("not transient: {other:?}"),
    }
}

#[test]
fn a_rich_turn_is_assembled_in_the_order_of_its_indexes() {
    let turn = turn_of(RICH);
    assert_eq!(turn.content, RICH_CONTENT);
    assert_eq!(turn.stop, Stop::ToolUse);
    assert_eq!(turn.usage, Usage { input: 12, output: 77, cache_read: 400, cache_write: 30 });
}

#[test]
fn tokens_cached_for_an_hour_are_counted_separately() {
    let start = |detail: &str| {
        let usage = format!(r#"{{"input_tokens":1,"cache_creation_input_tokens":30,"output_tokens":1{detail}}}"#);
        let mut stream = TurnStream::default();
        stream
            .push(events(&[&format!(r#"{{"type":"message_start","message":{{"usage":{usage}}}}}"#)]).as_bytes())
            .unwrap();
        (stream.hour_tokens(), stream.usage().cache_write)
    };
    let detail = r#","cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20}"#;
    assert_eq!(start(detail), (20, 30));
    assert_eq!((start(""), start(r#","cache_creation":null"#)), ((0, 30), (0, 30)));
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same_turn(cuts in prop::collection::vec(0.0..1.0_f64, 0..40), line_end in 0..3_usize) {
        let text = events(RICH).replace('\n', ["\n", "\r\n", "\r"][line_end]);
        let bytes = text.as_bytes();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| (cut * bytes.len() as f64) as usize).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|ends| &bytes[ends[0]..ends[1]]).collect();
        prop_assert_eq!(assemble(&pieces).unwrap().content, RICH_CONTENT);
    }

    #[test]
    fn text_deltas_come_out_as_they_went_in(parts in prop::collection::vec("\\PC{0,12}|[\"\\\\\n\r\t]{1,3}", 1..8)) {
        let mut data = vec![r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"."}}"#.to_owned()];
        for part in &parts {
            data.push(serde_json::json!({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":part}}).to_string());
        }
        data.push(r#"{"type":"message_stop"}"#.to_owned());
        let turn = turn_of(&data.iter().map(String::as_str).collect::<Vec<_>>());
        prop_assert_eq!(crate::content::join_text(&turn.content), format!(".{}", parts.concat()));
    }

    #[test]
    fn damaged_bytes_never_panic(text in "(data: |event|[{}\":,a0\n\r]|\\PC){0,60}", at in 0..1000_usize) {
        let mut bytes = events(RICH).into_bytes();
        let at = at % bytes.len();
        bytes.splice(at..at, text.into_bytes());
        match assemble(&[&bytes]) {
            Ok(turn) => prop_assert!(serde_json::from_str::<serde_json::Value>(&turn.content).is_ok()),
            Err(ModelError::Transient { .. }) => {}
            Err(other) => prop_assert!(false, "{other:?}"),
        }
    }
}

#[test]
fn a_stream_cut_off_anywhere_is_transient_and_counts_its_tokens() {
    let text = events(RICH);
    // Without the empty line after the event.
    let first_event = event(RICH[0]).len() - 2;
    let reason = text.find(r#"{"type":"message_delta""#).unwrap() + RICH[15].len();
    for end in 0..reason {
        let error = assemble(&[&text.as_bytes()[..end]]).unwrap_err();
        let input = if end < first_event { 0 } else { 12 };
        assert_eq!(spent(&error).input, input, "cut at {end}");
    }
    for end in reason..text.len() {
        assert_eq!(assemble(&[&text.as_bytes()[..end]]).unwrap().content, RICH_CONTENT, "complete at {end}");
    }
}

#[test]
fn a_partial_answer_is_counted_by_its_length_until_the_server_counts_it() {
    let mut stream = TurnStream::default();
    assert_eq!(stream.usage(), Usage::default());
    let text = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"0123456789"}}"#;
    stream.push_event(r#"{"type":"message_start","message":{"usage":{"input_tokens":12,"output_tokens":1}}}"#).unwrap();
    assert_eq!(stream.usage(), Usage { input: 12, output: 1, ..Usage::default() });
    stream.push_event(r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#).unwrap();
    for n in 1..=100 {
        stream.push_event(text).unwrap();
        let output = stream.usage().output;
        assert!((n * 5..n * 5 + 10).contains(&output), "{output} of {n}");
    }
    stream
        .push_event(r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":300}}"#)
        .unwrap();
    stream.push_event(r#"{"type":"message_stop"}"#).unwrap();
    assert_eq!(stream.finish(None).unwrap().usage.output, 300, "the server's own count at the end");
}

#[test]
fn an_error_event_ends_the_turn_by_its_kind() {
    let start = RICH[0];
    for kind in ["overloaded_error", "api_error", "rate_limit_error", "timeout_error", "some_new_error"] {
        let data = format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"Busy"}}}}"#);
        let error = assemble(&[events(&[start, &data]).as_bytes()]).unwrap_err();
        assert_eq!(spent(&error).cache_read, 400);
        assert!(error.to_string().contains("Busy"), "{error}");
    }
    let data = r#"{"type":"error","error":{"type":"billing_error","message":"Pay"}}"#;
    assert!(matches!(assemble(&[events(&[start, data]).as_bytes()]), Err(ModelError::Account { .. })));
    let data = r#"{"type":"error","error":{"type":"invalid_request_error","message":"Bad"}}"#;
    assert!(matches!(assemble(&[events(&[start, data]).as_bytes()]), Err(ModelError::Rejected { status: 400, .. })));
}

#[test]
fn a_malformed_event_stream_is_transient() {
    for data in [
        "data: {\n\n",
        "data: {\"type\":\"content_block_delta\",\"index\":7,\"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}}\n\n",
        "data: {\"type\":\"content_block_start\",\"index\":0}\n\n",
        "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":[]}\n\n",
    ] {
        assert!(matches!(assemble(&[data.as_bytes()]), Err(ModelError::Transient { .. })), "{data}");
    }
}

#[test]
fn an_endless_answer_is_given_up() {
    let mut stream = TurnStream::default();
    let piece = format!(": {}\n", "x".repeat(1024 * 1024));
    let error = (0..64).find_map(|_| stream.push(piece.as_bytes()).err()).unwrap();
    assert!(error.to_string().contains("longer"), "{error}");
}

#[test]
fn every_stop_reason_is_mapped() {
    let text = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"x"}}"#;
    let stop_of = |delta: &str| {
        turn_of(&[text, &format!(r#"{{"type":"message_delta","delta":{delta}}}"#), r#"{"type":"message_stop"}"#]).stop
    };
    for (reason, stop) in [
        ("end_turn", Stop::EndTurn),
        ("tool_use", Stop::ToolUse),
        ("max_tokens", Stop::MaxTokens),
        ("model_context_window_exceeded", Stop::ContextExceeded),
        ("stop_sequence", Stop::StopSequence),
        ("pause_turn", Stop::PauseTurn),
        ("brand_new", Stop::Unknown("brand_new".into())),
        ("stop", Stop::EndTurn),
        ("length", Stop::MaxTokens),
        ("tool_calls", Stop::ToolUse),
        ("content_filter", Stop::Refusal(String::new())),
        ("refusal", Stop::Refusal(String::new())),
    ] {
        assert_eq!(stop_of(&format!(r#"{{"stop_reason":"{reason}","stop_details":null}}"#)), stop);
    }
    assert_eq!(stop_of("{}"), Stop::Unknown("none given".into()));
    assert_eq!(
        stop_of(
            r#"{"stop_reason":"refusal","stop_details":{"type":"refusal","category":"cyber","explanation":"Not this."}}"#
        ),
        Stop::Refusal("cyber: Not this.".into())
    );
}

#[test]
fn an_empty_text_block_is_kept_only_before_signed_thinking() {
    let text = |index: u8| {
        format!(r#"{{"type":"content_block_start","index":{index},"content_block":{{"type":"text","text":""}}}}"#)
    };
    let thinking =
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"thinking","thinking":"","signature":"s"}}"#;
    let turn = turn_of(&[&text(0), thinking, &text(2), r#"{"type":"message_stop"}"#]);
    assert_eq!(turn.content, r#"[{"type":"text","text":""},{"type":"thinking","thinking":"","signature":"s"}]"#);
}

/// Answers as servers send them, all with status 200. Each reported answer is one row: its name, its bytes, and the expected result (the
/// content of a turn, or the action and a part of the error's text).
#[test]
fn each_servers_answer_becomes_a_turn_or_the_right_error() {
    const START: &str = "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m1\",\"usage\":{\"input_tokens\":5,\"output_tokens\":1}}}\n\n";
    const HI: &str = "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n";
    const END: &str = "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n";
    const STOP: &str = "data: {\"type\":\"message_stop\"}\n\n";
    const SAID: &str = r#"[{"type":"text","text":"Hi"}]"#;
    type Turned = Result<&'static str, (&'static str, &'static str)>;
    let rows: Vec<(&str, String, Turned)> = vec![
        // Complaints in place of a turn.
        ("overload in mid-stream", format!("{START}{HI}data: {{\"type\":\"error\",\"error\":{{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}}}\n\n"), Err(("wait", "overloaded_error"))),
        ("overload at once", "event: error\ndata: {\"type\":\"error\",\"error\":{\"details\":null,\"type\":\"overloaded_error\",\"message\":\"Overloaded\"},\"request_id\":\"r\"}\n\n".into(), Err(("wait", "Overloaded"))),
        ("an error, whole", r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}"#.into(), Err(("wait", "slow down"))),
        ("a code, whole", r#"{"code":429,"message":"busy"}"#.into(), Err(("wait", "busy"))),
        ("a code, as an event", "data: {\"code\":429,\"message\":\"busy\"}\n\n".into(), Err(("wait", "busy"))),
        ("another API's error", "data: {\"error\":{\"message\":\"died\",\"code\":500}}\n\n".into(), Err(("wait", "died"))),
        ("an error as text", r#"{"type":"error","error":"no key"}"#.into(), Err(("wait", "no key"))),
        ("too long, in the stream", "data: {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: 9 tokens > 8 maximum\"}}\n\n".into(), Err(("too long", "prompt"))),
        ("too large", r#"{"type":"error","error":{"type":"request_too_large","message":"x"}}"#.into(), Err(("too long", "x"))),
        ("a key", r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#.into(), Err(("person", "invalid x-api-key"))),
        ("a reason alone", format!("{START}{HI}{}{STOP}", END.replace("end_turn", "error")), Err(("wait", "error"))),
        // Answers that can't be understood.
        ("no byte", String::new(), Err(("wait", "cut off"))),
        ("a beginning and an end", format!("{START}{STOP}"), Err(("wait", "was empty"))),
        ("an end alone", "data: [DONE]\n\n".into(), Err(("wait", "was empty"))),
        ("a page", "<html>".into(), Err(("wait", "can't be read"))),
        ("an empty object", "{}".into(), Err(("wait", "cut off"))),
        ("cut off", format!("{START}{HI}"), Err(("wait", "cut off"))),
        ("pings alone", "data: {\"type\":\"ping\"}\n\n".into(), Err(("wait", "cut off"))),
        // Turns, in any form.
        ("as documented", format!("{START}{HI}{END}{STOP}"), Ok(SAID)),
        ("no message_stop", format!("{START}{HI}{END}"), Ok(SAID)),
        ("[DONE] in its place", format!("{START}{HI}{END}data: [DONE]\n\n"), Ok(SAID)),
        ("no message_start", format!("{HI}{END}{STOP}"), Ok(SAID)),
        ("message_start twice", format!("{START}{START}{HI}{END}{STOP}"), Ok(SAID)),
        ("begun anew", format!("{START}{HI}{}{HI}{END}{STOP}", START.replace("m1", "m2")), Ok(SAID)),
        ("no beginning of a block", format!("{START}data: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"Hi\"}}}}\n\n{END}"), Ok(SAID)),
        ("one index for two blocks", format!("{START}{HI}{}{END}{STOP}", "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"n\",\"input\":{\"a\":1}}}\n\n"), Ok(r#"[{"type":"text","text":"Hi"},{"type":"tool_use","id":"t","name":"n","input":{"a":1}}]"#)),
        ("keep-alives", format!(": hi\n\n{START}data: : keepalive\n\n{HI}event: ping\ndata: {{}}\n\ndata: ping\n\n{END}"), Ok(SAID)),
        ("odd usage", format!("{START}{HI}{}", END.replace("{\"output_tokens\":2}", "[\"none\"]")), Ok(SAID)),
        ("whole", r#"{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","usage":{"input_tokens":5,"output_tokens":2}}"#.into(), Ok(SAID)),
        ("CR LF and a BOM", format!("\u{feff}{}", format!("{START}{HI}{END}{STOP}").replace('\n', "\r\n")), Ok(SAID)),
        ("no empty lines between events", format!("{START}{HI}{END}{STOP}").replace("\n\n", "\n"), Ok(SAID)),
    ];
    for (name, body, wanted) in &rows {
        let read = |size: usize| assemble(&body.as_bytes().chunks(size).collect::<Vec<_>>());
        let got = read(body.len().max(1));
        for size in [1, 2, 7, 64] {
            assert_eq!(read(size), got, "{name} in pieces of {size}");
        }
        let is_right = match (wanted, &got) {
            (Ok(content), Ok(turn)) => turn.content == *content,
            (Err(("wait", words)), Err(ModelError::Transient { why, .. }))
            | (Err(("person", words)), Err(ModelError::Account { why }))
            | (Err(("too long", words)), Err(ModelError::Rejected { status: crate::TOO_LONG, why })) => {
                why.contains(words)
            }
            _ => false,
        };
        assert!(is_right, "{name}: {wanted:?} was wanted, {got:?} came");
    }
}

#[test]
fn a_later_usage_without_prompt_tokens_keeps_the_first_count() {
    let start = r#"{"type":"message_start","message":{"usage":{"input_tokens":12,"cache_read_input_tokens":3.0}}}"#;
    let text = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"x"}}"#;
    let end =
        |usage: &str| format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"end_turn"}},"usage":{usage}}}"#);
    for usage in [
        r#"{"input_tokens":0,"output_tokens":2}"#,
        r#"{"input_tokens":null,"output_tokens":2,"cache_read_input_tokens":"?"}"#,
    ] {
        let turn = turn_of(&[start, text, &end(usage)]);
        assert_eq!(turn.usage, Usage { input: 12, output: 2, cache_read: 3, cache_write: 0 }, "{usage}");
    }
    let absurd = turn_of(&[start, text, &end(r#"{"input_tokens":1e300,"output_tokens":-1}"#)]).usage;
    assert!(absurd.input < u64::MAX / 1_000 && absurd.output < 10, "{absurd:?}");
}

proptest! {
    #[test]
    fn any_bytes_give_the_same_result_in_any_pieces(bytes in prop::collection::vec(prop::num::u8::ANY, 0..300), size in 1..40_usize) {
        let read = |size: usize| assemble(&bytes.chunks(size).collect::<Vec<_>>());
        prop_assert_eq!(read(size), read(10_000));
    }
}
