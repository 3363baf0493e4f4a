//! Cycles without a mind: what a rule can do at once and for nothing. Reminders are sent; with the offline mind, decay and a
//! task's time are told and a person's commits are noted. Guests are told of their tasks so by any mind, in their own chat.

use super::{
    WakeError,
    budget::{Budget, Waits},
    observe::Observation,
    orient::Reason,
    verify::Account,
    wake::{Ending, Wake},
};
use crate::{
    memory::decay,
    queue::{Change, NewOutgoing},
    repo::Repo,
};

impl Wake<'_> {
    /// A cycle without a mind: reminders are sent, decay and a task's time are told by rule, a person's commits are noted.
    pub(super) async fn by_rule(
        &mut self,
        repo: &Repo,
        observation: &Observation,
        reasons: &[Reason],
    ) -> Result<(), WakeError> {
        let cycle = self.new_cycle(reasons, "none")?;
        let plan_file = self.open_plan_file(&cycle, &[])?;
        let mut account = Account::default();
        self.take_in_person_edits(repo, &mut account)?;
        self.store.begin_cycle(self.fence, &cycle, &[], self.now())?;
        account.receipts.extend(self.remind(reasons, observation, &cycle.id)?);
        for reason in reasons {
            let (reason, chat_id) = match reason {
                Reason::OfGuest { chat_id, what } => (&**what, *chat_id),
                owners => (owners, self.context.config.owner_chat_id),
            };
            account.receipts.extend(self.act_on(reason, chat_id, observation, &cycle.id)?);
        }
        let sees_commits = reasons.iter().any(|reason| matches!(reason, Reason::PersonCommits { .. }));
        let ending = Ending {
            cycle,
            messages: Vec::new(),
            account,
            staged: Vec::new(),
            handled: reasons.iter().filter_map(Reason::handled_key).collect(),
            plan_file,
            head_shown: observation.head.clone().filter(|_| sees_commits),
            removed: Vec::new(),
            undoes: None,
        };
        self.finish(repo, ending).await
    }

    /// Does what the rule for one reason says; gives receipts of what was done. `told`: the chat whose affair it is.
    fn act_on(
        &mut self,
        reason: &Reason,
        told: i64,
        observation: &Observation,
        cycle_id: &str,
    ) -> Result<Vec<String>, WakeError> {
        let now = self.now();
        match reason {
            Reason::Task { title, next, missed_at, key } => {
                let next = next.as_deref().unwrap_or("no next step is written down");
                let late = missed_at.map(|at| format!(" (It was due {}.)", at.format("%a %-d %b %H:%M")));
                let late = late.unwrap_or_default();
                self.tell_by_rule(cycle_id, told, key, &format!("It is time for “{title}”: {next}.{late}"))
            }
            Reason::MissedTask { title, at, is_told: false, .. } => {
                Ok(vec![format!("Skipped the next step of “{title}”: its time {at} was missed")])
            }
            Reason::MissedTask { title, at, is_told: true, key } => {
                let text = format!("I was not running at {at}, the time of “{title}”. It is not done late.");
                self.tell_by_rule(cycle_id, told, key, &text)
            }
            Reason::Decay { title, stage, key } => {
                let touched = observation.tasks.iter().find(|task| task.title == *title).and_then(|task| task.touched);
                let today = now.with_timezone(&self.context.config.timezone).date_naive();
                let days = touched.map_or(0, |touched| decay::quiet_days(touched, today));
                self.tell_by_rule(cycle_id, told, key, &stage.wording(title, days))
            }
            Reason::PersonCommits { subjects } => {
                Ok(subjects.iter().map(|subject| format!("Noted a person's commit: {subject}")).collect())
            }
            Reason::OverBudget { cap, chat_id, thread_id, key } => {
                let text = Budget::look(self.store, self.context.config, now)?.notice(*cap, 0.0, Waits::Message);
                let notice = Change::Send(NewOutgoing {
                    chat_id: *chat_id,
                    text,
                    kind: "notice".to_owned(),
                    key: Some(key.clone()),
                    thread_id: *thread_id,
                    ..NewOutgoing::default()
                });
                self.store.change(self.fence, cycle_id, &[notice], now)?;
                Ok(vec![format!("Told chat {chat_id} that the {}'s budget is spent", cap.name())])
            }
            // Reminders fire together, so that what was missed is told in one message.
            Reason::Reminder { .. }
            | Reason::Messages { .. }
            | Reason::Resume { .. }
            | Reason::Undo { .. }
            | Reason::OfGuest { .. } => Ok(Vec::new()),
        }
    }

    /// Speaks by rule, once per key.
    fn tell_by_rule(&mut self, cycle_id: &str, chat_id: i64, key: &str, text: &str) -> Result<Vec<String>, WakeError> {
        let message = NewOutgoing {
            chat_id,
            text: self.context.redactor.redact(text),
            kind: "tell".to_owned(),
            key: Some(format!("tell/{key}")),
            ..NewOutgoing::default()
        };
        self.store.change(self.fence, cycle_id, &[Change::Send(message)], self.now())?;
        let whom =
            if chat_id == self.context.config.owner_chat_id { String::new() } else { format!(" chat {chat_id}") };
        Ok(vec![format!("Told{whom}: {text}")])
    }
}
