//! `/log [n]`: lists the last wakes with their ids for /undo. A guest's chat sees its own wakes.

use reveille_account::log::{self, LogQuery};
use reveille_git::Committed;
use reveille_memory::outside;
use reveille_store::Result;

use super::{super::batch::Asked, Desk};

/// Number of wakes listed by default.
const DEFAULT_SHOWN: usize = 5;
/// Maximum number of listed wakes.
const MAX_SHOWN: usize = 20;

pub(super) fn answer(desk: &Desk<'_>, asked: &Asked) -> Result<String> {
    let chat = asked.message.chat;
    let n = asked.args.parse().unwrap_or(DEFAULT_SHOWN).clamp(1, MAX_SHOWN);
    let memory = Committed::open(&desk.config.repo_dir()).ok().flatten();
    let query = LogQuery { lines: n, chat: (!desk.is_owners(chat)).then_some(chat), ..LogQuery::default() };
    let subject = |commit: &str| memory.as_ref()?.find_subject(commit);
    // Secrets are masked in every answer anyway; only the marks of untrusted text are left to strip.
    let shown = |text: &str| outside::strip_marks(text).into_owned();
    let lines = log::list_wakes(desk.store, query, subject, &shown)?;
    let lines: Vec<String> = lines.iter().map(|line| line.render_for_chat(desk.now, desk.config.timezone)).collect();
    Ok(render_log(&lines))
}

fn render_log(lines: &[String]) -> String {
    match lines {
        [] => "I haven't done anything yet.".to_owned(),
        lines => format!("{}\n\nTo undo one, send /undo with its id. /log 20 shows more.", lines.join("\n")),
    }
}
