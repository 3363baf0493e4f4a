//! Renders Markdown for a terminal, from the same parse as for Telegram.

use std::ops::Range;

use super::{
    Links, blocks,
    styled::{Span, Style, Styled},
};

/// The prefix of each line of a quotation.
const QUOTED: &str = "│ ";
/// The indentation of code blocks and tables.
const BLOCK: &str = "    ";
/// The sequence that ends all formatting.
const RESET: &str = "\x1b[0m";

/// The abilities of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looks {
    /// Formatting by ANSI sequences.
    Ansi,
    /// Plain text with layout.
    Plain,
}

/// Renders Markdown for a terminal, without a final line break. Each link's address follows its label.
pub fn render_terminal(markdown: &str, looks: Looks) -> String {
    let styled = blocks::parse_markdown(&without_escapes(markdown), Links::Clickable);
    let mut page = Page { looks, out: String::new(), open: Vec::new(), active: String::new(), is_line_begun: false };
    page.write_styled(&styled);
    page.out
}

/// Removes sequences that a terminal would act on: escape sequences, and control characters except line breaks and tabs. A carriage return,
/// which would overwrite the line, becomes a line break.
pub fn without_escapes(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\x1b' => skip_escape(&mut chars),
            '\u{9b}' => skip_control(&mut chars),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => skip_string(&mut chars),
            '\r' => shown.extend((chars.peek() != Some(&'\n')).then_some('\n')),
            '\n' | '\t' => shown.push(c),
            c if c.is_control() => {}
            c => shown.push(c),
        }
    }
    shown
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Skips the rest of an escape sequence.
fn skip_escape(chars: &mut Chars<'_>) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            skip_control(chars);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            chars.next();
            skip_string(chars);
        }
        _ => {
            while chars.next_if(|c| (' '..='/').contains(c)).is_some() {}
            chars.next_if(|c| ('0'..='~').contains(c));
        }
    }
}

/// Skips parameters and the final letter of a control sequence.
fn skip_control(chars: &mut Chars<'_>) {
    while chars.next_if(|c| (' '..='?').contains(c)).is_some() {}
    chars.next_if(|c| ('@'..='~').contains(c));
}

/// Skips a control string, such as a title. An unterminated string hides at most its line.
fn skip_string(chars: &mut Chars<'_>) {
    while let Some(c) = chars.next_if(|c| *c != '\n') {
        match c {
            '\x07' | '\u{9c}' => return,
            '\x1b' => {
                chars.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
}

/// The page being written.
struct Page<'a> {
    looks: Looks,
    out: String,
    /// The open spans, outermost first.
    open: Vec<&'a Span>,
    /// The active escape sequences.
    active: String,
    is_line_begun: bool,
}

impl<'a> Page<'a> {
    fn write_styled(&mut self, styled: &'a Styled) {
        let mut at = 0;
        for span in &styled.spans {
            at = self.close_until(styled, at, span.range.start);
            at = self.write_piece(styled, at..span.range.start);
            self.open.push(span);
            self.restyle();
        }
        at = self.close_until(styled, at, usize::MAX);
        self.write_piece(styled, at..styled.text.len());
    }

    /// Appends the text from `at` on, and closes the spans that end at or before `until`. Returns the position reached.
    fn close_until(&mut self, styled: &Styled, mut at: usize, until: usize) -> usize {
        while let Some(span) = self.open.last().copied().filter(|span| span.range.end <= until) {
            at = self.write_piece(styled, at..span.range.end);
            self.open.pop();
            self.restyle();
            let label = styled.visible_text(&span.range);
            if let Style::Link { url } = &span.style
                && url.strip_prefix("mailto:").unwrap_or(url) != label
                && url != label
            {
                self.write_text(&format!(" ({url})"));
            }
        }
        at
    }

    /// Appends a piece of the text and returns its end.
    fn write_piece(&mut self, styled: &Styled, piece: Range<usize>) -> usize {
        self.write_text(styled.visible_text(&piece));
        piece.end
    }

    fn write_text(&mut self, text: &str) {
        for line in text.split_inclusive('\n') {
            let words = line.strip_suffix('\n').unwrap_or(line);
            if !self.is_line_begun {
                self.begin_line(words.is_empty());
            }
            self.out.push_str(words);
            if words.len() < line.len() {
                self.end_line();
            }
        }
    }

    fn begin_line(&mut self, is_empty: bool) {
        for span in &self.open {
            match span.style {
                Style::Quote => self.out.push_str(if is_empty { QUOTED.trim_end() } else { QUOTED }),
                Style::Pre { .. } if !is_empty => self.out.push_str(BLOCK),
                _ => {}
            }
        }
        self.is_line_begun = true;
        self.restyle();
    }

    /// Ends a line. Formatting ends too, because the prefix of the next line has none.
    fn end_line(&mut self) {
        if !self.active.is_empty() {
            self.out.push_str(RESET);
            self.active.clear();
        }
        self.out.push('\n');
        self.is_line_begun = false;
    }

    /// Applies the styles of the open spans. Between lines, waits for the next line to begin.
    fn restyle(&mut self) {
        let codes = self.style_codes();
        if self.is_line_begun && codes != self.active {
            if !self.active.is_empty() {
                self.out.push_str(RESET);
            }
            self.out.push_str(&codes);
            self.active = codes;
        }
    }

    fn style_codes(&self) -> String {
        if self.looks == Looks::Plain {
            return String::new();
        }
        let code = |span: &&Span| match span.style {
            Style::Heading => Some("\x1b[1;4m"),
            Style::Bold => Some("\x1b[1m"),
            Style::Italic => Some("\x1b[3m"),
            Style::Strike => Some("\x1b[9m"),
            Style::Code => Some("\x1b[36m"),
            Style::Link { .. } => Some("\x1b[4m"),
            Style::Quote | Style::Pre { .. } => None,
        };
        self.open.iter().filter_map(code).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Today\n\nWrite to **Anna _soon_**, see [her page](https://anna.example/x) or <https://b.example>.\n\n\
        - milk\n- eggs\n  1. brown\n  2. `white`\n     - small\n- [x] bread\n\n\
        > She said:\n> so be it\n>\n> twice\n\n```sh\nls -l\n\n  pwd\n```\n\n\
        | what | how many |\n|---|--:|\n| tea | 2 |\n| **coffee** | 10 |\n\n~~gone~~";

    #[test]
    fn markdown_is_laid_out_without_colours() {
        insta::assert_snapshot!(render_terminal(PAGE, Looks::Plain), @r"
        Today
        Write to Anna soon, see her page (https://anna.example/x) or https://b.example.

        • milk
        • eggs
           1. brown
           2. white
              • small
        • ☑ bread

        │ She said:
        │ so be it
        │
        │ twice

            ls -l

              pwd

            what    how many
            ──────  ────────
            tea            2
            coffee        10

        gone
        ");
    }

    #[test]
    fn formatting_becomes_sequences_that_end_with_their_line() {
        let shown = render_terminal("# A **head**\n\n**a\nb** and `c`\n\n> *d*", Looks::Ansi).replace('\x1b', "^");
        insta::assert_snapshot!(shown, @r"
        ^[1;4mA head^[0m
        ^[1ma^[0m
        ^[1mb^[0m and ^[36mc^[0m

        │ ^[3md^[0m
        ");
        for line in render_terminal(PAGE, Looks::Ansi).lines() {
            let (_, last) = line.rsplit_once("\x1b[").unwrap_or(("", "0m"));
            assert!(last.starts_with("0m"), "{line:?}");
        }
    }

    #[test]
    fn no_sequence_of_a_text_reaches_the_terminal() {
        for (text, shown) in [
            ("\x1b[31mred\x1b[0m", "red"),
            ("\x1b]0;title\x07after", "after"),
            ("\x1b]52;c;aGVsbG8=\x1b\\after", "after"),
            ("\x1b]8;;https://evil.example\x1b\\label\x1b]8;;\x1b\\", "label"),
            ("\u{9b}2Jcleared", "cleared"),
            ("\x1b(Bset \x1b7saved \x1bcreset", "set saved reset"),
            ("an open \x1b]0;string\nhides its line", "an open \nhides its line"),
            ("over\rwritten\r\nnext\x08\x07\x1b", "over\nwritten\nnext"),
            ("tab\tand\nline", "tab\tand\nline"),
        ] {
            assert_eq!(without_escapes(text), shown, "{text:?}");
            assert!(!render_terminal(text, Looks::Ansi).contains('\x1b'), "{text:?}");
        }
    }

    #[test]
    fn a_text_without_markdown_is_as_it_was() {
        assert_eq!(
            render_terminal("Remembered: the wifi code is 1234", Looks::Ansi),
            "Remembered: the wifi code is 1234"
        );
    }
}
