//! `system_info`: the machine, its state, and the usable folders.

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;

use reveille_base::types::Effect;
use reveille_sandbox::exec::{Exec, beneath::Whose, system};

use super::{Done, Outcome, Tool, World, files};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SystemInfo {}

pub(super) fn define_tool() -> Tool {
    Tool::new_acting(
        "system_info",
        "Describe this machine and its state: system, memory, disk, load, battery; and which folders you may use.",
        Effect::Read,
        |_: SystemInfo, world, exec| Box::pin(std::future::ready(describe_system(world, exec))),
    )
    .for_owner()
}

fn describe_system(world: &World, exec: &Exec) -> Outcome {
    let roots = files::list_roots(world, exec)?;
    let folders = roots.list_folders().map(|(path, whose, may_write)| {
        let what = match (whose, may_write) {
            (Whose::Scratch, _) => "scratch, yours: relative paths begin here",
            (Whose::Left, _) => "left in the scratch by earlier cycles; may be read",
            (Whose::Brain, _) => "the memory; may be read, and its own tools write it",
            (Whose::Granted, true) => "may be read and written",
            (Whose::Granted, false) => "may be read",
        };
        format!("- {}: {what}", path.display())
    });
    let folders: Vec<String> = folders.collect();
    let machine = system::describe_machine(Path::new("/"), &world.conversation.attachments.dir);
    Ok(Done::from_text(format!("{machine}\nFolders:\n{}", folders.join("\n"))))
}
