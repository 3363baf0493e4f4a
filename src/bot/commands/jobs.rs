//! `/jobs`: lists the standing jobs and their next planned runs.

use reveille_base::words::format_near_time;
use reveille_store::{JobRow, Result};

use super::Desk;

pub(super) fn answer(desk: &Desk<'_>) -> Result<String> {
    let rows = desk.store.jobs().list_jobs()?;
    let line = |row: &JobRow| {
        let next = row.next.map(|slot| format!("next {}", format_near_time(slot.at, desk.now, desk.config.timezone)));
        let next = next.unwrap_or_else(|| "no run planned".to_owned());
        let failed = if row.failures == 0 { "" } else { "; its last run failed" };
        format!("- **{}** — {}; {next}{failed}", row.name, row.read_from)
    };
    Ok(match rows.as_slice() {
        [] => "No jobs yet. To add one, create a file `memory/jobs/<name>.md`.".to_owned(),
        rows => rows.iter().map(line).collect::<Vec<_>>().join("\n"),
    })
}
