//! The page of a wake: the reason, the plan, each turn with its calls, messages and changes. Secrets in the texts are already masked.

use chrono::{DateTime, Utc};
use maud::{Markup, html};

use reveille_account::{
    story::{AskedMessage, CallResultTold, JournalKept, StoryCall, StoryRecording, StoryStep, StoryTurn, WakeStory},
    tell,
    units::{took, usd},
};
use reveille_base::{
    approval_text::visible,
    words::{count, list, local, one_line, shortened},
};
use reveille_git::CommitInFull;
use reveille_policy::Decision;
use reveille_store::WrittenText;

use super::diff;
use crate::page::{
    frame::{PagePlace, frame},
    markdown::{WrittenBy, markdown},
    parts::{exactly, moment, others_in},
    site::PageDesk,
};

/// States of an unfinished wake, in which the page refreshes itself.
const OPEN: [&str; 3] = ["running", "waiting", "parked"];
/// Characters of a request that is shown expanded.
const ASKED_CHARS: usize = 600;

/// Renders the page of a wake.
pub(super) fn page(
    desk: &PageDesk<'_>,
    note: &Markup,
    story: &WakeStory,
    commit: Option<&CommitInFull>,
    can_be_undone: bool,
) -> Markup {
    let teller = Teller { desk, story };
    let told = html! {
        (teller.head())
        (teller.actions(can_be_undone))
        (teller.why())
        (teller.plan())
        (teller.steps())
        (teller.kept())
        (teller.left_undone())
        (teller.said())
    };
    // An ordered undo also makes the page refresh itself.
    let is_open = OPEN.contains(&story.state) || story.undone == Some(false);
    let content = html! {
        (note)
        @if is_open { section #live-wake data-live { (told) } } @else { (told) }
        h2 { "What changed" }
        @match (commit, &story.commit) {
            (Some(commit), _) => (changed(commit)),
            (None, Some(id)) => p { "Its commit " code { (id) } " isn't in the memory any more." },
            (None, None) if is_open => p { "Nothing yet: changes are committed at the end." },
            (None, None) => p { "Nothing: it has no commit." },
        }
    };
    let at = story.started_at.map_or_else(|| "at an unknown time".to_owned(), |at| local(at, desk.config.timezone));
    frame(PagePlace::Wakes, &format!("What I did, {at}"), &content)
}

/// Renders the page of a commit without a wake in this database.
pub(super) fn of_commit(desk: &PageDesk<'_>, commit: &CommitInFull) -> Markup {
    let content = html! {
        p .meta {
            (moment(commit.commit.at, desk.now, desk.config.timezone)) " · commit by " (visible(&commit.commit.author))
        }
        (changed(commit))
    };
    frame(PagePlace::Wakes, &visible(&shortened(&one_line(&commit.commit.subject), 100)), &content)
}

fn changed(commit: &CommitInFull) -> Markup {
    html! {
        @if commit.diff.is_empty() { p { "No line of the memory changed." } } @else { (diff::changes(&commit.diff)) }
        details {
            summary { "Details of the commit" }
            p .meta { code { (commit.commit.id) } }
            pre { (visible(commit.message.trim_end())) }
            @if !commit.stat.is_empty() { pre { (visible(&commit.stat)) } }
        }
    }
}

struct Teller<'a> {
    desk: &'a PageDesk<'a>,
    story: &'a WakeStory,
}

impl Teller<'_> {
    fn at(&self, at: Option<DateTime<Utc>>) -> Markup {
        html! {
            @match at {
                Some(at) => (moment(at, self.desk.now, self.desk.config.timezone)),
                None => "at an unknown time",
            }
        }
    }

    /// Renders a time with seconds, since turns follow each other closely.
    fn clock(&self, at: Option<DateTime<Utc>>) -> Markup {
        html! {
            @match at {
                Some(at) => time datetime=(at.to_rfc3339()) {
                    (at.with_timezone(&self.desk.config.timezone).format("%H:%M:%S"))
                },
                None => "at an unknown time",
            }
        }
    }

    /// Classifies the author of the model's text.
    fn written_by(&self, taint: Option<&String>) -> WrittenBy {
        if taint.is_some() || !self.story.taints.is_empty() { WrittenBy::Others } else { WrittenBy::Own }
    }

    fn head(&self) -> Markup {
        let story = self.story;
        let turns = story.turns().count();
        html! {
            p {
                (state(story)) " "
                @if !story.taints.is_empty() { (others_in(Some(&visible(&list(&story.taints))))) }
            }
            p .meta {
                "Began " (self.at(story.started_at)) ", started by " (story.trigger)
                @if let Some(ms) = story.took_ms() { ", took " (took(ms)) }
                ". "
                @match &story.model {
                    None => "Done by rule, without a model: $0.00.",
                    Some(model) => { (model) ", " (count(turns, "turn")) ", " (tell::paid(&story.spent.tokens, Some(story.spent.cost_usd))) "." }
                }
                @if story.reserved_usd > 0.0 {
                    " Of that " (usd(story.reserved_usd)) " is set aside for a request whose end isn't known."
                }
                @if story.resumed > 0 { " It was cut off " (count(story.resumed as usize, "time")) " and continued." }
            }
            @if let Some(error) = &story.error { p .note .bad { strong { "Trouble: " } (visible(error)) } }
        }
    }

    fn actions(&self, can_be_undone: bool) -> Markup {
        let id = &self.story.wake_id;
        let has_requests = self.story.model.is_some() && self.story.journal != JournalKept::Forgotten;
        html! {
            div .actions {
                @if can_be_undone {
                    form method="get" action={ "/wakes/" (id) "/undo" } { button type="submit" { "Undo…" } }
                }
                @if has_requests { a href={ "/wakes/" (id) "/raw" } { "The exact requests" } }
            }
        }
    }

    fn why(&self) -> Markup {
        let reasons = &self.story.reasons;
        html! {
            h2 { "Why" }
            p { @if reasons.is_empty() { "Upkeep." } @else { (visible(&reasons.join("; "))) "." } }
            @for asked in &self.story.asked { (self.asked(asked)) }
        }
    }

    fn asked(&self, asked: &AskedMessage) -> Markup {
        let whole = visible(&asked.text);
        let is_long = whole.chars().count() > ASKED_CHARS;
        html! {
            figure .card {
                figcaption .meta {
                    @match &asked.from { Some(from) => (visible(&one_line(from))), None => "You" }
                    ", " (self.at(asked.at)) " " (others_in(asked.taint.as_deref()))
                }
                @if is_long {
                    details { summary { (shortened(&one_line(&whole), 120)) } blockquote { (lines(&whole)) } }
                } @else {
                    blockquote { (lines(&whole)) }
                }
            }
        }
    }

    fn plan(&self) -> Markup {
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
            p { (visible(&plan.understood)) " " span .badge { (plan.complexity.name()) } }
            @if !steps.is_empty() {
                ol {
                    @for (step, is_not_done) in steps {
                        li {
                            (visible(&step.what)) " " span .meta { "(" (visible(&step.tool)) ")" }
                            @if is_not_done { " " span .badge .bad { "not done" } }
                        }
                    }
                }
            }
            @if !plan.deferred.is_empty() {
                p .meta { "Later:" }
                ul { @for later in &plan.deferred { li { (visible(later)) } } }
            }
        }
    }

    fn steps(&self) -> Markup {
        html! {
            @if !self.story.steps.is_empty() {
                h2 { "Step by step" }
                ol .steps { @for step in &self.story.steps { li { (self.step(step)) } } }
            }
        }
    }

    fn step(&self, step: &StoryStep) -> Markup {
        let line =
            |at: &Option<DateTime<Utc>>, words: String| html! { p { span .meta { (self.clock(*at)) } " " (words) } };
        match step {
            StoryStep::Turn(turn) => self.turn(turn),
            StoryStep::Heard { at, messages } => {
                let numbers: Vec<String> = messages.iter().map(i64::to_string).collect();
                line(at, format!("More came in: message {}.", list(&numbers)))
            }
            StoryStep::Discarded { at, why, usage, cost_usd } => {
                line(at, format!("A turn was cut off: {} ({}).", visible(why), tell::paid(usage, *cost_usd)))
            }
            StoryStep::Asking { at } => line(at, "The model was asked, and has not answered yet.".to_owned()),
            StoryStep::Limit { at, reasons, decided } => {
                let decided = match decided {
                    None => "It waits for your word.".to_owned(),
                    Some(decision) => tell::who_decided(decision, "to continue"),
                };
                line(at, format!("Asked whether to continue: {} {decided}", visible(&reasons.join(" "))))
            }
            StoryStep::Folded { at, messages, before, after } => line(
                at,
                format!(
                    "The conversation was folded: {}, {before} tokens before, {after} after.",
                    count(*messages, "message")
                ),
            ),
            StoryStep::Handed { at, from, model } => {
                line(at, format!("{model} went on in place of {from}, in a new conversation."))
            }
            StoryStep::Answered { at, messages } => match messages.len() {
                0 => line(at, "Its last text was told.".to_owned()),
                n => line(at, format!("Its last text was the answer to {}.", count(n, "message"))),
            },
            StoryStep::ByRule { at, receipts } => html! {
                p { span .meta { (self.clock(*at)) } " Done by rule:" }
                ul { @for receipt in receipts { li { (visible(receipt)) } } }
            },
        }
    }

    fn turn(&self, turn: &StoryTurn) -> Markup {
        let text = turn.text.trim();
        html! {
            h3 { "Turn " (turn.number) }
            p .meta {
                (self.clock(turn.asked_at))
                @if let Some(ms) = turn.took_ms { ", took " (took(ms)) }
                ", " (tell::paid(&turn.usage, turn.cost_usd)) (tell::stopped(&turn.stop))
            }
            @if !text.is_empty() { (markdown(text, self.written_by(None))) }
            @for call in &turn.calls { (self.call(call)) }
            @if text.is_empty() && turn.calls.is_empty() { p .meta { "Nothing more." } }
        }
    }

    fn call(&self, call: &StoryCall) -> Markup {
        html! {
            div .card .call {
                h4 {
                    code { (visible(&call.tool)) } " " (outcome(call))
                    @if let Some(ms) = call.took_ms { " " span .meta { "took " (took(ms)) } }
                }
                @if self.is_told_above(call) {
                    p .meta { "The plan, as above." }
                } @else {
                    (exactly("Asked for", &visible(&laid_out(&call.input))))
                }
                @if let Some(verdict) = &call.verdict {
                    p .meta {
                        (sentence(&tell::judged(verdict.decision, call, &visible(&verdict.reasons.join(" ")))))
                        @if call.decided.is_none() && verdict.decision == Decision::Ask {
                            " " a href="/questions" { "Answer it" }
                        }
                    }
                }
                @match &call.result {
                    Some(result) => (self.result(result)),
                    None if call.began_at.is_some() => p { "Begun, and its end isn't known." },
                    None => {}
                }
            }
        }
    }

    fn result(&self, result: &CallResultTold) -> Markup {
        let what = if result.is_error { "Failed" } else { "Result" };
        html! {
            (others_in(result.taint.as_deref().map(visible).as_deref()))
            @if result.has_image { p .meta { "It was shown a picture besides." } }
            @if !result.content.trim().is_empty() { (exactly(what, &visible(result.content.trim()))) }
        }
    }

    /// True for the call that made the plan shown above.
    fn is_told_above(&self, call: &StoryCall) -> bool {
        call.tool == "plan" && self.story.plan.is_some() && serde_json::from_str(&call.input).ok() == self.story.plan
    }

    fn left_undone(&self) -> Markup {
        html! {
            @if let Some(not_done @ [_, ..]) = self.story.not_done.as_deref() {
                h2 { "Planned, but not done" }
                ul { @for what in not_done { li { (visible(what)) } } }
            }
        }
    }

    fn said(&self) -> Markup {
        html! {
            @if !self.story.said.is_empty() {
                h2 { "What I said" }
                @for text in &self.story.said { (self.written(text)) }
            }
        }
    }

    fn written(&self, text: &WrittenText) -> Markup {
        html! {
            div .card {
                p .meta {
                    (tell::kind_of(text)) " "
                    @if text.chat.is_terminal() { "on this machine" } @else { "to chat " (text.chat) }
                    ", "
                    @match (text.is_taken_back, text.sent_at) {
                        (true, None) => "taken back before it was sent",
                        (_, Some(at)) => { "sent " (self.at(Some(at))) }
                        (false, None) => "not sent yet",
                    }
                    " " (others_in(text.taint.as_deref().map(visible).as_deref()))
                }
                (markdown(&text.text, self.written_by(text.taint.as_ref())))
            }
        }
    }

    fn kept(&self) -> Markup {
        html! {
            @match self.story.journal {
                JournalKept::Whole => {}
                JournalKept::Forgotten => p .note {
                    "Its turns and calls are older than " code { "KEEP_DAYS" } " and were let go. This is what stays."
                },
                JournalKept::Damaged { lines } => p .note .bad { (count(lines, "line")) " of its journal can't be read." },
            }
            @if let Some(StoryRecording { narrative, calls }) = &self.story.recording {
                h2 { "What is kept of it" }
                p { (lines(&visible(narrative))) }
                ul { @for call in calls { li { code { (visible(&call.tool)) " " (visible(&shortened(&one_line(&call.input), 160))) } } } }
            }
        }
    }
}

/// Renders the wake's state as a badge.
fn state(story: &WakeStory) -> Markup {
    let class = match (story.state, story.undone) {
        (_, Some(true)) => "",
        ("done" | "running", None) => "ok",
        ("failed" | "abandoned", None) => "bad",
        _ => "warn",
    };
    html! { span class={ "badge " (class) } { (tell::state(story)) } }
}

/// Renders a call's outcome as a badge.
fn outcome(call: &StoryCall) -> Markup {
    let decision = call.verdict.as_ref().map(|verdict| verdict.decision);
    let (class, words) = match (&call.result, decision, &call.decided) {
        (Some(result), ..) if !result.is_error => ("ok", "worked"),
        (_, Some(Decision::Deny), _) => ("bad", "refused"),
        (_, _, Some(decided)) if !decided.is_approved => ("bad", "not allowed"),
        (Some(_), ..) => ("bad", "failed"),
        (None, Some(Decision::Ask), None) => ("warn", "waits for your word"),
        (None, ..) if call.began_at.is_some() => ("warn", "under way"),
        (None, ..) => ("", "not run"),
    };
    html! { span class={ "badge " (class) } { (words) } }
}

/// Formats JSON with a line per member. Other text stays unchanged.
fn laid_out(json: &str) -> String {
    match serde_json::from_str::<serde_json::Value>(json) {
        Ok(value) => serde_json::to_string_pretty(&value).unwrap_or_else(|_| json.to_owned()),
        Err(_) => json.to_owned(),
    }
}

fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(char::to_uppercase).into_iter().flatten().chain(chars).collect()
}

/// Renders a text with its line breaks.
fn lines(text: &str) -> Markup {
    html! {
        @for (at, line) in text.trim().lines().enumerate() {
            @if at > 0 { br; }
            (line)
        }
    }
}
