//! Tests every tool: a good call, each bad argument, its limits. Tools are values in and values out, so a test looks at the changes of
//! a call.

mod attachments;
mod definitions;
mod exchange;
mod files;
mod lists;
mod memory;
mod reminders;
mod speaking;
mod tasks;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use reveille_base::{clock::parse_time, types::ChatRef, zone::Tz};
use reveille_store::{MessageOutcome, NewOutgoing, OutgoingKind, StagedFile};

use super::*;

/// A world in a temporary directory: Saturday, 15:00 in Berlin, chat 7 asks with message 41.
pub(super) struct Scene {
    pub(super) world: World,
    dir: tempfile::TempDir,
}

impl Scene {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let world = World {
            cycle: CycleFacts {
                id: "20261121T140000Z-812".to_owned(),
                model: "offline".to_owned(),
                is_stand_in: false,
                assignment: None,
                taint: None,
                replies: 0,
            },
            clock: LocalClock {
                now: parse_time("2026-11-21T14:00:00Z").unwrap(),
                tz: "Europe/Berlin".parse::<Tz>().unwrap(),
            },
            conversation: ChatSnapshot {
                chat: Some(Chat { id: ChatRef::from_telegram(7), thread_id: Some(3), reply_to: Some(100) }),
                is_local: false,
                other_local_chats: Vec::new(),
                open_messages: vec![41],
                own_words: Vec::new(),
                exchanges: Vec::new(),
                attachments: Attachments { dir: dir.path().to_owned(), files: Vec::new(), ..Attachments::default() },
                undoable: Vec::new(),
                last_undoable: None,
                shown_tasks: Vec::new(),
            },
            memory: MemorySnapshot {
                documents: Documents::new(dir.path(), Vec::new()),
                index: reveille_index::IndexPlace::new(dir.path().join("index.db"), dir.path().join("messages.db")),
                meaning: reveille_index::embed::Meaning::default(),
                skills: Vec::new(),
                reminders: Vec::new(),
            },
            means: Capabilities {
                about: crate::about::About::default(),
                autonomy: reveille_config::Autonomy::Smart,
                rules: reveille_policy::Rules::default(),
                shelter: std::rc::Rc::new(assumed_shelter(std::path::Path::new(""))),
                catalogue: std::rc::Rc::new(Catalogue::new(|| {
                    Registry::for_thinking_model().filter_visible(ToolView::Owner).catalogue()
                })),
            },
            unasked: UnaskedLimits {
                owner_chat: ChatRef::from_telegram(7),
                told_keys: BTreeSet::new(),
                told_today: 0,
                tell_per_day: 3,
                quiet_hours: None,
                unwoken: None,
            },
        };
        Self { world, dir }
    }

    /// Adds a file to the memory.
    pub(super) fn with(self, path: &str, text: &str) -> Self {
        let full = self.dir.path().join(path);
        std::fs::create_dir_all(full.parent().unwrap()).unwrap();
        std::fs::write(full, text).unwrap();
        self
    }

    pub(super) fn path(&self, path: &str) -> std::path::PathBuf {
        self.dir.path().join(path)
    }

    pub(super) fn call(&self, name: &str, input: &Value) -> Outcome {
        Registry::for_offline_model().call(name, &input.to_string(), &self.world)
    }

    #[track_caller]
    pub(super) fn done(&self, name: &str, input: &Value) -> Done {
        self.call(name, input).unwrap_or_else(|refusal| panic!("{refusal}"))
    }

    /// The refusal's text.
    #[track_caller]
    pub(super) fn refused(&self, name: &str, input: &Value) -> String {
        match self.call(name, input) {
            Err(refusal) => refusal.to_string(),
            Ok(done) => panic!("{done:?}"),
        }
    }

    /// Applies a call's file changes, as the cycle would.
    #[track_caller]
    pub(super) fn act(&mut self, name: &str, input: &Value) -> Done {
        let done = self.done(name, input);
        for change in &done.changes {
            match change {
                Change::File(file) => self.world.memory.documents.apply(file),
                Change::ShowTasks { tasks, .. } => self.world.conversation.shown_tasks.clone_from(tasks),
                _ => {}
            }
        }
        done
    }
}

/// The files a call would write.
pub(super) fn files(done: &Done) -> Vec<&StagedFile> {
    done.changes
        .iter()
        .filter_map(|change| match change {
            Change::File(file) => Some(file),
            _ => None,
        })
        .collect()
}

/// The message a call would send.
#[track_caller]
pub(super) fn sent(done: &Done) -> &NewOutgoing {
    done.changes
        .iter()
        .find_map(|change| match change {
            Change::Send(message) => Some(message),
            _ => None,
        })
        .unwrap()
}

/// A sandbox that counts as available but confines nothing: no program can be started in it.
fn assumed_shelter(scratch: &std::path::Path) -> reveille_sandbox::exec::Shelter {
    let confinement = reveille_sandbox::Confinement { work_dir: scratch.to_owned(), ..Default::default() };
    reveille_sandbox::exec::Shelter::for_sandbox(
        reveille_sandbox::Sandbox::Seatbelt { program: "/nowhere".into() },
        confinement,
    )
}
