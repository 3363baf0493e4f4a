//! The tools of a background job: additional ones, and missing ones. This only narrows the policy.

use std::collections::BTreeSet;

use reveille_memory::reflect::PersonMemoryEdits;

use super::{World, reflect, steps};

/// A cycle's background job, as seen by its tools.
#[derive(Debug, Clone)]
pub enum Assignment {
    /// A reflection, with the person's own edits to the facts.
    Reflection(PersonMemoryEdits),
    /// A step of a long task.
    Step(StepInHand),
    /// A run of a standing job, with the tools named in its file; `None` means all tools.
    Job(Option<BTreeSet<String>>),
    /// The initiative: a search for the single most useful thing.
    Initiative {
        /// The due civil time, which keys the only message.
        slot: String,
    },
}

/// The step of a cycle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepInHand {
    /// The name of the steps' document.
    pub plan: String,
    /// The step's number, from 1.
    pub step: u32,
    /// Tools with a successful call in this cycle.
    pub done: BTreeSet<String>,
}

/// Tools of every job run, even if its file doesn't name them, because they are needed for planning.
const ALWAYS: [&str; 3] = ["plan", "find_tools", "use_tool"];

/// Returns true for a tool that only background jobs have.
pub(super) fn is_of_own_work(tool: &str) -> bool {
    reflect::is_of_reflection(tool) || tool == steps::STEP_END
}

impl Assignment {
    /// Returns true if the job has a tool of this name.
    pub fn allows(&self, tool: &str) -> bool {
        match self {
            Self::Reflection(_) => reflect::is_allowed(tool),
            Self::Step(_) => !reflect::is_of_reflection(tool),
            Self::Job(None) | Self::Initiative { .. } => !is_of_own_work(tool),
            Self::Job(Some(named)) => !is_of_own_work(tool) && (named.contains(tool) || ALWAYS.contains(&tool)),
        }
    }

    /// Returns the reason for a missing tool.
    fn refusal(&self) -> &'static str {
        match self {
            Self::Reflection(_) => "A reflection reads and remembers; it has no other tools.",
            Self::Job(Some(_)) => "The job's file doesn't name this tool.",
            Self::Step(_) | Self::Job(None) | Self::Initiative { .. } => "This work hasn't this tool.",
        }
    }
}

/// Returns the reason why a cycle lacks a tool; `None` if the tool is available.
pub(super) fn find_refusal(tool: &str, world: &World) -> Option<&'static str> {
    match &world.cycle.assignment {
        Some(work) if !work.allows(tool) => Some(work.refusal()),
        None if reflect::is_of_reflection(tool) => Some("Only the day's reflection has this tool."),
        None if is_of_own_work(tool) => Some("Only a step of a long task has this tool."),
        _ => None,
    }
}
