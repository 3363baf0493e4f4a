//! The answer in a terminal while it is written. It is temporary text: the answer itself is printed when it is complete.

use std::time::Duration;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use reveille_base::{approval_text::escape_hidden, types::ChatRef};
use reveille_config::Config;
use reveille_live::{LiveReader, Preview};

use super::{
    background::BackgroundThread,
    out::{self, TerminalSize},
};

/// How often to look for more.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The first line, which tells a preview from an answer.
const WRITING: &str = "writing…";
/// The beginning of each line of a preview.
const MARGIN: &str = "  │ ";
/// Rows left for what stands above.
const OTHER_ROWS: usize = 4;

/// Follows the preview of this terminal's cycle.
pub(super) struct TerminalPreview {
    reader: LiveReader,
    /// A plain terminal may not support the control sequences that remove several lines.
    is_plain: bool,
}

impl TerminalPreview {
    pub(super) fn new(config: &Config) -> Self {
        Self { reader: LiveReader::new(config.live_path()), is_plain: config.no_color }
    }

    /// Shows the preview in place of the temporary line until the returned value is dropped. `None` without a terminal.
    pub(super) fn show_until_dropped(config: &Config, otherwise: &'static str) -> Option<BackgroundThread> {
        let mut preview = out::terminal_size().map(|_| Self::new(config))?;
        let mut has_shown = false;
        // Another temporary line stays, unless a preview has replaced it.
        let show = move || match preview.render() {
            Some(text) => {
                has_shown = true;
                out::say_instead(&text);
            }
            None if std::mem::take(&mut has_shown) => out::say_instead(otherwise),
            None => {}
        };
        Some(BackgroundThread::repeat_until_dropped(LOOK_EVERY, show))
    }

    /// Renders the text by now. `None` if nothing is being written.
    pub(super) fn render(&mut self) -> Option<String> {
        if self.is_plain {
            return None;
        }
        self.reader.refresh();
        let preview = self.reader.preview().filter(|preview| preview.watched.chat == ChatRef::TERMINAL)?;
        render_preview(preview, out::terminal_size()?)
    }
}

fn render_preview(preview: &Preview, size: TerminalSize) -> Option<String> {
    let joined = preview.joined.as_ref().map(|joined| format!("(added: {joined})"));
    let parts: Vec<&str> =
        [preview.words(), joined.as_deref().unwrap_or_default()].into_iter().filter(|part| !part.is_empty()).collect();
    let text = escape_hidden(&parts.join("\n"));
    if text.is_empty() {
        return None;
    }
    // A wrapped line would not be removed.
    let columns = size.columns.saturating_sub(MARGIN.width() + 1).max(1);
    let lines: Vec<String> = text.lines().flat_map(|line| wrap_line(line, columns)).collect();
    let shown = size.rows.saturating_sub(OTHER_ROWS).max(1);
    let last = lines.get(lines.len().saturating_sub(shown)..).unwrap_or_default();
    let rows = last.iter().map(|line| format!("{MARGIN}{line}"));
    Some([WRITING.to_owned()].into_iter().chain(rows).collect::<Vec<_>>().join("\n"))
}

/// Breaks a line at blanks, and within longer words.
fn wrap_line(line: &str, columns: usize) -> Vec<String> {
    let line = line.replace('\t', "    ");
    let (mut lines, mut last, mut width) = (Vec::new(), String::new(), 0);
    for word in line.split_inclusive(' ') {
        if width > 0 && width + word.trim_end().width() > columns {
            lines.push(std::mem::take(&mut last));
            width = 0;
        }
        for c in word.chars() {
            let of_char = c.width().unwrap_or(0);
            if width + of_char > columns {
                if c == ' ' {
                    continue;
                }
                lines.push(std::mem::take(&mut last));
                width = 0;
            }
            last.push(c);
            width += of_char;
        }
    }
    lines.push(last);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_blanks_and_in_long_words() {
        assert_eq!(wrap_line("one two three", 8), ["one two ", "three"]);
        assert_eq!(wrap_line("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        assert_eq!(wrap_line("日本語です", 4), ["日本", "語で", "す"]);
        assert_eq!(wrap_line("", 4), [""]);
    }
}
