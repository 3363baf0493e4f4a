//! `memory`: checks that the documents exist and are understood. Damage is listed line by line for a person to repair;
//! nothing is lost meanwhile.

use std::collections::BTreeMap;

use reveille_memory as memory;
use reveille_memory::{
    DocKind, Problem,
    episodic::Log,
    facts::Facts,
    project::project_problem,
    skill::Skills,
    tasks::TaskList,
    unsettled::{Unsettled, find_conflicts},
};

use crate::health::{
    finding::{Finding, Trouble},
    scene::Scene,
    words::format_list,
};

/// The documents of every memory.
const DOCUMENTS: [&str; 7] = [
    memory::CLAUDE,
    memory::WORKING_MEMORY,
    memory::EPISODIC_MEMORY,
    memory::SEMANTIC_MEMORY,
    memory::CONTEXT,
    memory::ACTIVE,
    memory::BACKLOG,
];

pub(super) fn check(scene: &Scene<'_>) -> Result<Finding, Trouble> {
    let Some(repo) = scene.repo()? else {
        return Ok(Finding::nothing_yet());
    };
    let mut problems = Vec::new();
    for path in DOCUMENTS {
        match repo.read_work_tree(path)? {
            Some(text) => problems.extend(name(path, &list_problems(path, &text))),
            None => problems.push(format!("{path} is missing")),
        }
    }
    for path in repo.list_markdown(&["memory", "skills"])?.iter().filter(|path| !DOCUMENTS.contains(&path.as_str())) {
        let text = repo.read_work_tree(path)?.unwrap_or_default();
        problems.extend(name(path, &find_conflicts(&text).iter().map(Unsettled::problem).collect::<Vec<_>>()));
        problems.extend(project_problem(path));
    }
    let paths = repo.list_markdown(&["skills"])?;
    let mut texts = BTreeMap::new();
    for path in paths.iter().filter(|path| path.ends_with("/SKILL.md")) {
        texts.insert(path.as_str(), repo.read_work_tree(path)?.unwrap_or_default());
    }
    problems.extend(Skills::collect(&paths, |path| texts.get(path).cloned().unwrap_or_default()).problems);
    Ok(judge_problems(&problems))
}

/// Lists the problems of a document by its kind, and the changes that the person hasn't settled.
fn list_problems(path: &str, text: &str) -> Vec<Problem> {
    let mut problems = read_by_kind(path, text);
    problems.extend(find_conflicts(text).iter().map(Unsettled::problem));
    problems
}

fn read_by_kind(path: &str, text: &str) -> Vec<Problem> {
    match DocKind::from_path(path) {
        DocKind::Tasks => {
            let (tasks, mut problems) = TaskList::parse(text);
            if path == memory::ACTIVE {
                problems.extend(tasks.active_problems());
            }
            problems
        }
        DocKind::Facts => Facts::parse(text).1,
        DocKind::Log => Log::parse(text).1,
        DocKind::Text => Vec::new(),
    }
}

fn name(path: &str, problems: &[Problem]) -> Vec<String> {
    problems.iter().map(|problem| format!("{path}, {problem}")).collect()
}

fn judge_problems(problems: &[String]) -> Finding {
    if problems.is_empty() {
        return Finding::ok("all documents are readable");
    }
    Finding::warn(format_list(problems), "correct what is named; I leave it as it is and use the rest meanwhile")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Status;
    use reveille_memory::templates::list_files;

    #[test]
    fn the_templates_are_understood() {
        for (path, text) in list_files() {
            assert_eq!(list_problems(path, text), [], "{path}");
        }
        let paths: Vec<String> = list_files().iter().map(|(path, _)| (*path).to_owned()).collect();
        let text = |path: &str| list_files().into_iter().find(|(other, _)| *other == path).unwrap().1.to_owned();
        let skills = Skills::collect(&paths, text);
        assert_eq!((skills.usable.len(), skills.problems), (3, vec![]));
    }

    #[test]
    fn too_many_tasks_are_told_for_active_and_not_for_the_backlog() {
        let tasks: String = (0..8).map(|n| format!("## Task {n}\n- touched: 2026-11-20\n\n")).collect();
        assert_eq!(list_problems(memory::ACTIVE, &tasks).len(), 1);
        assert_eq!(list_problems(memory::BACKLOG, &tasks), []);
        let named = name(memory::ACTIVE, &list_problems(memory::ACTIVE, &tasks));
        let finding = judge_problems(&named);
        assert!(finding.status == Status::Warn && finding.detail.contains("8 tasks"), "{}", finding.detail);
    }
}
