//! Complaints as servers send them. A new report is one line: the server, its bytes, the meaning.

use super::*;

/// The part of a complaint the caller acts on.
#[derive(Debug, PartialEq)]
enum Meaning {
    TooLong,
    Busy,
    Key,
    Money,
    Miscalled,
    Other,
}

fn meaning(complaint: &Complaint) -> Meaning {
    if complaint.is_too_long() {
        Meaning::TooLong
    } else if complaint.is_of_key() {
        Meaning::Key
    } else if complaint.is_of_money() {
        Meaning::Money
    } else if complaint.is_busy() {
        Meaning::Busy
    } else if complaint.is_miscalled() {
        Meaning::Miscalled
    } else {
        Meaning::Other
    }
}

#[test]
fn each_servers_complaint_is_understood() {
    use Meaning::{Busy, Key, Miscalled, Money, Other, TooLong};
    for (server, body, wanted) in [
        (
            "Claude",
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 207791 tokens > 200000 maximum"},"request_id":"r"}"#,
            TooLong,
        ),
        (
            "Claude",
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 195000 + 20000 > 200000, decrease input length or `max_tokens` and try again"}}"#,
            TooLong,
        ),
        (
            "Claude",
            r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
            TooLong,
        ),
        ("Bedrock", r#"{"message":"Input is too long for requested model."}"#, TooLong),
        ("Bedrock", r#"{"message":"Too many tokens, please wait before trying again."}"#, Busy),
        ("Vertex", r#"[{"error":{"code":400,"message":"Prompt is too long","status":"INVALID_ARGUMENT"}}]"#, TooLong),
        (
            "OpenAI",
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 8312 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
            TooLong,
        ),
        (
            "OpenAI",
            r#"{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","code":null}}"#,
            TooLong,
        ),
        (
            "OpenAI",
            r#"{"error":{"message":"Request too large for gpt-4o in organization org on tokens per min (TPM): Limit 30000, Requested 35000. The input or output tokens must be reduced in order to run successfully.","type":"tokens","code":"rate_limit_exceeded"}}"#,
            TooLong,
        ),
        (
            "OpenAI",
            r#"{"error":{"message":"Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 1.5s.","type":"tokens","code":"rate_limit_exceeded"}}"#,
            Busy,
        ),
        (
            "OpenAI",
            r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}"#,
            Money,
        ),
        (
            "OpenAI",
            r#"{"error":{"message":"Incorrect API key provided: sk-x.","type":"invalid_request_error","code":"invalid_api_key"}}"#,
            Key,
        ),
        (
            "vLLM",
            r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens","type":"BadRequestError","code":400}"#,
            TooLong,
        ),
        (
            "vLLM",
            r#"{"error":{"message":"You passed 99073 input tokens and requested 32000 output tokens. However, the model's context length is only 131072 tokens. (parameter=input_tokens, value=99073)","code":400}}"#,
            TooLong,
        ),
        (
            "SGLang",
            r#"{"object":"error","message":"The input (40000 tokens) is longer than the model's context length (32768 tokens).","type":"BadRequestError","code":400}"#,
            TooLong,
        ),
        (
            "llama.cpp",
            r#"{"error":{"code":400,"message":"request (7530 tokens) exceeds the available context size (4096 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":7530,"n_ctx":4096}}"#,
            TooLong,
        ),
        ("llama.cpp", r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#, Busy),
        (
            "LM Studio",
            r#"{"error":"Trying to keep the first 15857 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}"#,
            TooLong,
        ),
        (
            "LM Studio",
            r#"{"error":"The number of tokens to keep from the initial prompt is greater than the context length."}"#,
            TooLong,
        ),
        ("LM Studio, MLX", r#"{"error":{"message":"Context size has been exceeded."}}"#, TooLong),
        (
            "Ollama",
            r#"{"error":{"message":"prompt too long; exceeded max context length by 4 tokens","type":"api_error"}}"#,
            TooLong,
        ),
        (
            "Ollama",
            r#"{"error":{"message":"error parsing tool call: raw='{\"a\":', err=unexpected end of JSON input","type":"api_error"}}"#,
            Miscalled,
        ),
        (
            "OpenRouter",
            r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"This endpoint's maximum context length is 262144 tokens. However, you requested about 284283 tokens.\"}}","provider_name":"X"}}}"#,
            TooLong,
        ),
        (
            "OpenRouter",
            r#"{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"x/y:free is temporarily rate-limited upstream. Please retry shortly."}}}"#,
            Busy,
        ),
        ("OpenRouter", r#"{"error":{"message":"No auth credentials found","code":401}}"#, Key),
        ("OpenRouter", r#"{"error":{"message":"Insufficient credits. Add more","code":402}}"#, Money),
        (
            "Groq",
            r#"{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
            TooLong,
        ),
        (
            "Groq",
            r#"{"error":{"message":"Request too large for model `m` in organization `o` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 7000, please reduce your message size and try again.","type":"tokens","code":"rate_limit_exceeded"}}"#,
            TooLong,
        ),
        (
            "Groq",
            r#"{"error":{"message":"Failed to call a function. Please adjust your prompt.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"invalid api key, prompt is too long"}}"#,
            Miscalled,
        ),
        (
            "Gemini",
            r#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}]"#,
            Key,
        ),
        (
            "Gemini",
            r#"[{"error":{"code":400,"message":"The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]"#,
            TooLong,
        ),
        (
            "Gemini",
            r#"[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details. Please retry in 26.1s.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"26s"}]}}]"#,
            Busy,
        ),
        (
            "Gemini",
            r#"{"error":{"message":"{\n  \"error\": {\n    \"code\": 429,\n    \"message\": \"Resource has been exhausted (e.g. check quota).\",\n    \"status\": \"RESOURCE_EXHAUSTED\"\n  }\n}\n","code":429,"status":"Too Many Requests"}}"#,
            Busy,
        ),
        (
            "Mistral",
            r#"{"object":"error","message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_error","code":3051}"#,
            TooLong,
        ),
        ("Mistral", r#"{"message":"Unauthorized","request_id":"x"}"#, Key),
        (
            "xAI",
            r#"{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}"#,
            TooLong,
        ),
        (
            "MiniMax",
            r#"{"base_resp":{"status_code":2013,"status_msg":"invalid params, context window exceeds limit"}}"#,
            TooLong,
        ),
        (
            "Kimi",
            r#"{"error":{"message":"Your request exceeded model token limit: 131072 (requested: 140000)","type":"invalid_request_error"}}"#,
            TooLong,
        ),
        (
            "Moonshot",
            r#"{"error":{"message":"Your account is suspended due to insufficient balance","type":"exceeded_current_quota_error"}}"#,
            Money,
        ),
        (
            "Together",
            r#"{"error":{"message":"`inputs` tokens + `max_new_tokens` must be <= 4097. Input length exceeds it.","type":"invalid_request_error"}}"#,
            TooLong,
        ),
        (
            "Poolside",
            r#"{"error":{"message":"Input length 140000 exceeds the maximum allowed input length of 131072 tokens.","code":400}}"#,
            TooLong,
        ),
        (
            "LiteLLM",
            r#"{"error":{"message":"litellm.ContextWindowExceededError: litellm.BadRequestError: ...","type":null,"param":null,"code":"400"}}"#,
            TooLong,
        ),
        (
            "LiteLLM",
            r#"{"error":{"message":"litellm.AuthenticationError: AuthenticationError: x","type":null,"code":"401"}}"#,
            Key,
        ),
        ("LiteLLM", r#"{"error":{"message":"litellm.RateLimitError: x","type":null,"code":"429"}}"#, Busy),
        ("FastAPI", r#"{"detail":"Not Found"}"#, Other),
        (
            "FastAPI",
            r#"{"detail":[{"type":"too_long","loc":["body"],"msg":"Prompt is too long","input":"x"}]}"#,
            TooLong,
        ),
        (
            "DashScope",
            r#"{"error":{"code":"Arrearage","message":"Access denied, please make sure your account is in good standing."}}"#,
            Money,
        ),
        (
            "one-api",
            r#"{"error":{"message":"user quota is not enough","type":"one_api_error","code":"insufficient_user_quota"}}"#,
            Money,
        ),
        ("a proxy", r#"{"code":429,"message":"busy"}"#, Other),
        ("a proxy", "upstream request timeout", Other),
        ("a proxy", "<html>prompt is too long</html>", Other),
        (
            "an event",
            "event: error\ndata: {\"error\":{\"message\":\"the request exceeds the available context size\"}}\n\n",
            TooLong,
        ),
        (
            "an event",
            "error: {\"code\":400,\"message\":\"the request exceeds the available context size\"}\n\n",
            TooLong,
        ),
        (
            "a picture",
            r#"{"error":{"type":"invalid_request_error","message":"messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6 > 5"}}"#,
            Other,
        ),
        (
            "a prompt in it",
            r#"{"error":{"message":"bad request","type":"invalid_request_error","input":"prompt is too long"}}"#,
            Other,
        ),
    ] {
        let complaint = Complaint::parse_body(body.as_bytes());
        assert_eq!(meaning(&complaint), wanted, "{server}: {body}\n{complaint:?}");
    }
}

#[test]
fn the_words_status_and_wait_are_found_wherever_they_stand() {
    for (body, said, status, wait_ms) in [
        (r#"{"code":429,"message":"busy"}"#, "busy", Some(429), None),
        (r#"{"code":"503","msg":"down"}"#, "down", Some(503), None),
        (r#"{"object":"error","message":"no","code":40401}"#, "no", None, None),
        (r#"{"error":"plain words"}"#, "plain words", None, None),
        (
            r#"{"error":{"message":"x. Please try again in 6m0.5s."}}"#,
            "x. Please try again in 6m0.5s.",
            None,
            Some(360_500),
        ),
        (
            r#"{"error":{"message":"Your quota will reset after 26s."}}"#,
            "Your quota will reset after 26s.",
            None,
            Some(26_000),
        ),
        (r#"{"error":{"message":"retry after 5 seconds"}}"#, "retry after 5 seconds", None, Some(5_000)),
        (r#"{"error":{"message":"Try again in 20ms"}}"#, "Try again in 20ms", None, Some(20)),
        (r#"{"error":{"message":"Please retry in 1e999s"}}"#, "Please retry in 1e999s", None, None),
        (
            r#"{"errors":[{"code":10000,"message":"Authentication error"}],"success":false}"#,
            "Authentication error",
            None,
            None,
        ),
        (
            r#"{"error":{"message":"Provider returned error","code":502,"metadata":{"raw":"upstream died"}}}"#,
            "Provider returned error: upstream died",
            Some(502),
            None,
        ),
        (
            r#"{"error":{"message":"Error code: 429 - {\"error\":{\"message\":\"slow\",\"code\":429}}","code":500}}"#,
            "slow",
            Some(429),
            None,
        ),
        (r#"{"detail":[{"msg":"one"},{"msg":"two"}]}"#, "one; two", None, None),
    ] {
        let complaint = Complaint::parse_body(body.as_bytes());
        let wait = wait_ms.map(Duration::from_millis);
        assert_eq!((complaint.said.as_deref(), complaint.status, complaint.wait), (Some(said), status, wait), "{body}");
    }
}

#[test]
fn what_holds_no_complaint_is_none() {
    for value in [
        r#"{}"#,
        r#"{"type":"ping"}"#,
        r#"{"id":"x","object":"chat.completion.chunk","created":1,"choices":[],"error":null}"#,
        r#"{"choices":[],"prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":{"filtered":false}}}]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":1}}"#,
        r#"{"choices":null,"base_resp":{"status_code":0,"status_msg":""}}"#,
        r#"{"error":false}"#,
        r#"[]"#,
        "null",
    ] {
        let value: Value = serde_json::from_str(value).unwrap();
        assert_eq!(Complaint::parse_in_stream(&value), None, "{value}");
    }
    for value in [r#"{"success":false}"#, r#"{"object":"error"}"#, r#"{"type":"error","error":{}}"#, r#"{"code":500}"#]
    {
        let value: Value = serde_json::from_str(value).unwrap();
        assert!(Complaint::parse_in_stream(&value).is_some(), "{value}");
    }
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..400), text in "\\PC{0,60}") {
        Complaint::parse_body(&bytes);
        Complaint::parse_body(format!(r#"{{"error":{{"message":"try again in {text}","code":{}}}}}"#, text.len()).as_bytes());
        parse_wait(&format!("Retry in {text}"));
    }
}
