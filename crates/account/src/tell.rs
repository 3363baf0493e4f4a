//! Renders a cycle's story for a terminal. Does no I/O. Hidden and reordering characters in untrusted text are written out.

use chrono::{DateTime, Utc};

use reveille_base::{
    approval_text::escape_hidden,
    types::{Stop, Usage},
    words::{format_count, format_local_time, one_line, truncate_text},
    zone::Tz,
};
use reveille_policy::{Decision, Verdict};
use reveille_store::WrittenText;

use super::{
    story::{AskedMessage, CallDecision, JournalState, StoryCall, StoryCallResult, StoryStep, StoryTurn, WakeStory},
    units::{format_duration, format_tokens, format_usd},
};

/// The default maximum length of a shortened text in characters.
const MAX_CHARS: usize = 160;
/// The maximum length of the model's text in a turn.
const MAX_SAID_CHARS: usize = 600;
/// The maximum length of a quoted message.
const MAX_ASKED_CHARS: usize = 200;

/// Options for rendering a story.
#[derive(Debug, Clone, Copy)]
pub struct StoryOptions {
    /// The person's zone.
    pub tz: Tz,
    /// True to show texts in full.
    pub is_whole: bool,
}

/// Renders the story, without its commit.
pub fn render_story(story: &WakeStory, how: StoryOptions) -> String {
    let teller = StoryTeller { story, how };
    let parts = [
        teller.render_head(),
        teller.render_plan(),
        teller.render_steps(),
        teller.render_steps_not_done(),
        teller.render_texts(),
        teller.describe_journal(),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

struct StoryTeller<'a> {
    story: &'a WakeStory,
    how: StoryOptions,
}

impl StoryTeller<'_> {
    fn render_head(&self) -> String {
        let story = self.story;
        let at =
            story.started_at.map_or_else(|| "at an unknown time".to_owned(), |at| format_local_time(at, self.how.tz));
        let took = story.took_ms().map(|ms| format!(", took {}", format_duration(ms))).unwrap_or_default();
        let mut text = format!("Wake {}, {at}{took}: {}\n", story.wake_id, describe_state(story));
        let reasons = if story.reasons.is_empty() { "upkeep".to_owned() } else { story.reasons.join("; ") };
        text.push_str(&format!(
            "Why: {} (started by {})\n",
            self.format_line(&reasons, MAX_ASKED_CHARS),
            story.trigger
        ));
        story.asked.iter().for_each(|asked| text.push_str(&self.render_request(asked)));
        let turns = story.turns().count();
        match &story.model {
            None => text.push_str("Done by rule, without a model: $0.00\n"),
            Some(model) => text.push_str(&format!(
                "Model: {}, {}, {}\n",
                story.all_models(model),
                format_count(turns, "turn"),
                format_spending(&story.spent.tokens, Some(story.spent.cost_usd))
            )),
        }
        if story.reserved_usd > 0.0 {
            text.push_str(&format!(
                "{} of that is set aside for a request whose outcome isn't known.\n",
                format_usd(story.reserved_usd)
            ));
        }
        if story.resumed > 0 {
            text.push_str(&format!("It was cut off {} and continued.\n", format_count(story.resumed as usize, "time")));
        }
        if !story.taints.is_empty() {
            text.push_str(&format!(
                "It read untrusted text: {}\n",
                self.format_line(&story.taints.join(", "), MAX_ASKED_CHARS)
            ));
        }
        if let Some(error) = &story.error {
            text.push_str(&format!("Trouble: {}\n", self.format_line(error, MAX_SAID_CHARS)));
        }
        text
    }

    fn render_request(&self, asked: &AskedMessage) -> String {
        let from =
            asked.from.as_deref().map(|from| format!(" from {}", self.format_line(from, 60))).unwrap_or_default();
        let taint = asked.taint.as_deref().map(|taint| format!(" ({taint})")).unwrap_or_default();
        format!("Message {}{from}{taint}: {}\n", asked.id, self.quote_text(&asked.text, MAX_ASKED_CHARS))
    }

    fn render_plan(&self) -> String {
        let Some(plan) = &self.story.plan else { return String::new() };
        let mut text =
            format!("Plan ({}): {}\n", plan.complexity.name(), self.format_line(&plan.understood, MAX_SAID_CHARS));
        // Each unfinished step marks one line, since a plan may name the same step twice.
        let mut not_done = self.story.not_done.clone().unwrap_or_default();
        for (at, step) in plan.steps.iter().enumerate() {
            let place = not_done.iter().position(|what| *what == step.what);
            let mark = if place.map(|place| not_done.swap_remove(place)).is_some() { ", NOT DONE" } else { "" };
            text.push_str(&format!(
                "  {}. {} ({}{mark})\n",
                at + 1,
                self.format_line(&step.what, MAX_CHARS),
                self.format_line(&step.tool, 60)
            ));
        }
        for later in &plan.deferred {
            text.push_str(&format!("  later: {}\n", self.format_line(later, MAX_CHARS)));
        }
        text
    }

    fn render_steps(&self) -> String {
        self.story.steps.iter().map(|step| self.render_step(step)).collect::<Vec<_>>().join("\n")
    }

    fn render_step(&self, step: &StoryStep) -> String {
        match step {
            StoryStep::Turn(turn) => self.render_turn(turn),
            StoryStep::Heard { at, messages } => {
                let numbers: Vec<String> = messages.iter().map(i64::to_string).collect();
                format!("{}more came in: message {}\n", self.format_clock(*at), numbers.join(", "))
            }
            StoryStep::Discarded { at, why, usage, cost_usd } => {
                let why = self.format_line(why, MAX_ASKED_CHARS);
                format!("{}a turn was cut off: {why} ({})\n", self.format_clock(*at), format_spending(usage, *cost_usd))
            }
            StoryStep::Asking { at } => {
                format!("{}the model was asked and hasn't answered\n", self.format_clock(*at))
            }
            StoryStep::Limit { at, reasons, decided } => {
                let reasons = self.format_line(&reasons.join(" "), MAX_ASKED_CHARS);
                let decided = match decided {
                    None => "waits for your answer".to_owned(),
                    Some(decision) => describe_decider(decision, "to continue"),
                };
                format!("{}asked whether to continue: {reasons} {decided}\n", self.format_clock(*at))
            }
            StoryStep::Folded { at, messages, before, after } => format!(
                "{}the conversation was folded: {}, {before} tokens before, {after} after\n",
                self.format_clock(*at),
                format_count(*messages, "message")
            ),
            StoryStep::Handed { at, from, model } => {
                format!("{}fell back from {from} to {model}, in a new conversation\n", self.format_clock(*at))
            }
            StoryStep::Answered { at, messages } => match messages.len() {
                0 => format!("{}its last text was sent\n", self.format_clock(*at)),
                n => format!(
                    "{}its last text was the answer to {}\n",
                    self.format_clock(*at),
                    format_count(n, "message")
                ),
            },
            StoryStep::ByRule { at, receipts } => {
                let lines: String =
                    receipts.iter().map(|what| format!("  {}\n", self.format_line(what, MAX_ASKED_CHARS))).collect();
                format!("{}by rule\n{lines}", self.format_clock(*at))
            }
        }
    }

    fn render_turn(&self, turn: &StoryTurn) -> String {
        let took = turn.took_ms.map(|ms| format!(", {}", format_duration(ms))).unwrap_or_default();
        let paid = format_spending(&turn.usage, turn.cost_usd);
        let mut text = format!(
            "{}turn {}{took}: {paid}{}\n",
            self.format_clock(turn.asked_at),
            turn.number,
            describe_stop(&turn.stop)
        );
        if !turn.text.trim().is_empty() {
            text.push_str(&self.render_block(&turn.text, MAX_SAID_CHARS, "  "));
        }
        turn.calls.iter().for_each(|call| text.push_str(&self.render_call(call)));
        if turn.text.trim().is_empty() && turn.calls.is_empty() {
            text.push_str("  nothing more\n");
        }
        text
    }

    fn render_call(&self, call: &StoryCall) -> String {
        let took = call.took_ms.map(|ms| format!(" ({})", format_duration(ms))).unwrap_or_default();
        let mut text = match self.how.is_whole {
            true => format!(
                "  > {}{took}\n{}",
                self.format_line(&call.tool, 100),
                self.render_block(&call.input, MAX_CHARS, "    ")
            ),
            false if self.is_shown_above(call) => format!("  > plan, as above{took}\n"),
            false => format!(
                "  > {} {}{took}\n",
                self.format_line(&call.tool, 100),
                self.format_line(&call.input, MAX_CHARS)
            ),
        };
        if let Some(verdict) = &call.verdict {
            text.push_str(&format!("    {}\n", self.render_verdict(verdict, call)));
        }
        match &call.result {
            Some(result) => text.push_str(&self.render_result(result)),
            None if call.began_at.is_some() => text.push_str("    started; its outcome isn't known\n"),
            None if call.question.is_some() && call.decided.is_none() => {}
            None => text.push_str("    not run\n"),
        }
        text
    }

    /// Returns true for the call whose plan is shown above.
    fn is_shown_above(&self, call: &StoryCall) -> bool {
        call.tool == "plan" && self.story.plan.is_some() && serde_json::from_str(&call.input).ok() == self.story.plan
    }

    fn render_verdict(&self, verdict: &Verdict, call: &StoryCall) -> String {
        let why = self.format_line(&verdict.reasons.join(" "), if self.how.is_whole { usize::MAX } else { MAX_CHARS });
        describe_verdict(verdict.decision, call, &why)
    }

    fn render_result(&self, result: &StoryCallResult) -> String {
        let mark = if result.is_error { "failed" } else { "result" };
        let taint =
            result.taint.as_deref().map(|taint| format!(" (untrusted: {})", self.format_line(taint, MAX_CHARS)));
        let image = if result.has_image { " with a picture" } else { "" };
        let head = format!("    {mark}{image}{}: ", taint.unwrap_or_default());
        match self.how.is_whole {
            true => format!("{}\n{}", head.trim_end(), self.render_block(&result.content, MAX_CHARS, "      ")),
            false => format!("{head}{}\n", self.format_line(&result.content, MAX_CHARS)),
        }
    }

    fn render_steps_not_done(&self) -> String {
        match self.story.not_done.as_deref() {
            None | Some([]) => String::new(),
            Some(not_done) => {
                let lines: String =
                    not_done.iter().map(|what| format!("  - {}\n", self.format_line(what, MAX_CHARS))).collect();
                format!("Planned, but not done:\n{lines}")
            }
        }
    }

    fn render_texts(&self) -> String {
        self.story.said.iter().map(|text| self.render_text(text)).collect::<Vec<_>>().join("\n")
    }

    fn render_text(&self, text: &WrittenText) -> String {
        let what = describe_kind(text);
        let chat =
            if text.chat.is_terminal() { "at the terminal".to_owned() } else { format!("to chat {}", text.chat) };
        let sent = match (text.is_taken_back, text.sent_at) {
            (true, None) => "withdrawn before it was sent".to_owned(),
            (_, Some(at)) => format!("sent {}", self.format_clock(Some(at)).trim_end()),
            (false, None) => "not sent yet".to_owned(),
        };
        let taint = text
            .taint
            .as_deref()
            .map(|taint| format!("; may hold untrusted text: {}", self.format_line(taint, MAX_CHARS)));
        let body = self.render_block(&text.text, usize::MAX, "  ");
        format!("{what} {chat} ({sent}{}):\n{body}", taint.unwrap_or_default())
    }

    fn describe_journal(&self) -> String {
        let mut text = match self.story.journal {
            JournalState::Whole => String::new(),
            JournalState::Forgotten => {
                "Its turns and calls are older than KEEP_DAYS and were deleted. This is what remains.\n".to_owned()
            }
            JournalState::Damaged { lines } => {
                format!("{} of its journal can't be read.\n", format_count(lines, "line"))
            }
        };
        if let Some(recording) = &self.story.recording {
            text.push_str(&self.render_block(&recording.narrative, usize::MAX, "  "));
            for call in &recording.calls {
                text.push_str(&format!(
                    "  > {} {}\n",
                    self.format_line(&call.tool, 100),
                    self.format_line(&call.input, MAX_CHARS)
                ));
            }
        }
        text
    }

    /// Formats a time of day: `15:00:04 `.
    fn format_clock(&self, at: Option<DateTime<Utc>>) -> String {
        at.map_or_else(
            || "at an unknown time, ".to_owned(),
            |at| at.with_timezone(&self.how.tz).format("%H:%M:%S ").to_string(),
        )
    }

    fn format_line(&self, text: &str, max_chars: usize) -> String {
        escape_hidden(&truncate_text(&one_line(text), max_chars))
    }

    fn quote_text(&self, text: &str, max_chars: usize) -> String {
        let max_chars = if self.how.is_whole { usize::MAX } else { max_chars };
        format!("“{}”", self.format_line(text, max_chars))
    }

    /// Renders a text line by line behind `indent`, shortened unless texts are shown in full.
    fn render_block(&self, text: &str, max_chars: usize, indent: &str) -> String {
        let max_chars = if self.how.is_whole { usize::MAX } else { max_chars };
        let line = |line: &str| format!("{}\n", format!("{indent}{}", escape_hidden(line)).trim_end());
        truncate_text(text.trim(), max_chars).lines().map(line).collect()
    }
}

/// Describes the policy's verdict and a person's decision on a call. `why` is the policy's reason.
pub fn describe_verdict(decision: Decision, call: &StoryCall, why: &str) -> String {
    let question = call.question.map(|id| format!(" (question {id})")).unwrap_or_default();
    match (decision, &call.decided) {
        (Decision::Allow, _) => format!("allowed: {why}"),
        (Decision::Deny, _) => format!("refused: {why}"),
        (Decision::Ask, None) => format!("asked{question}: {why} It waits for your answer."),
        (Decision::Ask, Some(decision)) => format!("asked{question}: {why} {}", describe_decider(decision, "it")),
    }
}

/// The kind of a text: `Answer`, `Question`, …
pub fn describe_kind(text: &WrittenText) -> String {
    match text.kind.as_str() {
        "reply" => "Answer".to_owned(),
        "approval" => "Question".to_owned(),
        "tell" => "Said unasked".to_owned(),
        kind => format!("{}{}", kind.get(..1).unwrap_or_default().to_uppercase(), kind.get(1..).unwrap_or_default()),
    }
}

/// Formats tokens and cost: `1200 tokens in, 40 out, $0.0042`.
pub fn format_spending(usage: &Usage, cost_usd: Option<f64>) -> String {
    match cost_usd {
        Some(0.0) if *usage == Usage::default() => "free".to_owned(),
        Some(cost_usd) => format!("{}, {}", format_tokens(usage), format_usd(cost_usd)),
        None => format!("{}, its cost isn't known", format_tokens(usage)),
    }
}

/// Describes the state of a wake for people.
pub fn describe_state(story: &WakeStory) -> &'static str {
    match (story.state, story.undone) {
        (_, Some(true)) => "undone",
        (_, Some(false)) => "about to be undone",
        ("running", _) => "under way",
        ("waiting", _) => "waits for the model",
        ("parked", _) => "waits for your answer",
        ("abandoned", _) => "given up",
        (state, _) => state,
    }
}

/// Describes an unusual end of a turn; empty for an ordinary one.
pub fn describe_stop(stop: &Stop) -> String {
    match stop {
        Stop::EndTurn | Stop::ToolUse | Stop::StopSequence => String::new(),
        Stop::MaxTokens => " (cut off at the longest answer)".to_owned(),
        Stop::ContextExceeded => " (cut off: the conversation was too long)".to_owned(),
        Stop::PauseTurn => " (paused)".to_owned(),
        Stop::Refusal(why) => format!(" (declined: {})", escape_hidden(&truncate_text(&one_line(why), MAX_CHARS))),
        Stop::Unknown(name) => format!(" (ended as {})", escape_hidden(&truncate_text(&one_line(name), 60))),
    }
}

/// Names the person who allowed or refused something, as a sentence.
pub fn describe_decider(decision: &CallDecision, what: &str) -> String {
    let by = match decision.by.as_deref() {
        Some("console") => "You, at the terminal,".to_owned(),
        Some(id) => format!("Person {id}"),
        None => {
            return if decision.is_approved { "It was allowed.".to_owned() } else { "Nobody allowed it.".to_owned() };
        }
    };
    format!("{by} {} {what}.", if decision.is_approved { "allowed" } else { "refused" })
}

#[cfg(test)]
mod tests {
    use reveille_base::types::ChatRef;
    use reveille_store::Spent;

    use super::*;
    use crate::story::{AskedMessage, StoryTurn};

    fn at(minute: u32) -> Option<DateTime<Utc>> {
        DateTime::from_timestamp(1_795_269_600 + i64::from(minute) * 60, 0)
    }

    fn story(steps: Vec<StoryStep>) -> WakeStory {
        WakeStory {
            wake_id: "20261121T140000Z-1".to_owned(),
            state: "parked",
            trigger: "say".to_owned(),
            reasons: Vec::new(),
            chat: Some(ChatRef::TERMINAL),
            model: Some("large".to_owned()),
            started_at: at(0),
            ended_at: None,
            resumed: 2,
            error: Some("the disk was full".to_owned()),
            commit: None,
            undone: None,
            asked: vec![AskedMessage {
                id: 1,
                chat: ChatRef::TERMINAL,
                from: None,
                at: at(0),
                text: "tidy up".to_owned(),
                taint: None,
            }],
            journal: JournalState::Damaged { lines: 3 },
            taints: Vec::new(),
            plan: None,
            not_done: None,
            steps,
            said: Vec::new(),
            recording: None,
            spent: Spent::default(),
            reserved_usd: 0.25,
        }
    }

    #[test]
    fn rare_events_of_a_cycle_are_rendered() {
        let decided = |is_approved| CallDecision { is_approved, by: None, at: at(9), why: String::new() };
        let limit =
            |decided| StoryStep::Limit { at: at(4), reasons: vec!["50 rounds are my limit.".to_owned()], decided };
        let usage = Usage { input: 10, output: 5, ..Usage::default() };
        let text = render_story(
            &story(vec![
                StoryStep::Heard { at: at(1), messages: vec![4, 5] },
                StoryStep::Discarded { at: at(2), why: "cut off".to_owned(), usage, cost_usd: None },
                limit(None),
                limit(Some(decided(true))),
                limit(Some(decided(false))),
                StoryStep::Folded { at: at(5), messages: 40, before: 90_000, after: 12_000 },
                StoryStep::Handed { at: at(6), from: "small".to_owned(), model: "large".to_owned() },
                StoryStep::Answered { at: at(7), messages: Vec::new() },
                StoryStep::ByRule { at: at(7), receipts: vec!["Finished “tea”".to_owned()] },
                StoryStep::Asking { at: at(8) },
            ]),
            StoryOptions { tz: Tz::UTC, is_whole: false },
        );
        for told in [
            "more came in: message 4, 5",
            "waits for your answer",
            "It was allowed.",
            "Nobody allowed it.",
            "its last text was sent",
            "Finished “tea”",
            "the model was asked and hasn't answered",
            "3 lines of its journal can't be read",
            "Trouble: the disk was full",
            "It was cut off 2 times and continued.",
            "$0.2500 of that is set aside",
            "small, then large",
        ] {
            assert!(text.contains(told), "{told}\n{text}");
        }
    }

    #[test]
    fn each_end_of_a_turn_is_described() {
        let ended = |stop| {
            let turn = StoryTurn {
                number: 1,
                asked_at: at(0),
                at: at(1),
                took_ms: None,
                stop,
                text: String::new(),
                calls: Vec::new(),
                usage: Usage::default(),
                cost_usd: None,
            };
            render_story(&story(vec![StoryStep::Turn(turn)]), StoryOptions { tz: Tz::UTC, is_whole: true })
        };
        for (stop, told) in [
            (Stop::MaxTokens, "cut off at the longest answer"),
            (Stop::ContextExceeded, "the conversation was too long"),
            (Stop::PauseTurn, "(paused)"),
            (Stop::Refusal("no".to_owned()), "(declined: no)"),
            (Stop::Unknown("tired".to_owned()), "(ended as tired)"),
        ] {
            assert!(ended(stop).contains(told), "{told}");
        }
    }
}
