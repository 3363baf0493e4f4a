//! Replays a recorded cycle. The model takes its turns again, the cycle's own state machine acts on them, and calls are answered from the
//! journal instead of being executed. The result is compared with the recording.
//!
//! A call is answered by the first unused recorded call of the same tool and arguments; an unrecorded call ends the replay. The files that
//! the recorded and the repeated calls make are computed by the same tools, from the memory before the commit.

mod compare;
mod files;
mod recorded;
mod tell;

use std::time::Duration;

use reveille_base::words::format_count;
use reveille_config::OFFLINE_MODEL;
use reveille_cycle::{
    WakeError,
    context::Context,
    decide::{
        brief, fold,
        limits::Limits,
        machine::{Cycle, Step, ToolRequest},
        uptake::OUTSIDE,
    },
};
use reveille_git::{Oid, Repo, RepoError};
use reveille_memory as memory;
use reveille_model::{Conversation, Model as _, ModelError, Progress, Turn, anthropic::retry};
use reveille_store::{CycleRow, Entry, MessageOutcome, Store, StoreError};
use reveille_tools::Registry;

pub use self::{
    compare::{CallFate, ComparedCall, ComparedFile, ReplayReport, RunFigures},
    tell::render_report,
};
use self::{
    files::{MadeFiles, MemoryBefore},
    recorded::{CompletedCall, Recorded},
};
use super::booked::Booked;

/// The maximum number of the state machine's steps in a replay.
const MAX_STEPS: u32 = 20_000;

/// The end of a replay.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum ReplayEnd {
    /// The cycle finished.
    Finished,
    /// The model made an unrecorded call.
    NotRecorded {
        /// The tool.
        tool: String,
        /// Its raw arguments.
        input: String,
    },
    /// The replay had to stop.
    Stopped {
        /// The reason, for people.
        why: String,
    },
}

/// The reason a cycle can't be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The cycle can't be replayed, with the reason for people.
    #[error("{0}")]
    Unfit(String),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The memory failed.
    #[error(transparent)]
    Repo(#[from] RepoError),
    /// The state in which the tools run can't be read.
    #[error(transparent)]
    Wake(#[from] WakeError),
}

/// A cycle ready for replay.
pub struct Replay<'a> {
    row: &'a CycleRow,
    recorded: Recorded,
    registry: Registry,
}

/// The result of running a replay.
struct ReplayRun {
    state: Cycle,
    completed: Vec<CompletedCall>,
    /// For each call in `completed`, the index of the recorded call that answered it, and `true` if both have the same arguments.
    answered_by: Vec<(usize, bool)>,
    said: Vec<String>,
    end: ReplayEnd,
}

impl<'a> Replay<'a> {
    /// Reads the recording of a cycle.
    ///
    /// # Errors
    /// The cycle can't be replayed, with the reason.
    pub fn load(store: &Store, row: &'a CycleRow) -> Result<Self, ReplayError> {
        let unfit = |why: &str| Err(ReplayError::Unfit(format!("The wake {} can't be replayed: {why}", row.cycle.id)));
        if !store.history().has_journal(&row.cycle.id)? {
            return unfit(
                "its journal is older than KEEP_DAYS and was deleted. `wake eval add` keeps a cycle for longer.",
            );
        }
        if row.cycle.is_by_rule() {
            return unfit("a rule did all of it, without an AI model.");
        }
        if row.cycle.model == OUTSIDE {
            return unfit("its one call came from an MCP client, without an AI model.");
        }
        let Some(recorded) = Recorded::from_journal(row, store.history().dated_journal(&row.cycle.id)?) else {
            return unfit("a line of its journal is unreadable.");
        };
        if recorded.state.turns == 0 {
            return unfit("the AI model took no turn in it.");
        }
        let registry = if row.cycle.model == OFFLINE_MODEL {
            Registry::for_offline_model()
        } else {
            Registry::for_thinking_model()
        };
        Ok(Self { row, recorded, registry })
    }

    /// Returns the number of the model's turns in the recording.
    pub fn turns(&self) -> u32 {
        self.recorded.state.turns
    }

    /// Returns the conversation of the first request.
    pub fn first_conversation(&self) -> Conversation {
        self.begin_cycle().conversation
    }

    fn begin_cycle(&self) -> Cycle {
        let mut state = Cycle::new(self.row.cycle.system.clone(), self.row.cycle.tools.clone());
        self.recorded.opening().iter().for_each(|entry| state.apply(entry));
        state
    }

    /// Runs the replay and compares it with the recording.
    ///
    /// # Errors
    /// The database or the memory can't be read.
    pub async fn run(
        mut self,
        context: Context<'_>,
        (store, repo): (&Store, Option<&Repo>),
        model: &Booked<'_>,
    ) -> Result<ReplayReport, ReplayError> {
        let ran = self.run_cycle(context, model).await;
        let (files, notes) = self.build_files(context, (store, repo), &ran)?;
        Ok(compare::build_report(
            self.row,
            &self.recorded,
            &ran,
            (files, notes),
            store.ledger().sum_cycle_cost(&self.row.cycle.id)?,
            model,
        ))
    }

    async fn run_cycle(&mut self, context: Context<'_>, model: &Booked<'_>) -> ReplayRun {
        let limits = if model.name() == OFFLINE_MODEL { Limits::OFFLINE } else { Limits::STANDARD };
        let limits = limits.with_window(model.context_window());
        let (mut completed, mut answered_by, mut said) = (Vec::new(), Vec::new(), Vec::new());
        let mut state = self.begin_cycle();
        let mut end = ReplayEnd::Stopped { why: format!("it took more than {MAX_STEPS} steps.") };
        for _ in 0..MAX_STEPS {
            let entries = match state.next(&limits) {
                Step::Ask => match ask_model(context, model, &state.conversation).await {
                    Ok(Turn { content, stop, usage, .. }) => vec![Entry::Turn { content, stop, usage }],
                    Err(why) => {
                        end = ReplayEnd::Stopped { why };
                        break;
                    }
                },
                Step::Call(request) => match self.recorded.find_call(&self.registry, &request) {
                    Some((at, is_same)) => {
                        let Some(known) = self.recorded.calls.get(at) else { continue };
                        let (open, taints) = (state.open.clone(), state.taints.clone());
                        let ToolRequest { id, name: tool, input } = request;
                        let entry = known.to_outcome(&id);
                        completed.push(CompletedCall { tool, input, open, taints, ..known.completed.clone() });
                        answered_by.push((at, is_same));
                        vec![entry]
                    }
                    None => {
                        end = ReplayEnd::NotRecorded { tool: request.name, input: request.input };
                        break;
                    }
                },
                Step::Reject { call, why } => vec![build_refusal(call, why)],
                Step::Say(raw) => vec![build_results_entry(raw)],
                Step::Tell(raw) => match self.recorded.take_news(state.turns, Some(&raw)) {
                    Some(news) => vec![news],
                    None => build_results_and_fold_request(&state, &limits, raw),
                },
                Step::Join => match self.recorded.take_news(state.turns, None) {
                    Some(news) => vec![news],
                    None => {
                        end = ReplayEnd::Finished;
                        break;
                    }
                },
                Step::Answer { text, outcome } => {
                    let entry = build_answer(&state, outcome);
                    said.push(text);
                    vec![entry]
                }
                Step::Fold(_) => match self.recorded.take_fold() {
                    Some(folded) => vec![folded],
                    None => {
                        end = build_stop("the conversation would be folded here, but the recorded one wasn't.");
                        break;
                    }
                },
                Step::Fail(why) => {
                    end = build_stop(&format!("it would fail here, because {why}."));
                    break;
                }
                Step::Limit(question) => match self.recorded.list_decisions(&question.id) {
                    decided if decided.is_empty() => {
                        end = build_stop("it would ask here whether to continue, but the recorded wake didn't ask.");
                        break;
                    }
                    decided => decided,
                },
                Step::Await(_) | Step::Allowed(_) | Step::Again { .. } => {
                    end = build_stop("it waits here for a person's answer that isn't recorded.");
                    break;
                }
                Step::Finish => {
                    end = ReplayEnd::Finished;
                    break;
                }
            };
            entries.iter().for_each(|entry| state.apply(entry));
        }
        model.release();
        ReplayRun { state, completed, answered_by, said, end }
    }

    /// Computes the files that the recorded and the repeated calls make, with notes on the comparison.
    fn build_files(
        &self,
        context: Context<'_>,
        (store, repo): (&Store, Option<&Repo>),
        ran: &ReplayRun,
    ) -> Result<((MadeFiles, MadeFiles), Vec<String>), ReplayError> {
        let skip_files = |why: &str| Ok(((MadeFiles::default(), MadeFiles::default()), vec![why.to_owned()]));
        let commit = self.row.commit_id.as_deref().and_then(|id| Oid::from_str(id).ok());
        let (Some(repo), Some(commit)) = (repo, commit) else {
            return skip_files("Files aren't compared: the wake has no commit.");
        };
        let before = match MemoryBefore::load(repo, commit) {
            Ok(Some(before)) => before,
            Ok(None) => {
                return skip_files("Files aren't compared: the memory has nothing from before the wake's commit.");
            }
            Err(error) if error.is_machine_fault() => return Err(error.into()),
            Err(_) => return skip_files("Files aren't compared: the wake's commit is no longer in the memory."),
        };
        let calls: Vec<CompletedCall> = self.recorded.calls.iter().map(|known| known.completed.clone()).collect();
        let make = |calls: &[CompletedCall]| before.apply_calls((context, store), self.row, &self.registry, calls);
        let (then, now) = (make(&calls)?, make(&ran.completed)?);
        let mut notes: Vec<String> =
            then.refused.iter().map(|call| format!("Left out of the files, on both sides: {call}")).collect();
        let is_log = |path: &str| path == memory::EPISODIC_MEMORY || path.starts_with("memory/agent-memory/archive/");
        for path in repo.history().list_changed_paths(commit)? {
            let path = path.to_string_lossy();
            if !is_log(&path) && repo.history().read_text_at(commit, &path)?.as_ref() != then.files.get(&*path) {
                notes.push(format!(
                    "{path} is different in the commit: rules, people or another version changed it too."
                ));
            }
        }
        Ok(((then, now), notes))
    }
}

/// The reason given when a person stops the replay.
const ASKED_TO_END: &str = "it was stopped.";

/// Asks the model for a turn, with retries as its errors allow.
async fn ask_model(context: Context<'_>, model: &Booked<'_>, conversation: &Conversation) -> Result<Turn, String> {
    let mut stop = context.stop.clone();
    for attempt in 1.. {
        let progress = Progress::default();
        let turn = async {
            match model.request_turn(conversation, &progress).await {
                Ok(turn) => Ok(Ok(turn)),
                Err(error) => match retry::choose_backoff(&error, attempt, fastrand::f64()) {
                    Some(wait) => Ok(Err(wait)),
                    None => Err(error),
                },
            }
        };
        let turn: Result<Result<Turn, Duration>, ModelError> = tokio::select! {
            biased;
            turn = turn => turn,
            _ = stop.wait_for(|stop| *stop) => return Err(ASKED_TO_END.to_owned()),
        };
        match turn {
            Ok(Ok(turn)) => return Ok(turn),
            Ok(Err(wait)) => tokio::select! {
                () = tokio::time::sleep(wait) => {}
                _ = stop.wait_for(|stop| *stop) => return Err(ASKED_TO_END.to_owned()),
            },
            Err(error) => return Err(format!("the model did not answer: {error}")),
        }
    }
    Err("the model did not answer.".to_owned())
}

fn build_stop(why: &str) -> ReplayEnd {
    ReplayEnd::Stopped { why: why.to_owned() }
}

fn build_results_entry(raw: String) -> Entry {
    Entry::Said { raw, messages: Vec::new(), handles: Vec::new(), head: None, taint: None }
}

fn build_refusal(ToolRequest { id, name, .. }: ToolRequest, why: String) -> Entry {
    Entry::Outcome {
        call: id,
        name,
        content: why,
        is_error: true,
        receipt: None,
        closed: Vec::new(),
        taint: None,
        image: None,
    }
}

/// Builds the journal's entry for an answer, with the receipt that a cycle would write.
fn build_answer(state: &Cycle, outcome: MessageOutcome) -> Entry {
    let verb = if outcome == MessageOutcome::Refused { "Declined to answer" } else { "Answered" };
    let receipt = match state.open.len() {
        0 => "Told why the work ended".to_owned(),
        n => format!("{verb} {}", format_count(n, "message")),
    };
    Entry::Answered { messages: state.open.clone(), receipt }
}

/// Returns the calls' results, followed by a request to fold (summarise) the conversation if it is due.
fn build_results_and_fold_request(state: &Cycle, limits: &Limits, raw: String) -> Vec<Entry> {
    let Some(ask) = state.fold_ask(limits, &raw) else { return vec![build_results_entry(raw)] };
    let tokens = state.folding.count_with(&raw);
    match brief::with_text(&raw, &fold::render_ask(ask, tokens)) {
        Some(asking) => vec![build_results_entry(asking), Entry::FoldAsked { ask, tokens }],
        None => vec![build_results_entry(raw)],
    }
}
