//! The files that a cycle's calls make: today's tools are applied to the memory as it was before the cycle's commit. Writes nothing.

use std::{collections::BTreeMap, path::PathBuf};

use reveille_base::{types::Effect, words::one_line};
use reveille_cycle::{context::Context, run::outside};
use reveille_git::{Oid, Repo};
use reveille_memory as memory;
use reveille_memory::{
    skill::Skills,
    view::{self, View},
};
use reveille_store::{Change, CycleRow, StagedFile, Store};
use reveille_tools::{Chat, Documents, Registry, World};

use super::recorded::CompletedCall;

/// The name of a folder that stands for the past memory. It doesn't exist, and nothing is written to it.
const NOWHERE: &str = "replay";

/// The effect of calls on the memory.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct MadeFiles {
    /// The files changed by the calls, by path.
    pub(super) files: BTreeMap<String, String>,
    /// Calls that couldn't be repeated, with the reason, for people.
    pub(super) refused: Vec<String>,
}

/// The memory before a commit.
pub(super) struct MemoryBefore {
    texts: Vec<StagedFile>,
}

impl MemoryBefore {
    /// Reads the memory; `None` if the commit has no parent.
    pub(super) fn load(repo: &Repo, commit: Oid) -> Result<Option<Self>, reveille_git::RepoError> {
        let Some(before) = repo.history().find_parent(commit)? else { return Ok(None) };
        let mut texts = Vec::new();
        for path in repo.history().list_markdown_at(before)? {
            if let Some(content) = repo.history().read_text_at(before, &path)? {
                texts.push(StagedFile { path, base: Some(content.clone()), content });
            }
        }
        Ok(Some(Self { texts }))
    }

    /// Repeats these calls, except those that failed, act outside or only read, and returns the files they make.
    pub(super) fn apply_calls(
        &self,
        (context, store): (Context<'_>, &Store),
        row: &CycleRow,
        registry: &Registry,
        calls: &[CompletedCall],
    ) -> Result<MadeFiles, reveille_cycle::WakeError> {
        let mut world = self.build_world(context, store, row)?;
        let mut made = MadeFiles::default();
        for call in calls.iter().filter(|call| !call.is_error) {
            if registry.is_acting(&call.tool) || registry.get(&call.tool).is_none_or(|tool| tool.effect == Effect::Read)
            {
                continue;
            }
            world.clock.now = call.at.unwrap_or(world.clock.now);
            world.conversation.open_messages.clone_from(&call.open);
            world.cycle.taint = (!call.taints.is_empty()).then(|| call.taints.join(", "));
            match registry.call(&call.tool, &call.input, &world) {
                Ok(done) => done.changes.iter().for_each(|change| apply_change(&mut world, change)),
                Err(why) => made.refused.push(format!("{}: {}", call.tool, one_line(&why.why))),
            }
        }
        let changed = world
            .memory
            .documents
            .list_staged_files()
            .into_iter()
            .filter(|file| file.base.as_ref() != Some(&file.content));
        made.files = changed.map(|file| (file.path, file.content)).collect();
        Ok(made)
    }

    fn build_world(
        &self,
        context: Context<'_>,
        store: &Store,
        row: &CycleRow,
    ) -> Result<World, reveille_cycle::WakeError> {
        let (config, cycle) = (context.config, &row.cycle);
        let dir: PathBuf = config.workspace_dir.join(NOWHERE);
        let mut documents = Documents::new(&dir, self.texts.clone());
        if let Some(chat) = view::foreign_chat(cycle.chat, config.owner_chat)
            && !view::is_shared(&documents.text(memory::CLAUDE))
        {
            documents = documents.with_view(View::for_chat(chat));
        }
        let skills = Skills::collect(&documents.list(), |path| documents.text(path)).usable;
        let mut world = outside::build_reading_world(context, store)?;
        world.cycle.id.clone_from(&cycle.id);
        context.model.name().clone_into(&mut world.cycle.model);
        world.clock.now = row.started_at.unwrap_or(world.clock.now);
        world.conversation.chat = cycle.chat.map(|id| Chat { id, thread_id: cycle.thread_id, reply_to: None });
        world.unasked.tell_per_day = u32::MAX;
        world.memory.documents = documents;
        world.memory.skills = skills;
        Ok(world)
    }
}

/// Applies a change to the world, as the cycle itself does.
fn apply_change(world: &mut World, change: &Change) {
    match change {
        Change::File(file) => world.memory.documents.apply(file),
        Change::ShowTasks { tasks, .. } => world.conversation.shown_tasks.clone_from(tasks),
        _ => {}
    }
}
