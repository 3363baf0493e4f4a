//! `plan`: the model's understanding and intended steps, written to the flight recorder before acting and compared
//! with the receipts afterwards.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use reveille_base::types::Effect;

use super::{Done, Outcome, Refusal, Tool, World, check_text};

/// Maximum number of steps; more are a project rather than a wake.
pub const MAX_STEPS: usize = 30;

/// A model's plan for one cycle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// What was asked for.
    pub understood: String,
    /// What you will do now.
    #[serde(default)]
    pub steps: Vec<PlanStep>,
    /// What waits, and why.
    #[serde(default)]
    pub deferred: Vec<String>,
    /// How far you may go before your person is asked; one later plan may raise it.
    #[serde(default)]
    pub complexity: Complexity,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanStep {
    /// What will be done.
    pub what: String,
    /// What does it: `reply`, `tasks add`.
    pub tool: String,
}

/// How much work a plan is: how far you may go before your person is asked whether to go on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Complexity {
    /// 10 rounds or 60 seconds.
    Quick,
    /// 30 rounds or 5 minutes.
    #[default]
    Medium,
    /// 100 rounds or 30 minutes.
    Complex,
    /// 500 rounds.
    Background,
}

impl Complexity {
    /// Returns the name used by the model.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Medium => "medium",
            Self::Complex => "complex",
            Self::Background => "background",
        }
    }
}

pub(super) fn define_tool() -> Tool {
    Tool::new(
        "plan",
        "Say what you understood and will do, before you act, and again when that changes: the last plan counts. A step without a \
         successful call of its tool is told to your person as not done.",
        Effect::Idempotent,
        run,
    )
    .never_ask()
}

fn run(plan: &Plan, world: &World) -> Outcome {
    check_text(&plan.understood, "understood", 2_000)?;
    if world.person_edits().is_some() && plan.complexity == Complexity::Background {
        return Err(Refusal::new("A reflection shouldn't take hours: plan it smaller.".to_owned()));
    }
    if plan.steps.len() > MAX_STEPS {
        return Err(Refusal::new(format!(
            "{} steps are too many for one wake; plan at most {MAX_STEPS} and defer the rest.",
            plan.steps.len()
        )));
    }
    for step in &plan.steps {
        check_text(&step.what, "a step's what", 500)?;
        check_text(&step.tool, "a step's tool", 64)?;
    }
    Ok(Done::from_text("The plan is written down. Go on."))
}
