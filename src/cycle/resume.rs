//! Cycles that were cut off: taken up again from their journals, or given up with all that they were about kept.

use super::{
    WakeError, WakeOutcome, brief,
    drive::Interrupt,
    finish,
    machine::Cycle,
    observe, orient,
    plan_file::PlanFile,
    upkeep::merge_texts,
    verify::Account,
    wake::{Live, Wake},
};
use crate::{
    queue::{Change, CycleEnd, CycleRow, CycleState, Entry, MAX_ATTEMPTS, NewCycle, NewOutgoing},
    repo::{Parked, Parking, Publish, Repo, RepoError},
};

/// Resumptions of a cycle after crashes, kills and time-outs; then it is given up.
pub const MAX_TRIES: u32 = 3;

/// What becomes of a cycle that was cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Uptake {
    /// Its commit was made: only its end has to be written down.
    Conclude,
    /// It goes on from its journal.
    GoOn,
    /// It can't go on: what it had not answered is due again.
    GiveUp {
        /// For people.
        why: String,
        /// Whether it failed on its messages.
        counts: bool,
    },
}

/// Decides it for the mind called `mind`. Pure.
pub fn uptake(row: &CycleRow, journal: &[Entry], is_committed: bool, mind: &str, has_crashed: bool) -> Uptake {
    let begun_by = row.cycle.model.as_str();
    if is_committed {
        Uptake::Conclude
    } else if journal.is_empty() || begun_by == "none" {
        // Nothing of a conversation: what it did is in the database, what it was about is due again.
        Uptake::GiveUp { why: "it was cut off before it began".to_owned(), counts: false }
    } else if begun_by != mind {
        Uptake::GiveUp { why: format!("it was begun by {begun_by}, which is not the mind any more"), counts: false }
    } else if has_crashed && row.tries >= MAX_TRIES {
        Uptake::GiveUp { why: format!("it was cut off {} times", row.tries + 1), counts: true }
    } else {
        Uptake::GoOn
    }
}

impl Wake<'_> {
    /// Takes an interrupted cycle up from its journal.
    pub(super) async fn resume(&mut self, repo: &Repo, cycle_id: &str, has_crashed: bool) -> Result<(), WakeError> {
        let Some(row) = self.store.cycle(cycle_id)? else {
            return Ok(());
        };
        let plan_file = PlanFile::reopen(&self.context.config.workspace_dir, cycle_id);
        self.report.cycle_id = Some(cycle_id.to_owned());
        self.report.reasons.push(format!("resume {cycle_id}"));
        let journal = self.store.journal(cycle_id)?;
        let state = Cycle::replay(row.cycle.system.clone(), row.cycle.tools.clone(), &journal);
        let commit = repo.wake_commit(cycle_id)?;
        let branch = format!("parked/{cycle_id}");
        if commit.is_none()
            && let Some((_, commit)) = repo.parked()?.into_iter().find(|(parked, _)| *parked == branch)
        {
            // Cut off after its work was parked; perhaps before that was told.
            let error = RepoError::NotOnBranch { condition: repo.condition()?, branch: repo.branch().to_owned() };
            self.tell_parked(repo, &branch, row.cycle.chat_id, &error)?;
            return self.conclude(repo, &state, cycle_id, &commit.to_string(), &plan_file).await;
        }
        match (uptake(&row, &journal, commit.is_some(), self.context.model.name(), has_crashed), commit) {
            (Uptake::Conclude, Some(commit)) => {
                return self.conclude(repo, &state, cycle_id, &commit.to_string(), &plan_file).await;
            }
            (Uptake::GiveUp { why, counts }, _) => {
                return self.give_up(repo, cycle_id, &state, &plan_file, &why, counts).await;
            }
            _ => {}
        }
        let mut account = Account::default();
        account.notes.push(format!("Went on with the wake {cycle_id}, which was interrupted."));
        self.store.resume_cycle(self.fence, cycle_id, has_crashed)?;
        let (me, now) = (self.me.clone(), self.now());
        self.lock
            .describe(&me, now, Some(cycle_id), row.cycle.chat_id, row.cycle.thread_id)
            .map_err(WakeError::Lock)?;
        self.take_in_person_edits(repo, &mut account)?;
        let messages = self.store.queued()?;
        let mut world = self.world(repo, &row.cycle, &messages, &state.open, &mut account)?;
        world.replies = state.replies;
        let live = Live { cycle: row.cycle, state, world, plan_file, account };
        self.carry_on(repo, live).await
    }

    /// Writes down why a cycle stopped. What was said stays queued, what was paid for stays in the journal.
    pub(super) async fn interrupted(
        &mut self,
        repo: &Repo,
        live: &Live,
        interrupt: Interrupt,
    ) -> Result<(), WakeError> {
        let Live { cycle, state, plan_file, .. } = live;
        let now = self.now();
        let why = self.context.redactor.redact(&interrupt.to_string());
        tracing::warn!(cycle = %cycle.id, %why, "the cycle was interrupted");
        self.report.outcome = WakeOutcome::Failed;
        self.report.error = Some(why.clone());
        match &interrupt {
            Interrupt::Stopped => return Ok(self.store.pause_cycle(self.fence, &cycle.id, now, &why)?),
            // Left as running: the next wake takes it up as one that was cut off, which is counted.
            Interrupt::OutOfTime => return Ok(()),
            Interrupt::Rejected(_) => {
                return self.give_up(repo, &cycle.id, state, plan_file, &why, true).await;
            }
            Interrupt::Unavailable { retry_after, .. } => {
                let at_least = retry_after.and_then(|wait| chrono::TimeDelta::from_std(wait).ok());
                self.store.upkeep_failed(self.fence, observe::MODEL, &why, at_least, now)?;
            }
            Interrupt::OverBudget => {}
        }
        self.say_once_that_it_waits(live, &interrupt)?;
        if state.turns > 0 {
            self.store.pause_cycle(self.fence, &cycle.id, now, &why)?;
        } else {
            let end = CycleEnd {
                state: CycleState::Failed,
                commit_id: None,
                error: Some(&why),
                handled: &[],
                repairs: &[],
                failed_messages: &[],
            };
            self.store.end_cycle(self.fence, &cycle.id, &end, now)?;
            self.remove_plan_file(plan_file);
        }
        self.deliver().await
    }

    /// Tells the asking chat, once for each stretch of trouble, that its message is kept.
    fn say_once_that_it_waits(&mut self, live: &Live, interrupt: &Interrupt) -> Result<(), WakeError> {
        let Live { cycle, state, .. } = live;
        let (Some(chat_id), Some(first)) = (cycle.chat_id, state.open.first()) else {
            return Ok(());
        };
        let changes = if *interrupt == Interrupt::OverBudget {
            let key = orient::budget_key(chat_id, *first);
            let notice = self.budget_notice(chat_id, cycle.thread_id, &key);
            let value = String::new();
            vec![notice, Change::Handled { key, value }]
        } else {
            vec![Change::Send(NewOutgoing {
                chat_id,
                text: interrupt.notice(),
                kind: "notice".to_owned(),
                key: Some(format!("waits/{first}")),
                thread_id: cycle.thread_id,
                ..NewOutgoing::default()
            })]
        };
        Ok(self.store.change(self.fence, &cycle.id, &changes, self.now())?)
    }

    /// Ends a cycle that can't be resumed: its messages go back to the queue, its unpublished work onto a branch of its own.
    async fn give_up(
        &mut self,
        repo: &Repo,
        cycle_id: &str,
        state: &Cycle,
        plan_file: &PlanFile,
        why: &str,
        counts: bool,
    ) -> Result<(), WakeError> {
        let now = self.now();
        let staged = self.store.staged(cycle_id)?;
        let mut parked = None;
        if !staged.is_empty() {
            let branch = format!("recovered/{cycle_id}");
            let message = format!("Unfinished work of the wake {cycle_id}\n");
            let redactor = self.context.redactor;
            let publish = Publish {
                changes: &finish::changes(&staged),
                message: &message,
                now,
                merge: &merge_texts,
                is_secret: &|text| redactor.contains_secret(text),
            };
            let Parked { branch, .. } = repo.park(&branch, &publish, Parking::ForAPerson)?;
            self.report.notes.push(format!("Its unfinished work is on the branch {branch}."));
            parked = Some(branch);
        }
        if counts && let Some(row) = self.store.cycle(cycle_id)? {
            let notice = Change::Send(self.given_up(&row.cycle, state, why, parked.as_deref())?);
            self.store.change(self.fence, cycle_id, &[notice], now)?;
        }
        // Without messages to fail on, nothing else would end it: the same reasons would be tried for ever.
        let is_over = counts && state.open.is_empty();
        let end = CycleEnd {
            state: CycleState::Abandoned,
            commit_id: None,
            error: Some(why),
            handled: if is_over { &state.handles } else { &[] },
            repairs: &[],
            failed_messages: if counts { &state.open } else { &[] },
        };
        if is_over {
            self.see_commits(repo, state.head_shown.as_deref())?;
        }
        self.store.end_cycle(self.fence, cycle_id, &end, now)?;
        self.remove_plan_file(plan_file);
        self.deliver().await
    }

    /// What is said of a cycle that was given up: that its messages are tried again (once, however often they are), that
    /// they are put aside, or that it had none left: then nothing does its work again, so that its person is told where it is
    /// `parked`. What it had answered may say of that work that it was done.
    fn given_up(
        &self,
        cycle: &NewCycle,
        state: &Cycle,
        why: &str,
        parked: Option<&str>,
    ) -> Result<NewOutgoing, WakeError> {
        let queued = self.store.queued()?;
        let dead: Vec<&str> = queued
            .iter()
            .filter(|message| state.open.contains(&message.id) && message.attempts + 1 >= MAX_ATTEMPTS)
            .map(|message| message.text.as_str())
            .collect();
        let (key, text) = match (state.open.first(), dead.as_slice()) {
            (None, _) => (
                cycle.id.clone(),
                format!(
                    "I gave up a piece of work ({}) because {why}. I don't try it again by myself; ask me if it matters.{}",
                    cycle.reasons.join("; "),
                    parked.map_or_else(String::new, |branch| format!(
                        " What it wanted to write is not in my memory, even if I said so: it is kept on the branch `{branch}`, and \
                         `git merge {branch}` brings it in."
                    ))
                ),
            ),
            (Some(first), []) => (
                format!("{first}"),
                format!(
                    "I could not finish my work because {why}. Your message is kept, and I start over with it soon."
                ),
            ),
            (Some(_), dead) => (
                cycle.id.clone(),
                format!(
                    "I tried {MAX_ATTEMPTS} times and could not answer this, because {why}:\n\n> {}\n\nI have put it aside and don't \
                     try it again by myself. Please put it differently and send it again, or run `wake queue retry`.",
                    dead.iter()
                        .map(|text| brief::clip(text, 200).replace('\n', " "))
                        .collect::<Vec<_>>()
                        .join("\n> ")
                ),
            ),
        };
        Ok(NewOutgoing {
            chat_id: cycle.chat_id.unwrap_or(self.context.config.owner_chat_id),
            text: self.context.redactor.redact(&text),
            kind: "notice".to_owned(),
            key: Some(format!("gave-up/{key}")),
            thread_id: cycle.thread_id,
            ..NewOutgoing::default()
        })
    }
}
