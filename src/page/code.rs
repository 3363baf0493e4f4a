//! Colours code in answers: comments, words, literals. A small reading by families of languages, since the grammars of an editor would
//! weigh more than the whole page. It never changes the text, only where a span begins and ends; an unknown language stays plain.

/// Maximum bytes of code that are coloured.
const MAX_BYTES: usize = 200_000;

/// The role of a piece of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CodeRole {
    Plain,
    Comment,
    Keyword,
    Literal,
    Number,
    Added,
    Removed,
}

impl CodeRole {
    /// The style sheet's class. `None` for plain code.
    pub(super) fn class(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Comment => Some("code-c"),
            Self::Keyword => Some("code-k"),
            Self::Literal => Some("code-s"),
            Self::Number => Some("code-n"),
            Self::Added => Some("code-a"),
            Self::Removed => Some("code-d"),
        }
    }
}

/// The shape of a language.
struct Grammar {
    line_comments: &'static [&'static str],
    block_comment: Option<(&'static str, &'static str)>,
    /// The quotes around literals; longer ones first. They may span lines if they have three characters or are backticks.
    quotes: &'static [&'static str],
    /// Words with a meaning of their own, separated by spaces.
    keywords: &'static str,
    kind: GrammarKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GrammarKind {
    Code,
    /// As code, but an apostrophe may begin a lifetime.
    Rust,
    /// As code, but `#` begins a comment only after a space.
    Shell,
    /// As code, whose words mean the same in capitals.
    Sql,
    /// Tags with attributes.
    Tags,
}

const C_LIKE: Grammar = Grammar {
    line_comments: &["//"],
    block_comment: Some(("/*", "*/")),
    quotes: &["\"\"\"", "\"", "'", "`"],
    keywords: "abstract any as async await auto bool boolean break byte case catch char class const constexpr continue default defer defun \
        delete do double else enum export extends extern false final finally float fn for foreach from func fun function go goto if \
        implements import in include inline instanceof int interface internal is let long namespace new nil null number object operator \
        out override package private protected public range readonly record return sealed select short signed sizeof static string \
        struct super switch template this throw throws true try type typedef typeof undefined union unsigned using val var virtual void \
        volatile when where while yield",
    kind: GrammarKind::Code,
};
const RUST: Grammar = Grammar {
    line_comments: &["//"],
    block_comment: Some(("/*", "*/")),
    quotes: &["\"", "'"],
    keywords: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref \
        return self Self static struct super trait true type unsafe use where while bool char f32 f64 i8 i16 i32 i64 i128 isize str u8 \
        u16 u32 u64 u128 usize String Vec Option Result Some None Ok Err",
    kind: GrammarKind::Rust,
};
const PYTHON: Grammar = Grammar {
    line_comments: &["#"],
    block_comment: None,
    quotes: &["\"\"\"", "'''", "\"", "'"],
    keywords: "and as assert async await begin break case class continue def defined del do elif else elsif end ensure except False finally \
        for from global if import in is lambda match module nil None nonlocal not or pass print raise require rescue return self super \
        then True try unless until when while with yield",
    kind: GrammarKind::Code,
};
const SHELL: Grammar = Grammar {
    line_comments: &["#"],
    block_comment: None,
    quotes: &["\"", "'", "`"],
    keywords: "alias case cd do done echo elif else esac eval exec exit export false fi for function if in local read readonly return set \
        shift source sudo test then trap true unset until while",
    kind: GrammarKind::Shell,
};
const SQL: Grammar = Grammar {
    line_comments: &["--"],
    block_comment: Some(("/*", "*/")),
    quotes: &["'", "\""],
    keywords: "add all alter and as asc begin between by case check commit constraint create cross default delete desc distinct drop else \
        end exists false foreign from full group having if in index inner insert integer into is join key left like limit not null on \
        or order outer primary real references returning right rollback select set table text then true union unique update using \
        values view when where with",
    kind: GrammarKind::Sql,
};
const DATA: Grammar = Grammar {
    line_comments: &["#", "//"],
    block_comment: None,
    quotes: &["\"\"\"", "'''", "\"", "'"],
    keywords: "true false null yes no on off",
    kind: GrammarKind::Shell,
};
const CSS: Grammar = Grammar {
    line_comments: &[],
    block_comment: Some(("/*", "*/")),
    quotes: &["\"", "'"],
    keywords: "important media supports import from to var calc none auto inherit initial",
    kind: GrammarKind::Code,
};
const TAGS: Grammar = Grammar {
    line_comments: &[],
    block_comment: Some(("<!--", "-->")),
    quotes: &["\"", "'"],
    keywords: "",
    kind: GrammarKind::Tags,
};

/// Finds the grammar for the name after a code block's fence.
fn find_grammar(name: &str) -> Option<&'static Grammar> {
    Some(match name {
        "c" | "cc" | "cpp" | "c++" | "h" | "hpp" | "cs" | "csharp" | "java" | "js" | "javascript" | "jsx" | "mjs"
        | "ts" | "typescript" | "tsx" | "go" | "golang" | "kotlin" | "kt" | "swift" | "scala" | "dart" | "php"
        | "proto" | "zig" => &C_LIKE,
        "rust" | "rs" => &RUST,
        "python" | "py" | "python3" | "ruby" | "rb" | "elixir" | "r" | "julia" | "nim" | "perl" => &PYTHON,
        "sh" | "bash" | "zsh" | "shell" | "fish" | "console" | "dockerfile" | "makefile" | "make" | "nix"
        | "powershell" => &SHELL,
        "sql" | "sqlite" | "postgres" | "postgresql" | "mysql" | "lua" | "haskell" => &SQL,
        "json" | "jsonc" | "json5" | "yaml" | "yml" | "toml" | "ini" | "conf" | "env" => &DATA,
        "css" | "scss" | "less" => &CSS,
        "html" | "xml" | "svg" | "vue" => &TAGS,
        _ => return None,
    })
}

/// Splits code into pieces with their roles. The pieces together are the code.
pub(super) fn split_code<'a>(code: &'a str, fence: &str) -> Vec<(CodeRole, &'a str)> {
    let name = fence.split([' ', ',', '{']).next().unwrap_or_default().to_ascii_lowercase();
    if code.len() > MAX_BYTES {
        return vec![(CodeRole::Plain, code)];
    }
    if matches!(name.as_str(), "diff" | "patch") {
        return code.split_inclusive('\n').map(|line| (judge_diff_line(line), line)).collect();
    }
    match find_grammar(&name) {
        Some(grammar) => {
            CodeReader { grammar, code, at: 0, plain_from: 0, pieces: Vec::new(), is_in_tag: false }.read()
        }
        None => vec![(CodeRole::Plain, code)],
    }
}

fn judge_diff_line(line: &str) -> CodeRole {
    match line.bytes().next() {
        Some(b'+') => CodeRole::Added,
        Some(b'-') => CodeRole::Removed,
        Some(b'@') => CodeRole::Comment,
        _ => CodeRole::Plain,
    }
}

struct CodeReader<'a> {
    grammar: &'static Grammar,
    code: &'a str,
    /// The end of what was read, and the beginning of its last plain piece.
    at: usize,
    plain_from: usize,
    pieces: Vec<(CodeRole, &'a str)>,
    is_in_tag: bool,
}

impl<'a> CodeReader<'a> {
    fn read(mut self) -> Vec<(CodeRole, &'a str)> {
        while let Some(c) = self.rest().chars().next() {
            let (role, length) = self.measure_next(c);
            let end = self.at + length;
            if role != CodeRole::Plain {
                self.add_plain();
                self.pieces.push((role, self.code.get(self.at..end).unwrap_or_default()));
                self.plain_from = end;
            }
            self.at = end;
        }
        self.add_plain();
        self.pieces
    }

    fn rest(&self) -> &'a str {
        self.code.get(self.at..).unwrap_or_default()
    }

    /// Adds the plain code that was passed.
    fn add_plain(&mut self) {
        let plain = self.code.get(self.plain_from..self.at).unwrap_or_default();
        if !plain.is_empty() {
            self.pieces.push((CodeRole::Plain, plain));
        }
    }

    /// Measures the next piece, which begins with `c`, in bytes.
    fn measure_next(&mut self, c: char) -> (CodeRole, usize) {
        let rest = self.rest();
        if let Some(length) = self.measure_comment(rest) {
            return (CodeRole::Comment, length);
        }
        if let Some(length) = self.measure_literal(rest) {
            return (CodeRole::Literal, length);
        }
        if c.is_ascii_digit() {
            return (CodeRole::Number, measure_number(rest));
        }
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || (self.grammar.kind == GrammarKind::Tags && c == '-');
        if is_word(c) {
            let length = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
            return (self.judge_word(rest.get(..length).unwrap_or_default()), length);
        }
        match c {
            '<' => self.is_in_tag = true,
            '>' => self.is_in_tag = false,
            _ => {}
        }
        (CodeRole::Plain, c.len_utf8())
    }

    fn measure_comment(&self, rest: &str) -> Option<usize> {
        if let Some((begin, end)) = self.grammar.block_comment
            && let Some(inside) = rest.strip_prefix(begin)
        {
            return Some(inside.find(end).map_or(rest.len(), |at| begin.len() + at + end.len()));
        }
        let begin = self.grammar.line_comments.iter().find(|begin| rest.starts_with(**begin))?;
        let before = self.code.get(..self.at).and_then(|code| code.chars().next_back());
        // `$#` in a shell and `a#b` in data are no comments, nor is the rest of an address.
        let needs_space = self.grammar.kind == GrammarKind::Shell || *begin == "//";
        if needs_space && before.is_some_and(|c| if *begin == "//" { c == ':' } else { !c.is_whitespace() }) {
            return None;
        }
        Some(rest.find('\n').unwrap_or(rest.len()))
    }

    fn measure_literal(&self, rest: &str) -> Option<usize> {
        let quote = self.grammar.quotes.iter().find(|quote| rest.starts_with(**quote))?;
        if self.grammar.kind == GrammarKind::Tags && !self.is_in_tag {
            return None;
        }
        if self.grammar.kind == GrammarKind::Rust && *quote == "'" {
            let mut chars = rest.char_indices().skip(1);
            let is_escape = matches!(chars.next(), Some((_, '\\')));
            if !is_escape && !matches!(chars.next(), Some((_, '\''))) {
                return None;
            }
        }
        let spans_lines = quote.len() == 3 || *quote == "`" || self.grammar.kind == GrammarKind::Tags;
        let inside = rest.get(quote.len()..)?;
        let mut is_escaped = false;
        for (at, c) in inside.char_indices() {
            if !is_escaped && inside.get(at..).is_some_and(|rest| rest.starts_with(*quote)) {
                return Some(quote.len() + at + quote.len());
            }
            if c == '\n' && !spans_lines {
                return Some(quote.len() + at);
            }
            is_escaped = c == '\\' && !is_escaped;
        }
        Some(rest.len())
    }

    fn judge_word(&self, word: &str) -> CodeRole {
        let is_keyword = match self.grammar.kind {
            GrammarKind::Tags => {
                let before = self.code.get(..self.at).unwrap_or_default();
                before.ends_with('<') || before.ends_with("</")
            }
            GrammarKind::Sql => self.grammar.keywords.split_whitespace().any(|known| known.eq_ignore_ascii_case(word)),
            GrammarKind::Code | GrammarKind::Rust | GrammarKind::Shell => {
                self.grammar.keywords.split_whitespace().any(|known| known == word)
            }
        };
        if is_keyword { CodeRole::Keyword } else { CodeRole::Plain }
    }
}

/// Measures a number. A point belongs to it if a digit follows.
fn measure_number(rest: &str) -> usize {
    let ends = |at: usize, c: char| {
        let behind = rest.get(at + 1..).unwrap_or_default();
        let is_point = c == '.' && behind.starts_with(|c: char| c.is_ascii_digit());
        !(c.is_ascii_alphanumeric() || c == '_' || is_point)
    };
    rest.char_indices().find(|(at, c)| ends(*at, *c)).map_or(rest.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The coloured pieces, each after the letter of its class.
    fn read(fence: &str, code: &str) -> Vec<String> {
        let pieces = split_code(code, fence);
        assert_eq!(pieces.iter().map(|(_, piece)| *piece).collect::<String>(), code, "the code is the same");
        let coloured =
            pieces.iter().filter_map(|(role, piece)| Some(format!("{}{piece}", role.class()?.strip_prefix("code-")?)));
        coloured.collect()
    }

    #[test]
    fn each_family_has_its_comments_words_and_literals() {
        assert_eq!(
            read("rust", "fn a<'a>(x: &'a str) -> char { 'x' } // \"é\"\nlet s = \"a\\\"b\"; 0x1F_u8"),
            ["kfn", "kstr", "kchar", "s'x'", "c// \"é\"", "klet", "s\"a\\\"b\"", "n0x1F_u8"]
        );
        assert_eq!(
            read("py", "def a():\n  \"\"\"two\nlines\"\"\"\n  return 1.5 # it's"),
            ["kdef", "s\"\"\"two\nlines\"\"\"", "kreturn", "n1.5", "c# it's"]
        );
        assert_eq!(read("bash", "echo $# 'a b' # c\n"), ["kecho", "s'a b'", "c# c"]);
        assert_eq!(read("SQL", "SELECT a FROM b -- c"), ["kSELECT", "kFROM", "c-- c"]);
        assert_eq!(read("json", "{\"a\": [1, true]}"), ["s\"a\"", "n1", "ktrue"]);
        assert_eq!(read("yaml", "at: http://a.example # b"), ["c# b"]);
        assert_eq!(read("html", "<p class=\"a\">it's</p><!-- b -->"), ["kp", "s\"a\"", "kp", "c<!-- b -->"]);
        assert_eq!(read("diff", "@@ 1\n-a\n+b\n c\n"), ["c@@ 1\n", "d-a\n", "a+b\n"]);
        assert_eq!(read("js", "`a\n${b}` /* open"), ["s`a\n${b}`", "c/* open"]);
        assert_eq!(read("brainfuck", "if \"a\""), [""; 0]);
        assert_eq!(read("", "if \"a\""), [""; 0]);
    }

    proptest::proptest! {
        /// Whatever the code is, its pieces are it.
        #[test]
        fn no_code_is_changed(code in "[a-z0-9'\"`/*#<>\\\\\n é-]{0,60}", fence in "rust|py|sh|sql|json|html|js|css|diff") {
            let pieces: String = split_code(&code, &fence).iter().map(|(_, piece)| *piece).collect();
            proptest::prop_assert_eq!(pieces, code);
        }
    }
}
