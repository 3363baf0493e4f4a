//! `about_me`: the abilities and the setup of this build, so that the assistant answers from facts. A guest gets only the general part.

use schemars::JsonSchema;
use serde::Deserialize;

use reveille_base::types::Effect;
use reveille_sandbox::Sandbox;

use super::{Done, Tool, World, known_projects};

/// The name of the tool.
pub(super) const ABOUT_ME: &str = "about_me";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AboutMe {}

pub(super) fn define_tool() -> Tool {
    Tool::new(
        ABOUT_ME,
        "Describe this assistant and its abilities: version, models, channels, what it may do unasked, its grants, its limits.",
        Effect::Read,
        |_: &AboutMe, world| Ok(Done::from_text(describe_assistant(world))),
    )
}

/// The limits that no setting changes.
const NEVER: &str = "It can't call by phone, change its own settings (`wake init` does), or run between wakes.";

fn describe_assistant(world: &World) -> String {
    let mut lines = vec![format!("Reveille {}.", world.means.about.version)];
    lines.extend(world.means.about.build.iter().cloned());
    if world.sees_all() && world.foreign_chat().is_none() {
        lines.push(format!("Now answers: {}.", world.cycle.model));
        lines.extend(world.means.about.set_up.iter().cloned());
        lines.extend(describe_machine(world));
        lines.extend(describe_memory(world));
    } else {
        lines.push(
            "In this chat it answers, keeps notes and tasks, and reminds. The owner's machine isn't used here."
                .to_owned(),
        );
    }
    let names: Vec<&str> = world.means.catalogue.iter().filter_map(|tool| tool["name"].as_str()).collect();
    if !names.is_empty() {
        lines.push(format!("Tools: {}.", names.join(", ")));
    }
    lines.push(NEVER.to_owned());
    lines.join("\n")
}

/// Describes the usable parts of the machine.
fn describe_machine(world: &World) -> Vec<String> {
    let sandbox = match world.means.shelter.detect_sandbox() {
        Sandbox::None { why } => format!("There is no sandbox, so each command asks: {why}"),
        _ => "Commands run in a sandbox.".to_owned(),
    };
    let hosts: Vec<&str> = world.means.rules.hosts().iter().map(|host| host.name.as_str()).collect();
    let granted: Vec<String> =
        world.means.rules.granted_folders().iter().map(|folder| folder.display().to_string()).collect();
    let list = |what: &str, names: &[String]| match names {
        [] => format!("{what}: none."),
        names => format!("{what}: {}.", names.join(", ")),
    };
    let hosts: Vec<String> = hosts.into_iter().map(str::to_owned).collect();
    vec![sandbox, list("Folders that commands may write to", &granted), list("Hosts that commands may reach", &hosts)]
}

/// Describes the active parts of the memory.
fn describe_memory(world: &World) -> Vec<String> {
    let list = |what: &str, names: Vec<String>| (!names.is_empty()).then(|| format!("{what}: {}.", names.join(", ")));
    let projects = known_projects(&world.memory.documents).into_iter().map(|(name, _)| name).collect();
    let is_job = |path: &String| {
        path.strip_prefix("memory/jobs/")?.strip_suffix(".md").filter(|name| !name.contains('/')).map(str::to_owned)
    };
    let jobs = world.memory.documents.list().iter().filter_map(is_job).collect();
    let skills = world.memory.skills.iter().map(|skill| skill.name.clone()).collect();
    [list("Projects", projects), list("Standing jobs", jobs), list("Skills", skills)].into_iter().flatten().collect()
}
