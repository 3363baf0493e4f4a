//! The gate of a standing job: a command, or a watched page, file or command. Each check has a time limit, obeys the person's rules, and
//! gives way to a person who waits.

use std::{path::Path, time::Duration};

use reveille_base::{types::Effect, words::first_bytes};
use reveille_config::Autonomy;
use reveille_git::Repo;
use reveille_media::content;
use reveille_memory::job::{Job, JobGate, WatchTarget};
use reveille_policy as policy;
use reveille_policy::{Access, Circumstances, Decision, Reach, Risk, SHELL, Subject, What};
use reveille_sandbox::{
    exec::{
        Exec,
        beneath::{PathUse, Roots},
        session::{End, describe_end},
    },
    web::WatchedPage,
};
use reveille_store::JobRow;
use reveille_tools::EDITOR;

use crate::{
    background::jobs::decide::{Compared, Sighting, compare},
    context::WakeError,
    maintain::sync,
    session::Session,
};

/// The maximum duration of a gate's check.
pub(crate) const GATE_BOUND: Duration = Duration::from_secs(10);

/// How often a running check looks for people who wait.
const ASK_EVERY: Duration = Duration::from_millis(300);

/// The maximum size of a finding kept with its run, in bytes.
const FOUND_BYTES_MAX: usize = 8 * 1024;

/// The maximum size of a watched file, in bytes.
const FILE_BYTES_MAX: u64 = 2 * 1024 * 1024;

/// The result of a gate's check.
pub(crate) enum GateResult {
    /// The gate is closed. The state that the check saw is kept.
    Shut { why: String, seen: Option<String> },
    /// The gate is open.
    Open(GateFinding),
    /// The check failed.
    Failed(String),
    /// A person waits, so the check is repeated later.
    GivesWay,
}

/// The finding of a gate.
#[derive(Default)]
pub(crate) struct GateFinding {
    /// Untrusted text. `None` without a gate.
    pub(crate) found: Option<String>,
    pub(crate) is_feed: bool,
    pub(crate) seen: Option<String>,
    /// The origin of that text.
    pub(crate) origin: String,
}

/// Checks a job's gate, but gives way as soon as a person waits.
pub(crate) async fn check_gate(
    session: &Session<'_>,
    repo: &Repo,
    exec: &Exec,
    job: &Job,
    row: &JobRow,
) -> Result<GateResult, WakeError> {
    let Some(gate) = &job.gate else { return Ok(GateResult::Open(GateFinding::default())) };
    let looking = evaluate_gate(session, exec, &job.name, gate, row);
    tokio::pin!(looking);
    loop {
        tokio::select! {
            saw = &mut looking => return Ok(saw),
            () = tokio::time::sleep(ASK_EVERY) => {
                if sync::is_somebody_waiting(session, repo)? {
                    return Ok(GateResult::GivesWay);
                }
            }
        }
    }
}

async fn evaluate_gate(session: &Session<'_>, exec: &Exec, name: &str, gate: &JobGate, row: &JobRow) -> GateResult {
    let fit = |text: &str| first_bytes(&session.context.redactor.redact(text), FOUND_BYTES_MAX).trim_end().to_owned();
    let home = session.context.config.home.as_deref();
    let sighting = match gate {
        JobGate::If(command) => {
            return match run_command(exec, command, home).await {
                Ok((printed, 0)) => GateResult::Open(GateFinding {
                    found: Some(fit(&printed)),
                    origin: format!("the command of the job {name}"),
                    ..GateFinding::default()
                }),
                Ok((_, code)) => GateResult::Shut { why: format!("its command ended with {code}"), seen: None },
                Err(why) => GateResult::Failed(why),
            };
        }
        JobGate::Watch(WatchTarget::Command(command)) => run_command(exec, command, home)
            .await
            .map(|(printed, _)| (Sighting::Text(printed), format!("the command of the job {name}"))),
        JobGate::Watch(WatchTarget::File(path)) => read_file(exec, path, home, &session.context.config.workspace_dir)
            .map(|text| (Sighting::Text(text), format!("a file ({path})"))),
        JobGate::Watch(WatchTarget::Page(url)) => fetch_page(exec, url).await,
    };
    let (sighting, origin) = match sighting {
        Ok(seen) => seen,
        Err(why) => return GateResult::Failed(why),
    };
    let sighting = match sighting {
        Sighting::Text(text) => Sighting::Text(session.context.redactor.redact(&text)),
        feed @ Sighting::Feed(_) => feed,
    };
    let is_feed = matches!(sighting, Sighting::Feed(_));
    let Compared { kept, news, is_first } = compare(row.seen.as_deref(), &sighting);
    match news {
        Some(news) => GateResult::Open(GateFinding { found: Some(fit(&news)), is_feed, seen: Some(kept), origin }),
        None if is_first => {
            GateResult::Shut { why: "this was the first look, kept for comparison".to_owned(), seen: Some(kept) }
        }
        None => GateResult::Shut { why: "nothing has changed".to_owned(), seen: Some(kept) },
    }
}

/// Runs a command and returns its output and exit code.
async fn run_command(exec: &Exec, command: &str, home: Option<&Path>) -> Result<(String, i32), String> {
    check_access(exec, SHELL, What::Shell { text: command, access: Access::default() })?;
    // A subshell, so that `exit` only ends the command.
    let ran = exec
        .run_in_fresh_shell(&format!("(\n{command}\n)"), home, GATE_BOUND)
        .await
        .map_err(|error| error.to_string())?;
    match ran.end {
        End::Code(code) => Ok((ran.printed, code)),
        End::TimedOut => Err(format!("its command took longer than {} s", GATE_BOUND.as_secs())),
        // The output is untrusted text, so it is left out.
        end => Err(format!("its command couldn't be run: {}", describe_end(end, GATE_BOUND))),
    }
}

fn read_file(exec: &Exec, path: &str, home: Option<&Path>, workspace: &Path) -> Result<String, String> {
    let path = match (path.strip_prefix("~/"), home) {
        (Some(below), Some(home)) => home.join(below).display().to_string(),
        _ => path.to_owned(),
    };
    if exec.rules().keeps_back(EDITOR, Path::new(&path)) {
        return Err(format!("your rules don't let me read {path}"));
    }
    check_access(exec, EDITOR, What::Path { path: Path::new(&path), is_write: false })?;
    let roots = Roots::new(exec.shelter().scratch(), workspace)
        .with_granted_folders(&exec.rules().readable_folders(), &exec.rules().writable_folders())
        .without_files(exec.key_files());
    let read = roots.resolve(&path, PathUse::Read).and_then(|place| place.read(FILE_BYTES_MAX));
    let (bytes, _) = read.map_err(|error| error.to_string())?;
    if content::is_text(&bytes) || bytes.is_empty() {
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    let hash = reveille_base::random::format_hex(ring::digest::digest(&ring::digest::SHA256, &bytes).as_ref());
    Ok(format!("a file of {} bytes that isn't text, SHA-256 {hash}", bytes.len()))
}

async fn fetch_page(exec: &Exec, url: &str) -> Result<(Sighting, String), String> {
    const FETCH: &str = "web_fetch";
    check_access(exec, FETCH, What::Url(url))?;
    let came = exec.web().fetch_watched(url, &|to| exec.rules().refuse_redirect(FETCH, to.as_str(), url)).await;
    Ok(match came.map_err(|error| error.to_string())? {
        WatchedPage::Page(page) => (Sighting::Text(page.text), page.origin),
        WatchedPage::Feed(origin, entries) => (Sighting::Feed(entries), origin),
    })
}

/// Refuses an access that the person's rules deny, whoever wrote the job. An access that needs approval was approved with the job.
fn check_access(exec: &Exec, tool: &str, what: What<'_>) -> Result<(), String> {
    if let Some(why) = exec.rules().refusal() {
        return Err(why.to_owned());
    }
    let subject = Subject {
        tool,
        risk: Risk::Safe,
        effect: Effect::Read,
        is_free: false,
        reach: Reach::Within,
        what,
        arguments: "{}",
    };
    let circumstances = Circumstances {
        autonomy: Autonomy::Full,
        taint: None,
        is_sandboxed: true,
        uncovered: None,
        tainted_write: None,
    };
    let verdict = policy::judge(&subject, exec.rules(), &circumstances);
    if verdict.decision == Decision::Deny { Err(verdict.reasons.join(" ")) } else { Ok(()) }
}
