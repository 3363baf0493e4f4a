//! cron's lines, as a change to the person's own crontab. Each of ours ends in a mark, which is a comment to the shell: by that
//! it is found again, wherever it has gone. Every other byte stays.

use std::path::Path;

use reveille_base::words::in_shell;

use super::Installation;

/// What each of our lines ends in.
const MARK: &str = "# reveille: wake install --uninstall takes this line out";
/// cron's own path has no git of Homebrew's, nor what people install for themselves.
const PATH_DIRS: &str = "/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin:/usr/sbin:/sbin";

/// A crontab with our lines at its end, once each, and as they are now.
pub fn with_lines(crontab: &str, to: &Installation) -> String {
    let mut text = without_lines(crontab);
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let mut line = |when: &str, command: &str| {
        // A % ends cron's line, unless it is escaped.
        text.push_str(&format!("{when} {} {MARK}\n", command.replace('%', "\\%")));
    };
    line("*/5 * * * *", &command(to, "wake", "--once --reason cron"));
    line("2-59/15 * * * *", &command(to, "health", "check --quiet"));
    if to.with_bot {
        line("*/5 * * * *", &bot_command(to));
    }
    text
}

/// A crontab without our lines.
pub fn without_lines(crontab: &str) -> String {
    crontab.split_inclusive('\n').filter(|line| !line.trim_end().ends_with(MARK)).collect()
}

/// Our lines in a crontab, without their mark.
pub(super) fn our_lines(crontab: &str) -> impl Iterator<Item = &str> {
    crontab.lines().filter_map(|line| line.trim_end().strip_suffix(MARK))
}

/// A crontab's lines but for ours.
pub(super) fn without_our_lines(crontab: &str) -> impl Iterator<Item = &str> {
    crontab.lines().filter(|line| !line.trim_end().ends_with(MARK))
}

/// The shell's command that starts a bot unless one runs. Its log is its own affair; what it says before it has one is kept, too.
pub fn bot_command(to: &Installation) -> String {
    let log = in_shell(&to.bot_errors());
    format!("umask 077; {} >>{log} 2>&1", command(to, "bot", "--unless-running"))
}

fn command(to: &Installation, program: &str, arguments: &str) -> String {
    let file = |file: &Path| format!(" --env-file {}", in_shell(file));
    let path = in_shell(Path::new(&format!("{PATH_DIRS}:{}", to.home.join(".local/bin").display())));
    format!(
        "PATH={path} WORKSPACE_DIR={} {} {arguments}{}",
        in_shell(&to.workspace),
        in_shell(&to.bin.join(program)),
        to.env_file.as_deref().map_or_else(String::new, file)
    )
}
