//! `disk`: room for the queue and the memory. Nothing is lost when the disk is full, but nothing works either.

use std::path::Path;

use crate::health::{
    finding::{Finding, Trouble},
    scene::Scene,
    words::size,
};

/// Below this little room a person should make some.
const WARN_BYTES: u64 = 1 << 30;
/// Below this little room a wake may fail.
const CRITICAL_BYTES: u64 = 100 << 20;

pub(super) fn check(scene: &Scene<'_>) -> Result<Finding, Trouble> {
    let dir = &scene.config.workspace_dir;
    // Before the first wake, the directory that it will be made in.
    let there = dir.ancestors().find(|dir| dir.exists()).unwrap_or(Path::new("/"));
    Ok(judge(there, free_bytes(there)?))
}

fn free_bytes(dir: &Path) -> Result<u64, Trouble> {
    let found = rustix::fs::statvfs(dir).map_err(Trouble::io("asking for the free space at", dir))?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

fn judge(dir: &Path, free_bytes: u64) -> Finding {
    let detail = format!("{} free at {}", size(free_bytes), dir.display());
    let fix = "free some space on that disk; nothing that was said is lost meanwhile";
    match free_bytes {
        ..CRITICAL_BYTES => Finding::critical(detail, fix),
        CRITICAL_BYTES..WARN_BYTES => Finding::warn(detail, fix),
        WARN_BYTES.. => Finding::ok(detail),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Status;

    #[test]
    fn the_lines_are_where_they_are_said_to_be() {
        let status = |bytes| judge(Path::new("/w"), bytes).status;
        assert_eq!(status(CRITICAL_BYTES - 1), Status::Critical);
        assert_eq!((status(CRITICAL_BYTES), status(WARN_BYTES - 1)), (Status::Warn, Status::Warn));
        assert_eq!(status(WARN_BYTES), Status::Ok);
    }

    #[test]
    fn a_real_disk_has_room_and_a_full_one_none() {
        assert!(free_bytes(Path::new("/")).unwrap() > 0);
        // The kernel's own file systems have no room at all.
        #[cfg(target_os = "linux")]
        assert_eq!(judge(Path::new("/proc"), free_bytes(Path::new("/proc")).unwrap()).status, Status::Critical);
    }
}
