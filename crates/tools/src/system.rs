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

pub(super) fn tool() -> Tool {
    Tool::acting(
        "system_info",
        "Tell what machine this is and how it fares: system, memory, disk, load, battery; and which folders you may use.",
        Effect::Read,
        |_: SystemInfo, world, exec| Box::pin(std::future::ready(described(world, exec))),
    )
    .for_owner()
}

fn described(world: &World, exec: &Exec) -> Outcome {
    let roots = files::roots(world, exec)?;
    let folders = roots.described().map(|(path, whose, may_write)| {
        let what = match (whose, may_write) {
            (Whose::Scratch, _) => "scratch, yours: relative paths begin here",
            (Whose::Left, _) => "what was left in the scratch, may be read",
            (Whose::Brain, _) => "the memory, to be read; its tools write it",
            (Whose::Granted, true) => "may be read and written",
            (Whose::Granted, false) => "may be read",
        };
        format!("- {}: {what}", path.display())
    });
    let folders: Vec<String> = folders.collect();
    let machine = system::described(Path::new("/"), &world.attachments.dir);
    Ok(Done::told(format!("{machine}\nFolders:\n{}", folders.join("\n"))))
}
