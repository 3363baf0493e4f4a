//! Plans an import's changes in the memory. Pure except for reading. A record beside the imported documents lists the hashes of everything
//! imported before, so that nothing is imported twice, even if the person has since confirmed, moved or deleted it.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, NaiveDateTime, Utc};
use ring::digest::{SHA256, digest};

use reveille_base::{
    clock::parse_time,
    random::format_hex,
    words::{format_count, one_line, truncate_text},
    zone::Tz,
};
use reveille_git::{FileChange, Repo, RepoError};
use reveille_memory::{
    ACTIVE, BACKLOG, IMPORTED_DIR, SEMANTIC_MEMORY,
    facts::{MAX_FACT_CHARS, NewFact},
    imported,
    tasks::{MAX_BODY_CHARS, MAX_TITLE_CHARS, TaskDraft, TaskError, TaskList},
};

use super::{
    ImportKind,
    account::{ImportAccount, SetReminder},
    found::{CUT_SHORT, DocumentKind, FoundContent, FoundDocument, FoundReminder, FoundTask, SkippedItem},
};

/// The path of the record of earlier imports. It isn't Markdown, which hides it from searches.
pub const RECORD: &str = "memory/imported/record.txt";
/// The record's first line.
const RECORD_HEAD: &str = "What wake import has imported, one item per line: a hash and a description. It prevents a second import of the same.";
/// The maximum number of documents per import. The next import takes the rest.
const MAX_DOCUMENTS: usize = 5_000;
/// The maximum total size of these documents, in bytes.
const MAX_DOCUMENT_BYTES: usize = 64 << 20;
/// The maximum number of facts per import.
const MAX_FACTS: usize = 2_000;
/// The maximum number of tasks per import, including reminders.
const MAX_TASKS: usize = 500;
/// The folder of logs, whose documents are named only by their month.
const OF_LOGS: &str = "json-agent/";
/// The maximum length of a time in a task's title, in characters.
const MAX_DUE_CHARS: usize = 40;
/// The length of a stored hash, in characters.
const HASH_CHARS: usize = 32;

const EDITED: &str = "it was imported before, and edited or moved here since: yours stays";
const NOT_OURS: &str = "a document of yours has this name";
const BEYOND: &str = "too much for one import: run it again to continue";
const EMPTY_FACT: &str = "a fact that says nothing";
const UNNAMED_TASK: &str = "a task without a title";

/// Read access to the memory.
pub(super) struct MemoryReader<'a> {
    pub(super) repo: &'a Repo,
}

/// The planned changes.
#[derive(Debug, Default)]
pub struct ImportPlan {
    /// The changed documents.
    pub changes: Vec<FileChange>,
    /// The report for the person.
    pub account: ImportAccount,
}

impl ImportPlan {
    /// Returns the commit message, which contains no names or titles from the source.
    pub fn render_commit_message(&self) -> String {
        let what = self.account.describe_counts();
        let updated = match self.account.updated {
            0 => String::new(),
            updated => format!("\n\n{} continued since the last import.", format_count(updated, "document")),
        };
        let from = self.account.kind.map_or("", ImportKind::name);
        match what.as_str() {
            "" => format!("Import what is new from {from}{updated}"),
            _ => format!("Import {what} from {from}{updated}"),
        }
    }
}

/// Returns the hash of a text.
pub(super) fn hash(text: &str) -> String {
    let mut hash = format_hex(digest(&SHA256, text.as_bytes()).as_ref());
    hash.truncate(HASH_CHARS);
    hash
}

/// The record of earlier imports.
#[derive(Debug, Default)]
struct ImportRecord {
    hashes: BTreeSet<String>,
    /// The last hash of each document.
    paths: BTreeMap<String, String>,
    lines: String,
}

impl ImportRecord {
    fn parse(text: &str) -> Self {
        let mut record = Self::default();
        for (hash, what) in text.lines().skip(1).filter_map(|line| line.split_once(' ')) {
            record.hashes.insert(hash.to_owned());
            record.paths.insert(what.to_owned(), hash.to_owned());
        }
        record
    }

    /// Records an item.
    fn add(&mut self, hash: String, what: &str) {
        if self.hashes.insert(hash.clone()) {
            self.lines.push_str(&format!("{hash} {what}\n"));
            self.paths.insert(what.to_owned(), hash);
        }
    }
}

/// Plans the import.
///
/// # Errors
/// The memory can't be read.
pub(super) fn build_plan(
    kind: ImportKind,
    found: &FoundContent,
    memory: &MemoryReader<'_>,
    now: DateTime<Utc>,
    tz: Tz,
) -> Result<ImportPlan, RepoError> {
    let recorded = memory.repo.read_work_tree(RECORD)?;
    let mut draft = PlanDraft {
        record: ImportRecord::parse(recorded.as_deref().unwrap_or_default()),
        plan: ImportPlan::default(),
        left_out: found.left_out.clone(),
        now,
        tz,
    };
    draft.plan.account.kind = Some(kind);
    draft.plan.account.settings = found.settings.clone();
    draft.plan.account.masked = found.masked;
    draft.plan_documents(found, memory)?;
    draft.plan_facts(found, memory)?;
    draft.plan_tasks(found, memory)?;
    let PlanDraft { record, mut plan, left_out, .. } = draft;
    if !record.lines.is_empty() {
        let before = recorded.clone().unwrap_or_else(|| format!("{RECORD_HEAD}\n"));
        let content = Some(format!("{before}{}", record.lines));
        plan.changes.push(FileChange { path: RECORD.to_owned(), base: recorded, content });
    }
    plan.account.group_left_out(left_out);
    Ok(plan)
}

struct PlanDraft {
    record: ImportRecord,
    plan: ImportPlan,
    left_out: Vec<SkippedItem>,
    now: DateTime<Utc>,
    tz: Tz,
}

impl PlanDraft {
    fn leave_out(&mut self, what: &str, why: &'static str) {
        self.left_out.push(SkippedItem { what: what.to_owned(), why, times: 1 });
    }

    /// Returns a document's path, and the hash of the earlier import at that path. Only a continued conversation replaces another document.
    /// Different documents with one name get separate names.
    fn choose_path(&self, document: &FoundDocument, memory: &MemoryReader<'_>) -> (String, Option<String>) {
        // All logs use the same file names for their months, so this text must begin with the earlier one.
        let is_by_month = document.path.starts_with(OF_LOGS);
        let begins_with_earlier = |place: &str, earlier_hash: &str| {
            let there = memory.repo.read_work_tree(&format!("{IMPORTED_DIR}/{place}")).ok().flatten();
            there.is_none_or(|there| hash(&there) != earlier_hash || document.text.starts_with(&there))
        };
        let may_replace = |place: &str, earlier_hash: &str| {
            document.kind == DocumentKind::Conversation && (!is_by_month || begins_with_earlier(place, earlier_hash))
        };
        let stem = document.path.trim_end_matches(".md");
        let mut place = document.path.clone();
        let mut n = 2;
        loop {
            match self.record.paths.get(&place) {
                Some(earlier_hash) if !may_replace(&place, earlier_hash) => place = format!("{stem}-{n}.md"),
                earlier_hash => {
                    let earlier_hash = earlier_hash.cloned();
                    return (place, earlier_hash);
                }
            }
            n += 1;
        }
    }

    /// Plans the documents, newest first.
    fn plan_documents(&mut self, found: &FoundContent, memory: &MemoryReader<'_>) -> Result<(), RepoError> {
        let mut documents: Vec<_> = found.documents.iter().collect();
        documents.sort_by(|one, other| other.day.cmp(&one.day).then_with(|| one.path.cmp(&other.path)));
        let (mut taken, mut bytes) = (0, 0);
        for document in documents {
            let hash = hash(&document.text);
            if self.record.hashes.contains(&hash) {
                self.plan.account.known += 1;
                continue;
            }
            if taken == MAX_DOCUMENTS || bytes + document.text.len() > MAX_DOCUMENT_BYTES {
                self.leave_out(&document.path, BEYOND);
                continue;
            }
            let (place, earlier_hash) = self.choose_path(document, memory);
            let path = format!("{IMPORTED_DIR}/{place}");
            let base = match memory.repo.check_writable(&path) {
                Ok(()) => memory.repo.read_work_tree(&path)?,
                Err(error) if error.is_file_fault() => {
                    self.leave_out(&place, NOT_OURS);
                    continue;
                }
                Err(error) => return Err(error),
            };
            let is_unedited = base.as_deref().map(self::hash) == earlier_hash;
            if !is_unedited {
                self.leave_out(&place, if earlier_hash.is_some() { EDITED } else { NOT_OURS });
                continue;
            }
            (taken, bytes) = (taken + 1, bytes + document.text.len());
            self.record.add(hash, &place);
            let account = &mut self.plan.account;
            let counts = &mut account.new;
            match document.kind {
                _ if earlier_hash.is_some() => account.updated += 1,
                DocumentKind::Note => counts.notes += 1,
                DocumentKind::Conversation => counts.conversations += 1,
                DocumentKind::Orders => counts.orders += 1,
                DocumentKind::Skill => counts.skills += 1,
            }
            account.documents.push(path.clone());
            self.plan.changes.push(FileChange { path, base, content: Some(document.text.clone()) });
        }
        Ok(())
    }

    fn plan_facts(&mut self, found: &FoundContent, memory: &MemoryReader<'_>) -> Result<(), RepoError> {
        let mut new = Vec::new();
        for fact in &found.facts {
            let text = one_line(&fact.text);
            let hash = hash(&format!("fact {}", text.to_lowercase()));
            if !text.chars().any(char::is_alphanumeric) {
                self.leave_out(&fact.from, EMPTY_FACT);
            } else if self.record.hashes.contains(&hash) {
                self.plan.account.known += 1;
            } else if new.len() == MAX_FACTS {
                self.leave_out(&text, BEYOND);
            } else {
                self.record.add(hash, "a fact");
                if text.chars().count() > MAX_FACT_CHARS {
                    self.leave_out(&text, CUT_SHORT);
                }
                new.push(NewFact { text, origin: imported::format_origin(&fact.from, self.now) });
            }
        }
        if new.is_empty() {
            return Ok(());
        }
        memory.repo.check_writable(SEMANTIC_MEMORY)?;
        let base = memory.repo.read_work_tree(SEMANTIC_MEMORY)?;
        let text = base.clone().unwrap_or_default();
        let (content, known) = imported::with_facts(&text, &new);
        self.plan.account.known += known;
        self.plan.account.new.facts = new.len() - known;
        if content != text {
            self.plan.changes.push(FileChange { path: SEMANTIC_MEMORY.to_owned(), base, content: Some(content) });
        }
        Ok(())
    }

    /// Plans tasks and reminders: both go to the backlog.
    fn plan_tasks(&mut self, found: &FoundContent, memory: &MemoryReader<'_>) -> Result<(), RepoError> {
        let base = memory.repo.read_work_tree(BACKLOG)?;
        let before = base.clone().unwrap_or_default();
        let active = TaskList::parse(&memory.repo.read_work_tree(ACTIVE)?.unwrap_or_default()).0;
        let (day, local) =
            (self.now.with_timezone(&self.tz).date_naive(), self.now.with_timezone(&self.tz).naive_local());
        let mut text = before.clone();
        let mut taken = 0;
        let tasks = found.tasks.iter().map(|task| (task.clone(), false));
        let reminders = found.reminders.iter().map(|reminder| (to_waiting_task(reminder), true));
        for (task, is_reminder) in tasks.chain(reminders) {
            let FoundTask { draft, due, from } = task;
            let hash = hash(&format!("task {} {}", one_line(&draft.title), due.as_deref().unwrap_or_default()));
            if self.record.hashes.contains(&hash) || active.find_titled(&draft.title).is_some() {
                self.plan.account.known += 1;
                continue;
            }
            if taken == MAX_TASKS {
                self.leave_out(&draft.title, BEYOND);
                continue;
            }
            let whole = with_full_text(&draft);
            let with =
                |draft: &TaskDraft| imported::with_task(&TaskList::parse(&text).0, draft, due.as_deref(), &from, day);
            let added = match with(&whole) {
                // A reminder with the same text but another time is a different reminder.
                Err(TaskError::Exists { .. }) if is_reminder && due.is_some() => {
                    with(&with_time(&whole, due.as_deref().unwrap_or_default()))
                }
                added => added,
            };
            match added {
                Ok(with) => text = with,
                Err(TaskError::Exists { .. }) => {
                    self.plan.account.known += 1;
                    continue;
                }
                Err(_) => {
                    self.leave_out(&from, UNNAMED_TASK);
                    continue;
                }
            }
            taken += 1;
            if whole.body.trim().chars().count() > MAX_BODY_CHARS {
                self.leave_out(&draft.title, CUT_SHORT);
            }
            self.record.add(hash, if is_reminder { "a reminder" } else { "a task" });
            if is_reminder {
                self.plan.account.new.reminders += 1;
                let at = due.as_deref().and_then(|due| local_time(due, self.tz)).filter(|at| *at > local);
                self.plan.account.reminders.extend(at.map(|at| SetReminder::new(&draft.title, at)));
            } else {
                self.plan.account.new.tasks += 1;
            }
        }
        if text != before {
            memory.repo.check_writable(BACKLOG)?;
            self.plan.changes.push(FileChange { path: BACKLOG.to_owned(), base, content: Some(text) });
        }
        Ok(())
    }
}

/// Converts a reminder to a waiting task.
fn to_waiting_task(reminder: &FoundReminder) -> FoundTask {
    let FoundReminder { text, due, from } = reminder;
    let draft = TaskDraft { title: text.clone(), status: Some("waiting".to_owned()), ..TaskDraft::default() };
    FoundTask { draft, due: Some(due.clone()).filter(|due| !due.is_empty()), from: from.clone() }
}

/// Returns the task with its full text in the body, if that is too long for a title.
fn with_full_text(draft: &TaskDraft) -> TaskDraft {
    if one_line(&draft.title).chars().count() <= MAX_TITLE_CHARS {
        return draft.clone();
    }
    let body = format!("{}\n\n{}", draft.title.trim(), draft.body);
    TaskDraft { body: body.trim_end().to_owned(), ..draft.clone() }
}

/// Returns the task with the time in its title.
fn with_time(draft: &TaskDraft, due: &str) -> TaskDraft {
    let due = truncate_text(&one_line(due), MAX_DUE_CHARS);
    let most = MAX_TITLE_CHARS.saturating_sub(due.chars().count() + 3);
    TaskDraft { title: format!("{} ({due})", truncate_text(&one_line(&draft.title), most)), ..draft.clone() }
}

/// Converts a due time, possibly with an offset, to local time.
fn local_time(due: &str, tz: Tz) -> Option<NaiveDateTime> {
    parse_civil_time(due).or_else(|| parse_time(due).map(|at| at.with_timezone(&tz).naive_local()))
}

/// Parses a local time in the formats used by these assistants.
fn parse_civil_time(text: &str) -> Option<NaiveDateTime> {
    let formats = ["%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S%.f"];
    formats.iter().find_map(|format| NaiveDateTime::parse_from_str(text.trim(), format).ok())
}
