#[path = "../../../memory/src/strategies.rs"]
mod strategies;

use proptest::prelude::*;

use reveille_memory::{ACTIVE, EPISODIC_MEMORY, SEMANTIC_MEMORY};

use super::*;

fn shown(path: &str, text: &str) -> Vec<String> {
    let line = |chunk: &Chunk| {
        let date = chunk.date.map(|day| day.to_string()).unwrap_or_default();
        format!("{}-{} [{}] ({}) {date} {}", chunk.line, chunk.last_line, chunk.heading, chunk.speaker, chunk.text)
    };
    split_document(path, text).iter().map(line).collect()
}

#[test]
fn facts_entries_and_tasks_are_chunks_with_their_heading_and_day() {
    let facts = "# Facts\n\n<!-- how\n to -->\n## Home\n- the wifi code is 1234 <!-- wake 20261121T140302Z-812 message 41 -->\n- Bob likes\n  green tea\n";
    assert_eq!(
        shown(SEMANTIC_MEMORY, facts),
        ["6-6 [Home] () 2026-11-21 the wifi code is 1234", "7-8 [Home] ()  Bob likes green tea"]
    );
    let log = "## 2026-11-20\n- 10:00 told Bob <!-- wake 1 own -->\n  more of it\n";
    assert_eq!(shown(EPISODIC_MEMORY, log), ["2-3 [2026-11-20] () 2026-11-20 10:00 told Bob more of it"]);
    let tasks = "# Active\n\n## Call Bob\n- status: active\n- touched: 2026-11-20\n\nAbout the roof.\n\n## Rest\n";
    assert_eq!(
        shown(ACTIVE, tasks),
        [
            "3-5 [Call Bob] () 2026-11-20 Call Bob: status: active touched: 2026-11-20",
            "7-7 [Call Bob] ()  About the roof.",
            "9-9 [Rest] ()  Rest",
        ]
    );
}

#[test]
fn each_line_of_a_dialogue_is_a_chunk_with_its_speaker_and_day() {
    let talk = "# Session 1 (8 May, 2023)\n\nCaroline: Hey Mel! Good to see you\nMelanie: Hi\n\n[D1:3] **Caroline** (13:56): I went there.\nNobody: once\n";
    assert_eq!(
        shown("memory/talk.md", talk),
        [
            "3-3 [Session 1 (8 May, 2023)] (Caroline) 2023-05-08 Caroline: Hey Mel! Good to see you",
            "4-4 [Session 1 (8 May, 2023)] () 2023-05-08 Melanie: Hi",
            "6-6 [Session 1 (8 May, 2023)] (Caroline) 2023-05-08 [D1:3] **Caroline** (13:56): I went there.",
            "7-7 [Session 1 (8 May, 2023)] () 2023-05-08 Nobody: once",
        ]
    );
}

#[test]
fn wrapped_lines_are_one_paragraph_and_others_are_not() {
    let text = "This is a line that was wrapped by an editor at about\neighty columns. It ends here.\nA short line\nAnother\n\n| a | b |\n|---|---|\n| 1 | 2 |\n";
    assert_eq!(
        shown("memory/notes.md", text),
        [
            "1-2 [] ()  This is a line that was wrapped by an editor at about eighty columns. It ends here.",
            "3-3 [] ()  A short line",
            "4-4 [] ()  Another",
            "6-6 [] ()  a | b",
            "8-8 [] ()  1 | 2",
        ]
    );
}

#[test]
fn long_texts_are_cut_and_nothing_of_them_is_lost() {
    let text = "Words of a sentence that ends here. ".repeat(200);
    let found = split_document("memory/a.md", &text);
    assert!(found.len() > 4 && found.iter().all(|chunk| chunk.text.len() <= MAX_CHUNK_BYTES));
    assert_eq!(found.iter().map(|chunk| chunk.text.matches("sentence").count()).sum::<usize>(), 200);
    let message = "A paragraph of some length, which says this and that.\n\n".repeat(60);
    let found = split_message(&message, ChunkKind::Message);
    assert!(found.len() > 1 && found.iter().skip(1).all(|chunk| chunk.line > 1));
}

#[test]
fn what_stands_around_a_comment_is_text_and_what_was_said_holds_none() {
    let text = "- tea <!-- note --> and cake <!-- wake 1 message 2 -->\n<!-- about\n - nothing --> the gate is blue\n\n\
                - milk <!-- two\n  lines --> and honey\n## Home <!-- x --> and garden\n```\na <!-- b --> c\n```\n<!-- open\n- jam\n";
    assert_eq!(
        shown("memory/notes.md", text),
        [
            "1-1 [] ()  tea and cake",
            "3-3 [] ()  the gate is blue",
            "5-6 [] ()  milk and honey",
            "9-9 [Home and garden] ()  a <!-- b --> c",
            "11-11 [Home and garden] ()  <!-- open",
            "12-12 [Home and garden] ()  jam",
        ]
    );
    assert_eq!(split_document("memory/notes.md", text)[0].origin, "wake 1 message 2");
    let said = format!("Is `<!--` a comment?\n{}\n<!-- kept", "Word after word after word.\n".repeat(60));
    let all: String = split_message(&said, ChunkKind::Message).into_iter().map(|chunk| chunk.text).collect();
    assert_eq!((all.matches("<!--").count(), all.contains("kept")), (2, true));
}

/// The headings and texts of a note, as `heading | text`.
fn found(text: &str) -> Vec<String> {
    split_document("memory/notes.md", text).iter().map(|chunk| format!("{} | {}", chunk.heading, chunk.text)).collect()
}

#[test]
fn headings_are_those_of_markdown() {
    // A name, a note, and what is found of it.
    let table: &[(&str, &str, &[&str])] = &[
        (
            "a fence that holds a shorter one",
            "# A\n````\n```\n# no\n```\n# nor\n````\n# B\nb\n",
            &["A | # no", "A | # nor", "B | b"],
        ),
        ("a fence of tildes that holds one of backticks", "# A\n~~~\n```\n# no\n~~~\n# B\nb\n", &["A | # no", "B | b"]),
        ("a longer fence ends it", "```\n# no\n`````\n# B\nb\n", &[" | # no", "B | b"]),
        ("a mark with words doesn't end it", "```\n``` x\n# no\n```\n# B\nb\n", &[" | ``` x # no", "B | b"]),
        ("an info string", "```sh title=\"# x\"\n# no\n```\n", &[" | # no"]),
        ("backticks in a line are no fence", "```x``` is code\n# B\nb\n", &[" | ```x``` is code", "B | b"]),
        ("a fence in a list", "- a\n\n  ```\n  # no\n  ```\n\n# B\nb\n", &[" | a", " | # no", "B | b"]),
        ("a fence in a quotation", "> ```\n> # no\n\n# B\nb\n", &[" | > # no", "B | b"]),
        ("an indented fence", "   ```\n   # no\n   ```\n# B\nb\n", &[" | # no", "B | b"]),
        ("a fence that is never closed", "# A\na\n```\n# no\n", &["A | a", "A | # no"]),
        ("a fence of one list item ends with it", "- ```\n  # no\n\n# B\nb\n", &[" | # no", "B | b"]),
        ("indented code", "a\n\n    # no\n", &[" | a", " | # no"]),
        ("a hashtag", "#tag\n# B\n#nor\n", &[" | #tag", "B | #nor"]),
        ("closing marks", "## A ##\na\n## C#\nc\n## D \\#\nd\n", &["A | a", "C# | c", "D \\# | d"]),
        ("tabs", "#\tA\n\ta\n", &["A | a"]),
        ("up to three blanks", "   # A\na\n", &["A | a"]),
        ("seven marks", "####### no\n", &[" | ####### no"]),
        ("underlined", "A\n===\na\n\nB\n---\nb\n", &["A | a", "B | b"]),
        ("a rule below a sentence", "It ends here.\n---\nb\n", &[" | It ends here.", " | b"]),
        ("a heading in a quotation", "> # no\n> a\n", &[" | # no", " | a"]),
        ("a heading in a list", "- # no\n- a\n", &[" | # no", " | a"]),
        ("underlined, with carriage returns", "A\r\n===\r\na\r\n", &["A | a"]),
        ("underlined, and marked like a tag", "#tag\n---\na\n", &["#tag | a"]),
        (
            "a number that goes on a sentence",
            "She was born in\n1984. It was hot.\n",
            &[" | She was born in", " | 1984. It was hot."],
        ),
        ("items", "1. a\n2) b\n* [x] c\n\n- d\n", &[" | a", " | b", " | c", " | d"]),
        ("a long number before an item", "100234. paid\n", &[" | 100234. paid"]),
        ("rows without a head", "| a | b |\n| c | d |\n", &[" | a | b", " | c | d"]),
        ("a heading in a comment", "<!--\n# no\n-->\n# B\nb\n", &["B | b"]),
        ("a comment that is never closed", "<!-- a\n# B\nb\n", &[" | <!-- a", "B | b"]),
        ("carriage returns alone", "# A\ra\r```\r# no\r```\r# B\rb", &["A | a", "A | # no", "B | b"]),
        ("no line end", "# A\na", &["A | a"]),
        ("a byte order mark", "\u{feff}# A\na\n", &["A | a"]),
        ("front matter with a comment", "---\n# no\ntitle: T\n---\n# B\nb\n", &[" | title: T", "B | b"]),
        ("the same with carriage returns", "---\r\n# no\r\ntitle: T\r\n---\r\n# B\r\nb\r\n", &[" | title: T", "B | b"]),
        ("the same behind a mark", "\u{feff}---\n# no\ntitle: T\n---\n# B\nb\n", &[" | title: T", "B | b"]),
        ("front matter that ends in dots", "---\ntitle: T\n## no\n...\n# B\nb\n", &[" | title: T", "B | b"]),
        ("front matter at the end of the file", "---\ntitle: T\n# no\n---", &[" | title: T"]),
        ("lists in front matter", "---\ntags:\n- x\n  # no\n- y\n---\nb\n", &[" | tags:", " | x", " | y", " | b"]),
        ("empty front matter", "---\n---\n# B\nb\n", &["B | b"]),
        ("front matter that is never closed", "---\ntitle: T\n# B\nb\n", &[" | title: T", "B | b"]),
        ("TOML", "+++\n# no\ntitle = \"T\"\n[x]\n+++\n# B\nb\n", &[" | title = \"T\"", " | [x]", "B | b"]),
        ("prose between two rules", "---\n# A\nIt is prose\n\n---\nb\n", &["A | It is prose", "A | b"]),
        ("a section between two rules", "---\n## A\n---\nb\n", &["A | b"]),
        ("four dashes", "----\na: b\n# A\n----\nb\n", &[" | a: b", "A | b"]),
        ("front matter further below", "# A\n\n---\n# B\nb: c\n---\n", &["A | A", "b: c | b: c"]),
    ];
    let wrong = table.iter().filter(|(_, text, expected)| found(text) != *expected);
    let wrong: Vec<_> = wrong.map(|(name, text, _)| (name, text, found(text))).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn of_a_heading_that_is_too_long_all_words_are_found() {
    let text = format!("# {}last\n\nb\n", "word ".repeat(2_000));
    let found = split_document("memory/notes.md", &text);
    assert!(
        found.iter().any(|chunk| chunk.text.ends_with("last")) && found.iter().all(|chunk| chunk.heading.len() <= 300)
    );
    assert_eq!(found.last().map(|chunk| (chunk.line, chunk.text.as_str())), Some((3, "b")));
}

proptest! {
    #[test]
    fn any_text_is_read_in_order(text in any::<String>(), lines in proptest::collection::vec(proptest::sample::select(LINES), 0..20), eol in proptest::sample::select(&["\n", "\r\n", "\r"][..])) {
        for text in [text.as_str(), &lines.join(eol)] {
            for chunk in split_document("memory/a.md", text).windows(2) {
                prop_assert!(chunk[0].line <= chunk[1].line && chunk[0].line <= chunk[0].last_line, "{text:?}");
            }
            for word in split_message(text, ChunkKind::Note) {
                prop_assert!(!word.text.is_empty());
            }
        }
    }

    #[test]
    fn every_word_of_any_markdown_is_found(
        lines in proptest::collection::vec(proptest::sample::select(LINES), 0..20),
        eol in proptest::sample::select(&["\n", "\r\n", "\r"][..]),
        mark in "\u{feff}?",
    ) {
        let (mut words, mut in_comments) = (0, Vec::new());
        let may_have_front = lines.first().is_some_and(|first| ["---", "+++"].contains(first));
        let mut numbered = |line: &str| line.split_inclusive('W').map(|part| match part.strip_suffix('W') {
            Some(before) => {
                words += 1;
                // A comment of front matter is found nowhere.
                if may_have_front && line.trim_start().starts_with('#') {
                    in_comments.push(words);
                }
                format!("{before}word{words}x")
            }
            None => part.to_owned(),
        }).collect::<String>();
        let lines: Vec<String> = lines.iter().map(|line| numbered(line)).collect();
        let text = format!("{mark}{}", lines.join(eol));
        let found = split_document("memory/a.md", &text);
        let all: String = found.iter().map(|chunk| format!("{} {} {} ", chunk.above, chunk.heading, chunk.text)).collect();
        for n in (1..=words).filter(|n| !in_comments.contains(n)) {
            prop_assert!(all.contains(&format!("word{n}x")), "{text:?} {all:?}");
        }
        let said: String = split_message(&text, ChunkKind::Message).iter().map(|chunk| format!("{} {} {} ", chunk.above, chunk.heading, chunk.text)).collect();
        for n in (1..=words).filter(|n| !in_comments.contains(n)) {
            prop_assert!(said.contains(&format!("word{n}x")), "{text:?} {said:?}");
        }
    }

    #[test]
    fn every_word_of_a_document_outside_comments_is_found(text in strategies::document(), canary in "[a-z]{12}") {
        // What the text has left open ends, a comment or a fence.
        let text = format!("{text}\n```\n```\n\n--> \n- {canary}\n");
        let all: String = split_document("memory/a.md", &text).iter().map(|chunk| chunk.text.clone()).collect();
        prop_assert!(all.contains(&canary));
        for chunk in split_document("memory/a.md", &text) {
            prop_assert!(chunk.line >= 1 && chunk.last_line >= chunk.line && chunk.last_line <= text.lines().count());
        }
    }

    #[test]
    fn words_around_comments_are_found_and_those_within_are_not(
        shapes in proptest::collection::vec((proptest::sample::select(SHAPES), "\n?"), 1..12),
    ) {
        let (mut text, mut words) = (String::new(), 0);
        for (shape, blank) in shapes {
            let mut parts = shape.split('W');
            text.push_str(parts.next().unwrap());
            for part in parts {
                text.push_str(&format!("word{words}x{part}"));
                words += 1;
            }
            text.push_str(&format!("\n{blank}"));
        }
        let found = split_document("memory/a.md", &text);
        let all: String = found.iter().map(|chunk| format!("{} {} {} ", chunk.above, chunk.heading, chunk.text)).collect();
        for n in 0..words {
            prop_assert!(all.contains(&format!("word{n}x")), "{text:?} {all:?}");
        }
        prop_assert!(!all.contains("hidden"), "{text:?} {all:?}");
    }
}

/// Lines of Markdown with words, `W`, that are put together in any order.
const LINES: &[&str] = &[
    "---",
    "...",
    "+++",
    "W: W",
    "W = W",
    "- W",
    "  - W",
    "1. W",
    "> W",
    "> # W",
    "# W",
    "##",
    "## W ##",
    "#W",
    "W",
    "W",
    "===",
    "",
    "",
    "```",
    "````",
    "~~~",
    "  ```",
    "> ```",
    "- ```",
    "    # W",
    "\tW",
    "| W | W |",
    "|---|---|",
    "**W** W.",
    "<div>",
    "</div>",
    "<W>",
    "[W]: W",
    "\\# W",
    "W\0W",
    "- [ ] W",
    "<script>",
    "<?W",
];

/// Lines with words, `W`, and comments.
const SHAPES: &[&str] = &[
    "- W <!-- hidden --> W",
    "W <!-- hidden --> W <!-- hidden -->",
    "<!-- hidden --> W",
    "<!-- hidden\n\n- hidden --> W <!-- hidden --> W",
    "<!--\n# hidden\n```\n-->",
    "- W <!-- hidden\n  hidden --> W",
    "## W <!-- hidden --> W",
    "```\nW <!-- W -->\n```",
    "W --> W",
    "W",
];
