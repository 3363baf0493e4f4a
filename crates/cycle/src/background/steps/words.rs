//! The opening of a step's cycle: the request, a short account of the whole task, and the step.

use reveille_memory::steps::{StepState, TaskStep, TaskSteps};

use crate::decide::brief::escape;

/// The number of shown results of earlier steps, the latest ones. Steps needed by this one come in addition.
const BEFORE_MAX: usize = 12;

/// The maximum length of shown lessons, in characters; the newest are shown.
const LEARNED_CHARS_MAX: usize = 4_000;

/// The number of later steps named.
const AFTER_MAX: usize = 3;

/// The request to the model.
const ASKED: &str = "\
Nobody waits for you: take this one step of a long task, and no other. The plan below is your own, made at your person's wish; each step \
has a conversation of its own, and only what you give `step_end` reaches the next. Do the step with your tools, check it, and call \
`step_end`: `done` with what is there now; `failed` with what to try instead; `stuck` with the question, if only your person can say how to go on. \
Don't write to your person otherwise.";

/// Renders the opening's block, whose length doesn't grow with the number of steps.
pub(crate) fn render_step(plan: &str, steps: &TaskSteps, step: &TaskStep, done_before: &[String]) -> String {
    let all = steps.steps();
    let mut text = format!(
        "<long_task name=\"{plan}\" step=\"{}\" of=\"{}\">\n{ASKED}\n<goal>{}</goal>",
        step.number,
        all.len(),
        escape(steps.goal().unwrap_or("(none is written down)"))
    );
    let at = all.iter().position(|one| one.number == step.number).unwrap_or(0);
    let is_near = |index: usize| index < at && at - index <= BEFORE_MAX;
    let over = all.iter().enumerate().filter(|(index, one)| {
        matches!(one.state, StepState::Done | StepState::Skipped)
            && (is_near(*index) || steps.is_needed_by(one.number, step))
    });
    let over: Vec<String> = over.map(|(_, one)| format_step(one)).collect();
    if !over.is_empty() {
        text.push_str(&format!("\n<done count=\"{}\">\n{}\n</done>", steps.n_over(), over.join("\n")));
    }
    let learned = render_lessons(all);
    if !learned.is_empty() {
        text.push_str(&format!("\n<learned>\n{learned}\n</learned>"));
    }
    text.push_str(&format!("\n<step n=\"{}\">{}", step.number, escape(&step.what)));
    for (what, value) in [("Tool", &step.tool), ("Done when", &step.done_when), ("Your person says", &step.advice)] {
        if let Some(value) = value {
            text.push_str(&format!("\n{what}: {}", escape(value)));
        }
    }
    if let Some(result) = step.result.as_deref() {
        let result = if step.is_tainted { "it isn't shown here: it may contain untrusted text" } else { result };
        let other = if step.failures > 0 { " Take another way." } else { "" };
        text.push_str(&format!("\nTried before: {}.{other}", escape(result)));
    }
    for done in done_before {
        text.push_str(&format!("\nAlready done, not to be done again: {}", escape(done)));
    }
    text.push_str("\n</step>");
    let next: Vec<String> =
        all.iter().skip(at + 1).take(AFTER_MAX).map(|one| format!("{}. {}", one.number, escape(&one.what))).collect();
    if !next.is_empty() {
        text.push_str(&format!("\n<later>\n{}\n</later>", next.join("\n")));
    }
    text.push_str("\n</long_task>");
    text
}

fn format_step(step: &TaskStep) -> String {
    let result = match &step.result {
        Some(result) if step.is_tainted => {
            format!(
                "(the result may contain untrusted text, {} characters: `look_up` file shows them)",
                result.chars().count()
            )
        }
        Some(result) => escape(result),
        None => step.state.name().to_owned(),
    };
    format!("{}. {}: {result}", step.number, escape(&step.what))
}

/// Renders the lessons so far, the newest if there are too many.
fn render_lessons(steps: &[TaskStep]) -> String {
    let own = steps
        .iter()
        .rev()
        .filter(|step| !step.is_tainted)
        .filter_map(|step| step.learned.as_deref().map(|text| (step.number, text)));
    let (mut lines, mut chars) = (Vec::new(), 0);
    for (number, text) in own {
        chars += text.chars().count();
        if chars > LEARNED_CHARS_MAX {
            break;
        }
        lines.push(format!("{number}: {}", escape(text)));
    }
    lines.reverse();
    lines.join("\n")
}

/// The request to a model that ends its turn without a report.
pub(crate) const REPORT_MISSING: &str = "(Say what came of the step with `step_end`. What isn't said there is lost.)";

/// The result of a step that its model didn't report.
pub(crate) const UNREPORTED: &str = "my AI model ended without reporting a result; the wake's log shows what it did";
