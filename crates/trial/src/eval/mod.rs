//! Cases: a memory, messages, and the expected results. Each case runs in a temporary workspace with the real cycle, database, repository
//! and memory tools. For tools that act outside, the case supplies the answers.

mod add;
mod case;
mod check;
mod kept;
mod place;
mod scripted;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use chrono::{DateTime, Utc};

use reveille_base::{
    clock::FixedClock,
    file::replace_unsynced,
    json::normalize_text,
    redact::Secret,
    types::{ApprovalAnswer, ChatRef, Usage},
};
use reveille_config::{Config, OFFLINE_MODEL};
use reveille_cycle as cycle;
use reveille_cycle::{
    context::{Context, Terminal, WakeError, WakeOutcome},
    decide::machine::Cycle,
    workspace,
};
use reveille_git::{Repo, RepoError};
use reveille_memory::templates::list_files;
use reveille_store::{Batch, NewIncoming, Store, StoreError};
use reveille_tools::{Done, Outcome, Refusal, Registry, StandIn};

pub use self::{
    add::{AddCaseError, AddedCase, add_case},
    case::EvalCase,
    kept::{Comparison, KeptRun},
    place::TrialPlace,
};
use self::{
    case::{CaseMessage, CaseSettings, encode_arguments, resolve_tool_name},
    check::{CaseOutcome, check_outcome},
    scripted::{SCRIPTED, ScriptedModel},
};
use super::booked::{Booked, TrialModelError};

/// The reason given for a case's wakes, and the prefix of the model's name in the ledger.
const EVAL: &str = "eval";
/// The maximum number of wakes after one message. Each wake but the first continues after an approval.
const MAX_WAKES: u32 = 10;
/// The maximum number of a case's cycles read.
const MAX_CYCLES: usize = 1_000;

/// The score of a case.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct CaseScore {
    /// Its file's name, without the extension.
    pub case: String,
    /// Its topic; empty if unreadable.
    pub about: String,
    /// `true` if all expectations were met.
    pub passed: bool,
    /// The unmet expectations, one sentence each.
    pub why: Vec<String>,
    /// The model.
    pub model: String,
    /// The model's turns.
    pub rounds: u32,
    /// The tokens used.
    pub tokens: Usage,
    /// The cost in US dollars.
    pub cost_usd: f64,
}

/// The reason a case couldn't be run to its end.
#[derive(Debug, thiserror::Error)]
enum TrialError {
    #[error("{0}")]
    Case(String),
    #[error(transparent)]
    Model(#[from] TrialModelError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Repo(#[from] RepoError),
    #[error(transparent)]
    Wake(#[from] WakeError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Lists the files of the cases in a folder, sorted.
///
/// # Errors
/// The folder can't be read.
pub fn list_cases(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(dir)?.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = entries.collect::<std::io::Result<Vec<_>>>()?;
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    paths.sort();
    Ok(paths)
}

/// The source of a case's turns.
#[derive(Debug, Clone, Copy)]
pub enum TurnTaker<'a> {
    /// The case's own script, else the offline model.
    Scripted,
    /// This model, which may make only calls that the case has answers for.
    Model(&'a str),
    /// This model, working freely, at a cost of at most this many US dollars. A call for which the case has no answer fails, but doesn't
    /// fail the case.
    Live(&'a str, f64),
}

impl<'a> TurnTaker<'a> {
    fn model(self) -> Option<&'a str> {
        match self {
            Self::Scripted => None,
            Self::Model(name) | Self::Live(name, _) => Some(name),
        }
    }
}

/// Runs the case of a file.
pub async fn run(context: Context<'_>, path: &Path, taker: TurnTaker<'_>, place: &TrialPlace) -> CaseScore {
    let model = taker.model();
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut score = CaseScore {
        case: name,
        about: String::new(),
        passed: false,
        why: Vec::new(),
        model: model.unwrap_or(OFFLINE_MODEL).to_owned(),
        rounds: 0,
        tokens: Usage::default(),
        cost_usd: 0.0,
    };
    let read = std::fs::read_to_string(path).map_err(|error| error.to_string());
    let case = match read.and_then(|text| EvalCase::parse(&text)) {
        Ok(case) => case,
        Err(why) => {
            score.why.push(format!("The case can't be read: {why}"));
            return score;
        }
    };
    score.about.clone_from(&case.about);
    if let Err(error) = run_case(context, &case, (taker, place), &mut score).await {
        score.why.push(format!("The case couldn't be run: {error}"));
    }
    let masked = |why: &String| context.redactor.redact(why);
    score.why = score.why.iter().map(masked).collect();
    score.passed = score.why.is_empty();
    score
}

async fn run_case(
    context: Context<'_>,
    case: &EvalCase,
    (taker, place): (TurnTaker<'_>, &TrialPlace),
    score: &mut CaseScore,
) -> Result<(), TrialError> {
    let model = taker.model();
    let settings = case.parse_settings().map_err(TrialError::Case)?;
    let name = model.unwrap_or(if case.is_scripted() { SCRIPTED } else { OFFLINE_MODEL });
    name.clone_into(&mut score.model);
    let dir = place.dir().join("workspace");
    if dir.exists() {
        std::fs::remove_dir_all(&dir)?;
    }
    let config = build_config(context.config, case, settings, (&dir, name));
    let model = match model {
        None if case.is_scripted() => Booked::without_ledger(Box::new(ScriptedModel::new(&case.turns))),
        _ => Booked::for_model(name, EVAL, &config, (context.config, context.clock))?,
    };
    let model = match taker {
        TurnTaker::Live(_, cap_usd) => model.with_cap(cap_usd),
        TurnTaker::Scripted | TurnTaker::Model(_) => model,
    };
    let registry = if name == OFFLINE_MODEL { Registry::for_offline_model() } else { Registry::for_thinking_model() };
    let answers = Arc::new(Answers::from_case(case, &registry).map_err(TrialError::Case)?);
    let stand_in: StandIn = {
        let answers = Arc::clone(&answers);
        Arc::new(move |tool, input| answers.answer_call(tool, input))
    };
    let context = Context {
        config: &config,
        model: &model,
        channel: None,
        terminal: Terminal::Later,
        stand_in: Some(&stand_in),
        ..context
    };
    let trial = Trial { context, case, registry: &registry, answers: &answers };
    let outcome = trial.run(settings.now).await;
    let spent = model.spending();
    (score.rounds, score.tokens, score.cost_usd) = (model.requests(), spent.tokens, spent.cost_usd);
    let mut outcome = outcome?;
    let left = case.turns.len().saturating_sub(model.requests() as usize);
    if name == SCRIPTED && left > 0 {
        outcome.trouble.push(format!("{left} of the script's turns were never used."));
    }
    // The fallback grammar answers for an unreachable model, whose own quality stays unknown.
    if name != OFFLINE_MODEL && model.requests() == 0 {
        outcome.trouble.push(format!("{name} was never called."));
    } else if matches!(taker, TurnTaker::Live(..)) && spent.tokens == Usage::default() {
        outcome.trouble.push(format!("{name} never answered."));
    }
    if !matches!(taker, TurnTaker::Live(..)) {
        outcome.trouble.extend(answers.list_unrecorded());
    }
    score.why.extend(check_outcome(&case.expect, &outcome, &registry));
    Ok(())
}

/// Returns the settings of the temporary workspace, which take only the model from the real ones.
fn build_config(real: &Config, case: &EvalCase, settings: CaseSettings, (dir, model): (&Path, &str)) -> Config {
    let chats: BTreeSet<i64> = case.said.iter().map(|said| said.chat).chain([case.owner]).collect();
    let allowed_chats = chats.into_iter().filter(|chat| *chat != 0).map(ChatRef::from_number).collect();
    Config {
        workspace_dir: dir.to_owned(),
        media_dir: dir.to_owned(),
        repo_name: "brain".to_owned(),
        repo_url: None,
        database_url: None,
        database_password: None,
        telegram_token: None,
        allowed_chats,
        owner_chat: ChatRef::from_number(case.owner),
        is_owner_chosen: true,
        model: model.to_owned(),
        // Only the given model works on a case, and only it is paid for.
        model_simple: None,
        model_reflect: None,
        chosen_model: None,
        // A script needs no key, but its name counts as that of a model that does. Nothing is sent.
        anthropic_key: if model == SCRIPTED { Some(Secret::new(SCRIPTED)) } else { real.anthropic_key.clone() },
        brave_key: None,
        embed_model: None,
        timezone: settings.timezone,
        autonomy: settings.autonomy,
        keep: None,
        whisper_model: None,
        quiet_hours: None,
        reflect_at: None,
        has_desktop: false,
        env_file: None,
        named_env_file: None,
        notes: Vec::new(),
        ..real.clone()
    }
}

/// The case's answers, used in place of tools that act.
struct Answers {
    /// The tool, its arguments as canonical JSON (`None` for any), and the answer.
    known: Vec<(String, Option<String>, Outcome)>,
    used: Mutex<Vec<usize>>,
    unrecorded: Mutex<Vec<String>>,
}

impl Answers {
    fn from_case(case: &EvalCase, registry: &Registry) -> Result<Self, String> {
        let mut known = Vec::new();
        for answer in &case.answers {
            let input = match &answer.input {
                Some(_) => Some(normalize_text(&encode_arguments(answer.input.as_ref())?)),
                None => None,
            };
            let done = Done {
                content: answer.content.clone(),
                receipt: answer.receipt.clone(),
                taint: answer.taint.clone(),
                ..Done::default()
            };
            let outcome = if answer.is_error { Err(Refusal::new(answer.content.clone())) } else { Ok(done) };
            known.push((resolve_tool_name(registry, &answer.tool), input, outcome));
        }
        Ok(Self { known, used: Mutex::default(), unrecorded: Mutex::default() })
    }

    /// Finds the first unused answer to this call.
    fn find(&self, tool: &str, input: &str) -> Option<usize> {
        let input = normalize_text(input);
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |at: &usize| match self.known.get(*at) {
            Some((known, None, _)) => known == tool,
            Some((known, Some(wanted), _)) => known == tool && *wanted == input && !used.contains(at),
            None => false,
        };
        (0..self.known.len()).find(fits)
    }

    fn answer_call(&self, tool: &str, input: &str) -> Outcome {
        let found = self.find(tool, input);
        if let Some((at, (.., outcome))) = found.and_then(|at| Some((at, self.known.get(at)?))) {
            self.used.lock().unwrap_or_else(PoisonError::into_inner).push(at);
            return outcome.clone();
        }
        let what = format!("The case has no answer for {tool} {}.", normalize_text(input));
        self.unrecorded.lock().unwrap_or_else(PoisonError::into_inner).push(what);
        Err(Refusal::new("This isn't recorded, and nothing was done.".to_owned()))
    }

    fn list_unrecorded(&self) -> Vec<String> {
        self.unrecorded.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A case in progress.
struct Trial<'a> {
    context: Context<'a>,
    case: &'a EvalCase,
    registry: &'a Registry,
    answers: &'a Answers,
}

impl Trial<'_> {
    async fn run(&self, begin: DateTime<Utc>) -> Result<CaseOutcome, TrialError> {
        let config = self.context.config;
        workspace::prepare_workspace(config)?;
        if !self.case.policy.is_empty() {
            replace_unsynced(&config.policy_path(), self.case.policy.as_bytes())?;
        }
        let mut files: BTreeMap<&str, &str> = list_files().into_iter().collect();
        files.extend(self.case.memory.iter().map(|(path, text)| (path.as_str(), text.as_str())));
        let files: Vec<(&str, &str)> = files.into_iter().collect();
        let (repo, _) = Repo::open_or_create(&config.repo_dir(), None, &files, begin)?;
        let mut store = cycle::open_store(config)?;
        let mut outcome = CaseOutcome { before: read_memory(&repo)?, ..CaseOutcome::default() };
        let mut now = begin;
        for (n, said) in (1_i64..).zip(&self.case.said) {
            now = said.parse_sent_time().map_err(TrialError::Case)?.unwrap_or(now);
            if !said.text.is_empty() {
                add_message(&mut store, said, n, now)?;
            }
            if said.wake && !*self.context.stop.borrow() {
                self.run_wakes(&mut store, now, &mut outcome).await?;
            }
        }
        for row in store.history().cycles_since(None, None, MAX_CYCLES)?.iter().rev() {
            let state = Cycle::replay(String::new(), String::new(), &store.journal().read_journal(&row.cycle.id)?);
            outcome.receipts.extend(state.receipts);
            let said = store.history().list_cycle_texts(&row.cycle.id)?;
            outcome.said.extend(said.into_iter().filter(|text| text.kind != "approval").map(|text| text.text));
        }
        outcome.after = read_memory(&repo)?;
        Ok(outcome)
    }

    /// Runs wakes. A call that needs approval is allowed if the case has an answer for it, unless the case expects the question.
    async fn run_wakes(
        &self,
        store: &mut Store,
        now: DateTime<Utc>,
        outcome: &mut CaseOutcome,
    ) -> Result<(), TrialError> {
        let clock = FixedClock(now);
        let context = Context { clock: &clock, ..self.context };
        for _ in 0..MAX_WAKES {
            let report = cycle::run_wake(context, store, EVAL).await?;
            if report.outcome == WakeOutcome::Failed {
                let why = report.error.unwrap_or_default();
                outcome.trouble.push(format!("the wake failed: {why}"));
            }
            let mut has_allowed = false;
            for question in store.approvals().pending_approvals(now)? {
                let tool = resolve_tool_name(self.registry, &question.tool);
                let expect = &self.case.expect;
                let is_expected = expect
                    .asks
                    .iter()
                    .chain(&expect.may_ask)
                    .any(|wanted| resolve_tool_name(self.registry, wanted) == tool);
                if !is_expected && self.answers.find(&tool, &question.action).is_some() {
                    has_allowed |= store.approvals_mut().decide_approval(question.id, ApprovalAnswer::Yes, now)?;
                } else if !outcome.asked.contains(&(question.tool.clone(), question.action.clone())) {
                    outcome.asked.push((question.tool, question.action));
                }
            }
            if !has_allowed {
                break;
            }
        }
        Ok(())
    }
}

fn add_message(store: &mut Store, said: &CaseMessage, n: i64, now: DateTime<Utc>) -> Result<(), StoreError> {
    let chat = ChatRef::from_number(said.chat);
    if chat.is_terminal() && said.forwarded_from.is_none() && said.quoted.is_none() {
        return store.inbox_mut().queue_message(chat, &said.text, now).map(drop);
    }
    let message = NewIncoming {
        chat,
        text: said.text.clone(),
        kind: "text".to_owned(),
        sender_id: chat.person_id(),
        sender_name: said.from.clone(),
        channel_message_id: Some(n),
        update_id: Some(n),
        forwarded_from: said.forwarded_from.clone(),
        quoted: said.quoted.clone(),
        ..NewIncoming::default()
    };
    let batch = Batch { bot_id: 1, next_offset: n + 1, messages: vec![message], ..Batch::default() };
    store.inbox_mut().accept_batch(&batch, now).map(drop)
}

/// Reads the memory's files from the work tree.
fn read_memory(repo: &Repo) -> Result<BTreeMap<String, String>, RepoError> {
    let mut texts = BTreeMap::new();
    for path in repo.history().all_markdown()? {
        if let Some(text) = repo.read_work_tree(&path)? {
            texts.insert(path, text);
        }
    }
    Ok(texts)
}
