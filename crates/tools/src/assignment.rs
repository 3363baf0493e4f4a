//! What a cycle of own work may do: which tools it has besides the usual ones, and which of these it hasn't. This only narrows what
//! the policy allows.

use std::collections::BTreeSet;

use reveille_memory::reflect::PersonsDoing;

use super::{World, reflect, steps};

/// The own work of a cycle, as its tools see it.
#[derive(Debug, Clone)]
pub enum Assignment {
    /// A look back, with a person's own doing in the facts.
    Reflection(PersonsDoing),
    /// A step of a long task.
    Step(StepInHand),
    /// A run of a standing job, with the tools that its file names; none: all.
    Job(Option<BTreeSet<String>>),
    /// A look for the one most useful thing.
    Initiative {
        /// The civil time at which it was due: its one message is keyed by that.
        slot: String,
    },
}

/// The step that a cycle takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepInHand {
    /// The name of its steps' file.
    pub plan: String,
    /// Its number, from 1.
    pub step: u32,
    /// Tools of which a call has succeeded in its cycle.
    pub done: BTreeSet<String>,
}

/// Tools that every run of a job has, whatever its file names: without them it can't say what it does.
const ALWAYS: [&str; 3] = ["plan", "find_tools", "use_tool"];

/// Whether no cycle has a tool of this name but one of such work.
pub(super) fn is_of_own_work(tool: &str) -> bool {
    reflect::is_of_reflection(tool) || tool == steps::STEP_END
}

impl Assignment {
    /// Whether it has a tool of this name.
    pub fn allows(&self, tool: &str) -> bool {
        match self {
            Self::Reflection(_) => reflect::is_allowed(tool),
            Self::Step(_) => !reflect::is_of_reflection(tool),
            Self::Job(None) | Self::Initiative { .. } => !is_of_own_work(tool),
            Self::Job(Some(named)) => !is_of_own_work(tool) && (named.contains(tool) || ALWAYS.contains(&tool)),
        }
    }

    /// Why it hasn't a tool.
    fn refusal(&self) -> &'static str {
        match self {
            Self::Reflection(_) => "A look back reads and remembers; it has no other tools.",
            Self::Job(Some(_)) => "The job's file doesn't name this tool.",
            Self::Step(_) | Self::Job(None) | Self::Initiative { .. } => "This work hasn't this tool.",
        }
    }
}

/// Why a cycle can't have a tool.
pub(super) fn refusal(tool: &str, world: &World) -> Option<&'static str> {
    match &world.assignment {
        Some(work) if !work.allows(tool) => Some(work.refusal()),
        None if reflect::is_of_reflection(tool) => Some("Only a look back at the day has this tool."),
        None if is_of_own_work(tool) => Some("Only a step of a long task has this tool."),
        _ => None,
    }
}
