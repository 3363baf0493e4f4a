//! The chunks a search may find, restricted by guest, folder, time and rules.

use chrono::Datelike as _;
use rusqlite::Params;

use reveille_base::types::ChatRef;
use reveille_memory::{CONTEXT, WORKING_MEMORY, view::View};

use super::{ChunkKind, Index, IndexError, SearchQuery};

/// The searchable chunks.
pub(super) struct Scope {
    /// The permission by chunk id; `None` for all.
    allowed: Option<Vec<bool>>,
}

impl Scope {
    /// Returns whether every chunk is searchable.
    pub(super) fn is_open(&self) -> bool {
        self.allowed.is_none()
    }

    pub(super) fn is_allowed(&self, id: i64) -> bool {
        let Some(allowed) = &self.allowed else { return true };
        usize::try_from(id).ok().and_then(|at| allowed.get(at)).copied().unwrap_or(false)
    }
}

/// Returns a document's name from a guest's point of view. `None` if the guest has no such document.
pub(super) fn find_guest_name(path: &str, reader: ChatRef) -> Option<String> {
    let view = View::for_chat(reader);
    let own = [WORKING_MEMORY, CONTEXT].into_iter().find(|name| view.find_path(name).as_deref() == Some(path));
    match own {
        Some(name) => Some(name.to_owned()),
        None => view.find_path(path).filter(|kept_at| kept_at == path).map(|_| path.to_owned()),
    }
}

/// The mark that chunks get in a scope.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ScopeMark {
    Allowed,
    Hidden,
}

impl Index {
    pub(super) fn build_scope(&self, query: &SearchQuery<'_>) -> Result<Scope, IndexError> {
        let is_open =
            query.reader.is_none() && query.within.is_none() && query.as_of.is_none() && query.hidden.is_none();
        let is_open = is_open && query.without_chats.is_empty();
        if is_open {
            return Ok(Scope { allowed: None });
        }
        let last: Option<i64> = self.conn.query_row("SELECT max(id) FROM chunks", [], |row| row.get(0))?;
        let size = usize::try_from(last.unwrap_or(0)).unwrap_or(0) + 1;
        let mut allowed = vec![query.reader.is_none() && query.within.is_none(); size];
        let documents = self.list_documents()?;
        if let Some(reader) = query.reader {
            self.mark_chunks(&mut allowed, ScopeMark::Allowed, "SELECT id FROM chunks WHERE chat = ?1", [reader])?;
            self.mark_chunks(&mut allowed, ScopeMark::Allowed, "SELECT id FROM chunks WHERE for_all = 1", [])?;
            // Guests may not read further documents in a chat's folder.
            for (id, path) in &documents {
                if !path.starts_with("chat/") && find_guest_name(path, reader).is_none() {
                    self.mark_chunks(
                        &mut allowed,
                        ScopeMark::Hidden,
                        "SELECT id FROM chunks WHERE document = ?1",
                        [id],
                    )?;
                }
            }
        }
        if let Some(within) = query.within {
            let mut inside = vec![false; size];
            self.mark_within(&mut inside, within, &documents)?;
            match query.reader {
                Some(_) => allowed.iter_mut().zip(inside).for_each(|(allowed, inside)| *allowed &= inside),
                None => allowed = inside,
            }
        }
        if let Some(day) = query.as_of {
            let day = day.num_days_from_ce();
            if query.only_dated {
                self.mark_chunks(
                    &mut allowed,
                    ScopeMark::Hidden,
                    "SELECT id FROM chunks WHERE date IS NULL OR date > ?1",
                    [day],
                )?;
            } else {
                // The documents have the state of that day; their lines may still name a later day.
                self.mark_chunks(
                    &mut allowed,
                    ScopeMark::Hidden,
                    "SELECT id FROM chunks WHERE date > ?1 AND (message IS NOT NULL OR document IN
                         (SELECT id FROM documents WHERE path >= 'recordings/' AND path < 'recordings0'))",
                    [day],
                )?;
            }
        }
        if let Some(hidden) = query.hidden {
            for (id, _) in documents.iter().filter(|(_, path)| !path.starts_with("chat/") && hidden(path)) {
                self.mark_chunks(&mut allowed, ScopeMark::Hidden, "SELECT id FROM chunks WHERE document = ?1", [id])?;
            }
        }
        for chat in query.without_chats {
            self.mark_chunks(&mut allowed, ScopeMark::Hidden, "SELECT id FROM chunks WHERE chat = ?1", [chat])?;
        }
        Ok(Scope { allowed: Some(allowed) })
    }

    fn mark_within(&self, allowed: &mut [bool], within: &str, documents: &[(i64, String)]) -> Result<(), IndexError> {
        let within = within.trim_start_matches("./").trim_end_matches('/');
        let kinds: &[ChunkKind] = match within {
            "messages" => &[ChunkKind::Message, ChunkKind::Answer],
            "answers" => &[ChunkKind::Answer],
            _ => &[],
        };
        for kind in kinds {
            self.mark_chunks(
                allowed,
                ScopeMark::Allowed,
                "SELECT id FROM chunks WHERE message IS NOT NULL AND kind = ?1",
                [kind.number()],
            )?;
        }
        let is_in = |path: &str| path.strip_prefix(within).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        for (id, _) in
            documents.iter().filter(|(_, path)| kinds.is_empty() && is_in(path) && !path.starts_with("chat/"))
        {
            self.mark_chunks(allowed, ScopeMark::Allowed, "SELECT id FROM chunks WHERE document = ?1", [id])?;
        }
        Ok(())
    }

    fn list_documents(&self) -> Result<Vec<(i64, String)>, IndexError> {
        let mut statement = self.conn.prepare_cached("SELECT id, path FROM documents")?;
        Ok(statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?)
    }

    fn mark_chunks(
        &self,
        allowed: &mut [bool],
        to: ScopeMark,
        sql: &str,
        params: impl Params,
    ) -> Result<(), IndexError> {
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        while let Some(row) = rows.next()? {
            let id: i64 = row.get(0)?;
            if let Some(mark) = usize::try_from(id).ok().and_then(|at| allowed.get_mut(at)) {
                *mark = to == ScopeMark::Allowed;
            }
        }
        Ok(())
    }
}
