//! The abilities of the model: tools that take values and return values.
//!
//! A tool gets checked arguments and a view of the [`World`]. It returns the text for the model, a receipt for the
//! episodic memory, and the [`Change`]s to make. A tool writes nothing itself: the cycle records outcome and changes
//! in one transaction, so a call either happened once or not at all.

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
    words::{one_line, truncate_text},
};
use reveille_config::Autonomy;
use reveille_policy as policy;
use reveille_policy::{Circumstances, PolicyReason, Reach, Subject, Verdict, What};
use reveille_sandbox::exec::Exec;
use reveille_store::Change;

pub use assignment::{Assignment, StepInHand};
pub use attachment::{Attachments, LastPdf, MAX_KNOWN as MAX_ATTACHMENTS};
pub use brain::{MAX_UNDOABLE, Undoable};
pub use edit::EDITOR;
pub use exchange::MAX_KNOWN as MAX_EXCHANGES;
pub use find_tools::unwrap_call;
pub use offer::ToRead;
pub use plan::MAX_STEPS;
pub use plan::{Complexity, Plan, PlanStep};
pub use project::known_projects;
pub use propose::{PROPOSE_CHANGE, parse_stated_effect};
pub use read::READ;
pub use reflect::Asking;
pub use registry::{CACHED_FOR, MAX_OUTCOME_BYTES, Registry, SeenTools, ToolView};
pub use reminder::{HERE as REMINDER_HERE, find_slot};
pub use reply::answer_open_messages;
pub use search::find_hits;
pub use steps::{BUDGET_USD, is_in_hand, out_of_money, put_back, record_step_end};
pub use task::describe_prose;
pub use touched::Touched;
pub use world::{
    Capabilities, Catalogue, Chat, ChatSnapshot, CycleFacts, Documents, LocalClock, MemorySnapshot, UnaskedLimits,
    World,
};

pub use reveille_policy::Risk;

use std::{borrow::Cow, future::Future, path::PathBuf, pin::Pin, sync::Arc};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use self::schema::build_schema;

/// The reason why chats other than the owner's get no shell and no files: everything that a program or path reaches
/// here comes from the owner, including the memory and the scratch folder.
const OWNERS_ALONE: &str = "Only the owner's chats have this machine's shell, files and screen, its projects, and the servers of mcp.toml that aren't opened to guests.";

/// The result of a successful call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Done {
    /// The text for the model.
    pub content: String,
    /// The event, in the past tense and in a few words; `None` if nothing was changed.
    pub receipt: Option<String>,
    /// The changes to store.
    pub changes: Vec<Change>,
    /// The source of untrusted text in `content`, such as `https://example.org`; `None` for the person's own words or the memory's.
    pub taint: Option<String>,
    /// A picture shown to the model beside `content`: a raw JSON image block.
    pub image: Option<String>,
    /// Set if another program reported a failure in `content`: the model sees an error, and there is no receipt.
    pub is_failure: bool,
}

impl Done {
    /// Creates a result with only text, without any change.
    fn from_text(content: impl Into<String>) -> Self {
        Self { content: content.into(), ..Self::default() }
    }
}

/// A call that did nothing. The model sees the reason as an error result and can correct the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The reason. It ends without a period if there is a list to look at.
    pub why: String,
    /// The list that shows the names or numbers to choose from.
    pub list: Option<NamedList>,
}

/// A list that helps to name one of its items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedList {
    /// The tasks, by their titles.
    Tasks,
    /// The tasks, by their numbers.
    NumberedTasks,
    /// The reminders.
    Reminders,
}

impl Refusal {
    /// Creates a refusal for a reason in sentences.
    pub fn new(why: impl std::fmt::Display) -> Self {
        Self { why: why.to_string(), list: None }
    }

    /// Creates a refusal that a look at a list helps with. `why` has no period at its end.
    fn with_list(why: impl std::fmt::Display, list: NamedList) -> Self {
        Self { why: why.to_string(), list: Some(list) }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let why = &self.why;
        match self.list {
            None | Some(NamedList::Tasks) => f.write_str(why),
            Some(NamedList::NumberedTasks) => {
                write!(f, "{why}, so please say the task's name, or “list tasks” to see them. Nothing was done.")
            }
            Some(NamedList::Reminders) => write!(f, "{why}. Send “list reminders” to see them. Nothing was done."),
        }
    }
}

impl std::error::Error for Refusal {}

/// The result of a tool.
pub type Outcome = Result<Done, Refusal>;

/// A running call of an acting tool. The future stays on its thread, because the wake runs on one thread.
pub type Acting<'a> = Pin<Box<dyn Future<Output = Outcome> + 'a>>;

/// The implementation of a tool.
enum Run {
    /// Values in, values out.
    Values(Pure),
    /// Acts outside our transaction, by `exec`.
    Acts(Act),
}

/// A call on values only, with raw arguments.
type Pure = Box<dyn Fn(&str, &World) -> Outcome + Send + Sync>;

/// Determines the targets of raw arguments; `None` if the arguments are invalid.
type Touches = Box<dyn Fn(&str, &World) -> Option<Touched> + Send + Sync>;

/// A call that acts outside our stores, with raw arguments.
pub type Act = Box<dyn for<'a> Fn(&'a str, &'a World, &'a mut Exec) -> Acting<'a> + Send + Sync>;

/// Answers calls instead of the acting tools; takes the tool's name and the raw arguments.
pub type StandIn = Arc<dyn Fn(&str, &str) -> Outcome + Send + Sync>;

/// One tool: its definition for the model, its risk, and its implementation.
pub struct Tool {
    /// The name: `snake_case`, or `mcp__<server>__<tool>`.
    pub name: Cow<'static, str>,
    /// The purpose, in a few lines for the model.
    pub description: Cow<'static, str>,
    /// The JSON schema of the arguments.
    pub schema: Value,
    /// The consequence of repeating a call.
    pub effect: Effect,
    /// The danger of a call for the person's things.
    pub risk: Risk,
    /// Never asks: planning, answering the asking chat, the model's own notes.
    pub is_free: bool,
    /// The reach of a call.
    pub reach: Reach,
    /// Works on the owner's machine; offered only to chats that may see everything of the owner's.
    pub is_owners: bool,
    /// The type under which Claude's models were trained on this tool; only type and name are then declared.
    pub trained: Option<&'static str>,
    /// The tool that reads documents in the same way; rules for that tool apply here too.
    reads_as: Option<&'static str>,
    touches: Option<Touches>,
    /// Granted folders that any call may write to.
    writes: Vec<PathBuf>,
    asks: Option<Asks>,
    run: Run,
}

/// Additional reasons to ask for an approval, besides the policy's.
pub type Asks = Box<dyn Fn(&World) -> Vec<PolicyReason> + Send + Sync>;

/// A tool defined elsewhere, which checks its own arguments.
pub struct Foreign {
    /// `mcp__<server>__<tool>`.
    pub name: String,
    /// The description for the model.
    pub description: String,
    /// The JSON schema of the arguments, an object.
    pub schema: Value,
    /// The consequence of repeating a call.
    pub effect: Effect,
    /// The danger of a call for the person's things.
    pub risk: Risk,
    /// The reach of a call.
    pub reach: Reach,
    /// Offered only to chats that may see everything of the owner's.
    pub is_owners: bool,
    /// The person's folders that a call may write to.
    pub writes: Vec<PathBuf>,
    /// The current reasons to ask for an approval.
    pub asks: Asks,
    /// The implementation.
    pub run: Act,
}

impl Tool {
    /// Creates a tool with arguments of type `A`, which defines the schema and the check.
    fn new<A: JsonSchema + DeserializeOwned + 'static>(
        name: &'static str,
        description: &'static str,
        effect: Effect,
        run: fn(&A, &World) -> Outcome,
    ) -> Self {
        let run = Run::Values(Box::new(move |input, world| run(&parse_arguments::<A>(name, input)?, world)));
        Self::from_parts(name, description, build_schema::<A>(), effect, run)
    }

    /// Creates a tool that acts outside our stores.
    fn new_acting<A: JsonSchema + DeserializeOwned + 'static>(
        name: &'static str,
        description: &'static str,
        effect: Effect,
        run: for<'a> fn(A, &'a World, &'a mut Exec) -> Acting<'a>,
    ) -> Self {
        let run = Run::Acts(Box::new(move |input, world, exec| match parse_arguments::<A>(name, input) {
            Ok(arguments) => run(arguments, world, exec),
            Err(refusal) => Box::pin(std::future::ready(Err(refusal))),
        }));
        Self::from_parts(name, description, build_schema::<A>(), effect, run)
    }

    fn from_parts(
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

    /// Wraps a tool defined elsewhere.
    pub fn from_foreign(foreign: Foreign) -> Self {
        let Foreign { name, description, schema, effect, risk, reach, is_owners, writes, asks, run } = foreign;
        let tool = Self::from_parts(name, description, schema, effect, Run::Acts(run));
        Self { asks: Some(asks), is_owners, writes, ..tool.with_risk(risk).with_reach(reach) }
    }

    /// Marks the tool as never asking.
    fn never_ask(self) -> Self {
        Self { is_free: true, ..self }
    }

    /// Sets a risk other than [`Risk::Safe`].
    fn with_risk(self, risk: Risk) -> Self {
        Self { risk, ..self }
    }

    /// Sets a reach beyond [`Reach::Within`].
    fn with_reach(self, reach: Reach) -> Self {
        Self { reach, ..self }
    }

    /// Restricts the tool to chats that may see everything of the owner's.
    fn for_owner(self) -> Self {
        // fault: guests-shell-owners-files
        Self { is_owners: true, ..self }
    }

    /// Makes the tool ask unless somebody has just asked for something.
    fn ask_without_request(self) -> Self {
        let unasked = |world: &World| match world.conversation.chat {
            Some(_) => Vec::new(),
            None => vec!["Nobody has just asked for this.".into()],
        };
        Self { asks: Some(Box::new(unasked)), ..self }
    }

    /// Sets the type under which Claude's models know the tool.
    fn with_trained_type(self, kind: &'static str) -> Self {
        Self { trained: Some(kind), ..self }
    }

    /// Sets the tool whose reading rules apply here too.
    fn with_reading_rules_of(self, tool: &'static str) -> Self {
        Self { reads_as: Some(tool), ..self }
    }

    /// Sets the targets of a call by its arguments.
    fn with_targets<A: DeserializeOwned + 'static>(self, touches: fn(&A) -> Touched) -> Self {
        self.with_targets_in_world(move |arguments, _| touches(arguments))
    }

    /// Sets the targets of a call by its arguments and the world.
    fn with_targets_in_world<A: DeserializeOwned + 'static>(
        self,
        touches: impl Fn(&A, &World) -> Touched + Send + Sync + 'static,
    ) -> Self {
        let touches = move |input: &str, world: &World| {
            serde_json::from_str::<A>(input).ok().map(|arguments| touches(&arguments, world))
        };
        Self { touches: Some(Box::new(touches)), ..self }
    }

    /// Returns the name shown to the model.
    pub fn offered_as(&self) -> &str {
        VerbGroup::find_by_tool(&self.name).map_or(&self.name, |group| group.name)
    }

    fn definition(&self) -> Value {
        serde_json::json!({"name": self.name, "description": self.description, "input_schema": self.schema})
    }

    /// Returns true if a call may send its arguments off this machine, and for invalid arguments.
    pub fn may_send(&self, input: &str, world: &World) -> bool {
        let Some(touches) = &self.touches else { return self.reach == Reach::Leaves };
        match touches(default_to_empty_object(input), world) {
            Some(touched) => touched.reach(self.reach, world) == Reach::Leaves,
            None => true,
        }
    }

    fn find_targets(&self, input: &str, world: &World) -> Option<Touched> {
        self.touches.as_ref().and_then(|touches| touches(default_to_empty_object(input), world))
    }

    /// Returns true if a call names scratch files of another cycle that was tainted.
    pub fn mentions_untrusted_files(&self, input: &str, world: &World) -> bool {
        match self.find_targets(input, world) {
            Some(Touched::Shell { text, .. }) => world.means.shelter.has_untrusted_path(&text),
            Some(Touched::Path { path, .. }) => world.means.shelter.has_untrusted_path(&path.to_string_lossy()),
            _ => false,
        }
    }

    /// Returns the granted folders that a call may write to.
    pub fn list_writable_folders(&self, input: &str, world: &World) -> Vec<PathBuf> {
        match self.find_targets(input, world) {
            Some(Touched::Shell { text, wanted }) => {
                let access = world.means.rules.limit_access(&text, wanted);
                let may_write = access.writes || !world.means.shelter.is_there();
                if may_write { world.means.rules.granted_folders() } else { Vec::new() }
            }
            Some(Touched::Path { path, is_write: true }) => {
                let granted = world.means.rules.granted_folders();
                granted.into_iter().filter(|root| path.starts_with(root)).collect()
            }
            _ => self.writes.clone(),
        }
    }

    /// Returns the tool's autonomy. A person who allows the initiative wants its proposals even at the lowest autonomy.
    fn autonomy(&self, world: &World) -> Autonomy {
        match world.means.autonomy {
            Autonomy::AskAll if self.name == tell::TELL && world.asks_nobody() => Autonomy::Smart,
            level => level,
        }
    }

    /// Judges a call by the policy. Invalid arguments are denied, and running them would refuse them as well.
    pub fn judge(&self, input: &str, world: &World, taint: Option<&str>) -> Verdict {
        // fault: guests-call-owners-tools
        if self.is_owners && !world.sees_all() {
            return Verdict::deny(OWNERS_ALONE);
        }
        let touched = match &self.touches {
            Some(touches) => touches(default_to_empty_object(input), world),
            None => Some(Touched::Nothing),
        };
        let Some(touched) = touched else {
            return Verdict::deny(format!("The arguments don't fit {}.", self.name));
        };
        if touched.edits_job() && !world.sees_all() {
            return Verdict::deny(OWNERS_ALONE);
        }
        if let Some(why) = propose::find_refusal(&self.name, &touched) {
            return Verdict::deny(why);
        }
        let kept_at = touched.list_paths(&world.memory.documents);
        let subject = Subject {
            tool: &self.name,
            risk: self.risk.max(touched.risk()),
            effect: if matches!(touched, Touched::Documents(_)) { Effect::Read } else { self.effect },
            is_free: self.is_free,
            reach: touched.reach(self.reach, world),
            what: touched.to_policy_target(&kept_at, &world.means.rules),
            arguments: default_to_empty_object(input),
        };
        // Detecting a sandbox runs a program, and checking the folders for copies scans all of them, so both happen only if needed.
        let (is_shell, writes) = match subject.what {
            What::Shell { access, .. } => (true, access.writes),
            _ => (false, false),
        };
        let is_sandboxed = !is_shell || world.means.shelter.is_there();
        let uncovered =
            if writes && is_sandboxed { world.means.shelter.find_copy_obstacle(&world.means.rules) } else { None };
        let circumstances = Circumstances {
            autonomy: self.autonomy(world),
            taint,
            is_sandboxed,
            uncovered: uncovered.as_deref(),
            // fault: rule-good-outlasts-untrusted
            tainted_write: if is_shell { world.means.shelter.tainted_write(&world.means.rules) } else { None },
        };
        let mut verdict = policy::judge(&subject, &world.means.rules, &circumstances);
        // The same act under another name.
        if let (Some(tool), Touched::Documents(_)) = (self.reads_as, &touched) {
            let other = policy::judge(&Subject { tool, ..subject }, &world.means.rules, &circumstances);
            verdict = if other.decision > verdict.decision { other } else { verdict };
        }
        let of_jobs = self.describe_written_jobs(&touched, default_to_empty_object(input), world);
        self.asks
            .iter()
            .flat_map(|asks| asks(world))
            .chain(of_jobs.into_iter().map(PolicyReason::from))
            .fold(verdict, Verdict::raise_to_ask)
    }
}

/// Missing arguments count as an empty object.
fn default_to_empty_object(input: &str) -> &str {
    if input.trim().is_empty() { "{}" } else { input }
}

fn parse_arguments<A: DeserializeOwned>(name: &str, input: &str) -> Result<A, Refusal> {
    serde_json::from_str(input)
        .map_err(|error| Refusal::new(format!("The arguments don't fit {name}: {error}. Nothing was done.")))
}

/// Checks a text argument: trimmed, not empty, and within a length limit in characters.
fn check_text(argument: &str, name: &str, max_chars: usize) -> Result<String, Refusal> {
    let text = argument.trim();
    if text.is_empty() {
        return Err(Refusal::new(format!("{name} is empty. Nothing was done.")));
    }
    let length = text.chars().count();
    if length > max_chars {
        return Err(Refusal::new(format!(
            "{name} has {length} characters, at most {max_chars} are taken. Nothing was done."
        )));
    }
    Ok(text.to_owned())
}

/// Returns the first words of a text, for receipts.
fn shorten_text(text: &str) -> String {
    const CHARS: usize = 60;
    truncate_text(&one_line(text), CHARS)
}

#[cfg(test)]
mod tests;
