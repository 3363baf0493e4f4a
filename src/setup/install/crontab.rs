//! Edits the person's crontab. Each of our lines ends with a marker, a shell comment, so we recognise the line even if the person has moved
//! it. All other bytes stay.

use std::path::Path;

use reveille_base::words::quote_for_shell;

use super::Installation;

/// The marker at the end of our lines.
const MARK: &str = "# reveille: wake install --uninstall takes this line out";
/// The search path for cron, whose own path lacks Homebrew's git and the person's own installations.
const PATH_DIRS: &str = "/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin:/usr/sbin:/sbin";

/// Returns a crontab with our current lines at its end, once each.
pub fn add_our_lines(crontab: &str, to: &Installation) -> String {
    let mut text = remove_our_lines(crontab);
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let mut line = |when: &str, command: &str| {
        // An unescaped % ends a cron command.
        text.push_str(&format!("{when} {} {MARK}\n", command.replace('%', "\\%")));
    };
    line("*/5 * * * *", &render_command(to, "wake", "--once --reason cron"));
    line("2-59/15 * * * *", &render_command(to, "health", "check --quiet"));
    if to.with_bot {
        line("*/5 * * * *", &bot_command(to));
    }
    text
}

/// Returns a crontab without our lines.
pub fn remove_our_lines(crontab: &str) -> String {
    crontab.split_inclusive('\n').filter(|line| !line.trim_end().ends_with(MARK)).collect()
}

/// Lists our lines in a crontab, without the marker.
pub(super) fn list_our_lines(crontab: &str) -> impl Iterator<Item = &str> {
    crontab.lines().filter_map(|line| line.trim_end().strip_suffix(MARK))
}

/// Lists the other lines of a crontab.
pub(super) fn list_other_lines(crontab: &str) -> impl Iterator<Item = &str> {
    crontab.lines().filter(|line| !line.trim_end().ends_with(MARK))
}

/// Builds the shell command that starts a bot unless one is running. The bot writes its own log; earlier output goes to a file.
pub fn bot_command(to: &Installation) -> String {
    let log = quote_for_shell(&to.bot_errors());
    format!("umask 077; {} >>{log} 2>&1", render_command(to, "bot", "--unless-running"))
}

fn render_command(to: &Installation, program: &str, arguments: &str) -> String {
    let file = |file: &Path| format!(" --env-file {}", quote_for_shell(file));
    let path = quote_for_shell(Path::new(&format!("{PATH_DIRS}:{}", to.home.join(".local/bin").display())));
    format!(
        "PATH={path} WORKSPACE_DIR={} {} {arguments}{}",
        quote_for_shell(&to.workspace),
        quote_for_shell(&to.bin.join(program)),
        to.env_file.as_deref().map_or_else(String::new, file)
    )
}
