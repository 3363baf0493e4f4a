//! Tests both readers on arbitrary text, and their agreed result against real shells.

use std::{fmt::Write as _, path::Path, process::Output};

use proptest::prelude::*;

use super::*;

fn words(text: &str) -> Vec<Vec<String>> {
    parse_plain(text).unwrap_or_else(|why| panic!("{text:?}: {why}")).into_iter().map(|command| command.words).collect()
}

#[test]
fn plain_words_lose_their_quotes_and_nothing_else() {
    for (text, read) in [
        ("ls -la", vec![vec!["ls", "-la"]]),
        ("echo 'a  b' \"c d\" e\\ f", vec![vec!["echo", "a  b", "c d", "e f"]]),
        ("echo a'b'\"c\"d '' \"\"", vec![vec!["echo", "abcd", "", ""]]),
        ("echo \"a\\\"b\\\\c\\d\\$e\"", vec![vec!["echo", "a\"b\\c\\d$e"]]),
        ("echo \\\\ \\; \\' \\\" \\$x \\*", vec![vec!["echo", "\\", ";", "'", "\"", "$x", "*"]]),
        ("a && b || c; d | e\n\nf;", vec![vec!["a"], vec!["b"], vec!["c"], vec!["d"], vec!["e"], vec!["f"]]),
        ("a &&\n  b |\n\n c", vec![vec!["a"], vec!["b"], vec!["c"]]),
        ("ls 2>/dev/null | wc -l >/dev/null 2>&1; x </dev/null", vec![vec!["ls"], vec!["wc", "-l"], vec!["x"]]),
        (
            "git show HEAD^ a=b --c=d x^y 5 -5 +5 a,b a%b",
            vec![vec!["git", "show", "HEAD^", "a=b", "--c=d", "x^y", "5", "-5", "+5", "a,b", "a%b"]],
        ),
    ] {
        assert_eq!(words(text), read, "{text:?}");
    }
}

#[test]
fn the_operators_between_commands_are_parsed_too() {
    let joints: Vec<Joint> =
        parse_plain("a && b || c; d | e\nf").unwrap().into_iter().map(|command| command.joint).collect();
    assert_eq!(joints, [Joint::Then, Joint::And, Joint::Or, Joint::Then, Joint::Pipe, Joint::Then]);
}

#[test]
fn text_that_is_not_plain_is_refused_with_the_right_reason() {
    for (text, why) in [
        ("", NotPlain::Empty),
        (" \n ", NotPlain::Empty),
        ("echo $x", NotPlain::Expansion('$')),
        ("echo \"`x`\"", NotPlain::Expansion('`')),
        ("ls ~", NotPlain::Expansion('~')),
        ("ls *", NotPlain::Pattern('*')),
        ("ls > x", NotPlain::Redirection),
        ("ls 2>/dev/null -la", NotPlain::Redirection),
        ("2>/dev/null", NotPlain::Redirection),
        ("ls a2>/dev/null", NotPlain::Redirection),
        ("(ls)", NotPlain::Group),
        ("ls &", NotPlain::Background),
        ("a=b ls", NotPlain::Assignment),
        ("for x in a", NotPlain::Reserved("for".to_owned())),
        ("ls #x", NotPlain::Comment),
        ("ls !x", NotPlain::History('!')),
        ("ls 'x", NotPlain::Unended),
        ("ls \\", NotPlain::Unended),
        ("'l s'", NotPlain::Name("l s".to_owned())),
        ("ls &&", NotPlain::Stray),
        ("ls;;x", NotPlain::Stray),
        ("ls\0", NotPlain::Control('\0')),
        ("ls \u{430}", NotPlain::Foreign('\u{430}')),
        ("ls 'a\u{202e}'", NotPlain::Foreign('\u{202e}')),
    ] {
        assert_eq!(parse_plain(text), Err(why), "{text:?}");
    }
    // Plain to the lexer, but separate kinds of statement to the grammar.
    for text in ["export A", "unset x", "declare x", "readonly x", "ls && local x"] {
        assert!(lex::parse_commands(text).is_ok(), "{text}");
        assert_eq!(parse_plain(text), Err(NotPlain::Disagreement), "{text}");
    }
    assert_eq!(parse_plain(&"a".repeat(MAX_TEXT_BYTES + 1)), Err(NotPlain::TooLong));
    assert_eq!(parse_plain(&"a;".repeat(MAX_COMMANDS + 1)), Err(NotPlain::TooLong));
}

/// Pieces with and without a meaning to a shell.
fn soup() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("ls".to_owned()),
        "[ \t\n]{1,2}",
        "[;&|<>(){}$`'\"\\\\*?~#!=^\\[\\]-]{1,3}",
        "[a-z0-9._/-]{1,4}",
        Just("2>/dev/null".to_owned()),
        Just("2>&1".to_owned()),
        Just("if".to_owned()),
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn nothing_makes_a_reader_panic(text in prop_oneof![soup(), any::<String>()]) {
        let _ = (lex::parse_commands(&text).is_ok(), grammar::parse_commands(&text).is_some(), guess_commands(&text).len());
        if let Ok(commands) = parse_plain(&text) {
            prop_assert!(commands.iter().all(|command| !command.words.is_empty()));
        }
    }
}

/// The source of one word, with any mixture of quoting.
fn word_source() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => "[a-zA-Z0-9_./:,+@%-]{1,5}",
        1 => "[a-z][=^%]",
        2 => "'[ -&(-~é中ß]{0,6}'",
        2 => "\"[ #%-\\[\\]-_a-~ü]{0,6}\"",
        1 => "\"[a-z]?(\\\\[\"\\\\$`a-z ])[a-z]?\"",
        2 => "\\\\[ -~]",
    ];
    prop::collection::vec(piece, 1..4).prop_map(|pieces| pieces.concat())
}

/// A text whose commands are all `p`, or `f` before `||`, so a shell runs each of them.
fn text_source() -> impl Strategy<Value = String> {
    let command = prop::collection::vec(word_source(), 0..5);
    let tail = prop_oneof![4 => Just(""), 1 => Just(" 2>/dev/null"), 1 => Just(" 2>&1")];
    let joint = prop::sample::select(vec![" && ", "&&", " || ", "; ", ";", "\n", " | ", "|", " &&\n", "\n\n", " ;\t"]);
    prop::collection::vec((command, tail, joint), 1..5).prop_map(|commands| {
        let mut text = String::new();
        let last = commands.len() - 1;
        for (place, (words, tail, joint)) in commands.iter().enumerate() {
            let joint = if place == last { "" } else { *joint };
            text.push_str(if joint.contains("||") { "f" } else { "p" });
            for word in words {
                text.push(' ');
                text.push_str(word);
            }
            text.push_str(tail);
            text.push_str(joint);
        }
        text
    })
}

/// The words of each text's commands as a shell reads them, in the order of the texts. They are sorted within a text, since the
/// commands of a pipeline run at the same time.
fn by_shell(shell: &str, texts: &[String]) -> Vec<Vec<Vec<String>>> {
    let mut script = "exec 3>&1 >/dev/null\np() { printf '%s\\0' \"$#\" p \"$@\" >&3; }\n".to_owned();
    script.push_str("f() { printf '%s\\0' \"$#\" f \"$@\" >&3; return 1; }\n");
    for text in texts {
        writeln!(script, "printf 'text\\0' >&3\n{text}").unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("script");
    std::fs::write(&path, script).unwrap();
    let output = run(shell, &path);
    assert!(output.stderr.is_empty(), "{shell}: {}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
    let mut fields = printed.split_terminator('\0');
    let mut read: Vec<Vec<Vec<String>>> = Vec::new();
    while let Some(field) = fields.next() {
        if field == "text" {
            read.push(Vec::new());
            continue;
        }
        let count: usize = field.parse().unwrap();
        read.last_mut().unwrap().push(fields.by_ref().take(count + 1).map(str::to_owned).collect());
    }
    for commands in &mut read {
        commands.sort();
    }
    read
}

#[expect(clippy::disallowed_methods, reason = "a test asks the real shells")]
fn run(shell: &str, script: &Path) -> Output {
    std::process::Command::new(shell).arg(script).env_clear().stdin(std::process::Stdio::null()).output().unwrap()
}

/// Returns those of bash and dash that are installed; the tests need bash.
fn shells() -> Vec<&'static str> {
    ["/bin/bash", "/bin/dash"].into_iter().filter(|shell| Path::new(shell).exists()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 400, ..ProptestConfig::default() })]

    #[test]
    fn commands_that_both_readers_agree_on_are_what_the_shells_run(texts in prop::collection::vec(text_source(), 300)) {
        let read: Vec<(String, Vec<Vec<String>>)> = texts
            .into_iter()
            .filter_map(|text| {
                let mut commands: Vec<Vec<String>> = parse_plain(&text).ok()?.into_iter().map(|command| command.words).collect();
                commands.sort();
                Some((text, commands))
            })
            .collect();
        // Most of the generated texts are plain; otherwise the test would be empty.
        prop_assert!(read.len() > 100, "{}", read.len());
        let (texts, ours): (Vec<String>, Vec<_>) = read.into_iter().unzip();
        prop_assert!(!shells().is_empty());
        for shell in shells() {
            let theirs = by_shell(shell, &texts);
            prop_assert_eq!(theirs.len(), ours.len());
            for ((text, ours), theirs) in texts.iter().zip(&ours).zip(&theirs) {
                prop_assert_eq!(ours, theirs, "{} {:?}", shell, text);
            }
        }
    }
}
