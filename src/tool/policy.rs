//! The policy: may a call be carried out? A table outside the conversation, which no tool can change. What isn't allowed is
//! not done.

use super::{Effect, Risk, Tool};
use crate::config::Autonomy;

/// What the policy says of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Carry it out.
    Allow,
    /// A person has to agree first. Until there is a way to ask, it is not done.
    Ask,
}

/// Four risks, three levels of autonomy. Reading, planning, answering the asking chat and the mind's own notes never ask;
/// what is destructive always does.
pub fn decide(tool: &Tool, autonomy: Autonomy) -> Decision {
    let asks = match (tool.risk, autonomy) {
        _ if tool.effect == Effect::Read || tool.is_free => false,
        (Risk::Destructive, _) | (_, Autonomy::AskAll) => true,
        (Risk::Dangerous, autonomy) => autonomy < Autonomy::Full,
        (Risk::Safe | Risk::Caution, _) => false,
    };
    if asks { Decision::Ask } else { Decision::Allow }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::Registry;

    const LEVELS: [Autonomy; 3] = [Autonomy::AskAll, Autonomy::Smart, Autonomy::Full];

    #[test]
    fn each_risk_asks_at_the_levels_of_the_table() {
        let table = [
            (Risk::Safe, [true, false, false]),
            (Risk::Caution, [true, false, false]),
            (Risk::Dangerous, [true, true, false]),
            (Risk::Destructive, [true, true, true]),
        ];
        for (risk, asks) in table {
            let registry = Registry::standard();
            let mut tool = registry.tools.into_iter().find(|tool| tool.name == "remember").unwrap();
            tool.risk = risk;
            let decided = LEVELS.map(|level| decide(&tool, level) == Decision::Ask);
            assert_eq!(decided, asks, "{risk:?}");
        }
    }

    #[test]
    fn who_asks_for_everything_is_still_read_planned_and_answered_for() {
        let registry = Registry::offline();
        let free: Vec<_> = registry
            .tools
            .iter()
            .filter(|tool| decide(tool, Autonomy::AskAll) == Decision::Allow)
            .map(|tool| tool.name)
            .collect();
        for name in ["plan", "reply", "note", "context_update", "memory_read", "memory_search", "read_skill", "keep"] {
            assert!(free.contains(&name), "{name}");
        }
        for name in ["tell", "remember", "forget", "task_add", "task_done", "reminder_set", "reminder_done"] {
            assert!(!free.contains(&name), "{name}");
        }
    }
}
