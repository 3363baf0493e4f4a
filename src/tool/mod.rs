//! What a model can do: tools as values in, values out.
//!
//! A tool gets its checked arguments and a view of the [`World`]. It returns what it would tell the model, a receipt for the
//! episodic memory, and the [`Change`]s that make it true. It writes nothing itself: the cycle records outcome and
//! changes in one transaction. So a call has either happened once or not at all.

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
mod memory_files;
mod note;
mod offer;
mod open;
mod plan;
mod project;
mod propose;
mod read;
mod reflect;
mod remember;
mod reminder;
mod reply;
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

pub use assignment::{Assignment, StepInHand};
pub use attachment::{Attachments, LastPdf, MAX_KNOWN as MAX_ATTACHMENTS};
pub use brain::{MAX_UNDOABLE, Undoable};
pub use edit::EDITOR;
pub use exchange::MAX_KNOWN as MAX_EXCHANGES;
pub use find_tools::unwrapped;
pub use offer::ToRead;
pub(crate) use plan::MAX_STEPS;
pub use plan::{Complexity, Plan, PlanStep};
pub(crate) use project::known_projects;
pub(crate) use propose::{PROPOSE_CHANGE, stated};
pub(crate) use read::READ;
pub(crate) use reflect::Asking;
pub(crate) use reminder::slot_on;
pub(crate) use reply::answer;
pub(crate) use search::hits;
pub(crate) use steps::{BUDGET_USD, ended, is_in_hand, out_of_money, put_back};
pub(crate) use task::also_written;
pub use touched::Touched;
pub use world::{Catalogue, Chat, Documents, Unwoken, World, unwoken_key};

pub use crate::policy::Risk;

use std::{borrow::Cow, future::Future, pin::Pin, sync::Arc};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    config::Autonomy,
    exec::Exec,
    policy::{self, Circumstances, Reach, Subject, Verdict, What},
    store::Change,
    types::{Effect, VerbGroup},
    words::{one_line, shortened},
};

/// The longest outcome a model is told, in bytes; the rest is cut and said to be.
pub const MAX_OUTCOME_BYTES: usize = 24 * 1024;

/// How long the parts of a prompt that stay the same are kept for the next wake.
pub const CACHED_FOR: &str = "1h";

/// Why another chat than the owner's gets nowhere with a shell or files: all that a program or a path reaches here, the memory and
/// what programs have left in the scratch folder, is of what the owner said.
const OWNERS_ALONE: &str = "Only the owner's chats have this machine's shell, files and screen, its projects, and the servers of mcp.toml that aren't opened to guests.";

/// What a small model has: all of it safe, and within the memory. It answers with plain words.
const SMALL_TOOLS: [&str; 7] =
    ["memory_search", "remember", "reminder_list", "reminder_set", "task_add", "task_done", "task_list"];

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
            asks: None,
            run,
        }
    }

    /// A tool of somebody else's.
    pub fn foreign(foreign: Foreign) -> Self {
        let Foreign { name, description, schema, effect, risk, reach, is_owners, asks, run } = foreign;
        let tool = Self::running(name, description, schema, effect, Run::Acts(run));
        Self { asks: Some(asks), is_owners, ..tool.risking(risk).reaching(reach) }
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
        let circumstances =
            Circumstances { autonomy: self.autonomy(world), taint, is_sandboxed, uncovered: uncovered.as_deref() };
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

/// What of a registry a chat has.
pub struct SeenTools<'a> {
    registry: &'a Registry,
    sees_all: bool,
}

impl<'a> SeenTools<'a> {
    fn tools(&self) -> impl Iterator<Item = &'a Tool> {
        let sees_all = self.sees_all;
        self.registry.tools.iter().filter(move |tool| sees_all || !tool.is_owners)
    }

    /// The definitions of those that a cycle about these words, with these things to be read, is offered; see `tool::offer`. Those of
    /// every cycle come first and end with a mark for the cache of prompts: they are the same to the byte each time.
    pub fn offered(&self, words: &str, there: ToRead) -> String {
        let of_a_cycle = self.tools().filter(|tool| !assignment::is_of_own_work(&tool.name));
        let offered = of_a_cycle.filter(|tool| offer::is_offered(&tool.name, words, there));
        let (always, called_for): (Vec<&Tool>, Vec<&Tool>) =
            offered.partition(|tool| offer::is_offered(&tool.name, "", ToRead::default()));
        let mut definitions = self.registry.grouped(&always);
        if let (true, Some(last)) = (self.registry.is_claude, definitions.last_mut().and_then(Value::as_object_mut)) {
            last.insert("cache_control".to_owned(), serde_json::json!({"type": "ephemeral", "ttl": CACHED_FOR}));
        }
        definitions.extend(self.registry.grouped(&called_for));
        Value::Array(definitions).to_string()
    }

    /// The definitions of those that own work is offered: of a look back all that it has; of other work those that its words call
    /// for, then those that it alone has.
    pub fn offered_to(&self, work: &Assignment, words: &str, there: ToRead) -> String {
        let is_called_for = |tool: &&Tool| match work {
            Assignment::Reflection(_) => true,
            Assignment::Job(Some(_)) => work.allows(&tool.name),
            _ => assignment::is_of_own_work(&tool.name) || offer::is_offered(&tool.name, words, there),
        };
        let mut offered: Vec<&Tool> =
            self.tools().filter(|tool| work.allows(&tool.name)).filter(is_called_for).collect();
        offered.sort_by_key(|tool| assignment::is_of_own_work(&tool.name));
        Value::Array(self.registry.grouped(&offered)).to_string()
    }

    /// What `find_tools` looks through.
    pub fn catalogue(&self) -> Vec<Value> {
        let of_a_cycle: Vec<&Tool> = self.tools().filter(|tool| !assignment::is_of_own_work(&tool.name)).collect();
        of_groups(&of_a_cycle, Tool::definition)
    }
}

/// The tools of one cycle. Those that are offered stand in its conversation's prefix, in a fixed order; the others are found by
/// `find_tools` and called through `use_tool`.
pub struct Registry {
    tools: Vec<Tool>,
    /// Whether the model is one of Claude's models, which were trained on some of them.
    is_claude: bool,
    /// Whether the model is a small one, which is offered each tool by its own name: a choice less.
    is_small: bool,
}

impl Registry {
    /// The tools that every model has.
    pub fn standard() -> Self {
        let mut tools = vec![plan::tool(), reply::tool(), tell::tool(), note::note(), note::context_update()];
        tools.extend(remember::tools());
        tools.extend(task::tools());
        tools.extend(reminder::tools());
        tools.extend(read::tools());
        tools.push(attachment::tool());
        Self { tools, is_claude: false, is_small: false }
    }

    /// Those of a model that thinks: the standard ones, and what acts outside our stores.
    pub fn thinking() -> Self {
        let mut registry = Self::standard();
        registry.tools.extend([bash::tool(), web_fetch::tool(), web_search::tool()]);
        registry.tools.extend([edit::tool(), find::tool(), image::tool(), system::tool(), open::tool()]);
        registry.tools.extend(brain::tools());
        registry.tools.push(exchange::tool());
        registry.tools.extend(find_tools::tools());
        registry.tools.push(memory_files::tool());
        registry.tools.push(project::tool());
        registry.tools.push(propose::tool());
        registry.tools.push(about_me::tool());
        registry.tools.extend(steps::tools());
        registry.tools.push(watch::tool());
        registry.tools.extend(reflect::tools());
        Self { is_claude: true, ..registry }
    }

    /// The offline model's: the standard ones, and one to keep what it can't answer.
    pub fn offline() -> Self {
        let mut registry = Self::standard();
        registry.tools.extend([brain::undo_last(), keep::tool(), read::quote(), read::recall()]);
        registry
    }

    /// What a person orders without a model.
    pub fn of_orders() -> Self {
        Self::offline().with(steps::tools())
    }

    /// A small model's: few of the standard ones, none of which can do harm unasked.
    pub fn small() -> Self {
        let mut registry = Self::standard();
        registry.tools.retain(|tool| SMALL_TOOLS.contains(&&*tool.name));
        registry.is_small = true;
        registry
    }

    /// The same with each tool's whole definition, for who hands them on to a model under other names.
    #[must_use]
    pub fn written_out(self) -> Self {
        Self { is_claude: false, ..self }
    }

    /// The tools that such a chat has: `sees_all`, or not those that work on the owner's machine.
    pub fn seen_by(&self, sees_all: bool) -> SeenTools<'_> {
        SeenTools { registry: self, sees_all }
    }

    /// Adds tools behind those that are there.
    #[must_use]
    pub fn with(mut self, tools: Vec<Tool>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// The same with this in the place of all that acts outside our stores.
    #[must_use]
    pub fn acted_by(mut self, stand_in: &StandIn) -> Self {
        for tool in self.tools.iter_mut().filter(|tool| matches!(tool.run, Run::Acts(_))) {
            let (name, stand_in) = (tool.name.clone(), Arc::clone(stand_in));
            tool.run = Run::Acts(Box::new(move |input, _, _| Box::pin(std::future::ready(stand_in(&name, input)))));
        }
        self
    }

    /// The definitions of all tools by their own names, as a raw JSON array.
    pub fn definitions(&self) -> String {
        Value::Array(self.tools.iter().map(|tool| self.definition(tool)).collect()).to_string()
    }

    fn definition(&self, tool: &Tool) -> Value {
        match tool.trained {
            Some(kind) if self.is_claude => serde_json::json!({"type": kind, "name": tool.name}),
            _ => tool.definition(),
        }
    }

    fn grouped(&self, tools: &[&Tool]) -> Vec<Value> {
        if self.is_small {
            return tools.iter().map(|tool| self.definition(tool)).collect();
        }
        of_groups(tools, |tool| self.definition(tool))
    }

    /// The definitions of these tools as a model sees them, by its own names for them: verbs stand under their group's.
    pub fn offered_of(&self, names: &[&str]) -> Vec<Value> {
        let tools: Vec<&Tool> = names.iter().filter_map(|name| self.get(name)).collect();
        self.grouped(&tools)
    }

    /// Why a call of several verbs' tool is none of theirs; none: it is one of theirs, or of another tool.
    pub fn no_verb(name: &str, input: &str) -> Option<Refusal> {
        verbs::refusal(name).filter(|_| verbs::named(name, input).is_none())
    }

    /// A tool by its name.
    pub fn get(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// Whether a call acts outside our stores, and so may take its time.
    pub fn acts(&self, name: &str) -> bool {
        self.get(name).is_some_and(|tool| matches!(tool.run, Run::Acts(_)))
    }

    /// What the policy says of a call; none: there is no such tool, and running it says so. `taint`: whose bytes the cycle has read,
    /// besides its person's.
    pub fn judge(&self, name: &str, input: &str, world: &World, taint: Option<&str>) -> Option<Verdict> {
        self.get(name).map(|tool| match assignment::refusal(name, world) {
            Some(why) => Verdict::denied(why),
            None => tool.judge(input, world, taint),
        })
    }

    /// Runs a call that may be run. Never panics on what a model sends: anything wrong is a refusal.
    pub async fn run(&self, name: &str, input: &str, world: &World, exec: &mut Exec) -> Outcome {
        match self.get(name) {
            Some(tool) if tool.is_owners && !world.sees_all() => {
                Err(Refusal(format!("{OWNERS_ALONE} Nothing was done.")))
            }
            Some(Tool { run: Run::Acts(run), .. }) => bounded(run(or_empty(input), world, exec).await),
            _ => self.call(name, input, world),
        }
    }

    /// [`Registry::run`] for a tool that acts on our stores alone.
    pub fn call(&self, name: &str, input: &str, world: &World) -> Outcome {
        match self.get(name).map(|tool| &tool.run) {
            Some(Run::Values(run)) => bounded(run(or_empty(input), world)),
            Some(Run::Acts(_)) => Err(Refusal(format!("{name} can't act from here. Nothing was done."))),
            None => Err(verbs::refusal(name).unwrap_or_else(|| {
                let mut names: Vec<&str> = self.tools.iter().map(Tool::offered_as).collect();
                names.dedup();
                Refusal(format!("There is no tool named {name:?}. There are: {}.", names.join(", ")))
            })),
        }
    }
}

/// The definitions of these tools: verbs stand under their group's, which comes where its first one would.
fn of_groups(tools: &[&Tool], definition: impl Fn(&Tool) -> Value) -> Vec<Value> {
    let mut seen: Vec<&VerbGroup> = Vec::new();
    let mut definitions = Vec::new();
    for tool in tools {
        match VerbGroup::with(&tool.name) {
            None => definitions.push(definition(tool)),
            Some(group) if seen.contains(&group) => {}
            Some(group) => {
                seen.push(group);
                definitions.push(verbs::definition(group, tools));
            }
        }
    }
    definitions
}

/// No arguments at all are an empty object.
fn or_empty(input: &str) -> &str {
    if input.trim().is_empty() { "{}" } else { input }
}

/// A type's JSON schema, written out in place: a definition elsewhere is one more thing to be misread.
fn schema_of<A: JsonSchema>() -> Value {
    let inline = schemars::generate::SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = inline.into_generator().into_root_schema_for::<A>().to_value();
    if let Some(object) = schema.as_object_mut() {
        object.remove("$schema");
        object.remove("title");
        object.remove("description");
    }
    shorten(&mut schema);
    let nested = schema.get_mut("properties").and_then(Value::as_object_mut);
    nested.into_iter().flat_map(|properties| properties.values_mut()).for_each(|property| {
        property.get_mut("items").and_then(Value::as_object_mut).map(|items| {
            items.remove("description");
            items.remove("additionalProperties")
        });
    });
    schema
}

/// Leaves out of a schema what its reader pays for and doesn't need: defaults, bounds that a type implies, that a field may be null, and
/// a table of described constants where a list and a sentence say the same.
fn shorten(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            for key in ["default", "format", "minimum"] {
                object.remove(key);
            }
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|kind| kind != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    object.insert("type".to_owned(), only);
                }
            }
            if let Some(constants) = object.get("oneOf").and_then(constants) {
                let said =
                    constants.iter().map(|(name, about)| format!("{name}: {about}")).collect::<Vec<_>>().join(" ");
                let about = object.get("description").and_then(Value::as_str).unwrap_or_default();
                let about = format!("{about} {said}").trim().to_owned();
                let names: Vec<&str> = constants.iter().map(|(name, _)| *name).collect();
                let list = serde_json::json!(names);
                object.remove("oneOf");
                object.insert("enum".to_owned(), list);
                object.insert("description".to_owned(), about.into());
            }
            for (key, value) in object {
                match value.as_object_mut().filter(|_| key == "properties") {
                    Some(properties) => properties.values_mut().for_each(shorten),
                    None => shorten(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(shorten),
        _ => {}
    }
}

/// The constants of an enumeration, each with what is said of it; none: it isn't one of described constants.
fn constants(one_of: &Value) -> Option<Vec<(&str, &str)>> {
    one_of
        .as_array()?
        .iter()
        .map(|one| Some((one.get("const")?.as_str()?, one.get("description")?.as_str()?)))
        .collect()
}

fn arguments<A: DeserializeOwned>(name: &str, input: &str) -> Result<A, Refusal> {
    serde_json::from_str(input)
        .map_err(|error| Refusal(format!("The arguments don't fit {name}: {error}. Nothing was done.")))
}

/// Cuts a long outcome at a line's end and says so.
fn bounded(outcome: Outcome) -> Outcome {
    outcome.map(|done| Done { content: cut(done.content), ..done })
}

fn cut(content: String) -> String {
    if content.len() <= MAX_OUTCOME_BYTES {
        return content;
    }
    let kept: String = content
        .split_inclusive('\n')
        .scan(0, |bytes, line| {
            *bytes += line.len();
            (*bytes <= MAX_OUTCOME_BYTES).then_some(line)
        })
        .collect();
    format!("{kept}\n(Cut here: {} of {} bytes shown. Ask for a part of it.)", kept.len(), content.len())
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
