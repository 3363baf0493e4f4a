//! `wake import`: takes the content of another assistant or a folder of notes into the memory as untrusted text.
//!
//! [`source`] opens a folder or an archive within limits, and `recognise` determines its kind. A reader per kind (`chatgpt`, `claude`,
//! `notes`, `markdown_agent`, `json_agent`) returns [`found::FoundContent`] as values. [`plan`] compares these with the memory and with the
//! record of earlier imports, and [`carry_out`] makes one commit in the person's name. Imported facts, orders and skills have no effect
//! until the person confirms them ([`reveille_memory::imported`]).

pub mod account;
#[cfg(test)]
mod any_json;
mod boxes;
mod chatgpt;
mod claude;
mod conversation;
mod encoding;
mod export;
pub mod found;
mod json_agent;
mod markdown_agent;
mod marks;
mod names;
mod notes;
pub mod plan;
mod recognise;
mod repair;
pub mod source;
mod stores;
mod thread;
mod zip_file;
mod zip_name;

use std::path::Path;

use chrono::{DateTime, Utc};

use reveille_account::provenance::{
    ProvenanceError,
    hand::{PersonSession, PersonsCommit},
};
use reveille_base::{redact::Redactor, zone::Tz};
use reveille_git::Repo;

use self::{
    found::FoundContent,
    plan::{ImportPlan, MemoryReader},
    source::ImportSource,
};

/// The kind of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImportKind {
    /// An assistant with its memory in Markdown: memory/*.md, claude.md, .env.
    MarkdownAgent,
    /// An assistant with its memory in JSON: knowledge.json, reminders.json, conversation_log.jsonl.
    JsonAgent,
    /// A folder of Markdown notes.
    Notes,
    /// ChatGPT's export.
    Chatgpt,
    /// Claude's export.
    Claude,
}

impl ImportKind {
    /// Returns the name used in paths and with `--as`.
    pub fn name(self) -> &'static str {
        match self {
            Self::MarkdownAgent => "markdown-agent",
            Self::JsonAgent => "json-agent",
            Self::Notes => "notes",
            Self::Chatgpt => "chatgpt",
            Self::Claude => "claude",
        }
    }

    /// Returns a description for people.
    pub fn describe(self) -> &'static str {
        match self {
            Self::MarkdownAgent => "an assistant with a memory in Markdown",
            Self::JsonAgent => "an assistant with a memory in JSON",
            Self::Notes => "a folder of Markdown notes",
            Self::Chatgpt => "ChatGPT's export",
            Self::Claude => "Claude's export",
        }
    }
}

/// The reason nothing was imported, worded for the person.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The source can't be read.
    #[error("{what} can't be read: {why}. Nothing was imported.")]
    Unreadable {
        /// The unreadable thing.
        what: String,
        /// The cause.
        why: String,
    },
    /// The source is refused in this form.
    #[error("{0} Nothing was imported.")]
    Refused(String),
    /// The memory or the database failed.
    #[error(transparent)]
    Memory(#[from] ProvenanceError),
}

impl ImportError {
    fn unreadable(what: impl Into<String>, why: impl std::fmt::Display) -> Self {
        Self::Unreadable { what: what.into(), why: why.to_string() }
    }
}

/// The redactor, time zone and time that an import needs.
#[derive(Clone, Copy)]
pub struct ImportTools<'a> {
    /// Masks the secrets of this assistant's own settings.
    pub redactor: &'a Redactor,
    /// The person's time zone.
    pub tz: Tz,
    /// The current time.
    pub now: DateTime<Utc>,
}

/// Reads a source without writing. `kind` is the person's choice.
///
/// # Errors
/// The source can't be read, isn't recognised, or is refused.
pub fn read_source(
    path: &Path,
    kind: Option<ImportKind>,
    tools: ImportTools<'_>,
) -> Result<(ImportKind, FoundContent), ImportError> {
    let source = ImportSource::open(path)?;
    let kind = match kind {
        Some(kind) => kind,
        None => recognise::detect_kind(&source)?,
    };
    let mut found = match kind {
        ImportKind::MarkdownAgent => markdown_agent::read(&source)?,
        ImportKind::JsonAgent => json_agent::read(&source, tools.tz)?,
        ImportKind::Notes => notes::read(&source)?,
        ImportKind::Chatgpt => chatgpt::read(&source, tools.tz)?,
        ImportKind::Claude => claude::read(&source, tools.tz)?,
    };
    found.left_out.extend(source.left_out().iter().cloned());
    // The notes of the old assistant are the likeliest place for its secrets.
    let olds = Redactor::new(&found.secrets);
    // fault: old-assistants-secrets-come
    found.mask_secrets(&|text| tools.redactor.redact(&olds.redact(text)));
    Ok((kind, found))
}

/// Plans an import without writing.
///
/// # Errors
/// The memory can't be read.
pub fn plan_import(
    repo: &Repo,
    kind: ImportKind,
    found: &FoundContent,
    tools: ImportTools<'_>,
) -> Result<ImportPlan, ImportError> {
    Ok(plan::build_plan(kind, found, &MemoryReader { repo }, tools.now, tools.tz).map_err(ProvenanceError::from)?)
}

/// Carries out an import, as one commit in the person's name.
///
/// # Errors
/// [`ImportError::Refused`] if the memory has changes that can't be committed first and would be lost.
pub fn carry_out(
    session: &mut PersonSession<'_>,
    kind: ImportKind,
    found: &FoundContent,
    tools: ImportTools<'_>,
) -> Result<(ImportPlan, Option<PersonsCommit>), ImportError> {
    let edits = session.commit_edits()?;
    let plan = plan_import(&session.repo, kind, found, tools)?;
    if plan.changes.is_empty() {
        return Ok((plan, None));
    }
    if let Some(left) = edits.left_alone.iter().find(|left| plan.changes.iter().any(|change| change.path == left.path))
    {
        return Err(ImportError::Refused(format!(
            "{} has changes that I can't commit, because it {}. They would be lost.",
            left.path, left.why
        )));
    }
    let message = plan.render_commit_message();
    let past_act = message.lines().next().unwrap_or_default().replacen("Import ", "imported ", 1);
    let mut commit = session.commit_step(&plan.changes, &message, &past_act)?;
    commit.before.splice(0..0, edits.files);
    Ok((plan, Some(commit)))
}
