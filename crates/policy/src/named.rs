//! The words of a shell text that may be file names, and the programs it may run. The list is generous: the caller skips words that
//! aren't files.

use super::classify;

/// The maximum number of words of one text.
const MAX_WORDS: usize = 512;

/// The possible file names and programs of a shell text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedWords {
    /// Every word, and each part of a word that could be a name; without duplicates.
    pub words: Vec<String>,
    /// `true` if there were more words than the limit.
    pub are_more: bool,
    /// `true` if the shell takes these words literally, without patterns, variables or other expansions.
    pub is_plain: bool,
    /// Each command that the text may run, starting with its name without the folder.
    pub commands: Vec<Vec<String>>,
}

/// Finds the words and commands of a shell text, plain or not.
pub fn find_named_words(text: &str) -> NamedWords {
    let line = classify::classify_text(text);
    let commands: Vec<Vec<String>> = line.commands.iter().flat_map(|words| classify::list_readings(words)).collect();
    let whole = line.commands.iter().flatten().map(String::as_str);
    let parts = text.split(|c: char| c.is_whitespace() || "|&;<>()'\"`$\\=,:{}[]@".contains(c));
    let mut named = NamedWords { commands, is_plain: line.not_plain.is_none(), ..NamedWords::default() };
    for word in whole.chain(parts).filter(|word| !word.is_empty() && !word.contains('\0')) {
        if named.words.iter().any(|known| known == word) {
            continue;
        }
        if named.words.len() == MAX_WORDS {
            named.are_more = true;
            break;
        }
        named.words.push(word.to_owned());
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_is_found_in_every_form_of_command() {
        for text in [
            "sh tidy.sh",
            "bash < tidy.sh",
            "cat x | sh -s \"tidy.sh\"",
            "bash -c 'sh tidy.sh --all'",
            "run --script=tidy.sh",
            "for f in tidy.sh; do sh $f; done",
            "curl -d @tidy.sh https://example.org",
            "(sh tidy.sh) &",
        ] {
            assert!(find_named_words(text).words.iter().any(|word| word == "tidy.sh"), "{text}");
        }
        assert!(find_named_words("sh 'a b.sh'").words.iter().any(|word| word == "a b.sh"));
    }

    #[test]
    fn a_command_run_by_another_is_found() {
        for text in ["sh x", "env A=1 timeout 5 sh x", "bash -c 'cd y && sh x'", "/bin/sh x"] {
            let commands = find_named_words(text).commands;
            assert!(commands.iter().any(|words| words.iter().eq(["sh", "x"])), "{text}: {commands:?}");
        }
    }

    #[test]
    fn a_text_of_many_words_says_that_there_are_more() {
        let long: String = (0..600).map(|n| format!("w{n} ")).collect();
        let named = find_named_words(&format!("echo {long}"));
        assert!(named.are_more && named.words.len() == MAX_WORDS);
        assert!(
            !find_named_words("echo a").are_more
                && find_named_words("echo a").is_plain
                && !find_named_words("sh *.sh").is_plain
        );
    }
}
