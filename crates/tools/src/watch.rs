//! `watch`: regular checks of a page, a feed, a file or a command's output, without a model. A watch is a standing job
//! without instructions: changes are reported by rule, as untrusted text.
//!
//! The call is judged like reading the target. A command always asks, and so does a watch that nobody has just requested.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use reveille_base::{types::Effect, words};
use reveille_memory::{
    is_job,
    job::{Job, JobGate, MAX_JOBS, WatchTarget, job_name, job_path},
};
use reveille_policy::Reach;
use reveille_sandbox::web::{self, Grants};
use reveille_store::Change;

use super::{Done, Outcome, Refusal, Run, Tool, Touched, World, check_text};

/// Maximum length of a generated name, in characters.
const MAX_SLUG_CHARS: usize = 40;
/// Maximum number of names tried.
const MAX_NAMES: u32 = 100;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// `https://…` (a page or a feed), `file:/home/ann/x.md`, or `command: df -h`.
    what: String,
    /// How often, such as `every 2 hours` or `every day at 8`.
    when: String,
    /// A short name of lower-case letters, digits and dashes.
    #[serde(default)]
    name: Option<String>,
}

pub(super) fn define_tool() -> Tool {
    let tool = Tool::new(
        "watch",
        "Watch a page, a feed, a file or a command's output for your person: they are told what changed, without you. It makes a job \
         that they can see and end (memory/jobs/).",
        Effect::Staged,
        run,
    );
    let tool =
        tool.with_reach(Reach::Persists).for_owner().with_targets(|args: &Args| match WatchTarget::parse(&args.what) {
            Ok(WatchTarget::Page(url)) => Touched::Url(url),
            Ok(WatchTarget::File(path)) => Touched::Path { path: PathBuf::from(path), is_write: false },
            Ok(WatchTarget::Command(_)) | Err(_) => {
                Touched::Edits { names: vec![job_path(args.name.as_deref().unwrap_or("watch"))], removes: false }
            }
        });
    tool.ask_without_request()
}

fn run(args: &Args, world: &World) -> Outcome {
    let what = check_text(&args.what, "what", 2_000)?;
    let when = check_text(&args.when, "when", 100)?;
    let target = WatchTarget::parse(&what).map_err(|why| Refusal::new(format!("{why}. Nothing was done.")))?;
    if let WatchTarget::File(path) = &target
        && !world.means.rules.readable_folders().iter().any(|root| PathBuf::from(path).starts_with(root))
    {
        return Err(Refusal::new(format!(
            "{path} isn't an absolute path beneath a folder that may be read (`[files] read` in policy.toml). Nothing was done."
        )));
    }
    check_target(&target, world).map_err(|why| Refusal::new(format!("{why} Nothing was done.")))?;
    if world.memory.documents.list().iter().filter(|path| is_job(path)).count() >= MAX_JOBS {
        return Err(Refusal::new(format!("There are {MAX_JOBS} jobs, which is the limit. Nothing was done.")));
    }
    let name = match &args.name {
        Some(name) => name.clone(),
        None => free_name(&generate_name(&target), world)?,
    };
    let path = job_path(&name);
    if world.memory.documents.get(&path).is_some() {
        return Err(Refusal::new(format!("There is a job {name:?} already; give another name. Nothing was done.")));
    }
    let text = format!("---\nwhen: {when}\nwatch: '{}'\n---\n", target.to_string().replace('\'', "''"));
    let wrong = |why: String| Refusal::new(format!("{why}. Nothing was done."));
    let job = Job::parse(&name, &text).map_err(|problems| {
        wrong(problems.first().map_or_else(|| "It can't be a job".to_owned(), |problem| problem.what.clone()))
    })?;
    job.resolve_schedule(world.local_time()).map_err(|problem| wrong(problem.what))?;
    // The written job must mean exactly the request, whatever the arguments contain.
    if job.gate != Some(JobGate::Watch(target.clone())) || job.when != when || job.body.is_some() {
        return Err(wrong("This can't be stored as it is".to_owned()));
    }
    let done = Done {
        content: format!("I watch {target} {when}. The first look only records. The job is named “{name}” ({path})."),
        receipt: Some(format!("Watches {target} {when} (job “{name}”)")),
        changes: vec![world.memory.documents.stage(&path, text)],
        ..Done::default()
    };
    Ok(world.append_wake_warning(done))
}

/// Checks that the target can be watched at all.
fn check_target(target: &WatchTarget, world: &World) -> Result<(), String> {
    match target {
        WatchTarget::Page(url) => {
            let granted: Vec<String> =
                world.means.rules.hosts().iter().map(|host| format!("{}:{}", host.name, host.port)).collect();
            web::check_url(url, &Grants::new(granted.iter().map(String::as_str))).map_err(|error| error.to_string())
        }
        WatchTarget::File(path) => match std::fs::metadata(path) {
            Ok(found) if found.is_file() => Ok(()),
            Ok(_) => Err(format!("{path} isn't a file, so I can't watch it.")),
            Err(error) => Err(format!("{path} can't be looked at ({error}), so I can't watch it.")),
        },
        WatchTarget::Command(_) if world.means.shelter.is_there() => Ok(()),
        WatchTarget::Command(_) => Err(
            "A watched command runs in a sandbox alone, and this machine has none that works (`health check` says why)."
                .to_owned(),
        ),
    }
}

impl Tool {
    /// Describes the standing jobs that a call would write. The person who is asked then sees the job's whole
    /// behaviour, not only the changed lines.
    pub(super) fn describe_written_jobs(&self, touched: &Touched, input: &str, world: &World) -> Vec<String> {
        let Run::Values(run) = &self.run else { return Vec::new() };
        if !touched.edits_job() {
            return Vec::new();
        }
        let changes = run(input, world).map(|done| done.changes).unwrap_or_default();
        let jobs = changes.iter().filter_map(|change| match change {
            Change::File(file) => Some((job_name(&file.path)?, &file.content)),
            _ => None,
        });
        let in_words = |(name, text): (&str, &String)| match Job::parse(name, text) {
            Ok(job) => job.describe(),
            Err(problems) => {
                let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
                format!(
                    "After this change the job `{name}` couldn't be read and wouldn't run: {}.",
                    problems.join("; ")
                )
            }
        };
        jobs.map(in_words).collect()
    }
}

/// Generates a name from the target.
fn generate_name(target: &WatchTarget) -> String {
    let text = match target {
        WatchTarget::Page(url) => url.split("://").nth(1).unwrap_or(url).trim_start_matches("www."),
        WatchTarget::File(path) => path.rsplit('/').next().unwrap_or(path),
        WatchTarget::Command(command) => command,
    };
    format!("watch-{}", words::make_slug(text, MAX_SLUG_CHARS)).trim_end_matches('-').to_owned()
}

fn free_name(name: &str, world: &World) -> Result<String, Refusal> {
    let is_free = |name: &String| world.memory.documents.get(&job_path(name)).is_none();
    let numbered = (2..MAX_NAMES).map(|n| format!("{name}-{n}"));
    std::iter::once(name.to_owned())
        .chain(numbered)
        .find(is_free)
        .ok_or_else(|| Refusal::new("No name is free for it; give one. Nothing was done."))
}
