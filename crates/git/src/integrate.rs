//! Brings the fetched commits into our branch, by fast-forward or by a merge commit, never by a rebase.
//!
//! If both sides changed the same lines of a text, the caller's merge decides. For other files the remote's version, which is the person's,
//! stays, and ours is kept beside it. An uncommitted file in the way stops the integration before anything changes.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use git2::{DiffFile, DiffOptions, Index, IndexEntry};

use reveille_memory::merge::ByHand;

use super::{
    Merge, Obstacle, Oid, RepoError, WAKE_EMAIL,
    advance::{self, FileMove, Move, StopAt},
    names::{self, Refused},
    same_name::SHARED_NAME,
    tree::{self, EXECUTABLE, FILE, Item, SUBMODULE},
    wake_signature,
};
use crate::areas::Remote;

/// The maximum number of versions kept beside one file.
const MAX_KEPT_BESIDE: usize = 100;

/// The relation of our branch to the remote's after integrating.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Integrated {
    /// There is no remote, or it lacks our branch.
    NoRemote,
    /// Both are at the same commit.
    UpToDate,
    /// We have commits that the remote lacks.
    Ahead {
        /// The number of commits.
        commits: usize,
    },
    /// Our branch moved forward to the remote's.
    FastForward {
        /// The commit before; `None` if the branch had no commit.
        from: Option<Oid>,
        /// The commit after.
        to: Oid,
    },
    /// The two branches were merged.
    Merged {
        /// The merge commit.
        commit: Oid,
        /// Files changed in the same place by both sides.
        conflicts: Vec<String>,
    },
    /// The remote's branch was reset to an earlier commit, has another history or is gone. Nothing was changed, and a push would be
    /// refused. A person decides: to follow the remote they reset our branch or merge the two; to undo its change they push.
    RewoundRemote {
        /// The reference that keeps the lost commits.
        rescue_ref: String,
    },
    /// One side's history was purged of some text, and the other still has the old line: nothing was changed. See
    /// [`Purge::old_line`](super::Purge::old_line).
    PurgedElsewhere,
}

impl Remote<'_> {
    /// Brings the last fetch into our branch.
    pub fn integrate(&self, now: DateTime<Utc>, merge: &Merge<'_>) -> Result<Integrated, RepoError> {
        self.0.finish_interrupted_move(merge)?;
        self.0.require_branch()?;
        self.0.retry_attempt(|| self.try_integrate(now, merge, StopAt::Never))
    }

    pub(super) fn try_integrate(
        &self,
        now: DateTime<Utc>,
        merge: &Merge<'_>,
        stop: StopAt,
    ) -> Result<Integrated, RepoError> {
        if let Some(rescue_ref) =
            self.find_lost_reference()?.filter(|_| !matches!(self.0.purge().old_line(), Ok(Some(_))))
        {
            return Ok(Integrated::RewoundRemote { rescue_ref });
        }
        let Some(theirs) = self.0.find_reference_id(&self.0.tracking_ref())?.filter(|_| self.0.has_remote()) else {
            return Ok(Integrated::NoRemote);
        };
        // This comes before any merge, which would bring back the purged text.
        if self.0.purge().old_line()?.is_some() {
            return Ok(Integrated::PurgedElsewhere);
        }
        self.require_names(theirs)?;
        let integrated = match self.0.head()? {
            Some(ours) if ours == theirs => Integrated::UpToDate,
            Some(ours) if self.0.contains(ours, theirs)? => {
                Integrated::Ahead { commits: self.0.git.graph_ahead_behind(ours, theirs)?.0 }
            }
            Some(ours) if !self.0.contains(theirs, ours)? => match self.merge_commit(ours, theirs, now, merge, stop) {
                Err(RepoError::Unrelated) => {
                    self.join_histories(ours, theirs, now, merge, stop)?.ok_or(RepoError::Unrelated)?
                }
                merged => merged?,
            },
            from => {
                self.move_to_commit(from, theirs, "pull: Fast-forward", merge, stop)?;
                Integrated::FastForward { from, to: theirs }
            }
        };
        self.record_remote_commit(theirs)?;
        self.clear_unjoined_mark(theirs)?;
        Ok(integrated)
    }

    /// Returns `true` if integrating the last fetch changes more than `max` files.
    pub fn has_large_fetch(&self, max: usize) -> Result<bool, RepoError> {
        let Some(theirs) = self.0.find_reference_id(&self.0.tracking_ref())? else { return Ok(false) };
        let base = self.0.head()?.and_then(|ours| self.0.git.merge_base(ours, theirs).ok());
        Ok(base != Some(theirs) && self.list_file_moves(base, theirs)?.len() > max)
    }

    fn merge_commit(
        &self,
        ours: Oid,
        theirs: Oid,
        now: DateTime<Utc>,
        merge: &Merge<'_>,
        stop: StopAt,
    ) -> Result<Integrated, RepoError> {
        let message = format!("Merge the remote's {}\n", self.0.branch);
        let (commit, conflicts) = self.merge_into(ours, ours, theirs, &message, now, merge, stop)?;
        Ok(Integrated::Merged { commit, conflicts })
    }

    /// Merges two commits, one of which is our branch's `tip`, and moves the branch to the merge. In a true conflict `persons` wins.
    /// Returns the merge and the files in conflict.
    #[expect(clippy::too_many_arguments, reason = "two sides, and what every merge needs")]
    pub(super) fn merge_into(
        &self,
        tip: Oid,
        own: Oid,
        persons: Oid,
        message: &str,
        now: DateTime<Utc>,
        merge: &Merge<'_>,
        stop: StopAt,
    ) -> Result<(Oid, Vec<String>), RepoError> {
        let base = match self.0.git.merge_base(own, persons) {
            Err(error) if error.code() == git2::ErrorCode::NotFound => return Err(RepoError::Unrelated),
            found => found?,
        };
        let (left, right) = (self.0.git.find_commit(own)?, self.0.git.find_commit(persons)?);
        let mut index = self.0.git.merge_commits(&left, &right, None)?;
        let by_hand = |path: &str| self.collect_hand_changes(path, base, own);
        let conflicts = self.settle_conflicts(&mut index, &by_hand, merge)?;
        self.merge_documents(&mut index, [base, persons, own], &conflicts, merge)?;
        let tree = index.write_tree_to(&self.0.git)?;
        let other = if tip == own { persons } else { own };
        let commit = self.0.commit_object(&wake_signature(now)?, message, tree, &[tip, other])?;
        let subject = message.lines().next().unwrap_or_default();
        self.move_to_commit(Some(tip), commit, &format!("merge: {subject}"), merge, stop)?;
        Ok((commit, conflicts))
    }

    /// Settles every conflict in a merged index; returns the files.
    fn settle_conflicts(
        &self,
        index: &mut Index,
        by_hand: &dyn Fn(&str) -> Result<ByHand, RepoError>,
        merge: &Merge<'_>,
    ) -> Result<Vec<String>, RepoError> {
        let conflicts = index.conflicts()?.collect::<Result<Vec<_>, _>>()?;
        let mut settled = BTreeSet::new();
        for conflict in conflicts {
            let sides = [&conflict.their, &conflict.our, &conflict.ancestor];
            let Some(first) = sides.into_iter().flatten().next() else {
                continue;
            };
            let path = path_from_entry(first)?;
            for name in sides.into_iter().flatten().map(path_from_entry).collect::<Result<BTreeSet<_>, _>>()? {
                index.conflict_remove(std::path::Path::new(&name))?;
            }
            let ours = conflict.our.as_ref();
            let joined = match (ours, &conflict.their) {
                (Some(ours), Some(theirs)) if ours.path == path.as_bytes() => {
                    let base = conflict.ancestor.as_ref().map(item_from_entry);
                    self.join_texts(
                        &path,
                        [base, Some(item_from_entry(theirs)), Some(item_from_entry(ours))],
                        &by_hand(&path)?,
                        merge,
                    )?
                }
                _ => None,
            };
            if joined.is_some() {
                tree::set_index_item(index, &path, joined)?;
            } else {
                tree::set_index_item(index, &path, conflict.their.as_ref().map(item_from_entry))?;
                if let Some(ours) = ours.filter(|ours| Some(ours.id) != conflict.their.as_ref().map(|their| their.id)) {
                    tree::set_index_item(
                        index,
                        &find_free_name(index, &path_from_entry(ours)?),
                        Some(item_from_entry(ours)),
                    )?;
                }
            }
            settled.insert(path);
        }
        Ok(settled.into_iter().collect())
    }

    /// Merges documents changed by both sides by their structure, even if they merge cleanly by line: the same task added in two places is
    /// no conflict of lines.
    fn merge_documents(
        &self,
        index: &mut Index,
        [base, persons, own]: [Oid; 3],
        settled: &[String],
        merge: &Merge<'_>,
    ) -> Result<(), RepoError> {
        let is_document = |path: &str| path.ends_with(".md") && !settled.iter().any(|settled| settled == path);
        let theirs: BTreeSet<String> = self
            .list_file_moves(Some(base), persons)?
            .into_iter()
            .map(|file| file.path)
            .filter(|path| is_document(path))
            .collect();
        for FileMove { path, .. } in self.list_file_moves(Some(base), own)? {
            if !theirs.contains(&path) {
                continue;
            }
            let entry = |commit| tree::find_item(&self.0.git, Some(commit), &path);
            let (Some(was), Some(theirs), Some(ours)) = (entry(base)?, entry(persons)?, entry(own)?) else { continue };
            let by_hand = self.collect_hand_changes(&path, base, own)?;
            if let Some(joined) = self.join_texts(&path, [Some(was), Some(theirs), Some(ours)], &by_hand, merge)? {
                tree::set_index_item(index, &path, Some(joined))?;
            }
        }
        Ok(())
    }

    /// Joins two texts by the caller's merge; `None` unless both are text.
    pub(super) fn join_texts(
        &self,
        path: &str,
        [base, theirs, ours]: [Option<Item>; 3],
        by_hand: &ByHand,
        merge: &Merge<'_>,
    ) -> Result<Option<Item>, RepoError> {
        let text = |item: Option<Item>| item.map_or(Ok(Some(String::new())), |item| self.read_item_text(item));
        let (Some(base), Some(persons), Some(own)) = (text(base)?, text(theirs)?, text(ours)?) else {
            return Ok(None);
        };
        let joined = merge(path, &base, &persons, &own, by_hand);
        let mode = theirs.map_or(FILE, |theirs| theirs.mode);
        Ok(Some(Item { id: self.0.git.blob(joined.as_bytes())?, mode }))
    }

    /// Collects the changes of people's commits to a file between two commits. A merge counts for the lines foreign to all its parents.
    pub(super) fn collect_hand_changes(&self, path: &str, base: Oid, tip: Oid) -> Result<ByHand, RepoError> {
        let mut walk = self.0.git.revwalk()?;
        walk.push(tip)?;
        walk.hide(base)?;
        let mut by_hand = ByHand::default();
        for id in walk {
            let commit = self.0.git.find_commit(id?)?;
            if commit.author().email_bytes() == WAKE_EMAIL.as_bytes() {
                continue;
            }
            let item = tree::find_item(&self.0.git, Some(commit.id()), path)?;
            let parents = commit.parent_ids().map(|parent| tree::find_item(&self.0.git, Some(parent), path));
            let parents = parents.collect::<Result<Vec<_>, _>>()?;
            if parents.contains(&item) {
                continue;
            }
            let now = self.read_lines(item)?;
            let before = parents.into_iter().map(|item| self.read_lines(item)).collect::<Result<Vec<_>, _>>()?;
            let is_new = |line: &&String| before.iter().all(|lines| !lines.contains(*line));
            by_hand.written.extend(now.iter().filter(is_new).cloned());
            by_hand.deleted.extend(before.into_iter().flatten().filter(|line| !now.contains(line)));
        }
        Ok(by_hand)
    }

    /// Returns a text's lines, trimmed at the end; empty for other content.
    fn read_lines(&self, item: Option<Item>) -> Result<BTreeSet<String>, RepoError> {
        let text = item.map_or(Ok(None), |item| self.read_item_text(item))?.unwrap_or_default();
        Ok(text.lines().map(str::trim_end).filter(|line| !line.is_empty()).map(str::to_owned).collect())
    }

    fn read_item_text(&self, item: Item) -> Result<Option<String>, RepoError> {
        if !matches!(item.mode, FILE | EXECUTABLE) {
            return Ok(None);
        }
        let blob = self.0.git.find_blob(item.id)?;
        let text = std::str::from_utf8(blob.content()).ok().filter(|text| !text.contains('\0'));
        Ok(text.map(str::to_owned))
    }

    /// Moves our branch to an existing commit, and its files with it.
    pub(super) fn move_to_commit(
        &self,
        from: Option<Oid>,
        to: Oid,
        why: &str,
        merge: &Merge<'_>,
        stop: StopAt,
    ) -> Result<(), RepoError> {
        let files = self.list_file_moves(from, to)?;
        let going: Vec<&str> =
            files.iter().filter(|file| file.after.is_none()).map(|file| file.path.as_str()).collect();
        for file in &files {
            self.require_free(file, from, &going)?;
        }
        let from = from.map(advance::CommitText);
        self.0.advance_branch(Move { from, to: advance::CommitText(to), why: why.to_owned(), files }, merge, stop)
    }

    /// Refuses to overwrite a file that isn't as committed, unless it already equals its new content. Files in `going` make room first.
    fn require_free(&self, file: &FileMove, from: Option<Oid>, going: &[&str]) -> Result<(), RepoError> {
        if [file.before, file.after].into_iter().flatten().any(|item| item.mode == SUBMODULE) {
            return Ok(());
        }
        let path = file.path.as_str();
        // The file was never checked out, and is now removed.
        if file.after.is_none() && names::find_refused_part(path).is_some() {
            return Ok(());
        }
        let now = self.0.tree.read(path).map_err(|error| to_blocked_error(path, Obstacle::Unreadable, error))?;
        if self.0.is_on_disk(path, file.after, now.as_ref())? {
            Ok(())
        } else if self.0.is_on_disk(path, file.before, now.as_ref())? {
            self.0.tree.check_replaceable(path).map_err(|error| to_blocked_error(path, Obstacle::Unwritable, error))
        } else if self.0.is_not_checked_out(path) {
            Ok(())
        } else {
            let obstacle = match self.0.find_shared_name(from, path)? {
                Some(other) if going.contains(&other.as_str()) => return Ok(()),
                Some(_) => Obstacle::Misnamed(SHARED_NAME),
                None => Obstacle::Uncommitted,
            };
            Err(RepoError::Blocked { path: path.to_owned(), obstacle })
        }
    }

    pub(super) fn list_file_moves(&self, from: Option<Oid>, to: Oid) -> Result<Vec<FileMove>, RepoError> {
        let tree = |commit| self.0.git.find_commit(commit)?.tree();
        let old = from.map(tree).transpose()?;
        let mut options = DiffOptions::new();
        options.include_typechange(true);
        let diff = self.0.git.diff_tree_to_tree(old.as_ref(), Some(&tree(to)?), Some(&mut options))?;
        let mut files = Vec::new();
        for delta in diff.deltas() {
            let Some(path) = delta.new_file().path_bytes().or(delta.old_file().path_bytes()) else {
                continue;
            };
            let path = name(path)?.to_owned();
            let item = |file: DiffFile<'_>| {
                (!file.id().is_zero()).then(|| Item { id: file.id(), mode: u32::from(file.mode()) })
            };
            let (before, after) = (item(delta.old_file()), item(delta.new_file()));
            files.push(FileMove { path, before, after, unstage: false });
        }
        Ok(files)
    }

    /// Refuses a remote's file under a name that git can't check out here: nothing is brought in until the name is repaired.
    fn require_names(&self, theirs: Oid) -> Result<(), RepoError> {
        let base = self.0.head()?.map(|ours| self.0.git.merge_base(ours, theirs).ok());
        for FileMove { path, after, .. } in self.list_file_moves(base.flatten(), theirs)? {
            if let Some(Refused { why, .. }) = names::find_refused_part(&path).filter(|_| after.is_some()) {
                return Err(RepoError::Blocked { path, obstacle: Obstacle::Misnamed(why) });
            }
        }
        Ok(())
    }
}

fn path_from_entry(entry: &IndexEntry) -> Result<String, RepoError> {
    name(&entry.path).map(str::to_owned)
}

fn name(path: &[u8]) -> Result<&str, RepoError> {
    std::str::from_utf8(path).map_err(|_| RepoError::Blocked {
        path: String::from_utf8_lossy(path).into_owned(),
        obstacle: Obstacle::Unnameable,
    })
}

/// Returns the error for a file in the way; any other error is unchanged.
fn to_blocked_error(path: &str, obstacle: Obstacle, error: RepoError) -> RepoError {
    let obstacle = match error {
        RepoError::UnsafePath { why, .. } => Obstacle::Unsafe(why),
        error if error.is_file_fault() => obstacle,
        error => return error,
    };
    RepoError::Blocked { path: path.to_owned(), obstacle }
}

fn item_from_entry(entry: &IndexEntry) -> Item {
    Item { id: entry.id, mode: entry.mode }
}

/// Returns a free name beside a file: `name.ours`, then `name.ours-2` and so on.
fn find_free_name(index: &Index, path: &str) -> String {
    let names = (1..MAX_KEPT_BESIDE).map(|count| match count {
        1 => format!("{path}.ours"),
        count => format!("{path}.ours-{count}"),
    });
    let is_free = |name: &String| index.get_path(std::path::Path::new(name), 0).is_none();
    names.into_iter().find(is_free).unwrap_or_else(|| format!("{path}.ours-{MAX_KEPT_BESIDE}"))
}
