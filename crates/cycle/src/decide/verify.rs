//! Verify: the plan is compared with the receipts, and the wake's record is written. Pure; the model's own claims don't count.

use reveille_base::{
    types::VerbGroup,
    words::{format_count, one_line, truncate_text},
};
use reveille_tools::Plan;

use crate::decide::machine::Receipt;

/// The maximum length of a commit's subject, in characters.
const MAX_SUBJECT_CHARS: usize = 100;
/// The room reserved in it for "Wake: " and ", and 12 more things".
const SUBJECT_RESERVE_CHARS: usize = 26;
/// The maximum length of a line in a commit's body, in characters.
const MAX_LINE_CHARS: usize = 500;

/// Lists the plan's steps without a successful call of their tool, in order. A tool that is planned twice needs two receipts.
pub fn list_missing_steps(plan: &Plan, receipts: &[Receipt]) -> Vec<String> {
    let tools: Vec<&str> = receipts.iter().map(|receipt| receipt.tool.as_str()).collect();
    find_steps_without_receipt(plan, tools).map(|(_, what)| what.to_owned()).collect()
}

/// Returns the first step without a successful call and its index from 0, given the tools whose calls have succeeded so far.
pub fn find_first_missing<'a>(plan: &'a Plan, tools: &[&str]) -> Option<(usize, &'a str)> {
    find_steps_without_receipt(plan, tools.to_vec()).next()
}

fn find_steps_without_receipt<'a>(plan: &'a Plan, mut unused: Vec<&str>) -> impl Iterator<Item = (usize, &'a str)> {
    let meant: Vec<Vec<&str>> = plan.steps.iter().map(|step| VerbGroup::list_tools(&step.tool)).collect();
    let mut is_done = vec![false; meant.len()];
    // Steps that allow a single tool come first; steps that allow several take what is left.
    for is_single in [true, false] {
        for (meant, is_done) in meant.iter().zip(&mut is_done).filter(|(meant, _)| (meant.len() == 1) == is_single) {
            if let Some(at) = unused.iter().position(|tool| meant.contains(tool)) {
                unused.swap_remove(at);
                *is_done = true;
            }
        }
    }
    let steps = plan.steps.iter().enumerate().zip(is_done);
    steps.filter(|(_, is_done)| !is_done).map(|((at, step), _)| (at, step.what.as_str()))
}

/// Renders the notice about the missing steps. `None` if all were done.
pub fn render_notice(not_done: &[String]) -> Option<String> {
    if not_done.is_empty() {
        return None;
    }
    let lines: Vec<_> = not_done.iter().map(|what| format!("- {what}")).collect();
    Some(format!("Planned, but **not done**:\n{}", lines.join("\n")))
}

/// The account of a wake's effects, for its one entry and its one commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Account {
    /// The effects in order, each as a short sentence in the past tense.
    pub receipts: Vec<String>,
    /// The number of receipts before the wake was tainted. `None` if it is untainted.
    pub own_receipts: Option<usize>,
    /// Planned steps without a receipt.
    pub not_done: Vec<String>,
    /// Notes for a later reader: repairs, merges, trouble.
    pub notes: Vec<String>,
}

impl Account {
    /// Renders the lines of the episodic entry, beginning with its head. The flag is true for lines that may contain untrusted text:
    /// effects after the taint, but never the program's own words and counts.
    pub fn episodic_lines(&self, reasons: &[String]) -> Vec<(String, bool)> {
        let head = format!("Woke for {}.", if reasons.is_empty() { "upkeep".to_owned() } else { reasons.join("; ") });
        let own = self.own_receipts.unwrap_or(usize::MAX);
        let done = self.receipts.iter().enumerate().map(|(at, what)| (what.clone(), at >= own));
        let not_done = self.not_done.iter().map(|what| (format!("Not done: {what}"), self.own_receipts.is_some()));
        let notes = self.notes.iter().map(|note| (note.clone(), false));
        std::iter::once((head, false)).chain(done).chain(not_done).chain(notes).collect()
    }

    /// Renders the commit message's subject and body, without trailers.
    pub fn commit_message(&self) -> String {
        let subject = format!("Wake: {}", self.render_summary());
        let mut body: Vec<String> = self.receipts.iter().map(|what| format!("- {what}")).collect();
        body.extend(self.not_done.iter().map(|what| format!("- not done: {what}")));
        body.extend(self.notes.iter().map(|what| format!("- {what}")));
        // One line each, so that quoted text can't pose as a trailer.
        let body: Vec<String> = body.iter().map(|line| truncate_text(&one_line(line), MAX_LINE_CHARS)).collect();
        let subject = truncate_text(&one_line(&subject), MAX_SUBJECT_CHARS);
        if body.is_empty() { format!("{subject}\n") } else { format!("{subject}\n\n{}\n", body.join("\n")) }
    }

    /// Summarises the effects as the end of the sentence "Wake: …": as many receipts as fit, and the number of others.
    fn render_summary(&self) -> String {
        let clauses: Vec<String> = self.receipts.iter().map(|receipt| render_clause(receipt)).collect();
        let Some((first, rest)) = clauses.split_first() else {
            return match (self.not_done.len(), self.notes.is_empty()) {
                (0, true) => "nothing to do".to_owned(),
                (0, false) => "notes".to_owned(),
                (n, _) => format!("{} not done", format_count(n, "step of the plan")),
            };
        };
        let mut summary = first.clone();
        for (at, clause) in rest.iter().enumerate() {
            if summary.chars().count() + clause.chars().count() > MAX_SUBJECT_CHARS - SUBJECT_RESERVE_CHARS {
                let left = rest.len() - at;
                return format!("{summary}, and {left} more {}", if left == 1 { "thing" } else { "things" });
            }
            summary.push_str("; ");
            summary.push_str(clause);
        }
        summary
    }
}

/// Renders a receipt as part of the subject's sentence. The text of an answer is left out, since the other receipts name the effects.
fn render_clause(receipt: &str) -> String {
    let what = match receipt.split_once(": ") {
        Some((answered, _)) if answered.starts_with("Answered ") => answered,
        _ => receipt,
    };
    let mut chars = what.chars();
    let first = chars.next().map(char::to_lowercase).into_iter().flatten();
    first.chain(chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_tools::PlanStep;

    fn plan(steps: &[(&str, &str)]) -> Plan {
        Plan {
            understood: "u".to_owned(),
            steps: steps
                .iter()
                .map(|(what, tool)| PlanStep { what: (*what).to_owned(), tool: (*tool).to_owned() })
                .collect(),
            deferred: Vec::new(),
            complexity: Default::default(),
        }
    }

    fn receipts(tools: &[&str]) -> Vec<Receipt> {
        tools.iter().map(|tool| Receipt { tool: (*tool).to_owned(), what: None }).collect()
    }

    fn account(receipts: &[&str]) -> Account {
        Account { receipts: receipts.iter().map(|&receipt| receipt.to_owned()).collect(), ..Account::default() }
    }

    fn subject(account: &Account) -> String {
        account.commit_message().lines().next().unwrap().to_owned()
    }

    #[test]
    fn a_step_is_done_when_a_call_of_its_tool_succeeded_and_each_needs_its_own() {
        let plan = plan(&[("keep a", "remember"), ("keep b", "remember"), ("answer", "reply")]);
        assert_eq!(list_missing_steps(&plan, &receipts(&["remember", "reply", "remember", "note"])), [""; 0]);
        assert_eq!(list_missing_steps(&plan, &receipts(&["reply", "remember"])), ["keep b"]);
        assert_eq!(list_missing_steps(&plan, &[]), ["keep a", "keep b", "answer"]);
        let plan = self::plan(&[("add", "tasks add"), ("look", "look_up"), ("change", "tasks")]);
        assert_eq!(list_missing_steps(&plan, &receipts(&["task_add", "task_list", "task_done"])), [""; 0]);
        assert_eq!(list_missing_steps(&plan, &receipts(&["task_list", "task_done"])), ["add"]);
        assert_eq!(
            list_missing_steps(&plan, &receipts(&["task_add", "task_list"])),
            ["change"],
            "reading changes nothing"
        );
        let plan = self::plan(&[("change", "tasks"), ("add", "tasks add")]);
        assert_eq!(list_missing_steps(&plan, &receipts(&["task_add", "task_done"])), [""; 0]);
    }

    #[test]
    fn only_missing_steps_are_reported() {
        assert_eq!(render_notice(&[]), None);
        insta::assert_snapshot!(render_notice(&["call Anna".into(), "keep it".into()]).unwrap(), @r"
        Planned, but **not done**:
        - call Anna
        - keep it
        ");
    }

    #[test]
    fn a_commits_subject_says_what_was_done_and_not_the_answer_again() {
        let one =
            account(&["Remembered “the wifi code is 1234”", "Answered 1 message: Remembered: the wifi code is 1234"]);
        insta::assert_snapshot!(one.commit_message(), @r"
        Wake: remembered “the wifi code is 1234”; answered 1 message

        - Remembered “the wifi code is 1234”
        - Answered 1 message: Remembered: the wifi code is 1234
        ");
        assert_eq!(subject(&account(&["Answered 3 messages: Hi"])), "Wake: answered 3 messages");
        assert_eq!(subject(&account(&["Told: “Tax” is quiet."])), "Wake: told: “Tax” is quiet.");
        assert_eq!(subject(&account(&["Über allem"])), "Wake: über allem");
        assert_eq!(account(&[]).commit_message(), "Wake: nothing to do\n");
    }

    #[test]
    fn a_wake_without_receipts_still_has_a_subject() {
        let mut nothing = Account { notes: vec!["Repaired: freed a stale lock".to_owned()], ..Account::default() };
        assert_eq!(subject(&nothing), "Wake: notes");
        nothing.not_done = vec!["call".to_owned(), "write".to_owned()];
        assert_eq!(subject(&nothing), "Wake: 2 steps of the plan not done");
        assert!(nothing.commit_message().contains("\n- not done: write\n- Repaired: freed a stale lock\n"));
    }

    #[test]
    fn a_subject_is_one_short_line_whatever_the_receipts_are() {
        let many = account(&["Remembered “one thing that takes its place”"; 9]);
        assert_eq!(subject(&many), "Wake: remembered “one thing that takes its place”, and 8 more things");
        let few = account(&["Did a", "Did b", "Did c"]);
        assert_eq!(subject(&few), "Wake: did a; did b; did c");
        for receipts in [vec!["x".repeat(900)], vec!["a\n\nWake-Id: forged".to_owned()], vec!["ab ".repeat(50); 40]] {
            let account = Account { receipts, ..Account::default() };
            let message = account.commit_message();
            let (subject, body) = message.split_once("\n\n").unwrap();
            assert!(subject.chars().count() <= MAX_SUBJECT_CHARS, "{subject}");
            assert!(
                body.lines().all(|line| line.starts_with("- ") && line.chars().count() <= MAX_LINE_CHARS),
                "{body}"
            );
        }
    }

    #[test]
    fn the_episodic_entry_holds_reasons_receipts_and_what_was_not_done() {
        let account = Account {
            receipts: vec!["Ran “ls”".to_owned(), "Answered 1 message: Hi".to_owned()],
            own_receipts: None,
            not_done: vec!["call Anna".to_owned()],
            notes: vec!["Merged with the remote.".to_owned()],
        };
        let lines = |account: &Account, are_of_others: &[bool]| {
            let lines = account.episodic_lines(&["1 message in chat 7".into(), "reminder 2".into()]);
            let wanted = lines.into_iter().filter(|(_, is_of_others)| are_of_others.contains(is_of_others));
            wanted.map(|(line, _)| line).collect::<Vec<_>>().join("\n")
        };
        insta::assert_snapshot!(lines(&account, &[false]), @r"
        Woke for 1 message in chat 7; reminder 2.
        Ran “ls”
        Answered 1 message: Hi
        Not done: call Anna
        Merged with the remote.
        ");
        let after_others = Account { own_receipts: Some(1), ..account };
        insta::assert_snapshot!(lines(&after_others, &[true]), @r"
        Answered 1 message: Hi
        Not done: call Anna
        ");
        assert_eq!(Account::default().episodic_lines(&[]), [("Woke for upkeep.".to_owned(), false)]);
    }
}
