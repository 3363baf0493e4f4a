//! `wake mcp`: serves our tools to other programs, and manages their tools for us.

use std::{net::SocketAddr, process::ExitCode};

use clap::{Args, Subcommand};

use reveille_config::Config;
use reveille_cycle as cycle;
use reveille_cycle::{
    context::{Context, Terminal},
    run::outside,
};
use reveille_policy as policy;
use reveille_sandbox::exec::Shelter;
use reveille_store::Store;
use reveille_tools::mcp::{
    client::{
        self, ServerConfinement,
        pin::Pin,
        settings::{Server, Settings},
    },
    server::{Answer, Answering, Call, Handler, Offer, Resource, Unread, http, stdio, token},
};

use super::{WakeSettings, complain, print, report_failure};

/// Prefix of the addresses of memory files.
const SCHEME: &str = "reveille:///";
/// Instructions for a client's model.
const INSTRUCTIONS: &str = "The memory, tasks, reminders and message queue of a personal assistant. Reading is answered at once. Each change is one \
    commit. Facts are kept as unconfirmed. Most other changes need the person's approval first: the answer then says so, and the change is \
    made once they agree.";

#[derive(Debug, Args)]
pub(super) struct McpArguments {
    /// Serve by HTTP on this loopback address instead of standard input and output, such as 127.0.0.1:8931; port 0 picks one.
    #[arg(long, value_name = "ADDRESS", value_parser = super::values::parse_address)]
    http: Option<SocketAddr>,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the servers in mcp.toml and their accepted tools. Starts nothing.
    #[command(after_help = "Example: wake mcp list")]
    List,
    /// Ask servers what they offer now, and accept it: the AI model sees their tools from the next wake on.
    #[command(after_help = "Example: wake mcp refresh github")]
    Refresh {
        /// Its name; default: every server in mcp.toml.
        servers: Vec<String>,
        /// Run servers that are commands even where there is no sandbox for them.
        #[arg(long)]
        unconfined: bool,
    },
    /// Call a tool of a server yourself, and show what it answers.
    #[command(after_help = "Example: wake mcp try github search_issues '{\"query\": \"is:open\"}'")]
    Try {
        /// The server.
        server: String,
        /// The tool, as the server names it.
        tool: String,
        /// Its arguments, a JSON object.
        #[arg(default_value = "{}")]
        arguments: String,
        /// Run a server that is a command even where there is no sandbox for it.
        #[arg(long)]
        unconfined: bool,
    },
}

/// The task that [`super::wake`] carries out.
pub(super) enum McpTask<'a> {
    /// Serve, over HTTP at the address or else over standard input and output.
    Serve(Option<SocketAddr>),
    /// The command was carried out already.
    Done(ExitCode),
    /// A person inspects servers.
    Look(ServerLook<'a>),
}

/// A person's command about servers.
pub(super) struct ServerLook<'a>(&'a Action);

pub(super) fn begin_task<'a>(config: &Config, arguments: &'a McpArguments) -> McpTask<'a> {
    match &arguments.action {
        None => McpTask::Serve(arguments.http),
        Some(Action::List) => McpTask::Done(list_servers(config)),
        Some(action) => McpTask::Look(ServerLook(action)),
    }
}

fn load_settings(config: &Config) -> Settings {
    let settings = Settings::for_workspace(config);
    for problem in &settings.problems {
        complain(problem);
    }
    if settings.servers.is_empty() && settings.off.is_empty() && settings.problems.is_empty() {
        complain(&format!(
            "There are no MCP servers: {} doesn't exist. Start from the example docs/mcp.toml.",
            config.mcp_path().display()
        ));
    }
    settings
}

fn to_exit_code(is_good: bool) -> ExitCode {
    ExitCode::from(if is_good { super::EXIT_OK } else { super::EXIT_FAILED })
}

fn list_servers(config: &Config) -> ExitCode {
    let (settings, redactor) = (load_settings(config), super::build_redactor(config));
    let print = |text: &str| print(&redactor.redact(text));
    for Server { name, .. } in &settings.servers {
        let pin = Pin::load(&config.mcp_pins_dir(), name);
        match &pin.accepted {
            Some(listing) => {
                print(&format!("{name} (SHA-256 {})\n{}", listing.sha256(), client::describe_tools(listing)));
            }
            None => print(&format!("{name}: nothing accepted yet; wake mcp refresh {name}\n")),
        }
        if let Some(question) = pin.question(name) {
            print(&format!("  {question}\n  wake mcp refresh {name} accepts what it offers now.\n"));
        }
    }
    for Server { name, .. } in &settings.off {
        print(&format!("{name}: switched off by `enabled = false` in mcp.toml\n"));
    }
    to_exit_code(settings.problems.is_empty())
}

impl ServerLook<'_> {
    pub(super) async fn run(self, context: Context<'_>) -> ExitCode {
        let settings = load_settings(context.config);
        let rules = policy::load(&context.config.policy_path(), context.config.home.as_deref()).rules;
        let shelter = client::build_shelter(context.config, &rules, &settings);
        let unknown = |name: &str| complain(&format!("There is no MCP server {name:?} in mcp.toml."));
        match self.0 {
            Action::List => list_servers(context.config),
            Action::Refresh { servers, unconfined } => {
                let mut is_good = settings.problems.is_empty();
                for name in servers.iter().filter(|name| settings.get(name).is_none()) {
                    unknown(name);
                    is_good = false;
                }
                let is_asked = |server: &&Server| servers.is_empty() || servers.contains(&server.name);
                for server in settings.servers.iter().filter(is_asked) {
                    is_good &= refresh_server(context, server, &shelter, *unconfined).await;
                }
                to_exit_code(is_good)
            }
            Action::Try { server, tool, arguments, unconfined } => {
                let Some(server) = settings.get(server) else {
                    unknown(server);
                    return ExitCode::from(super::EXIT_USAGE);
                };
                let Ok(arguments @ serde_json::Value::Object(_)) = serde_json::from_str(arguments) else {
                    complain("The arguments aren't a JSON object, such as '{\"city\": \"Oslo\"}'. Nothing was called.");
                    return ExitCode::from(super::EXIT_USAGE);
                };
                match client::try_out(server, &shelter, choose_confinement(*unconfined), (tool, &arguments)).await {
                    Ok((text, is_failure)) => {
                        print(&format!("{}\n", context.redactor.redact(&text)));
                        to_exit_code(!is_failure)
                    }
                    Err(error) => report_failure(&context.redactor.redact(&format!("{}: {error}", server.name))),
                }
            }
        }
    }
}

fn choose_confinement(unconfined: bool) -> ServerConfinement {
    if unconfined { ServerConfinement::Waived } else { ServerConfinement::Required }
}

async fn refresh_server(context: Context<'_>, server: &Server, shelter: &Shelter, unconfined: bool) -> bool {
    let (name, dir) = (&server.name, context.config.mcp_pins_dir());
    let (listing, problems) = match client::list_current_tools(server, shelter, choose_confinement(unconfined)).await {
        Ok(found) => found,
        Err(error) => {
            complain(&context.redactor.redact(&format!("{name}: {error}. The tools accepted before stay.")));
            return false;
        }
    };
    let before = Pin::load(&dir, name).accepted;
    let pin = Pin { accepted: Some(listing.clone()), found: None };
    if let Err(error) = pin.save(&dir, name) {
        complain(&format!("{name}: its tools can't be saved: {error}"));
        return false;
    }
    let masked = |text: &str| context.redactor.redact(&reveille_base::approval_text::escape_hidden(text));
    let words = before.clone().unwrap_or_default().changed_words(&listing, &masked);
    if !words.is_empty() {
        print(&format!("{words}\n\n"));
    }
    let what = match before.map(|before| before.describe_changes(&listing)) {
        None => "accepted".to_owned(),
        Some(changes) if changes.is_empty() => "unchanged".to_owned(),
        Some(changes) => format!("accepted: {changes}"),
    };
    let what = format!("{name}: {what} (SHA-256 {})\n{}", listing.sha256(), client::describe_tools(&listing));
    print(&context.redactor.redact(&what));
    for problem in problems {
        complain(&context.redactor.redact(&format!("{name}: {problem}")));
    }
    true
}

/// Serves until the client has ended or the process is asked to end.
pub(super) async fn serve(context: Context<'_>, address: Option<SocketAddr>) -> ExitCode {
    let offer =
        Offer { instructions: INSTRUCTIONS.to_owned(), tools: outside::list_tools(context), has_resources: true };
    let mut desk = Desk { context };
    let mut stop = context.stop.clone();
    let serving = async {
        match address {
            None => {
                stdio::serve(offer, &mut desk).await;
                ExitCode::SUCCESS
            }
            Some(address) => serve_http(context.config, address, offer, &mut desk).await,
        }
    };
    tokio::select! {
        code = serving => code,
        _ = stop.wait_for(|stop| *stop) => ExitCode::SUCCESS,
    }
}

async fn serve_http(config: &Config, address: SocketAddr, offer: Offer, desk: &mut Desk<'_>) -> ExitCode {
    let path = config.mcp_token_path();
    let token = match token::load_or_make(&path) {
        Ok(token) => token,
        Err(error) => return report_failure(&error),
    };
    let listener = match tokio::net::TcpListener::bind(address).await {
        Ok(listener) => listener,
        Err(error) => return report_failure(&format!("can't listen on {address}: {error}")),
    };
    match listener.local_addr() {
        Ok(address) => {
            complain(&format!("Serving http://{address}{}; the bearer token is in {}.", http::PATH, path.display()));
        }
        Err(error) => return report_failure(&error),
    }
    match http::serve(listener, &token, offer, desk).await {
        Ok(never) => match never {},
        Err(error) => report_failure(&error),
    }
}

/// Answers the calls of clients.
struct Desk<'a> {
    context: Context<'a>,
}

impl Desk<'_> {
    async fn answer_call(&self, name: &str, input: &str) -> Answer {
        let mut store = match cycle::open_store(self.context.config) {
            Ok(store) => store,
            Err(error) => return self.answer_failure(&error),
        };
        // People and secrets may have changed since the last call.
        let settings = match WakeSettings::load(self.context, &store) {
            Ok(settings) => settings,
            Err(error) => return self.answer_failure(&error),
        };
        let redactor = super::build_redactor(self.context.config);
        let terminal = Terminal::AtEnd;
        let context = Context { redactor: &redactor, terminal, ..settings.apply_to(self.context) };
        match Box::pin(outside::call_tool(context, &mut store, name, input)).await {
            Ok(told) => Answer { text: told.text, is_error: told.is_error, image: None },
            Err(error) => self.answer_failure(&error),
        }
    }

    fn open_store(&self) -> Result<Store, Unread> {
        cycle::open_store(self.context.config)
            .map_err(|error| Unread::Refused(self.context.redactor.redact(&error.to_string())))
    }

    fn answer_failure(&self, error: &dyn std::fmt::Display) -> Answer {
        let why = self.context.redactor.redact(&error.to_string());
        complain(&format!("failed: {why}"));
        Answer {
            text: format!("It failed: {why}. The next wake resumes what was started."),
            is_error: true,
            image: None,
        }
    }
}

impl Handler for Desk<'_> {
    fn call<'a>(&'a mut self, call: &'a Call) -> Answering<'a> {
        Box::pin(self.answer_call(&call.name, &call.input))
    }

    fn list_resources(&mut self) -> Result<Vec<Resource>, Unread> {
        let resource = |path: String| Resource { uri: format!("{SCHEME}{path}"), name: path, mime: "text/markdown" };
        let paths = outside::memory_paths(self.context, &self.open_store()?)?;
        Ok(paths.into_iter().map(resource).collect())
    }

    fn read_resource(&mut self, uri: &str) -> Result<String, Unread> {
        let path = uri.strip_prefix(SCHEME).ok_or(Unread::Missing)?;
        outside::memory_text(self.context, &self.open_store()?, path)
    }
}
