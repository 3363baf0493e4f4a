//! `wake memory restore`: brings back a document, some of its lines, or the whole memory from a point in time, as a commit in
//! the person's name. The present content is committed first, so that nothing is lost.

use reveille_base::words::format_local_time;
use reveille_git::{FileChange, Repo};
use reveille_memory::{DocKind, forgetting::SoughtWords, giving_back::restore_lines};

use super::{
    ProvenanceError,
    hand::{PersonSession, PersonsCommit},
    point::{DayEdge, Point, WallClock, find_point},
};

/// The content to restore.
#[derive(Debug, Clone, Copy)]
pub enum WantedBack<'a> {
    /// A document.
    Document {
        /// The path of the document, or the end of the path.
        path: &'a str,
        /// The point in time; `None` for the state before the last change.
        at: Option<&'a str>,
        /// Only the lines with these words.
        lines: Option<&'a SoughtWords>,
    },
    /// The whole memory.
    All {
        /// The point in time.
        at: &'a str,
    },
}

/// A planned restoration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivingBack {
    /// The point in time.
    pub point: Point,
    /// The changes of documents.
    pub changes: Vec<FileChange>,
    /// The restored lines, if only some are wanted.
    pub lines: Vec<String>,
}

/// Plans a restoration without writing anything.
pub fn plan(repo: &Repo, wanted: WantedBack<'_>, wall: WallClock) -> Result<GivingBack, ProvenanceError> {
    match wanted {
        WantedBack::All { at } => {
            let point = find_point(repo, at, DayEdge::End, wall)?;
            let mut changes = Vec::new();
            let paths = repo.history().list_markdown_at(point.commit.id)?;
            for path in paths.union(&repo.history().all_markdown()?) {
                changes.extend(find_change(repo, &point, path)?);
            }
            Ok(GivingBack { point, changes, lines: Vec::new() })
        }
        WantedBack::Document { path, at, lines } => {
            let point = match at {
                Some(at) => find_point(repo, at, DayEdge::End, wall)?,
                None => find_previous_point(repo, path, wall)?,
            };
            let path = find_document(repo, &point, path)?;
            let Some(sought) = lines else {
                let changes = find_change(repo, &point, &path)?.into_iter().collect();
                return Ok(GivingBack { point, changes, lines: Vec::new() });
            };
            let old = repo.history().read_text_at(point.commit.id, &path)?.unwrap_or_default();
            let now = repo.read_work_tree(&path)?;
            let given = restore_lines(DocKind::from_path(&path), &old, now.as_deref().unwrap_or_default(), sought);
            if given.lines.is_empty() && !sought.is_found_in(&old) {
                return Err(ProvenanceError::Refused(format!(
                    "{path} had no line with these words at {}.",
                    point.name
                )));
            }
            let changes = if given.lines.is_empty() {
                Vec::new()
            } else {
                vec![FileChange { path, base: now, content: Some(given.text) }]
            };
            Ok(GivingBack { point, changes, lines: given.lines })
        }
    }
}

/// Restores the content in one commit in the person's name.
///
/// # Errors
/// [`ProvenanceError::Refused`] if the present content can't be committed and would be lost.
pub fn carry_out(
    session: &mut PersonSession<'_>,
    wanted: WantedBack<'_>,
    wall: WallClock,
) -> Result<(GivingBack, Option<PersonsCommit>), ProvenanceError> {
    let edits = session.commit_edits()?;
    let restoration = plan(&session.repo, wanted, wall)?;
    if restoration.changes.is_empty() {
        return Ok((restoration, None));
    }
    if let Some(left) =
        edits.left_alone.iter().find(|left| restoration.changes.iter().any(|change| change.path == left.path))
    {
        return Err(ProvenanceError::Refused(format!(
            "{} has changes that I can't commit, because it {}. They would be lost, so nothing was changed.",
            left.path, left.why
        )));
    }
    for change in &restoration.changes {
        session.repo.check_writable(&change.path)?;
    }
    let what = match restoration.changes.as_slice() {
        [change] if restoration.lines.is_empty() => change.path.clone(),
        [change] => format!("lines of {}", change.path),
        many => format!("{} files", many.len()),
    };
    let subject =
        format!("Restore {what}\n\nAs of {}, commit {}.", restoration.point.name, restoration.point.commit.id);
    let mut made = session.commit_step(&restoration.changes, &subject, &format!("restored {what}"))?;
    made.before.splice(0..0, edits.files);
    Ok((restoration, Some(made)))
}

fn find_change(repo: &Repo, point: &Point, path: &str) -> Result<Option<FileChange>, ProvenanceError> {
    let (old, now) = (repo.history().read_text_at(point.commit.id, path)?, repo.read_work_tree(path)?);
    Ok((old != now).then(|| FileChange { path: path.to_owned(), base: now, content: old }))
}

/// The point before the last commit that changed a document.
fn find_previous_point(repo: &Repo, path: &str, wall: WallClock) -> Result<Point, ProvenanceError> {
    let missing = || ProvenanceError::Refused(format!("The memory has no document {path:?} with an earlier version."));
    let head = repo.head()?.ok_or_else(missing)?;
    let here =
        Point { commit: repo.history().find_commit(&head.to_string())?.ok_or_else(missing)?, name: String::new() };
    let full = find_document(repo, &here, path)?;
    // Uncommitted edits are the last change.
    if repo.history().read_text_at(head, &full)? != repo.read_work_tree(&full)? {
        let name = format!("the last commit ({})", format_local_time(here.commit.at, wall.tz));
        return Ok(Point { name, ..here });
    }
    let last = repo.history().last_change(&full)?.ok_or_else(missing)?;
    let Some(before) = repo.history().find_parent(last.id)? else {
        return Err(ProvenanceError::Refused(format!("{full} has never changed, so there is nothing to restore.")));
    };
    let commit = repo.history().find_commit(&before.to_string())?.ok_or_else(missing)?;
    let name = format!("before “{}” ({})", last.subject, format_local_time(last.at, wall.tz));
    Ok(Point { commit, name })
}

/// Finds the document with this path or end of a path, now or at the point.
fn find_document(repo: &Repo, point: &Point, path: &str) -> Result<String, ProvenanceError> {
    let mut all = repo.history().list_markdown_at(point.commit.id)?;
    all.extend(repo.history().all_markdown()?);
    let path = path.trim_start_matches("./");
    if all.contains(path) {
        return Ok(path.to_owned());
    }
    let file = if path.ends_with(".md") { path.to_owned() } else { format!("{path}.md") };
    let ends = |known: &&String| **known == file || known.ends_with(&format!("/{file}"));
    let found: Vec<&String> = all.iter().filter(ends).collect();
    match found.as_slice() {
        [only] => Ok((*only).clone()),
        [] => Err(ProvenanceError::Refused(format!("The memory has no document {path:?}, now or then."))),
        many => {
            let names: Vec<&str> = many.iter().map(|name| name.as_str()).collect();
            Err(ProvenanceError::Refused(format!(
                "{path:?} could be {}.",
                reveille_base::words::join_alternatives(&names)
            )))
        }
    }
}
