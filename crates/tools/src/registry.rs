//! The tools of one cycle: selection for the model, judgement and execution of calls.

use std::{path::PathBuf, sync::Arc};

use serde_json::Value;

use reveille_base::types::VerbGroup;
use reveille_policy::Verdict;
use reveille_sandbox::exec::Exec;

use super::{
    Assignment, Done, OWNERS_ALONE, Outcome, Refusal, Run, StandIn, ToRead, Tool, World, about_me, assignment,
    attachment, bash, brain, default_to_empty_object, edit, exchange, find, find_tools, image, keep, lists,
    memory_files, note, offer, open, own_name, plan, project, propose, read, reflect, remember, reminder, reply, steps,
    system, task, tell, verbs, watch, web_fetch, web_search,
};

/// Maximum length of an outcome for the model, in bytes; the rest is cut with a note.
pub const MAX_OUTCOME_BYTES: usize = 24 * 1024;

/// The tools of a small model: all safe, and within the memory. Its answers are plain text.
pub(super) const SMALL_TOOLS: [&str; 7] =
    ["memory_search", "remember", "reminder_list", "reminder_set", "task_add", "task_done", "task_list"];

/// How long providers keep the constant part of a prompt for the next wake.
pub const CACHED_FOR: &str = "1h";

/// The tools that a chat may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolView {
    /// All tools.
    Owner,
    /// All tools but those on the owner's machine.
    Guest,
}

/// The tools of a registry visible to a chat.
pub struct SeenTools<'a> {
    registry: &'a Registry,
    view: ToolView,
}

impl<'a> SeenTools<'a> {
    fn tools(&self) -> impl Iterator<Item = &'a Tool> {
        let view = self.view;
        self.registry.tools.iter().filter(move |tool| view == ToolView::Owner || !tool.is_owners)
    }

    /// Renders the definitions offered to a cycle with these words and context; see `tool::offer`. Those common to all
    /// cycles come first, identical to the byte, and end with a mark for the prompt cache.
    pub fn render_offer(&self, words: &str, there: ToRead) -> String {
        let of_a_cycle = self.tools().filter(|tool| !assignment::is_of_own_work(&tool.name));
        let offered = of_a_cycle.filter(|tool| offer::is_offered(&tool.name, words, there));
        let (always, called_for): (Vec<&Tool>, Vec<&Tool>) =
            offered.partition(|tool| offer::is_offered(&tool.name, "", ToRead::default()));
        let mut definitions = self.registry.group_definitions(&always);
        if let (true, Some(last)) = (self.registry.is_claude, definitions.last_mut().and_then(Value::as_object_mut)) {
            last.insert("cache_control".to_owned(), serde_json::json!({"type": "ephemeral", "ttl": CACHED_FOR}));
        }
        definitions.extend(self.registry.group_definitions(&called_for));
        Value::Array(definitions).to_string()
    }

    /// Renders the definitions offered to a background job. A reflection gets all of its tools; other work gets the
    /// tools called for by its words, then its own tools.
    pub fn render_job_offer(&self, work: &Assignment, words: &str, there: ToRead) -> String {
        let is_called_for = |tool: &&Tool| match work {
            Assignment::Reflection(_) => true,
            Assignment::Job(Some(_)) => work.allows(&tool.name),
            _ => assignment::is_of_own_work(&tool.name) || offer::is_offered(&tool.name, words, there),
        };
        let mut offered: Vec<&Tool> =
            self.tools().filter(|tool| work.allows(&tool.name)).filter(is_called_for).collect();
        offered.sort_by_key(|tool| assignment::is_of_own_work(&tool.name));
        Value::Array(self.registry.group_definitions(&offered)).to_string()
    }

    /// Returns the definitions searched by `find_tools`.
    pub fn catalogue(&self) -> Vec<Value> {
        let of_a_cycle: Vec<&Tool> = self.tools().filter(|tool| !assignment::is_of_own_work(&tool.name)).collect();
        define_groups(&of_a_cycle, Tool::definition)
    }
}

/// The tools of one cycle. Offered tools are part of the conversation's prefix, in a fixed order; the others are found
/// by `find_tools` and called through `use_tool`.
pub struct Registry {
    pub(super) tools: Vec<Tool>,
    /// Set for Claude's models, which were trained on some tools.
    is_claude: bool,
    /// Set for a small model, which gets each tool by its own name instead of groups.
    is_small: bool,
}

impl Registry {
    /// Returns the tools of every model.
    pub fn with_standard_tools() -> Self {
        let mut tools = vec![
            plan::define_tool(),
            reply::define_tool(),
            tell::define_tool(),
            note::define_note(),
            note::context_update(),
        ];
        tools.extend(remember::define_tools());
        tools.extend(task::define_tools());
        tools.extend(reminder::define_tools());
        tools.extend(read::define_tools());
        tools.push(attachment::define_tool());
        Self { tools, is_claude: false, is_small: false }
    }

    /// Returns the tools of a thinking model: the standard tools, and those that act outside our stores.
    pub fn for_thinking_model() -> Self {
        let mut registry = Self::with_standard_tools();
        registry.tools.extend([bash::define_tool(), web_fetch::define_tool(), web_search::define_tool()]);
        registry.tools.extend([
            edit::define_tool(),
            find::define_tool(),
            image::define_tool(),
            system::define_tool(),
            open::define_tool(),
        ]);
        registry.tools.extend(brain::define_tools());
        registry.tools.push(exchange::define_tool());
        registry.tools.extend(find_tools::define_tools());
        registry.tools.push(memory_files::define_tool());
        registry.tools.push(project::define_tool());
        registry.tools.push(propose::define_tool());
        registry.tools.push(about_me::define_tool());
        registry.tools.extend(steps::define_tools());
        registry.tools.push(watch::define_tool());
        registry.tools.extend(reflect::define_tools());
        Self { is_claude: true, ..registry }
    }

    /// Returns the tools of the offline model: the standard tools, and a tool to keep messages for later.
    pub fn for_offline_model() -> Self {
        let mut registry = Self::with_standard_tools();
        registry.tools.extend(lists::define_tools());
        registry.tools.extend([
            brain::undo_last(),
            own_name::define_tool(),
            keep::define_tool(),
            read::define_quote(),
            read::define_recall(),
        ]);
        registry
    }

    /// Returns the tools for a person's orders without a model.
    pub fn for_orders() -> Self {
        Self::for_offline_model().with_tools(steps::define_tools())
    }

    /// Returns the tools of a small model: a few standard tools, none of which can do harm unasked.
    pub fn for_small_model() -> Self {
        let mut registry = Self::with_standard_tools();
        registry.tools.retain(|tool| SMALL_TOOLS.contains(&&*tool.name));
        registry.is_small = true;
        registry
    }

    /// Uses full definitions for all tools, for clients that rename them.
    #[must_use]
    pub fn written_out(self) -> Self {
        Self { is_claude: false, ..self }
    }

    /// Returns the tools visible to a chat.
    pub fn filter_visible(&self, view: ToolView) -> SeenTools<'_> {
        SeenTools { registry: self, view }
    }

    /// Adds tools after the existing ones.
    #[must_use]
    pub fn with_tools(mut self, tools: Vec<Tool>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Replaces all acting tools by a stub.
    #[must_use]
    pub fn with_stub(mut self, stand_in: &StandIn) -> Self {
        for tool in self.tools.iter_mut().filter(|tool| matches!(tool.run, Run::Acts(_))) {
            let (name, stand_in) = (tool.name.clone(), Arc::clone(stand_in));
            tool.run = Run::Acts(Box::new(move |input, _, _| Box::pin(std::future::ready(stand_in(&name, input)))));
        }
        self
    }

    /// Renders the definitions of all tools by their own names, as a raw JSON array.
    pub fn render_definitions(&self) -> String {
        Value::Array(self.tools.iter().map(|tool| self.definition(tool)).collect()).to_string()
    }

    fn definition(&self, tool: &Tool) -> Value {
        match tool.trained {
            Some(kind) if self.is_claude => serde_json::json!({"type": kind, "name": tool.name}),
            _ => tool.definition(),
        }
    }

    fn group_definitions(&self, tools: &[&Tool]) -> Vec<Value> {
        if self.is_small {
            return tools.iter().map(|tool| self.definition(tool)).collect();
        }
        define_groups(tools, |tool| self.definition(tool))
    }

    /// Returns the definitions of these tools as shown to a model, with verbs grouped.
    pub fn list_definitions(&self, names: &[&str]) -> Vec<Value> {
        let tools: Vec<&Tool> = names.iter().filter_map(|name| self.get(name)).collect();
        self.group_definitions(&tools)
    }

    /// Returns the refusal of a group call without a known verb; `None` for a valid verb or another tool.
    pub fn no_verb(name: &str, input: &str) -> Option<Refusal> {
        verbs::find_refusal(name).filter(|_| verbs::translate_call(name, input).is_none())
    }

    /// Returns a tool by its name.
    pub fn get(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// See [`Tool::mentions_untrusted_files`].
    pub fn mentions_untrusted_files(&self, name: &str, input: &str, world: &World) -> bool {
        self.get(name).is_some_and(|tool| tool.mentions_untrusted_files(input, world))
    }

    /// See [`Tool::list_writable_folders`].
    pub fn list_writable_folders(&self, name: &str, input: &str, world: &World) -> Vec<PathBuf> {
        self.get(name).map(|tool| tool.list_writable_folders(input, world)).unwrap_or_default()
    }

    /// Returns true if a call acts outside our stores, and so may take a while.
    pub fn is_acting(&self, name: &str) -> bool {
        self.get(name).is_some_and(|tool| matches!(tool.run, Run::Acts(_)))
    }

    /// Judges a call by the policy; `None` for an unknown tool, which the execution reports. `taint` is the source of
    /// untrusted text that the cycle has read.
    pub fn judge(&self, name: &str, input: &str, world: &World, taint: Option<&str>) -> Option<Verdict> {
        self.get(name).map(|tool| match assignment::find_refusal(name, world) {
            Some(why) => Verdict::deny(why),
            None => tool.judge(input, world, taint),
        })
    }

    /// Runs an allowed call. Invalid input from a model is a refusal and never a panic.
    pub async fn run(&self, name: &str, input: &str, world: &World, exec: &mut Exec) -> Outcome {
        match self.get(name) {
            // fault: guests-call-owners-tools-run
            Some(tool) if tool.is_owners && !world.sees_all() => {
                Err(Refusal::new(format!("{OWNERS_ALONE} Nothing was done.")))
            }
            Some(Tool { run: Run::Acts(run), .. }) => {
                cut_outcome(run(default_to_empty_object(input), world, exec).await)
            }
            _ => self.call(name, input, world),
        }
    }

    /// Runs a tool that acts only on our stores; see [`Registry::run`].
    pub fn call(&self, name: &str, input: &str, world: &World) -> Outcome {
        match self.get(name).map(|tool| &tool.run) {
            Some(Run::Values(run)) => cut_outcome(run(default_to_empty_object(input), world)),
            Some(Run::Acts(_)) => Err(Refusal::new(format!("{name} can't act from here. Nothing was done."))),
            None => Err(verbs::find_refusal(name).unwrap_or_else(|| {
                let mut names: Vec<&str> = Vec::new();
                for name in self.tools.iter().map(Tool::offered_as) {
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
                Refusal::new(format!("There is no tool named {name:?}. There are: {}.", names.join(", ")))
            })),
        }
    }
}

/// Returns the definitions of these tools. Grouped verbs appear once, at the place of the first verb.
fn define_groups(tools: &[&Tool], definition: impl Fn(&Tool) -> Value) -> Vec<Value> {
    let mut seen: Vec<&VerbGroup> = Vec::new();
    let mut definitions = Vec::new();
    for tool in tools {
        match VerbGroup::find_by_tool(&tool.name) {
            None => definitions.push(definition(tool)),
            Some(group) if seen.contains(&group) => {}
            Some(group) => {
                seen.push(group);
                definitions.push(verbs::define_group(group, tools));
            }
        }
    }
    definitions
}

/// Cuts a long outcome at a line's end, with a note.
fn cut_outcome(outcome: Outcome) -> Outcome {
    outcome.map(|done| Done { content: cut_content(done.content), ..done })
}

pub(super) fn cut_content(content: String) -> String {
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
