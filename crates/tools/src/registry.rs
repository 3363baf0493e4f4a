//! The tools of one cycle: which of them a model is offered, and how a call of one is judged and run.

use std::{path::PathBuf, sync::Arc};

use serde_json::Value;

use reveille_base::types::VerbGroup;
use reveille_policy::Verdict;
use reveille_sandbox::exec::Exec;

use super::{
    Assignment, Done, OWNERS_ALONE, Outcome, Refusal, Run, StandIn, ToRead, Tool, World, about_me, assignment,
    attachment, bash, brain, edit, exchange, find, find_tools, image, keep, lists, memory_files, note, offer, open,
    or_empty, own_name, plan, project, propose, read, reflect, remember, reminder, reply, steps, system, task, tell,
    verbs, watch, web_fetch, web_search,
};

/// The longest outcome a model is told, in bytes; the rest is cut and said to be.
pub const MAX_OUTCOME_BYTES: usize = 24 * 1024;

/// What a small model has: all of it safe, and within the memory. It answers with plain words.
pub(super) const SMALL_TOOLS: [&str; 7] =
    ["memory_search", "remember", "reminder_list", "reminder_set", "task_add", "task_done", "task_list"];

/// How long the parts of a prompt that stay the same are kept for the next wake.
pub const CACHED_FOR: &str = "1h";

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
    pub(super) tools: Vec<Tool>,
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
        registry.tools.extend(lists::tools());
        registry.tools.extend([brain::undo_last(), own_name::tool(), keep::tool(), read::quote(), read::recall()]);
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

    /// See [`Tool::names_untrusted`].
    pub fn names_untrusted(&self, name: &str, input: &str, world: &World) -> bool {
        self.get(name).is_some_and(|tool| tool.names_untrusted(input, world))
    }

    /// See [`Tool::writes_to`].
    pub fn writes_to(&self, name: &str, input: &str, world: &World) -> Vec<PathBuf> {
        self.get(name).map(|tool| tool.writes_to(input, world)).unwrap_or_default()
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
            // fault: guests-call-owners-tools-run
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
                let mut names: Vec<&str> = Vec::new();
                for name in self.tools.iter().map(Tool::offered_as) {
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
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

/// Cuts a long outcome at a line's end and says so.
fn bounded(outcome: Outcome) -> Outcome {
    outcome.map(|done| Done { content: cut(done.content), ..done })
}

pub(super) fn cut(content: String) -> String {
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
