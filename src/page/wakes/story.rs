//! The page of a wake: the reason, the plan, each turn with its calls, messages and changes. Secrets in the texts are already masked.

use chrono::{DateTime, Utc};
use maud::{Markup, html};

use reveille_account::{
    story::{AskedMessage, JournalState, StoryCall, StoryCallResult, StoryRecording, StoryStep, StoryTurn, WakeStory},
    tell,
    units::{format_duration, format_usd},
};
use reveille_base::words::capitalize;
use reveille_base::{
    approval_text::escape_hidden,
    words::{format_count, format_list, format_spoken_time, one_line, truncate_text},
};
use reveille_git::CommitInFull;
use reveille_policy::Decision;
use reveille_store::WrittenText;

use super::diff;
use crate::page::{
    frame::{PagePlace, render_frame},
    markdown::{WrittenBy, render_markdown},
    parts::{render_exact, render_moment, render_taint_badge},
    site::PageContext,
};

/// States of an unfinished wake, in which the page refreshes itself.
const OPEN: [&str; 3] = ["running", "waiting", "parked"];
/// Characters of a request that is shown expanded.
const ASKED_CHARS: usize = 600;
/// Characters of a request that is the page's title.
const TITLE_CHARS: usize = 80;

/// Renders the page of a wake.
pub(super) fn render_page(
    desk: &PageContext<'_>,
    note: &Markup,
    story: &WakeStory,
    commit: Option<&CommitInFull>,
    can_be_undone: bool,
) -> Markup {
    let teller = StoryView { desk, story };
    let body = html! {
        (teller.render_head())
        (teller.render_actions(can_be_undone))
        (teller.render_why())
        (teller.render_plan())
        (teller.render_steps())
        (teller.render_journal_state())
        (teller.render_not_done())
        (teller.render_said())
    };
    // An ordered undo also makes the page refresh itself.
    let is_open = OPEN.contains(&story.state) || story.undone == Some(false);
    let content = html! {
        (note)
        @if is_open { section #live-wake data-live { (body) } } @else { (body) }
        h2 { "What changed" }
        @match (commit, &story.commit) {
            (Some(commit), _) => (render_changes(commit)),
            (None, Some(id)) => p { "Its commit " code { (id) } " is no longer in the memory." },
            (None, None) if is_open => p { "Nothing yet: changes are committed at the end." },
            (None, None) => p { "Nothing: it has no commit." },
        }
    };
    let at = story
        .started_at
        .map_or_else(|| "at an unknown time".to_owned(), |at| format_spoken_time(at, desk.now, desk.config.timezone));
    // What others wrote makes no title.
    let asked = story.asked.first().filter(|asked| asked.taint.is_none());
    let request = asked.map(|asked| escape_hidden(&asked.first_words(TITLE_CHARS))).filter(|words| !words.is_empty());
    render_frame(PagePlace::Wakes, &request.unwrap_or_else(|| format!("What I did {at}")), &content)
}

/// Renders the page of a commit without a wake in this database.
pub(super) fn render_commit(desk: &PageContext<'_>, commit: &CommitInFull) -> Markup {
    let content = html! {
        p .meta {
            (render_moment(commit.commit.at, desk.now, desk.config.timezone)) " · commit by " (escape_hidden(&commit.commit.author))
        }
        (render_changes(commit))
    };
    render_frame(PagePlace::Wakes, &escape_hidden(&truncate_text(&one_line(&commit.commit.subject), 100)), &content)
}

fn render_changes(commit: &CommitInFull) -> Markup {
    html! {
        @if commit.diff.is_empty() { p { "No line of the memory changed." } } @else { (diff::render_changes(&commit.diff)) }
        details {
            summary { "Details of the commit" }
            p .meta { code { (commit.commit.id) } }
            pre { (escape_hidden(commit.message.trim_end())) }
            @if !commit.stat.is_empty() { pre { (escape_hidden(&commit.stat)) } }
        }
    }
}

struct StoryView<'a> {
    desk: &'a PageContext<'a>,
    story: &'a WakeStory,
}

impl StoryView<'_> {
    fn render_time(&self, at: Option<DateTime<Utc>>) -> Markup {
        html! {
            @match at {
                Some(at) => (render_moment(at, self.desk.now, self.desk.config.timezone)),
                None => "at an unknown time",
            }
        }
    }

    /// Renders a time with seconds, since turns follow each other closely.
    fn render_clock(&self, at: Option<DateTime<Utc>>) -> Markup {
        html! {
            @match at {
                Some(at) => time datetime=(at.to_rfc3339()) {
                    (at.with_timezone(&self.desk.config.timezone).format("%H:%M:%S"))
                },
                None => "at an unknown time",
            }
        }
    }

    /// Classifies the author of a text of the model: `Others` if untrusted text may have shaped it.
    fn classify_writer(&self, taint: Option<&String>) -> WrittenBy {
        if taint.is_some() || !self.story.taints.is_empty() { WrittenBy::Others } else { WrittenBy::Own }
    }

    fn render_head(&self) -> Markup {
        let story = self.story;
        let turns = story.turns().count();
        html! {
            p {
                (render_state(story)) " "
                @if !story.taints.is_empty() { (render_taint_badge(Some(&escape_hidden(&format_list(&story.taints))))) }
            }
            p .meta {
                "Began " (self.render_time(story.started_at)) ", started by " (story.trigger)
                @if let Some(ms) = story.took_ms() { ", took " (format_duration(ms)) }
                ". "
                @match &story.model {
                    None => "Done by rule, without an AI model: $0.00.",
                    Some(model) => { (model) ", " (format_count(turns, "turn")) ", " (tell::format_spending(&story.spent.tokens, Some(story.spent.cost_usd))) "." }
                }
                @if story.reserved_usd > 0.0 {
                    " Of that, " (format_usd(story.reserved_usd)) " is reserved for a request with an unknown outcome."
                }
                @if story.resumed > 0 { " It was cut off " (format_count(story.resumed as usize, "time")) " and resumed." }
            }
            @if let Some(error) = &story.error { p .note .bad { strong { "Problem: " } (escape_hidden(error)) } }
        }
    }

    fn render_actions(&self, can_be_undone: bool) -> Markup {
        let id = &self.story.wake_id;
        let has_requests = self.story.model.is_some() && self.story.journal != JournalState::Forgotten;
        html! {
            div .actions {
                @if can_be_undone {
                    form method="get" action={ "/wakes/" (id) "/undo" } { button type="submit" { "Undo…" } }
                }
                @if has_requests { a href={ "/wakes/" (id) "/raw" } { "The exact requests" } }
            }
        }
    }

    fn render_why(&self) -> Markup {
        let reasons = &self.story.reasons;
        html! {
            h2 { "Why" }
            p { @if reasons.is_empty() { "Upkeep." } @else { (escape_hidden(&reasons.join("; "))) "." } }
            @for asked in &self.story.asked { (self.render_asked(asked)) }
        }
    }

    fn render_asked(&self, asked: &AskedMessage) -> Markup {
        let whole = escape_hidden(&asked.text);
        let is_long = whole.chars().count() > ASKED_CHARS;
        html! {
            figure .card {
                figcaption .meta {
                    @match &asked.from { Some(from) => (escape_hidden(&one_line(from))), None => "You" }
                    ", " (self.render_time(asked.at)) " " (render_taint_badge(asked.taint.as_deref()))
                }
                @if is_long {
                    details { summary { (truncate_text(&one_line(&whole), 120)) } blockquote { (render_lines(&whole)) } }
                } @else {
                    blockquote { (render_lines(&whole)) }
                }
            }
        }
    }

    fn render_plan(&self) -> Markup {
        let Some(plan) = &self.story.plan else { return html! {} };
        // A step planned twice may have been done once.
        let mut not_done = self.story.not_done.clone().unwrap_or_default();
        let steps = plan.steps.iter().map(|step| {
            let place = not_done.iter().position(|what| *what == step.what);
            (step, place.map(|place| not_done.swap_remove(place)).is_some())
        });
        let steps: Vec<_> = steps.collect();
        html! {
            h2 { "Plan" }
            p { (escape_hidden(&plan.understood)) " " span .badge { (plan.complexity.name()) } }
            @if !steps.is_empty() {
                ol {
                    @for (step, is_not_done) in steps {
                        li {
                            (escape_hidden(&step.what)) " " span .meta { "(" (escape_hidden(&step.tool)) ")" }
                            @if is_not_done { " " span .badge .bad { "not done" } }
                        }
                    }
                }
            }
            @if !plan.deferred.is_empty() {
                p .meta { "Later:" }
                ul { @for later in &plan.deferred { li { (escape_hidden(later)) } } }
            }
        }
    }

    fn render_steps(&self) -> Markup {
        html! {
            @if !self.story.steps.is_empty() {
                h2 { "Step by step" }
                ol .steps { @for step in &self.story.steps { li { (self.render_step(step)) } } }
            }
        }
    }

    fn render_step(&self, step: &StoryStep) -> Markup {
        let line = |at: &Option<DateTime<Utc>>, words: String| html! { p { span .meta { (self.render_clock(*at)) } " " (words) } };
        match step {
            StoryStep::Turn(turn) => self.render_turn(turn),
            StoryStep::Heard { at, messages } => {
                let numbers: Vec<String> = messages.iter().map(i64::to_string).collect();
                line(at, format!("More messages came in: {}.", format_list(&numbers)))
            }
            StoryStep::Discarded { at, why, usage, cost_usd } => line(
                at,
                format!("A turn was cut off: {} ({}).", escape_hidden(why), tell::format_spending(usage, *cost_usd)),
            ),
            StoryStep::Asking { at } => line(at, "The AI model was asked and hasn't answered yet.".to_owned()),
            StoryStep::Limit { at, reasons, decided } => {
                let decided = match decided {
                    None => "It is waiting for your answer.".to_owned(),
                    Some(decision) => tell::describe_decider(decision, "to continue"),
                };
                line(at, format!("Asked whether to continue: {} {decided}", escape_hidden(&reasons.join(" "))))
            }
            StoryStep::Folded { at, messages, before, after } => line(
                at,
                format!(
                    "The conversation was shortened: {}, {before} tokens before, {after} after.",
                    format_count(*messages, "message")
                ),
            ),
            StoryStep::Handed { at, from, model } => {
                line(at, format!("Switched from {from} to {model}, in a new conversation."))
            }
            StoryStep::Answered { at, messages } => match messages.len() {
                0 => line(at, "Its last text was sent.".to_owned()),
                n => line(at, format!("Its last text was the answer to {}.", format_count(n, "message"))),
            },
            StoryStep::ByRule { at, receipts } => html! {
                p { span .meta { (self.render_clock(*at)) } " Done by rule:" }
                ul { @for receipt in receipts { li { (escape_hidden(receipt)) } } }
            },
        }
    }

    fn render_turn(&self, turn: &StoryTurn) -> Markup {
        let text = turn.text.trim();
        html! {
            h3 { "Turn " (turn.number) }
            p .meta {
                (self.render_clock(turn.asked_at))
                @if let Some(ms) = turn.took_ms { ", took " (format_duration(ms)) }
                ", " (tell::format_spending(&turn.usage, turn.cost_usd)) (tell::describe_stop(&turn.stop))
            }
            @if !text.is_empty() { (render_markdown(text, self.classify_writer(None))) }
            @for call in &turn.calls { (self.render_call(call)) }
            @if text.is_empty() && turn.calls.is_empty() { p .meta { "Nothing more." } }
        }
    }

    fn render_call(&self, call: &StoryCall) -> Markup {
        html! {
            div .card .call {
                h4 {
                    code { (escape_hidden(&call.tool)) } " " (render_outcome(call))
                    @if let Some(ms) = call.took_ms { " " span .meta { "took " (format_duration(ms)) } }
                }
                @if self.is_plan_shown_above(call) {
                    p .meta { "The plan, as above." }
                } @else {
                    (render_exact("Asked for", &escape_hidden(&format_json(&call.input))))
                }
                @if let Some(verdict) = &call.verdict {
                    p .meta {
                        (capitalize(&tell::describe_verdict(verdict.decision, call, &escape_hidden(&verdict.reasons.join(" ")))))
                        @if call.decided.is_none() && verdict.decision == Decision::Ask {
                            " " a href="/questions" { "Answer it" }
                        }
                    }
                }
                @match &call.result {
                    Some(result) => (self.render_result(result)),
                    None if call.began_at.is_some() => p { "Started; the outcome isn't known." },
                    None => {}
                }
            }
        }
    }

    fn render_result(&self, result: &StoryCallResult) -> Markup {
        let what = if result.is_error { "Failed" } else { "Result" };
        html! {
            (render_taint_badge(result.taint.as_deref().map(escape_hidden).as_deref()))
            @if result.has_image { p .meta { "The AI model was also shown a picture." } }
            @if !result.content.trim().is_empty() { (render_exact(what, &escape_hidden(result.content.trim()))) }
        }
    }

    /// True for the call that made the plan shown above.
    fn is_plan_shown_above(&self, call: &StoryCall) -> bool {
        call.tool == "plan" && self.story.plan.is_some() && serde_json::from_str(&call.input).ok() == self.story.plan
    }

    fn render_not_done(&self) -> Markup {
        html! {
            @if let Some(not_done @ [_, ..]) = self.story.not_done.as_deref() {
                h2 { "Planned, but not done" }
                ul { @for what in not_done { li { (escape_hidden(what)) } } }
            }
        }
    }

    fn render_said(&self) -> Markup {
        html! {
            @if !self.story.said.is_empty() {
                h2 { "What I said" }
                @for text in &self.story.said { (self.render_text(text)) }
            }
        }
    }

    fn render_text(&self, text: &WrittenText) -> Markup {
        html! {
            div .card {
                p .meta {
                    (tell::describe_kind(text)) " "
                    @if text.chat.is_terminal() { "at the terminal" } @else { "to chat " (text.chat) }
                    ", "
                    @match (text.is_taken_back, text.sent_at) {
                        (true, None) => "withdrawn before it was sent",
                        (_, Some(at)) => { "sent " (self.render_time(Some(at))) }
                        (false, None) => "not sent yet",
                    }
                    " " (render_taint_badge(text.taint.as_deref().map(escape_hidden).as_deref()))
                }
                (render_markdown(&text.text, self.classify_writer(text.taint.as_ref())))
            }
        }
    }

    fn render_journal_state(&self) -> Markup {
        html! {
            @match self.story.journal {
                JournalState::Whole => {}
                JournalState::Forgotten => p .note {
                    "Its turns and calls are older than " code { "KEEP_DAYS" } " and were deleted. This is what remains."
                },
                JournalState::Damaged { lines } => p .note .bad { (format_count(lines, "line")) " of its journal can't be read." },
            }
            @if let Some(StoryRecording { narrative, calls }) = &self.story.recording {
                h2 { "What remains of it" }
                p { (render_lines(&escape_hidden(narrative))) }
                ul { @for call in calls { li { code { (escape_hidden(&call.tool)) " " (escape_hidden(&truncate_text(&one_line(&call.input), 160))) } } } }
            }
        }
    }
}

/// Renders the wake's state as a badge.
fn render_state(story: &WakeStory) -> Markup {
    let class = match (story.state, story.undone) {
        (_, Some(true)) => "",
        ("done" | "running", None) => "ok",
        ("failed" | "abandoned", None) => "bad",
        _ => "warn",
    };
    html! { span class={ "badge " (class) } { (tell::describe_state(story)) } }
}

/// Renders a call's outcome as a badge.
fn render_outcome(call: &StoryCall) -> Markup {
    let decision = call.verdict.as_ref().map(|verdict| verdict.decision);
    let (class, words) = match (&call.result, decision, &call.decided) {
        (Some(result), ..) if !result.is_error => ("ok", "worked"),
        (_, Some(Decision::Deny), _) => ("bad", "refused"),
        (_, _, Some(decided)) if !decided.is_approved => ("bad", "not allowed"),
        (Some(_), ..) => ("bad", "failed"),
        (None, Some(Decision::Ask), None) => ("warn", "waiting for your answer"),
        (None, ..) if call.began_at.is_some() => ("warn", "under way"),
        (None, ..) => ("", "not run"),
    };
    html! { span class={ "badge " (class) } { (words) } }
}

/// Formats JSON with a line per member. Other text stays unchanged.
fn format_json(json: &str) -> String {
    match serde_json::from_str::<serde_json::Value>(json) {
        Ok(value) => serde_json::to_string_pretty(&value).unwrap_or_else(|_| json.to_owned()),
        Err(_) => json.to_owned(),
    }
}

/// Renders a text with its line breaks.
fn render_lines(text: &str) -> Markup {
    html! {
        @for (at, line) in text.trim().lines().enumerate() {
            @if at > 0 { br; }
            (line)
        }
    }
}
