//! `/status`: shows the assistant's current work and everything that waits.

use chrono::{DateTime, TimeDelta, Utc};

use reveille_base::{
    approval_text,
    types::ChatRef,
    words::{format_count, format_near_time},
    zone::Tz,
};
use reveille_config::OFFLINE_MODEL;
use reveille_cycle::decide::budget::Budget;
use reveille_store::{Approval, CycleRow, CycleState, Outstanding, Result, wake_lock};

use super::{super::batch::Asked, Desk};
use crate::overview::{Overview, PassedOverModel, Viewer};

/// The assistant's state.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AssistantStatus {
    now: DateTime<Utc>,
    tz: Tz,
    /// The start of a stop of all work, if there is one.
    stopped_since: Option<Option<DateTime<Utc>>>,
    /// The start of the running wake by its lock file, if one runs.
    running_since: Option<Option<DateTime<Utc>>>,
    last: Option<LastWake>,
    /// The number of waiting messages, and the time of the oldest.
    queue: (usize, Option<DateTime<Utc>>),
    /// Replies that aren't delivered.
    outstanding: Outstanding,
    /// Questions of the asking chat that wait for an answer; the owner sees all.
    questions: Vec<Question>,
    model: String,
    /// `true` if the owner chose the model by `/model`.
    is_chosen: bool,
    is_model_available: bool,
    /// The preferred models and the reasons why they aren't asked now.
    passed_over: Vec<(String, String)>,
    out_of_budget: Option<String>,
    budget: Budget,
}

/// An open question.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Question {
    id: i64,
    /// The action in one sentence.
    what: String,
    asked_at: Option<DateTime<Utc>>,
    expires_at: Option<DateTime<Utc>>,
    is_asked_here: bool,
}

/// The last started cycle that the asking chat may see.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LastWake {
    at: Option<DateTime<Utc>>,
    reasons: Vec<String>,
    state: CycleState,
}

impl AssistantStatus {
    /// Reads the state that the asking chat may see.
    pub(super) fn gather(desk: &Desk<'_>, asked: &Asked) -> Result<Self> {
        let Desk { store, config, now, .. } = *desk;
        let chat = asked.message.chat;
        let viewer = if desk.is_owners(chat) { Viewer::Owner(chat) } else { Viewer::Chat(chat) };
        let Overview { last_cycle, queue, outstanding, questions, budget, model, .. } =
            store.with_snapshot(|| Overview::read(store, config, now, viewer))?;
        let why_not = |it: PassedOverModel| {
            let error = it.trouble.filter(|it| !it.may_try(now)).map(|it| it.error.trim_end_matches('.').to_owned());
            Some((it.name, error.or_else(|| budget.find_obstacle(Some(chat)))?))
        };
        Ok(Self {
            now,
            tz: config.timezone,
            stopped_since: desk.find_stop_time(asked),
            running_since: wake_lock::read_holder(&config.lock_path())
                .filter(|holder| holder.identity().is_alive())
                .map(|holder| reveille_base::clock::parse_time(&holder.started_at)),
            last: last_cycle.map(LastWake::from),
            queue: (queue.total, queue.oldest_at),
            outstanding,
            questions: questions.into_iter().map(|asked| Question::from_approval(asked, chat)).collect(),
            passed_over: model.passed_over.into_iter().filter(|_| model.is_available).filter_map(why_not).collect(),
            is_chosen: config.chosen_model.is_some(),
            is_model_available: model.is_available,
            out_of_budget: if model.is_thinking { budget.find_obstacle(Some(chat)) } else { None },
            model: model.name,
            budget,
        })
    }

    /// Renders the state as Markdown.
    pub(super) fn render(&self) -> String {
        let lines = [
            self.describe_running(),
            self.last_wake(),
            self.describe_queue(),
            self.describe_deliveries(),
            self.describe_model(),
        ];
        let lines =
            self.describe_stop().into_iter().chain(self.describe_questions()).chain(lines).chain(self.passed_over());
        let lines: Vec<String> = lines.map(|line| format!("- {line}")).collect();
        lines.join("\n")
    }

    fn describe_stop(&self) -> Option<String> {
        let since = self.stopped_since?.map(|at| format!(" since {}", self.format_time(at))).unwrap_or_default();
        Some(format!("**Stopped**{since}. Send /resume to continue."))
    }

    fn describe_questions(&self) -> Vec<String> {
        let question = |Question { id, what, asked_at, expires_at, is_asked_here }: &Question| {
            let since = asked_at.map(|at| format!(" since {}", self.format_time(at))).unwrap_or_default();
            let until = expires_at.map(|at| format!(" until {}", self.format_time(at))).unwrap_or_default();
            let here = if *is_asked_here { "under it" } else { "in its chat" };
            format!(
                "**A question waits for you**{since}{until}: {what} Answer with the buttons {here}, or in a terminal with \
                 `wake approvals approve {id}` or `deny {id}`."
            )
        };
        self.questions.iter().map(question).collect()
    }

    fn describe_running(&self) -> String {
        match self.running_since {
            Some(Some(since)) => format!("**Working** since {}.", self.format_time(since)),
            Some(None) => "**Working**.".to_owned(),
            None => "**Idle**.".to_owned(),
        }
    }

    fn last_wake(&self) -> String {
        let Some(last) = &self.last else {
            return "I haven't done anything yet.".to_owned();
        };
        let at = last.at.map_or_else(|| "at an unknown time".to_owned(), |at| self.format_time(at));
        let outcome = match last.state {
            CycleState::Running if self.running_since.is_some() => "under way".to_owned(),
            CycleState::Running => "cut off; I'll continue it".to_owned(),
            CycleState::Waiting => "waiting for the AI model".to_owned(),
            CycleState::Parked => "waiting for you".to_owned(),
            CycleState::Done => "done".to_owned(),
            CycleState::Failed => "failed; nothing is lost".to_owned(),
            CycleState::Abandoned => "given up after several tries".to_owned(),
        };
        let reasons = match last.reasons.len() {
            0 => String::new(),
            _ => format!(", {}", last.reasons.join(", ")),
        };
        format!("Last: {at}{reasons} ({outcome}).")
    }

    fn describe_queue(&self) -> String {
        match self.queue {
            (0, _) => "No messages waiting.".to_owned(),
            (n, oldest) => {
                let since = oldest.map(|at| format!(", the oldest for {}", format_age(self.now - at)));
                format!("{} waiting{}.", format_count(n, "message"), since.unwrap_or_default())
            }
        }
    }

    fn describe_deliveries(&self) -> String {
        let replies = |n| format_count(n, "reply").replace("replys", "replies");
        // The next wake shows the terminal's replies, independent of the channel.
        let Outstanding { tried, in_doubt, refused, console: _ } = self.outstanding;
        let they = if in_doubt == 1 { "it" } else { "they" };
        let outstanding = [
            (tried, "not delivered yet".to_owned()),
            (refused, "impossible to deliver; `health status` says why".to_owned()),
            (in_doubt, format!("sent twice without Telegram's confirmation; {they} may have arrived")),
        ];
        let told = outstanding.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} {what}", replies(n)));
        match told.collect::<Vec<_>>().join("; ") {
            nothing if nothing.is_empty() => "All replies delivered.".to_owned(),
            told => format!("{told}."),
        }
    }

    fn describe_model(&self) -> String {
        let Budget { today_usd, month_usd, daily_usd, monthly_usd, .. } = self.budget;
        let month = monthly_usd.map(|usd| format!(", ${month_usd:.2} of ${usd:.2} this month")).unwrap_or_default();
        let money = format!("${today_usd:.2} of ${daily_usd:.2} used today{month}");
        let chosen = if self.is_chosen { " (chosen with /model)" } else { "" };
        match (self.model.as_str(), self.is_model_available) {
            (name, false) if self.out_of_budget.is_some() => {
                let why = self.out_of_budget.as_deref().unwrap_or_default();
                format!("AI model: {name}{chosen}, not used just now: {why}; {money}.")
            }
            (OFFLINE_MODEL, _) if self.is_chosen => format!("AI model: none{chosen}, {money}."),
            (OFFLINE_MODEL, _) => format!("AI model: none (no key), {money}."),
            (name, true) => format!("AI model: {name}{chosen}, {money}."),
            (name, false) => format!("AI model: {name}{chosen}, couldn't be reached; I'll try again soon, {money}."),
        }
    }

    fn passed_over(&self) -> impl Iterator<Item = String> {
        self.passed_over.iter().map(|(name, why)| format!("{name} isn't in use right now: {why}."))
    }

    fn format_time(&self, at: DateTime<Utc>) -> String {
        format_near_time(at, self.now, self.tz)
    }
}

impl Question {
    fn from_approval(asked: Approval, chat: ChatRef) -> Self {
        let is_asked_here = asked.chat == chat;
        let Approval { id, tool, action, asked_at, expires_at, .. } = asked;
        Self {
            id,
            what: approval_text::describe_action(&tool, &action).sentence(),
            asked_at,
            expires_at,
            is_asked_here,
        }
    }
}

impl From<CycleRow> for LastWake {
    fn from(row: CycleRow) -> Self {
        Self { at: row.started_at, reasons: row.cycle.reasons, state: row.state }
    }
}

/// Formats a waiting time roughly.
fn format_age(age: TimeDelta) -> String {
    match age.num_minutes() {
        ..1 => "less than a minute".to_owned(),
        minutes @ 1..120 => format!("{minutes} min"),
        minutes @ 120..2880 => format!("{} h", minutes / 60),
        minutes => format!("{} days", minutes / 1440),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_base::clock::parse_time;

    fn spent(of_day: (f64, f64), of_month: (f64, Option<f64>)) -> Budget {
        let now = reveille_base::clock::parse_time("2026-11-21T14:00:00Z").unwrap();
        Budget::from_spending((now, "Europe/Berlin".parse().unwrap()), of_day, of_month)
    }

    fn at(text: &str) -> Option<DateTime<Utc>> {
        Some(parse_time(text).unwrap())
    }

    fn quiet() -> AssistantStatus {
        AssistantStatus {
            now: parse_time("2026-11-21T09:00:00Z").unwrap(),
            tz: "Europe/Berlin".parse().unwrap(),
            stopped_since: None,
            running_since: None,
            last: None,
            queue: (0, None),
            outstanding: Outstanding::default(),
            questions: Vec::new(),
            model: OFFLINE_MODEL.to_owned(),
            is_chosen: false,
            is_model_available: true,
            passed_over: Vec::new(),
            out_of_budget: None,
            budget: spent((0.0, 5.0), (0.0, None)),
        }
    }

    #[test]
    fn a_fresh_assistant() {
        insta::assert_snapshot!(quiet().render(), @r"
        - **Idle**.
        - I haven't done anything yet.
        - No messages waiting.
        - All replies delivered.
        - AI model: none (no key), $0.00 of $5.00 used today.
        ");
    }

    #[test]
    fn a_busy_one() {
        let status = AssistantStatus {
            stopped_since: Some(at("2026-11-21T08:59:30Z")),
            running_since: Some(at("2026-11-21T08:59:00Z")),
            last: Some(LastWake {
                at: at("2026-11-20T08:00:00Z"),
                reasons: vec!["2 messages in chat 4242".to_owned(), "reminder 3".to_owned()],
                state: CycleState::Done,
            }),
            queue: (3, at("2026-11-21T08:15:00Z")),
            outstanding: Outstanding { tried: 2, in_doubt: 0, refused: 1, console: 1 },
            questions: [true, false]
                .map(|is_asked_here| Question {
                    id: if is_asked_here { 4 } else { 5 },
                    what: "May I run this command?".to_owned(),
                    asked_at: at("2026-11-21T08:30:00Z"),
                    expires_at: at("2026-11-22T08:30:00Z"),
                    is_asked_here,
                })
                .to_vec(),
            model: "claude-sonnet-5-5".to_owned(),
            is_model_available: false,
            budget: spent((1.234, 5.0), (1.234, None)),
            ..quiet()
        };
        insta::assert_snapshot!(status.render(), @r"
        - **Stopped** since today 09:59. Send /resume to continue.
        - **A question waits for you** since today 09:30 until Sun 2026-11-22 09:30: May I run this command? Answer with the buttons under it, or in a terminal with `wake approvals approve 4` or `deny 4`.
        - **A question waits for you** since today 09:30 until Sun 2026-11-22 09:30: May I run this command? Answer with the buttons in its chat, or in a terminal with `wake approvals approve 5` or `deny 5`.
        - **Working** since today 09:59.
        - Last: Fri 2026-11-20 09:00, 2 messages in chat 4242, reminder 3 (done).
        - 3 messages waiting, the oldest for 45 min.
        - 2 replies not delivered yet; 1 reply impossible to deliver; `health status` says why.
        - AI model: claude-sonnet-5-5, couldn't be reached; I'll try again soon, $1.23 of $5.00 used today.
        ");
    }

    #[test]
    fn who_is_passed_over_and_why() {
        let passed_over = vec![("claude-sonnet-5-5".to_owned(), "Claude is overloaded".to_owned())];
        let status = AssistantStatus { model: "claude-haiku-5-5".to_owned(), passed_over, ..quiet() };
        let text = status.render();
        let told = "- AI model: claude-haiku-5-5, $0.00 of $5.00 used today.\n\
                    - claude-sonnet-5-5 isn't in use right now: Claude is overloaded.";
        assert!(text.ends_with(told), "{text}");
    }

    #[test]
    fn what_becomes_of_the_replies() {
        let told = |tried, in_doubt, refused| {
            AssistantStatus { outstanding: Outstanding { tried, in_doubt, refused, console: 0 }, ..quiet() }
                .describe_deliveries()
        };
        assert_eq!(told(0, 0, 1), "1 reply impossible to deliver; `health status` says why.");
        assert_eq!(told(0, 1, 0), "1 reply sent twice without Telegram's confirmation; it may have arrived.");
        assert_eq!(
            told(1, 2, 0),
            "1 reply not delivered yet; 2 replies sent twice without Telegram's confirmation; they may have arrived."
        );
    }

    #[test]
    fn ages_are_rough() {
        let ages = [-5, 0, 1, 119, 120, 2879, 2880].map(|minutes| format_age(TimeDelta::minutes(minutes)));
        assert_eq!(
            ages.each_ref().map(String::as_str),
            ["less than a minute", "less than a minute", "1 min", "119 min", "2 h", "47 h", "2 days"]
        );
    }
}
