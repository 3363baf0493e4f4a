//! The committed memory as the asking chat may see it. The owner's chat sees everything. Another chat sees its own parts
//! and the shared ones.

use std::collections::BTreeSet;

use reveille_base::types::ChatRef;
use reveille_git::{Committed, CommittedFile, RepoError};
use reveille_memory::{
    CLAUDE, is_steering,
    view::{self, View},
};

/// The last commit of the memory, as one chat may see it.
pub(super) struct Seen<'a> {
    memory: &'a Committed,
    view: Option<View>,
}

impl<'a> Seen<'a> {
    /// Opens the view of a chat. It is unlimited if the standing orders let all chats see everything.
    pub(super) fn for_chat(memory: &'a Committed, chat: ChatRef, owner_chat: ChatRef) -> Result<Self, RepoError> {
        let foreign = view::foreign_chat(Some(chat), owner_chat);
        let is_shared = || Ok::<_, RepoError>(memory.read(CLAUDE)?.is_some_and(|orders| view::is_shared(&orders)));
        let view = match foreign {
            Some(chat) if !is_shared()? => Some(View::for_chat(chat)),
            _ => None,
        };
        Ok(Self { memory, view })
    }

    /// Reads a document. `None` if it is missing or belongs to another chat.
    pub(super) fn read_document(&self, path: &str) -> Result<Option<String>, RepoError> {
        let Some(view) = self.view else { return self.memory.read(path) };
        let Some(kept_at) = view.find_path(path) else { return Ok(None) };
        Ok(self.memory.read(&kept_at)?.and_then(|text| view.find_visible_text(path, &text)))
    }

    /// Returns the chat to which the view is limited.
    pub(super) fn reader(&self) -> Option<ChatRef> {
        self.view.map(|view| view.chat())
    }

    /// Returns the committed Markdown files below `memory/`, whole and with their paths, for a search that checks
    /// access itself.
    pub(super) fn read_texts(&self) -> Result<Vec<(String, String)>, RepoError> {
        let files = self.memory.list_markdown()?.into_iter().filter(|file| file.path.starts_with("memory/"));
        let texts = files.map(|file| Ok(self.memory.read(&file.path)?.map(|text| (file.path, text))));
        texts.filter_map(Result::transpose).collect()
    }

    /// Converts a line number of the whole document to one of the chat's view.
    pub(super) fn to_view_line(&self, path: &str, line: usize, texts: &[(String, String)]) -> usize {
        let Some((view, kept_at)) = self.view.and_then(|view| Some((view, view.find_path(path)?))) else { return line };
        let whole = texts.iter().find(|(path, _)| **path == *kept_at);
        whole.map_or(line, |(_, text)| view.find_visible_line(path, text, line))
    }

    /// Lists the Markdown files under the names that the chat sees, with the sizes of the visible parts. Files that
    /// steer the model apply in each chat, but only the owner may look through them.
    pub(super) fn list_markdown(&self) -> Result<Vec<CommittedFile>, RepoError> {
        let files = self.memory.list_markdown()?;
        let Some(view) = self.view else { return Ok(files) };
        let paths: BTreeSet<String> = files.into_iter().map(|file| file.path).collect();
        let names = view.list_documents(&paths).into_iter().filter(|path| !is_steering(path));
        let listed =
            names.map(|path| Ok(self.read_document(&path)?.map(|text| CommittedFile { path, bytes: text.len() })));
        listed.filter_map(Result::transpose).collect()
    }
}
