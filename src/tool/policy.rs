//! The policy: may a call be carried out? A table outside the conversation, which no tool can change. What isn't allowed is
//! not done.

use super::{Effect, Tool};
use crate::{
    config::Autonomy,
    policy::{Decision, Risk, Verdict},
};

/// Four risks, three levels of autonomy. Reading, planning, answering the asking chat and the mind's own notes never ask;
/// what is destructive always does.
pub fn judge(tool: &Tool, autonomy: Autonomy) -> Verdict {
    let (decision, why) = match (tool.risk, autonomy) {
        _ if tool.effect == Effect::Read => (Decision::Allow, "It only reads.".to_owned()),
        _ if tool.is_free => (Decision::Allow, "It never asks.".to_owned()),
        (Risk::Destructive, _) => (Decision::Ask, "What it does can't be undone.".to_owned()),
        (_, Autonomy::AskAll) => (Decision::Ask, "AUTONOMY=0 asks before anything is changed.".to_owned()),
        (Risk::Dangerous, Autonomy::Smart) => {
            (Decision::Ask, "AUTONOMY=1 asks before what isn't easily undone.".to_owned())
        }
        (risk, autonomy) => (Decision::Allow, format!("AUTONOMY={} allows what is {}.", autonomy as u8, risk.name())),
    };
    Verdict { risk: tool.risk, decision, reasons: vec![why] }
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
            let decided = LEVELS.map(|level| judge(&tool, level).decision == Decision::Ask);
            assert_eq!(decided, asks, "{risk:?}");
        }
    }

    #[test]
    fn who_asks_for_everything_is_still_read_planned_and_answered_for() {
        let registry = Registry::offline();
        let free: Vec<_> = registry
            .tools
            .iter()
            .filter(|tool| judge(tool, Autonomy::AskAll).decision == Decision::Allow)
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
