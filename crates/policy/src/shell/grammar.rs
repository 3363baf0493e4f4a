//! The second reader: the tree of a full grammar of bash (tree-sitter-bash), restricted to plain kinds of nodes.
//!
//! It shares no tables or quoting rules with our lexer, so that only the same mistake in both would slip through. It gets only text that
//! the lexer accepted: short, without control characters, and not nested.

use tree_sitter::{Node, Parser};

use super::{Joint, Simple};

/// Returns the plain commands of a text; `None` if its tree holds anything else.
pub(super) fn parse_commands(text: &str) -> Option<Vec<Simple>> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
    let tree = parser.parse(replace_non_ascii(text), None)?;
    let root = tree.root_node();
    if root.kind() != "program" || root.has_error() {
        return None;
    }
    let mut reading = Reading { text, end: 0, joint: Joint::Then, commands: Vec::new() };
    reading.read_sequence(root)?;
    reading.check_gap(text.len())?;
    Some(reading.commands)
}

/// Replaces each non-ASCII byte by a letter, since the grammar's scanner looks characters up in a table of 256. A letter never makes text
/// plainer: it can only complete a variable or an assignment, and both are refused.
fn replace_non_ascii(text: &str) -> Vec<u8> {
    text.bytes().map(|byte| if byte.is_ascii() { byte } else { b'x' }).collect()
}

struct Reading<'t> {
    text: &'t str,
    /// The end of the last leaf read. Only blanks may lie between leaves.
    end: usize,
    joint: Joint,
    commands: Vec<Simple>,
}

impl<'t> Reading<'t> {
    /// Reads the children of a program, a list, a pipeline or a statement with redirections.
    fn read_sequence(&mut self, parent: Node<'_>) -> Option<()> {
        let mut cursor = parent.walk();
        for child in parent.children(&mut cursor) {
            match child.kind() {
                "list" | "pipeline" | "redirected_statement" => self.read_sequence(child)?,
                "command" => self.read_command(child)?,
                "file_redirect" => self.read_redirect(child)?,
                operator => {
                    self.joint = match operator {
                        ";" | "\n" => Joint::Then,
                        "&&" => Joint::And,
                        "||" => Joint::Or,
                        "|" => Joint::Pipe,
                        _ => return None,
                    };
                    self.read_leaf(child)?;
                }
            }
        }
        Some(())
    }

    fn read_command(&mut self, command: Node<'_>) -> Option<()> {
        let mut words = Vec::new();
        let mut cursor = command.walk();
        for child in command.children(&mut cursor) {
            let (is_name, word) = match child.kind() {
                "command_name" if child.child_count() == 1 => (true, child.child(0)?),
                "command_name" => return None,
                _ => (false, child),
            };
            // The name comes first, and only once.
            if is_name != words.is_empty() {
                return None;
            }
            match words.is_empty() {
                true => self.check_gap(word.start_byte())?,
                false => self.check_blank(word.start_byte())?,
            }
            words.push(self.read_word(word)?);
        }
        let joint = std::mem::replace(&mut self.joint, Joint::Then);
        (!words.is_empty()).then(|| self.commands.push(Simple { joint, words }))
    }

    fn read_word(&mut self, node: Node<'_>) -> Option<String> {
        if node.kind() == "concatenation" {
            let mut whole = String::new();
            let mut cursor = node.walk();
            for part in node.children(&mut cursor) {
                if part.start_byte() != self.end && !whole.is_empty() {
                    return None;
                }
                self.check_gap(part.start_byte())?;
                whole.push_str(&self.read_part(part)?);
            }
            return Some(whole);
        }
        self.check_gap(node.start_byte())?;
        self.read_part(node)
    }

    fn read_part(&mut self, node: Node<'_>) -> Option<String> {
        let source = self.text.get(node.byte_range())?;
        self.end = node.end_byte();
        match node.kind() {
            "word" | "number" => (node.named_child_count() == 0).then(|| unescape_word(source)).flatten(),
            "raw_string" => source.strip_prefix('\'')?.strip_suffix('\'').map(str::to_owned),
            "string" => {
                let mut cursor = node.walk();
                let is_text = node.named_children(&mut cursor).all(|child| child.kind() == "string_content");
                let inside = source.strip_prefix('"')?.strip_suffix('"')?;
                is_text.then(|| remove_escapes(inside, &["\\\\", "\\\"", "\\$", "\\`"]))
            }
            _ => None,
        }
    }

    /// Accepts a harmless redirection.
    fn read_redirect(&mut self, node: Node<'_>) -> Option<()> {
        let source = self.text.get(node.byte_range())?;
        let (sign, target) = source.split_at_checked(source.find('/').or_else(|| source.rfind('&'))?)?;
        let is_harmless = match target {
            "/dev/null" => matches!(sign, ">" | "1>" | "2>" | "<"),
            "&1" => sign == "2>",
            "&2" => matches!(sign, ">" | "1>"),
            _ => false,
        };
        self.check_blank(node.start_byte())?;
        self.end = node.end_byte();
        is_harmless.then_some(())
    }

    fn read_leaf(&mut self, node: Node<'_>) -> Option<()> {
        self.check_gap(node.start_byte())?;
        self.end = node.end_byte();
        Some(())
    }

    /// Requires that only blanks lie between the last leaf and `to`. Line ends may lie there where the shell continues on the next line.
    fn check_gap(&mut self, to: usize) -> Option<()> {
        let between = self.text.get(self.end..to)?;
        self.end = to;
        between.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'\n')).then_some(())
    }

    /// As [`Self::check_gap`], within a command, where words must also be separated and on one line.
    fn check_blank(&mut self, to: usize) -> Option<()> {
        let between = self.text.get(self.end..to)?;
        if between.is_empty() || between.contains('\n') {
            return None;
        }
        self.check_gap(to)
    }
}

/// Unescapes a word outside quotes: each backslash stands for the character after it.
fn unescape_word(source: &str) -> Option<String> {
    let mut pieces = source.split('\\');
    let mut word = pieces.next()?.to_owned();
    while let Some(piece) = pieces.next() {
        // Two backslashes in a row stand for one.
        if piece.is_empty() {
            word.push('\\');
            word.push_str(pieces.next()?);
        } else {
            word.push_str(piece);
        }
    }
    Some(word)
}

/// Replaces each of the two-character `escapes` by its second character, from left to right.
fn remove_escapes(text: &str, escapes: &[&str]) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, _)) = rest.split_once('\\') {
        plain.push_str(before);
        rest = rest.get(before.len()..).unwrap_or_default();
        let skipped = usize::from(escapes.iter().any(|escape| rest.starts_with(escape)));
        let kept: String = rest.chars().skip(skipped).take(1).collect();
        plain.push_str(&kept);
        rest = rest.get(skipped + kept.len()..).unwrap_or_default();
    }
    plain + rest
}
