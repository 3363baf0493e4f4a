//! `repository`: HEAD allows commits, no commit is unfinished, no lock of a dead git program remains, and all objects
//! exist.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use reveille_base::words::quote_for_shell;
use reveille_cycle::merge_texts;
use reveille_git as repo;
use reveille_git::{Ailment, Condition, Finished, MAX_LOOSE, MAX_PACKS, Repo, RepoError, Stock};
use reveille_store::UpkeepKind;

use crate::health::{
    finding::{Finding, Trouble},
    remedy::{Remedy, TIDY_UP},
    repair::RepairTools,
    scene::Scene,
    words::format_list,
};

/// Time limit for git's search for missing objects.
const FSCK_TIMEOUT: Duration = Duration::from_secs(20);

/// Multiple of the housekeeping limits above which housekeeping evidently fails.
const TOO_MANY: usize = 5;

struct Facts {
    place: PathBuf,
    branch: String,
    condition: Condition,
    is_interrupted: bool,
    locks: Vec<String>,
    /// Locks in a remote on this machine that are too old to be in use.
    remote_locks: Vec<String>,
    /// The problems that `git fsck` has found. `None` if it took too long.
    damage: Option<Vec<String>>,
    /// `true` if missing objects weren't searched for.
    is_brief: bool,
    left_alone: Vec<String>,
    /// Half-written files that a wake has kept for a person.
    kept: Vec<String>,
    /// Work on separate branches and refs that a person has to merge or drop.
    to_merge: Vec<String>,
    /// Parked branches that wakes merge by themselves.
    parked: Vec<String>,
    stock: Stock,
    /// The error of the last housekeeping, if it failed.
    untidy: Option<String>,
}

pub(super) fn check(scene: &Scene<'_>) -> Result<Finding, Trouble> {
    if let Some(error) = scene.repo_error() {
        let dir = scene.config.repo_dir();
        return Ok(judge_unopened(error, repo::find_ailment(&dir).as_ref(), &dir.display().to_string()));
    }
    let Some(repo) = scene.repo()? else {
        return Ok(Finding::nothing_yet());
    };
    let facts = read_facts(repo, scene)?;
    Ok(judge_facts(&facts, scene.is_wake_running()))
}

fn read_facts(repo: &Repo, scene: &Scene<'_>) -> Result<Facts, Trouble> {
    let locks = repo.housekeeping().list_possibly_stale_locks();
    let name = |path: &std::path::PathBuf| path.strip_prefix(repo.root()).unwrap_or(path).display().to_string();
    let left = repo.housekeeping().left_alone(&|text| scene.redactor.contains_secret(text))?;
    Ok(Facts {
        place: repo.root().to_owned(),
        branch: repo.branch().to_owned(),
        condition: repo.read_condition()?,
        is_interrupted: repo.is_interrupted(),
        locks: locks.iter().map(name).collect(),
        remote_locks: repo.housekeeping().stale_remote_locks().iter().map(name).collect(),
        damage: if scene.is_brief { None } else { repo.housekeeping().fsck(FSCK_TIMEOUT)? },
        is_brief: scene.is_brief,
        kept: repo.housekeeping().list_set_aside_files().iter().map(name).collect(),
        to_merge: repo.parked_work().left_to_a_person()?,
        parked: repo.parked_work().list_parked_branches()?.into_iter().map(|(branch, _)| branch).collect(),
        stock: repo.housekeeping().count_stock(),
        // A minor fact: another check reports an unusable database.
        untidy: scene
            .store()
            .ok()
            .flatten()
            .and_then(|store| store.maintenance().read_upkeep(UpkeepKind::Maintain).ok()?.error),
        left_alone: left.iter().map(|left| format!("{} ({})", left.path, left.why)).collect(),
    })
}

/// Reports a memory that can't be opened, so every wake fails.
fn judge_unopened(error: &RepoError, ailment: Option<&Ailment>, place: &str) -> Finding {
    let fix = match (error, ailment) {
        (RepoError::NotARepository { .. }, _) => {
            "move it away; the next wake then creates or clones the memory".to_owned()
        }
        (RepoError::UnreadableForm { form, .. }, _) => format!("{}. Then wake --once", form.way_out),
        (RepoError::AnothersRepository { .. }, _) => {
            format!("git config --global --add safe.directory '{place}'; then wake --once")
        }
        (_, Some(ailment)) => format!("cd '{place}' && {}; then wake --once", ailment.repair_command()),
        (_, None) => format!("see what git reports: git -C '{place}' status; git -C '{place}' fsck"),
    };
    let unreadable = ailment.map(|ailment| format!(" ({ailment} can't be read)")).unwrap_or_default();
    let finding =
        Finding::critical(format!("the memory can't be opened, so every wake fails: {error}{unreadable}"), fix);
    match (error, ailment) {
        (RepoError::AnothersRepository { .. }, _) => {
            let trust = format!("git config --global --add safe.directory {}", quote_for_shell(Path::new(place)));
            finding.with_remedy(Remedy::for_memory(place, trust)).with_remedy(Remedy::Wake)
        }
        (RepoError::NotARepository { .. } | RepoError::UnreadableForm { .. }, _) => finding,
        (_, Some(ailment)) => {
            finding.with_remedy(Remedy::for_memory(place, ailment.repair_command())).with_remedy(Remedy::Wake)
        }
        (_, None) => finding,
    }
}

fn judge_facts(facts: &Facts, is_wake_running: bool) -> Finding {
    let mut findings = Vec::new();
    if let Some(damage) = facts.damage.as_deref().filter(|damage| !damage.is_empty()) {
        findings.push(Finding::critical(
            format!("git reports damage: {}", format_list(damage)),
            "keep a copy of the directory; what the remote has can be fetched again: git fetch --refetch",
        ));
    }
    findings.extend(judge_condition(&facts.condition, &facts.branch));
    // During a wake these belong to the wake.
    if facts.is_interrupted && !is_wake_running {
        findings.push(Finding::repairable("a commit was left unfinished", "it is finished"));
    }
    if !facts.locks.is_empty() && !is_wake_running {
        findings.push(Finding::repairable(
            format!("lock files that no git program holds: {}", format_list(&facts.locks)),
            "they are removed, if they are older than a second",
        ));
    }
    if !facts.remote_locks.is_empty() && !is_wake_running {
        findings.push(Finding::repairable(
            format!("locks that a dead push left in the remote block every push: {}", format_list(&facts.remote_locks)),
            "they are removed: no git program is at work there, and they are old",
        ));
    }
    if !facts.kept.is_empty() {
        findings.push(Finding::warn(
            format!("kept for you, because there is no other copy: {}", format_list(&facts.kept)),
            "check whether you need any of it, then remove it",
        ));
    }
    if let Some(first) = facts.to_merge.first() {
        let drop = if first.starts_with("refs/") { "git update-ref -d" } else { "git branch -D" };
        findings.push(Finding::warn(
            format!("kept apart from {}, and not merged: {}", facts.branch, format_list(&facts.to_merge)),
            format!(
                "for each: `git log -p {first}` shows it, `git merge {first}` merges it, `{drop} {first}` drops it"
            ),
        ));
    }
    if facts.stock.loose > TOO_MANY * MAX_LOOSE || facts.stock.packs > TOO_MANY * MAX_PACKS {
        let why = facts.untidy.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        let Stock { loose, packs } = facts.stock;
        findings.push(
            Finding::warn(format!("about {loose} loose objects and {packs} packs slow git down{why}"), TIDY_UP)
                .with_remedy(Remedy::for_memory(&facts.place, TIDY_UP)),
        );
    }
    let mut detail = format!("on {}, {}", facts.branch, facts.condition);
    if facts.damage.is_none() && !facts.is_brief {
        detail.push_str(&format!("; the search for missing objects took longer than {} s", FSCK_TIMEOUT.as_secs()));
    }
    if !facts.parked.is_empty() {
        detail.push_str(&format!("; a wake will merge these when it can: {}", format_list(&facts.parked)));
    }
    if !facts.left_alone.is_empty() {
        detail.push_str(&format!("; left uncommitted: {}", format_list(&facts.left_alone)));
    }
    Finding::merge_all(findings, Finding::ok(detail))
}

fn judge_condition(condition: &Condition, branch: &str) -> Option<Finding> {
    let way_back = condition.way_back(branch)?;
    let fix =
        format!("{way_back}; until then wakes commit to separate branches, which are merged automatically afterwards");
    Some(Finding::warn(format!("it is {condition}, but wakes commit on {branch}"), fix))
}

pub(super) fn repair(tools: &mut RepairTools<'_>) -> Result<Vec<String>, Trouble> {
    let Some(repo) = tools.scene.repo()? else {
        return Ok(Vec::new());
    };
    // Locks come first, since a commit can't be finished while they exist.
    let mut done: Vec<String> = repo
        .housekeeping()
        .remove_stale_locks()
        .iter()
        .map(|lock| {
            let name = lock.strip_prefix(repo.root()).unwrap_or(lock);
            format!("removed {}, which a dead git program had left", name.display())
        })
        .collect();
    match repo.finish_interrupted_move(&merge_texts)? {
        Some(Finished::Completed(commit)) => done.push(format!("finished the commit {commit}, which had been cut off")),
        Some(Finished::NeverHappened) => {
            done.push("cleared away a commit that had been prepared and not made".to_owned());
        }
        None => {}
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Status;
    use reveille_git::UnreadableForm;

    fn facts() -> Facts {
        Facts {
            place: PathBuf::from("/w/brain"),
            branch: "main".to_owned(),
            condition: Condition::Normal,
            is_interrupted: false,
            locks: Vec::new(),
            remote_locks: Vec::new(),
            damage: Some(Vec::new()),
            is_brief: false,
            left_alone: vec!["photo.jpg (isn't Markdown)".to_owned()],
            kept: Vec::new(),
            to_merge: Vec::new(),
            parked: Vec::new(),
            stock: Stock { loose: 2 * MAX_LOOSE, packs: 3 },
            untidy: None,
        }
    }

    #[test]
    fn failing_housekeeping_is_reported() {
        let stock = Stock { loose: TOO_MANY * MAX_LOOSE + 1, packs: 3 };
        let finding = judge_facts(&Facts { stock, untidy: Some("git repack failed".to_owned()), ..facts() }, false);
        assert_eq!((finding.status, finding.fix.as_deref()), (Status::Warn, Some("git gc")));
        assert!(finding.detail.contains("git repack failed"), "{}", finding.detail);
    }

    /// The report says why the memory can't be opened, which part is unreadable, and which command repairs it.
    #[test]
    fn an_unreadable_memory_comes_with_its_repair_command() {
        let form = UnreadableForm { setting: "extensions.x=y".to_owned(), way_out: "git mend".to_owned() };
        let path = std::path::PathBuf::from("/w/brain");
        for (error, ailment, fix) in [
            (RepoError::NotARepository { path: path.clone() }, None, "move it away"),
            (RepoError::UnreadableForm { path: path.clone(), form }, None, "git mend. Then wake --once"),
            (RepoError::AnothersRepository { path }, None, "git config --global --add safe.directory '/w/brain'"),
            (RepoError::Moved, Some(Ailment::Index), "cd '/w/brain' && rm .git/index && git reset; then wake --once"),
            (RepoError::Moved, None, "see what git reports: git -C '/w/brain'"),
        ] {
            let finding = judge_unopened(&error, ailment.as_ref(), "/w/brain");
            assert!(finding.fix.as_ref().is_some_and(|told| told.starts_with(fix)), "{error}: {finding:?}");
            assert_eq!(finding.status, Status::Critical);
        }
    }

    #[test]
    fn a_persons_own_files_are_named_without_a_warning() {
        let finding = judge_facts(&facts(), false);
        assert_eq!(finding.status, Status::Ok);
        assert!(finding.detail.contains("photo.jpg"));
    }

    #[test]
    fn files_kept_for_a_person_are_named() {
        let finding = judge_facts(&Facts { kept: vec![".git/reveille/kept-12".to_owned()], ..facts() }, false);
        assert_eq!((finding.status, finding.repair), (Status::Warn, None));
        assert!(finding.detail.contains("kept-12"), "{}", finding.detail);
    }

    #[test]
    fn each_obstacle_to_a_commit_comes_with_its_remedy() {
        for condition in [Condition::Detached, Condition::OtherBranch("x".to_owned()), Condition::InProgress("rebase")]
        {
            let finding = judge_facts(&Facts { condition, ..facts() }, false);
            assert_eq!((finding.status, finding.repair), (Status::Warn, None));
            assert!(finding.detail.ends_with("wakes commit on main"), "{}", finding.detail);
            assert!(finding.fix.unwrap().starts_with("`git "));
        }
        let damage = Some(vec!["missing blob 12".to_owned()]);
        assert_eq!(judge_facts(&Facts { damage, ..facts() }, false).status, Status::Critical);
    }

    #[test]
    fn a_running_wakes_locks_are_its_own() {
        let locks = vec![".git/index.lock".to_owned()];
        let left = Facts { locks: locks.clone(), remote_locks: locks, is_interrupted: true, ..facts() };
        assert!(judge_facts(&left, false).repair.is_some());
        assert_eq!(judge_facts(&left, true).status, Status::Ok);
    }
}
