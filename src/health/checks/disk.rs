//! `disk`: free space for the queue and the memory. Below the reserve the bot takes nothing in; below a few MiB nothing
//! works.

use std::path::Path;

use reveille_base::disk::{self, Reserve};

use crate::health::{
    finding::{Finding, Trouble},
    scene::Scene,
    words::format_size,
};

/// Free space below which a person should make room.
const WARN_BYTES: u64 = 1 << 30;
/// Free space below which a wake may fail, independent of the reserve.
const FULL_BYTES: u64 = 16 << 20;

pub(super) fn check(scene: &Scene<'_>) -> Result<Finding, Trouble> {
    let dir = &scene.config.workspace_dir;
    let free_bytes = disk::free_bytes(dir).map_err(Trouble::io("reading the free space at", dir))?;
    Ok(judge_space(dir, free_bytes, scene.config.disk_reserve))
}

fn judge_space(dir: &Path, free_bytes: u64, reserve: Reserve) -> Finding {
    let detail = format!("{} free at {}", format_size(free_bytes), dir.display());
    if reserve.is_undercut_by(free_bytes) {
        return Finding::critical(
            format!(
                "{detail}, less than the reserve of {} (DISK_RESERVE_MB): the bot has stopped fetching messages, and \
                 Telegram keeps them for only a day",
                format_size(reserve.bytes())
            ),
            format!(
                "free some space on that disk; once {} are free, the bot continues on its own. Queued messages are safe",
                format_size(reserve.recovery_bytes())
            ),
        );
    }
    let fix = "free some space on that disk; no messages are lost meanwhile";
    match free_bytes {
        ..FULL_BYTES => Finding::critical(detail, fix),
        FULL_BYTES..WARN_BYTES => Finding::warn(detail, fix),
        WARN_BYTES.. => Finding::ok(detail),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Status;

    fn status(free_bytes: u64, reserve_mib: u32) -> Status {
        judge_space(Path::new("/w"), free_bytes, Reserve::from_mib(reserve_mib)).status
    }

    #[test]
    fn below_the_reserve_it_is_critical() {
        let reserve = 100 << 20;
        assert_eq!([status(reserve - 1, 100), status(reserve, 100)], [Status::Critical, Status::Warn]);
        assert_eq!([status(WARN_BYTES - 1, 100), status(WARN_BYTES, 100)], [Status::Warn, Status::Ok]);
        assert_eq!(status(WARN_BYTES, 2_000), Status::Critical);
    }

    #[test]
    fn a_full_disk_is_critical_without_a_reserve_too() {
        assert_eq!([status(FULL_BYTES - 1, 0), status(FULL_BYTES, 0)], [Status::Critical, Status::Warn]);
    }
}
