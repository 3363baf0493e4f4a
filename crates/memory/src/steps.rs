//! The steps of a long task: a separate document, named by the task's `steps:` key. Each step has the shape of a task.
//!
//! The document is all that lasts between steps: the work ahead, the results, and the lessons. People edit it too; a step they mark as done
//! counts as done. Each edit changes only its own lines.

use reveille_base::words::make_slug;

use super::{
    PLANS_DIR,
    tasks::{Task, TaskDraft, TaskError, TaskList},
};

/// The maximum number of steps per task.
pub const STEPS_MAX: usize = 200;
/// Failed runs of a step in a row before the person is asked.
pub const TRIES_MAX: u32 = 3;
/// The section with the task's goal.
const GOAL: &str = "Goal";
/// The key of a step whose cycle was tainted: its text may be untrusted.
const TAINTED: &str = "tainted";
const TAINTED_VALUE: &str = "others' words may be in it";
/// The maximum length of the title's part in a file name, in characters.
const NAME_CHARS_MAX: usize = 40;

/// Returns the path of the steps with this name. `None` for an invalid name.
pub fn steps_path(name: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_name = !name.is_empty() && name.len() <= 2 * NAME_CHARS_MAX && name.chars().all(is_plain);
    is_name.then(|| format!("{PLANS_DIR}/{name}.md"))
}

/// Returns a name for the steps of a task: the plain characters of its title, or `task`.
pub fn steps_name(title: &str) -> String {
    Some(make_slug(title, NAME_CHARS_MAX)).filter(|name| !name.is_empty()).unwrap_or_else(|| "task".to_owned())
}

/// Returns whether a line marks a step as tainted.
pub(super) fn is_tainted_mark(line: &str) -> bool {
    let key = line.trim_start_matches(['-', '*', '+', ' ', '\t']).to_lowercase();
    key.strip_prefix(TAINTED).is_some_and(|rest| rest.trim_start().starts_with(':'))
}

/// The state of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepState {
    /// To be done.
    Todo,
    /// Done.
    Done,
    /// Left out.
    Skipped,
    /// Waiting for the person.
    Stuck,
}

impl StepState {
    fn parse(status: Option<&str>) -> Self {
        match status.map(|status| status.trim().to_lowercase()).as_deref() {
            Some("done" | "x") => Self::Done,
            Some("skipped" | "dropped" | "cancelled") => Self::Skipped,
            Some("stuck" | "waiting" | "blocked") => Self::Stuck,
            _ => Self::Todo,
        }
    }

    /// Returns the state's word in the document.
    pub fn name(self) -> &'static str {
        match self {
            Self::Todo => "todo",
            Self::Done => "done",
            Self::Skipped => "skipped",
            Self::Stuck => "stuck",
        }
    }

    fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Skipped)
    }
}

/// A step in the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskStep {
    /// The number, counted from 1.
    pub number: u32,
    /// The work to do.
    pub what: String,
    /// The tool that does the work.
    pub tool: Option<String>,
    /// The condition for being done.
    pub done_when: Option<String>,
    /// The steps required first; `None` for all earlier ones.
    pub needs: Option<Vec<u32>>,
    /// The state.
    pub state: StepState,
    /// The result, or the reason there is none.
    pub result: Option<String>,
    /// Lessons for later steps.
    pub learned: Option<String>,
    /// The person's advice.
    pub advice: Option<String>,
    /// The number of runs so far.
    pub tries: u32,
    /// The failed runs since the person's last word.
    pub failures: u32,
    /// Whether the step's text may be untrusted.
    pub is_tainted: bool,
    heading: String,
}

/// A step to be written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepDraft {
    /// The work to do.
    pub what: String,
    /// The tool that does the work.
    pub tool: Option<String>,
    /// The condition for being done.
    pub done_when: Option<String>,
    /// The steps required first; `None` for all earlier ones.
    pub needs: Option<Vec<u32>>,
}

/// The result of a run of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepReport {
    /// The step's new state.
    pub state: StepState,
    /// Whether the run failed.
    pub has_failed: bool,
    /// The result, or the reason there is none.
    pub result: String,
    /// Lessons for later steps.
    pub learned: Option<String>,
    /// Whether these texts may be untrusted.
    pub is_tainted: bool,
}

/// The next action for a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upcoming<'a> {
    /// This step can run.
    Step(&'a TaskStep),
    /// This step waits for the person and blocks the others.
    Stuck(&'a TaskStep),
    /// This step needs missing steps, or steps that depend on it.
    Blocked(&'a TaskStep),
    /// All steps are over.
    Finished,
}

/// The steps of one task.
#[derive(Debug, Clone)]
pub struct TaskSteps {
    list: TaskList,
    steps: Vec<TaskStep>,
}

impl TaskSteps {
    /// Parses a document. Everything that isn't a step stays unchanged.
    pub fn parse(text: &str) -> (Self, Vec<super::Problem>) {
        let (list, mut problems) = TaskList::parse(text);
        let mut steps: Vec<TaskStep> = Vec::new();
        for task in list.tasks().iter().filter(|task| task.title != GOAL) {
            match parse_step(task) {
                Some(step) if steps.iter().any(|known| known.number == step.number) => {
                    problems.push(super::Problem::new(task.line, format!("a second step {}", step.number)));
                }
                Some(step) => steps.push(step),
                None => problems
                    .push(super::Problem::new(task.line, "a step's heading begins with its number: `## 1. What`")),
            }
        }
        (Self { list, steps }, problems)
    }

    /// Returns all steps, in document order.
    pub fn steps(&self) -> &[TaskStep] {
        &self.steps
    }

    /// Returns a step by its number.
    pub fn find_step(&self, number: u32) -> Option<&TaskStep> {
        self.steps.iter().find(|step| step.number == number)
    }

    /// Returns the number of steps that are over.
    pub fn n_over(&self) -> usize {
        self.steps.iter().filter(|step| step.state.is_over()).count()
    }

    /// Lists the steps for people, one line each: number, state, work and result.
    pub fn render_list(&self) -> String {
        let line = |step: &TaskStep| {
            let result = step.result.as_deref().map(|result| format!(": {result}")).unwrap_or_default();
            format!("{}. [{}] {}{result}", step.number, step.state.name(), step.what)
        };
        self.steps.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Returns the goal of the whole task.
    pub fn goal(&self) -> Option<&str> {
        self.find_goal_task()?.get("goal")
    }

    /// Returns the budget of the whole task, in US dollars.
    pub fn budget_usd(&self) -> Option<f64> {
        let written = self.find_goal_task()?.get("budget")?.trim_start_matches('$');
        written.trim().parse().ok().filter(|usd: &f64| usd.is_finite() && *usd >= 0.0)
    }

    fn find_goal_task(&self) -> Option<&Task> {
        self.list.tasks().iter().find(|task| task.title == GOAL)
    }

    /// Returns the next action: the first step to do whose required steps are over.
    pub fn find_next_action(&self) -> Upcoming<'_> {
        let mut waiting = self.steps.iter().filter(|step| !step.state.is_over()).peekable();
        let Some(first) = waiting.peek().copied() else { return Upcoming::Finished };
        let ready = |step: &&TaskStep| step.state == StepState::Todo && self.is_ready(step);
        if let Some(step) = self.steps.iter().find(ready) {
            return Upcoming::Step(step);
        }
        waiting.find(|step| step.state == StepState::Stuck).map_or(Upcoming::Blocked(first), Upcoming::Stuck)
    }

    fn is_ready(&self, step: &TaskStep) -> bool {
        let is_over = |number: &u32| self.find_step(*number).is_some_and(|other| other.state.is_over());
        match &step.needs {
            Some(needs) => needs.iter().all(is_over),
            None => {
                self.steps.iter().take_while(|other| other.number != step.number).all(|other| other.state.is_over())
            }
        }
    }

    /// Returns whether `other` requires `step`, regardless of their states.
    pub fn is_needed_by(&self, step: u32, other: &TaskStep) -> bool {
        match &other.needs {
            Some(needs) => needs.contains(&step),
            None => self
                .steps
                .iter()
                .take_while(|known| known.number != other.number)
                .last()
                .is_some_and(|last| last.number == step),
        }
    }

    /// Builds a new document.
    ///
    /// # Errors
    /// [`TaskError::NoTitle`] for a step without words.
    pub fn draft_document(title: &str, goal: &str, budget_usd: f64, steps: &[StepDraft]) -> Result<String, TaskError> {
        let about = TaskDraft { title: GOAL.to_owned(), ..TaskDraft::default() };
        let title = super::text::one_line(title, super::tasks::MAX_TITLE_CHARS);
        let mut text = TaskList::parse(&format!("# {title}\n")).0.add(&about)?;
        text = set_value(&text, GOAL, "goal", goal)?;
        text = set_value(&text, GOAL, "budget", &budget_usd.to_string())?;
        Self::parse(&text).0.append_steps(steps)
    }

    /// Appends further steps.
    ///
    /// # Errors
    /// As [`Self::draft_document`].
    pub fn append_steps(&self, steps: &[StepDraft]) -> Result<String, TaskError> {
        let mut text = self.list.text().to_owned();
        let before = self.steps.iter().map(|step| step.number).max().unwrap_or(0);
        for (number, step) in (before + 1..).zip(steps) {
            let title = format!("{number}. {}", step.what);
            text = TaskList::parse(&text).0.add(&TaskDraft { title, ..TaskDraft::default() })?;
            let heading = TaskList::parse(&text).0.tasks().last().map(|task| task.title.clone()).unwrap_or_default();
            let needs =
                step.needs.as_ref().map(|needs| needs.iter().map(u32::to_string).collect::<Vec<_>>().join(", "));
            for (key, value) in [("tool", &step.tool), ("done-when", &step.done_when), ("needs", &needs)] {
                if let Some(value) = value {
                    text = set_value(&text, &heading, key, value)?;
                }
            }
        }
        Ok(text)
    }

    /// Records the result of a run.
    ///
    /// # Errors
    /// [`TaskError::NotFound`] if the step no longer exists.
    pub fn record_result(&self, number: u32, report: &StepReport) -> Result<String, TaskError> {
        let step = self.require_step(number)?;
        let failures = if report.has_failed { step.failures + 1 } else { 0 };
        let values = [
            ("status", Some(report.state.name().to_owned())),
            ("result", Some(report.result.clone())),
            ("learned", report.learned.clone()),
            ("tries", Some((step.tries + 1).to_string())),
            ("failures", (failures > 0).then(|| failures.to_string())),
            (TAINTED, report.is_tainted.then(|| TAINTED_VALUE.to_owned())),
        ];
        self.with_keys(step, &values)
    }

    /// Applies a person's word on a step: retry with their advice, or leave the step out.
    ///
    /// # Errors
    /// As [`Self::record_result`].
    pub fn settle_step(&self, number: u32, state: StepState, advice: Option<&str>) -> Result<String, TaskError> {
        let step = self.require_step(number)?;
        let mut values = vec![
            ("status", Some(state.name().to_owned())),
            ("tries", Some((step.tries + 1).to_string())),
            ("failures", None),
        ];
        values.extend(advice.map(|advice| ("advice", Some(advice.to_owned()))));
        self.with_keys(step, &values)
    }

    /// Sets another budget, in US dollars.
    ///
    /// # Errors
    /// [`TaskError::NotFound`] if the goal's section is gone.
    pub fn with_budget(&self, usd: f64) -> Result<String, TaskError> {
        set_value(self.list.text(), GOAL, "budget", &usd.to_string())
    }

    fn require_step(&self, number: u32) -> Result<&TaskStep, TaskError> {
        let not_found = || TaskError::NotFound { query: format!("step {number}"), similar: Vec::new() };
        self.find_step(number).ok_or_else(not_found)
    }

    fn with_keys(&self, step: &TaskStep, values: &[(&str, Option<String>)]) -> Result<String, TaskError> {
        let heading = format!("“{}”", step.heading);
        let mut text = self.list.text().to_owned();
        for (key, value) in values {
            text = TaskList::parse(&text).0.set(&heading, key, value.as_deref())?;
        }
        Ok(text)
    }
}

fn set_value(text: &str, title: &str, key: &str, value: &str) -> Result<String, TaskError> {
    TaskList::parse(text).0.set(&format!("“{title}”"), key, Some(value))
}

fn parse_step(task: &Task) -> Option<TaskStep> {
    let (number, what) = task.title.split_once(['.', ')'])?;
    let number: u32 = number.trim().parse().ok()?;
    let value = |key: &str| task.get(key).map(str::to_owned).filter(|value| !value.is_empty());
    let count = |key: &str| task.get(key).and_then(|value| value.trim().parse().ok()).unwrap_or(0);
    let needs = value("needs").map(|needs| {
        needs.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect::<Vec<u32>>()
    });
    Some(TaskStep {
        number,
        what: what.trim().to_owned(),
        tool: value("tool"),
        done_when: value("done-when"),
        needs: needs.filter(|needs| !needs.is_empty()),
        state: StepState::parse(task.status()),
        result: value("result"),
        learned: value("learned"),
        advice: value("advice"),
        tries: count("tries"),
        failures: count("failures"),
        is_tainted: task.get(TAINTED).is_some(),
        heading: task.title.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drafted(steps: &[&str]) -> TaskSteps {
        let steps: Vec<StepDraft> =
            steps.iter().map(|what| StepDraft { what: (*what).to_owned(), ..StepDraft::default() }).collect();
        TaskSteps::parse(&TaskSteps::draft_document("Sort the photos", "All of 2024 by month", 2.0, &steps).unwrap()).0
    }

    fn report(state: StepState, has_failed: bool) -> StepReport {
        StepReport { state, has_failed, result: "seen".to_owned(), learned: None, is_tainted: false }
    }

    #[test]
    fn a_draft_reads_back_and_its_steps_follow_each_other() {
        let mut steps = drafted(&["List the folder", "Make a plan: by month", "Move them"]);
        assert_eq!((steps.goal(), steps.budget_usd()), (Some("All of 2024 by month"), Some(2.0)));
        for number in 1..=3 {
            let Upcoming::Step(step) = steps.find_next_action() else { panic!("{:?}", steps.find_next_action()) };
            assert_eq!((step.number, step.tries), (number, 0));
            steps = TaskSteps::parse(&steps.record_result(number, &report(StepState::Done, false)).unwrap()).0;
        }
        assert_eq!((steps.find_next_action(), steps.n_over()), (Upcoming::Finished, 3));
        assert_eq!(steps.find_step(2).map(|step| step.what.as_str()), Some("Make a plan: by month"));
    }

    #[test]
    fn a_step_that_is_stuck_holds_up_those_that_need_it_alone() {
        let needs =
            |needs: &[u32]| StepDraft { what: "x".to_owned(), needs: Some(needs.to_vec()), ..StepDraft::default() };
        let text = TaskSteps::draft_document("T", "g", 1.0, &[needs(&[]), needs(&[1]), needs(&[])]).unwrap();
        let steps = TaskSteps::parse(&text).0;
        let stuck = TaskSteps::parse(&steps.record_result(1, &report(StepState::Stuck, true)).unwrap()).0;
        // Without a `needs` of its own, the third waits for all before it.
        assert!(
            matches!(stuck.find_next_action(), Upcoming::Stuck(step) if step.number == 1),
            "{:?}",
            stuck.find_next_action()
        );
        let free = text
            .replace("## 3. x\n", "## 3. x\n- needs: 2\n")
            .replace("## 2. x\n- needs: 1\n", "## 2. x\n- status: done\n");
        let free =
            TaskSteps::parse(&TaskSteps::parse(&free).0.record_result(1, &report(StepState::Stuck, true)).unwrap()).0;
        assert!(
            matches!(free.find_next_action(), Upcoming::Step(step) if step.number == 3),
            "{:?}",
            free.find_next_action()
        );
        let again = TaskSteps::parse(&stuck.settle_step(1, StepState::Todo, Some("use the other disk")).unwrap()).0;
        let Upcoming::Step(step) = again.find_next_action() else { panic!() };
        assert_eq!((step.tries, step.failures, step.advice.as_deref()), (2, 0, Some("use the other disk")));
    }

    #[test]
    fn steps_that_need_each_other_are_blocked_and_never_taken() {
        let steps = TaskSteps::parse("## 1. a\n- needs: 2\n\n## 2. b\n- needs: 1\n\n## 3. c\n- needs: 9\n").0;
        assert!(matches!(steps.find_next_action(), Upcoming::Blocked(step) if step.number == 1));
    }

    #[test]
    fn a_persons_own_lines_stay_to_the_byte() {
        let text = "# Mine\n\nintro\n\n## Goal\n- goal: g\n\n## 1. a\n- note: keep\n\nfree text\n\n## Notes\n- any\n";
        let steps = TaskSteps::parse(text);
        assert_eq!(steps.1.len(), 1, "{:?}", steps.1);
        let ended = steps.0.record_result(1, &report(StepState::Done, false)).unwrap();
        let expected = text.replace("- note: keep\n", "- note: keep\n- status: done\n- result: seen\n- tries: 1\n");
        assert_eq!(ended, expected);
    }

    #[test]
    fn names_are_plain_and_lead_nowhere_else() {
        assert_eq!(steps_name("Sort the *photo* archive!"), "sort-the-photo-archive");
        assert_eq!((steps_name("…"), steps_name("../../etc")), ("task".to_owned(), "etc".to_owned()));
        for name in ["", "..", "a/b", "A", "a.md", "ä"] {
            assert_eq!(steps_path(name), None, "{name}");
        }
        assert_eq!(steps_path("a-1").as_deref(), Some("memory/project-memory/plans/a-1.md"));
    }
}
