//! Desktop notifications on this machine: a hint about a message in the terminal, not a delivery.

use std::time::Duration;

use reveille_base::{
    process::{self, Spec},
    words::truncate_text,
};
use reveille_memory::render;

/// The time-out of a notification.
const TIMEOUT: Duration = Duration::from_secs(3);
/// The maximum length of a shown text in characters.
const MAX_CHARS: usize = 300;
/// The script for macOS. The text is an argument of the script rather than a part of it.
const APPLE_SCRIPT: [&str; 3] =
    ["on run argv", "display notification (item 1 of argv) with title \"Reveille\"", "end run"];

/// The kind of desktop.
#[derive(Clone, Copy)]
enum DesktopKind {
    Mac,
    /// A desktop by the standards of freedesktop.org.
    Free,
}

impl DesktopKind {
    const OF_THIS_MACHINE: Self = if cfg!(target_os = "macos") { Self::Mac } else { Self::Free };
}

/// Shows a notification. Returns true if the command succeeded.
pub fn notify(markdown: &str) -> bool {
    let result = process::run(&build_notification(markdown, DesktopKind::OF_THIS_MACHINE));
    result.is_ok_and(|output| output.status.success())
}

/// Builds the notification command. No shell reads the text, and no option can hide in it.
fn build_notification(markdown: &str, desktop: DesktopKind) -> Spec {
    let text = truncate_text(&render::render_terminal(markdown, render::Looks::Plain), MAX_CHARS);
    let spec = match desktop {
        DesktopKind::Mac => {
            let lines = APPLE_SCRIPT.iter().flat_map(|line| ["-e", line]);
            Spec::new("osascript").args(lines).args(["--", &text])
        }
        DesktopKind::Free => {
            // The notification daemon interprets some markup.
            let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            Spec::new("notify-send").args(["--app-name=Reveille", "--", "Reveille", &text])
        }
    };
    spec.timeout(TIMEOUT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(markdown: &str, desktop: DesktopKind) -> Vec<String> {
        build_notification(markdown, desktop).command_line().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn the_text_is_one_argument_and_no_option() {
        let text = "--urgency=critical $(rm -rf ~) **<b>now</b>** & \x1b[31mhere";
        assert_eq!(
            words(text, DesktopKind::Free),
            [
                "notify-send",
                "--app-name=Reveille",
                "--",
                "Reveille",
                "--urgency=critical $(rm -rf ~) &lt;b&gt;now&lt;/b&gt; &amp; here"
            ]
        );
        let mac = words("-e \"do shell script\"", DesktopKind::Mac);
        assert_eq!(mac[mac.len() - 2..], ["--", "-e \"do shell script\""]);
    }

    #[test]
    fn a_long_text_is_cut() {
        assert_eq!(words(&"x".repeat(1_000), DesktopKind::Free)[4].chars().count(), MAX_CHARS);
    }
}
