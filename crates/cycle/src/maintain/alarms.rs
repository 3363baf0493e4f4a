//! Alarms to the owner about problems that only they can solve: the memory and its remote diverge, or a file isn't committed.

use std::collections::BTreeSet;

use reveille_base::approval_text;
use reveille_git::{HOLDS_SECRET, LeftAlone, OldLine, RemoteError, Repo};
use reveille_memory as memory;
use reveille_memory::{outside, unsettled::find_conflicts};
use reveille_store::UpkeepKind;

use crate::{context::WakeError, session::Session};

/// Reports that the first run couldn't reach REPO_URL. Work starts anyway.
pub(crate) fn begin_without_remote(session: &mut Session<'_>, error: &RemoteError) -> Result<(), WakeError> {
    let why = session.context.redactor.redact(&error.to_string());
    session.store.maintenance_mut().record_upkeep_failure(UpkeepKind::Fetch, &why, None)?;
    let text = format!(
        "I can't reach `REPO_URL` yet: {why}. I've started with a fresh memory for now. As soon as the remote answers, I'll join the \
         two, and nothing of either is lost."
    );
    session.report.notes.push(text.clone());
    session.alarm("unjoined", text).map(drop)
}

/// Reports a secret in a commit, once per commit. Pushing it anyway is the person's decision and action, because a push can't be undone.
pub(super) fn report_secret(session: &mut Session<'_>, repo: &Repo, commit: &str, why: &str) -> Result<(), WakeError> {
    let branch = repo.branch();
    let text = format!(
        "I haven't pushed my memory to its remote: {why}. Everything is committed here, and none of it has left this machine. Please \
         remove the key or token from that commit (`git commit --amend` if it is the last one, else `git rebase -i`). If it may go \
         there, push it yourself: `git push origin {branch}`. I'll continue after either."
    );
    session.alarm(&format!("secret-push/{commit}"), text).map(drop)
}

/// Reports that one side still has a history that was purged elsewhere.
pub(super) fn report_purged_history(session: &mut Session<'_>, repo: &Repo) -> Result<(), WakeError> {
    let branch = repo.branch();
    let text = match repo.purge().old_line()? {
        None => return Ok(()),
        Some(OldLine::Ours) => format!(
            "Another machine removed words from my memory's history, and this one still has them. Merging would bring them back, so I \
             fetched but changed nothing. To remove them here too, run `git reset --keep origin/{branch}` in the memory's folder. This \
             discards whatever only this machine has, so copy that first. Then run `git reflog expire --expire=now --all && git gc \
             --prune=now`."
        ),
        Some(OldLine::Remote) => {
            "The remote still has the history from which I removed words for you. I won't merge or push it. To replace it there, run the \
             same `wake memory forget … --purge` again."
                .to_owned()
        }
    };
    let key = format!("purged/{}", session.now().date_naive());
    session.alarm(&key, text).map(drop)
}

/// Reports a rewound remote with possible solutions, once for the fetch and the push together.
pub(super) fn report_rewound_remote(session: &mut Session<'_>, repo: &Repo, rescue_ref: &str) -> Result<(), WakeError> {
    let branch = repo.branch();
    let push = format!("`git push origin {branch}`");
    let follow = format!(
        "`git branch before-reset` and then `git reset --keep origin/{branch}` follow the remote, and keep what is here on the branch \
         `before-reset`"
    );
    let (what, ways) = match repo.count_ahead_behind()? {
        None => (
            format!("no longer has the branch `{branch}`"),
            format!("{push} brings it back; `git remote set-url origin` and REPO_URL name another remote"),
        ),
        Some((_, 0)) => ("lost commits that it once had".to_owned(), format!("{push} brings them back; {follow}")),
        Some(_) => (
            "was given another history (a forced push)".to_owned(),
            format!(
                "`git merge --allow-unrelated-histories origin/{branch}` keeps both, and I push them; {follow}; {push} with \
                 `--force` puts mine in its place"
            ),
        ),
    };
    let text = format!(
        "The remote of my memory {what}, so I've stopped syncing with it. Nothing is lost: all of mine is here, and what \
         the remote had is kept as `{rescue_ref}`. I can still answer and save. Please decide, in {}: {ways}.",
        repo.root().display()
    );
    session.alarm(&format!("rewound/{rescue_ref}"), text).map(drop)
}

/// Reports a remote with a history unrelated to ours, none of which was ever here.
pub(super) fn report_unrelated_history(session: &mut Session<'_>, repo: &Repo) -> Result<(), WakeError> {
    let branch = repo.branch();
    let text = format!(
        "The remote of my memory has nothing in common with my history, so I'm not syncing with it. I can still answer and save. If it \
         is the right remote, run `git merge --allow-unrelated-histories origin/{branch}` in {} to join the two. If not, set the right \
         one with `git remote set-url origin` and REPO_URL.",
        repo.root().display()
    );
    session.alarm("unrelated", text).map(drop)
}

/// Reports contradictory changes by the owner in the documents and in the files just merged, once per conflict.
pub(super) fn report_contradictions(
    session: &mut Session<'_>,
    repo: &Repo,
    merged: &[String],
) -> Result<(), WakeError> {
    let merged = merged.iter().map(String::as_str).filter(|path| path.ends_with(".md"));
    for path in memory::DOCUMENTS.into_iter().chain([memory::CLAUDE]).chain(merged).collect::<BTreeSet<_>>() {
        let Ok(Some(text)) = repo.read_work_tree(path) else { continue };
        // Contradictory facts found by reflection are asked about separately, in waking hours.
        let mut conflicts = find_conflicts(&text);
        conflicts.retain(|conflict| !conflict.is_contradiction());
        // Numbers are reused but texts aren't, so the newest conflict's text is the key.
        let Some(newest) = conflicts.iter().max_by_key(|conflict| conflict.number) else { continue };
        let key = approval_text::hash_action(&newest.text);
        let lines: Vec<String> = conflicts.iter().flat_map(|conflict| &conflict.lines).map(usize::to_string).collect();
        let path = session.context.redactor.redact(path);
        let text = format!(
            "You changed the same thing in two places, and the two contradict each other. I kept both in `{path}`, marked \
             `unsettled` (line {}). Please delete the wrong one; until then I treat neither as settled.",
            lines.join(", ")
        );
        session.alarm(&format!("unsettled/{path}/{key}"), text)?;
    }
    Ok(())
}

/// Reports a file that isn't committed. A file that seems to hold a secret is reported once a week, since the owner may have reasons for
/// it; a file with an unusable name is reported once.
pub(crate) fn report_refused_file(session: &mut Session<'_>, left: &LeftAlone) -> Result<(), WakeError> {
    let path = session.context.redactor.redact(&left.path);
    let name = outside::name(&path);
    if left.is_misnamed() {
        let text = format!(
            "I'm leaving {name} in my memory's folder alone: it {}. It stays as it is on this machine, but I won't read, commit or push \
             it. Once you rename or move it, I'll include it.",
            left.why
        );
        return session.alarm(&format!("misnamed/{path}"), text).map(drop);
    }
    if left.shares_name() {
        let text = format!(
            "I'm leaving {name} in my memory's folder alone: it {}. Both stay as they were committed, and I won't commit this copy as \
             either. Please rename one of them where both exist (on another machine, or on the remote's website) and push that.",
            left.why
        );
        return session.alarm(&format!("shared-name/{path}"), text).map(drop);
    }
    if left.why != HOLDS_SECRET {
        return Ok(());
    }
    let week = session.now().with_timezone(&session.context.config.timezone).format("%G-W%V");
    let text = format!(
        "I didn't commit {name}: it {HOLDS_SECRET}. The file stays as it is on this machine, and I haven't pushed any of it. Please \
         remove the key or token; the next wake commits the rest. If others may have seen it, have it replaced."
    );
    session.alarm(&format!("secret/{path}/{week}"), text).map(drop)
}
