//! `call_yourself`: the assistant's name, given by its person in plain words. Only the fallback grammar has this tool;
//! for an AI model a change of its orders is a proposal.

use schemars::JsonSchema;
use serde::Deserialize;

use reveille_base::types::Effect;
use reveille_memory as memory;
use reveille_memory::own_name;
use reveille_policy::Reach;

use super::{Done, Outcome, Refusal, Tool, World};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The name.
    name: String,
}

pub(super) fn define_tool() -> Tool {
    Tool::new("call_yourself", "Take the name that your person gives you.", Effect::Idempotent, run)
        .for_owner()
        .with_reach(Reach::Persists)
}

fn run(args: &Args, world: &World) -> Outcome {
    let orders = world.memory.documents.text(memory::CLAUDE);
    let renamed = own_name::replace_name(&orders, &args.name)
        .map_err(|why| Refusal::new(format!("{why}. Nothing was changed.")))?;
    let name = own_name::own_name(&renamed).unwrap_or_default().to_owned();
    if renamed == orders {
        return Ok(Done::from_text(format!("{name} is my name already.")));
    }
    Ok(Done {
        content: format!("From now on I'm {name}."),
        receipt: Some(format!("Took the name {name}")),
        changes: vec![world.memory.documents.stage(memory::CLAUDE, renamed)],
        ..Done::default()
    })
}
