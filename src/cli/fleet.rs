//! Many assistants: manages them (`wake fleet`), runs their turns (`wake --fleet`), and receives their Telegram updates
//! (`bot --webhook`).

use std::{
    num::NonZeroU32,
    path::{Path, PathBuf},
    process::{Child, ExitCode},
    sync::Arc,
    time::Duration,
};

use clap::Subcommand;

use reveille_base::{
    clock::{Clock as _, SystemClock},
    process::Output,
    redact::Secret,
    types::AssistantName,
    words::format_local_time,
};
use reveille_fleet::{Fleet, FleetError, receive, work};
use reveille_store::FleetMember;
use reveille_tools::loopback;

use super::{
    EXIT_CONFIG, EXIT_FAILED, EXIT_USAGE, OutputFormat,
    arguments::Arguments,
    complain,
    log::{self, Talk},
    print, print_json, report_failure,
};
use crate::bot;

/// How often the receiver checks for work that is due by time.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How long the receiver waits for its worker before it ends.
const STOP_GRACE: Duration = Duration::from_secs(30);

pub(super) const HELP: &str = "\
A fleet is a folder with one assistant for each person or team, each with its own settings, secrets, memory and messages. Its turns run
in a sandbox (bubblewrap) from which it can't see the others. You don't need this for one person on one machine. See docs/FLEET.md.

Examples:
  wake fleet add /srv/fleet ana --env ana.env
  wake fleet connect /srv/fleet ana --url https://bots.example.org
  wake fleet list /srv/fleet
  wake fleet run /srv/fleet ana log -n 5         any command of wake, for one assistant
  wake --fleet /srv/fleet --once --workers 4     run the turns of all that are due: for cron
  bot --webhook 8787 --fleet /srv/fleet          receive Telegram's updates, and start the turns";

/// Default number of parallel turns.
const DEFAULT_WORKERS: NonZeroU32 = NonZeroU32::new(2).unwrap();

/// The options that make a wake a worker of a fleet.
#[derive(Debug, clap::Args)]
pub(super) struct FleetWork {
    /// Run the turns of this folder's assistants, each in a sandbox of its own, instead of waking this one.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["say", "turn", "env_file"])]
    pub(super) fleet: Option<PathBuf>,
    /// Number of turns at a time.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_WORKERS, requires = "fleet")]
    pub(super) workers: NonZeroU32,
}

impl Default for FleetWork {
    fn default() -> Self {
        Self { fleet: None, workers: DEFAULT_WORKERS }
    }
}

/// The options that make a bot the receiver of a whole fleet.
#[derive(Debug, clap::Args)]
pub(super) struct FleetReceiver {
    /// Receive Telegram's updates for all assistants of a fleet, on this port of the loopback, behind a proxy that speaks TLS.
    #[arg(long, value_name = "PORT", requires = "fleet")]
    pub(super) webhook: Option<u16>,
    /// The fleet's folder, see `wake fleet --help`.
    #[arg(long, value_name = "DIR", requires = "webhook")]
    pub(super) fleet: Option<PathBuf>,
    /// Number of turns at a time.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_WORKERS, requires = "webhook")]
    pub(super) workers: NonZeroU32,
}

#[derive(Debug, Subcommand)]
pub(super) enum FleetCommand {
    /// Add an assistant; the first one makes the fleet.
    Add {
        /// The fleet's folder.
        dir: PathBuf,
        /// Its name: lower-case letters, digits and _.
        name: AssistantName,
        /// A file with its first settings, see .env.example. An existing file stays.
        #[arg(long, value_name = "FILE")]
        env: Option<PathBuf>,
    },
    /// Have Telegram send an assistant's messages to the receiver; a new secret replaces the old one.
    Connect {
        /// The fleet's folder.
        dir: PathBuf,
        /// The assistant; its settings hold its bot's token.
        name: AssistantName,
        /// The public address of the proxy in front of the receiver, such as https://bots.example.org.
        #[arg(long)]
        url: String,
    },
    /// List the assistants: when each is due, and whose turns fail.
    List {
        /// The fleet's folder.
        dir: PathBuf,
        /// Print one JSON object per line: name, added_at, due_at, taken_at, is_at_work, receives, failures, trouble.
        #[arg(long)]
        json: bool,
    },
    /// Run a command of `wake` for one assistant, in its sandbox; the output comes when it ends.
    Run {
        /// The fleet's folder.
        dir: PathBuf,
        /// The assistant.
        name: AssistantName,
        /// The command, such as: log -n 5
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
    /// Remove an assistant from the list: it gets no more turns or messages. Its folder stays.
    Remove {
        /// The fleet's folder.
        dir: PathBuf,
        /// The assistant.
        name: AssistantName,
    },
}

impl FleetCommand {
    /// Returns `true` if JSON is asked for.
    pub(super) fn is_json(&self) -> bool {
        matches!(self, Self::List { json: true, .. })
    }
}

/// Carries out the command.
pub(super) fn run(command: &FleetCommand) -> ExitCode {
    let done = match command {
        FleetCommand::Add { dir, name, env } => add_assistant(dir, name, env.as_deref()),
        FleetCommand::Connect { dir, name, url } => connect_assistant(dir, name, url),
        FleetCommand::List { dir, json } => list_assistants(dir, OutputFormat::from_flag(*json)),
        FleetCommand::Remove { dir, name } => remove(dir, name),
        FleetCommand::Run { dir, name, command } => run_one(dir, name, command),
    };
    done.unwrap_or_else(|error| report_error(&error))
}

fn report_error(error: &FleetError) -> ExitCode {
    complain(&format!("failed: {error}"));
    ExitCode::from(match error {
        FleetError::None(_) | FleetError::Nobody(_) => EXIT_USAGE,
        FleetError::Settings(_) | FleetError::NoBox(_) => EXIT_CONFIG,
        _ => EXIT_FAILED,
    })
}

fn add_assistant(dir: &Path, name: &AssistantName, env: Option<&Path>) -> Result<ExitCode, FleetError> {
    let (fleet, is_new) = Fleet::add(dir, name, env, SystemClock.now())?;
    let workspace = fleet.workspace(name);
    let outcome = if is_new { "is added" } else { "existed already and wasn't changed" };
    print(&format!("{name} {outcome}. Its settings: {}\n", workspace.join(".env").display()));
    if let Err(problems) = fleet.read_config(name) {
        complain(&format!("{problems}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn list_assistants(dir: &Path, format: OutputFormat) -> Result<ExitCode, FleetError> {
    let fleet = Fleet::open(dir)?;
    let members = fleet.open_registry()?.list_members(fleet.config().clock().now())?;
    if format.is_json() {
        members.iter().for_each(print_json);
    } else if members.is_empty() {
        complain("No assistants yet: `wake fleet add` adds one.");
    } else {
        let zone = fleet.config().timezone;
        let line = |member: &FleetMember| {
            let state = if member.is_at_work { "has its turn" } else { "next look" };
            let at =
                if member.is_at_work { String::new() } else { format!(" {}", format_local_time(member.due_at, zone)) };
            let failed = member.trouble.as_ref().map(|why| format!("  failed {} times: {why}", member.failures));
            format!("{}  {state}{at}{}\n", member.name, failed.unwrap_or_default())
        };
        print(&members.iter().map(line).collect::<String>());
    }
    Ok(ExitCode::SUCCESS)
}

fn remove(dir: &Path, name: &AssistantName) -> Result<ExitCode, FleetError> {
    let fleet = Fleet::open(dir)?;
    if !fleet.open_registry()?.remove(name)? {
        complain(&format!("{name} isn't on the list. `wake fleet list` shows all."));
        return Ok(ExitCode::from(EXIT_USAGE));
    }
    print(&format!(
        "{name} gets no more turns or messages. Its folder stays: {}. Telegram still sends its messages here: to end that, run `bot \
         webhook delete` with its settings.\n",
        fleet.workspace(name).display()
    ));
    Ok(ExitCode::SUCCESS)
}

fn connect_assistant(dir: &Path, name: &AssistantName, url: &str) -> Result<ExitCode, FleetError> {
    let fleet = Fleet::open(dir)?;
    let address = format!("{}{}{name}", url.trim_end_matches('/'), receive::PATH);
    if !address.starts_with("https://") {
        complain("--url must begin with https://: Telegram calls no other addresses.");
        return Ok(ExitCode::from(EXIT_USAGE));
    }
    // This runs in the assistant's sandbox, like everything that uses its settings.
    let output = fleet.run(name, "bot", &["webhook", "set", &address])?;
    let secret = Secret::new(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    if !output.status.success() {
        complain(&String::from_utf8_lossy(&output.stderr));
        complain(
            "I can't tell which secret Telegram has now. Run this again; Telegram delivers later what it can't deliver until then.",
        );
        return Ok(to_exit_code(&output));
    }
    // Updates that arrive before the secret is saved are refused, and Telegram sends them again.
    if !fleet.save_secret_hash(name, &secret)? {
        complain(&format!("{name} isn't on the list. Add it with `wake fleet add`, then connect it again."));
        return Ok(ExitCode::from(EXIT_USAGE));
    }
    print(&format!("Telegram now sends messages for {name} to {url}.\n"));
    Ok(ExitCode::SUCCESS)
}

/// Runs a command of `wake` for one assistant, in its sandbox.
fn run_one(dir: &Path, name: &AssistantName, command: &[String]) -> Result<ExitCode, FleetError> {
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let output = Fleet::open(dir)?.run(name, "wake", &command)?;
    print(&String::from_utf8_lossy(&output.stdout));
    if !output.stderr.is_empty() {
        complain(&String::from_utf8_lossy(&output.stderr));
    }
    Ok(to_exit_code(&output))
}

fn to_exit_code(output: &Output) -> ExitCode {
    ExitCode::from(output.status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(EXIT_FAILED))
}

/// Runs the turns of all due assistants.
pub(super) fn run_due_turns(dir: &Path, arguments: &Arguments) -> ExitCode {
    let worked = Fleet::open(dir).and_then(|fleet| {
        log::start(fleet.config(), Talk::Usual, Some("fleet"));
        let stop = super::stop_signal().map_err(|source| FleetError::Disk { path: dir.to_owned(), source })?;
        let (is_over, clock) = (|| *stop.borrow(), SystemClock);
        let (slots, once) = (arguments.fleet.workers, arguments.once);
        work::run_worker(&fleet, &work::WorkOrder { slots, once, is_over: &is_over, clock: &clock })
    });
    match worked {
        Ok(turns) => {
            tracing::info!(turns, "no assistant is due any longer");
            ExitCode::SUCCESS
        }
        Err(error) => report_error(&error),
    }
}

/// Receives updates for all assistants, and starts workers.
pub(super) fn receive_updates(dir: &Path, port: u16, slots: NonZeroU32, wake: Option<&Path>) -> ExitCode {
    let fleet = match Fleet::open(dir) {
        Ok(fleet) => fleet,
        Err(error) => return report_error(&error),
    };
    log::start(fleet.config(), Talk::Usual, Some("fleet"));
    let received = super::build_runtime().and_then(|runtime| {
        runtime.block_on(async {
            let mut stop = super::stop_signal()?;
            let registry = fleet.open_registry().map_err(std::io::Error::other)?;
            let receiver = Arc::new(receive::Receiver::new(fleet.clone()).map_err(std::io::Error::other)?);
            let listeners = loopback::listen(port).await?;
            for listener in &listeners {
                loopback::is_loopback_only(listener)?;
            }
            let port =
                listeners.first().map_or(Ok(port), |first| Ok::<_, std::io::Error>(first.local_addr()?.port()))?;
            print(&format!("http://127.0.0.1:{port}{}\n", receive::PATH));
            tracing::info!(port, "receiving for the fleet; SIGTERM ends it");
            let mut worker =
                StartedWorker { wake: wake.map(Path::to_owned), dir: fleet.dir().to_owned(), slots, child: None };
            let is_due = || {
                let next_at = registry.find_next_turn_time().unwrap_or_else(|error| {
                    tracing::warn!(%error, "who is due couldn't be read");
                    None
                });
                next_at.is_some_and(|at| at <= fleet.config().clock().now())
            };
            let supervised = async {
                loop {
                    worker.start_if_due(is_due);
                    tokio::select! {
                        () = receiver.arrived.notified() => {}
                        () = tokio::time::sleep(worker.compute_wait()) => {}
                    }
                }
            };
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => {}
                never = receiver.serve(&listeners) => match never {},
                () = supervised => {}
            }
            worker.end().await;
            Ok(())
        })
    });
    match received {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report_failure(&error),
    }
}

/// The receiver's worker process. It is started when an assistant is due and the previous worker has ended.
struct StartedWorker {
    wake: Option<PathBuf>,
    dir: PathBuf,
    slots: NonZeroU32,
    child: Option<Child>,
}

impl StartedWorker {
    fn start_if_due(&mut self, is_due: impl FnOnce() -> bool) {
        if let Some(child) = &mut self.child
            && !matches!(child.try_wait(), Ok(None))
        {
            self.child = None;
        }
        // The check reads the whole list. It is skipped while a worker runs, which does the same itself.
        if self.child.is_some() || !is_due() {
            return;
        }
        match bot::start_fleet(self.wake.as_deref(), &self.dir, self.slots) {
            Ok(child) => self.child = Some(child),
            Err(error) => {
                tracing::error!(%error, "a worker couldn't be started; what came is kept, and it is tried again");
            }
        }
    }

    /// Returns the wait until the next check, short while a worker runs so that its end is noticed.
    fn compute_wait(&self) -> Duration {
        if self.child.is_some() { Duration::from_millis(100) } else { LOOK_EVERY }
    }

    /// Asks the worker to end after its turns, and waits a while.
    async fn end(mut self) {
        let Some(child) = &mut self.child else { return };
        if let Some(who) = reveille_base::process::Identity::for_pid(child.id()) {
            reveille_base::process::ask_to_end(&who);
        }
        let until = tokio::time::Instant::now() + STOP_GRACE;
        while matches!(child.try_wait(), Ok(None)) && tokio::time::Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
