//! The committed memory as the asking chat may see it: the owner's sees all, another chat its own and what is for all.

use std::collections::BTreeSet;

use reveille_base::types::ChatRef;
use reveille_git::{Committed, CommittedFile, RepoError};
use reveille_memory::{
    CLAUDE, steers,
    view::{self, View},
};

/// The last commit of the memory, through the eyes of one chat.
pub(super) struct Seen<'a> {
    memory: &'a Committed,
    view: Option<View>,
}

impl<'a> Seen<'a> {
    /// For a chat, unless the standing orders let all chats see everything.
    pub(super) fn by(memory: &'a Committed, chat: ChatRef, owner_chat: ChatRef) -> Result<Self, RepoError> {
        let foreign = view::foreign_chat(Some(chat), owner_chat);
        let is_shared = || Ok::<_, RepoError>(memory.read(CLAUDE)?.is_some_and(|orders| view::is_shared(&orders)));
        let view = match foreign {
            Some(chat) if !is_shared()? => Some(View::of(chat)),
            _ => None,
        };
        Ok(Self { memory, view })
    }

    /// A document; `None` if it isn't there, or is another chat's.
    pub(super) fn read(&self, path: &str) -> Result<Option<String>, RepoError> {
        let Some(view) = self.view else { return self.memory.read(path) };
        let Some(kept_at) = view.path(path) else { return Ok(None) };
        Ok(self.memory.read(&kept_at)?.and_then(|text| view.seen(path, &text)))
    }

    /// The chat that it is limited to.
    pub(super) fn reader(&self) -> Option<ChatRef> {
        self.view.map(|view| view.chat())
    }

    /// Its Markdown files below `memory/` as they are committed, whole, by their paths: for a search that knows who may see what.
    pub(super) fn texts(&self) -> Result<Vec<(String, String)>, RepoError> {
        let files = self.memory.markdown()?.into_iter().filter(|file| file.path.starts_with("memory/"));
        let texts = files.map(|file| Ok(self.memory.read(&file.path)?.map(|text| (file.path, text))));
        texts.filter_map(Result::transpose).collect()
    }

    /// Which line of what the chat sees of a document a line of the whole is.
    pub(super) fn line(&self, path: &str, line: usize, texts: &[(String, String)]) -> usize {
        let Some((view, kept_at)) = self.view.and_then(|view| Some((view, view.path(path)?))) else { return line };
        let whole = texts.iter().find(|(path, _)| **path == *kept_at);
        whole.map_or(line, |(_, text)| view.line_shown(path, text, line))
    }

    /// Its Markdown files, under the names that the chat knows them by, with the size of what it sees of them. What steers the model
    /// holds in each chat, and is the owner's to look through.
    pub(super) fn markdown(&self) -> Result<Vec<CommittedFile>, RepoError> {
        let files = self.memory.markdown()?;
        let Some(view) = self.view else { return Ok(files) };
        let paths: BTreeSet<String> = files.into_iter().map(|file| file.path).collect();
        let names = view.list(&paths).into_iter().filter(|path| !steers(path));
        let listed = names.map(|path| Ok(self.read(&path)?.map(|text| CommittedFile { path, bytes: text.len() })));
        listed.filter_map(Result::transpose).collect()
    }
}
