//! The assistant's proposed changes of its own orders. A row holds exactly the texts its question shows; an approval applies
//! exactly these texts. A week later the effect is reported, once.

use chrono::{DateTime, TimeDelta, Utc};

use reveille_base::{
    clock::{format_rfc3339, parse_time},
    types::{Aim, Figure, Measured, StatedEffect},
};

use crate::{
    FencedStore, Result, StagedFile, StoreError,
    areas::{Proposals, ReadStore, WriteStore},
    sql::{self, Params, Row, SqlConnection, Transaction, params},
    to_json,
};

/// The time after an approval at which before and after are compared.
pub const COMPARED_OVER: TimeDelta = TimeDelta::days(7);
/// The prefix of an undo's target that names a proposal.
const UNDONE_AS: &str = "proposal/";

/// A proposal to ask a person about.
#[derive(Debug, Clone, PartialEq)]
pub struct NewProposal {
    /// The change, in a line.
    pub title: String,
    /// The files, each with its old and proposed content.
    pub files: Vec<StagedFile>,
    /// The intended effect.
    pub effect: StatedEffect,
    /// The job whose runs are measured; `None` to measure answers.
    pub job: Option<String>,
    /// The figure for the week before.
    pub before: Measured,
    /// The branch with the proposed tree.
    pub branch: String,
    /// The commit at the tip of that branch.
    pub commit: String,
}

/// A proposal as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// Its row.
    pub id: i64,
    /// The cycle that made the proposal.
    pub cycle_id: String,
    /// The proposal's content.
    pub new: NewProposal,
    /// The time of the change; `None` before the approval.
    pub agreed_at: Option<DateTime<Utc>>,
}

impl Proposal {
    const COLUMNS: &str =
        "id, cycle_id, title, files, figure, aim, job, before_total, before_pieces, branch, commit_id, agreed_at";

    /// The target of an undo of this proposal.
    pub fn undone_as(id: i64) -> String {
        format!("{UNDONE_AS}{id}")
    }

    /// The proposal an undo targets; `None` if the target is a wake.
    pub fn parse_undo_target(undone: &str) -> Option<i64> {
        undone.strip_prefix(UNDONE_AS)?.parse().ok()
    }

    fn from_row(row: &Row<'_>) -> sql::QueryResult<Result<Self>> {
        let id: i64 = row.get(0)?;
        let (files, figure, aim): (String, String, String) = (row.get(3)?, row.get(4)?, row.get(5)?);
        let effect =
            Figure::from_name(&figure).zip(Aim::from_name(&aim)).map(|(figure, aim)| StatedEffect { figure, aim });
        let files = serde_json::from_str::<Vec<(String, Option<String>, String)>>(&files);
        let (Ok(files), Some(effect)) = (files, effect) else {
            return Ok(Err(StoreError::Damaged(format!("proposal {id}"))));
        };
        let files = files.into_iter().map(|(path, base, content)| StagedFile { path, base, content });
        let new = NewProposal {
            title: row.get(2)?,
            files: files.collect(),
            effect,
            job: row.get(6)?,
            before: Measured { total: row.get(7)?, pieces: row.get(8)? },
            branch: row.get::<_, Option<String>>(9)?.unwrap_or_default(),
            commit: row.get(10)?,
        };
        let agreed_at = row.get::<_, Option<String>>(11)?.as_deref().and_then(parse_time);
        Ok(Ok(Self { id, cycle_id: row.get(1)?, new, agreed_at }))
    }

    /// Skips an unreadable proposal with a warning, so that the others stay usable.
    fn list_where(conn: &SqlConnection, condition: &str, values: impl Params) -> Result<Vec<Self>> {
        let sql = format!("SELECT {} FROM proposals p WHERE {condition} ORDER BY id", Self::COLUMNS);
        let mut statement = conn.prepare(&sql)?;
        let mut readable = Vec::new();
        for proposal in statement.query_map(values, Self::from_row)? {
            match proposal? {
                Ok(proposal) => readable.push(proposal),
                Err(error) => tracing::warn!(%error, "a proposal can't be read"),
            }
        }
        Ok(readable)
    }
}

impl<S: ReadStore> Proposals<S> {
    /// The proposal of a call of a cycle.
    pub fn find_call_proposal(&self, cycle_id: &str, call: &str) -> Result<Option<Proposal>> {
        Ok(Proposal::list_where(self.0.conn(), "cycle_id = ?1 AND call = ?2", params![cycle_id, call])?.pop())
    }

    /// A proposal by its number.
    pub fn find_proposal(&self, id: i64) -> Result<Option<Proposal>> {
        Ok(Proposal::list_where(self.0.conn(), "id = ?1", params![id])?.pop())
    }

    /// Returns whether a question about a proposal is open.
    pub fn has_open_proposal(&self, now: DateTime<Utc>) -> Result<bool> {
        let sql =
            "SELECT EXISTS (SELECT 1 FROM proposals p JOIN approvals a ON a.cycle_id = p.cycle_id AND a.call = p.call
                   WHERE a.state = 'pending' AND a.expires_at > ?1)";
        Ok(self.0.conn().query_row(sql, [format_rfc3339(now)], |row| row.get(0))?)
    }

    /// The proposals approved a week ago whose effect is still to be reported. Leaves out those whose wake left no commit and those that
    /// were undone.
    pub fn proposals_to_tell(&self, now: DateTime<Utc>) -> Result<Vec<Proposal>> {
        // Each idle wake asks: usually the answer is empty, and a short statement is cheap to prepare.
        let sql = "SELECT EXISTS (SELECT 1 FROM proposals WHERE tell_at <= ?1)";
        if !self.0.conn().query_row(sql, [format_rfc3339(now)], |row| row.get::<_, bool>(0))? {
            return Ok(Vec::new());
        }
        let condition = "tell_at IS NOT NULL AND tell_at <= ?1
            AND EXISTS (SELECT 1 FROM cycles c WHERE c.id = p.cycle_id AND c.commit_id IS NOT NULL)
            AND NOT EXISTS (SELECT 1 FROM undos u WHERE u.wake IN (p.cycle_id, 'proposal/' || p.id))";
        Proposal::list_where(self.0.conn(), condition, params![format_rfc3339(now)])
    }

    /// The approved proposals, newest first.
    pub fn agreed_proposals(&self, limit: u32) -> Result<Vec<Proposal>> {
        let newest = "id IN (SELECT p.id FROM proposals p JOIN cycles c ON c.id = p.cycle_id
            WHERE p.agreed_at IS NOT NULL AND c.state NOT IN ('failed', 'abandoned') ORDER BY p.id DESC LIMIT ?1)";
        let mut agreed = Proposal::list_where(self.0.conn(), newest, params![limit])?;
        agreed.reverse();
        Ok(agreed)
    }

    /// The proposals whose cycle is over and whose branch may still exist.
    pub fn proposals_with_branch(&self) -> Result<Vec<Proposal>> {
        let condition = "branch IS NOT NULL AND NOT EXISTS (SELECT 1 FROM cycles c
            WHERE c.id = p.cycle_id AND c.state IN ('running', 'waiting', 'parked'))";
        Proposal::list_where(self.0.conn(), condition, [])
    }
}

impl Proposals<&mut FencedStore<'_>> {
    /// Records that a proposal's branch is gone.
    pub fn clear_proposal_branch(&mut self, id: i64) -> Result<()> {
        self.0.write_relaxed(|tx| {
            tx.execute("UPDATE proposals SET branch = NULL WHERE id = ?1", [id])?;
            Ok(())
        })
    }
}

/// Stores a proposal, in the transaction that asks about it.
pub(crate) fn save_proposal(
    tx: &Transaction<'_>,
    (cycle_id, call): (&str, &str),
    proposal: &NewProposal,
    now: DateTime<Utc>,
) -> Result<()> {
    let NewProposal { title, files, effect, job, before, branch, commit } = proposal;
    let files: Vec<_> = files.iter().map(|file| (&file.path, &file.base, &file.content)).collect();
    tx.execute(
        "INSERT INTO proposals (cycle_id, call, title, files, figure, aim, job, before_total, before_pieces, branch, commit_id, asked_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) ON CONFLICT DO NOTHING",
        params![
            cycle_id,
            call,
            title,
            to_json(&files),
            effect.figure.name(),
            effect.aim.name(),
            job,
            before.total,
            before.pieces,
            branch,
            commit,
            format_rfc3339(now)
        ],
    )?;
    Ok(())
}

/// Marks a proposal as applied, in its call's transaction.
pub(crate) fn record_agreement(tx: &Transaction<'_>, id: i64, now: DateTime<Utc>) -> Result<()> {
    tx.execute(
        "UPDATE proposals SET agreed_at = ?2, tell_at = ?3 WHERE id = ?1 AND agreed_at IS NULL",
        (id, format_rfc3339(now), format_rfc3339(now + COMPARED_OVER)),
    )?;
    Ok(())
}

/// Marks the effect of a proposal as reported, in its cycle's transaction.
pub(crate) fn record_report(tx: &Transaction<'_>, id: i64) -> Result<()> {
    tx.execute("UPDATE proposals SET tell_at = NULL WHERE id = ?1", [id])?;
    Ok(())
}
