//! Tools that the model sees as verbs of one grouped tool, which is shorter to define. Rules, journals, receipts and questions
//! keep the name of the single tool.

/// Several tools under one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerbGroup {
    /// The name that the model calls.
    pub name: &'static str,
    /// Pairs of a verb and its tool.
    pub verbs: &'static [(&'static str, &'static str)],
}

/// The argument that holds the verb.
pub const VERB: &str = "do";

/// All groups.
pub const VERB_GROUPS: [VerbGroup; 5] = [
    VerbGroup {
        name: "memory_update",
        verbs: &[("remember", "remember"), ("forget", "forget"), ("note", "note"), ("context", "context_update")],
    },
    VerbGroup {
        name: "tasks",
        verbs: &[
            ("add", "task_add"),
            ("update", "task_update"),
            ("touch", "task_touch"),
            ("done", "task_done"),
            ("move", "task_move"),
        ],
    },
    VerbGroup {
        name: "reminders",
        verbs: &[("set", "reminder_set"), ("move", "reminder_move"), ("done", "reminder_done")],
    },
    VerbGroup { name: "long_tasks", verbs: &[("start", "long_task_start"), ("change", "long_task_change")] },
    VerbGroup {
        name: "look_up",
        verbs: &[
            ("search", "memory_search"),
            ("file", "memory_read"),
            ("skill", "read_skill"),
            ("tasks", "task_list"),
            ("reminders", "reminder_list"),
            ("attachment", "read_attachment"),
        ],
    },
];

impl VerbGroup {
    /// Finds a group by its name.
    pub fn find_by_name(name: &str) -> Option<&'static Self> {
        VERB_GROUPS.iter().find(|group| group.name == name)
    }

    /// Finds the group that has the tool as a verb.
    pub fn find_by_tool(tool: &str) -> Option<&'static Self> {
        VERB_GROUPS.iter().find(|group| group.verbs.iter().any(|(_, verbs_tool)| *verbs_tool == tool))
    }

    /// Finds the tool of a verb. The tool's own name is accepted too.
    pub fn find_tool(&self, verb: &str) -> Option<&'static str> {
        self.verbs.iter().find(|(word, tool)| *word == verb || *tool == verb).map(|(_, tool)| *tool)
    }

    /// Lists the tools that a name in a plan can mean: one tool for `tasks add`, the tools of all verbs for `tasks`. Any other name stands
    /// for itself.
    pub fn list_tools(name: &str) -> Vec<&str> {
        let mut words = name.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
        let Some(group) = words.next().and_then(Self::find_by_name) else { return vec![name] };
        match words.find(|word| *word != VERB).map(|verb| group.find_tool(verb)) {
            Some(Some(tool)) => vec![tool],
            Some(None) => vec![name],
            None => group.verbs.iter().map(|(_, tool)| *tool).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_a_plan_means_one_verb_or_all_verbs_of_a_group() {
        for name in ["tasks add", "tasks: add", "tasks.add", "tasks(do=add)", "tasks task_add", "task_add"] {
            assert_eq!(VerbGroup::list_tools(name), ["task_add"], "{name}");
        }
        assert_eq!(VerbGroup::list_tools("reminders"), ["reminder_set", "reminder_move", "reminder_done"]);
        for name in ["tasks sing", "mcp__calendar__add", "bash", ""] {
            assert_eq!(VerbGroup::list_tools(name), [name], "a name without a known verb stays unchanged");
        }
    }

    #[test]
    fn a_tool_is_one_verb_and_no_group_has_a_tools_name() {
        let mut tools: Vec<&str> = VERB_GROUPS.iter().flat_map(|group| group.verbs).map(|(_, tool)| *tool).collect();
        let all = tools.len();
        tools.sort_unstable();
        tools.dedup();
        assert_eq!(tools.len(), all);
        assert!(VERB_GROUPS.iter().all(|group| !tools.contains(&group.name)));
    }
}
