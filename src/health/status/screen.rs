//! Renders the screen of `health status`.

use chrono::{DateTime, Utc};

use reveille_base::{
    clock::parse_time,
    types::ChatRef,
    words::{format_count, format_local_time, format_relative_time, format_size, one_line, truncate_text},
    zone::Tz,
};
use reveille_config::OFFLINE_MODEL;
use reveille_cycle::decide::budget;
use reveille_store::{Cap, Prospect, Undelivered};

use super::{HealthStatus, files, questions};

/// Maximum number of late files listed; the others are only counted.
const MAX_LATE_FILES: usize = 5;
/// Maximum number of undelivered messages listed with their errors; the others are only counted.
const MAX_UNDELIVERED: usize = 100;
/// Maximum length of a shown text, in characters.
const MAX_TEXT_CHARS: usize = 80;

/// The text shown for a part that couldn't be read.
const UNKNOWN: &str = "not known";

impl HealthStatus {
    /// Renders the screen.
    pub fn render(&self, tz: Tz) -> String {
        let mut lines = vec![
            ("workspace", self.workspace.clone()),
            ("last wake", self.last_wake_line()),
            ("now", self.now_line()),
            ("queue", self.queue_line()),
            ("reminder", self.reminder_line(tz)),
            ("outbox", self.outbox_line()),
            ("telegram", self.telegram_line()),
            ("memory", self.git_line()),
            ("search", self.search.clone()),
            ("disk", self.disk_line()),
            ("AI model", self.model_line()),
            ("cost", self.cost_line()),
        ];
        lines.extend(self.machines.iter().map(|who| ("machines", who.clone())));
        let mut text: String = lines.iter().map(|(name, what)| format!("{name:<10} {what}\n")).collect();
        for question in &self.questions {
            text.push_str(&format!("{:<10} {}\n", "question", questions::render_line(question, self.at)));
        }
        for file in self.files.iter().take(MAX_LATE_FILES) {
            text.push_str(&format!("{:<10} {}\n", "file", files::render_line(file, self.at)));
        }
        if let Some(more @ 1..) = self.files.len().checked_sub(MAX_LATE_FILES) {
            text.push_str(&format!("{:<10} and {more} more\n", "file"));
        }
        for problem in &self.problems {
            text.push_str(&format!("{:<10} {problem}\n", "problem"));
        }
        text
    }

    fn last_wake_line(&self) -> String {
        let Some(wake) = &self.last_wake else {
            if self.is_store_unread {
                return UNKNOWN.to_owned();
            }
            return "none yet: wake --once".to_owned();
        };
        let when =
            wake.started_at.map_or_else(|| "at an unknown time".to_owned(), |at| format_relative_time(at, self.at));
        let why = shorten_line(&wake.reasons.join("; "));
        let error = wake.error.as_deref().map(|error| format!(": {}", shorten_line(error))).unwrap_or_default();
        // Only committed wakes can be shown.
        let show = wake.commit.as_ref().map(|_| format!("; wake show {}", wake.cycle_id)).unwrap_or_default();
        format!("{when}, {}{error} ({why}){show}", wake.state)
    }

    fn now_line(&self) -> String {
        let line = self.holder_line();
        let Some(stopped) = &self.stopped else { return line };
        let since = stopped.at.map(|at| format!(" {}", format_relative_time(at, self.at))).unwrap_or_default();
        format!("stopped{since} (to continue: wake resume); {line}")
    }

    fn holder_line(&self) -> String {
        match (self.lock.is_held, self.lock.pid) {
            (false, _) => "asleep".to_owned(),
            (true, None) => "a wake is at work".to_owned(),
            (true, Some(pid)) => {
                let cycle = self.lock.cycle_id.as_deref().map(|id| format!(", {id}")).unwrap_or_default();
                format!("a wake is at work (pid {pid}{cycle})")
            }
        }
    }

    fn queue_line(&self) -> String {
        let Some(queue) = &self.queue else {
            if self.is_store_unread {
                return UNKNOWN.to_owned();
            }
            return "nothing yet".to_owned();
        };
        let mut line = match queue.waiting {
            0 => "empty".to_owned(),
            n => format!("{n} waiting"),
        };
        if queue.held > 0 {
            line.push_str(&format!(", {} kept until an AI model can answer", queue.held));
        }
        if queue.asking > 0 {
            line.push_str(&format!(", {} waiting for your answer to a question", queue.asking));
        }
        if queue.awaiting_files > 0 {
            line.push_str(&format!(", {} waiting for files", queue.awaiting_files));
        }
        if queue.given_up > 0 {
            line.push_str(&format!(", {} given up (wake queue list)", queue.given_up));
        }
        if let Some(at) = queue.oldest_at {
            line.push_str(&format!(", the oldest came {}", format_relative_time(at, self.at)));
        }
        line
    }

    fn reminder_line(&self, tz: Tz) -> String {
        match &self.next_reminder {
            None => "none".to_owned(),
            Some(next) => format!(
                "{} ({}): {}",
                format_local_time(next.at, tz),
                format_relative_time(next.at, self.at),
                shorten_line(&next.text)
            ),
        }
    }

    pub(super) fn outbox_line(&self) -> String {
        let mut lines: Vec<String> =
            self.undelivered.iter().take(MAX_UNDELIVERED).map(|message| undelivered_line(message, self.at)).collect();
        match self.undelivered_count.saturating_sub(lines.len()) {
            0 if lines.is_empty() && self.is_store_unread => lines.push(UNKNOWN.to_owned()),
            0 if lines.is_empty() => lines.push("everything is delivered".to_owned()),
            0 => {}
            more => lines.push(format!("and {more} more")),
        }
        lines.join(&format!("\n{:<10} ", ""))
    }

    fn telegram_line(&self) -> String {
        self.heard_at.map_or_else(
            || "no contact yet".to_owned(),
            |at| format!("last contact {}", format_relative_time(at, self.at)),
        )
    }

    fn git_line(&self) -> String {
        let Some(git) = &self.git else {
            return "none yet".to_owned();
        };
        let remote = match (git.has_remote, git.ahead, git.behind) {
            (false, ..) => "no remote".to_owned(),
            (true, Some(0), Some(0)) => "the remote has everything".to_owned(),
            (true, Some(ahead), Some(behind)) => format!("{ahead} ahead, {behind} behind the remote"),
            (true, ..) => "the remote wasn't reached yet".to_owned(),
        };
        let commit = match (&git.commit, git.committed_at) {
            (Some(id), Some(at)) => {
                let id: String = id.chars().take(8).collect();
                let subject = shorten_line(git.subject.as_deref().unwrap_or_default());
                format!("{id} {} {subject}", format_relative_time(at, self.at))
            }
            _ => "no commit yet".to_owned(),
        };
        format!("{}, {}; {remote}; {commit}", git.branch, git.condition)
    }

    fn cost_line(&self) -> String {
        let today = (self.spent_today_usd, self.daily_budget_usd);
        budget::describe_spending(today, (self.spent_month_usd, self.monthly_budget_usd), self.reserved_usd)
    }

    fn disk_line(&self) -> String {
        match self.disk {
            None => UNKNOWN.to_owned(),
            Some(disk) if disk.is_short => format!(
                "{} free, less than the reserve of {}: the bot has stopped fetching messages; Telegram keeps them for a day",
                format_size(disk.free_bytes),
                format_size(disk.reserve_bytes)
            ),
            Some(disk) => format!("{} free", format_size(disk.free_bytes)),
        }
    }

    fn model_line(&self) -> String {
        let passed_over = self.model.passed_over.iter().map(|model| {
            let next = model
                .not_before
                .map(|at| format!("; retry due {}", format_relative_time(at, self.at)))
                .unwrap_or_default();
            format!("; {} couldn't be reached: {}{next}", model.name, shorten_line(&model.error))
        });
        passed_over.fold(self.asked_model_line(), |line, more| line + &more)
    }

    fn asked_model_line(&self) -> String {
        let name = &self.model.name;
        match (self.model.is_available, self.model.not_before, &self.model.error) {
            (true, _, None) if self.model.chats_without_room > 0 => format!(
                "{name}; the budget left is too small for the next request of {}",
                format_count(self.model.chats_without_room, "chat")
            ),
            (true, _, None) if name == OFFLINE_MODEL => name.clone(),
            (true, _, None) => match self.model.answered_at {
                Some(at) => format!("{name}, last answered {}", format_relative_time(at, self.at)),
                None => format!("{name}, not tried yet"),
            },
            (_, not_before, Some(error)) => {
                let next = not_before
                    .map(|at| format!("; retry due {}", format_relative_time(at, self.at)))
                    .unwrap_or_default();
                format!("{name}, which couldn't be reached: {}{next}", shorten_line(error))
            }
            (false, _, None) if self.model.over_budget == Some(Cap::Month.name()) => {
                format!("{name}, not used until next month: this month's budget is spent")
            }
            (false, _, None) => format!("{name}, not used until midnight: today's budget is spent"),
        }
    }
}

fn undelivered_line(message: &Undelivered, now: DateTime<Utc>) -> String {
    let to = match message.chat {
        ChatRef::TERMINAL => "the terminal".to_owned(),
        chat => format!("chat {chat}"),
    };
    let why = message.error.as_deref().map(|error| format!(": {}", shorten_line(error))).unwrap_or_default();
    let next = message.not_before.as_deref().and_then(parse_time);
    let next = next.map(|at| format!(", retry due {}", format_relative_time(at, now))).unwrap_or_default();
    let state = match message.prospect() {
        Prospect::InDoubt => "sent twice without confirmation, may have arrived",
        Prospect::Tried | Prospect::Refused => message.state.as_str(),
    };
    format!("{} to {to}: {state}{why}{next}", message.id)
}

/// Shortens a text to one line.
pub(super) fn shorten_line(text: &str) -> String {
    truncate_text(&one_line(text), MAX_TEXT_CHARS)
}
