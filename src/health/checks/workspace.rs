//! `workspace`: the directory exists, belongs to us, and is closed to others.

use std::{
    io::ErrorKind,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use rustix::fs::Access;

use crate::health::{
    finding::{Finding, Trouble},
    remedy::Remedy,
    scene::Scene,
};

/// The owner and permissions of a file.
struct Guarded {
    path: PathBuf,
    is_dir: bool,
    owner: u32,
    mode: u32,
}

struct Facts {
    path: PathBuf,
    /// `None` if nothing exists there.
    dir: Option<Guarded>,
    can_write: bool,
    /// The existing files with secrets and conversations.
    private: Vec<Guarded>,
    us: u32,
}

pub(super) fn check(scene: &Scene<'_>) -> Result<Finding, Trouble> {
    Ok(judge_facts(&read_facts(scene)?))
}

fn read_facts(scene: &Scene<'_>) -> Result<Facts, Trouble> {
    let config = scene.config;
    let private = [config.env_file.clone(), Some(config.db_path())];
    let private = private.into_iter().flatten().map(|path| find_guarded(&path));
    Ok(Facts {
        path: config.workspace_dir.clone(),
        dir: find_guarded(&config.workspace_dir)?,
        can_write: rustix::fs::access(&config.workspace_dir, Access::WRITE_OK).is_ok(),
        private: private.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect(),
        us: rustix::process::geteuid().as_raw(),
    })
}

fn find_guarded(path: &Path) -> Result<Option<Guarded>, Trouble> {
    match std::fs::metadata(path) {
        Ok(found) => Ok(Some(Guarded {
            path: path.to_owned(),
            is_dir: found.is_dir(),
            owner: found.uid(),
            mode: found.mode() & 0o7777,
        })),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Trouble::io("looking at", path)(error)),
    }
}

fn judge_facts(facts: &Facts) -> Finding {
    let path = facts.path.display();
    let Some(dir) = &facts.dir else {
        return Finding::warn(
            format!("{path} doesn't exist yet"),
            "wake --once creates it; WORKSPACE_DIR sets its place",
        );
    };
    if !dir.is_dir {
        return Finding::critical(format!("{path} isn't a directory"), "move it away, or choose another WORKSPACE_DIR");
    }
    if !facts.can_write {
        return Finding::critical(
            format!("{path} can't be written to (owner uid {}, mode {:04o})", dir.owner, dir.mode),
            format!("run this as its owner, or chown it: chown -R \"$USER\" '{path}'"),
        );
    }
    let mut findings = Vec::new();
    if dir.owner != facts.us {
        findings.push(Finding::warn(
            format!("{path} belongs to another user (uid {})", dir.owner),
            format!("run this as that user, or make it yours: chown -R \"$USER\" '{path}'"),
        ));
    }
    // Some machines are set up with group read access. Group write access lets others decide over the assistant.
    if dir.mode & 0o027 != 0 {
        findings.push(open_to_others(dir, dir.mode & !0o027));
    }
    let open = facts.private.iter().filter(|file| file.mode & 0o044 != 0);
    findings.extend(open.map(|file| open_to_others(file, 0o600)));
    Finding::merge_all(findings, Finding::ok(format!("{path}, yours alone")))
}

fn open_to_others(file: &Guarded, mode: u32) -> Finding {
    let path = file.path.display();
    let open = format!("{path} is open to other users (mode {:04o})", file.mode);
    let finding = Finding::warn(open, format!("chmod {mode:o} '{path}'"));
    // Group read access may be intended, so it is left to a person.
    let is_plain = file.is_dir || file.mode & 0o004 != 0;
    if is_plain { finding.with_remedy(Remedy::CloseToOthers { path: file.path.clone(), mode }) } else { finding }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Status;

    fn file(path: &str, mode: u32, is_dir: bool) -> Guarded {
        Guarded { path: path.into(), is_dir, owner: 1000, mode }
    }

    fn facts(dir_mode: u32) -> Facts {
        Facts {
            path: "/w".into(),
            dir: Some(file("/w", dir_mode, true)),
            can_write: true,
            private: Vec::new(),
            us: 1000,
        }
    }

    #[test]
    fn others_may_not_read_and_a_group_may_not_write() {
        assert_eq!(judge_facts(&facts(0o700)).status, Status::Ok);
        assert_eq!(judge_facts(&facts(0o750)).status, Status::Ok);
        assert_eq!(judge_facts(&facts(0o770)).status, Status::Warn);
        assert_eq!(judge_facts(&facts(0o755)).fix.as_deref(), Some("chmod 750 '/w'"));
        assert_eq!(judge_facts(&facts(0o2770)).fix.as_deref(), Some("chmod 2750 '/w'"));
    }

    #[test]
    fn secrets_and_conversations_are_for_their_owner() {
        let mut private = facts(0o700);
        private.private = vec![file("/w/.env", 0o600, false), file("/w/messages.db", 0o600, false)];
        assert_eq!(judge_facts(&private).status, Status::Ok);
        private.private.push(file("/home/me/.env", 0o644, false));
        assert_eq!(judge_facts(&private).fix.as_deref(), Some("chmod 600 '/home/me/.env'"));
    }

    #[test]
    fn an_unusable_workspace_is_critical_and_a_missing_one_is_not() {
        let mut missing = facts(0o700);
        missing.dir = None;
        assert_eq!(judge_facts(&missing).status, Status::Warn);
        let mut closed = facts(0o500);
        closed.can_write = false;
        assert_eq!(judge_facts(&closed).status, Status::Critical);
        let mut not_a_dir = facts(0o700);
        not_a_dir.dir = Some(file("/w", 0o600, false));
        assert_eq!(judge_facts(&not_a_dir).status, Status::Critical);
        let mut foreign = facts(0o700);
        foreign.us = 7;
        assert!(judge_facts(&foreign).detail.contains("uid 1000"));
    }
}
