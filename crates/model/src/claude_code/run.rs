//! A run of the command: started with our standing orders and tools, read until a turn is complete, and ended with its process group.

use std::{
    collections::BTreeMap, convert::Infallible, ffi::OsString, io, net::Ipv4Addr, path::Path, pin::Pin, rc::Rc,
    sync::atomic::Ordering, time::Duration,
};

use serde_json::{Value, json};
use tokio::net::TcpListener;

use reveille_base::{
    process::{self, Fuse, Lines, ProcessError, Spec},
    redact::Secret,
    types::{Stop, Usage},
};
use reveille_tools::mcp::{
    serve_http,
    server::{Answer, Offer, http, token},
};

use super::{
    ClaudeCodeOptions, Login,
    call_handler::{Results, RunHandler},
    error, prompt,
    relay::{self, Ended, RelayLine, SERVER},
    run_directory::RunDirectory,
};
use crate::{
    Conversation, ModelError, Progress, Turn,
    anthropic::{price, stream::TurnStream},
    content::{assistant_message, tool_calls},
    conversation::{ContentBlock, ResultBlock, SpokenMessage},
};

/// Longest line read from the command in bytes. Lines repeat our results with their pictures.
const MAX_LINE_BYTES: usize = 64 << 20;
/// Longest wait for the costs after a run's last turn.
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest wait of a run for the results of its calls. Then the run is ended and the next turn takes a new one, well before the command
/// would continue without the results.
const RESULTS_WITHIN: Duration = Duration::from_secs(120);
/// The command's own limit on that wait, in milliseconds.
const RESULT_TIMEOUT_MS: &str = "900000";
/// Maximum tokens of a result by the command's estimate; our own limits are far lower.
const MAX_RESULT_TOKENS: u32 = 500_000;
/// Variables that the command inherits: none has secrets or extends its permissions.
const ENVIRONMENT: &[&str] = &[
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "USER",
    "LOGNAME",
    "HTTPS_PROXY",
    "https_proxy",
    "HTTP_PROXY",
    "http_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    // fault: claude-code-given-variable
    "NODE_EXTRA_CA_CERTS",
];
/// Switches that turn off the command's own behaviour: retries and fallback requests, which no budget has reserved; reading files that a
/// text mentions (`@path`); its own memory and updates.
const SWITCHES: [(&str, &str); 16] = [
    ("CLAUDE_CODE_MAX_RETRIES", "0"),
    ("CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK", "1"),
    ("CLAUDE_CODE_DISABLE_REFUSAL_FALLBACK", "1"),
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("CLAUDE_CODE_DISABLE_ATTACHMENTS", "1"),
    ("CLAUDE_CODE_DISABLE_CLAUDE_MDS", "1"),
    ("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1"),
    ("DISABLE_COMPACT", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
    ("DISABLE_TELEMETRY", "1"),
    ("ENABLE_CLAUDEAI_MCP_SERVERS", "false"),
    ("ENABLE_TOOL_SEARCH", "false"),
    ("MCP_TOOL_TIMEOUT", RESULT_TIMEOUT_MS),
    ("CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT", RESULT_TIMEOUT_MS),
    ("MCP_CONNECTION_NONBLOCKING", "false"),
    ("NO_PROXY", "localhost,127.0.0.1"),
];
/// A second safeguard behind the switches: the command's own tools are denied.
const SETTINGS: &str = r#"{"disableAllHooks":true,"permissions":{"deny":["Read","Edit","Write","Bash","Glob","Grep","WebFetch","WebSearch"]}}"#;

type Serving = Pin<Box<dyn Future<Output = io::Result<Infallible>>>>;

/// A run in progress. Dropping it first kills the command with its process group, then removes our server and the directory.
pub(super) struct Run {
    lines: Lines,
    serving: Serving,
    results: Rc<Results>,
    /// Our names of the offered tools.
    offered: Vec<String>,
    has_begun: bool,
    /// The requested model.
    model: String,
    /// Usage and cost of its turns so far.
    booked: (Usage, f64),
    waits: Option<Waits>,
    _directory: RunDirectory,
}

/// The calls whose results a run waits for.
struct Waits {
    /// Number of messages before its turn.
    messages: usize,
    /// Its turn, as expected in the conversation.
    turn: Option<String>,
    /// Ids of its calls.
    calls: Vec<String>,
    /// Ends the run if it waits too long.
    fuse: Fuse,
}

impl Run {
    /// Starts the command and sends it the conversation.
    pub(super) async fn begin(
        options: &ClaudeCodeOptions,
        conversation: &Conversation,
        progress: &Progress,
    ) -> Result<Self, ModelError> {
        let program =
            process::find_program(&options.program).ok_or_else(|| error::build_not_found(&options.program))?;
        let not_set_up = |fault: &dyn std::fmt::Display| {
            error::build_transient(format!("a run of Claude Code can't be set up: {fault}"), Usage::default())
        };
        let tools = prompt::list_tools(conversation);
        let name = |tool: &Value| tool.get("name").and_then(Value::as_str).map(str::to_owned);
        let offered = tools.iter().filter_map(name).collect();
        let results = Rc::new(Results::default());

        let directory = RunDirectory::make(&options.dir).map_err(|fault| not_set_up(&fault))?;
        let token = token::generate().map_err(|fault| not_set_up(&fault))?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(|fault| not_set_up(&fault))?;
        let port = listener.local_addr().map_err(|fault| not_set_up(&fault))?.port();
        let orders =
            directory.write_file("orders.md", &conversation.system_text()).map_err(|fault| not_set_up(&fault))?;
        let server =
            directory.write_file("mcp.json", &server_settings(port, &token)).map_err(|fault| not_set_up(&fault))?;

        let spec = build_spec(options, &program, &directory, (&orders, &server));
        let lines = Lines::start(&spec, MAX_LINE_BYTES).map_err(|fault| match fault {
            ProcessError::NotFound { .. } => error::build_not_found(&program),
            fault => not_set_up(&fault),
        })?;
        progress.sent_flag().store(true, Ordering::Release);
        lines.send_line(prompt::build_opening_line(conversation));
        let offer = Offer { instructions: String::new(), tools, has_resources: false };
        let serving = serve_tools(listener, token, offer, Rc::clone(&results));
        let booked = (Usage::default(), 0.0);
        let model = options.model.clone();
        Ok(Self {
            lines,
            serving,
            results,
            offered,
            has_begun: false,
            model,
            booked,
            waits: None,
            _directory: directory,
        })
    }

    /// Gives the run the results of its calls if the conversation contains nothing else new. `None` if the run can't continue from there.
    pub(super) fn give_results(mut self, conversation: &Conversation, progress: &Progress) -> Option<Self> {
        let Waits { messages, turn, calls, fuse } = self.waits.take()?;
        // From here on the fuse can't end the run.
        drop(fuse);
        let (_, new) = conversation.messages.split_at_checked(messages)?;
        let [said, told] = new else { return None };
        let is_next = turn.as_ref() == Some(said) && self.lines.is_leashed();
        let told = parse_results(told, &calls).filter(|_| is_next)?;
        progress.sent_flag().store(true, Ordering::Release);
        self.results.publish(told);
        Some(self)
    }

    /// Reads until a turn is complete. Returns the run too if it waits for the results of the turn's calls. A run that would continue
    /// without us is ended.
    pub(super) async fn read_turn(
        mut self,
        conversation: &Conversation,
        progress: &Progress,
    ) -> Result<(Turn, Option<Self>), ModelError> {
        let (turn, model) = self.read_raw_turn(progress).await?;
        let turn = relay::with_own_names(turn, &self.offered);
        let list_price = price::cost_usd(&model, &turn.usage);
        match (&turn.stop, relay::list_awaited_calls(&turn)) {
            (Stop::ToolUse, Some(calls)) => {
                self.booked.0 += turn.usage;
                self.booked.1 += list_price;
                let stands = assistant_message(&turn.content);
                let fuse = self.lines.kill_after(RESULTS_WITHIN);
                self.waits = Some(Waits { messages: conversation.messages.len(), turn: stands, calls, fuse });
                Ok((Turn { cost_usd: Some(list_price), ..turn }, Some(self)))
            }
            (Stop::EndTurn | Stop::StopSequence, _) if tool_calls(&turn.content, &turn.stop).is_empty() => {
                let ended = tokio::time::timeout(END_TIMEOUT, self.wait_for_end()).await.ok().flatten();
                Ok((self.settle_turn(turn, list_price, ended.as_ref()), None))
            }
            _ => Ok((Turn { cost_usd: Some(list_price), ..turn }, None)),
        }
    }

    /// Reads the next turn as sent by the API, and the model that took it.
    async fn read_raw_turn(&mut self, progress: &Progress) -> Result<(Turn, String), ModelError> {
        let mut stream = TurnStream::default();
        let mut model = None;
        let mut fault = None;
        loop {
            match self.read_line(&stream).await? {
                RelayLine::Begun { tools, is_connected } => self.check_tools(&tools, is_connected)?,
                RelayLine::Event { begins: Some(_), .. } if model.is_some() => {
                    return Err(stream.build_error("Claude Code restarted its turn on its own"));
                }
                RelayLine::Event { raw, begins } => {
                    model = model.or(begins);
                    let is_whole = stream.push_event(&raw)?;
                    progress.record_usage(stream.usage());
                    progress.show(stream.take_pieces().into_iter().map(relay::name_own_tool).collect());
                    if is_whole {
                        let model = model.filter(|model| !model.is_empty()).unwrap_or_else(|| self.model.clone());
                        return Ok((stream.finish(None)?, model));
                    }
                }
                RelayLine::Fault(kind) => fault = Some(kind),
                RelayLine::Ended(ended) => {
                    return Err(error::build_failed_end(&ended, fault.as_deref(), stream.usage()));
                }
                RelayLine::Other => {}
            }
        }
    }

    /// Reads the next line while our server works.
    async fn read_line(&mut self, stream: &TurnStream) -> Result<RelayLine, ModelError> {
        tokio::select! {
            line = self.lines.next() => match line {
                Some(Ok(line)) => Ok(RelayLine::parse(&line)),
                Some(Err(fault)) => Err(stream.build_error(&format!("Claude Code said {fault}"))),
                None => {
                    let complaint = self.lines.find_error_line().await;
                    Err(match self.has_begun {
                        true => error::build_early_end(&complaint, stream.usage()),
                        false => error::build_failed_start(&complaint),
                    })
                }
            },
            Err(fault) = &mut self.serving => Err(stream.build_error(&format!("my tools couldn't be offered to it: {fault}"))),
        }
    }

    /// Rejects a run that has tools of its own or lacks ours, before its first turn.
    fn check_tools(&mut self, tools: &[String], is_connected: bool) -> Result<(), ModelError> {
        self.has_begun = true;
        let others = relay::list_foreign_tools(tools, &self.offered);
        // fault: claude-code-used-tools
        if !others.is_empty() {
            let others: Vec<&str> = others.into_iter().take(5).collect();
            // fault end: claude-code-used-tools
            let why = format!(
                "this Claude Code has tools that can't be switched off ({}), so it isn't used",
                others.join(", ")
            );
            return Err(ModelError::Account { why });
        }
        if !is_connected || tools.len() < self.offered.len() {
            return Err(error::build_transient("Claude Code couldn't be given my tools", Usage::default()));
        }
        Ok(())
    }

    /// Waits for the end of the run. `None` if the end is unknown, or if the run continues by itself.
    async fn wait_for_end(&mut self) -> Option<Ended> {
        let nothing = TurnStream::default();
        loop {
            match self.read_line(&nothing).await {
                Ok(RelayLine::Ended(ended)) => return Some(ended),
                Ok(RelayLine::Event { begins: Some(_), .. }) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// Sets the last turn's usage and cost from the run's totals, minus the amounts already booked.
    fn settle_turn(&self, turn: Turn, list_price: f64, ended: Option<&Ended>) -> Turn {
        let (tokens, usd) = &self.booked;
        let Some(ended) = ended else { return Turn { cost_usd: Some(list_price), ..turn } };
        let left = |all: u64, booked: u64, seen: u64| all.saturating_sub(booked).max(seen);
        let (all, seen) = (&ended.usage, &turn.usage);
        let usage = Usage {
            input: left(all.input, tokens.input, seen.input),
            output: left(all.output, tokens.output, seen.output),
            cache_read: left(all.cache_read, tokens.cache_read, seen.cache_read),
            cache_write: left(all.cache_write, tokens.cache_write, seen.cache_write),
        };
        let cost_usd = ended.cost_usd.map_or(list_price, |all| (all - usd).max(0.0));
        Turn { usage, cost_usd: Some(cost_usd), ..turn }
    }
}

/// Serves our tools while polled.
fn serve_tools(listener: TcpListener, token: Secret, offer: Offer, results: Rc<Results>) -> Serving {
    Box::pin(async move { serve_http(listener, &token, offer, &mut RunHandler(results)).await })
}

fn server_settings(port: u16, token: &Secret) -> String {
    let headers = json!({"Authorization": format!("Bearer {}", token.expose())});
    let server = json!({"type": "http", "url": format!("http://127.0.0.1:{port}{}", http::PATH), "headers": headers});
    json!({"mcpServers": {SERVER: server}}).to_string()
}

fn build_spec(
    options: &ClaudeCodeOptions,
    program: &Path,
    directory: &RunDirectory,
    (orders, server): (&Path, &Path),
) -> Spec {
    let words = [
        "-p",
        "--input-format",
        "stream-json",
        "--output-format",
        "stream-json",
        "--verbose",
        "--include-partial-messages",
    ];
    let confined = [
        "--tools",
        "",
        "--setting-sources",
        "",
        "--strict-mcp-config",
        "--disable-slash-commands",
        "--no-session-persistence",
        "--settings",
        SETTINGS,
    ];
    let allowed = format!("mcp__{SERVER}");
    let most_usd = format!("{:.2}", options.most_usd.max(0.01));
    let chosen = ["--allowedTools", &allowed, "--model", &options.model, "--max-budget-usd", &most_usd];
    let files: [OsString; 4] = ["--system-prompt-file".into(), orders.into(), "--mcp-config".into(), server.into()];
    let max_output = options.max_tokens.to_string();
    let spec = Spec::new(program)
        .args(words)
        .args(confined)
        .args(chosen)
        .args(files)
        .current_dir(directory.work_dir())
        .only_inheriting(ENVIRONMENT)
        .env("TMPDIR", directory.temp_dir())
        .env("ANTHROPIC_BASE_URL", &options.base_url)
        .env("API_TIMEOUT_MS", options.turn_timeout.as_millis().to_string())
        .env("CLAUDE_CODE_MAX_OUTPUT_TOKENS", max_output)
        .env("MAX_MCP_OUTPUT_TOKENS", MAX_RESULT_TOKENS.to_string());
    let spec = SWITCHES.iter().fold(spec, |spec, (name, value)| spec.env(*name, *value));
    match &options.login {
        Login::Key(key) => spec.env("HOME", directory.home_dir()).env("ANTHROPIC_API_KEY", key.expose()),
        Login::Token(token) => spec.env("HOME", directory.home_dir()).env("CLAUDE_CODE_OAUTH_TOKEN", token.expose()),
        Login::Own(home) => spec.env("HOME", home.clone().unwrap_or_else(|| directory.home_dir())),
    }
}

/// Parses the results of these calls from a message. `None` if a result is missing, or if the message contains anything else.
fn parse_results(message: &str, calls: &[String]) -> Option<BTreeMap<String, Answer>> {
    let message = SpokenMessage::parse(message)?;
    let result = |block: &ContentBlock<'_>| {
        let ContentBlock::Result(result) = block else { return None };
        let ResultBlock { call, text, images, is_error } = result;
        let image = images.first().map(|image| image.get().to_owned());
        let is_asked = calls.iter().any(|id| id == call);
        (is_asked && images.len() < 2)
            .then(|| (call.to_string(), Answer { text: text.clone(), is_error: *is_error, image }))
    };
    let results = message.blocks.iter().map(result).collect::<Option<BTreeMap<_, _>>>()?;
    (results.len() == calls.len()).then_some(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(blocks: &str) -> Option<BTreeMap<String, Answer>> {
        parse_results(&format!(r#"{{"role":"user","content":[{blocks}]}}"#), &["a".to_owned(), "b".to_owned()])
    }

    #[test]
    fn a_run_is_told_the_results_of_all_its_calls_or_nothing() {
        let (a, b) = (
            r#"{"type":"tool_result","tool_use_id":"a","content":"A"}"#,
            r#"{"type":"tool_result","tool_use_id":"b","is_error":true,"content":[{"type":"text","text":"B"},{"type":"image","source":{}}]}"#,
        );
        let both = told(&format!("{a},{b}")).unwrap();
        assert_eq!(both["a"], Answer { text: "A".to_owned(), is_error: false, image: None });
        assert!(both["b"].is_error && both["b"].text == "B" && both["b"].image.is_some());
        let other = r#"{"type":"tool_result","tool_use_id":"c","content":"C"}"#;
        let news = r#"{"type":"text","text":"<messages>"}"#;
        for blocks in [a.to_owned(), format!("{a},{b},{news}"), format!("{a},{b},{other}"), String::new()] {
            assert_eq!(told(&blocks), None, "{blocks}");
        }
    }

    #[test]
    fn the_token_is_in_no_argument() {
        let settings = server_settings(8080, &Secret::new("t0ken"));
        let settings: Value = serde_json::from_str(&settings).unwrap();
        assert_eq!(settings["mcpServers"]["reveille"]["headers"]["Authorization"], "Bearer t0ken");
        let dir = tempfile::tempdir().unwrap();
        let directory = RunDirectory::make(&dir.path().join("run")).unwrap();
        let options = ClaudeCodeOptions {
            program: "claude".into(),
            model: "claude-sonnet-5-5".to_owned(),
            login: Login::Token(Secret::new("l0gin")),
            base_url: "https://api.anthropic.com".to_owned(),
            dir: dir.path().join("run"),
            max_tokens: 100,
            turn_timeout: Duration::from_secs(1),
            most_usd: 0.0,
        };
        let spec = build_spec(&options, Path::new("/bin/claude"), &directory, (Path::new("/o"), Path::new("/m")));
        let words: Vec<String> = spec.command_line().map(|word| word.to_string_lossy().into_owned()).collect();
        assert!(words.iter().all(|word| !word.contains("t0ken") && !word.contains("l0gin")), "{words:?}");
        let after = |option: &str| words.iter().skip_while(|word| *word != option).nth(1).map(String::as_str);
        assert_eq!(
            (after("--tools"), after("--setting-sources"), after("--max-budget-usd")),
            (Some(""), Some(""), Some("0.01"))
        );
    }
}
