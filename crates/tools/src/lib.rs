//! What a model can do: tools as values in, values out.
//!
//! A tool gets its checked arguments and a view of the [`World`]. It returns what it would tell the model, a receipt for the
//! episodic memory, and the [`Change`]s that make it true. It writes nothing itself: the cycle records outcome and
//! changes in one transaction. So a call has either happened once or not at all.

pub mod about;
mod about_me;
mod assignment;
mod attachment;
mod bash;
mod brain;
mod edit;
mod exchange;
mod files;
mod find;
mod find_tools;
mod image;
mod keep;
mod lists;
pub mod loopback;
pub mod mcp;
mod memory_files;
mod note;
mod offer;
mod open;
mod own_name;
pub mod pdf;
mod plan;
mod project;
mod propose;
mod read;
mod reflect;
mod registry;
mod remember;
mod reminder;
mod reply;
mod schema;
mod search;
mod steps;
mod system;
mod task;
mod tell;
mod touched;
mod verbs;
mod watch;
mod web_fetch;
mod web_search;
mod world;

use reveille_base::{
    types::{Effect, VerbGroup},
    words::{one_line, shortened},
};
use reveille_config::Autonomy;
use reveille_policy as policy;
use reveille_policy::{Circumstances, Reach, Subject, Verdict, What};
use reveille_sandbox::exec::Exec;
use reveille_store::Change;

pub use assignment::{Assignment, StepInHand};
pub use attachment::{Attachments, LastPdf, MAX_KNOWN as MAX_ATTACHMENTS};
pub use brain::{MAX_UNDOABLE, Undoable};
pub use edit::EDITOR;
pub use exchange::MAX_KNOWN as MAX_EXCHANGES;
pub use find_tools::unwrapped;
pub use offer::ToRead;
pub use plan::MAX_STEPS;
pub use plan::{Complexity, Plan, PlanStep};
pub use project::known_projects;
pub use propose::{PROPOSE_CHANGE, stated};
pub use read::READ;
pub use reflect::Asking;
pub use registry::{CACHED_FOR, MAX_OUTCOME_BYTES, Registry, SeenTools};
pub use reminder::{HERE as REMINDER_HERE, slot_on};
pub use reply::answer;
pub use search::hits;
pub use steps::{BUDGET_USD, ended, is_in_hand, out_of_money, put_back};
pub use task::also_written;
pub use touched::Touched;
pub use world::{Catalogue, Chat, Documents, World};

pub use reveille_policy::Risk;

use std::{borrow::Cow, future::Future, path::PathBuf, pin::Pin, sync::Arc};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use self::schema::schema_of;

/// Why another chat than the owner's gets nowhere with a shell or files: all that a program or a path reaches here, the memory and
/// what programs have left in the scratch folder, is of what the owner said.
const OWNERS_ALONE: &str = "Only the owner's chats have this machine's shell, files and screen, its projects, and the servers of mcp.toml that aren't opened to guests.";

/// A call that did what it was asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Done {
    /// What the model is told.
    pub content: String,
    /// What happened, in the past tense and in a few words; none when nothing was changed.
    pub receipt: Option<String>,
    /// What makes it true.
    pub changes: Vec<Change>,
    /// Whose bytes `content` holds, where they aren't the person's own or the memory's: such as `https://example.org`.
    pub taint: Option<String>,
    /// A picture that the model is shown beside `content`: a raw JSON image block.
    pub image: Option<String>,
    /// It was tried and failed by another's word, which `content` holds: told as an error, without a receipt.
    pub is_failure: bool,
}

impl Done {
    /// Something was found out and nothing changed.
    fn told(content: impl Into<String>) -> Self {
        Self { content: content.into(), ..Self::default() }
    }
}

/// A call that did nothing: the model is told why as an error result, and can do better.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

impl Refusal {
    fn because(why: impl std::fmt::Display) -> Self {
        Self(why.to_string())
    }
}

/// What tools return.
pub type Outcome = Result<Done, Refusal>;

/// A call that acts, under way. It stays on its thread: the wake runs on one.
pub type Acting<'a> = Pin<Box<dyn Future<Output = Outcome> + 'a>>;

/// How a tool's calls are carried out.
enum Run {
    /// Values in, values out.
    Values(Pure),
    /// Outside our transaction, by `exec`.
    Acts(Act),
}

/// A call of values alone: raw arguments in.
type Pure = Box<dyn Fn(&str, &World) -> Outcome + Send + Sync>;

/// What raw arguments name; none: they don't fit.
type Touches = Box<dyn Fn(&str, &World) -> Option<Touched> + Send + Sync>;

/// A call that acts outside our stores: raw arguments in.
pub type Act = Box<dyn for<'a> Fn(&'a str, &'a World, &'a mut Exec) -> Acting<'a> + Send + Sync>;

/// Answers calls in the place of the tools that act: the tool's name and raw arguments in.
pub type StandIn = Arc<dyn Fn(&str, &str) -> Outcome + Send + Sync>;

/// One tool: how the model sees it, what it risks, and what it does.
pub struct Tool {
    /// Its name: `snake_case`, or `mcp__<server>__<tool>`.
    pub name: Cow<'static, str>,
    /// What it is for, in a few lines for the model.
    pub description: Cow<'static, str>,
    /// JSON schema of its arguments.
    pub schema: Value,
    /// What repeating a call would do.
    pub effect: Effect,
    /// What a call can do to the person's things.
    pub risk: Risk,
    /// Never asks: planning, answering the asking chat, the model's own notes.
    pub is_free: bool,
    /// How far a call reaches.
    pub reach: Reach,
    /// It works on the owner's machine: no chat has it that may not see all that is the owner's.
    pub is_owners: bool,
    /// The type under which Claude's models were trained on it: then it is declared by that and its name alone.
    pub trained: Option<&'static str>,
    /// The tool that reads documents as this one does: rules about it hold for that, too.
    reads_as: Option<&'static str>,
    touches: Option<Touches>,
    /// The granted folders that a call may write to, whatever its arguments.
    writes: Vec<PathBuf>,
    asks: Option<Asks>,
    run: Run,
}

/// Sentences on why a call has to ask, besides what the policy says.
pub type Asks = Box<dyn Fn(&World) -> Vec<String> + Send + Sync>;

/// A tool that isn't written here: its definition comes from elsewhere, and its arguments are checked there.
pub struct Foreign {
    /// `mcp__<server>__<tool>`.
    pub name: String,
    /// For the model.
    pub description: String,
    /// JSON schema of its arguments, an object's.
    pub schema: Value,
    /// What repeating a call would do.
    pub effect: Effect,
    /// What a call can do to the person's things.
    pub risk: Risk,
    /// How far a call reaches.
    pub reach: Reach,
    /// Whether no chat has it that may not see all that is the owner's.
    pub is_owners: bool,
    /// The folders of the person's that a call may write to.
    pub writes: Vec<PathBuf>,
    /// Why a call has to ask at the moment.
    pub asks: Asks,
    /// What it does.
    pub run: Act,
}

impl Tool {
    /// A tool whose arguments are `A`: its schema comes from the type, and so does the check.
    fn new<A: JsonSchema + DeserializeOwned + 'static>(
        name: &'static str,
        description: &'static str,
        effect: Effect,
        run: fn(&A, &World) -> Outcome,
    ) -> Self {
        let run = Run::Values(Box::new(move |input, world| run(&arguments::<A>(name, input)?, world)));
        Self::running(name, description, schema_of::<A>(), effect, run)
    }

    /// A tool that acts outside our stores.
    fn acting<A: JsonSchema + DeserializeOwned + 'static>(
        name: &'static str,
        description: &'static str,
        effect: Effect,
        run: for<'a> fn(A, &'a World, &'a mut Exec) -> Acting<'a>,
    ) -> Self {
        let run = Run::Acts(Box::new(move |input, world, exec| match arguments::<A>(name, input) {
            Ok(arguments) => run(arguments, world, exec),
            Err(refusal) => Box::pin(std::future::ready(Err(refusal))),
        }));
        Self::running(name, description, schema_of::<A>(), effect, run)
    }

    fn running(
        name: impl Into<Cow<'static, str>>,
        description: impl Into<Cow<'static, str>>,
        schema: Value,
        effect: Effect,
        run: Run,
    ) -> Self {
        let (name, description) = (name.into(), description.into());
        let (risk, reach) = (Risk::Safe, Reach::Within);
        Self {
            name,
            description,
            schema,
            effect,
            risk,
            is_free: false,
            reach,
            is_owners: false,
            trained: None,
            reads_as: None,
            touches: None,
            writes: Vec::new(),
            asks: None,
            run,
        }
    }

    /// A tool of somebody else's.
    pub fn foreign(foreign: Foreign) -> Self {
        let Foreign { name, description, schema, effect, risk, reach, is_owners, writes, asks, run } = foreign;
        let tool = Self::running(name, description, schema, effect, Run::Acts(run));
        Self { asks: Some(asks), is_owners, writes, ..tool.risking(risk).reaching(reach) }
    }

    /// The same, which never asks.
    fn free(self) -> Self {
        Self { is_free: true, ..self }
    }

    /// The same with another risk than [`Risk::Safe`].
    fn risking(self, risk: Risk) -> Self {
        Self { risk, ..self }
    }

    /// The same, reaching further than [`Reach::Within`].
    fn reaching(self, reach: Reach) -> Self {
        Self { reach, ..self }
    }

    /// The same, which no chat has that may not see all that is the owner's.
    fn for_owner(self) -> Self {
        // fault: guests-shell-owners-files
        Self { is_owners: true, ..self }
    }

    /// The same, which asks where nobody has just asked for anything.
    fn unasked_for(self) -> Self {
        let unasked = |world: &World| match world.chat {
            Some(_) => Vec::new(),
            None => vec!["Nobody has just asked for this.".to_owned()],
        };
        Self { asks: Some(Box::new(unasked)), ..self }
    }

    /// The same, which Claude's models know under this type.
    fn trained(self, kind: &'static str) -> Self {
        Self { trained: Some(kind), ..self }
    }

    /// The same, which reads documents as that tool does.
    fn reading_as(self, tool: &'static str) -> Self {
        Self { reads_as: Some(tool), ..self }
    }

    /// The same, which acts on what its arguments name.
    fn touching<A: DeserializeOwned + 'static>(self, touches: fn(&A) -> Touched) -> Self {
        self.touching_in(move |arguments, _| touches(arguments))
    }

    /// The same where it takes the world to know what they name.
    fn touching_in<A: DeserializeOwned + 'static>(
        self,
        touches: impl Fn(&A, &World) -> Touched + Send + Sync + 'static,
    ) -> Self {
        let touches = move |input: &str, world: &World| {
            serde_json::from_str::<A>(input).ok().map(|arguments| touches(&arguments, world))
        };
        Self { touches: Some(Box::new(touches)), ..self }
    }

    /// What a model calls it.
    pub fn offered_as(&self) -> &str {
        VerbGroup::with(&self.name).map_or(&self.name, |group| group.name)
    }

    fn definition(&self) -> Value {
        serde_json::json!({"name": self.name, "description": self.description, "input_schema": self.schema})
    }

    /// Whether a call may carry its arguments off this machine. What doesn't fit is taken to.
    pub fn sends(&self, input: &str, world: &World) -> bool {
        let Some(touches) = &self.touches else { return self.reach == Reach::Leaves };
        match touches(or_empty(input), world) {
            Some(touched) => touched.reach(self.reach, world) == Reach::Leaves,
            None => true,
        }
    }

    fn touched(&self, input: &str, world: &World) -> Option<Touched> {
        self.touches.as_ref().and_then(|touches| touches(or_empty(input), world))
    }

    /// Whether a call names what another cycle has left in the scratch that had read untrusted text.
    pub fn names_untrusted(&self, input: &str, world: &World) -> bool {
        match self.touched(input, world) {
            Some(Touched::Shell { text, .. }) => world.shelter.names_untrusted(&text),
            Some(Touched::Path { path, .. }) => world.shelter.names_untrusted(&path.to_string_lossy()),
            _ => false,
        }
    }

    /// The granted folders that a call may write to.
    pub fn writes_to(&self, input: &str, world: &World) -> Vec<PathBuf> {
        match self.touched(input, world) {
            Some(Touched::Shell { text, wanted }) => {
                let access = world.rules.access(&text, wanted);
                let may_write = access.writes || !world.shelter.is_there();
                if may_write { world.rules.granted() } else { Vec::new() }
            }
            Some(Touched::Path { path, is_write: true }) => {
                let granted = world.rules.granted();
                granted.into_iter().filter(|root| path.starts_with(root)).collect()
            }
            _ => self.writes.clone(),
        }
    }

    /// How much this tool may do without asking. A person who lets it look for something useful wants to hear its proposals, however
    /// little else they allow.
    fn autonomy(&self, world: &World) -> Autonomy {
        match world.autonomy {
            Autonomy::AskAll if self.name == tell::TELL && world.asks_nobody() => Autonomy::Smart,
            level => level,
        }
    }

    /// What the policy says of a call. Arguments that don't fit can't be judged, and running them would refuse them anyway.
    pub fn judge(&self, input: &str, world: &World, taint: Option<&str>) -> Verdict {
        // fault: guests-call-owners-tools
        if self.is_owners && !world.sees_all() {
            return Verdict::denied(OWNERS_ALONE);
        }
        let touched = match &self.touches {
            Some(touches) => touches(or_empty(input), world),
            None => Some(Touched::Nothing),
        };
        let Some(touched) = touched else {
            return Verdict::denied(format!("The arguments don't fit {}.", self.name));
        };
        if touched.edits_job() && !world.sees_all() {
            return Verdict::denied(OWNERS_ALONE);
        }
        if let Some(why) = propose::refusal(&self.name, &touched) {
            return Verdict::denied(why);
        }
        let kept_at = touched.kept_at(&world.documents);
        let subject = Subject {
            tool: &self.name,
            risk: self.risk.max(touched.risk()),
            effect: if matches!(touched, Touched::Documents(_)) { Effect::Read } else { self.effect },
            is_free: self.is_free,
            reach: touched.reach(self.reach, world),
            what: touched.what(&kept_at, &world.rules),
            arguments: or_empty(input),
        };
        // Looking for a sandbox runs a program, and whether folders can be copied takes a look at all of them: only where it matters.
        let (is_shell, writes) = match subject.what {
            What::Shell { access, .. } => (true, access.writes),
            _ => (false, false),
        };
        let is_sandboxed = !is_shell || world.shelter.is_there();
        let uncovered = if writes && is_sandboxed { world.shelter.uncovered(&world.rules) } else { None };
        let circumstances = Circumstances {
            autonomy: self.autonomy(world),
            taint,
            is_sandboxed,
            uncovered: uncovered.as_deref(),
            // fault: rule-good-outlasts-untrusted
            tainted_write: if is_shell { world.shelter.tainted_write(&world.rules) } else { None },
        };
        let mut verdict = policy::judge(&subject, &world.rules, &circumstances);
        // The same act under another name.
        if let (Some(tool), Touched::Documents(_)) = (self.reads_as, &touched) {
            let other = policy::judge(&Subject { tool, ..subject }, &world.rules, &circumstances);
            verdict = if other.decision > verdict.decision { other } else { verdict };
        }
        let of_jobs = self.jobs_written(&touched, or_empty(input), world);
        self.asks.iter().flat_map(|asks| asks(world)).chain(of_jobs).fold(verdict, Verdict::asking)
    }
}

/// No arguments at all are an empty object.
fn or_empty(input: &str) -> &str {
    if input.trim().is_empty() { "{}" } else { input }
}

fn arguments<A: DeserializeOwned>(name: &str, input: &str) -> Result<A, Refusal> {
    serde_json::from_str(input)
        .map_err(|error| Refusal(format!("The arguments don't fit {name}: {error}. Nothing was done.")))
}

/// A text argument that has to say something, within a bound, on one line if it must be.
fn words(argument: &str, name: &str, max_chars: usize) -> Result<String, Refusal> {
    let text = argument.trim();
    if text.is_empty() {
        return Err(Refusal(format!("{name} is empty. Nothing was done.")));
    }
    let length = text.chars().count();
    if length > max_chars {
        return Err(Refusal(format!(
            "{name} has {length} characters, at most {max_chars} are taken. Nothing was done."
        )));
    }
    Ok(text.to_owned())
}

/// The first words of a text, for receipts.
fn brief(text: &str) -> String {
    const CHARS: usize = 60;
    shortened(&one_line(text), CHARS)
}

#[cfg(test)]
mod tests;
