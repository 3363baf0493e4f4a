//! Renders a cycle's story for a terminal. Does no I/O. Hidden and reordering characters in untrusted text are written out.

use chrono::{DateTime, Utc};

use reveille_base::{
    approval_text::visible,
    types::{Stop, Usage},
    words::{count, local, one_line, shortened},
    zone::Tz,
};
use reveille_policy::{Decision, Verdict};
use reveille_store::WrittenText;

use super::{
    story::{AskedMessage, CallDecision, CallResultTold, JournalKept, StoryCall, StoryStep, StoryTurn, WakeStory},
    units::{tokens, took, usd},
};

/// The default maximum length of a shortened text in characters.
const MAX_CHARS: usize = 160;
/// The maximum length of the model's text in a turn.
const MAX_SAID_CHARS: usize = 600;
/// The maximum length of a quoted message.
const MAX_ASKED_CHARS: usize = 200;

/// Options for rendering a story.
#[derive(Debug, Clone, Copy)]
pub struct StoryTelling {
    /// The person's zone.
    pub tz: Tz,
    /// True to show texts in full.
    pub is_whole: bool,
}

/// Renders the story, without its commit.
pub fn text(story: &WakeStory, how: StoryTelling) -> String {
    let teller = Teller { story, how };
    let parts = [teller.head(), teller.plan(), teller.steps(), teller.left_undone(), teller.said(), teller.kept()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

struct Teller<'a> {
    story: &'a WakeStory,
    how: StoryTelling,
}

impl Teller<'_> {
    fn head(&self) -> String {
        let story = self.story;
        let at = story.started_at.map_or_else(|| "at an unknown time".to_owned(), |at| local(at, self.how.tz));
        let ended = story.took_ms().map(|ms| format!(", took {}", took(ms))).unwrap_or_default();
        let mut text = format!("Wake {}, {at}{ended}: {}\n", story.wake_id, state(story));
        let reasons = if story.reasons.is_empty() { "upkeep".to_owned() } else { story.reasons.join("; ") };
        text.push_str(&format!("Why: {} (started by {})\n", self.line(&reasons, MAX_ASKED_CHARS), story.trigger));
        story.asked.iter().for_each(|asked| text.push_str(&self.asked(asked)));
        let turns = story.turns().count();
        match &story.model {
            None => text.push_str("Done by rule, without a model: $0.00\n"),
            Some(model) => text.push_str(&format!(
                "Model: {}, {}, {}\n",
                story.all_models(model),
                count(turns, "turn"),
                paid(&story.spent.tokens, Some(story.spent.cost_usd))
            )),
        }
        if story.reserved_usd > 0.0 {
            text.push_str(&format!(
                "Of that {} is set aside for a request whose end isn't known.\n",
                usd(story.reserved_usd)
            ));
        }
        if story.resumed > 0 {
            text.push_str(&format!("It was cut off {} and continued.\n", count(story.resumed as usize, "time")));
        }
        if !story.taints.is_empty() {
            text.push_str(&format!(
                "It read words of others: {}\n",
                self.line(&story.taints.join(", "), MAX_ASKED_CHARS)
            ));
        }
        if let Some(error) = &story.error {
            text.push_str(&format!("Trouble: {}\n", self.line(error, MAX_SAID_CHARS)));
        }
        text
    }

    fn asked(&self, asked: &AskedMessage) -> String {
        let from = asked.from.as_deref().map(|from| format!(" from {}", self.line(from, 60))).unwrap_or_default();
        let taint = asked.taint.as_deref().map(|taint| format!(" ({taint})")).unwrap_or_default();
        format!("Message {}{from}{taint}: {}\n", asked.id, self.quoted(&asked.text, MAX_ASKED_CHARS))
    }

    fn plan(&self) -> String {
        let Some(plan) = &self.story.plan else { return String::new() };
        let mut text = format!("Plan ({}): {}\n", plan.complexity.name(), self.line(&plan.understood, MAX_SAID_CHARS));
        // A step planned twice can be undone once.
        let mut not_done = self.story.not_done.clone().unwrap_or_default();
        for (at, step) in plan.steps.iter().enumerate() {
            let place = not_done.iter().position(|what| *what == step.what);
            let mark = if place.map(|place| not_done.swap_remove(place)).is_some() { ", NOT DONE" } else { "" };
            text.push_str(&format!(
                "  {}. {} ({}{mark})\n",
                at + 1,
                self.line(&step.what, MAX_CHARS),
                self.line(&step.tool, 60)
            ));
        }
        for later in &plan.deferred {
            text.push_str(&format!("  later: {}\n", self.line(later, MAX_CHARS)));
        }
        text
    }

    fn steps(&self) -> String {
        self.story.steps.iter().map(|step| self.step(step)).collect::<Vec<_>>().join("\n")
    }

    fn step(&self, step: &StoryStep) -> String {
        match step {
            StoryStep::Turn(turn) => self.turn(turn),
            StoryStep::Heard { at, messages } => {
                let numbers: Vec<String> = messages.iter().map(i64::to_string).collect();
                format!("{}more came in: message {}\n", self.clock(*at), numbers.join(", "))
            }
            StoryStep::Discarded { at, why, usage, cost_usd } => {
                let why = self.line(why, MAX_ASKED_CHARS);
                format!("{}a turn was cut off: {why} ({})\n", self.clock(*at), paid(usage, *cost_usd))
            }
            StoryStep::Asking { at } => {
                format!("{}the model was asked, and has not answered\n", self.clock(*at))
            }
            StoryStep::Limit { at, reasons, decided } => {
                let reasons = self.line(&reasons.join(" "), MAX_ASKED_CHARS);
                let decided = match decided {
                    None => "waits for your word".to_owned(),
                    Some(decision) => who_decided(decision, "to continue"),
                };
                format!("{}asked whether to continue: {reasons} {decided}\n", self.clock(*at))
            }
            StoryStep::Folded { at, messages, before, after } => format!(
                "{}the conversation was folded: {}, {before} tokens before, {after} after\n",
                self.clock(*at),
                count(*messages, "message")
            ),
            StoryStep::Handed { at, from, model } => {
                format!("{}{model} went on in place of {from}, in a new conversation\n", self.clock(*at))
            }
            StoryStep::Answered { at, messages } => match messages.len() {
                0 => format!("{}its last text was told\n", self.clock(*at)),
                n => format!("{}its last text was the answer to {}\n", self.clock(*at), count(n, "message")),
            },
            StoryStep::ByRule { at, receipts } => {
                let lines: String =
                    receipts.iter().map(|what| format!("  {}\n", self.line(what, MAX_ASKED_CHARS))).collect();
                format!("{}by rule\n{lines}", self.clock(*at))
            }
        }
    }

    fn turn(&self, turn: &StoryTurn) -> String {
        let took = turn.took_ms.map(|ms| format!(", {}", took(ms))).unwrap_or_default();
        let paid = paid(&turn.usage, turn.cost_usd);
        let mut text =
            format!("{}turn {}{took}: {paid}{}\n", self.clock(turn.asked_at), turn.number, stopped(&turn.stop));
        if !turn.text.trim().is_empty() {
            text.push_str(&self.block(&turn.text, MAX_SAID_CHARS, "  "));
        }
        turn.calls.iter().for_each(|call| text.push_str(&self.call(call)));
        if turn.text.trim().is_empty() && turn.calls.is_empty() {
            text.push_str("  nothing more\n");
        }
        text
    }

    fn call(&self, call: &StoryCall) -> String {
        let took = call.took_ms.map(|ms| format!(" ({})", took(ms))).unwrap_or_default();
        let mut text = match self.how.is_whole {
            true => format!("  > {}{took}\n{}", self.line(&call.tool, 100), self.block(&call.input, MAX_CHARS, "    ")),
            false if self.is_told_above(call) => format!("  > plan, as above{took}\n"),
            false => format!("  > {} {}{took}\n", self.line(&call.tool, 100), self.line(&call.input, MAX_CHARS)),
        };
        if let Some(verdict) = &call.verdict {
            text.push_str(&format!("    {}\n", self.judged(verdict, call)));
        }
        match &call.result {
            Some(result) => text.push_str(&self.result(result)),
            None if call.began_at.is_some() => text.push_str("    begun, and its end isn't known\n"),
            None if call.question.is_some() && call.decided.is_none() => {}
            None => text.push_str("    not run\n"),
        }
        text
    }

    /// Returns true for the call that made the plan shown above.
    fn is_told_above(&self, call: &StoryCall) -> bool {
        call.tool == "plan" && self.story.plan.is_some() && serde_json::from_str(&call.input).ok() == self.story.plan
    }

    fn judged(&self, verdict: &Verdict, call: &StoryCall) -> String {
        let why = self.line(&verdict.reasons.join(" "), if self.how.is_whole { usize::MAX } else { MAX_CHARS });
        judged(verdict.decision, call, &why)
    }

    fn result(&self, result: &CallResultTold) -> String {
        let mark = if result.is_error { "failed" } else { "result" };
        let taint = result.taint.as_deref().map(|taint| format!(" (words of others: {})", self.line(taint, MAX_CHARS)));
        let image = if result.has_image { " with a picture" } else { "" };
        let head = format!("    {mark}{image}{}: ", taint.unwrap_or_default());
        match self.how.is_whole {
            true => format!("{}\n{}", head.trim_end(), self.block(&result.content, MAX_CHARS, "      ")),
            false => format!("{head}{}\n", self.line(&result.content, MAX_CHARS)),
        }
    }

    fn left_undone(&self) -> String {
        match self.story.not_done.as_deref() {
            None | Some([]) => String::new(),
            Some(not_done) => {
                let lines: String =
                    not_done.iter().map(|what| format!("  - {}\n", self.line(what, MAX_CHARS))).collect();
                format!("Planned, but not done:\n{lines}")
            }
        }
    }

    fn said(&self) -> String {
        self.story.said.iter().map(|text| self.written(text)).collect::<Vec<_>>().join("\n")
    }

    fn written(&self, text: &WrittenText) -> String {
        let what = kind_of(text);
        let chat =
            if text.chat.is_terminal() { "at the terminal".to_owned() } else { format!("to chat {}", text.chat) };
        let sent = match (text.is_taken_back, text.sent_at) {
            (true, None) => "taken back before it was sent".to_owned(),
            (_, Some(at)) => format!("sent {}", self.clock(Some(at)).trim_end()),
            (false, None) => "not sent yet".to_owned(),
        };
        let taint =
            text.taint.as_deref().map(|taint| format!("; may hold words of others: {}", self.line(taint, MAX_CHARS)));
        let body = self.block(&text.text, usize::MAX, "  ");
        format!("{what} {chat} ({sent}{}):\n{body}", taint.unwrap_or_default())
    }

    fn kept(&self) -> String {
        let mut text = match self.story.journal {
            JournalKept::Whole => String::new(),
            JournalKept::Forgotten => {
                "Its turns and calls are older than KEEP_DAYS and were let go. This is what stays.\n".to_owned()
            }
            JournalKept::Damaged { lines } => format!("{} of its journal can't be read.\n", count(lines, "line")),
        };
        if let Some(recording) = &self.story.recording {
            text.push_str(&self.block(&recording.narrative, usize::MAX, "  "));
            for call in &recording.calls {
                text.push_str(&format!("  > {} {}\n", self.line(&call.tool, 100), self.line(&call.input, MAX_CHARS)));
            }
        }
        text
    }

    /// Formats a time of day: `15:00:04 `.
    fn clock(&self, at: Option<DateTime<Utc>>) -> String {
        at.map_or_else(
            || "at an unknown time, ".to_owned(),
            |at| at.with_timezone(&self.how.tz).format("%H:%M:%S ").to_string(),
        )
    }

    fn line(&self, text: &str, max_chars: usize) -> String {
        visible(&shortened(&one_line(text), max_chars))
    }

    fn quoted(&self, text: &str, max_chars: usize) -> String {
        let max_chars = if self.how.is_whole { usize::MAX } else { max_chars };
        format!("“{}”", self.line(text, max_chars))
    }

    /// Renders a text line by line behind `indent`, shortened unless texts are shown in full.
    fn block(&self, text: &str, max_chars: usize, indent: &str) -> String {
        let max_chars = if self.how.is_whole { usize::MAX } else { max_chars };
        let line = |line: &str| format!("{}\n", format!("{indent}{}", visible(line)).trim_end());
        shortened(text.trim(), max_chars).lines().map(line).collect()
    }
}

/// Describes the policy's verdict and a person's decision on a call. `why` is the policy's reason.
pub fn judged(decision: Decision, call: &StoryCall, why: &str) -> String {
    let question = call.question.map(|id| format!(" (question {id})")).unwrap_or_default();
    match (decision, &call.decided) {
        (Decision::Allow, _) => format!("allowed: {why}"),
        (Decision::Deny, _) => format!("refused: {why}"),
        (Decision::Ask, None) => format!("asked{question}: {why} It waits for your word."),
        (Decision::Ask, Some(decision)) => format!("asked{question}: {why} {}", who_decided(decision, "it")),
    }
}

/// The kind of a text: `Answer`, `Question`, …
pub fn kind_of(text: &WrittenText) -> String {
    match text.kind.as_str() {
        "reply" => "Answer".to_owned(),
        "approval" => "Question".to_owned(),
        "tell" => "Said unasked".to_owned(),
        kind => format!("{}{}", kind.get(..1).unwrap_or_default().to_uppercase(), kind.get(1..).unwrap_or_default()),
    }
}

/// Formats tokens and cost: `1200 tokens in, 40 out, $0.0042`.
pub fn paid(usage: &Usage, cost_usd: Option<f64>) -> String {
    match cost_usd {
        Some(0.0) if *usage == Usage::default() => "free".to_owned(),
        Some(cost_usd) => format!("{}, {}", tokens(usage), usd(cost_usd)),
        None => format!("{}, its cost isn't known", tokens(usage)),
    }
}

/// Describes the state of a wake for people.
pub fn state(story: &WakeStory) -> &'static str {
    match (story.state, story.undone) {
        (_, Some(true)) => "undone",
        (_, Some(false)) => "about to be undone",
        ("running", _) => "under way",
        ("waiting", _) => "waits for the model",
        ("parked", _) => "waits for your word",
        ("abandoned", _) => "given up",
        (state, _) => state,
    }
}

/// Describes an unusual end of a turn; empty for an ordinary one.
pub fn stopped(stop: &Stop) -> String {
    match stop {
        Stop::EndTurn | Stop::ToolUse | Stop::StopSequence => String::new(),
        Stop::MaxTokens => " (cut off at the longest answer)".to_owned(),
        Stop::ContextExceeded => " (cut off: the conversation was too long)".to_owned(),
        Stop::PauseTurn => " (paused)".to_owned(),
        Stop::Refusal(why) => format!(" (declined: {})", visible(&shortened(&one_line(why), MAX_CHARS))),
        Stop::Unknown(name) => format!(" (ended as {})", visible(&shortened(&one_line(name), 60))),
    }
}

/// Names the person who allowed or refused something, as a sentence.
pub fn who_decided(decision: &CallDecision, what: &str) -> String {
    let by = match decision.by.as_deref() {
        Some("console") => "You, at the terminal,".to_owned(),
        Some(id) => format!("Person {id}"),
        None => {
            return if decision.is_approved { "It was allowed.".to_owned() } else { "Nobody allowed it.".to_owned() };
        }
    };
    format!("{by} {} {what}.", if decision.is_approved { "allowed" } else { "refused" })
}
