//! Checks the promises of docs/RELIABILITY.md at the end of the week, one after the other.

use std::{collections::BTreeSet, fs};

use super::{growth, world::Life};
use crate::{
    support::{claude::API_KEY, telegram::TOKEN},
    world::files,
};

/// The mark at the end of a possible repeat.
const REPEAT_MARK: &str = "↻ This may be a repeat";

/// Checks all of them.
pub(super) fn all(life: &mut Life<'_>) -> Result<(), String> {
    answers(life)?;
    budget(life)?;
    secrets(life)?;
    let checked = life.env.run(env!("CARGO_BIN_EXE_health"), &["check", "--json"]);
    if checked.code != 0 {
        return Err(format!("not healthy: {checked:#?}"));
    }
    memory(life)?;
    growth::check(&life.sizes)?;
    // Last, since it makes a commit of the person's.
    life.env.check_sound();
    Ok(())
}

/// Checks that each message was answered once, each reminder came once a slot, and nothing is left open.
fn answers(life: &Life<'_>) -> Result<(), String> {
    let open: i64 = life.env.query(
        "SELECT (SELECT count(*) FROM incoming_messages WHERE processed = 0)
         + (SELECT count(*) FROM outgoing_messages WHERE sent_at IS NULL AND taken_back_at IS NULL AND chat_id <> 0)
         + (SELECT count(*) FROM cycles WHERE state IN ('running', 'waiting', 'parked'))",
    );
    let sent = life.telegram.sent();
    if open > 0 {
        return Err(format!("{open} messages or wakes are still open: {sent:#?}"));
    }
    if let Some(repeat) = sent.iter().find(|sent| sent.visible.contains(REPEAT_MARK)) {
        return Err(format!("nothing was ever in doubt, and this was repeated: {repeat:?}"));
    }
    for (token, times) in &life.promised {
        let lines = sent.iter().flat_map(|sent| sent.visible.lines()).filter(|line| line.contains(token.as_str()));
        let found: Vec<&str> = lines.collect();
        if found.len() != *times {
            return Err(format!("{token} stands in {found:#?} and not in {times} lines, of {sent:#?}"));
        }
    }
    Ok(())
}

/// Checks that nothing was spent on the day without money, and something on the next.
fn budget(life: &Life<'_>) -> Result<(), String> {
    let spent =
        |day: &str| life.env.query::<f64>(&format!("SELECT total(cost_usd) FROM ledger WHERE at LIKE '{day}%'"));
    let (saturday, all): (f64, f64) = (spent("2026-11-28"), spent("2026"));
    let is_kept = saturday == 0.0 && all > 0.0 && all < 5.0;
    if is_kept { Ok(()) } else { Err(format!("{saturday} were spent on Saturday, {all} in all")) }
}

/// Checks that no secret is in a file other than the person's settings, in a message or in a commit.
fn secrets(life: &Life<'_>) -> Result<(), String> {
    let workspace = life.env.workspace();
    let commits = life.env.git(&["log", "--all", "-p", "--format=%B"]);
    let sent: String = life.telegram.sent().into_iter().map(|sent| sent.text).collect();
    for secret in [TOKEN, API_KEY] {
        if commits.contains(secret) || sent.contains(secret) {
            return Err("a secret is in a commit or in a message".to_owned());
        }
        for path in files(&workspace).into_iter().filter(|path| *path != workspace.join(".env")) {
            let bytes = fs::read(&path).unwrap_or_default();
            if bytes.windows(secret.len()).any(|piece| piece == secret.as_bytes()) {
                return Err(format!("a secret is in {}", path.display()));
            }
        }
    }
    Ok(())
}

/// Checks that the remote has everything, with one commit a wake, and that the commit from elsewhere is here.
fn memory(life: &Life<'_>) -> Result<(), String> {
    let remote = life.env.path("remote.git");
    let (here, there) = (life.env.git(&["rev-parse", "HEAD"]), life.env.git_in(&remote, &["rev-parse", "main"]));
    if here != there {
        return Err(format!("the remote is at {there}, the memory at {here}"));
    }
    if !life.env.brain().join("memory/from-elsewhere.md").exists() {
        return Err("what was written elsewhere isn't here".to_owned());
    }
    let ids = life.env.git(&["log", "--format=%(trailers:key=Wake-Id,valueonly,separator=%x20)"]);
    let mut seen = BTreeSet::new();
    if let Some(id) = ids.lines().map(str::trim).find(|id| !id.is_empty() && !seen.insert(*id)) {
        return Err(format!("the wake {id} has committed twice"));
    }
    life.env.git_in(&remote, &["fsck", "--strict", "--no-dangling"]);
    Ok(())
}
