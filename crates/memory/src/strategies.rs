//! Strings that look like damaged documents, for property tests of this crate and of others that read the documents.

use proptest::prelude::*;

const LINES: &[&str] = &[
    "## Alpha",
    "## alpha",
    "## Beta ##",
    "  ## Gamma",
    "##",
    "# Top",
    "### Deep",
    "## 2026-11-20",
    "## 2026-11-21",
    "## 2026-13-45",
    "- status: active",
    "- touched: 2026-11-20",
    "* touched: soon",
    "- Next:   call <!-- soon -->",
    "  goes on",
    "\tgoes on",
    "- 14:03 said hello <!-- wake 20261121T140302Z-812 -->",
    "- 09:10 early",
    "  - nested: yes",
    "- a fact <!-- wake 20261121T140302Z-812 message 41 -->",
    "- <!-- only a comment -->",
    "-",
    "1. one",
    "```",
    "~~~~",
    "<!--",
    "-->",
    "<div>",
    "</div>",
    "<script>",
    "---",
    "===",
    "some text",
    "Äpfel – naïve 🦀",
    "> quote",
    "> ## quoted",
    "",
    "",
    "\u{feff}",
    "\\",
    "[x]: y",
    "    code",
];

/// Up to 24 lines with mixed line endings, or any string at all.
pub(crate) fn document() -> impl Strategy<Value = String> {
    let line = (proptest::sample::select(LINES), proptest::sample::select(&["\n", "\n", "\n", "\r\n", ""][..]));
    let lines = proptest::collection::vec(line, 0..24)
        .prop_map(|lines| lines.into_iter().map(|(text, eol)| format!("{text}{eol}")).collect());
    prop_oneof![4 => lines, 1 => any::<String>()]
}
