//! Cycles that were cut off: taken up again from their journals, or given up with all that they were about kept.

use super::finish;
use crate::{
    cycle::{
        context::{WakeError, WakeOutcome},
        decide::{
            brief,
            budget::{self, Budget, Waits},
            interrupt::Interrupt,
            machine::Cycle,
            merge::merge_texts,
            orient,
            uptake::{GivingUp, MAX_TRIES, Uptake, uptake},
            verify::Account,
        },
        plan_file::PlanFile,
        session::{Ending, Live, Next, Wake},
    },
    redact::Redactor,
    repo::{Condition, Parked, Parking, Publish, Repo, RepoError},
    store::{
        Change, CycleEnd, CycleState, FencedStore, Incoming, MAX_ATTEMPTS, NewCycle, NewOutgoing, StoreError,
        UpkeepKind,
    },
    tool::Complexity,
    types::ChatRef,
    wake_lock::{self, Holder},
};

/// Who is told of messages that are put aside, and how their words are shown.
#[derive(Clone, Copy)]
pub(crate) struct Teller<'a> {
    /// Where what concerns no chat is told.
    pub(crate) owner_chat: ChatRef,
    /// Masks the live secrets.
    pub(crate) redactor: &'a Redactor,
}

/// Takes note of the cycle in which the last holder of the wake lock was killed. One that wasn't journalled yet counts against its
/// messages at once: nothing else will ever tell of it, and a message that kills whoever takes it up would be taken up for ever.
pub(crate) fn note_cut_off(
    store: &mut FencedStore<'_>,
    left: &Holder,
    cycle_id: &str,
    teller: Teller<'_>,
) -> Result<(), StoreError> {
    let queued = store.queued()?;
    let about = queued.iter().filter(|message| left.messages.contains(&message.id));
    let dead: Vec<&str> = about.filter(|message| is_last(message)).map(|message| message.text.as_str()).collect();
    let notice = NewOutgoing {
        key: Some(format!("gave-up/{cycle_id}")),
        thread_id: left.thread_id,
        // It quotes them, and no journal tells whose words they are.
        taint: Some("messages that are on hold".to_owned()),
        ..NewOutgoing::notice(
            left.chat.unwrap_or(teller.owner_chat),
            teller.redactor.redact(&put_aside("each time I was cut off before I could begin", &dead, None)),
        )
    };
    store.note_cut_off(cycle_id, &left.messages, (!dead.is_empty()).then_some(&notice))
}

/// Whether one more failure makes it a dead letter.
fn is_last(message: &Incoming) -> bool {
    message.attempts + 1 >= MAX_ATTEMPTS
}

impl Wake<'_> {
    /// Takes an interrupted cycle up from its journal.
    pub(in crate::cycle) async fn resume(
        &mut self,
        repo: &Repo,
        cycle_id: &str,
        has_crashed: bool,
    ) -> Result<Next, WakeError> {
        let Some(row) = self.store.cycle(cycle_id)? else {
            return Ok(Next::Others);
        };
        // First of all: whatever this cycle does to the wake is then known to be its doing.
        let (me, now) = (self.me.clone(), self.now());
        let (chat, thread_id) = (row.cycle.chat, row.cycle.thread_id);
        let work = wake_lock::LockedWork { cycle_id: Some(cycle_id), chat, thread_id, messages: &[] };
        self.lock.describe(&me, now, work).map_err(WakeError::Lock)?;
        if has_crashed {
            self.store.count_try(cycle_id)?;
        }
        let plan_file = PlanFile::reopen(&self.context.config.workspace_dir, cycle_id);
        if self.report.outcome == WakeOutcome::Parked && self.report.cycle_id.as_deref() == Some(cycle_id) {
            // What this wake had to ask is decided already: nothing waits.
            self.report.outcome = WakeOutcome::Worked;
        }
        self.report.cycle_id = Some(cycle_id.to_owned());
        self.report.reasons.push(format!("resume {cycle_id}"));
        let cuts = row.tries + u32::from(has_crashed);
        let journal = match self.store.journal(cycle_id) {
            // It was to be given up, and that was cut off too: by what it holds, perhaps. Or what is done by rule, of which only
            // the commit is left, has taken so many wakes along.
            _ if cuts > MAX_TRIES => {
                let state = self.what_it_took_up(cycle_id)?;
                return self
                    .give_up(repo, cycle_id, &state, &plan_file, GivingUp::cut_off(cuts))
                    .await
                    .map(|()| Next::Others);
            }
            Ok(journal) => journal,
            Err(StoreError::Damaged(why)) => {
                let state = self.what_it_took_up(cycle_id)?;
                let giving_up = GivingUp::blameless(format!("its journal can't be read ({why})"));
                return self.give_up(repo, cycle_id, &state, &plan_file, giving_up).await.map(|()| Next::Others);
            }
            Err(error) => return Err(error.into()),
        };
        let state = Cycle::replay(row.cycle.system.clone(), row.cycle.tools.clone(), &journal);
        let commit = repo.wake_commit(cycle_id)?;
        if commit.is_none()
            && let Some((branch, commit)) = repo.parked_by(cycle_id)?
        {
            // Cut off after its work was parked; perhaps before that was told.
            self.tell_parked(repo, &branch, row.cycle.chat, &why_parked(repo)?)?;
            return self.conclude(repo, &state, cycle_id, commit, &plan_file).await.map(|()| Next::Others);
        }
        let is_dropped = commit.is_none() && !state.open.is_empty() && self.store.are_dropped(&state.open)?;
        // What was answered before stays answered, and what the answer says was written is written.
        let has_answered = state.messages.iter().any(|id| !state.open.contains(id));
        if is_dropped && !has_answered {
            return self.give_up(repo, cycle_id, &state, &plan_file, GivingUp::Dropped).await.map(|()| Next::Others);
        }
        let uptake = uptake(&row, &journal, commit.is_some(), self.context.model.name(), has_crashed);
        let is_done = match (uptake, commit) {
            (Uptake::Conclude, Some(commit)) => {
                return self.conclude(repo, &state, cycle_id, commit, &plan_file).await.map(|()| Next::Others);
            }
            (Uptake::GiveUp(giving_up), _) if !is_dropped => {
                return self.give_up(repo, cycle_id, &state, &plan_file, giving_up).await.map(|()| Next::Others);
            }
            (uptake, _) => uptake == Uptake::Publish,
        };
        self.store.resume_cycle(cycle_id)?;
        let mut account = Account::default();
        account.notes.push(format!("Went on with the wake {cycle_id}, which was interrupted."));
        self.take_in_person_edits(repo, &mut account)?;
        if is_done {
            return self.finish(repo, Ending::new(row.cycle, state, plan_file, account)).await.map(|()| Next::Others);
        }
        let messages = self.store.queued()?;
        let mut world = self.world(repo, &row.cycle, &messages, &state.open, &mut account)?;
        world.replies = state.replies;
        let hands = self.hands(&world);
        let live = Live::new(row.cycle, state, world, plan_file, account, hands);
        if is_dropped {
            return Box::pin(self.complete(repo, live)).await.map(|()| Next::Others);
        }
        self.carry_on(repo, live).await
    }

    /// Writes down why a cycle stopped. What was said stays queued, what was paid for stays in the journal.
    pub(in crate::cycle) async fn interrupted(
        &mut self,
        repo: &Repo,
        live: &Live,
        interrupt: Interrupt,
    ) -> Result<Next, WakeError> {
        let Live { cycle, state, plan_file, .. } = live;
        let now = self.now();
        let why = self.context.redactor.redact(&interrupt.to_string());
        tracing::warn!(cycle = %cycle.id, %why, "the cycle was interrupted");
        if interrupt == Interrupt::Halted {
            self.report.outcome = WakeOutcome::Parked;
            self.store.pause_cycle(&cycle.id, now, &why)?;
            return Ok(Next::Others);
        }
        self.report.outcome = WakeOutcome::Failed;
        self.report.error = Some(why.clone());
        match &interrupt {
            Interrupt::Stopped => {
                self.store.pause_cycle(&cycle.id, now, &why)?;
                return Ok(Next::Nobody);
            }
            // Left as running: the next wake takes it up as one that was cut off, which is counted.
            // Work in the background takes as many wakes as it takes, as long as each brings it further.
            Interrupt::OutOfTime if live.has_progressed() && state.meter.complexity() == Complexity::Background => {
                self.store.pause_cycle(&cycle.id, now, &why)?;
                return Ok(Next::Nobody);
            }
            Interrupt::OutOfTime => {
                self.store.note_cut_off(&cycle.id, &[], None)?;
                return Ok(Next::Nobody);
            }
            Interrupt::Rejected(_) => {
                return self
                    .give_up(repo, &cycle.id, state, plan_file, GivingUp::Failed(why))
                    .await
                    .map(|()| Next::Nobody);
            }
            Interrupt::Unavailable { retry_after, is_model_gone, .. } => {
                let at_least = retry_after.and_then(|wait| chrono::TimeDelta::from_std(wait).ok());
                self.store.upkeep_failed(UpkeepKind::Model, &why, at_least)?;
                if *is_model_gone && state.turns > 0 {
                    let when = "as soon as MODEL names one that exists";
                    return self
                        .give_up(repo, &cycle.id, state, plan_file, GivingUp::Blameless { why, when })
                        .await
                        .map(|()| Next::Nobody);
                }
            }
            Interrupt::OverBudget { cap, most_usd } => {
                let mark = Budget::look(&self.store, self.context.config, now)?.mark_of(*cap, *most_usd);
                let no_room = Change::Handled { key: budget::no_room_key(cycle.chat), value: mark };
                self.store.change(&cycle.id, &[no_room])?;
            }
            Interrupt::Halted => {}
        }
        self.say_once_that_it_waits(live, &interrupt)?;
        if state.turns > 0 {
            self.store.pause_cycle(&cycle.id, now, &why)?;
        } else {
            let has_copies = self.has_copies(&cycle.id);
            let end = CycleEnd { error: Some(&why), has_copies, ..CycleEnd::new(CycleState::Failed) };
            self.store.end_cycle(&cycle.id, &end)?;
            self.remove_plan_file(plan_file);
        }
        self.lay_down();
        self.deliver().await?;
        // What others ask may cost less.
        let is_its_own = matches!(interrupt, Interrupt::OverBudget { .. });
        Ok(if is_its_own { Next::Others } else { Next::Nobody })
    }

    /// Tells the asking chat, once for each stretch of trouble, that its message is kept. What waits for a budget waits long: where
    /// nobody has a message open, the chat that it is for is told all the same, or the owner.
    fn say_once_that_it_waits(&mut self, live: &Live, interrupt: &Interrupt) -> Result<(), WakeError> {
        let Live { cycle, state, .. } = live;
        let chat = cycle.chat.unwrap_or(self.context.config.owner_chat);
        let mut changes = Vec::new();
        let (key, text) = match (interrupt, state.open.first()) {
            (Interrupt::OverBudget { cap, most_usd }, open) => {
                let budget = Budget::look(&self.store, self.context.config, self.now())?;
                match open {
                    Some(_) => {
                        let queued = self.store.queued()?;
                        let open = queued.iter().filter(|message| state.open.contains(&message.id));
                        let (now, tz) = (self.now(), self.context.config.timezone);
                        let key = orient::budget_key(chat, open, *cap, now, tz);
                        changes.push(Change::Handled { key: key.clone(), value: String::new() });
                        (key, budget.notice(*cap, *most_usd, Waits::Message))
                    }
                    None => (budget.work_key(chat, *cap), budget.notice(*cap, *most_usd, Waits::Work)),
                }
            }
            (_, Some(first)) => (format!("waits/{first}"), interrupt.notice()),
            (_, None) => return Ok(()),
        };
        changes.push(Change::Send(NewOutgoing {
            key: Some(key),
            thread_id: cycle.thread_id,
            ..NewOutgoing::notice(chat, text)
        }));
        Ok(self.store.change(&cycle.id, &changes)?)
    }

    /// A cycle whose journal isn't read, as far as the queue and what it was told of tell.
    fn what_it_took_up(&self, cycle_id: &str) -> Result<Cycle, WakeError> {
        let mut state = Cycle::new(String::new(), String::new());
        let told = self.store.told_to(cycle_id)?;
        state.handles = told.handles.into_iter().collect();
        state.head_shown = told.heads.into_iter().next_back();
        let taken = |message: &Incoming| message.cycle_id.as_deref() == Some(cycle_id);
        state.open = self.store.queued()?.iter().filter(|message| taken(message)).map(|message| message.id).collect();
        Ok(state)
    }

    /// Ends a cycle that can't be resumed: its messages go back to the queue, its unpublished work onto a branch of its own,
    /// and its person is told in one sentence.
    async fn give_up(
        &mut self,
        repo: &Repo,
        cycle_id: &str,
        state: &Cycle,
        plan_file: &PlanFile,
        giving_up: GivingUp,
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
        let row = self.store.cycle(cycle_id)?.filter(|_| !matches!(giving_up, GivingUp::Unheard | GivingUp::Dropped));
        let notice = row.map(|row| self.given_up(&row.cycle, state, &giving_up, parked.as_deref())).transpose()?;
        let counts = giving_up.counts();
        // Without messages to fail on, nothing else would end it: the same reasons would be tried for ever.
        let is_over = counts && state.open.is_empty();
        let head_seen = if is_over { self.seen_with(repo, state.head_shown.as_deref())? } else { None };
        let end = CycleEnd {
            error: Some(giving_up.why()),
            handled: if is_over { &state.handles } else { &[] },
            head_seen: head_seen.as_deref(),
            failed_messages: if counts { &state.open } else { &[] },
            notice: notice.as_ref(),
            has_copies: self.has_copies(cycle_id),
            ..CycleEnd::new(if giving_up == GivingUp::Unheard { CycleState::Failed } else { CycleState::Abandoned })
        };
        self.store.end_cycle(cycle_id, &end)?;
        self.remove_plan_file(plan_file);
        self.lay_down();
        self.deliver().await
    }

    /// What is said of a cycle that was given up. That its messages fail is said once, however often they are tried, and once
    /// more when they are put aside; each branch with what it had written is named.
    fn given_up(
        &self,
        cycle: &NewCycle,
        state: &Cycle,
        giving_up: &GivingUp,
        parked: Option<&str>,
    ) -> Result<NewOutgoing, WakeError> {
        let queued = self.store.queued()?;
        let is_dead = |message: &&Incoming| state.open.contains(&message.id) && is_last(message);
        let dead: Vec<&str> = queued.iter().filter(is_dead).map(|message| message.text.as_str()).collect();
        let (key, text) = match (giving_up, state.open.first()) {
            (GivingUp::Failed(why), Some(first)) if dead.is_empty() => {
                let key = if parked.is_some() { cycle.id.clone() } else { first.to_string() };
                (key, begins_again(why, "soon", parked))
            }
            (GivingUp::Failed(why), Some(_)) => (cycle.id.clone(), put_aside(why, &dead, parked)),
            (GivingUp::Blameless { why, when }, Some(_)) => (cycle.id.clone(), begins_again(why, when, parked)),
            (GivingUp::Blameless { why, when }, None) if !state.handles.is_empty() => {
                (cycle.id.clone(), begins_work_again(&cycle.reasons, why, when, parked))
            }
            (GivingUp::Failed(why) | GivingUp::Blameless { why, .. }, None) => {
                (cycle.id.clone(), gives_work_up(&cycle.reasons, why, parked))
            }
            (GivingUp::Unheard | GivingUp::Dropped, _) => (cycle.id.clone(), String::new()),
        };
        Ok(NewOutgoing {
            key: Some(format!("gave-up/{key}")),
            thread_id: cycle.thread_id,
            cycle_id: Some(cycle.id.clone()),
            ..NewOutgoing::notice(
                cycle.chat.unwrap_or(self.context.config.owner_chat),
                self.context.redactor.redact(&text),
            )
        })
    }
}

/// Why a cycle that was cut off had parked its work. Only HEAD can still be asked.
fn why_parked(repo: &Repo) -> Result<String, RepoError> {
    Ok(match repo.condition()? {
        Condition::Normal | Condition::Unborn => {
            "something was in the way, and I was cut off before I could say what".to_owned()
        }
        condition => RepoError::NotOnBranch { condition, branch: repo.branch().to_owned() }.to_string(),
    })
}

fn written_by_then(parked: Option<&str>) -> String {
    parked.map_or_else(String::new, |branch| format!(". What I had written by then is on the branch `{branch}`"))
}

fn begins_again(why: &str, when: &str, parked: Option<&str>) -> String {
    let parked = written_by_then(parked);
    format!(
        "I gave up my unfinished work because {why}. Your message is safe, and I'll start over with it {when}{parked}."
    )
}

fn begins_work_again(reasons: &[String], why: &str, when: &str, parked: Option<&str>) -> String {
    let parked = written_by_then(parked);
    format!("I gave up a piece of work ({}) because {why}. I'll start over with it {when}{parked}.", reasons.join("; "))
}

/// Nothing does this work again. What was answered may say of it that it was done, so it is said where it is.
fn gives_work_up(reasons: &[String], why: &str, parked: Option<&str>) -> String {
    let parked = parked.map_or_else(String::new, |branch| {
        format!(
            " What it wrote isn't in my memory, even if I said so. It is on the branch `{branch}`; `git merge {branch}` brings it in."
        )
    });
    format!(
        "I gave up a piece of work ({}) because {why}. I won't try it again by myself, so ask me if it matters.{parked}",
        reasons.join("; ")
    )
}

fn put_aside(why: &str, dead: &[&str], parked: Option<&str>) -> String {
    let parked = written_by_then(parked);
    let quoted: Vec<String> = dead.iter().map(|text| brief::clip(text, 200).replace('\n', " ")).collect();
    format!(
        "I tried {MAX_ATTEMPTS} times and couldn't answer this: {why}. It is on hold. Please rephrase it and send it again, or \
         send /retry{parked}:\n\n> {}",
        quoted.join("\n> ")
    )
}
